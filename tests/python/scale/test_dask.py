"""Many tables on the workers of Dask: workers that die, items that kill them, and manifests that `batch run` goes on with."""
import collections
import concurrent.futures
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import cloudpickle
import dask
import pytest
from distributed import Client, LocalCluster

from h5bridge._windows import Settings, Window
from h5bridge.dask import convert_many

import batches
import support
import writing
from support import h5bridge

# workers cannot import this module
cloudpickle.register_pickle_by_value(sys.modules[__name__])



@pytest.fixture(scope='module')
def cluster():
    # a LocalCluster gives workers up that have not come back after 15 s, which a busy machine needs to start one
    settings = {'distributed.scheduler.allowed-failures': 1, 'distributed.worker.memory.terminate': False,
                'distributed.deploy.lost-worker-timeout': '600s', 'distributed.comm.timeouts.connect': '120s'}
    with dask.config.set(settings), LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture(scope='module')
def client(cluster):
    with Client(cluster) as client:
        yield client


def convert(client, items, ledger, **options):
    return convert_many(client, items, ledger, retry_wait=0.2, min_free='1M', **options)


def count(records):
    return dict(collections.Counter(record.state for record in records.values()))


def pids(cluster):
    return [worker.pid for worker in cluster.workers.values() if worker.pid]


def test_dask_and_run_share_manifest_and_ledger(tmp_path, client):
    tables = batches.make_tables(tmp_path / 'in', 20)
    batches.damage(tables[3])
    manifest = batches.plan(tmp_path, [*tables, tmp_path / 'in' / 'none.ms', tables[5]])
    h5bridge('batch', 'run', manifest, '--ledger', tmp_path / 'l', '--shard', '0/3', '--min-free', '1M', code=None)
    begun = batches.identities(tmp_path / 'out')
    seen = []
    records = convert(client, manifest, tmp_path / 'l', checksums=['md5'], progress=lambda *news: seen.append(news))
    assert count(records).pop('failed') == 2 and set(records) == set(batches.items(manifest))
    assert {path: begun[path] for path in begun} == {path: found for path, found in batches.identities(tmp_path / 'out').items() if path in begun}
    assert seen[-1][0] == seen[-1][1] and seen[-1][3].endswith('items')
    found = batches.states(manifest, tmp_path / 'l')
    assert {identity: record.state for identity, record in records.items()} == found
    batches.check_targets(manifest, found, sample=4)
    # again, by either of them
    before = batches.identities(tmp_path / 'out')
    assert count(convert(client, manifest, tmp_path / 'l', trust='ledger')) == count(records)
    h5bridge('batch', 'run', manifest, '--ledger', tmp_path / 'l', code=support.FAILED)
    assert batches.identities(tmp_path / 'out') == before and not batches.leftovers(tmp_path)


def test_pairs_and_other_verbs(tmp_path, client):
    tables = batches.make_tables(tmp_path / 'in', 3)
    pairs = [(path, tmp_path / ('%d.h5' % number)) for number, path in enumerate(tables)]
    records = convert(client, pairs, tmp_path / 'l', options=['--compress', 'gzip:1'])
    assert count(records) == {'done': 3} and all(record.digest for record in records.values())
    for source, target in pairs:
        h5bridge('verify', source, target)
    checks = [{'source': str(target)} for _, target in pairs]
    assert count(convert(client, checks, tmp_path / 'l', verb='verify')) == {'done': 3}
    assert convert(client, [], tmp_path / 'l') == {}
    with pytest.raises(ValueError, match='cannot be the work'):
        convert(client, pairs, tmp_path / 'l', verb='serve')


# a second driver, which does the same at the same time
DRIVER = '''import sys
from distributed import Client
from h5bridge.dask import convert_many
with Client(sys.argv[1]) as client:
    convert_many(client, sys.argv[2], sys.argv[3], batch_seconds=3, retry_wait=0.2, min_free='1M', again=True)
'''


class Killer(threading.Thread):
    """Kills workers that are doing a batch, at random moments, until it has killed as many as it should."""

    def __init__(self, cluster, client, kills):
        super().__init__()
        self.cluster, self.client, self.kills, self.killed, self.error = cluster, client, kills, 0, None
        self.ended = threading.Event()

    def run(self):
        try:
            last = time.monotonic()
            while self.killed < self.kills and not self.ended.wait(random.uniform(0.2, 0.8)):
                busy = [pid for pid in pids(self.cluster) if batches.children_of(pid)]
                if busy:
                    os.kill(random.choice(busy), signal.SIGKILL)
                    self.killed += 1
                    last = time.monotonic()
                assert time.monotonic() < last + 180, 'no worker has done anything for 180 s after %d kills' % self.killed
        except Exception as error:
            self.error = error
            # the driver would wait for ever
            self.client.close()

    def running(self):
        return self.killed < self.kills and self.error is None


@pytest.mark.night('minutes of killed workers')
def test_workers_are_killed(tmp_path, cluster, client, counts):
    number, kills = (300, 15) if support.LONG else (60, 3)
    random.seed(int(os.environ.get('H5BRIDGE_SEED', 7)))
    tables = batches.make_tables(tmp_path / 'in', number)
    batches.damage(tables[7])
    manifest = batches.plan(tmp_path, [*tables, tmp_path / 'in' / 'none.ms', *tables[:9]])
    killer = Killer(cluster, client, kills)
    rounds = 0
    killer.start()
    try:
        while killer.running():
            # kills have to hit work
            if rounds:
                batches.lose_half(tmp_path / 'out')
            other = subprocess.Popen([sys.executable, '-c', DRIVER, cluster.scheduler_address, manifest, str(tmp_path / 'l')],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                convert(client, manifest, tmp_path / 'l', batch_seconds=3, again=True)
                assert other.wait(300) == 0, other.stderr.read()
            finally:
                other.kill()
                other.communicate()
            rounds += 1
    except Exception as error:
        raise killer.error or error
    finally:
        killer.ended.set()
        killer.join()
    assert killer.error is None and killer.killed == kills, killer.error
    # kills may hit an item again and again, for which it is not to blame: it is done now
    records = convert(client, manifest, tmp_path / 'l', again=True)
    found, items = batches.states(manifest, tmp_path / 'l'), batches.items(manifest)
    assert {identity: record.state for identity, record in records.items()} == found
    bad = {tables[7], str(tmp_path / 'in' / 'none.ms')}
    assert {items[identity]['source'] for identity, state in found.items() if state == 'failed'} == bad
    assert {found[identity] for identity, item in items.items() if item['source'] not in bad} <= batches.FINISHED
    batches.check_targets(manifest, found, sample=1 if support.LONG else 8)
    h5bridge('batch', 'clean', manifest, '--older-than', '0')
    assert not batches.leftovers(tmp_path)
    before = batches.identities(tmp_path / 'out')
    for trust in ('ledger', 'receipt'):
        assert count(convert(client, manifest, tmp_path / 'l', trust=trust)).pop('failed') == 2
        assert batches.identities(tmp_path / 'out') == before
    counts['items'] += len(items)
    counts['workers killed in a batch'] += killer.killed
    counts['rounds of two drivers'] += rounds


def poison(batch, path):
    """Work that kills its worker if an item is bad."""
    if 'bad' in batch:
        with open(path, 'a') as file:
            file.write('%d\n' % len(batch))
        os._exit(9)
    return [{'id': item, 'state': 'done', 'seconds': 0.1} for item in batch]


@pytest.mark.night('minutes of killed workers')
def test_an_item_that_kills_its_worker_is_found(tmp_path, client):
    items = ['%d' % number for number in range(40)]
    items.insert(17, 'bad')
    window = Window(client, functools.partial(poison, path=str(tmp_path / 'deaths')), items, str, len, Settings(pause=0.1, window=2))
    found = {document['id']: document['state'] for document in window.run()}
    assert found == {item: 'killed' if item == 'bad' else 'done' for item in items}
    with open(tmp_path / 'deaths') as file:
        sizes = [int(line) for line in file]
    assert sizes[-2:] == [1, 1] and len(sizes) <= 8, sizes


class KilledWorker(Exception):
    """As Dask names what becomes of work whose workers died."""


class Crowded:
    """A cluster with one worker, which dies with all it does if an item of it is bad; the work is never called."""
    status = 'running'

    def __init__(self):
        self.flight, self.killed, self.lock = {}, [], threading.Lock()

    def nthreads(self):
        return {'worker': 4}

    def submit(self, _, batch, key, **more):
        future = concurrent.futures.Future()
        future.key, future.batch = key, batch
        with self.lock:
            self.flight[key] = future
        threading.Timer(0.05, self.end, [future]).start()
        return future

    def end(self, future):
        with self.lock:
            dies = 'bad' in future.batch
            ended = list(self.flight.values()) if dies else [future]
            ended = [one for one in ended if self.flight.pop(one.key, None)]
            self.killed += [one.batch for one in ended if dies]
        for one in ended:
            if dies:
                one.set_exception(KilledWorker(one.batch))
            else:
                one.set_result([{'id': item, 'state': 'done', 'seconds': 15.0} for item in one.batch])


def test_items_beside_one_that_kills_their_worker_are_not_blamed():
    items = ['%d' % number for number in range(20)]
    items[3:3] = ['bad']
    cluster = Crowded()
    window = Window(cluster, None, items, str, len, Settings(pause=0.01, window=4))
    found = {document['id']: document['state'] for document in window.run()}
    assert found == {item: 'killed' if item == 'bad' else 'done' for item in items}
    assert any(len(batch) == 1 and batch != ['bad'] for batch in cluster.killed), cluster.killed


def sparse_table(path):
    """A table of 1 TB without a byte of data on the disk: its conversion takes longer than any test."""
    columns = [writing.column('DATA', 'complex', shape=[4, 32768])]
    managers = [writing.manager('TiledColumnStMan', 'tiles', ['DATA'], DEFAULTTILESHAPE=[4, 32768, 1])]
    with writing.Script(path, columns, managers) as script:
        script.add_rows(1 << 20)


@pytest.mark.night('minutes of killed workers')
def test_a_driver_that_is_interrupted_ends_the_children(tmp_path, client):
    """It is interrupted when a small item is done and large ones, which cannot end by themselves, have begun."""
    small, *endless = [tmp_path / 'in' / ('%04d.ms' % number) for number in range(4)]
    batches.make_tables(tmp_path / 'in', 1)
    for path in endless:
        try:
            sparse_table(path)
        except writing.ScriptError as error:
            pytest.skip('no sparse table of 1 TB can be made here: %s' % error)
    pairs = [(path, tmp_path / (path.stem + '.h5')) for path in (small, *endless)]
    targets = [target for _, target in pairs]
    begun = []

    def stop(*_):
        end = time.monotonic() + 120
        while not begun and time.monotonic() < end:
            begun.extend(batches.leftovers(tmp_path))
            time.sleep(0.05)
        raise KeyboardInterrupt
    os.makedirs(tmp_path / 'l')
    with pytest.raises(KeyboardInterrupt):
        convert(client, pairs, tmp_path / 'l', progress=stop, threads=1, options=['--compress', 'gzip:9'])
    assert begun and os.path.exists(targets[0])
    end = time.monotonic() + 60
    while batches.leftovers(tmp_path) and time.monotonic() < end:
        time.sleep(0.05)
    assert not batches.leftovers(tmp_path) and [target for target in targets if os.path.exists(target)] == targets[:1]
    assert [name for name in os.listdir(tmp_path / 'l') if name.startswith('.stop')] == []
    # what was interrupted is done by the next call, here with sources that end
    for path in endless:
        shutil.rmtree(path)
        shutil.copytree(small, path)
    records = convert(client, pairs, tmp_path / 'l', options=['--compress', 'gzip:9'])
    assert count(records) == {'skipped': 1, 'done': 3} and all(map(os.path.exists, targets))


def flaky(batch, folder):
    """Work that has to be tried again once, and for one item for ever."""
    found = []
    for item in batch:
        path = os.path.join(folder, item)
        state = 'done' if os.path.exists(path) and item != '3' else 'retry'
        with open(path, 'a') as file:
            file.write('.')
        found.append({'id': item, 'state': state, 'seconds': 0.1})
    return found


def test_items_are_tried_again(tmp_path, client):
    items = ['%d' % number for number in range(6)]
    window = Window(client, functools.partial(flaky, folder=str(tmp_path)), items, str, len, Settings(pause=0.1))
    found = {document['id']: document['state'] for document in window.run()}
    assert found == {item: 'retry' if item == '3' else 'done' for item in items}
    assert {item: os.path.getsize(tmp_path / item) for item in items} == {item: 3 if item == '3' else 2 for item in items}


def fails(batch):
    raise OSError('the ledger is full')


def test_work_that_always_fails_is_not_repeated_for_ever(client):
    items = ['%d' % number for number in range(1000)]
    with pytest.raises(OSError, match='ledger is full'):
        list(Window(client, fails, items, str, len, Settings(pause=0.1)).run())


def nothing(batch):
    return [{'id': item, 'state': 'done', 'seconds': 0.01} for item in batch]


def test_the_window_keeps_the_scheduler_small(client, counts):
    number = 1_000_000 if support.LONG else 20_000
    items = ['%x' % item for item in range(number)]
    window = Window(client, nothing, items, str, len, Settings(batch_seconds=2.56))
    begin, most, done = time.monotonic(), 0, 0
    for document in window.run():
        done += document['state'] == 'done'
        most = max(most, len(window._running))
    assert done == number and most <= 8
    counts['items per second'] += int(number / (time.monotonic() - begin))


def test_records_are_json(tmp_path, client):
    [table] = batches.make_tables(tmp_path / 'in', 1)
    convert(client, [(table, tmp_path / 'x.h5')], tmp_path / 'l')
    [record] = batches.records(tmp_path / 'l')
    assert record['state'] == 'done' and record['file_bytes'] == os.path.getsize(tmp_path / 'x.h5')
    json.dumps(record)
