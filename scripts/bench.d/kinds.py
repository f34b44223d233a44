"""Five kinds of MeasurementSet as telescopes and their pipelines wrote them: `to-hdf5` beside `cp -r`, python-casacore with h5py and dask-ms.

Each is a small real MeasurementSet of the corpus beside the project (../shared/corpus), whose rows are repeated with later times until DATA has
some 400 MB: storage managers, tiles, cell shapes and values are as they were. UVW changes from one repetition to the next, and DATA of large cells
in phase, since a compressor would notice the repetition.

Durable times, as by default: peers are followed by a `sync` of what they wrote. Every contender runs once a round.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import casacore.tables as ct
import numpy as np

import bench
import pack

CORPUS = os.path.join(bench.ROOT, '..', 'shared', 'corpus')
CASACORE = 'casacore+h5py'

# name: (archive, MeasurementSet in it, repetitions, whether DATA changes in phase, contenders left out and why)
KINDS = {
    'EVLA': ('vla_tdem', 'day2_TDEM0003_10s_norx_1src_1spw.ms', 150, False, {}),
    'ALMA': ('casacore_mssel_small', 'mssel_test_small.ms', 400, False,
             {CASACORE: 'cells of DATA differ in shape: it writes a dataset for each, and takes hours'}),
    'LOFAR': ('facetselfcal_test2', 'test2.ms', 400, False, {}),
    'ASKAP': ('yanda_vela', 'vela-60.ms', 600, False, {}),
    'MWA': ('mwa_cotter_noautos', None, 1800, True, {}),
}

parser = argparse.ArgumentParser(prog='scripts/bench kinds', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=os.environ.get('H5BRIDGE_BENCH_DIR'),
                    help='where the data is kept between runs (or $H5BRIDGE_BENCH_DIR; default: below the temp dir)')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--kinds', type=lambda text: text.split(','), default=list(KINDS), help='only these, of: ' + ','.join(KINDS))


def make(folder, name):
    """The MeasurementSet of a kind; made once."""
    archive, inner, times, turned, _ = KINDS[name]
    path = os.path.join(folder, 'kind-%s.ms' % name)
    if os.path.exists(path):
        return path
    print('making %s ...' % path, flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        subprocess.run(['tar', '--zstd', '-xf', os.path.join(CORPUS, archive + '.tar.zst'), '-C', unpacked], check=True)
        repeat(measurement_set(os.path.join(unpacked, archive), inner), path + '.new', times, turned)
    os.rename(path + '.new', path)
    return path


def measurement_set(folder, inner):
    """The MeasurementSet of that name, or the only one."""
    found = [inner] if inner else [entry for entry in os.listdir(folder) if os.path.isdir(os.path.join(folder, entry, 'ANTENNA'))]
    [name] = found
    return os.path.join(folder, name)


def repeat(source, target, times, turned):
    """Writes a MeasurementSet with the rows of another one so many times."""
    shutil.rmtree(target, ignore_errors=True)
    with ct.table(source, readonly=False, ack=False) as table:
        forget_missing_subtables(table)
        table.copy(target, deep=True).close()
        # what is inserted, changed for each repetition
        table.copy(source + '.next', deep=True).close()
    with ct.table(target, readonly=False, ack=False) as out, ct.table(source + '.next', readonly=False, ack=False) as rows:
        time, uvw = rows.getcol('TIME'), rows.getcol('UVW')
        data = rows.getcol('DATA') if turned else None
        span = time.max() - time.min() + rows.getcell('INTERVAL', 0)
        columns = ','.join(name for name in rows.colnames() if has_elements(rows, name))
        for number in range(1, times):
            for column in ('TIME', 'TIME_CENTROID'):
                rows.putcol(column, time + number * span)
            rows.putcol('UVW', uvw * (1 + number / 1000))
            if turned:
                rows.putcol('DATA', (data * np.exp(1j * number)).astype(np.complex64))
            rows.flush()
            ct.taql('insert into $1 (%s) select %s from $2' % (columns, columns), tables=[out, rows])


def has_elements(table, column):
    """Whether there is something to insert: casacore refuses cells of FLAG_CATEGORY without elements."""
    return table.iscelldefined(column, 0) and np.size(table.getcell(column, 0)) > 0


def forget_missing_subtables(table):
    """Drops keywords that name tables which the archive lacks: peers refuse such a MeasurementSet."""
    for keyword, value in table.getkeywords().items():
        if isinstance(value, str) and value.startswith('Table: ') and not os.path.exists(value[len('Table: '):]):
            table.removekeyword(keyword)


def contenders(ms, out, left_out):
    """{name: (command, what it writes)}"""
    found = bench.contenders(ms, out)
    chosen = [bench.PLAIN, bench.UNCOMPRESSED, pack.DURABLE, CASACORE + pack.SYNCED, 'dask-ms' + pack.SYNCED]
    return {name: found[name] for name in chosen if name in found and name.removesuffix(pack.SYNCED) not in left_out}


def main():
    arguments = parser.parse_args()
    if not os.path.isdir(CORPUS):
        sys.exit('%s is not there: it holds the MeasurementSets that this bench repeats' % os.path.normpath(CORPUS))
    folder = arguments.folder or os.path.join(tempfile.gettempdir(), 'h5bridge-bench')
    os.makedirs(folder, exist_ok=True)
    print('%d processors, %d rounds, durable' % (os.cpu_count(), arguments.rounds))
    print('%-6s %-22s %8s %8s %8s %8s %9s %9s' % ('', '', 'median s', 'min s', 'max s', 'x ours', 'peak MB', 'MB'))
    for kind in arguments.kinds:
        ms, left_out = make(folder, kind), KINDS[kind][-1]
        with ct.table(ms, ack=False) as table:
            print('%s: %d rows, %.0f MB' % (kind, table.nrows(), bench.size(ms) / 1e6), flush=True)
        compete(kind, ms, contenders(ms, os.path.join(folder, 'out'), left_out), arguments.rounds)
        for name, why in left_out.items():
            print('%-6s %-22s left out: %s' % (kind, name, why))


def compete(kind, ms, chosen, rounds):
    """Runs the contenders in turn and prints a line for each."""
    bench.warm(ms)
    runs, sizes = {name: [] for name in chosen}, {}
    for _ in range(rounds):
        for name, (command, out) in chosen.items():
            bench.remove(out)
            os.sync()
            runs[name].append(bench.run(command))
            sizes[name] = bench.size(out)
            bench.remove(out)
    medians = {name: statistics.median(seconds for seconds, _, _ in of) for name, of in runs.items()}
    for name, of in runs.items():
        seconds = [run[0] for run in of]
        print('%-6s %-22s %8.2f %8.2f %8.2f %8.2f %9.0f %9.0f' % (
            kind, name, medians[name], min(seconds), max(seconds), medians[name] / medians[bench.PLAIN],
            max(run[1] for run in of), sizes[name] / 1e6), flush=True)


if __name__ == '__main__':
    main()
