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


USER = os.path.join(support.HERE, 'package', 'user_code.py')


def test_code_of_users(tmp_path):
    """mypy, strict, has nothing to say about a program that is right, and finds what is wrong."""
    wrong = {'table.nrow': 'has no attribute "nrow"', 'table["TIME"].rows': 'has no attribute "rows"', 'table[1.5]': 'No overload variant',
             'h5bridge.open_table(3)': 'incompatible type "int"'}
    (tmp_path / 'wrong.py').write_text('import h5bridge\n\ntable = h5bridge.open_table("my.ms")\n' + '\n'.join(wrong) + '\n')
    config = os.path.join('..', 'pyproject.toml')
    found = run('mypy', '--config-file', config, '--cache-dir', str(tmp_path), USER, str(tmp_path / 'wrong.py'))
    assert 'user_code.py' not in found.stdout, found.stdout
    for number, words in enumerate(wrong.values(), 4):
        assert any(f'wrong.py:{number}:' in line and words in line for line in found.stdout.splitlines()), (words, found.stdout)
