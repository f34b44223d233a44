"""Reads a native file as docs/reference/layout.md describes it, with nothing but h5py and numpy.

Written from that page alone and not from the Rust code, so that the two check each other.
"""
import json
import re
import struct

import h5py
import numpy as np

DTYPES = {'boolean': '?', 'uchar': '<u1', 'short': '<i2', 'ushort': '<u2', 'int': '<i4', 'uint': '<u4', 'int64': '<i8',
          'float': '<f4', 'double': '<f8', 'complex': '<c8', 'dcomplex': '<c16'}
# Attributes that a table or column has besides its keywords. A keyword of such a name may not be readable as one.
OWN = {'units', 'long_name', 'measure_type', 'measure_ref', 'ctds_name', 'table_type', 'table_subtype', 'readme',
       'format', 'format_version', 'creator', 'source', 'source_digest',
       'CLASS', 'NAME', 'DIMENSION_LIST', 'REFERENCE_LIST', '_Netcdf4Dimid', '_Netcdf4Coordinates', '_FillValue',
       '_NCProperties', '_nc3_strict'}


def exact_name(item):
    """The name in casacore of a dataset or group."""
    return item.attrs.get('ctds_name', item.name.rsplit('/', 1)[-1])


def is_table(item):
    described = item.file.get('_ctds' + item.name)
    return isinstance(item, h5py.Group) and described is not None and 'table' in described.attrs


def row_scale(group):
    """The row numbers of a table: `row`; in a table inside another one `row__2`, and so on."""
    scales = [item for name, item in group.items() if re.fullmatch(r'row(__[0-9]+)?', name) and is_scale(item)]
    assert len(scales) == 1, '%s has the row scales %s' % (group.name, scales)
    return scales[0]


def tables(file):
    """{path in the form of `digest --json`: group}; '.' is the main table."""
    found = {'.': file['MAIN']}

    def walk(group, prefix):
        for name, item in group.items():
            # the main table's subtables are in the root group, beside MAIN
            if name not in ('MAIN', '_ctds') or prefix:
                if is_table(item):
                    found[prefix + name] = item
                    walk(item, prefix + name + '/')
    walk(file, '')
    return found


def subtable(group, keyword):
    """The group of the subtable that table GROUP has under KEYWORD: its attribute gives the path.

    Two keywords may lead to one table, which is in the file once."""
    value = group.attrs[keyword]
    assert value.startswith('Table: /'), 'keyword %s is %s' % (keyword, value)
    inside = group.file[value[len('Table: '):]]
    assert is_table(inside), '%s is no table' % inside.name
    home = '/' if group.name == '/MAIN' else group.name
    assert inside.parent.name != home or exact_name(inside) == keyword, \
        '%s is not named %s' % (inside.name, keyword)
    return inside


def exact(group):
    """The group below _ctds that belongs to a table's group."""
    return group.file['_ctds' + group.name]


def exact_table(group):
    return json.loads(exact(group).attrs['table'])


def exact_columns(group):
    """{exact name: JSON document} of the columns of a table in their order; attributes go by the HDF5 names.

    A column with the form `missing` could not be read by h5bridge and has no dataset."""
    documents = []
    for name, text in exact(group).attrs.items():
        if name.startswith('column.'):
            document = json.loads(text)
            end = '__missing' if document['form'] == 'missing' else ''
            assert name == 'column.' + (document['name'].replace('/', '_') + end if end else document['link']), name
            assert document['form'] != 'missing' or document['reason'], name
            documents.append(document)
    documents.sort(key=lambda document: document['position'])
    return {document['name']: document for document in documents}


def present(group):
    """The exact names of the columns that have a dataset or group."""
    return [name for name, document in exact_columns(group).items() if document['form'] != 'missing']


def column_item(group, name):
    """The dataset or group of a column, found by its name alone. A subtable is never a column."""
    items = [item for item in group.values() if not is_table(item) and not is_scale(item)]
    # one that was renamed comes first: X__defined may belong to the column X
    for item in items:
        if item.attrs.get('ctds_name') == name:
            return item
    for item in items:
        if 'ctds_name' not in item.attrs and exact_name(item) == name:
            return item
    raise KeyError('%s has no column %s' % (group.name, name))


def is_scale(item):
    return isinstance(item, h5py.Dataset) and item.attrs.get('CLASS') == b'DIMENSION_SCALE'


# ---- cells ----------------------------------------------------------------------------------------------------------

def form(item):
    if isinstance(item, h5py.Dataset):
        return 'dense'
    return 'ragged' if 'values' in item else 'cubes'


def dtype_problem(item, dtype):
    """What is wrong with the HDF5 type of a column's dataset, or None."""
    if dtype in ('string', 'record'):
        info = h5py.check_string_dtype(item.dtype)
        if info is None or info.encoding != 'utf-8' or info.length is not None:
            return 'not a variable-length UTF-8 string'
        return None
    if item.dtype != np.dtype(DTYPES[dtype]):
        return 'type %s, not %s' % (item.dtype, DTYPES[dtype])
    stored = item.id.get_type()
    if dtype == 'boolean':
        names = {stored.get_member_value(i): stored.get_member_name(i) for i in range(stored.get_nmembers())}
        if names != {0: b'FALSE', 1: b'TRUE'} or stored.get_size() != 1:
            return 'bool is %s' % names
    if dtype.endswith('complex'):
        names = [stored.get_member_name(i) for i in range(stored.get_nmembers())]
        if names != [b'r', b'i'] or stored.get_size() != np.dtype(DTYPES[dtype]).itemsize:
            return 'complex is %s' % names
    return None


def load(dataset, dtype):
    return dataset.asstr()[...] if dtype in ('string', 'record') else dataset[...]


def cells(group, item, dtype):
    """Every cell of a column: None where undefined, else a numpy array (of str objects for strings)."""
    rows = row_scale(group).shape[0]
    which = form(item)
    if which == 'dense':
        problem = dtype_problem(item, dtype)
        assert not problem, problem
        data = load(item, dtype)
        assert data.shape[0] == rows, 'shape %s in a table of %d rows' % (data.shape, rows)
        if dtype == 'record':
            return [parse_record(json.loads(text)) if text else None for text in data]
        defined = group.get(item.name.rsplit('/', 1)[-1] + '__defined')
        # a column may be called like that as well; then it says nothing of this one
        if defined is None or defined in [column_item(group, column) for column in present(group)]:
            mask = np.ones(rows, bool)
        else:
            mask = defined[...]
            assert mask.dtype == bool and mask.shape == (rows,), '__defined is %s %s' % (mask.dtype, mask.shape)
            for row in np.flatnonzero(~mask):
                blank = data[row] if dtype == 'string' else np.atleast_1d(data[row]).view('u1')
                assert not np.any(blank), 'row %d is undefined and not zero' % row
        return [data[row] if mask[row] else None for row in range(rows)]
    if which == 'ragged':
        values, offset, shape, defined = (item[name] for name in ('values', 'offset', 'shape', 'defined'))
        problem = dtype_problem(values, dtype)
        assert not problem, problem
        assert (offset.dtype, shape.dtype, defined.dtype) == (np.int64, np.int32, bool)
        values, offset, shape, defined = load(values, dtype), offset[...], shape[...], defined[...]
        assert offset.shape == (rows + 1,) and shape.shape[0] == rows and defined.shape == (rows,)
        assert offset[0] == 0 and offset[-1] == len(values) and not np.any(np.diff(offset)[~defined])
        return [values[offset[r]:offset[r + 1]].reshape(shape[r][shape[r] >= 0]) if defined[r] else None
                for r in range(rows)]
    row_cube, row_index = item['row_cube'], item['row_index']
    assert (row_cube.dtype, row_index.dtype) == (np.int32, np.int64)
    assert row_cube.shape == row_index.shape == (rows,)
    cubes = []
    while 'cube%d' % len(cubes) in item:
        cube = item['cube%d' % len(cubes)]
        problem = dtype_problem(cube, dtype)
        assert not problem, problem
        cubes.append(load(cube, dtype))
    members = {name for name in item if not is_scale(item[name])}
    assert len(cubes) <= 64 and members == {'row_cube', 'row_index'} | {'cube%d' % i for i in range(len(cubes))}, \
        'unexpected members %s' % list(item)
    return [cubes[c][i] if c >= 0 else None for c, i in zip(row_cube[...], row_index[...])]


def exact_strings(group, item):
    """{flat element number: bytes} of the strings that a column's dataset cannot hold."""
    holder = exact(group).get('strings.' + item.name.rsplit('/', 1)[-1])
    if holder is None:
        return {}
    index, offset, data = (holder[part][...] for part in ('index', 'offset', 'bytes'))
    assert (index.dtype, offset.dtype, data.dtype) == (np.int64, np.int64, np.uint8)
    return {int(k): data[int(offset[i]):int(offset[i + 1])].tobytes() for i, k in enumerate(index)}


# ---- keywords -------------------------------------------------------------------------------------------------------

def _number(kind, value):
    if kind in ('complex', 'dcomplex'):
        part = 'float' if kind == 'complex' else 'double'
        return complex(_number(part, value[0]), _number(part, value[1]))
    if kind in ('float', 'double'):
        if isinstance(value, str):      # the bits of a value that JSON has no number for
            code, size = ('>f', 4) if kind == 'float' else ('>d', 8)
            return struct.unpack(code, int(value, 16).to_bytes(size, 'big'))[0]
        return float(np.float32(value)) if kind == 'float' else float(value)
    if kind == 'bool':
        return bool(value)
    if kind == 'string':
        return bytes.fromhex(value['bytes']) if isinstance(value, dict) else value
    return int(value)


ARRAYS = {'bool': '?', 'float': 'f4', 'double': 'f8', 'complex': 'c8', 'dcomplex': 'c16'}


def parse_record(fields):
    """The JSON form of "Exact values" as the values that oracle/fingerprint.py takes."""
    record = {}
    for name, entry in fields:
        kind, value = entry['type'], entry['value']
        if kind == 'record':
            record[name] = parse_record(value)
        elif kind == 'table':
            record[name] = 'Table: ' + value
        elif 'shape' in entry:
            numbers = [_number(kind, x) for x in value]
            if kind == 'string':
                record[name] = {'shape': entry['shape'], 'array': numbers}
            else:
                # an array without axes counts as one of shape (0)
                shape = entry['shape'] or [0]
                record[name] = np.array(numbers, dtype=ARRAYS.get(kind, 'i8')).reshape(shape)
        else:
            record[name] = _number(kind, value)
    return record
