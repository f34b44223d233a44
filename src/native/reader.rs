//! Reads elements of the datasets of a native HDF5 file, and keeps decoded chunks for the next
//! reads.

use std::ops::Range;
use std::sync::Arc;

use super::exact::{self, Misfit};
use super::form::Part;
use crate::error::{Context, Error, Result};
use crate::grid::{ChunkCache, ChunkRead, ChunkStorage, read_region};
use crate::h5::{ChunkReader, Dataset};
use crate::io::ReadAt;
use crate::value::{DataType, Region, Shape, Values};

/// Decoded chunks of a dataset; HDF5 2's default.
const CACHE_BYTES: usize = 8 << 20;

/// Chunks are decoded by this program if the filters allow it, else by libhdf5.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) shape: Shape,
    /// Type of the elements that are read; see `converts`.
    pub(crate) data_type: DataType,
    /// Part whose elements have another type than `data_type`, converted where values fit.
    converts: Option<Part>,
    pub(super) chunks: Option<ChunkReader>,
    dataset: Dataset,
    cache: ChunkCache,
}

impl Reader {
    /// `source` is the file of `dataset`.
    pub(crate) fn of_file(dataset: Dataset, source: Arc<dyn ReadAt>) -> Result<Self> {
        Self::with_cache(dataset, source, CACHE_BYTES)
    }

    /// `cache` is the number of bytes of decoded chunks.
    pub(crate) fn with_cache(dataset: Dataset, source: Arc<dyn ReadAt>, cache: usize) -> Result<Self> {
        let chunks = ChunkReader::new(&dataset, source)?;
        Self::with_chunks(dataset, chunks, cache)
    }

    /// `None`: through libhdf5.
    pub(super) fn new(dataset: Dataset, chunks: Option<ChunkReader>) -> Result<Self> {
        Self::with_chunks(dataset, chunks, CACHE_BYTES)
    }

    fn with_chunks(dataset: Dataset, chunks: Option<ChunkReader>, cache: usize) -> Result<Self> {
        let (shape, data_type) = (dataset.shape()?, dataset.data_type()?);
        Ok(Reader { shape, data_type, converts: None, chunks, dataset, cache: ChunkCache::new(cache) })
    }

    /// `Unsupported` if no element of the dataset's type can become one of `wanted` without loss.
    pub(super) fn converting(dataset: Dataset, wanted: DataType, part: Part) -> Result<Self> {
        let is_possible = dataset.wide_kind().is_ok_and(|kind| exact::is_possible(&kind, wanted));
        if !is_possible {
            let found = dataset.type_name()?;
            let message = format!(
                "elements of the HDF5 type {found}, which cannot become {wanted}, the type of the column, without loss"
            );
            return Err(Error::refused(message).context(format!("dataset {}", dataset.path())));
        }
        let cache = ChunkCache::new(CACHE_BYTES);
        Ok(Reader { shape: dataset.shape()?, data_type: wanted, converts: Some(part), chunks: None, dataset, cache })
    }

    fn convert(&self, part: Part, region: &Region, out: &mut Values) -> Result<()> {
        let wide = self.dataset.read_wide(region)?;
        let values = exact::converted(&wide, self.data_type).map_err(|Misfit { index, value }| {
            let cell = region.shape.split_last().and_then(|(cell, _)| cell.elements().ok()).unwrap_or(1).max(1);
            let place = region.start.last().copied().unwrap_or_default().saturating_add(index as u64 / cell);
            let place = match part {
                Part::Cube(_) | Part::Position => Context::Other(format!("position {place}")),
                Part::Values | Part::Offset => Context::Other(format!("element {place}")),
                Part::Data | Part::RowCube | Part::RowIndex | Part::Shape | Part::Defined => Context::Row(place),
            };
            let message = format!("the value {value} cannot become {}, the type of the column", self.data_type);
            Error::refused(message).context(place).context(format!("dataset {}", self.dataset.path()))
        })?;
        out.extend_from(&values, 0..values.len())
    }

    /// As [`ChunkReader::merge_slowest`]; `None` also for chunks that only libhdf5 reads.
    pub(super) fn merge_slowest(&mut self) -> Option<u64> {
        let chunks = self.chunks.as_mut().filter(|_| self.converts.is_none())?;
        let padded = chunks.merge_slowest()?;
        self.shape = chunks.grid().shape.clone();
        Some(padded)
    }

    /// Fails unless the dataset has this number of axes.
    pub(crate) fn with_axes(self, axes: usize) -> Result<Self> {
        if self.shape.len() == axes {
            return Ok(self);
        }
        let message = format!("shape {:?}, which should have {axes} axes", self.shape.reversed());
        Err(Error::format(message).context(format!("dataset {}", self.dataset.path())))
    }

    /// `None` if only libhdf5 can read the chunks.
    pub(crate) fn storage(&self) -> Option<ChunkStorage<'_>> {
        self.chunks.as_ref().map(ChunkRead::storage)
    }

    /// Extent of the slowest axis.
    pub(crate) fn rows(&self) -> u64 {
        self.shape.last().copied().unwrap_or_default()
    }

    /// Axes are fastest first; `out` has the dataset's type.
    pub(crate) fn read(&self, region: &Region, out: &mut Values) -> Result<()> {
        if out.data_type() != self.data_type {
            let message = format!("elements of type {}, but the column's are {}", self.data_type, out.data_type());
            return Err(Error::format(message).context(format!("dataset {}", self.dataset.path())));
        }
        match (self.converts, &self.chunks) {
            (Some(part), _) => self.convert(part, region, out),
            (None, Some(chunks)) => read_region(chunks, &self.cache, 0, region, out),
            (None, None) => self.dataset.read_region(region, out),
        }
    }

    /// Fills `out` with little-endian rows of `row_bytes` bytes, from `first` on.
    pub(crate) fn read_rows(&self, first: u64, out: &mut [u8], row_bytes: usize) -> Result<()> {
        let Some(chunks) = self.chunks.as_ref().filter(|chunks| chunks.grid().covers_cells()) else {
            let (cell, _) = self.shape.split_last().ok_or_else(|| Error::format("the dataset has no axes"))?;
            let rows = (out.len() / row_bytes.max(1)) as u64;
            let region = Region::rows(&cell, first..first.saturating_add(rows));
            let mut values = Values::new(self.data_type);
            self.read(&region, &mut values)?;
            out.copy_from_slice(
                &values.le_bytes().ok_or_else(|| Error::format("the elements do not have a fixed size"))?,
            );
            return Ok(());
        };
        let chunk_rows = chunks.grid().chunk.last().copied().unwrap_or(1);
        let (mut row, mut out) = (first, out);
        while !out.is_empty() {
            let (number, before) = (row / chunk_rows, row % chunk_rows);
            let rows = (chunk_rows - before).min((out.len() / row_bytes) as u64);
            let (part, rest) = out.split_at_mut(rows as usize * row_bytes);
            if rows == chunk_rows {
                chunks.read_raw(number, part)?;
            } else {
                let read = || {
                    crate::limits::unbacked_cell(chunk_rows.saturating_mul(row_bytes as u64))?;
                    let mut bytes = vec![0; chunk_rows as usize * row_bytes];
                    chunks.read_raw(number, &mut bytes)?;
                    Ok(Values::UChar(bytes))
                };
                // apart from the chunks that other reads keep as elements
                let chunk = self.cache.get((1, number), read)?;
                let Values::UChar(bytes) = &*chunk else {
                    return Err(Error::format("the elements of the chunk are not bytes"));
                };
                part.copy_from_slice(&bytes[before as usize * row_bytes..][..part.len()]);
            }
            row += rows;
            out = rest;
        }
        Ok(())
    }

    /// A dataset with one axis.
    pub(super) fn read_range(&self, range: Range<u64>, out: &mut Values) -> Result<()> {
        let region = Region::rows(&Shape::scalar(), range);
        self.read(&region, out)
    }

    /// A dataset of integers with one axis.
    pub(crate) fn integers(&self, range: Range<u64>) -> Result<Vec<i64>> {
        let mut values = Values::new(self.data_type);
        self.read_range(range, &mut values)?;
        match values {
            Values::Int64(v) => Ok(v),
            Values::Int(v) => Ok(v.into_iter().map(i64::from).collect()),
            Values::Bool(v) => Ok(v.into_iter().map(i64::from).collect()),
            _ => Err(Error::format(format!("elements of type {} where integers are expected", self.data_type))
                .context(format!("dataset {}", self.dataset.path()))),
        }
    }
}
