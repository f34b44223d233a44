"""Reading a column: the Rust API against python-casacore on a MeasurementSet, against h5py on a native file, in turn, in the page cache.

Patterns: the whole column; the middle channel of all rows; one baseline over all times; 1000 cells here and there.
Each pattern is read on a table opened for it, in a process that has read before, as this process has: the last of three times.
"""
import argparse
import json
import os
import statistics
import subprocess
import time

import casacore.tables as ct
import h5py

TOOL = os.environ['READ_SPEED']
COLUMNS = ['DATA', 'WEIGHT_SPECTRUM', 'FLAG', 'UVW', 'TIME', 'ANTENNA1']
PATTERNS = ['whole', 'channel', 'baseline', 'cells']

parser = argparse.ArgumentParser(prog='scripts/bench read', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('table', help='a MeasurementSet, or a native file made from one')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--baselines', type=int, default=406, help='rows from one row of a baseline to the next')


def casacore(path, name, pattern, step):
    """Seconds that python-casacore takes; None if the column has no such pattern."""
    table = ct.table(path, ack=False)
    rows = table.nrows()
    cell = table.getcell(name, 0)
    start = time.perf_counter()
    if pattern == 'whole':
        table.getcol(name)
    elif pattern == 'channel':
        if getattr(cell, 'ndim', 0) == 0:
            return None
        low = [cell.shape[0] // 2] + [0] * (cell.ndim - 1)
        table.getcolslice(name, low, [low[0]] + [extent - 1 for extent in cell.shape[1:]])
    elif pattern == 'baseline':
        table.getcol(name, 0, -1, step)
    else:
        for i in range(1000):
            table.getcell(name, i * 2654435761 % rows)
    return time.perf_counter() - start


def hdf5(path, name, pattern, step):
    """Seconds that h5py takes; None if the column has no such pattern."""
    with h5py.File(path) as file:
        data = file['MAIN'][name]
        rows = len(data)
        start = time.perf_counter()
        if pattern == 'whole':
            data[...]
        elif pattern == 'channel':
            if data.ndim == 1:
                return None
            data[:, data.shape[1] // 2]
        elif pattern == 'baseline':
            data[::step]
        else:
            for i in range(1000):
                data[i * 2654435761 % rows]
        return time.perf_counter() - start


def main():
    args = parser.parse_args()
    peer, read = ('h5py', hdf5) if os.path.isfile(args.table) else ('python-casacore', casacore)
    ours, theirs = {}, {}
    for _ in range(args.rounds):
        for name in COLUMNS:
            words = [TOOL, args.table, name, '3', str(args.baselines)]
            found = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
            for pattern in PATTERNS:
                seconds = read(args.table, name, pattern, args.baselines)
                if seconds is not None:
                    theirs.setdefault((name, pattern), []).append(seconds)
                    ours.setdefault((name, pattern), []).append(found[pattern][-1])
    print('%d rounds, medians of seconds, and how many times as fast as %s' % (args.rounds, peer))
    print('%-18s %-10s %14s %12s %8s' % ('column', 'pattern', peer, 'ctds-hdf5', 'times'))
    for (name, pattern), seconds in theirs.items():
        a, b = statistics.median(seconds), statistics.median(ours[name, pattern])
        print('%-18s %-10s %14.5f %12.5f %8.1f' % (name, pattern, a, b, a / b))


main()
