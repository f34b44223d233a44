"""--average: against a computation with numpy from the definition in docs/reference/selecting.md, on what python-casacore reads."""
import json
import os
import shutil

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import layout
import support
from support import h5bridge

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
TWOSPW = os.path.join(support.TESTDATA, 'twospw', 'twospw.ms')
BASELINE = ('ANTENNA1', 'ANTENNA2', 'ANTENNA3', 'FEED1', 'FEED2', 'FEED3')
OTHERS = ('SCAN_NUMBER', 'PULSAR_BIN')


def read(group, name):
    """Every cell of a column of a file, None where undefined."""
    return layout.cells(group, layout.column_item(group, name), layout.exact_columns(group)[name]['dtype'])


# ---- the definition ---------------------------------------------------------------------------------------------------

def cell(table, column, row):
    if column not in table.colnames() or not table.iscelldefined(column, row):
        return None
    return table.getcell(column, row)


def bins_of(table, seconds):
    """Lists of rows that become one, in the order of the averaged rows, and the middle of each in s."""
    rows = range(table.nrows())
    if seconds is None:
        return [[row] for row in rows], [table.getcell('TIME', row) for row in rows]
    names = [n for n in table.colnames() if (n in OTHERS or n.endswith('_ID')) and table.isscalarcol(n)
             and table.coldatatype(n) in ('int', 'short', 'int64', 'uint')]
    read = {name: table.getcol(name) for name in names + [n for n in BASELINE if n in table.colnames()]}
    times = table.getcol('TIME')
    intervals = table.getcol('INTERVAL') if 'INTERVAL' in table.colnames() else np.zeros(len(times))
    shared, open_bins = [], {}
    for row in np.argsort(times, kind='stable'):
        frame = tuple(read[name][row] for name in names)
        time, interval = times[row], intervals[row]
        found = open_bins.get(frame)
        if found is None or not (time < found['limit'] - interval / 1000 or time == found['first']):
            found = open_bins[frame] = {'first': time, 'limit': time - interval / 2 + seconds, 'rows': {},
                                        'low': np.inf, 'high': -np.inf}
            shared.append(found)
        found['low'], found['high'] = min(found['low'], time - interval / 2), max(found['high'], time + interval / 2)
        found['rows'].setdefault(tuple(read[n][row] for n in BASELINE if n in read), []).append(int(row))
    pairs = [(rows, (found['low'] + found['high']) / 2) for found in shared for rows in found['rows'].values()]
    return [rows for rows, _ in pairs], [middle for _, middle in pairs]


def fold(samples, factor):
    """(row, chan, corr) as lists of the samples of each averaged (chan, corr)."""
    for start in range(0, samples.shape[1], factor):
        part = samples[:, start:start + factor]
        yield part.reshape(-1, samples.shape[2])


class Expected:
    """The averaged main table."""

    def __init__(self, table, seconds, factor):
        self.table, self.factor = table, factor
        self.bins, self.times = bins_of(table, seconds)
        self.is_time = seconds is not None

    def flags(self, row):
        flags = cell(self.table, 'FLAG', row)
        if flags is None:
            return None
        flag_row = 'FLAG_ROW' in self.table.colnames() and self.table.getcell('FLAG_ROW', row)
        return flags | flag_row

    def weights(self, row, shape):
        spectrum, weight = cell(self.table, 'WEIGHT_SPECTRUM', row), cell(self.table, 'WEIGHT', row)
        if spectrum is not None:
            found = np.array(spectrum, dtype='f8')
        elif weight is not None:
            found = np.broadcast_to(np.array(weight, dtype='f8'), shape).copy()
        else:
            found = np.ones(shape)
        found[~(np.isfinite(found) & (found > 0))] = 0
        return found

    def samples(self, rows, column):
        """Values, flags and weights of the rows of a bin: (row, chan, corr)."""
        cells = [(row, cell(self.table, column, row)) for row in rows]
        cells = [(row, found) for row, found in cells if found is not None]
        if not cells:
            return None
        values = np.array([found for _, found in cells])
        flags = [self.flags(row) for row, _ in cells]
        flags = np.array([np.zeros(values.shape[1:], bool) if flag is None else flag for flag in flags])
        return values, flags, np.array([self.weights(row, values.shape[1:]) for row, _ in cells])

    def averages(self, rows, column):
        """Mean, flag and weight of each averaged sample (chan, corr)."""
        found = self.samples(rows, column)
        if found is None:
            return None
        shape = (-(-found[0].shape[1] // self.factor), found[0].shape[2])
        mean, flag, weight = np.zeros(shape, 'c16'), np.zeros(shape, bool), np.zeros(shape)
        for chan, (v, f, w) in enumerate(zip(*(fold(part, self.factor) for part in found))):
            for corr in range(shape[1]):
                values, flags, weights = v[:, corr].astype('c16'), f[:, corr], w[:, corr]
                good = ~flags & (weights > 0)
                flag[chan, corr] = not good.any()
                taken = good if good.any() else weights > 0
                if taken.any():
                    weight[chan, corr] = weights[taken].sum()
                    values, weights = values[taken], weights[taken]
                else:
                    weights = np.ones(len(values))
                # part by part: infinite numbers times a complex one are not numbers
                with np.errstate(invalid='ignore', over='ignore'):
                    mean.real[chan, corr] = (values.real * weights).sum() / weights.sum()
                    mean.imag[chan, corr] = (values.imag * weights).sum() / weights.sum()
        return mean, flag, weight

    def row_weight(self, row):
        """The weight of a row, and whether a sample of it is not flagged."""
        flags = self.flags(row)
        assert flags is not None
        weights = self.weights(row, flags.shape)
        return weights[~flags].sum(), bool((~flags).any())

    def column(self, name):
        """Each averaged cell, None where undefined."""
        return [self.cell(name, rows, number) for number, rows in enumerate(self.bins)]

    def cell(self, name, rows, number):
        table = self.table
        if name in ('FLAG', 'WEIGHT_SPECTRUM', 'SIGMA_SPECTRUM'):
            found = self.averages(rows, name)
            if found is None:
                return None
            _, flag, weight = found
            return flag if name == 'FLAG' else weight if name == 'WEIGHT_SPECTRUM' else sigma(weight)
        if name in ('WEIGHT', 'SIGMA', 'FLAG_ROW'):
            found = self.averages(rows, 'FLAG')
            if name == 'FLAG_ROW':
                return True if found is None else found[1].all()
            _, flag, weight = found
            means = np.array([weight[~flag[:, c], c].mean() if (~flag[:, c]).any() else weight[:, c].mean()
                              for c in range(flag.shape[1])])
            return means if name == 'WEIGHT' else sigma(means)
        if name == 'FLAG_CATEGORY':
            return None
        if not table.isscalarcol(name) and table.coldatatype(name) in ('complex', 'dcomplex') or name == 'FLOAT_DATA':
            found = self.averages(rows, name)
            return None if found is None else found[0]
        if self.is_time and name == 'TIME':
            return self.times[number]
        if self.is_time and name in ('TIME_CENTROID', 'UVW'):
            weights = np.array([self.row_weight(row)[0] for row in rows])
            values = np.array([table.getcell(name, row) for row in rows])
            return np.average(values - values[0], axis=0, weights=weights if weights.sum() > 0 else None) + values[0]
        if self.is_time and name == 'INTERVAL':
            return sum(table.getcell(name, row) for row in rows)
        if self.is_time and name == 'EXPOSURE':
            good = [row for row in rows if self.row_weight(row)[1]]
            return sum(table.getcell(name, row) for row in good or rows)
        return cell(table, name, rows[0])


def sigma(weight):
    with np.errstate(divide='ignore'):
        return np.where(weight > 0, 1 / np.sqrt(weight), -1)


def check(source, out, seconds=None, factor=1, query=None, columns=None):
    """Compares all cells of the main table and the spectral windows; returns the names of the columns."""
    with ct.table(source, ack=False) as whole, h5py.File(out) as file:
        table = whole.query(query) if query else whole
        expected, main = Expected(table, seconds, factor), file['MAIN']
        assert layout.row_scale(main).shape == (len(expected.bins),)
        names = [name for name in table.colnames() if (columns is None or name in columns) and name in layout.present(main)]
        assert columns is None or set(names) == set(columns)
        for name in names:
            for row, (want, found) in enumerate(zip(expected.column(name), read(main, name))):
                where = (name, row, expected.bins[row])
                assert (want is None) == (found is None), where
                if want is None:
                    continue
                if isinstance(want, str):
                    assert found == want, where
                    continue
                exact = np.asarray(want).dtype.kind in 'biu' or name in ('TIME',)
                tolerance = dict(rtol=0, atol=1e-6 if name == 'TIME' else 0) if exact else dict(
                    rtol=1e-12 if name == 'TIME_CENTROID' else 2e-6, atol=2e-6 if name != 'TIME_CENTROID' else 0)
                assert np.shape(found) == np.shape(want), where
                np.testing.assert_allclose(np.asarray(found), np.asarray(want), err_msg=str(where), **tolerance)
        if 'SPECTRAL_WINDOW' in file:
            check_windows(source, file['SPECTRAL_WINDOW'], factor)
        return names


def check_windows(source, group, factor):
    with ct.table(source + '::SPECTRAL_WINDOW', ack=False) as windows:
        for row in range(windows.nrows()):
            frequency, width = windows.getcell('CHAN_FREQ', row), windows.getcell('CHAN_WIDTH', row)
            parts = [slice(start, start + factor) for start in range(0, len(frequency), factor)]
            even = not (np.abs(width) > 0).all()
            middles = [np.average(frequency[p], weights=None if even else np.abs(width[p])) for p in parts]
            np.testing.assert_allclose(read(group, 'CHAN_FREQ')[row], middles, rtol=1e-12)
            for name in ('CHAN_WIDTH', 'EFFECTIVE_BW', 'RESOLUTION'):
                sums = [windows.getcell(name, row)[p].sum() for p in parts]
                np.testing.assert_allclose(read(group, name)[row], sums, rtol=1e-12)
            assert read(group, 'NUM_CHAN')[row] == len(parts)
            assert read(group, 'TOTAL_BANDWIDTH')[row] == windows.getcell('TOTAL_BANDWIDTH', row)


def spelled(seconds, factor):
    words = ['time=%ss' % format(seconds, '.15g')] if seconds is not None else []
    return ','.join(words + ['chan=%d' % factor] * (factor > 1))


def average(source, out, seconds=None, factor=1, *options):
    done = h5bridge('to-hdf5', '--average', spelled(seconds, factor), *options, source, out)
    with h5py.File(out) as file:
        assert file.attrs['averaged'] == spelled(seconds, factor)
        assert json.loads(file['_ctds/MAIN'].attrs['table'])['averaged'] == spelled(seconds, factor)
    return done


# ---- a MeasurementSet with everything odd -------------------------------------------------------------------------------

def made(path, spectrum=True, shuffled=False, seed=1):
    """Flags at random, three spectral windows, irregular times, missing baselines, weights of 0."""
    rng = np.random.default_rng(seed)
    shutil.copytree(DEMO, path)
    windows = [7, 12, 1]
    rows = []
    time = 4.6e9
    for step in range(23):
        time += rng.choice([4.0, 4.0, 4.0, 1.0, 30.0])
        for dd in range(3):
            for a in range(5):
                for b in range(a, 5):
                    if rng.random() < 0.85:
                        rows.append((time + (0.001 if b == 4 else 0), dd, a, b, 1 + step // 9, step // 5 % 2))
    if shuffled:
        rng.shuffle(rows)
    with ct.table(path, ack=False, readonly=False) as main:
        description, keywords = main.getdesc(), main.getkeywords()
    keep = {}
    for name, column in description.items():
        if isinstance(column, dict) and 'valueType' in column:
            column = dict(column, dataManagerType='StandardStMan', dataManagerGroup='ssm')
            column['keywords'] = {}
            if not column.get('shape', []) or name in ('DATA', 'FLAG', 'WEIGHT', 'SIGMA', 'WEIGHT_SPECTRUM'):
                column['option'] = 0
                column.pop('shape', None)
            keep[name] = column
    names = [n for n in ('TIME', 'TIME_CENTROID', 'INTERVAL', 'EXPOSURE', 'ANTENNA1', 'ANTENNA2', 'DATA_DESC_ID', 'FIELD_ID',
                         'SCAN_NUMBER', 'STATE_ID', 'ARRAY_ID', 'OBSERVATION_ID', 'PROCESSOR_ID', 'FEED1', 'FEED2', 'FLAG_ROW',
                         'UVW', 'DATA', 'FLAG', 'WEIGHT', 'SIGMA', 'FLAG_CATEGORY') if n in keep]
    columns = [dict(desc=dict(keep[name]), name=name) for name in names]
    if spectrum:
        columns.append(ct.makearrcoldesc('WEIGHT_SPECTRUM', 0.0, 2, valuetype='float'))
    columns += [ct.makearrcoldesc('MODEL_DATA', 0j, 2, valuetype='dcomplex'), ct.makescacoldesc('NOTE', ''),
                ct.makearrcoldesc('IMAGING_WEIGHT', 0.0, 1, valuetype='float'), ct.makescacoldesc('QUALITY', 0)]
    fresh = path + '.new'
    with ct.table(fresh, ct.maketabdesc(columns), nrow=len(rows), ack=False) as table:
        for number, (time, dd, a, b, scan, state) in enumerate(rows):
            chans = windows[dd]
            values = rng.normal(size=(chans, 4, 2)).astype('f4')
            data = values[..., 0] + 1j * values[..., 1]
            weight = rng.uniform(0.5, 3, 4)
            weight[rng.random(4) < 0.1] = 0
            flags = rng.random((chans, 4)) < rng.choice([0.0, 0.3, 0.9, 1.0])
            data[flags & (rng.random(flags.shape) < 0.1)] = 1e6
            put = {'TIME': time, 'TIME_CENTROID': time + rng.normal() * 0.2, 'INTERVAL': 4.0, 'EXPOSURE': rng.uniform(1, 4),
                   'ANTENNA1': a, 'ANTENNA2': b, 'DATA_DESC_ID': dd, 'SCAN_NUMBER': scan, 'STATE_ID': state,
                   'FLAG_ROW': rng.random() < 0.1, 'UVW': rng.normal(size=3) * 1000, 'DATA': data, 'FLAG': flags,
                   'WEIGHT': weight, 'SIGMA': np.ones(4), 'MODEL_DATA': data * 2, 'NOTE': 'row %d' % number,
                   'IMAGING_WEIGHT': np.ones(chans), 'QUALITY': number}
            for name, value in put.items():
                table.putcell(name, number, value)
            if spectrum and rng.random() < 0.9:
                weights = rng.uniform(0, 2, (chans, 4)).astype('f4')
                weights[rng.random((chans, 4)) < 0.1] = 0
                table.putcell('WEIGHT_SPECTRUM', number, weights)
    for sub in os.listdir(path):
        if os.path.isdir(os.path.join(path, sub)):
            shutil.copytree(os.path.join(path, sub), os.path.join(fresh, sub))
    with ct.table(fresh, ack=False, readonly=False) as table:
        for name, value in keywords.items():
            if isinstance(value, str) and value.startswith('Table: '):
                table.putkeyword(name, 'Table: ' + os.path.join(fresh, os.path.basename(value[7:])))
            else:
                table.putkeyword(name, value)
        table.putinfo({'type': 'Measurement Set', 'subType': '', 'readme': ''})
    shutil.rmtree(path)
    with ct.table(fresh + '/SPECTRAL_WINDOW', ack=False, readonly=False) as table, \
            ct.table(fresh + '/DATA_DESCRIPTION', ack=False, readonly=False) as described:
        table.addrows(3 - table.nrows())
        described.addrows(3 - described.nrows())
        for row, chans in enumerate(windows):
            width = rng.uniform(1e5, 2e5, chans)
            table.putcell('NUM_CHAN', row, chans)
            table.putcell('CHAN_FREQ', row, 1e9 + np.cumsum(width))
            for name in ('CHAN_WIDTH', 'EFFECTIVE_BW', 'RESOLUTION'):
                table.putcell(name, row, width)
            table.putcell('TOTAL_BANDWIDTH', row, width.sum())
            described.putcell('SPECTRAL_WINDOW_ID', row, row)
            described.putcell('POLARIZATION_ID', row, 0)
    os.rename(fresh, path)
    return path


@pytest.fixture(scope='module')
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp('odd')
    return {name: made(str(folder / (name + '.ms')), **options) for name, options in (
        ('spectrum', {}), ('weight', {'spectrum': False}), ('shuffled', {'shuffled': True}))}


CASES = [(name, seconds, factor)
         for seconds, factor in ((None, 4), (10.0, 1), (12.0, 5), (3.0, 2), (1e5, 100), (0.01, 1))
         for name in ('spectrum', 'weight', 'shuffled')]


@pytest.mark.parametrize('name, seconds, factor', support.sample(CASES, 5),
                         ids=lambda part: part if isinstance(part, str) else repr(part))
def test_made(odd, name, seconds, factor, tmp_path):
    out = tmp_path / 'out.h5'
    done = average(odd[name], out, seconds, factor)
    names = check(odd[name], out, seconds, factor)
    assert {'DATA', 'MODEL_DATA', 'FLAG', 'WEIGHT', 'SIGMA', 'UVW', 'TIME_CENTROID', 'EXPOSURE', 'FLAG_ROW'} <= set(names)
    # nothing is dropped or kept silently
    assert ('NOTE' in done.stderr and 'QUALITY' in done.stderr) == (seconds is not None)
    assert ('IMAGING_WEIGHT' in names) == (factor == 1) == ('IMAGING_WEIGHT is not converted' not in done.stderr)


def test_rows_across_blocks(odd, tmp_path):
    """One thread, little memory, none compressed: the same values."""
    a, b = tmp_path / 'a.h5', tmp_path / 'b.h5'
    average(odd['spectrum'], a, 12.0, 5)
    average(odd['spectrum'], b, 12.0, 5, '--threads', '1', '--max-memory', '64M', '--compress', 'none')
    assert 'equal' in h5bridge('verify', a, b).stderr
    assert 'equal' in h5bridge('verify', a).stderr


@pytest.mark.parametrize('source', [DEMO, TWOSPW], ids=['demo', 'twospw'])
@pytest.mark.parametrize('seconds, factor', [(20.0, 3), (None, 2), (60.0, 1)])
def test_testdata(source, seconds, factor, tmp_path):
    out = tmp_path / 'out.h5'
    average(source, out, seconds, factor)
    check(source, out, seconds, factor)


def test_with_other_options(tmp_path):
    out = tmp_path / 'out.h5'
    average(DEMO, out, 20.0, 4, '--where', 'ANTENNA1 == 1', '--columns', 'DATA,TIME,UVW')
    assert check(DEMO, out, 20.0, 4, 'ANTENNA1 == 1', {'DATA', 'TIME', 'UVW'})
    average(DEMO, out, 20.0, 4, '--rows', '13..101', '--overwrite', '--appendable')
    check(DEMO, out, 20.0, 4, 'ROWID() >= 13 && ROWID() < 101')


def test_of_a_native_file(odd, tmp_path):
    whole, out, direct = tmp_path / 'whole.h5', tmp_path / 'out.h5', tmp_path / 'direct.h5'
    h5bridge('to-hdf5', odd['spectrum'], whole)
    average(whole, out, 12.0, 5)
    average(odd['spectrum'], direct, 12.0, 5)
    assert 'equal' in h5bridge('verify', out, direct).stderr


def test_readers_and_the_way_back(odd, tmp_path):
    """xarray opens it, and to-ms makes a MeasurementSet that python-casacore opens."""
    xarray = pytest.importorskip('xarray')
    for number, source in enumerate([DEMO, odd['spectrum']]):
        out, back = tmp_path / ('%d.h5' % number), tmp_path / ('%d.ms' % number)
        average(source, out, 20.0, 4, '--exclude', 'IMAGING_WEIGHT' if number else 'ANTENNA/OFFSET')
        tree = xarray.open_datatree(out, engine='h5netcdf')
        assert len(tree['MAIN'].TIME) == len(Expected(ct.table(source, ack=False), 20.0, 4).bins)
        h5bridge('to-ms', out, back)
        # values, and a table that says nothing of averages
        assert 'equal' in h5bridge('verify', out, back).stderr
        with ct.table(str(back), ack=False) as table, h5py.File(out) as file:
            for row, data in enumerate(read(file['MAIN'], 'DATA')):
                assert np.array_equal(table.getcell('DATA', row), data, equal_nan=True)
            with ct.table(str(back) + '::SPECTRAL_WINDOW', ack=False) as windows:
                channels = windows.getcol('NUM_CHAN')
                with ct.table(str(back) + '::DATA_DESCRIPTION', ack=False) as described:
                    ids = described.getcol('SPECTRAL_WINDOW_ID')
                for row in range(table.nrows()):
                    assert table.getcell('DATA', row).shape[0] == channels[ids[table.getcell('DATA_DESC_ID', row)]]


def test_dry_run(tmp_path):
    done = h5bridge('to-hdf5', '--average', 'time=20s,chan=4', '--dry-run', DEMO, tmp_path / 'out.h5')
    with ct.table(DEMO, ack=False) as table:
        rows = len(bins_of(table, 20.0)[0])
        assert 'rows: %d to %d' % (table.nrows(), rows) in done.stdout + done.stderr
    assert '16 to 4' in done.stdout + done.stderr
    assert not os.listdir(tmp_path)


def test_verify_explains(tmp_path):
    out = tmp_path / 'out.h5'
    average(DEMO, out, None, 4)
    for pair in [(DEMO, out), (out, DEMO)]:
        done = h5bridge('verify', *pair, code=support.USAGE)
        assert 'averaged (chan=4)' in done.stderr and 'digests' in done.stderr
    assert 'equal' in h5bridge('verify', out).stderr
    again = tmp_path / 'again.h5'
    h5bridge('to-hdf5', out, again)
    with h5py.File(again) as file:
        assert file.attrs['averaged'] == 'chan=4', 'a copy of averages is averaged'


MISTAKES = [
    (['--average', 'time=0s'], DEMO, support.USAGE, 'positive'),
    (['--average', 'chan=1'], DEMO, support.USAGE, '2 or more'),
    (['--average', 'freq=3'], DEMO, support.USAGE, 'time=10s'),
    (['--average', 'time=10s', '--restorable'], DEMO, support.USAGE, 'restorable'),
    (['--average', 'time=10s', '--rows', '5..100000'], DEMO, support.USAGE, '210 rows'),
    (['--average', 'time=10s'], os.path.join(DEMO, 'ANTENNA'), support.USAGE, 'MeasurementSet'),
]


@pytest.mark.parametrize('options, source, code, expected', MISTAKES, ids=[' '.join(case[0]) + case[3] for case in MISTAKES])
def test_mistakes(options, source, code, expected, tmp_path):
    done = h5bridge('to-hdf5', *options, source, tmp_path / 'out.h5', code=code)
    assert expected in done.stderr
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or '-')
def test_corpus(tmp_path):
    """Every MeasurementSet of the corpus with at most 400 rows; a sample of the archives."""
    seen = 0
    for entry in support.corpus_sample(40):
        folder = support.unpack(entry, tmp_path)
        for place, folders, files in os.walk(folder):
            if 'table.dat' not in files or 'SPECTRAL_WINDOW' not in folders:
                continue
            try:
                with ct.table(place, ack=False) as table:
                    usable = 0 < table.nrows() <= 400 and {'FLAG', 'DATA_DESC_ID'} <= set(table.colnames())
            except RuntimeError:
                continue
            if usable:
                average(place, tmp_path / 'out.h5', 30.0, 3, '--overwrite')
                check(place, tmp_path / 'out.h5', 30.0, 3)
                seen += 1
        shutil.rmtree(folder)
    print('MeasurementSets averaged:', seen)
