"""--where: the rows that TaQL selects by the same condition, and all their cells."""
import os
import random
import shlex
import shutil

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import compare
import layout
import support
from support import h5bridge

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')

# ours, and TaQL's
CONDITIONS = [
    ('SCAN_NUMBER == 2', 'SCAN_NUMBER == 2'),
    ('SCAN_NUMBER in 1..3 && ANTENNA1 != ANTENNA2', 'SCAN_NUMBER >= 1 && SCAN_NUMBER < 3 && ANTENNA1 != ANTENNA2'),
    ('SCAN_NUMBER in 2..=3 or ANTENNA1 in [0, 4]', 'SCAN_NUMBER in [2, 3] || ANTENNA1 in [0, 4]'),
    ('SCAN_NUMBER in 2~3', 'SCAN_NUMBER in [2, 3]'),
    ('ANTENNA1 not in [0..3, 5]', 'ANTENNA1 not in [0, 1, 2, 5]'),
    ('FLAG_ROW', 'FLAG_ROW'),
    ('!FLAG_ROW && ANTENNA2 > ANTENNA1', '!FLAG_ROW && ANTENNA2 > ANTENNA1'),
    ('FIELD_ID == "3C286" && SCAN_NUMBER == 1', 'FIELD_ID == 0 && SCAN_NUMBER == 1'),
    ('ANTENNA1 in ["A01", "A03"] && ANTENNA2 != \'A05\'', 'ANTENNA1 in [1, 3] && ANTENNA2 != 5'),
    ('TIME > 4600000030.0', 'TIME > 4600000030.0'),
    ('TIME >= "2004-08-23T17:47:15"', 'TIME >= 23Aug2004/17:47:15'),
    ('TIME < "2004/08/23/17:47:25.5" && EXPOSURE > 0', 'TIME < 23Aug2004/17:47:25.5 && EXPOSURE > 0'),
    ('SCAN_NUMBER == 77', 'SCAN_NUMBER == 77'),
]


def selected(path, taql):
    with ct.table(path, ack=False) as table, table.query(taql) as found:
        return list(found.rownumbers(table)) if found.nrows() else []


@pytest.mark.parametrize('ours, taql', CONDITIONS, ids=[ours for ours, _ in CONDITIONS])
def test_rows_and_cells(ours, taql, tmp_path):
    rows = selected(DEMO, taql)
    assert (len(rows) > 0) == ('77' not in ours) and len(rows) < 210, 'a condition that selects something'
    out = tmp_path / 'out.h5'
    done = h5bridge('to-hdf5', '--where', ours, DEMO, out)
    with h5py.File(out) as file:
        assert file['MAIN/row'][...].tolist() == rows
        assert not compare.compare(DEMO, file, rows=rows)
    support.digest(out)
    # the summary says how to check it, in words that a shell takes
    command = done.stderr.split('next: h5bridge ')[1].splitlines()[0]
    assert 'equal' in h5bridge(*shlex.split(command)).stderr
    h5bridge('verify', DEMO, out, code=support.DIFFERENT)


def test_with_other_options(tmp_path):
    for options in ['--compress none', '--appendable', '--threads 1 --max-memory 64M', '--columns DATA,TIME,FLAG']:
        out = tmp_path / 'out.h5'
        h5bridge('to-hdf5', '--overwrite', '--rows', '20..150', '--where', 'ANTENNA1 == 1', *options.split(), DEMO, out)
        rows = [row for row in selected(DEMO, 'ANTENNA1 == 1') if 20 <= row < 150]
        columns = {'DATA', 'TIME', 'FLAG'} if 'columns' in options else None
        with h5py.File(out) as file:
            assert not compare.compare(DEMO, file, rows=rows, columns=columns), options


def test_of_a_native_file_and_back(tmp_path):
    """The selection of a selection, and a table from it."""
    whole, some, fewer, back = (tmp_path / name for name in ('whole.h5', 'some.h5', 'fewer.h5', 'back.ms'))
    h5bridge('to-hdf5', DEMO, whole)
    h5bridge('to-hdf5', '--where', 'SCAN_NUMBER != 2', whole, some)
    h5bridge('to-hdf5', '--where', 'ANTENNA2 == 3', some, fewer)
    h5bridge('to-ms', fewer, back)
    rows = selected(DEMO, 'SCAN_NUMBER != 2 && ANTENNA2 == 3')
    with ct.table(DEMO, ack=False) as table, ct.table(str(back), ack=False) as found:
        wanted = table.selectrows(rows)
        for column in ('TIME', 'DATA', 'UVW', 'FLAG', 'ANTENNA2'):
            assert np.array_equal(wanted.getcol(column), found.getcol(column)), column


def test_one_spectral_window_becomes_one_array(tmp_path):
    """Shapes that differ among all rows do not among the selected ones."""
    source = os.path.join(support.TESTDATA, 'twospw', 'twospw.ms')
    out = tmp_path / 'out.h5'
    h5bridge('to-hdf5', '--where', 'DATA_DESC_ID == 1', source, out)
    rows = selected(source, 'DATA_DESC_ID == 1')
    with h5py.File(out) as file:
        assert not compare.compare(source, file, rows=rows)
        assert file['MAIN/DATA'].shape[0] == len(rows)


MISTAKES = [
    ('SCAN_NUMBR == 1', 'no scalar column SCAN_NUMBR in MAIN; did you mean SCAN_NUMBER?'),
    ('DATA > 1', 'arrays'),
    ('FIELD_ID == "3C287"', 'did you mean 3C286?'),
    ('FIELD_ID == "Andromeda"', '3C286, target é'),
    ('SCAN_NUMBER = = 1', 'at character 15'),
    ('', 'expected'),
]


@pytest.mark.parametrize('condition, expected', MISTAKES)
def test_mistakes(condition, expected, tmp_path):
    process = h5bridge('to-hdf5', '--where', condition, DEMO, tmp_path / 'out.h5', code=support.USAGE)
    assert expected in process.stderr
    assert not os.listdir(tmp_path)


def test_not_with_restorable_files(tmp_path):
    h5bridge('to-hdf5', '--restorable', '--where', 'FLAG_ROW', DEMO, tmp_path / 'out.h5', code=support.USAGE)
    assert not os.listdir(tmp_path)


# ---- any table ------------------------------------------------------------------------------------------------------

TYPES = ('boolean', 'int', 'float', 'double', 'short', 'uchar')


def scalars(table):
    """Scalar columns whose values compare, with some of their values."""
    found = {}
    for name in table.colnames():
        if table.isscalarcol(name) and table.coldatatype(name) in TYPES:
            if name.isidentifier() and name.lower() not in ('and', 'or', 'not', 'in', 'true', 'false'):
                try:
                    values = table.getcol(name, nrow=min(table.nrows(), 2000))
                except RuntimeError:
                    continue
                found[name] = [value for value in np.unique(values).tolist() if value == value and abs(value) < 1e300]
    return {name: values for name, values in found.items() if values}


def condition(columns, random, depth=0):
    """A condition as we and as TaQL spell it."""
    if depth < 2 and random.random() < 0.5:
        a, b = (condition(columns, random, depth + 1) for _ in range(2))
        kind = random.choice(['&&', '||', '!'])
        return tuple('!(%s)' % x if kind == '!' else '(%s) %s (%s)' % (x, kind, y) for x, y in zip(a, b))
    name = random.choice(sorted(columns))
    value = random.choice(columns[name])
    if isinstance(value, bool):
        return random.choice([(name, name), ('!' + name, '!' + name)])
    value, other = repr(value), repr(random.choice(columns[name]))
    if random.random() < 0.3:
        return '%s in [%s, %s]' % (name, value, other), '(%s == %s || %s == %s)' % (name, value, name, other)
    if random.random() < 0.3:
        return '%s in %s..%s' % (name, value, other), '(%s >= %s && %s < %s)' % (name, value, name, other)
    order = random.choice(['==', '!=', '<', '<=', '>', '>='])
    return ('%s %s %s' % (name, order, value),) * 2


def check_table(path, count, tmp_path, seed):
    """Random conditions on a table; returns how many could be compared."""
    rng = random.Random(seed)
    with ct.table(path, ack=False) as table:
        columns = scalars(table) if table.nrows() else {}
    for number in range(count if columns else 0):
        ours, taql = condition(columns, rng)
        out = tmp_path / 'out.h5'
        name = rng.choice(sorted(columns))
        h5bridge('to-hdf5', '--overwrite', '--tables', 'MAIN', '--columns', name, '--where', ours, path, out)
        with ct.table(path, ack=False) as table, table.query(taql) as found, h5py.File(out) as file:
            wanted = found.getcol(name) if found.nrows() else []
            # casacore numbers the rows of a view as its root does
            if table.partnames() == [os.path.abspath(path)] and found.nrows():
                assert layout.row_scale(file['MAIN'])[...].tolist() == list(found.rownumbers(table)), (path, ours)
            dataset = next(item for item in file['MAIN'].values() if item.attrs.get('ctds_name', item.name[6:]) in
                           (name, name.encode()))
            assert len(dataset) == found.nrows() and np.array_equal(
                np.asarray(dataset[...], dtype='f8'), np.asarray(wanted, dtype='f8'), equal_nan=True), (path, ours, name)
    return len(columns)


def test_testdata(tmp_path):
    found = 0
    for case in ('demo', 'twospw', 'r7_0', 'r7_7', 'ref_tables', 'concat_tables', 'dtypes_all_managers', 'undefined'):
        folder = os.path.join(support.TESTDATA, case)
        for name in sorted(os.listdir(folder)):
            if os.path.exists(os.path.join(folder, name, 'table.dat')):
                found += check_table(os.path.join(folder, name), 6, tmp_path, case + name)
    assert found > 20


@pytest.mark.parametrize('entry', [pytest.param(e, id=e['name']) for e in support.corpus_sample(12)])
@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or '-')
def test_corpus(entry, tmp_path):
    folder = support.unpack(entry, tmp_path)
    for place, _, files in os.walk(folder):
        if 'table.dat' not in files:
            continue
        try:
            ct.table(place, ack=False).close()
        except RuntimeError:
            continue
        check_table(place, 2, tmp_path, entry['name'] + os.path.relpath(place, folder))
    shutil.rmtree(folder)
