//! Makes the types of the elements that this program writes.

use std::ffi::c_uint;
use std::ptr;

use hdf5::Datatype;
use hdf5::globals::*;
use hdf5::sync::sync;
use hdf5_sys::h5t::{self, H5T_VARIABLE, H5T_class_t, H5T_cset_t, H5T_str_t};

use super::super::StoredElement;
use super::super::error::Hdf5Result;
use super::super::existing::converted;
use super::calls::c_name;
use crate::error::{Error, Result};
use crate::value::DataType;

/// Little-endian, in files and in this program's buffers.
pub(crate) fn number_type(element: DataType) -> Result<Datatype> {
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

/// Types of attributes, counters and dimension scales that no casacore type corresponds to.
#[derive(Clone, Copy)]
pub(crate) enum Foreign {
    Int8,
    UInt64,
    FloatBigEndian,
}

pub(crate) fn foreign_type(which: Foreign) -> Result<Datatype> {
    let standard = match which {
        Foreign::Int8 => *H5T_STD_I8LE,
        Foreign::UInt64 => *H5T_STD_U64LE,
        Foreign::FloatBigEndian => *H5T_IEEE_F32BE,
    };
    create!(Datatype, h5t::H5Tcopy(standard)).h5()
}

/// `element` must not be a record or an array.
pub(crate) fn simple_type(element: &StoredElement) -> Result<Datatype> {
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

/// Little-endian IEEE 754 numbers of 16 bits.
fn half_type() -> Result<Datatype> {
    let half = create!(Datatype, h5t::H5Tcopy(*H5T_IEEE_F32LE)).h5()?;
    // sign at bit 15, 5 bits of the exponent from bit 10 on, 10 bits of the mantissa
    call!(h5t::H5Tset_fields(half.id(), 15, 10, 5, 0, 10)).h5()?;
    call!(h5t::H5Tset_size(half.id(), 2)).h5()?;
    call!(h5t::H5Tset_ebias(half.id(), 15)).h5()?;
    Ok(half)
}

/// `enum int8 {FALSE = 0, TRUE = 1}`, as h5py writes its bool.
fn bool_type() -> Result<Datatype> {
    let bool = create!(Datatype, h5t::H5Tenum_create(*H5T_STD_I8LE)).h5()?;
    for (name, value) in [(c"FALSE", 0i8), (c"TRUE", 1)] {
        call!(h5t::H5Tenum_insert(bool.id(), name.as_ptr(), ptr::from_ref(&value).cast())).h5()?;
    }
    Ok(bool)
}

/// A packed compound `{r, i}`, as h5py writes it.
fn complex_type(element: DataType) -> Result<Datatype> {
    let size = element.size();
    let complex = create!(Datatype, h5t::H5Tcreate(H5T_class_t::H5T_COMPOUND, size)).h5()?;
    let part = if element == DataType::Complex { *H5T_IEEE_F32LE } else { *H5T_IEEE_F64LE };
    call!(h5t::H5Tinsert(complex.id(), c"r".as_ptr(), 0, part)).h5()?;
    call!(h5t::H5Tinsert(complex.id(), c"i".as_ptr(), size / 2, part)).h5()?;
    Ok(complex)
}

/// A packed compound of 32-bit signed integers.
pub(crate) fn int_record_type(names: &[&str]) -> Result<Datatype> {
    let record = create!(Datatype, h5t::H5Tcreate(H5T_class_t::H5T_COMPOUND, 4 * names.len())).h5()?;
    for (number, name) in names.iter().enumerate() {
        let name = c_name(name)?;
        call!(h5t::H5Tinsert(record.id(), name.as_ptr(), 4 * number, *H5T_STD_I32LE)).h5()?;
    }
    Ok(record)
}

/// A compound with these members, packed one after the other.
pub(crate) fn record_type(members: &[(&str, Datatype)]) -> Result<Datatype> {
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

pub(crate) fn array_type(element: &Datatype, extents: &[u64]) -> Result<Datatype> {
    create!(Datatype, h5t::H5Tarray_create2(element.id(), extents.len() as c_uint, extents.as_ptr())).h5()
}

/// The character set that HDF5 records for a string or a name; HDF5 converts nothing.
#[derive(Clone, Copy)]
pub(crate) enum Charset {
    Ascii,
    Utf8,
}

/// Variable-length strings; h5py stores Python's `str` as the type with UTF-8.
pub(crate) fn string_type(charset: Charset) -> Result<Datatype> {
    let string = create!(Datatype, h5t::H5Tcopy(*H5T_C_S1)).h5()?;
    call!(h5t::H5Tset_size(string.id(), H5T_VARIABLE)).h5()?;
    let charset = match charset {
        Charset::Ascii => H5T_cset_t::H5T_CSET_ASCII,
        Charset::Utf8 => H5T_cset_t::H5T_CSET_UTF8,
    };
    call!(h5t::H5Tset_cset(string.id(), charset)).h5()?;
    Ok(string)
}

/// UTF-8 strings of a fixed length, padded with NUL.
pub(crate) fn fixed_string_type(bytes: usize) -> Result<Datatype> {
    let string = create!(Datatype, h5t::H5Tcopy(*H5T_C_S1)).h5()?;
    call!(h5t::H5Tset_size(string.id(), bytes)).h5()?;
    call!(h5t::H5Tset_cset(string.id(), H5T_cset_t::H5T_CSET_UTF8)).h5()?;
    call!(h5t::H5Tset_strpad(string.id(), H5T_str_t::H5T_STR_NULLPAD)).h5()?;
    Ok(string)
}

pub(crate) fn class(datatype: &Datatype) -> H5T_class_t {
    // SAFETY: the lock is held and the identifier is live
    sync(|| unsafe { h5t::H5Tget_class(datatype.id()) })
}

/// `Unsupported` for a type that contains elements of variable length, except strings.
pub(crate) fn describe(datatype: &Datatype) -> Result<h5_read::Datatype> {
    let id = datatype.id();
    if class(datatype) == H5T_class_t::H5T_STRING && call!(h5t::H5Tis_variable_str(id)).h5()? > 0 {
        // SAFETY: the lock is held and the identifier is live
        let is_utf8 = sync(|| unsafe { h5t::H5Tget_cset(id) }) == H5T_cset_t::H5T_CSET_UTF8;
        let charset = if is_utf8 { h5_read::Charset::Utf8 } else { h5_read::Charset::Ascii };
        let text = h5_read::Text { padding: h5_read::Padding::NulTerminated, charset };
        return Ok(h5_read::Datatype { size: 16, class: h5_read::Class::VariableString(text) });
    }
    let mut bytes = 0;
    call!(h5t::H5Tencode(id, ptr::null_mut(), &raw mut bytes)).h5()?;
    let mut encoded = vec![0u8; bytes];
    call!(h5t::H5Tencode(id, encoded.as_mut_ptr().cast(), &raw mut bytes)).h5()?;
    // a number of messages, and a version, come first
    let message = encoded.get(2..).unwrap_or_default();
    h5_read::Datatype::from_message(message).map_err(|error| converted(&error))
}

/// Strings and sequences of variable length are addresses in memory; references count as well.
pub(super) fn has_pointers(datatype: &Datatype) -> Result<bool> {
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
