"""Files that hsload loads into HSDS, the HDF Group's server: h5pyd reads the values that casacore has.

HSDS is not installed into .venv, because its packages hold others back. H5BRIDGE_HSDS=FOLDER names an environment of Python with `pip install hsds h5pyd`;
without it the test is skipped.
"""
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request

import casacore.tables as ct
import numpy as np
import pytest

import support
from support import h5bridge

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
FOLDER = os.environ.get('H5BRIDGE_HSDS', '')
SCRIPT = '''
import json, h5pyd
with h5pyd.File('/home/admin/my.h5', 'r') as file:
    data = file['MAIN/DATA'][5:7]
    print(json.dumps({'groups': sorted(file), 'time': file['MAIN/TIME'][:].tolist(), 'names': [name.decode() for name in file['ANTENNA/NAME'][:]],
                      'real': data['r'].tolist(), 'imaginary': data['i'].tolist()}))
'''


@pytest.fixture
def server(tmp_path):
    """The environment of clients of a server that runs."""
    if not os.access(os.path.join(FOLDER, 'bin', 'hsds'), os.X_OK):
        pytest.skip('H5BRIDGE_HSDS names no environment with hsds and h5pyd')
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    (tmp_path / 'data').mkdir()
    endpoint = 'http://127.0.0.1:%d' % port
    environment = {**os.environ, 'PATH': os.path.join(FOLDER, 'bin') + ':' + os.environ['PATH'], 'HS_ENDPOINT': endpoint,
                   'HS_USERNAME': 'admin', 'HS_PASSWORD': 'admin'}
    words = ['hsds', '--root_dir', str(tmp_path / 'data'), '--hs_username', 'admin', '--hs_password', 'admin', '--port', str(port), '--count', '1']
    with open(tmp_path / 'log', 'wb') as log:
        process = subprocess.Popen([os.path.join(FOLDER, 'bin', words[0]), *words[1:]], env=environment, cwd=tmp_path, stdout=log, stderr=log,
                                   start_new_session=True)
    try:
        end = time.monotonic() + 90
        while True:
            try:
                with urllib.request.urlopen(endpoint + '/about', timeout=2) as answer:
                    if json.load(answer)['state'] == 'READY':
                        break
            except OSError:
                pass
            assert process.poll() is None and time.monotonic() < end, (tmp_path / 'log').read_text()[-2000:]
            time.sleep(0.3)
        yield environment
    finally:
        # its nodes, one of which has port 6101, outlive it
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def test_loaded_file(tmp_path, server, counts):
    h5bridge('to-hdf5', '--tables', 'MAIN,ANTENNA', '--columns', 'TIME,DATA,ANTENNA/NAME', DEMO, tmp_path / 'my.h5')

    def call(*words):
        done = subprocess.run([os.path.join(FOLDER, 'bin', words[0]), *words[1:]], env=server, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout
    begin = time.monotonic()
    call('hstouch', '/home/')
    call('hstouch', '/home/admin/')
    call('hsload', 'my.h5', '/home/admin/')
    counts['seconds of hsload'] += int(time.monotonic() - begin)
    found = json.loads(call('python3', '-c', SCRIPT).splitlines()[-1])
    with ct.table(DEMO, ack=False) as table, ct.table(DEMO + '/ANTENNA', ack=False) as antenna:
        data = table.getcol('DATA', 5, 2)
        assert np.array_equal(np.float32(found['real']), data.real) and np.array_equal(np.float32(found['imaginary']), data.imag)
        assert found['time'] == table.getcol('TIME').tolist()
        assert found['names'] == antenna.getcol('NAME')
    assert {'MAIN', 'ANTENNA'} <= set(found['groups'])
