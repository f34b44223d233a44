//! Finds and opens subtables: the tables that the keywords of a table refer to.

use std::path::PathBuf;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::open::is_table;
use super::open_chain::{Admits, admit};
use super::{Locking, OpenOptions, Table, TableKind};
use crate::container::{Container, Directory};
use crate::error::Result;
use crate::stman::FORWARD_TABLES;
use crate::value::{Record, Value};

/// A subtable: a table that a keyword of another one names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subtable {
    /// Name of the keyword that refers to the subtable; if it is in a record, the name within that
    /// record.
    pub name: BString,
    /// The name of the subtable as the keyword `name` stores it: usually relative to the table with
    /// that keyword, as in `././ANTENNA`.
    pub stored: BString,
    /// Absolute path of the subtable; of a concatenated subtable, one path for each part.
    pub paths: Vec<PathBuf>,
}

impl Subtable {
    /// Opens the subtable; its directory is locked, as `options` tell, until the returned table is
    /// dropped.
    ///
    /// # Errors
    /// Those of [`Table::open`].
    pub fn open(&self, options: OpenOptions) -> Result<Table> {
        self.open_admitted(options, None)
    }

    /// As [`open`](Self::open), if `admits` allows the path, or all parts of a concatenation.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); `Unsupported` if it may not be opened.
    #[doc(hidden)]
    pub fn open_admitted(&self, options: OpenOptions, admits: Option<Admits<'_>>) -> Result<Table> {
        let open = |path: &PathBuf| {
            admit(admits, path, &self.stored.to_str_lossy())?;
            Table::open_admitted(path, options, admits)
        };
        match self.paths.as_slice() {
            [path] => open(path),
            paths => {
                let parts = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
                let info = parts.first().map(|part| part.info().clone()).unwrap_or_default();
                let path = paths.first().cloned().unwrap_or_default();
                super::view::concatenate(&path, &parts, info)
            }
        }
    }
}

/// Subtables of the table's keywords, then of those of its columns.
pub(super) fn find(table: &Table) -> Vec<Subtable> {
    let mut found = Vec::new();
    collect(table, &table.desc.keywords, &mut found);
    for column in &table.desc.columns {
        collect(table, &column.keywords, &mut found);
    }
    found
}

/// Tables in the directory of a table, sorted by name.
pub(super) fn inside(table: &Table) -> Vec<Subtable> {
    let Some(home) = home(table) else { return Vec::new() };
    let subtable = |name: String| Subtable {
        paths: vec![table.path().join(&name)],
        stored: format!("././{name}").into(),
        name: name.into(),
    };
    home.nested().unwrap_or_default().into_iter().filter(|name| holds_table(&*home, name)).map(subtable).collect()
}

/// Tables that hold rows or cells of a table.
pub(super) fn of_values(table: &Table) -> Vec<PathBuf> {
    let columns = table.desc.columns.iter();
    let stored = columns.flat_map(|column| FORWARD_TABLES.iter().filter_map(|key| column.keywords.string(key)));
    let mut found: Vec<_> = stored.map(|stored| table.resolve(stored)).collect();
    match &table.kind {
        TableKind::Plain => {}
        TableKind::Reference { root } => found.push(root.clone()),
        TableKind::Concatenation { parts } => found.extend(parts.iter().cloned()),
    }
    found
}

/// Neither files of the table, nor tables; hidden ones do not count.
pub(super) fn others(table: &Table) -> Vec<String> {
    let Some(home) = home(table) else { return Vec::new() };
    let files = home.names().unwrap_or_default().into_iter();
    let folders = home.nested().unwrap_or_default().into_iter().filter(|name| !holds_table(&*home, name));
    let mut others: Vec<_> =
        files.chain(folders).filter(|name| !name.starts_with("table.") && !name.starts_with('.')).collect();
    others.sort();
    others
}

/// The directory of a table; `None` if it has none of its own.
fn home(table: &Table) -> Option<Arc<dyn Container>> {
    let of_view = || -> Arc<dyn Container> { Arc::new(Directory::new(table.path())) };
    table.home.clone().or_else(|| is_table(table.path()).then(of_view))
}

fn holds_table(home: &dyn Container, name: &str) -> bool {
    home.enter(name).is_ok_and(|nested| nested.open("table.dat").is_ok())
}

fn collect(table: &Table, record: &Record, found: &mut Vec<Subtable>) {
    for field in &record.fields {
        match &field.value {
            Value::Table(stored) => {
                let mut paths = vec![table.resolve(stored)];
                if let TableKind::Concatenation { parts } = &table.kind
                    && table.concatenated.contains(&field.name)
                {
                    // parts that cannot be opened were reported when the concatenation was
                    let unlocked = OpenOptions { locking: Locking::None, ..OpenOptions::default() };
                    let open = |part| Table::open_with(part, unlocked).ok();
                    let parts: Vec<Table> = parts.iter().filter_map(open).collect();
                    paths = super::view::subtable_paths(&parts, field.name.as_bstr());
                }
                found.push(Subtable { name: field.name.clone(), stored: stored.clone(), paths });
            }
            Value::Record(nested) => collect(table, nested, found),
            _ => {}
        }
    }
}
