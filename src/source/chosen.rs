//! Reads a column of a table that is reduced to some of its rows, chosen by a condition or a range.

use std::ops::Range;

use super::row_set::RowSet;
use crate::error::Result;
use crate::stman::undefined;
use crate::table::{Access, ColumnCells};
use crate::value::{Region, Shape, Values};

/// A column in the chosen rows of a table. Methods count only these rows.
pub(super) struct Chosen<'a> {
    pub(super) cells: Box<dyn ColumnCells + 'a>,
    pub(super) rows: &'a RowSet,
}

impl Chosen<'_> {
    /// The row in the whole table; fails if fewer rows are chosen.
    fn row(&self, row: u64) -> Result<u64> {
        self.rows.row(row).ok_or_else(|| undefined(row))
    }
}

impl ColumnCells for Chosen<'_> {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.cells.cell_shape(self.row(row)?)
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        self.cells.read_cell(self.row(row)?, region, out)
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.rows.ranges(rows).try_for_each(|rows| self.cells.read_rows(rows, out))
    }

    fn access(&self) -> Access {
        self.cells.access()
    }

    /// `None` if shapes differ, or are not known without reading each cell.
    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let first = self.rows.row(rows.start)?;
        let last = self.rows.row(rows.end.checked_sub(1)?)?;
        if let Some(shape) = self.cells.same_shape(&(first..last + 1)) {
            return Some(shape);
        }
        let mut shapes = self.rows.ranges(rows.clone()).map(|rows| self.cells.same_shape(&rows));
        let common = shapes.next()??;
        shapes.all(|shape| shape.as_ref() == Some(&common)).then_some(common)
    }
}
