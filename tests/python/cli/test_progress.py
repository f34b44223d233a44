"""What a long run shows: a bar on a terminal, a line for each table in a pipe, and what is left after Ctrl-C."""
import os
import pty
import re
import select
import signal
import subprocess
import time

import casacore.tables as ct
import numpy as np
import pytest

import support

# noise at the highest level: minutes of work, so that no machine has ended before it is interrupted
SLOW = ['--compress', 'zstd:22', '--threads', '1']


@pytest.fixture(scope='module')
def slow_ms(tmp_path_factory):
    """A table of 64 MB of noise with a subtable."""
    folder = tmp_path_factory.mktemp('slow')
    cells = np.random.default_rng(1).normal(size=(250, 4000, 2)).view(np.complex128)[..., 0].astype(np.complex64)
    table = ct.table(str(folder / 'slow.ms'), ct.maketabdesc([
        ct.makearrcoldesc('DATA', 0j, shape=[4000], valuetype='complex', options=5),
        ct.makescacoldesc('TIME', 0.)]), nrow=8 * len(cells), ack=False)
    for part in range(8):
        table.putcol('DATA', cells, part * len(cells), len(cells))
    table.close()
    return folder / 'slow.ms'


def words(source, target, *more):
    return [support.H5BRIDGE, 'to-hdf5', source.name, target, *SLOW, *more]


@pytest.mark.parametrize('existing', [False, True])
def test_in_a_pipe(slow_ms, existing):
    """A line says which table is being written, how fast and how long; then Ctrl-C says what is left."""
    target = slow_ms.parent / 'out.h5'
    if existing:
        target.write_text('mine')
    process = subprocess.Popen(words(slow_ms, 'out.h5', '--overwrite'), cwd=slow_ms.parent, stderr=subprocess.PIPE, text=True,
                               stdout=subprocess.DEVNULL)
    first = process.stderr.readline()
    assert re.fullmatch(r'writing MAIN(; .* of .* done, .*/s, .* left)?\n', first), first
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[1]
    outcome = 'out.h5 is as it was' if existing else 'the unfinished out.h5 was removed'
    assert rest == 'h5bridge: interrupted; %s; slow.ms is untouched; the same command begins again\n' % outcome
    assert process.returncode == support.INTERRUPTED and not support.partials(str(target))
    assert target.exists() == existing
    if existing:
        target.unlink()


def test_quiet(slow_ms):
    process = subprocess.Popen(words(slow_ms, 'quiet.h5', '-q'), cwd=slow_ms.parent, stderr=subprocess.PIPE, text=True)
    assert not select.select([process.stderr], [], [], 2)[0]
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[1].startswith('h5bridge: interrupted; the unfinished quiet.h5 was removed')


def test_short_runs_have_no_lines(tmp_path):
    demo = support.own_copy('demo', 'demo.ms')
    said = support.h5bridge('to-hdf5', demo, tmp_path / 'x.h5').stderr
    assert 'writing' not in said and 'next: h5bridge verify' in said


def test_on_a_terminal(slow_ms):
    """Phase, rate, remaining time and column; Ctrl-C of the terminal."""
    process, terminal = pty.fork()
    if not process:
        os.chdir(slow_ms.parent)
        os.environ.update(TERM='xterm', COLUMNS='120')
        os.execv(support.H5BRIDGE, words(slow_ms, 'terminal.h5'))
    said, until = b'', time.time() + 60
    pattern = re.compile(rb'writing .*[KM]iB/s .* left +DATA')
    try:
        while not pattern.search(said):
            assert time.time() < until, said[-500:]
            if select.select([terminal], [], [], 0.2)[0]:
                said += os.read(terminal, 65536)
        os.write(terminal, b'\x03')
        said = b''
        while b'begins again' not in said:
            assert time.time() < until, said[-500:]
            said += os.read(terminal, 65536)
        assert b'h5bridge: interrupted; the unfinished terminal.h5 was removed; slow.ms is untouched' in said
    finally:
        os.close(terminal)
        status = os.waitpid(process, 0)[1]
    assert os.waitstatus_to_exitcode(status) in (support.INTERRUPTED, -signal.SIGHUP)


def test_while_nothing_is_written(tmp_path):
    """A signal while a lock is waited for."""
    table = support.own_copy('demo', 'demo.ms')
    writer = ct.table(table, readonly=False, lockoptions='permanent', ack=False)
    process = subprocess.Popen([support.H5BRIDGE, 'to-hdf5', table, str(tmp_path / 'x.h5')], stderr=subprocess.PIPE, text=True)
    try:
        assert 'waiting for it' in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[1] == 'h5bridge: interrupted; nothing was being written\n'
        assert process.returncode == support.INTERRUPTED
    finally:
        writer.close()


def test_a_terminal_that_was_closed():
    """Messages that nobody can read are lost; the exit code stays what it is."""
    words = [support.H5BRIDGE, 'info', '/nowhere/my.ms']
    expected = subprocess.run(words, stderr=subprocess.PIPE, check=False).returncode
    ours, its = pty.openpty()
    os.close(ours)
    try:
        assert subprocess.run(words, stderr=its, check=False).returncode == expected != 101
    finally:
        os.close(its)
