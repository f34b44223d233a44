"""scripts/lint finds what it promises: small made-up source trees with one violation each."""
import os
import subprocess
import sys

import pytest

import support

LINT = os.path.join(support.ROOT, 'scripts', 'lint')

CLEAN = {
    'src/lib.rs': 'mod remote;\nmod call;\nmod container;\nmod output;\nmod h5;\nmod native;\nmod pack;\npub use output::Error;\n',
    'src/output.rs': '/// An error.\npub struct Error;\n',
    'src/remote.rs': 'use crate::output::Error;\n/// The `crate::call::Table` of a doc comment is not an import.\npub struct Shape(Error);\n',
    'src/h5/mod.rs': 'mod sys;\nuse crate::Error;\npub struct File(Error);\n',
    'src/h5/sys/mod.rs': '/// Calls libhdf5.\npub fn call() { unsafe { there_it_goes() } }\n',
    'src/call/mod.rs': 'mod cells;\npub use cells::Cells;\npub struct Table;\n',
    'src/call/cells.rs': 'use crate::remote::Shape;\npub struct Cells(Shape);\n',
    'src/native.rs': '/// Says "MAIN".\npub const MAIN: &str = "MAIN";\nconst ALL: &str = "MAINTAIN";\n'
                     '#[cfg(test)]\nmod tests {\n    const AGAIN: &str = "MAIN";\n'
                     '    fn t() { super::open().unwrap(); crate::pack::pack(); }\n}\n',
    'src/pack.rs': 'use crate::call::{Cells, Table};\npub fn pack(table: Table, cells: Cells) {}\n',
    'src/container/mod.rs': 'mod one;\nmod two;\npub struct Kind;\npub static KINDS: &[&Kind] = &[&one::KIND, &two::KIND];\n',
    'src/container/one.rs': 'use super::Kind;\npub static KIND: Kind = Kind;\n',
    'src/container/two/mod.rs': 'mod part;\nuse super::Kind;\npub(super) static KIND: Kind = Kind;\n',
    'src/container/two/part.rs': 'pub fn helper() {}\n',
    'h5bridge/src/lib.rs': 'mod args;\nmod cli;\nmod command;\n',
    'h5bridge/src/main.rs': 'fn main() { h5bridge::run() }\n',
    'h5bridge/src/args.rs': 'pub struct Global;\n',
    'h5bridge/src/cli.rs': 'use crate::command::ls;\npub enum Verb { Ls(ls::Args) }\n',
    'h5bridge/src/command/mod.rs': 'pub mod ls;\n',
    'h5bridge/src/command/ls.rs': 'use crate::args::Global;\npub struct Args(Global);\n',
    'docs/explanation/design.md': 'Tables are in call/cells.rs, `src/h5` knows HDF5, `my.ms/table.dat` is a file of casacore.\n',
}


def lint(tmp_path, changes, *words):
    """(exit code, output) of the lint on the clean tree with `changes`."""
    for path, text in {**CLEAN, **changes}.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    process = subprocess.run([sys.executable, LINT, str(tmp_path), *words], capture_output=True, text=True)
    assert 'Traceback' not in process.stderr, process.stderr
    return process.returncode, process.stdout


def test_clean(tmp_path):
    code, output = lint(tmp_path, {})
    assert code == 0, output
    # the numbers show that it has read something
    assert '%d modules, 11 imports, 0 findings' % sum(path.endswith('.rs') for path in CLEAN) in output, output


VIOLATIONS = {
    'upwards': ({'src/remote.rs': 'use std::fmt;\nuse crate::{output::Error, call::Table};\n'},
                'src/remote.rs:2: [layers] remote imports crate::call::Table from call: call is above remote'),
    'upwards in a path': ({'src/remote.rs': 'fn f() {\n    crate::call::open()\n}\n'}, 'src/remote.rs:2: [layers]'),
    'upwards by super': ({'src/h5/sys/mod.rs': 'use super::super::native::MAIN;\n'}, 'src/h5/sys/mod.rs:1: [layers]'),
    'upwards through a re-export': ({'src/lib.rs': CLEAN['src/lib.rs'] + 'pub use call::Table;\n',
                                     'src/remote.rs': 'use crate::Table;\n'},
                                    '[layers] remote imports crate::Table from call'),
    'upwards through a glob': ({'src/h5/mod.rs': 'mod sys;\npub use crate::native::*;\n',
                                'src/call/cells.rs': ''}, 'src/h5/mod.rs:2: [layers] h5 imports'),
    'code of lib.rs': ({'src/lib.rs': CLEAN['src/lib.rs'] + 'pub fn version() {}\n',
                        'src/pack.rs': 'use crate::version;\n'}, '[layers] pack imports crate::version from lib'),
    'forbidden': ({'src/pack.rs': 'use crate::native::MAIN;\n'}, '[layers] pack imports crate::native::MAIN from native: packing'),
    'beside': ({'src/live.rs': 'use crate::pack::pack;\n', 'src/lib.rs': CLEAN['src/lib.rs'] + 'mod live;\n'},
               '[layers] live imports crate::pack::pack from pack: pack is beside live'),
    'command line': ({'h5bridge/src/report.rs': 'use crate::cli::Verb;\n'}, '[layers] h5bridge/report imports crate::cli::Verb from h5bridge/cli: h5bridge/cli is above'),
    'no layer': ({'src/extra.rs': '', 'src/lib.rs': CLEAN['src/lib.rs'] + 'mod extra;\n'},
                 'src/extra.rs:1: [layers] this module has no layer'),
    'circle': ({'src/call/cells.rs': 'use super::Table;\npub struct Cells;\n',
                'src/call/mod.rs': 'mod cells;\npub use cells::Cells;\npub struct Table(Cells);\n'},
               '[circles] a circle of 2 files (call, call/cells)'),
    'longer circle': ({'src/pack/mod.rs': 'mod a;\nmod b;\nmod c;\n', 'src/pack/a.rs': 'use super::b::B;\npub struct A;\n',
                       'src/pack/b.rs': 'use super::c::C;\npub struct B;\n', 'src/pack/c.rs': 'pub struct C(super::a::A);\n'},
                      '[circles] a circle of 3 files (pack/a, pack/b, pack/c), for example src/pack/a.rs:1 takes B; '
                      'src/pack/b.rs:1 takes C; src/pack/c.rs:1 takes A'),
    'siblings': ({'src/container/one.rs': 'use super::Kind;\nuse super::two::part::helper;\npub static KIND: Kind = Kind;\n'},
                 'src/container/one.rs:2: [formats] container/one imports super::two::part::helper'),
    'literal': ({'src/call/cells.rs': 'const PATH: &str = "/MAIN/x";\n'}, '[literals] "MAIN" stands in 2 places'),
    'literal with a hole': ({'src/call/cells.rs': 'fn f() { g("cube{n}"); g("a/cube0"); }\n'},
                            '[literals] "cube{n}" stands in 2 places, once is right: src/call/cells.rs:1, src/call/cells.rs:1'),
    'raw literal': ({'src/call/cells.rs': 'const PATH: &str = r#"MAIN"#;\n'}, '[literals] "MAIN"'),
    'unsafe': ({'src/call/cells.rs': 'fn f() {\n    unsafe { g() }\n}\n'}, 'src/call/cells.rs:2: [code] unsafe'),
    'unwrap': ({'src/call/cells.rs': '#[cfg(test)]\nmod tests { fn f() { g().unwrap() } }\nfn f() { g()\n.unwrap() }\n'},
               'src/call/cells.rs:4: [code] unwrap()'),
    'note': ({'src/call/cells.rs': 'fn f() {}   // FIXME: later\n'}, 'src/call/cells.rs:1: [code] FIXME'),
    'long file': ({'src/call/cells.rs': '\n' * 900 + 'fn f() {}\n'}, 'src/call/cells.rs:1: [sizes] the file has 901 lines'),
    'long function': ({'tests/cells.rs': 'impl A {\n    pub fn f(\n        a: [u8; 2],\n    ) {   // {\n%s    }\n}\n' % ('        g();\n' * 57)},
                      'tests/cells.rs:2: [sizes] the function f has 61 lines'),
    'short decoder': ({'crates/ctds-archives/src/sion/header.rs': 'fn read() {\n%s}\n' % ('    g();\n' * 58)},
                      'crates/ctds-archives/src/sion/header.rs:1: [sizes] the function read has no more than 60 lines'),
    'file of a document': ({'docs/explanation/design.md': 'one\nSee call/cell.rs.\n'}, 'docs/explanation/design.md:2: [documents] there is no file call/cell.rs'),
    'folder of a document': ({'docs/explanation/design.md': 'See `convert/to_hdf5`.\n'}, '[documents] there is no file convert/to_hdf5'),
    'link of a document': ({'README.md': '[more](docs/more.md)\n'}, '[documents] the link leads to docs/more.md'),
    'advice in a document': ({'docs/formats/x.md': 'One\n### If Sisco is deferred\n'},
                             'docs/formats/x.md:2: [documents] "is deferred": advice'),
    'prose in a comment': ({'src/call/cells.rs': '/// Reads a file\n/// that is not there.\nfn f() {}\n'}, '[prose] P4 occurs 1 times'),
    'prose of a message': ({'src/call/cells.rs': 'const M: &str = "the bytes behind the header";\n'}, '[prose] P6 occurs 1 times'),
    'prose of a document': ({'docs/explanation/design.md': 'It is written anew.\n'}, '[prose] P8 occurs 1 times'),
    'prose of an error': ({'src/call/cells.rs': 'fn f() { Err(Error::format("a chunk of 3 bytes")) }\n'}, '[prose] P11 occurs 1 times'),
    'prose of a named error': ({'src/call/cells.rs': 'fn f() { let message = format!("{n} bytes of chunks"); }\n'},
                               '[prose] P11 occurs 1 times'),
    'extension': ({'python/src/lib.rs': 'mod error;\nmod source;\n', 'python/src/error.rs': 'use crate::source::Source;\n',
                   'python/src/source.rs': 'pub struct Source;\n'},
                  '[layers] python/error imports crate::source::Source from python/source: python/source is above'),
    'ruff': ({'pyproject.toml': '[tool.mypy]\nstrict = true\n', 'python/h5bridge/__init__.py': 'import os\n'},
             'python/h5bridge/__init__.py:1: [python] ruff: F401'),
    'mypy': ({'pyproject.toml': '[tool.mypy]\nstrict = true\n', 'python/h5bridge/__init__.py': 'def f(x): return x\n'},
             'python/h5bridge/__init__.py:1: [python] mypy: error: Function is missing a type annotation'),
    'clause': ({'src/call/cells.rs': '/// Name of\n/// what is read.\nfn f() {}\n'}, '[prose] P1 occurs 1 times'),
    'clause at the head': ({'src/call/cells.rs': 'fn f() {\n    // what the caller holds\n}\n', 'scripts/lint.d/ceilings': 'P15 1\n'},
                           '[prose] P1 occurs 1 times'),
    'pronoun': ({'tests/cells.rs': 'fn f() {\n    // it may have larger blocks\n}\n'}, '[prose] P15 occurs 1 times'),
    'pronoun of several': ({'src/call/cells.rs': 'fn f() {\n    // all of them are\n    // asked\n}\n'}, '[prose] P15 occurs 1 times'),
    'repetition': ({'src/call/cells.rs': '/// A lane (a thread that converts).\nfn f() {}\n/// The lane (a thread\n/// that converts).\nfn g() {}\n'},
                   '[prose] P16 occurs 1 times'),
    'test of a clause': ({'tests/cells.rs': '#[test]\nfn what_is_damaged_is_named() {}\n'}, '[prose] P17 occurs 1 times'),
    'test of a person': ({'tests/cells.rs': '#[tokio::test]\n#[ignore]\nasync fn whoever_reads_waits() {}\n'}, '[prose] P17 occurs 1 times'),
    'test of a negated noun': ({'tests/python/test_cells.py': 'def test_name_is_no_string():\n    pass\n'}, '[prose] P17 occurs 1 times'),
    'test of a late word': ({'tests/python/test_cells.py': 'def test_reads_it_too(tmp_path):\n    pass\n'}, '[prose] P17 occurs 1 times'),
    'wide comment': ({'src/call/cells.rs': '/// %s\nfn f() {}\n' % ('word ' * 20).strip()}, '[prose] P18 occurs 1 times'),
    'preposition': ({'src/call/cells.rs': '/// Of the conversion.\n/// Of a second line.\nfn f() {}\n'}, '[prose] P2 occurs 1 times'),
}


@pytest.mark.parametrize('name', VIOLATIONS)
def test_violation(name, tmp_path):
    """The violation is found, and nothing else: the tree is not found wanting for another reason."""
    changes, message = VIOLATIONS[name]
    code, output = lint(tmp_path, changes)
    assert code == 1 and message in output, output
    rule = message[message.index('['):message.index(']') + 1]
    assert all(rule in line for line in output.splitlines()[:-1] if not line.startswith('note: ')), output


def test_ceilings_only_fall(tmp_path):
    changes = {'docs/explanation/design.md': 'It is written anew.\n', 'scripts/lint.d/ceilings': '# comment\nP8 1\n'}
    code, output = lint(tmp_path, changes)
    assert code == 0 and 'note' not in output
    changes['scripts/lint.d/ceilings'] = 'P8 2\n'
    code, output = lint(tmp_path, changes)
    assert code == 0 and 'note: P8 occurs 1 times only: lower its ceiling, 2' in output
    changes['docs/explanation/design.md'] += 'And anew, and anew.\n'
    assert lint(tmp_path, changes)[0] == 1


def test_functions_of_60_lines(tmp_path):
    """A function may have 60 lines, and a decoder more."""
    body = '    g();\n' * 58
    code, output = lint(tmp_path, {'src/call/cells.rs': 'fn f() {\n%s}\nfn h() {\n%s}\n' % (body, body),
                                   'crates/ctds-archives/src/sion/header.rs': 'fn read() {\n%s    g();\n}\n' % body})
    assert code == 0, output


def test_only(tmp_path):
    changes, _ = VIOLATIONS['unwrap']
    assert lint(tmp_path, changes, '--only', 'layers,circles')[0] == 0
    assert lint(tmp_path, changes, '--only', 'nonsense')[0] == 2


def test_messages_with_a_verb(tmp_path):
    """Contexts, verbs, "found X, expected Y" and texts that are not messages are fine."""
    code = ('fn f() {\n    Err(Error::format("the chunk has 3 bytes").context("a chunk of 3 bytes"))\n'
            '    Err(Error::usage(format!("found {n} bytes, expected {m}")))\n    Err(Error::format(format!("line {n}: {error}")))\n'
            '    let name = "a chunk of 3 bytes";\n}\n')
    code, output = lint(tmp_path, {'src/call/cells.rs': code})
    assert code == 0, output


def test_examples_and_code_are_not_comments(tmp_path):
    """Code in doc comments, comments beside code, numbers in parentheses and one explanation each are fine."""
    code = ('/// ```\n/// what(a, b)\n/// ```\nfn f() {}   // it is beside code\n/// Rows (from 0).\nfn g() {}\n/// Cells (from 0).\nfn h() {}\n'
            '/// A lane (a thread).\nfn i() {}\n/// A thing: this and that.\nfn j() {\n    // this file first\n}\n')
    code, output = lint(tmp_path, {'src/call/cells.rs': code})
    assert code == 0, output


def test_patterns_are_listed(tmp_path):
    code, output = lint(tmp_path, VIOLATIONS['prose in a comment'][0], '--prose', 'P4')
    assert code == 0 and output == 'src/call/cells.rs:2: that is not there.\n'


CELLS = ('fn f() {\n    let message = format!("the chunk has {n} bytes, expected {m}");\n    g(Error::format(message).context("a"))\n}\n'
         'fn h(d: D) -> R { Err(d.error("the row map is not sorted")) }\n'
         'fn i() { wrong(|e| Error::usage(e.to_string()));\n    Err(Error::new(ErrorKind::Io, "the disk does not answer")) }\n')


@pytest.mark.parametrize('old, new, finding', [
    ('', '', None),
    ('not sorted"', 'not sorted."', '"the row map is not sorted.": it ends with a full stop'),
    ('the disk does', 'The disk does', 'it begins with a capital letter'),
    ('the row map is not sorted', 'the row map is damaged', '"the row map is damaged": it does not say what was expected'),
    ('the row map is not sorted', 'invalid map', '"invalid map": it does not say what was found'),
])
def test_messages_say_what_was_found(tmp_path, old, new, finding):
    assert old in CELLS
    code, output = lint(tmp_path, {'src/call/cells.rs': CELLS.replace(old, new)}, '--only', 'messages')
    assert (code == 1 and finding in output) if finding else code == 0, output
