//! MultiHDF5: a dataset of bytes for each file, in one HDF5 file. formats/table.md 6.

use super::Format;
use crate::error::Error;

/// The group that an HDF5 file has if it is such a container.
pub(crate) const HEADER: &str = "__MultiHDF5_Header__";

pub(crate) static FORMAT: Format = Format {
    name: "multihdf5",
    file_name: "table.mfh5",
    recognise: |_| false,
    open: |_, _| Err(Error::unsupported("multihdf5 is not supported yet")),
    create: |_, _| Err(Error::unsupported("multihdf5 is not supported yet")),
};
