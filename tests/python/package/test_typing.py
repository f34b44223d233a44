"""Types of the Python package: the stubs say what the extension has."""
import os
import subprocess
import sys

import support

FOLDER = os.path.join(support.ROOT, 'python')


def run(*words):
    return subprocess.run([sys.executable, '-m', *words], cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300)


def test_stubs_are_those_of_the_extension():
    process = run('mypy.stubtest', '--mypy-config-file', os.path.join('..', 'pyproject.toml'), 'h5bridge._native')
    assert process.returncode == 0, process.stdout + process.stderr
