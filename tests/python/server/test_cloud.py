"""--profile cloud: requests and bytes over HTTP, space, and the same values as in the default file."""
import os
import shutil
import subprocess

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import compare
import support
from range_server import RangeFileSystem, RangeServer
from support import h5bridge

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
PAGE = 128 << 10
STRINGS = ('ANTENNA/NAME', 'ANTENNA/STATION', 'FIELD/NAME', 'SPECTRAL_WINDOW/NAME')
# the reader's page buffer holds all pages of metadata
PAGE_BUFFER = 64 << 20


@pytest.fixture(scope='module')
def grown(tmp_path_factory):
    """A MeasurementSet of the demo's structure with 60,000 rows of 32 channels: 60 MB of noise, and its two files."""
    folder = tmp_path_factory.mktemp('cloud')
    source = str(folder / 'grown.ms')
    shutil.copytree(DEMO, source)
    shutil.rmtree(source)
    with ct.table(DEMO, ack=False) as table:
        whole = table.copy(source, deep=True, valuecopy=True)
        whole.close()
    rng = np.random.default_rng(5)
    rows = 60000
    with ct.table(source, ack=False, readonly=False) as table:
        shape = table.getcell('DATA', 0).shape
        table.addrows(rows - table.nrows())
        names = [name for name in table.colnames() if name not in ('FLAG_CATEGORY',) and table.iscelldefined(name, 0)]
        for name in names:
            first = np.asarray(table.getcell(name, 0))
            for start in range(0, rows, 10000):
                count = min(10000, rows - start)
                if name in ('DATA', 'MODEL_DATA', 'CORRECTED_DATA') and first.shape == shape:
                    values = rng.normal(size=(count, *shape, 2)).astype('f4').view('c8')[..., 0]
                elif name == 'TIME':
                    values = 4.6e9 + (start + np.arange(count)) // 21 * 10.0
                elif name == 'UVW':
                    values = rng.normal(size=(count, 3)) * 1000
                else:
                    values = np.broadcast_to(first, (count, *first.shape)).copy()
                table.putcol(name, values, start, count)
    files = {}
    for profile in ('default', 'cloud'):
        files[profile] = str(folder / (profile + '.h5'))
        h5bridge('to-hdf5', '--profile', profile, source, files[profile])
    return source, files


def open_and_slice(file, columns):
    """What xarray does to open a tree: all groups, datasets and attributes; then ten rows."""
    def visit(_, item):
        for _, value in item.attrs.items():
            assert value is not None
        if isinstance(item, h5py.Dataset):
            assert item.shape is not None and (item.chunks or True)
    file.visititems(visit)
    for name in STRINGS:
        file[name][...]
    return [file['MAIN'][name][100:110] for name in columns]


def measured(path, columns, cache='none', block=None, buffer=PAGE_BUFFER):
    """Requests and bytes to open a file and read ten rows."""
    with RangeServer(os.path.dirname(path)) as server:
        opened = RangeFileSystem(server).open(os.path.basename(path), cache_type=cache, block_size=block)
        options = {'page_buf_size': buffer} if buffer else {}
        with h5py.File(opened, 'r', **options) as file:
            found = open_and_slice(file, columns)
        with h5py.File(path) as local:
            for name, values in zip(columns, found):
                assert np.array_equal(values, local['MAIN'][name][100:110])
        return server.requests, server.bytes


def test_requests_and_bytes(grown):
    _, files = grown
    scalars = ('TIME', 'ANTENNA1', 'UVW')
    table = [('default, no cache', measured(files['default'], scalars, buffer=None)),
             ('cloud, no cache', measured(files['cloud'], scalars)),
             ('default, blockcache', measured(files['default'], scalars, 'blockcache', 1 << 20, None)),
             ('cloud, blockcache', measured(files['cloud'], scalars, 'blockcache', 1 << 20)),
             ('default, ten rows of DATA', measured(files['default'], ('DATA',), buffer=None)),
             ('cloud, ten rows of DATA', measured(files['cloud'], ('DATA',)))]
    for name, (requests, size) in table:
        print('%-28s %4d requests %8.3f MB' % (name, requests, size / 1e6))
    requests, size = table[1][1]
    assert requests <= 15 and size <= 2e6
    # one chunk more; and many times as many requests without the profile
    assert table[5][1][0] <= 16 and table[5][1][1] <= 2e6 + 4.5e6
    assert table[0][1][0] > 10 * requests


def test_ros3(grown):
    """HDF5's own driver for object stores, if a tool here has it: h5py and netCDF4 from PyPI have not."""
    tool = shutil.which('h5ls')
    listed = subprocess.run([tool, '--help'], capture_output=True, text=True) if tool else None
    help_text = listed.stdout + listed.stderr if listed else ''
    if 'ros3' not in help_text:
        pytest.skip('no h5ls with the driver ros3')
    _, files = grown
    with RangeServer(os.path.dirname(files['cloud'])) as server:
        done = subprocess.run([tool, '--vfd=ros3', '-r', server.url('cloud.h5')],
                              capture_output=True, text=True, timeout=120)
        local = subprocess.run([tool, '-r', files['cloud']], capture_output=True, text=True, timeout=120)
        print('h5ls with ros3: %d requests, %.3f MB' % (server.requests, server.bytes / 1e6))
    assert done.stdout == local.stdout and server.requests > 0


def test_space(grown):
    _, files = grown
    sizes = {name: os.path.getsize(path) for name, path in files.items()}
    print(sizes, sizes['cloud'] / sizes['default'])
    assert sizes['cloud'] <= 1.05 * sizes['default']


def test_pages_and_chunks(grown):
    _, files = grown
    with h5py.File(files['cloud']) as file:
        plist = file.id.get_create_plist()
        assert plist.get_file_space_strategy()[0] == h5py.h5f.FSPACE_STRATEGY_PAGE
        assert plist.get_file_space_page_size() == PAGE
        data = file['MAIN/DATA']
        assert 4 << 19 <= np.prod(data.chunks) * data.dtype.itemsize <= 16 << 20
    with h5py.File(files['default']) as file:
        assert file.id.get_create_plist().get_file_space_strategy()[0] != h5py.h5f.FSPACE_STRATEGY_PAGE


def test_values(grown, tmp_path):
    source, files = grown
    with h5py.File(files['cloud']) as file:
        rows = list(range(0, 60000, 997))
        with ct.table(source, ack=False) as table:
            for name in ('DATA', 'TIME', 'FLAG', 'UVW'):
                for row in rows:
                    assert np.array_equal(file['MAIN'][name][row], table.getcell(name, row)), (name, row)
    for pair in [(source, files['cloud']), (files['default'], files['cloud'])]:
        assert 'equal' in h5bridge('verify', *pair).stderr
    assert 'equal' in h5bridge('verify', files['cloud']).stderr
    back = tmp_path / 'back.ms'
    h5bridge('to-ms', files['cloud'], back)
    assert 'equal' in h5bridge('verify', source, back).stderr


@pytest.mark.parametrize('options', ['', '--appendable', '--compress none', '--restorable', '--average time=20s,chan=4'])
def test_with_other_options(options, tmp_path):
    out = tmp_path / 'out.h5'
    done = h5bridge('to-hdf5', '--profile', 'cloud', *options.split(), DEMO, out)
    assert 'profile cloud' in done.stderr
    if 'average' not in options:
        with h5py.File(out) as file:
            assert not compare.compare(DEMO, file)
    assert 'equal' in h5bridge('verify', *([DEMO] if 'none' in options else []), out).stderr
    if 'restorable' in options:
        h5bridge('to-ms', '--exact', out, tmp_path / 'back.ms')
        assert 'equal' in h5bridge('verify', '--bytes', DEMO, tmp_path / 'back.ms').stderr


def test_dry_run(tmp_path):
    done = h5bridge('to-hdf5', '--profile', 'cloud', '--dry-run', DEMO, tmp_path / 'out.h5')
    assert 'profile cloud: pages of 128.00 KiB' in done.stdout + done.stderr
