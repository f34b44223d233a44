//! Of which kind an HDF5 file is: a container, or one whose datasets are what they seem.

use std::path::Path;

use super::hdf5::MARK;
use super::multihdf5::HEADER;
use super::seal_end::Seal;
use crate::error::{ErrorKind, Result};
use crate::h5;
use crate::io::FileSource;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hdf5Kind {
    MultiHdf5,
    /// Files as datasets: the format `hdf5`.
    Files,
    /// A native file, or one of another program.
    Plain,
}

/// `None` if the file is not HDF5. One that another process has locked counts as plain.
pub(crate) fn hdf5_kind(path: &Path) -> Result<Option<Hdf5Kind>> {
    let source = FileSource::open(path)?;
    if !h5::is_hdf5(&source)? {
        return Ok(None);
    }
    // no other file has a seal, and the structure of one that is damaged need not be read
    if Seal::find(&source)?.is_some() {
        return Ok(Some(Hdf5Kind::MultiHdf5));
    }
    let has = |names: &[String], wanted| names.iter().any(|name| name == wanted);
    match h5::File::names_in_root(path) {
        Ok((_, attributes)) if has(&attributes, MARK) => Ok(Some(Hdf5Kind::Files)),
        Ok((links, _)) if has(&links, HEADER) => Ok(Some(Hdf5Kind::MultiHdf5)),
        Ok(_) => Ok(Some(Hdf5Kind::Plain)),
        Err(error) if error.kind() == ErrorKind::Locked => Ok(Some(Hdf5Kind::Plain)),
        Err(error) => Err(error),
    }
}
