//! What one table may make us allocate, nest or follow without bytes that justify it.
//!
//! Counts are checked against the bytes that remain (see [`crate::aipsio::Decoder`]); these limits are for sizes
//! that no input backs.

use crate::error::{Error, Result};

/// Bytes of one cell that no stored byte backs: a fixed-shape column of a manager that stores nothing, or an array
/// of strings that are all empty.
const UNBACKED_CELL_BYTES: u64 = 1 << 28;

/// Records within records, subtables within subtables.
pub(crate) const MAX_DEPTH: usize = 64;

/// Refuses a cell of `bytes` that nothing in the file backs.
pub(crate) fn unbacked_cell(bytes: u64) -> Result<()> {
    if bytes > UNBACKED_CELL_BYTES {
        return Err(Error::limit(format!(
            "a cell of {bytes} bytes of which the file stores none; the limit is {UNBACKED_CELL_BYTES}"
        )));
    }
    Ok(())
}

/// Refuses nesting deeper than any real table has.
pub(crate) fn depth(depth: usize, what: &str) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::limit(format!("{what} nested deeper than {MAX_DEPTH} levels")));
    }
    Ok(())
}
