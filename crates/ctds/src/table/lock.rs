//! Acquires read locks on a table by the rules of casacore, so that casacore programs respect them.
//! formats/table.md 4.2, 4.4, 4.5.
//!
//! Locks are on bytes of `table.lock`: byte 0 is read-locked by readers and write-locked by
//! writers; byte 1 is read-locked by every process that has the table open. Open file description
//! locks are used, which other descriptors of this process do not disturb and which end with the
//! process; casacore's record locks respect them and are respected.
//!
//! The file begins with the list of those who wait, which a casacore writer looks at now and then:
//!
//! | offset  | type     | meaning                             |
//! |---------|----------|-------------------------------------|
//! | 0       | i32      | number of requests, at most 32      |
//! | 4 + 8 k | i32, i32 | request k: process id, host id (0)  |

use std::fs::File;
use std::io;
use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::container::Formats;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::io::Kept;
use crate::os::{self, LockHolder, LockKind, conflicting_lock, has_no_locks, unlock};

pub(super) const DATA_BYTE: Range<u64> = 0..1;
const IN_USE_BYTE: Range<u64> = 1..2;
const REQUEST_BYTES: usize = 260;
const MAX_REQUESTS: usize = 32;
const RETRY: Duration = Duration::from_millis(20);

/// Whether opening a casacore table takes a read lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// No lock: for read-only media, file systems without locks, and tables without a writer.
    None,
    /// A lock; a program that is writing to the table is waited for as long as this, before opening
    /// fails with `Locked`.
    Wait(Duration),
}

impl Default for Locking {
    fn default() -> Self {
        Locking::Wait(Duration::from_secs(60))
    }
}

/// Options for opening casacore tables and native HDF5 files (tables in HDF5): how long to wait for
/// locks, and whether the other files are read in which a native HDF5 file keeps objects or array
/// elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether a read lock is taken on the table, and how long to wait for it.
    pub locking: Locking,
    /// Whether objects and array elements that a native HDF5 file keeps in other files are read:
    /// external storage, virtual datasets, external links. Other files must be regular, below the
    /// directory of the native HDF5 file (symbolic links resolved), and named without `..` and `%`
    /// patterns. `false`: all other files are refused, with `Unsupported`.
    pub follow_external: bool,
    /// The formats of containers that are recognised.
    pub formats: Formats,
}

impl Default for OpenOptions {
    /// Waits up to a minute for a lock; refuses other files with parts of a native HDF5 file.
    fn default() -> Self {
        OpenOptions { locking: Locking::default(), follow_external: false, formats: Formats::OWN }
    }
}

/// Held until it is dropped.
#[derive(Debug)]
pub struct ReadLock {
    /// Closing `table.lock` releases the locks.
    _file: Arc<Kept>,
}

impl ReadLock {
    /// `None` if the table has no lock file, the file system has no locks, or `options` want no
    /// lock.
    ///
    /// # Errors
    /// `Locked` if a writer keeps it for longer than the time-out.
    pub fn take(path: &Path, options: OpenOptions) -> Result<Option<Self>> {
        let Locking::Wait(timeout) = options.locking else { return Ok(None) };
        let Some((file, writable)) = open(path)? else { return Ok(None) };
        if !try_lock(&file, DATA_BYTE)? {
            if is_written_here(&file)? {
                // a lock held by this process is never released while we wait
                tracing::warn!("{} is locked by this process; it is read without a lock", path.display());
                return Ok(None);
            }
            tracing::warn!("{} is being written to by another program; waiting for it", path.display());
            let _request = if writable { Request::post(&file).ok() } else { None };
            wait(&file, timeout).context(Context::member("table.lock"))?;
        }
        Ok(Some(ReadLock { _file: file }))
    }
}

/// Opens the lock file, and locks its byte 1, which marks the table as in use; true if the file can
/// be written. `None` if the file is missing, or the file system has no locks.
pub(super) fn open(path: &Path) -> Result<Option<(Arc<Kept>, bool)>> {
    let path = path.join("table.lock");
    let (file, writable) = match Kept::open_as(&path, true) {
        Ok(file) => (file, true),
        Err(_) => match Kept::open(&path) {
            Ok(file) => (file, false),
            // without a lock file, or a right to it, casacore does not lock either
            Err(error) if matches!(error.kind(), NotADirectory | NotFound | PermissionDenied) => return Ok(None),
            Err(error) => return Err(error).context(Context::member("table.lock")),
        },
    };
    match try_lock(&file, IN_USE_BYTE) {
        Ok(_) => Ok(Some((Arc::new(file), writable))),
        Err(error) if has_no_locks(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn is_written(file: &File) -> Result<bool> {
    Ok(conflicting_lock(file, LockKind::Read, DATA_BYTE)?.is_some())
}

/// Whether this process holds the write lock of the table in the directory at `path`, usually
/// through casacore: the table is then read without a lock.
///
/// # Errors
/// `Io` if the lock file cannot be opened.
pub fn is_locked_here(path: &Path) -> Result<bool> {
    open(path)?.map_or(Ok(false), |(file, _)| is_written_here(&file))
}

/// Whether another process has the table in the directory at `path` open, as its lock file shows.
///
/// # Errors
/// `Io` if the lock file cannot be opened.
pub fn is_open_elsewhere(path: &Path) -> Result<bool> {
    let Some((file, _)) = open(path)? else { return Ok(false) };
    leave(&file)?;
    is_in_use(&file)
}

fn is_written_here(file: &File) -> Result<bool> {
    let holder = conflicting_lock(file, LockKind::Read, DATA_BYTE)?;
    Ok(holder == Some(LockHolder::Process(std::process::id())))
}

/// Withdraws the mark that this process uses the table.
pub(super) fn leave(file: &File) -> Result<()> {
    Ok(unlock(file, IN_USE_BYTE)?)
}

pub(super) fn is_in_use(file: &File) -> Result<bool> {
    Ok(conflicting_lock(file, LockKind::Write, IN_USE_BYTE)?.is_some())
}

fn wait(file: &File, timeout: Duration) -> Result<()> {
    let start = Instant::now();
    while !try_lock(file, DATA_BYTE)? {
        if start.elapsed() >= timeout {
            let seconds = timeout.as_secs_f64();
            let message = format!("another program has locked the table for writing, for more than {seconds} s");
            return Err(Error::new(ErrorKind::Locked, message));
        }
        std::thread::sleep(RETRY.min(timeout));
    }
    Ok(())
}

/// Does not wait; false if another process holds a write lock.
fn try_lock(file: &File, byte: Range<u64>) -> io::Result<bool> {
    os::try_lock(file, LockKind::Read, byte)
}

/// This process's entry in the list of lock requests in `table.lock`, removed on drop.
#[derive(Debug)]
pub(super) struct Request {
    file: Arc<Kept>,
    entry: [u8; 8],
}

impl Request {
    pub(super) fn post(file: &Arc<Kept>) -> io::Result<Self> {
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&std::process::id().to_be_bytes());
        let mut list = read_list(file)?;
        let count = count(&list).min(MAX_REQUESTS - 1);
        list[..4].copy_from_slice(&(count as u32 + 1).to_be_bytes());
        list[4 + 8 * count..][..8].copy_from_slice(&entry);
        file.write_all_at(&list, 0)?;
        Ok(Request { file: file.clone(), entry })
    }

    /// Keeps the other entries.
    fn withdraw(&self) -> io::Result<()> {
        let mut list = read_list(&self.file)?;
        let count = count(&list);
        let Some(ours) = (0..count).find(|&k| list[4 + 8 * k..][..8] == self.entry) else { return Ok(()) };
        list.copy_within(4 + 8 * (ours + 1)..4 + 8 * count, 4 + 8 * ours);
        list[4 + 8 * (count - 1)..][..8].fill(0);
        list[..4].copy_from_slice(&(count as u32 - 1).to_be_bytes());
        self.file.write_all_at(&list, 0)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Err(error) = self.withdraw() {
            tracing::warn!("the request for the lock could not be withdrawn: {error}");
        }
    }
}

fn read_list(file: &File) -> io::Result<[u8; REQUEST_BYTES]> {
    let mut list = [0; REQUEST_BYTES];
    file.read_exact_at(&mut list, 0)?;
    Ok(list)
}

fn count(list: &[u8; REQUEST_BYTES]) -> usize {
    let count = i32::from_be_bytes([list[0], list[1], list[2], list[3]]);
    usize::try_from(count).unwrap_or(0).min(MAX_REQUESTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(milliseconds: u64) -> OpenOptions {
        OpenOptions { locking: Locking::Wait(Duration::from_millis(milliseconds)), ..OpenOptions::default() }
    }

    #[test]
    fn readers_share_and_a_writer_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("table.lock");
        assert!(ReadLock::take(directory.path(), options(0)).unwrap().is_none());
        let before = vec![0; 325];
        std::fs::write(&path, &before).unwrap();
        let one = ReadLock::take(directory.path(), options(0)).unwrap();
        let two = ReadLock::take(directory.path(), options(0)).unwrap();
        assert!(one.is_some() && two.is_some());
        drop((one, two));

        let writer = File::options().read(true).write(true).open(&path).unwrap();
        assert!(os::try_lock(&writer, LockKind::Write, DATA_BYTE).unwrap());
        let error = ReadLock::take(directory.path(), options(50)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert_eq!(std::fs::read(&path).unwrap(), before, "the list of requests is as before");
        assert!(
            ReadLock::take(directory.path(), OpenOptions { locking: Locking::None, ..OpenOptions::default() })
                .unwrap()
                .is_none()
        );

        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ReadLock::take(directory.path(), options(10_000)));
            while std::fs::read(&path).unwrap()[3] == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(writer);
            assert!(waiting.join().unwrap().unwrap().is_some());
        });
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
