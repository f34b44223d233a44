"""docs/reference/messages.md: messages of every exit code, provoked by commands, judged by rules, and compared with the page.

Each command runs in a folder of its own copies, so that every message has short paths. A message is judged by `shortcomings`: it
names the file (or the option), the place of damage, what was found or expected, and what to do next. H5BRIDGE_UPDATE=1 writes
the page."""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from typing import NamedTuple

import h5py
import numpy as np
import pytest

import support
from support import h5bridge

PAGE = os.path.join(support.ROOT, 'docs', 'reference', 'messages.md')


class Case(NamedTuple):
    """A command that fails."""
    code: int
    words: str
    place: str = ''      # what the message names beside the file: a structure, a column, an option


def shell_words(text):
    """The words of a command line in which only single quotes quote."""
    return [word[1:-1] if word.startswith("'") else word for word in re.findall(r"'[^']*'|\S+", text)]


# ---- the sources ----------------------------------------------------------------------------------------------------

def damaged(folder, name, source, change):
    """A copy of SOURCE that CHANGE damages."""
    path = folder / name
    if (folder / source).is_dir():
        shutil.copytree(folder / source, path)
    else:
        shutil.copy(folder / source, path)
    change(path)


def cut(length, *inside):
    """Keeps the first bytes of a file, or of one inside a directory; a negative length drops the last."""
    def change(path):
        file = path.joinpath(*inside)
        file.write_bytes(file.read_bytes()[:length])
    return change


def patched(offset, data, *inside):
    """Overwrites bytes of a file, or of one inside a directory."""
    def change(path):
        file = path.joinpath(*inside)
        content = bytearray(file.read_bytes())
        offset_now = offset if offset >= 0 else len(content) + offset
        content[offset_now:offset_now + len(data)] = data
        file.write_bytes(content)
    return change


def removed(*inside):
    return lambda path: os.remove(path.joinpath(*inside))


def edited(change):
    """Changes an HDF5 file with h5py."""
    def edit(path):
        with h5py.File(path, 'r+') as file:
            change(file)
    return edit


def without(name):
    def change(file):
        del file[name]
    return edited(change)


def with_attribute(name, value):
    def change(file):
        file.attrs[name] = value
    return edited(change)


def directory_for_file(*inside):
    def change(path):
        os.remove(path.joinpath(*inside))
        os.mkdir(path.joinpath(*inside))
    return change


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """All sources of the commands."""
    folder = tmp_path_factory.mktemp('messages')
    run = lambda *words: subprocess.run([support.H5BRIDGE, *words, '-q'], cwd=folder, check=True, capture_output=True)
    demo = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
    shutil.copytree(demo, folder / 'my.ms')
    shutil.copytree(demo, folder / 'other.ms')
    run('to-hdf5', 'my.ms', 'my.h5')
    run('to-hdf5', 'my.ms', 'rows.h5', '--rows', '0..10')
    run('to-hdf5', 'my.ms', 'plain.h5', '--no-digest')
    run('to-hdf5', 'my.ms', 'exact.h5', '--restorable')
    run('to-hdf5', 'my.ms', 'average.h5', '--average', 'time=60s')
    run('pack', 'my.ms', 'packed.ms', '--crc')
    run('pack', 'my.ms', 'archive.h5', '--single-file', '--crc')
    run('pack', 'my.ms', 'my.vt', '--format', 'vt')
    run('pack', 'my.ms', 'run.sion', '--format', 'sion')
    run('manifest', 'my.ms', 'my.json')
    with h5py.File(folder / 'numbers.h5', 'w') as file:
        file['group/data'] = np.arange(1000.)
        file['group/other'] = np.arange(10)
        file['text'] = 'no array'
    run('pack', 'numbers.h5/group/data', 'data.bcolz', '--format', 'bcolz')
    (folder / 'notes.txt').write_text('These are notes.\n')
    (folder / 'empty').write_bytes(b'')
    (folder / 'folder').mkdir()
    (folder / 'mine').mkdir()
    (folder / 'mine' / 'thesis.tex').write_text('mine')
    os.symlink('circle', folder / 'circle')
    support.unread_expressions(folder / 'taql.tab')
    with h5py.File(folder / 'changed.h5', 'w') as target, h5py.File(folder / 'my.h5') as source:
        for name in source.attrs:
            target.attrs[name] = source.attrs[name]
        for name in source:
            source.copy(name, target)
        target['MAIN/TIME'][3] += 1
    with h5py.File(folder / 'linked.h5', 'w') as file:
        file['elsewhere'] = h5py.ExternalLink('numbers.h5', 'group/data')
    with h5py.File(folder / 'huge.h5', 'w') as file:
        file.attrs['format'], file.attrs['format_version'] = 'ctds-hdf5', '1.0'
        file.create_dataset('MAIN/X', shape=(10**13,), dtype='f8', chunks=(10**6,))
    (folder / 'drawn.png').write_text('mine')
    shutil.copytree(folder / 'my.ms', folder / 'stale.ms')
    run('manifest', 'stale.ms', 'stale.json')
    os.utime(folder / 'stale.ms' / 'table.f7', (0, 0))
    # names of managers that nobody has, as long as those they replace
    managers = {b'IncrementalStMan': b'NonexistentStMan', b'StandardStMan': b'AlienardStMan', b'TiledShapeStMan': b'AlienShapeStMan',
                b'TiledColumnStMan': b'AlienColumnStMan'}
    for name, count in (('unknown.ms', 1), ('alien.ms', len(managers))):
        shutil.copytree(folder / 'my.ms', folder / name)
        text = (folder / name / 'table.dat').read_bytes()
        for old, new in list(managers.items())[:count]:
            assert len(old) == len(new)
            text = text.replace(old, new)
        (folder / name / 'table.dat').write_bytes(text)
    tables = [
        ('cut_dat.ms', cut(100, 'table.dat')), ('magic.ms', patched(0, b'\0\0\0\0', 'table.dat')),
        ('empty_dat.ms', cut(0, 'table.dat')), ('no_dat.ms', removed('table.dat')),
        ('cut_sub.ms', cut(60, 'ANTENNA', 'table.dat')), ('no_f3.ms', removed('table.f3')),
        ('cut_f3.ms', cut(40, 'table.f3')), ('magic_f3.ms', patched(0, b'\xff' * 8, 'table.f3')),
        ('no_tiles.ms', removed('table.f0_TSM1')), ('cut_tiles.ms', cut(1000, 'table.f0_TSM1')),
        ('cut_ssm.ms', cut(-20000, 'table.f7')), ('index_ssm.ms', patched(0, b'\xff' * 64, 'table.f7')),
        ('cut_ism.ms', cut(600, 'table.f8')), ('changed.ms', cut(50, 'table.info')),
        ('huge_info.ms', lambda path: os.truncate(path / 'table.info', 2 << 30)), ('dir_dat.ms', directory_for_file('table.dat')),
    ]
    for name, change in tables:
        damaged(folder, name, 'my.ms', change)
    for name, change in [
        ('cut.h5', cut(5000)), ('head.h5', patched(8, b'\xff' * 8)), ('no_document.h5', without('_ctds/MAIN')), ('version.h5', with_attribute('format_version', '9.0')),
        ('format.h5', with_attribute('format', 'another')),
    ]:
        damaged(folder, name, 'my.h5', change)
    damaged(folder, 'cut_mf.ms', 'packed.ms', cut(2000, 'table.mf'))
    damaged(folder, 'magic_mf.ms', 'packed.ms', patched(8, b'\xff' * 24, 'table.mf'))
    damaged(folder, 'crc_mf.ms', 'packed.ms', patched(-5000, b'\xff' * 64, 'table.mf'))
    damaged(folder, 'seal.h5', 'archive.h5', patched(-40, b'\xff' * 16))
    damaged(folder, 'block.h5', 'archive.h5', patched(20000, b'\xff' * 200))
    damaged(folder, 'cut.sion', 'run.sion', cut(200))
    damaged(folder, 'cut.vt', 'my.vt', cut(20))
    damaged(folder, 'no_sizes.bcolz', 'data.bcolz', removed('meta', 'sizes'))
    damaged(folder, 'json.bcolz', 'data.bcolz', patched(0, b'}', 'meta', 'sizes'))
    (folder / 'broken.json').write_text('{"version": 1, "refs": ')
    shutil.copytree(folder / 'my.ms', folder / 'locked.ms')
    writer = subprocess.Popen(
        [sys.executable, '-c', "import sys, casacore.tables as t; t = t.table('locked.ms', readonly=False,"
         " lockoptions='permanent', ack=False); print('ready', flush=True); sys.stdin.read()"],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == 'ready\n'
    yield folder
    writer.stdin.close()
    writer.wait()


# ---- the commands ---------------------------------------------------------------------------------------------------

CASES = [
    # the command line
    Case(2, 'to-hdf', 'to-hdf'), Case(2, 'to-ms my.h5', '<OUT>'),
    Case(2, 'to-hdf5 my.h5', 'OUT'), Case(2, 'to-hdf5 my.ms/ANTENNA', 'OUT'), Case(2, 'to-hdf5 my.ms my.zarr', 'my.zarr'),
    Case(2, 'to-hdf5 my.ms out.h5 --colums DATA', '--colums'),
    Case(2, 'help format', 'format'), Case(2, 'completions bsh', 'bsh'),
    Case(2, 'to-hdf5 my.ms out.h5 --columns DAT', 'DAT'),
    Case(2, 'to-hdf5 my.ms out.h5 --columns ANTENA/NAME', 'ANTENA'),
    Case(2, 'to-hdf5 my.ms out.h5 --exclude ANTENNA/NAM', 'NAM'),
    Case(2, 'to-hdf5 my.ms out.h5 --tables MIAN', 'MIAN'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'SCAN_NUMBR == 3'", 'SCAN_NUMBR'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'FIELD_ID == \"3C28\"'", '3C28'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'TIME >'", 'character'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'DATA > 3'", 'DATA'),
    Case(2, "to-hdf5 my.ms out.h5 --where 'TIME > \"yesterday\"'", 'yesterday'),
    Case(2, 'to-hdf5 my.ms out.h5 --average tim=10s', '--average'),
    Case(2, 'to-hdf5 my.ms out.h5 --average chan=1', '--average'),
    Case(2, 'to-hdf5 my.ms/ANTENNA out.h5 --average time=10s', 'TIME'),
    Case(2, 'to-hdf5 my.ms out.h5 --rows 10', '--rows'), Case(2, 'to-hdf5 my.ms out.h5 --rows 9..3', '--rows'),
    Case(2, 'to-hdf5 my.ms out.h5 --rows 0..1000', 'rows'),
    Case(2, 'to-hdf5 my.ms out.h5 --compress gzp', '--compress'), Case(2, 'to-hdf5 my.ms out.h5 --compress gzip:11', '--compress'),
    Case(2, 'to-hdf5 my.ms out.h5 --compress keep', '--compress'), Case(2, 'to-hdf5 my.ms out.h5 --dtype f4', '--dtype'),
    Case(2, 'to-hdf5 my.ms out.h5 --max-memory 1M', '--max-memory'),
    Case(2, 'to-hdf5 my.ms out.h5 --restorable --rows 0..3', 'restorable'),
    Case(2, 'to-hdf5 my.h5 out.h5 --restorable', 'restorable'),
    Case(2, 'to-hdf5 my.ms out.h5 --salvage --restorable', '--salvage'),
    Case(2, 'to-hdf5 my.ms out.h5 --appendable --compress shared', '--appendable'),
    Case(2, 'to-hdf5 my.ms missing/out.h5', 'missing'),
    Case(2, 'to-ms my.h5 out.ms --byte-order middle', '--byte-order'), Case(2, 'to-ms my.h5 out.ms --exact', 'restorable'),
    Case(2, 'to-ms my.h5 out.ms --parts notes.txt', '--parts'),
    Case(2, 'digest my.ms --columns DAT', 'DAT'), Case(2, 'verify plain.h5', 'digests'),
    Case(2, 'verify my.ms average.h5', 'averag'),
    Case(2, 'pack my.ms out.ms --format multifle', '--format'), Case(2, 'pack my.ms out.ms --block-size 12', 'block'),
    Case(2, 'pack my.ms out.ms --format bcolz --crc', '--crc'), Case(2, 'pack my.ms out.ms --compress lz5', '--compress'),
    
    Case(2, 'manifest my.ms out.json --table ANTENA', 'ANTENA'),
    Case(2, 'plot my.ms waterfal', 'waterfal'), Case(2, 'plot my.ms --column DAT', 'DAT'),
    Case(2, 'plot my.ms --quantity phse', 'phse'), Case(2, 'plot my.ms --antenna nowhere', 'nowhere'),
    Case(2, 'plot my.ms --chan 5', 'chan'), Case(2, 'plot my.ms --out my.gif', 'my.gif'),
    Case(2, 'follow my.ms out.h5 --idle 5parsecs', '--idle'), Case(2, 'info my.ms --lock-timeout soon', '--lock-timeout'),
    Case(2, "watch my.h5 --alert 'flaged > 4'", 'flaged'), Case(2, 'link my.ms out.ms'), Case(2, 'materialize my.ms'), Case(2, 'pack my.ms my.ms/inside.ms', 'inside'),
    Case(2, 'to-hdf5 data.bcolz out.h5 --rows 0..3', '--rows'),
    # sources that are missing, something else, or damaged
    Case(3, 'info nothing.ms'), Case(3, 'to-hdf5 nothing.ms out.h5'), Case(3, 'info notes.txt'), Case(3, 'info empty'),
    Case(3, 'info folder'), Case(3, 'info circle'),  Case(3, 'info archive.h5/ANTENA', 'ANTENA'), Case(3, 'ls packed.ms/table.mg'), Case(3, 'ls run.sion/TASK77', 'TASK77'),
    Case(3, 'pack numbers.h5/group/dat out.bcolz --format bcolz', 'dat'), Case(3, 'repair my.ms'),
    Case(3, 'finalize nothing.h5 out.h5'),
    Case(3, 'to-hdf5 cut_dat.ms out.h5', 'table.dat'), Case(3, 'info magic.ms', 'table.dat'), Case(3, 'info empty_dat.ms', 'table.dat'),
    Case(3, 'info no_dat.ms'), Case(3, 'to-hdf5 cut_sub.ms out.h5', 'ANTENNA'), Case(3, 'to-hdf5 no_f3.ms out.h5', 'table.f3'),
    Case(3, 'to-hdf5 cut_f3.ms out.h5', 'table.f3'), Case(3, 'to-hdf5 magic_f3.ms out.h5', 'table.f3'),
    Case(3, 'to-hdf5 no_tiles.ms out.h5', 'table.f0'), Case(3, 'to-hdf5 cut_tiles.ms out.h5', 'table.f0'),
    Case(3, 'to-hdf5 cut_ssm.ms out.h5', 'table.f7'), Case(3, 'to-hdf5 index_ssm.ms out.h5', 'table.f7'),
    Case(3, 'to-hdf5 cut_ism.ms out.h5', 'table.f8'),
    Case(3, 'info cut.h5'), Case(3, 'info head.h5'),
    Case(3, 'ls cut_mf.ms', 'table.mf'), Case(3, 'info magic_mf.ms', 'table.mf'), Case(3, 'unpack crc_mf.ms new.ms', 'block'),
    Case(3, 'verify --bytes seal.h5'), Case(3, 'to-ms no_document.h5 new.ms'), Case(3, 'unpack block.h5 new.ms'), Case(3, 'verify --bytes block.h5'), Case(3, 'ls cut.sion'), Case(3, 'ls cut.vt'),
    Case(3, 'info no_sizes.bcolz', 'sizes'), Case(3, 'info json.bcolz', 'sizes'), Case(3, 'verify broken.json'),
    # what exists in no form of ours
    Case(4, 'info version.h5', '9.0'), Case(4, 'info format.h5', 'format'), Case(4, 'to-hdf5 alien.ms new.h5', 'StMan'),
    Case(4, 'pack numbers.h5 new.bcolz --format bcolz', 'text'), Case(4, 'pack linked.h5/elsewhere new.bcolz --format bcolz', 'elsewhere'),
    # differences
    Case(5, 'verify my.ms changed.h5', 'TIME'), Case(5, 'verify my.ms rows.h5'), Case(5, 'verify --bytes my.ms changed.ms', 'table.info'), Case(5, 'verify stale.json', 'table.f7'),
    # warnings
    Case(6, 'to-hdf5 cut_tiles.ms salvaged.h5 --salvage', 'table.f0'),
    Case(6, 'to-hdf5 unknown.ms warned.h5 --strict', 'NonexistentStMan'),
    Case(6, 'to-hdf5 taql.tab taql.h5 --strict', 'VirtualTaQLColumn'),
    # targets
    Case(7, 'to-hdf5 my.ms my.h5'), Case(7, 'to-ms my.h5 other.ms'), Case(7, 'to-ms my.h5 mine --overwrite'),
    Case(7, 'pack my.ms packed.ms'), Case(7, 'manifest my.ms my.json'), Case(7, 'plot my.ms --out drawn.png'),
    Case(7, 'to-hdf5 locked.ms out.h5 --lock-timeout 0.2'), Case(7, 'digest locked.ms --lock-timeout 0.2'),
    # the system
    Case(3, 'to-hdf5 dir_dat.ms out.h5', 'table.dat'), Case(3, 'info huge_info.ms', 'table.info'), Case(1, 'generate man notes.txt'),
    Case(3, 'watch my.ms'), Case(8, 'to-ms huge.h5 new.ms'),
]


# Commands that need more than their words: a limit of the system, or a signal.

def limited(folder):
    """A file system on which files have at most 100 kB."""
    words = 'to-hdf5 my.ms new.h5'
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    process = subprocess.run([support.H5BRIDGE, *words.split()], cwd=folder, capture_output=True, text=True, preexec_fn=limit,
                             restore_signals=False)
    return 1, words, process.returncode, process.stderr


def to_a_full_device(folder):
    with open('/dev/full', 'w') as full:
        process = subprocess.run([support.H5BRIDGE, 'info', 'my.ms'], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True)
    return 8, 'info my.ms > /dev/full', process.returncode, process.stderr


def interrupted(folder, words, is_ready):
    """SIGINT, sent when IS_READY says so of a line of stderr."""
    process = subprocess.Popen([support.H5BRIDGE, *words.split()], cwd=folder, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    assert is_ready(line), line
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    return 130, words, process.returncode, said


def interrupted_while_waiting(folder):
    return interrupted(folder, 'to-hdf5 locked.ms new.h5', lambda line: 'waiting for it' in line)


def interrupted_while_writing(folder):
    return interrupted(folder, 'to-hdf5 noise.h5 new.h5 --compress zstd:22 --threads 1', lambda line: line.startswith('writing'))


SPECIAL = [limited, to_a_full_device, interrupted_while_waiting, interrupted_while_writing]


# ---- the judgement --------------------------------------------------------------------------------------------------

# A message says what was found or expected with one of these words.
STATES = re.compile(r"\b(not|no|none|neither|cannot|only|but|where|expected|exceeds?|needs?|needed|already|missing|differs?|known|at least|"
                    r"unexpected|unrecognized|required|invalid|interrupted|damaged|limit|too|locked|is|are|was|out of|has|have)\b|\|", re.IGNORECASE)
# ... and what to do next with one of these.
STEPS = re.compile(r"`h5bridge |(?<![\w-])--[a-z]|did you mean|; it has |\btip: |For more information|\bnext: |\bname |begins again|check the "
                   r"path|possible values|free some space|remove it")


def shortcomings(case, message):
    """What a message lacks."""
    found = []
    paths = [word for word in shell_words(case.words)[1:] if not word.startswith('-')] + ['stdout: '] * ('>' in case.words.split())
    # a signal that comes before anything is written leaves all files alone
    is_named = any(path in message for path in paths) or case.code == 2 and case.place and case.place in message
    if not is_named and 'nothing was being written' not in message:
        found.append('it names neither file nor option')
    if case.place not in message:
        found.append('it does not name ' + case.place)
    if not STATES.search(message):
        found.append('it does not say what was found or expected')
    # a difference and a signal are no failures that something can be done about
    if case.code != 5 and not STEPS.search(message) and 'nothing was being written' not in message:
        found.append('it does not say what to do next')
    if 'panicked' in message or re.search(r'\x1b|/tmp/|\.partial', message):
        found.append('it has something that is not for users')
    return found


def test_the_judgement():
    """The rules refuse messages that lack something."""
    case = Case(3, 'info my.ms', 'table.dat')
    assert shortcomings(case, 'h5bridge: my.ms: table.dat: byte 4 is not what is expected (`h5bridge help damage`)') == []
    for message, lack in (('h5bridge: table.dat: no bytes (--salvage)', 'file'), ('h5bridge: my.ms: no bytes (--salvage)', 'table.dat'),
                          ('h5bridge: my.ms: table.dat (--salvage)', 'expected'), ('h5bridge: my.ms: table.dat: no bytes', 'next'),
                          ('h5bridge: my.ms: table.dat: no bytes (--salvage) /tmp/x', 'users')):
        assert lack in ' '.join(shortcomings(case, message)), message


# ---- the page -------------------------------------------------------------------------------------------------------

def provoke(folder, case):
    """(exit code, message) of a command."""
    process = subprocess.run([support.H5BRIDGE, *shell_words(case.words)], cwd=folder, capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, timeout=60)
    # what verify finds is on stdout
    return process.returncode, (process.stdout if case.words.startswith('verify') else '') + process.stderr


def normalised(folder, text):
    """What differs from run to run, left out."""
    text = text.replace(str(folder) + '/', '')
    text = re.sub(r'only \d+ are free', 'only … are free', text)
    text = re.sub(r'^(.* s, .*/s, peak memory|[\d.]+ s, ).*\n', '', text, flags=re.MULTILINE)
    text = re.sub(r'^\S+: \d+ tables, .* of data in .*\n', '', text, flags=re.MULTILINE)
    text = re.sub(r'(modification time is) [\d.]+ s', r'\1 … s', text)
    return text.strip()


@pytest.fixture(scope='module')
def provoked(folder):
    """[(case, exit code, message)] of all commands."""
    noise = np.random.default_rng(1).normal(size=(4000, 1000))
    with h5py.File(folder / 'noise.h5', 'w') as file:
        file.attrs['format'], file.attrs['format_version'] = 'ctds-hdf5', '1.0'
        file['MAIN/X'] = noise
    found = []
    for case in CASES:
        code, text = provoke(folder, case)
        found.append((case, code, normalised(folder, text)))
    for special in SPECIAL:
        expected, words, code, text = special(folder)
        found.append((Case(expected, words), code, normalised(folder, text)))
    return found


def page(provoked):
    """The text of docs/reference/messages.md."""
    listed = h5bridge('help', 'exit-codes').stdout
    meanings = {int(code): (name.strip(), said) for code, name, said in re.findall(r'^ +(\d+)  (.{27}) (.+)$', listed, re.MULTILINE)}
    parts = ['# Messages\n',
             'What `h5bridge` prints when it does not do what was asked for, by exit code (`h5bridge help exit-codes`). Each message names the',
             'file, the place in it, what was found or expected, and what to do next. This page is written by tests/python/cli/test_messages.py, which runs',
             'the commands and judges the messages: `H5BRIDGE_UPDATE=1 pytest tests/python/cli/test_messages.py`.\n']
    for code in sorted({case.code for case, _, _ in provoked}):
        name, said = meanings[code]
        parts.append('## %d: %s\n\n%s.\n' % (code, name, said[0].upper() + said[1:]))
        blocks = ['$ h5bridge %s\n%s\n' % (case.words, text) for case, _, text in provoked if case.code == code]
        parts.append('```text\n%s```\n' % '\n'.join(blocks))
    return '\n'.join(parts)


def test_exit_codes(provoked):
    wrong = [(case.words, code, case.code, text) for case, code, text in provoked if code != case.code]
    assert not wrong
    assert {case.code for case, _, _ in provoked} == {1, 2, 3, 4, 5, 6, 7, 8, 130}


def test_every_message_is_complete(provoked):
    lacking = ['%s: %s\n    %s' % (case.words, ', '.join(shortcomings(case, text)), text)
               for case, _, text in provoked if shortcomings(case, text)]
    assert not lacking, '\n'.join(lacking)


def test_messages_differ(provoked):
    """At least sixty failures of different kinds, each told apart by its words."""
    kinds = {re.sub(r"[\w./-]*\d[\w./-]*|'[^']*'|\b\w+\.(ms|h5|vt|sion|bcolz|json)\b", '', text) for _, _, text in provoked}
    assert len(kinds) >= 60, len(kinds)


def test_page(provoked):
    text = page(provoked)
    if os.environ.get('H5BRIDGE_UPDATE') == '1':
        with open(PAGE, 'w', encoding='utf-8') as file:
            file.write(text)
    with open(PAGE, encoding='utf-8') as file:
        assert text == file.read(), 'H5BRIDGE_UPDATE=1 writes the page again'
