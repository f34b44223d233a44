//! One interface to the content of a table: a casacore table, a table of a native HDF5 file, or a
//! view of these: salvaged, selected, averaged, joined. Columns and rows are numbered from 0.
//!
//! To add a view, write a file with an `impl TableContent` that holds the content it shows as its
//! `inner`, which answers every question that the view does not answer itself.

use std::ops::Range;

use super::origin::Origin;
use crate::error::{Error, Result};
use crate::h5::{Attribute, VirtualSource};
use crate::native::{DatasetInfo, Layout, NativeTable, Part, StoredBlock, StoredDigests, View, Written};
use crate::output::Damage;
use crate::schema::TableInfo;
use crate::table::{ColumnCells, ColumnInfo, Table};
use crate::value::{Record, Shape, Values};

pub(crate) type Content = dyn TableContent;

/// The methods of [`Content`] answer further questions by the methods of this trait.
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

    /// Numbers in the table that rows were selected from; `None` without a selection or numbers.
    fn row_numbers(&self) -> Result<Option<Vec<i64>>> {
        self.inner().map_or(Ok(None), Content::row_numbers)
    }

    /// Form: `time=10s,chan=4`. Rows averaged when the HDF5 file was made and again on reading have
    /// both, separated by `; `.
    fn averaging(&self) -> Result<Option<String>> {
        self.inner().map_or(Ok(None), Content::averaging)
    }

    /// The view that the table is, or was before its conversion; `None` if its rows are not those
    /// of other tables.
    fn view(&self) -> Option<View> {
        self.inner()?.view()
    }

    /// Numbers of `rows` in the root of the reference table that [`view`](Self::view) describes.
    fn root_rows(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        match self.inner() {
            Some(inner) => inner.root_rows(rows),
            None => Err(Error::usage("the table was not a reference table")),
        }
    }

    /// Frees decoded parts of a casacore table's column; cells of HDF5 free theirs when dropped.
    fn forget(&self, index: usize) {
        if let Some(inner) = self.inner() {
            inner.forget(index);
        }
    }

    /// Error of reading a column, as far as it is known without opening the column.
    fn unreadable(&self, index: usize) -> Option<Error> {
        self.inner()?.unreadable(index)
    }

    /// Hypercubes whose chunks are plain little-endian elements, contiguous in the HDF5 file; empty
    /// for other columns and tables, and for views.
    fn blocks(&self, _index: usize) -> Result<Vec<StoredBlock>> {
        Ok(Vec::new())
    }

    /// Datasets of the joined files that form a virtual dataset of shape `dataset`; `None` if the
    /// table is not joined, or the elements must be copied.
    fn virtual_sources(&self, _index: usize, _dataset: &Shape) -> Result<Option<Vec<VirtualSource>>> {
        Ok(None)
    }

    /// The first and the last row of each of several joined tables, as ranges of one row.
    fn edges_of_parts(&self) -> Vec<Range<u64>> {
        Vec::new()
    }

    /// Sentences about changes of users in the HDF5 file, and additions that no table has; empty
    /// for a casacore table. `coordinates` gives those of its axes as in the file.
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

    /// `None` if the table is not in an HDF5 file.
    pub(crate) fn group(&self, stored: &[u8]) -> Option<&str> {
        self.origin().group(stored)
    }

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

    /// Damage left out when the HDF5 file of this main table was made; else empty.
    pub(crate) fn damage(&self) -> &[Damage] {
        self.as_native().map_or(&[], NativeTable::damage)
    }

    /// Empty if the table is not in an HDF5 file.
    pub(crate) fn storage(&self, index: usize) -> Result<Vec<DatasetInfo>> {
        self.as_native().map_or(Ok(Vec::new()), |table| table.storage(index))
    }

    pub(crate) fn stored_digests(&self) -> Result<Option<StoredDigests>> {
        self.as_native().map_or(Ok(None), NativeTable::stored_digests)
    }

    /// `None` if the column has several datasets, or none.
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

    /// Number in the table that rows were selected from; `None` unless an HDF5 file records it.
    pub(super) fn first_row(&self) -> Result<Option<i64>> {
        self.as_native().map_or(Ok(None), NativeTable::first_row)
    }

    /// Info and comments that the HDF5 file was made with, if attributes have been edited since.
    pub(crate) fn written(&self) -> Result<Option<&Written>> {
        self.as_native().map_or(Ok(None), NativeTable::written)
    }
}
