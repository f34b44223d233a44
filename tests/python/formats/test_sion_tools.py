"""SIONlib's own tools read the files that are written, and write files that are read (scripts/setup-sionlib builds them)."""
import json
import os
import re
import shutil
import subprocess

import pytest

import support
from support import h5bridge, manifest, tree

TOOLS = os.path.join(support.ROOT, '.venv', 'sionlib')
FIXTURES = os.path.join(support.SHARED, 'fixtures', 'sion')
DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')

pytestmark = support.needs(TOOLS)


def tool(name, *words):
    process = subprocess.run([os.path.join(TOOLS, name), *map(str, words)], capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    return process.stdout


def streams(path, folder):
    """The bytes of every task, by sionsplit."""
    folder.mkdir()
    tool('sionsplit', path, folder / 'task')
    found = tree(folder)
    shutil.rmtree(folder)
    return [found[name] for name in sorted(found)]


def files(parts):
    """{path: bytes} of a packed directory: task 0 names the others."""
    line, names = parts[0].split(b'\n', 1)
    assert line == b'ctds-names 1'
    return dict(zip([name for name in json.loads(names) if not name.endswith('/')], parts[1:], strict=True))


def table_directories():
    """Tables of testdata that are not in a container."""
    for case in support.cases():
        for root in support.roots(support.expected(case)['tables']):
            folder = os.path.join(support.TESTDATA, case, root)
            if os.path.isdir(folder) and not any(name.startswith('table.mf') for name in os.listdir(folder)):
                yield folder


@pytest.mark.parametrize('source', table_directories(), ids=os.path.basename)
def test_tables(source, tmp_path):
    for words, block in [([], 4096), (['--block-size', '512'], 512), (['--block-size', '65536'], 65536)]:
        packed = tmp_path / 'packed.sion'
        h5bridge('pack', source, packed, '--format', 'sion', '--overwrite', *words)
        parts = streams(packed, tmp_path / 'tasks')
        assert files(parts) == tree(source)
        said = dict(re.findall(r'^siondump: ([\w ]+): +(\S+)', tool('siondump', packed), re.MULTILINE))
        assert (said['number of tasks'], said['filesystem blocksize']) == (str(len(parts)), str(block))
        assert (said['file format version'], said['number of files'], said['flag2']) == ('5', '1', '0')


@pytest.mark.parametrize('words', [[], ['-q', '1'], ['-q', '512']], ids=' '.join)
def test_defragmented(words, tmp_path):
    """It writes a file anew, with other blocks, which holds the same."""
    h5bridge('pack', DEMO, tmp_path / 'a.sion', '--format', 'sion')
    tool('siondefrag', *words, tmp_path / 'a.sion', tmp_path / 'b.sion')
    assert streams(tmp_path / 'b.sion', tmp_path / 'tasks') == streams(tmp_path / 'a.sion', tmp_path / 'tasks')
    h5bridge('verify', '--bytes', DEMO, tmp_path / 'b.sion')


@support.needs(FIXTURES)
@pytest.mark.parametrize('entry', manifest(FIXTURES, False), ids=lambda entry: entry['name'])
def test_fixtures(entry, tmp_path):
    """A file of SIONlib that was made anew, with its own chunks, byte order and tasks, holds the same for SIONlib."""
    source = os.path.join(FIXTURES, entry['path'])
    h5bridge('pack', source, tmp_path / 'a.sion', '--format', 'sion')
    assert streams(tmp_path / 'a.sion', tmp_path / 'tasks') == streams(source, tmp_path / 'tasks')
