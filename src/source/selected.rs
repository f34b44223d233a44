//! A view of a table that has only some of its rows, chosen by a condition or a range.

use std::ops::Range;

use super::content::{Content, TableContent};
use super::origin::Origin;
use super::row_set::RowSet;
use crate::error::Result;
use crate::native::View;
use crate::stman::undefined;
use crate::table::{Access, ColumnCells, ColumnInfo};
use crate::value::{Region, Shape, Values};

pub(super) struct Selected {
    whole: Box<Content>,
    rows: RowSet,
}

impl Selected {
    pub(super) fn of(whole: Box<Content>, rows: RowSet) -> Box<Content> {
        Box::new(Selected { whole, rows })
    }
}

impl TableContent for Selected {
    fn inner(&self) -> Option<&Content> {
        Some(&*self.whole)
    }

    fn origin(&self) -> Origin<'_> {
        self.whole.origin()
    }

    fn rows(&self) -> u64 {
        self.rows.len()
    }

    fn columns(&self) -> &[ColumnInfo] {
        self.whole.columns()
    }

    fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        Ok(Box::new(Chosen { cells: self.whole.cells(index)?, rows: &self.rows }))
    }

    fn original_row(&self, row: u64) -> u64 {
        self.rows.row(row).unwrap_or(row)
    }

    /// Some rows of a concatenation are not one.
    fn view(&self) -> Option<View> {
        self.whole.view().filter(View::is_reference)
    }

    fn root_rows(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for rows in self.rows.ranges(rows) {
            numbers.append(&mut self.whole.root_rows(rows)?);
        }
        Ok(numbers)
    }

    fn row_numbers(&self) -> Result<Option<Vec<i64>>> {
        Ok(Some((0..self.rows.len()).map(|row| self.original_row(row) as i64).collect()))
    }
}

/// Row numbers passed to methods count only the chosen rows.
struct Chosen<'a> {
    cells: Box<dyn ColumnCells + 'a>,
    rows: &'a RowSet,
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
