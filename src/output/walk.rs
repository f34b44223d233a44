//! Lists directories: the entries of one, or everything below one.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use crate::error::Result;

/// The entries of a directory, sorted by name.
///
/// # Errors
/// Those of the system.
pub fn sorted_entries(directory: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// Visits a directory after its content; symbolic links are not followed.
pub(crate) fn walk(path: &Path, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_dir() {
        for entry in fs::read_dir(path)? {
            walk(&entry?.path(), visit)?;
        }
    }
    if kind.is_symlink() { Ok(()) } else { visit(path) }
}
