//! Chunks of a dataset that has all of them from its creation on, without filters: one beside the
//! other, in the order of their numbers.

use super::numbers::Numbers;
use super::{Stored, Visit};
use crate::error::{Error, Result};

pub(super) fn visit(visit: &mut Visit<'_, '_>, address: u64) -> Result<()> {
    let (chunks, file) = (visit.chunks, visit.chunks.file);
    let numbers = Numbers::new(chunks)?;
    if numbers.all.is_none() {
        return Err(Error::damaged("chunks without an index have an unlimited axis"));
    }
    let wanted = numbers.range(visit.window)?;
    let bytes = chunks.chunk_bytes;
    let most = file.len()?.saturating_sub(file.offset(address)?) / bytes.max(1);
    let end = wanted.end.min(most);
    let stored = |number: u64| (number, Stored { address: address + number * bytes, bytes, filter_mask: 0 });
    visit.pass(&numbers, (wanted.start..end).map(stored));
    if end < wanted.end {
        let lost = wanted.end - end.max(wanted.start);
        return Err(Error::damaged(format!("the file ends before {lost} chunks at address {address}")));
    }
    Ok(())
}
