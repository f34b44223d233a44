"""Array jobs of a real Slurm, started without installing it: requeue, elements that are killed, a second array; `batch` and `shard`.

Debian's packages are unpacked into a folder. H5BRIDGE_LONG=1 downloads them; otherwise the test is skipped, unless H5BRIDGE_SLURM names
a folder in which they are unpacked already.
"""
import collections
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time

import pytest

import batches
import sharing
import support

PACKAGES = ['slurmctld', 'slurmd', 'slurm-client', 'slurm-wlm-basic-plugins', 'libhwloc15']
CONFIGURATION = '''ClusterName=test
SlurmctldHost=localhost
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmUser=root
SlurmdUser=root
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool
SlurmctldPidFile={at}/controller.pid
SlurmdPidFile={at}/node.pid
SlurmctldLogFile={at}/controller.log
SlurmdLogFile={at}/node.log
SlurmctldPort={port}
SlurmdPort={node_port}
PluginDir={plugins}
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
MinJobAge=300
KillWait=5
NodeName=localhost NodeHostname={host} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
'''


def free_port():
    with socket.socket() as listening:
        listening.bind(('127.0.0.1', 0))
        return listening.getsockname()[1]


class Slurm:
    """A controller and a node on this machine."""

    def __init__(self, folder, root):
        os.makedirs(os.path.join(folder, 'state'))
        os.makedirs(os.path.join(folder, 'spool'))
        self.root = root
        libraries = glob.glob(os.path.join(root, 'usr', 'lib', '*-linux-gnu'))[0]
        plugins = os.path.join(libraries, 'slurm-wlm')
        path = os.path.join(folder, 'slurm.conf')
        with open(path, 'w') as file:
            file.write(CONFIGURATION.format(at=folder, plugins=plugins, port=free_port(), node_port=free_port(), host=socket.gethostname()))
        self.environment = {**os.environ, 'SLURM_CONF': path, 'LD_LIBRARY_PATH': libraries + ':' + plugins}
        step = glob.glob(os.path.join(root, 'usr', 'sbin', 'slurmstepd*'))[0]
        self.processes = [self.popen('slurmctld', '-D', '-c'), self.popen('slurmd', '-D', '-N', 'localhost', '-d', step)]

    def words(self, name, *more):
        found = [path for pattern in ('sbin', 'bin') for path in glob.glob(os.path.join(self.root, 'usr', pattern, name + '*'))
                 if os.path.basename(path) in (name, name + '-wlm')]
        return [found[0], *more]

    def popen(self, name, *more):
        return subprocess.Popen(self.words(name, *more), env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def call(self, name, *more):
        process = subprocess.run(self.words(name, *more), env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=60)
        assert process.returncode == 0, (name, more, process.stderr)
        return process.stdout.strip()

    def wait(self, condition, seconds=120):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, 'nothing has happened for %d s' % seconds
            time.sleep(0.2)

    def jobs(self):
        return self.call('squeue', '--noheader', '--format', '%i %T').splitlines()

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope='module')
def slurm(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp('slurm'))
    root = os.environ.get('H5BRIDGE_SLURM')
    if os.geteuid() or not (root or support.LONG and shutil.which('apt-get')):
        pytest.skip('Slurm is started by root with H5BRIDGE_LONG=1, where Debian has it')
    if not root:
        root = os.path.join(folder, 'root')
        subprocess.run(['apt-get', 'download', *PACKAGES], cwd=folder, check=True, capture_output=True, timeout=120)
        for package in glob.glob(os.path.join(folder, '*.deb')):
            subprocess.run(['dpkg', '-x', package, root], check=True)
    started = Slurm(folder, root)
    try:
        started.wait(lambda: subprocess.run(started.words('sinfo', '-h', '-o', '%T'), env=started.environment, capture_output=True,
                                            text=True).stdout.strip() == 'idle', 60)
        yield started
    finally:
        started.close()


def template(number=0):
    """A script of docs/howto/cluster.md: the first is that of batches, the second that of shards."""
    with open(os.path.join(support.ROOT, 'docs', 'howto', 'cluster.md'), encoding='utf-8') as file:
        script = file.read().split('#!/bin/bash\n')[number + 1]
    return '#!/bin/bash\n' + script[:script.index('```')]


def submit(slurm, folder, manifest, ledger, *words):
    """The number of a job made from the script of the documents, smaller."""
    script = template().replace('0-199%50', '0-3%1').replace('--cpus-per-task=4', '--cpus-per-task=1').replace('--mem=2G', '--mem=0')
    path = os.path.join(folder, 'job.sh')
    with open(path, 'w') as file:
        file.write(script)
    export = 'ALL,MANIFEST=%s,LEDGER=%s,PATH=%s:%s' % (manifest, ledger, os.path.dirname(support.H5BRIDGE), os.environ['PATH'])
    return slurm.call('sbatch', '--parsable', '--output', os.path.join(folder, '%A_%a.out'), '--export', export, *words, path).split(';')[0]


def processes(ledger):
    """The runs and their children that write to a ledger: {run: children}."""
    found = {}
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            with open(path, 'rb') as file:
                words = file.read().split(b'\0')
        except OSError:
            continue
        if b'run' in words and str(ledger).encode() in words:
            found[int(path.split('/')[2])] = batches.children_of(int(path.split('/')[2]))
    return found


def array_of(pid):
    """Number of the array whose element a process is."""
    try:
        with open('/proc/%d/environ' % pid, 'rb') as file:
            variables = dict(line.split(b'=', 1) for line in file.read().split(b'\0') if b'=' in line)
    except OSError:
        return None
    return variables.get(b'SLURM_ARRAY_JOB_ID', b'').decode()


@pytest.mark.night('a Slurm of its own')
def test_array_requeue_and_second_array(tmp_path, slurm, counts):
    number, kills = (300, 15) if support.LONG else (60, 4)
    random.seed(int(os.environ.get('H5BRIDGE_SEED', 3)))
    tables = batches.make_tables(tmp_path / 'in', number)
    batches.damage(tables[11])
    manifest = batches.plan(tmp_path, [*tables, tmp_path / 'in' / 'none.ms', *tables[:7]])
    ledger = tmp_path / 'l'
    folder = str(tmp_path)
    done, arrays = collections.Counter(), []
    while done['runs'] + done['children'] < kills:
        if batches.missing_targets(tmp_path / 'out', number - 1) == 0:
            # kills have to hit work
            slurm.wait(lambda: not slurm.jobs(), 300)
            batches.lose_half(tmp_path / 'out')
            done['times that half of the targets were lost'] += 1
        # two arrays at once do the same items, one element of each at a time; later ones do what is left of the first
        queued = {line.split('_')[0] for line in slurm.jobs()}
        arrays += [submit(slurm, folder, manifest, ledger) for _ in range(2 - len(queued & set(arrays)))]
        time.sleep(random.expovariate(4.))
        running = processes(ledger)
        if len({array_of(pid) for pid in running} & set(arrays)) < 2:
            continue
        run = random.choice(list(running))
        victim = random.choice([run, *running[run]])
        if not done['requeued'] and any('RUNNING' in line for line in slurm.jobs()):
            element = next(line.split()[0] for line in slurm.jobs() if 'RUNNING' in line)
            slurm.call('scontrol', 'requeue', element)
            done['requeued'] += 1
            continue
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
        done['runs' if victim == run else 'children'] += 1
    assert done['requeued']
    done['arrays'] = len(arrays)
    slurm.wait(lambda: not slurm.jobs(), 900)
    second = submit(slurm, folder, manifest, ledger, '--dependency', 'afterany:' + arrays[-1])
    slurm.wait(lambda: not slurm.jobs(), 900)
    found = batches.states(manifest, ledger)
    items = batches.items(manifest)
    bad = {tables[11], str(tmp_path / 'in' / 'none.ms')}
    assert {items[identity]['source'] for identity, state in found.items() if state == 'failed'} == bad
    assert {found[identity] for identity, item in items.items() if item['source'] not in bad} <= batches.FINISHED
    batches.check_targets(manifest, found, sample=1 if support.LONG else 8)
    support.h5bridge('batch', 'clean', manifest, '--older-than', '0')
    assert not batches.leftovers(tmp_path)
    before = batches.identities(tmp_path / 'out')
    submit(slurm, folder, manifest, ledger, '--dependency', 'afterany:' + second)
    slurm.wait(lambda: not slurm.jobs(), 300)
    assert batches.identities(tmp_path / 'out') == before and batches.states(manifest, ledger) == found
    counts['items'] += len(items)
    counts.update(done)


def shard_template(folder):
    """The script for shards for this machine, in FOLDER."""
    script = template(1)
    script = script[:script.index('END\n')].replace('0-15', '0-3').replace('--cpus-per-task=4', '--cpus-per-task=1')
    assert '--array=0-3 --cpus-per-task=1 --mem=2G' in script
    path = os.path.join(folder, 'shards.sbatch')
    with open(path, 'w') as file:
        file.write(script.replace('--mem=2G', '--mem=0'))
    return path


def stop_worker(target, known):
    """Stops a worker on TARGET that has recorded something, and returns its number; `None` if none runs but those in KNOWN."""
    for path in glob.glob('%s.shards/ledger/*.ndjson' % target):
        number = int(os.path.basename(path).split('-')[-2])
        if number not in known and os.path.getsize(path):
            try:
                os.kill(number, signal.SIGSTOP)
            except ProcessLookupError:
                continue
            return number
    return None


def records(target):
    """Number of results in the ledger of TARGET."""
    return sum(sum(1 for _ in open(path, 'rb')) for path in glob.glob('%s.shards/ledger/*.ndjson' % target))


@pytest.mark.night('a Slurm of its own')
def test_shards(tmp_path, slurm):
    """The array of docs/howto/cluster.md: an element that is killed and one that is told to end keep the commit from running; a second array
    does what they have left, and its commit publishes."""
    source = sharing.make(tmp_path / 'my.tab', [sharing.Tiles('DATA', 'c8', (64, 4), [4, 64, 16]),
                                                sharing.Tiles('FLAG', '?', (64, 4), [4, 64, 64])], rows=60000)
    target = tmp_path / 'my.h5'
    made = json.loads(support.h5bridge('shard', 'plan', '--json', source, target, '--work-bytes', '1M').stdout)
    script = shard_template(str(tmp_path))
    export = 'ALL,PATH=%s:%s' % (os.path.dirname(support.H5BRIDGE), os.environ['PATH'])

    def submit_both():
        words = ['--parsable', '--output', str(tmp_path / '%A_%a.out'), '--export', export]
        array = slurm.call('sbatch', *words, script, str(target)).split(';')[0]
        wrapped = 'h5bridge shard commit %s' % target
        return array, slurm.call('sbatch', *words, '--dependency=afterok:' + array, '--wrap', wrapped).split(';')[0]

    def ends():
        return [line.split() for line in slurm.call('scontrol', '--oneliner', 'show', 'job').splitlines()]

    first, commit = submit_both()
    stopped, end = [], time.monotonic() + 60
    while len(stopped) < 2 and time.monotonic() < end:
        stopped += filter(None, [stop_worker(target, stopped)])
        time.sleep(0.002)
    killed, told = stopped
    os.kill(killed, signal.SIGKILL)
    os.kill(told, signal.SIGTERM)
    os.kill(told, signal.SIGCONT)
    slurm.wait(lambda: all(line.split()[0] == commit for line in slurm.jobs()))
    codes = sorted(field for job in ends() if 'ArrayJobId=' + first in job for field in job if field.startswith('ExitCode='))
    assert codes == ['ExitCode=0:0', 'ExitCode=0:0', 'ExitCode=0:9', 'ExitCode=130:0'], codes
    assert not target.exists()
    done = records(target)
    slurm.call('scancel', commit)
    second, _ = submit_both()
    slurm.wait(lambda: not slurm.jobs())
    assert target.exists() and second != first and 2 < done < made['items']
    support.h5bridge('verify', source, target)
    support.h5bridge('shard', 'verify', target)
