"""Pictures of `h5bridge plot`, decoded back: what SVG files, PNG files and terminals show is what python-casacore reads."""
import base64
import json
import os
import re
import subprocess
import warnings
import xml.etree.ElementTree as ET
import zlib

import casacore.tables as ct
import numpy as np
import pytest

from support import DONE, H5BRIDGE, TESTDATA, UNSUPPORTED, USAGE, h5bridge, on_terminal

DEMO = os.path.join(TESTDATA, 'demo', 'demo.ms')
SVG = '{http://www.w3.org/2000/svg}'
NOTHING, FLAGGED = (236, 236, 236), (0xf0, 0xa0, 0x90)


# ---- decoders -------------------------------------------------------------------------------------------------------

def decode_png(data):
    """Pixels of a PNG file with 8 bits, red, green and blue, and without filters: as ours are."""
    assert data[:8] == b'\x89PNG\r\n\x1a\n'
    at, chunks = 8, {}
    while at < len(data):
        size, name = int.from_bytes(data[at:at + 4], 'big'), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + size]
        assert zlib.crc32(name + body) == int.from_bytes(data[at + 8 + size:at + 12 + size], 'big')
        chunks[name] = chunks.get(name, b'') + body
        at += 12 + size
    width, height = (int.from_bytes(chunks[b'IHDR'][i:i + 4], 'big') for i in (0, 4))
    raw = np.frombuffer(zlib.decompress(chunks[b'IDAT']), 'u1').reshape(height, 1 + 3 * width)
    assert not raw[:, 0].any()
    return raw[:, 1:].reshape(height, width, 3)


def seconds(text):
    hours, minutes, rest = text.split(':')
    return 3600 * int(hours) + 60 * int(minutes) + float(rest)


class Picture:
    """An SVG file: values that a reader takes from its marks, lines, colours and names."""

    def __init__(self, path):
        self.root = ET.parse(path).getroot()
        self.texts = {}
        for text in self.root.iter(SVG + 'text'):
            self.texts.setdefault(text.get('class'), []).append((float(text.get('x')), float(text.get('y')), text.text))

    def words(self, kind):
        return [text for _, _, text in self.texts.get(kind, [])]

    def axis(self, kind):
        """The function from positions to values that the marks of an axis give."""
        at = 0 if kind == 'mark-x' else 1
        marks = [(mark[at], mark[2]) for mark in self.texts[kind]]
        value = seconds if ':' in marks[0][1] else float
        places, values = np.array([(place, value(text)) for place, text in marks]).T
        assert len(places) > 1
        slope, start = np.polyfit(places, values, 1)
        np.testing.assert_allclose(slope * places + start, values, atol=abs(slope) * 0.6)
        return lambda position: slope * np.asarray(position) + start

    def lines(self):
        """{name: points} of all lines, in values."""
        x, y, found = self.axis('mark-x'), self.axis('mark-y'), {}
        for line in self.root.iter(SVG + 'polyline'):
            if line.get('class') == 'series':
                points = np.array([point.split(',') for point in line.get('points').split()], float)
                found.setdefault(line.find(SVG + 'title').text, []).append(np.stack([x(points[:, 0]), y(points[:, 1])], 1))
        return {name: np.concatenate(parts) for name, parts in found.items()}

    def runs(self):
        """{name: number of points of each line that is drawn}."""
        found = {}
        for line in self.root.iter(SVG + 'polyline'):
            if line.get('class') == 'series':
                found.setdefault(line.find(SVG + 'title').text, []).append(len(line.get('points').split()))
        return found

    def dots(self):
        """{name: places of its dots, in pixels}."""
        groups = [group for group in self.root.iter(SVG + 'g') if group.get('class') == 'point']
        return {group.find(SVG + 'title').text: np.array([[float(dot.get('cx')), float(dot.get('cy'))] for dot in group.iter(SVG + 'circle')])
                for group in groups}

    def points(self):
        """{name: points of its dots}, in values."""
        x, y = self.axis('mark-x'), self.axis('mark-y')
        return {name: np.stack([x(dots[:, 0]), y(dots[:, 1])], 1) for name, dots in self.dots().items()}

    def images(self):
        """Pixels of the embedded images: the raster, and the bar of its colours from above."""
        found = [image.get('href') for image in self.root.iter(SVG + 'image')]
        return [decode_png(base64.b64decode(link.removeprefix('data:image/png;base64,'))) for link in found]

    def raster(self):
        """Fractions of the scale of colours in each place, the lowest line first; NaN without values, 2 if all is flagged."""
        raster, bar = self.images()
        bar = bar[::-1, 0].astype(int)
        distance = np.abs(raster[:, :, None].astype(int) - bar).sum(-1)
        fraction = distance.argmin(-1) / (len(bar) - 1)
        nothing, flagged = (raster == NOTHING).all(-1) | (raster == 255).all(-1), (raster == FLAGGED).all(-1)
        assert (distance.min(-1)[~nothing & ~flagged] == 0).all()
        fraction[nothing], fraction[flagged] = np.nan, 2
        return fraction[::-1]


def decode_sixel(text):
    """Pixels of a picture in sixel."""
    body = re.fullmatch(r'\x1bP0;1q"1;1;(\d+);(\d+)(.*)\x1b\\\n', text, re.S)
    width, height = int(body[1]), int(body[2])
    pixels, palette, colour, x, y = np.full((height + 6, width, 3), -1.), {}, None, 0, 0
    for token in re.finditer(r'#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)(.)|([?-~])|(\$)|(-)', body[3]):
        if token[1]:
            palette[int(token[1])] = np.array([int(token[at]) for at in (2, 3, 4)]) * 2.55
        elif token[5]:
            colour = palette[int(token[5])]
        elif token[9]:
            x = 0
        elif token[10]:
            x, y = 0, y + 6
        else:
            count, bits = (int(token[6]), ord(token[7]) - 63) if token[6] else (1, ord(token[8]) - 63)
            for bit in range(6):
                if bits >> bit & 1:
                    assert (pixels[y + bit, x:x + count] == -1).all(), 'a pixel is painted twice'
                    pixels[y + bit, x:x + count] = colour
            x += count
            assert x <= width
    assert (pixels[:height] >= 0).all() and (pixels[height:] == -1).all()
    return pixels[:height]


def shown(*words, columns=100, lines=40, **environment):
    """What `h5bridge plot` writes to a terminal of this size."""
    return on_terminal('plot', *words, columns=columns, lines=lines, **environment)


# ---- values ---------------------------------------------------------------------------------------------------------

def numbers(values):
    return np.array(values, dtype=float)


def values(source, *words):
    """The document of `--json`, and its arrays."""
    document = json.loads(h5bridge('plot', source, *words, '--json').stdout)
    return document, {name: numbers(of) for name, of in document['arrays'].items()}


@pytest.fixture(scope='module')
def demo():
    with ct.table(DEMO, ack=False) as t:
        table = {name: t.getcol(name) for name in ('DATA', 'FLAG', 'FLAG_ROW', 'TIME', 'ANTENNA1', 'ANTENNA2', 'UVW')}
    with ct.table(DEMO + '/SPECTRAL_WINDOW', ack=False) as t:
        table['FREQ'] = t.getcol('CHAN_FREQ')[0]
    with ct.table(DEMO + '/POLARIZATION', ack=False) as t:
        corr = list(t.getcol('CORR_TYPE')[0])
    with ct.table(DEMO + '/ANTENNA', ack=False) as t:
        table['NAME'] = t.getcol('NAME')
    table['parallel'] = [number for number, code in enumerate(corr) if code in (5, 8, 9, 12)]
    table['good'] = ~table['FLAG'] & ~table['FLAG_ROW'][:, None, None] & np.isfinite(table['DATA'])
    table['cross'] = table['ANTENNA1'] != table['ANTENNA2']
    return table


def mean(data, good, axis):
    with np.errstate(invalid='ignore'):
        return np.where(good, data, 0).sum(axis) / good.sum(axis)


def by_time(demo, number, rows):
    """Times, and mean amplitude and phase of the vector mean at each of them."""
    times = np.unique(demo['TIME'][rows])
    data, good = demo['DATA'][:, :, number].astype('c16'), demo['good'][:, :, number]
    at = [rows & (demo['TIME'] == time) for time in times]
    amplitude = [mean(np.abs(data[row]), good[row], None) for row in at]
    return times, numbers(amplitude), np.degrees(np.angle([mean(data[row], good[row], None) for row in at]))


# ---- SVG and JSON ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('words, quantity', [(['--x', 'time', '--y', 'amplitude'], 1), (['--y', 'phase'], 2)])
def test_lines(demo, words, quantity, tmp_path):
    h5bridge('plot', DEMO, *words, '--out', tmp_path / 'a.svg', '--size', '1200x900')
    picture = Picture(tmp_path / 'a.svg')
    document, arrays = values(DEMO, *words)
    assert document['target'] is None
    names, height = document['plot']['series'], None
    assert picture.words('name') == names and len(names) == len(demo['parallel'])
    y = picture.axis('mark-y')
    height = abs(float(y(1) - y(0)))
    for number, name in zip(demo['parallel'], names):
        found = by_time(demo, number, demo['cross'])
        np.testing.assert_allclose(arrays['x'], found[0])
        np.testing.assert_allclose(arrays['y'][names.index(name)], found[quantity], rtol=1e-5)
        # phases are points, which no line joins through a wrap
        points = picture.lines()[name] if quantity == 1 else picture.points()[name]
        assert quantity == 1 or picture.runs() == {}
        use = np.isfinite(found[quantity])
        np.testing.assert_allclose(points[:, 0], found[0][use] % 86400, atol=1.)
        np.testing.assert_allclose(points[:, 1], found[quantity][use], atol=height)
    unit = document['plot']['y']['unit']
    assert picture.words('label-y') == [document['plot']['y']['label'] + (' (%s)' % unit if unit else '')]
    assert re.fullmatch(r'time \(UTC, \d{4}-\d\d-\d\d\)', picture.words('label-x')[0])


def test_spectrum(demo, tmp_path):
    h5bridge('plot', DEMO, '--x', 'channel', '--time', '0..', '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    y = picture.axis('mark-y')
    for number, points in zip(demo['parallel'], picture.lines().values()):
        rows = demo['cross']
        amplitude = mean(np.abs(demo['DATA'][rows, :, number]), demo['good'][rows, :, number], 0)
        order = np.argsort(demo['FREQ'])
        np.testing.assert_allclose(points[:, 0], demo['FREQ'][order] / 1e6, atol=np.ptp(demo['FREQ']) / 1e6 / 500)
        np.testing.assert_allclose(points[:, 1], amplitude[order], atol=abs(float(y(1) - y(0))))
    assert picture.words('label-x') == ['frequency (MHz)']


def test_waterfall(demo, tmp_path):
    """Colours are those of the values; places all of whose cells are flagged have a colour of their own."""
    h5bridge('plot', DEMO, '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    document, arrays = values(DEMO, 'waterfall')
    rows, parallel = demo['cross'], demo['parallel']
    times = np.unique(demo['TIME'][rows])
    at = [rows & (demo['TIME'] == time) for time in times]
    wanted = np.array([mean(np.abs(demo['DATA'][row][:, :, parallel]), demo['good'][row][:, :, parallel], (0, 2)) for row in at])
    wanted = wanted[:, np.argsort(demo['FREQ'])]
    np.testing.assert_allclose(arrays['raster'], wanted, rtol=1e-5)
    low, high = document['plot']['z']['low'], document['plot']['z']['high']
    fraction = np.log(wanted / low) / np.log(high / low)
    drawn = picture.raster()
    assert drawn.shape == wanted.shape
    np.testing.assert_allclose(drawn[np.isfinite(wanted)], fraction[np.isfinite(wanted)].clip(0, 1), atol=0.5 / 128 + 1e-6)
    bar = list(picture.root.iter(SVG + 'image'))[1]
    top, height = float(bar.get('y')), float(bar.get('height'))
    marks = [(y, float(text)) for _, y, text in picture.texts['mark-z']]
    assert len(marks) > 2
    for y, value in marks:
        np.testing.assert_allclose((top + height - y) / height, np.log(value / low) / np.log(high / low), atol=0.01)
    assert picture.words('label-z')[0].startswith('amplitude') and picture.words('label-y')[0].startswith('time (UTC')


def test_flags_are_visible(demo, tmp_path):
    flagged = tmp_path / 'flagged.ms'
    subprocess.run(['cp', '-r', DEMO, flagged], check=True)
    with ct.table(str(flagged), readonly=False, ack=False) as t:
        flag = t.getcol('FLAG')
        flag[:, 3] = True
        t.putcol('FLAG', flag)
    h5bridge('plot', flagged, '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    channel = list(np.argsort(demo['FREQ'])).index(3)
    drawn = picture.raster()
    assert (drawn[:, channel] == 2).all() and (np.delete(drawn, channel, 1) <= 1).all()
    assert 'all flagged' in picture.words('key')
    h5bridge('plot', flagged, '--out', tmp_path / 'b.svg', '--flagged', 'include')
    assert (Picture(tmp_path / 'b.svg').raster() <= 1).all()


def test_flags_by_antenna(demo, tmp_path):
    h5bridge('plot', DEMO, '--x', 'antenna', '--y', 'flagged', '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    y = picture.axis('mark-y')
    bars = [bar for bar in picture.root.iter(SVG + 'rect') if bar.get('class') == 'bar']
    flag = demo['FLAG'] | demo['FLAG_ROW'][:, None, None]
    for number, bar in enumerate(bars):
        rows = demo['cross'] & ((demo['ANTENNA1'] == number) | (demo['ANTENNA2'] == number))
        assert abs(y(float(bar.get('y'))) - 100 * flag[rows].mean()) < 0.25
    assert len(bars) == len(demo['NAME']) and picture.words('mark-x') == demo['NAME']


@pytest.mark.parametrize('kind', ['amp_uvdist', 'phase_uvdist', 'uv', 'baselines'])
def test_maps(kind, tmp_path):
    """Rasters whose numbers test_frames.py judges: the colours are those of the numbers."""
    h5bridge('plot', DEMO, kind, '--out', tmp_path / 'a.svg')
    document, arrays = values(DEMO, kind)
    picture, raster, z = Picture(tmp_path / 'a.svg'), arrays['raster'], document['plot']['z']
    if kind != 'baselines':
        # few points are drawn larger, in pixels of the picture
        image = next(picture.root.iter(SVG + 'image'))
        filled = (raster > 0).mean()
        size = 5 if filled < 0.002 else 3 if filled < 0.1 else 0
        across, up = (max(0, int(np.ceil((size * cells / float(image.get(side)) - 1) / 2)))
                      for cells, side in zip(raster.shape[::-1], ('width', 'height')))
        padded = np.pad(raster, ((up, up), (across, across)))
        raster = np.lib.stride_tricks.sliding_window_view(padded, (2 * up + 1, 2 * across + 1)).max((2, 3))
    drawn = picture.raster()
    empty = raster == 0 if kind != 'baselines' else np.isnan(raster)
    with np.errstate(divide='ignore', invalid='ignore'):
        fraction = np.log(raster / z['low']) / np.log(z['high'] / z['low']) if z['high'] > z['low'] else (raster > z['high']) * 1.
    assert drawn.shape == raster.shape and np.array_equal(np.isnan(drawn), empty)
    np.testing.assert_allclose(drawn[~empty], fraction[~empty].clip(0, 1), atol=0.5 / 128 + 1e-6)


def test_axes_are_kinds():
    for words, kind, more in [(['--x', 'uvdist', '--y', 'phase'], 'phase_uvdist', []), (['--x', 'u', '--y', 'v'], 'uv', []),
                              (['--x', 'chan', '--y', 'flagged'], 'flag_channel', []), (['--x', 'antenna', '--y', 'antenna'], 'baselines', []),
                              (['--x', 'freq', '--y', 'imag'], 'spectrum', ['--quantity', 'imag']), (['--y', 'real'], 'amp_time', ['--quantity', 'real'])]:
        assert values(DEMO, *words)[0] == values(DEMO, kind, *more)[0]
    assert 'uvdist and phase' in h5bridge('plot', DEMO, '--x', 'channel', '--y', 'v', code=USAGE).stderr
    h5bridge('plot', DEMO, 'uv', '--x', 'time', code=USAGE)
    h5bridge('plot', DEMO, '--y', 'real', '--quantity', 'imag', code=USAGE)


# ---- lines of groups ------------------------------------------------------------------------------------------------

def test_by_baseline(demo, tmp_path):
    document, arrays = values(DEMO, '--y', 'phase', '--by', 'baseline', '--antenna', '0', '--corr', str(demo['parallel'][0]))
    others = range(1, len(demo['NAME']))
    assert document['plot']['series'] == ['%s-%s' % (demo['NAME'][0], demo['NAME'][other]) for other in others]
    for other, line in zip(others, arrays['y']):
        rows = (demo['ANTENNA1'] == 0) & (demo['ANTENNA2'] == other) | (demo['ANTENNA1'] == other) & (demo['ANTENNA2'] == 0)
        times, _, phase = by_time(demo, demo['parallel'][0], rows)
        np.testing.assert_allclose(line, phase, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(arrays['x'], times)
    h5bridge('plot', DEMO, '--by', 'antenna', '--out', tmp_path / 'a.svg')
    assert len(Picture(tmp_path / 'a.svg').lines()) == len(demo['NAME']) * len(demo['parallel'])


def test_by_spw_and_scan(tmp_path):
    source = os.path.join(TESTDATA, 'twospw', 'twospw.ms')
    document, arrays = values(source, '--x', 'channel', '--time', '0..', '--by', 'spw')
    with ct.table(source + '/SPECTRAL_WINDOW', ack=False) as t:
        frequencies = np.unique(np.concatenate([t.getcell('CHAN_FREQ', row) for row in range(t.nrows())])) / 1e6
    np.testing.assert_allclose(arrays['x'], frequencies)
    alone = values(source, '--x', 'channel', '--time', '0..', '--spw', '0')[1]
    names = document['plot']['series']
    assert {name.split()[1] for name in names} == {'0', '1'}
    np.testing.assert_array_equal(arrays['y'][0][np.isin(arrays['x'], alone['x'])], alone['y'][0])
    with ct.table(source, ack=False) as t:
        scans = np.unique(t.getcol('SCAN_NUMBER')[t.getcol('ANTENNA1') != t.getcol('ANTENNA2')])
    found = values(source, '--by', 'scan', '--spw', '0', '--corr', '0')[0]['plot']['series']
    assert set(found) <= {'scan %d' % scan for scan in scans} and found
    assert 'no lines' in h5bridge('plot', DEMO, 'waterfall', '--by', 'antenna', code=USAGE).stderr


# ---- other tables ---------------------------------------------------------------------------------------------------

def make_calibration(path, times, parameter='CPARAM'):
    """A table of gains as CASA writes them: 4 antennas, 2 polarizations, 2 spectral windows. Returns its values."""
    random = np.random.default_rng(7)
    shape = (len(times), 2, 4)
    gain = (random.normal(1, 0.1, shape + (1, 2)) * np.exp(1j * random.normal(0, 1, shape + (1, 2)))).astype('c8')
    gain = gain if parameter == 'CPARAM' else gain.real.copy()
    flag = random.random(shape + (1, 2)) < 0.2
    kind = 0j if parameter == 'CPARAM' else 0.
    desc = ct.maketabdesc([
        ct.makescacoldesc('TIME', 0.), ct.makescacoldesc('FIELD_ID', 0), ct.makescacoldesc('SPECTRAL_WINDOW_ID', 0),
        ct.makescacoldesc('ANTENNA1', 0), ct.makescacoldesc('ANTENNA2', 0), ct.makescacoldesc('SCAN_NUMBER', 0),
        ct.makearrcoldesc(parameter, kind, ndim=2, valuetype='complex' if parameter == 'CPARAM' else 'float'),
        ct.makearrcoldesc('FLAG', False, ndim=2)])
    with ct.table(str(path), desc, nrow=np.prod(shape), ack=False) as t:
        time, spw, antenna = (grid.ravel() for grid in np.meshgrid(times, range(2), range(4), indexing='ij'))
        t.putcol('TIME', time)
        t.putcol('SPECTRAL_WINDOW_ID', spw.astype('i4'))
        t.putcol('ANTENNA1', antenna.astype('i4'))
        # the reference antenna
        t.putcol('ANTENNA2', np.full(len(time), 2, 'i4'))
        t.putcol(parameter, gain.reshape(-1, 1, 2))
        t.putcol('FLAG', flag.reshape(-1, 1, 2))
        t.putinfo({'type': 'Calibration', 'subType': 'G Jones', 'readme': ''})
        for name, columns in [('ANTENNA', {'NAME': ['ea0%d' % number for number in range(4)]}),
                              ('SPECTRAL_WINDOW', {'CHAN_FREQ': np.array([[1e9], [2e9]])})]:
            parts = [ct.makescacoldesc(column, '') if isinstance(of, list) else ct.makearrcoldesc(column, 0., ndim=1)
                     for column, of in columns.items()]
            with ct.table('%s/%s' % (path, name), ct.maketabdesc(parts), nrow=len(next(iter(columns.values()))), ack=False) as s:
                for column, of in columns.items():
                    s.putcol(column, of)
            t.putkeyword(name, 'Table: %s/%s' % (path, name))
    return gain[:, 1, :, 0].astype('c16'), flag[:, 1, :, 0]


def test_calibration_tables(tmp_path):
    """Without a kind: amplitude and phase by antenna, of the reference antenna its own rows only."""
    times = 59000 * 86400. + 60. * np.arange(12)
    gain, flag = make_calibration(tmp_path / 'a.cal', times)
    document, arrays = values(tmp_path / 'a.cal')
    more = document['more'][0]
    assert document['plot']['series'] == more['plot']['series'] == ['ea0%d %d' % (antenna, corr) for antenna in range(4) for corr in range(2)]
    for found, part in [(arrays['y'], np.abs), (numbers(more['arrays']['y']), lambda v: np.degrees(np.angle(v)))]:
        wanted = np.where(flag, np.nan, part(gain)).transpose(1, 2, 0).reshape(8, -1)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(arrays['x'], times)
    h5bridge('plot', tmp_path / 'a.cal', '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    assert picture.words('title') == ['Amplitude against time, by antenna - a.cal', 'Phase against time, by antenna - a.cal']
    h5bridge('to-hdf5', tmp_path / 'a.cal', tmp_path / 'a.h5', '--quiet')
    again = values(tmp_path / 'a.h5')[0]
    assert again['arrays'] == document['arrays']
    gain, flag = make_calibration(tmp_path / 'b.cal', times[:1], 'FPARAM')
    document, arrays = values(tmp_path / 'b.cal')
    assert document['plot']['kind'] == 'spectrum' and 'more' not in document
    np.testing.assert_allclose(arrays['y'][:, 0], np.where(flag, np.nan, gain.real).reshape(8), rtol=1e-5)


def test_images(tmp_path):
    """A plane of an image of casacore, its coordinates, and means of the pixels of a larger one."""
    images = pytest.importorskip('casacore.images')
    random = np.random.default_rng(3)
    cube = random.normal(size=(3, 2, 40, 60)).astype('f4')
    image = images.image(str(tmp_path / 'a.image'), values=cube)
    coordinates = image.coordinates()
    del image
    document, arrays = values(tmp_path / 'a.image', '--plane', '1,2')
    np.testing.assert_array_equal(arrays['raster'].astype('f4'), cube[2, 1])
    plot = document['plot']
    assert plot['kind'] == 'image' and [plot[axis]['label'] for axis in 'xy'] == ['right ascension offset', 'declination offset']
    degrees = [{'rad': np.degrees(1), 'deg': 1, "'": 1 / 60, '"': 1 / 3600}[unit] for unit in coordinates.dict()['direction0']['units']]
    shown = {'deg': 1, 'arcmin': 60, 'arcsec': 3600}[plot['x']['unit']]
    increment = coordinates['direction'].get_increment()[::-1] * np.array(degrees) * shown
    pixel = coordinates['direction'].get_referencepixel()[::-1]
    for axis, at, count in [('x', 0, 60), ('y', 1, 40)]:
        np.testing.assert_allclose(arrays[axis], (np.arange(count + 1) - 0.5 - pixel[at]) * increment[at], rtol=1e-6)
    h5bridge('plot', tmp_path / 'a.image', '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    first = cube[0, 0]
    low, high = np.quantile(first, [0.005, 0.995], method='nearest')
    np.testing.assert_allclose(picture.raster(), ((first - low) / (high - low)).clip(0, 1), atol=0.03)
    across = picture.axis('mark-x')
    assert (across(1000.) - across(0.)) * increment[0] > 0, 'the right ascension grows in the direction of casacore'
    h5bridge('to-hdf5', tmp_path / 'a.image', tmp_path / 'a.h5', '--quiet')
    np.testing.assert_array_equal(values(tmp_path / 'a.h5', 'image', '--plane', '1,2')[1]['raster'], arrays['raster'])
    assert '2 planes' in h5bridge('plot', tmp_path / 'a.image', '--plane', '2', code=USAGE).stderr
    h5bridge('plot', DEMO, 'image', code=UNSUPPORTED)
    large = random.normal(size=(50, 2500)).astype('f4')
    large[7, 9] = np.nan
    images.image(str(tmp_path / 'b.image'), values=large)
    found = values(tmp_path / 'b.image')[1]['raster']
    padded = np.full((51, 2502), np.nan)
    padded[:50, :2500] = large
    np.testing.assert_allclose(found, np.nanmean(padded.reshape(17, 3, 834, 3), (1, 3)), rtol=1e-4, atol=1e-6)


def test_antennas(tmp_path):
    """Metres east and north, as casacore's measures give the directions of a place."""
    measures = pytest.importorskip('casacore.measures')
    dm = measures.measures()
    site = dm.position('WGS84', '-107.6deg', '34.1deg', '2100m')
    itrf = dm.measure(site, 'ITRF')
    longitude, latitude, radius = (itrf[part]['value'] for part in ('m0', 'm1', 'm2'))
    centre = radius * np.array([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])
    # geodetic directions
    lon, lat = np.radians([-107.6, 34.1])
    east = np.array([-np.sin(lon), np.cos(lon), 0])
    north = np.array([-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)])
    offsets = np.array([[-900., 100], [300, -500], [600, 400]])
    subprocess.run(['cp', '-r', DEMO, tmp_path / 'a.ms'], check=True)
    with ct.table(str(tmp_path / 'a.ms/ANTENNA'), readonly=False, ack=False) as t:
        count = t.nrows()
        chosen = np.resize(offsets, (count, 2))
        chosen = chosen - chosen.mean(0)
        t.putcol('POSITION', centre + chosen[:, :1] * east + chosen[:, 1:] * north)
    document, arrays = values(tmp_path / 'a.ms', 'antennas')
    np.testing.assert_allclose(np.stack([arrays['x'], np.diagonal(arrays['y'])], 1), chosen, atol=0.05)
    h5bridge('plot', tmp_path / 'a.ms', 'antennas', '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    x, y = picture.axis('mark-x'), picture.axis('mark-y')
    places = np.concatenate([np.stack([x(dots[:, 0]), y(dots[:, 1])], 1) for dots in picture.dots().values()])
    np.testing.assert_allclose(places, chosen, atol=5)
    assert list(picture.dots()) == document['plot']['series']
    assert [picture.words('label-' + axis) for axis in 'xy'] == [['east (m)'], ['north (m)']]


def test_antennas_without_a_position(tmp_path):
    """In an array on the Earth antennas at its centre are left out, with a note; no name covers another one or a place."""
    subprocess.run(['cp', '-r', DEMO, tmp_path / 'a.ms'], check=True)
    random = np.random.default_rng(5)
    centre = np.array([-1601185.4, -5041977.5, 3554875.9])
    with ct.table(str(tmp_path / 'a.ms/ANTENNA'), readonly=False, ack=False) as t:
        t.addrows(60 - t.nrows())
        positions = centre + random.normal(0, 300, (60, 3)) * np.where(np.arange(60) < 30, 1, 0.1)[:, None]
        positions[[3, 41]] = 0
        names = ['EVLA%02d' % number for number in range(60)]
        t.putcol('POSITION', positions)
        t.putcol('NAME', names)
    document, arrays = values(tmp_path / 'a.ms', 'antennas')
    kept = np.delete(np.arange(60), [3, 41])
    assert document['plot']['series'] == [names[number] for number in kept]
    assert '58 antennas' in document['plot']['note'] and '2 at the origin' in document['plot']['note']
    offsets = positions[kept] - positions[kept].mean(0)
    east = offsets[:, :2] @ [-np.sin(np.arctan2(centre[1], centre[0])), np.cos(np.arctan2(centre[1], centre[0]))]
    np.testing.assert_allclose(arrays['x'], east, atol=1)
    np.testing.assert_allclose(arrays['x'].mean(), 0, atol=0.1)
    for size in ('640x480', '1400x1000'):
        h5bridge('plot', tmp_path / 'a.ms', 'antennas', '--out', tmp_path / 'a.svg', '--overwrite', '--size', size)
        picture = Picture(tmp_path / 'a.svg')
        places = np.concatenate(list(picture.dots().values()))
        assert places.shape == (58, 2)
        boxes = np.array([(x, x + 7 * len(name), y - 6, y + 6) for x, y, name in picture.texts['name']])
        assert 10 < len(boxes) <= 58
        for number, (left, right, top, bottom) in enumerate(boxes):
            x, y = places.T
            assert not ((x > left) & (x < right) & (y > top) & (y < bottom)).any(), 'a name covers a place'
            others = np.delete(boxes, number, 0)
            assert not ((others[:, 0] < right) & (others[:, 1] > left) & (others[:, 2] < bottom) & (others[:, 3] > top)).any()


def test_lines_end_at_gaps_fields_and_scans(tmp_path):
    """Lines join the points of one scan and field without a gap, as numpy finds them; also those of --by."""
    subprocess.run(['cp', '-r', DEMO, tmp_path / 'a.ms'], check=True)
    with ct.table(str(tmp_path / 'a.ms'), readonly=False, ack=False) as t:
        times, number = np.unique(t.getcol('TIME'), return_inverse=True)
        count = len(times)
        scan, field = 1 + (number >= count // 4), (number >= count // 2).astype('i4')
        t.putcol('SCAN_NUMBER', scan.astype('i4'))
        t.putcol('FIELD_ID', field)
        t.putcol('TIME', times[0] + 10. * number + 1000. * (number >= 3 * count // 4))
    wanted = np.diff([0, count // 4, count // 2, 3 * count // 4, count])
    h5bridge('plot', tmp_path / 'a.ms', 'amp_time', '--out', tmp_path / 'a.svg')
    for runs in Picture(tmp_path / 'a.svg').runs().values():
        assert runs == [run for run in wanted if run > 1]
    h5bridge('plot', tmp_path / 'a.ms', 'amp_time', '--by', 'antenna', '--corr', '0', '--out', tmp_path / 'b.svg')
    found = Picture(tmp_path / 'b.svg').runs()
    assert len(found) > 2 and all(runs == [run for run in wanted if run > 1] for runs in found.values())
    h5bridge('plot', tmp_path / 'a.ms', 'amp_time', '--by', 'scan', '--corr', '0', '--out', tmp_path / 'c.svg')
    assert Picture(tmp_path / 'c.svg').runs() == {'scan 1': [wanted[0]], 'scan 2': [run for run in wanted[1:] if run > 1]}


@pytest.mark.parametrize('size', ['320x240', '960x640', '2400x1800'])
@pytest.mark.parametrize('kind', ['uv', 'amp_uvdist'])
def test_points_of_maps_are_seen(kind, size, tmp_path):
    """Each cell with points is drawn, at least three pixels wide, whatever the size of the picture."""
    source = tmp_path / 'a.ms'
    subprocess.run(['cp', '-r', DEMO, source], check=True)
    with ct.table(str(source), readonly=False, ack=False) as t:
        t.putcol('UVW', np.random.default_rng(2).normal(0, 900, (t.nrows(), 3)))
    words = ['--time', '..%r' % (ct.table(str(source), ack=False).getcell('TIME', 0) + 1e-3)]
    h5bridge('plot', source, kind, *words, '--chan', '0..1', '--out', tmp_path / 'a.svg', '--size', size)
    h5bridge('plot', source, kind, *words, '--chan', '0..1', '--out', tmp_path / 'a.png', '--size', size)
    raster = values(source, kind, *words, '--chan', '0..1')[1]['raster']
    assert 0 < (raster > 0).mean() < 0.1
    image = next(Picture(tmp_path / 'a.svg').root.iter(SVG + 'image'))
    left, top, width, height = (float(image.get(name)) for name in ('x', 'y', 'width', 'height'))
    pixels = decode_png((tmp_path / 'a.png').read_bytes())
    ink = (pixels != 255).any(-1)
    area = ink[int(round(top)):int(round(top + height)), int(round(left)):int(round(left + width))]
    for line, column in np.argwhere(raster > 0):
        y, x = (1 - (line + 0.5) / raster.shape[0]) * height, (column + 0.5) / raster.shape[1] * width
        for across, around in [(area[min(int(y), area.shape[0] - 1)], x), (area[:, min(int(x), area.shape[1] - 1)], y)]:
            # the run of painted pixels there
            start = end = min(int(around), len(across) - 1)
            assert across[start], 'a cell with points is not drawn'
            while start > 0 and across[start - 1]:
                start -= 1
            while end + 1 < len(across) and across[end + 1]:
                end += 1
            assert end - start + 1 >= 3 or start == 0 or end == len(across) - 1


def test_amplitudes_against_uv_distance_are_labelled_with_amplitudes(tmp_path):
    """Marks of a logarithmic axis: places are those of the logarithms of their numbers."""
    h5bridge('plot', DEMO, 'amp_uvdist', '--out', tmp_path / 'a.svg')
    document, arrays = values(DEMO, 'amp_uvdist')
    picture = Picture(tmp_path / 'a.svg')
    assert picture.words('label-y')[0].startswith('amplitude')
    image = next(picture.root.iter(SVG + 'image'))
    top, height = float(image.get('y')), float(image.get('height'))
    low, high = arrays['y'][0], arrays['y'][-1]
    marks = [(y, float(text)) for _, y, text in picture.texts['mark-y']]
    assert len(marks) > 2
    for y, value in marks:
        np.testing.assert_allclose((top + height - y) / height, np.log(value / low) / np.log(high / low), atol=0.01)


# ---- terminals ------------------------------------------------------------------------------------------------------

def test_kitty_and_iterm2_get_the_png(tmp_path):
    h5bridge('plot', DEMO, '--out', tmp_path / 'a.png')
    png = (tmp_path / 'a.png').read_bytes()
    kitty = h5bridge('plot', DEMO, '--show=kitty').stdout
    pieces = re.findall(r'\x1b_G([^;]*);([^\x1b]*)\x1b\\', kitty)
    assert ''.join('\x1b_G%s;%s\x1b\\' % piece for piece in pieces) + '\n' == kitty
    assert base64.b64decode(''.join(data for _, data in pieces)) == png
    assert pieces[0][0] == 'f=100,a=T,q=2,m=1' and [keys for keys, _ in pieces[1:]] == ['m=1'] * (len(pieces) - 2) + ['m=0']
    assert all(len(data) <= 4096 for _, data in pieces)
    iterm = re.fullmatch(r'\x1b]1337;File=inline=1;size=(\d+);preserveAspectRatio=1:([^\x07]*)\x07\n', h5bridge('plot', DEMO, '--show=iterm2').stdout)
    assert base64.b64decode(iterm[2]) == png and int(iterm[1]) == len(png)


@pytest.mark.parametrize('kind', ['waterfall', 'amp_time', 'uv'])
def test_sixel_has_the_pixels(kind, tmp_path):
    h5bridge('plot', DEMO, kind, '--out', tmp_path / 'a.png', '--size', '640x480')
    pixels = decode_png((tmp_path / 'a.png').read_bytes())
    found = decode_sixel(h5bridge('plot', DEMO, kind, '--show=sixel', '--size', '640x480').stdout)
    assert found.shape == pixels.shape
    # sixel has percents
    assert np.abs(found - pixels).max() <= 1.3


def test_unicode(demo, tmp_path):
    """A raster in half blocks: each has the colours of its two places. Lines in Braille: each dot is near a value."""
    os.chdir(tmp_path)
    text = shown(DEMO, 'waterfall', columns=80, lines=30, TERM='xterm-256color')
    assert os.listdir(tmp_path) == [], 'no file is written'
    cells = [re.findall(r'\x1b\[38;2;(\d+);(\d+);(\d+)m\x1b\[48;2;(\d+);(\d+);(\d+)m▀', line) for line in text.split('\n')]
    cells = np.array([line for line in cells if line], int)
    assert cells.shape == (23, 68, 6)
    halves = cells.reshape(23, 68, 2, 3).transpose(0, 2, 1, 3).reshape(46, 68, 3)[::-1]
    h5bridge('plot', DEMO, 'waterfall', '--out', tmp_path / 'a.svg')
    raster = Picture(tmp_path / 'a.svg').images()[0][::-1]
    lines, columns = (np.arange(count) * size // count for count, size in zip(halves.shape[:2], raster.shape[:2]))
    assert np.array_equal(halves, raster[lines][:, columns])
    text = shown(DEMO, 'amp_time', '--corr', demo['parallel'][0], columns=100, lines=40, TERM='xterm', NO_COLOR='1')
    assert '\x1b' not in text
    times, amplitude, _ = by_time(demo, demo['parallel'][0], demo['cross'])
    rows = [line.split('│', 1)[1].ljust(88) for line in text.split('\n') if '│' in line]
    dots = [(4 * row + line, 2 * column + side) for row, cells in enumerate(rows) for column, cell in enumerate(cells) if cell > '⠀'
            for side, bits in enumerate([(1, 2, 4, 64), (8, 16, 32, 128)]) for line, bit in enumerate(bits) if ord(cell) & bit]
    low, high = amplitude.min(), amplitude.max()
    low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    start, end = times[0] - 0.01 * np.ptp(times), times[-1] + 0.01 * np.ptp(times)
    place = [(round((1 - (value - low) / (high - low)) * (4 * len(rows) - 1)), round((time - start) / (end - start) * 175))
             for time, value in zip(times, amplitude)]
    near = [min(abs(a - c) + abs(b - d) for c, d in dots) for a, b in place]
    assert max(near) <= 1, near


def test_terminals_get_what_they_can(tmp_path):
    os.chdir(tmp_path)
    for begin, environment in [('\x1b_Gf=100', {'TERM': 'xterm-kitty'}), ('\x1b]1337;File=', {'TERM': 'xterm', 'TERM_PROGRAM': 'iTerm.app'}),
                               ('\x1bP0;1q', {'TERM': 'foot'}), ('Amplitude', {'TERM': 'xterm'}), ('Amplitude', {'TERM': 'tmux', 'KITTY_WINDOW_ID': '1'})]:
        assert shown(DEMO, **environment).startswith(begin)
    assert os.listdir(tmp_path) == []
    assert shown(DEMO, '--out', 'a.png', '--quiet', TERM='xterm') == '' and os.listdir(tmp_path) == ['a.png']
    assert shown(DEMO, '--quiet', TERM='xterm').startswith('Amplitude') and os.listdir(tmp_path) == ['a.png']


def test_no_file_is_written_without_being_named(tmp_path):
    """In a pipe KIND.png is written and named; --quiet would hide the name."""
    def piped(*words, code=DONE):
        process = subprocess.run([H5BRIDGE, 'plot', DEMO, *words], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert process.returncode == code, process.stderr
        return process
    assert '--out FILE' in piped('--quiet', code=USAGE).stderr and os.listdir(tmp_path) == []
    assert piped('--quiet', '--show=unicode').stdout.startswith('Amplitude') and os.listdir(tmp_path) == []
    assert piped('--quiet', '--out', 'a.png').stderr == '' and os.listdir(tmp_path) == ['a.png']
    assert piped().stderr.startswith('waterfall.png: ') and sorted(os.listdir(tmp_path)) == ['a.png', 'waterfall.png']


@pytest.mark.parametrize('form', ['directory', 'native'])
def test_masks_of_images(form, tmp_path):
    """The default mask leaves out pixels, also of the means of larger images; others do not."""
    images = pytest.importorskip('casacore.images')
    random = np.random.default_rng(4)

    def source(name, values, mask):
        image = images.image(str(tmp_path / name), values=values, maskname='mask0')
        image.put(np.ma.masked_array(values, mask))
        del image
        if form == 'directory':
            return tmp_path / name
        h5bridge('to-hdf5', tmp_path / name, tmp_path / (name + '.h5'), '--quiet')
        return tmp_path / (name + '.h5')
    cube, mask = random.normal(size=(3, 40, 60)).astype('f4'), random.random((3, 40, 60)) < 0.3
    a = source('a.image', cube, mask)
    for plane in range(3):
        document, arrays = values(a, '--plane', str(plane))
        np.testing.assert_array_equal(arrays['raster'].astype('f4'), np.where(mask[plane], np.nan, cube[plane]))
        assert 'without what mask0 masks' in document['plot']['note']
    large, mask = random.normal(size=(50, 2500)).astype('f4'), random.random((50, 2500)) < 0.5
    found = values(source('b.image', large, mask))[1]['raster']
    padded = np.full((51, 2502), np.nan)
    padded[:50, :2500] = np.where(mask, np.nan, large)
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'Mean of empty slice')
        np.testing.assert_allclose(found, np.nanmean(padded.reshape(17, 3, 834, 3), (1, 3)), rtol=1e-4, atol=1e-6)
    if form == 'directory':
        # a mask that is not the default, and one of another shape
        with ct.table(str(a), readonly=False, ack=False) as t:
            t.putkeyword('Image_defaultmask', '')
        assert not np.isnan(values(a)[1]['raster']).any()
        with ct.table(str(a), readonly=False, ack=False) as t:
            t.putkeyword('Image_defaultmask', 'mask0')
        with ct.table(str(a / 'mask0'), readonly=False, ack=False) as t:
            t.putcell(t.colnames()[0], 0, np.ones((2, 40, 60), bool))
        document, arrays = values(a)
        assert 'mask0 is not applied' in document['plot']['note'] and not np.isnan(arrays['raster']).any()


def test_names_do_not_change_the_terminal(tmp_path):
    subprocess.run(['cp', '-r', DEMO, tmp_path / 'a.ms'], check=True)
    with ct.table(str(tmp_path / 'a.ms/ANTENNA'), readonly=False, ack=False) as t:
        t.putcell('NAME', 0, '<b>&\x1b[31m')
    h5bridge('plot', tmp_path / 'a.ms', '--by', 'antenna', '--out', tmp_path / 'a.svg')
    assert any(name.startswith('<b>&?[31m') for name in Picture(tmp_path / 'a.svg').words('name'))
    text = shown(tmp_path / 'a.ms', '--by', 'baseline', '--antenna', '0', '--corr', '0', TERM='xterm', NO_COLOR='1')
    assert '\x1b' not in text and '<b>&?[31m' in text


def test_waterfalls_show_gaps(tmp_path):
    """The axis is one of time: lines are as high as their steps, and a gap is as long as it was."""
    subprocess.run(['cp', '-r', DEMO, tmp_path / 'a.ms'], check=True)
    with ct.table(str(tmp_path / 'a.ms'), readonly=False, ack=False) as t:
        times, number = np.unique(t.getcol('TIME'), return_inverse=True)
        count = len(times)
        new = times[0] + 10. * np.arange(count) + 200. * (np.arange(count) >= count // 2)
        t.putcol('TIME', new[number])
        t.putcol('FLAG', np.zeros_like(t.getcol('FLAG')))
        t.putcol('FLAG_ROW', np.zeros(t.nrows(), bool))
    h5bridge('plot', tmp_path / 'a.ms', 'waterfall', '--out', tmp_path / 'a.svg')
    h5bridge('plot', tmp_path / 'a.ms', 'waterfall', '--out', tmp_path / 'a.png')
    picture = Picture(tmp_path / 'a.svg')
    image = next(picture.root.iter(SVG + 'image'))
    left, top, width, height = (float(image.get(name)) for name in ('x', 'y', 'width', 'height'))
    pixels = decode_png((tmp_path / 'a.png').read_bytes())[int(top):int(top + height), int(left + width / 2)][::-1]
    empty = (pixels == NOTHING).all(-1)
    end = new[-1] + 10
    wanted = [(new[count // 2 - 1] + 10 - new[0]) / (end - new[0]), (new[count // 2] - new[0]) / (end - new[0])]
    found = np.flatnonzero(empty)[[0, -1]] / len(empty)
    np.testing.assert_allclose(found, wanted, atol=0.01)
    assert empty.sum() == np.flatnonzero(empty)[-1] - np.flatnonzero(empty)[0] + 1, 'one gap'
    # the marks say when
    for y, text in [(y, text) for _, y, text in picture.texts['mark-y']]:
        np.testing.assert_allclose((seconds(text) - new[0] % 86400) / (end - new[0]), (top + height - y) / height, atol=0.01)


def test_pictures_say_what_they_show(tmp_path):
    """Title and note have the file, the field and the window; nothing flagged, no points and no rows are said in words."""
    subprocess.run(['cp', '-r', DEMO, tmp_path / 'mine.ms'], check=True)
    with ct.table(str(tmp_path / 'mine.ms'), readonly=False, ack=False) as t:
        t.putcol('FLAG', np.zeros_like(t.getcol('FLAG')))
        t.putcol('FLAG_ROW', np.zeros(t.nrows(), bool))
    with ct.table(str(tmp_path / 'mine.ms/FIELD'), ack=False) as t:
        field = t.getcell('NAME', 0)
    h5bridge('plot', tmp_path / 'mine.ms', 'flag_time', '--field', '#0', '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    assert picture.words('title') == ['Flagged, by time - mine.ms']
    note = picture.words('note')[0]
    assert 'nothing flagged' in note and 'field %s' % field in note and 'spectral window' in note
    with ct.table(str(tmp_path / 'mine.ms'), readonly=False, ack=False) as t:
        t.putcol('DATA', 0 * t.getcol('DATA'))
    for kind, is_empty in [('amp_uvdist', True), ('phase_uvdist', True), ('uv', False), ('waterfall', False)]:
        h5bridge('plot', tmp_path / 'mine.ms', kind, '--field', '#0', '--out', tmp_path / 'a.svg', '--overwrite')
        assert ('no points (flagged, 0 or no' in Picture(tmp_path / 'a.svg').words('note')[0]) == is_empty, kind
    make_calibration(tmp_path / 'a.cal', 59000 * 86400. + np.arange(3))
    with ct.table(str(tmp_path / 'a.cal'), readonly=False, ack=False) as t:
        t.removerows(list(range(t.nrows())))
    h5bridge('plot', tmp_path / 'a.cal', '--out', tmp_path / 'b.svg')
    assert 'the table has no rows' in Picture(tmp_path / 'b.svg').words('note')[0]


def test_phase_noise_is_zero(tmp_path):
    """Phases of 1e-14 degrees are one line, and no mark has digits without end."""
    make_calibration(tmp_path / 'a.cal', 59000 * 86400. + 60. * np.arange(12))
    with ct.table(str(tmp_path / 'a.cal'), readonly=False, ack=False) as t:
        gain = np.abs(t.getcol('CPARAM')).astype('c8')
        t.putcol('CPARAM', gain * (1 + 1e-16j * np.random.default_rng(1).normal(size=gain.shape)).astype('c8'))
    h5bridge('plot', tmp_path / 'a.cal', '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    assert all(len(text) <= 9 for text in picture.words('mark-y')), picture.words('mark-y')
    heights = np.concatenate([dots[:, 1] for dots in picture.dots().values()])
    phases = heights[heights > 320]    # the lower panel
    assert np.ptp(phases) < 1, 'phases that are zero but for noise lie on a line'


def test_beam(tmp_path):
    """The ellipse of the beam has its size on the axes, and its angle from north to east."""
    images = pytest.importorskip('casacore.images')
    images.image(str(tmp_path / 'a.image'), values=np.zeros((64, 64), 'f4') + np.arange(64, dtype='f4'))
    words = {'major': {'value': 5., 'unit': 'arcmin'}, 'minor': {'value': 2., 'unit': 'arcmin'}, 'positionangle': {'value': 30., 'unit': 'deg'}}
    with ct.table(str(tmp_path / 'a.image'), readonly=False, ack=False) as t:
        t.putkeyword('imageinfo', {'imagetype': 'Intensity', 'objectname': '', 'restoringbeam': words})
    document, arrays = values(tmp_path / 'a.image')
    each = {'arcsec': 1 / 60, 'arcmin': 1, 'deg': 60}[document['plot']['x']['unit']]
    np.testing.assert_allclose(arrays['beam'], [5 / each, 2 / each, 30])
    assert 'beam 300 x 120 arcsec, 30 deg' in document['plot']['note']
    h5bridge('plot', tmp_path / 'a.image', '--out', tmp_path / 'a.svg')
    picture = Picture(tmp_path / 'a.svg')
    x, y = picture.axis('mark-x'), picture.axis('mark-y')
    beam = [line for line in picture.root.iter(SVG + 'polyline') if line.get('class') == 'beam'][0]
    points = np.array([point.split(',') for point in beam.get('points').split()], float)
    offsets = np.stack([x(points[:, 0]), y(points[:, 1])], 1)
    offsets -= (offsets.max(0) + offsets.min(0)) / 2
    length = np.hypot(*offsets.T)
    np.testing.assert_allclose([2 * length.max() * each, 2 * length.min() * each], [5, 2], rtol=0.05)
    east, north = offsets[length.argmax()]
    np.testing.assert_allclose(np.degrees(np.arctan2(east, north)) % 180, 30, atol=4)
