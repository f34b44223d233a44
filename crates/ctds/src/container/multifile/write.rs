//! Writing of MultiFiles, as version 2, new ones also as version 1; no byte of the last commit is
//! overwritten before the next commit.
//!
//! A block to which the header in the file refers is *old*. A change of it goes to another block,
//! which is *fresh* and may be written in place until the commit. The commit then
//!
//! 1. gives every fresh block its checksum,
//! 2. writes the continuation blocks of the set that the old header is not in,
//! 3. syncs: all that the new header will refer to is durable,
//! 4. writes the header's part in block 0, and syncs again: this is the commit,
//! 5. makes the blocks that are no longer referred to free, and cuts free ones off the end of the
//!    file.
//!
//! # What is guaranteed
//! Killed before step 4 a process leaves the old state, after it the new one. Step 4 is one write
//! of as many bytes as the fields in block 0 take: up to 512 bytes, a sector, it happens or not
//! even when the power fails; up to 4096 bytes, a page, even when the process is killed in the
//! middle of it. A few dozen files without checksums take less. The format has one block 0 and so
//! no way to make larger ones atomic; with checksums a torn header is at least noticed.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use super::header::{Entry, Header, MAX_BLOCK_BYTES, MIN_BLOCK_BYTES};
use super::pending::Pending;
use super::{EXTENSION, MultiFile, describe, layout, no_such_file, read_header, select};
use crate::container::{Container, ContainerInfo, ContainerMut, FileLayout, check_name};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::io::{FileTarget, Raw, RawCopy, ReadAt, WriteAt};
use crate::sync::LockUnpoisoned;

/// A MultiFile (casacore's container file) that is open for writing, as version 2.
///
/// Writes to its files, and [`WriteAt::sync`] of them, do not count before
/// [`commit`](ContainerMut::commit). A file occupies whole blocks: small files in large blocks
/// waste space. Blocks are taken in the order of the writes: files written one after the other in
/// large pieces lie in few runs.
///
/// ```
/// # fn main() -> ctds::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("table.mf");
/// use std::sync::Arc;
/// use ctds::io::{FileTarget, ReadAt, WriteAt};
/// use ctds::{Container, ContainerMut, Directory, MultiFile, MultiFileMut};
///
/// let packed = MultiFileMut::create(Arc::new(FileTarget::create(&path)?), 4 << 20, true)?;
/// packed.create("table.f0")?.write_at(0, b"some bytes")?;
/// packed.commit()?;
///
/// let read = MultiFile::open(&Directory::new(folder.path()), "table.mf")?;
/// let mut bytes = [0; 5];
/// read.open("table.f0")?.read_at(5, &mut bytes)?;
/// assert_eq!(&bytes, b"bytes");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MultiFileMut {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: Arc<dyn WriteAt>,
    state: Mutex<Pending>,
}

impl MultiFileMut {
    /// Creates an empty MultiFile in `file`, with blocks of `block_bytes`, with or without
    /// checksums. Until the first commit `file` is not a MultiFile.
    ///
    /// # Errors
    /// `Usage` if `block_bytes` is not in 128 … 2^30; those of writing.
    pub fn create(file: Arc<dyn WriteAt>, block_bytes: u64, checksums: bool) -> Result<Self> {
        Self::create_with(file, block_bytes, checksums, false)
    }

    pub(super) fn create_with(file: Arc<dyn WriteAt>, block_bytes: u64, checksums: bool, marked: bool) -> Result<Self> {
        check_block_bytes(block_bytes)?;
        file.set_len(0)?;
        Ok(Self::over(file, Header::empty(block_bytes, checksums, marked), None))
    }

    /// Readable by casacore 2.0 and later; a header beyond block 0 continues in `<path>_hdrext`.
    pub(super) fn create_version_1(path: &Path, block_bytes: u64) -> Result<Self> {
        check_block_bytes(block_bytes)?;
        let mut extension = path.as_os_str().to_owned();
        extension.push(EXTENSION);
        let file = Arc::new(FileTarget::create(path)?);
        let state = Pending::version_1(Header::empty(block_bytes, false, false), extension.into());
        Ok(MultiFileMut { shared: Arc::new(Shared { file, state: Mutex::new(state) }) })
    }

    /// Opens the MultiFile `name` of `inside` for changes. The first commit converts version 1 to
    /// version 2; the file `<name>_hdrext`, in which a long header of version 1 continues, is then
    /// unused, but stays, as with casacore.
    ///
    /// # Errors
    /// `Format` if it is not a MultiFile, its header is damaged or blocks are missing;
    /// `Unsupported` if they are larger than 2^30 bytes; `NotFound`, `Io`.
    pub fn edit(inside: &dyn ContainerMut, name: &str) -> Result<Self> {
        let file = inside.edit(name)?;
        let header = read_header(&file, inside, name)?;
        if header.block_bytes > MAX_BLOCK_BYTES {
            let message = format!("blocks of {} bytes, at most {MAX_BLOCK_BYTES} are written", header.block_bytes);
            return Err(Error::unsupported(message).context(Context::member(name)));
        }
        let there = file.len()?;
        if there.div_ceil(header.block_bytes) < header.blocks {
            let message = format!("{} blocks of {} bytes, but the file has {there}", header.blocks, header.block_bytes);
            return Err(Error::format(message).context(Context::member(name)));
        }
        // bytes that a killed writer left after the last block
        let end = header.blocks * header.block_bytes;
        if file.len()? > end {
            file.set_len(end)?;
        }
        let slack = header.extent..header.block_bytes.min(file.len()?);
        Ok(Self::over(file, header, Some(slack)))
    }

    fn over(file: Arc<dyn WriteAt>, header: Header, slack: Option<Range<u64>>) -> Self {
        let state = Pending::new(header, slack);
        MultiFileMut { shared: Arc::new(Shared { file, state: Mutex::new(state) }) }
    }

    fn create_file(&self, name: &str, nested: bool) -> Result<Arc<dyn WriteAt>> {
        check_name(name)?;
        let mut state = self.shared.state();
        let slot = match state.slots.get(name).copied() {
            Some(slot) => {
                state.resize(&*self.shared.file, slot, 0)?;
                slot
            }
            None => state.add_file(name),
        };
        state.header.files[slot].nested = nested && state.header.marked;
        drop(state);
        Ok(Arc::new(self.handle(name)?))
    }

    fn handle(&self, name: &str) -> Result<FileMut> {
        let state = self.shared.state();
        let slot = state.slots.get(name).copied().ok_or_else(|| no_such_file(name))?;
        Ok(FileMut { shared: self.shared.clone(), slot, generation: state.generations[slot] })
    }
}

fn check_block_bytes(block_bytes: u64) -> Result<()> {
    if !(MIN_BLOCK_BYTES..=MAX_BLOCK_BYTES).contains(&block_bytes) {
        return Err(Error::usage(format!(
            "a block size of {block_bytes} bytes, {MIN_BLOCK_BYTES} to {MAX_BLOCK_BYTES} are possible"
        )));
    }
    Ok(())
}

impl Container for MultiFileMut {
    fn names(&self) -> Result<Vec<String>> {
        let marks = self.shared.state().header.marks();
        Ok(select(self, marks, false))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(self.handle(name)?))
    }

    fn nested(&self) -> Result<Vec<String>> {
        let marks = self.shared.state().header.marks();
        Ok(select(self, marks, true))
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(MultiFile::open_at(self, name, 1)?))
    }

    fn describe(&self) -> ContainerInfo {
        let state = self.shared.state();
        ContainerInfo { free_blocks: Some(state.free.len()), ..describe(&state.header) }
    }

    fn layout(&self, name: &str) -> Result<FileLayout> {
        let file = self.handle(name)?;
        let state = self.shared.state();
        Ok(layout(&state.header, &state.header.files[file.slot]))
    }
}

impl ContainerMut for MultiFileMut {
    fn create(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        self.create_file(name, false)
    }

    fn edit(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        Ok(Arc::new(self.handle(name)?))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut state = self.shared.state();
        let slot = state.slots.remove(name).ok_or_else(|| no_such_file(name))?;
        state.resize(&*self.shared.file, slot, 0)?;
        state.header.files[slot] = Entry::default();
        state.generations[slot] += 1;
        state.changed = true;
        Ok(())
    }

    fn create_nested(&self, name: &str) -> Result<Arc<dyn ContainerMut>> {
        if self.shared.state().slots.contains_key(name) {
            return Err(Error::new(ErrorKind::Exists, "there is a file of this name").context(Context::member(name)));
        }
        let file = self.create_file(name, true)?;
        let Header { block_bytes, marked, .. } = self.shared.state().header;
        // the parent has the checksums
        Ok(Arc::new(MultiFileMut::create_with(file, block_bytes, false, marked)?))
    }

    fn commit(&self) -> Result<()> {
        self.shared.state().commit(&*self.shared.file)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, Pending> {
        self.state.lock_unpoisoned()
    }
}

#[derive(Debug)]
struct FileMut {
    shared: Arc<Shared>,
    slot: usize,
    generation: u64,
}

impl FileMut {
    /// Fails if the file was removed.
    fn state(&self) -> Result<MutexGuard<'_, Pending>> {
        let state = self.shared.state();
        if state.generations[self.slot] != self.generation {
            return Err(Error::not_found("the file was removed"));
        }
        Ok(state)
    }
}

impl ReadAt for FileMut {
    fn len(&self) -> Result<u64> {
        Ok(self.state()?.header.files[self.slot].len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.state()?.read(&*self.shared.file, self.slot, offset, out)
    }
}

impl WriteAt for FileMut {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.state()?.write(&*self.shared.file, self.slot, offset, data)
    }

    fn copy_raw(&self, offset: u64, bytes: Raw<'_>, by: &dyn RawCopy) -> u64 {
        // the caller sees by writing why it could not be done
        self.state().map_or(0, |mut state| state.copy_raw(&*self.shared.file, self.slot, offset, bytes, by))
    }

    fn reserve(&self, len: u64) -> Result<()> {
        self.state()?.reserve(&*self.shared.file, self.slot, len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.state()?.resize(&*self.shared.file, self.slot, len)
    }

    /// The bytes become durable with the next commit. Fails if the file was removed.
    fn sync(&self) -> Result<()> {
        self.state().map(drop)
    }
}
