"""VirtualTaQLColumn: the expression comes back from the native file, and casacore evaluates it."""
import json
import os
import shutil

import casacore.tables as ct
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


def back(folder, *options, source=SOURCE):
    """The table that comes back from the native file of SOURCE, and the document of to-ms."""
    h5bridge('to-hdf5', '--overwrite', *options, source, folder / 'x.h5')
    done = h5bridge('to-ms', '--overwrite', '--json', folder / 'x.h5', folder / 'back.tab')
    return str(folder / 'back.tab'), json.loads(done.stdout)


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
    assert values(str(tmp_path / 'direct.tab')) == values(SOURCE)


def test_an_expression_without_its_column_is_left_out(tmp_path):
    """Casacore would not open the table."""
    path, document = back(tmp_path, '--exclude', 'A')
    assert values(path) == {}
    assert document['columns_missing'] == 4
    warnings = [w for w in document['warnings'] if 'it names A, which is not a column here' in w]
    assert len(warnings) == 4, document['warnings']


@pytest.mark.parametrize('options', [(), ('--engines',)])
def test_with_and_without_other_engines(tmp_path, options):
    h5bridge('to-hdf5', SOURCE, tmp_path / 'x.h5')
    h5bridge('to-ms', *options, tmp_path / 'x.h5', tmp_path / 'back.tab')
    assert values(str(tmp_path / 'back.tab')) == values(SOURCE)
