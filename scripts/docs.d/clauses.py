#!/usr/bin/env python3
"""The page docs/reference/clauses.md, made of testing/clauses.toml.

    scripts/docs.d/clauses.py            # writes the page
    scripts/docs.d/clauses.py --check    # ends with status 1 if the page is not that of the clauses
"""
import os
import sys
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(ROOT, 'testing', 'clauses.toml')
PAGE = os.path.join(ROOT, 'docs', 'reference', 'clauses.md')

# {name in the clauses: path below docs/reference}
DOCUMENTS = {'table': 'formats/table.md', 'stman': 'formats/stman.md', 'engines': 'formats/engines.md', 'sion': 'formats/sion.md',
             'vt': 'formats/vt.md', 'blz': 'formats/blz.md', 'containers': 'containers.md'}
TITLES = {'table': 'Tables', 'stman': 'Storage managers', 'engines': 'Virtual column engines, Dysco, other managers', 'sion': 'SION', 'vt': 'vt',
          'blz': 'BLZ, bcolz and bloscpack', 'containers': 'Containers'}
STATES = {
    'read': 'this program reads it',
    'written': 'this program writes it',
    'read, written': 'both',
    'refused': 'an error that says what is wrong',
    'left out': 'named, and the rest is converted',
    'ignored': 'neither read nor written: derived data, or bytes without a meaning',
    'not seen': 'no file has it; nothing is done about it',
}
NOT_JUDGED = 'not judged'
INTRODUCTION = """# Clauses

Each clause of the format documents: what this program does with it, who decides what is right, and the test that fails if it is done wrongly.
This page is made from testing/clauses.toml by scripts/docs.d/clauses.py; tests/python/project/test_clauses.py compares both, and looks
for each test and each section.

| state | meaning |
|---|---|
"""
JUDGES = """
A judge is another program or its files: python-casacore reads the table, h5py the file. *Casacore's bytes* are literals or tables of testdata/ that
casacore wrote; *made bytes* were put together by the test, where no program writes them; a *unit test* compares with what the document says.
*Not judged*: the code follows the document, and no test would notice a mistake.
"""


def read(path=SOURCE):
    """The clauses, in order: dicts with document, section, says, state, judge, test."""
    with open(path, 'rb') as file:
        return tomllib.load(file)['clause']


def cell(text):
    return text.replace('|', '\\|')


def counts(clauses):
    """A line for each document: its clauses by state, and how many are not judged."""
    lines = ['| document | clauses | %s | %s |' % (' | '.join(STATES), NOT_JUDGED), '|---' * (len(STATES) + 3) + '|']
    for name, path in [*DOCUMENTS.items(), (None, None)]:
        own = [clause for clause in clauses if name in (None, clause['document'])]
        numbers = [sum(clause['state'] == state for clause in own) for state in STATES]
        numbers.append(sum(clause['judge'] == NOT_JUDGED for clause in own))
        title = '[%s](%s)' % (TITLES[name], path) if name else 'all'
        lines.append('| %s | %d | %s |' % (title, len(own), ' | '.join(map(str, numbers))))
    return '\n'.join(lines) + '\n'


def page(clauses):
    """The text of the page."""
    parts = [INTRODUCTION + ''.join('| %s | %s |\n' % entry for entry in STATES.items()) + JUDGES, counts(clauses)]
    for name in DOCUMENTS:
        lines = ['## %s\n' % TITLES[name], '| § | clause | state | judge | tests |', '|---|---|---|---|---|']
        last = None
        for clause in clauses:
            if clause['document'] != name:
                continue
            section, last = '' if clause['section'] == last else clause['section'], clause['section']
            tests = '<br>'.join('`%s`' % test for test in clause['test'])
            lines.append('| %s | %s | %s | %s | %s |' % (cell(section), cell(clause['says']), clause['state'], clause['judge'], tests))
        parts.append('\n'.join(lines) + '\n')
    return '\n'.join(parts)


def main(words):
    text = page(read())
    if words == ['--check']:
        with open(PAGE, encoding='utf-8') as file:
            return 0 if file.read() == text else 'docs/reference/clauses.md is not that of testing/clauses.toml: scripts/docs.d/clauses.py'
    if words:
        return __doc__
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write(text)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
