"""BLZ and bcolz arrays and bloscpack files: read against the manifest of the fixtures, into HDF5 and back, written, damaged."""
import collections
import collections.abc
import json
import os
import shutil
import struct
import subprocess
import zlib

import h5py
import hdf5plugin  # noqa: F401  h5py needs it to read kept chunks
import numpy as np
import pytest

import support
from support import decoder, files_of, h5bridge, manifest, sha256

# bloscpack is older than Python 3.10
collections.MutableMapping = collections.abc.MutableMapping
import bcolz      # noqa: E402
import bloscpack  # noqa: E402

FIXTURES = os.path.join(support.SHARED, 'fixtures', 'blz')

needs_fixtures = support.needs(FIXTURES)
needs_decoder = support.needs_decoder('blz')

BLOSC = 32001


def name_of(entry):
    return entry['path']


def expected(entry):
    """{name of the dataset: its manifest entry}"""
    expect = entry['expect']
    if 'columns' in expect:
        return expect['column']
    return {'array': expect}


def numpy_type(text):
    if isinstance(text, list):
        return np.dtype([(field[0], numpy_type(field[1]), *map(tuple, field[2:])) for field in text])
    return np.dtype(text)


def compare(dataset, expect):
    """Whether the elements are those of the manifest, whatever their byte order and the coding of text."""
    if 'dtype' not in expect:
        assert sha256(dataset[:].tobytes()) == expect['sha256']
        return
    text = expect['dtype']
    dtype = numpy_type(text)
    data = dataset[...]
    assert list(data.shape) == expect['shape']
    if dtype.kind == 'U':
        data = np.array([value.decode() for value in data.ravel().tolist()], dtype).reshape(data.shape)
    elif dtype.kind in 'Mm':
        data = data.view('<i8').astype(dtype.newbyteorder('=')) if data.dtype.kind != 'i' else data.view(dtype)
    elif dtype.names is None:
        assert data.dtype == dtype.newbyteorder('=') or data.dtype.kind == dtype.kind
    assert sha256(np.ascontiguousarray(data.astype(dtype)).tobytes()) == expect['sha256']


@needs_fixtures
@pytest.mark.parametrize('entry', manifest(FIXTURES, False), ids=name_of)
def test_fixture(entry, tmp_path):
    source = os.path.join(FIXTURES, entry['path'])
    if 'object' in entry['path']:
        message = h5bridge('info', source, code=support.UNSUPPORTED).stderr
        assert 'pickle' in message
        h5bridge('to-hdf5', source, tmp_path / 'a.h5', code=support.UNSUPPORTED)
        return
    arrays = expected(entry)
    assert files_of(source) == {name: expect['sha256'] for name, expect in arrays.items()}
    info = json.loads(h5bridge('info', '--json', source).stdout)
    found = {array['name']: array for array in info['arrays']}
    assert sorted(found) == sorted(arrays)
    columns = entry['expect'].get('columns', ['array'])
    assert list(found) == columns or entry['kind'] == 'blz-nested'
    for words in [[], ['--compress', 'gzip']]:
        h5bridge('to-hdf5', source, tmp_path / 'a.h5', '--overwrite', *words)
        with h5py.File(tmp_path / 'a.h5') as f:
            for name, expect in arrays.items():
                dataset = f[name]
                assert dataset.maxshape[0] is None and dataset.chunks
                if 'chunklen' in expect and dataset.chunks[0] != expect['chunklen']:
                    # a large chunk has no more rows than the array
                    assert dataset.chunks[0] == max(expect['shape'][0], 1) < expect['chunklen']
                compare(dataset, expect)
            attributes = entry['expect'].get('attrs') or {}
            owner = f if 'columns' in entry['expect'] else f['array']
            for key, value in attributes.items():
                if isinstance(value, (str, int, float)):
                    assert owner.attrs[key] == value
                else:
                    assert key in owner.attrs or key + '_json' in owner.attrs


@needs_fixtures
@pytest.mark.parametrize('entry', manifest(FIXTURES, True), ids=name_of)
def test_negative(entry, tmp_path):
    source = os.path.join(FIXTURES, entry['path'])
    for words in [['to-hdf5', source, tmp_path / 'a.h5'], ['digest', source]]:
        process = h5bridge(*words, code=support.DAMAGED)
        assert process.stderr.count('\n') == 1 and os.path.basename(source) in process.stderr, process.stderr
    assert os.listdir(tmp_path) == []


@needs_fixtures
@pytest.mark.parametrize('name', ['blpk_v2_adler32', 'blpk_v2_crc32', 'blpk_v2_md5', 'blpk_v2_sha1', 'blpk_v2_sha224',
                                  'blpk_v2_sha256', 'blpk_v2_sha384', 'blpk_v2_sha512', 'blpk_v3_ck_sha512'])
def test_flipped_bytes_of_chunks_are_found(name, tmp_path):
    """Chunks with checksums: any flipped byte of them is an error, never other elements."""
    with open(os.path.join(FIXTURES, name + '.blp'), 'rb') as f:
        data = f.read()
    for at in range(len(data) - 1, len(data) * 2 // 3, -(len(data) // 30)):
        changed = bytearray(data)
        changed[at] ^= 0x10
        (tmp_path / 'a.blp').write_bytes(changed)
        h5bridge('digest', tmp_path / 'a.blp', code=support.DAMAGED)


@needs_fixtures
def test_a_table_in_a_container(tmp_path):
    """Arrays are read wherever a directory is, and names never lead out of it."""
    source = os.path.join(FIXTURES, 'btable_basic')
    h5bridge('pack', source, tmp_path / 'a.sion', '--format', 'sion')
    assert files_of(tmp_path / 'a.sion') == files_of(source)
    shutil.copytree(source, tmp_path / 'table')
    with open(tmp_path / 'table' / '__rootdirs__') as f:
        document = json.load(f)
    name = document['names'][0]
    for folder in ['..', '/', '']:
        document['dirs'] = {name: folder}
        (tmp_path / 'table' / '__rootdirs__').write_text(json.dumps(document))
        h5bridge('digest', tmp_path / 'table', code=support.DAMAGED)


@needs_fixtures
@pytest.mark.parametrize('text', ['[[]]', '{"shape": [-1]}', '{"shape": [1e3]}', '{"shape": [99999999999999]}', '{"shape": []}',
                                  '{"shape": [2, 9223372036854775807]}', '{"shape": [3000', '{}', 'NaN'])
def test_shapes_that_lie(text, tmp_path):
    shutil.copytree(os.path.join(FIXTURES, 'barray_i4_lz4'), tmp_path / 'a')
    os.chmod(tmp_path / 'a' / 'meta', 0o755)
    os.remove(tmp_path / 'a' / 'meta' / 'sizes')
    (tmp_path / 'a' / 'meta' / 'sizes').write_text(text)
    h5bridge('to-hdf5', tmp_path / 'a', tmp_path / 'a.h5', code=support.DAMAGED)
    assert os.listdir(tmp_path) == ['a']


def writable():
    """The entries of the manifest that are arrays or tables of bcolz, blz or bloscpack, not only of the first description."""
    return [entry for entry in manifest(FIXTURES, False) if 'object' not in entry['path'] and entry['kind'] != 'blz-nested']


def documents(folder):
    """{path: JSON} of the documents below a folder, but for the sizes in memory, which nobody can know."""
    found = {}
    for path, data in support.tree(folder).items():
        if '.blp' in path or '.bin' in path:
            continue
        value = json.loads(data.decode() or '{}')
        if path.endswith('sizes'):
            del value['cbytes']
        found[path.replace('meta/attributes', '__attrs__')] = json.dumps(value)
    return found


def read_with_the_original(path):
    """{name: array} as bcolz or bloscpack reads it."""
    if os.path.isfile(path):
        return {'array': bloscpack.unpack_ndarray_from_file(str(path))}
    opened = bcolz.open(str(path), mode='r')
    if isinstance(opened, bcolz.ctable):
        return {name: opened[name][:] for name in opened.names}
    return {'array': opened[:]}


@needs_fixtures
@needs_decoder
@pytest.mark.parametrize('entry', writable(), ids=name_of)
def test_the_way_back(entry, tmp_path):
    """An HDF5 file gives back what it was made of: documents as they were, chunks of the same rows, the same elements."""
    source, hdf5, back = os.path.join(FIXTURES, entry['path']), tmp_path / 'a.h5', tmp_path / 'back'
    h5bridge('to-hdf5', source, hdf5)
    assert 'equal' in h5bridge('verify', source, hdf5).stderr
    h5bridge('verify', hdf5, source)
    assert files_of(hdf5) == files_of(source)
    h5bridge('unpack', hdf5, back)
    assert files_of(back) == files_of(source)
    if os.path.isdir(source):
        assert os.path.isdir(back)
        expected = documents(source)
        # the first description had neither these nor attributes in all arrays
        found = {name: text for name, text in documents(back).items() if name in expected or text != '{}'}
        assert found == expected
        if 'doc' not in entry['path'] and 'seed' not in entry['path'] and 'stale' not in entry['path']:
            chunks = {name for name in support.tree(source) if '.blp' in name}
            assert {name for name in support.tree(back) if '.blp' in name} == chunks
        loaded = decoder('blz').load(str(back))[1]
        loaded = loaded if isinstance(loaded, dict) else {'array': loaded}
        assert {name: sha256(array.tobytes()) for name, array in loaded.items()} == files_of(source)
    else:
        header, metadata, chunks = decoder('blz').blpk(back.read_bytes())
        data = b''.join(chunks)
        assert (header['version'] if isinstance(header, dict) and 'version' in header else 3) == 3
        assert {'array': sha256(data)} == files_of(source) or len(data) > entry['expect'].get('nbytes', 0)
    # every other format has the same
    for kind in ['blz', 'bcolz'] + ([] if 'columns' in entry['expect'] else ['bloscpack']):
        other = tmp_path / kind
        h5bridge('pack', source if kind == 'bcolz' else hdf5, other, '--format', kind, '--compress', 'zstd')
        h5bridge('verify', source, other)
        info = [json.loads(h5bridge('info', '--json', path).stdout)['arrays'] for path in (source, other)]
        if kind != 'bloscpack':
            assert [array['chunk_rows'] for array in info[1]] == [array['chunk_rows'] for array in info[0]]


SAMPLES = {
    'i4': np.arange(300_000, dtype='i4').reshape(-1, 3),
    'u1': (np.arange(100_000) // 7 % 256).astype('u1'),
    'f8': np.linspace(0, 1, 100_003),
    'f2': np.linspace(0, 1, 5_003).astype('f2'),
    'bool': np.arange(10_000) % 3 == 0,
    'S5': np.array([b'a', b'bcd', b'efghi'] * 1000),
    'i8 big-endian': np.arange(50_000, dtype='>i8'),
    'c8': (np.arange(9000) + 1j).astype('c8'),
    'empty': np.zeros((0, 3), 'f4'),
    'noise': np.random.default_rng(5).integers(0, 2**63, 40_000),
    'one': np.array([5.5]),
}


@pytest.mark.parametrize('codec', ['lz4', 'zstd', 'gzip:9'])
@pytest.mark.parametrize('name', SAMPLES)
def test_originals_read_what_is_written(name, codec, tmp_path):
    """Any dataset of an HDF5 file becomes an array that bcolz and bloscpack read."""
    data = SAMPLES[name]
    with h5py.File(tmp_path / 'a.h5', 'w') as f:
        chunks = (1000,) + data.shape[1:] if data.shape[0] > 5000 else None
        f.create_dataset('group/data', data=data, chunks=chunks, compression='gzip' if chunks else None)
        f['group/data'].attrs['unit'] = 'm'
        f['group/data'].attrs['v'] = [1, 2]
    source = str(tmp_path / 'a.h5') + '/group/data'
    for kind in ['bcolz', 'blz', 'bloscpack']:
        out = tmp_path / kind
        h5bridge('pack', source, out, '--format', kind, '--compress', codec)
        h5bridge('verify', source, out)
        h5bridge('verify', out, source)
        if kind == 'blz' or kind == 'bloscpack' and data.size == 0:
            continue          # blz needs Python 3.6; bloscpack has no arrays without elements
        [(_, found)] = read_with_the_original(out).items()
        assert found.shape == data.shape and found.dtype == data.dtype.newbyteorder('=')
        assert np.array_equal(found, data)
        if kind == 'bcolz':
            attrs = bcolz.open(str(out), mode='r').attrs
            assert attrs['unit'] == 'm' and attrs['v'] == [1, 2]
            opened = bcolz.open(str(out), mode='a')
            opened.append(data[:2])
            opened.flush()
            assert len(bcolz.open(str(out), mode='r')) == len(data) + len(data[:2])


def test_bcolz_there_and_back(tmp_path):
    """What the installed bcolz writes, array and table, comes back as documents and elements that it reads."""
    array = bcolz.carray(SAMPLES['i4'], rootdir=str(tmp_path / 'a'), chunklen=1000, dflt=7, cparams=bcolz.cparams(3, 2, 'zstd'))
    array.attrs['limit'] = float('inf')
    array.flush()
    table = bcolz.ctable([SAMPLES['f8'], np.arange(100_003)], names=['x', 'y'], rootdir=str(tmp_path / 't'))
    table.attrs['title'] = 'tëst'
    table.flush()
    for name in 'at':
        for words in [[], ['--compress', 'keep'], ['--compress', 'zstd']]:
            h5bridge('to-hdf5', tmp_path / name, tmp_path / 'x.h5', '--overwrite', *words)
            h5bridge('unpack', tmp_path / 'x.h5', tmp_path / 'back', '--overwrite')
            h5bridge('verify', tmp_path / name, tmp_path / 'back')
            assert documents(tmp_path / 'back') == documents(tmp_path / name)
            found, expected = [read_with_the_original(tmp_path / path) for path in ('back', name)]
            assert list(found) == list(expected)
            assert all(np.array_equal(found[column], expected[column]) for column in expected)
    assert bcolz.open(str(tmp_path / 'back'), mode='r').attrs['title'] == 'tëst'


@pytest.mark.parametrize('dtype, dflt, expected', [
    ('i4', 7, 7), ('>i2', -3, -3), ('f8', 0.5, 0.5), ('f2', 1.5, 1.5), ('?', True, True), ('S3', 'ab', b'ab'), ('u1', 255, 255),
    ('f4', float('nan'), float('nan')), ('U3', 'é', 'é'.encode())])
def test_defaults_are_fill_values(dtype, dflt, expected, tmp_path):
    data = np.zeros(10, dtype)
    array = bcolz.carray(data, rootdir=str(tmp_path / 'a'), chunklen=4, dflt=np.array(dflt, dtype)[()])
    array.flush()
    storage = json.loads((tmp_path / 'a' / 'meta' / 'storage').read_text())
    if storage['dflt'] != dflt:
        # bcolz itself writes no other defaults than numbers
        storage['dflt'] = dflt
        (tmp_path / 'a' / 'meta' / 'storage').write_text(json.dumps(storage))
    for words in [[], ['--compress', 'keep']]:
        h5bridge('to-hdf5', tmp_path / 'a', tmp_path / 'a.h5', '--overwrite', *words)
        with h5py.File(tmp_path / 'a.h5', 'r+') as f:
            assert np.array_equal(f['array'].fillvalue, expected) or f['array'].fillvalue != f['array'].fillvalue
            assert sha256(f['array'][:].astype(dtype).tobytes()) == sha256(data.tobytes())
            # rows 10 and 11 are in the last chunk that was written
            f['array'].resize((14,))
            grown = f['array'][10:]
        assert len(grown) == 4 and (np.all(grown == expected) or np.all(np.isnan(grown)))


@needs_fixtures
@pytest.mark.parametrize('entry', writable(), ids=name_of)
def test_kept_chunks(entry, tmp_path):
    """Chunks that HDF5's Blosc filter can read are in the file byte for byte; h5py reads all."""
    source, hdf5 = os.path.join(FIXTURES, entry['path']), tmp_path / 'a.h5'
    summary = json.loads(h5bridge('to-hdf5', '--json', source, hdf5, '--compress', 'keep').stdout)
    assert [plugin['id'] for plugin in summary['plugins']] == [BLOSC]
    h5bridge('verify', source, hdf5)
    stored = b''.join(support.tree(source).values()) if os.path.isdir(source) else open(source, 'rb').read()
    with h5py.File(hdf5) as f:
        for name, expect in expected(entry).items():
            compare(f[name], expect)
            dataset = f[name].id
            creation = dataset.get_create_plist()
            if 0 in f[name].chunks or not f[name].size:
                continue
            [(number, _, parameters, _)] = [creation.get_filter(i) for i in range(creation.get_nfilters())]
            assert number == BLOSC and parameters[:2] == (2, 2) and len(parameters) == 7
            assert parameters[3] == np.prod(f[name].chunks) * f[name].dtype.itemsize
            count = dataset.get_num_chunks()
            chunks = [dataset.read_direct_chunk(dataset.get_chunk_info(i).chunk_offset)[1] for i in range(count)]
            kept = [chunk in stored for chunk in chunks]
            rows = f[name].shape[0]
            if (expect.get('dtype') and np.dtype(numpy_type(expect['dtype'])).kind not in 'U' and '>' not in str(expect['dtype'])
                    and entry['kind'] not in ('bloscpack', 'doc') and os.path.isdir(source)
                    and 'order' not in expect and f[name].chunks[0] == expect.get('chunklen')):
                whole = rows // f[name].chunks[0]
                assert all(kept[:whole]), kept
                assert not any(kept[whole:])
    # and back: the chunks are decoded here
    h5bridge('unpack', hdf5, tmp_path / 'back')
    h5bridge('verify', source, tmp_path / 'back')


def test_keep_is_for_arrays(tmp_path):
    demo = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
    assert 'keep' in h5bridge('to-hdf5', demo, tmp_path / 'a.h5', '--compress', 'keep', code=support.USAGE).stderr
    h5bridge('pack', demo, tmp_path / 'a.sion', '--format', 'sion')
    h5bridge('to-hdf5', tmp_path / 'a.sion', tmp_path / 'a.h5', '--compress', 'keep', code=support.USAGE)
    assert os.listdir(tmp_path) == ['a.sion']


def test_verify_names_the_element(tmp_path):
    data = SAMPLES['i4'].copy()
    bcolz.carray(data, rootdir=str(tmp_path / 'a'), chunklen=1000).flush()
    data[77_001, 2] ^= 1 << 20
    with h5py.File(tmp_path / 'b.h5', 'w') as f:
        f['other'] = data
        f['short'] = data[:-1]
        f['float'] = data.astype('f4')
    for left, right in [('a', 'b.h5/other'), ('b.h5/other', 'a')]:
        process = h5bridge('verify', '--json', tmp_path / left, str(tmp_path / right), code=support.DIFFERENT)
        [difference] = json.loads(process.stdout)['differences']
        assert difference['index'] == [77001, 2]
    for name in ['short', 'float']:
        process = h5bridge('verify', '--json', tmp_path / 'a', str(tmp_path / 'b.h5') + '/' + name, code=support.DIFFERENT)
        [difference] = json.loads(process.stdout)['differences']
        assert difference['index'] is None and 'int32' in difference['left']
    h5bridge('verify', tmp_path / 'a', tmp_path / 'b.h5', code=support.USAGE)
    h5bridge('verify', tmp_path / 'a', str(tmp_path / 'b.h5') + '/none', code=support.DAMAGED)


def test_targets_are_whole_or_missing(tmp_path):
    """A source that ends early leaves nothing; what is there is replaced only when asked for, and only arrays."""
    bcolz.carray(SAMPLES['i4'], rootdir=str(tmp_path / 'a'), chunklen=1000).flush()
    os.truncate(tmp_path / 'a' / 'data' / '__50.blp', 40)
    for words in [['pack', tmp_path / 'a', tmp_path / 'b', '--format', 'bcolz'], ['to-hdf5', tmp_path / 'a', tmp_path / 'b'],
                  ['to-hdf5', tmp_path / 'a', tmp_path / 'b', '--compress', 'keep'],
                  ['pack', tmp_path / 'a', tmp_path / 'b', '--format', 'bloscpack']]:
        message = h5bridge(*words, code=support.DAMAGED).stderr
        assert '__50.blp' in message and message.count('\n') == 1
        assert os.listdir(tmp_path) == ['a']
    os.remove(tmp_path / 'a' / 'data' / '__50.blp')
    assert '__50.blp is missing' in h5bridge('digest', tmp_path / 'a', code=support.DAMAGED).stderr
    bcolz.carray(SAMPLES['u1'], rootdir=str(tmp_path / 'c')).flush()
    h5bridge('pack', tmp_path / 'c', tmp_path / 'd', '--format', 'bcolz')
    h5bridge('pack', tmp_path / 'c', tmp_path / 'd', '--format', 'bcolz', code=support.EXISTS)
    h5bridge('pack', tmp_path / 'c', tmp_path / 'd', '--format', 'blz', '--overwrite')
    (tmp_path / 'precious').mkdir()
    (tmp_path / 'precious' / 'file').write_text('x')
    h5bridge('pack', tmp_path / 'c', tmp_path / 'precious', '--format', 'blz', '--overwrite', code=support.EXISTS)


def test_ls_and_verify_of_one(tmp_path):
    bcolz.carray(SAMPLES['i4'], rootdir=str(tmp_path / 'a'), chunklen=1000).flush()
    lines = h5bridge('ls', tmp_path / 'a').stdout.splitlines()
    assert len(lines) == 101 and 'int32' in lines[0] and '__99.blp' in lines[-1]
    document = json.loads(h5bridge('ls', '--json', tmp_path / 'a').stdout)
    assert [chunk['file'] for chunk in document['chunks']] == ['__%d.blp' % n for n in range(100)]
    assert sum(chunk['size'] for chunk in document['chunks']) == SAMPLES['i4'].nbytes
    assert all(chunk['stored_bytes'] + 16 == os.path.getsize(tmp_path / 'a' / 'data' / chunk['file'])
               for chunk in document['chunks'])
    h5bridge('verify', tmp_path / 'a')
    h5bridge('pack', tmp_path / 'a', tmp_path / 'a.blp', '--format', 'bloscpack')
    assert len(json.loads(h5bridge('ls', '--json', tmp_path / 'a.blp').stdout)['chunks']) == 100
    assert 'no checksums' not in h5bridge('verify', tmp_path / 'a.blp').stderr
    data = bytearray((tmp_path / 'a.blp').read_bytes())
    data[-100] ^= 1
    (tmp_path / 'a.blp').write_bytes(data)
    assert 'chunk 99' in h5bridge('verify', tmp_path / 'a.blp', code=support.DAMAGED).stderr


@needs_fixtures
@pytest.mark.parametrize('column', ['../out', '..', '/tmp/x', '.', 'a/b'])
def test_names_do_not_lead_out_of_the_target(column, tmp_path):
    """The list of columns of an HDF5 file is no path."""
    h5bridge('to-hdf5', os.path.join(FIXTURES, 'btable_basic'), tmp_path / 'a.h5')
    with h5py.File(tmp_path / 'a.h5', 'r+') as f:
        names = list(f.attrs['columns'])
        if column == 'a/b':
            f['a/b'] = f[names[0]]
        f.attrs['columns'] = [column] + names[1:]
    (tmp_path / 'to').mkdir()
    code = support.UNSUPPORTED if column == 'a/b' else support.DAMAGED
    h5bridge('unpack', tmp_path / 'a.h5', tmp_path / 'to' / 'b', code=code)
    assert sorted(os.listdir(tmp_path)) == ['a.h5', 'to'] and os.listdir(tmp_path / 'to') == []


@needs_fixtures
@pytest.mark.parametrize('change', ['dtype', 'storage', 'attributes', 'type'])
def test_hdf5_files_that_lie(change, tmp_path):
    h5bridge('to-hdf5', os.path.join(FIXTURES, 'barray_i4_lz4'), tmp_path / 'a.h5')
    with h5py.File(tmp_path / 'a.h5', 'r+') as f:
        attrs = f['array'].attrs
        if change == 'dtype':
            attrs['blz_dtype'] = 'int64'
        elif change == 'type':
            attrs['blz_dtype'] = 'nonsense'
        else:
            attrs['blz_%s_json' % change] = '{"a": '
    message = h5bridge('unpack', tmp_path / 'a.h5', tmp_path / 'b', code=support.DAMAGED).stderr
    assert 'blz_' in message and os.listdir(tmp_path) == ['a.h5']


@needs_fixtures
def test_every_flipped_byte_of_chunks_with_checksums(tmp_path):
    """Every byte of every chunk: the chunk is named."""
    data = open(os.path.join(FIXTURES, 'blpk_v2_adler32.blp'), 'rb').read()
    entries = json.loads(h5bridge('ls', '--json', os.path.join(FIXTURES, 'blpk_v2_adler32.blp')).stdout)['chunks']
    starts = [int.from_bytes(data[32 + 8 * n:40 + 8 * n], 'little') for n in range(len(entries))]
    step = max(sum(chunk['stored_bytes'] for chunk in entries) // 400, 1)
    for number, (start, chunk) in enumerate(zip(starts, entries)):
        for at in range(start, start + chunk['stored_bytes'] + 4, step):
            changed = bytearray(data)
            changed[at] ^= 1
            (tmp_path / 'a.blp').write_bytes(changed)
            message = h5bridge('digest', tmp_path / 'a.blp', code=support.DAMAGED).stderr
            assert 'chunk %d' % number in message or at < start + 16, message


def test_many_small_chunks(tmp_path):
    """Thousands of files are not all open at a time, and opening an array does not look at them."""
    array = bcolz.carray(np.arange(4, dtype='i4'), rootdir=str(tmp_path / 'a'), chunklen=4)
    array.flush()
    for number in range(1, 5000):
        os.link(tmp_path / 'a' / 'data' / '__0.blp', tmp_path / 'a' / 'data' / ('__%d.blp' % number))
    (tmp_path / 'a' / 'meta' / 'sizes').write_text('{"shape": [20000]}')
    limited = ['sh', '-c', 'ulimit -n 400 && exec "$@"', 'sh', support.H5BRIDGE]
    for words in [['verify', tmp_path / 'a'], ['to-hdf5', tmp_path / 'a', tmp_path / 'a.h5', '--compress', 'keep'],
                  ['verify', tmp_path / 'a', tmp_path / 'a.h5']]:
        subprocess.run(limited + [str(word) for word in words], check=True, capture_output=True)
    with h5py.File(tmp_path / 'a.h5') as f:
        assert np.array_equal(f['array'][:], np.tile(np.arange(4), 5000))
    trace = shutil.which('strace')
    if trace:
        calls = subprocess.run([trace, '-f', '-c', support.H5BRIDGE, 'info', tmp_path / 'a'], capture_output=True, text=True)
        assert 'getdents64' not in calls.stderr


def test_bloscpack_array_without_axes(tmp_path):
    """numpy's arrays of shape () are one element; bloscpack writes `"shape": []`."""
    with h5py.File(tmp_path / 'x.h5', 'w') as f:
        f['data'] = [4.5]
    h5bridge('pack', tmp_path / 'x.h5' / 'data', tmp_path / 'x.blp', '--format', 'bloscpack')
    stored = bytearray((tmp_path / 'x.blp').read_bytes())
    at = stored.index(b'"shape": [1]')
    stored[at:at + 12] = b'"shape": [ ]'
    start, room = 64, struct.unpack_from('<I', stored, 48)[0]
    size = struct.unpack_from('<I', stored, 52)[0]
    struct.pack_into('<I', stored, start + room, zlib.adler32(stored[start:start + size]))
    (tmp_path / 'zero.blp').write_bytes(stored)
    h5bridge('to-hdf5', tmp_path / 'zero.blp', tmp_path / 'zero.h5')
    with h5py.File(tmp_path / 'zero.h5') as f:
        found = [f[name][()] for name in f if isinstance(f[name], h5py.Dataset)]
        assert np.ravel(found).tolist() == [4.5]
