//! Registers the tiles of a new table that other processes will write: a conversion by many processes first writes the table without them.

use std::path::PathBuf;
use std::sync::Mutex;

use super::tiles::{pairs, store_tiles, stored_bytes};
use crate::clone::Sharer;
use crate::error::{Error, Result};
use crate::grid::{Grid, copy_box, for_each_chunk};
use crate::io::ByteOrder;
use crate::source::blocks::{RowBlocks, WRITE_BYTES};
use crate::sync::{LockUnpoisoned, Unpoisoned};
use crate::table::{ColumnCells, ColumnInfo, ColumnMut, TilePlace, Tiling};
use crate::value::{Region, Values};

/// Approximate number of bytes of tiles that are made from rows of the source at a time.
const BATCH_BYTES: u64 = 1 << 20;

/// The tiles of a new table's hypercube that one process leaves out of the table, because other processes write them later.
#[derive(Debug)]
pub(crate) struct HeldTiles {
    /// Which table of the source the tiles are made from: an index of `Source::tables`, from 0.
    pub(crate) table: usize,
    /// Directory of the table, relative to that of the main table; empty for the main table.
    pub(crate) directory: PathBuf,
    /// Index of the column in the source table, from 0.
    pub(crate) column: usize,
    /// Index of the column's hypercube in the source, from 0.
    pub(crate) cube: usize,
    /// Number of hypercubes that the column has in the source; 1 if the new table's tiles are made from cells of rows
    /// (`is_of_chunks` is false) instead of chunks of the source's hypercubes.
    pub(crate) cubes: usize,
    /// Shape of the new table's hypercube and shape of its tiles, both in elements, fastest axis first, rows last.
    pub(crate) grid: Grid,
    /// Byte order of the elements in a tile; `None` for packed Bools.
    pub(crate) order: Option<ByteOrder>,
    /// Number of consecutive tiles that another process makes at a time: those of one chunk of the source, or those
    /// that have the same rows.
    pub(crate) joined: u64,
    /// Whether the new table's tiles are made from chunks of the source's hypercube; otherwise from cells of rows.
    pub(crate) is_of_chunks: bool,
    pub(crate) place: TilePlace,
}

/// Collects, while the columns of a new table are filled, the tiles that other processes will write.
#[derive(Debug)]
pub(super) struct Holder {
    /// Smallest size in bytes of a hypercube of the new table whose tiles the worker processes of the conversion write
    /// later. Smaller hypercubes are written at once.
    least: u64,
    /// Largest number of bytes of a chunk of the source, or of all tiles with the same rows, that a worker process of
    /// the conversion makes into tiles at a time. Hypercubes that need more are written at once, without workers.
    most: u64,
    held: Mutex<Vec<HeldTiles>>,
}

/// A column of a new table, with the [`Holder`] in which its tiles are registered if other processes will write them.
pub(super) struct Holding<'a> {
    pub(super) holder: &'a Holder,
    pub(super) table: usize,
    pub(super) directory: PathBuf,
    pub(super) column: usize,
}

impl Holder {
    pub(super) fn new(least: u64, most: u64) -> Self {
        Holder { least, most, held: Mutex::default() }
    }

    /// All registered tiles, which other processes will write, in the order of tables, columns and hypercubes.
    pub(super) fn finish(self) -> Vec<HeldTiles> {
        let mut held = self.held.into_inner().unpoisoned();
        held.sort_by_key(|held| (held.table, held.column, held.cube));
        held
    }
}

impl Holding<'_> {
    /// Registers the large hypercubes of a column for other processes, which make their tiles from chunks of the source, and copies the
    /// small hypercubes. Returns false, with nothing copied or registered, if the tiles are not chunks of the source or parts of them.
    pub(super) fn hold_chunks(
        &self,
        tiling: &Tiling<'_>,
        column: &mut ColumnMut<'_>,
        sharer: &Sharer<'_>,
        advance: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        let places = column.tile_places()?;
        let targets = column.cubes()?;
        let Some(pairs) = pairs(tiling, &targets) else { return Ok(false) };
        for pair in &pairs {
            let (grid, order) = (pair.to.grid().clone(), pair.to.raw_order());
            let size = pair.to.data_type().size() as u64;
            let chunk_bytes = pair.from.grid().chunk.elements()?.saturating_mul(size);
            let is_held = self.is_large(grid.shape.elements()?.saturating_mul(size), chunk_bytes);
            match places.get(pair.target).filter(|_| is_held) {
                Some(place) => self.add(HeldTiles {
                    table: self.table,
                    directory: self.directory.clone(),
                    column: self.column,
                    cube: pair.cube,
                    cubes: pairs.len(),
                    grid,
                    order,
                    joined: pair.joined,
                    is_of_chunks: true,
                    place: place.clone(),
                }),
                None => pair.fill(sharer, advance)?,
            }
        }
        Ok(true)
    }

    /// Registers the tiles of a large column, if all its cells are in one hypercube, for other processes, which make them from rows of the
    /// source. This call itself only sets the cells' shapes. Returns false if the tiles are not registered: then the caller has to copy the
    /// cells.
    pub(super) fn hold_rows(
        &self,
        info: &ColumnInfo,
        cells: &dyn ColumnCells,
        rows: u64,
        column: &mut ColumnMut<'_>,
    ) -> Result<bool> {
        let size = info.data_type().size() as u64;
        let Some(shape) = cells.same_shape(&(0..rows)).filter(|shape| !shape.is_empty() && size > 0) else {
            return Ok(false);
        };
        let whole = shape.with_axis(rows);
        if rows == 0 || whole.elements()?.saturating_mul(size) < self.holder.least {
            return Ok(false);
        }
        column.set_shapes(0..rows, &shape)?;
        let places = column.tile_places()?;
        let cubes = column.cubes()?;
        let ([cube], [place]) = (&cubes[..], &places[..]) else { return Ok(false) };
        let grid = cube.grid();
        let Some((counts, _)) = grid.counts().split_last().filter(|_| grid.shape == whole) else { return Ok(false) };
        let joined = counts.elements()?;
        let slab = joined.saturating_mul(grid.chunk.elements()?).saturating_mul(size);
        if cube.data_type() != info.data_type() || !self.is_large(slab.max(self.holder.least), slab) {
            return Ok(false);
        }
        self.add(HeldTiles {
            table: self.table,
            directory: self.directory.clone(),
            column: self.column,
            cube: 0,
            cubes: 1,
            grid: grid.clone(),
            order: cube.raw_order(),
            joined,
            is_of_chunks: false,
            place: place.clone(),
        });
        Ok(true)
    }

    /// Whether other processes will write the tiles of a hypercube of `bytes` bytes. `at_a_time` is the size in bytes
    /// of what they make into tiles at a time: a chunk of the source, or all tiles with the same rows.
    fn is_large(&self, bytes: u64, at_a_time: u64) -> bool {
        bytes >= self.holder.least && at_a_time <= self.holder.most
    }

    fn add(&self, held: HeldTiles) {
        self.holder.held.lock_unpoisoned().push(held);
    }
}

/// Makes the tiles of a new table's hypercube from the rows of a column whose cells all have one shape.
pub(crate) struct RowTiles<'a> {
    pub(crate) info: &'a ColumnInfo,
    pub(crate) cells: &'a dyn ColumnCells,
    /// Shape of the new table's hypercube and shape of its tiles, both in elements, fastest axis first. The last axis
    /// is the rows of the column.
    pub(crate) grid: Grid,
    /// Byte order of the elements in a tile; `None` for packed Bools.
    pub(crate) order: Option<ByteOrder>,
}

impl RowTiles<'_> {
    /// Size in bytes of a tile as it is stored.
    pub(crate) fn tile_bytes(&self) -> Result<u64> {
        Ok(stored_bytes(self.grid.chunk.elements()?, self.info.data_type().size() as u64, self.order))
    }

    /// Number of slabs (a slab: all tiles with one index on the last axis) that one call of [`read`](Self::read) should read.
    pub(crate) fn batch(&self) -> Result<u64> {
        let (counts, _) = self.grid.counts().split_last().ok_or_else(without_axes)?;
        let bytes = counts.elements()?.saturating_mul(self.tile_bytes()?);
        Ok((BATCH_BYTES / bytes.max(1)).max(1))
    }

    /// Replaces `bytes` by tiles as the table's file stores them: all those whose index on the last axis (rows) is in the range `slabs`.
    pub(crate) fn read(&self, slabs: std::ops::Range<u64>, bytes: &mut Vec<u8>) -> Result<()> {
        let (cell, rows) = self.grid.shape.split_last().ok_or_else(without_axes)?;
        let (counts, _) = self.grid.counts().split_last().ok_or_else(without_axes)?;
        let tile_rows = self.grid.chunk.last().copied().ok_or_else(without_axes)?;
        let (len, tiles) = (self.grid.chunk.elements()?, counts.elements()?);
        bytes.clear();
        for slab in slabs {
            let rows = slab * tile_rows..rows.min((slab + 1) * tile_rows);
            let count = rows.end.saturating_sub(rows.start);
            let mut values = Values::new(self.info.data_type());
            for block in RowBlocks::new(self.info, self.cells, rows, WRITE_BYTES) {
                block?.read(self.cells, &mut values)?;
            }
            let shape = cell.with_axis(count);
            if values.len() as u64 != shape.elements()? {
                return Err(Error::format("the cells have changed since the plan was made"));
            }
            if self.grid.covers_cells() {
                store_tiles(values, tiles, len, self.order, bytes)?;
                continue;
            }
            let of_slab = Grid { shape: shape.clone(), chunk: self.grid.chunk.clone() };
            for_each_chunk(&of_slab, &Region::whole(&shape), |_, part| {
                let mut tile = Values::new(values.data_type());
                tile.extend_default(len as usize);
                copy_box(
                    &values,
                    &shape,
                    &part.in_region,
                    &mut tile,
                    0,
                    &self.grid.chunk,
                    &part.in_chunk,
                    &part.extent,
                );
                store_tiles(tile, 1, len, self.order, bytes)
            })?;
        }
        Ok(())
    }
}

fn without_axes() -> Error {
    Error::format("the hypercube has no axes")
}
