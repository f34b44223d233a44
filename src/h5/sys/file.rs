//! Creating and opening files, and their descriptors.
//!
//! Descriptors of files on disk are close-on-exec: child processes would otherwise hold a file's
//! lock for as long as they run.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use hdf5::plist::file_access::FileDriver;
use hdf5::plist::{FileAccess, FileCreate};
use hdf5::sync::sync;
use hdf5_sys::h5i::hid_t;
use hdf5_sys::h5p::H5P_DEFAULT;
use hdf5_sys::{h5f, h5p};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::super::error::Hdf5Result;
use super::calls::c_path;
use super::filter::register_codecs;
use crate::error::{Error, Result};
use crate::io::{FileSource, ReadAt};
#[cfg(feature = "static-hdf5")]
use {
    super::calls::c_name,
    super::driver::{source_driver, with_source},
    std::ffi::CStr,
    std::os::fd::AsRawFd,
};

// of H5Fpublic.h: hdf5-sys links it and does not declare it
unsafe extern "C" {
    fn H5Fget_eoa(file: hid_t, end: *mut u64) -> c_int;
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    /// Reads while another program appends (SWMR), or did when it was killed.
    ReadLive,
    Write,
    /// Opens for appending a file that others read (SWMR).
    WriteLive,
}

impl Mode {
    fn flags(self) -> c_uint {
        match self {
            Mode::Read => h5f::H5F_ACC_RDONLY,
            Mode::ReadLive => h5f::H5F_ACC_RDONLY | h5f::H5F_ACC_SWMR_READ,
            Mode::Write => h5f::H5F_ACC_RDWR,
            Mode::WriteLive => h5f::H5F_ACC_RDWR | h5f::H5F_ACC_SWMR_WRITE,
        }
    }
}

pub(crate) fn create_file(path: &Path, create: &FileCreate, access: &FileAccess) -> Result<hdf5::File> {
    keep(create_memory_file(path, create, access)?)
}

/// The file may be in memory, where it does not have a file descriptor.
pub(crate) fn create_memory_file(name: &Path, create: &FileCreate, access: &FileAccess) -> Result<hdf5::File> {
    register_codecs()?;
    let name = c_path(name)?;
    create!(hdf5::File, h5f::H5Fcreate(name.as_ptr(), h5f::H5F_ACC_TRUNC, create.id(), access.id())).h5()
}

pub(crate) fn open_file(path: &Path, mode: Mode, access: &FileAccess) -> Result<hdf5::File> {
    register_codecs()?;
    let path = c_path(path)?;
    keep(create!(hdf5::File, h5f::H5Fopen(path.as_ptr(), mode.flags(), access.id())).h5()?)
}

/// `name` appears only in messages.
#[cfg(feature = "static-hdf5")]
pub(crate) fn open_source(name: &str, source: Arc<dyn ReadAt>, access: &FileAccess) -> Result<hdf5::File> {
    open_driven(&c_name(name)?, (source, -1), Mode::Read, access)
}

/// Opens for reading the live file `source`, at `path`. libhdf5's memory of the file is shared with
/// no other file that this process opens: of a shared dataset with a new chunk libhdf5 would give
/// zeros or other rows to all but one, without an error, because `H5Drefresh` forgets the chunk
/// index only of a dataset that is open once.
#[cfg(feature = "static-hdf5")]
pub(crate) fn open_live(path: &Path, source: Arc<FileSource>, access: &FileAccess) -> Result<hdf5::File> {
    let descriptor = source.raw(0).map_or(-1, |raw| raw.file.as_raw_fd());
    open_driven(&c_path(path)?, (source, descriptor), Mode::ReadLive, access)
}

#[cfg(feature = "static-hdf5")]
fn open_driven(name: &CStr, source: (Arc<dyn ReadAt>, c_int), mode: Mode, access: &FileAccess) -> Result<hdf5::File> {
    register_codecs()?;
    let driver = source_driver()?;
    call!(h5p::H5Pset_driver(access.id(), driver, ptr::null())).h5()?;
    let open = || create!(hdf5::File, h5f::H5Fopen(name.as_ptr(), mode.flags(), access.id()));
    with_source(source, open).h5()
}

/// Always fails: only the libhdf5 that the feature `static-hdf5` builds in has the driver.
#[cfg(not(feature = "static-hdf5"))]
pub(crate) fn open_source(_name: &str, _source: Arc<dyn ReadAt>, _access: &FileAccess) -> Result<hdf5::File> {
    Err(Error::unsupported(
        "this program uses the machine's libhdf5: addresses need one with its own (feature `static-hdf5`)",
    ))
}

/// Opens a live file for reading. Those in one process with the same driver share libhdf5's memory
/// of the file, and all but one would read wrong rows of new chunks: so the second gets another
/// driver, and the third is `Unsupported`.
#[cfg(not(feature = "static-hdf5"))]
pub(crate) fn open_live(path: &Path, _source: Arc<FileSource>, access: &FileAccess) -> Result<hdf5::File> {
    for is_second in [false, true] {
        if is_second {
            call!(h5p::H5Pset_fapl_log(access.id(), ptr::null(), 0, 0)).h5()?;
        }
        let opened = open_file(path, Mode::ReadLive, access)?;
        // with the lock a restarted writer would have to wait for all readers; file systems without
        // locks are fine
        unlock(&opened);
        // others may have datasets open and no file
        if call!(h5f::H5Fget_obj_count(opened.id(), h5f::H5F_OBJ_ALL)).h5()? == 1 {
            return Ok(opened);
        }
    }
    Err(Error::unsupported(
        "this program uses the machine's libhdf5, with which a process can read a live file only twice at a time",
    ))
}

/// Marks the descriptor as close-on-exec.
fn keep(file: hdf5::File) -> Result<hdf5::File> {
    with_descriptor(&file, |descriptor| Ok(fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?))?;
    Ok(file)
}

/// Offset in bytes of the end of the HDF5 data; later bytes of the file are not HDF5.
pub(crate) fn end_of_file(file: &hdf5::File) -> Result<u64> {
    let mut end = 0;
    call!(H5Fget_eoa(file.id(), &mut end)).h5()?;
    Ok(end)
}

/// All bytes of a file in memory.
pub(crate) fn image(file: &hdf5::File) -> Result<Vec<u8>> {
    file.flush().h5()?;
    let size = call!(h5f::H5Fget_file_image(file.id(), ptr::null_mut(), 0)).h5()?;
    let mut image = vec![0u8; size as usize];
    call!(h5f::H5Fget_file_image(file.id(), image.as_mut_ptr().cast(), image.len())).h5()?;
    Ok(image)
}

/// The duplicate stays valid after the file is closed.
pub(crate) fn descriptor(file: &hdf5::File) -> Result<OwnedFd> {
    with_descriptor(file, |descriptor| descriptor.try_clone_to_owned())
}

/// Gives up the lock on the file, if it is on disk.
pub(crate) fn unlock(file: &hdf5::File) {
    if let Ok(descriptor) = descriptor(file) {
        // the file system may have no locks
        let _ = std::fs::File::from(descriptor).unlock();
    }
}

/// The error is `Unsupported` if the file does not have a descriptor.
fn with_descriptor<T>(file: &hdf5::File, call: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<T>) -> Result<T> {
    sync(|| {
        let descriptor = raw_descriptor(file)?;
        let descriptor = descriptor.ok_or_else(|| Error::unsupported("a file in memory does not have a descriptor"))?;
        // SAFETY: the file is open for this function, and its descriptor with it; the lock is held
        Ok(call(unsafe { BorrowedFd::borrow_raw(descriptor) })?)
    })
}

fn raw_descriptor(file: &hdf5::File) -> Result<Option<c_int>> {
    let access = file.access_plist().h5()?;
    let is_own = call!(h5p::H5Pget_driver(access.id())).h5()? == source_driver()?;
    if !is_own && !matches!(access.get_driver().h5()?, FileDriver::Sec2 | FileDriver::Log) {
        return Ok(None);
    }
    let mut handle: *mut c_void = ptr::null_mut();
    call!(h5f::H5Fget_vfd_handle(file.id(), H5P_DEFAULT, &raw mut handle)).h5()?;
    // SAFETY: the handle of these drivers points to a C int while the file is open
    let descriptor = unsafe { *handle.cast::<c_int>() };
    Ok((descriptor >= 0).then_some(descriptor))
}

/// No driver of its own has a program that uses the machine's libhdf5.
#[cfg(not(feature = "static-hdf5"))]
fn source_driver() -> Result<hid_t> {
    Ok(hdf5_sys::h5i::H5I_INVALID_HID)
}
