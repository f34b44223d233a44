"""Pages of the commands, made from what `h5bridge --help` and `h5bridge VERB --help` print."""
import os
import re
import subprocess

KINDS = ('What', 'Layout', 'Safety', 'Speed')    # headings of options
GROUP = 11      # columns of the names of groups
HEADING = re.compile(r'[A-Z][^:]*:\Z')


def help_text(program, *words):
    """What the program prints with --help, 100 columns wide."""
    process = subprocess.run([program, *words, '--help'], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             env={**os.environ, 'COLUMNS': '100', 'NO_COLOR': '1'}, timeout=60, check=False)
    if process.returncode:
        raise ValueError('%s --help ended with status %d: %s' % (
            ' '.join(['h5bridge', *words]), process.returncode, process.stderr.strip()))
    return process.stdout


def sections(text):
    """(heading, lines) of a help text; the heading of text without one is empty."""
    found = [('', [])]
    for line in text.splitlines():
        if HEADING.match(line):
            found.append((line[:-1], []))
        elif line and not line.startswith(' ') and found[-1][0] and found[-1][1] and not found[-1][1][-1]:
            found.append(('', [line]))     # a paragraph after a list
        else:
            found[-1][1].append(line)
    return [(heading, lines) for heading, lines in found if heading or any(lines)]


def items(lines):
    """[(name, [paragraph])] of a list of commands, arguments or options."""
    found = []
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for line in lines:
        depth = len(line) - len(line.lstrip())
        # options without a short name stand four columns further right
        if line.strip() and (depth == indent or depth == 6 and line.lstrip().startswith('--')):
            name, _, said = line.strip().partition('  ')
            found.append((name, [said.strip()] if said else []))
        elif not line.strip():
            if found and found[-1][1]:
                found[-1][1].append('')
        elif line.lstrip().startswith('- ') and found:
            paragraphs = found[-1][1]
            if paragraphs and paragraphs[-1].startswith('- '):
                paragraphs[-1] += '\n' + line.strip()
            else:
                paragraphs.append(line.strip())
        elif found:
            paragraphs = found[-1][1]
            if paragraphs and paragraphs[-1]:
                paragraphs[-1] += ' ' + line.strip()
            else:
                paragraphs.append(line.strip())
    return [(name, [said for said in paragraphs if said]) for name, paragraphs in found]


def plain(text):
    """Text of a help as Markdown: nothing in it is markup, but for `code` and lists."""
    parts = re.split(r'(`[^`]+`)', text)
    return ''.join(part if part.startswith('`') else re.sub(r'([\\*_<>\[\]#|])', r'\\\1', part) for part in parts)


def anchor(name):
    """The id of an option: its long name, else its short one."""
    long = re.search(r'--([\w-]+)', name)
    return long[1] if long else re.sub(r'\W+', '', name).lower()


def page(text, title, prefix=''):
    """The Markdown of a help text; the pages of commands in it begin with PREFIX."""
    usage, said, rest = '', [], []
    for heading, lines in sections(text):
        block = '\n'.join(lines).strip('\n')
        if not heading:
            # the usage is one line that clap does not set apart
            for line in block.splitlines():
                if line.startswith('Usage: '):
                    usage = line[len('Usage: '):]
                else:
                    said.append(plain(line))
        elif heading == 'Commands' and not prefix:
            rest.append('\n## Commands\n')
            for group, lines in groups(lines):
                rest.append('\n### %s\n' % group)
                rest += ['[`%s`](%s.md)\n\n:   %s\n' % (name, name, plain(' '.join(said))) for name, said in items(lines)]
        elif heading.startswith(('Arguments', 'Commands')) or heading.endswith(('Options', 'options')) or heading in KINDS:
            rest.append('\n## %s\n' % heading)
            for name, paragraphs in items(lines):
                if heading == 'Commands':
                    # clap's own `help` of a command that has commands has no page
                    rest.append('`%s`\n' % name if prefix and name == 'help' else '[`%s`](%s%s.md)\n' % (name, prefix, name))
                else:
                    rest.append('`%s` { #%s }\n' % (name, anchor(name)))
                body = [plain(paragraph) for paragraph in paragraphs] or ['']
                rest.append(':   ' + '\n\n    '.join(part.replace('\n', '\n    ') for part in body).rstrip() + '\n')
        else:
            # examples; a line that is not a command explains the one after it
            lines = re.sub(r'^  ', '', block, flags=re.MULTILINE)
            rest.append('\n## %s\n\n```sh\n%s\n```' % (heading, lines) if heading == 'Examples'
                        else '\n%s:\n\n```sh\n%s\n```' % (plain(heading), lines))
    return '# %s\n\n%s\n\n```text\n%s\n```\n%s\n' % (title, '\n'.join(said).strip(), usage, '\n'.join(rest))


def groups(lines):
    """[(group, lines)] of the list of the program's commands, which has the group before its first command."""
    found = []
    for line in filter(None, lines):
        if line[2] != ' ':
            found.append((line.split()[0], []))
        found[-1][1].append(line[GROUP:])
    return found


def verbs(text):
    """The names of the commands in a help text."""
    for heading, lines in sections(text):
        if heading == 'Commands':
            lists = [lines] if 'h5bridge [OPTIONS] <COMMAND>' not in text else [lines for _, lines in groups(lines)]
            return [name for lines in lists for name, _ in items(lines)]
    return []


def topics(program):
    """The pages of `help TOPIC`, a section each."""
    def shown(*words):
        return subprocess.run([program, 'help', *words], capture_output=True, text=True, check=True, timeout=60).stdout

    names = re.findall(r'^ {2}(\S+)', shown().split('\nTopics, ')[1], re.MULTILINE)
    section = '\n## %s { #%s }\n\n```text\n%s```\n'
    made = ''
    for name in names:
        title, _, text = shown(name).partition('\n\n')
        made += section % (title, name, text)
    return made


def pages(program):
    """{name: Markdown} of the program, `index`, of each command, and of commands in it: `shard.plan`."""
    text = help_text(program)
    names = verbs(text)
    if not names:
        raise ValueError('the help of h5bridge lists no commands')
    made = {'index': page(text, 'The program h5bridge')}
    for name in [*names, 'generate']:     # a command for packagers, which the list leaves out
        text = help_text(program, name)
        made[name] = page(text, 'h5bridge ' + name, name + '.')
        for step in verbs(text):
            if step == 'help':
                continue
            made['%s.%s' % (name, step)] = page(help_text(program, name, step), 'h5bridge %s %s' % (name, step))
    made['help'] += topics(program)
    return made
