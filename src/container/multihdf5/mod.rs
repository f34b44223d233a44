//! MultiHDF5: a dataset of bytes for each file, in one HDF5 file. formats/table.md 6, docs/containers.md.
//!
//! - Reading ([`Opened`], [`VirtualFile`]): libhdf5 says once where the blocks of a file are; they are read from the file
//!   itself, by any thread.
//! - Writing ([`MultiHdf5Mut`]): blocks are filtered on our own threads and handed over whole. A container that is there is
//!   never changed in place: the first change copies it to a file beside it, and a commit puts that in its place.
//! - Appending while others read ([`LiveContainer`]): in place, with HDF5's SWMR.

mod header;
mod live;
mod read;
mod seal;
mod target;
#[cfg(test)]
mod tests;
mod virtual_file;
mod write;

use std::path::{Path, PathBuf};

use super::{Container, Format};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::h5;
use crate::io::FileSource;

pub use live::{LiveContainer, LiveContainerReader};
use read::Opened;
use seal::Seal;
use virtual_file::VirtualFile;
pub use write::MultiHdf5Mut;

/// The group that an HDF5 file has if it is such a container.
const HEADER: &str = "__MultiHDF5_Header__";
/// The bytes of a file, in its group.
const DATA: &str = "FileData";
/// Attribute of a file's group: the SHA-256 of its bytes, as many as the header says, in 64 hexadecimal digits. Only what
/// casacore does not change has it.
const SHA256: &str = "sha256";
/// A row for each commit of a container that is appended to live.
const COMMITS: &str = "__MultiHDF5_Commits__";

/// Every HDF5 file may be one: only its groups tell, which opening looks at.
pub(crate) static FORMAT: Format = Format {
    name: "multihdf5",
    file_name: "table.mfh5",
    recognise: |file| h5::is_hdf5(file),
    damage: |file| Seal::find(file)?.map_or(Ok(Vec::new()), |seal| seal.check(file)),
    open: |inside, name| {
        let path = path_of(inside, name)?;
        Opened::open(&path)?.root().context(path.display())
    },
    create: |path, options| Ok(MultiHdf5Mut::create(path, options)?),
};

/// Whether the HDF5 file at `path` is such a container. One that is being written is, if it is appended to live.
pub(crate) fn is_multi_hdf5(path: &Path) -> Result<bool> {
    // no other file has a seal, and libhdf5 need not see one that is damaged
    if Seal::find(&FileSource::open(path)?)?.is_some() {
        return Ok(true);
    }
    match h5::File::open_shared(path) {
        Ok(file) => Ok(file.root()?.has(HEADER)),
        Err(error) if error.kind() == ErrorKind::Locked => Ok(false),
        Err(error) => Err(error),
    }
}

/// libhdf5 reads files of the file system only.
fn path_of(inside: &dyn Container, name: &str) -> Result<PathBuf> {
    inside.path(name).ok_or_else(|| Error::unsupported("an HDF5 file within another container")).context(name)
}
