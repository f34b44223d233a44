"""Makes the native files in this folder and, from the tables as python-casacore reads them, the documents of what they hold.

    make.py FOLDER        with h5bridge at $H5BRIDGE; README.md has the form of the documents
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from casacore.tables import makescacoldesc, maketabdesc

HERE = os.path.dirname(os.path.abspath(__file__))
TESTDATA = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TESTDATA, 'oracle'))
import fingerprint  # noqa: E402

Table = fingerprint._patch()

# file: (the table, below testdata/; options of to-hdf5; what the file shows)
FILES = {
    'types': ('dtypes_all_managers/StandardStMan_little.tab', [], 'columns of every type, scalars and arrays, records, undefined cells'),
    'big-endian': ('dtypes_all_managers/IncrementalStMan_big.tab', [], 'the same from a table in the other byte order'),
    'ragged': ('shapes/shapes.tab', ['--rows', '0..24'], 'cells of differing shapes'),
    'undefined': ('undefined/little.tab', [], 'undefined cells in every form'),
    'cubes': ('dtypes_tiled/TiledShapeStMan_complex_little.tab', [], 'several hypercubes'),
    'bytes-of-strings': ('odd_strings/odd.tab', [], 'strings that are not UTF-8 or have a NUL'),
    'keywords': ('keywords/t.tab', [], 'keywords of every type, nested records, a subtable'),
    'names': ('names/names.tab', [], 'names that meet those of the layout'),
    'no-columns': ('no_columns/t.tab', [], 'a table without columns'),
    'no-rows': ('zero_rows/StandardStMan.tab', [], 'a table without rows'),
    'missing': (None, [], 'a column that could not be read, and its expression'),
    'tiles': ('dtypes_tiled/TiledColumnStMan_complex_little.tab', [], 'a hypercube as a chunked dataset'),
    'blocks': ('dtypes_tiled/TiledColumnStMan_complex_little.tab', ['--compress', 'shared', '--digest'], 'the same as one block of tiles'),
    'zstd': ('dtypes_tiled/TiledColumnStMan_complex_little.tab', ['--compress', 'zstd'], 'the same with filter 32015'),
    'lz4': ('dtypes_tiled/TiledColumnStMan_complex_little.tab', ['--compress', 'lz4'], 'the same with filter 32004'),
    'old': ('dtypes_tiled/TiledColumnStMan_complex_little.tab', ['--hdf5', '1.8'], 'the same in the structures of HDF5 1.8'),
    'cloud': ('dtypes_tiled/TiledColumnStMan_complex_little.tab', ['--profile', 'cloud'], 'the same with metadata in pages'),
    'appendable': ('dtypes_tiled/TiledColumnStMan_complex_little.tab', ['--appendable'], 'the same, to be extended'),
    'rows': ('removed_rows_and_columns/StandardStMan_little.tab', ['--rows', '100..120'], 'some rows of a table'),
    'measurementset': ('twospw/twospw.ms', [], 'a MeasurementSet of two spectral windows'),
    'msv4': ('twospw/twospw.ms', ['--schema', 'msv4'], 'the same by the axes of MSv4'),
}
ROWS_OF_SETS = 12
# python-casacore does not read them: what testdata/make.py wrote
NO_UTF8, NUL = b'\xff\xfe\x80Q', b'W\0\0W'
BYTES = {
    'S': [b'plain', b'not utf-8: ' + NO_UTF8 + b' here', NO_UTF8, 'é'.encode()],
    'N': [b'a NUL: ' + NUL + b' here', NUL, b'none', b''],
    'A': [[b'one', b'not utf-8: ' + NO_UTF8 + b' here', 'é'.encode()], [NUL, b'', b'XX ' + NUL], None, [b'two', b'three', NO_UTF8 + b' and ' + NUL]],
}


def plain(value):
    """A value of casacore in JSON."""
    if isinstance(value, dict) and set(value) != {'shape', 'array'}:
        return {'record': {name: plain(inside) for name, inside in value.items()}}
    if isinstance(value, dict):
        return {'shape': list(value['shape']), 'value': plain_elements(value['array'])}
    if isinstance(value, (list, np.ndarray)) and np.ndim(value):
        value = np.asarray(value, object if np.asarray(value).dtype.kind in 'OU' else None)
        return {'shape': list(value.shape), 'value': plain_elements(value.reshape(-1))}
    return plain_elements([value])[0]


def plain_elements(values):
    elements = [value.item() if isinstance(value, np.generic) else value for value in np.asarray(values, object).reshape(-1).tolist()]
    return [[number(element.real), number(element.imag)] if isinstance(element, complex) else
            number(element) if isinstance(element, float) else element for element in elements]


def number(value):
    """JSON has no number for what is not finite."""
    return value if np.isfinite(value) else repr(float(value))


def strings(value):
    """Bytes that are no text are in hexadecimal."""
    if isinstance(value, list):
        return {'shape': [len(value)], 'value': [strings(inside) for inside in value]}
    if value is None:
        return None
    return value.decode() if b'\0' not in value and NO_UTF8 not in value else {'bytes': value.hex()}


def cell(table, name, row, dtype, is_scalar):
    if (dtype == 'record' or not is_scalar) and not table.iscelldefined(name, row):
        return None
    value = table.getcell(name, row)
    if dtype == 'string' and not is_scalar and isinstance(value, list):
        return {'shape': [len(value)], 'value': value}
    return plain(value)


def described(path, chosen, name='.', found=None):
    """{name: document} of a table and its subtables; CHOSEN rows of the main one."""
    found = {} if found is None else found
    table = Table(path, ack=False)
    rows = range(table.nrows()) if chosen is None else chosen
    columns = {}
    for column in table.colnames():
        dtype, is_scalar = fingerprint.coldesc(table, column)['valueType'], table.isscalarcol(column)
        if os.path.basename(path) == 'odd.tab' and column in BYTES:
            cells = [strings(value) for value in BYTES[column]]
        else:
            cells = [cell(table, column, row, dtype, is_scalar) for row in rows]
        columns[column] = {'dtype': dtype, 'keywords': keywords(table.getcolkeywords(column)), 'cells': cells}
    found[name] = {'rows': len(rows), 'keywords': keywords(table.getkeywords()), 'columns': columns}
    for keyword, value in table.getkeywords().items():
        if str(value).startswith('Table: ') and os.path.isdir(value[7:]):
            described(value[7:], None, keyword if name == '.' else '%s/%s' % (name, keyword), found)
    table.close()
    return found


def keywords(record):
    """Those that lead to tables are left out: they are in the list of tables."""
    return {name: plain(value) for name, value in record.items() if not str(value).startswith('Table: ')}


def unread(path):
    """A table whose column V has an expression that h5bridge does not evaluate."""
    columns = [makescacoldesc('A', 0), makescacoldesc('V', 0.0, datamanagertype='VirtualTaQLColumn', datamanagergroup='V')]
    expression = {'TYPE': 'VirtualTaQLColumn', 'NAME': 'V', 'SEQNR': 1, 'SPEC': {'TAQLCALCEXPR': 'iif(iscolumn("A"), A*2.5, 0.0)'}, 'COLUMNS': ['V']}
    with Table(path, maketabdesc(columns), nrow=3, dminfo={'*2': expression}, ack=False) as table:
        table.putcol('A', np.array([1, -2, 3], np.int32))


def make(folder):
    with tempfile.TemporaryDirectory() as scratch:
        for file, (source, options, what) in FILES.items():
            path = os.path.join(TESTDATA, source) if source else os.path.join(scratch, file + '.tab')
            if not source:
                unread(path)
            if path.endswith('.ms'):
                smaller = os.path.join(scratch, os.path.basename(path))
                if not os.path.exists(smaller):
                    with Table(path, ack=False) as table:
                        rows = [row for start in (0, table.nrows() // 2) for row in range(start, start + ROWS_OF_SETS // 2)]
                        table.selectrows(rows).copy(smaller, deep=True).close()
                path = smaller
            out = os.path.join(folder, file + '.h5')
            subprocess.run([os.environ['H5BRIDGE'], 'to-hdf5', '--quiet', '--overwrite', *options, path, out], check=True, cwd=scratch,
                           stderr=subprocess.DEVNULL)
            chosen = range(*map(int, options[1].split('..'))) if '--rows' in options else None
            document = {'what': what, 'options': options, 'tables': described(path, chosen)}
            with open(os.path.join(folder, file + '.json'), 'w', encoding='utf-8') as expected:
                json.dump(document, expected, ensure_ascii=False, separators=(',', ':'), allow_nan=False)
                expected.write('\n')


if __name__ == '__main__':
    make(os.path.abspath(sys.argv[1]))
