"""Manners of the command line: exit codes, targets left alone, selections, JSON, quiet pipes, interruptions."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest
import casacore.tables as ct

import compare
import layout
import support
from support import h5bridge, on_terminal

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')


@pytest.fixture
def out(tmp_path):
    return tmp_path / 'out.h5'


def only(folder, *names):
    """True when nothing but these lies in the folder: no target, no partial."""
    return sorted(os.listdir(folder)) == sorted(names)


@pytest.mark.skipif(os.environ.get('H5BRIDGE_PROFILE') != 'release', reason='the size of the program as users get it: H5BRIDGE_PROFILE=release')
def test_size_of_the_program():
    assert os.path.getsize(support.H5BRIDGE) <= 30_000_000


# ---- targets and exit codes -----------------------------------------------------------------------------------------

def test_existing_target_is_left_alone(out):
    out.write_text('mine')
    process = h5bridge('to-hdf5', DEMO, out, code=support.EXISTS)
    assert out.read_text() == 'mine' and only(out.parent, 'out.h5')
    assert '--overwrite' in process.stderr and 'out.h5' in process.stderr


def test_overwrite(out):
    out.write_text('mine')
    h5bridge('to-hdf5', '--overwrite', DEMO, out)
    assert h5py.is_hdf5(out) and only(out.parent, 'out.h5')


def test_overwrite_keeps_the_old_file_when_it_fails(out, tmp_path):
    bad = tmp_path / 'bad.ms'
    shutil.copytree(DEMO, bad)
    (bad / 'table.f0_TSM1').write_bytes(b'short')
    out.write_text('mine')
    h5bridge('to-hdf5', '--overwrite', bad, out, code=support.DAMAGED)
    assert out.read_text() == 'mine' and only(out.parent, 'bad.ms', 'out.h5')


def test_same_input_same_bytes(tmp_path):
    for name, threads in (('a.h5', 1), ('b.h5', 2)):
        h5bridge('to-hdf5', '--threads', threads, DEMO, tmp_path / name)
    one, two = (hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ('a.h5', 'b.h5'))
    assert one == two


def test_mode_of_the_target_follows_the_umask(out):
    h5bridge('to-hdf5', DEMO, out)
    umask = os.umask(0)
    os.umask(umask)
    assert os.stat(out).st_mode & 0o777 == 0o666 & ~umask


def no_table(folder):
    (folder / 'dir').mkdir()
    return folder / 'dir'


def text_file(folder):
    (folder / 'text').write_text('no table\n' * 100)
    return folder / 'text'


def empty_file(folder):
    (folder / 'empty').write_bytes(b'')
    return folder / 'empty'


def empty_table_dat(folder):
    (folder / 'zero.tab').mkdir()
    (folder / 'zero.tab' / 'table.dat').write_bytes(b'')
    return folder / 'zero.tab'


def foreign_hdf5(folder):
    with h5py.File(folder / 'foreign.h5', 'w') as file:
        file['x'] = 1
    return folder / 'foreign.h5'


def missing(folder):
    return folder / 'nowhere.ms'


@pytest.mark.parametrize('make', [no_table, text_file, empty_file, empty_table_dat, foreign_hdf5, missing],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize('verb', ['to-hdf5', 'info', 'digest', 'verify'])
def test_not_a_table(make, verb, tmp_path, out):
    source = make(tmp_path)
    words = {'to-hdf5': [source, out], 'verify': [source, DEMO]}.get(verb, [source])
    process = h5bridge(verb, *words, code=None)
    # a good HDF5 file of somebody else is not damaged
    codes = {support.DAMAGED, support.UNSUPPORTED} if make is foreign_hdf5 else {support.DAMAGED}
    assert process.returncode in codes, process.stderr
    assert os.path.basename(source) in process.stderr and 'panicked' not in process.stderr
    assert not out.exists() and not process.stdout


@pytest.mark.parametrize('words', [
    [], ['to-hdf5'], ['to-ms', DEMO], ['frobnicate'], ['info', '--frobnicate', DEMO],
    ['to-hdf5', '--compress', 'lzma', DEMO, 'OUT'], ['to-hdf5', '--compress', 'gzip:99', DEMO, 'OUT'],
    ['to-hdf5', '--rows', 'x..y', DEMO, 'OUT'], ['to-hdf5', '--rows', '9..3', DEMO, 'OUT'],
    ['to-hdf5', '--threads', '-1', DEMO, 'OUT'], ['to-hdf5', '--max-memory', 'lots', DEMO, 'OUT'],
    ['to-hdf5', '--columns', 'NO_SUCH', DEMO, 'OUT'], ['to-hdf5', '--exclude', 'NO_SUCH', DEMO, 'OUT'],
    ['to-hdf5', '--tables', 'NO_SUCH', DEMO, 'OUT'], ['to-hdf5', '--rows', '0..1000000', DEMO, 'OUT'],
], ids=lambda words: ' '.join(w for w in words if w != DEMO) or 'nothing')
def test_usage(words, out):
    process = h5bridge(*[out if w == 'OUT' else w for w in words], code=support.USAGE)
    assert process.stderr and only(out.parent)


def test_typo_gets_a_suggestion():
    assert 'to-hdf5' in h5bridge('to-hdf', DEMO, code=support.USAGE).stderr


def test_unwritable_folder(tmp_path):
    process = h5bridge('to-hdf5', DEMO, tmp_path / 'no' / 'out.h5', code=None)
    # it is not the source that is at fault
    assert process.returncode in (support.FAILED, support.USAGE), process.stderr
    assert str(tmp_path / 'no') in process.stderr and only(tmp_path)


def test_target_is_the_source(tmp_path):
    """A target inside the table, or the table itself, must never be replaced."""
    table = tmp_path / 'demo.ms'
    shutil.copytree(DEMO, table)
    before = tree(table)
    process = h5bridge('to-hdf5', '--overwrite', table, table, code=None)
    assert process.returncode != 0 and tree(table) == before


@pytest.mark.parametrize('words', [
    ['info', 'MISSING'], ['digest', 'MISSING'], ['ls', 'MISSING'], ['repair', 'MISSING'], ['watch', 'MISSING'],
    ['verify', 'MISSING'], ['verify', '--bytes', 'MISSING'], ['verify', DEMO, 'MISSING'], ['to-hdf5', 'MISSING', 'OUT'],
    ['to-ms', 'MISSING', 'OUT'], ['to-ms', '--exact', 'MISSING', 'OUT'], ['pack', 'MISSING', 'OUT'],
    ['unpack', 'MISSING', 'OUT'], ['finalize', 'MISSING', 'OUT'], ['follow', 'MISSING', 'OUT'],
    ['manifest', 'MISSING', 'OUT'], ['link', 'MISSING', 'OUT'], ['join', '--virtual', 'MISSING', 'OUT'],
    ['to-hdf5', '--replace', 'MISSING', 'OUT'], ['materialize', 'MISSING'],
    ['vt', 'serve', 'MISSING'],
], ids=lambda words: ' '.join(w for w in words if w != DEMO))
def test_missing_path(words, tmp_path):
    """The system's words are printed once, and a missing path is not called a table without table.dat."""
    source = tmp_path / 'nowhere.ms'
    words = [{'MISSING': source, 'OUT': tmp_path / 'out'}.get(word, word) for word in words]
    process = h5bridge(*words, code=support.DAMAGED)
    assert process.stderr.count('No such file') == 1, process.stderr
    assert 'nowhere.ms' in process.stderr and 'table.dat' not in process.stderr, process.stderr
    assert len(process.stderr.splitlines()) == 1 and only(tmp_path), process.stderr
    document = json.loads(h5bridge('--json', *words, code=support.DAMAGED).stdout)
    assert document['error'].count('No such file') == 1


@pytest.mark.parametrize('words', [['watch', 'nowhere.h5'], ['watch', DEMO], ['serve', 'nowhere.h5'], ['serve', DEMO, '--no-token', '--host', '0.0.0.0']],
                         ids=lambda words: ' '.join(word for word in words if word != DEMO))
def test_failures_of_verbs_that_write_lines_are_a_line(words):
    lines = h5bridge('--json', *words, code=None).stdout.splitlines()
    assert len(lines) == 1 and json.loads(lines[0])['error']


@pytest.mark.parametrize('verb', ['info', 'digest', 'verify'])
def test_missing_tables_of_a_source(verb, tmp_path):
    """A misspelt table is named with a similar one, in a native file as in a directory."""
    h5bridge('to-hdf5', DEMO, tmp_path / 'my.h5')
    for source in (DEMO, str(tmp_path / 'my.h5')):
        for name, words in (('ANTENA', '; did you mean ANTENNA?'), ('XYZ', '; it has ')):
            message = h5bridge(verb, '%s/%s' % (source, name), code=support.DAMAGED).stderr
            assert words in message and source in message, message
    # a directory that is not a table's has none
    message = h5bridge(verb, tmp_path / 'my.ms', code=support.DAMAGED).stderr
    assert 'did you mean' not in message and 'it has' not in message


def test_tables_of_a_native_file_by_their_paths(tmp_path):
    """`info` shows one; the other verbs read the file as a whole, and say so."""
    path = tmp_path / 'my.h5'
    h5bridge('to-hdf5', DEMO, path)
    for words in ([], ['--columns'], ['--keywords']):
        assert h5bridge('info', path / 'ANTENNA', *words).stdout == h5bridge('info', path, '--table', 'ANTENNA', *words).stdout
    assert h5bridge('info', path / 'MAIN').stdout == h5bridge('info', path, '--table', 'MAIN').stdout
    for verb in ('digest', 'verify'):
        assert '--table ANTENNA` shows it' in h5bridge(verb, path / 'ANTENNA', code=support.UNSUPPORTED).stderr


def test_directory_without_table_dat(tmp_path):
    def refused(words):
        message = h5bridge('info', tmp_path, code=support.DAMAGED).stderr
        assert 'not a table: ' + words in message and message.count('table.dat') == 1
    refused('the directory is empty, a file table.dat is expected: name the directory that has one')
    shutil.copytree(DEMO, tmp_path / 'my.ms')
    refused('the directory has no table.dat; it has the tables my.ms: name one of them')
    shutil.copy(os.path.join(DEMO, 'table.info'), tmp_path)
    refused('the directory has table.info but no table.dat, which describes a table: name a complete copy')


def tree(folder):
    return {os.path.join(d, f): hashlib.sha256(open(os.path.join(d, f), 'rb').read()).hexdigest()
            for d, _, files in os.walk(folder) for f in files}


def test_source_is_not_touched(tmp_path, out):
    table = tmp_path / 'demo.ms'
    shutil.copytree(DEMO, table)
    before = tree(table)
    for words in (['to-hdf5', table, out], ['info', table], ['digest', table], ['verify', table, out]):
        h5bridge(*words)
    assert tree(table) == before


def test_dry_run(out):
    process = h5bridge('to-hdf5', '--dry-run', DEMO, out)
    assert only(out.parent)
    for word in ('DATA', 'TiledShapeStMan', 'ANTENNA'):
        assert word in process.stdout + process.stderr
    document = json.loads(h5bridge('to-hdf5', '--dry-run', '--json', DEMO, out).stdout)
    assert document and only(out.parent)


def without_antenna(folder):
    """A MeasurementSet of which one subtable is missing, which is a warning."""
    shutil.copytree(DEMO, folder / 'demo.ms')
    shutil.rmtree(folder / 'demo.ms' / 'ANTENNA')
    return folder / 'demo.ms'


def test_dry_run_warns_as_a_run_does(tmp_path, out):
    """Warnings go to stderr, are not hidden by --quiet, and count under --strict."""
    source = without_antenna(tmp_path)
    run = h5bridge('to-hdf5', '--quiet', source, out)
    for words in [], ['--quiet']:
        dry = h5bridge('to-hdf5', '--dry-run', *words, source, out)
        assert dry.stderr == run.stderr and 'ANTENNA' in dry.stderr
        assert 'the file: ' in dry.stdout and 'warning' not in dry.stdout and '/ANTENNA ' not in dry.stdout
    document = json.loads(h5bridge('to-hdf5', '--dry-run', '--json', '--strict', source, out, code=support.WARNINGS).stdout)
    assert (document['status'], document['code'], len(document['warnings'])) == ('warnings', support.WARNINGS, 1)


def test_follow_warns_as_other_verbs_do(tmp_path):
    """--quiet hides the summary and no warning; warnings begin as everybody's do, and count under --strict."""
    # a table of its own: others are not waited for
    source = shutil.copytree(DEMO, tmp_path / 'source.ms')
    words = ['follow', source, '--until-closed', '--overwrite', tmp_path / 'live.h5']
    loud = h5bridge(*words).stderr.splitlines()
    warnings = [line for line in loud if 'FLAG_CATEGORY' in line or 'SCHEDULE' in line]
    assert len(warnings) == 2 and all(line.startswith('h5bridge: warning: ') for line in warnings), loud
    quiet = h5bridge(*words, '--quiet').stderr.splitlines()
    assert set(warnings) <= set(quiet) < set(loud) and len(quiet) == len(loud) - 3, quiet
    document = json.loads(h5bridge(*words, '--json', '--strict', code=support.WARNINGS).stdout)
    assert (document['status'], document['code']) == ('warnings', support.WARNINGS)
    assert ['h5bridge: warning: ' + warning for warning in document['warnings']] == quiet


# ---- help -----------------------------------------------------------------------------------------------------------

def help_of(verb):
    return ' '.join(h5bridge(verb, '--help').stdout.split())


def test_help_of_pack_tells_the_limits_of_blocks(tmp_path):
    """The smallest block and the default that the help names are those of the program."""
    found = re.search(r'at least (\d+); (\d+)M by default', help_of('pack'))
    smallest, default = int(found[1]), int(found[2]) << 20
    h5bridge('pack', '--block-size', smallest, DEMO, tmp_path / 'smallest.ms')
    refused = h5bridge('pack', '--block-size', smallest - 1, DEMO, tmp_path / 'refused.ms', code=support.USAGE)
    assert str(smallest) in refused.stderr
    big = tmp_path / 'big.tab'
    table = ct.table(str(big), ct.maketabdesc([ct.makearrcoldesc('A', 0., ndim=1, shape=[1 << 20])]), nrow=3, ack=False)
    table.putcol('A', np.zeros((3, 1 << 20)))
    table.close()
    h5bridge('pack', big, tmp_path / 'packed.tab')
    assert json.loads(h5bridge('ls', '--json', tmp_path / 'packed.tab' / 'table.mf').stdout)['block_size'] == default


@pytest.mark.parametrize('verb', ['to-hdf5', 'to-ms', 'info', 'digest', 'verify'])
def test_help_names_every_kind_of_source(verb, tmp_path):
    """Directories, containers, paths into them, native and live files: named by the help, and taken."""
    for word in ('table directory', 'container', 'archive.h5/ANTENNA', 'native', 'live'):
        assert word in help_of(verb), word
    table = shutil.copytree(DEMO, tmp_path / 'source.ms')
    h5bridge('pack', '--single-file', table, tmp_path / 'archive.h5')
    h5bridge('to-hdf5', table, tmp_path / 'native.h5')
    h5bridge('follow', table, tmp_path / 'live.h5', '--until-closed')
    for number, source in enumerate((table, tmp_path / 'archive.h5', tmp_path / 'archive.h5' / 'ANTENNA',
                                     tmp_path / 'native.h5', tmp_path / 'live.h5')):
        words = {'to-hdf5': [source, tmp_path / ('%d.h5' % number)], 'to-ms': [source, tmp_path / ('%d.ms' % number)],
                 'verify': [source, source]}.get(verb, [source])
        h5bridge(verb, *words)


@pytest.mark.parametrize('where', ['itself', 'parent'])
def test_subtables_in_a_circle(where, tmp_path):
    """A keyword that leads back ends in an error or once around, never in an endless descent."""
    top, inner, target = str(tmp_path / 'top.tab'), str(tmp_path / 'top.tab' / 'INNER'), tmp_path / 'x.h5'
    other = str(tmp_path / 'pot.tab')
    description = ct.maketabdesc([ct.makescacoldesc('I', 0)])
    ct.table(other, description, ack=False).close()
    table = ct.table(top, description, nrow=2, ack=False)
    if where == 'parent':
        subtable = ct.table(inner, description, nrow=1, ack=False)
        subtable.putkeyword('UP', 'Table: ' + other)
        subtable.close()
        table.putkeyword('INNER', 'Table: ' + inner)
    else:
        table.putkeyword('SELF', 'Table: ' + other)
    table.close()
    # casacore itself never comes back from such a keyword, so it is made by hand
    turned = tmp_path / 'top.tab' / ('INNER/table.dat' if where == 'parent' else 'table.dat')
    assert b'pot.tab' in turned.read_bytes()
    turned.write_bytes(turned.read_bytes().replace(b'pot.tab', b'top.tab'))
    shutil.rmtree(other)
    for words in (['to-hdf5', top, target], ['digest', top], ['info', top]):
        process = h5bridge(*words, code=None, timeout=30)
        assert process.returncode in (support.DONE, support.DAMAGED, support.UNSUPPORTED), process.stderr
        assert process.returncode == support.DONE or process.stderr
    assert only(tmp_path, *({'top.tab', 'x.h5'} & set(os.listdir(tmp_path))))


def test_subtable_that_is_not_there(tmp_path):
    """A keyword may name a table that is gone: said, and the rest is converted or refused; never a crash."""
    top, target = str(tmp_path / 'top.tab'), tmp_path / 'x.h5'
    table = ct.table(top, ct.maketabdesc([ct.makescacoldesc('I', 0)]), nrow=2, ack=False)
    gone = str(tmp_path / 'gone.tab')
    ct.table(gone, ct.maketabdesc([ct.makescacoldesc('I', 0)]), nrow=2, ack=False).close()
    table.putkeyword('GONE', 'Table: ' + gone)
    table.close()
    shutil.rmtree(gone)
    process = h5bridge('to-hdf5', top, target, code=None)
    assert process.returncode in (support.DONE, support.DAMAGED)
    assert 'gone' in (process.stdout + process.stderr).lower()
    assert target.exists() == (process.returncode == support.DONE)


# ---- selections -----------------------------------------------------------------------------------------------------

def differences(file, **selection):
    with h5py.File(file) as opened:
        return compare.compare(DEMO, opened, **selection)


def test_columns(out):
    h5bridge('to-hdf5', '--columns', 'DATA,TIME,ANTENNA1', DEMO, out)
    assert not differences(out, columns={'DATA', 'TIME', 'ANTENNA1'})


def test_exclude(out):
    h5bridge('to-hdf5', '--exclude', 'DATA,FLAG', DEMO, out)
    columns = set(ct.table(DEMO, ack=False).colnames()) - {'DATA', 'FLAG'}
    assert not differences(out, columns=columns)


@pytest.mark.parametrize('options', [[], ['--appendable'], ['--compress', 'none'], ['--threads', '2']], ids=' '.join)
@pytest.mark.parametrize('rows', [(0, 10), (33, 97), (100, 210), (50, 51), (17, 17)])
def test_rows(rows, options, out):
    h5bridge('to-hdf5', '--rows', '%d..%d' % rows, *options, DEMO, out)
    assert not differences(out, rows=range(*rows))
    support.digest(out)


def test_rows_in_several_hypercubes(out):
    table = os.path.join(support.TESTDATA, 'twospw', 'twospw.ms')
    h5bridge('to-hdf5', '--rows', '15..61', table, out)
    with h5py.File(out) as opened:
        assert not compare.compare(table, opened, rows=range(15, 61))


def test_tables(out):
    h5bridge('to-hdf5', '--tables', 'MAIN,ANTENNA', DEMO, out)
    with h5py.File(out) as file:
        assert set(file) == {'MAIN', 'ANTENNA', '_ctds'}
        assert set(layout.tables(file)) == {'.', 'ANTENNA'}
    found = differences(out)
    assert found and all('has no subtable' in line or 'Table:' in line for line in found), found


def test_digest_columns():
    tables = json.loads(h5bridge('digest', '--json', '--hash', 'sha256', '--columns', 'DATA,FLAG', DEMO).stdout)['tables']
    expected = support.expected('demo')['tables']['demo.ms']['columns']
    assert {n: c['sha256'] for n, c in tables['.']['columns'].items()} == {n: expected[n]['sha256'] for n in ('DATA', 'FLAG')}


# ---- output ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('words', [['to-hdf5', DEMO, 'OUT'], ['to-hdf5', '--dry-run', DEMO, 'OUT'], ['info', DEMO],
                                   ['info', 'FILE'], ['digest', DEMO], ['digest', 'FILE'], ['verify', DEMO, 'FILE']],
                         ids=lambda words: ' '.join(w for w in words if w != DEMO))
def test_json(words, out, converted):
    words = [{'OUT': out, 'FILE': converted('demo', 'demo.ms')}.get(w, w) for w in words]
    process = h5bridge(words[0], '--json', *words[1:])
    document = json.loads(process.stdout)      # one document and nothing else
    assert isinstance(document, dict)
    if words[0] == 'to-hdf5':
        assert document['code'] == 0 and isinstance(document['warnings'], list) and 'status' in document
    if words[0] == 'info':
        columns = {c['name']: c for c in main_columns(document)}
        data = columns['DATA']
        assert data['dtype'] == 'complex' and data['kind'] == 'array' and data['manager'] == 'TiledShapeStMan'
        assert data['manager_name'] == 'TiledDATA' and 'shape' in columns['FLAG_CATEGORY']
        if words[-1] != DEMO:
            assert data['shape'] == [210, 16, 4] and data['chunk'] and data['index'] and data['filters']
            assert data['stored_bytes'] > 0


def main_columns(document):
    tables = document['tables']
    main = tables['.'] if isinstance(tables, dict) else tables[0]
    columns = main['columns']
    return [dict(c, name=n) for n, c in columns.items()] if isinstance(columns, dict) else columns


def test_json_of_failures(out):
    """A failure is a document too, with the code of the process."""
    out.write_text('mine')
    for words, code in ((['to-hdf5', '--json', DEMO, out], support.EXISTS),
                        (['to-hdf5', '--json', '/dev/null', str(out) + '2'], support.DAMAGED)):
        document = json.loads(h5bridge(*words, code=code).stdout)
        assert document['code'] == code


@pytest.mark.parametrize('verb', ['to-hdf5', 'info', 'digest', 'verify'])
def test_quiet_without_a_terminal(verb, out, converted):
    words = {'to-hdf5': [DEMO, out], 'verify': [DEMO, converted('demo', 'demo.ms')]}.get(verb, [DEMO])
    process = h5bridge(verb, *words)
    for text in (process.stdout, process.stderr):
        assert '\x1b' not in text and '\r' not in text and '\b' not in text


def test_q_is_quiet(out):
    process = h5bridge('to-hdf5', '-q', DEMO, out)
    assert not process.stdout and not process.stderr


def test_summary_at_the_end(out):
    process = h5bridge('to-hdf5', DEMO, out)
    digest = support.digest(DEMO, hash='blake3')['.']['sha256']
    text = process.stdout + process.stderr
    assert digest[:8] in text and 'out.h5' in text and '210' in text


@pytest.mark.parametrize('source, made', [('my.ms', 'my.h5'), ('my.MS/', 'my.h5'), ('a/3C286.cal', 'a/3C286.cal.h5'),
                                          ('one.mf', 'one.h5'), ('2014-04-22', '2014-04-22.h5')])
def test_out_is_named_after_the_source(source, made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if source.endswith('.mf'):
        h5bridge('pack', '--single-file', DEMO, source)
    else:
        shutil.copytree(DEMO, source)
    assert 'verify %s %s' % (source, made) in h5bridge('to-hdf5', source).stderr
    h5bridge('verify', source, made)
    h5bridge('to-hdf5', source, code=support.EXISTS)


@pytest.mark.parametrize('source', ['.', '/', 'my.h5', 'my.ms/ANTENNA', 'one.mf/ANTENNA'])
def test_out_that_has_no_name_is_asked_for(source, tmp_path, monkeypatch):
    """Nothing is written into tables, over sources or beside what has no name."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DEMO, 'my.ms')
    h5bridge('to-hdf5', 'my.ms', 'my.h5')
    h5bridge('pack', '--single-file', 'my.ms', 'one.mf')
    before = sorted(str(path) for path in tmp_path.rglob('*'))
    assert 'name OUT' in h5bridge('to-hdf5', source, code=support.USAGE).stderr
    assert sorted(str(path) for path in tmp_path.rglob('*')) == before


def test_zarr_is_refused_with_a_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DEMO, 'my.ms')
    said = h5bridge('to-hdf5', 'my.ms', 'my.zarr', code=support.USAGE).stderr
    assert not pathlib.Path('my.zarr').exists()
    way = said.split('let xarray write Zarr: ')[1]
    xarray = pytest.importorskip('xarray')
    pytest.importorskip('zarr')
    eval(way, {'xarray': xarray})
    with xarray.open_datatree('my.zarr', engine='zarr') as tree:
        assert len(tree.children) and all('VISIBILITY' in part.data_vars for part in tree.children.values())


def test_colours_on_request():
    """Without a terminal only if asked for; never with `never`, on a terminal either."""
    coloured = re.compile(r'\x1b\[[0-9;]*m')
    assert not coloured.search(h5bridge('info', DEMO).stdout)
    assert coloured.search(h5bridge('info', DEMO, '--color', 'always').stdout)
    assert coloured.search(h5bridge('--color', 'always', 'help', 'info').stdout)
    assert coloured.search(on_terminal('info', DEMO, messages=False))
    assert not coloured.search(on_terminal('info', DEMO, '--color', 'never', messages=False))


def test_verbose_names_the_chunks(out):
    said = h5bridge('to-hdf5', '-v', DEMO, out).stderr
    assert re.search(r'DATA +complex +TiledShapeStMan +\[210, 16, 4\] in chunks \[', said), said
    assert 'in chunks' not in h5bridge('to-hdf5', '--overwrite', DEMO, out).stderr


def test_version_says_what_is_in_the_build():
    assert re.fullmatch(r'h5bridge \d+\.\d+\.\d+\n', h5bridge('-V').stdout)
    long = h5bridge('--version').stdout.splitlines()
    assert long[0].startswith(h5bridge('-V').stdout.strip()) and long[1] == 'features: serve, remote'
    assert re.fullmatch(r'HDF5 library: \d+\.\d+\.\d+', long[2]), long


def test_no_color_on_a_terminal(out):
    """With a terminal there may be an animation; with NO_COLOR no colours in it."""
    text = on_terminal('to-hdf5', DEMO, out, messages=True, NO_COLOR='1')
    assert 'next: h5bridge verify' in text and not re.search(r'\x1b\[(3|4|9|10)[0-9]', text)


def test_help_begins_with_examples():
    for verb in ('to-hdf5', 'info', 'digest', 'verify'):
        text = h5bridge(verb, '--help').stdout
        assert 'h5bridge ' + verb in text
    assert re.match(r'h5bridge \d+\.\d+\.\d+', h5bridge('--version').stdout)


def test_closed_pipe_does_not_panic():
    process = subprocess.Popen([support.H5BRIDGE, 'info', DEMO], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert b'panicked' not in process.stderr.read()
    process.wait()


# ---- interruptions --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
@pytest.mark.parametrize('existing', [False, True])
def test_interrupted(number, existing, big_ms, out):
    """Nothing half-made stays, neither under the target's name nor beside it."""
    if existing:
        out.write_text('mine')
    # gzip takes long enough to be interrupted in the middle
    words = [support.H5BRIDGE, 'to-hdf5', '--compress', 'gzip', '--overwrite', big_ms, str(out)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    beside = set()
    until = time.time() + 20
    while time.time() < until and process.poll() is None:
        beside = set(os.listdir(out.parent)) - {'out.h5'}
        inside = [out.parent / name / 'out.h5' for name in beside]
        if any(path.exists() and path.stat().st_size > 1 << 20 for path in inside):
            break
        time.sleep(0.005)
    assert process.poll() is None and beside, 'ended too early to be interrupted: %s' % process.communicate()[1]
    assert beside == set(support.partials(out)) and len(beside) == 1
    process.send_signal(number)
    start = time.time()
    _, errors = process.communicate(timeout=30)
    assert process.returncode == support.INTERRUPTED, errors
    assert time.time() - start < 5, 'took long to stop'
    assert only(out.parent, *(['out.h5'] if existing else [])), os.listdir(out.parent)
    if existing:
        assert out.read_text() == 'mine'


def test_killed_leaves_no_target(big_ms, out):
    """kill -9 may leave one partial, never a target; the next run removes it."""
    process = subprocess.Popen([support.H5BRIDGE, 'to-hdf5', '--compress', 'gzip', big_ms, str(out)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(out.parent.iterdir()):
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert not out.exists()
    assert os.listdir(out.parent) == support.partials(out) and len(support.partials(out)) == 1
    h5bridge('to-hdf5', '--compress', 'none', big_ms, out)
    assert h5py.is_hdf5(out)
    assert os.listdir(out.parent) == ['out.h5']


def test_two_runs_with_one_target(big_ms, out):
    """The second one does not disturb the first, and one of them wins."""
    words = [support.H5BRIDGE, 'to-hdf5', '-q', '--compress', 'none', big_ms, str(out)]
    runs = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ends = [(run.communicate()[1], run.returncode) for run in runs]
    assert sorted(code for _, code in ends) == [support.DONE, support.EXISTS, support.EXISTS], ends
    assert all('exists' in errors for errors, code in ends if code)
    assert os.listdir(out.parent) == ['out.h5']
    h5bridge('verify', big_ms, out)


def test_targets_that_are_symbolic_links(tmp_path):
    """With --overwrite they are written through: the link stays, what it leads to is replaced."""
    (tmp_path / 'real').mkdir()
    real, link = tmp_path / 'real' / 'x.h5', tmp_path / 'link.h5'
    link.symlink_to(real)
    for options in ([], ['--overwrite']):
        h5bridge('to-hdf5', DEMO, link, *options, code=support.EXISTS)
    real.write_text('mine')
    h5bridge('to-hdf5', DEMO, link, code=support.EXISTS)
    assert real.read_text() == 'mine'
    h5bridge('to-hdf5', DEMO, link, '--overwrite')
    assert link.is_symlink() and h5py.is_hdf5(real)
    table = tmp_path / 'table'
    table.symlink_to(tmp_path / 'real' / 'x.ms')
    h5bridge('to-ms', real, tmp_path / 'real' / 'x.ms')
    h5bridge('to-ms', real, table, code=support.EXISTS)
    h5bridge('to-ms', real, table, '--overwrite')
    assert table.is_symlink() and sorted(os.listdir(tmp_path / 'real')) == ['x.h5', 'x.ms']
    assert sorted(os.listdir(tmp_path)) == ['link.h5', 'real', 'table']


def test_memory_stays_bounded(big_ms, out):
    """The cap is kept: about 100 MB of data in much less memory."""
    for options in (['--compress', 'none'], ['--max-memory', '64M'], ['--appendable']):
        code = ('import os, resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); '
                'print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)')
        words = ['python', '-c', code, support.H5BRIDGE, 'to-hdf5', '-q', '--overwrite', *options, big_ms, str(out)]
        process = subprocess.run(words, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        peak = int(process.stdout.split()[-1]) / 1024
        assert peak < (110 if '64M' in options else 300), '%s: %.0f MB' % (options, peak)


def test_no_space(tmp_path):
    """A full disk ends in exit code 8 and leaves nothing; needs root, for the small disk."""
    disk = tmp_path / 'disk'
    disk.mkdir()
    if os.geteuid() or subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=300k', 'none', disk],
                                      capture_output=True).returncode:
        pytest.skip('cannot mount a small file system here')
    try:
        h5bridge('to-hdf5', '--compress', 'none', DEMO, disk / 'x.h5', code=support.NO_SPACE)
        assert only(disk)
    finally:
        subprocess.run(['umount', disk], check=True)


def test_values_are_there_for_the_readme(converted):
    """The first thing a user does."""
    with h5py.File(converted('demo', 'demo.ms')) as file:
        first = file['MAIN/DATA'][0:10]
    assert first.shape == (10, 16, 4) and first.dtype == np.complex64


@pytest.mark.parametrize('words,kept', [([], True), (['--compress', 'gzip'], True), (['--no-digest'], False),
                                        (['--compress', 'none'], False), (['--compress', 'none', '--digest'], True)])
def test_digest_of_the_source(out, words, kept):
    summary = json.loads(h5bridge('to-hdf5', '--json', DEMO, out, *words).stdout)
    expected = json.loads(h5bridge('digest', '--json', DEMO).stdout)['tables']['.']['sha256'] if kept else None
    assert summary['digest'] == expected
    with h5py.File(out) as f:
        assert f.attrs.get('source_digest') == expected


@support.needs_compiler
def test_a_disk_that_loses_bytes(big_ms, tmp_path):
    """The system says once that bytes were lost, when the output is made durable before it gets its name."""
    for verb, source, target in ('to-hdf5', big_ms, 'big.h5'), ('to-ms', tmp_path / 'whole.h5', 'big.ms'):
        if verb == 'to-ms':
            h5bridge('to-hdf5', big_ms, source)
        failed = support.on_failing_disk(verb, source, tmp_path / target, microseconds=1000, function='fsync')
        assert failed.returncode == support.FAILED and target + ': Input/output error' in failed.stderr, (verb, failed.stderr)
    for form in 'multifile', 'multihdf5', 'sion':
        failed = support.on_failing_disk('pack', '--single-file', '--format', form, big_ms, tmp_path / 'packed', microseconds=1000,
                                         function='fsync')
        assert failed.returncode == support.FAILED and 'packed: Input/output error' in failed.stderr, (form, failed.stderr)
        assert 'big.ms' not in failed.stderr, failed.stderr
    assert os.listdir(tmp_path) == ['whole.h5']
