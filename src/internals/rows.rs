//! Cells of columns in blocks and runs of rows, which ms-look adds up, and the tables that keywords
//! name.

use std::sync::Arc;

use crate::error::Result;
use crate::live::{EachRun, TableReader};
use crate::source::Source;
pub use crate::source::blocks::RowBlocks;
use crate::table::ColumnCells;

/// As `Source::column_at`, without the checks and contexts of a `Column`.
pub fn cells(source: &Source, table: usize, column: usize) -> Result<Arc<dyn ColumnCells + '_>> {
    source.cells_at(table, column).map(|(_, cells)| cells)
}

/// See `live/reader.rs`.
pub fn each_run(table: &TableReader, column: &str, rows: &[u64], each: &mut EachRun<'_>) -> Result<()> {
    table.each_run(column, rows, each)
}

/// See `source/tables.rs`.
pub fn find(source: &Source, of: usize, stored: &[u8]) -> Option<usize> {
    source.find(of, stored)
}
