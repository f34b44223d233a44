//! Reads data that are given by references: follows these to the blocks of a store. `depth` is the
//! level at which a reference is nested in other references, 0 for the outermost; a level above 40
//! is an error.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use ctds::error::{Error, Result};
use ctds::io::{ReadAt, past_end};
use ctds::limits;
use ctds::sync::LockUnpoisoned;
use rayon::prelude::*;

use super::hash::BlockHash;
use super::plain::InFile;
use super::records::LARGEST_BLOCK;
use super::reference::BlockRef;
use super::source::Source;
use super::wire::Cursor;

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) store: Arc<dyn Source>,
    /// Lists that were decoded last, the oldest first.
    children: Mutex<Vec<(BlockHash, Arc<Children>)>>,
}

/// Number of decoded lists that a reader keeps; one more displaces the oldest.
const KEPT: usize = 64;
const KEPT_REFERENCES: usize = 1 << 12;

/// The decoded list of references that is the data of a block.
#[derive(Debug)]
struct Children {
    references: Vec<BlockRef>,
    /// Offset at which the data of each reference end, counted from the start of their joined data.
    ends: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct VtFile {
    reader: Arc<Reader>,
    block: Option<BlockRef>,
    len: u64,
}

/// A request for bytes of one block, with the buffer for them.
struct Wanted<'o> {
    hash: BlockHash,
    span: Option<u64>,
    offset: u64,
    /// `None` if unknown, or for a block of a directory or of a list of references.
    place: Option<InFile>,
    out: &'o mut [u8],
}

/// A byte offset in an archived file, and the length of the file in bytes.
#[derive(Clone, Copy)]
struct Position {
    at: u64,
    total: u64,
}

impl Position {
    fn plus(self, bytes: u64) -> Self {
        Position { at: self.at.saturating_add(bytes), ..self }
    }
}

impl Reader {
    pub(super) fn new(store: Arc<dyn Source>) -> Self {
        Reader { store, children: Mutex::default() }
    }

    /// Fails if the data exceed 64 MiB, the largest block.
    pub(super) fn all(&self, block: &BlockRef) -> Result<Vec<u8>> {
        let span = self.span(block, 0)?;
        if span > LARGEST_BLOCK as u64 {
            let message = format!("a directory or block of references of {span} bytes; the limit is {LARGEST_BLOCK}");
            return Err(Error::limit(message));
        }
        let mut data = vec![0; span as usize];
        self.read(block, 0, None, &mut data)?;
        Ok(data)
    }

    /// Does not read a list again that `found` already has.
    pub(super) fn named_blocks(&self, block: &BlockRef, found: &mut HashSet<BlockHash>, depth: usize) -> Result<()> {
        limits::depth(depth, "block references")?;
        match block {
            BlockRef::Hash { hash, .. } => {
                found.insert(*hash);
                Ok(())
            }
            BlockRef::Rle { .. } | BlockRef::Literal(_) => Ok(()),
            BlockRef::Sub { block, .. } => self.named_blocks(block, found, depth + 1),
            BlockRef::Indirect { block, .. } => {
                if let BlockRef::Hash { hash, .. } = &**block
                    && !found.insert(*hash)
                {
                    return Ok(());
                }
                self.named_blocks(block, found, depth + 1)?;
                let children = self.children(block, depth + 1)?;
                children.references.iter().try_for_each(|child| self.named_blocks(child, found, depth + 1))
            }
        }
    }

    fn span(&self, block: &BlockRef, depth: usize) -> Result<u64> {
        limits::depth(depth, "block references")?;
        match block {
            BlockRef::Hash { span: Some(span), .. }
            | BlockRef::Rle { span, .. }
            | BlockRef::Sub { span, .. }
            | BlockRef::Indirect { span: Some(span), .. } => Ok(*span),
            BlockRef::Hash { hash, span: None } => Ok(self.store.block(hash)?.as_slice().len() as u64),
            BlockRef::Literal(bytes) => Ok(<[u8]>::len(bytes) as u64),
            BlockRef::Indirect { block, span: None } => {
                Ok(self.children(block, depth + 1)?.ends.last().copied().unwrap_or(0))
            }
        }
    }

    /// `position` is that in an archived file, for error messages; `None` for a directory.
    fn read(&self, block: &BlockRef, offset: u64, position: Option<Position>, out: &mut [u8]) -> Result<()> {
        let mut wanted = Vec::new();
        self.collect(block, offset, position, out, &mut wanted, 0)?;
        match wanted.len() {
            0 | 1 => wanted.into_iter().try_for_each(|one| self.fill(one)),
            _ => wanted.into_par_iter().try_for_each(|one| self.fill(one)),
        }
    }

    /// Adds requests to `wanted`, and fills in literals and repeated bytes at once.
    fn collect<'o>(
        &self,
        block: &BlockRef,
        offset: u64,
        position: Option<Position>,
        out: &'o mut [u8],
        wanted: &mut Vec<Wanted<'o>>,
        depth: usize,
    ) -> Result<()> {
        limits::depth(depth, "block references")?;
        match block {
            BlockRef::Hash { hash, span } => {
                if let Some(span) = *span {
                    check_within(offset, out.len(), span)?;
                }
                let place = position.zip(*span).and_then(|(position, span)| {
                    Some(InFile { start: position.at.checked_sub(offset)?, span, total: position.total })
                });
                wanted.push(Wanted { hash: *hash, span: *span, offset, place, out });
                Ok(())
            }
            BlockRef::Rle { octet, span } => {
                check_within(offset, out.len(), *span)?;
                out.fill(*octet);
                Ok(())
            }
            BlockRef::Literal(bytes) => bytes[..].read_at(offset, out),
            BlockRef::Sub { block, offset: start, span } => {
                check_within(offset, out.len(), *span)?;
                let whole = self.span(block, depth + 1)?;
                if start.checked_add(*span).is_none_or(|end| end > whole) {
                    let message = format!("{span} bytes from byte {start} on of a block of {whole} bytes");
                    return Err(Error::format(message));
                }
                self.collect(block, start + offset, None, out, wanted, depth + 1)
            }
            BlockRef::Indirect { block, span } => {
                let children = self.children(block, depth + 1)?;
                let end = children.ends.last().copied().unwrap_or(0);
                if let Some(span) = span.filter(|&span| span != end) {
                    let message = format!("a reference of {span} bytes to blocks of {end} bytes");
                    return Err(Error::format(message));
                }
                check_within(offset, out.len(), end)?;
                self.collect_children(&children, offset, position, out, wanted, depth + 1)
            }
        }
    }

    /// Does the same for the joined data of `children`, which include all bytes of `out`.
    fn collect_children<'o>(
        &self,
        children: &Children,
        offset: u64,
        position: Option<Position>,
        mut out: &'o mut [u8],
        wanted: &mut Vec<Wanted<'o>>,
        depth: usize,
    ) -> Result<()> {
        let mut at = offset;
        let mut next = children.ends.partition_point(|&end| end <= offset);
        while !out.is_empty() {
            let start = if next == 0 { 0 } else { children.ends[next - 1] };
            let count = (children.ends[next] - at).min(out.len() as u64);
            let (here, rest) = out.split_at_mut(count as usize);
            if count > 0 {
                let here_at = position.map(|position| position.plus(at - offset));
                self.collect(&children.references[next], at - start, here_at, here, wanted, depth)?;
            }
            (at, out, next) = (at + count, rest, next + 1);
        }
        Ok(())
    }

    fn fill(&self, wanted: Wanted<'_>) -> Result<()> {
        let Wanted { hash, span, offset, place, out } = wanted;
        let block = self.store.block_of_file(&hash, place)?;
        if let Some(span) = span.filter(|&span| span != block.as_slice().len() as u64) {
            let message =
                format!("a reference of {span} bytes to block {hash}, which has {} bytes", block.as_slice().len());
            return Err(Error::format(message));
        }
        block.as_slice().read_at(offset, out)
    }

    fn children(&self, block: &BlockRef, depth: usize) -> Result<Arc<Children>> {
        limits::depth(depth, "block references")?;
        let hash = match block {
            BlockRef::Hash { hash, .. } => Some(*hash),
            _ => None,
        };
        let known = |kept: &Vec<(BlockHash, Arc<Children>)>| {
            let (_, children) = kept.iter().rfind(|(known, _)| Some(*known) == hash)?;
            Some(children.clone())
        };
        if let Some(children) = known(&self.children.lock_unpoisoned()) {
            return Ok(children);
        }
        let data = match hash {
            Some(hash) => self.store.block(&hash)?.to_vec(),
            None => self.all(block)?,
        };
        let mut cursor = Cursor::new(&data, "block of references");
        let (mut references, mut ends) = (Vec::new(), Vec::new());
        let mut end: u64 = 0;
        while !cursor.is_at_end() {
            let reference = BlockRef::decode(&mut cursor)?;
            end = end
                .checked_add(self.span(&reference, depth + 1)?)
                .ok_or_else(|| Error::format("the blocks together have 2^64 bytes or more"))?;
            references.push(reference);
            ends.push(end);
        }
        let children = Arc::new(Children { references, ends });
        if let Some(hash) = hash.filter(|_| children.ends.len() <= KEPT_REFERENCES) {
            let mut kept = self.children.lock_unpoisoned();
            if kept.len() >= KEPT {
                kept.remove(0);
            }
            kept.push((hash, children.clone()));
        }
        Ok(children)
    }
}

fn check_within(offset: u64, count: usize, len: u64) -> Result<()> {
    match offset.checked_add(count as u64) {
        Some(end) if end <= len => Ok(()),
        _ => Err(past_end(offset, count as u64, len)),
    }
}

impl VtFile {
    /// Without a reference the file is empty.
    pub(super) fn new(reader: Arc<Reader>, block: Option<BlockRef>) -> Result<Self> {
        let len = match &block {
            Some(block) => reader.span(block, 0)?,
            None => 0,
        };
        Ok(VtFile { reader, block, len })
    }
}

impl ReadAt for VtFile {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        check_within(offset, out.len(), self.len)?;
        match &self.block {
            Some(block) if !out.is_empty() => {
                let position = Position { at: offset, total: self.len };
                self.reader.read(block, offset, Some(position), out)
            }
            _ => Ok(()),
        }
    }
}
