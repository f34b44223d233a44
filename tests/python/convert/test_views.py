"""`to-ms` gives back what a table was: reference tables, concatenations, forwarded columns and engines. python-casacore sees the same
kind of table with the same cells; views are its bytes. Native files lead to no table beyond the directories that the user names."""
import json
import os
import shutil
import sys

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
from support import h5bridge

sys.path.insert(0, os.path.join(support.TESTDATA, 'oracle'))
import fingerprint  # noqa: E402

VIEWS = [('ref_tables', name + '.ref') for name in ('sel', 'sorted', 'cols', 'empty', 'renamed', 'refofref', 'dup')]
VIEWS += [('concat_tables', name) for name in ('c.concat', 'csub.concat', 'cref.concat', 'sel.ref', 'refofconcat.ref')]
CLASSES = {'ref': ('RefTable', 'reference'), 'concat': ('ConcatTable', 'concatenation')}


def kind(path):
    """What casacore calls the kind of a table, from its table.dat; and that it opens it."""
    ct.table(str(path), ack=False).close()
    return fingerprint.peek(str(path))['table_class']


def cells(path):
    """{column: cells} as python-casacore reads them, None where undefined; of floating-point numbers every bit counts."""
    def shown(cell):
        array = np.asarray(cell)
        return (array.shape, array.tobytes()) if array.dtype.kind in 'fc' else array.tolist()

    with ct.table(str(path), ack=False) as table:
        return {name: [shown(table.getcell(name, row)) if table.iscelldefined(name, row) else None for row in range(table.nrows())]
                for name in table.colnames()}


def managers(path):
    with ct.table(str(path), ack=False) as table:
        return {name: manager['TYPE'] for manager in table.getdminfo().values() for name in manager['COLUMNS']}


def to_native(source, *words):
    """The native file of a table, beside it."""
    native = source.with_name(source.name + '.h5')
    h5bridge('to-hdf5', '--overwrite', source, native, *words)
    return native


def to_ms(native, back, *words, code=0):
    """The document of `to-ms`."""
    return json.loads(h5bridge('--json', 'to-ms', native, back, *words, code=code).stdout)


@pytest.fixture
def refs(tmp_path):
    return shutil.copytree(os.path.join(support.TESTDATA, 'ref_tables'), tmp_path / 'refs')


@pytest.fixture
def concats(tmp_path):
    return shutil.copytree(os.path.join(support.TESTDATA, 'concat_tables'), tmp_path / 'concats')


@pytest.fixture
def forward(tmp_path):
    return shutil.copytree(os.path.join(support.TESTDATA, 'forward_columns'), tmp_path / 'forward')


@pytest.mark.parametrize('case, name', VIEWS)
def test_views_are_those_of_casacore(case, name, tmp_path, counts):
    """table.dat and table.info byte for byte, in a file of HDF5 1.8 as well."""
    folder = shutil.copytree(os.path.join(support.TESTDATA, case), tmp_path / case)
    source = folder / name
    expected_class, expected_kind = CLASSES[name.rpartition('.')[2]]
    for options in ([], ['--hdf5', '1.8'], ['--appendable'], ['--compress', 'none']):
        native, back = to_native(source, *options), folder / 'back'
        document = to_ms(native, back, '--overwrite')
        assert document['warnings'] == [] and document['tables'] == 1
        assert document['view']['kind'] == expected_kind and len(document['view']['tables']) == (1 if expected_kind == 'reference' else 2)
        assert sorted(os.listdir(back)) == ['table.dat', 'table.info']
        for file in os.listdir(back):
            assert (back / file).read_bytes() == (source / file).read_bytes(), file
        assert kind(back) == expected_class and cells(back) == cells(source)
        h5bridge('verify', source, back)
        h5bridge('verify', native, back)
        counts['views'] += 1


def test_casacore_selects_and_we_write_the_same(refs):
    """Of views that python-casacore makes now: sorted, in any order, of a selection, with other names."""
    rng = np.random.default_rng(7)
    base = ct.table(str(refs / 'base.tab'), ack=False)
    for number in range(12):
        rows = rng.integers(0, base.nrows(), size=rng.integers(0, 60))
        chosen = base.selectrows(rows.tolist())
        if number % 3 == 1:
            chosen = chosen.select('A as B, I')
        if number % 3 == 2:
            chosen = chosen.sort('D desc')
        source = refs / ('made%d.ref' % number)
        chosen.copy(str(source), deep=False).close()
        chosen.close()
        back = refs / ('back%d.ref' % number)
        assert to_ms(to_native(source), back)['warnings'] == []
        assert (back / 'table.dat').read_bytes() == (source / 'table.dat').read_bytes(), number
    base.close()


def test_selections_of_a_reference_are_references(refs):
    """--where, --rows and --columns; a selection of a native file as well."""
    source, native, back = refs / 'sorted.ref', refs / 'some.h5', refs / 'some.ref'
    with ct.table(str(source), ack=False) as table:
        wanted = [row for row in range(table.nrows()) if table.getcell('I', row) > 300]
        values = [table.getcell('I', row) for row in wanted]
    assert 0 < len(wanted) < 31
    h5bridge('to-hdf5', '--where', 'I > 300', '--columns', 'I,S', source, native)
    assert to_ms(native, back)['view']['kind'] == 'reference'
    assert kind(back) == 'RefTable' and cells(back)['I'] == values and set(cells(back)) == {'I', 'S'}
    h5bridge('verify', native, back)
    h5bridge('to-hdf5', '--rows', '1..4', native, refs / 'fewer.h5')
    to_ms(refs / 'fewer.h5', refs / 'fewer.ref')
    assert kind(refs / 'fewer.ref') == 'RefTable' and cells(refs / 'fewer.ref')['I'] == values[1:4]


def test_some_rows_of_a_concatenation_are_a_plain_table(concats):
    h5bridge('to-hdf5', '--rows', '2..12', concats / 'c.concat', concats / 'some.h5')
    assert 'view' not in to_ms(concats / 'some.h5', concats / 'some.tab')
    assert kind(concats / 'some.tab') == 'PlainTable'
    assert cells(concats / 'some.tab')['I'] == cells(concats / 'c.concat')['I'][2:12]


@pytest.mark.parametrize('case, name', [('ref_tables', 'renamed.ref'), ('concat_tables', 'c.concat')])
def test_tables_elsewhere_are_named(case, name, tmp_path):
    """Without them a plain table and a warning, or with --views always an error and nothing."""
    folder = shutil.copytree(os.path.join(support.TESTDATA, case), tmp_path / case)
    source, away = folder / name, tmp_path / 'away'
    away.mkdir()
    native = shutil.move(to_native(source), away / 'x.h5')
    expected = cells(source)
    document = to_ms(native, away / 'plain')
    assert 'view' not in document and kind(away / 'plain') == 'PlainTable' and cells(away / 'plain') == expected
    assert any('is not in' in text and '--parts' in text for text in document['warnings'])
    to_ms(native, away / 'strict', '--strict', code=support.WARNINGS)
    said = h5bridge('to-ms', '--views', 'always', native, away / 'none', code=support.UNSUPPORTED).stderr
    assert 'cannot be written again' in said and not (away / 'none').exists()
    assert sorted(path.name for path in away.iterdir()) == ['plain', 'strict', 'x.h5']

    document = to_ms(native, away / 'view', '--parts', folder)
    assert document['warnings'] == [] and kind(away / 'view') == CLASSES[name.rpartition('.')[2]][0]
    assert all(path.startswith(str(folder)) for path in document['view']['tables'])
    assert cells(away / 'view') == expected
    h5bridge('verify', source, away / 'view')
    # beside each other the tables can be moved
    to_ms(native, folder / 'again', '--parts', folder)
    assert (folder / 'again' / 'table.dat').read_bytes() == (source / 'table.dat').read_bytes()
    assert 'not a directory; --parts' in h5bridge('to-ms', '--parts', native, native, away / 'none', code=support.USAGE).stderr


def test_copies_refer_to_nothing_unless_asked(refs):
    native = to_native(refs / 'sel.ref')
    assert to_ms(native, refs / 'never.tab', '--views', 'never')['warnings'] == []
    to_ms(refs / 'sel.ref', refs / 'direct.tab')
    for name in ('never.tab', 'direct.tab'):
        assert kind(refs / name) == 'PlainTable' and cells(refs / name) == cells(refs / 'sel.ref')
    to_ms(refs / 'sel.ref', refs / 'direct.ref', '--views', 'always')
    assert (refs / 'direct.ref/table.dat').read_bytes() == (refs / 'sel.ref/table.dat').read_bytes()
    # of a plain table nothing is asked
    to_ms(refs / 'base.tab', refs / 'base.copy', '--views', 'always')
    assert kind(refs / 'base.copy') == 'PlainTable'


def test_other_values_make_a_plain_table(refs):
    """Whether the file was edited, or the table that it refers to."""
    native = to_native(refs / 'sel.ref')
    shutil.copy(native, refs / 'edited.h5')
    with h5py.File(refs / 'edited.h5', 'r+') as file:
        file['MAIN/I'][3] += 1
    document = to_ms(refs / 'edited.h5', refs / 'edited.tab')
    assert kind(refs / 'edited.tab') == 'PlainTable' and any('column I' in text for text in document['warnings'])
    assert cells(refs / 'edited.tab')['I'][3] == cells(refs / 'sel.ref')['I'][3] + 1

    with h5py.File(native) as file:
        expected = file['MAIN/I'][...].tolist()
    with ct.table(str(refs / 'base.tab'), readonly=False, ack=False) as base:
        base.putcell('I', 12, 5 + base.getcell('I', 12))
    document = to_ms(native, refs / 'kept.tab')
    assert kind(refs / 'kept.tab') == 'PlainTable' and cells(refs / 'kept.tab')['I'] == expected
    assert 'column I' in ' '.join(document['warnings'])


@pytest.mark.parametrize('edit', ['keyword', 'comment', 'column', 'subtable'])
def test_edits_beside_cells_make_a_plain_table(edit, refs):
    native = to_native(refs / 'sel.ref')
    with h5py.File(native, 'r+') as file:
        main = file['MAIN']
        if edit == 'keyword':
            main.attrs['OBSERVER'] = 'me'
        if edit == 'comment':
            main['I'].attrs['long_name'] = 'edited'
        if edit == 'column':
            main['NEW'] = np.arange(len(main['I']), dtype='i4')
        if edit == 'subtable':
            file.create_group('EXTRA')['NAME'] = ['a', 'b']
    document = to_ms(native, refs / 'back')
    assert kind(refs / 'back') == 'PlainTable' and any('a plain table is written' in text for text in document['warnings'])
    with ct.table(str(refs / 'back'), ack=False) as table:
        if edit == 'keyword':
            assert table.getkeyword('OBSERVER') == 'me'
        if edit == 'comment':
            assert table.getcoldesc('I')['comment'] == 'edited'
        if edit == 'column':
            assert 'NEW' in table.colnames()
        if edit == 'subtable':
            assert 'EXTRA' in table.keywordnames()


def test_a_part_is_never_replaced(refs):
    """Nor one inside the table that is replaced."""
    native = to_native(refs / 'sel.ref')
    expected = cells(refs / 'sel.ref')
    inside = shutil.copytree(refs / 'base.tab', refs / 'old.tab' / 'base.tab')
    shutil.copytree(refs / 'base.tab', refs / 'old.tab', dirs_exist_ok=True)
    document = to_ms(native, refs / 'old.tab', '--overwrite', '--parts', inside.parent)
    assert kind(refs / 'old.tab') == 'PlainTable' and any('is replaced by the new table' in text for text in document['warnings'])
    document = to_ms(native, refs / 'base.tab', '--overwrite')
    assert kind(refs / 'base.tab') == 'PlainTable' and any('is replaced by the new table' in text for text in document['warnings'])
    assert cells(refs / 'base.tab') == expected and cells(refs / 'old.tab') == expected


def test_a_plain_table_is_replaced_by_a_view(refs):
    """Tables in its directory count no more."""
    old = shutil.copytree(os.path.join(support.TESTDATA, 'demo', 'demo.ms'), refs / 'old.ms')
    assert to_ms(to_native(refs / 'sel.ref'), old, '--overwrite')['view']['kind'] == 'reference'
    assert sorted(os.listdir(old)) == ['table.dat', 'table.info'] and cells(old) == cells(refs / 'sel.ref')


def test_a_view_inside_its_root(refs):
    with ct.table(str(refs / 'base.tab'), ack=False) as base:
        base.query('I > 500', name=str(refs / 'base.tab' / 'inner.ref')).close()
    source, native = refs / 'base.tab' / 'inner.ref', refs / 'inner.h5'
    h5bridge('to-hdf5', source, native)
    expected, dat = cells(source), (source / 'table.dat').read_bytes()
    shutil.rmtree(source)
    assert to_ms(native, source)['view']['tables'] == [str(refs / 'base.tab')]
    assert cells(source) == expected and (source / 'table.dat').read_bytes() == dat


# ---- subtables ------------------------------------------------------------------------------------------------------

@pytest.fixture
def with_sorted(tmp_path):
    """A MeasurementSet with a subtable that is a reference to it, as casacore's MSIter keeps one."""
    path = shutil.copytree(os.path.join(support.TESTDATA, 'demo', 'demo.ms'), tmp_path / 'demo.ms')
    with ct.table(str(path), readonly=False, ack=False) as table:
        table.sort('TIME desc', name=str(path / 'SORTED_TABLE')).close()
        table.putkeyword('SORTED_TABLE', 'Table: %s' % (path / 'SORTED_TABLE'))
    assert kind(path / 'SORTED_TABLE') == 'RefTable'
    return path


def test_subtables_that_are_references_come_back(with_sorted, tmp_path):
    native, back = to_native(with_sorted), tmp_path / 'back.ms'
    document = to_ms(native, back)
    assert document['warnings'] == [] and 'view' not in document
    assert classes(back) == classes(with_sorted)
    for file in ('table.dat', 'table.info'):
        assert (back / 'SORTED_TABLE' / file).read_bytes() == (with_sorted / 'SORTED_TABLE' / file).read_bytes()
    with ct.table(str(back / 'SORTED_TABLE'), ack=False) as after, ct.table(str(with_sorted / 'SORTED_TABLE'), ack=False) as before:
        for name in ('TIME', 'DATA', 'ANTENNA1'):
            assert np.array_equal(after.getcol(name), before.getcol(name))
    h5bridge('verify', with_sorted, back)
    # it is one of the new table, also in another place
    moved = shutil.move(back, tmp_path / 'moved.ms')
    shutil.rmtree(with_sorted)
    assert len(cells(moved / 'SORTED_TABLE')['TIME']) == 210
    to_ms(native, tmp_path / 'plain.ms', '--views', 'never')
    assert set(classes(tmp_path / 'plain.ms').values()) == {'PlainTable'}


def test_a_subtable_with_other_rows_is_plain(with_sorted, tmp_path):
    native = to_native(with_sorted)
    with h5py.File(native, 'r+') as file:
        file['SORTED_TABLE/SCAN_NUMBER'][0] += 1
        expected = file['SORTED_TABLE/SCAN_NUMBER'][...].tolist()
    document = to_ms(native, tmp_path / 'back.ms')
    assert any(text.startswith('subtable SORTED_TABLE: the source was a reference table') for text in document['warnings'])
    assert kind(tmp_path / 'back.ms' / 'SORTED_TABLE') == 'PlainTable'
    assert cells(tmp_path / 'back.ms' / 'SORTED_TABLE')['SCAN_NUMBER'] == expected
    said = h5bridge('to-ms', '--views', 'always', native, tmp_path / 'none.ms', code=support.UNSUPPORTED).stderr
    assert 'subtable SORTED_TABLE' in said and not (tmp_path / 'none.ms').exists()


# ---- hostile files --------------------------------------------------------------------------------------------------

def edit_view(native, **members):
    """Changes members of the document of the view."""
    with h5py.File(native, 'r+') as file:
        document = json.loads(file['_ctds/MAIN'].attrs['table'])
        document['view'].update(members)
        file['_ctds/MAIN'].attrs['table'] = json.dumps(document)


@pytest.mark.parametrize('name', ['../base.tab', '{absolute}', 'sub/../../base.tab', './../base.tab', '..', '.', '', '/', 'a//../../base.tab'])
def test_names_lead_to_no_other_directory(name, refs, tmp_path):
    """The table would be there, and have the values."""
    shutil.copytree(refs / 'base.tab', tmp_path / 'base.tab')
    native = to_native(refs / 'sel.ref')
    expected = cells(refs / 'sel.ref')
    (refs / 'sub').mkdir()
    shutil.rmtree(refs / 'base.tab')
    edit_view(native, tables=[name.format(absolute=tmp_path / 'base.tab')])
    document = to_ms(native, refs / 'back')
    assert kind(refs / 'back') == 'PlainTable' and cells(refs / 'back') == expected
    assert any('is not the name of a table in a directory' in text for text in document['warnings'])
    h5bridge('to-ms', '--views', 'always', native, refs / 'none', code=support.UNSUPPORTED)


@pytest.mark.parametrize('members, words', [
    ({'root_rows': 41}, 'but had 41 when rows were selected'),
    ({'root_rows': 2**63}, 'rows were selected'),
    ({'columns': [['I', 'D']]}, 'column'),
    ({'columns': [['I', 'NONE']]}, 'column'),
    ({'columns': []}, 'column'),
    ({'tables': ['sel.ref']}, 'rows were selected'),
    ({'tables': ['base.tab/table.dat']}, ''),
    ({'tables': ['sel.ref.h5']}, ''),
    ({'tables': ['back']}, 'is not in'),
])
def test_wrong_descriptions_are_not_believed(members, words, refs):
    native = to_native(refs / 'sel.ref')
    edit_view(native, **members)
    document = to_ms(native, refs / 'back')
    assert kind(refs / 'back') == 'PlainTable' and cells(refs / 'back') == cells(refs / 'sel.ref')
    assert any('a plain table is written' in text and words in text for text in document['warnings']), document['warnings']


@pytest.mark.parametrize('members', [{'kind': 'join'}, {'root_rows': None}, {'tables': []}, {'tables': ['a', 'b']}])
def test_unknown_kinds_are_passed_over(members, refs):
    native = to_native(refs / 'sel.ref')
    edit_view(native, **members)
    assert to_ms(native, refs / 'back')['warnings'] == [] and kind(refs / 'back') == 'PlainTable'


@pytest.mark.parametrize('rows', ['other', 'beyond', 'negative', 'fewer', 'more', 'missing', 'text', 'two axes', 'huge'])
def test_wrong_row_numbers_are_not_believed(rows, refs):
    native = to_native(refs / 'sel.ref')
    with h5py.File(native, 'r+') as file:
        numbers = file['_ctds/MAIN/view.rows'][...]
        assert numbers.dtype == 'i8' and len(numbers) == len(file['MAIN/I'])
        del file['_ctds/MAIN/view.rows']
        changed = {'other': numbers[::-1], 'beyond': numbers + 20, 'negative': numbers - 30, 'fewer': numbers[1:], 'more': [*numbers, 1],
                   'text': [str(number) for number in numbers], 'two axes': numbers.reshape(-1, 1), 'huge': numbers + 2**40}
        if rows in changed:
            file['_ctds/MAIN/view.rows'] = changed[rows]
    document = to_ms(native, refs / 'back')
    assert kind(refs / 'back') == 'PlainTable' and cells(refs / 'back') == cells(refs / 'sel.ref')
    assert any('a plain table is written' in text for text in document['warnings'])


def test_files_without_a_record_give_plain_tables(refs):
    """Those of older versions."""
    native = to_native(refs / 'sel.ref')
    with h5py.File(native, 'r+') as file:
        document = json.loads(file['_ctds/MAIN'].attrs['table'])
        del document['view'], file['_ctds/MAIN/view.rows']
        file['_ctds/MAIN'].attrs['table'] = json.dumps(document)
    assert to_ms(native, refs / 'back')['warnings'] == []
    assert kind(refs / 'back') == 'PlainTable' and cells(refs / 'back') == cells(refs / 'sel.ref')


# ---- forwarded columns and engines ----------------------------------------------------------------------------------

def test_forwarded_columns_come_back(forward):
    source, back = forward / 'fwd.tab', forward / 'back.tab'
    native = to_native(source)
    assert to_ms(native, back)['warnings'] == []
    assert managers(back) == managers(source) and cells(back) == cells(source)
    with ct.table(str(source), ack=False) as before, ct.table(str(back), ack=False) as after:
        assert after.getkeywords() == before.getkeywords()
        for name in before.colnames():
            assert after.getcolkeywords(name) == before.getcolkeywords(name) and after.getcoldesc(name) == before.getcoldesc(name)
    h5bridge('verify', source, back)
    h5bridge('verify', native, back)
    with ct.table(str(forward / 'orig.tab'), readonly=False, ack=False) as orig:
        orig.putcell('I', 2, -17)
    assert cells(back)['I'][2] == -17


def test_forwarded_columns_are_stored_where_they_have_to(forward, tmp_path):
    source = forward / 'fwd.tab'
    native, expected = to_native(source), cells(source)
    to_ms(native, forward / 'plain.tab', '--plain')
    with h5py.File(native, 'r+') as file:
        file['MAIN/I'][1] += 1
    document = to_ms(native, forward / 'edited.tab')
    assert any('column I: the engine does not give the same values' in text for text in document['warnings'])
    found = managers(forward / 'edited.tab')
    assert found['I'] == 'StandardStMan' and found['S'] == found['A'] == 'ForwardColumnEngine'
    assert cells(forward / 'edited.tab') == {**expected, 'I': [value + (row == 1) for row, value in enumerate(expected['I'])]}

    away = tmp_path / 'away'
    away.mkdir()
    native = shutil.move(to_native(source), away / 'x.h5')
    document = to_ms(native, away / 'lost.tab')
    assert sum('the forwarded cells are stored: the table orig.tab is not in' in text for text in document['warnings']) == 3
    for path in (forward / 'plain.tab', away / 'lost.tab'):
        assert set(managers(path).values()) == {'StandardStMan'} and cells(path) == expected
        with ct.table(str(path), ack=False) as table:
            assert table.getcolkeywords('I') == {}
    assert to_ms(native, away / 'found.tab', '--parts', forward)['warnings'] == []
    assert managers(away / 'found.tab') == managers(source) and cells(away / 'found.tab') == expected
    h5bridge('verify', source, away / 'found.tab')
    # a copy of a table refers to nothing
    to_ms(source, forward / 'copy.tab')
    assert set(managers(forward / 'copy.tab').values()) == {'StandardStMan'} and cells(forward / 'copy.tab') == expected


@pytest.mark.parametrize('name', ['../orig.tab', './../orig.tab', '{absolute}', 'inner/.', ''])
def test_forwarded_columns_lead_to_no_other_directory(name, forward, tmp_path):
    """An absolute name counts by its last component, in the directory of the file."""
    shutil.copytree(forward / 'orig.tab', tmp_path / 'orig.tab')
    native, expected = to_native(forward / 'fwd.tab'), cells(forward / 'fwd.tab')
    shutil.rmtree(forward / 'orig.tab')
    with h5py.File(native, 'r+') as file:
        for column in 'ISA':
            attributes = file['_ctds/MAIN'].attrs
            document = json.loads(attributes['column.' + column])
            document['keywords'] = [[key, {**field, 'value': name.format(absolute=tmp_path / 'orig.tab')}] for key, field in document['keywords']]
            attributes['column.' + column] = json.dumps(document)
            file['MAIN'][column].attrs['_ForwardColumn_TableName'] = name.format(absolute=tmp_path / 'orig.tab')
    to_ms(native, forward / 'back.tab')
    assert set(managers(forward / 'back.tab').values()) == {'StandardStMan'} and cells(forward / 'back.tab') == expected


@pytest.mark.parametrize('case', ['bitflags_engines', 'compress_engines', 'engine_forms', 'virtual_taql', 'forward_columns'])
def test_engines_come_back(case, tmp_path, counts):
    """`verify` is equal after the way back, keywords included."""
    folder = shutil.copytree(os.path.join(support.TESTDATA, case), tmp_path / case)
    for root in support.roots(support.expected(case)['tables']):
        if support.outcome(support.expected(case)['tables'], root)[0] == {support.DONE}:
            come_back(folder / root, tmp_path / (case + root.replace('/', '_')), counts)
    assert counts['engines and views'] > 0


def engine_of_another_shape(path):
    """A column of two axes behind an engine that is described with three, as casacore's own test of it has one."""
    columns = [ct.makearrcoldesc('F', False, ndim=3, shape=[4, 3, 2], options=5), ct.makearrcoldesc('B', 0, ndim=2, shape=[4, 3], valuetype='uchar', options=5)]
    spec = {'SOURCENAME': 'F', 'TARGETNAME': 'B', 'ReadMask': np.uint32(0xff), 'WriteMask': np.uint32(1)}
    managers = {'*1': {'TYPE': 'BitFlagsEngine<uChar   ', 'NAME': 'F', 'COLUMNS': ['F'], 'SPEC': spec}}
    with ct.table(str(path), ct.maketabdesc(columns), dminfo=managers, nrow=5, ack=False) as made:
        for row in range(5):
            made.putcell('B', row, (np.arange(12) + row).reshape(4, 3).astype('u1'))
    return path


def test_engine_of_another_shape(tmp_path, counts):
    source = engine_of_another_shape(tmp_path / 'a.tab')
    come_back(source, tmp_path / 'b', counts)
    with ct.table(str(source), ack=False) as before, ct.table(str(tmp_path / 'b.back'), ack=False) as after:
        for column in ('F', 'B'):
            assert str(before.getcoldesc(column)) == str(after.getcoldesc(column))
            assert np.array_equal(before.getcol(column), after.getcol(column))
        assert list(before.getcoldesc('F')['shape']) == [4, 3, 2] and before.getcell('F', 0).shape == (4, 3)


def come_back(source, home, counts):
    """A table with engines, or a view, is what it was; HOME is a path for the native file and the table beside the source."""
    if not types(source) and set(classes(source).values()) == {'PlainTable'}:
        return
    native, back = source.with_name(home.name + '.h5'), source.with_name(home.name + '.back')
    h5bridge('to-hdf5', source, native, code=None)
    h5bridge('to-ms', native, back, code=None)
    h5bridge('verify', source, back)
    after = classes(back)
    assert '.' in after and {place: name for place, name in classes(source).items() if place in after} == after
    assert types(back) == types(source)
    counts['engines and views'] += 1


def types(path):
    """Sorted types of the engines of a table, as `info` reads them from table.dat; of a view those of the columns it shows."""
    document = json.loads(h5bridge('--json', 'info', path).stdout)
    return sorted(manager['type'] for manager in document['tables']['.']['managers'] if is_engine(manager['type']))


def is_engine(name):
    return any(name.startswith(engine) for engine in ('Scaled', 'Compress', 'Mapped', 'BitFlags', 'Forward', 'VirtualTaQL'))


def classes(path):
    """{relative path: kind} of a table and those in its directory."""
    return {os.path.relpath(folder, path): fingerprint.peek(folder)['table_class']
            for folder, _, files in os.walk(path) if 'table.dat' in files}


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', support.corpus(), ids=lambda e: e['name'] if e else 'corpus')
def test_corpus(entry, tmp_path, counts):
    """Views and engines of the corpus."""
    folder = support.unpack(entry, tmp_path)
    for number, root in enumerate(support.roots(entry['tables'])):
        if support.outcome(entry['tables'], root)[0] == {support.DONE} and not support.optional(entry['tables'][root]):
            come_back(tmp_path / folder / root if root != '.' else tmp_path / folder, tmp_path / ('%d' % number), counts)
