"""Tiled tables that this crate writes: the same files as python-casacore's own, which also goes on with them.

H5BRIDGE_LONG=1 and H5BRIDGE_SEED: support.seeds."""
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
@pytest.mark.parametrize('seed', support.seeds(0, 15, 100))
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


def test_cells_get_another_shape(tmp_path):
    """In TiledCellStMan only; casacore's other tiled managers refuse."""
    pair = Pair(tmp_path, 'TiledCellStMan', [column('C', 'float', ndim=2)], 'little', [3, 4])
    pair.add_rows(3)
    rng = np.random.default_rng(1)
    for row, shape in [(0, [4, 5]), (1, [2, 2]), (0, [6, 2]), (2, [1, 9]), (1, [7, 7]), (0, [6, 2])]:
        pair.put_cell('C', row, values(rng, 'float', shape))
    pair.close()
    # what a cell left behind is not the same
    assert contents(pair.ours) == contents(pair.theirs)
    assert os.path.getsize(pair.ours + '/table.f0_TSM0') == os.path.getsize(pair.theirs + '/table.f0_TSM0')


@pytest.mark.parametrize('order', ['little', 'big'])
def test_hypercubes_with_ids_coordinates_and_several_row_axes(tmp_path, order):
    """python-casacore cannot make such tables, but reads them."""
    path = str(tmp_path / 'x.tab')
    strings = lambda *names: {'type': 'string', 'shape': [len(names)], 'values': names}     # noqa: E731
    definition = {'ndim': {'type': 'uint', 'values': [3]}, 'data': strings('D', 'B'),
                  'coord': strings('F', '', 'T'), 'id': strings('ID')}
    cube = lambda shape, tile, **more: dict(more, CubeShape=shape, TileShape=tile, CellShape=shape[:1])   # noqa: E731
    cubes = {'*1': cube([5, 3, 4], [2, 3, 2], ID={'ID': 5}),
             '*2': cube([7, 1, 2], [4, 1, 3], ID={'ID': 7}, Extensible=True)}
    rows = {'ROWS': [0, 9], 'CUBES': [0, 1], 'POSITIONS': [1, 0], 'END': 11}
    columns = [column('D', 'complex', ndim=1), column('B', 'boolean', ndim=1), column('F', 'double', ndim=1),
               column('T', 'float'), column('ID', 'int'), column('OTHER', 'int')]
    rng = np.random.default_rng(2)
    cells = {name: [values(rng, dtype, 5 if row < 9 else 7) for row in range(11)]
             for name, dtype in [('D', 'complex'), ('B', 'boolean')]}
    frequencies = {5: np.arange(5) * 1.5, 7: np.arange(7) * 2.5}
    times = np.array([2, 2, 2, 3, 3, 3, 4, 4, 4, 8, 9, 0], 'f4')
    with Script(path, columns=columns, order=order, private_keywords={'Hypercolumn_cubes': definition},
                managers=[manager('TiledDataStMan', 'cubes', ['D', 'B', 'F', 'T', 'ID'],
                                  HYPERCUBES=cubes, ROWMAP=rows)]) as script:
        script.add_rows(12)
        for row in range(11):
            for name in 'D', 'B':
                script.put_cell(name, row, cells[name][row])
            script.put_cell('F', row, frequencies[len(cells['D'][row])])
        script.put('T', 0, times)
        script.put('ID', 0, [5] * 9 + [7] * 2 + [0])
        with pytest.raises(ScriptError, match='^Usage.*row 3: .*another row has another'):
            script.put('ID', 3, [6])
    table = Table(path, ack=False)
    found = table.getdminfo()['*1']['SPEC']['HYPERCUBES']
    assert [c['CubeShape'].tolist() for c in found.values()] == [[5, 3, 4], [7, 1, 2]]
    assert [c['TileShape'].tolist() for c in found.values()] == [[2, 3, 2], [4, 1, 3]]
    for row in range(11):
        for name in 'D', 'B':
            assert np.array_equal(table.getcell(name, row), cells[name][row]), (name, row)
        assert np.array_equal(table.getcell('F', row), frequencies[len(cells['D'][row])])
        assert table.getcell('T', row) == times[row] and table.getcell('ID', row) == (5 if row < 9 else 7)
    with pytest.raises(RuntimeError, match='rownr is too high'):
        table.iscelldefined('D', 11)
    table.close()
    table = Table(path, ack=False, readonly=False)
    table.addrows(2)
    table.putcell('D', 4, cells['D'][0])
    table.close()
    assert np.array_equal(Table(path, ack=False).getcell('D', 4), cells['D'][0])
    assert support.digest(path)['.']['nrow'] == 14


def test_coordinates_never_written_are_0(tmp_path):
    path = str(tmp_path / 'x.tab')
    strings = lambda *names: {'type': 'string', 'shape': [len(names)], 'values': names}     # noqa: E731
    definition = {'ndim': {'type': 'uint', 'values': [2]}, 'data': strings('D'), 'coord': strings('F', 'T'),
                  'id': strings('ID')}
    cubes = {'*1': dict(CubeShape=[5, 3], TileShape=[5, 3], CellShape=[5], ID={'ID': 5})}
    rows = {'ROWS': [0], 'CUBES': [0], 'POSITIONS': [0], 'END': 3}
    columns = [column('D', 'float', ndim=1), column('F', 'double', ndim=1), column('T', 'float'),
               column('ID', 'int')]
    with Script(path, columns=columns, private_keywords={'Hypercolumn_cubes': definition},
                managers=[manager('TiledDataStMan', 'cubes', ['D', 'F', 'T', 'ID'],
                                  HYPERCUBES=cubes, ROWMAP=rows)]) as script:
        script.add_rows(3)
        script.put_cell('D', 1, np.arange(5, dtype='f4'))
    table = Table(path, ack=False)
    assert table.getcell('D', 1).tolist() == [0, 1, 2, 3, 4]
    assert table.getcell('F', 1).tolist() == [0] * 5 and table.getcell('T', 2) == 0


def test_scalars_in_a_hypercube(tmp_path):
    strings = {'type': 'string', 'shape': [2], 'values': ['A', 'B']}
    none = {'type': 'string', 'shape': [0], 'values': []}
    definition = {'ndim': {'type': 'uint', 'values': [1]}, 'data': strings, 'coord': none, 'id': none}
    path = str(tmp_path / 'x.tab')
    with Script(path, columns=[column('A', 'double'), column('B', 'boolean')],
                private_keywords={'Hypercolumn_line': definition},
                managers=[manager('TiledColumnStMan', 'line', ['A', 'B'], DEFAULTTILESHAPE=[8])]) as script:
        script.add_rows(21)
        script.put('A', 0, np.arange(21.))
        script.put('B', 3, [True] * 9)
    table = Table(path, ack=False, readonly=False)
    assert table.getcol('A').tolist() == list(range(21)) and table.getcol('B').sum() == 9
    table.addrows(4)
    table.putcell('A', 24, 5.)
    table.close()
    assert contents(path)[0] == 25


@pytest.mark.parametrize('order', ['little', 'big'])
def test_aipsio(tmp_path, order):
    """StManAipsIO: the file is that of casacore, byte for byte, and casacore goes on with it."""
    ours, theirs = str(tmp_path / 'ours.tab'), str(tmp_path / 'theirs.tab')
    rng = np.random.default_rng(3)
    columns, descriptions = [], []
    for dtype in list(DTYPES) + ['string']:
        name = {'boolean': 'bool'}.get(dtype, dtype)
        columns += [column(dtype, dtype), column(dtype + '_direct', dtype, shape=[3, 2], direct=True),
                    column(dtype + '_free', dtype, ndim=-1)]
        zero = '' if dtype == 'string' else 0
        descriptions += [
            ct.makescacoldesc(dtype, zero, valuetype=name),
            ct.makearrcoldesc(dtype + '_direct', zero, valuetype=name, shape=[2, 3], options=5),
            ct.makearrcoldesc(dtype + '_free', zero, valuetype=name)]
    names = [c['name'] for c in columns]
    table = Table(theirs, ct.maketabdesc(descriptions), nrow=0, ack=False, endian=order,
                  dminfo={'*1': {'TYPE': 'StManAipsIO', 'NAME': 'old', 'COLUMNS': names, 'SPEC': {}}})
    table.addrows(7)
    with Script(ours, columns=columns, order=order, managers=[manager('StManAipsIO', 'old', names)]) as script:
        script.add_rows(7)
        for c in columns:
            # casacore does not initialise the cells of new rows
            for row in rng.permutation(7)[:4 if c['name'].endswith('_free') else 7].tolist():
                shape = {'_direct': [2, 3], '_free': [int(n) for n in rng.integers(1, 4, 2)]}
                shape = next((s for end, s in shape.items() if c['name'].endswith(end)), [])
                if c['type'] == 'string':
                    value = np.array(['x' * int(n) for n in rng.integers(0, 30, shape or 1).ravel()]).reshape(shape)
                else:
                    value = values(rng, c['type'], shape)
                if shape:
                    script.put_cell(c['name'], row, value)
                    table.putcell(c['name'], row, value)
                else:
                    script.put(c['name'], row, [value.item()])
                    table.putcell(c['name'], row, value.item())
        script.remove_row(2)
        script.remove_column('float')
    table.removerows([2])
    table.removecols('float')
    table.close()
    assert contents(ours) == contents(theirs)
    with open(ours + '/table.f0', 'rb') as f, open(theirs + '/table.f0', 'rb') as g:
        assert f.read() == g.read()
    # casacore leaves garbage between arrays
    assert os.path.getsize(ours + '/table.f0i') == os.path.getsize(theirs + '/table.f0i')
    for path in ours, theirs:
        table = Table(path, ack=False, readonly=False)
        table.removerows([1])
        table.putcell('int_free', 3, np.arange(4))
        table.putcell('string', 0, 'again')
        table.addcols(ct.maketabdesc([ct.makescacoldesc('NEW', 0)]))
        table.putcol('NEW', np.arange(5))
        table.close()
    assert contents(ours) == contents(theirs)
    for path in ours, theirs:
        table = Table(path, ack=False, readonly=False)
        table.addrows(1)
        for c in columns:
            if c['name'] != 'float' and not c['name'].endswith('_free'):
                table.putcell(c['name'], 5, table.getcell(c['name'], 0))
        table.putcell('NEW', 5, 5)
        table.close()
    assert contents(ours) == contents(theirs)
