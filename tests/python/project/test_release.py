"""scripts/release sets a version wherever one stands, and takes what is new in it from CHANGELOG.md; what all machines made of a
release is collected from their folders."""
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib

import pytest

import support

SCRIPT = os.path.join(support.ROOT, 'scripts', 'release.d', 'version.py')
FILES = os.path.join(support.ROOT, 'scripts', 'release.d', 'files.py')
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


# ---- files.py -------------------------------------------------------------------------------------------------------

WHEEL = 'h5bridge-%s-cp311-abi3-' % NEW
LINUX = WHEEL + 'manylinux_2_17_{0}.manylinux2014_{0}.whl'
COMMON = ['h5bridge-%s.tar.gz' % NEW, 'h5bridge-%s-docs.tar.gz' % NEW, 'ctds-%s.crate' % NEW, 'h5bridge-%s.crate' % NEW, 'notes.md']
MADE = {
    'Linux-ARM64': [LINUX.format('aarch64'),
                    'h5bridge-%s-aarch64-unknown-linux-gnu.tar.gz' % NEW, 'h5bridge_%s-1_arm64.deb' % NEW, *COMMON],
    'Linux-X64': [LINUX.format('x86_64'),
                  'h5bridge-%s-x86_64-unknown-linux-gnu.tar.gz' % NEW, 'h5bridge_%s-1_amd64.deb' % NEW, *COMMON],
    'macOS-ARM64': [WHEEL + 'macosx_11_0_arm64.whl', 'h5bridge-%s-aarch64-apple-darwin.tar.gz' % NEW, 'h5bridge-%s.tar.gz' % NEW, 'notes.md'],
    'macOS-X64': [WHEEL + 'macosx_11_0_x86_64.whl', 'h5bridge-%s-x86_64-apple-darwin.tar.gz' % NEW, 'h5bridge-%s.tar.gz' % NEW, 'notes.md'],
}


def files(*words):
    return subprocess.run([sys.executable, FILES, *words], capture_output=True, text=True)


@pytest.fixture
def artefacts(tmp_path):
    """The folders of the machines, as actions/download-artifact lays them: the content of a file is its machine and its name."""
    for machine, names in MADE.items():
        folder = tmp_path / 'artefacts' / machine / ('release-' + NEW)
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text(machine + ' ' + name)
        assert files('sums', str(folder)).returncode == 0
    return tmp_path / 'artefacts'


def test_files_of_all_machines_are_collected(artefacts, tmp_path):
    process = files('pypi', str(artefacts), str(tmp_path / 'dist'))
    assert process.returncode == 0, process.stderr
    wheels = [name for names in MADE.values() for name in names if name.endswith('.whl')]
    assert sorted(os.listdir(tmp_path / 'dist')) == sorted([*wheels, 'h5bridge-%s.tar.gz' % NEW])
    # what every machine made is taken from one of them
    assert (tmp_path / 'dist' / ('h5bridge-%s.tar.gz' % NEW)).read_text().startswith('Linux-X64 ')

    process = files('page', str(artefacts), str(tmp_path / 'files'))
    assert process.returncode == 0, process.stderr
    wanted = {name for names in MADE.values() for name in names if not name.endswith(('.crate', '.md'))}
    assert set(os.listdir(tmp_path / 'files')) == wanted | {'SHA256SUMS'} and len(wanted) == 12
    assert (tmp_path / 'files.md').read_text() == 'Linux-X64 notes.md'
    lines = (tmp_path / 'files' / 'SHA256SUMS').read_text().splitlines()
    assert lines == ['%s  %s' % (hashlib.sha256((tmp_path / 'files' / name).read_bytes()).hexdigest(), name) for name in sorted(wanted)]


def test_incomplete_and_damaged_artefacts_are_refused(artefacts, tmp_path):
    out = tmp_path / 'out'
    wheel, = artefacts.glob('macOS-ARM64/*/*.whl')
    content = wheel.read_text()
    wheel.write_text(content + ' ')
    process = files('pypi', str(artefacts), str(out))
    assert process.returncode == 1 and '%s: the checksum is' % wheel in process.stderr
    wheel.unlink()
    assert '%s: the file is missing' % wheel in files('pypi', str(artefacts), str(out)).stderr
    assert files('sums', str(wheel.parent)).returncode == 0
    process = files('pypi', str(artefacts), str(out))
    assert process.returncode == 1 and r'_arm64\.whl matches nothing, one file is expected' in process.stderr
    # two versions in one release
    (wheel.parent / wheel.name.replace(NEW, OLD)).write_text(content)
    wheel.write_text(content)
    assert files('sums', str(wheel.parent)).returncode == 0
    process = files('page', str(artefacts), str(out))
    assert process.returncode == 1 and '%s, %s' % (wheel.name.replace(NEW, OLD), wheel.name) in process.stderr
    assert not out.exists()


def test_archive_depends_on_the_files_only(tmp_path):
    archives = []
    for order, time in [('ab', 1_000_000_000), ('ba', 1_700_000_000)]:
        folder = tmp_path / order / 'folder'
        folder.mkdir(parents=True)
        for name in order:
            (folder / name).write_text(name)
            os.utime(folder / name, (time, time))
        (folder / 'a').chmod(0o750)
        archives.append(folder.parent / 'out.tar.gz')
        environment = {**os.environ, 'SOURCE_DATE_EPOCH': '1600000000'}
        subprocess.run([sys.executable, FILES, 'pack', folder, archives[-1]], env=environment, check=True)
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as archive:
        found = [(entry.name, entry.mode, entry.mtime, entry.uid, entry.uname) for entry in archive]
    assert found == [('folder', 0o755, 1_600_000_000, 0, ''), ('folder/a', 0o755, 1_600_000_000, 0, ''),
                     ('folder/b', 0o644, 1_600_000_000, 0, '')]
