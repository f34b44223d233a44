"""Tiled tables that this crate writes: the same files as python-casacore's own, which also goes on with them."""
import glob
import itertools
import os
import sys

import casacore.tables as ct
import numpy as np
import pytest

import support
from writing import Script, ScriptError, column, manager

sys.path.insert(0, os.path.join(support.ROOT, 'testdata', 'oracle'))
import fingerprint  # noqa: E402

DTYPES = {'boolean': '?', 'uchar': 'u1', 'short': 'i2', 'ushort': 'u2', 'int': 'i4', 'uint': 'u4', 'int64': 'i8',
          'float': 'f4', 'double': 'f8', 'complex': 'c8', 'dcomplex': 'c16'}
Table = fingerprint._patch()


def values(rng, dtype, shape):
    if dtype == 'boolean':
        return rng.random(shape) < 0.5
    array = rng.integers(0, 200, shape)
    if 'complex' in dtype:
        array = array + 1j * rng.integers(0, 200, shape)
    return array.astype(DTYPES[dtype])


class Pair:
    """The same table made by this crate and by python-casacore."""

    def __init__(self, folder, kind, columns, order, tile=None, options=0):
        self.ours, self.theirs = str(folder / 'ours.tab'), str(folder / 'theirs.tab')
        names = [c['name'] for c in columns]
        parameters = {} if tile is None else {'DEFAULTTILESHAPE': tile}
        self.script = Script(self.ours, columns=columns, order=order,
                             managers=[manager(kind, 'tiles', names, **parameters)])
        descriptions = []
        for c in columns:
            shape = {'shape': c['shape'][::-1]} if c['shape'] else {'ndim': c['ndim']}
            if c['shape']:
                shape['options'] = 4
            name = {'boolean': 'bool'}.get(c['type'], c['type'])
            descriptions.append(ct.makearrcoldesc(c['name'], 0, valuetype=name, **shape, datamanagertype=kind,
                                                  datamanagergroup='tiles'))
        spec = {} if tile is None else {'DEFAULTTILESHAPE': np.array(tile, 'i4')}
        self.table = Table(self.theirs, ct.maketabdesc(descriptions), nrow=0, ack=False, endian=order,
                           dminfo={'*1': {'TYPE': kind, 'NAME': 'tiles', 'COLUMNS': names, 'SPEC': spec}})

    def add_rows(self, count):
        self.script.add_rows(count)
        self.table.addrows(count)

    def put_cell(self, name, row, array):
        self.script.put_cell(name, row, array)
        self.table.putcell(name, row, array)

    def put_rows(self, name, row, array):
        self.script.put_rows(name, row, array)
        # casacore's TiledCellStMan takes whole columns or single cells only
        for i, cell in enumerate(array):
            self.table.putcell(name, row + i, cell)

    def put_part(self, name, row, start, array):
        self.script.put_part(name, row, start, array)
        end = [s + n - 1 for s, n in zip(start, array.shape)]
        self.table.putcellslice(name, row, array, start, end)

    def close(self):
        with self.script:
            pass
        self.table.close()


def same(ours, theirs):
    """Compares contents, managers, and the bytes of the managers' files."""
    a, b = Table(ours, ack=False), Table(theirs, ack=False)
    assert a.endianformat() == b.endianformat()
    assert str(a.getdminfo()) == str(b.getdminfo())
    a.close(), b.close()
    assert contents(ours) == contents(theirs)
    files = [sorted(os.path.basename(f) for f in glob.glob(path + '/table.f*')) for path in (ours, theirs)]
    assert files[0] == files[1]
    for name in files[0]:
        with open(os.path.join(ours, name), 'rb') as f, open(os.path.join(theirs, name), 'rb') as g:
            assert f.read() == g.read(), name


def contents(path):
    """(rows, fingerprint of each column) as python-casacore reads them, which must be what h5bridge reads."""
    theirs, ours = fingerprint.table_fingerprint(path), support.digest(path)['.']
    columns = [{name: c['sha256'] for name, c in f['columns'].items()} for f in (theirs, ours)]
    assert columns[0] == columns[1] and all(columns[0].values())
    assert theirs['nrow'] == ours['nrow']
    return theirs['nrow'], columns[0]


def random_columns(rng, kind):
    """Columns that share hypercubes; the shapes that their cells may have, slowest axis first."""
    axes = int(rng.integers(1, 4))
    shapes = [[int(n) for n in rng.integers(1, 7, axes)] for _ in range(4)]
    fixed = kind == 'TiledColumnStMan' or rng.random() < 0.25
    if fixed:
        shapes = shapes[:1]
    types = rng.choice(list(DTYPES), int(rng.integers(1, 4)))
    shape = shapes[0][::-1] if fixed else None
    return [column('C%d' % i, str(t), shape=shape, ndim=axes) for i, t in enumerate(types)], shapes


@pytest.mark.parametrize('order', ['little', 'big'])
@pytest.mark.parametrize('kind', ['TiledColumnStMan', 'TiledShapeStMan', 'TiledCellStMan'])
@pytest.mark.parametrize('seed', range(40))
def test_the_files_are_those_of_casacore(tmp_path, kind, order, seed):
    rng = np.random.default_rng(seed)
    columns, shapes = random_columns(rng, kind)
    tile = None if rng.random() < 0.3 else [int(n) for n in rng.integers(0, 5, rng.integers(1, len(shapes[0]) + 3))]
    pair = Pair(tmp_path, kind, columns, order, tile)
    rows, of_row = 0, {}
    for _ in range(int(rng.integers(1, 6))):
        count = int(rng.integers(0, 7))
        pair.add_rows(count)
        rows += count
        for _ in range(int(rng.integers(0, 12)) if rows else 0):
            c = columns[rng.integers(len(columns))]
            row = int(rng.integers(rows))
            shape = of_row.setdefault(row, shapes[rng.integers(len(shapes))])
            pair.put_cell(c['name'], row, values(rng, c['type'], shape))
            start = [int(rng.integers(n)) for n in shape]
            part = [int(rng.integers(1, n - s + 1)) for n, s in zip(shape, start)]
            pair.put_part(c['name'], row, start, values(rng, c['type'], part))
        if rows and rng.random() < 0.5:
            c = columns[rng.integers(len(columns))]
            first = int(rng.integers(rows))
            block = int(rng.integers(1, rows - first + 1))
            shape = of_row.get(first, shapes[rng.integers(len(shapes))])
            # casacore cannot give tiled cells another shape, or confuses them then
            block = range(first, first + block)
            block = list(itertools.takewhile(lambda row: of_row.get(row, shape) == shape, block))
            of_row.update(dict.fromkeys(block, shape))
            block = len(block)
            pair.put_rows(c['name'], first, values(rng, c['type'], [block] + shape))
    pair.close()
    same(pair.ours, pair.theirs)
    # casacore goes on with both
    for path in (pair.ours, pair.theirs):
        rng = np.random.default_rng(seed)
        table = Table(path, readonly=False, ack=False)
        table.addrows(3)
        for row in rng.integers(0, rows + 3, 5):
            c = columns[rng.integers(len(columns))]
            shape = of_row.get(int(row), shapes[0])
            table.putcell(c['name'], int(row), values(rng, c['type'], shape))
        table.addcols(ct.maketabdesc([ct.makescacoldesc('NEW', 0)]))
        table.putcol('NEW', np.arange(rows + 3))
        table.close()
    assert contents(pair.ours) == contents(pair.theirs)
