"""Many tables: manifests, ledgers, receipts, retries, limits; processes that are killed; several runs at once."""
import collections
import contextlib
import glob
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zlib

import casacore.tables as ct
import h5py
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import batches
import support
from support import h5bridge

QUICK = ['--retry-wait', '0.2s', '--min-free', '1M']


def run(manifest, ledger, *words, code=support.DONE):
    """The document of `batch run --json`."""
    process = h5bridge('batch', 'run', manifest, '--ledger', ledger, '--json', *QUICK, *words, code=code)
    return json.loads(process.stdout)


def start(manifest, ledger, *words, quick=QUICK):
    return subprocess.Popen([support.H5BRIDGE, 'batch', 'run', manifest, '--ledger', str(ledger), '--quiet', *quick, *words],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope='module')
def tables(tmp_path_factory):
    return batches.make_tables(tmp_path_factory.mktemp('tables'), 12)


# ---- plan -----------------------------------------------------------------------------------------------------------

def test_patterns_are_those_of_the_shell(tmp_path):
    for path in ('a/x.ms/SUB', 'a/b/y.ms', 'a/b/z.txt', 'w.ms', 'ü/v.ms'):
        os.makedirs(tmp_path / path)
    for pattern in ('**/*.ms', '*/*.ms', 'a/*/y.m?', '[uvwx].ms', '*'):
        lines = h5bridge('batch', 'plan', tmp_path / pattern, '--verb', 'verify').stdout.splitlines()
        found = sorted(json.loads(line)['source'] for line in lines)
        assert found == sorted(glob.glob(str(tmp_path / pattern), recursive=True)), pattern
    h5bridge('batch', 'plan', tmp_path / '*.none', '--verb', 'verify', code=support.USAGE)


def test_identity_is_the_content(tmp_path, tables):
    manifest = batches.plan(tmp_path, tables + tables[:3], '--', '--compress', 'none')
    assert len(batches.items(manifest)) == len(tables)
    for identity, item in batches.items(manifest).items():
        content = [item['verb'], item['source'], item['target'], item['options']]
        text = json.dumps(content, separators=(',', ':'), ensure_ascii=False)
        assert identity == hashlib.sha256(text.encode()).hexdigest()[:16]
        assert item['bytes'] == sum(map(len, support.tree(item['source']).values()))


def test_plans_that_cannot_work_are_refused(tmp_path, tables):
    process = h5bridge('batch', 'plan', *tables[:2], '--to', tmp_path / 'one.h5', '--out', tmp_path / 'm', code=support.USAGE)
    assert '{path}' in process.stderr and not os.listdir(tmp_path)
    h5bridge('batch', 'plan', tables[0], '--verb', 'serve', code=support.USAGE)
    h5bridge('batch', 'plan', tables[0], code=support.USAGE)     # without a target
    h5bridge('batch', 'plan', tables[0], '--to', tmp_path / 'a', '--', '--replace', code=support.USAGE)
    manifest = batches.plan(tmp_path, tables)
    process = h5bridge('batch', 'plan', tables[0], '--to', tmp_path / 'a', '--out', manifest, code=support.EXISTS)
    assert '(name another file)' in process.stderr    # not an option that the verb lacks
    with open(manifest, 'a') as file:
        file.write('{"id": "0000000000000000", "verb": "verify", "source": "/a"}\n')
    process = h5bridge('batch', 'run', manifest, '--ledger', tmp_path / 'l', code=support.DAMAGED)
    assert 'line 13' in process.stderr and not (tmp_path / 'l').exists()


# ---- run ------------------------------------------------------------------------------------------------------------

def crc32c(data):
    """Bit by bit, as in RFC 3720."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def test_run_and_run_again(tmp_path, tables):
    manifest = batches.plan(tmp_path, tables)
    document = run(manifest, tmp_path / 'l', '--checksums', 'adler32,md5,crc32c,sha256')
    assert document['states']['done'] == document['done_now']['items'] == len(tables)
    found = batches.states(manifest, tmp_path / 'l')
    batches.check_targets(manifest, found)
    assert not batches.leftovers(tmp_path)
    for item in batches.items(manifest).values():
        with open(item['target'], 'rb') as file, open(item['target'] + '.receipt.json') as receipt:
            data, receipt = file.read(), json.load(receipt)
        sums = {name: hashlib.new(name, data).hexdigest() for name in ('md5', 'sha256')}
        assert receipt['checksums'] == {'adler32': '%08x' % zlib.adler32(data), 'crc32c': '%08x' % crc32c(data), **sums}
        with h5py.File(item['target']) as file:
            assert receipt['digest'] == file.attrs['source_digest']
        assert receipt['rows'] == 64
    before = batches.identities(tmp_path)
    for trust in ('receipt', 'ledger', 'digest'):
        document = run(manifest, tmp_path / 'l', '--trust', trust)
        assert document['done_now']['items'] == 0 and document['states']['done'] == len(tables)
        assert batches.identities(tmp_path) == before, trust     # neither a target nor a file of the ledger
    # another ledger, and the receipts alone
    document = run(manifest, tmp_path / 'other')
    assert document['states']['skipped'] == len(tables) and document['done_now']['items'] == 0


def test_finished_items_are_not_read_again(tmp_path):
    manifest = batches.plan(tmp_path, batches.make_tables(tmp_path / 'in', 2))
    run(manifest, tmp_path / 'l')
    # a conversion would fail
    shutil.rmtree(tmp_path / 'in')
    assert run(manifest, tmp_path / 'other')['states']['skipped'] == 2


def test_changes_are_noticed(tmp_path):
    tables = batches.make_tables(tmp_path / 'in', 4)
    manifest = batches.plan(tmp_path, tables)
    run(manifest, tmp_path / 'l')
    targets = [item['target'] for item in batches.items(manifest).values()]
    with ct.table(tables[0], readonly=False, ack=False) as table:
        table.putcell('TIME', 0, -1.)
    with open(targets[1], 'ab') as file:
        file.write(b'longer')
    os.remove(targets[2])
    # the same size, other bytes: only a digest finds that
    with h5py.File(targets[3], 'r+') as file:
        file['MAIN/TIME'][3] += 1.
    document = run(manifest, tmp_path / 'l', code=support.FAILED)
    assert document['states']['conflict'] == 2 and document['states']['done'] == 2
    assert document['done_now']['items'] == 1     # the one that was removed
    failed = h5bridge('batch', 'status', manifest, '--ledger', tmp_path / 'l', '--failed').stdout
    assert 'source has changed' in failed and tables[0] in failed and targets[1].replace('/out/', '/in/')[:-3] in failed
    assert run(manifest, tmp_path / 'l', '--trust', 'digest', code=support.FAILED)['states']['conflict'] == 3
    # with --overwrite they are made again
    again = batches.plan(tmp_path, tables, '--', '--overwrite') if os.remove(manifest) is None else None
    assert run(again, tmp_path / 'l')['states']['done'] == 4
    batches.check_targets(again, batches.states(again, tmp_path / 'l'))


def test_a_target_without_a_receipt_is_adopted_if_it_is_the_same(tmp_path, tables):
    manifest = batches.plan(tmp_path, tables[:2])
    run(manifest, tmp_path / 'l')
    one, two = [item['target'] for item in batches.items(manifest).values()]
    os.remove(one + '.receipt.json')
    os.remove(two + '.receipt.json')
    shutil.copy(one, two)
    document = run(manifest, tmp_path / 'other', code=support.FAILED)
    assert document['states']['done'] == document['states']['conflict'] == 1
    assert os.path.exists(one + '.receipt.json') and not os.path.exists(two + '.receipt.json')


def test_failures_are_final_or_tried_again(tmp_path):
    tables = batches.make_tables(tmp_path / 'in', 5)
    batches.damage(tables[1])
    missing = tmp_path / 'in' / 'none.ms'
    manifest = batches.plan(tmp_path, [*tables, missing, tables[2]])
    document = run(manifest, tmp_path / 'l', '--jobs', '2', code=support.FAILED)
    assert document['states'] == {'done': 4, 'failed': 2, 'skipped': 0, 'waiting': 0, 'retry': 0, 'killed': 0, 'conflict': 0}
    attempts = collections.Counter(record['id'] for record in batches.records(tmp_path / 'l'))
    assert set(attempts.values()) == {1} and len(attempts) == 6
    codes = json.loads(h5bridge('batch', 'status', manifest, '--ledger', tmp_path / 'l', '--json').stdout)['codes']
    assert codes == {'3': 2}
    # not again, unless asked for
    assert run(manifest, tmp_path / 'l', code=support.FAILED)['done_now']['items'] == 0
    assert len(batches.records(tmp_path / 'l')) == 6
    shutil.copytree(tables[0], missing)
    document = run(manifest, tmp_path / 'l', '--again', code=support.FAILED)
    assert document['states']['done'] == 5 and document['states']['failed'] == 1
    batches.check_targets(manifest, batches.states(manifest, tmp_path / 'l'))


def test_a_locked_table_is_tried_again(tmp_path):
    [path] = batches.make_tables(tmp_path / 'in', 1)
    manifest = batches.plan(tmp_path, [path])
    holder = subprocess.Popen([sys.executable, '-c', 'import casacore.tables as ct, sys, time\n'
                               't = ct.table(sys.argv[1], readonly=False, lockoptions="user", ack=False)\n'
                               't.lock(); print("locked", flush=True); time.sleep(600)', path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == 'locked\n'
        document = run(manifest, tmp_path / 'l', '--lock-timeout', '0.1', code=support.FAILED)
        assert document['states']['retry'] == 1
        found = batches.records(tmp_path / 'l')
        assert [(record['attempt'], record['code'], record['state']) for record in found] == [(n, 7, 'retry') for n in (1, 2, 3)]
        pauses = np.diff([record['time'] for record in found])
        assert pauses[0] > 0.2 and pauses[1] > 1.2
    finally:
        holder.kill()
        holder.wait()
    assert run(manifest, tmp_path / 'l')['states']['done'] == 1


@pytest.mark.parametrize('verb', ['to-ms', 'pack', 'unpack', 'finalize', 'verify', 'digest', 'info'])
def test_any_verb_is_the_work(tmp_path, tables, verb):
    source, target, options = tables[0], None, []
    if verb in ('to-ms', 'verify'):
        source = tmp_path / 'a.h5'
        h5bridge('to-hdf5', tables[0], source)
    if verb == 'unpack':
        source = tmp_path / 'a.mf'
        h5bridge('pack', tables[0], source, '--single-file', '--format', 'multifile')
    if verb == 'finalize':
        source = tmp_path / 'live.h5'
        h5bridge('follow', '--until-closed', '--idle', '1s', tables[0], source)
    if verb in ('to-ms', 'pack', 'unpack', 'finalize'):
        target = 'x.h5' if verb == 'finalize' else 'x.ms'
    if verb == 'pack':
        options = ['--', '--format', 'multifile']
    manifest = batches.plan(tmp_path, [source], '--verb', verb, *options, out=target)
    document = run(manifest, tmp_path / 'l', '--checksums', 'md5')
    assert document['states']['done'] == 1
    if target:
        out = str(tmp_path / 'out' / target)
        h5bridge('verify', tables[0], out)
        with open(out + '.receipt.json') as file:
            receipt = json.load(file)
        expected = support.tree(out) if os.path.isdir(out) else None
        if expected:
            assert {part['path']: part['checksums']['md5'] for part in receipt['files']} == {
                path: hashlib.md5(data).hexdigest() for path, data in expected.items()}
        assert run(manifest, tmp_path / 'l', '--trust', 'digest')['done_now']['items'] == 0
    assert run(manifest, tmp_path / 'l')['done_now']['items'] == 0
    assert len(batches.records(tmp_path / 'l')) == 1


def test_verifying_in_bulk_finds_the_damaged_one(tmp_path, tables):
    manifest = batches.plan(tmp_path, tables)
    run(manifest, tmp_path / 'l')
    targets = sorted(glob.glob(str(tmp_path / 'out' / '*.h5')))
    with h5py.File(targets[4], 'r+') as file:
        file['MAIN/TIME'][3] += 1.
    # alone, and against the sources
    alone = ['--verb', 'verify']
    both = [{'source': item['source'], 'target': item['target'], 'verb': 'verify'} for item in batches.items(manifest).values()]
    for number, (sources, more, words) in enumerate([(targets, [], alone), ([], both, [])]):
        os.makedirs(tmp_path / str(number))
        check = batches.plan(tmp_path / str(number), sources, *words, out=None, more=more)
        document = run(check, tmp_path / 'checked', code=support.FAILED)
        assert document['states']['done'] == 11 and document['states']['failed'] == 1
        failed = json.loads(h5bridge('batch', 'status', check, '--ledger', tmp_path / 'checked', '--failed', '--json').stdout)['failed']
        assert [(entry['code'], os.path.basename(entry['source'])[:4]) for entry in failed] == [(5, '0004')]


def test_warnings_count_and_salvaged_files_stay(tmp_path):
    tables = batches.make_tables(tmp_path / 'in', 2)
    with open(glob.glob(tables[1] + '/table.f*')[0], 'r+b') as file:
        file.truncate(100)
    manifest = batches.plan(tmp_path, tables, '--', '--salvage')
    document = run(manifest, tmp_path / 'l', code=support.WARNINGS)
    assert document['states']['done'] == 2 and document['with_warnings'] == 1
    assert run(manifest, tmp_path / 'l', code=support.WARNINGS)['done_now']['items'] == 0
    assert len(glob.glob(str(tmp_path / 'out' / '*.h5'))) == 2


# ---- limits ---------------------------------------------------------------------------------------------------------

def test_shards_do_all_once(tmp_path, tables):
    manifest = batches.plan(tmp_path, tables)
    done = [run(manifest, tmp_path / 'l', '--shard', '%d/3' % number)['done_now']['items'] for number in range(3)]
    assert done == [4, 4, 4]
    assert set(batches.states(manifest, tmp_path / 'l').values()) == {'done'}
    h5bridge('batch', 'run', manifest, '--ledger', tmp_path / 'l', '--shard', '3/3', code=support.USAGE)


def test_a_run_ends_in_time_and_reads_at_a_rate(tmp_path, tables):
    manifest = batches.plan(tmp_path, tables)
    assert run(manifest, tmp_path / 'l', '--stop-after', '0s', code=support.FAILED)['states']['waiting'] == 12
    size = next(iter(batches.items(manifest).values()))['bytes']
    begin = time.monotonic()
    document = run(manifest, tmp_path / 'l', '--limit-read', str(2 * size), '--stop-after', '1.2s', code=support.FAILED)
    assert 1 < time.monotonic() - begin < 20
    assert document['done_now']['items'] == 3     # at 0, 0.5 and 1.0 s
    assert run(manifest, tmp_path / 'l')['done_now']['items'] == 9


def test_nothing_starts_on_a_full_disk(tmp_path, tables):
    manifest = batches.plan(tmp_path, tables)
    process = h5bridge('batch', 'run', manifest, '--ledger', tmp_path / 'l', '--min-free', '9999999G', '--stop-after', '0.3s', '--json',
                       code=support.FAILED)
    assert '--min-free' in process.stderr and json.loads(process.stdout)['states']['waiting'] == 12


def test_a_full_disk_passes(tmp_path, tables):
    out = str(tmp_path / 'out')
    os.makedirs(out)
    if os.geteuid() or subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=16k', 'none', out], stderr=subprocess.DEVNULL).returncode:
        pytest.skip('no file system of a given size can be mounted')
    try:
        manifest = batches.plan(tmp_path, tables[:2])
        process = start(manifest, tmp_path / 'l', '--retries', '30', '--jobs', '1', quick=['--retry-wait', '0.2s', '--min-free', '0'])
        ledger = tmp_path / 'l'
        wait_until(lambda: any(record['code'] == 8 for record in batches.records(ledger)))
        subprocess.run(['mount', '-o', 'remount,size=50m', out], check=True)
        assert process.wait(60) == 0, process.stderr.read()
        batches.check_targets(manifest, batches.states(manifest, ledger))
    finally:
        subprocess.run(['umount', '-l', out], check=True)


# ---- status ---------------------------------------------------------------------------------------------------------

def test_status(tmp_path, tables):
    manifest = batches.plan(tmp_path, [*tables, tmp_path / 'none.ms'])
    run(manifest, tmp_path / 'l', '--shard', '0/2', code=None)
    words = ['batch', 'status', manifest, '--ledger', tmp_path / 'l']
    document = json.loads(h5bridge(*words, '--json').stdout)
    by_state = collections.Counter(batches.states(manifest, tmp_path / 'l').values())
    assert {state: count['items'] for state, count in document['states'].items() if count['items']} == by_state
    assert document['items'] == 13 and by_state['waiting'] > 0
    families = {family.name: family for family in text_string_to_metric_families(h5bridge(*words, '--prometheus').stdout)}
    counted = {sample.labels['state']: sample.value for sample in families['h5bridge_batch_items'].samples}
    assert {state: count for state, count in counted.items() if count} == by_state
    assert families['h5bridge_batch_target_bytes'].samples[0].value == document['file_bytes']
    assert '13' in h5bridge(*words).stdout
    # a torn line, as a crash of the machine leaves it, and a line of another program
    path = glob.glob(str(tmp_path / 'l' / '*.ndjson'))[0]
    with open(path, 'a') as file:
        file.write('not a record\n{"id": "00')
    process = h5bridge(*words, '--json')
    assert json.loads(process.stdout)['states'] == document['states'] and len(json.loads(process.stdout)['warnings']) == 1


# ---- processes that die ---------------------------------------------------------------------------------------------

def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, 'nothing has happened for %d s' % seconds
        time.sleep(0.005)


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_end_with_their_parent(tmp_path, big_ms, number):
    manifest = batches.plan(tmp_path, [big_ms])
    process = start(manifest, tmp_path / 'l', '--threads', '1')
    wait_until(lambda: glob.glob(str(tmp_path / 'out' / '*.partial' / '*.partial' / 'big.h5')))
    [child] = batches.children_of(process.pid)
    process.send_signal(number)
    assert process.wait(60) == (-9 if number == signal.SIGKILL else 130)
    wait_until(lambda: not os.path.exists('/proc/%d' % child))
    # it did not go on to its end
    assert not glob.glob(str(tmp_path / 'out' / '*.partial' / 'big.h5'))
    assert not (tmp_path / 'out' / 'big.h5').exists()
    if number == signal.SIGKILL:
        # the directory of the run that was killed is left, without what the child had written; it is too young to be removed
        h5bridge('batch', 'clean', manifest)
        assert batches.leftovers(tmp_path)
        document = json.loads(h5bridge('batch', 'clean', manifest, '--older-than', '0', '--json').stdout)
        assert len(document['removed']) == 1
    else:
        assert [record['state'] for record in batches.records(tmp_path / 'l')] == ['retry']
    assert not batches.leftovers(tmp_path)


def test_an_item_that_is_always_killed(tmp_path, big_ms, tables):
    manifest = batches.plan(tmp_path, [big_ms, tables[0]])
    process = start(manifest, tmp_path / 'l', '--threads', '1', '--jobs', '1')
    for _ in range(3):
        def writing():
            children = batches.children_of(process.pid)
            return [child for child in children if glob.glob(str(tmp_path / 'out' / '*.partial' / ('*.%d-*.partial' % child) / 'big.h5'))]
        wait_until(writing)
        [child] = writing()
        os.kill(child, signal.SIGKILL)
        wait_until(lambda child=child: child not in batches.children_of(process.pid))
    assert process.wait(60) == support.FAILED
    found = batches.states(manifest, tmp_path / 'l')
    assert sorted(found.values()) == ['done', 'killed'] and not batches.leftovers(tmp_path)
    assert [record['code'] for record in batches.records(tmp_path / 'l') if record['state'] in ('retry', 'killed')] == [137] * 3
    assert run(manifest, tmp_path / 'l', '--again')['states']['done'] == 2


@pytest.mark.night('minutes of killed processes, many items')
def test_runs_and_children_are_killed_at_random(tmp_path, counts):
    """Every item ends in one state, what is done verifies, nothing is left, and another run converts nothing."""
    number, kills = (300, 15) if support.LONG else (80, 8)
    random.seed(int(os.environ.get('H5BRIDGE_SEED', 5)))
    tables = batches.make_tables(tmp_path / 'in', number)
    for path in tables[::100]:
        batches.damage(path)
    missing = [tmp_path / 'in' / ('none-%d.ms' % n) for n in range(number // 40)]
    manifest = batches.plan(tmp_path, [*tables, *missing, *tables[:20]])
    ledger = tmp_path / 'l'
    # two drivers at once, each with two jobs, which are killed and started again
    drivers = [None, None]
    killed = collections.Counter()

    def restart():
        for place, driver in enumerate(drivers):
            if driver is None or driver.poll() is not None:
                drivers[place] = start(manifest, ledger, '--jobs', '2', '--threads', '1', '--retries', '3')
    good = number - len(tables[::100])
    while killed['runs'] + killed['children'] < kills:
        if batches.missing_targets(tmp_path / 'out', good) == 0:
            # kills have to hit work
            for driver in drivers:
                driver.wait(600)
            batches.lose_half(tmp_path / 'out')
            killed['times that half of the targets were lost'] += 1
        restart()
        time.sleep(random.expovariate(3. if support.LONG else 6.))
        driver = random.choice(drivers)
        both = all(driver.poll() is None for driver in drivers)
        if random.random() < 0.5:
            driver.kill()
            # what had ended by itself does not count
            hit = driver.wait() == -signal.SIGKILL
            killed['runs'] += hit
        else:
            hit = False
            for child in batches.children_of(driver.pid)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                    hit = True
            killed['children'] += hit
        killed['of them while both runs were alive'] += hit and both
    assert killed['of them while both runs were alive'] >= kills // 2
    for driver in drivers:
        driver.wait(600)
    # what was left to do; killed items are tried again
    run(manifest, ledger, '--again', code=support.FAILED)
    found = batches.states(manifest, ledger)
    items = batches.items(manifest)
    bad = {str(path) for path in [*tables[::100], *missing]}
    assert {items[identity]['source'] for identity, state in found.items() if state == 'failed'} == bad
    assert {found[identity] for identity, item in items.items() if item['source'] not in bad} <= batches.FINISHED
    batches.check_targets(manifest, found, sample=1 if support.LONG else 8)
    h5bridge('batch', 'clean', manifest, '--older-than', '0')
    assert not batches.leftovers(tmp_path)
    before = batches.identities(tmp_path)
    document = run(manifest, ledger, code=support.FAILED)
    assert document['done_now']['items'] == 0 and batches.identities(tmp_path) == before
    counts['items'] += len(items)
    counts.update(killed)


# ---- other drivers --------------------------------------------------------------------------------------------------

def parallel(folder):
    """The path of GNU parallel: that of the machine, or in long tests Debian's."""
    found = shutil.which('parallel')
    if not found and support.LONG:
        subprocess.run('apt-get download parallel && dpkg -x parallel_*.deb .', shell=True, cwd=folder, check=True, capture_output=True)
        found = os.path.join(folder, 'usr', 'bin', 'parallel')
    if not found:
        pytest.skip('parallel is missing')
    return found


@pytest.mark.night('minutes of killed processes, many items')
def test_gnu_parallel(tmp_path, tables):
    program = parallel(tmp_path)
    manifest = batches.plan(tmp_path, tables)
    subprocess.run([program, '--will-cite', '--jobs', '2', support.H5BRIDGE, 'batch', 'run', manifest, '--ledger', str(tmp_path / 'l'),
                    '--jobs', '1', '--shard', '{}/8', ':::', *map(str, range(8))], check=True, capture_output=True)
    found = batches.states(manifest, tmp_path / 'l')
    assert set(found.values()) == {'done'}
    batches.check_targets(manifest, found)


# ---- scale ----------------------------------------------------------------------------------------------------------

def measured(*words, code=support.DONE):
    """Seconds and peak memory in MB of a command."""
    begin = time.monotonic()
    program = ('import resource, subprocess, sys\ncode = subprocess.call(sys.argv[1:], stdin=0)\n'
               'print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)')
    process = subprocess.run([sys.executable, '-c', program, support.H5BRIDGE, *map(str, words)], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=True)
    ended, memory = map(int, process.stderr.splitlines()[-1].split())
    assert ended == code, process.stderr
    return time.monotonic() - begin, memory / 1024, process.stdout


@pytest.mark.night('minutes of killed processes, many items')
def test_many_items(tmp_path, counts):
    """Time and memory of 10^6 items whose work is nothing; CI takes 20,000."""
    number = 1_000_000 if support.LONG else 20_000
    limit = 300 if support.LONG else 20
    for folder in range(number // 1000):
        os.makedirs(tmp_path / 'in' / ('%04d' % folder))
        for name in range(1000):
            open(tmp_path / 'in' / ('%04d' % folder) / ('%03d.ms' % name), 'xb').close()
    manifest, ledger = tmp_path / 'm.ndjson', tmp_path / 'l'
    steps = {
        'plan': ['plan', tmp_path / 'in' / '**' / '*.ms', '--verb', 'none', '--to', '/out/{path}/{stem}.h5', '--out', manifest],
        'run': ['run', manifest, '--ledger', ledger, '--quiet'],
        'again': ['run', manifest, '--ledger', ledger, '--quiet'],
        'status': ['status', manifest, '--ledger', ledger],
        'shard': ['run', manifest, '--ledger', ledger, '--quiet', '--shard', '7/1000'],
    }
    for name, words in steps.items():
        seconds, memory, _ = measured('batch', *words)
        counts['%s ms' % name] = int(1000 * seconds)
        counts['%s MB' % name] = int(memory)
        assert seconds < (limit / 10 if name == 'again' else limit) and memory < 500, name
    found = json.loads(h5bridge('batch', 'status', manifest, '--ledger', ledger, '--json').stdout)
    assert found['states']['done']['items'] == number
