"""MultiHDF5 containers as h5py sees them, against those that casacore wrote. docs/formats/table.md 6.1, 6.3, 6.4."""
import hashlib
import os
import subprocess
import tarfile

import h5py
import numpy as np
import pytest

import support

FIXTURES = os.path.join(support.ROOT, '..', 'shared', 'fixtures', 'multihdf5')
HEADER = '__MultiHDF5_Header__'
NAMES = ['igrf_h5', 'observatories_h5', 'tiny_ms_h5']

needs_fixtures = pytest.mark.skipif(not os.path.isdir(FIXTURES), reason='../shared/fixtures/multihdf5 is missing')


def attribute(group, name):
    """What casacore looks at: (type class, size, sign, order, charset, dims)."""
    a = h5py.h5a.open(group.id, name.encode())
    t = a.get_type()
    number = isinstance(t, h5py.h5t.TypeIntegerID)
    return (t.get_class(), t.get_sign() if number else None, t.get_order() if number else None,
            (t.is_variable_str(), t.get_cset(), t.get_strpad()) if not number else t.get_size(), a.shape)


def structure(path):
    """Everything that casacore's reader needs, of all files of a container."""
    with open(path, 'rb') as f:
        superblock = f.read(9)[8]
    with h5py.File(path) as f:
        header = f[HEADER]
        found = {'superblock': superblock, 'userblock': f.userblock_size,
                 'objects': sorted(f), 'attributes': sorted(header.attrs), 'members': list(header),
                 'types': {name: attribute(header, name) for name in sorted(header.attrs)},
                 'names': [str(name) for name in header.attrs['names']], 'sizes': header.attrs['sizes'].tolist(),
                 'blockSize': int(header.attrs['blockSize'])}
        for name in found['names']:
            data = f[name]['FileData']
            plist = data.id.get_create_plist()
            found[name] = (data.shape, data.maxshape, data.chunks, data.dtype.str, data.id.get_type().equal(h5py.h5t.STD_U8LE),
                           plist.get_nfilters(), plist.get_alloc_time(), plist.get_fill_time(), list(f[name]),
                           data[:].ravel()[:dict(zip(found['names'], found['sizes']))[name]].tobytes())
    return found


def containers(folder):
    """The containers below a folder, by relative path."""
    return sorted(os.path.relpath(os.path.join(where, name), folder)
                  for where, _, names in os.walk(folder) for name in names if name == 'table.mfh5')


@pytest.fixture(scope='module', params=NAMES)
def casacores(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp('casacore')
    with tarfile.open(os.path.join(FIXTURES, request.param + '.tar.gz')) as archive:
        archive.extractall(folder, filter='data')
    return str(folder / request.param)


@needs_fixtures
def test_compatible_containers_have_casacores_structure(casacores, tmp_path):
    plain, packed = str(tmp_path / 'plain'), str(tmp_path / 'packed')
    paths = containers(casacores)
    assert paths
    block = structure(os.path.join(casacores, paths[0]))['blockSize']
    support.h5bridge('unpack', casacores, plain)
    assert not containers(plain)
    support.h5bridge('pack', plain, packed, '--format', 'multihdf5', '--block-size', block)
    assert containers(packed) == paths
    for path in paths:
        expected, found = (structure(os.path.join(root, path)) for root in (casacores, packed))
        # casacore lists files in the order it made them
        for one in (expected, found):
            sizes = dict(zip(one.pop('names'), one.pop('sizes')))
            one['sizes'] = sizes
        assert found == expected


@needs_fixtures
def test_single_files_are_pleasant(casacores, tmp_path):
    one = str(tmp_path / 'one.mfh5')
    support.h5bridge('pack', casacores, one, '--format', 'multihdf5', '--single-file')
    with h5py.File(one) as f:
        header = f[HEADER].attrs
        assert header['archive'] == 1
        for name, size in zip(header['names'], header['sizes']):
            if HEADER in f[name]:
                continue
            data = f[name]['FileData']
            assert data.shape == (-(-int(size) // int(header['blockSize'])), header['blockSize'])
            assert hashlib.sha256(data[:].tobytes()[:size]).hexdigest() == f[name].attrs['sha256']
        assert 'table.dat' in f and np.dtype('u1') == f['table.dat/FileData'].dtype


def recipe():
    """The code of docs/containers.md that follows a live container, as it is written there."""
    with open(os.path.join(support.ROOT, 'docs', 'containers.md')) as f:
        blocks = f.read().split('```python\n')[1:]
    code, = (block.split('```')[0] for block in blocks if 'def follow' in block)
    names = {}
    exec(code, names)
    return names['follow']


def test_h5py_follows_a_live_container(tmp_path):
    path = str(tmp_path / 'live.mfh5')
    example = os.path.join(os.path.dirname(support.H5BRIDGE), 'examples', 'live_container')
    if not os.path.exists(example):
        pytest.fail('cargo build --example live_container comes first')
    process = subprocess.Popen([example, path, '1000'], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b'live\n'
        seen, state, commits = 0, [b'', b''], 0
        for files in recipe()(path):
            if files is None:
                continue
            first, second = files['table.f0'], files['table.f1']
            # each state is one of the commits, whole
            assert len(first) == len(second)
            while len(state[0]) < len(first):
                count = 1 + commits * 911 % 9973
                state = [state[0] + bytes([commits & 255]) * count, state[1] + bytes([~commits & 255]) * count]
                commits += 1
            assert [first, second] == state
            seen += 1
            if seen == 50:
                break
    finally:
        process.kill()
        process.wait()
    # a killed writer's container is followed as well
    last = next(files for files in recipe()(path) if files)
    assert len(last['table.f0']) == len(last['table.f1']) >= len(state[0])
