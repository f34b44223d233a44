"""`h5bridge join --virtual`: one file over parts of a table, read by h5py, xarray, netCDF4 and h5dump (docs/howto/cluster.md, "Several files")."""
import json
import os
import shutil
import subprocess

import casacore.tables as ct
import h5py
import netCDF4
import numpy as np
import pytest
import xarray

import sharing
import support
from sharing import Tiles

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
ALL = ['--copy-below', '0']


def join(*words, code=support.DONE):
    process = support.h5bridge('join', '--virtual', '--json', *words, code=code)
    return json.loads(process.stdout) if code == support.DONE else process.stderr


def names(folder):
    return sorted(os.listdir(folder))


def split(source, folder, size):
    """Makes the parts of a table in a folder, and returns their paths."""
    os.makedirs(folder, exist_ok=True)
    support.h5bridge('shard', 'plan', source, folder / 'p.h5', '--split', size)
    support.h5bridge('batch', 'run', folder / 'p.h5.parts.ndjson', '--ledger', folder / 'l', '--min-free', '1M')
    return sorted(folder.glob('p-*.h5'))


@pytest.fixture(scope='module')
def demo(tmp_path_factory):
    """(folder, parts, the file that to-hdf5 makes of all rows): the MeasurementSet of testdata in three parts."""
    folder = tmp_path_factory.mktemp('demo')
    parts = split(DEMO, folder, '100K')
    assert len(parts) == 3
    support.h5bridge('to-hdf5', DEMO, folder / 'whole.h5')
    return folder, parts, folder / 'whole.h5'


@pytest.fixture
def own(demo, tmp_path):
    """(folder, parts) of this test."""
    return tmp_path, [shutil.copy(part, tmp_path) for part in demo[1]]


def test_a_joined_file_is_the_whole_one(demo):
    folder, parts, whole = demo
    document = join(folder / 'p.h5.parts.ndjson', folder / 'joined.h5', *ALL)
    assert document['parts'] == 3 and document['rows'] == 210 and document['tables'] == 13
    assert {'DATA', 'FLAG', 'UVW', 'TIME', 'ANTENNA1'} <= set(document['virtual_columns'])
    assert any('missing' in text for text in document['warnings'])
    # h5py: every dataset of the whole file, wherever the reader is
    seen = []

    def same(name, item):
        if not isinstance(item, h5py.Dataset) or name.startswith('_ctds'):
            return
        other = joined[name]
        assert other.dtype == item.dtype and other.shape == item.shape, name
        np.testing.assert_array_equal(other[()], item[()], err_msg=name)
        assert set(other.attrs) == set(item.attrs), name
        assert [scale.keys() for scale in other.dims] == [scale.keys() for scale in item.dims], name
        seen.append(other.is_virtual)
    with h5py.File(whole) as file, h5py.File(folder / 'joined.h5') as joined:
        file.visititems(same)
        assert sum(seen) == len(document['virtual_columns']) > 20 and len(seen) > 100
        data = joined['MAIN/DATA']
        assert np.isnan(data.fillvalue) and joined['MAIN/FLAG'].fillvalue and np.isnan(joined['MAIN/TIME'].fillvalue)
        assert joined['MAIN/ANTENNA1'].fillvalue == -2**31
        assert [source.file_name for source in data.virtual_sources()] == [part.name for part in parts]
    # xarray and netCDF4
    for group in ('MAIN', 'ANTENNA'):
        with xarray.open_dataset(folder / 'joined.h5', group=group, engine='h5netcdf') as found, \
                xarray.open_dataset(whole, group=group, engine='h5netcdf') as expected:
            xarray.testing.assert_identical(found.load(), expected.load())
    with netCDF4.Dataset(folder / 'joined.h5', auto_complex=True) as found, ct.table(DEMO, ack=False) as table:
        np.testing.assert_array_equal(found['MAIN/DATA'][...], table.getcol('DATA'))
        np.testing.assert_array_equal(found['MAIN/UVW'][...], table.getcol('UVW'))


@pytest.mark.skipif(not shutil.which('h5dump'), reason='h5dump is missing (Debian: hdf5-tools)')
def test_h5dump_reads_it(demo, tmp_path):
    folder, _, whole = demo
    join(*demo[1], folder / 'dumped.h5', *ALL)
    for name in ('MAIN/TIME', 'MAIN/DATA', 'MAIN/FLAG'):
        for number, path in enumerate((whole, folder / 'dumped.h5')):
            subprocess.run(['h5dump', '-d', '/' + name, '-b', 'FILE', '-o', tmp_path / str(number), path], check=True, capture_output=True)
        assert (tmp_path / '0').stat().st_size and (tmp_path / '0').read_bytes() == (tmp_path / '1').read_bytes(), name


def test_this_program_follows_only_where_told(own):
    folder, parts = own
    joined = folder / 'joined.h5'
    join(*parts, joined, *ALL)
    # the structure is in the file
    assert json.loads(support.h5bridge('info', '--json', joined).stdout)['tables']['.']['nrow'] == 210
    support.h5bridge('digest', joined, code=support.UNSUPPORTED)
    for words in (['verify', DEMO, joined], ['to-ms', joined, folder / 'x.ms']):
        assert '--follow-external' in support.h5bridge(*words, code=support.UNSUPPORTED).stderr, words
    support.h5bridge('verify', DEMO, joined, '--follow-external')
    support.h5bridge('to-ms', joined, folder / 'again.ms', '--follow-external')
    support.h5bridge('verify', DEMO, folder / 'again.ms')
    assert json.loads(support.h5bridge('lint', '--json', joined, code=None).stdout)['checked']['datasets'] > 100


def test_missing_parts_read_as_fill_values(own):
    folder, parts = own
    join(*parts, folder / 'joined.h5', *ALL)
    os.rename(parts[1], folder / 'elsewhere.h5')
    with h5py.File(folder / 'joined.h5') as file, h5py.File(folder / 'elsewhere.h5') as gone:
        first, count = gone['MAIN/row'][0], len(gone['MAIN/row'])
        data, flag, antenna = (file['MAIN'][name][...] for name in ('DATA', 'FLAG', 'ANTENNA1'))
        lost = np.zeros(210, bool)
        lost[first:first + count] = True
        assert np.isnan(data[lost]).all() and not np.isnan(data[~lost]).any()
        assert flag[lost].all() and not flag[~lost].all() and (antenna[lost] == -2**31).all() and (antenna[~lost] >= 0).all()
        # what docs/howto/cluster.md says finds it
        missing = {source.file_name for source in file['MAIN/DATA'].virtual_sources() if not os.path.exists(folder / source.file_name)}
        assert missing == {os.path.basename(parts[1])}
    support.h5bridge('verify', DEMO, folder / 'joined.h5', '--follow-external', code=support.DAMAGED)
    assert 'all parts have to' in join(*parts, folder / 'again.h5', code=support.DAMAGED) and not (folder / 'again.h5').exists()


def test_it_has_to_be_asked_for(own):
    folder, parts = own
    said = support.h5bridge('join', *parts, folder / 'joined.h5', code=support.USAGE).stderr
    for word in ('--virtual', 'fill values without an error', 'open_mfdataset', 'shard plan'):
        assert word in said
    assert 'HAZARD' in ' '.join(support.h5bridge('join', '--help').stdout.split())
    assert names(folder) == sorted(map(os.path.basename, parts))


def test_files_that_are_not_parts_of_one_table_are_refused(own, demo, tmp_path_factory):
    folder, parts = own
    before = names(folder)
    joined = folder / 'joined.h5'
    with h5py.File(parts[1]) as one, h5py.File(parts[2]) as two:
        first, second = one['MAIN/row'][0], two['MAIN/row'][0]
    assert 'begins with row %d' % first in join(*reversed(parts), joined, code=support.USAGE)
    assert 'begins with row %d of the table it was made of, row %d is expected' % (second, first) in join(
        parts[0], parts[2], joined, code=support.USAGE)
    assert 'named twice' in join(parts[0], parts[0], joined, code=support.USAGE)
    shutil.copytree(DEMO, folder / 'demo.ms')
    assert 'not a native HDF5 file' in join(parts[0], folder / 'demo.ms', joined, code=support.USAGE)
    shutil.rmtree(folder / 'demo.ms')
    assert 'one of its parts' in join(*parts, parts[2], '--overwrite', code=support.USAGE)
    assert 'exists already' in join(*parts, parts[2], code=support.EXISTS)
    assert 'not in or below' in join(*parts, tmp_path_factory.mktemp('other') / 'joined.h5', code=support.USAGE)
    # another table: other columns, other subtables
    few = folder / 'few.h5'
    support.h5bridge('to-hdf5', DEMO, few, '--exclude', 'DATA', '--rows', '72..144')
    assert 'column' in join(parts[0], few, joined, code=support.USAGE)
    shutil.copy(parts[1], folder / 'edited.h5')
    with h5py.File(folder / 'edited.h5', 'r+') as file:
        file['ANTENNA/POSITION'][0, 0] += 1
    said = join(parts[0], folder / 'edited.h5', parts[2], joined, code=support.USAGE)
    assert 'subtable ANTENNA: column POSITION' in said and 'in row 0' in said and 'edited.h5' in said
    # HDF5 takes % for a pattern
    os.rename(parts[1], folder / 'p%d.h5')
    assert '%' in join(parts[0], folder / 'p%d.h5', parts[2], joined, code=support.USAGE)
    assert names(folder) == sorted({*before, 'few.h5', 'edited.h5', 'p%d.h5'} - {os.path.basename(parts[1])})


def test_joined_file_without_its_parts_is_not_published(own):
    """The file is read as others read it before it gets its name: here HDF5 looks for the parts elsewhere."""
    folder, parts = own
    process = subprocess.run([support.H5BRIDGE, 'join', '--virtual', *parts, folder / 'joined.h5', *ALL], capture_output=True, text=True,
                             env={**os.environ, 'HDF5_VDS_PREFIX': '/nowhere'})
    assert process.returncode == support.UNSUPPORTED and 'HDF5_VDS_PREFIX' in process.stderr
    assert names(folder) == sorted(map(os.path.basename, parts))


def test_parts_below_and_small_columns(own):
    folder, parts = own
    os.makedirs(folder / 'a' / 'b')
    moved = [shutil.move(part, folder / 'a' / 'b') for part in parts]
    document = join(*moved, folder / 'joined.h5', '--copy-below', '50K', '--check', 'all')
    assert set(document['virtual_columns']) == {'DATA', 'WEIGHT_SPECTRUM'} and document['cells_compared'] > 5000
    assert names(folder) == ['a', 'joined.h5'] and len(names(folder / 'a' / 'b')) == 3
    os.rename(folder, str(folder) + '-moved')
    with h5py.File(str(folder) + '-moved/joined.h5') as file, ct.table(DEMO, ack=False) as table:
        np.testing.assert_array_equal(file['MAIN/DATA'][...], table.getcol('DATA'))
        assert not file['MAIN/TIME'].is_virtual
    os.rename(str(folder) + '-moved', folder)


def test_cells_of_differing_shapes(tmp_path):
    """Within a part, and only from part to part: the elements are virtual, where they are is copied."""
    columns = [Tiles('DATA', 'c8', (16, 4), [4, 16, 8], shapes=((8, 4), (40, 2))), Tiles('FLAG', '?', (16, 4), [4, 16, 8])]
    source = sharing.make(tmp_path / 'my.tab', columns, rows=350)
    for rows in ('0..150', '150..200', '200..350'):
        support.h5bridge('to-hdf5', source, tmp_path / ('p%s.h5' % rows[:3]), '--rows', rows)
    parts = [tmp_path / name for name in ('p0...h5', 'p150.h5', 'p200.h5')]
    with h5py.File(parts[1]) as file:
        assert isinstance(file['MAIN/DATA'], h5py.Dataset) and isinstance(h5py.File(parts[0])['MAIN/DATA'], h5py.Group)
    document = join(*parts, tmp_path / 'joined.h5', '--check', 'all', *ALL)
    assert set(document['virtual_columns']) == {'DATA', 'FLAG', 'TIME'}
    support.h5bridge('verify', source, tmp_path / 'joined.h5', '--follow-external')
    expected = sharing.values_of(source, columns[0])
    with h5py.File(tmp_path / 'joined.h5') as file:
        data = file['MAIN/DATA']
        assert data['values'].is_virtual and not data['offset'].is_virtual
        for row in (0, 99, 100, 149, 150, 199, 200, 349):
            first, last = data['offset'][row:row + 2]
            shape = [extent for extent in data['shape'][row] if extent >= 0]
            np.testing.assert_array_equal(data['values'][first:last].reshape(shape), expected[row])
