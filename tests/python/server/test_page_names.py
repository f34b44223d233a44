"""Names and texts of files are shown as text in a real browser: none becomes markup or runs, on any page of `h5bridge serve`.

Every place where a stranger's text may come to a page holds one: names of files and folders, groups, datasets, columns, attributes
and their values, antennas, fields, windows, correlations; and the address of the page itself.
"""
import os
import shutil
import urllib.parse

import casacore.tables as ct
import h5py
import pytest

import support
from test_page import BROWSER, KINDS, SECONDS, Server, chromium, plots, playwright, wait  # noqa: F401

pytestmark = pytest.mark.skipif(BROWSER is None, reason='no browser')

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
# a name of a file or an HDF5 link has no slash
NAME = '<img src=x onerror=hit()><svg onload=hit()>"\' onfocus=hit() x=\'"'
TEXT = NAME + '</script></style></title></textarea><script>hit()</script><a href="javascript:hit()">'
# what a page would have if a text had become markup
PLANTED = '() => document.querySelectorAll("[onerror],[onload],[onfocus],img[src=x],a[href^=javascript]").length'


def make_names(folder):
    """Hostile texts in a MeasurementSet, the native file of it, and an HDF5 file of another kind."""
    path = str(folder / (NAME + '.ms'))
    shutil.copytree(DEMO, path)
    for table, columns in {'ANTENNA': ['NAME', 'STATION'], 'FIELD': ['NAME'], 'SPECTRAL_WINDOW': ['NAME'],
                           'OBSERVATION': ['TELESCOPE_NAME', 'OBSERVER', 'PROJECT']}.items():
        with ct.table(os.path.join(path, table), readonly=False, ack=False) as opened:
            for column in columns:
                for row in range(opened.nrows()):
                    opened.putcell(column, row, '%s%d' % (TEXT, row))
    with ct.table(path, readonly=False, ack=False) as opened:
        opened.putkeyword('NOTE', TEXT)
        opened.putcolkeyword('TIME', 'QuantumUnits', [TEXT])
        opened.addcols(ct.maketabdesc([ct.makescacoldesc(NAME, 1.5)]))
    support.h5bridge('to-hdf5', path, folder / (NAME + '.h5'))
    (folder / NAME).mkdir()
    with h5py.File(folder / NAME / 'other.h5', 'w') as file:
        made = file.create_group(NAME)
        made.attrs[TEXT] = TEXT
        made[NAME] = [TEXT, TEXT]
        made['numbers'] = range(12)
        made['numbers'].attrs['units'] = TEXT
        made['numbers'].attrs['long_name'] = TEXT


@pytest.fixture(scope='module')
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp('named')
    make_names(folder)
    with Server(folder) as server:
        yield server


@pytest.fixture
def opened(chromium, served):  # noqa: F811
    """opened(address): a page whose scripts may call hit(); nothing of what is planted has become an element or has run."""
    context = chromium.new_context(viewport={'width': 1280, 'height': 900})
    context.set_default_timeout(SECONDS * 1000)
    page, refused = context.new_page(), []
    context.add_init_script('window.hits = 0; window.hit = () => { window.hits += 1; };')
    # a handler that the policy of the page keeps from running has become markup all the same
    page.on('console', lambda message: refused.append(message.text) if 'Content Security Policy' in message.text else None)
    page.on('dialog', lambda dialog: refused.append(dialog.message))
    page.request.get(served.url)

    def go(address):
        page.goto(urllib.parse.urljoin(served.root, address))
        return page
    yield go
    assert page.evaluate('window.hits') == 0 and refused == []
    assert page.evaluate(PLANTED) == 0
    context.close()


def test_the_test_sees_markup(chromium, served):  # noqa: F811
    """What `opened` looks for is there where a text does become markup."""
    context = chromium.new_context()
    page = context.new_page()
    page.set_content('<p></p>')
    page.evaluate('text => { window.hits = 0; window.hit = () => { window.hits += 1; }; document.querySelector("p").innerHTML = text; }', TEXT)
    wait(page, '() => window.hits > 0')
    assert page.evaluate(PLANTED) >= 3
    context.close()


def test_list(opened):
    page = opened('./')
    wait(page, 'name => [...document.querySelectorAll("tr[data-file] .name")].filter(cell => cell.textContent.includes(name)).length === 2', NAME)
    page.get_by_role('button', name=NAME + '/').wait_for()
    page.get_by_label('Filter').fill(NAME)
    wait(page, '() => location.search.includes("filter=")')


@pytest.mark.parametrize('ending', ['.ms', '.h5'])
def test_plots(opened, ending):
    page = opened(plots(NAME + ending))
    for kind in KINDS:
        page.locator('#' + kind).scroll_into_view_if_needed()
        wait(page, 'kind => document.getElementById(kind).dataset.state === "ready"', kind)
    wait(page, 'text => [...document.querySelectorAll("option")].some(option => option.textContent.includes(text))', TEXT)
    assert NAME in page.title() and TEXT in page.evaluate('document.body.textContent')


@pytest.mark.parametrize('file, path', [('/other.h5', NAME), ('/other.h5', NAME + '/' + NAME), ('/other.h5', NAME + '/numbers'),
                                        ('.h5', 'ANTENNA/NAME'), ('.h5', 'MAIN/' + NAME), ('.h5', 'MAIN/TIME'), ('.ms', 'MAIN/TIME')])
def test_explorer(opened, file, path):
    page = opened('explore.html?' + urllib.parse.urlencode({'file': NAME + file, 'path': '/' + path}))
    page.get_by_role('treeitem').first.wait_for()
    wait(page, 'text => document.body.textContent.includes(text)', path.rpartition('/')[2])
    page.get_by_role('tab', name='Inspect').click()
    if path != 'ANTENNA/NAME' and not path.endswith(NAME):
        wait(page, 'text => document.body.textContent.includes(text)', TEXT[:40])


@pytest.mark.parametrize('address', [
    plots(TEXT), 'explore.html?' + urllib.parse.urlencode({'file': TEXT, 'path': TEXT}),
    plots(NAME + '.ms', **dict.fromkeys(['spw', 'field', 'antenna', 'corr', 'scan', 'x', 'y', 'colours', 'theme', 'column', 'with'], TEXT)),
    './?' + urllib.parse.urlencode({'sort': TEXT, 'filter': TEXT, 'theme': TEXT}), urllib.parse.quote(TEXT), '?token=' + urllib.parse.quote(TEXT)])
def test_addresses(opened, address):
    """A link that a stranger sends."""
    page = opened(address)
    page.wait_for_load_state('networkidle')
    assert page.evaluate('document.body.textContent').strip()
