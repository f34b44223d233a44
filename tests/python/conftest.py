"""What the checks share: converted files, and the counts that are printed at the end."""
import functools
import os
import subprocess
import sys
from collections import Counter

import pytest

import support

COUNTS = {}


def pytest_sessionstart(session):
    if not os.access(support.H5BRIDGE, os.X_OK):
        pytest.exit('%s is missing: scripts/setup-python builds it (or set H5BRIDGE)' % support.H5BRIDGE, returncode=2)


def pytest_configure(config):
    config.addinivalue_line('markers', 'night(reason): a test of the night tier, which runs with H5BRIDGE_LONG=1 only (CONTRIBUTING.md)')


def pytest_collection_modifyitems(config, items):
    if support.LONG:
        return
    night = [item for item in items if item.get_closest_marker('night')]
    config.hook.pytest_deselected(items=night)
    items[:] = [item for item in items if not item.get_closest_marker('night')]


@pytest.fixture
def counts(request):
    """A counter; that of each test function, over all its parameters, is printed at the end."""
    return COUNTS.setdefault('%s %s' % (request.path.stem, request.node.originalname), Counter())


def pytest_sessionfinish(session):
    # a process of pytest-xdist hands its counts to the one that prints
    if hasattr(session.config, 'workeroutput'):
        session.config.workeroutput['counts'] = {name: dict(counter) for name, counter in COUNTS.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    for name, counts in getattr(node, 'workeroutput', {}).get('counts', {}).items():
        COUNTS.setdefault(name, Counter()).update(counts)


def pytest_terminal_summary(terminalreporter):
    for name, counter in COUNTS.items():
        if counter:
            terminalreporter.write_line('%s compared %s' % (
                name, ', '.join('%d %s' % (counter[key], key) for key in sorted(counter))))
    if support.corpus_missing():
        terminalreporter.write_line('skipped: ' + support.corpus_missing())


@functools.cache
def lock_files():
    """The table.lock of testdata by device and inode, as /proc/locks has them."""
    found = {}
    for folder, _, names in os.walk(support.TESTDATA):
        if 'table.lock' in names:
            path = os.path.join(folder, 'table.lock')
            status = os.stat(path)
            found['%02x:%02x:%d' % (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)] = path
    return found


def locked_in_testdata():
    """The table.lock of testdata on which this process holds a lock."""
    with open('/proc/locks') as file:
        held = [line.split() for line in file if line.split()[1] == 'POSIX']
    return {lock_files()[fields[5]] for fields in held if fields[4] == str(os.getpid()) and fields[5] in lock_files()}


REPORTED = set()


@pytest.fixture(autouse=True)
def testdata_is_unlocked():
    """Tests of other processes wait for tables of testdata that a test leaves locked."""
    yield
    left = locked_in_testdata() - REPORTED
    REPORTED.update(left)    # the next test has not locked them
    assert not left


@pytest.fixture(scope='session')
def converted(tmp_path_factory):
    """converted(case, table, *options): the native file made from a table of testdata, made once."""
    folder = tmp_path_factory.mktemp('converted')
    made = {}

    def convert(case, table, *options):
        key = (case, table) + options
        if key not in made:
            out = folder / ('%d.h5' % len(made))
            support.h5bridge('to-hdf5', os.path.join(support.TESTDATA, case, table), out, *options)
            made[key] = out
        return made[key]
    return convert


@pytest.fixture(scope='session')
def big_ms(tmp_path_factory):
    """A MeasurementSet of about 100 MB: many chunks, and time enough to interrupt its conversion."""
    path = str(tmp_path_factory.mktemp('big') / 'big.ms')
    subprocess.run([sys.executable, os.path.join(support.ROOT, 'scripts', 'bench.d', 'make_ms.py'), path,
                    '80', '28', '64'], check=True, stdout=subprocess.DEVNULL)
    return path


@pytest.fixture(scope='session')
def ten_million(tmp_path_factory):
    """A table of 10^7 rows: ANTENNA1, TIME and SCAN_NUMBER, each in files of its own, and UVW, which is zero; 400 MB."""
    import casacore.tables as ct
    import numpy as np
    path, rows = str(tmp_path_factory.mktemp('ten') / 'million.tab'), 10**7
    columns = {'ANTENNA1': (0, 'StandardStMan'), 'TIME': (0., 'StandardStMan'), 'SCAN_NUMBER': (0, 'IncrementalStMan')}
    described = [ct.makescacoldesc(name, value, datamanagertype=manager, datamanagergroup=name) for name, (value, manager) in columns.items()]
    described.append(ct.makearrcoldesc('UVW', 0., shape=[3], options=5, datamanagertype='TiledColumnStMan', datamanagergroup='UVW'))
    with ct.table(path, ct.maketabdesc(described), nrow=rows, ack=False) as table:
        table.putcol('ANTENNA1', np.arange(rows, dtype='i4') % 64)
        table.putcol('TIME', 5e9 + np.arange(rows) / 8)
        table.putcell('SCAN_NUMBER', 0, 1)
        table.putcell('SCAN_NUMBER', rows // 2, 2)
    return path
