//! A copy of all parts of the HDF5 file of a plan that workers do not write, to which an interrupted commit returns.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::document::ShardPlan;
use crate::error::{Context, Result, ResultExt};

/// Number of bytes of the plan's HDF5 file that are copied at a time.
const STEP_BYTES: u64 = 1 << 20;

/// Name of the copy of the HDF5 file's structure in the directory of a plan.
pub(super) const STRUCTURE: &str = "structure.h5";

/// Copies all of the HDF5 file at `from`, except the contiguous datasets that workers write, to the same offsets of the file at
/// `to`, which gets the same length, and makes it durable.
///
/// # Errors
/// `NoSpace`, `Io`.
pub(super) fn copy_structure(plan: &ShardPlan, from: &Path, to: &Path) -> Result<()> {
    let copy = || -> Result<()> {
        let source = File::open(from)?;
        let target = File::options().write(true).create(true).truncate(false).open(to)?;
        let len = plan.header.file_bytes;
        target.set_len(len)?;
        let mut buffer = vec![0; STEP_BYTES as usize];
        for range in outside(plan, len)? {
            let mut at = range.start;
            while at < range.end {
                let bytes = &mut buffer[..(range.end - at).min(STEP_BYTES) as usize];
                source.read_exact_at(bytes, at)?;
                target.write_all_at(bytes, at)?;
                at += bytes.len() as u64;
            }
        }
        Ok(target.sync_all()?)
    };
    copy().with_context(|| Context::path(to))
}

/// Half-open byte ranges of an HDF5 file of `len` bytes that are outside the contiguous datasets of a plan.
fn outside(plan: &ShardPlan, len: u64) -> Result<Vec<Range<u64>>> {
    let blocks = plan.datasets.iter().map(|dataset| dataset.block());
    let mut blocks = blocks.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
    blocks.sort_by_key(|block| block.start);
    let mut ranges = Vec::new();
    let mut at = 0;
    for block in blocks {
        ranges.push(at..block.start.min(len));
        at = at.max(block.end);
    }
    ranges.push(at..len);
    ranges.retain(|range| !range.is_empty());
    Ok(ranges)
}

/// Makes the names of the files in a plan's directory durable.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
