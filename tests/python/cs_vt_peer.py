"""cs.vt on either side of its protocol. Runs in .venv/cs-vt (scripts/setup-cs-vt).

client PLACE: connects to a store and does what the lines of the input say, a list in JSON each; prints a JSON document for each.
server STORE SOCKET: serves a store on disk until its input ends; prints a line when it listens.

PLACE is a socket, a port of this machine, or a command after a bar: |h5bridge vt serve store.
"""
import collections
import collections.abc
import hashlib
import json
import os
import subprocess
import sys

# the release is from before Python 3.10, which removed these names
for name in collections.abc.__all__:
    setattr(collections, name, getattr(collections.abc, name))

from cs.buffer import CornuCopyBuffer  # noqa: E402
from cs.vt.archive import ArchiveEntry  # noqa: E402
from cs.vt.blockify import blockify, top_block_for  # noqa: E402
from cs.vt.dir import Dir, FileDirent  # noqa: E402
from cs.vt.hash import HASHCLASS_BY_NAME  # noqa: E402
from cs.vt.socket import TCPClientStore, UNIXSocketClientStore, UNIXSocketStoreServer  # noqa: E402
from cs.vt.store import DataDirStore  # noqa: E402
from cs.vt.stream import ArchiveListRequest, StreamStore  # noqa: E402
from cs.packetstream import PacketConnection  # noqa: E402


class NothingYet(set):
    def __contains__(self, _):
        return False


# it makes these after it has started the thread that answers; all connections share what stands for them
PacketConnection._PacketConnection__sent = PacketConnection._PacketConnection__send_queued = NothingYet()
commands = []


def connect(place):
    if place.startswith('|'):
        # CommandStore of this release has the two pipes the wrong way round
        command = subprocess.Popen(place[1:], shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        store = StreamStore('client', command.stdout.fileno(), command.stdin.fileno())
        commands.append(command)
        return store
    if place.isdigit():
        return TCPClientStore('client', ('127.0.0.1', int(place)))
    return UNIXSocketClientStore('client', place)


def files(directory, prefix=''):
    """{path: SHA-256} of the files below a directory."""
    found = {}
    for name in sorted(directory):
        item = directory[name]
        if item.isdir:
            found.update(files(item, prefix + name + '/'))
        else:
            found[prefix + name] = hashlib.sha256(b''.join(bytes(part) for part in item.datafrom())).hexdigest()
    return found


class Client:
    def __init__(self, store):
        self.store = store

    def hashed(self, name, digits):
        return HASHCLASS_BY_NAME[name].from_hashbytes(bytes.fromhex(digits))

    def add(self, name, digits):
        return self.store.add(bytes.fromhex(digits), HASHCLASS_BY_NAME[name]).hex()

    def get(self, name, digits):
        data = self.store.get(self.hashed(name, digits))
        return None if data is None else data.hex()

    def contains(self, name, digits):
        return bool(self.store.contains(self.hashed(name, digits)))

    def flush(self):
        self.store.flush()

    def hashes(self, name, start, reverse, after, length):
        return [found.hex() for found in self.store.hashcodes(*self.range(name, start), reverse, after, length)]

    def hash_of_hashes(self, name, start, reverse, after, length):
        joined, last = self.store.hash_of_hashcodes(*self.range(name, start), reverse, after, length)
        return [joined.hex(), last and last.hex()]

    def range(self, name, start):
        return start and self.hashed(name, start), HASHCLASS_BY_NAME[name]

    def missing(self, place):
        """Hashes of another store that the server does not have."""
        with connect(place) as other:
            return [found.hex() for found in self.store.hashcodes_missing(other)]

    def save(self, archive, path, when):
        """Stores the files below a path, and adds them to an archive."""
        root = Dir(os.path.basename(path))
        for folder, names, leaves in os.walk(path):
            names.sort()
            target = root
            relative = os.path.relpath(folder, path)
            for part in [] if relative == '.' else relative.split('/'):
                target = target[part] if part in target else target.mkdir(part)
            for leaf in sorted(leaves):
                with open(os.path.join(folder, leaf), 'rb') as opened:
                    target[leaf] = FileDirent(leaf, block=top_block_for(blockify([opened.read()])))
        self.store.flush()
        self.store.get_Archive(archive).update(root, when=when)

    def last(self, archive):
        """Time and files of the last entry."""
        entry = self.store.get_Archive(archive).last
        return None if entry.dirent is None else [entry.when, entry.dirent.name, files(entry.dirent)]

    def entries(self, archive):
        """Times and names of all. (The class for archives takes the answer for text, which the server of this release does not send.)"""
        _, payload = self.store.do(ArchiveListRequest(archive))
        buffer = CornuCopyBuffer.from_bytes(payload)
        found = []
        while buffer.offset < len(payload):
            entry = ArchiveEntry.from_buffer(buffer)
            found.append([entry.when, entry.dirent.name])
        return found


def client(place):
    with connect(place) as store:
        does = Client(store)
        for line in sys.stdin:
            what, *words = json.loads(line)
            try:
                print(json.dumps({'done': getattr(does, what)(*words)}))
            except Exception as error:      # the test judges it
                print(json.dumps({'failed': '%s: %s' % (type(error).__name__, error)}))
            sys.stdout.flush()
    for command in commands:
        command.stdin.close()
        command.wait()


def server(path, socket):
    store = DataDirStore('store', path)
    with store:
        made = UNIXSocketStoreServer(socket, local_store=store)
        made.open()
        print('listening', flush=True)
        os.dup2(2, 1)       # nobody reads what it says
        sys.stdin.read()


{'client': client, 'server': server}[sys.argv[1]](*sys.argv[2:])
sys.stdout.flush()
# its threads do not end in this release
os._exit(0)
