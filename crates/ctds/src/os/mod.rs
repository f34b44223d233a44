//! Calls of the operating system beyond those that all Unix systems share: of Linux, of macOS, and
//! for each of them a portable path, which other systems take. `H5BRIDGE_PORTABLE` makes every
//! system take it, so that it can be tested on Linux; locks have one path only.
//!
//! A function without a call on some system does nothing there, or returns that it is unsupported;
//! its caller then takes another way.
#![allow(unsafe_code, reason = "system calls on memory, descriptors and paths")]

#[cfg(target_os = "linux")]
mod linux;
mod lock;
#[cfg(target_os = "macos")]
mod macos;
mod portable;
mod rename;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use portable as system;

pub use lock::{LockHolder, LockKind, WHOLE_FILE, conflicting_lock, has_no_locks, try_lock, unlock};
pub use rename::Renamed;

static IS_PORTABLE: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("H5BRIDGE_PORTABLE").is_some_and(|value| !value.is_empty()));

macro_rules! call {
    ($function:ident($($argument:expr),*)) => {
        if *IS_PORTABLE { portable::$function($($argument),*) } else { system::$function($($argument),*) }
    };
}

/// Avoids most page faults when large memory is first written. Does nothing where huge pages are
/// not supported.
pub fn prefer_huge_pages<T>(memory: &mut [T]) {
    call!(prefer_huge_pages(memory));
}

/// The most memory that this process has held, in bytes; `None` if the system does not tell.
pub fn peak_memory() -> Option<u64> {
    call!(peak_memory())
}

/// The memory that this process holds, in bytes; `None` if the system does not tell.
pub fn resident_memory() -> Option<u64> {
    call!(resident_memory())
}

/// Makes the file `to`, from its byte `offset` on, share the bytes `range` of the file `from`
/// (reflink). They must be whole blocks of the file system in both files.
///
/// # Errors
/// `EOPNOTSUPP` where the system cannot share bytes; on Linux, the errors of the ioctl
/// `FICLONERANGE`.
pub fn clone_range(from: &File, range: &Range<u64>, to: &File, offset: u64) -> nix::Result<()> {
    call!(clone_range(from, range, to, offset))
}

/// Copies the bytes `range` of the file `from` to the file `to`, from its byte `offset` on, without
/// moving them through this process. Returns the number of copied bytes, which may be smaller than
/// the range: 0 where the system cannot.
pub fn copy_range(from: &File, range: &Range<u64>, to: &File, offset: u64) -> u64 {
    call!(copy_range(from, range, to, offset))
}

/// Asks the system to begin writing bytes of a file to the disk; does not wait. Does nothing where
/// the system takes no such request.
pub fn write_back(file: &File, bytes: Range<u64>) {
    call!(write_back(file, bytes));
}

/// Reserves disk space for bytes after the end of a file, without changing its length. Does nothing
/// where the system or the file system cannot, and on btrfs, which does not compress data in
/// reserved space.
///
/// # Errors
/// `StorageFull`.
pub fn reserve(file: &File, bytes: Range<u64>) -> io::Result<()> {
    call!(reserve(file, bytes))
}

/// First byte at or after `start` for which the file system stores nothing, at most the length of
/// the file; `None` if `start` is beyond the end, or the system does not tell.
pub fn first_hole(file: &File, start: u64) -> Option<u64> {
    call!(first_hole(file, start))
}

/// Bytes that this user may still write to the file system of `path`.
///
/// # Errors
/// Those of the system, such as `NotFound`.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    call!(free_bytes(path))
}

/// Name of the network file system that `path` is on, such as `NFS`, if it is one on which readers
/// on other hosts may see writes in any order; `None` for other file systems, or if the system does
/// not tell.
pub fn network_file_system(path: &Path) -> Option<&'static str> {
    call!(network_file_system(path))
}

/// Renames a file or directory in one step, unless `to` exists.
///
/// # Errors
/// Those of the system, except the outcomes that [`Renamed`] has.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<Renamed> {
    call!(rename_new(from, to))
}

/// Exchanges the names of two existing files or directories in one step.
///
/// # Errors
/// Those of the system, except the outcomes that [`Renamed`] has.
pub fn exchange(one: &Path, other: &Path) -> io::Result<Renamed> {
    call!(exchange(one, other))
}

/// Whether a process with this number is running on this machine.
pub fn is_running(process: u32) -> bool {
    call!(is_running(process))
}

/// Number of another process that has the file at `path` open for writing; `None` if the system
/// shows none to this process.
pub fn process_that_writes(path: &Path) -> Option<u32> {
    call!(process_that_writes(path))
}

/// Makes this process receive SIGTERM when its parent ends: at once on Linux, within a second
/// elsewhere. A parent that has ended before the call goes unnoticed.
///
/// # Errors
/// Those of the system, if it refuses.
pub fn end_with_parent() -> io::Result<()> {
    call!(end_with_parent())
}

#[cfg(test)]
mod tests;
