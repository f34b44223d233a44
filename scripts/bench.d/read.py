"""Reading a column: the Rust API against python-casacore and casacure on a MeasurementSet, against h5py on a native file, in turn, in
the page cache.

Patterns: the whole column; the middle channel of all rows; one baseline over all times; 1000 cells here and there.
Each pattern is read on a table opened for it, whose column was opened before the time starts, in a process that has read before, as
this process has: the last of three times.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

if sys.argv[1:2] == ['--peer']:    # in the environment of casacure
    from casacure import tables as ct
else:
    import casacore.tables as ct

CASACURE = os.environ.get('CASACURE_PYTHON')
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
    import h5py    # the environment of casacure has none
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


def in_casacure(path, name, step):
    """Seconds of each pattern in a process of casacure, the last of three times."""
    words = [CASACURE, __file__, '--peer', path, name, str(step)]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)


def main():
    if sys.argv[1:2] == ['--peer']:
        path, name, step = sys.argv[2], sys.argv[3], int(sys.argv[4])
        print(json.dumps({pattern: [casacore(path, name, pattern, step) for _ in range(3)][-1] for pattern in PATTERNS}))
        return
    args = parser.parse_args()
    tool = os.environ['READ_SPEED']
    peers = ['h5py'] if os.path.isfile(args.table) else ['python-casacore'] + ['casacure'] * bool(CASACURE)
    read = hdf5 if os.path.isfile(args.table) else casacore
    times = {}
    for _ in range(args.rounds):
        for name in COLUMNS:
            words = [tool, args.table, name, '3', str(args.baselines)]
            found = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
            cure = in_casacure(args.table, name, args.baselines) if 'casacure' in peers else {}
            for pattern in PATTERNS:
                seconds = read(args.table, name, pattern, args.baselines)
                if seconds is not None:
                    row = times.setdefault((name, pattern), {})
                    for who, time_of in ((peers[0], seconds), ('casacure', cure.get(pattern)), ('ctds-hdf5', found[pattern][-1])):
                        if time_of is not None:
                            row.setdefault(who, []).append(time_of)
    print('%d rounds, medians of seconds, and how many times as fast as each peer' % args.rounds)
    print('%-18s %-10s %12s' % ('column', 'pattern', 'ctds-hdf5') + ''.join(' %16s %6s' % (peer, 'times') for peer in peers))
    for (name, pattern), row in times.items():
        ours = statistics.median(row['ctds-hdf5'])
        medians = [statistics.median(row[peer]) for peer in peers]
        print('%-18s %-10s %12.5f' % (name, pattern, ours)
              + ''.join(' %16.5f %6.1f' % (median, median / ours) for median in medians), flush=True)


main()
