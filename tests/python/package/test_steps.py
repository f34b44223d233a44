"""`h5bridge.batch` and `h5bridge.shard`: the steps of the commands as functions, with what the commands print."""
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

import batches
import h5bridge
import support
from h5bridge import batch, shard

DEMO = support.own_copy('demo', 'demo.ms')
QUICK = {'min_free': '1M', 'retries': 0}


@pytest.fixture(scope='module')
def tables(tmp_path_factory):
    return batches.make_tables(tmp_path_factory.mktemp('tables'), 3)


def printed(*words):
    return json.loads(support.h5bridge(*words, '--json').stdout)


# ---- batch ----------------------------------------------------------------------------------------------------------

def test_batch(tmp_path, tables):
    """Targets, receipts and states are those of the command."""
    manifest, ledger = tmp_path / 'all.ndjson', tmp_path / 'ledger'
    planned = batch.plan(os.path.dirname(tables[0]) + '/*.ms', manifest, to=f'{tmp_path}/out/{{stem}}.h5', options=['--compress', 'none'])
    items = [json.loads(line) for line in manifest.read_text().splitlines()]
    assert (planned.out, planned.items, planned.bytes) == (str(manifest), 3, sum(item['bytes'] for item in items))
    assert sorted(item['source'] for item in items) == tables and items[0]['options'] == ['--compress', 'none']
    before = batch.status(manifest, ledger)
    assert (before.finished, before.states['waiting'], before.failed) == (0, 3, ())
    seen = []
    ran = batch.run(manifest, ledger, jobs=1, checksums=['md5', 'crc32c'], progress=lambda *words: seen.append(words), **QUICK)
    assert (ran.items, ran.states['done'], ran.done_now) == (3, 3, 3)
    assert seen[-1] == (planned.bytes, planned.bytes, '', '3/3 items')
    for number, path in enumerate(tables):
        target = tmp_path / 'out' / os.path.basename(path).replace('.ms', '.h5')
        with h5py.File(target) as file:
            assert (file['MAIN/DATA'][:] == number).all()
        assert set(json.loads((tmp_path / 'out' / (target.name + '.receipt.json')).read_text())['checksums']) == {'md5', 'crc32c'}
    again = batch.run(manifest, ledger, **QUICK)
    assert (again.done_now, again.states['done']) == (0, 3)
    after = batch.status(manifest, ledger)
    assert after.finished == 3 and after.document == printed('batch', 'status', manifest, '--ledger', ledger, '--failed')
    assert batch.clean(manifest) == ()


def test_pairs_shares_and_failures(tmp_path, tables):
    manifest, ledger = tmp_path / 'pairs.ndjson', tmp_path / 'ledger'
    broken = shutil.copytree(tables[0], tmp_path / 'broken.ms')
    batches.damage(broken)
    pairs = [(tables[0], tmp_path / 'a.h5'), {'source': tables[1], 'target': str(tmp_path / 'b.h5'), 'options': ['--rows', '0..5']},
             (broken, tmp_path / 'c.h5'), (tables[0], tmp_path / 'a.h5')]
    planned = batch.plan(pairs, manifest, sizes=False)
    assert (planned.items, planned.repeated, planned.bytes) == (3, 1, 0)
    shares = [batch.run(manifest, ledger, shard=(number, 2), stop_after='1m', **QUICK) for number in (0, 1)]
    assert [share.items for share in shares] in ([2, 1], [1, 2]) and sum(share.states['failed'] for share in shares) == 1
    with h5py.File(tmp_path / 'b.h5') as file:
        assert file['MAIN/TIME'].shape == (5,)
    failed, = batch.status(manifest, ledger).failed
    assert (failed.state, failed.source, failed.target, failed.code) == ('failed', str(broken), str(tmp_path / 'c.h5'), support.DAMAGED)
    assert 'table.dat' in failed.error
    # what failed for good is tried on request only
    assert batch.run(manifest, ledger, **QUICK).states['failed'] == 1 and not (tmp_path / 'c.h5').exists()
    shutil.rmtree(broken)
    shutil.copytree(tables[0], broken)
    assert batch.run(manifest, ledger, again=True, **QUICK).states['done'] == 3 and (tmp_path / 'c.h5').exists()


def test_mistakes_of_batches(tmp_path, tables):
    manifest = tmp_path / 'all.ndjson'
    batch.plan(tables, manifest, verb='verify')
    (tmp_path / 'wrong').write_text('nonsense\n')
    for words, kind, call in (
            ('nothing matches', h5bridge.UsageError, lambda: batch.plan(f'{tmp_path}/*.ms', tmp_path / 'm', to='x')),
            ('is empty', h5bridge.UsageError, lambda: batch.plan([], tmp_path / 'm')),
            ('not both', h5bridge.UsageError, lambda: batch.plan([tables[0], (tables[1], 'b.h5')], tmp_path / 'm')),
            ('is the target of two items', h5bridge.UsageError, lambda: batch.plan(tables, tmp_path / 'm', to='x.h5')),
            ('exists already', h5bridge.ExistsError, lambda: batch.plan(tables, manifest, verb='verify')),
            ('No such file', h5bridge.NotFoundError, lambda: batch.run(tmp_path / 'none', tmp_path / 'l')),
            ('line 1: the line is not an item', h5bridge.FormatError, lambda: batch.run(tmp_path / 'wrong', tmp_path / 'l')),
            ('K from 0 to N-1', h5bridge.UsageError, lambda: batch.run(manifest, tmp_path / 'l', shard=(2, 2))),
            ('No such file', FileNotFoundError, lambda: batch.status(tmp_path / 'none', tmp_path / 'l'))):
        with pytest.raises(kind, match=words) as caught:
            call()
        assert '--' not in str(caught.value)
    assert not (tmp_path / 'm').exists() and not (tmp_path / 'l').exists()


# more than are done until a busy machine sends the signal
ITEMS = 1000
INTERRUPTED = '''
import sys
from h5bridge import batch
try:
    batch.run(sys.argv[1], sys.argv[2], jobs=1, min_free="1M", progress=lambda *_: print("works", flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
'''


def test_interrupted_run_leaves_nothing(tmp_path, big_ms):
    """Ctrl-C ends the processes, which remove what they have begun."""
    batch.plan([(big_ms, tmp_path / 'out' / f'{number}.h5') for number in range(ITEMS)], tmp_path / 'all.ndjson',
               options=['--compress=gzip:9'])
    with subprocess.Popen([sys.executable, '-c', INTERRUPTED, tmp_path / 'all.ndjson', tmp_path / 'l'], stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout.readline() == 'works\n'
        end = time.time() + 60
        while not (tmp_path / 'out').exists() or not os.listdir(tmp_path / 'out'):
            assert time.time() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().endswith('interrupted\n')
    left = os.listdir(tmp_path / 'out')
    assert not [name for name in left if name.endswith('.partial')] and len(left) < 2 * ITEMS
    counts = batch.status(tmp_path / 'all.ndjson', tmp_path / 'l').states
    assert counts['done'] < ITEMS and counts['failed'] == counts['killed'] == 0


# ---- shard ----------------------------------------------------------------------------------------------------------

def test_shard(tmp_path, big_ms):
    """The file is the one of `to_hdf5`, value by value; each step has what the command prints."""
    target = tmp_path / 'big.h5'
    planned = shard.plan(big_ms, target, work_bytes='2M', exclude=['FLAG_CATEGORY'])
    assert planned.items > 4 and planned.document['directory'] == str(target) + '.shards' and not target.exists()
    with pytest.raises(h5bridge.UsageError, match=rf'run `h5bridge.shard.work\("{target}"\)`'):
        shard.commit(target)
    first = shard.status(target).items[0]
    assert (first.state, first.attempts, first.error) == ('waiting', 0, None)
    assert [result.id for result in shard.work(target, ids=[first.id]).results] == [first.id]
    half = shard.work(target, shard=(0, 2), threads=1)
    assert {result.state for result in half.results} == {'done'} and 0 < half.left < planned.items
    status = shard.status(target)
    assert (status.done, status.waiting, status.failed) == (planned.items - half.left, half.left, 0) and not status.published
    assert status.document == printed('shard', 'status', target)
    assert not shard.work(target, stop_after=0).items
    seen = []
    rest = shard.work(target, progress=lambda *words: seen.append(words))
    assert rest.left == 0 and rest.items == half.left and seen[-1][0] == rest.bytes
    assert shard.verify(target, source=True, shard=(1, 3)).items == len(range(1, planned.items, 3))
    made = shard.commit(target, check=True)
    assert (made.out, made.items, made.rows) == (str(target), planned.items, planned.rows) and made.file_bytes == os.path.getsize(target)
    assert made.document['checked_bytes'] == planned.bytes - planned.document['packed_bytes']
    assert shard.status(target).published and os.path.exists(made.ranges)
    h5bridge.to_hdf5(big_ms, tmp_path / 'alone.h5', compress='shared', exclude=['FLAG_CATEGORY'])
    with h5py.File(target) as ours, h5py.File(tmp_path / 'alone.h5') as alone:
        assert ours['MAIN'].keys() == alone['MAIN'].keys() and 'FLAG_CATEGORY' not in ours['MAIN']
        for name in ('DATA', 'FLAG', 'UVW', 'TIME'):
            assert np.array_equal(ours['MAIN'][name][:], alone['MAIN'][name][:]), name
    assert shard.verify(target)
    with open(target, 'r+b') as file:
        file.seek(-100_000, os.SEEK_END)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    found = shard.verify(target)
    assert not found and set(found.differences[0]) == {'id', 'name', 'difference'}


def test_items_that_fail_are_results(tmp_path, big_ms):
    """Of items that are compressed, whose directory is in the way; the next call does them."""
    target, chunks = tmp_path / 'my.h5', tmp_path / 'my.h5.shards' / 'chunks'
    planned = shard.plan(big_ms, target, work_bytes='1M')
    assert planned.document['packed_bytes'] > 0
    chunks.rename(tmp_path / 'kept')
    chunks.write_text('')
    worked = shard.work(target)
    failed = [result for result in worked.results if result.state != 'done']
    assert failed and worked.left == len(failed) and all('chunks' in result.error for result in failed)
    status = shard.status(target)
    assert {item.id for item in status.items if item.state == 'failed' and item.error} == {result.id for result in failed}
    assert status.failed == len(failed) and worked.warnings
    chunks.unlink()
    (tmp_path / 'kept').rename(chunks)
    assert shard.work(target).left == 0 and shard.status(target).failed == 0


def test_tables_and_parts(tmp_path):
    h5bridge.to_hdf5(DEMO, tmp_path / 'my.h5')
    shard.plan(tmp_path / 'my.h5', tmp_path / 'again.ms', work_bytes='64K')
    shard.work(tmp_path / 'again.ms')
    shard.commit(tmp_path / 'again.ms')
    assert h5bridge.verify(DEMO, tmp_path / 'again.ms')
    planned = shard.plan(DEMO, tmp_path / 'parts.h5', split='100K', columns=['TIME', 'DATA'])
    assert (planned.items, planned.rows, planned.out) == (2, 105, f'{tmp_path}/parts.h5.parts.ndjson')
    ran = batch.run(planned.out, tmp_path / 'ledger', **QUICK)
    assert ran.states['done'] == 2 and h5py.File(tmp_path / 'parts-0001.h5')['MAIN/row'][0] == 105
    for words, kind, call in (
            ('columns=…, exclude=…', h5bridge.UsageError, lambda: shard.plan(tmp_path / 'my.h5', tmp_path / 'x.ms', columns=['TIME'])),
            (r'`h5bridge.shard.plan\("SOURCE", "OUT"\)` makes one', h5bridge.NotFoundError, lambda: shard.work(tmp_path / 'none.h5')),
            ('is published already', h5bridge.ExistsError, lambda: shard.work(tmp_path / 'again.ms'))):
        with pytest.raises(kind, match=words):
            call()
