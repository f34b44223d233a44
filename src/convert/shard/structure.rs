//! A backup of the bytes that commit, the last step of a conversion by many processes, may change
//! in the HDF5 file before it publishes the file. An interrupted commit is undone from the backup.
//!
//! ```text
//! 8 bytes   length of the HDF5 file
//! then for each range, all numbers little-endian:
//!   8 bytes   offset of the range in the HDF5 file
//!   8 bytes   length of the range
//!   bytes     of the range
//! ```

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::document::ShardPlan;
use crate::error::{Context, Error, Result, ResultExt};

const STEP_BYTES: u64 = 1 << 20;

pub(super) const STRUCTURE: &str = "structure";

/// Saves all bytes that commit may change: neither contiguous datasets that workers write, nor the
/// byte ranges `chunks`, which are written already.
pub(super) fn keep_structure(plan: &ShardPlan, chunks: Vec<Range<u64>>, from: &Path, to: &Path) -> Result<()> {
    let keep = || -> Result<()> {
        let source = File::open(from)?;
        let mut out = BufWriter::with_capacity(STEP_BYTES as usize, File::create_new(to)?);
        let len = plan.header.file_bytes;
        out.write_all(&len.to_le_bytes())?;
        let mut buffer = vec![0; STEP_BYTES as usize];
        for range in outside(plan, chunks, len)? {
            out.write_all(&range.start.to_le_bytes())?;
            out.write_all(&(range.end - range.start).to_le_bytes())?;
            let mut at = range.start;
            while at < range.end {
                let bytes = &mut buffer[..(range.end - at).min(STEP_BYTES) as usize];
                source.read_exact_at(bytes, at)?;
                out.write_all(bytes)?;
                at += bytes.len() as u64;
            }
        }
        Ok(out.into_inner().map_err(|error| error.into_error())?.sync_all()?)
    };
    keep().with_context(|| Context::path(to))
}

/// Also makes the HDF5 file durable; `Format` if the backup is damaged.
pub(super) fn restore_structure(from: &Path, to: &Path) -> Result<()> {
    let restore = || -> Result<()> {
        let mut source = BufReader::with_capacity(STEP_BYTES as usize, File::open(from)?);
        let target = File::options().write(true).open(to).with_context(|| Context::path(to))?;
        let too_short = || Error::format("the copy of the structure ends too early: make a new plan");
        let len = number(&mut source)?.ok_or_else(too_short)?;
        target.set_len(len)?;
        let mut buffer = vec![0; STEP_BYTES as usize];
        while let Some(start) = number(&mut source)? {
            let count = number(&mut source)?.ok_or_else(too_short)?;
            let end = start.checked_add(count).filter(|&end| end <= len).ok_or_else(|| {
                Error::format(format!("{count} bytes at offset {start} exceed the file, which has {len} bytes"))
            })?;
            let mut at = start;
            while at < end {
                let bytes = &mut buffer[..(end - at).min(STEP_BYTES) as usize];
                source.read_exact(bytes).map_err(|_| too_short())?;
                target.write_all_at(bytes, at)?;
                at += bytes.len() as u64;
            }
        }
        Ok(target.sync_all()?)
    };
    restore().with_context(|| Context::path(from))
}

/// `None` if fewer than 8 bytes are left.
fn number(source: &mut impl Read) -> io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    match source.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(u64::from_le_bytes(bytes))),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Ranges of a file of `len` bytes outside `chunks` and the contiguous datasets that workers write.
fn outside(plan: &ShardPlan, chunks: Vec<Range<u64>>, len: u64) -> Result<Vec<Range<u64>>> {
    let blocks = plan.datasets.iter().map(|dataset| dataset.block());
    let mut inside = blocks.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
    inside.extend(chunks);
    inside.sort_by_key(|range| range.start);
    let mut ranges = Vec::new();
    let mut at = 0;
    for range in inside {
        ranges.push(at..range.start.min(len));
        at = at.max(range.end);
    }
    ranges.push(at..len);
    ranges.retain(|range| !range.is_empty());
    Ok(ranges)
}

pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

pub(super) fn check_len(path: &Path, expected: u64) -> Result<()> {
    let found = path.metadata().with_context(|| Context::path(path))?.len();
    if found == expected {
        return Ok(());
    }
    let message = format!("the file has {found} bytes, {expected} are expected");
    Err(Error::format(message).context(Context::path(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fails;

    #[test]
    fn damaged_copies_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (copy, file) = (folder.path().join(STRUCTURE), folder.path().join("my.h5"));
        let restored = |numbers: &[u64], bytes: &[u8]| {
            std::fs::write(&file, b"0123456789").unwrap();
            let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
            std::fs::write(&copy, numbers.chain(bytes.iter().copied()).collect::<Vec<_>>()).unwrap();
            restore_structure(&copy, &file)
        };
        let early = "the copy of the structure ends too early: make a new plan";
        restored(&[], b"1234567").fails(crate::ErrorKind::Format, early);
        restored(&[8, 2], b"").fails(crate::ErrorKind::Format, early);
        restored(&[8, 2, 3], b"ab").fails(crate::ErrorKind::Format, early);
        restored(&[8, 2, 7], b"abcdefg")
            .fails(crate::ErrorKind::Format, "7 bytes at offset 2 exceed the file, which has 8 bytes");
        restored(&[8, u64::MAX, 1], b"a").fails(
            crate::ErrorKind::Format,
            "1 bytes at offset 18446744073709551615 exceed the file, which has 8 bytes",
        );
        restored(&[8, 2, 3], b"abc").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"01abc567");
    }
}
