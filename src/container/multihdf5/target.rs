//! A virtual file that is written: blocks in memory, filtered on all threads, stored whole.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::write::{Access, Store, group};
use super::{DATA, SHA256, VirtualFile};
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Bounds, ByteFilters, ByteRows, Dataset, FilterScratch, Group, Pipeline, Storage};
use crate::io::{FileSource, ReadAt, WriteAt, past_end};
use crate::sha::hex;
use crate::value::{DataType, Region, Shape, Values};

/// Blocks of a file that are kept in memory, and filtered blocks on their way to the file.
const CACHE_BYTES: u64 = 8 << 20;
/// What a file is read in that has to be stored anew or hashed.
const COPY_BYTES: u64 = 1 << 22;
/// While the bytes of a file move to a dataset of another form.
const NEXT: &str = "FileData.next";

/// A file of a container that is written.
pub(super) struct Target {
    store: Arc<Store>,
    /// Of its group, from the root.
    path: String,
    block_bytes: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    len: u64,
    /// Whether `len` is known to be that of the whole file, so that its dataset need not grow.
    is_final: bool,
    changed: bool,
    /// Removed from the container.
    detached: bool,
    blocks: BTreeMap<u64, Block>,
    /// The dataset holds the file's bytes up to here.
    stored_len: u64,
    open: Option<OpenDataset>,
    /// The hash of as many bytes as were written one after the other from the start on.
    hash: Option<(Sha256, u64)>,
}

struct Block {
    bytes: Vec<u8>,
    dirty: bool,
}

/// The dataset of one of the files that a [`Store`] opens one after the other.
struct OpenDataset {
    generation: u64,
    /// None if nothing was stored yet.
    rows: Option<Rows>,
}

struct Rows {
    dataset: Dataset,
    pipeline: Pipeline,
    count: u64,
    appendable: bool,
    /// What was there when it was opened, while nothing was stored since.
    unchanged: Option<VirtualFile>,
    /// Whether blocks can be stored: a row each, of which none lies behind the end of the file.
    ready: bool,
}

impl Target {
    /// A file without bytes, whose group is there.
    pub(super) fn new(store: Arc<Store>, path: String, block_bytes: u64) -> Self {
        let state = State { changed: true, hash: Some((Sha256::new(), 0)), ..State::default() };
        Target { store, path, block_bytes, state: Mutex::new(state) }
    }

    /// A file that is there.
    pub(super) fn existing(store: Arc<Store>, path: String, block_bytes: u64, len: u64) -> Self {
        let state = State { len, stored_len: len, ..State::default() };
        Target { store, path, block_bytes, state: Mutex::new(state) }
    }

    /// A file that is there and was appended to since its last commit.
    pub(super) fn appended(store: Arc<Store>, path: String, block_bytes: u64, len: u64) -> Self {
        let state = State { len, stored_len: len, changed: true, ..State::default() };
        Target { store, path, block_bytes, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is not stored: the file was removed.
    pub(super) fn detach(&self) {
        let mut state = self.state();
        state.blocks.clear();
        state.detached = true;
        state.changed = false;
    }

    /// Stores everything, for a commit; whether anything changed since the last.
    pub(super) fn finish(&self) -> Result<bool> {
        let state = &mut *self.state();
        if !state.changed || state.detached {
            return Ok(false);
        }
        self.store_dirty(state, true)?;
        let hash = if self.store.options.archive { Some(self.hash(state)?) } else { None };
        self.store.change(|access| {
            let count = state.len.div_ceil(self.block_bytes);
            self.ready(state, access, count)?;
            let spare = self.spare(count);
            if let Some(rows) = self.rows(state)
                && rows.appendable
                && rows.count != count + spare
            {
                rows.dataset.set_extent(count + spare)?;
                rows.count = count + spare;
            }
            match &hash {
                Some(hash) => group(access, &self.path)?.set_attribute(SHA256, &Attribute::string(hash.as_str())),
                None => Ok(()),
            }
        })?;
        state.changed = false;
        Ok(true)
    }

    /// Rows behind the last one, as casacore has them.
    fn spare(&self, count: u64) -> u64 {
        u64::from(self.store.bounds() == Bounds::Earliest && count > 0)
    }

    fn filters(&self) -> ByteFilters {
        ByteFilters { compression: self.store.options.compression, checksums: self.store.options.checksums }
    }

    fn rows<'a>(&self, state: &'a mut State) -> Option<&'a mut Rows> {
        state.open.as_mut()?.rows.as_mut()
    }

    /// Opens the dataset, unless it is.
    fn attach(&self, state: &mut State, access: &Access<'_>) -> Result<()> {
        if state.open.as_ref().is_some_and(|open| open.generation == access.generation) {
            return Ok(());
        }
        let group = group(access, &self.path)?;
        let rows = match group.has(DATA) {
            true => Some(self.open_rows(group.dataset(DATA)?, access, state.stored_len)?),
            false if state.stored_len > 0 => {
                return Err(Error::format(format!("group {} has no {DATA}", group.path())));
            }
            false => None,
        };
        state.open = Some(OpenDataset { generation: access.generation, rows });
        Ok(())
    }

    fn open_rows(&self, dataset: Dataset, access: &Access<'_>, len: u64) -> Result<Rows> {
        let source = Arc::new(FileSource::open(access.path)?);
        let unchanged = Some(VirtualFile::new(&dataset, source, self.block_bytes, len)?);
        let pipeline = dataset.pipeline()?.ok_or_else(|| Error::unsupported("a filter is unknown"))?;
        let count = dataset.shape()?.last().copied().unwrap_or(0);
        let appendable = dataset.is_appendable()?;
        Ok(Rows { dataset, pipeline, count, appendable, unchanged, ready: false })
    }

    /// Makes the dataset one of at least `count` rows into which blocks can be stored.
    fn ready(&self, state: &mut State, access: &Access<'_>, count: u64) -> Result<()> {
        self.attach(state, access)?;
        if self.rows(state).is_some_and(|rows| rows.ready && rows.count >= count) {
            return Ok(());
        }
        let (stored_len, len, is_final) = (state.stored_len, state.len, state.is_final);
        let group = group(access, &self.path)?;
        let Some(rows) = self.rows(state) else {
            let all = len.div_ceil(self.block_bytes).max(count);
            // a fixed number of 0 rows has no chunks
            let options = &self.store.options;
            let appendable = !options.archive || options.appendable || !is_final || all == 0;
            let rows = self.create_rows(&group, DATA, if appendable { count } else { all }, appendable)?;
            if let Some(open) = &mut state.open {
                open.rows = Some(rows);
            }
            return Ok(());
        };
        if !rows.ready {
            let shape = Shape::from([self.block_bytes, 1]);
            let is_ours = rows.dataset.storage()? == Storage::Chunks
                && rows.dataset.chunk()?.is_some_and(|chunk| chunk == shape)
                && rows.dataset.shape()?.first() == Some(&self.block_bytes)
                && rows.dataset.fill_byte()?.unwrap_or(0) == 0;
            if !is_ours {
                self.replace(&group, rows, access, stored_len)?;
            } else {
                // what lies behind the end would come back when the file grows
                let kept = stored_len.div_ceil(self.block_bytes);
                if rows.count > kept {
                    rows.dataset.set_extent(kept)?;
                    rows.count = kept;
                }
            }
            rows.ready = true;
        }
        if rows.count < count {
            if !rows.appendable {
                self.replace(&group, rows, access, stored_len)?;
            }
            let extent = count + self.spare(count);
            rows.dataset.set_extent(extent)?;
            rows.count = extent;
        }
        Ok(())
    }

    fn create_rows(&self, group: &Group, name: &str, count: u64, appendable: bool) -> Result<Rows> {
        let spec = ByteRows { row_bytes: self.block_bytes, rows: count, appendable, filters: self.filters() };
        let dataset = group.create_byte_rows(self.store.bounds(), name, &spec)?;
        Ok(Rows { dataset, pipeline: self.filters().pipeline(), count, appendable, unchanged: None, ready: true })
    }

    /// Moves the file's bytes to a dataset that can grow.
    fn replace(&self, group: &Group, rows: &mut Rows, access: &Access<'_>, len: u64) -> Result<()> {
        let source = Arc::new(FileSource::open(access.path)?);
        let old = VirtualFile::new(&rows.dataset, source, self.block_bytes, len)?;
        let new = self.create_rows(group, NEXT, len.div_ceil(self.block_bytes), true)?;
        let (mut scratch, mut stored) = (FilterScratch::default(), Vec::new());
        let mut block = vec![0; self.block_bytes as usize];
        for number in 0..new.count {
            let start = number * self.block_bytes;
            let part = (len - start).min(self.block_bytes) as usize;
            old.read_at(start, &mut block[..part])?;
            block[part..].fill(0);
            new.pipeline.encode(&mut scratch, &block, &mut stored)?;
            new.dataset.write_chunk(&[0, number], &stored, 0)?;
        }
        group.remove(DATA)?;
        group.rename(NEXT, DATA)?;
        *rows = new;
        Ok(())
    }

    /// Stores whole blocks: their numbers and bytes.
    fn store_blocks(&self, state: &mut State, blocks: &[(u64, &[u8])]) -> Result<()> {
        let Some(last) = blocks.iter().map(|(number, _)| *number).max() else { return Ok(()) };
        self.store.change(|access| self.ready(state, access, last + 1))?;
        let pipeline = self.rows(state).map_or_else(|| Pipeline::new(Vec::new()), |rows| rows.pipeline.clone());
        let batch = (CACHE_BYTES / self.block_bytes).clamp(4, 1 << 16) as usize;
        for batch in blocks.chunks(batch) {
            let filtered: Vec<Vec<u8>> = match pipeline.is_empty() {
                true => Vec::new(),
                false => batch
                    .par_iter()
                    .map_init(FilterScratch::default, |scratch, (_, bytes)| {
                        let mut stored = Vec::new();
                        pipeline.encode(scratch, bytes, &mut stored)?;
                        Ok(stored)
                    })
                    .collect::<Result<_>>()?,
            };
            self.store.change(|access| {
                self.ready(state, access, last + 1)?;
                let Some(rows) = self.rows(state) else { return Ok(()) };
                rows.unchanged = None;
                for (at, (number, bytes)) in batch.iter().enumerate() {
                    let stored = filtered.get(at).map_or(*bytes, Vec::as_slice);
                    rows.dataset.write_chunk(&[0, *number], stored, 0)?;
                }
                Ok(())
            })?;
            self.store.write_back();
        }
        state.stored_len = state.stored_len.max(((last + 1) * self.block_bytes).min(state.len));
        Ok(())
    }

    /// Stores the blocks that are in memory only; `is_final` if nothing more is to come.
    fn store_dirty(&self, state: &mut State, is_final: bool) -> Result<()> {
        state.is_final |= is_final && state.open.as_ref().is_none_or(|open| open.rows.is_none());
        let mut blocks = std::mem::take(&mut state.blocks);
        let dirty: Vec<_> =
            blocks.iter().filter(|(_, block)| block.dirty).map(|(number, block)| (*number, &*block.bytes)).collect();
        let stored = self.store_blocks(state, &dirty);
        if stored.is_ok() {
            blocks.values_mut().for_each(|block| block.dirty = false);
        }
        state.blocks = blocks;
        stored
    }

    /// Fills `out` with what is stored from `offset` on, zeros behind its end; not what is in memory.
    fn read_stored(&self, state: &mut State, offset: u64, out: &mut [u8]) -> Result<()> {
        let there = state.stored_len.saturating_sub(offset).min(out.len() as u64) as usize;
        let (out, behind) = out.split_at_mut(there);
        behind.fill(0);
        if there == 0 {
            return Ok(());
        }
        self.store.read(|access| self.attach(state, access))?;
        let stored_len = state.stored_len;
        let Some(rows) = self.rows(state) else { return Err(past_end(offset, there as u64, 0)) };
        if let Some(unchanged) = rows.unchanged.as_ref().filter(|file| file.len().is_ok_and(|len| len >= stored_len)) {
            return unchanged.read_at(offset, out);
        }
        let first = offset / self.block_bytes;
        let mut row = Values::new(DataType::UChar);
        let mut done = 0;
        for number in first.. {
            let within = (offset + done as u64 - number * self.block_bytes) as usize;
            let count = (self.block_bytes as usize - within).min(out.len() - done);
            row = match row {
                Values::UChar(mut bytes) => {
                    bytes.clear();
                    Values::UChar(bytes)
                }
                other => other,
            };
            let region = Region { start: Shape::from([within as u64, number]), shape: Shape::from([count as u64, 1]) };
            rows.dataset.read_region(&region, &mut row)?;
            let Values::UChar(bytes) = &row else { return Err(Error::format("no bytes")) };
            out[done..done + count].copy_from_slice(bytes);
            done += count;
            if done == out.len() {
                break;
            }
        }
        Ok(())
    }

    /// The block in memory, from the file if need be.
    fn block<'a>(&self, state: &'a mut State, number: u64) -> Result<&'a mut Block> {
        if !state.blocks.contains_key(&number) {
            if (state.blocks.len() as u64 + 1) * self.block_bytes > CACHE_BYTES.max(2 * self.block_bytes) {
                self.store_dirty(state, false)?;
                state.blocks.clear();
            }
            let mut bytes = vec![0; self.block_bytes as usize];
            self.read_stored(state, number * self.block_bytes, &mut bytes)?;
            state.blocks.insert(number, Block { bytes, dirty: false });
        }
        state.blocks.get_mut(&number).ok_or_else(|| Error::usage("a block that is not there"))
    }

    /// Changes the length of a file that has not more bytes in memory or stored than `len`.
    fn grow(&self, state: &mut State, len: u64) -> Result<()> {
        if len > i64::MAX as u64 {
            return Err(Error::usage(format!("a file of {len} bytes")));
        }
        // bytes behind the old end become zeros of the file
        if !state.len.is_multiple_of(self.block_bytes) {
            let last = state.len / self.block_bytes;
            self.block(state, last)?.dirty = true;
        }
        state.len = len;
        Ok(())
    }

    fn write(&self, state: &mut State, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset.checked_add(data.len() as u64).ok_or_else(|| Error::usage("a file of 2^64 bytes"))?;
        if end > state.len {
            self.grow(state, end)?;
        }
        // a file that fits into memory is not stored before its length is known
        let options = &self.store.options;
        let wait = options.archive && !options.appendable && !state.is_final && end <= CACHE_BYTES;
        let wait = wait && state.open.as_ref().is_none_or(|open| open.rows.is_none());
        let size = self.block_bytes as usize;
        // blocks are filtered on all threads, if there are several
        let direct = if self.filters() == ByteFilters::default() { size } else { size.max(CACHE_BYTES as usize) };
        let (mut at, mut data) = (offset, data);
        while !data.is_empty() {
            let (number, within) = (at / self.block_bytes, (at % self.block_bytes) as usize);
            let count = match within == 0 && data.len() >= direct && !wait {
                true => {
                    let whole = &data[..data.len() / size * size];
                    let blocks: Vec<_> = (number..).zip(whole.chunks_exact(size)).collect();
                    let last = number + blocks.len() as u64;
                    state.blocks.retain(|known, _| !(number..last).contains(known));
                    self.store_blocks(state, &blocks)?;
                    whole.len()
                }
                false => {
                    let count = (size - within).min(data.len());
                    let block = self.block(state, number)?;
                    block.bytes[within..within + count].copy_from_slice(&data[..count]);
                    block.dirty = true;
                    count
                }
            };
            at += count as u64;
            data = &data[count..];
        }
        Ok(())
    }

    /// The SHA-256 of the file in hexadecimal digits.
    fn hash(&self, state: &mut State) -> Result<String> {
        let (mut hash, mut at) = state.hash.take().unwrap_or_default();
        let mut buffer = Vec::new();
        let done = (hash.clone(), at);
        while at < state.len {
            buffer.resize((state.len - at).min(COPY_BYTES) as usize, 0);
            self.read_through(state, at, &mut buffer)?;
            hash.update(&buffer);
            at += buffer.len() as u64;
        }
        state.hash = Some(if at == done.1 { done } else { (hash.clone(), at) });
        Ok(hex(&hash.finalize().into()))
    }

    /// Fills `out` from memory and file.
    fn read_through(&self, state: &mut State, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let (number, within) = (at / self.block_bytes, (at % self.block_bytes) as usize);
            let count = (self.block_bytes as usize - within).min(out.len() - done);
            let part = &mut out[done..done + count];
            match state.blocks.get(&number) {
                Some(block) => part.copy_from_slice(&block.bytes[within..within + count]),
                None if count as u64 == self.block_bytes => self.read_stored(state, at, part)?,
                None => part.copy_from_slice(&self.block(state, number)?.bytes[within..within + count]),
            }
            done += count;
        }
        Ok(())
    }
}

impl ReadAt for Target {
    fn len(&self) -> Result<u64> {
        Ok(self.state().len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let state = &mut *self.state();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.len) {
            return Err(past_end(offset, out.len() as u64, state.len));
        }
        self.read_through(state, offset, out).with_context(|| &self.path)
    }
}

impl WriteAt for Target {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let state = &mut *self.state();
        if state.detached {
            return Err(Error::not_found("the file was removed").context(&self.path));
        }
        state.changed = true;
        let mut hash = if self.store.options.archive { state.hash.take() } else { None };
        let written = match &mut hash {
            Some((hash, hashed)) if *hashed == offset => {
                *hashed += data.len() as u64;
                // the longer one first, so that it is not what others wait for
                rayon::join(|| hash.update(data), || self.write(state, offset, data)).1
            }
            _ => {
                // what was hashed has changed
                hash = hash.filter(|(_, hashed)| *hashed <= offset);
                self.write(state, offset, data)
            }
        };
        state.hash = hash;
        written.with_context(|| &self.path)
    }

    /// Known before the first byte, the length makes the dataset one that need not grow.
    fn reserve(&self, len: u64) -> Result<()> {
        if self.len()? == 0 {
            self.set_len(len)?;
            if self.store.options.compression.is_none() {
                self.store.reserve(len.next_multiple_of(self.block_bytes)).with_context(|| &self.path)?;
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let state = &mut *self.state();
        let mut set = || {
            if state.detached {
                return Err(Error::not_found("the file was removed"));
            }
            state.changed = true;
            if len >= state.len {
                // known before the first byte: then the dataset need not grow
                state.is_final |= state.len == 0 && state.open.is_none();
                return self.grow(state, len);
            }
            let kept = len.div_ceil(self.block_bytes);
            state.blocks.retain(|number, _| *number < kept);
            let behind = (len % self.block_bytes) as usize;
            if behind != 0 {
                let block = self.block(state, len / self.block_bytes)?;
                block.bytes[behind..].fill(0);
                block.dirty = true;
            }
            state.len = len;
            state.hash = state.hash.take().filter(|(_, hashed)| *hashed <= len);
            if state.stored_len > len {
                self.store.change(|access| {
                    self.ready(state, access, 0)?;
                    let Some(rows) = self.rows(state) else { return Ok(()) };
                    if rows.count > kept {
                        rows.dataset.set_extent(kept)?;
                        rows.count = kept;
                    }
                    rows.unchanged = None;
                    Ok(())
                })?;
                state.stored_len = len;
            }
            Ok(())
        };
        set().with_context(|| &self.path)
    }

    /// Hands everything to the HDF5 file; it is durable with the commit of the container.
    fn sync(&self) -> Result<()> {
        let state = &mut *self.state();
        if state.detached {
            return Ok(());
        }
        self.store_dirty(state, true).with_context(|| &self.path)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.path).finish()
    }
}
