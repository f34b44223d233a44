"""Conversions of a table that casacore is writing to: every output is a state that the table has had."""
import os
import random
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import support
from support import h5bridge

ROUNDS = 100 if support.LONG else 30
STEP = 10       # rows of a commit
STATES = 4      # at least so many are seen
PATIENCE = 60   # seconds for them: a writer that finds the table locked looks again after a second only

# Appends STEP rows at a time until it is told to stop; each commit also rewrites a column of all rows, so that an
# output of two states would have two values in it. With user locking the lock must be taken and given back; with auto
# locking, the default, casacore takes it by itself and would keep it while idle, so it is given back.
WRITER = '''
import sys, numpy as np, casacore.tables as ct
path, locking = sys.argv[1:]
columns = [ct.makescacoldesc('ROW', 0), ct.makescacoldesc('COMMIT', 0), ct.makescacoldesc('NAME', ''),
           ct.makearrcoldesc('DATA', 0., ndim=1, shape=[4], datamanagertype='TiledColumnStMan', datamanagergroup='D'),
           ct.makearrcoldesc('SLOW', 0, ndim=1, datamanagertype='IncrementalStMan', datamanagergroup='S')]
t = ct.table(path, ct.maketabdesc(columns), nrow=0, lockoptions=locking, ack=False)
def commit(number):
    if locking == 'user': t.lock(write=True)
    first = t.nrows(); n = %d
    t.addrows(n); rows = np.arange(first, first + n)
    t.putcol('ROW', rows.astype('i4'), first, n)
    t.putcol('NAME', ['row %%d of the table' %% r for r in rows], first, n)
    t.putcol('DATA', np.repeat(rows[:, None], 4, 1).astype('f8'), first, n)
    for r in rows: t.putcell('SLOW', int(r), np.array([r // 7], 'i4'))
    t.putcol('COMMIT', np.full(first + n, number, 'i4'))
    t.putkeyword('COMMIT', number)
    t.unlock()
commit(1)
print('ready', flush=True)
import select, time
number = 1
while not select.select([sys.stdin], [], [], 0.002)[0]:
    number += 1
    if t.nrows() < 3000: commit(number)
print(number, flush=True)
t.close()
''' % STEP


def check(path):
    """The number of the commit whose state a native file holds."""
    with h5py.File(path) as f:
        main = f['MAIN']
        rows = main['ROW'][:]
        commits = set(main['COMMIT'][:].tolist())
        assert len(commits) == 1, 'two states in one file: %s' % commits
        commit = commits.pop()
        assert main.attrs['COMMIT'] == commit
        assert len(rows) == commit * STEP
        assert (rows == np.arange(len(rows))).all()
        assert (main['DATA'][:] == rows[:, None]).all()
        assert (main['SLOW'][:, 0] == rows // 7).all()
        assert main['NAME'].asstr()[-1] == 'row %d of the table' % rows[-1]
    return commit


@pytest.mark.parametrize('locking, rounds', [('user', ROUNDS), ('auto', ROUNDS)])
def test_every_output_is_a_state_that_was(tmp_path, locking, rounds):
    table, out = tmp_path / 'live.tab', tmp_path / 'out.h5'
    writer = subprocess.Popen([sys.executable, '-c', WRITER, str(table), locking], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout.readline() == 'ready\n'
        seen = []
        pause = random.Random(1)
        end = time.monotonic() + PATIENCE
        while len(seen) < rounds or (len(set(seen)) < STATES and time.monotonic() < end):
            time.sleep(pause.choice([0, 0.01, 0.05, 0.3]))
            h5bridge('to-hdf5', '-q', '--overwrite', '--compress', 'none', table, out)
            seen.append(check(out))
        assert seen == sorted(seen)
        last, _ = writer.communicate('stop\n', timeout=60)
        assert writer.returncode == 0
    finally:
        writer.kill()
    print('%s locking: %d conversions saw %d states of %s' % (locking, rounds, len(set(seen)), last.strip()))
    assert len(set(seen)) >= STATES, 'hardly anything was written meanwhile: the test saw nothing'
    # and casacore can go on
    lock = (table / 'table.lock').read_bytes()
    h5bridge('digest', table)
    assert (table / 'table.lock').read_bytes() == lock, 'table.lock was changed'


def test_a_writer_is_waited_for_no_longer_than_asked(tmp_path):
    table, out = tmp_path / 'held.tab', tmp_path / 'out.h5'
    hold = ("import sys, casacore.tables as ct; t = ct.table(sys.argv[1], ct.maketabdesc([ct.makescacoldesc('A', 0)]),"
            " nrow=1, lockoptions='permanent', ack=False); t.flush(); print('ready', flush=True); sys.stdin.read()")
    holder = subprocess.Popen([sys.executable, '-c', hold, str(table)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True)
    try:
        assert holder.stdout.readline() == 'ready\n'
        start = time.time()
        process = h5bridge('to-hdf5', table, out, '--lock-timeout', '0.5', code=7)
        assert 0.4 < time.time() - start < 10
        assert 'another program has locked the table' in process.stderr
        assert not out.exists() and os.listdir(tmp_path) == ['held.tab']
        h5bridge('to-hdf5', '-q', table, out, '--no-lock')
    finally:
        holder.communicate()
