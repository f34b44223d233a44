"""`shard` with two workers of one thread each against `to-hdf5 --compress none`, in turns, everything on the disk.

The time of a shard is that of plan, work and commit, one after the other. Then a commit that inserts chunks of compressed
files (of the same table less a row): it should take at most 1 s and 1 s for each 500 MB. With --from-disk the page cache is
emptied before each turn, which needs root: a table that is worth many machines is larger than their memory.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bench

parser = argparse.ArgumentParser(prog='scripts/bench shards', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=os.environ.get('H5BRIDGE_BENCH_DIR'),
                    help='where the data is kept between runs (or $H5BRIDGE_BENCH_DIR; default: below the temp dir)')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--times', type=int, default=3241, help='integrations of the table (700: 0.9 GB, 3241: 4.2 GB)')
parser.add_argument('--from-disk', action='store_true', help='empty the page cache before each turn')
STEPS = 'plan', 'work', 'commit'
# of an integration of 28 antennas
ROWS = 28 * 29 // 2


def timed(*commands):
    """Seconds until all of them, which run at the same time, have ended well; each is a list of words for h5bridge."""
    begin = time.perf_counter()
    null = subprocess.DEVNULL
    for process in [subprocess.Popen([os.environ['H5BRIDGE'], *words], stdout=null, stderr=null) for words in commands]:
        if process.wait():
            sys.exit('%s failed' % ' '.join(process.args))
    return time.perf_counter() - begin


def plan_and_work(ms, out, *more):
    """Seconds of both."""
    return [timed(['shard', 'plan', *more, ms, out]), timed(*[['shard', 'work', '--threads', '1', out]] * 2)]


def prepare(out, from_disk):
    """An empty folder, nothing left to write, and with `from_disk` nothing in the page cache."""
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    bench.empty_page_cache() if from_disk else os.sync()
    # the file system gives back the space of removed files
    time.sleep(1)


def main():
    arguments = parser.parse_args()
    folder = arguments.folder or os.path.join(tempfile.gettempdir(), 'h5bridge-bench')
    os.makedirs(folder, exist_ok=True)
    ms = bench.make(folder, arguments.times)
    out = os.path.join(folder, 'shards')
    if not arguments.from_disk:
        bench.warm(ms)
    whole, steps, inserts = [], [], []
    for _ in range(arguments.rounds):
        prepare(out, arguments.from_disk)
        whole.append(timed(['to-hdf5', '-q', '--compress', 'none', ms, os.path.join(out, 'whole.h5')]))
        prepare(out, arguments.from_disk)
        target = os.path.join(out, 'shards.h5')
        steps.append(plan_and_work(ms, target) + [timed(['shard', 'commit', target])])
    print('%.0f MB, %d rounds, medians of seconds%s' % (
        bench.size(ms) / 1e6, arguments.rounds, ', from the disk' if arguments.from_disk else ''))
    peer, total = statistics.median(whole), statistics.median(map(sum, steps))
    for name, seconds in zip(STEPS, zip(*steps)):
        print('%-28s %8.3f  %s' % (name, statistics.median(seconds), ' '.join('%.2f' % one for one in seconds)))
    print('%-28s %8.3f' % ('together', total))
    print('%-28s %8.3f  %s' % ('to-hdf5 --compress none', peer, ' '.join('%.2f' % one for one in whole)))
    print('%-28s %8.2f' % ('ratio', total / peer))

    # without its first row no column is one block
    for _ in range(arguments.rounds):
        prepare(out, arguments.from_disk)
        target = os.path.join(out, 'inserted.h5')
        plan_and_work(ms, target, '--rows', '1..%d' % (arguments.times * ROWS))
        chunks = bench.size(target + '.shards/chunks')
        os.sync()
        inserts.append(timed(['shard', 'commit', target]))
    print('%-28s %8.3f  of %.0f MB; 1 s and 500 MB/s: %.2f' % (
        'commit of compressed chunks', statistics.median(inserts), chunks / 1e6, 1 + chunks / 500e6))
    shutil.rmtree(out)


if __name__ == '__main__':
    main()
