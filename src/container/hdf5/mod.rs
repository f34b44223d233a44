//! A container of any files, each stored as a dataset in an HDF5 file. The layout:
//! docs/reference/layout.md, "Files".
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
//! The properties of a container of another format are all that this format needs to make the
//! container again.

mod element;
mod properties;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use super::hdf5_kind::FILES_MARK;
use super::{Container, Format, Hdf5Kind, hdf5_kind};
use crate::error::Result;

pub(crate) use element::set_dtype;

pub(crate) static FORMAT: Format = Format {
    create_for: Some(|path, files, options| Ok(Arc::new(write::FilesMut::create(path, files, options)?))),
    ..Format::read_only("hdf5", is_files, |inside, name| Ok(read::Files::open(inside, name)?))
};

/// Version of the layout, in the root attribute.
const VERSION: i64 = 1;

const CONTENT: &str = "hash";

fn link_attribute(name: &str) -> String {
    format!("link.{name}")
}

/// Size in bytes, before compression.
const CHUNK_BYTES: u64 = 1 << 20;

fn is_files(inside: &dyn Container, name: &str) -> Result<bool> {
    // a file inside another is not read, nor is one that cannot be opened
    let path = inside.path(name).filter(|path| path.is_file());
    Ok(path.is_some_and(|path| hdf5_kind(&path).is_ok_and(|kind| kind == Some(Hdf5Kind::Files))))
}
