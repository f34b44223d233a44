//! Chunks of a dataset: their places in the dataset and in the file.
//! HDF5 File Format Specification 3.0, sections III.A, VII and IV.A.2.i.
//!
//! Axes count in chunks here: a chunk has a cell, one number for each axis, from 0. A [`Window`] is
//! a box of cells. Each index visits the chunks in a window, so that one chunk is found as quickly
//! as a tree or an array allows. Arrays number the cells by the greatest extents, the unlimited
//! axis slowest, so that numbers stay when a dataset grows.

mod array;
mod btree1;
mod btree2;
mod extensible_array;
mod fixed_array;
mod implicit;
mod numbers;
mod single;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::Range;

use crate::bytes::Bytes;
use crate::dataspace::Dataspace;
use crate::error::{Error, Result};
use crate::file::File;
use crate::layout::{ChunkIndex, Chunked};
use crate::walk::{Listing, Walk};

/// A chunk of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// First element, slowest axis first.
    pub start: Vec<u64>,
    /// Address of the stored bytes; see [`File::offset`].
    pub address: u64,
    /// Number of stored bytes.
    pub bytes: u64,
    /// Filters that were left out: bit 0 for the first.
    pub filter_mask: u32,
    /// The stored bytes passed the filters, but for those of `filter_mask`.
    pub is_filtered: bool,
}

/// Most errors that a listing of chunks has: damage can be as large as the file.
const MAX_DAMAGE: usize = 1000;

/// A box of cells, none of its axes empty.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    first: Vec<u64>,
    /// Inclusive.
    last: Vec<u64>,
    /// Cells beyond the extents as well, whatever `first` and `last` are.
    is_all: bool,
}

impl Window {
    fn has(&self, cell: &[u64]) -> bool {
        self.is_all
            || self.first.iter().zip(&self.last).zip(cell).all(|((first, last), cell)| (first..=last).contains(&cell))
    }

    /// Place of a cell in the order of rows: `Equal` between the first and the last cell.
    fn compare(&self, cell: &[u64]) -> Ordering {
        if self.is_all {
            Ordering::Equal
        } else if cell < self.first.as_slice() {
            Ordering::Less
        } else if cell > self.last.as_slice() {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    }

    /// Number of cells; `None` if it is larger than all numbers.
    pub(crate) fn cells(&self) -> Option<u64> {
        let mut axes = self.first.iter().zip(&self.last);
        axes.try_fold(1u64, |all, (first, last)| all.checked_mul(last - first + 1))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunks<'a> {
    file: &'a File,
    layout: &'a Chunked,
    space: &'a Dataspace,
    /// Bytes of a chunk without filters.
    pub(crate) chunk_bytes: u64,
    has_filters: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stored {
    address: u64,
    bytes: u64,
    filter_mask: u32,
}

/// Receives the cells of an index with the chunks stored for them.
type Each<'a> = dyn FnMut(&[u64], Stored) -> Result<()> + 'a;

impl<'a> Chunks<'a> {
    pub(crate) fn new(file: &'a File, layout: &'a Chunked, space: &'a Dataspace, has_filters: bool) -> Result<Self> {
        if layout.shape.len() != space.rank() {
            let (chunks, axes) = (layout.shape.len(), space.rank());
            return Err(Error::damaged(format!("chunks have {chunks} axes, the dataset has {axes}")));
        }
        let beyond = || Error::damaged("chunks have more bytes than there are numbers");
        let chunk_bytes = layout.chunk_bytes().ok_or_else(beyond)?;
        Ok(Chunks { file, layout, space, chunk_bytes, has_filters })
    }

    /// All cells that the index has, also beyond the extents.
    pub(crate) fn everything(&self) -> Window {
        let origin = vec![0; self.layout.shape.len()];
        Window { first: origin.clone(), last: origin, is_all: true }
    }

    /// The cells of all elements; `None` if the dataset is empty.
    pub(crate) fn all(&self) -> Option<Window> {
        let last = self.space.extents.iter().zip(&self.layout.shape);
        let last = last.map(|(extent, chunk)| Some(extent.checked_sub(1)? / chunk)).collect::<Option<Vec<_>>>()?;
        Some(Window { first: vec![0; last.len()], last, is_all: false })
    }

    /// The cells of a region; `None` if it is empty.
    pub(crate) fn window(&self, region: &[Range<u64>]) -> Option<Window> {
        let cells = region.iter().zip(&self.layout.shape);
        let cells =
            cells.map(|(range, chunk)| (!range.is_empty()).then(|| (range.start / chunk, (range.end - 1) / chunk)));
        let (first, last) = cells.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Some(Window { first, last, is_all: false })
    }

    pub(crate) fn shape(&self) -> &[u64] {
        &self.layout.shape
    }

    /// The chunks in a window, in the order of their first elements.
    pub(crate) fn list(&self, window: &Window) -> Listing<Chunk> {
        let mut listing = Listing::new();
        let Listing { items, damage } = &mut listing;
        if let Err(error) = self.visit(window, damage, &mut |chunk| items.push(chunk)) {
            damage.push(error);
        }
        if !items.is_sorted_by(|a, b| a.start < b.start) {
            items.sort_by(|a, b| a.start.cmp(&b.start));
            items.dedup_by(|second, first| {
                let is_second = second.start == first.start;
                if is_second {
                    damage.push(Error::damaged(format!("chunk {:?} is twice in the index", first.start)));
                }
                is_second
            });
        }
        listing
    }

    /// Visits in the order of the index; parts of it that cannot be read are added to `damage`.
    fn visit(&self, window: &Window, damage: &mut Vec<Error>, each: &mut dyn FnMut(Chunk)) -> Result<()> {
        let mut walk = self.file.walk()?;
        // the file may end before chunks that a writer is about to write
        let mut stored = Walk::new(u64::MAX);
        let mut found = |cell: &[u64], chunk: Stored| {
            if window.has(cell) {
                stored.enter("chunk", chunk.address, chunk.bytes)?;
                each(self.chunk(cell, chunk));
            }
            Ok(())
        };
        let Some(address) = self.layout.address else { return Ok(()) };
        let before = damage.len();
        let mut visit = Visit { chunks: self, window, walk: &mut walk, damage, each: &mut found };
        match self.layout.index {
            ChunkIndex::BTree1 => btree1::visit(&mut visit, address),
            ChunkIndex::Single => single::visit(&mut visit, address),
            ChunkIndex::Implicit => implicit::visit(&mut visit, address),
            ChunkIndex::FixedArray => fixed_array::visit(&mut visit, address),
            ChunkIndex::ExtensibleArray => extensible_array::visit(&mut visit, address),
            ChunkIndex::BTree2 => btree2::visit(&mut visit, address),
        }
        .unwrap_or_else(|error| damage.push(error));
        let most = before.saturating_add(MAX_DAMAGE);
        if damage.len() > most {
            let more = damage.len() - most;
            damage.truncate(most);
            damage.push(Error::damaged(format!("{more} more parts of the chunk index are damaged")));
        }
        Ok(())
    }

    fn chunk(&self, cell: &[u64], stored: Stored) -> Chunk {
        let start: Vec<u64> =
            cell.iter().zip(&self.layout.shape).map(|(cell, chunk)| cell.saturating_mul(*chunk)).collect();
        let mut axes = start.iter().zip(&self.layout.shape).zip(&self.space.extents);
        let is_edge = axes.any(|((start, chunk), extent)| chunk > &extent.saturating_sub(*start));
        let is_filtered = self.has_filters && !(is_edge && self.layout.edges_are_plain);
        let Stored { address, bytes, filter_mask } = stored;
        Chunk { start, address, bytes, filter_mask, is_filtered }
    }
}

struct Visit<'a, 'b> {
    chunks: &'a Chunks<'a>,
    window: &'a Window,
    walk: &'a mut Walk,
    damage: &'a mut Vec<Error>,
    each: &'a mut Each<'b>,
}

impl Visit<'_, '_> {
    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.damage.push(error);
        }
    }
}

/// Fields of an entry in an array or a B-tree of version 2.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Bytes in which the stored bytes of a chunk are stored; `None` without filters.
    size_bytes: Option<usize>,
    /// Stored bytes of a chunk without filters.
    chunk_bytes: u64,
}

impl Entry {
    /// Fields of entries that have `bytes` bytes beside `other` bytes that are not of the chunk.
    fn new(chunks: &Chunks<'_>, structure: &str, bytes: usize, other: usize) -> Result<Self> {
        let address = chunks.file.sizes().address;
        let size_bytes = bytes.checked_sub(address + other).and_then(|left| match chunks.has_filters {
            false => (left == 0).then_some(None),
            true => left.checked_sub(4).filter(|size| (1..=8).contains(size)).map(Some),
        });
        let filtered = if chunks.has_filters { "filtered" } else { "unfiltered" };
        let wrong = || Error::damaged(format!("the {structure} has entries of {bytes} bytes for {filtered} chunks"));
        Ok(Entry { size_bytes: size_bytes.ok_or_else(wrong)?, chunk_bytes: chunks.chunk_bytes })
    }

    /// `None` for a chunk that was never written.
    fn decode(self, fields: &mut Bytes<'_>) -> Result<Option<Stored>> {
        let address = fields.address()?;
        let (bytes, filter_mask) = match self.size_bytes {
            Some(size_bytes) => (fields.number(size_bytes)?, fields.u32()?),
            None => (self.chunk_bytes, 0),
        };
        Ok(address.map(|address| Stored { address, bytes, filter_mask }))
    }
}
