"""scripts/release sets a version wherever one stands, and takes what is new in it from CHANGELOG.md."""
import glob
import os
import shutil
import subprocess
import sys
import tomllib

import pytest

import support

SCRIPT = os.path.join(support.ROOT, 'scripts', 'release.d', 'version.py')
OLD, NEW = '0.1.0', '9.8.7'


@pytest.fixture
def tree(tmp_path):
    """The files with versions, with a section for the new one."""
    manifests = [os.path.relpath(path, support.ROOT) for folder in ('', '*', 'crates/*')
                 for path in glob.glob(os.path.join(support.ROOT, folder, 'Cargo.toml'))]
    for path in [*manifests, 'recipe/recipe.yaml', 'CITATION.cff', 'CHANGELOG.md']:
        os.makedirs(tmp_path / os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.join(support.ROOT, path), tmp_path / path)
    changes = tmp_path / 'CHANGELOG.md'
    changes.write_text(changes.read_text().replace('## %s' % OLD, '## %s, not yet released\n\n- News.\n\n## %s' % (NEW, OLD), 1))
    return tmp_path


def run(tree, *words):
    return subprocess.run([sys.executable, SCRIPT, *words], cwd=tree, capture_output=True, text=True)


def versions(manifest):
    """Those of a manifest and of its dependencies by path."""
    with open(manifest, 'rb') as file:
        document = tomllib.load(file)
    workspace = document.get('workspace', {})
    kinds = [document.get('dependencies', {}), document.get('build-dependencies', {}), workspace.get('dependencies', {})]
    found = [one['version'] for kind in kinds for one in kind.values() if isinstance(one, dict) and {'path', 'version'} <= one.keys()]
    return found + [kind['version'] for kind in (document.get('package', {}), workspace.get('package', {})) if isinstance(kind.get('version'), str)]


def test_every_version_is_set(tree):
    assert run(tree, NEW).returncode == 0
    found = [version for path in glob.glob(str(tree / '**' / 'Cargo.toml'), recursive=True) for version in versions(path)]
    assert len(found) > 10 and set(found) == {NEW}
    for path in ('recipe/recipe.yaml', 'CITATION.cff'):
        text = (tree / path).read_text()
        assert NEW in text and 'version: %s' % OLD not in text and 'version: "%s"' % OLD not in text
    changes = (tree / 'CHANGELOG.md').read_text()
    assert '## %s, not yet released' % NEW not in changes and '## %s, not yet released' % OLD in changes
    assert run(tree, '--notes', NEW).stdout == '- News.\n'
    # again, nothing is left to do
    assert run(tree, NEW).stdout == ''


@pytest.mark.parametrize('words,message', [([OLD + 'x'], 'is not a version'), (['3.2.1'], 'no section "## 3.2.1"')])
def test_mistakes_are_named(tree, words, message):
    before = (tree / 'Cargo.toml').read_text()
    process = run(tree, *words)
    assert process.returncode == 1 and message in process.stderr
    assert (tree / 'Cargo.toml').read_text() == before
