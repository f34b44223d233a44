"""Shows what h5py sees in a native file: tables, columns, shapes, types, some values.   usage: show.py FILE.h5"""
import sys

import h5py
import numpy as np


def is_table(item):
    return isinstance(item, h5py.Group) and 'table_type' in item.attrs


def is_scale(item):
    return isinstance(item, h5py.Dataset) and item.is_scale


def row_count(table):
    # the scale is `row`; in a table inside another one `row__2`
    return next(item.shape[0] for name, item in table.items() if name.startswith('row') and is_scale(item))


def type_name(dtype):
    return 'str' if h5py.check_string_dtype(dtype) else str(dtype)


def describe(item):
    """Shape, type and first value of a column."""
    if isinstance(item, h5py.Dataset):
        text = '%-18s %-10s' % (item.shape, type_name(item.dtype))
        if not item.size:
            return text
        first = (item.asstr() if type_name(item.dtype) == 'str' else item)[0]
        flat = np.ravel(first)
        shown = ' '.join('%.6g' % x if isinstance(x, (float, np.floating)) else
                         '%.3g%+.3gj' % (x.real, x.imag) if np.iscomplexobj(x) else str(x) for x in flat[:3])
        return text + '  ' + shown[:44] + (' …' if flat.size > 3 or len(shown) > 44 else '')
    if 'values' in item:
        return '%-18s %-10s  arrays of differing shapes' % (item['defined'].shape, type_name(item['values'].dtype))
    cubes = [item[name] for name in item if name.startswith('cube')]
    return '%-18s %-10s  hypercubes %s' % (item['row_cube'].shape, type_name(cubes[0].dtype) if cubes else '',
                                          ' '.join(str(c.shape) for c in cubes))


def show(group):
    print('\n%s   %d rows' % (group.name, row_count(group)))
    for name, item in group.items():
        if not is_table(item) and not is_scale(item):
            units = item.attrs.get('units')
            print('    %-20s %s%s' % (name, describe(item), '  [%s]' % units if units else ''))
    for item in group.values():
        if is_table(item):
            show(item)


with h5py.File(sys.argv[1]) as f:
    print('\n>>> f = h5py.File(%r)' % sys.argv[1])
    print('    ' + ', '.join('%s: %s' % (k, f.attrs[k]) for k in ('format', 'format_version', 'creator')))
    tables = [item for name, item in f.items() if is_table(item)]
    for table in tables:
        if row_count(table):
            show(table)
    empty = [table.name for table in tables if not row_count(table)]
    if empty:
        print('\nwithout rows: ' + ' '.join(empty))

    data = f['MAIN/DATA']
    print('\n>>> f["MAIN/DATA"]\n' + repr(data))
    print('axes: ' + ', '.join(data.dims[i][0].name for i in range(data.ndim)))
    print('>>> f["MAIN/DATA"][0:2]')
    with np.printoptions(precision=3, suppress=True, threshold=20, edgeitems=2):
        print(data[0:2])
    print('>>> f["ANTENNA/NAME"].asstr()[:]')
    print(f['ANTENNA/NAME'].asstr()[:])
    print('>>> f["SPECTRAL_WINDOW/CHAN_FREQ"][0, :4]')
    print(f['SPECTRAL_WINDOW/CHAN_FREQ'][0, :4])
