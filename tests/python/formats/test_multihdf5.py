"""MultiHDF5 containers as h5py sees them, against those that casacore wrote. docs/reference/formats/table.md 6.1, 6.3, 6.4."""
import json
import os
import shutil
import subprocess

import blake3
import h5py
import numpy as np
import pytest

import support
from containers import multihdf5

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


# Signatures of HDF5's structures: of the oldest form (groups and chunk indices are version 1 B-trees), and of newer ones
SIGNATURES = [b'TREE', b'SNOD', b'HEAP', b'GCOL'], [b'OHDR', b'OCHK', b'BTHD', b'FRHP', b'FHDB', b'EAHD', b'FAHD', b'FSHD']


def structure(path):
    """Everything that casacore's reader needs, of all files of a container."""
    with open(path, 'rb') as f:
        content = f.read()
    superblock = content[8]
    with h5py.File(path) as f:
        header = f[HEADER]
        plist = f.id.get_create_plist()
        found = {'superblock': superblock, 'userblock': f.userblock_size, 'offsets and lengths': plist.get_sizes(),
                 'space': plist.get_file_space_strategy(), 'end of file': len(content) - f.id.get_filesize(),
                 'signatures': {s for s in SIGNATURES[0] + SIGNATURES[1] if s in content},
                 'order of attributes': header.id.get_create_plist().get_attr_creation_order(),
                 'hdrCounter': int(header.attrs['hdrCounter']), 'other attributes': {
                     name: sorted(f[name].attrs) for name in ['/', *f, *(n + '/FileData' for n in f if n != HEADER)]
                     if name != HEADER},
                 'orders': [plist.get_link_creation_order(), *(group.id.get_create_plist().get_link_creation_order()
                                                               for group in f.values())],
                 'objects': sorted(f), 'attributes': sorted(header.attrs), 'members': list(header),
                 'types': {name: attribute(header, name) for name in sorted(header.attrs)},
                 'names': [str(name) for name in header.attrs['names']], 'sizes': header.attrs['sizes'].tolist(),
                 'blockSize': int(header.attrs['blockSize'])}
        for name in found['names']:
            data = f[name]['FileData']
            plist = data.id.get_create_plist()
            fill = np.ones(1, 'u1')
            plist.get_fill_value(fill)
            found[name] = (plist.get_layout(), plist.fill_value_defined(), int(fill[0]), data.shape, data.maxshape, data.chunks, data.dtype.str, data.id.get_type().equal(h5py.h5t.STD_U8LE),
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
    support.extract(os.path.join(FIXTURES, request.param + '.tar.gz'), folder)
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
    # beside the containers: the same files, and a table.dat that says the same of them
    assert around(packed) == around(casacores)
    for path in paths:
        expected, found = (structure(os.path.join(root, path)) for root in (casacores, packed))
        # casacore lists files in the order it made them
        for one in (expected, found):
            sizes = dict(zip(one.pop('names'), one.pop('sizes')))
            one['sizes'] = sizes
        assert found == expected
        assert not found['signatures'] & set(SIGNATURES[1]) and found['superblock'] == 0


def around(folder):
    """{path: bytes} of what is not in a container, but for the counters of table.lock."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in set(names) - {'table.mfh5', 'table.lock'}:
            with open(os.path.join(where, name), 'rb') as f:
                found[os.path.relpath(os.path.join(where, name), folder)] = f.read()
    return found


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
            assert blake3.blake3(data[:].tobytes()[:size]).hexdigest() == f[name].attrs['blake3']
        assert 'table.dat' in f and np.dtype('u1') == f['table.dat/FileData'].dtype


# ---- what others may write -------------------------------------------------------------------------------------------

def attributes(group, names, sizes, block, kind='<i8', order=('blockSize', 'hdrCounter', 'names', 'sizes')):
    """Sets the attributes of a header as casacore does, or with numbers of another kind."""
    values = {'blockSize': (block, kind), 'hdrCounter': (1, kind), 'sizes': (sizes, kind if kind[2] == '8' else '<i8'),
              'names': (names, h5py.string_dtype('ascii'))}
    for name in order:
        value, dtype = values[name]
        group.attrs.create(name, value, dtype=dtype)


def rows(content, block, width, spare=1, fill=0):
    """The bytes of a file in rows of so many bytes, of which the first hold a block."""
    count = -(-len(content) // block)
    padded = np.full((count + (spare if count else 0), width), fill, 'u1')
    padded.view()[:count, :block] = np.frombuffer(content.ljust(count * block, bytes([fill])), 'u1').reshape(-1, block)
    return padded


def container(path, files, block, *, width=None, spare=1, fill=0, header={}, extra=None, **how):
    """Writes a container with h5py: HOW are options of the file and its datasets."""
    of_file = {name: how.pop(name) for name in ('libver', 'userblock_size', 'fs_strategy', 'track_order') if name in how}
    dataset = {'chunks': (1, block), 'maxshape': (None, width or block), **how}
    with h5py.File(path, 'w', **of_file) as f:
        attributes(f.create_group(HEADER), list(files), [len(content) for content in files.values()], block, **header)
        for name, content in files.items():
            data = rows(content, block, width or block, spare, fill)
            # HDF5 has no chunks for what is empty and cannot grow
            fixed = {**dataset, 'maxshape': None, 'chunks': None} if not data.size and not dataset['maxshape'] else dataset
            f.create_group(name).create_dataset('FileData', data=data, dtype='u1', fillvalue=fill, **fixed)
        if extra:
            extra(f)


def more_objects(f):
    """What casacore does not look at, or reads as part of its record."""
    f[HEADER].attrs['comment'] = np.int32(5)
    f[HEADER].create_group('more').attrs['flag'] = np.int8(1)
    f.create_dataset('picture', data=np.eye(3))
    f.create_group('notes')
    f.attrs['history'] = 'made by hand'
    f['soft'] = h5py.SoftLink('/nowhere')
    f['elsewhere'] = h5py.ExternalLink('/etc/passwd', '/')
    f['table.f0'].attrs['sha256'] = 'of what it was'
    f['table.f0'].create_dataset('Other', data=[1, 2])


def removed_file(f):
    """As casacore leaves it."""
    names, sizes = f[HEADER].attrs['names'], f[HEADER].attrs['sizes']
    f[HEADER].attrs.create('names', ['', *names, ''], dtype=h5py.string_dtype('ascii'))
    f[HEADER].attrs.create('sizes', [0, *sizes, 0], dtype='<i8')


VARIANTS = {
    'as casacore does it': {},
    'superblock 2': {'libver': ('v108', 'v108')},
    'superblock 3': {'libver': ('v110', 'v110')},
    'latest': {'libver': 'latest'},
    'paged': {'fs_strategy': 'page'},
    'paged, latest': {'fs_strategy': 'page', 'libver': 'latest'},
    'userblock': {'userblock_size': 512},
    'userblock, latest': {'userblock_size': 2048, 'libver': 'latest'},
    'contiguous': {'chunks': None, 'maxshape': None},
    'contiguous in a userblock': {'chunks': None, 'maxshape': None, 'userblock_size': 512},
    'chunks of 8 rows': {'chunks': (8, 4096)},
    'chunks of half a row': {'chunks': (1, 2048)},
    'chunks that fit nothing': {'chunks': (3, 1000)},
    'chunks that fit nothing, filtered': {'chunks': (3, 1000), 'compression': 'gzip', 'libver': 'latest'},
    'both axes unlimited': {'maxshape': (None, None)},
    'both axes unlimited, latest': {'maxshape': (None, None), 'libver': 'latest'},
    'wider rows': {'width': 5000, 'chunks': (1, 5000)},
    'wider rows, contiguous': {'width': 5000, 'chunks': None, 'maxshape': None},
    'no spare row': {'spare': 0},
    'many spare rows': {'spare': 9},
    'shuffle and gzip': {'compression': 'gzip', 'shuffle': True},
    'fletcher32': {'fletcher32': True},
    'all filters': {'compression': 'gzip', 'shuffle': True, 'fletcher32': True, 'libver': 'latest'},
    'another fill value': {'fill': 7},
    'big-endian attributes': {'header': {'kind': '>i8'}},
    'attributes of 32 bits': {'header': {'kind': '<i4'}},
    'another order': {'header': {'order': ('sizes', 'names', 'hdrCounter', 'blockSize')}, 'track_order': True},
    'more objects': {'extra': more_objects},
    'more objects, latest': {'extra': more_objects, 'libver': 'latest', 'track_order': True},
    'a removed file': {'extra': removed_file},
}


@pytest.fixture(scope='module')
def casacores_bytes(casacores):
    """A table that casacore wrote, its container, its plain form, what is in it, and its digest."""
    path = os.path.join(casacores, containers(casacores)[0])
    plain = casacores + '-plain'
    support.h5bridge('unpack', casacores, plain)
    with open(path, 'rb') as f:
        files = multihdf5(f.read())
    return casacores, path, plain, files, support.digest(plain)


@needs_fixtures
@pytest.mark.parametrize('casacores', ['observatories_h5'], indirect=True)
@pytest.mark.parametrize('variant', VARIANTS)
def test_files_that_casacore_accepts_are_read(casacores_bytes, variant, tmp_path):
    table, path, plain, files, digest = casacores_bytes
    assert any(len(content) > 3 * 4096 for content in files.values())
    changed = tmp_path / 'changed'
    shutil.copytree(table, changed)
    container(changed / os.path.relpath(path, table), files, 4096, **VARIANTS[variant])
    support.h5bridge('verify', '--bytes', changed, plain)
    support.h5bridge('verify', '--bytes', changed, table)
    assert support.digest(changed) == digest
    document = json.loads(support.h5bridge('ls', '--json', changed).stdout)
    inner, = [nested for nested in document['nested'] if nested['name'] == 'table.mfh5']
    assert {file['name']: file['size'] for file in inner['files']} == {name: len(files[name]) for name in files}
    support.h5bridge('unpack', changed, tmp_path / 'plain')
    assert support.digest(tmp_path / 'plain') == digest


@needs_fixtures
@pytest.mark.parametrize('casacores', ['observatories_h5'], indirect=True)
def test_names_without_a_file_matter_when_they_are_opened(casacores_bytes, tmp_path):
    def extra(f):
        f[HEADER].attrs.create('names', [*f[HEADER].attrs['names'], 'table.f9'], dtype=h5py.string_dtype('ascii'))
        f[HEADER].attrs.create('sizes', [*f[HEADER].attrs['sizes'], 5], dtype='<i8')

    table, path, _, files, digest = casacores_bytes
    changed = tmp_path / 'changed'
    shutil.copytree(table, changed)
    container(changed / os.path.relpath(path, table), files, 4096, extra=extra)
    assert support.digest(changed) == digest
    process = support.h5bridge('unpack', changed, tmp_path / 'plain', code=support.DAMAGED)
    assert 'table.f9' in process.stderr and not (tmp_path / 'plain').exists()


def one_dimensional(f):
    replace(f, np.frombuffer(f['table.f0/FileData'][...].tobytes(), 'u1'))


def signed(f):
    replace(f, f['table.f0/FileData'][...].view('i1'))


def words(f):
    replace(f, f['table.f0/FileData'][...].view('<u2'))


def replace(f, data):
    del f['table.f0/FileData']
    f['table.f0'].create_dataset('FileData', data=data)


def no_counter(f):
    del f[HEADER].attrs['hdrCounter']


def many_sizes_of_blocks(f):
    f[HEADER].attrs.create('blockSize', [4096, 4096], dtype='<i8')


def elsewhere(f):
    """Bytes that are in another file."""
    shape = f['table.f0/FileData'].shape
    del f['table.f0/FileData']
    f['table.f0'].create_dataset('FileData', shape, 'u1', external=[('/etc/passwd', 0, h5py.h5f.UNLIMITED)])


def linked(f):
    del f['table.f0/FileData']
    f['table.f0/FileData'] = h5py.ExternalLink('/etc/hosts.h5', '/x')


@needs_fixtures
@pytest.mark.parametrize('casacores', ['observatories_h5'], indirect=True)
@pytest.mark.parametrize('extra,says', [
    (one_dimensional, 'two axes'), (signed, 'type'), (words, 'type'), (no_counter, 'hdrCounter'),
    (many_sizes_of_blocks, 'blockSize'), (elsewhere, 'FileData'), (linked, 'FileData')], ids=lambda x: getattr(x, '__name__', ''))
def test_files_that_casacore_rejects_are_errors(casacores_bytes, extra, says, tmp_path):
    table, path, _, files, _ = casacores_bytes
    changed = tmp_path / 'changed'
    shutil.copytree(table, changed)
    container(changed / os.path.relpath(path, table), files, 4096, extra=extra)
    for verb in (['digest', changed], ['unpack', changed, tmp_path / 'plain']):
        process = support.h5bridge(*verb, code=None)
        assert process.returncode in (support.DAMAGED, support.UNSUPPORTED)
        assert says in process.stdout + process.stderr, process.stdout + process.stderr
    assert not (tmp_path / 'plain').exists()


# ---- live ------------------------------------------------------------------------------------------------------------

def recipe():
    """The code of docs/reference/containers.md that follows a live container, as it is written there."""
    with open(os.path.join(support.ROOT, 'docs', 'reference', 'containers.md')) as f:
        blocks = f.read().split('```python\n')[1:]
    code, = (block.split('```')[0] for block in blocks if 'def follow' in block)
    names = {}
    exec(code, names)
    return names['follow']


def test_kinds_of_hdf5_files_are_told_apart(tmp_path):
    demo = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
    native, one, other, live = (str(tmp_path / name) for name in ('native.h5', 'one.mfh5', 'other.h5', 'live.mfh5'))
    support.h5bridge('to-hdf5', demo, native)
    support.h5bridge('pack', '--single-file', demo, one)
    with h5py.File(other, 'w') as f:
        f['image'] = np.eye(3)
    assert support.digest(native) == support.digest(one) == support.digest(demo)
    support.h5bridge('verify', native, one)
    support.h5bridge('verify', '--bytes', one, demo)
    for path in (native, other):
        for words in (['ls', path], ['unpack', path, tmp_path / 'out'], ['verify', '--bytes', path]):
            assert HEADER in support.h5bridge(*words, code=support.DAMAGED).stderr
    assert 'ctds-hdf5' in support.h5bridge('digest', other, code=support.UNSUPPORTED).stderr
    process = live_writer(live)
    try:
        for number in range(100):
            # while it grows, at any moment of a commit, and when its writer is gone
            listed = json.loads(support.h5bridge('ls', '--json', live).stdout)
            assert [file['name'] for file in listed['files']] == ['table.f0', 'table.f1']
            assert listed['files'][0]['size'] == listed['files'][1]['size']
            if number >= 98:
                assert 'table.dat' in support.h5bridge('digest', live, code=support.DAMAGED).stderr
                process.kill()
                process.wait()
    finally:
        process.kill()
        process.wait()


def live_writer(path):
    """A process that appends to a container."""
    process = subprocess.Popen([os.path.join(support.EXAMPLES, 'live_container'), path], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b'live\n'
    return process


def test_h5py_follows_a_live_container(tmp_path):
    path = str(tmp_path / 'live.mfh5')
    process = live_writer(path)
    try:
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
