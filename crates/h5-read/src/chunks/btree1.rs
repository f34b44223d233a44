//! Chunks in a B-tree of version 1. Its keys are the stored bytes and the filter mask of a chunk,
//! its first element by axis, and a 0 for the bytes of an element.

use std::cmp::Ordering;

use super::{Stored, Visit};
use crate::btree1::Tree;
use crate::bytes::Bytes;
use crate::error::Result;

const STRUCTURE: &str = "key of a chunk";

pub(super) fn visit(visit: &mut Visit<'_, '_>, address: u64) -> Result<()> {
    let Visit { chunks, window, walk, damage, each } = visit;
    let (file, shape) = (chunks.file, &chunks.layout.shape);
    let tree = Tree { kind: 1, key_bytes: 8 + 8 * (shape.len() + 1) };
    let order = |key: &[u8]| {
        let cell = cell(&mut file.bytes(STRUCTURE, address, key), shape);
        cell.map_or(Ordering::Equal, |key| window.compare(&key.cell))
    };
    // the chunks of a child are from the key before it up to that after it, exclusive; a damaged
    // key hides none
    let between = |before: &[u8], after: &[u8]| order(before) != Ordering::Greater && order(after) != Ordering::Less;
    tree.find(file, address, walk, damage, &between, &mut |key, _, address| {
        let mut fields = file.bytes(STRUCTURE, address, key);
        let key = cell(&mut fields, shape)?;
        if key.has_rest {
            return Err(fields.error("a chunk does not begin where chunks can"));
        }
        each(&key.cell, Stored { address, bytes: key.bytes, filter_mask: key.filter_mask })
    });
    Ok(())
}

struct Key {
    cell: Vec<u64>,
    bytes: u64,
    filter_mask: u32,
    /// The first element is not that of a cell.
    has_rest: bool,
}

fn cell(fields: &mut Bytes<'_>, shape: &[u64]) -> Result<Key> {
    let (bytes, filter_mask) = (u64::from(fields.u32()?), fields.u32()?);
    let mut cell = Vec::with_capacity(shape.len());
    let mut has_rest = false;
    for &chunk in shape {
        let start = fields.u64()?;
        cell.push(start.checked_div(chunk).unwrap_or(0));
        has_rest |= start.checked_rem(chunk) != Some(0);
    }
    has_rest |= fields.u64()? != 0;
    Ok(Key { cell, bytes, filter_mask, has_rest })
}
