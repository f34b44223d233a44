//! Writes the datasets under `/_ctds/restore` of a restorable file (recipes and bytes from which
//! original casacore files are rebuilt) without knowing their length in advance.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::h5::{Compression, Dataset, DatasetSpec, Effort, FilterScratch, Group};
use crate::value::{DataType, Shape};

const CHUNK_BYTES: usize = 1 << 20;
const CHUNKS_COMPRESSED_TOGETHER: usize = 8;
const EFFORT: Effort = Effort::Thorough;
/// One chunk takes little time anyway.
const EFFORT_OF_ONE_CHUNK: Effort = Effort::Most;

/// Writer of a dataset with one axis, whose length is known only at the end.
pub(super) struct AppendBuffer {
    group: Group,
    name: &'static str,
    element: DataType,
    /// `None` until the first chunks are written.
    dataset: Option<Dataset>,
    compression: Compression,
    chunks: u64,
    pending: Vec<u8>,
}

impl AppendBuffer {
    pub(super) fn new(group: &Group, name: &'static str, element: DataType) -> Self {
        AppendBuffer {
            group: group.clone(),
            name,
            element,
            dataset: None,
            compression: Compression::portable(EFFORT),
            chunks: 0,
            pending: Vec::new(),
        }
    }

    /// Includes elements that wait to be written.
    pub(super) fn len(&self) -> u64 {
        (self.chunks * CHUNK_BYTES as u64 + self.pending.len() as u64) / self.element.size() as u64
    }

    /// Elements are given as their little-endian bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8], pool: &rayon::ThreadPool) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) =
                bytes.split_at(bytes.len().min(CHUNKS_COMPRESSED_TOGETHER * CHUNK_BYTES - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
            if self.pending.len() == CHUNKS_COMPRESSED_TOGETHER * CHUNK_BYTES {
                self.write(pool)?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self, pool: &rayon::ThreadPool) -> Result<()> {
        let len = self.len();
        if self.dataset.is_none() && self.pending.len() <= CHUNK_BYTES {
            let shape = Shape::from([len]);
            self.compression = Compression::portable(EFFORT_OF_ONE_CHUNK);
            self.dataset = Some(self.create(&shape, &shape, false)?);
            if len == 0 {
                return Ok(());
            }
        }
        self.write(pool)?;
        match &self.dataset {
            Some(dataset) if dataset.is_appendable()? => dataset.set_extent(len),
            _ => Ok(()),
        }
    }

    fn create(&self, shape: &Shape, chunk: &Shape, appendable: bool) -> Result<Dataset> {
        let (element, compression, chunk) = (self.element, self.compression, Some(chunk.clone()));
        let spec = DatasetSpec { element, shape, chunk, appendable, compression };
        self.group.create_dataset(self.name, &spec)
    }

    /// The last chunk is filled up with zeros.
    fn write(&mut self, pool: &rayon::ThreadPool) -> Result<()> {
        let size = self.element.size();
        if self.dataset.is_none() {
            let chunk = Shape::from([(CHUNK_BYTES / size) as u64]);
            self.dataset = Some(self.create(&chunk, &chunk, true)?);
        }
        let Some(dataset) = &self.dataset else { return Ok(()) };
        let chunk = dataset.chunk()?.ok_or_else(|| Error::format("the dataset is not chunked"))?.elements()?;
        let chunk_bytes = chunk as usize * size;
        let pipeline = self.compression.pipeline(size);
        self.pending.resize(self.pending.len().next_multiple_of(chunk_bytes), 0);
        let filter = |scratch: &mut FilterScratch, bytes: &[u8]| {
            let mut packed = Vec::new();
            pipeline.encode(scratch, bytes, &mut packed)?;
            Ok(packed)
        };
        let chunks = self.pending.par_chunks(chunk_bytes);
        let packed: Result<Vec<Vec<u8>>> = pool.install(|| chunks.map_init(FilterScratch::default, filter).collect());
        let packed = packed?;
        if dataset.is_appendable()? {
            dataset.set_extent((self.chunks + packed.len() as u64) * chunk)?;
        }
        for bytes in packed {
            dataset.write_chunk(&[self.chunks], &bytes, 0)?;
            self.chunks += 1;
        }
        self.pending.clear();
        Ok(())
    }
}
