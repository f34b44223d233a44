//! Of which kind an HDF5 file is: a container, or one whose datasets are what they seem.

use std::path::Path;

use super::multihdf5::HEADER;
use super::seal_end::Seal;
use crate::error::{ErrorKind, Result};
use crate::h5;
use crate::io::FileSource;

/// Root attribute of a container of files as datasets.
pub(super) const FILES_MARK: &str = "ctds_files";

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
        Ok((_, attributes)) if has(&attributes, FILES_MARK) => Ok(Some(Hdf5Kind::Files)),
        Ok((links, _)) if has(&links, HEADER) => Ok(Some(Hdf5Kind::MultiHdf5)),
        Ok(_) => Ok(Some(Hdf5Kind::Plain)),
        Err(error) if error.kind() == ErrorKind::Locked => Ok(Some(Hdf5Kind::Plain)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h5::{Attribute, Group};
    use crate::value::Values;

    fn kind_of(fill: impl FnOnce(&Group)) -> Option<Hdf5Kind> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let file = h5::File::create(&path).unwrap();
        fill(&file.root().unwrap());
        file.close().unwrap();
        hdf5_kind(&path).unwrap()
    }

    #[test]
    fn names_in_the_root_tell_the_kind() {
        let one = || Attribute::Scalar(Values::Int64(vec![1]));
        assert_eq!(kind_of(|root| root.set_attribute(FILES_MARK, &one()).unwrap()), Some(Hdf5Kind::Files));
        assert_eq!(kind_of(|root| drop(root.create_group(HEADER).unwrap())), Some(Hdf5Kind::MultiHdf5));
        assert_eq!(kind_of(|root| drop(root.create_group(FILES_MARK).unwrap())), Some(Hdf5Kind::Plain));
        assert_eq!(kind_of(|root| root.set_attribute(HEADER, &one()).unwrap()), Some(Hdf5Kind::Plain));
    }

    #[test]
    fn other_files_and_damaged_ones_have_no_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        std::fs::write(&path, b"text").unwrap();
        assert_eq!(hdf5_kind(&path).unwrap(), None);
        let file = h5::File::create(&path).unwrap();
        file.root().unwrap().create_group(HEADER).unwrap();
        file.close().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let root = bytes.windows(4).position(|bytes| bytes == b"OHDR").unwrap();
        bytes[root + 8] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(hdf5_kind(&path).unwrap_err().kind(), ErrorKind::Format);
    }
}
