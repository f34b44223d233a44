//! Makes the tiles of a casacore table from the chunks of a source, whole chunks at a time instead of cell by cell:
//! docs/layout.md, "Chunks and their index".

use std::ops::Range;

use rayon::prelude::*;

use crate::clone::{SharedOnly, Sharer};
use crate::error::{Error, Result};
use crate::grid::{ChunkRead, ChunkStorage, ChunkWrite, Grid, read_chunks, read_chunks_in};
use crate::io::{ByteOrder, Raw};
use crate::table::Tiling;
use crate::value::{Values, bits};

/// Approximate number of bytes of chunks that are copied to tiles at a time.
const BATCH_BYTES: u64 = 1 << 20;

/// A hypercube of the source and the hypercube of the new table that it becomes; the tiles of the table are the chunks of the source, or parts of
/// them.
pub(super) struct Pair<'a> {
    /// Which hypercube of the column in the source: an index among the column's hypercubes, from 0.
    pub(super) cube: usize,
    /// Which hypercube of the column in the new table: an index among the column's hypercubes, from 0.
    pub(super) target: usize,
    pub(super) from: &'a dyn ChunkRead,
    pub(super) to: &'a dyn ChunkWrite,
    /// Number of tiles of the table into which a chunk of the source is divided.
    pub(super) joined: u64,
}

/// Copies the chunks of all hypercubes of a column in the source to the tiles of the column in the new table. Returns false, with
/// nothing written, if the hypercubes of the source and of the table do not match in shape, element type and order of rows, or
/// chunks cannot be divided into tiles.
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

/// Pairs each hypercube of the source with the hypercube of the same shape in the new table. `None` if a shape is
/// missing or not unique, element types differ, chunks cannot be divided into the table's tiles, or a hypercube does
/// not store its rows in the table's order.
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

/// Number of the table's tiles that one chunk of the source becomes; `None` if chunks cannot be divided into tiles.
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
    /// Fills the table's tiles with the bytes of the source's chunks: lets both files share them (reflinks) if the file system can,
    /// otherwise copies them.
    pub(super) fn fill(&self, sharer: &Sharer<'_>, advance: &(dyn Fn(u64) -> Result<()> + Sync)) -> Result<()> {
        match self.share(sharer)? {
            Some(bytes) => advance(bytes),
            None => self.copy(advance),
        }
    }

    /// Lets the table's tiles share the bytes of the source's chunks on disk (reflinks). Returns the size of all tiles
    /// in bytes, or `None` if sharing is not possible.
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

    /// Returns a reader that gives the chunks of the source as tiles of the table.
    fn tiles(&self) -> Result<ChunkTiles<'_>> {
        ChunkTiles::new(self.from, self.to.grid(), self.to.raw_order(), self.joined)
    }
}

/// Reads chunks of one hypercube of the source, and converts them to the bytes that the new casacore table stores as
/// tiles.
pub(crate) struct ChunkTiles<'a> {
    from: &'a dyn ChunkRead,
    /// Byte order of the elements in a tile; `None` for packed Bools.
    order: Option<ByteOrder>,
    /// Number of tiles of the table into which a chunk of the source is divided.
    joined: u64,
    /// Number of tiles in the table's hypercube.
    tiles: u64,
    /// Number of elements of a tile.
    tile_len: u64,
    /// Size in bytes of a tile as it is stored.
    tile_bytes: u64,
    /// Size in bytes of a decoded chunk of the dataset from which tiles are made.
    chunk_bytes: u64,
}

impl<'a> ChunkTiles<'a> {
    /// Prepares to read the chunks of `from` as tiles of a hypercube. `to` has the shapes of the hypercube and of its
    /// tiles. Each chunk becomes `joined` tiles. `order` is the byte order of the elements in the tiles; `None` packs
    /// Bools as bits.
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

    /// Number of chunks of the source from which all tiles of the table's hypercube are made.
    pub(crate) fn chunks(&self) -> u64 {
        self.tiles.div_ceil(self.joined)
    }

    /// Size in bytes of a tile as it is stored.
    pub(crate) fn tile_bytes(&self) -> u64 {
        self.tile_bytes
    }

    /// Number of chunks that one call of [`read`](Self::read) should read: many if chunks consist of whole tiles, otherwise one.
    pub(crate) fn batch(&self) -> u64 {
        let size = self.from.data_type().size() as u64;
        let are_whole = self.chunk_bytes == self.joined * self.tile_len * size;
        if are_whole { (BATCH_BYTES / self.chunk_bytes.max(1)).max(1) } else { 1 }
    }

    /// Replaces `bytes` by tiles as the table's file stores them, made from the chunks with numbers in `chunks`
    /// (half-open, from 0), at most [`batch`](Self::batch) of them.
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

/// Size in bytes of `elements` elements of `size` bytes each in a tile of byte order `order`; with `None`, as bits (Bools).
pub(crate) fn stored_bytes(elements: u64, size: u64, order: Option<ByteOrder>) -> u64 {
    match order {
        Some(_) => elements.saturating_mul(size),
        None => bits::packed_len(elements),
    }
}

/// Appends `values` to `out` as `tiles` stored tiles of `len` elements each, in byte order `order`, or as bits (Bools)
/// if `order` is `None`. If `values` has too few elements, zeros fill the tiles.
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
