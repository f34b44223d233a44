"""Files that share their bytes with the source (docs/howto/share.md): on XFS and btrfs in images, if these may be mounted, and what
remains of it on the file system of the tests.

H5BRIDGE_LONG=1: more moments at which conversions are killed."""
import filecmp
import json
import os
import random
import shutil
import signal
import subprocess
import time

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import sharing
import support
from sharing import MIB, Tiles

# Hypercubes of at least 4 MiB, with tails of every kind, and what cannot be shared
SHARED = [
    Tiles('DATA', 'c8', (64, 4), [4, 64, 16]),
    Tiles('CHAN_TAIL', 'c8', (50, 4), [4, 20, 50]),
    Tiles('ODD', 'f8', (64, 4), [3, 24, 77]),
    Tiles('LONG', 'f8', (64, 4), [4, 64, 5000]),
    Tiles('CUBES', 'c8', (128, 4), [4, 128, 8], shapes=((150, 4),)),
    Tiles('CUBES_SPLIT', 'c8', (128, 4), [2, 50, 32], shapes=((160, 4),)),
]
COPIED = {'FLAG': 'tiles of bits', 'A': 'two or more columns in one file', 'B': 'two or more columns in one file',
          'TIME': 'not in tiles', 'UVW': 'less than 4 MiB', 'LONG_SPLIT': 'the tiles are not chunks of the dataset'}
COLUMNS = SHARED + [Tiles('FLAG', '?', (64, 4), [4, 64, 64]), Tiles('A', 'f4', (64, 4), [4, 64, 64]),
                    Tiles('B', 'f8', (64, 4), [4, 64, 64]), Tiles('UVW', 'f8', (3,), [3, 1000]),
                    Tiles('LONG_SPLIT', 'c16', (32, 4), [4, 11, 5000])]
ROWS = 3333


def make(folder, order='little'):
    return sharing.make(folder / 'my.tab', COLUMNS, rows=ROWS, order=order, together=('A', 'B'))


def to_hdf5(source, target, *words, code=support.DONE):
    """Converts; returns `sharing` of the document."""
    process = support.h5bridge('to-hdf5', '--json', source, target, '--compress', 'shared', *words, code=code)
    return json.loads(process.stdout)['sharing'] if code == support.DONE else process.stderr


def reasons(sharing_of_file):
    return {entry['column']: entry['reason'] for entry in sharing_of_file['not_shared']}


def shared(*words):
    """Runs a verb; returns the bytes that its target shares."""
    return json.loads(support.h5bridge(*words, '--json').stdout).get('shared_bytes', 0)


def check_values(file, table, columns=COLUMNS):
    with h5py.File(file) as opened:
        for column in columns:
            sharing.same(sharing.cells_in(opened['MAIN'][column.name]), sharing.values_of(table, column))


# ---- any file system ------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def plain(tmp_path_factory):
    return make(tmp_path_factory.mktemp('plain'))


def test_same_bytes_and_reasons(plain, tmp_path):
    found = to_hdf5(plain, tmp_path / 'auto.h5')
    never = to_hdf5(plain, tmp_path / 'never.h5', '--reflink', 'never')
    assert filecmp.cmp(tmp_path / 'auto.h5', tmp_path / 'never.h5', shallow=False)
    size = os.path.getsize(tmp_path / 'never.h5')
    assert never['shared_bytes'] == 0 and never['copied_bytes'] == size
    assert found['shared_bytes'] + found['copied_bytes'] == size
    expected = {'MAIN/' + name: reason for name, reason in COPIED.items()}
    assert reasons(never) == {**expected, **{'MAIN/' + column.name: 'copies are wanted' for column in SHARED}}
    if found['shared_bytes'] == 0:
        plan = support.h5bridge('to-hdf5', '--json', '--dry-run', plain, tmp_path / 'plan.h5', '--compress', 'shared')
        assert reasons(json.loads(plan.stdout)['sharing']) == reasons(found)
        assert set(reasons(found).values()) - set(expected.values()) <= {'the file system does not share bytes between files'}
        error = to_hdf5(plain, tmp_path / 'always.h5', '--reflink', 'always', code=support.UNSUPPORTED)
        assert 'MAIN/DATA cannot share its bytes with the source: the file system does not share' in error
    assert sorted(os.listdir(tmp_path)) == ['auto.h5', 'never.h5']


def test_digests_and_restorable_files(plain, tmp_path):
    """What is shared is digested if that is wanted, and the originals come back."""
    to_hdf5(plain, tmp_path / 'my.h5', '--restorable')
    support.h5bridge('verify', tmp_path / 'my.h5')
    support.h5bridge('verify', plain, tmp_path / 'my.h5')
    support.h5bridge('to-ms', '--exact', tmp_path / 'my.h5', tmp_path / 'my.tab')
    assert support.tree(tmp_path / 'my.tab') == support.tree(plain)


def test_options_that_do_not_fit(plain, tmp_path):
    process = support.h5bridge('to-hdf5', plain, tmp_path / 'a.h5', '--reflink', 'always', code=support.USAGE)
    assert '--compress shared' in process.stderr
    support.h5bridge('to-hdf5', plain, tmp_path / 'a.h5', '--reflink', 'sometimes', code=support.USAGE)
    assert not (tmp_path / 'a.h5').exists()


def test_a_short_source_is_an_error(plain, tmp_path):
    """A file of tiles that ends too early is never filled up with zeros."""
    table = tmp_path / 'my.tab'
    shutil.copytree(plain, table)
    largest = max(table.glob('table.f*_TSM*'), key=os.path.getsize)
    os.truncate(largest, os.path.getsize(largest) - 5000)
    error = to_hdf5(table, tmp_path / 'my.h5', code=support.DAMAGED)
    assert largest.name in error
    assert os.listdir(tmp_path) == ['my.tab']


# ---- XFS and btrfs --------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module', params=['xfs', 'btrfs'])
def disk(request, tmp_path_factory):
    """A file system that shares, with a table on it."""
    disk = sharing.FileSystem(tmp_path_factory.mktemp('images'), request.param, 768 * MIB)
    if disk.why:
        pytest.skip(disk.why)
    try:
        disk.table = make(disk.path)
        yield disk
    finally:
        disk.unmount()


@pytest.fixture()
def folder(disk):
    """An empty folder there."""
    folder = disk.path / 'work'
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_file_shares(disk, folder, plain):
    used = disk.used()
    found = to_hdf5(disk.table, folder / 'my.h5')
    size = os.path.getsize(folder / 'my.h5')
    own = disk.used() - used
    assert reasons(found) == {'MAIN/' + name: reason for name, reason in COPIED.items()}
    with h5py.File(folder / 'my.h5') as opened:
        total = 0
        for column in SHARED:
            for dataset in sharing.blocks(opened['MAIN'][column.name]):
                base, length = sharing.check_block(dataset)
                chunk = int(np.prod(dataset.chunks)) * dataset.dtype.itemsize
                # the last chunk may have more rows than the tiles
                assert sharing.is_shared(folder / 'my.h5', base, length - chunk), dataset.name
                total += length
    assert 0.9 * total < found['shared_bytes'] <= total
    assert found['shared_bytes'] + found['copied_bytes'] == size
    extents = sum(length for _, length in sharing.shared_extents(folder / 'my.h5'))
    assert extents == found['shared_bytes']
    assert own <= found['copied_bytes'] + 4 * MIB, own
    check_values(folder / 'my.h5', disk.table)
    # elsewhere the same bytes are copied
    source = folder / 'elsewhere.h5'
    to_hdf5(disk.table, folder / 'never.h5', '--reflink', 'never')
    assert not sharing.shared_extents(folder / 'never.h5')
    assert filecmp.cmp(folder / 'my.h5', folder / 'never.h5', shallow=False)
    always = to_hdf5(plain, source, '--exclude', 'A,B,LONG_SPLIT', '--reflink', 'always', code=support.UNSUPPORTED)
    assert 'MAIN/DATA cannot share its bytes with the source: the source is in another file system' in always
    crossed = to_hdf5(plain, source)
    assert crossed['shared_bytes'] == 0 and reasons(crossed)['MAIN/DATA'] == 'the source is in another file system'
    assert filecmp.cmp(folder / 'my.h5', source, shallow=False)


def test_always(disk, folder):
    error = to_hdf5(disk.table, folder / 'my.h5', '--reflink', 'always', code=support.UNSUPPORTED)
    assert 'MAIN/LONG_SPLIT' in error or 'MAIN/A' in error
    assert os.listdir(folder) == []
    found = to_hdf5(disk.table, folder / 'my.h5', '--reflink', 'always', '--exclude', 'A,B,LONG_SPLIT')
    assert found['shared_bytes'] > 0
    error = to_hdf5(disk.table, folder / 'none.h5', '--reflink', 'always', '--columns', 'FLAG,TIME', code=support.UNSUPPORTED)
    assert 'MAIN/FLAG cannot share its bytes with the source: tiles of bits' in error


def test_dry_run(disk, folder):
    plan = json.loads(support.h5bridge('to-hdf5', '--json', '--dry-run', disk.table, folder / 'a.h5', '--compress', 'shared').stdout)
    assert os.listdir(folder) == []
    found = to_hdf5(disk.table, folder / 'a.h5')
    assert abs(plan['sharing']['shared_bytes'] - found['shared_bytes']) <= 4096 * len(COLUMNS)
    assert reasons(plan['sharing']) == reasons(found)


def test_big_endian(disk, folder):
    """The bytes are not those of HDF5: copied and swapped."""
    table = make(folder, 'big')
    found = to_hdf5(table, folder / 'my.h5')
    assert found['shared_bytes'] == 0
    assert {reasons(found)['MAIN/' + column.name] for column in SHARED} == {'big-endian numbers'}
    check_values(folder / 'my.h5', table)
    # the way back chooses the same order, and copies
    assert shared('to-ms', folder / 'my.h5', folder / 'back.tab') == 0
    for column in SHARED:
        sharing.same(sharing.values_of(folder / 'back.tab', column), sharing.values_of(table, column))


def test_both_sides_are_independent(disk, folder):
    table = folder / 'my.tab'
    shutil.copytree(disk.table, table)
    to_hdf5(table, folder / 'my.h5')
    before = {column.name: sharing.values_of(table, column) for column in SHARED}
    with ct.table(str(table), readonly=False, ack=False) as opened:
        opened.putcol('DATA', before['DATA'] * 2)
    check_values(folder / 'my.h5', disk.table)
    with h5py.File(folder / 'my.h5', 'r+') as opened:
        opened['MAIN/CHAN_TAIL'][...] = 7
    sharing.same(sharing.values_of(table, SHARED[1]), before['CHAN_TAIL'])
    sharing.same(sharing.values_of(table, SHARED[0]), before['DATA'] * 2)
    shutil.rmtree(table)
    with h5py.File(folder / 'my.h5') as opened:
        sharing.same(opened['MAIN/DATA'][...], before['DATA'])
        assert (opened['MAIN/CHAN_TAIL'][...] == 7).all()
        sharing.same(opened['MAIN/ODD'][...], before['ODD'])


def test_way_back(disk, folder):
    """to-ms, to-ms --exact, pack and unpack share as well."""
    total = sum(os.path.getsize(path) for path in disk.table.glob('table.f*_TSM*'))
    first = to_hdf5(disk.table, folder / 'my.h5', '--restorable')['shared_bytes']
    back = shared('to-ms', folder / 'my.h5', folder / 'back.tab')
    assert back >= 0.95 * first
    for column in COLUMNS:
        sharing.same(sharing.values_of(folder / 'back.tab', column), sharing.values_of(disk.table, column))
    # windows of 2 MiB with padding that the datasets do not have are written
    exact = shared('to-ms', '--exact', folder / 'my.h5', folder / 'exact.tab')
    assert exact >= 0.5 * first
    used = disk.used()
    packed = shared('pack', disk.table, folder / 'packed.tab', '--format', 'multifile')
    assert packed >= 0.95 * total
    unpacked = shared('unpack', folder / 'packed.tab', folder / 'unpacked.tab')
    assert unpacked >= 0.95 * total
    assert disk.used() - used < 0.1 * total + 8 * MIB
    for name in ('exact.tab', 'unpacked.tab'):
        assert support.tree(folder / name) == support.tree(disk.table)
    support.h5bridge('verify', '--bytes', disk.table, folder / 'packed.tab')
    # tiles in a container are in the file system's blocks, too
    inside = to_hdf5(folder / 'packed.tab', folder / 'packed.h5')
    assert inside['shared_bytes'] >= 0.95 * first
    check_values(folder / 'packed.h5', disk.table)
    # checksums have to be computed
    assert shared('pack', disk.table, folder / 'crc.tab', '--format', 'multifile', '--crc') < 0.1 * total


def sparse(path, rows):
    """A file made by hand (docs/reference/layout.md) with a block of ROWS rows, of which the first and the last ten are written."""
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_alignment(MIB, MIB)
    with h5py.File(h5py.h5f.create(os.fsencode(path), fapl=access)) as file:
        file.attrs.update({'format': 'ctds-hdf5', 'format_version': '1.0'})
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((256, 256, 4))
        creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((rows, 256, 4))
        h5py.h5d.create(file.create_group('MAIN').id, b'DATA', h5py.h5t.IEEE_F32LE, space, creation)
        for start in (0, rows - 10):
            file['MAIN/DATA'][start:start + 10] = start + np.arange(10 * 1024, dtype='f4').reshape(10, 256, 4)


def test_beyond_4_gib(disk, folder):
    """Five GiB, nearly all of them holes: a file made by hand becomes a table, and that a file."""
    rows = 1_300_000
    sparse(folder / 'hand.h5', rows)
    assert shared('to-ms', folder / 'hand.h5', folder / 'my.tab') > 4.9 * (1 << 30)
    found = to_hdf5(folder / 'my.tab', folder / 'my.h5')
    assert found['shared_bytes'] > 4.9 * (1 << 30)
    with h5py.File(folder / 'my.h5') as opened, ct.table(str(folder / 'my.tab'), ack=False) as table:
        data = opened['MAIN/DATA']
        assert data.id.get_chunk_info(data.id.get_num_chunks() - 1).byte_offset > 4.9 * (1 << 30)
        for start in (0, rows // 2, rows - 10):
            expected = np.zeros((10, 256, 4)) if start == rows // 2 else start + np.arange(10 * 1024, dtype='f4').reshape(10, 256, 4)
            np.testing.assert_array_equal(data[start:start + 10], expected)
            np.testing.assert_array_equal(table.getcol('DATA', start, 10), expected)


def free(folder):
    subprocess.run(['sync', '-f', folder], check=True)
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


def fill(folder, leave):
    """Takes space of the file system until about LEAVE bytes are free."""
    number = 0
    while free(folder) > leave:
        number += 1
        with open(folder / ('filler%d' % number), 'wb') as f:
            try:
                os.posix_fallocate(f.fileno(), 0, min(max(free(folder) - leave, 1), 64 * MIB))
            except OSError:
                # btrfs says so before it is full
                return


def test_a_full_disk_is_enough(disk, folder):
    """What is shared needs no space, and is not asked for."""
    column = Tiles('DATA', 'c8', (64, 4), [4, 64, 64], kind='TiledColumnStMan')
    size = 80 * MIB
    table = sharing.make(folder / 'my.tab', [column], rows=size // 2048)
    fill(folder, 30 * MIB)
    assert free(folder) < size
    support.h5bridge('to-hdf5', table, folder / 'none.h5', '--compress', 'none', code=support.NO_SPACE)
    to_hdf5(table, folder / 'never.h5', '--reflink', 'never', code=support.NO_SPACE)
    assert to_hdf5(table, folder / 'my.h5')['shared_bytes'] > 0.9 * size
    assert shared('to-ms', folder / 'my.h5', folder / 'back.tab') > 0.9 * size
    assert shared('pack', table, folder / 'packed.tab', '--format', 'multifile') > 0.9 * size
    assert shared('unpack', folder / 'packed.tab', folder / 'unpacked.tab') > 0.9 * size
    assert not [name for name in os.listdir(folder) if name.endswith('.partial')]


@pytest.mark.parametrize('verb', ['to-hdf5', 'to-ms', 'pack'])
def test_killed_at_any_moment(disk, folder, verb):
    """Nothing is under the final name, or all of it; the next run removes what was left."""
    rng = random.Random(17)
    source = disk.table
    words = {'to-hdf5': ['--compress', 'shared'], 'to-ms': [], 'pack': ['--format', 'multifile']}[verb]
    if verb == 'to-ms':
        to_hdf5(disk.table, folder / 'my.h5')
        source = folder / 'my.h5'
    target = folder / 'target'
    durations = []
    for _ in range(3):    # the first run may take many times as long as those that follow
        started = time.monotonic()
        subprocess.run([support.H5BRIDGE, verb, source, target, *words, '--overwrite'], check=True, capture_output=True)
        durations.append(time.monotonic() - started)
    duration = min(durations)
    moments = 0
    for _ in range(100 if support.LONG else 10):
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        process = subprocess.Popen([support.H5BRIDGE, verb, source, target, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * duration)
        process.send_signal(rng.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
        process.wait()
        moments += not target.exists()
        if target.exists():
            support.h5bridge('verify', disk.table, target)
        elif process.returncode != -signal.SIGKILL:
            # what an earlier run left when it was killed may still be there, if this one ended before it looked
            own = [name for name in support.partials(target) if name.startswith('target.%d-' % process.pid)]
            assert own == [], process.returncode
    assert moments > 0
    support.h5bridge(verb, source, target, '--overwrite', *words)
    assert support.partials(target) == []
    support.h5bridge('verify', disk.table, target)
