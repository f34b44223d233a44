//! A column of a table that is reduced to some of its rows.

use std::ops::Range;

use super::row_set::RowSet;
use crate::error::Result;
use crate::stman::undefined;
use crate::table::{Access, ColumnCells};
use crate::value::{Region, Shape, Values};

/// The cells of a column in the chosen rows of a table; rows count from 0 among the chosen ones.
pub(super) struct Chosen<'a> {
    pub(super) cells: Box<dyn ColumnCells + 'a>,
    pub(super) rows: &'a RowSet,
}

impl Chosen<'_> {
    /// The number, in the whole table, of a chosen row.
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

    /// The shape that all cells of the chosen `rows` have, if the column knows it for the ranges they are in, or for everything
    /// between the first and the last.
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
