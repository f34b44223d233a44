//! The tables outside of a set of files on which its tables depend: those that hold rows of
//! reference tables and concatenations, cells of forwarded columns, and subtables kept in other
//! directories.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::schema::{Body, TableDat, resolve, stored_name};
use crate::stman::FORWARD_TABLES;
use crate::value::{Record, Value, Values};

/// A table outside of the files that were packed, unpacked or compared, which one of their tables
/// needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Elsewhere {
    /// Path of the table that needs the other one, below the source; `.` for the source itself.
    pub table: String,
    /// Content of the other table in words: `its rows`, `the cells of its column DATA`.
    pub holds: String,
    /// Absolute path of the other table.
    pub path: PathBuf,
    /// Whether the other table does not exist.
    pub is_missing: bool,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.table != "." {
            write!(f, "{}: ", self.table)?;
        }
        write!(f, "{} are in {}", self.holds, self.path.display())
    }
}

/// Another table as `table.dat` names it.
pub(super) struct Reference {
    pub(super) stored: BString,
    pub(super) holds: String,
    /// Whether a table can be read without the other one.
    pub(super) is_subtable: bool,
}

/// The first reference of each name.
pub(super) fn references(dat: &TableDat) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut add = |stored: &BStr, holds: String, is_subtable| {
        if !found.iter().any(|known: &Reference| known.stored == stored) {
            found.push(Reference { stored: stored.to_owned(), holds, is_subtable });
        }
    };
    match &dat.body {
        Body::Reference(view) => add(view.root.as_bstr(), "its rows".to_owned(), false),
        Body::Concatenation(view) => {
            view.parts.iter().for_each(|part| add(part.as_bstr(), "rows of it".to_owned(), false));
        }
        Body::Plain(plain) => {
            for column in &plain.0.columns {
                for stored in FORWARD_TABLES.iter().filter_map(|key| column.keywords.string(key)) {
                    add(stored, format!("the cells of its column {}", column.name), false);
                }
                each_table(&column.keywords, &mut |name, stored| {
                    add(stored, format!("the rows of the subtable {name} of its column {}", column.name), true);
                });
            }
            each_table(&plain.0.keywords, &mut |name, stored| {
                add(stored, format!("the rows of its subtable {name}"), true);
            });
        }
    }
    found
}

fn each_table(record: &Record, each: &mut dyn FnMut(&BStr, &BStr)) {
    for field in &record.fields {
        match &field.value {
            Value::Table(stored) => each(field.name.as_bstr(), stored.as_bstr()),
            Value::Record(inner) => each_table(inner, each),
            _ => {}
        }
    }
}

/// `table.dat` with other names of tables; `None` for a name that stays.
pub(super) fn rename(bytes: &[u8], renamed: &dyn Fn(&BStr) -> Option<BString>) -> Result<Vec<u8>> {
    let new = |stored: &BString| renamed(stored.as_bstr()).unwrap_or_else(|| stored.clone());
    let mut dat = TableDat::decode(&bytes)?;
    match &mut dat.body {
        Body::Reference(view) => Ok(view.stored.replaced(bytes, &[new(&view.root)])),
        Body::Concatenation(view) => Ok(view.stored.replaced(bytes, &view.parts.iter().map(new).collect::<Vec<_>>())),
        Body::Plain(plain) => {
            rename_tables(&mut plain.0.keywords, renamed);
            for column in &mut plain.0.columns {
                rename_tables(&mut column.keywords, renamed);
                for key in FORWARD_TABLES {
                    if let Some(name) = column.keywords.string(key).and_then(renamed) {
                        column.keywords.set(key, Value::Scalar(Values::String(vec![name])));
                    }
                }
            }
            dat.encode()
        }
    }
}

fn rename_tables(record: &mut Record, renamed: &dyn Fn(&BStr) -> Option<BString>) {
    for field in &mut record.fields {
        match &mut field.value {
            Value::Table(stored) => *stored = renamed(stored.as_bstr()).unwrap_or_else(|| stored.clone()),
            Value::Record(inner) => rename_tables(inner, renamed),
            _ => {}
        }
    }
}

/// Absolute, without `..`.
pub(super) fn target(stored: &BStr, origin: &Path) -> Result<PathBuf> {
    let mut path = PathBuf::new();
    for component in std::path::absolute(resolve(stored, origin))?.components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
    }
    Ok(path)
}

/// `tree` is a directory or container.
pub(super) fn is_in(path: &Path, tree: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    path.starts_with(tree) || real(path).zip(real(tree)).is_some_and(|(path, tree)| path.starts_with(tree))
}

/// Both are below a common directory that can have any name.
pub(super) fn relative_name(to: &Path, from: &Path) -> BString {
    // the common directory, whose name does not matter
    let (to, from) = (Path::new("/set").join(to), Path::new("/set").join(from));
    let name = stored_name(&to, &from);
    if !name.starts_with(b"/") {
        return name;
    }
    // `./` stands for the directory of `from`
    let beside = from.parent().unwrap_or(Path::new("/"));
    let common = beside.ancestors().find(|above| to.starts_with(above)).unwrap_or(Path::new("/"));
    let up = "../".repeat(beside.strip_prefix(common).map_or(0, |below| below.components().count()));
    let rest = to.strip_prefix(common).unwrap_or(&to);
    format!("./{up}{}", rest.display()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names_resolve_to_their_table() {
        for (to, from) in
            [("m.ms", ""), ("m.ms", "SUB"), ("m.ms", "A/B"), ("m.ms/ANTENNA", "A/B/C"), ("", "A"), ("A/C", "A/B")]
        {
            let name = relative_name(Path::new(to), Path::new(from));
            // trailing slashes of joined empty paths do not count
            let found: PathBuf =
                target(name.as_bstr(), &Path::new("/other").join(from)).unwrap().components().collect();
            let expected: PathBuf = Path::new("/other").join(to).components().collect();
            assert_eq!(found, expected, "{name} from {from:?}");
        }
    }
}
