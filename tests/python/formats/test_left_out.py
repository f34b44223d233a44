"""Columns of objects of a C++ class and of tables (SubTableDesc): each is named and left out, and the other columns are converted.

No program without the class can make such a table: the bytes of its table.dat are made here, beside files that casacore wrote."""
import json
import os
import struct

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
from support import h5bridge

ROWS = 5
STANDARD = 'StandardStMan'
RETYPED = 'RetypedArrayEngine<StokesVector,float   >'


def number(value):
    return struct.pack('>i', value)


def text(value):
    return number(len(value)) + value.encode()


def framed(name, version, content):
    """An AipsIO object inside another."""
    return number(12 + len(name) + len(content)) + text(name) + number(version) + content


def shape(*extents):
    return framed('IPosition', 1, number(len(extents)) + b''.join(map(number, extents)))


def record(**strings):
    """A TableRecord of strings."""
    fields = b''.join(text(name) + number(11) + text('') for name in strings)
    values = b''.join(map(text, strings.values()))
    return framed('TableRecord', 1, framed('RecordDesc', 2, number(len(strings)) + fields) + number(1) + values)


def described(kind, name, code, ndim, extents, rest, manager=STANDARD, keywords=None):
    """A ColumnDesc; EXTENTS is None without a shape, REST what its class has after its version."""
    return b''.join([number(1), text(kind), number(1), text(name), text(''), text(manager), text(manager), number(code), number(0),
                     number(ndim), b'' if extents is None else shape(*extents), number(0), keywords or record(), number(1), rest])


def table_desc(columns):
    return framed('TableDesc', 2, 3 * text('') + 2 * record() + number(len(columns)) + b''.join(columns))


def bound(name, manager, shaped=None):
    """A ColumnInfo; SHAPED is whether an array has a fixed shape."""
    return number(2) + text(name) + number(1) + number(manager) + (b'' if shaped is None else bytes([shaped]))


A = described('ScalarColumnDesc<Int     ', 'A', 5, 0, None, number(0)), bound('A', 0)
S = described('ScalarColumnDesc<String  ', 'S', 11, 0, None, text('')), bound('S', 0)
V = described('ArrayColumnDesc<double  ', 'V', 8, -1, (), b'\0'), bound('V', 0, False)
INNER = table_desc([A[0]])
FOREIGN = {
    'NESTED': (described('SubTableDesc', 'NESTED', 12, 1, (), text('inner') + b'\0' + INNER), bound('NESTED', 0)),
    'NAMED': (described('SubTableDesc', 'NAMED', 12, 1, (), text('inner') + b'\1'), bound('NAMED', 0)),
    'QUATERNION': (described('ScalarColumnDesc<Quaternion', 'QUATERNION', 26, 0, None, b''), bound('QUATERNION', 0)),
    'STOKES': (described('ArrayColumnDesc<StokesVector', 'STOKES', 26, -1, (), b'\0', 'StokesVectorVACEngine',
                         record(_BaseMappedArrayEngine_Name='V')), bound('STOKES', 1, False)),
    'POINTING': (described('ArrayColumnDesc<Direction', 'POINTING', 26, -1, (), b'\0', 'DirectionVACEngine'), bound('POINTING', 2, False)),
}
# the reason that is given for each
REASONS = {
    'NESTED': 'the cells are tables (class SubTableDesc), which casacore describes and does not store',
    'NAMED': 'the cells are tables (class SubTableDesc), which casacore describes and does not store',
    'QUATERNION': 'objects of the C++ class Quaternion are not read',
    'STOKES': 'RetypedArrayEngine over column V, element type StokesVector, element shape (not stored): objects of C++ classes are not read',
    'POINTING': 'objects of the C++ class Direction are not read',
}
NAMES = list(FOREIGN)


def table_dat(columns, info, managers):
    """A little-endian PlainTable; INFO is the blob of the first of MANAGERS, the others are engines without one."""
    head = number(-2) + number(ROWS) + number(len(managers)) + number(len(managers))
    named = b''.join(text(kind) + number(sequence) for sequence, kind in enumerate(managers))
    blobs = number(len(info)) + info + number(0) * (len(managers) - 1)
    column_set = head + named + b''.join(binding for _, binding in columns) + blobs
    content = number(ROWS) + number(1) + text('PlainTable') + table_desc([desc for desc, _ in columns]) + column_set
    return b'\xbe' * 4 + framed('Table', 2, content)


def plain(path):
    """A table of casacore with the columns A, S and V; its values by column."""
    columns = [ct.makescacoldesc('A', 0), ct.makescacoldesc('S', ''), ct.makearrcoldesc('V', 0.)]
    with ct.table(str(path), ct.maketabdesc(columns), nrow=ROWS, ack=False, endian='little') as table:
        table.putcol('A', np.arange(ROWS, dtype='i4'))
        table.putcol('S', ['a longer string %d' % row for row in range(ROWS)])
        for row in range(ROWS):
            table.putcell('V', row, np.arange(row + 1.))
    # with no record of its lock, table.dat has the number of rows
    os.unlink(os.path.join(str(path), 'table.lock'))
    return str(path)


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """(the table without the columns, the table with them)"""
    folder = tmp_path_factory.mktemp('left_out')
    whole, path = plain(folder / 'whole.tab'), plain(folder / 't.tab')
    with open(os.path.join(whole, 'table.dat'), 'rb') as file:
        written = file.read()
    info = written[written.rindex(b'\xbe' * 4):]
    # the bytes made here are those of casacore
    assert table_dat([A, S, V], info, [STANDARD]) == written
    columns = [FOREIGN['NESTED'], A, FOREIGN['QUATERNION'], S, FOREIGN['STOKES'], FOREIGN['POINTING'], V, FOREIGN['NAMED']]
    with open(os.path.join(path, 'table.dat'), 'wb') as file:
        file.write(table_dat(columns, info, [STANDARD, RETYPED, 'DirectionVACEngine']))
    return whole, path


def test_info_names_each_column_and_its_class(made):
    document = json.loads(h5bridge('info', '--json', made[1]).stdout)
    columns = {column['name']: column for column in document['tables']['.']['columns']}
    assert {name: column['dtype'] for name, column in columns.items()} == {
        'NESTED': 'table', 'A': 'int', 'QUATERNION': 'other', 'S': 'string', 'STOKES': 'other', 'POINTING': 'other', 'V': 'double',
        'NAMED': 'table'}
    for name, column in columns.items():
        assert column.get('error', '').endswith(REASONS.get(name, '')) and ('error' in column) == (name in REASONS)
    assert {found['part'] for found in document['attention']} == {'MAIN/' + name for name in NAMES}
    assert {found['kind'] for found in document['attention']} == {'not supported'}
    shown = h5bridge('info', made[1]).stdout
    assert all(REASONS[name] in ' '.join(shown.split()) for name in NAMES)


def test_files_are_listed_and_packed(made, tmp_path):
    """No verb for files asks what the columns are."""
    path = made[1]
    assert 'table.f0i' in h5bridge('ls', path).stdout
    h5bridge('pack', path, tmp_path / 'packed.tab')
    h5bridge('verify', '--bytes', path, tmp_path / 'packed.tab')
    h5bridge('to-hdf5', '--restorable', path, tmp_path / 'x.h5')
    h5bridge('to-ms', '--exact', tmp_path / 'x.h5', tmp_path / 'back.tab')
    assert support.tree(tmp_path / 'back.tab') == support.tree(path)


def test_the_rest_is_converted_as_without_them(made, tmp_path):
    whole, path = made
    done = h5bridge('to-hdf5', path, tmp_path / 'x.h5')
    for name in NAMES:
        assert 'column %s is not converted' % name in done.stderr and REASONS[name] in done.stderr
    h5bridge('to-hdf5', '--strict', path, tmp_path / 'strict.h5', code=support.WARNINGS)
    h5bridge('to-hdf5', whole, tmp_path / 'whole.h5')
    with h5py.File(tmp_path / 'x.h5') as found, h5py.File(tmp_path / 'whole.h5') as expected:
        for name in ('A', 'S', 'V/values', 'V/offset'):
            assert np.array_equal(found['MAIN/' + name][...], expected['MAIN/' + name][...])
        assert not set(NAMES) & set(found['MAIN'])
        for name in NAMES:
            document = json.loads(found['_ctds/MAIN'].attrs['column.%s__missing' % name])
            assert document['form'] == 'missing' and document['reason'].endswith(REASONS[name])


def test_digest_and_verify_cover_the_rest(made, tmp_path):
    whole, path = made
    h5bridge('to-hdf5', path, tmp_path / 'x.h5')
    expected = support.digest(whole)['.']['columns']
    for source in (path, tmp_path / 'x.h5'):
        found = support.digest(source, code=None)['.']['columns']
        assert {name for name, column in found.items() if column['sha256'] is None} == set(NAMES)
        assert {name: found[name] for name in 'ASV'} == expected
        done = h5bridge('verify', path, source)
        assert all('not compared: column %s' % name in ' '.join(done.stderr.split()) for name in NAMES)


def test_a_changed_value_is_still_found(made, tmp_path):
    h5bridge('to-hdf5', made[1], tmp_path / 'x.h5')
    with h5py.File(tmp_path / 'x.h5', 'r+') as file:
        file['MAIN/A'][3] = 99
    assert 'A row 3: 3 | 99' in h5bridge('verify', made[1], tmp_path / 'x.h5', code=support.DIFFERENT).stdout


@pytest.mark.parametrize('native', [False, True])
def test_casacore_reads_what_comes_back(native, made, tmp_path):
    whole, path = made
    if native:
        h5bridge('to-hdf5', path, tmp_path / 'x.h5')
        path = tmp_path / 'x.h5'
    done = h5bridge('to-ms', '--json', path, tmp_path / 'back.tab')
    document = json.loads(done.stdout)
    assert document['columns_missing'] == len(NAMES)
    assert all(any(name in warning and REASONS[name] in warning for warning in document['warnings']) for name in NAMES)
    with ct.table(str(tmp_path / 'back.tab'), ack=False) as found, ct.table(whole, ack=False) as expected:
        assert found.colnames() == ['A', 'S', 'V']
        for row in range(ROWS):
            assert all(np.array_equal(found.getcell(name, row), expected.getcell(name, row)) for name in 'ASV')
