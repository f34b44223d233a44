//! MultiHDF5, a container of casacore: one HDF5 file with a dataset of bytes for each file.
//! formats/table.md 6, docs/reference/containers.md.
//!
//! | file              | purpose                                                                                    |
//! |-------------------|--------------------------------------------------------------------------------------------|
//! | `names.rs`        | names of groups, datasets and attributes                                                   |
//! | `header.rs`       | the list of files and their sizes                                                          |
//! | `commits.rs`      | the list of commits of a container that is appended to live                                |
//! | `blocks.rs`       | the list of versions of blocks, if its files are changed as well                           |
//! | `checksums.rs`    | checksums of blocks, from when they were written                                           |
//! | `seal.rs`         | checksums of every byte, after the end of the HDF5 file                                    |
//! | `virtual_file.rs` | the bytes of one file: libhdf5 reports once where the blocks are; any thread reads them    |
//! | `read.rs`         | a container that is read                                                                   |
//! | `lock.rs`         | HDF5's lock on the file                                                                    |
//! | `store.rs`        | the HDF5 file that is written: copied for the first change, replaced by a commit           |
//! | `file.rs`         | a file that is written: blocks are filtered on our own threads and handed to libhdf5 whole |
//! | `container.rs`    | a container that is written                                                                |
//! | `live.rs`         | files that are appended to while other processes read them: in place, with HDF5's SWMR     |
//! | `live_files.rs`   | the same for files that are changed as well: a changed block gets another row              |

mod blocks;
mod checksums;
mod commits;
mod container;
mod file;
mod header;
mod live;
mod live_files;
mod lock;
mod names;
mod read;
mod seal;
mod store;
#[cfg(test)]
mod tests;
mod virtual_file;

use std::path::PathBuf;

use super::{CasacoreStorage, Container, Format};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5;

pub(crate) use blocks::Origin;
pub use container::MultiHdf5Mut;
pub(crate) use live::live_options;
pub use live::{LiveContainer, LiveContainerReader};
pub(crate) use live_files::{LiveFiles, Updated};
pub(super) use names::HEADER;
use read::Opened;
use seal::Seal;

/// Every HDF5 file is recognised; opening it fails if it is not a MultiHDF5 container.
pub(crate) static FORMAT: Format = Format {
    damage: |inside, name| Seal::damage(&*inside.open(name)?),
    create: Some(|path, options| Ok(MultiHdf5Mut::create(path, options)?)),
    casacore: Some(CasacoreStorage { file_name: "table.mfh5", option: 1 }),
    ..Format::read_only(
        "multihdf5",
        |inside, name| h5::is_hdf5(&*inside.open(name)?),
        |inside, name| {
            let path = path_of(inside, name)?;
            Opened::open(&path)?.root().context(Context::path(&path))
        },
    )
};

/// Fails if `inside` is a container file: libhdf5 cannot read a file inside another.
fn path_of(inside: &dyn Container, name: &str) -> Result<PathBuf> {
    inside
        .path(name)
        .ok_or_else(|| {
            Error::unsupported("an HDF5 file inside another container cannot be read: unpack the outer one first")
        })
        .context(Context::member(name))
}
