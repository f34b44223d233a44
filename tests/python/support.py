"""Where things are, how h5bridge is run, and what it is expected to support today."""
import fcntl
import hashlib
import importlib.util
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, '..', '..'))
TESTDATA = os.path.join(ROOT, 'testdata')
SHARED = os.path.join(ROOT, '..', 'shared')
CORPUS = os.path.join(SHARED, 'corpus')
# scripts/setup-python builds both, and sets H5BRIDGE
H5BRIDGE = os.environ.get('H5BRIDGE', os.path.join(ROOT, 'target', 'debug', 'h5bridge'))
EXAMPLES = os.path.join(os.path.dirname(H5BRIDGE), 'examples')

# whether this is the night tier: more random cases, all of the corpus, and the tests that are marked `night`
LONG = bool(os.environ.get('H5BRIDGE_LONG'))

# strace, where it may trace
STRACE = shutil.which('strace')
if STRACE and subprocess.run([STRACE, '-o', '/dev/null', 'true'], capture_output=True).returncode != 0:
    STRACE = None

# What has to be read: an issue that adds a storage manager, a kind of table or a container adds it here. Columns of
# other managers may be left out, with a warning that names the manager; when they are there, they have to be right.
MANAGERS = {'StandardStMan', 'IncrementalStMan', 'StManAipsIO', 'MemoryStMan',
            'TiledColumnStMan', 'TiledShapeStMan', 'TiledCellStMan', 'TiledDataStMan',
            'DyscoStMan', 'UvwStMan', 'AntennaPairStMan', 'StokesIStMan',
            'ForwardColumnEngine', 'CompressFloat', 'CompressComplex', 'CompressComplexSD',
            'BitFlagsEngine<uChar', 'BitFlagsEngine<Short', 'BitFlagsEngine<Int', 'VirtualTaQLColumn'}
TABLE_CLASSES = {'PlainTable', 'RefTable', 'ConcatTable'}
CONTAINERS = {'table.mf', 'table.mfh5'}

# Exit codes of cli.md
DONE, FAILED, USAGE, DAMAGED, UNSUPPORTED, DIFFERENT, WARNINGS, EXISTS, NO_SPACE, INTERRUPTED = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 130)

# Kinds of plots, in their order
PLOTS = ('waterfall', 'amp_time', 'phase_time', 'spectrum', 'amp_uvdist', 'phase_uvdist', 'uv', 'flag_antenna', 'flag_channel', 'flag_time',
         'baselines', 'xy', 'antennas')


def h5bridge(*words, code=DONE, timeout=300):
    """Runs h5bridge without a terminal; fails unless it ends with CODE (None: any of cli.md's). Returns the process."""
    process = subprocess.run([H5BRIDGE, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=timeout, errors='surrogateescape')
    allowed = range(9) if code is None else [code]
    assert process.returncode in allowed, 'h5bridge %s: exit code %d, not %s\n%s' % (
        ' '.join(map(str, words)), process.returncode, code, process.stderr[-2000:])
    return process


# variables by which programs tell what a terminal can show
OF_TERMINALS = ('TERM', 'TERM_PROGRAM', 'LC_TERMINAL', 'KITTY_WINDOW_ID', 'KONSOLE_VERSION', 'TMUX', 'NO_COLOR', 'CLICOLOR',
                'CLICOLOR_FORCE', 'COLUMNS', 'LINES')


def peer(name):
    """The interpreter of a virtual environment that scripts/night makes (scripts/requirements-NAME.txt)."""
    python = os.path.join(ROOT, '.venv', name, 'bin', 'python')
    if not os.path.exists(python):
        pytest.skip('no environment .venv/%s: scripts/night makes it' % name)
    return python


def on_terminal(*words, columns=80, lines=24, messages=False, **environment):
    """What h5bridge sends to a terminal of so many columns and lines: its output, with its MESSAGES if wished. It must end well."""
    ours, its = pty.openpty()
    try:
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))
        as_sent = termios.tcgetattr(its)
        as_sent[1] &= ~termios.OPOST
        termios.tcsetattr(its, termios.TCSANOW, as_sent)
        env = {name: value for name, value in os.environ.items() if name not in OF_TERMINALS}
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen([H5BRIDGE, *map(str, words)], stdin=its, stdout=its, stderr=its if messages else said,
                                       env={**env, 'TERM': 'xterm-256color', **environment})
            # Its end stays open here until all is read: Linux may report the end of a terminal whose other end is closed while
            # bytes are still on their way.
            sent, ended = b'', False
            while True:
                if select.select([ours], [], [], 0.05)[0]:
                    sent += os.read(ours, 65536)
                elif ended:
                    break
                ended = process.poll() is not None
            said.seek(0)
            assert process.returncode == DONE, said.read()
        return sent.decode()
    finally:
        os.close(ours)
        os.close(its)


# the first call of fdatasync fails, after a while, as where the system has lost bytes; later ones do not
LOSING = """#include <errno.h>
#include <unistd.h>
#include <sys/syscall.h>
int %s(int file) {
    static int calls;
    if (__sync_fetch_and_add(&calls, 1)) return syscall(SYS_%s, file);
    usleep(%d);
    errno = EIO;
    return -1;
}
"""
needs_compiler = pytest.mark.skipif(not shutil.which('cc'), reason='a function of the system is replaced by one in C')


def on_failing_disk(*words, microseconds=500_000, function='fdatasync'):
    """Runs h5bridge where the first call of FUNCTION, which makes a file durable, fails so many MICROSECONDS after it began."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, 'losing.so')
        compiler = ['cc', '-shared', '-fPIC', '-x', 'c', '-', '-o', library]
        subprocess.run(compiler, input=LOSING % (function, function, microseconds), text=True, check=True)
        return subprocess.run([H5BRIDGE, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              env={**os.environ, 'LD_PRELOAD': library})


def partials(target):
    """The directories in which runs are writing, or were when they were killed, what will be at TARGET."""
    name = os.path.basename(target)
    pattern = re.compile(re.escape(name) + r'\.[0-9]+-[0-9A-Za-z]{8}\.partial')
    return [found for found in os.listdir(os.path.dirname(os.path.abspath(target))) if pattern.fullmatch(found)]


def needs(path):
    """Marks a test that is skipped, with the path, if a file or folder beside the project is missing."""
    return pytest.mark.skipif(not os.path.exists(path), reason=os.path.relpath(path, ROOT) + ' is missing')


def manifest(fixtures, negative):
    """The entries of the manifest of a folder of fixtures, those to be refused or the others; none without the folder."""
    path = os.path.join(fixtures, 'manifest.json')
    if not os.path.isfile(path):
        return []
    with open(path) as f:
        entries = json.load(f)['fixtures']
    return [entry for entry in entries if bool(entry.get('negative')) == negative]


def decoder(name):
    """The independent decoder ../shared/oracle/decode_NAME.py as a module."""
    spec = importlib.util.spec_from_file_location('decode_' + name, os.path.join(SHARED, 'oracle', 'decode_%s.py' % name))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needs_decoder(name):
    return needs(os.path.join(SHARED, 'oracle', 'decode_%s.py' % name))


def extract(path, folder):
    """Unpacks a tar archive of ours."""
    with tarfile.open(path) as archive:
        # Python before 3.11.4 has no filters
        archive.extractall(folder, **({'filter': 'data'} if hasattr(tarfile, 'data_filter') else {}))


_COPIES = []


def own_copy(case, table):
    """The path of a copy of a table of testdata: tests of other processes wait for those that have a table open."""
    if not _COPIES:
        _COPIES.append(tempfile.TemporaryDirectory())
    return shutil.copytree(os.path.join(TESTDATA, case, table), os.path.join(tempfile.mkdtemp(dir=_COPIES[0].name), table))


def unread_expressions(path):
    """Makes at PATH a copy of testdata's table of VirtualTaQLColumn with functions that no program has: V, B, S and W have no values."""
    shutil.copytree(os.path.join(TESTDATA, 'virtual_taql', 't.tab'), path)
    description = os.path.join(path, 'table.dat')
    with open(description, 'rb') as file:
        text = file.read()
    for known, unknown in ((b'rownumber()', b'rawnumber()'), (b'A%2==0', b'b.c(A)'), (b'string(A)', b'strung(A)'), (b'array(A', b'arrow(A')):
        assert known in text and len(known) == len(unknown)
        text = text.replace(known, unknown)
    with open(description, 'wb') as file:
        file.write(text)
    return path


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def tree(folder):
    """{path: bytes} of all files below a folder."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, 'rb') as f:
                found[os.path.relpath(path, folder)] = f.read()
    return found


def files_of(source):
    """{path: SHA-256} of `h5bridge digest --json` of a container or of arrays."""
    document = json.loads(h5bridge('digest', '--json', '--hash', 'sha256', source).stdout)
    assert document['format'] == 'SHA-256'
    return document['files']


FORMATS = {'sha256': 'CTFP-1', 'blake3': 'CTFP-2'}


def digest(source, code=DONE, hash='sha256'):
    """{relative path: fingerprint} of `h5bridge digest --json`: CTFP-1, as the expected ones are, or what conversions store."""
    words = () if hash == 'blake3' else ('--hash', hash)
    document = json.loads(h5bridge('digest', '--json', *words, source, code=code).stdout)
    assert document['format'] == FORMATS[hash]
    return document['tables']


def unsupported(fingerprint):
    """What a whole table with this expected fingerprint needs and need not have; its error is to name one of these."""
    needs = {fingerprint.get('table_class') or 'PlainTable'} - TABLE_CLASSES
    return needs | {name for name in fingerprint.get('files', {}) if name in ('table.mf', 'table.mfh5')} - CONTAINERS


def optional(fingerprint):
    """{column: manager} of the columns that may be left out."""
    managers = {name: (c.get('dm') or '').strip() for name, c in fingerprint.get('columns', {}).items()}
    # the manifest does not say which columns have an engine that python-casacore cannot open
    unknown = 'python_error' in fingerprint
    return {name: manager for name, manager in managers.items() if unknown or manager not in MANAGERS}


def unreadable(fingerprint):
    """Columns that casacore cannot read."""
    return {name for name, c in fingerprint.get('columns', {}).items() if c['sha256'] is None}


def not_utf8(fingerprint):
    """Columns that only python-casacore cannot read: their strings are not UTF-8."""
    return {name for name, c in fingerprint.get('columns', {}).items() if 'UnicodeDecodeError' in c.get('error', '')}


def elsewhere(fingerprint, tables):
    """What the tables need that this one may refer to: those of its folder."""
    managers = {manager['type'] for manager in fingerprint.get('data_managers', ())}
    if fingerprint.get('table_class') in ('RefTable', 'ConcatTable') or 'ForwardColumnEngine' in managers:
        return set().union(*(unsupported(f) for f in tables.values()))
    return set()


def outcome(tables, root):
    """(exit codes that converting this table may end with, words of which its error names one).

    The table counts, and those inside it. TABLES are all of its folder."""
    inside = below(tables, root).values()
    if any('error' in f for f in inside):
        # casacore cannot open it; we need not find the same reason
        return {DAMAGED, UNSUPPORTED}, set()
    words = set().union(*(unsupported(f) for f in inside))
    words = words.union(*(elsewhere(f, tables) for f in inside))
    for f in inside:
        if f.get('columns') and set(optional(f)) == set(f['columns']):
            words |= {manager for manager in optional(f).values() if manager}    # nothing would be left of it
    damaged = any(unreadable(f) - not_utf8(f) for f in inside)
    if words:
        return ({DAMAGED, UNSUPPORTED} if damaged else {UNSUPPORTED, DONE}), (set() if damaged else words)
    return ({DAMAGED} if damaged else {DONE}), set()


def convertible():
    """(case, table) of each table of testdata that can be converted today and is not inside another one."""
    return [(case, root) for case in cases() for root in roots(expected(case)['tables'])
            if outcome(expected(case)['tables'], root)[0] == {DONE}]


def some_convertible(step=8):
    """Of the tables of `convertible` the first of each folder and every STEP-th; with H5BRIDGE_LONG=1 all."""
    entries = convertible()
    firsts = [entry for number, entry in enumerate(entries) if not number or entry[0] != entries[number - 1][0]]
    return [entry for number, entry in enumerate(entries) if LONG or entry in firsts or number % step == 0]


def seeds(first, count, many):
    """Of random tests: COUNT of them from FIRST on. H5BRIDGE_LONG=1: MANY; H5BRIDGE_SEED=n: from there on."""
    first = int(os.environ.get('H5BRIDGE_SEED', first))
    return range(first, first + (many if LONG else count))


def cases():
    """Names of the folders of testdata/ whose tables have fingerprints."""
    return [name for name in sorted(os.listdir(TESTDATA))
            if os.path.exists(os.path.join(TESTDATA, name, 'expected.json')) and 'tables' in expected(name)]


def expected(case):
    with open(os.path.join(TESTDATA, case, 'expected.json')) as f:
        return json.load(f)


def roots(tables):
    """Of these paths those that are no subtable inside another one."""
    return [path for path in tables
            if not any(path != other and (other == '.' or path.startswith(other + '/')) for other in tables)]


def some_roots(tables, most=6):
    """Roots as `roots` has them; but about MOST, evenly chosen, unless H5BRIDGE_LONG=1: some folders have dozens of tables."""
    found = roots(tables)
    return found if LONG else found[::-(-len(found) // most)]


def below(tables, root):
    """{path as `digest --json` gives it: fingerprint} of a table and those inside it."""
    inside = {'.': tables[root]}
    prefix = '' if root == '.' else root + '/'
    inside.update({path[len(prefix):]: f for path, f in tables.items()
                   if path != root and path != '.' and path.startswith(prefix)})
    return inside


def corpus_entries(every=False):
    """The manifest's entries, fewer with H5BRIDGE_CORPUS="name,name"; none when the corpus is not there. EVERY: also
    one with more than 2^32 rows, of which only samples can be compared."""
    manifest = os.path.join(CORPUS, 'manifest.json')
    if not os.path.exists(manifest):
        return []
    with open(manifest) as f:
        entries = json.load(f)['entries']
    only = os.environ.get('H5BRIDGE_CORPUS', '').split(',')
    return [e for e in entries if (only == [''] or e['name'] in only) and (every or not e['name'].endswith('_rows64'))]


def sample(entries, step):
    """Every STEP-th entry, so that all tests together do not take too long; with H5BRIDGE_LONG=1 all."""
    return entries[::1 if LONG else step]


def corpus_sample(step):
    """Every STEP-th archive of the corpus, as `sample` has it."""
    return sample(corpus_entries(), step)


def corpus():
    """Parameters of a test: tables of the corpus, or one that is skipped."""
    return corpus_sample(6) or [pytest.param(None, marks=pytest.mark.skip(reason=corpus_missing()))]


def corpus_missing():
    """Why the corpus cannot be used, or ''."""
    if not os.path.exists(os.path.join(CORPUS, 'manifest.json')):
        return '../shared/corpus is missing'
    return '' if shutil.which('zstd') else 'zstd is missing: ../shared/corpus cannot be unpacked'


def unpack(entry, folder):
    """Unpacks an archive of the corpus; returns the folder with its tables."""
    zstd = subprocess.Popen(['zstd', '-dcq', os.path.join(CORPUS, entry['file'])], stdout=subprocess.PIPE)
    subprocess.run(['tar', 'xf', '-', '-C', folder], stdin=zstd.stdout, check=True)
    assert zstd.wait() == 0
    return os.path.join(folder, entry['name'])


def make_tables(folder, seed, count, *more):
    """Random tables of testdata/oracle/make_tables.py: {name: {path: fingerprint}}."""
    subprocess.run([sys.executable, os.path.join(TESTDATA, 'oracle', 'make_tables.py'), '--out', folder, '--seed',
                    str(seed), '--count', str(count), '--keep-going', *more], check=False, stdout=subprocess.DEVNULL)
    made = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith('.json'):
            with open(os.path.join(folder, name)) as f:
                made[name[:-5]] = json.load(f)['tables']
    return made
