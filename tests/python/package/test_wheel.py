"""The installed package: the command in its environment, what it exports, interpreters that it refuses.

With H5BRIDGE_LONG=1 the wheel and the source archive that scripts/wheel builds as well, which takes a quarter of an hour;
H5BRIDGE_DIST names a folder with finished ones instead.
"""
import glob
import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
import urllib.request

import pytest

import support
from range_server import RangeServer
from shells import COMPLETED, typed

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
COMMAND = os.path.join(sysconfig.get_path('scripts'), 'h5bridge')
COMPLETIONS = {'bash': 'bash-completion/completions/h5bridge', 'zsh': 'zsh/site-functions/_h5bridge',
               'fish': 'fish/vendor_completions.d/h5bridge.fish'}
EXTRAS = {'xarray', 'dask', 'distributed', 'plot', 'arrow', 'pandas', 'astropy', 'fsspec', 'virtualizarr'}
LONG = support.LONG or os.environ.get('H5BRIDGE_DIST')

with open(os.path.join(support.ROOT, 'Cargo.toml'), 'rb') as opened:
    VERSION = tomllib.load(opened)['workspace']['package']['version']


def run(*words, **options):
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, **options)


def python(code, executable=sys.executable):
    """What a new interpreter prints."""
    process = run(executable, '-c', code)
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


# ---- the package in .venv -------------------------------------------------------------------------------------------

def test_command_is_installed():
    assert os.path.exists(COMMAND), COMMAND + ' is missing: . scripts/setup && . scripts/setup-python'
    assert run(COMMAND, '-V').stdout == 'h5bridge %s\n' % VERSION
    assert run(sys.executable, '-m', 'h5bridge', '-V').stdout == 'h5bridge %s\n' % VERSION
    assert importlib.metadata.version('h5bridge') == VERSION
    assert python('import h5bridge; print(h5bridge.__version__)') == VERSION


def test_metadata():
    found = importlib.metadata.metadata('h5bridge')
    assert set(found.get_all('Provides-Extra')) == EXTRAS
    # nothing but numpy without an extra
    assert [line for line in found.get_all('Requires-Dist') if 'extra' not in line] == ['numpy>=1.26']
    engines = importlib.metadata.entry_points(group='xarray.backends')
    assert [entry.value for entry in engines if entry.name == 'h5bridge'] == ['h5bridge.xarray:H5bridgeBackend']


@pytest.mark.parametrize('words, code', [
    (['--help'], support.DONE),
    (['verify', DEMO, DEMO], support.DONE),
    (['nonsense'], support.USAGE),
    (['info', '/nowhere/my.ms'], support.DAMAGED),
    (['to-hdf5', DEMO, support.ROOT], support.EXISTS),
    (['verify', DEMO, os.path.join(DEMO, 'ANTENNA')], support.DIFFERENT),
], ids=lambda value: str(value) if isinstance(value, int) else value[0])
def test_command_is_the_program(words, code):
    """Exit codes and all that is printed are those of the program."""
    installed, program = run(COMMAND, *words), run(support.H5BRIDGE, *words)
    assert installed.returncode == program.returncode == code
    assert (installed.stdout, installed.stderr) == (program.stdout, program.stderr)


def test_closed_pipe_prints_no_traceback():
    process = subprocess.Popen([COMMAND, 'info', DEMO], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ''
    assert process.wait(60) == support.DONE


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_signals_end_the_command(number, big_ms, tmp_path):
    out = tmp_path / 'out.h5'
    process = subprocess.Popen([COMMAND, 'to-hdf5', '--compress', 'gzip:9', '--overwrite', big_ms, str(out)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.time() + 60
    while not support.partials(str(out)):
        assert time.time() < until and process.poll() is None, 'it ended before it could be stopped'
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == support.INTERRUPTED, errors
    assert 'Traceback' not in errors and os.listdir(tmp_path) == []


@pytest.fixture(scope='session')
def extension():
    return python('import h5bridge._native as n; print(n.__file__)')


def test_one_exported_symbol(extension):
    """Another HDF5 in the process neither sees ours nor replaces it."""
    lines = run('nm', '-D', '--defined-only', extension).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ['PyInit__native']


def test_needs_no_libpython(extension):
    needed = re.findall(r'NEEDED.*\[(.*)\]', run('readelf', '-d', extension).stdout)
    assert 'libc.so.6' in needed and not [name for name in needed if 'python' in name or 'hdf5' in name]


def test_starts_without_numpy():
    """What the command imports decides how fast it starts."""
    loaded = python('import sys; sys.argv = ["h5bridge", "--version"]\n'
                    'import h5bridge.__main__ as m\ntry: m.main()\nexcept SystemExit: print(*sys.modules)').splitlines()[-1].split()
    assert 'h5bridge._native' in loaded
    assert not {'numpy', 'xarray', 'importlib.metadata', 'asyncio'} & set(loaded)


def test_second_interpreter_is_refused():
    """PyO3 refuses from Python 3.12 on, the extension itself before."""
    said = python('''
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import h5bridge._native
code = "try:\\n import h5bridge._native\\n print('imported')\\nexcept ImportError as error: print('refused:', error)"
print(interpreters.run_string(interpreters.create(), code), flush=True)
''')
    assert re.match('refused: .*interpreters', said), said
    # the first one goes on, also when it imports the extension once more
    assert python('import sys, h5bridge._native; del sys.modules["h5bridge._native"]\n'
                  'import h5bridge._native as n; print(n.main(["h5bridge", "--version"]))').endswith('\n0')


# ---- what is distributed --------------------------------------------------------------------------------------------

@pytest.fixture(scope='session')
def dist(tmp_path_factory):
    """The folder with the wheel and the source archive."""
    if not LONG:
        pytest.skip('H5BRIDGE_LONG=1 builds the wheel (a quarter of an hour)')
    if os.environ.get('H5BRIDGE_DIST'):
        return os.environ['H5BRIDGE_DIST']
    folder = tmp_path_factory.mktemp('dist')
    subprocess.run([os.path.join(support.ROOT, 'scripts', 'wheel'), '--out', folder], check=True, stdin=subprocess.DEVNULL)
    return str(folder)


@pytest.fixture(scope='session')
def installed(dist, tmp_path_factory):
    """A new environment with the wheel; there is no compiler on the PATH of pip."""
    wheel, = glob.glob(os.path.join(dist, 'h5bridge-*%s.whl' % os.uname().machine))
    folder = tmp_path_factory.mktemp('environment')
    subprocess.run([sys.executable, '-m', 'venv', folder / 'venv'], check=True)
    tools = folder / 'bin'
    tools.mkdir()
    environment = {name: value for name, value in os.environ.items() if name.startswith(('PIP_', 'HTTP', 'http', 'SSL'))}
    subprocess.run([folder / 'venv' / 'bin' / 'pip', 'install', '--quiet', '--only-binary', ':all:', wheel], check=True,
                   env={**environment, 'PATH': str(tools), 'HOME': str(folder)})
    return folder / 'venv'


def test_wheel_and_archive_hold_what_they_promise(dist):
    """Size, tag, symbols, auditwheel's opinion, files: scripts/wheel asks the same before it ends."""
    files = sorted(glob.glob(os.path.join(dist, 'h5bridge-*')))
    assert len(files) >= 2 and files[-1].endswith('.tar.gz')
    tools = os.path.join(support.ROOT, '.venv', 'wheel', 'bin', 'python')
    for file in files:
        checked = run(tools, os.path.join(support.ROOT, 'scripts', 'wheel.d', 'check.py'), file)
        assert checked.returncode == 0, checked.stderr


def test_wheel_converts(installed, tmp_path):
    command = installed / 'bin' / 'h5bridge'
    out = tmp_path / 'out.h5'
    environment = {'PATH': str(installed / 'bin')}
    assert run(command, 'to-hdf5', DEMO, out, env=environment).returncode == 0
    assert run(command, 'verify', DEMO, out, env=environment).returncode == 0
    support.h5bridge('to-hdf5', DEMO, tmp_path / 'program.h5')
    assert out.read_bytes() == (tmp_path / 'program.h5').read_bytes()
    shape = python('import h5bridge; print(h5bridge.open_table(%r)["DATA"][:].shape)' % DEMO, installed / 'bin' / 'python')
    assert re.fullmatch(r'\(\d+, \d+, \d+\)', shape)
    extension = python('import h5bridge._native as n; print(n.__file__)', installed / 'bin' / 'python')
    lines = run('nm', '-D', '--defined-only', extension).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ['PyInit__native']
    names = run(installed / 'bin' / 'pip', 'list', '--format', 'freeze').stdout.splitlines()
    assert {name.partition('==')[0] for name in names} - {'pip', 'setuptools'} == {'h5bridge', 'numpy'}


def test_wheel_has_the_server(installed):
    """`serve` shows the page, and ends well."""
    command = [str(installed / 'bin' / 'h5bridge'), 'serve', '--json', '--port', '0', DEMO]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        address = json.loads(server.stdout.readline())['url']
        # the token of the address becomes a cookie
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=30) as answer:
            page = answer.read()
        assert answer.status == 200 and b'<html' in page.lower()
    finally:
        server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=30) == 0


def test_wheel_reads_addresses(installed, tmp_path):
    command = installed / 'bin' / 'h5bridge'
    assert run(command, 'to-hdf5', DEMO, tmp_path / 'demo.h5').returncode == 0
    with RangeServer(tmp_path) as server:
        done = run(command, 'info', '--json', server.url('demo.h5'))
    assert done.returncode == 0 and json.loads(done.stdout)['kind'] == 'MeasurementSet'


def test_wheel_installs_manual_and_completions(installed):
    share = installed / 'share'
    assert (share / 'man' / 'man1' / 'h5bridge-to-hdf5.1').read_text().startswith('.TH h5bridge-to-hdf5 1')
    for shell, file in COMPLETIONS.items():
        assert (share / file).read_text() == run(installed / 'bin' / 'h5bridge', 'completions', shell).stdout, shell


def completed(shell, line, share, folder):
    """The words that an interactive shell calls h5bridge with when Tab completes LINE, by what the wheel laid down under SHARE."""
    if shell == 'bash':
        # bash-completion looks for the file of a command by itself
        start = 'bind "set bell-style none"; BASH_COMPLETION_USER_DIR=%s/bash-completion; . /usr/share/bash-completion/bash_completion' % share
        return typed(['bash', '--norc', '--noprofile', '-i'], start, line, folder)
    if shell == 'zsh':
        start = 'unsetopt beep; fpath=(%s/zsh/site-functions $fpath); autoload -U compinit; compinit -u -D' % share
        return typed(['zsh', '-f', '-i'], start, line, folder)
    # fish finds what vendors install under XDG_DATA_DIRS, for commands that exist
    path = '%s:%s' % (share.parent / 'bin', os.environ['PATH'])
    environment = dict(os.environ, HOME=str(folder), PATH=path, XDG_DATA_DIRS='%s:/usr/share' % share, XDG_CONFIG_HOME=str(folder / 'config'))
    said = run('fish', '-c', 'complete -C "h5bridge %s"' % line, cwd=folder, env=environment)
    return [text.split('\t')[0] for text in said.stdout.splitlines()]


@pytest.mark.parametrize('shell', COMPLETIONS)
def test_wheel_completes(shell, installed, tmp_path):
    """Verbs, options, values and files, where nothing but the wheel is installed."""
    if not shutil.which(shell) or shell == 'bash' and not os.path.exists('/usr/share/bash-completion/bash_completion'):
        pytest.skip('%s or its completions are missing' % shell)
    (tmp_path / 'observation.h5').touch()
    for line, last in COMPLETED:
        words = completed(shell, line, installed / 'share', tmp_path)
        assert last in words if shell == 'fish' else words == [*line.split()[:-1], last], (line, words)
    # the words come from the wheel: without its files nothing completes a verb
    assert 'to-hdf5' not in completed(shell, 'to-hd', tmp_path / 'share', tmp_path)


@pytest.mark.skipif(not shutil.which('man'), reason='man is missing')
def test_wheel_shows_its_manual(installed):
    """`man` finds a page for the command and each verb in the folder of the environment."""
    environment = dict(os.environ, MANPATH=str(installed / 'share' / 'man'), MANPAGER='cat', MANWIDTH='100', LC_ALL='C.UTF-8')
    pages = sorted(page.stem for page in (installed / 'share' / 'man' / 'man1').glob('*.1'))
    assert {'h5bridge', 'h5bridge-info', 'h5bridge-lint', 'h5bridge-batch-run', 'h5bridge-shard-plan'} <= set(pages)
    for page in pages:
        shown = run('man', '--warnings', page, env=environment)
        assert (shown.returncode, shown.stderr) == (0, '') and 'GLOBAL OPTIONS' in shown.stdout, (page, shown.stderr)
        assert str(installed) in run('man', '--where', page, env=environment).stdout


def test_wheel_starts_at_once(installed):
    """Below 60 ms; of those python itself takes a part. The best of 20 runs, since other processes are running."""
    def seconds(*words):
        started = time.perf_counter()
        assert run(*words).returncode == 0
        return time.perf_counter() - started
    ours = min(seconds(installed / 'bin' / 'h5bridge', '--version') for _ in range(20))
    bare = min(seconds(installed / 'bin' / 'python', '-c', 'pass') for _ in range(20))
    assert ours < 0.060, 'h5bridge %.0f ms, python %.0f ms' % (1000 * ours, 1000 * bare)


def test_archive_builds_nothing_of_testdata(dist, tmp_path):
    """The members of the workspace that stay out leave no trace: cargo accepts what is unpacked."""
    archive, = glob.glob(os.path.join(dist, 'h5bridge-*.tar.gz'))
    shutil.unpack_archive(archive, tmp_path)
    folder, = tmp_path.iterdir()
    checked = run('cargo', 'metadata', '--format-version', '1', '--locked', '--manifest-path', folder / 'python' / 'Cargo.toml')
    assert checked.returncode == 0, checked.stderr
