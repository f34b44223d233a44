//! One interface to the content of a table: a casacore table, a table of a native HDF5 file, or a
//! view of these: salvaged, selected, averaged, joined. Columns and rows are numbered from 0.
//!
//! To add a view, write a file with an `impl TableContent` that holds the content it shows as its
//! `inner`, which answers every question that the view does not answer itself.

use std::ops::Range;

use super::origin::Origin;
use crate::error::{Error, Result};
use crate::h5::{Attribute, VirtualSource};
use crate::native::{DatasetInfo, Layout, NativeTable, Part, StoredBlock, StoredDigests, Written};
use crate::output::Damage;
use crate::schema::TableInfo;
use crate::table::{ColumnCells, ColumnInfo, Table};
use crate::value::{Record, Shape, Values};

/// The content of one table, wherever it lies.
pub(crate) type Content = dyn TableContent;

/// The questions that tables and their views answer, each in its own way; the methods of
/// [`Content`] answer others from these.
pub(crate) trait TableContent: Send + Sync {
    /// The first of several for joined tables; `None` if this is not a view.
    fn inner(&self) -> Option<&Content>;

    /// The table that the values come from, the first of several.
    fn origin(&self) -> Origin<'_>;

    fn rows(&self) -> u64;

    /// The order is that of the table description.
    fn columns(&self) -> &[ColumnInfo];

    /// The cells of a column of type Record are decoded to records.
    fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>>;

    /// As [`cells`](Self::cells), also if only a part of them can be read.
    fn cells_in_part(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        self.cells(index)
    }

    /// `None` for a casacore table and for joined files.
    fn as_native(&self) -> Option<&NativeTable> {
        match self.origin() {
            Origin::Casacore(_) => None,
            Origin::Native(table) => Some(table),
        }
    }

    /// The row number in the whole table; another one only if rows are selected.
    fn original_row(&self, row: u64) -> u64 {
        self.inner().map_or(row, |inner| inner.original_row(row))
    }

    /// The number that each row has in the table it was selected from; `None` if no rows were
    /// selected, or no numbers are known.
    fn row_numbers(&self) -> Result<Option<Vec<i64>>> {
        self.inner().map_or(Ok(None), Content::row_numbers)
    }

    /// How the rows were averaged: `time=10s,chan=4`. If they were averaged when the HDF5 file was
    /// made and are averaged again on reading, both are given, separated by `; `.
    ///
    /// # Errors
    /// Those of reading the file.
    fn averaging(&self) -> Result<Option<String>> {
        self.inner().map_or(Ok(None), Content::averaging)
    }

    /// Frees the memory in which a casacore table keeps decoded parts of a column; later reads
    /// decode them again. The cells of an HDF5 file free theirs when they are dropped.
    fn forget(&self, index: usize) {
        if let Some(inner) = self.inner() {
            inner.forget(index);
        }
    }

    /// The error that reading a column would return, as far as it is known without opening the
    /// column.
    fn unreadable(&self, index: usize) -> Option<Error> {
        self.inner()?.unreadable(index)
    }

    /// The hypercubes of a column, if their chunks are plain little-endian elements and those of
    /// each hypercube are contiguous in the HDF5 file; empty for other columns and tables, and for
    /// views.
    fn blocks(&self, _index: usize) -> Result<Vec<StoredBlock>> {
        Ok(Vec::new())
    }

    /// The datasets of the joined files that form a virtual dataset of shape `dataset` (fastest
    /// axis first) with the elements of a column. `None` if the table is not joined, or the
    /// elements must be copied.
    fn virtual_sources(&self, _index: usize, _dataset: &Shape) -> Result<Option<Vec<VirtualSource>>> {
        Ok(None)
    }

    /// The first and the last row of each of several joined tables, as ranges of one row.
    fn edges_of_parts(&self) -> Vec<Range<u64>> {
        Vec::new()
    }

    /// Sentences about changes of users in the HDF5 file since it was made, and about their
    /// additions that no table has; empty for a casacore table. `coordinates` gives those of its
    /// axes as it is in the file.
    ///
    /// # Errors
    /// Those of reading the file.
    fn edits(&self, coordinates: &dyn Fn() -> Vec<(String, Values)>) -> Result<Vec<String>> {
        self.inner().map_or(Ok(Vec::new()), |inner| inner.edits(coordinates))
    }
}

impl dyn TableContent {
    /// The keywords of the table, including those that name subtables.
    pub(crate) fn keywords(&self) -> &Record {
        self.origin().keywords()
    }

    pub(crate) fn info(&self) -> &TableInfo {
        self.origin().info()
    }

    /// The last component of the path of the subtable that a keyword stores as `stored`.
    pub(crate) fn table_name(&self, stored: &[u8]) -> String {
        self.origin().table_name(stored)
    }

    /// The path of the group of the subtable that a keyword stores as `stored`; `None` if the table
    /// is not in an HDF5 file.
    pub(crate) fn group(&self, stored: &[u8]) -> Option<&str> {
        self.origin().group(stored)
    }

    /// How the casacore table is or was stored, as far as that is known.
    pub(crate) fn layout(&self) -> Layout {
        self.origin().layout()
    }

    /// `None` if the content is in an HDF5 file.
    pub(crate) fn as_table(&self) -> Option<&Table> {
        match self.origin() {
            Origin::Casacore(table) => Some(table),
            Origin::Native(_) => None,
        }
    }

    /// `None` for casacore tables and joined files.
    pub(crate) fn root_attributes(&self) -> Result<Option<Vec<(String, Attribute)>>> {
        self.as_native().map(NativeTable::root_attributes).transpose()
    }

    /// Cells that do not borrow from this table; `None` if it is not in an HDF5 file.
    pub(crate) fn owned_cells(&self, index: usize) -> Result<Option<Box<dyn ColumnCells>>> {
        self.as_native().map(|table| table.cells(index)).transpose()
    }

    /// The damaged parts that were left out when the HDF5 file of this main table was made; empty
    /// for all other tables.
    pub(crate) fn damage(&self) -> &[Damage] {
        self.as_native().map_or(&[], NativeTable::damage)
    }

    /// Empty if the table is not in an HDF5 file.
    pub(crate) fn storage(&self, index: usize) -> Result<Vec<DatasetInfo>> {
        self.as_native().map_or(Ok(Vec::new()), |table| table.storage(index))
    }

    /// The digests that were stored when the HDF5 file was made.
    pub(crate) fn stored_digests(&self) -> Result<Option<StoredDigests>> {
        self.as_native().map_or(Ok(None), NativeTable::stored_digests)
    }

    /// The path of the dataset that has all cells of a column; `None` if it has several, or the
    /// table is not in an HDF5 file.
    pub(crate) fn only_dataset(&self, index: usize) -> Option<String> {
        self.as_native()?.only_dataset(index)
    }

    /// As [`NativeTable::chunks_of_rows`]; `None` if the table is not in an HDF5 file.
    pub(crate) fn chunks_of_rows(&self, index: usize, rows: &Range<u64>) -> Result<Option<(String, Vec<Range<u64>>)>> {
        self.as_native().map_or(Ok(None), |table| table.chunks_of_rows(index, rows))
    }

    /// As [`NativeTable::dataset_paths`]; empty if the table is not in an HDF5 file.
    pub(crate) fn dataset_paths(&self, index: usize) -> Result<Vec<(Part, String)>> {
        self.as_native().map_or(Ok(Vec::new()), |table| table.dataset_paths(index))
    }

    /// The number that the first row has in the table it was selected from; `None` if this is not
    /// an HDF5 file that records it.
    pub(super) fn first_row(&self) -> Result<Option<i64>> {
        self.as_native().map_or(Ok(None), NativeTable::first_row)
    }

    /// Info and comments that the HDF5 file was made with, if attributes have been edited since.
    ///
    /// # Errors
    /// Those of reading the attributes.
    pub(crate) fn written(&self) -> Result<Option<&Written>> {
        self.as_native().map_or(Ok(None), NativeTable::written)
    }
}
