"""Compares a native file, as h5py reads it, with the table it was made from, as python-casacore reads it.

    compare.py TABLE FILE.h5 [TABLE FILE.h5 ...]     prints the differences and how much was compared
"""
import json
import os
import re
import sys
from collections import Counter

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'testdata', 'oracle'))
import fingerprint  # noqa: E402
import layout       # noqa: E402
import support      # noqa: E402

Table = fingerprint._patch()


def compare(path, file, counts=None, columns=None, rows=None):
    """Differences between the table at PATH, with its subtables, and the open native FILE.

    COLUMNS restricts the main table to these, ROWS to these, a range or a list."""
    differences = []
    counts = Counter() if counts is None else counts
    compare_table(Table(path, ack=False), file['MAIN'], differences, counts, set(), columns, rows)
    return differences


def digests(found, expected, counts, where):
    """Compares {path: fingerprint} as `digest --json` prints it with what is expected."""
    problems = []
    for path, theirs in expected.items():
        ours = found.get(path)
        if ours is None:
            # `digest` follows keywords; a table that merely lies inside another one is digested by itself
            continue
        counts['tables'] += 1
        if ours['nrow'] != theirs['nrow']:
            problems.append('%s: %s rows, expected %s' % (path, ours['nrow'], theirs['nrow']))
        if 'keywords_note' not in theirs and ours['keywords_sha256'] != theirs['keywords_sha256']:
            problems.append('%s: keywords' % path)
        if set(ours['columns']) != set(theirs['columns']):
            problems.append('%s: columns %s' % (path, set(ours['columns']) ^ set(theirs['columns'])))
        odd, optional, whole = support.not_utf8(theirs), support.optional(theirs), not support.unreadable(theirs)
        for name in set(ours['columns']) & set(theirs['columns']):
            a, b = ours['columns'][name], theirs['columns'][name]
            if (a['sha256'] is None) != bool(a.get('error')):
                problems.append('%s %s: sha256 %s with error %s' % (path, name, a['sha256'], a.get('error')))
            keys = {'dtype', 'kind', 'keywords_sha256', 'sha256'}
            if name in odd or name in optional and optional[name] in a.get('error', ''):
                keys.remove('sha256')
                whole = False
                counts['columns not read'] += 1
            else:
                counts['columns'] += 1
            for key in keys:
                if a[key] != b[key]:
                    problems.append('%s %s: %s is %s, expected %s' % (path, name, key, a[key], b[key]))
        if whole and ours['sha256'] != theirs['sha256']:
            problems.append('%s: table digest' % path)
    assert '.' in found, where
    assert not problems, where + '\n' + '\n'.join(problems[:20])


def compare_table(table, group, differences, counts, done, columns=None, rows=None):
    counts['tables'] += 1
    done.add(group.name)
    where = group.name
    say = lambda *words: differences.append(' '.join(map(str, (where,) + words)))  # noqa: E731
    rows = range(table.nrows()) if rows is None else rows
    row = layout.row_scale(group)
    if not np.array_equal(row[...], np.array(rows, dtype=np.int64)) or row.dtype != np.int64:
        say(row, row[...])
    names = [c for c in table.colnames() if columns is None or c in columns]
    described = layout.exact_columns(group)
    if list(described) != names:
        say('columns', list(described), 'expected', names)
    for name in names:
        if described.get(name, {}).get('form') == 'missing':
            counts['columns missing'] += 1
            manager = described[name]['manager'].strip()
            if manager in support.MANAGERS or manager not in described[name]['reason']:
                say(name, 'is missing:', described[name]['reason'])
            continue
        try:
            compare_column(table, group, name, rows, say, counts)
        except (AssertionError, KeyError, ValueError, IndexError, TypeError) as error:
            say(name, type(error).__name__, error)
    keywords = table.getkeywords()
    exact = layout.exact_table(group)['keywords']
    # a concatenation of subtables is in casacore's memory only, under a name of its own
    made_up = {k for k, v in keywords.items() if re.fullmatch(r'Table: (.*/)?tab[0-9]+_[0-9]+', str(v))}
    keywords = {k: v for k, v in keywords.items() if k not in made_up}
    compare_keywords(keywords, group, [entry for entry in exact if entry[0] not in made_up], say, counts)
    info = table.info()
    for attribute, key in (('table_type', 'type'), ('table_subtype', 'subType'), ('readme', 'readme')):
        if attribute not in keywords and group.attrs.get(attribute, '').rstrip('\n') != info[key].rstrip('\n'):
            say('attribute', attribute, repr(group.attrs.get(attribute)), 'expected', repr(info[key]))
    for keyword, value in keywords.items():
        if not isinstance(value, str) or not value.startswith('Table: ') or not os.path.exists(value[len('Table: '):]):
            continue        # a keyword may name a table that is not there
        try:
            inside = layout.subtable(group, keyword)
        except (KeyError, AssertionError) as error:
            say(type(error).__name__, error)
            continue
        if inside.name not in done:
            compare_table(Table(value[len('Table: '):], ack=False), inside, differences, counts, done)
    table.close()


def compare_column(table, group, name, rows, say, counts):
    description = fingerprint.coldesc(table, name)
    dtype = description['valueType']
    scalar = table.isscalarcol(name)
    item = layout.column_item(group, name)
    counts['columns'] += 1
    counts['form ' + layout.form(item)] += 1

    found = layout.cells(group, item, dtype)
    assert len(found) == len(rows), '%d cells, expected %d' % (len(found), len(rows))
    odd = layout.exact_strings(group, item)
    assert not odd or dtype == 'string', 'exact strings of a column of %s' % dtype
    element = 0     # flat number of a string, to look it up in the exact ones
    for row, ours in zip(rows, found):
        theirs = cell(table, name, row, dtype, scalar)
        counts['cells'] += 1
        if (ours is None) != (theirs is None):
            say(name, 'row', row, 'is', 'undefined' if ours is None else 'defined')
            return
        if dtype == 'record':
            if ours is not None and fingerprint.enc_record(ours) != fingerprint.enc_record(theirs):
                say(name, 'row', row, ours, 'expected', theirs)
                return
            continue
        if ours is None:
            if layout.form(item) == 'dense':    # its elements are there, and zero
                element += int(np.prod(item.shape[1:]))
            continue
        ours = np.asarray(ours)
        if ours.shape != theirs.shape:
            say(name, 'row', row, 'shape', ours.shape, 'expected', theirs.shape)
            return
        if dtype == 'string':
            for mine, exact in zip(ours.ravel(), theirs.ravel()):
                whole = odd.pop(element, None)
                element += 1
                if mine != exact.split('\0')[0] or (whole is not None and whole != exact.encode()) \
                        or ('\0' in exact and whole is None):
                    say(name, 'row', row, repr(mine), whole, 'expected', repr(exact))
                    return
        # as bytes: a NaN is equal to itself, and -0.0 is not 0.0
        elif ours.tobytes() != theirs.astype(layout.DTYPES[dtype]).tobytes():
            say(name, 'row', row, ours.ravel()[:4], 'expected', theirs.ravel()[:4])
            return
    if odd:
        say(name, 'has exact strings that it does not need', odd)

    keywords = table.getcolkeywords(name)
    described = layout.exact_columns(group)[name]
    compare_keywords(keywords, item, described['keywords'], lambda *words: say(name, *words), counts)
    for key, expected in (('form', 'record' if dtype == 'record' else layout.form(item)), ('dtype', dtype),
                          ('kind', 'scalar' if scalar else 'array')):
        if described.get(key) != expected:
            say(name, '_ctds', key, described.get(key), 'expected', expected)
    compare_own_attributes(keywords, description, item, lambda *words: say(name, *words))


def cell(table, name, row, dtype, scalar):
    """A cell in the form of layout.cells. Cell by cell, because python-casacore's getcol is wrong for some columns."""
    if (dtype == 'record' or not scalar) and not table.iscelldefined(name, row):
        return None
    value = table.getcell(name, row)
    if dtype == 'record':
        return value
    if dtype == 'string':
        if scalar:
            return np.array(value, dtype=object)
        shape = None
        if isinstance(value, dict):
            shape, value = value['shape'] or (0,), value['array']
        elif isinstance(value, str):
            value = [value]
        result = np.empty(len(value), dtype=object)
        result[:] = value
        return result if shape is None else result.reshape(shape)
    return np.asarray(value)


# ---- keywords -------------------------------------------------------------------------------------------------------

def compare_keywords(expected, item, exact, say, counts):
    ours = layout.parse_record(exact)
    if fingerprint.enc_record(ours) != fingerprint.enc_record(expected):
        say('keywords under _ctds', ours, 'expected', expected)
    compare_attributes(expected, '', item.attrs, say, counts)


def compare_attributes(expected, prefix, attributes, say, counts):
    for key, value in expected.items():
        name = prefix + key
        if isinstance(value, dict) and set(value) != {'shape', 'array'}:
            compare_attributes(value, name + '.', attributes, say, counts)
        elif not (isinstance(value, str) and value.startswith('Table: ')):      # compared where the subtable is
            counts['keywords'] += 1
            # where the name was taken, by one of our attributes or another keyword, it has a number
            plain = name.replace('/', '_')
            found = [plain] + ['%s__%d' % (plain, i) for i in range(2, 5)]
            if not any(attribute_is(attributes, candidate, value) for candidate in found):
                say('keyword', name, 'is', repr(attributes.get(plain)), 'expected', repr(value))


def attribute_is(attributes, name, value):
    """True when the attribute shows the value of a keyword as layout.md says."""
    shown = attributes.get(name)
    if isinstance(value, str):
        return isinstance(shown, str) and shown == value.split('\0')[0]
    if isinstance(value, dict):
        shape, value = tuple(value['shape']), np.array(value['array'], dtype=object)
    else:
        strings = isinstance(value, list) and all(isinstance(x, str) for x in value)
        value = np.array(value, dtype=object if strings else None)
        shape = value.shape
    if value.size == 0:
        return shown is None        # attributes without elements trip some readers
    if shown is None:
        return False
    shown, kind = np.asarray(shown), value.dtype.kind
    flat = value.reshape(-1)
    if kind == 'c':
        flat = flat.astype('c16').view('f8')
    if not (shown.dtype.kind == 'f' if kind in 'cf' else shown.dtype == np.int8 if kind == 'b' else
            shown.dtype.kind in 'iu' if kind in 'iu' else shown.dtype.kind == 'O' or isinstance(shown.item(0), str)):
        return False
    if shown.shape != (flat.shape if shape or kind == 'c' else ()):
        return False
    if len(shape) > 1 and list(np.ravel(attributes.get(name + '__shape'))) != list(shape):
        return False
    return all(a == b or a != a and b != b for a, b in zip(shown.reshape(-1).tolist(), flat.tolist()))


def compare_own_attributes(keywords, description, item, say):
    expected = {}
    comment = description.get('comment', '')
    if comment and 'long_name' not in keywords:
        expected['long_name'] = comment
    units = keywords.get('QuantumUnits')
    if isinstance(units, (list, tuple)) and units and 'units' not in keywords:
        expected['units'] = units[0]
    measure = keywords.get('MEASINFO')
    if isinstance(measure, dict):
        for attribute, key in (('measure_type', 'type'), ('measure_ref', 'Ref')):
            if isinstance(measure.get(key), str) and attribute not in keywords:
                expected[attribute] = measure[key]
    for attribute, value in expected.items():
        if item.attrs.get(attribute) != value:
            say('attribute', attribute, repr(item.attrs.get(attribute)), 'expected', repr(value))


if __name__ == '__main__':
    total, found = Counter(), []
    for table_path, file_path in zip(sys.argv[1::2], sys.argv[2::2]):
        with h5py.File(file_path) as opened:
            found += compare(table_path, opened, total)
    print(*found, sep='\n')
    print(json.dumps(total))
    sys.exit(bool(found))
