//! Copies chunks of a source to tiles of a casacore table without decoding their elements: docs/layout.md, "Chunks and their
//! index".

use rayon::prelude::*;

use crate::clone::{SharedOnly, Sharer};
use crate::error::Result;
use crate::grid::{ChunkRead, ChunkStorage, ChunkWrite, read_chunks, read_chunks_in, unravel};
use crate::io::Raw;
use crate::table::Tiling;
use crate::value::Values;

/// Approximate number of bytes of chunks that are copied to tiles at a time.
const BATCH_BYTES: u64 = 1 << 20;

/// A hypercube of the source and the one it becomes in the table, whose tiles are its chunks or parts of them.
struct Pair<'a> {
    from: &'a dyn ChunkRead,
    to: &'a dyn ChunkWrite,
    /// Number of tiles that a chunk is divided into.
    joined: u64,
}

/// Copies the chunks of all hypercubes to tiles; returns false, with nothing written, if they do not match.
pub(super) fn chunks_to_tiles(
    tiling: &Tiling<'_>,
    targets: &[Box<dyn ChunkWrite + '_>],
    sharer: &Sharer<'_>,
    advance: &(dyn Fn(u64) -> Result<()> + Sync),
) -> Result<bool> {
    let Some(pairs) = pairs(tiling, targets) else { return Ok(false) };
    pairs.iter().try_for_each(|pair| match pair.share(sharer)? {
        Some(bytes) => advance(bytes),
        None => pair.copy(advance),
    })?;
    Ok(true)
}

/// Pairs each hypercube of the source with its target; `None` if one has no match, or its rows would be elsewhere.
fn pairs<'a>(tiling: &'a Tiling<'_>, targets: &'a [Box<dyn ChunkWrite + '_>]) -> Option<Vec<Pair<'a>>> {
    let mut next = vec![0; tiling.cubes.len()];
    for run in &tiling.runs {
        let next = next.get_mut(run.cube).filter(|next| **next == run.position)?;
        *next += run.rows.end - run.rows.start;
    }
    let mut pairs = Vec::new();
    for (cube, rows) in tiling.cubes.iter().zip(next) {
        let grid = cube.grid();
        if grid.shape.last() != Some(&rows) {
            return None;
        }
        let mut same = targets.iter().filter(|target| target.grid().shape == grid.shape);
        let (target, None) = (same.next()?, same.next()) else { return None };
        let others = tiling.cubes.iter().filter(|other| other.grid().shape == grid.shape).count();
        if others > 1 || target.data_type() != cube.data_type() {
            return None;
        }
        pairs.push(Pair { from: &**cube, to: &**target, joined: joined(&**cube, &**target)? });
    }
    Some(pairs)
}

/// Number of the table's tiles in a chunk of the source; `None` if chunks cannot be divided into tiles.
fn joined(from: &dyn ChunkRead, to: &dyn ChunkWrite) -> Option<u64> {
    let (chunk, chunk_rows) = from.grid().chunk.split_last()?;
    let (tile, tile_rows) = to.grid().chunk.split_last()?;
    let rows = to.grid().shape.last().copied()?;
    if chunk != tile || tile_rows == 0 {
        return None;
    }
    match chunk_rows.div_ceil(tile_rows) {
        1 if chunk_rows == tile_rows || chunk_rows >= rows => Some(1),
        joined if to.grid().covers_cells() && (chunk_rows % tile_rows == 0 || chunk_rows >= rows) => Some(joined),
        _ => None,
    }
}

impl Pair<'_> {
    /// Lets the table's tiles share the bytes of the source's chunks (reflinks); returns the bytes of all tiles, or `None` if
    /// that cannot be done.
    fn share(&self, sharer: &Sharer<'_>) -> Result<Option<u64>> {
        let ChunkStorage::Block { file, offset, order } = self.from.storage() else { return Ok(None) };
        let size = self.to.data_type().size() as u64;
        let tile_bytes = self.to.grid().chunk.elements()? * size;
        let chunk_bytes = self.from.grid().chunk.elements()? * size;
        let (tiles, chunks) = (self.to.grid().counts().elements()?, self.from.grid().counts().elements()?);
        if self.to.raw_order() != Some(order) || (chunk_bytes != self.joined * tile_bytes && chunks > 1) {
            return Ok(None);
        }
        let bytes = (tiles * tile_bytes).min(chunks * chunk_bytes);
        let mut at = 0;
        while at < bytes {
            let Some(raw) = file.raw(offset + at) else { return Ok(None) };
            let part = Raw { len: raw.len.min(bytes - at), ..raw };
            match self.to.copy_raw(at, part, &SharedOnly(sharer)) {
                0 => return Ok(None),
                shared => at += shared,
            }
        }
        // the rest of the last tile is beyond the rows, and zeros
        Ok(Some(tiles * tile_bytes))
    }

    fn copy(&self, advance: &(dyn Fn(u64) -> Result<()> + Sync)) -> Result<()> {
        let size = self.to.data_type().size() as u64;
        let tile_bytes = self.to.grid().chunk.elements()? * size;
        let chunk_bytes = self.from.grid().chunk.elements()? * size;
        let tiles = self.to.grid().counts().elements()?;
        let chunks = tiles.div_ceil(self.joined);
        // chunks that are whole tiles can be read and written many at a time
        let batch = if chunk_bytes == self.joined * tile_bytes { (BATCH_BYTES / chunk_bytes.max(1)).max(1) } else { 1 };
        (0..chunks.div_ceil(batch)).into_par_iter().try_for_each_init(Vec::new, |bytes: &mut Vec<u8>, number| {
            let first = number * batch;
            let count = batch.min(chunks - first);
            let first_tile = first * self.joined;
            let last_tile = tiles.min(first_tile + count * self.joined);
            bytes.resize((count * chunk_bytes) as usize, 0);
            match self.to.raw_order() {
                Some(order) if read_chunks_in(order, self.from, first, bytes)? => {
                    bytes.resize(((last_tile - first_tile) * tile_bytes) as usize, 0);
                    self.to.write_raw(first_tile, bytes)?;
                }
                _ => self.copy_elements(first..first + count, first_tile..last_tile)?,
            }
            advance((last_tile - first_tile) * tile_bytes)
        })
    }

    /// Copies chunks to tiles element by element, where one side packs Bools to bits.
    fn copy_elements(&self, chunks: std::ops::Range<u64>, tiles: std::ops::Range<u64>) -> Result<()> {
        let mut values = Values::new(self.from.data_type());
        read_chunks(self.from, chunks, &mut values)?;
        let tile_len = self.to.grid().chunk.elements()? as usize;
        let wanted = (tiles.end - tiles.start) as usize * tile_len;
        if values.len() < wanted {
            values.extend_default(wanted - values.len());
        }
        let counts = self.to.grid().counts();
        for (nth, tile) in tiles.enumerate() {
            let mut elements = Values::new(values.data_type());
            elements.extend_from(&values, nth * tile_len..(nth + 1) * tile_len)?;
            self.to.write_chunk(&unravel(tile, &counts), &elements)?;
        }
        Ok(())
    }
}
