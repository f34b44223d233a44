//! Dimension scales: datasets that name an axis of others.

use std::ffi::{c_char, c_int, c_uint};
use std::ptr;

use hdf5::Datatype;
use hdf5::globals::{H5T_NATIVE_UINT, H5T_STD_REF_OBJ};
use hdf5::plist::AttributeCreate;
use hdf5_sys::h5i::hid_t;
use hdf5_sys::h5t::{self, H5T_class_t};

use super::super::error::Hdf5Result;
use super::attribute::create_attribute;
use super::calls::c_name;
use super::space::dataspace;
use super::values::Target;
use crate::error::Result;

// of H5DSpublic.h in libhdf5_hl: hdf5-sys links it by its feature `hl` and does not declare it
unsafe extern "C" {
    fn H5DSset_scale(dataset: hid_t, name: *const c_char) -> c_int;
    fn H5DSattach_scale(dataset: hid_t, scale: hid_t, axis: c_uint) -> c_int;
}

pub(crate) fn set_scale(dataset: &hdf5::Dataset, name: &str) -> Result<()> {
    let name = c_name(name)?;
    call!(H5DSset_scale(dataset.id(), name.as_ptr())).h5()?;
    Ok(())
}

pub(crate) fn attach_scale(dataset: &hdf5::Dataset, scale: &hdf5::Dataset, axis: u32) -> Result<()> {
    call!(H5DSattach_scale(dataset.id(), scale.id(), axis)).h5()?;
    Ok(())
}

/// Addresses of the headers of the scales, slowest axis first; the dataset has none yet.
pub(crate) fn set_dimension_list(dataset: &hdf5::Dataset, scales: &[u64]) -> Result<()> {
    let list = create!(Datatype, h5t::H5Tvlen_create(*H5T_STD_REF_OBJ)).h5()?;
    let space = dataspace(&[scales.len() as u64], false)?;
    let attribute =
        create_attribute(dataset, "DIMENSION_LIST", &list, &space, &AttributeCreate::build().finish().h5()?)?;
    let one = |address: &u64| h5t::hvl_t { len: 1, p: ptr::from_ref(address).cast_mut().cast() };
    let lists: Vec<h5t::hvl_t> = scales.iter().map(one).collect();
    // SAFETY: one sequence per axis, each of one reference, which is an address of 64 bits; libhdf5
    // does not write to them
    unsafe { Target::Attribute(&attribute).write(&list, lists.as_ptr().cast()) }.h5()
}

/// Address of the header of each dataset, and number of the axis, slowest first; `scale` has none.
pub(crate) fn set_reference_list(scale: &hdf5::Dataset, users: &[(u64, u32)]) -> Result<()> {
    #[repr(C)]
    struct Use {
        dataset: u64,
        dimension: u32,
        padding: u32,
    }
    let record = create!(Datatype, h5t::H5Tcreate(H5T_class_t::H5T_COMPOUND, size_of::<Use>())).h5()?;
    call!(h5t::H5Tinsert(record.id(), c"dataset".as_ptr(), 0, *H5T_STD_REF_OBJ)).h5()?;
    call!(h5t::H5Tinsert(record.id(), c"dimension".as_ptr(), size_of::<u64>(), *H5T_NATIVE_UINT)).h5()?;
    let space = dataspace(&[users.len() as u64], false)?;
    let attribute =
        create_attribute(scale, "REFERENCE_LIST", &record, &space, &AttributeCreate::build().finish().h5()?)?;
    let uses: Vec<Use> = users.iter().map(|&(dataset, dimension)| Use { dataset, dimension, padding: 0 }).collect();
    // SAFETY: one element of the type for each use
    unsafe { Target::Attribute(&attribute).write(&record, uses.as_ptr().cast()) }.h5()
}
