//! Makes the chunks or tiles that the workers of a conversion by many processes write, from cells
//! of the source.

use std::ops::Range;

use super::document::{Dataset, Place};
use super::tile_file::TileFile;
use crate::convert::to_hdf5::Tiles;
use crate::convert::to_table::{ChunkTiles, RowTiles};
use crate::error::{Error, Result};
use crate::grid::{ChunkRead, Grid};
use crate::native::MAX_CUBES;
use crate::source::Content;
use crate::source::blocks::{RowBlocks, WRITE_BYTES};
use crate::table::{ColumnCells, Tiling};
use crate::value::Values;

pub(super) struct Chunks<'a> {
    pub(super) dataset: &'a Dataset,
    content: &'a Content,
    cells: &'a dyn ColumnCells,
    tiling: Option<Tiling<'a>>,
    grid: Grid,
    pub(super) chunk_bytes: u64,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(dataset: &'a Dataset, content: &'a Content, cells: &'a dyn ColumnCells) -> Result<Self> {
        let tiling = if dataset.is_of_tiles { cells.tiling(MAX_CUBES) } else { None };
        let (grid, chunk_bytes) = (dataset.grid(), dataset.chunk_bytes()?);
        let chunks = Chunks { dataset, content, cells, tiling, grid, chunk_bytes };
        match dataset.place() {
            Place::Tiles(tiles) => chunks.check_tiles(tiles)?,
            Place::Block(_) | Place::Chunks if dataset.is_of_tiles => chunks.tiles().map(|_| ())?,
            Place::Block(_) | Place::Chunks => {}
        }
        Ok(chunks)
    }

    /// Fails if the source has no hypercube of the planned shape.
    fn cube(&self) -> Result<&dyn ChunkRead> {
        let cubes = self.tiling.as_ref().map_or(&[][..], |tiling| &tiling.cubes);
        let cube = cubes.get(self.dataset.cube).filter(|cube| cube.grid().shape == self.grid.shape);
        cube.map(|cube| &**cube as &dyn ChunkRead).ok_or_else(changed_cubes)
    }

    fn tiles(&self) -> Result<Tiles<'_>> {
        Tiles::new(self.cube()?, &self.grid)
    }

    fn chunk_tiles(&self, tiles: &TileFile) -> Result<ChunkTiles<'_>> {
        ChunkTiles::new(self.cube()?, &self.grid, tiles.order()?, tiles.joined)
    }

    fn row_tiles(&self, tiles: &TileFile) -> Result<RowTiles<'_>> {
        let info = &self.content.columns()[self.dataset.column_number];
        Ok(RowTiles { info, cells: self.cells, grid: self.grid.clone(), order: tiles.order()? })
    }

    /// Fails if tiles would not have the planned size, because the source has changed.
    fn check_tiles(&self, tiles: &TileFile) -> Result<()> {
        let bytes = match self.dataset.is_of_tiles {
            true => self.chunk_tiles(tiles)?.tile_bytes(),
            false => self.row_tiles(tiles)?.tile_bytes()?,
        };
        if bytes == tiles.bytes { Ok(()) } else { Err(changed_cubes()) }
    }

    /// Most chunks, or groups of [`TileFile::joined`] tiles, for one call of [`read`](Self::read).
    pub(super) fn batch(&self) -> Result<u64> {
        match (self.dataset.place(), self.dataset.is_of_tiles) {
            (Place::Tiles(tiles), true) => Ok(self.chunk_tiles(tiles)?.batch()),
            (Place::Tiles(tiles), false) => self.row_tiles(tiles)?.batch(),
            (Place::Block(_), true) => Ok(self.tiles()?.batch()),
            // a file of chunks has them one by one
            (Place::Block(_) | Place::Chunks, _) => Ok(1),
        }
    }

    /// Chunks are uncompressed, tiles as stored; the last of the dataset may be shorter.
    pub(super) fn read(&self, chunks: Range<u64>, bytes: &mut Vec<u8>) -> Result<()> {
        match (self.dataset.place(), self.dataset.is_of_tiles) {
            (Place::Tiles(tiles), true) => self.chunk_tiles(tiles)?.read(chunks, bytes),
            (Place::Tiles(tiles), false) => self.row_tiles(tiles)?.read(chunks, bytes),
            (Place::Block(_) | Place::Chunks, true) => self.tiles()?.read(chunks, bytes),
            (Place::Block(_) | Place::Chunks, false) => self.read_rows(chunks, bytes),
        }
    }

    fn read_rows(&self, chunks: Range<u64>, bytes: &mut Vec<u8>) -> Result<()> {
        let (Some(&rows), Some(&chunk_rows)) = (self.grid.shape.last(), self.grid.chunk.last()) else {
            return Err(Error::format("the dataset has no row axis"));
        };
        let first = self.dataset.first_row;
        let rows = first + chunks.start * chunk_rows..first + (chunks.end * chunk_rows).min(rows);
        let info = &self.content.columns()[self.dataset.column_number];
        let mut values = Values::new(info.data_type());
        bytes.clear();
        for block in RowBlocks::new(info, self.cells, rows, WRITE_BYTES) {
            values.clear();
            block?.read(self.cells, &mut values)?;
            bytes.extend_from_slice(&values.le_bytes().ok_or_else(|| Error::format("the cells are not numbers"))?);
        }
        if bytes.len() as u64 > (chunks.end - chunks.start) * self.chunk_bytes {
            return Err(Error::format("the cells have changed since the plan was made"));
        }
        Ok(())
    }
}

fn changed_cubes() -> Error {
    Error::format("the hypercubes have changed since the plan was made")
}
