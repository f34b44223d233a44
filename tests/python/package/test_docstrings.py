"""Every public name has a docstring and a place in the reference; its examples run, and print what it says."""
import collections
import doctest
import importlib
import inspect
import os
import re
import shutil

import pytest

import h5bridge
import support

DEMO = support.own_copy('demo', 'demo.ms')


def documented():
    """(name, docstring) of everything public in the package that has an example."""
    found = {}
    for name in h5bridge.__all__:
        value = getattr(h5bridge, name)
        found[name] = value
        if inspect.ismodule(value):
            found |= {f'{name}.{member}': getattr(value, member) for member in getattr(value, '__all__', ())
                      if inspect.isroutine(getattr(value, member)) or inspect.isclass(getattr(value, member))}
        for member, of in vars(value).items() if inspect.isclass(value) else ():
            if not member.startswith('_') and (inspect.isfunction(of) or isinstance(of, property)):
                found[f'{name}.{member}'] = of
    return {name: inspect.getdoc(value) for name, value in found.items()}


# those of dask need a cluster: tests/python/scale/test_dask.py
EXAMPLES = {name: text for name, text in documented().items() if text and '>>>' in text and not name.startswith('dask.')}


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """The files that examples read."""
    folder = tmp_path_factory.mktemp('made')
    ms = shutil.copytree(DEMO, folder / 'my.ms')
    h5bridge.pack(ms, folder / 'one.mf', single_file=True)
    for number, rows in enumerate([(0, 100), (100, 210)]):
        h5bridge.to_hdf5(ms, folder / f'part{number}.h5', rows=rows)
    h5bridge.to_hdf5(ms, folder / 'my.h5', compress='shared')
    h5bridge.follow(ms, folder / 'live.h5', idle=0.1)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A copy of the files for each example."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path / 'copy'))


def test_everything_is_documented():
    assert not [name for name, text in documented().items() if not text]
    assert len(EXAMPLES) > 40


def test_reference_has_everything():
    """docs/reference/python.md has each public name once, from the module that defines it, and no other."""
    with open(os.path.join(support.ROOT, 'docs', 'reference', 'python.md'), encoding='utf-8') as file:
        lines = re.findall(r'^::: h5bridge\.(\w+)(?:\.(\w+)|: ([\w, ]+?))?(?: \{.*\})?$', file.read(), re.MULTILINE)
    shown = collections.Counter()
    for home, alone, several in lines:
        names = [name for name in (alone, *several.split(', ')) if name]
        assert all(getattr(importlib.import_module(f'h5bridge.{home}'), name) is getattr(h5bridge, name) for name in names), home
        shown.update(names or [home])
    assert shown == collections.Counter(h5bridge.__all__)


def plan_batch():
    h5bridge.batch.plan('*.ms', 'all.ndjson', to='out/{stem}.h5')


def plan_shards(does_all=True):
    h5bridge.shard.plan('my.ms', 'big.h5', work_bytes='64K')
    if does_all:
        h5bridge.shard.work('big.h5')


# what steps need of those before them
BEFORE = {'batch.run': [plan_batch], 'batch.clean': [plan_batch], 'shard.work': [lambda: plan_shards(False)],
          'batch.status': [plan_batch, lambda: h5bridge.batch.run('all.ndjson', 'ledger', min_free='1M')],
          **dict.fromkeys(['shard.status', 'shard.commit', 'shard.verify'], [plan_shards])}


@pytest.mark.parametrize('name', EXAMPLES)
def test_examples(name, folder):
    for prepare in BEFORE.get(name, ()):
        prepare()
    if name in ('to_hdf5', 'replace'):
        os.remove('my.h5')
    if name == 'materialize':
        h5bridge.link('my.h5', 'thin.ms')
    import matplotlib
    matplotlib.use('Agg')
    names = {name: getattr(h5bridge, name) for name in h5bridge.__all__}
    if inspect.ismodule(names[name.split('.')[0]]):
        os.remove('live.h5')
        names.update(vars(names[name.split('.')[0]]))
    names['h5bridge'] = h5bridge
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], names, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(checker=Checker(), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, ''.join(said)


class Checker(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        return not want or super().check_output(want, got, optionflags)
