"""testing/clauses.toml: each clause of the format documents names what is done with it, and tests that exist; docs/reference/clauses.md
is made from it."""
import os
import re
import sys
from collections import Counter

import pytest

import support

sys.path.insert(0, os.path.join(support.ROOT, 'scripts', 'docs.d'))
import clauses  # noqa: E402

CLAUSES = clauses.read()
HEADING = re.compile(r'#{2,4} (.+)')
NUMBERED = re.compile(r'(\d+(?:\.\d+)*)\.? ')


def headings(name):
    """The sections of a document: their numbers, or the words of those without one."""
    with open(os.path.join(support.ROOT, 'docs', 'reference', clauses.DOCUMENTS[name]), encoding='utf-8') as file:
        text = re.sub(r'^```.*?^```', '', file.read(), flags=re.MULTILINE | re.DOTALL)
    found = [match[1] for line in text.splitlines() if (match := HEADING.fullmatch(line))]
    numbers = [match[1] for heading in found if (match := NUMBERED.match(heading))]
    # parts and appendices of a document with numbers gather or repeat its sections
    return numbers or found


def functions_of(path):
    """The names of the test functions of a file in Python or Rust."""
    with open(os.path.join(support.ROOT, path), encoding='utf-8') as file:
        text = file.read()
    if path.endswith('.py'):
        return set(re.findall(r'^def (test_\w+)\(', text, re.MULTILINE))
    return set(re.findall(r'#\[test\]\n(?:\s*(?:#\[.*\]|//.*)\n)*\s*fn (\w+)\(', text))


def place(clause):
    return '%(document)s %(section)s: %(says)s' % clause


def test_members():
    for clause in CLAUSES:
        assert list(clause) == ['document', 'section', 'says', 'state', 'judge', 'test'], place(clause)
        assert clause['document'] in clauses.DOCUMENTS and clause['state'] in clauses.STATES, place(clause)
        assert clause['says'] and '\n' not in clause['says'] and clause['judge'], place(clause)
        assert bool(clause['test']) == (clause['judge'] != clauses.NOT_JUDGED), place(clause)
    assert max(Counter(map(place, CLAUSES)).values()) == 1


def test_sections_exist():
    unknown = [place(clause) for clause in CLAUSES if clause['section'] not in headings(clause['document'])]
    assert not unknown


@pytest.mark.parametrize('name', clauses.DOCUMENTS)
def test_every_section_has_a_clause(name):
    sections = [clause['section'] for clause in CLAUSES if clause['document'] == name]

    def is_covered(heading):
        return any(section == heading or section.startswith(heading + '.') for section in sections)

    assert [heading for heading in headings(name) if not is_covered(heading)] == []
    # in the order of the document
    order = headings(name)
    assert sections == sorted(sections, key=order.index)


def test_tests_exist():
    named = {tuple(test.split('::')) for clause in CLAUSES for test in clause['test']}
    known = {path: functions_of(path) for path, _ in named if os.path.exists(os.path.join(support.ROOT, path))}
    assert [test for test in sorted(named) if test[1] not in known.get(test[0], ())] == []


def test_there_are_enough():
    """A clause of each kind, and more than a few: an empty list would pass everything else."""
    assert len(CLAUSES) >= 250
    assert {clause['state'] for clause in CLAUSES} == set(clauses.STATES)


def test_page():
    with open(clauses.PAGE, encoding='utf-8') as file:
        assert file.read() == clauses.page(CLAUSES), 'scripts/docs.d/clauses.py writes the page again'
