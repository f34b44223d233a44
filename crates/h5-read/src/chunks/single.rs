//! The only chunk of a dataset; the layout message has its address.

use super::{Stored, Visit};
use crate::error::{Error, Result};

pub(super) fn visit(visit: &mut Visit<'_, '_>, address: u64) -> Result<()> {
    let chunks = visit.chunks;
    if visit.window.last.iter().any(|&cell| cell > 0) {
        return Err(Error::damaged("the dataset has more chunks than the one that its layout has"));
    }
    let (bytes, filter_mask) = match (chunks.layout.single, chunks.has_filters) {
        (Some(filtered), true) => filtered,
        (None, _) => (chunks.chunk_bytes, 0),
        (Some(_), false) => return Err(Error::damaged("the layout has a filtered chunk, the dataset no filters")),
    };
    let cell = vec![0; visit.window.first.len()];
    (visit.each)(&cell, Stored { address, bytes, filter_mask })
}
