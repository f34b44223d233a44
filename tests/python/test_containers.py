"""Tables in containers: those that casacore wrote, and those that `pack` makes, byte for byte, for h5bridge and for
casacore. containers.py reads containers a second time."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zlib

import h5py
import numpy as np
import pytest
import casacore.tables as ct

import containers
import support
from support import h5bridge
from test_values import corpus

sys.path.insert(0, os.path.join(support.TESTDATA, 'oracle'))
import fingerprint  # noqa: E402

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

# Larger tables are packed in one form only
LARGE = 1 << 20


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
            same(containers.files(packed), expected if not kept_original(packed) else containers.files(plain), packed)
        shutil.rmtree(plain)
        source = packed
        counts['round trips'] += 1


def kept_original(packed):
    return 'table.dat_plain' in h5bridge('ls', packed).stdout


def every_form(name):
    """Two of the forms, others for other names; all of them together."""
    first = zlib.crc32(name.encode()) % len(FORMS)
    forms = list(FORMS)
    return [forms[first], forms[(first + 5) % len(forms)]]


# ---- what casacore wrote ---------------------------------------------------------------------------------------------

def check_casacore(folder, tables, tmp_path, counts):
    """Tables in containers that casacore wrote: unpacked, digested, converted as their plain twins."""
    for root in support.roots(tables):
        table, plain = os.path.join(folder, root), str(tmp_path / 'plain')
        if 'error' in tables[root]:
            continue
        h5bridge('unpack', table, plain)
        same(containers.files(plain), containers.files(table), table)
        assert not any(name.startswith('table.mf') for _, _, names in os.walk(plain) for name in names)
        ours, theirs = support.digest(plain), support.digest(table)
        assert ours == theirs
        for path, expected in support.below(tables, root).items():
            assert ours[path]['sha256'] == expected['sha256'], '%s %s' % (table, path)
            assert fingerprint.table_fingerprint(os.path.join(plain, path))['sha256'] == expected['sha256']
        native = str(tmp_path / 'x.h5')
        h5bridge('to-hdf5', '--overwrite', table, native)
        h5bridge('verify', native, plain)
        listed = json.loads(h5bridge('ls', '--json', table).stdout)
        for inner in [n for n in listed['nested'] if n['name'].startswith('table.mf')]:
            assert inner['format'] == {'table.mf': 'multifile', 'table.mfh5': 'multihdf5'}[inner['name']]
            with open(os.path.join(plain, inner['files'][0]['name']), 'rb') as f:
                assert len(f.read()) == inner['files'][0]['size']
        shutil.rmtree(plain)
        counts['tables of casacore'] += 1


@pytest.mark.parametrize('entry', fixtures(), ids=lambda e: e and e['path'])
def test_fixtures(entry, tmp_path, counts):
    with tarfile.open(os.path.join(FIXTURES, entry['kind'], entry['file'])) as archive:
        archive.extractall(tmp_path, filter='data')
    table = os.path.join(tmp_path, entry['path'])
    if entry['container'] == 'multihdf5' or entry.get('block_size'):
        document = json.loads(h5bridge('info', '--json', table).stdout)['tables']['.']
        assert document['storage']['format'] == entry['container']
        assert document['storage']['block_size'] == entry['block_size']
    check_casacore(tmp_path, {entry['path'] if p == '.' else os.path.join(entry['path'], p): f
                              for p, f in entry['tables'].items()}, tmp_path, counts)
    round_trip(table, every_form(entry['path']), tmp_path, counts)


def test_testdata_containers(tmp_path, counts):
    check_casacore(os.path.join(support.TESTDATA, 'multifile'), support.expected('multifile')['tables'], tmp_path, counts)


# ---- there and back --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('case', support.cases())
def test_testdata(case, tmp_path, counts):
    for number, root in enumerate(support.roots(support.expected(case)['tables'])):
        folder = tmp_path / str(number)
        folder.mkdir()
        round_trip(os.path.join(support.TESTDATA, case, root), every_form(case + root), folder, counts)


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


@pytest.mark.skipif(bool(support.corpus_missing()), reason=support.corpus_missing() or 'there')
@pytest.mark.parametrize('entry', corpus(), ids=lambda e: e['name'] if e else 'corpus')
def test_corpus(entry, tmp_path, counts):
    folder = support.unpack(entry, tmp_path)
    for number, root in enumerate(support.roots(entry['tables'])):
        table, out = os.path.join(folder, root), tmp_path / ('out%d' % number)
        out.mkdir()
        forms = every_form(root)
        if sum(os.path.getsize(os.path.join(d, n)) for d, _, names in os.walk(table) for n in names) > LARGE:
            forms = forms[:1]
        if not any(n == 'table.dat' for n in os.listdir(table)):
            continue
        try:
            round_trip(table, forms, out, counts)
        finally:
            shutil.rmtree(out)


# ---- for casacore ----------------------------------------------------------------------------------------------------

def fingerprints(table):
    return {path: f.get('sha256') for path, f in fingerprint.fingerprint_tree(str(table)).items()}


@pytest.mark.parametrize('case,table', [(c, t) for c, t in support.convertible() if c != 'rows64'])
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
    """casacore wrote table.dat of version 1 in 1994; the rule of docs/packing.md cannot give it back."""
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
    assert h5bridge('verify', '--bytes', packed).stdout == ''
    for container in [packed] if packed.is_file() else list(packed.rglob('table.mf*')):
        content = container.read_bytes()
        rng, last = np.random.default_rng(1), len(content) - 1
        every = range(len(content)) if os.environ.get('H5BRIDGE_LONG') else rng.choice(len(content), 120).tolist()
        for at in sorted({0, 8, last - 50, last - 20, last - 3, last, *every}):
            changed = bytearray(content)
            changed[at] ^= 1 << at % 8
            container.write_bytes(changed)
            process = h5bridge('verify', '--bytes', packed, code=support.DAMAGED)
            assert process.stdout or container.name in process.stderr, at
        container.write_bytes(content)


def test_who_changes_an_archive_takes_its_seal(tmp_path):
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


@pytest.mark.parametrize('name', ['../../evil', '/tmp/evil', '..', 'a/../../../evil'])
def test_names_that_lead_elsewhere(name, tmp_path):
    folder = tmp_path / 'folder' / 'deeper'
    folder.mkdir(parents=True)
    h5bridge('pack', DEMO, folder / 'x.h5', '--single-file', '--block-size', '4K')
    with h5py.File(folder / 'x.h5', 'r+') as file:
        header = file['__MultiHDF5_Header__'].attrs
        names = list(header['names'])
        names[0] = name
        header['names'] = np.array(names, dtype=h5py.string_dtype('ascii'))
    process = h5bridge('unpack', folder / 'x.h5', folder / 'out', code=support.DAMAGED)
    assert 'name' in process.stderr
    assert os.listdir(folder) == ['x.h5'] and os.listdir(tmp_path) == ['folder'] and 'evil' not in os.listdir('/tmp')
    h5bridge('ls', folder / 'x.h5', code=None)


def test_names_that_lead_elsewhere_in_multifile(tmp_path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    h5bridge('pack', DEMO, folder / 'x.mf', '--single-file', '--format', 'multifile')
    content = (folder / 'x.mf').read_bytes()
    for bad in (b'../able.dat', b'/ttable.dat', b'..'):
        changed = content.replace(b'table.dat', bad[:9].ljust(9, b'x'), 1)
        (folder / 'x.mf').write_bytes(changed)
        h5bridge('unpack', folder / 'x.mf', folder / 'out', code=support.DAMAGED)
        assert os.listdir(folder) == ['x.mf'] and os.listdir(tmp_path) == ['folder']


# ---- manners ---------------------------------------------------------------------------------------------------------

def test_what_no_container_holds_is_named(tmp_path):
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
    for form in ('single-multihdf5', 'multifile'):
        h5bridge('pack', source, tmp_path / form, *FORMS[form])
        h5bridge('unpack', tmp_path / form, tmp_path / 'plain')
        same(containers.files(tmp_path / 'plain'), expected, form)
        shutil.rmtree(tmp_path / 'plain')
    # MultiFile knows nested ones by their bytes
    process = h5bridge('pack', source, tmp_path / 'x', *FORMS['single-multifile'], code=support.UNSUPPORTED)
    assert 'copy.mf' in process.stderr
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


def test_truncated_containers(tmp_path):
    for form in FORMS:
        packed = tmp_path / form
        h5bridge('pack', DEMO, packed, *FORMS[form])
        container = packed if packed.is_file() else next(packed.glob('table.mf*'))
        content = container.read_bytes()
        for share in (0, 0.01, 0.5, 0.9):
            container.write_bytes(content[:int(len(content) * share)])
            # the names are there as long as the header is, and at the end of the last block there is nothing
            for verb in (['digest', packed], ['verify', '--bytes', packed], ['unpack', packed, tmp_path / 'x']):
                code = h5bridge(*verb, code=None).returncode
                assert code == support.DAMAGED or share == 0.9 and code == support.DONE, (form, share, verb)
                shutil.rmtree(tmp_path / 'x', ignore_errors=True)
            h5bridge('ls', packed, code=None)
        assert not (tmp_path / 'x').exists() and not (tmp_path / 'x.partial').exists()


@pytest.mark.parametrize('verb', ['pack', 'unpack', 'single'])
def test_interrupted(verb, big_ms, tmp_path):
    """Nothing half-made stays behind."""
    words = {'pack': ['pack', big_ms], 'unpack': ['unpack', big_ms],
             'single': ['pack', '--single-file', '--compress', 'gzip:9', big_ms]}[verb]
    process = subprocess.Popen([support.H5BRIDGE, *words, str(tmp_path / 'out')], stderr=subprocess.DEVNULL)
    while not os.path.exists(tmp_path / 'out.partial') and process.poll() is None:
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
