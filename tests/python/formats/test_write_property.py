"""Random tables through the writing API: random columns in random managers, random operations, a dictionary as model.

python-casacore reads what came out. H5BRIDGE_LONG=1 and H5BRIDGE_SEED: support.seeds."""
import os
import random
import sys

import casacore.tables as ct
import numpy as np
import pytest

import support
from writing import Script, ScriptError, column, manager

sys.path.insert(0, os.path.join(support.TESTDATA, 'oracle'))
import fingerprint  # noqa: E402

TYPES = {'boolean': '?', 'uchar': 'u1', 'short': 'i2', 'int': 'i4', 'uint': 'u4', 'int64': 'i8', 'float': 'f4',
         'double': 'f8', 'complex': 'c8', 'dcomplex': 'c16', 'string': object}


class Model:
    """A table as lists of cells: None where a cell is undefined, arrays slowest axis first."""

    def __init__(self, rng):
        self.rng = rng
        self.columns = {}       # name: description
        self.cells = {}         # name: list of arrays
        self.rows = 0
        self.made = 0

    # ---- making things up

    def column(self, tiled=None):
        """A column; TILED: for this tiled manager."""
        rng = self.rng
        self.made += 1
        name = 'C%d' % self.made
        dtype = rng.choice([t for t in TYPES if not (tiled and t == 'string')])
        if not tiled and rng.random() < .35:
            return column(name, dtype, max_length=rng.choice([0, 0, 0, 8]) if dtype == 'string' else 0)
        ndim = rng.randint(1, 3)
        shape = [rng.randint(1, 4) for _ in range(ndim)]
        if tiled == 'TiledColumnStMan' or rng.random() < .3:
            direct = not tiled and dtype != 'string' and rng.random() < .6
            return column(name, dtype, shape=shape, direct=direct)
        return column(name, dtype, ndim=ndim if tiled or rng.random() < .7 else -1)

    def managers(self):
        """Managers with columns of their own."""
        rng = self.rng
        found = []
        for number in range(rng.randint(1, 4)):
            kind = rng.choice(['StandardStMan', 'StandardStMan', 'IncrementalStMan', 'StManAipsIO', 'TiledColumnStMan',
                               'TiledShapeStMan', 'TiledCellStMan'])
            tiled = kind if kind.startswith('Tiled') else None
            described = [self.column(tiled) for _ in range(1 if tiled else rng.randint(1, 4))]
            parameters = {}
            if tiled:
                ndim = len(described[0]['shape'] or []) or described[0]['ndim']
                axes = ndim + (kind != 'TiledCellStMan')
                parameters['DEFAULTTILESHAPE'] = [rng.randint(1, 4) for _ in range(axes)]
            elif kind != 'StManAipsIO' and rng.random() < .5:
                size = rng.choice([512, 1000, 4096])
                # a bucket that does not hold a row is refused, here and by casacore: test_write_buckets
                if kind == 'IncrementalStMan':
                    size = max(size, 4 + sum(16 + self.stored_bytes(c) for c in described))
                parameters['BUCKETSIZE'] = size
            found.append((described, manager(kind, 'M%d' % number, [c['name'] for c in described], **parameters)))
        return found

    def stored_bytes(self, description):
        """Of the longest value that an IncrementalStMan may have to store for a cell."""
        dtype = description['type']
        if description['kind'] == 'array' and not description.get('direct'):
            return 8
        if dtype == 'string':
            return 4 + (description.get('max_length') or 30 * len('☃'.encode()))
        count = int(np.prod(description['shape'] or [1]))
        return -(-count // 8) if dtype == 'boolean' else count * np.dtype(TYPES[dtype]).itemsize

    def element(self, dtype, shape, longest=0):
        rng = self.rng
        if dtype == 'string':
            array = np.empty(shape, dtype=object)
            flat = array.reshape(-1)
            for i in range(flat.size):
                flat[i] = ''.join(rng.choice('abcäß☃ ') for _ in range(rng.choice([0, 1, 3, 9, 30])))
                while longest and len(flat[i].encode()) > longest:
                    flat[i] = flat[i][:-1]
            return flat.reshape(shape)
        numbers = np.array([rng.randrange(0, 256) for _ in range(int(np.prod(shape, dtype=int)))]).reshape(shape)
        if dtype == 'boolean':
            return numbers > 127
        if dtype in ('complex', 'dcomplex'):
            return (numbers - .25j * numbers).astype(TYPES[dtype])
        return numbers.astype(TYPES[dtype])

    def shape(self, description):
        """Slowest axis first; () for scalars."""
        if description['kind'] == 'scalar':
            return ()
        if description['shape']:
            return tuple(description['shape'][::-1])
        ndim = description['ndim'] or self.rng.randint(1, 3)
        return tuple(self.rng.randint(1, 4) for _ in range(ndim))

    def empty(self, description):
        """A cell that nobody wrote; 'any' where managers may differ."""
        if description['kind'] == 'scalar':
            return np.zeros((), TYPES[description['type']]) if description['type'] != 'string' else np.array('', object)
        if description['shape'] and description.get('direct'):
            return np.zeros(self.shape(description), TYPES[description['type']])
        return 'any' if description['shape'] else None

    # ---- operations

    def add(self, description):
        self.columns[description['name']] = description
        self.cells[description['name']] = [self.empty(description) for _ in range(self.rows)]

    def add_rows(self, count):
        self.rows += count
        for name, description in self.columns.items():
            self.cells[name] += [self.empty(description) for _ in range(count)]

    def step(self, script):
        rng = self.rng
        what = rng.choice(['rows', 'put', 'put', 'put', 'put', 'put', 'rows_of_cells', 'part', 'shape', 'remove_row',
                           'remove_row', 'add_column', 'remove_column'])
        name = rng.choice(list(self.columns)) if self.columns else None
        description = self.columns.get(name)
        if what == 'rows':
            count = rng.choice([1, 2, 5, 40])
            script.add_rows(count)
            self.add_rows(count)
        elif what == 'add_column':
            description = self.column()
            spec = rng.choice([None, manager('StandardStMan', 'M0'), manager('IncrementalStMan', 'new'),
                               manager('StManAipsIO', 'old')])
            script.add_column(description, spec)
            self.add(description)
        elif name is None:
            return
        elif what == 'remove_column':
            try:
                script.remove_column(name)
            except ScriptError as error:
                assert str(error).startswith('Unsupported'), error
                return
            del self.columns[name], self.cells[name]
        elif self.rows == 0:
            return
        elif what == 'remove_row':
            row = rng.randrange(self.rows)
            try:
                script.remove_row(row)
            except ScriptError as error:
                assert str(error).startswith('Unsupported') and 'cannot remove rows' in str(error), error
                return
            self.rows -= 1
            for cells in self.cells.values():
                del cells[row]
        else:
            self.put(script, what, name, description)

    def put(self, script, what, name, description):
        rng, dtype = self.rng, description['type']
        row = rng.randrange(self.rows)
        cells, shape = self.cells[name], self.shape(description)
        longest = description.get('max_length', 0)
        if what == 'rows_of_cells' or not shape:
            count = rng.randint(1, min(self.rows - row, 30))
            block = self.element(dtype, (count,) + shape, longest)
            if rng.random() < .3:
                block[:] = block[0]         # the same for many rows
            (script.put_rows if shape else script.put)(name, row, block)
            for i in range(count):
                cells[row + i] = np.array(block[i], dtype=block.dtype)
        elif what == 'shape':
            script.set_shape(name, row, shape)
            known = cells[row]
            if not isinstance(known, np.ndarray) or known.shape != shape:
                cells[row] = shape          # of any content
        elif what == 'part' and isinstance(cells[row], np.ndarray):
            cell = cells[row]
            start = [rng.randrange(extent) for extent in cell.shape]
            part = self.element(dtype, tuple(rng.randint(1, e - s) for s, e in zip(start, cell.shape)), longest)
            script.put_part(name, row, start, part)
            cells[row] = cell.copy()
            cells[row][tuple(slice(s, s + n) for s, n in zip(start, part.shape))] = part
        else:
            array = self.element(dtype, shape, longest)
            script.put_cell(name, row, array)
            cells[row] = array

    # ---- judging

    def compare(self, path, counts):
        table = ct.table(path, ack=False, readonly=False)
        assert table.nrows() == self.rows
        assert table.colnames() == list(self.columns)
        for name, description in self.columns.items():
            found = table.getcoldesc(name)
            assert found['valueType'] == description['type'], name
            for row, expected in enumerate(self.cells[name]):
                where = '%s row %d' % (name, row)
                if description['kind'] == 'array':
                    defined = table.iscelldefined(name, row)
                    if isinstance(expected, str):
                        continue
                    assert defined == (expected is not None), where
                    if expected is None:
                        continue
                value = table.getcell(name, row)
                if isinstance(value, dict):
                    value = np.array(value['array'], dtype=object).reshape(value['shape'])
                value = np.array(value, dtype=object if description['type'] == 'string' else None)
                if isinstance(expected, tuple):
                    assert value.shape == expected, where
                else:
                    assert value.shape == expected.shape and np.array_equal(value, expected), (where, value, expected)
                counts['cells'] += 1
        # casacore can go on with the table
        table.addrows(3)
        for name, description in self.columns.items():
            shape = self.shape(description)
            if description['type'] != 'string':
                array = self.element(description['type'], shape)
                table.putcell(name, self.rows + 1, array if shape else array.item())
                assert np.array_equal(table.getcell(name, self.rows + 1), array), name
        table.close()


@pytest.mark.parametrize('seed', support.seeds(1, 40, 400))
def test_random_operations(seed, tmp_path, counts):
    rng = random.Random(seed)
    model, path = Model(rng), str(tmp_path / 'x.tab')
    made = model.managers()
    described = [c for columns, _ in made for c in columns]
    rng.shuffle(described)
    with Script(path, columns=described, managers=[spec for _, spec in made],
                order=rng.choice(['big', 'little'])) as script:
        for description in described:
            model.add(description)
        for _ in range(rng.choice([5, 20, 60])):
            model.step(script)
    model.compare(path, counts)
    counts['tables'] += 1
    # and we read the same, also what casacore has added
    found = support.digest(path)['.']
    assert found['nrow'] == model.rows + (3 if model.columns else 0)
    expected = fingerprint.table_fingerprint(path)
    assert found['sha256'] == expected['sha256']
