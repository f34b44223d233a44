//! Creates datasets of bytes in which each row is one chunk. A MultiHDF5 container, one HDF5 file
//! that holds other files, has such a dataset for each of these files and stores it in blocks of
//! equal size, one a row.

use super::{Compression, Filter, Pipeline};

#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteRows {
    pub(crate) row_bytes: u64,
    /// At least 1 unless rows can be added: HDF5 makes no chunks if a dataset stays empty.
    pub(crate) rows: u64,
    pub(crate) appendable: bool,
    pub(crate) filters: ByteFilters,
}

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
