"""Containers that are damaged, or made to do harm: clear errors that say where, and nothing outside the target."""
import os
import shutil
import struct

import h5py
import pytest

import containers
import support
from containers import HEADER, make_multifile, make_multihdf5
from support import h5bridge
from test_containers import DEMO, FORMS

# Written by casacore: table.f0, table.f0_TSM1, table.f1, table.f1i in a table.mf
SOURCE = os.path.join(support.TESTDATA, 'multifile', 'm5', 't.tab')

EVIL = ['../../etc/passwd', '../evil', '/tmp/evil', '/etc/passwd', '..', '.', 'a/b', 'a/../../../evil']


@pytest.fixture(scope='module')
def plain():
    """{name: bytes} of a table."""
    return containers.files(SOURCE)


def refuse(tmp_path, packed, *words, verbs=('ls', 'verify', 'unpack', 'digest')):
    """Each verb ends with an error that has all of these words, and makes nothing."""
    target, around = tmp_path / 'out', listing(tmp_path)
    for verb in verbs:
        options = {'verify': ['--bytes', packed], 'unpack': [packed, target]}.get(verb, [packed])
        process = h5bridge(verb, *options, code=support.DAMAGED)
        said = process.stdout + process.stderr
        assert 'panicked' not in said
        for word in words:
            assert word in said, '%s does not say %r: %s' % (verb, word, said[-500:])
        assert listing(tmp_path) == around and 'evil' not in os.listdir('/tmp')


def listing(folder):
    return sorted(os.path.join(where, name) for where, folders, names in os.walk(folder) for name in folders + names)


# ---- cut off ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('form', FORMS)
def test_cut_containers(form, tmp_path):
    """However little is missing: all blocks that are in use are whole, as casacore has it, and HDF5 knows its end."""
    packed = tmp_path / 'packed'
    h5bridge('pack', DEMO, packed, *FORMS[form])
    container = packed if packed.is_file() else next(packed.glob('table.mf*'))
    content = container.read_bytes()
    # the seal of a MultiHDF5 is behind the end that the superblock knows
    end = len(content) if 'multifile' in form else struct.unpack_from('<q', content, 28 if content[8] else 40)[0]
    for there in (0, 7, 127, len(content) // 100, len(content) // 2, len(content) * 9 // 10, end - 600, end - 1):
        container.write_bytes(content[:there])
        words = ['at byte' if 'multifile' in form else 'truncated file'] if there >= 128 else []
        refuse(tmp_path, packed, *words)
    for there in {end + 1, len(content) - 36, len(content) - 1} if end < len(content) else ():
        container.write_bytes(content[:there])
        refuse(tmp_path, packed, 'byte %d: ' % end, 'seal', verbs=['verify'])
        h5bridge('unpack', packed, tmp_path / 'x')
        shutil.rmtree(tmp_path / 'x')
    container.write_bytes(content)
    h5bridge('verify', '--bytes', packed, DEMO)


def test_casacores_containers_cut(tmp_path):
    """Those of casacore have whole blocks, too; without a byte of the last one casacore cannot read them either."""
    packed = tmp_path / 'packed'
    shutil.copytree(SOURCE, packed)
    container = packed / 'table.mf'
    content = container.read_bytes()
    block = struct.unpack_from('>q', content, 40)[0]
    assert len(content) == block * struct.unpack_from('>q', content, 48)[0]
    last = len(content) // block - 1
    for there in range(128, len(content), 37):
        container.write_bytes(content[:there])
        refuse(tmp_path, packed, 'table.mf: ', 'at byte', verbs=['ls', 'unpack'])
    container.write_bytes(content[:-1])
    refuse(tmp_path, packed, 'block %d of %d bytes is at byte %d' % (last, block, last * block))


# ---- MultiFile -------------------------------------------------------------------------------------------------------

def multifile(tmp_path, plain, single, **damage):
    """A table whose files are in a MultiFile that Python made, or which is one."""
    packed = tmp_path / 'packed'
    inside = {name: content for name, content in plain.items() if single or name.startswith('table.f')}
    bytes_of = make_multifile(list(inside.items()), block=1024, **damage)
    if single:
        packed.write_bytes(bytes_of)
    else:
        shutil.copytree(SOURCE, packed)
        (packed / 'table.mf').write_bytes(bytes_of)
    return packed


SINGLE = pytest.mark.parametrize('single', [False, True], ids=['table', 'single'])


@SINGLE
@pytest.mark.parametrize('crc', [None, {}], ids=['plain', 'crc'])
def test_multifile_as_python_makes_it(single, crc, plain, tmp_path):
    """So that what the damage below does is due to the damage."""
    packed = multifile(tmp_path, plain, single, crc=crc)
    h5bridge('verify', '--bytes', packed)
    h5bridge('unpack', packed, tmp_path / 'out')
    # in a single file the plain table.dat is taken as it is
    assert containers.files(tmp_path / 'out') == plain


@SINGLE
@pytest.mark.parametrize('damage,words', [
    ({'index': {'table.f0': [99]}}, ['blocks of a file: block 99, but there are blocks 1 to ']),
    ({'index': {'table.f0': [0]}}, ['blocks of a file: block 0, but there are blocks 1 to ']),
    ({'index': {'table.f0': [1 << 60]}}, ['block 1152921504606846976, but there are']),
    ({'index': {'table.f0': [-3]}}, ['-3 where the first block number is expected']),
    ({'index': {'table.f0': [1, -(1 << 62)]}}, ['4611686018427387904 blocks after block 1 exceed the container']),
    ({'index': {'table.f0': [1, -2, 1, -2, 1, -2, 1, -2, 1, -2, 1, -2]}}, ['more than ', 'blocks, but the container has no more']),
    ({'index': {'table.f0': [1], 'table.f1': [1]}}, ['block 1 at byte 1024: belongs to "table.', 'and to "table.']),
    ({'free': [1]}, ['block 1 at byte 1024: belongs to "table.', 'and to "free blocks"']),
    ({'free': [0]}, ['free blocks: block 0, but there are blocks 1 to ']),
    ({'index': {'table.f0': [1, 2]}}, ['"table.f0": a file of ', 'in 2 blocks of 1024 bytes, where 1 are expected']),
    ({'blocks': 1 << 60}, ['1152921504606846976 blocks of 1024 bytes']),
    ({'crc': {1: 0x1234}}, ['block 1 at byte 1024: CRC 00001234 stored, ']),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else '')
def test_bad_blocks_of_multifile(damage, words, single, plain, tmp_path):
    packed = multifile(tmp_path, plain, single, **damage)
    assert len(plain['table.f0']) <= 1024
    if 'crc' in damage:     # that of a block is compared when it is read
        refuse(tmp_path, packed, *words, verbs=['verify', 'unpack'])
    else:
        refuse(tmp_path, packed, 'packed: ' if single else 'table.mf: ', *words)


@pytest.mark.parametrize('name', EVIL)
@SINGLE
def test_names_that_lead_out_of_multifile(name, single, plain, tmp_path):
    folder = tmp_path / 'folder' / 'deeper'
    folder.mkdir(parents=True)
    packed = multifile(folder, {**plain, 'table.f9': b'root::0:0::/:/bin/sh'}, single)
    container = packed if single else packed / 'table.mf'
    found = containers.multifile(container.read_bytes())
    renamed = [(name if old == 'table.f9' else old, content) for old, content in found.items()]
    container.write_bytes(make_multifile(renamed, block=1024))
    refuse(folder, packed, repr(name).replace("'", '"') + ' cannot be the name of a file', verbs=['unpack'])
    assert listing(tmp_path) == sorted([str(tmp_path / 'folder'), str(folder), *listing(folder)])
    # what is listed is shown, and is no path
    assert name in h5bridge('ls', '--json', packed).stdout


def test_multifiles_in_multifiles_without_end(plain, tmp_path):
    content = make_multifile([('table.dat', plain['table.dat'])], block=1024)
    for _ in range(1000):
        content = make_multifile([('SUB', content)])
    (tmp_path / 'packed').write_bytes(make_multifile([('SUB', content), *plain.items()], block=1024))
    refuse(tmp_path, tmp_path / 'packed', 'SUB: containers are nested too deeply', 'containers', verbs=['ls', 'verify', 'unpack'])


# ---- MultiHDF5 -------------------------------------------------------------------------------------------------------

def multihdf5(tmp_path, plain, change=lambda file: None, **how):
    """A single file that h5py made."""
    with h5py.File(tmp_path / 'packed', 'w', libver=how.pop('libver', 'earliest')) as file:
        make_multihdf5(file, plain, **how)
        change(file)
    return tmp_path / 'packed'


def patch(path, old, new):
    """Puts NEW in the place of bytes that are there once."""
    content = path.read_bytes()
    assert content.count(old) == 1 and len(old) == len(new)
    path.write_bytes(content.replace(old, new))


def address(path, name):
    with h5py.File(path) as file:
        return file[name]['FileData'].id.get_chunk_info(0).byte_offset


@pytest.mark.parametrize('libver', ['earliest', 'latest'])
def test_multihdf5_as_python_makes_it(libver, plain, tmp_path):
    packed = multihdf5(tmp_path, plain, libver=libver)
    h5bridge('unpack', packed, tmp_path / 'out')
    assert containers.files(tmp_path / 'out') == plain


def test_checksums_of_multihdf5(plain, tmp_path):
    packed = multihdf5(tmp_path, plain, fletcher32=True)
    at = address(packed, 'table.f0')
    content = bytearray(packed.read_bytes())
    content[at + 5] ^= 1
    packed.write_bytes(content)
    refuse(tmp_path, packed, 'table.f0', '/table.f0/FileData: chunk 0 at byte %d' % at, 'checksum', verbs=['verify', 'unpack'])


@pytest.mark.parametrize('there', [1 << 40, (1 << 63) + 8, (1 << 64) - 600])
def test_chunks_of_multihdf5_that_are_nowhere(there, plain, tmp_path):
    packed = multihdf5(tmp_path, plain)
    at = address(packed, 'table.f0')
    patch(packed, struct.pack('<Q', at), struct.pack('<Q', there))
    refuse(tmp_path, packed, 'table.f0', '/table.f0/FileData: ')


@pytest.mark.parametrize('name', EVIL)
def test_names_that_lead_out_of_multihdf5(name, plain, tmp_path):
    folder = tmp_path / 'folder' / 'deeper'
    folder.mkdir(parents=True)
    packed = multihdf5(folder, {**plain, name: b'root::0:0::/:/bin/sh'} if name != '.' else plain)
    if name == '.':
        with h5py.File(packed, 'r+') as file:
            header = file[HEADER].attrs
            names, sizes = [*header['names'], '.'], [*header['sizes'], 0]
            header.create('names', names, dtype=h5py.string_dtype('ascii'))
            header.create('sizes', sizes, dtype='<i8')
    refuse(folder, packed, repr(name).replace("'", '"') + ' cannot be the name of a file', verbs=['unpack'])
    assert listing(tmp_path) == sorted([str(tmp_path / 'folder'), str(folder), *listing(folder)])
    h5bridge('ls', packed, code=None)


def hard_link(file):
    """Two files that are one."""
    del file['table.f1']
    file['table.f1'] = file['table.f0']


def shared_data(file):
    del file['table.f1/FileData']
    file['table.f1/FileData'] = file['table.f0/FileData']


@pytest.mark.parametrize('change', [hard_link, shared_data])
def test_bytes_of_two_files_of_multihdf5(change, plain, tmp_path):
    packed = multihdf5(tmp_path, plain, change)
    refuse(tmp_path, packed, ': 2 links lead to it', '/table.f')


def nest(file, depth):
    group = file
    for _ in range(depth):
        group = group.create_group('SUB')
        make_multihdf5(group, {}, nested=['SUB'])
    make_multihdf5(group.create_group('SUB'), {})


def circle(file):
    file['SUB'] = file['/']


def group_of_itself(file):
    group = file.create_group('SUB')
    make_multihdf5(group, {}, nested=['SUB'])
    group['SUB'] = group


@pytest.mark.parametrize('change,words', [
    (lambda file: nest(file, 1000), ['SUB: containers are nested too deeply', 'containers']),
    (circle, ['SUB: ', 'links lead to it']),
    (group_of_itself, ['SUB: ', 'links lead to it'])], ids=['1000', 'circle', 'itself'])
def test_multihdf5_in_multihdf5_without_end(change, words, plain, tmp_path):
    packed = tmp_path / 'packed'
    with h5py.File(packed, 'w') as file:
        make_multihdf5(file, plain, nested=['SUB'])
        change(file)
    refuse(tmp_path, packed, *words, verbs=['ls', 'verify', 'unpack'])


# ---- datasets of HDF5 that are not read --------------------------------------------------------------------------------------

def test_datasets_that_only_libhdf5_reads(tmp_path):
    """The bytes of a file have to be in the dataset itself, and behind filters that h5bridge has."""
    def replaced(name, make):
        packed = tmp_path / name
        h5bridge('pack', DEMO, packed, '--single-file')
        with h5py.File(packed, 'r+') as file:
            group = file['table.dat']
            data = group['FileData'][()]
            del group['FileData']
            make(group, data)
        return packed

    def virtual(group, data):
        group.file['kept'] = data
        layout = h5py.VirtualLayout(data.shape, 'u1')
        layout[...] = h5py.VirtualSource('.', 'kept', data.shape, 'u1')
        group.create_virtual_dataset('FileData', layout)

    for name, make, words in [
        ('filter.h5', lambda group, data: group.create_dataset('FileData', data=data, chunks=data.shape, scaleoffset=0),
         'files in blocks are not read through the filters scaleoffset'),
        ('virtual.h5', virtual, 'in other datasets'),
    ]:
        process = h5bridge('unpack', replaced(name, make), tmp_path / 'out', code=support.UNSUPPORTED)
        assert words in process.stderr and 'table.dat/FileData' in process.stderr, process.stderr
        assert not (tmp_path / 'out').exists()
