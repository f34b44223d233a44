//! Filters of datasets, and the codecs of this program as filters of libhdf5.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::{ptr, slice};

use hdf5::plist::DatasetCreate;
use hdf5_sys::{h5, h5p, h5z};

use super::super::StoredFilter;
use super::super::codec::{self, CODECS};
use super::super::error::Hdf5Result;
use super::calls::c_name;
use crate::error::Result;

/// The order is that in which a writer applies them.
pub(crate) fn filters(creation: &DatasetCreate) -> Result<Vec<StoredFilter>> {
    let count = call!(h5p::H5Pget_nfilters(creation.id())).h5()?;
    (0..count as c_uint).map(|number| filter(creation, number)).collect()
}

fn filter(creation: &DatasetCreate, number: c_uint) -> Result<StoredFilter> {
    // as many as a file can store
    const MAX_PARAMETERS: usize = 1 << 16;
    let mut parameters: Vec<c_uint> = vec![0; 32];
    loop {
        let (mut flags, mut count) = (0, parameters.len());
        let mut name: [c_char; 257] = [0; 257];
        let id = call!(h5p::H5Pget_filter2(
            creation.id(),
            number,
            &mut flags,
            &mut count,
            parameters.as_mut_ptr(),
            name.len() - 1, // the last byte stays NUL
            name.as_mut_ptr(),
            ptr::null_mut()
        ))
        .h5()?;
        if count > parameters.len() && parameters.len() < MAX_PARAMETERS {
            parameters.resize(MAX_PARAMETERS, 0);
            continue;
        }
        parameters.truncate(count);
        let name: Vec<u8> = name.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
        return Ok(StoredFilter { id, parameters, name: String::from_utf8_lossy(&name).into_owned() });
    }
}

/// Whether libhdf5 contains the filter, or finds it in a plugin, which it then loads.
pub(crate) fn is_filter_available(id: i32) -> Result<bool> {
    Ok(call!(h5z::H5Zfilter_avail(id)).h5()? > 0)
}

/// Registers, once per process, the codecs of this program that libhdf5 lacks.
pub(super) fn register_codecs() -> Result<()> {
    static REGISTERED: OnceLock<Result<()>> = OnceLock::new();
    let register = || -> Result<()> {
        let codecs = CODECS.iter().zip(CALLBACKS).filter(|(codec, _)| codec.plugin().is_some());
        for (codec, callback) in codecs {
            let name = c_name(codec.filter_name())?;
            let class = h5z::H5Z_class2_t {
                version: h5z::H5Z_CLASS_T_VERS as c_int,
                id: codec.id(),
                encoder_present: 1,
                decoder_present: 1,
                // libhdf5 keeps the pointer
                name: name.into_raw(),
                can_apply: None,
                set_local: None,
                filter: Some(callback),
            };
            call!(h5z::H5Zregister((&raw const class).cast())).h5()?;
        }
        Ok(())
    };
    REGISTERED.get_or_init(register).clone()
}

type Callback = unsafe extern "C" fn(c_uint, usize, *const c_uint, usize, *mut usize, *mut *mut c_void) -> usize;

/// One for each of [`CODECS`]: libhdf5 does not tell a callback which filter is meant.
const CALLBACKS: [Callback; 8] = [
    run_codec::<0>,
    run_codec::<1>,
    run_codec::<2>,
    run_codec::<3>,
    run_codec::<4>,
    run_codec::<5>,
    run_codec::<6>,
    run_codec::<7>,
];
const _: () = assert!(CODECS.len() <= CALLBACKS.len(), "a callback for each codec");

/// Runs a codec (`H5Z_func_t`): replaces the buffer; returns the bytes of the result, 0 on failure.
///
/// # Safety
/// `parameters` are `count` numbers, `buffer` points to memory of libhdf5 whose first `len` bytes
/// are the chunk.
unsafe extern "C" fn run_codec<const NUMBER: usize>(
    flags: c_uint,
    count: usize,
    parameters: *const c_uint,
    len: usize,
    buffer_bytes: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    if len == 0 {
        return 0;
    }
    // SAFETY: as this function's doc demands; an empty list may be a null pointer
    let parameters = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(parameters, count) } };
    // SAFETY: as this function's doc demands
    let bytes = unsafe { slice::from_raw_parts((*buffer).cast::<u8>(), len) };
    let decode = flags & h5z::H5Z_FLAG_REVERSE != 0;
    // a panic must not unwind into C
    let run = || CODECS.get(NUMBER).map(|codec| codec::run(*codec, decode, parameters, bytes));
    let Ok(Some(Ok(out))) = catch_unwind(run) else { return 0 };
    // SAFETY: a call without conditions
    let new = unsafe { h5::H5allocate_memory(out.len(), 0) };
    if new.is_null() {
        return 0;
    }
    // SAFETY: both have the length, and are different memory; the old buffer is libhdf5's and used
    // no more
    unsafe {
        ptr::copy_nonoverlapping(out.as_ptr(), new.cast::<u8>(), out.len());
        h5::H5free_memory(*buffer);
        *buffer = new;
        *buffer_bytes = out.len();
    }
    out.len()
}
