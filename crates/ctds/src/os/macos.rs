//! Calls of macOS.

use std::ffi::c_uint;
use std::fs::File;
use std::io;
use std::path::Path;

use nix::libc;
use nix::sys::statfs::statfs;
use nix::unistd::{Whence, lseek};

pub(super) use super::portable::{
    clone_range, copy_range, end_with_parent, is_running, peak_memory, prefer_huge_pages, process_that_writes, reserve,
    resident_memory, write_back,
};
use super::rename::{Renamed, rename};

pub(super) fn first_hole(file: &File, start: u64) -> Option<u64> {
    let hole = lseek(file, start as i64, Whence::SeekHole).ok()?;
    u64::try_from(hole).ok()
}

/// The numbers of blocks that statvfs(2) returns have 32 bits here.
pub(super) fn free_bytes(path: &Path) -> io::Result<u64> {
    let system = statfs(path)?;
    Ok(system.blocks_available().saturating_mul(u64::from(system.block_size())))
}

/// File systems, by statfs(2), on which readers on other hosts may see writes in any order.
const NETWORK: [(&str, &str); 4] = [("nfs", "NFS"), ("smbfs", "SMB"), ("afpfs", "AFP"), ("webdav", "WebDAV")];

pub(super) fn network_file_system(path: &Path) -> Option<&'static str> {
    let system = statfs(path).ok()?;
    NETWORK.iter().find(|(kind, _)| *kind == system.filesystem_type_name()).map(|(_, name)| *name)
}

pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<Renamed> {
    rename_with(from, to, libc::RENAME_EXCL)
}

pub(super) fn exchange(one: &Path, other: &Path) -> io::Result<Renamed> {
    rename_with(one, other, libc::RENAME_SWAP)
}

fn rename_with(from: &Path, to: &Path, flags: c_uint) -> io::Result<Renamed> {
    // SAFETY: the system reads the two strings, which live until it returns and end with NUL
    rename(from, to, |from, to| unsafe { libc::renamex_np(from.as_ptr(), to.as_ptr(), flags) })
}
