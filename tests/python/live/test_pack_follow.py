"""`pack --follow` beside python-casacore in a process of its own: each commit is the table as it was at a moment, for h5py and for
`unpack`, also after kills.

H5BRIDGE_LONG=1: 100 kills; H5BRIDGE_SEED: support.seeds."""
import filecmp
import json
import os
import random
import shutil
import signal
import subprocess
import time

import casacore.tables
import h5py
import numpy as np
import pytest

import support
from following import STEP, Casacore, TABLE, Telescope, wait_for
from support import DAMAGED, EXISTS, USAGE, h5bridge

SEEDS = support.seeds(0, 5, 100)
# so that windows between two commits of casacore are long enough, also on a loaded machine
PAUSE = 0.2


def recipe():
    """The code of docs/reference/containers.md that reads a live container, as it is written there."""
    with open(os.path.join(support.ROOT, 'docs', 'reference', 'containers.md')) as f:
        blocks = f.read().split('```python\n')[1:]
    code, = (block.split('```')[0] for block in blocks if 'def follow' in block)
    names = {}
    exec(code, names)
    return names['follow']


def start(table, live, *words):
    words = [support.H5BRIDGE, 'pack', '--follow', str(table), str(live), '--poll', '10ms', '--json', *map(str, words)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(follow, code=0):
    """The document of a `pack --follow` that has ended, which follows the schema's list of members."""
    out, err = follow.communicate(timeout=120)
    assert follow.returncode == code, err
    document = json.loads(out)
    assert {'out', 'files', 'bytes', 'stored_bytes', 'commits', 'appended_bytes', 'replaced_bytes', 'generations', 'seconds',
            'warnings'} <= set(document), document
    return document


def newest(live):
    """{path: bytes} of the newest commit, as h5py reads it with the code of the documents."""
    return next(recipe()(str(live)))


def written(files, folder):
    """Writes {path: bytes} to the directory FOLDER, which must be new."""
    for path, content in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, 'wb') as f:
            f.write(content)
    return folder


def rows_of(path):
    """Rows of a table of the telescope, after a look at every cell: they are a prefix, whole in every column."""
    with casacore.tables.table(str(path), ack=False, lockoptions='user') as t:
        t.lock(write=False)
        rows = np.arange(t.nrows())
        assert len(rows) % STEP == 0
        assert (t.getcol('ROW') == rows).all()
        assert t.getcol('NAME') == ['row %d of the table' % row for row in rows]
        assert (t.getcol('DATA') == rows[:, None]).all()
        assert [int(t.getcell('SLOW', int(row))[0]) for row in rows] == [row // 7 for row in rows]
        t.unlock()
    return len(rows)


def same_tables(left, right):
    """Whether python-casacore finds the same in both, subtables included."""
    with casacore.tables.table(str(left), ack=False) as a, casacore.tables.table(str(right), ack=False) as b:
        assert a.nrows() == b.nrows() and a.colnames() == b.colnames()
        assert str(a.getdminfo()) == str(b.getdminfo())
        for name in a.colnames():
            assert a.getcoldesc(name) == b.getcoldesc(name), name
            for row in range(a.nrows()):
                assert a.iscelldefined(name, row) == b.iscelldefined(name, row), (name, row)
                if a.iscelldefined(name, row):
                    assert np.array_equal(a.getcell(name, row), b.getcell(name, row)), (name, row)
        keywords = [name for name in a.getkeywords() if not str(a.getkeyword(name)).startswith('Table: ')]
        assert [a.getkeyword(name) for name in keywords] == [b.getkeyword(name) for name in keywords]


def same_files(left, right):
    """Every file but the lock files, whose lists of requests belong to processes, has the same bytes in both directories."""
    def files(folder):
        return sorted(os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names
                      if name != 'table.lock')
    assert files(left) == files(right)
    _, differing, failed = filecmp.cmpfiles(left, right, files(left), shallow=False)
    assert not differing and not failed, (differing, failed)


def test_every_commit_is_the_table_as_it_was(tmp_path):
    """Rows are appended, old cells written again, keywords set; each tenth commit is compared with a copy of the table."""
    table, live = tmp_path / 'my.tab', tmp_path / 'live.mfh5'
    commits = 60 if support.LONG else 20
    rng = random.Random(1)
    with Casacore() as writer:
        writer.run(TABLE + """
def cells(row):
    if row % 3: t.putcell('DATA', row, np.full((2, 1 + row % 4), row, 'f4'))
add(3)
def change(row, text):
    t.lock(write=True); t.putcell('NAME', row, text); t.putcell('ROW', row, -row)
    shape = t.getcell('DATA', row).shape if t.iscelldefined('DATA', row) else (2, 5)
    t.putcell('DATA', row, np.full(shape, -row, 'f4')); t.putkeyword('STATE', text); t.unlock()
""", path=str(table), more=["ct.makearrcoldesc('DATA', 0., ndim=2, valuetype='float', datamanagertype='TiledShapeStMan',"
                            " datamanagergroup='D')"])
        follow = start(table, live, '--until-closed', '--block-size', '4K')
        rows, state = 3, None

        def arrived():
            files = newest(live) if live.exists() else None
            if files is None:
                return False
            shutil.rmtree(tmp_path / 'seen', ignore_errors=True)
            with casacore.tables.table(str(written(files, tmp_path / 'seen')), ack=False, lockoptions='user') as t:
                t.lock(write=False)
                found = t.nrows(), t.getkeyword('STATE') if 'STATE' in t.keywordnames() else None
                # each row is whole
                names = t.getcol('NAME') if t.nrows() else []
                assert all(names) and len(names) == t.nrows()
                t.unlock()
            assert found[0] <= rows
            return found == (rows, state)
        for commit in range(commits):
            if rng.random() < 0.6:
                count = rng.choice([1, 7, 300])
                writer.run('add(count)', count=count)
                rows += count
            else:
                state = 'commit %d' % commit
                writer.run('change(row, text)', row=rng.randrange(rows), text=state)
            wait_for(arrived, follow, 60)
            if commit % 10 == 9:
                copy, out = tmp_path / ('copy%d' % commit), tmp_path / ('out%d' % commit)
                shutil.copytree(table, copy)
                h5bridge('unpack', live, out)
                same_tables(copy, out)
                same_files(copy, out)
                # by every verb
                assert support.digest(live) == support.digest(copy)
                h5bridge('verify', '--bytes', live)
    document = ended(follow)
    assert document['commits'] >= commits and document['warnings'] == [] and document['generations'] >= 1
    h5bridge('unpack', live, tmp_path / 'end.tab')
    same_tables(table, tmp_path / 'end.tab')
    same_files(table, tmp_path / 'end.tab')


def test_subtables_and_new_files(tmp_path):
    """A subtable and a column, which come later, need another HDF5 file: a reader of the old one stays where it is."""
    table, live = tmp_path / 'my.tab', tmp_path / 'live.mfh5'
    with Casacore() as writer:
        writer.run(TABLE + 'add(5)', path=str(table), more=[])
        follow = start(table, live, '--until-closed')
        wait_for(live.exists, follow)
        with h5py.File(live, 'r', swmr=True, locking=False) as before:
            writer.run("""
sub = ct.table(path + '/SUB', ct.maketabdesc([ct.makescacoldesc('N', 0)]), nrow=4, lockoptions='user', ack=False)
sub.lock(write=True); sub.putcol('N', np.arange(4, dtype='i4')); sub.unlock()
t.lock(write=True); t.putkeyword('SUB', 'Table: ' + path + '/SUB')
t.addcols(ct.maketabdesc([ct.makescacoldesc('LATER', 1.5)])); t.putcol('LATER', np.arange(5.)); t.unlock()
""", path=str(table))
            wait_for(lambda: any(path.startswith('SUB/table.f') for path in newest(live)), follow)
            assert not any(name.startswith('SUB') for name in before['__MultiHDF5_Commits__'].attrs['names'])
            assert before['table.dat/FileData'].shape[0] > 0
        wait_for(lambda: 'LATER' in json.dumps(support.digest(live)), follow, 60)
    document = ended(follow)
    assert document['generations'] > 1, document
    out = tmp_path / 'out.tab'
    h5bridge('unpack', live, out)
    same_files(table, out)
    with casacore.tables.table(str(out / 'SUB'), ack=False) as t:
        assert t.getcol('N').tolist() == [0, 1, 2, 3]


def test_many_changes_do_not_fill_the_disk(tmp_path):
    """A container in which most blocks were replaced is followed by a new one."""
    table, live = tmp_path / 'my.tab', tmp_path / 'live.mfh5'
    with Casacore() as writer:
        writer.run(TABLE + "t.lock(write=True); t.addrows(1); t.unlock()", path=str(table), more=[
            "ct.makearrcoldesc('DATA', 0., ndim=1, shape=[2000000], datamanagertype='TiledColumnStMan', datamanagergroup='D')"])
        follow = start(table, live, '--until-closed', '--block-size', '1M')
        for number in range(1, 13):
            writer.run("t.lock(write=True); t.putcell('DATA', 0, np.full(2000000, float(number))); t.putcell('ROW', 0, number);"
                       " t.unlock()", number=number)

            def arrived():
                found = newest(live) if live.exists() else {}
                return any(np.array([float(number)]).tobytes() * 4 in content for content in found.values())
            wait_for(arrived, follow, 60)
            assert live.stat().st_size < 250e6
    document = ended(follow)
    assert document['generations'] > 1 and document['replaced_bytes'] > 100e6, document
    h5bridge('unpack', live, tmp_path / 'out.tab')
    same_files(table, tmp_path / 'out.tab')


@pytest.mark.parametrize('again', [True, False], ids=['made again', 'removed'])
def test_removals(tmp_path, again):
    """Rows that are removed are followed, and named; a table that is made again or removed ends it."""
    table, live = tmp_path / 'my.tab', tmp_path / 'live.mfh5'
    with Casacore() as writer, Casacore() as second:
        writer.run(TABLE + 'add(5)', path=str(table), more=[])
        follow = start(table, live)
        wait_for(live.exists, follow)
        writer.run('t.lock(write=True); t.removerows([0, 1]); t.unlock()')
        wait_for(lambda: support.digest(live)['.']['nrow'] == 3, follow)
        if again:
            second.run(TABLE + 'add(7)', path=str(tmp_path / 'new.tab'), more=[])
            os.rename(table, tmp_path / 'old.tab')
            os.rename(tmp_path / 'new.tab', table)
        else:
            shutil.rmtree(table)
        _, err = follow.communicate(timeout=60)
        assert follow.returncode == DAMAGED and 'was removed' in err and '--overwrite' in err, err
        assert 'has 3 rows, but had 5' in err, err
    assert support.digest(live)['.']['nrow'] == 3
    if again:
        process = h5bridge('pack', '--follow', table, live, '--until-closed', code=EXISTS)
        assert 'was here before' in process.stderr and '--overwrite' in process.stderr, process.stderr
        h5bridge('pack', '--follow', table, live, '--until-closed', '--overwrite')
        assert support.digest(live)['.']['nrow'] == 7


def test_a_writer_without_a_pause(tmp_path):
    """No state is made up: a commit comes when there is a pause, and until then a sentence says so."""
    table, live = tmp_path / 'my.tab', tmp_path / 'live.mfh5'
    with Casacore() as writer:
        writer.run(TABLE + 'add(5)', path=str(table), more=[])
        follow = start(table, live, '--until-closed')
        wait_for(live.exists, follow)
        writer.run("""
import time
t.lock(write=True)
end = time.time() + 13
while time.time() < end: t.addrows(1); t.putcell('ROW', t.nrows() - 1, 1); t.flush()
t.unlock()
""")
    document = ended(follow)
    assert any('without a pause' in warning and 'h5bridge follow' in warning for warning in document['warnings']), document
    h5bridge('unpack', live, tmp_path / 'out.tab')
    same_files(table, tmp_path / 'out.tab')


def test_kills(tmp_path):
    """After a kill at any moment h5py and our readers find the newest commit whole, and the same command goes on."""
    table, live = tmp_path / 'my.tab', tmp_path / 'live.mfh5'
    seen, repaired = [0], 0
    with Telescope(table, most=3000, pause=PAUSE) as telescope:
        for number, seed in enumerate(SEEDS):
            rng = random.Random(seed)
            follow = start(table, live, '--block-size', '4K')
            time.sleep(rng.uniform(0, 2))
            follow.kill()
            follow.communicate(timeout=60)
            if not live.exists():
                continue
            files = newest(live)
            by_h5py = rows_of(written(files, tmp_path / ('h5py%d' % number)))
            h5bridge('unpack', live, tmp_path / ('out%d' % number))
            assert rows_of(tmp_path / ('out%d' % number)) == by_h5py
            same_files(tmp_path / ('h5py%d' % number), tmp_path / ('out%d' % number))
            h5bridge('verify', '--bytes', live)
            assert h5bridge('info', live).returncode == 0
            seen.append(by_h5py)
            if rng.random() < 0.5:
                # any program opens it then
                h5bridge('repair', live)
                with h5py.File(live) as f:
                    assert len(f['__MultiHDF5_Commits__']) > 0
                assert newest(live) == files
                repaired += 1
            for name in ('h5py%d', 'out%d'):
                shutil.rmtree(tmp_path / (name % number))
        telescope.stop()
    assert seen == sorted(seen) and seen[-1] > 0, seen
    assert repaired or len(SEEDS) < 5
    document = ended(start(table, live, '--until-closed'))
    assert document['warnings'] == []
    assert sorted(os.listdir(tmp_path)) == ['live.mfh5', 'my.tab'], 'what killed processes left is gone'
    h5bridge('unpack', live, tmp_path / 'end.tab')
    same_tables(table, tmp_path / 'end.tab')
    same_files(table, tmp_path / 'end.tab')


def test_readers_while_casacore_writes(tmp_path):
    """h5py, with one file open for each look, and `unpack`, while casacore writes and the container grows."""
    table, live = tmp_path / 'my.tab', tmp_path / 'live.mfh5'
    seen, looks = [0], 0
    with Telescope(table, most=2000, pause=PAUSE) as telescope:
        follow = start(table, live, '--until-closed', '--block-size', '4K')
        wait_for(live.exists, follow)
        states, end = recipe()(str(live)), time.time() + (60 if support.LONG else 10)
        while time.time() < end:
            files = next(states)
            if files is None:
                time.sleep(0.01)
                continue
            looks += 1
            folder = written(files, tmp_path / ('seen%d' % looks))
            seen.append(rows_of(folder))
            shutil.rmtree(folder)
            if looks % 5 == 0:
                h5bridge('unpack', live, tmp_path / 'out.tab')
                assert rows_of(tmp_path / 'out.tab') >= seen[-1]
                shutil.rmtree(tmp_path / 'out.tab')
        telescope.stop()
    assert seen == sorted(seen) and len(set(seen)) > 5, seen
    ended(follow)
    h5bridge('unpack', live, tmp_path / 'end.tab')
    same_files(table, tmp_path / 'end.tab')


def test_the_end_is_ordinary(tmp_path):
    """`finalize` makes what casacore opens, or a single file as of `pack`."""
    ms, live, packed = tmp_path / 'my.ms', tmp_path / 'live.mfh5', tmp_path / 'packed.ms'
    shutil.copytree(os.path.join(support.TESTDATA, 'demo', 'demo.ms'), ms)
    h5bridge('pack', '--follow', ms, live, '--until-closed')
    assert json.loads(h5bridge('--json', 'ls', live).stdout)['files']
    for words, says in [(['--source', ms], '--source'), (['--compress', 'gzip'], '--compress'), (['--quicklook'], '--quicklook')]:
        assert says in h5bridge('finalize', live, packed, *words, code=USAGE).stderr
    document = json.loads(h5bridge('--json', 'finalize', live, packed).stdout)
    assert document['files'] == sum(len(names) for _, _, names in os.walk(ms)) and document['out'] == str(packed)
    containers = sorted(os.path.relpath(where, packed) for where, _, names in os.walk(packed) if 'table.mfh5' in names)
    assert '.' in containers and 'ANTENNA' in containers
    for container in containers:
        # as casacore makes it: docs/reference/formats/table.md 6.1
        with open(packed / container / 'table.mfh5', 'rb') as f:
            assert f.read(9)[8] == 0
        with h5py.File(packed / container / 'table.mfh5') as f:
            assert '__MultiHDF5_Commits__' not in f and '__MultiHDF5_Blocks__' not in f
            assert f['__MultiHDF5_Header__'].attrs['sizes'].min() >= 0
    try:
        same_tables(ms, packed)
    except RuntimeError as error:
        # a casacore without HDF5
        assert 'HDF5' in str(error), error
    h5bridge('verify', '--bytes', ms, packed)
    assert support.digest(packed) == support.digest(ms)
    h5bridge('finalize', live)
    with h5py.File(live) as f:
        assert sorted(f['__MultiHDF5_Header__'].attrs['names']) == sorted(name for name in f if name != '__MultiHDF5_Header__')
    h5bridge('verify', '--bytes', ms, live)
    h5bridge('verify', '--bytes', live)
    # what is ordinary is not followed any more
    assert 'was not made by' in h5bridge('pack', '--follow', ms, live, '--until-closed', code=EXISTS).stderr


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_signals(tmp_path, number):
    """The last changes are committed, and the file is closed."""
    table, live = tmp_path / 'my.tab', tmp_path / 'live.mfh5'
    with Casacore() as writer:
        writer.run(TABLE + 'add(5)', path=str(table), more=[])
        follow = start(table, live)
        wait_for(live.exists, follow)
        second = h5bridge('pack', '--follow', table, live, code=EXISTS)
        assert 'a writer has the file' in second.stderr, second.stderr
        assert 'a writer has the file' in h5bridge('finalize', live, code=EXISTS).stderr
        writer.run('add(7)')
        follow.send_signal(number)
        document = ended(follow)
    assert document['warnings'] == []
    with h5py.File(live) as f:
        assert 'table.dat' in f
    assert support.digest(live)['.']['nrow'] == 12
    h5bridge('--strict', 'pack', '--follow', table, live, '--until-closed')


def test_idle_and_before_the_first_row(tmp_path):
    table, live = tmp_path / 'my.tab', tmp_path / 'live.mfh5'
    with Casacore() as writer:
        writer.run(TABLE, path=str(table), more=[])
        follow = start(table, live, '--idle', '3s', '--fsync')
        wait_for(live.exists, follow)
        writer.run('add(5)')
        assert ended(follow)['commits'] >= 2
    assert support.digest(live)['.']['nrow'] == 5


def test_wrong_calls(tmp_path):
    demo, live = os.path.join(support.TESTDATA, 'demo', 'demo.ms'), tmp_path / 'live.mfh5'
    for words in (['--crc'], ['--compress', 'gzip'], ['--salvage'], ['--follow-references'], ['--checksum', 'sha256']):
        assert 'cannot be used with' in h5bridge('pack', '--follow', demo, live, *words, code=USAGE).stderr
    for word in ('--until-closed', '--fsync'):
        assert '--follow' in h5bridge('pack', demo, live, word, code=USAGE).stderr
    assert 'multihdf5' in h5bridge('pack', '--follow', demo, live, '--format', 'sion', code=USAGE).stderr
    assert 'does not exist' in h5bridge('pack', '--follow', demo, tmp_path / 'no' / 'live.mfh5', '--until-closed', code=USAGE).stderr
    h5bridge('pack', '--follow', tmp_path / 'no.ms', live, '--until-closed', code=DAMAGED)
    assert os.listdir(tmp_path) == []
