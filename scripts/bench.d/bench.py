"""Runs `cp -r`, casacore+h5py, dask-ms and h5bridge in turn on the same MeasurementSet; prints medians and ratios.

h5bridge runs as a new user types it (compressed) and with --compress none, each time durable, as by default, and with --sync never.
Peers run as they are and followed by a `sync` of what they wrote: durable times compare with durable ones, cached with cached.
With --codecs: each codec of h5bridge, h5py's gzip 1 with shuffle (the casacore+h5py script) and h5repack's.
With --pack: `pack` and `unpack` in all forms against `cp -r` instead, and against one that is made durable, as theirs are.

With --sizes: h5bridge alone on data of several sizes: time for a gigabyte, which should not rise, and memory, which must not.

The reference is 284,200 rows, 864 MB.
Only ratios within one run mean anything: every contender runs once a round, on a warm page cache, into a file that is
removed afterwards. The disk is told to write everything back before each turn, so that none pays for another.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import h5py

import pack

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..')
DASK = os.path.join(ROOT, '.venv', 'dask-ms', 'bin', 'python')
PLAIN, UNCOMPRESSED = 'h5bridge', 'h5bridge none'
CACHED, UNCOMPRESSED_CACHED = 'h5bridge, cached', 'h5bridge none, cached'

# (ours, peer): the same work, as durable
PAIRS = [
    (PLAIN, 'dask-ms' + pack.SYNCED), (CACHED, 'dask-ms'), (UNCOMPRESSED, pack.DURABLE), (UNCOMPRESSED_CACHED, 'cp -r'),
    (UNCOMPRESSED, 'casacore+h5py' + pack.SYNCED), (UNCOMPRESSED_CACHED, 'casacore+h5py'), ('h5bridge gzip:1', 'h5py gzip:1'),
    ('h5bridge gzip:1', 'h5repack gzip:1'),
]

parser = argparse.ArgumentParser(prog='scripts/bench', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=os.environ.get('H5BRIDGE_BENCH_DIR'),
                    help='where the data is kept between runs (or $H5BRIDGE_BENCH_DIR; default: below the temp dir)')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--sizes', metavar='TIMES', type=lambda text: [int(word) for word in text.split(',')],
                    help='h5bridge alone on data of so many integrations each, and whether time is linear: 203,700,3241,12963 are '
                    '0.26 to 17 GB (needs twice the space of the largest)')
parser.add_argument('--codecs', action='store_true', help='the codecs of to-hdf5 instead')
parser.add_argument('--pack', action='store_true', help='pack and unpack instead of to-hdf5 (also needs 4 x the space)')
parser.add_argument('--times', type=int, default=700, help='integrations of the reference (700: 864 MB)')
parser.add_argument('--without', action='append', default=[], help='leave this contender out')


def contenders(ms, out):
    """{name: (command, file or folder it writes)}"""
    peers = {
        'cp -r': (['cp', '-r', ms, out + '.ms'], out + '.ms'),
        'casacore+h5py': ([sys.executable, os.path.join(HERE, 'peer_casacore_h5py.py'), ms, out + '.peer.h5'],
                          out + '.peer.h5'),
    }
    if os.path.exists(DASK):
        peers['dask-ms'] = ([DASK, os.path.join(HERE, 'peer_dask_ms.py'), ms, out + '.zarr'], out + '.zarr')
    found = {
        PLAIN: to_hdf5(ms, out),
        CACHED: to_hdf5(ms, out, None, '--sync', 'never'),
        UNCOMPRESSED: to_hdf5(ms, out, 'none'),
        UNCOMPRESSED_CACHED: to_hdf5(ms, out, 'none', '--sync', 'never'),
    }
    for name, (command, written) in peers.items():
        found[name] = command, written
        found[name + pack.SYNCED] = pack.synced(command, written), written
    return found


def codecs(ms, out):
    """As `contenders`, for --codecs."""
    found = {'cp -r': (['cp', '-r', ms, out + '.ms'], out + '.ms'), PLAIN: to_hdf5(ms, out)}
    for codec in ('none', 'gzip:1', 'gzip:4', 'gzip:9', 'zstd', 'lz4'):
        found['h5bridge ' + codec] = to_hdf5(ms, out, codec)
    peer = [sys.executable, os.path.join(HERE, 'peer_casacore_h5py.py'), ms, out + '.peer.h5']
    found['h5py gzip:1'] = (peer + ['1'], out + '.peer.h5')
    if shutil.which('h5repack'):
        plain = out + '.plain.h5'
        if not os.path.exists(plain):
            subprocess.run(to_hdf5(ms, out, 'none')[0][:-1] + [plain], check=True)
        # named one by one, since h5repack 1.10 fails where a dataset has an extent of 0
        large = ','.join(large_datasets(plain))
        found['h5repack gzip:1'] = (['h5repack', '-f', large + ':SHUF', '-f', large + ':GZIP=1', plain, out + '.repacked.h5'],
                                    out + '.repacked.h5')
    return found


def large_datasets(path):
    """Paths of the datasets of at least a megabyte."""
    found = []
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.append('/' + name) if getattr(item, 'nbytes', 0) >= 1 << 20 else None)
    return found


def to_hdf5(ms, out, compress=None, *more):
    """(command, file that it writes); `None`: the default."""
    options = [*(['--compress', compress] if compress else []), *more]
    return [os.environ['H5BRIDGE'], 'to-hdf5', '-q', '--overwrite', *options, ms, out + '.h5'], out + '.h5'


def make(folder, times):
    """The MeasurementSet of so many integrations; made once."""
    path = os.path.join(folder, 'bench%d.ms' % times)
    if not os.path.exists(path):
        print('making %s ...' % path, flush=True)
        subprocess.run([sys.executable, os.path.join(HERE, 'make_ms.py'), path + '.new', str(times), '28', '64'],
                       check=True, stdout=subprocess.DEVNULL)
        os.rename(path + '.new', path)
    return path


def empty_page_cache():
    """Everything is written back and, if this is root, dropped from memory."""
    os.sync()
    if os.access('/proc/sys/vm/drop_caches', os.W_OK):
        with open('/proc/sys/vm/drop_caches', 'w') as file:
            file.write('3')


def warm(*paths):
    """All of them in the page cache, as a reader leaves them: in larger pieces than a program that writes little by little."""
    empty_page_cache()
    for path in paths:
        read_all(path)


def read_all(path):
    subprocess.run(['cat'] + [os.path.join(d, f) for d, _, fs in os.walk(path) for f in fs], stdout=subprocess.DEVNULL)


def size(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


def remove(path):
    shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)


def run(command):
    """(seconds, peak resident MB, seconds by its own account or None) of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.stdout.read()
    # wait4 and not RUSAGE_CHILDREN, which has the largest of all children so far
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit('%s failed:\n%s' % (' '.join(command), output.decode(errors='replace')[-3000:]))
    return seconds, usage.ru_maxrss / 1024, inner_seconds(output)


def inner_seconds(output):
    """What a peer's script says it took, without Python's start; None for the others."""
    words = output.decode(errors='replace').split()
    return float(words[-2]) if len(words) >= 2 and words[-1] == 's' else None


def bench(folder, times, rounds, names=None, contenders=contenders):
    ms = make(folder, times)
    warm(ms)
    chosen = {name: c for name, c in contenders(ms, os.path.join(folder, 'out')).items() if not names or name in names}
    compete(ms, chosen, rounds)


def compare_sizes(folder, series, rounds):
    """Seconds for a gigabyte and peak memory of data of several sizes."""
    print('%10s  %-16s %8s %8s %8s %8s %8s' % ('GB', '', 'median s', 'min s', 'max s', 's / GB', 'peak MB'))
    for times in series:
        ms = make(folder, times)
        warm(ms)
        gigabytes = size(ms) / 1e9
        out = os.path.join(folder, 'out')
        for name, (command, path) in {PLAIN: to_hdf5(ms, out), UNCOMPRESSED: to_hdf5(ms, out, 'none')}.items():
            runs = []
            for _ in range(rounds):
                remove(path)
                os.sync()
                runs.append(run(command))
            remove(path)
            seconds = [r[0] for r in runs]
            median = statistics.median(seconds)
            print('%10.2f  %-16s %8.2f %8.2f %8.2f %8.3f %8.0f' % (
                gigabytes, name, median, min(seconds), max(seconds), median / gigabytes, max(r[1] for r in runs)), flush=True)


def compete(ms, chosen, rounds):
    """Runs {name: (command, what it writes)} in turns and reports."""
    report(ms, *take_turns(chosen, rounds))


def take_turns(chosen, rounds):
    """Runs {name: (command, what it writes)} in turns: ({name: what `run` says of each round}, {name: bytes written})."""
    results, sizes = {name: [] for name in chosen}, {}
    for number in range(rounds):
        for name, (command, out) in chosen.items():
            remove(out)
            os.sync()
            results[name].append(run(command))
            sizes[name] = size(out)
            remove(out)
        print('round %d: %s' % (number + 1, '  '.join('%s %.2f s' % (n, r[-1][0]) for n, r in results.items())),
              flush=True)
    return results, sizes


def report(ms, results, sizes):
    median = {name: statistics.median(r[0] for r in runs) for name, runs in results.items()}
    print('\n%s, %.0f MB, %d rounds' % (os.path.basename(ms), size(ms) / 1e6, len(results['cp -r'])))
    peers = [name for name in ('cp -r', pack.DURABLE) if name in results]
    columns = ''.join(' %14s' % ('x ' + peer) for peer in peers)
    print('%-20s %8s %8s %8s%s %10s %9s' % ('', 'median s', 'min s', 'max s', columns, 'peak MB', 'out MB'))
    for name, runs in results.items():
        seconds = [r[0] for r in runs]
        ratios = ''.join(' %14.2f' % (median[name] / median[peer]) for peer in peers)
        print('%-20s %8.3f %8.3f %8.3f%s %10.0f %9.0f' % (
            name, median[name], min(seconds), max(seconds), ratios, max(r[1] for r in runs), sizes[name] / 1e6))
    for ours, peer in PAIRS:
        if peer in results and ours in results:
            inner = [r[2] for r in results[peer]]
            # what Python's start and imports take is the same with and without a sync
            start = statistics.median(r[0] - r[2] for r in results[peer.removesuffix(pack.SYNCED)]) if None not in inner else 0
            without = ' (%.2f without Python\'s start and imports)' % (median[ours] / (median[peer] - start)) if start else ''
            print('%s takes %.2f of the time of %s%s, the file has %.3f of its bytes' % (
                ours, median[ours] / median[peer], peer, without, sizes[ours] / sizes[peer]))
    print(flush=True)


# what hashes and codecs are tuned for; a figure means little without them
FEATURES = ('sse4_1', 'avx2', 'avx512f', 'sha_ni', 'asimd', 'sha2')
# what each word of `--hide` leaves out
HIDDEN = {'sha': ('sha_ni',), 'avx512': ('avx512f',), 'avx2': ('avx2', 'avx512f')}


def processors():
    """Number, model and features of the processors, in words."""
    with open('/proc/cpuinfo') as file:
        fields = dict(line.split(':', 1) for line in file if ':' in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    known = fields.get('flags', fields.get('Features', '')).split()
    hidden = os.environ.get('HIDDEN_FEATURES', '')
    for word, names in HIDDEN.items():
        if word in hidden:
            known = [name for name in known if name not in names]
    without = [] if 'sha_ni' in known or 'sha2' in known else ['no SHA instructions']
    return '%d processors: %s, %s' % (os.cpu_count(), fields.get('model name', 'model unknown'),
                                      ', '.join([name for name in FEATURES if name in known] + without))


def main():
    arguments = parser.parse_args()
    folder = arguments.folder or os.path.join(tempfile.gettempdir(), 'h5bridge-bench')
    os.makedirs(folder, exist_ok=True)
    print('data in %s, %s' % (folder, processors()))
    if not os.path.exists(DASK):
        print('dask-ms is not installed: left out')
    left_out = {peer + end for peer in arguments.without for end in ('', pack.SYNCED)}
    names = set(contenders('', '')) - left_out
    if arguments.pack:
        bench(folder, arguments.times, arguments.rounds, contenders=pack.contenders)
        for name in pack.FORMS:
            remove(pack.packed_path(os.path.join(folder, 'out'), name))
        return
    if arguments.codecs:
        bench(folder, arguments.times, arguments.rounds, contenders=codecs)
        remove(os.path.join(folder, 'out.plain.h5'))
        return
    if arguments.sizes:
        compare_sizes(folder, arguments.sizes, arguments.rounds)
        return
    bench(folder, arguments.times, arguments.rounds, names)


if __name__ == '__main__':
    main()
