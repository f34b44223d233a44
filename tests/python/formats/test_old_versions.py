"""Headers of StandardStMan of all versions, of tables that casacore made: it reads those that releases wrote as this program does.
Version 4 only its development tree of 2017 wrote; releases take its numbers for others and reserve gigabytes."""
import json
import struct

import casacore.tables as ct
import numpy as np
import pytest

import support
from support import h5bridge

HEADER = 512
ROWS = 200
ORDERS = {'big': '>', 'little': '<'}
NAME = b'StandardStMan'


def made(path, order):
    """A table with a bucket for some of its rows, long and short strings, and arrays in a file of their own."""
    columns = [ct.makescacoldesc('NUMBER', 0), ct.makescacoldesc('FLAG', False), ct.makescacoldesc('TEXT', ''),
               ct.makearrcoldesc('ARRAY', 0.), ct.makearrcoldesc('NAMES', '')]
    managers = {'*1': {'TYPE': 'StandardStMan', 'NAME': 'SSM', 'COLUMNS': ['NUMBER', 'FLAG', 'TEXT', 'ARRAY', 'NAMES'],
                       'SPEC': {'BUCKETSIZE': 2000, 'PERSCACHESIZE': 7}}}
    with ct.table(str(path), ct.maketabdesc(columns), nrow=ROWS, dminfo=managers, endian=order, ack=False) as table:
        table.putcol('NUMBER', np.arange(ROWS, dtype='i4'))
        table.putcol('FLAG', np.arange(ROWS) % 3 == 0)
        table.putcol('TEXT', ['text %d' % (row ** 3) for row in range(ROWS)])
        for row in range(0, ROWS, 2):
            table.putcell('ARRAY', row, np.arange(row % 5 + 1.) + row)
            table.putcell('NAMES', row, ['name %d' % at for at in range(row % 3 + 1)])
    return path


def header(data, order):
    """(version, [the numbers of the header, the flag left out], its length) of a header of version 2 or 3"""
    assert data[:4] == b'\xbe' * 4 and data[12:25] == NAME
    length, version = (struct.unpack(ORDERS[order] + 'I', data[at:at + 4])[0] for at in (4, 25))
    at = 29 if version == 2 else 30
    return version, list(struct.unpack(ORDERS[order] + '11i', data[at:at + 44])), length


def rewritten(path, order, version, cache):
    """Gives table.f0 a header of another version, with a cache of so many buckets."""
    with open(path / 'table.f0', 'rb') as file:
        data = file.read()
    _, numbers, _ = header(data, order)
    # without the index offset of newer versions the index begins after the links
    assert version > 1 or numbers[7] in (0, 8)
    sign = ORDERS[order]
    fields = struct.pack(sign + '2i', *numbers[:2]) + struct.pack(sign + ('Q' if version >= 4 else 'I'), cache)
    fields += struct.pack(sign + '4i', *numbers[3:7]) + (struct.pack(sign + 'i', numbers[7]) if version >= 2 else b'')
    fields += struct.pack(sign + '3i', *numbers[8:])
    flag = bytes([order == 'big']) if version >= 3 else b''
    content = struct.pack(sign + 'I', len(NAME)) + NAME + struct.pack(sign + 'I', version) + flag + fields
    new = b'\xbe' * 4 + struct.pack(sign + 'I', len(content) + 4) + content
    with open(path / 'table.f0', 'wb') as file:
        file.write(new.ljust(HEADER, b'\0') + data[HEADER:])


def values(path):
    """{column: its cells as python-casacore has them, None if undefined}"""
    with ct.table(str(path), ack=False) as table:
        return {name: [np.asarray(table.getcell(name, row)).tolist() if table.iscelldefined(name, row) else None
                       for row in range(table.nrows())] for name in table.colnames()}


def columns(path):
    return support.digest(path)['.']['columns']


@pytest.mark.parametrize('order', ORDERS)
def test_headers_that_casacore_writes(order, tmp_path):
    """The bytes that the other tests write are these, where they write the same version."""
    path = made(tmp_path / 't.tab', order)
    with open(path / 'table.f0', 'rb') as file:
        before = file.read()
    version, numbers, length = header(before, order)
    assert (version, length) == {'big': (2, 69), 'little': (3, 70)}[order] and numbers[2] == 7
    rewritten(path, order, version, 7)
    with open(path / 'table.f0', 'rb') as file:
        assert file.read() == before


@pytest.mark.parametrize('order, version', [('big', 1), ('big', 2), ('big', 3), ('little', 3)])
def test_versions_that_casacore_reads(order, version, tmp_path):
    path = made(tmp_path / 't.tab', order)
    expected, digests = values(path), columns(path)
    rewritten(path, order, version, 9)
    assert values(path) == expected and columns(path) == digests


@pytest.mark.parametrize('cache', [2, 1 << 40])
@pytest.mark.parametrize('order', ORDERS)
def test_version_4(order, cache, tmp_path):
    path = made(tmp_path / 't.tab', order)
    expected, digests = values(path), columns(path)
    with open(path / 'table.f0', 'rb') as file:
        buckets = header(file.read(), order)[1][1]
    rewritten(path, order, 4, cache)
    assert columns(path) == digests
    document = json.loads(h5bridge('info', '--json', path).stdout)
    assert document['tables']['.']['managers'][0]['parameters']['PERSCACHESIZE'] == min(cache, buckets)
    h5bridge('to-hdf5', '--strict', path, tmp_path / 'x.h5')
    h5bridge('verify', path, tmp_path / 'x.h5')
    # what is written has a version that casacore reads
    h5bridge('to-ms', path, tmp_path / 'back.tab')
    assert values(tmp_path / 'back.tab') == expected


@pytest.mark.parametrize('order, version, said', [
    ('little', 1, 'big endian: true, but the table is little endian'),
    ('little', 2, 'big endian: true, but the table is little endian'),
    ('big', 5, 'StandardStMan version 5, known are 1 to 4'),
    ('little', 5, 'StandardStMan version 5, known are 1 to 4')])
def test_other_headers_are_refused(order, version, said, tmp_path):
    path = made(tmp_path / 't.tab', order)
    rewritten(path, order, version, 7)
    assert said in h5bridge('to-hdf5', path, tmp_path / 'x.h5', code=support.DAMAGED).stderr
