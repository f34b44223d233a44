"""Files and requests for the API of h5grove: every type, layout, link and attribute whose answers differ."""
import os
import urllib.parse

import h5py
import numpy as np

FILE = 'kinds.h5'
T = '/types/'

NUMBERS = ['i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'i8', 'u8', 'f2', 'f4', 'f8', '>i2', '>f4', '>f8', '>u8']
DATASETS = ['i1', 'u1', 'i8', 'u8', 'f2', 'f4', 'f8', 'be_i2', 'be_f4', 'be_f8', 'be_u8', 'f16', 'c8', 'c16', 'be_c8', 'nonfinite',
            'nonfinite4', 'c8nan', 'bool', 'boolscalar', 'enum', 'be_enum', 'vlen_str', 'vlen_ascii', 'fixed_str', 'fixed_utf8',
            'spaces', 'bad_utf8', 'str_scalar', 'int_scalar', 'float_scalar', 'f32_scalar', 'cplx_scalar', 'empty', 'noelem',
            'compound', 'nested', 'text_compound', 'opaque', 'vlen', 'vlen_vlen', 'ref', 'refs', 'regions', 'committed', 'arr',
            'arr_str', 'bitfield', 'cube']
SELECTIONS = ['0', '-1', '0,1', '0,:', '0:2', '::2', '0:6:2,1:3', '::-1', '5:2', '9', '0,0,0', ':', '...', '0:100', '-3:', 'a', '0.5',
              '1,', '0:1:0', ' 1 , 2 ', '', ':,-1', '0,0:0', '1:6:3', ':,::3', '-2:,-3:-1']


def make(folder):
    """Writes the files; the random numbers are the same each time."""
    path = lambda name: os.path.join(folder, name)
    os.mkdir(path('below'))
    with h5py.File(path('other.h5'), 'w') as file:
        file['d'] = np.arange(4, dtype='<i4')
        file['g/inner'] = np.arange(3.)
    with h5py.File(path(FILE), 'w', libver=('v110', 'v110'), track_order=True) as file:
        attributes(file)
        types(file, file.create_group('types', track_order=True))
        layouts(file.create_group('layout', track_order=True))
        links(file, file.create_group('links', track_order=True))
        scales(file.create_group('scales', track_order=True))
    with h5py.File(path('rev.h5'), 'w') as file:
        file['z'] = 1
        file['a'] = 2
        file.create_group('m/n')
        file['m/k'] = 3
        file['m/n/loop'] = file['m']
    with h5py.File(path('loop.h5'), 'w') as file:
        file['self'] = h5py.SoftLink('/self')
        file['one'] = 1
    with open(path('nothdf5.h5'), 'w') as file:
        file.write('hello')


def attributes(file):
    file.attrs['format'] = 'ctds-hdf5'
    file.attrs['n'] = np.int64(2**60)
    file.attrs['pi'] = 3.14
    file.attrs['f32'] = np.float32(0.1)
    file.attrs['nan'] = np.float64('nan')
    file.attrs['list'] = np.arange(3, dtype='i2')
    file.attrs['strs'] = np.array(['a', 'bß'], dtype=h5py.string_dtype())
    file.attrs['fixed'] = np.bytes_(b'abc')
    file.attrs['cplx'] = np.complex64(1 + 2j)
    file.attrs['cplxs'] = np.array([1 + 2j, 3], 'c16')
    file.attrs['bool'] = np.bool_(True)
    file.attrs['bools'] = np.array([True, False])
    file.attrs['empty'] = h5py.Empty('f4')
    file.attrs['emptystr'] = ''
    file.attrs['noelem'] = np.zeros(0, 'i4')
    file.attrs['two_d'] = np.arange(6).reshape(2, 3)
    file.attrs['enum'] = np.array([1], dtype=h5py.enum_dtype({'RED': 0, 'GREEN': 1}, basetype='u1'))
    file.attrs['tz'] = b'bytes'
    file.attrs['record'] = np.array((1, 2.5), dtype=[('a', 'i4'), ('b', 'f8')])


def types(file, group):
    for name in NUMBERS:
        numbers = np.arange(6).reshape(2, 3) - (0 if 'u' in name else 2)
        group[name.replace('>', 'be_')] = numbers.astype(name)
    group['f16'] = np.array([[0, 1.5, -2], [np.inf, 1e300, 0.1]], 'g')
    group['c8'] = (np.arange(6) * (0.1 + 0.2j)).reshape(2, 3).astype('c8')
    group['c16'] = (np.arange(6) * (0.1 + 0.2j)).reshape(2, 3).astype('c16')
    group['be_c8'] = (np.arange(6) * (0.1 + 0.2j)).reshape(2, 3).astype('>c8')
    group['nonfinite'] = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e300, 5e-324, 0.1])
    group['nonfinite4'] = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e30, 1e-45, 0.1], 'f4')
    group['c8nan'] = np.array([complex(np.nan, 1), complex(np.inf, 0.1)], 'c8')
    group['bool'] = np.array([[True, False], [False, True]])
    group['boolscalar'] = True
    group['enum'] = np.array([0, 2, 1], dtype=h5py.enum_dtype({'A': 0, 'B': 1, 'C': 2}, basetype='i2'))
    group['be_enum'] = np.array([0, 2, -1], dtype=h5py.enum_dtype({'A': 0, 'B': 2, 'C': -1}, basetype='>i4'))
    group.create_dataset('vlen_str', data=['a', 'bß', ''], dtype=h5py.string_dtype())
    group.create_dataset('vlen_ascii', data=['a', 'b'], dtype=h5py.string_dtype('ascii'))
    group.create_dataset('fixed_str', data=np.array([b'abc', b'd'], 'S5'))
    group.create_dataset('fixed_utf8', (2,), dtype=h5py.string_dtype('utf-8', 5))[...] = np.array(['é', 'd'], dtype=object)
    group.create_dataset('bad_utf8', data=np.array([b'\xff\xfe', b'd'], 'S5'))
    spaces = h5py.h5t.C_S1.copy()
    spaces.set_size(5)
    spaces.set_strpad(h5py.h5t.STR_SPACEPAD)
    made = h5py.h5d.create(group.id, b'spaces', spaces, h5py.h5s.create_simple((2,)))
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b'ab   ', b' c   '], 'S5'), mtype=spaces)
    group['str_scalar'] = 'hello'
    group['int_scalar'] = 5
    group['float_scalar'] = 2.5
    group['f32_scalar'] = np.float32(0.1)
    group['cplx_scalar'] = 1 + 2j
    group['empty'] = h5py.Empty('<f4')
    group['noelem'] = np.zeros((0, 3), 'f4')
    group['compound'] = np.array([(1, 2.5, b'x', [1, 2])], dtype=[('a', '<i4'), ('b', '<f8'), ('s', 'S3'), ('v', '<i2', (2,))])
    group['nested'] = np.array([(1, (2, 3.5))], dtype=[('a', 'u1'), ('in', [('x', 'i2'), ('y', 'f4')])])
    texts = np.empty(2, dtype=[('n', 'i4'), ('s', h5py.string_dtype()), ('c', 'c8'), ('b', '?')])
    texts['n'], texts['s'], texts['c'], texts['b'] = [1, 2], ['ä', ''], [1j, 2], [True, False]
    group['text_compound'] = texts
    group['opaque'] = np.void(b'\x00\x01\x02')
    sequences = group.create_dataset('vlen', (2,), dtype=h5py.vlen_dtype('i4'))
    sequences[0], sequences[1] = [1, 2], []
    strings = group.create_dataset('vlen_vlen', (2,), dtype=h5py.vlen_dtype(np.dtype('f4')))
    strings[0], strings[1] = [0.5], [np.nan, 2]
    group['ref'] = file['types/i4'].ref
    references = group.create_dataset('refs', (2,), dtype=h5py.ref_dtype)
    references[0] = file['types/i4'].ref
    regions = group.create_dataset('regions', (2,), dtype=h5py.regionref_dtype)
    regions[0] = file['types/i4'].regionref[0:1]
    group['committed'] = np.dtype('<f8')
    group['committed'].attrs['note'] = 'of a type'
    arrays = group.create_dataset('arr', (2,), dtype=np.dtype(('<f4', (3,))))
    arrays[...] = np.arange(6).reshape(2, 3)
    arrays = group.create_dataset('arr_str', (2,), dtype=np.dtype(('S3', (2,))))
    arrays[...] = np.array([[b'a', b'bc'], [b'', b'def']], 'S3')
    h5py.h5d.create(group.id, b'bitfield', h5py.h5t.STD_B8LE, h5py.h5s.create_simple((2,)))
    group['cube'] = np.arange(24, dtype='i2').reshape(2, 3, 4)


def layouts(group):
    square = np.arange(100.).reshape(10, 10)
    group.create_dataset('contiguous', data=np.arange(10.))
    group.create_dataset('chunked', data=square, chunks=(5, 5))
    group.create_dataset('gzip', data=square, chunks=(5, 5), compression='gzip', shuffle=True, fletcher32=True)
    group.create_dataset('lzf', data=np.arange(100.), chunks=(50,), compression='lzf')
    group.create_dataset('grow', data=np.arange(100.), chunks=(50,), maxshape=(None,))
    group.create_dataset('scaleoffset', data=np.arange(100), chunks=(50,), scaleoffset=0)
    group.create_dataset('unwritten', (7, 9), 'f4', chunks=(2, 4), fillvalue=2.5)
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(group.id, b'compact', h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((4,)), creation)
    layout = h5py.VirtualLayout((4,), '<i4')
    layout[:] = h5py.VirtualSource('other.h5', 'd', (4,))
    group.create_virtual_dataset('virtual', layout)


def links(file, group):
    group['soft'] = h5py.SoftLink('/types/i4')
    group['broken'] = h5py.SoftLink('/nothing')
    group['relative'] = h5py.SoftLink('hard')
    group['ext'] = h5py.ExternalLink('other.h5', '/d')
    group['extgroup'] = h5py.ExternalLink('other.h5', '/g')
    group['extroot'] = h5py.ExternalLink('other.h5', '/')
    group['extbroken'] = h5py.ExternalLink('none.h5', '/d')
    group['cycle'] = h5py.SoftLink('/links')
    group['hard'] = file['types/i4']
    group['odd name ä%&+?'] = 1


def scales(group):
    group['row'] = np.arange(6)
    group['chan'] = np.linspace(1e9, 2e9, 4)
    group['row'].make_scale('row')
    group['chan'].make_scale()
    group['DATA'] = (np.random.default_rng(1).normal(size=(6, 4)) + 1j).astype('c8')
    group['DATA'].dims[0].attach_scale(group['row'])
    group['DATA'].dims[1].attach_scale(group['chan'])
    group['DATA'].attrs['units'] = 'Jy'
    group['image'] = np.random.default_rng(1).normal(size=(64, 128)).astype('f4')


def url(request, **parameters):
    pairs = [(key, value) for key, values in parameters.items() for value in (values if isinstance(values, list) else [values])]
    return request + '?' + urllib.parse.urlencode(pairs)


def cases():
    """(name, address) of every request."""
    yield 'ping', '/'
    for name, parameters in [
            ('root', {'path': '/'}), ('no path', {}), ('types', {'path': '/types'}), ('layout', {'path': '/layout'}),
            ('scale data', {'path': '/scales/DATA'}), ('trailing', {'path': '/types/'}), ('relative', {'path': 'types/i4'}),
            ('doubled', {'path': '//types//i4'}), ('empty path', {'path': ''}), ('unknown', {'path': '/nothing'}),
            ('below dataset', {'path': '/types/i4/x'}), ('below nothing', {'path': '/nothing/x'}),
            ('odd', {'path': '/links/odd name ä%&+?'}), ('through soft', {'path': '/links/cycle/cycle/hard'}),
            ('through ext', {'path': '/links/extgroup/inner'}), ('through extroot', {'path': '/links/extroot/g'}),
            ('through extbroken', {'path': '/links/extbroken/x'}), ('type', {'path': '/types/committed'})]:
        yield 'meta ' + name, url('/meta', file=FILE, **parameters)
    yield 'meta rev', url('/meta', file='rev.h5', path='/')
    for link in ['', '/soft', '/broken', '/relative', '/ext', '/extgroup', '/extbroken', '/cycle', '/hard']:
        for resolution in ['none', 'only_valid', 'all', 'ALL', 'true', 'false', 'maybe']:
            yield 'meta links%s %s' % (link, resolution), url('/meta', file=FILE, path='/links' + link, resolve_links=resolution)
    for path in ['/', '/self']:
        for resolution in ['none', 'only_valid', 'all']:
            yield 'loop meta %s %s' % (path, resolution), url('/meta', file='loop.h5', path=path, resolve_links=resolution)
    yield 'loop paths', url('/paths', file='loop.h5')
    yield 'loop paths all', url('/paths', file='loop.h5', resolve_links='all')
    yield 'loop data', url('/data', file='loop.h5', path='/self')
    for path in ['/', '/types', '/scales/DATA', '/scales/row', '/links/soft', '/links/broken', '/links/ext', '/types/committed']:
        yield 'attr ' + path, url('/attr', file=FILE, path=path)
    yield 'attr keys', url('/attr', file=FILE, path='/', attr_keys=['pi', 'n'])
    yield 'attr key missing', url('/attr', file=FILE, path='/', attr_keys=['nope'])
    for path in ['/', '/types', '/links', '/links/cycle', '/layout/', '/links/broken', '/nothing']:
        yield 'paths ' + path, url('/paths', file=FILE, path=path)
    for path in ['/', '/m', '/m/n', '/z']:
        yield 'paths rev ' + path, url('/paths', file='rev.h5', path=path)
    for resolution in ['none', 'all', 'maybe']:
        yield 'paths links ' + resolution, url('/paths', file=FILE, path='/links', resolve_links=resolution)
        yield 'paths rev links ' + resolution, url('/paths', file='rev.h5', path='/', resolve_links=resolution)
    yield 'data group', url('/data', file=FILE, path='/types')
    yield 'stats group', url('/stats', file=FILE, path='/types')
    yield 'data root', url('/data', file=FILE, path='/')
    yield 'data unknown format', url('/data', file=FILE, path=T + 'i4', format='xml')
    yield 'data unknown dtype', url('/data', file=FILE, path=T + 'i4', dtype='f4')
    yield 'no file', '/meta?path=/'
    yield 'no such file', url('/meta', file='none.h5', path='/')
    yield 'not hdf5', url('/meta', file='nothdf5.h5', path='/')
    yield 'traversal', url('/meta', file='../none.py', path='/')
    yield 'inner traversal', url('/meta', file='below/../' + FILE, path='/')
    yield 'absolute', url('/meta', file='/etc/passwd', path='/')
    yield 'post', '/meta'
    yield 'unknown endpoint', url('/nope', file=FILE)
    for flatten in ['junk', '1', 'True', 'off', 'no']:
        yield 'flatten ' + flatten, url('/data', file=FILE, path=T + 'i4', flatten=flatten)
    for path in ['/links/ext', '/links/extbroken', '/links/soft', '/links/broken']:
        yield 'data ' + path, url('/data', file=FILE, path=path)
    for name in ['contiguous', 'chunked', 'gzip', 'lzf', 'grow', 'scaleoffset', 'unwritten', 'compact', 'virtual']:
        for format in ['json', 'bin', 'npy']:
            yield 'layout %s %s' % (name, format), url('/data', file=FILE, path='/layout/' + name, format=format)
    for name in DATASETS:
        yield 'data %s json' % name, url('/data', file=FILE, path=T + name)
        yield 'data %s flat' % name, url('/data', file=FILE, path=T + name, flatten='true')
        for format in ['bin', 'npy', 'csv', 'tiff']:
            yield 'data %s %s' % (name, format), url('/data', file=FILE, path=T + name, format=format)
        for format in ['bin', 'json', 'npy', 'csv']:
            yield 'data %s %s safe' % (name, format), url('/data', file=FILE, path=T + name, format=format, dtype='safe')
        yield 'stats %s' % name, url('/stats', file=FILE, path=T + name)
    for selection in SELECTIONS:
        yield 'sel [%s] json' % selection, url('/data', file=FILE, path='/scales/DATA', selection=selection)
        for name, parameters in [('bin', {}), ('npy', {'format': 'npy'}), ('tiff', {'format': 'tiff'})]:
            parameters = {'format': 'bin', **parameters}
            yield 'sel [%s] image %s' % (selection, name), url('/data', file=FILE, path='/scales/image', selection=selection, **parameters)
        yield 'sel [%s] stats' % selection, url('/stats', file=FILE, path='/scales/image', selection=selection)
        yield 'sel [%s] gzip' % selection, url('/data', file=FILE, path='/layout/gzip', selection=selection, format='bin')
    for selection in ['1', ':,1', '::2,::2,1::2', ':,:,-1', '0,0,0,0']:
        yield 'sel [%s] cube' % selection, url('/data', file=FILE, path=T + 'cube', selection=selection)
        yield 'sel [%s] cube csv' % selection, url('/data', file=FILE, path=T + 'cube', selection=selection, format='csv')
    for selection in ['0', ':', '0,0']:
        yield 'sel [%s] on scalar' % selection, url('/data', file=FILE, path=T + 'int_scalar', selection=selection)
        yield 'sel [%s] on array' % selection, url('/data', file=FILE, path=T + 'arr', selection=selection)
        yield 'sel [%s] on empty' % selection, url('/data', file=FILE, path=T + 'empty', selection=selection)
