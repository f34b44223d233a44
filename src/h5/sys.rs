//! Calls of libhdf5's C functions that the `hdf5` crate lacks or restricts. This is the only `unsafe` code of the crate.
//!
//! Every function is safe to call. Each takes the global lock for its calls, owns what it creates through a handle of
//! the `hdf5` crate, and checks the length of buffers before libhdf5 sees them. Extents here are in HDF5's order,
//! slowest axis first.
#![allow(unsafe_code, reason = "calls into libhdf5")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::{ptr, slice};

use bstr::BString;
use hdf5::globals::*;
use hdf5::plist::file_access::FileDriver;
use hdf5::plist::{AttributeCreate, DatasetCreate, FileAccess, FileCreate, LinkCreate};
use hdf5::sync::sync;
use hdf5::{Dataspace, Datatype, Location, h5check};
use hdf5_sys::h5::{self, H5_index_t, H5_iter_order_t};
use hdf5_sys::h5i::hid_t;
use hdf5_sys::h5p::H5P_DEFAULT;
use hdf5_sys::h5s::{H5S_UNLIMITED, H5S_seloper_t};
use hdf5_sys::h5t::{H5T_VARIABLE, H5T_class_t, H5T_cset_t, H5T_str_t};
use hdf5_sys::{h5a, h5d, h5f, h5i, h5l, h5o, h5p, h5s, h5t, h5z};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::StoredElement;
use super::any_type::{
    AnyClass, AnyMember, AnyType, FloatLayout, IntegerLayout, MAX_NESTED_TYPES, Order, Padding, ReferenceKind, Visitor,
};
use super::codec::{self, CODECS};
use super::error::{Hdf5Result, from_hdf5};
use crate::error::{Error, Result};
use crate::io::{FileSource, ReadAt};
use crate::value::DataType;

// what hdf5-sys links and does not declare: H5Fpublic.h, and H5DSpublic.h of libhdf5_hl (its feature `hl`); and a function whose constants
// it declares by other names for other releases of HDF5
unsafe extern "C" {
    fn H5Fget_eoa(file: hid_t, end: *mut u64) -> c_int;
    fn H5Rcreate(address: *mut u64, object: hid_t, name: *const c_char, kind: c_int, space: hid_t) -> c_int;
    fn H5DSset_scale(dataset: hid_t, name: *const c_char) -> c_int;
    fn H5DSattach_scale(dataset: hid_t, scale: hid_t, axis: c_uint) -> c_int;
}

/// Makes a C call of libhdf5 under the library's global lock; a result that means failure becomes an error.
///
/// Every use passes identifiers borrowed from live handles and pointers to locals that outlive the call.
macro_rules! call {
    ($($call:tt)*) => {
        sync(|| {
            // SAFETY: the lock is held; the arguments are as this macro's doc demands, which its uses show
            h5check(unsafe { $($call)* })
        })
    };
}

/// Makes a C call of libhdf5 that returns a new identifier, under the library's global lock, and wraps the identifier in the
/// handle type `$handle`, which then owns it.
macro_rules! create {
    ($handle:ty, $($call:tt)*) => {
        sync(|| {
            // SAFETY: as `call!`
            let id = h5check(unsafe { $($call)* })?;
            // SAFETY: the identifier is new, nothing else owns it
            unsafe { hdf5::from_id::<$handle>(id) }
        })
    };
}

fn c_name(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::usage(format!("the name {name:?} contains NUL")))
}

#[cfg(unix)]
fn c_path(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::usage("the path contains NUL"))
}

#[cfg(not(unix))]
fn c_path(path: &Path) -> Result<CString> {
    // libhdf5 takes UTF-8 paths on Windows
    c_name(path.to_str().ok_or_else(|| Error::usage("the path is not Unicode"))?)
}

pub(super) fn create_file(path: &Path, create: &FileCreate, access: &FileAccess) -> Result<hdf5::File> {
    keep(create_memory_file(path, create, access)?)
}

/// Creates an HDF5 file with the driver that `access` sets; the file may be in memory, where it does not have a file
/// descriptor.
pub(super) fn create_memory_file(name: &Path, create: &FileCreate, access: &FileAccess) -> Result<hdf5::File> {
    register_codecs()?;
    let name = c_path(name)?;
    create!(hdf5::File, h5f::H5Fcreate(name.as_ptr(), h5f::H5F_ACC_TRUNC, create.id(), access.id())).h5()
}

/// The mode in which an HDF5 file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    /// Opens for reading a file to which another program appends (SWMR), or appended when it was killed.
    ReadLive,
    Write,
    /// Opens for appending a file that others read (SWMR).
    WriteLive,
}

pub(super) fn open_file(path: &Path, mode: Mode, access: &FileAccess) -> Result<hdf5::File> {
    register_codecs()?;
    let path = c_path(path)?;
    keep(create!(hdf5::File, h5f::H5Fopen(path.as_ptr(), mode.flags(), access.id())).h5()?)
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

/// A link of an HDF5 group to one of its members, as the file stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    /// A hard link: to an object of the same file.
    Hard,
    /// A soft link: a path in the same file.
    Soft(String),
    /// An external link: to an object of another file.
    External {
        /// Name of the file to which the external link points, as the link records it.
        file: String,
        /// HDF5 path of the object to which the external link points, in the file that the link names.
        path: String,
    },
    /// A user-defined link of this class (65 to 255), which only a program that registers the class can follow.
    UserDefined(c_int),
}

/// The fields that the C structs `H5L_info1_t` and `H5L_info2_t` have in common. The class of the link is a plain
/// number instead of an enumeration, because a file may contain any value.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    class: c_int,
    order_valid: c_uint,
    order: i64,
    charset: c_int,
    /// A C union. Its first word is the size in bytes of the link's value (a path, or file and path); for a hard link it has
    /// another meaning.
    value: [u64; 2],
}

/// Largest size in bytes of the value of a link (a path, or a file name and a path) that is read; larger is an error.
const MAX_LINK_VALUE: u64 = 1 << 20;

/// Reads the link `name` of `group` without following it. The link must exist, and `name` must not contain a slash.
pub(super) fn link(group: &hdf5::Group, name: &str) -> Result<Link> {
    let name = c_name(name)?;
    let mut info = LinkInfo::default();
    #[cfg(feature = "static-hdf5")]
    call!(h5l::H5Lget_info2(group.id(), name.as_ptr(), (&raw mut info).cast(), H5P_DEFAULT)).h5()?;
    #[cfg(not(feature = "static-hdf5"))]
    call!(h5l::H5Lget_info1(group.id(), name.as_ptr(), (&raw mut info).cast(), H5P_DEFAULT))?;
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

/// The names of the members of a group, sorted by the index `order`: by name, or by order of creation.
///
/// The `hdf5` crate's own takes the class of a link for an enum, whatever number the file has there.
pub(super) fn link_names(group: &hdf5::Group, order: H5_index_t) -> Result<Vec<String>> {
    /// The callback of `H5Literate`, called for each member of a group: appends the member's name to the vector `names`;
    /// returns 0, so that `H5Literate` continues.
    ///
    /// # Safety
    /// `name` ends with NUL; `names` is the vector below, which nothing else uses.
    unsafe extern "C" fn collect(
        _: hid_t,
        name: *const c_char,
        _: *const h5l::H5L_info_t,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: as this function demands
        let (name, names) = unsafe { (CStr::from_ptr(name), &mut *names.cast::<Vec<String>>()) };
        names.push(name.to_string_lossy().into_owned());
        0
    }
    let mut names: Vec<String> = Vec::new();
    let (increasing, data) = (H5_iter_order_t::H5_ITER_INC, (&raw mut names).cast());
    call!(h5l::H5Literate(group.id(), order, increasing, ptr::null_mut(), Some(collect), data)).h5()?;
    Ok(names)
}

/// Opens the dataset to which the hard link `name` of `group` leads; relative names of external storage files are taken from
/// the directory `prefix`.
pub(super) fn open_dataset(group: &hdf5::Group, name: &str, prefix: &Path) -> Result<hdf5::Dataset> {
    let (name, prefix) = (c_name(name)?, c_path(prefix)?);
    let access = create!(hdf5::plist::DatasetAccess, h5p::H5Pcreate(*H5P_DATASET_ACCESS)).h5()?;
    call!(h5p::H5Pset_efile_prefix(access.id(), prefix.as_ptr())).h5()?;
    create!(hdf5::Dataset, h5d::H5Dopen2(group.id(), name.as_ptr(), access.id())).h5()
}

/// Opens the dataset to which the hard link `name` of `group` leads, with a chunk cache of `cache_bytes` bytes; relative names
/// of external storage files are taken from the directory `prefix`, if given.
pub(super) fn open_cached_dataset(
    group: &hdf5::Group,
    name: &str,
    prefix: Option<&Path>,
    cache_bytes: usize,
) -> Result<hdf5::Dataset> {
    let name = c_name(name)?;
    let access = create!(hdf5::plist::DatasetAccess, h5p::H5Pcreate(*H5P_DATASET_ACCESS)).h5()?;
    if let Some(prefix) = prefix {
        let prefix = c_path(prefix)?;
        call!(h5p::H5Pset_efile_prefix(access.id(), prefix.as_ptr())).h5()?;
    }
    // the slots are of pointers; 0.75 is HDF5's default of how soon chunks that were read leave
    call!(h5p::H5Pset_chunk_cache(access.id(), 1021, cache_bytes, 0.75)).h5()?;
    create!(hdf5::Dataset, h5d::H5Dopen2(group.id(), name.as_ptr(), access.id())).h5()
}

/// Opens the object to which the hard link `name` of `group` leads, to read its attributes.
pub(super) fn open_object(group: &hdf5::Group, name: &str) -> Result<Location> {
    let name = c_name(name)?;
    create!(Location, h5o::H5Oopen(group.id(), name.as_ptr(), H5P_DEFAULT)).h5()
}

/// Opens the committed (named) type to which the hard link `name` of `group` leads.
pub(super) fn open_type(group: &hdf5::Group, name: &str) -> Result<Datatype> {
    let name = c_name(name)?;
    create!(Datatype, h5t::H5Topen2(group.id(), name.as_ptr(), H5P_DEFAULT)).h5()
}

/// The extents of a virtual dataset as recorded at its creation, slowest axis first; its sources are not opened. `None` if it
/// has no source.
pub(super) fn virtual_extents(creation: &DatasetCreate) -> Result<Option<Vec<u64>>> {
    let mut count = 0;
    call!(h5p::H5Pget_virtual_count(creation.id(), &mut count)).h5()?;
    if count == 0 {
        return Ok(None);
    }
    let space = create!(Dataspace, h5p::H5Pget_virtual_vspace(creation.id(), 0)).h5()?;
    Ok(Some(space.shape().into_iter().map(|extent| extent as u64).collect()))
}

/// The sources of a virtual dataset, as its file records them: file name and dataset path of each; `None` if it has more than
/// `most` sources.
pub(super) fn virtual_sources(creation: &DatasetCreate, most: usize) -> Result<Option<Vec<(String, String)>>> {
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

/// Offset in bytes of the end of the HDF5 data in a file; later bytes of the file are not HDF5.
pub(super) fn end_of_file(file: &hdf5::File) -> Result<u64> {
    let mut end = 0;
    call!(H5Fget_eoa(file.id(), &mut end)).h5()?;
    Ok(end)
}

/// Marks the descriptor of an open HDF5 file as close-on-exec and returns the file. Child processes would otherwise hold the
/// file's lock for as long as they run.
fn keep(file: hdf5::File) -> Result<hdf5::File> {
    with_descriptor(&file, |descriptor| Ok(fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?))?;
    Ok(file)
}

/// Duplicates the file descriptor of an open HDF5 file; the duplicate stays valid after the file is closed.
pub(super) fn descriptor(file: &hdf5::File) -> Result<OwnedFd> {
    with_descriptor(file, |descriptor| descriptor.try_clone_to_owned())
}

/// Whether an open HDF5 file has a file descriptor, as one on disk does, and those in memory and at an address do not.
pub(super) fn has_descriptor(file: &hdf5::File) -> Result<bool> {
    Ok(raw_descriptor(file)?.is_some())
}

/// Calls `call` with the file descriptor of an open HDF5 file; the error is `Unsupported` if it does not have one, as in
/// memory.
fn with_descriptor<T>(file: &hdf5::File, call: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<T>) -> Result<T> {
    sync(|| {
        let descriptor = raw_descriptor(file)?;
        let descriptor = descriptor.ok_or_else(|| Error::unsupported("a file in memory does not have a descriptor"))?;
        // SAFETY: the file is open for this function, and its descriptor with it; the lock is held
        Ok(call(unsafe { BorrowedFd::borrow_raw(descriptor) })?)
    })
}

/// The file descriptor of an open HDF5 file, if it has one.
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

/// Makes an HDF5 dataspace with `extents`, slowest axis first; if `unlimited`, the first axis may grow without limit.
pub(super) fn dataspace(extents: &[u64], unlimited: bool) -> Result<Dataspace> {
    dataspace_with(extents, |axis, _| unlimited && axis == 0)
}

/// Makes an HDF5 dataspace with `extents`, slowest axis first, for the elements of a chunked dataset: the first axis may grow
/// without limit if `unlimited`, and so may axes without extent, because chunks are not larger than the limits of a dataset.
pub(super) fn chunked_dataspace(extents: &[u64], unlimited: bool) -> Result<Dataspace> {
    dataspace_with(extents, |axis, extent| extent == 0 || unlimited && axis == 0)
}

/// Makes an HDF5 dataspace with `extents`; `is_unlimited` is called with the number of each axis and its extent.
fn dataspace_with(extents: &[u64], is_unlimited: impl Fn(usize, u64) -> bool) -> Result<Dataspace> {
    let limit = |(axis, &extent): (usize, &u64)| if is_unlimited(axis, extent) { H5S_UNLIMITED } else { extent };
    let limits: Vec<u64> = extents.iter().enumerate().map(limit).collect();
    let axes = extents.len() as c_int;
    create!(Dataspace, h5s::H5Screate_simple(axes, extents.as_ptr(), limits.as_ptr())).h5()
}

/// Makes the dataspace of a memory buffer for selected elements of a dataset: `extents` are those of the selection,
/// slowest axis first, axes of length 1 included. If the shapes of the two dataspaces differ, libhdf5 copies element by
/// element, which is slow.
pub(super) fn memory(extents: &[u64]) -> Result<Dataspace> {
    dataspace(if extents.is_empty() { &[1] } else { extents }, false)
}

/// Makes the dataspace of a single value.
pub(super) fn scalar() -> Result<Dataspace> {
    create!(Dataspace, h5s::H5Screate(h5s::H5S_class_t::H5S_SCALAR)).h5()
}

/// Selects a box of a dataspace by the index of its first element and its extents, slowest axis first.
pub(super) fn select(space: &Dataspace, start: &[u64], extent: &[u64]) -> Result<()> {
    let axes = space.ndim();
    if start.len() != axes || extent.len() != axes {
        return Err(Error::usage(format!("the box has {} axes, the dataspace {axes}", start.len())));
    }
    if axes > 0 {
        call!(h5s::H5Sselect_hyperslab(
            space.id(),
            H5S_seloper_t::H5S_SELECT_SET,
            start.as_ptr(),
            ptr::null(),
            extent.as_ptr(),
            ptr::null()
        ))
        .h5()?;
    }
    Ok(())
}

/// Selects elements of a dataspace: on each axis `count` of them, from the index `start` on and `step` apart, slowest axis
/// first.
pub(super) fn select_steps(space: &Dataspace, start: &[u64], step: &[u64], count: &[u64]) -> Result<()> {
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

/// The little-endian HDF5 type of the casacore number, complex or Bool type `element`, used in files and in this program's
/// buffers.
pub(super) fn number_type(element: DataType) -> Result<Datatype> {
    let standard = match element {
        DataType::Bool => return bool_type(),
        DataType::Complex | DataType::DComplex => return complex_type(element),
        DataType::UChar => *H5T_STD_U8LE,
        DataType::Short => *H5T_STD_I16LE,
        DataType::UShort => *H5T_STD_U16LE,
        DataType::Int => *H5T_STD_I32LE,
        DataType::UInt => *H5T_STD_U32LE,
        DataType::Int64 => *H5T_STD_I64LE,
        DataType::Float => *H5T_IEEE_F32LE,
        DataType::Double => *H5T_IEEE_F64LE,
        DataType::String | DataType::Record => {
            return Err(Error::usage(format!("{element} elements have no fixed size in HDF5")));
        }
    };
    create!(Datatype, h5t::H5Tcopy(standard)).h5()
}

/// HDF5 number types that this program writes (in attributes, counters and dimension scales), but that no casacore type
/// corresponds to.
#[derive(Clone, Copy)]
pub(super) enum Foreign {
    Int8,
    UInt64,
    FloatBigEndian,
}

pub(super) fn foreign_type(which: Foreign) -> Result<Datatype> {
    let standard = match which {
        Foreign::Int8 => *H5T_STD_I8LE,
        Foreign::UInt64 => *H5T_STD_U64LE,
        Foreign::FloatBigEndian => *H5T_IEEE_F32BE,
    };
    create!(Datatype, h5t::H5Tcopy(standard)).h5()
}

/// The HDF5 type of a compound of 32-bit signed integers, packed, whose members are called `names`.
pub(super) fn int_record_type(names: &[&str]) -> Result<Datatype> {
    let record = create!(Datatype, h5t::H5Tcreate(H5T_class_t::H5T_COMPOUND, 4 * names.len())).h5()?;
    for (number, name) in names.iter().enumerate() {
        let name = c_name(name)?;
        call!(h5t::H5Tinsert(record.id(), name.as_ptr(), 4 * number, *H5T_STD_I32LE)).h5()?;
    }
    Ok(record)
}

/// The HDF5 type of `element`, which must not be a record or an array.
pub(super) fn simple_type(element: &StoredElement) -> Result<Datatype> {
    let standard = match *element {
        StoredElement::Bool => return bool_type(),
        StoredElement::Complex(8) => return complex_type(DataType::Complex),
        StoredElement::Complex(_) => return complex_type(DataType::DComplex),
        StoredElement::Text(bytes) => return fixed_string_type(bytes),
        StoredElement::Bytes(bytes) => {
            let string = create!(Datatype, h5t::H5Tcopy(*H5T_C_S1)).h5()?;
            call!(h5t::H5Tset_size(string.id(), bytes)).h5()?;
            call!(h5t::H5Tset_strpad(string.id(), H5T_str_t::H5T_STR_NULLPAD)).h5()?;
            return Ok(string);
        }
        StoredElement::Opaque(bytes) => {
            return create!(Datatype, h5t::H5Tcreate(H5T_class_t::H5T_OPAQUE, bytes)).h5();
        }
        StoredElement::Float(2) => return half_type(),
        StoredElement::Int(1) => *H5T_STD_I8LE,
        StoredElement::Int(2) => *H5T_STD_I16LE,
        StoredElement::Int(4) => *H5T_STD_I32LE,
        StoredElement::Int(8) => *H5T_STD_I64LE,
        StoredElement::UInt(1) => *H5T_STD_U8LE,
        StoredElement::UInt(2) => *H5T_STD_U16LE,
        StoredElement::UInt(4) => *H5T_STD_U32LE,
        StoredElement::UInt(8) => *H5T_STD_U64LE,
        StoredElement::Float(4) => *H5T_IEEE_F32LE,
        StoredElement::Float(8) => *H5T_IEEE_F64LE,
        ref other => return Err(Error::unsupported(format!("HDF5 has no elements {other:?}"))),
    };
    create!(Datatype, h5t::H5Tcopy(standard)).h5()
}

/// The HDF5 type of little-endian IEEE 754 numbers of 16 bits.
fn half_type() -> Result<Datatype> {
    let half = create!(Datatype, h5t::H5Tcopy(*H5T_IEEE_F32LE)).h5()?;
    // sign at bit 15, 5 bits of the exponent from bit 10 on, 10 bits of the mantissa
    call!(h5t::H5Tset_fields(half.id(), 15, 10, 5, 0, 10)).h5()?;
    call!(h5t::H5Tset_size(half.id(), 2)).h5()?;
    call!(h5t::H5Tset_ebias(half.id(), 15)).h5()?;
    Ok(half)
}

/// The HDF5 type of a compound with these members (name and type), packed one after the other.
pub(super) fn record_type(members: &[(&str, Datatype)]) -> Result<Datatype> {
    let size = members.iter().map(|(_, member)| member.size()).sum();
    let record = create!(Datatype, h5t::H5Tcreate(H5T_class_t::H5T_COMPOUND, size)).h5()?;
    let mut offset = 0;
    for (name, member) in members {
        let name = c_name(name)?;
        call!(h5t::H5Tinsert(record.id(), name.as_ptr(), offset, member.id())).h5()?;
        offset += member.size();
    }
    Ok(record)
}

/// The HDF5 type of an array of `element` with these extents, slowest axis first.
pub(super) fn array_type(element: &Datatype, extents: &[u64]) -> Result<Datatype> {
    create!(Datatype, h5t::H5Tarray_create2(element.id(), extents.len() as c_uint, extents.as_ptr())).h5()
}

/// The HDF5 type of Bools: `enum int8 {FALSE = 0, TRUE = 1}`, as h5py writes its bool.
fn bool_type() -> Result<Datatype> {
    let bool = create!(Datatype, h5t::H5Tenum_create(*H5T_STD_I8LE)).h5()?;
    for (name, value) in [(c"FALSE", 0i8), (c"TRUE", 1)] {
        call!(h5t::H5Tenum_insert(bool.id(), name.as_ptr(), ptr::from_ref(&value).cast())).h5()?;
    }
    Ok(bool)
}

/// The HDF5 type of the complex type `element`: a packed compound `{r, i}`, as h5py writes it.
fn complex_type(element: DataType) -> Result<Datatype> {
    let size = element.size();
    let complex = create!(Datatype, h5t::H5Tcreate(H5T_class_t::H5T_COMPOUND, size)).h5()?;
    let part = if element == DataType::Complex { *H5T_IEEE_F32LE } else { *H5T_IEEE_F64LE };
    call!(h5t::H5Tinsert(complex.id(), c"r".as_ptr(), 0, part)).h5()?;
    call!(h5t::H5Tinsert(complex.id(), c"i".as_ptr(), size / 2, part)).h5()?;
    Ok(complex)
}

/// The character set that HDF5 records for a string or a name; HDF5 converts nothing.
#[derive(Clone, Copy)]
pub(super) enum Charset {
    Ascii,
    Utf8,
}

/// The HDF5 type of variable-length strings with the character set `charset`; h5py stores Python's `str` as the type
/// with UTF-8.
pub(super) fn string_type(charset: Charset) -> Result<Datatype> {
    let string = create!(Datatype, h5t::H5Tcopy(*H5T_C_S1)).h5()?;
    call!(h5t::H5Tset_size(string.id(), H5T_VARIABLE)).h5()?;
    let charset = match charset {
        Charset::Ascii => H5T_cset_t::H5T_CSET_ASCII,
        Charset::Utf8 => H5T_cset_t::H5T_CSET_UTF8,
    };
    call!(h5t::H5Tset_cset(string.id(), charset)).h5()?;
    Ok(string)
}

/// The HDF5 type of UTF-8 strings with a fixed length of `bytes` bytes, padded with NUL.
pub(super) fn fixed_string_type(bytes: usize) -> Result<Datatype> {
    let string = create!(Datatype, h5t::H5Tcopy(*H5T_C_S1)).h5()?;
    call!(h5t::H5Tset_size(string.id(), bytes)).h5()?;
    call!(h5t::H5Tset_cset(string.id(), H5T_cset_t::H5T_CSET_UTF8)).h5()?;
    call!(h5t::H5Tset_strpad(string.id(), H5T_str_t::H5T_STR_NULLPAD)).h5()?;
    Ok(string)
}

pub(super) fn class(datatype: &Datatype) -> H5T_class_t {
    // SAFETY: the lock is held and the identifier is live
    sync(|| unsafe { h5t::H5Tget_class(datatype.id()) })
}

pub(super) fn create_dataset(
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

/// Sets the fill value of a new dataset in its creation properties: `element`, the bytes of the element that is read where
/// nothing was written.
pub(super) fn set_fill(creation: &DatasetCreate, datatype: &Datatype, element: &[u8]) -> Result<()> {
    if element.len() != datatype.size() {
        return Err(Error::usage(format!("the fill value has {} bytes, expected {}", element.len(), datatype.size())));
    }
    call!(h5p::H5Pset_fill_value(creation.id(), datatype.id(), element.as_ptr().cast())).h5()?;
    Ok(())
}

/// The fill value of a dataset, which is read where nothing was written: the bytes of one element, converted to `datatype`;
/// zeros if the file does not define it.
pub(super) fn fill(creation: &DatasetCreate, datatype: &Datatype) -> Result<Vec<u8>> {
    if has_pointers(datatype)? {
        return Err(Error::unsupported("the fill value has a variable length"));
    }
    let mut element = vec![0u8; datatype.size()];
    call!(h5p::H5Pget_fill_value(creation.id(), datatype.id(), element.as_mut_ptr().cast())).h5()?;
    Ok(element)
}

/// Writes a chunk of a dataset: `bytes` have passed its filters already, except those set in `filter_mask`; `offset` is the
/// index of the chunk's first element, slowest axis first.
pub(super) fn write_chunk(dataset: &hdf5::Dataset, offset: &[u64], filter_mask: u32, bytes: &[u8]) -> Result<()> {
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

/// The place and size of the stored bytes of a chunk in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredChunk {
    /// Offset of the chunk's stored bytes from the start of the file, in bytes.
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Filters that were skipped when the chunk was stored: bit `i` stands for filter `i` of the dataset, from 0.
    pub(super) filter_mask: u32,
}

/// Finds the chunk of a dataset whose first element has the index `offset`, slowest axis first; `None` if it was never written.
pub(super) fn stored_chunk(dataset: &hdf5::Dataset, offset: &[u64]) -> Result<Option<StoredChunk>> {
    if dataset.ndim() != offset.len() {
        return Err(Error::usage(format!("the dataset has no chunks with {} axes", offset.len())));
    }
    let (mut filter_mask, mut address, mut bytes) = (0, 0, 0);
    call!(h5d::H5Dget_chunk_info_by_coord(dataset.id(), offset.as_ptr(), &mut filter_mask, &mut address, &mut bytes))
        .h5()?;
    Ok((address != h5::HADDR_UNDEF && bytes > 0).then_some(StoredChunk { address, bytes, filter_mask }))
}

/// `H5R_OBJECT1`, and `H5R_OBJECT` before HDF5 1.12: a reference that is the address of an object's header.
const OBJECT_REFERENCE: c_int = 0;

/// Offset of the header of a dataset from where libhdf5 counts addresses, in bytes.
pub(super) fn header_address(dataset: &hdf5::Dataset) -> Result<u64> {
    let mut address = 0;
    call!(H5Rcreate(&mut address, dataset.id(), c".".as_ptr(), OBJECT_REFERENCE, h5i::H5I_INVALID_HID)).h5()?;
    Ok(address)
}

/// A filter of a dataset as its file stores it: number, parameters, name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredFilter {
    pub(super) id: i32,
    pub(super) parameters: Vec<u32>,
    /// The name of the filter as the file records it, or else as libhdf5 knows it; empty if neither has one.
    pub(super) name: String,
}

/// The filters of a dataset, in the order in which a writer applies them.
pub(super) fn filters(creation: &DatasetCreate) -> Result<Vec<StoredFilter>> {
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

/// Whether libhdf5 contains the filter with the number `id`, or finds it in a plugin, which it then loads.
pub(super) fn is_filter_available(id: i32) -> Result<bool> {
    Ok(call!(h5z::H5Zfilter_avail(id)).h5()? > 0)
}

/// Registers with libhdf5, once per process, the compression codecs of this program that libhdf5 lacks, so that libhdf5
/// can read and write elements of datasets that are compressed with them.
fn register_codecs() -> Result<()> {
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

/// The callbacks by which libhdf5 runs this program's codecs, one for each in the order of [`CODECS`]: libhdf5 does not tell a
/// callback which filter is meant.
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

/// The callback by which libhdf5 runs a codec of this program on a chunk (`H5Z_func_t`): replaces the buffer and returns the
/// length of the result in bytes, 0 on failure.
///
/// # Safety
/// `parameters` are `count` numbers, `buffer` points to memory of libhdf5 whose first `len` bytes are the chunk.
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
    // SAFETY: both have the length, and are different memory; the old buffer is libhdf5's and used no more
    unsafe {
        ptr::copy_nonoverlapping(out.as_ptr(), new.cast::<u8>(), out.len());
        h5::H5free_memory(*buffer);
        *buffer = new;
        *buffer_bytes = out.len();
    }
    out.len()
}

/// The kind of index by which the chunks of a dataset are found, as libhdf5's number (`H5D_chunk_index_t`).
pub(super) fn chunk_index(dataset: &hdf5::Dataset) -> Result<c_uint> {
    let mut index = 0;
    call!(h5d::H5Dget_chunk_index_type(dataset.id(), &mut index)).h5()?;
    Ok(index)
}

/// Changes the extents of a dataset that can grow, slowest axis first.
pub(super) fn set_extent(dataset: &hdf5::Dataset, extents: &[u64]) -> Result<()> {
    debug_assert_eq!(dataset.ndim(), extents.len());
    call!(h5d::H5Dset_extent(dataset.id(), extents.as_ptr())).h5()?;
    Ok(())
}

/// Writes the changes of a dataset that are in memory to the file.
pub(super) fn flush_dataset(dataset: &hdf5::Dataset) -> Result<()> {
    call!(h5d::H5Dflush(dataset.id())).h5()?;
    Ok(())
}

/// Makes libhdf5 drop what it holds in memory of a dataset that another process writes, so that it is read from the file again.
pub(super) fn refresh_dataset(dataset: &hdf5::Dataset) -> Result<()> {
    call!(h5d::H5Drefresh(dataset.id())).h5()?;
    Ok(())
}

pub(super) fn set_scale(dataset: &hdf5::Dataset, name: &str) -> Result<()> {
    let name = c_name(name)?;
    call!(H5DSset_scale(dataset.id(), name.as_ptr())).h5()?;
    Ok(())
}

pub(super) fn attach_scale(dataset: &hdf5::Dataset, scale: &hdf5::Dataset, axis: u32) -> Result<()> {
    call!(H5DSattach_scale(dataset.id(), scale.id(), axis)).h5()?;
    Ok(())
}

/// Sets the attribute `DIMENSION_LIST` of a dataset that has none: for each axis, slowest first, the reference to its scale,
/// which is the address of the scale's header.
pub(super) fn set_dimension_list(dataset: &hdf5::Dataset, scales: &[u64]) -> Result<()> {
    let list = create!(Datatype, h5t::H5Tvlen_create(*H5T_STD_REF_OBJ)).h5()?;
    let space = dataspace(&[scales.len() as u64], false)?;
    let attribute =
        create_attribute(dataset, "DIMENSION_LIST", &list, &space, &AttributeCreate::build().finish().h5()?)?;
    let one = |address: &u64| h5t::hvl_t { len: 1, p: ptr::from_ref(address).cast_mut().cast() };
    let lists: Vec<h5t::hvl_t> = scales.iter().map(one).collect();
    // SAFETY: one sequence per axis, each of one reference, which is an address of 64 bits; libhdf5 does not write to them
    unsafe { Target::Attribute(&attribute).write(&list, lists.as_ptr().cast()) }.h5()
}

/// Sets the attribute `REFERENCE_LIST` of a scale that has none: for each use the reference to the dataset, which is the address
/// of its header, and the number of the axis, slowest first.
pub(super) fn set_reference_list(scale: &hdf5::Dataset, users: &[(u64, u32)]) -> Result<()> {
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

pub(super) fn has_attribute(owner: &Location, name: &str) -> Result<bool> {
    let name = c_name(name)?;
    Ok(call!(h5a::H5Aexists(owner.id(), name.as_ptr())).h5()? > 0)
}

/// The names of the attributes of an object, sorted by the index `order`: by name, or by order of creation.
///
/// The `hdf5` crate's own takes the character set of a name for an enum, whatever byte the file has there.
pub(super) fn attribute_names(owner: &Location, order: H5_index_t) -> Result<Vec<String>> {
    /// The callback of `H5Aiterate2`, called for each attribute of an object: appends the attribute's name to the vector
    /// `names`; returns 0, so that `H5Aiterate2` continues.
    ///
    /// # Safety
    /// `name` ends with NUL; `names` is the vector below, which nothing else uses.
    unsafe extern "C" fn collect(
        _: hid_t,
        name: *const c_char,
        _: *const h5a::H5A_info_t,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: as this function demands
        let (name, names) = unsafe { (CStr::from_ptr(name), &mut *names.cast::<Vec<String>>()) };
        names.push(name.to_string_lossy().into_owned());
        0
    }
    let mut names: Vec<String> = Vec::new();
    let (increasing, data) = (H5_iter_order_t::H5_ITER_INC, (&raw mut names).cast());
    match call!(h5a::H5Aiterate2(owner.id(), order, increasing, ptr::null_mut(), Some(collect), data)) {
        Ok(_) => Ok(names),
        // it opens the object again, which fails while a dataset is open with a prefix for its external files
        Err(error) => attribute_names_by_number(owner, order)?.ok_or_else(|| from_hdf5(error)),
    }
}

/// The names of the attributes of an object, sorted by the index `order`, read one by one; `None` if the object has
/// more than 1000 attributes, which would be slow, or their number is unknown.
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

pub(super) fn create_attribute(
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

/// The values that a call reads or writes: all values of an attribute, or those elements of a dataset that the dataspace `file`
/// selects, laid out in a buffer as the dataspace `memory` says.
pub(super) enum Target<'a> {
    Attribute(&'a hdf5::Attribute),
    Dataset { dataset: &'a hdf5::Dataset, memory: &'a Dataspace, file: &'a Dataspace },
}

impl Target<'_> {
    /// Number of values in the attribute, or of selected elements of the dataset, that is read or written; a buffer for them
    /// must hold as many.
    fn count(&self) -> Result<usize> {
        match self {
            Target::Attribute(attribute) => Ok(attribute.space().h5()?.size()),
            Target::Dataset { memory, .. } => Ok(memory.size()),
        }
    }

    /// Reads all values of the attribute, or the selected elements of the dataset, into `buffer`, converted to the type
    /// `datatype`.
    ///
    /// # Safety
    /// `buffer` holds [`count`](Self::count) elements of `datatype`.
    unsafe fn read(&self, datatype: &Datatype, buffer: *mut c_void) -> Result<(), hdf5::Error> {
        match self {
            Target::Attribute(attribute) => call!(h5a::H5Aread(attribute.id(), datatype.id(), buffer)),
            Target::Dataset { dataset, memory, file } => {
                call!(h5d::H5Dread(dataset.id(), datatype.id(), memory.id(), file.id(), H5P_DEFAULT, buffer))
            }
        }
        .map(|_| ())
    }

    /// Writes the values in `buffer`, which have the type `datatype`, to the whole attribute, or to the selected
    /// elements of the dataset.
    ///
    /// # Safety
    /// `buffer` holds [`count`](Self::count) elements of `datatype`.
    unsafe fn write(&self, datatype: &Datatype, buffer: *const c_void) -> Result<(), hdf5::Error> {
        match self {
            Target::Attribute(attribute) => call!(h5a::H5Awrite(attribute.id(), datatype.id(), buffer)),
            Target::Dataset { dataset, memory, file } => {
                call!(h5d::H5Dwrite(dataset.id(), datatype.id(), memory.id(), file.id(), H5P_DEFAULT, buffer))
            }
        }
        .map(|_| ())
    }

    /// Fails unless all values of the attribute, or the selected elements of the dataset, take exactly `bytes` bytes of
    /// memory as values of the type `datatype`, and this type is free of pointers and references.
    fn check(&self, datatype: &Datatype, bytes: usize) -> Result<()> {
        let needed = self.count()?.checked_mul(datatype.size());
        if needed != Some(bytes) || has_pointers(datatype)? {
            return Err(Error::usage(format!("a buffer of {bytes} bytes does not fit {} HDF5 values", self.count()?)));
        }
        Ok(())
    }
}

/// Whether values of an HDF5 type are or contain addresses in memory, as strings and sequences of variable length do.
/// References count as well.
fn has_pointers(datatype: &Datatype) -> Result<bool> {
    let has = |class: H5T_class_t| -> Result<bool> { Ok(call!(h5t::H5Tdetect_class(datatype.id(), class)).h5()? > 0) };
    if has(H5T_class_t::H5T_VLEN)? || has(H5T_class_t::H5T_REFERENCE)? {
        return Ok(true);
    }
    // a variable-length string counts as a string, not as variable-length
    match class(datatype) {
        H5T_class_t::H5T_STRING => Ok(call!(h5t::H5Tis_variable_str(datatype.id())).h5()? > 0),
        _ if !has(H5T_class_t::H5T_STRING)? => Ok(false),
        H5T_class_t::H5T_COMPOUND => {
            for member in 0..call!(h5t::H5Tget_nmembers(datatype.id())).h5()? {
                let member = create!(Datatype, h5t::H5Tget_member_type(datatype.id(), member as c_uint)).h5()?;
                if has_pointers(&member)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        H5T_class_t::H5T_ARRAY => has_pointers(&create!(Datatype, h5t::H5Tget_super(datatype.id())).h5()?),
        _ => Ok(true),
    }
}

/// Reads the values of `target`, an attribute or selected elements of a dataset, into `out`, converted to the type
/// `datatype`, whose size is fixed. `out` must have exactly the size of all values.
pub(super) fn read(target: &Target<'_>, datatype: &Datatype, out: &mut [u8]) -> Result<()> {
    target.check(datatype, out.len())?;
    // SAFETY: the length was checked above
    unsafe { target.read(datatype, out.as_mut_ptr().cast()) }.h5()
}

/// Writes `bytes`, values of the type `datatype` with a fixed size, to `target`: an attribute or selected elements of a
/// dataset. `bytes` must have exactly the size of all values.
pub(super) fn write(target: &Target<'_>, datatype: &Datatype, bytes: &[u8]) -> Result<()> {
    target.check(datatype, bytes.len())?;
    // SAFETY: the length was checked above
    unsafe { target.write(datatype, bytes.as_ptr().cast()) }.h5()
}

/// Reads the strings of `target`, an attribute or selected elements of a dataset, stored as `datatype` with a variable
/// or fixed length. Appends them to `out` without padding.
pub(super) fn read_strings(target: &Target<'_>, datatype: &Datatype, out: &mut Vec<BString>) -> Result<()> {
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
    // the static library has no deprecated calls, HDF5 1.10 not the new one
    #[cfg(not(feature = "static-hdf5"))]
    #[allow(deprecated)]
    use hdf5_sys::h5d::H5Dvlen_reclaim as reclaim;
    #[cfg(feature = "static-hdf5")]
    use hdf5_sys::h5t::H5Treclaim as reclaim;
    // the pointers are null or were allocated by libhdf5 in the call above, and are not used after this
    let _ = call!(reclaim(datatype.id(), memory.id(), H5P_DEFAULT, pointers.as_mut_ptr().cast()));
    read.h5()
}

fn unpadded(bytes: &[u8], padding: H5T_str_t) -> &[u8] {
    let pad = if padding == H5T_str_t::H5T_STR_SPACEPAD { b' ' } else { 0 };
    match padding {
        H5T_str_t::H5T_STR_NULLTERM => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
        _ => &bytes[..bytes.iter().rposition(|&byte| byte != pad).map_or(0, |last| last + 1)],
    }
}

/// Strings in the form that libhdf5 needs to write them: one buffer for all, each string terminated by NUL.
pub(super) struct Strings {
    text: Vec<u8>,
    starts: Vec<usize>,
}

impl Strings {
    /// Copies strings into one buffer, each terminated by NUL, as libhdf5 needs them.
    ///
    /// # Errors
    /// `Usage` if a string contains NUL or is not UTF-8.
    pub(super) fn new(strings: &[BString]) -> Result<Self> {
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

/// Writes `strings` to `target`, an attribute or selected elements of a dataset, as strings of variable length, marked
/// with the character set `charset`.
pub(super) fn write_strings(target: &Target<'_>, charset: Charset, strings: &Strings) -> Result<()> {
    let pointers: Vec<*const u8> = strings.starts.iter().map(|&start| strings.text[start..].as_ptr()).collect();
    if pointers.len() != target.count()? {
        return Err(Error::usage(format!("{} strings were given, expected {}", pointers.len(), target.count()?)));
    }
    let datatype = string_type(charset)?;
    // SAFETY: one pointer per value, each to a NUL-terminated string that outlives the call
    unsafe { target.write(&datatype, pointers.as_ptr().cast()) }.h5()
}

/// The type of the elements of a dataset or attribute: the HDF5 handle, and a description in Rust.
pub(super) struct StoredType {
    // the two belong together: what is read as the one is decoded as the other
    datatype: Datatype,
    element: AnyType,
}

impl StoredType {
    /// Describes in Rust the HDF5 type `datatype`: the type in the file of the elements of a dataset or attribute, or a
    /// committed type. The result holds both the handle and the description.
    pub(super) fn new(datatype: Datatype) -> Result<Self> {
        let element = any_type(&datatype, 0)?;
        Ok(StoredType { datatype, element })
    }

    pub(super) fn element(&self) -> &AnyType {
        &self.element
    }
}

/// Describes an HDF5 type in Rust; `depth` is the number of types that enclose it, which is limited.
fn any_type(datatype: &Datatype, depth: usize) -> Result<AnyType> {
    if depth > MAX_NESTED_TYPES {
        return Err(Error::limit(format!("types are nested too deeply: the limit is {MAX_NESTED_TYPES} levels")));
    }
    let id = datatype.id();
    let size = datatype.size();
    let base = || -> Result<_> { Ok(Box::new(any_type(&create!(Datatype, h5t::H5Tget_super(id)).h5()?, depth + 1)?)) };
    let class = match class(datatype) {
        H5T_class_t::H5T_INTEGER => AnyClass::Integer(integer_layout(datatype)?),
        H5T_class_t::H5T_BITFIELD => AnyClass::Bits(integer_layout(datatype)?),
        H5T_class_t::H5T_FLOAT => AnyClass::Float(float_layout(datatype)?),
        H5T_class_t::H5T_TIME => AnyClass::Time,
        H5T_class_t::H5T_STRING => AnyClass::Text {
            // SAFETY: the lock is held and the identifier is live
            charset: sync(|| unsafe { h5t::H5Tget_cset(id) }) as i32,
            // SAFETY: as above
            padding: match sync(|| unsafe { h5t::H5Tget_strpad(id) }) {
                H5T_str_t::H5T_STR_NULLTERM => Padding::Terminated,
                H5T_str_t::H5T_STR_NULLPAD => Padding::Nul,
                H5T_str_t::H5T_STR_SPACEPAD => Padding::Space,
                other => Padding::Other(other as i32),
            },
            variable: call!(h5t::H5Tis_variable_str(id)).h5()? > 0,
        },
        H5T_class_t::H5T_OPAQUE => {
            // SAFETY: the lock is held and the identifier is live
            let tag = sync(|| unsafe { owned_text(h5t::H5Tget_tag(id)) });
            AnyClass::Opaque { tag: tag.unwrap_or_default() }
        }
        H5T_class_t::H5T_COMPOUND => {
            let count = call!(h5t::H5Tget_nmembers(id)).h5()?;
            let member = |number: c_uint| -> Result<AnyMember> {
                let element = create!(Datatype, h5t::H5Tget_member_type(id, number)).h5()?;
                // SAFETY: the lock is held and the identifier is live
                let offset = sync(|| unsafe { h5t::H5Tget_member_offset(id, number) });
                Ok(AnyMember { name: member_name(datatype, number)?, offset, element: any_type(&element, depth + 1)? })
            };
            let members = (0..count as c_uint).map(member).collect::<Result<Vec<_>>>()?;
            if members.iter().any(|member| member.offset.saturating_add(member.element.size) > size) {
                return Err(Error::format("a compound type whose members lie beyond its end"));
            }
            AnyClass::Compound(members)
        }
        H5T_class_t::H5T_REFERENCE => {
            let is = |kind| -> Result<bool> { Ok(call!(h5t::H5Tequal(id, kind)).h5()? > 0) };
            AnyClass::Reference(match () {
                () if is(*H5T_STD_REF_OBJ)? => ReferenceKind::Object,
                () if is(*H5T_STD_REF_DSETREG)? => ReferenceKind::Region,
                () => ReferenceKind::Newer,
            })
        }
        H5T_class_t::H5T_ENUM => {
            let count = call!(h5t::H5Tget_nmembers(id)).h5()?;
            let member = |number: c_uint| -> Result<(String, Vec<u8>)> {
                // the value has the bytes of an element
                let mut value = vec![0u8; size];
                call!(h5t::H5Tget_member_value(id, number, value.as_mut_ptr().cast())).h5()?;
                Ok((member_name(datatype, number)?, value))
            };
            let members = (0..count as c_uint).map(member).collect::<Result<_>>()?;
            AnyClass::Enum { base: base()?, members }
        }
        H5T_class_t::H5T_VLEN => AnyClass::Sequence(base()?),
        H5T_class_t::H5T_ARRAY => {
            let axes = call!(h5t::H5Tget_array_ndims(id)).h5()?;
            let mut extents = vec![0; axes as usize];
            call!(h5t::H5Tget_array_dims2(id, extents.as_mut_ptr())).h5()?;
            let element = base()?;
            let bytes = extents.iter().try_fold(element.size as u64, |bytes, &extent| bytes.checked_mul(extent));
            if bytes != Some(size as u64) {
                return Err(Error::format(format!(
                    "the array type has {size} bytes, which do not match its extents {extents:?}"
                )));
            }
            AnyClass::Array { extents, element }
        }
        // since HDF5 2
        other if other as i32 == 11 => {
            let part = base()?;
            if part.size.checked_mul(2) != Some(size) {
                return Err(Error::format("a complex type that is not two numbers"));
            }
            AnyClass::Complex(part)
        }
        other => AnyClass::Unknown(other as i32),
    };
    Ok(AnyType { size, class })
}

/// Copies the text at `text`, which libhdf5 allocated, and frees it; `None` for a null pointer.
///
/// # Safety
/// The lock is held; `text` is null or ends with NUL, and is used no more.
unsafe fn owned_text(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as this function demands
    let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: as this function demands
    unsafe { h5::H5free_memory(text.cast()) };
    Some(owned)
}

/// The name of the member with this number (from 0) of a compound or an enumeration.
fn member_name(datatype: &Datatype, number: c_uint) -> Result<String> {
    // SAFETY: the lock is held and the identifier is live
    let name = sync(|| unsafe { owned_text(h5t::H5Tget_member_name(datatype.id(), number)) });
    name.ok_or_else(|| Error::format("a member without a name"))
}

fn order(datatype: &Datatype) -> Order {
    // SAFETY: the lock is held and the identifier is live
    match sync(|| unsafe { h5t::H5Tget_order(datatype.id()) }) as i32 {
        0 => Order::Little,
        1 => Order::Big,
        other => Order::Other(other),
    }
}

fn integer_layout(datatype: &Datatype) -> Result<IntegerLayout> {
    let id = datatype.id();
    // SAFETY: the lock is held and the identifier is live
    let (sign, precision) = sync(|| unsafe { (h5t::H5Tget_sign(id), h5t::H5Tget_precision(id)) });
    let shift = call!(h5t::H5Tget_offset(id)).h5()? as usize;
    if precision == 0 || precision.saturating_add(shift) > 8 * datatype.size() {
        return Err(Error::format(format!(
            "an integer of {precision} bits does not fit its {} bytes",
            datatype.size()
        )));
    }
    let signed = sign == h5t::H5T_sign_t::H5T_SGN_2;
    Ok(IntegerLayout { order: order(datatype), signed, precision, shift })
}

fn float_layout(datatype: &Datatype) -> Result<FloatLayout> {
    let id = datatype.id();
    let [mut sign, mut exponent, mut exponent_bits, mut mantissa, mut mantissa_bits] = [0; 5];
    call!(h5t::H5Tget_fields(id, &mut sign, &mut exponent, &mut exponent_bits, &mut mantissa, &mut mantissa_bits))
        .h5()?;
    // SAFETY: the lock is held and the identifier is live
    let (bias, norm) = sync(|| unsafe { (h5t::H5Tget_ebias(id), h5t::H5Tget_norm(id)) });
    let bits = 8 * datatype.size();
    if sign >= bits || exponent.saturating_add(exponent_bits) > bits || mantissa.saturating_add(mantissa_bits) > bits {
        return Err(Error::format(format!("the parts of a floating-point number lie beyond its {bits} bits")));
    }
    Ok(FloatLayout {
        order: order(datatype),
        sign,
        exponent,
        exponent_bits,
        mantissa,
        mantissa_bits,
        bias: bias as u64,
        implied: norm == h5t::H5T_norm_t::H5T_NORM_IMPLIED,
    })
}

/// Largest number of bytes that the variable-length strings and sequences of one read may take; more is an error.
const MAX_SEQUENCE_BYTES: usize = 64 << 20;

/// The memory for the variable-length strings and sequences of one read, which libhdf5 allocates through a callback.
struct Arena {
    blocks: Vec<Vec<u64>>,
    bytes: usize,
    /// Whether an allocation was refused because it exceeded the limit of one read.
    full: bool,
}

/// The callback by which libhdf5 allocates memory for the strings and sequences that it reads (`H5MM_allocate_t`); null if the
/// limit of the arena is exceeded.
///
/// # Safety
/// `arena` is an [`Arena`] that nothing else uses during the call.
unsafe extern "C" fn allocate(size: usize, arena: *mut c_void) -> *mut c_void {
    // SAFETY: as this function demands
    let arena = unsafe { &mut *arena.cast::<Arena>() };
    if arena.bytes.saturating_add(size) > MAX_SEQUENCE_BYTES {
        arena.full = true;
        return ptr::null_mut();
    }
    arena.bytes += size;
    let mut block = vec![0u64; size.div_ceil(8).max(1)];
    let start = block.as_mut_ptr();
    // the elements of a vector stay where they are when the vector itself moves
    arena.blocks.push(block);
    start.cast()
}

/// The callback by which libhdf5 frees memory of strings and sequences (`H5MM_free_t`). It does nothing: all memory of one read
/// is freed at once, with its [`Arena`].
unsafe extern "C" fn keep_block(_: *mut c_void, _: *mut c_void) {}

/// Elements of any HDF5 type that were read into memory, with the strings and sequences they point to.
pub(super) struct AnyValues<'a> {
    stored: &'a StoredType,
    /// The bytes of the elements; pointers in them are null or lead into `memory`, which lives as long as this object.
    bytes: Vec<u8>,
    memory: PointerMemory,
}

/// The owner of the variable-length strings and sequences to which the elements that were read point.
enum PointerMemory {
    /// The elements do not contain pointers, so that no further memory is owned.
    None,
    /// The pointers of the elements lead into this memory, which is freed together with the elements.
    Arena { _arena: Box<Arena> },
    /// libhdf5 allocated the memory of strings and sequences that were read, and must free it, for which it needs the dataspace of the
    /// elements that were read.
    Library(Dataspace),
}

impl Drop for AnyValues<'_> {
    fn drop(&mut self) {
        let PointerMemory::Library(space) = &self.memory else { return };
        // the static library has no deprecated calls, HDF5 1.10 not the new one
        #[cfg(not(feature = "static-hdf5"))]
        #[allow(deprecated)]
        use hdf5_sys::h5d::H5Dvlen_reclaim as reclaim;
        #[cfg(feature = "static-hdf5")]
        use hdf5_sys::h5t::H5Treclaim as reclaim;
        // the pointers are null or were allocated by libhdf5, and are not used after this
        let _ = call!(reclaim(self.stored.datatype.id(), space.id(), H5P_DEFAULT, self.bytes.as_mut_ptr().cast()));
    }
}

impl AnyValues<'_> {
    /// Returns the bytes of the elements; only for types without pointers, because the memory that pointers lead to is
    /// freed.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Passes every element that was read to `visitor`.
    pub(super) fn visit(&self, visitor: &mut dyn Visitor) {
        for element in self.bytes.chunks_exact(self.stored.element.size.max(1)) {
            // SAFETY: libhdf5 has filled `bytes` with elements of the type that `element` describes; its pointers live
            unsafe { visit(&self.stored.element, element, visitor) };
        }
    }
}

/// Takes an element of the type `element` apart into its values and passes each to `visitor`.
///
/// # Safety
/// `bytes` is an element of the type, as libhdf5 has it in memory, and what its pointers lead to lives.
unsafe fn visit(element: &AnyType, bytes: &[u8], visitor: &mut dyn Visitor) {
    const WORD: usize = size_of::<usize>();
    let word = |at: usize| -> usize {
        bytes.get(at..at + WORD).and_then(|word| word.try_into().ok()).map_or(0, usize::from_ne_bytes)
    };
    match &element.class {
        AnyClass::Text { variable: true, .. } => {
            let pointer = ptr::with_exposed_provenance::<c_char>(word(0));
            // SAFETY: as this function demands; libhdf5 ends such strings with NUL
            let text = if pointer.is_null() { &[][..] } else { unsafe { CStr::from_ptr(pointer) }.to_bytes() };
            visitor.text(text);
        }
        AnyClass::Sequence(inner) => {
            // hvl_t: the number of elements, the address of the first
            let (count, pointer) = (word(0), ptr::with_exposed_provenance::<u8>(word(WORD)));
            visitor.begin();
            if count > 0 && !pointer.is_null() && inner.size > 0 {
                // SAFETY: as this function demands: libhdf5 has allocated that many elements there
                let elements = unsafe { slice::from_raw_parts(pointer, count * inner.size) };
                for bytes in elements.chunks_exact(inner.size) {
                    // SAFETY: an element of the sequence is one of its type
                    unsafe { visit(inner, bytes, visitor) };
                }
            }
            visitor.end();
        }
        AnyClass::Compound(members) => {
            visitor.begin();
            for member in members {
                let bytes = &bytes[member.offset..member.offset + member.element.size];
                // SAFETY: a member of the element
                unsafe { visit(&member.element, bytes, visitor) };
            }
            visitor.end();
        }
        AnyClass::Array { extents, element } => {
            // SAFETY: the array is the element
            unsafe { visit_array(extents, element, bytes, visitor) };
        }
        AnyClass::Complex(part) => {
            visitor.begin();
            for bytes in bytes.chunks_exact(part.size.max(1)) {
                visitor.fixed(part, bytes);
            }
            visitor.end();
        }
        AnyClass::Reference(kind) => visitor.reference(*kind, bytes),
        _ => visitor.fixed(element, bytes),
    }
}

/// Passes the elements of an array to `visitor` as nested lists, one level per axis; `extents` has the slowest axis first.
///
/// # Safety
/// As [`visit`], for each element of the array.
unsafe fn visit_array(extents: &[u64], element: &AnyType, bytes: &[u8], visitor: &mut dyn Visitor) {
    let Some((&extent, inner)) = extents.split_first() else {
        // SAFETY: without axes, the array is one element
        return unsafe { visit(element, bytes, visitor) };
    };
    visitor.begin();
    if extent > 0 && !bytes.is_empty() {
        for bytes in bytes.chunks_exact(bytes.len() / extent as usize) {
            // SAFETY: a part of the array
            unsafe { visit_array(inner, element, bytes, visitor) };
        }
    }
    visitor.end();
}

/// Reads all elements of an attribute, or the selected ones of a dataset, without conversion: `stored` is the type that they
/// have in the file.
pub(super) fn read_any<'a>(target: &Target<'_>, stored: &'a StoredType) -> Result<AnyValues<'a>> {
    let count = target.count()?;
    let bytes = count
        .checked_mul(stored.datatype.size())
        .ok_or_else(|| Error::format("the elements have 2^64 bytes or more"))?;
    if stored.element.is_opaque_to_us() {
        return Err(Error::unsupported("elements of this type are not decoded"));
    }
    let mut values = AnyValues { stored, bytes: vec![0u8; bytes], memory: PointerMemory::None };
    let buffer: *mut c_void = values.bytes.as_mut_ptr().cast();
    let has_pointers = stored.element.has_pointers();
    match target {
        Target::Dataset { dataset, memory, file } if has_pointers => {
            let transfer = create!(hdf5::PropertyList, h5p::H5Pcreate(*H5P_DATASET_XFER)).h5()?;
            let mut arena = Box::new(Arena { blocks: Vec::new(), bytes: 0, full: false });
            let info: *mut c_void = (&raw mut *arena).cast();
            call!(h5p::H5Pset_vlen_mem_manager(transfer.id(), Some(allocate), info, Some(keep_block), info)).h5()?;
            let (id, datatype) = (dataset.id(), stored.datatype.id());
            // the buffer was made for the elements of `memory`, and the arena outlives the call
            let read = call!(h5d::H5Dread(id, datatype, memory.id(), file.id(), transfer.id(), buffer));
            if arena.full {
                return Err(Error::limit(format!(
                    "strings or sequences of {count} elements have more than {MAX_SEQUENCE_BYTES} bytes"
                )));
            }
            read.h5()?;
            values.memory = PointerMemory::Arena { _arena: arena };
        }
        // SAFETY: the buffer was made for `count` elements of the type
        _ => unsafe { target.read(&stored.datatype, buffer) }.h5()?,
    }
    if let (Target::Attribute(attribute), true) = (target, has_pointers) {
        values.memory = PointerMemory::Library(attribute.space().h5()?);
    }
    Ok(values)
}

/// The C struct `H5FD_class_t` of HDF5 2: properties and callbacks of a file driver. libhdf5 checks its first field, the
/// version. Null pointers stand for callbacks that a driver lacks.
#[cfg(feature = "static-hdf5")]
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
    query: unsafe extern "C" fn(*const DriverFile, *mut std::ffi::c_ulong) -> c_int,
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

/// An open file of this program's own file driver: first the C struct `H5FD_t` of HDF5 2, which libhdf5 fills in, then the
/// driver's own fields.
#[cfg(feature = "static-hdf5")]
#[repr(C)]
struct DriverFile {
    driver: hid_t,
    class: *const DriverClass,
    number: std::ffi::c_ulong,
    access_flags: c_uint,
    features: std::ffi::c_ulong,
    max_address: u64,
    base_address: u64,
    threshold: u64,
    alignment: u64,
    is_paged: bool,
    source: Arc<dyn ReadAt>,
    /// The file descriptor of the source; -1 if it is not a file of the operating system.
    descriptor: c_int,
    len: u64,
    /// End of the addresses that libhdf5 uses in the file (EOA), in bytes.
    end: u64,
}

#[cfg(feature = "static-hdf5")]
thread_local! {
    /// The source of bytes of the file that this thread is opening, and its file descriptor or -1, for this program's file
    /// driver, to which libhdf5 cannot pass it; `None` at other times.
    static OPENING: std::cell::RefCell<Option<(Arc<dyn ReadAt>, c_int)>> = const { std::cell::RefCell::new(None) };
}

/// Opens for reading the HDF5 file whose bytes come from `source`; `name` appears only in messages.
#[cfg(feature = "static-hdf5")]
pub(super) fn open_source(name: &str, source: Arc<dyn ReadAt>, access: &FileAccess) -> Result<hdf5::File> {
    open_driven(&c_name(name)?, (source, -1), Mode::Read, access)
}

/// Opens for reading an HDF5 file to which another program appends (SWMR), or appended when it was killed: `source`, at `path`.
///
/// What libhdf5 has in memory of the file is shared with no other that this process opens. Of a shared dataset with a new
/// chunk libhdf5 would give zeros or other rows to all but one, without an error: `H5Drefresh` forgets the chunk index only of a dataset
/// that is open once.
#[cfg(feature = "static-hdf5")]
pub(super) fn open_live(path: &Path, source: FileSource, access: &FileAccess) -> Result<hdf5::File> {
    let descriptor = source.raw(0).map_or(-1, |raw| raw.file.as_raw_fd());
    open_driven(&c_path(path)?, (Arc::new(source), descriptor), Mode::ReadLive, access)
}

#[cfg(feature = "static-hdf5")]
fn open_driven(name: &CStr, source: (Arc<dyn ReadAt>, c_int), mode: Mode, access: &FileAccess) -> Result<hdf5::File> {
    register_codecs()?;
    let driver = source_driver()?;
    call!(h5p::H5Pset_driver(access.id(), driver, ptr::null())).h5()?;
    OPENING.set(Some(source));
    let opened = create!(hdf5::File, h5f::H5Fopen(name.as_ptr(), mode.flags(), access.id()));
    OPENING.set(None);
    opened.h5()
}

/// Always fails: the file driver that reads from a source exists only for the libhdf5 that the feature `static-hdf5` builds in.
#[cfg(not(feature = "static-hdf5"))]
pub(super) fn open_source(_name: &str, _source: Arc<dyn ReadAt>, _access: &FileAccess) -> Result<hdf5::File> {
    Err(Error::unsupported(
        "this program uses the machine's libhdf5: addresses need one with its own (feature `static-hdf5`)",
    ))
}

/// Opens for reading an HDF5 file to which another program appends (SWMR), or appended when it was killed. Those in one process with
/// the same driver share what libhdf5 has in memory of the file, and all but one would read wrong rows of new chunks: so the
/// second gets another driver, and the third is `Unsupported`.
#[cfg(not(feature = "static-hdf5"))]
pub(super) fn open_live(path: &Path, _source: FileSource, access: &FileAccess) -> Result<hdf5::File> {
    for is_second in [false, true] {
        if is_second {
            call!(h5p::H5Pset_fapl_log(access.id(), ptr::null(), 0, 0))?;
        }
        let opened = open_file(path, Mode::ReadLive, access)?;
        // with the lock a restarted writer would have to wait for all readers; file systems without locks are fine
        let _ = std::fs::File::from(descriptor(&opened)?).unlock();
        // others may have datasets open and no file
        if call!(h5f::H5Fget_obj_count(opened.id(), h5f::H5F_OBJ_ALL))? == 1 {
            return Ok(opened);
        }
    }
    Err(Error::unsupported(
        "this program uses the machine's libhdf5, with which a process can read a live file only twice at a time",
    ))
}

/// No driver of its own has a program that uses the machine's libhdf5.
#[cfg(not(feature = "static-hdf5"))]
fn source_driver() -> Result<hid_t> {
    Ok(h5i::H5I_INVALID_HID)
}

/// The identifier of the file driver by which libhdf5 reads from a [`ReadAt`]; the first call registers it.
#[cfg(feature = "static-hdf5")]
fn source_driver() -> Result<hid_t> {
    static DRIVER: OnceLock<Result<hid_t>> = OnceLock::new();
    let register = || -> Result<hid_t> {
        let class = DriverClass {
            version: 1,
            // of the numbers for programs that do not share their files' driver with others: 256 to 511
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
        call!(hdf5_sys::h5fd::H5FDregister((&raw const class).cast())).h5()
    };
    DRIVER.get_or_init(register).clone()
}

/// Callback of this program's file driver, `open`: opens the source of bytes that [`open_source`] has
/// prepared, as a file of the driver; null on failure.
///
/// # Safety
/// None of the arguments is used.
#[cfg(feature = "static-hdf5")]
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
            super::error::note_cause(Some(error));
            ptr::null_mut()
        }
        Err(_) => ptr::null_mut(),
    }
}

/// Callback of this program's file driver, `close`: closes a file; returns 0 on success, -1 on failure.
///
/// # Safety
/// `file` is of [`open_driver_file`] and used no more.
#[cfg(feature = "static-hdf5")]
unsafe extern "C" fn close_driver_file(file: *mut DriverFile) -> c_int {
    // SAFETY: as this function demands
    let file = unsafe { Box::from_raw(file) };
    // a panic must not unwind into C
    catch_unwind(std::panic::AssertUnwindSafe(|| drop(file))).map_or(-1, |()| 0)
}

/// Callback of this program's file driver, `cmp`: returns 0 if two files have the same source of
/// bytes, else -1 or 1 by the order of the sources' addresses in memory.
///
/// # Safety
/// Both are open files of this driver.
#[cfg(feature = "static-hdf5")]
unsafe extern "C" fn compare_driver_files(one: *const DriverFile, other: *const DriverFile) -> c_int {
    // SAFETY: as this function demands
    let (one, other) = unsafe { (&*one, &*other) };
    Arc::as_ptr(&one.source).addr().cmp(&Arc::as_ptr(&other.source).addr()) as c_int
}

/// Callback of this program's file driver, `query`: says that its files can be read while another process appends to them.
///
/// # Safety
/// `features` is null or can be written to; the file is not used.
#[cfg(feature = "static-hdf5")]
unsafe extern "C" fn driver_features(_: *const DriverFile, features: *mut std::ffi::c_ulong) -> c_int {
    /// `H5FD_FEAT_SUPPORTS_SWMR_IO`
    const LIVE: std::ffi::c_ulong = 0x1000;
    if !features.is_null() {
        // SAFETY: as this function demands
        unsafe { *features = LIVE };
    }
    0
}

/// Callback of this program's file driver, `get_handle`: gives the place of the file descriptor, which is -1 for a source that
/// has none; returns 0.
///
/// # Safety
/// `file` is an open file of this driver, and `handle` can be written to.
#[cfg(feature = "static-hdf5")]
unsafe extern "C" fn driver_file_handle(file: *mut DriverFile, _: hid_t, handle: *mut *mut c_void) -> c_int {
    // SAFETY: as this function demands
    unsafe { *handle = (&raw mut (*file).descriptor).cast() };
    0
}

/// Callback of this program's file driver, `get_eoa`: returns the end of the addresses that libhdf5
/// uses in the file, in bytes.
///
/// # Safety
/// `file` is an open file of this driver.
#[cfg(feature = "static-hdf5")]
unsafe extern "C" fn driver_file_end(file: *const DriverFile, _: c_int) -> u64 {
    // SAFETY: as this function demands
    unsafe { (*file).end }
}

/// Callback of this program's file driver, `set_eoa`: sets the end of the addresses that libhdf5 uses
/// in the file, in bytes; returns 0.
///
/// # Safety
/// `file` is an open file of this driver, and nothing else uses it during the call.
#[cfg(feature = "static-hdf5")]
unsafe extern "C" fn set_driver_file_end(file: *mut DriverFile, _: c_int, end: u64) -> c_int {
    // SAFETY: as this function demands
    unsafe { (*file).end = end };
    0
}

/// Callback of this program's file driver, `get_eof`: returns the length of the file in bytes.
///
/// # Safety
/// `file` is an open file of this driver.
#[cfg(feature = "static-hdf5")]
unsafe extern "C" fn driver_file_len(file: *const DriverFile, _: c_int) -> u64 {
    // SAFETY: as this function demands
    unsafe { (*file).len }
}

/// Callback of this program's file driver, `read`: reads `count` bytes at `address`, an offset in bytes;
/// bytes after the end of the file are zeros, as in libhdf5's own drivers. Returns 0 on success, -1 on failure.
///
/// # Safety
/// `file` is an open file of this driver, and nothing else uses it during the call; `buffer` has `count` bytes.
#[cfg(feature = "static-hdf5")]
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
    match catch_unwind(std::panic::AssertUnwindSafe(read)) {
        Ok(Ok(())) => {
            super::error::note_cause(None);
            0
        }
        Ok(Err(error)) => {
            super::error::note_cause(Some(error));
            -1
        }
        Err(_) => -1,
    }
}

/// Callback of this program's file driver, `write`: always fails (returns -1), because the files of the
/// driver are read-only.
///
/// # Safety
/// None of the arguments is used.
#[cfg(feature = "static-hdf5")]
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
