//! Parts that fixed and extensible arrays have in common: heads of blocks, entries, pages.

use std::ops::Range;

use super::{Entry, Stored, Visit};
use crate::bytes::Bytes;
use crate::error::{Error, Result};

/// Compares the kind of an array's clients with the filters of the dataset.
pub(super) fn client(fields: &mut Bytes<'_>, has_filters: bool) -> Result<()> {
    let client = fields.u8()?;
    if client != u8::from(has_filters) {
        return Err(fields.error(format!("the array is of kind {client}, expected {}", u8::from(has_filters))));
    }
    Ok(())
}

/// Compares the address of the array's header in a block with that of the header.
pub(super) fn owner(fields: &mut Bytes<'_>, header: u64) -> Result<()> {
    match fields.address()? {
        Some(owner) if owner == header => Ok(()),
        owner => Err(fields.error(format!("the block is of the array at address {owner:?}, expected {header}"))),
    }
}

/// The entries `numbers`, which are next in `fields`, that are wanted and have chunks.
pub(super) fn decode(
    entry: Entry,
    entry_bytes: u64,
    fields: &mut Bytes<'_>,
    numbers: Range<u64>,
    wanted: &Range<u64>,
) -> Result<Vec<(u64, Stored)>> {
    let first = wanted.start.clamp(numbers.start, numbers.end);
    fields.skip(((first - numbers.start) * entry_bytes) as usize)?;
    let mut found = Vec::new();
    for number in first..numbers.end.min(wanted.end) {
        if let Some(stored) = entry.decode(fields)? {
            found.push((number, stored));
        }
    }
    Ok(found)
}

/// Pages that have entries `wanted`, each with its number and the numbers of its entries.
pub(super) fn pages(entries: u64, page: u64, wanted: &Range<u64>) -> impl Iterator<Item = (u64, Range<u64>)> {
    let (first, end) = (wanted.start.min(entries), wanted.end.min(entries));
    let numbers = if first < end { first / page..(end - 1) / page + 1 } else { 0..0 };
    numbers.map(move |number| (number, number * page..(number * page).saturating_add(page).min(entries)))
}

/// Bit `number`, counted from the highest of the first byte.
pub(super) fn is_set(bits: &[u8], number: u64) -> bool {
    let byte = usize::try_from(number / 8).ok().and_then(|at| bits.get(at));
    byte.is_some_and(|byte| byte & 0x80 >> (number % 8) != 0)
}

pub(super) fn is_within(visit: &Visit<'_, '_>, structure: &str, address: u64) -> Result<()> {
    let file = visit.chunks.file;
    if file.offset(address)? >= file.len()? {
        return Err(Error::damaged(format!("{structure} at address {address}: the file ends before")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_their_bits() {
        let found: Vec<_> = pages(10, 4, &(3..9)).collect();
        assert_eq!(found, [(0, 0..4), (1, 4..8), (2, 8..10)]);
        assert_eq!(pages(10, 4, &(5..6)).count(), 1);
        assert_eq!(pages(10, 4, &(10..20)).count(), 0);
        assert!(is_set(&[0x80, 0x01], 0) && is_set(&[0x80, 0x01], 15) && !is_set(&[0x80, 0x01], 1));
        assert!(!is_set(&[0xff], 8));
    }
}
