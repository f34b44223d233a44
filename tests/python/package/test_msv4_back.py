"""The way back from MSv4 to a MeasurementSet: judged row by row by casacore, and by the schema checker of xradio."""
import collections
import os
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
    """The MeasurementSet is MSv4 again, with the same values at the same places."""
    with open_set(made) as again:
        assert not list(check.check_datatree(again))
        assert sum(part._row.values[part._row.values >= 0].size for part in again.children.values()) == sum(
            (part._row.values >= 0).sum() for part in tree.children.values())
        return len(again.children)


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
    for dataset, of in ((part.to_dataset(), other.to_dataset()), *((part[name].to_dataset(inherit=False), other[name].to_dataset(inherit=False))
                                                                   for name in part.children)):
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
