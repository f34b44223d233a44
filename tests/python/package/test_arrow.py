"""Tables in pyarrow, polars, duckdb and pandas: every column of testdata and the corpus is equal to what numpy has, which test_package
compares with python-casacore."""
import os
import subprocess
import sys

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import h5bridge
import support

DEMO = support.own_copy('demo', 'demo.ms')
# more rows than fit in memory, none of them stored
ENDLESS = ('rows64',)
# elements of a column, of which Python objects are made eight times
MANY = 20_000


def plain(value):
    """A cell as lists, numbers, strings and None, with complex numbers as pairs and a NaN as the word."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, dict):
        return tuple(plain(part) for part in value.values())
    if isinstance(value, np.ndarray) and value.ndim or isinstance(value, (list, tuple)) or type(value).__name__ == 'Series':
        return [plain(part) for part in value]
    value = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
    if isinstance(value, complex):
        return (plain(value.real), plain(value.imag))
    return 'nan' if value != value else value


def expected(column):
    return [plain(cell) for cell in column.cells()]


def is_compared(column):
    """Scalars and arrays of one shape; records are JSON, judged elsewhere."""
    return column.type != 'record' and (column.is_scalar or None not in column.cell_shape)


def is_utf8(cells):
    """Whether strings have no surrogates, which stand for bytes that are not UTF-8."""
    if isinstance(cells, list):
        return all(map(is_utf8, cells))
    return cells is None or not any('\udc80' <= letter <= '\udcff' for letter in cells)


def check_table(table, counts, many=MANY):
    """Compares columns of at most MANY elements cell by cell, of others the elements if they have one shape."""
    for name, column in table.items():
        try:
            column.defined()
        except h5bridge.UnsupportedError:
            counts['columns that are not evaluated'] += 1
            continue
        view = table.columns(name)
        count = np.maximum(column.shapes(), 0).prod(axis=1).sum()
        if count > many and is_compared(column):
            check_elements(view, column, counts)
            continue
        if count > 10 * MANY:
            counts['large ragged columns left out'] += 1
            continue
        cells = expected(column)
        if column.type == 'string' and not is_utf8(cells):
            with pytest.raises(h5bridge.UsageError, match='UTF-8'):
                view.to_arrow()
            with pytest.raises(ValueError, match='UTF-8'):
                pa.table(view)
            counts['columns that are not UTF-8'] += 1
            continue
        arrow = pa.table(view)
        arrow.validate(full=True)
        assert arrow.num_rows == table.nrows and pa.schema(view) == arrow.schema
        if not is_compared(column):
            compare_ragged(column, arrow.column(0).to_pylist(), cells, counts)
            continue
        assert [plain(cell) for cell in arrow.column(0).to_pylist()] == cells, name
        counts['cells'] += len(cells)
        if arrow.num_rows == 0 or 0 in column.cell_shape:
            counts['columns without elements'] += 1
            continue
        assert [plain(cell) for cell in polars.DataFrame(view).to_series().to_list()] == cells, name
        found = duckdb.sql('select * from view').fetchall()
        assert [plain(cell) for cell, in found] == cells, name
        frame = view.to_pandas()
        assert [plain(cell) for cell in frame[name]] == [cell if cell is not None or frame[name].dtype == object else 'nan' for cell in cells]
        counts['columns'] += 1


def compare_ragged(column, found, cells, counts):
    if column.type == 'record':
        assert [cell is None for cell in found] == [cell is None for cell in cells]
        return
    for ours, cell in zip(found, column.cells()):
        if isinstance(ours, dict) and 'shape' in ours:
            ours = None if cell is None else np.array([plain(one) for one in ours['values']], object).reshape(
                *ours['shape'], *([2] if column.dtype.kind == 'c' and len(ours['values']) else [])).tolist()
            cell = None if cell is None else np.array([list(one) if isinstance(one, tuple) else one for one in map(plain, np.ravel(cell))],
                                                      object).reshape(*np.shape(cell), *([2] if column.dtype.kind == 'c' and np.size(cell) else [])
                                                                      ).tolist()
            assert ours == cell, column.name
        else:
            assert plain(ours) == plain(cell), column.name
    counts['ragged columns'] += 1


@pytest.mark.parametrize('case,name', [entry for entry in support.some_convertible() if entry[0] not in ENDLESS])
def test_testdata(case, name, counts):
    with h5bridge.open_table(os.path.join(support.TESTDATA, case, name)) as table:
        for opened in (table, *table.subtables.values()):
            check_table(opened, counts)


def elements(array):
    """The elements of an array of Arrow as numpy has them, one after the other, without undefined cells."""
    array = array.combine_chunks().drop_null()
    while pa.types.is_fixed_size_list(array.type) or pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        array = array.flatten()
    if pa.types.is_struct(array.type):
        # a sum of both parts would make NaN of infinities
        found = np.empty(len(array), 'c8' if array.type.field(0).type == pa.float32() else 'c16')
        found.real, found.imag = (part.to_numpy(zero_copy_only=False) for part in array.flatten())
        return found
    return array.to_numpy(zero_copy_only=False)


def check_elements(view, column, counts):
    """Scalars and arrays of one shape, without a Python object for each cell."""
    defined = column.defined()
    expected = column.read(defined).ravel()
    if column.type == 'string' and not is_utf8(expected.tolist()):
        counts['columns that are not UTF-8'] += 1
        return
    found = {'pyarrow': pa.table(view), 'polars': polars.DataFrame(view).to_arrow()}
    # duckdb makes room for 2048 cells of one shape, however few there are
    if expected.nbytes // max(defined.sum(), 1) * 2048 < 1 << 30:
        found['duckdb'] = duckdb.sql('select * from view').to_arrow_table()
    else:
        counts['columns with cells too large for duckdb'] += 1
    for library, arrow in found.items():
        assert arrow.column(0).null_count == (~defined).sum(), (library, column.name)
        np.testing.assert_array_equal(elements(arrow.column(0)), expected, (library, column.name))
    counts['columns by elements'] += 1


@pytest.mark.parametrize('case,name', [entry for entry in support.some_convertible() if entry[0] not in ENDLESS])
def test_elements(case, name, counts):
    """All types, and undefined cells, as columns with many elements are compared."""
    with h5bridge.open_table(os.path.join(support.TESTDATA, case, name)) as table:
        check_table(table, counts, many=0)


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing())
@pytest.mark.parametrize('entry', support.corpus_sample(24), ids=lambda entry: entry['name'])
def test_corpus(entry, tmp_path, counts):
    tables = entry.get('tables', {})
    folder = support.unpack(entry, tmp_path)
    for root in support.roots(tables):
        if support.outcome(tables, root)[0] != {support.DONE}:
            continue
        with h5bridge.open_table(os.path.join(folder, root), lock=False) as table:
            for opened in (table, *table.subtables.values()):
                check_table(opened, counts)


def test_views_and_native_files(tmp_path):
    h5bridge.to_hdf5(DEMO, tmp_path / 'a.h5')
    for path in (DEMO, tmp_path / 'a.h5'):
        with h5bridge.open_table(path) as opened:
            t = opened[200:3:-7][['TIME', 'ANTENNA1', 'UVW']]
            rows = np.arange(200, 3, -7)
            total, = duckdb.sql('select sum(UVW[3]) from t where ANTENNA1 = 0').fetchall()[0]
            mask = opened['ANTENNA1'][:][rows] == 0
            assert total == pytest.approx(opened['UVW'][:][rows][mask, 2].sum())
            assert t.to_pandas().index.tolist() == rows.tolist()
            assert polars.DataFrame(t)['TIME'].to_list() == opened['TIME'][:][rows].tolist()
            assert pandas.DataFrame.from_arrow(t)['TIME'].tolist() == opened['TIME'][:][rows].tolist()


def test_fields_say_units():
    with h5bridge.open_table(DEMO) as table:
        field = table.to_arrow().schema.field('TIME')
    assert field.metadata == {b'unit': b's', b'measure': b'epoch', b'frame': b'UTC'}


def test_batches_are_bounded():
    with h5bridge.open_table(DEMO) as table:
        view = table.columns('DATA', 'TIME')
        batches = list(view.to_batches(max_bytes=20_000))
        assert len(batches) > 5 and max(batch.nbytes for batch in batches) <= 20_000
        assert pa.Table.from_batches(batches).equals(view.to_arrow())
        ragged = list(table.columns('FLAG_CATEGORY', 'SIGMA_SPECTRUM').to_batches(max_bytes=5_000))
        assert sum(batch.num_rows for batch in ragged) == 210


def test_more_values_than_offsets_count_are_refused(monkeypatch):
    monkeypatch.setattr('h5bridge._arrow._MAX_VALUES', 100)
    with h5bridge.open_table(support.own_copy('twospw', 'twospw.ms')) as table:
        with pytest.raises(h5bridge.UsageError, match='Arrow has 100 at most'):
            table.columns('DATA').to_arrow()


# not `getrusage`: a new process has its maximum from the one that starts it
PEAK = '''
def peak():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
'''


def test_memory_is_bounded_by_batches(big_ms):
    """A process that goes through all batches stays far below the size of the columns."""
    script = '''
import sys, h5bridge, pyarrow
table = h5bridge.open_table(sys.argv[1]).columns("DATA")
read = lambda reader: sum(batch.nbytes for batch in reader)
small = read(table[:50].to_batches(max_bytes=1 << 20))
before = peak()
total = read(pyarrow.RecordBatchReader.from_stream(table) if len(sys.argv) > 2 else table.to_batches(max_bytes=1 << 20))
print(total, peak() - before)
'''
    done = subprocess.run([sys.executable, '-c', PEAK + script, big_ms], capture_output=True, text=True, check=True)
    total, grown = map(int, done.stdout.split())
    assert total > 30e6 and grown < total / 2, (total, grown)


OF_BATCHES = '''
import sys, h5bridge, pyarrow
rows = size = total = 0
for batch in pyarrow.RecordBatchReader.from_stream(h5bridge.open_table(sys.argv[1])):
    rows, size, total = rows + batch.num_rows, size + batch.nbytes, total + batch["ANTENNA1"].to_numpy().sum()
print(rows, size, total, peak())
'''


@pytest.mark.night('a table of 400 MB')
def test_ten_million_rows_fit_in_256_megabytes(ten_million):
    """A whole process, Python and pyarrow included."""
    done = subprocess.run([sys.executable, '-c', PEAK + OF_BATCHES, ten_million], capture_output=True, text=True, check=True)
    rows, size, total, peak = map(int, done.stdout.split())
    assert (rows, size, total) == (10**7, 40 * 10**7, 10**7 // 64 * sum(range(64)))
    assert peak < 256e6


def test_pyarrow_is_missed_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    with h5bridge.open_table(DEMO) as table:
        for call in (table.to_arrow, table.to_batches, table.__arrow_c_stream__, table['TIME'].to_arrow):
            with pytest.raises(ImportError, match=r"pip install 'h5bridge\[arrow\]'"):
                call()


def test_nothing_optional_is_imported():
    script = ('import sys, h5bridge; t = h5bridge.open_table(sys.argv[1]); t["TIME"][:], repr(t), t[0:2]; '
              'print(sorted({"pyarrow", "pandas", "polars", "astropy", "xarray", "duckdb"} & set(sys.modules)))')
    found = subprocess.run([sys.executable, '-c', script, DEMO], capture_output=True, text=True, check=True)
    assert found.stdout == '[]\n'
