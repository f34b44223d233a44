//! Averages columns whose cells have no channels (TIME, UVW, EXPOSURE …) over the rows of each time
//! bin.

use std::ops::Range;

use super::input::Input;
use super::rules::Rule;
use super::time_bins::Bins;
use crate::error::{Error, Result};
use crate::stman::undefined;
use crate::table::ColumnCells;
use crate::value::{Region, Shape, Values};

/// Bins whose sums are in memory at a time.
const BLOCK_BINS: u64 = 1 << 13;

/// Doubles without channels (TIME, UVW, INTERVAL …).
pub(super) struct AveragedRows<'a> {
    pub(super) input: Input<'a>,
    pub(super) rule: Rule,
}

/// Sums over the rows of a bin, one for each element of the cell.
#[derive(Default, Clone)]
struct RowSums {
    shape: Option<Shape>,
    first: Vec<f64>,
    /// Value in the row - value in the bin's first row, over all rows.
    all: Vec<f64>,
    count: f64,
    /// The same, weighted.
    weighted: Vec<f64>,
    weight: f64,
    /// Cells of rows of which not all samples are flagged; such a row counts with its whole cell.
    good: Vec<f64>,
    has_good: bool,
}

impl RowSums {
    fn add(&mut self, row: u64, shape: &Shape, values: &[f64], weight: f64, is_good: bool) -> Result<()> {
        if self.shape.is_none() {
            self.shape = Some(shape.clone());
            self.first = values.to_vec();
            (self.all, self.weighted, self.good) =
                (vec![0.0; values.len()], vec![0.0; values.len()], vec![0.0; values.len()]);
        }
        if self.shape.as_ref() != Some(shape) {
            let message = format!("row {row}: the cell has shape {shape}, others of the same bin differ");
            return Err(Error::unsupported(message));
        }
        self.count += 1.0;
        self.weight += weight;
        self.has_good |= is_good;
        for (index, (&value, &first)) in values.iter().zip(&self.first).enumerate() {
            // times have few digits left
            let value = value - first;
            self.all[index] += value;
            self.weighted[index] += weight * value;
            self.good[index] += if is_good { value + first } else { 0.0 };
        }
        Ok(())
    }

    fn finish(&self, rule: Rule, out: &mut Vec<f64>) {
        for (index, &first) in self.first.iter().enumerate() {
            let sum = self.all[index] + self.count * first;
            out.push(match rule {
                Rule::Interval => sum,
                Rule::Exposure => {
                    if self.has_good {
                        self.good[index]
                    } else {
                        sum
                    }
                }
                _ if self.weight > 0.0 => first + self.weighted[index] / self.weight,
                _ => first + self.all[index] / self.count,
            });
        }
    }
}

impl ColumnCells for AveragedRows<'_> {
    fn cell_shape(&self, bin: u64) -> Result<Option<Shape>> {
        let mut found: Result<Option<Shape>> = Ok(None);
        self.input.bins.for_each(bin..bin + 1, |row, _| {
            if matches!(found, Ok(None)) {
                found = self.input.cells.cell_shape(row);
            }
        });
        found
    }

    fn read_cell(&self, bin: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let Some(region) = region else { return self.read_rows(bin..bin + 1, out) };
        let shape = self.cell_shape(bin)?.ok_or_else(|| undefined(bin))?;
        region.check(&shape)?;
        let mut cell = Values::new(out.data_type());
        self.read_rows(bin..bin + 1, &mut cell)?;
        let (start, len) = (region.start.first().map_or(0, |&start| start as usize), region.shape.elements()? as usize);
        if shape.len() > 1 {
            return Err(Error::unsupported(format!(
                "a part of a cell of shape {shape} cannot be read from averaged rows"
            )));
        }
        out.extend_from(&cell, start..start + len)
    }

    fn read_rows(&self, bins: Range<u64>, out: &mut Values) -> Result<()> {
        let Values::Double(out) = out else { return Err(Error::usage("the cells are doubles")) };
        if self.rule == Rule::Time {
            out.extend(bins.filter_map(|bin| self.input.bins.time(bin)));
            return Ok(());
        }
        for start in bins.clone().step_by(BLOCK_BINS as usize) {
            let block = start..bins.end.min(start + BLOCK_BINS);
            let mut sums = vec![RowSums::default(); (block.end - block.start) as usize];
            self.input.for_each(block, |row| {
                let (Some((shape, elements)), Values::Double(values)) = (&row.cell, row.values) else { return Ok(()) };
                let (weight, is_good) = if self.rule == Rule::Interval { (0.0, false) } else { row.weight()? };
                sums[row.bin].add(row.row, shape, &values[elements.clone()], weight, is_good)
            })?;
            sums.iter().for_each(|sums| sums.finish(self.rule, out));
        }
        Ok(())
    }

    fn same_shape(&self, bins: &Range<u64>) -> Option<Shape> {
        self.input.cells.same_shape(&self.input.bins.hull(bins))
    }
}

/// Copies of the cell in the first row of each bin.
pub(super) struct First<'a> {
    pub(super) bins: &'a Bins,
    pub(super) cells: Box<dyn ColumnCells + 'a>,
}

impl First<'_> {
    fn row(&self, bin: u64) -> Result<u64> {
        self.bins.first(bin).ok_or_else(|| undefined(bin))
    }
}

impl ColumnCells for First<'_> {
    fn cell_shape(&self, bin: u64) -> Result<Option<Shape>> {
        self.cells.cell_shape(self.row(bin)?)
    }

    fn read_cell(&self, bin: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        self.cells.read_cell(self.row(bin)?, region, out)
    }

    fn read_rows(&self, bins: Range<u64>, out: &mut Values) -> Result<()> {
        let mut run: Option<Range<u64>> = None;
        for bin in bins {
            let row = self.row(bin)?;
            match &mut run {
                Some(run) if run.end == row => run.end += 1,
                _ => {
                    if let Some(run) = run.replace(row..row + 1) {
                        self.cells.read_rows(run, out)?;
                    }
                }
            }
        }
        run.map_or(Ok(()), |run| self.cells.read_rows(run, out))
    }

    fn same_shape(&self, bins: &Range<u64>) -> Option<Shape> {
        self.cells.same_shape(&self.bins.hull(bins))
    }
}

/// No cell is defined.
pub(super) struct Nothing;

impl ColumnCells for Nothing {
    fn cell_shape(&self, _: u64) -> Result<Option<Shape>> {
        Ok(None)
    }

    fn read_cell(&self, bin: u64, _: Option<&Region>, _: &mut Values) -> Result<()> {
        Err(undefined(bin))
    }

    fn read_rows(&self, _: Range<u64>, _: &mut Values) -> Result<()> {
        Ok(())
    }
}
