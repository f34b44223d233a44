"""HDF5 files as other programs write them, and what h5py says of them in the form of h5-read's example `dump`."""

import ctypes
import itertools
import json
import os
import subprocess
import zlib

import h5py
import hdf5plugin
import netCDF4
import numpy as np
from h5py import h5a, h5d, h5f, h5g, h5i, h5l, h5o, h5p, h5s, h5t, h5z

VERSIONS = ('earliest', 'v108', 'v110', 'v112', 'v114', 'latest')
BOUNDS = {
    'earliest': h5f.LIBVER_EARLIEST,
    'v108': h5f.LIBVER_V18,
    'v110': h5f.LIBVER_V110,
    'v112': h5f.LIBVER_V112,
    'v114': h5f.LIBVER_V114,
    'latest': h5f.LIBVER_LATEST,
}
NUMBERS = ('i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8', 'c8', 'c16')
SWAPPED = ('>i2', '>i4', '>i8', '>u4', '>f4', '>f8', '>c8')
# of the library that h5py uses: what h5py has no function for
HDF5 = ctypes.CDLL(h5py.defs.__file__)
HDF5.H5Dcreate2.restype = ctypes.c_int64
ID = ctypes.c_int64
DONT_FILTER_PARTIAL_CHUNKS = 2
MOST = 64 << 20


# What h5py says of a file

ORDERS = {h5t.ORDER_LE: '<', h5t.ORDER_BE: '>', h5t.ORDER_VAX: 'vax'}
CHARSETS = {h5t.CSET_ASCII: 'Ascii', h5t.CSET_UTF8: 'Utf8'}
PADDINGS = {h5t.STR_NULLTERM: 'NullTerminate', h5t.STR_NULLPAD: 'NullPad', h5t.STR_SPACEPAD: 'SpacePad'}
LAYOUTS = {h5d.COMPACT: 'compact', h5d.CONTIGUOUS: 'contiguous', h5d.CHUNKED: 'chunked', h5d.VIRTUAL: 'virtual'}
NESTED = 'nested'


def text(name):
    return name.decode('utf8', 'replace')


def crc(data):
    return f'{zlib.crc32(data):08x}'


def type_name(datatype):
    kind, size = datatype.get_class(), datatype.get_size()
    if kind == h5t.INTEGER:
        return f'{ORDERS[datatype.get_order()]}{"i" if datatype.get_sign() else "u"}{size}'
    if kind == h5t.FLOAT:
        return f'{ORDERS[datatype.get_order()]}f{size}'
    if kind == h5t.BITFIELD:
        return f'{ORDERS[datatype.get_order()]}b{size}'
    if kind == h5t.STRING:
        charset = CHARSETS[datatype.get_cset()]
        return f'vs{charset}' if datatype.is_variable_str() else f's{size}{charset}{PADDINGS[datatype.get_strpad()]}'
    if kind == h5t.COMPOUND:
        names = [text(datatype.get_member_name(i)) for i in range(datatype.get_nmembers())]
        places = [datatype.get_member_offset(i) for i in range(len(names))]
        types = [type_name(datatype.get_member_type(i)) for i in range(len(names))]
        members = [f'{name}@{place}:{kind}' for name, place, kind in zip(names, places, types, strict=True)]
        return f'c{size}{{{",".join(members)}}}'
    if kind == h5t.ARRAY:
        return f'a{list(datatype.get_array_dims())}({type_name(datatype.get_super())})'
    if kind == h5t.ENUM:
        base = datatype.get_super()
        width, order = base.get_size(), 'little' if base.get_order() == h5t.ORDER_LE else 'big'
        values = []
        for i in range(datatype.get_nmembers()):
            value = datatype.get_member_value(i) & ((1 << 8 * width) - 1)
            values.append(f'{text(datatype.get_member_name(i))}={value.to_bytes(width, order).hex()}')
        return f'e({type_name(base)}){{{",".join(values)}}}'
    if kind == h5t.VLEN:
        return f'v({type_name(datatype.get_super())})'
    if kind == h5t.OPAQUE:
        return f'o{size}{text(datatype.get_tag())}'
    if kind == h5t.REFERENCE:
        return f'r{size}{"o" if datatype.equal(h5t.STD_REF_OBJ) else "r"}'
    return f'o{size}' if kind == h5t.TIME else f'class{int(kind)}'


def has_heap(datatype):
    """Whether the elements are elsewhere in the file."""
    kind = datatype.get_class()
    if kind == h5t.STRING:
        return datatype.is_variable_str()
    if kind == h5t.COMPOUND:
        return any(has_heap(datatype.get_member_type(i)) for i in range(datatype.get_nmembers()))
    if kind == h5t.ARRAY:
        return has_heap(datatype.get_super())
    return kind == h5t.VLEN


def is_nested(datatype):
    """Whether elements of variable length are inside others, or refer to objects."""
    kind = datatype.get_class()
    if kind == h5t.STRING:
        return False
    if kind != h5t.VLEN:
        return has_heap(datatype)
    base = datatype.get_super()
    return has_heap(base) or base.get_class() == h5t.REFERENCE


def checksum(datatype, shape, dtype, read):
    """That of the bytes in the file; of elements of variable length, with their lengths. READ fills an array."""
    if is_nested(datatype):
        return NESTED
    if not has_heap(datatype):
        stored = np.zeros(shape, f'V{datatype.get_size()}')
        if stored.size:
            read(stored, datatype)
        return crc(stored.tobytes())
    objects = np.empty(shape, dtype)
    if objects.size:
        read(objects, None)
    out = bytearray()
    for element in objects.ravel():
        if isinstance(element, str):
            element = element.encode('utf8', 'surrogateescape')
        data = element if isinstance(element, bytes) else np.asarray(element).tobytes()
        out += len(data).to_bytes(4, 'little') + data
    return crc(out)


def attributes(place):
    found, names = {}, []
    h5a.iterate(place, lambda name: names.append(name))
    for name in names:
        attribute = h5a.open(place, name)
        datatype = attribute.get_type()
        if attribute.get_space().get_simple_extent_type() == h5s.NULL:
            found[text(name)] = [type_name(datatype), None, None]
            continue
        shape = attribute.shape
        # h5py has no dtype for some types that it reads as they are stored
        dtype = attribute.dtype if has_heap(datatype) and not is_nested(datatype) else None
        value = checksum(datatype, shape, dtype, lambda array, kind, of=attribute: of.read(array, mtype=kind))
        found[text(name)] = [type_name(datatype), list(shape), value]
    return found


def filters(properties):
    """[number, parameters] of each; h5py gives no more than 16 parameters."""
    found = []
    for i in range(properties.get_nfilters()):
        flags, count, config = ctypes.c_uint(), ctypes.c_size_t(256), ctypes.c_uint()
        values = (ctypes.c_uint * 256)()
        references = [ctypes.byref(number) for number in (flags, count, config)]
        number = HDF5.H5Pget_filter2(
            ID(properties.id), ctypes.c_uint(i), *references[:2], values, ctypes.c_size_t(0), None, references[2]
        )
        found.append([number, list(values[: count.value])])
    return found


def fill_value(properties, datatype):
    stored = ctypes.create_string_buffer(datatype.get_size())
    assert HDF5.H5Pget_fill_value(ID(properties.id), ID(datatype.id), stored) >= 0
    return crc(stored.raw)


def dataset(opened):
    datatype, space, properties = opened.get_type(), opened.get_space(), opened.get_create_plist()
    null = space.get_simple_extent_type() == h5s.NULL
    shape = () if null else space.get_simple_extent_dims()
    most = () if null else space.get_simple_extent_dims(True)
    layout = LAYOUTS[properties.get_layout()]
    # HDF5 2.0 takes what says "unlimited" in a file with lengths of 4 bytes for a number
    no_limit = (1 << 8 * h5i.get_file_id(opened).get_create_plist().get_sizes()[1]) - 1
    found = {
        'kind': 'dataset',
        'dtype': type_name(datatype),
        'shape': list(shape),
        'max': [-1 if extent in (h5s.UNLIMITED, no_limit) else extent for extent in most],
        'layout': layout,
    }
    if null:
        found['null'] = True
    if layout == 'chunked':
        places = chunk_places(opened)
        chunk = properties.get_chunk()
        index = chunk_index(opened)
        found.update(chunk=list(chunk), nchunks=len(places), index=index)
        if index not in LINEAR or all(
            most[axis] != h5s.UNLIMITED and -(-shape[axis] // chunk[axis]) == -(-most[axis] // chunk[axis])
            for axis in range(1, len(shape))
        ):
            listed = ''.join(f'{start} {offset} {size} {mask};' for start, offset, size, mask in places)
            found['chunks'] = crc(listed.encode())
    pipeline = filters(properties)
    if pipeline:
        found['filters'] = pipeline
    has_fill = properties.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED
    if has_fill and datatype.get_class() in (h5t.INTEGER, h5t.FLOAT):
        found['fill'] = fill_value(properties, datatype)
    assert space.get_simple_extent_npoints() * datatype.get_size() <= MOST
    if null:
        found['data'] = crc(b'')
    else:
        dtype = opened.dtype if has_heap(datatype) and not is_nested(datatype) else None
        found['data'] = checksum(
            datatype, shape, dtype, lambda array, kind: opened.read(h5s.ALL, h5s.ALL, array, mtype=kind)
        )
    return found


# Chunk indices by their numbers. In LINEAR ones h5py of HDF5 2.0 names wrong places unless the chunks of all axes but
# the first are as many as they can become; the values tell whether such chunks are where they belong.
INDICES = ('tree 1', 'single', 'implicit', 'fixed array', 'extensible array', 'tree 2')
LINEAR = ('implicit', 'fixed array', 'extensible array')


def chunk_index(opened):
    number = ctypes.c_int()
    assert HDF5.H5Dget_chunk_index_type(ID(opened.id), ctypes.byref(number)) >= 0
    return INDICES[number.value]


def chunk_places(opened):
    found = []

    def note(chunk):
        found.append((list(chunk.chunk_offset), chunk.byte_offset, chunk.size, chunk.filter_mask))

    opened.chunk_iter(note)
    return sorted(found)


def by_h5py(path):
    """{path in the file: what h5py says of a group or dataset}; each object once, by the path that is found first."""
    found, seen = {}, set()

    def visit(where, opened):
        address = h5o.get_info(opened).addr
        if address in seen:
            return
        seen.add(address)
        if isinstance(opened, h5d.DatasetID):
            found[where] = {**dataset(opened), 'attrs': attributes(opened)}
        if not isinstance(opened, h5g.GroupID):
            return
        found[where or '/'] = {'kind': 'group', 'attrs': attributes(opened)}
        for name in sorted(opened):
            kind = opened.links.get_info(name).type
            if kind == h5l.TYPE_EXTERNAL:
                continue
            try:
                inside = h5o.open(opened, name)
            except (KeyError, RuntimeError):
                # a soft link that leads nowhere, or round and round
                if kind == h5l.TYPE_SOFT:
                    continue
                raise
            try:
                shown = name.decode('utf8')
            except UnicodeDecodeError:
                shown = name.decode('latin1')
            visit(f'{where}/{shown}', inside)

    with h5py.File(path, 'r', locking=False) as file:
        visit('', h5o.open(file.id, b'/'))
    return found


def by_dump(program, path):
    """The same by the example of h5-read."""
    process = subprocess.run([program, path], capture_output=True, timeout=300)
    assert process.returncode == 0, (path, process.stderr[-2000:])
    found = {}
    for line in process.stdout.decode('utf8').splitlines():
        described = json.loads(line)
        where = described.pop('path')
        assert where not in found, (path, where)
        found[where] = described
    return found


# Files


def low_level(path, version='earliest', **created):
    """A new file with properties that h5py.File has no words for: sizes, userblock, shared, symbols, chunk_tree."""
    properties, access = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(BOUNDS[version], h5f.LIBVER_LATEST)
    if 'sizes' in created:
        properties.set_sizes(*created['sizes'])
    if 'userblock' in created:
        properties.set_userblock(created['userblock'])
    if 'symbols' in created:
        assert HDF5.H5Pset_sym_k(ID(properties.id), *map(ctypes.c_uint, created['symbols'])) >= 0
    if 'chunk_tree' in created:
        assert HDF5.H5Pset_istore_k(ID(properties.id), ctypes.c_uint(created['chunk_tree'])) >= 0
    indices = created.get('shared', ())
    if indices:
        assert HDF5.H5Pset_shared_mesg_nindexes(ID(properties.id), ctypes.c_uint(len(indices))) >= 0
        for i, (kinds, least) in enumerate(indices):
            numbers = map(ctypes.c_uint, (i, kinds, least))
            assert HDF5.H5Pset_shared_mesg_index(ID(properties.id), *numbers) >= 0
        assert HDF5.H5Pset_shared_mesg_phase_change(ID(properties.id), ctypes.c_uint(10), ctypes.c_uint(5)) >= 0
    return h5py.File(h5f.create(os.fsencode(path), h5f.ACC_TRUNC, fcpl=properties, fapl=access))


def new_dataset(group, name, datatype, shape, maxshape=None, chunk=None, **set_up):
    """A dataset with properties that h5py has no words for, which functions of SET_UP's values set."""
    properties = h5p.create(h5p.DATASET_CREATE)
    if chunk:
        properties.set_chunk(chunk)
    for function, values in set_up.items():
        getattr(properties, function)(*values)
    space = h5s.create_simple(shape, maxshape)
    return h5py.Dataset(h5d.create(group.id, name.encode(), datatype, space, properties))


def write_stored(made, random):
    """Writes random bytes as elements, without conversion."""
    datatype = made.id.get_type()
    size = datatype.get_size()
    stored = np.frombuffer(random.bytes(size * made.size), f'V{size}').reshape(made.shape)
    made.id.write(h5s.ALL, h5s.ALL, stored, mtype=datatype)


def plain(path, version='earliest'):
    """A new file with objects beside which one construct is put."""
    file = h5py.File(path, 'w', libver=version)
    file['plain'] = np.arange(10.0)
    file['plain'].attrs['units'] = 'm'
    file.create_group('z')['later'] = 1
    return file


def attributes_of_many_types(target):
    target.attrs['title'] = 'a title'
    target.attrs['umlaut'] = 'Größe ☃'
    target.attrs['bytes'] = np.bytes_(b'fixed')
    target.attrs['array'] = np.arange(6.0).reshape(2, 3)
    target.attrs['null'] = h5py.Empty('f4')
    target.attrs['empty text'] = ''
    target.attrs['texts'] = ['a', 'bcd', '']
    target.attrs['bool'] = True
    target.attrs['complex'] = 1 + 2j
    target.attrs['swapped'] = np.array([1, 2], '>i4')
    target.attrs['compound'] = np.array((1, 2.5), dtype=[('a', 'i2'), ('b', 'f8')])
    target.attrs.create('sequences', np.array([np.arange(3), np.arange(1)], object), dtype=h5py.vlen_dtype('i2'))
    target.attrs['no elements'] = np.zeros((0, 2))


def numbers_and_texts(group, random):
    elements = random.random(24) * 100
    for kind in NUMBERS + SWAPPED:
        group[kind.replace('>', 'swapped ')] = elements.astype(kind)
    group['bool'] = elements > 50
    group['S1'] = np.full(24, b'x', 'S1')
    group['S7'] = np.array([b'text %d' % i for i in range(24)], 'S7')
    group['V5'] = np.frombuffer(random.bytes(120), 'V5')
    group['scalar'] = 3.5
    group['null'] = h5py.Empty('i4')
    group['scalar text'] = 'a scalar text'
    group['no elements'] = np.zeros((0, 3))
    group['utf8'] = np.array(['x', 'yy', '', 'zzz' * 100], dtype=h5py.string_dtype())
    group['ascii'] = np.array([b'x', b'yy'], dtype=h5py.string_dtype('ascii'))
    group['fixed utf8'] = np.array(['ä'.encode(), b'bc'], dtype=h5py.string_dtype('utf-8', 6))


def compounds_and_references(group, random):
    sequences = group.create_dataset('sequences', (4,), dtype=h5py.vlen_dtype('f4'))
    for i in range(3):
        sequences[i] = np.arange(i * 3)
    group.create_dataset('swapped sequences', (2,), dtype=h5py.vlen_dtype('>i2'))[0] = [1, 2]
    colors = h5py.enum_dtype({'RED': 0, 'GREEN': 1, 'BLUE': 42, 'NONE': -1}, basetype='i2')
    group.create_dataset('enum', data=np.array([0, 1, 42, -1], 'i2'), dtype=colors)
    fields = [('id', 'i4'), ('name', 'S8'), ('at', 'f8', (3,)), ('in', [('x', '>i2'), ('y', 'f4')]), ('flag', '?')]
    rows = np.zeros(5, fields)
    rows['id'], rows['at'] = range(5), random.random((5, 3))
    rows['name'] = [b'row %d' % i for i in range(5)]
    group['compound'] = rows
    with_text = group.create_dataset('nested text', (2,), [('id', 'i4'), ('text', h5py.string_dtype())])
    with_text[0] = (1, 'one')
    arrays = group.create_dataset('array', (3,), dtype=np.dtype(('i4', (2, 3))))
    arrays[:] = np.arange(18).reshape(3, 2, 3)
    references = group.create_dataset('references', (3,), dtype=h5py.ref_dtype)
    references[0], references[1] = group.ref, group['compound'].ref
    regions = group.create_dataset('regions', (2,), dtype=h5py.regionref_dtype)
    regions[0] = group['compound'].regionref[2:5]
    group['named'] = np.dtype('i4')
    group.create_dataset('of named', (3,), dtype=group['named'])[:] = 5
    group['named compound'] = np.dtype(fields)
    group.create_dataset('of named compound', (2,), dtype=group['named compound'])


def layouts_and_filters(group, random):
    elements = random.random((20, 30))
    some, both = {'chunks': (7, 8)}, {'chunks': (3, 7), 'maxshape': (None, None)}
    group['contiguous'] = elements
    group.create_dataset('chunked', data=elements, **some)
    group.create_dataset('filtered', data=elements, compression='gzip', shuffle=True, fletcher32=True, **some)
    group.create_dataset('lzf', data=elements, compression='lzf', **some)
    group.create_dataset('one chunk', data=elements, chunks=(20, 30))
    group.create_dataset('one deflated chunk', data=elements, chunks=(20, 30), compression='gzip')
    group.create_dataset('one unlimited', data=elements, chunks=(3, 30), maxshape=(None, 30))
    group.create_dataset('other unlimited', data=elements, chunks=(3, 7), maxshape=(20, None), compression='gzip')
    group.create_dataset('both unlimited', data=elements, **both)
    group.create_dataset('both unlimited, deflated', data=elements, compression='gzip', **both)
    sparse = group.create_dataset('sparse', (1000, 10), 'i4', chunks=(10, 10), maxshape=(None, 10), fillvalue=-7)
    sparse[500:505] = 3
    group.create_dataset('sparse square', (100, 100), 'i4', chunks=(10, 10), fillvalue=9)[55, 55] = 3
    group.create_dataset('unwritten', (10, 10), 'f8', fillvalue=1.5)
    group.create_dataset('unwritten chunks', (10, 10), 'f8', chunks=(5, 5))
    integers = np.arange(1000, dtype='i4').reshape(10, 100)
    group.create_dataset('scaled integers', data=integers, chunks=(5, 50), scaleoffset=0)
    group.create_dataset('scaled floats', data=elements, scaleoffset=3, **some)


def links(file, group):
    group['soft'] = h5py.SoftLink('/g/contiguous')
    group['dangling'] = h5py.SoftLink('/nowhere')
    group['external'] = h5py.ExternalLink('other.h5', '/x')
    group['hard'] = group['contiguous']
    group['relative'] = h5py.SoftLink('deep/er')
    group['loop'] = file['/']
    ordered = group.create_group('ordered', track_order=True)
    for name in 'zyxwvutsrqponm':
        ordered[name] = 1


def everything(file):
    """Types, layouts, filters, links and scales of dimensions."""
    random = np.random.default_rng(1)
    group = file.create_group('g')
    attributes_of_many_types(file)
    numbers_and_texts(group.create_group('deep/er/still'), random)
    compounds_and_references(group, random)
    layouts_and_filters(group, random)
    links(file, group)
    attributes_of_many_types(group['contiguous'])
    group['contiguous'].attrs['reference'] = group.ref
    group['contiguous'].dims[0].label = 'row'
    group['one unlimited'].make_scale('scale')
    group['contiguous'].dims[0].attach_scale(group['one unlimited'])


def make_versions(folder):
    for version in VERSIONS:
        with h5py.File(folder / f'{version}.h5', 'w', libver=version) as file:
            everything(file)


def make_properties(folder):
    page = {'fs_strategy': 'page', 'fs_page_size': 4096}
    for name, words in {
        'user_block': {'userblock_size': 1024},
        'user_block_latest': {'userblock_size': 512, 'libver': 'latest'},
        'paged': page,
        'paged_persistent': {**page, 'fs_persist': True, 'libver': 'latest'},
        'free_space': {'fs_strategy': 'fsm', 'fs_persist': True, 'libver': 'latest'},
        'aggregated': {'fs_strategy': 'aggregate'},
        'not_aggregated': {'fs_strategy': 'none', 'libver': 'v110'},
        'ordered': {'track_order': True},
        'ordered_latest': {'track_order': True, 'libver': 'latest'},
    }.items():
        with h5py.File(folder / f'{name}.h5', 'w', **words) as file:
            everything(file)
            if name == 'free_space':
                del file['g/filtered']
    with open(folder / 'user_block.h5', 'r+b') as file:
        file.write(b'whatever a program puts here')
    for name, words in {
        'sizes_4_4': {'sizes': (4, 4)},
        'sizes_4_8': {'sizes': (4, 8)},
        'sizes_8_4': {'sizes': (8, 4)},
        'sizes_4_8_latest': {'sizes': (4, 8), 'version': 'latest'},
        'small_nodes': {'symbols': (2, 1), 'chunk_tree': 2},
        'large_nodes': {'symbols': (100, 50), 'chunk_tree': 200, 'userblock': 2048},
    }.items():
        with low_level(folder / f'{name}.h5', **words) as file:
            everything(file)


def make_links(folder, many):
    for version in ('earliest', 'v108', 'latest'):
        with h5py.File(folder / f'many_{version}.h5', 'w', libver=version) as file:
            for i in range(many):
                file[f'd{i:05}'] = np.arange(4) + i
    for version in VERSIONS:
        with h5py.File(folder / f'dense_{version}.h5', 'w', libver=version) as file:
            ordered = file.create_group('ordered', track_order=True)
            for i in range(100):
                ordered.create_group(f'o{i * 7919 % 100}')
                ordered[f's{i}'] = h5py.SoftLink(f'o{i}')
        with h5py.File(folder / f'removed_{version}.h5', 'w', libver=version) as file:
            group = file.create_group('removed')
            for i in range(60):
                group.create_group(f'name {i}')
            for i in range(0, 60, 2 if version == 'v110' else 3):
                del group[f'name {i}']
    with h5py.File(folder / 'deep.h5', 'w') as file:
        group = file
        for _ in range(200):
            group = group.create_group('a')
        group['d'] = 1
        file['up'] = file['a/a']
    with h5py.File(folder / 'loops.h5', 'w') as file:
        file['a'] = h5py.SoftLink('/b')
        file['b'] = h5py.SoftLink('/a')
        file['s'] = h5py.SoftLink('/s/x')
        file.create_group('g')['self'] = h5py.SoftLink('.')
        file['g/d'] = 1
        file['way'] = h5py.SoftLink('/g/self/d')
        file['g/through itself'] = h5py.ExternalLink('loops.h5', '/g/d')
    for version in ('earliest', 'latest'):
        with h5py.File(folder / f'names_{version}.h5', 'w', libver=version) as file:
            for name in ('sp ace', 'täg', '日本', 'dot.', '..x', 'a' * 3000, 'new\nline', 'q"uote', 'back\\slash'):
                file[name] = 1
                file[name].attrs[name[:200]] = 2
            h5g.create(file.id, b'latin\xe9')
            file.attrs.create('latin', np.array([b'caf\xe9'], 'S4'))


def make_attributes(folder):
    for version in VERSIONS:
        with plain(folder / f'many_{version}.h5', version) as file:
            for i in range(60 if version == 'earliest' else 400):
                file['plain'].attrs[f'a{i:05}'] = f'value {i}'
            ordered = file.create_dataset('ordered', data=np.arange(10), track_order=True)
            for i in range(50):
                ordered.attrs[f'b{i * 31 % 50}'] = np.arange(i)
            if version != 'earliest':
                file['z'].attrs['huge'] = np.full(200000, 7, 'u1')
        with plain(folder / f'removed_{version}.h5', version) as file:
            target = file['plain']
            for i in range(100):
                target.attrs[f'a{i}'] = np.arange(i % 40)
                file['z'].attrs[f'x{i}'] = 'y' * i
            for i in range(0, 100, 3):
                del target.attrs[f'a{i}']
            for i in range(0, 100, 2):
                del file['z'].attrs[f'x{i}']
        with plain(folder / f'types_{version}.h5', version) as file:
            attributes_of_many_types(file['z'])
            file['t'] = np.dtype('f4')
            file['plain'].attrs.create('of named type', np.arange(3, dtype='f4'), dtype=file['t'])
            file['e'] = h5py.enum_dtype({'A': 0, 'B': 1})
            file.attrs.create('of named enum', 1, dtype=file['e'])
            file.attrs['reference'] = file['plain'].ref
            file.attrs['region'] = file['plain'].regionref[2:4]


def make_storage(folder):
    for version in VERSIONS:
        with h5py.File(folder / f'compact_{version}.h5', 'w', libver=version) as file:
            for kind in ('i4', '>f8', 'S3'):
                compact = new_dataset(file, kind, h5t.py_create(np.dtype(kind)), (20,), set_layout=(h5d.COMPACT,))
                compact[:] = np.arange(20).astype(kind)
        with h5py.File(folder / f'early_{version}.h5', 'w', libver=version) as file:
            early = {'set_alloc_time': (h5d.ALLOC_TIME_EARLY,)}
            chunked = new_dataset(file, 'chunked', h5t.NATIVE_INT32, (10, 11), chunk=(3, 4), **early)
            chunked[:] = np.arange(110).reshape(10, 11)
            filled = {'set_fill_value': (np.array(4, 'i4'),), **early}
            new_dataset(file, 'unwritten', h5t.NATIVE_INT32, (10,), chunk=(3,), **filled)
            new_dataset(file, 'contiguous', h5t.NATIVE_INT32, (10,), **early)
        with h5py.File(folder / f'resized_{version}.h5', 'w', libver=version) as file:
            square = np.arange(40000).reshape(200, 200)
            shrunk = file.create_dataset('shrunk', data=square, chunks=(30, 50), maxshape=(None, None))
            shrunk.resize((70, 70))
            shrunk.resize((100, 100))
            late = file.create_dataset('late', (50, 60), 'i4', chunks=(7, 11), maxshape=(None, 100))
            late[:] = np.arange(3000).reshape(50, 60)
            late.resize((33, 25))
            late.resize((60, 60))
            masked = file.create_dataset('masked', (20,), 'i4', chunks=(5,), compression='gzip')
            masked.id.write_direct_chunk((0,), np.arange(5, dtype='i4').tobytes(), 1)
            masked[5:] = 3
        with h5py.File(folder / f'fill_{version}.h5', 'w', libver=version) as file:
            for when in (h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_NEVER, h5d.FILL_TIME_IFSET):
                filled = {'set_fill_time': (when,), 'set_fill_value': (np.array(7, 'i4'),)}
                new_dataset(file, f'at {when}', h5t.NATIVE_INT32, (10,), chunk=(4,), **filled)
            fields = [('a', 'i4'), ('b', 'f4')]
            file.create_dataset('compound', (4,), fields, fillvalue=np.array((3, 4.5), fields))
            file.create_dataset('text', (4,), 'S5', fillvalue=b'abc')
            file.create_dataset('swapped', (4,), '>i4', chunks=(3,), fillvalue=1)
            attribute = file.create_dataset('attribute', (100,), 'f4', chunks=(10,), fillvalue=3)
            attribute[:10] = 1
            attribute.attrs['_FillValue'] = np.float32(-999)
            file.create_dataset('no elements', (0,), 'f4', maxshape=(None,), chunks=(5,))
    for version in VERSIONS[2:]:
        with h5py.File(folder / f'edges_{version}.h5', 'w', libver=version) as file:
            properties = h5p.create(h5p.DATASET_CREATE)
            properties.set_chunk((7, 7))
            properties.set_deflate(3)
            assert HDF5.H5Pset_chunk_opts(ID(properties.id), ctypes.c_uint(DONT_FILTER_PARTIAL_CHUNKS)) >= 0
            made = h5d.create(file.id, b'edges', h5t.NATIVE_INT32, h5s.create_simple((20, 20)), properties)
            h5py.Dataset(made)[:] = np.arange(400).reshape(20, 20)


def make_chunk_indices(folder):
    """Indices with several levels, blocks and pages, some of which were never written."""
    random = np.random.default_rng(5)
    for version, deflated in itertools.product(('earliest', 'v110', 'latest'), (False, True)):
        words = {'compression': 'gzip', 'compression_opts': 1} if deflated else {}
        many = 20000 if version == 'earliest' or deflated else 60000
        with h5py.File(folder / f'{version}_{"deflated" if deflated else "plain"}.h5', 'w', libver=version) as file:
            for name, shape, maxshape, chunk, written in (
                ('extensible', (many,), (None,), (7,), [(0, many)]),
                ('extensible, sparse', (140000,), (None,), (1,), [(3, 2), (131050, 20), (139999, 1)]),
                ('extensible, of rows', (600, 7), (None, 9), (2, 3), [(0, 80), (400, 180)]),
                ('extensible, last', (4, 5, 90), (6, 9, None), (2, 2, 3), [(0, 2), (3, 1)]),
                ('fixed', (5000,), (5000,), (1,), [(0, 5000)]),
                ('fixed, sparse', (50000,), (70001,), (1,), [(0, 1), (1023, 2), (9000, 10), (49990, 10)]),
                ('fixed, of rows', (300, 50), (301, 77), (2, 3), [(0, 20), (222, 70)]),
                ('tree', (100, 50), (None, None), (1, 2), [(0, 100)]),
                ('tree, sparse', (400, 50), (None, None), (3, 2), [(7, 4), (399, 1)]),
            ):
                made = file.create_dataset(name, shape, 'u2', chunks=chunk, maxshape=maxshape, fillvalue=7, **words)
                for first, count in written:
                    made[first : first + count] = random.integers(1, 65535, (count, *shape[1:]), 'u2')
            file.create_dataset('single', data=np.arange(12).reshape(3, 4), chunks=(3, 4), **words)
            early = {'set_alloc_time': (h5d.ALLOC_TIME_EARLY,)}
            new_dataset(file, 'implicit', h5t.STD_U16LE, (100,), None, (7,), **early)[:] = np.arange(100)


def narrow(datatype, precision, offset):
    copy = datatype.copy()
    copy.set_precision(precision)
    copy.set_offset(offset)
    return copy


def scaled_integers(file, random, size, signed, swapped):
    kind = np.dtype(f'{">" if swapped else "<"}{"i" if signed else "u"}{size}')
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    native = kind.newbyteorder('=')
    datatype = h5t.py_create(kind)
    for name, elements in {
        'small': random.integers(-20 if signed else 3, 100, 57),
        'full': random.integers(least, most, 57, dtype=native, endpoint=True),
        'constant': np.full(57, 7),
        'bits': np.arange(57) % 2,
    }.items():
        for fill, factor in itertools.product((None, 5), (0, 3 if name == 'bits' else 8 * size)):
            filled = {} if fill is None else {'set_fill_value': (np.array(fill, kind),)}
            scaled = {'set_scaleoffset': (h5z.SO_INT, factor), **filled}
            label = f'scaled {kind.str} {name} {fill} {factor}'
            made = new_dataset(file, label, datatype, (57,), None, (10,), **scaled)
            made.id.write(h5s.ALL, h5s.ALL, elements.astype(kind))
    # HDF5 makes no datasets of types that would fit in half the bytes
    for precision, offset in ((8 * size, 0), (8 * size - 3, 0), (4 * size + 1, 2), (8 * size - 5, 5)):
        bits = narrow(datatype, precision, offset)
        name = f'bits {kind.str} {precision} {offset}'
        made = new_dataset(file, name, bits, (57,), None, (10,), set_filter=(h5z.FILTER_NBIT, 0, ()))
        made.id.write(h5s.ALL, h5s.ALL, random.integers(least, most, 57, dtype=native).astype(kind), mtype=datatype)


def scaled_floats(file, random, size, swapped):
    kind = np.dtype(f'{">" if swapped else "<"}f{size}')
    for name, elements in {
        'random': random.normal(size=57) * 50,
        'constant': np.full(57, 3.3),
        'wide': 10.0 ** random.uniform(-3, 3, 57),
    }.items():
        for factor, fill in itertools.product((0, 1, 3), (None, 2.5)):
            filled = {} if fill is None else {'set_fill_value': (np.array(fill, kind),)}
            scaled = {'set_scaleoffset': (h5z.SO_FLOAT_DSCALE, factor), **filled}
            label = f'scaled {kind.str} {name} {fill} {factor}'
            made = new_dataset(file, label, h5t.py_create(kind), (57,), None, (10,), **scaled)
            made.id.write(h5s.ALL, h5s.ALL, elements.astype(kind))


def compound_bits():
    short = narrow(h5t.STD_I16BE, 9, 5)
    twenty = narrow(h5t.STD_U32LE, 20, 3)
    word = h5t.C_S1.copy()
    word.set_size(3)
    inner = h5t.create(h5t.COMPOUND, 7)
    inner.insert(b'a', 1, short)
    inner.insert(b's', 3, word)
    outer = h5t.create(h5t.COMPOUND, 60)
    for name, place, datatype in (
        (b'i', 0, short),
        (b'u', 3, twenty),
        (b'array', 8, h5t.array_create(twenty, (2, 3))),
        (b'inner', 33, inner),
        (b'inners', 40, h5t.array_create(inner, (2,))),
        (b'f', 54, h5t.IEEE_F32LE),
    ):
        outer.insert(name, place, datatype)
    return {'compound': outer, 'array': h5t.array_create(short, (3,)), 'text': word}


def make_filters(folder):
    """Filters of the library, one file for each family and version."""
    for version in ('earliest', 'latest'):
        random = np.random.default_rng(7)
        with h5py.File(folder / f'integers_{version}.h5', 'w', libver=version) as file:
            for size, signed, swapped in itertools.product((1, 2, 4, 8), (True, False), (False, True)):
                if size > 1 or not swapped:
                    scaled_integers(file, random, size, signed, swapped)
        with h5py.File(folder / f'floats_{version}.h5', 'w', libver=version) as file:
            for size, swapped in itertools.product((4, 8), (False, True)):
                scaled_floats(file, random, size, swapped)
        with h5py.File(folder / f'bits_{version}.h5', 'w', libver=version) as file:
            for name, datatype in compound_bits().items():
                made = new_dataset(file, name, datatype, (57,), None, (10,), set_filter=(h5z.FILTER_NBIT, 0, ()))
                write_stored(made, random)
            small = h5t.IEEE_F32LE.copy()
            small.set_fields(26, 20, 6, 7, 13)
            small.set_offset(7)
            small.set_precision(20)
            small.set_ebias(31)
            made = new_dataset(file, 'small float', small, (57,), None, (10,), set_filter=(h5z.FILTER_NBIT, 0, ()))
            made[:] = random.random(57)
        with h5py.File(folder / f'sums_{version}.h5', 'w', libver=version) as file:
            for count, deflated in itertools.product((1, 2, 3, 7, 8, 721, 722, 1443, 10003), (False, True)):
                words = {**({'set_deflate': (4,)} if deflated else {}), 'set_fletcher32': ()}
                made = new_dataset(file, f'{count} {deflated}', h5t.STD_U8LE, (count,), None, (count,), **words)
                made[:] = random.integers(0, 256, count)
        with h5py.File(folder / f'deflated_{version}.h5', 'w', libver=version) as file:
            all_filters = {'shuffle': True, 'compression': 'gzip', 'fletcher32': True}
            for kind in ('u2', 'f4', '>f8', 'c16', 'S3', 'S7', 'S33'):
                elements = np.frombuffer(random.bytes(np.dtype(kind).itemsize * 500), kind)
                file.create_dataset(kind, data=elements, chunks=(301,), **all_filters)
            file.create_dataset('lzf', data=np.arange(10000) // 7, chunks=(999,), compression='lzf', shuffle=True)
            for level in (0, 1, 9):
                words = {'compression': 'gzip', 'compression_opts': level}
                elements = (random.normal(size=10000) * 3).astype('i2')
                file.create_dataset(f'level {level}', data=elements, chunks=(7777,), **words)
            file.create_dataset('zeros', data=np.zeros(100000, 'i4'), chunks=(50000,), compression='gzip')


def writes_szip():
    """Whether the library that h5py uses has SZIP, and not only to read it."""
    kind = h5z.FILTER_SZIP
    return h5z.filter_avail(kind) and bool(h5z.get_filter_info(kind) & h5z.FILTER_CONFIG_ENCODE_ENABLED)


def make_plugins(folder):
    """Filters that are no part of the library, and SZIP, each beside a dataset that can be read."""
    elements = np.random.default_rng(8).integers(0, 1000, (64, 64), 'i4')
    for name, words in {
        'blosc': hdf5plugin.Blosc(),
        'blosc2': hdf5plugin.Blosc2(),
        'lz4': hdf5plugin.LZ4(),
        'zstd': hdf5plugin.Zstd(),
        'bitshuffle': hdf5plugin.Bitshuffle(),
        'bzip2': hdf5plugin.BZip2(),
        'zfp': hdf5plugin.Zfp(reversible=True),
    }.items():
        with plain(folder / f'{name}.h5') as file:
            file.create_dataset('filtered', data=elements, chunks=(16, 16), **words)
    if writes_szip():
        for name, option in (('neighbours', h5z.SZIP_NN_OPTION_MASK), ('entropy', h5z.SZIP_EC_OPTION_MASK)):
            with plain(folder / f'szip_{name}.h5') as file:
                made = new_dataset(
                    file, 'filtered', h5t.NATIVE_INT32, (64, 64), None, (16, 16), set_szip=(option, 16)
                )
                made[:] = elements


def made_by_library(file, name, symbol, count=2):
    """Makes a dataset of a type for which h5py has no words; not whether the library has no such type."""
    try:
        datatype = ID.in_dll(HDF5, symbol)
    except ValueError:
        return
    space = h5s.create_simple((count,))
    made = HDF5.H5Dcreate2(ID(file.id.id), name.encode(), datatype, ID(space.id), ID(0), ID(0), ID(0))
    assert made >= 0
    HDF5.H5Dclose(ID(made))


def make_types(folder):
    random = np.random.default_rng(9)
    for version in VERSIONS:
        with h5py.File(folder / f'numbers_{version}.h5', 'w', libver=version) as file:
            numbers_and_texts(file, random)
            new_dataset(file, '24 bits', narrow(h5t.STD_I32LE, 24, 0), (3,))[:] = [1, -2, 3]
            new_dataset(file, 'long double', h5t.NATIVE_LDOUBLE, (3,))[:] = [1, 2, 3]
        with h5py.File(folder / f'others_{version}.h5', 'w', libver=version) as file:
            for kind in (h5t.STD_B8LE, h5t.STD_B16BE, h5t.STD_B32LE, h5t.STD_B64BE):
                write_stored(new_dataset(file, f'bits {kind.get_size()}', kind, (5,)), random)
            new_dataset(file, 'time', h5t.UNIX_D32LE, (3,))
            tagged = h5t.create(h5t.OPAQUE, 7)
            tagged.set_tag(b'a tag')
            write_stored(new_dataset(file, 'opaque', tagged, (3,)), random)
            for name, padding in (('space', h5t.STR_SPACEPAD), ('nul', h5t.STR_NULLTERM), ('nuls', h5t.STR_NULLPAD)):
                padded = h5t.C_S1.copy()
                padded.set_size(9)
                padded.set_strpad(padding)
                write_stored(new_dataset(file, f'text, {name}', padded, (2,)), random)
            compounds_and_references(file, random)
        with plain(folder / f'nested_{version}.h5', version) as file:
            new_dataset(file, 'sequences', h5t.vlen_create(h5t.vlen_create(h5t.STD_I16LE)), (2,))
        with plain(folder / f'named_{version}.h5', version) as file:
            file['text'] = h5py.string_dtype()
            file.create_dataset('of text', (2,), dtype=file['text'])[0] = 'word'
            file['deep/er'] = np.dtype([('a', 'i4'), ('b', 'S3')])
            file.create_dataset('of deep', (2,), dtype=file['deep/er'])
            file['of deep'].attrs.create('too', np.zeros(2, [('a', 'i4'), ('b', 'S3')]), dtype=file['deep/er'])
    with plain(folder / 'references.h5', 'latest') as file:
        made_by_library(file, 'references', 'H5T_STD_REF_g')
    with plain(folder / 'complex.h5', 'latest') as file:
        made_by_library(file, 'complex', 'H5T_NATIVE_DOUBLE_COMPLEX_g')


SHARED_SPACE, SHARED_TYPE, SHARED_FILL, SHARED_FILTERS, SHARED_ATTRIBUTE = 1 << 1, 1 << 3, 1 << 5, 1 << 11, 1 << 12


def make_shared(folder):
    every = SHARED_SPACE | SHARED_TYPE | SHARED_FILL | SHARED_FILTERS | SHARED_ATTRIBUTE
    for version in VERSIONS:
        two = [(every & ~SHARED_ATTRIBUTE, 10), (SHARED_ATTRIBUTE, 20)]
        with low_level(folder / f'two_{version}.h5', version, shared=two) as file:
            for i in range(40):
                rows = np.zeros(3, [('a', 'i4'), ('b', 'f8', (2,)), ('c', f'S{5 + i % 3}')])
                made = file.create_dataset(f'd{i}', data=rows, chunks=(3,), compression='gzip')
                made.attrs['same'] = 'x' * 100 if i % 2 else np.arange(20.0)
                made.attrs[f'own {i}'] = np.arange(50 + i)
        with low_level(folder / f'all_{version}.h5', version, shared=[(every, 1)]) as file:
            everything(file)
            for i in range(30):
                made = file.create_dataset(f'd{i}', data=np.zeros(3, 'i4'), chunks=(3,), compression='gzip')
                made.attrs['same'] = np.arange(20.0)
                made.attrs['units'] = 'units'


def make_elsewhere(folder):
    """Elements in other datasets and other files."""
    with h5py.File(folder / 'source.h5', 'w') as file:
        file['x'] = np.arange(100.0).reshape(10, 10)
    for version in ('v110', 'latest'):
        with plain(folder / f'virtual_{version}.h5', version) as file:
            layout = h5py.VirtualLayout((20, 10), 'f8')
            layout[:10] = h5py.VirtualSource('source.h5', 'x', (10, 10))
            layout[10:] = h5py.VirtualSource('.', 'own', (10, 10))
            file['own'] = np.ones((10, 10))
            file.create_virtual_dataset('virtual', layout, fillvalue=-1)
            file['virtual'].attrs['units'] = 'm'
    for version in VERSIONS:
        with plain(folder / f'external_{version}.h5', version) as file:
            np.arange(100, dtype='f8').tofile(folder / 'external.raw')
            file.create_dataset('external', (100,), 'f8', external=[(os.fspath(folder / 'external.raw'), 0, 800)])
            file['link'] = h5py.ExternalLink('source.h5', '/x')


def make_matlab(folder):
    """As MATLAB writes MAT-files of version 7.3."""
    random = np.random.default_rng(11)

    def variable(group, name, elements, kind, **words):
        made = group.create_dataset(name, data=elements, **words)
        made.attrs['MATLAB_class'] = np.bytes_(kind)
        return made

    for number in range(4):
        path = folder / f'matlab_{number}.h5'
        with h5py.File(path, 'w', userblock_size=512) as file:
            variable(file, 'x', random.random((3, 4 + number)), 'double')
            letters = np.frombuffer('hello'.encode('utf-16le'), 'u2')[:, None]
            variable(file, 's', letters, 'char').attrs['MATLAB_int_decode'] = np.int32(2)
            variable(file, 'empty', np.zeros(2, 'u8'), 'double').attrs['MATLAB_empty'] = np.uint8(1)
            inside = file.create_group('#refs#')
            cells = file.create_dataset('cell', (2, 1), dtype=h5py.ref_dtype)
            cells.attrs['MATLAB_class'] = np.bytes_('cell')
            for i in range(2):
                cells[i, 0] = variable(inside, 'ab'[i], random.random((1, 3 + i)), 'double').ref
            struct = file.create_group('struct')
            struct.attrs['MATLAB_class'] = np.bytes_('struct')
            fields = np.empty(2, object)
            for i in range(2):
                fields[i] = np.frombuffer(b'field%d' % i, 'S1')
                variable(struct, f'field{i}', random.random((2, 2)), 'double')
            struct.attrs.create('MATLAB_fields', fields, dtype=h5py.vlen_dtype(np.dtype('S1')))
            variable(file, 'complex', np.zeros((2, 2), [('real', 'f8'), ('imag', 'f8')]), 'double')
            words = {'compression': 'gzip', 'compression_opts': 3, 'chunks': (10, 50)}
            variable(file, 'deflated', random.random((50, 50)), 'double', **words)
        with open(path, 'r+b') as file:
            file.write(b'MATLAB 7.3 MAT-file, Platform: GLNXA64'.ljust(116) + bytes(8) + b'\x00\x02IM')


def make_detector(folder):
    """As the areaDetector of EPICS writes frames, with readers beside it."""
    random = np.random.default_rng(12)
    for name, words in {
        'plain': {},
        'deflated': {'compression': 'gzip', 'shuffle': True},
        'bitshuffle': dict(hdf5plugin.Bitshuffle()),
    }.items():
        with h5py.File(folder / f'detector_{name}.h5', 'w', libver='latest') as file:
            entry = file.create_group('entry')
            entry.attrs['NX_class'] = 'NXentry'
            unlimited = {'maxshape': (None, 32, 32), 'chunks': (1, 32, 32)}
            frames = entry.create_dataset('data/data', (0, 32, 32), 'u2', **unlimited, **words)
            frames.attrs['signal'] = 1
            beside = entry.create_group('instrument/NDAttributes')
            times = beside.create_dataset('NDArrayTimeStamp', (0,), 'f8', maxshape=(None,), chunks=(16,))
            times.attrs['NDAttrDescription'] = 'The timestamp'
            numbers = beside.create_dataset('NDArrayUniqueId', (0,), 'i4', maxshape=(None,), chunks=(1,))
            file.swmr_mode = True
            for i in range(40):
                for series, value in ((frames, random.integers(0, 9, (32, 32))), (times, i / 10), (numbers, i)):
                    series.resize(i + 1, 0)
                    series[i] = value
                    series.flush()


def make_astronomy(folder):
    """As pyuvdata writes UVH5, and as programs that keep tables of AIPS and MeasurementSets in HDF5 do."""
    random = np.random.default_rng(13)
    for number, compression in enumerate(('lzf', 'gzip', None)):
        with h5py.File(folder / f'uvh5_{number}.h5', 'w') as file:
            header, data = file.create_group('Header'), file.create_group('Data')
            header['telescope_name'] = np.bytes_('HERA')
            header['Nblts'] = 6
            header['uvw_array'] = random.random((6, 3))
            header['antenna_names'] = np.array([b'ant1', b'ant22'])
            header['extra_keywords/observer'] = 'x'
            header['history'] = 'h' * 5000
            visibilities = np.zeros((6, 8, 4), [('r', 'i4'), ('i', 'i4')])
            visibilities['r'] = random.integers(-9, 9, (6, 8, 4))
            words = {'compression': compression, 'chunks': (3, 8, 4)}
            data.create_dataset('visdata', data=visibilities, **words)
            data.create_dataset('flags', data=random.random((6, 8, 4)) < 0.3, **words)
            data.create_dataset('nsamples', data=np.ones((6, 8, 4), 'f4'), **words)
        with h5py.File(folder / f'tables_{number}.h5', 'w', libver=('earliest', 'v110', 'latest')[number]) as file:
            for table in ('AIPS AN', 'AIPS FQ', 'AIPS SU', 'ANTENNA', 'SPECTRAL_WINDOW'):
                group = file.create_group(table)
                group.attrs['EXTVER'] = np.int32(1)
                group.attrs['keywords'] = np.array([b'FREQ', b'RDATE'])
                columns = [('NAME', 'S8'), ('POSITION', '>f8', (3,)), ('NUMBER', '>i4'), ('VALUES', '>f4', (2, 4))]
                rows = np.frombuffer(random.bytes(np.dtype(columns).itemsize * 30), columns)
                group.create_dataset('rows', data=rows, chunks=(8,), maxshape=(None,), compression=compression)
                group['rows'].attrs['TUNIT'] = ['', 'METERS', '', 'JY']


def make_netcdf(folder):
    random = np.random.default_rng(14)
    for number, (kind, deflated) in enumerate(itertools.product(('NETCDF4', 'NETCDF4_CLASSIC'), (False, True))):
        with netCDF4.Dataset(folder / f'{kind.lower()}_{number}.h5', 'w', format=kind) as file:
            file.title = 'a title'
            file.createDimension('time', None)
            file.createDimension('x', 20)
            variable = file.createVariable('v', 'f4', ('time', 'x'), zlib=deflated, shuffle=True, fill_value=-1)
            variable.units = 'K'
            variable[:5] = random.random((5, 20))
            axis = file.createVariable('x', 'f8', ('x',))
            axis[:] = range(20)
            axis.valid = np.array([1, 2], 'i2')
            for i in range(30):
                file.setncattr(f'attribute{i}', i)
            if kind == 'NETCDF4':
                types_of_netcdf(file)


def types_of_netcdf(file):
    words = file.createVariable('words', str, ('x',))
    words[0] = 'hey'
    group = file.createGroup('sub')
    group.createDimension('y', 3)
    group.createVariable('w', 'i8', ('y', 'x'), chunksizes=(1, 7))[:] = 5
    colors = file.createEnumType(np.uint8, 'colors', {'a': 0, 'b': 1})
    file.createVariable('color', colors, ('x',))[:] = 1
    ragged = file.createVariable('ragged', file.createVLType(np.int16, 'rows'), ('x',))
    ragged[0] = np.arange(3, dtype='i2')
    pair = file.createCompoundType(np.dtype([('a', 'f4'), ('b', 'i2')]), 'pair')
    file.createVariable('pairs', pair, ('x',))
    file.texts = ['a', 'bb']


def make_random_trees(folder, count):
    """Groups, datasets and attributes as a seed has it."""
    for seed in range(count):
        random = np.random.default_rng(seed)
        version = ('earliest', 'latest', 'v108', ('v110', 'latest'))[seed % 4]
        ordered = bool(random.integers(2))
        with h5py.File(folder / f'tree_{seed}.h5', 'w', libver=version, track_order=ordered) as file:
            groups = [file]
            for number in range(int(random.integers(1, 40))):
                group = groups[random.integers(len(groups))]
                random_dataset(group, f'd{number}', random)
                if random.random() < 0.3:
                    groups.append(group.create_group(f'g{number}'))


def random_dataset(group, name, random):
    rank = int(random.integers(0, 5))
    longest = (1, 60, 30, 9, 5)[rank]
    shape = tuple(int(extent) for extent in random.integers(random.random() >= 0.1, longest + 1, rank))
    kind = str(random.choice(['i1', 'u2', '>i4', 'i8', 'f4', '>f8', 'c16', 'S5', '?', 'f2']))
    words = {}
    if rank and random.random() < 0.6:
        maxshape = [(None, extent, extent + 10)[random.integers(3)] for extent in shape]
        chunk = [int(random.integers(1, extent + 2)) for extent in shape]
        words = {
            'maxshape': tuple(maxshape),
            'chunks': tuple(max(1, min(a, b)) if b is not None else a for a, b in zip(chunk, maxshape, strict=True)),
            'compression': (None, 'gzip', 'lzf')[random.integers(3)],
            'shuffle': bool(random.integers(2)),
            'fletcher32': bool(random.integers(2)),
        }
        if 0 in maxshape:
            words = {}
    made = group.create_dataset(name, data=(random.random(shape) * 50).astype('i4').astype(kind), **words)
    for number in range(int(random.integers(0, 6))):
        choice = random.integers(5)
        values = (1.5, 'text', np.arange(int(random.integers(0, 30))), ['p', 'qq'], np.bytes_(b'z'))
        made.attrs[f'a{number}'] = values[choice]


CHUNKED_TYPES = ['i1', '<i2', '>i2', '<i4', '>u4', '<i8', '>i8', '<f4', '>f4', '<f8', '>f8', 'S3', '<c8', 'V5']
CHUNKED_TYPES += [[('a', '<i2'), ('b', '>f8')]]

PIPELINES = [(), (), ('shuffle',), ('deflate',), ('shuffle', 'deflate'), ('fletcher32',), ('lzf',)]
PIPELINES += [('deflate', 'fletcher32')]


def make_random_chunks(folder, first, count):
    """Datasets of all layouts and chunk indices, written to, resized and written to again as a seed has it."""
    for seed in range(first, first + count):
        random = np.random.default_rng(seed)
        version = VERSIONS[seed % len(VERSIONS)]
        # HDF5 cannot read its own extensible arrays where lengths have 4 bytes
        words = {'sizes': (4, 8)} if seed % 7 == 3 else {}
        if seed % 11 == 5:
            words['userblock'] = 512
        with low_level(folder / f'chunks_{seed}_{version}.h5', version, **words) as file:
            for number in range(10):
                random_chunks(file, f'd{number}', random)


def random_chunks(file, name, random):
    rank = int(random.choice([1, 1, 2, 2, 3, 3, 4, 5]))
    kind = np.dtype(CHUNKED_TYPES[random.integers(len(CHUNKED_TYPES))])
    longest = int((4000 if random.random() < 0.15 else 1500) ** (1 / rank))
    shape = [int(extent) for extent in random.integers(random.random() >= 0.03, longest + 1, rank)]
    chunk = [int(random.integers(1, max(2, extent) + 2)) for extent in shape]
    maxshape = [extent + int(random.integers(0, 2 * size + 3)) for extent, size in zip(shape, chunk, strict=True)]
    unlimited = random.permutation(rank)[: random.choice([0, 0, 1, 2, rank])]
    chunk = [max(1, min(size, most)) for size, most in zip(chunk, maxshape, strict=True)]
    for axis in unlimited:
        maxshape[axis] = h5s.UNLIMITED
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_chunk(tuple(chunk))
    pipeline = PIPELINES[random.integers(len(PIPELINES))]
    if 'lzf' in pipeline:
        properties.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)
    if 'shuffle' in pipeline:
        properties.set_shuffle()
    if 'deflate' in pipeline:
        properties.set_deflate(int(random.integers(0, 10)))
    if 'fletcher32' in pipeline:
        properties.set_fletcher32()
    # HDF5 cannot read back all chunks that LZF cannot compress in such datasets
    bare_edges = 'lzf' not in pipeline and random.random() < 0.25
    if bare_edges:
        assert HDF5.H5Pset_chunk_opts(ID(properties.id), ctypes.c_uint(DONT_FILTER_PARTIAL_CHUNKS)) >= 0
    times = (h5d.ALLOC_TIME_DEFAULT, h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE, h5d.ALLOC_TIME_INCR)
    properties.set_alloc_time(times[random.integers(4)])
    if random.random() < 0.4 and kind.kind in 'iuf':
        properties.set_fill_value(np.frombuffer(random.bytes(kind.itemsize), kind).reshape(()))
    if random.random() < 0.15:
        properties.set_fill_time((h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_IFSET)[random.integers(2)])
    space = h5s.create_simple(tuple(shape), tuple(maxshape))
    made = h5py.Dataset(h5d.create(file.id, name.encode(), h5t.py_create(kind, logical=True), space, properties))
    for _ in range(int(random.choice([0, 1, 1, 2, 3]))):
        action = random.random()
        if action < 0.8:
            write_box(made, random, whole=action < 0.35)
        elif 0 not in made.shape and pipeline == ('deflate',):
            # HDF5 may fail to change such a chunk
            return write_chunk(made, chunk, random)
        # HDF5 fails to resize a dataset without chunks whose edges are not filtered
        if random.random() < 0.35 and (made.id.get_storage_size() or not bare_edges):
            resize(made, chunk, maxshape, random)
            write_box(made, random, whole=False)


def resize(made, chunk, maxshape, random):
    shape = []
    for extent, size, most in zip(made.shape, chunk, maxshape, strict=True):
        longest = extent + size + 2 if most == h5s.UNLIMITED else most
        shape.append(int(random.integers(min(longest, extent // 2 + 1), longest + 1)))
    made.resize(shape)


def write_box(made, random, whole):
    """Random bytes for all elements, or for those of a part."""
    if 0 in made.shape:
        return
    start = [0 if whole else int(random.integers(extent)) for extent in made.shape]
    count = [
        extent - at if whole else int(random.integers(1, extent - at + 1))
        for extent, at in zip(made.shape, start, strict=True)
    ]
    datatype, space = made.id.get_type(), made.id.get_space()
    space.select_hyperslab(tuple(start), tuple(count))
    size = datatype.get_size()
    stored = np.frombuffer(random.bytes(size * int(np.prod(count))), f'V{size}').reshape(count)
    made.id.write(h5s.create_simple(tuple(count)), space, stored, mtype=datatype)


def write_chunk(made, chunk, random):
    """A whole chunk past the filters, with a mask that says whether it is deflated; none at an edge."""
    start = [int(random.integers(-(-extent // size))) * size for extent, size in zip(made.shape, chunk, strict=True)]
    if any(at + size > extent for at, size, extent in zip(start, chunk, made.shape, strict=True)):
        return
    data = random.bytes(made.dtype.itemsize * int(np.prod(chunk)))
    mask = int(random.integers(2))
    made.id.write_direct_chunk(tuple(start), data if mask else zlib.compress(data), mask)
