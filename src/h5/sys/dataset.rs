//! Datasets: creation, growth, fill values, chunks as they are stored, and the sources of virtual
//! ones.

use std::ffi::{c_char, c_int, c_uint};
use std::ptr;

use hdf5::plist::{DatasetCreate, LinkCreate};
use hdf5::{Dataspace, Datatype};
use hdf5_sys::h5i::hid_t;
use hdf5_sys::h5p::H5P_DEFAULT;
use hdf5_sys::{h5, h5d, h5i, h5p};

use super::super::StoredChunk;
use super::super::error::Hdf5Result;
use super::calls::c_name;
use super::datatype::has_pointers;
use crate::error::{Error, Result};

// hdf5-sys declares its constants by other names for other releases of HDF5
unsafe extern "C" {
    fn H5Rcreate(address: *mut u64, object: hid_t, name: *const c_char, kind: c_int, space: hid_t) -> c_int;
}

pub(crate) fn create_dataset(
    parent: &hdf5::Group,
    name: &str,
    datatype: &Datatype,
    space: &Dataspace,
    link: &LinkCreate,
    create: &DatasetCreate,
) -> Result<hdf5::Dataset> {
    let name = c_name(name)?;
    create!(
        hdf5::Dataset,
        h5d::H5Dcreate2(parent.id(), name.as_ptr(), datatype.id(), space.id(), link.id(), create.id(), H5P_DEFAULT)
    )
    .h5()
}

pub(crate) fn set_extent(dataset: &hdf5::Dataset, extents: &[u64]) -> Result<()> {
    debug_assert_eq!(dataset.ndim(), extents.len());
    call!(h5d::H5Dset_extent(dataset.id(), extents.as_ptr())).h5()?;
    Ok(())
}

pub(crate) fn flush_dataset(dataset: &hdf5::Dataset) -> Result<()> {
    call!(h5d::H5Dflush(dataset.id())).h5()?;
    Ok(())
}

/// Drops what libhdf5 has in memory of a dataset that another process writes.
pub(crate) fn refresh_dataset(dataset: &hdf5::Dataset) -> Result<()> {
    call!(h5d::H5Drefresh(dataset.id())).h5()?;
    Ok(())
}

/// `H5R_OBJECT1` (`H5R_OBJECT` before HDF5 1.12): a reference that is the address of a header.
pub(super) const OBJECT_REFERENCE: c_int = 0;

/// Offset of the header from where libhdf5 counts addresses, in bytes.
pub(crate) fn header_address(dataset: &hdf5::Dataset) -> Result<u64> {
    let mut address = 0;
    call!(H5Rcreate(&mut address, dataset.id(), c".".as_ptr(), OBJECT_REFERENCE, h5i::H5I_INVALID_HID)).h5()?;
    Ok(address)
}

/// `element`: the bytes of the element that is read where nothing was written.
pub(crate) fn set_fill(creation: &DatasetCreate, datatype: &Datatype, element: &[u8]) -> Result<()> {
    if element.len() != datatype.size() {
        return Err(Error::usage(format!("the fill value has {} bytes, expected {}", element.len(), datatype.size())));
    }
    call!(h5p::H5Pset_fill_value(creation.id(), datatype.id(), element.as_ptr().cast())).h5()?;
    Ok(())
}

/// Bytes of the fill value, converted to `datatype`; zeros if the file does not define it.
pub(crate) fn fill(creation: &DatasetCreate, datatype: &Datatype) -> Result<Vec<u8>> {
    if has_pointers(datatype)? {
        return Err(Error::unsupported("the fill value has a variable length"));
    }
    let mut element = vec![0u8; datatype.size()];
    call!(h5p::H5Pget_fill_value(creation.id(), datatype.id(), element.as_mut_ptr().cast())).h5()?;
    Ok(element)
}

/// `bytes` are filtered, except as in `filter_mask`; `offset` is the index of the first element.
pub(crate) fn write_chunk(dataset: &hdf5::Dataset, offset: &[u64], filter_mask: u32, bytes: &[u8]) -> Result<()> {
    debug_assert_eq!(dataset.ndim(), offset.len());
    call!(h5d::H5Dwrite_chunk(
        dataset.id(),
        H5P_DEFAULT,
        filter_mask,
        offset.as_ptr(),
        bytes.len(),
        bytes.as_ptr().cast()
    ))
    .h5()?;
    Ok(())
}

/// `offset` is the index of the chunk's first element; `None` if it was never written.
pub(crate) fn stored_chunk(dataset: &hdf5::Dataset, offset: &[u64]) -> Result<Option<StoredChunk>> {
    if dataset.ndim() != offset.len() {
        return Err(Error::usage(format!("the dataset has no chunks with {} axes", offset.len())));
    }
    let (mut filter_mask, mut address, mut bytes) = (0, 0, 0);
    call!(h5d::H5Dget_chunk_info_by_coord(dataset.id(), offset.as_ptr(), &mut filter_mask, &mut address, &mut bytes))
        .h5()?;
    Ok((address != h5::HADDR_UNDEF && bytes > 0).then_some(StoredChunk { address, bytes, filter_mask }))
}

/// Visits chunks by the index of the first element, in no promised order.
pub(crate) fn each_stored_chunk(dataset: &hdf5::Dataset, mut visit: impl FnMut(&[u64], StoredChunk)) -> Result<()> {
    let mut add = |offset: &[u64], address: u64, bytes: u64, filter_mask: u32| {
        if address != h5::HADDR_UNDEF && bytes > 0 {
            visit(offset, StoredChunk { address, bytes, filter_mask });
        }
    };
    #[cfg(feature = "static-hdf5")]
    dataset
        .chunks_visit(|info| {
            add(info.offset, info.addr, info.size, info.filter_mask);
            0
        })
        .h5()?;
    // H5Dchunk_iter is newer than HDF5 1.10. This walks the index again for every chunk.
    #[cfg(not(feature = "static-hdf5"))]
    for number in 0..dataset.num_chunks().unwrap_or(0) {
        let info = dataset.chunk_info(number).ok_or_else(|| Error::format("the chunk index cannot be read"))?;
        add(&info.offset, info.addr, info.size, info.filter_mask);
    }
    Ok(())
}

/// libhdf5's number, `H5D_chunk_index_t`.
pub(crate) fn chunk_index(dataset: &hdf5::Dataset) -> Result<c_uint> {
    let mut index = 0;
    call!(h5d::H5Dget_chunk_index_type(dataset.id(), &mut index)).h5()?;
    Ok(index)
}

/// File name and dataset path of each source; `None` if there are more than `most`.
pub(crate) fn virtual_sources(creation: &DatasetCreate, most: usize) -> Result<Option<Vec<(String, String)>>> {
    let mut count = 0;
    call!(h5p::H5Pget_virtual_count(creation.id(), &mut count)).h5()?;
    if count > most {
        return Ok(None);
    }
    let id = creation.id();
    let name = |get: &dyn Fn(*mut c_char, usize) -> Result<isize>| -> Result<String> {
        let len = get(ptr::null_mut(), 0)?;
        let mut text = vec![0u8; len.max(0) as usize + 1];
        get(text.as_mut_ptr().cast(), text.len())?;
        text.truncate(len.max(0) as usize);
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let source = |index| {
        let file = name(&|to, size| call!(h5p::H5Pget_virtual_filename(id, index, to, size)).h5())?;
        let dataset = name(&|to, size| call!(h5p::H5Pget_virtual_dsetname(id, index, to, size)).h5())?;
        Ok((file, dataset))
    };
    (0..count).map(source).collect::<Result<Vec<_>>>().map(Some)
}
