"""HDF5 1.8 itself, 1.8.18 in h5py 2.7, reads what is made for it: native files of `--hdf5 1.8`, and MultiHDF5."""
import glob
import json
import os
import subprocess
import sys

import pytest

import support

pytestmark = pytest.mark.night('installs h5py 2.7 for Python 3.6')

# tables with files of their own
TABLES = [entry for entry in support.convertible() if glob.glob(os.path.join(support.TESTDATA, *entry, 'table.f*'))]
PEER = os.path.join(support.ROOT, 'tests', 'python', 'hdf5_1_8_peer.py')


@pytest.fixture(scope='module')
def old():
    return support.peer('hdf5-1.8')


def said(python, path):
    done = subprocess.run([python, PEER, str(path)], stdout=subprocess.PIPE, check=True, timeout=300)
    version, content = done.stdout.decode().splitlines()
    return version, json.loads(content)


def check(old, path, counts):
    version, found = said(old, path)
    assert version.startswith('1.8.'), version
    _, expected = said(sys.executable, path)
    assert found.keys() == expected.keys()
    for name, item in found.items():
        assert item == expected[name], name
        counts['objects'] += 1
        counts['attributes'] += len(item['attributes'])


@pytest.mark.parametrize('case,table', support.convertible())
def test_native(case, table, old, converted, counts):
    check(old, converted(case, table, '--hdf5', '1.8'), counts)


@pytest.mark.parametrize('case,table', TABLES)
def test_multihdf5(case, table, old, tmp_path, counts):
    source, packed = os.path.join(support.TESTDATA, case, table), tmp_path / 'packed.tab'
    support.h5bridge('pack', '--format', 'multihdf5', source, packed)
    containers = list(packed.rglob('table.mfh5'))
    for container in containers:
        check(old, container, counts)
    if not containers:
        managers = json.loads(support.h5bridge('info', '--json', source).stdout)['tables']['.']['managers']
        assert {manager['type'] for manager in managers} == {'StManAipsIO'}, 'only its files are in no container'


def test_default_is_refused(old, converted):
    """The judge is the old library: it does not open files with the superblock of HDF5 1.10."""
    path = converted('demo', 'demo.ms')
    done = subprocess.run([old, PEER, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 1 and b'superblock' in done.stderr, done.stderr[-500:]
