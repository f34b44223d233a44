//! Writes a live container whose files are changed as well as appended to: it is kept in step with
//! files outside, and readers see whole commits only. docs/reference/containers.md.
//!
//! A row of a dataset that a commit names is never overwritten: another version of its block gets
//! another row. One exception: bytes after the end of a file are not committed, so that a file
//! grows within its last row as long as the bytes before stay.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use super::blocks::{Blocks, Origin, Version};
use super::commits::{Commit, Commits};
use super::container::MultiHdf5Mut;
use super::live::{live_options, parent, read_rows};
use super::names::DATA;
use crate::container::ContainerMut;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Bounds, Dataset};
use crate::io::ReadAt;
use crate::progress::Progress;

/// Bytes compared at a time, in whole blocks; a larger block is compared alone.
const PIECE_BYTES: u64 = 1 << 20;

/// Rows by which a dataset grows at least.
const MORE_ROWS: u64 = 64;

/// Entries of the list of versions that wait in memory.
const WAITING_VERSIONS: usize = 1 << 14;

#[derive(Debug)]
pub(crate) struct LiveFiles {
    commits: Commits,
    blocks: Blocks,
    /// Entries that the list of versions has, but for those that wait.
    entries: u64,
    waiting: Vec<Version>,
    files: Vec<LiveFile>,
    numbers: HashMap<String, usize>,
    block_bytes: u64,
    changed: bool,
    /// The first failure to write: what is in the file is not known since.
    broken: Option<Error>,
    /// A second descriptor, for `fdatasync`.
    descriptor: fs::File,
    /// The last field, and so dropped after the datasets in the file.
    file: h5::File,
}

/// Bytes that one call of [`LiveFiles::update`] has written, in whole blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Updated {
    pub(crate) appended: u64,
    /// The part in blocks that had other bytes before.
    pub(crate) replaced: u64,
}

#[derive(Debug)]
struct LiveFile {
    dataset: Dataset,
    /// Bytes; `None`: the next commit does not have the file.
    len: Option<u64>,
    /// Row of each block.
    order: Vec<u64>,
    /// Rows that are used; those from `committed` on are named by no commit.
    rows: u64,
    committed: u64,
    /// Rows of the dataset.
    extent: u64,
    /// Bytes at the last commit.
    committed_len: u64,
    /// Row of the last block of that commit, and the bytes in it that are committed.
    tail: Option<(u64, u64)>,
    /// Rows before this one do not change: an earlier commit may have more bytes in them.
    full: u64,
}

impl LiveFiles {
    /// Creates a container with empty files at `paths`, such as `ANTENNA/table.f0`; a path that
    /// ends with `/` is a nested container. None of the files is in a commit before it is
    /// [updated](Self::update).
    pub(crate) fn create(path: &Path, block_bytes: u64, paths: &BTreeSet<String>, origin: &Origin) -> Result<Self> {
        let container = MultiHdf5Mut::create(path, &live_options(block_bytes))?;
        make(&*container, &paths.iter().map(String::as_str).collect::<Vec<_>>())?;
        container.commit()?;
        drop(container);
        let file = h5::File::edit(path, Bounds::V110)?;
        let listed = file.root().and_then(|root| {
            Blocks::create(&root, origin)?;
            Commits::create(&root, true)
        });
        listed.and_then(|()| file.close()).with_context(|| Context::path(path))?;
        Self::open(path, block_bytes).with_context(|| Context::path(path))
    }

    fn open(path: &Path, block_bytes: u64) -> Result<Self> {
        let descriptor = fs::File::open(path)?;
        let file = h5::File::edit_live(path)?;
        let root = file.root()?;
        let missing = || Error::format("the container has no list of commits");
        let commits = Commits::open(&root)?.ok_or_else(missing)?;
        let blocks = Blocks::open(&root)?.ok_or_else(missing)?;
        let open = |name: &String| {
            let dataset = parent(&root, name)?.0.dataset(DATA)?;
            Ok::<_, Error>(LiveFile {
                dataset,
                len: None,
                order: Vec::new(),
                rows: 0,
                committed: 0,
                extent: 0,
                committed_len: 0,
                tail: None,
                full: 0,
            })
        };
        let files = commits.names().iter().map(open).collect::<Result<Vec<_>>>()?;
        let numbers = commits.names().iter().cloned().zip(0..).collect();
        Ok(LiveFiles {
            commits,
            blocks,
            entries: 0,
            waiting: Vec::new(),
            files,
            numbers,
            block_bytes,
            changed: false,
            broken: None,
            descriptor,
            file,
        })
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.numbers.contains_key(path)
    }

    /// Whether the next commit differs from the last one.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed
    }

    /// A failure to write, in distinction to one to read what is to be written.
    pub(crate) fn broken(&self) -> Option<&Error> {
        self.broken.as_ref()
    }

    /// Bytes of blocks that the last state has, and of those that are only in earlier ones.
    pub(crate) fn used_and_replaced(&self) -> (u64, u64) {
        let used: u64 = self.files.iter().map(|file| file.order.len() as u64).sum();
        let rows: u64 = self.files.iter().map(|file| file.rows).sum();
        (used * self.block_bytes, rows.saturating_sub(used) * self.block_bytes)
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.len).sum()
    }

    /// Number of files.
    pub(crate) fn count(&self) -> usize {
        self.files.iter().filter(|file| file.len.is_some()).count()
    }

    /// Makes the file at `path` equal to the first `len` bytes of `source`, with the next commit.
    /// After an error of `source` it is neither as before nor as `source`: another call must end
    /// well before the next commit.
    pub(crate) fn update(
        &mut self,
        path: &str,
        source: &dyn ReadAt,
        len: u64,
        progress: &dyn Progress,
    ) -> Result<Updated> {
        let number = self.numbers.get(path).copied();
        let number =
            number.ok_or_else(|| Error::not_found("the file does not exist").context(Context::member(path)))?;
        let (mut now, mut stored) = (Vec::new(), Vec::new());
        let block_bytes = self.block_bytes;
        let at_once = (PIECE_BYTES / block_bytes).max(1);
        let blocks = len.div_ceil(block_bytes);
        let mut updated = Updated::default();
        let mut first = 0;
        while first < blocks {
            progress.go_on()?;
            let count = at_once.min(blocks - first);
            let filled = (count * block_bytes).min(len - first * block_bytes) as usize;
            now.clear();
            now.resize((count * block_bytes) as usize, 0);
            source.read_at(first * block_bytes, &mut now[..filled]).with_context(|| Context::member(path))?;
            let stored_piece = self.store(number, first, &now, &mut stored);
            let piece = stored_piece.map_err(|error| self.fail(error.context(Context::member(path))))?;
            updated.appended += piece.appended;
            updated.replaced += piece.replaced;
            first += count;
        }
        let file = &mut self.files[number];
        self.changed |= file.len != Some(len);
        file.order.truncate(blocks as usize);
        file.len = Some(len);
        Ok(updated)
    }

    /// Leaves all files but those at `paths` out of the next commit.
    pub(crate) fn keep(&mut self, paths: &BTreeSet<String>) {
        for (name, &number) in &self.numbers {
            let file = &mut self.files[number];
            if !paths.contains(name) && file.len.is_some() {
                file.len = None;
                file.order.clear();
                self.changed = true;
            }
        }
    }

    /// Stores blocks from block `first` of a file on, those that are not stored already.
    fn store(&mut self, number: usize, first: u64, bytes: &[u8], stored: &mut Vec<u8>) -> Result<Updated> {
        let block_bytes = self.block_bytes as usize;
        let known = (self.files[number].order.len() as u64).saturating_sub(first) as usize * block_bytes;
        let known = known.min(bytes.len());
        self.files[number].read(first, known / block_bytes, stored)?;
        let mut updated = Updated::default();
        if bytes.len() == known && bytes == &stored[..] {
            return Ok(updated);
        }
        for (block, piece) in (first..).zip(bytes.chunks_exact(block_bytes)) {
            let at = (block - first) as usize * block_bytes;
            let before = stored.get(at..at + block_bytes);
            if before == Some(piece) {
                continue;
            }
            let file = &mut self.files[number];
            let row = match before.map(|before| (file.order[block as usize], before)) {
                Some((row, before)) if file.may_change(row, before, piece) => row,
                _ => file.new_row()?,
            };
            file.dataset.write_chunk(&[0, row], piece, 0)?;
            self.changed = true;
            match before {
                Some(_) if file.order[block as usize] == row => updated.appended += piece.len() as u64,
                Some(_) => {
                    file.order[block as usize] = row;
                    updated.replaced += piece.len() as u64;
                    self.waiting.push(Version { file: number, block, row });
                }
                None => {
                    file.order.push(row);
                    updated.appended += piece.len() as u64;
                    self.waiting.push(Version { file: number, block, row });
                }
            }
        }
        if self.waiting.len() >= WAITING_VERSIONS { self.write_versions().map(|()| updated) } else { Ok(updated) }
    }

    fn write_versions(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.blocks.write(self.entries, &self.waiting)?;
        self.entries += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Commits: readers see all updates since the last commit at once. A process that is killed
    /// leaves what the last commit left, or this one; `to_disk`: a power cut as well.
    pub(crate) fn commit(&mut self, to_disk: bool) -> Result<()> {
        self.commit_all(to_disk).map_err(|error| self.fail(error))
    }

    fn commit_all(&mut self, to_disk: bool) -> Result<()> {
        let sync = |descriptor: &fs::File| if to_disk { descriptor.sync_data() } else { Ok(()) };
        self.write_versions()?;
        // blocks, and all that leads to them, are in the file before a reader learns of them
        self.file.flush()?;
        sync(&self.descriptor)?;
        let sizes = self.files.iter().map(|file| file.len).collect();
        self.commits.append(&Commit { sizes, versions: self.entries })?;
        self.file.flush()?;
        sync(&self.descriptor)?;
        for file in &mut self.files {
            file.committed(self.block_bytes);
        }
        self.changed = false;
        Ok(())
    }

    fn fail(&mut self, error: Error) -> Error {
        self.broken.get_or_insert_with(|| error.clone());
        error
    }

    /// Closes the container, so that any program can open it; what is not committed is lost.
    pub(crate) fn close(self) -> Result<()> {
        let LiveFiles { commits, blocks, files, file, .. } = self;
        drop((commits, blocks, files));
        file.close()
    }

    /// The table of the container at `path`, which may be growing; `None` for any other file.
    pub(crate) fn origin(path: &Path) -> Result<Option<Origin>> {
        let open = || match Blocks::open(&h5::File::open_shared(path)?.root()?)? {
            Some(blocks) => blocks.origin().map(Some),
            None => Ok(None),
        };
        open().with_context(|| Context::path(path))
    }
}

/// Makes empty files; several have their folders in common.
fn make(container: &dyn ContainerMut, paths: &[&str]) -> Result<()> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in paths {
        match path.split_once('/') {
            Some((folder, rest)) => {
                let inner = folders.entry(folder).or_default();
                if !rest.is_empty() {
                    inner.push(rest);
                }
            }
            None => drop(container.create(path)?),
        }
    }
    for (folder, inner) in folders {
        make(&*container.create_nested(folder)?, &inner).with_context(|| Context::member(folder))?;
    }
    Ok(())
}

impl LiveFile {
    /// Reads whole blocks as they are stored.
    fn read(&self, first: u64, count: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        if count == 0 {
            return Ok(());
        }
        let block_bytes = self.dataset.shape()?.first().copied().unwrap_or(0);
        let rows = &self.order[(first as usize).min(self.order.len())..][..count];
        let mut start = 0;
        while start < count {
            let follows = |(before, row): (&u64, &u64)| *row == before + 1;
            let more = rows[start..].iter().zip(&rows[start + 1..]).take_while(|&pair| follows(pair)).count();
            let run = more + 1;
            out.extend(read_rows(&self.dataset, rows[start], run as u64, 0, block_bytes)?);
            start += run;
        }
        Ok(())
    }

    /// Whether no reader can see the difference: the row is in no commit, or it has the end of the
    /// file, and the bytes before the end stay.
    fn may_change(&self, row: u64, before: &[u8], after: &[u8]) -> bool {
        if row >= self.committed {
            return true;
        }
        match self.tail {
            Some((tail, kept)) if tail == row && row >= self.full => before[..kept as usize] == after[..kept as usize],
            _ => false,
        }
    }

    fn new_row(&mut self) -> Result<u64> {
        let row = self.rows;
        if row == self.extent {
            let extent = row + MORE_ROWS.max(row / 8);
            self.dataset.set_extent(extent)?;
            self.extent = extent;
        }
        self.rows += 1;
        Ok(row)
    }

    /// All that is written is committed.
    fn committed(&mut self, block_bytes: u64) {
        let blocks = self.order.len() as u64;
        let len = self.len.unwrap_or(0);
        if len < self.committed_len {
            self.full = self.rows;
        }
        self.committed_len = len;
        self.tail = self.order.last().map(|&row| (row, len - (blocks - 1) * block_bytes));
        self.committed = self.rows;
    }
}
