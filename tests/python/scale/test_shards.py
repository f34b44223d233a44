"""`h5bridge shard`: one file by many processes (docs/reference/shards.md).

H5BRIDGE_LONG=1: workers and commits killed at 50 random moments; H5BRIDGE_SEED sets the moments."""
import fcntl
import filecmp
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time

import blake3
import h5py
import netCDF4
import numpy as np
import pytest
import xarray

import sharing
import support
import writing
from sharding import claim, commit, file_of, flip, lines, plan, records, run_killed, status, verify, work
from sharing import Tiles

ROWS = 3333
# What is written to addresses: tails of every kind, several hypercubes
BLOCKS = [
    Tiles('DATA', 'c8', (64, 4), [4, 64, 16]),
    Tiles('CHAN_TAIL', 'c8', (50, 4), [4, 20, 50]),
    Tiles('ODD', 'f8', (64, 4), [3, 24, 77]),
    Tiles('LONG', 'f8', (64, 4), [4, 64, 5000]),
    Tiles('CUBES', 'c8', (128, 4), [4, 128, 8], shapes=((150, 4),)),
    Tiles('UVW', 'f8', (3,), [3, 1000], kind='TiledColumnStMan'),
]
# What goes to files of chunks: bits, several hypercubes of them, whole rows of a manager without tiles
PACKED = [
    Tiles('FLAG', '?', (64, 4), [4, 64, 64]),
    Tiles('FLAG_CUBES', '?', (128, 4), [4, 128, 8], shapes=((150, 4),)),
    Tiles('COUNTS', 'i4', (8, 4), None, kind='StandardStMan'),
]
def block_items(target):
    """[(item, dataset, offset in the file)] of the items that are written to addresses."""
    found = lines(target)
    for item in found['item']:
        dataset = found['dataset'][item['dataset']]
        if dataset['address'] is not None:
            chunk = int(np.prod(dataset['chunk'])) * dataset['element_bytes']
            yield item, dataset, dataset['address'] + item['first'] * chunk


def packed_items(target):
    found = lines(target)
    return [item for item in found['item'] if found['dataset'][item['dataset']]['address'] is None]


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    """(a table of which nothing large is compressed, the file that to-hdf5 makes of it; a table of everything)."""
    folder = tmp_path_factory.mktemp('sources')
    plain = sharing.make(folder / 'plain.tab', BLOCKS, rows=ROWS)
    mixed = make_mixed(folder / 'mixed.tab')
    support.h5bridge('to-hdf5', plain, folder / 'plain.h5', '--compress', 'shared')
    return plain, folder / 'plain.h5', mixed


def make_mixed(path):
    columns = BLOCKS + PACKED
    for column in columns:
        column.tile = column.tile or [8, 4, 16]
    return sharing.make(path, columns, rows=ROWS)


@pytest.fixture
def target(sources, tmp_path):
    """A plan of the table of which nothing large is compressed."""
    plan(sources[0], tmp_path / 'my.h5')
    return tmp_path / 'my.h5'


@pytest.fixture
def mixed_target(sources, tmp_path):
    plan(sources[2], tmp_path / 'my.h5')
    return tmp_path / 'my.h5'


def check_published(target, source):
    """The file is whole, and nothing is left of the plan but the ranges."""
    support.h5bridge('verify', source, target)
    assert sorted(path.name for path in target.parent.iterdir()) == ['my.h5', 'my.h5.shards.ndjson']


def test_same_bytes(sources, target):
    """Where nothing is compressed the file is that of to-hdf5."""
    source, expected, _ = sources
    assert not packed_items(target) and len(lines(target)['item']) > 30
    assert not target.exists()
    work(target)
    done = commit(target)
    assert done['inserted_bytes'] == 0 and done['rows'] == ROWS
    assert filecmp.cmp(target, expected, shallow=False)
    check_published(target, source)


def test_readers(sources, mixed_target):
    """Values of every column in h5py, xarray, netCDF4 and h5dump."""
    source, target = sources[2], mixed_target
    packed = {lines(target)['dataset'][item['dataset']]['path'] for item in packed_items(target)}
    assert {'/MAIN/FLAG', '/MAIN/FLAG_CUBES/cube0', '/MAIN/FLAG_CUBES/cube1', '/MAIN/COUNTS'} <= packed
    work(target)
    assert commit(target)['inserted_bytes'] > 0
    check_published(target, source)
    columns = BLOCKS + PACKED
    with h5py.File(target) as opened:
        for column in columns:
            sharing.same(sharing.cells_in(opened['MAIN'][column.name]), sharing.values_of(source, column))
        assert opened['MAIN/FLAG'].compression == 'gzip'
        for name in ('DATA', 'CHAN_TAIL', 'ODD'):
            sharing.check_block(opened['MAIN'][name])
    with netCDF4.Dataset(target) as opened, xarray.open_datatree(target, engine='h5netcdf', decode_times=False) as tree:
        for column in columns:
            if column.shapes:
                continue
            expected = sharing.values_of(source, column)
            np.testing.assert_array_equal(tree['MAIN'][column.name].values, expected)
            if not column.dtype.startswith('c'):
                np.testing.assert_array_equal(opened['MAIN'][column.name][...].astype(expected.dtype), expected)
    out = str(target) + '.dump'
    subprocess.run(['h5dump', '-d', '/MAIN/ODD', '-b', 'FILE', '-o', out, target], capture_output=True, check=True)
    odd = next(column for column in BLOCKS if column.name == 'ODD')
    np.testing.assert_array_equal(np.fromfile(out, 'f8').reshape(-1, *odd.shape), sharing.values_of(source, odd))
    support.h5bridge('to-ms', target, str(target) + '.tab')
    support.h5bridge('verify', source, str(target) + '.tab')


def test_same_as_to_hdf5_where_compressed(sources, mixed_target):
    """The elements, chunks and stored bytes of every dataset are those of to-hdf5; only addresses differ."""
    work(mixed_target)
    commit(mixed_target)
    expected = mixed_target.parent / 'expected.h5'
    support.h5bridge('to-hdf5', sources[2], expected, '--compress', 'shared')
    seen = []

    def compare(name, one):
        if isinstance(one, h5py.Dataset) and one.chunks and one.dtype.kind != 'O':
            other = made[name]
            assert (one.shape, one.chunks, one.dtype, one.id.get_num_chunks()) == (
                other.shape, other.chunks, other.dtype, other.id.get_num_chunks()), name
            for number in range(one.id.get_num_chunks()):
                offset = one.id.get_chunk_info(number).chunk_offset
                assert one.id.read_direct_chunk(offset) == other.id.read_direct_chunk(offset), (name, offset)
            seen.append(name)
    with h5py.File(expected) as opened, h5py.File(mixed_target) as made:
        opened.visititems(compare)
    assert 'MAIN/FLAG' in seen and 'MAIN/DATA' in seen


def test_two_workers(sources, target):
    """Two processes share the items by --shard; two more find nothing to do."""
    processes = [subprocess.Popen([support.H5BRIDGE, 'shard', 'work', '-q', target, '--shard', '%d/2' % k, '--threads', '1'])
                 for k in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    found = records(target)
    assert sorted(record['id'] for record in found) == sorted(item['id'] for item in lines(target)['item'])
    assert all(record['state'] == 'done' and record['attempt'] == 1 for record in found)
    assert work(target)['items'] == 0
    commit(target)
    assert filecmp.cmp(target, sources[1], shallow=False)


def test_items_of_another_worker(sources, target):
    """An item that another process has claimed is left to it; who names it gets it in any case."""
    first, second = (item['id'] for item in lines(target)['item'][3:5])
    with open(str(target) + '.shards/claims', 'w+b') as file:
        claim(file, first)
        claim(file, second)
        done = work(target)
        assert done['left'] == 2 and {first, second}.isdisjoint(result['id'] for result in done['results'])
        assert work(target)['items'] == 0
        assert work(target, '--ids', first)['items'] == 1
        claim(file, second, fcntl.F_UNLCK)
        assert work(target)['items'] == 1
    commit(target)
    assert filecmp.cmp(target, sources[1], shallow=False)


def test_workers_claim_items(sources, tmp_path):
    """No item is done twice by workers that run at the same time, without options, and each holds a lock while it works."""
    target = tmp_path / 'my.h5'
    plan(sources[2], target)
    processes = [subprocess.Popen([support.H5BRIDGE, 'shard', 'work', '-q', target]) for _ in range(3)]
    seen = 0
    with open(str(target) + '.shards/claims', 'a+b') as file:
        while any(process.poll() is None for process in processes):
            seen += claim(file, command=fcntl.F_OFD_GETLK) == fcntl.F_WRLCK
    assert [process.returncode for process in processes] == [0, 0, 0] and seen
    found = records(target)
    assert sorted(record['id'] for record in found) == sorted(item['id'] for item in lines(target)['item'])
    commit(target)
    check_published(target, sources[2])


def test_without_claims(sources, target):
    """Where the file of claims cannot be used, items are done all the same."""
    os.mkdir(str(target) + '.shards/claims')
    work(target)
    commit(target)
    assert filecmp.cmp(target, sources[1], shallow=False)


@support.needs_compiler
def test_a_disk_that_fails(sources, target):
    """The system says once that bytes were lost: none of the items that were written until then are done, and the worker ends."""
    failing = support.on_failing_disk('shard', 'work', target, '--threads', '2')
    assert failing.returncode == support.FAILED and 'my.h5' in failing.stderr, failing.stderr
    # those that were written while the disk was busy, and no others
    found = records(target)
    assert 2 < len(found) < 10 and {record['state'] for record in found} == {'retry'}
    work(target)
    commit(target)
    assert filecmp.cmp(target, sources[1], shallow=False)


def test_items_twice(sources, mixed_target):
    """Two workers do all items at the same time, and some are done a third time: nothing changes."""
    target = mixed_target
    ids = [item['id'] for item in lines(target)['item']]
    ledger = str(target) + '.shards/ledger'
    commands = []
    for n in range(2):
        # each has a ledger of its own, so that neither sees what the other has done
        shutil.copytree(str(target) + '.shards', str(target) + '%d.shards' % n, ignore=shutil.ignore_patterns('*.h5', 'chunks'))
        os.symlink(file_of(target), str(target) + '%d.shards/my.h5%d' % (n, n))
        os.symlink(str(target) + '.shards/chunks', str(target) + '%d.shards/chunks' % n)
        commands.append(subprocess.Popen([support.H5BRIDGE, 'shard', 'work', '-q', str(target) + str(n)]))
    assert [command.wait(timeout=120) for command in commands] == [0, 0]
    found = [records(str(target) + str(n)) for n in range(2)]
    digests = [{record['id']: record['digest'] for record in of_one} for of_one in found]
    assert digests[0] == digests[1] and set(digests[0]) == set(ids)
    for n in range(2):
        for name in os.listdir(str(target) + '%d.shards/ledger' % n):
            shutil.copy(str(target) + '%d.shards/ledger/' % n + name, ledger)
        shutil.rmtree(str(target) + '%d.shards' % n)
    assert work(target)['items'] == 0
    commit(target, '--check')
    check_published(target, sources[2])


def test_missing(sources, mixed_target):
    target = mixed_target
    last = lines(target)['item'][-1]['id']
    assert 'are not done' in commit(target, code=support.USAGE)
    some = [item['id'] for item in lines(target)['item'] if item['id'] != last]
    work(target, '--ids', ','.join(some))
    counts = status(target)['counts']
    assert counts == {'all': len(some) + 1, 'done': len(some), 'failed': 0, 'waiting': 1}
    said = commit(target, code=support.USAGE)
    assert '1 of %d items are not done' % (len(some) + 1) in said and last in said and 'shard work' in said
    assert not target.exists()
    assert work(target)['items'] == 1
    commit(target)
    check_published(target, sources[2])


def test_a_lost_range(sources, target):
    """A range that the file system never got: commit sees it without reading everything."""
    source, expected, _ = sources
    item, dataset, offset = next((found for found in block_items(target) if found[0]['bytes'] >= 200000))
    work(target)
    with open(file_of(target), 'r+b') as file:
        subprocess.run(['fallocate', '-p', '-o', str(offset), '-l', str(item['bytes']), file_of(target)], check=True)
    said = commit(target, code=support.DAMAGED)
    assert item['id'] in said and dataset['path'].lstrip('/') in said and 'shard verify' in said
    assert not target.exists()
    assert [found['id'] for found in verify(target, code=support.DIFFERENT)['differences']] == [item['id']]
    assert item['id'] in commit(target, code=support.USAGE)
    assert work(target)['items'] == 1
    commit(target)
    assert filecmp.cmp(target, expected, shallow=False)
    support.h5bridge('verify', source, target)


def test_a_damaged_range(sources, target):
    """One flipped bit: --check refuses, verify marks the item, work does it again."""
    item, _, offset = list(block_items(target))[7]
    work(target)
    flip(file_of(target), offset + 1234)
    said = commit(target, '--check', code=support.DAMAGED)
    assert item['id'] in said and not target.exists()
    found = verify(target, code=support.DIFFERENT)
    assert [one['id'] for one in found['differences']] == [item['id']]
    assert [one['id'] for one in status(target)['items'] if one['state'] == 'failed'] == [item['id']]
    assert work(target)['items'] == 1
    assert commit(target, '--check')['checked_bytes'] > 0
    assert filecmp.cmp(target, sources[1], shallow=False)


@pytest.mark.parametrize('how', ['flipped', 'shorter', 'longer', 'missing', 'a huge chunk'])
def test_a_damaged_file_of_chunks(sources, mixed_target, how):
    """Files of chunks are always checked, before anything is inserted."""
    target = mixed_target
    work(target)
    item = packed_items(target)[1]
    path = '%s.shards/chunks/%s.chunks' % (target, item['id'])
    size = os.path.getsize(path)
    if how == 'flipped':
        flip(path, size // 2)
    elif how == 'a huge chunk':
        flip(path, 6)
    elif how == 'missing':
        os.remove(path)
    else:
        with open(path, 'r+b') as file:
            file.truncate(size - 1 if how == 'shorter' else size + 1)
    before = hashlib.sha256(open(file_of(target), 'rb').read()).digest()
    said = commit(target, code=support.DAMAGED)
    assert item['id'] in said and not target.exists()
    assert hashlib.sha256(open(file_of(target), 'rb').read()).digest() == before
    verify(target, code=support.DIFFERENT)
    assert work(target)['items'] == 1
    commit(target)
    check_published(target, sources[2])


def test_verify_after_commit(sources, mixed_target):
    """The ranges stay beside the file: each process checks its share, also against the source."""
    target = mixed_target
    work(target)
    commit(target)
    parts = [verify(target, '--source', '--shard', '%d/3' % k) for k in range(3)]
    assert all(part['equal'] and part['skipped'] == 0 for part in parts)
    found = lines(target)
    assert sum(part['items'] for part in parts) == len(found['item'])
    # the recorded BLAKE3 is that of the bytes in the file
    item, _, offset = list(block_items(target))[3]
    with open(target, 'rb') as file:
        file.seek(offset)
        data = file.read(item['result']['file_bytes'])
    assert blake3.blake3(data).hexdigest() == item['result']['blake3']
    # that of a compressed item is of lengths and chunks
    packed = packed_items(target)[0]
    dataset = found['dataset'][packed['dataset']]
    hasher = blake3.blake3()
    with h5py.File(target) as opened:
        ids = opened[dataset['path']].id
        counts = [-(-extent // chunk) for extent, chunk in zip(dataset['shape'], dataset['chunk'])]
        for number in range(packed['first'], packed['last']):
            index = np.unravel_index(number, counts)
            _, stored = ids.read_direct_chunk(tuple(int(i * chunk) for i, chunk in zip(index, dataset['chunk'])))
            hasher.update(len(stored).to_bytes(8, 'little') + stored)
    assert hasher.hexdigest() == packed['result']['blake3']
    # an older program recorded SHA-256
    document = '%s.shards.ndjson' % target
    with open(document) as file:
        newer = file.read()
    recorded = '"blake3":"%s"' % item['result']['blake3']
    assert newer.count(recorded) == 1
    with open(document, 'w') as file:
        file.write(newer.replace(recorded, '"sha256":"%s"' % support.sha256(data)))
    assert verify(target, '--source')['equal']
    flip(target, offset)
    different = verify(target, code=support.DIFFERENT)['differences']
    assert [one['id'] for one in different] == [item['id']]
    assert 'published' in support.h5bridge('shard', 'commit', target, code=support.EXISTS).stderr
    assert status(target)['published']


def test_the_source_changed(sources, tmp_path):
    source = shutil.copytree(sources[0], tmp_path / 'my.tab')
    plan(source, tmp_path / 'my.h5')
    ids = [item['id'] for item in lines(tmp_path / 'my.h5')['item']]
    work(tmp_path / 'my.h5', '--ids', ids[0])
    tiles = max(source.glob('*_TSM*'), key=os.path.getsize)
    flip(tiles, 5000)
    for words in (['work', tmp_path / 'my.h5'], ['verify', tmp_path / 'my.h5', '--source']):
        said = support.h5bridge('shard', *words, code=support.DAMAGED).stderr
        assert tiles.name in said and 'changed since the plan' in said
    assert len(records(tmp_path / 'my.h5')) == 1
    assert 'changed since the plan' in commit(tmp_path / 'my.h5', code=support.DAMAGED)


def test_a_source_that_changes_during_work(sources, tmp_path):
    """Items that a worker has done before it sees the change are no use: commit refuses as well."""
    source = shutil.copytree(sources[0], tmp_path / 'my.tab')
    plan(source, tmp_path / 'my.h5')
    work(tmp_path / 'my.h5')
    os.utime(source / 'table.dat')
    assert 'table.dat' in commit(tmp_path / 'my.h5', code=support.DAMAGED)


def test_locks_do_not_count(sources, tmp_path):
    """casacore writes to table.lock when it only reads."""
    source = shutil.copytree(sources[0], tmp_path / 'my.tab')
    plan(source, tmp_path / 'my.h5')
    os.utime(source / 'table.lock')
    work(tmp_path / 'my.h5')
    commit(tmp_path / 'my.h5')


def test_refused(sources, tmp_path):
    source = sources[0]
    target = tmp_path / 'my.h5'
    assert 'no plan exists' in support.h5bridge('shard', 'work', target, code=support.DAMAGED).stderr
    plan(source, target)
    assert 'a plan for this file exists' in support.h5bridge('shard', 'plan', source, target, code=support.EXISTS).stderr
    assert 'h5bridge to-ms' in support.h5bridge('shard', 'plan', source, tmp_path / 'again.ms', code=support.USAGE).stderr
    assert 'No such file' in support.h5bridge('shard', 'plan', target, tmp_path / 'again.ms', code=support.DAMAGED).stderr
    assert '--shard' in support.h5bridge('shard', 'work', target, '--shard', '2/2', code=support.USAGE).stderr
    assert 'does not exist' in support.h5bridge('shard', 'work', target, '--ids', '0' * 16, code=support.USAGE).stderr
    work(target)
    target.write_bytes(b'of another program')
    assert 'exists already' in commit(target, code=support.EXISTS)
    assert target.read_bytes() == b'of another program'
    commit(target, '--overwrite')
    assert filecmp.cmp(target, sources[1], shallow=False)
    assert support.h5bridge('shard', 'plan', source, target, code=support.EXISTS)
    shutil.rmtree(tmp_path / 'my.h5.shards', ignore_errors=True)


@pytest.mark.parametrize('change', ['{}', 'not JSON', '{"item": {"id": "../../x", "dataset": 0, "first": 0, "last": 1, "bytes": 1}}',
                                    '{"item": {"id": "0123456789abcdef", "dataset": 99, "first": 0, "last": 1, "bytes": 1}}',
                                    '{"item": {"id": "0123456789abcdef", "dataset": 0, "first": 0, "last": 123456789, "bytes": 1}}'])
def test_a_damaged_plan(target, change):
    with open(str(target) + '.shards/plan.ndjson', 'a') as file:
        file.write(change + '\n')
    assert 'plan.ndjson: line ' in support.h5bridge('shard', 'work', target, code=support.DAMAGED).stderr


def test_some_rows_and_columns(sources, tmp_path):
    """A range of rows has no blocks, but works; columns and tables are chosen as for to-hdf5."""
    target = tmp_path / 'my.h5'
    plan(sources[2], target, '--rows', '100..2100', '--exclude', 'CUBES,FLAG_CUBES')
    assert packed_items(target) and not list(block_items(target))
    work(target)
    commit(target)
    support.h5bridge('to-hdf5', sources[2], tmp_path / 'expected.h5', '--rows', '100..2100', '--exclude', 'CUBES,FLAG_CUBES')
    support.h5bridge('verify', tmp_path / 'expected.h5', target)


def test_split(sources, tmp_path):
    """Independent files by ranges of rows, done by `batch`: together they have the rows of the table."""
    source = sources[2]
    support.h5bridge('shard', 'plan', source, tmp_path / 'my.h5', '--split', '8M', '--exclude', 'CUBES,FLAG_CUBES')
    manifest = tmp_path / 'my.h5.parts.ndjson'
    items = [json.loads(line) for line in manifest.read_text().splitlines()]
    assert len(items) > 2 and [os.path.basename(item['target']) for item in items][:2] == ['my-0000.h5', 'my-0001.h5']
    support.h5bridge('batch', 'run', manifest, '--ledger', tmp_path / 'ledger', '--min-free', '1M')
    columns = [column for column in BLOCKS + PACKED if not column.shapes]
    expected = {column.name: sharing.values_of(source, column) for column in columns}
    first = 0
    for item in items:
        with h5py.File(item['target']) as opened:
            rows = len(opened['MAIN/row'])
            assert opened['MAIN/row'][0] == first
            for name, values in expected.items():
                np.testing.assert_array_equal(opened['MAIN'][name][...], values[first:first + rows])
        first += rows
    assert first == ROWS
    assert 'exists already' in support.h5bridge('shard', 'plan', source, tmp_path / 'my.h5', '--split', '8M', code=support.EXISTS).stderr


def test_thin(sources, mixed_target):
    """The way back for files of any size: a table whose tiles are links into the file."""
    work(mixed_target)
    commit(mixed_target)
    support.h5bridge('link', mixed_target, mixed_target.parent / 'thin.tab')
    support.h5bridge('verify', sources[2], mixed_target.parent / 'thin.tab')
    sharing.same(sharing.values_of(mixed_target.parent / 'thin.tab', BLOCKS[0]), sharing.values_of(sources[2], BLOCKS[0]))


def test_stop_after(target):
    done = work(target, '--stop-after', '0s')
    assert done['items'] == 0 and done['left'] == len(lines(target)['item'])


def test_interrupted(sources, target):
    """SIGINT: no half-done item has a record."""
    process = subprocess.Popen([support.H5BRIDGE, 'shard', 'work', '-q', target, '--threads', '1'], stderr=subprocess.DEVNULL)
    time.sleep(0.03)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) in (0, support.INTERRUPTED, -signal.SIGINT)
    assert all(record['state'] == 'done' for record in records(target))
    work(target)
    commit(target)
    assert filecmp.cmp(target, sources[1], shallow=False)


def test_a_commit_that_was_killed_at_its_end(sources, target):
    """The file is published and the plan removed, but its directory is left: the next commit removes it, another one says so."""
    work(target)
    commit(target)
    os.mkdir(str(target) + '.shards')
    done = commit(target)
    assert done['rows'] == ROWS and done['file_bytes'] == os.path.getsize(target)
    check_published(target, sources[0])
    assert 'published already' in commit(target, code=support.EXISTS)


def test_killed_at_random_moments(sources, tmp_path, counts):
    """Plan, two workers and commit, killed again and again, in the end give the file of to-hdf5."""
    seed = int(os.environ.get('H5BRIDGE_SEED', time.time_ns()))
    print('H5BRIDGE_SEED=%d' % seed)
    chosen = random.Random(seed)
    expected = {sources[0]: sources[1]}
    kills = 50 if support.LONG else 5
    round_number = 0
    while counts['kills'] < kills:
        source = sources[0] if round_number % 2 == 0 else sources[2]
        folder = tmp_path / str(round_number)
        folder.mkdir()
        run_killed(source, folder / 'my.h5', chosen, counts)
        if source in expected:
            assert filecmp.cmp(folder / 'my.h5', expected[source], shallow=False)
        check_published(folder / 'my.h5', source)
        verify(folder / 'my.h5', '--source')
        shutil.rmtree(folder)
        round_number += 1


@pytest.mark.parametrize('mib, items', [(80, 3), (4096, 64), (65536, 128)])
def test_size_of_items(tmp_path, mib, items):
    """Without --work-bytes: 64 items, of 32 MiB at least and 512 MiB at most."""
    columns = [writing.column('DATA', 'complex', shape=[4, 32768])]
    managers = [writing.manager('TiledColumnStMan', 'tiles', ['DATA'], DEFAULTTILESHAPE=[4, 32768, 1])]
    with writing.Script(tmp_path / 'my.tab', columns, managers) as script:
        script.add_rows(mib)
    made = json.loads(support.h5bridge('shard', 'plan', '--json', tmp_path / 'my.tab', tmp_path / 'my.h5').stdout)
    assert made['bytes'] == mib << 20 and made['items'] == items


def test_ten_terabytes(tmp_path):
    """A sparse table of 10 TB: the plan takes seconds, and the file opens in milliseconds."""
    rows = 10**13 >> 20
    columns = [writing.column('DATA', 'complex', shape=[4, 32768])]
    managers = [writing.manager('TiledColumnStMan', 'tiles', ['DATA'], DEFAULTTILESHAPE=[4, 32768, 1])]
    try:
        with writing.Script(tmp_path / 'huge.tab', columns, managers) as script:
            script.add_rows(rows)
    except writing.ScriptError as error:
        pytest.skip('no sparse table of 10 TB can be made here: %s' % error)
    assert sum(path.stat().st_blocks for path in (tmp_path / 'huge.tab').iterdir()) * 512 < 1 << 20
    started = time.monotonic()
    made = json.loads(support.h5bridge('shard', 'plan', '--json', tmp_path / 'huge.tab', tmp_path / 'my.h5').stdout)
    planned = time.monotonic() - started
    assert made['bytes'] == rows << 20 and made['items'] == -(-rows // 512)
    assert planned < 60
    first, last = lines(tmp_path / 'my.h5')['item'][0]['id'], lines(tmp_path / 'my.h5')['item'][-1]['id']
    started = time.monotonic()
    with h5py.File(file_of(tmp_path / 'my.h5')) as opened:
        assert opened['MAIN/DATA'].shape == (rows, 32768, 4)
        opened['MAIN/DATA'][-1, 0, 0]
    opened_in = time.monotonic() - started
    assert opened_in < 5
    work(tmp_path / 'my.h5', '--ids', last)
    print('10 TB: planned in %.1f s, opened in %.3f s, on the disk %d bytes' % (
        planned, opened_in, os.stat(file_of(tmp_path / 'my.h5')).st_blocks * 512))
    assert first in commit(tmp_path / 'my.h5', code=support.USAGE)
    # and the way back from the file, whose 10 million chunks are not listed
    started = time.monotonic()
    back = json.loads(support.h5bridge('shard', 'plan', '--json', file_of(tmp_path / 'my.h5'), tmp_path / 'back.tab').stdout)
    planned = time.monotonic() - started
    assert back['bytes'] == rows << 20 and back['items'] == made['items'] and planned < 60
    assert sum(path.stat().st_blocks for path in (tmp_path / 'back.tab.shards').rglob('*')) * 512 < 64 << 20
    assert work(tmp_path / 'back.tab', '--ids', lines(tmp_path / 'back.tab')['item'][-1]['id'])['items'] == 1
    print('10 TB: the way back planned in %.1f s' % planned)
