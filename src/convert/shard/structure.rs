//! A copy of everything in a file but the blocks that workers write: what a commit that was interrupted returns to.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::document::ShardPlan;
use crate::error::{Context, Result, ResultExt};

/// Bytes copied at a time.
const STEP_BYTES: u64 = 1 << 20;

/// The name of the copy in the directory of the plan.
pub(super) const STRUCTURE: &str = "structure.h5";

/// Copies all of the file at `from` but the blocks of `plan` to the same offsets of the file at `to`, which becomes as long, and makes
/// it durable.
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

/// The ranges of a file of `len` bytes that are in no block of a plan.
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

/// Makes the entries of a directory durable.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
