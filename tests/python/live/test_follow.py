"""`follow` beside a python-casacore writer: every row arrives once, in order, and the writer is never kept waiting."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import support
from following import Casacore, TABLE, committed, ended, start_follow, wait_for, wait_for_rows
from support import EXISTS, UNSUPPORTED, WARNINGS, h5bridge

# H5BRIDGE_FOLLOW_ROWS makes the test longer.
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


def start_writer(path, locking, rewrite=False, rows=ROWS, storage=None):
    words = [sys.executable, '-c', WRITER, str(path), locking, str(rows), 'rewrite' if rewrite else 'append']
    settings = path.with_suffix('.rc')
    settings.write_text('table.storage.option: %s\ntable.storage.blocksize: 4096\n' % (storage or 'sepfile'))
    environment = dict(os.environ, CASARCFILES=str(settings))
    writer = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert writer.stdout.readline() == 'ready\n'
    return writer


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
    same_columns(table, live)
    print('%s: %d commits seen' % (locking, len(set(seen))))
    check_waits(locking, waits)


def same_columns(table, live):
    """Every column is the same as in the table."""
    theirs, ours = support.digest(table)['.'], support.digest(live)['.']
    assert ours['nrow'] == theirs['nrow'] == ROWS
    for name, column in theirs['columns'].items():
        assert ours['columns'][name] == column, name


@pytest.mark.parametrize('locking', ['user', 'auto'])
def test_a_table_in_a_container(tmp_path, locking):
    """All its files are in one that casacore writes to while it is read."""
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    writer = start_writer(table, locking, rewrite=True, storage='multifile')
    follow = start_follow(table, live)
    out, err = follow.communicate()
    assert follow.returncode == 0, err
    check_waits(locking, json.loads(writer.stdout.readline()))
    assert writer.wait() == 0
    assert os.path.exists(table / 'table.mf') and not os.path.exists(table / 'table.f0')
    assert json.loads(out)['tables'] == {'MAIN': ROWS}
    same_columns(table, live)


def check_waits(title, waits):
    """casacore was never kept waiting for long."""
    waits = 1e3 * np.array(waits)
    told = '%s: waits of casacore: p50 %.2f ms, p99 %.2f ms, max %.2f ms of %d' % (
        title, np.median(waits), np.quantile(waits, .99), waits.max(), len(waits))
    print(told)
    assert waits.max() < 100, told


def compare_columns(table, live, without=()):
    """Every column of the live file is the same as in the table, and all but those in WITHOUT are there."""
    theirs, ours = support.digest(table), support.digest(live)
    assert set(theirs) == set(ours)
    for path in theirs:
        columns = theirs[path]['columns']
        missing = {(path, name) for name in columns if name not in ours[path]['columns']}
        assert missing <= set(without), missing
        for name, column in ours[path]['columns'].items():
            if (path, name) not in without:
                assert {**column, 'keywords_sha256': 0} == {**columns[name], 'keywords_sha256': 0}, (path, name)


def test_rows_of_subtables_arrive(tmp_path):
    ms, live, final = tmp_path / 'my.ms', tmp_path / 'live.h5', tmp_path / 'final.h5'
    script = os.path.join(support.ROOT, 'scripts', 'bench.d', 'make_ms.py')
    subprocess.run([sys.executable, script, str(ms), '3', '4', '8'], check=True, stdout=subprocess.DEVNULL)
    with Casacore() as casacore:
        casacore.run("""
t = ct.table(path, readonly=False, lockoptions='user', ack=False)
antenna = ct.table(path + '/ANTENNA', readonly=False, lockoptions='user', ack=False)
history = ct.table(path + '/HISTORY', readonly=False, lockoptions='auto', ack=False)
def add():
    t.lock(write=True); t.addrows(10); n = t.nrows()
    for name in ('DATA', 'FLAG', 'WEIGHT_SPECTRUM', 'UVW', 'WEIGHT', 'SIGMA'):
        t.putcol(name, t.getcol(name, 0, 10), n - 10, 10)
    t.putcol('TIME', np.full(10, 4.7e9), n - 10, 10); t.unlock()
""", path=str(ms))
        follow = start_follow(ms, live)
        wait_for_rows(live, 30, follow)
        casacore.run('add()')
        wait_for_rows(live, 40, follow)
        casacore.run("""
antenna.lock(write=True); antenna.addrows(2); antenna.putcell('NAME', 5, 'new'); antenna.putcell('POSITION', 5, [1., 2., 3.])
antenna.putcell('POSITION', 4, [1., 2., 4.]); antenna.putcell('OFFSET', 4, [0., 0., 0.]); antenna.unlock()
history.addrows(1); history.putcell('MESSAGE', 0, 'hello'); history.flush()
""")
        wait_for_rows(live, 6, follow, 'ANTENNA')
        wait_for_rows(live, 1, follow, 'HISTORY')
        with h5py.File(live, 'r', swmr=True) as f:
            assert f['ANTENNA/NAME'][5].rstrip(b'\0') == b'new' and f['ANTENNA/POSITION'][5].tolist() == [1, 2, 3]
        casacore.run('add()')
    document = ended(follow)
    assert {name: document['tables'][name] for name in ('MAIN', 'ANTENNA', 'HISTORY')} == {
        'MAIN': 50, 'ANTENNA': 6, 'HISTORY': 1}
    # what nothing was known of when it began was said
    unknown = {warning.split(': ')[0] for warning in document['warnings']}
    assert 'MAIN' in unknown or 'HISTORY' in unknown, document['warnings']
    theirs, ours = support.digest(ms), support.digest(live)
    for path in ours:
        for name, column in ours[path]['columns'].items():
            if not any(w.startswith('%s: column %s:' % ({'.': 'MAIN'}.get(path, path), name))
                       for w in document['warnings']):
                assert column['sha256'] == theirs[path]['columns'][name]['sha256'], (path, name)
    h5bridge('finalize', live, final, '--source', ms)
    assert support.digest(final) == theirs


def test_cells_of_several_shapes(tmp_path):
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    with Casacore() as casacore:
        casacore.run(TABLE + """
def cells(row):
    if row % 5 == 4: return
    t.putcell('DATA', row, np.full((3, 2) if row % 2 else (4, 2), row, 'f4'))
    t.putcell('WEIGHT', row, np.full(2 + row % 3, row, 'f8'))
add(20)
""", path=str(table), more=["ct.makearrcoldesc('DATA', 0., ndim=2, valuetype='float',"
                            " datamanagertype='TiledShapeStMan', datamanagergroup='D')",
                            "ct.makearrcoldesc('WEIGHT', 0., ndim=-1)"])
        follow = start_follow(table, live)
        wait_for_rows(live, 20, follow)
        casacore.run('add(30)')
        wait_for_rows(live, 50, follow)
        with h5py.File(live, 'r', swmr=True) as f:
            weight = f['MAIN/WEIGHT']
            for row in range(50):
                cube, index = weight['row_cube'][row], weight['row_index'][row]
                wanted = None if row % 5 == 4 else [row] * (2 + row % 3)
                assert (None if cube < 0 else weight['cube%d' % cube][index].tolist()) == wanted
        # an old cell is written again, one gets another shape, and a new one has a shape that was not there at the start
        casacore.run("""
t.lock(write=True); t.putcell('WEIGHT', 0, [5., 7.]); t.putcell('WEIGHT', 1, [5., 7.]); t.unlock(); add(1)
t.lock(write=True); t.putcell('WEIGHT', 50, np.arange(9.)); t.unlock()
""")
        wait_for_rows(live, 51, follow)
    document = ended(follow)
    assert any('column WEIGHT: cells got another shape' in warning for warning in document['warnings'])
    with h5py.File(live) as f:
        weight = f['MAIN/WEIGHT']
        assert weight['cube%d' % weight['row_cube'][0]][weight['row_index'][0]].tolist() == [5, 7]
    compare_columns(table, live, {('.', 'WEIGHT')})


def test_misfits_are_reported(tmp_path):
    table, live, final = tmp_path / 'live.tab', tmp_path / 'live.h5', tmp_path / 'final.h5'
    with Casacore() as casacore:
        casacore.run(TABLE + "add(5)", path=str(table), more=[
            "ct.makescacoldesc('RECORD', {})", "ct.makearrcoldesc('LATER', 0., ndim=1)"])
        follow = start_follow(table, live, '--strict')
        wait_for_rows(live, 5, follow)
        casacore.run("""
add(2); t.lock(write=True); t.putcell('NAME', 6, 'x' * 200); t.putcell('LATER', 6, [1., 2.])
t.putcell('RECORD', 3, {'a': 1}); t.unlock()
""")
        wait_for_rows(live, 7, follow)
    document = ended(follow, WARNINGS)
    for column in ('RECORD', 'NAME', 'LATER'):
        assert [w for w in document['warnings'] if 'column %s' % column in w], (column, document)
    assert document['code'] == WARNINGS
    compare_columns(table, live, {('.', 'RECORD'), ('.', 'NAME'), ('.', 'LATER')})
    with h5py.File(live) as f:
        assert [n.rstrip(b'\0').decode() for n in f['MAIN/NAME'][:]] == ['row %d' % i for i in range(6)] + ['']
    h5bridge('finalize', live, final, '--source', table)
    h5bridge('verify', table, final)
    assert support.digest(final) == support.digest(table)


def test_news_of_columns_and_keywords(tmp_path):
    table, live, final = tmp_path / 'live.tab', tmp_path / 'live.h5', tmp_path / 'final.h5'
    with Casacore() as casacore:
        casacore.run(TABLE + 'add(5)', path=str(table), more=[])
        follow = start_follow(table, live)
        wait_for_rows(live, 5, follow)
        casacore.run("""
t.lock(write=True); t.addcols(ct.maketabdesc([ct.makescacoldesc('NEW', 1.5)])); t.putcol('NEW', np.arange(5.))
t.putkeyword('STATE', 'later'); t.putcolkeyword('ROW', 'UNIT', 'm'); t.unlock(); add(5)
""")
        wait_for_rows(live, 10, follow)
    document = ended(follow)
    for news in ('column NEW is new', 'keywords of the table changed', 'keywords of column ROW changed'):
        assert [w for w in document['warnings'] if news in w], (news, document)
    compare_columns(table, live, {('.', 'NEW')})
    h5bridge('finalize', live, final, '--source', table)
    assert support.digest(final) == support.digest(table)
    # going on says it again: the live file still has no such column
    document = ended(start_follow(table, live))
    assert [w for w in document['warnings'] if 'column NEW is new' in w], document


@pytest.mark.parametrize('statement, why', [
    ('t.lock(write=True); t.removerows([0, 1, 2]); t.unlock()', '2 rows, but there were 5'),
    ("t.lock(write=True); t.removecols(['NAME']); t.unlock()", 'column NAME was removed'),
], ids=['rows', 'column'])
def test_removals_end_following(tmp_path, statement, why):
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    with Casacore() as casacore:
        casacore.run(TABLE + 'add(5)', path=str(table), more=[])
        follow = start_follow(table, live)
        wait_for_rows(live, 5, follow)
        casacore.run(statement)
        out, err = follow.communicate(timeout=60)
        assert follow.returncode == UNSUPPORTED and why in err, err
    assert committed(live) == 5


@pytest.mark.parametrize('again', [30, None], ids=['made again', 'removed'])
def test_a_table_that_is_made_again_ends_it(tmp_path, again):
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    with Casacore() as first, Casacore() as second:
        first.run(TABLE + 'add(5)', path=str(table), more=[])
        follow = start_follow(table, live)
        wait_for_rows(live, 5, follow)
        if again is None:
            shutil.rmtree(table)
        else:
            # both at once, so that no step sees the moment between
            second.run(TABLE + 'add(%d)' % again, path=str(tmp_path / 'new.tab'), more=[])
            os.rename(table, tmp_path / 'old.tab')
            os.rename(tmp_path / 'new.tab', table)
        out, err = follow.communicate(timeout=60)
        assert follow.returncode == support.DAMAGED, err
        assert str(table) in err and 'was removed' in err and '--overwrite' in err, err
    assert committed(live) == 5
    with h5py.File(live) as f:
        assert f['MAIN/ROW'][:5].tolist() == [0, 1, 2, 3, 4]


def test_finalize_names_what_the_live_file_lacks(tmp_path):
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    with Casacore() as casacore:
        casacore.run(TABLE + "add(5)", path=str(table), more=["ct.makescacoldesc('RECORD', {})"])
        follow = start_follow(table, live)
        wait_for_rows(live, 5, follow)
    ended(follow)
    said = h5bridge('finalize', live, tmp_path / 'final.h5').stderr
    assert 'column RECORD' in said and '--source %s' % table in said, said
    document = json.loads(h5bridge('--json', '--strict', 'finalize', live, tmp_path / 'strict.h5', code=WARNINGS).stdout)
    assert any('column RECORD' in part for part in document['not_followed']) and document['warnings']
    whole = h5bridge('--strict', 'finalize', live, tmp_path / 'whole.h5', '--source', table)
    assert 'RECORD' not in whole.stderr
    h5bridge('verify', table, tmp_path / 'whole.h5')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_goes_on_where_it_was(tmp_path, number):
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    with Casacore() as casacore:
        casacore.run(TABLE + 'add(500)', path=str(table), more=[])
        for rows in range(600, 1000, 100):
            follow = start_follow(table, live)
            casacore.run('add(100)')
            wait_for_rows(live, rows, follow)
            # more of it may be under way
            casacore.run('add(0)')
            follow.send_signal(number)
            out, err = follow.communicate(timeout=30)
            assert follow.returncode == (-9 if number == signal.SIGKILL else 0), err
            assert committed(live) == rows
            # nobody looks while an old row changes
            casacore.run("t.lock(write=True); t.putcell('NAME', at, 'again'); t.unlock()", at=rows // 2)
        follow = start_follow(table, live)
        wait_for_rows(live, 900, follow)
    document = ended(follow)
    assert document['tables'] == {'MAIN': 900} and document['warnings'] == []
    compare_columns(table, live)
    # and not with another table
    other = tmp_path / 'other.tab'
    with Casacore() as casacore:
        casacore.run(TABLE + 'add(5)', path=str(other), more=[])
    process = h5bridge('follow', other, live, code=EXISTS)
    assert 'of another table' in process.stderr


def test_starts_before_there_are_rows_and_ends_when_idle(tmp_path):
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    with Casacore() as casacore:
        casacore.run(TABLE, path=str(table), more=[])
        follow = subprocess.Popen([support.H5BRIDGE, 'follow', str(table), str(live), '--idle', '5s', '--json'],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        assert not live.exists() and follow.poll() is None
        casacore.run('add(5)')
        wait_for_rows(live, 5, follow)
        start = time.time()
        second = h5bridge('follow', table, live, '--idle', '1s', code=EXISTS)
        assert 'a writer has the file' in second.stderr and time.time() - start < 1.5
        start = time.time()
        assert ended(follow)['tables'] == {'MAIN': 5}
        assert time.time() - start < 20
    h5bridge('follow', tmp_path / 'nothing.tab', live, code=support.DAMAGED)


# Appends for some seconds without a pause, and rewrites old cells of another column with each block.
BUSY = """
import json, sys, time, numpy as np, casacore.tables as ct
path, locking, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
columns = [ct.makescacoldesc('ROW', 0), ct.makescacoldesc('COUNT', 0, datamanagertype='IncrementalStMan'),
           ct.makearrcoldesc('DATA', 0., ndim=1, shape=[16], datamanagertype='TiledColumnStMan', datamanagergroup='D')]
t = ct.table(path, ct.maketabdesc(columns), nrow=0, lockoptions=locking, ack=False)
waits = []
def timed(call):
    start = time.perf_counter(); call(); waits.append(time.perf_counter() - start)
end = time.time() + seconds
block = 0
while time.time() < end:
    if locking == 'user': timed(lambda: t.lock(write=True))
    first = t.nrows(); timed(lambda: t.addrows(7)); rows = np.arange(first, first + 7)
    t.putcol('ROW', rows.astype('i4'), first, 7)
    t.putcol('DATA', np.repeat(rows[:, None], 16, 1).astype('f8'), first, 7)
    t.putcell('COUNT', (block * 7919) % (first + 7), block)
    block += 1
    if locking == 'user': t.unlock()
    # as long as other software takes to make the rows
    pause = time.perf_counter() + (0.002 if locking == 'user' else 0.02)
    while time.perf_counter() < pause: pass
print(json.dumps([t.nrows(), waits])); t.close()
"""


@pytest.mark.parametrize('locking', ['user', 'auto'])
def test_a_writer_that_never_pauses(tmp_path, locking):
    table, live = tmp_path / 'busy.tab', tmp_path / 'live.h5'
    seconds = 60 if ROWS > 2000 else 12 if locking == 'auto' else 5
    with open(tmp_path / 'waits', 'w') as waits:
        writer = subprocess.Popen([sys.executable, '-c', BUSY, str(table), locking, str(seconds)], stdout=waits)
    wait_for((table / 'table.dat').exists)
    follow = start_follow(table, live)
    seen = []
    while writer.poll() is None:
        if live.exists():
            seen.append(committed(live))
        time.sleep(0.05)
    rows, waits = json.loads((tmp_path / 'waits').read_text())
    document = ended(follow)
    print('%s: rows seen while %d were written: %s' % (locking, rows, sorted(set(seen))[-3:]))
    assert document['tables'] == {'MAIN': rows} and document['warnings'] == []
    compare_columns(table, live)
    # with auto locking it yields every 5 s, but takes the lock again at once: there may be no moment to look (docs/reference/live.md)
    if locking == 'user':
        assert seen and max(seen) > 0, 'nothing arrived before the writer ended'
    check_waits(locking, waits)


def finished_live(tmp_path):
    """A table, and the live file that has followed it."""
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    with Casacore() as casacore:
        casacore.run(TABLE + "add(3000)", path=str(table), more=["ct.makearrcoldesc('DATA', 0j, ndim=1, shape=[4])"])
    ended(start_follow(table, live))
    return table, live


def test_finalize(tmp_path):
    table, live = finished_live(tmp_path)
    before = set(os.listdir(tmp_path))
    document = json.loads(h5bridge('finalize', '--json', live, tmp_path / 'final.h5').stdout)
    assert document['rows'] == 3000 and document['cells_compared'] == 9000 and document['digest']
    assert set(os.listdir(tmp_path)) == before | {'final.h5'}
    assert support.digest(tmp_path / 'final.h5') == support.digest(table)
    indices = {c['name']: c['index'] for c in json.loads(h5bridge('info', '--json', tmp_path / 'final.h5').stdout)
               ['tables']['.']['columns']}
    assert set(indices.values()) <= {'fixed_array', 'single', 'none'}, indices
    h5bridge('finalize', live, tmp_path / 'final.h5', code=EXISTS)
    h5bridge('finalize', live, tmp_path / 'final.h5', '--overwrite')
    # in its place
    h5bridge('finalize', live)
    assert support.digest(live) == support.digest(table)
    assert set(os.listdir(tmp_path)) == before | {'final.h5'}
    with h5py.File(live) as f:
        assert 'committed_rows' not in f['MAIN']


def test_finalize_keeps_the_files_of_the_source(tmp_path):
    table, live = finished_live(tmp_path)
    final, back = tmp_path / 'final.h5', tmp_path / 'back.tab'
    h5bridge('finalize', live, final, '--restorable', code=support.USAGE)
    h5bridge('finalize', live, final, '--source', table, '--restorable')
    h5bridge('verify', table, final)
    h5bridge('verify', final)
    h5bridge('to-ms', '--exact', final, back)
    assert subprocess.run(['diff', '-r', table, back]).returncode == 0
    # a live file has none of them, nor what is made from it alone
    for source in (live, final):
        h5bridge('to-ms', '--exact', source, tmp_path / 'no.tab', code=support.USAGE)
        assert not (tmp_path / 'no.tab').exists()
        h5bridge('finalize', live, final, '--overwrite')


def test_finalize_refuses_while_a_writer_lives_and_leaves_nothing_behind(tmp_path):
    table, live = tmp_path / 'live.tab', tmp_path / 'live.h5'
    with Casacore() as casacore:
        casacore.run(TABLE + 'add(5)', path=str(table), more=[])
        follow = start_follow(table, live)
        wait_for_rows(live, 5, follow)
        process = h5bridge('finalize', live, tmp_path / 'final.h5', code=EXISTS)
        assert 'a writer has the file' in process.stderr
        h5bridge('finalize', live, code=EXISTS)
        assert not (tmp_path / 'final.h5').exists() and follow.poll() is None
    ended(follow)
    content = live.read_bytes()
    # another table is not its source; a file that is damaged; a folder where the file should be
    with Casacore() as casacore:
        casacore.run(TABLE + 'add(4)', path=str(tmp_path / 'other.tab'), more=[])
    before = set(os.listdir(tmp_path))
    process = h5bridge('finalize', live, '--source', tmp_path / 'other.tab', code=None)
    assert process.returncode != 0, 'rows that were committed would be lost'
    h5bridge('finalize', tmp_path / 'nothing.h5', tmp_path / 'final.h5', code=support.DAMAGED)
    h5bridge('finalize', live, tmp_path / 'nowhere' / 'final.h5', code=None)
    assert set(os.listdir(tmp_path)) == before and live.read_bytes() == content
