"""Every public name has a docstring; its examples run, and print what it says."""
import doctest
import inspect
import os
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
        for member, of in vars(value).items() if inspect.isclass(value) else ():
            if not member.startswith('_') and (inspect.isfunction(of) or isinstance(of, property)):
                found[f'{name}.{member}'] = of
    return {name: inspect.getdoc(value) for name, value in found.items()}


EXAMPLES = {name: text for name, text in documented().items() if text and '>>>' in text}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that examples read."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DEMO, 'my.ms')
    h5bridge.pack('my.ms', 'one.mf', single_file=True)
    for number, rows in enumerate([(0, 100), (100, 210)]):
        h5bridge.to_hdf5('my.ms', f'part{number}.h5', rows=rows)
    h5bridge.follow('my.ms', 'live.h5', idle=0.1)
    return tmp_path


def test_everything_is_documented():
    assert not [name for name, text in documented().items() if not text]
    assert len(EXAMPLES) > 20


@pytest.mark.parametrize('name', EXAMPLES)
def test_examples(name, folder):
    if name not in ('to_hdf5', 'replace'):
        h5bridge.to_hdf5('my.ms', 'my.h5', compress='shared')
    if name == 'materialize':
        h5bridge.link('my.h5', 'thin.ms')
    import matplotlib
    matplotlib.use('Agg')
    names = {name: getattr(h5bridge, name) for name in h5bridge.__all__}
    if inspect.ismodule(names[name.split('.')[0]]):
        os.remove('live.h5')
        names.update(vars(names[name]))
    names['h5bridge'] = h5bridge
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], names, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(checker=Checker(), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, ''.join(said)


class Checker(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        return not want or super().check_output(want, got, optionflags)
