"""Plots against numpy: frames of `h5bridge plot` beside sums over the arrays that python-casacore reads from the same rows."""
import csv
import json
import os
import struct

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
from following import Casacore
from live_rows import CHANNELS, CORRELATIONS, writer
from support import EXISTS, PLOTS, TESTDATA, UNSUPPORTED, USAGE, h5bridge

LIGHT = 299792458.
STOKES = {1: 'I', 5: 'RR', 6: 'RL', 7: 'LR', 8: 'LL', 9: 'XX', 10: 'XY', 11: 'YX', 12: 'YY'}
PARALLEL = ['XX', 'YY', 'RR', 'LL']
START = 59000 * 86400.


def decode(path):
    """The metadata and arrays of a safetensors document, whose arrays follow each other without gaps."""
    with open(path, 'rb') as f:
        document = f.read()
    size, = struct.unpack('<Q', document[:8])
    assert size % 8 == 0
    header = json.loads(document[8:8 + size])
    plot = json.loads(header.pop('__metadata__')['plot'])
    arrays, end = {}, 0
    types = {'F32': '<f4', 'F64': '<f8', 'U32': '<u4', 'U8': '|u1'}
    for name, entry in sorted(header.items(), key=lambda item: item[1]['data_offsets']):
        start, stop = entry['data_offsets']
        assert start == end
        arrays[name] = np.frombuffer(document[8 + size + start:8 + size + stop], types[entry['dtype']]).reshape(entry['shape'])
        end = stop
    assert len(document) == 8 + size + end
    return plot, arrays


def plot(source, kind, folder, *words, **parameters):
    out = str(folder / 'frame.safetensors')
    for name, value in parameters.items():
        words += ('--' + name.replace('_', '-'), value)
    h5bridge('plot', source, kind, '--out', out, '--overwrite', '--quiet', *words)
    return decode(out)


class Truth:
    """A MeasurementSet as python-casacore reads it, and plots of it in plain numpy."""

    def __init__(self, path, column='DATA'):
        with ct.table(path, ack=False) as t:
            names = t.colnames()

            def scalar(name):
                return t.getcol(name) if name in names else np.zeros(t.nrows(), int)
            self.time, self.a1, self.a2 = t.getcol('TIME'), t.getcol('ANTENNA1'), t.getcol('ANTENNA2')
            self.spw, self.field, self.scan = scalar('DATA_DESC_ID'), scalar('FIELD_ID'), scalar('SCAN_NUMBER')
            self.flag_row, self.uvw = scalar('FLAG_ROW').astype(bool), t.getcol('UVW')
            self.data = [t.getcell(column, row) for row in range(t.nrows())]
            self.flag = [t.getcell('FLAG', row) for row in range(t.nrows())]

        def sub(name, column):
            with ct.table('%s/%s' % (path, name), ack=False) as s:
                return [s.getcell(column, row) for row in range(s.nrows())]
        self.antennas, self.fields = sub('ANTENNA', 'NAME'), sub('FIELD', 'NAME')
        self.positions = sub('ANTENNA', 'POSITION')
        windows, setups = sub('DATA_DESCRIPTION', 'SPECTRAL_WINDOW_ID'), sub('DATA_DESCRIPTION', 'POLARIZATION_ID')
        frequencies, widths, types = sub('SPECTRAL_WINDOW', 'CHAN_FREQ'), sub('SPECTRAL_WINDOW', 'CHAN_WIDTH'), sub('POLARIZATION', 'CORR_TYPE')
        self.frequencies = [frequencies[window] for window in windows]
        self.widths = [widths[window] for window in windows]
        self.corr = [[STOKES[code] for code in types[setup]] for setup in setups]

    def number(self, word, names):
        return names.index(word) if word in names else int(word)

    def select(self, kind, p):
        """Rows, cells [row, chan, corr], flags, frequencies, and names of correlations."""
        spw = int(p.get('spw', self.spw[-1]))
        keep = self.spw == spw
        baseline = p.get('baseline', 'cross')
        if baseline == 'cross':
            keep &= self.a1 != self.a2
        elif baseline == 'auto':
            keep &= self.a1 == self.a2
        elif baseline != 'all':
            pairs = [tuple(self.number(word, self.antennas) for word in pair.split('&' if '&' in pair else '-'))
                     for pair in baseline.split(',')]
            keep &= np.array([(a, b) in pairs or (b, a) in pairs for a, b in zip(self.a1, self.a2)])
        if 'field' in p:
            keep &= np.isin(self.field, [self.number(word, self.fields) for word in p['field'].split(',')])
        if 'scan' in p:
            keep &= np.isin(self.scan, [int(word) for word in p['scan'].split(',')])
        if 'antenna' in p:
            wanted = [self.number(word, self.antennas) for word in p['antenna'].split(',')]
            keep &= np.isin(self.a1, wanted) | np.isin(self.a2, wanted)
        if 'time' in p:
            start, stop = p['time'].split('..')
            keep &= (self.time >= float(start or -1)) & (self.time < float(stop or 1e99))
        rows = np.flatnonzero(keep)
        names = self.corr[spw]
        flags_only = kind.startswith('flag') or kind == 'uv' or p.get('quantity') == 'flagged'
        if 'corr' in p:
            corr = [self.number(word, names) for word in p['corr'].split(',')]
        elif flags_only:
            corr = list(range(len(names)))
        elif names == ['I']:
            corr = [0]
        else:
            corr = [at for at, name in enumerate(names) if name in PARALLEL][:1 if kind in ('amp_uvdist', 'phase_uvdist') else None]
        start, stop = (p.get('chan', '..')).split('..')
        chan = slice(int(start or 0), int(stop or len(self.frequencies[spw])))
        data = np.array([self.data[row][chan][:, corr] for row in rows]).astype('c8')
        flag = np.array([self.flag[row][chan][:, corr] | self.flag_row[row] for row in rows])
        return rows, data, flag, self.frequencies[spw][chan], self.widths[spw][chan], [names[at] for at in corr]


def mean(data, good, p, quantity):
    """One number of many cells."""
    data = data[good]
    if not len(data):
        return np.nan
    if quantity == 'amp' and p.get('statistic') == 'max':
        return np.abs(data).max()
    if quantity == 'amp' and p.get('average', 'scalar') == 'scalar':
        return np.abs(data).astype('f8').mean()
    vector = data.astype('c16').mean()
    return {'amp': np.abs(vector), 'phase': np.degrees(np.angle(vector)), 'real': vector.real, 'imag': vector.imag}[quantity]


def percent(flag):
    return 100 * flag.mean() if flag.size else np.nan


def same(found, wanted, quantity=None):
    wanted = np.array(wanted)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    if quantity == 'phase':
        difference = (found - wanted + 180) % 360 - 180
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        assert np.nanmax(np.abs(difference), initial=0) < 0.02
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5)


def segments(truth, rows, meta, arrays):
    """Lines join neighbours that have values: of one scan and field, and not across a gap."""
    x, y, segment = arrays['x'], arrays['y'], arrays['segment']
    assert segment.dtype == np.uint32 and segment.shape == y.shape and (np.diff(segment.astype(int)) >= 0).all()
    joined = segment[:, 1:] == segment[:, :-1]
    steps = np.diff(x)
    wanted = steps <= 5 * np.sort(steps)[(len(steps) - 1) // 2] if len(steps) else np.ones(0, bool)
    if meta['x']['scale'] == 'category':
        wanted[:] = False
    if meta['x']['scale'] == 'time':
        if len(np.unique(truth.time[rows])) > len(x):
            return
        # the first of those at one time
        of = {time: min((truth.scan[row], truth.field[row]) for row in rows[truth.time[rows] == time]) for time in x}
        keys = np.array([of[time] for time in x]).reshape(-1, 2)
        wanted = wanted & (keys[1:] == keys[:-1]).all(1)
    good = np.isfinite(y)
    assert np.array_equal(joined, wanted & good[:, 1:] & good[:, :-1])


def check(truth, source, kind, folder, *words, **p):
    """Compares a plot with the truth; returns its metadata and arrays."""
    meta, arrays = plot(source, kind, folder, *words, **p)
    if kind == 'antennas':
        # these are not on the Earth: test_plot.py has some that are
        assert meta['series'] == truth.antennas and not np.isnan(np.diagonal(arrays['y'])).any()
        offsets = np.array(truth.positions) - np.mean(truth.positions, 0)
        np.testing.assert_allclose(np.diagonal(arrays['y']), offsets[:, 1], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(arrays['x'], offsets[:, 0], atol=1e-6)
        return meta, arrays
    rows, data, flag, frequency, width, corr = truth.select(kind, p)
    if kind == 'xy':
        # test_axes.py has other axes than time
        assert len(np.unique(arrays['segment'])) == arrays['segment'].shape[1], 'no line joins points'
    elif 'segment' in arrays:
        segments(truth, rows, meta, arrays)
    good = np.isfinite(data) & (~flag if p.get('flagged') != 'include' else True)
    time = truth.time[rows]
    assert meta['kind'] == kind and meta['complete'] and meta['rows'] == meta['rows_used'] == len(truth.time)
    assert meta['selection']['corr'] == corr and not meta['stale']
    quantity = meta['selection']['quantity']
    descending = len(frequency) > 1 and frequency[0] > frequency[-1]
    channels = len(frequency)

    def places(limit):
        each = -(-channels // limit)
        found = [slice(at, min(at + each, channels)) for at in range(0, channels, each)]
        return found[::-1] if descending else found

    def edges(found):
        low = [min(frequency[at] - abs(width[at]) / 2) for at in found]
        return np.array(low + [max(frequency[found[-1]] + abs(width[found[-1]]) / 2)]) / 1e6

    def lines(limit):
        """The rows of each line in time: of one time each, or as the frame's edges say."""
        starts = np.unique(time)
        if len(starts) > limit:
            starts = arrays['y'][:-1] if 'raster' in arrays else arrays['x']
            if 'raster' in arrays:
                # lines that show a gap have no rows
                starts = starts[np.bincount(np.searchsorted(starts, time, 'right') - 1, minlength=len(starts)) > 0]
            assert limit / 4 <= len(starts) <= limit and starts[0] == time.min() and np.all(np.diff(starts) > 0)
        number = np.searchsorted(starts, time, 'right') - 1
        return starts, [np.flatnonzero(number == at) for at in range(len(starts))]
    if kind == 'waterfall':
        starts, groups = lines(1024)
        at = places(512)
        np.testing.assert_allclose(arrays['x'], edges(at))
        assert arrays['y'][-1] > time.max() and np.all(np.diff(arrays['y']) > 0)
        # a true axis: a line without values between two lines that are more than one and a half usual steps apart
        is_line = np.isin(arrays['y'][:-1], starts)
        assert np.isnan(arrays['raster'][~is_line]).all() and not arrays['flagged'][~is_line].any()
        if len(starts) == len(np.unique(time)) > 1:
            steps = np.diff(starts)
            usual = np.sort(steps)[(len(steps) - 1) // 2]
            gaps = starts[:-1][steps > 1.5 * usual]
            np.testing.assert_allclose(arrays['y'][:-1][~is_line], gaps + usual)
        all_flagged = [[flag[group][:, chan].all() for chan in at] for group in groups]
        shows = quantity != 'flagged' and p.get('flagged') != 'include'
        assert np.array_equal(arrays['flagged'][is_line], np.array(all_flagged) & shows)
        arrays = {**arrays, 'raster': arrays['raster'][is_line]}
        if quantity == 'flagged':
            wanted = [[percent(flag[group][:, chan]) for chan in at] for group in groups]
        else:
            wanted = [[mean(data[group][:, chan], good[group][:, chan], p, quantity) for chan in at] for group in groups]
        same(arrays['raster'], wanted, quantity)
        if np.isfinite(arrays['raster']).any():
            finite = np.sort(arrays['raster'][np.isfinite(arrays['raster'])])
            assert [meta['z']['low'], meta['z']['high']] == [finite[int((len(finite) - 1) * q + .5)] for q in (.005, .995)]
    elif kind == 'xy' and quantity == 'flagged':
        starts, groups = lines(4096)
        same(arrays['y'], [[percent(flag[group]) for group in groups]])
    elif kind in ('amp_time', 'phase_time', 'xy'):
        starts, groups = lines(4096)
        assert np.array_equal(arrays['x'], starts) and meta['series'] == corr
        wanted = [[mean(data[group][:, :, c], good[group][:, :, c], p, quantity) for group in groups] for c in range(len(corr))]
        same(arrays['y'], wanted, quantity)
        if quantity != 'phase':
            part = {'amp': np.abs, 'real': np.real, 'imag': np.imag}[quantity]

            def extreme(of):
                return [[of(part(data[g][:, :, c][good[g][:, :, c]])) if good[g][:, :, c].any() else np.nan for g in groups]
                        for c in range(len(corr))]
            same(arrays['low'], extreme(np.min))
            same(arrays['high'], extreme(np.max))
    elif kind == 'spectrum':
        chosen = np.ones(len(rows), bool) if 'time' in p else time == time.max()
        data, good = data[chosen], good[chosen]
        order = slice(None, None, -1) if descending else slice(None)
        np.testing.assert_allclose(arrays['x'], frequency[order] / 1e6)
        for name, shown in [('y', quantity)] + ([('phase', 'phase')] if quantity == 'amp' else []):
            wanted = [[mean(data[:, f, c], good[:, f, c], p if name == 'y' else {}, shown) for f in range(channels)][order]
                      for c in range(len(corr))]
            same(arrays[name], wanted, shown)
    elif kind == 'amp_uvdist':
        distance = np.hypot(*truth.uvw[rows][:, :2].T)[:, None, None] * frequency[None, :, None] / LIGHT / 1e3 * np.ones(data.shape)
        amplitude = np.abs(data)
        use = good & (amplitude > 0)
        # amplitudes on a logarithmic axis
        assert (meta['y']['label'], meta['y']['scale']) == ('amplitude', 'log')
        np.testing.assert_allclose(arrays['y'][1:] / arrays['y'][:-1], 2 ** 0.125)
        wanted, _, _ = np.histogram2d(amplitude[use].astype('f8'), distance[use], [arrays['y'], arrays['x']])
        assert wanted.sum() == arrays['raster'].sum() == use.sum()
        # a value at an edge, rounded in another way, is in the neighbouring place
        assert np.abs(arrays['raster'] - wanted).sum() <= 2 + use.sum() * 1e-3
        return meta, arrays
    elif kind == 'phase_uvdist':
        distance = np.hypot(*truth.uvw[rows][:, :2].T)[:, None, None] * frequency[None, :, None] / LIGHT / 1e3 * np.ones(data.shape)
        use = good & (np.abs(data) > 0)
        np.testing.assert_allclose(arrays['y'], np.linspace(-180, 180, 513))
        phase = np.degrees(np.arctan2(data.imag.astype('f8'), data.real.astype('f8')))
        wanted, _, _ = np.histogram2d(phase[use], distance[use], [arrays['y'], arrays['x']])
        assert wanted.sum() == arrays['raster'].sum() == use.sum()
        assert np.abs(arrays['raster'] - wanted).sum() <= 2 + use.sum() * 1e-3
        return meta, arrays
    elif kind == 'uv':
        scale = (frequency.min() + frequency.max()) / 2 / LIGHT / 1e3 if p.get('unit') == 'klambda' else 1.
        use = (~flag).any(axis=(1, 2)) | (p.get('flagged') == 'include')
        u, v, _ = truth.uvw[rows][use].T * scale
        wanted, _, _ = np.histogram2d(np.concatenate([v, -v]), np.concatenate([u, -u]), [arrays['y'], arrays['x']])
        assert arrays['raster'].sum() == 2 * use.sum() == wanted.sum()
        assert np.abs(arrays['raster'] - wanted).sum() <= 2 + use.sum() * 1e-3
        assert meta['x']['unit'] == ('kλ' if 'unit' in p and p['unit'] != 'm' else 'm')
        return meta, arrays
    elif kind == 'flag_antenna':
        assert meta['x']['names'] == truth.antennas
        a1, a2 = truth.a1[rows], truth.a2[rows]
        same(arrays['y'], [[percent(flag[(a1 == a) | (a2 == a)]) for a in range(len(truth.antennas))]])
    elif kind == 'flag_channel':
        order = slice(None, None, -1) if descending else slice(None)
        np.testing.assert_allclose(arrays['x'], frequency[order] / 1e6)
        same(arrays['y'], [[percent(flag[:, f]) for f in range(channels)][order]])
    elif kind == 'flag_time':
        starts, groups = lines(4096)
        assert np.array_equal(arrays['x'], starts)
        same(arrays['y'], [[percent(flag[group]) for group in groups]])
    elif kind == 'baselines':
        a1, a2 = truth.a1[rows], truth.a2[rows]

        def value(a, b):
            use = (a1 == a) & (a2 == b) | (a1 == b) & (a2 == a)
            return percent(flag[use]) if quantity == 'flagged' else mean(data[use], good[use], p, quantity)
        numbers = range(len(truth.antennas))
        same(arrays['raster'], [[value(a, b) for a in numbers] for b in numbers], quantity)
        shows = quantity != 'flagged' and p.get('flagged') != 'include'
        pairs = [[(a1 == a) & (a2 == b) | (a1 == b) & (a2 == a) for a in numbers] for b in numbers]
        assert np.array_equal(arrays['flagged'], [[shows and use.any() and flag[use].all() for use in line] for line in pairs])
    return meta, arrays


def subtable(main, name, columns):
    """Adds a subtable with COLUMNS: lists of values by name."""
    path = main.name() + '/' + name

    def desc(column, values):
        if isinstance(values[0], (list, np.ndarray)):
            return ct.makearrcoldesc(column, np.array(values[0]).flat[0].item(), ndim=1)
        return ct.makescacoldesc(column, values[0])
    with ct.table(path, ct.maketabdesc([desc(*item) for item in columns.items()]), nrow=len(next(iter(columns.values()))),
                  ack=False) as t:
        for column, values in columns.items():
            for row, value in enumerate(values):
                t.putcell(column, row, np.array(value) if isinstance(value, list) else value)
    main.putkeyword(name, 'Table: ' + path)


def make(path, integrations=36, antennas=5, windows=((4, [9, 10, 11, 12], 1), (8, [5, 8], -1), (600, [1], 1)), seed=1):
    """A MeasurementSet with autocorrelations, several spectral windows, fields and scans, flags, NaN and infinities."""
    random = np.random.default_rng(seed)
    scalars = {'ANTENNA1': 0, 'ANTENNA2': 0, 'DATA_DESC_ID': 0, 'FIELD_ID': 0, 'SCAN_NUMBER': 0, 'TIME': 0., 'FLAG_ROW': False}
    columns = [ct.makescacoldesc(name, value) for name, value in scalars.items()]
    columns += [ct.makearrcoldesc('UVW', 0., shape=[3], ndim=1), ct.makearrcoldesc('DATA', 0j, ndim=2, valuetype='complex'),
                ct.makearrcoldesc('MODEL_DATA', 0j, ndim=2, valuetype='complex'), ct.makearrcoldesc('FLAG', False, ndim=2)]
    pairs = [(a, b) for a in range(antennas) for b in range(a, antennas)]
    rows = [(time, spw, a, b) for time in range(integrations) for spw in range(len(windows)) for a, b in pairs]
    with ct.table(str(path), ct.maketabdesc(columns), nrow=len(rows), ack=False) as t:
        t.putinfo({'type': 'Measurement Set', 'subType': '', 'readme': ''})
        time, spw, a, b = np.array(rows).T
        t.putcol('TIME', START + 8. * time + 600 * (time > integrations // 2))
        t.putcol('DATA_DESC_ID', spw.astype('i4'))
        t.putcol('ANTENNA1', a.astype('i4'))
        t.putcol('ANTENNA2', b.astype('i4'))
        t.putcol('SCAN_NUMBER', (1 + 3 * time // integrations).astype('i4'))
        t.putcol('FIELD_ID', (time * 3 // integrations % 2).astype('i4'))
        t.putcol('FLAG_ROW', random.random(len(rows)) < 0.1)
        t.putcol('UVW', np.where((a == b)[:, None], 0, random.normal(0, 300, (len(rows), 3))))
        for row, (number, window, _, _) in enumerate(rows):
            channels, corr, _ = windows[window]
            cell = random.normal(0, 1, (channels, len(corr), 2)).astype('f4').view('c8')[..., 0] * np.float32(3 ** (number % 7))
            cell[random.random(cell.shape) < 0.02] = np.nan
            cell[random.random(cell.shape) < 0.01] = np.inf
            t.putcell('DATA', row, cell + np.float32(1))
            t.putcell('MODEL_DATA', row, np.full(cell.shape, row + 1j, 'c8'))
            t.putcell('FLAG', row, random.random(cell.shape) < (0.9 if number == 3 else 0.2))
        t.putcell('FLAG', 0, np.ones((windows[0][0], len(windows[0][1])), bool))
        names = ['m%03d' % number for number in range(antennas - 1)] + ['CS-9']
        subtable(t, 'ANTENNA', {'NAME': names, 'STATION': names, 'POSITION': [[1., 2., 3.]] * antennas})
        subtable(t, 'FIELD', {'NAME': ['3C 286', 'target']})
        subtable(t, 'OBSERVATION', {'TELESCOPE_NAME': ['TEST']})
        frequency = [1e9 + 1e8 * number + sign * 1e6 * np.arange(channels)
                     for number, (channels, _, sign) in enumerate(windows)]
        subtable(t, 'SPECTRAL_WINDOW', {'CHAN_FREQ': frequency, 'CHAN_WIDTH': [np.full(len(f), 1e6) for f in frequency],
                                        'NAME': ['low', 'middle', 'high'][:len(windows)]})
        subtable(t, 'POLARIZATION', {'CORR_TYPE': [np.array(corr, 'i4') for _, corr, _ in windows]})
        numbers = list(range(len(windows)))
        subtable(t, 'DATA_DESCRIPTION', {'SPECTRAL_WINDOW_ID': numbers, 'POLARIZATION_ID': numbers})


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """The same rows as a table, a native file and a live file, and the truth."""
    folder = tmp_path_factory.mktemp('frames')
    make(folder / 'made.ms')
    h5bridge('to-hdf5', folder / 'made.ms', folder / 'made.h5', '--quiet')
    h5bridge('follow', folder / 'made.ms', folder / 'live.h5', '--until-closed', '--quiet')
    return folder, Truth(str(folder / 'made.ms'))


CASES = [dict(), dict(spw='0'), dict(spw='1'), dict(spw='0', flagged='include'), dict(spw='0', corr='YX,XX'), dict(spw='1', corr='1'),
         dict(spw='0', baseline='auto'), dict(spw='1', baseline='all'), dict(spw='0', baseline='m001-m000,2&CS-9'),
         dict(spw='1', antenna='m002,CS-9'), dict(spw='0', field='target'), dict(spw='1', field='0', scan='1,3'),
         dict(spw='0', scan='2'), dict(spw='1', time='%r..%r' % (START + 40, START + 120)), dict(spw='1', time='..%r' % (START + 17)),
         dict(spw='1', chan='2..5'), dict(chan='590..')]
MORE = [('waterfall', dict(spw='0', statistic='max')), ('waterfall', dict(spw='1', average='vector')),
        ('waterfall', dict(spw='1', quantity='phase', baseline='0-1')), ('waterfall', dict(spw='0', quantity='real')),
        ('waterfall', dict(spw='0', quantity='imag')), ('waterfall', dict(quantity='flagged')),
        ('amp_time', dict(spw='0', statistic='max')), ('amp_time', dict(spw='0', average='vector')),
        ('amp_time', dict(spw='0', quantity='real')), ('amp_time', dict(spw='1', quantity='imag')),
        ('xy', dict(spw='0', quantity='phase')), ('xy', dict(spw='1', quantity='imag')), ('xy', dict(spw='0', quantity='flagged')),
        ('spectrum', dict(spw='0', quantity='phase')), ('spectrum', dict(spw='0', statistic='max', time='0..')),
        ('spectrum', dict(spw='1', average='vector', time='%r..' % START)), ('spectrum', dict(spw='1', quantity='real')),
        ('baselines', dict(spw='0', quantity='flagged')), ('baselines', dict(spw='1', quantity='phase', baseline='all')),
        ('baselines', dict(spw='0', statistic='max')), ('baselines', dict(spw='0', average='vector')), ('uv', dict(spw='1', unit='klambda'))]


@pytest.mark.parametrize('kind', PLOTS)
@pytest.mark.parametrize('form', ['made.ms', 'made.h5', 'live.h5'])
def test_every_parameter(made, kind, form, tmp_path):
    folder, truth = made
    cases = CASES + [parameters for other, parameters in MORE if other == kind]
    if form != 'made.ms':
        cases = cases[:3] + cases[len(CASES):]
    for parameters in cases:
        try:
            check(truth, folder / form, kind, tmp_path, **parameters)
        except AssertionError as error:
            raise AssertionError('%s %r: %s' % (kind, parameters, error)) from error


def test_other_columns(made, tmp_path):
    folder, _ = made
    check(Truth(str(folder / 'made.ms'), 'MODEL_DATA'), folder / 'made.ms', 'amp_time', tmp_path, spw='0', column='MODEL_DATA')


@pytest.mark.parametrize('name', ['demo/demo.ms', 'twospw/twospw.ms'])
def test_testdata(name, tmp_path):
    source = os.path.join(TESTDATA, name)
    truth = Truth(source)
    for kind in PLOTS:
        check(truth, source, kind, tmp_path)
        check(truth, source, kind, tmp_path, spw='0')


def test_many_times_in_any_order(tmp_path):
    """More times than lines, read in small blocks in bit-reversed order."""
    make(tmp_path / 'long.ms', integrations=5000 if support.LONG else 1500, antennas=2, windows=((2, [9, 12], 1),))
    truth = Truth(str(tmp_path / 'long.ms'))
    for kind in ('waterfall', 'amp_time', 'flag_time', 'phase_time'):
        check(truth, tmp_path / 'long.ms', kind, tmp_path, '--block-bytes', '4K', baseline='all')
    check(truth, tmp_path / 'long.ms', 'spectrum', tmp_path, '--block-bytes', '4K')


def test_a_beginning_is_an_even_sample(made, tmp_path):
    folder, truth = made
    out = tmp_path / 'part.safetensors'
    words = ['plot', folder / 'made.ms', 'amp_time', '--spw', '2', '--out', out, '--block-bytes', '20K', '--max-read', '100K']
    process = h5bridge(*words)
    assert 'even sample' in process.stderr and '--max-read' in process.stderr
    meta, arrays = decode(out)
    assert meta['stopped'] and not meta['complete'] and 0 < meta['rows_used'] < meta['rows'] == len(truth.time)
    # whole integrations, from all quarters of the time
    times = arrays['x']
    for time, values in zip(times, arrays['y'][0]):
        use = (truth.time == time) & (truth.spw == 2) & (truth.a1 != truth.a2)
        cells = [(truth.data[row], truth.flag[row] | truth.flag_row[row]) for row in np.flatnonzero(use)]
        data, flag = np.array([cell for cell, _ in cells]), np.array([flag for _, flag in cells])
        np.testing.assert_allclose(values, mean(data, ~flag & np.isfinite(data), {}, 'amp'), rtol=2e-5)
    assert times.min() == truth.time.min() and times.max() > np.quantile(truth.time, 0.7)
    h5bridge(*words, '--strict', '--overwrite', code=6)


def test_numbers_as_npy_and_csv(made, tmp_path):
    folder, _ = made
    _, arrays = plot(folder / 'made.ms', 'waterfall', tmp_path, spw='0')
    h5bridge('plot', folder / 'made.ms', 'waterfall', '--spw', '0', '--out', tmp_path / 'a.npy', '--quiet')
    np.testing.assert_array_equal(np.load(tmp_path / 'a.npy'), arrays['raster'])
    h5bridge('plot', folder / 'made.ms', 'waterfall', '--spw', '0', '--out', tmp_path / 'a.csv', '--quiet')
    lines = list(csv.reader(open(tmp_path / 'a.csv', newline='')))
    assert lines[0][0] == 'time (UTC) \\ frequency (MHz)' and len(lines) == len(arrays['y']) + 1
    np.testing.assert_array_equal(np.array(lines[0][1:], 'f8'), arrays['x'])
    found = np.array([[float(cell or 'nan') for cell in line[1:]] for line in lines[1:-1]], 'f4')
    np.testing.assert_array_equal(found, arrays['raster'])
    assert lines[1][0] == '2020-05-31T00:00:00.0Z'
    _, arrays = plot(folder / 'made.ms', 'flag_antenna', tmp_path)
    h5bridge('plot', folder / 'made.ms', 'flag_antenna', '--out', tmp_path / 'b.csv', '--quiet')
    lines = list(csv.reader(open(tmp_path / 'b.csv', newline='')))
    assert lines[0] == ['antenna', 'flagged'] and [line[0] for line in lines[1:]] == ['m000', 'm001', 'm002', 'm003', 'CS-9']
    np.testing.assert_array_equal(np.array([line[1] for line in lines[1:]], 'f4'), arrays['y'][0])


def test_pictures(made, tmp_path):
    """Every kind is drawn: many colours, and the same bytes each time. Somebody has to look at them, too."""
    Image = pytest.importorskip('PIL.Image')
    folder, _ = made
    for kind in PLOTS:
        out = tmp_path / (kind + '.png')
        h5bridge('plot', folder / 'made.ms', kind, '--out', out, '--quiet', '--size', '640x480')
        image = Image.open(out)
        assert image.size == (640, 480) and image.mode == 'RGB'
        colours = len(image.getcolors(1 << 20))
        assert colours > (20 if kind in ('waterfall', 'amp_uvdist', 'baselines') else 3), (kind, colours)


def test_description(made):
    folder, _ = made
    for form, kind in [('made.ms', 'table'), ('made.h5', 'hdf5'), ('live.h5', 'live')]:
        found = json.loads(h5bridge('plot', folder / form, '--describe').stdout)
        assert found['kind'] == kind and found['missing'] is None and found['plots'] == list(PLOTS)
        assert [antenna['name'] for antenna in found['antennas']] == ['m000', 'm001', 'm002', 'm003', 'CS-9']
        assert found['antennas'][0]['position'] == [1, 2, 3] and found['telescope'] == 'TEST'
        assert [field['name'] for field in found['fields']] == ['3C 286', 'target']
        windows = found['spectral_windows']
        assert [window['correlations'] for window in windows] == [['XX', 'XY', 'YX', 'YY'], ['RR', 'LL'], ['I']]
        assert windows[1]['frequencies'] == [1.1e9 - 1e6 * number for number in range(8)]
        assert found['columns'] == ['DATA', 'MODEL_DATA'] and found['newest_spw'] == 2
        assert found['time_range'] == [START, START + 8 * 35 + 600]


def test_unknown_parameters_are_refused(made, tmp_path):
    folder, _ = made
    for words, part in [(['--corr', 'ZZ'], 'correlation ZZ'), (['--antenna', 'm007'], 'antenna m007'), (['--spw', 'none'], 'spectral'),
                        (['--field', 'x'], 'field x'), (['--column', 'UVW'], 'column of visibilities UVW'), (['--time', 'now'], 'range'),
                        (['--quantity', 'power'], 'quantity'), (['--out', 'a.jpg'], '.png'), (['--flagged', '1'], 'omit or include')]:
        process = h5bridge('plot', folder / 'made.ms', 'waterfall', *words, code=USAGE)
        assert part in process.stderr, process.stderr
    (tmp_path / 'a.png').write_text('mine')
    h5bridge('plot', folder / 'made.ms', '--out', tmp_path / 'a.png', code=EXISTS)
    assert (tmp_path / 'a.png').read_text() == 'mine'
    process = h5bridge('plot', folder / 'made.ms/ANTENNA', '--out', tmp_path / 'b.png', code=UNSUPPORTED)
    assert 'TIME, ANTENNA1, ANTENNA2 and a column of visibilities' in process.stderr
    with h5py.File(tmp_path / 'other.h5', 'w') as f:
        f['a'] = np.arange(3)
    assert h5bridge('plot', tmp_path / 'other.h5', '--out', tmp_path / 'b.png', code=None).returncode in (3, 4)
    assert not (tmp_path / 'b.png').exists()


def test_rows_as_they_are_committed(tmp_path):
    """Each frame has whole commits, all rows of them, and nothing else: cells are made from the numbers of rows."""
    path, rows, grown = str(tmp_path / 'live.h5'), 0, 0
    live = writer(path, plots=1, every=0, pace=0.05, integrations=60, all=0)
    try:
        while live.poll() is None or rows < 420:
            meta, arrays = plot(path, 'amp_time', tmp_path, corr='0,1')
            grown += meta['rows'] > rows
            assert meta['rows'] >= rows and meta['rows'] % 7 == 0 and meta['complete']
            rows = meta['rows']
            assert meta['rows_used'] == rows and arrays['y'].shape == (2 if rows else 0, rows)
            number = np.arange(rows)
            assert np.array_equal(arrays['x'], number / 4)
            element = np.arange(CHANNELS * CORRELATIONS)
            good = (number[:, None] + element) % 3 != 0
            amplitude = np.hypot(number[:, None].astype('f4'), element.astype('f4'))
            for corr in range(2 if rows else 0):
                use = good & (element % 2 == corr)
                np.testing.assert_allclose(arrays['y'][corr], np.where(use, amplitude, 0).sum(1) / use.sum(1), rtol=1e-5)
            if live.poll() is not None:
                assert live.returncode == 0, live.stderr.read()
        assert rows == 420 and grown > 3, grown
    finally:
        live.kill()


def test_a_table_that_casacore_has_open(tmp_path):
    """Rows that were unlocked are plotted, while the writer has the table open, holds its lock, and adds more."""
    make(tmp_path / 'open.ms', integrations=4, antennas=3, windows=((3, [9, 12], 1),))
    with Casacore() as casacore:
        casacore.run("t = ct.table(path, readonly=False, lockoptions='user', ack=False)", path=str(tmp_path / 'open.ms'))
        for step in range(4):
            meta, arrays = plot(tmp_path / 'open.ms', 'amp_time', tmp_path, baseline='all')
            assert meta['complete'] and meta['rows'] == meta['rows_used'] == 24 + step
            np.testing.assert_allclose(arrays['y'][:, 4:], np.tile(1 + np.arange(step), (2, 1)))
            casacore.run("""
t.lock(write=True)
n = t.nrows(); t.addrows(1)
t.putcell('TIME', n, start + n); t.putcell('DATA', n, np.full((3, 2), amplitude, 'c8')); t.putcell('FLAG', n, np.zeros((3, 2), bool))
t.putcell('UVW', n, np.zeros(3))
""", start=START + 1e6, amplitude=1. + step)
            if step == 3:
                # the lock is held and nothing was flushed: the rows that were there
                meta, _ = plot(tmp_path / 'open.ms', 'amp_time', tmp_path, baseline='all')
                assert meta['rows'] == 24 + step
            casacore.run('t.unlock()')
    check(Truth(str(tmp_path / 'open.ms')), tmp_path / 'open.ms', 'waterfall', tmp_path, baseline='all')


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing())
@pytest.mark.parametrize('entry', support.corpus_sample(8), ids=lambda entry: entry['name'])
def test_corpus(entry, tmp_path):
    """Every table is plotted, or says in words why there is nothing to plot."""
    folder = support.unpack(entry, tmp_path)
    found = sorted(os.path.join(at, name) for at, names, files in os.walk(folder) for name in names
                   if os.path.exists(os.path.join(at, name, 'table.dat')))
    tables = [folder] if os.path.exists(os.path.join(folder, 'table.dat')) else found
    for table in tables:
        description = h5bridge('plot', table, '--describe', code=None)
        if description.returncode:
            assert description.stderr.startswith('h5bridge: ') and len(description.stderr) > 30
            continue
        missing = json.loads(description.stdout)['missing']
        for kind in PLOTS if missing is None else PLOTS[:1]:
            process = h5bridge('plot', table, kind, '--out', tmp_path / 'a.safetensors', '--overwrite', code=None)
            if missing is not None:
                assert process.returncode == UNSUPPORTED and 'nothing to plot' in process.stderr, process.stderr
            else:
                assert process.returncode == 0, (table, kind, process.stderr)
                assert decode(tmp_path / 'a.safetensors')[0]['complete']
