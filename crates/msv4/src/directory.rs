//! A MeasurementSet in a directory, without HDF5: its main table and subtables, opened with ctds.

use std::path::Path;

use bstr::ByteSlice;
use ctds::value::Record;
use ctds::{Column, ColumnInfo, Error, OpenOptions, Result, Table};

use crate::tables::{MAIN, Tables};

/// A MeasurementSet that ctds opens: a directory, or a MultiFile container.
pub struct MeasurementSet {
    /// The main table, as [`MAIN`], and the subtables by their names.
    tables: Vec<(String, Table)>,
}

impl MeasurementSet {
    /// Opens the main table and those subtables that can be opened, and locks them for reading
    /// until this is dropped.
    ///
    /// # Errors
    /// Those of [`Table::open`] for the main table.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let main = Table::open(path)?;
        let opened = main.subtables().into_iter().filter_map(|subtable| {
            let table = subtable.open(OpenOptions::default()).ok()?;
            Some((subtable.name.to_str_lossy().into_owned(), table))
        });
        let mut tables: Vec<_> = opened.collect();
        // ephemerides are found by their names alone
        let inside = tables.iter().filter(|(name, _)| name == "FIELD").flat_map(|(_, field)| field.tables_inside());
        let ephemerides = inside.filter_map(|subtable| {
            Some((format!("FIELD/{}", subtable.name), subtable.open(OpenOptions::default()).ok()?))
        });
        let mut ephemerides: Vec<_> = ephemerides.collect();
        tables.append(&mut ephemerides);
        tables.insert(0, (MAIN.to_owned(), main));
        Ok(MeasurementSet { tables })
    }

    fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|(other, _)| other == name).map(|(_, table)| table)
    }
}

impl Tables for MeasurementSet {
    fn rows(&self, table: &str) -> Option<u64> {
        self.table(table).map(Table::rows)
    }

    fn columns(&self, table: &str) -> &[ColumnInfo] {
        self.table(table).map(Table::columns).unwrap_or_default()
    }

    fn names(&self) -> Vec<&str> {
        self.tables.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn keywords(&self, table: &str) -> Option<&Record> {
        self.table(table).map(Table::keywords)
    }

    fn column(&self, table: &str, column: &str) -> Result<Column<'_>> {
        let found = self.table(table).ok_or_else(|| Error::not_found(format!("table {table} is missing")))?;
        found.column(column)
    }
}
