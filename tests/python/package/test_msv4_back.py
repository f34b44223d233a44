"""The way back from MSv4 to a MeasurementSet: judged row by row by casacore, and by the schema checker of xradio."""
import collections
import fcntl
import os
import re
import shutil
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import xarray
from casacore import measures, tables

import support

pytest.importorskip('h5bridge', reason='the Python package is not installed: scripts/setup-python', exc_type=ImportError)
hypothesis = pytest.importorskip('hypothesis')
check = pytest.importorskip('xradio.schema.check')
measurement_set = pytest.importorskip('xradio.measurement_set')
import h5bridge  # noqa: E402
from h5bridge import _ms_subtables, _to_ms  # noqa: E402

strategies = hypothesis.strategies

DEMO = support.own_copy('demo', 'demo.ms')
TWO = support.own_copy('twospw', 'twospw.ms')
UNIX = 3506716800.0
# columns whose cells are those of the original
SAME = ('DATA', 'CORRECTED_DATA', 'MODEL_DATA', 'FLOAT_DATA', 'FLAG', 'UVW', 'TIME', 'TIME_CENTROID', 'EXPOSURE', 'SCAN_NUMBER')
SPECTRAL = ('DATA', 'CORRECTED_DATA', 'MODEL_DATA', 'FLOAT_DATA', 'FLAG', 'WEIGHT_SPECTRUM')
REQUIRED = ('ANTENNA', 'DATA_DESCRIPTION', 'FEED', 'FIELD', 'FLAG_CMD', 'HISTORY', 'OBSERVATION', 'POINTING', 'POLARIZATION', 'PROCESSOR',
            'SPECTRAL_WINDOW', 'STATE')


def open_set(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)
        return xarray.open_datatree(path, engine='h5bridge', schema='msv4', **options)


def back(tree, path, **options):
    """Writes a tree; the summary, whose warnings are those that were given."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter('always')
        summary = h5bridge.to_ms(tree, path, **options)
    said = [str(warning.message) for warning in given if warning.category is UserWarning]
    assert said == list(summary.warnings)
    return summary


def is_defined(table, column):
    return column in table.colnames() and all(table.iscelldefined(column, row) for row in range(table.nrows()))


def subtable(table, name):
    return tables.table(table.getkeyword(name), ack=False)


def rows_of(path, columns, places=None):
    """The cells of each row by its time, antennas, window and correlations; sorted. PLACES are the antennas and windows that count."""
    with tables.table(str(path), ack=False) as table:
        with subtable(table, 'DATA_DESCRIPTION') as descriptions, subtable(table, 'SPECTRAL_WINDOW') as windows, \
                subtable(table, 'POLARIZATION') as polarizations:
            of_window = descriptions.getcol('SPECTRAL_WINDOW_ID')
            of_polarization = descriptions.getcol('POLARIZATION_ID')
            used = sorted({int(of_window[of]) for of in table.getcol('DATA_DESC_ID')})
            descends = {}
            for window in used:
                channels = windows.getcell('CHAN_FREQ', window)
                descends[window] = len(channels) > 1 and channels[-1] < channels[0]
            kinds = [tuple(polarizations.getcell('CORR_TYPE', row)) for row in range(polarizations.nrows())]
        first, second, ids = (table.getcol(name) for name in ('ANTENNA1', 'ANTENNA2', 'DATA_DESC_ID'))
        antennas = sorted({*first.tolist(), *second.tolist()})
        cells = {}
        for name in columns:
            of = [np.asarray(table.getcell(name, row)) if table.iscelldefined(name, row) else None for row in range(table.nrows())]
            if name in SPECTRAL:
                of = [cell[::-1] if cell is not None and descends[of_window[id_]] else cell for cell, id_ in zip(of, ids)]
            cells[name] = of
        found = []
        for row in range(table.nrows()):
            window, kind = used.index(of_window[ids[row]]), kinds[of_polarization[ids[row]]] if kinds else ()
            key = float(table.getcell('TIME', row)), antennas.index(first[row]), antennas.index(second[row]), window, kind
            values = tuple((cells[name][row].dtype.str, cells[name][row].shape, cells[name][row].tobytes())
                           if cells[name][row] is not None else None for name in columns)
            found.append((key, values))
        return sorted(found, key=repr)


def compare(original, made):
    """Each row of a MeasurementSet is once in that which was made of it, with its cells; returns what was compared."""
    with tables.table(str(original), ack=False) as table, tables.table(str(made), ack=False) as other:
        columns = [name for name in SAME if name in table.colnames() and name in other.colnames()]
        for name in ('CORRECTED_DATA', 'MODEL_DATA'):
            assert (name in table.colnames() and is_defined(table, name)) <= (name in other.colnames())
        columns.append('WEIGHT_SPECTRUM' if is_defined(table, 'WEIGHT_SPECTRUM') else 'WEIGHT')
        assert other.nrows() == table.nrows()
        check_tables(other)
        check_order(other)
        # whatever one has of them
        kept = [name for name in columns if is_defined(table, name)]
    expected, found = rows_of(original, kept), rows_of(made, kept)
    assert len(expected) == len(found)
    for (key, values), (other_key, other_values) in zip(expected, found):
        # correlations without POLARIZATION are numbered
        assert key[:4] == other_key[:4]
        for name, value, other_value in zip(kept, values, other_values):
            assert value == other_value, (name, key)
    return {'rows': len(found), 'cells': len(found) * len(kept)}


def check_order(table):
    times, first, second = (table.getcol(name) for name in ('TIME', 'ANTENNA1', 'ANTENNA2'))
    keys = list(zip(times.tolist(), first.tolist(), second.tolist()))
    assert keys == sorted(keys)


def check_tables(table):
    """All that the definition requires is there, with units and measures as casacore makes them, and no id dangles."""
    needed = tables.required_ms_desc()
    check_columns(table, needed)
    assert table.info()['type'] == 'Measurement Set' and table.getkeyword('MS_VERSION') == 2.0
    counts = {}
    for name in REQUIRED:
        with subtable(table, name) as of:
            check_columns(of, tables.required_ms_desc(name))
            counts[name] = of.nrows()
    for column, name in (('ANTENNA1', 'ANTENNA'), ('ANTENNA2', 'ANTENNA'), ('DATA_DESC_ID', 'DATA_DESCRIPTION'), ('FIELD_ID', 'FIELD'),
                         ('STATE_ID', 'STATE'), ('OBSERVATION_ID', 'OBSERVATION'), ('PROCESSOR_ID', 'PROCESSOR')):
        ids = table.getcol(column)
        assert ids.min() >= 0 and ids.max() < counts[name], column
    with subtable(table, 'FEED') as feeds:
        assert set(feeds.getcol('ANTENNA_ID').tolist()) == set(range(counts['ANTENNA']))
    weight, sigma = (np.concatenate([table.getcell(name, row) for row in range(table.nrows())]) for name in ('WEIGHT', 'SIGMA'))
    has = weight > 0
    assert np.allclose(sigma[has], 1 / np.sqrt(weight[has].astype(float))) and (sigma[~has] == -1).all()


def check_columns(table, description):
    for column, of in description.items():
        if column.startswith('_'):
            continue
        found = table.getcoldesc(column)
        assert found['valueType'] == of['valueType'] and ('ndim' in found) == ('ndim' in of), column
        keywords = table.getcolkeywords(column)
        for name, value in of.get('keywords', {}).items():
            if name == 'QuantumUnits':
                assert list(keywords[name]) == list(value), column
            elif name == 'MEASINFO':
                assert keywords[name]['type'] == value['type'], column
                reference = keywords[name].get('Ref')
                assert reference in known(value['type']) if reference else keywords[name]['VarRefCol'] in table.colnames(), column


def known(kind):
    """What casacore knows of frames."""
    return set(measures.measures().list_codes(getattr(measures.measures(), {'uvw': 'uvw'}.get(kind, kind))())['normal'])


# ---- there and back --------------------------------------------------------------------------------------------------

def measurement_sets():
    """The MeasurementSets of the corpus: (entry, path)."""
    return [(entry, name) for entry in support.corpus_entries() for name in support.roots(entry['tables'])
            if os.path.join(name, 'DATA_DESCRIPTION') in entry['tables'] or './DATA_DESCRIPTION' in entry['tables']]


def check_again(tree, made):
    """The MeasurementSet is MSv4 again, with the same datasets and values."""
    with open_set(made) as again:
        assert not list(check.check_datatree(again))
        for part, other in zip(tree.children.values(), again.children.values(), strict=True):
            assert list(part.children) == list(other.children)
            for dataset, of in datasets(part, other):
                assert set(dataset.variables) == set(of.variables)
                for name in sorted(set(dataset.variables) - {'_row'}):
                    check_values(name, *(found.sortby('frequency_system_cal')[name] if 'frequency_system_cal' in found.dims else found[name]
                                         for found in (dataset, of)))


def datasets(part, other):
    """The datasets of two partitions, side by side."""
    return [(part.to_dataset(), other.to_dataset())] + [tuple(of[name].to_dataset(inherit=False) for of in (part, other))
                                                        for name in part.children]


def check_values(name, values, others):
    assert values.dims == others.dims, name
    values, others = values.values, others.values
    if values.dtype.kind == 'U':
        # a name ends with the number of its row, and rows that are not used are gone
        assert [re.sub(r'_[0-9]+$', '', text) for text in values.ravel()] == [re.sub(r'_[0-9]+$', '', text) for text in others.ravel()], name
    elif name == 'PRESSURE':
        assert np.allclose(values, others, rtol=1e-7, equal_nan=True)
    else:
        assert np.array_equal(values, others, equal_nan=values.dtype.kind in 'fc'), name


@pytest.mark.parametrize('path', [DEMO, TWO], ids=['demo', 'twospw'])
def test_there_and_back(path, tmp_path, counts):
    made = tmp_path / 'back.ms'
    with open_set(path) as tree:
        summary = back(tree, made)
        assert summary.warnings == () and summary.out == str(made) and summary.tables == 13
        counts.update(compare(path, made))
        check_again(tree, made)
        with open_set(made) as again:
            for part, other in zip(tree.children.values(), again.children.values(), strict=True):
                check_same(part, other)


def check_same(part, other):
    """Two partitions are equal, but for the rows of their tables and the dates."""
    for dataset, of in datasets(part, other):
        dataset, of = (found.drop_vars('_row', errors='ignore') for found in (dataset, of))
        for found in (dataset, of):
            for name in ('creation_date', 'data_groups'):
                found.attrs.pop(name, None)
        xarray.testing.assert_equal(dataset, of)
        assert dataset.attrs == of.attrs
        for name in dataset.variables:
            assert dataset[name].attrs == of[name].attrs, name


@pytest.mark.parametrize('entry,name', measurement_sets() or [pytest.param(None, '', marks=pytest.mark.skip(reason='the corpus is missing'))],
                         ids=lambda value: value['name'] if isinstance(value, dict) else '')
def test_corpus(entry, name, tmp_path, counts):
    path = os.path.join(support.unpack(entry, tmp_path), name)
    with tables.table(path, ack=False) as table:
        if 'TIME' not in table.colnames() or not table.nrows():
            return
    made = tmp_path / 'back.ms'
    with open_set(path) as tree:
        back(tree, made)
        counts.update(compare(path, made))
        check_again(tree, made)


def converted_by_xradio(path, tmp_path, factory):
    """The tree of the Zarr that xradio's converter makes, in an environment that has what it needs: once for all tests and workers."""
    shared = factory.getbasetemp().parent if 'PYTEST_XDIST_WORKER' in os.environ else factory.getbasetemp()
    folder = shared / 'xradio' / os.path.relpath(path, tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    code = 'import sys; from xradio.measurement_set import convert_msv2_to_processing_set; convert_msv2_to_processing_set(*sys.argv[1:])'
    with open(folder / 'said', 'a+') as said:
        fcntl.flock(said, fcntl.LOCK_EX)
        if not said.seek(0, os.SEEK_END):
            done = subprocess.run([support.peer('msv4'), '-c', code, path, str(folder / 'converted')], capture_output=True, text=True)
            said.write((done.stderr.strip().splitlines() or ['no message'])[-1] if done.returncode else 'converted')
        said.seek(0)
        result = said.read()
    if result != 'converted':
        pytest.skip('xradio: ' + result)
    tree = measurement_set.open_processing_set(str(folder / 'converted.ps.zarr'))
    if not tree.children:
        pytest.skip('xradio converts no row')
    return tree


# variables that differ from xradio's, and why
DIFFERENCES = {
    'frequency_system_cal': 'xradio numbers the channels, here they are Hz',
    'POINTING_BEAM': 'other rows of POINTING at the ends',
    'time_pointing': 'other rows of POINTING at the ends',
    'source_name': 'xradio says Unknown where SOURCE has no row of the field',
}
# datasets and coordinates that only xradio has, and why
ONLY_THERE = {
    'field_and_source_corrected_xds': 'all data groups have the same fields', 'field_and_source_model_xds': 'all data groups have the same fields',
    'system_calibration_xds/antenna_id': 'not in the schema', 'system_calibration_xds/mount': 'in antenna_xds',
    'system_calibration_xds/telescope_name': 'in antenna_xds',
}


@pytest.mark.night('converts by xradio')
@pytest.mark.parametrize('entry,name', measurement_sets() or [pytest.param(None, '', marks=pytest.mark.skip(reason='the corpus is missing'))],
                         ids=lambda value: value['name'] if isinstance(value, dict) else '')
def test_variables_of_xradio(entry, name, tmp_path, tmp_path_factory, counts):
    """Every variable that xradio's Zarr has is here, with the same values; the differences are known."""
    path = os.path.join(support.unpack(entry, tmp_path), name)
    theirs = converted_by_xradio(path, tmp_path, tmp_path_factory)
    key = lambda part: (part.sizes['time'], float(part.time[0]), float(part.frequency[0]), tuple(map(str, part.polarization.values)))  # noqa: E731
    with open_set(path) as ours:
        parts = {key(part): part for part in ours.children.values()}
        assert len(theirs.children) == len(ours.children)
        for part in theirs.children.values():
            for node in part.subtree:
                below = node.relative_to(part)
                if below in ONLY_THERE:
                    continue
                other = parts[key(part)][below].to_dataset()
                for variable, values in node.to_dataset().variables.items():
                    if '%s/%s' % (below, variable) in ONLY_THERE:
                        continue
                    found = other[variable].transpose(*values.dims)
                    if variable in DIFFERENCES:
                        continue
                    assert same_values(found.values, values.values, variable, parts[key(part)]), '%s/%s' % (below, variable)
                    counts['variables'] += 1


def same_values(found, expected, name, part):
    if expected.dtype.kind in 'OU':
        return np.array_equal(found.astype(str), expected.astype(str))
    if name == 'FLAG':
        # xradio leaves places without a row unflagged
        has = part._row.values >= 0
        return (found[has] == expected[has]).all() and found[~has].all()
    return np.array_equal(found, expected, equal_nan=expected.dtype.kind in 'fc')


@pytest.mark.night('installs the newest xradio')
@pytest.mark.parametrize('path', [DEMO, TWO], ids=['demo', 'twospw'])
def test_newest_checker(path, tmp_path):
    """The newest release of xradio has no issues with the view of a table and of a file by MSv4."""
    out = tmp_path / os.path.basename(path).replace('.ms', '.h5')
    support.h5bridge('to-hdf5', '--schema', 'msv4', path, out)
    code = ('import sys, warnings, xarray, h5bridge.xarray, xradio.measurement_set, xradio.schema.check as check; warnings.simplefilter("ignore"); '
            'tree = xarray.open_datatree(sys.argv[1], engine=h5bridge.xarray.H5bridgeBackend, schema="msv4"); '
            'sys.exit("; ".join(map(str, check.check_datatree(tree))) or 0)')
    environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(h5bridge.__file__)))
    for source in path, out:
        done = subprocess.run([support.peer('msv4-newest'), '-c', code, source], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr


@pytest.mark.night('converts by xradio')
@pytest.mark.parametrize('entry,name', measurement_sets() or [pytest.param(None, '', marks=pytest.mark.skip(reason='the corpus is missing'))],
                         ids=lambda value: value['name'] if isinstance(value, dict) else '')
def test_zarr_of_xradio(entry, name, tmp_path, tmp_path_factory, counts):
    """From the Zarr that xradio's converter makes, where it makes one."""
    path = os.path.join(support.unpack(entry, tmp_path), name)
    tree = converted_by_xradio(path, tmp_path, tmp_path_factory)
    back(tree, tmp_path / 'back.ms')
    counts.update(compare(path, tmp_path / 'back.ms'))
    with open_set(tmp_path / 'back.ms') as again:
        assert not list(check.check_datatree(again))


@pytest.mark.night('converts by xarray-ms')
def test_trees_of_xarray_ms(tmp_path, counts):
    """Names have no numbers, flags are bytes."""
    path = str(tmp_path / 'two.ms')
    shutil.copytree(TWO, path)
    code = ('import sys, xarray, xarray_ms; '
            'xarray.open_datatree(sys.argv[1], engine="xarray-ms:msv2", auto_corrs=True).to_zarr(sys.argv[2], consolidated=True, compute=True)')
    subprocess.run([support.peer('msv4'), '-c', code, path, str(tmp_path / 'two.zarr')], check=True, capture_output=True)
    with xarray.open_datatree(tmp_path / 'two.zarr', engine='zarr') as tree:
        summary = back(tree, tmp_path / 'back.ms')
        assert all('left out' in sentence for sentence in summary.warnings)
    counts.update(compare(TWO, tmp_path / 'back.ms'))
    with tables.table(str(tmp_path / 'back.ms/FIELD'), ack=False) as fields, tables.table(TWO + '/FIELD', ack=False) as expected:
        assert set(fields.getcol('NAME')) <= set(expected.getcol('NAME'))


# ---- how trees are stored --------------------------------------------------------------------------------------------

def edited(path, change):
    """A loaded tree whose partitions `change(dataset)` has changed."""
    with open_set(path) as tree:
        tree = tree.load()
    for part in tree.children.values():
        part.dataset = change(part.to_dataset())
    return tree


@pytest.mark.parametrize('has_rows', [True, False])
def test_padding(has_rows, tmp_path, counts):
    """Places without a row get none, be they told by `_row` or by NaN."""
    path = str(tmp_path / 'gaps.ms')
    with tables.table(DEMO, ack=False) as table:
        table.query('rowid() not in [3, 17, 18, %d]' % (table.nrows() - 1)).copy(path, deep=True).close()
    tree = edited(path, lambda part: part if has_rows else part.drop_vars('_row'))
    assert sum(int(np.isnan(part.UVW.values).all(axis=2).sum()) for part in tree.children.values()) == 4
    back(tree, tmp_path / 'back.ms')
    counts.update(compare(path, tmp_path / 'back.ms'))


def test_nan_with_known_uvw_is_a_row(tmp_path):
    """Visibilities that are NaN are a row if UVW is known."""
    def lose(part):
        part.VISIBILITY[2] = np.nan
        return part.drop_vars('_row')
    assert back(edited(DEMO, lose), tmp_path / 'back.ms').rows == 210


@pytest.mark.parametrize('change', [
    lambda part: part.transpose('polarization', 'frequency', 'baseline_id', 'time', ...),
    lambda part: part.isel(time=slice(None, None, -1)),
    lambda part: part.isel(time=[3, 1, 4, 0, 2, *range(5, part.sizes['time'])], baseline_id=slice(None, None, -1)),
    lambda part: part.chunk(time=3, baseline_id=4),
], ids=['transposed', 'reversed', 'shuffled', 'chunked'])
@pytest.mark.parametrize('path', [DEMO, TWO], ids=['demo', 'twospw'])
def test_any_order(path, change, tmp_path, counts):
    back(edited(path, change), tmp_path / 'back.ms')
    counts.update(compare(path, tmp_path / 'back.ms'))


@pytest.mark.parametrize('size', [200, 5000, 100_000])
@pytest.mark.parametrize('path', [DEMO, TWO], ids=['demo', 'twospw'])
def test_any_blocks(path, size, tmp_path, monkeypatch, counts):
    """Blocks of some baselines of a time, and of several times."""
    monkeypatch.setattr(_to_ms, '_BLOCK_BYTES', size)
    with open_set(path) as tree:
        back(tree, tmp_path / 'back.ms')
    counts.update(compare(path, tmp_path / 'back.ms'))


@pytest.mark.filterwarnings('ignore::Warning')
@pytest.mark.parametrize('kept', [0, 1 << 30])
@pytest.mark.parametrize('dask', [False, True])
def test_zarr_in_chunks(dask, kept, tmp_path, monkeypatch, counts):
    """Chunks of several times that blocks do not fit, which are kept or read once more."""
    monkeypatch.setattr(_to_ms, '_BLOCK_BYTES', 60_000)
    monkeypatch.setattr(_to_ms, '_CHUNKS_BYTES', kept)
    all_kept = _to_ms._Kept()
    monkeypatch.setattr(_to_ms, '_Kept', lambda: all_kept)
    with open_set(TWO) as tree:
        chunked = tree.map_over_datasets(lambda part: part.chunk({name: size for name, size in (('time', 4), ('baseline_id', 5)) if name in part.dims}))
        chunked.to_zarr(tmp_path / 'two.zarr')
    with xarray.open_datatree(tmp_path / 'two.zarr', engine='zarr', chunks={} if dask else None) as tree:
        back(tree, tmp_path / 'back.ms')
    counts.update(compare(TWO, tmp_path / 'back.ms'))
    assert all_kept.bytes == 0


def test_one_partition(tmp_path, counts):
    """A dataset of a processing set alone."""
    with open_set(DEMO) as tree:
        part = next(iter(tree.children.values()))
        summary = back(part, tmp_path / 'back.ms')
        assert summary.rows == 210 and summary.warnings == ()
    counts.update(compare(DEMO, tmp_path / 'back.ms'))


def test_part_of_a_tree(tmp_path):
    """What xarray selects is what is written."""
    tree = edited(DEMO, lambda part: part.isel(time=slice(2, 5), frequency=[1, 2, 3], polarization=[0, 3]))
    assert back(tree, tmp_path / 'back.ms').rows == 63
    with tables.table(str(tmp_path / 'back.ms'), ack=False) as table, tables.table(DEMO, ack=False) as before:
        chosen = before.query('TIME in (select distinct TIME from $before orderby TIME limit 3 offset 2)', sortlist='TIME,ANTENNA1,ANTENNA2')
        assert (table.getcol('DATA') == chosen.getcol('DATA')[:, 1:4, [0, 3]]).all()
        with subtable(table, 'POLARIZATION') as kinds:
            assert kinds.getcell('CORR_TYPE', 0).tolist() == [9, 12] and kinds.getcell('CORR_PRODUCT', 0).tolist() == [[0, 0], [1, 1]]


def test_single_dish(tmp_path, counts):
    path = str(tmp_path / 'dish.ms')
    with tables.table(DEMO, ack=False) as table:
        table.query('ANTENNA1 < 4').copy(path, deep=True).close()
    with tables.table(path, readonly=False, ack=False) as table:
        data = table.getcol('DATA')
        table.putcol('ANTENNA2', table.getcol('ANTENNA1'))
        table.removecols('DATA')
        table.addcols(tables.maketabdesc([tables.makearrcoldesc('FLOAT_DATA', 0.0, ndim=2, valuetype='float')]))
        table.putcol('FLOAT_DATA', np.abs(data).astype(np.float32))
        # the schema has none for single dishes
        table.putcol('UVW', np.zeros_like(table.getcol('UVW')))
    with open_set(path) as tree:
        back(tree, tmp_path / 'back.ms')
    counts.update(compare(path, tmp_path / 'back.ms'))


# ---- subtables -------------------------------------------------------------------------------------------------------

def test_frames_and_scales(tmp_path):
    def change(part):
        part.time.attrs['scale'] = 'tai'
        part.UVW.attrs['frame'] = 'icrs'
        part.frequency.attrs['observer'] = 'lsrk'
        return part
    tree = edited(TWO, change)
    first, second = tree.children.values()
    first['field_and_source_base_xds'].FIELD_PHASE_CENTER_DIRECTION.attrs['frame'] = 'icrs'
    second['field_and_source_base_xds'].FIELD_PHASE_CENTER_DIRECTION.attrs['frame'] = 'fk4'
    back(tree, tmp_path / 'back.ms')
    with tables.table(str(tmp_path / 'back.ms'), ack=False) as table:
        assert table.getcolkeyword('TIME', 'MEASINFO')['Ref'] == 'TAI' and table.getcolkeyword('UVW', 'MEASINFO')['Ref'] == 'ICRS'
        with subtable(table, 'SPECTRAL_WINDOW') as windows:
            assert set(windows.getcol('MEAS_FREQ_REF')) == {1}
        with subtable(table, 'FIELD') as fields:
            info = fields.getcolkeyword('PHASE_DIR', 'MEASINFO')
            codes = dict(zip(info['TabRefCodes'].tolist(), info['TabRefTypes']))
            assert {codes[code] for code in fields.getcol(info['VarRefCol'])} == {'ICRS', 'B1950'}
    with open_set(tmp_path / 'back.ms') as again:
        frames = {part['field_and_source_base_xds'].FIELD_PHASE_CENTER_DIRECTION.attrs['frame'] for part in again.children.values()}
        assert frames == {'icrs', 'fk4'}
    found = tables.taql('select meas.galactic(PHASE_DIR) as G from [%s]' % (tmp_path / 'back.ms' / 'FIELD'))
    # two frames, two directions
    assert np.isfinite(found.getcell('G', 0)).all() and (found.getcell('G', 0) != found.getcell('G', 1)).all()


@pytest.mark.parametrize('shown,has_suffix,kept,numbers', [
    (['A_0', 'B_1'], True, ['A', 'B'], [0, 1]),
    (['A_3', 'B_1'], True, ['A', 'B'], [3, 1]),
    (['A_0', 'A_1', 'B_2'], True, ['A_0', 'A_1', 'B'], [0, 1, 2]),
    (['A_0', 'B'], True, ['A_0', 'B'], [0, 1]),
    (['A_1', 'B_1'], True, ['A_1', 'B_1'], [0, 1]),
    (['A_0', 'B_1'], False, ['A_0', 'B_1'], [0, 1]),
    ([], True, [], []),
])
def test_suffixes(shown, has_suffix, kept, numbers):
    assert _ms_subtables.without_suffix(shown, has_suffix) == (kept, numbers)


def of_times(names, times, variables, axis, kind, coordinates):
    """A dataset below a partition with variables of some axes."""
    coords = {axis: (axis, times, {'type': axis, 'units': 's', 'scale': 'utc', 'format': 'unix'}), **coordinates}
    return xarray.Dataset({name: (axes, np.asarray(values), attrs) for name, (axes, values, attrs) in variables.items()}, coords, {'type': kind})


def test_pointing_weather_calibration(tmp_path):
    """Rows of several partitions that are the same are one row, and missing ones are none."""
    with open_set(TWO) as tree:
        tree = tree.load()
    random = np.random.default_rng(3)
    parts = list(tree.children.values())
    antennas = parts[0]['antenna_xds']
    names, stations = antennas.antenna_name.values, antennas.station_name.values
    times = parts[0].time.values[:4]
    beam = random.normal(size=(4, len(names), 2))
    beam[1, 0] = np.nan
    sky = {'type': 'sky_coord', 'units': 'rad', 'frame': 'altaz'}
    pointing = of_times(names, times, {'POINTING_BEAM': (('time_pointing', 'antenna_name', 'local_sky_dir_label'), beam, sky),
                                       'POINTING_OTHER': ('time_pointing', np.zeros(4), {})},
                        'time_pointing', 'pointing', {'antenna_name': names, 'local_sky_dir_label': ['az', 'alt']})
    pressure = random.uniform(5e4, 1e5, size=(2, 4))
    pressure[0, 0] = np.nan
    pads = np.array(['P1', 'P2']) if len(set(stations)) < 2 else stations[:2]
    weather = of_times(names, times, {'PRESSURE': (('station_name', 'time_weather'), pressure, {'type': 'quantity', 'units': 'Pa'}),
                                      'STATION_POSITION': (('station_name', 'cartesian_pos_label'), np.ones((2, 3)), {})},
                       'time_weather', 'weather', {'station_name': pads, 'cartesian_pos_label': ['x', 'y', 'z']})
    for number, part in enumerate(parts):
        part['pointing_xds'], part['weather_xds'] = xarray.DataTree(pointing), xarray.DataTree(weather)
        channels = part.sizes['frequency']
        spectra = random.uniform(50, 100, size=(len(names), 4, 2, channels))
        labels = {'antenna_name': names, 'receptor_label': ['pol_0', 'pol_1'], 'frequency_system_cal': np.arange(channels)}
        axes = 'antenna_name', 'time_system_cal', 'receptor_label', 'frequency_system_cal'
        part['system_calibration_xds'] = xarray.DataTree(of_times(
            names, times, {'TSYS': (axes, spectra, {'units': 'K'}), 'PHASE_DIFFERENCE': (axes[:2], spectra[:, :, 0, 0], {})},
            'time_system_cal', 'system_calibration', labels))
    summary = back(tree, tmp_path / 'back.ms')
    assert any('variable POINTING_OTHER is left out' in sentence for sentence in summary.warnings)
    with tables.table(str(tmp_path / 'back.ms'), ack=False) as table:
        with subtable(table, 'POINTING') as found:
            assert found.nrows() == 4 * len(names) - 1
            for row in range(found.nrows()):
                time = times.tolist().index(found.getcell('TIME', row) - UNIX)
                assert (found.getcell('DIRECTION', row) == beam[time, found.getcell('ANTENNA_ID', row)]).all()
            assert found.getcolkeyword('DIRECTION', 'MEASINFO')['Ref'] == 'AZELGEO'
        with subtable(table, 'WEATHER') as found:
            assert found.nrows() == 7 and list(found.getcolkeyword('PRESSURE', 'QuantumUnits')) == ['hPa']
            assert np.allclose(np.sort(found.getcol('PRESSURE')), np.sort(pressure[np.isfinite(pressure)]) / 100)
        with subtable(table, 'SYSCAL') as found:
            assert found.nrows() == 2 * 4 * len(names)
            last = found.query('SPECTRAL_WINDOW_ID == 1')
            for row in range(last.nrows()):
                place = last.getcell('ANTENNA_ID', row), times.tolist().index(last.getcell('TIME', row) - UNIX)
                assert (last.getcell('TSYS_SPECTRUM', row) == spectra[place].T.astype(np.float32)).all()
                assert last.getcell('PHASE_DIFF', row) == np.float32(spectra[place][0, 0])
    with open_set(tmp_path / 'back.ms') as again:
        assert not list(check.check_datatree(again))
        part = next(iter(again.children.values()))
        assert np.allclose(part['weather_xds'].PRESSURE, pressure, equal_nan=True)
        # those of the first window are gone with the loop, those of the second stay
        assert (list(again.children.values())[1]['system_calibration_xds'].TSYS.values == spectra.astype(np.float32)).all()


# ---- what is said ----------------------------------------------------------------------------------------------------

def test_unknown_content_is_named_in_warnings(tmp_path):
    def change(part):
        part['EFFECTIVE_CHANNEL_WIDTH'] = 'frequency', np.ones(part.sizes['frequency'])
        part['VISIBILITY_OTHER'] = part.VISIBILITY
        part['WEIGHT_OTHER'] = part.WEIGHT
        group = {**part.attrs['data_groups']['base'], 'correlated_data': 'VISIBILITY_OTHER', 'weight': 'WEIGHT_OTHER'}
        part.attrs['data_groups'] = {**part.attrs['data_groups'], 'other': group}
        part.attrs['note'] = 'kept nowhere'
        part.frequency.attrs['observer'] = 'unheard'
        return part.assign(VISIBILITY=part.VISIBILITY.astype(np.complex128)).assign_coords(polarization_mixed=('polarization', list('abcd')))
    tree = edited(DEMO, change)
    part = next(iter(tree.children.values()))
    part['strange_xds'] = xarray.DataTree(xarray.Dataset({'X': ('x', [1])}, attrs={'type': 'strange'}))
    summary = back(tree, tmp_path / 'back.ms')
    expected = ['variable EFFECTIVE_CHANNEL_WIDTH', 'data group other is left out: a MeasurementSet has no second VISIBILITY_OTHER, WEIGHT_OTHER',
                'attribute note', 'unheard', 'complex128', 'polarization_mixed', 'type strange']
    for words in expected:
        assert sum(words in sentence for sentence in summary.warnings) == 1, words
    assert len(summary.warnings) == len(expected)
    compare(DEMO, tmp_path / 'back.ms')


# ---- errors ----------------------------------------------------------------------------------------------------------

def without(name):
    return lambda part: part.drop_vars(name)


def with_attrs(name, **attrs):
    def change(part):
        part[name].attrs.update(attrs)
        return part
    return change


@pytest.mark.parametrize('change,kind,words', [
    (without('time'), 'UsageError', r'/demo_0: no coordinate time'),
    (without('frequency'), 'UsageError', r'/demo_0: no coordinate frequency'),
    (without('polarization'), 'UsageError', r'/demo_0: no coordinate polarization'),
    (without('field_name'), 'UsageError', r'/demo_0: no coordinate field_name'),
    (without('scan_name'), 'UsageError', r'/demo_0: no coordinate scan_name'),
    (without('baseline_antenna2_name'), 'UsageError', r'/demo_0: no coordinate baseline_antenna2_name'),
    (lambda part: part.assign(VISIBILITY=part.VISIBILITY.real), 'UnsupportedError', r'/demo_0/VISIBILITY: type float32, expected complex'),
    (lambda part: part.assign(VISIBILITY=part.VISIBILITY[..., 0]), 'UsageError',
     r'/demo_0/VISIBILITY: axes are \(time, baseline_id, frequency\), expected \(time, baseline_id, frequency, polarization\)'),
    (lambda part: part.assign(FLAG=part.FLAG.rename(time='times')), 'UsageError', r'/demo_0/FLAG: axes are \(times'),
    (lambda part: part.assign(UVW=part.UVW[..., 0]), 'UsageError', r'/demo_0/UVW: axes are'),
    (lambda part: part.assign(WEIGHT=part.WEIGHT.astype(str)), 'UnsupportedError', r'/demo_0/WEIGHT: type <U\d+, expected numbers'),
    (with_attrs('time', format='mjd'), 'UnsupportedError', r"/demo_0/time: format 'mjd' in 's', expected 'unix' in 's'"),
    (lambda part: part.assign_coords(time=part.time.where(part.time > part.time[0])), 'UsageError', r'/demo_0/time: 1 times are not finite'),
    (lambda part: part.assign_coords(polarization=['a', 'b', 'c', 'd']), 'UsageError', r"/demo_0/polarization: 'a', expected are I, Q"),
    (lambda part: part.assign_coords(baseline_antenna1_name=('baseline_id', ['Z'] * 21)), 'UsageError',
     r"/demo_0/baseline_antenna1_name: antenna 'Z' is not among those of /demo_0/antenna_xds"),
    (lambda part: part.assign_coords(field_name=('time', ['Z'] * 10)), 'UsageError',
     r"/demo_0/field_and_source_base_xds/field_name: no field 'Z', which the partition names"),
])
def test_errors(change, kind, words, tmp_path):
    """Each error has the path of what is wrong, and what was expected; nothing is left on the disk."""
    tree = edited(DEMO, change)
    with pytest.raises(getattr(h5bridge, kind), match=words):
        h5bridge.to_ms(tree, tmp_path / 'back.ms')
    assert not os.listdir(tmp_path)


def test_other_sources_are_refused(tmp_path):
    empty = xarray.DataTree(xarray.Dataset(attrs={'type': 'processing_set'}))
    with pytest.raises(h5bridge.UsageError, match='/: no dataset below has a variable VISIBILITY or SPECTRUM; expected is a tree of MSv4'):
        h5bridge.to_ms(empty, tmp_path / 'back.ms')
    with pytest.raises(h5bridge.UsageError, match='the source is a Dataset, expected a path or a DataTree'):
        h5bridge.to_ms(xarray.Dataset(), tmp_path / 'back.ms')
    with open_set(DEMO) as tree, pytest.raises(h5bridge.UsageError, match='only the options overwrite and progress'):
        h5bridge.to_ms(tree, tmp_path / 'back.ms', exact=True)
    for name in ('antenna_xds', 'field_and_source_base_xds'):
        tree = edited(DEMO, lambda part: part)
        del tree['demo_0'][name]
        with pytest.raises(h5bridge.UsageError, match='/demo_0: no dataset of type'):
            h5bridge.to_ms(tree, tmp_path / 'back.ms')
    tree = edited(TWO, lambda part: part)
    tree['twospw_1'].time.attrs['scale'] = 'tai'
    with pytest.raises(h5bridge.UnsupportedError, match="/twospw_1/time: scale 'tai', expected 'utc' as in /twospw_0"):
        h5bridge.to_ms(tree, tmp_path / 'back.ms')
    assert not os.listdir(tmp_path)


def test_existing_targets(tmp_path):
    target = tmp_path / 'back.ms'
    with open_set(DEMO) as tree:
        back(tree, target)
        before = support.tree(target)
        with pytest.raises(h5bridge.ExistsError):
            h5bridge.to_ms(tree, target)
        assert support.tree(target) == before
        back(tree, target, overwrite=True)
        # the same tree is the same MeasurementSet, byte for byte
        assert support.tree(target) == before
        (tmp_path / 'folder').mkdir()
        (tmp_path / 'folder' / 'notes').write_text('mine')
        with pytest.raises(h5bridge.ExistsError):
            h5bridge.to_ms(tree, tmp_path / 'folder', overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ['back.ms', 'folder']


def test_interrupt_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_to_ms, '_BLOCK_BYTES', 60_000)
    seen = []

    def stop(done, total, table, part):
        seen.append(done)
        if len(seen) == 3:
            raise KeyboardInterrupt
    with open_set(DEMO) as tree:
        with pytest.raises(KeyboardInterrupt):
            h5bridge.to_ms(tree, tmp_path / 'back.ms', progress=stop)
        assert not os.listdir(tmp_path)
        back(tree, tmp_path / 'back.ms', progress=lambda done, total, *_: seen.append(done / total))
    assert seen[-1] == 1


# ---- any tree --------------------------------------------------------------------------------------------------------

@strategies.composite
def trees(draw):
    """Small trees from nothing, and the rows that they mean by time, names of antennas, window and correlations."""
    random = np.random.default_rng(draw(strategies.integers(0, 1 << 30)))
    antennas = ['A%d' % number for number in range(4)]
    positions = random.normal(size=(4, 3))
    found, rows = {}, []
    for number in range(draw(strategies.integers(1, 3))):
        times = sorted(draw(strategies.sets(strategies.integers(0, 6), min_size=1, max_size=4)))
        pairs = draw(strategies.lists(strategies.tuples(strategies.integers(0, 3), strategies.integers(0, 3)), min_size=1, max_size=5, unique=True))
        channels = draw(strategies.integers(1, 3))
        kinds = draw(strategies.sampled_from([['XX'], ['XX', 'YY'], ['RR', 'RL', 'LR', 'LL'], ['I']]))
        shape = len(times), len(pairs), channels, len(kinds)
        data = (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(np.complex64)
        uvw = random.normal(size=(*shape[:2], 3))
        has = random.uniform(size=shape[:2]) < draw(strategies.sampled_from([0.3, 1.0]))
        data[~has], uvw[~has] = np.nan, np.nan
        flags = random.uniform(size=shape) < 0.5
        frequencies = 1e9 + 1e8 * number + 1e6 * np.arange(channels)
        axes = 'time', 'baseline_id', 'frequency', 'polarization'
        variables = {'VISIBILITY': (axes, data), 'FLAG': (axes, flags | ~has[..., None, None]), 'UVW': (('time', 'baseline_id', 'uvw_label'), uvw)}
        if draw(strategies.booleans()):
            variables['VISIBILITY_CORRECTED'] = axes, data * 2
        first, second = ([antennas[pair[end]] for pair in pairs] for end in (0, 1))
        coordinates = {
            'time': ('time', np.array(times, float), {'units': 's', 'scale': 'utc', 'format': 'unix', 'integration_time': {'data': 1.0}}),
            'baseline_antenna1_name': ('baseline_id', first), 'baseline_antenna2_name': ('baseline_id', second),
            'frequency': ('frequency', frequencies, {'observer': 'TOPO', 'spectral_window_name': 'w_%d' % number}),
            'polarization': kinds, 'field_name': ('time', ['F_0'] * len(times)), 'scan_name': ('time', ['7'] * len(times))}
        part = xarray.Dataset(variables, coordinates, {'type': 'visibility'})
        used = sorted({*first, *second})
        chosen = [antennas.index(name) for name in used]
        of_antennas = xarray.Dataset({'ANTENNA_POSITION': (('antenna_name', 'cartesian_pos_label'), positions[chosen])}, {'antenna_name': used},
                                     {'type': 'antenna', 'overall_telescope_name': 'T'})
        fields = xarray.Dataset({'FIELD_PHASE_CENTER_DIRECTION': (('field_name', 'sky_dir_label'), [[1.0, 0.5]])}, {'field_name': ['F_0']},
                                {'type': 'field_and_source'})
        found |= {'/p%d' % number: part, '/p%d/antenna_xds' % number: of_antennas, '/p%d/field_and_source_base_xds' % number: fields}
        for time, baseline in np.argwhere(has):
            corrected = data[time, baseline] * 2 if 'VISIBILITY_CORRECTED' in variables else None
            key = times[time] + UNIX, first[baseline], second[baseline], frequencies.tolist(), kinds
            rows.append((key, data[time, baseline], variables['FLAG'][1][time, baseline], uvw[time, baseline], corrected))
    return xarray.DataTree.from_dict(found), rows


def test_any_tree(tmp_path, counts):
    @hypothesis.given(trees(), strategies.sampled_from([300, 3000, 1 << 20]))
    @hypothesis.settings(max_examples=40 if not support.LONG else 400, deadline=None, database=None, derandomize=not support.LONG,
                         suppress_health_check=list(hypothesis.HealthCheck))
    def check_any(drawn, size):
        tree, rows = drawn
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_to_ms, '_BLOCK_BYTES', size)
            back(tree, tmp_path / 'any.ms', overwrite=True)
        with tables.table(str(tmp_path / 'any.ms'), ack=False) as table:
            assert table.nrows() == len(rows)
            found = [cells_of(table, row) for row in range(table.nrows())]
            for one, other in zip(sorted(found, key=lambda cells: repr(cells[0])), sorted(rows, key=lambda cells: repr(cells[0]))):
                assert one[0] == other[0]
                assert all(np.array_equal(value, expected) if expected is not None else value is None
                           for value, expected in zip(one[1:], other[1:]))
            if rows:
                check_order(table)
        counts.update(trees=1, rows=len(rows))
    check_any()


def cells_of(table, row):
    with subtable(table, 'DATA_DESCRIPTION') as descriptions, subtable(table, 'SPECTRAL_WINDOW') as windows, \
            subtable(table, 'POLARIZATION') as kinds, subtable(table, 'ANTENNA') as antennas:
        of = table.getcell('DATA_DESC_ID', row)
        channels = windows.getcell('CHAN_FREQ', descriptions.getcell('SPECTRAL_WINDOW_ID', of)).tolist()
        types = [_ms_subtables.STOKES[code] for code in kinds.getcell('CORR_TYPE', descriptions.getcell('POLARIZATION_ID', of))]
        names = [antennas.getcell('NAME', table.getcell(name, row)) for name in ('ANTENNA1', 'ANTENNA2')]
    has = 'CORRECTED_DATA' in table.colnames() and table.iscelldefined('CORRECTED_DATA', row)
    return ((table.getcell('TIME', row), *names, channels, types), table.getcell('DATA', row), table.getcell('FLAG', row),
            table.getcell('UVW', row), table.getcell('CORRECTED_DATA', row) if has else None)


# ---- memory, and programs of others ----------------------------------------------------------------------------------

@pytest.mark.night('makes a table of 100 MB')
def test_memory_does_not_grow_with_the_data(big_ms, tmp_path):
    code = """
        import resource, xarray, h5bridge
        tree = xarray.open_datatree(%r, engine='h5bridge', schema='msv4')
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        h5bridge.to_ms(tree, %r)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
    """ % (big_ms, str(tmp_path / 'back.ms'))
    found = subprocess.run([sys.executable, '-c', textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 80, '%s MB' % found.stdout
    compare(big_ms, tmp_path / 'back.ms')


@pytest.mark.skipif(not shutil.which('msselect'), reason='casacore-tools are missing')
def test_programs_of_casacore(tmp_path):
    """What selects from MeasurementSets by antennas and converts measures accepts it."""
    with open_set(DEMO) as tree:
        back(tree, tmp_path / 'back.ms')
    subprocess.run(['msselect', 'in=back.ms', 'out=chosen.ms', 'baseline=0&*', 'deep=true'], cwd=tmp_path, check=True, capture_output=True)
    with tables.table(str(tmp_path / 'chosen.ms'), ack=False) as table, tables.table(DEMO, ack=False) as before:
        assert table.nrows() == before.query('(ANTENNA1 == 0) != (ANTENNA2 == 0)').nrows()


@pytest.mark.night('makes images')
@pytest.mark.skipif(not shutil.which('wsclean'), reason='wsclean is missing')
def test_images_of_wsclean_are_the_same(tmp_path):
    with open_set(DEMO) as tree:
        back(tree, tmp_path / 'back.ms')
    shutil.copytree(DEMO, tmp_path / 'before.ms')
    pixels = []
    for name in ('before', 'back'):
        words = ['wsclean', '-j', '1', '-size', '64', '64', '-scale', '20asec', '-no-update-model-required', '-name', name, name + '.ms']
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
        pixels.append((tmp_path / (name + '-dirty.fits')).read_bytes()[-2880 * (-(-64 * 64 * 4 // 2880)):])
    assert pixels[0] == pixels[1]
