//! The uncommitted state of a MultiFile that is written: which blocks are committed, newly
//! allocated or free, and the steps of a commit.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::block_set::BlockSet;
use super::blocks::Blocks;
use super::crc::Crc;
use super::header::{Encoded, Entry, Header};
use super::index::Index;
use super::slots;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::io::{FileTarget, Raw, RawCopy, WriteAt, past_end};

const PIECE_BYTES: u64 = 1 << 18;

/// A "fresh" block was allocated since the last commit and may be overwritten in place; a committed
/// one is not written until the commit after the one that releases it.
#[derive(Debug)]
pub(super) struct Pending {
    /// As the next commit writes it, but with the free list of the last commit: see `free`.
    pub(super) header: Header,
    pub(super) slots: BTreeMap<String, usize>,
    /// Removals of the file in each slot: a handle keeps the number, and so notices a removal.
    pub(super) generations: Vec<u64>,
    /// Blocks that neither the committed header nor the next one refers to.
    pub(super) free: BlockSet,
    /// Blocks of the committed header that become free with the next commit.
    released: BlockSet,
    fresh: BlockSet,
    /// Fresh blocks that hold only zeros; empty without checksums.
    zeros: BlockSet,
    /// Fresh blocks with zeros at their end: the number of bytes before, and their CRC.
    partial: BTreeMap<u64, (u64, Crc)>,
    /// Fresh blocks to be read again for their CRC.
    stale: BlockSet,
    pub(super) changed: bool,
    /// Bytes of block 0 after the header, cleared by the first commit; `None` afterwards or if new.
    slack: Option<Range<u64>>,
    /// A commit failed half way: which header is in the file is then unknown.
    failed: bool,
    /// Version 1: path of the second file of the header.
    extension: Option<PathBuf>,
}

impl Pending {
    pub(super) fn new(header: Header, slack: Option<Range<u64>>) -> Self {
        let mut free = BlockSet::default();
        header.free.ranges().for_each(|range| free.insert(range));
        Pending {
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
            extension: None,
            header,
        }
    }

    pub(super) fn version_1(header: Header, extension: PathBuf) -> Self {
        Pending { extension: Some(extension), ..Self::new(header, None) }
    }

    /// Uses the slot of a removed file if one is free; returns the index of the slot.
    pub(super) fn add_file(&mut self, name: &str) -> usize {
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
        slot
    }

    pub(super) fn read(&self, file: &dyn WriteAt, slot: usize, offset: u64, out: &mut [u8]) -> Result<()> {
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
                    // bytes never written are zeros, and may lie beyond the end of the file
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
        entry.runs(block_bytes, offset, out, read).with_context(|| Context::member(&entry.name))
    }

    pub(super) fn write(&mut self, file: &dyn WriteAt, slot: usize, offset: u64, data: &[u8]) -> Result<()> {
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

    /// Copies within the operating system, and returns the number of bytes: 0 if that is not
    /// possible, and with checksums, for which the bytes have to be read.
    pub(super) fn copy_raw(
        &mut self,
        file: &dyn WriteAt,
        slot: usize,
        offset: u64,
        bytes: Raw<'_>,
        by: &dyn RawCopy,
    ) -> u64 {
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
            let count = file.copy_raw(blocks.start * block_bytes + at % block_bytes, part, by);
            copied += count;
            if count < room {
                break;
            }
        }
        copied
    }

    /// Writes to blocks that [`prepare`](Self::prepare) has allocated and made writable.
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

    /// Preallocates space for the blocks that the file lacks for `len` bytes, less the free blocks.
    pub(super) fn reserve(&self, file: &dyn WriteAt, slot: usize, len: u64) -> Result<()> {
        let Header { block_bytes, blocks, ref files, .. } = self.header;
        let missing = len.div_ceil(block_bytes).saturating_sub(files[slot].index.len() + self.free.len());
        file.reserve(blocks.saturating_add(missing).saturating_mul(block_bytes))
    }

    pub(super) fn resize(&mut self, file: &dyn WriteAt, slot: usize, len: u64) -> Result<()> {
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
        // fresh blocks hold zeros after the end; old ones get theirs when they are replaced
        if let Some(block) = self.header.files[slot].index.find(len / block_bytes).map(|blocks| blocks.start)
            && self.fresh.split(block..block + 1).0
        {
            let start = block * block_bytes;
            zero(file, start + len % block_bytes..start + block_bytes.min(old - len / block_bytes * block_bytes))?;
            self.note_change(block);
        }
        Ok(())
    }

    /// Makes `range` writable without changing committed blocks; extends a shorter file with zeros.
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
        // after the end of the file the last block may hold anything
        let mut entry = if range.end > old_len { range.start.min(old_len) } else { range.start } / block_bytes;
        let behind = range.end.div_ceil(block_bytes).min(old_entries);
        while entry < behind {
            let blocks = self.header.files[slot].index.find(entry).expect("entries below the old number exist");
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

    /// Allocates consecutive blocks, at most `count`; the flag tells whether they hold only zeros.
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

    /// Fresh blocks are free at once, committed ones after the next commit.
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

    /// The CRC of a fresh block has to be computed again.
    fn note_change(&mut self, block: u64) {
        if self.header.checksums.is_some() {
            self.zeros.remove(block..block + 1);
            self.partial.remove(&block);
            self.stale.insert(block..block + 1);
        }
    }

    /// Copies from a committed block to byte `target` of the MultiFile, in a fresh one.
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

    pub(super) fn commit(&mut self, file: &dyn WriteAt) -> Result<()> {
        if self.failed {
            return Err(Error::new(ErrorKind::Io, "an earlier commit failed: open the container again"));
        }
        if !self.changed {
            return Ok(());
        }
        let block_bytes = self.header.block_bytes;
        let (next, free, encoded) = self.next_header(file)?;
        if let Some(path) = self.extension.as_ref().filter(|_| !encoded.rest.is_empty()) {
            let extension = FileTarget::create(path)?;
            extension.write_at(0, &encoded.rest)?;
            extension.sync()?;
        }
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

    /// The header to commit, the blocks that are free afterwards, and the encoded bytes.
    fn next_header(&mut self, file: &dyn WriteAt) -> Result<(Header, BlockSet, Encoded)> {
        if self.header.checksums.is_some() {
            self.finish_checksums(file)?;
        }
        let mut free = self.free.clone();
        self.released.ranges().for_each(|range| free.insert(range));
        // the set that the header in the file is not in; casacore begins with set 1, too
        let target = 1 - self.header.current;
        self.header.free = descending(&free);
        self.header.version = if self.extension.is_some() { 1 } else { 2 };
        if self.header.version == 2 {
            let missing = self.header.blocks_for(target) - self.header.continuation[target].len() as u64;
            let taken = self.take_at_end(missing)?;
            self.header.continuation[target].extend(taken);
        }

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
        // the counter only tells headers apart, and may be anything in a file
        next.counter = next.counter.wrapping_add(1);
        let encoded = next.encode(target);
        Ok((next, free, encoded))
    }

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

/// Casacore allocates the last block of the list first.
fn descending(free: &BlockSet) -> Index {
    let mut index = Index::default();
    free.ranges().rev().for_each(|range| range.rev().for_each(|block| index.push(block..block + 1)));
    index
}

fn lengthen(file: &dyn WriteAt, len: u64) -> Result<()> {
    if file.len()? < len { file.set_len(len) } else { Ok(()) }
}

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
