"""Steps of `h5bridge shard` as processes, and what is in the directory of a plan (docs/reference/shards.md)."""
import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import time

import support

WORK = '256K'


def plan(source, target, *words, size=WORK):
    return json.loads(support.h5bridge('shard', 'plan', '--json', source, target, '--work-bytes', size, *words).stdout)


def work(target, *words, code=support.DONE):
    process = support.h5bridge('shard', 'work', '--json', target, *words, code=code)
    return json.loads(process.stdout) if code == support.DONE else process.stderr


def commit(target, *words, code=support.DONE):
    process = support.h5bridge('shard', 'commit', '--json', target, *words, code=code)
    return json.loads(process.stdout) if code == support.DONE else process.stderr


def status(target):
    return json.loads(support.h5bridge('shard', 'status', '--json', target).stdout)


def verify(target, *words, code=support.DONE):
    return json.loads(support.h5bridge('shard', 'verify', '--json', target, *words, code=code).stdout)


def lines(target):
    """{kind: [line]} of the plan, or of the ranges of a published file."""
    directory = str(target) + '.shards'
    path = os.path.join(directory, 'plan.ndjson') if os.path.isdir(directory) else str(target) + '.shards.ndjson'
    found = {'plan': [], 'dataset': [], 'item': []}
    with open(path) as file:
        for line in file:
            (kind, value), = json.loads(line).items()
            found[kind].append(value)
    return found


def records(target):
    """All records of the ledger, in the order of their times."""
    folder = str(target) + '.shards/ledger'
    found = []
    for name in os.listdir(folder):
        with open(os.path.join(folder, name)) as file:
            found += [json.loads(line) for line in file if line.endswith('\n')]
    return sorted(found, key=lambda record: record['time'])


def file_of(target):
    """The file that is not published yet."""
    return os.path.join(str(target) + '.shards', os.path.basename(target))


def flip(path, offset):
    with open(path, 'r+b') as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def claim(file, item=None, kind=fcntl.F_WRLCK, command=fcntl.F_OFD_SETLK):
    """Locks the byte of ITEM in the file of claims, or asks for locks on all bytes; returns the kind of lock."""
    start, length = (int(item, 16) >> 2, 1) if item else (0, 0)
    answer = fcntl.fcntl(file, command, struct.pack('hhqqi4x', kind, os.SEEK_SET, start, length, 0))
    return struct.unpack('hhqqi4x', answer)[0]


def run_killed(source, target, chosen, counts):
    """Runs all steps until each is done; half of the processes are killed."""
    steps = [[['plan', source, target, '--work-bytes', WORK]],
             [['work', target, '--threads', '1']] * 2,
             [['commit', target]]]
    for commands in steps:
        # as long as an undisturbed run takes here, at most
        longest = 0.25 if commands[0][0] == 'work' else 0.08
        while True:
            processes = [subprocess.Popen([support.H5BRIDGE, 'shard', *map(str, words)], stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True) for words in commands]
            if chosen.random() < 0.7:
                time.sleep(chosen.random() * longest)
                victim = chosen.choice(processes)
                counts['kills'] += int(victim.poll() is None)
                victim.kill()
            ends = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
            assert all(code in (0, -signal.SIGKILL) for _, code in ends), ends
            if all(code == 0 for _, code in ends):
                break
            if commands[0][0] == 'plan' and os.path.isdir(str(target) + '.shards'):
                # killed after it was published: the directory in which it was made may be left, empty but for its lock
                for name in support.partials(str(target) + '.shards'):
                    left = os.path.join(os.path.dirname(target), name)
                    assert os.listdir(left) in ([], ['lock'])
                    shutil.rmtree(left)
                break
            if commands[0][0] == 'commit' and not os.path.isdir(str(target) + '.shards'):
                break
