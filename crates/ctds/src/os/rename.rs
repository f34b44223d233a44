//! Outcomes of renames that must not overwrite, or that exchange two paths.

use std::ffi::{CStr, c_int};
use std::io;
use std::path::Path;

use nix::NixPath;
use nix::errno::Errno;

/// Outcome of a rename that must not overwrite, or that exchanges two paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renamed {
    /// The paths are renamed.
    Done,
    /// Nothing was renamed: the new name exists (`EEXIST`), or a path is missing (`ENOENT`).
    Not,
    /// Nothing was renamed: the system or the file system cannot do this in one step.
    Unsupported,
}

/// The outcome of a system call with two paths, which returns -1 and sets `errno` if it fails.
pub(super) fn rename(from: &Path, to: &Path, call: impl FnOnce(&CStr, &CStr) -> c_int) -> io::Result<Renamed> {
    let status = from.with_nix_path(|from| to.with_nix_path(|to| Errno::result(call(from, to))));
    match status.flatten().flatten() {
        Ok(_) => Ok(Renamed::Done),
        Err(Errno::EEXIST | Errno::ENOENT) => Ok(Renamed::Not),
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => Ok(Renamed::Unsupported),
        // another number than EOPNOTSUPP on some systems
        Err(error) if error as c_int == nix::libc::ENOTSUP => Ok(Renamed::Unsupported),
        Err(error) => Err(error.into()),
    }
}
