//! MultiFiles are written as version 2, and nothing that the last commit left is overwritten before the next.
//!
//! A block to which the header in the file refers is *old*. Whatever changes in it goes to another block, which is
//! *fresh* and may be written in place until the commit. The commit then
//!
//! 1. gives every fresh block its checksum,
//! 2. writes the continuation blocks of the set that the old header is not in,
//! 3. syncs: all that the new header will refer to is durable,
//! 4. writes the header's part in block 0, and syncs again: this is the commit,
//! 5. makes the blocks that are no longer referred to free, and cuts free ones off the end of the file.
//!
//! # What is guaranteed
//! Killed before step 4 a process leaves the old state, after it the new one. Step 4 is one write of as many bytes as
//! the fields in block 0 take: up to 512 bytes, a sector, it happens or not even when the power fails; up to 4096 bytes, a
//! page, even when the process is killed in the middle of it. A few dozen files without checksums take less. The format has
//! one block 0 and so no way to make larger ones atomic; with checksums a torn header is at least noticed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block_set::BlockSet;
use super::blocks::Blocks;
use super::crc::Crc;
use super::header::{Encoded, Entry, Header, MAX_BLOCK_BYTES, MIN_BLOCK_BYTES};
use super::index::Index;
use super::{MultiFile, describe, is_nested, layout, no_such_file, read_header, slots};
use crate::container::{Container, ContainerInfo, ContainerMut, FileLayout, check_name};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::io::{Raw, ReadAt, WriteAt, past_end};

/// Copied or zeroed at once.
const PIECE_BYTES: u64 = 1 << 18;

/// A MultiFile that is written.
///
/// What is written to its files, and [`WriteAt::sync`] of them, does not count before [`commit`](ContainerMut::commit).
/// A file lives in whole blocks, so many small files in large blocks waste space. Blocks are taken in the order of
/// the writes: files written one after the other in large pieces lie in few runs.
///
/// ```
/// # fn main() -> ctds_hdf5::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("table.mf");
/// use std::sync::Arc;
/// use ctds_hdf5::io::{FileTarget, ReadAt, WriteAt};
/// use ctds_hdf5::{Container, ContainerMut, Directory, MultiFile, MultiFileMut};
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
    state: Mutex<State>,
}

impl MultiFileMut {
    /// Empties `file` for a container with blocks of `block_bytes`, with or without checksums. Until the first commit
    /// `file` is no MultiFile.
    ///
    /// # Errors
    /// `Usage` if `block_bytes` is not in 128 … 2^30; those of writing.
    pub fn create(file: Arc<dyn WriteAt>, block_bytes: u64, checksums: bool) -> Result<Self> {
        if !(MIN_BLOCK_BYTES..=MAX_BLOCK_BYTES).contains(&block_bytes) {
            return Err(Error::usage(format!(
                "a block size of {block_bytes} bytes, {MIN_BLOCK_BYTES} to {MAX_BLOCK_BYTES} are possible"
            )));
        }
        file.set_len(0)?;
        Ok(Self::over(file, Header::empty(block_bytes, checksums), None))
    }

    /// Opens the file `name` of `inside` to change what is in it. Version 1 becomes version 2 with the first commit;
    /// its file `<name>_hdrext` then means nothing any more and stays, as casacore has it.
    ///
    /// # Errors
    /// `Format` if it is not a MultiFile, its header is damaged or blocks are missing; `Unsupported` if they are larger
    /// than 2^30 bytes; `NotFound`, `Io`.
    pub fn edit(inside: &dyn ContainerMut, name: &str) -> Result<Self> {
        let file = inside.edit(name)?;
        let header = read_header(&file, inside, name)?;
        if header.block_bytes > MAX_BLOCK_BYTES {
            let message = format!("blocks of {} bytes, at most {MAX_BLOCK_BYTES} are written", header.block_bytes);
            return Err(Error::unsupported(message).at(name));
        }
        let there = file.len()?;
        if there.div_ceil(header.block_bytes) < header.blocks {
            let message = format!("{} blocks of {} bytes, but the file has {there}", header.blocks, header.block_bytes);
            return Err(Error::format(message).at(name));
        }
        // what a writer that was killed left behind the last block
        let end = header.blocks * header.block_bytes;
        if file.len()? > end {
            file.set_len(end)?;
        }
        let slack = header.extent..header.block_bytes.min(file.len()?);
        Ok(Self::over(file, header, Some(slack)))
    }

    fn over(file: Arc<dyn WriteAt>, header: Header, slack: Option<Range<u64>>) -> Self {
        let mut free = BlockSet::default();
        header.free.ranges().for_each(|range| free.insert(range));
        let state = State {
            slots: slots(&header),
            generations: vec![0; header.files.len()],
            free,
            released: BlockSet::default(),
            fresh: BlockSet::default(),
            zeros: BlockSet::default(),
            partial: BTreeMap::new(),
            stale: BlockSet::default(),
            changed: header.counter == 0,
            slack,
            failed: false,
            header,
        };
        MultiFileMut { shared: Arc::new(Shared { file, state: Mutex::new(state) }) }
    }

    fn all_names(&self) -> Vec<String> {
        self.shared.state().slots.keys().cloned().collect()
    }

    fn handle(&self, name: &str) -> Result<FileMut> {
        let state = self.shared.state();
        let slot = state.slots.get(name).copied().ok_or_else(|| no_such_file(name))?;
        Ok(FileMut { shared: self.shared.clone(), slot, generation: state.generations[slot] })
    }
}

impl Container for MultiFileMut {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.all_names().into_iter().filter(|name| !is_nested(self, name)).collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(self.handle(name)?))
    }

    fn nested(&self) -> Result<Vec<String>> {
        Ok(self.all_names().into_iter().filter(|name| is_nested(self, name)).collect())
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
        check_name(name)?;
        let mut state = self.shared.state();
        match state.slots.get(name).copied() {
            Some(slot) => state.resize(&*self.shared.file, slot, 0)?,
            None => state.add_file(name),
        }
        drop(state);
        Ok(Arc::new(self.handle(name)?))
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
            return Err(Error::new(ErrorKind::Exists, "there is a file of this name").at(name));
        }
        let file = ContainerMut::create(self, name)?;
        // the parent has the checksums
        let block_bytes = self.shared.state().header.block_bytes;
        Ok(Arc::new(MultiFileMut::create(file, block_bytes, false)?))
    }

    fn commit(&self) -> Result<()> {
        self.shared.state().commit(&*self.shared.file)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file in a MultiFile that is written.
#[derive(Debug)]
struct FileMut {
    shared: Arc<Shared>,
    slot: usize,
    generation: u64,
}

impl FileMut {
    /// The container, if the file is still in it.
    fn state(&self) -> Result<MutexGuard<'_, State>> {
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

    fn copy_raw(&self, offset: u64, bytes: Raw<'_>) -> u64 {
        // the caller sees by writing why it could not be done
        self.state().map_or(0, |mut state| state.copy_raw(&*self.shared.file, self.slot, offset, bytes))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.state()?.resize(&*self.shared.file, self.slot, len)
    }

    /// Nothing: what is written is found again after the container's commit, which syncs.
    fn sync(&self) -> Result<()> {
        self.state().map(drop)
    }
}

/// What the container will be with the next commit.
#[derive(Debug)]
struct State {
    /// Its free blocks are those of the last commit; `free` is kept instead.
    header: Header,
    /// From the name of a file to its slot.
    slots: BTreeMap<String, usize>,
    /// How often each slot was given up.
    generations: Vec<u64>,
    /// Blocks that may be taken: neither the header in the file nor this one refers to them.
    free: BlockSet,
    /// Old blocks that are free after the commit.
    released: BlockSet,
    /// Blocks taken since the last commit.
    fresh: BlockSet,
    /// With checksums, the fresh blocks that hold nothing but zeros,
    zeros: BlockSet,
    /// those that hold zeros after so many bytes with such a checksum,
    partial: BTreeMap<u64, (u64, Crc)>,
    /// and those that must be read again to know their checksum. Others have theirs in the header.
    stale: BlockSet,
    /// Whether there is anything to commit.
    changed: bool,
    /// Bytes of block 0 behind the header, which may be anything until the first commit.
    slack: Option<Range<u64>>,
    /// A commit failed half way: which header is in the file is not known.
    failed: bool,
}

impl State {
    /// Gives `name`, which there is not, a slot.
    fn add_file(&mut self, name: &str) {
        let entry = Entry { name: name.to_owned(), ..Entry::default() };
        let slot = match self.header.files.iter().rposition(|entry| entry.name.is_empty()) {
            Some(slot) => {
                self.header.files[slot] = entry;
                slot
            }
            None => {
                self.header.files.push(entry);
                self.generations.push(0);
                self.header.files.len() - 1
            }
        };
        self.slots.insert(name.to_owned(), slot);
        self.changed = true;
    }

    fn read(&self, file: &dyn WriteAt, slot: usize, offset: u64, out: &mut [u8]) -> Result<()> {
        let Header { block_bytes, ref files, ref checksums, .. } = self.header;
        let blocks = Blocks { file: &file, block_bytes, checksums: checksums.as_deref() };
        let file_len = file.len()?;
        let entry = &files[slot];
        let read = |block: u64, within: u64, out: &mut [u8]| {
            let (mut block, mut within, mut out) = (block, within, out);
            while !out.is_empty() {
                let end = block + (within + out.len() as u64).div_ceil(block_bytes);
                let (fresh, part) = self.fresh.split(block..end);
                let room = (part.end - part.start) * block_bytes - within;
                let (now, later) = out.split_at_mut(room.min(out.len() as u64) as usize);
                if fresh {
                    // what was never written is zeros, and perhaps not there yet
                    let at = block * block_bytes + within;
                    let there = file_len.saturating_sub(at).min(now.len() as u64) as usize;
                    if there > 0 {
                        file.read_at(at, &mut now[..there])?;
                    }
                    now[there..].fill(0);
                } else {
                    blocks.read(block, within, now, |_| false, |_| {})?;
                }
                (block, within, out) = (part.end, 0, later);
            }
            Ok(())
        };
        entry.runs(block_bytes, offset, out, read).at_with(|| entry.name.clone())
    }

    fn write(&mut self, file: &dyn WriteAt, slot: usize, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset.checked_add(data.len() as u64).filter(|&end| end <= i64::MAX as u64);
        let Some(end) = end else { return Err(past_end(offset, data.len() as u64, i64::MAX as u64)) };
        if data.is_empty() {
            return Ok(());
        }
        self.prepare(file, slot, offset..end)?;
        let written = self.put_all(file, slot, offset, data);
        if written.is_err() {
            // blocks that were free before may still hold what they held then
            let block_bytes = self.header.block_bytes;
            for entry in offset / block_bytes..end.div_ceil(block_bytes) {
                self.header.files[slot].index.find(entry).into_iter().for_each(|blocks| self.note_change(blocks.start));
            }
        }
        written
    }

    /// Copies bytes that this process need not see; says how many, which may be none. With checksums it has to see them.
    fn copy_raw(&mut self, file: &dyn WriteAt, slot: usize, offset: u64, bytes: Raw<'_>) -> u64 {
        let block_bytes = self.header.block_bytes;
        let end = offset.checked_add(bytes.len).filter(|&end| end <= i64::MAX as u64);
        let Some(end) = end.filter(|_| self.header.checksums.is_none()) else { return 0 };
        if self.prepare(file, slot, offset..end).is_err() {
            return 0;
        }
        let mut copied = 0;
        while copied < bytes.len {
            let at = offset + copied;
            let Some(blocks) = self.header.files[slot].index.find(at / block_bytes) else { break };
            let room = ((blocks.end - blocks.start) * block_bytes - at % block_bytes).min(bytes.len - copied);
            let part = Raw { file: bytes.file, offset: bytes.offset + copied, len: room };
            let count = file.copy_raw(blocks.start * block_bytes + at % block_bytes, part);
            copied += count;
            if count < room {
                break;
            }
        }
        copied
    }

    /// Writes to blocks that [`prepare`](Self::prepare) made.
    fn put_all(&mut self, file: &dyn WriteAt, slot: usize, mut offset: u64, mut data: &[u8]) -> Result<()> {
        let block_bytes = self.header.block_bytes;
        while !data.is_empty() {
            let blocks = self.header.files[slot].index.find(offset / block_bytes);
            let blocks = blocks.expect("all entries up to the end were made");
            let within = offset % block_bytes;
            let room = ((blocks.end - blocks.start) * block_bytes - within).min(data.len() as u64);
            let (part, rest) = data.split_at(room as usize);
            self.put(file, blocks.start, within, part)?;
            offset += room;
            data = rest;
        }
        Ok(())
    }

    fn resize(&mut self, file: &dyn WriteAt, slot: usize, len: u64) -> Result<()> {
        let block_bytes = self.header.block_bytes;
        let entry = &mut self.header.files[slot];
        if len > entry.len {
            return match i64::try_from(len) {
                Ok(_) => self.prepare(file, slot, len..len),
                Err(_) => Err(past_end(len, 0, i64::MAX as u64)),
            };
        }
        let old = std::mem::replace(&mut entry.len, len);
        if old == len {
            return Ok(());
        }
        self.changed = true;
        for range in entry.index.truncate(len.div_ceil(block_bytes)) {
            self.release(range);
        }
        // fresh blocks hold zeros behind the end; in an old one that is seen to when it is replaced
        if let Some(block) = self.header.files[slot].index.find(len / block_bytes).map(|blocks| blocks.start)
            && self.fresh.split(block..block + 1).0
        {
            let start = block * block_bytes;
            zero(file, start + len % block_bytes..start + block_bytes.min(old - len / block_bytes * block_bytes))?;
            self.note_change(block);
        }
        Ok(())
    }

    /// Sees to it that the bytes `range` of a file may be written in place, and that the file ends behind them. Zeros
    /// go in between where it was shorter.
    fn prepare(&mut self, file: &dyn WriteAt, slot: usize, range: Range<u64>) -> Result<()> {
        let block_bytes = self.header.block_bytes;
        let old_len = self.header.files[slot].len;
        let old_entries = self.header.files[slot].index.len();
        self.changed = true;

        let mut entries = old_entries;
        while entries < range.end.div_ceil(block_bytes) {
            let (blocks, clean) = self.take(range.end.div_ceil(block_bytes) - entries)?;
            let count = blocks.end - blocks.start;
            if !clean {
                let at = |byte: u64| {
                    let start = entries * block_bytes;
                    blocks.start * block_bytes + (byte.clamp(start, start + count * block_bytes) - start)
                };
                zero(file, blocks.start * block_bytes..at(range.start))?;
                zero(file, at(range.end)..blocks.end * block_bytes)?;
            }
            self.header.files[slot].index.push(blocks);
            entries += count;
        }
        // behind the end of the file the last block may hold anything
        let mut entry = if range.end > old_len { range.start.min(old_len) } else { range.start } / block_bytes;
        let behind = range.end.div_ceil(block_bytes).min(old_entries);
        while entry < behind {
            let blocks = self.header.files[slot].index.find(entry).expect("entries below the old number are there");
            let (fresh, old) = self.fresh.split(blocks.start..blocks.end.min(blocks.start + (behind - entry)));
            if fresh {
                entry += old.end - old.start;
                continue;
            }
            let (new, clean) = self.take(old.end - old.start)?;
            let count = new.end - new.start;
            let old = old.start..old.start + count;
            // of these blocks the bytes that are not overwritten
            let bytes = entry * block_bytes..(entry + count) * block_bytes;
            for kept in [bytes.start..range.start.min(bytes.end), range.end.max(bytes.start)..bytes.end] {
                let known = kept.start..kept.end.min(old_len).max(kept.start);
                let place = |byte: u64| new.start * block_bytes + (byte - bytes.start);
                let from = old.start + (known.start - bytes.start) / block_bytes;
                self.copy(file, from, known.start % block_bytes, place(known.start), known.end - known.start)?;
                if !clean && known.end < kept.end {
                    zero(file, place(known.end)..place(kept.end))?;
                }
            }
            self.header.files[slot].index.replace(entry, new);
            self.release(old);
            entry += count;
        }
        let entry = &mut self.header.files[slot];
        entry.len = entry.len.max(range.end);
        Ok(())
    }

    /// Takes blocks, at most `count` and consecutive; whether they hold zeros.
    fn take(&mut self, count: u64) -> Result<(Range<u64>, bool)> {
        let (taken, clean) = match self.free.take(count) {
            Some(taken) => (taken, false),
            None => (self.take_at_end(count)?, true),
        };
        self.fresh.insert(taken.clone());
        if self.header.checksums.is_some() {
            self.zeros.insert(taken.clone());
        }
        Ok((taken, clean))
    }

    fn take_at_end(&mut self, count: u64) -> Result<Range<u64>> {
        let start = self.header.blocks;
        let most = i64::MAX as u64 / self.header.block_bytes;
        let end = start.checked_add(count).filter(|&end| end <= most);
        let end =
            end.ok_or_else(|| Error::new(ErrorKind::NoSpace, format!("no more than {most} blocks are possible")))?;
        self.header.blocks = end;
        Ok(start..end)
    }

    /// Gives blocks up: fresh ones at once, old ones with the commit.
    fn release(&mut self, mut range: Range<u64>) {
        while !range.is_empty() {
            let (fresh, part) = self.fresh.split(range.clone());
            range.start = part.end;
            if let Some(checksums) = &mut self.header.checksums {
                let len = checksums.len() as u64;
                checksums[part.start.min(len) as usize..part.end.min(len) as usize].fill(0);
            }
            if !fresh {
                self.released.insert(part);
                continue;
            }
            self.fresh.remove(part.clone());
            self.zeros.remove(part.clone());
            self.stale.remove(part.clone());
            self.partial.retain(|block, _| !part.contains(block));
            self.free.insert(part);
        }
    }

    /// Writes to fresh blocks, from byte `within` of `block` on.
    fn put(&mut self, file: &dyn WriteAt, block: u64, within: u64, data: &[u8]) -> Result<()> {
        let block_bytes = self.header.block_bytes;
        file.write_at(block * block_bytes + within, data)?;
        if self.header.checksums.is_none() {
            return Ok(());
        }
        let (mut block, mut within, mut data) = (block, within, data);
        while !data.is_empty() {
            let (part, rest) = data.split_at((block_bytes - within).min(data.len() as u64) as usize);
            let (is_zeros, _) = self.zeros.split(block..block + 1);
            let begun = if is_zeros || part.len() as u64 == block_bytes {
                Some((0, Crc::new()))
            } else {
                self.partial.remove(&block)
            };
            self.note_change(block);
            if let Some((done, mut crc)) = begun
                && done <= within
            {
                crc.zeros(within - done);
                crc.update(part);
                self.stale.remove(block..block + 1);
                let done = within + part.len() as u64;
                if done < block_bytes {
                    self.partial.insert(block, (done, crc));
                } else {
                    self.header.set_checksum(block, crc.finish());
                }
            }
            (block, within, data) = (block + 1, 0, rest);
        }
        Ok(())
    }

    /// Some bytes of a fresh block change.
    fn note_change(&mut self, block: u64) {
        if self.header.checksums.is_some() {
            self.zeros.remove(block..block + 1);
            self.partial.remove(&block);
            self.stale.insert(block..block + 1);
        }
    }

    /// Copies `count` bytes of an old block to `target`, which is in a fresh one.
    fn copy(&mut self, file: &dyn WriteAt, block: u64, within: u64, target: u64, count: u64) -> Result<()> {
        let block_bytes = self.header.block_bytes;
        let mut piece = vec![0; count.min(PIECE_BYTES) as usize];
        let mut done = 0;
        while done < count {
            let piece = &mut piece[..(count - done).min(PIECE_BYTES) as usize];
            let checksums = self.header.checksums.as_deref();
            // the first piece checks all of the block
            Blocks { file: &file, block_bytes, checksums }.read(block, within + done, piece, |_| done > 0, |_| {})?;
            let at = target + done;
            self.put(file, at / block_bytes, at % block_bytes, piece)?;
            done += piece.len() as u64;
        }
        Ok(())
    }

    fn commit(&mut self, file: &dyn WriteAt) -> Result<()> {
        if self.failed {
            return Err(Error::new(ErrorKind::Io, "an earlier commit failed"));
        }
        if !self.changed {
            return Ok(());
        }
        let block_bytes = self.header.block_bytes;
        let (next, free, encoded) = self.next_header(file)?;
        for (block, piece) in &encoded.pieces {
            file.write_at(block * block_bytes, piece)?;
        }
        lengthen(file, next.blocks * block_bytes)?;
        if let Some(slack) = self.slack.take() {
            zero(file, slack)?;
        }
        file.sync()?;

        self.failed = true;
        let mut head = encoded.head;
        head.resize(head.len().max(self.header.extent as usize), 0);
        file.write_at(0, &head)?;
        file.sync()?;
        self.failed = false;

        if file.len()? > next.blocks * block_bytes {
            file.set_len(next.blocks * block_bytes)?;
        }
        self.header = next;
        self.free = free;
        self.changed = false;
        for set in [&mut self.released, &mut self.fresh, &mut self.zeros, &mut self.stale] {
            *set = BlockSet::default();
        }
        self.partial.clear();
        Ok(())
    }

    /// The header to be committed, what is free then, and its bytes.
    fn next_header(&mut self, file: &dyn WriteAt) -> Result<(Header, BlockSet, Encoded)> {
        if self.header.checksums.is_some() {
            self.finish_checksums(file)?;
        }
        let mut free = self.free.clone();
        self.released.ranges().for_each(|range| free.insert(range));
        // the set that the header in the file is not in; casacore begins with set 1, too
        let target = 1 - self.header.current;
        self.header.free = descending(&free);
        self.header.version = 2;
        let missing = self.header.blocks_for(target) - self.header.continuation[target].len() as u64;
        let taken = self.take_at_end(missing)?;
        self.header.continuation[target].extend(taken);

        let mut next = self.header.clone();
        let last = free.ranges().next_back();
        if let Some(last) = last.filter(|last| last.end == next.blocks) {
            next.blocks = last.start;
            free.remove(last);
        }
        next.free = descending(&free);
        if let Some(checksums) = &mut next.checksums {
            checksums.truncate(next.blocks as usize);
        }
        // it only tells headers apart, and may be anything in a file
        next.counter = next.counter.wrapping_add(1);
        let encoded = next.encode(target);
        Ok((next, free, encoded))
    }

    /// Gives every fresh block its checksum.
    fn finish_checksums(&mut self, file: &dyn WriteAt) -> Result<()> {
        let block_bytes = self.header.block_bytes;
        lengthen(file, self.header.blocks * block_bytes)?;
        let mut found = Vec::new();
        if self.zeros.len() > 0 {
            let mut crc = Crc::new();
            crc.zeros(block_bytes);
            found.extend(self.zeros.ranges().flatten().map(|block| (block, crc.finish())));
        }
        for (&block, &(done, mut crc)) in &self.partial {
            crc.zeros(block_bytes - done);
            found.push((block, crc.finish()));
        }
        for block in self.stale.ranges().flatten() {
            let blocks = Blocks { file: &file, block_bytes, checksums: None };
            found.push((block, blocks.crc(block)?));
        }
        found.into_iter().for_each(|(block, crc)| self.header.set_checksum(block, crc));
        Ok(())
    }
}

/// Free blocks as the header has them: casacore takes the last one first.
fn descending(free: &BlockSet) -> Index {
    let mut index = Index::default();
    free.ranges().rev().for_each(|range| range.rev().for_each(|block| index.push(block..block + 1)));
    index
}

/// Zeros up to `len`, where the file is shorter.
fn lengthen(file: &dyn WriteAt, len: u64) -> Result<()> {
    if file.len()? < len { file.set_len(len) } else { Ok(()) }
}

/// Puts zeros into the bytes `range`.
fn zero(file: &dyn WriteAt, range: Range<u64>) -> Result<()> {
    let zeros = vec![0; range.end.saturating_sub(range.start).min(PIECE_BYTES) as usize];
    let mut position = range.start;
    while position < range.end {
        let count = (range.end - position).min(PIECE_BYTES);
        file.write_at(position, &zeros[..count as usize])?;
        position += count;
    }
    Ok(())
}
