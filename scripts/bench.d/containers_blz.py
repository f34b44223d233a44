"""BLZ rows of `scripts/bench containers`: decompression against bcolz on the same cores, `to-hdf5 --compress keep` against a copy.

Alone: python scripts/bench.d/containers_blz.py [WORKDIR [ROUNDS]]
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bcolz
import numpy as np

ROWS, COLUMNS, CHUNK_ROWS = 1 << 20, 128, 1 << 12
DURABLE = 'cp -r "$0" "$1" && find "$1" -type f -exec sync {} + && sync "$1"'


def make(path, cname):
    """512 MiB of visibilities, about: smooth numbers with noise in their lower bits, in 256 chunks of 2 MiB."""
    if os.path.exists(path):
        return path
    random = np.random.default_rng(1)
    array = bcolz.carray(np.empty((0, COLUMNS), 'f4'), rootdir=path, chunklen=CHUNK_ROWS, mode='w',
                         cparams=bcolz.cparams(clevel=5, shuffle=1, cname=cname))
    phase = np.linspace(0, 40, COLUMNS)
    for start in range(0, ROWS, CHUNK_ROWS):
        rows = np.arange(start, start + CHUNK_ROWS)[:, None]
        block = np.sin(rows * 1e-4 + phase) + random.normal(0, 1e-3, (CHUNK_ROWS, COLUMNS))
        # 12 bits of the mantissa are noise that no instrument measures
        block = (block.astype('f4').view('u4') & 0xfffff000).view('f4')
        array.append(block)
    array.flush()
    return path


def seconds(command):
    """How long a command takes, or a function."""
    os.sync()
    started = time.perf_counter()
    if callable(command):
        command()
    else:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def in_turn(ours, peer, rounds, clean=()):
    """The medians of both, run in turn, after a run of each that does not count."""
    times = ([], [])
    for number in range(rounds + 1):
        for found, command in zip(times, (ours, peer)):
            for path in clean:
                remove(path)
            took = seconds(command)
            if number:
                found.append(took)
    return tuple(map(statistics.median, times))


def rows(workdir, rounds):
    """[(name, our seconds, name of the peer, its seconds)]"""
    h5bridge = os.environ['H5BRIDGE']
    bcolz.blosc_set_nthreads(os.cpu_count())
    found = []
    for cname in ['lz4', 'blosclz', 'zstd']:
        source = make(os.path.join(workdir, 'bench-%s.bcolz' % cname), cname)
        ours, peer = in_turn([h5bridge, 'verify', '-q', source], lambda: bcolz.open(source, mode='r')[:], rounds)
        found.append(('BLZ %s, decompressed' % cname, ours, 'bcolz', peer))
    source = os.path.join(workdir, 'bench-lz4.bcolz')
    out, copy = os.path.join(workdir, 'bench-kept.h5'), os.path.join(workdir, 'bench-copy.bcolz')
    keep = [h5bridge, 'to-hdf5', '-q', source, out, '--compress', 'keep']
    ours, peer = in_turn(keep, ['sh', '-c', DURABLE, source, copy], rounds, (out, copy))
    found.append(('BLZ to-hdf5 --compress keep', ours, 'durable cp -r', peer))
    remove(out)
    remove(copy)
    return found


if __name__ == '__main__':
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    for name, ours, other, peer in rows(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 3):
        print('%-32s %7.3f s   %s %7.3f s   %.2f times its rate' % (name, ours, other, peer, peer / ours))
