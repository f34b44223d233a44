//! Attributes of objects: their names, and new ones.

use std::ptr;

use hdf5::plist::AttributeCreate;
use hdf5::{Dataspace, Datatype, Location};
use hdf5_sys::h5::{H5_index_t, H5_iter_order_t};
use hdf5_sys::h5a;
use hdf5_sys::h5p::H5P_DEFAULT;

use super::super::error::{Hdf5Result, from_hdf5};
use super::calls::{c_name, collect_name};
use crate::error::Result;

pub(crate) fn has_attribute(owner: &Location, name: &str) -> Result<bool> {
    let name = c_name(name)?;
    Ok(call!(h5a::H5Aexists(owner.id(), name.as_ptr())).h5()? > 0)
}

/// Sorted by the index `order`: by name, or by order of creation. The `hdf5` crate's own takes the
/// character set of a name for an enum, whatever byte the file has.
pub(crate) fn attribute_names(owner: &Location, order: H5_index_t) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let (increasing, data) = (H5_iter_order_t::H5_ITER_INC, (&raw mut names).cast());
    match call!(h5a::H5Aiterate2(
        owner.id(),
        order,
        increasing,
        ptr::null_mut(),
        Some(collect_name::<h5a::H5A_info_t>),
        data
    )) {
        Ok(_) => Ok(names),
        // the iteration opens the object again, which fails while a dataset is open with a prefix
        // for its external files
        Err(error) => attribute_names_by_number(owner, order)?.ok_or_else(|| from_hdf5(error)),
    }
}

/// `None` if the names are more than 1000, which would be slow, or their number is unknown.
fn attribute_names_by_number(owner: &Location, order: H5_index_t) -> Result<Option<Vec<String>>> {
    const MAX_ATTRIBUTES: usize = 1000;
    let count = match owner.loc_info() {
        Ok(info) if info.num_attrs <= MAX_ATTRIBUTES => info.num_attrs as u64,
        _ => return Ok(None),
    };
    let by_number = |number: u64, name: &mut [u8]| {
        let (at, increasing, place) = (c".".as_ptr(), H5_iter_order_t::H5_ITER_INC, name.as_mut_ptr().cast());
        let lapl = H5P_DEFAULT;
        call!(h5a::H5Aget_name_by_idx(owner.id(), at, order, increasing, number, place, name.len(), lapl))
    };
    let mut names = Vec::new();
    for number in 0..count {
        let mut name = vec![0; by_number(number, &mut []).h5()? as usize + 1];
        by_number(number, &mut name).h5()?;
        name.pop();
        names.push(String::from_utf8_lossy(&name).into_owned());
    }
    Ok(Some(names))
}

pub(crate) fn create_attribute(
    owner: &Location,
    name: &str,
    datatype: &Datatype,
    space: &Dataspace,
    create: &AttributeCreate,
) -> Result<hdf5::Attribute> {
    let name = c_name(name)?;
    create!(
        hdf5::Attribute,
        h5a::H5Acreate2(owner.id(), name.as_ptr(), datatype.id(), space.id(), create.id(), H5P_DEFAULT)
    )
    .h5()
}
