//! Datasets whose chunks are one contiguous block, made of a table's tiles: they share the bytes of
//! the table's file (reflink), or the tiles are copied.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::layout_choice::{ColumnForm, grid};
use super::plan::{ColumnPlan, Plan, TablePlan};
use crate::error::{Error, Result, ResultExt, column_context as place};
use crate::grid::{ChunkRead, ChunkStorage, Grid, read_chunks, read_chunks_in};
use crate::h5::{ALIGNED_BYTES, Allocation};
use crate::io::{ByteOrder, FileTarget, Raw, ReadAt, WriteAt};
use crate::native::MAX_CUBES;
use crate::output::clone::{NotShared, Reflink, Sharer, cannot_share, probe};
use crate::progress::Progress;
use crate::source::{Content, Source};
use crate::value::Values;

/// Approximate bytes copied at a time.
const BATCH_BYTES: u64 = 1 << 20;

/// How much of a converted HDF5 file shares its bytes with the source (reflinks).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sharing {
    /// Number of bytes of the HDF5 file that it shares with the source: they take no space of their
    /// own.
    pub shared_bytes: u64,
    /// How many bytes each column shares with the source by reflinks, in the order of the HDF5
    /// file.
    pub columns: Vec<ColumnSharing>,
}

/// How much of a column in the HDF5 file shares its bytes with the source (reflinks).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnSharing {
    /// Path of the group of the column's table in the HDF5 file, such as `/MAIN`.
    pub group: String,
    /// Name of the column's dataset or group in the group of its table.
    pub link: String,
    /// Number of bytes of all elements of the column, uncompressed.
    pub bytes: u64,
    /// Number of bytes of the column that the HDF5 file shares with the source (reflinks).
    pub shared_bytes: u64,
    /// The first reason why bytes of the column are copied instead of shared with the source
    /// (reflinks). `None` if at most the ends of its datasets are copied, where they do not fill a
    /// block of the file system.
    pub not_shared: Option<NotShared>,
}

impl ColumnSharing {
    /// Path of the column in the HDF5 file, without the slash at its beginning: `MAIN/DATA`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.group.trim_start_matches('/'), self.link)
    }
}

/// `table`, `column` and `dataset` index `Plan::tables`, `TablePlan::columns` and
/// `Writer::datasets`; `address` is a byte of the HDF5 file.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) table: usize,
    pub(super) column: usize,
    pub(super) cube: usize,
    pub(super) dataset: usize,
    pub(super) grid: Grid,
    pub(super) address: u64,
}

/// The tiles of a hypercube, and the chunks that they become; sizes are of uncompressed bytes.
pub(crate) struct Tiles<'a> {
    cube: &'a dyn ChunkRead,
    tile_bytes: u64,
    tiles: u64,
    /// Consecutive tiles in one chunk.
    joined: u64,
    chunk_bytes: u64,
    chunks: u64,
}

impl<'a> Tiles<'a> {
    pub(crate) fn new(cube: &'a dyn ChunkRead, grid: &Grid) -> Result<Self> {
        let own = cube.grid();
        let (Some(&tile_rows), Some(&chunk_rows)) = (own.chunk.last(), grid.chunk.last()) else {
            return Err(Error::format("the hypercube has no axes"));
        };
        let size = cube.data_type().size() as u64;
        Ok(Tiles {
            cube,
            tile_bytes: own.chunk.elements()? * size,
            tiles: own.counts().elements()?,
            joined: chunk_rows.div_ceil(tile_rows.max(1)).max(1),
            chunk_bytes: grid.chunk.elements()? * size,
            chunks: grid.counts().elements()?,
        })
    }

    fn are_whole(&self) -> bool {
        self.chunk_bytes == self.joined * self.tile_bytes
    }

    fn block_bytes(&self) -> u64 {
        self.chunks * self.chunk_bytes
    }

    /// Source file, offset and length of tiles that equal the dataset's bytes, padding aside.
    fn range(&self) -> std::result::Result<(&'a dyn ReadAt, u64, u64), NotShared> {
        let (file, offset) = match self.cube.storage() {
            ChunkStorage::Block { order: ByteOrder::Big, .. } => return Err(NotShared::ByteOrder),
            ChunkStorage::Block { file, offset, order: ByteOrder::Little } => (file, offset),
            ChunkStorage::Scattered => return Err(NotShared::SeveralColumns),
            ChunkStorage::Bits => return Err(NotShared::Bits),
            ChunkStorage::Encoded => return Err(NotShared::Container),
        };
        if !self.are_whole() && self.chunks > 1 {
            return Err(NotShared::TileShape);
        }
        if self.block_bytes() < ALIGNED_BYTES {
            return Err(NotShared::Small);
        }
        Ok((file, offset, self.block_bytes().min(self.tiles * self.tile_bytes)))
    }

    fn share(&self, to: &File, address: u64, sharer: &Sharer<'_>) -> Result<std::result::Result<u64, NotShared>> {
        let (file, offset, bytes) = match self.range() {
            Ok(range) => range,
            Err(reason) => return Ok(Err(reason)),
        };
        let (mut at, mut shared) = (0, 0);
        while at < bytes {
            // a file in a container may be in several parts
            let Some(raw) = file.raw(offset + at) else { return Ok(Err(NotShared::Container)) };
            let part = Raw { len: raw.len.min(bytes - at), ..raw };
            match sharer.share(part, to, address + at)? {
                Ok(bytes) => shared += bytes,
                Err(reason) => return Ok(Err(reason)),
            }
            at += part.len;
        }
        Ok(Ok(shared))
    }

    /// Chunks for one call of [`read`](Self::read).
    pub(crate) fn batch(&self) -> u64 {
        if self.are_whole() { (BATCH_BYTES / self.chunk_bytes.max(1)).max(1) } else { 1 }
    }

    /// At most [`batch`](Self::batch) chunks, without padding after the last tile.
    pub(crate) fn read(&self, chunks: Range<u64>, bytes: &mut Vec<u8>) -> Result<()> {
        let tiles = chunks.start * self.joined..(chunks.end * self.joined).min(self.tiles);
        bytes.resize((tiles.end.saturating_sub(tiles.start) * self.tile_bytes) as usize, 0);
        if !read_chunks_in(ByteOrder::Little, self.cube, tiles.start, bytes)? {
            let mut values = Values::new(self.cube.data_type());
            read_chunks(self.cube, tiles, &mut values)?;
            bytes.copy_from_slice(&values.le_bytes().expect("tiles hold elements of fixed size"));
        }
        if !self.are_whole() {
            bytes.truncate(self.chunk_bytes as usize);
        }
        Ok(())
    }

    /// Copies in parts; `advance` gets the bytes of each, and stops copying if it fails.
    fn copy(&self, to: &FileTarget, address: u64, advance: &(dyn Fn(u64) -> Result<()> + Sync)) -> Result<()> {
        let batch = self.batch();
        (0..self.chunks.div_ceil(batch)).into_par_iter().try_for_each_init(Vec::new, |bytes: &mut Vec<u8>, number| {
            let first = number * batch;
            self.read(first..(first + batch).min(self.chunks), bytes)?;
            to.write_at(address + first * self.chunk_bytes, bytes)?;
            advance(bytes.len() as u64)
        })
    }
}

pub(super) struct BlockWriter<'a> {
    pub(super) source: &'a Source,
    pub(super) plan: &'a Plan,
    pub(super) reflink: Reflink,
    pub(super) file: FileTarget,
    pub(super) progress: &'a dyn Progress,
}

impl BlockWriter<'_> {
    /// Returns the shared bytes, and why none are; `Unsupported` if it must share and cannot.
    pub(super) fn fill(&self, block: &Block) -> Result<(u64, Option<NotShared>)> {
        let table = &self.plan.tables[block.table];
        let column = &table.columns[block.column];
        self.fill_column(block, table, column).with_context(|| place(&table.name, &column.name))
    }

    fn fill_column(&self, block: &Block, table: &TablePlan, column: &ColumnPlan) -> Result<(u64, Option<NotShared>)> {
        let content = self.source.tables[table.source].content()?;
        let cells = content.cells(column.index)?;
        let tiling = cells.tiling(MAX_CUBES);
        let cube = tiling.as_ref().and_then(|tiling| tiling.cubes.get(block.cube));
        let cube = cube.ok_or_else(|| Error::format("the hypercubes have changed since the plan was made"))?;
        let tiles = Tiles::new(&**cube, &block.grid)?;
        let advance = |bytes| {
            self.progress.advance(bytes, &table.name, &column.name);
            self.progress.go_on()
        };
        let sharer = Sharer::new(self.reflink, self.progress);
        match tiles.share(self.file.file(), block.address, &sharer)? {
            Ok(shared) => {
                advance(tiles.tiles * tiles.tile_bytes)?;
                Ok((shared, None))
            }
            Err(reason) if self.reflink == Reflink::Always && reason != NotShared::Small => {
                Err(cannot_share("the column", reason))
            }
            Err(reason) => {
                tiles.copy(&self.file, block.address, &advance)?;
                Ok((0, Some(reason)))
            }
        }
    }
}

impl Sharing {
    /// Estimates the bytes that a file in `directory` will share, by sharing some tiles of each
    /// hypercube with a temporary file there; `Unsupported` if they must be shared and cannot be.
    pub(crate) fn expect(source: &Source, plan: &Plan, reflink: Reflink, directory: &Path) -> Result<Self> {
        let mut sharing = Sharing::of_columns(source, plan)?;
        if !directory.is_dir() {
            // the output says so
            return Ok(sharing);
        }
        let columns = plan.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
        for ((table, column), entry) in columns.zip(&mut sharing.columns) {
            if column.allocation == Allocation::Block && entry.not_shared.is_none() {
                let content = source.tables[table.source].content()?;
                (entry.shared_bytes, entry.not_shared) = expect_column(content, column, reflink, directory)?;
                sharing.shared_bytes += entry.shared_bytes;
            }
        }
        if reflink == Reflink::Always {
            sharing.check_all_shared(plan)?;
        }
        Ok(sharing)
    }

    /// Nothing is shared so far; `not_shared` tells why tiles cannot be contiguous blocks.
    pub(super) fn of_columns(source: &Source, plan: &Plan) -> Result<Self> {
        let mut columns = Vec::new();
        for table in &plan.tables {
            let content = source.tables[table.source].content()?;
            for column in &table.columns {
                let not_shared = match column.allocation {
                    Allocation::Block => None,
                    Allocation::Chunks => Some(why_no_block(content, table, column)?),
                };
                let (group, link, bytes) = (table.group.clone(), column.link.clone(), column.bytes);
                columns.push(ColumnSharing { group, link, bytes, shared_bytes: 0, not_shared });
            }
        }
        Ok(Sharing { shared_bytes: 0, columns })
    }

    /// Keeps the first `reason` of the column.
    pub(super) fn add(&mut self, plan: &Plan, block: &Block, shared: u64, reason: Option<NotShared>) {
        let before: usize = plan.tables[..block.table].iter().map(|table| table.columns.len()).sum();
        let entry = &mut self.columns[before + block.column];
        entry.shared_bytes += shared;
        entry.not_shared = entry.not_shared.or(reason);
        self.shared_bytes += shared;
    }

    fn check_all_shared(&self, plan: &Plan) -> Result<()> {
        let allocations = plan.columns().map(|column| column.allocation);
        let blocks = self.columns.iter().zip(allocations).filter(|(_, allocation)| *allocation == Allocation::Block);
        let refuse = |column: &ColumnSharing, reason| {
            cannot_share(&format!("{}/{}", column.group.trim_start_matches('/'), column.link), reason)
        };
        for (column, _) in blocks {
            if let Some(reason) = column.not_shared.filter(|reason| *reason != NotShared::Small) {
                return Err(refuse(column, reason));
            }
        }
        if self.shared_bytes > 0 {
            return Ok(());
        }
        let largest = self.columns.iter().max_by_key(|column| column.bytes);
        Err(match largest.and_then(|column| Some((column, column.not_shared?))) {
            Some((column, reason)) => refuse(column, reason),
            None => Error::unsupported("no column can share its bytes with the source"),
        })
    }
}

/// Bytes that would be shared in `directory`, and the first reason why some would not.
fn expect_column(
    content: &Content,
    column: &ColumnPlan,
    reflink: Reflink,
    directory: &Path,
) -> Result<(u64, Option<NotShared>)> {
    let cells = content.cells(column.index)?;
    let Some(tiling) = cells.tiling(MAX_CUBES) else { return Ok((0, Some(NotShared::NotTiled))) };
    let (mut shared, mut first) = (0, None);
    for (cube, grid) in tiling.cubes.iter().zip(column.form.grids()) {
        if grid.shape.contains(&0) {
            continue;
        }
        match Tiles::new(&**cube, &grid)?.range().and_then(|range| try_range(range, reflink, directory)) {
            Ok(bytes) => shared += bytes,
            Err(reason) => first = first.or(Some(reason)),
        }
    }
    Ok((shared, first))
}

fn try_range(
    (file, offset, bytes): (&dyn ReadAt, u64, u64),
    reflink: Reflink,
    directory: &Path,
) -> std::result::Result<u64, NotShared> {
    if reflink == Reflink::Never {
        return Err(NotShared::Unwanted);
    }
    let raw = file.raw(offset).ok_or(NotShared::Container)?;
    let raw = Raw { len: raw.len.min(bytes), ..raw };
    // the write itself tries what a trial may not open
    let permission = |_| NotShared::Permission;
    if !raw.offset.is_multiple_of(4096) {
        return Err(NotShared::Misaligned);
    }
    probe(raw, directory).map_err(permission)?.map(|()| bytes / 4096 * 4096)
}

fn why_no_block(content: &Content, table: &TablePlan, column: &ColumnPlan) -> Result<NotShared> {
    let cells = content.cells(column.index)?;
    let tiling = if column.data_type.is_fixed_size() { cells.tiling(MAX_CUBES) } else { None };
    let Some(tiling) = tiling.filter(|tiling| !tiling.cubes.is_empty()) else { return Ok(NotShared::NotTiled) };
    let storages: Vec<_> = tiling.cubes.iter().map(|cube| cube.storage()).collect();
    Ok(if storages.iter().any(|storage| matches!(storage, ChunkStorage::Bits)) {
        NotShared::Bits
    } else if table.rows != (0..content.rows()) {
        NotShared::SomeRows
    } else if !storages.iter().all(ChunkStorage::is_plain) {
        NotShared::Container
    } else {
        NotShared::TileShape
    })
}

impl ColumnForm {
    /// Shapes, fastest axis first, of the datasets with elements; empty for a ragged column.
    fn grids(&self) -> Vec<Grid> {
        match self {
            ColumnForm::Dense { shape, chunk, .. } => vec![grid(shape, chunk)],
            ColumnForm::Cubes { cubes } => cubes.iter().map(|(shape, chunk)| grid(shape, chunk)).collect(),
            ColumnForm::Grids { .. } | ColumnForm::Ragged { .. } => Vec::new(),
        }
    }
}
