"""Reading in Python: the package h5bridge against python-casacore's getcol, in one process, in turn, in the page cache.

Every kind of column: whole, into memory that is used again, with two threads, a channel, and small reads again and again: 100 rows and
single cells, anywhere and near each other; opening the tree with xarray; starting.
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
    """Of one of as many calls as take ten milliseconds."""
    start, calls = time.perf_counter(), 0
    while True:
        call()
        calls += 1
        taken = time.perf_counter() - start
        if taken > 0.01:
            return taken / calls


def in_two(call):
    """The same twice, in two threads."""
    threads = [threading.Thread(target=call) for _ in range(2)]
    start = time.perf_counter()
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return time.perf_counter() - start


HEADS = {'whole': 'whole ×', 'out': 'out= ×', 'two': 'two threads ×', 'channel': 'channel ×', 'blocks': '100 rows ×',
         'near blocks': '100 rows near ×', 'cells': 'cells ×', 'near cells': 'cells near ×'}


def pairs(ours, theirs, name, block):
    """What is timed of a column: with the package, and with getcol and its like."""
    column = ours[name]
    blocks = np.random.default_rng(1).integers(0, max(ours.nrows - 100, 1), 200)
    cells = np.random.default_rng(2).integers(0, ours.nrows, 500)
    found = {
        'whole': (lambda: column[:], lambda: theirs.getcol(name)),
        'out': (lambda: column.read(out=block), lambda: theirs.getcol(name)),
        'two': (lambda: in_two(lambda: column[:]), lambda: in_two(lambda: theirs.getcol(name))),
    }
    if block.ndim == 3:
        middle, last = block.shape[1] // 2, block.shape[2] - 1
        found['channel'] = (lambda: column[:, middle], lambda: theirs.getcolslice(name, [middle, 0], [middle, last]))
    for kind, starts, rows in [('', blocks, cells), ('near ', blocks % 1000, cells % 1000)]:
        starts, rows = starts.tolist(), rows.tolist()
        found[kind + 'blocks'] = (lambda starts=starts: [column[row:row + 100] for row in starts],
                                  lambda starts=starts: [theirs.getcol(name, row, 100) for row in starts])
        found[kind + 'cells'] = (lambda rows=rows: [column[row] for row in rows],
                                 lambda rows=rows: [theirs.getcell(name, row) for row in rows])
    return found


def main():
    arguments = parser.parse_args()
    ours, theirs = h5bridge.open_table(arguments.table), ct.table(arguments.table, ack=False)
    figures = {}
    print(f"{'column':18}{'MB':>8}{'getcol ms':>11}" + ''.join(f'{head:>{len(head) + 2}}' for head in HEADS.values()))
    for name in COLUMNS:
        if name not in ours:
            continue
        column = ours[name]
        block = column[:]
        assert block.tobytes() == theirs.getcol(name).tobytes()
        calls = pairs(ours, theirs, name, block)
        times = {what: ([], []) for what in calls}
        for _ in range(arguments.rounds):
            for what, pair in calls.items():
                for call, found in zip(pair, times[what], strict=True):
                    found.append(seconds(call))
        median = {what: [statistics.median(found) for found in pair] for what, pair in times.items()}
        figures[name] = {'bytes': block.nbytes, **median}
        ratios = {what: theirs / ours for what, (ours, theirs) in median.items()}
        print(f"{name:18}{block.nbytes / 1e6:8.1f}{median['whole'][1] * 1e3:11.1f}"
              + ''.join(f'{ratios[what]:{len(head) + 2}.2f}' if what in ratios else ' ' * (len(head) + 2)
                        for what, head in HEADS.items()))
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
