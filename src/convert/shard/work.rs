//! Workers of a conversion by many processes: they write the items of a plan, each a range of
//! chunks or tiles.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::NamedTempFile;

use super::chunks::Chunks;
use super::document::{CHUNKS, Dataset, Place, ShardItem, ShardPlan, ShardResult};
use super::structure::sync_directory;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt, column_context};
use crate::h5::FilterScratch;
use crate::hash::{HashKind, Hasher};
use crate::io::{FileTarget, WriteAt};
use crate::os::write_back;
use crate::progress::Progress;
use crate::source::{Content, Source};
use crate::sync::LockUnpoisoned;
use crate::table::{ColumnCells, OpenOptions};

/// Open columns of an HDF5 source: opening one requires reading where its chunks are.
const KEPT_COLUMNS: usize = 4;

/// A worker of a conversion by many processes: writes items (ranges of chunks) of a plan, from any
/// thread. It keeps the source open, and locked if it is a table directory.
///
/// ```
/// use ctds_hdf5::convert::{CommitShards, Compare, Compress, DigestPolicy, ShardPlan, ShardWorker, ToHdf5};
/// # use ctds_hdf5::{ColumnDesc, ManagerSpec, NewTable, OpenOptions, value::Shape};
/// # let folder = tempfile::tempdir()?;
/// # let (my_ms, my_h5) = (folder.path().join("my.ms"), folder.path().join("my.h5"));
/// # let mut table = NewTable::new()
/// #     .column(ColumnDesc::array::<f32>("DATA").fixed_shape(Shape::from([4])))
/// #     .bind(ManagerSpec::tiled_column("tiles", &Shape::from([4, 8])), ["DATA"])
/// #     .create(&my_ms)?;
/// # table.add_rows(20)?;
/// # table.close()?;
///
/// ToHdf5::new(&my_ms).compression(Compress::Shared).plan()?.shard(&my_h5, 64)?;
/// let plan = ShardPlan::open(&my_h5)?;
/// let worker = ShardWorker::open(&plan, OpenOptions::default())?;
/// let mut results = Vec::new();
/// for item in plan.items() {
///     results.push((item.id.clone(), worker.write(item, &())?));
/// }
/// CommitShards::new(&plan, results).write()?;
/// assert!(Compare::new(&my_ms, &my_h5).run()?.differences.is_empty());
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
pub struct ShardWorker<'a> {
    plan: &'a ShardPlan,
    source: Source,
    target: Target,
    /// Open columns with their dataset's index in the plan, least recently used first.
    kept: Mutex<Vec<(usize, Arc<dyn ColumnCells>)>>,
    /// Set by a failed sync of the HDF5 file: lost bytes are unknown, so that later items fail.
    is_lost: AtomicBool,
}

enum Target {
    /// Only digests are computed.
    None,
    File(FileTarget),
    Table(PathBuf),
}

/// An item (a range of chunks or tiles) that is written, but may not be on the disk yet:
/// [`ShardWorker::sync`] makes it durable. If this value is dropped before that, the item does not
/// count as done.
#[derive(Debug)]
#[must_use = "only `ShardWorker::sync` gives the result"]
pub struct UnsyncedItem {
    result: ShardResult,
    written: Written,
}

#[derive(Debug)]
enum Written {
    Block,
    /// A temporary file, renamed to the path when it is durable.
    Chunks(NamedTempFile, PathBuf),
    /// Opened for each item: the system reports a lost write once to each descriptor.
    Tiles(FileTarget, PathBuf),
}

impl<'a> ShardWorker<'a> {
    /// Opens the source of a plan, and the HDF5 file or table that the plan makes, to write items.
    ///
    /// # Errors
    /// `Format` if the source changed since the plan was made, `Exists` if the file is published;
    /// those of [`Source::open_with`].
    pub fn open(plan: &'a ShardPlan, options: OpenOptions) -> Result<Self> {
        plan.check_not_committed()?;
        let path = plan.unpublished();
        let target = match plan.makes_table() {
            true => Target::Table(path),
            false => Target::File(FileTarget::open(&path).with_context(|| Context::path(&path))?),
        };
        Ok(ShardWorker { target, ..Self::for_digests(plan, options)? })
    }

    /// Opens only the source of a plan, to compute [`digest`](Self::digest)s of items without
    /// writing them.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn for_digests(plan: &'a ShardPlan, options: OpenOptions) -> Result<Self> {
        plan.header.check_source()?;
        let source = Source::open_with(plan.source(), options)?;
        // a writer may have held the lock until now
        plan.header.check_source()?;
        let (target, kept) = (Target::None, Mutex::default());
        Ok(ShardWorker { plan, source, target, kept, is_lost: AtomicBool::new(false) })
    }

    /// Writes an item and makes it durable. If the same item is written repeatedly, or twice at the
    /// same time, the bytes are the same.
    ///
    /// # Errors
    /// `Format` if the source changed; `NoSpace`; `Interrupted`; those of reading the source.
    pub fn write(&self, item: &ShardItem, progress: &dyn Progress) -> Result<ShardResult> {
        let written = self.write_unsynced(item, progress)?;
        self.sync([written]).pop().unwrap_or_else(|| Err(Error::usage("the item was not made durable")))
    }

    /// Writes an item without waiting for the disk. [`sync`](Self::sync) waits for it, so that the
    /// next item can be read while the system writes this one to the disk.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_unsynced(&self, item: &ShardItem, progress: &dyn Progress) -> Result<UnsyncedItem> {
        let written = match (self.plan.dataset(item).place(), &self.target) {
            (Place::Block(address), Target::File(file)) => {
                let result = self.produce(item, HashKind::default(), progress, &mut |at, bytes| {
                    file.write_at(address + at, bytes)
                })?;
                UnsyncedItem { result, written: Written::Block }
            }
            (Place::Tiles(tiles), Target::Table(directory)) => {
                let path = directory.join(&tiles.path);
                let file = FileTarget::open(&path).with_context(|| Context::path(&path))?;
                let result = self.produce(item, HashKind::default(), progress, &mut |at, mut bytes| {
                    for (offset, len) in tiles.parts(at, bytes.len() as u64) {
                        let (part, rest) = bytes.split_at(len as usize);
                        file.write_at(offset, part)?;
                        bytes = rest;
                    }
                    Ok(())
                })?;
                UnsyncedItem { result, written: Written::Tiles(file, path) }
            }
            (Place::Chunks, Target::File(_)) => self.write_chunk_file(item, progress)?,
            (_, Target::None) => return Err(for_digests()),
            (Place::Block(_) | Place::Chunks, Target::Table(_)) | (Place::Tiles(_), Target::File(_)) => {
                return Err(Error::format("an item of the plan is not part of its target"));
            }
        };
        self.plan.header.check_source()?;
        Ok(written)
    }

    /// Makes the given items durable and returns their results in the same order. Once this has
    /// failed for the HDF5 file, all later items in that file fail as well: the lost bytes may be
    /// those of any item.
    ///
    /// # Errors
    /// Each result may be `Io` or `NoSpace`.
    pub fn sync(&self, items: impl IntoIterator<Item = UnsyncedItem>) -> Vec<Result<ShardResult>> {
        let items: Vec<_> = items.into_iter().collect();
        let has_blocks = items.iter().any(|item| matches!(item.written, Written::Block));
        let has_files = items.iter().any(|item| matches!(item.written, Written::Chunks(..)));
        let blocks = if has_blocks { self.sync_blocks() } else { Ok(()) };
        let synced = items.into_iter().map(|item| match item.written {
            Written::Chunks(file, path) => (true, name_chunk_file(file, &path).map(|()| item.result)),
            Written::Block => (false, blocks.clone().map(|()| item.result)),
            Written::Tiles(file, path) => {
                let synced = file.file().sync_data().map_err(Error::from).with_context(|| Context::path(&path));
                (false, synced.map(|()| item.result))
            }
        });
        let synced: Vec<_> = synced.collect();
        let directory = self.plan.directory().join(CHUNKS);
        let names = if has_files { sync_directory(&directory).map_err(Error::from) } else { Ok(()) };
        let names = names.with_context(|| Context::path(&directory));
        let named = |(is_packed, result): (bool, Result<ShardResult>)| {
            result.and_then(|result| if is_packed { names.clone().map(|()| result) } else { Ok(result) })
        };
        synced.into_iter().map(named).collect()
    }

    fn sync_blocks(&self) -> Result<()> {
        let Target::File(file) = &self.target else { return Err(for_digests()) };
        let sync = || -> Result<()> {
            if self.is_lost.load(Ordering::SeqCst) {
                let message =
                    "the system could not write bytes of this process to the disk: run `h5bridge shard work` again";
                return Err(Error::new(ErrorKind::Io, message));
            }
            Ok(file.file().sync_data().inspect_err(|_| self.is_lost.store(true, Ordering::SeqCst))?)
        };
        sync().with_context(|| Context::path(self.plan.file()))
    }

    /// Computes number and hash, of the kind `kind`, of the bytes of an item from the source,
    /// without writing anything.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn digest(&self, item: &ShardItem, kind: HashKind, progress: &dyn Progress) -> Result<ShardResult> {
        let result = self.produce(item, kind, progress, &mut |_, _| Ok(()))?;
        self.plan.header.check_source()?;
        Ok(result)
    }

    /// The file has a temporary name; [`sync`](Self::sync) renames it.
    fn write_chunk_file(&self, item: &ShardItem, progress: &dyn Progress) -> Result<UnsyncedItem> {
        let path = self.plan.chunk_file(item);
        let directory = path.parent().unwrap_or(Path::new("."));
        let place = || Context::path(&path);
        let mut builder = tempfile::Builder::new();
        // the umask decides who may read it: another user may commit
        builder.permissions(PermissionsExt::from_mode(0o666));
        let partial = builder.prefix(&item.id).suffix(".partial").tempfile_in(directory);
        let mut partial = partial.with_context(place)?;
        let result = {
            let mut out = std::io::BufWriter::with_capacity(1 << 18, partial.as_file_mut());
            let result =
                self.produce(item, HashKind::default(), progress, &mut |_, bytes| Ok(out.write_all(bytes)?))?;
            out.flush().with_context(place)?;
            result
        };
        write_back(partial.as_file(), 0..result.file_bytes);
        Ok(UnsyncedItem { result, written: Written::Chunks(partial, path) })
    }

    /// Calls `write` in order, with offsets in the dataset or among all tiles of the hypercube.
    fn produce(
        &self,
        item: &ShardItem,
        kind: HashKind,
        progress: &dyn Progress,
        write: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<ShardResult> {
        let dataset = self.plan.dataset(item);
        let mut produce = || {
            let content = self.content(dataset)?;
            let kept = self.kept_cells(item.dataset, content, dataset)?;
            let opened = if kept.is_none() { Some(content.cells(dataset.column_number)?) } else { None };
            let cells = kept.as_deref().or(opened.as_deref());
            let chunks = Chunks::new(dataset, content, cells.ok_or_else(changed_source)?)?;
            self.write_chunks(item, &chunks, kind, progress, write)
        };
        produce().with_context(|| column_context(&dataset.table, &dataset.column))
    }

    fn write_chunks(
        &self,
        item: &ShardItem,
        chunks: &Chunks<'_>,
        kind: HashKind,
        progress: &dyn Progress,
        write: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<ShardResult> {
        let dataset = chunks.dataset;
        let (mut hasher, mut file_bytes) = (Hasher::new(kind), 0);
        let (mut bytes, mut packed, mut scratch) = (Vec::new(), Vec::new(), FilterScratch::default());
        let compression = dataset.compression()?;
        let pipeline = (!compression.is_none()).then(|| compression.pipeline(dataset.element_bytes() as usize));
        let is_packed = matches!(dataset.place(), Place::Chunks);
        let batch = chunks.batch()?;
        let mut first = item.first;
        while first < item.last {
            progress.go_on()?;
            let last = item.last.min(first + batch);
            chunks.read(first..last, &mut bytes)?;
            let mut add = |piece: &[u8]| {
                hasher.update(piece);
                write(first * chunks.chunk_bytes, piece)?;
                file_bytes += piece.len() as u64;
                Ok::<_, Error>(())
            };
            if !is_packed {
                add(&bytes)?;
            } else {
                bytes.resize(chunks.chunk_bytes as usize, 0);
                let stored = match &pipeline {
                    Some(pipeline) => {
                        pipeline.encode(&mut scratch, &bytes, &mut packed)?;
                        &packed
                    }
                    None => &bytes,
                };
                add(&(stored.len() as u64).to_le_bytes())?;
                add(stored)?;
            }
            progress.advance((last - first) * chunks.chunk_bytes, &dataset.table, &dataset.column);
            first = last;
        }
        Ok(ShardResult::new(file_bytes, &hasher))
    }

    /// `None` if the source is not HDF5.
    fn kept_cells(&self, number: usize, content: &Content, dataset: &Dataset) -> Result<Option<Arc<dyn ColumnCells>>> {
        let mut kept = self.kept.lock_unpoisoned();
        if let Some(found) = kept.iter().position(|(known, _)| *known == number) {
            kept[found..].rotate_left(1);
        } else {
            let Some(cells) = content.owned_cells(dataset.column_number)? else { return Ok(None) };
            if kept.len() == KEPT_COLUMNS {
                kept.remove(0);
            }
            kept.push((number, Arc::from(cells)));
        }
        Ok(kept.last().map(|(_, cells)| cells.clone()))
    }

    /// Fails if the column is not as planned.
    fn content(&self, dataset: &Dataset) -> Result<&Content> {
        let table = self.source.tables.get(dataset.table_number).filter(|table| table.name == dataset.table);
        let content = table.ok_or_else(changed_source)?.content()?;
        let column = content.columns().get(dataset.column_number);
        let same = |size: usize| size as u64 == dataset.element_bytes();
        match column {
            Some(info) if info.desc.name == dataset.column.as_str() && same(info.data_type().size()) => Ok(content),
            _ => Err(changed_source()),
        }
    }
}

fn changed_source() -> Error {
    Error::format("the source lacks this column of the plan: make a new plan")
}

fn for_digests() -> Error {
    Error::usage("the worker was opened for digests")
}

/// Makes the file durable; the new name itself is not durable yet.
fn name_chunk_file(file: NamedTempFile, path: &Path) -> Result<()> {
    let name = || -> Result<()> {
        file.as_file().sync_all()?;
        Ok(file.persist(path).map(drop).map_err(|error| error.error)?)
    };
    name().with_context(|| Context::path(path))
}

/// A file of chunks: each as stored in HDF5, preceded by its length.
pub(super) struct StoredChunks<R> {
    reader: R,
    left: u64,
}

impl StoredChunks<std::io::BufReader<File>> {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = fs::File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::new(ErrorKind::Format, "the file of chunks is missing"),
            _ => error.into(),
        })?;
        let left = file.metadata()?.len();
        Ok(StoredChunks { reader: std::io::BufReader::with_capacity(1 << 18, file), left })
    }
}

impl<R: std::io::Read> StoredChunks<R> {
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Fails if further bytes follow after the last chunk.
    pub(super) fn end(&self) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        Err(Error::format(format!("{} bytes follow the last chunk, expected the end of the file", self.left)))
    }

    pub(super) fn next(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let mut len = [0; 8];
        let ended = || Error::format("the file of chunks ends before its last chunk");
        self.left = self.left.checked_sub(8).ok_or_else(ended)?;
        self.reader.read_exact(&mut len)?;
        let len = u64::from_le_bytes(len);
        self.left = self.left.checked_sub(len).ok_or_else(ended)?;
        bytes.resize(len as usize, 0);
        Ok(self.reader.read_exact(bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::convert::{Compress, ToHdf5, ToTable};
    use crate::error::{ErrorKind, Fails};
    use crate::source::Averaging;

    #[test]
    fn wrong_calls_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo/demo.ms");
        let target = folder.path().join("my.h5");
        let average: Averaging = "time=10s".parse().unwrap();
        let error = ToHdf5::new(&table).average(average).restorable(true).plan().map(drop).unwrap_err();
        assert!(error.kind() == ErrorKind::Usage, "{error}");
        assert!(error.to_string().ends_with("a restorable file has the original bytes: its rows cannot be averaged"));

        ToHdf5::new(&table).compression(Compress::Shared).plan().unwrap().shard(&target, 4096).unwrap();
        let plan = ShardPlan::open(&target).unwrap();
        let reader = ShardWorker::for_digests(&plan, OpenOptions::default()).unwrap();
        let worker = ShardWorker::open(&plan, OpenOptions::default()).unwrap();
        let item = &plan.items()[0];
        let unsynced = worker.write_unsynced(item, &());
        let plan = ToTable::new(&table).salvage(true).shard(folder.path().join("back.ms"), 4096);
        plan.fails(ErrorKind::Usage, "damage cannot be left out in a plan");
        for error in [reader.write(item, &()).map(drop), reader.sync([unsynced.unwrap()]).remove(0).map(drop)] {
            let error = error.unwrap_err();
            assert!(error.kind() == ErrorKind::Usage, "{error}");
            assert!(error.to_string().ends_with("the worker was opened for digests"), "{error}");
        }
    }
}
