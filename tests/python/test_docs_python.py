"""The Python in docs/*.md and the notebook run, on the demo MeasurementSet."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import support

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
PAGES = ['python.md', 'xarray.md', 'casacore.md']
NOTEBOOK = os.path.join(support.ROOT, 'examples', 'tutorial.ipynb')


def blocks(document):
    with open(os.path.join(support.ROOT, 'docs', document)) as file:
        return re.findall(r'^```python\n(.*?)^```', file.read(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize('document', ['python.md'])
def test_document(document, tmp_path):
    """All blocks of a page in one process, one after the other, beside my.ms."""
    found = blocks(document)
    assert found, f'docs/{document} has no Python'
    shutil.copytree(DEMO, tmp_path / 'my.ms')
    process = subprocess.run([sys.executable, '-c', '\n'.join(found)], cwd=tmp_path, capture_output=True, text=True,
                             timeout=300, env={**os.environ, 'MPLBACKEND': 'Agg'})
    assert process.returncode == 0, process.stderr[-3000:]


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
