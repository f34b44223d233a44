"""The look-alike of casacore.tables gives what python-casacore gives, method by method, for all of testdata and the corpus."""
import json
import os
import shutil
import subprocess
import sys
import traceback
from collections import Counter

import numpy as np
import pytest
import casacore.tables as ct

import support

pytest.importorskip('h5bridge', reason='the Python package is not installed: scripts/setup-python', exc_type=ImportError)
from h5bridge import Error, UnsupportedError, casacore as lookalike  # noqa: E402

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
# states of casacore's memory, and what it works out again from the files
NOT_STORED = {'MaxCacheSize', 'IndexLength', 'IndexSize', 'BucketSize', 'SEQNR'}
# what casacore itself fails at in tables that it wrote: TiledCellStMan with rows that go on by more than 1, arrays without axes,
# descriptions of hypercolumns of reference tables
OWN_FAILURES = ('do not conform', 'calcCacheSize', 'makeAxisPath', 'cannot iterate by scalars', 'Invalid description of hypercolumn')
# more cells than can be compared one by one
MANY_ROWS = 5000


def is_empty(value):
    """Whether this is an array of no strings: casacore's may have no axes."""
    return isinstance(value, list) and not value or isinstance(value, dict) and isinstance(value.get('array'), list) and not value['array']


def same(a, b):
    if is_empty(a) and is_empty(b):
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        is_equal = a.dtype == b.dtype and a.shape == b.shape
        return is_equal and (a.tobytes() == b.tobytes() or np.array_equal(a, b, equal_nan=a.dtype.kind in 'fc'))
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def stored(info):
    """Information on data managers, without what is not in the files."""
    if not isinstance(info, dict):
        return info
    if info.get('TYPE') == 'TiledCellStMan':
        # casacore lists the cubes of undefined cells, too
        info = {**info, 'SPEC': {key: value for key, value in info['SPEC'].items() if key != 'HYPERCUBES'}}
    return {key: value if key == 'SEQNR' and 'SPEC' in info else stored(value)
            for key, value in info.items() if key not in NOT_STORED or (key == 'SEQNR' and 'SPEC' in info)}


def without_hypercolumns(description):
    """A table description without what casacore keeps in private keywords."""
    return {key: value for key, value in description.items() if key not in ('_define_hypercolumn_', '_private_keywords_')}


class CannotOpen(Exception):
    """python-casacore does not open a table."""


class Both:
    """Calls the same method of python-casacore and of ours, and notes where the results differ."""

    def __init__(self, path, counts):
        self.path = path
        try:
            self.theirs = ct.table(path, ack=False)
        except RuntimeError as error:
            raise CannotOpen from error
        self.ours = lookalike.table(path, ack=False)
        self.counts = counts
        self.differences = []

    def call(self, method, *args, adapt=lambda result: result):
        results = []
        for table in self.theirs, self.ours:
            try:
                results.append(adapt(getattr(table, method)(*args)))
            except (RuntimeError, IndexError, UnicodeDecodeError) as error:
                results.append(error)
        theirs, ours = results
        self.counts['calls'] += 1
        if isinstance(theirs, UnicodeDecodeError) or any(text in str(theirs) for text in OWN_FAILURES if isinstance(theirs, Exception)):
            self.counts['calls that casacore fails at'] += 1
        elif isinstance(theirs, Exception) and isinstance(ours, Exception):
            self.counts['calls that both refuse'] += 1
        elif not same(theirs, ours):
            self.differences.append('%s %s%r: %.200r, not %.200r' % (self.path, method, args, ours, theirs))


def compare(path, counts):
    """Differences between both views of a table."""
    both = Both(path, counts)
    call, theirs = both.call, both.theirs
    counts['tables'] += 1
    rows = theirs.nrows()
    for method in ('name nrows ncols colnames info getkeywords keywordnames fieldnames getsubtables endianformat '
                   'partnames iswritable __len__').split():
        call(method)
    call('partnames', True)
    call('getdesc', adapt=without_hypercolumns)
    # engines make up theirs from keywords
    has_engines = any('Engine' in info['TYPE'] or info['TYPE'] in ('DyscoStMan', 'SiscoStMan', 'VirtualTaQLColumn')
                      or info['TYPE'].startswith('Compress') for info in theirs.getdminfo().values())
    # in a view, which manager a column has is not known where several have one name
    known = [(info['TYPE'], info['NAME']) for info in theirs.getdminfo().values()]
    has_engines |= len(set(known)) < len(known) and both.ours._table.kind not in ('plain', 'native')
    if not has_engines:
        call('getdminfo', adapt=stored)
    for keyword in theirs.keywordnames():
        call('getkeyword', keyword)
        call('fieldnames', keyword)
    if theirs.keywordnames():
        call('getkeyword', 0)
    call('getkeyword', 'NO_SUCH')
    call('getcol', 'NO_SUCH')
    for column in theirs.colnames():
        for method in 'isscalarcol isvarcol coldatatype colarraytype getcoldesc getcolkeywords colkeywordnames colfieldnames'.split():
            call(method, column)
        for keyword in theirs.colkeywordnames(column):
            call('getcolkeyword', column, keyword)
        if not has_engines:
            call('getdminfo', column, adapt=stored)
    evaluated = [column for column in theirs.colnames() if is_read(both, column)]
    counts['columns that are not evaluated'] += theirs.ncols() - len(evaluated)
    for column in evaluated if rows <= MANY_ROWS else ():
        compare_cells(both, column, rows)
    if 3 <= rows <= MANY_ROWS and len(evaluated) == theirs.ncols():
        for key in 0, rows // 2, -1, slice(0, 3), slice(None, None, -max(rows // 3, 1)):
            call('__getitem__', key)
    return both.differences


def is_read(both, column):
    """Whether this program evaluates the column."""
    try:
        both.ours.getvarcol(column, 0, 1)
    except UnsupportedError:
        return False
    except Error:
        pass
    return True


def has_one_shape(table, column):
    try:
        return None not in table._table[column].shape
    except Error:
        return False


def contradicts_itself(theirs, column):
    """Whether casacore has other elements in a column than in its cells: zeros for whole columns of coordinates; cells without
    axes are arrays for getcell, and refused by getcol."""
    try:
        cell = theirs.getcell(column, 0)
        whole = theirs.getcol(column, 0, 1)
    except (RuntimeError, UnicodeDecodeError) as error:
        # no text: columns of coordinates
        return not str(error) or 'cannot iterate by scalars' in str(error)
    return isinstance(cell, np.ndarray) and isinstance(whole, np.ndarray) and not same(whole[0], cell)


def compare_cells(both, column, rows):
    call = both.call
    # where shapes differ casacore's managers refuse, damage their memory, or make one array of all
    is_even = has_one_shape(both.ours, column)
    is_clear = not contradicts_itself(both.theirs, column)
    if is_clear:
        call('getcolshapestring', column)
    else:
        is_even = False
        both.counts['columns of which casacore has only the cells'] += 1
    for method in 'getcol', 'getvarcol':
        if is_clear and (method == 'getvarcol' or is_even):
            for args in (), (1,), (0, 2), (1, 3, 2), (rows,), (0, 0), (-1,), (2, 10**6, 3), (0, -1, 0):
                # with no rows at all casacore reads beyond the end of tiled columns
                if rows or not args:
                    call(method, column, *args)
    chosen = sorted({0, 1, rows // 2, rows - 1} & set(range(rows)))
    for row in [*chosen, rows, -1]:
        call('getcell', column, row)
    for row in chosen:
        call('iscelldefined', column, row)
        try:
            cell = both.theirs.getcell(column, row)
        except (RuntimeError, UnicodeDecodeError):
            continue
        shape = cell.shape if isinstance(cell, np.ndarray) else cell.get('shape') if isinstance(cell, dict) else None
        if shape is None or 0 in shape:
            continue
        axes = len(shape)
        for blc, trc, inc in ([0] * axes, [-1] * axes, []), ([0] * axes, [0] * axes, []), ([0] * axes, list(shape), []), ([0], [0], []):
            call('getcellslice', column, row, blc, trc, inc)
            if is_even:
                call('getcolslice', column, blc, trc, inc)
        call('getcellslice', column, row, [0] * axes, [-1] * axes, [2] * axes)
        # where shapes differ, casacore takes the steps of the first cell for all
        if is_even:
            call('getcolslice', column, [0] * axes, [-1] * axes, [2] * axes, 0, 4, 3)


def tables_below(folder):
    """Those that can be compared: casacore makes the subtables of csub.concat up, in files with other names each time."""
    return sorted(path for path, _, names in os.walk(folder) if 'table.dat' in names and 'csub' not in path)


def in_processes(paths):
    """Compares tables, each in a process of its own, because casacore crashes on some; prints a line of JSON for each."""
    for path in paths:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            counts, result = Counter(), None
            try:
                result = [compare(path, counts), counts]
            except CannotOpen:
                result = [[], {'tables that python-casacore does not open': 1}]
            except BaseException:
                result = [[path + ': ' + traceback.format_exc()], counts]
            print(json.dumps(result), flush=True)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) < 0:
            print(json.dumps([[], {'tables that python-casacore crashes on': 1}]))


def check(paths, counts):
    words = [sys.executable, '-c', 'import sys, test_casacore; test_casacore.in_processes(sys.argv[1:])', *paths]
    # a process without threads can fork
    modules = [os.path.dirname(os.path.abspath(__file__)), support.HERE, os.environ.get('PYTHONPATH', '')]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(modules))
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('[')]
    assert len(results) == len(paths), done.stderr[-2000:]
    for _, found in results:
        counts.update(found)
    differences = [text for found, _ in results for text in found]
    assert not differences, '\n'.join(differences[:10])


# rows64: more cells than there are bytes
TABLES = [path for path in tables_below(support.TESTDATA) if 'rows64' not in path]


@pytest.mark.parametrize('case', sorted({os.path.relpath(path, support.TESTDATA).split(os.sep)[0] for path in TABLES}))
def test_testdata(case, counts):
    check([path for path in TABLES if path.startswith(os.path.join(support.TESTDATA, case) + os.sep)], counts)


@pytest.mark.parametrize('entry', support.corpus_sample(8), ids=lambda entry: entry['name'])
def test_corpus(entry, tmp_path, counts):
    if support.corpus_missing():
        pytest.skip(support.corpus_missing())
    if entry['name'] == 'ctest_mf_tTiledDataStMan':
        pytest.skip("python-casacore's getcol gives zeros for its coordinate columns, or crashes; getcell is right")
    if entry['name'] == 'ctest_mf_tBitFlagsEngine':
        pytest.skip('python-casacore describes cells of shape (4, 3) as (4, 3, 2)')
    folder, tables = support.unpack(entry, tmp_path), entry.get('tables', {})
    is_damaged = {path for path in tables if support.outcome(tables, path)[0] != {support.DONE}}
    counts['damaged tables'] += len(is_damaged)
    check([path for path in tables_below(folder) if os.path.relpath(path, folder) not in is_damaged], counts)


@pytest.fixture
def demo(tmp_path):
    """A MeasurementSet of the test's own: python-casacore keeps a table locked as long as anything has it."""
    return shutil.copytree(DEMO, str(tmp_path / 'source.ms'))


def test_most_tables_are_compared(demo, counts):
    """Crashes of python-casacore do not hide that nothing is compared."""
    found = Counter()
    assert not compare(demo, found)
    assert found['calls'] > 500


# ---- what is not in testdata --------------------------------------------------------------------------------------------

def test_subtables_and_attributes(demo):
    theirs, ours = ct.table(demo, ack=False), lookalike.table(demo, ack=False)
    for name in demo + '::ANTENNA', demo + '/ANTENNA', theirs.getkeyword('ANTENNA'):
        assert lookalike.table(name, ack=False).getcol('NAME') == ct.table(name, ack=False).getcol('NAME')
    assert ours.MS_VERSION == theirs.MS_VERSION and ours.ANTENNA.NAME[1:3] == theirs.ANTENNA.NAME[1:3]
    assert ours.keys == theirs.keys
    assert same(theirs.TIME[2:10:3], ours.TIME[2:10:3]) and ours.TIME[-1] == theirs.TIME[-1]
    assert ours.TIME.QuantumUnits == theirs.TIME.QuantumUnits
    for method in 'name isscalar isvar datatype nrows keywordnames getkeywords getdesc fieldnames __len__ getcol'.split():
        assert same(getattr(theirs.TIME, method)(), getattr(ours.TIME, method)()), method
    names = ['TIME', 'UVW']
    assert same(list(theirs.row(names)[3:6]), ours.row(names)[3:6]) and same(theirs.row(names, True)[0], ours.row(names, True)[0])
    for missing in 'NO_SUCH', 'ANTENNA.NO_SUCH':
        with pytest.raises(AttributeError):
            getattr(ours, missing)
    with pytest.raises(RuntimeError, match='NO_SUCH'):
        lookalike.table(demo + '::NO_SUCH', ack=False)
    with pytest.raises(RuntimeError):
        lookalike.table(demo + '_', ack=False)


def test_arrays_are_filled(demo):
    theirs, ours = ct.table(demo, ack=False), lookalike.table(demo, ack=False)
    for dtype in np.complex64, np.complex128:
        a, b = np.zeros((5, 16, 4), dtype), np.zeros((5, 16, 4), dtype)
        theirs.getcolnp('DATA', a, 3, 5, 2)
        ours.getcolnp('DATA', b, 3, 5, 2)
        assert same(a, b) and b.any()
    a, b = np.zeros((5, 2, 4), np.complex64), np.zeros((5, 2, 4), np.complex64)
    theirs.getcolslicenp('DATA', a, [1, 0], [2, 3], [], 0, 5)
    ours.getcolslicenp('DATA', b, [1, 0], [2, 3], [], 0, 5)
    assert same(a, b)
    a, b = np.zeros((16, 4), bool), np.zeros((16, 4), bool)
    theirs.getcellnp('FLAG', 9, a)
    ours.getcellnp('FLAG', 9, b)
    assert same(a, b)
    a, b = np.zeros((2, 2), bool), np.zeros((2, 2), bool)
    theirs.getcellslicenp('FLAG', a, 9, [0, 0], [2, 2], [2, 2])
    ours.getcellslicenp('FLAG', b, 9, [0, 0], [2, 2], [2, 2])
    assert same(a, b)
    with pytest.raises(RuntimeError, match='shape'):
        ours.getcolnp('TIME', np.zeros(3))


@pytest.mark.parametrize('container', [False, True])
def test_files_and_containers(container, demo, tmp_path):
    """What python-casacore cannot open has the same cells."""
    theirs = ct.table(demo, ack=False)
    target = tmp_path / ('demo.mf' if container else 'demo.h5')
    support.h5bridge(*(('pack', demo, target) if container else ('to-hdf5', demo, target)))
    with lookalike.table(target, ack=False) as ours:
        assert ours.colnames() == theirs.colnames() and ours.info() == theirs.info()
        for column in theirs.colnames():
            assert same(theirs.getvarcol(column), ours.getvarcol(column)), column
            assert same(theirs.getcolkeywords(column), ours.getcolkeywords(column)), column
        with lookalike.table('%s::ANTENNA' % target, ack=False) as antenna:
            assert antenna.getcol('NAME') == theirs.ANTENNA.getcol('NAME')
        assert ours.ANTENNA.nrows() == 6


def test_only_reading(demo, capsys):
    with lookalike.table(demo) as table:
        assert 'reading' in capsys.readouterr().out
        for method in 'putcol putcell putkeyword addrows removerows addcols query sort select iter calc toascii copy'.split():
            with pytest.raises(UnsupportedError, match='only reads'):
                getattr(table, method)('DATA', 0)
        assert not table.iswritable() and not table.haslock(True) and table.haslock(False)
    for options in {'readonly': False}, {'tabledesc': {'x': 1}}, {'memorytable': True}:
        with pytest.raises(UnsupportedError):
            lookalike.table(demo, ack=False, **options)
    with pytest.raises(UnsupportedError):
        lookalike.table([demo, demo], ack=False)
    with pytest.raises(UnsupportedError, match='TaQL'):
        lookalike.taql('select from x')


def test_every_method_is_there(demo):
    """Each public method of python-casacore's table reads, or says that it cannot."""
    for theirs, ours in ((ct.table, lookalike.table), (ct.tablecolumn, lookalike.tablecolumn), (ct.tablerow, lookalike.tablerow)):
        table = lookalike.table(demo, ack=False)
        object_ = {'table': table, 'tablecolumn': table.col('TIME'), 'tablerow': table.row()}[ours.__name__]
        public = [name for name in dir(theirs) if not name.startswith('_') and not name.isupper()]
        missing = [name for name in public if not hasattr(object_, name)]
        assert not missing, ours.__name__


# ---- python-casacore's own tests ------------------------------------------------------------------------------------------

OWN_TESTS = os.environ.get('H5BRIDGE_CASACORE_TESTS', '')
READING = ('getcell getcellslice getcol getcolslice getvarcol getcolnp getcellnp iscelldefined getkeyword getkeywords getcolkeyword '
           'getcolkeywords keywordnames colkeywordnames fieldnames colfieldnames isscalarcol isvarcol coldatatype colarraytype '
           'getcolshapestring colnames ncols nrows getdesc getcoldesc coldesc getsubtables info name partnames').split()


def reading_with_ours(calls):
    """python-casacore's class, which writes by itself, and reads with ours what it has written."""
    class table(ct.table):
        pass

    def reader(method):
        theirs = getattr(ct.table, method)

        def read(self, *args, **kwargs):
            path = theirs_name(self)
            if kwargs.get('actual') is False or not os.path.exists(os.path.join(path, 'table.dat')):
                return theirs(self, *args, **kwargs)
            self.flush()
            with lookalike.table(path, ack=False, lockoptions='autonoread') as ours:
                result = getattr(ours, method)(*args, **kwargs)
            calls[method] += 1
            return result
        return read
    theirs_name = ct.table.name
    for method in READING:
        setattr(table, method, reader(method))
    return table


@pytest.mark.skipif(not OWN_TESTS, reason='H5BRIDGE_CASACORE_TESTS does not name the tests of python-casacore')
@pytest.mark.parametrize('module', ['test_table', 'test_unicode'])
def test_their_own_tests(module, tmp_path, monkeypatch, counts):
    import importlib.util
    import unittest
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location(module, os.path.join(OWN_TESTS, module + '.py'))
    theirs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theirs)
    calls = Counter()
    theirs.table = reading_with_ours(calls)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(theirs).run(result)
    assert calls
    counts.update(tests=result.testsRun, calls=sum(calls.values()))
    assert not result.errors and not result.failures, '\n'.join(text for _, text in result.errors + result.failures)
