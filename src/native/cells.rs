//! Reads the cells of a column from a native HDF5 file, in each storage form: dense, hypercubes,
//! ragged, records. docs/layout.md, "A column".

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bstr::BString;

use super::json;
use super::reader::Reader;
use crate::error::{Context, Error, Result, ResultExt};
use crate::grid::ChunkRead;
use crate::stman::RowRun;
use crate::sync::LockUnpoisoned;
use crate::table::{ColumnCells, Tiling, read_part};
use crate::value::{DataType, Region, Shape, Values};

/// Puts exact bytes into `out` from index `base` on. `raw` has them by element of the dataset, of
/// which `first` is at `base`.
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

fn undefined(row: u64) -> Error {
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

/// A hypercube of a column.
pub(super) struct Cube {
    pub(super) reader: Reader,
    /// `None` if its positions are one axis, the slowest.
    pub(super) grid: Option<CubeGrid>,
}

/// The positions of a hypercube are times and baselines, its two slowest axes.
pub(super) struct CubeGrid {
    /// Whether the channels, the second axis of cells, are in the opposite order.
    pub(super) is_reversed: bool,
}

impl Cube {
    fn cell(&self) -> Shape {
        let positions = if self.grid.is_some() { 2 } else { 1 };
        self.reader.shape[..self.reader.shape.len().saturating_sub(positions)].into()
    }

    fn positions(&self) -> u64 {
        match &self.grid {
            None => self.reader.rows(),
            Some(_) => self.reader.rows().saturating_mul(self.baselines()),
        }
    }

    fn baselines(&self) -> u64 {
        let axes = self.reader.shape.len();
        if axes < 2 { 0 } else { self.reader.shape[axes - 2] }
    }

    /// Appends the same region of cells that follow each other.
    fn read(&self, cell: &Region, positions: Range<u64>, out: &mut Values) -> Result<()> {
        let Some(grid) = &self.grid else {
            let count = positions.end - positions.start;
            let region = Region { start: cell.start.with_axis(positions.start), shape: cell.shape.with_axis(count) };
            return self.reader.read(&region, out);
        };
        if !grid.is_reversed {
            return self.read_boxes(cell, positions, out);
        }
        let (&[corr, start], &[channel, extent], &[_, channels]) = (&cell.start[..], &cell.shape[..], &self.cell()[..])
        else {
            return Err(Error::format("cells whose channels are reversed have other axes"));
        };
        let mirrored = Region { start: Shape::from([corr, channels - start - extent]), shape: cell.shape.clone() };
        let mut read = Values::new(out.data_type());
        self.read_boxes(&mirrored, positions, &mut read)?;
        let channel = channel as usize;
        let len = channel * extent as usize;
        for of_cell in (0..read.len()).step_by(len.max(1)) {
            for first in (of_cell..of_cell + len).step_by(channel.max(1)).rev() {
                out.extend_from(&read, first..first + channel)?;
            }
        }
        Ok(())
    }

    /// Whole times are read together, the others each by itself.
    fn read_boxes(&self, cell: &Region, positions: Range<u64>, out: &mut Values) -> Result<()> {
        let width = self.baselines().max(1);
        let mut next = positions.start;
        while next < positions.end {
            let (time, baseline, left) = (next / width, next % width, positions.end - next);
            let (baselines, times) =
                if baseline == 0 && left >= width { (width, left / width) } else { ((width - baseline).min(left), 1) };
            let region = Region {
                start: cell.start.with_axis(baseline).with_axis(time),
                shape: cell.shape.with_axis(baselines).with_axis(times),
            };
            self.reader.read(&region, out)?;
            next += baselines * times;
        }
        Ok(())
    }
}

pub(super) struct Cubes {
    pub(super) cubes: Vec<Cube>,
    pub(super) row_cube: Reader,
    pub(super) row_index: Reader,
    /// Rows that a user has added to the table, but not to this column: undefined.
    pub(super) added: Range<u64>,
}

impl Cubes {
    /// Hypercube and position of a row; `None` if the cell is undefined.
    fn locate(&self, row: u64) -> Result<Option<(&Cube, u64)>> {
        if self.added.contains(&row) {
            return Ok(None);
        }
        let cube = self.row_cube.integers(row..row + 1)?;
        let [cube] = cube.as_slice() else { return Ok(None) };
        if *cube < 0 {
            return Ok(None);
        }
        let index = self.row_index.integers(row..row + 1)?;
        self.at(row, *cube, index.first().copied().unwrap_or(-1)).map(Some)
    }

    /// The hypercube and position that a defined row refers to.
    fn at(&self, row: u64, cube: i64, index: i64) -> Result<(&Cube, u64)> {
        let found = usize::try_from(cube).ok().and_then(|cube| self.cubes.get(cube));
        let found =
            found.ok_or_else(|| Error::format(format!("row {row} refers to cube{cube}, which does not exist")))?;
        match u64::try_from(index) {
            Ok(index) if index < found.positions() => Ok((found, index)),
            _ => {
                Err(Error::format(format!("row {row} refers to position {index} of cube{cube}, which does not exist")))
            }
        }
    }
}

/// Rows of `row_cube` and `row_index` read at a time.
const MAP_ROWS: u64 = 1 << 16;

impl Cubes {
    /// Calls `each` with every row whose cell is defined, its hypercube and position, as they are
    /// stored.
    fn each_place(&self, rows: Range<u64>, mut each: impl FnMut(u64, i64, i64) -> Result<()>) -> Result<()> {
        let rows = rows.start..rows.end.min(self.added.start);
        for start in rows.clone().step_by(MAP_ROWS as usize) {
            let block = start..rows.end.min(start + MAP_ROWS);
            let (cubes, positions) = (self.row_cube.integers(block.clone())?, self.row_index.integers(block.clone())?);
            for (row, (cube, position)) in block.zip(cubes.into_iter().zip(positions)) {
                if cube >= 0 {
                    each(row, cube, position)?;
                }
            }
        }
        Ok(())
    }

    /// Consecutive rows at consecutive positions of one cube; undefined cells are in no run.
    fn runs(&self) -> Result<Vec<RowRun>> {
        let mut runs: Vec<RowRun> = Vec::new();
        let rows = self.row_cube.rows();
        for start in (0..rows).step_by(MAP_ROWS as usize) {
            let block = start..rows.min(start + MAP_ROWS);
            let (cubes, positions) = (self.row_cube.integers(block.clone())?, self.row_index.integers(block.clone())?);
            for (row, (cube, position)) in block.zip(cubes.into_iter().zip(positions)) {
                let (Ok(cube), Ok(position)) = (usize::try_from(cube), u64::try_from(position)) else { continue };
                match runs.last_mut() {
                    Some(run)
                        if run.cube == cube
                            && run.rows.end == row
                            && run.position + (row - run.rows.start) == position =>
                    {
                        run.rows.end += 1;
                    }
                    _ => runs.push(RowRun { rows: row..row + 1, cube, position }),
                }
            }
        }
        Ok(runs)
    }
}

impl ColumnCells for Cubes {
    fn tiling(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        if self.cubes.len() > max_cubes {
            return None;
        }
        let mut cubes: Vec<Box<dyn ChunkRead>> = Vec::new();
        for cube in &self.cubes {
            cubes.push(Box::new(cube.reader.chunks.as_ref().filter(|_| cube.grid.is_none())?));
        }
        Some(Tiling { cubes, runs: self.runs().ok()? })
    }

    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        Ok(self.locate(row)?.map(|(cube, _)| cube.cell()))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let (cube, index) = self.locate(row)?.ok_or_else(|| undefined(row))?;
        let cell = cube.cell();
        let region = region.cloned().unwrap_or_else(|| Region::whole(&cell));
        region.check(&cell)?;
        cube.read(&region, index..index + 1, out).with_context(|| Context::Row(row))
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let mut read = |(row, of, positions): (u64, i64, Range<u64>)| {
            let (cube, first) = self.at(row, of, positions.start as i64)?;
            self.at(row, of, positions.end as i64 - 1)?;
            let cell = Region::whole(&cube.cell());
            cube.read(&cell, first..positions.end, out).with_context(|| Context::Row(row))
        };
        // the first row of a run, its hypercube, and its positions
        let mut run: Option<(u64, i64, Range<u64>)> = None;
        self.each_place(rows, |row, cube, index| {
            let Ok(position) = u64::try_from(index) else { return self.at(row, cube, index).map(drop) };
            match &mut run {
                Some((_, of, positions)) if *of == cube && positions.end == position => positions.end += 1,
                _ => run.replace((row, cube, position..position + 1)).map_or(Ok(()), &mut read)?,
            }
            Ok(())
        })?;
        run.map_or(Ok(()), read)
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let (first, others) = self.cubes.split_first()?;
        let cell = first.cell();
        if others.iter().any(|other| other.cell() != cell) {
            return None;
        }
        let mut defined = 0;
        let count = |_, _, _| {
            defined += 1;
            Ok(())
        };
        self.each_place(rows.clone(), count).ok()?;
        (defined == rows.end.saturating_sub(rows.start)).then_some(cell)
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

/// Offsets and shapes of consecutive rows.
#[derive(Debug, Default)]
pub(super) struct RaggedRows {
    rows: Range<u64>,
    defined: Vec<i64>,
    /// Row after row, slowest axis first, filled up with -1 for cells with fewer axes. Empty if no
    /// cell is defined.
    extents: Vec<i32>,
    /// Index of the first element of each cell, then the end of the last: one entry more than rows,
    /// fewer where the dataset ends earlier. Empty if no cell is defined.
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
