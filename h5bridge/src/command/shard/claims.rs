//! Locks by which only one process at a time writes an item of a shard plan.
//!
//! A claim is a lock on one byte of the file `claims` in the directory of the plan; it ends with
//! the process. It saves work and nothing else: where the file system has no locks, items are done
//! twice.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use ctds_hdf5::convert::ShardItem;
use ctds_hdf5::program::os::{LockKind, try_lock, unlock};

const CLAIMS: &str = "claims";

#[derive(Debug)]
pub(super) struct Claims {
    /// `None` if items are not locked, so that every item can be taken.
    file: Option<File>,
}

impl Claims {
    /// Claims nothing: `take` always succeeds.
    pub(super) fn none() -> Self {
        Claims { file: None }
    }

    /// If the file cannot be opened, items are not locked.
    pub(super) fn open(directory: &Path) -> Self {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(directory.join(CLAIMS));
        // of another user, or on a file system that is read only: the plan works without
        Claims { file: file.ok() }
    }

    /// False if another process holds the lock; true also if locking is not possible.
    pub(super) fn take(&self, item: &ShardItem) -> bool {
        self.file.as_ref().is_none_or(|file| try_lock(file, LockKind::Write, byte_of(item)).unwrap_or(true))
    }

    /// Called after the result was recorded, or because the item was already written.
    pub(super) fn release(&self, item: &ShardItem) {
        // the lock ends with the process at the latest
        let _ = self.file.as_ref().map(|file| unlock(file, byte_of(item)));
    }
}

/// 62 bits of the identifier: an offset is signed, and two items with the same one are not done at
/// the same time.
fn byte_of(item: &ShardItem) -> Range<u64> {
    let byte = u64::from_str_radix(&item.id, 16).map_or(0, |id| id >> 2);
    byte..byte + 1
}
