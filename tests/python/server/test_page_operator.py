"""The pages of `h5bridge serve` for an operator: the list, plots of each kind of source, alerts, all widths, without a mouse."""
import gzip
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
import test_page
from test_page import (  # noqa: F401, two are fixtures
    ANTENNAS, BROWSER, KINDS, SECONDS, WRITER, Server, chromium, colours, folder, growing, keep, opened, plots, query, wait, wait_for_plots)

pytestmark = pytest.mark.skipif(BROWSER is None, reason='no browser: install one of ' + ', '.join(test_page.BROWSERS))

WIDTHS = (360, 390, 768, 1400, 2560)
START = 59000 * 86400.
DIST = os.path.join(support.ROOT, 'h5bridge', 'page', 'dist')


# ---- sources --------------------------------------------------------------------------------------------------------

def make_calibration(path, times=START + 60. * np.arange(12)):
    """A table of gains as CASA writes them: 4 antennas, 2 polarizations, 1 spectral window."""
    random = np.random.default_rng(7)
    time, antenna = (grid.ravel() for grid in np.meshgrid(times, range(4), indexing='ij'))
    gain = (random.normal(1, 0.1, (len(time), 1, 2)) * np.exp(1j * random.normal(0, 1, (len(time), 1, 2)))).astype('c8')
    desc = ct.maketabdesc([
        ct.makescacoldesc('TIME', 0.), ct.makescacoldesc('FIELD_ID', 0), ct.makescacoldesc('SPECTRAL_WINDOW_ID', 0),
        ct.makescacoldesc('ANTENNA1', 0), ct.makescacoldesc('ANTENNA2', 0), ct.makescacoldesc('SCAN_NUMBER', 0),
        ct.makearrcoldesc('CPARAM', 0j, ndim=2, valuetype='complex'), ct.makearrcoldesc('FLAG', False, ndim=2)])
    with ct.table(str(path), desc, nrow=len(time), ack=False) as t:
        t.putcol('TIME', time)
        t.putcol('ANTENNA1', antenna.astype('i4'))
        t.putcol('CPARAM', gain)
        t.putcol('FLAG', np.zeros(gain.shape, bool))
        for name, column, kind, of in [('ANTENNA', 'NAME', ct.makescacoldesc, ['ea0%d' % number for number in range(4)]),
                                       ('SPECTRAL_WINDOW', 'CHAN_FREQ', ct.makearrcoldesc, np.array([[1e9]]))]:
            part = kind(column, '') if isinstance(of, list) else kind(column, 0., ndim=1)
            with ct.table('%s/%s' % (path, name), ct.maketabdesc([part]), nrow=len(of), ack=False) as s:
                s.putcol(column, of)
            t.putkeyword(name, 'Table: %s/%s' % (path, name))


def make_image(path):
    """An image of 3 planes; returns its values, [plane, y, x]."""
    images = pytest.importorskip('casacore.images')
    cube = np.random.default_rng(3).normal(size=(3, 40, 60)).astype('f4')
    image = images.image(str(path), values=cube)
    del image
    return cube


@pytest.fixture(scope='module')
def archive(folder, tmp_path_factory):  # noqa: F811
    """Sources of every kind, in folders."""
    archive = tmp_path_factory.mktemp('archive')
    shutil.copy(folder / 'my.h5', archive / 'my.h5')
    shutil.copy(folder / 'other.h5', archive / 'other.h5')
    (archive / 'night' / 'gains').mkdir(parents=True)
    shutil.copy(folder / 'second.h5', archive / 'night' / 'second.h5')
    make_calibration(archive / 'night' / 'gains' / 'a.cal')
    make_image(archive / 'night' / 'a.image')
    with h5py.File(archive / 'my.h5', 'r+') as file:
        file['OBSERVATION/PROJECT'][0] = 'survey 7'
    os.utime(archive / 'my.h5', (1.7e9, 1.7e9))
    return archive


@pytest.fixture(scope='module')
def served(archive):
    with Server(archive) as server:
        for kind in KINDS:
            server.frame(kind, 'my.h5')    # all rows are read
        yield server


NAMES = '() => [...document.querySelectorAll("tr[data-file]")].map(row => row.dataset.file)'


# ---- the list -------------------------------------------------------------------------------------------------------

def test_list_has_filter_order_folders_and_kinds(chromium, served, tmp_path):  # noqa: F811
    everything = ['my.h5', 'other.h5', 'night/a.image', 'night/second.h5', 'night/gains/a.cal']
    with opened(chromium, served, './', timezone_id='Asia/Tokyo') as page:
        page.locator('tr[data-file="my.h5"]').wait_for()
        wait(page, '() => document.body.innerText.includes("image")')
        assert page.evaluate(NAMES) == everything
        kinds = {file: page.locator('tr[data-file="%s"] [data-name=Kind]' % file).inner_text() for file in everything}
        assert kinds == {'my.h5': 'HDF5, MeasurementSet', 'other.h5': 'HDF5', 'night/a.image': 'table, image',
                         'night/second.h5': 'HDF5, MeasurementSet', 'night/gains/a.cal': 'table, calibration table'}
        # the reader's own time and UTC
        changed = page.locator('tr[data-file="my.h5"] [data-name=Changed]').inner_text()
        assert changed == '2023-11-15 07:13:20 (2023-11-14 22:13:20 UTC)', changed
        # no column for live files where none is live
        assert not page.get_by_role('columnheader', name='Rows/s').is_visible()
        # folders
        fold = page.get_by_role('button', name='night/ (2)')
        fold.click()
        assert fold.get_attribute('aria-expanded') == 'false'
        assert page.evaluate(NAMES) == ['my.h5', 'other.h5', 'night/gains/a.cal']
        fold.click()
        # heads, first upwards, then downwards
        sizes = page.locator('th', has_text='Size')
        sizes.get_by_role('button').click()
        assert sizes.get_attribute('aria-sort') == 'ascending'
        bytes_of = {source['file']: source['bytes'] for source in json.loads(served.get('api/files'))}
        top = sorted(['my.h5', 'other.h5'], key=bytes_of.get)
        assert page.evaluate(NAMES)[:2] == top
        sizes.get_by_role('button').click()
        assert sizes.get_attribute('aria-sort') == 'descending' and query(page)['sort'] == ['-Size']
        assert page.evaluate(NAMES)[:2] == top[::-1]
        # the filter looks at names and kinds, and is in the address
        page.get_by_label('Filter').fill('calibration')
        wait(page, '() => document.querySelectorAll("tr[data-file]").length === 1')
        assert page.evaluate(NAMES) == ['night/gains/a.cal'] and query(page)['filter'] == ['calibration']
        page.get_by_label('Filter').fill('no such thing')
        page.get_by_text('No source has these words').wait_for()
        page.get_by_label('Filter').fill('')
        wait(page, '() => document.querySelectorAll("tr[data-file]").length === 5')
        keep(page, 'list-folders', tmp_path)
        page.locator('tr[data-file="night/a.image"]').get_by_role('link', name='Plots').click()
        wait_for_plots(page, ['image'])


# ---- plots of each kind of source -----------------------------------------------------------------------------------

def test_image_has_its_plot(chromium, served, archive, tmp_path):  # noqa: F811
    with ct.table(str(archive / 'night' / 'a.image'), ack=False) as table:
        cube = table.getcell('map', 0)
    with opened(chromium, served, plots('night/a.image')) as page:
        wait_for_plots(page, ['image'])
        assert page.locator('section.plot').count() == 1
        assert colours(page.locator('#image canvas')) > 20
        keep(page, 'image', tmp_path)
        page.get_by_label('Plane along').fill('2')
        page.get_by_label('Plane along').press('Enter')
        wait(page, '() => document.querySelector("#image .note").textContent.includes("plane 2 of 3")')
        assert query(page)['plane'] == ['2']
        page.locator('#image h2').click()
        with page.expect_download() as waiting:
            page.locator('#image').get_by_label('Download').select_option('npy')
        np.testing.assert_array_equal(np.load(waiting.value.path()), cube[2])
        # right ascension grows to the left, and the cursor names what is under it
        x = test_page.decode(served.get('live/plot/image?file=night/a.image&plane=2'))[1]['x']
        assert x[0] > x[-1]
        box = page.locator('#image .u-over').bounding_box()
        page.mouse.move(box['x'] + box['width'] / 2, box['y'] + box['height'] / 2)
        wait(page, '() => document.querySelector("#image .place").textContent')
        first = page.locator('#image .place').inner_text()
        page.mouse.move(box['x'] + box['width'] / 2 - 40, box['y'] + box['height'] / 2)
        wait(page, 'text => document.querySelector("#image .place").textContent !== text', first)
        ras = [float(re.match(r'[-+.\de]+', text)[0]) for text in (first, page.locator('#image .place').inner_text())]
        assert ras[1] > ras[0]
    with pytest.raises(urllib.error.HTTPError) as refused:
        served.get('live/plot/image?file=night/a.image&plane=3')
    assert refused.value.code == 422 and '3 planes' in refused.value.read().decode()


def test_image_names_no_table_outside(folder, tmp_path):  # noqa: F811
    """A mask in a table that is not served is not read."""
    images = pytest.importorskip('casacore.images')
    (tmp_path / 'served').mkdir()
    values = np.ones((20, 30), 'f4')
    image = images.image(str(tmp_path / 'served' / 'a.image'), values=values, maskname='mask0')
    image.put(np.ma.masked_array(values, np.arange(600).reshape(20, 30) % 2 == 0))
    del image
    with Server(tmp_path / 'served') as server:
        inside = test_page.decode(server.get('live/plot/image?file=a.image'))[1]['raster']
    assert np.isnan(inside).sum() == 300
    shutil.move(tmp_path / 'served' / 'a.image' / 'mask0', tmp_path / 'mask0')
    os.symlink(tmp_path / 'mask0', tmp_path / 'served' / 'a.image' / 'mask0')
    with Server(tmp_path / 'served') as server:
        outside = test_page.decode(server.get('live/plot/image?file=a.image'))[1]['raster']
    assert not np.isnan(outside).any()


def test_calibration_table_is_drawn_by_antenna(chromium, served, archive, tmp_path):  # noqa: F811
    """As `h5bridge plot` draws it."""
    wanted = json.loads(support.h5bridge('plot', archive / 'night' / 'gains' / 'a.cal', '--json').stdout)
    with opened(chromium, served, plots('night/gains/a.cal')) as page:
        wait_for_plots(page, ['amp_time', 'phase_time'])
        assert page.locator('#amp_time .keys button').all_inner_texts() == wanted['plot']['series']
        assert page.locator('#amp_time h2').inner_text() == wanted['plot']['title']
        keep(page, 'calibration', tmp_path, full_page=True)
    frame, arrays = served.frame('amp_time', 'night/gains/a.cal', by='antenna')
    np.testing.assert_allclose(arrays['y'], np.array(wanted['arrays']['y'], float), rtol=1e-6)
    assert frame['selection']['by'] == 'antenna'


def test_lines_by_antenna(chromium, served):  # noqa: F811
    with opened(chromium, served, plots('my.h5', plots='amp_time,spectrum,waterfall')) as page:
        wait_for_plots(page, ['amp_time', 'spectrum', 'waterfall'])
        page.get_by_label('A line for each').select_option('antenna')
        wait(page, '() => document.querySelector("#amp_time h2").textContent.endsWith("by antenna")')
        wait_for_plots(page, ['amp_time', 'spectrum', 'waterfall'])
        assert query(page)['by'] == ['antenna']
        names = page.locator('#amp_time .keys button').all_inner_texts()
        assert sorted({name.split()[0] for name in names}) == ['m%03d' % number for number in range(ANTENNAS)]
        # of many lines the cursor names the nearest
        box = page.locator('#amp_time .u-over').bounding_box()
        page.mouse.move(box['x'] + box['width'] / 2, box['y'] + box['height'] / 2)
        wait(page, '() => / UTC: m00\\d \\S+ [-\\d.e]+ /.test(document.querySelector("#amp_time .place").textContent)')
        # an antenna of those
        page.locator('select[name=antenna]').select_option('m002')
        wait(page, '() => document.querySelectorAll("#amp_time .keys button").length === 2')
    with pytest.raises(urllib.error.HTTPError) as refused:
        served.get('live/plot/amp_time?file=my.h5&by=colour')
    assert refused.value.code == 422 and 'correlation, antenna, baseline' in refused.value.read().decode()


def test_facts_of_a_file_that_does_not_grow(chromium, served):  # noqa: F811
    with opened(chromium, served, plots('my.h5', plots='waterfall')) as page:
        wait_for_plots(page, ['waterfall'])
        facts = dict(zip(*(page.locator('.strip ' + part).all_inner_texts() for part in ('dt', 'dd')), strict=True))
    assert list(facts) == ['telescope', 'project', 'times', 'band', 'rows', 'kind']
    assert facts['telescope'] == 'TEST' and facts['project'] == 'survey 7' and facts['kind'] == 'HDF5'
    assert re.fullmatch(r'[\d-]{10} [\d:]{8} to [\d:]{8} UTC', facts['times']) and re.fullmatch(r'900 to 16[\d.]+ MHz', facts['band'])


# ---- one large, linked, named ---------------------------------------------------------------------------------------

def test_one_plot_large(chromium, served, tmp_path):  # noqa: F811
    with opened(chromium, served, plots('my.h5', plots='waterfall,amp_time')) as page:
        wait_for_plots(page, ['waterfall', 'amp_time'])
        small = page.locator('#waterfall canvas').bounding_box()
        page.locator('#waterfall').get_by_role('button', name='Large').click()
        wait(page, 'height => document.querySelector("#waterfall canvas").getBoundingClientRect().height > height * 1.8', small['height'])
        large = page.locator('#waterfall canvas').bounding_box()
        assert large['width'] > 1.5 * small['width'] and not page.locator('#amp_time').is_visible()
        assert query(page)['large'] == ['waterfall']
        assert large['y'] + large['height'] <= 900, 'it fits the window'
        keep(page, 'large', tmp_path)
        page.go_back()
        page.locator('#amp_time').wait_for()
        wait(page, 'height => document.querySelector("#waterfall canvas").getBoundingClientRect().height === height', small['height'])


def test_linked_axes_and_cursor(chromium, served):  # noqa: F811
    kinds = ['waterfall', 'amp_time', 'spectrum', 'flag_channel', 'uv']
    with opened(chromium, served, plots('my.h5', plots=','.join(kinds)), height=1600) as page:
        wait_for_plots(page, kinds)
        box = page.locator('#waterfall .u-over').bounding_box()
        page.mouse.move(box['x'] + box['width'] * 0.2, box['y'] + box['height'] * 0.3)
        wait(page, '() => document.querySelector("#waterfall .place").textContent')
        text = page.locator('#waterfall .place').inner_text()
        assert re.fullmatch(r'[\d.]+ MHz, [\d:.]+ UTC, all cross baselines: ([-\d.e+]+ \S+|no value|all flagged)', text), text
        page.mouse.down()
        page.mouse.move(box['x'] + box['width'] * 0.6, box['y'] + box['height'] * 0.8, steps=5)
        page.mouse.up()
        wait(page, '() => location.search.includes("waterfall.x=")')
        found = query(page)
        assert found['waterfall.x'] == found['spectrum.x'] == found['flag_channel.x']
        assert found['waterfall.y'] == found['amp_time.x'] and not any(name.startswith('uv.') for name in found)
        # one of them shows all again, and so do the others
        page.locator('#spectrum').get_by_role('button', name='Reset').click()
        wait(page, '() => !location.search.includes("waterfall.x=")')
        assert 'amp_time.x' in query(page)
        page.goto(urllib.parse.urljoin(served.root, plots('my.h5', plots='waterfall', **{'waterfall.baseline': 'm001-m003'})))
        wait_for_plots(page, ['waterfall'])
        page.mouse.move(box['x'] + box['width'] * 0.2, box['y'] + box['height'] * 0.3)
        wait(page, '() => document.querySelector("#waterfall .place").textContent.includes(" UTC, m001-m003: ")')


# ---- the explorer ---------------------------------------------------------------------------------------------------

def test_explorer_opens_on_something_drawn(chromium, served, tmp_path):  # noqa: F811
    for file, heading in [('my.h5', 'DATA (amplitude)'), ('night/gains/a.cal', 'CPARAM (amplitude)'), ('night/a.image', 'map')]:
        with opened(chromium, served, 'explore.html?file=' + file) as page:
            page.get_by_text(heading).first.wait_for()
            wait(page, '() => document.querySelector(".viewer canvas")')
            keep(page, 'explorer-' + file.replace('/', '-'), tmp_path)
    with opened(chromium, served, 'explore.html?file=other.h5') as page:
        page.get_by_role('treeitem').first.wait_for()
    # what serves other values is last
    names = [child['name'] for child in json.loads(served.get('api/meta?file=my.h5&path=/'))['children']]
    hidden = [name for name in names if name.startswith('_')]
    assert hidden and names[-len(hidden):] == hidden


def test_explorer_has_the_theme_of_the_pages(chromium, served, tmp_path):  # noqa: F811
    for scheme in ('light', 'dark'):
        with opened(chromium, served, 'explore.html?file=my.h5', color_scheme=scheme) as page:
            page.get_by_text('DATA (amplitude)').wait_for()
            filters = page.locator('.viewer > div').first
            assert filters.evaluate('one => getComputedStyle(one).filter') == {'light': 'none', 'dark': 'invert(1)'}[scheme]
            page.get_by_role('button', name={'light': 'Dark', 'dark': 'Light'}[scheme]).click()
            assert filters.evaluate('one => getComputedStyle(one).filter') == {'light': 'invert(1)', 'dark': 'none'}[scheme]
            keep(page, 'explorer-from-' + scheme, tmp_path)
            # and the next page has it as well
            page.goto(urllib.parse.urljoin(served.root, './?list'))
            page.locator('tr[data-file="my.h5"]').wait_for()
            assert page.evaluate('document.documentElement.dataset.theme') == {'light': 'dark', 'dark': 'light'}[scheme]


# ---- requests, scripts, time ----------------------------------------------------------------------------------------

def test_each_plot_is_requested_once(chromium, served):  # noqa: F811
    asked = []
    with opened(chromium, served, 'licences.txt') as page:
        page.on('request', lambda request: asked.append(urllib.parse.urlsplit(request.url).path) if '/live/plot/' in request.url else None)
        page.goto(urllib.parse.urljoin(served.root, plots('my.h5')))
        wait_for_plots(page)
        page.wait_for_timeout(1500)
    assert sorted(asked) == sorted('/live/plot/' + kind for kind in KINDS)


def test_scripts_of_the_plots_are_small():
    page = gzip.open(os.path.join(DIST, 'ms.html.gz'), 'rt').read()
    names = set(re.findall(r'assets/[\w.-]+\.js', page))
    assert any(name.startswith('assets/ms-') for name in names) and not any('h5web' in name for name in names)
    assert sum(os.path.getsize(os.path.join(DIST, name + '.gz')) for name in names) < 60_000


def test_first_plots_of_many_rows(chromium, tmp_path, record_property):  # noqa: F811
    """35,000 rows, from the request of the page on; the seconds are for a person."""
    ms = tmp_path / 'made.ms'
    subprocess.run([sys.executable, WRITER, str(ms), '625', '10', '32', '0'], check=True)
    support.h5bridge('to-hdf5', ms, tmp_path / 'large.h5')
    with Server(tmp_path / 'large.h5') as server, opened(chromium, server, 'licences.txt') as page:
        page.goto(urllib.parse.urljoin(server.root, plots('large.h5')))
        wait(page, '() => ["waterfall", "amp_time"].every(kind => document.getElementById(kind)?.dataset.state === "ready")')
        record_property('seconds', page.evaluate('performance.now()') / 1000)
        assert int(page.locator('#waterfall').get_attribute('data-rows')) >= 34000


# ---- errors ---------------------------------------------------------------------------------------------------------

def test_one_banner_for_one_reason(chromium, served, tmp_path):  # noqa: F811
    context = chromium.new_context(viewport={'width': 1400, 'height': 2400})
    page = context.new_page()
    page.request.get(served.url)
    page.goto(urllib.parse.urljoin(served.root, plots('my.h5', spw=99)))
    banner = page.locator('.alarms').filter(has_text='the source has no spectral window 99; it has 0 (L)')
    banner.wait_for()
    wait(page, '() => document.querySelectorAll(".plot[data-state=error]").length >= 8')
    assert page.locator('.alarms').inner_text().count('spectral window 99') == 1
    assert [text for text in page.locator('.plot .error').all_inner_texts() if text] == []
    keep(page, 'error', tmp_path)
    page.locator('select[name=colours]').wait_for()
    page.evaluate('history.replaceState(null, "", location.search.replace("spw=99", "")); dispatchEvent(new PopStateEvent("popstate"))')
    wait(page, '() => document.querySelector(".alarms").textContent === ""')
    # a server that has gone
    page.route('**/live/**', lambda route: route.abort())
    page.goto(urllib.parse.urljoin(served.root, plots('none.h5')))
    page.get_by_text('The server does not answer.').wait_for()
    page.unroute('**/live/**')
    page.goto(urllib.parse.urljoin(served.root, plots('none.h5')))
    page.get_by_text('none.h5 is not among the sources.').wait_for()
    page.get_by_role('link', name='The list of sources').click()
    page.locator('tr[data-file="my.h5"]').wait_for()
    context.close()


def test_pages_for_a_missing_token_and_for_nothing(chromium, served, tmp_path):  # noqa: F811
    context = chromium.new_context(viewport={'width': 360, 'height': 740})
    page = context.new_page()
    for address in ('./', plots('my.h5'), 'explore.html?file=my.h5', '?token=wrong'):
        answer = page.goto(urllib.parse.urljoin(served.root, address))
        assert answer.status == 401 and answer.headers['content-security-policy'].startswith("default-src 'self'")
        assert page.get_by_role('heading').inner_text() == 'This address needs a token'
        assert '?token=' in page.locator('main').inner_text()
        assert page.evaluate('document.documentElement.scrollWidth') <= 360
    keep(page, 'token', tmp_path)
    page.request.get(served.url)
    assert page.goto(urllib.parse.urljoin(served.root, 'none.html')).status == 404
    assert page.get_by_role('heading').inner_text() == 'Nothing is at this address'
    keep(page, 'nothing', tmp_path)
    page.get_by_role('link', name='The list of sources').click()
    page.locator('tr[data-file="my.h5"]').wait_for()
    context.close()
    # programs get JSON
    with pytest.raises(urllib.error.HTTPError) as refused:
        served.get('none.html')
    assert json.loads(refused.value.read()) == {'message': 'not found'}


# ---- live files -----------------------------------------------------------------------------------------------------

LISTEN = '''
    window.tones = 0; window.notices = [];
    window.AudioContext = class { currentTime = 0; destination = null; resume() { return Promise.resolve(); }
        createGain() { return {gain: {}, connect: to => to}; }
        createOscillator() { return {frequency: {}, connect: to => to, start: () => { window.tones += 1; }, stop() {}}; } };
    window.Notification = class { static requestPermission() { return Promise.resolve('granted'); }
        constructor(title, {body}) { window.notices.push(title + ': ' + body); } };
'''


def test_history_sound_and_notification_of_alerts(chromium, tmp_path):  # noqa: F811
    with growing(tmp_path) as served, Server(served) as server:  # noqa: F811
        with opened(chromium, server, 'licences.txt') as page:
            page.add_init_script(LISTEN)
            page.goto(urllib.parse.urljoin(server.root, plots('live.h5', plots='waterfall')))
            page.locator('.history summary').filter(has_text='Alerts: none').wait_for()
            page.get_by_role('combobox', name='Alert').fill('rows/s > 0.01')
            page.get_by_role('combobox', name='Alert').press('Enter')
            page.locator('.history summary').filter(has_text='Alerts: 1, 1 now').wait_for()
            assert page.evaluate('[tones, notices.length]') == [0, 0], 'nobody has asked for them'
            page.locator('.history summary').click()
            line = page.locator('.history li').inner_text()
            assert re.fullmatch(r'[\d-]{10} [\d:]{8} .*rows/s.*\d.*', line), line
            page.get_by_role('button', name='Sound').click()
            page.get_by_role('button', name='Notify').click()
            wait(page, '() => tones === 2 && document.querySelectorAll(".history [aria-pressed=true]").length === 2')
            page.get_by_role('combobox', name='Alert').fill('rows/s > 0.02')
            page.get_by_role('combobox', name='Alert').press('Enter')
            wait(page, '() => tones === 4 && notices.length === 1')
            assert page.evaluate('notices[0]').startswith('live.h5: ')
            # the history survives a reload, the choice as well
            page.reload()
            page.locator('.history summary').filter(has_text='Alerts: 2').wait_for()
            assert page.locator('.history [aria-pressed=true]').count() == 2
            keep(page, 'history', tmp_path)


def test_live_files_in_turn(chromium, tmp_path):  # noqa: F811
    with growing(tmp_path) as served:  # noqa: F811
        for name in ('two.h5', 'third.h5'):
            shutil.copy(served / 'live.h5', served / name)
        with Server(served) as server, opened(chromium, server, './') as page:
            page.get_by_role('link', name='Show 3 live files in turn').wait_for()
            for width in WIDTHS:
                page.set_viewport_size({'width': width, 'height': 800})
                assert page.evaluate('document.documentElement.scrollWidth') <= width, width
                keep(page, 'board-%d' % width, tmp_path)
            page.get_by_role('link', name='Show 3 live files in turn').click()
            page.wait_for_url('**file=live.h5*rotate=30*')
            page.get_by_role('button', name='Next').click()
            page.wait_for_url('**file=third.h5*')
            assert query(page)['rotate'] == ['30']
            page.goto(urllib.parse.urljoin(server.root, plots('third.h5', plots='waterfall', rotate=5, colours='grey', **{'waterfall.x': '1..2'})))
            page.wait_for_url('**file=two.h5*')
            found = query(page)
            assert found['colours'] == ['grey'] and found['plots'] == ['waterfall'] and 'waterfall.x' not in found
            page.wait_for_url('**file=live.h5*')
            page.get_by_role('button', name='Stay').click()
            page.wait_for_timeout(7000)
            assert query(page)['file'] == ['live.h5'] and 'rotate' not in query(page)


# ---- widths, keys, axe ----------------------------------------------------------------------------------------------

PAGES = {'list': './', 'plots': plots('my.h5'), 'calibration': plots('night/gains/a.cal'), 'image': plots('night/a.image'),
         'explorer': 'explore.html?file=my.h5'}

OVERFLOW = '''() => [...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > innerWidth + 1
    && getComputedStyle(one).visibility !== 'hidden' && !one.closest('.viewer, .unseen, .u-wrap, ol, .keys')).map(one => one.outerHTML.slice(0, 120))'''
SMALL = '''() => [...document.querySelectorAll('a, button, select, input, summary')].filter(one => !one.closest('.viewer')).map(one => [one, one.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0 && (box.height < 43.5 || box.width < 43.5)).map(([one, box]) => `${box.width} x ${box.height} ${one.outerHTML.slice(0, 100)}`)'''


def ready(page, name):
    if name == 'list':
        page.locator('tr[data-file="my.h5"]').wait_for()
    elif name == 'explorer':
        page.get_by_text('DATA (amplitude)').wait_for()    # H5Web folds its tree on a phone
    else:
        wait_for_plots(page, {'plots': KINDS, 'calibration': ['amp_time', 'phase_time'], 'image': ['image']}[name])


@pytest.mark.parametrize('name', PAGES)
def test_every_width(chromium, served, name, tmp_path):  # noqa: F811
    """Nothing reaches beyond the screen, and fingers hit everything on a phone."""
    for width in WIDTHS:
        scheme = 'dark' if width in (390, 1400) else 'light'
        with opened(chromium, served, PAGES[name], width=width, height=800, color_scheme=scheme) as page:
            ready(page, name)
            assert page.evaluate('document.documentElement.scrollWidth') <= width, width
            assert page.evaluate(OVERFLOW) == [], width
            if width < 720:
                assert page.evaluate(SMALL) == [], width
                if name == 'plots':
                    # the controls are folded, and the plots have the width
                    assert not page.get_by_label('Colours').is_visible()
                    page.locator('.fold summary').click()
                    page.get_by_label('Colours').wait_for()
                    assert page.evaluate(SMALL) == [] and page.evaluate('document.documentElement.scrollWidth') <= width
                    page.locator('.fold summary').click()
                    over, box = (page.locator('#waterfall ' + part).bounding_box() for part in ('.u-over', '.panel'))
                    assert over['width'] > 0.55 * box['width'] > 0.5 * width
                    assert page.get_by_role('link', name='Sources').is_visible() and page.get_by_role('link', name='Explore').is_visible()
            keep(page, '%s-%d-%s' % (name, width, scheme), tmp_path, full_page=name != 'explorer')


AXE = importlib.util.find_spec('axe_playwright_python')


@pytest.mark.skipif(AXE is None, reason='axe-playwright-python is not installed')
@pytest.mark.parametrize('scheme', ['light', 'dark'])
@pytest.mark.parametrize('name', PAGES)
def test_axe_finds_nothing(chromium, served, name, scheme):  # noqa: F811
    """The rules of axe-core, on all of the list and the plots; in the explorer on the parts that are not H5Web's."""
    script = os.path.join(os.path.dirname(AXE.origin), 'axe.min.js')
    for width in (390, 1400):
        with opened(chromium, served, PAGES[name], width=width, color_scheme=scheme) as page:
            ready(page, name)
            with open(script) as file:
                page.evaluate(file.read())
            found = page.evaluate('exclude => axe.run({exclude}, {resultTypes: ["violations"]})', ['.viewer'])
            assert [(rule['id'], [node['html'][:150] for node in rule['nodes']]) for rule in found['violations']] == []


@pytest.mark.parametrize('name', ['list', 'plots'])
def test_keyboard_reaches_all(chromium, served, name):  # noqa: F811
    """Tab stops at everything that the mouse can use, and shows where it is."""
    with opened(chromium, served, PAGES[name]) as page:
        ready(page, name)
        page.evaluate('''() => { let n = 0; for (const one of document.querySelectorAll('a, button, select, input, summary, [tabindex]'))
            if (one.offsetParent && !one.disabled) one.dataset.stop = String(n++); window.stops = n; document.activeElement.blur(); }''')
        count, reached = page.evaluate('stops'), set()
        for _ in range(count + 20):
            page.keyboard.press('Tab')
            reached.add(page.evaluate('document.activeElement.dataset.stop'))
            assert page.evaluate('document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== "none"')
        assert {str(number) for number in range(count)} <= reached
        if name == 'list':
            page.get_by_role('button', name='Rows', exact=True).focus()
            page.keyboard.press('Enter')
            assert query(page)['sort'] == ['Rows']
        else:
            page.locator('#waterfall').get_by_role('button', name='Large').focus()
            page.keyboard.press('Enter')
            wait(page, '() => location.search.includes("large=waterfall")')
