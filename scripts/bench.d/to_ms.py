"""Runs `cp -r`, the same with a sync of all files, python-casacore's table.copy(deep=True) and `to-ms` in turn on one MeasurementSet; prints medians and ratios.

`to-ms` runs from the native file, from one compressed with gzip, and from the table itself; `--exact` from a restorable one. As in bench.py only ratios
within one run mean anything.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import bench

COPY = 'import sys, casacore.tables as ct; ct.table(sys.argv[1], ack=False).copy(sys.argv[2], deep=True).close()'

parser = argparse.ArgumentParser(prog='scripts/bench to-ms', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=os.environ.get('H5BRIDGE_BENCH_DIR'),
                    help='where the data is kept between runs (or $H5BRIDGE_BENCH_DIR; default: below the temp dir)')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--times', type=int, default=700, help='integrations of the MeasurementSet (700: 864 MB)')


def native(ms, *options):
    """The native file of a MeasurementSet, made once."""
    path = ms[:-len('.ms')] + ''.join(options) + '.h5'
    if not os.path.exists(path):
        subprocess.run([os.environ['H5BRIDGE'], 'to-hdf5', '-q', *options, ms, path], check=True)
    return path


def main():
    arguments = parser.parse_args()
    folder = arguments.folder or os.path.join(tempfile.gettempdir(), 'h5bridge-bench')
    os.makedirs(folder, exist_ok=True)
    ms = bench.make(folder, arguments.times)
    plain, packed = native(ms, '--compress', 'none', '--no-digest'), native(ms, '--compress', 'gzip', '--no-digest')
    restorable = native(ms, '--compress', 'none', '--restorable')
    out = os.path.join(folder, 'out.ms')
    to_ms = [os.environ['H5BRIDGE'], 'to-ms', '-q', '--overwrite']
    bench.compete(ms, {
        'cp -r': (['cp', '-r', ms, out], out),
        # to-ms makes durable what it writes
        'cp -r, synced': (['sh', '-c', 'cp -r "$0" "$1" && find "$1" -type f -exec sync {} +', ms, out], out),
        'to-ms': (to_ms + [plain, out], out),
        'to-ms, gzip': (to_ms + [packed, out], out),
        'to-ms --exact': (to_ms + ['--exact', restorable, out], out),
        'to-ms, table': (to_ms + [ms, out], out),
        'casacore copy': ([sys.executable, '-c', COPY, ms, out], out),
    }, arguments.rounds)


if __name__ == '__main__':
    main()
