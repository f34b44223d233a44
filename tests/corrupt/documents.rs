//! Random changes to the documents of native files (docs/reference/layout.md), the same ones in
//! every run: they stay JSON mostly, with other numbers, names and shapes.
//!
//! `H5BRIDGE_LONG=1` tries more of them, and others each time.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use ctds_hdf5::convert::{Compare, ToHdf5, ToOriginal, ToTable};
use ctds_hdf5::{ErrorKind, Result};
use ctds_hdf5_testing::proptest::prelude::*;
use ctds_hdf5_testing::proptest::sample::{Index, select};
use ctds_hdf5_testing::{Watch, property, testdata};
use hdf5::types::VarLenUnicode;
use hdf5::{File, Group};

use super::{is_of_damage, limit_memory, read_all};

const TABLES: [&str; 4] = [
    "dtypes_all_managers/StandardStMan_little.tab",
    "dtypes_tiled/TiledShapeStMan_float_big.tab",
    "strings_boundaries/IncrementalStMan_128.tab",
    "keywords/t.tab",
];

/// Replacements of a value, of a name, of anything.
const TOKENS: [&str; 24] = [
    "0",
    "1",
    "7",
    "-1",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "-9223372036854775808",
    "1e300",
    "null",
    "true",
    "[]",
    "{}",
    "[0]",
    "[4294967296,4294967296]",
    "\"\"",
    "\"../x\"",
    "\"a/b\"",
    "\"record\"",
    "\"string\"",
    "\"ragged\"",
    "\"cubes\"",
    "\"TiledShapeStMan\"",
];

/// The documents below a group: the group of each, the name of the attribute and its text.
fn documents(group: &Group, found: &mut Vec<(Group, String, String)>) {
    for name in group.attr_names().unwrap() {
        if let Ok(text) = group.attr(&name).unwrap().read_scalar::<VarLenUnicode>() {
            found.push((group.clone(), name, text.to_string()));
        }
    }
    for inside in group.groups().unwrap() {
        documents(&inside, found);
    }
}

fn set(group: &Group, name: &str, text: &str) {
    group.delete_attr(name).unwrap();
    let attribute = group.new_attr::<VarLenUnicode>().create(name).unwrap();
    attribute.write_scalar(&text.parse::<VarLenUnicode>().unwrap()).unwrap();
}

/// Where the numbers, strings, words and brackets of a document are.
fn tokens(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += match bytes[at] {
            b'"' => bytes[at + 1..].iter().position(|&byte| byte == b'"').map_or(1, |len| len + 2),
            b'[' | b']' | b'{' | b'}' => 1,
            _ => bytes[at..].iter().position(|byte| b",:[]{}\"".contains(byte)).unwrap_or(bytes.len() - at).max(1),
        };
        if !b",:".contains(&bytes[start]) {
            tokens.push((start, at));
        }
    }
    tokens
}

/// Replacement of a token: a token by its number, or another text.
#[derive(Debug, Clone)]
enum Change {
    Token(Index),
    Text(&'static str),
    /// The text between two tokens is removed.
    Removed(Index),
}

/// A document by its number, a token of it by its number, and what becomes of it.
type Edit = (Index, Index, Change);

fn edit() -> impl Strategy<Value = Edit> {
    let change = prop_oneof![
        1 => any::<Index>().prop_map(Change::Token),
        1 => any::<Index>().prop_map(Change::Removed),
        6 => select(&TOKENS[..]).prop_map(Change::Text),
    ];
    (any::<Index>(), any::<Index>(), change)
}

/// The text with a token replaced by another, or by one of its own, or without the text between two
/// of them.
fn changed(text: &str, token: &Index, change: &Change) -> String {
    let tokens = tokens(text);
    let (start, end) = tokens[token.index(tokens.len())];
    let replaced = |end: usize, new: &str| [&text[..start], new, &text[end..]].concat();
    match change {
        Change::Token(other) => {
            let (from, to) = tokens[other.index(tokens.len())];
            replaced(end, &text[from..to])
        }
        Change::Text(new) => replaced(end, new),
        Change::Removed(last) => {
            let (_, last) = tokens[last.index(tokens.len())];
            let mut end = last.max(end).min(start + 200);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            replaced(end, "")
        }
    }
}

/// All that reads a native file; the first failure that damage does not explain.
fn use_all(path: &Path, original: &Path) -> std::result::Result<(), String> {
    let target = path.with_file_name("out");
    let uses: [(&str, &dyn Fn() -> Result<()>); 5] = [
        ("read", &|| read_all(path)),
        ("check", &|| Compare::with_stored_digests(path).run().map(drop)),
        ("verify", &|| Compare::new(original, path).run().map(drop)),
        ("to_table", &|| ToTable::new(path).threads(1).write(&target).map(drop)),
        ("restore", &|| ToOriginal::new(path).threads(1).write(&target).map(drop)),
    ];
    for (name, use_it) in uses {
        let used = use_it();
        let there = fs::read_dir(path.parent().unwrap()).unwrap().count();
        if there != 1 + usize::from(used.is_ok() && target.exists()) {
            return Err(format!("{name} leaves files behind"));
        }
        let _ = fs::remove_dir_all(&target);
        match used {
            // a file without recipes or digests is no damage
            Err(error) if name == "restore" || name == "check" => match error.kind() {
                ErrorKind::Usage => {}
                _ if is_of_damage(&error) => {}
                _ => return Err(format!("{name}: unsuitable error: {error:?}")),
            },
            Err(error) if !is_of_damage(&error) => return Err(format!("{name}: unsuitable error: {error:?}")),
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn changed_documents_end_in_ok_or_err() {
    limit_memory();
    let watch = Watch::new(Duration::from_secs(20));
    for name in TABLES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("native.h5");
        let original = testdata().join(name);
        ToHdf5::new(&original).threads(1).restorable(true).write(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        property(60, edit(), |(document, token, change)| {
            fs::write(&path, &whole).unwrap();
            let file = File::open_rw(&path).unwrap();
            let mut found = Vec::new();
            documents(&file.group("_ctds").unwrap(), &mut found);
            let (group, attribute, text) = &found[document.index(found.len())];
            let changed = changed(text, &token, &change);
            set(group, attribute, &changed);
            let what = format!("{name}: {} of {}: {changed}", attribute, group.name());
            drop(found);
            file.close().unwrap();
            let used = watch.over(&what, || catch_unwind(AssertUnwindSafe(|| use_all(&path, &original))));
            if let Err(failure) = used.unwrap_or_else(|_| Err("panic".to_owned())) {
                panic!("{what}: {failure}");
            }
        });
    }
}
