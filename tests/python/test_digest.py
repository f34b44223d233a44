"""`digest` gives the fingerprints that python-casacore's reading gives, of a table and of the native file made from it."""
import json
import os
import shutil

import h5py
import pytest

import layout
import support
from test_values import corpus


def compare(found, expected, counts, where):
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


def missing(fingerprint):
    return 'No such file or directory' in fingerprint.get('error', '')


def exact_path(file, path):
    """The path in a native file with the names that its groups have in casacore."""
    if path == '.':
        return path
    with h5py.File(file) as opened:
        parts = path.split('/')
        return '/'.join(layout.exact_name(opened['/'.join(parts[:i + 1])]) for i in range(len(parts)))


def check(folder, tables, out, counts):
    """Digests each table of a folder; converts each that is not inside another one, and digests and verifies that."""
    for path, expected in tables.items():
        source = os.path.join(folder, path)
        process = support.h5bridge('digest', '--json', source, code=None)
        codes, _ = support.outcome(tables, path)
        inside = support.below(tables, path)
        if any(support.optional(f) for f in inside.values()):
            codes = codes | {support.UNSUPPORTED}       # for the columns that are not read
        if any(support.not_utf8(f) for f in inside.values()):
            codes = codes | {support.DAMAGED}           # CTFP-1 has no sha256 of them
        # a keyword may lead to a damaged table that does not lie inside this one
        assert process.returncode in codes, process.stderr
        if 'error' in expected or 'tables' not in json.loads(process.stdout or '{}'):
            counts['refusals'] += 1
            continue
        found = json.loads(process.stdout)['tables']
        compare(found, {k: f for k, f in inside.items() if 'error' not in f and not support.unsupported(f)
                        and not support.elsewhere(f, tables)}, counts,
                source)

    for root in support.roots(tables):
        source, target = os.path.join(folder, root), os.path.join(out, 'x.h5')
        codes, _ = support.outcome(tables, root)
        process = support.h5bridge('to-hdf5', '--json', '--overwrite', source, target, code=None)
        assert process.returncode in codes, process.stderr
        document = json.loads(process.stdout)
        assert document['status'] and document['code'] == process.returncode
        if process.returncode != support.DONE:
            continue
        native, table = support.digest(target, code=None), support.digest(source, code=None)
        # a keyword may name a subtable that is not there; it is warned of, and the rest is converted
        table = {path: f for path, f in table.items() if not missing(f)}
        native = {exact_path(target, path): f for path, f in native.items()}
        assert set(native) == set(table)
        for path in native:
            for key in ('nrow', 'sha256', 'keywords_sha256', 'columns'):
                assert native[path][key] == table[path][key], '%s: %s of %s differs' % (source, key, path)
        counts['native files'] += 1
        for a, b in ((source, target), (target, source), (source, source), (target, target)):
            verdict = json.loads(support.h5bridge('verify', '--json', a, b).stdout)
            assert verdict['equal'] is True and verdict['differences'] == [], verdict
        counts['cells verified'] += verdict['compared']['cells']


@pytest.mark.parametrize('case', support.cases())
def test_testdata(case, tmp_path, counts):
    check(os.path.join(support.TESTDATA, case), support.expected(case)['tables'], tmp_path, counts)


def test_rows64_samples(counts):
    """More than 2^32 rows: seen, not read in full."""
    samples = support.expected('rows64')['samples']
    document = json.loads(support.h5bridge('info', '--json', os.path.join(support.TESTDATA, 'rows64', 't.tab')).stdout)
    assert samples[-1]['row'] + 1 == 2 ** 32 + 11
    assert str(2 ** 32 + 11) in json.dumps(document)
    counts['tables'] += 1


def test_rows64_rows(tmp_path):
    """A few rows beyond 2^32 are converted; the row numbers are those of the table."""
    target = tmp_path / 'x.h5'
    source = os.path.join(support.TESTDATA, 'rows64', 't.tab')
    start, stop = 2 ** 32 + 3, 2 ** 32 + 11
    support.h5bridge('to-hdf5', '--rows', '%d..%d' % (start, stop), source, target, timeout=60)
    samples = {s['row']: s for s in support.expected('rows64')['samples']}
    with h5py.File(target) as file:
        rows = file['MAIN/row'][...].tolist()
        assert rows == list(range(start, stop))
        for at, row in enumerate(rows):
            if row in samples:
                assert file['MAIN/I'][at] == samples[row]['I']
                assert file['MAIN/S'].asstr()[at] == samples[row]['S']


# Always the same tables, so that a failure stays until it is mended; H5BRIDGE_SEED and H5BRIDGE_COUNT give others.
SEED = int(os.environ.get('H5BRIDGE_SEED', 100))


@pytest.mark.parametrize('seed', range(SEED, SEED + 4))
def test_generated(seed, tmp_path, counts):
    made = support.make_tables(str(tmp_path), seed, int(os.environ.get('H5BRIDGE_COUNT', 12)))
    assert made
    for name, tables in made.items():
        check(os.path.join(tmp_path, name), tables, tmp_path, counts)
        shutil.rmtree(os.path.join(tmp_path, name))


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', corpus(), ids=lambda e: e['name'] if e else 'corpus')
def test_corpus(entry, tmp_path, counts):
    check(support.unpack(entry, tmp_path), entry['tables'], tmp_path, counts)


def test_verify_finds_a_difference(tmp_path):
    """One changed value is found and named."""
    import casacore.tables as ct
    changed = tmp_path / 'changed.ms'
    source = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
    shutil.copytree(source, changed)
    table = ct.table(str(changed), readonly=False, ack=False)
    cell = table.getcell('DATA', 17)
    cell[3, 2] += 1
    table.putcell('DATA', 17, cell)
    table.close()
    target = tmp_path / 'x.h5'
    support.h5bridge('to-hdf5', changed, target)
    for left, right in ((source, target), (target, source), (source, changed)):
        process = support.h5bridge('verify', '--json', left, right, code=support.DIFFERENT)
        verdict = json.loads(process.stdout)
        assert verdict['equal'] is False
        first = verdict['differences'][0]
        assert first['column'] == 'DATA' and first['row'] == 17 and first['index'], first
    words = support.h5bridge('verify', source, target, code=support.DIFFERENT)
    assert 'DATA' in words.stdout + words.stderr and '17' in words.stdout + words.stderr
