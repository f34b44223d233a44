//! Dataspaces: extents of datasets and buffers, and selections of their elements. Extents are
//! slowest axis first.

use std::ffi::c_int;
use std::ptr;

use hdf5::Dataspace;
use hdf5_sys::h5s::{self, H5S_UNLIMITED, H5S_seloper_t};

use super::super::error::Hdf5Result;
use crate::error::{Error, Result};

/// If `unlimited`, the first axis may grow without limit.
pub(crate) fn dataspace(extents: &[u64], unlimited: bool) -> Result<Dataspace> {
    dataspace_with(extents, |axis, _| unlimited && axis == 0)
}

/// Axes without extent may grow as well: chunks are not larger than the limits of a dataset.
pub(crate) fn chunked_dataspace(extents: &[u64], unlimited: bool) -> Result<Dataspace> {
    dataspace_with(extents, |axis, extent| extent == 0 || unlimited && axis == 0)
}

/// `is_unlimited` is called with the number of each axis and its extent.
fn dataspace_with(extents: &[u64], is_unlimited: impl Fn(usize, u64) -> bool) -> Result<Dataspace> {
    let limit = |(axis, &extent): (usize, &u64)| if is_unlimited(axis, extent) { H5S_UNLIMITED } else { extent };
    let limits: Vec<u64> = extents.iter().enumerate().map(limit).collect();
    let axes = extents.len() as c_int;
    create!(Dataspace, h5s::H5Screate_simple(axes, extents.as_ptr(), limits.as_ptr())).h5()
}

/// `extents` are those of the selection, axes of length 1 included: libhdf5 copies element by
/// element, which is slow, if the shapes of two dataspaces differ.
pub(crate) fn memory(extents: &[u64]) -> Result<Dataspace> {
    dataspace(if extents.is_empty() { &[1] } else { extents }, false)
}

pub(crate) fn scalar() -> Result<Dataspace> {
    create!(Dataspace, h5s::H5Screate(h5s::H5S_class_t::H5S_SCALAR)).h5()
}

/// Selects on each axis `count` elements, from the index `start` on and `step` apart.
pub(crate) fn select_steps(space: &Dataspace, start: &[u64], step: &[u64], count: &[u64]) -> Result<()> {
    let axes = space.ndim();
    if [start, step, count].iter().any(|numbers| numbers.len() != axes) {
        return Err(Error::usage(format!("the selection has {} axes, the dataspace {axes}", start.len())));
    }
    if axes > 0 {
        call!(h5s::H5Sselect_hyperslab(
            space.id(),
            H5S_seloper_t::H5S_SELECT_SET,
            start.as_ptr(),
            step.as_ptr(),
            count.as_ptr(),
            ptr::null()
        ))
        .h5()?;
    }
    Ok(())
}
