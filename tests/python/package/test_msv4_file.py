"""Files by the schema MSv4: what options make of them, what other programs change in them, damage, and large cells.

That all MeasurementSets and traps travel there and back is in test_msv4.py."""
import json
import os
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray
from casacore import tables

import support

pytest.importorskip('h5bridge', reason='the Python package is not installed: scripts/setup-python', exc_type=ImportError)
pytest.importorskip('xradio.schema.check')
pytest.importorskip('xradio.measurement_set')
import h5bridge  # noqa: E402

from test_msv4 import DEMO, TWO, check_plain, check_set, open_set  # noqa: E402


def converted(source, out, *options):
    support.h5bridge('to-hdf5', '--schema', 'msv4', *options, source, out)
    return out


def made(tmp_path, *words):
    path = str(tmp_path / 'made.ms')
    script = os.path.join(support.ROOT, 'scripts', 'bench.d', 'make_ms.py')
    subprocess.run([sys.executable, script, path, *map(str, words)], check=True, capture_output=True)
    return path


@pytest.mark.parametrize('sizes,chunk', [((3, 40, 96), (1, 274, 96, 4)), ((2, 2, 40000), (1, 1, 20000, 4)), ((40, 4, 8), (40, 10, 8, 4))],
                         ids=['baselines', 'channels', 'whole'])
def test_chunks(sizes, chunk, tmp_path):
    """Chunks of 1 MiB cut baselines, or channels; all elements are found."""
    path = made(tmp_path, *sizes)
    check_set(path)
    out = converted(path, tmp_path / 'made.h5')
    with h5py.File(out) as file:
        dataset = file['msv4/made_0/VISIBILITY']
        assert dataset.chunks == chunk and np.prod(dataset.chunks) * 8 <= 1 << 20


@pytest.mark.parametrize('options', [
    ('--where', 'SCAN_NUMBER == 1'), ('--average', 'time=20s'), ('--average', 'chan=4'), ('--profile', 'cloud'), ('--exclude', 'EXPOSURE,UVW'),
    ('--columns', 'DATA,FLAG,ANTENNA/NAME'), ('--exclude', 'FEED1,FIELD/CODE'), ('--compress', 'none', '--digest'), ('--compress', 'gzip:1'), ('--quicklook',),
    ('--threads', '1'), ('--max-memory', '64M'), ('--salvage',)], ids=' '.join)
def test_options(options, tmp_path):
    """The file has the rows and columns that a native file has, and its variables are those of its tables."""
    native, out = tmp_path / 'native.h5', converted(TWO, tmp_path / 'twospw.h5', *options)
    # columns that place rows are there without being named
    placing = 'TIME,ANTENNA1,ANTENNA2,DATA_DESC_ID,OBSERVATION_ID,PROCESSOR_ID,STATE_ID,FIELD_ID,SCAN_NUMBER,ARRAY_ID,FEED1,FEED2,INTERVAL,'
    support.h5bridge('to-hdf5', *(word.replace('DATA,', placing + 'DATA,') for word in options), TWO, native)
    support.h5bridge('verify', native, out)
    support.h5bridge('verify', out)
    support.h5bridge('lint', out)
    check_plain(out)
    with open_set(out) as tree, open_set(native) as expected:
        for part, other in zip(tree.children.values(), expected.children.values(), strict=True):
            assert set(part.data_vars) == set(other.data_vars)
            assert all(part[name].equals(other[name]) for name in other.data_vars)


def test_bytes_do_not_depend_on_threads(tmp_path):
    first, second = converted(TWO, tmp_path / 'a.h5', '--threads', '1'), converted(TWO, tmp_path / 'b.h5', '--threads', '7')
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize('options,said', [
    (('--rows', '0..10'), 'select rows by --where'), (('--appendable',), '--appendable: its axes of times do not grow'),
    (('--restorable',), 'the native schema keeps them'), (('--compress', 'shared'), 'tiles are not kept'), (('--hdf5', '1.8'), 'too large'),
    (('--tables', 'MAIN,ANTENNA'), 'made of all tables')], ids=lambda value: ' '.join(value) if isinstance(value, tuple) else '')
def test_refused_options(options, said, tmp_path):
    stderr = support.h5bridge('to-hdf5', '--schema', 'msv4', *options, DEMO, tmp_path / 'out.h5', code=support.USAGE).stderr
    assert '--schema msv4 does not go with ' + options[0] in stderr and said in stderr
    assert not os.listdir(tmp_path)


def test_other_sources(tmp_path):
    """Tables that are no MeasurementSet, and base data that are left out, are refused; a native file and a container are converted."""
    other = os.path.join(support.TESTDATA, 'shapes', 'shapes.tab')
    for words, said in (((other,), 'not a MeasurementSet'), (('--exclude', 'DATA', DEMO), 'no column DATA'), (('--exclude', 'FLAG', DEMO), 'no column FLAG')):
        stderr = support.h5bridge('to-hdf5', '--schema', 'msv4', *words, tmp_path / 'out.h5', code=support.UNSUPPORTED).stderr
        assert said in stderr
    native, container = tmp_path / 'native.h5', tmp_path / 'demo.mf'
    support.h5bridge('to-hdf5', DEMO, native)
    support.h5bridge('pack', DEMO, container)
    for number, source in enumerate((native, container)):
        out = converted(source, tmp_path / ('%d.h5' % number))
        support.h5bridge('verify', DEMO, out)
        again = tmp_path / ('again%d.h5' % number)
        support.h5bridge('to-hdf5', out, again)
        support.h5bridge('verify', DEMO, again)


def test_names_of_the_user_are_apart(tmp_path):
    """A subtable called msv4, and columns with the names of variables."""
    path = str(tmp_path / 'named.ms')
    shutil.copytree(DEMO, path)
    with tables.table(path, readonly=False, ack=False) as table:
        description = tables.maketabdesc([tables.makescacoldesc('VISIBILITY', 0), tables.makescacoldesc('cube0', 0), tables.makescacoldesc('_row', 0)])
        table.addcols(description)
        table.putcol('VISIBILITY', np.arange(table.nrows(), dtype=np.int32))
        with tables.table(path + '/msv4', tables.maketabdesc([tables.makescacoldesc('type', '')]), nrow=2, ack=False) as subtable:
            subtable.putcol('type', ['processing_set'] * 2)
            subtable.putkeyword('type', 'processing_set')
        table.putkeyword('msv4', 'Table: ' + path + '/msv4')
    check_set(path)


# ---- what other programs change --------------------------------------------------------------------------------------

def test_edits_of_hypercubes_travel(tmp_path):
    """Elements that h5py changes are those of the rows; also in channels that the file has reversed."""
    path = str(tmp_path / 'reversed.ms')
    shutil.copytree(TWO, path)
    with tables.table(path + '/SPECTRAL_WINDOW', readonly=False, ack=False) as windows:
        windows.putcell('CHAN_FREQ', 0, windows.getcell('CHAN_FREQ', 0)[::-1].copy())
    out, back = converted(path, tmp_path / 'reversed.h5'), str(tmp_path / 'back.ms')
    changed = {}
    with h5py.File(out, 'a') as file:
        for name, part in file['msv4'].items():
            part['VISIBILITY'][1, 2, 3, 0] = 1 + 2j
            part['FLAG'][0, 1, 2] = True
            changed[name] = int(part['_row'][1, 2]), int(part['_row'][0, 1])
    assert len(changed) == 2
    said = support.h5bridge('verify', out, code=support.DIFFERENT).stdout
    assert 'DATA' in said and 'FLAG' in said and '/msv4' not in said
    assert 'warning' not in support.h5bridge('to-ms', out, back).stderr
    with tables.table(path, ack=False) as before, tables.table(back, ack=False) as after:
        for row in range(before.nrows()):
            data, flag = before.getcell('DATA', row), before.getcell('FLAG', row)
            channels = range(len(data)) if before.getcell('DATA_DESC_ID', row) else range(len(data))[::-1]
            if row in [rows[0] for rows in changed.values()]:
                data[channels[3], 0] = 1 + 2j
            if row in [rows[1] for rows in changed.values()]:
                flag[channels[2]] = True
            assert (after.getcell('DATA', row) == data).all() and (after.getcell('FLAG', row) == flag).all(), row


def change(file, what):
    part = file['msv4/demo_0']
    if what == 'new dataset':
        part['NEW'] = [1, 2]
        return '/msv4/demo_0/NEW is not converted: no table has it'
    if what == 'new group':
        file['msv4'].create_group('other')
        return '/msv4/other is not converted: no table has it'
    if what == 'new attribute':
        part['UVW'].attrs['mine'] = 'x'
        return 'attribute mine of /msv4/demo_0/UVW is not converted'
    if what == 'attribute':
        part['VISIBILITY'].attrs['units'] = 'K'
        return 'attribute units of /msv4/demo_0/VISIBILITY is not converted'
    if what == 'derived':
        part['TIME_CENTROID'][2, 3] += 1
        return 'the values of /msv4/demo_0/TIME_CENTROID are not converted'
    if what == 'coordinate':
        part['antenna_xds/antenna_name'][1] = 'elsewhere'
        return 'the values of /msv4/demo_0/antenna_xds/antenna_name are not converted'
    if what == 'removed':
        del part['scan_name']
        return '/msv4/demo_0/scan_name is missing'
    if what == 'row map':
        part['_row'][0, 0] = 77
        return 'the values of /msv4/demo_0/_row are not converted'
    raise AssertionError(what)


@pytest.mark.parametrize('what', ['new dataset', 'new group', 'new attribute', 'attribute', 'derived', 'coordinate', 'removed', 'row map'])
def test_changes_in_no_table_are_said(what, tmp_path):
    out, back = converted(DEMO, tmp_path / 'demo.h5'), tmp_path / 'back.ms'
    with h5py.File(out, 'a') as file:
        said = change(file, what)
    assert said in support.h5bridge('to-ms', out, back).stderr
    assert '/msv4/' in support.h5bridge('verify', out, code=support.DIFFERENT).stdout
    assert said in support.h5bridge('to-hdf5', out, tmp_path / 'again.h5').stderr
    support.h5bridge('verify', DEMO, back)


def test_data_without_a_row_is_said(tmp_path):
    """A place of the grid that no row has: flags that are taken back there make no row."""
    path = str(tmp_path / 'without.ms')
    with tables.table(DEMO, ack=False) as table:
        table.selectrows([row for row in range(table.nrows()) if row != 3]).copy(path, deep=True).close()
    out = converted(path, tmp_path / 'without.h5')
    with h5py.File(out, 'a') as file:
        part = file['msv4/without_0']
        place = tuple(np.argwhere(part['_row'][...] < 0)[0])
        assert np.isnan(part['VISIBILITY'][place]).all() and part['FLAG'][place].all()
        part['FLAG'][place] = False
    assert 'the values of /msv4/without_0/FLAG are not converted' in support.h5bridge('to-ms', out, tmp_path / 'back.ms').stderr


def test_the_set_can_be_deleted_but_not_its_hypercubes(tmp_path):
    out = converted(DEMO, tmp_path / 'demo.h5')
    with h5py.File(out, 'a') as file:
        del file['msv4/demo_0/VISIBILITY']
    stderr = support.h5bridge('to-ms', out, tmp_path / 'back.ms', code=support.DAMAGED).stderr
    assert 'VISIBILITY' in stderr and 'DATA' in stderr
    assert not (tmp_path / 'back.ms').exists()


# ---- readers -----------------------------------------------------------------------------------------------------------

def test_axes_have_names_and_values(tmp_path):
    """What HDFView and H5Web draw: scales of each axis, and units."""
    out = converted(DEMO, tmp_path / 'demo.h5')
    with h5py.File(out) as file, open_set(DEMO) as tree:
        part, expected = file['msv4/demo_0'], tree['demo_0']
        data = part['VISIBILITY']
        assert [dim[0].name.rpartition('/')[2] for dim in data.dims] == list(expected.VISIBILITY.dims)
        assert (data.dims[0][0][...] == expected.time.values).all() and (data.dims[2][0][...] == expected.frequency.values).all()
        assert [text.decode() for text in data.dims[3][0][...]] == list(expected.polarization.values)
        assert part['time'].attrs['units'] == 's' and part['frequency'].attrs['units'] == 'Hz'
        groups = json.loads(part.attrs['data_groups'])
        assert groups['base']['correlated_data'] == 'VISIBILITY'
        assert 'DATA' in file['MAIN'] and not set(file['MAIN/DATA']) - {'row_cube', 'row_index'}


def test_virtualizarr(tmp_path):
    """The parser of HDF5 files reads the variables on grids; references of tables are refused in words."""
    virtualizarr = pytest.importorskip('virtualizarr')
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    out = converted(DEMO, tmp_path / 'demo.h5')
    with h5py.File(out) as file:
        part = file['msv4/demo_0']
        dropped = [name for name, member in part.items() if isinstance(member, h5py.Group) or member.dtype.kind == 'O']
    parser = virtualizarr.parsers.HDFParser(group='msv4/demo_0', drop_variables=dropped)
    store = parser('file://%s' % out, ObjectStoreRegistry({'file://': LocalStore()}))
    with xarray.open_zarr(store, consolidated=False, zarr_format=3) as dataset, open_set(DEMO) as tree:
        assert set(dataset.data_vars) == set(tree['demo_0'].data_vars)
        assert all(np.array_equal(dataset[name].values, values.values, equal_nan=True) for name, values in tree['demo_0'].data_vars.items())
    for words in ('refs', out), ('manifest', out, tmp_path / 'my.json'):
        stderr = support.h5bridge(*words, code=support.UNSUPPORTED).stderr
        assert 'by the schema MSv4, which needs no references' in stderr
    assert not (tmp_path / 'my.json').exists()


@pytest.mark.parametrize('kind', ['waterfall', 'spectrum', 'uv'])
def test_plots(kind, tmp_path):
    """Plots are those of the table."""
    # titles have the name
    out = tmp_path / 'twospw.ms'
    os.rename(converted(TWO, tmp_path / 'twospw.h5'), out)
    for source, image in ((TWO, 'table.png'), (out, 'file.png')):
        support.h5bridge('plot', source, kind, '--out', tmp_path / image)
    assert (tmp_path / 'table.png').read_bytes() == (tmp_path / 'file.png').read_bytes()


def test_engine_of_tables(tmp_path):
    """The engine without a schema, and the package, read the columns as ever."""
    out = converted(DEMO, tmp_path / 'demo.h5')
    with h5bridge.open_table(out) as found, h5bridge.open_table(DEMO) as expected:
        for name in ('DATA', 'FLAG', 'UVW', 'EXPOSURE'):
            assert np.array_equal(found[name][:], expected[name][:])
            assert np.array_equal(found[name][5:9], expected[name][5:9])
        assert np.array_equal(found['DATA'][7:200:13, 2:5, 1], expected['DATA'][7:200:13, 2:5, 1])
    with xarray.open_datatree(out, engine='h5bridge') as tree, xarray.open_datatree(DEMO, engine='h5bridge') as expected:
        assert (tree['MAIN'].DATA.values == expected['MAIN'].DATA.values).all()
