//! All formats of containers: those of the crates `ctds` and `ctds-archives`, and those that need
//! HDF5.
//!
//! A kind of container is a folder here that exports its [`Format`], and a line in [`FORMATS`].
//! Everything above sees [`Container`] and [`ContainerMut`] only.
//!
//! A container may consist of several files: it is recognised by one of them and names the others,
//! its `parts`. A format that must know all files before the first is written has `create_for` in
//! place of `create`; its `properties` make the same container again, and the format `hdf5` keeps
//! them as attributes.

#[cfg(test)]
mod archives_tests;
#[cfg(test)]
mod conformance;
mod hdf5;
mod hdf5_kind;
mod multihdf5;
mod seal_end;
pub(crate) mod thin;

use std::path::Path;
use std::sync::Arc;

pub(crate) use ctds::container::*;
#[cfg(any(test, feature = "internals"))]
pub(crate) use ctds_archives::sion::FORMAT as SION;
pub(crate) use ctds_archives::vt::DataInFile;
#[cfg(any(test, feature = "internals"))]
pub(crate) use ctds_archives::vt::{FORMAT as VT, archive_of as vt_archive_of};
pub use ctds_archives::vt::{StoreOnDisk as VtStore, serve_store as serve_vt};
use ctds_archives::{sion, vt};

use crate::error::{Error, Result};
pub(crate) use hdf5::{FORMAT as HDF5_FILES, set_dtype};
pub(crate) use hdf5_kind::{Hdf5Kind, hdf5_kind};
pub(crate) use multihdf5::{FORMAT as MULTI_HDF5, LiveFiles, Origin, Updated, live_options};
pub use multihdf5::{LiveContainer, LiveContainerReader, MultiHdf5Mut};

pub(crate) static FORMATS: Formats = Formats {
    list: &[
        &MULTI_FILE,
        &MULTI_FILE_1,
        // only one of them takes an HDF5 file without looking into it
        &hdf5::FORMAT,
        &multihdf5::FORMAT,
        &vt::FORMAT,
        &vt::STORE,
        &sion::FORMAT,
        #[cfg(test)]
        &toy::FORMAT,
    ],
    check_thin: thin::check_hdf5,
};

pub(crate) fn locate(path: &Path) -> Result<Arc<dyn Container>> {
    ctds::container::locate(path, FORMATS)
}

pub(crate) fn locate_damaged(path: &Path) -> Result<(Arc<dyn Container>, Option<Error>)> {
    ctds::container::locate_damaged(path, FORMATS)
}

pub(crate) fn outermost(path: &Path) -> Result<Option<Outermost<'_>>> {
    ctds::container::outermost(path, FORMATS)
}

/// The container of the address of a vt store that another program serves; `None` for a path. Only
/// a path that the caller was given is one, not a path that a file has.
pub(crate) fn at_address(path: &Path) -> Option<Outermost<'_>> {
    let (address, below) = vt::split_address(path)?;
    Some(Outermost::elsewhere(address, &vt::REMOTE, below, FORMATS))
}

pub(crate) fn recognise(inside: &dyn Container, name: &str) -> Result<Option<&'static Format>> {
    ctds::container::recognise(inside, name, FORMATS)
}

pub(crate) fn recognise_directory(inside: &dyn Container, name: &str) -> Result<Option<&'static Format>> {
    ctds::container::recognise_directory(inside, name, FORMATS)
}
