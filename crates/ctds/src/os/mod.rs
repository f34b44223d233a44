//! Calls of the operating system that are more than reading and writing files, with a portable path for each.
#![allow(unsafe_code, reason = "system calls on memory")]

use std::ffi::c_void;
use std::ptr;

/// Below this size, the system call costs more than huge pages save.
const HUGE_PAGES_FROM: usize = 4 << 20;
/// Size on most machines, to which the range for `madvise` is aligned.
const HUGE_PAGE: usize = 2 << 20;

/// Avoids most page faults when large memory is first written. Does nothing where huge pages are not supported.
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
    // SAFETY: the range is within `memory`, which is borrowed; the advice leaves its content as it is
    let _ = unsafe { nix::sys::mman::madvise(start, whole, nix::sys::mman::MmapAdvise::MADV_HUGEPAGE) };
}
