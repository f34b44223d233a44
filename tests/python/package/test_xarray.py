"""The xarray engine: the tree of a table is that of the file it would be converted to, and it is lazy."""
import concurrent.futures
import multiprocessing
import os
import pickle
import subprocess
import sys

import astropy.time
import casacore.tables as ct
import h5py
import numpy as np
import pytest
import xarray

import support

pytest.importorskip('h5bridge', reason='the Python package is not installed: scripts/setup-python', exc_type=ImportError)
dask = pytest.importorskip('dask')
hypothesis = pytest.importorskip('hypothesis')
strategies = hypothesis.strategies

DEMO = support.own_copy('demo', 'demo.ms')
# more rows than fit in memory, none of them stored
ENDLESS = ('rows64',)
FILES = [entry for entry in support.some_convertible() if entry[0] not in ENDLESS]


def open_tree(path, **options):
    return xarray.open_datatree(path, engine='h5bridge', **options)


def same(a, b):
    """Whether two attributes have the same type and value."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and (a.tobytes() == b.tobytes() if a.dtype != object else (a == b).all())


def check_same_tree(source, native, counts, is_native=False):
    """The tree of SOURCE has all that the h5netcdf engine shows of the file NATIVE, but what is under _ctds."""
    with open_tree(source, decode_times=False) as tree, xarray.open_datatree(native, engine='h5netcdf') as expected:
        groups = [node.path for node in expected.subtree if not node.path.startswith('/_ctds')]
        assert sorted(node.path for node in tree.subtree) == sorted(groups)
        for path in groups:
            ours, theirs = tree[path].to_dataset(inherit=False), expected[path].to_dataset(inherit=False)
            attributes = dict(theirs.attrs)
            if not is_native:
                attributes.pop('source_digest', None)
            check_same_attributes(path, ours.attrs, attributes, is_native)
            names = {name for name in ours.coords if name.endswith(('_name', '_NAME'))} - set(theirs.variables)
            assert set(ours.variables) == set(theirs.variables) | names, path
            assert set(ours.coords) == set(theirs.coords) | names, path
            for name, variable in theirs.variables.items():
                place = '%s/%s' % (path, name)
                found = ours.variables[name]
                assert (found.dims, found.shape, found.dtype) == (variable.dims, variable.shape, variable.dtype), place
                check_same_attributes(place, found.attrs, shown(variable.attrs, found.attrs), is_native)
                # chunks without elements are there for h5repack alone (docs/reference/layout.md): there is nothing to read in them
                if name not in ours.indexes and variable.size:
                    chunks = [of.encoding.get('preferred_chunks') for of in (found, variable)]
                    assert chunks[0] == chunks[1], place
                counts['elements'] += check_same_values(place, found.values, variable.values)
                counts['datasets'] += 1
        counts['trees'] += 1


def shown(stored, found):
    """What the engine shows of the attributes of a file: none twice, and the unit of epochs as CF has it."""
    twice = {'QuantumUnits': 'units', 'UNIT': 'units', 'MEASINFO.type': 'measure_type', 'MEASINFO.Ref': 'measure_ref'}
    once = {name: value for name, value in stored.items()
            if twice.get(name) not in stored or any(one != stored[twice[name]] for one in np.ravel(value))}
    if once.get('measure_type') == 'epoch' and 'since' in found['units']:
        once['units'] = {'s': 'seconds since 1858-11-17', 'd': 'days since 1858-11-17'}[once['units']]
    return once


def check_same_attributes(place, ours, theirs, in_any_order):
    # HDF5 puts an attribute that is changed last
    assert sorted(ours) == sorted(theirs) if in_any_order else list(ours) == list(theirs), place
    for name, value in theirs.items():
        assert same(ours[name], value), '%s@%s: %r, not %r' % (place, name, ours[name], value)


def check_same_values(place, ours, theirs):
    if theirs.dtype == object:
        assert (ours == theirs).all(), place
    else:
        assert ours.tobytes() == theirs.tobytes(), place
    return theirs.size


# ---- the same tree ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('case,table', FILES)
def test_table_is_the_tree_of_its_file(case, table, converted, counts):
    path = os.path.join(support.TESTDATA, case, table)
    check_same_tree(path, converted(case, table), counts)


@pytest.mark.parametrize('case,table', FILES)
def test_file_is_its_own_tree(case, table, converted, counts):
    path = converted(case, table)
    check_same_tree(path, path, counts, is_native=True)


def test_container(tmp_path, counts):
    packed, native = tmp_path / 'demo.mf', tmp_path / 'demo.h5'
    support.h5bridge('pack', DEMO, packed)
    support.h5bridge('to-hdf5', packed, native)
    check_same_tree(packed, native, counts)


@pytest.mark.parametrize('entry', support.corpus_sample(12), ids=lambda entry: entry['name'])
def test_corpus(entry, tmp_path, counts):
    if support.corpus_missing():
        pytest.skip(support.corpus_missing())
    folder = support.unpack(entry, tmp_path)
    for name in support.roots(entry['tables']):
        native = tmp_path / 'table.h5'
        support.h5bridge('to-hdf5', os.path.join(folder, name), native, '--overwrite', code=None)
        if native.exists():
            check_same_tree(os.path.join(folder, name), native, counts)
            native.unlink()


def test_some_rows_keep_their_numbers(tmp_path, counts):
    native = tmp_path / 'some.h5'
    support.h5bridge('to-hdf5', DEMO, native, '--where', 'ANTENNA1 == 2')
    check_same_tree(native, native, counts, is_native=True)
    with xarray.open_dataset(native, engine='h5bridge') as some, xarray.open_dataset(DEMO, engine='h5bridge') as all_rows:
        assert 0 < some.sizes['row'] < all_rows.sizes['row']
        assert (some.TIME == all_rows.TIME.sel(row=some.row)).all()


def test_edited_attributes(tmp_path, counts):
    native = tmp_path / 'edited.h5'
    support.h5bridge('to-hdf5', DEMO, native)
    with h5py.File(native, 'r+') as file:
        file['MAIN/TIME'].attrs['long_name'] = 'when'
        file['MAIN'].attrs['NOTE'] = 'looked at'
    check_same_tree(native, native, counts, is_native=True)


# ---- what xarray asks of an engine ------------------------------------------------------------------------------------

def test_engine_is_named():
    engine = xarray.backends.list_engines()['h5bridge']
    assert not engine.guess_can_open(DEMO) and engine.supports_groups
    try:
        # xradio's, if it is installed, claims MeasurementSets
        chosen = xarray.backends.plugins.guess_engine(DEMO)
    except ValueError:
        chosen = None
    assert chosen != 'h5bridge' and not isinstance(chosen, type(engine))


def test_groups():
    with xarray.open_dataset(DEMO, engine='h5bridge') as main:
        assert main.DATA.dims == ('row', 'chan_0', 'corr_0') and main.FLAG.dtype == bool
        assert main.chan_0.attrs['units'] == 'Hz' and main.attrs['table_type'] == 'Measurement Set'
    with xarray.open_dataset(DEMO, engine='h5bridge', group='ANTENNA') as antenna:
        assert antenna.NAME.values[0] == 'A00'
    with open_tree(DEMO, group='ANTENNA') as tree:
        assert tree.NAME.values[0] == 'A00' and not tree.children
    with pytest.raises(FileNotFoundError, match='NOPE'):
        xarray.open_dataset(DEMO, engine='h5bridge', group='NOPE')
    with pytest.raises(FileNotFoundError):
        open_tree(os.path.join(support.TESTDATA, 'nope.ms'))


def test_path_into_a_file(tmp_path):
    native = tmp_path / 'demo.h5'
    support.h5bridge('to-hdf5', DEMO, native)
    with xarray.open_dataset(native / 'ANTENNA', engine='h5bridge') as antenna:
        assert antenna.NAME.values[0] == 'A00'
    with open_tree(native / 'ANTENNA') as tree:
        assert tree.NAME.values[0] == 'A00'


def test_drop_variables():
    with open_tree(DEMO, drop_variables=['DATA', 'FLAG']) as tree:
        assert 'DATA' not in tree['MAIN'] and 'FLAG' not in tree['MAIN'] and 'UVW' in tree['MAIN']


def test_decoders_are_xarrays_own():
    with xarray.open_dataset(DEMO, engine='h5bridge', mask_and_scale=False, decode_times=False) as main:
        assert main.TIME.dtype == np.float64


def test_times_are_decoded():
    """By xarray, to what astropy says; an epoch that datetime64 does not have stays a number."""
    with xarray.open_dataset(DEMO, engine='h5bridge') as main, ct.table(DEMO, ack=False) as table:
        expected = astropy.time.Time(table.getcol('TIME') / 86400, format='mjd', scale='utc').datetime64
        assert main.TIME.dtype.kind == 'M' and main.TIME.attrs['measure_ref'] == 'UTC' and 'MEASINFO.type' not in main.TIME.attrs
        assert abs(main.TIME.values - expected).max() <= np.timedelta64(1, 'us')
        assert main.INTERVAL.dtype == np.float64 and main.INTERVAL.attrs['units'] == 's'


def test_epochs_beyond_the_calendar(tmp_path):
    path = str(tmp_path / 'far.tab')
    desc = ct.maketabdesc([ct.makescacoldesc('TIME', 0.)])
    with ct.table(path, desc, nrow=2, ack=False) as table:
        table.putcolkeywords('TIME', {'QuantumUnits': np.array(['s']), 'MEASINFO': {'type': 'epoch', 'Ref': 'UTC'}})
        table.putcol('TIME', np.array([5e9, 1e30]))
    with xarray.open_dataset(path, engine='h5bridge') as dataset:
        assert dataset.TIME.values.tolist() == [5e9, 1e30] and dataset.TIME.attrs['units'] == 's'


def test_names_are_coordinates():
    with xarray.open_dataset(DEMO, engine='h5bridge') as main, ct.table(DEMO + '/ANTENNA', ack=False) as antenna:
        names = antenna.getcol('NAME')
        assert main.ANTENNA2_NAME.values.tolist() == [names[number] for number in main.ANTENNA2.values]
        assert main.corr_0_name.values.tolist() == ['XX', 'XY', 'YX', 'YY'] and main.corr_0.values.tolist() == [9, 10, 11, 12]
        assert not {'corr_0_name', 'ANTENNA1_NAME'} & set(main.indexes) and {'corr_0_name', 'ANTENNA1_NAME'} <= set(main.coords)
        chosen = main.DATA.where((main.ANTENNA1_NAME == 'A01') & (main.corr_0_name == 'YY'), drop=True)
        assert chosen.sizes['corr_0'] == 1 and chosen.sizes['row'] == (main.ANTENNA1.values == 1).sum()


# ---- indices ------------------------------------------------------------------------------------------------------------

def cases_of_indices():
    """(name, path, group, variable) of variables of every kind."""
    shapes = os.path.join(support.TESTDATA, 'shapes', 'shapes.tab')
    undefined = os.path.join(support.TESTDATA, 'undefined', 'big.tab')
    return [('tiles', DEMO, 'MAIN', 'DATA'), ('bools', DEMO, 'MAIN', 'FLAG'), ('scalars', DEMO, 'MAIN', 'TIME'),
            ('strings', DEMO, 'ANTENNA', 'NAME'), ('row', DEMO, 'MAIN', 'row'),
            ('undefined', undefined, 'MAIN', 'StandardStMan_half'), ('defined', undefined, 'MAIN', 'StandardStMan_half__defined'),
            ('cube', shapes, 'MAIN/cubes64', 'cube1'), ('row_cube', shapes, 'MAIN/cubes64', 'row_cube'),
            ('row_index', shapes, 'MAIN/cubes64', 'row_index'), ('values', shapes, 'MAIN/anydim', 'values'),
            ('offset', shapes, 'MAIN/anydim', 'offset'), ('shape', shapes, 'MAIN/anydim', 'shape')]


def index_of(draw, length):
    """An index of an axis: an integer, a slice, an array."""
    kind = draw(strategies.sampled_from(['all', 'slice', 'integer', 'array'] if length else ['all', 'slice']))
    if kind == 'all':
        return slice(None)
    if kind == 'integer':
        return draw(strategies.integers(-length, length - 1))
    if kind == 'array':
        return np.array(draw(strategies.lists(strategies.integers(-length, length - 1), max_size=7)), int)
    bound = strategies.none() | strategies.integers(-length - 2, length + 2)
    step = draw(strategies.none() | strategies.integers(-4, 4).filter(bool))
    found = slice(draw(bound), draw(bound), step)
    # xarray itself fails at empty slices with a negative step
    return found if range(length)[found] or (step or 1) > 0 else slice(0, 0)


@pytest.mark.parametrize('path,group,name', [case[1:] for case in cases_of_indices()], ids=[case[0] for case in cases_of_indices()])
def test_any_index(path, group, name):
    with xarray.open_dataset(path, engine='h5bridge', group=group, create_default_indexes=False, cache=False) as dataset:
        lazy = dataset[name].variable
        whole = xarray.Variable(lazy.dims, np.array(lazy.values))

        @hypothesis.given(strategies.data())
        @hypothesis.settings(max_examples=60 if not support.LONG else 600, deadline=None,
                             database=None, derandomize=not support.LONG)
        def check(data):
            draw = data.draw
            if draw(strategies.booleans()):
                # outer: each axis by itself
                key = tuple(index_of(draw, length) for length in lazy.shape)
            else:
                # vectorized: points along a new axis
                count = draw(strategies.integers(1, 5))
                points = [draw(strategies.lists(strategies.integers(-length, length - 1), min_size=count, max_size=count))
                          for length in lazy.shape if length]
                hypothesis.assume(len(points) == len(lazy.shape))
                key = tuple(xarray.Variable('point', point) for point in points)
            found, expected = lazy[key], whole[key]
            assert found.dims == expected.dims and found.shape == expected.shape
            assert (np.asarray(found.values) == np.asarray(expected.values)).all()
        check()


# ---- dask, threads, processes ---------------------------------------------------------------------------------------------

def test_dask_equals_numpy():
    with xarray.open_dataset(DEMO, engine='h5bridge') as plain, xarray.open_dataset(DEMO, engine='h5bridge', chunks={}) as lazy:
        assert lazy.DATA.chunks[0][0] == plain.DATA.encoding['preferred_chunks']['row'] > 1
        expected = np.abs(plain.DATA.values[~plain.FLAG.values]).mean()
        mean = abs(lazy.DATA).where(~lazy.FLAG).mean()
        for scheduler in 'synchronous', 'threads':
            assert np.isclose(mean.compute(scheduler=scheduler).item(), expected)
        assert (lazy.DATA.compute().values == plain.DATA.values).all()
    with xarray.open_dataset(DEMO, engine='h5bridge', chunks={'row': 17, 'chan_0': 5}) as lazy:
        assert (lazy.DATA.values == plain.DATA.values).all()


def test_pickles():
    with open_tree(DEMO, chunks={}) as tree:
        again = pickle.loads(pickle.dumps(tree))
        assert (again['MAIN/DATA'].values == tree['MAIN/DATA'].values).all()
        again.close()
    with xarray.open_dataset(DEMO, engine='h5bridge') as plain:
        pool = concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('spawn'))
        with pool:
            sums = list(pool.map(total, [plain[['UVW']].isel(row=slice(i, None, 4)) for i in range(4)]))
        assert np.isclose(sum(sums), plain.UVW.sum().item())


def total(dataset):
    return dataset.UVW.sum().item()


def test_threads():
    shapes = os.path.join(support.TESTDATA, 'shapes', 'shapes.tab')
    with open_tree(shapes, cache=False) as tree:
        column = tree['MAIN/anydim'].to_dataset()
        expected = {name: column[name].values for name in ('values', 'offset', 'shape')}
        rng = np.random.default_rng(1)

        def read(number):
            name = list(expected)[number % 3]
            start, stop = sorted(rng.integers(0, len(expected[name]), 2))
            part = column[name][start:stop].values
            return (part == expected[name][start:stop]).all()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            assert all(pool.map(read, range(200)))


def test_closed_files_open_again():
    """xarray closes the files that were not used for long; reading opens them again."""
    with xarray.set_options(file_cache_maxsize=1):
        trees = [xarray.open_dataset(DEMO, engine='h5bridge', group=group, cache=False) for group in ('MAIN', 'FIELD', 'FEED')]
        for _ in range(2):
            assert [tree.row.size for tree in trees] == [tree[name].values.shape[0] for tree, name in zip(trees, ('UVW', 'NAME', 'TIME'))]
        for tree in trees:
            tree.close()


def test_close_gives_back_the_lock(tmp_path):
    """Another process can write when the tree is closed, and not before."""
    copy = str(tmp_path / 'copy.ms')
    support.h5bridge('to-ms', DEMO, copy)
    probe = ('import sys, casacore.tables as t; s = t.table(sys.argv[1], readonly=False, ack=False, lockoptions="user"); '
             'sys.exit(0 if s.lock(True, 1) is None and s.haslock(True) else 3)')
    writes = lambda: subprocess.run([sys.executable, '-c', probe, copy], capture_output=True).returncode == 0  # noqa: E731
    tree = open_tree(copy)
    assert not writes()
    tree.close()
    assert writes()
    with open_tree(copy, lock=False):
        assert writes()


# ---- nothing is read before it is wanted ---------------------------------------------------------------------------------

def bytes_read(code, *words):
    """The bytes that a process asks the system for while it runs CODE, after everything is imported."""
    script = ('import sys, xarray, h5bridge.xarray\n'
              'xarray.open_datatree(sys.argv[1], engine="h5bridge").close()\n'
              'count = lambda: int(open("/proc/self/io").readline().split()[1])\n'
              'before = count()\n' + code + '\nprint(count() - before)')
    done = subprocess.run([sys.executable, '-c', script, DEMO, *map(str, words)], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def test_opening_does_not_read(big_ms, tmp_path):
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(big_ms) for name in names)
    native = tmp_path / 'big.h5'
    support.h5bridge('to-hdf5', big_ms, native, '--compress', 'none')
    assert size > 50e6
    for path in big_ms, native:
        opened = bytes_read('tree = xarray.open_datatree(sys.argv[2], engine="h5bridge")', path)
        row = bytes_read('tree = xarray.open_datatree(sys.argv[2], engine="h5bridge")\n'
                         'tree["MAIN/DATA"][7:8].values', path)
        whole = bytes_read('tree = xarray.open_datatree(sys.argv[2], engine="h5bridge")\n'
                           'tree["MAIN/DATA"].values', path)
        # mapped files are not counted: what is counted shows that opening reads little
        assert opened < size / 20, '%s: opening reads %d of %d bytes' % (path, opened, size)
        assert row < size / 10 and whole >= opened


def test_large_ragged_column_is_not_read(tmp_path):
    """The elements of a ragged column are read when they are wanted, and only those of the rows that are."""
    import casacore.tables as ct
    path = str(tmp_path / 'ragged.tab')
    desc = ct.maketabdesc([ct.makearrcoldesc('R', 0., ndim=1, datamanagertype='StandardStMan')])
    table = ct.table(path, desc, nrow=400, ack=False)
    for row in range(400):
        table.putcell('R', row, np.arange(20000. + row))
    table.close()
    opened = bytes_read('tree = xarray.open_datatree(sys.argv[2], engine="h5bridge")', path)
    assert opened < 4e6, opened
    with open_tree(path) as tree:
        column = tree['MAIN/R'].to_dataset()
        offset = column.offset.values
        assert (column['values'][offset[7]:offset[8]].values == np.arange(20007.)).all()
        assert column.sizes['element_0'] == offset[-1] == sum(20000 + row for row in range(400))
