//! The tables of a source as the crate msv4 asks for them.

use msv4::Tables;

use super::Source;
use super::tables::SourceTable;
use crate::error::{Error, Result};
use crate::table::{Column, ColumnInfo};
use crate::value::Record;

impl Tables for Source {
    fn rows(&self, table: &str) -> Option<u64> {
        self.table_named(table)?.rows().ok()
    }

    fn columns(&self, table: &str) -> &[ColumnInfo] {
        self.table_named(table).and_then(|table| table.columns().ok()).unwrap_or_default()
    }

    fn names(&self) -> Vec<&str> {
        self.tables().iter().map(|table| table.name.as_str()).collect()
    }

    fn keywords(&self, table: &str) -> Option<&Record> {
        self.table_named(table)?.keywords().ok()
    }

    fn column(&self, table: &str, column: &str) -> Result<Column<'_>> {
        let missing = || Error::not_found(format!("table {table} has no column {column}"));
        let number = self.tables().iter().position(|other| other.name == table).ok_or_else(missing)?;
        let columns = self.tables()[number].columns()?;
        let index = columns.iter().position(|info| info.desc.name == column).ok_or_else(missing)?;
        self.column_at(number, index)
    }
}

impl Source {
    fn table_named(&self, name: &str) -> Option<&SourceTable> {
        self.tables().iter().find(|table| table.name == name)
    }
}
