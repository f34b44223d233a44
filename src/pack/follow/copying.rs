//! Copies the files of a table that may be written at the same time into a live container, and
//! begins a new one where the container cannot be changed.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::seen::{Mark, Seen, TABLE_LOCK};
use super::summary::FilesCommit;
use crate::container::{LiveFiles, Origin, Updated};
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ReadAt, read_all};
use crate::output::{Output, Publishing};
use crate::pack::file_set::{FileSet, Folder, SetFile, Wanted};
use crate::progress::{CancelToken, Progress};
use crate::table::{Locking, OpenOptions};

/// Bytes of replaced blocks for which no new container is begun.
const LEAST_REPLACED: u64 = 64 << 20;

/// Bytes of `table.lock` with the list of lock requests. formats/table.md 4.2.
const REQUEST_BYTES: usize = 260;

#[derive(Debug)]
pub(super) struct Copying {
    source: PathBuf,
    target: PathBuf,
    origin: Origin,
    block_bytes: u64,
    publishing: Publishing,
    cancel: CancelToken,
    generation: Option<Generation>,
    /// Containers that appeared at the target.
    pub(super) generations: u64,
    /// Prefixes of the directories, by the last look.
    pub(super) folders: BTreeSet<String>,
    /// Prefix and path of each table, by the last look.
    pub(super) tables: Vec<(String, PathBuf)>,
    /// Paths of all files, by the last look.
    paths: BTreeSet<String>,
    /// Marks of the files that are known to be copied.
    marks: HashMap<String, Mark>,
    /// More than half of the container is blocks that were replaced.
    renew: bool,
    /// Since the last commit.
    copied: Updated,
    /// Number and bytes of the files at the last commit.
    pub(super) totals: (usize, u64),
    elsewhere: Vec<String>,
    /// Warnings of the last look, perhaps in the middle of a write.
    found: Vec<String>,
    warnings: Vec<String>,
    /// A container could not be made.
    failed: Option<Error>,
}

/// A container that is complete in itself. The next one takes its place under its name.
#[derive(Debug)]
struct Generation {
    files: LiveFiles,
    /// Prefixes of all containers in it.
    folders: BTreeSet<String>,
    /// Until the first commit, with which the container appears.
    output: Option<Output>,
}

impl Copying {
    pub(super) fn new(
        source: &Path,
        target: &Path,
        origin: Origin,
        block_bytes: u64,
        publishing: Publishing,
        cancel: &CancelToken,
    ) -> Self {
        Copying {
            source: source.to_owned(),
            target: target.to_owned(),
            origin,
            block_bytes,
            publishing,
            cancel: cancel.clone(),
            generation: None,
            generations: 0,
            folders: BTreeSet::from([String::new()]),
            tables: Vec::new(),
            paths: BTreeSet::new(),
            marks: HashMap::new(),
            renew: false,
            copied: Updated::default(),
            totals: (0, 0),
            elsewhere: Vec::new(),
            found: Vec::new(),
            warnings: Vec::new(),
            failed: None,
        }
    }

    /// A failure to write the container, in distinction to one to read the table.
    pub(super) fn broken(&self) -> Option<&Error> {
        self.failed.as_ref().or_else(|| self.generation.as_ref()?.files.broken())
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = &String> {
        self.warnings.iter().chain(&self.elsewhere)
    }

    /// Looks at the source for the first time.
    pub(super) fn begin(&mut self) -> Result<()> {
        let set = self.look()?;
        set.check_apart(&self.target)?;
        let left_out = |table| format!("{table}, which is not followed");
        self.elsewhere = set.elsewhere()?.into_iter().map(left_out).collect();
        Ok(())
    }

    /// Finds the directories and tables of the source.
    fn look(&mut self) -> Result<FileSet> {
        let unlocked = OpenOptions { locking: Locking::None, ..OpenOptions::default() };
        let set = FileSet::open(&self.source, Wanted::Table, unlocked)?;
        let all = set.root.all();
        let in_directories = all.iter().filter(|folder| folder.path.is_some());
        self.folders = in_directories.map(|folder| folder.prefix.clone()).collect();
        let tables = all.iter().filter(|folder| folder.is_table());
        self.tables = tables.filter_map(|folder| Some((folder.prefix.clone(), folder.path.clone()?))).collect();
        self.found = set.warnings();
        Ok(set)
    }

    /// Copies what differs, for the next commit. If the table was written to during the call,
    /// another one compares what has changed since. `before` was seen before the call. False, with
    /// nothing copied, if the files are others than before, as in the middle of a write: the next
    /// call takes them.
    pub(super) fn copy(&mut self, before: &Seen) -> Result<bool> {
        let set = self.look()?;
        let all = set.root.all();
        let prefixes: BTreeSet<String> = all.iter().map(|folder| folder.prefix.clone()).collect();
        let paths: BTreeSet<String> =
            all.iter().flat_map(|folder| folder.files.iter().map(|file| path_of(folder, file))).collect();
        let fits = |generation: &Generation| {
            generation.folders == prefixes && paths.iter().all(|path| generation.files.has(path))
        };
        if self.renew || self.generation.as_ref().is_none_or(|generation| !fits(generation)) {
            if self.generation.is_some() && self.paths != paths {
                self.paths = paths;
                return Ok(false);
            }
            let made = self.make(set.bytes(), prefixes, &paths);
            made.inspect_err(|error| self.failed = Some(error.clone()))?;
        }
        let Some(generation) = &mut self.generation else { return Err(Error::usage("no container was begun")) };
        // a container that has appeared is left with a commit of all that was written
        let cancellable = self.cancel.with(&());
        let progress: &dyn Progress = if generation.output.is_some() { &cancellable } else { &() };
        for folder in all {
            for file in &folder.files {
                let (path, mark) = (path_of(folder, file), before.mark(folder, file));
                if mark.is_some() && self.marks.get(&path) == mark.as_ref() {
                    continue;
                }
                self.marks.remove(&path);
                let bytes = open(folder, file)?;
                let updated = generation.files.update(&path, &*bytes, file.len, progress)?;
                self.copied.appended += updated.appended;
                self.copied.replaced += updated.replaced;
                if let Some(mark) = mark {
                    self.marks.insert(path, mark);
                }
            }
        }
        generation.files.keep(&paths);
        self.paths = paths;
        Ok(true)
    }

    /// Makes a container for files of `bytes` in all, beside the one at the target, which stays at
    /// its last commit.
    fn make(&mut self, bytes: u64, folders: BTreeSet<String>, paths: &BTreeSet<String>) -> Result<()> {
        if let Some(generation) = self.generation.take() {
            generation.files.close()?;
        }
        self.marks.clear();
        (self.renew, self.copied) = (false, Updated::default());
        let output = Output::create(&self.target, self.publishing, bytes)?;
        let nested = folders.iter().filter(|prefix| !prefix.is_empty());
        let paths = paths.iter().chain(nested).cloned().collect();
        let files = LiveFiles::create(output.partial(), self.block_bytes, &paths, &self.origin)?;
        self.generation = Some(Generation { files, folders, output: Some(output) });
        Ok(())
    }

    /// Commits what was copied; `None` if it is what the last commit has.
    pub(super) fn commit(&mut self, to_disk: bool) -> Result<Option<FilesCommit>> {
        self.warnings.clone_from(&self.found);
        let Some(Generation { files, output, .. }) = &mut self.generation else { return Ok(None) };
        if !files.is_changed() && output.is_none() {
            return Ok(None);
        }
        files.commit(to_disk).with_context(|| Context::path(&self.target))?;
        let new_file = output.is_some();
        if let Some(output) = output.take() {
            output.commit()?;
            self.generations += 1;
        }
        let Updated { appended, replaced } = std::mem::take(&mut self.copied);
        self.totals = (files.count(), files.bytes());
        let (used, unused) = files.used_and_replaced();
        self.renew = unused > used.max(LEAST_REPLACED);
        Ok(Some(FilesCommit { appended, replaced, new_file }))
    }

    /// Closes the container, so that any program can open it.
    pub(super) fn close(self) -> Result<()> {
        let Some(Generation { files, .. }) = self.generation else { return Ok(()) };
        files.close().with_context(|| Context::path(&self.target))
    }
}

fn path_of(folder: &Folder, file: &SetFile) -> String {
    format!("{}{}", folder.prefix, file.name)
}

/// Lock requests are those of running programs, this one among them: the copy has none.
fn open(folder: &Folder, file: &SetFile) -> Result<Arc<dyn ReadAt>> {
    let bytes = file.open()?;
    if !folder.is_table() || file.name != TABLE_LOCK {
        return Ok(bytes);
    }
    let mut bytes = read_all(&*bytes).with_context(|| Context::member(TABLE_LOCK))?;
    let end = bytes.len().min(REQUEST_BYTES);
    bytes[..end].fill(0);
    Ok(Arc::new(bytes))
}
