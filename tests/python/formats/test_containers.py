"""Tables in containers: those that casacore wrote, and those that `pack` makes, byte for byte, for h5bridge and for
casacore. containers.py reads containers a second time; test_bad_containers.py has what is damaged.

Every table goes into each kind of container, with and without checksums and compression by turns; H5BRIDGE_LONG=1 takes
all forms of each."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import zlib

import h5py
import numpy as np
import pytest
import casacore.tables as ct

import containers
import support
from support import h5bridge

sys.path.insert(0, os.path.join(support.TESTDATA, 'oracle'))
import fingerprint  # noqa: E402

fingerprint._patch()    # without it python-casacore cannot open tables with some types of columns

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
FIXTURES = os.path.join(support.ROOT, '..', 'shared', 'fixtures')

# Options of `pack` for each form, and what is made
FORMS = {
    'multifile': ['--format', 'multifile'],
    'multihdf5': ['--format', 'multihdf5'],
    'multifile-crc': ['--format', 'multifile', '--crc', '--block-size', '512'],
    'multihdf5-gzip': ['--compress', 'gzip', '--crc', '--block-size', '64K'],
    'single-multifile': ['--format', 'multifile', '--single-file'],
    'single-multihdf5': ['--single-file'],
    'single-multifile-crc': ['--format', 'multifile', '--single-file', '--crc', '--block-size', '1K'],
    'single-multihdf5-gzip': ['--single-file', '--compress', 'gzip:1', '--crc'],
}



def fixtures():
    """Archives of ../shared/fixtures, with what is in them."""
    found = []
    for kind in ('multifile', 'multihdf5'):
        manifest = os.path.join(FIXTURES, kind, 'manifest.json')
        if os.path.exists(manifest):
            with open(manifest) as f:
                found += [dict(entry, kind=kind) for entry in json.load(f)['entries'] if 'tables' in entry]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason='../shared/fixtures is missing'))]


def same(found, expected, where):
    """Compares {path: bytes}."""
    assert sorted(found) == sorted(expected), where
    for path, content in expected.items():
        assert found[path] == content, '%s: %s differs' % (where, path)


def round_trip(table, forms, tmp_path, counts):
    """Packs a table in each of these forms, from the form before, and unpacks it."""
    expected, source = containers.files(table), table
    for form in forms:
        packed, plain = str(tmp_path / ('packed-' + form)), str(tmp_path / 'plain')
        h5bridge('pack', source, packed, *FORMS[form])
        h5bridge('unpack', packed, plain)
        same(containers.files(plain), expected, '%s as %s' % (table, form))
        h5bridge('verify', '--bytes', table, packed)
        if 'single' not in form:
            same(containers.files(packed), expected, packed)
        shutil.rmtree(plain)
        source = packed
        counts['round trips'] += 1


def forms_of(name):
    """Forms for a table: one of each kind of container, or all; others, and in another order, for other names."""
    forms, seed = list(FORMS), zlib.crc32(name.encode())
    kinds = [('multifile', 'multifile-crc'), ('multihdf5', 'multihdf5-gzip'),
             ('single-multifile', 'single-multifile-crc'), ('single-multihdf5', 'single-multihdf5-gzip')]
    chosen = forms if support.LONG else [pair[seed >> bit & 1] for bit, pair in enumerate(kinds)]
    first = (seed >> 4) % len(chosen)
    return chosen[first:] + chosen[:first]


def fingerprints(table):
    return {path: f.get('sha256') for path, f in fingerprint.fingerprint_tree(str(table)).items()}


# ---- what casacore wrote ---------------------------------------------------------------------------------------------

def holders(folder):
    """The containers below a folder."""
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names
                  if name in ('table.mf', 'table.mfh5'))


def check_listed(container, counts):
    """`ls` has of a container what is in it."""
    listed = json.loads(h5bridge('ls', '--json', container).stdout)
    with open(container, 'rb') as f:
        content = f.read()
    rest = b''
    if os.path.exists(container + '_hdrext'):
        with open(container + '_hdrext', 'rb') as f:
            rest = f.read()
    is_hdf5 = content.startswith(b'\x89HDF')
    inside = (containers.multihdf5 if is_hdf5 else containers.multifile)(content, rest)
    assert {file['name']: file['size'] for file in listed['files']} == {name: len(inside[name]) for name in inside}
    assert listed['format'] == ('multihdf5' if is_hdf5 else 'multifile') and not listed['nested']
    for file in listed['files']:
        if is_hdf5:
            continue
        block, numbers = listed['block_size'], [n for a, b in file['block_numbers'] for n in range(a, b + 1)]
        stored = b''.join(content[n * block:(n + 1) * block] for n in numbers)
        assert stored[:file['size']] == inside[file['name']], file
    kind = '%s %s' % (listed['format'], listed['version']) if listed['version'] else listed['format']
    counts[kind + (' with CRC' if listed['checksum'] else '')] += 1
    counts['blocks of %d' % listed['block_size']] += 1


def check_twin(table, counts):
    """A table in containers is listed and unpacked, and its plain twin is digested and converted as it is. Returns the
    twin, which lies beside it, for tables refer to others beside them."""
    plain, native = str(table) + '-plain', str(table) + '-native.h5'
    for container in holders(table):
        check_listed(container, counts)
    h5bridge('unpack', table, plain)
    same(containers.files(plain), containers.files(table), table)
    assert not holders(plain)
    # what cannot be read of one cannot of the other
    one, other = (h5bridge('digest', '--json', path, code=None) for path in (plain, table))
    assert (one.returncode, one.stdout) == (other.returncode, other.stdout)
    one, other = (h5bridge('to-hdf5', '--overwrite', path, native, code=None) for path in (plain, table))
    assert one.returncode == other.returncode
    if one.returncode == support.DONE:
        h5bridge('verify', native, plain)
        os.unlink(native)
    counts['tables of casacore'] += 1
    return plain


def check_casacore(folder, tables, counts):
    """Tables in containers that casacore wrote, and what it reads in them."""
    for root in support.roots(tables):
        table = os.path.join(folder, root)
        if 'error' in tables[root]:
            continue
        plain = check_twin(table, counts)
        ours = support.digest(plain)
        for path, expected in support.below(tables, root).items():
            assert ours[path]['sha256'] == expected['sha256'], '%s %s' % (table, path)
            assert fingerprint.table_fingerprint(os.path.join(plain, path))['sha256'] == expected['sha256']
        shutil.rmtree(plain)


@pytest.mark.parametrize('entry', fixtures(), ids=lambda e: e and e['path'])
def test_fixtures(entry, tmp_path, counts):
    support.extract(os.path.join(FIXTURES, entry['kind'], entry['file']), tmp_path)
    table = os.path.join(tmp_path, entry['path'])
    if entry['container'] == 'multihdf5' or entry.get('block_size'):
        document = json.loads(h5bridge('info', '--json', table).stdout)['tables']['.']
        assert document['storage']['format'] == entry['container']
        assert document['storage']['block_size'] == entry['block_size']
    check_casacore(tmp_path, {entry['path'] if p == '.' else os.path.join(entry['path'], p): f
                              for p, f in entry['tables'].items()}, counts)
    round_trip(table, forms_of(entry['path']), tmp_path, counts)


@pytest.mark.skipif(not os.path.isdir(FIXTURES), reason='../shared/fixtures is missing')
def test_container_of_casacores_own_tests(tmp_path, counts):
    """Version 1, continued beside itself, with free blocks; it is not part of a table."""
    for name in ('tMultiFile.in', 'tMultiFile.in_hdrext'):
        shutil.copy(os.path.join(FIXTURES, 'multifile', name), tmp_path)
    check_listed(str(tmp_path / 'tMultiFile.in'), counts)
    h5bridge('verify', '--bytes', tmp_path / 'tMultiFile.in')
    os.unlink(tmp_path / 'tMultiFile.in_hdrext')
    process = h5bridge('ls', tmp_path / 'tMultiFile.in', code=support.DAMAGED)
    assert 'rest of the header' in process.stderr


def test_testdata_containers(tmp_path, counts):
    shutil.copytree(os.path.join(support.TESTDATA, 'multifile'), tmp_path / 'tables')
    check_casacore(tmp_path / 'tables', support.expected('multifile')['tables'], counts)


@pytest.mark.parametrize('block', [128, 4096])
@pytest.mark.parametrize('name', ['m1', 'm2', 'm5'])
def test_version_1(name, block, tmp_path, counts):
    """No casacore of today writes it. That of today reads what is made here, and makes it version 2 when it changes it."""
    source, table = os.path.join(support.TESTDATA, 'multifile', name, 't.tab'), str(tmp_path / 'v1.tab')
    shutil.copytree(source, table)
    with open(os.path.join(source, 'table.mf'), 'rb') as f:
        inside = containers.multifile(f.read())
    content, rest = containers.make_multifile_1(list(inside.items()), block)
    assert bool(rest) == (block == 128) and containers.multifile(content, rest) == inside
    container = os.path.join(table, 'table.mf')
    for path, data in ((container, content), (container + '_hdrext', rest)):
        if data:
            with open(path, 'wb') as f:
                f.write(data)
    expected = fingerprints(source)
    assert fingerprints(table) == expected
    plain = check_twin(table, counts)
    assert fingerprints(plain) == expected
    round_trip(table, forms_of(name), tmp_path, counts)
    with ct.table(table, readonly=False, ack=False) as t:
        t.addrows(50)
    assert json.loads(h5bridge('ls', '--json', container).stdout)['version'] == 2
    shutil.rmtree(plain)
    expected = fingerprints(table)
    assert fingerprints(check_twin(table, counts)) == expected
    assert support.digest(table)['.']['sha256'] == expected['.']


@pytest.mark.parametrize('kind', ['multifile', 'multihdf5'])
def test_nested_as_casacores_library_makes_them(kind, tmp_path):
    """Its tables do not use them: nothing marks a nested MultiFile but its bytes; a nested MultiHDF5 has a FileData of
    its own, which is empty. Their blocks have other sizes than those around them."""
    outer, inner = (containers.files(os.path.join(support.TESTDATA, 'multifile', name, 't.tab')) for name in ('m5', 'm1'))
    packed = tmp_path / 'packed'
    if kind == 'multifile':
        nested = ('SUB', containers.make_multifile(list(inner.items())))
        packed.write_bytes(containers.make_multifile([*outer.items(), nested], block=1024, crc={}))
    else:
        with h5py.File(packed, 'w', libver='earliest') as file:
            containers.make_multihdf5(file, outer, block=1024, nested=['SUB'])
            containers.make_multihdf5(file.create_group('SUB'), inner)
            file['SUB'].create_dataset('FileData', (0, 512), 'u1', chunks=(1, 512), maxshape=(None, 512))
    listed = json.loads(h5bridge('ls', '--json', packed).stdout)
    assert [(n['name'], n['format'], n['block_size']) for n in listed['nested']] == [('SUB', kind, 512)]
    assert {f['name'] for f in listed['files']} == set(outer) and listed['block_size'] == 1024
    expected = {**outer, 'SUB/': None, **{'SUB/' + name: content for name, content in inner.items()}}
    h5bridge('unpack', packed, tmp_path / 'plain')
    same(containers.files(tmp_path / 'plain'), expected, kind)
    assert support.digest(packed) == support.digest(tmp_path / 'plain')
    assert support.digest(packed / 'SUB') == support.digest(tmp_path / 'plain' / 'SUB')


# ---- there and back --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('case', support.cases())
def test_testdata(case, tmp_path, counts):
    for number, root in enumerate(support.some_roots(support.expected(case)['tables'])):
        folder = tmp_path / str(number)
        folder.mkdir()
        round_trip(os.path.join(support.TESTDATA, case, root), forms_of(case + root), folder, counts)


def test_demo_in_every_form(tmp_path, counts):
    round_trip(DEMO, FORMS, tmp_path, counts)
    expected = support.digest(DEMO)
    for form in FORMS:
        assert support.digest(tmp_path / ('packed-' + form)) == expected
        h5bridge('to-hdf5', tmp_path / ('packed-' + form), tmp_path / 'x.h5', '--overwrite', '--columns', 'DATA,UVW')
    # packed again from what was unpacked, it is the same
    for form in FORMS:
        h5bridge('unpack', tmp_path / ('packed-' + form), tmp_path / 'plain')
        h5bridge('pack', tmp_path / 'plain', tmp_path / 'again', *FORMS[form])
        h5bridge('verify', '--bytes', tmp_path / ('packed-' + form), tmp_path / 'again')
        if 'multifile' in form:
            assert tree(tmp_path / ('packed-' + form)) == tree(tmp_path / 'again')
        for path in ('plain', 'again'):
            shutil.rmtree(tmp_path / path) if (tmp_path / path).is_dir() else os.unlink(tmp_path / path)


def tree(path):
    """{name: bytes} of what is there, containers as they are."""
    if path.is_file():
        return {'': path.read_bytes()}
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob('*') if p.is_file()}


def corpus():
    entries = support.sample(support.corpus_entries(every=True), 12)
    return entries or [pytest.param(None, marks=pytest.mark.skip(reason=support.corpus_missing()))]


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', corpus(), ids=lambda e: e['name'] if e else 'corpus')
def test_corpus(entry, tmp_path, counts):
    folder = support.unpack(entry, tmp_path)
    for number, root in enumerate(support.roots(entry['tables'])):
        table, out = os.path.join(folder, root), tmp_path / ('out%d' % number)
        out.mkdir()
        try:
            if holders(table):
                shutil.rmtree(check_twin(table, counts))
            round_trip(table, forms_of(entry['name'] + root), out, counts)
            counts['tables'] += 1
        finally:
            shutil.rmtree(out)


# ---- for casacore ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('case,table', [(c, t) for c, t in support.some_convertible() if c != 'rows64'])
def test_casacore_reads_multifile(case, table, tmp_path, counts):
    source, packed = os.path.join(support.TESTDATA, case, table), tmp_path / os.path.basename(table)
    tables = support.expected(case)['tables']
    managers = {manager['type'] for manager in tables[table].get('data_managers', ())}
    if tables[table].get('table_class', 'PlainTable') != 'PlainTable' or 'ForwardColumnEngine' in managers:
        pytest.skip('what it refers to is beside it')
    crc = ['--crc'] if zlib.crc32(table.encode()) % 2 else []
    h5bridge('pack', '--format', 'multifile', '--block-size', '2048', *crc, source, packed)
    assert fingerprints(packed) == fingerprints(source)
    counts['tables'] += 1


@pytest.mark.parametrize('crc', [[], ['--crc']], ids=['plain', 'crc'])
@pytest.mark.parametrize('case,table', [('demo', 'demo.ms'), ('dtypes_all_managers', None), ('shapes', None)])
def test_casacore_appends_rows(case, table, crc, tmp_path):
    table = table or support.roots(support.expected(case)['tables'])[0]
    packed = tmp_path / 'packed.tab'
    h5bridge('pack', '--format', 'multifile', *crc, os.path.join(support.TESTDATA, case, table), packed)
    with ct.table(str(packed), readonly=False, ack=False) as t:
        rows = t.nrows()
        t.addrows(300)
        for column in t.colnames():
            if rows and t.iscelldefined(column, rows - 1):
                try:
                    for row in (rows, rows + 299):
                        t.putcell(column, row, t.getcell(column, rows - 1))
                except RuntimeError as error:
                    assert 'not writable' in str(error) or 'put' in str(error), error
    with ct.table(str(packed), ack=False) as t:
        assert t.nrows() == rows + 300
    expected = fingerprints(packed)
    assert support.digest(packed)['.']['sha256'] == expected['.']
    if crc:
        h5bridge('verify', '--bytes', packed)
    h5bridge('unpack', packed, tmp_path / 'plain.tab')
    assert fingerprints(tmp_path / 'plain.tab') == expected


def test_column_set_1_is_restored_unless_the_table_changed(tmp_path):
    """casacore wrote table.dat of version 1 in 1994; the rule of docs/reference/containers.md cannot give it back."""
    if support.corpus_missing():
        pytest.skip(support.corpus_missing())
    entry = next(e for e in support.corpus_entries() if e['name'] == 'casacore_ttable2_v1')
    folder = support.unpack(entry, tmp_path)
    source = os.path.join(folder, support.roots(entry['tables'])[0])
    packed, plain = tmp_path / 'packed', tmp_path / 'plain'
    h5bridge('pack', '--format', 'multifile', source, packed)
    with ct.table(str(packed), readonly=False, ack=False) as t:
        t.putkeyword('NEW', 1)
    h5bridge('unpack', packed, plain)
    with ct.table(str(plain), ack=False) as t:
        assert t.getkeyword('NEW') == 1
    assert sorted(os.listdir(plain)) == sorted(set(os.listdir(source)) | {'table.lock'})


# ---- damage ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('form', ['multifile-crc', 'multihdf5-gzip', 'single-multifile-crc', 'single-multihdf5-gzip',
                                  'single-multihdf5'])
def test_flipped_bytes_are_found(form, tmp_path):
    """Wherever they are: in blocks, behind the ends of files, in what holds the container together, in what checks it."""
    source, packed = tmp_path / 'source.tab', tmp_path / 'packed'
    shutil.copytree(os.path.join(support.TESTDATA, 'multifile', 'm5', 't.tab'), source)
    shutil.copytree(os.path.join(support.TESTDATA, 'multifile', 'm1', 't.tab'), source / 'SUB')
    h5bridge('pack', source, packed, *FORMS[form])
    process = h5bridge('verify', '--bytes', packed)
    assert process.stdout == '' and ('warning' in process.stderr) == packed.is_dir(), process.stderr
    for container in [packed] if packed.is_file() else list(packed.rglob('table.mf*')):
        content = container.read_bytes()
        last = len(content) - 1
        some = np.random.default_rng(None if support.LONG else 1).choice(len(content), 1500 if support.LONG else 120)
        for at in sorted({0, 8, last - 50, last - 20, last - 3, last, *some.tolist()}):
            changed = bytearray(content)
            changed[at] ^= 1 << at % 8
            container.write_bytes(changed)
            process = h5bridge('verify', '--bytes', packed, code=support.DAMAGED)
            assert process.stdout or container.name in process.stderr, at
        container.write_bytes(content)


@pytest.mark.parametrize('form', ['single-multihdf5', 'single-multihdf5-gzip', 'multihdf5-gzip'])
def test_seal_is_as_documented(form, tmp_path):
    """Read by docs/reference/containers.md alone: zlib knows the checksums, h5py where the blocks of each file are."""
    h5bridge('pack', DEMO, tmp_path / 'x', *FORMS[form])
    container = tmp_path / 'x' if form.startswith('single') else tmp_path / 'x' / 'table.mfh5'
    content = container.read_bytes()
    length, count, names_bytes, magic, crc = struct.unpack('<QQQ8sI', content[-36:])
    assert magic == b'ctdsseal' and zlib.crc32(content[length:-4]) == crc
    paths = content[length + 16 * count:-36].decode().split('\0')[:-1]
    assert length + 16 * count + names_bytes + 36 == len(content)
    owners, at = np.zeros(length, int), 0
    for size, owner, checksum in struct.iter_unpack('<QII', content[length:length + 16 * count]):
        assert 0 < size <= 4 << 20 and zlib.crc32(content[at:at + size]) == checksum
        owners[at:at + size] = owner
        at += size
    assert at == length
    expected = np.zeros(length, int)
    with h5py.File(container) as file:
        for number, path in enumerate(paths, 1):
            data = file[path + '/FileData'].id
            for chunk in map(data.get_chunk_info, range(data.get_num_chunks())):
                expected[chunk.byte_offset:chunk.byte_offset + chunk.size] = number
    assert (owners == expected).all() and len(paths) > 5


def test_changes_by_others_remove_the_seal(tmp_path):
    """libhdf5 cuts off what is behind the end: a seal cannot be older than the file."""
    for form in ('single-multihdf5', 'multihdf5-gzip'):
        packed = tmp_path / form
        h5bridge('pack', DEMO, packed, *FORMS[form])
        container = packed if packed.is_file() else packed / 'table.mfh5'
        document = json.loads(h5bridge('ls', '--json', container).stdout)
        assert document['checksum'] == 'crc32'
        with h5py.File(container, 'r+') as file:
            file.create_group('mine')
        assert json.loads(h5bridge('ls', '--json', container).stdout)['checksum'] is None
        process = h5bridge('verify', '--bytes', '--strict', container, code=support.WARNINGS)
        assert '1 files or containers have no checksums' in process.stderr
        h5bridge('verify', '--bytes', packed, DEMO)


def test_damage_that_libhdf5_does_not_survive(tmp_path):
    """Zeros in a global heap, which has no checksums, send libhdf5 round in circles: it does not see them."""
    for form in ('single-multihdf5', 'multihdf5-gzip'):
        packed = tmp_path / form
        h5bridge('pack', DEMO, packed, *FORMS[form])
        container = packed if packed.is_file() else packed / 'table.mfh5'
        content = bytearray(container.read_bytes())
        heap = content.index(b'GCOL')
        content[heap + 16:heap + 32] = bytes(16)
        container.write_bytes(content)
        for words in (['info', packed], ['digest', packed], ['ls', packed], ['unpack', packed, tmp_path / 'x'],
                      ['to-hdf5', packed, tmp_path / 'x'], ['verify', '--bytes', packed, DEMO]):
            stderr = h5bridge(*words, code=support.DAMAGED).stderr
            assert container.name in stderr and 'are not those that were stored' in stderr, words
        process = h5bridge('verify', '--bytes', packed, code=support.DAMAGED)
        assert 'are not those that were stored' in process.stdout


def test_verify_names_the_file_and_the_byte(tmp_path):
    shutil.copytree(DEMO, tmp_path / 'other.ms')
    path = tmp_path / 'other.ms' / 'ANTENNA' / 'table.f0'
    content = bytearray(path.read_bytes())
    content[1234] ^= 1
    path.write_bytes(content)
    os.unlink(tmp_path / 'other.ms' / 'table.info')
    h5bridge('pack', DEMO, tmp_path / 'x.h5', '--single-file')
    process = h5bridge('verify', '--bytes', '--json', tmp_path / 'x.h5', tmp_path / 'other.ms', code=support.DIFFERENT)
    document = json.loads(process.stdout)
    assert [(d['file'], d['offset']) for d in document['differences']] == [('ANTENNA/table.f0', 1234), ('table.info', None)]
    assert not document['equal']
    # the archive knows its bytes, whatever it is compared with
    with h5py.File(tmp_path / 'x.h5') as file:
        offset = file['ANTENNA/table.f0/FileData'].id.get_chunk_info(0).byte_offset
    with open(tmp_path / 'x.h5', 'r+b') as f:
        f.seek(offset + 1234)
        f.write(b'?')
    process = h5bridge('verify', '--bytes', tmp_path / 'x.h5', code=support.DAMAGED)
    assert 'ANTENNA/table.f0' in process.stdout


# ---- manners ---------------------------------------------------------------------------------------------------------

def test_unpackable_entries_are_named(tmp_path):
    source = tmp_path / 'odd.ms'
    shutil.copytree(DEMO, source)
    os.symlink('table.dat', source / 'link')
    os.symlink('nowhere', source / 'dangling')
    os.symlink('/', source / 'root')
    os.mkfifo(source / 'pipe')
    with open(os.path.join(bytes(source), b'\xff\xfe'), 'w'):
        pass
    (source / 'empty directory').mkdir()
    (source / 'notes.txt').write_text('mine')
    for options in FORMS.values():
        process = h5bridge('pack', '--strict', '--overwrite', source, tmp_path / 'x', *options, code=support.WARNINGS)
        for word in ('link', 'dangling', 'root', 'pipe'):
            assert 'warning: %s' % word in process.stderr
        assert 'UTF-8' in process.stderr
        h5bridge('unpack', '--overwrite', tmp_path / 'x', tmp_path / 'plain')
        assert (tmp_path / 'plain' / 'empty directory').is_dir()
        assert (tmp_path / 'plain' / 'notes.txt').read_text() == 'mine'
        assert (tmp_path / 'plain' / 'link').read_bytes() == (source / 'table.dat').read_bytes()
        shutil.rmtree(tmp_path / 'x') if (tmp_path / 'x').is_dir() else os.unlink(tmp_path / 'x')


def test_files_that_look_like_containers_stay_files(tmp_path):
    """Only what the archive made itself is nested in it."""
    source = tmp_path / 'source.tab'
    shutil.copytree(os.path.join(support.TESTDATA, 'multifile', 'm5', 't.tab'), source)
    shutil.copy(source / 'table.mf', source / 'copy.mf')
    h5bridge('pack', DEMO, source / 'inner.h5', '--single-file')
    shutil.copy(source / 'inner.h5', source / 'table.mfh5')
    expected = containers.files(source)
    for form in ('single-multihdf5', 'single-multifile', 'single-multifile-crc', 'multifile'):
        h5bridge('pack', source, tmp_path / form, *FORMS[form])
        h5bridge('unpack', tmp_path / form, tmp_path / 'plain')
        same(containers.files(tmp_path / 'plain'), expected, form)
        shutil.rmtree(tmp_path / 'plain')
    # a container cannot be made where a file is
    process = h5bridge('pack', source, tmp_path / 'x', *FORMS['multihdf5'], code=support.UNSUPPORTED)
    assert 'table.mfh5' in process.stderr


def test_paths_lead_into_files(tmp_path):
    for form in ('single-multifile', 'single-multihdf5'):
        h5bridge('pack', DEMO, tmp_path / form, *FORMS[form])
        assert support.digest(tmp_path / form / 'ANTENNA') == support.digest(os.path.join(DEMO, 'ANTENNA'))
        assert support.digest(tmp_path / form / 'ANTENNA' / '..' / 'FIELD') == support.digest(os.path.join(DEMO, 'FIELD'))
        h5bridge('unpack', tmp_path / form / 'ANTENNA', tmp_path / 'antenna.tab')
        same(containers.files(tmp_path / 'antenna.tab'), containers.files(os.path.join(DEMO, 'ANTENNA')), form)
        shutil.rmtree(tmp_path / 'antenna.tab')
        h5bridge('digest', tmp_path / form / 'NONE', code=support.DAMAGED)
        h5bridge('digest', tmp_path / form / '..' / '..', code=support.DAMAGED)


def test_targets(tmp_path):
    h5bridge('pack', DEMO, tmp_path / 'packed.ms')
    for target in (tmp_path / 'packed.ms', tmp_path / 'packed.ms' / 'inside'):
        h5bridge('unpack', tmp_path / 'packed.ms', target, '--overwrite', code=support.USAGE)
    h5bridge('pack', DEMO, tmp_path / 'packed.ms', code=support.EXISTS)
    h5bridge('unpack', DEMO, tmp_path / 'packed.ms', '--overwrite')
    assert not (tmp_path / 'packed.ms' / 'table.mf').exists()
    (tmp_path / 'precious').mkdir()
    (tmp_path / 'precious' / 'thesis').write_text('mine')
    h5bridge('unpack', DEMO, tmp_path / 'precious', '--overwrite', code=support.EXISTS)
    h5bridge('pack', DEMO, tmp_path / 'x', '--format', 'multifile', '--compress', 'gzip', code=support.USAGE)
    h5bridge('pack', tmp_path / 'nothing', tmp_path / 'x', code=support.DAMAGED)
    h5bridge('pack', tmp_path / 'precious', tmp_path / 'x', code=support.DAMAGED)
    assert sorted(os.listdir(tmp_path)) == ['packed.ms', 'precious']
    document = json.loads(h5bridge('pack', DEMO, tmp_path / 'x', '--json').stdout)
    assert document['code'] == 0 and document['files'] == 74 and document['bytes'] > 400_000


@pytest.mark.parametrize('verb', ['pack', 'unpack', 'single'])
def test_interrupted(verb, big_ms, tmp_path):
    """Nothing half-made stays behind."""
    words = {'pack': ['pack', big_ms], 'unpack': ['unpack', big_ms],
             'single': ['pack', '--single-file', '--compress', 'gzip:9', big_ms]}[verb]
    process = subprocess.Popen([support.H5BRIDGE, *words, str(tmp_path / 'out')], stderr=subprocess.DEVNULL)
    while not support.partials(tmp_path / 'out') and process.poll() is None:
        pass
    process.send_signal(signal.SIGINT)
    code = process.wait(30)
    # it may have been done before the signal came
    assert code == support.INTERRUPTED and os.listdir(tmp_path) == [] or code == 0 and os.listdir(tmp_path) == ['out']


def test_writers_are_waited_for(tmp_path):
    shutil.copytree(DEMO, tmp_path / 'x.ms')
    with ct.table(str(tmp_path / 'x.ms' / 'ANTENNA'), readonly=False, lockoptions='permanentwait', ack=False):
        h5bridge('pack', '--lock-timeout', '0.2', tmp_path / 'x.ms', tmp_path / 'out', code=support.EXISTS)
        assert os.listdir(tmp_path) == ['x.ms']
        h5bridge('pack', '--no-lock', tmp_path / 'x.ms', tmp_path / 'out')
