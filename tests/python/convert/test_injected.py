"""System calls that fail: every verb ends with an error, and its target is absent, as before, or whole.

Three faults of each verb; at night all. Calls fail as strace injects it; every fault is reported to have been reached or not."""
import os
import random
import shutil
import subprocess

import pytest

import support

pytestmark = pytest.mark.skipif(not support.STRACE, reason='strace is missing or may not trace')

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
OTHER = os.path.join(support.TESTDATA, 'twospw', 'twospw.ms')
LATER = (1, 2, 5, 20, 60)
# system calls, and the error that one of them ends with
FAULTS = [
    *[('pwrite64', 'error=EIO:when=%d' % n) for n in LATER],
    *[('pwrite64,pwritev', 'error=ENOSPC:when=%d+' % n) for n in LATER],
    ('write', 'error=ENOSPC:when=1+'),
    *[('pwrite64', 'error=EINTR:when=%d' % n) for n in LATER[:3]],
    *[('fsync,fdatasync', 'error=EIO:when=%d' % n) for n in LATER[:3]],
    ('ftruncate', 'error=EIO:when=1'),
    ('fallocate', 'error=EOPNOTSUPP:when=1+'),
    ('fallocate', 'error=ENOSPC:when=1+'),
    ('copy_file_range', 'error=EIO:when=1'),
    ('copy_file_range', 'error=ENOSYS:when=1+'),
    ('renameat2', 'error=EIO:when=1'),
    ('renameat2', 'error=EINVAL:when=1+'),
    ('rename', 'error=EIO:when=1'),
    ('mkdir,mkdirat', 'error=ENOSPC:when=1'),
    ('fcntl', 'error=ENOLCK:when=40+'),
    ('pread64', 'error=EIO:when=7'),
    ('read', 'error=EIO:when=40'),
    ('mmap', 'error=ENOMEM:when=60+'),
    ('openat', 'error=EMFILE:when=60+'),
    ('unlink,unlinkat,rmdir', 'error=EIO:when=1'),
]


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp('sources')
    shutil.copytree(DEMO, folder / 'a.ms')
    support.h5bridge('to-hdf5', DEMO, folder / 'a.h5')
    support.h5bridge('to-hdf5', OTHER, folder / 'b.h5')
    support.h5bridge('pack', DEMO, folder / 'a.mfh5', '--single-file')
    support.h5bridge('to-hdf5', DEMO, folder / 'shared.h5', '--compress', 'shared')
    support.h5bridge('follow', DEMO, folder / 'live.h5', '--idle', '1s')
    return folder


# words, with the folders {from} and {to}; the name of the target; the source that it equals; a file that is there before
VERBS = {
    'to-hdf5': ('to-hdf5 {from}/a.ms {to}', 'a.h5', 'a.ms', None),
    'to-hdf5 --overwrite': ('to-hdf5 {from}/a.ms {to} --overwrite', 'a.h5', 'a.ms', 'b.h5'),
    'to-hdf5 --restorable': ('to-hdf5 {from}/a.ms {to} --restorable', 'a.h5', 'a.ms', None),
    'to-hdf5 --schema msv4': ('to-hdf5 {from}/a.ms {to} --schema msv4', 'a.h5', 'a.ms', None),
    'to-ms': ('to-ms {from}/a.h5 {to}', 'a.ms', 'a.ms', None),
    'pack multihdf5': ('pack {from}/a.ms {to} --single-file', 'a.mfh5', 'a.ms', None),
    'pack multifile': ('pack {from}/a.ms {to} --format multifile', 'a.mf', 'a.ms', None),
    'pack sion': ('pack {from}/a.ms {to} --format sion', 'a.sion', 'a.ms', None),
    'pack vt': ('pack {from}/a.ms {to} --format vt', 'a.vt', 'a.ms', None),
    'pack hdf5': ('pack {from}/a.ms {to} --format hdf5', 'files.h5', 'a.ms', None),
    'unpack': ('unpack {from}/a.mfh5 {to}', 'a.ms', 'a.ms', None),
    'finalize': ('finalize {from}/live.h5 {to}', 'a.h5', 'live.h5', None),
    'link': ('link {from}/shared.h5 {to}', 'a.ms', 'a.ms', None),
}


def is_whole(source, target):
    of_bytes = ['--bytes'] if target.name == 'files.h5' else []
    return support.h5bridge('verify', source, target, *of_bytes, code=None).returncode in (support.DONE, support.WARNINGS)


def content(folder):
    return {os.path.relpath(os.path.join(root, name), folder): os.path.getsize(os.path.join(root, name))
            for root, _, names in os.walk(folder) for name in names}


def check(verb, fault, sources, folder, counts):
    words, name, source, before = VERBS[verb]
    target = folder / name
    if before:
        shutil.copyfile(sources / before, target)
    words = words.format(**{'from': sources, 'to': target}).split()
    calls, error = fault
    log = folder.parent / 'calls'
    process = subprocess.run([support.STRACE, '-f', '-qq', '-o', str(log), '-e', 'trace=' + calls, '-e', 'inject=%s:%s' % fault, support.H5BRIDGE, *words],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    with open(log, encoding='utf-8', errors='replace') as file:
        counts['injected' if 'INJECTED' in file.read() else 'not reached'] += 1
    allowed = (support.DONE, support.FAILED, support.DAMAGED, support.UNSUPPORTED, support.WARNINGS, support.EXISTS, support.NO_SPACE)
    assert process.returncode in allowed, (fault, process.returncode, process.stderr)
    # where nothing can be written, a message cannot either
    assert process.returncode in (support.DONE, support.WARNINGS) or process.stderr.strip() or calls == 'write', fault
    state = 'absent'
    if os.path.lexists(target):
        state = 'new' if is_whole(sources / source, target) else 'old' if before and is_whole(OTHER, target) else 'broken'
    assert state != 'broken', (fault, process.returncode, process.stderr)
    assert process.returncode not in (support.DONE, support.WARNINGS) or state == 'new', (fault, state, process.stderr)
    # what could not be removed does not have the target's name; blocks of vt are shared by archives
    left = [other for other in os.listdir(folder) if other != name and (other, verb) != ('store', 'pack vt')]
    assert not left or calls in ('unlink,unlinkat,rmdir', 'openat') and all(other.endswith(('.partial', '.lock')) for other in left), (fault, left)
    counts[state] += 1


@pytest.mark.parametrize('verb', VERBS)
def test_failing_calls(verb, sources, tmp_path, counts):
    stood = content(sources)
    chosen = FAULTS if support.LONG else [('pwrite64', 'error=EIO:when=2'), *random.Random(verb).sample(FAULTS, 2)]
    for number, fault in enumerate(chosen):
        folder = tmp_path / str(number)
        folder.mkdir()
        check(verb, fault, sources, folder, counts)
        shutil.rmtree(folder)
    assert content(sources) == stood


ANTENNA = os.path.join(DEMO, 'ANTENNA')
# of a small table, which is in {from} in several forms
SMALL = {
    'to-hdf5': ('to-hdf5 %s {to}' % ANTENNA, 'a.h5'),
    'to-hdf5 --hdf5 1.8': ('to-hdf5 %s {to} --hdf5 1.8' % ANTENNA, 'a.h5'),
    'to-hdf5 --profile cloud': ('to-hdf5 %s {to} --profile cloud' % ANTENNA, 'a.h5'),
    'to-hdf5 --restorable': ('to-hdf5 %s {to} --restorable' % ANTENNA, 'a.h5'),
    'to-hdf5 of strings': ('to-hdf5 %s {to}' % os.path.join(support.TESTDATA, 'odd_strings', 'odd.tab'), 'a.h5'),
    'finalize': ('finalize {from}/live.h5 {to}', 'a.h5'),
    'pack multihdf5': ('pack %s {to} --single-file' % ANTENNA, 'a.mfh5'),
    'pack hdf5': ('pack %s {to} --format hdf5' % ANTENNA, 'files.h5'),
    'to-ms': ('to-ms {from}/small.h5 {to}', 'a.ms'),
    'unpack': ('unpack {from}/small.mfh5 {to}', 'a.ms'),
}


@pytest.mark.parametrize('verb', SMALL)
def test_every_failing_write(verb, tmp_path, counts):
    """Each write of a small table fails once: also the last ones, when libhdf5 closes what it has in memory."""
    words, name = SMALL[verb]
    support.h5bridge('to-hdf5', ANTENNA, tmp_path / 'small.h5')
    support.h5bridge('pack', ANTENNA, tmp_path / 'small.mfh5', '--single-file')
    support.h5bridge('follow', ANTENNA, tmp_path / 'live.h5', '--idle', '100ms')
    target, whole, log = tmp_path / 'out' / name, tmp_path / 'whole' / name, tmp_path / 'calls'
    target.parent.mkdir()
    whole.parent.mkdir()
    support.h5bridge(*words.format(**{'from': tmp_path, 'to': whole}).split())
    line = words.format(**{'from': tmp_path, 'to': target}).split()
    for number in range(1, 1000):
        fault = 'inject=pwrite64:error=EIO:when=%d' % number
        process = subprocess.run([support.STRACE, '-f', '-qq', '-o', str(log), '-e', 'trace=pwrite64', '-e', fault, support.H5BRIDGE, *line],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        with open(log, encoding='utf-8', errors='replace') as file:
            injected = 'INJECTED' in file.read()
        if not injected:
            break
        assert process.returncode in (support.FAILED, support.DONE), (number, process.returncode, process.stderr)
        names = {path.name for path in target.parent.iterdir()}
        assert is_whole(whole, target) if target.exists() else process.returncode == support.FAILED, (number, process.stderr)
        assert names <= {name}, (number, names, process.stderr)
        counts['writes that failed'] += 1
        for folder in (tmp_path / 'out').iterdir():
            shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
    assert counts['writes that failed'] > 3


def test_following_goes_on_after_a_failing_write(tmp_path, counts):
    """Each tenth write of `follow`, at night each: no live file, or one that repair and follow complete."""
    whole, live, log = tmp_path / 'whole.h5', tmp_path / 'live.h5', tmp_path / 'calls'
    follow = ['follow', '-q', ANTENNA, str(live), '--idle', '100ms']
    support.h5bridge('follow', '-q', ANTENNA, whole, '--idle', '100ms')
    for number in range(1, 1000, 1 if support.LONG else 10):
        process = subprocess.run([support.STRACE, '-f', '-qq', '-o', str(log), '-e', 'trace=pwrite64', '-e', 'inject=pwrite64:error=EIO:when=%d' % number,
                                  support.H5BRIDGE, *follow], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        with open(log, encoding='utf-8', errors='replace') as file:
            injected = 'INJECTED' in file.read()
        if not injected:
            break
        assert process.returncode == support.FAILED, (number, process.stderr)
        if live.exists():
            support.h5bridge('repair', live)
            support.h5bridge(*follow)
            support.h5bridge('verify', whole, live)
            live.unlink()
            counts['live files'] += 1
        counts['writes that failed'] += 1
    assert counts['writes that failed'] > counts['live files'] > 2
