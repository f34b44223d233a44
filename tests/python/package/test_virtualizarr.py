"""The parser for VirtualiZarr: datasets of it have the values of casacore, and each column that they lack is named."""
import pickle
import shutil
import sys
import warnings

import numpy as np
import pytest
import casacore.tables as ct

import h5bridge
import support

virtualizarr = pytest.importorskip('virtualizarr')
zarr = pytest.importorskip('zarr')

import xarray  # noqa: E402
from h5bridge.virtualizarr import Parser  # noqa: E402
from obspec_utils.registry import ObjectStoreRegistry  # noqa: E402
from obstore.store import LocalStore  # noqa: E402
from virtualizarr.manifests import ManifestArray  # noqa: E402
from virtualizarr.parsers.typing import Parser as Protocol  # noqa: E402

DEMO = support.own_copy('demo', 'demo.ms')
REGISTRY = ObjectStoreRegistry({'file://': LocalStore()})
# columns in tiles, of which bytes are in the table's own files
TILED = {'UVW', 'WEIGHT', 'SIGMA', 'DATA', 'WEIGHT_SPECTRUM'}
pytestmark = pytest.mark.filterwarnings('ignore::UserWarning:zarr', 'ignore::FutureWarning')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A MeasurementSet, the native file and the manifest of it, below a name with a space."""
    folder = tmp_path_factory.mktemp('a folder')
    shutil.copytree(DEMO, folder / 'my.ms')
    h5bridge.to_hdf5(folder / 'my.ms', folder / 'my.h5')
    h5bridge.manifest(folder / 'my.ms', folder / 'my.json')
    return folder


def opened(path, table='MAIN', **options):
    """A virtual dataset, and the words of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always', UserWarning)
        dataset = virtualizarr.open_virtual_dataset(str(path), registry=REGISTRY, parser=Parser(table), **options)
    return dataset, [str(found.message) for found in caught if found.category is UserWarning]


def virtual(dataset):
    return {name for name, variable in dataset.variables.items() if isinstance(variable._data, ManifestArray)}


def check(found, table, defined=None):
    """A variable has the cells of casacore, where they are defined."""
    values = np.asarray(found.values)
    for row in range(table.nrows()):
        if defined is None or defined[row]:
            expected = np.asarray(table.getcell(found.name, row))
            assert np.array_equal(values[row], expected.astype(values.dtype)), (found.name, row)


def check_dataset(dataset, table, named):
    """All columns of a table are in a dataset or named."""
    assert len(table.colnames()) > 5
    for name in table.colnames():
        if name not in dataset:
            assert any(name in text for text in named), name
            continue
        defined = dataset[name + '__defined'].values if name + '__defined' in dataset else None
        check(dataset[name], table, defined)


def whole(path, table):
    """The dataset of a store, all of which Zarr reads."""
    store = Parser(table)('file://%s' % path, REGISTRY)
    return xarray.open_zarr(store, consolidated=False, zarr_format=3)


@pytest.mark.parametrize('name', ['my.ms', 'my.h5', 'my.json'])
@pytest.mark.parametrize('table', ['MAIN', 'ANTENNA', 'SPECTRAL_WINDOW', 'FIELD'])
def test_values(folder, name, table):
    dataset, named = opened(folder / name, table)
    with ct.table(str(folder / 'my.ms' / ('' if table == 'MAIN' else table)), ack=False) as expected:
        check_dataset(whole(folder / name, table), expected, named)
        loaded = dataset.drop_vars(virtual(dataset))
        for column in set(loaded) & set(expected.colnames()):
            defined = loaded[column + '__defined'].values if column + '__defined' in loaded else None
            check(loaded[column], expected, defined)


def test_virtual_are_those_in_tiles_and_chunks(folder):
    assert virtual(opened(folder / 'my.ms')[0]) == TILED
    for name in ('my.h5', 'my.json'):
        dataset, _ = opened(folder / name)
        assert virtual(dataset) >= TILED | {'FLAG', 'TIME', 'ANTENNA1'}
        strings = virtual(opened(folder / name, 'ANTENNA')[0])
        assert {'POSITION', 'OFFSET'} <= strings and not strings & {'NAME', 'STATION', 'TYPE', 'MOUNT', 'row'}
    # strings have no bytes to refer to, whatever is asked for
    assert virtual(opened(folder / 'my.h5', 'ANTENNA', loadable_variables=[])[0]) >= strings | {'row'}
    assert 'NAME' not in virtual(opened(folder / 'my.h5', 'ANTENNA', loadable_variables=[])[0])


def test_columns_of_several_shapes_are_named(folder):
    dataset, named = opened(folder / 'my.ms')
    assert 'FLAG_CATEGORY' not in dataset and ['FLAG_CATEGORY' in text for text in named] == [True]
    assert opened(folder / 'my.ms', 'ANTENNA')[1] == []


def test_tree(folder):
    for name in ('my.ms', 'my.h5', 'my.json'):
        tree = virtualizarr.open_virtual_datatree(str(folder / name), registry=REGISTRY, parser=Parser(None))
        assert {'/MAIN', '/ANTENNA', '/SPECTRAL_WINDOW', '/MAIN/FLAG_CATEGORY'} <= set(tree.groups)
        assert TILED <= virtual(tree['MAIN'].to_dataset(inherit=False))
        with ct.table(str(folder / 'my.ms' / 'ANTENNA'), ack=False) as table:
            assert list(tree['ANTENNA/NAME'].values) == list(table.getcol('NAME'))


@pytest.mark.parametrize('case,table', [('dtypes_all_managers', None), ('dtypes_tiled', 'TiledColumnStMan_complex_big.tab'), ('dtypes_tiled', 'TiledColumnStMan_boolean_big.tab')])
def test_types(case, table, tmp_path):
    """Every type of casacore, in both byte orders, in tiles and not."""
    path = support.own_copy(case, table or support.roots(support.expected(case)['tables'])[0])
    counted = 0
    for source in (path, tmp_path / 'my.h5'):
        if source != path:
            h5bridge.to_hdf5(path, source)
        _, named = opened(source)
        dataset = whole(source, 'MAIN')
        with h5bridge.open_table(path) as expected:
            for name, column in expected.items():
                if name not in dataset:
                    assert any(name in text for text in named), name
                    continue
                defined = dataset[name + '__defined'].values if name + '__defined' in dataset else None
                for row, cell in enumerate(column.cells()):
                    if defined is None or defined[row]:
                        found = np.asarray(dataset[name].values[row])
                        assert np.array_equal(found, np.asarray(cell).astype(found.dtype), equal_nan=found.dtype.kind in 'fc'), (name, row)
                        counted += 1
    assert counted


def test_concatenation(folder):
    """Columns of several tables are one."""
    parts = [opened(folder / 'my.ms')[0].drop_vars(['row', 'chan_0', 'corr_0'])[['DATA', 'UVW']] for _ in range(2)]
    joined = xarray.concat(parts, dim='other', coords='minimal', compat='override', data_vars='all')
    assert joined.DATA.shape == (2, 210, 16, 4) and virtual(joined) == {'DATA', 'UVW'}


def test_kerchunk(folder):
    dataset, _ = opened(folder / 'my.ms')
    references = dataset.vz.to_kerchunk(format='dict')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        # VirtualiZarr has fill values of 0, which xarray would mask
        found = xarray.open_dataset('reference://', engine='zarr', mask_and_scale=False, consolidated=False,
                                    storage_options={'fo': references, 'remote_protocol': 'file'})
        with ct.table(str(folder / 'my.ms'), ack=False) as table:
            for name in (*TILED, 'TIME', 'FLAG', 'ANTENNA1'):
                check(found[name], table)


@pytest.mark.parametrize('name', ['my.ms', 'my.h5'])
def test_icechunk(folder, name):
    icechunk = pytest.importorskip('icechunk')
    place = 'file://%s/' % folder
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(place, icechunk.local_filesystem_store(str(folder))))
    repository = icechunk.Repository.create(icechunk.in_memory_storage(), config, authorize_virtual_chunk_access={place: None})
    session = repository.writable_session('main')
    for table in ('MAIN', 'ANTENNA'):
        opened(folder / name, table)[0].vz.to_icechunk(session.store, group=table)
    session.commit('tables')
    store = repository.readonly_session('main').store
    for name in ('MAIN', 'ANTENNA'):
        with ct.table(str(folder / 'my.ms' / ('' if name == 'MAIN' else name)), ack=False) as table:
            check_dataset(xarray.open_zarr(store, group=name, consolidated=False), table, ['FLAG_CATEGORY'])


def test_parser(folder):
    assert isinstance(Parser(), Protocol) and Parser() == Parser('MAIN') == pickle.loads(pickle.dumps(Parser()))
    copy = pickle.loads(pickle.dumps(opened(folder / 'my.ms')[0]))
    with ct.table(str(folder / 'my.ms'), ack=False) as table:
        check(copy['TIME'], table)
    # the registry of the caller stays as it is
    assert [key.scheme for key in REGISTRY.map] == ['file']


@pytest.mark.parametrize('name', ['my.ms', 'my.h5', 'my.json'])
def test_unknown_table(folder, name):
    with pytest.raises(h5bridge.UsageError, match='no table ANTENA'):
        Parser('ANTENA')('file://%s' % (folder / name), REGISTRY)


def test_manifest_of_one_table(folder, tmp_path):
    h5bridge.manifest(folder / 'my.ms', tmp_path / 'antenna.json', table='ANTENNA')
    with pytest.raises(h5bridge.UsageError, match='table=None'):
        opened(tmp_path / 'antenna.json', 'ANTENNA')
    assert 'NAME' in opened(tmp_path / 'antenna.json', None)[0]


def test_left_out_columns_are_named(folder, tmp_path):
    """LZF has no codec: a large column is left out, a small one loaded."""
    h5py = pytest.importorskip('h5py')
    with h5py.File(tmp_path / 'my.h5', 'w') as file:
        file.attrs.update(format='ctds-hdf5', format_version='1.0')
        file.create_dataset('MAIN/LARGE', data=np.arange(500000, dtype='i4').reshape(5000, 100), chunks=(500, 100), compression='lzf')
        file.create_dataset('MAIN/SMALL', data=np.arange(5000, dtype='i4'), chunks=(500,), compression='lzf')
    dataset, named = opened(tmp_path / 'my.h5')
    assert 'LARGE' not in dataset and any('MAIN/LARGE' in text and 'lzf' in text for text in named)
    assert virtual(dataset) == set() and (dataset.SMALL.values == np.arange(5000)).all()


def test_without_virtualizarr(monkeypatch):
    monkeypatch.setitem(sys.modules, 'virtualizarr', None)
    with pytest.raises(ImportError, match=r"h5bridge\[virtualizarr\]"):
        Parser()('file:///my.ms', REGISTRY)
