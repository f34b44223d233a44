"""Thin tables: python-casacore reads a table whose tiles are in an HDF5 file, and neither side damages the other."""
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
import casacore.tables as ct

import support
from support import DAMAGED, DONE, EXISTS, UNSUPPORTED, USAGE, h5bridge

DEMO = support.own_copy('demo', 'demo.ms')
# more rows than fit in memory, none of them stored
FILES = support.sample([entry for entry in support.convertible() if entry[0] != 'rows64'], 4)


def links(table):
    """{path in the table: where it leads} of all symbolic links."""
    found = {}
    for folder, _, names in os.walk(table):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[os.path.relpath(path, table)] = os.readlink(path)
    return found


def make(table, folder, *options):
    """An HDF5 file of TABLE and the thin table of it, in FOLDER."""
    h5bridge('to-hdf5', table, folder / 'my.h5', '--compress', 'shared')
    h5bridge('link', folder / 'my.h5', folder / 'thin.ms', *options)
    return folder / 'my.h5', folder / 'thin.ms'


def same(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype.kind in 'OUS':
        return found.tolist() == expected.tolist()
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


def check_same_table(thin, original, counts):
    """All columns as python-casacore reads them, with those of the subtables."""
    with ct.table(str(original), ack=False) as expected, ct.table(str(thin), ack=False) as found:
        assert found.nrows() == expected.nrows() and set(found.colnames()) == set(expected.colnames())
        for name in expected.colnames():
            for row in range(expected.nrows()):
                defined = expected.iscelldefined(name, row)
                assert found.iscelldefined(name, row) == defined, (name, row)
                if defined:
                    a, b = found.getcell(name, row), expected.getcell(name, row)
                    assert a == b if isinstance(a, (dict, str)) else same(a, b), (name, row)
            counts['columns'] += 1
        subtables = [name for name, value in expected.getkeywords().items()
                     if isinstance(value, str) and value.startswith('Table: ')]
    for name in subtables:
        if os.path.isdir(os.path.join(original, name)) and os.path.isdir(os.path.join(thin, name)):
            check_same_table(os.path.join(thin, name), os.path.join(original, name), counts)
    counts['tables'] += 1


def unprivileged(code, *words):
    """Runs Python without the right to write to files that are read-only."""
    def drop():
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)    # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE: what root may do before all others
    return subprocess.run([sys.executable, '-c', code, *map(str, words)], preexec_fn=drop, capture_output=True, text=True)


# ---- the same table ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('case,table', FILES)
def test_testdata(case, table, tmp_path, counts):
    source = os.path.join(support.TESTDATA, case, table)
    h5bridge('to-hdf5', source, tmp_path / 'my.h5', '--compress', 'shared')
    h5, thin = tmp_path / 'my.h5', tmp_path / 'thin.ms'
    process = h5bridge('link', h5, thin, code=None)
    if process.returncode == UNSUPPORTED:
        assert '--compress shared' in process.stderr and not thin.exists()
        counts['without tiles'] += 1
        return
    assert process.returncode == DONE, process.stderr
    found = links(thin)
    counts['links'] += len(found)
    assert found and all(os.path.realpath(os.path.join(thin, os.path.dirname(path), target)) == os.path.realpath(h5)
               and not os.path.isabs(target) for path, target in found.items())
    document = json.loads(h5bridge('verify', source, thin, '--json').stdout)
    assert document['equal']
    expected, ours = support.digest(source), support.digest(thin)
    assert ours == expected or ours['.'] == expected['.'] or case in ('names', 'concat_tables', 'ref_tables')


@pytest.mark.parametrize('case,table', [('demo', 'demo.ms'), ('twospw', 'twospw.ms')] +
                         [('dtypes_tiled', '%s_%s_%s.tab' % (manager, dtype, order)) for manager in ('TiledColumnStMan', 'TiledShapeStMan')
                          for dtype in ('complex', 'short', 'double') for order in ('big', 'little')])
def test_casacore(case, table, tmp_path, counts):
    source = support.own_copy(case, table)
    h5, thin = make(source, tmp_path)
    assert links(thin)
    check_same_table(thin, source, counts)


def corpus_tables():
    for entry in support.corpus_sample(12):
        for path in support.roots(entry['tables']):
            managers = {manager['type'] for manager in entry['tables'][path].get('data_managers', ())}
            if managers & {'TiledShapeStMan', 'TiledColumnStMan'} and 'error' not in entry['tables'][path]:
                yield pytest.param(entry, path, id='%s-%s' % (entry['name'], path))


@pytest.mark.parametrize('entry,path', corpus_tables())
def test_corpus(entry, path, tmp_path, counts):
    table = os.path.join(support.unpack(entry, tmp_path), path) if path != '.' else support.unpack(entry, tmp_path)
    process = h5bridge('to-hdf5', table, tmp_path / 'my.h5', '--compress', 'shared', code=None)
    if process.returncode != DONE:
        counts['refused'] += 1
        return
    if h5bridge('link', tmp_path / 'my.h5', tmp_path / 'thin.ms', code=None).returncode == UNSUPPORTED:
        counts['without blocks'] += 1
        return
    counts['links'] += len(links(tmp_path / 'thin.ms'))
    counts['tables'] += 1
    assert json.loads(h5bridge('verify', table, tmp_path / 'thin.ms', '--json').stdout)['equal']
    # python-casacore reads every cell of the thin table: in a process of its own, because it crashes on some tables
    oracle = os.path.join(support.TESTDATA, 'oracle', 'fingerprint.py')
    found = subprocess.run([sys.executable, oracle, tmp_path / 'thin.ms'], capture_output=True, text=True)
    tables = json.loads(found.stdout)
    for name, expected in support.below(entry['tables'], path).items():
        for column, fingerprint in expected.get('columns', {}).items():
            if fingerprint['sha256'] is not None and column in tables.get(name, {}).get('columns', {}):
                assert tables[name]['columns'][column]['sha256'] == fingerprint['sha256'], (name, column)
                counts['columns'] += 1
    assert set(tables['.']['columns']) >= {column for column, found in entry['tables'][path]['columns'].items() if found['sha256']}


def test_offsets_beyond_4_gib(tmp_path, counts):
    """HDF5 files are larger than casacore's first records could say."""
    h5bridge('to-hdf5', DEMO, tmp_path / 'small.h5', '--compress', 'shared')
    # the same datasets behind a hole: h5py copies them with the layout that they have
    with h5py.File(tmp_path / 'small.h5') as source, h5py.File(tmp_path / 'my.h5', 'w', libver=('v110', 'v110')) as file:
        create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        create.set_chunk((1 << 20,))
        create.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        create.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        h5py.h5d.create(file.id, b'hole', h5py.h5t.NATIVE_UINT8, h5py.h5s.create_simple((5 << 30,)), create)
        for name in source:
            source.copy(name, file)
        for key, value in source.attrs.items():
            file.attrs[key] = value
        address = file['MAIN/DATA'].id.get_chunk_info(0).byte_offset
    assert address > 4 << 30
    h5bridge('link', tmp_path / 'my.h5', tmp_path / 'thin.ms')
    found = json.loads(h5bridge('info', tmp_path / 'thin.ms', '--json').stdout)['thin']['links']
    assert '/MAIN/DATA' in [link['dataset'] for link in found]
    check_same_table(tmp_path / 'thin.ms', DEMO, counts)


# ---- both sides stay whole ---------------------------------------------------------------------------------------------

ADD_ROWS = '''
import sys, casacore.tables as ct, numpy as np
t = ct.table(sys.argv[1], readonly=False, ack=False); n = t.nrows(); t.addrows(500)
for name in ("DATA", "UVW"):
    t.putcol(name, np.ones((500,) + t.getcell(name, 0).shape, t.getcell(name, 0).dtype), startrow=n, nrow=500)
t.close()
'''
WRITE = '''
import sys, casacore.tables as ct
t = ct.table(sys.argv[1], readonly=False, ack=False); t.putcell("DATA", 0, t.getcell("DATA", 0) + 1); t.close()
'''


def test_read_only(tmp_path):
    """Programs may not write to it, and reading needs no right to."""
    h5, thin = make(DEMO, tmp_path)
    before = (h5.read_bytes(), support.tree(thin))
    assert not any(os.stat(os.path.join(folder, name), follow_symlinks=False).st_mode & 0o222
                   for folder, _, names in os.walk(thin) for name in names
                   if not os.path.islink(os.path.join(folder, name)))
    for code in (ADD_ROWS, WRITE):
        process = unprivileged(code, thin)
        assert process.returncode != 0 and 'ermission' in process.stderr, process.stderr[-300:]
    read = unprivileged('import sys, casacore.tables as ct; print(ct.table(sys.argv[1], ack=False).getcol("DATA").shape)', thin)
    assert read.stdout.startswith('(210'), read.stderr[-300:]
    assert (h5.read_bytes(), support.tree(thin)) == before


def test_rows_cannot_be_added(tmp_path):
    """Even where the files may be written: casacore would write over what follows in the HDF5 file."""
    h5, thin = make(DEMO, tmp_path, '--writable')
    before = h5.read_bytes()
    process = subprocess.run([sys.executable, '-c', ADD_ROWS, thin], capture_output=True, text=True)
    assert process.returncode != 0 and 'not extensible' in process.stderr, process.stderr[-300:]
    assert h5.read_bytes() == before


def test_writable(tmp_path):
    """What casacore writes is in the HDF5 file, and what h5py writes in the table."""
    process = h5bridge('to-hdf5', DEMO, tmp_path / 'my.h5', '--compress', 'shared')
    process = h5bridge('link', tmp_path / 'my.h5', tmp_path / 'thin.ms', '--writable')
    assert 'HDF5 file' in process.stderr
    h5, thin = tmp_path / 'my.h5', tmp_path / 'thin.ms'
    with ct.table(str(thin), readonly=False, ack=False) as table:
        new = table.getcell('DATA', 7) * 3 + 1
        table.putcell('DATA', 7, new)
    with h5py.File(h5, 'r+') as file:
        assert (file['MAIN/DATA'][7] == new).all()
        file['MAIN/DATA'][8] = 42
    with ct.table(str(thin), ack=False) as table:
        assert (table.getcell('DATA', 8) == 42).all()
    # elements that changed in place are those of both
    h5bridge('verify', thin)
    assert json.loads(h5bridge('verify', h5, thin, '--json').stdout)['equal']


def test_deleting(tmp_path):
    h5, thin = make(DEMO, tmp_path, '--writable')
    before = h5.read_bytes()
    ct.tabledelete(str(thin), ack=False)
    assert not thin.exists() and h5.read_bytes() == before
    h5bridge('link', h5, thin)
    shutil.rmtree(thin)
    assert h5.read_bytes() == before


def test_materialize(tmp_path, counts):
    h5, thin = make(DEMO, tmp_path)
    h5bridge('materialize', thin)
    h5.unlink()
    assert links(thin) == {} and not (thin / '.h5bridge.json').exists()
    check_same_table(thin, DEMO, counts)
    process = h5bridge('materialize', thin, code=USAGE)
    assert 'not a thin table' in process.stderr
    subprocess.run([sys.executable, '-c', ADD_ROWS, thin], check=True)


# ---- verbs ----------------------------------------------------------------------------------------------------------------

def verbs(thin, out):
    return [['info', thin], ['digest', thin], ['verify', thin], ['verify', thin, DEMO], ['to-hdf5', thin, out / 'x.h5'],
            ['to-ms', thin, out / 'x.ms'], ['materialize', thin]]


@pytest.mark.parametrize('change', ['moved', 'rewritten', 'converted again', 'repacked in place', 'truncated'])
def test_every_verb_notices(change, tmp_path):
    h5, thin = make(DEMO, tmp_path)
    words = 'rewritten'
    if change == 'moved':
        h5.rename(tmp_path / 'other.h5')
        words = 'my.h5'
    elif change == 'rewritten':
        with h5py.File(tmp_path / 'new.h5', 'w') as file, h5py.File(h5) as old:
            old.copy('MAIN', file)
        os.replace(tmp_path / 'new.h5', h5)
    elif change == 'converted again':
        h5bridge('to-hdf5', DEMO, h5, '--compress', 'shared', '--overwrite')
    elif change == 'repacked in place':
        h5bridge('to-hdf5', DEMO, tmp_path / 'new.h5')
        with open(h5, 'r+b') as file:
            file.truncate(0)
            file.write((tmp_path / 'new.h5').read_bytes())
    else:
        os.truncate(h5, h5.stat().st_size // 2)
    before = support.tree(thin) if change != 'moved' else None
    for verb in verbs(thin, tmp_path):
        process = h5bridge(*verb, code=DAMAGED)
        assert 'my.h5' in process.stderr and 'link' in process.stderr and words in process.stderr, (verb, process.stderr)
    assert before is None or support.tree(thin) == before
    assert not (tmp_path / 'x.h5').exists() and not (tmp_path / 'x.ms').exists()


def test_verbs(tmp_path):
    h5, thin = make(DEMO, tmp_path)
    assert 'thin table' in h5bridge('info', thin).stdout and '/MAIN/DATA' in h5bridge('info', thin, '--storage').stdout
    assert 'thin table' in h5bridge('verify', thin).stderr
    h5bridge('to-hdf5', thin, tmp_path / 'x.h5')
    h5bridge('verify', tmp_path / 'x.h5', DEMO)
    for verb in (['pack', thin, tmp_path / 'x.mf', '--format', 'multifile'], ['to-hdf5', thin, tmp_path / 'y.h5', '--restorable'],
                 ['manifest', thin, tmp_path / 'x.json'], ['to-hdf5', thin, tmp_path / 'y.h5', '--replace']):
        process = h5bridge(*verb, code=UNSUPPORTED)
        assert 'thin' in process.stderr or 'symbolic link' in process.stderr, verb
    assert sorted(os.listdir(tmp_path)) == ['my.h5', 'thin.ms', 'x.h5']
    # a whole move of both keeps them together
    os.mkdir(tmp_path / 'there')
    for name in ('my.h5', 'thin.ms'):
        shutil.move(tmp_path / name, tmp_path / 'there' / name)
    h5bridge('verify', tmp_path / 'there' / 'thin.ms')


def test_bad_record(tmp_path):
    thin = make(DEMO, tmp_path)[1]
    record = thin / '.h5bridge.json'
    for change, words in ((lambda: os.truncate(record, 3 << 30), 'not a record of links'), (lambda: os.mkfifo(record), 'not a regular file')):
        record.unlink()
        record.touch()
        if words == 'not a regular file':
            record.unlink()
        change()
        process = h5bridge('verify', thin, code=DAMAGED)
        assert words in process.stderr and '.h5bridge.json' in process.stderr, process.stderr


def test_link_refuses(tmp_path):
    h5bridge('link', DEMO, tmp_path / 'thin.ms', code=USAGE)
    h5, thin = make(DEMO, tmp_path)
    h5bridge('link', h5, thin, code=EXISTS)
    h5bridge('link', h5, thin, '--overwrite')
    h5bridge('to-hdf5', DEMO, tmp_path / 'packed.h5')
    process = h5bridge('link', tmp_path / 'packed.h5', tmp_path / 'other.ms', code=UNSUPPORTED)
    assert '--compress shared' in process.stderr and not (tmp_path / 'other.ms').exists()


def test_the_source_is_never_replaced(tmp_path):
    h5bridge('to-hdf5', DEMO, tmp_path / 'my.h5', '--compress', 'shared')
    before = (tmp_path / 'my.h5').read_bytes()
    process = h5bridge('link', tmp_path / 'my.h5', tmp_path / 'my.h5', '--overwrite', code=USAGE)
    assert 'would be replaced' in process.stderr and (tmp_path / 'my.h5').read_bytes() == before
    table = shutil.copytree(DEMO, tmp_path / 'my.ms')
    shutil.move(tmp_path / 'my.h5', table / 'my.h5')
    h5bridge('link', table / 'my.h5', table, '--overwrite', code=USAGE)
    (table / 'my.h5').unlink()
    h5bridge('to-hdf5', '--replace', table, table / 'my.h5', code=USAGE)
    assert support.tree(table) == support.tree(DEMO)


# ---- to-hdf5 --replace ----------------------------------------------------------------------------------------------------

def test_replace(tmp_path, counts):
    table = tmp_path / 'my.ms'
    shutil.copytree(DEMO, table)
    made = json.loads(h5bridge('to-hdf5', '--replace', table, tmp_path / 'my.h5', '--json').stdout)
    assert made['links'] == len(links(table)) >= 5 and made['cells_compared'] > 0
    check_same_table(table, DEMO, counts)
    h5bridge('verify', DEMO, tmp_path / 'my.h5')
    assert sorted(os.listdir(tmp_path)) == ['my.h5', 'my.ms']
    for option in ('--restorable', '--dry-run', '--columns=DATA'):
        h5bridge('to-hdf5', '--replace', DEMO, tmp_path / 'x.h5', option, code=USAGE)


def test_replace_killed(big_ms, tmp_path):
    """At any moment the table is the original or the thin one, whole."""
    expected = support.digest(big_ms)
    table, h5 = tmp_path / 'my.ms', tmp_path / 'my.h5'
    shutil.copytree(big_ms, table)
    started = time.monotonic()
    h5bridge('to-hdf5', '--replace', table, h5)
    whole = time.monotonic() - started
    assert support.digest(table) == expected
    generator = random.Random(7)
    outcomes = {'original': 0, 'thin': 0}
    for _ in range(100 if support.LONG else 4):
        shutil.rmtree(table)
        h5.unlink(missing_ok=True)
        shutil.copytree(big_ms, table)
        process = subprocess.Popen([support.H5BRIDGE, 'to-hdf5', '--replace', table, h5], stderr=subprocess.DEVNULL)
        time.sleep(generator.uniform(0, 1.1 * whole))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert support.digest(table) == expected
        outcomes['thin' if links(table) else 'original'] += 1
        if links(table):
            h5bridge('verify', table)
    h5.unlink(missing_ok=True)
    if not links(table):
        h5bridge('to-hdf5', '--replace', table, h5)
    assert not support.partials(str(table)) or outcomes['thin']
