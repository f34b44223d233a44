"""Wrong command lines, and sources that a verb cannot work on: each is refused with the words that say why.

A table of commands for each kind of source. What a verb does with damaged bytes is in the suites of the formats."""
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess

import h5py
import numpy as np
import pytest

import support
from support import DAMAGED, EXISTS, UNSUPPORTED, USAGE

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')


def run(folder, *words, check=True):
    process = subprocess.run([support.H5BRIDGE, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert not check or process.returncode == 0, process.stderr
    return process


def refuse(folder, words, code, says):
    """A command ends with this code and these words, and is no panic."""
    process = run(folder, *words, check=False)
    said = (process.stdout + process.stderr).decode(errors='replace')
    assert says in said, said[-1500:]
    assert process.returncode == code and 'panicked' not in said, (process.returncode, said[-1500:])


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('wrong')
    shutil.copytree(DEMO, folder / 'my.ms')
    run(folder, 'to-hdf5', 'my.ms', 'my.h5', '--compress', 'none')
    run(folder, 'to-hdf5', 'my.ms', 'shared.h5', '--compress', 'shared')
    run(folder, 'to-hdf5', 'my.ms', 'old.h5', '--hdf5', '1.8')
    run(folder, 'link', 'shared.h5', 'thin.ms')
    run(folder, 'pack', 'my.ms', 'packed.ms')
    run(folder, 'pack', 'my.ms', 'archive.h5', '--single-file')
    run(folder, 'pack', 'my.ms', 'my.vt', '--format', 'vt')
    run(folder, 'manifest', 'my.ms', 'my.json')
    with h5py.File(folder / 'numbers.h5', 'w') as file:
        file['data'] = np.arange(1000.)
    run(folder, 'pack', 'numbers.h5/data', 'data.bcolz', '--format', 'bcolz')
    (folder / 'folder').mkdir()
    (folder / 'folder' / 'notes').write_text('notes')

    # a table with a file of the name that a container has
    shutil.copytree(folder / 'my.ms', folder / 'named.ms')
    (folder / 'named.ms' / 'table.mf').write_text('not a container')
    run(folder, 'pack', 'my.ms', 'damaged.h5', '--single-file', '--crc')
    with h5py.File(folder / 'damaged.h5') as file:
        place = file['table.dat/FileData'].id.get_chunk_info(0).byte_offset
    with open(folder / 'damaged.h5', 'r+b') as file:
        file.seek(place + 50)
        file.write(b'damage')
    shutil.copytree(folder / 'thin.ms', folder / 'newer.ms')
    record, = [file for file in (folder / 'newer.ms').iterdir() if file.is_file() and file.read_bytes().startswith(b'{')]
    record.write_text(json.dumps({**json.loads(record.read_text()), 'version': 9}))
    manifest = json.loads((folder / 'my.json').read_text())
    del manifest['h5bridge']
    (folder / 'other.json').write_text(json.dumps(manifest))
    with h5py.File(shutil.copy(folder / 'archive.h5', folder / 'changed.h5'), 'r+') as file:
        file['table.dat'].attrs['blake3'] = '0' * 64
    os.rename(shutil.copytree(folder / 'my.ms', folder / 'bytes.ms'), os.fsencode(folder) + b'/\xff.ms')
    return folder


@pytest.mark.parametrize('words,code,says', [
    (['my.ms', 'o.h5', '--hdf5', '1.8', '--appendable'], USAGE,
     'HDF5 1.8 does not have appending under SWMR: --appendable or --hdf5 1.8'),
    (['my.ms', 'o.h5', '--profile', 'cloud', '--compress', 'shared'], USAGE,
     'an object store does not share bytes: --profile cloud or --compress shared'),
    (['my.ms', 'o.h5', '--average', 'time=10s', '--compress', 'shared'], USAGE,
     'averages do not share bytes with the source: --average or --compress shared'),
    (['thin.ms', 'o.h5', '--restorable'], UNSUPPORTED,
     'a thin table, whose files are in an HDF5 file; `h5bridge materialize` makes it independent'),
    (['data.bcolz', 'o.h5', '--dtype', 'f4'], USAGE, 'an array has a type: --dtype is for files'),
    (['data.bcolz', 'o.h5', '--compress', 'shared'], USAGE, '--compress shared is for tables; data.bcolz is none'),
    (['my.ms', 'o.h5', '--replace', '--hdf5', '1.8'], USAGE,
     '--replace: a thin table needs datasets in one block, which HDF5 1.8 does not have'),
    (['my.ms', 'o.h5', '--reflink', 'always'], USAGE,
     '--reflink always: only a file made with --compress shared shares bytes with its source'),
    (['my.ms', 'o.h5', '--reflink', 'always', '--compress', 'shared', '--tables', 'ANTENNA'], UNSUPPORTED,
     'ANTENNA/POSITION cannot share its bytes with the source: not in tiles'),
    (['my.ms', 'o.h5', '--reflink', 'always', '--compress', 'shared', '--rows', '0..0', '--tables', 'MAIN'], UNSUPPORTED,
     'cannot share its bytes with the source'),
    (['archive.h5', 'o.h5', '--replace'], UNSUPPORTED, 'only a table directory can be replaced by a thin one'),
    (['my.ms', '..', '--overwrite'], USAGE, 'the target has no name of its own'),
], ids=lambda value: ' '.join(value[2:]) if isinstance(value, list) else '')
def test_conversions(folder, words, code, says):
    refuse(folder, ['to-hdf5', *words], code, says)
    assert not (folder / 'o.h5').exists()


@pytest.mark.parametrize('words,code,says', [
    (['link', 'old.h5', 'o.ms'], UNSUPPORTED, 'no dataset of the file is one block of tiles, to which a table could be linked'),
    (['info', 'newer.ms'], UNSUPPORTED, 'a record of links of version 9, only 1 is read'),
    (['pack', 'my.ms', 'my.vt', '--format', 'vt', '--overwrite'], USAGE,
     'the format vt adds to what exists: nothing is overwritten'),
    (['pack', 'my.ms', 'o.vt', '--format', 'vt', '--crc'], USAGE,
     'the format vt has neither a choice of compression nor of checksums'),
    (['pack', 'thin.ms', 'o.ms'], UNSUPPORTED,
     'a thin table, whose tiles are in an HDF5 file; `h5bridge materialize` makes it independent'),
    (['pack', 'folder', 'o.ms'], DAMAGED, 'not a table: it has no table.dat'),
    (['pack', 'named.ms', 'o.ms', '--format', 'multifile'], UNSUPPORTED,
     'table.mf: a file of this name exists, but is not the container of the table'),
    (['verify', '--bytes', 'changed.h5'], DAMAGED, 'the BLAKE3 of the bytes is not the one that was stored'),
    (['pack', 'damaged.h5', 'o.ms', '--salvage'], DAMAGED, 'its table.dat cannot be read'),
    (['ls', 'data.bcolz', '-S'], USAGE,
     'chunks of arrays are listed as they are found: -S, --sort and --reverse are for files'),
], ids=lambda value: ' '.join(value) if isinstance(value, list) else '')
def test_files(folder, words, code, says):
    refuse(folder, words, code, says)


@pytest.mark.parametrize('words,code,says', [
    (['manifest', 's3://bucket/my.h5', 'o.json'], UNSUPPORTED,
     'a manifest records sizes and times of local files: `h5bridge refs` writes references to this file'),
    (['refs', 'my.ms'], USAGE, 'not a native HDF5 file: `h5bridge manifest` writes references to tables'),
    (['manifest', 'archive.h5', 'o.json'], UNSUPPORTED,
     'a table inside a container; `h5bridge unpack` takes it out, `h5bridge to-hdf5` converts it'),
    (['manifest', b'\xff.ms', 'o.json'], UNSUPPORTED, 'a path that is not UTF-8'),
    (['verify', 'other.json'], DAMAGED, 'the manifest lacks the member "h5bridge"'),
], ids=lambda value: str(value) if isinstance(value, list) else '')
def test_manifests(folder, words, code, says):
    refuse(folder, words, code, says)


@pytest.mark.parametrize('words,code,says', [
    (['image'], UNSUPPORTED, 'the source is not an image: it has no column map with coordinates'),
    (['--plane', '0'], USAGE, '--plane is for images; the source has none'),
    (['--by', 'scan', '--scan', '99'], USAGE, '--by scan: the source has none of them, or no row of one is selected'),
    (['baselines', '--by', 'antenna'], USAGE, '--by antenna: baselines has no lines; amplitude or phase against time has'),
    (['--by', 'baseline', 'amp_time', '--baseline', ','.join('a%d-b%d' % (n, n) for n in range(65))], USAGE,
     'by baseline there are more than 64 groups; select fewer with --antenna, --baseline, --field, --scan or --spw'),
    (['--x', 'channel', '--y', 'real', '--quantity', 'imag'], USAGE, '--quantity is imag, and --y is real; one of them is enough'),
], ids=lambda value: ' '.join(value) if isinstance(value, list) else '')
def test_plots(folder, words, code, says):
    refuse(folder, ['plot', 'my.ms', *words, '--out', 'o.png'], code, says)


@pytest.mark.parametrize('words,says', [
    (['--to', '{'], '--to has a { without }'),
    (['--to', 'o/{stem}.h5', '--from', 'empty'], 'the list names no sources: nothing is to be done'),
    (['--to', 'o/{stem}.h5', '--from', 'bytes'], 'the path is not UTF-8'),
    (['--from', 'nothing'], 'the path is empty'),
    (['--to', 'o/{stem}.h5', '*/[z'], '"[z" is not a pattern: '),
    (['--to', 'o/{stem}.h5', '*.ms'], 'the path is not UTF-8, as manifests need it'),
    (['--to', 'o/' + 'x' * 252, 'my.ms'], 'the name of the target has more than '),
], ids=lambda value: str(value)[:40] if isinstance(value, list) else '')
def test_plans_of_batches(folder, words, says, tmp_path):
    (folder / 'empty').write_text('\n')
    (folder / 'bytes').write_bytes(b'/\xff\n')
    (folder / 'nothing').write_text('{"source": "", "target": "o.h5"}\n')
    patterns = ['my.ms'] if words == ['--to', '{'] else []
    refuse(folder, ['batch', 'plan', *patterns, *words, '--out', tmp_path / 'all.ndjson'], USAGE, says)


@pytest.fixture
def planned(folder, tmp_path):
    """A folder with the plan of s.h5, in items of a chunk."""
    run(tmp_path, 'shard', 'plan', folder / 'my.ms', 's.h5', '--work-bytes', '4K')
    return tmp_path


def edited(planned, change):
    """Changes the lines of a plan, as JSON."""
    path = planned / 's.h5.shards' / 'plan.ndjson'
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text(''.join(json.dumps(line) + '\n' for line in lines))


def dataset(lines, name):
    return next(line['dataset'] for line in lines if line.get('dataset', {}).get('path', '').endswith('/' + name))


@pytest.mark.parametrize('change,verb,code,says', [
    (lambda lines: lines.pop(0), 'status', DAMAGED, 'the plan lacks its first line'),
    (lambda lines: lines[0]['plan'].update(version=7), 'status', UNSUPPORTED, 'the plan has version 7, only 1 is read'),
    (lambda lines: dataset(lines, 'UVW').update(chunk=[0, 3]), 'status', DAMAGED, 'line 2: chunks [3, 0] do not fit the shape [3, 210]'),
    (lambda lines: dataset(lines, 'UVW').update(chunk=[1 << 40, 3]), 'status', DAMAGED,
     'line 2: a chunk has 26388279066624 bytes, at most '),
    (lambda lines: dataset(lines, 'UVW').update(column_number=99), 'work', DAMAGED,
     'the source lacks this column of the plan: make a new plan'),
    (lambda lines: dataset(lines, 'DATA').update(cube=7), 'work', DAMAGED, 'the hypercubes have changed since the plan was made'),
    (lambda lines: dataset(lines, 'UVW').update(chunk=[1 << 61, 1]), 'status', DAMAGED, 'line 2: a chunk has more than 2^64 bytes'),
    (lambda lines: dataset(lines, 'UVW').update(address=(1 << 64) - 1), 'work', DAMAGED, 'the block ends after 2^64 bytes'),
    (lambda lines: dataset(lines, 'DATA').update(is_of_tiles=False, shape=[210, 8, 4], chunk=[210, 8, 4]), 'work', DAMAGED,
     'the cells have changed since the plan was made'),
], ids=range(9))
def test_plans_of_shards(change, verb, code, says, planned):
    edited(planned, change)
    refuse(planned, ['shard', verb, 's.h5'], code, says)


def test_shards(folder, planned):
    plan, shards = ['shard', 'plan', folder / 'my.ms', 's.h5'], planned / 's.h5.shards'
    refuse(planned, plan, EXISTS, 'a plan for this file exists: `h5bridge shard status` shows it; remove the directory to begin again')
    refuse(planned, ['shard', 'status', 'x.h5'], DAMAGED, 'no plan exists for this file: `h5bridge shard plan SOURCE OUT` makes one')
    refuse(planned, ['shard', 'plan', folder / 'my.ms', '..', '--overwrite'], USAGE, 'the target has no name of its own')
    refuse(planned, ['shard', 'work', 's.h5', '--ids', 'abc'], USAGE, 'item abc does not exist: `h5bridge shard status --json` lists all')
    refuse(planned, ['shard', 'commit', 's.h5'], USAGE, '17 of 17 items are not done, the first is ')
    refuse(planned, ['shard', 'plan', os.fsencode(folder) + b'/\xff.ms', 'x.h5'], UNSUPPORTED, 'the path is not UTF-8: a plan cannot name it')
    refuse(planned, ['shard', 'plan', os.fsencode(folder) + b'/\xff.ms', 'x.h5', '--split', '100K'], UNSUPPORTED,
           'the path is not UTF-8: a manifest cannot name it')
    run(planned, 'shard', 'work', 's.h5')
    with open(shards / 'commit.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refuse(planned, ['shard', 'commit', 's.h5'], EXISTS, 'another commit is running')
    (shards / 'ledger' / 'other.ndjson').write_text('x' * 70000)
    refuse(planned, ['shard', 'status', 's.h5'], DAMAGED, 'the file is not a ledger: a line does not end')
    (shards / 'ledger' / 'other.ndjson').unlink()
    unpublished = shards / 's.h5'
    whole = unpublished.read_bytes()
    unpublished.write_bytes(whole[:-1])
    refuse(planned, ['shard', 'commit', 's.h5'], DAMAGED, 'the file has %d bytes, %d are expected' % (len(whole) - 1, len(whole)))
    unpublished.write_bytes(whole)
    chunks, = (shards / 'chunks').iterdir()
    content = chunks.read_bytes()
    chunks.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refuse(planned, ['shard', 'commit', 's.h5'], DAMAGED, 'is damaged: ')
    chunks.write_bytes(content)
    unpublished.rename(planned / 'kept')
    refuse(planned, ['shard', 'commit', 's.h5'], DAMAGED, 'the file of the plan is missing: remove the directory and make a new plan')
    (planned / 'kept').rename(unpublished)
    run(planned, 'shard', 'commit', 's.h5')
    ranges = planned / 's.h5.shards.ndjson'
    content = ranges.read_text()
    lines = [json.loads(line) for line in content.splitlines()]
    flags = dataset(lines, 'FLAG')
    flags.update(chunk=[100, 16, 4])
    lines[-1]['item']['last'] = 3
    ranges.write_text(''.join(json.dumps(line) + '\n' for line in lines))
    refuse(planned, ['shard', 'verify', 's.h5'], support.DIFFERENT, 'chunk 1 is missing')
    ranges.write_text(content)
    refuse(planned, ['shard', 'work', 's.h5'], EXISTS, 'the target is published already; `h5bridge shard verify` checks it')


def test_no_port_is_free(folder):
    taken = []
    for port in range(5380, 5390):
        taken.append(socket.socket())
        try:
            taken[-1].bind(('127.0.0.1', port))
            taken[-1].listen()
        except OSError:     # another program has it
            pass
    refuse(folder, ['serve', 'my.h5'], EXISTS, 'other programs have ports 5380 to 5389; --port 0 takes a free one')
    for one in taken:
        one.close()


@pytest.mark.parametrize('table,words,code,says', [
    ('concat_tables/part1.tab', ['to-hdf5', 'part1.tab', 'o.h5', '--replace'], UNSUPPORTED, 'part1.tab: its subtable '),
    ('no_columns/t.tab', ['to-hdf5', 't.tab', 'o.h5', '--compress', 'shared', '--reflink', 'always'], UNSUPPORTED,
     't.tab: no column can share its bytes with the source'),
    ('rows64/t.tab', ['shard', 'plan', 't.tab', 'o.h5', '--split', '1'], USAGE,
     'files are too many, at most 65536 are planned: --split needs a larger size'),
])
def test_special_tables(table, words, code, says, tmp_path):
    shutil.copytree(os.path.join(support.TESTDATA, table), tmp_path / os.path.basename(table))
    for other in ('sub1.tab', 'sub2.tab') if 'concat' in table else ():
        shutil.copytree(os.path.join(support.TESTDATA, 'concat_tables', other), tmp_path / other)
    refuse(tmp_path, words, code, says)
    assert not (tmp_path / 'o.h5').exists() or '--replace' in words


def test_a_table_that_is_not_converted_whole_is_not_replaced(tmp_path):
    support.unread_expressions(tmp_path / 't.tab')
    refuse(tmp_path, ['to-hdf5', 't.tab', 'o.h5', '--replace'], UNSUPPORTED, '4 columns are not converted: the table stays as it is')
    assert (tmp_path / 't.tab').exists()


def test_filters_that_are_not_installed(folder, tmp_path):
    hdf5plugin = pytest.importorskip('hdf5plugin')
    with h5py.File(shutil.copy(folder / 'my.h5', tmp_path / 'my.h5'), 'r+') as file:
        old = file['MAIN/SCAN_NUMBER']
        attributes, values = dict(old.attrs), old[...]
        del file['MAIN/SCAN_NUMBER']
        new = file.create_dataset('MAIN/SCAN_NUMBER', data=values, chunks=values.shape, **hdf5plugin.Bitshuffle())
        for name, value in attributes.items():
            if name not in ('DIMENSION_LIST', 'REFERENCE_LIST'):
                new.attrs[name] = value
    refuse(tmp_path, ['to-ms', 'my.h5', 'o.ms'], UNSUPPORTED,
           'dataset /MAIN/SCAN_NUMBER: stored with the filter bitshuffle (number 32008), which is not installed: install the HDF5 plugin')


@pytest.mark.skipif(not support.LONG, reason='h5py takes half a minute for the sources; set H5BRIDGE_LONG=1')
def test_virtual_datasets_with_too_many_sources(tmp_path):
    with h5py.File(tmp_path / 'virtual.h5', 'w') as file:
        file['x'] = np.zeros(10)
        layout = h5py.VirtualLayout((100001,), 'f8')
        source = h5py.VirtualSource('.', 'x', (10,), 'f8')
        for row in range(100001):
            layout[row] = source[row % 10]
        file.create_virtual_dataset('v', layout)
    refuse(tmp_path, ['pack', 'virtual.h5/v', 'o.bcolz', '--format', 'bcolz'], DAMAGED,
           'dataset /v: the virtual dataset has more than 100000 sources, which is the limit')


def test_listings_end_with_their_output(folder):
    with open('/dev/full', 'w') as full:
        process = subprocess.run([support.H5BRIDGE, 'ls', 'archive.h5'], cwd=folder, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert process.returncode == support.NO_SPACE, process.stderr


def test_chunks_of_another_size(folder, tmp_path):
    """The key of a chunk in the b-tree of a file for HDF5 1.8 has another size than the chunk."""
    run(folder, 'to-hdf5', 'my.ms', tmp_path / 'old.h5', '--hdf5', '1.8', '--compress', 'none')
    with h5py.File(tmp_path / 'old.h5') as file:
        chunk = file['MAIN/DATA'].id.get_chunk_info(0)
        axes = file['MAIN/DATA'].ndim
    content = (tmp_path / 'old.h5').read_bytes()
    key = struct.pack('<II%dQ' % (axes + 1), chunk.size, 0, *[0] * (axes + 1))
    (tmp_path / 'old.h5').write_bytes(content.replace(key, struct.pack('<I', chunk.size - 1) + key[4:]))
    refuse(tmp_path, ['manifest', 'old.h5', 'o.json'], DAMAGED,
           'a chunk of %d bytes where %d are expected, or beyond the ' % (chunk.size - 1, chunk.size))


def test_calls_of_the_package(folder):
    h5bridge = pytest.importorskip('h5bridge')
    with pytest.raises(h5bridge.UsageError) as error:
        h5bridge.to_hdf5(folder / 'my.ms', folder / 'o.h5', hdf5='2.0')
    assert '2.0' in str(error.value) and not (folder / 'o.h5').exists()
    run(folder, 'batch', 'plan', 'my.ms', '--to', 'o.h5', '--out', 'all.ndjson')
    with pytest.raises(h5bridge.Error) as error:
        h5bridge._native.call(['batch', 'run', str(folder / 'all.ndjson'), '--ledger', str(folder / 'ledger')])
    assert 'batch run starts processes: run the command instead of calling it' in str(error.value)
