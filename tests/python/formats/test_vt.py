"""vt archives: fixtures into HDF5, packed tables read by an independent decoder, packs that are killed, damaged stores."""
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
    # the plain command compares files where there are no tables
    assert 'equal' in h5bridge('verify', archive_of(entry), hdf5).stderr


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


MOMENTS = 24 if support.LONG else 8


def pack_command(source, archive):
    return [support.H5BRIDGE, '-q', 'pack', str(source), str(archive), '--format', 'vt']


def test_killed_at_many_moments(tmp_path):
    """After every `kill -9` all earlier entries can be read; a later pack writes only what is missing."""
    archive, sizes = tmp_path / 'a.vt', []
    data = tmp_path / 'store' / 'data'
    generator = random.Random(2)
    noise = generator.randbytes(20_000_000)
    for number in range(3):
        source = tmp_path / ('src%d' % number)
        source.mkdir()
        # half of each is in the one before
        (source / 'noise').write_bytes(noise[number * 5_000_000:][:10_000_000])
        (source / 'small').write_bytes(b'small %d' % number)
    subprocess.run(pack_command(tmp_path / 'src0', archive), check=True)
    known = [json.loads(h5bridge('ls', '--json', archive).stdout)['history'][0]]
    started = time.perf_counter()
    subprocess.run(pack_command(tmp_path / 'src1', archive), check=True)
    duration = time.perf_counter() - started
    for number in range(MOMENTS):
        process = subprocess.Popen(pack_command(tmp_path / 'src2', archive))
        time.sleep(duration * 1.3 * number / MOMENTS)
        process.send_signal(signal.SIGKILL)
        process.wait()
        h5bridge('verify', '--bytes', tmp_path / 'src0', f'{archive}/{known[0]}')
        sizes.append(sum(path.stat().st_size for path in data.iterdir()))
    subprocess.run(pack_command(tmp_path / 'src2', archive), check=True)
    h5bridge('verify', '--bytes', tmp_path / 'src2', archive)
    # 20 MB of noise: each byte is stored once, but for the last buffer of a killed process
    assert sum(path.stat().st_size for path in data.iterdir()) < 24_000_000, sizes
    assert not [path for path in tmp_path.iterdir() if path.name.endswith('.lock')]


def test_concurrent_packers_of_different_trees(tmp_path):
    """Packers with different trees, and one that another kills, share a store."""
    sources = []
    generator = random.Random(3)
    common = generator.randbytes(3_000_000)
    for number in range(4):
        source = tmp_path / ('src%d' % number)
        source.mkdir()
        (source / 'common').write_bytes(common)
        (source / 'own').write_bytes(generator.randbytes(3_000_000))
        sources.append(source)
    (tmp_path / 'vt').mkdir()
    archives = [tmp_path / 'vt' / ('%d.vt' % number) for number in range(3)] + [tmp_path / 'vt' / '0.vt']
    processes = [subprocess.Popen(pack_command(*pair)) for pair in zip(sources, archives)]
    assert [process.wait() for process in processes] == [0] * 4
    for source, archive in zip(sources, archives):
        h5bridge('verify', '--bytes', source, '%s/%s' % (archive, source.name))
    # what several wrote at the same time is found once by the next
    again = json.loads(h5bridge('pack', sources[3], tmp_path / 'vt' / '0.vt', '--format', 'vt', '--json').stdout)
    assert again['stored_bytes'] < 400


def test_the_lock_file_of_the_original(tmp_path):
    source, archive, lock = tmp_path / 'src', tmp_path / 'a.vt', tmp_path / 'a.vt.lock'
    source.mkdir()
    (source / 'x').write_bytes(b'x' * 100)
    lock.touch()
    process = subprocess.Popen(pack_command(source, archive))
    time.sleep(1)
    assert process.poll() is None and not archive.read_bytes()
    lock.unlink()
    assert process.wait() == 0 and not lock.exists()
    h5bridge('verify', '--bytes', source, archive)
    lock.touch()
    message = h5bridge('pack', source, archive, '--format', 'vt', code=support.EXISTS).stderr
    assert 'a.vt.lock exists' in message
    lock.unlink()
    h5bridge('verify', '--bytes', source, archive)


def test_full_disk(tmp_path):
    """A full disk ends in exit code 8; what was archived stays, and with room the next pack goes on. Needs root."""
    disk, source = tmp_path / 'disk', tmp_path / 'src'
    disk.mkdir()
    source.mkdir()
    (source / 'x').write_bytes(random.Random(4).randbytes(1_000_000))
    if os.geteuid() or subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=3m', 'none', disk], capture_output=True).returncode:
        pytest.skip('cannot mount a small file system here')
    try:
        archive = disk / 'a.vt'
        h5bridge('pack', source, archive, '--format', 'vt')
        before = archive.read_bytes()
        (source / 'y').write_bytes(random.Random(5).randbytes(4_000_000))
        message = h5bridge('pack', source, archive, '--format', 'vt', code=support.NO_SPACE).stderr
        assert 'Traceback' not in message and archive.read_bytes() == before
        (source / 'y').unlink()
        h5bridge('verify', '--bytes', source, archive)
        subprocess.run(['mount', '-o', 'remount,size=9m', disk], check=True)
        (source / 'y').write_bytes(random.Random(5).randbytes(4_000_000))
        summary = json.loads(h5bridge('pack', source, archive, '--format', 'vt', '--json').stdout)
        # a part of it was written before the disk was full
        assert summary['stored_bytes'] < 3_500_000
        h5bridge('verify', '--bytes', source, archive)
    finally:
        subprocess.run(['umount', disk], check=True)


def test_nests(tmp_path):
    """A table in a MultiFile in a vt archive, alone and with its store in a SION file, opens in place."""
    folder, stores = tmp_path / 'src', tmp_path / 'stores'
    folder.mkdir()
    stores.mkdir()
    h5bridge('pack', DEMO, folder / 'one.mf', '--single-file', '--format', 'multifile')
    shutil.copytree(DEMO, folder / 'demo.ms')
    archive = stores / 'a.vt'
    h5bridge('pack', folder, archive, '--format', 'vt')
    for source in [archive / 'one.mf', archive / 'demo.ms', archive / 'src' / 'demo.ms']:
        assert support.digest(source) == support.digest(DEMO)
        h5bridge('to-hdf5', source, tmp_path / 'out.h5', '--overwrite')
        h5bridge('verify', DEMO, tmp_path / 'out.h5')
        assert 'rows' in h5bridge('info', source / 'ANTENNA').stdout
    h5bridge('pack', stores, tmp_path / 'all.sion', '--format', 'sion')
    inside = tmp_path / 'all.sion' / 'a.vt'
    assert support.digest(inside / 'one.mf') == support.digest(DEMO)
    assert support.digest(inside / 'demo.ms') == support.digest(DEMO)
    h5bridge('to-hdf5', inside / 'one.mf', tmp_path / 'nested.h5')
    h5bridge('verify', DEMO, tmp_path / 'nested.h5')


def test_identical_files_are_hard_links_in_hdf5(tmp_path):
    folder = tmp_path / 'src'
    (folder / 'in').mkdir(parents=True)
    data = random.Random(6).randbytes(300_000)
    for name in ['a', 'b', 'in/c']:
        (folder / name).write_bytes(data)
    (folder / 'other').write_bytes(data[:1000])
    h5bridge('pack', folder, tmp_path / 'a.vt', '--format', 'vt')
    h5bridge('to-hdf5', tmp_path / 'a.vt', tmp_path / 'a.h5')
    with h5py.File(tmp_path / 'a.h5') as f:
        assert f['a'] == f['b'] == f['in/c'] and f['a'] != f['other']
        assert f['a'].attrs['hash'].startswith('I{300000:B{hash:H{sha1:') and f['a'].attrs['hash'] == f['in/c'].attrs['hash']
        assert f['other'].attrs['hash'].startswith('B{hash:H{sha1:')
    assert os.path.getsize(tmp_path / 'a.h5') < 320_000


def archive_text(tmp_path, entry):
    """An archive with this entry, beside an empty store."""
    (tmp_path / 'store' / 'data').mkdir(parents=True, exist_ok=True)
    (tmp_path / 'store' / 'data' / 'a.vtd').write_bytes(b'\0\1x')
    (tmp_path / 'a.vt').write_text('2020-01-01T00:00:00+00:00 1577836800.0 %s\n' % entry)
    return tmp_path / 'a.vt'


def test_names_that_lead_elsewhere(tmp_path):
    """No entry of a directory becomes a path outside of the target."""
    for name in [b'../evil', b'..', b'.', b'', b'/tmp/evil', b'a/../../evil', b'a/b', b'a\0b', b'\xff']:
        for kind in [0, 1]:
            entry = bytes([kind, 2 | 4, len(name)]) + name
            archive = archive_text(tmp_path, 'D{"x":block:LB{%s}}' % entry.hex())
            h5bridge('unpack', archive, tmp_path / 'out', code=DAMAGED)
            assert sorted(os.listdir(tmp_path)) == ['a.vt', 'store'], name
    for name in ['../evil', '/tmp/evil', '..']:
        archive = archive_text(tmp_path, 'F{"%s":block:LB{78}}' % name)
        h5bridge('unpack', archive, tmp_path / 'out', code=DAMAGED)
        assert sorted(os.listdir(tmp_path)) == ['a.vt', 'store'], name


@pytest.mark.parametrize('block', [
    'SubB{block:RLE{span:9,octet:00},offset:5,span:30}', 'SubB{block:LB{6162},offset:3,span:1}',
    'SubB{block:RLE{span:9,octet:00},offset:18446744073709551615,span:2}',
    'B{hash:H{sha1:11f6ad8ec52a2984abaafd7c3b516503785c2072},span:2}', 'B{hash:H{sha1:%s},span:1}' % ('00' * 20),
    'B{hash:H{sha1:00},span:1}', 'B{hash:H{md5:%s},span:1}' % ('00' * 16), 'I{5:LB{00}}', 'I{LB{ff}}', 'Q{}',
    'SubB{offset:0,span:1,block:' * 100 + 'LB{00}' + '}' * 100, 'I{1:' * 100 + 'LB{00}' + '}' * 100])
def test_references_that_lie(block, tmp_path):
    """Spans larger than the data, hashes that fit nothing, references without end: one line, exit code 3."""
    archive = archive_text(tmp_path, 'F{"f":block:%s}' % block)
    message = h5bridge('unpack', archive, tmp_path / 'out', code=DAMAGED).stderr
    assert 'a.vt' in message and len(message.splitlines()) <= 2
    assert sorted(os.listdir(tmp_path)) == ['a.vt', 'store']


def test_every_flipped_byte_is_named(tmp_path):
    source = tmp_path / 'src'
    source.mkdir()
    (source / 'x').write_bytes(b'some text ' * 40 + random.Random(7).randbytes(200))
    archive = tmp_path / 'a.vt'
    h5bridge('pack', source, archive, '--format', 'vt')
    (vtd,) = (tmp_path / 'store' / 'data').iterdir()
    good = vtd.read_bytes()
    for at in range(0, len(good), 3):
        data = bytearray(good)
        data[at] ^= 1 << at % 8
        vtd.write_bytes(data)
        message = h5bridge('unpack', archive, tmp_path / 'out', code=DAMAGED).stderr
        assert vtd.name in message or 'block sha1:' in message, (at, message)
        assert not (tmp_path / 'out').exists()
    for length in range(0, len(good), 29):
        vtd.write_bytes(good[:length])
        h5bridge('unpack', archive, tmp_path / 'out', code=DAMAGED)


@needs_fixtures
def test_platonic_store(tmp_path):
    """Blocks are ranges of ordinary files; a file that was changed since no longer has them, and is named by the block."""
    entry = next(entry for entry in support.manifest(FIXTURES, False) if entry['name'] == 'vt_platonic')
    source, copy = tmp_path / 'platonic', tmp_path / 'copy'
    shutil.copytree(os.path.join(FIXTURES, entry['path']), source)
    h5bridge('unpack', source / 'store.vt', copy)
    assert tree(copy) == {name: item['sha256'] for name, item in entry['expect']['files'].items()}
    h5bridge('verify', '--bytes', source / 'store.vt', copy)
    # the same from a range within a file
    h5bridge('to-hdf5', source / 'store.vt', tmp_path / 'a.h5')
    with h5py.File(tmp_path / 'a.h5') as file:
        assert sha256(file['docs/b.bin'][100:14000].tobytes()) == sha256((copy / 'docs/b.bin').read_bytes()[100:14000])
    # two files of the length of another: the hash decides
    (source / 'store/data/docs/a2.bin').write_bytes(bytes(15000))
    (source / 'store/data/docs/c2.bin').write_bytes(bytes(15000))
    h5bridge('verify', '--bytes', source / 'store.vt', copy)
    shutil.rmtree(copy)
    data = source / 'store/data/docs/b.bin'
    for changed in (data.read_bytes()[:-1], b'x' + data.read_bytes()[1:], data.read_bytes()[:14999] + b'x'):
        data.write_bytes(changed)
        message = h5bridge('unpack', source / 'store.vt', copy, code=DAMAGED).stderr
        assert 'is missing from' in message and 'b.bin' in message and not copy.exists()


CS_VT = os.path.join(support.ROOT, '.venv', 'cs-vt', 'bin', 'python')


def listed_by_the_original(archive, store):
    """Lines of the last entry. The threads of cs.vt that index a new store may wait for each other for ever: it is asked up to three times."""
    words = [CS_VT, os.path.join(support.HERE, 'cs_vt_tree.py'), str(archive), str(store)]
    for _ in range(3):
        try:
            return subprocess.run(words, check=True, capture_output=True, text=True, timeout=100).stdout.splitlines()
        except subprocess.TimeoutExpired as error:
            late = error
    raise late


@support.needs(CS_VT)
@pytest.mark.parametrize('options', [[], ['--block-size', '4096']], ids=['content', 'fixed'])
def test_the_original_reads_what_is_written(options, tmp_path):
    """Two entries in one store; the second adds to the blocks of the first."""
    archive = tmp_path / 'a.vt'
    changed = tmp_path / 'demo.ms'
    shutil.copytree(DEMO, changed)
    (changed / 'a' / 'b').mkdir(parents=True)
    (changed / 'a' / 'b' / 'noise').write_bytes(random.Random(1).randbytes(1_000_000))
    (changed / 'a' / 'empty').touch()
    for source in (DEMO, changed):
        h5bridge('pack', source, archive, '--format', 'vt', *options)
        lines = listed_by_the_original(archive, tmp_path / 'store')
        assert {path: digest for digest, path in (line.split(' ', 1) for line in lines)} == tree(source)
