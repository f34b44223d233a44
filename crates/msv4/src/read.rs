//! Reads parts of variables whose cells lie on a grid: rows that follow each other by one read,
//! without a copy.

use ctds::value::{Complex32, Complex64, DataType, Element, Region, Values};
use ctds::{Column, Error, Result};

use crate::dataset::{CellsOf, Content, Variable};
use crate::grid::Grid;
use crate::measures::UNIX_EPOCH;
use crate::set::Partition;
use crate::tables::{MAIN, Tables};

/// A part of a variable on the grid. Numbers count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Numbers of the wanted times.
    pub times: &'a [usize],
    /// Numbers of the wanted baselines, or antennas of single dishes.
    pub baselines: &'a [usize],
    /// First index on each further axis, slowest first.
    pub start: &'a [u64],
    /// Extent on each further axis, slowest first.
    pub extent: &'a [u64],
}

impl Part<'_> {
    fn places(&self) -> usize {
        self.times.len() * self.baselines.len()
    }

    fn check(&self, variable: &Variable) -> Result<()> {
        let rest = variable.shape.get(2..).unwrap_or_default();
        let ends = self.start.iter().zip(self.extent).map(|(start, extent)| start.checked_add(*extent));
        let is_inside = self.start.len() == rest.len()
            && self.extent.len() == rest.len()
            && ends.zip(rest).all(|(end, extent)| end.is_some_and(|end| end <= *extent))
            && self.times.iter().all(|time| (*time as u64) < variable.shape[0])
            && self.baselines.iter().all(|baseline| (*baseline as u64) < variable.shape[1]);
        if is_inside { Ok(()) } else { Err(Error::usage(format!("the part leaves the variable {}", variable.name))) }
    }
}

impl Partition {
    /// The elements of a part of a variable, last axis fastest: of a variable with all its
    /// elements ([`Content::Values`]) all of them, whatever the part. Where a place has no row,
    /// flags are set and other elements are NaN.
    ///
    /// # Errors
    /// `Usage` if the part leaves the variable; `Limit` if it exceeds the memory; those of reading
    /// the column.
    pub fn read(&self, tables: &dyn Tables, variable: &Variable, part: Part<'_>) -> Result<Values> {
        match &variable.content {
            Content::Values(values) => Ok(values.clone()),
            Content::Rows => {
                part.check(variable)?;
                Ok(Values::Int64(self.grid.rows_at(part.times, part.baselines)))
            }
            Content::Cells(of) => self.read_column(&tables.column(MAIN, &of.column)?, variable, of, part),
        }
    }

    /// As [`read`](Self::read), of the open column that `of` names, which keeps what it has decoded
    /// for the next part.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_column(
        &self,
        column: &Column<'_>,
        variable: &Variable,
        of: &CellsOf,
        part: Part<'_>,
    ) -> Result<Values> {
        part.check(variable)?;
        let channels = variable.shape.get(2).copied().unwrap_or(0);
        let wanted = Wanted { column, grid: &self.grid, of, channels, part };
        match column.info().data_type() {
            DataType::Bool => wanted.read(true),
            DataType::Float => wanted.read(f32::NAN),
            DataType::Double => wanted.read(f64::NAN),
            DataType::Complex => wanted.read(Complex32::new(f32::NAN, f32::NAN)),
            DataType::DComplex => wanted.read(Complex64::new(f64::NAN, f64::NAN)),
            other => Err(Error::unsupported(format!(
                "column {} is of type {other}, which MSv4 does not have on its grid",
                of.column
            ))),
        }
    }
}

struct Wanted<'a> {
    column: &'a Column<'a>,
    grid: &'a Grid,
    of: &'a CellsOf,
    /// Number of channels of the variable.
    channels: u64,
    part: Part<'a>,
}

impl Wanted<'_> {
    fn read<T: Element + Copy + Shift>(&self, missing: T) -> Result<Values> {
        let Part { start, extent, .. } = self.part;
        // cells that are repeated for each channel have no such axis
        let (start, extent) = if self.of.is_repeated { (&start[1..], &extent[1..]) } else { (start, extent) };
        let mut start = start.to_vec();
        if self.of.is_reversed {
            start[0] = self.channels - start[0] - extent[0];
        }
        let region = (!start.is_empty()).then(|| Region::c_order(&start, extent));
        let cell = extent.iter().try_fold(1_u64, |product, extent| product.checked_mul(*extent));
        let len = cell.and_then(|cell| cell.checked_mul(self.part.places() as u64));
        let len =
            len.ok_or_else(|| Error::limit(format!("the part of column {} has too many elements", self.of.column)))?;
        let cell = cell.unwrap_or(0) as usize;
        let mut out = self.column.buffer::<T>(len)?;
        if !out.is_empty() {
            self.read_cells(region.as_ref(), cell, missing, &mut out)?;
        }
        if self.of.is_reversed {
            reverse_channels(&mut out, extent);
        }
        if self.of.is_time {
            T::shift(&mut out, UNIX_EPOCH);
        }
        if self.of.is_repeated {
            let times = self.part.extent[0] as usize;
            let len = (out.len() as u64).checked_mul(times as u64);
            let len = len
                .ok_or_else(|| Error::limit(format!("the part of column {} has too many elements", self.of.column)))?;
            let mut repeated = self.column.buffer::<T>(len)?;
            if cell > 0 && times > 0 {
                for (cell, places) in out.chunks(cell).zip(repeated.chunks_mut(cell * times)) {
                    places.chunks_mut(cell.len()).for_each(|place| place.copy_from_slice(cell));
                }
            }
            out = repeated;
        }
        Ok(T::values(out))
    }

    fn read_cells<T: Element + Copy>(
        &self,
        region: Option<&Region>,
        cell: usize,
        missing: T,
        out: &mut [T],
    ) -> Result<()> {
        if let Some(rows) = self.as_range() {
            return self.column.read_into(rows, region, out);
        }
        let places = self.grid.rows_at(self.part.times, self.part.baselines);
        let rows: Vec<u64> = places.iter().filter_map(|row| u64::try_from(*row).ok()).collect();
        // the cells that exist come first, and move to their places from the last one on
        let read = &mut out[..rows.len() * cell];
        match (rows.first(), rows.last()) {
            (Some(first), Some(last)) if rows.windows(2).all(|pair| pair[0] + 1 == pair[1]) => {
                self.column.read_into(*first..last + 1, region, read)?;
            }
            (Some(_), Some(_)) => self.column.read_at_into(&rows, region, read)?,
            _ => {}
        }
        if rows.len() < places.len() {
            let mut from = rows.len();
            for (place, row) in places.iter().enumerate().rev() {
                let to = place * cell..(place + 1) * cell;
                if *row < 0 {
                    out[to].fill(missing);
                } else {
                    from -= 1;
                    out.copy_within(from * cell..(from + 1) * cell, to.start);
                }
            }
        }
        Ok(())
    }

    /// The rows of the part if the grid is full and in order, and the part has whole times.
    fn as_range(&self) -> Option<std::ops::Range<u64>> {
        let Part { times, baselines, .. } = self.part;
        let rows = self.grid.as_range()?;
        let is_run = |numbers: &[usize]| numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let width = self.grid.baselines.len();
        let is_whole = baselines.len() == width && is_run(baselines);
        let is_one_time = times.len() == 1 && is_run(baselines);
        if !(is_whole && is_run(times) || is_one_time) {
            return None;
        }
        let first = rows.start + (times.first()? * width + baselines.first()?) as u64;
        Some(first..first + self.part.places() as u64)
    }
}

/// Reverses the order of channels in each cell; they are the first of its axes, slowest first.
fn reverse_channels<T: Copy>(cells: &mut [T], extent: &[u64]) {
    let channel = extent[1..].iter().product::<u64>() as usize;
    let cell = extent[0] as usize * channel;
    if cell == 0 {
        return;
    }
    for cell in cells.chunks_mut(cell) {
        let count = extent[0] as usize;
        for low in 0..count / 2 {
            let (first, last) = cell.split_at_mut((count - 1 - low) * channel);
            first[low * channel..(low + 1) * channel].swap_with_slice(&mut last[..channel]);
        }
    }
}

/// Elements from which seconds can be subtracted: only doubles are times.
trait Shift: Sized {
    fn shift(_values: &mut [Self], _by: f64) {}
}

impl Shift for bool {}
impl Shift for f32 {}
impl Shift for Complex32 {}
impl Shift for Complex64 {}
impl Shift for f64 {
    fn shift(values: &mut [Self], by: f64) {
        values.iter_mut().for_each(|value| *value -= by);
    }
}
