//! Finds entries of a directory that are neither files nor directories.

use std::ffi::OsString;
use std::path::Path;

use crate::error::Result;
use crate::output::sorted_entries;

/// A directory entry that a container cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    /// A link to a file or a table, which is packed itself.
    FollowedLink,
    /// A link to nothing, or to a directory that is not a table; left out.
    OtherLink,
    /// A socket, a pipe or a device; left out.
    NoFile,
    /// A name that is not UTF-8; left out.
    OddName,
}

impl Special {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Special::FollowedLink => "a symbolic link: what it leads to is taken",
            Special::OtherLink => "left out: a symbolic link that leads to neither a file nor a table",
            Special::NoFile => "left out: neither a file nor a directory",
            Special::OddName => "left out: the name is not UTF-8",
        }
    }
}

/// Sorted by name.
pub(super) fn find(directory: &Path) -> Result<Vec<(OsString, Special)>> {
    let mut found = Vec::new();
    for entry in sorted_entries(directory)? {
        let (name, path) = (entry.file_name(), entry.path());
        let kind = entry.file_type()?;
        let special = if name.to_str().is_none() {
            Special::OddName
        } else if kind.is_symlink() {
            match path.is_file() || path.join("table.dat").is_file() {
                true => Special::FollowedLink,
                false => Special::OtherLink,
            }
        } else if !kind.is_file() && !kind.is_dir() {
            Special::NoFile
        } else {
            continue;
        };
        found.push((name, special));
    }
    Ok(found)
}
