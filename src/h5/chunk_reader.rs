//! Reads and decodes chunks of HDF5 datasets without libhdf5, which only tells where they are, so
//! that several threads can read at once.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{ChunkInfo, Dataset, FilterScratch, Pipeline};
use crate::error::{Context, Error, Result, ResultExt};
use crate::grid::{ChunkRead, ChunkStorage, Grid, unravel};
use crate::io::{ByteOrder, ReadAt};
use crate::limits;
use crate::value::{DataType, Shape, Values, swap_bytes, swap_width};

thread_local! {
    static SCRATCH: RefCell<(FilterScratch, Vec<u8>, Vec<u8>)> = RefCell::default();
}

/// Reads chunks that the file had when the reader was made.
pub(crate) struct ChunkReader {
    grid: Grid,
    element: DataType,
    pipeline: Pipeline,
    chunks: Places,
    source: Arc<dyn ReadAt>,
    place: String,
}

enum Places {
    /// One [block](Dataset::block) of all chunks: memory does not grow with their number.
    Block {
        /// Offset of the first chunk.
        first: u64,
        count: u64,
    },
    /// Keys are numbers in the grid of chunks, first axis fastest. Missing chunks read as zeros.
    Listed(HashMap<u64, ChunkInfo>),
}

impl ChunkReader {
    /// `None` if only libhdf5 can read the dataset: not chunked, a filter of others, elements in
    /// other files or not packed and little-endian, or unwritten chunks that do not read as zeros.
    pub(crate) fn new(dataset: &Dataset, source: Arc<dyn ReadAt>) -> Result<Option<Self>> {
        Self::of_rows(dataset, source, u64::MAX)
    }

    /// Covers the first rows; later ones may not be complete yet.
    pub(crate) fn of_rows(dataset: &Dataset, source: Arc<dyn ReadAt>, rows: u64) -> Result<Option<Self>> {
        let (Some(chunk), Some(pipeline)) = (dataset.chunk()?, dataset.pipeline()?) else { return Ok(None) };
        if dataset.is_outside() || !dataset.is_plain()? {
            return Ok(None);
        }
        let place = format!("dataset {}", dataset.path());
        let shape = dataset.shape()?;
        let shape = shape.split_last().map_or(shape, |(cell, has)| cell.with_axis(has.min(rows)));
        let grid = Grid { shape, chunk };
        let element = dataset.data_type()?;
        let counts = grid.counts();
        let total = counts.elements().context(&place)?;
        let file_len = source.len()?;
        if rows == u64::MAX
            && let Some(first) = dataset.block()?
        {
            let chunks = Places::Block { first, count: total };
            let reader = ChunkReader { grid, element, pipeline, chunks, source, place };
            let bytes = total.checked_mul(reader.chunk_bytes()? as u64);
            if bytes.and_then(|bytes| bytes.checked_add(first)).is_none_or(|end| end > file_len) {
                let message = format!("the block of {total} chunks at offset {first} ends past the end of the file");
                return Err(Error::format(message).context(reader.place));
            }
            return Ok(Some(reader));
        }
        let mut chunks = HashMap::new();
        let inside = |info: &ChunkInfo| info.index.iter().zip(counts.iter()).all(|(index, count)| index < count);
        for info in dataset.chunks_of_rows(rows)?.into_iter().filter(inside) {
            if info.address.checked_add(info.stored_bytes).is_none_or(|end| end > file_len) {
                return Err(Error::format(format!("chunk {} ends past the end of the file", info.index)).context(place));
            }
            chunks.insert(grid.number(&info.index), info);
        }
        if (chunks.len() as u64) < total && !dataset.fills_with_zeros()? {
            return Ok(None);
        }
        Ok(Some(ChunkReader { grid, element, pipeline, chunks: Places::Listed(chunks), source, place }))
    }

    fn chunk_bytes(&self) -> Result<usize> {
        let bytes = self.grid.chunk.elements()?.checked_mul(self.element.size() as u64);
        bytes
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| Error::format("a chunk would have 2^64 bytes or more"))
    }

    /// Offset of the first chunk if all are stored one after the other, unfiltered.
    fn block(&self) -> Option<u64> {
        let bytes = self.chunk_bytes().ok().filter(|_| self.pipeline.is_empty())? as u64;
        let chunks = match &self.chunks {
            Places::Block { first, .. } => return Some(*first),
            Places::Listed(chunks) => chunks,
        };
        let first = chunks.get(&0)?.address;
        let counts = self.grid.counts().elements().ok()?;
        let is_next = |(&number, info): (&u64, &ChunkInfo)| {
            info.stored_bytes == bytes
                && number.checked_mul(bytes).and_then(|at| at.checked_add(first)) == Some(info.address)
        };
        (chunks.len() as u64 == counts && chunks.iter().all(is_next)).then_some(first)
    }

    /// `None` for a chunk never written.
    fn find(&self, number: u64) -> Option<Cow<'_, ChunkInfo>> {
        match &self.chunks {
            Places::Block { count, .. } if number >= *count => None,
            Places::Block { first, .. } => {
                let stored_bytes = self.chunk_bytes().ok()? as u64;
                let address = first + number * stored_bytes;
                Some(Cow::Owned(ChunkInfo { index: Shape::default(), address, stored_bytes, filter_mask: 0 }))
            }
            Places::Listed(chunks) => chunks.get(&number).map(Cow::Borrowed),
        }
    }

    fn decoded(&self, info: &ChunkInfo, with: impl FnOnce(&[u8])) -> Result<()> {
        let with = |bytes: &[u8]| {
            with(bytes);
            Ok(())
        };
        with_decoded(&*self.source, &self.pipeline, info, self.chunk_bytes()?, with)
            .with_context(|| Context::offset("stored bytes", info.address))
    }

    /// Decodes the first bytes of a chunk.
    fn decode_to(&self, info: &ChunkInfo, out: &mut [u8]) -> Result<()> {
        let chunk_bytes = self.chunk_bytes()?;
        if self.pipeline.is_empty() && info.stored_bytes == chunk_bytes as u64 {
            return self.source.read_at(info.address, out);
        }
        if out.len() < chunk_bytes {
            return self.decoded(info, |bytes| out.copy_from_slice(&bytes[..out.len()]));
        }
        let mut decode = || {
            SCRATCH.with_borrow_mut(|(scratch, stored, last)| {
                stored.resize(info.stored_bytes as usize, 0);
                self.source.read_at(info.address, stored)?;
                self.pipeline.decode_to(scratch, info.filter_mask, stored, last, out)
            })
        };
        decode().with_context(|| Context::offset("stored bytes", info.address))
    }

    /// Whether the stored chunk is large enough to decode to a whole one.
    fn is_backed(&self, info: &ChunkInfo) -> Result<bool> {
        Ok(self.pipeline.largest(info.filter_mask, info.stored_bytes) >= self.chunk_bytes()? as u64)
    }
}

/// Decodes a chunk to `len` bytes.
pub(crate) fn with_decoded<T>(
    source: &dyn ReadAt,
    pipeline: &Pipeline,
    info: &ChunkInfo,
    len: usize,
    with: impl FnOnce(&[u8]) -> Result<T>,
) -> Result<T> {
    SCRATCH.with_borrow_mut(|(scratch, stored, plain)| {
        stored.resize(info.stored_bytes as usize, 0);
        source.read_at(info.address, stored)?;
        if pipeline.is_empty() && stored.len() == len {
            return with(stored);
        }
        pipeline.decode(scratch, info.filter_mask, stored, len, plain)?;
        with(plain)
    })
}

impl ChunkReader {
    /// Returns the merged length for each index of the slowest axis, padding of chunks included;
    /// `None`, with nothing changed, if chunks do not allow that.
    pub(crate) fn merge_slowest(&mut self) -> Option<u64> {
        let Grid { shape, chunk } = &self.grid;
        let (rest, &slowest) = (shape.len().checked_sub(2)?, shape.last()?);
        let (&of_slowest, &of_next) = (chunk.last()?, chunk.get(rest)?);
        let parts = shape[rest].div_ceil(of_next.max(1));
        if parts != 1 && of_slowest != 1 {
            return None;
        }
        let padded = parts.checked_mul(of_next)?;
        let merged = |axes: &Shape, len: u64| Shape::from(&axes[..rest]).with_axis(len);
        self.grid = Grid {
            shape: merged(shape, slowest.checked_mul(padded)?),
            chunk: merged(chunk, of_slowest.checked_mul(of_next)?),
        };
        Some(padded)
    }
}

impl ChunkRead for ChunkReader {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn data_type(&self) -> DataType {
        self.element
    }

    fn read_chunk(&self, index: &[u64], out: &mut Values) -> Result<()> {
        let elements = self.grid.chunk.elements()? as usize;
        let mut read = || match self.find(self.grid.number(index)) {
            None => {
                limits::unbacked_cell(self.chunk_bytes()? as u64)?;
                out.extend_default(elements);
                Ok(())
            }
            // memory for numbers is taken once the stored bytes justify it; as Bool not every byte
            // is valid
            Some(info) if self.element != DataType::Bool && self.is_backed(&info)? => {
                out.extend_by_reading(elements, ByteOrder::Little, |bytes| self.decode_to(&info, bytes))
            }
            Some(info) => self.decoded(&info, |bytes| out.extend_from_bytes(bytes, ByteOrder::Little)),
        };
        read().with_context(|| format!("chunk {}", Shape::from(index))).with_context(|| self.place.clone())
    }

    fn raw_order(&self) -> Option<ByteOrder> {
        Some(ByteOrder::Little)
    }

    fn storage(&self) -> ChunkStorage<'_> {
        match self.block() {
            Some(offset) => ChunkStorage::Block { file: &*self.source, offset, order: ByteOrder::Little },
            None if !self.pipeline.is_empty() => ChunkStorage::Encoded,
            None if self.element == DataType::Bool => ChunkStorage::Encoded,
            None => ChunkStorage::Scattered,
        }
    }

    fn read_raw(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let mut read = || -> Result<()> {
            let (chunk_bytes, counts) = (self.chunk_bytes()?.max(1), self.grid.counts());
            let place = |number| format!("chunk {}", Shape::from(unravel(number, &counts).as_slice()));
            for (number, out) in (first..).zip(out.chunks_mut(chunk_bytes)) {
                match self.find(number) {
                    Some(info) => self.decode_to(&info, out).with_context(|| place(number))?,
                    None => out.fill(0),
                }
            }
            Ok(())
        };
        read().with_context(|| self.place.clone())
    }

    fn read_elements(&self, number: u64, first: u64, out: &mut Values, to: Range<usize>) -> Result<bool> {
        let Some(info) = self.find(number).filter(|_| self.pipeline.is_empty()) else { return Ok(false) };
        let Some(bytes) = out.bytes_mut(to) else { return Ok(false) };
        let start = first * self.element.size() as u64;
        if start + bytes.len() as u64 > info.stored_bytes {
            return Ok(false);
        }
        self.source.read_at(info.address + start, bytes).with_context(|| self.place.clone())?;
        if ByteOrder::NATIVE != ByteOrder::Little {
            swap_bytes(bytes, swap_width(self.element));
        }
        Ok(true)
    }
}

impl fmt::Debug for ChunkReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChunkReader").field(&self.place).field(&self.grid).finish()
    }
}
