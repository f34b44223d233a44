"""BLZ and bcolz arrays and bloscpack files: read against the manifest of the fixtures, into HDF5, and damaged."""
import json
import os
import shutil

import h5py
import numpy as np
import pytest

import support
from support import files_of, h5bridge, manifest, sha256

FIXTURES = os.path.join(support.SHARED, 'fixtures', 'blz')

needs_fixtures = support.needs(FIXTURES)


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
