//! Compares the chunks that workers of a conversion by many processes have written with their
//! recorded hash.

use std::path::PathBuf;

use super::document::{Dataset, Place, ShardItem, ShardPlan, ShardResult};
use super::tile_file::TileFile;
use super::work::StoredChunks;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5;
use crate::hash::{HashKind, Hasher};
use crate::io::{FileSource, ReadAt};
use crate::native::open_dataset;
use crate::progress::Progress;

const STEP_BYTES: u64 = 1 << 20;

/// Reads back the bytes that the workers of a conversion by many processes have written, before or
/// after commit, and compares them with the numbers of bytes and the hashes that the workers
/// recorded. Threads can share a `RangeCheck`.
pub struct RangeCheck<'a> {
    plan: &'a ShardPlan,
    path: PathBuf,
    /// `None` if the conversion makes a table.
    file: Option<FileSource>,
    /// Chunks of each dataset of the plan, by number; empty before commit.
    inserted: Vec<Vec<Inserted>>,
}

struct Inserted {
    /// Number in its dataset, fastest axis first.
    number: u64,
    address: u64,
    bytes: u64,
}

impl<'a> RangeCheck<'a> {
    /// Opens the HDF5 file or table that workers have written, before or after commit, to compare
    /// bytes of it with the hashes that the workers recorded.
    ///
    /// # Errors
    /// `NotFound`, `Format`, `Io`.
    pub fn open(plan: &'a ShardPlan) -> Result<Self> {
        let path = plan.file();
        let open = || -> Result<_> {
            if plan.makes_table() {
                return Ok((None, Vec::new()));
            }
            let inserted = if plan.is_committed() { inserted(plan)? } else { Vec::new() };
            Ok((Some(FileSource::open(&path)?), inserted))
        };
        let (file, inserted) = open().with_context(|| Context::path(&path))?;
        Ok(RangeCheck { plan, path, file, inserted })
    }

    /// Reads the bytes that a worker has written for `item` (a range of chunks) and compares their
    /// number and hash with `expected`. Returns the difference as a sentence, or `None` if they are
    /// equal.
    ///
    /// # Errors
    /// `Io`, `Interrupted`.
    pub fn check(&self, item: &ShardItem, expected: &ShardResult, progress: &dyn Progress) -> Result<Option<String>> {
        let (dataset, kind) = (self.plan.dataset(item), expected.hash.kind());
        let found = match dataset.place() {
            Place::Block(address) => self.block(item, dataset, address, expected, progress),
            Place::Tiles(tiles) => self.tiles(item, dataset, tiles, expected, progress),
            Place::Chunks if self.plan.is_committed() => self.chunks(item, kind, progress),
            Place::Chunks => self.chunk_file(item, kind, progress),
        };
        match found {
            Ok(found) => Ok(expected.difference(&found)),
            Err(error) if error.kind() == crate::error::ErrorKind::Format => Ok(Some(error.to_string())),
            Err(error) => Err(error.context(Context::path(&self.path))),
        }
    }

    fn block(
        &self,
        item: &ShardItem,
        dataset: &Dataset,
        address: u64,
        expected: &ShardResult,
        progress: &dyn Progress,
    ) -> Result<ShardResult> {
        let chunk_bytes = dataset.chunk_bytes()?;
        let start = address + item.first * chunk_bytes;
        // the last chunk of a block may be shorter
        let len = expected.file_bytes.min((item.last - item.first) * chunk_bytes);
        let mut hasher = Hasher::new(expected.hash.kind());
        hash(self.file()?, start, len, &mut hasher, progress)?;
        Ok(ShardResult::new(len, &hasher))
    }

    fn tiles(
        &self,
        item: &ShardItem,
        dataset: &Dataset,
        tiles: &TileFile,
        expected: &ShardResult,
        progress: &dyn Progress,
    ) -> Result<ShardResult> {
        let path = self.path.join(&tiles.path);
        let read = || -> Result<ShardResult> {
            let file = FileSource::open(&path)?;
            let chunk_bytes = dataset.chunk_bytes()?;
            // the last chunk may have fewer tiles
            let len = expected.file_bytes.min((item.last - item.first) * chunk_bytes);
            let mut hasher = Hasher::new(expected.hash.kind());
            for (start, len) in tiles.parts(item.first * chunk_bytes, len) {
                hash(&file, start, len, &mut hasher, progress)?;
            }
            Ok(ShardResult::new(len, &hasher))
        };
        read().with_context(|| Context::path(&path))
    }

    fn file(&self) -> Result<&FileSource> {
        self.file.as_ref().ok_or_else(|| Error::usage("an item of the plan is not part of its target"))
    }

    /// Each chunk is preceded by its length, so that the hash equals the worker's.
    fn chunks(&self, item: &ShardItem, kind: HashKind, progress: &dyn Progress) -> Result<ShardResult> {
        let (mut hasher, mut len) = (Hasher::new(kind), 0);
        let inserted = &self.inserted[item.dataset];
        for number in item.first..item.last {
            let found = inserted.binary_search_by_key(&number, |chunk| chunk.number);
            let chunk = found.map_err(|_| Error::format(format!("chunk {number} is missing")))?;
            let Inserted { address, bytes, .. } = inserted[chunk];
            hasher.update(&bytes.to_le_bytes());
            hash(self.file()?, address, bytes, &mut hasher, progress)?;
            len += 8 + bytes;
        }
        Ok(ShardResult::new(len, &hasher))
    }

    /// Fails if the worker's file has fewer or more chunks than the item.
    fn chunk_file(&self, item: &ShardItem, kind: HashKind, progress: &dyn Progress) -> Result<ShardResult> {
        let read = || -> Result<ShardResult> {
            let mut chunks = StoredChunks::open(&self.plan.chunk_file(item))?;
            let (mut hasher, mut len, mut bytes) = (Hasher::new(kind), chunks.left(), Vec::new());
            for _ in item.first..item.last {
                progress.go_on()?;
                chunks.next(&mut bytes)?;
                hasher.update(&(bytes.len() as u64).to_le_bytes());
                hasher.update(&bytes);
            }
            len -= chunks.left();
            chunks.end()?;
            Ok(ShardResult::new(len, &hasher))
        };
        read().with_context(|| Context::path(self.plan.chunk_file(item)))
    }
}

fn hash(file: &FileSource, mut start: u64, len: u64, hasher: &mut Hasher, progress: &dyn Progress) -> Result<()> {
    let end = start.saturating_add(len);
    let mut buffer = vec![0; len.min(STEP_BYTES) as usize];
    while start < end {
        progress.go_on()?;
        let bytes = &mut buffer[..(end - start).min(STEP_BYTES) as usize];
        file.read_at(start, bytes)?;
        hasher.update(bytes);
        start += bytes.len() as u64;
        progress.advance(bytes.len() as u64, "", "");
    }
    Ok(())
}

/// Chunks in the published file by dataset; empty for contiguous ones.
fn inserted(plan: &ShardPlan) -> Result<Vec<Vec<Inserted>>> {
    let file = h5::File::open(plan.target())?;
    let root = file.root()?;
    let chunks = |dataset: &Dataset| -> Result<Vec<Inserted>> {
        let mut found = Vec::new();
        if dataset.address.is_none() {
            let grid = dataset.grid();
            open_dataset(&root, &dataset.path)?.each_chunk(|chunk| {
                let (number, address, bytes) = (grid.number(&chunk.index), chunk.address, chunk.stored_bytes);
                found.push(Inserted { number, address, bytes });
            })?;
            found.sort_by_key(|chunk| chunk.number);
        }
        Ok(found)
    };
    plan.datasets.iter().map(chunks).collect()
}
