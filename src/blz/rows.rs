//! Reads the rows of an array that is a dataset of an HDF5 file. A row is the elements with one
//! index on the slowest axis. Elements are read as in memory of numpy, of the numpy type that the
//! array has.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use blosc_arrays::array::Rows;
use blosc_arrays::chunk_files::BATCH_BYTES;
use blosc_arrays::dtype::Dtype;
use rayon::prelude::*;

use crate::error::{Error, Result, ResultExt};
use crate::h5::{self, ChunkInfo, Dataset, Pipeline, Storage, StoredElement, with_decoded};
use crate::io::ReadAt;
use crate::limits;
use crate::progress::Progress;

/// Bytes of rows that are read at a time from a dataset without chunks.
const BLOCK_BYTES: u64 = 1 << 20;

pub(super) struct DatasetRows {
    dataset: Dataset,
    /// Type that the elements are read as.
    element: StoredElement,
    dtype: Dtype,
    len: u64,
    row_bytes: u64,
    /// Rows that are read at a time: those of a chunk, or about 1 MiB of rows without chunks.
    rows: u64,
    /// `None` if the stored chunks cannot be read and decoded without libhdf5.
    direct: Option<Direct>,
    _file: Arc<h5::File>,
}

impl fmt::Debug for DatasetRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DatasetRows").field(&self.dataset).finish()
    }
}

/// Each chunk has whole rows, and filters that this program can decode.
struct Direct {
    source: Arc<dyn ReadAt>,
    pipeline: Pipeline,
    /// The chunks that exist in the file, by the number of the first row of each.
    chunks: HashMap<u64, ChunkInfo>,
    /// Element, in HDF5's form, that fills missing chunks; empty if all exist.
    fill: Vec<u8>,
}

impl DatasetRows {
    /// `element` is the type in HDF5, `dtype` in numpy; `shape` has at least one axis, slowest
    /// first.
    pub(super) fn new(
        file: &Arc<h5::File>,
        source: &Arc<dyn ReadAt>,
        dataset: Dataset,
        element: StoredElement,
        dtype: &Dtype,
        shape: &[u64],
        row_bytes: u64,
    ) -> Result<Self> {
        let chunk = dataset.chunk()?;
        let rows = match chunk.as_ref().and_then(|chunk| chunk.last().copied()) {
            Some(rows) => rows.max(1),
            None => (BLOCK_BYTES / row_bytes.max(1)).max(1),
        };
        let is_whole = |chunk: &[u64]| chunk[..chunk.len() - 1].iter().rev().eq(&shape[1..]);
        let direct = match (&chunk, dataset.pipeline()?, dataset.storage()?) {
            (Some(chunk), Some(pipeline), Storage::Chunks) if is_whole(chunk) && dataset.stores(&element)? => {
                let mut chunks = HashMap::new();
                dataset.each_chunk(|info| {
                    let first = info.index.last().copied().unwrap_or(0).saturating_mul(rows);
                    chunks.insert(first, info);
                })?;
                let has_all = chunks.len() as u64 >= shape[0].div_ceil(rows);
                let fill = if has_all { Vec::new() } else { dataset.fill(&element)? };
                Some(Direct { source: source.clone(), pipeline, chunks, fill })
            }
            _ => None,
        };
        let (dtype, len) = (dtype.clone(), shape[0]);
        Ok(DatasetRows { dataset, element, dtype, len, row_bytes, rows, direct, _file: file.clone() })
    }

    pub(super) fn chunk_rows(&self) -> u64 {
        self.rows
    }

    /// The rows are those of one chunk if the stored chunks are read without libhdf5.
    fn read_block(&self, first: u64, end: u64) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut read = || -> Result<()> {
            let Some(direct) = &self.direct else {
                return self.dataset.read_rows(&self.element, first..end, &mut out);
            };
            let len = (end - first) * self.row_bytes;
            let Some(info) = direct.chunks.get(&first) else {
                limits::unbacked_cell(len)?;
                out = direct.fill.repeat((len / direct.fill.len().max(1) as u64) as usize);
                return Ok(());
            };
            let whole = self.rows.checked_mul(self.row_bytes).and_then(|bytes| usize::try_from(bytes).ok());
            let whole = whole.ok_or_else(|| Error::format("a chunk would have 2^64 bytes or more"))?;
            with_decoded(&*direct.source, &direct.pipeline, info, whole, |bytes| {
                out.extend_from_slice(&bytes[..len as usize]);
                Ok(())
            })
        };
        read().with_context(|| format!("dataset {}, rows {first} to {end}", self.dataset.path()))?;
        if !self.dtype.is_plain() {
            out.chunks_exact_mut(self.dtype.size).try_for_each(|element| self.dtype.restore(element))?;
        }
        Ok(out)
    }
}

impl Rows for DatasetRows {
    /// Pieces of any length; `Format` if the dataset is damaged, or has text that is not Unicode.
    fn read(&self, progress: &dyn Progress, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (rows, row_bytes) = (self.len, self.row_bytes);
        if rows == 0 || row_bytes == 0 {
            return Ok(());
        }
        let chunk_bytes = self.rows.saturating_mul(row_bytes);
        let at_a_time = (BATCH_BYTES / chunk_bytes.max(1)).max(1);
        let mut first = 0;
        while first < rows {
            progress.go_on()?;
            let end = first.saturating_add(at_a_time.saturating_mul(self.rows)).min(rows);
            let starts: Vec<u64> = (first..end).step_by(usize::try_from(self.rows).unwrap_or(usize::MAX)).collect();
            let read = |&start: &u64| self.read_block(start, start.saturating_add(self.rows).min(rows));
            let read: Vec<Result<Vec<u8>>> = match self.direct {
                Some(_) => starts.par_iter().map(read).collect(),
                None => vec![self.read_block(first, end)],
            };
            for bytes in read {
                let bytes = bytes?;
                each(&bytes)?;
                progress.advance(bytes.len() as u64, ".", "");
            }
            first = end;
        }
        progress.go_on()
    }
}
