//! Every call of libhdf5 from Rust: under its lock, with its failures as errors; names and paths as
//! C strings, and the callback that collects names.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use hdf5_sys::h5i::hid_t;

use crate::error::{Error, Result};

/// Makes a C call under libhdf5's global lock; a result that means failure becomes an error. Every
/// use passes identifiers of live handles and pointers to locals that outlive the call.
macro_rules! call {
    ($($call:tt)*) => {
        hdf5::sync::sync(|| {
            // SAFETY: the lock is held; the arguments are as this macro's doc demands, which its
            // uses show
            hdf5::h5check(unsafe { $($call)* })
        })
    };
}

/// Makes a C call that returns a new identifier, which a handle of the type `$handle` then owns.
macro_rules! create {
    ($handle:ty, $($call:tt)*) => {
        hdf5::sync::sync(|| {
            // SAFETY: as `call!`
            let id = hdf5::h5check(unsafe { $($call)* })?;
            // SAFETY: the identifier is new, nothing else owns it
            unsafe { hdf5::from_id::<$handle>(id) }
        })
    };
}

pub(super) fn c_name(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::usage(format!("the name {name:?} contains NUL")))
}

#[cfg(unix)]
pub(super) fn c_path(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::usage("the path contains NUL"))
}

#[cfg(not(unix))]
pub(super) fn c_path(path: &Path) -> Result<CString> {
    // libhdf5 takes UTF-8 paths on Windows
    c_name(path.to_str().ok_or_else(|| Error::usage("the path is not Unicode"))?)
}

/// Appends a member's name to the vector `names`; returns 0, so that the iteration continues.
///
/// # Safety
/// `name` ends with NUL; `names` is a `Vec<String>` that nothing else uses.
pub(super) unsafe extern "C" fn collect_name<Info>(
    _: hid_t,
    name: *const c_char,
    _: *const Info,
    names: *mut c_void,
) -> c_int {
    // SAFETY: as this function demands
    let (name, names) = unsafe { (CStr::from_ptr(name), &mut *names.cast::<Vec<String>>()) };
    names.push(name.to_string_lossy().into_owned());
    0
}
