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


USER = '''
import datetime

import numpy as np
import numpy.typing as npt

import h5bridge


def mean(path: str) -> npt.NDArray[np.float64]:
    with h5bridge.open_table(path) as table:
        view: h5bridge.Table = table.where("ANTENNA1 == 0")[0:10]
        column: h5bridge.Column = view["DATA"]
        measure: h5bridge.Measure | None = column.measure
        row: dict[str, object] = dict(table[3])
        names: list[str] = [name for name, one in table.items() if one.unit == "s"]
        rows: int = view.nrows + len(view.subtables["ANTENNA"])
        chosen: h5bridge.Table = table[np.array([1, 2])].columns(*names).rows([0])
        when: npt.NDArray[np.datetime64] = table["TIME"].datetime()
        total = sum(len(block) for _, block in column.iter_chunks())
        h5bridge.to_hdf5(view, "part.h5", columns=None, lock_timeout=None)
        missing: h5bridge.Column | None = table.get("NOPE")
        files: list[str] = [file.path for file in h5bridge.ls(path).files]
        print(measure, row, rows, chosen, when, total, missing, files, datetime.date.today())
        return np.asarray(column, dtype=np.float64)
'''


def test_code_of_users(tmp_path):
    """mypy, strict, has nothing to say about a program that is right, and finds what is wrong."""
    (tmp_path / 'user.py').write_text(USER)
    wrong = {'table.nrow': 'has no attribute "nrow"', 'table["TIME"].rows': 'has no attribute "rows"', 'table[1.5]': 'No overload variant',
             'h5bridge.open_table(3)': 'incompatible type "int"'}
    (tmp_path / 'wrong.py').write_text('import h5bridge\n\ntable = h5bridge.open_table("my.ms")\n' + '\n'.join(wrong) + '\n')
    config = os.path.join('..', 'pyproject.toml')
    found = run('mypy', '--config-file', config, '--cache-dir', str(tmp_path), str(tmp_path / 'user.py'), str(tmp_path / 'wrong.py'))
    assert 'user.py' not in found.stdout, found.stdout
    for number, words in enumerate(wrong.values(), 4):
        assert any(f'wrong.py:{number}:' in line and words in line for line in found.stdout.splitlines()), (words, found.stdout)
