//! Reads the cells of a column from a native HDF5 file in the storage forms dense, ragged and
//! records; `cubes.rs` those in hypercubes. docs/reference/layout.md, "A column".

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bstr::BString;

use super::json;
use super::reader::Reader;
use crate::error::{Context, Error, Result, ResultExt};
use crate::stman::RowRun;
use crate::sync::LockUnpoisoned;
use crate::table::{ColumnCells, Tiling, read_part};
use crate::value::{DataType, Region, Shape, Values};

/// `raw` has exact bytes by element of the dataset, of which `first` is at `base` in `out`.
fn restore(raw: &HashMap<u64, BString>, first: u64, base: usize, out: &mut Values) {
    let Values::String(strings) = out else { return };
    if raw.is_empty() {
        return;
    }
    for (number, string) in strings[base..].iter_mut().enumerate() {
        if let Some(exact) = raw.get(&(first + number as u64)) {
            *string = exact.clone();
        }
    }
}

pub(super) fn undefined(row: u64) -> Error {
    Error::not_found(format!("row {row} is undefined"))
}

pub(super) struct Dense {
    pub(super) data: Reader,
    pub(super) cell: Shape,
    pub(super) defined: Option<Reader>,
    pub(super) raw: HashMap<u64, BString>,
}

impl Dense {
    fn read_block(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let base = out.len();
        self.data.read(&Region::rows(&self.cell, rows.clone()), out)?;
        restore(&self.raw, rows.start.saturating_mul(self.cell.elements()?), base, out);
        Ok(())
    }
}

impl ColumnCells for Dense {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        let defined = match &self.defined {
            Some(defined) => defined.integers(row..row + 1)? == [1],
            None => true,
        };
        Ok(defined.then(|| self.cell.clone()))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        if self.cell_shape(row)?.is_none() {
            return Err(undefined(row));
        }
        let Some(region) = region else { return self.read_block(row..row + 1, out) };
        if !self.raw.is_empty() {
            // exact strings are known by their numbers in the whole dataset
            return read_part(Some(region), &self.cell, out, |out| self.read_block(row..row + 1, out));
        }
        region.check(&self.cell)?;
        let region = Region { start: region.start.with_axis(row), shape: region.shape.with_axis(1) };
        self.data.read(&region, out)
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        if self.defined.is_none() {
            return self.read_block(rows, out);
        }
        for row in rows {
            if self.cell_shape(row)?.is_some() {
                self.read_block(row..row + 1, out)?;
            }
        }
        Ok(())
    }

    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        self.defined.is_none().then(|| self.cell.clone())
    }

    fn tiling(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        let chunks = self.data.chunks.as_ref().filter(|_| self.defined.is_none() && max_cubes > 0)?;
        let runs = RowRun::of_all(self.data.rows());
        Some(Tiling { cubes: vec![Box::new(chunks)], runs })
    }
}

/// A dense dataset of JSON strings.
pub(super) struct Records(pub(super) Dense);

impl ColumnCells for Records {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(Some(Shape::scalar()))
    }

    fn read_cell(&self, row: u64, _region: Option<&Region>, out: &mut Values) -> Result<()> {
        let mut strings = Values::new(DataType::String);
        self.0.read_cell(row, None, &mut strings)?;
        let (Values::String(strings), Values::Record(records)) = (&strings, out) else {
            unreachable!("read as strings, wanted as records")
        };
        for string in strings {
            let parsed = serde_json::from_slice(string)
                .map_err(|error| Error::format(format!("row {row} is not JSON: {error}")).caused_by(error))?;
            records.push(json::to_record(&parsed).with_context(|| Context::Row(row))?);
        }
        Ok(())
    }

    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        Some(Shape::scalar())
    }
}

pub(super) struct Ragged {
    pub(super) values: Reader,
    pub(super) offset: Reader,
    pub(super) shape: Reader,
    pub(super) defined: Reader,
    /// Rows that a user has added to the table, but not to this column: undefined.
    pub(super) added: Range<u64>,
    pub(super) raw: HashMap<u64, BString>,
    /// Cells near the row that was read last.
    pub(super) known: Mutex<Arc<RaggedRows>>,
}

/// Offsets and shapes of consecutive rows; both are empty if no cell is defined.
#[derive(Debug, Default)]
pub(super) struct RaggedRows {
    rows: Range<u64>,
    defined: Vec<i64>,
    /// Row after row, slowest axis first, filled up with -1 for cells with fewer axes.
    extents: Vec<i32>,
    /// First element of each cell, then the end of the last; fewer where the dataset ends earlier.
    offsets: Vec<i64>,
}

/// Extents read at a time; at least one row is read.
const RAGGED_EXTENTS: u64 = 1 << 9;

impl Ragged {
    /// Cells around `row`, perhaps of the last call, and its index among them.
    fn rows(&self, row: u64) -> Result<(Arc<RaggedRows>, usize)> {
        let mut known = self.known.lock_unpoisoned();
        if !known.rows.contains(&row) {
            let width = self.shape.shape[0];
            let count = (RAGGED_EXTENTS / width.max(1)).max(1);
            let start = row - row % count;
            // one that grows, or has got rows from a user, need not have the same length everywhere
            let there = self.defined.rows().min(self.shape.rows());
            let rows = start..there.min(start + count);
            if !rows.contains(&row) {
                return Err(Error::format(format!("row {row} does not exist, the column has {there} rows")));
            }
            let defined = self.defined.integers(rows.clone())?;
            let (mut extents, mut offsets) = (Vec::new(), Vec::new());
            // of undefined cells nothing else is needed: a column of them is known by one dataset
            // of three
            if defined.contains(&1) {
                let mut values = Values::new(DataType::Int);
                self.shape.read(&Region::rows(&Shape::from([width]), rows.clone()), &mut values)?;
                let Values::Int(values) = values else { unreachable!("read as Int") };
                (extents, offsets) = (values, self.offset.integers(start..self.offset.rows().min(rows.end + 1))?);
            }
            *known = Arc::new(RaggedRows { rows, defined, extents, offsets });
        }
        Ok((known.clone(), (row - known.rows.start) as usize))
    }
}

impl ColumnCells for Ragged {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        if self.added.contains(&row) {
            return Ok(None);
        }
        let (rows, number) = self.rows(row)?;
        if rows.defined[number] != 1 {
            return Ok(None);
        }
        let width = self.shape.shape[0] as usize;
        let extents = rows.extents[number * width..].iter().take(width);
        let extents: Vec<u64> = extents.map_while(|&extent| u64::try_from(extent).ok()).collect();
        Ok(Some(Shape::from_reversed(&extents)))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let shape = self.cell_shape(row)?.ok_or_else(|| undefined(row))?;
        let (rows, number) = self.rows(row)?;
        let (Some(&start), Some(&end)) = (rows.offsets.get(number), rows.offsets.get(number + 1)) else {
            return Err(Error::format(format!("row {row} is defined, but the dataset offset ends before it")));
        };
        let elements = shape.elements()?;
        let range = u64::try_from(start).ok().zip(u64::try_from(end).ok()).map(|(start, end)| start..end);
        let fits = |range: &Range<u64>| {
            range.end.checked_sub(range.start) == Some(elements) && range.end <= self.values.rows()
        };
        let Some(range) = range.filter(fits) else {
            return Err(Error::format(format!("row {row}: elements {start} to {end} for a cell of shape {shape}")));
        };
        let read = crate::table::read_part(region, &shape, out, |out| {
            let base = out.len();
            self.values.read_range(range.clone(), out)?;
            restore(&self.raw, range.start, base, out);
            Ok(())
        });
        read.with_context(|| Context::Row(row))
    }
}
