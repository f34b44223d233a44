"""The Python in docs/*.md and the notebook run, on the demo MeasurementSet."""
import json
import os
import re
import shutil
import subprocess
import sys

import casacore.tables as ct
import numpy as np
import pytest

import support

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
PAGES = ['python.md', 'xarray.md', 'casacore.md']
NOTEBOOK = os.path.join(support.ROOT, 'examples', 'tutorial.ipynb')


def blocks(document):
    with open(os.path.join(support.ROOT, 'docs', document)) as file:
        return re.findall(r'^```python\n(.*?)^```', file.read(), re.MULTILINE | re.DOTALL)


def test_document(tmp_path):
    """All blocks of python.md in one process, one after the other, beside my.ms."""
    found = blocks('python.md')
    assert found, 'docs/python.md has no Python'
    shutil.copytree(DEMO, tmp_path / 'my.ms')
    process = subprocess.run([sys.executable, '-c', '\n'.join(found)], cwd=tmp_path, capture_output=True, text=True,
                             timeout=300, env={**os.environ, 'MPLBACKEND': 'Agg'})
    assert process.returncode == 0, process.stderr[-3000:]


@pytest.mark.parametrize('page,number', [(page, number) for page in PAGES[1:] for number in range(len(blocks(page)))])
def test_examples(page, number, tmp_path, monkeypatch):
    """Each block of the other pages for itself, beside the tables that they name."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DEMO, 'my.ms')
    shutil.copytree(os.path.join(support.TESTDATA, 'twospw', 'twospw.ms'), 'two-windows.ms')
    with ct.table('my.tab', ct.maketabdesc([ct.makearrcoldesc('RAGGED', 0., ndim=1)]), nrow=9, ack=False) as table:
        for row in range(9):
            table.putcell('RAGGED', row, np.arange(1. + row))
    found = {}
    exec(compile(blocks(page)[number], page, 'exec'), found)
    if 'cell' in found:
        assert (found['cell'] == np.arange(8.)).all()
    if 'first' in found:
        assert found['first'].dims == ('position_0', 'chan_0', 'corr_0') and found['first'].size


def test_types(tmp_path):
    """The pages and the notebook are right for mypy --strict."""
    for document in PAGES:
        (tmp_path / document.replace('.md', '_page.py')).write_text('\n'.join(blocks(document)))
    with open(NOTEBOOK) as file:
        cells = [''.join(cell['source']) for cell in json.load(file)['cells'] if cell['cell_type'] == 'code']
    (tmp_path / 'notebook.py').write_text('\n'.join(cells).replace('%matplotlib inline', ''))
    (tmp_path / 'mypy.ini').write_text('[mypy]\nstrict = True\nfollow_imports = silent\n'
                                       '[mypy-h5py.*,casacore.*]\nignore_missing_imports = True\n')
    found = subprocess.run(['mypy', *sorted(path.name for path in tmp_path.glob('*.py'))], cwd=tmp_path,
                           capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout


def test_notebook(tmp_path):
    """Every cell runs, and the last one has the result that the text promises."""
    nbformat, nbclient = pytest.importorskip('nbformat'), pytest.importorskip('nbclient')
    shutil.copytree(DEMO, tmp_path / 'my.ms')
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get('outputs') for cell in notebook.cells), 'the notebook is kept without outputs'
    nbclient.NotebookClient(notebook, timeout=300, kernel_name='python3',
                            resources={'metadata': {'path': str(tmp_path)}}).execute()
    last = [cell for cell in notebook.cells if cell.cell_type == 'code'][-1]
    text = json.dumps(last.outputs)
    assert 'equal: True' in text, text
