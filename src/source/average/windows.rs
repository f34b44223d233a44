//! Averages the table SPECTRAL_WINDOW: each spectral window gets fewer channels.

use std::ops::Range;

use super::averaging::fewer_channels;
use super::plan::OpenCells;
use crate::error::{Error, Result};
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::{DataType, Region, Shape, Values};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowRule {
    /// CHAN_FREQ: mean weighted by widths, the middle of the band.
    Frequency,
    Sum,
    Count,
    Same,
}

#[derive(Debug)]
pub(super) struct WindowPlan {
    factor: u64,
    rules: Vec<WindowRule>,
    /// `None` without such a column of doubles.
    width: Option<usize>,
    columns: Vec<ColumnInfo>,
}

impl WindowPlan {
    pub(super) fn new(factor: u64, infos: &[ColumnInfo]) -> Self {
        let rule = |info: &ColumnInfo| match (info.desc.name.as_slice(), info.data_type()) {
            (b"CHAN_FREQ", DataType::Double) => WindowRule::Frequency,
            (b"CHAN_WIDTH" | b"EFFECTIVE_BW" | b"RESOLUTION", DataType::Double) => WindowRule::Sum,
            (b"NUM_CHAN", DataType::Int) => WindowRule::Count,
            _ => WindowRule::Same,
        };
        let rules: Vec<_> = infos.iter().map(rule).collect();
        let width =
            infos.iter().position(|info| info.desc.name == "CHAN_WIDTH" && info.data_type() == DataType::Double);
        let columns = infos.iter().zip(&rules).map(|(info, rule)| {
            let mut info = info.clone();
            if matches!(rule, WindowRule::Frequency | WindowRule::Sum) {
                info.shape = info.shape.map(|shape| fewer_channels(&shape, factor));
                info.desc.shape = fewer_channels(&info.desc.shape, factor);
            }
            info
        });
        WindowPlan { factor, columns: columns.collect(), rules, width }
    }

    pub(crate) fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// Averaged cells; `open` opens the original ones.
    pub(super) fn cells<'a>(&self, index: usize, open: OpenCells<'a, '_>) -> Result<Box<dyn ColumnCells + 'a>> {
        let rule = self.rules[index];
        if rule == WindowRule::Same {
            return open(index);
        }
        let widths = self.width.filter(|_| rule == WindowRule::Frequency).map(open).transpose()?;
        Ok(Box::new(AveragedWindows { cells: open(index)?, widths, rule, factor: self.factor as usize }))
    }
}

/// A value for each averaged channel.
struct AveragedWindows<'a> {
    cells: Box<dyn ColumnCells + 'a>,
    widths: Option<Box<dyn ColumnCells + 'a>>,
    rule: WindowRule,
    factor: usize,
}

impl AveragedWindows<'_> {
    fn doubles(cells: &dyn ColumnCells, row: u64) -> Result<Vec<f64>> {
        let mut values = Values::new(DataType::Double);
        cells.read_cell(row, None, &mut values)?;
        let Values::Double(values) = values else { unreachable!("read as doubles") };
        Ok(values)
    }

    fn average(&self, row: u64) -> Result<Vec<f64>> {
        let channels = Self::doubles(&*self.cells, row)?;
        if self.rule == WindowRule::Sum {
            return Ok(channels.chunks(self.factor).map(|bin| bin.iter().sum()).collect());
        }
        let widths = match &self.widths {
            Some(cells) if cells.cell_shape(row)?.is_some() => Self::doubles(&**cells, row)?,
            _ => Vec::new(),
        };
        // the middle of a band: its channels count by their widths
        let weight = |channel: usize| widths.get(channel).map(|width| width.abs()).filter(|width| *width > 0.0);
        let mean = |(number, bin): (usize, &[f64])| {
            let weights: Option<Vec<f64>> = (0..bin.len()).map(|place| weight(number * self.factor + place)).collect();
            let weights = weights.unwrap_or_else(|| vec![1.0; bin.len()]);
            let sum: f64 = bin.iter().zip(&weights).map(|(frequency, weight)| (frequency - bin[0]) * weight).sum();
            bin[0] + sum / weights.iter().sum::<f64>()
        };
        Ok(channels.chunks(self.factor).enumerate().map(mean).collect())
    }
}

impl ColumnCells for AveragedWindows<'_> {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        let shape = self.cells.cell_shape(row)?;
        Ok(shape.map(|shape| fewer_channels(&shape, self.factor as u64)))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        if self.rule == WindowRule::Count {
            let before = out.len();
            self.cells.read_cell(row, None, out)?;
            if let Values::Int(counts) = out {
                let factor = self.factor as i64;
                counts[before..]
                    .iter_mut()
                    .for_each(|count| *count = (i64::from(*count) + factor - 1).div_euclid(factor) as i32);
            }
            return Ok(());
        }
        let cell = Values::Double(self.average(row)?);
        let all = 0..cell.len();
        let range = region.map_or(all, |region| {
            let start = region.start.first().map_or(0, |&start| start as usize);
            start..start + region.shape.first().map_or(0, |&len| len as usize)
        });
        if range.end > cell.len() {
            return Err(Error::usage(format!(
                "elements {} to {} exceed the cell, which has {}",
                range.start,
                range.end,
                cell.len()
            )));
        }
        out.extend_from(&cell, range)
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        self.cells.same_shape(rows).map(|shape| fewer_channels(&shape, self.factor as u64))
    }
}
