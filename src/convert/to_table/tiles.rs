//! Makes the tiles of a casacore table from the chunks of a source, whole chunks at a time instead
//! of cell by cell: docs/reference/layout.md, "Chunks and their index".

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::grid::{ChunkRead, ChunkStorage, ChunkWrite, Grid, read_chunks, read_chunks_in};
use crate::io::{ByteOrder, Raw};
use crate::output::clone::{SharedOnly, Sharer};
use crate::table::Tiling;
use crate::value::{Values, bits};

/// Approximate bytes of chunks copied at a time.
const BATCH_BYTES: u64 = 1 << 20;

/// `cube` and `target` index the hypercubes of the column in the source and in the new table.
pub(super) struct Pair<'a> {
    pub(super) cube: usize,
    pub(super) target: usize,
    pub(super) from: &'a dyn ChunkRead,
    pub(super) to: &'a dyn ChunkWrite,
    /// Tiles in a chunk of the source.
    pub(super) joined: u64,
}

/// False, with nothing written, if [`pairs`] returns `None`.
pub(super) fn chunks_to_tiles(
    tiling: &Tiling<'_>,
    targets: &[Box<dyn ChunkWrite + '_>],
    sharer: &Sharer<'_>,
    advance: &(dyn Fn(u64) -> Result<()> + Sync),
) -> Result<bool> {
    let Some(pairs) = pairs(tiling, targets) else { return Ok(false) };
    pairs.iter().try_for_each(|pair| pair.fill(sharer, advance))?;
    Ok(true)
}

/// Pairs hypercubes of one shape. `None` if a shape is missing or not unique, element types differ,
/// chunks cannot be divided into tiles, or rows are not in the table's order.
pub(super) fn pairs<'a>(tiling: &'a Tiling<'_>, targets: &'a [Box<dyn ChunkWrite + '_>]) -> Option<Vec<Pair<'a>>> {
    let mut next = vec![0; tiling.cubes.len()];
    for run in &tiling.runs {
        let next = next.get_mut(run.cube).filter(|next| **next == run.position)?;
        *next += run.rows.end - run.rows.start;
    }
    let mut pairs = Vec::new();
    for (number, (cube, rows)) in tiling.cubes.iter().zip(next).enumerate() {
        let grid = cube.grid();
        if grid.shape.last() != Some(&rows) {
            return None;
        }
        let mut same = targets.iter().enumerate().filter(|(_, target)| target.grid().shape == grid.shape);
        let ((place, target), None) = (same.next()?, same.next()) else { return None };
        let others = tiling.cubes.iter().filter(|other| other.grid().shape == grid.shape).count();
        if others > 1 || target.data_type() != cube.data_type() {
            return None;
        }
        let joined = joined(&**cube, &**target)?;
        pairs.push(Pair { cube: number, target: place, from: &**cube, to: &**target, joined });
    }
    Some(pairs)
}

/// Tiles in a chunk; `None` if chunks cannot be divided into tiles.
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
    /// Shares the bytes if the file system can, otherwise copies them.
    pub(super) fn fill(&self, sharer: &Sharer<'_>, advance: &(dyn Fn(u64) -> Result<()> + Sync)) -> Result<()> {
        match self.share(sharer)? {
            Some(bytes) => advance(bytes),
            None => self.copy(advance),
        }
    }

    /// Bytes of all tiles, or `None` if sharing is not possible.
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
        let tiles = self.tiles()?;
        let batch = tiles.batch();
        let chunks = tiles.chunks();
        (0..chunks.div_ceil(batch)).into_par_iter().try_for_each_init(Vec::new, |bytes: &mut Vec<u8>, number| {
            let first = number * batch;
            tiles.read(first..chunks.min(first + batch), bytes)?;
            self.to.write_raw(first * self.joined, bytes)?;
            advance(bytes.len() as u64)
        })
    }

    fn tiles(&self) -> Result<ChunkTiles<'_>> {
        ChunkTiles::new(self.from, self.to.grid(), self.to.raw_order(), self.joined)
    }
}

pub(crate) struct ChunkTiles<'a> {
    from: &'a dyn ChunkRead,
    /// `None` for packed Bools.
    order: Option<ByteOrder>,
    joined: u64,
    tiles: u64,
    tile_len: u64,
    tile_bytes: u64,
    /// Decoded.
    chunk_bytes: u64,
}

impl<'a> ChunkTiles<'a> {
    /// Each chunk becomes `joined` tiles of `to`, the hypercube.
    pub(crate) fn new(from: &'a dyn ChunkRead, to: &Grid, order: Option<ByteOrder>, joined: u64) -> Result<Self> {
        let (size, tile_len) = (from.data_type().size() as u64, to.chunk.elements()?);
        Ok(ChunkTiles {
            from,
            order,
            joined: joined.max(1),
            tiles: to.counts().elements()?,
            tile_len,
            tile_bytes: stored_bytes(tile_len, size, order),
            chunk_bytes: from.grid().chunk.elements()?.saturating_mul(size),
        })
    }

    pub(crate) fn chunks(&self) -> u64 {
        self.tiles.div_ceil(self.joined)
    }

    pub(crate) fn tile_bytes(&self) -> u64 {
        self.tile_bytes
    }

    /// Many chunks for one [`read`](Self::read) if they consist of whole tiles, otherwise one.
    pub(crate) fn batch(&self) -> u64 {
        let size = self.from.data_type().size() as u64;
        let are_whole = self.chunk_bytes == self.joined * self.tile_len * size;
        if are_whole { (BATCH_BYTES / self.chunk_bytes.max(1)).max(1) } else { 1 }
    }

    pub(crate) fn read(&self, chunks: Range<u64>, bytes: &mut Vec<u8>) -> Result<()> {
        let tiles = self.tiles.min(chunks.end * self.joined).saturating_sub(chunks.start * self.joined);
        if let Some(order) = self.order {
            bytes.resize(((chunks.end - chunks.start) * self.chunk_bytes) as usize, 0);
            if read_chunks_in(order, self.from, chunks.start, bytes)? {
                // the rest of the last tile is beyond the rows, and zeros
                bytes.resize((tiles * self.tile_bytes) as usize, 0);
                return Ok(());
            }
        }
        let mut values = Values::new(self.from.data_type());
        read_chunks(self.from, chunks, &mut values)?;
        bytes.clear();
        store_tiles(values, tiles, self.tile_len, self.order, bytes)
    }
}

/// Bools are bits if `order` is `None`.
pub(crate) fn stored_bytes(elements: u64, size: u64, order: Option<ByteOrder>) -> u64 {
    match order {
        Some(_) => elements.saturating_mul(size),
        None => bits::packed_len(elements),
    }
}

/// Zeros fill the last tiles; Bools are bits if `order` is `None`.
pub(crate) fn store_tiles(
    mut values: Values,
    tiles: u64,
    len: u64,
    order: Option<ByteOrder>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let wanted = (tiles * len) as usize;
    values.extend_default(wanted.saturating_sub(values.len()));
    match (&values, order) {
        (Values::Bool(bools), None) => {
            bools[..wanted].chunks(len.max(1) as usize).for_each(|tile| bits::pack(tile, out));
        }
        (_, Some(order)) => {
            let start = out.len();
            values.extend_bytes(order, out);
            out.truncate(start + wanted * values.data_type().size());
        }
        (_, None) => return Err(Error::usage("only Bools are stored as bits")),
    }
    Ok(())
}
