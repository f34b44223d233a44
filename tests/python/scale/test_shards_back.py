"""`h5bridge shard` from HDF5 to a table (docs/reference/shards.md, "The way back"): what `to-ms` makes, byte for byte.

H5BRIDGE_LONG=1: plans, workers and commits killed at 50 random moments; H5BRIDGE_SEED sets the moments."""
import os
import random
import re
import shutil
import subprocess
import time

import blake3
import casacore.tables as ct
import h5py
import pytest

import sharing
import support
from sharding import commit, file_of, flip, lines, plan, records, run_killed, status, verify, work
from sharing import Tiles

ROWS = 3333
COLUMNS = [
    # joined to chunks; tails of every kind; rows of a tile beyond those of the cube
    Tiles('DATA', 'c8', (64, 4), [4, 64, 16]),
    Tiles('CHAN_TAIL', 'c8', (50, 4), [4, 20, 50]),
    Tiles('ODD', 'f8', (64, 4), [3, 24, 77]),
    Tiles('LONG', 'f8', (64, 4), [4, 64, 5000]),
    Tiles('UVW', 'f8', (3,), [3, 1000], kind='TiledColumnStMan'),
    # several hypercubes, of numbers and of bits
    Tiles('CUBES', 'c8', (128, 4), [4, 128, 8], shapes=((150, 4),)),
    Tiles('FLAG_CUBES', '?', (128, 4), [4, 128, 8], shapes=((150, 4),)),
    # bits: of whole bytes in a tile, and with a tail
    Tiles('FLAG', '?', (64, 4), [4, 64, 64]),
    Tiles('FLAG_TAIL', '?', (33, 3), [3, 11, 37]),
    # two columns in each tile
    Tiles('WEIGHT', 'f4', (64, 4), [4, 64, 48]),
    Tiles('MODEL', 'c8', (64, 4), [4, 64, 48]),
]
SMALL = Tiles('COUNTS', 'i4', (8, 4), [8, 4, 16], kind='StandardStMan')
TOGETHER = ('WEIGHT', 'MODEL')


def files_below(directory):
    """{path below DIRECTORY: bytes} of all files but the locks of casacore."""
    found = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            if name != 'table.lock':
                path = os.path.join(folder, name)
                with open(path, 'rb') as file:
                    found[os.path.relpath(path, directory)] = file.read()
    return found


def same_tables(made, expected):
    """Both tables have the same files with the same bytes."""
    made, expected = files_below(made), files_below(expected)
    assert sorted(made) == sorted(expected)
    for path in expected:
        assert made[path] == expected[path], path


def check_published(target, expected):
    """The table is that of `to-ms`, and nothing is left of the plan but the ranges."""
    same_tables(target, expected)
    assert sorted(path.name for path in target.parent.iterdir()) == [target.name, target.name + '.shards.ndjson']


class Source:
    """An HDF5 file, the table that it was made from, and the one that `to-ms` makes of it."""

    def __init__(self, folder, order, *options):
        self.table = sharing.make(folder / 'my.tab', [*COLUMNS, SMALL], rows=ROWS, order=order, together=TOGETHER)
        self.path = folder / 'my.h5'
        support.h5bridge('to-hdf5', self.table, self.path, *options)
        self.expected = folder / 'expected.tab'
        support.h5bridge('to-ms', self.path, self.expected)


@pytest.fixture(scope='module', params=['shared', 'auto', 'big'])
def source(request, tmp_path_factory):
    """Of blocks, of compressed chunks, and of a table of the other byte order, all of it compressed."""
    options = {'shared': ['--compress', 'shared'], 'auto': [], 'big': ['--compress', 'gzip']}[request.param]
    return Source(tmp_path_factory.mktemp(request.param), 'big' if request.param == 'big' else 'little', *options)


@pytest.fixture(scope='module')
def blocks(tmp_path_factory):
    return Source(tmp_path_factory.mktemp('blocks'), 'little', '--compress', 'shared')


@pytest.fixture
def target(blocks, tmp_path):
    plan(blocks.path, tmp_path / 'my.tab')
    return tmp_path / 'my.tab'


def items_of(target, column):
    """[(item, file of tiles, offset in it)] of the items of COLUMN whose tiles follow each other."""
    found = lines(target)
    for item in found['item']:
        dataset = found['dataset'][item['dataset']]
        tiles = dataset['tiles']
        if dataset['column'] == column and tiles['stride'] == tiles['bytes']:
            yield item, file_of(target) + '/' + tiles['path'], tiles['offset'] + item['first'] * tiles['joined'] * tiles['bytes']


def test_same_bytes(source, tmp_path):
    """Two workers make the table of `to-ms`; python-casacore reads what h5py does."""
    target = tmp_path / 'my.tab'
    made = plan(source.path, target)
    found = lines(target)
    assert {dataset['column'] for dataset in found['dataset']} == {column.name for column in COLUMNS} - {'UVW'}
    assert made['rows'] == ROWS and len(found['item']) > 60 and all(dataset['is_of_tiles'] for dataset in found['dataset'])
    # what workers will write takes no space yet
    sizes = [path.stat() for path in (tmp_path / 'my.tab.shards').rglob('*') if path.is_file()]
    assert sum(size.st_blocks * 512 for size in sizes) * 4 < sum(size.st_size for size in sizes)
    processes = [subprocess.Popen([support.H5BRIDGE, 'shard', 'work', '-q', target]) for _ in range(2)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert not target.exists()
    assert sorted(record['id'] for record in records(target)) == sorted(item['id'] for item in found['item'])
    done = commit(target)
    assert done['rows'] == ROWS and done['items'] == len(found['item']) and done['inserted_bytes'] == 0
    check_published(target, source.expected)
    assert done['file_bytes'] == sum(len(data) for data in files_below(target).values())
    with h5py.File(source.path) as opened:
        for column in [*COLUMNS, SMALL]:
            sharing.same(sharing.values_of(target, column), sharing.cells_in(opened['MAIN'][column.name]))
    support.h5bridge('verify', source.path, target)
    support.h5bridge('verify', source.table, target)


def test_a_measurement_set(tmp_path):
    """Subtables, keywords and small columns are written by the plan; without large columns there are no items."""
    support.h5bridge('to-hdf5', os.path.join(support.TESTDATA, 'demo', 'demo.ms'), tmp_path / 'my.h5')
    support.h5bridge('to-ms', tmp_path / 'my.h5', tmp_path / 'expected.ms')
    (tmp_path / 'made').mkdir()
    made = support.h5bridge('shard', 'plan', tmp_path / 'my.h5', str(tmp_path / 'made' / 'my.ms') + '/')
    assert ' 0 items' in made.stderr
    target = tmp_path / 'made' / 'my.ms'
    commit(str(target) + '/')
    check_published(target, tmp_path / 'expected.ms')
    shutil.rmtree(target)
    (tmp_path / 'made' / 'my.ms.shards.ndjson').unlink()
    assert plan(tmp_path / 'my.h5', target, size='4K')['items'] > 3
    work(target)
    commit(target)
    check_published(target, tmp_path / 'expected.ms')
    with ct.table(str(target / 'ANTENNA'), ack=False) as antenna:
        assert antenna.nrows() > 0


def test_chunks_that_are_not_tiles(tmp_path):
    """Chunks of another shape than tiles: workers read rows and make tiles of them."""
    columns = [Tiles('DATA', 'c8', (50, 4), [4, 20, 48]), Tiles('FLAG', '?', (50, 3), [3, 7, 48]), Tiles('UVW', 'f8', (3,), [3, 700])]
    table = sharing.make(tmp_path / 'made.tab', columns, rows=ROWS)
    support.h5bridge('to-hdf5', table, tmp_path / 'tiles.h5')
    chunks = ['MAIN/DATA:CHUNK=100x25x4', 'MAIN/FLAG:CHUNK=77x50x3', 'MAIN/UVW:CHUNK=450x3']
    subprocess.run(['h5repack', *(word for chunk in chunks for word in ('-l', chunk)), tmp_path / 'tiles.h5', tmp_path / 'my.h5'], check=True)
    support.h5bridge('to-ms', tmp_path / 'my.h5', tmp_path / 'expected.tab')
    (tmp_path / 'out').mkdir()
    target = tmp_path / 'out' / 'my.tab'
    plan(tmp_path / 'my.h5', target, size='64K')
    found = lines(target)
    assert {dataset['column'] for dataset in found['dataset']} == {'DATA', 'FLAG', 'UVW'}
    assert not any(dataset['is_of_tiles'] for dataset in found['dataset'])
    work(target)
    commit(target, '--check')
    check_published(target, tmp_path / 'expected.tab')
    for column in columns:
        sharing.same(sharing.values_of(target, column), sharing.values_of(table, column))


def test_items_twice(blocks, target):
    """Items are done again, in another order and at the same time: the same bytes, and the same digests."""
    work(target)
    ids = [item['id'] for item in lines(target)['item']]
    known = {record['id']: record['digest'] for record in records(target)}
    shutil.rmtree(str(target) + '.shards/ledger')
    os.mkdir(str(target) + '.shards/ledger')
    commands = [[support.H5BRIDGE, 'shard', 'work', '-q', target, '--ids', ','.join(some)] for some in (ids[::-1], ids[5:])]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert len(records(target)) > len(ids) and {record['id']: record['digest'] for record in records(target)} == known
    commit(target, '--check')
    check_published(target, blocks.expected)


def test_digests_are_those_of_the_tiles(target):
    """The BLAKE3 of an item is that of its bytes in the file of tiles, also where two columns share tiles."""
    work(target)
    known = {record['id']: record for record in records(target)}
    seen = set()
    found = lines(target)
    for item in found['item']:
        tiles = found['dataset'][item['dataset']]['tiles']
        first, last = item['first'] * tiles['joined'], item['last'] * tiles['joined']
        with open(os.path.join(file_of(target), tiles['path']), 'rb') as file:
            data = b''.join(os.pread(file.fileno(), tiles['bytes'], tiles['offset'] + tile * tiles['stride'])
                            for tile in range(first, last))
        record = known[item['id']]
        assert 'blake3:' + blake3.blake3(data[:record['file_bytes']]).hexdigest() == record['digest']
        seen.add(tiles['stride'] == tiles['bytes'])
    assert seen == {True, False}


def test_missing(blocks, target):
    ids = [item['id'] for item in lines(target)['item']]
    assert 'are not done' in commit(target, code=support.USAGE)
    work(target, '--ids', ','.join(ids[:-1]))
    said = commit(target, code=support.USAGE)
    assert '1 of %d items are not done' % len(ids) in said and ids[-1] in said and ', tiles ' in said
    assert not target.exists() and status(target)['counts']['waiting'] == 1
    assert work(target)['items'] == 1
    commit(target)
    check_published(target, blocks.expected)


def test_a_lost_range(blocks, target):
    """A range that the file system never got: commit sees it without reading everything."""
    item, path, offset = next(found for found in items_of(target, 'DATA') if found[0]['bytes'] >= 200000)
    work(target)
    subprocess.run(['fallocate', '-p', '-o', str(offset), '-l', str(item['bytes']), path], check=True)
    said = commit(target, code=support.DAMAGED)
    assert item['id'] in said and 'MAIN/DATA, tiles' in said and 'shard verify' in said and not target.exists()
    assert [found['id'] for found in verify(target, code=support.DIFFERENT)['differences']] == [item['id']]
    assert item['id'] in commit(target, code=support.USAGE)
    assert work(target)['items'] == 1
    commit(target)
    check_published(target, blocks.expected)


def test_a_damaged_range(blocks, target):
    """One flipped bit: --check refuses, verify marks the item, work does it again."""
    item, path, offset = list(items_of(target, 'CHAN_TAIL'))[2]
    work(target)
    flip(path, offset + 1234)
    assert item['id'] in commit(target, '--check', code=support.DAMAGED) and not target.exists()
    assert [one['id'] for one in verify(target, code=support.DIFFERENT)['differences']] == [item['id']]
    assert work(target)['items'] == 1
    assert commit(target, '--check')['checked_bytes'] > 0
    check_published(target, blocks.expected)


@pytest.mark.parametrize('how', ['a file of the plan', 'a short file of tiles', 'a missing file of tiles', 'the source'])
def test_changes(tmp_path, blocks, target, how):
    """What the plan wrote, the lengths of files of tiles and the source have to be as they were."""
    work(target)
    tiles = os.path.join(file_of(target), lines(target)['dataset'][0]['tiles']['path'])
    if how == 'a file of the plan':
        flip(os.path.join(file_of(target), 'table.dat'), 100)
        assert 'table.dat' in (said := commit(target, code=support.DAMAGED)) and 'changed since the plan' in said
    elif how == 'a short file of tiles':
        os.truncate(tiles, os.path.getsize(tiles) - 1)
        assert os.path.basename(tiles) in commit(target, code=support.DAMAGED)
    elif how == 'a missing file of tiles':
        os.remove(tiles)
        assert os.path.basename(tiles) in commit(target, code=support.DAMAGED)
    else:
        stat = os.stat(blocks.path)
        os.utime(blocks.path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1000))
        said = commit(target, code=support.DAMAGED) + work(target, code=support.DAMAGED)
        os.utime(blocks.path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert said.count('changed since the plan') == 2
    assert not target.exists()


def test_verify_after_commit(blocks, target):
    """Each process checks its share, also against the HDF5 file; `h5bridge verify` compares the values."""
    work(target)
    path, offset = next((path, offset) for _, path, offset in items_of(target, 'ODD'))
    commit(target)
    parts = [verify(target, '--source', '--shard', '%d/3' % k) for k in range(3)]
    assert all(part['equal'] and part['skipped'] == 0 for part in parts)
    assert sum(part['items'] for part in parts) == len(lines(target)['item'])
    flip(target / os.path.basename(path), offset)
    assert len(verify(target, code=support.DIFFERENT)['differences']) == 1
    assert 'published already' in commit(target, code=support.EXISTS)


def test_overwrite(blocks, target):
    """A table that appears after the plan stays, unless --overwrite is given; a commit that was killed after that goes on."""
    work(target)
    shutil.copytree(blocks.table, target)
    assert 'exists already' in commit(target, code=support.EXISTS)
    same_tables(target, blocks.table)
    # as a commit that is killed leaves it: both tables are exchanged, and the plan is not removed yet
    aside = str(target) + '.aside'
    shutil.copytree(str(target) + '.shards', aside, copy_function=shutil.copy2)
    commit(target, '--overwrite')
    check_ranges = open(str(target) + '.shards.ndjson').read()
    os.remove(str(target) + '.shards.ndjson')
    os.rename(aside, str(target) + '.shards')
    shutil.rmtree(file_of(target))
    shutil.copytree(blocks.table, file_of(target))
    with open(str(target) + '.shards/ranges.ndjson', 'w') as file:
        file.write(check_ranges)
    assert commit(target, '--overwrite')['rows'] == ROWS
    check_published(target, blocks.expected)


def test_refused(blocks, tmp_path):
    """Parts of a file and other targets."""
    for words in (['--rows', '1..5'], ['--columns', 'DATA'], ['--split', '8M']):
        said = support.h5bridge('shard', 'plan', blocks.path, tmp_path / 'my.tab', *words, code=support.USAGE).stderr
        assert '--columns' in said
    said = support.h5bridge('shard', 'plan', blocks.table, tmp_path / 'my.ms', code=support.USAGE).stderr
    assert 'to-ms' in said
    plan(blocks.path, tmp_path / 'my.tab')
    assert 'plan for this' in support.h5bridge('shard', 'plan', blocks.path, tmp_path / 'my.tab', code=support.EXISTS).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ['my.tab.shards']


@pytest.mark.parametrize('change', [(r'"tiles":{"path":"[^"]*"', '"tiles":{"path":"../../x"'), ('"joined":', '"joined":0,"x":'),
                                    ('"order":"little"', '"order":"middle"'), ('"stride":', '"stride":1,"x":')])
def test_a_damaged_plan(target, change):
    """No path that leads out of the table, and no places that overlap."""
    path = str(target) + '.shards/plan.ndjson'
    with open(path) as file:
        text = file.read()
    changed = re.sub(*change, text, count=1)
    assert changed != text
    with open(path, 'w') as file:
        file.write(changed)
    assert 'plan.ndjson: line ' in support.h5bridge('shard', 'work', target, code=support.DAMAGED).stderr


@support.needs_compiler
def test_a_disk_that_fails(blocks, target):
    """The item whose bytes were lost is not done, and the worker ends."""
    failing = support.on_failing_disk('shard', 'work', target, '--threads', '2', microseconds=50_000)
    assert failing.returncode == support.FAILED and '_TSM' in failing.stderr, failing.stderr
    found = records(target)
    assert [record['state'] for record in found].count('retry') == 1 and len(found) < len(lines(target)['item'])
    work(target)
    commit(target)
    check_published(target, blocks.expected)


def test_killed_at_random_moments(blocks, tmp_path, counts):
    """Plan, two workers and commit, killed again and again, in the end give the table of `to-ms`."""
    seed = int(os.environ.get('H5BRIDGE_SEED', time.time_ns()))
    print('H5BRIDGE_SEED=%d' % seed)
    chosen = random.Random(seed)
    kills = 50 if support.LONG else 5
    round_number = 0
    while counts['kills'] < kills:
        folder = tmp_path / str(round_number)
        folder.mkdir()
        run_killed(blocks.path, folder / 'my.tab', chosen, counts)
        check_published(folder / 'my.tab', blocks.expected)
        verify(folder / 'my.tab', '--source')
        shutil.rmtree(folder)
        round_number += 1
