"""Runs `unpack`, `to-hdf5` and `pack` of SIONlib files, `pack` of vt stores, and BLZ arrays, each in turn with its peer; prints medians and ratios.

SION runs against `cp` of the same bytes that is made durable, as h5bridge's output is; vt against cs.vt 20190309, if it could be
installed; BLZ against bcolz (containers_blz.py). Only ratios within one run mean anything.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile

import bench

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..')
CS_VT = os.path.join(ROOT, '.venv', 'cs-vt', 'bin', 'python')
H5BRIDGE = os.environ['H5BRIDGE']

parser = argparse.ArgumentParser(prog='scripts/bench containers', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=os.environ.get('H5BRIDGE_BENCH_DIR'),
                    help='where the data is kept between runs (or $H5BRIDGE_BENCH_DIR; default: below the temp dir)')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--megabytes', type=int, default=512, help='size of the SION file (512)')
parser.add_argument('--only', choices=['sion', 'vt', 'blz'], help='rows of one format')


def noise(path, size, seed):
    """A file that does not compress."""
    generator = random.Random(seed)
    with open(path, 'wb') as f:
        for start in range(0, size, 1 << 20):
            f.write(generator.randbytes(min(1 << 20, size - start)))


def streams(folder, megabytes, tasks):
    """A directory of files TASK0, TASK1 ..., made once."""
    path = os.path.join(folder, 'streams-%d-%d' % (megabytes, tasks))
    if not os.path.exists(path):
        print('making %s ...' % path, flush=True)
        os.makedirs(path + '.new', exist_ok=True)
        for task in range(tasks):
            noise(os.path.join(path + '.new', 'TASK%d' % task), (megabytes << 20) // tasks, task)
        os.rename(path + '.new', path)
    return path


def durable(source, target):
    return ['sh', '-c', 'cp -r "$0" "$1" && find "$1" -type f -exec sync {} +', source, target]


def warm(path):
    files = [path] if os.path.isfile(path) else [os.path.join(d, f) for d, _, fs in os.walk(path) for f in fs]
    subprocess.run(['cat'] + files, stdout=subprocess.DEVNULL, check=True)


class Race:
    """Times pairs of commands in turns."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.found = []

    def run(self, name, ours, peer_name, peer, goal, prepare=lambda: None):
        """`ours` and `peer` are (command, what it writes). The ratio of the medians is to be below `goal`."""
        times, peaks = {name: [], peer_name: []}, {name: [], peer_name: []}
        for _ in range(self.rounds):
            for who, (command, out) in ((peer_name, peer), (name, ours)):
                bench.remove(out)
                prepare()
                os.sync()
                seconds, peak, inner = bench.run(command)
                times[who].append(inner if inner is not None and who != name else seconds)
                peaks[who].append(peak)
                bench.remove(out)
        print('%s: %s' % (name, ' '.join('%.2f/%.2f' % pair for pair in zip(times[name], times[peer_name]))), flush=True)
        self.add(name, statistics.median(times[name]), peer_name, statistics.median(times[peer_name]), goal,
                 max(peaks[name]))

    def add(self, name, ours, peer_name, peer, goal=None, peak=None):
        self.found.append((name, ours, peer_name, peer, goal, peak))

    def report(self):
        print('\n%-24s %8s  %-22s %8s %7s %6s %8s' % ('', 'seconds', 'peer', 'seconds', 'ratio', 'goal', 'peak MB'))
        for name, ours, peer_name, peer, goal, peak in self.found:
            print('%-24s %8.3f  %-22s %8.3f %7.3f %6s %8s' % (
                name, ours, peer_name, peer, ours / peer, '%.2f' % goal if goal else '',
                '%.0f' % peak if peak is not None else ''))


def sion(race, folder, megabytes):
    source = streams(folder, megabytes, 16)
    packed = os.path.join(folder, 'run-%d.sion' % megabytes)
    if not os.path.exists(packed):
        subprocess.run([H5BRIDGE, '-q', 'pack', source, packed, '--format', 'sion'], check=True)
    warm(source)
    warm(packed)
    out = os.path.join(folder, 'out')
    # into a directory against a directory, into a file against a file
    copies = durable(source, out), out
    copy = durable(packed, out + '.copy'), out + '.copy'
    race.run('sion: unpack', ([H5BRIDGE, '-q', 'unpack', packed, out], out), 'cp -r + sync', copies, 1.3)
    race.run('sion: to-hdf5', ([H5BRIDGE, '-q', 'to-hdf5', packed, out + '.h5'], out + '.h5'), 'cp + sync', copy, 1.3)
    race.run('sion: pack', ([H5BRIDGE, '-q', 'pack', source, out + '.sion', '--format', 'sion'], out + '.sion'),
             'cp + sync', copy, 1.3)


def vt(race, folder):
    small = streams(folder, 32, 4)
    out = os.path.join(folder, 'out.vt')

    def pack(source):
        return ['sh', '-c', 'mkdir -p "$2" && exec "$0" -q pack "$1" "$2/a.vt" --format vt', H5BRIDGE, source, out], out

    if os.path.exists(CS_VT):
        race.run('vt: pack, 32 MiB', pack(small), 'cs.vt', ([CS_VT, os.path.join(HERE, 'peer_cs_vt.py'), small, out], out), 0.2)
    else:
        print('cs.vt is not installed: left out')
    large = streams(folder, 512, 16)
    race.run('vt: pack, 512 MiB', pack(large), 'cp -r + sync', (durable(large, out), out), None)
    # the same tree again: what it adds
    command, _ = pack(large)
    subprocess.run(command, check=True)
    before = bench.size(out)
    seconds, peak, _ = bench.run(command)
    added = bench.size(out) - before
    copied = statistics.median(bench.run((durable(large, out + '.copy')))[0] for _ in range(1))
    bench.remove(out)
    bench.remove(out + '.copy')
    race.add('vt: second pack', seconds, 'cp -r + sync', copied, None, peak)
    print('vt: the second pack of 512 MiB adds %d bytes' % added)


def main():
    arguments = parser.parse_args()
    folder = arguments.folder or os.path.join(tempfile.gettempdir(), 'h5bridge-bench')
    os.makedirs(folder, exist_ok=True)
    print('data in %s, %s, %d rounds' % (folder, bench.processors(), arguments.rounds))
    race = Race(arguments.rounds)
    if arguments.only in (None, 'sion'):
        sion(race, folder, arguments.megabytes)
    if arguments.only in (None, 'vt'):
        vt(race, folder)
    if arguments.only in (None, 'blz') and os.path.exists(os.path.join(HERE, 'containers_blz.py')):
        import containers_blz
        for row in containers_blz.rows(folder, arguments.rounds):
            race.add(*row)
    race.report()


if __name__ == '__main__':
    sys.exit(main())
