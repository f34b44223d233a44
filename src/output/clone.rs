//! Makes ranges of files share their bytes on the disk with ranges of other files (reflinks), where
//! the file system supports that.
//!
//! A range is shared in whole blocks of the file system, in steps that can be interrupted; the
//! bytes before the first and after the last block are copied. Whether it can be done shows when it
//! is tried: [`share`] then either has put all bytes in place or says why not, and the caller
//! copies.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{fmt, io};

use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::io::{Raw, RawCopy, ReadAt, copy_between, past_end};
use crate::os::clone_range;
use crate::progress::Progress;

/// Bytes, in the order of trials: blocks of 4 KiB, pages of 64 KiB, records of ZFS.
const UNITS: [u64; 4] = [4 << 10, 64 << 10, 128 << 10, 1 << 20];
/// Most bytes of one call, since cancellation takes effect only between two calls.
const STEP_BYTES: u64 = 1 << 30;
/// Most bytes that [`probe`] shares.
const PROBE_BYTES: u64 = 1 << 20;

/// Whether files that are written share bytes on the disk with the source files (reflinks), on file
/// systems that can. The content of the written files is the same either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reflink {
    /// Written files share bytes with the source files where that is possible; elsewhere bytes are
    /// copied.
    #[default]
    Auto,
    /// Written files share bytes with the source files; it is an error if no bytes can be shared,
    /// or if a dataset that stores tiles one after the other, and has at least 4 MiB, can share
    /// none.
    Always,
    /// Written files share no bytes with the source files: all bytes are copied.
    Never,
}

/// The reason why the bytes of a column or file are copied, and not shared with the source on the
/// disk (reflinks).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NotShared {
    /// Bytes are copied, not shared with the source (reflinks), because the column is not stored in
    /// tiles.
    NotTiled,
    /// Bytes are copied, not shared with the source (reflinks), because a tile has one bit for each
    /// Bool, but HDF5 one byte.
    Bits,
    /// Bytes are copied, not shared with the source (reflinks), because only some of the rows are
    /// converted.
    SomeRows,
    /// Bytes are copied, not shared with the source (reflinks), because the tiles of the column
    /// cannot be used unchanged as chunks of the HDF5 dataset.
    TileShape,
    /// Bytes are copied, not shared with the source (reflinks), because the numbers in the tiles
    /// are big-endian, but those in the HDF5 dataset little-endian.
    ByteOrder,
    /// Bytes are copied, not shared with the source (reflinks), because bytes of other columns in
    /// the same file lie between the tiles.
    SeveralColumns,
    /// Bytes are copied, not shared with the source (reflinks), because the dataset that the tiles
    /// become has less than 4 MiB: such datasets are not aligned to file system blocks in the HDF5
    /// file.
    Small,
    /// Bytes are copied, not shared with the source (reflinks), because the tiles are in a
    /// container or a compressed file.
    Container,
    /// Bytes are copied, not shared with the source (reflinks), because the tiles do not begin at
    /// the boundary of a file system block.
    Misaligned,
    /// Bytes are copied, not shared with the source (reflinks), because source and target are in
    /// different file systems.
    OtherFileSystem,
    /// Bytes are copied, not shared with the source (reflinks), because the file system cannot
    /// share bytes between files.
    FileSystem,
    /// Bytes are copied, not shared with the source (reflinks), because the file system has not yet
    /// written the source to the disk.
    Busy,
    /// Bytes are copied, not shared with the source (reflinks), because the system does not permit
    /// sharing for the source or the target.
    Permission,
    /// Bytes are copied, not shared with the source (reflinks), because the caller wanted copies:
    /// [`Reflink::Never`].
    Unwanted,
}

impl NotShared {
    /// The reason for copies in a few words: `the file system does not share bytes between files`.
    pub fn describe(self) -> &'static str {
        match self {
            NotShared::NotTiled => "not in tiles",
            NotShared::Bits => "tiles of bits",
            NotShared::SomeRows => "only some rows are taken",
            NotShared::TileShape => "the tiles are not chunks of the dataset",
            NotShared::ByteOrder => "big-endian numbers",
            NotShared::SeveralColumns => "two or more columns in one file",
            NotShared::Small => "less than 4 MiB",
            NotShared::Container => "the tiles are in a container",
            NotShared::Misaligned => "the tiles do not begin at a block of the file system",
            NotShared::OtherFileSystem => "the source is in another file system",
            NotShared::FileSystem => "the file system does not share bytes between files",
            NotShared::Busy => "the source is not yet written to the disk",
            NotShared::Permission => "the system does not permit it",
            NotShared::Unwanted => "copies are wanted",
        }
    }

    /// The reason of an error of FICLONERANGE; `None` for any other error.
    fn of_errno(errno: Errno) -> Option<Self> {
        Some(match errno {
            Errno::EINVAL => NotShared::Misaligned,
            Errno::EXDEV => NotShared::OtherFileSystem,
            Errno::EOPNOTSUPP | Errno::ENOTTY | Errno::ENOSYS | Errno::EBADF => NotShared::FileSystem,
            Errno::EAGAIN | Errno::ETXTBSY => NotShared::Busy,
            Errno::EPERM | Errno::EACCES => NotShared::Permission,
            _ => return None,
        })
    }
}

impl fmt::Display for NotShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

/// Copies incomplete blocks at both ends. Number of shared bytes, or the reason why none can be
/// shared: the bytes in `to` are then unspecified. `Format` if the source ends before.
pub(crate) fn share(
    from: Raw<'_>,
    to: &File,
    offset: u64,
    progress: &dyn Progress,
) -> Result<std::result::Result<u64, NotShared>> {
    for unit in UNITS {
        let head = (from.offset.next_multiple_of(unit) - from.offset).min(from.len);
        let body = (from.len - head) / unit * unit;
        if from.offset % unit != offset % unit || body == 0 {
            break;
        }
        match share_blocks(Raw { offset: from.offset + head, len: body, ..from }, to, offset + head, progress)? {
            Ok(()) => {
                copy_end(from, to, offset, 0..head)?;
                copy_end(from, to, offset, head + body..from.len)?;
                return Ok(Ok(body));
            }
            // the file system may have a larger block size: try the next one
            Err(NotShared::Misaligned) => {}
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(Err(NotShared::Misaligned))
}

/// Shares whole blocks of the file system as [`share`] does, in steps.
fn share_blocks(
    from: Raw<'_>,
    to: &File,
    offset: u64,
    progress: &dyn Progress,
) -> Result<std::result::Result<(), NotShared>> {
    let mut at = 0;
    while at < from.len {
        progress.go_on()?;
        let len = (from.len - at).min(STEP_BYTES);
        let start = from.offset + at;
        match clone_range(from.file, &(start..start + len), to, offset + at) {
            Ok(()) => at += len,
            Err(Errno::EINTR) => {}
            Err(errno) => match NotShared::of_errno(errno) {
                Some(reason) => return Ok(Err(reason)),
                None => return Err(io::Error::from(errno).into()),
            },
        }
    }
    Ok(Ok(()))
}

/// `part` is counted from the start of `from`, which itself goes to byte `offset`.
fn copy_end(from: Raw<'_>, to: &File, offset: u64, part: std::ops::Range<u64>) -> Result<()> {
    let mut bytes = vec![0; (part.end - part.start) as usize];
    if bytes.is_empty() {
        return Ok(());
    }
    ReadAt::read_at(from.file, from.offset + part.start, &mut bytes)?;
    Ok(to.write_all_at(&bytes, offset + part.start)?)
}

/// Tries the first MiB with a temporary file without a name; `Format` if the source ends before.
pub(crate) fn probe(from: Raw<'_>, directory: &Path) -> Result<std::result::Result<(), NotShared>> {
    let len = from.file.len()?;
    if from.offset >= len {
        return Err(past_end(from.offset, 1, len));
    }
    let from = Raw { len: from.len.min(len - from.offset).min(PROBE_BYTES), ..from };
    let to = tempfile::tempfile_in(directory)?;
    // the offset modulo the largest unit is what counts
    Ok(share(from, &to, from.offset % UNITS[UNITS.len() - 1], &())?.map(drop))
}

/// Shares ranges if that is wanted and possible, copies others, and counts the shared bytes.
pub(crate) struct Sharer<'a> {
    reflink: Reflink,
    progress: &'a dyn Progress,
    shared: AtomicU64,
    /// An earlier range could not be shared. Callers then pass pieces of at most [`RAW_BYTES`] in
    /// place of [`STEP_BYTES`], because they probably have to be copied.
    refused: AtomicBool,
}

impl<'a> Sharer<'a> {
    pub(crate) fn new(reflink: Reflink, progress: &'a dyn Progress) -> Self {
        Sharer { reflink, progress, shared: AtomicU64::new(0), refused: AtomicBool::new(false) }
    }

    /// Bytes.
    pub(crate) fn shared(&self) -> u64 {
        self.shared.load(Ordering::Relaxed)
    }

    /// As [`probe`] finds; false with [`Reflink::Never`].
    pub(crate) fn can_share(&self, from: &dyn ReadAt, directory: &Path) -> bool {
        self.reflink != Reflink::Never
            && from.raw(0).is_some_and(|raw| probe(raw, directory).is_ok_and(|probed| probed.is_ok()))
    }

    pub(crate) fn share(&self, from: Raw<'_>, to: &File, offset: u64) -> Result<std::result::Result<u64, NotShared>> {
        if self.reflink == Reflink::Never {
            return Ok(Err(NotShared::Unwanted));
        }
        let shared = share(from, to, offset, self.progress)?;
        if let Ok(bytes) = shared {
            self.shared.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(shared)
    }
}

impl RawCopy for Sharer<'_> {
    fn most_bytes(&self) -> u64 {
        if self.reflink == Reflink::Never || self.refused.load(Ordering::Relaxed) { RAW_BYTES } else { STEP_BYTES }
    }

    fn copy(&self, from: Raw<'_>, to: &File, offset: u64) -> u64 {
        // the system shares by itself what it copies
        if self.reflink == Reflink::Never {
            return 0;
        }
        // the caller sees any failure by reading and writing
        match self.share(from, to, offset) {
            Ok(Ok(_)) => from.len,
            Ok(Err(_)) | Err(_) => {
                self.refused.store(true, Ordering::Relaxed);
                copy_between(Raw { len: from.len.min(RAW_BYTES), ..from }, to, offset)
            }
        }
    }
}

/// Never copies: the caller has to copy ranges that cannot be shared.
pub(crate) struct SharedOnly<'a>(pub(crate) &'a Sharer<'a>);

impl RawCopy for SharedOnly<'_> {
    fn most_bytes(&self) -> u64 {
        u64::MAX
    }

    fn copy(&self, from: Raw<'_>, to: &File, offset: u64) -> u64 {
        // the caller sees any failure by reading and writing
        if matches!(self.0.share(from, to, offset), Ok(Ok(_))) { from.len } else { 0 }
    }
}

/// Most bytes that one system call copies.
const RAW_BYTES: u64 = 4 << 20;

/// The error of a call with [`Reflink::Always`]; `what` is the output.
pub(crate) fn cannot_share(what: &str, reason: NotShared) -> Error {
    Error::unsupported(format!("{what} cannot share its bytes with the source: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};

    /// No bytes repeat soon.
    fn sample(folder: &Path, name: &str, len: usize) -> File {
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8 ^ (i >> 12) as u8).collect();
        std::fs::write(folder.join(name), bytes).unwrap();
        File::options().read(true).write(true).open(folder.join(name)).unwrap()
    }

    #[test]
    fn bytes_are_in_place_or_a_reason_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let from = sample(folder.path(), "from", 300_000);
        let source = std::fs::read(folder.path().join("from")).unwrap();
        for (offset, len, to) in [(0, 300_000, 0), (5, 250_000, 4101), (5, 1000, 5), (4096, 100_000, 8191)] {
            let target = sample(folder.path(), "to", 0);
            match share(Raw { file: &from, offset, len }, &target, to, &()).unwrap() {
                Ok(shared) => {
                    assert!(shared > 0 && shared <= len && shared % 4096 == 0);
                    let found = std::fs::read(folder.path().join("to")).unwrap();
                    assert_eq!(found[to as usize..], source[offset as usize..(offset + len) as usize]);
                }
                Err(reason) if offset % 4096 != to % 4096 || len < 4096 => assert_eq!(reason, NotShared::Misaligned),
                Err(reason) => assert_eq!(reason, NotShared::FileSystem),
            }
        }
    }

    #[test]
    fn reasons_and_errors_of_the_system() {
        for (errno, reason) in [
            (Errno::EINVAL, NotShared::Misaligned),
            (Errno::EXDEV, NotShared::OtherFileSystem),
            (Errno::EOPNOTSUPP, NotShared::FileSystem),
            (Errno::EAGAIN, NotShared::Busy),
        ] {
            assert_eq!(NotShared::of_errno(errno), Some(reason));
        }
        assert_eq!(NotShared::of_errno(Errno::ENOSPC), None);
        assert_eq!(NotShared::of_errno(Errno::EIO), None);
    }

    #[test]
    fn a_source_that_is_too_short_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (sample(folder.path(), "from", 5000), sample(folder.path(), "to", 0));
        let error = copy_end(Raw { file: &from, offset: 4096, len: 4096 }, &to, 4096, 0..4096).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert_eq!(
            probe(Raw { file: &from, offset: 8192, len: 1 }, folder.path()).unwrap_err().kind(),
            ErrorKind::Format
        );
    }

    #[test]
    fn reasons_against_sharing_are_named() {
        let shared: crate::Result<()> = Err(cannot_share("DATA", NotShared::NotTiled));
        let words = format!("DATA cannot share its bytes with the source: {}", NotShared::NotTiled);
        shared.fails(ErrorKind::Unsupported, &words);
    }
}
