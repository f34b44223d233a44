"""Five kinds of MeasurementSet as telescopes and their pipelines wrote them: `to-hdf5` beside `cp -r`, python-casacore with h5py and dask-ms.

Each is a small real MeasurementSet of the corpus beside the project (../shared/corpus), whose rows are repeated with later times until DATA has
some 400 MB: storage managers, tiles, cell shapes and values are as they were. UVW changes from one repetition to the next, and DATA of large cells
in phase, since a compressor would notice the repetition.

Durable times, as by default: peers are followed by a `sync` of what they wrote. Every contender runs once a round.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import bench
import pack

CORPUS = os.path.join(bench.ROOT, '..', 'shared', 'corpus')
CASACORE = 'casacore+h5py'

# name: (archive, repetitions, whether DATA changes in phase, contenders left out and why)
KINDS = {
    'EVLA': ('vla_tdem', 150, False, {}),
    'ALMA': ('casacore_mssel_small', 400, False,
             {CASACORE: 'cells of DATA differ in shape, and it writes a dataset for each of 423,200'}),
    'LOFAR': ('facetselfcal_test2', 400, False, {}),
    'ASKAP': ('yanda_vela', 600, False, {}),
    'MWA': ('mwa_cotter_noautos', 1800, True, {}),
}

parser = argparse.ArgumentParser(prog='scripts/bench kinds', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=os.environ.get('H5BRIDGE_BENCH_DIR'),
                    help='where the data is kept between runs (or $H5BRIDGE_BENCH_DIR; default: below the temp dir)')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--kinds', type=lambda text: text.split(','), default=list(KINDS), help='only these, of: ' + ','.join(KINDS))


def make(folder, name):
    """The MeasurementSet of a kind; made once."""
    archive, times, turned, _ = KINDS[name]
    path = os.path.join(folder, 'kind-%s.ms' % name)
    if os.path.exists(path):
        return path
    print('making %s ...' % path, flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        subprocess.run(['tar', '--zstd', '-xf', os.path.join(CORPUS, archive + '.tar.zst'), '-C', unpacked], check=True)
        source = measurement_set(os.path.join(unpacked, archive))
        # a process of its own, since the memory of this one counts as that of the contenders when they start
        subprocess.run([sys.executable, os.path.join(bench.HERE, 'repeat_ms.py'), source, path + '.new', str(times), str(int(turned))], check=True)
    os.rename(path + '.new', path)
    return path


def measurement_set(folder):
    """The MeasurementSet of an archive: the only one in it."""
    [name] = [entry for entry in os.listdir(folder) if os.path.isdir(os.path.join(folder, entry, 'ANTENNA'))]
    return os.path.join(folder, name)


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
        print('%s: %.0f MB' % (kind, bench.size(ms) / 1e6), flush=True)
        compete(kind, ms, contenders(ms, os.path.join(folder, 'out'), left_out), arguments.rounds)
        for name, why in left_out.items():
            print('%-6s %-22s left out: %s' % (kind, name, why))


def compete(kind, ms, chosen, rounds):
    """Runs the contenders in turn and prints a line for each."""
    bench.warm(ms)
    runs, sizes = bench.take_turns(chosen, rounds)
    medians = {name: statistics.median(seconds for seconds, _, _ in of) for name, of in runs.items()}
    for name, of in runs.items():
        seconds = [run[0] for run in of]
        print('%-6s %-22s %8.2f %8.2f %8.2f %8.2f %9.0f %9.0f' % (
            kind, name, medians[name], min(seconds), max(seconds), medians[name] / medians[bench.PLAIN],
            max(run[1] for run in of), sizes[name] / 1e6), flush=True)


if __name__ == '__main__':
    main()
