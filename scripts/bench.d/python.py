"""Reading in Python: the package h5bridge against python-casacore's getcol, in one process, in turn, in the page cache.

Every kind of column: whole, into memory that is used again, and with two threads; opening the tree with xarray; starting.
"""
import argparse
import json
import statistics
import subprocess
import sys
import threading
import time

import casacore.tables as ct
import numpy as np

import h5bridge

COLUMNS = ['DATA', 'WEIGHT_SPECTRUM', 'FLAG', 'UVW', 'WEIGHT', 'TIME', 'ANTENNA1', 'FLAG_ROW', 'FIELD_ID']

parser = argparse.ArgumentParser(prog='scripts/bench python', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('table', help='a MeasurementSet')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--json', help='a file that gets all figures')


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_two(call):
    """The same twice, in two threads."""
    threads = [threading.Thread(target=call) for _ in range(2)]
    start = time.perf_counter()
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return time.perf_counter() - start


def main():
    arguments = parser.parse_args()
    ours, theirs = h5bridge.open_table(arguments.table), ct.table(arguments.table, ack=False)
    figures = {}
    print(f"{'column':18}{'MB':>8}{'getcol ms':>11}{'whole ×':>9}{'out= ×':>9}{'two threads ×':>15}{'100 rows ×':>12}")
    for name in COLUMNS:
        if name not in ours:
            continue
        column = ours[name]
        block = column[:]
        assert block.tobytes() == theirs.getcol(name).tobytes()
        starts = np.random.default_rng(1).integers(0, max(ours.nrows - 100, 1), 200)
        calls = {
            'casacore': lambda: theirs.getcol(name),
            'whole': lambda: column[:],
            'out': lambda: column.read(out=block),
            'casacore blocks': lambda: [theirs.getcol(name, int(row), 100) for row in starts],
            'blocks': lambda: [column[row:row + 100] for row in starts],
        }
        times = {what: [] for what in [*calls, 'two', 'casacore two']}
        for _ in range(arguments.rounds):
            for what, call in calls.items():
                times[what].append(seconds(call))
            times['casacore two'].append(in_two(calls['casacore']))
            times['two'].append(in_two(calls['whole']))
        median = {what: statistics.median(found) for what, found in times.items()}
        figures[name] = {'bytes': block.nbytes, **median}
        ratio = [median['casacore'] / median['whole'], median['casacore'] / median['out'],
                 median['casacore two'] / median['two'], median['casacore blocks'] / median['blocks']]
        print(f"{name:18}{block.nbytes / 1e6:8.1f}{median['casacore'] * 1e3:11.1f}"
              f"{ratio[0]:9.2f}{ratio[1]:9.2f}{ratio[2]:15.2f}{ratio[3]:12.2f}")
    figures['others'] = others(arguments)
    for what, found in figures['others'].items():
        print(f'{what:50}{found * 1e3:9.1f} ms')
    if arguments.json:
        with open(arguments.json, 'w') as file:
            json.dump(figures, file, indent=1)


def others(arguments):
    """Opening with xarray, and starting the command line; medians."""
    import xarray
    tree = [seconds(lambda: xarray.open_datatree(arguments.table, engine='h5bridge').close())
            for _ in range(arguments.rounds + 1)]
    start = {words: [seconds(lambda: subprocess.run(list(words), check=True, stdout=subprocess.DEVNULL))
                     for _ in range(2 * arguments.rounds)]
             for words in ((sys.executable, '-c', 'pass'), ('h5bridge', '--version'),
                           (sys.executable, '-c', 'import h5bridge'), (sys.executable, '-c', 'import numpy'))}
    opened = [seconds(lambda: h5bridge.open_table(arguments.table).close()) for _ in range(20)]
    return {'xarray.open_datatree': statistics.median(tree[1:]), 'h5bridge.open_table': statistics.median(opened),
            **{' '.join(words).replace(sys.executable, 'python'): statistics.median(found)
               for words, found in start.items()}}


if __name__ == '__main__':
    main()
