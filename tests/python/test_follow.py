"""`follow` beside a python-casacore writer: every row arrives once, in order, and the writer is never kept waiting."""
import json
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import support

# H5BRIDGE_FOLLOW_ROWS makes the test longer (docs/correctness.md).
ROWS = int(os.environ.get('H5BRIDGE_FOLLOW_ROWS', 2000))

# Appends rows until there are enough, in blocks of changing size, and prints how long each operation took that may have
# to wait for the lock. With user locking it is taken and given back; with auto locking, the default, casacore takes it
# itself and keeps it; it is flushed, and at times given back, as a telescope's software does.
WRITER = '''
import sys, time, json, numpy as np, casacore.tables as ct
path, locking, rows, rewrite = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == 'rewrite'
columns = [ct.makescacoldesc('ROW', 0), ct.makescacoldesc('NAME', ''), ct.makescacoldesc('FLAG_ROW', False),
           ct.makescacoldesc('SCAN', 0, datamanagertype='IncrementalStMan', datamanagergroup='I'),
           ct.makearrcoldesc('UVW', 0., ndim=1, shape=[3], datamanagertype='TiledColumnStMan', datamanagergroup='U'),
           ct.makearrcoldesc('DATA', 0j, ndim=2, datamanagertype='TiledShapeStMan', datamanagergroup='D',
                             valuetype='complex'),
           ct.makearrcoldesc('WEIGHT', 0., ndim=1)]
t = ct.table(path, ct.maketabdesc(columns), nrow=0, lockoptions=locking, ack=False)
waits = []
def timed(call):
    start = time.perf_counter(); call(); waits.append(time.perf_counter() - start)
rng = np.random.default_rng(1)
first = True
while t.nrows() < rows:
    start = t.nrows()
    n = min(int(rng.integers(1, 40)), rows - start)
    if locking == 'user': timed(lambda: t.lock(write=True))
    timed(lambda: t.addrows(n))
    r = np.arange(start, start + n)
    t.putcol('ROW', r.astype('i4'), start, n)
    t.putcol('NAME', ['row %d' % i for i in r], start, n)
    t.putcol('FLAG_ROW', r % 3 == 0, start, n)
    t.putcol('SCAN', (r // 100).astype('i4'), start, n)
    t.putcol('UVW', np.repeat(r[:, None], 3, 1) + 0.5, start, n)
    t.putcol('DATA', (r[:, None, None] + 1j * np.arange(8).reshape(1, 4, 2)).astype('c8'), start, n)
    for i in r:
        if i % 7 or i == 0: t.putcell('WEIGHT', int(i), np.full(4, float(i)))
    if rewrite and start > 100:
        old = int(rng.integers(0, start - 50))
        t.putcol('FLAG_ROW', np.ones(50, bool), old, 50)
        t.putcol('DATA', np.full((50, 4, 2), -1 - old, 'c8'), old, 50)
        t.putcell('SCAN', old, 4711)
    if locking == 'user': t.unlock()
    else:
        t.flush()
        if rng.integers(0, 4) == 0: t.unlock()
    if first: print('ready', flush=True); first = False
    time.sleep(float(rng.choice([0, 0.001, 0.01])))
t.close()
print(json.dumps(waits), flush=True)
'''


def start_writer(path, locking, rewrite=False, rows=ROWS):
    words = [sys.executable, '-c', WRITER, str(path), locking, str(rows), 'rewrite' if rewrite else 'append']
    writer = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == 'ready\n'
    return writer


def start_follow(source, live, *words):
    words = [support.H5BRIDGE, 'follow', str(source), str(live), '--until-closed', '--json', *words]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def poll(live, rewrite):
    """Reads the committed rows; they are a prefix, whole in every column."""
    with h5py.File(live, 'r', swmr=True) as f:
        main = f['MAIN']
        n = int(main['committed_rows'][0])
        rows = np.arange(n)
        for name in ('ROW', 'NAME', 'UVW', 'DATA'):
            assert len(main[name]) >= n
        assert (main['ROW'][:n] == rows).all()
        assert [b.decode() for b in main['NAME'][:n]] == ['row %d' % i for i in rows]
        assert (main['UVW'][:n] == rows[:, None] + 0.5).all()
        if not rewrite:
            assert (main['DATA'][:n] == rows[:, None, None] + 1j * np.arange(8).reshape(4, 2)).all()
            assert (main['FLAG_ROW'][:n] == (rows % 3 == 0)).all()
            assert (main['SCAN'][:n] == rows // 100).all()
    return n


@pytest.mark.parametrize('locking', ['user', 'auto'])
@pytest.mark.parametrize('rewrite', [False, True], ids=['append', 'rewrite'])
def test_every_row_arrives(tmp_path, locking, rewrite):
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    writer = start_writer(table, locking, rewrite)
    follow = start_follow(table, live)
    seen = []
    while follow.poll() is None:
        if live.exists():
            seen.append(poll(live, rewrite))
        time.sleep(0.01)
    out, err = follow.communicate()
    assert follow.returncode == 0, err
    waits = np.array(json.loads(writer.stdout.readline()))
    assert writer.wait() == 0
    assert seen == sorted(seen) and len(set(seen)) > 5, seen
    document = json.loads(out)
    assert document['tables'] == {'MAIN': ROWS} and document['warnings'] == []
    # every column is the same as in the table
    theirs, ours = support.digest(table)['.'], support.digest(live)['.']
    assert ours['nrow'] == theirs['nrow'] == ROWS
    for name, column in theirs['columns'].items():
        assert ours['columns'][name] == column, name
    assert waits.max() < 0.1, 'the writer waited: p50 %.4f p99 %.4f max %.4f s' % (
        np.median(waits), np.quantile(waits, .99), waits.max())
    print('%s: waits of casacore: p50 %.2f ms, p99 %.2f ms, max %.2f ms; %d commits seen' % (
        locking, 1e3 * np.median(waits), 1e3 * np.quantile(waits, .99), 1e3 * waits.max(), len(set(seen))))
