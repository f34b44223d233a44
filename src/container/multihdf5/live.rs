//! Live containers: MultiHDF5 containers whose files grow while other processes read them.
//! docs/reference/containers.md.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::blocks::{Blocks, Order};
use super::commits::{Commit, Commits};
use super::container::MultiHdf5Mut;
use super::header::Header;
use super::names::DATA;
use crate::container::{ContainerMut, FormatOptions};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Dataset, Group};
use crate::hash::HashKind;
use crate::io::past_end;
use crate::value::{DataType, Region, Shape, Values};

/// Most bytes in whole blocks of a file that are read at once; a larger block is read alone.
const READ_BYTES: u64 = 1 << 20;

/// A MultiHDF5 container whose files are appended to while other processes read them: readers see
/// what was committed, and nothing else.
///
/// Files of nested containers have paths: `ANTENNA/table.f0`. No file can be added or removed.
/// Commits of a killed process stay readable, by [`LiveContainerReader`] and wherever containers
/// are read; to append again, copy it to a new container.
///
/// ```
/// use ctds_hdf5::{LiveContainer, LiveContainerReader};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("live.mfh5");
/// let mut live = LiveContainer::create(&path, 1 << 16, &["table.f0", "table.f1"])?;
/// live.append("table.f0", b"some ")?;
/// live.commit()?;
///
/// live.append("table.f0", b"bytes")?;
/// live.append("table.f1", b"and more")?;
/// live.close()?;
///
/// // in another process, at any time: libhdf5 does not open a file twice in one
/// let mut reader = LiveContainerReader::open(&path)?;
/// reader.refresh()?;
/// assert_eq!((reader.len("table.f0")?, reader.len("table.f1")?), (10, 8));
/// let mut bytes = [0; 10];
/// reader.read_at("table.f0", 0, &mut bytes)?;
/// assert_eq!(&bytes, b"some bytes");
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug)]
pub struct LiveContainer {
    commits: Commits,
    files: Vec<Appended>,
    numbers: HashMap<String, usize>,
    /// The last field, and so dropped after the datasets in the file.
    file: h5::File,
}

#[derive(Debug)]
struct Appended {
    dataset: Dataset,
    block_bytes: u64,
    len: u64,
    /// Bytes of the last block; empty if that block is full.
    tail: Vec<u8>,
    /// Whether bytes of the last block are only in memory.
    dirty: bool,
}

impl LiveContainer {
    /// Creates a MultiHDF5 container with the empty files `names`, to which bytes can be appended,
    /// and blocks of `block_bytes`; an existing file at `path` is replaced.
    ///
    /// # Errors
    /// `Usage` for names or a size of blocks that cannot be; `Io`, `NoSpace`.
    pub fn create(path: &Path, block_bytes: u64, names: &[&str]) -> Result<Self> {
        let container = MultiHdf5Mut::create(path, &live_options(block_bytes))?;
        for name in names {
            container.create(name)?;
        }
        container.commit()?;
        drop(container);
        Self::open(path)
    }

    /// Opens a MultiHDF5 container that was created as appendable, to append to its files while
    /// other processes read them.
    ///
    /// # Errors
    /// `Unsupported` if it was not created as appendable; `Locked` if another process is writing
    /// it, or a writer exited without closing it; those of reading it.
    pub fn open(path: &Path) -> Result<Self> {
        let file = h5::File::edit_live(path)?;
        let open = || {
            let root = file.root()?;
            let (commits, Commit { sizes, .. }) = listed(&root)?;
            if commits.counts_versions() {
                return Err(Error::unsupported("its files are also changed: only `pack --follow` writes it"));
            }
            let sizes = sizes.into_iter().map(Option::unwrap_or_default);
            let files = commits.names().iter().zip(sizes).map(|(name, size)| Appended::open(&root, name, size));
            let files = files.collect::<Result<_>>()?;
            Ok::<_, Error>((commits, files))
        };
        let (commits, files) = open().context(Context::path(path))?;
        let numbers = commits.names().iter().cloned().zip(0..).collect();
        Ok(LiveContainer { commits, files, numbers, file })
    }

    /// Appends bytes to the file `name` of the container. Readers do not see them before
    /// [`commit`](Self::commit).
    ///
    /// # Errors
    /// `NotFound` if the file does not exist; `Io`, `NoSpace`.
    pub fn append(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let number = *self
            .numbers
            .get(name)
            .ok_or_else(|| Error::not_found("the file does not exist").context(Context::member(name)))?;
        self.files[number].append(bytes).context(Context::member(name))
    }

    /// Commits: all bytes that were appended to any file since the last commit become visible to
    /// readers at once.
    ///
    /// A process that is killed leaves what the last commit left, or this one.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn commit(&mut self) -> Result<()> {
        for file in &mut self.files {
            file.store_tail()?;
        }
        // the bytes are in the file before a reader learns their number
        self.file.flush()?;
        self.commits.append(&Commit { sizes: self.files.iter().map(|file| Some(file.len)).collect(), versions: 0 })?;
        self.file.flush()
    }

    /// Commits all appended bytes, so that readers see them, and closes the container; any program
    /// can open it then.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn close(mut self) -> Result<()> {
        self.commit()?;
        let LiveContainer { commits, files, file, .. } = self;
        drop((commits, files));
        file.close()
    }
}

/// Options of a container that grows.
pub(crate) fn live_options(block_bytes: u64) -> FormatOptions {
    FormatOptions {
        block_bytes,
        checksums: false,
        compression: None,
        archive: true,
        hash: HashKind::default(),
        appendable: true,
    }
}

/// Opens the list of commits, and returns the last one, or the state before the first.
fn listed(root: &Group) -> Result<(Commits, Commit)> {
    let Some(commits) = Commits::open(root)? else {
        return Err(Error::unsupported("the files of this container cannot grow while others read them"));
    };
    let commit = match commits.last()? {
        Some(commit) => commit,
        None => {
            let sizes = commits.names().iter().map(|name| Ok(Some(parent(root, name)?.2)));
            Commit { sizes: sizes.collect::<Result<_>>()?, versions: 0 }
        }
    };
    Ok((commits, commit))
}

/// Group of the file, block size and length of the file in bytes as the header states them.
pub(super) fn parent(root: &Group, path: &str) -> Result<(Group, u64, u64)> {
    let mut group = root.clone();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
        group = group.group(folder)?;
    }
    let header = Header::read(&group)?;
    let size = header.files.iter().find(|(listed, _)| listed == name).map(|(_, size)| *size);
    let size = size.ok_or_else(|| Error::format(format!("the list of commits names {path}, which no header has")))?;
    Ok((group.group(name)?, header.block_bytes, size))
}

impl Appended {
    fn open(root: &Group, path: &str, len: u64) -> Result<Self> {
        let (group, block_bytes, _) = parent(root, path)?;
        let dataset = group.dataset(DATA)?;
        let shape = dataset.shape()?;
        let fits = matches!(shape[..], [width, rows] if width == block_bytes && rows >= len.div_ceil(block_bytes))
            && dataset.chunk()?.is_some_and(|chunk| chunk[..] == [block_bytes, 1])
            && dataset.filters()?.is_empty()
            && dataset.is_appendable()?;
        if !fits {
            return Err(Error::unsupported("the file cannot grow while others read it").context(path));
        }
        let mut file = Appended { dataset, block_bytes, len, tail: Vec::new(), dirty: false };
        let kept = len % block_bytes;
        if kept > 0 {
            file.tail = read_rows(&file.dataset, len / block_bytes, 1, 0, kept)?;
        }
        Ok(file)
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        let block = self.block_bytes as usize;
        let end = self.len.checked_add(bytes.len() as u64).filter(|&end| end <= i64::MAX as u64);
        let end = end.ok_or_else(|| Error::usage("the file would have 2^63 bytes or more"))?;
        self.make_rows(end)?;
        while !bytes.is_empty() {
            if self.tail.is_empty() && bytes.len() >= block {
                let (whole, rest) = bytes.split_at(block);
                self.dataset.write_chunk(&[0, self.len / self.block_bytes], whole, 0)?;
                self.len += self.block_bytes;
                bytes = rest;
                continue;
            }
            let (part, rest) = bytes.split_at((block - self.tail.len()).min(bytes.len()));
            self.tail.extend_from_slice(part);
            self.len += part.len() as u64;
            self.dirty = true;
            bytes = rest;
            if self.tail.len() == block {
                self.dataset.write_chunk(&[0, self.len / self.block_bytes - 1], &self.tail, 0)?;
                self.tail.clear();
                self.dirty = false;
            }
        }
        Ok(())
    }

    /// Extends the dataset so that it can hold `len` bytes.
    fn make_rows(&self, len: u64) -> Result<()> {
        let rows = len.div_ceil(self.block_bytes);
        match self.dataset.shape()?.last() {
            Some(&there) if there < rows => self.dataset.set_extent(rows),
            _ => Ok(()),
        }
    }

    /// Committed bytes of the last block do not change: concurrent readers see no difference.
    fn store_tail(&mut self) -> Result<()> {
        if self.dirty {
            let filled = self.tail.len();
            self.tail.resize(self.block_bytes as usize, 0);
            let written = self.dataset.write_chunk(&[0, self.len / self.block_bytes], &self.tail, 0);
            self.tail.truncate(filled);
            written?;
            self.dirty = false;
        }
        Ok(())
    }
}

/// Reads `count` bytes from the byte `start` of each row on.
pub(super) fn read_rows(dataset: &Dataset, first: u64, rows: u64, start: u64, count: u64) -> Result<Vec<u8>> {
    let mut values = Values::new(DataType::UChar);
    let region = Region { start: Shape::from([start, first]), shape: Shape::from([count, rows]) };
    dataset.read_region(&region, &mut values)?;
    Ok(values.into_bytes())
}

/// Reads a container that another process fills, as of one of its commits. See [`LiveContainer`].
#[derive(Debug)]
pub struct LiveContainerReader {
    path: PathBuf,
    /// Number of the file's inode.
    inode: u64,
    commits: Commits,
    commit: Commit,
    /// Where blocks are, if files are changed as well as appended to.
    versions: Option<(Blocks, Order)>,
    files: HashMap<String, (Dataset, u64)>,
    file: h5::File,
}

impl LiveContainerReader {
    /// Opens a MultiHDF5 container that may be growing, to read it as of its last commit.
    ///
    /// # Errors
    /// `Unsupported` if it was not created as appendable; those of reading it.
    pub fn open(path: &Path) -> Result<Self> {
        let inode = fs::metadata(path).with_context(|| Context::path(path))?.ino();
        let file = h5::File::open_live(path)?;
        let open = || {
            let root = file.root()?;
            let (commits, commit) = listed(&root)?;
            let versions = match Blocks::open(&root)? {
                Some(blocks) => {
                    let mut order = Order::new(commits.names().len());
                    order.read(&blocks, commit.versions)?;
                    Some((blocks, order))
                }
                None => None,
            };
            Ok::<_, Error>((commits, commit, versions))
        };
        let (commits, commit, versions) = open().context(Context::path(path))?;
        let path = path.to_owned();
        Ok(LiveContainerReader { path, inode, commits, commit, versions, files: HashMap::new(), file })
    }

    /// Advances to the last commit that the writer of the container has made, so that its bytes can
    /// be read; returns whether another commit, or another file at the path, was found. Commits of
    /// a writer that opened the file after this reader are not seen.
    ///
    /// # Errors
    /// `Io`, `Format`.
    pub fn refresh(&mut self) -> Result<bool> {
        // `pack --follow` begins a new file now and then
        if fs::metadata(&self.path).is_ok_and(|found| found.ino() != self.inode) {
            *self = Self::open(&self.path.clone())?;
            return Ok(true);
        }
        self.commits.refresh()?;
        let Some(commit) = self.commits.last()? else { return Ok(false) };
        if let Some((blocks, order)) = &mut self.versions {
            blocks.refresh()?;
            order.read(blocks, commit.versions)?;
        }
        let newer = commit != self.commit;
        self.commit = commit;
        Ok(newer)
    }

    /// Paths of the files in the growing container, such as `ANTENNA/table.f0`, also of those that
    /// were removed.
    pub fn names(&self) -> &[String] {
        self.commits.names()
    }

    /// Number of bytes of the file `name` in the container that were committed when the container
    /// was opened, or last [refreshed](Self::refresh).
    ///
    /// # Errors
    /// `NotFound` if the file does not exist, or was removed.
    pub fn len(&self, name: &str) -> Result<u64> {
        let size = self.number(name).and_then(|number| self.commit.sizes[number]);
        size.ok_or_else(|| Error::not_found("the file does not exist").context(Context::member(name)))
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.names().iter().position(|known| known == name)
    }

    /// Whether the file `name` in the container had no committed bytes when the container was
    /// opened, or last [refreshed](Self::refresh).
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn is_empty(&self, name: &str) -> Result<bool> {
        Ok(self.len(name)? == 0)
    }

    /// Fills `out` with the committed bytes of the file `name` in the container, from byte `offset`
    /// on.
    ///
    /// # Errors
    /// `Format` if fewer are committed, `NotFound` if the file does not exist, `Io`.
    pub fn read_at(&mut self, name: &str, offset: u64, out: &mut [u8]) -> Result<()> {
        let len = self.len(name)?;
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > len) {
            return Err(past_end(offset, out.len() as u64, len).context(Context::member(name)));
        }
        if !self.files.contains_key(name) {
            let (group, block_bytes, _) = parent(&self.file.root()?, name)?;
            self.files.insert(name.to_owned(), (group.dataset(DATA)?, block_bytes));
        }
        let order = self.versions.as_ref().zip(self.number(name)).map(|((_, order), number)| order.rows(number));
        let Some((dataset, block_bytes)) = self.files.get(name) else { return Ok(()) };
        // the dataset may have grown since it was opened
        dataset.refresh()?;
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let (block, start) = (at / block_bytes, at % block_bytes);
            let left = (out.len() - done) as u64;
            let count = (block_bytes - start).min(left);
            let (row, rows) = match order {
                Some(order) => (row_of(order, block).with_context(|| Context::member(name))?, 1),
                None if count == *block_bytes => (block, left.min(READ_BYTES.max(count)) / count),
                None => (block, 1),
            };
            let bytes = read_rows(dataset, row, rows, start, count).context(Context::member(name))?;
            out[done..done + bytes.len()].copy_from_slice(&bytes);
            done += bytes.len();
        }
        Ok(())
    }
}

fn row_of(order: &[u64], block: u64) -> Result<u64> {
    let row = usize::try_from(block).ok().and_then(|block| order.get(block));
    row.copied().ok_or_else(|| Error::format(format!("block {block} is in no list, which has {}", order.len())))
}
