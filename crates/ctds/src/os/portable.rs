//! The paths of all Unix systems: nothing but calls of POSIX.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::statvfs::statvfs;
use nix::unistd::{Pid, getppid};

use super::rename::Renamed;

/// Bytes in which getrusage(2) counts memory.
const MEMORY_UNIT: u64 = if cfg!(target_vendor = "apple") { 1 } else { 1024 };

const PARENT_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn prefer_huge_pages<T>(_memory: &mut [T]) {}

pub(super) fn peak_memory() -> Option<u64> {
    let peak = getrusage(UsageWho::RUSAGE_SELF).ok()?.max_rss();
    u64::try_from(peak).ok()?.checked_mul(MEMORY_UNIT)
}

pub(super) fn resident_memory() -> Option<u64> {
    None
}

pub(super) fn clone_range(_from: &File, _range: &Range<u64>, _to: &File, _offset: u64) -> nix::Result<()> {
    Err(Errno::EOPNOTSUPP)
}

pub(super) fn copy_range(_from: &File, _range: &Range<u64>, _to: &File, _offset: u64) -> u64 {
    0
}

pub(super) fn write_back(_file: &File, _bytes: Range<u64>) {}

pub(super) fn reserve(_file: &File, _bytes: Range<u64>) -> io::Result<()> {
    Ok(())
}

pub(super) fn first_hole(_file: &File, _start: u64) -> Option<u64> {
    None
}

pub(super) fn free_bytes(path: &Path) -> io::Result<u64> {
    let system = statvfs(path)?;
    Ok((system.blocks_available() as u64).saturating_mul(system.fragment_size() as u64))
}

pub(super) fn network_file_system(_path: &Path) -> Option<&'static str> {
    None
}

pub(super) fn rename_new(_from: &Path, _to: &Path) -> io::Result<Renamed> {
    Ok(Renamed::Unsupported)
}

pub(super) fn exchange(_one: &Path, _other: &Path) -> io::Result<Renamed> {
    Ok(Renamed::Unsupported)
}

pub(super) fn is_running(process: u32) -> bool {
    // a number that is not positive means a group of processes
    let Some(process) = i32::try_from(process).ok().filter(|&process| process > 0) else { return false };
    matches!(kill(Pid::from_raw(process), None), Ok(()) | Err(Errno::EPERM))
}

pub(super) fn process_that_writes(_path: &Path) -> Option<u32> {
    None
}

/// Asks for the parent again and again: another process adopts one whose parent has ended.
pub(super) fn end_with_parent() -> io::Result<()> {
    let parent = getppid();
    let watch = move || {
        while getppid() == parent {
            thread::sleep(PARENT_INTERVAL);
        }
        // where the process may not signal itself, nothing else would end it either
        let _ = kill(Pid::this(), Signal::SIGTERM);
    };
    thread::Builder::new().name("parent".to_owned()).spawn(watch).map(drop)
}
