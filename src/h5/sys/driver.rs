//! A file driver of HDF5 2 by which libhdf5 reads from a [`ReadAt`]. The machine's libhdf5 may be
//! older: a program that uses it lacks the driver.
//!
//! Most functions are its callbacks, which libhdf5 calls under its lock.
//! Each is given open files of this driver, which nothing else uses if the pointer is mutable, and
//! pointers that can be written to.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::{ptr, slice};

use hdf5_sys::h5f;
use hdf5_sys::h5fd::H5FDregister;
use hdf5_sys::h5i::hid_t;

use super::super::error::{Hdf5Result, note_cause};
use crate::error::{Error, Result};
use crate::io::ReadAt;

/// `H5FD_class_t` of HDF5 2; libhdf5 checks the version. Null is a callback that a driver lacks.
#[repr(C)]
struct DriverClass {
    version: c_uint,
    value: c_int,
    name: *const c_char,
    max_address: u64,
    close_degree: c_int,
    terminate: *const c_void,
    superblock: [*const c_void; 3],
    access_size: usize,
    access: [*const c_void; 3],
    transfer_size: usize,
    transfer: [*const c_void; 2],
    open: unsafe extern "C" fn(*const c_char, c_uint, hid_t, u64) -> *mut DriverFile,
    close: unsafe extern "C" fn(*mut DriverFile) -> c_int,
    compare: unsafe extern "C" fn(*const DriverFile, *const DriverFile) -> c_int,
    query: unsafe extern "C" fn(*const DriverFile, *mut c_ulong) -> c_int,
    type_map: *const c_void,
    allocation: [*const c_void; 2],
    get_end: unsafe extern "C" fn(*const DriverFile, c_int) -> u64,
    set_end: unsafe extern "C" fn(*mut DriverFile, c_int, u64) -> c_int,
    len: unsafe extern "C" fn(*const DriverFile, c_int) -> u64,
    handle: unsafe extern "C" fn(*mut DriverFile, hid_t, *mut *mut c_void) -> c_int,
    read: unsafe extern "C" fn(*mut DriverFile, c_int, hid_t, u64, usize, *mut c_void) -> c_int,
    write: unsafe extern "C" fn(*mut DriverFile, c_int, hid_t, u64, usize, *const c_void) -> c_int,
    vectors: [*const c_void; 4],
    flush: *const c_void,
    truncate: *const c_void,
    locks: [*const c_void; 2],
    delete: *const c_void,
    control: *const c_void,
    free_lists: [c_int; 7],
}

/// First `H5FD_t` of HDF5 2, which libhdf5 fills in, then the driver's own fields.
#[repr(C)]
struct DriverFile {
    driver: hid_t,
    class: *const DriverClass,
    number: c_ulong,
    access_flags: c_uint,
    features: c_ulong,
    max_address: u64,
    base_address: u64,
    threshold: u64,
    alignment: u64,
    is_paged: bool,
    source: Arc<dyn ReadAt>,
    /// -1 if the source is not a file of the operating system.
    descriptor: c_int,
    len: u64,
    /// End of the addresses that libhdf5 uses (EOA), in bytes.
    end: u64,
}

thread_local! {
    /// Source and descriptor (or -1) that this thread is opening: libhdf5 cannot pass them on.
    static OPENING: RefCell<Option<(Arc<dyn ReadAt>, c_int)>> = const { RefCell::new(None) };
}

/// Calls `open`, which opens a file of this driver; `source` has its file descriptor or -1.
pub(super) fn with_source<T>(source: (Arc<dyn ReadAt>, c_int), open: impl FnOnce() -> T) -> T {
    OPENING.set(Some(source));
    let opened = open();
    OPENING.set(None);
    opened
}

/// The identifier of the driver; the first call registers it.
pub(super) fn source_driver() -> Result<hid_t> {
    static DRIVER: OnceLock<Result<hid_t>> = OnceLock::new();
    let register = || -> Result<hid_t> {
        let class = DriverClass {
            version: 1,
            // of the numbers for programs that do not share their files' driver with others: 256 to
            // 511
            value: 500,
            name: c"h5bridge".as_ptr(),
            max_address: i64::MAX as u64,
            close_degree: h5f::H5F_close_degree_t::H5F_CLOSE_WEAK as c_int,
            terminate: ptr::null(),
            superblock: [ptr::null(); 3],
            access_size: 0,
            access: [ptr::null(); 3],
            transfer_size: 0,
            transfer: [ptr::null(); 2],
            open: open_driver_file,
            close: close_driver_file,
            compare: compare_driver_files,
            query: driver_features,
            type_map: ptr::null(),
            allocation: [ptr::null(); 2],
            get_end: driver_file_end,
            set_end: set_driver_file_end,
            len: driver_file_len,
            handle: driver_file_handle,
            read: read_driver_file,
            write: refuse_to_write,
            vectors: [ptr::null(); 4],
            flush: ptr::null(),
            truncate: ptr::null(),
            locks: [ptr::null(); 2],
            delete: ptr::null(),
            control: ptr::null(),
            // one list for everything: H5FD_FLMAP_SINGLE
            free_lists: [1; 7],
        };
        // libhdf5 copies the class; the name is static
        call!(H5FDregister((&raw const class).cast())).h5()
    };
    DRIVER.get_or_init(register).clone()
}

/// Opens the source that [`with_source`] has prepared; null on failure. No argument is used.
unsafe extern "C" fn open_driver_file(_: *const c_char, _: c_uint, _: hid_t, _: u64) -> *mut DriverFile {
    let open = || -> Result<DriverFile> {
        let opening = OPENING.with_borrow(Option::clone);
        let (source, descriptor) = opening.ok_or_else(|| Error::usage("no file is being opened"))?;
        let len = source.len()?;
        Ok(DriverFile {
            driver: 0,
            class: ptr::null(),
            number: 0,
            access_flags: 0,
            features: 0,
            max_address: 0,
            base_address: 0,
            threshold: 0,
            alignment: 0,
            is_paged: false,
            source,
            descriptor,
            len,
            end: 0,
        })
    };
    // a panic must not unwind into C
    match catch_unwind(open) {
        Ok(Ok(file)) => Box::into_raw(Box::new(file)),
        Ok(Err(error)) => {
            note_cause(Some(error));
            ptr::null_mut()
        }
        Err(_) => ptr::null_mut(),
    }
}

/// Returns 0 on success, -1 on failure; `file` is used no more.
unsafe extern "C" fn close_driver_file(file: *mut DriverFile) -> c_int {
    // SAFETY: as this function demands
    let file = unsafe { Box::from_raw(file) };
    // a panic must not unwind into C
    catch_unwind(AssertUnwindSafe(|| drop(file))).map_or(-1, |()| 0)
}

/// Returns 0 for the same source of bytes, else -1 or 1 by the sources' addresses in memory.
unsafe extern "C" fn compare_driver_files(one: *const DriverFile, other: *const DriverFile) -> c_int {
    // SAFETY: as this function demands
    let (one, other) = unsafe { (&*one, &*other) };
    Arc::as_ptr(&one.source).addr().cmp(&Arc::as_ptr(&other.source).addr()) as c_int
}

/// Files can be read while another process appends to them; `features` may be null.
unsafe extern "C" fn driver_features(_: *const DriverFile, features: *mut c_ulong) -> c_int {
    /// `H5FD_FEAT_SUPPORTS_SWMR_IO`
    const LIVE: c_ulong = 0x1000;
    if !features.is_null() {
        // SAFETY: as this function demands
        unsafe { *features = LIVE };
    }
    0
}

/// Gives the place of the descriptor, which is -1 for a source that has none; returns 0.
unsafe extern "C" fn driver_file_handle(file: *mut DriverFile, _: hid_t, handle: *mut *mut c_void) -> c_int {
    // SAFETY: as this function demands
    unsafe { *handle = (&raw mut (*file).descriptor).cast() };
    0
}

/// `get_eoa`: end of the addresses that libhdf5 uses in the file, in bytes.
unsafe extern "C" fn driver_file_end(file: *const DriverFile, _: c_int) -> u64 {
    // SAFETY: as this function demands
    unsafe { (*file).end }
}

/// `set_eoa`; returns 0.
unsafe extern "C" fn set_driver_file_end(file: *mut DriverFile, _: c_int, end: u64) -> c_int {
    // SAFETY: as this function demands
    unsafe { (*file).end = end };
    0
}

/// `get_eof`: length of the file in bytes.
unsafe extern "C" fn driver_file_len(file: *const DriverFile, _: c_int) -> u64 {
    // SAFETY: as this function demands
    unsafe { (*file).len }
}

/// Fills `buffer` of `count` bytes from the offset `address`; bytes after the end of the file are
/// zeros, as in libhdf5's own drivers. Returns 0 on success, -1 on failure.
unsafe extern "C" fn read_driver_file(
    file: *mut DriverFile,
    _: c_int,
    _: hid_t,
    address: u64,
    count: usize,
    buffer: *mut c_void,
) -> c_int {
    if count == 0 {
        return 0;
    }
    // SAFETY: as this function demands
    let file = unsafe { &mut *file };
    // SAFETY: as this function demands; the bytes are set before they are read
    let out = unsafe {
        ptr::write_bytes(buffer.cast::<u8>(), 0, count);
        slice::from_raw_parts_mut(buffer.cast::<u8>(), count)
    };
    let read = || {
        if address.saturating_add(count as u64) > file.len {
            // a live file has grown
            file.len = file.source.len()?;
        }
        let existing = usize::try_from(file.len.saturating_sub(address)).unwrap_or(usize::MAX).min(count);
        file.source.read_at(address, &mut out[..existing])
    };
    // a panic must not unwind into C
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(())) => {
            note_cause(None);
            0
        }
        Ok(Err(error)) => {
            note_cause(Some(error));
            -1
        }
        Err(_) => -1,
    }
}

/// Always fails (returns -1), because the files of the driver are read-only.
unsafe extern "C" fn refuse_to_write(
    _: *mut DriverFile,
    _: c_int,
    _: hid_t,
    _: u64,
    _: usize,
    _: *const c_void,
) -> c_int {
    -1
}
