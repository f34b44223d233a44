//! A virtual file (a file in a MultiHDF5 container) open for writing: its blocks are kept in
//! memory, filtered on all threads and stored whole.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use rayon::prelude::*;

use super::names::{DATA, NEXT_DATA};
use super::store::{Access, Store};
use super::virtual_file::VirtualFile;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{Attribute, Bounds, ByteFilters, ByteRows, Compression, Dataset, FilterScratch, Pipeline, Storage};
use crate::hash::{Hash, Hasher};
use crate::io::{FileSource, ReadAt, WriteAt, past_end};
use crate::sync::LockUnpoisoned;
use crate::value::{Region, Shape, Values};

/// Bytes of blocks kept in memory for each virtual file, and of blocks filtered together.
const CACHE_BYTES: u64 = 8 << 20;
/// Buffer in which a hash is computed.
const COPY_BYTES: u64 = 1 << 22;

pub(super) struct StoredFile {
    store: Arc<Store>,
    /// Group of the virtual file, from the root.
    path: String,
    block_bytes: u64,
    state: Mutex<FileState>,
}

struct FileState {
    /// Bytes, those only in memory included.
    len: u64,
    /// Bytes that the dataset holds.
    stored_len: u64,
    /// Since the last commit.
    changed: bool,
    phase: Phase,
    /// Blocks in memory, by number from 0; newer than the dataset's.
    blocks: BTreeMap<u64, Block>,
    /// Hash of the first bytes, and their number, in sequence; `None` if the file must be read.
    hash: Option<(Hasher, u64)>,
}

struct Block {
    bytes: Vec<u8>,
    dirty: bool,
}

enum Phase {
    /// Nothing is stored, and the length can change. A file of up to 8 MiB stays in memory until
    /// its length is final, unless casacore has to read the container or files can grow later.
    New,
    /// Nothing is stored, but the length is final: the dataset need not grow.
    Buffered,
    /// The open dataset; `None` before it is used.
    Stored(Option<Box<StoredRows>>),
    /// Removed from the container; any further access fails.
    Detached,
}

struct StoredRows {
    /// [`Access::generation`] when the dataset was opened; it is opened again in another HDF5 file.
    generation: u64,
    dataset: Dataset,
    pipeline: Pipeline,
    count: u64,
    appendable: bool,
    form: RowForm,
}

enum RowForm {
    /// Only read so far, and maybe made by another program with chunks of any shape: they are
    /// checked before a block is stored, and the dataset is replaced if they do not fit.
    Found(VirtualFile),
    /// Rows are blocks and chunks, none after the end or stored since: the reader is up to date.
    Ours(VirtualFile),
    /// Rows are blocks and chunks; some may have been stored since, so that libhdf5 reads them.
    Written,
}

impl RowForm {
    /// Blocks can be stored without replacing the dataset.
    fn is_ours(&self) -> bool {
        !matches!(self, RowForm::Found(_))
    }

    /// The reader of the dataset as opened; `None` once blocks were stored.
    fn unchanged(&self) -> Option<&VirtualFile> {
        match self {
            RowForm::Found(file) | RowForm::Ours(file) => Some(file),
            RowForm::Written => None,
        }
    }
}

impl Phase {
    fn rows(&mut self) -> Option<&mut StoredRows> {
        match self {
            Phase::Stored(rows) => rows.as_deref_mut(),
            Phase::New | Phase::Buffered | Phase::Detached => None,
        }
    }

    fn fix_length(&mut self) {
        if matches!(self, Phase::New) {
            *self = Phase::Buffered;
        }
    }
}

impl FileState {
    /// Nothing is in memory.
    fn stored(len: u64) -> Self {
        // a dataset without bytes may exist, and is found when it is needed
        let phase = if len == 0 { Phase::New } else { Phase::Stored(None) };
        FileState { len, stored_len: len, changed: false, phase, blocks: BTreeMap::new(), hash: None }
    }

    fn check_attached(&self) -> Result<()> {
        match self.phase {
            Phase::Detached => Err(Error::not_found("the file was removed")),
            _ => Ok(()),
        }
    }
}

impl StoredFile {
    /// The group `path` exists already.
    pub(super) fn new(store: Arc<Store>, path: String, block_bytes: u64) -> Self {
        store.forget(&path);
        let hasher = Hasher::new(store.options.hash);
        let state = FileState { changed: true, hash: Some((hasher, 0)), ..FileState::stored(0) };
        StoredFile { store, path, block_bytes, state: Mutex::new(state) }
    }

    pub(super) fn existing(store: Arc<Store>, path: String, block_bytes: u64, len: u64) -> Self {
        StoredFile { store, path, block_bytes, state: Mutex::new(FileState::stored(len)) }
    }

    /// `len` bytes are committed; the header states fewer until the next commit.
    pub(super) fn appended(store: Arc<Store>, path: String, block_bytes: u64, len: u64) -> Self {
        let state = FileState { changed: true, ..FileState::stored(len) };
        StoredFile { store, path, block_bytes, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, FileState> {
        self.state.lock_unpoisoned()
    }

    /// Discards blocks in memory, after the file was removed.
    pub(super) fn detach(&self) {
        let mut state = self.state();
        state.blocks.clear();
        state.phase = Phase::Detached;
        state.changed = false;
    }

    /// Stores what is in memory; true if the file has changed since the last commit.
    pub(super) fn finish(&self) -> Result<bool> {
        let state = &mut *self.state();
        if !state.changed {
            return Ok(false);
        }
        state.phase.fix_length();
        self.store_dirty(state)?;
        let hash = if self.store.options.archive { Some(self.hash(state)?) } else { None };
        self.store.change(|access| {
            let count = state.len.div_ceil(self.block_bytes);
            let rows = self.writable_rows(state, access, count)?;
            let extent = count + self.spare(count);
            if rows.appendable && rows.count != extent {
                rows.dataset.set_extent(extent)?;
                rows.count = extent;
            }
            match &hash {
                Some(hash) => {
                    let text = Attribute::string(hash.to_string());
                    access.group(&self.path)?.set_attribute(hash.kind().name(), &text)
                }
                None => Ok(()),
            }
        })?;
        state.changed = false;
        Ok(true)
    }

    /// Empty rows after `count` blocks: 1 for casacore, as it makes them, unless `count` is 0.
    fn spare(&self, count: u64) -> u64 {
        u64::from(self.store.bounds() == Bounds::Earliest && count > 0)
    }

    fn filters(&self) -> ByteFilters {
        ByteFilters {
            compression: Compression::of_filter(self.store.options.compression).unwrap_or(Compression::NONE),
            checksums: self.store.options.checksums,
        }
    }

    /// Opens the dataset in the HDF5 file that is open now, the committed one or a copy, unless it
    /// already is. A missing dataset is an error if bytes are stored.
    fn attach(&self, state: &mut FileState, access: &Access<'_>) -> Result<()> {
        state.check_attached()?;
        if state.phase.rows().is_some_and(|rows| rows.generation == access.generation) {
            return Ok(());
        }
        let group = access.group(&self.path)?;
        if group.has(DATA) {
            let rows = self.open_rows(group.dataset(DATA)?, access, state.stored_len)?;
            state.phase = Phase::Stored(Some(Box::new(rows)));
        } else if state.stored_len > 0 {
            return Err(Error::format(format!("group {} has no {DATA}", group.path())));
        }
        Ok(())
    }

    fn open_rows(&self, dataset: Dataset, access: &Access<'_>, len: u64) -> Result<StoredRows> {
        let source = Arc::new(FileSource::open(access.path)?);
        let found = VirtualFile::new(&dataset, source, self.block_bytes, len)?;
        let pipeline = found.pipeline().clone();
        let count = dataset.shape()?.last().copied().unwrap_or(0);
        let appendable = dataset.is_appendable()?;
        Ok(StoredRows {
            generation: access.generation,
            dataset,
            pipeline,
            count,
            appendable,
            form: RowForm::Found(found),
        })
    }

    /// Makes at least `count` rows; replaces a dataset whose chunks cannot hold blocks.
    fn writable_rows<'a>(
        &self,
        state: &'a mut FileState,
        access: &Access<'_>,
        count: u64,
    ) -> Result<&'a mut StoredRows> {
        self.attach(state, access)?;
        let (stored_len, len) = (state.stored_len, state.len);
        let length_is_known = matches!(state.phase, Phase::Buffered);
        match &mut state.phase {
            Phase::Detached => Err(Error::not_found("the file was removed")),
            Phase::Stored(Some(rows)) => {
                if !rows.form.is_ours() {
                    self.prepare_rows(rows, access, stored_len)?;
                }
                if rows.count < count {
                    if !rows.appendable {
                        self.replace(rows, access, stored_len)?;
                    }
                    let extent = count + self.spare(count);
                    rows.dataset.set_extent(extent)?;
                    rows.count = extent;
                }
                Ok(rows)
            }
            phase @ (Phase::New | Phase::Buffered | Phase::Stored(None)) => {
                let all = len.div_ceil(self.block_bytes).max(count);
                let options = &self.store.options;
                // a dataset of fixed size without rows would have no chunks
                let appendable = !options.archive || options.appendable || !length_is_known || all == 0;
                let rows = self.create_rows(access, DATA, if appendable { count } else { all }, appendable)?;
                *phase = Phase::Stored(Some(Box::new(rows)));
                phase.rows().ok_or_else(|| Error::usage("the file has no dataset"))
            }
        }
    }

    /// Removes rows after the end, or replaces a dataset that has not one chunk for each row.
    fn prepare_rows(&self, rows: &mut StoredRows, access: &Access<'_>, stored_len: u64) -> Result<()> {
        let shape = Shape::from([self.block_bytes, 1]);
        let is_ours = rows.dataset.storage()? == Storage::Chunks
            && rows.dataset.chunk()?.is_some_and(|chunk| chunk == shape)
            && rows.dataset.shape()?.first() == Some(&self.block_bytes)
            && rows.dataset.fill_byte()?.unwrap_or(0) == 0;
        if !is_ours {
            return self.replace(rows, access, stored_len);
        }
        // bytes after the end would reappear when the file grows
        let kept = stored_len.div_ceil(self.block_bytes);
        if rows.count > kept {
            rows.dataset.set_extent(kept)?;
            rows.count = kept;
        }
        rows.form = match std::mem::replace(&mut rows.form, RowForm::Written) {
            RowForm::Found(file) => RowForm::Ours(file),
            other => other,
        };
        Ok(())
    }

    fn create_rows(&self, access: &Access<'_>, name: &str, count: u64, appendable: bool) -> Result<StoredRows> {
        let spec = ByteRows { row_bytes: self.block_bytes, rows: count, appendable, filters: self.filters() };
        let dataset = access.group(&self.path)?.create_byte_rows(name, &spec)?;
        let pipeline = self.filters().pipeline();
        Ok(StoredRows { generation: access.generation, dataset, pipeline, count, appendable, form: RowForm::Written })
    }

    /// Copies `len` bytes to a new dataset that can grow.
    fn replace(&self, rows: &mut StoredRows, access: &Access<'_>, len: u64) -> Result<()> {
        let group = access.group(&self.path)?;
        let source = Arc::new(FileSource::open(access.path)?);
        let old = VirtualFile::new(&rows.dataset, source, self.block_bytes, len)?;
        let new = self.create_rows(access, NEXT_DATA, len.div_ceil(self.block_bytes), true)?;
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
        group.rename(NEXT_DATA, DATA)?;
        self.store.forget(&self.path);
        *rows = new;
        Ok(())
    }

    /// Filters blocks on all threads and stores them; each is given with its number.
    fn store_blocks(&self, state: &mut FileState, blocks: &[(u64, &[u8])]) -> Result<()> {
        let Some(last) = blocks.iter().map(|(number, _)| *number).max() else { return Ok(()) };
        let pipeline = self.store.change(|access| {
            let rows = self.writable_rows(state, access, last + 1)?;
            Ok(rows.pipeline.clone())
        })?;
        let batch = (CACHE_BYTES / self.block_bytes).clamp(4, 1 << 16) as usize;
        for batch in blocks.chunks(batch) {
            let filtered = if pipeline.is_empty() { Vec::new() } else { encode_blocks(&pipeline, batch)? };
            self.store.change(|access| {
                let rows = self.writable_rows(state, access, last + 1)?;
                rows.form = RowForm::Written;
                stored(batch, &filtered)
                    .try_for_each(|(number, bytes)| rows.dataset.write_chunk(&[0, number], bytes, 0))
            })?;
            self.store.wrote(&self.path, stored(batch, &filtered));
            self.store.write_back();
        }
        state.stored_len = state.stored_len.max(((last + 1) * self.block_bytes).min(state.len));
        Ok(())
    }

    fn store_dirty(&self, state: &mut FileState) -> Result<()> {
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

    /// Ignores blocks in memory; zeros after the last stored byte.
    fn read_stored(&self, state: &mut FileState, offset: u64, out: &mut [u8]) -> Result<()> {
        let available = state.stored_len.saturating_sub(offset).min(out.len() as u64) as usize;
        let (out, after) = out.split_at_mut(available);
        after.fill(0);
        if available == 0 {
            return Ok(());
        }
        self.store.read(|access| self.attach(state, access))?;
        let Some(rows) = state.phase.rows() else { return Err(past_end(offset, available as u64, 0)) };
        if let Some(unchanged) = rows.form.unchanged() {
            return unchanged.read_at(offset, out);
        }
        let first = offset / self.block_bytes;
        let mut bytes = Vec::new();
        let mut done = 0;
        for number in first.. {
            let within = (offset + done as u64 - number * self.block_bytes) as usize;
            let count = (self.block_bytes as usize - within).min(out.len() - done);
            bytes.clear();
            let mut row = Values::UChar(bytes);
            let region = Region { start: Shape::from([within as u64, number]), shape: Shape::from([count as u64, 1]) };
            rows.dataset.read_region(&region, &mut row)?;
            bytes = row.into_bytes();
            out[done..done + count].copy_from_slice(&bytes);
            done += count;
            if done == out.len() {
                break;
            }
        }
        Ok(())
    }

    fn block<'a>(&self, state: &'a mut FileState, number: u64) -> Result<&'a mut Block> {
        let block = match state.blocks.remove(&number) {
            Some(block) => block,
            None => self.load(state, number)?,
        };
        Ok(state.blocks.entry(number).or_insert(block))
    }

    /// Reads the dataset; if too many blocks are in memory, all are stored and dropped before.
    fn load(&self, state: &mut FileState, number: u64) -> Result<Block> {
        if (state.blocks.len() as u64 + 1) * self.block_bytes > CACHE_BYTES.max(2 * self.block_bytes) {
            self.store_dirty(state)?;
            state.blocks.clear();
        }
        let mut bytes = vec![0; self.block_bytes as usize];
        self.read_stored(state, number * self.block_bytes, &mut bytes)?;
        Ok(Block { bytes, dirty: false })
    }

    /// Zeros follow the existing bytes.
    fn grow(&self, state: &mut FileState, len: u64) -> Result<()> {
        if len > i64::MAX as u64 {
            return Err(Error::usage(format!("the file would have {len} bytes; at most 2^63 - 1 are possible")));
        }
        // bytes after the old end become zeros of the file
        if !state.len.is_multiple_of(self.block_bytes) {
            let last = state.len / self.block_bytes;
            self.block(state, last)?.dirty = true;
        }
        state.len = len;
        Ok(())
    }

    fn write(&self, state: &mut FileState, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset
            .checked_add(data.len() as u64)
            .ok_or_else(|| Error::usage("the file would have 2^64 bytes or more"))?;
        if end > state.len {
            self.grow(state, end)?;
        }
        // a file that fits into memory is not stored before its length is known
        let options = &self.store.options;
        let wait = options.archive && !options.appendable && end <= CACHE_BYTES;
        let wait = wait && matches!(state.phase, Phase::New | Phase::Stored(None));
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

    fn hash(&self, state: &mut FileState) -> Result<Hash> {
        let new = || (Hasher::new(self.store.options.hash), 0);
        let (mut hash, mut at) = state.hash.take().unwrap_or_else(new);
        let mut buffer = Vec::new();
        let done = (hash.clone(), at);
        while at < state.len {
            buffer.resize((state.len - at).min(COPY_BYTES) as usize, 0);
            self.read_through(state, at, &mut buffer)?;
            hash.update(&buffer);
            at += buffer.len() as u64;
        }
        state.hash = Some(if at == done.1 { done } else { (hash.clone(), at) });
        Ok(hash.finish())
    }

    fn read_through(&self, state: &mut FileState, offset: u64, out: &mut [u8]) -> Result<()> {
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

impl ReadAt for StoredFile {
    fn len(&self) -> Result<u64> {
        Ok(self.state().len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let state = &mut *self.state();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > state.len) {
            return Err(past_end(offset, out.len() as u64, state.len));
        }
        self.read_through(state, offset, out).with_context(|| Context::member(&self.path))
    }
}

impl WriteAt for StoredFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let state = &mut *self.state();
        state.check_attached().with_context(|| Context::member(&self.path))?;
        if data.is_empty() {
            return Ok(());
        }
        state.changed = true;
        let mut hash = if self.store.options.archive { state.hash.take() } else { None };
        let written = match &mut hash {
            Some((hash, hashed)) if *hashed == offset => {
                *hashed += data.len() as u64;
                // the longer task first, so that the other one does not wait for it
                rayon::join(|| hash.update(data), || self.write(state, offset, data)).1
            }
            _ => {
                // hashed bytes have changed
                hash = hash.filter(|(_, hashed)| *hashed <= offset);
                self.write(state, offset, data)
            }
        };
        state.hash = hash;
        written.with_context(|| Context::member(&self.path))
    }

    /// A new file's dataset has its final length before the first byte, so that it need not grow.
    fn reserve(&self, len: u64) -> Result<()> {
        if self.len()? == 0 {
            self.set_len(len)?;
            if self.store.options.compression.is_none() {
                self.store
                    .reserve(len.next_multiple_of(self.block_bytes))
                    .with_context(|| Context::member(&self.path))?;
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let state = &mut *self.state();
        let mut set = || {
            state.check_attached()?;
            state.changed = true;
            if len >= state.len {
                if state.len == 0 {
                    state.phase.fix_length();
                }
                return self.grow(state, len);
            }
            let kept = len.div_ceil(self.block_bytes);
            state.blocks.retain(|number, _| *number < kept);
            let kept_of_last = (len % self.block_bytes) as usize;
            if kept_of_last != 0 {
                let block = self.block(state, len / self.block_bytes)?;
                block.bytes[kept_of_last..].fill(0);
                block.dirty = true;
            }
            state.len = len;
            state.hash = state.hash.take().filter(|(_, hashed)| *hashed <= len);
            if state.stored_len > len {
                self.store.change(|access| {
                    let rows = self.writable_rows(state, access, 0)?;
                    if rows.count > kept {
                        rows.dataset.set_extent(kept)?;
                        rows.count = kept;
                    }
                    rows.form = RowForm::Written;
                    Ok(())
                })?;
                state.stored_len = len;
            }
            Ok(())
        };
        set().with_context(|| Context::member(&self.path))
    }

    /// Writes changed blocks to the HDF5 file; durable with the commit.
    fn sync(&self) -> Result<()> {
        let state = &mut *self.state();
        if matches!(state.phase, Phase::Detached) {
            return Ok(());
        }
        state.phase.fix_length();
        self.store_dirty(state).with_context(|| Context::member(&self.path))
    }
}

impl fmt::Debug for StoredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoredFile").field(&self.path).finish()
    }
}

/// Blocks as they are stored; `filtered` has the filtered bytes of each, or is empty.
fn stored<'a>(blocks: &'a [(u64, &'a [u8])], filtered: &'a [Vec<u8>]) -> impl Iterator<Item = (u64, &'a [u8])> {
    let stored = |(at, &(number, bytes)): (usize, &(u64, &'a [u8]))| {
        (number, filtered.get(at).map_or(bytes, |filtered| filtered.as_slice()))
    };
    blocks.iter().enumerate().map(stored)
}

fn encode_blocks(pipeline: &Pipeline, blocks: &[(u64, &[u8])]) -> Result<Vec<Vec<u8>>> {
    let encode = |scratch: &mut FilterScratch, (_, bytes): &(u64, &[u8])| {
        let mut stored = Vec::new();
        pipeline.encode(scratch, bytes, &mut stored)?;
        Ok(stored)
    };
    blocks.par_iter().map_init(FilterScratch::default, encode).collect()
}
