"""A crowd at one server: clients of good files beside hostile files, huge selections, clients that leave and 400 sockets without a token.

Twelve seconds; at night five minutes, or H5BRIDGE_CROWD seconds."""
import asyncio
import glob
import json
import os
import random
import re
import shutil
import subprocess
import time
import urllib.parse

import h5py

import support

SECONDS = float(os.environ.get('H5BRIDGE_CROWD', 300 if support.LONG else 12))
GOOD, HOSTILE, SOCKETS = 20, 8, 400
# each answer of values holds 8 MiB: the hostile clients do not hold all of it
MEMORY = 128 << 20
# seconds, far more than on a quiet machine (0.4 s): that of the tests may be busy
PATIENCE = 30
SELECTIONS = ('0:30000000', '0:8000000', '0:1000000:1000', '0:4', '0:3000000000:1000000', '0:1000,0:1000', '0:8000,0:8000', '')
REQUESTS = ('api/meta', 'api/data', 'api/data?format=npy', 'api/data?format=bin', 'api/stats', 'api/paths', 'api/attr', 'live/plot/waterfall',
            'live/describe')


def serve(folder):
    os.makedirs(folder)
    demo = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
    support.h5bridge('to-hdf5', demo, folder / 'good.h5')
    shutil.copytree(demo, folder / 'good.ms')
    with h5py.File(folder / 'huge.h5', 'w') as file:    # nothing of it is written
        file.create_dataset('a', (10**12,), 'f8', chunks=(1 << 20,))
        file.create_dataset('b', (10**9, 10**9), 'f8', chunks=(1024, 1024))
        file.create_dataset('c', (2**62,), 'u1', chunks=(1 << 20,))
        file.create_dataset('one', (10**12,), 'f8', chunks=(1,))
        file.create_dataset('tiny', (10**6, 10**6), 'f4', chunks=(1, 1))
    content = (folder / 'good.h5').read_bytes()
    chance = random.Random(7)
    for number in range(12):
        damaged = bytearray(content)
        for _ in range(40):
            damaged[chance.randrange(len(content) // 4)] ^= 1 << chance.randrange(8)
        (folder / ('damaged%d.h5' % number)).write_bytes(damaged)
    for path in glob.glob(os.path.join(support.ROOT, '..', 'shared', 'attack', '*', '*.h5')):
        shutil.copyfile(path, folder / os.path.basename(path))


class Crowd:
    def __init__(self, folder, process, port, token, counts):
        self.process, self.port, self.counts = process, port, counts
        self.head = 'Host: 127.0.0.1:%d\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n' % (port, token)
        self.end = time.monotonic() + SECONDS
        self.hostile = [name for name in sorted(os.listdir(folder)) if not name.startswith('good')]
        self.slowest, self.memory = 0, 0

    def is_on(self):
        return time.monotonic() < self.end

    async def ask(self, target, leaves=False):
        """The status of an answer, or None of one that is not waited for."""
        reader, writer = await asyncio.open_connection('127.0.0.1', self.port)
        try:
            writer.write(('GET /%s HTTP/1.1\r\n%s' % (target, self.head)).encode())
            await writer.drain()
            if leaves:
                await asyncio.sleep(random.random() / 5)
                return None
            status = (await reader.read(12))[9:]
            while await reader.read(1 << 16):
                pass
            return status.decode()
        finally:
            writer.transport.abort()

    async def good(self):
        paths = ['api/meta?path=/MAIN', 'api/data?path=/MAIN/TIME&format=npy', 'api/data?path=/MAIN/UVW&selection=0:10', 'live/describe?',
                 'live/plot/waterfall?', 'live/plot/amp_time?']
        targets = ['%s&file=%s' % (path, file) for path in paths for file in ('good.h5', 'good.ms')] + ['api/files', '']
        while self.is_on():
            target, start = random.choice(targets), time.monotonic()
            status = await self.ask(target)
            self.slowest = max(self.slowest, time.monotonic() - start)
            assert status == '200', (target, status)
            self.counts['good answers'] += 1
            await asyncio.sleep(0.05)

    async def bad(self):
        while self.is_on():
            request = random.choice(REQUESTS)
            name = random.choice(self.hostile + ['huge.h5'] * len(self.hostile))
            path = random.choice(('/a', '/b', '/c', '/one', '/tiny') if name == 'huge.h5' else ('/', '/MAIN', '/MAIN/DATA', '/MAIN/TIME', '/g/d', '/vlen'))
            query = {'file': name, 'path': path, 'selection': random.choice(SELECTIONS)}
            target = request + ('&' if '?' in request else '?') + urllib.parse.urlencode({k: v for k, v in query.items() if v})
            status = await self.ask(target, leaves=random.random() < 0.3)
            assert status in (None, '200', '404', '413', '422', '503'), (target, status)
            self.counts['other answers'] += status is not None

    async def sockets(self):
        held = []
        while self.is_on():
            while len(held) < SOCKETS:
                reader, writer = await asyncio.open_connection('127.0.0.1', self.port)
                if len(held) % 2:
                    writer.write(b'GET / HTTP/1.1\r\n')
                held.append((reader, writer))
            await asyncio.sleep(0.2)
            held = [(reader, writer) for reader, writer in held if not reader.at_eof()]

    async def watch(self):
        while self.is_on():
            with open('/proc/%d/status' % self.process.pid, encoding='ascii') as file:
                self.memory = max(self.memory, int(re.search(r'VmRSS:\s+(\d+)', file.read()).group(1)) << 10)
            await asyncio.sleep(0.05)

    async def run(self):
        everyone = [self.good() for _ in range(GOOD)] + [self.bad() for _ in range(HOSTILE)] + [self.sockets(), self.watch()]
        await asyncio.gather(*everyone)


def test_good_clients_are_served(tmp_path, counts):
    serve(tmp_path / 'served')
    command = [support.H5BRIDGE, 'serve', str(tmp_path / 'served'), '--json', '--port', '0', '--max-memory', str(MEMORY)]
    with open(tmp_path / 'errors', 'wb') as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        url, token = json.loads(process.stdout.readline())['url'].split('/?token=')
        crowd = Crowd(tmp_path / 'served', process, int(url.rpartition(':')[2]), token, counts)
        asyncio.run(crowd.run())
        counts['MiB of memory'] = crowd.memory >> 20
        assert crowd.slowest < PATIENCE
        assert crowd.memory < MEMORY + (128 << 20)
        assert process.poll() is None
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0 and b'panicked' not in (tmp_path / 'errors').read_bytes()
    assert counts['good answers'] > 10 * SECONDS
