//! Calls of Linux.

use std::ffi::{c_int, c_uint, c_void};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, PosixFadviseAdvice, copy_file_range, fallocate, posix_fadvise};
use nix::libc;
use nix::sys::mman::{MmapAdvise, madvise};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::statfs::{BTRFS_SUPER_MAGIC, FsType, fstatfs, statfs};
use nix::unistd::{Whence, lseek};

pub(super) use super::portable::free_bytes;
use super::rename::{Renamed, rename};

/// Below this size, the system call costs more than huge pages save.
const HUGE_PAGES_FROM: usize = 4 << 20;
/// Size on most machines, to which the range for `madvise` is aligned.
const HUGE_PAGE: usize = 2 << 20;

pub(super) fn prefer_huge_pages<T>(memory: &mut [T]) {
    let start = memory.as_mut_ptr().cast::<c_void>();
    let len = size_of_val(memory);
    let skipped = start.addr().next_multiple_of(HUGE_PAGE) - start.addr();
    let whole = len.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
    let Some(start) =
        ptr::NonNull::new(start.wrapping_byte_add(skipped)).filter(|_| len >= HUGE_PAGES_FROM && whole > 0)
    else {
        return;
    };
    // SAFETY: the range is within `memory`, which is borrowed; the advice leaves its content as it
    // is
    let _ = unsafe { madvise(start, whole, MmapAdvise::MADV_HUGEPAGE) };
}

pub(super) fn peak_memory() -> Option<u64> {
    memory("VmHWM:")
}

pub(super) fn resident_memory() -> Option<u64> {
    memory("VmRSS:")
}

fn memory(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

pub(super) fn clone_range(from: &File, range: &Range<u64>, to: &File, offset: u64) -> nix::Result<()> {
    let request = libc::file_clone_range {
        src_fd: i64::from(from.as_raw_fd()),
        src_offset: range.start,
        src_length: range.end - range.start,
        dest_offset: offset,
    };
    // SAFETY: both descriptors are those of open files; the system reads the request, which lives
    // until it returns
    let status = unsafe { libc::ioctl(to.as_raw_fd(), libc::FICLONERANGE, &raw const request) };
    Errno::result(status).map(drop)
}

pub(super) fn copy_range(from: &File, range: &Range<u64>, to: &File, offset: u64) -> u64 {
    let (mut source, mut target) = (range.start as i64, offset as i64);
    let len = (range.end - range.start) as usize;
    // where this cannot be done the caller reads and writes, and sees why
    copy_file_range(from, Some(&mut source), to, Some(&mut target), len).unwrap_or(0) as u64
}

pub(super) fn write_back(file: &File, bytes: Range<u64>) {
    // bytes that are not on the disk yet stay in memory as well; a failure to begin has no effect
    // on the result
    let advice = PosixFadviseAdvice::POSIX_FADV_DONTNEED;
    let _ = posix_fadvise(file, bytes.start as i64, (bytes.end - bytes.start) as i64, advice);
}

pub(super) fn reserve(file: &File, bytes: Range<u64>) -> io::Result<()> {
    // btrfs compresses new data, but not in reserved space
    if fstatfs(file).is_ok_and(|system| system.filesystem_type() == BTRFS_SUPER_MAGIC) {
        return Ok(());
    }
    let len = bytes.end - bytes.start;
    match fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, bytes.start as i64, len as i64) {
        Err(Errno::ENOSPC) => Err(Errno::ENOSPC.into()),
        // not all file systems can do it
        _ => Ok(()),
    }
}

pub(super) fn first_hole(file: &File, start: u64) -> Option<u64> {
    let hole = lseek(file, start as i64, Whence::SeekHole).ok()?;
    u64::try_from(hole).ok()
}

/// File systems, by statfs(2), on which readers on other hosts may see writes in any order.
const NETWORK: [(FsType, &str); 8] = [
    (FsType(0x6969), "NFS"),
    (FsType(0x517b), "SMB"),
    (FsType(0xff53_4d42), "CIFS"),
    (FsType(0xfe53_4d42), "SMB2"),
    (FsType(0x5346_414f), "AFS"),
    (FsType(0x7375_7245), "Coda"),
    (FsType(0x0102_1997), "9P"),
    (FsType(0x00c3_6400), "Ceph"),
];

pub(super) fn network_file_system(path: &Path) -> Option<&'static str> {
    let kind = statfs(path).ok()?.filesystem_type();
    NETWORK.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<Renamed> {
    rename_with(from, to, libc::RENAME_NOREPLACE)
}

pub(super) fn exchange(one: &Path, other: &Path) -> io::Result<Renamed> {
    rename_with(one, other, libc::RENAME_EXCHANGE)
}

/// The function `renameat2` is newer than the oldest C library that the wheel runs with.
fn rename_with(from: &Path, to: &Path, flags: c_uint) -> io::Result<Renamed> {
    rename(from, to, |from, to| {
        let (here, from, to) = (libc::AT_FDCWD, from.as_ptr(), to.as_ptr());
        // SAFETY: the system reads the two strings, which live until it returns and end with NUL
        unsafe { libc::syscall(libc::SYS_renameat2, here, from, here, to, flags) as c_int }
    })
}

pub(super) fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

pub(super) fn process_that_writes(path: &Path) -> Option<u32> {
    let wanted = fs::metadata(path).map(|found| (found.dev(), found.ino())).ok()?;
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    processes.filter(|&process| process != std::process::id()).find(|process| {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        descriptors.into_iter().any(|entry| {
            let same = fs::metadata(entry.path()).is_ok_and(|found| (found.dev(), found.ino()) == wanted);
            same && is_open_for_writing(*process, &entry.file_name().to_string_lossy())
        })
    })
}

/// The last two bits of `flags` in `fdinfo` (proc(5), octal) are not 0.
fn is_open_for_writing(process: u32, descriptor: &str) -> bool {
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")?.trim().chars().next_back()?.to_digit(8));
    flags.is_some_and(|last| last & 3 != 0)
}

pub(super) fn end_with_parent() -> io::Result<()> {
    Ok(set_pdeathsig(Signal::SIGTERM)?)
}
