"""The Python package: every column as python-casacore reads it, numpy's indices, verbs, interrupts, threads, live files."""
import gc
import glob
import itertools
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import threading
import time

import casacore.tables as ct
import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import compare
import h5bridge
import support
from h5bridge import live

fingerprint, Casacore = compare.fingerprint, compare.Table
DEMO = support.own_copy('demo', 'demo.ms')


# ---- every column, against python-casacore --------------------------------------------------------------------------

def same(ours, theirs, type_name):
    """Equal as bytes: a NaN is equal to itself, and -0.0 is not 0.0."""
    if type_name == 'string':
        return np.shape(ours) == np.shape(theirs) and np.asarray(ours, object).tolist() == np.asarray(theirs, object).tolist()
    return ours.shape == theirs.shape and ours.tobytes() == theirs.astype(ours.dtype).tobytes()


def check_column(column, table, name, counts):
    description = fingerprint.coldesc(table, name)
    type_name, scalar, rows = description['valueType'], table.isscalarcol(name), table.nrows()
    assert (column.type, column.is_scalar, len(column)) == (type_name, scalar, rows)
    cells = list(column.cells())
    assert len(cells) == rows
    shapes, defined = column.shapes(), column.defined()
    expected = []
    for row, ours in enumerate(cells):
        theirs = compare.cell(table, name, row, type_name, scalar)
        expected.append(theirs)
        counts['cells'] += 1
        assert (ours is None) == (theirs is None) == (not defined[row]), f'{name} row {row}'
        if ours is None:
            assert (shapes[row] == -1).all()
        elif type_name == 'record':
            assert fingerprint.enc_record(ours) == fingerprint.enc_record(theirs), f'{name} row {row}'
        else:
            ours = np.asarray(ours, dtype=column.dtype)
            assert same(ours, theirs, type_name), f'{name} row {row}: {ours} | {theirs}'
            assert tuple(shapes[row][shapes[row] >= 0]) == ours.shape
    counts['columns'] += 1
    check_whole(column, expected, type_name, counts)
    assert fingerprint.enc_record(column.keywords) == fingerprint.enc_record(table.getcolkeywords(name))


def check_whole(column, expected, type_name, counts):
    kinds = {None if cell is None else np.shape(cell) for cell in expected}
    if type_name == 'record' or not expected:
        return
    if len(kinds) > 1 or None in kinds:
        # the first row that does not fit is named; a value takes the place of undefined cells
        with pytest.raises(ValueError, match='row|shape'):
            column[:]
        if type_name != 'string' and len(kinds - {None}) == 1:
            filled = column.read(missing=1)
            for ours, theirs in zip(filled, expected):
                assert (ours == 1).all() if theirs is None else same(np.asarray(ours), theirs, type_name)
        counts['uneven columns'] += 1
        return
    whole = column[:]
    assert whole.shape == column.shape == (len(expected), *kinds.pop())
    assert whole.dtype == column.dtype and (whole.flags.writeable or not whole.size)
    assert all(same(np.asarray(ours, dtype=column.dtype), theirs, type_name) for ours, theirs in zip(whole, expected))
    some = sorted({0, len(expected) // 2, len(expected) - 1})
    assert same(column[some[::-1]], np.array(whole)[some[::-1]], type_name)
    if type_name != 'string':
        out = np.empty_like(whole)
        assert column.read(out=out) is out and out.tobytes() == whole.tobytes()
    counts['whole columns'] += 1


def check_table(path, ours, counts, skipped=(), done=None):
    done = set() if done is None else done
    table = Casacore(path, ack=False)
    assert (ours.nrows, list(ours)) == (table.nrows(), table.colnames())
    for name in table.colnames():
        if name not in skipped:
            try:
                column = ours[name]
                column.defined([0] if ours.nrows else [])
            except h5bridge.UnsupportedError:
                assert ours[name].manager not in support.MANAGERS
                counts['unsupported columns'] += 1
                continue
            check_column(column, table, name, counts)
    counts['tables'] += 1
    for keyword, where in table.getkeywords().items():
        if isinstance(where, str) and where.startswith('Table: ') and os.path.exists(where[len('Table: '):]):
            where = where[len('Table: '):]
            if where not in done and keyword in ours.subtables:
                done.add(where)
                check_table(where, ours.subtables[keyword], counts, (), done)
    table.close()


@pytest.mark.parametrize('form', ['table', 'native'])
@pytest.mark.parametrize('case,table', support.some_convertible())
def test_testdata(case, table, form, converted, counts):
    path = os.path.join(support.TESTDATA, case, table)
    skipped = support.not_utf8(support.expected(case)['tables'][table])
    if case == 'odd_strings':
        pytest.skip('python-casacore cannot read it; test_odd_strings does')
    with h5bridge.open_table(path if form == 'table' else converted(case, table)) as ours:
        check_table(path, ours, counts, skipped)


def test_odd_strings():
    """Bytes that are not UTF-8 are there, as surrogates."""
    for case, table in support.convertible():
        if case == 'odd_strings':
            with h5bridge.open_table(os.path.join(support.TESTDATA, case, table)) as ours:
                texts = {str(text) for column in ours.values() for cell in column.cells() for text in np.ravel(cell)}
            assert any(b'\xff\xfe\x80Q' in text.encode('utf-8', 'surrogateescape') for text in texts)
            return
    pytest.fail('testdata has no odd strings')


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing())
@pytest.mark.parametrize('entry', support.corpus_sample(8), ids=lambda entry: entry['name'])
def test_corpus(entry, tmp_path, counts):
    """Tables of the corpus. By default every eighth entry, and tables of at most 40,000 cells; H5BRIDGE_LONG=1: all, but one whose
    three million cells casacore computes one by one: convert/test_values.py has it."""
    folder = support.unpack(entry, tmp_path)
    tables = entry.get('tables', {})
    checked = 0
    for root in support.roots(tables):
        if any('python_error' in f for f in support.below(tables, root).values()):
            continue        # python-casacore has not the engine
        if support.outcome(tables, root)[0] != {support.DONE}:
            continue
        cells = sum(f.get('nrow', 0) * len(f.get('columns', ())) for f in support.below(tables, root).values())
        if cells > (1_000_000 if support.LONG else 40_000):
            continue
        path = os.path.normpath(os.path.join(folder, root))
        skipped = support.not_utf8(tables[root]) | support.unreadable(tables[root])
        with h5bridge.open_table(path) as ours:
            check_table(path, ours, counts, skipped)
        checked += 1
    if not checked:
        pytest.skip('no table that casacore reads, or only large ones')


# ---- indices --------------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def opened(tmp_path_factory):
    """The demo as a table and as a native file, each column with what numpy has of it."""
    folder = tmp_path_factory.mktemp('opened')
    source, native = str(folder / 'demo.ms'), str(folder / 'demo.h5')
    shutil.copytree(DEMO, source)
    h5bridge.to_hdf5(source, native)
    tables = [h5bridge.open_table(source), h5bridge.open_table(native)]
    names = ['DATA', 'FLAG', 'UVW', 'TIME', 'ANTENNA1', 'WEIGHT', 'FLAG_ROW']
    with ct.table(source, ack=False) as table:
        arrays = {name: table.getcol(name) for name in names}
    yield [(table[name], arrays[name]) for table in tables for name in names]


def index_of(length):
    return st.one_of(
        st.integers(-length, length - 1),
        st.slices(length),
    )


@st.composite
def keys(draw, shape):
    rows = draw(st.one_of(
        index_of(shape[0]),
        st.lists(st.integers(-shape[0], shape[0] - 1), max_size=9),
        st.lists(st.integers(-shape[0], shape[0] - 1), max_size=9).map(lambda found: np.array(found, dtype=np.int64)),
        st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed).random(shape[0]) < 0.05),
    ))
    rest = [draw(index_of(length)) for length in shape[1:]]
    kept = draw(st.integers(0, len(rest)))
    key = (rows, *rest[:kept])
    if draw(st.booleans()):
        place = draw(st.integers(0, kept + 1))
        key = (*key[:place], Ellipsis, *key[place:]) if place else key
        if place and place < kept + 1:
            # what follows the dots is for the last axes
            last = len(shape) - (kept + 1 - place)
            key = (*key[:place + 1], *[draw(index_of(shape[axis])) for axis in range(last, len(shape))])
    return key if len(key) > 1 or draw(st.booleans()) else key[0]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_indices(opened, data):
    column, array = data.draw(st.sampled_from(opened))
    key = data.draw(keys(array.shape))
    expected, found = array[key], column[key]
    assert np.shape(found) == np.shape(expected)
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    out = np.empty(np.shape(expected), dtype=array.dtype)
    if out.shape:
        assert column.read(key, out=out) is out and out.tobytes() == np.asarray(expected).tobytes()


def test_bad_indices(opened):
    column, array = opened[0]
    rows = len(array)
    for key in (rows, -rows - 1, (0, 99), (0, 0, 0, 0), [rows], np.zeros(3, bool), 1.5, 'x', None, True, (..., 0, ...), [0.5]):
        with pytest.raises(IndexError):
            column[key]
    with pytest.raises(ValueError, match='shape'):
        column.read(out=np.zeros(3, dtype=column.dtype))
    # objects that are dropped while an exception is on its way do not lose it
    for key in (10**6, [10**6], 'x'):
        with pytest.raises(IndexError):
            h5bridge.open_table(DEMO)['DATA'][key]
    with pytest.raises(ValueError, match='row'):
        h5bridge.open_table(DEMO)['FLAG_CATEGORY'][:]
    with pytest.raises(KeyError, match='did you mean DATA'):
        h5bridge.open_table(DEMO)['DAT']
    with pytest.raises(KeyError, match='ANTENNA'):
        h5bridge.open_table(DEMO).subtables['ANTENA']


def test_tables(tmp_path):
    """What is known of tables and columns, in every kind of source; pickles; pictures of them."""
    h5bridge.to_hdf5(DEMO, tmp_path / 'a.h5')
    h5bridge.pack(DEMO, tmp_path / 'one.mf', single_file=True)
    h5bridge.pack(DEMO, tmp_path / 'packed.ms', format='multihdf5')
    for path in (DEMO, tmp_path / 'a.h5', tmp_path / 'one.mf', tmp_path / 'packed.ms'):
        with h5bridge.open_table(path) as table:
            data = table['DATA']
            assert table.type == 'Measurement Set' and table.name == 'MAIN'
            assert data.shape == (210, 16, 4) and data.dtype == np.complex64 and data.ndim == 3
            assert table['TIME'].unit == 's' and table['TIME'].measure.type == 'epoch'
            names = table.subtables['ANTENNA']['NAME'][:]
            assert names[0] == 'A00' and isinstance(names[0], str)
            with h5bridge.open_table(os.path.join(path, 'ANTENNA')) as antenna:
                assert antenna['NAME'][:].tolist() == names.tolist()
            again = pickle.loads(pickle.dumps(table))
            assert again['DATA'][:].tobytes() == data[:].tobytes()
            assert pickle.loads(pickle.dumps(table.subtables['ANTENNA'])).name == 'ANTENNA'
            assert 'DATA' in repr(table) and 'complex64' in repr(table) and 'ANTENNA' in repr(table)
            assert '<table>' in table._repr_html_() and 'DATA' in repr(data)
            assert np.asarray(data).tobytes() == data[:].tobytes()
        assert table.closed and 'closed' in repr(table)
        with pytest.raises(ValueError, match='closed'):
            data[:]
    assert h5bridge.open_table(DEMO)['DATA'].chunks is not None


# ---- verbs ----------------------------------------------------------------------------------------------------------

def test_verbs(tmp_path):
    a, b, c = tmp_path / 'a.h5', tmp_path / 'b.ms', tmp_path / 'c.ms'
    planned = h5bridge.plan(DEMO)
    summary = h5bridge.to_hdf5(DEMO, a, restorable=True)
    assert (summary.rows, summary.tables) == (210, 13) and summary.file_bytes == os.path.getsize(a)
    assert planned.tables[0].columns[0].name == 'UVW' and planned.bytes == summary.bytes
    assert summary.digest == h5bridge.digest(DEMO).main == h5bridge.digest(a).tables['.'].sha256
    assert h5bridge.verify(DEMO, a) and h5bridge.verify(a).check().equal
    assert h5bridge.to_ms(a, b).rows == 210 and h5bridge.verify(DEMO, b)
    h5bridge.to_ms(a, c, exact=True)
    assert h5bridge.verify(DEMO, c, bytes=True).compared['files'] > 10
    packed = h5bridge.pack(DEMO, tmp_path / 'p.h5', single_file=True, format='multihdf5')
    assert packed.files == h5bridge.unpack(tmp_path / 'p.h5', tmp_path / 'q.ms').files
    found = h5bridge.info(DEMO)
    assert found.tables['.'].columns['DATA'].shape == (16, 4) or found.tables['.'].columns['DATA'].shape is None
    assert found.tables['ANTENNA'].rows == h5bridge.open_table(DEMO).subtables['ANTENNA'].nrows
    part = h5bridge.to_hdf5(DEMO, tmp_path / 'part.h5', columns=['TIME', 'DATA'], rows=slice(10, 20), compress='none')
    assert part.rows == 10 and part.digest is None
    with h5py.File(tmp_path / 'part.h5') as file, ct.table(DEMO, ack=False) as table:
        assert np.array_equal(file['MAIN/DATA'][:], table.getcol('DATA', 10, 10))
    where = h5bridge.to_hdf5(DEMO, tmp_path / 'w.h5', where='ANTENNA1 == 0', tables=['MAIN'])
    assert 0 < where.rows < 210
    h5bridge.to_hdf5(DEMO, tmp_path / 'old.h5', hdf5='1.8')
    with open(tmp_path / 'old.h5', 'rb') as file:
        assert file.read(9)[8] == 0     # the version of the superblock
    assert h5bridge.verify(DEMO, tmp_path / 'old.h5')
    assert {column.index for column in h5bridge.plan(DEMO, hdf5='1.8').tables[0].columns} <= {'btree_v1', 'none'}


def test_lint(tmp_path):
    """Findings are those of `lint --json`; breaks of the layout make them false."""
    path = tmp_path / 'my.h5'
    h5bridge.to_hdf5(DEMO, path)
    found = h5bridge.lint(path)
    document = json.loads(support.h5bridge('lint', path, '--json').stdout)
    assert found and found.follows_layout and found.document == document and found.checked == document['checked']
    assert [dict(vars(finding), readers=list(finding.readers)) for finding in found.findings] == document['findings'] != []
    with h5py.File(path, 'r+') as opened:
        opened['MAIN'].attrs['X'] = h5py.Empty('f4')
    broken = h5bridge.lint(path)
    breaks = [(finding.rule, finding.object, finding.attribute) for finding in broken.findings if finding.breaks_layout]
    assert not broken and breaks == [('null-attribute', '/MAIN', 'X')]
    with pytest.raises(h5bridge.Error, match='demo.ms'):
        h5bridge.lint(DEMO)


def test_shared_bytes(tmp_path):
    """Thin tables and manifests, by functions: casacore reads the one, verify knows the other."""
    table, file, thin = tmp_path / 'a.ms', tmp_path / 'a.h5', tmp_path / 'thin.ms'
    subprocess.run(['cp', '-r', DEMO, table], check=True)
    replaced = h5bridge.replace(table, file)
    assert replaced.table == str(table) and replaced.links == sum(map(os.path.islink, glob.glob(str(table / 'table.f*'))))
    linked = h5bridge.link(file, thin)
    assert h5bridge.verify(thin)
    assert (linked.links, linked.linked_bytes) == (replaced.links, replaced.linked_bytes)
    with ct.table(str(thin), ack=False) as found, ct.table(DEMO, ack=False) as expected:
        assert np.array_equal(found.getcol('DATA'), expected.getcol('DATA'))
    with pytest.raises(h5bridge.UnsupportedError):
        h5bridge.manifest(thin, tmp_path / 'thin.json')
    assert h5bridge.materialize(thin) > 0 and not any(map(os.path.islink, glob.glob(str(thin / 'table.f*'))))
    written = h5bridge.manifest(thin, tmp_path / 'thin.json', table='MAIN')
    assert written.tables == 1 and written.references > 0 and os.path.exists(written.companion)
    assert h5bridge.verify(tmp_path / 'thin.json')
    with ct.table(str(thin), ack=False, readonly=False) as changed:
        changed.putcell('TIME', 0, 1.0)
    assert not h5bridge.verify(tmp_path / 'thin.json')


def test_errors(tmp_path):
    """Classes, kinds, exit codes; the base classes of Python."""
    target = tmp_path / 'a.h5'
    h5bridge.to_hdf5(DEMO, target)
    damaged = tmp_path / 'damaged.ms'
    subprocess.run(['cp', '-r', DEMO, damaged], check=True)
    with open(damaged / 'table.dat', 'r+b') as file:
        file.truncate(100)
    for call, kind, base, code in (
            (lambda: h5bridge.to_hdf5(DEMO, target), h5bridge.ExistsError, FileExistsError, 7),
            (lambda: h5bridge.open_table(tmp_path / 'none'), h5bridge.NotFoundError, FileNotFoundError, 3),
            (lambda: h5bridge.to_hdf5(tmp_path / 'none', tmp_path / 'x.h5'), h5bridge.NotFoundError, OSError, 3),
            (lambda: h5bridge.open_table(damaged), h5bridge.FormatError, ValueError, 3),
            (lambda: h5bridge.to_hdf5(DEMO, tmp_path / 'x.h5', columns=['NOPE']), h5bridge.UsageError, ValueError, 2),
            (lambda: h5bridge.to_hdf5(DEMO, tmp_path / 'x.h5', compress='rar'), h5bridge.UsageError, ValueError, 2),
            (lambda: h5bridge.to_ms(target, tmp_path / 'y.ms', exact=True), h5bridge.UsageError, ValueError, 2)):
        with pytest.raises(kind) as caught:
            call()
        assert isinstance(caught.value, base) and isinstance(caught.value, h5bridge.Error)
        assert caught.value.code == code and str(caught.value) and '\n' not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ['a.h5', 'damaged.ms']
    with pytest.raises(h5bridge.NotFoundError) as caught:
        h5bridge.open_table(tmp_path / 'none')
    assert caught.value.filename == str(tmp_path / 'none')
    other = tmp_path / 'other.ms'
    subprocess.run(['cp', '-r', DEMO, other], check=True)
    with ct.table(str(other), readonly=False, ack=False) as table:
        table.putcell('TIME', 3, 1.0)
    found = h5bridge.verify(DEMO, other)
    assert not found and found.differences[0]['column'] == 'TIME'
    with pytest.raises(h5bridge.DifferentError, match='TIME'):
        found.check()
    for bad in ('DATA', 5):
        with pytest.raises(TypeError):
            h5bridge.to_hdf5(DEMO, tmp_path / 'x.h5', columns=bad)
    with pytest.raises(ValueError):
        h5bridge.to_hdf5(DEMO, tmp_path / 'x.h5', rows=slice(0, 10, 2))


# ---- plots ----------------------------------------------------------------------------------------------------------

def drawn(axes):
    """The values that matplotlib was given: of a raster, of bars, or of lines."""
    if axes.patches:
        return np.array([[bar.get_height() for bar in axes.patches]])
    if axes.lines:
        assert not axes.collections, 'nothing covers the lines'
        return np.concatenate([line.get_ydata()[np.isfinite(line.get_ydata())] for line in axes.lines])
    return axes.collections[0].get_array()


@pytest.mark.parametrize('kind', support.PLOTS)
def test_plots(kind, tmp_path, monkeypatch):
    """Numbers and pictures are those of the command, which test_frames.py judges; with matplotlib, what it is given."""
    import matplotlib
    matplotlib.use('Agg')
    import matplotlib.pyplot as plt
    support.h5bridge('plot', DEMO, kind, '--out', tmp_path / 'a.npy', '--baseline', '0-1,0-2', '--quiet')
    support.h5bridge('plot', DEMO, kind, '--out', tmp_path / 'a.png', '--baseline', '0-1,0-2', '--quiet')
    chosen = {'baseline': ['0-1', '0-2']}
    frame = h5bridge.frame(DEMO, kind, **chosen)
    values = frame.arrays['y' if frame.series else 'raster']
    np.testing.assert_array_equal(values, np.load(tmp_path / 'a.npy'))
    axes = h5bridge.plot(DEMO, kind, **chosen)
    shown = np.ma.masked_invalid(values.astype(float))
    if frame.z and frame.z['scale'] == 'log':
        shown = np.ma.masked_less_equal(shown, 0)
    found = np.ma.filled(np.ma.asarray(drawn(axes), float), np.nan)
    if axes.lines:
        shown = np.ma.asarray(values[np.isfinite(values)])
    elif found.ndim == 1:
        # the cells of a map that have points
        found, shown = np.sort(found), np.ma.asarray(np.sort(values[values > 0]))
    if kind == 'amp_uvdist':
        assert axes.get_yscale() == 'log'
    np.testing.assert_array_equal(found, shown.astype(float).filled(np.nan))
    assert frame.title in axes.get_title() and axes.get_xlabel().startswith(frame.x['label'])
    assert h5bridge.plot(DEMO, kind, ax=axes) is axes
    axes.figure.savefig(tmp_path / 'b.png')
    plt.close(axes.figure)
    monkeypatch.setitem(sys.modules, 'matplotlib', None)
    picture = h5bridge.plot(DEMO, kind, **chosen)
    assert picture._repr_png_() == (tmp_path / 'a.png').read_bytes()
    picture.save(tmp_path / 'c.png')
    with pytest.raises(FileExistsError):
        picture.save(tmp_path / 'c.png')
    with pytest.raises(h5bridge.UsageError, match='matplotlib'):
        h5bridge.plot(DEMO, kind, ax=axes)


def test_parameters_of_plots(tmp_path):
    with h5bridge.open_table(DEMO) as table:
        whole = h5bridge.frame(table, 'waterfall')
        part = h5bridge.frame(table, 'waterfall', chan=(2, 5), corr='XX', flagged='include')
        assert part.arrays['raster'].shape[1] == 3 and part.document['selection']['chan'] == '2..5'
        assert whole.arrays['raster'].shape[1] == 16 and whole.rows == 210
        with pytest.raises(h5bridge.UsageError, match='ZZ'):
            h5bridge.frame(table, corr='ZZ')
        with pytest.raises(h5bridge.UsageError, match='two ends'):
            h5bridge.frame(table, chan=[1, 2, 3])
        with pytest.raises(h5bridge.UsageError, match='colour'):
            h5bridge.plot(table, colour='red')
    with pytest.raises(h5bridge.UnsupportedError, match='TIME'):
        h5bridge.frame(os.path.join(DEMO, 'ANTENNA'))


def test_progress(big_ms, tmp_path):
    """It is called as it goes, in this thread; what it raises ends the conversion, which leaves nothing."""
    calls = []
    h5bridge.to_hdf5(big_ms, tmp_path / 'a.h5', progress=lambda *words: calls.append((threading.get_ident(), *words)))
    assert calls and {call[0] for call in calls} == {threading.get_ident()}
    done = [call[1] for call in calls]
    assert done == sorted(done) and calls[-1][2] > 0

    def stop(*_):
        raise RuntimeError('enough')
    with pytest.raises(RuntimeError, match='enough'):
        h5bridge.to_hdf5(big_ms, tmp_path / 'b.h5', progress=stop)
    assert os.listdir(tmp_path) == ['a.h5']


INTERRUPTED = '''
import os, signal, sys, threading, time
import h5bridge
# a shell's background processes ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)
verb, source, target, delay = sys.argv[1:]
sent = []
def send():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
timer = threading.Timer(float(delay), send)
call = getattr(h5bridge, verb)
try:
    timer.start()
    call(source, target)
    timer.cancel()
    timer.join()
    print('finished')
except KeyboardInterrupt:
    print(time.monotonic() - sent[0])
except BaseException as error:
    print(repr(error))
time.sleep(0.3)
print(os.listdir(os.path.dirname(target)))
h5bridge.open_table(source).close()
'''


@pytest.mark.parametrize('verb', ['to_hdf5', 'to_ms', 'pack'])
def test_interrupt(verb, big_ms, tmp_path):
    """KeyboardInterrupt comes at once, and nothing is left; the process goes on."""
    slowest = interrupted = 0
    for delay in (0.01, 0.02, 0.05, 0.1, 0.2):
        found = subprocess.run([sys.executable, '-c', INTERRUPTED, verb, big_ms, str(tmp_path / 'out'), str(delay)],
                               capture_output=True, text=True, timeout=60)
        assert found.returncode == 0, found.stderr
        first, left = found.stdout.splitlines()
        if left != '[]':
            # finished, or interrupted after it was published: it is whole
            assert left == "['out']" and h5bridge.verify(big_ms, tmp_path / 'out')
            shutil.rmtree(tmp_path / 'out') if os.path.isdir(tmp_path / 'out') else os.remove(tmp_path / 'out')
            continue
        slowest, interrupted = max(slowest, float(first)), interrupted + 1
    assert interrupted, 'no run was interrupted'
    # 0.3 s are promised; on a machine that runs other tests as well it may take longer
    assert slowest < 2


# ---- threads, memory ------------------------------------------------------------------------------------------------

def test_threads(big_ms, tmp_path):
    """50 threads read one table, and one native file, and agree."""
    h5bridge.to_hdf5(big_ms, tmp_path / 'a.h5')
    for path in (big_ms, tmp_path / 'a.h5'):
        with h5bridge.open_table(path) as table:
            expected = {name: table[name][:] for name in ('DATA', 'FLAG', 'UVW', 'TIME')}
            wrong = []

            def read(seed):
                rng = np.random.default_rng(seed)
                for _ in range(20):
                    name = rng.choice(list(expected))
                    start = int(rng.integers(0, table.nrows - 60))
                    if table[name][start:start + 50].tobytes() != expected[name][start:start + 50].tobytes():
                        wrong.append((name, start))
            threads = [threading.Thread(target=read, args=(seed,)) for seed in range(50)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            assert not wrong


def rss():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_opens_cost_nothing(tmp_path):
    """Memory and descriptors are as before after many opens."""
    h5bridge.to_hdf5(DEMO, tmp_path / 'a.h5')
    # of its own: other tests lock the other one
    subprocess.run(['cp', '-r', DEMO, tmp_path / 'a.ms'], check=True)

    def use(count):
        for path in (tmp_path / 'a.ms', tmp_path / 'a.h5'):
            for number in range(count):
                table = h5bridge.open_table(path)
                table['DATA'][3:5], table.subtables['ANTENNA']['NAME'][:]
                if number % 2:
                    table.close()
        del table
        gc.collect()
    use(150)
    files, grown = len(os.listdir('/proc/self/fd')), []
    for _ in range(3):
        before = rss()
        use(200 if support.LONG else 100)
        grown.append(rss() - before)
    assert len(os.listdir('/proc/self/fd')) <= files
    # what is lost is lost in every round; an allocator grows by megabytes at times
    assert min(grown) < 1 << 20, f'{[size >> 10 for size in grown]} KiB more'


# ---- beside others --------------------------------------------------------------------------------------------------

TOGETHER = '''
import importlib, sys, threading, warnings
order, ms, native = sys.argv[1].split(','), sys.argv[2], sys.argv[3]
modules = {name: importlib.import_module(name) for name in order}
import h5bridge, h5py, netCDF4, h5netcdf, numpy as np
import casacore.tables as ct
file, dataset, hn = h5py.File(native), netCDF4.Dataset(native, auto_complex=True), h5netcdf.File(native, 'r')
ours, theirs = h5bridge.open_table(ms), ct.table(ms, ack=False)
expected = theirs.getcol('DATA')
for found in (ours['DATA'][:], file['MAIN/DATA'][:], hn['MAIN/DATA'][:], h5bridge.open_table(native)['DATA'][:],
              np.asarray(dataset['MAIN']['DATA'][:])):
    assert np.array_equal(found, expected), found
failures = []
def convert(name):
    try:
        h5bridge.to_hdf5(ms, name, overwrite=True)
    except Exception as error:
        failures.append(error)
def read():
    for _ in range(30):
        if not np.array_equal(file['MAIN/DATA'][5:9], expected[5:9]):
            failures.append('h5py')
threads = [threading.Thread(target=convert, args=(f'{native}.{n}',)) for n in range(2)]
threads += [threading.Thread(target=read) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not failures, failures
for name in ('none.h5',):
    for open_it in (h5py.File, h5bridge.open_table):
        try:
            open_it(name)
            raise SystemExit('opened')
        except FileNotFoundError:
            pass
assert np.array_equal(h5py.File(f'{native}.0')['MAIN/DATA'][:], expected)
print('good')
'''
ORDERS = list(itertools.permutations(['h5bridge', 'h5py', 'netCDF4', 'casacore.tables', 'h5netcdf']))


@pytest.mark.parametrize('order', ORDERS[::5 if support.LONG else 17], ids=','.join)
def test_together(order, tmp_path):
    """One interpreter with h5py, netCDF4, h5netcdf and python-casacore, each with an HDF5 of its own."""
    h5bridge.to_hdf5(DEMO, tmp_path / 'a.h5')
    found = subprocess.run([sys.executable, '-c', TOGETHER, ','.join(order), DEMO, str(tmp_path / 'a.h5')],
                           capture_output=True, text=True, timeout=120)
    assert found.stdout == 'good\n', found.stderr


PROBE = '''
import fcntl, sys
with open(sys.argv[1] + "/table.lock", "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, 0)
        print("free")
    except OSError:
        print("locked")
'''


@pytest.mark.parametrize('first', ['h5bridge', 'casacore'])
def test_locks_of_casacore(first, tmp_path):
    """Casacore's write lock stays when we read the same table in its process; another process is the judge."""
    path = str(tmp_path / 'a.ms')
    subprocess.run(['cp', '-r', DEMO, path], check=True)
    script = f'''
import subprocess, sys, time, warnings
path = {path!r}
if {first!r} == 'h5bridge':
    import h5bridge
    early = h5bridge.open_table(path)
import casacore.tables as ct
import h5bridge
def others():
    return subprocess.run([sys.executable, '-c', {PROBE!r}, path], capture_output=True, text=True).stdout.strip()
if {first!r} == 'h5bridge':
    early.close()
table = ct.table(path, readonly=False, ack=False, lockoptions='user')
table.lock(write=True)
assert others() == 'locked'
start = time.monotonic()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    ours = h5bridge.open_table(path)
assert time.monotonic() - start < 5 and 'locked' in str(caught[0].message), caught
assert ours['TIME'][:].shape == (210,) and others() == 'locked'
ours.close()
del ours
assert others() == 'locked'
h5bridge.to_hdf5(path, path + '.h5', restorable=True)
h5bridge.verify(path, path + '.h5'), h5bridge.digest(path), h5bridge.info(path)
h5bridge.pack(path, path + '.packed'), h5bridge.verify(path, path + '.packed', bytes=True)
assert others() == 'locked'
table.putcell('TIME', 0, 7.0)
table.unlock()
assert others() == 'free'
assert h5bridge.open_table(path)['TIME'][0] == 7.0
table.close()
print('good')
'''
    found = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, timeout=120)
    assert found.stdout == 'good\n', found.stderr


def test_close_gives_the_lock_back(tmp_path):
    """At once, also while columns and exceptions of the table are alive."""
    path = str(tmp_path / 'a.ms')
    subprocess.run(['cp', '-r', DEMO, path], check=True)
    table = h5bridge.open_table(path)
    column, cells = table['DATA'], table['DATA'].cells()
    next(cells)
    with pytest.raises(IndexError) as kept:
        column[10**6]
    locked = [sys.executable, '-c', PROBE, path]
    probe = lambda: subprocess.run(locked, capture_output=True, text=True, timeout=60).stdout.strip()  # noqa: E731
    assert probe() == 'locked'
    table.close()
    assert probe() == 'free' and kept.value and column.name == 'DATA'
    with pytest.raises(ValueError, match='closed'):
        column[:]


def test_lock_waits(tmp_path):
    """A table that another process has locked: the wait ends with Ctrl-C or the time-out, and without a lock it is read."""
    path = str(tmp_path / 'a.ms')
    subprocess.run(['cp', '-r', DEMO, path], check=True)
    holder = subprocess.Popen([sys.executable, '-c', f'''
import casacore.tables as ct, sys
table = ct.table({path!r}, readonly=False, ack=False, lockoptions='user')
table.lock(write=True)
print('ready', flush=True)
sys.stdin.read()
'''], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == 'ready\n'
        start = time.monotonic()
        with pytest.raises(h5bridge.LockedError) as caught:
            h5bridge.open_table(path, lock_timeout=0.3)
        assert 0.2 < time.monotonic() - start < 20 and isinstance(caught.value, BlockingIOError)
        with h5bridge.open_table(path, lock=False) as table:
            assert table.nrows == 210
        found = subprocess.run([sys.executable, '-c', f'''
import os, signal, threading, time, h5bridge
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    h5bridge.open_table({path!r})
except KeyboardInterrupt:
    print(time.monotonic() - start < 10)
'''], capture_output=True, text=True, timeout=50)
        assert found.stdout == 'True\n', found.stderr
    finally:
        holder.communicate()


# ---- live -----------------------------------------------------------------------------------------------------------

def live_tables():
    columns = {
        'TIME': live.Column('f8', unit='s'), 'NAME': live.Column(str, string_length=8),
        'DATA': live.Column('c8', cell=(3, 2), axes=('chan', 'corr')), 'FLAG': live.Column('?', cell=(3, 2)),
        'ODD': live.Column('f4', shapes=[(2,), (3,)]),
    }
    return {'MAIN': live.Table(columns, type='Measurement Set', keywords={'A': 1, 'B': [1., 2.], 'C': 'x'},
                               coordinates={'chan': [1., 2., 3.]}),
            'ANTENNA': live.Table({'NAME': live.Column(str)})}


def test_live(tmp_path):
    path = tmp_path / 'live.h5'
    data = np.arange(18).reshape(3, 3, 2) + 1j
    with live.Writer(path, live_tables(), every=None) as writer:
        writer.append('MAIN', TIME=[1, 2], NAME=['a', 'bé'], DATA=data[:2], FLAG=data[:2].real > 3, ODD=[np.ones(2), None])
        writer.append('ANTENNA', {'NAME': ['A0']})
        assert (writer.rows(), writer.committed_rows()) == (2, 0)
        writer.commit()
        # another process sees it
        found = subprocess.run([sys.executable, '-c', f'''
from h5bridge import live
main = live.Reader({str(path)!r})["MAIN"]
print(main.nrows, main["DATA"][-1, 1:].tolist(), main["NAME"][:].tolist(), main["ODD"].cell(1))
'''], capture_output=True, text=True, timeout=60)
        assert found.stdout == f"2 {data[1, 1:].astype('c8').tolist()} ['a', 'bé'] None\n", found.stderr
        writer.append('MAIN', TIME=[3.], NAME=['c'], DATA=data[2:], FLAG=np.zeros((1, 3, 2), bool), ODD=[np.zeros(3)])
        writer.rewrite('MAIN', 'TIME', 0, [9.])
        for bad, words in ((lambda: writer.append('MAIN', TIME=[1.]), 'no'),
                           (lambda: writer.append('MAIN', NOPE=[1.]), 'NOPE'),
                           (lambda: writer.append('NOPE', A=[1]), 'NOPE'),
                           (lambda: writer.append('MAIN', TIME=['x']), 'TIME'),
                           (lambda: writer.append('MAIN', TIME=[1.], NAME=['a', 'b']), 'rows'),
                           (lambda: writer.append('MAIN', ODD=[np.zeros(7)]), 'ODD')):
            with pytest.raises((ValueError, TypeError, KeyError), match=words):
                bad()
        with pytest.raises(h5bridge.Error):
            live.Writer(path, live_tables())
    with h5py.File(path) as file:
        assert np.array_equal(file['MAIN/DATA'][:], data.astype('c8')) and file['MAIN/TIME'][:].tolist() == [9, 2, 3]
        assert file['MAIN'].attrs['A'] == 1 and file['MAIN/TIME'].attrs['units'] == 's'
    with live.Writer.reopen(path) as writer:
        writer.append('ANTENNA', NAME=['A1', 'A2'])
    with h5bridge.open_table(path) as table:
        assert table['DATA'][:].tobytes() == data.astype('c8').tobytes() and table.subtables['ANTENNA'].nrows == 3
        assert [None if cell is None else len(cell) for cell in table['ODD'].cells()] == [2, None, 3]
    final = h5bridge.finalize(path, tmp_path / 'final.h5')
    assert final.rows in (0, 3) and h5bridge.verify(path, tmp_path / 'final.h5')


def test_live_wait_and_abandon(tmp_path):
    """Rows that were not committed are lost when the block ends with an exception; `wait` sees new rows of another process."""
    path = tmp_path / 'live.h5'
    tables = {'MAIN': live.Table({'TIME': live.Column('f8')})}
    with pytest.raises(RuntimeError):
        with live.Writer(path, tables, every=None) as writer:
            writer.append('MAIN', TIME=[1.])
            writer.commit()
            writer.append('MAIN', TIME=[2.])
            raise RuntimeError
    assert h5bridge.open_table(path)['TIME'][:].tolist() == [1.]
    process = subprocess.Popen([sys.executable, '-c', f'''
import time
from h5bridge import live
with live.Writer.reopen({str(path)!r}, every=None) as writer:
    print('ready', flush=True)
    time.sleep(0.5)
    writer.append('MAIN', TIME=[5., 6.])
    writer.commit()
    time.sleep(1)
'''], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == 'ready\n'
    main = live.Reader(path)['MAIN']
    assert main.wait(0.05) == 1
    assert main.wait(20) == 3 and main['TIME'][1:].tolist() == [5., 6.]
    assert process.wait(20) == 0


def test_live_readers_in_one_process(tmp_path):
    """Each reads what another process has committed, whoever opened the file before it; libhdf5 would lose track of new chunks (64 rows)."""
    path = tmp_path / 'live.h5'
    process = subprocess.Popen([sys.executable, '-c', f'''
import sys
from h5bridge import live
with live.Writer({str(path)!r}, {{'MAIN': live.Table({{'X': live.Column('i4', chunk_rows=64)}})}}, every=None) as writer:
    print('ready', flush=True)
    for line in sys.stdin:
        first = writer.rows()
        writer.append('MAIN', X=list(range(first, first + int(line))))
        writer.commit()
        print(writer.rows(), flush=True)
'''], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == 'ready\n'
    readers = []
    for count in (10, 100, 1000, 300, 5000):
        process.stdin.write('%d\n' % count)
        process.stdin.flush()
        rows = int(process.stdout.readline())
        readers.append(live.Reader(path)['MAIN'])
        for table in reversed(readers):
            assert table.refresh() == rows and np.array_equal(table['X'][:], np.arange(rows))
    process.stdin.close()
    assert process.wait(20) == 0


def test_follow(tmp_path):
    source = str(tmp_path / 'a.ms')
    subprocess.run(['cp', '-r', DEMO, source], check=True)
    found = h5bridge.follow(source, tmp_path / 'live.h5', until_closed=True)
    assert found.tables['MAIN'] == 210 and found.commits >= 1
    with ct.table(source, ack=False) as table, h5py.File(tmp_path / 'live.h5') as live:
        for name in 'TIME', 'DATA', 'FLAG', 'ANTENNA1':
            assert np.array_equal(live['MAIN'][name][:], table.getcol(name))
    packed = h5bridge.pack(source, tmp_path / 'live.mfh5', follow=True, until_closed=True, poll=0.1)
    assert packed.files > 50 and packed.document['commits'] >= 1
    assert h5bridge.finalize(tmp_path / 'live.mfh5', tmp_path / 'packed.ms').out == str(tmp_path / 'packed.ms')
    assert h5bridge.verify(source, tmp_path / 'packed.ms', bytes=True).equal
