"""Times sharing against copying, on the file system of a folder: seconds and space of each way.

    python share.py FOLDER [--table MY.MS] [--rounds 3]

Without --table a MeasurementSet of 905 MB is made there. The time includes that everything is on the disk; the space is what the file
system has less afterwards. Ways that the file system does not have are named."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

H5BRIDGE = os.environ.get('H5BRIDGE', os.path.join(os.path.dirname(__file__), '..', '..', 'target', 'release', 'h5bridge'))


def synced(folder):
    subprocess.run(['sync', '-f', folder], check=True)


def used(folder):
    synced(folder)
    state = os.statvfs(folder)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def settled(folder):
    """`used`, once the space of removed files has been given back, which XFS does later."""
    before = None
    while before != (now := used(folder)):
        before = now
        time.sleep(0.5)
    return now


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def run(words, target, rounds, prepare):
    """(seconds, bytes of space, document) of the median run of a command that makes TARGET; None if it fails."""
    folder, runs = os.path.dirname(target), []
    for _ in range(rounds):
        remove(target)
        for command in prepare:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        before = settled(folder)
        started = time.monotonic()
        process = subprocess.run(words, capture_output=True, text=True)
        synced(folder)
        seconds = time.monotonic() - started
        if process.returncode:
            return None
        document = json.loads(process.stdout) if '--json' in words else {}
        runs.append((seconds, used(folder) - before, document))
    return statistics.median_low(run[0] for run in runs), min(run[1] for run in runs), runs[-1][2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--table')
    parser.add_argument('--rounds', type=int, default=3)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix='share.', dir=args.folder)
    try:
        table = os.path.join(folder, 'my.ms')
        if args.table:
            shutil.copytree(args.table, table)
        else:
            make = os.path.join(os.path.dirname(__file__), 'make_ms.py')
            subprocess.run([sys.executable, make, table, '700', '28', '64'], check=True)
        compare(table, folder, args.rounds)
    finally:
        shutil.rmtree(folder)


def compare(table, folder, rounds):
    def at(name):
        return os.path.join(folder, name)
    size = sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(table) for name in names)
    kind = subprocess.run(['stat', '-f', '-c', '%T', folder], capture_output=True, text=True).stdout.strip()
    print('%s, %.0f MB on %s, median of %d; x: times `cp -r`' % (os.path.basename(table), size / 1e6, kind, rounds))

    def bridge(verb, source, target, *words):
        return [H5BRIDGE, verb, source, at(target), '--json', *words], at(target)
    restorable = at('restorable.h5')
    ways = [
        ('cp -r', (['cp', '-r', '--reflink=never', table, at('cp.ms')], at('cp.ms'))),
        ('cp -r --reflink=always', (['cp', '-r', '--reflink=always', table, at('cp.ms')], at('cp.ms'))),
        ('to-hdf5 --compress none', bridge('to-hdf5', table, 'none.h5', '--compress', 'none')),
        ('to-hdf5 --compress shared --reflink never', bridge('to-hdf5', table, 'never.h5', '--compress', 'shared', '--reflink', 'never')),
        ('to-hdf5 --compress shared', bridge('to-hdf5', table, 'my.h5', '--compress', 'shared')),
        ('to-hdf5 --compress shared --restorable', bridge('to-hdf5', table, 'restorable.h5', '--compress', 'shared', '--restorable')),
        ('to-ms', bridge('to-ms', restorable, 'back.ms')),
        ('to-ms --exact', bridge('to-ms', restorable, 'exact.ms', '--exact')),
        ('pack --format multifile', bridge('pack', table, 'packed.ms', '--format', 'multifile')),
        ('unpack', bridge('unpack', at('packed.ms'), 'unpacked.ms')),
        ('link', bridge('link', restorable, 'thin.ms')),
        ('materialize', ([H5BRIDGE, 'materialize', at('thin.ms'), '--json'], at('thin.ms'))),
        ('to-hdf5 --replace', ([H5BRIDGE, 'to-hdf5', at('other.ms'), at('other.h5'), '--replace', '--overwrite', '--json'],
                               at('other.ms'))),
        ('manifest', bridge('manifest', table, 'my.json', '--overwrite')),
    ]
    # not part of the time
    prepared = {
        'materialize': [[H5BRIDGE, 'link', '-q', restorable, at('thin.ms')]],
        'to-hdf5 --replace': [['rm', '-f', at('other.h5')], ['cp', '-r', '--reflink=auto', table, at('other.ms')]],
    }
    kept, copied = {restorable, at('packed.ms')}, None
    print('%-42s %9s %7s %10s %10s' % ('', 'seconds', 'x', 'space MB', 'shared MB'))
    for name, (words, target) in ways:
        found = run(words, target, rounds, prepared.get(name, []))
        if found is None:
            print('%-42s fails here' % name)
            continue
        seconds, space, document = found
        copied = copied or seconds
        shared = document.get('sharing', document).get('shared_bytes', 0)
        print('%-42s %9.3f %7.3f %10.1f %10.1f' % (name, seconds, seconds / copied, space / 1e6, shared / 1e6), flush=True)
        if target not in kept:
            remove(target)


if __name__ == '__main__':
    main()
