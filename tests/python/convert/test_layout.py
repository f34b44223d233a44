"""testdata/layout: the files are what the program writes, and readers find in them what the documents beside them say."""
import filecmp
import json
import os
import subprocess
import sys

import h5py
import hdf5plugin    # noqa: F401, the codecs of two files
import numpy as np
import pytest

import support
from test_plain_h5py import program  # noqa: F401, a fixture

FOLDER = os.path.join(support.TESTDATA, 'layout')
FILES = sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith('.h5'))


def document(name):
    with open(os.path.join(FOLDER, name + '.json'), encoding='utf-8') as file:
        return json.load(file)


def path(name):
    return os.path.join(FOLDER, name + '.h5')


def test_files_are_those_that_are_made(tmp_path):
    """A change of the layout, or of a file's bytes, is meant: `testdata/layout/make.py testdata/layout` writes them again."""
    subprocess.run([sys.executable, os.path.join(FOLDER, 'make.py'), str(tmp_path)], check=True, env=dict(os.environ, H5BRIDGE=support.H5BRIDGE))
    made = sorted(os.listdir(tmp_path))
    assert made == sorted(name for name in os.listdir(FOLDER) if name.endswith(('.h5', '.json'))) and len(FILES) >= 20
    assert filecmp.cmpfiles(FOLDER, tmp_path, made, shallow=False) == (made, [], [])


def as_json(value):
    """A value of the plain program in the form of the documents."""
    if isinstance(value, dict):
        return {'record': {name: as_json(inside) for name, inside in value.items() if not isinstance(inside, tuple)}}
    if isinstance(value, np.ndarray) and value.ndim:
        return {'shape': list(value.shape), 'value': [as_json(element) for element in value.reshape(-1)]}
    value = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
    if isinstance(value, complex):
        return [as_json(value.real), as_json(value.imag)]
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    if isinstance(value, str):    # the package escapes bytes that are no text
        value = value.encode(errors='surrogateescape')
        try:
            return value.decode() if b'\0' not in value else {'bytes': value.hex()}
        except UnicodeDecodeError:
            pass
    return {'bytes': value.hex()} if isinstance(value, bytes) else value


@pytest.mark.parametrize('name', FILES)
def test_plain_program(name, program, counts):              # noqa: F811
    expected = document(name)['tables']
    with h5py.File(path(name)) as file:
        tables = program['tables'](file)
        assert set(tables) == set(expected)
        for table, group in tables.items():
            said, columns = program['documents'](group)
            assert list(columns) == list(expected[table]['columns'])
            assert as_json(program['keywords'](said))['record'] == expected[table]['keywords']
            for column, described in columns.items():
                wanted = expected[table]['columns'][column]
                assert described['dtype'] == wanted['dtype']
                assert as_json(program['keywords'](described))['record'] == wanted['keywords'], (table, column)
                if described['form'] != 'missing':
                    found = [as_json(cell) for cell in program['cells'](group, described)]
                    assert found == wanted['cells'], (table, column)
                    counts['cells'] += len(found)


@pytest.mark.parametrize('name', FILES)
def test_package(name, counts):
    """`open_table` has the same cells, `verify` and `lint` nothing to say, and the way back is open."""
    h5bridge = pytest.importorskip('h5bridge', reason='the Python package is not installed: scripts/setup-python', exc_type=ImportError)
    for table, expected in document(name)['tables'].items():
        if table == 'MAIN':
            continue    # a subtable of this name is hidden by the main table
        with h5bridge.open_table(path(name) if table == '.' else os.path.join(path(name), table)) as opened:
            assert opened.nrows == expected['rows']
            for column in opened if expected['rows'] else ():
                if name == 'missing' and column != 'A' or expected['columns'][column]['dtype'] == 'record':
                    continue    # not there; documents
                found = [as_json(np.asarray(cell) if cell is not None else None) for cell in opened[column].cells()]
                assert found == expected['columns'][column]['cells'], (table, column)
                counts['cells'] += len(found)


@pytest.mark.parametrize('name', FILES)
def test_verbs(name, tmp_path):
    support.h5bridge('verify', path(name))
    assert 'follows the layout' in support.h5bridge('lint', path(name)).stderr
    support.h5bridge('to-ms', path(name), tmp_path / 'back')
    support.h5bridge('verify', path(name), tmp_path / 'back')
