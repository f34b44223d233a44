"""Names that the layout makes for itself never meet names of the user: tables whose columns, keywords and subtables have names
of the layout's own vocabulary go to a native file and back.

H5BRIDGE_LONG=1 tries more tables; H5BRIDGE_SEED: support.seeds."""
import itertools
import os
import random
import shutil

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
from support import h5bridge

ROWS = 6
STEMS = ['X', 'Y', 'row', 'row_cube', 'row_index', 'cube0', 'values', 'offset', 'shape', 'defined', 'dim_0', 'corr_0',
         'position_0', 'element_0', 'axis_0', 'offset_0', 'committed_rows', 'table', 'digests', 'column', 'column.X', 'strings.X',
         'units', 'long_name', 'measure_type', 'measure_ref', 'ctds_name', 'table_type', 'readme', 'dtype', '_ctds', 'MAIN',
         'restore', 'quicklook', 'quicklook_version', 'CLASS', 'NAME', 'DIMENSION_LIST', 'format', 'source_digest']
SUFFIXES = ['__defined', '__shape', '__taql', '__missing', '__2', '__3']
KINDS = ['int', 'string', 'fixed', 'holes', 'ragged', 'cubes', 'taql']


def name_of(rng):
    """A stem with a chain of suffixes; few stems, so that names meet."""
    stem = rng.choice(STEMS if rng.random() < .6 else STEMS[:2])
    return stem + ''.join(rng.choice(SUFFIXES) for _ in range(rng.choice([0, 0, 1, 1, 2, 3])))


def names_of(rng, count):
    found = []
    while len(found) < count:
        name = name_of(rng)
        if name not in found:
            found.append(name)
    return found


def value_of(rng, depth=0):
    kind = rng.choice(['int', 'text', 'line', 'grid', 'cube', 'complex'] + ['record'] * (depth < 2))
    numbers = np.arange(24, dtype='i4') + rng.randrange(100)
    if kind == 'record':
        return {name.replace('.', '_'): value_of(rng, depth + 1) for name in names_of(rng, rng.randrange(1, 4))}
    return {'int': 7, 'text': 'word', 'line': numbers[:3], 'grid': numbers[:6].reshape(2, 3), 'cube': numbers.reshape(2, 3, 4),
            'complex': numbers[:4].reshape(2, 2) + 1j}[kind]


def make_table(path, rng, depth=0):
    names, managers, plans = names_of(rng, rng.randrange(2, 7)), {}, []
    for number, name in enumerate(names):
        kind = rng.choice(KINDS if number else KINDS[:-1])
        if kind in ('int', 'taql'):
            described = ct.makescacoldesc(name, 0)
        elif kind == 'string':
            described = ct.makescacoldesc(name, '')
        elif kind == 'fixed':
            described = ct.makearrcoldesc(name, 0., shape=[2])
        else:
            described = ct.makearrcoldesc(name, 0., ndim=1)
        if kind == 'cubes':
            described['desc'].update(dataManagerType='TiledShapeStMan', dataManagerGroup='T%d' % number)
            managers['*%d' % (len(managers) + 1)] = {'TYPE': 'TiledShapeStMan', 'NAME': 'T%d' % number, 'COLUMNS': [name],
                                                     'SPEC': {'DEFAULTTILESHAPE': [2, 2]}}
        if kind == 'taql':
            managers['*%d' % (len(managers) + 1)] = {'TYPE': 'VirtualTaQLColumn', 'NAME': 'V%d' % number, 'COLUMNS': [name],
                                                     'SPEC': {'TAQLCALCEXPR': 'day(mjdtodate(7))'}}    # has no values here
        plans.append((name, kind, described))
    with ct.table(path, ct.maketabdesc([described for *_, described in plans]), nrow=ROWS, dminfo=managers, ack=False) as table:
        for name, kind, _ in plans:
            for row in range(ROWS):
                if kind == 'int':
                    table.putcell(name, row, row * 3)
                elif kind == 'string':
                    table.putcell(name, row, 'text %d' % row)
                elif kind == 'fixed':
                    table.putcell(name, row, np.array([row, 1.]))
                elif kind in ('ragged', 'cubes'):
                    table.putcell(name, row, np.arange(2. + row % (3 if kind == 'ragged' else 2)))
                elif kind == 'holes' and row % 3:
                    table.putcell(name, row, np.arange(3.) + row)
            for keyword in names_of(rng, rng.randrange(4)):
                if '.' not in keyword:
                    table.putcolkeyword(name, keyword, value_of(rng))
        for keyword in names_of(rng, rng.randrange(6)):
            if '.' not in keyword:
                table.putkeyword(keyword, value_of(rng))
        for keyword in names_of(rng, rng.randrange(3) if depth < 2 else 0):
            if keyword not in table.keywordnames():
                folder = os.path.join(path, 'SUB_' + keyword)
                make_table(folder, rng, depth + 1)
                table.putkeyword(keyword, 'Table: ' + folder) if '.' not in keyword else None


def is_same(one, other):
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, str) and one.startswith('Table: '):
        return isinstance(other, str) and other.startswith('Table: ')
    return np.shape(one) == np.shape(other) and np.array_equal(one, other)


def check(before, after):
    with ct.table(before, ack=False) as one, ct.table(after, ack=False) as other:
        assert one.colnames() == other.colnames()
        assert is_same(one.getkeywords(), other.getkeywords()), (one.getkeywords(), other.getkeywords())
        for name in one.colnames():
            assert is_same(one.getcoldesc(name), other.getcoldesc(name)), name
            assert is_same(one.getcolkeywords(name), other.getcolkeywords(name)), name
            for row in range(ROWS):
                defined = one.iscelldefined(name, row)
                assert defined == other.iscelldefined(name, row), (name, row)
                assert not defined or is_same(one.getcell(name, row), other.getcell(name, row)), (name, row)
        for name, value in one.getkeywords().items():
            if isinstance(value, str) and value.startswith('Table: '):
                check(value[len('Table: '):], other.getkeywords()[name][len('Table: '):])


def there_and_back(folder, source, *options):
    native, back = folder / 'x.h5', folder / 'back.tab'
    shutil.rmtree(back, ignore_errors=True)
    h5bridge('to-hdf5', '--overwrite', *options, source, native)
    said = h5bridge('to-ms', native, back).stderr
    # nobody has edited the file
    assert 'added' not in said and 'edited' not in said and 'gone' not in said and 'is not a' not in said, said
    check(str(source), str(back))
    h5bridge('verify', source, native)
    return native, back


@pytest.mark.parametrize('seed', support.seeds(0, 25, 400))
def test_names_of_the_layout(seed, tmp_path):
    rng = random.Random(seed)
    make_table(str(tmp_path / 'x.tab'), rng)
    there_and_back(tmp_path, tmp_path / 'x.tab', *rng.choice([[], ['--compress', 'none'], ['--hdf5', '1.8'], ['--appendable']]))


def holes(path, names, columns=None):
    """A table with an int column for each name that ends with __defined, and undefined cells in all others."""
    descriptions = [ct.makescacoldesc(name, 0) if '__' in name else ct.makearrcoldesc(name, 0., ndim=1) for name in names]
    with ct.table(str(path), ct.maketabdesc(descriptions), nrow=4, ack=False) as table:
        for name in names:
            for row in range(4):
                if '__' in name:
                    table.putcell(name, row, row)
                elif row != 2:
                    table.putcell(name, row, np.arange(3.) + row)


@pytest.mark.parametrize('names', list(itertools.permutations(['X', 'X__defined', 'X__defined__2'])) + [
    ('X__defined', 'X'), ('X__defined__defined', 'X__defined', 'X')], ids=lambda names: '-'.join(names))
def test_columns_named_as_flags(names, tmp_path):
    """In every order of the columns; each has its cells, defined or not, and none is added."""
    source, back = str(tmp_path / 'x.tab'), str(tmp_path / 'back.tab')
    holes(source, names)
    h5bridge('to-hdf5', source, tmp_path / 'x.h5')
    said = h5bridge('to-ms', tmp_path / 'x.h5', back).stderr
    with ct.table(back, ack=False) as table:
        assert table.colnames() == list(names) and 'added' not in said
        assert [table.iscelldefined('X', row) for row in range(4)] == [True, True, False, True]
        assert all(table.getcol(name).tolist() == [0, 1, 2, 3] for name in names if name != 'X')
    h5bridge('verify', source, tmp_path / 'x.h5')


def test_exact_files_come_back(tmp_path):
    source = tmp_path / 'x.tab'
    holes(source, ['X__defined', 'X'])
    h5bridge('to-hdf5', '--restorable', source, tmp_path / 'x.h5')
    h5bridge('to-ms', '--exact', tmp_path / 'x.h5', tmp_path / 'back.tab')
    assert support.tree(source) == support.tree(tmp_path / 'back.tab')


def test_files_from_before_names_were_recorded(tmp_path):
    """A document without the name of the flags: they have their usual one."""
    holes(tmp_path / 'x.tab', ['X', 'Y__other'])
    h5bridge('to-hdf5', tmp_path / 'x.tab', tmp_path / 'x.h5')
    with h5py.File(tmp_path / 'x.h5', 'r+') as file:
        attributes = file['_ctds/MAIN'].attrs
        before = attributes['column.X']
        attributes['column.X'] = before.replace('"defined":"X__defined"', '"options":0').replace(',"options":0}', '}')
        assert 'X__defined' in before and 'X__defined' not in attributes['column.X']
    h5bridge('to-ms', tmp_path / 'x.h5', tmp_path / 'back.tab')
    with ct.table(str(tmp_path / 'back.tab'), ack=False) as table:
        assert table.colnames() == ['X', 'Y__other'] and not table.iscelldefined('X', 2)
