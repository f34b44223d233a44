"""`follow` beside tables that python-casacore has open in a process of its own."""
import json
import subprocess
import sys
import time

import h5py

import support


def start_follow(source, live, *words):
    words = [support.H5BRIDGE, 'follow', str(source), str(live), '--until-closed', '--json', *words]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Casacore:
    """A process that has tables open, and runs the statements that it is given."""
    PROGRAM = """
import sys, time, numpy as np, casacore.tables as ct
for line in sys.stdin:
    exec(eval(line)); print('done', flush=True)
"""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, '-c', self.PROGRAM], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def run(self, statements, **names):
        for name, value in names.items():
            statements = '%s = %r\n%s' % (name, value, statements)
        self.process.stdin.write('%r\n' % statements)
        self.process.stdin.flush()
        assert self.process.stdout.readline() == 'done\n', statements

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


# Makes a table; `add` appends N rows made from their numbers.
TABLE = """
columns = [ct.makescacoldesc('ROW', 0), ct.makescacoldesc('NAME', '')] + [eval(c) for c in more]
t = ct.table(path, ct.maketabdesc(columns), nrow=0, lockoptions='user', ack=False)
def add(n):
    t.lock(write=True)
    first = t.nrows(); t.addrows(n); rows = np.arange(first, first + n)
    t.putcol('ROW', rows.astype('i4'), first, n)
    t.putcol('NAME', ['row %d' % row for row in rows], first, n)
    for row in rows: cells(int(row))
    t.unlock()
def cells(row): pass
"""


def committed(live, table='MAIN'):
    while True:
        try:
            with h5py.File(live, 'r', swmr=True) as f:
                return int(f[table]['committed_rows'][0])
        except BlockingIOError:
            # a follow that goes on with the file keeps HDF5's lock while it opens it
            time.sleep(0.01)


def wait_for(condition, follow=None, seconds=30):
    end = time.time() + seconds
    while not condition():
        assert time.time() < end, 'waited for too long'
        assert follow is None or follow.poll() is None, follow.communicate()
        time.sleep(0.01)


def wait_for_rows(live, rows, follow=None, table='MAIN'):
    wait_for(lambda: live.exists() and committed(live, table) == rows, follow)


def ended(follow, code=0):
    """What a follow said that has ended."""
    out, err = follow.communicate(timeout=60)
    assert follow.returncode == code, err
    return json.loads(out)


# Commits STEP rows at a time, made from their numbers, until it is told to stop or killed; between two commits is a pause
STEP = 10
WRITER = '''
import sys, select, numpy as np, casacore.tables as ct
path, most, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
columns = [ct.makescacoldesc('ROW', 0), ct.makescacoldesc('NAME', ''),
           ct.makearrcoldesc('DATA', 0., ndim=1, shape=[4], datamanagertype='TiledColumnStMan', datamanagergroup='D'),
           ct.makearrcoldesc('SLOW', 0, ndim=1, datamanagertype='IncrementalStMan', datamanagergroup='S')]
t = ct.table(path, ct.maketabdesc(columns), nrow=0, lockoptions='user', ack=False)
def commit(n=%d):
    t.lock(write=True)
    first = t.nrows(); t.addrows(n); rows = np.arange(first, first + n)
    t.putcol('ROW', rows.astype('i4'), first, n)
    t.putcol('NAME', ['row %%d of the table' %% r for r in rows], first, n)
    t.putcol('DATA', np.repeat(rows[:, None], 4, 1).astype('f8'), first, n)
    for r in rows: t.putcell('SLOW', int(r), np.array([r // 7], 'i4'))
    t.unlock()
commit()
print('ready', flush=True)
while not select.select([sys.stdin], [], [], pause)[0]:
    if t.nrows() < most: commit()
t.close()
''' % STEP


class Telescope:
    """A casacore that appends rows."""

    def __init__(self, table, most=20_000, pause=0.002):
        words = [sys.executable, '-c', WRITER, str(table), str(most), str(pause)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == 'ready\n'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def stop(self):
        self.process.communicate('stop\n', timeout=60)
        assert self.process.returncode == 0
