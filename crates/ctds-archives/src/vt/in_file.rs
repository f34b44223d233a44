//! Adds blocks to a data file that another file contains, such as an HDF5 file, which no other
//! process writes.

use std::path::Path;
use std::sync::{Arc, Mutex};

use ctds::error::{Error, Result};
use ctds::io::ReadAt;
use ctds::sync::{LockUnpoisoned, Unpoisoned};

use super::append::Adding;
use super::hash::BlockHash;
use super::index::{self, Growing};
use super::records;
use super::store::Store;

/// A data file that grows inside another file.
pub trait DataInFile: Send {
    /// Length of the data file, with all that was appended.
    fn bytes(&self) -> u64;

    /// Appends records.
    fn append(&mut self, records: &[u8]) -> Result<()>;

    /// Makes all that was appended durable, and returns it for reading.
    fn commit(&mut self) -> Result<Arc<dyn ReadAt>>;

    /// Commits and closes the file that contains the data file.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Bytes that are appended before they are committed without a request.
const COMMIT_BYTES: u64 = 64 << 20;

pub(super) struct AppenderInFile {
    store: Arc<Store>,
    file: Mutex<Growth>,
    written: Growing,
}

struct Growth {
    file: Box<dyn DataInFile>,
    committed: Option<Arc<dyn ReadAt>>,
    committed_bytes: u64,
}

impl Growth {
    fn commit(&mut self) -> Result<Arc<dyn ReadAt>> {
        let end = self.file.bytes();
        match &self.committed {
            Some(committed) if self.committed_bytes == end => Ok(committed.clone()),
            _ => {
                let committed = self.file.commit()?;
                (self.committed, self.committed_bytes) = (Some(committed.clone()), end);
                Ok(committed)
            }
        }
    }
}

impl AppenderInFile {
    /// `runs` is a directory for unnamed files.
    pub(super) fn new(store: Arc<Store>, runs: &Path, file: Box<dyn DataInFile>) -> Self {
        let file = Mutex::new(Growth { committed: None, committed_bytes: file.bytes(), file });
        AppenderInFile { store, file, written: Growing::new(runs) }
    }
}

impl Adding for AppenderInFile {
    fn store(&self) -> &Arc<Store> {
        &self.store
    }

    fn written(&self) -> &Growing {
        &self.written
    }

    fn read(&self, offset: u64) -> Result<Vec<u8>> {
        let mut growth = self.file.lock_unpoisoned();
        let committed = match &growth.committed {
            Some(committed) if offset < growth.committed_bytes => committed.clone(),
            _ => growth.commit()?,
        };
        drop(growth);
        records::read_block(&*committed, offset)
    }

    fn add(&mut self, hash: &BlockHash, record: Vec<u8>) -> Result<()> {
        if self.written.was_just_added(hash) {
            return Ok(());
        }
        let growth = self.file.get_mut().unpoisoned();
        let offset = growth.file.bytes();
        if offset + record.len() as u64 > index::LARGEST_FILE {
            return Err(Error::limit(format!("the data file would exceed its limit of {} bytes", index::LARGEST_FILE)));
        }
        growth.file.append(&record)?;
        if growth.file.bytes() - growth.committed_bytes > COMMIT_BYTES {
            growth.commit()?;
        }
        self.written.add(hash, offset)
    }

    /// No other process adds to it.
    fn refresh(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.get_mut().unpoisoned().commit().map(drop)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.file.into_inner().unpoisoned().file.close()
    }
}
