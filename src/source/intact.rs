//! The intact cells of a column that is damaged in places.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::table::ColumnCells;
use crate::value::{Region, Shape, Values};

/// The damage of one column.
#[derive(Debug)]
pub(super) enum ColumnDamage {
    None,
    /// Ascending ranges of rows, each with the error of its first row.
    Rows(Vec<(Range<u64>, Error)>),
    /// No cell can be read, or the column cannot be opened.
    Whole(Error),
}

/// A column whose damaged cells are undefined.
pub(super) struct Intact<'a> {
    pub(super) cells: Box<dyn ColumnCells + 'a>,
    pub(super) damaged: &'a [(Range<u64>, Error)],
}

impl Intact<'_> {
    /// The damage of a row, if it is damaged.
    fn damage(&self, row: u64) -> Option<&Error> {
        let next = self.damaged.partition_point(|(range, _)| range.start <= row);
        let (range, error) = self.damaged.get(next.checked_sub(1)?)?;
        range.contains(&row).then_some(error)
    }
}

impl ColumnCells for Intact<'_> {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        if self.damage(row).is_some() { Ok(None) } else { self.cells.cell_shape(row) }
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        match self.damage(row) {
            Some(error) => Err(error.clone()),
            None => self.cells.read_cell(row, region, out),
        }
    }

    /// The elements of the intact cells, without those of damaged ones, as for undefined cells.
    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let mut start = rows.start;
        for (damaged, _) in self.damaged.iter().filter(|(range, _)| range.end > rows.start && range.start < rows.end) {
            if damaged.start > start {
                self.cells.read_rows(start..damaged.start, out)?;
            }
            start = damaged.end;
        }
        if start < rows.end { self.cells.read_rows(start..rows.end, out) } else { Ok(()) }
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let is_intact = !self.damaged.iter().any(|(range, _)| range.end > rows.start && range.start < rows.end);
        is_intact.then(|| self.cells.same_shape(rows)).flatten()
    }
}
