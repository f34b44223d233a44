//! The links of groups, read without following them, and the objects to which hard links lead.

use std::ffi::{c_int, c_uint};
use std::path::Path;
use std::ptr;

use hdf5::globals::H5P_DATASET_ACCESS;
use hdf5::plist::DatasetAccess;
use hdf5_sys::h5::{H5_index_t, H5_iter_order_t};
use hdf5_sys::h5i::hid_t;
use hdf5_sys::h5p::H5P_DEFAULT;
use hdf5_sys::{h5d, h5l, h5p};

use super::super::Link;
use super::super::error::Hdf5Result;
use super::calls::{c_name, c_path, collect_name};
use super::dataset::OBJECT_REFERENCE;
use crate::error::{Error, Result};

// hdf5-sys declares its constants by other names for other releases of HDF5
unsafe extern "C" {
    fn H5Rdereference2(file: hid_t, access: hid_t, kind: c_int, address: *const u64) -> hid_t;
}

/// The fields that `H5L_info1_t` and `H5L_info2_t` have in common. The class is a plain number
/// instead of an enumeration, because a file may contain any value.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    class: c_int,
    order_valid: c_uint,
    order: i64,
    charset: c_int,
    /// A union: first the bytes of the link's value, except for a hard link.
    value: [u64; 2],
}

/// Largest value of a link, a path or a file name and a path, that is read, in bytes.
const MAX_LINK_VALUE: u64 = 1 << 20;

/// Reads a link without following it. It must exist, and `name` must not contain a slash.
pub(crate) fn link(group: &hdf5::Group, name: &str) -> Result<Link> {
    let name = c_name(name)?;
    let mut info = LinkInfo::default();
    #[cfg(feature = "static-hdf5")]
    call!(h5l::H5Lget_info2(group.id(), name.as_ptr(), (&raw mut info).cast(), H5P_DEFAULT)).h5()?;
    #[cfg(not(feature = "static-hdf5"))]
    call!(h5l::H5Lget_info1(group.id(), name.as_ptr(), (&raw mut info).cast(), H5P_DEFAULT)).h5()?;
    // H5L_type_t
    let bytes = match info.class {
        0 => return Ok(Link::Hard),
        1 | 64 => info.value[0],
        class => return Ok(Link::UserDefined(class)),
    };
    if bytes > MAX_LINK_VALUE {
        return Err(Error::format(format!(
            "the value of a link has {bytes} bytes, of which {MAX_LINK_VALUE} are allowed"
        )));
    }
    // one more, so that the value ends with NUL in any case
    let mut value = vec![0u8; bytes as usize + 1];
    call!(h5l::H5Lget_val(group.id(), name.as_ptr(), value.as_mut_ptr().cast(), bytes as usize, H5P_DEFAULT)).h5()?;
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    if info.class == 1 {
        return Ok(Link::Soft(text(&value)));
    }
    // a byte of version and flags, the name of the file, the path of the object. H5Lexternal.c
    let names = value.get(1..).unwrap_or_default();
    let split = names.iter().position(|&byte| byte == 0).unwrap_or(names.len());
    Ok(Link::External { file: text(names), path: text(names.get(split + 1..).unwrap_or_default()) })
}

/// Sorted by the index `order`: by name, or by order of creation. The `hdf5` crate's own takes the
/// class of a link for an enum, whatever number the file has.
pub(crate) fn link_names(group: &hdf5::Group, order: H5_index_t) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let (increasing, data) = (H5_iter_order_t::H5_ITER_INC, (&raw mut names).cast());
    call!(h5l::H5Literate(group.id(), order, increasing, ptr::null_mut(), Some(collect_name::<h5l::H5L_info_t>), data))
        .h5()?;
    Ok(names)
}

/// Relative names of external storage files are taken from the directory `prefix`.
pub(crate) fn open_dataset(group: &hdf5::Group, name: &str, prefix: Option<&Path>) -> Result<hdf5::Dataset> {
    let name = c_name(name)?;
    let access = create!(DatasetAccess, h5p::H5Pcreate(*H5P_DATASET_ACCESS)).h5()?;
    if let Some(prefix) = prefix {
        let prefix = c_path(prefix)?;
        call!(h5p::H5Pset_efile_prefix(access.id(), prefix.as_ptr())).h5()?;
    }
    create!(hdf5::Dataset, h5d::H5Dopen2(group.id(), name.as_ptr(), access.id())).h5()
}

/// Opens the dataset whose header is at an address, which counts from where libhdf5 does.
pub(crate) fn open_dataset_at(file: &hdf5::File, address: u64) -> Result<hdf5::Dataset> {
    create!(hdf5::Dataset, H5Rdereference2(file.id(), H5P_DEFAULT, OBJECT_REFERENCE, &raw const address)).h5()
}

pub(crate) fn open_group_at(file: &hdf5::File, address: u64) -> Result<hdf5::Group> {
    create!(hdf5::Group, H5Rdereference2(file.id(), H5P_DEFAULT, OBJECT_REFERENCE, &raw const address)).h5()
}
