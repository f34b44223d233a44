//! Averages columns with a cell `[corr, chan]` in each row (visibilities, FLAG …), and computes
//! FLAG_ROW, WEIGHT and SIGMA from flags and weights.

use std::ops::Range;
use std::sync::Mutex;

use super::averaging::fewer_channels;
use super::input::{Input, InputRow};
use super::rules::Rule;
use super::sums::{Sums, sigma};
use crate::error::{Error, Result};
use crate::grid::copy_box;
use crate::stman::undefined;
use crate::sync::LockUnpoisoned;
use crate::table::ColumnCells;
use crate::value::{DataType, Region, Shape, Values};

/// Averaged samples in memory at a time, approximately: whole bins are added until it is reached.
const BLOCK_SAMPLES: u64 = 1 << 18;

pub(super) struct AveragedSamples<'a> {
    input: Input<'a>,
    rule: Rule,
    factor: u64,
    data_type: DataType,
    /// Bin and averaged cell of which a part was read: other parts are copied from it.
    last: Mutex<Option<(u64, Values)>>,
}

impl<'a> AveragedSamples<'a> {
    pub(super) fn new(input: Input<'a>, rule: Rule, factor: u64, data_type: DataType) -> Self {
        AveragedSamples { input, rule, factor, data_type, last: Mutex::new(None) }
    }

    /// `[corr, chan]`; `None` if all cells of the bin are undefined.
    fn sums_shape(&self, bin: u64) -> Result<Option<Shape>> {
        let mut found: Result<Option<Shape>> = Ok(None);
        self.input.bins.for_each(bin..bin + 1, |row, _| {
            if matches!(found, Ok(None)) {
                found = self.input.cells.cell_shape(row);
            }
        });
        Ok(found?.map(|shape| fewer_channels(&shape, self.factor)))
    }

    /// `[corr]` for WEIGHT and SIGMA, no axes for FLAG_ROW, else the shape of the sums.
    fn shape(&self, sums: Shape) -> Shape {
        match self.rule {
            Rule::Weight | Rule::Sigma => sums[..1.min(sums.len())].into(),
            Rule::FlagRow => Shape::scalar(),
            _ => sums,
        }
    }

    /// `shapes` are those of the bins' sums, all in memory; `None` for an undefined cell.
    fn average(&self, bins: Range<u64>, shapes: &[Option<Shape>], out: &mut Values) -> Result<()> {
        let mut starts = Vec::with_capacity(shapes.len() + 1);
        let mut total = 0;
        for shape in shapes {
            starts.push(total);
            total += shape.as_ref().map_or(Ok(0), Shape::elements)? as usize;
        }
        starts.push(total);
        let mut sums = Sums::new(total, self.rule == Rule::Mean);
        self.input.for_each(bins, |row| {
            let (Some((shape, elements)), Some(expected)) = (&row.cell, &shapes[row.bin]) else { return Ok(()) };
            row.check(shape)?;
            if fewer_channels(shape, self.factor) != *expected {
                return Err(Error::unsupported(format!(
                    "row {}: the cell has shape {shape}, others of the same bin differ",
                    row.row
                )));
            }
            self.add(&mut sums, starts[row.bin], row, shape, elements.clone());
            Ok(())
        })?;
        if self.rule == Rule::Mean {
            sums.push_means(out);
            return Ok(());
        }
        for (number, shape) in shapes.iter().enumerate() {
            let Some(shape) = shape else { continue };
            self.finish(&sums, starts[number]..starts[number + 1], shape[0] as usize, out);
        }
        Ok(())
    }

    fn add(&self, sums: &mut Sums, start: usize, row: &InputRow<'_>, shape: &Shape, elements: Range<usize>) {
        let (correlations, channels) = (shape[0] as usize, shape[1] as usize);
        let factor = self.factor as usize;
        let mut add = |value: &dyn Fn(usize) -> (f64, f64)| {
            for channel in 0..channels {
                let to = start + channel / factor * correlations;
                for corr in 0..correlations {
                    let sample = channel * correlations + corr;
                    let weight = row.weights.of(sample, correlations);
                    sums.add(to + corr, row.is_flagged(sample), weight, value(sample));
                }
            }
        };
        match (self.rule, row.values) {
            (Rule::Mean, Values::Complex(values)) => {
                let cell = &values[elements];
                add(&|sample| (cell[sample].re.into(), cell[sample].im.into()));
            }
            (Rule::Mean, Values::DComplex(values)) => {
                let cell = &values[elements];
                add(&|sample| (cell[sample].re, cell[sample].im));
            }
            (Rule::Mean, Values::Float(values)) => {
                let cell = &values[elements];
                add(&|sample| (cell[sample].into(), 0.0));
            }
            (Rule::Mean, Values::Double(values)) => {
                let cell = &values[elements];
                add(&|sample| (cell[sample], 0.0));
            }
            _ => add(&|_| (0.0, 0.0)),
        }
    }

    fn finish(&self, sums: &Sums, numbers: Range<usize>, correlations: usize, out: &mut Values) {
        match (self.rule, out) {
            (Rule::Flag, Values::Bool(out)) => out.extend(numbers.map(|number| sums.is_flagged(number))),
            (Rule::FlagRow, Values::Bool(out)) => out.push(numbers.into_iter().all(|number| sums.is_flagged(number))),
            (Rule::WeightSpectrum, Values::Float(out)) => {
                out.extend(numbers.map(|number| sums.weight(number) as f32));
            }
            (Rule::SigmaSpectrum, Values::Float(out)) => out.extend(numbers.map(|number| sigma(sums.weight(number)))),
            (rule @ (Rule::Weight | Rule::Sigma), Values::Float(out)) => {
                for corr in 0..correlations {
                    let channels = || numbers.clone().skip(corr).step_by(correlations.max(1));
                    let good: Vec<usize> = channels().filter(|&number| !sums.is_flagged(number)).collect();
                    let taken = if good.is_empty() { channels().collect() } else { good };
                    let sum: f64 = taken.iter().map(|&number| sums.weight(number)).sum();
                    let weight = sum / taken.len().max(1) as f64;
                    out.push(if rule == Rule::Weight { weight as f32 } else { sigma(weight) });
                }
            }
            _ => {}
        }
    }
}

impl ColumnCells for AveragedSamples<'_> {
    fn cell_shape(&self, bin: u64) -> Result<Option<Shape>> {
        if self.rule == Rule::FlagRow {
            return Ok(Some(Shape::scalar()));
        }
        Ok(self.sums_shape(bin)?.map(|shape| self.shape(shape)))
    }

    fn read_cell(&self, bin: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let shape = self.cell_shape(bin)?.ok_or_else(|| undefined(bin))?;
        let Some(region) = region else { return self.read_rows(bin..bin + 1, out) };
        region.check(&shape)?;
        let mut last = self.last.lock_unpoisoned();
        if last.as_ref().is_none_or(|(known, _)| *known != bin) {
            let mut cell = Values::new(self.data_type);
            self.read_rows(bin..bin + 1, &mut cell)?;
            *last = Some((bin, cell));
        }
        let Some((_, cell)) = &*last else { return Err(undefined(bin)) };
        let (zero, before) = (vec![0; shape.len()], out.len());
        out.extend_default(region.shape.elements()? as usize);
        copy_box(cell, &shape, &region.start, out, before, &region.shape, &zero, &region.shape);
        Ok(())
    }

    fn read_rows(&self, bins: Range<u64>, out: &mut Values) -> Result<()> {
        let mut start = bins.start;
        while start < bins.end {
            let (mut shapes, mut samples) = (Vec::new(), 0);
            let mut end = start;
            while end < bins.end && (samples < BLOCK_SAMPLES || end == start) {
                let mut shape = self.sums_shape(end)?;
                if self.rule == Rule::FlagRow {
                    // a row without samples has a flag nevertheless
                    shape = Some(shape.unwrap_or_else(|| Shape::from([0, 0])));
                }
                samples += shape.as_ref().map_or(Ok(0), Shape::elements)?.max(16);
                shapes.push(shape);
                end += 1;
            }
            self.average(start..end, &shapes, out)?;
            start = end;
        }
        Ok(())
    }

    fn same_shape(&self, bins: &Range<u64>) -> Option<Shape> {
        if self.rule == Rule::FlagRow {
            return Some(Shape::scalar());
        }
        let sums = fewer_channels(&self.input.cells.same_shape(&self.input.bins.hull(bins))?, self.factor);
        Some(self.shape(sums))
    }
}
