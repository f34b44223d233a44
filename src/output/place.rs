//! Gives a written file or directory its final name: renames it to the target, which may be
//! replaced.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::publishing::IfExists;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::os::{self, Renamed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputKind {
    File,
    Directory,
}

/// Other threads may still write to a directory that is removed.
const REMOVAL_TRIES: usize = 20;

/// Attempts to name or to exchange paths before interference by another process is an error.
pub(super) const TRIES: usize = 20;

/// Makes the new name durable, not the content; `Exists` if something is not to be replaced.
pub(crate) fn publish_file(new: &Path, target: &Path, if_exists: IfExists) -> Result<()> {
    publish_at(new, target, OutputKind::File, if_exists)
}

/// [`publish_file`] for a table directory; a replaced table is then at the path `new`, or removed.
pub(crate) fn publish_directory(new: &Path, target: &Path, if_exists: IfExists) -> Result<()> {
    publish_at(new, target, OutputKind::Directory, if_exists)
}

fn publish_at(new: &Path, target: &Path, kind: OutputKind, if_exists: IfExists) -> Result<()> {
    let publish = || -> Result<()> {
        let target = &resolve(target, if_exists)?;
        check_target(target, kind, if_exists)?;
        place(new, target, kind, if_exists)?;
        Ok(File::open(directory_of(target))?.sync_all()?)
    };
    publish().with_context(|| Context::path(target))
}

pub(super) fn place(new: &Path, target: &Path, kind: OutputKind, if_exists: IfExists) -> Result<()> {
    match (if_exists, kind) {
        (IfExists::Fail, kind) => rename_new(new, target, kind),
        (IfExists::Replace, OutputKind::File) => replace_file(new, target),
        (IfExists::Replace, OutputKind::Directory) => replace_with_directory(new, target),
    }
}

/// `.` for a bare name.
pub(crate) fn directory_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Target of a symbolic link if an existing file is to be replaced, else `target` itself.
pub(super) fn resolve(target: &Path, if_exists: IfExists) -> Result<PathBuf> {
    if !if_exists.replaces() || !target.is_symlink() {
        return Ok(target.to_owned());
    }
    target.canonicalize().map_err(|error| {
        let message = "the target is a symbolic link that leads to nothing: remove it, or name what it should lead to";
        Error::new(ErrorKind::Exists, message).caused_by(error).context(Context::path(target))
    })
}

fn exists() -> Error {
    Error::new(ErrorKind::Exists, "the target exists already")
}

/// Replaceable: empty, a casacore table, or compressed arrays of the Python packages BLZ or bcolz.
fn is_table(path: &Path) -> bool {
    let known = ["table.dat", "meta/storage", "__rootdirs__"];
    known.iter().any(|name| path.join(name).exists()) || fs::read_dir(path).is_ok_and(|mut list| list.next().is_none())
}

fn not_a_table() -> Error {
    Error::new(ErrorKind::Exists, "the target is a directory, but not a table: it is not replaced, name another one")
}

pub(super) fn is_a_directory() -> Error {
    Error::new(ErrorKind::Exists, "the target is a directory")
}

pub(super) fn check_target(target: &Path, kind: OutputKind, if_exists: IfExists) -> Result<()> {
    match target.symlink_metadata() {
        Ok(_) if !if_exists.replaces() => Err(exists()),
        Ok(_) if kind == OutputKind::File && target.is_dir() => Err(is_a_directory()),
        Ok(_) if target.is_dir() && !is_table(target) => Err(not_a_table()),
        _ => Ok(()),
    }
    .with_context(|| Context::path(target))
}

/// Fails with `Exists` if `target` exists.
pub(super) fn rename_new(new: &Path, target: &Path, kind: OutputKind) -> Result<()> {
    match os::rename_new(new, target)? {
        Renamed::Done => return Ok(()),
        Renamed::Not if target.symlink_metadata().is_ok() => return Err(exists()),
        Renamed::Not => return Err(Error::new(ErrorKind::Io, "what was written has been removed")),
        Renamed::Unsupported => {}
    }
    if kind == OutputKind::File {
        // a second link to the file, which fails if the name is taken; the first one goes with the
        // partial
        match fs::hard_link(new, target) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists()),
            // without links either: the name was free just now
            Err(_) => {}
        }
        return Ok(fs::rename(new, target)?);
    }
    // only an empty directory is replaced by this
    fs::rename(new, target).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => exists(),
        _ => error.into(),
    })
}

pub(super) fn replace_file(new: &Path, target: &Path) -> Result<()> {
    fs::rename(new, target).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => is_a_directory(),
        _ => error.into(),
    })
}

/// One step where the file system can; the old one is then at `new`, or removed.
fn replace_with_directory(new: &Path, target: &Path) -> Result<()> {
    for _ in 0..TRIES {
        match os::rename_new(new, target)? {
            Renamed::Done => return Ok(()),
            Renamed::Not => {}
            Renamed::Unsupported => return replace_in_two_steps(new, target),
        }
        match os::exchange(new, target)? {
            // another process has put something else there since it was looked at
            Renamed::Done if new.is_dir() && !is_table(new) => {
                os::exchange(new, target)?;
                return Err(not_a_table());
            }
            Renamed::Done => return Ok(()),
            // the target has just been removed
            Renamed::Not => {}
            Renamed::Unsupported => return replace_in_two_steps(new, target),
        }
    }
    Err(Error::new(ErrorKind::Io, "other processes make and remove the target all the time"))
}

/// Renames the old one to a temporary name, which other runs do not remove, then `new` to `target`.
pub(super) fn replace_in_two_steps(new: &Path, target: &Path) -> Result<()> {
    let name = [target.file_name().unwrap_or_default().as_bytes(), b".replaced-"].concat();
    let aside = tempfile::Builder::new().prefix(OsStr::from_bytes(&name)).tempdir_in(directory_of(target))?;
    let old = aside.path().join("old");
    match fs::rename(target, &old) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let renamed = rename_new(new, target, OutputKind::Directory);
    if renamed.is_err() && old.symlink_metadata().is_ok() && fs::rename(&old, target).is_err() {
        // the old directory is not ours to remove
        let kept = aside.keep();
        return renamed.with_context(|| format!("what was there is now in {}", kept.display()));
    }
    renamed
}

/// Removes a file or directory, if it exists; tried repeatedly, as other threads may write to it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    if !metadata.is_dir() {
        return fs::remove_file(path);
    }
    let mut result = Ok(());
    for _ in 0..REMOVAL_TRIES {
        result = fs::remove_dir_all(path);
        if result.is_ok() {
            break;
        }
    }
    result
}
