"""Live files: rows appended by tests/tools/live_writer while h5py and this library read them; killed writers; full disks.

H5BRIDGE_LIVE=long runs what docs/explanation/correctness.md quotes: 20,000 polls and 200 kills instead of some. The cells of a row are
made from its number, so that a row that is torn, late or of another time shows.
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import support
from live_rows import CHANNELS, CORRELATIONS, check_rows, writer
from support import DAMAGED, EXAMPLES, EXISTS, H5BRIDGE, HERE, ROOT, UNSUPPORTED, h5bridge

LONG = os.environ.get('H5BRIDGE_LIVE') == 'long'
def check_file(path, rows=None):
    """Checks every row of a file that is closed; returns their number."""
    with h5py.File(path, 'r') as f:
        committed = int(f['MAIN/committed_rows'][0])
        assert rows is None or committed == rows
        assert f['MAIN/row'].shape == f['MAIN/TIME'].shape == f['MAIN/VARIABLE/row_cube'].shape == (committed,)
        check_rows(f['MAIN'], 0, committed)
        assert list(f['ANTENNA/NAME'][:]) == [b'A0', b'A1']
    return committed


# What docs/reference/live.md recommends, in a process of its own: prints the polls it made.
POLL = '''
import sys, time, random
sys.path[:0] = [{folder!r}]
import h5py
from live_rows import check_rows
seed, path, seconds, wanted = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
polls, last, end = 0, 0, time.monotonic() + seconds
def names(group):
    found = []
    group.visititems(lambda name, o: found.append(o) if isinstance(o, h5py.Dataset) else None)
    return found
with h5py.File(path, 'r', swmr=True) as f:
    main = f['MAIN']
    datasets = names(main)
    while polls < wanted and time.monotonic() < end:
        main['committed_rows'].refresh()
        rows = int(main['committed_rows'][0])
        for dataset in datasets:
            dataset.refresh()
        assert rows >= last, (rows, last)
        start = random.randrange(max(rows - 200, 0), rows + 1) if random.random() < 0.5 else max(last - 3, rows - 300, 0)
        check_rows(main, start, min(rows, start + 300) if random.random() < 0.3 else max(rows, start))
        polls, last = polls + 1, rows
print(polls, last)
'''


def test_readers_see_what_is_committed(tmp_path):
    path = str(tmp_path / 'live.h5')
    wanted, seconds = (5000, 900) if LONG else (60, 20)
    live = writer(path, every=0.002 if LONG else 0, pace=0.001, seconds=seconds + 60)
    script = tmp_path / 'poll.py'
    script.write_text(POLL.format(folder=HERE))
    readers = [subprocess.Popen([sys.executable, str(script), str(seed), path, str(seconds), str(wanted)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for seed in range(3)]
    readers.append(subprocess.Popen([os.path.join(EXAMPLES, 'live_reader'), path, str(wanted), str(seconds)],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    polls = 0
    try:
        for number, reader in enumerate(readers):
            out, errors = reader.communicate()
            assert reader.returncode == 0, (number, errors[-2000:])
            polls += int(out.split()[0])
            assert int(out.split()[1]) > 0, out
        assert live.poll() is None, live.stderr.read()
    finally:
        live.kill()
        for reader in readers:
            reader.kill()
    print('%d polls, none wrong' % polls)
    assert polls >= wanted * 3


def test_killed_writers_lose_nothing_that_was_committed(tmp_path):
    random.seed(4)
    kills, lost, most = (200 if LONG else 100 if support.LONG else 12), 0, 0
    path = str(tmp_path / 'live.h5')
    for number in range(kills):
        if number % 20 == 0 and os.path.exists(path):
            os.unlink(path)
        before = committed(path) if os.path.exists(path) else 0
        live = writer(path, reopen=int(before > 0), every=random.choice([0, 0, 0.005, 0.03]), report=1,
                      baselines=random.choice([1, 7, 300, 20000]))
        time.sleep(random.uniform(0.005, 0.15))
        live.send_signal(signal.SIGKILL)
        out, errors = live.communicate()
        assert not errors, errors
        # a line may be cut, too
        seen = [int(line.split()[0]) for line in out.split('\n')[:-1]] or [before]
        # readers may read on
        with h5py.File(path, 'r', swmr=True) as f:
            rows = int(f['MAIN/committed_rows'][0])
            check_rows(f['MAIN'], max(0, rows - 500), rows)
        report = json.loads(h5bridge('repair', path, '--json').stdout)
        main = report['tables'][0]
        assert (main['name'], main['committed_rows']) == ('MAIN', rows) and rows >= seen[-1]
        assert report['was_open'] or not out
        lost, most = lost + main['lost_rows'], max(most, rows)
        with h5py.File(path, 'r') as f:
            assert f['MAIN/row'].shape == f['MAIN/DATA'].shape[:1] == (rows,)
            check_rows(f['MAIN'], 0 if number % 10 == 9 else max(0, rows - 2000), rows)
    out, errors = writer(path, reopen=1, integrations=50).communicate()
    assert not errors and check_file(path) == rows + 350
    print('%d kills, %d rows at most, %d rows were not committed' % (kills, most, lost))


def committed(path):
    with h5py.File(path, 'r') as f:
        return int(f['MAIN/committed_rows'][0])


def limit_of_file_size():
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))


@pytest.mark.parametrize('how', ['largest file', 'full disk'])
def test_full_disk(tmp_path, how):
    folder = str(tmp_path / 'small')
    os.mkdir(folder)
    if how == 'full disk':
        mount = ['mount', '-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder]
        if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip('a small file system can be mounted by root only')
    try:
        path = os.path.join(folder, 'live.h5')
        command = [os.path.join(EXAMPLES, 'live_writer'), path, 'all=1', 'channels=%d' % CHANNELS,
                   'correlations=%d' % CORRELATIONS, 'baselines=7', 'every=0', 'report=1']
        live = subprocess.run(command, capture_output=True, text=True, timeout=60,
                              preexec_fn=limit_of_file_size if how == 'largest file' else None)
        assert live.returncode == 1, live.stderr
        assert ('NoSpace' if how == 'full disk' else 'Io') in live.stderr, live.stderr
        rows = int(live.stdout.split('\n')[:-1][-1].split()[0])
        assert rows > 1000
        with h5py.File(path, 'r', swmr=True) as f:
            assert int(f['MAIN/committed_rows'][0]) == rows
            check_rows(f['MAIN'], 0, rows)
        if how == 'full disk':
            subprocess.run(['mount', '-o', 'remount,size=8m', folder], check=True)
        report = json.loads(h5bridge('repair', path, '--json').stdout)
        assert report['tables'][0]['committed_rows'] == rows
        check_file(path, rows)
        out, errors = writer(path, reopen=1, integrations=50).communicate()
        assert not errors and check_file(path) == rows + 350
    finally:
        if how == 'full disk':
            subprocess.run(['umount', folder], check=False)


def test_layout_of_a_live_file(tmp_path):
    path = str(tmp_path / 'live.h5')
    out, errors = writer(path, integrations=400, baselines=100, channels=64, correlations=4).communicate()
    assert not errors
    size = os.path.getsize(path)
    with h5py.File(path, 'r') as f:
        assert int(f['MAIN/committed_rows'][0]) == 40000
        growing = []
        f.visititems(lambda name, o: growing.append(o) if isinstance(o, h5py.Dataset) and o.maxshape[:1] == (None,) else None)
        assert len(growing) > 12 and all(o.maxshape[1:] == o.shape[1:] and not o.compression for o in growing)
        assert all(len(dimension) == 1 for o in growing for dimension in o.dims if not o.is_scale)
        data = sum(o.size * o.dtype.itemsize for o in growing)
    assert data <= size <= 1.1 * data, (size, data)
    for table in json.loads(h5bridge('info', path, '--json').stdout)['tables'].values():
        assert all(d['index'] == 'extensible_array' for column in table['columns'] for d in column['datasets'])
    h5bridge('to-hdf5', path, tmp_path / 'archive.h5')
    h5bridge('verify', path, tmp_path / 'archive.h5')


def test_one_writer(tmp_path):
    path = str(tmp_path / 'live.h5')
    live = writer(path, every=0, pace=0.01)
    try:
        while json.loads(h5bridge('info', path, '--json').stdout)['tables']['.']['nrow'] < 70:
            time.sleep(0.01)
        second = writer(path, reopen=1)
        errors = second.communicate()[1]
        assert 'Locked' in errors and 'process %d on ' % live.pid in errors
        assert 'process %d on' % live.pid in h5bridge('repair', path, code=EXISTS).stderr
        # it may grow between two looks of libhdf5's
        with pytest.raises(OSError, match='already open for write|truncated file'):
            h5py.File(path, 'r')
        # our tools see what is committed
        h5bridge('to-hdf5', path, tmp_path / 'copy.h5')
        rows = json.loads(h5bridge('info', tmp_path / 'copy.h5', '--json').stdout)['tables']['.']['nrow']
        assert rows >= 70
        with h5py.File(tmp_path / 'copy.h5', 'r') as f:
            assert np.array_equal(f['MAIN/TIME'][:], np.arange(rows) / 4)
    finally:
        live.kill()
        live.wait()
    # the dead writer's lock is no hindrance, its file's state is
    out, errors = writer(path, reopen=1).communicate()
    assert 'Locked' in errors and 'repair' in errors
    h5bridge('repair', path)
    assert 'was closed' in h5bridge('repair', path).stdout
    check_file(path)


def test_writers_go_on_while_others_read(tmp_path):
    path = str(tmp_path / 'live.h5')
    settings = dict(integrations=20, every=0)
    out, errors = writer(path, **settings).communicate()
    assert not errors
    ours = subprocess.Popen([os.path.join(EXAMPLES, 'live_reader'), path, '1000000', '600'], stdout=subprocess.DEVNULL)
    try:
        with h5py.File(path, 'r', swmr=True, locking=False) as f:
            assert committed_rows(f) == 140
            out, errors = writer(path, reopen=1, **settings).communicate()
            assert not errors and committed_rows(f) == 280
            out, errors = writer(path, reopen=1, abandon=1, **settings).communicate()
            assert not errors and committed_rows(f) == 420
            h5bridge('repair', path)
            out, errors = writer(path, reopen=1, **settings).communicate()
            assert not errors and committed_rows(f) == 560
            for name in ('row', 'TIME', 'ANTENNA1', 'UVW', 'DATA', 'FLAG', 'NAME'):
                f['MAIN'][name].refresh()
            check_rows(f['MAIN'], 0, 560)
        assert ours.poll() is None
    finally:
        ours.kill()
        ours.wait()
    check_file(path, 560)


def committed_rows(f):
    f['MAIN/committed_rows'].refresh()
    return int(f['MAIN/committed_rows'][0])


def test_finalize_told_to_stop_leaves_nothing(tmp_path):
    path = str(tmp_path / 'live.h5')
    out, errors = writer(path, all=0, baselines=20000, channels=32, integrations=10).communicate()
    assert not errors
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen([H5BRIDGE, 'finalize', path, '--threads', '1'], stderr=subprocess.PIPE)
        while not os.path.exists(path + '.writer') and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(number)
        assert process.wait() == 130, process.stderr.read()
        assert os.listdir(tmp_path) == ['live.h5']
    h5bridge('finalize', path)
    assert os.listdir(tmp_path) == ['live.h5']


def test_damage_stays_as_it_is(tmp_path):
    path = str(tmp_path / 'live.h5')
    out, errors = writer(path, baselines=3000, integrations=2, abandon=1).communicate()
    with open(path, 'rb') as f:
        content = f.read()
    with h5py.File(path, 'r', swmr=True) as f:
        last = f['MAIN/DATA'].id.get_chunk_info(0).byte_offset
    for damage in ('cut', 'header'):
        damaged = bytearray(content[:last + 1000] if damage == 'cut' else content)
        if damage == 'header':
            for start in [match.start() for match in re.finditer(b'EAHD', content)]:
                damaged[start + 20] ^= 0xff
        with open(path, 'wb') as f:
            f.write(damaged)
        h5bridge('repair', path, code=DAMAGED)
        with open(path, 'rb') as f:
            same = f.read() == damaged      # not within assert: pytest would explain every byte
        assert same, damage
        h5bridge('digest', path, code=None if damage == 'header' else DAMAGED)
    with open(path, 'wb') as f:
        f.write(content)
    h5bridge('repair', path)
    check_file(path, 6000)


def test_repair_of_another_programs_file(tmp_path):
    path = str(tmp_path / 'other.h5')
    script = '''
import h5py, os, numpy
f = h5py.File(%r, 'w', libver=('v110', 'v110'))
d = f.create_dataset('group/x', (0, 3), maxshape=(None, 3), chunks=(50, 3), dtype='f8')
f.swmr_mode = True
for i in range(2000):
    d.resize((i + 1, 3))
    d[i] = i
    d.flush()
os.write(1, b'ready')
import time
time.sleep(600)
''' % path
    process = subprocess.Popen([sys.executable, '-c', script], stdout=subprocess.PIPE)
    try:
        assert process.stdout.read(5) == b'ready'
        assert 'process %d' % process.pid in h5bridge('repair', path, code=EXISTS).stderr
    finally:
        process.kill()
        process.wait()
    with pytest.raises(OSError):
        h5py.File(path, 'r')
    assert 'was not closed' in h5bridge('repair', path).stdout
    with h5py.File(path, 'r') as f:
        assert np.array_equal(f['group/x'][:], np.arange(2000)[:, None] * np.ones(3))
    damaged = str(tmp_path / 'damaged.h5')
    with open(path, 'rb') as f:
        content = bytearray(f.read())
    content[20] ^= 1
    with open(damaged, 'wb') as f:
        f.write(content)
    assert 'checksum' in h5bridge('repair', damaged, code=DAMAGED).stderr
    with h5py.File(tmp_path / 'old.h5', 'w', libver='earliest'):
        pass
    h5bridge('repair', tmp_path / 'old.h5', code=UNSUPPORTED)


@pytest.mark.parametrize('datasets', [10, 100, 1000] if LONG else [10, 100])
def test_commits_do_not_become_dearer(tmp_path, datasets):
    path = str(tmp_path / 'live.h5')
    commits = ({10: 1_000_000, 100: 100_000, 1000: 10_000}[datasets]) if LONG else 3000
    live = writer(path, all=0, more=datasets - 6, baselines=1, channels=1, correlations=1, every=0, report=1,
                  integrations=commits, seconds=3000)
    out, errors = live.communicate()
    assert not errors
    times = np.array([line.split()[1] for line in out.split('\n')[:commits]], dtype='f8')
    cost = np.diff(times)
    tenths = [float(np.median(part)) for part in np.array_split(cost, 10)]
    print('%d datasets: median microseconds a commit in each tenth of %d: %s' % (
        datasets, commits, ' '.join('%.0f' % c for c in tenths)))
    assert tenths[-1] < 2 * tenths[0] + 20


def test_recipes_of_the_documentation(tmp_path):
    with open(os.path.join(ROOT, 'docs', 'reference', 'live.md')) as f:
        recipes = re.findall(r'```python\n(.*?)```', f.read(), re.DOTALL)
    assert len(recipes) >= 2
    path = str(tmp_path / 'live.h5')
    live = writer(path, every=0, pace=0.01)
    try:
        for recipe in recipes:
            # they look as long as the observation lasts
            script = recipe.replace("'live.h5'", repr(path)).replace('while True', 'for _ in range(5)')
            process = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, timeout=60)
            assert process.returncode == 0, process.stderr[-2000:]
            rows = [int(line.split()[0]) for line in process.stdout.splitlines()]
            assert len(rows) == 5 and rows == sorted(rows) and rows[-1] > rows[0], process.stdout
    finally:
        live.kill()
