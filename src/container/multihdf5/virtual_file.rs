//! Reads the bytes of one virtual file of a MultiHDF5 container directly from the HDF5 file, at the
//! offsets that libhdf5 reports; only a compact dataset (stored in the object header) is read
//! through libhdf5. formats/table.md 6.1, 6.4.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{ChunkInfo, Dataset, Pipeline, Storage, with_decoded};
use crate::io::{Raw, ReadAt, Recent, past_end};
use crate::value::{DataType, Region, Shape, Values};

/// Row of each block of a file.
pub(super) type BlockRows = Arc<Vec<u64>>;

/// Decoded chunks kept for small reads.
const CACHE_BYTES: u64 = 1 << 22;
/// Largest compact dataset, in bytes.
const MAX_COMPACT: u64 = 1 << 16;

/// Byte `o` is in block `o / block_bytes`, a row of a dataset of rows of `width` bytes, whatever
/// its chunks; positions are those when the HDF5 file was opened.
pub(super) struct VirtualFile {
    source: Arc<dyn ReadAt>,
    len: u64,
    block_bytes: u64,
    width: u64,
    chunk: Chunk,
    pipeline: Pipeline,
    /// Sorted by number; chunks that were never written are left out.
    runs: Vec<Run>,
    fill: u8,
    /// Row of each block; `None` if row `n` has block `n`.
    order: Option<BlockRows>,
    decoded: Recent<Vec<u8>>,
    place: String,
}

/// Bytes along a dataset row, rows, and chunks that a row spans.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    columns: u64,
    rows: u64,
    across: u64,
}

/// Chunks with consecutive numbers (row-major from 0), one after the other in the HDF5 file.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u64,
    count: u64,
    address: u64,
    stored_bytes: u64,
    filter_mask: u32,
}

impl Run {
    /// Offset in the HDF5 file; `None` if it is 2^64 or more.
    fn end(&self) -> Option<u64> {
        self.count.checked_mul(self.stored_bytes)?.checked_add(self.address)
    }

    /// Both its number and its place in the HDF5 file follow.
    fn is_followed_by(&self, number: u64, address: u64) -> bool {
        self.first + self.count == number && self.end() == Some(address)
    }
}

/// A part within one chunk.
#[derive(Debug, Clone, Copy)]
struct Piece {
    chunk: u64,
    /// Bytes in the decoded chunk before the part.
    within: u64,
    len: usize,
}

impl VirtualFile {
    /// None if the dataset is not chunked.
    pub(super) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// `Format` if `dataset` cannot hold `len` bytes, `Unsupported` for filters that we have not.
    pub(super) fn new(dataset: &Dataset, source: Arc<dyn ReadAt>, block_bytes: u64, len: u64) -> Result<Self> {
        let place = format!("dataset {}", dataset.path());
        Self::find(dataset, source, block_bytes, len).context(place)
    }

    /// `order` has the row of each block, and may go on after the end of the file.
    pub(super) fn in_order(
        dataset: &Dataset,
        source: Arc<dyn ReadAt>,
        block_bytes: u64,
        len: u64,
        order: BlockRows,
    ) -> Result<Self> {
        let check = || {
            let blocks = len.div_ceil(block_bytes.max(1));
            if blocks > order.len() as u64 {
                let message = format!("the file has {len} bytes, but only {} of its blocks are listed", order.len());
                return Err(Error::format(message));
            }
            let rows = dataset.shape()?.last().copied().unwrap_or(0);
            match order.iter().take(blocks as usize).find(|&&row| row >= rows) {
                Some(row) => Err(Error::format(format!("a block is in row {row}, but the dataset has {rows} rows"))),
                None => Ok(()),
            }
        };
        check().with_context(|| format!("dataset {}", dataset.path()))?;
        Ok(VirtualFile { order: Some(order), ..Self::new(dataset, source, block_bytes, len)? })
    }

    fn find(dataset: &Dataset, source: Arc<dyn ReadAt>, block_bytes: u64, len: u64) -> Result<Self> {
        let shape = dataset.shape()?;
        let [width, rows] = shape[..] else {
            return Err(Error::format(format!("the dataset has shape {shape}, expected two axes")));
        };
        if dataset.data_type()? != DataType::UChar {
            return Err(Error::format(format!("the elements have type {}, expected uchar", dataset.data_type()?)));
        }
        if width < block_bytes {
            return Err(Error::format(format!(
                "a row has {width} bytes, expected at least {block_bytes}, the size of a block"
            )));
        }
        if rows.checked_mul(block_bytes).is_some_and(|most| most < len) {
            return Err(Error::format(format!(
                "{rows} blocks of {block_bytes} bytes are too few for the file, which has {len} bytes"
            )));
        }
        let mut file = VirtualFile {
            source,
            len,
            block_bytes,
            width,
            chunk: Chunk { columns: width.max(1), rows: rows.max(1), across: 1 },
            pipeline: Pipeline::new(Vec::new()),
            runs: Vec::new(),
            fill: dataset.fill_byte()?.unwrap_or(0),
            order: None,
            decoded: Recent::new(1, 1),
            place: format!("dataset {}", dataset.path()),
        };
        match dataset.storage()? {
            Storage::Block(None) => {}
            Storage::Block(Some(address)) => file.add_block(address, shape.elements()?)?,
            Storage::Header => {
                let count = shape.elements()?;
                if count > MAX_COMPACT {
                    return Err(Error::format(format!(
                        "the object header holds {count} bytes, expected at most {MAX_COMPACT}"
                    )));
                }
                let mut values = Values::new(DataType::UChar);
                dataset.read_region(&Region::whole(&shape), &mut values)?;
                file.source = Arc::new(values.into_bytes());
                file.add_block(0, count)?;
            }
            Storage::Chunks => file.add_chunks(dataset, rows)?,
            Storage::Other(place) => return Err(Error::unsupported(format!("the bytes of the file are {place}"))),
        }
        Ok(file)
    }

    fn add_block(&mut self, address: u64, bytes: u64) -> Result<()> {
        self.runs = vec![Run { first: 0, count: 1, address, stored_bytes: bytes, filter_mask: 0 }];
        self.check_runs()
    }

    fn add_chunks(&mut self, dataset: &Dataset, rows: u64) -> Result<()> {
        let Some(pipeline) = dataset.pipeline()? else {
            let filters = dataset.filters()?.join(", ");
            return Err(Error::unsupported(format!("files in blocks are not read through the filters {filters}")));
        };
        let chunk = dataset.chunk()?.unwrap_or_default();
        let (&[columns, chunk_rows], false) = (&chunk[..], chunk.contains(&0)) else {
            return Err(Error::format(format!("the chunks are {chunk}, expected two extents of 1 or more")));
        };
        self.chunk = Chunk { columns, rows: chunk_rows, across: self.width.div_ceil(columns) };
        self.pipeline = pipeline;
        self.decoded = Recent::new(CACHE_BYTES, self.chunk_bytes()?);
        self.runs = self.find_runs(dataset, rows)?;
        self.check_runs()
    }

    /// Unfiltered chunks that follow each other are joined.
    fn find_runs(&self, dataset: &Dataset, rows: u64) -> Result<Vec<Run>> {
        let Chunk { rows: chunk_rows, across, .. } = self.chunk;
        let chunk_bytes = self.chunk_bytes()?;
        let unfiltered = self.pipeline.is_empty();
        let mut runs: Vec<Run> = Vec::new();
        let mut wrong_size = None;
        dataset.each_chunk(|ChunkInfo { index, address, stored_bytes, filter_mask }| {
            let [column, row] = index[..] else { return };
            if column >= across || row >= rows.div_ceil(chunk_rows) {
                return;
            }
            if unfiltered && stored_bytes != chunk_bytes {
                wrong_size = Some(stored_bytes);
            }
            let number = row * across + column;
            match runs.last_mut() {
                Some(run) if unfiltered && run.is_followed_by(number, address) => run.count += 1,
                _ => runs.push(Run { first: number, count: 1, address, stored_bytes, filter_mask }),
            }
        })?;
        if let Some(bytes) = wrong_size {
            return Err(Error::format(format!("a chunk has {bytes} bytes, expected {chunk_bytes}")));
        }
        runs.sort_unstable_by_key(|run| run.first);
        Ok(runs)
    }

    fn check_runs(&self) -> Result<()> {
        let file_len = self.source.len()?;
        for run in &self.runs {
            if run.end().is_none_or(|end| end > file_len) {
                let Run { first, address, .. } = run;
                return Err(Error::format(format!("chunk {first} at byte {address} ends past the end of the file")));
            }
        }
        Ok(())
    }

    fn chunk_bytes(&self) -> Result<u64> {
        let bytes = self.chunk.columns.checked_mul(self.chunk.rows).filter(|&bytes| bytes <= u64::from(u32::MAX));
        bytes.ok_or_else(|| Error::format("the chunks have 2^32 bytes or more, HDF5 allows fewer"))
    }

    /// The part that begins at byte `offset`, of at most `most` bytes.
    fn piece(&self, offset: u64, most: usize) -> Piece {
        let (block, column) = (offset / self.block_bytes, offset % self.block_bytes);
        let row = self.order.as_ref().map_or(block, |order| order[block as usize]);
        let Chunk { columns, rows, across } = self.chunk;
        let in_chunk = columns - column % columns;
        Piece {
            chunk: row / rows * across + column / columns,
            within: row % rows * columns + column % columns,
            len: in_chunk.min(self.block_bytes - column).min(most as u64) as usize,
        }
    }

    fn find_chunk(&self, number: u64) -> Option<ChunkInfo> {
        let at = self.runs.partition_point(|run| run.first <= number).checked_sub(1)?;
        let run = &self.runs[at];
        let before = number - run.first;
        (before < run.count).then(|| ChunkInfo {
            index: Shape::default(),
            address: run.address + before * run.stored_bytes,
            stored_bytes: run.stored_bytes,
            filter_mask: run.filter_mask,
        })
    }

    /// Without filters; parts that are adjacent in the HDF5 file are read in one call.
    fn read_plain(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let (mut done, mut start, mut next) = (0, 0, None);
        while done < out.len() {
            let piece = self.piece(offset + done as u64, out.len() - done);
            let address = self.find_chunk(piece.chunk).map(|chunk| chunk.address + piece.within);
            if address != next {
                self.read_part(next, &mut out[start..done])?;
                start = done;
            }
            done += piece.len;
            next = address.map(|address| address + piece.len as u64);
        }
        self.read_part(next, &mut out[start..])
    }

    /// Bytes of the HDF5 file before `end`; `None`, for bytes never written, is the fill value.
    fn read_part(&self, end: Option<u64>, out: &mut [u8]) -> Result<()> {
        match end {
            Some(end) => self.source.read_at(end - out.len() as u64, out),
            None => {
                out.fill(self.fill);
                Ok(())
            }
        }
    }

    fn read_piece(&self, piece: Piece, out: &mut [u8]) -> Result<()> {
        let Some(chunk) = self.find_chunk(piece.chunk) else {
            out.fill(self.fill);
            return Ok(());
        };
        let len = self.chunk_bytes()? as usize;
        let mut read = || {
            if piece.len == len {
                return with_decoded(&*self.source, &self.pipeline, &chunk, len, |bytes| {
                    out.copy_from_slice(bytes);
                    Ok(())
                });
            }
            let bytes = self.decoded.get(piece.chunk, || {
                with_decoded(&*self.source, &self.pipeline, &chunk, len, |bytes| Ok(bytes.to_vec()))
            })?;
            out.copy_from_slice(&bytes[piece.within as usize..][..piece.len]);
            Ok(())
        };
        read().with_context(|| Context::offset(format!("chunk {}", piece.chunk), chunk.address))
    }

    /// Decodes chunks on all threads.
    fn read_filtered(&self, offset: u64, mut out: &mut [u8]) -> Result<()> {
        let mut pieces = Vec::new();
        let mut at = offset;
        while !out.is_empty() {
            let piece = self.piece(at, out.len());
            let (part, rest) = out.split_at_mut(piece.len);
            pieces.push((piece, part));
            at += piece.len as u64;
            out = rest;
        }
        match pieces.len() {
            1 => pieces.into_iter().try_for_each(|(piece, out)| self.read_piece(piece, out)),
            _ => pieces.into_par_iter().try_for_each(|(piece, out)| self.read_piece(piece, out)),
        }
    }
}

impl ReadAt for VirtualFile {
    fn raw(&self, offset: u64) -> Option<Raw<'_>> {
        if !self.pipeline.is_empty() || offset >= self.len {
            return None;
        }
        let piece = self.piece(offset, usize::MAX);
        let chunk = self.find_chunk(piece.chunk)?;
        let raw = self.source.raw(chunk.address + piece.within)?;
        Some(Raw { len: raw.len.min(piece.len as u64).min(self.len - offset), ..raw })
    }

    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let wanted = out.len() as u64;
        if offset.checked_add(wanted).is_none_or(|end| end > self.len) {
            return Err(past_end(offset, wanted, self.len));
        }
        match self.pipeline.is_empty() {
            true => self.read_plain(offset, out),
            false => self.read_filtered(offset, out),
        }
        .with_context(|| &self.place)
    }
}

impl fmt::Debug for VirtualFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VirtualFile").field(&self.place).field(&self.len).finish()
    }
}
