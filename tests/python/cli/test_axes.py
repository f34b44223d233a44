"""Points of axes that are named, `h5bridge plot --x --y`, beside numpy over python-casacore's columns, and elevations and
hour angles of its measures; and a panel for each antenna, field or other group, beside the plots of each."""
import json
import os
import subprocess

import casacore.tables as ct
import numpy as np
import pytest

import support
from support import TESTDATA, UNSUPPORTED, USAGE, h5bridge
from test_frames import Truth, decode, make, mean, percent, same
from test_plot import Picture, decode_png

MEASUREMENT_SETS = ['vla_tdem', 'casacore_mssel_small', 'dp3_generic', 'mwa_cotter_noautos', 'yanda_vela', 'sirius_point_ms']
# degrees and hours by which UT1, of which nothing is known here, and 0.9 s change them, and a few seconds of arc
NEAR = {'elevation': 0.006, 'hour_angle': 0.0005}


class Skies(Truth):
    """A MeasurementSet with where its fields stand, as casacore's measures give it."""

    def __init__(self, path):
        super().__init__(path)
        self.path = path
        self.standing = {}

    def where(self, axis, rows):
        """Elevations in degrees or hour angles in hours of the field of each row."""
        measures = pytest.importorskip('casacore.measures').measures()
        with ct.table(self.path + '/FIELD', ack=False) as t:
            directions = [t.getcell('PHASE_DIR', row)[0] for row in range(t.nrows())]
            frame = t.getcolkeywords('PHASE_DIR').get('MEASINFO', {}).get('Ref', 'J2000')
        middle = np.mean([place for place in self.positions if np.any(place)], 0)
        measures.do_frame(measures.position('ITRF', *['%rm' % float(metres) for metres in middle]))
        found = []
        for row in rows:
            key = (axis, self.time[row], self.field[row])
            if key not in self.standing:
                measures.do_frame(measures.epoch('UTC', '%rs' % float(self.time[row])))
                field = measures.direction(frame, *['%rrad' % float(angle) for angle in directions[self.field[row]]])
                of = measures.measure(field, 'AZELGEO' if axis == 'elevation' else 'HADEC')
                self.standing[key] = np.degrees(of['m1']['value']) if axis == 'elevation' else np.degrees(of['m0']['value']) / 15
            found.append(self.standing[key])
        return np.array(found)

    def numbers(self, axis, rows):
        if axis in NEAR:
            return self.where(axis, rows)
        if axis == 'uvdist':
            return np.hypot(*self.uvw[rows][:, :2].T)
        if axis in 'uvw':
            return self.uvw[rows][:, 'uvw'.index(axis)]
        with ct.table(self.path, ack=False) as t:
            return np.array([t.getcell(axis, row) for row in rows]).astype('f8')


def points(truth, x, y, p, starts=None):
    """Places on the x axis, and the values of each correlation there; of all correlations if these are numbers of rows. STARTS:
    the first places of bins of neighbours."""
    rows, data, flag, _, _, corr = truth.select('flags' if y == 'flagged' else 'xy', p)
    good = np.isfinite(data) & ~flag
    along = truth.numbers(x, rows)
    places, number = np.unique(along, return_inverse=True)
    if starts is not None:
        places, number = starts, np.searchsorted(starts, along, 'right') - 1
    groups = [np.flatnonzero(number == at) for at in range(len(places))]
    if y == 'flagged':
        return places, [[percent(flag[group]) for group in groups]]
    if y in ('amp', 'phase', 'real', 'imag'):
        return places, [[mean(data[group][:, :, c], good[group][:, :, c], p, y) for group in groups] for c in range(len(corr))]
    up, used = truth.numbers(y, rows), ~flag.all((1, 2))

    def of(values):
        return [values[group][used[group]].mean() if used[group].any() else np.nan for group in groups]
    if up.ndim == 1:
        return places, [of(up)]
    names = truth.corr[int(p.get('spw', truth.spw[-1]))]
    return places, [of(up[:, names.index(name)]) for name in corr]


def check(truth, source, folder, x, y, **p):
    """Compares a plot with casacore and numpy; returns the number of places on its x axis."""
    out = str(folder / 'frame.safetensors')
    words = [word for name, value in p.items() for word in ('--' + name, value)]
    h5bridge('plot', source, '--x', x, '--y', y, '--out', out, '--overwrite', '--quiet', *words)
    meta, arrays = decode(out)
    places, wanted = points(truth, x, y, p)
    if len(places) > 4096:
        assert 2048 <= len(arrays['x']) <= 4096 and arrays['x'][0] == places[0] and np.isin(arrays['x'], places).all()
        places, wanted = points(truth, x, y, p, arrays['x'])
    assert meta['kind'] == 'xy' and meta['complete'] and meta['selection']['x'].lower() == x.lower()
    assert len(np.unique(arrays['segment'])) == arrays['segment'].shape[1], 'no line joins points'
    np.testing.assert_allclose(arrays['x'], places, rtol=1e-12, atol=NEAR.get(x, 0))
    if y in NEAR:
        np.testing.assert_allclose(arrays['y'], wanted, atol=NEAR[y])
    else:
        same(arrays['y'], wanted, y)
    return len(places)


PAIRS = [('elevation', 'amp'), ('hour_angle', 'phase'), ('elevation', 'WEIGHT'), ('TIME', 'elevation'), ('hour_angle', 'elevation'),
         ('uvdist', 'real'), ('SCAN_NUMBER', 'flagged'), ('w', 'imag'), ('ANTENNA1', 'amp'), ('INTERVAL', 'SIGMA'), ('u', 'w')]


def on_the_earth(path):
    """Gives a table's antennas and fields places, as an array near the VLA and three sources have them."""
    with ct.table(str(path) + '/ANTENNA', readonly=False, ack=False) as t:
        offsets = np.random.default_rng(7).normal(0, 2000, (t.nrows(), 3))
        t.putcol('POSITION', [-1601185.4, -5041977.5, 3554875.9] + offsets)
    with ct.table(str(path) + '/FIELD', readonly=False, ack=False) as t:
        if 'PHASE_DIR' in t.colnames():
            t.removecols('PHASE_DIR')
        t.addcols(ct.maketabdesc([ct.makearrcoldesc('PHASE_DIR', 0., shape=[1, 2], ndim=2)]))
        for row in range(t.nrows()):
            t.putcell('PHASE_DIR', row, np.array([[0.6 + 0.8 * row, 0.5 - 0.3 * row]]))
        t.putcolkeyword('PHASE_DIR', 'MEASINFO', {'type': 'direction', 'Ref': 'J2000'})


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp('axes')
    make(folder / 'made.ms')
    on_the_earth(folder / 'made.ms')
    with ct.table(str(folder / 'made.ms'), readonly=False, ack=False) as t:
        rows = t.nrows()
        t.addcols(ct.maketabdesc([ct.makescacoldesc('INTERVAL', 0.), ct.makearrcoldesc('WEIGHT', 0., ndim=1, valuetype='float'),
                                  ct.makearrcoldesc('SIGMA', 0., ndim=1, valuetype='float')]))
        t.putcol('INTERVAL', np.resize([8., 4., 2.5], rows))
        for row in range(rows):
            count = t.getcell('DATA', row).shape[1]
            t.putcell('WEIGHT', row, np.arange(count) * 100. + row)
            t.putcell('SIGMA', row, np.full(count, 1 / (1. + row)))
    h5bridge('to-hdf5', folder / 'made.ms', folder / 'made.h5', '--quiet')
    h5bridge('follow', folder / 'made.ms', folder / 'live.h5', '--until-closed', '--quiet')
    return folder, Skies(str(folder / 'made.ms'))


@pytest.mark.parametrize('form', ['made.ms', 'made.h5', 'live.h5'])
@pytest.mark.parametrize(('x', 'y'), PAIRS)
def test_axes_are_casacores(made, form, x, y, tmp_path):
    folder, truth = made
    for selection in [dict(spw='0'), dict(spw='1', field='target'), dict(spw='0', antenna='m001,CS-9', baseline='all')]:
        assert check(truth, folder / form, tmp_path, x, y, **selection) >= (1 if x in ('SCAN_NUMBER', 'ANTENNA1', 'INTERVAL') else 10)


@pytest.mark.parametrize('name', MEASUREMENT_SETS)
def test_telescopes(name, tmp_path):
    entries = [entry for entry in support.corpus_entries() if entry['name'] == name]
    if not entries or support.corpus_missing():
        pytest.skip(support.corpus_missing())
    folder = support.unpack(entries[0], tmp_path)
    source, = [os.path.join(folder, name) for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, 'ANTENNA'))]
    truth = Skies(source)
    for x, y in [('elevation', 'amp'), ('hour_angle', 'phase'), ('elevation', 'WEIGHT'), ('TIME', 'elevation'), ('w', 'real')]:
        check(truth, source, tmp_path, x, y)


def test_lines_by_antenna(made, tmp_path):
    """The example of the issue: a line of each antenna is that of its baselines."""
    folder, truth = made
    document = json.loads(h5bridge('plot', folder / 'made.ms', '--x', 'elevation', '--y', 'amp', '--by', 'antenna', '--spw', '0', '--json').stdout)
    x, y = (np.array(document['arrays'][name], float) for name in 'xy')
    assert document['plot']['title'] == 'Amplitude against elevation, by antenna'
    for number, antenna in enumerate(truth.antennas):
        places, wanted = points(truth, 'elevation', 'amp', dict(spw='0', antenna=antenna))
        for line, name in zip(wanted, ('XX', 'YY'), strict=True):
            shown = y[document['plot']['series'].index('%s %s' % (antenna, name))]
            np.testing.assert_allclose(x[np.isfinite(shown)], places[np.isfinite(line)], atol=NEAR['elevation'])
            same(shown[np.isfinite(shown)], np.array(line)[np.isfinite(line)], 'amp')
    assert number == 4


def test_names_of_axes(made, tmp_path):
    """Words in any case and their short forms are one axis, with its unit."""
    folder, _ = made

    def axes(*words):
        document = json.loads(h5bridge('plot', folder / 'made.ms', *words, '--json').stdout)
        return document['plot']['selection'].get('x'), document['plot']['x'], document['plot']['y'], document['arrays']
    for words, name, label, unit in [(('Elevation', 'EL', 'el'), 'elevation', 'elevation', 'deg'),
                                     (('hour angle', 'HA', 'hourangle'), 'hour_angle', 'hour angle', 'h'),
                                     (('scan', 'scan_number', 'SCAN_NUMBER'), 'SCAN_NUMBER', 'SCAN_NUMBER', '')]:
        found = [axes('--x', word, '--y', 'amp') for word in words]
        assert all(one == found[0] for one in found)
        assert found[0][0] == name and (found[0][1]['label'], found[0][1]['unit']) == (label, unit)
    assert axes('--y', 'WEIGHT')[1]['scale'] == 'time' and axes('--y', 'weight')[2]['label'] == 'WEIGHT'
    assert axes('--x', 'u', '--y', 'w')[2]['label'] == 'w'


def test_pictures_show_places_with_points(made, tmp_path):
    """The axes reach as far as points do: places all of whose visibilities are flagged are not shown."""
    folder, truth = made
    source = tmp_path / 'a.ms'
    subprocess.run(['cp', '-r', folder / 'made.ms', source], check=True)
    with ct.table(str(source), readonly=False, ack=False) as t:
        late = t.getcol('TIME') > np.median(t.getcol('TIME'))
        t.putcol('FLAG_ROW', late)
    words = ['--x', 'time', '--y', 'elevation', '--spw', '0', '--out', tmp_path / 'a.svg']
    h5bridge('plot', source, *words)
    document = json.loads(h5bridge('plot', source, *words[:-2], '--json').stdout)
    assert document['plot']['title'] == 'Elevation against time' and len(document['arrays']['x']) == len(np.unique(truth.time))
    dots, = Picture(tmp_path / 'a.svg').dots().values()
    assert len(dots) == len(np.unique(truth.time[~late])) and np.ptp(dots[:, 0]) > 700


def test_rows_without_numbers_are_named(made, tmp_path):
    """Undefined cells, cells of another size and times without a place are left out, and the note says how many."""
    folder, truth = made
    source = tmp_path / 'a.ms'
    subprocess.run(['cp', '-r', folder / 'made.ms', source], check=True)
    with ct.table(str(source), readonly=False, ack=False) as t:
        t.addcols(ct.maketabdesc([ct.makearrcoldesc('ODD', 0., ndim=1)]))
        for row in range(t.nrows()):
            if row % 2:
                t.putcell('ODD', row, [1., 2., 3.] if row % 4 == 1 else [float(row)])
        rows = truth.select('xy', dict(spw='0'))[0]
        flagged = truth.select('xy', dict(spw='0'))[2].all((1, 2))
    note = json.loads(h5bridge('plot', source, '--x', 'elevation', '--y', 'ODD', '--spw', '0', '--json').stdout)['plot']['note']
    left_out = int(((rows % 4 != 3) & ~flagged).sum())
    assert '; %d rows without a number on an axis are left out' % left_out in note
    with ct.table(str(source), readonly=False, ack=False) as t:
        t.putcol('TIME', t.getcol('TIME') % 1e6)
    note = json.loads(h5bridge('plot', source, '--x', 'elevation', '--spw', '0', '--json').stdout)['plot']['note']
    assert '; %d rows without a number on an axis are left out' % len(rows) in note


def test_wrong_axes(made, tmp_path):
    folder, _ = made
    source = folder / 'made.ms'
    for words, said in [(('--x', 'elevatoin'), "x: \"elevatoin\", where elevation, hour_angle, uvdist, u, v, w, "),
                        (('--x', 'elevatoin'), 'did you mean elevation?'),
                        (('--x', 'UVW'), 'the cells of UVW have 3 elements; this axis takes one number of each row'),
                        (('--y', 'DATA'), 'the cells of DATA have 600 elements; this axis takes one number of each row, or one for each correlation'),
                        (('--x', 'channel', '--y', 'WEIGHT'), 'no plot has channel across and weight upwards'),
                        (('--x', 'u', '--y', 'TIME'), 'TIME is an axis for x'),
                        (('--x', 'elevation', '--y', 'amp', '--quantity', 'phase'), '--quantity is phase, and --y is amp')]:
        assert said in h5bridge('plot', source, *words, code=USAGE).stderr
    demo = os.path.join(TESTDATA, 'demo', 'demo.ms')
    assert 'need antennas with positions on the Earth' in h5bridge('plot', demo, '--x', 'elevation', code=UNSUPPORTED).stderr
    for change, said in [(lambda t: t.putcolkeyword('PHASE_DIR', 'MEASINFO', {'type': 'direction', 'Ref': 'MARS'}), 'is in the frame MARS'),
                         (lambda t: t.removecols('PHASE_DIR'), 'has no direction for its elevation')]:
        copy = tmp_path / 'a.ms'
        subprocess.run(['rm', '-rf', copy], check=True)
        subprocess.run(['cp', '-r', source, copy], check=True)
        with ct.table(str(copy) + '/FIELD', readonly=False, ack=False) as t:
            change(t)
        assert said in h5bridge('plot', copy, '--x', 'elevation', code=UNSUPPORTED).stderr
        h5bridge('plot', copy, '--x', 'uvdist', '--y', 'real', '--json')


@pytest.mark.parametrize('by', ['antenna', 'field', 'scan', 'spw', 'correlation', 'baseline'])
def test_panels(made, by, tmp_path):
    """Each panel is the plot of its group, and has a place of its own in the picture."""
    folder, truth = made
    source, kind = folder / 'made.ms', ['--x', 'time', '--y', 'real', '--spw', '0'][:4 if by == 'spw' else 6]
    document = json.loads(h5bridge('plot', source, *kind, '--panels', by, '--json').stdout)
    found = [document, *document['more']]
    words = {'antenna': [('--antenna', '#%d' % number) for number in range(5)], 'field': [('--field', '#0'), ('--field', '#1')],
             'scan': [('--scan', scan) for scan in '123'], 'spw': [('--spw', spw) for spw in '012'],
             'correlation': [('--corr', 'XX'), ('--corr', 'YY')],
             'baseline': [('--baseline', '#%d&#%d' % (a, b)) for a in range(5) for b in range(a + 1, 5)]}[by]
    assert len(found) == len(words)
    for panel, word in zip(found, words, strict=True):
        alone = json.loads(h5bridge('plot', source, *kind, *word, '--json').stdout)
        assert panel['arrays'] == alone['arrays']
        assert panel['plot']['title'].endswith(': ' + alone['plot']['title'])
    h5bridge('plot', source, *kind, '--panels', by, '--size', '400x300', '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    places = [(x // 400, y // 300) for x, y, _ in picture.texts['title']]
    columns = int(np.ceil(np.sqrt(len(found))))
    assert places == [(at % columns, at // columns) for at in range(len(found))]
    for text, panel in zip(picture.words('title'), found, strict=True):
        whole = panel['plot']['title'] + ' - made.ms'
        assert text == whole or text.endswith('...') and whole.startswith(text[:-3])
    h5bridge('plot', source, *kind, '--panels', by, '--out', tmp_path / 'a.png')
    with open(tmp_path / 'a.png', 'rb') as file:
        assert decode_png(file.read()).shape == (-(-len(found) // columns) * 320, columns * 480, 3)


def test_panels_with_lines_and_without(made, tmp_path):
    folder, truth = made
    source = folder / 'made.ms'
    document = json.loads(h5bridge('plot', source, 'amp_time', '--panels', 'antenna', '--by', 'field', '--spw', '0', '--json').stdout)
    alone = json.loads(h5bridge('plot', source, 'amp_time', '--antenna', '#1', '--by', 'field', '--spw', '0', '--json').stdout)
    assert document['more'][0]['arrays'] == alone['arrays'] and document['more'][0]['plot']['series'] == alone['plot']['series']
    maps = json.loads(h5bridge('plot', source, 'waterfall', '--panels', 'field', '--json').stdout)
    assert maps['arrays'] == json.loads(h5bridge('plot', source, 'waterfall', '--field', '#0', '--json').stdout)['arrays']
    process = h5bridge('plot', source, 'amp_time', '--panels', 'antenna', '--out', tmp_path / 'a.csv')
    assert 'has one plot' in process.stderr and 'of the 5 that .png and .svg show' in process.stderr
    for words, said in [(('--panels', 'antenna', '--by', 'antenna'), '--by and --panels are both antenna'),
                        (('--panels', 'antenna', '--size', '4000x300'), 'and 8192 on a side can be'),
                        (('--panels', 'antenna', '--time', '..1'), '--panels antenna: the source has none of them, or no row of one is selected')]:
        assert said in h5bridge('plot', source, 'amp_time', *words, code=USAGE).stderr
    # groups without rows have no panel
    few = json.loads(h5bridge('plot', source, 'amp_time', '--panels', 'scan', '--field', '#1', '--json').stdout)
    assert 1 + len(few.get('more', [])) == len(np.unique(truth.scan[(truth.field == 1) & (truth.spw == truth.spw[-1])]))
