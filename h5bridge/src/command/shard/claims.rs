//! Locks by which only one process at a time writes an item (a range of chunks or tiles) of a conversion that `h5bridge shard` divides.
//!
//! A claim is a lock on one byte of the file `claims` in the directory of the plan; it ends with the process. It saves work and nothing
//! else: where the file system has no locks, items are done twice.

use std::fs::File;
use std::path::Path;

use ctds_hdf5::convert::ShardItem;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{self, c_int, c_short, off_t};

/// Name of the file in the directory of a shard plan in which a process locks one byte for each item (range of chunks or tiles) that it writes.
const CLAIMS: &str = "claims";

/// The locks by which this process claims items (ranges of chunks or tiles) of a shard plan before it writes them.
#[derive(Debug)]
pub(super) struct Claims {
    /// The open file in which items of a shard plan are locked; `None` if items are not locked, so that every item can be taken.
    file: Option<File>,
}

impl Claims {
    /// A `Claims` without locks: this process can claim every item of a shard plan, even one that
    /// another process is writing.
    pub(super) fn none() -> Self {
        Claims { file: None }
    }

    /// Opens the file in the directory of a shard plan in which items are locked. If it cannot be opened, items are not locked.
    pub(super) fn open(directory: &Path) -> Self {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(directory.join(CLAIMS));
        // of another user, or on a file system that is read only: the plan works without
        Claims { file: file.ok() }
    }

    /// Locks an item of a shard plan for this process; returns `false` if another process holds the
    /// lock, and `true` also if locking is not possible.
    pub(super) fn take(&self, item: &ShardItem) -> bool {
        !matches!(self.lock(item, libc::F_WRLCK), Err(Errno::EAGAIN | Errno::EACCES))
    }

    /// Releases this process's lock on an item of a shard plan, after the item's result was
    /// recorded or because the item was already written.
    pub(super) fn release(&self, item: &ShardItem) {
        // the lock ends with the process at the latest
        let _ = self.lock(item, libc::F_UNLCK);
    }

    fn lock(&self, item: &ShardItem, kind: c_int) -> Result<(), Errno> {
        let Some(file) = &self.file else { return Ok(()) };
        // 62 bits of the identifier: an offset is signed, and two items with the same one are not done at the same time
        let offset = u64::from_str_radix(&item.id, 16).map_or(0, |id| id >> 2);
        let l_start = off_t::try_from(offset).unwrap_or(0);
        let lock =
            libc::flock { l_type: kind as c_short, l_whence: libc::SEEK_SET as c_short, l_start, l_len: 1, l_pid: 0 };
        fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).map(drop)
    }
}
