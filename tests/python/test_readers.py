"""Native files open in what people use: xarray, netCDF4, HDF5 1.10's tools; and their chunk indexes are as promised."""
import ctypes
import glob
import json
import os
import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
import xarray

import layout
import support

FILES = support.convertible()
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
        assert file.attrs['source_digest'] == support.digest(path, code=None)['.']['sha256']
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
