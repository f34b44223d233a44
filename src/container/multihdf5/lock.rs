//! Locks the HDF5 file of a MultiHDF5 container with the lock that libhdf5 itself acquires, so that
//! other processes do not change the file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::Result;
use crate::h5::{locked, retry_while_locked};

/// Other processes can read the file but not write it; `None` if the file system has no locks.
/// `Locked` if another process has it open: HDF5 takes the same lock for reading and writing.
pub(super) fn lock_for_writing(path: &Path) -> Result<Option<Flock<fs::File>>> {
    retry_while_locked(|| {
        let Some(lock) = flock(fs::File::open(path)?, FlockArg::LockExclusiveNonblock)? else { return Ok(None) };
        let (locked_file, current) = (lock.metadata()?, fs::metadata(path)?);
        // the previous owner of the lock may have replaced the container by a new file
        let is_current = (locked_file.dev(), locked_file.ino()) == (current.dev(), current.ino());
        match lock.relock(FlockArg::LockSharedNonblock) {
            Ok(()) if is_current => Ok(Some(lock)),
            _ => Err(locked()),
        }
    })
}

/// A shared lock, which excludes writers; `None` and `Locked` as for [`lock_for_writing`].
pub(super) fn lock_for_reading(file: fs::File) -> Result<Option<Flock<fs::File>>> {
    flock(file, FlockArg::LockSharedNonblock)
}

/// Does not wait; `None` if the file system has no locks, a case that HDF5 accepts as well.
fn flock(file: fs::File, how: FlockArg) -> Result<Option<Flock<fs::File>>> {
    match Flock::lock(file, how) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Err(locked()),
        Err(_) => Ok(None),
    }
}
