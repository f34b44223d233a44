"""The messages of errors in the sources, and what their words lack."""
import bisect
import re
from dataclasses import dataclass

import rust

@dataclass(frozen=True)
class Template:
    """One message as the source has it: the words, with `{}` for what is filled in."""
    file: str
    line: int           # of the call that makes the error
    words: str
    kind: str = ''      # `Format`, as far as the call shows it

    @property
    def is_relayed(self):
        """Whether the words come from elsewhere: from a parameter, or from another error."""
        return len(re.findall(r'[A-Za-z]{2,}', self.words.replace('{}', ''))) < 2


# ---- the sources ----------------------------------------------------------------------------------------------------

CALL = re.compile(r'(?<!anyhow::)\bError::(new|format|unsupported|usage|limit|not_found|elsewhere|refused)\s*\(')
# Functions that pass a message on; their callers are the places of the errors.
HELPERS = re.compile(r'\.(misfit|error_at|error)\s*\(|(?<![\w.:])(usage)\s*\(')


def closing(code, start):
    """The offset of the bracket that closes the one before `start`."""
    depth = 1
    for edge in re.compile(r'[()\[\]{}]').finditer(code, start):
        depth += 1 if edge[0] in '([{' else -1
        if depth == 0:
            return edge.start()
    return len(code)


def arguments(code, start):
    """The spans of the arguments of the call whose bracket ends at `start`."""
    end, depth, at, found = closing(code, start), 0, start, []
    for edge in re.compile(r'[()\[\]{},]').finditer(code, start, end):
        if edge[0] == ',' and depth == 0:
            found.append((at, edge.start()))
            at = edge.end()
        elif edge[0] != ',':
            depth += 1 if edge[0] in '([{' else -1
    # strings are blank; a span without anything after a last comma does no harm
    found.append((at, end))
    return found


def plain(text):
    """A string literal's value, with `{}` for what is filled in."""
    text = re.sub(r'\\\n\s*', '', text)
    text = re.sub(r'\\(["\\])', r'\1', text).replace('\\n', '\n').replace('\\t', '\t')
    text = text.replace('{{', '\1').replace('}}', '\2')
    text = re.sub(r'\{[^{}]*\}', '{}', text)
    return text.replace('\1', '{').replace('\2', '}')


# What is an argument of something else than the message.
INNER = re.compile(r'(?:\bcontext|\bContext::\w+|\bexpect|\bjoin|\breplace|\bcaused_by|\bsplit\w*|\bpush_str|\bstarts_with|\bends_with'
                   r'|\btrim\w*|\bcontains|\bmap_or|\bmap_or_else|\bunwrap_or|\bget|\bmatches!|\b(?:pick|plural|counted))\s*\(\s*(?:[^()"]*,\s*)?(?:&?format!\s*\(\s*)?$')


class Source:
    """A module whose strings are found by their offset."""

    def __init__(self, module):
        self.module = module
        self.starts = sorted((string.start, string.value) for string in module.strings)
        self.offsets = [start for start, _ in self.starts]

    def strings(self, start, end):
        low, high = bisect.bisect_left(self.offsets, start), bisect.bisect_left(self.offsets, end)
        code = self.module.code
        found = []
        for at, value in self.starts[low:high]:
            before = code[max(start, at - 80):at]
            # the arguments of a format string fill it in; a nested format string is one of them
            if INNER.search(before) or self.is_filling(start, at):
                continue
            found.append(plain(value))
        return found

    def is_filling(self, start, at):
        """Whether the string at `at` is an argument of a `format!` that begins after `start`, beside its own string."""
        code, depth = self.module.code, 0
        commas = 0
        for index in range(at - 1, start - 1, -1):
            char = code[index]
            if char in ')]}':
                depth += 1
            elif char in '([{':
                if depth == 0:
                    if char == '(' and code[:index].rstrip().endswith('format!') and commas:
                        return True
                    commas = 0
                else:
                    depth -= 1
            elif char == ',' and depth == 0:
                commas += 1
        return False

    def named(self, name, before):
        """The strings of the last `let NAME = …;` before an offset, in the same function."""
        code = self.module.code
        begin = max([match.start() for match in re.finditer(r'\bfn \w+', code[:before])], default=0)
        lets = [match for match in re.finditer(r'\blet\s+(?:mut\s+)?%s\b[^=;]*=(?!=)' % name, code[begin:before])]
        if not lets:
            return []
        start = begin + lets[-1].end()
        depth = 0
        for edge in re.compile(r'[()\[\]{};]').finditer(code, start):
            if edge[0] == ';' and depth == 0:
                return self.strings(start, edge.start())
            depth += {'(': 1, '[': 1, '{': 1, ')': -1, ']': -1, '}': -1}.get(edge[0], 0)
        return []


def templates(module):
    """The messages of a module, one for each string that a call may have."""
    code, source = module.code, Source(module)
    calls = [(match, 1 if match[1] == 'new' else 0) for match in CALL.finditer(code)]
    for match in HELPERS.finditer(code):
        name = match[1] or match[2]
        if name == 'usage' and module.name != 'h5bridge/batch/plan' or re.search(r'\bfn\s+$', code[:match.start() + 1]):
            continue
        # a dysco header is given the position as well
        calls.append((match, -1))
    # closures that make an error of the words that they are given
    closures = r'\blet\s+(\w+)\s*=\s*\|(message|what|why)\b[^|]*\|[^;]*?\bError::(\w+)\([^;]*?\b\2\b'
    for name, kind in sorted({(match[1], match[3]) for match in re.finditer(closures, code)}):
        calls += [(match, 0) for match in re.finditer(r'(?<![\w.:])%s\s*\((?P<%s>)' % (name, kind), code)]
    for match, index in calls:
        spans = arguments(code, match.end())
        if index == -1:
            # the message is the last argument that is not empty
            spans = [span for span in spans if code[slice(*span)].strip() or source.strings(*span)] or spans
        start, end = spans[index] if index < len(spans) else spans[-1]
        if index == -1 and CALL.search(code, start, end):
            continue
        if match.re is HELPERS:
            kind = 'Usage' if match[1] == 'misfit' or match[2] else 'Format'
        else:
            kind = (match.lastgroup or match[1]).title()
        if kind == 'New' and match.re is CALL:
            kind = next(iter(re.findall(r'ErrorKind::(\w+)', code[slice(*spans[0])])), '')
        token = match.start() + (1 if match[0].startswith('.') else 0)
        line = module.line(token)
        words = source.strings(start, end)
        argument = code[start:end].strip()
        if not words and (name := re.fullmatch(r'(\w+)(?:\.clone\(\))?', argument)):
            words = source.named(name[1], match.start())
        # without words, what is passed on is an error
        for word in dict.fromkeys(words or (['{}'] if match.re is CALL else [])):
            yield Template(module.path, line, word, kind)


# ---- the judgement --------------------------------------------------------------------------------------------------

BARE = re.compile(r'(?:an? |the )?(?:invalid|failed|failure|error|bad|wrong|illegal|unknown error|cannot|damaged|corrupt(?:ed)?)(?: \w+)?\Z', re.IGNORECASE)


# What a message about damaged bytes has one of: the words that set what was found against what was expected.
EXPECTS = re.compile(r"\b(?:expected|expects|known|knows|only|but|not|nor|none|neither|at least|at most|exceeds?|beyond|limits?|missing|differs?"
                     r"|cannot|needs?|more|fewer|less|outside|overlaps?|twice|two|no|after|before|lacks?|without|of|past|again|already|never"
                     r"|instead|other|intact|being|contradicts?|should|must|while|where|has|have|which|undefined|itself|too|damaged is)\b|: \{\}")


def shortcomings(words, kind=''):
    """What the words of a message lack."""
    found = []
    if kind == 'Format' and not EXPECTS.search(words):
        found.append('it does not say what was expected')
    if BARE.match(words):
        found.append('it does not say what was found')
    if re.search(r'(?<![.…])\.\Z', words):
        found.append('it ends with a full stop')
    if words != words.strip() and not words.endswith(' '):
        found.append('it begins or ends with a space')
    if re.match(r'[A-Z][a-z]+ ', words) and not re.match(r'(?:Array|Unsupported|Cannot|File|Permission|Blosc|Unicode|Dysco|Sisco)\b', words):
        found.append('it begins with a capital letter')
    if '`' in words and words.count('`') % 2:
        found.append('a quote is not closed')
    if re.search(r'\b(?:please|sorry|oops)\b|!\Z', words, re.IGNORECASE):
        found.append('it has words that say nothing')
    return found


def check(modules):
    """[(file, line, finding)]: messages whose words say too little."""
    for module in sorted(modules, key=lambda module: module.path):
        if module.name.endswith('/error') or module.name == 'error':
            continue
        for template in sorted(set(templates(module)), key=lambda template: (template.line, template.words)):
            if not template.is_relayed:
                for lack in shortcomings(template.words, template.kind):
                    yield template.file, template.line, '"%s": %s' % (template.words, lack)
