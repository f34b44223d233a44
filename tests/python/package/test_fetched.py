"""Tables of file objects and of fsspec's addresses: what is copied has the values of the source, and is removed."""
import gc
import gzip
import io
import os
import pickle
import sys
import zipfile

import numpy as np
import pytest

import h5bridge
import support

fsspec = pytest.importorskip('fsspec')

DEMO = support.own_copy('demo', 'demo.ms')


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    """Sources of each kind, in a folder and in the file system of memory."""
    folder = tmp_path_factory.mktemp('sources')
    h5bridge.to_hdf5(DEMO, folder / 'my.h5')
    h5bridge.pack(DEMO, folder / 'one.mf', single_file=True)
    memory = fsspec.filesystem('memory')
    for name in ('my.h5', 'one.mf'):
        memory.pipe('/there/' + name, (folder / name).read_bytes())
    memory.put(DEMO, '/there/my.ms', recursive=True)
    with zipfile.ZipFile(folder / 'my.zip', 'w') as archive:
        archive.write(folder / 'my.h5', 'in/my.h5')
        for top, _, names in os.walk(DEMO):
            for name in names:
                archive.write(os.path.join(top, name), os.path.join('in/my.ms', os.path.relpath(os.path.join(top, name), DEMO)))
    with gzip.open(folder / 'my.h5.gz', 'wb') as file:
        file.write((folder / 'my.h5').read_bytes())
    memory.put(str(folder / 'my.zip'), '/there/my.zip')
    return folder


@pytest.fixture(autouse=True)
def copies(tmp_path, monkeypatch):
    """The function that lists copies."""
    (tmp_path / 'temporary').mkdir()
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path / 'temporary'))
    return lambda: [name for name in os.listdir(tmp_path / 'temporary') if name.startswith('h5bridge-')]


def check(table, name='DATA'):
    with h5bridge.open_table(DEMO) as expected:
        assert np.array_equal(table[name][:], expected[name][:])


ADDRESSES = ['memory://there/my.h5', 'memory://there/one.mf', 'memory://there/my.ms', 'memory://there/my.ms/', 'zip://in/my.h5::{}/my.zip',
             'zip://in/my.ms::{}/my.zip', 'zip://in/my.h5::memory://there/my.zip', 'simplecache::memory://there/my.h5']


@pytest.mark.parametrize('address', ADDRESSES)
def test_addresses(address, source, copies):
    with h5bridge.open_table(address.format(source)) as table:
        check(table)
        assert list(table.subtables['ANTENNA']['NAME'][:])[:2] == ['A00', 'A01'] and table.nrows == 210
        assert len(copies()) == 1
    assert copies() == []


def test_addresses_of_files_here_are_not_copied(source, copies):
    with h5bridge.open_table(f'file://{source}/my.h5') as table:
        check(table)
        assert table.path == str(source / 'my.h5') and copies() == []


@pytest.mark.parametrize('address', ['memory://there/my.h5/ANTENNA', 'memory://there/my.ms/ANTENNA', 'memory://there/one.mf/ANTENNA'])
def test_subtables(address, copies, source):
    with h5bridge.open_table(address) as table, h5bridge.open_table(os.path.join(DEMO, 'ANTENNA')) as expected:
        assert list(table['NAME'][:]) == list(expected['NAME'][:])
    assert copies() == []


def test_file_objects(source, copies):
    content = (source / 'my.h5').read_bytes()
    middle = io.BytesIO(content)
    middle.seek(1000)
    for file in (io.BytesIO(content), middle, fsspec.open('memory://there/my.h5').open()):
        with h5bridge.open_table(file) as table:
            check(table)
            assert len(copies()) == 1
        assert copies() == []


def test_file_objects_of_files_here_are_not_copied(source, copies):
    for opening in (open(source / 'my.h5', 'rb'), fsspec.open(str(source / 'my.h5')).open()):
        with opening as file, h5bridge.open_table(file) as table:
            check(table)
            assert copies() == [] and table.path == str(source / 'my.h5')


def test_files_that_fsspec_would_open(source, copies):
    for file in (fsspec.open('memory://there/my.h5'), fsspec.open(str(source / 'my.h5.gz'), compression='gzip')):
        with h5bridge.open_table(file) as table:
            check(table)
            assert len(copies()) == 1


def test_universal_paths(source, copies):
    upath = pytest.importorskip('upath')
    for path in (upath.UPath('memory://there/my.h5'), upath.UPath('memory://there/my.ms')):
        with h5bridge.open_table(path) as table:
            check(table)
            assert len(copies()) == 1
    with h5bridge.open_table(upath.UPath(source / 'my.h5')) as table:
        check(table)
        assert copies() == []


def test_copies_last_as_long_as_something_reads_them(source, copies):
    table = h5bridge.open_table('memory://there/my.h5')
    antennas, view = table.subtables['ANTENNA'], table.rows(slice(0, 5))
    del table
    gc.collect()
    assert len(antennas['NAME'][:]) == 6 and view['TIME'][:].shape == (5,) and len(copies()) == 1
    del antennas, view
    gc.collect()
    assert copies() == []


def test_datasets_keep_copies(source, copies):
    pytest.importorskip('xarray')
    with h5bridge.open_table('memory://there/my.h5') as table:
        dataset = table.to_xarray()
    assert dataset.TIME.values.shape == (210,) and len(copies()) == 1
    del dataset
    gc.collect()
    assert copies() == []


@pytest.mark.parametrize('of', ['memory://there/my.h5', 'bytes'])
def test_pickles(of, source, copies):
    with h5bridge.open_table(io.BytesIO((source / 'my.h5').read_bytes()) if of == 'bytes' else of) as table:
        text = pickle.dumps(table.where('ANTENNA1 == 0'))
        count = table.where('ANTENNA1 == 0').nrows
    assert copies() == []
    with pickle.loads(text) as again:
        assert again.nrows == count > 0 and len(copies()) == 1


def test_verbs_take_the_copy(source, tmp_path):
    with h5bridge.open_table('memory://there/my.ms') as table:
        h5bridge.to_hdf5(table.rows(slice(0, 7)), tmp_path / 'part.h5')
        assert h5bridge.verify(table, DEMO)
    with h5bridge.open_table(tmp_path / 'part.h5') as part:
        assert part.nrows == 7


@pytest.mark.parametrize('address,kind', [('memory://there/no.h5', h5bridge.NotFoundError), ('memory://there/my.h5/NONE', h5bridge.NotFoundError),
                                          ('nothing://my.h5', ValueError)])
def test_missing(address, kind, source, copies):
    with pytest.raises(kind):
        h5bridge.open_table(address)
    gc.collect()
    assert copies() == []


def test_wrong_names_copy_nothing(source, copies, monkeypatch):
    """Not even the directory that the name would be in."""
    monkeypatch.setattr(type(fsspec.filesystem('memory')), 'get', lambda *_: pytest.fail('copied'))
    with pytest.raises(h5bridge.NotFoundError, match='memory://there/no.h5'):
        h5bridge.open_table('memory://there/no.h5')


def test_damaged_files_are_errors(copies):
    with pytest.raises(h5bridge.Error):
        h5bridge.open_table(io.BytesIO(b'not a table'))
    gc.collect()
    assert copies() == []
    with pytest.raises(TypeError, match='3'):
        h5bridge.open_table(3)


def test_names_that_lead_elsewhere_are_refused(tmp_path, copies):
    """No file is written outside the copy."""
    with zipfile.ZipFile(tmp_path / 'bad.zip', 'w') as archive:
        archive.writestr('my.ms/table.dat', b'x')
        archive.writestr('my.ms/../../../evil', b'x')
    with pytest.raises(h5bridge.UsageError, match=r'\.\.'):
        h5bridge.open_table(f'zip://my.ms::{tmp_path}/bad.zip')
    assert copies() == [] and not os.path.exists(tmp_path / 'evil')


def test_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, 'fsspec.core', None)
    with pytest.raises(ImportError, match=r"h5bridge\[fsspec\]"):
        h5bridge.open_table('memory://there/my.h5')
