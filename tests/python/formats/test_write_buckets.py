"""StandardStMan and IncrementalStMan written by this crate: python-casacore reads them, changes them, and we read again.

H5BRIDGE_LONG=1 and H5BRIDGE_SEED: support.seeds."""
import os
import random
import struct
import subprocess
import sys

import casacore.tables as ct
import numpy as np
import pytest

import compare
import support
from writing import Script, ScriptError, column, manager

sys.path.insert(0, os.path.join(support.TESTDATA, 'oracle'))
import fingerprint  # noqa: E402

EDITS = 60

DTYPES = {'boolean': '?', 'uchar': 'u1', 'short': 'i2', 'ushort': 'u2', 'int': 'i4', 'uint': 'u4', 'int64': 'i8',
          'float': 'f4', 'double': 'f8', 'complex': 'c8', 'dcomplex': 'c16', 'string': 'O'}


class Model:
    """What a table holds: {column: [cell of each row, None if undefined]}, shapes as in numpy."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.columns, self.cells, self.incremental, self.rows, self.made = {}, {}, set(), 0, 0

    def describe(self):
        """A new column, not yet in the model."""
        pick = self.random
        self.made += 1
        name, dtype = 'C%d' % self.made, pick.choice(list(DTYPES))
        kind = pick.choice(['scalar', 'scalar', 'direct', 'fixed', 'free', 'free'])
        if kind == 'scalar':
            longest = pick.choice([0, 0, 7]) if dtype == 'string' else 0
            return column(name, dtype, max_length=longest)
        if kind == 'free':
            return column(name, dtype, ndim=-1)
        return column(name, dtype, shape=self.shape()[::-1], direct=kind == 'direct')

    def add(self, description):
        self.columns[description['name']] = description
        self.cells[description['name']] = [self.empty(description)] * self.rows

    def standard(self):
        return [name for name in self.columns if name not in self.incremental]

    def empty(self, description):
        if description['kind'] == 'scalar':
            return np.zeros((), DTYPES[description['type']]) if description['type'] != 'string' else np.array('', 'O')
        if description['shape'] is None:
            return None
        return np.full(description['shape'][::-1], '' if description['type'] == 'string' else 0,
                       DTYPES[description['type']])

    def shape(self):
        return [self.random.randint(1, 4) for _ in range(self.random.randint(1, 3))]

    def array(self, description, shape):
        pick, count = self.random, int(np.prod(shape))
        few = pick.random() < 0.5       # so that neighbours are often the same
        numbers = [pick.randrange(3) if few else pick.randrange(1 << 30) for _ in range(count)]
        if description['type'] == 'string':
            longest = description.get('max_length') or pick.choice([3, 12, 300])
            values = ['abc'[number % 3] * (number % (longest + 1)) for number in numbers]
        else:
            values = np.array(numbers).astype(DTYPES[description['type']])
        array = np.empty(count, DTYPES[description['type']])
        array[:] = values
        return array.reshape(shape)

    def value(self, name, row):
        """A new value for a cell."""
        description, old = self.columns[name], self.cells[name][row]
        free = description['kind'] == 'array' and description['shape'] is None
        return self.array(description, self.shape() if free and (old is None or self.random.random() < 0.3)
                          else old.shape)

    def add_rows(self, count):
        self.rows += count
        for name, description in self.columns.items():
            self.cells[name] += [self.empty(description)] * count

    def remove_row(self, row):
        self.rows -= 1
        for cells in self.cells.values():
            del cells[row]

    def check(self, path, rows=None):
        """Compares with what python-casacore reads."""
        with ct.table(path, ack=False) as table:
            assert table.nrows() >= self.rows and set(table.colnames()) == set(self.columns)
            for name, description in self.columns.items():
                for row, expected in enumerate(self.cells[name]):
                    assert table.iscelldefined(name, row) == (expected is not None), (name, row)
                    if expected is None:
                        continue
                    found = table.getcell(name, row)
                    if isinstance(found, dict):     # an array of strings
                        found = np.array(found['array'], 'O').reshape(found['shape'])
                    found = np.asarray(found, 'O' if description['type'] == 'string' else None)
                    assert found.shape == expected.shape and (found == expected).all(), (description, row)


def edit(model, script):
    """One random operation of the writer."""
    pick = model.random
    choice = pick.randrange(20)
    if choice == 0 or model.rows == 0:
        count = pick.randint(1, 40)
        script.add_rows(count)
        model.add_rows(count)
    elif choice == 1:
        row = pick.randrange(model.rows)
        script.remove_row(row)
        model.remove_row(row)
    elif choice == 2:
        description = model.describe()
        script.add_column(description)
        model.add(description)
    elif choice == 3 and len(model.standard()) > 1:
        # IncrementalStMan cannot, neither here nor in casacore
        name = pick.choice(model.standard())
        script.remove_column(name)
        del model.columns[name], model.cells[name]
    else:
        name, row = pick.choice(list(model.columns)), pick.randrange(model.rows)
        description = model.columns[name]
        value = model.value(name, row)
        if description['kind'] == 'scalar':
            count = pick.randint(1, model.rows - row)
            values = [value] + [model.value(name, row + i) for i in range(1, count)]
            script.put(name, row, np.array([v.item() for v in values], DTYPES[description['type']]))
            model.cells[name][row:row + count] = values
        elif pick.random() < 0.3 and model.cells[name][row] is not None:
            old = model.cells[name][row].copy()
            start = [pick.randrange(extent) for extent in old.shape]
            shape = [pick.randint(1, extent - first) for extent, first in zip(old.shape, start)]
            part = model.array(description, shape)
            script.put_part(name, row, start, part)
            old[tuple(slice(first, first + extent) for first, extent in zip(start, shape))] = part
            model.cells[name][row] = old
        else:
            script.put_cell(name, row, value)
            model.cells[name][row] = value


def put(table, name, description, row, value):
    """By python-casacore."""
    if description['kind'] == 'scalar':
        table.putcell(name, row, value.item())
    elif description['type'] == 'string':
        table.putcell(name, row, {'shape': list(value.shape), 'array': value.reshape(-1).tolist()})
    else:
        table.putcell(name, row, value)


def shared(model, description):
    """Whether rows may share an array: casacore writes into it although other rows have it, also in its own tables."""
    fixed = description['kind'] == 'array' and description['shape'] is not None and not description['direct']
    return fixed and description['name'] in model.incremental


def change(model, path):
    """What python-casacore does to a table that we wrote."""
    pick = model.random
    with ct.table(path, readonly=False, ack=False) as table:
        names = [name for name, c in model.columns.items() if not shared(model, c)]
        for _ in range(30):
            name, row = pick.choice(names), pick.randrange(model.rows)
            value = model.value(name, row)
            put(table, name, model.columns[name], row, value)
            model.cells[name][row] = value
        removed = sorted(pick.sample(range(model.rows), min(3, model.rows - 1)), reverse=True)
        table.removerows(removed)
        for row in removed:
            model.remove_row(row)
    # opened again: IncrementalStMan only then knows how many rows there are to begin with
    with ct.table(path, readonly=False, ack=False) as table:
        count = pick.randint(1, 70)
        table.addrows(count)
        first = model.rows
        model.add_rows(count)
        for name, description in model.columns.items():
            for row in range(first, model.rows):
                value = model.value(name, row)
                put(table, name, description, row, value)
                model.cells[name][row] = value
        table.addcols(ct.maketabdesc([ct.makescacoldesc('NEW', 0, datamanagertype='StandardStMan',
                                                        datamanagergroup='standard')]))
        description = column('NEW', 'int')
        model.add(description)
        for row in range(model.rows):
            model.cells['NEW'][row] = np.array(row, 'i4')
            table.putcell('NEW', row, row)


@pytest.mark.parametrize('seed', support.seeds(0, 24, 200))
def test_casacore_reads_and_changes(tmp_path, seed, counts):
    model, path = Model(seed), str(tmp_path / 'x.tab')
    pick = model.random
    first = [model.describe() for _ in range(pick.randint(2, 8))]
    split = pick.randint(1, len(first))
    standard, incremental = first[:split], first[split:]
    sizes = [{}, {'BUCKETROWS': 5}, {'BUCKETSIZE': 2500}][seed % 3]
    managers = [manager('StandardStMan', 'standard', [c['name'] for c in standard], **sizes)]
    if incremental:
        managers.append(manager('IncrementalStMan', 'incremental', [c['name'] for c in incremental],
                                BUCKETSIZE=[32768, 12000][seed % 2]))
    model.incremental = {c['name'] for c in incremental}
    for description in first:
        model.add(description)
    with Script(path, columns=first, managers=managers, order=['little', 'big'][seed // 2 % 2]) as script:
        for _ in range(EDITS):
            edit(model, script)
        if model.rows == 0:
            script.add_rows(9)
            model.add_rows(9)
    model.check(path)
    # the changes want to go into the manager that we made
    with ct.table(path, ack=False) as table:
        kept = {m['NAME'] for m in table.getdminfo().values()}
    if 'standard' in kept:
        change(model, path)
        model.check(path)
    compare.digests(support.digest(path), {'.': fingerprint.table_fingerprint(path)}, counts, path)


SIZES = [{}, {'BUCKETROWS': 7}, {'BUCKETROWS': 10000}, {'BUCKETSIZE': 1}, {'BUCKETSIZE': 5000}, {'BUCKETSIZE': 40000}]


@pytest.mark.parametrize('order', ['little', 'big'])
@pytest.mark.parametrize('size', SIZES)
def test_same_bytes_as_casacore(tmp_path, order, size):
    """StandardStMan as casacore lays it out, filled in the same order."""
    rows = 300
    numbers = np.arange(rows)
    with Script(tmp_path / 'ours', columns=[column('I', 'int'), column('B', 'boolean'), column('S', 'string'),
                                            column('D', 'double', shape=[2, 3], direct=True), column('V', 'short', ndim=1)],
                managers=[manager('StandardStMan', 'ssm', ['I', 'B', 'S', 'D', 'V'], **size)], order=order) as script:
        # the second ones fill the last bucket up
        script.add_rows(3)
        script.add_rows(rows - 3)
        script.put('I', 0, numbers)
        script.put('B', 0, numbers % 3 == 0)
        script.put('S', 0, ['x' * (i % 23) for i in range(rows)])
        script.put_rows('D', 0, np.arange(rows * 6.).reshape(rows, 3, 2))
        for row in range(0, rows, 2):
            script.put_cell('V', row, np.arange(row % 5 * 4 + 4, dtype='i2'))
    description = ct.maketabdesc([
        ct.makescacoldesc('I', 0), ct.makescacoldesc('B', False), ct.makescacoldesc('S', ''),
        ct.makearrcoldesc('D', 0., shape=[3, 2], options=5), ct.makearrcoldesc('V', 0, ndim=1, valuetype='short')])
    theirs = ct.table(str(tmp_path / 'theirs'), description, nrow=rows, ack=False, endian=order, dminfo={
        '*1': {'TYPE': 'StandardStMan', 'NAME': 'ssm', 'SEQNR': 0, 'COLUMNS': ['I', 'B', 'S', 'D', 'V'], 'SPEC': size}})
    theirs.putcol('I', numbers)
    theirs.putcol('B', numbers % 3 == 0)
    theirs.putcol('S', ['x' * (i % 23) for i in range(rows)])
    theirs.putcol('D', np.arange(rows * 6.).reshape(rows, 3, 2))
    for row in range(0, rows, 2):
        theirs.putcell('V', row, np.arange(row % 5 * 4 + 4, dtype='i2'))
    theirs.close()
    with ct.table(str(tmp_path / 'ours'), ack=False) as ours, ct.table(str(tmp_path / 'theirs'), ack=False) as theirs:
        assert ours.getdminfo()['*1']['SPEC'] == theirs.getdminfo()['*1']['SPEC']
    for name in ('table.f0', 'table.f0i'):
        assert_same_file(tmp_path, name)


@pytest.mark.parametrize('order', ['little', 'big'])
def test_same_bytes_as_casacore_incremental(tmp_path, order):
    """IncrementalStMan filled row by row."""
    rows = 4000
    with Script(tmp_path / 'ours', columns=[column('I', 'int'), column('D', 'double'), column('B', 'boolean')],
                managers=[manager('IncrementalStMan', 'ism', ['I', 'D', 'B'])], order=order) as script:
        script.add_rows(rows)
        for row in range(rows):
            script.put('I', row, [row])
            script.put('D', row, [row // 7 * 1.5])
            script.put('B', row, [row % 5 == 0])
    description = ct.maketabdesc([ct.makescacoldesc('I', 0), ct.makescacoldesc('D', 0.), ct.makescacoldesc('B', False)])
    theirs = ct.table(str(tmp_path / 'theirs'), description, nrow=rows, ack=False, endian=order, dminfo={
        '*1': {'TYPE': 'IncrementalStMan', 'NAME': 'ism', 'SEQNR': 0, 'COLUMNS': ['I', 'D', 'B'], 'SPEC': {}}})
    for row in range(rows):
        theirs.putcell('I', row, row)
        theirs.putcell('D', row, row // 7 * 1.5)
        theirs.putcell('B', row, row % 5 == 0)
    theirs.close()
    assert os.path.getsize(tmp_path / 'ours' / 'table.f0') == os.path.getsize(tmp_path / 'theirs' / 'table.f0')


@pytest.mark.parametrize('kind', ['StandardStMan', 'IncrementalStMan'])
def test_casacore_takes_the_buckets_that_are_free(tmp_path, kind):
    path, rows = str(tmp_path / 'x.tab'), 400
    with Script(path, columns=[column('I', 'int'), column('S', 'string')],
                managers=[manager(kind, 'x', ['I', 'S'], BUCKETSIZE=500)]) as script:
        script.add_rows(rows)
        for row in range(rows):
            script.put('I', row, [row])
        script.put('S', 0, ['%030d' % row for row in range(rows)])
        if kind == 'StandardStMan':
            script.add_column(column('GONE', 'dcomplex', shape=[5], direct=True), manager(kind, 'x'))
            script.remove_column('GONE')
        for _ in range(300):
            script.remove_row(50)
    size = os.path.getsize(path + '/table.f0')
    with ct.table(path, readonly=False, ack=False) as table:
        assert table.getcol('I').tolist() == list(range(50)) + list(range(350, 400))
        table.addrows(250)
        for row in range(250):
            table.putcell('I', 100 + row, 1000 + row)
            table.putcell('S', 100 + row, '%030d' % (1000 + row))
    # the index of an IncrementalStMan may become longer
    assert os.path.getsize(path + '/table.f0') <= size + (0 if kind == 'StandardStMan' else 400)
    expected = [*range(50), *range(350, 400), *range(1000, 1250)]
    with ct.table(path, ack=False) as table:
        assert table.getcol('I').tolist() == expected
        assert table.getcol('S') == ['%030d' % number for number in expected]


def test_bucket_size_that_casacore_chooses(tmp_path):
    """IncrementalStMan with BUCKETSIZE 0."""
    for count in 3, 25, 300, 3000:
        names = ['C%d' % i for i in range(count)]
        indirect = [name for i, name in enumerate(names) if i % 3]
        with Script(tmp_path / ('ours%d' % count), columns=[column(n, 'float', ndim=1) if n in indirect else
                                                            column(n, 'string') for n in names],
                    managers=[manager('IncrementalStMan', 'ism', names, BUCKETSIZE=0)]):
            pass
        description = ct.maketabdesc([ct.makearrcoldesc(n, 0., ndim=1, valuetype='float') if n in indirect else
                                      ct.makescacoldesc(n, '') for n in names])
        ct.table(str(tmp_path / ('theirs%d' % count)), description, ack=False, dminfo={
            '*1': {'TYPE': 'IncrementalStMan', 'NAME': 'ism', 'SEQNR': 0, 'COLUMNS': names,
                   'SPEC': {'BUCKETSIZE': 0}}}).close()
        sizes = []
        for whose in 'ours', 'theirs':
            with ct.table(str(tmp_path / ('%s%d' % (whose, count))), ack=False) as table:
                sizes.append(table.getdminfo()['*1']['SPEC']['BUCKETSIZE'])
        assert sizes[0] == sizes[1], count


FILL = """
import sys
import casacore.tables as ct
path, size, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
description = ct.maketabdesc([ct.makearrcoldesc('A', 0., shape=[10], options=5), ct.makescacoldesc('S', '')])
table = ct.table(path, description, nrow=3, ack=False, dminfo={
    '*1': {'TYPE': 'IncrementalStMan', 'NAME': 'ism', 'SEQNR': 0, 'COLUMNS': ['A', 'S'], 'SPEC': {'BUCKETSIZE': size}}})
for row in range(3):
    table.putcell('A', row, [row + 1.] * 10)
    table.putcell('S', row, chr(97 + row) * length)
table.close()
"""


def test_a_row_that_fits_no_bucket(tmp_path):
    """IncrementalStMan: buckets do not grow, neither in casacore, which fails an assertion or crashes, nor here."""
    def ours(name, size, length):
        array = column('A', 'double', shape=[10], direct=True)
        with Script(tmp_path / name, columns=[array, column('S', 'string')],
                    managers=[manager('IncrementalStMan', 'ism', ['A', 'S'], BUCKETSIZE=size)]) as script:
            script.add_rows(3)
            for row in range(3):
                script.put_cell('A', row, np.full(10, row + 1.))
                script.put('S', row, [chr(97 + row) * length])

    def theirs(name, size, length):
        words = [sys.executable, '-c', FILL, str(tmp_path / name), str(size), str(length)]
        return subprocess.run(words, capture_output=True).returncode == 0

    # the offset of the index, then for each column a counter, a row (casacore reckons 8 bytes), an offset and the value
    empty, longest = 4 + 2 * (4 + 12) + 80 + 4, 400
    ours('ours', empty + longest, longest)
    assert theirs('theirs', empty + longest, longest)
    for name in 'ours', 'theirs':
        with ct.table(str(tmp_path / name), ack=False) as table:
            assert table.getcol('S') == [letter * longest for letter in 'abc']
            assert table.getcol('A').tolist() == [[row + 1.] * 10 for row in range(3)]
            assert table.getdminfo()['*1']['SPEC']['BUCKETSIZE'] == empty + longest
    assert os.path.getsize(tmp_path / 'ours/table.f0') == os.path.getsize(tmp_path / 'theirs/table.f0')
    # a byte less: the values, or not even those of a table without rows
    for size, length in (empty + longest - 1, longest), (empty - 1, 0):
        with pytest.raises(ScriptError, match='^Limit.* take %d bytes, but a bucket has %d' % (empty + length, size)):
            ours('small%d' % size, size, length)
        assert not theirs('small_theirs%d' % size, size, length)


def assert_same_file(folder, name):
    ours, theirs = (np.fromfile(folder / which / name, 'u1') for which in ('ours', 'theirs'))
    assert len(ours) == len(theirs), name
    if name == 'table.f0':
        # casacore leaves old bytes behind the strings of a bucket
        for unused in heap_tails(ours.tobytes()):
            ours[unused] = theirs[unused] = 0
    assert not (ours != theirs).any(), '%s from byte %d on' % (name, np.argmax(ours != theirs))


def heap_tails(file):
    """Where the buckets of the string heap have bytes that nothing uses."""
    little = file[25] == 3      # the version: little-endian tables have another one
    size, _, _, _, _, _, _, _, last = struct.unpack_from('<IIIIiIiIi' if little else '>IIIIiIiIi', file,
                                                         30 if little else 29)
    # the heap is between the buckets with rows, which the index counts, and the index
    rows, = struct.unpack_from('<I' if little else '>I', file, file.index(b'SSMIndex') + 12)
    for bucket in range(rows, last + 1):
        start = 512 + bucket * size
        used, = struct.unpack_from('>I', file, start + 4)
        yield slice(start + 16 + used, start + size)
