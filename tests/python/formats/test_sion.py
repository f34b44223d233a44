"""SIONlib containers: read against the manifest of the fixtures, into HDF5 and back, written and read by an independent decoder."""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import time

import h5py
import numpy as np
import pytest

import support
from support import DAMAGED, decoder, files_of, h5bridge, manifest, sha256, tree

FIXTURES = os.path.join(support.SHARED, 'fixtures', 'sion')
DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')

needs_fixtures = support.needs(FIXTURES)
needs_decoder = support.needs_decoder('sion')

# Files of which META1 is whole and META2 is not
SALVAGED = ['negative/not_closed.sion', 'negative/meta2_beyond_end.sion']


def name_of(entry):
    return entry['name']


@needs_fixtures
@pytest.mark.parametrize('entry', manifest(FIXTURES, False), ids=name_of)
def test_fixture(entry, tmp_path):
    source, expect = os.path.join(FIXTURES, entry['path']), entry['expect']
    tasks = expect['tasks']
    assert files_of(source) == {'TASK%d' % n: task['sha256'] for n, task in enumerate(tasks)}
    info = json.loads(h5bridge('info', '--json', source).stdout)
    header, properties = expect['header'], info['properties']
    assert (info['format'], info['files']) == ('sion', len(tasks))
    for name, field in [('sion_version', 'version'), ('sion_patch', 'patch'), ('sion_file_format', 'ff'),
                        ('sion_block_bytes', 'fsblk'), ('sion_files', 'nfiles'), ('sion_file_number', 'filenumber'),
                        ('sion_flag1', 'flag1'), ('sion_blocks', 'maxchunks'), ('sion_first_chunk', 'data_start')]:
        assert properties[name][0] == header[field], name
    assert properties['sion_data_byte_order'] == ('big' if header['user_big'] else 'little')
    for n, task in enumerate(tasks):
        stream = json.loads(h5bridge('info', '--json', '%s/TASK%d' % (source, n)).stdout)
        own = stream['properties']
        assert (stream['size'], own['sion_globalrank'], own['sion_file'], own['sion_local_task']) == (
            task['nbytes'], task['globalrank'], task['file'], task['lrank'])
        assert own['sion_written_bytes'] == task['chunks'] and own['sion_chunk_bytes'] == task['chunksize']
        if 'keyval' in task:
            values = {}
            for record in task['keyval']:
                values.setdefault(record['key'], []).append(record)
            listed = files_of('%s/TASK%d.keys' % (source, n))
            assert sorted(map(int, listed)) == sorted(values)
            for key, records in values.items():
                if len(records) == 1:
                    assert listed[str(key)] == records[0]['sha256']

    # to HDF5, and the exact way back
    h5bridge('to-hdf5', source, tmp_path / 'a.h5')
    h5bridge('verify', '--bytes', source, tmp_path / 'a.h5')
    with h5py.File(tmp_path / 'a.h5') as f:
        for n, task in enumerate(tasks):
            data = f['TASK%d' % n]
            assert data.dtype == 'u1' and sha256(data[:].tobytes()) == task['sha256']
            assert data.attrs['sion_globalrank'] == task['globalrank']
    for start, target in [(source, 'direct.sion'), (tmp_path / 'a.h5', 'back.sion')]:
        h5bridge('pack', start, tmp_path / target, '--format', 'sion')
        for member in entry['files_in_set']:
            with open(os.path.join(FIXTURES, member), 'rb') as f:
                expected = f.read()
            written = tmp_path / (target + member[len(entry['path']):])
            assert written.read_bytes() == expected, (target, member)
    h5bridge('unpack', tmp_path / 'a.h5', tmp_path / 'files')
    assert {name: sha256(data) for name, data in tree(tmp_path / 'files').items()} == files_of(source)


@needs_fixtures
@pytest.mark.parametrize('entry', manifest(FIXTURES, True), ids=name_of)
def test_negative(entry, tmp_path):
    source = os.path.join(FIXTURES, entry['path'])
    for words in [['info', source], ['ls', source], ['digest', source], ['unpack', source, tmp_path / 'out'],
                  ['to-hdf5', source, tmp_path / 'out.h5'], ['verify', '--bytes', source, source]]:
        message = h5bridge(*words, code=support.DAMAGED).stderr
        assert os.path.basename(source) in message and message.count('\n') == 1, message
    assert os.listdir(tmp_path) == []


@needs_fixtures
@pytest.mark.parametrize('path', SALVAGED)
def test_salvage_of_negatives(path, tmp_path):
    source = os.path.join(FIXTURES, path)
    process = h5bridge('unpack', source, tmp_path / 'out', code=support.DAMAGED)
    assert '--salvage' in process.stderr
    process = h5bridge('unpack', source, tmp_path / 'out', '--salvage', code=support.WARNINGS)
    assert 'zeros included' in process.stderr
    h5bridge('to-hdf5', source, tmp_path / 'out.h5', '--salvage', code=support.WARNINGS)
    assert len(tree(tmp_path / 'out')) == 3


@needs_fixtures
@pytest.mark.parametrize('name', ['ser_4tasks.sion', 'be_4tasks.sion', 'mpi_coll.sion', 'doc_ff3_gaps.sion'])
def test_salvage(name, tmp_path):
    """Chunks of a file that was never closed are taken with all their space."""
    intact = os.path.join(FIXTURES, name)
    entry = [entry for entry in manifest(FIXTURES, False) if entry['name'] == name][0]
    tasks = entry['expect']['tasks']
    with open(intact, 'rb') as f:
        data = bytearray(f.read())
    end = 1076 + 16 * len(tasks)
    data[end:end + 12] = bytes(12)
    (tmp_path / 'a.sion').write_bytes(data)
    assert 'never closed' in h5bridge('ls', tmp_path / 'a.sion', code=support.DAMAGED).stderr
    h5bridge('unpack', tmp_path / 'a.sion', tmp_path / 'out', '--salvage', code=support.WARNINGS)
    h5bridge('unpack', intact, tmp_path / 'intact')
    found, expected = tree(tmp_path / 'out'), tree(tmp_path / 'intact')
    block = entry['expect']['header']['fsblk']
    assert sorted(found) == sorted(expected)
    for n, task in enumerate(tasks):
        stream, whole, at = found['TASK%d' % n], expected['TASK%d' % n], 0
        space = task['chunksize'] if entry['expect']['header']['ff'] > 3 else -(-task['chunksize'] // block) * block
        for number, count in enumerate(task['chunks']):
            assert stream[number * space:][:count] == whole[at:at + count]
            at += count


def test_files_with_names(tmp_path):
    """Names that tasks cannot have are in task 0; a table in a SION file opens in place."""
    source = tmp_path / 'some.ms'
    shutil.copytree(DEMO, source)
    (source / 'EMPTY').mkdir()
    h5bridge('pack', source, tmp_path / 'a.sion', '--format', 'sion')
    h5bridge('verify', '--bytes', source, tmp_path / 'a.sion')
    assert support.digest(tmp_path / 'a.sion') == support.digest(source)
    assert json.loads(h5bridge('info', '--json', tmp_path / 'a.sion' / 'ANTENNA').stdout)['tables']
    h5bridge('unpack', tmp_path / 'a.sion', tmp_path / 'back.ms')
    assert tree(tmp_path / 'back.ms') == tree(source) and os.path.isdir(tmp_path / 'back.ms' / 'EMPTY')
    h5bridge('to-hdf5', tmp_path / 'a.sion', tmp_path / 'table.h5')
    h5bridge('verify', source, tmp_path / 'table.h5')
    h5bridge('pack', tmp_path / 'a.sion', tmp_path / 'b.h5', '--format', 'hdf5', '--compress', 'gzip')
    h5bridge('verify', '--bytes', tmp_path / 'b.h5', source)
    assert support.digest(tmp_path / 'b.h5') == support.digest(source)


@needs_decoder
def test_written_files_are_read_by_another_decoder(tmp_path):
    folder = tmp_path / 'streams'
    folder.mkdir()
    streams = [os.urandom(length) for length in [0, 1, 4095, 4096, 4097, 100000]]
    for n, stream in enumerate(streams):
        (folder / ('TASK%d' % n)).write_bytes(stream)
    for words, block in [([], 4096), (['--block-size', '512'], 512)]:
        target = tmp_path / ('%d.sion' % block)
        h5bridge('pack', folder, target, '--format', 'sion', *words)
        [parsed] = decoder('sion').load(str(target))
        assert parsed['streams'] == streams and parsed['fsblk'] == block and parsed['mapping'] == []
        assert all(start % block == 0 for start in parsed['starts'])
    h5bridge('pack', DEMO, tmp_path / 'demo.sion', '--format', 'sion')
    [parsed] = decoder('sion').load(str(tmp_path / 'demo.sion'))
    line, names = parsed['streams'][0].split(b'\n', 1)
    files = [name for name in json.loads(names) if not name.endswith('/')]
    assert line == b'ctds-names 1' and dict(zip(files, parsed['streams'][1:])) == tree(DEMO)


def test_containers_in_streams_open_in_place(tmp_path):
    folder = tmp_path / 'streams'
    folder.mkdir()
    h5bridge('pack', DEMO, folder / 'TASK1', '--single-file', '--format', 'multifile')
    (folder / 'TASK0').write_bytes(b'plain bytes')
    h5bridge('pack', folder, tmp_path / 'inner.sion', '--format', 'sion')
    source = tmp_path / 'inner.sion'
    assert support.digest(source / 'TASK1') == support.digest(DEMO)
    h5bridge('to-hdf5', source / 'TASK1', tmp_path / 'table.h5')
    h5bridge('verify', DEMO, tmp_path / 'table.h5')
    # two levels: SION in SION, a table in it
    again = tmp_path / 'again'
    again.mkdir()
    shutil.copy(source, again / 'TASK0')
    h5bridge('pack', again, tmp_path / 'outer.sion', '--format', 'sion')
    assert support.digest(tmp_path / 'outer.sion' / 'TASK0' / 'TASK1') == support.digest(DEMO)
    assert 'ANTENNA' in h5bridge('ls', tmp_path / 'outer.sion' / 'TASK0' / 'TASK1').stdout
    for missing in ['TASK9', 'TASK0/TASK7', 'TASK0/TASK0/x', '../../x']:
        h5bridge('info', tmp_path / 'outer.sion' / missing, code=support.DAMAGED)


def test_same_streams_with_hdf5_attributes_of_a_user(tmp_path):
    """What a user adds to the HDF5 file does not disturb the way back."""
    folder = tmp_path / 'streams'
    folder.mkdir()
    (folder / 'TASK0').write_bytes(b'some bytes')
    h5bridge('pack', folder, tmp_path / 'a.sion', '--format', 'sion')
    h5bridge('to-hdf5', tmp_path / 'a.sion', tmp_path / 'a.h5')
    with h5py.File(tmp_path / 'a.h5', 'r+') as f:
        f['TASK0'].attrs['note'] = 'mine'
        f['TASK0'][0:4] = [ord(c) for c in 'SOME']
    h5bridge('verify', '--bytes', tmp_path / 'a.sion', tmp_path / 'a.h5', code=support.DIFFERENT)
    h5bridge('pack', tmp_path / 'a.h5', tmp_path / 'b.sion', '--format', 'sion')
    h5bridge('unpack', tmp_path / 'b.sion', tmp_path / 'out')
    assert tree(tmp_path / 'out') == {'TASK0': b'SOME bytes'}
    with h5py.File(tmp_path / 'a.h5', 'r+') as f:
        del f['TASK0']
        f['TASK0'] = [1.5]
    assert 'dataset of 8-bit integers' in h5bridge('ls', tmp_path / 'a.h5', code=support.DAMAGED).stderr


def test_a_truncated_file_of_our_own(tmp_path):
    """Every length but the whole one is refused, and salvage gives the streams up to the cut."""
    folder = tmp_path / 'streams'
    folder.mkdir()
    for n in range(3):
        (folder / ('TASK%d' % n)).write_bytes(bytes([65 + n]) * 700)
    h5bridge('pack', folder, tmp_path / 'a.sion', '--format', 'sion', '--block-size', '512')
    whole = (tmp_path / 'a.sion').read_bytes()
    # without the mapping, the last 4 bytes, it is whole
    for length in range(0, len(whole) - 4, len(whole) // 13):
        (tmp_path / 'cut.sion').write_bytes(whole[:length])
        h5bridge('digest', tmp_path / 'cut.sion', code=support.DAMAGED)
    (tmp_path / 'cut.sion').write_bytes(whole[:-20])
    h5bridge('unpack', tmp_path / 'cut.sion', tmp_path / 'out', '--salvage', code=support.WARNINGS)
    assert tree(tmp_path / 'out') == {'TASK%d' % n: bytes([65 + n]) * 700 + bytes(324) for n in range(3)}


def test_json_names_that_lead_elsewhere_are_refused(tmp_path):
    folder = tmp_path / 'streams'
    folder.mkdir()
    for names in ['["../x"]', '["a/../../x"]', '["/etc/x"]', '["a","a"]', '["a/","b"]', '[""]', '["a/b/","a"]', '{}', '[1]']:
        (folder / 'TASK0').write_bytes(b'ctds-names 1\n' + names.encode())
        (folder / 'TASK1').write_bytes(b'x')
        target = tmp_path / 'a.sion'
        h5bridge('pack', folder, target, '--format', 'sion', '--overwrite')
        h5bridge('unpack', target, tmp_path / 'out', code=support.DAMAGED)
        assert sorted(os.listdir(tmp_path)) == ['a.sion', 'streams']


def write_set(path, files, chunk=512, block=512, order='<'):
    """Writes a SION set with another program than ours: FILES has a list of tasks for each file, a task is a list of the bytes of
    each of its chunks. Logical tasks are numbered across the files, last file first. Returns the streams in that order."""
    mapping = [(k, t) for k in reversed(range(len(files))) for t in range(len(files[k]))]
    for number, tasks in enumerate(files):
        n, blocks = len(tasks), max(len(task) for task in tasks)
        start = -(-(1088 + 16 * n) // block) * block
        meta2 = start + blocks * n * chunk
        head = b'sion' + (bytes(4) if order == '<' else bytes([1, 1, 1, 1]))
        head += struct.pack(order + '7i2q', 1007, 6, 5, block, n, len(files), number, 50 << 32, 0) + b'x'.ljust(1024, b'\0')
        head += struct.pack(order + '%dq' % (2 * n), *range(n), *[chunk] * n) + struct.pack(order + 'iq', blocks, meta2)
        tail = struct.pack(order + '%dq' % n, *[len(task) for task in tasks])
        for at in range(blocks):
            tail += struct.pack(order + '%dq' % n, *[len(task[at]) if at < len(task) else 0 for task in tasks])
        if number == 0:
            tail += struct.pack(order + 'i', len(mapping))
            tail += b''.join(struct.pack(order + '2i', *place) for place in mapping)
        with open(str(path) + ('.%06d' % number if number else ''), 'wb') as f:
            f.write(head)
            for task, chunks in enumerate(tasks):
                for at, data in enumerate(chunks):
                    f.seek(start + (at * n + task) * chunk)
                    f.write(data)
            f.truncate(meta2)
            f.seek(meta2)
            f.write(tail)
    return [b''.join(files[k][t]) for k, t in mapping]


@needs_decoder
@pytest.mark.parametrize('order', '<>')
@pytest.mark.parametrize('shape', [[1], [5], [3, 1, 4]])
def test_sets_written_and_read_by_other_programs(order, shape, tmp_path):
    """Several tasks, blocks and files: what another program wrote is read, and what is written another program reads."""
    generator = random.Random(str(shape))
    files = [[[generator.randbytes(generator.randrange(513)) for _ in range(generator.randrange(1, 5))]
              for _ in range(tasks)] for tasks in shape]
    streams = write_set(tmp_path / 'a.sion', files, order=order)
    assert files_of(tmp_path / 'a.sion') == {'TASK%d' % n: sha256(stream) for n, stream in enumerate(streams)}
    h5bridge('to-hdf5', tmp_path / 'a.sion', tmp_path / 'a.h5')
    h5bridge('pack', tmp_path / 'a.h5', tmp_path / 'b.sion', '--format', 'sion')
    for ending in [''] + ['.%06d' % number for number in range(1, len(shape))]:
        assert (tmp_path / ('a.sion' + ending)).read_bytes() == (tmp_path / ('b.sion' + ending)).read_bytes()
    parsed = decoder('sion').load(str(tmp_path / 'b.sion'))
    of_file = [file['streams'] for file in parsed]
    assert [of_file[k][t] for k in reversed(range(len(shape))) for t in range(shape[k])] == streams


def test_a_set_is_replaced_as_a_whole(tmp_path):
    """Killed at any moment, an overwritten set is the old one, the new one, or missing, and the next run completes it."""
    target, sets = tmp_path / 'set.sion', {}
    for content in 'AB':
        folder = tmp_path / content
        folder.mkdir()
        write_set(folder / 'set.sion', [[[content.encode() * 100]] for _ in range(150)])
        sets[content] = files_of(folder / 'set.sion')
    command = [support.H5BRIDGE, '-q', 'pack', str(tmp_path / 'B' / 'set.sion'), str(target), '--format', 'sion',
               '--overwrite', '--sync', 'never']
    started = time.perf_counter()
    subprocess.run(command, check=True)
    duration = time.perf_counter() - started
    outcomes = []
    for number in range(40):
        for file in (tmp_path / 'A').iterdir():
            shutil.copy(file, tmp_path)
        process = subprocess.Popen(command)
        time.sleep(duration * (0.3 + 0.8 * number / 40))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if target.exists():
            found = files_of(target)
            assert found in sets.values(), number
            outcomes.append('new' if found == sets['B'] else 'old')
        else:
            outcomes.append('missing')
    assert 'old' in outcomes, outcomes
    subprocess.run(command, check=True)
    assert files_of(target) == sets['B']
    assert sorted(path.name for path in tmp_path.iterdir() if 'partial' in path.name) == []


def test_a_set_beside_files_of_its_names(tmp_path):
    """Nothing is left of a set of which one file cannot be placed."""
    write_set(tmp_path / 'a.sion', [[[b'x']], [[b'y']], [[b'z']]])
    out = tmp_path / 'out'
    out.mkdir()
    (out / 'b.sion.000002').write_bytes(b'mine')
    h5bridge('pack', tmp_path / 'a.sion', out / 'b.sion', '--format', 'sion', code=support.EXISTS)
    assert tree(out) == {'b.sion.000002': b'mine'}


def test_one_stream_as_a_dataset(tmp_path):
    values = np.arange(5000, dtype='<f8')
    folder = tmp_path / 'streams'
    folder.mkdir()
    for n in range(3):
        (folder / ('TASK%d' % n)).write_bytes((values + n).tobytes())
    (folder / 'TASK3').write_bytes(b'')
    source = tmp_path / 'a.sion'
    h5bridge('pack', folder, source, '--format', 'sion')
    h5bridge('to-hdf5', source / 'TASK2', tmp_path / 'one.h5')
    with h5py.File(tmp_path / 'one.h5') as f:
        assert list(f) == ['TASK2'] and f['TASK2'].dtype == 'u1' and f['TASK2'].attrs['sion_task'] == 2
        assert np.array_equal(f['TASK2'][:].view('<f8'), values + 2)
    for words in [[], ['--compress', 'gzip']]:
        typed = tmp_path / ('typed%d.h5' % len(words))
        h5bridge('to-hdf5', source, typed, '--dtype', 'f8', *words)
        with h5py.File(typed) as f:
            assert all(np.array_equal(f['TASK%d' % n][:], values + n) and f['TASK%d' % n].dtype == '<f8' for n in range(3))
            assert f['TASK3'].shape == (0,)
        # typed datasets are the same bytes for every verb, and the way back is exact
        h5bridge('verify', '--bytes', source, typed)
        assert files_of(typed) == files_of(source)
        h5bridge('pack', typed, tmp_path / 'back.sion', '--format', 'sion', '--overwrite')
        assert (tmp_path / 'back.sion').read_bytes() == source.read_bytes()
    h5bridge('to-hdf5', source / 'TASK0', tmp_path / 'c8.h5', '--dtype', 'complex64')
    with h5py.File(tmp_path / 'c8.h5') as f:
        assert np.array_equal(f['TASK0'][:], values.view('<c8'))
    # what does not fit is refused, and nothing is written
    (folder / 'TASK3').write_bytes(b'12345')
    h5bridge('pack', folder, tmp_path / 'odd.sion', '--format', 'sion')
    message = h5bridge('to-hdf5', tmp_path / 'odd.sion', tmp_path / 'odd.h5', '--dtype', 'f4', code=support.USAGE).stderr
    assert 'TASK3' in message and '5 bytes' in message
    for name in ['>f4', 'f3', 'S4']:
        assert 'known are' in h5bridge('to-hdf5', source, tmp_path / 'odd.h5', '--dtype', name, code=support.USAGE).stderr
    h5bridge('to-hdf5', DEMO, tmp_path / 'odd.h5', '--dtype', 'f4', code=support.USAGE)
    assert not (tmp_path / 'odd.h5').exists()


@needs_fixtures
def test_keys_as_datasets(tmp_path):
    """`TASK0.keys` is a container: a dataset for each key."""
    [entry] = [entry for entry in manifest(FIXTURES, False) if entry['name'] == 'ser_keyval.sion']
    for n, task in enumerate(entry['expect']['tasks']):
        source = os.path.join(FIXTURES, entry['path'], 'TASK%d.keys' % n)
        h5bridge('to-hdf5', source, tmp_path / ('%d.h5' % n))
        with h5py.File(tmp_path / ('%d.h5' % n)) as f:
            assert sorted(map(int, f)) == sorted({record['key'] for record in task['keyval']})
            assert {name: sha256(f[name][:].tobytes()) for name in f} == files_of(source)


def test_a_large_sparse_file_is_listed_at_once(tmp_path):
    """100,000 tasks: what is not asked for is not read; the first lines come before the last."""
    count, chunk = 100_000, 1 << 20
    start = -(-(1088 + 16 * count) // 4096) * 4096
    with open(tmp_path / 'a.sion', 'wb') as f:
        f.write(b'sion' + bytes(4) + struct.pack('<7i2q', 1007, 6, 5, 4096, count, 1, 1, 50 << 32, 0) + b'x'.ljust(1024, b'\0'))
        f.write(struct.pack('<%dq' % (2 * count), *range(count), *[chunk] * count))
        f.write(struct.pack('<iq', 1, start + count * chunk))
        f.seek(start + count * chunk)
        f.write(struct.pack('<%dq' % (2 * count), *[1] * count, *[10] * count) + bytes(4))
    info = json.loads(h5bridge('info', '--json', tmp_path / 'a.sion').stdout)
    assert (info['files'], info['bytes']) == (count, 10 * count)
    process = subprocess.Popen([support.H5BRIDGE, 'ls', str(tmp_path / 'a.sion')], stdout=subprocess.PIPE)
    lines = [process.stdout.readline() for _ in range(3)]
    assert b'TASK1' in lines[2] and process.poll() is None
    assert sum(1 for _ in process.stdout) == count - 2
    assert process.wait() == 0


def test_paths_and_fields_that_lie(tmp_path):
    """Every field of META1 and META2 that contradicts the file: one line, exit code 3, and nothing is written."""
    write_set(tmp_path / 'a.sion', [[[b'1' * 300, b'2' * 500], [b'3' * 10]]])
    good = (tmp_path / 'a.sion').read_bytes()
    meta2 = struct.unpack_from('<q', good, 1080 + 32)[0]
    huge, out = (1 << 62), tmp_path / 'out'
    for offset, form, value in [
            (0, '4s', b'sian'), (4, '4s', b'\2\0\0\2'), (16, 'i', 6), (16, 'i', 1), (20, 'i', 0), (24, 'i', 0), (24, 'i', -1),
            (24, 'i', 1 << 30), (28, 'i', 0), (1092, 'q', -1), (1092, 'q', huge), (1108, 'i', 3), (1108, 'i', 1 << 30),
            (1112, 'q', 0), (1112, 'q', huge), (1112, 'q', meta2 + 512), (meta2, 'q', 3), (meta2, 'q', -2), (meta2 + 16, 'q', 513),
            (meta2 + 16, 'q', huge), (meta2 + 48, 'i', 1 << 28)]:
        data = bytearray(good)
        struct.pack_into('<' + form, data, offset, value)
        (tmp_path / 'bad.sion').write_bytes(data)
        message = h5bridge('unpack', tmp_path / 'bad.sion', out, code=DAMAGED).stderr
        assert 'bad.sion' in message and len(message.splitlines()) <= 2 and not out.exists(), (offset, value, message)
    for length in range(0, len(good) - 4, 97):
        (tmp_path / 'bad.sion').write_bytes(good[:length])
        h5bridge('unpack', tmp_path / 'bad.sion', out, code=DAMAGED)
        assert not out.exists()
