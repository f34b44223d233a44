"""The shell and Python of the documents run, and so do the notebooks; the site is made of what the program prints.

Each page has a directory of its own, with the files of BESIDE. Its blocks run in order; those in Python share their names. A block
that cannot run here has a comment with the reason before it: <!-- not run: needs CASA -->
"""
import ast
import contextlib
import dataclasses
import glob
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import casacore.tables as ct
import numpy as np
import pytest

import support

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
# words that the last cell of each notebook prints
NOTEBOOKS = {'tutorial.ipynb': 'equal: True', 'day.ipynb': '150 rows, '}
# pages that run at each push; the second has the cells of examples/day.ipynb
TUTORIAL, DAY = 'docs/tutorial.md', 'docs/howto/day.md'
PAGES = sorted(os.path.relpath(path, support.ROOT) for path in glob.glob(os.path.join(support.ROOT, 'docs', '**', '*.md'), recursive=True))
PAGES += ['README.md', 'CONTRIBUTING.md', 'python/README.md']
# pages whose types mypy checks, too
TYPED = ['docs/howto/python.md', DAY, 'docs/reference/xarray.md', 'docs/howto/casacore.md']
LANGUAGES = ('sh', 'console', 'python')
COMMANDS = re.compile(r'^\s*(?:\$ )?(?:h5bridge|pip|cargo|scripts/\w+|curl|python3?) ', re.MULTILINE)
SECONDS = 30


@dataclasses.dataclass
class Block:
    page: str
    line: int           # of the first line of the text
    language: str
    text: str
    reason: str | None  # why it is not run


def blocks(page):
    """All fenced blocks of a page."""
    with open(os.path.join(support.ROOT, page), encoding='utf-8') as file:
        lines = file.read().split('\n')
    found, start, comment = [], None, None
    for number, line in enumerate(lines):
        if start is not None:
            if line.strip() == '```':
                language, reason = lines[start].strip()[3:].split(',')[0], comment
                found.append(Block(page, start + 2, language, '\n'.join(lines[start + 1:number]) + '\n', reason))
                start, comment = None, None
        elif line.lstrip().startswith('```'):
            start = number
        elif match := re.fullmatch(r'<!-- not run: (.+) -->', line):
            comment = match[1]
        elif line.strip() and comment is not None:
            # test_marks finds it: the comment has no block
            found.append(Block(page, number + 1, '', line, comment))
            comment = None
    if start is not None:
        found.append(Block(page, start + 1, '', '', 'this block does not end'))
    return found


# ---- what pages need beside them ------------------------------------------------------------------------------------

def copy_demo(name):
    shutil.copytree(DEMO, name)


def make_survey(name):
    """Of antennas on the Earth, which the demo's are not."""
    writer = os.path.join(support.ROOT, 'scripts', 'demo.d', 'growing_ms.py')
    subprocess.run([sys.executable, writer, name, '4', '3', '8', '0'], check=True, stdin=subprocess.DEVNULL, timeout=SECONDS)


def make_ragged(name):
    with ct.table(name, ct.maketabdesc([ct.makearrcoldesc('RAGGED', 0., ndim=1)]), nrow=9, ack=False) as table:
        for row in range(9):
            table.putcell('RAGGED', row, np.arange(1. + row))


def run(*words):
    subprocess.run([support.H5BRIDGE, *words], check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS)


def make_live(name):
    run('follow', '--until-closed', '--quiet', 'my.ms', name)


MAKERS = {
    'my.ms': copy_demo,
    'my.h5': lambda name: run('to-hdf5', '--quiet', '--restorable', 'my.ms', name),
    'survey.ms': make_survey,
    'my.tab': make_ragged,
    'my.mfh5': lambda name: run('pack', '--quiet', '--single-file', '--format', 'multihdf5', 'my.ms', name),
    'my.vt': lambda name: run('pack', '--quiet', '--format', 'vt', 'my.ms', name),
    'two-windows.ms': lambda name: shutil.copytree(os.path.join(support.TESTDATA, 'twospw', 'twospw.ms'), name),
    'archive': lambda name: [copy_demo(os.path.join(name, 'obs%d.ms' % number)) for number in (1, 2)],
    'live.h5': make_live,
    'testdata': lambda name: os.symlink(support.TESTDATA, name),
}
BESIDE = {
    'docs/reference/containers.md': ['my.ms', 'my.mfh5', 'my.vt'],
    'docs/howto/archive.md': ['archive'],
    'docs/reference/live.md': ['my.ms', 'live.h5'],
    'docs/howto/cluster.md': ['archive', 'my.ms'],
    'docs/reference/plots.md': ['my.ms', 'my.h5', 'live.h5', 'survey.ms'],
    'docs/reference/readers.md': ['my.ms', 'my.h5'],
    'docs/reference/serve.md': ['my.ms', 'my.h5'],
    'docs/tutorial.md': ['testdata'],
    'docs/reference/xarray.md': ['my.ms', 'my.tab', 'two-windows.ms'],
}


# ---- running --------------------------------------------------------------------------------------------------------

class Enough(Exception):
    """A loop without an end has gone round three times."""


def run_shell(block, text):
    """Runs commands, and returns what they print."""
    process = subprocess.Popen(['bash', '-euo', 'pipefail', '-c', text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise AssertionError('%s:%d: does not end within %d s\n%s' % (block.page, block.line, SECONDS, text)) from None
    assert process.returncode == 0, '%s:%d: status %d\n%s%s' % (
        block.page, block.line, process.returncode, text, said[-3000:])
    return said


def run_python(block, text, names, monkeypatch):
    """Runs statements, and returns what they print."""
    # lines of a traceback are those of the page
    code = compile('\n' * (block.line - 1) + text, block.page, 'exec')
    pauses, sleep = [], time.sleep

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            raise Enough
        sleep(seconds)

    with monkeypatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        if 'while True:' in text:
            patch.setattr(time, 'sleep', pause)
        try:
            exec(code, names)
        except Enough:
            pass
        except Exception as error:
            raise AssertionError('%s:%d: %s: %s' % (block.page, line_in(error, block), type(error).__name__, error)) from error
    return said.getvalue()


def line_in(error, block):
    """The line of the page at which an error was raised."""
    lines, traceback = [block.line], error.__traceback__
    while traceback:
        if traceback.tb_frame.f_code.co_filename == block.page:
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    return lines[-1]


def run_block(block, names, monkeypatch):
    """Runs a block, and returns what it prints."""
    if block.language == 'sh':
        return run_shell(block, block.text)
    if block.language == 'python':
        return run_python(block, block.text, names, monkeypatch)
    # a session: what is typed is run, the answers are not compared
    for line in block.text.splitlines():
        if line.startswith('$ ') and line != '$ python':
            run_shell(block, line[2:])
        elif line.startswith('>>> '):
            run_python(block, line[4:], names, monkeypatch)
    return ''


def pages_to_run():
    night = pytest.mark.night('every block of the other pages, minutes')
    for page in PAGES:
        if any(block.language in LANGUAGES for block in blocks(page)):
            yield pytest.param(page, marks=[] if page in (DAY, TUTORIAL) else night)


@pytest.mark.parametrize('page', pages_to_run())
def test_page(page, tmp_path, monkeypatch, counts):
    """Every block of a page runs."""
    folder = tmp_path / 'bin'
    folder.mkdir()
    (folder / 'h5bridge').symlink_to(support.H5BRIDGE)
    (tmp_path / 'page').mkdir()
    monkeypatch.chdir(tmp_path / 'page')
    monkeypatch.setenv('PATH', os.pathsep.join([str(folder), os.path.dirname(sys.executable), os.environ['PATH']]))
    monkeypatch.setenv('MPLBACKEND', 'Agg')
    for name in BESIDE.get(page, ['my.ms']):
        MAKERS[name](name)
    names, said = {'__name__': '__main__'}, ''
    for block in blocks(page):
        if block.language in LANGUAGES and block.reason is None:
            said = run_block(block, names, monkeypatch)
            counts['blocks of ' + block.language] += 1
        elif block.reason is not None:
            counts['blocks not run'] += 1
        elif page == 'docs/tutorial.md' and block.language == 'text':
            assert block.text in said, '%s:%d: the block before prints\n%s' % (page, block.line, said)
            counts['answers'] += 1
    if page == 'docs/reference/xarray.md':
        assert (names['cell'] == np.arange(8.)).all()
        assert names['first'].dims == ('position_0', 'chan_0', 'corr_0') and names['first'].size
    if page == 'docs/tutorial.md':
        check_bandpass(names['bandpass'])
    if page == DAY:
        check_day(names)
    if page in ('docs/tutorial.md', 'docs/reference/plots.md'):
        for name in re.findall(r'[\w-]+\.png', ' '.join(block.text for block in blocks(page) if block.reason is None)):
            assert os.path.getsize(name) > 1000, name


def check_bandpass(found):
    """The tutorial plots what python-casacore and numpy give."""
    with ct.table('my.ms', ack=False) as table, ct.table('my.ms::FIELD', ack=False) as fields:
        rows = (table.getcol('FIELD_ID') == fields.getcol('NAME').index('3C286')) & (
            table.getcol('ANTENNA1') != table.getcol('ANTENNA2'))
        amplitude = np.ma.masked_array(np.abs(table.getcol('DATA')), table.getcol('FLAG'))[rows]
    assert rows.any() and not rows.all()
    np.testing.assert_allclose(found.values, amplitude.mean(0), rtol=1e-5)


def check_day(names):
    """The groups, the average and the flags of the day are those of python-casacore and numpy."""
    with ct.table('my.ms', ack=False) as table:
        first, second, data, flag, flagged, uvw = (table.getcol(name) for name in ('ANTENNA1', 'ANTENNA2', 'DATA', 'FLAG', 'FLAG_ROW', 'UVW'))
        kept = (first != second) & ~flagged & (table.getcol('FIELD_ID') == 0)
    assert kept.any() and not kept.all()
    amplitude = np.ma.masked_array(np.abs(data), flag)
    rows = names['baselines'].to_dicts()
    assert [row['flagged'] for row in rows] == sorted((row['flagged'] for row in rows), reverse=True) and rows[0]['flagged'] > 0
    assert sum(row['len'] for row in rows) == kept.sum() and len(rows) == 15
    for row in rows:
        of_one = kept & (first == row['ANTENNA1']) & (second == row['ANTENNA2'])
        assert row['len'] == of_one.sum()
        np.testing.assert_allclose(row['length'], np.linalg.norm(uvw[of_one], axis=1).mean())
        np.testing.assert_allclose(row['flagged'], flag[of_one].mean())
        np.testing.assert_allclose(row['amplitude'], amplitude[of_one].mean((1, 2)).mean(), rtol=1e-5)
    np.testing.assert_allclose(names['bandpass'].values, amplitude[kept].mean(0), rtol=1e-5)
    flag[kept & (first == rows[0]['ANTENNA1']) & (second == rows[0]['ANTENNA2'])] = True
    with ct.table('calibrator.ms', ack=False) as table:
        assert (table.getcol('FLAG') == flag[kept]).all() and (table.getcol('DATA') == data[kept]).all()


def cells(page):
    """The notebook of a page: its text, and its blocks as code."""
    with open(os.path.join(support.ROOT, page), encoding='utf-8') as file:
        parts = re.split(r'^```python\n(.*?)^```\n', file.read(), flags=re.MULTILINE | re.DOTALL)
    found = []
    for number, part in enumerate(parts):
        text = part.strip().replace('](../../', '](../')
        kind = {'cell_type': 'code', 'execution_count': None, 'outputs': []} if number % 2 else {'cell_type': 'markdown'}
        if text:
            found.append({**kind, 'id': 'cell-%d' % len(found), 'metadata': {}, 'source': text.splitlines(keepends=True)})
    kernel = {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'}
    return {'cells': found, 'metadata': {'kernelspec': kernel}, 'nbformat': 4, 'nbformat_minor': 5}


def test_notebook_of_the_day():
    """It is the page, and forty lines long; H5BRIDGE_UPDATE=1 writes it."""
    path = os.path.join(support.ROOT, 'examples', 'day.ipynb')
    made = json.dumps(cells(DAY), indent=1, sort_keys=True, ensure_ascii=False) + '\n'
    if os.environ.get('H5BRIDGE_UPDATE'):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(made)
    with open(path, encoding='utf-8') as file:
        assert file.read() == made
    code = [line for block in blocks(DAY) if block.language == 'python' for line in block.text.splitlines() if line]
    assert 20 < len(code) <= 40 and not any(block.reason for block in blocks(DAY))


@pytest.mark.parametrize('page', PAGES)
def test_marks(page):
    """Commands are in blocks whose language says so, and only such blocks have a reason not to run."""
    for block in blocks(page):
        place = '%s:%d' % (page, block.line)
        assert block.language in LANGUAGES or block.reason is None, place + ': a block of sh, console or python has to follow the comment, and to end'
        if block.language not in LANGUAGES:
            assert block.language or not COMMANDS.search(block.text), place + ': these are commands: ```sh'
            assert block.language not in ('bash', 'shell', 'py', 'pycon', 'python3'), place + ': write sh, console or python'
        if block.language == 'python':
            ast.parse(block.text)


# ---- Python ---------------------------------------------------------------------------------------------------------

@pytest.mark.night('every block of every page, minutes')
def test_types(tmp_path):
    """The pages about Python and the notebook of the tutorial are right for mypy --strict."""
    for page in TYPED:
        text = '\n'.join(block.text for block in blocks(page) if block.language == 'python')
        (tmp_path / os.path.basename(page).replace('.md', '_page.py')).write_text(text)
    with open(os.path.join(support.ROOT, 'examples', 'tutorial.ipynb')) as file:
        code = [''.join(cell['source']) for cell in json.load(file)['cells'] if cell['cell_type'] == 'code']
    (tmp_path / 'notebook.py').write_text('\n'.join(code).replace('%matplotlib inline', ''))
    (tmp_path / 'mypy.ini').write_text('[mypy]\nstrict = True\nfollow_imports = silent\n'
                                       '[mypy-h5py.*,casacore.*]\nignore_missing_imports = True\n')
    found = subprocess.run(['mypy', *sorted(path.name for path in tmp_path.glob('*.py'))], cwd=tmp_path,
                           capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout


@pytest.mark.night('every block of every page, minutes')
@pytest.mark.parametrize('name', NOTEBOOKS)
def test_notebook(name, tmp_path):
    """Every cell runs, and the last one has the result that the text promises."""
    nbformat, nbclient = pytest.importorskip('nbformat'), pytest.importorskip('nbclient')
    shutil.copytree(DEMO, tmp_path / 'my.ms')
    notebook = nbformat.read(os.path.join(support.ROOT, 'examples', name), as_version=4)
    assert not any(cell.get('outputs') for cell in notebook.cells), 'the notebook is kept without outputs'
    nbclient.NotebookClient(notebook, timeout=300, kernel_name='python3',
                            resources={'metadata': {'path': str(tmp_path)}}).execute()
    last = [cell for cell in notebook.cells if cell.cell_type == 'code'][-1]
    text = json.dumps(last.outputs)
    assert NOTEBOOKS[name] in text, text


# ---- the site -------------------------------------------------------------------------------------------------------

def load(name):
    """A module of scripts/docs.d."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(support.ROOT, 'scripts', 'docs.d', name + '.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_of_commands():
    """The page of each command has every word of its help."""
    commands = load('commands')
    pages = commands.pages(support.H5BRIDGE)
    assert {'index', 'to-hdf5', 'to-ms', 'info', 'shard', 'shard.plan', 'batch.run', 'generate'} <= set(pages)
    for name, text in pages.items():
        help_text = commands.help_text(support.H5BRIDGE, *([] if name == 'index' else name.split('.')))
        shown = re.sub(r'\\(.)', r'\1', text)
        missing = set(re.findall(r'[\w<>-]+', help_text)) - set(re.findall(r'[\w<>-]+', shown)) - {'Usage'}
        assert not missing, (name, missing)
        options = re.findall(r'^ {2,6}(?:-\w, )?--([\w-]+)', help_text, re.MULTILINE)
        assert options and re.findall(r'^`[^`]*--[^`]*` \{ #([\w-]+) \}$', text, re.MULTILINE) == options


@pytest.mark.parametrize('link,why', [
    ('<a href="b.html#here">', None),
    ('<a href="b.html#nowhere">', 'lacks'),
    ('<a href="c.html">', 'does not exist'),
    ('<a href="#top">', None),
    ('<a href="#bottom">', 'lacks'),
    ('<a href="/b.html">', 'absolute'),
    ('<a href="https://www.example.org/x">', None),
    ('<a href="https://www example.org">', 'not an address'),
    ('<a href="ftp:x">', 'unknown scheme'),
    ('<img src="picture.png">', 'does not exist'),
    ('<script src="https://cdn.example.org/x.js">', 'another server'),
    ('<link rel="stylesheet" href="https://fonts.example.org/x.css">', 'another server'),
    ('<link rel="canonical" href="https://www.example.org/a.html">', None),
])
def test_links(link, why, tmp_path):
    """The check of the site finds wrong links, and those only."""
    (tmp_path / 'a.html').write_text('<h1 id="top"></h1>' + link)
    (tmp_path / 'b.html').write_text('<h1 id="here"></h1>')
    count, found = load('check').check(str(tmp_path))
    assert count == 1
    assert (why is None) == (not found) and all(why in message for message in found)
