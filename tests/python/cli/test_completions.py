"""Completions in real shells, the manual in real groff and man, and what every help has."""
import os
import re
import shutil
import subprocess

import pytest

import support
from shells import COMPLETED, typed
from support import h5bridge

SHELLS = {'bash': 'h5bridge', 'zsh': '_h5bridge', 'fish': 'h5bridge.fish'}

def needs_program(name):
    return pytest.mark.skipif(not shutil.which(name), reason=name + ' is missing')


def verbs(*words):
    """The names of all verbs, from the help of the program, or of the parts of a verb."""
    listed = h5bridge(*words, '--help').stdout.split('\nCommands:\n')[1].split('\n\nOptions:')[0]
    # the program's are in groups, whose names come first
    return re.findall(r'^ {2}(\S+)' if words else r'^.{11}([a-z][\w-]*)', listed, re.MULTILINE)


@pytest.fixture
def folder(tmp_path):
    """A folder with a file whose name can be completed, and the scripts of all shells."""
    (tmp_path / 'observation.h5').touch()
    for shell, name in SHELLS.items():
        (tmp_path / 'scripts').mkdir(exist_ok=True)
        (tmp_path / 'scripts' / name).write_text(h5bridge('completions', shell).stdout)
    return tmp_path


@needs_program('bash')
@pytest.mark.night('three shells on a terminal')
@pytest.mark.skipif(not os.path.exists('/usr/share/bash-completion/bash_completion'), reason='bash-completion is missing')
@pytest.mark.parametrize('line, last', COMPLETED)
def test_bash(line, last, folder):
    start = 'bind "set bell-style none"; . /usr/share/bash-completion/bash_completion; . scripts/h5bridge'
    words = typed(['bash', '--norc', '--noprofile', '-i'], start, line, folder)
    assert words == [*line.split()[:-1], last]


@needs_program('zsh')
@pytest.mark.night('three shells on a terminal')
@pytest.mark.parametrize('line, last', COMPLETED)
def test_zsh(line, last, folder):
    start = 'unsetopt beep; fpath=($PWD/scripts $fpath); autoload -U compinit; compinit -u -D'
    words = typed(['zsh', '-f', '-i'], start, line, folder)
    assert words == [*line.split()[:-1], last]


@needs_program('fish')
@pytest.mark.night('three shells on a terminal')
@pytest.mark.parametrize('line, last', COMPLETED)
def test_fish(line, last, folder):
    process = subprocess.run(['fish', '--no-config', '-c', 'source scripts/h5bridge.fish; complete -C "h5bridge %s"' % line],
                             cwd=folder, capture_output=True, text=True, timeout=30, env=dict(os.environ, HOME=str(folder)))
    assert last in [text.split('\t')[0] for text in process.stdout.splitlines()], process.stdout + process.stderr


@needs_program('bash')
@pytest.mark.night('three shells on a terminal')
def test_bash_shows_files_where_nothing_is_typed(folder):
    script = 'source scripts/h5bridge; COMPREPLY=(x); _h5bridge h5bridge "" info; echo "${#COMPREPLY[@]}"; ' \
             'COMP_WORDS=(h5bridge help ""); COMP_CWORD=2; _h5bridge h5bridge "" help; echo "${COMPREPLY[*]}"'
    script = script.replace('COMPREPLY=(x)', 'COMP_WORDS=(h5bridge info ""); COMP_CWORD=2', 1)
    said = subprocess.run(['bash', '-c', script], cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0] == '0' and 'exit-codes' in said[1], said


def test_completions_are_what_packages_install(tmp_path):
    for shell, name in SHELLS.items():
        h5bridge('generate', shell, tmp_path)
        assert (tmp_path / name).read_text() == h5bridge('completions', shell).stdout


@needs_program('groff')
def test_manual(tmp_path):
    """Every page is rendered without a warning; man shows it."""
    h5bridge('generate', 'man', tmp_path)
    pages = sorted(tmp_path.glob('*.1'))
    names = verbs() + ['%s-%s' % (verb, part) for verb in ('batch', 'shard', 'vt') for part in verbs(verb) if part != 'help']
    assert {page.stem for page in pages} == {'h5bridge'} | {'h5bridge-' + name for name in names if name != 'help'}
    for page in pages:
        made = subprocess.run(['groff', '-man', '-Tutf8', '-ww', page], capture_output=True, text=True, check=True)
        assert made.stderr == '' and made.stdout, (page.name, made.stderr)
        if shutil.which('man'):
            shown = subprocess.run(['man', '--warnings', '-l', page], capture_output=True, text=True, check=True,
                                   env=dict(os.environ, MANPAGER='cat', MANWIDTH='100', LC_ALL='C.UTF-8'))
            assert shown.stderr == '' and 'GLOBAL OPTIONS' in shown.stdout, (page.name, shown.stderr)


# ---- help -----------------------------------------------------------------------------------------------------------

def options(text):
    return set(re.findall(r'(?<![\w-])--[a-z][\w-]*', text))


def test_every_help_has_examples_and_ends_with_the_global_options():
    helps = {verb: h5bridge(verb, '--help').stdout for verb in [*verbs(), 'generate']}
    for verb, text in helps.items():
        assert text == h5bridge('help', verb).stdout
        # a long example goes on in the next line
        examples = re.split(r'\n +(?=h5bridge )', text.split('\n\n')[0])[1:]
        assert text.startswith('Examples:\n') and examples, verb
        for line in examples:
            # another verb may have to come before
            assert options(line) <= options(helps[line.split()[1]]), line
        assert any(line.startswith('h5bridge ' + verb) for line in examples), verb
        last = re.findall(r'^(\S.*):$', text, re.MULTILINE)[-1]
        assert last == 'Global options', (verb, last)
        found = text.split('\nGlobal options:\n')[1]
        assert {'--json', '--quiet', '--strict', '--lock-timeout', '--no-lock'} <= options(found)
        assert '\n\nOptions' not in found and not re.search(r'^\S', found, re.MULTILINE), 'something follows the global options'
    assert options(found) <= options(h5bridge('--help').stdout)


def topics():
    listed = h5bridge('help').stdout.split('\nTopics, shown by h5bridge help TOPIC:\n')[1]
    return dict(re.findall(r'^ {2}(\S+) +(.+)$', listed, re.MULTILINE))


def test_topics():
    """Each topic of the list has its page; what the pages name exists."""
    found = topics()
    assert {'formats', 'layout', 'selecting', 'compression', 'containers', 'live', 'exit-codes', 'environment'} <= set(found)
    helps = {verb: options(h5bridge(verb, '--help').stdout) for verb in verbs()}
    every = set().union(*helps.values())
    for name, title in found.items():
        page = h5bridge('help', name).stdout
        assert page.startswith(title + '\n\n')
        assert options(page) <= every, (name, options(page) - every)
        for verb, rest in re.findall(r'^ +h5bridge ([a-z][\w-]*)(.*)$', page, re.MULTILINE):
            # a wide gap ends the command
            assert options(re.split(r' {3,}', rest)[0]) <= helps[verb], (name, verb, rest)
        for document in re.findall(r'docs/[\w/]+\.md', page):
            assert os.path.exists(os.path.join(support.ROOT, document)), (name, document)


def test_topic_of_the_environment_has_every_variable_that_is_read():
    read = set()
    for crate in ('crates', 'src', 'h5bridge/src'):
        for root, folders, names in os.walk(os.path.join(support.ROOT, crate)):
            folders[:] = [name for name in folders if name != 'tests']
            for name in names:
                with open(os.path.join(root, name), 'rb') as file:
                    text = file.read().decode(errors='replace').split('#[cfg(test)]')[0]
                read |= set(re.findall(r'(?:env::var(?:_os)?\(|check_environment\(\w+, )"(\w+)"', text))
    page = h5bridge('help', 'environment').stdout
    assert {'NO_COLOR', 'HOME', 'HDF5_VDS_PREFIX'} <= read
    assert {name for name in read if not re.search(r'\b%s\b' % name, page)} == set()


def test_exit_codes_are_those_of_the_readme():
    page = h5bridge('help', 'exit-codes').stdout
    assert re.findall(r'^ +(\d+)  ', page, re.MULTILINE) == [str(code) for code in (*range(9), 130)]


def test_misspelt_words():
    for words, meant in ((['to-hdf'], 'to-hdf5'), (['to-hdf5', 'a', 'b', '--colums'], '--columns'), (['help', 'format'], 'formats'),
                         (['pack', 'a', 'b', '--format', 'multifle'], 'multifile')):
        said = h5bridge(*words, code=support.USAGE).stderr
        assert re.search(r'tip: .*%s' % re.escape(meant), said), said
