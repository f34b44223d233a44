"""SIONlib containers: read against the manifest of the fixtures, into HDF5 and back, written and read by an independent decoder."""
import importlib.util
import json
import os
import shutil

import h5py
import pytest

import support
from support import decoder, files_of, h5bridge, manifest, sha256, tree

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
