"""examples/native_reader.py, which has h5py and numpy only, reads what python-casacore reads from the table."""
import os
import re
import shutil

import h5py
import numpy as np
import pytest

import compare
import support

PROGRAM = os.path.join(support.ROOT, 'examples', 'native_reader.py')


@pytest.fixture(scope='module')
def program():
    """The names of the program."""
    with open(PROGRAM, encoding='utf-8') as file:
        code = file.read()
    assert len(code.splitlines()) <= 115 and {line.split()[1] for line in code.splitlines() if line.startswith('import ')} <= {'json', 'struct', 'h5py', 'numpy'}
    names = {'__name__': 'native_reader'}
    exec(compile(code, PROGRAM, 'exec'), names)
    return names


def as_casacore(value):
    """A keyword in the form of fingerprint.enc_record."""
    if isinstance(value, dict):
        return {name: as_casacore(inside) for name, inside in value.items()}
    if isinstance(value, tuple):
        return 'Table: ' + value[1]
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {'shape': list(value.shape), 'array': value.reshape(-1).tolist()}
        value = value.reshape(value.shape or (0,))
        return value.astype('i8') if value.dtype.kind in 'iu' else value
    return value


def check_cells(found, table, name, counts):
    dtype, scalar = compare.fingerprint.coldesc(table, name)['valueType'], table.isscalarcol(name)
    assert len(found) == table.nrows()
    for row, ours in enumerate(found):
        theirs = compare.cell(table, name, row, dtype, scalar)
        assert (ours is None) == (theirs is None), (name, row)
        if dtype == 'record':
            assert ours is None or compare.fingerprint.enc_record(as_casacore(ours)) == compare.fingerprint.enc_record(theirs), (name, row)
        elif dtype == 'string' and ours is not None:
            ours = np.asarray(ours, object)
            assert ours.shape == theirs.shape
            for mine, expected in zip(ours.ravel(), theirs.ravel()):
                assert mine == (expected.encode() if isinstance(mine, bytes) else expected), (name, row)
        elif ours is not None:
            ours = np.asarray(ours)
            assert ours.shape == theirs.shape and ours.tobytes() == theirs.astype(ours.dtype).tobytes(), (name, row)
        counts['cells'] += 1


def check(program, path, file, counts):
    """All tables of FILE have the columns, cells and keywords of those at PATH."""
    with h5py.File(file) as opened:
        groups = program['tables'](opened)
        assert '.' in groups
        for name, group in groups.items():
            document, columns = program['documents'](group)
            where = path if name == '.' else os.path.join(path, *name.split('/'))
            if not os.path.isdir(where):
                continue    # a subtable that is elsewhere
            table = compare.Table(where, ack=False)
            assert list(columns) == table.colnames(), name
            for column, described in columns.items():
                if described['form'] == 'missing':
                    with pytest.raises(ValueError, match=re.escape(described['reason'])):
                        program['cells'](group, described)
                    continue
                check_cells(program['cells'](group, described), table, column, counts)
                counts['columns'] += 1
                for ours, theirs in ((described, table.getcolkeywords(column)), (document, table.getkeywords())):
                    kept = {key: value for key, value in theirs.items() if not str(value).startswith('Table: ')}
                    found = {key: value for key, value in program['keywords'](ours).items() if key in kept}
                    assert compare.fingerprint.enc_record(as_casacore(found)) == compare.fingerprint.enc_record(kept), (name, column)
            counts['tables'] += 1
            table.close()


@pytest.mark.parametrize('case, table', support.some_convertible())
def test_testdata(case, table, program, converted, counts):
    if case == 'odd_strings':
        pytest.skip('python-casacore cannot read it; test_bytes_of_strings does')
    check(program, os.path.join(support.TESTDATA, case, table), converted(case, table), counts)


@pytest.mark.parametrize('is_reversed', [False, True])
def test_axes_of_msv4(is_reversed, program, tmp_path, counts):
    """Also with channels from high to low frequency, which MSv4 has the other way around."""
    path, file = str(tmp_path / 'my.ms'), str(tmp_path / 'my.h5')
    shutil.copytree(os.path.join(support.TESTDATA, 'demo', 'demo.ms'), path)
    if is_reversed:
        with compare.Table(path + '/SPECTRAL_WINDOW', readonly=False, ack=False) as windows:
            windows.putcol('CHAN_FREQ', windows.getcol('CHAN_FREQ')[:, ::-1])
    support.h5bridge('to-hdf5', '--schema', 'msv4', path, file)
    with h5py.File(file) as opened:
        document = program['documents'](opened['MAIN'])[1]['DATA']
        assert {bool(grid.get('reversed')) for grid in document['grids']} == {is_reversed}
    check(program, path, file, counts)


def test_bytes_of_strings(program, converted):
    """Strings that are no UTF-8, or have a NUL, are bytes."""
    (table,) = [entry for entry in support.convertible() if entry[0] == 'odd_strings'][:1]
    with h5py.File(converted(*table)) as opened:
        group = program['tables'](opened)['.']
        _, columns = program['documents'](group)
        found = [cell for column in columns.values() for cell in np.ravel(np.asarray(program['cells'](group, column), object)).tolist()]
    assert {b'\xff\xfe\x80Q', b'W\0\0W'} <= {cell for cell in found if isinstance(cell, bytes)}
