"""With H5BRIDGE_PORTABLE, the program does as on other Unix systems what only Linux can: with the same results."""
import os
import signal
import subprocess
import time

import pytest

import support
from support import h5bridge

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')


@pytest.fixture(params=['', '1'], ids=['linux', 'portable'])
def is_portable(request, monkeypatch):
    monkeypatch.setenv('H5BRIDGE_PORTABLE', request.param)
    return bool(request.param)


@pytest.mark.usefixtures('is_portable')
def test_there_and_back(tmp_path):
    native, back = tmp_path / 'x.h5', tmp_path / 'back.ms'
    # the second time, a file and a directory are replaced
    for _ in range(2):
        h5bridge('to-hdf5', '--overwrite', DEMO, native)
        h5bridge('to-ms', '--overwrite', native, back)
    h5bridge('verify', DEMO, native)
    h5bridge('verify', DEMO, back)
    h5bridge('to-hdf5', DEMO, native, code=support.EXISTS)
    h5bridge('to-ms', native, back, code=support.EXISTS)
    h5bridge('pack', back, tmp_path / 'packed.h5')
    h5bridge('unpack', tmp_path / 'packed.h5', tmp_path / 'unpacked.ms')
    h5bridge('verify', back, tmp_path / 'unpacked.ms')
    assert sorted(os.listdir(tmp_path)) == ['back.ms', 'packed.h5', 'unpacked.ms', 'x.h5']


def test_files_are_the_same(tmp_path, monkeypatch):
    made = []
    for value in ('', '1'):
        monkeypatch.setenv('H5BRIDGE_PORTABLE', value)
        h5bridge('to-hdf5', DEMO, tmp_path / ('x.h5' + value))
        made.append((tmp_path / ('x.h5' + value)).read_bytes())
    assert made[0] == made[1]


def test_another_writer_is_seen_on_linux(tmp_path, is_portable):
    native = tmp_path / 'x.h5'
    h5bridge('to-hdf5', DEMO, native)
    with open(native, 'r+b'):
        process = h5bridge('repair', native, code=support.DONE if is_portable else support.EXISTS)
    assert ('process %d has the file open for writing' % os.getpid() in process.stderr) == (not is_portable)


@pytest.mark.usefixtures('is_portable')
def test_processes_end_with_their_parent():
    words = ['sh', '-c', '"$0" --end-with $$ serve --port 0 --json "$1" & echo $!; wait', support.H5BRIDGE, DEMO]
    parent = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    lines = [parent.stdout.readline(), parent.stdout.readline()]
    [child] = [int(line) for line in lines if line.strip().isdecimal()]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    end = time.monotonic() + 20
    try:
        while os.path.exists('/proc/%d' % child):
            assert time.monotonic() < end, 'the process lives for 20 s without its parent'
            time.sleep(0.01)
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        parent.stdout.close()
