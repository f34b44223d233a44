//! Views of the tables of a MeasurementSet whose cells are averaged when they are read.

use super::plan::AveragePlan;
use super::windows::WindowPlan;
use crate::error::Result;
use crate::native::View;
use crate::source::content::{Content, TableContent};
use crate::source::origin::Origin;
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::Values;

pub(super) struct AveragedMain {
    whole: Box<Content>,
    plan: AveragePlan,
}

/// The table SPECTRAL_WINDOW, all rows of which are kept.
pub(super) struct AveragedWindowTable {
    whole: Box<Content>,
    plan: WindowPlan,
}

impl AveragedMain {
    pub(super) fn of(whole: Box<Content>, plan: AveragePlan) -> Box<Content> {
        Box::new(AveragedMain { whole, plan })
    }
}

impl AveragedWindowTable {
    pub(super) fn of(whole: Box<Content>, plan: WindowPlan) -> Box<Content> {
        Box::new(AveragedWindowTable { whole, plan })
    }
}

impl TableContent for AveragedMain {
    fn inner(&self) -> Option<&Content> {
        Some(&*self.whole)
    }

    fn origin(&self) -> Origin<'_> {
        self.whole.origin()
    }

    fn rows(&self) -> u64 {
        self.plan.rows()
    }

    fn columns(&self) -> &[ColumnInfo] {
        self.plan.columns()
    }

    fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        self.plan.cells(index, &|index| self.whole.cells(index))
    }

    fn original_row(&self, row: u64) -> u64 {
        if self.plan.keeps_rows() { self.whole.original_row(row) } else { row }
    }

    fn row_numbers(&self) -> Result<Option<Vec<i64>>> {
        if self.plan.keeps_rows() { self.whole.row_numbers() } else { Ok(None) }
    }

    fn view(&self) -> Option<View> {
        None
    }

    fn averaging(&self) -> Result<Option<String>> {
        let now = self.plan.averaging();
        Ok(Some(match self.whole.averaging()? {
            Some(before) => format!("{before}; {now}"),
            None => now.to_string(),
        }))
    }

    fn edits(&self, _coordinates: &dyn Fn() -> Vec<(String, Values)>) -> Result<Vec<String>> {
        self.whole.edits(&Vec::new)
    }
}

impl TableContent for AveragedWindowTable {
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
        self.plan.columns()
    }

    fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        self.plan.cells(index, &|index| self.whole.cells(index))
    }

    fn edits(&self, _coordinates: &dyn Fn() -> Vec<(String, Values)>) -> Result<Vec<String>> {
        self.whole.edits(&Vec::new)
    }
}
