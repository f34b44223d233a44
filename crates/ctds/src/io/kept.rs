//! Keeps descriptors of lock files (`table.lock`) open where closing them would release locks that
//! casacore holds in the same process.
//!
//! Casacore has record locks, which belong to the process: when any descriptor of a file is closed,
//! all record locks of the process on that file are gone. In a process that uses casacore as well,
//! descriptors of a `table.lock` that has locks are therefore put aside instead of being closed,
//! without locks of their own, and reused when the file is next opened.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::os::{LockKind, WHOLE_FILE, conflicting_lock, unlock};
use crate::sync::LockUnpoisoned;

const LOCK_FILE: &str = "table.lock";

static KEEPS: AtomicBool = AtomicBool::new(false);
static ASIDE: Mutex<Vec<Aside>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Aside {
    /// Device and inode.
    identity: (u64, u64),
    writable: bool,
    file: File,
}

/// Sets whether descriptors of `table.lock` stay open from now on while the file has locks. A
/// process that also uses casacore needs that: casacore's locks on a table end when any descriptor
/// of its lock file is closed. As many descriptors of a file are kept as were open at once.
pub fn keep_lock_files(keep: bool) {
    KEEPS.store(keep, Ordering::Relaxed);
}

/// An open file. A `table.lock` is kept open for reuse when it is dropped, if [`keep_lock_files`]
/// says so.
#[derive(Debug)]
pub struct Kept {
    /// `None` only while being dropped.
    file: Option<File>,
    is_lock: bool,
    writable: bool,
}

impl Kept {
    /// Reuses a kept descriptor of a `table.lock`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_as(path, false)
    }

    /// Reuses a kept descriptor of a `table.lock`.
    pub fn open_as(path: &Path, writable: bool) -> io::Result<Self> {
        let is_lock = path.file_name().is_some_and(|name| name == LOCK_FILE);
        let known = if is_lock { take(path, writable) } else { None };
        let file = known.map_or_else(|| OpenOptions::new().read(true).write(writable).open(path), Ok)?;
        Ok(Kept { file: Some(file), is_lock, writable })
    }
}

impl Deref for Kept {
    type Target = File;

    fn deref(&self) -> &File {
        self.file.as_ref().expect("a file is open until it is dropped")
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Some(file) = self.file.take().filter(|_| self.is_lock && KEEPS.load(Ordering::Relaxed)) else { return };
        let Ok(metadata) = file.metadata() else { return };
        let identity = (metadata.dev(), metadata.ino());
        // the locks of this descriptor, which are not those of the process
        let unlocked = unlock(&file, WHOLE_FILE).is_ok();
        let mut aside = ASIDE.lock_unpoisoned();
        // on files that are gone nothing can be locked any more
        aside.retain(|other| other.file.metadata().is_ok_and(|metadata| metadata.nlink() > 0));
        if !unlocked || !has_locks(&file) {
            aside.retain(|other| other.identity != identity);
            return;
        }
        aside.push(Aside { identity, writable: self.writable, file });
    }
}

/// Locks of any process count, this one included; the system reports one only.
fn has_locks(file: &File) -> bool {
    conflicting_lock(file, LockKind::Write, WHOLE_FILE).is_ok_and(|holder| holder.is_some())
}

fn take(path: &Path, writable: bool) -> Option<File> {
    let metadata = std::fs::metadata(path).ok()?;
    let identity = (metadata.dev(), metadata.ino());
    let mut aside = ASIDE.lock_unpoisoned();
    let found = aside.iter().position(|other| other.identity == identity && other.writable == writable)?;
    Some(aside.swap_remove(found).file)
}

#[cfg(test)]
mod tests {
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc::{self, SEEK_SET, c_short};

    use super::*;
    use crate::os::LockHolder;

    /// The only test that sets the switch, which the process has once.
    #[test]
    fn record_locks_survive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        std::fs::write(&path, [0; 8]).unwrap();
        let casacore = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let lock = libc::flock {
            l_type: libc::F_WRLCK as c_short,
            l_whence: SEEK_SET as c_short,
            l_start: 0,
            l_len: 1,
            l_pid: 0,
        };
        // a lock of this process stands in the way of a lock of a descriptor
        let is_held = || {
            let other = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            let holder = conflicting_lock(&other, LockKind::Write, 0..1).unwrap();
            // closing it would end the lock
            std::mem::forget(other);
            holder == Some(LockHolder::Process(std::process::id()))
        };
        fcntl(&casacore, FcntlArg::F_SETLK(&lock)).unwrap();
        assert!(is_held());
        keep_lock_files(true);
        let ours = Kept::open(&path).unwrap();
        drop(ours);
        assert!(is_held());
        let count = || ASIDE.lock().unwrap().iter().filter(|other| other.identity == identity(&path)).count();
        assert_eq!(count(), 1);
        // the same descriptor is taken again
        let again = Kept::open(&path).unwrap();
        assert_eq!(count(), 0);
        drop(again);
        assert_eq!(count(), 1);
        let other = folder.path().join("other").join(LOCK_FILE);
        std::fs::create_dir(other.parent().unwrap()).unwrap();
        std::fs::write(&other, [0; 8]).unwrap();
        drop(Kept::open(&other).unwrap());
        assert!(ASIDE.lock().unwrap().iter().all(|kept| kept.identity != identity(&other)), "nothing is locked there");
        keep_lock_files(false);
        drop(Kept::open(&path).unwrap());
        assert!(!is_held());
    }

    fn identity(path: &Path) -> (u64, u64) {
        let metadata = std::fs::metadata(path).unwrap();
        (metadata.dev(), metadata.ino())
    }
}
