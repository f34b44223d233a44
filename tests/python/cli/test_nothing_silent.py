"""No verb ends well after it left something out or checked nothing, without saying so."""
import json
import os
import shutil
import struct

import h5py
import numpy as np
import pytest
from casacore.tables import makearrcoldesc, makescacoldesc, maketabdesc, table

import support
from support import h5bridge

POINTER = b'version https://git-lfs.github.com/spec/v1\noid sha256:' + b'4d7a' * 16 + b'\nsize 12345\n'
FOLLOW = '--follow-references'


def make(path, rows=40):
    """A table with a subtable; returns the rows of its columns."""
    desc = [makescacoldesc('K', 0), makearrcoldesc('D', 1.0, shape=[4, 3]), makescacoldesc('S', '')]
    values = {'K': np.arange(rows, dtype=np.int32), 'D': np.arange(rows * 12.0).reshape(rows, 4, 3)}
    with table(str(path), maketabdesc(desc), nrow=rows, ack=False) as made:
        for name, cells in values.items():
            made.putcol(name, cells)
        made.putcol('S', ['s%d' % row for row in range(rows)])
        with table(str(path / 'SUB'), maketabdesc([makescacoldesc('NAME', '')]), nrow=2, ack=False) as sub:
            sub.putcol('NAME', ['a', 'b'])
        made.putkeyword('SUB', 'Table: %s' % (path / 'SUB'))
    return values


def concatenate(path, parts, rows):
    """A concatenation of tables, as casacore stores it, by their absolute paths."""
    def text(value):
        return struct.pack('>I', len(value)) + value

    def aips(name, version, content):
        body = text(name) + struct.pack('>I', version) + content
        return struct.pack('>I', len(body) + 4) + body

    names = struct.pack('>I', len(parts)) + b''.join(text(os.fsencode(part)) for part in parts)
    view = aips(b'ConcatTable', 0, names + aips(b'Block', 1, struct.pack('>I', 0)))
    path.mkdir()
    (path / 'table.dat').write_bytes(b'\xbe' * 4 + aips(b'Table', 2, struct.pack('>II', rows, 0) + text(b'ConcatTable') + view))
    shutil.copy(parts[0] / 'table.info', path)


def document(*words, code=0):
    return json.loads(h5bridge('--json', *words, code=code).stdout)


@pytest.fixture
def referring(tmp_path):
    """Tables that have their rows, columns or subtables elsewhere, each with the path of the other table and its column K."""
    whole = tmp_path / 'm.ms'
    make(whole)
    (tmp_path / 'sub').mkdir()
    rows = [5, 1, 1, 30, 5, 0, 39]
    with table(str(whole), ack=False) as made:
        made.selectrows(rows).copy(str(tmp_path / 'sub' / 'reference.ms'), deep=False)
    make(tmp_path / 'n.ms', 3)
    concatenate(tmp_path / 'sub' / 'concatenation.ms', [whole, tmp_path / 'n.ms'], 43)
    forward = tmp_path / 'sub' / 'forwarded.ms'
    managers = {'*1': {'TYPE': 'ForwardColumnEngine', 'NAME': 'F', 'COLUMNS': ['K'], 'SPEC': {'FORWARDTABLE': str(whole)}}}
    with table(str(forward), maketabdesc([makescacoldesc('K', 0)]), dminfo=managers, nrow=40, ack=False) as made:
        made.putkeyword('SUB', 'Table: %s' % (whole / 'SUB'))
    beside = tmp_path / 'sub' / 'subtable.ms'
    with table(str(beside), maketabdesc([makescacoldesc('K', 0)]), nrow=2, ack=False) as made:
        made.putkeyword('SUB', 'Table: %s' % (whole / 'SUB'))
    return {tmp_path / 'sub' / 'reference.ms': (whole, rows),
            tmp_path / 'sub' / 'concatenation.ms': (whole, [*range(40), 0, 1, 2]),
            forward: (whole, list(range(40))),
            beside: (whole / 'SUB', [0, 0])}


def test_pack_names_the_tables_it_does_not_pack(referring, tmp_path):
    for number, (source, (other, _)) in enumerate(referring.items()):
        for form in (['--single-file'], [], ['--format', 'hdf5']):
            target = tmp_path / ('packed_%d%s' % (number, ''.join(form)))
            said = h5bridge('pack', source, target, *form)
            assert str(other) in said.stderr and 'is not packed' in said.stderr and FOLLOW in said.stderr
            shutil.move(target, target.with_suffix('.again')) if target.is_dir() else os.remove(target)
            found = document('pack', source, target, *form)
            assert any(str(other) in warning for warning in found['warnings'])
            assert str(other) in [one['path'] for one in found['elsewhere']]
            for verb in (['verify', '--bytes', source, target], ['unpack', target, tmp_path / ('back_%d%s' % (number, form))]):
                assert 'warning' in h5bridge(*verb).stderr


def test_pack_strict_refuses_to_leave_tables_out(referring, tmp_path):
    for source, (other, _) in referring.items():
        target = tmp_path / 'strict.mf'
        said = h5bridge('--strict', 'pack', source, target, '--single-file', code=support.WARNINGS)
        assert str(other) in said.stderr and not target.exists()
        h5bridge('--strict', 'pack', source, target, '--single-file', FOLLOW)
        target.unlink()


def test_followed_references_travel(referring, tmp_path):
    elsewhere = tmp_path / 'elsewhere'
    elsewhere.mkdir()
    for number, source in enumerate(referring):
        h5bridge('pack', source, elsewhere / ('%d.mf' % number), '--single-file', FOLLOW)
        h5bridge('pack', source, elsewhere / ('%d.dir' % number), FOLLOW)
        if source.name != 'forwarded.ms':  # whose column keyword names the other table
            h5bridge('verify', source, elsewhere / ('%d.mf' % number))
            h5bridge('verify', source, elsewhere / ('%d.dir' % number))
    for gone in ('m.ms', 'n.ms', 'sub'):
        shutil.move(tmp_path / gone, tmp_path / ('gone_' + gone))
    for number, (_, rows) in enumerate(referring.values()):
        back = elsewhere / ('back%d.ms' % number)
        assert 'warning' not in h5bridge('unpack', elsewhere / ('%d.mf' % number), back).stderr
        for copy in (back, elsewhere / ('%d.dir' % number)):
            with table(str(copy), ack=False) as read:
                assert read.getcol('K').tolist() == rows
                with table(read.getkeyword('SUB').replace('Table: ', ''), ack=False) as sub:
                    assert sub.getcol('NAME') == ['a', 'b']


def test_flipped_bytes_of_a_store_are_found(tmp_path):
    make(tmp_path / 'm.ms')
    h5bridge('pack', tmp_path / 'm.ms', tmp_path / 'a.vt', '--format', 'vt')
    store = next(path for path in tmp_path.iterdir() if (path / 'data').is_dir())
    sound = document('verify', '--bytes', store)
    assert sound['intact'] is True and sound['checked']['blocks'] > 5 and sound['checked']['block_bytes'] > 5000
    blocks = h5bridge('verify', '--bytes', store).stderr
    assert '%d blocks' % sound['checked']['blocks'] in blocks
    data = next((store / 'data').glob('*.vtd'))
    whole = data.read_bytes()
    for at in (len(whole) // 5, len(whole) // 2, len(whole) - 3):
        data.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1:])
        assert document('verify', '--bytes', store, code=support.DAMAGED)['damaged'], at
        # the archive alone names the blocks as well
        for index in store.glob('index-*'):
            os.rename(index, tmp_path / 'index')
        assert document('verify', '--bytes', store, code=support.DAMAGED)['damaged'], at
        os.rename(tmp_path / 'index', store / 'index-sha1.h5bridge')
    data.write_bytes(whole)
    # nothing names the blocks
    (tmp_path / 'a.vt').unlink()
    (store / 'index-sha1.h5bridge').unlink()
    unknown = document('verify', '--bytes', store)
    assert unknown['intact'] is None and unknown['warnings']
    said = h5bridge('verify', '--bytes', store).stderr
    assert 'nothing says what the bytes should be' in said and 'no damage' not in said


def test_bytes_without_checksums_are_not_called_sound(tmp_path):
    make(tmp_path / 'm.ms')
    found = document('verify', '--bytes', tmp_path / 'm.ms')
    assert found['intact'] is None and found['checked']['files'] == 0 and found['warnings']
    assert 'no damage' not in h5bridge('verify', '--bytes', tmp_path / 'm.ms').stderr


@pytest.mark.parametrize('removed', ['MAIN/K', 'SUB', 'SUB/NAME', 'MAIN'])
def test_removed_parts_of_a_file_are_differences(tmp_path, removed):
    make(tmp_path / 'm.ms')
    h5bridge('to-hdf5', tmp_path / 'm.ms', tmp_path / 'm.h5')
    with h5py.File(tmp_path / 'm.h5', 'r+') as file:
        del file[removed]
    found = document('verify', tmp_path / 'm.h5', code=support.DIFFERENT)
    assert found['differences']


def test_pointers_of_git_lfs_are_recognised(tmp_path):
    make(tmp_path / 'm.ms')
    files = [path for path in sorted((tmp_path / 'm.ms').iterdir()) if path.is_file() and path.name != 'table.lock']
    assert len(files) > 3
    for path in [*files, tmp_path / 'm.ms' / 'SUB' / 'table.dat']:
        copy = tmp_path / 'copy.ms'
        shutil.copytree(tmp_path / 'm.ms', copy)
        (copy / path.relative_to(tmp_path / 'm.ms')).write_bytes(POINTER)
        said = h5bridge('to-hdf5', copy, tmp_path / 'x.h5', code=support.DAMAGED).stderr
        assert 'Git LFS pointer' in said and '`git lfs pull`' in said and path.name in said
        shutil.rmtree(copy)
    (tmp_path / 'x.ms').mkdir()
    (tmp_path / 'x.ms' / 'table.dat').write_bytes(POINTER)
    for words in (['info'], ['to-hdf5', '--salvage']):
        target = [tmp_path / 'x.h5'] if words[0] != 'info' else []
        said = h5bridge(*words, tmp_path / 'x.ms', *target, code=support.DAMAGED).stderr
        assert 'git lfs pull' in said and 'salvage' not in said and 'damage' not in said
    (tmp_path / 'y.h5').write_bytes(POINTER)
    assert 'git lfs pull' in h5bridge('info', tmp_path / 'y.h5', code=support.DAMAGED).stderr


def test_salvage_is_advised_only_where_it_helps(tmp_path):
    make(tmp_path / 'm.ms')
    advice = '--salvage leaves out'
    (tmp_path / 'empty.tab').mkdir()
    for name in ('table.dat', 'table.f0'):
        (tmp_path / 'empty.tab' / name).touch()
    with table(str(tmp_path / 'm.ms'), ack=False) as made:
        made.selectrows([1, 2]).copy(str(tmp_path / 'r.ms'), deep=False)
    shutil.copytree(tmp_path / 'm.ms', tmp_path / 'damaged.ms')
    file = tmp_path / 'damaged.ms' / 'table.f0'
    file.write_bytes(file.read_bytes()[:600])
    os.rename(tmp_path / 'm.ms', tmp_path / 'moved.ms')
    for source, needed in (('empty.tab', 'nothing of the source can be salvaged without a whole table.dat'),
                           ('r.ms', 'nothing of the source can be salvaged')):
        for target in ('x.h5', 'x.tab'):
            verb = 'to-hdf5' if target == 'x.h5' else 'to-ms'
            assert advice not in h5bridge(verb, tmp_path / source, tmp_path / target, code=support.DAMAGED).stderr
            said = h5bridge(verb, '--salvage', tmp_path / source, tmp_path / target, code=support.DAMAGED).stderr
            assert advice not in said and needed in said
    assert advice in h5bridge('to-hdf5', tmp_path / 'damaged.ms', tmp_path / 'x.h5', code=support.DAMAGED).stderr
    assert advice not in h5bridge('to-hdf5', '--salvage', tmp_path / 'damaged.ms', tmp_path / 'x.h5', code=support.WARNINGS).stderr


def rows_of(damage):
    rows = damage.get('rows')
    return [rows['start'], rows['end']] if isinstance(rows, dict) else rows


@pytest.mark.parametrize('manager', ['TiledColumnStMan', 'TiledShapeStMan', 'TiledCellStMan'])
def test_described_rows_of_a_tiled_column_are_salvaged(tmp_path, manager):
    cells = np.arange(30 * 12.0).reshape(30, 4, 3)
    desc = [makescacoldesc('K', 0),
            makearrcoldesc('D', 1.0, shape=[4, 3], datamanagertype=manager, datamanagergroup='T')]
    for rows in (20, 30):
        with table(str(tmp_path / ('%d.tab' % rows)), maketabdesc(desc), nrow=rows, ack=False) as made:
            made.putcol('D', cells[:rows])
            made.putcol('K', np.arange(rows, dtype=np.int32))
    header = next(name for name in ('table.f0', 'table.f1')
                  if manager.encode() in (tmp_path / '20.tab' / name).read_bytes()[:60])
    shutil.copy(tmp_path / '20.tab' / header, tmp_path / '30.tab' / header)
    h5bridge('to-hdf5', tmp_path / '30.tab', tmp_path / 'x.h5', code=support.DAMAGED)
    found = document('to-hdf5', '--salvage', tmp_path / '30.tab', tmp_path / 'a.h5', code=support.WARNINGS)
    assert [(one['column'], rows_of(one)) for one in found['damage']] == [('D', [20, 30])]
    document('to-ms', tmp_path / 'a.h5', tmp_path / 'back.tab', code=support.WARNINGS)
    with table(str(tmp_path / 'back.tab'), ack=False) as back:
        assert back.getcol('K').tolist() == list(range(30))
        assert np.array_equal(back.getcol('D', 0, 20), cells[:20])
    with h5py.File(tmp_path / 'a.h5') as file:
        assert file['MAIN/D__defined'][:].tolist() == [True] * 20 + [False] * 10


def test_tiles_in_a_file_that_is_cut_off_are_salvaged(tmp_path):
    cells = np.arange(300 * 64.0).reshape(300, 64)
    desc = [makescacoldesc('K', 0),
            makearrcoldesc('D', 1.0, shape=[64], datamanagertype='TiledColumnStMan', datamanagergroup='T')]
    managers = {'*1': {'TYPE': 'TiledColumnStMan', 'NAME': 'T', 'COLUMNS': ['D'], 'SPEC': {'DEFAULTTILESHAPE': [64, 16]}}}
    with table(str(tmp_path / 't.tab'), maketabdesc(desc), dminfo=managers, nrow=300, ack=False) as made:
        made.putcol('D', cells)
    tiles = next((tmp_path / 't.tab').glob('*_TSM0'))
    tiles.write_bytes(tiles.read_bytes()[:5 * 16 * 64 * 8 + 100])
    found = document('to-hdf5', '--salvage', tmp_path / 't.tab', tmp_path / 'a.h5', code=support.WARNINGS)
    assert [(one['column'], rows_of(one)) for one in found['damage']] == [('D', [80, 300])]
    document('to-ms', tmp_path / 'a.h5', tmp_path / 'back.tab', code=support.WARNINGS)
    with table(str(tmp_path / 'back.tab'), ack=False) as back:
        assert np.array_equal(back.getcol('D', 0, 80), cells[:80])
    with h5py.File(tmp_path / 'a.h5') as file:
        assert file['MAIN/D__defined'][:].tolist() == [True] * 80 + [False] * 220


def with_ephemeris(folder):
    """A copy of the demo with a table in the directory of FIELD that no keyword names, as CASA keeps ephemerides."""
    whole = folder / 'e.ms'
    shutil.copytree(os.path.join(support.TESTDATA, 'demo', 'demo.ms'), whole)
    path = whole / 'FIELD' / 'EPHEM0_Mars_57034.9.tab'
    with table(str(path), maketabdesc([makescacoldesc('MJD', 1.0), makescacoldesc('RA', 1.0)]), nrow=5, ack=False) as made:
        made.putcol('MJD', np.arange(5) + 57034.0)
        made.putcol('RA', np.arange(5) * 0.25)
        made.putkeyword('NAME', 'Mars')
    return whole


def check_ephemeris(path, original):
    """The ephemeris is in the directory of FIELD, whose keywords are as they were."""
    with table(str(path / 'FIELD' / 'EPHEM0_Mars_57034.9.tab'), ack=False) as made:
        assert made.getcol('MJD').tolist() == [57034.0 + row for row in range(5)] and made.getkeyword('NAME') == 'Mars'
    with table(str(path / 'FIELD'), ack=False) as field, table(str(original / 'FIELD'), ack=False) as before:
        assert field.getkeywords() == before.getkeywords()


@pytest.mark.parametrize('home', ['directory', 'container', 'selected', 'live'])
def test_tables_that_no_keyword_names_travel(home, tmp_path):
    whole = with_ephemeris(tmp_path)
    native, back, source = tmp_path / 'e.h5', tmp_path / 'back.ms', whole
    if home == 'container':
        source = tmp_path / 'e.mf'
        h5bridge('pack', whole, source)
    if home == 'live':
        h5bridge('follow', whole, native, '--until-closed')
    else:
        h5bridge('to-hdf5', source, native, *(['--where', 'ANTENNA1 < 2'] if home == 'selected' else []))
    with h5py.File(native) as file:
        assert file['FIELD/EPHEM0_Mars_57034.9.tab/RA'][()].tolist() == [0, 0.25, 0.5, 0.75, 1]
    h5bridge('to-ms', native, back)
    check_ephemeris(back, whole)
    if home in ('directory', 'container'):
        h5bridge('verify', whole, back)
        h5bridge('verify', source, native)
    copy = tmp_path / 'copy.ms'
    h5bridge('to-ms', source, copy)
    check_ephemeris(copy, whole)


def test_a_missing_unnamed_table_is_a_difference(tmp_path):
    whole, native = with_ephemeris(tmp_path), tmp_path / 'e.h5'
    h5bridge('to-hdf5', whole, native)
    shutil.rmtree(whole / 'FIELD' / 'EPHEM0_Mars_57034.9.tab')
    assert 'EPHEM0_Mars' in h5bridge('verify', whole, native, code=support.DIFFERENT).stdout


def test_files_of_no_table_are_named(tmp_path):
    """Files beside those of a table, and a directory that looks like a table and is none."""
    whole = with_ephemeris(tmp_path)
    (whole / 'notes.txt').write_text('observed in rain')
    (whole / 'FIELD' / 'plots').mkdir()
    (whole / 'FIELD' / 'plots' / 'field.png').write_bytes(b'png')
    (whole / '.hidden').write_text('no')
    damaged = whole / 'OLD'
    damaged.mkdir()
    (damaged / 'table.dat').write_bytes(b'no table')
    for verb, target in ('to-hdf5', 'e.h5'), ('to-ms', 'copy.ms'):
        said = ' '.join(document(verb, whole, tmp_path / target)['warnings'])
        assert 'files that belong to no table are left out: 2: notes.txt, FIELD/plots' in said
        assert 'table OLD, which no keyword names, is left out' in said and '.hidden' not in said
    h5bridge('to-hdf5', '--strict', whole, tmp_path / 'strict.h5', code=support.WARNINGS)
    # the bytes of all of it
    kept = document('to-hdf5', '--restorable', whole, tmp_path / 'kept.h5')['warnings']
    assert 'notes.txt' not in ' '.join(kept)
    h5bridge('to-ms', '--exact', tmp_path / 'kept.h5', tmp_path / 'exact.ms')
    assert support.tree(tmp_path / 'exact.ms') == support.tree(whole)


# ---- every verb -----------------------------------------------------------------------------------------------------

# What each verb is given that it cannot take whole, and what its warnings name. {t}: a table whose columns V, B, S and W have
# expressions that are not evaluated; {e}: a native file with a dataset that is no column; {r}: rows of a table that lies elsewhere; {m}: that, packed;
# {s}: a converted table of which a subtable is missing
WALK = {
    'to-hdf5': (['{t}', 'x.h5'], 'column V'),
    'to-ms': (['{e}', 'x.ms'], 'freqs'),
    'verify': (['{t}', '{v}'], 'column V'),
    'manifest': (['{t}', 'x.json'], 'MAIN/V'),
    'refs': (['{e}'], 'freqs'),
    'follow': (['{t}', 'x.live.h5', '--idle', '1s'], 'column V'),
    'finalize': (['{live}', 'x.archive.h5', '--source', '{t}'], 'column V'),
    'shard plan': (['{t}', 'x.shards.h5'], 'column V'),
    'join': (['--virtual', 'part.h5', 'x.joined.h5'], 'freqs'),
    'batch run': (['list.ndjson', '--ledger', 'x.ledger'], 'done with warnings'),
    'pack': (['{r}', 'x.mf', '--single-file'], 'is not packed'),
    'unpack': (['{m}', 'x.dir'], 'm.ms'),
    'link': (['{tiled}', 'x.thin'], 'freqs'),
}
# These make nothing of what they read (lint and ls list it, repair counts the rows it removes) or copy whole tables.
OTHERS = {'info', 'digest', 'lint', 'ls', 'plot', 'serve', 'watch', 'repair', 'materialize', 'vt', 'completions', 'help'}


@pytest.fixture(scope='module')
def incomplete(tmp_path_factory):
    """The sources of WALK."""
    folder = tmp_path_factory.mktemp('walk')
    virtual = support.unread_expressions(folder / 'virtual.tab')
    tiled = [makescacoldesc('K', 0), makearrcoldesc('D', 1.0, shape=[16, 16], datamanagertype='TiledColumnStMan', datamanagergroup='T')]
    with table(str(folder / 'tiled.ms'), maketabdesc(tiled), nrow=200, ack=False) as made:
        made.putcol('D', np.arange(200 * 256.0).reshape(200, 16, 16))
    for name, source, words in (('v.h5', virtual, []), ('e.h5', os.path.join(support.TESTDATA, 'demo', 'demo.ms'), []),
                                ('tiled.h5', folder / 'tiled.ms', ['--compress', 'shared'])):
        h5bridge('to-hdf5', source, folder / name, *words)
    for name in ('e.h5', 'tiled.h5'):
        with h5py.File(folder / name, 'r+') as file:
            file['MAIN/freqs'] = np.arange(8.)
    make(folder / 'm.ms')
    with table(str(folder / 'm.ms'), ack=False) as whole:
        whole.selectrows([1, 2]).copy(str(folder / 'r.ms'), deep=False)
    h5bridge('pack', folder / 'r.ms', folder / 'r.mf', '--single-file')
    h5bridge('follow', virtual, folder / 'live.h5', '--idle', '1s')
    names = {'t': virtual, 'v': 'v.h5', 'e': 'e.h5', 'r': 'r.ms', 'm': 'r.mf', 'live': 'live.h5', 'tiled': 'tiled.h5'}
    return {name: str(folder / path) for name, path in names.items()}


def test_each_verb_is_walked():
    lines = h5bridge('--help').stdout.split('Commands:')[1].split('Options:')[0].splitlines()
    verbs = {line[11:].split()[0] for line in lines if line}
    assert verbs == {verb.split()[0] for verb in WALK} | OTHERS


@pytest.mark.parametrize('verb', WALK)
@pytest.mark.parametrize('form', ['text', 'json', 'strict'])
def test_no_verb_leaves_out_without_a_warning(verb, form, incomplete, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(incomplete['e'], 'part.h5')    # parts of a joined file lie beside it
    h5bridge('batch', 'plan', incomplete['t'], '--to', 'batch/{stem}.h5', '--out', 'list.ndjson')
    words, named = WALK[verb]
    words = [word.format_map(incomplete) for word in words]
    options = {'text': [], 'json': ['--json'], 'strict': ['--strict']}[form]
    done = h5bridge(*options, *verb.split(), *words, code=support.WARNINGS if form == 'strict' else support.DONE)
    if form == 'json':
        printed = json.loads(done.stdout)
        warnings = (printed['h5bridge'] if verb == 'refs' else printed)['warnings']    # references have readers of their own
        assert any(named in warning for warning in warnings), warnings
    else:
        assert any('warning' in line and named in line for line in done.stderr.splitlines()), done.stderr
