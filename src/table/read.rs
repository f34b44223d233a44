//! Many rows of a column at once, on all processors, into memory of the caller.
//!
//! The rows are cut into pieces, each with its part of the output. Where the column is tiled a piece is the rows of whole
//! tiles, so that every tile is read once; a tile whose bytes are the elements of consecutive rows goes straight to its
//! place. Elsewhere a piece is as many rows as stay in a processor's cache on their way.

use std::ops::Range;

use rayon::prelude::*;

use super::{ColumnCells, ColumnInfo, Tiling};
use crate::error::{Error, Result};
use crate::grid::{ChunkRead, Part, for_each_chunk, for_each_run};
use crate::io::ByteOrder;
use crate::value::{Element, Region, Shape, Values, swap_bytes, swap_width};

/// Bytes of a piece where nothing says how the elements lie.
const PIECE_BYTES: u64 = 256 << 10;
/// Less than this is read by the calling thread alone.
const PARALLEL_BYTES: usize = 1 << 20;
/// Columns of more hypercubes are read cell by cell.
const MAX_CUBES: usize = 1 << 10;

/// The shape that all cells of `rows` have; for an empty range that of the column, if it is known.
///
/// # Errors
/// `NotFound` if a cell is undefined; `Usage` if the shapes differ.
pub(super) fn common_shape(info: &ColumnInfo, cells: &dyn ColumnCells, rows: &Range<u64>) -> Result<Shape> {
    let known = if info.is_always_defined() { info.shape.clone() } else { None };
    if let Some(shape) = known.or_else(|| cells.same_shape(rows).filter(|_| !rows.is_empty())) {
        return Ok(shape);
    }
    let mut shape = None;
    for row in rows.clone() {
        let found = cells.cell_shape(row)?;
        let found = found.ok_or_else(|| Error::not_found(format!("the cell in row {row} is undefined")))?;
        if *shape.get_or_insert_with(|| found.clone()) != found {
            return Err(Error::usage(format!("the cell in row {row} has shape {found}, others differ")));
        }
    }
    Ok(shape.or_else(|| info.shape.clone()).unwrap_or_default())
}

/// Cells of one shape that are wanted, or the same region of each.
pub(super) struct Wanted<'a> {
    pub(super) cells: &'a dyn ColumnCells,
    pub(super) rows: Range<u64>,
    /// The shape of each cell.
    pub(super) cell: &'a Shape,
    /// The part of each cell; `None`: all of it.
    pub(super) region: Option<&'a Region>,
}

/// Consecutive rows.
struct Piece {
    rows: Range<u64>,
    /// The hypercube, and the position of the first row in it.
    tiles: Option<(usize, u64)>,
}

impl Wanted<'_> {
    /// The shape of what is wanted of a cell.
    ///
    /// # Errors
    /// `Usage` if the region leaves the cell.
    pub(super) fn part(&self) -> Result<Shape> {
        match self.region {
            Some(region) => region.check(self.cell).map(|()| region.shape.clone()),
            None => Ok(self.cell.clone()),
        }
    }

    /// Fills `out`, row after row.
    ///
    /// # Errors
    /// `Usage` if `out` has another length; those of reading.
    pub(super) fn read<T: Element>(&self, out: &mut [T]) -> Result<()> {
        let count = self.rows.end.saturating_sub(self.rows.start);
        let part = self.part()?;
        let elements = part.elements()?;
        if elements.checked_mul(count) != Some(out.len() as u64) {
            let len = out.len();
            return Err(Error::usage(format!("{count} rows of {elements} elements do not fill an array of {len}")));
        }
        if out.is_empty() {
            return Ok(());
        }
        let tiling = self.cells.tiling(MAX_CUBES);
        let pieces = match tiling.as_ref().and_then(|tiling| self.pieces_of_tiles(tiling)) {
            Some(pieces) => pieces,
            None => self.pieces(elements.max(1) * size_of::<T>() as u64),
        };
        let is_large = size_of_val(out) >= PARALLEL_BYTES;
        let mut rest = out;
        let mut work = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let len = (piece.rows.end - piece.rows.start) * elements;
            let (now, later) = rest.split_at_mut(len as usize);
            work.push((piece, now));
            rest = later;
        }
        let read = |scratch: &mut Values, (piece, out): (Piece, &mut [T])| match (piece.tiles, &tiling) {
            (Some((cube, position)), Some(tiling)) => {
                self.read_tiles(&*tiling.cubes[cube], position, piece.rows, scratch, out)
            }
            _ => self.read_cells(piece.rows, scratch, out),
        };
        let scratch = || Values::new(T::DATA_TYPE);
        if is_large && work.len() > 1 {
            work.into_par_iter().try_for_each_init(scratch, read)
        } else {
            let mut scratch = scratch();
            work.into_iter().try_for_each(|piece| read(&mut scratch, piece))
        }
    }

    fn pieces(&self, row_bytes: u64) -> Vec<Piece> {
        let step = (PIECE_BYTES / row_bytes).max(1) as usize;
        let piece = |start| Piece { rows: start..(start + step as u64).min(self.rows.end), tiles: None };
        self.rows.clone().step_by(step).map(piece).collect()
    }

    /// Pieces that end where tiles end; `None` if tiles would be read several times because neighbouring rows are in
    /// different cubes, or if some rows are in none.
    fn pieces_of_tiles(&self, tiling: &Tiling<'_>) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut rows_of_cubes = vec![0; tiling.cubes.len()];
        let mut next = self.rows.start;
        for run in &tiling.runs {
            let (start, end) = (run.rows.start.max(self.rows.start), run.rows.end.min(self.rows.end));
            if start >= end {
                continue;
            }
            if start != next {
                return None;
            }
            next = end;
            rows_of_cubes[run.cube] += end - start;
            let tile = self.tile_rows(tiling, run.cube)?;
            let (mut row, mut position) = (start, run.position + (start - run.rows.start));
            while row < end {
                let count = (tile - position % tile).min(end - row);
                pieces.push(Piece { rows: row..row + count, tiles: Some((run.cube, position)) });
                row += count;
                position += count;
            }
        }
        let mut tiles = 0;
        for (cube, rows) in rows_of_cubes.into_iter().enumerate().filter(|(_, rows)| *rows > 0) {
            tiles += rows / self.tile_rows(tiling, cube)? + 2;
        }
        (next == self.rows.end && pieces.len() as u64 <= 2 * tiles).then_some(pieces)
    }

    /// The rows of a tile, if rows are the last axis of the cube.
    fn tile_rows(&self, tiling: &Tiling<'_>, cube: usize) -> Option<u64> {
        let grid = tiling.cubes[cube].grid();
        grid.chunk.last().copied().filter(|&rows| rows > 0 && grid.shape.len() == self.cell.len() + 1)
    }

    fn read_cells<T: Element>(&self, rows: Range<u64>, scratch: &mut Values, out: &mut [T]) -> Result<()> {
        scratch.clear();
        match self.region {
            None => self.cells.read_rows(rows.clone(), scratch)?,
            Some(region) => rows.clone().try_for_each(|row| self.cells.read_cell(row, Some(region), scratch))?,
        }
        let found = typed::<T>(scratch)?;
        if found.len() != out.len() {
            let (found, expected, Range { start, end }) = (found.len(), out.len(), rows);
            return Err(Error::format(format!(
                "rows {start}..{end} have {found} elements, by their shapes {expected}"
            )));
        }
        out.clone_from_slice(found);
        Ok(())
    }

    /// Reads the rows that are at consecutive positions of a cube from `position` on.
    fn read_tiles<T: Element>(
        &self,
        cube: &dyn ChunkRead,
        position: u64,
        rows: Range<u64>,
        scratch: &mut Values,
        out: &mut [T],
    ) -> Result<()> {
        let grid = cube.grid();
        let cell = self.region.cloned().unwrap_or_else(|| Region::whole(self.cell));
        let wanted =
            Region { start: cell.start.with_axis(position), shape: cell.shape.with_axis(rows.end - rows.start) };
        let row_len = cell.shape.elements()? as usize;
        let read = |index: &[u64], part: &Part| {
            let number = grid.number(index);
            if let Some(order) = cube.raw_order().filter(|_| is_straight(part, &grid.chunk, &wanted.shape)) {
                let first = part.in_region.last().copied().unwrap_or(0) as usize * row_len;
                let len = part.extent.elements()? as usize;
                if let Some(bytes) = T::bytes_mut(&mut out[first..first + len]) {
                    cube.read_raw(number, bytes)?;
                    if order != ByteOrder::NATIVE {
                        swap_bytes(bytes, swap_width(T::DATA_TYPE));
                    }
                    return Ok(());
                }
            }
            scratch.clear();
            cube.read_chunk(index, scratch)?;
            let from = typed::<T>(scratch)?;
            let copy = |at: usize, to: usize, run: usize| out[to..to + run].clone_from_slice(&from[at..at + run]);
            for_each_run(&grid.chunk, &part.in_chunk, &wanted.shape, &part.in_region, &part.extent, copy);
            Ok(())
        };
        for_each_chunk(grid, &wanted, read)
    }
}

/// Whether the part is a whole chunk whose elements follow each other in the region as well.
fn is_straight(part: &Part, chunk: &Shape, region: &Shape) -> bool {
    let cell = region.len().saturating_sub(1);
    part.extent == *chunk && part.extent[..cell] == region[..cell]
}

fn typed<T: Element>(values: &Values) -> Result<&[T]> {
    let found = values.data_type();
    T::slice(values).ok_or_else(|| Error::usage(format!("the elements are of type {found}, not {}", T::DATA_TYPE)))
}
