//! Code for chunked N-dimensional arrays of any storage: the tiled hypercubes of casacore and
//! chunked HDF5 datasets are read and written by the same functions.
//!
//! A format supplies the coding of one chunk; reading boxes across chunks and caching are here.

mod cache;
mod region;

use std::ops::Range;

use crate::error::Result;
use crate::io::{ByteOrder, Raw, RawCopy, ReadAt};
use crate::value::{DataType, Shape, Values, swap_bytes, swap_width};

pub use cache::ChunkCache;
pub use region::{Part, copy_box, copy_elements, for_each_chunk, for_each_run, read_region};

/// The shape of an N-dimensional array and of the equal chunks into which it is cut; elements and
/// chunks are ordered with the first axis fastest.
///
/// Chunks at the far edges are stored whole; what lies outside the array is padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    pub shape: Shape,
    pub chunk: Shape,
}

impl Grid {
    /// Number of chunks on each axis, first axis fastest.
    pub fn counts(&self) -> Shape {
        self.shape.iter().zip(self.chunk.iter()).map(|(&extent, &chunk)| extent.div_ceil(chunk.max(1))).collect()
    }

    /// The linear number, from 0, of the chunk at `index` (in chunks on each axis); the first axis
    /// is fastest.
    pub fn number(&self, index: &[u64]) -> u64 {
        self.counts().iter().zip(index).rev().fold(0, |number, (&count, &i)| number * count + i)
    }

    /// Whether a chunk covers all of every axis but the last, slowest one (the rows, in a column's
    /// hypercube), so that chunks follow each other along this axis only.
    pub fn covers_cells(&self) -> bool {
        let cell_axes = self.shape.len().saturating_sub(1);
        self.shape[..cell_axes] == self.chunk[..cell_axes]
    }
}

/// The index, on each axis, of the chunk with linear number `number`, if the axes have `counts`
/// chunks. All numbers count from 0, first axis fastest.
pub fn unravel(mut number: u64, counts: &Shape) -> Vec<u64> {
    counts
        .iter()
        .map(|&count| {
            let index = number % count.max(1);
            number /= count.max(1);
            index
        })
        .collect()
}

/// How the chunks of an array are stored.
#[derive(Debug, Clone, Copy)]
pub enum ChunkStorage<'a> {
    /// The chunks are plain elements, stored one after the other in the order of their numbers:
    /// first axis fastest.
    Block {
        file: &'a dyn ReadAt,
        /// Offset of the first chunk in the file, in bytes.
        offset: u64,
        order: ByteOrder,
    },
    /// The chunks are plain elements, with other bytes stored between the chunks.
    Scattered,
    /// The chunks store Bools as one bit for each element.
    Bits,
    /// The chunks have to be decoded (decompressed, for instance), or may be missing.
    Encoded,
}

impl ChunkStorage<'_> {
    /// Whether the bytes of stored chunks are those of their elements, in either byte order.
    pub fn is_plain(&self) -> bool {
        matches!(self, ChunkStorage::Block { .. } | ChunkStorage::Scattered)
    }
}

/// An array that can be read chunk by chunk, from any thread.
pub trait ChunkRead: Send + Sync {
    /// Shape and chunk shape of the array in elements, first axis fastest.
    fn grid(&self) -> &Grid;

    /// The type of the array's elements.
    fn data_type(&self) -> DataType;

    /// Reads and decodes the chunk at `index` (in chunks, first axis fastest) and appends its
    /// elements to `out`, including the padding at the array's edges.
    fn read_chunk(&self, index: &[u64], out: &mut Values) -> Result<()>;

    /// The byte order of the elements that [`read_raw`](Self::read_raw) returns as bytes; `None` if
    /// the array cannot be read so, such as packed Bools.
    fn raw_order(&self) -> Option<ByteOrder> {
        None
    }

    /// How the chunks of the array are stored.
    fn storage(&self) -> ChunkStorage<'_>;

    /// Reads consecutive chunks, from the chunk number `first` on, until `out` is full: their
    /// decoded elements as bytes, in the byte order [`raw_order`](Self::raw_order). Chunks are
    /// counted from 0, and elements ordered, first axis fastest.
    ///
    /// Only where [`raw_order`](Self::raw_order) is known; `out` holds whole chunks.
    fn read_raw(&self, first: u64, out: &mut [u8]) -> Result<()>;

    /// Reads consecutive elements of chunk `number` of the array, from element `first` of this
    /// chunk on, into the range `to` of `out`, without reading the rest of the chunk. Both numbers
    /// count from 0, first axis fastest. Returns `false` if the storage does not allow that.
    fn read_elements(&self, number: u64, first: u64, out: &mut Values, to: Range<usize>) -> Result<bool>;
}

impl<T: ChunkRead + ?Sized> ChunkRead for &T {
    fn grid(&self) -> &Grid {
        (**self).grid()
    }

    fn data_type(&self) -> DataType {
        (**self).data_type()
    }

    fn read_chunk(&self, index: &[u64], out: &mut Values) -> Result<()> {
        (**self).read_chunk(index, out)
    }

    fn raw_order(&self) -> Option<ByteOrder> {
        (**self).raw_order()
    }

    fn storage(&self) -> ChunkStorage<'_> {
        (**self).storage()
    }

    fn read_raw(&self, first: u64, out: &mut [u8]) -> Result<()> {
        (**self).read_raw(first, out)
    }

    fn read_elements(&self, number: u64, first: u64, out: &mut Values, to: Range<usize>) -> Result<bool> {
        (**self).read_elements(number, first, out, to)
    }
}

/// Reads consecutive chunks of `from`, from the chunk number `first` (from 0, first axis fastest)
/// on, into `out` in byte order `order`. Returns false, and reads nothing, if `from` has no
/// [`raw_order`](ChunkRead::raw_order), such as packed Bools.
pub fn read_chunks_in(order: ByteOrder, from: &dyn ChunkRead, first: u64, out: &mut [u8]) -> Result<bool> {
    let Some(stored) = from.raw_order() else { return Ok(false) };
    from.read_raw(first, out)?;
    if stored != order {
        swap_bytes(out, swap_width(from.data_type()));
    }
    Ok(true)
}

/// Reads consecutive chunks and appends their elements to `out`. `chunks` are the numbers of the
/// chunks. Chunks of the array, and elements of a chunk, are counted from 0, first axis fastest.
pub fn read_chunks(from: &dyn ChunkRead, mut chunks: Range<u64>, out: &mut Values) -> Result<()> {
    let counts = from.grid().counts();
    chunks.try_for_each(|chunk| from.read_chunk(&unravel(chunk, &counts), out))
}

/// An array that can be written chunk by chunk; several threads may write different chunks at the
/// same time.
pub trait ChunkWrite: Send + Sync {
    /// Shape and chunk shape of the array in elements, first axis fastest.
    fn grid(&self) -> &Grid;

    fn data_type(&self) -> DataType;

    /// The byte order in which the elements of a chunk are stored one after the other; `None` for
    /// packed Bools.
    fn raw_order(&self) -> Option<ByteOrder>;

    /// Writes the whole chunk at `index`, edge padding included.
    fn write_chunk(&self, index: &[u64], values: &Values) -> Result<()>;

    /// Overwrites the stored chunks, from `at` bytes after the start of the first chunk on, with
    /// `bytes` of another file, by the method `by` (such as reflinks). Returns the number of copied
    /// bytes: 0 if none can be copied, or the chunks are not stored one after the other as plain
    /// elements.
    fn copy_raw(&self, at: u64, bytes: Raw<'_>, by: &dyn RawCopy) -> u64;

    /// Writes consecutive whole chunks from number `first` on, counted from 0, first axis fastest;
    /// `bytes` are the chunks as they are stored.
    ///
    /// Only where [`raw_order`](Self::raw_order) is known.
    fn write_raw(&self, first: u64, bytes: &[u8]) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbering_is_first_axis_fastest() {
        let grid = Grid { shape: Shape::from([4, 10, 7]), chunk: Shape::from([4, 3, 2]) };
        assert_eq!(*grid.counts(), [1, 4, 4]);
        assert_eq!(grid.number(&[0, 1, 2]), 9);
        assert!(!grid.covers_cells());
        assert!(Grid { shape: Shape::from([4, 10, 7]), chunk: Shape::from([4, 10, 2]) }.covers_cells());
    }
}
