"""Every column of a native file, as h5py reads it, has the values that python-casacore reads from the table."""
import json
import os
import subprocess
import sys

import h5py
import pytest

import compare
import layout
import support

MODES = {'none': ['--compress', 'none'], 'default': [], 'gzip': ['--compress', 'gzip'], 'appendable': ['--appendable']}


def check(table, file, counts):
    with h5py.File(file) as opened:
        differences = compare.compare(table, opened, counts)
    assert not differences, '\n'.join(differences[:20])


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('case,table', support.some_convertible())
def test_testdata(case, table, mode, converted, counts):
    if case == 'odd_strings':
        pytest.skip('python-casacore cannot read it; test_odd_strings does')
    check(os.path.join(support.TESTDATA, case, table), converted(case, table, *MODES[mode]), counts)


def refused(tables, root, path, target, counts):
    """A table that cannot be converted gives the right exit code and leaves nothing behind. True if it was refused."""
    codes, words = support.outcome(tables, root)
    process = support.h5bridge('to-hdf5', '--compress', 'none', path, target, code=None)
    assert process.returncode in codes, process.stderr
    if process.returncode == support.DONE:
        return False
    counts['refusals'] += 1
    assert not os.path.exists(target)
    assert not any(name.endswith('.partial') for name in os.listdir(os.path.dirname(target)))
    assert 'panicked' not in process.stderr
    assert not words or any(word.lower() in process.stderr.lower() for word in words), \
        '%s does not name any of %s' % (process.stderr, words)
    return True


@pytest.mark.parametrize('case,table', [
    (case, path) for case in support.cases() for path in support.expected(case)['tables']
    if support.outcome(support.expected(case)['tables'], path)[0] != {support.DONE}])
def test_refused(case, table, tmp_path, counts):
    path, target = os.path.join(support.TESTDATA, case, table), tmp_path / 'x.h5'
    if not refused(support.expected(case)['tables'], table, path, target, counts):
        check(path, target, counts)


@pytest.mark.parametrize('mode', ['none', 'default'])
def test_odd_strings(mode, converted):
    """Strings that HDF5 cannot hold are shown as well as can be, and their bytes are kept."""
    q, w = b'\xff\xfe\x80Q', b'W\0\0W'
    expected = {
        'S': [b'plain', b'not utf-8: ' + q + b' here', q, 'é'.encode()],
        'N': [b'a NUL: ' + w + b' here', w, b'none', b''],
        'A': [b'one', b'not utf-8: ' + q + b' here', 'é'.encode(), w, b'', b'XX ' + w, None,
              b'two', b'three', q + b' and ' + w],
    }
    with h5py.File(converted('odd_strings', 'odd.tab', *MODES[mode])) as file:
        for name, strings in expected.items():
            group = file['MAIN']
            item = layout.column_item(group, name)
            kept = layout.exact_strings(group, item)
            dense = layout.form(item) == 'dense'
            shown, element = [], 0
            for cell in layout.cells(group, item, 'string'):
                if cell is None:
                    shown.append((None, None))
                    element += 3 if dense else 0
                    continue
                for text in [cell] if isinstance(cell, str) else cell.ravel():
                    shown.append((text, kept.pop(element, None)))
                    element += 1
            assert len(shown) == len(strings) and not kept
            for (text, whole), exact in zip(shown, strings):
                if exact is None:
                    assert text is None
                    continue
                visible = exact.split(b'\0')[0]
                assert text == visible.decode('utf-8', errors='replace')
                # kept where the dataset has something else, and only there
                assert whole == (None if text.encode() == exact else exact)


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', support.corpus(), ids=lambda e: e['name'] if e else 'corpus')
def test_corpus(entry, tmp_path, counts):
    folder = support.unpack(entry, tmp_path)
    tables, pairs = entry['tables'], []

    def visit(root):
        path, target = os.path.join(folder, root), str(tmp_path / ('%d.h5' % len(pairs)))
        if refused(tables, root, path, target, counts):
            # the tables inside it may be good
            for inner in support.roots([p for p in tables if p.startswith(root + '/') or root == '.' and p != '.']):
                visit(inner)
        elif not tables[root].get('reference'):     # those python-casacore cannot open; test_digest has them
            pairs.extend((path, target))

    for root in support.roots(tables):
        visit(root)
    # in a process of its own, for casacore crashes on some tables
    words = [sys.executable, os.path.join(support.HERE, 'compare.py'), *pairs]
    process = subprocess.run(words, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    counts.update(json.loads(process.stdout.splitlines()[-1]))
