//! Calls of the operating system that are more than reading and writing files, with a portable path
//! for each.
#![allow(unsafe_code, reason = "system calls on memory, and an ioctl")]

use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;
use std::ptr;

/// Below this size, the system call costs more than huge pages save.
const HUGE_PAGES_FROM: usize = 4 << 20;
/// Size on most machines, to which the range for `madvise` is aligned.
const HUGE_PAGE: usize = 2 << 20;

/// Avoids most page faults when large memory is first written. Does nothing where huge pages are
/// not supported.
pub fn prefer_huge_pages<T>(memory: &mut [T]) {
    let start = memory.as_mut_ptr().cast::<c_void>();
    let len = size_of_val(memory);
    let skipped = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
    let whole = len.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
    let Some(start) =
        ptr::NonNull::new(start.wrapping_byte_add(skipped)).filter(|_| len >= HUGE_PAGES_FROM && whole > 0)
    else {
        return;
    };
    #[cfg(target_os = "linux")]
    // SAFETY: the range is within `memory`, which is borrowed; the advice leaves its content as it
    // is
    let _ = unsafe { nix::sys::mman::madvise(start, whole, nix::sys::mman::MmapAdvise::MADV_HUGEPAGE) };
}

/// Makes the file `to`, from its byte `offset` on, share the bytes `range` of the file `from`, by
/// the ioctl `FICLONERANGE` (reflink). They must be whole blocks of the file system in both files.
///
/// # Errors
/// `EOPNOTSUPP` where the system cannot share bytes; the errors of the ioctl.
#[cfg(target_os = "linux")]
pub fn clone_range(from: &File, range: &Range<u64>, to: &File, offset: u64) -> nix::Result<()> {
    use std::os::fd::AsRawFd;
    let request = nix::libc::file_clone_range {
        src_fd: i64::from(from.as_raw_fd()),
        src_offset: range.start,
        src_length: range.end - range.start,
        dest_offset: offset,
    };
    // SAFETY: both descriptors are those of open files; the system reads the request, which lives
    // until it returns
    let status = unsafe { nix::libc::ioctl(to.as_raw_fd(), nix::libc::FICLONERANGE, &raw const request) };
    nix::errno::Errno::result(status).map(drop)
}

/// Fails with `EOPNOTSUPP`: this system cannot share bytes between files.
#[cfg(not(target_os = "linux"))]
pub fn clone_range(_from: &File, _range: &Range<u64>, _to: &File, _offset: u64) -> nix::Result<()> {
    Err(nix::errno::Errno::EOPNOTSUPP)
}
