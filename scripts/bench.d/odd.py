"""Tables of unusual shapes, each in two sizes: whether time grows with the bytes, and memory does not. Beside each, `cp -r`.

A thousand small tables, many spectral windows, millions of rows of scalars, one cell larger than the memory that may be held,
thousands of hypercubes. At the end, a process for each of the small tables.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import casacore.tables as ct
import numpy as np

import bench

parser = argparse.ArgumentParser(prog='scripts/bench odd', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=os.environ.get('H5BRIDGE_BENCH_DIR'),
                    help='where the data is kept between runs (or $H5BRIDGE_BENCH_DIR; default: below the temp dir)')
parser.add_argument('--rounds', type=int, default=5)


def data(manager, **more):
    """A column DATA of complex cells with two axes."""
    more = dict(datamanagertype=manager, datamanagergroup='T', **more) if manager else more
    return ct.makearrcoldesc('DATA', 0j, ndim=2, valuetype='complex', **more)


def tiles(manager, *tile):
    return {'*1': {'TYPE': manager, 'NAME': 'T', 'SEQNR': 1, 'COLUMNS': ['DATA'],
                   'SPEC': {'DEFAULTTILESHAPE': np.array(tile, dtype=np.int32)}}}


def cells(path, rows, manager, tile, shape):
    """A table of DATA; `shape` gives that of the cell of each row."""
    with ct.table(path, ct.maketabdesc([data(manager)]), dminfo=tiles(manager, *tile), nrow=rows, ack=False) as table:
        for row in range(rows):
            table.putcell('DATA', row, np.full(shape(row), row + 0j))


def windows(path, count):
    """300 spectral windows, each with another number of channels."""
    cells(path, 4800 * count, 'TiledShapeStMan', (4, 16, 16), lambda row: (16 + row % 300, 4))


def shapes(path, count):
    """2500 cubes of TiledShapeStMan."""
    cells(path, 5000 * count, 'TiledShapeStMan', (4, 16, 2), lambda row: (1 + row % 2500 // 100, 1 + row % 100))


def cubes(path, count):
    """A hypercube for each row."""
    cells(path, 2500 * count, 'TiledCellStMan', (4, 16), lambda row: (16 + row % 97, 4))


def scalars(path, count):
    """Millions of rows of scalars."""
    managers = [('TIME', 0., 'IncrementalStMan'), ('ANTENNA1', 0, 'StandardStMan'), ('ANTENNA2', 0, 'StandardStMan'),
                ('SCAN_NUMBER', 0, 'IncrementalStMan'), ('EXPOSURE', 0., 'StandardStMan'), ('FLAG_ROW', False, 'StandardStMan')]
    columns = [ct.makescacoldesc(name, value, datamanagertype=manager, datamanagergroup=manager)
               for name, value, manager in managers]
    rows = np.arange(2_500_000 * count)
    with ct.table(path, ct.maketabdesc(columns), nrow=len(rows), ack=False) as table:
        table.putcol('TIME', 5e9 + (rows // 378).astype('f8'))
        table.putcol('ANTENNA1', (rows % 28).astype('i4'))
        table.putcol('ANTENNA2', (rows // 7 % 28).astype('i4'))
        table.putcol('SCAN_NUMBER', (rows // 100000).astype('i4'))
        table.putcol('EXPOSURE', np.random.default_rng(1).random(len(rows)))
        table.putcol('FLAG_ROW', rows % 5 == 0)


def one_cell(path, count):
    """A single cell of 64 MB times COUNT."""
    noise = np.random.default_rng(1).random((2048 * count, 4096), dtype='f4')
    column = ct.makearrcoldesc('MAP', 0., ndim=2, valuetype='float')
    with ct.table(path, ct.maketabdesc([column]), nrow=1, ack=False) as table:
        table.putcell('MAP', 0, np.concatenate([noise, noise]))


def tables(path, count):
    """250 subtables of 100 kB, times COUNT."""
    columns = ct.maketabdesc([ct.makescacoldesc('TIME', 0.), ct.makescacoldesc('A', 0),
                              ct.makearrcoldesc('DATA', 0j, ndim=1, shape=[8], valuetype='complex')])
    with ct.table(path, columns, nrow=10, ack=False) as table:
        for number in range(250 * count):
            name = 'SUB%d' % number
            with ct.table(os.path.join(path, name), columns, nrow=1200, ack=False) as subtable:
                noise = np.random.default_rng(number).random((1200, 16), dtype='f4')
                subtable.putcol('DATA', noise.view('c8'))
                subtable.putcol('TIME', np.arange(1200.))
            table.putkeyword(name, 'Table: ' + os.path.join(path, name))


KINDS = {make.__name__: make for make in (tables, windows, shapes, cubes, scalars, one_cell)}


def main():
    if sys.argv[1:2] == ['--make']:
        KINDS[sys.argv[2]](sys.argv[3], int(sys.argv[4]))
        return
    arguments = parser.parse_args()
    folder = arguments.folder or os.path.join(tempfile.gettempdir(), 'h5bridge-bench')
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, 'out')
    print('%d rounds, medians of seconds; --sync never' % arguments.rounds)
    print('%-12s %10s %10s %8s %8s %10s %10s' % ('', 'MB', 'h5bridge', 'cp -r', 's/GB', 'x before', 'peak MB'))
    for name in KINDS:
        before = None
        for count in (1, 4):
            source = os.path.join(folder, 'odd-%s%d.tab' % (name, count))
            if not os.path.exists(source):
                shutil.rmtree(source + '.new', ignore_errors=True)
                # in a process of its own: the memory of this one would count as that of its children
                subprocess.run([sys.executable, __file__, '--make', name, source + '.new', str(count)], check=True)
                os.rename(source + '.new', source)
            ours, copies = [], []
            for _ in range(arguments.rounds):
                for command, written, times in (
                        (bench.to_hdf5(source, out, None, '--sync', 'never')[0], out + '.h5', ours),
                        (['cp', '-r', source, out + '.tab'], out + '.tab', copies)):
                    bench.remove(written)
                    os.sync()
                    times.append(bench.run(command))
                    bench.remove(written)
            size = bench.size(source) / 1e6
            seconds, copied = (statistics.median(run[0] for run in runs) for runs in (ours, copies))
            speed = 1e3 * seconds / size
            print('%-12s %10.1f %10.3f %8.3f %8.2f %10s %10.0f' % (
                name, size, seconds, copied, speed, '%.2f' % (speed / before) if before else '',
                max(run[1] for run in ours)), flush=True)
            before = speed
    processes(os.path.join(folder, 'odd-tables1.tab'), out + '.h5', arguments.rounds)


def processes(source, out, rounds):
    """Milliseconds of a process that converts one of the small tables, one after the other."""
    names = ['SUB%d' % number for number in range(250)]
    for ways, options in ((', --sync never', ['--sync', 'never']), (', durable', [])):
        times = []
        for _ in range(rounds):
            os.sync()
            start = time.perf_counter()
            for name in names:
                bench.remove(out)
                command = [os.environ['H5BRIDGE'], 'to-hdf5', '-q', *options, os.path.join(source, name), out]
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
            times.append((time.perf_counter() - start) / len(names) * 1e3)
        bench.remove(out)
        print('%-40s %.1f ms' % ('a process for each of %d tables%s' % (len(names), ways), statistics.median(times)))


if __name__ == '__main__':
    main()
