//! A view of a damaged table: damaged cells appear as undefined, and damaged columns cannot be
//! opened.

use std::ops::Range;

use super::content::{Content, TableContent};
use super::origin::Origin;
use crate::error::{Error, Result};
use crate::table::{Access, ColumnCells, ColumnInfo};
use crate::value::{Region, Shape, Values};

#[derive(Debug)]
pub(super) enum ColumnDamage {
    None,
    /// Ascending, each with the error of its first row.
    Rows(Vec<(Range<u64>, Error)>),
    /// The column cannot be opened, or none of its cells can be read.
    Whole(Error),
}

pub(super) struct Salvaged {
    whole: Box<Content>,
    /// Columns with damaged rows are marked as columns whose cells may be undefined.
    columns: Vec<ColumnInfo>,
    damaged: Vec<ColumnDamage>,
}

impl Salvaged {
    pub(super) fn of(whole: Box<Content>, damaged: Vec<ColumnDamage>) -> Box<Content> {
        let mut columns = whole.columns().to_vec();
        for (info, damage) in columns.iter_mut().zip(&damaged) {
            info.may_be_undefined |= matches!(damage, ColumnDamage::Rows(_));
        }
        Box::new(Salvaged { whole, columns, damaged })
    }
}

impl TableContent for Salvaged {
    fn inner(&self) -> Option<&Content> {
        Some(&*self.whole)
    }

    fn origin(&self) -> Origin<'_> {
        self.whole.origin()
    }

    fn rows(&self) -> u64 {
        self.whole.rows()
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        match &self.damaged[index] {
            ColumnDamage::None => self.whole.cells(index),
            ColumnDamage::Whole(error) => Err(error.clone()),
            ColumnDamage::Rows(damaged) => Ok(Box::new(Intact { cells: self.whole.cells_in_part(index)?, damaged })),
        }
    }

    fn unreadable(&self, index: usize) -> Option<Error> {
        match &self.damaged[index] {
            ColumnDamage::Rows(_) => None,
            _ => self.whole.unreadable(index),
        }
    }
}

struct Intact<'a> {
    cells: Box<dyn ColumnCells + 'a>,
    damaged: &'a [(Range<u64>, Error)],
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
