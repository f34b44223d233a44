"""`--salvage` goes around damage: what is intact is what casacore reads from the undamaged table, everything else is named."""
import json
import os
import shutil

import h5py
import numpy as np
import pytest
from casacore.tables import makearrcoldesc, table as Table

import compare
import support
from support import h5bridge

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')

# Entries of the corpus with other managers than testdata has, or real MeasurementSets
ENTRIES = {'ctest_be_tScaledArrayEngine', 'casacore_ttileddata', 'ctest_be_tForwardCol', 'dp3_ndppp', 'ctest_mf_tTable_1',
           'ctest_be_tMemoryTable', 'gen_s_dysco'}


def copied(path, folder):
    """A copy of a table, and of those beside it that it may refer to."""
    shutil.copytree(os.path.dirname(path), folder, dirs_exist_ok=True)
    return os.path.join(folder, os.path.basename(path))


def salvaged(source, target, *options, verb='to-hdf5', code=support.WARNINGS):
    """The document of a conversion around damage."""
    return json.loads(h5bridge('--json', verb, source, target, '--salvage', *options, code=code).stdout)


def is_named(damage, path, column):
    """Whether all cells of a column are named."""
    return any(d['table'] == path and d.get('column', column) == column and 'rows' not in d for d in damage)


def manager_files(path):
    return sorted(name for name in os.listdir(path) if name.startswith('table.f') and name[7].isdigit())


def lose_each_file(original, tables, tmp_path, counts):
    """Converts copies without one of the managers' files. TABLES: {path: fingerprint} of casacore."""
    # those that keywords lead to
    known = support.digest(original, code=None)
    tables = {path: fingerprint for path, fingerprint in tables.items() if path in known}
    for number, name in enumerate(manager_files(original)):
        path = copied(original, str(tmp_path / str(number)))
        os.remove(os.path.join(path, name))
        target = tmp_path / ('%d.h5' % number)
        process = h5bridge('--json', 'to-hdf5', path, target, '--salvage', code=None)
        document = json.loads(process.stdout)
        damage = document.get('damage', [])
        assert process.returncode == (support.WARNINGS if damage else support.DONE), process.stderr
        assert all(d['reason'] and 'table.f' in d['reason'] for d in damage), damage
        assert json.loads(h5bridge('--json', 'info', target).stdout).get('damage', []) == damage
        counts['lost files'] += 1
        counts['lost files without which nothing is missing'] += not damage
        compare_digests(support.digest(target, code=None), tables, damage, counts)
        shutil.rmtree(tmp_path / str(number))


def compare_digests(found, tables, damage, counts):
    for path, theirs in tables.items():
        for column, expected in theirs['columns'].items():
            if path not in found:
                assert any(d['table'] == path and 'column' not in d for d in damage), path
                counts['columns named'] += 1
            elif is_named(damage, path, column):
                assert found[path]['columns'][column]['sha256'] is None, column
                counts['columns named'] += 1
            elif expected['sha256'] is None:
                counts['columns without digest'] += 1
            elif column in support.optional(theirs) and found[path]['columns'][column]['sha256'] is None:
                counts['columns not read'] += 1
            elif any(d['table'] == path and d.get('column') == column for d in damage):
                counts['columns of which rows are named'] += 1
            else:
                assert found[path]['columns'][column]['sha256'] == expected['sha256'], '%s %s' % (path, column)
                counts['columns equal'] += 1


@pytest.mark.parametrize('case, root', [
    ('demo', 'demo.ms'), ('dtypes_all_managers', 'IncrementalStMan_little.tab'), ('engine_forms', 'mapped.tab'),
    ('undefined', 'big.tab'), ('new_managers', 'sisco.tab'), ('dysco', 'Gaussian_AF_6.tab')])
def test_lost_files(case, root, tmp_path, counts):
    tables = support.below(support.expected(case)['tables'], root)
    lose_each_file(os.path.join(support.TESTDATA, case, root), tables, tmp_path, counts)
    assert counts['columns named']


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', [e for e in support.corpus_entries() if e['name'] in ENTRIES],
                         ids=lambda entry: entry['name'])
def test_lost_files_of_the_corpus(entry, tmp_path, counts):
    folder = support.unpack(entry, tmp_path)
    for number, root in enumerate(support.roots(entry['tables'])[:3 if support.LONG else 1]):
        inside = support.below(entry['tables'], root)
        if all('columns' in fingerprint for fingerprint in inside.values()):
            (tmp_path / str(number)).mkdir()
            lose_each_file(os.path.join(folder, root), inside, tmp_path / str(number), counts)


def test_lost_array_file(tmp_path):
    """The array file of a StandardStMan or IncrementalStMan: scalars and direct arrays do not need it."""
    path = str(tmp_path / 'demo.ms')
    shutil.copytree(DEMO, path)
    os.remove(os.path.join(path, 'SPECTRAL_WINDOW', 'table.f0i'))
    target = tmp_path / 'out.h5'
    # without the option nothing is converted, and the sentence says how to go on
    process = h5bridge('to-hdf5', path, target, code=support.DAMAGED)
    assert process.stderr.count('\n') == 1 and '--salvage' in process.stderr and '--exclude' in process.stderr
    assert not target.exists()
    document = salvaged(path, target)
    with Table(os.path.join(DEMO, 'SPECTRAL_WINDOW'), ack=False) as spw, h5py.File(target) as file:
        arrays = {name for name in spw.colnames() if not spw.isscalarcol(name) and 'shape' not in spw.getcoldesc(name)}
        named = {(d['table'], d['column']) for d in document['damage']}
        assert named == {('SPECTRAL_WINDOW', name) for name in arrays} and len(named) > 3
        for name in set(spw.colnames()) - arrays:
            ours = file['SPECTRAL_WINDOW'][name][...]
            theirs = spw.getcol(name)
            assert np.array_equal(ours.astype(str) if ours.dtype.kind in 'SO' else ours, np.asarray(theirs)) \
                or [text.decode() for text in ours] == theirs, name
    # and each other table is whole
    with h5py.File(target) as file:
        with Table(DEMO, ack=False) as main:
            intact = main.colnames()
        differences = [line for line in compare.compare(DEMO, file, columns=intact) if 'SPECTRAL_WINDOW' not in line]
        assert not differences, differences


def damaged_rows(damage, column):
    """The rows of a column of the main table that are named."""
    return {row for d in damage if d['table'] == '.' and d.get('column') == column and 'rows' in d
            for row in range(d['rows']['start'], d['rows']['end'])}


def cells(table, column):
    return [table.getcell(column, row) if table.iscelldefined(column, row) else None for row in range(table.nrows())]


def same(left, right):
    """In every bit; lists are strings."""
    if not isinstance(left, np.ndarray):
        return left == right
    return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())


def test_lost_arrays(tmp_path, counts):
    """Of an array file that is cut off: cells that cannot be read become undefined, the values of all others stay."""
    path = copied(os.path.join(support.TESTDATA, 'undefined', 'big.tab'), str(tmp_path / 'tables'))
    with Table(path, ack=False) as table:
        whole = {column: cells(table, column) for column in table.colnames() if not table.isscalarcol(column)}
    for name in os.listdir(path):
        if name.endswith('i'):
            os.truncate(os.path.join(path, name), os.path.getsize(os.path.join(path, name)) * 2 // 3)
    target, back = tmp_path / 'out.h5', tmp_path / 'back.tab'
    damage = salvaged(path, target)['damage']
    h5bridge('to-ms', target, back, code=support.WARNINGS)
    with Table(str(back), ack=False) as table:
        for column in set(whole) & set(table.colnames()):
            damaged = damaged_rows(damage, column)
            counts['columns of which rows are named'] += bool(damaged)
            for row, cell in enumerate(whole[column]):
                if row in damaged:
                    # casacore cannot leave cells of a fixed shape undefined
                    fixed = 'shape' in table.getcoldesc(column)
                    assert table.iscelldefined(column, row) == fixed and (not fixed or not table.getcell(column, row).any())
                    counts['cells named'] += 1
                elif cell is not None:
                    assert same(table.getcell(column, row), cell)
                    counts['cells equal'] += 1
        for column in set(whole) - set(table.colnames()):
            assert is_named(damage, '.', column)
    assert counts['columns of which rows are named'] and counts['cells equal']


def test_scalars_are_not_invented(tmp_path, counts):
    """A dense column says which cells are defined, where rows of it were damaged."""
    path = copied(os.path.join(support.TESTDATA, 'strings_boundaries', 'StandardStMan_128.tab'), str(tmp_path / 'tables'))
    with Table(path, ack=False) as table:
        strings = {c: table.getcol(c) for c in table.colnames() if table.isscalarcol(c) and table.coldatatype(c) == 'string'}
    name = os.path.join(path, 'table.f0')
    with open(name, 'rb') as file:
        original = file.read()
    for bucket in range(512, len(original) - 128, 11 * 128):
        # a bucket of the string heap then has more bytes in use than there are; others are damaged in other ways
        content = bytearray(original)
        content[bucket + 4:bucket + 8] = b'\x7f' * 4
        with open(name, 'wb') as file:
            file.write(content)
        target = tmp_path / ('%d.h5' % bucket)
        damage = json.loads(h5bridge('--json', 'to-hdf5', path, target, '--salvage', code=None).stdout).get('damage', [])
        with h5py.File(target) as file:
            for column, expected in strings.items():
                rows = damaged_rows(damage, column)
                if is_named(damage, '.', column):
                    assert column not in file['MAIN']
                elif rows:
                    found = file['MAIN'][column].asstr()[...]
                    defined = file['MAIN'][column + '__defined'][...].astype(bool)
                    assert {int(row) for row in np.flatnonzero(~defined)} == rows
                    assert all(found[row] == ('' if row in rows else expected[row]) for row in range(len(expected)))
                    counts['cells named'] += len(rows)
                else:
                    assert column + '__defined' not in file['MAIN']
    assert counts['cells named']


def test_cells_that_contradict_their_engine(tmp_path):
    """Stored cells, one of which has not the shape of the engine's column: that row is named, what is stored is intact."""
    path = copied(os.path.join(support.TESTDATA, 'engine_forms', 'CompressFloat_fixed.tab'), str(tmp_path / 'tables'))
    with Table(path, readonly=False, ack=False) as table:
        virtual = next(c for c in table.colnames() if '_BaseMappedArrayEngine_Name' in table.getcolkeywords(c))
        stored = table.getcolkeyword(virtual, '_BaseMappedArrayEngine_Name')
        whole = cells(table, virtual)
        # the same integers in cells of any shape, and one row of another shape
        kept = cells(table, stored)
        kept[1] = np.zeros((kept[1].shape[0], kept[1].shape[1] + 1), kept[1].dtype)
        table.addcols(makearrcoldesc('OTHER', 0, ndim=2, valuetype=table.coldatatype(stored)))
        for row, cell in enumerate(kept):
            table.putcell('OTHER', row, cell)
        table.putcolkeyword(virtual, '_BaseMappedArrayEngine_Name', 'OTHER')
    stored = 'OTHER'
    target, back = tmp_path / 'out.h5', tmp_path / 'back.tab'
    process = h5bridge('to-hdf5', path, target, code=support.DAMAGED)
    assert virtual in process.stderr and '--exclude' in process.stderr
    damage = salvaged(path, target)['damage']
    assert {d['column'] for d in damage} == {virtual} and damaged_rows(damage, virtual) == {1}, damage
    h5bridge('to-ms', target, back, code=support.WARNINGS)
    with Table(str(back), ack=False) as table:
        for row, (cell, other) in enumerate(zip(whole, kept)):
            assert same(table.getcell(stored, row), other)
            if row != 1:
                assert same(table.getcell(virtual, row), cell)
    # leaving out the column is the other way that the sentence names
    h5bridge('to-hdf5', path, tmp_path / 'without.h5', '--exclude', virtual)


def test_told_apart(tmp_path):
    """Files of the same table, plain, restorable and salvaged."""
    path = str(tmp_path / 'demo.ms')
    shutil.copytree(DEMO, path)
    plain, restorable, part = (tmp_path / name for name in ('plain.h5', 'restorable.h5', 'salvaged.h5'))
    h5bridge('to-hdf5', path, plain)
    h5bridge('to-hdf5', path, restorable, '--restorable')
    os.remove(os.path.join(path, 'table.f6_TSM0'))
    assert 'table.f6' in h5bridge('to-hdf5', path, part, '--restorable', code=support.DAMAGED).stderr
    h5bridge('to-hdf5', path, part, '--salvage', '--restorable', code=support.USAGE)
    dry = salvaged(path, part, '--dry-run')
    assert not part.exists()
    damage = salvaged(path, part)['damage']
    assert dry['damage'] == damage and len(damage) == 1 and damage[0]['table'] == '.' and 'rows' not in damage[0]
    lost = damage[0]['column']

    def info(file):
        document = json.loads(h5bridge('--json', 'info', file).stdout)
        return document['restorable'], document.get('damage')

    assert (info(plain), info(restorable), info(part)) == ((False, None), (True, None), (False, damage))
    text = h5bridge('info', part).stdout
    assert 'salvaged' in text and lost in text and 'salvaged' not in h5bridge('info', plain).stdout

    # by themselves
    for file, code in ((plain, support.DONE), (restorable, support.DONE), (part, support.WARNINGS)):
        document = json.loads(h5bridge('--json', 'verify', file, code=code).stdout)
        assert document['equal'] and document.get('damage') == (damage if file is part else None)
        assert bool(document['compared']['files']) == (file is restorable)
    assert lost in h5bridge('verify', part, code=support.WARNINGS).stderr

    # with the undamaged source, with the damaged one, and with each other
    for left, right in ((DEMO, part), (path, part), (part, plain), (part, restorable)):
        process = h5bridge('--json', 'verify', left, right, code=support.DIFFERENT)
        document = json.loads(process.stdout)
        [difference] = document['differences']
        assert difference['column'] == lost and document['damage'] == damage
        assert 'left out as damaged' in (difference['right'] if right is part else difference['left'])
        assert document['compared']['tables'] > 10
    for left, right in ((DEMO, plain), (plain, restorable)):
        assert json.loads(h5bridge('--json', 'verify', left, right).stdout)['equal']
    # what both left out is no difference
    again = tmp_path / 'again.h5'
    h5bridge('to-hdf5', path, again, '--salvage', code=support.WARNINGS)
    assert json.loads(h5bridge('--json', 'verify', part, again, code=support.WARNINGS).stdout)['equal']
    # a conversion of a salvaged file says so, too
    assert json.loads(h5bridge('--json', 'to-ms', part, tmp_path / 'back.ms', code=support.WARNINGS).stdout)['damage'] == damage
    with Table(str(tmp_path / 'back.ms'), ack=False) as back, Table(DEMO, ack=False) as original:
        assert set(original.colnames()) - set(back.colnames()) == {lost}


@pytest.mark.parametrize('form', [['--crc'], ['--crc', '--single-file', '--format', 'multifile']], ids=['table.mf', 'archive'])
def test_one_damaged_block(form, tmp_path, counts):
    """Of a MultiFile with checksums: unpack and pack leave out one file, to-hdf5 what needs the block."""
    packed = tmp_path / 'packed'
    h5bridge('pack', DEMO, packed, '--block-size', '4096', *form)
    container = packed if packed.is_file() else packed / 'table.mf'
    content = bytearray(container.read_bytes())
    with Table(DEMO, ack=False) as table:
        data = table.getcol('DATA').astype('<c8').tobytes()
    at = content.find(data[:64])
    at = at if at >= 0 else len(content) // 2
    content[at + 8] ^= 1
    container.write_bytes(content)

    for verb, target in (('unpack', tmp_path / 'plain.ms'), ('pack', tmp_path / 'again.ms')):
        process = h5bridge(verb, packed, target, code=support.DAMAGED)
        assert process.stderr.count('\n') == 1 and '--salvage' in process.stderr and not target.exists()
        document = salvaged(packed, target, verb=verb)
        [lost] = document['damage']
        assert lost['file'].startswith('table.f') and 'CRC' in lost['reason'] and 'column' not in lost
        process = h5bridge('verify', '--bytes', DEMO, target, code=support.DIFFERENT)
        assert len(process.stdout.splitlines()) == 1 and lost['file'] in process.stdout, process.stdout
        shutil.rmtree(target)

    document = salvaged(packed, tmp_path / 'out.h5')
    damage = document['damage']
    assert damage and all('CRC' in d['reason'] for d in damage)
    found = support.digest(tmp_path / 'out.h5', code=None)
    compare_digests(found, support.below(support.expected('demo')['tables'], 'demo.ms'), damage, counts)
    assert counts['columns equal'] > 100


def test_intact(tmp_path):
    """Nothing is named, and the bytes are those of a conversion without the option."""
    plain, other = tmp_path / 'plain.h5', tmp_path / 'other.h5'
    h5bridge('to-hdf5', DEMO, plain)
    assert 'damage' not in salvaged(DEMO, other, code=support.DONE)
    assert plain.read_bytes() == other.read_bytes()
    assert 'damage' not in salvaged(DEMO, tmp_path / 'packed.ms', verb='pack', code=support.DONE)
    h5bridge('verify', '--bytes', DEMO, tmp_path / 'packed.ms')


def test_hopeless(tmp_path):
    """A main table that cannot be opened at all."""
    path = str(tmp_path / 'demo.ms')
    shutil.copytree(DEMO, path)
    os.truncate(os.path.join(path, 'table.dat'), 100)
    for verb in ('to-hdf5', 'to-ms'):
        process = h5bridge(verb, path, tmp_path / 'out', '--salvage', code=support.DAMAGED)
        assert 'table.dat' in process.stderr and not (tmp_path / 'out').exists()
