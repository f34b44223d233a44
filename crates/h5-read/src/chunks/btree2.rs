//! Chunks in a B-tree of version 2, of datasets with several unlimited axes. Its records are the
//! address of a chunk, with filters its stored bytes and its filter mask, and its cell in 8 bytes
//! for each axis.

use std::cmp::Ordering;

use super::{Entry, Visit};
use crate::btree2::Tree;
use crate::bytes::Bytes;
use crate::error::{Error, Result};

const STRUCTURE: &str = "record of a chunk";

pub(super) fn visit(visit: &mut Visit<'_, '_>, address: u64) -> Result<()> {
    let Visit { chunks, window, walk, damage, each } = visit;
    let (file, rank) = (chunks.file, chunks.layout.shape.len());
    let tree = Tree::read(file, address, if chunks.has_filters { 11 } else { 10 })?;
    let entry = Entry::new(chunks, "B-tree", tree.record_bytes() as usize, 8 * rank)?;
    let order = |record: &[u8]| {
        let at = record.len().saturating_sub(8 * rank);
        let cell = record.get(at..).map(|cell| cell_of(&mut file.bytes(STRUCTURE, address, cell), rank));
        cell.and_then(Result::ok).map_or(Ordering::Equal, |cell| window.compare(&cell))
    };
    tree.find(file, walk, damage, &order, &mut |record| {
        let mut fields = file.bytes(STRUCTURE, address, record);
        let stored = entry.decode(&mut fields)?;
        let stored = stored.ok_or_else(|| Error::damaged("the address of a chunk is undefined"))?;
        each(&cell_of(&mut fields, rank)?, stored)
    });
    Ok(())
}

fn cell_of(fields: &mut Bytes<'_>, rank: usize) -> Result<Vec<u64>> {
    (0..rank).map(|_| fields.u64()).collect()
}
