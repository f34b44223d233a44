"""The page of `h5bridge serve` in a real browser: what it shows, compared with numpy; never with stored pictures.

Needs a Chromium of the system (Debian: chromium-headless-shell). Pictures of the pages are kept for a person to look at, in the
folder H5BRIDGE_PICTURES or in pytest's own.
"""
import contextlib
import io
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support

playwright = pytest.importorskip('playwright.sync_api')

BROWSERS = ('chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome')
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason='no browser: install one of ' + ', '.join(BROWSERS))

WRITER = os.path.join(support.ROOT, 'scripts', 'demo.d', 'growing_ms.py')
ANTENNAS, CHANNELS, INTEGRATIONS = 7, 48, 80
KINDS = support.PLOTS
RASTERS = ('waterfall', 'amp_uvdist', 'phase_uvdist', 'uv', 'baselines')
SECONDS = 60    # a busy machine is slow at drawing


# ---- servers and pages ----------------------------------------------------------------------------------------------

class Server:
    """`h5bridge serve`, until the block ends."""

    def __init__(self, *words):
        command = [support.H5BRIDGE, 'serve', *map(str, words), '--port', '0', '--json']
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, 'h5bridge serve ended with status %s' % self.process.wait()
        self.url = json.loads(line)['url']
        parts = urllib.parse.urlsplit(self.url)
        token = urllib.parse.parse_qs(parts.query).get('token', [''])[0]
        self.headers = {'Authorization': 'Bearer ' + token} if token else {}
        self.root = urllib.parse.urlunsplit(parts._replace(query='', fragment=''))

    def get(self, address):
        request = urllib.request.Request(urllib.parse.urljoin(self.root, address), headers=self.headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.read()

    def frame(self, kind, file, **parameters):
        """The words of a plot, and its arrays; after all rows are read."""
        address = 'live/plot/%s?%s' % (kind, urllib.parse.urlencode({'file': file, **parameters}))
        end = time.time() + SECONDS
        while True:
            plot, arrays = decode(self.get(address))
            if plot['complete']:
                return plot, arrays
            assert time.time() < end, 'not all rows of %s are used after %d s' % (kind, SECONDS)
            time.sleep(0.2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def decode(document):
    """A frame without the library safetensors and without the page's decoder."""
    length, = struct.unpack('<Q', document[:8])
    header = json.loads(document[8:8 + length])
    plot = json.loads(header.pop('__metadata__')['plot'])
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry['data_offsets'])
        kind = {'F32': '<f4', 'F64': '<f8', 'U32': '<u4', 'U8': '|u1'}[entry['dtype']]
        arrays[name] = np.frombuffer(document[begin:end], kind).reshape(entry['shape'])
    return plot, arrays


@pytest.fixture(scope='module')
def chromium():
    quiet = ['--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update', '--disable-sync',
             '--no-first-run', '--disable-quic']
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=quiet)
        yield browser
        browser.close()


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder with two MeasurementSets as native files, and an HDF5 file of another kind."""
    folder = tmp_path_factory.mktemp('served')
    ms = tmp_path_factory.mktemp('made') / 'made.ms'
    subprocess.run([sys.executable, WRITER, str(ms), *map(str, (INTEGRATIONS, ANTENNAS, CHANNELS, 0))], check=True)
    support.h5bridge('to-hdf5', ms, folder / 'my.h5')
    with h5py.File(folder / 'other.h5', 'w') as file:
        file['numbers'] = np.arange(12.).reshape(3, 4) ** 2 / 7
    shutil.copy(folder / 'my.h5', folder / 'second.h5')
    with h5py.File(folder / 'second.h5', 'r+') as file:
        file['MAIN/DATA'][...] = 2 * file['MAIN/DATA'][...]
    return folder


@pytest.fixture(scope='module')
def server(folder):
    with Server(folder) as server:
        yield server


@contextlib.contextmanager
def opened(chromium, server, address, width=1280, height=900, **more):
    """A page; fails afterwards if it wrote errors to the console."""
    context = chromium.new_context(viewport={'width': width, 'height': height}, accept_downloads=True, **more)
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    errors = []
    page.on('pageerror', lambda error: errors.append(str(error)))
    page.on('console', lambda message: errors.append(message.text) if message.type == 'error' else None)
    if server.url != server.root:
        page.request.get(server.url)    # the token becomes a cookie
    page.goto(urllib.parse.urljoin(server.root, address))
    try:
        yield page
        assert errors == []
    finally:
        context.close()


def keep(page, name, tmp_path, **more):
    """Keeps a picture of the page for a person."""
    folder = os.environ.get('H5BRIDGE_PICTURES') or str(tmp_path)
    os.makedirs(folder, exist_ok=True)
    page.screenshot(path=os.path.join(folder, name + '.png'), **more)


def wait(page, condition, argument=None):
    """Waits until the JavaScript function `condition` gives true."""
    page.wait_for_function(condition, arg=argument, timeout=SECONDS * 1000)


READY = '''kinds => kinds.every(kind => {
    const plot = document.getElementById(kind);
    return plot && plot.dataset.state === 'ready' && plot.dataset.used === plot.dataset.rows;
})'''


def wait_for_plots(page, kinds=KINDS):
    """Scrolls every plot into view, since those out of sight are not asked for, and waits until all rows are in."""
    for kind in kinds:
        page.locator('#' + kind).scroll_into_view_if_needed()
        wait(page, READY, [kind])
    page.evaluate('scrollTo(0, 0)')


def plots(file, **state):
    return 'ms.html?' + urllib.parse.urlencode({'file': file, **state})


def query(page):
    return urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)


def colours(locator):
    import matplotlib.image
    pixels = matplotlib.image.imread(io.BytesIO(locator.screenshot()))[:, :, :3]
    return len(np.unique((pixels * 255).astype(np.uint8).reshape(-1, 3), axis=0))


# ---- the list, the explorer -----------------------------------------------------------------------------------------

def test_list_of_sources(chromium, server, tmp_path):
    with opened(chromium, server, './') as page:
        rows = page.locator('tbody tr')
        page.locator('tr[data-file="my.h5"]').wait_for()
        assert [row.get_attribute('data-file') for row in rows.all()] == ['my.h5', 'other.h5', 'second.h5']
        page.locator('tr[data-file="my.h5"]').get_by_role('link', name='Explore').wait_for()
        keep(page, 'list', tmp_path)
        page.locator('tr[data-file="my.h5"]').get_by_role('link', name='Plots').click()
        wait_for_plots(page, ['waterfall'])
        assert page.title() == 'my.h5 - h5bridge'
        page.get_by_role('link', name='Licences').count()


@pytest.mark.parametrize('words', [(), ('--base-path', '/below/this')])
def test_the_only_source_is_opened(chromium, folder, words):
    with Server(folder / 'my.h5', *words) as server, opened(chromium, server, './') as page:
        page.wait_for_url('**/ms.html?file=my.h5')
        wait_for_plots(page, ['waterfall'])
        page.get_by_role('link', name='Sources').click()
        page.locator('tr[data-file="my.h5"]').wait_for()


def test_licences_are_served(server):
    text = server.get('licences.txt').decode()
    for name in ('@h5web/app', 'uplot', 'react', 'three', 'Feather', 'Phosphor', 'Radix', 'Tabler', 'Apache License'):
        assert name in text, name


def test_explorer(chromium, server, folder, tmp_path):
    """The tree down to a dataset, its numbers, and a picture of another one."""
    with h5py.File(folder / 'my.h5') as file:
        positions = file['ANTENNA/POSITION'][...]
    with opened(chromium, server, 'explore.html?file=my.h5') as page:
        page.get_by_role('treeitem', name='ANTENNA', exact=True).click()
        page.get_by_role('treeitem', name='POSITION', exact=True).click()
        page.get_by_role('tab', name='Matrix').click()
        page.get_by_text('Exact', exact=True).click()
        end = time.time() + SECONDS
        while True:
            shown = numbers(page.locator('.viewer').inner_text())
            if contains(shown, positions.ravel().tolist()):
                break
            assert time.time() < end, shown
            time.sleep(0.2)
        keep(page, 'explorer-matrix', tmp_path)
        page.get_by_role('link', name='Plots').wait_for()
    with opened(chromium, server, 'explore.html?file=my.h5&path=/MAIN/DATA') as page:
        page.get_by_text('DATA (amplitude)').wait_for()
        end = time.time() + SECONDS
        while colours(page.locator('canvas').first) <= 20:    # a WebGL canvas is blank for seconds
            assert time.time() < end, 'nothing is drawn'
            time.sleep(0.5)
        keep(page, 'explorer-heatmap', tmp_path)


def numbers(text):
    found = []
    for line in text.split('\n'):
        with contextlib.suppress(ValueError):
            found.append(float(line.replace('\N{MINUS SIGN}', '-')))
    return found


def contains(shown, wanted):
    near = np.isclose
    return any(np.all(near(shown[at:at + len(wanted)], wanted, rtol=1e-12)) for at in range(len(shown) - len(wanted) + 1))


def test_errors_are_shown(chromium, server):
    with opened(chromium, server, 'explore.html?file=none.h5') as page:
        page.get_by_text('none.h5 is not among the sources.').wait_for()
    context = chromium.new_context()
    page = context.new_page()
    page.request.get(server.url)
    page.goto(urllib.parse.urljoin(server.root, plots('other.h5')))    # not a MeasurementSet
    page.locator('.message').first.wait_for()
    assert 'not a native' in page.locator('#plots').inner_text()
    page.get_by_role('link', name='Look at it in the explorer').wait_for()
    page.goto(urllib.parse.urljoin(server.root, plots('my.h5', scan='no number', plots='waterfall')))
    page.locator('#waterfall[data-state=error]').wait_for()
    assert 'scan' in page.locator('#waterfall .error').inner_text()
    page.goto(urllib.parse.urljoin(server.root, plots('my.h5', spw=99, plots='waterfall')))
    page.locator('#waterfall .error').filter(has_text='the source has no spectral window 99; it has 0 (L)').wait_for()
    # a rule that is none: the file is listened to without it
    page.goto(urllib.parse.urljoin(server.root, plots('my.h5', alert='flagged', plots='waterfall')))
    page.locator('.alarms').filter(has_text='"flagged" is not a rule for alerts: < or > after flagged').wait_for()
    wait(page, '() => document.querySelector("[data-name=rows]").textContent !== "–"')
    # a file that cannot be read any more, and can be again
    problem = ['"disk on fire"']
    page.route('**/live/events*', lambda route: route.fulfill(
        content_type='text/event-stream', body='retry: 100\nevent: problem\ndata: {"message": %s}\n\n' % problem[0]))
    page.goto(urllib.parse.urljoin(server.root, plots('my.h5', plots='waterfall')))
    page.locator('.alarms').filter(has_text='the file cannot be read: disk on fire').wait_for()
    problem[0] = 'null'
    wait(page, '() => document.querySelector(".alarms").textContent === ""')
    context.close()


# ---- the plots ------------------------------------------------------------------------------------------------------

def test_every_plot_is_drawn(chromium, server, folder, tmp_path):
    with h5py.File(folder / 'my.h5') as file:
        rows = len(file['MAIN/TIME'])
    answers = []
    for kind in KINDS:
        server.frame(kind, 'my.h5')    # all rows are read
    with opened(chromium, server, 'licences.txt') as page:
        page.on('response', lambda answer: answers.append(answer.status) if '/live/plot/' in answer.url else None)
        page.goto(urllib.parse.urljoin(server.root, plots('my.h5')))
        wait_for_plots(page)
        page.wait_for_timeout(1000)
        assert [plot.get_attribute('id') for plot in page.locator('section.plot').all()] == list(KINDS)
        for kind in KINDS:
            plot = page.locator('#' + kind)
            assert plot.get_attribute('data-rows') == str(rows)
            assert colours(plot.locator('canvas')) > 20, kind
        # the server's first look at the file, which may come before the plots or after them, makes the page ask for
        # each plot again: nothing is new, and nothing is sent twice
        assert set(answers) <= {200, 304} and answers.count(200) == len(KINDS), answers
        # two abreast
        first, second = (page.locator('#' + kind).bounding_box() for kind in KINDS[:2])
        assert first['y'] == second['y'] and first['x'] < second['x']
        keep(page, 'plots', tmp_path, full_page=True)


def test_frames_are_decoded(chromium, server, tmp_path):
    """What the page saves from each frame is what the server sent, taken apart by other means."""
    with opened(chromium, server, plots('my.h5')) as page:
        wait_for_plots(page)

        def saved(kind, form):
            # browsers refuse a second download to a page that nobody touches, and hear of the touch a little later
            page.locator('#%s h2' % kind).click()
            page.wait_for_timeout(500)
            with page.expect_download() as waiting:
                page.locator('#' + kind).get_by_label('Download').select_option(form)
            path = waiting.value.path()
            assert waiting.value.suggested_filename == 'my-%s.%s' % (kind, form)
            with open(path, 'rb') as file:
                return file.read()
        for kind in KINDS:
            plot, arrays = server.frame(kind, 'my.h5')
            values = arrays['raster'] if kind in RASTERS else arrays['y']
            read = np.load(io.BytesIO(saved(kind, 'npy')))
            assert read.dtype == values.dtype
            np.testing.assert_array_equal(read, values)
            page_plot, page_arrays = decode(saved(kind, 'safetensors'))
            assert (page_plot['kind'], page_plot['rows'], page_arrays.keys()) == (kind, plot['rows'], arrays.keys())
            for name, array in arrays.items():
                np.testing.assert_array_equal(page_arrays[name], array)
            table = [line.split(',') for line in saved(kind, 'csv').decode().splitlines()]
            if kind in RASTERS:
                read = np.array([[float(cell or 'nan') for cell in line[1:]] for line in table[1:-1]])
                np.testing.assert_array_equal(read.astype(values.dtype), values)
                if 'names' not in plot['x']:
                    np.testing.assert_array_equal([float(cell) for cell in table[0][1:]], arrays['x'])
            else:
                each = len(arrays.keys() - {'x', 'segment'})
                read = np.array([[float(cell or 'nan') for cell in line[1::each]] for line in table[1:]]).T
                np.testing.assert_array_equal(read.astype(np.float32), values)
        assert saved('waterfall', 'png')[:8] == b'\x89PNG\r\n\x1a\n'


PIXELS = '''([kind, places]) => {
    const plot = document.getElementById(kind), canvas = plot.querySelector('canvas');
    const over = plot.querySelector('.u-over').getBoundingClientRect(), box = canvas.getBoundingClientRect();
    const ratio = canvas.width / box.width, context = canvas.getContext('2d');
    return places.map(([x, y]) => Array.from(context.getImageData(
        Math.floor((over.x - box.x + x * over.width) * ratio), Math.floor((over.y - box.y + (1 - y) * over.height) * ratio), 1, 1).data));
}'''


def up(arrays, row):
    """Part of the height of a raster at which the middle of a row lies."""
    y = arrays['y']
    return ((y[row] + y[row + 1]) / 2 - y[0]) / (y[-1] - y[0])


@pytest.mark.parametrize('scale', ['linear', 'log'])
@pytest.mark.parametrize('kind', ['waterfall', 'baselines'])
def test_rasters_are_drawn_where_they_belong(chromium, server, kind, scale):
    """Colours at the centres of cells; the first row of the raster is the lowest of the picture."""
    import matplotlib
    plot, arrays = server.frame(kind, 'my.h5')
    raster = arrays['raster'].astype(float)
    height, width = raster.shape
    low, high = plot['z']['low'], plot['z']['high']
    random = np.random.default_rng(1)
    cells = [(0, 0), (height - 1, 0), (0, width - 1), (height - 1, width - 1)]
    cells += [(int(random.integers(height)), int(random.integers(width))) for _ in range(200)]
    with opened(chromium, server, plots('my.h5', plots=kind, **{kind + '.scale': scale}), width=1000) as page:
        wait_for_plots(page, [kind])
        found = page.evaluate(PIXELS, [kind, [[(column + 0.5) / width, up(arrays, row)] for row, column in cells]])
    form = np.log if scale == 'log' else np.asarray
    checked = 0
    for (row, column), pixel in zip(cells, found, strict=True):
        value = raster[row, column]
        if arrays['flagged'][row, column]:
            assert list(pixel) == [0xf0, 0xa0, 0x90, 255], 'a cell all of whose data are flagged is marked'
            continue
        if np.isnan(value) or (scale == 'log' and value <= 0):
            assert pixel[3] == 0, 'cell %d, %d is drawn, but has no value' % (row, column)
            continue
        level = np.clip((form(value) - form(low)) / (form(high) - form(low)), 0, 1)
        wanted = np.array(matplotlib.colormaps['viridis'](level)[:3]) * 255
        assert np.abs(wanted - pixel[:3]).max() <= 8, 'cell %d, %d of %s: %s, not %s' % (row, column, value, pixel, wanted)
        checked += 1
    assert checked > 100


AREA = '''kind => {
    const plot = document.getElementById(kind), canvas = plot.querySelector('canvas');
    const over = plot.querySelector('.u-over').getBoundingClientRect(), box = canvas.getBoundingClientRect();
    const ratio = canvas.width / box.width;
    const [x, y, width, height] = [over.x - box.x, over.y - box.y, over.width, over.height].map(value => Math.round(value * ratio));
    return [width, height, Array.from(canvas.getContext('2d').getImageData(x, y, width, height).data)];
}'''


def area(page, kind):
    """Red, green, blue and opacity of the pixels between the axes of a plot, the upper line first."""
    width, height, data = page.evaluate(AREA, kind)
    return np.array(data, 'u1').reshape(height, width, 4)


@pytest.mark.parametrize('width', [700, 1280])
def test_lines_are_visible_over_their_bins(chromium, server, width, tmp_path):
    """No band from the smallest to the largest value of each bin; the axis is that of the lines, and phases are points."""
    kinds = ['amp_time', 'spectrum', 'phase_time']
    with opened(chromium, server, plots('my.h5', plots=','.join(kinds)), width=width) as page:
        wait_for_plots(page, kinds)
        for kind in kinds[:2]:
            plot, arrays = server.frame(kind, 'my.h5')
            assert np.nanmean(arrays['high'] - arrays['low']) > 0.2 * np.ptp(arrays['y'][np.isfinite(arrays['y'])])
            pixels = area(page, kind)
            painted = pixels[:, :, 3] > 0
            # less than in the bands, in which each pixel is painted
            assert painted.mean() < 0.2, '%s: %.0f %% of the plot are painted' % (kind, 100 * painted.mean())
            colourful = (pixels[:, :, :3].max(-1).astype(int) - pixels[:, :, :3].min(-1) > 60) & (pixels[:, :, 3] > 200)
            rows = np.flatnonzero(colourful.any(1))
            assert rows[0] < 0.15 * len(pixels) and rows[-1] > 0.85 * len(pixels), 'the lines fill the plot'
        keep(page, 'lines-%d' % width, tmp_path, full_page=True)


def test_waterfalls_show_gaps(chromium, folder, tmp_path):
    """The axis is one of time: nothing is drawn in a gap, which is as long as it was, and lines end there."""
    shutil.copy(folder / 'my.h5', tmp_path / 'gap.h5')
    with h5py.File(tmp_path / 'gap.h5', 'r+') as file:
        time = file['MAIN/TIME'][...]
        times = np.unique(time)
        # as long as all the others
        file['MAIN/TIME'][...] = time + np.where(time > times[len(times) // 2], np.ptp(times), 0)
    with Server(tmp_path / 'gap.h5') as server, opened(chromium, server, plots('gap.h5', plots='waterfall,amp_time')) as page:
        wait_for_plots(page, ['waterfall', 'amp_time'])
        arrays = server.frame('waterfall', 'gap.h5')[1]
        row = int(np.diff(arrays['y']).argmax())
        assert np.isnan(arrays['raster'][row]).all()
        start, end = ((arrays['y'][row + at] - arrays['y'][0]) / (arrays['y'][-1] - arrays['y'][0]) for at in (0, 1))
        assert end - start > 0.4
        empty = np.flatnonzero((area(page, 'waterfall')[::-1, :, 3] == 0).all(1))
        height = len(area(page, 'waterfall'))
        np.testing.assert_allclose(empty[[0, -1]] / height, [start, end], atol=0.02)
        # no line crosses it: no colour but that of the grid
        pixels = area(page, 'amp_time')
        width = pixels.shape[1]
        inside = pixels[:, int((start + 0.02) * width):int((end - 0.02) * width)].astype(int)
        assert (np.ptp(inside[:, :, :3], axis=-1) < 30).all()
        keep(page, 'gap', tmp_path, full_page=True)


@pytest.mark.parametrize('width', [390, 1280])
def test_points_of_maps_are_seen(chromium, server, width, tmp_path):
    """Few points are at least three pixels wide, each at its place."""
    with opened(chromium, server, plots('my.h5', plots='uv'), width=width) as page:
        plot, arrays = server.frame('uv', 'my.h5')
        raster = arrays['raster']
        assert 0 < (raster > 0).mean() < 0.05
        wait_for_plots(page, ['uv'])
        pixels = area(page, 'uv')
        height, across = pixels.shape[:2]
        # the scale of both axes is that of the shorter side
        side = min(height, across)
        for line, column in np.argwhere(raster > 0):
            x = across / 2 + ((column + 0.5) / raster.shape[1] - 0.5) * side
            y = height / 2 - ((line + 0.5) / raster.shape[0] - 0.5) * side
            near = pixels[max(0, int(y) - 1):int(y) + 2, max(0, int(x) - 1):int(x) + 2, 3]
            assert (near > 0).sum() >= 6 and near.max() == 255, (line, column, near)
        keep(page, 'uv-%d' % width, tmp_path, full_page=True)


def test_readout_and_words(chromium, server):
    plot, arrays = server.frame('waterfall', 'my.h5')
    height, width = arrays['raster'].shape
    row, column = height // 3, width // 4
    with opened(chromium, server, plots('my.h5')) as page:
        wait_for_plots(page)
        box = page.locator('#waterfall .u-over').bounding_box()
        page.mouse.move(box['x'] + (column + 0.5) / width * box['width'], box['y'] + (1 - up(arrays, row)) * box['height'])
        wait(page, '() => document.querySelector("#waterfall .place").textContent')
        text = page.locator('#waterfall .place').inner_text()
        shown = re.fullmatch(r'[\d.]+ MHz, [\d:.]+ UTC, all cross baselines: ([-\d.e+]+)( \S+)?', text)
        assert shown, text
        assert float(shown[1]) == pytest.approx(arrays['raster'][row, column], rel=1e-4)
        for kind in KINDS:
            words = page.locator('#%s [role=img]' % kind).get_attribute('aria-label')
            assert 'Horizontal: ' in words and 'Vertical: ' in words and 'rows.' in words, words
        words = page.locator('#waterfall [role=img]').get_attribute('aria-label')
        assert plot['title'] in words and '%d by %d cells' % (width, height) in words, words


# ---- the state ------------------------------------------------------------------------------------------------------

def test_state_is_in_the_address(chromium, server, tmp_path):
    with opened(chromium, server, plots('my.h5', plots='waterfall,amp_time,baselines'), height=1200) as page:
        wait_for_plots(page, ['waterfall', 'amp_time', 'baselines'])
        everything = page.locator('#amp_time [role=img]').get_attribute('aria-label')
        page.locator('select[name=field]').select_option('1')
        page.get_by_label('Quantity, Waterfall').select_option('phase')
        wait(page, 'text => document.querySelector("#amp_time [role=img]").ariaLabel !== text', everything)
        assert query(page)['field'] == ['1'] and query(page)['waterfall.quantity'] == ['phase']
        wait_for_plots(page, ['waterfall', 'amp_time', 'baselines'])

        # a click on a baseline chooses that of the waterfall, arrow keys choose the next one
        box = page.locator('#baselines .u-over').bounding_box()
        page.mouse.click(box['x'] + 1.5 / ANTENNAS * box['width'], box['y'] + (1 - 3.5 / ANTENNAS) * box['height'])
        wait(page, '() => location.search.includes("waterfall.baseline=m001-m003")')
        page.locator('#baselines [role=img]').focus()
        page.keyboard.press('ArrowUp')
        wait(page, '() => location.search.includes("waterfall.baseline=m001-m004")')
        wait_for_plots(page, ['waterfall', 'amp_time', 'baselines'])
        frame, arrays = server.frame('waterfall', 'my.h5', field='1', quantity='phase', baseline='m001-m004')
        assert frame['title'] in page.locator('#waterfall h2').inner_text()

        # dragging zooms, a double click shows all
        box = page.locator('#amp_time .u-over').bounding_box()
        page.mouse.move(box['x'] + box['width'] * 0.25, box['y'] + box['height'] * 0.5)
        page.mouse.down()
        page.mouse.move(box['x'] + box['width'] * 0.75, box['y'] + box['height'] * 0.5, steps=5)
        page.mouse.up()
        wait(page, '() => location.search.includes("amp_time.x=")')
        low, high = map(float, query(page)['amp_time.x'][0].split('..'))
        times = server.frame('amp_time', 'my.h5', field='1')[1]['x']
        assert low == pytest.approx(times[0] + (times[-1] - times[0]) * 0.25, abs=(times[-1] - times[0]) * 0.02)
        assert high == pytest.approx(times[0] + (times[-1] - times[0]) * 0.75, abs=(times[-1] - times[0]) * 0.02)
        keep(page, 'state', tmp_path)
        address = page.url

        # the same address gives the same page
        page.goto('about:blank')
        page.goto(address)
        wait_for_plots(page, ['waterfall', 'amp_time', 'baselines'])
        assert page.locator('select[name=field]').input_value() == '1'
        assert page.get_by_label('Quantity, Waterfall').input_value() == 'phase'
        assert page.url == address
        page.locator('#amp_time .u-over').dblclick()
        wait(page, '() => !location.search.includes("amp_time.x=")')

        # back
        page.locator('select[name=field]').select_option('')
        page.go_back()
        wait(page, '() => document.querySelector("[name=field]").value === "1"')


def test_axis_is_chosen(chromium, server, tmp_path):
    with opened(chromium, server, plots('my.h5', plots='xy')) as page:
        wait_for_plots(page, ['xy'])
        times = page.locator('#xy [role=img]').get_attribute('aria-label')
        with page.expect_request(lambda request: '/live/plot/xy?' in request.url) as asked:
            page.get_by_label('Horizontal axis, Other axes').select_option('elevation')
        assert urllib.parse.parse_qs(urllib.parse.urlsplit(asked.value.url).query)['x'] == ['elevation']
        wait(page, 'text => document.querySelector("#xy [role=img]").ariaLabel !== text', times)
        wait_for_plots(page, ['xy'])
        frame, arrays = server.frame('xy', 'my.h5', x='elevation')
        assert frame['x']['label'] == 'elevation' and frame['title'] in page.locator('#xy h2').inner_text()
        # the axis and the part of it that is shown are two values of the address
        page.locator('#xy [role=img]').focus()
        page.keyboard.press('+')
        wait(page, '() => location.search.includes("xy.x=")')
        assert query(page)['xy.axis'] == ['elevation']
        low, high = map(float, query(page)['xy.x'][0].split('..'))
        assert np.nanmin(arrays['x']) - 1 < low < high < np.nanmax(arrays['x']) + 1
        # as colours of antennas, too
        assert server.frame('xy', 'my.h5', x='elevation', by='antenna', antenna='m001')[0]['selection']['by'] == 'antenna'
        keep(page, 'axis', tmp_path)


def test_dark_phone(chromium, server, tmp_path):
    with opened(chromium, server, plots('my.h5'), width=390, height=800, color_scheme='dark') as page:
        wait_for_plots(page)
        assert page.evaluate('document.documentElement.scrollWidth') <= 390
        first, second = (page.locator('#' + kind).bounding_box() for kind in KINDS[:2])
        assert first['x'] == second['x'] and first['y'] < second['y']
        ground = 'getComputedStyle(document.body).backgroundColor'
        dark = page.evaluate(ground)
        keep(page, 'phone', tmp_path, full_page=True)
        page.get_by_role('button', name='Light').click()
        assert page.evaluate(ground) == 'rgb(255, 255, 255)' != dark


def test_comparison(chromium, server, tmp_path):
    """The second file has twice the visibilities of the first."""
    kinds = ['waterfall', 'spectrum']
    with opened(chromium, server, plots('my.h5', plots=','.join(kinds), **{'with': 'second.h5'})) as page:
        wait_for_plots(page, kinds)
        assert page.locator('#waterfall canvas').count() == 2
        first, second = (panel.get_attribute('aria-label') for panel in page.locator('#waterfall [role=img]').all())
        scales = [re.search(r'Colour: .*?;', text)[0] for text in (first, second)]
        assert scales[0] == scales[1]
        keep(page, 'side-by-side', tmp_path)
        page.locator('[name=compare]').select_option('difference')
        wait(page, '() => document.querySelectorAll("#waterfall canvas").length === 1')
        wait_for_plots(page, kinds)
        for kind in kinds:
            page.locator('#%s h2' % kind).click()
            with page.expect_download() as waiting:
                page.locator('#' + kind).get_by_label('Download').select_option('npy')
            read = np.load(waiting.value.path())
            name = 'raster' if kind in RASTERS else 'y'
            one, other = (server.frame(kind, file)[1][name] for file in ('my.h5', 'second.h5'))
            np.testing.assert_allclose(read, one - other, rtol=1e-5, atol=1e-5)
        keep(page, 'difference', tmp_path)


# ---- growing files --------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def growing(folder, integrations=2000, pause=0.25):
    """A live file that grows until the block ends: casacore writes, `follow` follows."""
    ms = folder / 'made.ms'
    words = [sys.executable, WRITER, str(ms), str(integrations), str(ANTENNAS), str(CHANNELS), str(pause)]
    served = folder / 'served'
    served.mkdir()
    with contextlib.ExitStack() as stack:
        def start(command, **more):
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **more)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process
        start(words)
        end = time.time() + SECONDS
        while written(ms) == 0:
            assert time.time() < end
            time.sleep(0.1)
        start([support.H5BRIDGE, 'follow', str(ms), str(served / 'live.h5')], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while committed(served / 'live.h5') < 100:
            assert time.time() < end
            time.sleep(0.1)
        yield served


def written(ms):
    try:
        with ct.table(str(ms), ack=False, lockoptions='usernoread') as table:
            return table.nrows()
    except RuntimeError:
        return 0


def committed(path):
    try:
        with h5py.File(path, 'r', swmr=True, locking=False) as file:
            return int(file['MAIN/committed_rows'][0])
    except (OSError, KeyError):
        return 0


def settled(page, read):
    """What READ gives as soon as it gives the same for a while: what was under way has arrived, and no more comes."""
    end = time.time() + SECONDS
    value, since = read(), time.time()
    while time.time() < since + 2:
        page.wait_for_timeout(200)
        if read() != value:
            value, since = read(), time.time()
        assert since < end, 'it goes on'
    return value


ROWS = 'Number(document.querySelector("[data-name=rows]").textContent.replaceAll(",", ""))'


def test_page_grows_with_the_file(chromium, tmp_path):
    rules = tmp_path / 'rules'
    rules.write_text('flagged > 0.01 %   # there is interference\n')
    with growing(tmp_path) as folder, Server(folder, '--alerts', rules) as server:
        with opened(chromium, server, plots('live.h5'), height=2000) as page:
            wait(page, READY.replace("plot.dataset.used === plot.dataset.rows", 'Number(plot.dataset.drawn) > 1'), ['waterfall', 'amp_time'])

            def state():
                words = page.locator('#waterfall [role=img]').get_attribute('aria-label')
                return page.evaluate(ROWS), int(page.locator('#waterfall').get_attribute('data-rows')), \
                    int(re.search(r'(\d+) by (\d+) cells', words)[2])
            before = state()
            assert before[0] <= committed(folder / 'live.h5')
            rows = before[0] + 200
            wait(page, 'rows => %s >= rows' % ROWS, rows)
            wait(page, 'rows => document.getElementById("waterfall").dataset.rows >= rows', rows)
            after = state()
            assert after[0] >= rows and after[1] >= rows and after[2] > before[2], (before, after)
            assert after[1] <= committed(folder / 'live.h5')
            keep(page, 'growing', tmp_path)

            # a pause keeps the plots, not the numbers
            page.get_by_role('button', name='Pause').click()
            held = settled(page, lambda: state()[1:])
            rows = page.evaluate(ROWS)
            wait(page, 'rows => %s > rows' % ROWS, rows + 60)
            assert state()[1:] == held and query(page)['paused'] == ['1']
            page.get_by_role('button', name='Go on').click()
            wait(page, 'rows => document.getElementById("waterfall").dataset.rows > rows', held[0])

            # a hidden page closes its stream
            hide = '''is => { Object.defineProperty(document, 'hidden', {configurable: true, get: () => is});
                document.dispatchEvent(new Event('visibilitychange')); }'''
            page.evaluate(hide, True)
            held = settled(page, lambda: page.evaluate(ROWS))
            page.evaluate(hide, False)
            wait(page, 'rows => %s > rows' % ROWS, held)

            # the alert of the server, one of the reader, and its end
            page.locator('.alarms').filter(has_text='flagged').wait_for()
            page.get_by_role('combobox', name='Alert').fill('rows/s > 0.01')
            page.get_by_role('combobox', name='Alert').press('Enter')
            page.locator('.alarms').filter(has_text='rows/s').wait_for()
            assert query(page)['alert'] == ['rows/s > 0.01']
            page.get_by_role('combobox', name='Alert').fill('')
            page.get_by_role('combobox', name='Alert').press('Enter')
            page.locator('.alarms').filter(has_not_text='rows/s').wait_for()
        with opened(chromium, server, './?list') as page:
            row = page.locator('tr[data-file="live.h5"]')
            row.filter(has_text='live').wait_for()
            wait(page, '''() => { const cells = document.querySelector('tr[data-file="live.h5"]').cells;
                return Number(cells[5].textContent) > 0 && cells[6].textContent && cells[7].textContent.endsWith('%')
                    && cells[8].textContent.startsWith('flagged '); }''')
            keep(page, 'board', tmp_path)
        with opened(chromium, server, 'explore.html?file=live.h5') as page:
            page.get_by_role('treeitem', name=re.compile('^MAIN')).wait_for()
            page.get_by_role('button', name=re.compile('new rows: refresh')).click()
            page.get_by_role('treeitem', name=re.compile('^MAIN')).wait_for()
