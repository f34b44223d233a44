//! The `flock` that libhdf5 holds on an open file: shared for reading, exclusive for writing.

use std::env;
use std::fs::{self, TryLockError};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::error::{Error, ErrorKind, Result};
use crate::io::{FileSource, ReadAt};

/// Readers of a live file hold HDF5's lock only while they open it.
const LOCK_RETRY_LIMIT: Duration = Duration::from_secs(2);

const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) fn locked() -> Error {
    let os = io::Error::from(Errno::EWOULDBLOCK);
    Error::new(ErrorKind::Locked, "another program holds HDF5's lock on the file").caused_by(os)
}

/// Advises `h5bridge repair`: HDF5's own tool, h5clear, may truncate the file.
pub(super) fn being_written() -> Error {
    let message = "a program is writing the file, or did not close it: then h5bridge repair brings it in order";
    Error::new(ErrorKind::Locked, message)
}

/// HDF5's lock, given up when this is dropped.
#[derive(Debug)]
pub(super) struct Shared(Option<fs::File>);

/// Locks as libhdf5 does: not if `HDF5_USE_FILE_LOCKING` forbids it or the file system has no
/// locks. `Locked` if another process holds the lock for writing.
pub(super) fn share(source: &FileSource) -> Result<Shared> {
    let is_forbidden = env::var_os("HDF5_USE_FILE_LOCKING").is_some_and(|value| value == "FALSE" || value == "0");
    let Some(raw) = source.raw(0).filter(|_| !is_forbidden) else { return Ok(Shared(None)) };
    let file = raw.file.try_clone()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Err(locked()),
        _ => Ok(Shared(Some(file))),
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // the file system may have no locks
            let _ = file.unlock();
        }
    }
}

/// Another process may have the file open briefly: to begin reading it, or a child between fork and
/// exec. `Locked` after 2 s.
pub(crate) fn retry_while_locked<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        match open() {
            Err(error) if is_locked(&error) && start.elapsed() < LOCK_RETRY_LIMIT => thread::sleep(LOCK_RETRY_INTERVAL),
            done => return done,
        }
    }
}

/// False for a file marked as being written, because waiting does not remove the mark.
fn is_locked(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    error.kind() == ErrorKind::Locked && cause.is_some_and(|cause| cause.kind() == io::ErrorKind::WouldBlock)
}
