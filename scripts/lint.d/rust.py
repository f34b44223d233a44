"""What the lint needs to know of Rust source: comments, strings, code without tests, and the imports among modules."""
import os
import re
from dataclasses import dataclass, field


@dataclass
class Text:
    """A comment or a string literal, with the line it begins on."""
    line: int
    value: str
    kind: str = ''          # of a comment: 'doc', 'plain', or 'beside' code on its line
    start: int = 0          # offset of a string in the file


@dataclass
class Import:
    """A name that one module takes from another one."""
    source: 'Module'
    target: 'Module'
    line: int
    path: str


@dataclass
class Use:
    """One leaf of a `use` tree."""
    path: list
    name: str               # the name that it has in this module; '*' for a glob
    line: int
    is_public: bool


@dataclass
class Module:
    """A source file."""
    name: str               # 'table/column'; a mod.rs has the name of its folder, lib.rs 'lib', main.rs 'h5bridge/main'
    path: str               # relative to the project
    code: str               # comments, strings and tests blanked; lines stay where they are
    comments: list
    strings: list           # outside tests
    is_test: bool = False
    parent: 'Module' = None
    children: dict = field(default_factory=dict)
    uses: list = field(default_factory=list)

    def line(self, offset):
        return self.code.count('\n', 0, offset) + 1


# ---- text -----------------------------------------------------------------------------------------------------------

TOKEN = re.compile(r'''
    (?P<comment>//[^\n]*)
  | (?P<block>/\*)
  | (?P<raw>\b(?:b|c)?r(?P<hashes>\#*)")
  | (?P<string>\b[bc]?"(?:[^"\\]|\\.)*"|"(?:[^"\\]|\\.)*")
  | (?P<char>b?'(?:[^'\\\n]|\\(?:u\{[^}]*\}|x..|.))')
''', re.VERBOSE | re.DOTALL)


def blank(text):
    """Spaces for everything but the ends of lines."""
    return re.sub(r'[^\n]', ' ', text)


def split(text):
    """(code, comments, strings): the code with the contents of the others blanked."""
    pieces, comments, strings, at = [], [], [], 0
    line, counted = 1, 0
    while match := TOKEN.search(text, at):
        start, end = match.span()
        line, counted = line + text.count('\n', counted, start), start
        if match['block']:
            depth, end = 1, start + 2
            while depth and (edge := re.compile(r'/\*|\*/').search(text, end)):
                depth, end = depth + (1 if edge[0] == '/*' else -1), edge.end()
            comments.append(Text(line, text[start:end], 'plain'))
        elif match['comment']:
            alone = not text[text.rfind('\n', 0, start) + 1:start].strip()
            kind = 'doc' if re.match(r'//[/!](?!/)', match[0]) else 'plain' if alone else 'beside'
            comments.append(Text(line, re.sub(r'^//[/!]?\s?', '', match[0]), kind))
        elif match['raw']:
            close = text.find('"' + match['hashes'], end)
            close = len(text) if close < 0 else close
            strings.append(Text(line, text[end:close], start=start))
            end = min(len(text), close + 1 + len(match['hashes']))
        elif match['string']:
            strings.append(Text(line, match[0][match[0].index('"') + 1:-1], start=start))
        pieces += [text[at:start], blank(text[start:end])]
        at = end
    return ''.join(pieces + [text[at:]]), comments, strings


def passages(comments):
    """Comments as they are read: those on consecutive lines as one, up to an empty line; without examples of code."""
    found, last, is_code = [], None, False
    for comment in comments:
        follows = last is not None and last.line == comment.line - 1 and last.kind == comment.kind != 'beside'
        is_fence = comment.kind == 'doc' and comment.value.startswith('```')
        is_code = (follows and is_code) ^ is_fence
        if is_code or is_fence:
            pass
        elif follows and last.value.strip() and comment.value.strip():
            found[-1].value += ' ' + comment.value.strip()
        else:
            found.append(Text(comment.line, comment.value.strip(), comment.kind))
        last = Text(comment.line, '' if is_code or is_fence else comment.value, comment.kind)
    return found


TEST = re.compile(r'#\[(?:\w+::)?test\b[^\]]*\]\s*(?:(?:#\[[^\]]*\]|//[^\n]*)\s*)*(?:async\s+)?fn\s+(\w+)|^def (test_\w+)', re.MULTILINE)


def test_names(text):
    """The names of the tests in a source of Rust or Python, as words: (line, words)."""
    for match in TEST.finditer(text):
        name = match[1] or match[2]
        yield text.count('\n', 0, match.end() - len(name)) + 1, name.replace('_', ' ')


def closing(code, start):
    """The offset after the brace that closes the first one from `start` on."""
    depth = 0
    for match in re.compile('[{}]').finditer(code, start):
        depth += 1 if match[0] == '{' else -1
        if depth == 0:
            return match.end()
    return len(code)


FUNCTION = re.compile(r'^[\w():" ]*\bfn (\w+)(?:.*\n)*?.*([{;}]) *$', re.MULTILINE)


def functions(code):
    """The functions with a body of several lines: (name, line, number of lines)."""
    for match in FUNCTION.finditer(code):
        if match[2] == '{':
            end = closing(code, match.end(2) - 1)
            yield match[1], code.count('\n', 0, match.start()) + 1, code.count('\n', match.start(), end) + 1


MESSAGE = re.compile(r'''
    \bError::(?:new|format|unsupported|usage|limit|not_found|elsewhere|refused|new_err)\s*\(   # the call that makes an error
  | \b(?:anyhow|bail)!\s*\(
  | \blet\s+(?:\w*message|problem|wrong|why)\s*=\s                                # or its text, named before
''', re.VERBOSE)
NO_MESSAGE = re.compile(r'(?:\bcontext|\bContext::\w+|\bexpect|\bjoin|\breplace|\bcaused_by|\bsplit|\bpush_str)\s*\(\s*(?:&?format!\s*\(\s*)?$')


def messages(module):
    """The strings of a module that are messages of errors, as far as the place shows it."""
    code, spans = module.code, []
    for match in MESSAGE.finditer(code):
        depth, at = (1, match.end()) if match[0].endswith('(') else (0, match.end())
        for edge in re.compile(r'[()\[\]{};]').finditer(code, at):
            depth += {'(': 1, '[': 1, '{': 1, ')': -1, ']': -1, '}': -1}.get(edge[0], 0)
            if depth == 0 and edge[0] in (';' if match[0][-1].isspace() else ')'):
                spans.append((at, edge.end()))
                break
    for string in module.strings:
        if any(start <= string.start < end for start, end in spans) and ' ' in string.value:
            if not NO_MESSAGE.search(code[max(0, string.start - 60):string.start]):
                yield string


def tests(code):
    """(spans of code that is compiled for tests only, names of the modules of which that is true)."""
    spans, modules = [], set()
    for match in re.finditer(r'#\s*\[\s*cfg\s*\((?:test|all\s*\(\s*test\b[^\]]*|any\s*\(\s*test\b[^\]]*)\)\s*\]|#\s*\[\s*test\s*\]', code):
        item = re.compile(r'\s*(?:#\s*\[[^\]]*\]\s*)*(?:pub\s*(?:\([^)]*\))?\s*)?(mod|use)?\s*(\w*)').match(code, match.end())
        end = code.find(';', item.end())
        brace = code.find('{', item.end())
        if item[1] != 'use' and 0 <= brace and not 0 <= end < brace:
            end = closing(code, brace) - 1
        elif item[1] == 'mod':
            modules.add(item[2])
        spans.append((match.start(), (len(code) if end < 0 else end + 1)))
    return spans, modules


# ---- modules --------------------------------------------------------------------------------------------------------

def read_crate(root, folder, prefix, top):
    """{name: Module} of the files below `folder`; the file `top` is the root of the crate."""
    modules = {}
    test_modules = set()
    for directory, folders, files in os.walk(os.path.join(root, folder)):
        folders.sort()
        for file in sorted(files):
            if not file.endswith('.rs'):
                continue
            path = os.path.relpath(os.path.join(directory, file), root)
            inner = os.path.relpath(path, folder)[:-len('.rs')].replace(os.sep, '/')
            inner = inner[:-len('/mod')] if inner.endswith('/mod') else inner
            with open(os.path.join(root, path), encoding='utf-8') as opened:
                code, comments, strings = split(opened.read())
            spans, names = tests(code)
            lines = [(code.count('\n', 0, start) + 1, code.count('\n', 0, end) + 1) for start, end in spans]
            strings = [s for s in strings if not any(first <= s.line <= last for first, last in lines)]
            for start, end in spans:
                code = code[:start] + blank(code[start:end]) + code[end:]
            modules[prefix + inner] = Module(prefix + inner, path, code, comments, strings)
            home = '' if inner == top else inner + '/'
            test_modules |= {prefix + home + name for name in names}
    for module in modules.values():
        inner = module.name[len(prefix):]
        if inner != top:
            up = prefix + os.path.dirname(inner) if '/' in inner else prefix + top
            module.parent = modules.get(up)
            if module.parent:
                module.parent.children[inner.rsplit('/', 1)[-1]] = module
        module.is_test = any(module.name == name or module.name.startswith(name + '/') for name in test_modules)
    for module in modules.values():
        module.uses = list(uses(module))
    return modules


def uses(module):
    """Every leaf of every `use` outside tests."""
    for match in re.finditer(r'(?m)^[ \t]*(pub(?:\s*\([^)]*\))?\s+)?use\s+([^;]+);', module.code):
        offset = match.start(2)
        for path, name, at in leaves(match[2], [], offset):
            yield Use(path, name, module.line(at), bool(match[1]))


def leaves(tree, before, offset):
    """(path, name, offset) of each leaf of a `use` tree."""
    tree_start = len(tree) - len(tree.lstrip())
    offset, tree = offset + tree_start, tree.strip()
    if '{' in tree and (head := tree[:tree.index('{')]).strip().rstrip(':').find(',') < 0:
        path = before + [part.strip() for part in head.split('::') if part.strip()]
        inner, start = tree[len(head) + 1:tree.rindex('}')], offset + len(head) + 1
        depth, at = 0, 0
        for index, char in enumerate(inner + ','):
            depth += (char == '{') - (char == '}')
            if char == ',' and depth == 0:
                if inner[at:index].strip():
                    yield from leaves(inner[at:index], path, start + at)
                at = index + 1
        return
    tree, _, alias = (part.strip() for part in tree.partition(' as '))
    path = before + [part.strip() for part in tree.split('::') if part.strip()]
    if path[-1] == 'self':
        path = path[:-1]
    if path:
        yield path, alias or path[-1], offset


def defines(module, name):
    item = r'\b(?:fn|struct|enum|trait|type|const|static|union|mod|macro_rules!)\s+(?:mut\s+)?%s\b' % re.escape(name)
    return re.search(item, module.code)


class Crate:
    """The modules of one crate, and how paths resolve in them."""

    def __init__(self, root, folder, prefix, top, below=None):
        self.modules = read_crate(root, folder, prefix, top)
        self.below = below or {}     # other crates, by the names that imports give them
        self.root = self.modules.get(prefix + top)

    def resolve(self, module, path, depth=0):
        """The module in which what `path` names is defined, through re-exports; None for another crate's."""
        path = list(path)
        first = path.pop(0)
        if first == 'crate':
            here = self.root
        elif first == 'self':
            here = module
        elif first == 'super':
            here = module.parent
            while here and path and path[0] == 'super':
                here = here.parent
                path.pop(0)
        elif first in module.children:
            here = module.children[first]
        elif first in self.below:
            other = self.below[first]
            return other.resolve(other.root, ['crate', *path], depth)
        else:
            return None
        while here and path:
            name = path[0]
            if name in here.children:
                here = here.children[path.pop(0)]
                continue
            if depth < 20 and not defines(here, name):
                for use in here.uses:
                    if use.name == name and use.path != [name]:
                        found = self.resolve(here, use.path + path[1:], depth + 1)
                        if found:
                            return found
                for use in here.uses:
                    if use.name == '*':
                        found = self.resolve(here, use.path[:-1], depth + 1)
                        if found and found is not here and (defines(found, name) or name in found.children):
                            return self.resolve(here, use.path[:-1] + path, depth + 1)
            break
        return here

    def imports(self):
        """Every import among the modules, outside tests; re-exports of a module's own children count where it also
        uses them itself."""
        for module in self.modules.values():
            if module.is_test:
                continue
            found = []
            body = re.sub(r'(?m)^[ \t]*(?:pub(?:\s*\([^)]*\))?\s+)?use\s+[^;]+;', lambda m: blank(m[0]), module.code)
            for use in module.uses:
                target = self.resolve(module, use.path)
                if not target or target is module:
                    continue
                is_own = target.name.startswith(module.name + '/') or module is self.root
                if use.is_public and is_own and not re.search(r'\b%s\b' % re.escape(use.name), body):
                    continue
                found.append((target, use.line, use.path))
            own = '|'.join(map(re.escape, module.children)) or '(?!)'
            for match in re.finditer(r'(?<![\w:])(?:crate|super|self|%s)(?:\s*::\s*\w+)+' % own, body):
                path = re.split(r'\s*::\s*', match[0])
                target = self.resolve(module, path)
                # what only says how far a name is seen: pub(in crate::x)
                if target and target is not module and not re.search(r'pub\s*\(\s*in\s+$', body[:match.start()]):
                    found.append((target, module.line(match.start()), path))
            for target, line, path in found:
                if not target.is_test:
                    yield Import(module, target, line, '::'.join(path))


def circles(edges):
    """Groups of more than one node of which each reaches every other one (Tarjan); {node: set of nodes}."""
    index, low, stack, groups, counter = {}, {}, [], [], [0]

    def visit(node):
        work = [(node, iter(sorted(edges.get(node, ()))))]
        index[node] = low[node] = counter[0]
        counter[0] += 1
        stack.append(node)
        while work:
            here, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = counter[0]
                    counter[0] += 1
                    stack.append(other)
                    work.append((other, iter(sorted(edges.get(other, ())))))
                    break
                if other in stack:
                    low[here] = min(low[here], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[here])
                if low[here] == index[here]:
                    group = []
                    while not group or group[-1] != here:
                        group.append(stack.pop())
                    if len(group) > 1:
                        groups.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return groups
