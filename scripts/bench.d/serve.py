"""`h5bridge serve` beside h5grove's own server on the same file, and what h5grove has nothing like: plots of files that grow.

api: requests for a converted MeasurementSet (--times), both servers in turn. large: the first picture and all rows of a converted
MeasurementSet of --gigabytes, made for it and removed. live: from the commit of rows to the frame that shows them, eight plots at
10,000 rows a second of 64 channels and 4 correlations. append: a writer at full speed, alone and beside the server. memory: of
the server with 50 clients for events of which one never reads, beside a file that grows at a tenth of that rate for --minutes.

Everything is in the page cache. Of complex numbers both parts count. Only ratios within one run mean anything: the machine may be
busy. `faster` is the time of h5grove to that of h5bridge; `alone` the value that the processor time of the server alone would
give.
"""
import argparse
import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import bench

HERE = os.path.dirname(os.path.abspath(__file__))
WRITER = os.path.join(bench.ROOT, 'target', 'release', 'examples', 'live_writer')
TICK = os.sysconf('SC_CLK_TCK')
CHANNELS, CORRELATIONS = 64, 4
CELL = CHANNELS * CORRELATIONS
# DATA and FLAG: what most plots read of a row
ROW_BYTES = CELL * (8 + 1)
PLOTS = ['waterfall', 'amp_time', 'phase_time', 'spectrum', 'amp_uvdist', 'uv', 'flag_channel', 'baselines']
PARTS = ['api', 'large', 'live', 'append', 'memory']

parser = argparse.ArgumentParser(prog='scripts/bench serve', description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('folder', nargs='?', default=os.environ.get('H5BRIDGE_BENCH_DIR'),
                    help='where the reference is kept between runs (or $H5BRIDGE_BENCH_DIR; default: below the temp dir)')
parser.add_argument('--only', default=','.join(PARTS), help='parts, with commas: %(default)s')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--times', type=int, default=700, help='integrations of the reference (700: 905 MB)')
parser.add_argument('--gigabytes', type=float, default=4, help='size of the large file')
parser.add_argument('--seconds', type=float, default=20, help='length of the growth in part live, and of each run of append')
parser.add_argument('--minutes', type=float, default=1, help='length of the growth in part memory')
parser.add_argument('--rate', type=float, default=10_000, help='rows a second in part live; a tenth in part memory')
parser.add_argument('--json', action='store_true', help='print a JSON list instead of a table')


class Server:
    """A server that runs, and requests to it over one connection."""

    def __init__(self, command, port=None):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE if port is None else None, text=True)
        self.port = port or json.loads(self.process.stdout.readline())['port']
        self.prefix = '/api' if port is None else ''

    def get(self, address, headers={}, connection=None):
        """(status, headers, body); over a connection of its own without one."""
        connection = connection or self.connect()
        connection.request('GET', address, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def api(self, request, **parameters):
        status, _, body = self.get('%s/%s?%s' % (self.prefix, request, urllib.parse.urlencode(parameters)))
        if status != 200:
            raise SystemExit('%s %s: %d %r' % (request, parameters, status, body[:500]))
        return body

    def connect(self):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=600)

    def cpu(self):
        """Seconds of processor time."""
        with open('/proc/%d/stat' % self.process.pid) as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def megabytes(self, field='VmRSS'):
        """Memory: VmRSS now, VmHWM at most."""
        with open('/proc/%d/status' % self.process.pid) as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024


@contextlib.contextmanager
def serving(*sources, peer=False):
    if peer:
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        server = Server([sys.executable, os.path.join(HERE, 'peer_h5grove.py'), sources[0], str(port)], port)
    else:
        server = Server([os.environ['H5BRIDGE'], 'serve', *sources, '--no-token', '--port', '0', '--json'])
    try:
        wait_for(lambda: answers(server), 60)
        yield server
    finally:
        server.process.terminate()
        server.process.wait()


def answers(server):
    try:
        return server.get(server.prefix + '/')[0] == 200
    except OSError:
        return False


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise SystemExit('waited in vain for %d s' % seconds)
        time.sleep(0.01)
    return found


class Report:
    """Measured values, with what was aimed at."""

    def __init__(self, as_json):
        self.as_json, self.found = as_json, []

    def head(self, text):
        print(text if not self.as_json else '', file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def add(self, what, value, unit, target='', peer=None, **more):
        self.found.append({'what': what, 'value': value, 'unit': unit, 'target': target, 'h5grove': peer, **more})
        if not self.as_json:
            theirs = '' if peer is None else '%.3g' % peer
            spread = '%s' % ', '.join('%s %.3g' % (name, number) for name, number in more.items())
            print('%-52s %9.4g %-10s %-12s %9s  %s' % (what, value, unit, target, theirs, spread), flush=True)

    def end(self):
        if self.as_json:
            print(json.dumps(self.found, indent=1))


def quantile(numbers, share):
    return sorted(numbers)[min(int(share * len(numbers)), len(numbers) - 1)]


# ---- beside h5grove -----------------------------------------------------------------------------------------------------

def converted(path, ms, *options):
    """The native file at PATH, of the default form without options."""
    if not os.path.exists(path):
        subprocess.run([os.environ['H5BRIDGE'], 'to-hdf5', '-q', *options, ms, path], check=True)
    return path


def in_turns(rounds, contenders, request, repeat):
    """(median of the seconds, mean of the processor time) that REQUEST takes of each contender, after a round that warms up."""
    seconds, cpu = [[] for _ in contenders], [[] for _ in contenders]
    for number in range(rounds + 1):
        for at, server in enumerate(contenders):
            start, used = time.perf_counter(), server.cpu()
            for _ in range(repeat):
                request(server)
            if number:
                seconds[at].append((time.perf_counter() - start) / repeat)
                cpu[at].append((server.cpu() - used) / repeat)
    return [statistics.median(times) for times in seconds], [statistics.mean(times) for times in cpu]


def api(report, arguments, folder):
    served = os.path.join(folder, 'served')
    os.makedirs(served, exist_ok=True)
    name = 'bench%d.h5' % arguments.times
    path = converted(os.path.join(served, name), bench.make(folder, arguments.times))
    rows = min(2000, arguments.times * 378)
    bin_rows = min(100_000, arguments.times * 378)
    strided = len(range(5, arguments.times * 378, 378))
    report.head('\n%s: %d MB' % (name, os.path.getsize(path) / 1e6))
    with serving(served) as ours, serving(served, peer=True) as theirs:
        both = [ours, theirs]
        members = len(json.loads(ours.api('meta', file=name, path='/MAIN'))['children'])

        def compare(what, unit, target, amount, request, repeat=1, **parameters):
            def ask(server):
                server.api(request, file=name, **parameters)
            seconds, cpu = in_turns(arguments.rounds, both, ask, repeat)
            report.add(what, amount(seconds[0]), unit, target, amount(seconds[1]),
                       faster=seconds[1] / seconds[0], alone=amount(max(cpu[0], 1e-6)))

        compare('/meta of MAIN, %d members' % members, 'ms', '10', lambda s: s * 1e3, 'meta', repeat=10, path='/MAIN')
        compare('/data, complex, JSON, %d rows' % rows, '1e6/s', '15', lambda s: 2 * rows * CELL / s / 1e6, 'data',
                path='/MAIN/DATA', selection='0:%d' % rows)
        compare('/data, complex, bin, %d rows' % bin_rows, 'MB/s', '500', lambda s: bin_rows * CELL * 8 / s / 1e6, 'data',
                path='/MAIN/DATA', selection='0:%d' % bin_rows, format='bin')
        compare('/data, every 378th row, bin, %d rows' % strided, 'ms/row', '', lambda s: s * 1e3 / strided, 'data',
                path='/MAIN/DATA', selection='5::378', format='bin')
        compare('/data, one channel, bin, %d rows' % bin_rows, '1e6 rows/s', '', lambda s: bin_rows / s / 1e6, 'data',
                path='/MAIN/DATA', selection='0:%d,7' % bin_rows, format='bin')
        compare('/data, flags, bin, %d rows' % bin_rows, 'MB/s', '', lambda s: bin_rows * CELL / s / 1e6, 'data',
                path='/MAIN/FLAG', selection='0:%d' % bin_rows, format='bin')
        compare('/stats of WEIGHT_SPECTRUM, %d rows' % (bin_rows // 2), 'MB/s', '',
                lambda s: bin_rows // 2 * CELL * 4 / s / 1e6, 'stats', path='/MAIN/WEIGHT_SPECTRUM',
                selection='0:%d' % (bin_rows // 2))


# ---- plots --------------------------------------------------------------------------------------------------------------

def plot_of(body):
    """What a frame says of itself."""
    length = int.from_bytes(body[:8], 'little')
    return json.loads(json.loads(body[8:8 + length])['__metadata__']['plot'])


def read_whole(server, name, plots):
    """Seconds and processor time until the first frame of the first plot, and until all frames are complete; rows."""
    start, cpu = time.perf_counter(), server.cpu()
    server.get('/live/describe?file=' + name)
    first, waiting, rows = None, list(plots), 0
    while waiting:
        for plot in list(waiting):
            status, _, body = server.get('/live/plot/%s?file=%s&more=100' % (plot, name))
            if status != 200:
                raise SystemExit('%s: %d %r' % (plot, status, body[:500]))
            first = first or time.perf_counter() - start
            found = plot_of(body)
            rows = found['rows']
            if found['complete']:
                waiting.remove(plot)
    return first, time.perf_counter() - start, server.cpu() - cpu, rows


def large(report, arguments, folder):
    times = max(1, round(arguments.gigabytes * 1e9 / (378 * CELL * (8 + 4 + 1))))
    with tempfile.TemporaryDirectory(dir=folder, prefix='large-') as own:
        ms = bench.make(own, times)
        for form, options in (('default', []), ('uncompressed', ['--compress', 'none'])):
            path = converted(os.path.join(own, 'large.h5'), ms, *options)
            report.head('\n%s: %d MB; DATA and FLAG have %d before compression' % (
                form, os.path.getsize(path) / 1e6, times * 378 * ROW_BYTES / 1e6))
            fold(report, arguments, path, form)
            os.unlink(path)


def fold(report, arguments, path, form):
    with open(path, 'rb') as file:
        while file.read(1 << 24):
            pass
    firsts, rates, cores, together = [], [], [], []
    for _ in range(arguments.rounds):
        with serving(path) as server:
            first, seconds, cpu, rows = read_whole(server, 'large.h5', PLOTS[:1])
            firsts.append(first)
            rates.append(rows * ROW_BYTES / seconds / 1e6)
            cores.append(rows * ROW_BYTES / cpu / 1e6)
        with serving(path) as server:
            _, seconds, _, rows = read_whole(server, 'large.h5', PLOTS)
            together.append(seconds)
    report.add('first picture, ' + form, statistics.median(firsts), 's', '1.5')
    report.add('waterfall of all rows, ' + form, statistics.median(rates), 'MB/s', '500', alone=statistics.median(cores))
    report.add('all rows for %d plots, %s' % (len(PLOTS), form), statistics.median(together), 's')


class Follower:
    """A client as the page is: events, and after each a request for every plot, one under way for each."""

    def __init__(self, server, name, plots=PLOTS):
        self.server, self.name = server, name
        # (plot, rows, moment) of each frame
        self.seen, self.revision, self.changed, self.ended = [], None, threading.Condition(), False
        self.threads = [threading.Thread(target=self.listen, daemon=True)]
        self.threads += [threading.Thread(target=self.follow, args=(plot,), daemon=True) for plot in plots]
        for thread in self.threads:
            thread.start()

    def listen(self):
        connection = self.server.connect()
        connection.request('GET', '/live/events?file=' + self.name)
        self.stream = connection.sock
        answer = connection.getresponse()
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            for line in answer:
                if line.startswith(b'id:'):
                    with self.changed:
                        self.revision = line
                        self.changed.notify_all()

    def follow(self, plot):
        connection, known, tag = self.server.connect(), None, ''
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.ended or self.revision != known)
                if self.ended:
                    return
                known = self.revision
            complete = False
            while not complete and not self.ended:
                status, headers, body = self.server.get(
                    '/live/plot/%s?file=%s' % (plot, self.name), {'If-None-Match': tag} if tag else {}, connection)
                if status != 200:
                    break
                tag, found = headers['ETag'], plot_of(body)
                complete = found['complete']
                self.seen.append((plot, found['rows_used'], time.monotonic()))

    def end(self):
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        for thread in self.threads[1:]:
            thread.join()


def writing(path, *words):
    return subprocess.Popen([WRITER, path, 'same=1', 'plots=1', 'report=1', *words], stdout=subprocess.PIPE, text=True)


def commits_of(writer):
    """(rows, moment) of each commit of a writer that has ended, and its last line."""
    lines = [line.split() for line in writer.communicate()[0].splitlines()]
    return [(int(rows), int(micros) / 1e6) for rows, micros in lines[:-1]], lines[-1]


def paced(rate):
    """Words for a writer of RATE rows a second, with ten commits a second."""
    return ['baselines=%d' % (rate / 10), 'pace=0.1', 'every=0']


def live(report, arguments, folder):
    path = os.path.join(folder, 'live.h5')
    writer = writing(path, 'seconds=%g' % arguments.seconds, *paced(arguments.rate))
    report.head('\n%d rows a second of %d channels and %d correlations (%.1f MB/s), ten commits a second, %g s' % (
        arguments.rate, CHANNELS, CORRELATIONS, arguments.rate * ROW_BYTES / 1e6, arguments.seconds))
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 1e6, 60)
    with serving(path) as server:
        follower = Follower(server, 'live.h5')
        time.sleep(2)
        cpu, start = server.cpu(), time.monotonic()
        commits, _ = commits_of(writer)
        cpu, seconds = server.cpu() - cpu, time.monotonic() - start
        # the frames of the last commit
        time.sleep(2)
        follower.end()
    os.unlink(path)
    delays = []
    for plot in PLOTS:
        frames = sorted((moment, rows) for name, rows, moment in follower.seen if name == plot)
        for rows, moment in commits:
            # those of the first two seconds wait for the rows before them
            if moment > start:
                shown = [at for at, used in frames if used >= rows]
                delays.append(max(0, min(shown) - moment) if shown else float('inf'))
    report.add('commit to picture, %d plots, p50' % len(PLOTS), quantile(delays, 0.5), 's', '0.3')
    report.add('commit to picture, %d plots, p95' % len(PLOTS), quantile(delays, 0.95), 's', '1', most=max(delays))
    report.add('server', cpu / seconds, 'of a core', '0.25', frames=len(follower.seen))


def append(report, arguments, folder):
    path = os.path.join(folder, 'live.h5')
    kinds = {'alone': None, 'events': [], '%d plots' % len(PLOTS): PLOTS}
    rates = {kind: [] for kind in kinds}
    seconds = min(arguments.seconds, 5)
    report.head('\na writer at full speed, a commit each second, %g s' % seconds)
    for number in range(arguments.rounds + 1):
        for kind, plots in kinds.items():
            os.sync()
            writer = writing(path, 'seconds=%g' % seconds, 'every=1')
            with contextlib.ExitStack() as stack:
                if plots is not None:
                    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 1e6, 60)
                    follower = Follower(stack.enter_context(serving(path)), 'live.h5', plots)
                    stack.callback(follower.end)
                _, (rows, _, spent) = commits_of(writer)
            os.unlink(path)
            if number:
                rates[kind].append(int(rows) * ROW_BYTES / float(spent) / 1e6)
    median = {kind: statistics.median(found) for kind, found in rates.items()}
    for kind in kinds:
        target = '0.95' if kind == 'events' else ''
        report.add('appending, ' + (kind if kind == 'alone' else 'serve beside it, ' + kind), median[kind], 'MB/s')
        if kind != 'alone':
            report.add('  of that alone', median[kind] / median['alone'], '', target)


def memory(report, arguments, folder):
    path = os.path.join(folder, 'live.h5')
    seconds, rate = arguments.minutes * 60, arguments.rate / 10
    writer = writing(path, 'seconds=%g' % seconds, *paced(rate))
    report.head('\n50 clients for events, one of which never reads, and one with %d plots; %g minutes, %d rows a second' % (
        len(PLOTS), arguments.minutes, rate))
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 1e6, 60)
    samples = []
    with serving(path) as server:
        follower = Follower(server, 'live.h5')
        deaf = socket.create_connection(('127.0.0.1', server.port))
        deaf.sendall(b'GET /live/events?file=live.h5 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n' % server.port)
        listeners = [Follower(server, 'live.h5', []) for _ in range(48)]
        # reports of the writer would fill its pipe
        reader = threading.Thread(target=writer.communicate)
        reader.start()
        while writer.poll() is None:
            samples.append(server.megabytes())
            time.sleep(1)
        reader.join()
        most = server.megabytes('VmHWM')
        follower.end()
        deaf.close()
        heard = sum(listener.revision is not None for listener in listeners)
    bytes_written = os.path.getsize(path)
    os.unlink(path)
    report.add('memory of the server, first ten seconds', max(samples[:10]), 'MB', '')
    report.add('memory of the server, last ten seconds', max(samples[-10:]), 'MB', '')
    report.add('memory of the server, most', most, 'MB', '256', listeners=heard, written=bytes_written / 1e6)


def main():
    arguments = parser.parse_args()
    chosen = arguments.only.split(',')
    unknown = set(chosen) - set(PARTS)
    if unknown:
        parser.error('unknown part %s' % ', '.join(sorted(unknown)))
    report = Report(arguments.json)
    with contextlib.ExitStack() as stack:
        folder = arguments.folder or stack.enter_context(tempfile.TemporaryDirectory(prefix='h5bridge-serve-'))
        os.makedirs(folder, exist_ok=True)
        report.head('files in %s, %d processors, load %.1f, %d rounds, medians' % (
            folder, os.cpu_count(), os.getloadavg()[0], arguments.rounds))
        report.head('%-52s %9s %-10s %-12s %9s' % ('', 'here', '', 'target', 'h5grove'))
        for part in PARTS:
            if part in chosen:
                globals()[part](report, arguments, folder)
    report.end()


if __name__ == '__main__':
    main()
