//! Reads the input of averaging: the cells of a column in the rows of given time bins, with the
//! rows' flags and weights, in row order.

use std::ops::Range;

use super::time_bins::Bins;
use crate::error::{Error, Result};
use crate::table::ColumnCells;
use crate::value::{DataType, Shape, Values};

/// Samples (one correlation and channel of one row) read at a time; a row with more is read whole.
const PIECE_SAMPLES: u64 = 1 << 17;
const PIECE_ROWS: u64 = 1 << 13;

pub(super) struct Input<'a> {
    pub(super) bins: &'a Bins,
    pub(super) cells: Box<dyn ColumnCells + 'a>,
    pub(super) data_type: DataType,
    pub(super) flags: Option<Box<dyn ColumnCells + 'a>>,
    pub(super) flag_row: Option<Box<dyn ColumnCells + 'a>>,
    pub(super) spectrum: Option<Box<dyn ColumnCells + 'a>>,
    pub(super) weight: Option<Box<dyn ColumnCells + 'a>>,
}

pub(super) struct InputRow<'b> {
    pub(super) row: u64,
    /// Counted from the first of the bins that are being read.
    pub(super) bin: usize,
    /// Shape, fastest axis first, and range in `values`; `None` if the cell is undefined.
    pub(super) cell: Option<(&'b Shape, Range<usize>)>,
    pub(super) values: &'b Values,
    /// `None` without a defined cell of FLAG.
    pub(super) flags: Option<(&'b Shape, &'b [bool])>,
    pub(super) is_flagged: bool,
    pub(super) weights: Weights<'b>,
}

#[derive(Clone, Copy)]
pub(super) enum Weights<'b> {
    /// No weights: each sample has 1.
    One,
    /// WEIGHT: one for each correlation.
    Row(&'b [f32]),
    /// WEIGHT_SPECTRUM: one for each sample, fastest axis first.
    Samples(&'b Shape, &'b [f32]),
}

impl Weights<'_> {
    /// `sample` is a flat index in `[corr, chan]`; returns 0 without a positive weight.
    pub(super) fn of(self, sample: usize, correlations: usize) -> f64 {
        let weight = match self {
            Weights::One => return 1.0,
            Weights::Row(weights) => weights.get(sample % correlations.max(1)),
            Weights::Samples(_, weights) => weights.get(sample),
        };
        let weight = weight.map_or(0.0, |&weight| f64::from(weight));
        if weight.is_finite() && weight > 0.0 { weight } else { 0.0 }
    }
}

impl InputRow<'_> {
    /// The cell is `[corr, chan]`, and flags and weights fit it.
    pub(super) fn check(&self, shape: &Shape) -> Result<()> {
        let row = self.row;
        if shape.len() != 2 {
            return Err(Error::format(format!("the cell of row {row} has shape {shape}, expected [corr, chan]")));
        }
        if let Some((flags, _)) = self.flags.filter(|(flags, _)| *flags != shape) {
            return Err(Error::format(format!("row {row}: the cell has shape {shape}, that of FLAG {flags}")));
        }
        match self.weights {
            Weights::Samples(weights, _) if weights != shape => {
                Err(Error::format(format!("row {row}: the cell has shape {shape}, that of WEIGHT_SPECTRUM {weights}")))
            }
            Weights::Row(weights) if weights.len() as u64 != shape[0] => {
                let found = weights.len();
                Err(Error::format(format!("row {row}: the cell has shape {shape}, WEIGHT has {found} elements")))
            }
            _ => Ok(()),
        }
    }

    /// Flagged by FLAG, or the whole row by FLAG_ROW.
    pub(super) fn is_flagged(&self, sample: usize) -> bool {
        self.is_flagged || self.flags.is_some_and(|(_, flags)| flags[sample])
    }

    /// Sum of the weights of unflagged samples, and whether there is one.
    pub(super) fn weight(&self) -> Result<(f64, bool)> {
        if self.is_flagged {
            return Ok((0.0, false));
        }
        let shape = match (self.flags, self.weights) {
            (Some((shape, _)), _) | (None, Weights::Samples(shape, _)) => shape,
            (None, Weights::Row(weights)) => {
                return Ok(((0..weights.len()).map(|corr| self.weights.of(corr, weights.len())).sum(), true));
            }
            (None, Weights::One) => return Ok((1.0, true)),
        };
        self.check(shape)?;
        let (correlations, samples) = (shape[0] as usize, shape.elements()? as usize);
        let (mut sum, mut any) = (0.0, false);
        for sample in (0..samples).filter(|&sample| !self.is_flagged(sample)) {
            sum += self.weights.of(sample, correlations);
            any = true;
        }
        Ok((sum, any))
    }
}

impl Input<'_> {
    /// Rows come in order of their numbers, also where those of several bins alternate.
    pub(super) fn for_each(&self, bins: Range<u64>, mut each: impl FnMut(&InputRow<'_>) -> Result<()>) -> Result<()> {
        let mut rows: Vec<(u64, u32)> = Vec::new();
        self.bins.for_each(bins, |row, bin| rows.push((row, bin as u32)));
        rows.sort_unstable();
        let mut rest = rows.as_slice();
        while let Some(&(first, _)) = rest.first() {
            let mut count = rest.iter().zip(first..).take_while(|((row, _), expected)| row == expected).count() as u64;
            let samples = self.flags.as_deref().unwrap_or(&*self.cells).cell_shape(first)?;
            let samples = samples.map_or(Ok(1), |shape| shape.elements())?;
            count = count.min(PIECE_ROWS).min((PIECE_SAMPLES / samples.max(1)).max(1));
            let (piece, later) = rest.split_at(count as usize);
            rest = later;
            self.piece(first..first + count, piece, &mut each)?;
        }
        Ok(())
    }

    fn piece(
        &self,
        rows: Range<u64>,
        bins: &[(u64, u32)],
        each: &mut impl FnMut(&InputRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let cells = Cells::read(&*self.cells, self.data_type, rows.clone())?;
        let other = |cells: &Option<Box<dyn ColumnCells + '_>>, data_type| {
            cells.as_ref().map(|cells| Cells::read(&**cells, data_type, rows.clone())).transpose()
        };
        let (flags, flag_row) = (other(&self.flags, DataType::Bool)?, other(&self.flag_row, DataType::Bool)?);
        let spectrum = other(&self.spectrum, DataType::Float)?;
        let weight = other(&self.weight, DataType::Float)?;
        for (number, &(row, bin)) in bins.iter().enumerate() {
            let weights = match (
                spectrum.as_ref().and_then(|cells| cells.floats(number)),
                weight.as_ref().and_then(|cells| cells.floats(number)),
            ) {
                (Some((shape, weights)), _) => Weights::Samples(shape, weights),
                (None, Some((_, weights))) => Weights::Row(weights),
                (None, None) => Weights::One,
            };
            each(&InputRow {
                row,
                bin: bin as usize,
                cell: cells.cell(number),
                values: &cells.values,
                flags: flags.as_ref().and_then(|cells| cells.bools(number)),
                is_flagged: flag_row
                    .as_ref()
                    .and_then(|cells| cells.bools(number))
                    .is_some_and(|(_, flag)| flag == [true]),
                weights,
            })?;
        }
        Ok(())
    }
}

pub(super) struct Cells {
    values: Values,
    shapes: CellShapes,
}

enum CellShapes {
    Same(Shape, usize),
    /// Index of the first element in `values`, and shape; `None` for an undefined cell.
    Each(Vec<Option<(usize, Shape)>>),
}

impl Cells {
    fn read(cells: &dyn ColumnCells, data_type: DataType, rows: Range<u64>) -> Result<Cells> {
        let mut values = Values::new(data_type);
        cells.read_rows(rows.clone(), &mut values)?;
        let (shapes, expected) = match cells.same_shape(&rows) {
            Some(shape) => {
                let len = shape.elements()? as usize;
                (CellShapes::Same(shape, len), len * (rows.end - rows.start) as usize)
            }
            None => {
                let mut next = 0;
                let mut each = Vec::new();
                for shape in cells.shapes(rows.clone())? {
                    let len = shape.as_ref().map_or(Ok(0), Shape::elements)? as usize;
                    each.push(shape.map(|shape| (next, shape)));
                    next += len;
                }
                (CellShapes::Each(each), next)
            }
        };
        if values.len() != expected {
            let (Range { start, end }, found) = (rows, values.len());
            return Err(Error::format(format!("rows {start}..{end} have {found} elements, expected {expected}")));
        }
        Ok(Cells { values, shapes })
    }

    fn cell(&self, row: usize) -> Option<(&Shape, Range<usize>)> {
        match &self.shapes {
            CellShapes::Same(shape, len) => Some((shape, row * len..(row + 1) * len)),
            CellShapes::Each(shapes) => {
                let (start, shape) = shapes.get(row)?.as_ref()?;
                Some((shape, *start..*start + shape.iter().product::<u64>() as usize))
            }
        }
    }

    fn bools(&self, row: usize) -> Option<(&Shape, &[bool])> {
        let (shape, range) = self.cell(row)?;
        if let Values::Bool(values) = &self.values { Some((shape, &values[range])) } else { None }
    }

    fn floats(&self, row: usize) -> Option<(&Shape, &[f32])> {
        let (shape, range) = self.cell(row)?;
        if let Values::Float(values) = &self.values { Some((shape, &values[range])) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};
    use crate::stman::contradictory::Contradictory;

    #[test]
    fn cells_have_the_elements_of_their_shapes() {
        let cells = Contradictory(Values::Float(vec![1.; 3]));
        Cells::read(&cells, DataType::Float, 0..4).fails(ErrorKind::Format, "rows 0..4 have 3 elements, expected 8");
    }
}
