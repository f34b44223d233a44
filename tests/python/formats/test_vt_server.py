"""Stores of vt that are served: cs.vt's client with this server, this client with cs.vt's server, hostile packets."""
import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
import stat
import subprocess
import threading

import h5py
import pytest

import support
from support import DAMAGED, EXISTS, UNSUPPORTED, USAGE, h5bridge, sha256

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
CS_VT = os.path.join(support.ROOT, '.venv', 'cs-vt', 'bin', 'python')
PEER = os.path.join(support.HERE, 'cs_vt_peer.py')

needs_cs_vt = support.needs(CS_VT)

END = b'\3\0\2\0'
ADD_ABC = b'\x08\1\2\1\0\3abc'
ABC_ADDED = b'\x17\1\4\0' + hashlib.sha1(b'abc').digest()


def tree(folder):
    """{path: SHA-256} of all files below a folder."""
    return {path: sha256(data) for path, data in support.tree(folder).items()}


@pytest.fixture
def directory(tmp_path):
    """An empty store, in a folder of its own."""
    (tmp_path / 'vt' / 'store').mkdir(parents=True)
    return tmp_path / 'vt' / 'store'


@pytest.fixture(params=['directory', 'hdf5'])
def store(tmp_path, request):
    """An empty store in a directory, or the name of an HDF5 file that does not exist."""
    if request.param == 'directory':
        return request.getfixturevalue('directory')
    (tmp_path / 'vt').mkdir()
    return tmp_path / 'vt' / 'store.h5'


def as_directory(store):
    """The store, checked, as a directory beside its archives."""
    if store.suffix == '.h5':
        h5bridge('unpack', store, store.with_suffix(''))
        with h5py.File(store) as file:
            rows = file['data/blocks.vtd/FileData']
            data = (store.with_suffix('') / 'data' / 'blocks.vtd').read_bytes()
            assert rows[:].tobytes()[:len(data)] == data
        store.rename(store.parent.parent / store.name)
        store = store.with_suffix('')
    h5bridge('verify', '--bytes', store)
    return store


@contextlib.contextmanager
def served(store, *words):
    """A running server: its address, and after the end its messages."""
    command = [support.H5BRIDGE, 'vt', 'serve', str(store), *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
        process.terminate()
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0 and 'panicked' not in said, said
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def served_by_the_original(store):
    address = str(store.parent / 's')
    process = subprocess.Popen([CS_VT, PEER, 'server', str(store), address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        # the first import compiles its C extension, and says so
        assert 'listening\n' in iter(process.stdout.readline, '')
        yield 'vt+unix:' + address
    finally:
        process.kill()
        process.wait()


def ask(place, *requests):
    """Answers of cs.vt's client."""
    text = ''.join(json.dumps(request) + '\n' for request in requests)
    done = subprocess.run([CS_VT, PEER, 'client', place], input=text, capture_output=True, text=True, timeout=300, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]
    assert len(answers) == len(requests), done.stderr
    return answers


def done(place, *requests):
    answers = ask(place, *requests)
    assert all('done' in answer for answer in answers), answers
    return [answer['done'] for answer in answers]


def places(store, tmp_path):
    """The ways in which cs.vt reaches a server."""
    yield 'exec', lambda: contextlib.nullcontext('|%s vt serve %s' % (support.H5BRIDGE, store))
    yield 'unix', lambda: served(store, '--unix', tmp_path / 's')
    yield 'port', lambda: served(store, '--port', 0)


def place_of(address):
    return address.removeprefix('vt+unix:').removeprefix('127.0.0.1:')


@needs_cs_vt
@pytest.mark.parametrize('kind', ['sha1', 'sha256'])
def test_blocks_by_the_original(kind, store, tmp_path):
    blocks = [random.Random(number).randbytes(number * 37) for number in range(60)]
    hashed = lambda data: hashlib.new(kind, data).hexdigest()
    for count, (_, start) in zip((20, 40, 60), places(store, tmp_path)):
        with start() as address:
            some = blocks[:count]
            names = sorted(hashed(block) for block in some)
            lists = [(None, False, False, 7), (names[5], False, False, 3), (names[5], False, True, 3), (names[9], True, True, None), (None, True, False, None)]
            answers = done(place_of(address), *[['add', kind, block.hex()] for block in some],
                           *[['get', kind, hashed(block)] for block in some], ['get', kind, hashed(b'missing')],
                           ['contains', kind, names[3]], ['contains', kind, hashed(b'missing')], ['flush'],
                           *[['hashes', kind, *words] for words in lists],
                           *[['hash_of_hashes', kind, *words] for words in lists if words[3]])
            expected = [hashed(block) for block in some] + [block.hex() for block in some] + [None, True, False, None]
            for first, reverse, after, length in lists:
                ordered = names[::-1] if reverse else names
                at = ordered.index(first) + after if first else 0
                expected.append(ordered[at:][:length])
            for found in expected[-5:-2]:
                joined = b''.join(bytes.fromhex(name) for name in found)
                expected.append([hashed(hashlib.new(kind, joined).digest()), found[-1]])
            assert answers == expected
    as_directory(store)


@needs_cs_vt
def test_archives_by_the_original(store, tmp_path):
    """It stores two states of a folder, reads and lists them; `h5bridge` reads them from the disk, and the reverse."""
    source = tmp_path / 'src'
    shutil.copytree(DEMO, source)
    (source / 'noise').write_bytes(random.Random(1).randbytes(300_000))
    with served(store, '--unix', tmp_path / 's') as address:
        place = place_of(address)
        for archive in ('', 'x', 'mine.vt'):
            assert done(place, ['last', archive], ['entries', archive]) == [None, []]
        first = tree(source)
        done(place, ['save', 'x', str(source), 1600000000.5])
        (source / 'noise').write_bytes(random.Random(2).randbytes(300_000))
        done(place, ['save', 'x', str(source), 1600000001.5])
        assert done(place, ['last', 'x'], ['entries', 'x'], ['entries', '']) == [
            [1600000001.5, 'src', tree(source)], [[1600000000.5, 'src'], [1600000001.5, 'src']], []]
        # what h5bridge packs beside it is seen
        h5bridge('pack', DEMO, address + '#mine.vt' if store.suffix else store.parent / 'mine.vt', '--format', 'vt')
        assert done(place, ['last', 'mine.vt'])[0][1:] == ['demo.ms', tree(DEMO)]
        for name in ('../x', 'a/b', 'a.b', '.vt'):
            (answer,) = ask(place, ['save', name, str(source), 1.5])
            assert 'is not the name of an archive' in answer['failed']
    as_directory(store)
    archive = store.parent / 'store-x.vt'
    history = json.loads(h5bridge('ls', '--json', archive).stdout)['history']
    assert history == ['2020-09-13T12:26:40.500000+00:00', '2020-09-13T12:26:41.500000+00:00']
    h5bridge('unpack', archive, tmp_path / 'now')
    h5bridge('unpack', '%s/%s' % (archive, history[0]), tmp_path / 'before')
    assert tree(tmp_path / 'now') == tree(source) and tree(tmp_path / 'before') == first
    assert sorted(os.listdir(store.parent)) == ['mine.vt', 'store', 'store-x.vt']


@needs_cs_vt
def test_missing_blocks_by_the_original(store, tmp_path):
    """It compares two stores by hashes of hashes."""
    (tmp_path / 'other').mkdir()
    blocks = [b'%d' % number for number in range(3000 if support.LONG else 300)]
    few = len(blocks) // 10
    with served(store, '--unix', tmp_path / 's') as address:
        done(place_of(address), *[['add', 'sha1', block.hex()] for block in blocks[few:]])
    with served(tmp_path / 'other', '--unix', tmp_path / 's') as address:
        done(place_of(address), *[['add', 'sha1', block.hex()] for block in blocks[:-few]])
    with served(store, '--unix', tmp_path / 's') as address, served(tmp_path / 'other', '--unix', tmp_path / 't') as other:
        (found,) = done(place_of(address), ['missing', place_of(other)])
    assert sorted(found) == sorted(hashlib.sha1(block).hexdigest() for block in blocks[:few])


def transports(store, tmp_path):
    yield 'vt+exec:%s vt serve %s' % (support.H5BRIDGE, store), contextlib.nullcontext()
    yield 'vt+unix:%s' % (tmp_path / 's'), served(store, '--unix', tmp_path / 's')


def check_client(address, source, tmp_path, archive):
    """Packs twice into an archive of a server, lists and unpacks both states."""
    place, states = '%s#%s' % (address, archive), []
    for seed in (1, 2):
        (source / 'noise').write_bytes(random.Random('%s %d' % (archive, seed)).randbytes(300_000))
        states.append(tree(source))
        summary = json.loads(h5bridge('pack', source, place, '--format', 'vt', '--json').stdout)
        assert 300_000 < summary['stored_bytes'] < (2_000_000 if seed == 1 else 320_000)
        h5bridge('verify', '--bytes', source, place)
    again = json.loads(h5bridge('pack', source, place, '--format', 'vt', '--json').stdout)
    assert again['stored_bytes'] == 0
    listed = json.loads(h5bridge('ls', '--json', place).stdout)
    assert len(listed['history']) == 3
    for at, expected in zip((0, 2), states):
        shutil.rmtree(tmp_path / 'copy', ignore_errors=True)
        h5bridge('unpack', '%s/%s' % (place, listed['history'][at]), tmp_path / 'copy')
        assert tree(tmp_path / 'copy') == expected
    shutil.rmtree(tmp_path / 'copy')
    h5bridge('unpack', place + '/ANTENNA', tmp_path / 'copy')
    assert tree(tmp_path / 'copy') == tree(source / 'ANTENNA')


def test_both_ends_are_ours(store, tmp_path):
    for number, (address, running) in enumerate(transports(store, tmp_path)):
        source = tmp_path / ('src%d' % number)
        shutil.copytree(DEMO, source)
        with running:
            check_client(address, source, tmp_path, 'a%d' % number)
            assert 'no such archive' in h5bridge('ls', address + '#missing', code=DAMAGED).stderr
    as_directory(store)
    for number in range(2):
        h5bridge('verify', '--bytes', tmp_path / ('src%d' % number), store.parent / ('store-a%d.vt' % number))


@needs_cs_vt
def test_our_client_and_the_server_of_the_original(directory, tmp_path):
    source = tmp_path / 'src'
    shutil.copytree(DEMO, source)
    # the original does not make an archive
    (directory / 'data').mkdir()
    (directory.parent / 'store-x.vt').touch()
    with served_by_the_original(directory) as address:
        check_client(address, source, tmp_path, 'x')
        assert 'the store refuses the request' in h5bridge('pack', source, address + '#y', '--format', 'vt', code=DAMAGED).stderr
    h5bridge('verify', '--bytes', source, directory.parent / 'store-x.vt')


def packet(tag, kind, flags, payload, is_request=True):
    body = bytes([tag, flags << 2 | 2 * is_request]) + (bytes([kind + 1]) if is_request else b'') + payload
    assert len(body) < 128
    return bytes([len(body)]) + body


def exchange(path, data):
    """What the server sends until it ends the connection."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(60)
        stream.connect(str(path))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)
        found = b''
        with contextlib.suppress(ConnectionResetError):
            while more := stream.recv(1 << 16):
                found += more
        return found


def peak_memory(process):
    with open('/proc/%d/status' % process.pid, encoding='ascii') as status:
        return next(int(line.split()[1]) for line in status if line.startswith('VmHWM:')) * 1024


def test_hostile_packets(store, tmp_path):
    """Damaged, endless and oversized packets end their own connection: others are answered, and memory stays bounded."""
    path = tmp_path / 's'
    process = subprocess.Popen([support.H5BRIDGE, 'vt', 'serve', str(store), '--unix', str(path)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.extend(process.stderr))
    try:
        process.stdout.readline()
        reader.start()
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert exchange(path, ADD_ABC + END) == ABC_ADDED + END
        good = ADD_ABC + packet(2, 1, 0, b'\0' + hashlib.sha1(b'abc').digest()) + packet(3, 4, 0, b'\4sha1\0') + packet(4, 8, 0, b'\1a') + END
        generator = random.Random(5)
        for _ in range(5000 if support.LONG else 500):
            data = bytearray(good)
            for _ in range(generator.choice([1, 1, 1, 4])):
                data[generator.randrange(len(data))] = generator.choice([0, 1, 0x7f, 0x80, 0xff, generator.randrange(256)])
            exchange(path, bytes(data[:generator.choice([len(data), generator.randrange(len(data))])]))
        # a length without end, one too large, one whose bytes do not come, a response
        for data in (b'\xff' * 1000, b'\xa0\x80\x80\x80\0' + bytes(1000), b'\x9f\x80\x80\0' + bytes(1000), b'\2\1\4'):
            assert exchange(path, data) == b''
        # the wrong request is answered, the next one as well
        answers = exchange(path, packet(1, 77, 0, b'') + packet(2, 3, 0, b'') + END)
        assert b'the type of the request is 77' in answers and answers.endswith(b'\2\2\4' + END)
        assert peak_memory(process) < 200 << 20
        # more clients than are served at a time wait
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(20)]
        for stream in waiting:
            stream.settimeout(60)
            stream.connect(str(path))
            stream.sendall(ADD_ABC)
        assert [stream.recv(100) for stream in waiting[:16]] == [ABC_ADDED] * 16
        waiting[19].settimeout(0.3)
        with pytest.raises(TimeoutError):
            waiting[19].recv(100)
        waiting[19].settimeout(60)
        for stream in waiting[:16]:
            stream.close()
        assert [stream.recv(100) for stream in waiting[16:]] == [ABC_ADDED] * 4
        process.terminate()
        assert process.wait(60) == 0 and not path.exists()
        # a connection that is cut off has ended
        assert all(stream.recv(100) == b'' for stream in waiting[16:])
    finally:
        process.kill()
        process.wait()
    reader.join()
    assert any('connection' in line and 'the limit is' in line for line in said) and not any('panicked' in line for line in said)
    as_directory(store)


def test_places_that_cannot_be_served_at(directory, tmp_path):
    (tmp_path / 'file').touch()
    assert 'not a socket' in h5bridge('vt', 'serve', directory, '--unix', tmp_path / 'file', code=EXISTS).stderr
    h5bridge('vt', 'serve', directory, '--unix', 'x', '--port', '1', code=USAGE)
    with served(directory, '--unix', tmp_path / 's'):
        assert 'another program serves here' in h5bridge('vt', 'serve', directory, '--unix', tmp_path / 's', code=EXISTS).stderr
    # a socket that a killed server has left
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / 's'))
    with served(directory, '--unix', tmp_path / 's') as address:
        assert address == 'vt+unix:%s' % (tmp_path / 's')
    assert 'No such file' in h5bridge('ls', 'vt+unix:%s' % (tmp_path / 's'), code=DAMAGED).stderr
    assert 'has ended: exit status: 3' in h5bridge('ls', 'vt+exec:exit 3', code=DAMAGED).stderr


def test_one_writer_of_a_file(tmp_path):
    """A file is locked while it is served; others read what was committed; a file of another kind is refused, unchanged."""
    store, path = tmp_path / 'store.h5', tmp_path / 's'
    with served(store, '--unix', path):
        assert exchange(path, ADD_ABC + END) == ABC_ADDED + END
        assert exchange(path, packet(1, 3, 0, b'') + END) == b'\2\1\4' + END
        h5bridge('vt', 'serve', store, '--unix', tmp_path / 't', code=EXISTS)
        (data,) = json.loads(h5bridge('ls', '--json', store).stdout)['nested']
        (listed,) = data['files']
        assert (data['name'], listed['name'], listed['size']) == ('data', 'blocks.vtd', 5)
    process = subprocess.Popen([support.H5BRIDGE, 'vt', 'serve', str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    added = packet(1, 0, 0, b'\0\3def')
    process.stdin.write(added + packet(2, 3, 0, b'') + packet(3, 0, 0, b'\0\3ghi'))
    process.stdin.flush()
    process.stdout.read(24 + 3 + 24)
    process.kill()
    process.wait()
    assert 'repair' in h5bridge('vt', 'serve', store, code=EXISTS).stderr
    h5bridge('repair', store)
    with served(store, '--unix', path):
        answers = exchange(path, b''.join(packet(tag, 2, 0, b'\0' + hashlib.sha1(block).digest())
                                          for tag, block in enumerate((b'abc', b'def', b'ghi'), 1)) + END)
        assert answers == b'\2\1\x0c\2\2\x0c\2\3\4' + END
    other = tmp_path / 'other.h5'
    with h5py.File(other, 'w') as file:
        file['x'] = 1
    before = other.read_bytes()
    h5bridge('vt', 'serve', other, '--unix', path, code=UNSUPPORTED)
    assert other.read_bytes() == before and not path.exists()
