"""docs/messages.md: messages of every exit code, provoked by commands, judged by rules, and compared with the page.

Each command runs in a folder of its own copies, so that every message has short paths. A message is judged by `shortcomings`: it
names the file (or the option), the place of damage, what was found or expected, and what to do next. H5BRIDGE_UPDATE=1 writes
the page."""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import h5py
import numpy as np
import pytest

import support
from support import h5bridge

PAGE = os.path.join(support.ROOT, 'docs', 'messages.md')
TESTS = os.path.dirname(os.path.abspath(__file__))


class Case(NamedTuple):
    """A command that fails."""
    code: int
    words: str
    place: str = ''      # what the message names beside the file: a structure, a column, an option


def shell_words(text):
    """The words of a command line in which only single quotes quote."""
    return [word[1:-1] if word.startswith("'") else word for word in re.findall(r"'[^']*'|\S+", text)]


# ---- the sources ----------------------------------------------------------------------------------------------------

def damaged(folder, name, source, change):
    """A copy of SOURCE that CHANGE damages."""
    path = folder / name
    if (folder / source).is_dir():
        shutil.copytree(folder / source, path)
    else:
        shutil.copy(folder / source, path)
    change(path)


def cut(length, *inside):
    """Keeps the first bytes of a file, or of one inside a directory; a negative length drops the last."""
    def change(path):
        file = path.joinpath(*inside)
        file.write_bytes(file.read_bytes()[:length])
    return change


def patched(offset, data, *inside):
    """Overwrites bytes of a file, or of one inside a directory."""
    def change(path):
        file = path.joinpath(*inside)
        content = bytearray(file.read_bytes())
        offset_now = offset if offset >= 0 else len(content) + offset
        content[offset_now:offset_now + len(data)] = data
        file.write_bytes(content)
    return change


def removed(*inside):
    return lambda path: os.remove(path.joinpath(*inside))


def edited(change):
    """Changes an HDF5 file with h5py."""
    def edit(path):
        with h5py.File(path, 'r+') as file:
            change(file)
    return edit


def without(name):
    def change(file):
        del file[name]
    return edited(change)


def with_attribute(name, value):
    def change(file):
        file.attrs[name] = value
    return edited(change)


def directory_for_file(*inside):
    def change(path):
        os.remove(path.joinpath(*inside))
        os.mkdir(path.joinpath(*inside))
    return change


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """All sources of the commands."""
    folder = tmp_path_factory.mktemp('messages')
    run = lambda *words: subprocess.run([support.H5BRIDGE, *words, '-q'], cwd=folder, check=True, capture_output=True)
    demo = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
    shutil.copytree(demo, folder / 'my.ms')
    shutil.copytree(demo, folder / 'other.ms')
    run('to-hdf5', 'my.ms', 'my.h5')
    run('to-hdf5', 'my.ms', 'rows.h5', '--rows', '0..10')
    run('to-hdf5', 'my.ms', 'plain.h5', '--no-digest')
    run('to-hdf5', 'my.ms', 'exact.h5', '--restorable')
    run('to-hdf5', 'my.ms', 'average.h5', '--average', 'time=60s')
    run('pack', 'my.ms', 'packed.ms', '--crc')
    run('pack', 'my.ms', 'archive.h5', '--single-file', '--crc')
    run('pack', 'my.ms', 'my.vt', '--format', 'vt')
    run('pack', 'my.ms', 'run.sion', '--format', 'sion')
    run('manifest', 'my.ms', 'my.json')
    with h5py.File(folder / 'numbers.h5', 'w') as file:
        file['group/data'] = np.arange(1000.)
        file['group/other'] = np.arange(10)
        file['text'] = 'no array'
    run('pack', 'numbers.h5/group/data', 'data.bcolz', '--format', 'bcolz')
    (folder / 'notes.txt').write_text('These are notes.\n')
    (folder / 'empty').write_bytes(b'')
    (folder / 'folder').mkdir()
    (folder / 'mine').mkdir()
    (folder / 'mine' / 'thesis.tex').write_text('mine')
    os.symlink('circle', folder / 'circle')
    shutil.copytree(os.path.join(support.TESTDATA, 'virtual_taql'), folder / 'taql')
    with h5py.File(folder / 'changed.h5', 'w') as target, h5py.File(folder / 'my.h5') as source:
        for name in source.attrs:
            target.attrs[name] = source.attrs[name]
        for name in source:
            source.copy(name, target)
        target['MAIN/TIME'][3] += 1
    # what casacore keeps locked, and a live file whose writer lives
    tables = [
        ('cut_dat.ms', cut(100, 'table.dat')), ('magic.ms', patched(0, b'\0\0\0\0', 'table.dat')),
        ('empty_dat.ms', cut(0, 'table.dat')), ('no_dat.ms', removed('table.dat')),
        ('cut_sub.ms', cut(60, 'ANTENNA', 'table.dat')), ('no_f3.ms', removed('table.f3')),
        ('cut_f3.ms', cut(40, 'table.f3')), ('magic_f3.ms', patched(0, b'\xff' * 8, 'table.f3')),
        ('no_tiles.ms', removed('table.f0_TSM1')), ('cut_tiles.ms', cut(1000, 'table.f0_TSM1')),
        ('cut_ssm.ms', cut(-20000, 'table.f7')), ('index_ssm.ms', patched(0, b'\xff' * 64, 'table.f7')),
        ('cut_ism.ms', cut(600, 'table.f8')), ('dir_dat.ms', directory_for_file('table.dat')),
    ]
    for name, change in tables:
        damaged(folder, name, 'my.ms', change)
    for name, change in [
        ('cut.h5', cut(5000)), ('head.h5', patched(8, b'\xff' * 8)), ('no_data.h5', without('MAIN/DATA')),
        ('no_main.h5', without('MAIN')), ('version.h5', with_attribute('format_version', '9.0')),
        ('format.h5', with_attribute('format', 'another')),
    ]:
        damaged(folder, name, 'my.h5', change)
    damaged(folder, 'cut_mf.ms', 'packed.ms', cut(2000, 'table.mf'))
    damaged(folder, 'magic_mf.ms', 'packed.ms', patched(8, b'\xff' * 24, 'table.mf'))
    damaged(folder, 'crc_mf.ms', 'packed.ms', patched(-5000, b'\xff' * 64, 'table.mf'))
    damaged(folder, 'seal.h5', 'archive.h5', patched(-40, b'\xff' * 16))
    damaged(folder, 'block.h5', 'archive.h5', patched(20000, b'\xff' * 200))
    damaged(folder, 'cut.sion', 'run.sion', cut(200))
    damaged(folder, 'cut.vt', 'my.vt', cut(20))
    damaged(folder, 'no_sizes.bcolz', 'data.bcolz', removed('meta', 'sizes'))
    damaged(folder, 'json.bcolz', 'data.bcolz', patched(0, b'}', 'meta', 'sizes'))
    (folder / 'broken.json').write_text('{"version": 1, "refs": ')
    shutil.copytree(folder / 'my.ms', folder / 'locked.ms')
    writer = subprocess.Popen(
        [sys.executable, '-c', "import sys, casacore.tables as t; t = t.table('locked.ms', readonly=False,"
         " lockoptions='permanent', ack=False); print('ready', flush=True); sys.stdin.read()"],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == 'ready\n'
    yield folder
    writer.stdin.close()
    writer.wait()


# ---- the commands ---------------------------------------------------------------------------------------------------

CASES = [
    # the command line
    Case(2, 'to-hdf'), Case(2, 'to-hdf5 my.ms'), Case(2, 'to-hdf5 my.ms out.h5 --colums DATA', '--colums'),
    Case(2, 'help format', 'format'), Case(2, 'completions bsh', 'bsh'),
    Case(2, 'to-hdf5 my.ms out.h5 --columns DAT', 'DAT'),
    Case(2, 'to-hdf5 my.ms out.h5 --columns ANTENA/NAME', 'ANTENA'),
    Case(2, 'to-hdf5 my.ms out.h5 --exclude ANTENNA/NAM', 'NAM'),
    Case(2, 'to-hdf5 my.ms out.h5 --tables MIAN', 'MIAN'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'SCAN_NUMBR == 3'", 'SCAN_NUMBR'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'FIELD_ID == \"3C28\"'", '3C28'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'TIME >'", 'character'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'DATA > 3'", 'DATA'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'TIME > \"yesterday\"'", 'yesterday'),
    Case(2, 'to-hdf5 my.ms out.h5 --average tim=10s', '--average'),
    Case(2, 'to-hdf5 my.ms out.h5 --average chan=1', '--average'),
    Case(2, 'to-hdf5 my.ms/ANTENNA out.h5 --average time=10s', 'TIME'),
    Case(2, 'to-hdf5 my.ms out.h5 --rows 10', '--rows'), Case(2, 'to-hdf5 my.ms out.h5 --rows 9..3', '--rows'),
    Case(2, 'to-hdf5 my.ms out.h5 --rows 0..1000', 'rows'),
    Case(2, 'to-hdf5 my.ms out.h5 --compress gzp', '--compress'), Case(2, 'to-hdf5 my.ms out.h5 --compress gzip:11', '--compress'),
    Case(2, 'to-hdf5 my.ms out.h5 --compress keep', '--compress'), Case(2, 'to-hdf5 my.ms out.h5 --dtype f4', '--dtype'),
    Case(2, 'to-hdf5 my.ms out.h5 --max-memory 1M', '--max-memory'),
    Case(2, 'to-hdf5 my.ms out.h5 --restorable --rows 0..3', 'restorable'),
    Case(2, 'to-hdf5 my.h5 out.h5 --restorable', 'restorable'),
    Case(2, 'to-hdf5 my.ms out.h5 --salvage --restorable', '--salvage'),
    Case(2, 'to-hdf5 my.ms out.h5 --appendable --compress shared', '--appendable'),
    Case(2, 'to-hdf5 my.ms missing/out.h5', 'missing'),
    Case(2, 'to-hdf5 my.ms ..', ''),
    Case(2, 'to-ms my.h5 out.ms --byte-order middle', '--byte-order'), Case(2, 'to-ms my.h5 out.ms --exact', 'restorable'),
    Case(2, 'digest my.ms --columns DAT', 'DAT'), Case(2, 'verify plain.h5', 'digests'),
    Case(2, 'verify my.ms average.h5', 'averag'),
    Case(2, 'pack my.ms out.ms --format multifle', '--format'), Case(2, 'pack my.ms out.ms --block-size 12', 'block'),
    Case(2, 'pack my.ms out.ms --format bcolz --crc', '--crc'), Case(2, 'pack my.ms out.ms --compress lz5', '--compress'),
    Case(2, 'pack numbers.h5 out.bcolz --format bcolz', 'dataset'),
    Case(2, 'manifest my.ms out.json --table ANTENA', 'ANTENA'),
    Case(2, 'plot my.ms waterfal', 'waterfal'), Case(2, 'plot my.ms --column DAT', 'DAT'),
    Case(2, 'plot my.ms --quantity phse', 'phse'), Case(2, 'plot my.ms --antenna nowhere', 'nowhere'),
    Case(2, 'plot my.ms --chan 5', 'chan'), Case(2, 'plot my.ms --out my.gif', 'my.gif'),
    Case(2, 'follow my.ms out.h5 --idle 5parsecs', '--idle'), Case(2, 'info my.ms --lock-timeout soon', '--lock-timeout'),
    Case(2, 'link my.ms out.ms'), Case(2, 'materialize my.ms'),
    # sources that are missing, something else, or damaged
    Case(3, 'info nothing.ms'), Case(3, 'to-hdf5 nothing.ms out.h5'), Case(3, 'info notes.txt'), Case(3, 'info empty'),
    Case(3, 'info folder'), Case(3, 'info circle'), Case(3, 'info my.h5/ANTENA', 'ANTENA'),
    Case(3, 'info archive.h5/ANTENA', 'ANTENA'), Case(3, 'ls packed.ms/table.mg'), Case(3, 'ls run.sion/TASK77', 'TASK77'),
    Case(3, 'pack numbers.h5/group/dat out.bcolz --format bcolz', 'dat'), Case(3, 'watch my.ms'), Case(3, 'repair my.ms'),
    Case(3, 'finalize nothing.h5 out.h5'),
    Case(3, 'to-hdf5 cut_dat.ms out.h5', 'table.dat'), Case(3, 'info magic.ms', 'table.dat'), Case(3, 'info empty_dat.ms', 'table.dat'),
    Case(3, 'info no_dat.ms'), Case(3, 'to-hdf5 cut_sub.ms out.h5', 'ANTENNA'), Case(3, 'to-hdf5 no_f3.ms out.h5', 'table.f3'),
    Case(3, 'to-hdf5 cut_f3.ms out.h5', 'table.f3'), Case(3, 'to-hdf5 magic_f3.ms out.h5', 'table.f3'),
    Case(3, 'to-hdf5 no_tiles.ms out.h5', 'table.f0'), Case(3, 'to-hdf5 cut_tiles.ms out.h5', 'table.f0'),
    Case(3, 'to-hdf5 cut_ssm.ms out.h5', 'table.f7'), Case(3, 'to-hdf5 index_ssm.ms out.h5', 'table.f7'),
    Case(3, 'to-hdf5 cut_ism.ms out.h5', 'table.f8'),
    Case(3, 'info cut.h5'), Case(3, 'info head.h5'), Case(3, 'to-ms no_data.h5 out.ms', 'DATA'), Case(3, 'info no_main.h5', 'MAIN'),
    Case(3, 'info format.h5', 'format'),
    Case(3, 'ls cut_mf.ms', 'table.mf'), Case(3, 'info magic_mf.ms', 'table.mf'), Case(3, 'unpack crc_mf.ms out.ms', 'table.mf'),
    Case(3, 'ls seal.h5'), Case(3, 'unpack block.h5 out.ms'), Case(3, 'verify --bytes block.h5'), Case(3, 'ls cut.sion'), Case(3, 'ls cut.vt'),
    Case(3, 'info no_sizes.bcolz', 'sizes'), Case(3, 'info json.bcolz', 'sizes'), Case(3, 'verify broken.json'),
    # what exists in no form of ours
    Case(4, 'info version.h5', '9.0'),
    # differences
    Case(5, 'verify my.ms changed.h5', 'TIME'), Case(5, 'verify my.ms rows.h5'), Case(5, 'verify --bytes my.ms crc_mf.ms'),
    # warnings
    Case(6, 'to-hdf5 cut_tiles.ms salvaged.h5 --salvage', 'table.f0'),
    Case(6, 'to-hdf5 taql/TAQL out.h5 --strict'),
    # targets
    Case(7, 'to-hdf5 my.ms my.h5'), Case(7, 'to-ms my.h5 other.ms'), Case(7, 'to-ms my.h5 mine --overwrite'),
    Case(7, 'pack my.ms packed.ms'), Case(7, 'manifest my.ms my.json'), Case(7, 'plot my.ms --out notes.txt.png'),
    Case(7, 'to-hdf5 locked.ms out.h5 --lock-timeout 0.2'), Case(7, 'digest locked.ms --lock-timeout 0.2'),
    # the system
    Case(1, 'to-hdf5 dir_dat.ms out.h5', 'table.dat'), Case(1, 'generate man notes.txt'),
]


def provoke(folder, case):
    """(exit code, message) of a command."""
    process = subprocess.run([support.H5BRIDGE, *shell_words(case.words)], cwd=folder, capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, timeout=60)
    text = process.stderr if case.code != 5 else process.stdout + process.stderr
    return process.returncode, text.replace(str(folder) + '/', '')


if __name__ == '__main__':
    import pathlib, tempfile
    class F:
        def mktemp(self, name): return pathlib.Path(tempfile.mkdtemp(dir='/tmp/words'))
    made = folder.__wrapped__(F()) if hasattr(folder, '__wrapped__') else None
    f = next(made)
    for case in CASES:
        code, text = provoke(f, case)
        print('' if code == case.code else 'XXX %d not %d' % (code, case.code), '$', case.words); print('   ', text.strip().replace('\n', '\n    '))
