//! Reads many rows of a column at once, on all processors, into memory of the caller.
//!
//! The rows are cut into pieces, each with its part of the output. Where the column is tiled a
//! piece is the rows of whole tiles, so that every tile is read once; a tile whose bytes are the
//! elements of consecutive rows goes straight to its place. Elsewhere a piece is as many rows as
//! stay in a processor's cache on their way.

use std::ops::Range;

use rayon::prelude::*;

use super::{Access, ColumnCells, ColumnInfo, Tiling};
use crate::error::{Error, Result};
use crate::grid::{ChunkRead, ChunkStorage, Part, copy_elements, for_each_chunk};
use crate::io::{ByteOrder, Gather};
use crate::value::{Element, Region, Shape, Values, swap_bytes, swap_width};

/// Bytes of the pieces of a read, except where a tiled column is read tile by tile.
const PIECE_BYTES: u64 = 256 << 10;
/// Below this, starting threads takes longer than reading.
const PARALLEL_BYTES: u64 = 4 << 20;
const PARALLEL_COMPUTED_BYTES: u64 = 512 << 10;
/// Up to this size, rows within a tile come through the cache of the column.
const CACHED_BYTES: u64 = 1 << 20;
/// Cells up to this size are read whole even if a part is wanted.
const SMALL_CELL_BYTES: u64 = 512;
/// A column with more is read cell by cell.
const MAX_CUBES: usize = 1 << 10;

/// Shape of all cells of `rows`; without rows that of the column (of `all` rows), else its fixed
/// shape, else without axes. `NotFound` if a cell is undefined, `Usage` if shapes differ.
pub(super) fn common_shape(info: &ColumnInfo, cells: &dyn ColumnCells, rows: &Rows<'_>, all: u64) -> Result<Shape> {
    let known = if info.is_always_defined() { info.shape.clone() } else { None };
    if let Some(shape) = known.or_else(|| cells.same_shape(&rows.hull().unwrap_or(0..all))) {
        return Ok(shape);
    }
    let mut shape = None;
    for row in rows.runs().flatten() {
        let found = cells.cell_shape(row)?;
        let found = found.ok_or_else(|| Error::not_found(format!("the cell in row {row} is undefined")))?;
        if *shape.get_or_insert_with(|| found.clone()) != found {
            return Err(Error::usage(format!("the cell in row {row} has shape {found}, others differ")));
        }
    }
    Ok(shape.or_else(|| info.shape.clone()).unwrap_or_default())
}

#[derive(Debug, Clone)]
pub(super) enum Rows<'a> {
    Range(Range<u64>),
    /// Any order is allowed.
    List(&'a [u64]),
}

impl<'a> Rows<'a> {
    pub(super) fn len(&self) -> u64 {
        match self {
            Rows::Range(rows) => rows.end.saturating_sub(rows.start),
            Rows::List(rows) => rows.len() as u64,
        }
    }

    pub(super) fn hull(&self) -> Option<Range<u64>> {
        match self {
            Rows::Range(rows) => Some(rows.clone()).filter(|rows| !rows.is_empty()),
            Rows::List(rows) => Some(*rows.iter().min()?..rows.iter().max()?.saturating_add(1)),
        }
    }

    /// Ranges of consecutive rows, in the order asked for.
    fn runs(&self) -> impl Iterator<Item = Range<u64>> + 'a {
        let (range, list): (_, &'a [u64]) = match self {
            Rows::Range(rows) => (Some(rows.clone()), &[]),
            Rows::List(rows) => (None, rows),
        };
        let runs = list.chunk_by(|&row, &next| row.checked_add(1) == Some(next));
        range.into_iter().chain(runs.filter_map(|run| Some(*run.first()?..run.last()? + 1)))
    }

    fn pieces(&self, step: usize) -> Vec<Piece<'a>> {
        let piece = |rows| Piece { rows, tiles: None };
        match self {
            Rows::Range(rows) => {
                let end = |start: u64| start.saturating_add(step as u64).min(rows.end);
                rows.clone().step_by(step).map(|start| piece(Rows::Range(start..end(start)))).collect()
            }
            Rows::List(rows) => rows.chunks(step).map(|rows| piece(Rows::List(rows))).collect(),
        }
    }
}

/// Cells of one shape, or the same region of each.
pub(super) struct Wanted<'a> {
    pub(super) cells: &'a dyn ColumnCells,
    pub(super) rows: Rows<'a>,
    pub(super) cell: &'a Shape,
    /// `None` for whole cells.
    pub(super) region: Option<&'a Region>,
}

struct Piece<'a> {
    rows: Rows<'a>,
    /// Hypercube and positions of the rows on its last axis; `None` to read cell by cell.
    tiles: Option<(usize, Range<u64>)>,
}

impl<'a> Wanted<'a> {
    /// `Usage` if the region leaves the cell.
    pub(super) fn part(&self) -> Result<Shape> {
        match self.region {
            Some(region) => region.check(self.cell).map(|()| region.shape.clone()),
            None => Ok(self.cell.clone()),
        }
    }

    /// Fills `out` row after row, the first axis fastest; `Usage` if `out` has another length.
    pub(super) fn read<T: Element>(&self, out: &mut [T]) -> Result<()> {
        let count = self.rows.len();
        let part = self.part()?;
        let elements = part.elements()?;
        if elements.checked_mul(count) != Some(out.len() as u64) {
            let len = out.len();
            return Err(Error::usage(format!("{count} rows of {elements} elements do not fill an array of {len}")));
        }
        if out.is_empty() {
            return Ok(());
        }
        // bytes read decide: a part of each cell may take all of the tiles, one row all of a tile
        // that is decoded
        let read_bytes = self.cell.elements()?.saturating_mul(count).saturating_mul(size_of::<T>() as u64);
        let tiling = self.cells.tiling_to_read(MAX_CUBES);
        let mut decoded_bytes = 0;
        let of_tiles = |tiling: &Tiling<'_>| match &self.rows {
            Rows::Range(rows) if read_bytes <= CACHED_BYTES && self.is_within_tile(rows, tiling) => None,
            Rows::Range(rows) => self.pieces_of_tiles(rows, tiling),
            Rows::List(rows) => {
                let pieces = self.pieces_of_encoded(rows, tiling)?;
                let tile_bytes = tiling.cubes[0].grid().chunk.elements().ok()?.saturating_mul(size_of::<T>() as u64);
                decoded_bytes = tile_bytes.saturating_mul(pieces.len() as u64);
                Some(pieces)
            }
        };
        let row_bytes = elements.max(1).saturating_mul(size_of::<T>() as u64);
        let pieces = tiling.as_ref().and_then(of_tiles);
        let pieces = pieces.unwrap_or_else(|| self.rows.pieces((PIECE_BYTES / row_bytes).max(1) as usize));
        let is_large = match self.cells.access() {
            Access::Copied => read_bytes >= PARALLEL_BYTES || decoded_bytes >= PARALLEL_COMPUTED_BYTES,
            Access::Computed => read_bytes >= PARALLEL_COMPUTED_BYTES,
            Access::InOrder => false,
        };
        let mut rest = out;
        let mut work = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let len = piece.rows.len() * elements;
            let (now, later) = rest.split_at_mut(len as usize);
            work.push((piece, now));
            rest = later;
        }
        let read = |scratch: &mut Values, (piece, out): (Piece<'_>, &mut [T])| match (piece.tiles, &tiling) {
            (Some((cube, positions)), Some(tiling)) => self.read_tiles(&*tiling.cubes[cube], positions, scratch, out),
            (_, Some(tiling)) if self.gather(&piece.rows, tiling, out) => Ok(()),
            _ => self.read_cells(&piece.rows, scratch, out),
        };
        let scratch = || Values::new(T::DATA_TYPE);
        if is_large && work.len() > 1 {
            work.into_par_iter().try_for_each_init(scratch, read)
        } else {
            let mut scratch = scratch();
            work.into_iter().try_for_each(|piece| read(&mut scratch, piece))
        }
    }

    /// Whether a tile has more rows: read whole for these, it would be read again for the next.
    fn is_within_tile(&self, rows: &Range<u64>, tiling: &Tiling<'_>) -> bool {
        let at = tiling.runs.partition_point(|run| run.rows.end <= rows.start);
        let tile = tiling.runs.get(at).and_then(|run| self.tile_rows(tiling, run.cube));
        tile.is_some_and(|tile| rows.end - rows.start < tile)
    }

    /// Pieces ending where tiles end; `None` if neighbours are in different cubes or in none.
    fn pieces_of_tiles(&self, rows: &Range<u64>, tiling: &Tiling<'_>) -> Option<Vec<Piece<'a>>> {
        let mut pieces = Vec::new();
        let mut rows_of_cubes = vec![0; tiling.cubes.len()];
        let mut next = rows.start;
        for run in &tiling.runs {
            let (start, end) = (run.rows.start.max(rows.start), run.rows.end.min(rows.end));
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
                let tiles = Some((run.cube, position..position + count));
                pieces.push(Piece { rows: Rows::Range(row..row + count), tiles });
                row += count;
                position += count;
            }
        }
        let mut tiles = 0;
        for (cube, count) in rows_of_cubes.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            tiles += count / self.tile_rows(tiling, cube)? + 2;
        }
        (next == rows.end && pieces.len() as u64 <= 2 * tiles).then_some(pieces)
    }

    /// Pieces of a list of rows, each in one tile, for a single hypercube whose tiles must be
    /// decoded whole; `None` for other columns, or if the list often returns to earlier tiles.
    fn pieces_of_encoded(&self, rows: &'a [u64], tiling: &Tiling<'_>) -> Option<Vec<Piece<'a>>> {
        let ([cube], [run]) = (&tiling.cubes[..], &tiling.runs[..]) else { return None };
        if !matches!(cube.storage(), ChunkStorage::Encoded) {
            return None;
        }
        let tile = self.tile_rows(tiling, 0)?;
        let tile_of = |row: u64| (run.position + row.checked_sub(run.rows.start)?).checked_div(tile);
        let pieces: Vec<_> = rows
            .chunk_by(|&row, &next| tile_of(row) == tile_of(next))
            .map(|rows| Piece { rows: Rows::List(rows), tiles: None })
            .collect();
        let hull = self.rows.hull()?;
        (pieces.len() as u64 <= 2 * ((hull.end - hull.start) / tile + 2)).then_some(pieces)
    }

    /// `None` if rows are not the last axis.
    fn tile_rows(&self, tiling: &Tiling<'_>, cube: usize) -> Option<u64> {
        let grid = tiling.cubes[cube].grid();
        grid.chunk.last().copied().filter(|&rows| rows > 0 && grid.shape.len() == self.cell.len() + 1)
    }

    /// Whole cells, each contiguous in the file; false otherwise or after errors: other ways exist.
    fn gather<T: Element>(&self, rows: &Rows<'_>, tiling: &Tiling<'_>, out: &mut [T]) -> bool {
        let Some(bytes) = T::bytes_mut(out).filter(|_| self.region.is_none()) else { return false };
        let Some(order) = self.gather_bytes(rows, tiling, bytes, size_of::<T>() as u64) else { return false };
        if order != ByteOrder::NATIVE {
            swap_bytes(bytes, swap_width(T::DATA_TYPE));
        }
        true
    }

    /// As [`gather`](Self::gather) from the only hypercube; returns the elements' byte order.
    fn gather_bytes(&self, rows: &Rows<'_>, tiling: &Tiling<'_>, out: &mut [u8], size: u64) -> Option<ByteOrder> {
        // one cube: rows in turn from several files are not near each other
        let [cube] = &tiling.cubes[..] else { return None };
        let ChunkStorage::Block { file, offset, order } = cube.storage() else { return None };
        let (chunk, cell) = (&cube.grid().chunk, self.cell);
        self.tile_rows(tiling, 0).filter(|_| chunk[..cell.len()] == cell[..])?;
        let bytes = cell.elements().ok()?.checked_mul(size)?;
        let mut gather = Gather::new(file, out)?;
        let mut at = 0;
        for rows in rows.runs() {
            let mut row = rows.start;
            while row < rows.end {
                let holds = |at: usize| tiling.runs.get(at).is_some_and(|run| run.rows.contains(&row));
                if !holds(at) {
                    at = tiling.runs.partition_point(|run| run.rows.end <= row);
                }
                let run = tiling.runs.get(at).filter(|run| run.rows.contains(&row))?;
                let position = run.position + (row - run.rows.start);
                let count = run.rows.end.min(rows.end) - row;
                // the tiles follow each other, and have the bytes of their rows one after the other
                if !gather.push(offset + position * bytes, count * bytes) {
                    return None;
                }
                row += count;
            }
        }
        gather.finish().then_some(order)
    }

    fn read_cells<T: Element>(&self, rows: &Rows<'_>, scratch: &mut Values, out: &mut [T]) -> Result<()> {
        if self.region.is_none()
            && let Some(bytes) = T::bytes_mut(out)
            && let Some(order) = self.cells.read_plain(&mut rows.runs(), bytes)
        {
            if order != ByteOrder::NATIVE {
                swap_bytes(bytes, swap_width(T::DATA_TYPE));
            }
            return Ok(());
        }
        scratch.clear();
        let cell = self.cell.elements()?;
        let small = self.region.filter(|_| cell.saturating_mul(size_of::<T>() as u64) <= SMALL_CELL_BYTES);
        match self.region.filter(|_| small.is_none()) {
            None => rows.runs().try_for_each(|run| self.cells.read_rows(run, scratch))?,
            Some(region) => {
                rows.runs().flatten().try_for_each(|row| self.cells.read_cell(row, Some(region), scratch))?;
            }
        }
        let found = typed::<T>(scratch)?;
        let expected = if small.is_some() { rows.len() * cell } else { out.len() as u64 };
        if found.len() as u64 != expected {
            let (found, Range { start, end }) = (found.len(), rows.hull().unwrap_or_default());
            return Err(Error::format(format!(
                "rows {start}..{end} have {found} elements, by their shapes {expected}"
            )));
        }
        match small {
            None => out.clone_from_slice(found),
            Some(region) => {
                let (all, part) = (self.cell.with_axis(rows.len()), region.shape.with_axis(rows.len()));
                copy_elements(found, &all, &region.start.with_axis(0), out, &part, &vec![0; part.len()], &part);
            }
        }
        Ok(())
    }

    /// Reads cells at `positions` of the last axis of a hypercube, tile by tile.
    fn read_tiles<T: Element>(
        &self,
        cube: &dyn ChunkRead,
        positions: Range<u64>,
        scratch: &mut Values,
        out: &mut [T],
    ) -> Result<()> {
        let grid = cube.grid();
        let cell = self.region.cloned().unwrap_or_else(|| Region::whole(self.cell));
        let Range { start, end } = positions;
        let wanted = Region { start: cell.start.with_axis(start), shape: cell.shape.with_axis(end - start) };
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
            let len = grid.chunk.elements()? as usize;
            // memory that was filled before need not be cleared
            let is_plain = scratch.len() == len && cube.raw_order().is_some();
            if !is_plain || !cube.read_elements(number, 0, scratch, 0..len)? {
                scratch.clear();
                cube.read_chunk(index, scratch)?;
            }
            let from = typed::<T>(scratch)?;
            copy_elements(from, &grid.chunk, &part.in_chunk, out, &wanted.shape, &part.in_region, &part.extent);
            Ok(())
        };
        for_each_chunk(grid, &wanted, read)
    }
}

/// Whether `part` is a whole chunk and contiguous in `region`, so that it is copied at once.
fn is_straight(part: &Part, chunk: &Shape, region: &Shape) -> bool {
    let cell = region.len().saturating_sub(1);
    part.extent == *chunk && part.extent[..cell] == region[..cell]
}

fn typed<T: Element>(values: &Values) -> Result<&[T]> {
    let found = values.data_type();
    T::slice(values).ok_or_else(|| Error::usage(format!("the elements are of type {found}, not {}", T::DATA_TYPE)))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread::{self, ThreadId};

    use super::*;
    use crate::grid::{ChunkCache, Grid, read_region};
    use crate::stman::RowRun;
    use crate::value::DataType;

    /// Cells of 4096 floats that record which thread read which row.
    struct Watched {
        access: Access,
        read: Mutex<Vec<(ThreadId, u64)>>,
    }

    impl ColumnCells for Watched {
        fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
            Ok(Some(Shape::from([4096])))
        }

        fn read_cell(&self, row: u64, _region: Option<&Region>, out: &mut Values) -> Result<()> {
            self.read.lock().unwrap().push((thread::current().id(), row));
            out.extend_default(4096);
            Ok(())
        }

        fn access(&self) -> Access {
            self.access
        }
    }

    /// Threads of 1024 rows, of 16 KiB each.
    fn readers(access: Access) -> Vec<(ThreadId, u64)> {
        let cells = Watched { access, read: Mutex::default() };
        let cell = Shape::from([4096]);
        let wanted = Wanted { cells: &cells, rows: Rows::Range(0..1024), cell: &cell, region: None };
        let mut out = vec![0f32; 1024 * 4096];
        wanted.read(&mut out).unwrap();
        cells.read.into_inner().unwrap()
    }

    /// One float in each row, the number of the row; four rows in a tile, whose tiles are decoded.
    struct EncodedTiles {
        grid: Grid,
        cache: ChunkCache,
        decoded: AtomicU64,
    }

    impl EncodedTiles {
        fn new(rows: u64) -> Self {
            let grid = Grid { shape: Shape::from([rows]), chunk: Shape::from([4]) };
            EncodedTiles { grid, cache: ChunkCache::new(1 << 10), decoded: AtomicU64::new(0) }
        }
    }

    impl ChunkRead for EncodedTiles {
        fn grid(&self) -> &Grid {
            &self.grid
        }

        fn data_type(&self) -> DataType {
            DataType::Float
        }

        fn read_chunk(&self, index: &[u64], out: &mut Values) -> Result<()> {
            let Values::Float(out) = out else { unreachable!("read as float") };
            self.decoded.fetch_add(1, Ordering::Relaxed);
            out.extend((0..4).map(|row| (4 * index[0] + row) as f32));
            Ok(())
        }

        fn storage(&self) -> ChunkStorage<'_> {
            ChunkStorage::Encoded
        }

        fn read_raw(&self, _first: u64, _out: &mut [u8]) -> Result<()> {
            unreachable!("the order of stored bytes is not known")
        }

        fn read_elements(&self, _number: u64, _first: u64, _out: &mut Values, _to: Range<usize>) -> Result<bool> {
            Ok(false)
        }
    }

    impl ColumnCells for EncodedTiles {
        fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
            Ok(Some(Shape::scalar()))
        }

        fn read_cell(&self, row: u64, _region: Option<&Region>, out: &mut Values) -> Result<()> {
            read_region(self, &self.cache, 0, &Region { start: [row].into(), shape: [1].into() }, out)
        }

        fn tiling(&self, _max_cubes: usize) -> Option<Tiling<'_>> {
            Some(Tiling { cubes: vec![Box::new(self)], runs: RowRun::of_all(self.grid.shape[0]) })
        }
    }

    #[test]
    fn lists_of_rows_in_encoded_tiles_are_split_at_tiles() {
        let tiles = EncodedTiles::new(100);
        let cell = Shape::scalar();
        let lengths = |rows: &[u64]| -> Option<Vec<u64>> {
            let wanted = Wanted { cells: &tiles, rows: Rows::List(rows), cell: &cell, region: None };
            let mut out = vec![0f32; rows.len()];
            wanted.read(&mut out).unwrap();
            assert!(out.iter().zip(rows).all(|(value, row)| *value == *row as f32), "{rows:?}: {out:?}");
            let pieces = wanted.pieces_of_encoded(rows, &tiles.tiling(1).unwrap())?;
            Some(pieces.iter().map(|piece| piece.rows.len()).collect())
        };
        assert_eq!(lengths(&[0, 3, 4, 9, 8, 99]), Some(vec![2, 1, 2, 1]));
        assert_eq!(lengths(&[99, 1, 0]), Some(vec![1, 2]));
        // back and forth between two tiles
        let back_and_forth: Vec<u64> = (0..40).map(|number| number % 2 * 4).collect();
        assert_eq!(lengths(&back_and_forth), None);
    }

    #[test]
    fn tiles_read_in_small_steps_are_decoded_once() {
        let cell = Shape::scalar();
        for step in [1, 2, 3, 4, 12] {
            let tiles = EncodedTiles::new(96);
            for start in (0..96).step_by(step) {
                let rows = Rows::Range(start..start + step as u64);
                let mut out = vec![0f32; step];
                Wanted { cells: &tiles, rows, cell: &cell, region: None }.read(&mut out).unwrap();
                assert!(out.iter().zip(start..).all(|(value, row)| *value == row as f32), "{start}: {out:?}");
            }
            assert_eq!(tiles.decoded.into_inner(), 24, "{step}");
        }
    }

    #[test]
    fn rows_that_need_those_before_are_read_in_order() {
        let expected: Vec<_> = (0..1024).map(|row| (thread::current().id(), row)).collect();
        assert_eq!(readers(Access::InOrder), expected);
        // the others are read by the threads of the pool
        let mut shared = readers(Access::Copied);
        assert!(shared.iter().all(|(thread, _)| *thread != thread::current().id()));
        shared.sort_by_key(|(_, row)| *row);
        assert!(shared.iter().map(|(_, row)| *row).eq(0..1024));
    }
}
