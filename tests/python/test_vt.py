"""vt archives: fixtures into HDF5, packed tables read by an independent decoder, packs that are killed, damaged stores."""
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import time

import h5py
import pytest

import support
from support import DAMAGED, decoder, h5bridge, sha256

FIXTURES = os.path.join(support.SHARED, 'fixtures', 'vt')
DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')

needs_fixtures = support.needs(FIXTURES)
needs_decoder = support.needs_decoder('vt')


def entries(negative):
    """The entries of the manifest that have a tree, or are to be refused."""
    found = support.manifest(FIXTURES, negative)
    return found if negative else [entry for entry in found if 'last' in entry['expect']]


def name_of(entry):
    return entry['name']


def archive_of(entry):
    return os.path.join(FIXTURES, entry['path'], entry['archive'])


def tree(folder):
    """{path: SHA-256} of all files below a folder."""
    return {path: sha256(data) for path, data in support.tree(folder).items()}


def expected(entry):
    """{path: SHA-256} of the files of a fixture, hard links followed."""
    last = entry['expect']['last']
    by_uuid = {item['uuid']: item for item in last.values() if item['type'] == 'file' and 'uuid' in item}
    found = {}
    for name, item in last.items():
        if item['type'] == 'indirect':
            item = by_uuid[item['uuid']]
        if item['type'] == 'file':
            found[name] = item['sha256']
    return found


@needs_fixtures
@pytest.mark.parametrize('entry', entries(False), ids=name_of)
def test_fixture(entry, tmp_path):
    copy, hdf5 = str(tmp_path / 'copy'), str(tmp_path / 'a.h5')
    h5bridge('unpack', archive_of(entry), copy)
    assert tree(copy) == expected(entry)
    h5bridge('pack', archive_of(entry), hdf5, '--format', 'hdf5')
    datasets = {}
    with h5py.File(hdf5) as f:
        f.visititems(lambda name, item: datasets.update({name: sha256(item[()].tobytes())})
                     if isinstance(item, h5py.Dataset) else None)
        # visititems names each object once; the others are hard links to one of these
        assert set(datasets.values()) == set(expected(entry).values())
        for name, digest in expected(entry).items():
            if '\\' not in name and '\0' not in name:
                assert sha256(f[name][()].tobytes()) == digest
    again = str(tmp_path / 'again.vt')
    h5bridge('pack', hdf5, again, '--format', 'vt')
    h5bridge('verify', '--bytes', archive_of(entry), again)


@needs_fixtures
@pytest.mark.parametrize('entry', entries(True), ids=name_of)
def test_refused(entry, tmp_path):
    text = h5bridge('unpack', archive_of(entry), str(tmp_path / 'copy'), code=DAMAGED).stderr
    assert len(text.strip().splitlines()) <= 2 and not os.path.exists(tmp_path / 'copy')


@needs_decoder
def test_independent_decoder(tmp_path):
    decode = decoder('vt')
    archive = str(tmp_path / 'demo.vt')
    h5bridge('pack', DEMO, archive, '--format', 'vt')
    store = decode.Store([str(tmp_path / 'store' / 'data')])
    entries = decode.archive(archive)
    assert [entry[2]['name'] for entry in entries] == ['demo.ms']
    found = {name: item['sha256'] for name, item in decode.walk(store, entries[-1][2]).items() if item['type'] == 'file'}
    assert found == tree(DEMO)


def test_table_in_place(tmp_path):
    """A table in an archive, also in a MultiFile there, is a source for every verb; a second pack adds a line."""
    packed, archive = str(tmp_path / 'packed.ms'), str(tmp_path / 'a.vt')
    h5bridge('pack', DEMO, packed)
    for source in [DEMO, packed]:
        h5bridge('pack', source, archive, '--format', 'vt')
        assert support.digest(archive) == support.digest(DEMO)
        h5bridge('verify', '--bytes', source, archive)
    second = json.loads(h5bridge('pack', DEMO, archive, '--format', 'vt', '--json').stdout)
    assert second['stored_bytes'] < 400
    dates = json.loads(h5bridge('ls', '--json', archive).stdout)['history']
    assert len(dates) == 3
    h5bridge('to-hdf5', f'{archive}/{dates[1]}', str(tmp_path / 'old.h5'))
    h5bridge('verify', DEMO, str(tmp_path / 'old.h5'))
    assert 'rows' in h5bridge('info', f'{archive}/demo.ms/ANTENNA').stdout


def test_killed(tmp_path):
    """A pack that is killed at any moment leaves an archive and a store that the next one completes."""
    source, archive = tmp_path / 'src', str(tmp_path / 'a.vt')
    source.mkdir()
    generator = random.Random(1)
    (source / 'noise').write_bytes(generator.randbytes(60_000_000))
    (source / 'small').write_bytes(b'small')
    for delay in [0.01, 0.05, 0.1, 0.2, 0.4]:
        process = subprocess.Popen([support.H5BRIDGE, '-q', 'pack', str(source), archive, '--format', 'vt'])
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if os.path.exists(archive) and os.path.getsize(archive):
            h5bridge('verify', '--bytes', str(source), archive)
    h5bridge('pack', str(source), archive, '--format', 'vt')
    h5bridge('verify', '--bytes', str(source), archive)
    data = tmp_path / 'store' / 'data'
    # what was there when a process was killed is not written a second time, but for its last megabytes
    assert sum(path.stat().st_size for path in data.iterdir()) < 70_000_000


def test_concurrent(tmp_path):
    archive = str(tmp_path / 'a.vt')
    command = [support.H5BRIDGE, '-q', 'pack', DEMO, archive, '--format', 'vt']
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    dates = json.loads(h5bridge('ls', '--json', archive).stdout)['history']
    assert len(dates) == 4
    for date in set(dates):
        h5bridge('verify', '--bytes', DEMO, f'{archive}/{date}')


def test_damage_is_named(tmp_path):
    archive = str(tmp_path / 'a.vt')
    h5bridge('pack', DEMO, archive, '--format', 'vt')
    (vtd,) = (tmp_path / 'store' / 'data').iterdir()
    data = bytearray(vtd.read_bytes())
    data[len(data) // 2] ^= 0x20
    vtd.write_bytes(data)
    text = h5bridge('unpack', archive, str(tmp_path / 'copy'), code=DAMAGED).stderr
    assert 'block sha1:' in text and vtd.name in text and 'block at byte' in text
    shutil.rmtree(tmp_path / 'store')
    text = h5bridge('unpack', archive, str(tmp_path / 'copy'), code=DAMAGED).stderr
    assert 'no directory beside the archive' in text
