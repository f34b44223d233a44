//! The parts of libhdf5 that are used: it writes files, and reads elements that are in other files
//! or datasets, or that a plugin decodes. Programs without libhdf5 have `absent.rs` in its place.
//!
//! Shapes are in HDF5's order here, slowest axis first.

mod attribute;
mod create;
mod dataset;
mod file;
mod group;

pub(super) use dataset::{Dataset, has_filter};
pub(super) use file::File;
pub(super) use group::Group;

/// `"2.0.0"`.
pub(crate) fn version() -> String {
    let (major, minor, release) = hdf5::library_version();
    format!("{major}.{minor}.{release}")
}
