"""Hooks of mkdocs (mkdocs.yml): pages that are generated, and Markdown as GitHub reads it.

The program is $H5BRIDGE, or target/debug/h5bridge.
"""
import ast
import logging
import os
import posixpath
import re
import sys

from mkdocs.structure.files import File

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'scripts', 'docs.d'))
import commands     # noqa: E402

LOG = logging.getLogger('mkdocs.plugins.h5bridge')
COMMANDS = 'reference/commands/'
# files of the repository that are on the site as well
COPIED = {'README.md': 'readme.md', 'CHANGELOG.md': 'changelog.md', 'CONTRIBUTING.md': 'contributing.md',
          'SECURITY.md': 'security.md', 'CODE_OF_CONDUCT.md': 'conduct.md',
          'examples/tutorial.ipynb': 'tutorial.ipynb', 'examples/day.ipynb': 'day.ipynb', 'examples/native_reader.py': 'native_reader.py',
          'examples/manifest_to_icechunk.py': 'manifest_to_icechunk.py',
          'LICENSE-MIT': 'LICENSE-MIT', 'LICENSE-APACHE': 'LICENSE-APACHE', 'CITATION.cff': 'CITATION.cff'}
# folders to which links lead, and the pages in their place
FOLDERS = {'docs/reference/formats': 'reference/formats/table.md',
           'docs/explanation/decisions': 'explanation/decisions/0001-digest-while-converting.md'}
MADE = {}
TITLES = {}     # of the pages, by path, from the navigation


def on_config(config):
    """Makes the pages of the commands, and puts them into the navigation."""
    program = os.environ.get('H5BRIDGE') or os.path.join(ROOT, 'target', 'debug', 'h5bridge')
    MADE.clear()
    MADE.update({COMMANDS + name + '.md': text for name, text in commands.pages(program).items()})
    config.nav = expanded(config.nav)
    TITLES.clear()
    TITLES.update(titles(config.nav))
    return config


def titles(entries):
    """{path: title} of a navigation."""
    found = {}
    for entry in entries:
        for title, value in entry.items() if isinstance(entry, dict) else ():
            found.update(titles(value) if isinstance(value, list) else {value: title})
    return found


def expanded(entries):
    """The navigation with the pages of the commands in place of their folder."""
    found = []
    for entry in entries:
        if isinstance(entry, dict):
            found.append({title: expanded(value) if isinstance(value, list) else value for title, value in entry.items()})
        elif entry == COMMANDS:
            found += [path if path.endswith('/index.md') else {posixpath.basename(path)[:-len('.md')]: path} for path in MADE]
        else:
            found.append(entry)
    return found


def on_files(files, config):
    """Adds the generated pages, and files from outside of docs/."""
    for path, text in MADE.items():
        files.append(File.generated(config, path, content=text))
    for source, path in COPIED.items():
        with open(os.path.join(ROOT, source), encoding='utf-8') as file:
            text = file.read()
        if source.endswith('.md'):
            text = re.sub(r'\]\(([^)#:]+)', moved, text)
        files.append(File.generated(config, path, content=text))
    return files


def moved(match):
    """A link of a file in the root of the repository, as it is on the site."""
    target = match[1]
    return '](' + (COPIED.get(target) or FOLDERS.get(target) or target.removeprefix('docs/'))


def outside_code(text, change, instead=None):
    """`text` with `change` applied to what is neither in a fence nor in backticks, and `instead` in place of code."""
    parts = re.split(r'(^ *```.*?^ *```[^\n]*$|`[^`\n]+`)', text, flags=re.MULTILINE | re.DOTALL)
    return ''.join(change(part) if number % 2 == 0 else part if instead is None else instead
                   for number, part in enumerate(parts))


def rust_block(match):
    """A Rust block without what rustdoc hides, and with a language that Pygments knows."""
    return '```rust\n' + re.sub(r'^# .*\n', '', match[1], flags=re.MULTILINE) + '```'


def on_page_markdown(markdown, page, config, files):
    """Markdown of GitHub as Python-Markdown reads it; names of documents become links."""
    here = page.file.src_uri
    if here == 'index.md':
        page.meta['hide'] = ['navigation', 'toc']
    if here == 'reference/python.md':
        markdown = name_blocks(markdown)
        check_names(markdown, here)

    check_lists(markdown, here)
    folder = posixpath.dirname(here) or '.'

    def link(match):
        target = match[1]
        if not files.get_file_from_path(target):
            return match[0]
        return '[%s](%s)' % (TITLES.get(target, match[0]), posixpath.relpath(target, folder))

    def titled(match):
        # a name of a file says little on a site
        target = posixpath.normpath(posixpath.join(folder, match[2]))
        return '[%s](%s' % (TITLES.get(target, match[1]), match[2])

    def inside(match):
        # a file outside of docs/ that is on the site
        copied = COPIED.get(posixpath.normpath(posixpath.join('docs', folder, match[1])))
        return '](' + posixpath.relpath(copied, folder) if copied else match[0]

    markdown = re.sub(r'^```rust[^\n]*\n(.*?)^```', rust_block, markdown, flags=re.MULTILINE | re.DOTALL)
    # in cells of tables `a\|b` stands for a|b, also in code
    markdown = re.sub(r'^\|.*$', lambda row: re.sub(
        r'`[^`]+`', lambda code: code[0].replace(r'\|', '|'), row[0]), markdown, flags=re.MULTILINE)

    def change(text):
        text = re.sub(r'\[([\w/-]+\.md)\]\(([^)#:\s]+)', titled, text)
        # two pairs of brackets are not a link to GitHub
        text = re.sub(r'\]\(([^)#:\s]+)', inside, text)
        text = re.sub(r'\] \[(?=[^\]]*\](?!\())', r'] \[', text)
        return re.sub(r'(?<![\w/.\[(-])docs/([\w/-]+\.md)(?![\w\]])', link, text)

    return outside_code(markdown, change)


def name_blocks(markdown):
    """`markdown` with a block of mkdocstrings for each name of lines such as `::: h5bridge._verbs: pack, unpack {OPTIONS}`."""
    def blocks(match):
        options = '\n    options: ' + match[3] if match[3] else ''
        return '\n\n'.join('::: %s.%s%s' % (match[1], name, options) for name in match[2].split(', '))

    return re.sub(r'^::: ([\w.]+): ([\w, ]+?)(?: (\{.*\}))?$', blocks, markdown, flags=re.MULTILINE)


def check_lists(markdown, page):
    """Python-Markdown begins a list after an empty line only; GitHub everywhere."""
    previous, is_list = '', False
    for line in outside_code(markdown, lambda text: text, '```').splitlines():
        begins = re.match(r'(?:[-*]|1\.) ', line)
        if begins and previous.strip() and not is_list and not previous.startswith('#'):
            LOG.warning("%s: this list needs an empty line before it: '%s'", page, line[:60])
        is_list = bool(begins) or is_list and bool(line.strip())
        previous = line


def check_names(markdown, page):
    """Every public name of the Python package is on its page."""
    with open(os.path.join(ROOT, 'python', 'h5bridge', '__init__.py'), encoding='utf-8') as file:
        tree = ast.parse(file.read())
    values = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
              if isinstance(target, ast.Name) and target.id in ('_HOMES', '_MODULES')}
    homes, modules = ast.literal_eval(values['_HOMES']), ast.literal_eval(values['_MODULES'])
    shown = set(re.findall(r'^::: h5bridge\.([\w.]+)$', markdown, re.MULTILINE))
    public = {'%s.%s' % (home, name) for home, names in homes.items() for name in names} | set(modules)
    for name in sorted(public - shown):
        LOG.warning("%s lacks h5bridge.%s: add it to '::: h5bridge.%s'", page, name.split('.')[-1], name.rpartition('.')[0])
