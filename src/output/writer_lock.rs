//! Ensures that a live file (one that is read while it is written, HDF5 SWMR) has one writer at a
//! time, by a lock file beside it. HDF5 itself holds no lock once a file is live.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::os;

/// `NAME.writer`, locked by `flock`, with the writer's process number and host.
#[derive(Debug)]
pub(crate) struct WriterLock {
    path: PathBuf,
    _file: File,
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".writer");
    path.with_file_name(name)
}

impl WriterLock {
    /// Fails with `Locked`, and the process that has the lock.
    pub(crate) fn take(path: &Path) -> Result<Self> {
        let path = lock_path(path);
        let take = || -> Result<_> {
            loop {
                let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
                let mut owner = String::new();
                file.read_to_string(&mut owner)?;
                match file.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => return Err(locked(&owner)),
                    // a file system without locks
                    Err(TryLockError::Error(_)) if !is_alive(&owner) => {}
                    Err(TryLockError::Error(_)) => return Err(locked(&owner)),
                }
                // another host may lock without us noticing
                if is_elsewhere(&owner) {
                    return Err(locked(&owner));
                }
                // the writer before us removed the file between our opening and locking it
                if !same_file(&file, &path)? {
                    continue;
                }
                file.set_len(0)?;
                file.rewind()?;
                write!(file, "process {} on {}", std::process::id(), host())?;
                return Ok(file);
            }
        };
        Ok(WriterLock { _file: take().with_context(|| Context::path(&path))?, path })
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // before unlocking, so that no waiter acquires an unlinked file; a leftover file is
        // harmless
        let _ = fs::remove_file(&self.path);
    }
}

fn locked(owner: &str) -> Error {
    let owner = if owner.is_empty() { "another process" } else { owner };
    Error::new(ErrorKind::Locked, format!("a writer has the file: {owner}"))
}

/// Process number and host of the writer.
fn parse(owner: &str) -> Option<(u32, &str)> {
    let (process, host) = owner.strip_prefix("process ")?.split_once(" on ")?;
    Some((process.parse().ok()?, host))
}

fn is_elsewhere(owner: &str) -> bool {
    parse(owner).is_some_and(|(_, other)| other != host())
}

fn is_alive(owner: &str) -> bool {
    parse(owner).is_some_and(|(process, _)| os::is_running(process))
}

fn host() -> String {
    nix::unistd::gethostname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn same_file(file: &File, path: &Path) -> Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let opened = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (opened.dev(), opened.ino())))
}

/// A warning if `path` is on a network file system that does not keep the order of writes.
pub(crate) fn network_file_system(path: &Path) -> Option<String> {
    let name = os::network_file_system(path)?;
    Some(format!(
        "{} is on {name}, which does not keep the order of writes that readers of a live file rely on; write to a \
         local disk, GPFS or Lustre",
        path.display()
    ))
}
