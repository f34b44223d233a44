"""A page of a native file is lost, as by a bad sector: `--salvage` loses the cells that were in it, and names what it did without.

Python-casacore reads what comes back, and the table that the file was made from.
"""
import json
import os

import h5py
import numpy as np
import pytest
from casacore.tables import table as Table

import support
from support import h5bridge

PAGE_BYTES = 4096
# A file of each kind: one dataset a column, hypercubes of two shapes, columns by the axes of MSv4
FILES = {'demo': ('demo/demo.ms', []), 'twospw': ('twospw/twospw.ms', ['--hdf5', '1.8']),
         'msv4': ('demo/demo.ms', ['--schema', 'msv4'])}
# Every page at night
STEP = 1 if support.LONG else 9
# The superblock, header and links of the root group, the header of the main table's group: without them no column has a name
HOPELESS = 'nor an HDF5 file', 'group /:', 'group /MAIN:', 'object at address 96:'
MOST_HOPELESS = 6


def extents(path):
    """[start, end, (table, column)] of the elements in the file."""
    found = []

    def visit(name, item):
        if not isinstance(item, h5py.Dataset) or name.startswith(('_ctds', 'msv4')):
            return
        first, *rest = name.split('/')
        owner = ('.' if first == 'MAIN' else first, rest[0])
        if item.chunks:
            for number in range(item.id.get_num_chunks()):
                chunk = item.id.get_chunk_info(number)
                found.append((chunk.byte_offset, chunk.byte_offset + chunk.size, owner))
        elif item.id.get_offset() is not None:
            found.append((item.id.get_offset(), item.id.get_offset() + item.id.get_storage_size(), owner))

    with h5py.File(path) as file:
        file.visititems(visit)
    return sorted(found)


def members(path):
    """(table, column) of each column in the file."""
    with h5py.File(path) as file:
        return {('.' if table == 'MAIN' else table, column) for table in file for column in file[table]}


def owners(found, page):
    """The columns with elements in a page, and whether it has no other bytes."""
    start, end = page * PAGE_BYTES, (page + 1) * PAGE_BYTES
    inside = [(max(a, start), min(b, end), owner) for a, b, owner in found if a < end and b > start]
    covered = sum(b - a for a, b, _ in inside)
    return {owner for _, _, owner in inside}, covered == PAGE_BYTES


def cells(path):
    """{(table, column): [cell or None]} by python-casacore."""
    found = {}
    names = ['.', *sorted(name for name in os.listdir(path) if os.path.exists(os.path.join(path, name, 'table.dat')))]
    for name in names:
        with Table(os.path.join(path, name), ack=False) as table:
            for column in table.colnames():
                is_defined = [table.iscelldefined(column, row) for row in range(table.nrows())]
                found[name, column] = [table.getcell(column, row) if defined else None
                                       for row, defined in enumerate(is_defined)]
    return found


def same(left, right):
    if left is None or right is None:
        return left is right
    if isinstance(left, dict) and 'array' in left:
        return list(left['array']) == list(right['array'] if isinstance(right, dict) else np.ravel(right))
    return np.array_equal(left, right, equal_nan=np.asarray(left).dtype.kind in 'fc')


def is_unchecked(table, column, damage):
    """Whether the digest of a column is damaged: other values are not found where no checksum is."""
    parts = {(d['table'], d.get('column')) for d in damage if d.get('part') == 'description'}
    return not parts.isdisjoint({(table, None), (table, column), ('.', None)})


def is_nameless(table, column, stored, damage):
    """Whether a column is lost without its name: the description has it, and the group of the table is damaged or never had it."""
    parts = {(d['table'], d.get('column'), d['part']) for d in damage if 'part' in d}
    if table != '.' and ('.', None, 'root group') in parts and all(d['table'] != table for d in damage):
        return True
    is_described = parts.isdisjoint({(table, None, 'description'), (table, column, 'description'), ('.', None, 'description')})
    return not is_described and ((table, None, 'group') in parts or (table, column) not in stored)


def compare(expected, found, stored, damage, counts, touched=None):
    """Every cell equals, or is named. STORED: the columns in the file; TOUCHED: those with elements in the damage."""
    other = {(d['table'], d['column']) for d in damage if d.get('part') == 'values'}
    tables = {d['table'] for d in damage if not d.keys() & {'column', 'part'}}
    columns = {(d['table'], d['column']) for d in damage if 'column' in d and not d.keys() & {'rows', 'part'}}
    rows = [(d['table'], d['column'], range(d['rows']['start'], d['rows']['end'])) for d in damage if 'rows' in d]
    for (table, column), theirs in expected.items():
        if table in tables or (table, column) in columns:
            counts['columns lost'] += 1
            continue
        if (table, column) not in found:
            assert is_nameless(table, column, stored, damage), (table, column, damage)
            counts['columns lost'] += 1
            continue
        ours = found[table, column]
        lost = {row for t, c, some in rows if (t, c) == (table, column) for row in some}
        counts['cells lost'] += len(lost)
        differ = [row for row in range(len(theirs)) if row not in lost and not same(theirs[row], ours[row])]
        assert len(ours) == len(theirs)
        if differ and is_unchecked(table, column, damage):
            assert touched is None or (table, column) in touched, (table, column, differ[:5], damage)
        else:
            assert not differ or (table, column) in other, (table, column, differ[:5], damage)
        counts['columns with other values' if differ else 'columns equal'] += 1
    return tables, columns | other | {(t, c) for t, c, _ in rows}


@pytest.mark.parametrize('name', FILES)
def test_each_page(name, tmp_path, counts):
    source, options = FILES[name]
    source = os.path.join(support.TESTDATA, source)
    whole = tmp_path / 'whole.h5'
    h5bridge('to-hdf5', source, whole, *options)
    content = whole.read_bytes()
    expected, found, stored, hopeless = cells(source), extents(whole), members(whole), []
    for page in range(0, len(content) // PAGE_BYTES + 1, STEP):
        start = page * PAGE_BYTES
        lost = content[start:start + PAGE_BYTES]
        path, back = tmp_path / 'damaged.h5', tmp_path / ('%d.ms' % page)
        path.write_bytes(content[:start] + bytes(len(lost)) + content[start + len(lost):])
        # every second page on the way through another file
        verb, target = [('to-ms', back), ('to-hdf5', tmp_path / ('%d.h5' % page))][page % 2]
        process = h5bridge('--json', verb, path, target, '--salvage', code=None)
        if process.returncode == support.DAMAGED:
            assert any(words in process.stderr for words in HOPELESS), (page, process.stderr)
            hopeless.append(page)
            continue
        damage = json.loads(process.stdout).get('damage', [])
        assert process.returncode in (support.DONE, support.WARNINGS), (page, process.stderr)
        if target != back:
            h5bridge('to-ms', target, back, code=process.returncode)
        touched, is_full = owners(found, page)
        tables, columns = compare(expected, cells(back), stored, damage, counts, touched)
        if is_full:
            counts['pages of elements'] += 1
            assert not tables and columns <= touched, (page, touched, damage)
        counts['pages'] += 1
    assert len(hopeless) <= MOST_HOPELESS, hopeless
    assert counts['columns equal'] > 10 * counts['columns lost']


def test_cut_end(tmp_path, counts):
    """A copy that ended early."""
    source, whole = os.path.join(support.TESTDATA, 'demo', 'demo.ms'), tmp_path / 'whole.h5'
    h5bridge('to-hdf5', source, whole)
    content, expected, stored = whole.read_bytes(), cells(source), members(whole)
    path = tmp_path / 'cut.h5'
    for part in (0.99, 0.95, 0.9):
        path.write_bytes(content[:int(len(content) * part)])
        process = h5bridge('to-ms', path, tmp_path / 'none.ms', code=support.DAMAGED)
        assert 'truncated' in process.stderr
        process = h5bridge('--json', 'to-ms', path, tmp_path / ('%s.ms' % part), '--salvage', code=None)
        if process.returncode == support.DAMAGED:
            assert any(words in process.stderr for words in HOPELESS), process.stderr
            continue
        damage = json.loads(process.stdout)['damage']
        compare(expected, cells(tmp_path / ('%s.ms' % part)), stored, damage, counts)
