//! A container of any files, each stored as a dataset in an HDF5 file. The layout: docs/layout.md, "Files".
//!
//! | in HDF5                              | is                                                                        |
//! |--------------------------------------|---------------------------------------------------------------------------|
//! | root attribute `ctds_files`          | the version of this layout, 1                                             |
//! | dataset of 8-bit integers, one axis  | the bytes of a file                                                       |
//! | group                                | a container in this one                                                   |
//! | attribute of a dataset or group      | a property of the file or container, see [`Properties`](super::Properties) |
//! | attribute `hash`                     | identity of the bytes, as a hash; files that have the same are hard links |
//! | attribute `dtype` of a dataset        | the bytes are little-endian elements of this type, by numpy's name        |
//! | attribute `link.NAME` of a group     | the properties of file `NAME`, if they are not those of its dataset: JSON |
//!
//! The properties of a container of another format are all that this format needs to make the container again.

mod element;
mod properties;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::Path;
use std::sync::Arc;

use super::seal_end::Seal;
use super::{Container, Format};
use crate::error::Result;
use crate::h5;

pub(crate) use element::set_dtype;

pub(crate) static FORMAT: Format = Format {
    create_for: Some(|path, files, options| Ok(Arc::new(write::FilesMut::create(path, files, options)?))),
    ..Format::read_only("hdf5", is_files, |inside, name| Ok(read::Files::open(inside, name)?))
};

/// Root attribute that marks an HDF5 file as a container of files, stored as datasets.
const MARK: &str = "ctds_files";

/// Version of the layout of files as HDF5 datasets, in the root attribute `ctds_files`.
const VERSION: i64 = 1;

/// Name of the HDF5 attribute with the identity (such as a hash) of the bytes of a file: files of the same identity have equal bytes.
const CONTENT: &str = "hash";

/// Name of the group attribute with the properties of the virtual file `name`, if it shares the dataset of another file of
/// equal bytes: the attributes of the dataset itself belong to that other file.
fn link_attribute(name: &str) -> String {
    format!("link.{name}")
}

/// Size of a chunk in bytes, before compression, of a file that is stored as a compressed dataset.
const CHUNK_BYTES: u64 = 1 << 20;

fn is_files(inside: &dyn Container, name: &str) -> Result<bool> {
    let file = inside.open(name)?;
    // libhdf5 reads files of the file system only, and a damaged file with a seal is not for it
    let Some(path) = inside.path(name).filter(|path| path.is_file()) else { return Ok(false) };
    if !h5::is_hdf5(&*file)? || Seal::find(&*file)?.is_some() {
        return Ok(false);
    }
    // a file that libhdf5 does not open is not one that it wrote
    Ok(is_hdf5_files(&path).unwrap_or(false))
}

/// Whether the HDF5 file at `path` holds files as datasets (root attribute `ctds_files`). It must not be called for a
/// file with a seal (checksums after its end), which may be too damaged for libhdf5.
///
/// # Errors
/// Those of opening it.
pub(crate) fn is_hdf5_files(path: &Path) -> Result<bool> {
    Ok(h5::File::open_shared(path)?.root()?.attribute(MARK)?.is_some())
}
