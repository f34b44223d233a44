//! The lock that HDF5 holds on an open file, acquired for a container file by this program: it excludes other processes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::{Error, ErrorKind, Result};

/// How long to retry while another process holds the lock of a container briefly.
const LOCK_RETRY_LIMIT: Duration = Duration::from_millis(500);

/// Pause between two attempts to lock a container.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Locks a container against other writers, but not against readers. `None` if the file system has no locks.
///
/// # Errors
/// `Locked` if another process has it open. HDF5 takes the same lock for reading and writing.
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

/// Locks an open file against writers, with a shared lock; `None` if the file system has no locks.
///
/// # Errors
/// As [`lock_for_writing`].
pub(super) fn lock_for_reading(file: fs::File) -> Result<Option<Flock<fs::File>>> {
    flock(file, FlockArg::LockSharedNonblock)
}

/// Retries `open` while another process has the file open briefly: to read it, or because a child process between fork
/// and exec still holds inherited descriptors.
///
/// # Errors
/// `Locked` if the file stays locked for [`LOCK_RETRY_LIMIT`].
pub(super) fn retry_while_locked<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        match open() {
            Err(error) if error.kind() == ErrorKind::Locked && start.elapsed() < LOCK_RETRY_LIMIT => {
                thread::sleep(LOCK_RETRY_INTERVAL)
            }
            done => return done,
        }
    }
}

/// Acquires a `flock` without waiting; `None` if the file system has no locks, which HDF5 accepts as well.
fn flock(file: fs::File, how: FlockArg) -> Result<Option<Flock<fs::File>>> {
    match Flock::lock(file, how) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Err(locked()),
        Err(_) => Ok(None),
    }
}

fn locked() -> Error {
    Error::new(ErrorKind::Locked, "another program holds HDF5's lock on the file")
}
