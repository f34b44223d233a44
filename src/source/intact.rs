//! Reads a column that is damaged in places: damaged cells are presented as undefined ones.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::table::{Access, ColumnCells};
use crate::value::{Region, Shape, Values};

#[derive(Debug)]
pub(super) enum ColumnDamage {
    None,
    /// Ascending, each with the error of its first row.
    Rows(Vec<(Range<u64>, Error)>),
    /// The column cannot be opened, or none of its cells can be read.
    Whole(Error),
}

/// Damaged cells appear as undefined.
pub(super) struct Intact<'a> {
    pub(super) cells: Box<dyn ColumnCells + 'a>,
    pub(super) damaged: &'a [(Range<u64>, Error)],
}

impl Intact<'_> {
    /// `None` if the cell is intact.
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

    /// Damaged cells are skipped as undefined ones are.
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

    fn access(&self) -> Access {
        self.cells.access()
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let is_intact = !self.damaged.iter().any(|(range, _)| range.end > rows.start && range.start < rows.end);
        is_intact.then(|| self.cells.same_shape(rows)).flatten()
    }
}
