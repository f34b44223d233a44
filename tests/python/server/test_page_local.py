"""The page that shows a local file without a server, opened from the disk in a real browser: what it shows, compared with h5py, and
its answers, compared with those of `h5bridge serve`.

Builds the page with scripts/wasm unless H5BRIDGE_LOCAL_PAGE names one.
"""
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.error
import urllib.parse

import h5py
import numpy as np
import pytest

import support
from test_page import BROWSER, Server, contains, keep, numbers

playwright = pytest.importorskip('playwright.sync_api')

pytestmark = [
    pytest.mark.night('compiles to WebAssembly'),
    pytest.mark.skipif(BROWSER is None, reason='no browser'),
]

SECONDS = 60
BUILD_SECONDS = 3600    # a standard library is compiled on a machine without the target


@pytest.fixture(scope='module')
def local_page():
    page = os.environ.get('H5BRIDGE_LOCAL_PAGE')
    if not page:
        subprocess.run([os.path.join(support.ROOT, 'scripts', 'wasm')], check=True, timeout=BUILD_SECONDS)
        page = os.path.join(os.environ.get('CARGO_TARGET_DIR') or os.path.join(support.ROOT, 'target'), 'h5-page.html')
    return pathlib.Path(page).resolve()


@pytest.fixture(scope='module')
def native(tmp_path_factory):
    file = tmp_path_factory.mktemp('local') / 'demo.h5'
    support.h5bridge('to-hdf5', os.path.join(support.ROOT, 'testdata', 'demo', 'demo.ms'), file)
    return file


@pytest.fixture
def opened(local_page):
    """The page, opened by file://; nothing waits longer than SECONDS, and no request may leave the computer."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=['--disable-dev-shm-usage'], timeout=SECONDS * 1000)
        page = browser.new_page(viewport={'width': 1280, 'height': 900})
        page.set_default_timeout(SECONDS * 1000)
        errors, requests = [], []
        page.on('pageerror', lambda error: errors.append(str(error)))
        page.on('console', lambda message: errors.append(message.text) if message.type == 'error' else None)
        page.on('request', lambda request: requests.append(request.url))
        page.goto(local_page.as_uri())
        yield page
        assert errors == []
        assert [url for url in requests if not url.startswith(('file:', 'blob:', 'data:'))] == []
        browser.close()


def choose(page, file):
    page.locator('#file').set_input_files(str(file))
    page.get_by_role('treeitem').first.wait_for()


def test_local_file_is_shown_as_h5py_reads_it(opened, native, tmp_path):
    with h5py.File(native) as file:
        positions, units = file['ANTENNA/POSITION'][...], file['ANTENNA/POSITION'].attrs
        groups = [name for name in file if isinstance(file[name], h5py.Group)]
        name, text = next((name, value) for name, value in units.items() if isinstance(value, str) and value)
    choose(opened, native)
    assert opened.title() == 'demo.h5 - h5bridge'
    for group in groups:
        # MAIN gets a mark, as it says which column to draw: MAIN (NeXus group)
        opened.get_by_role('treeitem', name=re.compile('^%s( |$)' % group)).wait_for()
    opened.get_by_role('treeitem', name='ANTENNA', exact=True).click()
    opened.get_by_role('treeitem', name='POSITION', exact=True).click()
    opened.get_by_role('tab', name='Matrix').click()
    opened.get_by_text('Exact', exact=True).click()
    end = time.monotonic() + SECONDS
    while not contains(numbers(opened.locator('.viewer').inner_text()), positions.ravel().tolist()):
        assert time.monotonic() < end, opened.locator('.viewer').inner_text()
        time.sleep(0.2)
    keep(opened, 'local-matrix', tmp_path)
    opened.get_by_role('tab', name='Inspect').click()
    opened.get_by_text(name, exact=True).wait_for()
    opened.get_by_text(text, exact=False).first.wait_for()
    keep(opened, 'local-attributes', tmp_path)


def test_other_files_are_refused_in_words(opened, tmp_path):
    other = tmp_path / 'other.h5'
    other.write_bytes(b'not HDF5' * 100)
    opened.locator('#file').set_input_files(str(other))
    opened.get_by_text('other.h5 cannot be shown').wait_for()
    assert not opened.locator('.viewer').is_visible()


# ---- the program, as h5bridge serve answers -------------------------------------------------------------------------

@pytest.fixture(scope='module')
def program():
    subprocess.run(['cargo', 'build', '--workspace', '--bin', 'h5-page'], cwd=support.ROOT, check=True, timeout=BUILD_SECONDS)
    return os.path.join(os.environ.get('CARGO_TARGET_DIR') or os.path.join(support.ROOT, 'target'), 'debug', 'h5-page')


@pytest.fixture(scope='module')
def kinds(tmp_path_factory, native):
    """Files with elements of many types."""
    folder = native.parent
    with h5py.File(folder / 'kinds.h5', 'w') as file:
        for dtype in ('<i1', '>i2', '<u4', '>i8', '<u8', '<f2', '>f4', '<f8', '<c8', '>c16', '?'):
            file.create_dataset('numbers/' + dtype.strip('<>?') + 'b', data=(np.arange(24).reshape(4, 6) - 3).astype(dtype))
        file.create_dataset('packed', data=np.arange(3000).reshape(30, 100), chunks=(7, 30), compression='gzip', shuffle=True)
        file.create_dataset('fast', data=np.arange(3000.) // 7, chunks=(100,), compression='lzf', fletcher32=True)
        file['texts'] = np.array(['a', 'Kö"ln', ''], h5py.string_dtype())
        file['fixed'] = np.array([b'ab', b'c'])
        file['compound'] = np.array([(1, 2.5), (3, np.nan)], [('n', '<i4'), ('x', '>f8')])
        file['arrays'] = np.zeros(2, [('a', '<i2', (2, 3))])
        file['lists'] = np.array([np.arange(3), np.arange(1)], h5py.vlen_dtype('<i4'))
        file['levels'] = np.array([0, 1], h5py.enum_dtype({'LOW': 0, 'HIGH': 1}, 'u1'))
        file['reference'] = file['texts'].ref
        file['nothing'] = h5py.Empty('f4')
        file['soft'] = h5py.SoftLink('/packed')
        file['lost'] = h5py.SoftLink('/none')
        file['elsewhere'] = h5py.ExternalLink('none.h5', '/x')
        file['named'] = np.dtype('>f4')
        file.attrs['list'] = [1.5, np.inf]
        file.attrs['text'] = 'ü'
        file.attrs['nothing'] = h5py.Empty('i4')
    return folder


def requests(file):
    """Requests about each object of a file."""
    found = ['/']
    with h5py.File(file) as opened:
        opened.visit(lambda name: found.append('/' + name))
        datasets = {path for path in found if isinstance(opened[path], h5py.Dataset) and opened[path].size not in (None, 0)}
        axes = {path: opened[path].ndim for path in datasets}
    for path in [*found, '/lost', '/elsewhere']:
        yield 'meta', {'path': path}
        yield 'attr', {'path': path}
        if path in datasets:
            selection = {'selection': '0:5:2'} if axes[path] else {}
            yield 'data', {'path': path, **selection}
            yield 'data', {'path': path, **selection, 'flatten': 'true'}
            for kind in ({'format': 'bin', 'dtype': 'safe'}, {'format': 'bin'}, {'format': 'npy'}):
                yield 'data', {'path': path, **selection, **kind}
            yield 'stats', {'path': path, **selection}
    yield 'paths', {'path': '/'}


def near(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(near(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    return one == other or isinstance(one, float) and isinstance(other, float) and abs(one - other) <= 1e-12 * abs(one)


@pytest.mark.parametrize('name', ['kinds.h5', 'demo.h5'])
def test_answers_are_those_of_serve(program, kinds, name):
    file, differing, count = kinds / name, [], 0
    with Server(kinds) as server:
        for request, parameters in requests(file):
            words = ['%s=%s' % pair for pair in parameters.items()]
            run = subprocess.run([program, file, request, *words], capture_output=True, timeout=SECONDS)
            try:
                expected = server.get('api/%s?%s' % (request, urllib.parse.urlencode({'file': name, **parameters})))
            except urllib.error.HTTPError:
                expected = None
            count += 1
            mine = run.stdout if run.returncode == 0 else None
            is_json = parameters.get('format', 'json') == 'json'
            same = mine == expected if not is_json or None in (mine, expected) else near(json.loads(mine), json.loads(expected))
            if not same:
                differing.append((request, parameters, (mine or run.stderr)[:300], expected and expected[:300]))
    assert count > 50
    assert differing == [], '\n'.join(map(str, differing))
