"""Reading whole columns of every kind of storage, in decoded bytes for each second, against python-casacore's getcol.

Each kind is compared with the plain form of its element type: little-endian elements in tiles, or in buckets for scalars. SISCO
and Dysco compute what they return (`scripts/bench dysco` has more of Dysco). The columns are in the page cache; a column is opened before the
time starts, on both sides. The slowness is the time for a decoded byte, and for a byte in the file, in units of that of the plain form
with two threads.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

import casacore.tables as ct
import numpy as np

import bench

parser = argparse.ArgumentParser(prog='scripts/bench columns', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=os.environ.get('H5BRIDGE_BENCH_DIR'),
                    help='where the data is kept between runs (or $H5BRIDGE_BENCH_DIR; default: below the temp dir)')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--megabytes', type=int, default=200, help='of decoded elements in a column')

CHANNELS, CORRELATIONS, BASELINES = 64, 4, 406
RANDOM = np.random.default_rng(1)
# the scalars by which SISCO groups its rows
KEYS = 'ANTENNA1', 'ANTENNA2', 'FIELD_ID', 'DATA_DESC_ID'


def noise(rows):
    """Visibilities of little more than ten bits, as real ones are after a correlator."""
    parts = RANDOM.normal(size=(rows, CHANNELS, CORRELATIONS, 2)).astype('f4')
    return (np.round(parts * 256) / 256).view('c8')[..., 0]


def bytes_of(rows):
    return RANDOM.integers(0, 256, (rows, CHANNELS, CORRELATIONS), dtype='u1')


def flags(rows):
    return RANDOM.integers(0, 2, (rows, CHANNELS, CORRELATIONS)).astype(bool)


def slow_times(rows):
    return 5e9 + np.arange(rows) // BASELINES * 10.


def times(rows):
    return 5e9 + np.arange(rows) / 8.


TILES, BUCKETS = 'TiledColumnStMan', 'StandardStMan'
# name: (manager, byte order, bytes of an element, default value of the column, elements, the plain form)
KINDS = {
    'complex, tiles': (TILES, 'little', 8, 0j, noise, None),
    'complex, tiles, big-endian': (TILES, 'big', 8, 0j, noise, 'complex, tiles'),
    'complex, SISCO': ('SiscoStMan', 'little', 8, 0j, noise, 'complex, tiles'),
    'complex, buckets': (BUCKETS, 'little', 8, 0j, noise, 'complex, tiles'),
    'complex, buckets, big-endian': (BUCKETS, 'big', 8, 0j, noise, 'complex, tiles'),
    'uchar, tiles': (TILES, 'little', 1, 0, bytes_of, None),
    'bool, tiles (bits)': (TILES, 'little', 1, False, flags, 'uchar, tiles'),
    'bool, buckets (bits)': (BUCKETS, 'little', 1, False, flags, 'uchar, tiles'),
    'double, buckets': (BUCKETS, 'little', 8, 0., times, None),
    'double, buckets, big-endian': (BUCKETS, 'big', 8, 0., times, 'double, buckets'),
    'double, incremental, runs': ('IncrementalStMan', 'little', 8, 0., slow_times, 'double, buckets'),
    'double, incremental, each row': ('IncrementalStMan', 'little', 8, 0., times, 'double, buckets'),
}


def make(path, manager, order, size, value, elements, megabytes):
    """A table with the column X of so many megabytes of elements."""
    is_scalar = elements in (times, slow_times)
    rows = int(megabytes * 1e6 / size / (1 if is_scalar else CHANNELS * CORRELATIONS))
    if is_scalar:
        column = ct.makescacoldesc('X', value, datamanagertype=manager, datamanagergroup='X')
    else:
        types = {noise: 'complex', bytes_of: 'uchar', flags: 'boolean'}
        column = ct.makearrcoldesc('X', value, ndim=2, shape=[CHANNELS, CORRELATIONS], options=5,
                                   valuetype=types[elements], datamanagertype=manager, datamanagergroup='X')
    others = [ct.makescacoldesc(name, 0) for name in KEYS] + [ct.makescacoldesc('TIME', 0.)]
    columns = [column] + others * (not is_scalar)
    with ct.table(path, ct.maketabdesc(columns), nrow=rows, ack=False, endian=order) as table:
        if is_scalar:
            table.putcol('X', elements(rows))
            return
        numbers = np.arange(rows)
        table.putcol('ANTENNA1', (numbers % BASELINES // 28).astype('i4'))
        table.putcol('ANTENNA2', (numbers % BASELINES % 28).astype('i4'))
        table.putcol('TIME', slow_times(rows))
        step = 100 * BASELINES
        for first in range(0, rows, step):
            count = min(step, rows - first)
            table.putcol('X', elements(count), first, count)


def seconds_of_casacore(path):
    with ct.table(path, ack=False) as table:
        table.getcell('X', 0)
        start = time.perf_counter()
        table.getcol('X')
        return time.perf_counter() - start


def seconds_of_ours(path, threads):
    words = [os.environ['READ_SPEED'], path, 'X', '3', str(BASELINES), 'whole']
    output = subprocess.run(words, check=True, stdout=subprocess.PIPE, env=dict(os.environ, RAYON_NUM_THREADS=str(threads)))
    return json.loads(output.stdout)['whole'][-1]


def stored(path):
    """Bytes of the files of the column's manager."""
    with ct.table(path, ack=False) as table:
        number = next(info['SEQNR'] for info in table.getdminfo().values() if 'X' in info['COLUMNS'])
    files = [name for name in os.listdir(path) if re.fullmatch(r'table\.f%d(_.*|-.*|i)?' % number, name)]
    return sum(os.path.getsize(os.path.join(path, name)) for name in files)


def main():
    arguments = parser.parse_args()
    folder = arguments.folder or os.path.join(tempfile.gettempdir(), 'h5bridge-bench')
    os.makedirs(folder, exist_ok=True)
    paths = {}
    for name, (*made, _) in KINDS.items():
        words = ''.join(c if c.isalnum() else '-' for c in name)
        paths[name] = os.path.join(folder, 'column-%s-%d.tab' % (words, arguments.megabytes))
        if not os.path.exists(paths[name]):
            shutil.rmtree(paths[name] + '.new', ignore_errors=True)
            make(paths[name] + '.new', *made, arguments.megabytes)
            os.rename(paths[name] + '.new', paths[name])
    bench.warm(*paths.values())
    seconds = {name: [] for name in KINDS}
    for _ in range(arguments.rounds):
        for name, path in paths.items():
            seconds[name].append((seconds_of_casacore(path), seconds_of_ours(path, 1), seconds_of_ours(path, 2)))
    print('%d MB each, %d rounds, medians; MB/s of decoded elements' % (arguments.megabytes, arguments.rounds))
    print('%-30s %9s %9s %9s %9s %9s %9s' % ('', 'casacore', '1 thread', '2 threads', 'times', 'slowness', 'stored'))
    median = {name: [statistics.median(times) for times in zip(*rounds)] for name, rounds in seconds.items()}
    for name, (peer, one, two) in median.items():
        plain, slowness = KINDS[name][-1], ['', '']
        if plain:
            ratio = two / median[plain][2]
            slowness = ['%.2f' % ratio, '%.2f' % (ratio * stored(paths[plain]) / stored(paths[name]))]
        print('%-30s %9.0f %9.0f %9.0f %9.1f %9s %9s' % (
            name, arguments.megabytes / peer, arguments.megabytes / one, arguments.megabytes / two, peer / two, *slowness))


if __name__ == '__main__':
    main()
