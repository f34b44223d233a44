//! Creates datasets of bytes in which each row is one chunk. A MultiHDF5 container, one HDF5 file
//! that holds other files, has such a dataset for each of these files and stores it in blocks of
//! equal size, one a row.

use hdf5::dataset::{AllocTime, DatasetCreate};

use super::error::Hdf5Result;
use super::{Bounds, Compression, Filter, Pipeline, dataset, datatype, group, sys};
use crate::error::{Error, Result};
use crate::value::DataType;

/// A dataset of shape (row_bytes, rows), fastest axis first, in which each row is a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteRows {
    pub(crate) row_bytes: u64,
    /// At least 1 unless rows can be added: HDF5 does not make chunks for a dataset that stays
    /// empty.
    pub(crate) rows: u64,
    pub(crate) appendable: bool,
    pub(crate) filters: ByteFilters,
}

/// Compression and checksum of each chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ByteFilters {
    pub(crate) compression: Compression,
    pub(crate) checksums: bool,
}

impl ByteFilters {
    pub(crate) fn pipeline(self) -> Pipeline {
        let checksum = self.checksums.then_some(Filter::Fletcher32);
        Pipeline::new(self.compression.filter().into_iter().chain(checksum).collect())
    }
}

impl ByteRows {
    pub(super) fn create(&self, parent: &hdf5::Group, bounds: Bounds, name: &str) -> Result<hdf5::Dataset> {
        if self.row_bytes == 0 || self.row_bytes > u64::from(u32::MAX) || (self.rows == 0 && !self.appendable) {
            return Err(Error::usage(format!(
                "{} chunks of {} bytes cannot be stored: a chunk has 1 to 2^32 - 1 bytes",
                self.rows, self.row_bytes
            )));
        }
        let (mut creation, links) = match bounds {
            Bounds::Earliest => (DatasetCreate::build(), None),
            Bounds::V110 => (dataset::creation(bounds), Some(group::links()?)),
        };
        creation.obj_track_times(false).alloc_time(Some(AllocTime::Incr)).chunk([1, self.row_bytes as usize]);
        self.filters.pipeline().add_to(&mut creation);
        let space = sys::dataspace(&[self.rows, self.row_bytes], self.appendable)?;
        let links = links.map_or_else(|| hdf5::plist::LinkCreate::build().finish().h5(), Ok::<_, Error>)?;
        sys::create_dataset(parent, name, &datatype::create(DataType::UChar)?, &space, &links, &creation.finish().h5()?)
    }
}
