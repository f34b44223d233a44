"""Native files open in what people use: xarray, netCDF4, HDF5 1.10's tools, pyfive, jsfive; and their chunk indexes are as promised."""
import ctypes
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import warnings

import casacore.tables as ct
import h5py
import netCDF4
import numpy as np
import pyfive
import pytest
import xarray

import layout
import readers
import support

FILES = support.some_convertible()
BOTH_MS = [('demo', 'demo.ms'), ('twospw', 'twospw.ms')]


def datasets(file):
    """{path: dataset} of everything in a file."""
    found = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    return found


# ---- xarray and netCDF4 ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize('engine', ['h5netcdf', 'netcdf4'])
@pytest.mark.parametrize('case,table', FILES)
def test_xarray(case, table, engine, converted, counts):
    path = converted(case, table)
    with xarray.open_datatree(path, engine=engine, decode_times=False) as tree:
        tree.load()
        counts['files'] += 1
        with h5py.File(path) as file:
            for group in layout.tables(file).values():
                node = tree[group.name]
                for name, item in group.items():
                    if isinstance(item, h5py.Dataset) and not hidden(item):
                        assert name in node.variables, '%s: %s is not in %s' % (group.name, name, list(node.variables))
                        check_variable(item, node.variables[name], engine)
                        counts['variables'] += 1


def hidden(item):
    """A scale that only gives an axis a length shows as a dimension and not as a variable."""
    return b'This is a netCDF dimension but not a netCDF variable' in bytes(np.asarray(item.attrs.get('NAME', b'')).item()
                                                                          if layout.is_scale(item) else b'')


def check_variable(item, variable, engine):
    assert variable.shape == item.shape, item.name
    if h5py.check_string_dtype(item.dtype):
        assert variable.values.ravel().tolist() == item.asstr()[...].ravel().tolist(), item.name
        return
    values, expected = variable.values, item[...]
    if engine == 'netcdf4' and item.dtype == bool:
        values = values.astype(bool)        # netCDF4 shows an enum's numbers
    if values.dtype.names:                  # and a complex as its parts
        parts = values                      # not r + 1j * i, in which infinities become NaN
        values = np.empty(parts.shape, expected.dtype)
        values.real, values.imag = parts['r'], parts['i']
    np.testing.assert_array_equal(values, expected, err_msg=item.name)


@pytest.mark.parametrize('case,table', FILES)
def test_netcdf4(case, table, converted, counts):
    path = converted(case, table)
    with netCDF4.Dataset(path) as opened, h5py.File(path) as file:
        for group in layout.tables(file).values():
            shown = opened[group.name] if group.name != '/' else opened
            for name, item in group.items():
                if isinstance(item, h5py.Dataset) and not hidden(item):
                    variable = shown.variables[name]
                    assert variable.shape == item.shape, item.name
                    # netCDF4 leaves out variables whose type it does not know, with a warning
                    variable[...]
                    counts['variables'] += 1
        counts['files'] += 1


def test_xarray_dimensions(converted):
    """The axes of visibilities are named, and have the frequencies and Stokes codes."""
    with xarray.open_datatree(converted(*BOTH_MS[0]), engine='h5netcdf') as tree:
        data = tree['MAIN/DATA']
        assert data.dims == ('row', 'chan_0', 'corr_0')
        assert tree['MAIN/FLAG'].dims == data.dims and tree['MAIN/WEIGHT'].dims == ('row', 'corr_0')
        np.testing.assert_array_equal(tree['MAIN'].coords['chan_0'], 1.4e9 + 1e5 * np.arange(16))
        np.testing.assert_array_equal(tree['MAIN'].coords['corr_0'], [9, 10, 11, 12])
        np.testing.assert_array_equal(tree['MAIN'].coords['row'], np.arange(tree['MAIN'].sizes['row']))
        assert data.attrs['units'] == 'Jy' if 'units' in data.attrs else data.attrs['UNIT'] == 'Jy'


# ---- HDF5 itself ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('case,table', FILES)
def test_scales(case, table, converted, counts):
    """Each axis of a dataset in a table's group has one scale, of its length; axes elsewhere have one or none."""
    with h5py.File(converted(case, table)) as file:
        groups = {group.name for group in layout.tables(file).values()}
        lengths = {}
        for name, item in datasets(file).items():
            if layout.is_scale(item):
                continue
            scales = [len(item.dims[axis]) for axis in range(item.ndim)]
            assert set(scales) <= {0, 1} and len(set(scales)) <= 1, '/%s has scales %s' % (name, scales)
            if item.parent.name in groups:
                assert 0 not in scales, '/%s has no scales' % name
            for axis in range(item.ndim) if 1 in scales else ():
                scale = item.dims[axis][0]
                assert scale.shape == (item.shape[axis],), '/%s axis %d' % (name, axis)
                # one length for a name below each root group: DataTree's children inherit dimensions
                key = name.split('/')[0], scale.name.rsplit('/', 1)[-1]
                # tables beside each other may differ, a parent and its child may not
                if key[1] != 'row':
                    assert lengths.setdefault(key, scale.shape) == scale.shape, key
                counts['axes'] += 1


@pytest.mark.parametrize('case,table', FILES)
def test_hygiene(case, table, converted, counts):
    """What layout.md rules out is not there."""
    path = converted(case, table)
    with h5py.File(path) as file:
        assert file.attrs['format'] == 'ctds-hdf5' and file.attrs['format_version'] == '1.0'
        assert file.attrs['source_digest'] == support.digest(path, code=None, hash='blake3')['.']['sha256']
        with open(path, 'rb') as raw:
            assert raw.read(9)[8] == 3, 'superblock version'

        def visit(name, item):
            counts['objects'] += 1
            for key in item.attrs:
                attribute = item.attrs.get_id(key)
                assert attribute.get_space().get_simple_extent_type() != h5py.h5s.NULL, (name, key)
                if key not in ('DIMENSION_LIST', 'REFERENCE_LIST'):
                    assert len(attribute.shape) <= 1, (name, key)
            if isinstance(item, h5py.Dataset):
                kind = item.id.get_type()
                assert not isinstance(kind, h5py.h5t.TypeVlenID), name
                assert not kind.committed(), name
                assert item.id.get_space().get_simple_extent_type() != h5py.h5s.NULL, name
            else:
                order = item.id.get_create_plist()
                assert order.get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED, name
            link = file.get('/' + name, getlink=True)
            assert isinstance(link, h5py.HardLink), name
        file.visititems(visit)


needs_tools = pytest.mark.skipif(not (shutil.which('h5dump') and shutil.which('h5ls')),
                                 reason='h5dump and h5ls are missing (Debian: hdf5-tools)')


@needs_tools
@pytest.mark.parametrize('case,table', FILES)
def test_hdf5_tools(case, table, converted, counts):
    path = converted(case, table)
    with h5py.File(path) as file:
        names = {'/' + name: item for name, item in datasets(file).items()}
    listing = run('h5ls', '-r', path)
    header = run('h5dump', '-H', '-p', path)
    for name in names:
        assert escaped(name) in listing, '%s is not in h5ls -r' % name
        assert '"%s"' % name.rsplit('/', 1)[-1] in header, '%s is not in h5dump -H' % name
    counts['files'] += 1
    counts['datasets'] += len(names)


def escaped(name):
    """A name as h5ls prints it."""
    return ''.join('\\ ' if byte == 32 else chr(byte) if byte < 128 else '\\%03o' % byte for byte in name.encode())


@needs_tools
def test_hdf5_tools_version():
    """What matters is that HDF5 1.10 reads the files; newer tools prove less."""
    version = run('h5dump', '--version')
    if 'Version 1.10' not in version:
        pytest.skip('h5dump is not of HDF5 1.10: ' + version.strip())


@needs_tools
@pytest.mark.parametrize('case,table', BOTH_MS)
def test_h5dump_values(case, table, converted):
    """h5dump reads every value, filters included."""
    run('h5dump', '-o', os.devnull, converted(case, table))


def run(*words):
    process = subprocess.run(list(map(str, words)), capture_output=True, text=True, errors='replace')
    assert process.returncode == 0 and 'error' not in process.stderr.lower(), process.stderr
    return process.stdout


# ---- chunk indexes --------------------------------------------------------------------------------------------------

# H5D_chunk_index_t of HDF5's H5Dpublic.h
INDEX = {0: 'btree_v1', 1: 'single', 2: 'implicit', 3: 'fixed_array', 4: 'extensible_array', 5: 'btree_v2'}


def libhdf5():
    """h5py's own copy of the HDF5 library: h5py has no H5Dget_chunk_index_type, but its ids are good for this call."""
    folder = os.path.join(os.path.dirname(h5py.__file__), '..', 'h5py.libs')
    path, = glob.glob(os.path.join(folder, 'libhdf5-*.so*'))
    library = ctypes.CDLL(path)
    library.H5Dget_chunk_index_type.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_int)]
    return library


def index_kind(dataset):
    if dataset.chunks is None:
        return 'none'
    kind = ctypes.c_int()
    assert libhdf5().H5Dget_chunk_index_type(dataset.id.id, ctypes.byref(kind)) >= 0
    return INDEX[kind.value]


def expected_index(dataset):
    """What layout.md promises for a dataset in a table."""
    # HDF5 has chunks only for axes that are as long as the chunk or unlimited: axes of length 0 beside `row` are the latter
    empty = [most for extent, most in list(zip(dataset.shape, dataset.maxshape))[1:] if extent == 0]
    if empty:
        assert dataset.chunks and set(empty) == {None}, '%s: axes without elements' % dataset.name
        return set(INDEX.values())
    if dataset.size == 0 and None not in dataset.maxshape:
        return {'none', 'fixed_array', 'single'}     # "no chunks"; the index is then never built
    if dataset.maxshape[0] is None:
        assert None not in dataset.maxshape[1:], '%s: more than row is unlimited' % dataset.name
        return {'extensible_array'}
    assert dataset.maxshape == dataset.shape, '%s: maximum shape' % dataset.name
    one = all(n <= c for n, c in zip(dataset.shape, dataset.chunks or dataset.shape))
    # an unchunked dataset is one piece as well, but only a scale or a small helper may be that
    return {'single', 'none'} if one else {'fixed_array'}


@pytest.mark.parametrize('mode', [['--compress', 'none'], [], ['--appendable']], ids=' '.join)
@pytest.mark.parametrize('case,table', FILES)
def test_index(case, table, mode, converted, counts):
    path = converted(case, table, *mode)
    with h5py.File(path) as file:
        for group in layout.tables(file).values():
            for name in layout.present(group):
                item = layout.column_item(group, name)
                for dataset in [item] if isinstance(item, h5py.Dataset) else item.values():
                    kind = index_kind(dataset)
                    assert kind in expected_index(dataset), '%s has %s' % (dataset.name, kind)
                    counts[kind] += 1
                # HDF5 has no chunks for cells without elements
                if mode == ['--appendable'] and isinstance(item, h5py.Dataset) and 0 not in item.shape[1:]:
                    assert item.maxshape[0] is None, '%s cannot grow' % item.name


@pytest.mark.parametrize('mode', [['--compress', 'none'], ['--appendable']], ids=' '.join)
@pytest.mark.parametrize('case,table', BOTH_MS)
def test_info_agrees(case, table, mode, converted, counts):
    """`info --json` says of index, chunk and shape what HDF5 itself says."""
    path = converted(case, table, *mode)
    document = json.loads(support.h5bridge('info', '--json', path).stdout)
    kinds = set()
    with h5py.File(path) as file:
        for table_path, group in layout.tables(file).items():
            columns = info_columns(document, table_path)
            assert {c['name'] for c in columns} == set(layout.exact_columns(group))
            for column in columns:
                item = layout.column_item(group, column['name'])
                assert column['dtype'] == layout.exact_columns(group)[column['name']]['dtype']
                if isinstance(item, h5py.Dataset):
                    assert column['index'] == index_kind(item), column
                    if item.chunks and column['index'] != 'none':
                        assert list(column['chunk']) == list(item.chunks), column
                    kinds.add(column['index'])
                    counts['columns'] += 1
    assert ('extensible_array' if mode == ['--appendable'] else 'single') in kinds


def info_columns(document, path):
    tables = document['tables']
    if isinstance(tables, dict):
        columns = tables[path]['columns']
    else:
        columns = next(t for t in tables if t.get('path', t.get('name')) == path)['columns']
    return [dict(c, name=name) for name, c in columns.items()] if isinstance(columns, dict) else columns


def test_many_chunks(big_ms, tmp_path, counts):
    """Data larger than a chunk: a Fixed Array, and an Extensible Array where the file is to grow."""
    for options, kind in ((['--compress', 'none'], 'fixed_array'), (['--compress', 'gzip'], 'fixed_array'),
                          (['--appendable'], 'extensible_array')):
        target = tmp_path / 'x.h5'
        support.h5bridge('to-hdf5', *options, '--overwrite', big_ms, target)
        with h5py.File(target) as file:
            for name in ('DATA', 'FLAG', 'WEIGHT_SPECTRUM'):
                data = file['MAIN'][name]
                assert index_kind(data) == kind, (name, index_kind(data))
                assert np.prod(data.chunks) * data.dtype.itemsize <= 2 << 20, (name, data.chunks)
                counts[kind] += 1


# ---- files for HDF5 1.8 ---------------------------------------------------------------------------------------------

OLD = ('--hdf5', '1.8')
SOME_FILES = support.sample(FILES, 3)


def equal(left, right):
    """Whether two arrays are equal, bit by bit where they are numbers."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return left.tolist() == right.tolist() if left.dtype == object else left.tobytes() == right.tobytes()


@pytest.mark.parametrize('case,table', SOME_FILES)
def test_old_files(case, table, converted, tmp_path, counts):
    """A file for HDF5 1.8 has the values and attributes of any other, in structures that HDF5 1.8 has."""
    path, old = converted(case, table), converted(case, table, *OLD)
    with h5py.File(path) as file, h5py.File(old) as other:
        with open(old, 'rb') as raw:
            assert raw.read(9)[8] == 0, 'superblock version'
        found, expected = datasets(other), datasets(file)
        assert found.keys() == expected.keys()
        for name, item in found.items():
            assert equal(item[...], expected[name][...]), name
            assert index_kind(item) in ('none', 'btree_v1'), name
            counts['datasets'] += 1

        def visit(name, item):
            attributes, of_default = item.attrs, file[name].attrs
            assert set(attributes) == set(of_default), name
            for key in set(attributes) - {'DIMENSION_LIST', 'REFERENCE_LIST'}:
                assert equal(np.asarray(attributes[key]), np.asarray(of_default[key])), (name, key)
                counts['attributes'] += 1
            if isinstance(item, h5py.Group):
                assert item.id.get_create_plist().get_link_creation_order() == 0, name
                # a symbol table, not link messages
                assert h5py.h5o.get_info(item.id).hdr.version == 1, name
        other.visititems(visit)
    support.h5bridge('verify', path, old)
    support.h5bridge('verify', old)
    for source, target in ((path, 'back'), (old, 'old')):
        support.h5bridge('to-ms', source, tmp_path / target)
    support.h5bridge('verify', tmp_path / 'back', tmp_path / 'old')


@pytest.mark.parametrize('case,table', SOME_FILES)
def test_pyfive(case, table, converted, counts):
    """pyfive reads every dataset of a file for HDF5 1.8."""
    path = converted(case, table, *OLD)
    with h5py.File(path) as file, pyfive.File(str(path)) as other:
        for name, item in datasets(file).items():
            values, expected = other[name][...], item[...]
            if expected.dtype == object:
                values = np.array([value.encode() if isinstance(value, str) else value for value in values.ravel()],
                                  object).reshape(values.shape)
            assert values.shape == expected.shape and values.tobytes() == expected.tobytes() \
                or values.tolist() == expected.tolist(), name
            counts['datasets'] += 1


@pytest.fixture(scope='session')
def jsfive(tmp_path_factory):
    """The folder in which jsfive is installed; JSFIVE leads readers.py to it."""
    if not (shutil.which('node') and shutil.which('npm')):
        pytest.skip('npm is missing: jsfive cannot be installed')
    folder = tmp_path_factory.mktemp('js') / 'jsfive'
    shutil.copytree(os.path.join(support.ROOT, 'tests', 'jsfive'), folder)
    install = subprocess.run(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], cwd=folder, capture_output=True,
                             text=True)
    if install.returncode:
        pytest.skip('npm could not install jsfive: ' + install.stderr[-200:])
    os.environ['JSFIVE'] = str(folder)
    return folder


@pytest.mark.parametrize('case,table', BOTH_MS)
def test_jsfive(case, table, converted, jsfive, counts):
    """jsfive reads every dataset of a file for HDF5 1.8 but complex numbers."""
    path = converted(case, table, *OLD)
    found = readers.jsfive_datasets(path)
    with h5py.File(path) as file:
        for name, item in datasets(file).items():
            if hidden(item):
                continue
            read, expected = found['/' + name], item[...]
            assert ('error' in read) == (expected.dtype.kind == 'c'), (name, read.get('error'))
            if 'error' in read:
                counts['complex'] += 1
                continue
            assert tuple(read['shape']) == item.shape, name
            if expected.dtype == object:
                assert read['values'] == [text.decode() for text in expected.ravel()], name
            else:
                np.testing.assert_array_equal(np.array(read['values'], 'f8'), expected.ravel().astype('f8'), err_msg=name)
            counts['datasets'] += 1


@needs_tools
@pytest.mark.parametrize('case,table', BOTH_MS)
def test_h5dump_old(case, table, converted):
    run('h5dump', '-o', os.devnull, converted(case, table, *OLD))


@pytest.mark.parametrize('option', ['--appendable', '--compress=shared', '--profile=cloud', '--replace'])
def test_old_refused(option, tmp_path):
    """What HDF5 1.8 does not have is refused before anything is written."""
    process = support.h5bridge('to-hdf5', os.path.join(support.TESTDATA, 'demo', 'demo.ms'), tmp_path / 'x.h5', *OLD, option,
                               code=support.USAGE)
    assert option.split('=')[0] in process.stderr and '1.8' in process.stderr
    assert not os.listdir(tmp_path)


def test_old_restorable(tmp_path, converted):
    source = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
    support.h5bridge('to-ms', '--exact', converted('demo', 'demo.ms', *OLD, '--restorable'), tmp_path / 'exact')
    made, expected = support.tree(tmp_path / 'exact'), support.tree(source)
    assert {name: made[name] for name in expected if name != 'table.lock'} == \
        {name: expected[name] for name in expected if name != 'table.lock'}


@pytest.fixture(scope='session')
def large_keyword(tmp_path_factory):
    """A table with keywords that are too large for an object header."""
    path = str(tmp_path_factory.mktemp('large') / 'large.tab')
    with ct.table(path, ct.maketabdesc(ct.makescacoldesc('A', 0)), nrow=2, ack=False) as table:
        table.putkeyword('BIG', np.arange(9000.))
        table.putkeyword('FITS', np.arange(8000.))
        table.putkeyword('NAMES', ['name %d' % number for number in range(5000)])
        table.putcolkeyword('A', 'CUBE', np.arange(9000.).reshape(10, 30, 30))
    return path


def test_old_attributes(large_keyword, tmp_path):
    """Attributes of more than 64 KB are left out of a file for HDF5 1.8, with a warning, and nothing is lost."""
    default, old, back = tmp_path / 'default.h5', tmp_path / 'old.h5', tmp_path / 'back'
    support.h5bridge('to-hdf5', large_keyword, default)
    document = json.loads(support.h5bridge('to-hdf5', large_keyword, old, *OLD, '--json').stdout)
    warned = {name for name in ('BIG', 'FITS', 'NAMES', 'CUBE') if any(name in text for text in document['warnings'])}
    assert warned == {'BIG', 'NAMES', 'CUBE'}
    with h5py.File(default) as file, h5py.File(old) as other:
        assert {'BIG', 'FITS', 'NAMES'} <= set(file['MAIN'].attrs) and 'CUBE' in file['MAIN/A'].attrs
        assert 'FITS' in other['MAIN'].attrs and not {'BIG', 'NAMES'} & set(other['MAIN'].attrs)
        assert 'CUBE' not in other['MAIN/A'].attrs
    written = json.loads(support.h5bridge('to-ms', old, back, '--json').stdout)
    assert not written['warnings']
    for pair in ((default, old), (large_keyword, old), (large_keyword, back)):
        support.h5bridge('verify', *pair)
    with ct.table(str(back), ack=False) as table:
        np.testing.assert_array_equal(table.getkeyword('BIG'), np.arange(9000.))
        assert table.getcolkeyword('A', 'CUBE').shape == (10, 30, 30)
    # HDF5 itself has no place for it
    with h5py.File(tmp_path / 'x.h5', 'w', libver=('earliest', 'v108')) as file:
        with pytest.raises(OSError):
            file.attrs['BIG'] = np.arange(9000.)
    assert places(default, 'large-attribute') == {('/MAIN', 'BIG'), ('/MAIN', 'NAMES'), ('/MAIN/A', 'CUBE')}
    assert not places(old, 'large-attribute')


def test_old_many_columns(tmp_path):
    """A dimension scale of a file for HDF5 1.8 lists 4000 datasets and no more."""
    path = str(tmp_path / 'wide.tab')
    columns = [ct.makescacoldesc('C%d' % number, 0) for number in range(4001)]
    ct.table(path, ct.maketabdesc(columns), nrow=1, ack=False).close()
    process = support.h5bridge('to-hdf5', path, tmp_path / 'x.h5', *OLD, '--dry-run', code=support.UNSUPPORTED)
    assert '4001' in process.stderr and '4000' in process.stderr
    support.h5bridge('to-hdf5', path, tmp_path / 'x.h5', *OLD, '--dry-run', '--exclude', 'C0')
    if support.LONG:
        # libhdf5 writes the list of a scale again for each dataset
        support.h5bridge('to-hdf5', path, tmp_path / 'x.h5', *OLD, '--exclude', 'C0', timeout=1200)
        support.h5bridge('verify', tmp_path / 'x.h5')


# ---- lint -----------------------------------------------------------------------------------------------------------

def lint(path, code=support.DONE):
    return json.loads(support.h5bridge('lint', '--json', path, code=code).stdout)


def places(path, rule, code=support.DONE):
    """The objects, or objects and attributes, that a rule applies to."""
    found = [finding for finding in lint(path, code)['findings'] if finding['rule'] == rule]
    return {(finding['object'], finding['attribute']) if finding['attribute'] else finding['object'] for finding in found}


@pytest.mark.parametrize('case,table', support.sample(FILES, 2))
def test_lint_follows(case, table, converted, counts):
    """What h5bridge writes follows the layout; a file for HDF5 1.8 has no notes about old readers."""
    for options in ((), OLD) if (case, table) in SOME_FILES else ((),):
        document = lint(converted(case, table, *options))
        assert document['follows_layout'] and document['checked']['datasets'] > 0
        assert not any(finding['breaks_layout'] for finding in document['findings'])
        if options:
            assert not {'hdf5-1.10', 'chunk-index'} & {finding['rule'] for finding in document['findings']}
        counts['files'] += 1


def in_tables(file):
    """The datasets of tables, with their paths."""
    return {'/' + name: item for name, item in datasets(file).items() if not name.startswith('_ctds/')}


def test_lint_chunk_index(converted, jsfive):
    """pyfive and jsfive fail at exactly the datasets that lint names."""
    path = converted(*BOTH_MS[0])
    expected, failed = places(path, 'chunk-index'), set()
    with h5py.File(path) as file, pyfive.File(str(path)) as other:
        for name in datasets(file):
            try:
                other[name][...]
            except RuntimeError:
                failed.add('/' + name)
    assert failed == expected and expected
    assert {name for name, read in readers.jsfive_datasets(path).items() if 'error' in read} == expected


def test_lint_complex(converted, jsfive):
    """netCDF4 shows structures exactly where lint says so, and complex numbers with auto_complex; jsfive fails there."""
    path = converted(*BOTH_MS[0])
    expected = places(path, 'complex')
    with h5py.File(path) as file, netCDF4.Dataset(path) as plain, netCDF4.Dataset(path, auto_complex=True) as complex_:
        shown = {name for name, item in in_tables(file).items() if not hidden(item) and isinstance(plain[name].dtype, dict | np.dtype)
                 and getattr(plain[name][...].dtype, 'names', None)}
        assert shown == expected and expected
        assert {complex_[name][...].dtype.kind for name in expected} == {'c'}
    old = converted(*BOTH_MS[0], *OLD)
    failed = {name for name, read in readers.jsfive_datasets(old).items() if 'error' in read}
    assert failed == places(old, 'complex-unread') == expected


def test_lint_boolean(converted):
    path = converted(*BOTH_MS[0])
    expected = places(path, 'boolean')
    with h5py.File(path) as file, netCDF4.Dataset(path) as shown:
        booleans = {name for name, item in in_tables(file).items() if item.dtype == bool}
        assert booleans == expected and expected
        assert {shown[name][...].dtype for name in booleans} == {np.dtype('i1')}


def test_lint_strings(converted):
    """VirtualiZarr opens a group only without the datasets that lint names."""
    path = converted(*BOTH_MS[0])
    named = places(path, 'strings')
    for group in ('ANTENNA', 'FIELD', 'MAIN'):
        names = [name.rsplit('/', 1)[1] for name in named if name.rsplit('/', 1)[0] == '/' + group]
        if names:
            with pytest.raises(AttributeError):
                readers.virtual_store(path, group)
        readers.virtual_store(path, group, names)


@needs_tools
@pytest.mark.parametrize('codec', ['zstd', 'lz4'])
def test_lint_plugin(codec, converted, jsfive):
    """Readers without the plugin fail at the datasets that lint names, and at no other."""
    path = converted(*BOTH_MS[0], *OLD, '--compress', codec)
    expected, failed = places(path, 'plugin'), set()
    with h5py.File(path) as file, pyfive.File(str(path)) as other:
        for name in datasets(file):
            try:
                other[name][...]
            except NotImplementedError:
                failed.add('/' + name)
    assert failed == expected and expected
    assert expected <= {name for name, read in readers.jsfive_datasets(path).items() if 'error' in read}
    script = 'import h5py, sys; h5py.File(sys.argv[1])["MAIN/UVW"][...]'
    without = dict(os.environ, HDF5_PLUGIN_PATH='/nowhere')
    for command in ([sys.executable, '-c', script, path], ['h5dump', '-d', '/MAIN/UVW', path]):
        assert subprocess.run(command, env=without, capture_output=True).returncode != 0, command
    assert not places(converted(*BOTH_MS[0], *OLD, '--compress', 'gzip'), 'plugin')


@needs_tools
def test_lint_growing(converted, tmp_path):
    """A file whose writer was killed opens under SWMR only."""
    path = shutil.copy(converted(*BOTH_MS[0], '--appendable'), tmp_path / 'live.h5')
    script = 'import h5py, os, sys; f = h5py.File(sys.argv[1], "r+", libver="latest"); f.swmr_mode = True; f.flush(); os._exit(0)'
    assert not places(path, 'growing')
    subprocess.run([sys.executable, '-c', script, path], check=True)
    assert places(path, 'growing') == {'/'}
    with pytest.raises(OSError):
        h5py.File(path)
    with pytest.raises(OSError):
        netCDF4.Dataset(path)
    assert subprocess.run(['h5dump', '-H', path], capture_output=True).returncode != 0
    h5py.File(path, swmr=True).close()


@pytest.fixture
def edited(converted, tmp_path):
    """edited(change): a copy of a native file after a change made with h5py."""
    def edit(change):
        path = shutil.copy(converted(*BOTH_MS[0]), tmp_path / 'edited.h5')
        with h5py.File(path, 'r+') as file:
            change(file['MAIN'])
        return path
    return edit


def test_lint_no_scale(edited):
    """Without a scale, xarray and netCDF4 name the axis themselves."""
    path = edited(lambda main: main.create_dataset('NEW', (main['TIME'].size, 7), 'f4'))
    assert places(path, 'no-scale') == {'/MAIN/NEW'}
    for engine in ('h5netcdf', 'netcdf4'):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            with xarray.open_datatree(path, engine=engine, decode_times=False) as tree:
                assert tree['MAIN/NEW'].dims[1].startswith('phony_dim'), engine
                assert tree['MAIN/TIME'].dims == ('row',)


def test_lint_lost_scale(converted, tmp_path):
    """HDF5 does not renew references in objects that are copied one by one; these readers follow them."""
    whole, path = converted(*BOTH_MS[0]), tmp_path / 'copied.h5'
    with h5py.File(whole) as source, h5py.File(path, 'w') as file:
        file.create_dataset('before', data=np.zeros(100))      # other addresses than in the source
        file.attrs.update({name: source.attrs[name] for name in ('format', 'format_version')})
        for name in source:
            source.copy(name, file)
        del file['before']
    assert not places(whole, 'lost-scale')
    found = places(path, 'lost-scale')
    with h5py.File(path) as file:
        lost = set()

        def look(name, item):
            if isinstance(item, h5py.Dataset) and 'DIMENSION_LIST' in item.attrs:
                try:
                    for axis in item.dims:
                        axis.keys()
                except RuntimeError:
                    lost.add('/' + name)
        file.visititems(look)
    assert '/MAIN/DATA' in lost and lost <= found
    for engine in ('h5netcdf', 'netcdf4'):
        with pytest.raises((KeyError, OSError, RuntimeError)):
            xarray.open_datatree(path, engine=engine, decode_times=False)
    support.h5bridge('to-hdf5', path, tmp_path / 'anew.h5')
    assert not places(tmp_path / 'anew.h5', 'lost-scale')
    xarray.open_datatree(tmp_path / 'anew.h5', engine='h5netcdf', decode_times=False).close()


@pytest.mark.parametrize('length, is_long', [(255, False), (257, True), (300, True)])
def test_lint_long_name(length, is_long, edited):
    name = 'L' * length
    path = edited(lambda main: main.create_dataset(name, data=np.ones(main['TIME'].size)))
    assert places(path, 'long-name') == ({'/MAIN/' + name} if is_long else set())
    if is_long:
        with pytest.raises((OSError, RuntimeError, AttributeError, UnicodeError, KeyError)), netCDF4.Dataset(path) as file:
            file['MAIN'].variables[name][:]
    else:
        with netCDF4.Dataset(path) as file:
            assert file['MAIN'].variables[name][:].all()
    # netCDF4 leaves a file that it could not read open
    os.remove(path)
    path = edited(lambda main: main['TIME'].attrs.__setitem__(name, 1))
    assert places(path, 'long-name') == ({('/MAIN/TIME', name)} if is_long else set())


def commit(main):
    main['T'] = np.dtype('f8')
    main.create_dataset('X', (main['TIME'].size,), main['T'])


BREAKS = {
    'null-dataspace': lambda main: main.create_dataset('X', data=h5py.Empty('f4')),
    'null-attribute': lambda main: main.attrs.__setitem__('X', h5py.Empty('f4')),
    'attribute-axes': lambda main: main.attrs.__setitem__('X', np.ones((2, 3))),
    'committed-type': commit,
    'type-reference': commit,
    'other-file': lambda main: main.__setitem__('X', h5py.ExternalLink('other.h5', '/X')),
    'elements-elsewhere': lambda main: main.create_dataset('X', (main['TIME'].size,), 'f8', external='raw.bin'),
    'element-type': lambda main: main.create_dataset('X', (main['TIME'].size,), h5py.vlen_dtype('i4')),
    'unreadable': lambda main: main.create_dataset('X', (3,), 'f8'),
}
# netCDF4 does not open the file, or not the attribute
NETCDF_FAILS = {'null-dataspace', 'attribute-axes', 'committed-type', 'type-reference', 'other-file'}


@pytest.mark.parametrize('rule', BREAKS)
def test_lint_breaks(rule, edited):
    """Each break of the layout is named, with exit code 5; readers fail at those of which the rule says so."""
    path = edited(BREAKS[rule])
    found = places(path, rule, support.DIFFERENT)
    expected = '/MAIN/T' if rule == 'committed-type' else ('/MAIN', 'X') if 'attribute' in rule else '/MAIN/X'
    assert found == {expected}
    if rule in NETCDF_FAILS:
        with pytest.raises((OSError, AttributeError)), netCDF4.Dataset(path) as file:
            file['MAIN'].getncattr('X')
    elif rule == 'element-type':
        with pytest.raises(ValueError), xarray.open_datatree(path, engine='h5netcdf', decode_times=False) as tree:
            tree.load()
    elif rule == 'unreadable':
        said = support.h5bridge('to-ms', path, os.path.join(os.path.dirname(path), 'x.ms')).stderr
        assert 'X is not a column' in said


@pytest.mark.parametrize('kind', ['i1', 'u8', 'f2', '>f8', '>i2', 'c8', 'u2', 'i8', 'u1', 'S8'])
def test_lint_types(kind, edited):
    """The types of docs/reference/layout.md and no others."""
    path = edited(lambda main: main.create_dataset('X', (main['TIME'].size,), kind))
    known = kind in ('c8', 'u2', 'i8', 'u1', 'S8')
    assert places(path, 'element-type', support.DONE if known else support.DIFFERENT) == (set() if known else {'/MAIN/X'})


def test_lint_text(converted, tmp_path):
    """The text names rule, objects, readers and the next step; another HDF5 file is refused."""
    text = support.h5bridge('lint', converted(*BOTH_MS[0])).stdout
    for part in ('note, chunk-index: ', 'single: /', 'readers: pyfive, jsfive', 'next: h5bridge to-hdf5 --hdf5 1.8'):
        assert part in text, text
    with h5py.File(tmp_path / 'other.h5', 'w') as file:
        file['x'] = 1
    process = support.h5bridge('lint', tmp_path / 'other.h5', code=support.UNSUPPORTED)
    assert 'not a native file' in process.stderr


# ---- the table of readers -------------------------------------------------------------------------------------------

VALUES = {'numbers': 'MAIN/UVW', 'strings': 'ANTENNA/NAME', 'booleans': 'MAIN/FLAG', 'complex': 'MAIN/DATA'}
DOCS = os.path.join(support.ROOT, 'docs', 'reference', 'readers.md')
COLUMNS = ['default file', '`--hdf5 1.8`', 'strings', 'booleans', 'complex', 'zstd, no plugin']


@pytest.fixture(scope='session')
def verdicts(converted, jsfive, tmp_path_factory):
    """{reader: (version, [cell of each of COLUMNS])} as the readers read."""
    table = ct.table(os.path.join(support.own_copy('demo', 'demo.ms')), ack=False)
    names = ct.table(table.getkeyword('ANTENNA'), ack=False)
    expected = {VALUES['numbers']: table.getcol('UVW'), VALUES['strings']: np.array(names.getcol('NAME')),
                VALUES['booleans']: table.getcol('FLAG'), VALUES['complex']: table.getcol('DATA')}
    names.close()
    table.close()
    values = tmp_path_factory.mktemp('readers') / 'expected.npz'
    np.savez(values, **expected)
    default, old, zstd = (str(converted('demo', 'demo.ms', *options)) for options in ((), OLD, (*OLD, '--compress', 'zstd')))
    found = {}
    without_plugins = {name: value for name, value in os.environ.items() if name != 'HDF5_PLUGIN_PATH'}
    for reader in readers.READERS:
        if why := readers.missing(reader):
            pytest.skip(why)
        process = subprocess.run([sys.executable, readers.__file__, reader, values, default, old, zstd], text=True,
                                 env=without_plugins, capture_output=True)
        assert process.returncode == 0, process.stderr[-2000:]
        document = json.loads(process.stdout)
        *plain, compressed = document['first']
        found[reader] = document['version'], [*plain, *document['rest'], compressed]
    return found


def markdown(head, rows):
    return '\n'.join('| %s |' % ' | '.join(row) for row in [head, ['---'] * len(head), *rows])


def test_table(verdicts):
    """The table in docs/reference/readers.md says what the readers did. H5BRIDGE_UPDATE=1 writes it."""
    if verdicts['h5dump'][0] != '1.10':
        pytest.skip('h5dump is of HDF5 %s, the table of 1.10' % verdicts['h5dump'][0])
    rows = [[reader, version, *cells] for reader, (version, cells) in verdicts.items()]
    made = markdown(['reader', 'version', *COLUMNS], rows)
    with open(DOCS) as file:
        text = file.read()
    begin, end = '<!-- readers: made by tests/python/convert/test_readers.py -->\n', '\n<!-- readers: end -->'
    before, rest = text.split(begin)
    kept, after = rest.split(end)
    if os.environ.get('H5BRIDGE_UPDATE'):
        with open(DOCS, 'w') as file:
            file.write(before + begin + made + end + after)
    else:
        assert kept == made, 'H5BRIDGE_UPDATE=1 pytest tests/python/convert/test_readers.py -k test_table writes the table'
    assert not any(cell == 'wrong' for _, cells in verdicts.values() for cell in cells)


def test_rules_are_documented(converted):
    """docs/reference/readers.md has every rule that a file of the tests is named for."""
    with open(DOCS) as file:
        text = file.read()
    rules = set(re.findall(r'name: "([a-z0-9.-]+)"', open(os.path.join(support.ROOT, 'src', 'lint', 'rules.rs')).read()))
    assert rules and rules == set(re.findall(r'^\| `([a-z0-9.-]+)` \|', text, re.M))
