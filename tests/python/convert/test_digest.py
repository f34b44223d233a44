"""`digest` gives the fingerprints that python-casacore's reading gives, of a table and of the native file made from it."""
import json
import os
import shutil
import sys

import blake3
import h5py
import pytest

import compare
import layout
import support


def missing(fingerprint):
    return 'No such file or directory' in fingerprint.get('error', '')


def exact_path(file, path):
    """The path in a native file with the names that its groups have in casacore."""
    if path == '.':
        return path
    with h5py.File(file) as opened:
        parts = path.split('/')
        return '/'.join(layout.exact_name(opened['/'.join(parts[:i + 1])]) for i in range(len(parts)))


sys.path.insert(0, os.path.join(support.TESTDATA, 'oracle'))
import fingerprint  # noqa: E402


def ctfp2(folder, tables, monkeypatch):
    """The fingerprints TABLES with the hashes of CTFP-2, as python-casacore reads the tables; without those it does not read."""
    monkeypatch.setattr(fingerprint, 'NEW', blake3.blake3)
    read = fingerprint.fingerprint_tree(folder)
    monkeypatch.undo()
    found = {}
    for path, theirs in tables.items():
        ours = read.get(path, {})
        if 'error' in theirs or 'columns' not in ours:
            continue
        columns = {}
        for name, column in theirs['columns'].items():
            other = ours['columns'].get(name, {})
            columns[name] = {**column, 'sha256': other.get('sha256'), 'keywords_sha256': other.get('keywords_sha256')}
        if all((columns[name]['sha256'] is None) == (column['sha256'] is None) for name, column in theirs['columns'].items()):
            found[path] = {**theirs, 'columns': columns, 'sha256': ours['sha256'], 'keywords_sha256': ours.get('keywords_sha256')}
    return found


def check(folder, tables, out, counts, monkeypatch):
    """Digests each table of a folder; converts each that is not inside another one, and digests and verifies that."""
    newer = ctfp2(folder, tables, monkeypatch)
    for path, expected in tables.items():
        source = os.path.join(folder, path)
        process = support.h5bridge('digest', '--json', '--hash', 'sha256', source, code=None)
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
        whole = {k: f for k, f in inside.items() if 'error' not in f and not support.unsupported(f)
                 and not support.elsewhere(f, tables)}
        compare.digests(found, whole, counts, source)
        if path not in newer:
            counts['tables that the oracle cannot open here'] += 1
            continue
        known = {k: f for k, f in support.below(newer, path).items() if k in whole}
        compare.digests(support.digest(source, code=None, hash='blake3'), known, counts, source + ' CTFP-2')
        counts['tables in CTFP-2'] += len(known)

    for root in support.some_roots(tables):
        source, target = os.path.join(folder, root), os.path.join(out, 'x.h5')
        codes, _ = support.outcome(tables, root)
        process = support.h5bridge('to-hdf5', '--json', '--overwrite', source, target, code=None)
        assert process.returncode in codes, process.stderr
        document = json.loads(process.stdout)
        assert document['status'] and document['code'] == process.returncode
        if process.returncode != support.DONE:
            continue
        native, table = (support.digest(path, code=None, hash='blake3') for path in (target, source))
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
def test_testdata(case, tmp_path, counts, monkeypatch):
    check(os.path.join(support.TESTDATA, case), support.expected(case)['tables'], tmp_path, counts, monkeypatch)


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
def test_generated(seed, tmp_path, counts, monkeypatch):
    made = support.make_tables(str(tmp_path), seed, int(os.environ.get('H5BRIDGE_COUNT', 12 if support.LONG else 4)))
    assert made
    for name, tables in made.items():
        check(os.path.join(tmp_path, name), tables, tmp_path, counts, monkeypatch)
        shutil.rmtree(os.path.join(tmp_path, name))


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', support.corpus(), ids=lambda e: e['name'] if e else 'corpus')
def test_corpus(entry, tmp_path, counts, monkeypatch):
    check(support.unpack(entry, tmp_path), entry['tables'], tmp_path, counts, monkeypatch)


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


# ---- files of the program before CTFP-2 -------------------------------------------------------------------------------

OLDER = os.path.join(support.TESTDATA, 'older')


def flipped(source, target, offset):
    """A copy of a file in which one bit is another one."""
    shutil.copy(source, target)
    with open(target, 'r+b') as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
    return target


def stored(file):
    """The document with the digests of the main table."""
    with h5py.File(file) as opened:
        return json.loads(opened['_ctds/MAIN'].attrs['digests'])


def test_files_with_sha256_still_verify(tmp_path):
    native, archive = os.path.join(OLDER, 'native.h5'), os.path.join(OLDER, 'archive.mfh5')
    assert stored(native)['format'] == 'CTFP-1'
    compared = json.loads(support.h5bridge('verify', '--json', native).stdout)['compared']
    assert compared['columns'] == 3 and compared['files'] == 6
    assert '6 files with checksums' in support.h5bridge('verify', '--bytes', archive).stderr
    support.h5bridge('to-ms', '--exact', native, tmp_path / 'back.tab')
    support.h5bridge('unpack', archive, tmp_path / 'out.tab')
    for back in ('back.tab', 'out.tab'):
        assert support.digest(tmp_path / back)['.']['sha256'] == stored(native)['sha256']
    # a new conversion of the same table stores the newer kind
    support.h5bridge('to-hdf5', tmp_path / 'back.tab', tmp_path / 'new.h5')
    new = stored(tmp_path / 'new.h5')
    assert new['format'] == 'CTFP-2' and 'sha256' not in new
    assert new['blake3'] == support.digest(native, hash='blake3')['.']['sha256']


@pytest.mark.parametrize('hash', ['sha256', 'blake3'])
def test_a_changed_element_is_named_in_files_of_both_kinds(hash, tmp_path):
    native = os.path.join(OLDER, 'native.h5')
    if hash == 'blake3':
        support.h5bridge('to-ms', '--exact', native, tmp_path / 'back.tab')
        native = tmp_path / 'new.h5'
        support.h5bridge('to-hdf5', '--restorable', tmp_path / 'back.tab', native)
    changed = shutil.copy(native, tmp_path / 'changed.h5')
    with h5py.File(changed, 'r+') as opened:
        opened['MAIN/DATA'][17, 2, 3] += 1
    different = json.loads(support.h5bridge('verify', '--json', changed, code=support.DIFFERENT).stdout)['differences']
    cells, = [found for found in different if found['column'] == 'DATA']
    # the marks tell the rows: 256 KiB are eight of them
    assert 'first in rows 15 to 23' in cells['right'], cells
    assert any('file table.f' in found['table'] for found in different), different
    refused = support.h5bridge('to-ms', '--exact', changed, tmp_path / 'no.tab', code=support.DAMAGED)
    assert 'DATA' in refused.stderr


@pytest.mark.parametrize('hash', ['sha256', 'blake3'])
def test_a_flipped_byte_is_found_in_archives_of_both_kinds(hash, tmp_path):
    archive = os.path.join(OLDER, 'archive.mfh5')
    if hash == 'blake3':
        support.h5bridge('unpack', archive, tmp_path / 'out.tab')
        archive = tmp_path / 'new.mfh5'
        support.h5bridge('pack', '--single-file', tmp_path / 'out.tab', archive)
    with h5py.File(archive) as opened:
        assert hash in opened['table.dat'].attrs
        place = opened['table.dat/FileData'].id.get_chunk_info(0).byte_offset
    broken = flipped(archive, tmp_path / 'broken.mfh5', place + 20)
    message = support.h5bridge('verify', '--bytes', broken, code=support.DAMAGED)
    assert 'table.dat' in message.stdout + message.stderr


@pytest.mark.parametrize('hash', ['sha256', 'blake3'])
def test_a_wrong_stored_hash_of_a_file_is_named(hash, tmp_path):
    """Without a seal, only the hash of a file covers its bytes."""
    support.h5bridge('unpack', os.path.join(OLDER, 'archive.mfh5'), tmp_path / 'out.tab')
    archive = tmp_path / 'new.mfh5'
    support.h5bridge('pack', '--single-file', '--checksum', hash, tmp_path / 'out.tab', archive)
    with h5py.File(archive, 'r+') as opened:
        digits = opened['table.dat'].attrs[hash]
        opened['table.dat'].attrs[hash] = digits[::-1]
    message = support.h5bridge('verify', '--bytes', archive, code=support.DAMAGED)
    name = {'sha256': 'SHA-256', 'blake3': 'BLAKE3'}[hash]
    assert 'table.dat' in message.stdout + message.stderr and name in message.stdout + message.stderr


def test_archives_keep_their_kind_of_hash(tmp_path):
    """--checksum sha256 is for archives whose rules ask for it: every file has the hash that sha256sum prints."""
    table, native, archive = tmp_path / 'a.tab', tmp_path / 'a.h5', tmp_path / 'a.mfh5'
    support.h5bridge('to-ms', '--exact', os.path.join(OLDER, 'native.h5'), table)
    support.h5bridge('to-hdf5', '--restorable', '--checksum', 'sha256', table, native)
    support.h5bridge('pack', '--single-file', '--checksum', 'sha256', table, archive)
    data = (table / 'table.dat').read_bytes()
    with h5py.File(native) as opened:
        index = json.loads(opened['_ctds/restore/index'][...].tobytes())
    assert [f['sha256'] for f in index['files'] if f['path'] == 'table.dat'] == [support.sha256(data)]
    assert all('blake3' not in file for file in index['files'])
    with h5py.File(archive) as opened:
        assert opened['table.dat'].attrs['sha256'] == support.sha256(data)
    support.h5bridge('verify', native)
    support.h5bridge('verify', '--bytes', archive)
    listed = json.loads(support.h5bridge('digest', '--json', '--hash', 'sha256', archive, code=None).stdout or '{}')
    assert listed.get('format') == 'CTFP-1'
    refused = support.h5bridge('pack', '--checksum', 'sha256', table, tmp_path / 'packed.tab', code=support.USAGE)
    assert 'multihdf5' in refused.stderr
    refused = support.h5bridge('to-hdf5', '--checksum', 'sha256', table, tmp_path / 'b.h5', code=support.USAGE)
    assert '--restorable' in refused.stderr


def test_digests_of_a_newer_format_are_refused(tmp_path):
    newer = shutil.copy(os.path.join(OLDER, 'native.h5'), tmp_path / 'newer.h5')
    with h5py.File(newer, 'r+') as opened:
        attributes = opened['_ctds/MAIN'].attrs
        attributes['digests'] = attributes['digests'].replace('CTFP-1', 'CTFP-9')
    message = support.h5bridge('verify', newer, code=support.UNSUPPORTED).stderr
    assert 'CTFP-9' in message and 'CTFP-2' in message
