//! The content of a table of a native HDF5 file.

use std::ops::Range;

use super::content::{Content, TableContent};
use super::origin::Origin;
use crate::error::{Error, Result};
use crate::native::{AVERAGED, NativeTable, StoredBlock, View};
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::Values;

impl TableContent for NativeTable {
    fn inner(&self) -> Option<&Content> {
        None
    }

    fn origin(&self) -> Origin<'_> {
        Origin::Native(self)
    }

    fn rows(&self) -> u64 {
        NativeTable::rows(self)
    }

    fn columns(&self) -> &[ColumnInfo] {
        NativeTable::columns(self)
    }

    fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        NativeTable::cells(self, index)
    }

    fn row_numbers(&self) -> Result<Option<Vec<i64>>> {
        NativeTable::row_numbers(self)
    }

    fn view(&self) -> Option<View> {
        NativeTable::view(self)
    }

    fn root_rows(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        NativeTable::root_rows(self, rows)
    }

    fn averaging(&self) -> Result<Option<String>> {
        let found = self.root_attributes()?.into_iter().find(|(name, _)| name == AVERAGED);
        Ok(found.and_then(|(_, attribute)| match attribute.values() {
            Values::String(strings) => strings.first().map(ToString::to_string),
            _ => None,
        }))
    }

    fn unreadable(&self, index: usize) -> Option<Error> {
        self.missing(index)
    }

    fn blocks(&self, index: usize) -> Result<Vec<StoredBlock>> {
        NativeTable::blocks(self, index)
    }

    fn edits(&self, coordinates: &dyn Fn() -> Vec<(String, Values)>) -> Result<Vec<String>> {
        NativeTable::edits(self, coordinates)
    }
}
