//! Temporary directories in which outputs are written, their names, and the removal of those whose
//! writers have exited.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::place::{TRIES, directory_of, remove, replace_file};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};

/// End of the names of temporary directories.
pub(super) const SUFFIX: &str = ".partial";

/// The process that writes the output holds this file locked.
pub(super) const LOCK: &str = "lock";

/// Random letters in the name of a temporary directory.
const LETTERS: usize = 8;

/// The start and a hash replace a longer name, since a name has at most 255 bytes.
const LONGEST_STEM: usize = 200;

/// `NAME.rest.h5`: an HDF5 file with a part of the data of the output `NAME`.
pub(crate) const COMPANION: &str = ".rest.h5";

/// `NAME.PID-RANDOM.partial/NAME`, beside the target. The enclosing directory is new, not shared,
/// and holds a file that its maker has locked (`flock`) as long as it lives. Dropping removes it;
/// after a `kill -9` the next run with the same target does, if the lock tells that the maker has
/// gone.
#[derive(Debug)]
pub(crate) struct Partial {
    directory: PathBuf,
    path: PathBuf,
    /// The last field, so that it is released last.
    _lock: File,
}

impl Partial {
    /// First removes what killed processes left for the same target; `Usage` if it has no name.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        let name = target.file_name().ok_or_else(|| Error::usage("the target has no name of its own"))?;
        let parent = directory_of(target);
        remove_abandoned(parent, name);
        let prefix = [&stem(name), format!(".{}-", std::process::id()).as_bytes()].concat();
        let make = || -> Result<Self> {
            for _ in 0..TRIES {
                let directory = tempfile::Builder::new()
                    .prefix(OsStr::from_bytes(&prefix))
                    .rand_bytes(LETTERS)
                    .suffix(SUFFIX)
                    .tempdir_in(parent)?
                    .keep();
                match lock_new(&directory) {
                    Ok(Some(lock)) => return Ok(Partial { path: directory.join(name), directory, _lock: lock }),
                    // another process took it for abandoned before it was locked
                    Ok(None) => {}
                    Err(error) => {
                        let _ = remove(&directory);
                        return Err(error.into());
                    }
                }
            }
            Err(Error::new(ErrorKind::Io, "other processes remove directories that are being made"))
        };
        make().with_context(|| Context::path(parent))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the new name durable; the content must be durable before.
    pub(crate) fn replace(self, target: &Path) -> Result<()> {
        replace_file(&self.path, target)?;
        Ok(File::open(directory_of(target))?.sync_all()?)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // the next run with the same target removes leftovers
        let _ = remove_partial(&self.directory);
    }
}

/// The name, or start and hash of a long one.
pub(super) fn stem(name: &OsStr) -> Vec<u8> {
    let name = name.as_bytes();
    if name.len() <= LONGEST_STEM {
        return name.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let text = String::from_utf8_lossy(&name[..LONGEST_STEM / 2]);
    format!("{}~{:016x}", text.trim_end_matches(char::REPLACEMENT_CHARACTER), hasher.finish()).into_bytes()
}

/// `None` if another process has just removed the directory as abandoned.
fn lock_new(directory: &Path) -> io::Result<Option<File>> {
    let path = directory.join(LOCK);
    let file = match File::options().write(true).create_new(true).open(&path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        // without locks no other process removes it either
        Ok(()) | Err(TryLockError::Error(_)) => Ok(is_same_file(&file, &path).then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
    }
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let same = |opened: &fs::Metadata, found: &fs::Metadata| (opened.dev(), opened.ino()) == (found.dev(), found.ino());
    matches!((file.metadata(), fs::symlink_metadata(path)), (Ok(opened), Ok(found)) if same(&opened, &found))
}

fn remove_abandoned(parent: &Path, name: &OsStr) {
    let stem = stem(name);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if is_partial_of(&stem, &entry.file_name()) {
            // one that cannot be removed does not disturb
            let _ = remove_if_abandoned(&entry.path(), name);
        }
    }
}

/// The target of a temporary directory, shortened as in `name` if it is long.
pub(crate) fn partial_target(name: &OsStr) -> Option<&[u8]> {
    let rest = name.as_bytes().strip_suffix(SUFFIX.as_bytes())?;
    let dot = rest.iter().rposition(|&byte| byte == b'.')?;
    is_partial_of(&rest[..dot], name).then_some(&rest[..dot])
}

/// Removes a temporary directory if its writer has exited.
pub(crate) fn remove_abandoned_at(directory: &Path, name: &OsStr) -> Result<()> {
    Ok(remove_if_abandoned(directory, name)?)
}

/// Whether `name` is `STEM.PID-RANDOM.partial`.
fn is_partial_of(stem: &[u8], name: &OsStr) -> bool {
    let middle = || {
        let middle = name.as_bytes().strip_prefix(stem)?.strip_prefix(b".")?.strip_suffix(SUFFIX.as_bytes())?;
        let dash = middle.iter().position(|&byte| byte == b'-')?;
        Some((&middle[..dash], &middle[dash + 1..]))
    };
    middle().is_some_and(|(process, letters)| {
        !process.is_empty()
            && process.iter().all(u8::is_ascii_digit)
            && letters.len() == LETTERS
            && letters.iter().all(u8::is_ascii_alphanumeric)
    })
}

/// `NAME.000001` of a SION container, or a companion.
pub(super) fn is_part(name: &OsStr, other: &OsStr) -> bool {
    if is_companion(name, other) {
        return true;
    }
    let number = other.as_bytes().strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"."));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

fn is_companion(name: &OsStr, other: &OsStr) -> bool {
    other.as_bytes().strip_prefix(name.as_bytes()) == Some(COMPANION.as_bytes())
}

fn remove_if_abandoned(directory: &Path, name: &OsStr) -> io::Result<()> {
    let (stem, companion_stem) =
        (self::stem(name), self::stem(OsStr::from_bytes(&[name.as_bytes(), COMPANION.as_bytes()].concat())));
    if !directory.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?.file_name();
        // a verb may write by means of another one
        let is_nested = is_partial_of(&stem, &entry) || is_partial_of(&companion_stem, &entry);
        if entry != LOCK && entry != name && !is_part(name, &entry) && !is_nested {
            return Ok(());
        }
    }
    // where it is missing its maker is just about to make it, and finds that it is too late
    let no_follow = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    let path = directory.join(LOCK);
    let file = File::options().write(true).create(true).truncate(false).custom_flags(no_follow).open(&path)?;
    if file.try_lock().is_ok() && is_same_file(&file, &path) {
        remove_partial(directory)?;
    }
    Ok(())
}

/// Needs the lock, whose file is removed last: other processes are kept from doing the same.
fn remove_partial(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        if entry.file_name() != LOCK {
            remove(&entry.path())?;
        }
    }
    fs::remove_file(directory.join(LOCK))?;
    fs::remove_dir(directory)
}
