//! Averages an opened MeasurementSet: its main table and SPECTRAL_WINDOW are replaced by views that
//! compute averages when they are read.

use std::ops::Range;

use super::averaging::Averaging;
use super::plan::AveragePlan;
use super::views::{AveragedMain, AveragedWindowTable};
use super::windows::WindowPlan;
use crate::error::{Error, Result};
use crate::limits;
use crate::progress::Progress;
use crate::source::Source;
use crate::source::content::Content;
use crate::source::row_set::RowSet;
use crate::source::selected::Selected;

/// Summary of averaging a MeasurementSet: numbers of rows and channels before and after, and the
/// columns that were not averaged.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Averaged {
    /// The averaging that was requested: the length of a time bin in seconds and the number of
    /// channels that become one.
    pub averaging: Averaging,
    /// Number of rows of the main table before averaging.
    pub rows_before: u64,
    /// Number of rows of the main table after averaging.
    pub rows: u64,
    /// Name of the column with the weights of samples (WEIGHT_SPECTRUM or WEIGHT); `None`: all
    /// samples count the same.
    pub weights: Option<String>,
    /// Names of columns whose values cannot be averaged: an averaged row has the value of the first
    /// row of its time bin.
    pub first_values: Vec<String>,
    /// Names of columns that have no defined cell after averaging, such as FLAG_CATEGORY.
    pub left_undefined: Vec<String>,
    /// The number of channels of each row of SPECTRAL_WINDOW, before and after averaging; empty if
    /// channels are not averaged, or without CHAN_FREQ.
    pub channels: Vec<(u64, u64)>,
}

impl Averaged {
    /// Elements before averaging, as a ratio: of rows, times the mean one of channels.
    pub(crate) fn reduction(&self) -> f64 {
        let (before, after) = self.channels.iter().fold((0, 0), |sum, window| (sum.0 + window.0, sum.1 + window.1));
        let ratio = |before: u64, after: u64| before.max(1) as f64 / after.max(1) as f64;
        ratio(self.rows_before, self.rows) * ratio(before, after)
    }

    /// Memory of the rows in each time bin; 0 if rows are not averaged in time.
    pub(crate) fn memory(&self) -> u64 {
        match self.averaging.seconds() {
            Some(_) => 4 * self.rows_before + 12 * self.rows,
            None => 0,
        }
    }
}

impl Source {
    /// Replaces the main table, of which `rows` are used, and SPECTRAL_WINDOW if channels are
    /// averaged. `Usage` if the source is not a MeasurementSet, or the rows exceed it; `Limit` if
    /// more than `max_memory` bytes are needed to find the bins.
    pub(crate) fn average(
        &mut self,
        averaging: Averaging,
        rows: Option<Range<u64>>,
        max_memory: u64,
        progress: &dyn Progress,
    ) -> Result<Averaged> {
        averaging.check()?;
        if self.is_salvaged {
            return Err(Error::usage("a damaged source is not averaged: convert it first, then average the file"));
        }
        if let Some(rows) = rows {
            self.take_rows(rows)?;
        }
        let factor = averaging.channel_factor();
        let main = self.tables[0].content()?;
        let rows_before = main.rows();
        let open = |index: usize| main.cells(index);
        let plan = AveragePlan::new(averaging, main.columns(), rows_before, &open, max_memory, progress)?;
        let mut averaged = Averaged {
            averaging,
            rows_before,
            rows: plan.rows(),
            weights: plan.weights(),
            first_values: plan.first_values(),
            left_undefined: plan.left_undefined(),
            channels: Vec::new(),
        };
        self.change(0, |whole| AveragedMain::of(whole, plan));
        let windows = self.tables.iter().position(|table| table.name == "SPECTRAL_WINDOW" && table.content.is_ok());
        match windows {
            Some(number) if factor > 1 => {
                let content = self.tables[number].content()?;
                averaged.channels = channels(content, factor)?;
                let plan = WindowPlan::new(factor, content.columns());
                self.change(number, |whole| AveragedWindowTable::of(whole, plan));
            }
            None if factor > 1 => {
                return Err(Error::usage("averaging channels is for MeasurementSets: no table SPECTRAL_WINDOW"));
            }
            _ => {}
        }
        Ok(averaged)
    }

    fn take_rows(&mut self, rows: Range<u64>) -> Result<()> {
        let all = self.tables[0].content()?.rows();
        limits::row_range(&rows, all)?;
        limits::selected_rows(all)?;
        let mut taken = RowSet::default();
        (0..rows.end).for_each(|row| taken.push(row >= rows.start));
        self.change(0, |whole| Selected::of(whole, taken));
        Ok(())
    }

    fn change(&mut self, table: usize, change: impl FnOnce(Box<Content>) -> Box<Content>) {
        let content = &mut self.tables[table].content;
        *content = std::mem::replace(content, Err(Error::usage("the table is being averaged"))).map(change);
    }
}

/// Channels of each spectral window, before and after; empty without CHAN_FREQ.
fn channels(windows: &Content, factor: u64) -> Result<Vec<(u64, u64)>> {
    let Some(index) = windows.columns().iter().position(|info| info.desc.name == "CHAN_FREQ") else {
        return Ok(Vec::new());
    };
    let shapes = windows.cells(index)?.shapes(0..windows.rows())?;
    let count = |shape: Option<crate::value::Shape>| shape.and_then(|shape| shape.last().copied()).unwrap_or(0);
    Ok(shapes.into_iter().map(count).map(|count| (count, count.div_ceil(factor))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_are_of_rows_and_channels() {
        let reduction = |rows_before: u64, rows: u64, channels: &[(u64, u64)]| {
            let averaging = "time=10s,chan=4".parse().unwrap();
            let (weights, first_values, left_undefined) = (None, Vec::new(), Vec::new());
            let channels = channels.to_vec();
            Averaged { averaging, rows_before, rows, weights, first_values, left_undefined, channels }.reduction()
        };
        let both = reduction(100, 10, &[(64, 16), (4, 1)]);
        assert_eq!(
            [reduction(100, 10, &[]), reduction(7, 7, &[(64, 16)]), both, reduction(0, 0, &[])],
            [10., 4., 40., 1.]
        );
    }
}
