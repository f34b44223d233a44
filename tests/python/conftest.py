"""What the checks share: converted files, and the counts that are printed at the end."""
import os
import subprocess
import sys
from collections import Counter

import pytest

import support

COUNTS = {}


def pytest_sessionstart(session):
    if not os.access(support.H5BRIDGE, os.X_OK):
        pytest.exit('%s is missing: cargo build --release (or set H5BRIDGE)' % support.H5BRIDGE, returncode=2)


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


def open_in_testdata():
    """The files of testdata that this process has open."""
    names = set()
    for number in os.listdir('/proc/self/fd'):
        try:
            names.add(os.readlink('/proc/self/fd/' + number))
        except FileNotFoundError:    # the folder's own
            continue
    return sorted(name for name in names if name.startswith(os.path.realpath(support.TESTDATA) + os.sep))


@pytest.fixture(autouse=True)
def testdata_is_closed():
    """A table of testdata that a test leaves open stays locked, and tests of other processes wait for it."""
    yield
    assert not open_in_testdata()


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
