"""Appends visibilities to a live file: h5bridge's library, an h5py SWMR writer doing the same, and plain writes as the limit.

A row has TIME, ANTENNA1, UVW, DATA and FLAG; an integration 378 rows (28 antennas) of 64 channels and 4 correlations, 0.9 MB.
Only ratios within one run mean anything: every contender runs once a round, each after a file of the same size was written and
removed, since it matters whose memory the system gives it. The latency is from the moment at which the
writer's commit returns to that at which a reader that polls has the newest row. At last python-casacore writes a table of the same rows, as fast
as it can, and `follow` and `pack --follow` follow it: the rate is that of the table's bytes, from its first row until the follower has ended.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
H5BRIDGE = os.environ.get('H5BRIDGE', os.path.join(ROOT, 'target', 'release', 'h5bridge'))
WRITER = os.path.join(ROOT, 'target', 'release', 'examples', 'live_writer')
BASELINES, CHANNELS, CORRELATIONS = 378, 64, 4
ROW_BYTES = 8 + 4 + 24 + CHANNELS * CORRELATIONS * (8 + 1)

parser = argparse.ArgumentParser(prog='scripts/bench live', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=None, help='where the files are written (default: the temp dir)')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--integrations', type=int, default=3000, help='of a throughput run (3000: 2.7 GB)')
parser.add_argument('--followed', type=int, default=600, help='integrations of a table that is followed (600: 540 MB)')
parser.add_argument('--polls', type=int, default=500, help='integrations of a latency run')
parser.add_argument('--peer', nargs=5, help=argparse.SUPPRESS)


def cells():
    """The cells of an integration, by column."""
    import numpy as np
    rows, cell = np.arange(BASELINES), (BASELINES, CHANNELS, CORRELATIONS)
    return {
        'TIME': rows / 4,
        'ANTENNA1': (rows % 97).astype('i4'),
        'UVW': np.stack([rows, rows + 0.5, -rows], axis=1).astype('f8'),
        'DATA': (rows[:, None, None] + 1j * np.arange(CHANNELS * CORRELATIONS).reshape(cell[1:])).astype('c8'),
        'FLAG': np.broadcast_to(rows[:, None, None] % 3 == 0, cell).copy(),
    }


def peer(kind, path, integrations, every, pace):
    """Writes as tests/tools/live_writer does: `h5py` a live file, `plain` a file for each column, `casacore` a table."""
    integrations, every, pace = int(integrations), float(every), float(pace)
    columns, commit = cells(), None
    if kind == 'plain':
        os.makedirs(path)
        files = {name: open(os.path.join(path, name), 'wb', buffering=0) for name in columns}
        def append(_):
            for name, values in columns.items():
                files[name].write(values.data)
    elif kind == 'casacore':
        import casacore.tables as ct
        descriptions = [ct.makescacoldesc('TIME', 0.), ct.makescacoldesc('ANTENNA1', 0)]
        for name, value in (('UVW', 0.), ('DATA', 0j), ('FLAG', False)):
            more = {'valuetype': 'complex'} if name == 'DATA' else {}
            descriptions.append(ct.makearrcoldesc(name, value, shape=list(columns[name].shape[1:]), datamanagergroup=name,
                                                  datamanagertype='TiledColumnStMan', **more))
        table = ct.table(path, ct.maketabdesc(descriptions), nrow=0, lockoptions='user', ack=False)
        def append(number):
            table.lock(write=True)
            table.addrows(BASELINES)
            for name, values in columns.items():
                table.putcol(name, values, number * BASELINES, BASELINES)
            table.unlock()
    else:
        import h5py
        f = h5py.File(path, 'w', libver=('v110', 'v110'))
        datasets = {}
        for name, values in columns.items():
            row = values[0].nbytes
            chunk = min(max((1 << 20) // row, 1), 4096)
            datasets[name] = f.create_dataset('MAIN/' + name, (0, *values.shape[1:]), values.dtype,
                                              maxshape=(None, *values.shape[1:]), chunks=(chunk, *values.shape[1:]))
        committed = f.create_dataset('MAIN/committed_rows', data=[0], maxshape=(None,), chunks=(1,), dtype='u8')
        f.swmr_mode = True
        def append(number):
            end = (number + 1) * BASELINES
            for name, values in columns.items():
                datasets[name].resize(end, axis=0)
                datasets[name][end - BASELINES:end] = values
        def commit(rows):
            f.flush()
            committed[0] = rows
            committed.flush()
    start = last = time.perf_counter()
    for number in range(integrations):
        time.sleep(max(0, number * pace - (time.perf_counter() - start)))
        append(number)
        if commit and time.perf_counter() - last >= every:
            commit((number + 1) * BASELINES)
            last = time.perf_counter()
            if pace:
                print((number + 1) * BASELINES, int(time.monotonic() * 1e6), flush=True)
    if commit:
        commit(integrations * BASELINES)
        f.close()
    print(integrations * BASELINES, time.perf_counter() - start)


def command(kind, path, integrations, every, pace):
    if kind == 'h5bridge':
        return [WRITER, path, 'same=1', 'seconds=1000', 'integrations=%d' % integrations, 'every=%g' % every, 'pace=%g' % pace,
                'report=%d' % (pace > 0)]
    return [sys.executable, os.path.abspath(__file__), '--peer', kind, path, str(integrations), str(every), str(pace)]


def remove(path):
    subprocess.run(['rm', '-rf', path, path + '.writer'], check=True)


def throughput(folder, arguments, every):
    kinds = ['plain', 'h5bridge', 'h5py']
    rates = {kind: [] for kind in kinds}
    path = os.path.join(folder, 'live.h5')
    for number in range(arguments.rounds + 1):
        for kind in kinds:
            with open(path, 'wb', buffering=0) as same_for_all:
                for _ in range(arguments.integrations):
                    same_for_all.write(bytes(BASELINES * ROW_BYTES))
            remove(path)
            os.sync()
            out = subprocess.run(command(kind, path, arguments.integrations, every, 0), check=True, capture_output=True,
                                 text=True).stdout.split()
            remove(path)
            if number:      # the first round warms up
                rates[kind].append(int(out[0]) / float(out[1]))
    commits = 'a commit for each integration' if every == 0 else 'a commit each %g s' % every
    print('\n%d integrations of %d rows, %d MB, %s, %d rounds' % (
        arguments.integrations, BASELINES, arguments.integrations * BASELINES * ROW_BYTES / 1e6, commits, arguments.rounds))
    print('%-10s %12s %8s %18s' % ('', 'rows/s', 'MB/s', 'min .. max MB/s'))
    median = {kind: statistics.median(rates[kind]) for kind in kinds}
    for kind in kinds:
        low, high = (extreme(rates[kind]) * ROW_BYTES / 1e6 for extreme in (min, max))
        print('%-10s %12.0f %8.0f %10.0f .. %.0f' % (kind, median[kind], median[kind] * ROW_BYTES / 1e6, low, high))
    print('h5bridge is %.1f times as fast as h5py; plain writes take %.2f of its time' % (
        median['h5bridge'] / median['h5py'], median['h5bridge'] / median['plain']))


def latency(folder, arguments, kind):
    """Milliseconds from each commit to its sight, of a reader in this process."""
    import h5py
    path = os.path.join(folder, 'live.h5')
    writer = subprocess.Popen(command(kind, path, arguments.polls, 0, 0.02), stdout=subprocess.PIPE, text=True)
    seen = {}
    while True:
        try:
            f = h5py.File(path, 'r', swmr=True)
            break
        except OSError:
            time.sleep(0.01)
    with f:
        data, committed = f['MAIN/DATA'], f['MAIN/committed_rows']
        last = 0
        while last < arguments.polls * BASELINES and writer.poll() is None:
            committed.refresh()
            rows = int(committed[0])
            if rows > last:
                data.refresh()
                data[rows - 1]
                seen[rows], last = time.monotonic() * 1e3, rows
            time.sleep(0.0005)
    done = {int(rows): int(micros) / 1e3 for rows, micros in (line.split()[:2] for line in writer.stdout if line.count(' ') == 1)
            if micros.isdigit()}
    writer.wait()
    remove(path)
    # a reader may be there before the writer has said so
    return sorted(max(seen[rows] - done[rows], 0) for rows in seen if rows in done)


def following(folder, arguments):
    """MB/s of each verb that follows a table."""
    table, target = os.path.join(folder, 'my.tab'), os.path.join(folder, 'followed')
    verbs = {'follow': ['follow'], 'pack --follow': ['pack', '--follow', '--sync', 'never']}
    rates = {verb: [] for verb in verbs}
    for number in range(arguments.rounds + 1):
        for verb, words in verbs.items():
            remove(table)
            remove(target)
            os.sync()
            writer = subprocess.Popen(command('casacore', table, arguments.followed, 0, 0), stdout=subprocess.DEVNULL)
            while not os.path.exists(os.path.join(table, 'table.lock')):
                time.sleep(0.001)
            start = time.perf_counter()
            subprocess.run([H5BRIDGE, *words, table, target, '--until-closed', '--poll', '50ms', '--quiet'], check=True)
            seconds = time.perf_counter() - start
            assert writer.wait() == 0
            if number:      # the first round warms up
                rates[verb].append(arguments.followed * BASELINES * ROW_BYTES / seconds / 1e6)
    print('\na table of %d MB that is being written, %d rounds' % (arguments.followed * BASELINES * ROW_BYTES / 1e6, arguments.rounds))
    print('%-14s %8s %18s' % ('', 'MB/s', 'min .. max MB/s'))
    median = {verb: statistics.median(found) for verb, found in rates.items()}
    for verb, found in rates.items():
        print('%-14s %8.0f %10.0f .. %.0f' % (verb, median[verb], min(found), max(found)))
    print('pack --follow is %.2f times as fast as follow (at least 0.5)' % (median['pack --follow'] / median['follow']))


def main():
    arguments = parser.parse_args()
    if arguments.peer:
        return peer(*arguments.peer)
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix='h5bridge-live-') as folder:
        print('files in %s, %d processors' % (folder, os.cpu_count()))
        for every in (1, 0):
            throughput(folder, arguments, every)
        print('\n%-10s %10s %10s %10s' % ('latency', 'p50 ms', 'p99 ms', 'commits'))
        for kind in ('h5bridge', 'h5py'):
            found = latency(folder, arguments, kind)
            print('%-10s %10.2f %10.2f %10d' % (kind, statistics.median(found), found[int(0.99 * len(found))], len(found)))
        following(folder, arguments)


if __name__ == '__main__':
    main()
