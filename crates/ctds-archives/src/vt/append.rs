//! Adds blocks to a store on disk. They are appended to a data file that the process made for
//! itself, and are never changed: a process that is killed leaves blocks that the next one finds.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ctds::container::{Container, Directory};
use ctds::error::{Error, Result};
use ctds::io::{FileTarget, Growth, WriteAt};
use ctds::sync::{LockUnpoisoned, Unpoisoned};

use super::hash::{BlockHash, HashKind};
use super::index::{self, Growing, Index, IndexFile, Indexed};
use super::records;
use super::sink::Sink;
use super::store::{self, DATA, Store};
use super::wire::{put_data, put_uint};
use super::zlib;

/// The only hash that every version of the original reads.
pub(super) const KIND: HashKind = HashKind::Sha1;

/// Maximum bytes of the buffer: before the next record would exceed it, the buffer is written.
const BUFFER_BYTES: usize = 8 << 20;

/// A store, and the blocks that this process adds to it.
pub(super) trait Adding: Send {
    fn store(&self) -> &Arc<Store>;

    /// The added blocks by hashes of kind [`KIND`], with their offsets.
    fn written(&self) -> &Growing;

    /// The added block at this offset.
    fn read(&self, offset: u64) -> Result<Vec<u8>>;

    /// Adds a block if the store does not have it.
    fn add(&mut self, hash: &BlockHash, record: Vec<u8>) -> Result<()>;

    /// Opens the store again if other processes have added to it.
    fn refresh(&mut self) -> Result<()>;

    /// Makes all blocks of the store durable.
    fn sync(&mut self) -> Result<()>;

    fn finish(self: Box<Self>) -> Result<()>;
}

pub(super) struct Appender {
    store: Arc<Store>,
    path: PathBuf,
    /// `None` until the first new block.
    file: Mutex<Option<DataFile>>,
    /// The blocks that this process has written, with their offsets in `file`.
    written: Growing,
}

pub(super) struct DataFile {
    name: String,
    file: File,
    bytes: u64,
    buffer: Vec<u8>,
    /// Ends in `buffer` of the separate writes: whole records, about 1 MiB each.
    ends: Vec<usize>,
    /// Asks the system early to write the file to the disk.
    growth: Growth,
}

impl Appender {
    /// `path` is the directory of the store.
    pub(super) fn new(store: Arc<Store>, path: PathBuf) -> Self {
        let written = Growing::new(&path);
        Appender { store, path, file: Mutex::default(), written }
    }

    /// Makes blocks durable and updates the index; returns the bytes added to the data files.
    pub(super) fn finish(mut self) -> Result<u64> {
        Adding::sync(&mut self)?;
        let Some(file) = self.file.get_mut().unpoisoned().take() else { return Ok(0) };
        let bytes = file.bytes;
        let indexed = Indexed { name: file.name.clone(), bytes };
        drop(file);
        write_index(&self.path, &self.store, indexed, self.written)?;
        Ok(bytes)
    }
}

impl Adding for Appender {
    fn store(&self) -> &Arc<Store> {
        &self.store
    }

    fn written(&self) -> &Growing {
        &self.written
    }

    fn read(&self, offset: u64) -> Result<Vec<u8>> {
        let mut file = self.file.lock_unpoisoned();
        let file = file.as_mut().ok_or_else(|| Error::not_found("the data file is missing"))?;
        if offset >= file.bytes {
            file.flush()?;
        }
        records::read_block(&*Directory::new(self.path.join(DATA)).open(&file.name)?, offset)
    }

    fn add(&mut self, hash: &BlockHash, record: Vec<u8>) -> Result<()> {
        self.append(hash, record)
    }

    fn refresh(&mut self) -> Result<()> {
        let own = self.file.get_mut().unpoisoned().as_ref().map(|file| file.name.as_str());
        self.store = Store::open_without(&Directory::new(&self.path), own)?;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let Some(file) = self.file.get_mut().unpoisoned() else { return Ok(()) };
        file.flush()?;
        file.file.sync_all()?;
        // blocks of other processes that an archive refers to may not be durable yet
        self.store.sync(KIND)?;
        File::open(self.path.join(DATA))?.sync_all()?;
        Ok(File::open(&self.path)?.sync_all()?)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Appender::finish(*self).map(drop)
    }
}

impl Sink for Appender {
    fn has(&self, hash: &BlockHash) -> Result<bool> {
        Ok(self.written.contains(hash)? || self.store.contains(hash)?)
    }

    fn encode(&self, block: &[u8]) -> Vec<u8> {
        record(block)
    }

    fn append(&mut self, hash: &BlockHash, encoded: Vec<u8>) -> Result<()> {
        // twice among the blocks that were prepared together
        if self.written.was_just_added(hash) {
            return Ok(());
        }
        let file = match self.file.get_mut().unpoisoned() {
            Some(file) => file,
            empty => empty.insert(DataFile::create(&self.path.join(DATA))?),
        };
        let offset = file.end();
        file.append(&encoded)?;
        self.written.add(hash, offset)
    }

    fn make_room(&self) -> Result<()> {
        self.file.lock_unpoisoned().as_mut().map_or(Ok(()), DataFile::make_room)
    }
}

/// Header and data of a block, which are compressed if that saves at least a tenth of their bytes.
pub(super) fn record(block: &[u8]) -> Vec<u8> {
    thread_local! {
        static COMPRESSED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let mut record = Vec::with_capacity(block.len() + 8);
    let limit = block.len() - block.len() / 10;
    COMPRESSED.with_borrow_mut(|compressed| {
        if compressed.len() < limit {
            compressed.resize(limit, 0);
        }
        match zlib::deflate(block, &mut compressed[..limit]) {
            Some(len) => {
                put_uint(&mut record, 1);
                put_data(&mut record, &compressed[..len]);
            }
            // the stream is not short enough
            None => {
                put_uint(&mut record, 0);
                put_data(&mut record, block);
            }
        }
    });
    record
}

/// Minimum bytes at which buffered records are written while other blocks are prepared.
const WRITTEN_BYTES: usize = 1 << 20;

impl DataFile {
    /// Creates a data file with a random name, locked as the original does while it appends.
    fn create(directory: &Path) -> Result<Self> {
        let (mut file, mut path) = tempfile::Builder::new()
            .prefix("h5bridge-")
            .rand_bytes(16)
            .suffix(".vtd")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(directory)?
            .into_parts();
        path.disable_cleanup(true);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        file.rewind()?;
        // a file system without locks does not matter: the name is random
        let _ = file.try_lock();
        let growth = Growth::of(file.try_clone()?)?;
        Ok(DataFile { name, file, bytes: 0, buffer: Vec::new(), ends: Vec::new(), growth })
    }

    fn end(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }

    fn append(&mut self, record: &[u8]) -> Result<()> {
        if self.end() + record.len() as u64 > index::LARGEST_FILE {
            return Err(Error::limit(format!("the data file would exceed its limit of {} bytes", index::LARGEST_FILE)));
        }
        if self.buffer.len() + record.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if self.buffer.len() + record.len() > self.ends.last().copied().unwrap_or(0) + WRITTEN_BYTES {
            self.ends.push(self.buffer.len());
        }
        self.buffer.extend(record);
        Ok(())
    }

    pub(super) fn make_room(&mut self) -> Result<()> {
        if self.buffer.len() < WRITTEN_BYTES { Ok(()) } else { self.flush() }
    }

    /// An error drops the records that are not written yet.
    fn flush(&mut self) -> Result<()> {
        let mut start = 0;
        let mut write = |end: usize| {
            self.file.write_all(&self.buffer[start..end])?;
            self.growth.write_back();
            self.bytes += (end - start) as u64;
            start = end;
            Ok(())
        };
        let written = self.ends.iter().chain([&self.buffer.len()]).try_for_each(|&end| write(end));
        self.buffer.clear();
        self.ends.clear();
        written.inspect_err(|_: &std::io::Error| {
            // whole records stay
            let _ = self.file.set_len(self.bytes);
            let _ = self.file.seek(SeekFrom::End(0));
        })?;
        Ok(())
    }
}

/// Writes records even after an error: a later attempt then finds these blocks stored.
impl Drop for DataFile {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// A store with 1/16 unindexed gets a new index; unindexed bytes are read at each opening.
const UNINDEXED_SHARE: u64 = 16;
const UNINDEXED_BYTES: u64 = 1 << 30;

/// Skipped unless the store has none, or at least 1/16 of it or 1 GiB is not indexed.
fn write_index(path: &Path, store: &Store, own: Indexed, written: Growing) -> Result<()> {
    let name = store::index_name(KIND);
    let lock = File::options().create(true).truncate(false).write(true).open(path.join(format!("{name}.lock")))?;
    if lock.try_lock().is_err() {
        // another process writes the index; blocks missing from it are read when the store is
        // opened
        return Ok(());
    }
    let known = store.known(KIND)?;
    let unindexed = known.unindexed_bytes + own.bytes;
    if known.old().is_some() && unindexed < UNINDEXED_BYTES && unindexed * UNINDEXED_SHARE < store.bytes() {
        return Ok(());
    }
    let mut files = known.files.clone();
    let number = files.len();
    files.push(own);
    let (runs, recent) = written.finish(number);
    let added = Index::new(known.scanned().iter().copied().chain(recent).collect());
    let old: Vec<&IndexFile> = known.old().into_iter().chain(&runs).collect();
    let partial = path.join(format!("{name}.partial"));
    let target = FileTarget::create(&partial)?;
    index::write(&target, &files, &old, &added)?;
    target.sync()?;
    fs::rename(&partial, path.join(&name))?;
    Ok(())
}
