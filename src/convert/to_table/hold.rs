//! Registers the tiles of a new table that other processes will write: a conversion by many
//! processes first writes the table without them.
//! Without a byte order, tiles have packed Bools.

use std::path::PathBuf;
use std::sync::Mutex;

use super::tiles::{pairs, store_tiles, stored_bytes};
use crate::error::{Error, Result};
use crate::grid::{Grid, copy_box, for_each_chunk};
use crate::io::ByteOrder;
use crate::output::clone::Sharer;
use crate::source::blocks::{RowBlocks, WRITE_BYTES};
use crate::sync::{LockUnpoisoned, Unpoisoned};
use crate::table::{ColumnCells, ColumnInfo, ColumnMut, TilePlace, Tiling};
use crate::value::{Region, Values};

/// Approximate bytes of tiles made from rows at a time.
const BATCH_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct HeldTiles {
    /// Index of `Source::tables`.
    pub(crate) table: usize,
    /// Relative to the directory of the main table.
    pub(crate) directory: PathBuf,
    /// Index in the source, as is `cube`.
    pub(crate) column: usize,
    pub(crate) cube: usize,
    /// Hypercubes of the column in the source; 1 if tiles are made of rows.
    pub(crate) cubes: usize,
    /// Of the new table, fastest axis first, rows last: shape of the hypercube and of its tiles.
    pub(crate) grid: Grid,
    pub(crate) order: Option<ByteOrder>,
    /// Consecutive tiles made at a time: of one chunk of the source, or with the same rows.
    pub(crate) joined: u64,
    /// Tiles are made of chunks of the source's hypercube, otherwise of rows.
    pub(crate) is_of_chunks: bool,
    pub(crate) place: TilePlace,
}

#[derive(Debug)]
pub(super) struct Holder {
    /// Smaller hypercubes are written at once.
    least: u64,
    /// Most bytes of a source chunk, or of all tiles with the same rows; larger ones are written at
    /// once.
    most: u64,
    held: Mutex<Vec<HeldTiles>>,
}

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

    /// Ordered by tables, columns and hypercubes.
    pub(super) fn finish(self) -> Vec<HeldTiles> {
        let mut held = self.held.into_inner().unpoisoned();
        held.sort_by_key(|held| (held.table, held.column, held.cube));
        held
    }
}

impl Holding<'_> {
    /// Small hypercubes are copied. False, with nothing done, if tiles are not chunks of the source
    /// or parts of them.
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

    /// Also sets the cells' shapes; false if the caller has to copy the cells.
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

    /// `at_a_time` is the size of a chunk of the source, or of all tiles with the same rows.
    fn is_large(&self, bytes: u64, at_a_time: u64) -> bool {
        bytes >= self.holder.least && at_a_time <= self.holder.most
    }

    fn add(&self, held: HeldTiles) {
        self.holder.held.lock_unpoisoned().push(held);
    }
}

/// Makes tiles from rows of a column whose cells all have one shape.
pub(crate) struct RowTiles<'a> {
    pub(crate) info: &'a ColumnInfo,
    pub(crate) cells: &'a dyn ColumnCells,
    pub(crate) grid: Grid,
    pub(crate) order: Option<ByteOrder>,
}

impl RowTiles<'_> {
    pub(crate) fn tile_bytes(&self) -> Result<u64> {
        Ok(stored_bytes(self.grid.chunk.elements()?, self.info.data_type().size() as u64, self.order))
    }

    /// Slabs (all tiles with one index on the last axis) for one call of [`read`](Self::read).
    pub(crate) fn batch(&self) -> Result<u64> {
        let (counts, _) = self.grid.counts().split_last().ok_or_else(without_axes)?;
        let bytes = counts.elements()?.saturating_mul(self.tile_bytes()?);
        Ok((BATCH_BYTES / bytes.max(1)).max(1))
    }

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
