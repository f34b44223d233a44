//! The `flock` that libhdf5 holds on an open file: shared for reading, exclusive for writing.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::error::{Error, ErrorKind, Result};

/// How long opening a file for writing is retried while another process holds HDF5's lock on it. A program that reads a
/// live file (an HDF5 file that is read while it is written) holds the lock only while it opens the file.
const LOCK_RETRY_LIMIT: Duration = Duration::from_secs(2);

/// Pause between two attempts to lock a file.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The error of a file on which another process holds HDF5's lock.
pub(crate) fn locked() -> Error {
    let os = io::Error::from(Errno::EWOULDBLOCK);
    Error::new(ErrorKind::Locked, "another program holds HDF5's lock on the file").caused_by(os)
}

/// Retries `open` while another process has the file open briefly: to begin reading it, or because a child process between fork
/// and exec still holds inherited descriptors.
///
/// # Errors
/// Those of `open`. If another process holds HDF5's lock on the file for 2 s, the error has the kind `Locked`.
pub(crate) fn retry_while_locked<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        match open() {
            Err(error) if is_locked(&error) && start.elapsed() < LOCK_RETRY_LIMIT => thread::sleep(LOCK_RETRY_INTERVAL),
            done => return done,
        }
    }
}

/// Whether the error says that another process holds HDF5's lock on the file, so that another attempt to open the file
/// may succeed. False for a file that is marked as being written, because waiting does not remove the mark.
fn is_locked(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    error.kind() == ErrorKind::Locked && cause.is_some_and(|cause| cause.kind() == io::ErrorKind::WouldBlock)
}
