"""VirtualTaQLColumn: values in the native file; the expression comes back, with --plain only where values are missing, and casacore
evaluates it."""
import json
import os
import shutil

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
from support import h5bridge

SOURCE = os.path.join(support.TESTDATA, 'virtual_taql', 't.tab')


def values(path):
    """{column: its cells as python-casacore has them}"""
    table = ct.table(path, ack=False)
    found = {name: [np.asarray(table.getcell(name, row)).tolist() for row in range(table.nrows())]
             for name in table.colnames()}
    table.close()
    return found


def managers(path):
    table = ct.table(path, ack=False)
    found = {name: m['TYPE'] for m in table.getdminfo().values() for name in m['COLUMNS']}
    table.close()
    return found


def back(folder, *options, source=SOURCE, words=()):
    """The table that comes back from the native file of SOURCE, and the document of to-ms WORDS."""
    h5bridge('to-hdf5', '--overwrite', *options, source, folder / 'x.h5')
    done = h5bridge('to-ms', '--overwrite', '--json', *words, folder / 'x.h5', folder / 'back.tab')
    return str(folder / 'back.tab'), json.loads(done.stdout)


def unread(path):
    """A table whose column V casacore evaluates, and this program does not."""
    columns = [ct.makescacoldesc('A', 0), ct.makescacoldesc('V', 0), ct.makescacoldesc('W', 0)]
    managers = {name: {'TYPE': 'VirtualTaQLColumn', 'NAME': name, 'COLUMNS': [name], 'SPEC': {'TAQLCALCEXPR': expression}}
                for name, expression in (('V', 'A + day(mjdtodate(A))'), ('W', 'V + 1'))}
    with ct.table(str(path), ct.maketabdesc(columns), nrow=9, dminfo=managers, ack=False) as table:
        table.putcol('A', np.arange(9, dtype='i4'))
    return str(path)


def test_values_and_expressions_are_in_the_native_file(tmp_path):
    h5bridge('to-hdf5', '--strict', SOURCE, tmp_path / 'x.h5')
    with h5py.File(tmp_path / 'x.h5') as file:
        for name, cells in values(SOURCE).items():
            found = file['MAIN'][name]
            found = found[...].tolist() if isinstance(found, h5py.Dataset) else found['values'][...].tolist()
            expected = np.ravel(cells).tolist() if isinstance(file['MAIN'][name], h5py.Group) else cells
            assert [text.decode() if isinstance(text, bytes) else text for text in found] == expected
        assert file['MAIN/V'].attrs['_VirtualTaQLEngine_CalcExpr'] == 'A*2.5+rownumber()'
    h5bridge('verify', SOURCE, tmp_path / 'x.h5')


def test_plain_stores_values(tmp_path):
    path, document = back(tmp_path, words=('--plain',))
    assert values(path) == values(SOURCE) and document['columns_missing'] == 0
    assert set(managers(path).values()) == {'StandardStMan'}
    assert sum('VirtualTaQLColumn is not written' in text for text in document['warnings']) == 4


def test_casacore_evaluates_what_comes_back(tmp_path):
    path, document = back(tmp_path)
    assert document['columns_missing'] == 0 and document['warnings'] == []
    expected = values(SOURCE)
    assert values(path) == expected and set(expected) == set('AVBSW')
    assert expected['A'] == list(range(-3, 6)) and expected['B'][1] is True
    assert managers(path) == managers(SOURCE)
    before, after = (ct.table(p, ack=False) for p in (SOURCE, path))
    for name in expected:
        assert after.getcolkeywords(name) == before.getcolkeywords(name)
        assert after.getcoldesc(name) == before.getcoldesc(name)
    before.close()
    after.close()
    h5bridge('verify', SOURCE, path)


def test_edited_values_are_stored(tmp_path):
    """The expression would give the old ones."""
    h5bridge('to-hdf5', SOURCE, tmp_path / 'x.h5')
    with h5py.File(tmp_path / 'x.h5', 'r+') as file:
        file['MAIN/V'][2] = 99
    done = h5bridge('to-ms', '--json', tmp_path / 'x.h5', tmp_path / 'back.tab')
    assert any('column V: the engine does not give the same values' in text for text in json.loads(done.stdout)['warnings'])
    path = str(tmp_path / 'back.tab')
    assert values(path)['V'][2] == 99
    assert managers(path)['V'] == 'StandardStMan' and managers(path)['B'] == 'VirtualTaQLColumn'


def test_it_is_computed_from_the_new_table(tmp_path):
    path, _ = back(tmp_path)
    table = ct.table(path, ack=False, readonly=False)
    before = table.getcell('B', 0)
    table.putcell('A', 0, table.getcell('A', 0) + 1)
    table.flush()
    assert table.getcell('B', 0) != before
    table.close()


def test_a_second_time_and_from_a_table(tmp_path):
    """Also from a table directory, whose managers are the same, and in a container of casacore's."""
    path, _ = back(tmp_path)
    again, _ = back(tmp_path, source=shutil.copytree(path, tmp_path / 'copy.tab'))
    assert values(again) == values(SOURCE)
    h5bridge('to-ms', SOURCE, tmp_path / 'direct.tab')
    assert values(str(tmp_path / 'direct.tab')) == values(SOURCE) and managers(str(tmp_path / 'direct.tab')) == managers(SOURCE)


def test_values_stay_without_the_column_of_the_expression(tmp_path):
    """Casacore would not open a table with the expression."""
    path, document = back(tmp_path, '--exclude', 'A')
    expected = values(SOURCE)
    del expected['A']
    assert values(path) == expected and document['columns_missing'] == 0


@pytest.mark.parametrize('words', [('--plain',), ('--engines',)])
def test_expressions_without_values_come_back(words, tmp_path):
    """Also those of columns that use such a column."""
    source = unread(tmp_path / 'source.tab')
    h5bridge('to-hdf5', '--json', '--strict', source, tmp_path / 'x.h5', code=support.WARNINGS)
    with h5py.File(tmp_path / 'x.h5') as file:
        assert file['MAIN'].attrs['V__taql'] == 'A + day(mjdtodate(A))' and 'V' not in file['MAIN']
    path, document = back(tmp_path, source=source, words=words)
    assert document['columns_missing'] == 0 and document['warnings'] == []
    assert values(path) == values(source) and managers(path) == managers(source)


def test_an_expression_without_values_and_its_column_is_left_out(tmp_path):
    """Casacore would not open the table."""
    path, document = back(tmp_path, '--exclude', 'A', source=unread(tmp_path / 'source.tab'))
    assert values(path) == {} and document['columns_missing'] == 2
    assert any('it names A, which is not a column here' in text for text in document['warnings']), document['warnings']
