//! Publishes the HDF5 file or table of a conversion by many processes when workers have written all
//! chunks or tiles that its plan leaves to them.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind as IoErrorKind;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::check::RangeCheck;
use super::document::{PLAN, Place, ShardItem, ShardPlan, ShardResult};
use super::insert::{Insertion, damaged};
use super::structure::{STRUCTURE, check_len, restore_structure, sync_directory};
use super::table;
use crate::call::pool::thread_pool;
use crate::call::{Call, call_setters};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::os::first_hole;
use crate::output::SyncPolicy;
use crate::output::{publish_directory, publish_file};
use crate::progress::Progress;

/// Locked by a commit.
const LOCK: &str = "commit.lock";
/// Made before commit changes the HDF5 file; if it exists, the next commit undoes the changes.
const BEGUN: &str = "commit.begun";
/// Plan with the workers' results, which commit moves beside the published file.
const RANGES: &str = "ranges.ndjson";

/// Commit of a conversion by many processes: checks that workers have written all items of the plan
/// (ranges of chunks or tiles), then publishes the HDF5 file or table.
#[must_use = "`write` publishes"]
pub struct CommitShards<'a> {
    plan: &'a ShardPlan,
    results: BTreeMap<String, ShardResult>,
    checks_ranges: bool,
    threads: usize,
    call: Call<'a>,
}

/// Result of [`CommitShards::write`], the last step of a conversion by many processes, which checks
/// what workers have written and publishes the HDF5 file or table: numbers of items, rows and
/// bytes.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShardCommitSummary {
    /// Number of items in the plan of the conversion: ranges of chunks or tiles, each written by
    /// one worker.
    pub items: usize,
    /// Bytes of chunks, as they are stored, that commit has copied from the separate files of
    /// workers into the HDF5 file.
    pub inserted_bytes: u64,
    /// Bytes of contiguous datasets, or of tiles, that were read back and compared with the results
    /// of workers.
    pub checked_bytes: u64,
    /// Number of rows of the main table that were converted or, if only subtables were converted,
    /// of the first of them.
    pub rows: u64,
    /// Size of the published HDF5 file, or of all files of the table, in bytes.
    pub file_bytes: u64,
}

impl<'a> CommitShards<'a> {
    /// Prepares to publish the HDF5 file or table of the conversion `plan`. `results` has the
    /// identifier of each item (a range of chunks or tiles) and the result that a worker returned
    /// for it.
    pub fn new(plan: &'a ShardPlan, results: impl IntoIterator<Item = (String, ShardResult)>) -> Self {
        let results = results.into_iter().collect();
        CommitShards { plan, results, checks_ranges: false, threads: 0, call: Call::default() }
    }

    call_setters!(target);

    /// Sets whether commit reads back all ranges of contiguous datasets, or tiles, and compares
    /// them with the results of workers. By default it reads only those where the file system
    /// reports missing bytes. Separate files of chunks are always read.
    pub fn check_ranges(mut self, checks_ranges: bool) -> Self {
        self.checks_ranges = checks_ranges;
        self
    }

    /// Sets the number of threads that read back the bytes written by workers; 0, the default: one
    /// for each processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Publishes the HDF5 file or table: copies the chunks from separate files of workers into the
    /// HDF5 file, renames the result to the target, and leaves beside it a document with the ranges
    /// that workers wrote ([`ShardPlan::ranges_of`]). An interrupted commit can be repeated.
    ///
    /// # Errors
    /// `Usage` if an item has no result; `Format` if its bytes are missing or differ, or the source
    /// changed; `Exists` if there is something at the target, unless [`if_exists`](Self::if_exists)
    /// says otherwise; `Locked` if another commit is running.
    pub fn write(self) -> Result<ShardCommitSummary> {
        // a commit that was killed at its very end has left the directory, empty
        if self.plan.is_committed() && fs::remove_dir(self.plan.directory()).is_ok() {
            return self.summary();
        }
        self.plan.check_not_committed()?;
        let _lock = self.lock()?;
        self.call.run(|progress| self.commit(progress))
    }

    fn lock(&self) -> Result<File> {
        let path = self.path(LOCK);
        let lock = || -> Result<File> {
            let file = File::options().write(true).create(true).truncate(false).open(&path)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => Err(Error::new(ErrorKind::Locked, "another commit is running")),
                // some file systems have no locks
                Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
            }
        };
        lock().with_context(|| Context::path(&path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.plan.directory().join(name)
    }

    fn commit(&self, progress: &dyn Progress) -> Result<ShardCommitSummary> {
        let (plan, path) = (self.plan, self.plan.unpublished());
        if !path.exists() || plan.makes_table() && table::is_published(plan) {
            return self.finish();
        }
        plan.header.check_source()?;
        let items = self.items_with_results()?;
        let begun = self.path(BEGUN).exists();
        if plan.makes_table() {
            table::check_files(plan)?;
        } else if !begun {
            check_len(&path, plan.header.file_bytes)?;
        }
        let checked_bytes = self.check(&items, progress)?;
        let inserted_bytes = match plan.makes_table() {
            true => self.complete_table().map(|()| 0),
            false => self.complete_file(&items, begun, progress),
        }?;
        self.write_ranges()?;
        progress.go_on()?;
        let publish = if plan.makes_table() { publish_directory } else { publish_file };
        publish(&path, plan.target(), self.call.publishing.if_exists)?;
        Ok(ShardCommitSummary { inserted_bytes, checked_bytes, ..self.finish()? })
    }

    /// Returns the copied bytes. `begun`: an earlier commit was interrupted.
    fn complete_file(&self, items: &[(&ShardItem, &ShardResult)], begun: bool, progress: &dyn Progress) -> Result<u64> {
        let path = self.plan.unpublished();
        // one descriptor from here on: each one is told only once that bytes were lost
        let file = File::open(&path).with_context(|| Context::path(&path))?;
        let inserted_bytes = self.insert(items, begun, progress)?;
        if self.call.publishing.sync != SyncPolicy::Never {
            file.sync_all().with_context(|| Context::path(&path))?;
        }
        Ok(inserted_bytes)
    }

    /// Workers on other machines may not have made the files of tiles durable.
    fn complete_table(&self) -> Result<()> {
        match self.call.publishing.sync {
            SyncPolicy::Never => Ok(()),
            SyncPolicy::Behind | SyncPolicy::End => table::sync(self.plan),
        }
    }

    /// Fails if a result is missing.
    fn items_with_results(&self) -> Result<Vec<(&'a ShardItem, &ShardResult)>> {
        let items = self.plan.items();
        let mut found = Vec::with_capacity(items.len());
        let mut missing = items.iter().filter(|item| !self.results.contains_key(&item.id));
        if let Some(first) = missing.next() {
            let (count, all) = (1 + missing.count(), items.len());
            let (id, name, target) = (&first.id, self.plan.describe(first), self.plan.target().display());
            let message = format!(
                "{count} of {all} items are not done, the first is {id} ({name}): run `h5bridge shard work {target}`"
            );
            return Err(Error::usage(message));
        }
        for item in items {
            found.extend(self.results.get(&item.id).map(|result| (item, result)));
        }
        Ok(found)
    }

    /// Compares lengths with results; reads items in the file back and compares hashes if
    /// `checks_ranges` is set or the file system reports holes. Returns the bytes read back.
    fn check(&self, items: &[(&ShardItem, &ShardResult)], progress: &dyn Progress) -> Result<u64> {
        let (plan, check) = (self.plan, RangeCheck::open(self.plan)?);
        let check_item = |&(item, result): &(&ShardItem, &ShardResult)| -> Result<u64> {
            progress.go_on()?;
            if plan.is_packed(item) {
                return check_chunk_file(plan, item, result).map(|()| 0);
            }
            check_len_of_range(plan, item, result)?;
            if !self.checks_ranges && !has_hole(plan, item, result)? {
                return Ok(0);
            }
            match check.check(item, result, progress)? {
                None => Ok(result.file_bytes),
                Some(difference) => Err(damaged(plan, item, &difference)),
            }
        };
        let pool = thread_pool(self.threads)?;
        pool.install(|| items.par_iter().map(check_item).try_reduce(|| 0, |sum, bytes| Ok(sum + bytes)))
    }

    /// If `begun`, first undoes an interrupted commit. Returns the copied bytes.
    fn insert(&self, items: &[(&ShardItem, &ShardResult)], begun: bool, progress: &dyn Progress) -> Result<u64> {
        let (plan, path) = (self.plan, self.plan.unpublished());
        let packed: Vec<_> = items.iter().copied().filter(|(item, _)| plan.is_packed(item)).collect();
        if packed.is_empty() {
            return Ok(0);
        }
        progress.expect(packed.iter().map(|(_, result)| result.file_bytes).sum());
        if begun {
            restore_structure(&self.path(STRUCTURE), &path)?;
        }
        File::create(self.path(BEGUN))?.sync_all()?;
        sync_directory(&plan.directory())?;
        let inserted = Insertion { plan, items: &packed, sync: self.call.publishing.sync, progress }.run(&path);
        // where that fails the next commit does it
        if inserted.is_err() && restore_structure(&self.path(STRUCTURE), &path).is_ok() {
            let _ = fs::remove_file(self.path(BEGUN));
        }
        inserted
    }

    /// Lines of `plan.ndjson` with results, to verify the published file later.
    fn write_ranges(&self) -> Result<()> {
        let mut ranges = ShardPlan::open(self.plan.target())?;
        for item in ranges.items_mut() {
            item.result = self.results.get(&item.id).cloned();
        }
        ranges.write(&self.path(RANGES))
    }

    /// Moves `ranges.ndjson` beside the published target, and removes the plan's directory.
    fn finish(&self) -> Result<ShardCommitSummary> {
        let (plan, target) = (self.plan, self.plan.target());
        let ranges = self.path(RANGES);
        if !target.exists() || (!ranges.exists() && !ShardPlan::ranges_of(target).exists()) {
            let message = "the file of the plan is missing: remove the directory and make a new plan";
            return Err(Error::format(message).context(Context::path(plan.unpublished())));
        }
        match fs::rename(&ranges, ShardPlan::ranges_of(target)) {
            Err(error) if error.kind() != IoErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        remove_plan(&plan.directory()).with_context(|| Context::path(plan.directory()))?;
        self.summary()
    }

    /// Inserted and compared bytes are 0: the caller sets them, unless a killed commit published.
    fn summary(&self) -> Result<ShardCommitSummary> {
        let (plan, target) = (self.plan, self.plan.target());
        let file_bytes = match plan.makes_table() {
            true => plan.header.file_bytes,
            false => target.metadata().with_context(|| Context::path(target))?.len(),
        };
        let (items, rows) = (plan.items().len(), plan.header.rows);
        Ok(ShardCommitSummary { items, inserted_bytes: 0, checked_bytes: 0, rows, file_bytes })
    }
}

/// The plan's document is removed last, so that an interrupted commit can be repeated.
fn remove_plan(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
        } else if path.file_name().is_none_or(|name| name != PLAN) {
            fs::remove_file(&path)?;
        }
    }
    fs::remove_file(directory.join(PLAN))?;
    Ok(fs::remove_dir(directory)?)
}

/// Compares the length; the bytes are compared when commit inserts the chunks.
fn check_chunk_file(plan: &ShardPlan, item: &ShardItem, result: &ShardResult) -> Result<()> {
    let path = plan.chunk_file(item);
    match path.metadata() {
        Ok(found) if found.len() == result.file_bytes => Ok(()),
        Ok(found) => {
            let (found, expected) = (found.len(), result.file_bytes);
            Err(damaged(plan, item, &format!("its file of chunks has {found} bytes, {expected} are expected")))
        }
        Err(error) if error.kind() == IoErrorKind::NotFound => {
            Err(damaged(plan, item, "the file of chunks is missing"))
        }
        Err(error) => Err(Error::from(error).context(Context::path(path))),
    }
}

/// Only the last chunk or tile may be shorter.
fn check_len_of_range(plan: &ShardPlan, item: &ShardItem, result: &ShardResult) -> Result<()> {
    let chunk_bytes = plan.dataset(item).chunk_bytes()?;
    let most = (item.last - item.first).saturating_mul(chunk_bytes);
    let found = result.file_bytes;
    if found > most.saturating_sub(chunk_bytes) && found <= most {
        return Ok(());
    }
    Err(damaged(plan, item, &format!("its result has {found} bytes, {most} are expected")))
}

/// Some file systems store no zeros, and report holes for them as well.
fn has_hole(plan: &ShardPlan, item: &ShardItem, result: &ShardResult) -> Result<bool> {
    let dataset = plan.dataset(item);
    let at = item.first * dataset.chunk_bytes()?;
    let (path, range) = match dataset.place() {
        Place::Chunks => return Ok(false),
        Place::Block(address) => (plan.unpublished(), address + at..(address + at).saturating_add(result.file_bytes)),
        Place::Tiles(tiles) => {
            let mut parts = tiles.parts(at, result.file_bytes);
            let Some((start, len)) = parts.next() else { return Ok(false) };
            let (last, last_len) = parts.last().unwrap_or((start, len));
            (plan.unpublished().join(&tiles.path), start..last + last_len)
        }
    };
    let file = File::open(&path).with_context(|| Context::path(&path))?;
    if i64::try_from(range.start).is_err() {
        return Ok(true);
    }
    // where this is not supported the end of the file is found, or nothing
    Ok(first_hole(&file, range.start).is_some_and(|hole| hole < range.end))
}
