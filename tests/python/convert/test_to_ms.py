"""`to-ms`: tables come back from native files, and python-casacore sees what it saw before.

H5BRIDGE_LONG=1 takes a few hundred generated tables instead of a couple of dozen; H5BRIDGE_SEED: support.seeds."""
import json
import os
import random
import shutil
import subprocess
import sys
import time

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
from support import h5bridge

sys.path.insert(0, os.path.join(support.TESTDATA, 'oracle'))
import fingerprint  # noqa: E402

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
WRITTEN = {'StandardStMan', 'IncrementalStMan', 'StManAipsIO',
           'TiledColumnStMan', 'TiledShapeStMan', 'TiledCellStMan', 'TiledDataStMan'}
# written without values, which casacore computes
EXPRESSIONS = {'VirtualTaQLColumn'}


def differences(before, after):
    """What python-casacore's fingerprint of a table says differently of the one that came back."""
    engines = {name for name, c in before['columns'].items() if (c.get('dm') or '').strip() not in WRITTEN}
    # columns of managers that are not read
    gone = {name for name in engines if name not in after['columns'] and name in support.optional(before)}
    # of some tables python-casacore cannot say everything
    known = 'python_error' not in before
    whole = ('nrow',) + (() if gone else ('sha256',)) + (('info', 'keywords', 'keywords_sha256') if known else ())
    for key in whole:
        if before.get(key) != after.get(key) and not (key.startswith('keywords') and 'keywords_note' in before):
            yield key, before.get(key), after.get(key)
    for name in sorted((set(before['columns']) | set(after['columns'])) - gone):
        a, b = before['columns'].get(name), after['columns'].get(name)
        if a is None or b is None:
            yield name, a and 'there', b and 'there'
            continue
        described = ('option', 'comment', 'ndim', 'fixed_shape', 'maxlen', 'dm', 'dm_name')
        for key in ('dtype', 'kind', 'sha256', 'keywords_sha256') + (described if known and 'note' not in a else ()):
            # what an engine computed is stored by another manager now, without the engine's keywords, in cells as they are
            if a.get(key) != b.get(key) and not (name in engines and key in ('dm', 'dm_name', 'keywords_sha256')
                                              or is_stored_shape(before, name in engines, key, b)):
                yield '%s %s' % (name, key), a.get(key), b.get(key)


def is_stored_shape(before, is_engine, key, column):
    """Whether a column that an engine computed now says the shape of a stored one, as its cells have it."""
    stored = [c for c in before['columns'].values() if (c.get('dm') or '').strip() in WRITTEN]
    return is_engine and key in ('ndim', 'fixed_shape') and any(
        c.get('ndim') == column.get('ndim') and c.get('fixed_shape') == column.get('fixed_shape') for c in stored)


def layouts(path):
    """{name of a manager: what it was made with}, as far as it means something."""
    found = {}
    table = ct.table(path, ack=False)
    for manager in table.getdminfo().values():
        spec, kind = manager.get('SPEC', {}), manager['TYPE']
        if kind in WRITTEN:
            tiles = {tuple(cube['CellShape']): tuple(cube['TileShape']) for cube in spec.get('HYPERCUBES', {}).values()}
            found.setdefault(manager['NAME'], []).append(
                (kind, set(manager['COLUMNS']), (spec.get('BUCKETSIZE'), list(spec.get('DEFAULTTILESHAPE', [])), tiles)))
    table.close()
    return found


def there_and_back(source, folder, *options):
    """The path of the table that comes back from the native file of SOURCE, under the same name."""
    target, back = os.path.join(folder, 'x.h5'), os.path.join(folder, 'back', os.path.basename(source))
    os.makedirs(os.path.dirname(back), exist_ok=True)
    h5bridge('to-hdf5', '--overwrite', source, target)
    h5bridge('to-ms', '--overwrite', *options, target, back)
    os.remove(target)
    return back


def check(source, tables, root, folder, counts):
    """Takes a table there and back, all values stored; TABLES are the fingerprints of its folder."""
    back = there_and_back(source, folder, '--plain')
    after, problems = fingerprint.fingerprint_tree(back), []
    for path, before in support.below(tables, root).items():
        # a table that no keyword leads to is not converted
        if path in after and not support.unreadable(before) and 'error' not in before:
            counts['tables'] += 1
            counts['columns'] += len(before['columns'])
            problems += [(path,) + found for found in differences(before, after[path])]
    assert '.' in after
    assert not problems, '%s\n%s' % (source, '\n'.join(map(str, problems[:20])))
    mine, theirs = layouts(back), layouts(source) if not {'dminfo_error', 'python_error'} & set(tables[root]) else {}
    if tables[root].get('table_class') != 'PlainTable':
        theirs = {}         # what a reference or a concatenation selects is stored anew
    for name, managers in theirs.items():
        for kind, columns, spec in managers:
            # columns of managers that are not written come in addition
            assert any(other[0] == kind and other[1] >= columns and other[2] == spec for other in mine.get(name, ())), (
                source, name, managers, mine.get(name))
    change(back, counts)
    shutil.rmtree(os.path.dirname(back))


def change(path, counts):
    """python-casacore adds rows, writes cells and adds a column to our table; we read what it reads."""
    table = ct.table(path, ack=False, readonly=False)
    rows = table.nrows()
    # new rows are in no hypercube of a TiledDataStMan before somebody says in which
    kinds = {manager['TYPE'] for manager in table.getdminfo().values()}
    if rows > 2000 or not table.colnames() or 'TiledDataStMan' in kinds:
        table.close()
        return
    table.addrows(2)
    computed = {name for manager in table.getdminfo().values() if manager['TYPE'] in EXPRESSIONS
                for name in manager['COLUMNS']}
    for name in sorted(set(table.colnames()) - computed):
        try:
            value = table.getcell(name, 0) if rows and table.iscelldefined(name, 0) else None
        except (RuntimeError, UnicodeDecodeError):
            continue            # python-casacore cannot read the column
        if value is not None and not isinstance(value, dict) and table.getcoldesc(name)['valueType'] != 'ushort':
            table.putcell(name, rows, value)
            table.putcell(name, 0, value)
            counts['cells put by casacore'] += 2
    table.addcols(ct.maketabdesc([ct.makescacoldesc('ADDED', 1.5), ct.makearrcoldesc('ADDED_ARRAY', 0, ndim=1)]))
    table.putcol('ADDED', np.arange(rows + 2.0))
    table.close()
    expected = fingerprint.table_fingerprint(path)
    found = support.digest(path, code=None)['.']
    assert found['nrow'] == rows + 2
    for name, column in expected['columns'].items():
        if column['sha256'] is not None and name not in computed:
            assert found['columns'][name]['sha256'] == column['sha256'], '%s %s' % (path, name)


def convertible(tables, root):
    return support.outcome(tables, root)[0] == {support.DONE}


@pytest.mark.parametrize('case', [case for case in support.cases() if case != 'rows64'])
def test_testdata(case, tmp_path, counts):
    tables = support.expected(case)['tables']
    for root in support.some_roots(tables):
        if convertible(tables, root):
            check(os.path.join(support.TESTDATA, case, root), tables, root, str(tmp_path), counts)


@pytest.mark.parametrize('seed', support.seeds(300, 2, 40))
def test_generated(seed, tmp_path, counts):
    folder = tmp_path / 'made'
    folder.mkdir()
    for name, tables in support.make_tables(str(folder), seed, 12 if support.LONG else 5).items():
        for root in support.roots(tables):
            if convertible(tables, root):
                check(str(folder / name / root), tables, root, str(tmp_path), counts)


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', support.corpus(), ids=lambda e: e['name'] if e else 'corpus')
def test_corpus(entry, tmp_path, counts):
    folder = support.unpack(entry, tmp_path)
    for root in support.roots(entry['tables']):
        if convertible(entry['tables'], root):
            check(os.path.join(folder, root), entry['tables'], root, str(tmp_path), counts)


def exact_values(path):
    """{path: attributes, and values of a dataset} of the group `_ctds`."""
    found = {}

    def visit(name, item):
        values = item[()].tolist() if isinstance(item, h5py.Dataset) else None
        found[name] = {key: str(value) for key, value in item.attrs.items()}, values
    with h5py.File(path) as file:
        file['_ctds'].visititems(visit)
    return found


@pytest.mark.parametrize('case,table', support.some_convertible())
def test_a_native_file_of_a_native_file(case, table, converted, tmp_path, counts):
    """It says how casacore stored the table, as the first does."""
    first = converted(case, table)
    h5bridge('to-hdf5', first, tmp_path / 'again.h5')
    expected = exact_values(first)
    assert exact_values(tmp_path / 'again.h5') == expected
    counts['documents'] += sum(map(len, (attributes for attributes, _ in expected.values())))


@pytest.mark.parametrize('order', ['big', 'little'])
def test_table_to_table(order, tmp_path, counts):
    """A table is a source too; the byte order is as wanted."""
    back = str(tmp_path / 'demo.ms')
    h5bridge('to-ms', '--byte-order', order, DEMO, back)
    assert ct.table(back, ack=False).endianformat() == order
    after = fingerprint.fingerprint_tree(back)
    for path, before in support.below(support.expected('demo')['tables'], 'demo.ms').items():
        assert not list(differences(before, after[path]))
        counts['tables'] += 1


def test_rows_of_a_hypercube_in_another_order(tmp_path):
    """Their tiles cannot be copied as they are."""
    source, back = str(tmp_path / 'x.tab'), str(tmp_path / 'back.tab')
    description = ct.maketabdesc([ct.makearrcoldesc('C', 0., ndim=1, valuetype='float')])
    managers = {'*1': {'TYPE': 'TiledShapeStMan', 'NAME': 'T', 'COLUMNS': ['C'], 'SPEC': {'DEFAULTTILESHAPE': [4, 2]}}}
    with ct.table(source, description, nrow=6, dminfo=managers, ack=False) as table:
        for row in (3, 4, 5, 0, 1, 2):
            table.putcell('C', row, np.arange(4, dtype='f4') + 10 * row)
        expected = table.getcol('C')
    h5bridge('to-ms', source, back)
    assert np.array_equal(ct.table(back, ack=False).getcol('C'), expected)


# ---- edits ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def demo(tmp_path):
    h5bridge('to-hdf5', DEMO, tmp_path / 'demo.h5')
    return tmp_path / 'demo.h5'


def test_values_changed_in_h5py(demo, tmp_path):
    with h5py.File(demo, 'r+') as file:
        data, flag = file['MAIN/DATA'], file['MAIN/FLAG']
        data[17, 3, 2] = 5 - 7j
        flag[5:9] = ~flag[5:9]
        expected = data[...], flag[...]
        file['ANTENNA/NAME'][1] = 'changed'
    h5bridge('to-ms', demo, tmp_path / 'back.ms')
    table = ct.table(str(tmp_path / 'back.ms'), ack=False)
    assert np.array_equal(table.getcol('DATA'), expected[0]) and table.getcell('DATA', 17)[3, 2] == 5 - 7j
    assert np.array_equal(table.getcol('FLAG'), expected[1])
    assert ct.table(str(tmp_path / 'back.ms::ANTENNA'), ack=False).getcell('NAME', 1) == 'changed'


def test_attributes_changed_in_h5py(demo, tmp_path):
    with h5py.File(demo, 'r+') as file:
        main, time_, uvw = file['MAIN'], file['MAIN/TIME'], file['MAIN/UVW']
        main.attrs['MS_VERSION'] = 2.5                  # was a float keyword
        main.attrs['table_subtype'] = 'edited'
        main.attrs['OBSERVER'] = 'me'                   # new
        main.attrs['NUMBERS'] = np.arange(6, dtype='i4')
        main.attrs['NUMBERS__shape'] = [2, 3]
        time_.attrs['MEASINFO.Ref'] = 'TAI'             # nested
        uvw.attrs['units'] = 'km'
        uvw.attrs['long_name'] = 'edited comment'
        file['ANTENNA'].attrs['readme'] = 'edited\n'
        # cannot be a measure
        file['MAIN/EXPOSURE'].attrs['QuantumUnits'] = 3
    process = h5bridge('to-ms', demo, tmp_path / 'back.ms')
    for words in ('attribute MS_VERSION was edited', 'attribute OBSERVER was added', 'column TIME: attribute MEASINFO.Ref',
                  'subtable ANTENNA: attribute readme was edited',
                  'column EXPOSURE: attribute QuantumUnits was edited to what cannot stand for it'):
        assert words in process.stderr, process.stderr
    table = ct.table(str(tmp_path / 'back.ms'), ack=False)
    assert table.getkeyword('MS_VERSION') == 2.5 and table.getkeyword('OBSERVER') == 'me'
    assert table.getkeyword('NUMBERS').tolist() == [[0, 1, 2], [3, 4, 5]]
    assert table.info()['subType'] == 'edited'
    assert table.getcolkeyword('TIME', 'MEASINFO')['Ref'] == 'TAI'
    assert list(table.getcolkeyword('UVW', 'QuantumUnits')) == ['km', 'm', 'm']
    assert table.getcoldesc('UVW')['comment'] == 'edited comment'
    assert list(table.getcolkeyword('EXPOSURE', 'QuantumUnits')) == ['s']
    # what nobody has touched is not mentioned
    assert process.stderr.count('was edited') == 7, process.stderr


@pytest.mark.parametrize('values', [False, True])
def test_another_shape_of_a_keyword_in_h5py(values, tmp_path):
    """Alone, or with other values."""
    source, native, back = (str(tmp_path / name) for name in ('x.tab', 'x.h5', 'back.tab'))
    expected = np.arange(6, dtype='i4')
    with ct.table(source, ct.maketabdesc([ct.makescacoldesc('A', 0)]), ack=False) as table:
        table.putkeyword('GRID', expected.reshape(2, 3))
    h5bridge('to-hdf5', source, native)
    with h5py.File(native, 'r+') as file:
        attributes = file['MAIN'].attrs
        assert attributes['GRID__shape'].tolist() == [2, 3]
        attributes['GRID__shape'] = attributes['GRID__shape'][::-1]
        if values:
            expected += 1
            attributes['GRID'] = expected
    assert h5bridge('to-ms', native, back).stderr.count('was edited') == 1
    assert ct.table(back, ack=False).getkeyword('GRID').tolist() == expected.reshape(3, 2).tolist()


def test_columns_added_and_removed_in_h5py(demo, tmp_path):
    with h5py.File(demo, 'r+') as file:
        main = file['MAIN']
        rows, chans, corrs = main['DATA'].shape
        main['MODEL_DATA'] = np.ones((rows, chans, corrs), 'c8')
        main['MODEL_DATA'].attrs['units'] = 'Jy'
        main['SCANS'] = np.arange(rows, dtype='i4') // 100
        del main['WEIGHT_SPECTRUM']
        extra = file.create_group('EXTRA')
        extra['NAME'] = ['a', 'b']
    process = h5bridge('to-ms', demo, tmp_path / 'back.ms')
    assert 'column WEIGHT_SPECTRUM was removed' in process.stderr and 'column SCANS was added' in process.stderr
    table = ct.table(str(tmp_path / 'back.ms'), ack=False)
    assert 'WEIGHT_SPECTRUM' not in table.colnames()
    assert (table.getcol('MODEL_DATA') == 1).all() and list(table.getcolkeyword('MODEL_DATA', 'QuantumUnits')) == ['Jy']
    assert table.getcol('SCANS').tolist() == [row // 100 for row in range(rows)]
    assert ct.table(str(tmp_path / 'back.ms::EXTRA'), ack=False).getcol('NAME') == ['a', 'b']


# ---- made by hand ---------------------------------------------------------------------------------------------------

def test_file_made_with_h5py_alone(tmp_path):
    """docs/reference/layout.md, "Files made by hand"."""
    rng = np.random.default_rng(1)
    rows = 3000
    data = (rng.normal(size=(rows, 32, 4)) + 1j).astype('c8')
    with h5py.File(tmp_path / 'x.h5', 'w') as file:
        file.attrs['format'], file.attrs['format_version'] = 'ctds-hdf5', '1.0'
        main = file.create_group('MAIN')
        main.attrs['table_type'] = 'Measurement Set'
        main.attrs['MS_VERSION'] = np.float32(2)
        main.attrs['ANTENNA'] = 'Table: /ANTENNA'
        main['TIME'] = 4.5e9 + np.arange(rows) // 100 * 8.0
        main['TIME'].attrs.update({'units': 's', 'measure_type': 'epoch', 'measure_ref': 'UTC'})
        main['ANTENNA1'] = np.arange(rows, dtype='i4') % 100
        main['FLAG_ROW'] = np.arange(rows) % 3 == 0
        main['UVW'] = rng.normal(size=(rows, 3))
        main.create_dataset('DATA', data=data, chunks=(100, 32, 4), compression='gzip', shuffle=True)
        main.create_dataset('FLAG', data=data.real > 0, chunks=(100, 32, 4))
        main['SOME'] = np.arange(2 * rows, dtype='f4').reshape(rows, 2)
        main['SOME__defined'] = np.arange(rows) % 2 == 0
        ragged = main.create_group('RAGGED')
        counts = np.arange(rows) % 4
        ragged['values'] = np.arange(counts.sum(), dtype='i2')
        ragged['offset'] = np.concatenate([[0], np.cumsum(counts)])
        ragged['shape'] = counts[:, None].astype('i4')
        ragged['defined'] = counts > 0
        antenna = file.create_group('ANTENNA')
        antenna['NAME'] = ['A%d' % i for i in range(5)]
        antenna['POSITION'] = rng.normal(size=(5, 3))
        antenna['DISH_DIAMETER'] = np.full(5, 25.0)
    back = str(tmp_path / 'back.ms')
    h5bridge('to-ms', tmp_path / 'x.h5', back)
    table = ct.table(back, ack=False, readonly=False)
    assert table.info()['type'] == 'Measurement Set' and table.getkeyword('MS_VERSION') == 2
    assert table.getkeyword('ANTENNA') == 'Table: ' + back + '/ANTENNA'
    assert np.array_equal(table.getcol('DATA'), data) and np.array_equal(table.getcol('FLAG'), data.real > 0)
    assert table.getcol('TIME')[250] == 4.5e9 + 16 and table.getcol('FLAG_ROW').tolist()[:4] == [1, 0, 0, 1]
    assert table.getcolkeywords('TIME') == {'QuantumUnits': ['s'], 'MEASINFO': {'type': 'epoch', 'Ref': 'UTC'}}
    assert [table.iscelldefined('SOME', row) for row in range(4)] == [True, False, True, False]
    assert table.getcell('SOME', 2).tolist() == [4, 5]
    assert [table.getcell('RAGGED', row).tolist() for row in (1, 2, 3)] == [[0], [1, 2], [3, 4, 5]]
    assert not table.iscelldefined('RAGGED', 4)
    kinds = {name: manager['TYPE'] for manager in table.getdminfo().values() for name in manager['COLUMNS']}
    assert kinds['DATA'] == 'TiledShapeStMan'
    # tiles of 1 MiB; small arrays of one shape lie in the rows
    tiles = {name: manager['SPEC'].get('DEFAULTTILESHAPE') for manager in table.getdminfo().values()
             for name in manager['COLUMNS']}
    assert tiles['DATA'].tolist() == [4, 32, 1024]
    assert table.getcoldesc('UVW')['option'] & 1 and not table.getcoldesc('DATA')['option'] & 1
    assert kinds['TIME'] == 'IncrementalStMan' and kinds['ANTENNA1'] == kinds['UVW'] == 'StandardStMan'
    table.addrows(1)
    table.putcell('DATA', rows, data[0])
    table.close()
    antenna = ct.table(back + '/ANTENNA', ack=False)
    assert antenna.getcol('NAME') == ['A0', 'A1', 'A2', 'A3', 'A4'] and antenna.getcol('POSITION').shape == (5, 3)


@pytest.mark.parametrize('version', ['0.9', '2.0', ''])
def test_other_format_versions_are_refused_by_name(version, demo, tmp_path):
    with h5py.File(demo, 'r+') as file:
        file.attrs['format_version'] = version
    process = h5bridge('to-ms', demo, tmp_path / 'back.ms', code=support.UNSUPPORTED)
    assert 'format_version "%s"' % version in process.stderr
    assert not (tmp_path / 'back.ms').exists()


# ---- the target -----------------------------------------------------------------------------------------------------

def test_existing_target(demo, tmp_path):
    out = tmp_path / 'back.ms'
    h5bridge('to-ms', demo, out)
    h5bridge('to-ms', demo, out, code=support.EXISTS)
    h5bridge('to-ms', '--overwrite', demo, out)
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine' / 'file').write_text('mine')
    h5bridge('to-ms', '--overwrite', demo, tmp_path / 'mine', code=support.EXISTS)
    assert (tmp_path / 'mine' / 'file').read_text() == 'mine'
    document = json.loads(h5bridge('to-ms', '--json', '--overwrite', demo, out).stdout)
    assert document['status'] == 'done' and document['columns'] > 20 and document['warnings'] == []
    assert sorted(os.listdir(tmp_path)) == ['back.ms', 'demo.h5', 'mine']


@pytest.mark.parametrize('attempt', range(5))
def test_killed_leaves_no_target(attempt, big_ms, tmp_path):
    """kill -9 at any moment may leave one partial, never half a table; the next run removes it."""
    out = tmp_path / 'back.ms'
    words = [support.H5BRIDGE, 'to-ms', '-q', big_ms, str(out)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.Random(attempt).uniform(0, 0.6))
    process.kill()
    process.wait()
    assert len(support.partials(out)) <= 1
    if out.exists():        # it was done already
        assert ct.table(str(out), ack=False).nrows() == ct.table(big_ms, ack=False).nrows()
        h5bridge('to-ms', big_ms, out, '--overwrite')
    else:
        h5bridge('to-ms', big_ms, out)
    h5bridge('verify', big_ms, out)
    assert os.listdir(tmp_path) == ['back.ms']


def test_memory_stays_bounded(big_ms, tmp_path):
    code = ('import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); '
            'print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)')
    h5bridge('to-hdf5', '--compress', 'gzip:1', '--no-digest', big_ms, tmp_path / 'x.h5')
    for source in (big_ms, tmp_path / 'x.h5'):
        words = [sys.executable, '-c', code, support.H5BRIDGE, 'to-ms', '-q', '--overwrite', str(source),
                 str(tmp_path / 'back.ms')]
        process = subprocess.run(words, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        assert int(process.stdout.split()[-1]) / 1024 < 150


ENGINES = {'ScaledArrayEngine', 'ScaledComplexData', 'MappedArrayEngine', 'CompressFloat', 'CompressComplex',
           'CompressComplexSD', 'BitFlagsEngine', 'VirtualTaQLColumn'}


@pytest.mark.parametrize('case', ['bitflags_engines', 'compress_engines', 'engine_forms', 'virtual_taql'])
def test_engines_compute_again(case, tmp_path, counts):
    """The fingerprint is that of the original, engines and their keywords included."""
    tables = support.expected(case)['tables']
    for root in support.roots(tables):
        source, native, back = os.path.join(support.TESTDATA, case, root), str(tmp_path / 'n.h5'), str(tmp_path / 'b.tab')
        h5bridge('to-hdf5', '--overwrite', '--quiet', source, native)
        warnings = json.loads(h5bridge('to-ms', '--json', '--overwrite', native, back).stdout)['warnings']
        columns = tables[root]['columns']
        engines = {n for n, c in columns.items() if (c.get('dm') or '').split('<')[0].strip() in ENGINES}
        if not engines:
            continue
        assert not [w for w in warnings if any(': %s' % e in w for e in ENGINES) and 'is not written' in w], warnings
        after = fingerprint.table_fingerprint(back)
        for name in engines:
            for key in ('dtype', 'kind', 'sha256', 'keywords_sha256', 'dm', 'option', 'ndim', 'fixed_shape'):
                assert after['columns'][name].get(key) == columns[name].get(key), (root, name, key)
            counts['columns'] += 1
    assert counts['columns'] > 0


def test_engines_that_do_not_fit_are_stored(tmp_path):
    """Who edits what an engine computed gets the edit, not what the engine computes."""
    tables = support.expected('bitflags_engines')['tables']
    root = support.roots(tables)[0]
    source = os.path.join(support.TESTDATA, 'bitflags_engines', root)
    native, back = str(tmp_path / 'n.h5'), str(tmp_path / 'b.tab')
    h5bridge('to-hdf5', '--quiet', source, native)
    name = next(name for name, column in tables[root]['columns'].items() if column['dm'].startswith('BitFlagsEngine'))
    with h5py.File(native, 'r+') as f:
        data = f['MAIN'][name]
        edited = ~data[...]
        data[...] = edited
    document = json.loads(h5bridge('to-ms', '--json', native, back).stdout)
    assert any(name in warning and 'stored' in warning for warning in document['warnings']), document['warnings']
    table = ct.table(back, ack=False)
    assert not [keyword for keyword in table.getcolkeywords(name) if keyword.startswith('_BitFlags')]
    rows = [row for row in range(table.nrows()) if table.iscelldefined(name, row)]
    assert rows and all((table.getcell(name, row) == edited[row]).all() for row in rows)
