"""Edits of native files with h5py: what `to-ms` writes afterwards, as python-casacore sees it. docs/reference/layout.md, "Edits".

H5BRIDGE_LONG=1 tries more random edits; H5BRIDGE_SEED: support.seeds."""
import random
import shutil
import subprocess

import casacore.tables as ct
import h5py
import netCDF4
import numpy as np
import pytest
import xarray

import h5bridge as package
import support
from support import h5bridge

ROWS = 40


def make_ms(path):
    """A table with a column of each form and kind of element, and a subtable."""
    numbers = np.arange(ROWS)
    columns = {
        'TIME': numbers * 1.5, 'SCAN': numbers.astype('i4'), 'SHORT': numbers.astype('i2'), 'FLAG_ROW': numbers % 3 == 0,
        'NAME': ['n%d' % n for n in numbers], 'DATA': (numbers[:, None, None] + 1j * np.ones((1, 4, 2))).astype('c8'),
        'FLAG': np.add.outer(numbers, np.zeros((4, 2), 'i4')) % 2 == 0, 'WEIGHT': np.ones((ROWS, 2), 'f4'),
        'MODEL': np.ones((ROWS, 2), 'c16'),
    }
    descriptions = [ct.makescacoldesc(name, values[0] if isinstance(values, list) else values[0].item(),
                                      valuetype='short' if name == 'SHORT' else '') for name, values in columns.items()
                    if np.ndim(values) == 1]
    kinds = {'DATA': 0j, 'FLAG': False, 'WEIGHT': 0., 'MODEL': 0j}
    types = {'DATA': 'complex', 'FLAG': 'boolean', 'WEIGHT': 'float', 'MODEL': 'dcomplex'}
    descriptions += [ct.makearrcoldesc(name, kinds[name], ndim=columns[name].ndim - 1, valuetype=types[name]) for name in kinds]
    descriptions += [ct.makearrcoldesc('RAGGED', 0, valuetype='int'), ct.makearrcoldesc('HOLES', 0., ndim=1)]
    with ct.table(path, ct.maketabdesc(descriptions), nrow=ROWS, ack=False) as table:
        for name, values in columns.items():
            table.putcol(name, values)
        for row in range(ROWS):
            table.putcell('RAGGED', row, np.arange(row % 4 + 1, dtype='i4'))
            if row % 5:
                table.putcell('HOLES', row, np.arange(3.) + row)
        table.putcolkeyword('TIME', 'QuantumUnits', ['s'])
        table.putkeyword('GRID', np.arange(6, dtype='i4').reshape(2, 3))
        table.putkeyword('LINE', np.arange(4, dtype='i4'))
        with ct.table(path + '/SUB', ct.maketabdesc([ct.makescacoldesc('ID', 0), ct.makescacoldesc('X', 0.)]), nrow=5,
                      ack=False) as sub:
            sub.putcol('ID', np.arange(5, dtype='i4'))
        table.putkeyword('SUB', 'Table: ' + path + '/SUB')


@pytest.fixture(scope='module')
def native(tmp_path_factory):
    folder = tmp_path_factory.mktemp('edits')
    make_ms(str(folder / 'x.ms'))
    for name, options in (('x.h5', ['--compress', 'none']), ('grows.h5', ['--appendable'])):
        h5bridge('to-hdf5', folder / 'x.ms', folder / name, *options)
    return folder


@pytest.fixture
def edit(native, tmp_path):
    """edit(change, code): the table that to-ms makes of a file after a change made with h5py, and what it says."""
    def run(change, code=support.DONE, of='x.h5', options=()):
        path, back = shutil.copy(native / of, tmp_path / 'edited.h5'), tmp_path / 'back.ms'
        shutil.rmtree(back, ignore_errors=True)
        with h5py.File(path, 'r+') as file:
            change(file)
        said = h5bridge('to-ms', *options, path, back, code=code).stderr
        if code in (support.DONE, support.WARNINGS):
            return ct.table(str(back), ack=False), said
        assert not back.exists(), said
        return None, said
    return run


def again(group, name, values, dtype=None, **more):
    """Deletes a dataset and makes it again with other elements, as software without HDF5's enums does."""
    del group[name]
    return group.create_dataset(name, data=np.asarray(values).astype(dtype) if dtype else values, **more)


def cells(table, name):
    """Cells of a column as python-casacore reads them; None where a cell is undefined."""
    return [table.getcell(name, row) if table.iscelldefined(name, row) else None for row in range(table.nrows())]


# ---- datasets made again in another type ----------------------------------------------------------------------------

PAIR = {'c8': [('real', 'f4'), ('imag', 'f4')], 'c16': [('real', '>f8'), ('imag', '>f8')]}
LOSSLESS = [
    ('FLAG', 'i1'), ('FLAG', 'u1'), ('FLAG', '>i4'), ('FLAG', 'i8'), ('FLAG', 'u8'), ('FLAG', 'f8'), ('FLAG_ROW', 'i1'),
    ('SCAN', 'i8'), ('SCAN', '>i8'), ('SCAN', 'u8'), ('SCAN', 'f8'), ('SCAN', 'i2'), ('SHORT', 'i8'), ('WEIGHT', 'f8'),
    ('WEIGHT', '>f8'), ('WEIGHT', 'i4'), ('TIME', 'f4'), ('TIME', '>f4'), ('DATA', 'c16'), ('DATA', '>c16'), ('MODEL', 'c8')]


@pytest.mark.parametrize('name, dtype', LOSSLESS)
def test_lossless_types_are_converted(name, dtype, edit, native):
    table, said = edit(lambda file: again(file['MAIN'], name, file['MAIN'][name][...], dtype))
    with ct.table(str(native / 'x.ms'), ack=False) as source:
        before, after = source.getcol(name), table.getcol(name)
        assert table.getcoldesc(name)['valueType'] == source.getcoldesc(name)['valueType'], said
        assert after.dtype == before.dtype and np.array_equal(after, before)
        assert table.colnames() == source.colnames()


@pytest.mark.parametrize('name, dtype', [('DATA', 'c8'), ('DATA', 'c16'), ('MODEL', 'c8'), ('MODEL', 'c16')])
def test_compounds_of_real_and_imag_are_complex(name, dtype, edit, native):
    def change(file):
        values = file['MAIN'][name][...]
        pairs = np.empty(values.shape, PAIR[dtype])
        pairs['real'], pairs['imag'] = values.real, values.imag
        again(file['MAIN'], name, pairs)
    table, _ = edit(change)
    with ct.table(str(native / 'x.ms'), ack=False) as source:
        assert np.array_equal(table.getcol(name), source.getcol(name))


def layouts():
    """Types of numbers that no C type has, by name: libhdf5 converts them."""
    def integer(base, precision, offset):
        datatype = base.copy()
        datatype.set_precision(precision)
        datatype.set_offset(offset)
        return datatype

    def real(base, size, *fields):
        datatype = base.copy()
        *places, bias = fields
        datatype.set_fields(*places)
        datatype.set_size(size)
        datatype.set_ebias(bias)
        return datatype

    def pair(part, size, imaginary):
        datatype = h5py.h5t.create(h5py.h5t.COMPOUND, size)
        datatype.insert(b'r', 0, part)
        datatype.insert(b'i', imaginary, part)
        return datatype
    of = h5py.h5t
    return {
        'int of 12 bits in 16': integer(of.STD_I16LE, 12, 3), 'int of 12 bits in 16, big-endian': integer(of.STD_I16BE, 12, 0),
        'uint of 20 bits in 32': integer(of.STD_U32LE, 20, 9), 'int of 40 bits in 64': integer(of.STD_I64BE, 40, 24),
        'half': real(of.IEEE_F32LE, 2, 15, 10, 5, 0, 10, 15), 'half, big-endian': real(of.IEEE_F32BE, 2, 15, 10, 5, 0, 10, 15),
        'bfloat16': real(of.IEEE_F32LE, 2, 15, 7, 8, 0, 7, 127), 'another bias': real(of.IEEE_F32LE, 4, 31, 23, 8, 0, 23, 120),
        'pair, padded': pair(of.IEEE_F32LE, 16, 8), 'pair, big-endian': pair(of.IEEE_F64BE, 16, 8),
        'pair, imaginary part first': pair(of.IEEE_F64LE, 24, 16)}


@pytest.mark.parametrize('kind', layouts())
@pytest.mark.parametrize('holder', ['column', 'attribute'])
def test_numbers_of_any_layout_are_those_of_libhdf5(kind, holder, edit):
    """Random bits in each, without numbers that are none."""
    datatype = layouts()[kind]
    bits = np.random.default_rng(7).integers(0, 256, (ROWS, 5, datatype.get_size()), dtype='u1')
    is_pair = datatype.get_class() == h5py.h5t.COMPOUND
    if is_pair:
        bits = np.zeros((ROWS, 5), {'names': ['r', 'i'], 'formats': [datatype.get_member_type(0).dtype] * 2,
                                    'offsets': [datatype.get_member_offset(0), datatype.get_member_offset(1)],
                                    'itemsize': datatype.get_size()})
        bits['r'], bits['i'] = np.arange(ROWS * 5).reshape(ROWS, 5) - 7.25, -1 / 8
    found = {}

    def change(file):
        main, space = file['MAIN'].id, h5py.h5s.create_simple((ROWS, 5))
        if holder == 'column':
            made = h5py.h5d.create(main, b'ODD', datatype, space)
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, bits, datatype)
        else:
            made = h5py.h5a.create(main, b'ODD', datatype, space)
            made.write(bits, datatype)
        as_type = 'c16' if is_pair else 'f8' if datatype.get_class() == h5py.h5t.FLOAT else 'i8'
        values = np.empty((ROWS, 5), as_type)
        memory = h5py.h5t.py_create(values.dtype)
        if holder == 'column':
            made.read(h5py.h5s.ALL, h5py.h5s.ALL, values, memory)
        else:
            made.read(values, memory)
        found['values'] = values
    if is_pair and holder == 'attribute':
        pytest.skip('keywords of complex numbers are compared by test_random_edits')
    table, said = edit(change)
    expected = found['values']
    if holder == 'attribute':
        got = table.getkeyword('ODD')
    elif 'ODD' not in table.colnames():
        # no casacore type is as wide
        assert 'column ODD' in said or 'ODD is not a column' in said, said
        return
    else:
        got = table.getcol('ODD')
    got = np.asarray(got)
    assert np.array_equal(got, expected.astype(got.dtype), equal_nan=True), (got, expected)


def test_bools_of_xarray(edit):
    """xarray stores Bools as int8 with an attribute, which is no keyword."""
    def change(file):
        again(file['MAIN'], 'FLAG', file['MAIN/FLAG'][...], 'i1').attrs['dtype'] = 'bool'
        file['MAIN'].create_dataset('FRESH', data=np.ones(ROWS, 'i1')).attrs['dtype'] = 'bool'
    table, _ = edit(change)
    assert table.getcol('FRESH').tolist() == [True] * ROWS and table.getcol('FLAG').dtype == bool
    assert 'dtype' not in table.getcolkeywords('FLAG') and 'dtype' not in table.getcolkeywords('FRESH')


@pytest.mark.parametrize('part, dtype', [('HOLES__defined', 'u1'), ('RAGGED/defined', 'i4'), ('RAGGED/offset', 'i4'),
                                         ('RAGGED/shape', '>i8'), ('RAGGED/values', 'i8')])
def test_parts_of_a_column_are_converted(part, dtype, edit, native):
    table, _ = edit(lambda file: again(file['MAIN'], part, file['MAIN'][part][...], dtype))
    with ct.table(str(native / 'x.ms'), ack=False) as source:
        for name in ('HOLES', 'RAGGED'):
            for before, after in zip(cells(source, name), cells(table, name)):
                assert before is None and after is None or np.array_equal(before, after), part


@pytest.mark.parametrize('name, dtype, value', [('FLAG', 'i1', 2), ('FLAG', 'f4', 0.5), ('SCAN', 'i8', 1 << 40), ('SCAN', 'f8', 1.5),
                                                ('SCAN', 'f8', float('nan')), ('WEIGHT', 'f8', 0.1), ('DATA', 'c16', 0.1),
                                                ('TIME', 'i8', (1 << 60) + 1), ('RAGGED/values', 'i8', 1 << 40)])
def test_values_that_do_not_fit_are_refused(name, dtype, value, edit):
    def change(file):
        values = file['MAIN'][name][...].astype(dtype)
        values[7] = value
        again(file['MAIN'], name, values)
    _, said = edit(change, code=support.UNSUPPORTED)
    # element 7 of RAGGED is in row 3
    row = 3 if '/' in name else 7
    assert name.split('/')[0] in said and 'row %d' % row in said and '--salvage' not in said, said
    assert ('the value %s' % value if value == value else 'the value NaN') in said, said


@pytest.mark.parametrize('name, values', [('TIME', ['x'] * ROWS), ('NAME', np.arange(ROWS)), ('DATA', np.ones((ROWS, 4, 2))),
                                          ('WEIGHT', np.ones((ROWS, 2), 'c8')),
                                          ('TIME', np.zeros(ROWS, [('a', 'f4'), ('b', 'f4')]))])
def test_other_types_are_refused(name, values, edit):
    _, said = edit(lambda file: again(file['MAIN'], name, values), code=support.UNSUPPORTED)
    assert '/MAIN/' + name in said and 'without loss' in said, said


def test_cells_of_another_shape_are_refused(edit, native, tmp_path):
    """A column with a shape that its description states."""
    source = str(tmp_path / 'fixed.tab')
    with ct.table(source, ct.maketabdesc([ct.makearrcoldesc('A', 0., shape=[3])]), nrow=4, ack=False) as table:
        table.putcol('A', np.ones((4, 3)))
    h5bridge('to-hdf5', source, tmp_path / 'fixed.h5')
    with h5py.File(tmp_path / 'fixed.h5', 'r+') as file:
        again(file['MAIN'], 'A', np.ones((4, 2)))
    said = h5bridge('to-ms', tmp_path / 'fixed.h5', tmp_path / 'b.tab', code=support.UNSUPPORTED).stderr
    assert 'cells of shape' in said and 'column A' in said, said


# ---- rows -----------------------------------------------------------------------------------------------------------

def resize(group, rows):
    """Gives each dataset with an unlimited first axis ROWS rows, as users of h5py do."""
    found = []
    group.visititems(lambda _, item: found.append(item) if isinstance(item, h5py.Dataset) and item.maxshape[0] is None else None)
    for dataset in found:
        if dataset.shape[0]:
            dataset.resize(rows, axis=0)


def test_appended_rows(edit):
    def change(file):
        resize(file['MAIN'], ROWS + 3)
        file['MAIN/row'][ROWS:] = range(ROWS, ROWS + 3)
        file['MAIN/DATA'][ROWS:] = 9
    table, said = edit(change, of='grows.h5')
    assert table.nrows() == ROWS + 3 and (table.getcol('DATA')[ROWS:] == 9).all()
    assert table.getcol('SCAN')[:ROWS].tolist() == list(range(ROWS)) and '43 rows' in said
    assert table.getcell('RAGGED', 3).tolist() == [0, 1, 2, 3] and not table.iscelldefined('RAGGED', ROWS)


def test_appended_cells_without_offsets_are_refused(edit):
    def change(file):
        resize(file['MAIN'], ROWS + 3)
        file['MAIN/RAGGED/defined'][ROWS] = True
        file['MAIN/RAGGED/shape'][ROWS] = 1
    _, said = edit(change, of='grows.h5', code=support.DAMAGED)
    assert 'column RAGGED' in said and 'row 40 is defined, but the dataset offset ends before it' in said


def test_appended_rows_of_members_of_the_table_only(edit):
    """Columns that are groups have no cells in the new rows."""
    def change(file):
        for item in file['MAIN'].values():
            if isinstance(item, h5py.Dataset) and item.maxshape[0] is None and item.shape[0]:
                item.resize(ROWS + 3, axis=0)
        file['MAIN/DATA'][ROWS:] = 9
    table, _ = edit(change, of='grows.h5')
    assert table.nrows() == ROWS + 3 and (table.getcol('DATA')[ROWS:] == 9).all()
    assert [table.iscelldefined('RAGGED', row) for row in range(ROWS + 3)] == [True] * ROWS + [False] * 3


def test_appended_rows_of_a_subtable(edit):
    def change(file):
        resize(file['SUB'], 7)
        file['SUB/ID'][5:] = [55, 66]
    table, said = edit(change, of='grows.h5')
    with ct.table(table.name() + '/SUB', ack=False) as sub:
        assert sub.getcol('ID').tolist() == [0, 1, 2, 3, 4, 55, 66]
    assert table.nrows() == ROWS and 'subtable SUB: the table has 7 rows' in said


@pytest.mark.parametrize('of', ['grows.h5', 'x.h5'])
def test_removed_rows(of, edit):
    """All datasets shortened in place, or made again."""
    def change(file):
        for name, item in list(file['SUB'].items()):
            if of == 'grows.h5':
                item.resize(2, axis=0)
            elif name != 'row':
                again(file['SUB'], name, item[:2])
    table, _ = edit(change, of=of)
    with ct.table(table.name() + '/SUB', ack=False) as sub:
        assert sub.getcol('ID').tolist() == [0, 1]


def test_unequal_columns_are_listed(edit):
    def change(file):
        for name in ('TIME', 'DATA'):
            file['MAIN'][name].resize(ROWS + 3, axis=0)
    _, said = edit(change, of='grows.h5', code=support.UNSUPPORTED)
    assert '43 in' in said and '40 in' in said and 'FLAG_ROW' in said and '--salvage' not in said, said
    longer = said[said.index('43 in'):]
    assert 'TIME' in longer and 'DATA' in longer and 'SCAN' not in longer, said


# ---- attributes -----------------------------------------------------------------------------------------------------

def test_units_where_none_were(edit):
    def change(file):
        file['MAIN/DATA'].attrs['units'] = 'Jy'
        file['MAIN/SCAN'].attrs['measure_type'] = 'epoch'
        file['MAIN/SCAN'].attrs['measure_ref'] = 'UTC'
        file['MAIN/TIME'].attrs['units'] = 'min'
        file['MAIN/WEIGHT'].attrs['long_name'] = 'a weight'
        file['MAIN/RAGGED'].attrs['units'] = 'm'
    table, said = edit(change)
    assert table.getcolkeywords('DATA') == {'QuantumUnits': ['Jy']} and table.getcolkeywords('RAGGED') == {'QuantumUnits': ['m']}
    assert table.getcolkeywords('SCAN') == {'MEASINFO': {'type': 'epoch', 'Ref': 'UTC'}}
    assert table.getcolkeywords('TIME') == {'QuantumUnits': ['min']}
    assert table.getcoldesc('WEIGHT')['comment'] == 'a weight' and table.getcolkeywords('WEIGHT') == {}
    assert 'column DATA: attribute units was added' in said


def test_units_that_are_not_text_are_named(edit):
    table, said = edit(lambda file: file['MAIN/DATA'].attrs.__setitem__('units', 3), options=['--strict'],
                       code=support.WARNINGS)
    assert table.getcolkeywords('DATA') == {} and 'column DATA: attribute units' in said


def test_attributes_with_several_axes(edit):
    values = np.arange(6).reshape(2, 3)

    def change(file):
        file['MAIN'].attrs['MAT'] = values
        file['SUB'].attrs['CAL'] = np.ones((2, 2, 2))
        file['MAIN/DATA'].attrs['Z'] = values + 1j
        file['MAIN'].attrs['GRID'] = (values + 10).reshape(3, 2).astype('i8')
        file['MAIN'].attrs['LINE'] = np.arange(4, dtype='i4').reshape(2, 2)      # the same elements
    table, _ = edit(change)
    assert np.array_equal(table.getkeyword('MAT'), values)
    assert np.array_equal(table.getcolkeyword('DATA', 'Z'), values + 1j)
    assert np.array_equal(table.getkeyword('GRID'), (values + 10).reshape(3, 2))
    assert np.array_equal(table.getkeyword('LINE'), [[0, 1], [2, 3]])
    with ct.table(table.name() + '/SUB', ack=False) as sub:
        assert sub.getkeyword('CAL').shape == (2, 2, 2)


# ---- links ----------------------------------------------------------------------------------------------------------

def test_soft_links_are_followed(edit):
    def change(file):
        file['store/D2'] = np.arange(ROWS * 8.).reshape(ROWS, 4, 2).astype('c8')
        file['MAIN/ALIAS'] = h5py.SoftLink('/MAIN/TIME')
        del file['MAIN/DATA']
        file['MAIN/DATA'] = h5py.SoftLink('/store/D2')
        file['EXTRA'] = h5py.SoftLink('/SUB')
    table, _ = edit(change)
    assert np.array_equal(table.getcol('ALIAS'), table.getcol('TIME'))
    assert np.array_equal(table.getcol('DATA').ravel(), np.arange(ROWS * 8))
    with ct.table(table.name() + '/EXTRA', ack=False) as extra:
        assert extra.getcol('ID').tolist() == [0, 1, 2, 3, 4]


def test_links_that_lead_nowhere_or_back_are_named(edit):
    def change(file):
        file['MAIN/LOST'] = h5py.SoftLink('/nowhere')
        file['LOST2'] = h5py.SoftLink('/nowhere')
        file['MAIN/ROUND'] = h5py.SoftLink('/MAIN')
        file['SUB/UP'] = file['/']
    table, said = edit(change)
    assert table.nrows() == ROWS
    for name in ('LOST is not a column', '/LOST2 is not a subtable', '/MAIN/ROUND is not a subtable', '/SUB/UP is not a subtable'):
        assert name in said, said
    edit(change, options=['--strict'], code=support.WARNINGS)


def test_a_column_that_leads_nowhere_is_refused(edit):
    def change(file):
        del file['MAIN/DATA']
        file['MAIN/DATA'] = h5py.SoftLink('/nowhere')
    _, said = edit(change, code=support.DAMAGED)
    assert 'DATA' in said and '/nowhere' in said


# ---- what cannot be a column or subtable ----------------------------------------------------------------------------

ODD = {
    'MAIN/freqs': np.arange(8.), 'MAIN/scalar': 3., 'MAIN/text': 'note', 'MAIN/null': h5py.Empty('f4'), 'freqs': np.arange(8.),
    'MAIN/pairs': np.zeros(ROWS, [('a', 'f4'), ('b', 'i4')]), 'MAIN/committed': np.dtype('f8'),
}


@pytest.mark.parametrize('path', ODD)
def test_odd_datasets_are_left_out(path, edit, native):
    table, said = edit(lambda file: file.__setitem__(path, ODD[path]))
    with ct.table(str(native / 'x.ms'), ack=False) as source:
        assert table.colnames() == source.colnames() and table.nrows() == ROWS
        assert np.array_equal(table.getcol('DATA'), source.getcol('DATA'))
    assert path.split('/')[-1] + ' is not a ' in said, said
    edit(lambda file: file.__setitem__(path, ODD[path]), options=['--strict'], code=support.WARNINGS)


@pytest.mark.parametrize('place', ['', 'MAIN/', 'SUB/'])
def test_groups_that_are_not_tables_are_left_out(place, edit):
    """Calibration solutions: arrays of different lengths."""
    def change(file):
        group = file.create_group(place + 'sol')
        group['gain'], group['ant'], group['freq'] = np.ones((10, 4)), np.arange(4), np.arange(7.)
    table, said = edit(change)
    assert table.nrows() == ROWS and 'sol is not a subtable' in said and '10 in gain' in said, said
    edit(change, options=['--strict'], code=support.WARNINGS)


def test_group_that_only_looks_like_a_column(edit):
    def change(file):
        group = file.create_group('MAIN/BAD')
        for name, values in (('values', [1.]), ('offset', [0, 1]), ('shape', [[1]]), ('defined', [True] * ROWS)):
            group[name] = values
    table, said = edit(change)
    assert 'BAD' not in table.colnames() and 'BAD is not a column' in said


def test_a_new_subtable_does_not_replace_a_keyword(edit):
    def change(file):
        file['LINE/ID'] = np.arange(2, dtype='i4')
    table, _ = edit(change)
    assert table.getkeyword('LINE').tolist() == [0, 1, 2, 3]
    assert table.getkeyword('LINE__2').endswith('LINE')


# ---- what no table has ----------------------------------------------------------------------------------------------

def scale(file, path, **attributes):
    file[path] = np.arange(4.)
    file[path].make_scale(path.split('/')[-1])
    file[path].attrs.update(attributes)


UNREAD = {
    'attribute title of /': lambda file: file.attrs.__setitem__('title', 'my data'),
    'attribute mine of /_ctds': lambda file: file['_ctds'].attrs.__setitem__('mine', 3),
    '/_ctds/mine': lambda file: file.__setitem__('_ctds/mine', np.arange(4)),
    'RAGGED/note': lambda file: file.__setitem__('MAIN/RAGGED/note', np.arange(3)),
    'RAGGED/cal': lambda file: file.create_group('MAIN/RAGGED/cal'),
    'attribute units of RAGGED/values': lambda file: file['MAIN/RAGGED/values'].attrs.__setitem__('units', 's'),
    'attribute who of HOLES__defined': lambda file: file['MAIN/HOLES__defined'].attrs.__setitem__('who', 'me'),
    'attribute who of row': lambda file: file['MAIN/row'].attrs.__setitem__('who', 'me'),
    'freq is not a column': lambda file: scale(file, 'MAIN/freq', units='Hz'),
    'subtable SUB: attribute who of row': lambda file: file['SUB/row'].attrs.__setitem__('who', 'me'),
}


@pytest.mark.parametrize('named', UNREAD)
def test_unread_parts_of_the_file_are_named(named, native, edit, tmp_path):
    table, said = edit(UNREAD[named])
    assert named in said, said
    with ct.table(str(native / 'x.ms'), ack=False) as source:
        assert table.colnames() == source.colnames() and table.getkeywords().keys() == source.getkeywords().keys()
    edit(UNREAD[named], options=['--strict'], code=support.WARNINGS)
    assert named in h5bridge('to-hdf5', tmp_path / 'edited.h5', tmp_path / 'again.h5').stderr
    assert named not in h5bridge('to-hdf5', tmp_path / 'again.h5', tmp_path / 'third.h5').stderr


def test_edited_coordinates_are_named(tmp_path):
    """Frequencies of a dimension scale are made of CHAN_FREQ."""
    h5bridge('to-hdf5', support.TESTDATA + '/demo/demo.ms', tmp_path / 'd.h5')
    assert 'warning' not in h5bridge('to-ms', tmp_path / 'd.h5', tmp_path / 'd.ms').stderr
    with h5py.File(tmp_path / 'd.h5', 'r+') as file:
        file['MAIN/chan_0'][3] += 1e6
    for verb, target in (('to-ms', 'e.ms'), ('to-hdf5', 'e.h5')):
        assert 'the values of chan_0 are not converted' in h5bridge(verb, tmp_path / 'd.h5', tmp_path / target).stderr


def test_edits_travel_into_another_native_file(native, tmp_path):
    """As to-hdf5, verify, digest, info and Python read them."""
    path = shutil.copy(native / 'x.h5', tmp_path / 'e.h5')
    with h5py.File(path, 'r+') as file:
        file['MAIN/TIME'].attrs['units'] = 'min'
        file['MAIN/SCAN'].attrs['comment'] = 'hello'
        file['MAIN/SCAN'].attrs['long_name'] = 'the scan'
        file['MAIN'].attrs['NEW'] = 3
        file['MAIN'].attrs['table_type'] = 'Mine'
    h5bridge('verify', path, native / 'x.h5', code=support.DIFFERENT)
    said = h5bridge('to-hdf5', path, tmp_path / 'f.h5').stderr
    for named in ('column TIME: attribute units was edited', 'column SCAN: attribute comment was added', 'attribute NEW was added'):
        assert named in said, said
    h5bridge('to-ms', path, tmp_path / 'e.ms')
    with h5py.File(tmp_path / 'f.h5') as file:
        assert file['MAIN/TIME'].attrs['units'] == 'min' and file['MAIN/SCAN'].attrs['comment'] == 'hello'
        assert file['MAIN'].attrs['NEW'] == 3 and file['MAIN'].attrs['table_type'] == 'Mine'
    for verified in (tmp_path / 'f.h5', tmp_path / 'e.ms'):
        h5bridge('verify', path, verified)
    h5bridge('verify', tmp_path / 'f.h5')
    digests = [h5bridge('digest', each).stdout for each in (path, tmp_path / 'f.h5', tmp_path / 'e.ms')]
    assert len(set(digests)) == 1
    with package.open_table(path) as edited:
        assert edited.keywords['NEW'] == 3 and edited['SCAN'].comment == 'the scan'


# ---- other programs -------------------------------------------------------------------------------------------------

def test_xarray_and_netcdf4_in_append_mode(native, tmp_path):
    path = shutil.copy(native / 'x.h5', tmp_path / 'a.h5')
    ones = xarray.Dataset({'NEW': ('row', np.ones(ROWS)), 'BOOL': ('row', np.arange(ROWS) % 2 == 0)})
    ones.to_netcdf(path, group='SUB2', mode='a', engine='h5netcdf')
    with netCDF4.Dataset(path, 'a') as file:
        variable = file['MAIN'].createVariable('N4', 'f8', ('row',))
        variable[:], variable.units = np.arange(ROWS), 'Hz'
    h5bridge('to-ms', path, tmp_path / 'b.ms')
    table = ct.table(str(tmp_path / 'b.ms'), ack=False)
    assert table.getcol('N4').tolist() == list(range(ROWS)) and table.getcolkeywords('N4') == {'QuantumUnits': ['Hz']}
    with ct.table(str(tmp_path / 'b.ms' / 'SUB2'), ack=False) as sub:
        assert sub.getcol('BOOL').tolist() == [row % 2 == 0 for row in range(ROWS)]


@pytest.mark.skipif(not shutil.which('h5repack'), reason='h5repack is not installed')
@pytest.mark.parametrize('options', [[], ['--appendable'], ['--hdf5', '1.8'], ['--compress', 'none']])
def test_h5repack(options, tmp_path):
    """Columns and subtables without elements, which h5repack 1.10 cannot filter unless they have chunks."""
    source, native, packed = (tmp_path / name for name in ('e.tab', 'e.h5', 'p.h5'))
    columns = [ct.makescacoldesc('A', 0.), ct.makearrcoldesc('B', 0., ndim=2), ct.makescacoldesc('S', '')]
    with ct.table(str(source), ct.maketabdesc(columns), nrow=3, ack=False) as table:
        for row in range(3):
            table.putcell('B', row, np.zeros((0, 2)))
        with ct.table(str(source / 'SUB'), ct.maketabdesc(columns), nrow=0, ack=False):
            pass
        table.putkeyword('SUB', 'Table: %s/SUB' % source)
    h5bridge('to-hdf5', source, native, *options)
    subprocess.run(['h5repack', '-f', 'GZIP=4', native, packed], check=True, capture_output=True)
    h5bridge('verify', source, packed)
    h5bridge('verify', native, packed)
    with h5py.File(native) as file:
        found = []
        file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) and not item.chunks
                        and item.size == 0 else None)
        assert not found
    for engine in ('h5netcdf', 'netcdf4'):
        xarray.open_datatree(native, engine=engine, decode_times=False).close()


def test_long_axes_without_elements(tmp_path):
    """A chunk of all of such a cell would be larger than HDF5 allows."""
    source, native, back = (tmp_path / name for name in ('e.tab', 'e.h5', 'b.tab'))
    shape = (262144, 65536, 0)
    with ct.table(str(source), ct.maketabdesc([ct.makearrcoldesc('A', 0., ndim=3)]), nrow=2, ack=False) as table:
        for row in range(2):
            table.putcell('A', row, np.zeros(shape))
    h5bridge('to-hdf5', source, native)
    with h5py.File(native) as file:
        assert file['MAIN/A'].shape == (2, *shape)
    h5bridge('to-ms', native, back)
    with ct.table(str(back), ack=False) as table:
        assert [table.getcell('A', row).shape for row in range(2)] == [shape] * 2


# ---- random edits ---------------------------------------------------------------------------------------------------

class Edits:
    """Random edits of a file, and what python-casacore shall see afterwards."""

    def __init__(self, rng, source):
        self.rng = rng
        self.columns = {name: cells(source, name) for name in source.colnames()}
        self.types = {name: source.getcoldesc(name)['valueType'] for name in self.columns}
        self.keywords = {name: {} for name in self.columns}
        self.keywords['TIME'] = {'QuantumUnits': ['s']}
        self.table, self.warns, self.number = {}, False, 0
        # later edits change what an alias shows
        self.aliases = {}

    def fresh(self):
        self.number += 1
        return 'NEW%d' % self.number

    def dense(self):
        others = ('NAME', 'RAGGED', 'HOLES', *self.aliases)
        return self.rng.choice([name for name in self.columns if name not in others])

    def value(self, file):
        name, row = self.dense(), self.rng.randrange(ROWS)
        value = file['MAIN'][name][...].ravel()[0]
        file['MAIN'][name][row] = value
        self.columns[name][row] = np.full(np.shape(self.columns[name][row]), value)[()]

    def type(self, file):
        name = self.dense()
        kinds = [dtype for known, dtype in LOSSLESS if known == name]
        if kinds:
            dataset = file['MAIN'][name]
            attributes = {key: value for key, value in dataset.attrs.items() if key not in ('DIMENSION_LIST',)}
            made = again(file['MAIN'], name, dataset[...], self.rng.choice(kinds))
            for key, value in attributes.items():
                made.attrs[key] = value

    def units(self, file):
        name = self.dense()
        file['MAIN'][name].attrs['units'] = 'km'
        self.keywords[name]['QuantumUnits'] = ['km']

    def keyword(self, file):
        name, shape = self.fresh(), self.rng.choice([(), (3,), (2, 3), (2, 2, 2)])
        value = np.arange(np.prod(shape, dtype=int), dtype='f8').reshape(shape)
        holder = self.rng.choice([None, self.dense()])
        (file['MAIN'] if holder is None else file['MAIN'][holder]).attrs[name] = value
        (self.table if holder is None else self.keywords[holder])[name] = value

    def column(self, file):
        name, dtype = self.fresh(), self.rng.choice(['f8', '>i4', 'c8', 'bool', 'u1'])
        values = np.arange(ROWS * 2).reshape(ROWS, 2).astype(dtype)
        file['MAIN'][name] = values
        self.columns[name], self.keywords[name] = list(values), {}

    def removed(self, file):
        if len(self.columns) > 5:
            name = self.dense()
            del file['MAIN'][name]
            # links to it lead nowhere
            lost = [alias for alias, of in self.aliases.items() if of == name]
            self.warns |= bool(lost)
            for gone in (name, *lost):
                del self.columns[gone], self.keywords[gone]
                self.aliases.pop(gone, None)

    def link(self, file):
        name, of = self.fresh(), self.dense()
        file['MAIN'][name] = h5py.SoftLink('/MAIN/' + of)
        self.columns[name], self.keywords[name], self.aliases[name] = None, None, of

    def odd(self, file):
        file['MAIN'][self.fresh()] = self.rng.choice([np.arange(3.), 5, 'text', np.zeros((ROWS + 1, 2))])
        self.warns = True

    def dangling(self, file):
        file['MAIN'][self.fresh()] = h5py.SoftLink('/nowhere')
        self.warns = True

    def group(self, file):
        group = file.create_group(self.fresh())
        group['a'], group['b'] = np.arange(3), np.arange(4)
        self.warns = True

    KINDS = (value, type, units, keyword, column, removed, link, odd, dangling, group)


@pytest.mark.parametrize('seed', support.seeds(0, 12, 300))
def test_random_edits(seed, edit, native):
    rng = random.Random(seed)
    with ct.table(str(native / 'x.ms'), ack=False) as source:
        edits = Edits(rng, source)

    def change(file):
        for _ in range(rng.randrange(1, 9)):
            rng.choice(Edits.KINDS)(edits, file)
    table, said = edit(change)
    assert set(table.colnames()) == set(edits.columns), (seed, said)
    assert ('is not a' in said) == edits.warns, (seed, said)
    for name, expected in edits.columns.items():
        if expected is None:
            continue
        if name in edits.types:
            assert table.getcoldesc(name)['valueType'] == edits.types[name], (seed, name)
        for row, (one, other) in enumerate(zip(cells(table, name), expected, strict=True)):
            assert one is None and other is None or np.array_equal(one, other), (seed, name, row)
        assert same(table.getcolkeywords(name), edits.keywords[name]), (seed, name)
    found = {name: value for name, value in table.getkeywords().items() if name.startswith('NEW') and not isinstance(value, str)}
    assert same(found, edits.table), seed


def same(one, other):
    return set(one) == set(other) and all(np.array_equal(one[key], other[key]) for key in one)
