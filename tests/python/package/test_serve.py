"""`h5bridge.serve`: pages that answer until the block, Python or the process ends, whatever interrupts it; and errors in Python's words."""
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

import h5bridge
import support

DEMO = support.own_copy('demo', 'demo.ms')
SECONDS = 60


def get(pages, path='', token=True):
    """What the server of a URL answers to a program."""
    root, _, secret = pages.partition('?token=')
    request = urllib.request.Request(root + path, headers={'Authorization': 'Bearer ' + secret} if token else {})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return answer.read()


def is_gone(url):
    """Whether nobody listens any more, within some seconds."""
    parts = urllib.parse.urlsplit(url)
    end = time.time() + 20
    while time.time() < end:
        try:
            socket.create_connection((parts.hostname, parts.port), 5).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.1)
    return False


def test_block(tmp_path):
    """Sources are served to who has the token, and nobody after the block."""
    h5bridge.to_hdf5(DEMO, tmp_path / 'my.h5')
    with h5bridge.serve(DEMO, tmp_path / 'my.h5', threads=1) as pages:
        assert pages.url.startswith('http://127.0.0.1:') and not pages.closed
        assert {file['file'] for file in json.loads(get(pages.url, 'api/files'))} == {'demo.ms', 'my.h5'}
        with pytest.raises(urllib.error.HTTPError, match='401'):
            get(pages.url, 'api/files', token=False)
        shown = pages._repr_html_()
        assert f'href="{pages.url}"' in shown and pages.url in repr(pages)
    assert pages.closed and is_gone(pages.url)
    assert pages.url not in pages._repr_html_()
    pages.close()


def test_exceptions_end_it():
    with pytest.raises(ZeroDivisionError), h5bridge.serve(DEMO) as pages:
        1 / 0
    assert pages.closed


def started(script):
    """A Python that has run a script whose first line of output is the URL of its pages."""
    return subprocess.Popen([sys.executable, '-c', 'import os, signal, sys, time, h5bridge\npages = h5bridge.serve(sys.argv[1])\n'
                             'print(pages.url, flush=True)\n' + script, DEMO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            start_new_session=True)


@pytest.mark.parametrize('end', ['sys.exit()', 'os.kill(os.getpid(), signal.SIGKILL)', 'raise KeyboardInterrupt'])
def test_end_of_python(end):
    """The server ends with Python, also when it is killed."""
    with started(f'input()\nsys.stderr.close()\n{end}') as python:
        url = python.stdout.readline().strip()
        get(url, 'api/files')
        python.communicate('\n', timeout=SECONDS)
    assert is_gone(url)


def test_interrupts_are_not_for_the_server():
    """A terminal, and a notebook's button, send SIGINT to all processes of the group."""
    with started('try: os.killpg(0, signal.SIGINT); time.sleep(9)\nexcept KeyboardInterrupt: print("heard", flush=True)\ninput()') as python:
        url = python.stdout.readline().strip()
        assert python.stdout.readline() == 'heard\n'
        time.sleep(0.5)
        get(url, 'api/files')
        python.communicate('\n', timeout=SECONDS)
    assert is_gone(url)


def test_threads_may_end():
    """Linux takes the end of a thread for that of the parent (PR_SET_PDEATHSIG): the end of Python counts."""
    script = ('import threading\nthread = threading.Thread(target=lambda: print(h5bridge.serve(sys.argv[1]).url, flush=True))\n'
              'thread.start()\nthread.join()\ninput()')
    with started(script) as python:
        python.stdout.readline()
        url = python.stdout.readline().strip()
        time.sleep(0.5)
        assert get(url, 'api/files')
        python.communicate('\n', timeout=SECONDS)
    assert is_gone(url)


def test_mistakes(tmp_path):
    """What the program says, as errors of this package; nothing is left running."""
    (tmp_path / 'rules').write_text('nonsense\n')
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        for words, kind, sources, options in (
                ('none.h5: No such file', h5bridge.NotFoundError, [DEMO, tmp_path / 'none.h5'], {}),
                (r'another program has port \d+; port=0 takes a free one', h5bridge.LockedError, [DEMO], {'port': taken.getsockname()[1]}),
                ('70000 is not in 0..=65535$', h5bridge.UsageError, [DEMO], {'port': 70000}),
                ('rules: line 1: "nonsense" is not a rule', h5bridge.UsageError, [DEMO], {'alerts': tmp_path / 'rules'}),
                ('none: No such file', FileNotFoundError, [DEMO], {'alerts': tmp_path / 'none'})):
            with pytest.raises(kind, match=words) as caught:
                h5bridge.serve(*sources, **options)
            assert '--' not in str(caught.value)
    assert caught.value.filename == str(tmp_path / 'none')
    children = subprocess.run(['ps', '--ppid', str(os.getpid()), '-o', 'args='], capture_output=True, text=True).stdout
    assert ' serve ' not in children
    view = h5bridge.open_table(DEMO)[0:2]
    with view, pytest.raises(h5bridge.UsageError, match='a view of rows or columns has no path'):
        h5bridge.serve(view)
