"""`to-hdf5 --compress shared`: hypercubes of numbers are blocks (docs/reference/layout.md), on any file system."""
import json
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
import xarray

import sharing
import support
from sharing import COLUMNS, Tiles

ORDERS = ['little', 'big']


@pytest.fixture(scope='module', params=ORDERS)
def table(request, tmp_path_factory):
    """A table with tiles of every kind, and the file made of it."""
    folder = tmp_path_factory.mktemp(request.param)
    path = sharing.make(folder / 'my.tab', order=request.param)
    support.h5bridge('to-hdf5', path, folder / 'my.h5', '--compress', 'shared')
    return path, folder / 'my.h5'


def indices(path):
    """{dataset: index} as `info` shows it."""
    document = json.loads(support.h5bridge('info', '--json', path).stdout)
    return {dataset['name']: dataset['index'] for column in document['tables']['.']['columns'] for dataset in column['datasets']}


def test_blocks(table):
    path, file = table
    with h5py.File(file) as opened:
        for column in COLUMNS:
            item = opened['MAIN'][column.name]
            sharing.same(sharing.cells_in(item), sharing.values_of(path, column))
            for dataset in sharing.blocks(item):
                sharing.check_block(dataset)
        assert opened['MAIN/JOINED'].chunks == (512, 64, 4)     # 32 tiles of 32 KiB
        assert opened['MAIN/CHAN_TAIL'].chunks == (50, 20, 4)
        assert opened['MAIN/TIME'].compression == 'gzip'


def test_other_readers(table):
    path, file = table
    with netCDF4.Dataset(file) as opened, xarray.open_datatree(file, engine='h5netcdf', decode_times=False) as tree:
        for column in COLUMNS:
            if column.shapes:
                continue
            expected = sharing.values_of(path, column)
            np.testing.assert_array_equal(tree['MAIN'][column.name].values, expected)
            if not column.dtype.startswith('c'):
                np.testing.assert_array_equal(opened['MAIN'][column.name][...], expected)


def test_h5dump_110(table):
    """The tools of HDF5 1.10 read blocks, and say what they are."""
    path, file = table
    for name in ('CHAN_TAIL', 'LONG', 'SPLIT'):
        column = next(column for column in COLUMNS if column.name == name)
        shown = subprocess.run(['h5dump', '-p', '-H', '-d', '/MAIN/' + name, file], capture_output=True, text=True, check=True).stdout
        assert 'H5D_ALLOC_TIME_EARLY' in shown and 'FILL_TIME H5D_FILL_TIME_NEVER' in shown, shown
        out = str(file) + '.' + name
        subprocess.run(['h5dump', '-d', '/MAIN/' + name, '-b', 'FILE', '-o', out, file], capture_output=True, check=True)
        np.testing.assert_array_equal(np.fromfile(out, column.dtype).reshape(-1, *column.shape), sharing.values_of(path, column))


def test_index_names(table):
    path, file = table
    plan = json.loads(support.h5bridge('to-hdf5', '--json', '--dry-run', path, str(file) + '.none', '--compress', 'shared').stdout)
    planned = {column['name']: column['index'] for column in plan['tables'][0]['columns']}
    stored = indices(file)
    for column in COLUMNS:
        assert planned[column.name] == column.index, column.name
        names = [column.name] if not column.shapes else ['%s/cube%d' % (column.name, n) for n in range(3)]
        assert {stored[name] for name in names} == {column.index}, column.name
    assert planned['TIME'] == 'single'


def test_large_ones_are_aligned(tmp_path):
    """Each of several large datasets begins at a multiple of 1 MiB; what is smaller is packed."""
    columns = [Tiles('A', 'c8', (64, 4), [4, 64, 30]), Tiles('B', 'f4', (3,), [3, 999]), Tiles('C', 'c8', (60, 4), [4, 17, 111]),
               Tiles('D', 'f8', (64, 4), [4, 64, 30])]
    path = sharing.make(tmp_path / 'my.tab', columns, rows=3000)
    support.h5bridge('to-hdf5', path, tmp_path / 'my.h5', '--compress', 'shared')
    with h5py.File(tmp_path / 'my.h5') as opened:
        found = {column.name: sharing.check_block(opened['MAIN'][column.name]) for column in columns}
        for column in columns:
            sharing.same(opened['MAIN'][column.name][...], sharing.values_of(path, column))
    assert [found[name][0] % sharing.MIB == 0 for name in 'ABCD'] == [True, False, True, True], found
    size = sum(size for _, size in found.values())
    assert (tmp_path / 'my.h5').stat().st_size <= size + 3 * sharing.MIB + (64 << 10)


def test_columns_that_are_not_tiles_of_numbers(tmp_path):
    """Bits are decoded; columns of one manager are separated; some rows are copied."""
    columns = [Tiles('FLAG', '?', (64, 4), [4, 64, 16]), Tiles('A', 'f4', (64, 4), [4, 64, 16]), Tiles('B', 'f8', (64, 4), [4, 64, 16])]
    path = sharing.make(tmp_path / 'my.tab', columns, rows=700, together=('A', 'B'))
    support.h5bridge('to-hdf5', path, tmp_path / 'my.h5', '--compress', 'shared')
    with h5py.File(tmp_path / 'my.h5') as opened:
        for column in columns:
            sharing.same(opened['MAIN'][column.name][...], sharing.values_of(path, column))
        for name in 'AB':
            sharing.check_block(opened['MAIN'][name])
        assert opened['MAIN/FLAG'].compression == 'gzip'
    support.h5bridge('to-hdf5', path, tmp_path / 'rows.h5', '--compress', 'shared', '--rows', '16..80')
    with h5py.File(tmp_path / 'rows.h5') as opened:
        sharing.same(opened['MAIN/A'][...], sharing.values_of(path, columns[1])[16:80])
        assert opened['MAIN/A'].id.get_create_plist().get_alloc_time() == h5py.h5d.ALLOC_TIME_INCR


def test_other_modes_keep_their_layout(tmp_path):
    path = sharing.make(tmp_path / 'my.tab')
    support.h5bridge('to-hdf5', path, tmp_path / 'none.h5', '--compress', 'none')
    assert 'implicit' not in indices(tmp_path / 'none.h5').values()


def test_refused(tmp_path):
    path = sharing.make(tmp_path / 'my.tab', COLUMNS[:1], rows=10)
    process = support.h5bridge('to-hdf5', path, tmp_path / 'my.h5', '--compress', 'shared', '--appendable', code=support.USAGE)
    assert '--appendable' in process.stderr
    assert not list(tmp_path.glob('my.h5*'))


def test_way_back_and_again(table, tmp_path):
    """The file becomes a table of the same tiles, and that the same file."""
    path, file = table
    support.h5bridge('to-ms', file, tmp_path / 'my.tab')
    support.h5bridge('verify', path, tmp_path / 'my.tab')
    for column in COLUMNS:
        sharing.same(sharing.values_of(tmp_path / 'my.tab', column), sharing.values_of(path, column))
    support.h5bridge('to-hdf5', file, tmp_path / 'again.h5', '--compress', 'shared')
    with h5py.File(tmp_path / 'again.h5') as opened:
        for column in COLUMNS:
            for dataset in sharing.blocks(opened['MAIN'][column.name]):
                sharing.check_block(dataset)
