"""MeasurementSets as MSv4: judged by the schema checker of xradio, and cell by cell by casacore."""
import collections
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest
import xarray
from casacore import tables

import support

pytest.importorskip('h5bridge', reason='the Python package is not installed: scripts/setup-python', exc_type=ImportError)
hypothesis = pytest.importorskip('hypothesis')
check = pytest.importorskip('xradio.schema.check')
pytest.importorskip('xradio.measurement_set')
import h5bridge  # noqa: E402

strategies = hypothesis.strategies

DEMO = support.own_copy('demo', 'demo.ms')
TWO = support.own_copy('twospw', 'twospw.ms')
UNIX = 3506716800.0
# variable, column of the main table
ON_GRID = (('VISIBILITY', 'DATA'), ('VISIBILITY_CORRECTED', 'CORRECTED_DATA'), ('VISIBILITY_MODEL', 'MODEL_DATA'), ('SPECTRUM', 'FLOAT_DATA'),
           ('FLAG', 'FLAG'), ('UVW', 'UVW'), ('TIME_CENTROID', 'TIME_CENTROID'), ('EFFECTIVE_INTEGRATION_TIME', 'EXPOSURE'),
           ('INTEGRATION_TIME', 'INTERVAL'))


def open_set(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)
        return xarray.open_datatree(path, engine='h5bridge', schema='msv4', **options)


def check_set(path, judge=None, **options):
    """Opens PATH; the schema has no issues, each row of the table JUDGE is found once, and values are casacore's.

    Without a JUDGE, the same of the file that `to-hdf5 --schema msv4` makes, which is the MeasurementSet still.
    Returns how many rows and variables were compared."""
    counts = collections.Counter()
    if judge is None and not options:
        with tempfile.TemporaryDirectory() as folder:
            out, back = os.path.join(folder, os.path.splitext(os.path.basename(path))[0] + '.h5'), os.path.join(folder, 'back.ms')
            support.h5bridge('to-hdf5', '--schema', 'msv4', path, out)
            assert '/msv4' not in support.h5bridge('to-ms', out, back).stderr
            for words in (path, out), (out,), (path, back):
                support.h5bridge('verify', *words)
            support.h5bridge('lint', out)
            check_back(path, back)
            check_plain(out)
            counts.update(check_set(out, judge=path))
    with open_set(path, **options) as tree, tables.table(str(judge or path), ack=False) as table:
        assert not list(check.check_datatree(tree))
        found = collections.Counter()
        for part in tree.children.values():
            rows = part._row.values
            has = rows >= 0
            found.update(rows[has].tolist())
            check_places(part, table, rows, has)
            for name, column in ON_GRID:
                if name in part.data_vars:
                    check_variable(part, table, name, column, rows, has)
                    counts['variables'] += 1
            check_weight(part, table, rows, has)
        assert found == collections.Counter(range(table.nrows()))
        if tree.children:
            assert len(tree.xr_ps.summary()) == len(tree.children)
        counts['rows'] += table.nrows()
    return counts


def check_back(path, back):
    """The main table of BACK has the cells of PATH, as casacore reads them."""
    with tables.table(path, ack=False) as expected, tables.table(back, ack=False) as found:
        assert found.colnames() == expected.colnames() and found.nrows() == expected.nrows()
        for name in expected.colnames() if expected.nrows() else ():
            is_defined = expected.isscalarcol(name) or all(expected.iscelldefined(name, row) for row in range(expected.nrows()))
            if not is_defined:
                continue
            if expected.isscalarcol(name):
                assert found.getcol(name).tolist() == expected.getcol(name).tolist(), name
            else:
                cells = expected.getvarcol(name)
                for row, cell in found.getvarcol(name).items():
                    assert cell.dtype == cells[row].dtype and np.array_equal(cell, cells[row], equal_nan=cell.dtype.kind in 'fc'), (name, row)


def check_plain(path):
    """What xarray reads of the file by HDF5 alone is what h5bridge makes of its tables."""
    with open_set(path) as tree:
        for engine, options in (('h5netcdf', {}), ('netcdf4', {'auto_complex': True})):
            with xarray.open_datatree(path, engine=engine, group='msv4', **options) as plain:
                assert list(plain.children) == list(tree.children)
                for node in tree.subtree:
                    check_dataset(plain[node.path].to_dataset(inherit=False), node.to_dataset(inherit=False))


def check_dataset(found, expected):
    assert set(found.variables) == set(expected.variables) and set(found.coords) == set(expected.coords)
    for name, variable in expected.variables.items():
        values, other = variable.values, found[name].values
        assert found[name].dims == variable.dims and (other.dtype.kind in 'OU' if values.dtype.kind == 'U' else True), name
        kept = other.astype(values.dtype)
        assert kept.tobytes() == np.ascontiguousarray(values).tobytes() or np.array_equal(kept, values), name
        units = variable.attrs.get('units')
        assert isinstance(units, (str, type(None))) and found[name].attrs.get('units') == units, name


def check_places(part, table, rows, has):
    """Time, antennas and field of each place are those of its row."""
    time, second = np.nonzero(has)
    chosen = rows[has].tolist()
    column = {name: table.getcol(name) for name in ('TIME', 'ANTENNA1', 'ANTENNA2', 'FIELD_ID', 'SCAN_NUMBER')}
    assert (part.time.values[time] == column['TIME'][chosen] - UNIX).all()
    assert (np.diff(part.time.values) > 0).all()
    with tables.table(table.getkeyword('ANTENNA'), ack=False) as antennas:
        names = antennas.getcol('NAME')
    axes = ('antenna_name',) * 2 if 'antenna_name' in part._row.dims else ('baseline_antenna1_name', 'baseline_antenna2_name')
    for axis, key in zip(axes, ('ANTENNA1', 'ANTENNA2')):
        shown = part[axis].values[second]
        # with the station or the number where names alone do not tell antennas apart
        assert all(str(name).startswith(names[number]) for name, number in zip(shown, column[key][chosen]))
    fields = part.field_name.values[time]
    assert all(str(name).endswith('_%d' % number) for name, number in zip(fields, column['FIELD_ID'][chosen]))
    assert (part.scan_name.values[time].astype(int) == column['SCAN_NUMBER'][chosen]).all()


def check_variable(part, table, name, column, rows, has):
    values = part[name].values
    expected = np.array([table.getcell(column, row) for row in rows[has].tolist()])
    if column == 'TIME_CENTROID':
        expected = expected - UNIX
    if 'frequency' in part[name].dims and descends(part, table):
        expected = expected[:, ::-1]
    assert values[has].dtype == expected.dtype and (values[has].tobytes() == np.ascontiguousarray(expected).tobytes()), name
    check_padding(name, values[~has])


def check_padding(name, missing):
    assert missing.all() if missing.dtype == bool else np.isnan(missing).all(), name


def check_weight(part, table, rows, has):
    values, chosen = part.WEIGHT.values, rows[has].tolist()
    assert part.WEIGHT.dims[2:] == ('frequency', 'polarization')
    check_padding('WEIGHT', values[~has])
    if 'WEIGHT_SPECTRUM' in table.colnames() and all(table.iscelldefined('WEIGHT_SPECTRUM', row) for row in chosen):
        expected = np.array([table.getcell('WEIGHT_SPECTRUM', row) for row in chosen])
        expected = expected[:, ::-1] if descends(part, table) else expected
    else:
        expected = np.array([table.getcell('WEIGHT', row) for row in chosen])[:, None, :]
    assert (values[has] == np.broadcast_to(expected, values[has].shape)).all()


def descends(part, table):
    window = int(part.frequency.attrs['spectral_window_name'].rpartition('_')[2])
    with tables.table(table.getkeyword('SPECTRAL_WINDOW'), ack=False) as windows:
        channels = windows.getcell('CHAN_FREQ', window)
    assert (part.frequency.values == np.sort(channels)).all()
    return len(channels) > 1 and channels[-1] < channels[0]


def changed(tmp_path, change, source=DEMO, name='changed.ms'):
    """A copy of a MeasurementSet that `change(table)` has changed."""
    path = str(tmp_path / name)
    shutil.copytree(source, path)
    with tables.table(path, readonly=False, ack=False) as table:
        change(table)
    return path


def without(tmp_path, rows):
    """A copy of the demo without these rows."""
    path = str(tmp_path / 'without.ms')
    with tables.table(DEMO, ack=False) as table:
        table.selectrows([row for row in range(table.nrows()) if row not in rows]).copy(path, deep=True).close()
    return path


# ---- the schema, rows and values -------------------------------------------------------------------------------------

def measurement_sets():
    """The MeasurementSets of the corpus: (entry, path)."""
    return [(entry, name) for entry in support.corpus_entries() for name in support.roots(entry['tables'])
            if os.path.join(name, 'DATA_DESCRIPTION') in entry['tables'] or './DATA_DESCRIPTION' in entry['tables']]


@pytest.mark.parametrize('path', [DEMO, TWO], ids=['demo', 'twospw'])
def test_table(path, counts):
    counts.update(check_set(path))


@pytest.mark.parametrize('entry,name', measurement_sets() or [pytest.param(None, '', marks=pytest.mark.skip(reason='the corpus is missing'))],
                         ids=lambda value: value['name'] if isinstance(value, dict) else '')
def test_corpus(entry, name, tmp_path, counts):
    path = os.path.join(support.unpack(entry, tmp_path), name)
    with tables.table(path, ack=False) as table:
        is_set = 'TIME' in table.colnames()
    if not is_set:
        with pytest.raises(h5bridge.UnsupportedError, match='not a MeasurementSet: the main table has no column TIME'):
            open_set(path)
        return
    counts.update(check_set(path))
    native = tmp_path / 'native.h5'
    support.h5bridge('to-hdf5', path, native)
    counts.update(check_set(native, judge=path))


@pytest.mark.parametrize('kind', ['native', 'container', 'live'])
def test_other_homes(kind, tmp_path, counts):
    """The set is the same wherever the table is."""
    path = tmp_path / ('demo.mf' if kind == 'container' else 'demo.h5')
    if kind == 'live':
        support.h5bridge('follow', DEMO, path, '--until-closed')
    else:
        support.h5bridge('pack' if kind == 'container' else 'to-hdf5', DEMO, path)
    with open_set(DEMO) as expected, open_set(path) as found:
        for part, other in zip(expected.children.values(), found.children.values(), strict=True):
            for name in ('creation_date', 'data_groups'):
                del part.attrs[name], other.attrs[name]
        xarray.testing.assert_identical(found, expected)
    counts.update(check_set(path, judge=DEMO))


def test_no_rows(tmp_path):
    path = without(tmp_path, range(10**6))
    with open_set(path) as tree:
        assert not tree.children and tree.attrs == {'type': 'processing_set'}


# ---- traps: no row is lost -------------------------------------------------------------------------------------------

def put(column, change):
    """A change of a table: what `change` makes of a column."""
    def of(table):
        values = table.getcol(column)
        table.putcol(column, change(values))
    return of


def test_rows_of_one_place(tmp_path):
    """The same time and baseline twice: the rows that come second are in a partition of their own."""
    def twice(table):
        times = table.getcol('TIME')
        later = np.unique(times)[1]
        times[times == later] = times[0]
        table.putcol('TIME', times)
    path = changed(tmp_path, twice)
    check_set(path)
    with open_set(path) as tree, open_set(DEMO) as before:
        assert len(tree.children) > len(before.children)


def test_swapped_antennas(tmp_path):
    """A baseline in the opposite direction is another baseline, not conjugated."""
    def swap(table):
        first, second = table.getcol('ANTENNA1'), table.getcol('ANTENNA2')
        chosen = np.arange(table.nrows()) % 3 == 1
        first[chosen], second[chosen] = second[chosen].copy(), first[chosen].copy()
        table.putcol('ANTENNA1', first)
        table.putcol('ANTENNA2', second)
    check_set(changed(tmp_path, swap))


def test_missing_rows(tmp_path):
    path = without(tmp_path, (3, 17, 18, 30))
    check_set(path)
    with open_set(path) as tree:
        assert sum(int((part._row.values < 0).sum()) for part in tree.children.values()) == 4


@pytest.mark.parametrize('column,extra', [('PROCESSOR_ID', 1), ('OBSERVATION_ID', 1)])
def test_ids_separate(column, extra, tmp_path):
    """Rows of several processors or observations are never in one partition, even if the subtable lacks them."""
    path = changed(tmp_path, put(column, lambda values: np.arange(len(values)) // 30 % 2 * extra))
    check_set(path)
    with open_set(path) as tree, tables.table(path, ack=False) as table:
        ids = table.getcol(column)
        for part in tree.children.values():
            rows = part._row.values
            assert len(set(ids[rows[rows >= 0]].tolist())) == 1


def test_two_fields_at_one_time(tmp_path):
    """Subarrays look at two fields at once: each time of a partition has one field."""
    path = changed(tmp_path, put('FIELD_ID', lambda values: np.arange(len(values)) % 2))
    check_set(path)


def test_several_intervals(tmp_path):
    path = changed(tmp_path, put('INTERVAL', lambda values: np.where(np.arange(len(values)) % 2, 2.0, 3.0)))
    check_set(path)
    with open_set(path) as tree:
        part = next(iter(tree.children.values()))
        assert np.isnan(part.time.attrs['integration_time']['data']) and 'INTEGRATION_TIME' in part
    check_set(path, partition_schema=['INTERVAL'])
    with open_set(path, partition_schema=['INTERVAL']) as tree:
        assert {part.time.attrs['integration_time']['data'] for part in tree.children.values()} == {2.0, 3.0}


def test_padding_is_said(tmp_path):
    """Averaging by baseline leaves most places without a row: a warning names what helps."""
    def averaged(table):
        times, intervals = table.getcol('TIME'), table.getcol('INTERVAL')
        rows = np.arange(table.nrows())
        times = times + rows * 0.001
        intervals[:] = np.where(rows % 2, 4.0, 8.0)
        table.putcol('TIME', times)
        table.putcol('INTERVAL', intervals)
    path = changed(tmp_path, averaged)
    check_set(path)
    with pytest.warns(UserWarning, match='places have no row; less with .*INTERVAL'):
        xarray.open_datatree(path, engine='h5bridge', schema='msv4').close()


@pytest.mark.parametrize('is_one_tile', [False, True])
def test_baseline_after_baseline(is_one_tile, tmp_path):
    """Rows in the order of baselines; if a column is one tile, its chunk has the same shape, and other rows first."""
    path = str(tmp_path / 'sorted.ms')
    with tables.table(DEMO, ack=False) as table:
        rows = table.query('DATA_DESC_ID == 0' if is_one_tile else '', sortlist='DATA_DESC_ID, ANTENNA1, ANTENNA2, TIME')
        managers = table.getdminfo()
        for manager in managers.values() if is_one_tile else ():
            if manager['NAME'] in ('TiledDATA', 'TiledFLAG'):
                manager['SPEC']['DEFAULTTILESHAPE'] = np.array([4, 16, rows.nrows()], np.int32)
        rows.copy(path, deep=True, dminfo=managers).close()
    check_set(path)


def test_descending_channels(tmp_path):
    path = changed(tmp_path, lambda table: None)
    with tables.table(path + '/SPECTRAL_WINDOW', readonly=False, ack=False) as windows:
        for row in range(windows.nrows()):
            windows.putcell('CHAN_FREQ', row, windows.getcell('CHAN_FREQ', row)[::-1].copy())
    check_set(path)
    with pytest.warns(UserWarning, match='channels descend'), \
            xarray.open_datatree(path, engine='h5bridge', schema='msv4') as tree:
        part = next(iter(tree.children.values()))
        whole = part.VISIBILITY.values
    with open_set(path) as tree:
        part = next(iter(tree.children.values()))
        assert (part.VISIBILITY[:, :, 1:4].values == whole[:, :, 1:4]).all()
        assert (part.VISIBILITY[:, :, 0, 1].values == whole[:, :, 0, 1]).all()


def test_single_dish(tmp_path):
    """FLOAT_DATA of autocorrelations."""
    path = str(tmp_path / 'dish.ms')
    with tables.table(DEMO, ack=False) as table:
        chosen = table.query('ANTENNA1 < 4')
        chosen.copy(path, deep=True).close()
    with tables.table(path, readonly=False, ack=False) as table:
        data = table.getcol('DATA')
        table.putcol('ANTENNA2', table.getcol('ANTENNA1'))
        # one row for each antenna and time
        table.removecols('DATA')
        description = tables.makearrcoldesc('FLOAT_DATA', 0.0, ndim=2, valuetype='float')
        table.addcols(tables.maketabdesc([description]))
        table.putcol('FLOAT_DATA', np.abs(data).astype(np.float32))
    check_set(path)
    with open_set(path) as tree:
        for part in tree.children.values():
            assert part.attrs['type'] == 'spectrum' and part.SPECTRUM.dims[1] == 'antenna_name'


@pytest.mark.parametrize('name', ['FEED', 'PROCESSOR', 'STATE', 'OBSERVATION', 'POLARIZATION', 'POINTING', 'FIELD'])
def test_empty_subtables(name, tmp_path):
    """Empty subtables are not fatal."""
    path = changed(tmp_path, lambda table: None)
    with tables.table(path + '/' + name, readonly=False, ack=False) as table:
        table.removerows(list(range(table.nrows())))
    with open_set(path) as tree:
        if name != 'FIELD':
            assert not list(check.check_datatree(tree))
        assert sum(int((part._row.values >= 0).sum()) for part in tree.children.values()) == tables.table(path, ack=False).nrows()


def test_cells_of_several_shapes(tmp_path):
    """An error names the column and the row."""
    path = str(tmp_path / 'shapes.ms')
    shutil.copytree(TWO, path)
    with tables.table(path, readonly=False, ack=False) as table:
        ids = table.getcol('DATA_DESC_ID')
        assert set(ids.tolist()) == {0, 1}
        table.putcol('DATA_DESC_ID', np.zeros_like(ids))
        # no place has two rows
        table.putcol('TIME', table.getcol('TIME') + ids * 0.25)
    with pytest.raises(h5bridge.UnsupportedError, match=r'column DATA: .*row \d+ has shape .*one shape'):
        open_set(path)


keys = strategies.tuples(strategies.integers(0, 3), strategies.integers(0, 2), strategies.integers(0, 2), strategies.sampled_from([0, 0, 0, 1]),
                         strategies.sampled_from([0, 0, 1]), strategies.sampled_from([0, 0, 0, 0, 1]))


def test_any_rows(tmp_path, counts):
    """Whatever the index columns say, each row is found once, at its place."""
    path = str(tmp_path / 'any.ms')
    with tables.table(DEMO, ack=False) as table:
        table.selectrows(list(range(24))).copy(path, deep=True).close()
    names, examples = ('TIME', 'ANTENNA1', 'ANTENNA2', 'FIELD_ID', 'SCAN_NUMBER', 'FEED1'), []

    @hypothesis.given(strategies.lists(keys, min_size=24, max_size=24))
    @hypothesis.settings(max_examples=40 if not support.LONG else 400, deadline=None, database=None, derandomize=not support.LONG)
    def check_any(rows):
        with tables.table(path, readonly=False, ack=False) as table:
            for number, name in enumerate(names):
                values = np.array([row[number] for row in rows])
                table.putcol(name, 5e9 + values if name == 'TIME' else values.astype(np.int32))
        examples.append(rows)
        # files of some: each is made, compared, and read by five programs
        counts.update(check_set(path, judge=None if len(examples) % 8 == 1 else path))
    check_any()


# ---- subtables -------------------------------------------------------------------------------------------------------

def test_subtables_of_the_demo():
    with open_set(DEMO) as tree, tables.table(DEMO + '/ANTENNA', ack=False) as antennas:
        part = next(iter(tree.children.values()))
        antenna = part['antenna_xds']
        assert list(antenna.antenna_name.values) == antennas.getcol('NAME')
        assert (antenna.ANTENNA_POSITION.values == antennas.getcol('POSITION')).all()
        with tables.table(DEMO + '/FIELD', ack=False) as fields:
            centre = part['field_and_source_base_xds'].FIELD_PHASE_CENTER_DIRECTION.values
            ids = [int(str(name).rpartition('_')[2]) for name in part['field_and_source_base_xds'].field_name.values]
            assert (centre == fields.getcol('PHASE_DIR')[ids, 0]).all()


# ---- what xarray and xradio ask of it --------------------------------------------------------------------------------

def index_of(draw, length):
    kind = draw(strategies.sampled_from(['all', 'slice', 'integer', 'array']))
    if kind == 'all':
        return slice(None)
    if kind == 'integer':
        return draw(strategies.integers(-length, length - 1))
    if kind == 'array':
        return np.array(draw(strategies.lists(strategies.integers(-length, length - 1), max_size=7)), int)
    start, stop = sorted(draw(strategies.tuples(strategies.integers(0, length), strategies.integers(0, length))))
    step = draw(strategies.sampled_from([1, 1, 2, -1]))
    found = slice(start, stop, step) if step > 0 else slice(None, None, step)
    return found


@pytest.mark.parametrize('name', ['VISIBILITY', 'FLAG', 'UVW', 'WEIGHT', 'TIME_CENTROID', '_row'])
def test_any_index(name, tmp_path):
    path = without(tmp_path, (3, 17, 18))
    with open_set(path, cache=False) as tree:
        lazy = next(iter(tree.children.values()))[name].variable
        whole = xarray.Variable(lazy.dims, np.array(lazy.values))

        @hypothesis.given(strategies.data())
        @hypothesis.settings(max_examples=60 if not support.LONG else 600, deadline=None, database=None, derandomize=not support.LONG)
        def check_any(data):
            key = tuple(index_of(data.draw, length) for length in lazy.shape)
            found, expected = lazy[key], whole[key]
            assert found.dims == expected.dims and found.shape == expected.shape
            assert np.array_equal(found.values, expected.values, equal_nan=expected.dtype.kind in 'fc')
        check_any()


def test_dask_and_pickles():
    tree = h5bridge.open_processing_set(DEMO)
    with open_set(DEMO) as plain:
        for name, part in tree.children.items():
            assert part.VISIBILITY.chunks
            assert (part.VISIBILITY.values == plain[name].VISIBILITY.values).all()
        again = pickle.loads(pickle.dumps(tree))
        xarray.testing.assert_identical(again.compute(), tree.compute())
        again.close()
    tree.close()


def test_processing_sets_of_xradio():
    with open_set(TWO) as tree:
        summary = tree.xr_ps.summary()
        assert len(summary) == 2
        chosen = tree.xr_ps.query(spw_name=summary.iloc[0]['spw_name'])
        assert len(chosen.children) == 1
        intents = summary.iloc[0]['scan_intents']
    eager = h5bridge.open_processing_set(TWO, scan_intents=list(intents), array_backend='xarray')
    assert eager.children and next(iter(eager.children.values())).VISIBILITY.chunks is None
    eager.close()
    nothing = h5bridge.open_processing_set(TWO, scan_intents=['NO_SUCH_INTENT'])
    assert not nothing.children
    nothing.close()
    by_scan = h5bridge.open_processing_set(DEMO, partition_schema=['SCAN_NUMBER', 'FIELD_ID'])
    assert all(len(set(part.scan_name.values.tolist())) == 1 for part in by_scan.children.values())
    by_scan.close()


@pytest.mark.parametrize('options,said', [
    ({'schema': 'msv5'}, "schema is 'msv5'; it can be 'msv4'"),
    ({'schema': 'msv4', 'group': 'MAIN'}, 'no groups'),
    ({'partition_schema': ['FIELD_ID']}, 'partition_schema is for'),
    ({'schema': 'msv4', 'partition_schema': ['FIELDID']}, 'partitions cannot be made by FIELDID; did you mean FIELD_ID'),
])
def test_wrong_options(options, said):
    with pytest.raises(h5bridge.UsageError, match=said):
        xarray.open_datatree(DEMO, engine='h5bridge', **options)
    with pytest.raises(h5bridge.UsageError, match='array_backend'):
        h5bridge.open_processing_set(DEMO, array_backend='numpy')


def test_other_tables():
    path = os.path.join(support.TESTDATA, 'shapes', 'shapes.tab')
    with pytest.raises(h5bridge.UnsupportedError, match='not a MeasurementSet'):
        open_set(path)
    said = support.h5bridge('info', '--msv4', path, code=support.UNSUPPORTED).stderr
    assert path in said and 'not a MeasurementSet: the main table has no column TIME' in said


def test_close_gives_back_the_lock(tmp_path):
    path = changed(tmp_path, lambda table: None)
    probe = ('import sys, casacore.tables as t; s = t.table(sys.argv[1], readonly=False, ack=False, lockoptions="user"); '
             'sys.exit(0 if s.lock(True, 1) is None and s.haslock(True) else 3)')
    writes = lambda: subprocess.run([sys.executable, '-c', probe, path], capture_output=True).returncode == 0  # noqa: E731
    tree = open_set(path)
    assert not writes()
    tree.close()
    assert writes()


# ---- info --msv4 -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('path', [DEMO, TWO], ids=['demo', 'twospw'])
def test_info(path):
    document = json.loads(support.h5bridge('info', '--msv4', '--json', path).stdout)
    with open_set(path) as tree, tables.table(path, ack=False) as table:
        assert document['rows'] == table.nrows() and [of['name'] for of in document['partitions']] == list(tree.children)
        for of, part in zip(document['partitions'], tree.children.values(), strict=True):
            assert of['shape'] == list(part.VISIBILITY.shape) and of['correlations'] == list(part.polarization.values)
            assert of['intents'] == part.scan_name.attrs['scan_intents'] and of['rows'] == int((part._row >= 0).sum())
            assert of['datasets'] == [node.path.strip('/') for node in part.subtree]
    shown = support.h5bridge('info', '--msv4', path).stdout
    assert '%d rows, each in one place' % document['rows'] in shown and all(of['name'] in shown for of in document['partitions'])


def test_info_says_what_is_empty_and_split(tmp_path):
    path = without(tmp_path, (3, 17, 18, 30))
    with tables.table(path, readonly=False, ack=False) as table:
        put('FIELD_ID', lambda values: np.arange(len(values)) % 2)(table)
    shown = support.h5bridge('info', '--msv4', path).stdout
    assert 'FIELD_ID' in shown and 'EMPTY' in shown and ' %' in shown


# ---- ephemerides -------------------------------------------------------------------------------------------------------

def with_ephemeris(tmp_path):
    """The demo, whose fields follow a body: CASA's EPHEMERIS_ID, and a table beside FIELD that no keyword names."""
    path = changed(tmp_path, lambda table: None, name='planet.ms')
    with tables.table(path, ack=False) as table:
        times = np.unique(table.getcol('TIME'))
    days = np.linspace(times[0] / 86400 - 0.001, times[-1] / 86400 + 0.001, 7)
    columns = {'MJD': days, 'RA': np.linspace(359.9, 360.2, 7) % 360, 'DEC': np.linspace(-11.0, -10.4, 7),
               'Rho': np.linspace(4.0, 4.1, 7), 'RadVel': np.linspace(-0.01, 0.01, 7)}
    description = tables.maketabdesc([tables.makescacoldesc(name, 0.0) for name in columns])
    with tables.table(path + '/FIELD/EPHEM0_Jupiter_57034.9.tab', description, nrow=7, ack=False) as table:
        for name, values in columns.items():
            table.putcol(name, values)
        table.putkeywords({'NAME': 'Jupiter', 'posrefsys': 'ICRF/J2000.0', 'obsloc': 'GEOCENTRIC', 'GeoDist': 0.0, 'GeoLat': 0.0, 'GeoLong': 0.0})
    with tables.table(path + '/FIELD', readonly=False, ack=False) as field:
        field.addcols(tables.maketabdesc([tables.makescacoldesc('EPHEMERIS_ID', 0)]))
        field.putcol('EPHEMERIS_ID', np.zeros(field.nrows(), np.int32))
        offsets = field.getcol('PHASE_DIR')
        offsets[:] = 0.001
        field.putcol('PHASE_DIR', offsets)
    return path, columns


@pytest.mark.parametrize('home', ['directory', 'native'])
def test_ephemeris(home, tmp_path):
    path, columns = with_ephemeris(tmp_path)
    opened = path
    if home == 'native':
        opened = tmp_path / 'planet.h5'
        support.h5bridge('to-hdf5', path, opened)
    check_set(opened, judge=path)
    with open_set(opened) as tree:
        part = next(iter(tree.children.values()))
        found = part['field_and_source_base_xds']
        assert found.attrs['type'] == 'field_and_source_ephemeris' and found.attrs['ephemeris_name'] == 'Jupiter'
        times, known = found.time.values, found.time_ephemeris.values
        assert np.allclose(known, columns['MJD'] * 86400 - UNIX, atol=1e-6)
        for axis, name in enumerate(('RA', 'DEC')):
            expected = np.interp(times, known, np.unwrap(np.radians(columns[name]))) + 0.001
            shown = found.FIELD_PHASE_CENTER_DIRECTION.values[:, axis]
            assert np.allclose(np.exp(1j * shown), np.exp(1j * expected), atol=1e-12)
        distance = np.interp(times, known, columns['Rho']) * 149597870700.0
        assert np.allclose(found.FIELD_PHASE_CENTER_DISTANCE.values[:, 0], distance, rtol=1e-12)
        assert found.FIELD_PHASE_CENTER_DIRECTION.attrs == {'type': 'sky_coord', 'units': 'rad', 'frame': 'fk5'}


def test_missing_ephemeris_is_said(tmp_path):
    path, _ = with_ephemeris(tmp_path)
    shutil.rmtree(path + '/FIELD/EPHEM0_Jupiter_57034.9.tab')
    with pytest.warns(UserWarning, match='directions are offsets from an ephemeris: no table is called FIELD/EPHEM0_'):
        xarray.open_datatree(path, engine='h5bridge', schema='msv4').close()


# ---- subtables of a made MeasurementSet ------------------------------------------------------------------------------

def add_subtable(path, name, columns):
    """A subtable of {column: array over rows, or list of cells}."""
    described = []
    for column, cells in columns.items():
        first = np.asarray(cells[0])
        if isinstance(cells, np.ndarray) and first.ndim == 0 or isinstance(cells[0], str):
            described.append(tables.makescacoldesc(column, cells[0] if isinstance(cells[0], str) else first.item()))
        else:
            described.append(tables.makearrcoldesc(column, first.ravel()[0].item(), ndim=first.ndim))
    rows = len(next(iter(columns.values())))
    with tables.table('%s/%s' % (path, name), tables.maketabdesc(described), nrow=rows, ack=False) as made:
        for column, cells in columns.items():
            for row in range(rows):
                made.putcell(column, row, cells[row].item() if isinstance(cells[row], np.generic) else cells[row])
    with tables.table(path, readonly=False, ack=False) as table:
        table.putkeyword(name, 'Table: %s/%s' % (path, name))


def equipped(tmp_path):
    """The demo with what an observatory records beside visibilities; returns the path, antennas, times and the columns."""
    path = changed(tmp_path, lambda table: table.removekeyword('POINTING') if 'POINTING' in table.keywordnames() else None, name='equipped.ms')
    shutil.rmtree(path + '/POINTING', ignore_errors=True)
    with tables.table(path, ack=False) as table:
        times = np.unique(table.getcol('TIME'))[:3]
    with tables.table(path + '/SPECTRAL_WINDOW', ack=False) as windows:
        channels = windows.getcell('NUM_CHAN', 0)
    rng = np.random.default_rng(3)
    at = [(antenna, time) for time in times for antenna in (0, 1, 2)]
    antenna, time = np.array([a for a, _ in at], np.int32), np.array([t for _, t in at])
    rows, window = len(at), np.zeros(len(at), np.int32)
    made = {
        'WEATHER': {'ANTENNA_ID': antenna, 'TIME': time, 'INTERVAL': np.ones(rows), 'PRESSURE': rng.normal(1000, 5, rows),
                    'TEMPERATURE': rng.normal(280, 5, rows), 'WIND_SPEED': rng.normal(5, 1, rows)},
        'SYSCAL': {'ANTENNA_ID': antenna, 'FEED_ID': window, 'SPECTRAL_WINDOW_ID': window, 'TIME': time, 'INTERVAL': np.ones(rows),
                   'TSYS': list(rng.normal(50, 5, (rows, 2))), 'TRX_SPECTRUM': list(rng.normal(40, 5, (rows, channels, 2)))},
        'POINTING': {'ANTENNA_ID': antenna, 'TIME': time, 'INTERVAL': np.ones(rows), 'NUM_POLY': window,
                     'DIRECTION': list(rng.normal(1, 0.1, (rows, 1, 2))), 'ENCODER': list(rng.normal(1, 0.1, (rows, 2)))},
        'GAIN_CURVE': {'ANTENNA_ID': np.arange(3, dtype=np.int32), 'FEED_ID': window[:3], 'SPECTRAL_WINDOW_ID': window[:3], 'TIME': time[:3],
                       'INTERVAL': np.full(3, 9.0), 'TYPE': ['POWER(EL)'] * 3, 'NUM_POLY': np.full(3, 4, np.int32),
                       'GAIN': list(rng.normal(1, 0.1, (3, 4, 2))), 'SENSITIVITY': list(rng.normal(0.1, 0.01, (3, 2)))},
        'PHASE_CAL': {'ANTENNA_ID': antenna, 'FEED_ID': window, 'SPECTRAL_WINDOW_ID': window, 'TIME': time, 'INTERVAL': np.ones(rows),
                      'NUM_TONES': np.full(rows, 5, np.int32), 'TONE_FREQUENCY': list(rng.normal(1e9, 1e6, (rows, 5, 2))),
                      'PHASE_CAL': list(rng.normal(size=(rows, 5, 2)).astype(np.complex64)), 'CABLE_CAL': rng.normal(1e-9, 1e-10, rows)},
    }
    for name, columns in made.items():
        shutil.rmtree('%s/%s' % (path, name), ignore_errors=True)
        add_subtable(path, name, columns)
    return path, times, made


def by_antenna(values, times, last):
    """(antenna, time, …) of cells in the order of time and antenna, NaN for antennas without rows."""
    cells = np.asarray(values).reshape(len(times), 3, *np.shape(values[0]))
    found = np.full((last, len(times), *np.shape(values[0])), np.nan, np.result_type(cells, np.float32))
    found[:3] = cells.swapaxes(0, 1)
    return found


def same(found, expected):
    assert found.dims and np.array_equal(found.values, expected, equal_nan=True), found.name


@pytest.mark.parametrize('home', ['directory', 'native'])
def test_subtables_of_times_and_antennas(home, tmp_path):
    path, times, made = equipped(tmp_path)
    opened = path
    if home == 'native':
        opened = tmp_path / 'equipped.h5'
        support.h5bridge('to-hdf5', path, opened)
    check_set(opened, judge=path)
    with open_set(opened) as tree:
        part = next(iter(tree.children.values()))
        names = [str(name) for name in part['antenna_xds'].antenna_name.values]
        count = len(names)
        with tables.table(path + '/ANTENNA', ack=False) as antennas:
            assert names == antennas.getcol('NAME')[:count]

        weather, columns = part['weather_xds'], made['WEATHER']
        assert (weather.time_weather.values == times - UNIX).all() and weather.sizes['station_name'] == 3
        same(weather.PRESSURE, by_antenna(columns['PRESSURE'], times, 3) * 100)
        same(weather.TEMPERATURE, by_antenna(columns['TEMPERATURE'], times, 3))

        system, columns = part['system_calibration_xds'], made['SYSCAL']
        assert (system.time_system_cal.values == times - UNIX).all()
        same(system.TSYS, by_antenna(columns['TSYS'], times, count))
        same(system.TRX.transpose('antenna_name', 'time_system_cal', 'frequency_system_cal', 'receptor_label'),
             by_antenna(columns['TRX_SPECTRUM'], times, count))

        pointing, columns = part['pointing_xds'], made['POINTING']
        assert (pointing.time_pointing.values == times - UNIX).all()
        same(pointing.POINTING_BEAM.transpose('antenna_name', 'time_pointing', 'local_sky_dir_label'),
             by_antenna([cell[0] for cell in columns['DIRECTION']], times, count))
        same(pointing.POINTING_DISH_MEASURED.transpose('antenna_name', 'time_pointing', 'local_sky_dir_label'),
             by_antenna(columns['ENCODER'], times, count))

        gain, columns = part['gain_curve_xds'], made['GAIN_CURVE']
        expected = np.full((count, 4, 2), np.nan)
        expected[:3] = columns['GAIN']
        same(gain.GAIN_CURVE, expected)
        same(gain.GAIN_CURVE_SENSITIVITY[:3], np.array(columns['SENSITIVITY']))

        phase, columns = part['phase_calibration_xds'], made['PHASE_CAL']
        axes = 'antenna_name', 'time_phase_cal', 'tone_label', 'receptor_label'
        same(phase.PHASE_CAL.transpose(*axes), by_antenna(columns['PHASE_CAL'], times, count))
        same(phase.PHASE_CAL_TONE_FREQUENCY.transpose(*axes), by_antenna(columns['TONE_FREQUENCY'], times, count))
        same(phase.PHASE_CAL_CABLE_CAL, by_antenna(columns['CABLE_CAL'], times, count))


def test_damaged_subtable_is_left_out_and_said(tmp_path):
    path, _, _ = equipped(tmp_path)
    os.truncate(path + '/WEATHER/table.f0', 100)
    with pytest.warns(UserWarning, match='weather_xds is left out: '), \
            xarray.open_datatree(path, engine='h5bridge', schema='msv4') as tree:
        part = next(iter(tree.children.values()))
        assert 'weather_xds' not in part.children and 'pointing_xds' in part.children
