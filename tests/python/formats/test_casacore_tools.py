"""Debian's casacore-tools, built with a casacore before 3.6: containers that they make and that they read."""
import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from casacore.tables import makearrcoldesc, makescacoldesc, maketabdesc, table

import support
from support import TESTDATA, h5bridge

pytestmark = pytest.mark.skipif(not (shutil.which('tomf') and shutil.which('taql')),
                                reason='apt-get install casacore-tools')

# tables with data of their own, in plain directories, that the tools' casacore can open
TABLES = sorted(
    os.path.join(folder, name) for folder in (os.path.join(TESTDATA, top) for top in os.listdir(TESTDATA)) if os.path.isdir(folder)
    for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name, 'table.f0')))[:24]


def run(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and 'rror' not in done.stderr, (words, done.stdout[-500:], done.stderr[-500:])
    return done.stdout


@pytest.mark.parametrize('block', [128, 4096, None])
def test_files_of_tomf_containers_are_unpacked(tmp_path, block):
    assert len(TABLES) >= 20
    for number, source in enumerate(TABLES):
        names = sorted(name for name in os.listdir(source) if os.path.isfile(os.path.join(source, name)))
        # with and without the file that makes it a table
        for chosen in (names, [name for name in names if name != 'table.dat']):
            made, out = tmp_path / ('%d.mf' % number), tmp_path / ('%d' % number)
            size = [] if block is None else ['-b', block]
            run('tomf', *size, *(os.path.join(source, name) for name in chosen), made)
            h5bridge('unpack', made, out)
            assert sorted(os.listdir(out)) == chosen
            for name in chosen:
                with open(os.path.join(source, name), 'rb') as file:
                    assert (out / name).read_bytes() == file.read(), (source, name)
            shutil.rmtree(out)
            for file in tmp_path.glob('%d.mf*' % number):
                file.unlink()


@pytest.mark.parametrize('form', ['multifile', 'multihdf5'])
def test_container_in_a_table_is_unpacked_by_itself(tmp_path, form):
    h5bridge('pack', TABLES[0], tmp_path / 'packed.tab', '--format', form)
    container = next(path for path in (tmp_path / 'packed.tab').iterdir() if path.suffix in ('.mf', '.mfh5'))
    h5bridge('unpack', container, tmp_path / 'out')
    assert (tmp_path / 'out' / 'table.f0').read_bytes() == open(os.path.join(TABLES[0], 'table.f0'), 'rb').read()
    # a directory that is neither a table nor a container
    (tmp_path / 'plain').mkdir()
    assert 'not a table' in h5bridge('unpack', tmp_path / 'plain', tmp_path / 'none', code=support.DAMAGED).stderr


@pytest.mark.parametrize('block', [128, 512, None])
def test_multifile1_is_read_by_an_old_casacore(tmp_path, block):
    rows = 50
    desc = [makescacoldesc('K', 0), makescacoldesc('S', ''), makearrcoldesc('D', 1.0, shape=[5, 7]),
            makearrcoldesc('TILED', 1.0, shape=[8, 9], datamanagertype='TiledColumnStMan', datamanagergroup='T')]
    values = {'K': np.arange(rows, dtype=np.int32), 'D': np.arange(rows * 35.0).reshape(rows, 5, 7),
              'TILED': np.arange(rows * 72.0).reshape(rows, 8, 9) / 7}
    with table(str(tmp_path / 'm.ms'), maketabdesc(desc), nrow=rows, ack=False) as made:
        for name, cells in values.items():
            made.putcol(name, cells)
        made.putcol('S', ['row %d' % row for row in range(rows)])
    size = [] if block is None else ['--block-size', block]
    packed = tmp_path / 'packed.ms'
    h5bridge('pack', tmp_path / 'm.ms', packed, '--format', 'multifile1', *size)
    assert (packed / 'table.mf_hdrext').exists() == (block is not None)
    assert not (packed / 'table.f0').exists()
    listed = run('lsmf', packed / 'table.mf')
    assert 'blocksize = %s' % (block or '') in listed and re.search(r'table\.f0\s+size=', listed)
    for row in (0, 17, 49):
        query = 'select K, sum(D), sum(TILED) from %s where rowid() = %d' % (packed, row)
        found = run('taql', '-noph', '-nopr', '-nopc', query).split()
        wanted = [row, values['D'][row].sum(), values['TILED'][row].sum()]
        assert np.allclose([float(number) for number in found[-3:]], wanted, rtol=1e-5), (found, wanted)
    text = run('taql', '-noph', '-nopr', '-nopc', 'select S from %s where K = 31' % packed)
    assert 'row 31' in text
    assert '50 rows, 4 columns' in run('showtableinfo', 'in=%s' % packed)
    # and by this program and by casacore today
    h5bridge('verify', '--bytes', tmp_path / 'm.ms', packed)
    with table(str(packed), ack=False) as read:
        assert all(np.array_equal(read.getcol(name), cells) for name, cells in values.items())
    h5bridge('unpack', packed, tmp_path / 'back.ms')
    h5bridge('verify', '--bytes', tmp_path / 'm.ms', tmp_path / 'back.ms')


def test_multifile1_is_for_tables_without_checksums(tmp_path):
    for option in (['--single-file'], ['--crc'], ['--compress', 'gzip']):
        h5bridge('pack', TABLES[0], tmp_path / 'no.ms', '--format', 'multifile1', *option, code=support.USAGE)
        assert not (tmp_path / 'no.ms').exists()
