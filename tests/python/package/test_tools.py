"""`ls`, `join`, `repair`, `watch` and `show_versions` as functions; errors in Python's words."""
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

import h5bridge
import support
from h5bridge import _errors, live

DEMO = support.own_copy('demo', 'demo.ms')


def test_ls(tmp_path):
    """The files that `pack` has put there, of the sizes that the table had."""
    h5bridge.pack(DEMO, tmp_path / 'one.mf', single_file=True)
    found = h5bridge.ls(tmp_path / 'one.mf')
    sizes = {os.path.relpath(os.path.join(folder, name), DEMO): os.path.getsize(os.path.join(folder, name))
             for folder, _, names in os.walk(DEMO) for name in names}
    assert {file.path: file.bytes for file in found.files if not file.path.endswith('table.lock')} == {
        path: size for path, size in sizes.items() if not path.endswith('table.lock')}
    assert found.document == json.loads(support.h5bridge('ls', tmp_path / 'one.mf', '--json').stdout) | {
        key: found.document[key] for key in ('status', 'code', 'warnings') if key in found.document}


def test_join(tmp_path):
    for number, rows in enumerate([(0, 80), (80, 210)]):
        h5bridge.to_hdf5(DEMO, tmp_path / f'{number}.h5', rows=rows)
    parts = [tmp_path / '0.h5', tmp_path / '1.h5']
    with pytest.raises(h5bridge.UsageError, match='virtual=True'):
        h5bridge.join(parts, tmp_path / 'all.h5')
    made = h5bridge.join(parts, tmp_path / 'all.h5', virtual=True, copy_below=0)
    assert (made.rows, made.parts) == (210, 2) and made.virtual_columns
    with h5py.File(tmp_path / 'all.h5') as file, h5bridge.open_table(DEMO) as table:
        assert np.array_equal(file['MAIN/DATA'][:], table['DATA'][:])
    with pytest.raises(h5bridge.ExistsError, match='overwrite=True'):
        h5bridge.join(parts, tmp_path / 'all.h5', virtual=True)


KILLED = '''
import os, sys, h5bridge
from h5bridge import live
writer = live.Writer(sys.argv[1], {'MAIN': live.Table({'X': live.Column('i4')})}, every=None)
writer.append('MAIN', X=[1, 2, 3])
writer.commit()
writer.append('MAIN', X=[4])
os._exit(9)
'''


def test_repair(tmp_path):
    """A file whose writer died has the committed rows, and opens everywhere."""
    path = tmp_path / 'live.h5'
    assert subprocess.run([sys.executable, '-c', KILLED, str(path)]).returncode == 9
    repaired = h5bridge.repair(path)
    assert repaired.was_open and repaired.file_bytes == os.path.getsize(path)
    with h5py.File(path) as file:
        assert file['MAIN/X'][:].tolist() == [1, 2, 3]
    assert not h5bridge.repair(path).was_open


def test_watch(tmp_path):
    path = tmp_path / 'live.h5'
    with live.Writer(path, {'MAIN': live.Table({'X': live.Column('i4')})}, every=None) as writer:
        seen = []
        for look in h5bridge.watch(path, interval=0.02, count=3):
            seen.append(look['tables']['MAIN'])
            writer.append('MAIN', X=[1, 2])
            writer.commit()
        assert seen == [0, 2, 4] and look['rows_per_second'] is not None and look['open']
    with pytest.raises(h5bridge.Error):
        next(h5bridge.watch(DEMO))


def test_versions(capsys):
    h5bridge.show_versions()
    printed = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert printed['numpy'] == np.__version__ and printed['h5py'] == h5py.__version__
    assert 'python' in printed and printed['python-casacore'] == importlib.metadata.version('python-casacore')


def test_errors_speak_python(tmp_path):
    h5bridge.to_hdf5(DEMO, tmp_path / 'a.h5')
    shutil.copytree(DEMO, tmp_path / 'x--overwrite.ms')
    for call, words in (
            (lambda: h5bridge.to_hdf5(DEMO, tmp_path / 'a.h5'), 'overwrite=True'),
            (lambda: h5bridge.to_ms(tmp_path / 'a.h5', tmp_path / 'x.ms', exact=True), 'restorable=True'),
            (lambda: h5bridge.to_hdf5(DEMO, tmp_path / 'b.h5', hdf5='1.8', profile='cloud'), 'profile="cloud"'),
            (lambda: h5bridge.link(tmp_path / 'a.h5', tmp_path / 'y.ms'), r'`h5bridge.to_hdf5\(compress="shared"\)`'),
            (lambda: h5bridge.to_ms(tmp_path / 'x--overwrite.ms', tmp_path / 'y.ms', exact=True), 'x--overwrite.ms')):
        with pytest.raises(h5bridge.Error, match=words) as caught:
            call()
        assert not re.search(r'(?<![\w])--[a-z]', str(caught.value)), str(caught.value)


@pytest.mark.parametrize('said,spoken', [
    ('--exclude DATA leaves out the column', 'exclude=["DATA"] leaves out the column'),
    ('select rows by --where, such as TIME', 'select rows by where=…, such as TIME'),
    ('`h5bridge repair live.h5` removes them', '`h5bridge.repair("live.h5")` removes them'),
    ('open it with --no-lock', 'open it with lock=False'),
    ('run `h5bridge shard work my.h5`', 'run `h5bridge.shard.work("my.h5")`'),
    ('`h5bridge shard status --json` lists all', '`h5bridge.shard.status()` lists all'),
    ('--port 0 takes a free one', 'port=0 takes a free one'),
    ('/a/b--overwrite.ms and a--b', '/a/b--overwrite.ms and a--b'),
])
def test_words(said, spoken):
    assert _errors.spoken(said) == spoken


def test_every_option_in_an_error_is_known():
    """Options that the messages of the library name are arguments of a function of this package, under that name."""
    import inspect
    arguments = {name for home in (h5bridge, h5bridge.batch, h5bridge.shard) for function in home.__all__
                 if inspect.isfunction(getattr(home, function)) for name in inspect.signature(getattr(home, function)).parameters}
    valued = {option.replace('-', '_') for option in _errors._VALUED}
    assert valued - arguments <= {'source', 'count', 'alert'}
