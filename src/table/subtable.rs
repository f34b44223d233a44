//! The tables that the keywords of a table name.

use std::path::PathBuf;

use bstr::BString;

use super::Table;
use crate::schema::resolve;
use crate::value::{Record, Value};

/// A table named by a keyword of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subtable {
    /// The keyword.
    pub name: BString,
    /// The name as the keyword stores it.
    pub stored: BString,
    /// Where the table lies.
    pub path: PathBuf,
}

/// The subtables of the table's own keywords, then of its columns'.
pub(super) fn find(table: &Table) -> Vec<Subtable> {
    let mut found = Vec::new();
    collect(table, &table.desc.keywords, &mut found);
    for column in &table.desc.columns {
        collect(table, &column.keywords, &mut found);
    }
    found
}

fn collect(table: &Table, record: &Record, found: &mut Vec<Subtable>) {
    for field in &record.fields {
        match &field.value {
            Value::Table(stored) => found.push(Subtable {
                name: field.name.clone(),
                stored: stored.clone(),
                path: resolve(stored, &table.path),
            }),
            Value::Record(nested) => collect(table, nested, found),
            _ => {}
        }
    }
}
