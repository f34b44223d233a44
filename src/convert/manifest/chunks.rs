//! Chunks of datasets in an HDF5 file, to which a manifest (JSON references for readers of Zarr)
//! refers. Contiguous datasets are divided into chunks.

use super::files::{FileNumber, Files};
use super::metadata::{self, ArrayMetadata};
use super::references::{References, is_inside};
use crate::error::{Context, Error, Result};
use crate::grid::{Grid, unravel};
use crate::h5::{ChunkInfo, Dataset, Storage};
use crate::value::{ByteOrder, DataType, Shape};

/// Chunks of a contiguous dataset have at most this size, but at least one row.
const BLOCK_BYTES: u64 = 16 << 20;
/// A contiguous dataset stays one chunk if its chunks would be smaller.
const SMALL_BLOCK_BYTES: u64 = 64 << 10;

/// Index in [`Files`] and size of an HDF5 file.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredIn {
    pub(super) file: FileNumber,
    pub(super) bytes: u64,
}

pub(super) struct StoredArray {
    dataset: Dataset,
    grid: Grid,
    metadata: ArrayMetadata,
    /// Byte of a contiguous dataset in the file; `None` for chunks, or if nothing was ever written.
    block: Option<u64>,
}

/// A dataset, or the reason why a manifest cannot refer to it.
pub(super) type Found = Result<StoredArray, String>;

impl StoredArray {
    /// `Format` if the dataset is damaged.
    pub(super) fn find(dataset: Dataset, shape: &Shape, data_type: DataType, stored: StoredIn) -> Result<Found> {
        if dataset.data_type()? != data_type {
            let message = format!("{} elements where {data_type} are expected", dataset.data_type()?);
            return Err(Error::format(message).context(format!("dataset {}", dataset.path())));
        }
        let order = match dataset.raw_order()? {
            Some(order) => order,
            None if shape.contains(&0) => ByteOrder::Little,
            None => return Ok(Err("its elements have a form in the file that Zarr lacks".to_owned())),
        };
        let (chunk, block) = match dataset.storage()? {
            Storage::Chunks => (dataset.chunk()?.unwrap_or_else(|| shape.clone()), None),
            Storage::Block(block) => (block_chunk(shape, data_type.size() as u64), block),
            Storage::Header => return Ok(Err("its elements are in its object header".to_owned())),
            Storage::Other(place) => return Ok(Err(format!("its elements are {place}"))),
        };
        let mut filters = Vec::new();
        for ((id, parameters), name) in dataset.filter_parameters()?.iter().zip(dataset.filters()?) {
            match metadata::filter(*id, parameters, data_type.size()) {
                Some(filter) => filters.push(filter),
                None => {
                    let advice = metadata::recompress();
                    return Ok(Err(format!("numcodecs does not read HDF5's filter {name}; {advice}")));
                }
            }
        }
        let metadata = ArrayMetadata {
            shape: shape.clone(),
            chunk: chunk.clone(),
            dtype: metadata::dtype(data_type, order),
            filters,
        };
        let found = StoredArray { dataset, grid: Grid { shape: shape.clone(), chunk }, metadata, block };
        match found.problem(stored)? {
            Some(reason) => Ok(Err(reason)),
            None => Ok(Ok(found)),
        }
    }

    fn problem(&self, stored: StoredIn) -> Result<Option<String>> {
        let total = self.grid.counts().elements()?;
        let plain_bytes = self.chunk_bytes()?;
        let mut written = 0;
        let (mut skips_filters, mut outside) = (false, None);
        self.each(&mut |info: &ChunkInfo| {
            written += 1;
            skips_filters |= info.filter_mask != 0;
            let is_whole = !self.metadata.filters.is_empty() || info.stored_bytes == plain_bytes;
            if !is_whole || info.address.checked_add(info.stored_bytes).is_none_or(|end| end > stored.bytes) {
                outside = Some(info.clone());
            }
            Ok(())
        })?;
        if let Some(info) = outside {
            let ChunkInfo { address, stored_bytes, .. } = info;
            let message = format!(
                "a chunk of {stored_bytes} bytes where {plain_bytes} are expected, or beyond the {} bytes of the file",
                stored.bytes
            );
            let context = Context::offset("chunk", address);
            return Err(Error::format(message).context(context).context(format!("dataset {}", self.dataset.path())));
        }
        if skips_filters {
            return Ok(Some("some of its chunks skip filters, which Zarr lacks".to_owned()));
        }
        if written < total && !self.dataset.fills_with_zeros()? {
            return Ok(Some("some of its chunks were never written, and are not filled with zeros".to_owned()));
        }
        Ok(None)
    }

    fn chunk_bytes(&self) -> Result<u64> {
        let size = self.dataset.data_type()?.size() as u64;
        Ok(self.grid.chunk.elements()?.saturating_mul(size))
    }

    /// Calls `visit` for each written chunk, or each part of a contiguous dataset.
    fn each(&self, visit: &mut dyn FnMut(&ChunkInfo) -> Result<()>) -> Result<()> {
        if let Some(block) = self.block {
            let (counts, stored_bytes) = (self.grid.counts(), self.chunk_bytes()?);
            for number in 0..counts.elements()? {
                let index = unravel(number, &counts).into_iter().collect();
                let address = block.saturating_add(number.saturating_mul(stored_bytes));
                visit(&ChunkInfo { index, address, stored_bytes, filter_mask: 0 })?;
            }
            return Ok(());
        }
        let mut result = Ok(());
        self.dataset.each_chunk(|info| {
            if result.is_ok() && is_inside(&self.grid, &info.index) {
                result = visit(&info);
            }
        })?;
        result
    }

    pub(super) fn metadata(&self) -> &ArrayMetadata {
        &self.metadata
    }

    pub(super) fn write<W: std::io::Write>(
        &self,
        array: &str,
        stored: StoredIn,
        files: &Files,
        out: &mut References<W>,
    ) -> Result<()> {
        let name = files.name(stored.file);
        self.each(&mut |info| out.range(array, &info.index, name, info.address, info.stored_bytes))
    }
}

/// Whole rows, of equal number because chunks of Zarr all have the same size.
fn block_chunk(shape: &Shape, element_bytes: u64) -> Shape {
    let Some((cell, rows)) = shape.split_last() else { return shape.clone() };
    let row_bytes = cell.iter().fold(element_bytes, |bytes, &extent| bytes.saturating_mul(extent)).max(1);
    let most = (BLOCK_BYTES / row_bytes).max(1);
    if rows <= most {
        return shape.clone();
    }
    let equal = (1..=most).rev().find(|taken| rows % taken == 0).unwrap_or(1);
    if equal * row_bytes < SMALL_BLOCK_BYTES { shape.clone() } else { cell.with_axis(equal) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_equal_parts() {
        assert_eq!(block_chunk(&Shape::from([4, 64, 100]), 8), Shape::from([4, 64, 100]));
        assert_eq!(block_chunk(&Shape::from([1024, 1024, 30]), 8), Shape::from([1024, 1024, 2]));
        assert_eq!(block_chunk(&Shape::from([4, 1_000_003]), 8), Shape::from([4, 1_000_003]));
        assert_eq!(block_chunk(&Shape::from([100_000_000]), 8), Shape::from([2_000_000]));
    }
}
