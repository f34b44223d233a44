"""version.py VERSION: sets the version wherever it stands in the tree, and the date of the release; says which files changed.

version.py --notes VERSION: prints the section of CHANGELOG.md, for the page of the release.
"""
import datetime
import glob
import re
import sys

VERSION = r'\d+\.\d+\.\d+'
# A path dependency within the workspace, whose version is that of all
OF_WORKSPACE = re.compile(r'(\bpath = "[^"]+", version = "|\bversion = ")%s(?="(?:, path = "|[, }]))' % VERSION)


def section(text, version):
    """The lines below the heading of a version, or an error."""
    found = re.search(r'^## %s[^\n]*\n(.*?)(?=^## |\Z)' % re.escape(version), text, re.M | re.S)
    if found is None:
        sys.exit('CHANGELOG.md has no section "## %s": say first what is new in it' % version)
    return found[1].strip() + '\n'


def manifest(text, version):
    """A Cargo.toml with VERSION for the workspace and for dependencies by path."""
    text = re.sub(r'(?m)^(version = ")%s(")' % VERSION, r'\g<1>%s\2' % version, text)
    lines = [OF_WORKSPACE.sub(r'\g<1>' + version, line) if 'path = "' in line else line for line in text.split('\n')]
    return '\n'.join(lines)


def changed(version, today):
    """(path, old text, new text) of the files with a version."""
    rules = {path: lambda text: manifest(text, version) for path in ['Cargo.toml', *sorted(glob.glob('*/Cargo.toml')),
                                                                   *sorted(glob.glob('crates/*/Cargo.toml'))]}
    rules['recipe/recipe.yaml'] = lambda text: re.sub(r'(?m)^(  version: ")%s' % VERSION, r'\g<1>' + version, text)
    rules['CITATION.cff'] = lambda text: re.sub(r'(?m)^version: %s\n(date-released: .*\n)?' % VERSION,
                                                'version: %s\ndate-released: %s\n' % (version, today), text)
    rules['CHANGELOG.md'] = lambda text: re.sub(r'(?m)^## %s, not yet released$' % re.escape(version),
                                                '## %s, %s' % (version, today), text)
    for path, rule in rules.items():
        with open(path) as file:
            text = file.read()
        yield path, text, rule(text)


def main(*words):
    version = words[-1]
    if not re.fullmatch(VERSION, version):
        sys.exit('%s is not a version such as 0.1.0' % version)
    with open('CHANGELOG.md') as file:
        notes = section(file.read(), version)
    if words[:-1] == ('--notes',):
        print(notes, end='')
        return
    for path, old, new in changed(version, datetime.date.today().isoformat()):
        if new != old:
            with open(path, 'w') as file:
                file.write(new)
            print(path)


if __name__ == '__main__':
    main(*sys.argv[1:])
