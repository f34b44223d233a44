//! Reads and writes the values of attributes and the elements of datasets, numbers and strings. The
//! **values** of a [`Target`] are all values of an attribute, or the selected elements of a
//! dataset.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use bstr::BString;
use hdf5::sync::sync;
use hdf5::{Dataspace, Datatype};
use hdf5_sys::h5p::H5P_DEFAULT;
use hdf5_sys::h5t::{H5T_class_t, H5T_str_t};
use hdf5_sys::{h5a, h5d, h5t};

use super::super::error::Hdf5Result;
use super::datatype::{Charset, class, has_pointers, string_type};
use crate::error::{Error, Result};

/// `file` selects elements of a dataset, which a buffer has as the dataspace `memory` says.
pub(crate) enum Target<'a> {
    Attribute(&'a hdf5::Attribute),
    Dataset { dataset: &'a hdf5::Dataset, memory: &'a Dataspace, file: &'a Dataspace },
}

impl Target<'_> {
    /// Number of values; a buffer must hold as many.
    pub(super) fn count(&self) -> Result<usize> {
        match self {
            Target::Attribute(attribute) => Ok(attribute.space().h5()?.size()),
            Target::Dataset { memory, .. } => Ok(memory.size()),
        }
    }

    /// Reads the values into `buffer`, converted to `datatype`.
    ///
    /// # Safety
    /// `buffer` holds [`count`](Self::count) elements of `datatype`.
    pub(super) unsafe fn read(&self, datatype: &Datatype, buffer: *mut c_void) -> Result<(), hdf5::Error> {
        match self {
            Target::Attribute(attribute) => call!(h5a::H5Aread(attribute.id(), datatype.id(), buffer)),
            Target::Dataset { dataset, memory, file } => {
                call!(h5d::H5Dread(dataset.id(), datatype.id(), memory.id(), file.id(), H5P_DEFAULT, buffer))
            }
        }
        .map(|_| ())
    }

    /// Writes the values in `buffer`, which have the type `datatype`.
    ///
    /// # Safety
    /// `buffer` holds [`count`](Self::count) elements of `datatype`.
    pub(super) unsafe fn write(&self, datatype: &Datatype, buffer: *const c_void) -> Result<(), hdf5::Error> {
        match self {
            Target::Attribute(attribute) => call!(h5a::H5Awrite(attribute.id(), datatype.id(), buffer)),
            Target::Dataset { dataset, memory, file } => {
                call!(h5d::H5Dwrite(dataset.id(), datatype.id(), memory.id(), file.id(), H5P_DEFAULT, buffer))
            }
        }
        .map(|_| ())
    }

    /// Fails unless the values take `bytes` bytes as `datatype`, without pointers and references.
    fn check(&self, datatype: &Datatype, bytes: usize) -> Result<()> {
        let needed = self.count()?.checked_mul(datatype.size());
        if needed != Some(bytes) || has_pointers(datatype)? {
            return Err(Error::usage(format!("a buffer of {bytes} bytes does not fit {} HDF5 values", self.count()?)));
        }
        Ok(())
    }
}

/// Converts to `datatype`, whose size is fixed; `out` must have exactly the size of all values.
pub(crate) fn read(target: &Target<'_>, datatype: &Datatype, out: &mut [u8]) -> Result<()> {
    target.check(datatype, out.len())?;
    // SAFETY: the length was checked above
    unsafe { target.read(datatype, out.as_mut_ptr().cast()) }.h5()
}

/// `datatype` has a fixed size, `bytes` exactly the size of all values.
pub(crate) fn write(target: &Target<'_>, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
    target.check(datatype, bytes.len())?;
    // SAFETY: the length was checked above
    unsafe { target.write(datatype, bytes.as_ptr().cast()) }.h5()
}

/// Appends strings, stored as `datatype` with a variable or fixed length, without padding.
pub(crate) fn read_strings(target: &Target<'_>, datatype: &Datatype, out: &mut Vec<BString>) -> Result<()> {
    if class(datatype) != H5T_class_t::H5T_STRING {
        return Err(Error::usage("strings are asked for, HDF5 stores other elements"));
    }
    let count = target.count()?;
    if call!(h5t::H5Tis_variable_str(datatype.id())).h5()? == 0 {
        let size = datatype.size();
        // SAFETY: the lock is held and the identifier is live
        let padding = sync(|| unsafe { h5t::H5Tget_strpad(datatype.id()) });
        let bytes = count.checked_mul(size).ok_or_else(|| Error::format("the strings have 2^64 bytes or more"))?;
        let mut buffer = vec![0u8; bytes];
        // SAFETY: `buffer` was made for `count` strings of `size` bytes
        unsafe { target.read(datatype, buffer.as_mut_ptr().cast()) }.h5()?;
        out.extend(buffer.chunks_exact(size.max(1)).map(|bytes| unpadded(bytes, padding).into()));
        return Ok(());
    }
    let mut pointers: Vec<*mut c_char> = vec![ptr::null_mut(); count];
    let memory = match target {
        Target::Attribute(attribute) => attribute.space().h5()?,
        Target::Dataset { memory, .. } => memory.copy(),
    };
    // SAFETY: `pointers` holds `count` elements; a variable-length string is one pointer
    let read = unsafe { target.read(datatype, pointers.as_mut_ptr().cast()) };
    if read.is_ok() {
        out.extend(pointers.iter().map(|&pointer| match pointer.is_null() {
            true => BString::default(), // how HDF5 gives a string that was never written
            // SAFETY: libhdf5 allocated the string and terminated it with NUL
            false => unsafe { CStr::from_ptr(pointer) }.to_bytes().into(),
        }));
    }
    // SAFETY: the pointers are null or were allocated by libhdf5 in the call above, and are not
    // used after this
    unsafe { reclaim(datatype, &memory, pointers.as_mut_ptr().cast()) };
    read.h5()
}

/// Frees strings and sequences to which elements of `buffer`, laid out as `space` says, point.
///
/// # Safety
/// The pointers are null or were allocated by libhdf5, and are not used after this.
pub(super) unsafe fn reclaim(datatype: &Datatype, space: &Dataspace, buffer: *mut c_void) {
    // the static library has no deprecated calls, HDF5 1.10 not the new one
    #[cfg(not(feature = "static-hdf5"))]
    #[allow(deprecated)]
    use hdf5_sys::h5d::H5Dvlen_reclaim as free;
    #[cfg(feature = "static-hdf5")]
    use hdf5_sys::h5t::H5Treclaim as free;
    let _ = call!(free(datatype.id(), space.id(), H5P_DEFAULT, buffer));
}

fn unpadded(bytes: &[u8], padding: H5T_str_t) -> &[u8] {
    let pad = if padding == H5T_str_t::H5T_STR_SPACEPAD { b' ' } else { 0 };
    match padding {
        H5T_str_t::H5T_STR_NULLTERM => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
        _ => &bytes[..bytes.iter().rposition(|&byte| byte != pad).map_or(0, |last| last + 1)],
    }
}

/// One buffer for all strings, each terminated by NUL.
pub(crate) struct Strings {
    text: Vec<u8>,
    starts: Vec<usize>,
}

impl Strings {
    /// `Usage` if a string contains NUL or is not UTF-8.
    pub(crate) fn new(strings: &[BString]) -> Result<Self> {
        let mut text = Vec::with_capacity(strings.iter().map(|string| string.len() + 1).sum());
        let mut starts = Vec::with_capacity(strings.len());
        for string in strings {
            if string.contains(&0) || std::str::from_utf8(string).is_err() {
                return Err(Error::usage(format!("the string {string:?} is not UTF-8 without NUL, as HDF5 needs it")));
            }
            starts.push(text.len());
            text.extend_from_slice(string);
            text.push(0);
        }
        Ok(Strings { text, starts })
    }
}

/// Writes strings of variable length, marked with a character set.
pub(crate) fn write_strings(target: &Target<'_>, charset: Charset, strings: &Strings) -> Result<()> {
    let pointers: Vec<*const u8> = strings.starts.iter().map(|&start| strings.text[start..].as_ptr()).collect();
    if pointers.len() != target.count()? {
        return Err(Error::usage(format!("{} strings were given, expected {}", pointers.len(), target.count()?)));
    }
    let datatype = string_type(charset)?;
    // SAFETY: one pointer per value, each to a NUL-terminated string that outlives the call
    unsafe { target.write(&datatype, pointers.as_ptr().cast()) }.h5()
}
