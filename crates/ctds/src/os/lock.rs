//! Locks of bytes of files that an open file description holds: other descriptors of this process
//! do not disturb them, and they end with the process. Record locks, which belong to a process,
//! respect them and are respected.
//!
//! Linux and macOS have them. On other systems every call fails.

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::ops::Range;

use nix::errno::Errno;
use nix::libc;

/// Kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// A lock that other holders of such locks share.
    Read,
    /// A lock that excludes all others.
    Write,
}

/// Holder of a lock that excludes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockHolder {
    /// The process with this number has a record lock.
    Process(u32),
    /// An open file description has the lock, in this process or in another one.
    Description,
}

/// All bytes of a file, also those beyond its end.
pub const WHOLE_FILE: Range<u64> = 0..u64::MAX;

/// Locks bytes of `file`, without waiting; false if another holder excludes that. The lock ends
/// when `file` and its duplicates are closed.
///
/// # Errors
/// Those of the system, such as the ones of [`has_no_locks`].
pub fn try_lock(file: &File, kind: LockKind, bytes: Range<u64>) -> io::Result<bool> {
    match imp::set(file, request(kind), &bytes) {
        Ok(()) => Ok(true),
        Err(error) if [Errno::EAGAIN, Errno::EACCES].map(as_raw).contains(&error.raw_os_error()) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives up the locks that `file` has on `bytes`.
///
/// # Errors
/// As [`try_lock`].
pub fn unlock(file: &File, bytes: Range<u64>) -> io::Result<()> {
    imp::set(file, libc::F_UNLCK as c_int, &bytes)
}

/// The holder of a lock that excludes a lock of `kind` by `file`, one of them if there are several;
/// `None` if it could be acquired now.
///
/// # Errors
/// As [`try_lock`].
pub fn conflicting_lock(file: &File, kind: LockKind, bytes: Range<u64>) -> io::Result<Option<LockHolder>> {
    imp::get(file, request(kind), &bytes)
}

/// Whether an error of [`try_lock`] means that the file system has no locks.
pub fn has_no_locks(error: &io::Error) -> bool {
    [Errno::ENOLCK, Errno::EINVAL, Errno::EOPNOTSUPP].map(as_raw).contains(&error.raw_os_error())
}

fn as_raw(errno: Errno) -> Option<c_int> {
    Some(errno as c_int)
}

fn request(kind: LockKind) -> c_int {
    match kind {
        LockKind::Read => libc::F_RDLCK as c_int,
        LockKind::Write => libc::F_WRLCK as c_int,
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod imp {
    use std::os::fd::AsRawFd;

    use nix::libc::{F_OFD_GETLK, F_OFD_SETLK, F_UNLCK, SEEK_SET, c_short, flock, off_t};

    use super::*;

    pub(super) fn set(file: &File, kind: c_int, bytes: &Range<u64>) -> io::Result<()> {
        control(file, F_OFD_SETLK, kind, bytes).map(drop)
    }

    pub(super) fn get(file: &File, kind: c_int, bytes: &Range<u64>) -> io::Result<Option<LockHolder>> {
        let found = control(file, F_OFD_GETLK, kind, bytes)?;
        // the process of the lock of a description is -1
        let holder = u32::try_from(found.l_pid).map_or(LockHolder::Description, LockHolder::Process);
        Ok((c_int::from(found.l_type) != F_UNLCK as c_int).then_some(holder))
    }

    fn control(file: &File, command: c_int, kind: c_int, bytes: &Range<u64>) -> io::Result<flock> {
        let offset = |value: u64| off_t::try_from(value).map_err(|_| io::Error::from(Errno::EOVERFLOW));
        // a length of 0 is all that follows
        let len = if bytes.end == u64::MAX { 0 } else { bytes.end - bytes.start };
        let (l_start, l_len) = (offset(bytes.start)?, offset(len)?);
        let mut lock = flock { l_type: kind as c_short, l_whence: SEEK_SET as c_short, l_start, l_len, l_pid: 0 };
        // SAFETY: the descriptor is that of an open file; the system reads and writes the request,
        // which lives until it returns
        let status = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
        Errno::result(status)?;
        Ok(lock)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod imp {
    use super::*;

    pub(super) fn set(_: &File, _: c_int, _: &Range<u64>) -> io::Result<()> {
        Err(unsupported())
    }

    pub(super) fn get(_: &File, _: c_int, _: &Range<u64>) -> io::Result<Option<LockHolder>> {
        Err(unsupported())
    }

    fn unsupported() -> io::Error {
        let message = "this system has no locks of open file descriptions: open tables without locking";
        io::Error::new(io::ErrorKind::Unsupported, message)
    }
}
