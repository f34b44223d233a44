"""A casacore that was built with HDF5 (scripts/setup-casacore-hdf5) reads, changes and makes MultiHDF5 as h5bridge does."""
import os
import shutil
import subprocess
import tempfile

import pytest

import support
from support import TESTDATA, h5bridge

TAQL = os.environ.get('H5BRIDGE_TAQL_HDF5', os.path.join(support.ROOT, '.venv', 'casacore-hdf5', 'bin', 'taql'))

pytestmark = pytest.mark.skipif(not os.path.exists(TAQL), reason='no casacore with HDF5: scripts/setup-casacore-hdf5 builds it')

# tables with data of their own, in plain directories
TABLES = sorted(
    os.path.join(folder, name) for folder in (os.path.join(TESTDATA, top) for top in os.listdir(TESTDATA)) if os.path.isdir(folder)
    for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name, 'table.f0')))


def taql(command, storage='sepfile'):
    """What casacore says of a command that fails. New tables have this storage."""
    with tempfile.NamedTemporaryFile('w', suffix='.casarc') as settings:
        settings.write('table.storage.option: %s\n' % storage)
        settings.flush()
        done = subprocess.run([TAQL, '-nopr', '-noph', command], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              env={**os.environ, 'CASARCFILES': settings.name})
    return done.stdout + done.stderr if done.returncode or 'rror' in done.stderr else ''


def copied(source, target, storage='sepfile'):
    """Copies all cells of a table by casacore."""
    return taql("select from '%s' giving '%s' as plain" % (source, target), storage)


@pytest.fixture(params=TABLES, ids=lambda path: os.path.relpath(path, TESTDATA))
def source(request, tmp_path):
    """A table that casacore copies to tmp_path/of-files.tab. Tables that its keywords may name are beside the copy."""
    for other in os.listdir(os.path.dirname(request.param)):
        os.symlink(os.path.join(os.path.dirname(request.param), other), tmp_path / other)
    if said := copied(request.param, tmp_path / 'of-files.tab'):
        pytest.skip('casacore 3.5 does not copy the original: %s' % said.strip().splitlines()[-1])
    return request.param


def test_casacore_reads(source, tmp_path):
    packed = tmp_path / 'packed.tab'
    h5bridge('pack', '--format', 'multihdf5', source, packed)
    if not (packed / 'table.mfh5').exists():
        pytest.skip('its storage managers take no part in containers')
    assert copied(packed, tmp_path / 'of-packed.tab') == ''
    h5bridge('verify', tmp_path / 'of-files.tab', tmp_path / 'of-packed.tab')


def test_casacore_makes(source, tmp_path):
    assert copied(source, tmp_path / 'made.tab', 'multihdf5') == ''
    if not (tmp_path / 'made.tab' / 'table.mfh5').exists():
        pytest.skip('its storage managers take no part in containers')
    h5bridge('verify', tmp_path / 'of-files.tab', tmp_path / 'made.tab')


def test_casacore_changes(tmp_path):
    """Cells are overwritten, rows and columns are added: to our container as to a table of files."""
    source = os.path.join(TESTDATA, 'demo', 'demo.ms', 'ANTENNA')
    h5bridge('pack', '--format', 'multihdf5', source, tmp_path / 'packed.tab')
    shutil.copytree(source, tmp_path / 'files.tab')
    for name in 'packed.tab', 'files.tab':
        path = tmp_path / name
        for command in ("update '%s' set DISH_DIAMETER = 7.5 + rownumber(), POSITION = POSITION + 1",
                        "insert into '%s' (NAME, STATION) values ('new', 'a longer name than any before')",
                        "alter table '%s' add column MORE double",
                        "update '%s' set MORE = DISH_DIAMETER * 2",
                        "delete from '%s' where rownumber() = 2"):
            assert taql(command % path) == '', command
    assert h5bridge('digest', tmp_path / 'packed.tab').stdout.splitlines()[-1].split()[0] != \
        h5bridge('digest', source).stdout.splitlines()[-1].split()[0]
    h5bridge('verify', tmp_path / 'files.tab', tmp_path / 'packed.tab')
    assert not (tmp_path / 'packed.tab' / 'table.f0').exists()
