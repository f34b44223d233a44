//! Maps casacore's element types to HDF5 types and back; no other module does.
//!
//! | [`DataType`]            | created as                                | also recognised             |
//! |-------------------------|-------------------------------------------|-----------------------------|
//! | Bool                    | enum int8 {FALSE = 0, TRUE = 1}           | the same of uint8           |
//! | UChar … Int64           | STD_U8LE, I16LE, U16LE, I32LE, U32LE, I64LE | big-endian                |
//! | Float, Double           | IEEE_F32LE, IEEE_F64LE                    | big-endian                  |
//! | Complex, DComplex       | compound {r, i} of these, packed          | big-endian, unpacked        |
//! | String                  | variable-length UTF-8                     | ASCII, fixed length         |

use hdf5::Datatype;
use hdf5::types::{FloatSize, IntSize, TypeDescriptor};
use hdf5_sys::h5t::H5T_class_t;

use super::sys;
use crate::error::{Error, Result};
use crate::value::DataType;

pub(super) fn create(element: DataType) -> Result<Datatype> {
    match element {
        DataType::String => sys::string_type(sys::Charset::Utf8),
        _ => sys::number_type(element),
    }
}

/// Type as which elements are read.
///
/// # Errors
/// `Unsupported` with the name of the type if casacore has none like it.
pub(super) fn recognise(datatype: &Datatype) -> Result<DataType> {
    use TypeDescriptor as T;
    let descriptor = datatype.to_descriptor().map_err(|_| unsupported(datatype))?;
    Ok(match &descriptor {
        T::Boolean => DataType::Bool,
        T::Unsigned(IntSize::U1) => DataType::UChar,
        T::Integer(IntSize::U2) => DataType::Short,
        T::Unsigned(IntSize::U2) => DataType::UShort,
        T::Integer(IntSize::U4) => DataType::Int,
        T::Unsigned(IntSize::U4) => DataType::UInt,
        T::Integer(IntSize::U8) => DataType::Int64,
        T::Float(FloatSize::U4) => DataType::Float,
        T::Float(FloatSize::U8) => DataType::Double,
        T::Compound(compound) => match compound.fields.as_slice() {
            [r, i] if r.name == "r" && i.name == "i" => match (&r.ty, &i.ty) {
                (T::Float(FloatSize::U4), T::Float(FloatSize::U4)) => DataType::Complex,
                (T::Float(FloatSize::U8), T::Float(FloatSize::U8)) => DataType::DComplex,
                _ => return Err(unsupported(datatype)),
            },
            _ => return Err(unsupported(datatype)),
        },
        T::FixedAscii(_) | T::FixedUnicode(_) | T::VarLenAscii | T::VarLenUnicode => DataType::String,
        _ => return Err(unsupported(datatype)),
    })
}

/// The message names the type.
pub(super) fn unsupported(datatype: &Datatype) -> Error {
    Error::unsupported(format!("HDF5 type {}, which no casacore type stands for", name(datatype)))
}

/// Casacore lacks this type.
pub(super) fn is_uint64(datatype: &Datatype) -> bool {
    matches!(datatype.to_descriptor(), Ok(TypeDescriptor::Unsigned(IntSize::U8)))
}

pub(super) fn name(datatype: &Datatype) -> String {
    let bits = 8 * datatype.size();
    match (datatype.to_descriptor(), sys::class(datatype)) {
        (Ok(descriptor), _) => descriptor.to_string(),
        (Err(_), H5T_class_t::H5T_FLOAT) => format!("float{bits}"),
        (Err(_), H5T_class_t::H5T_INTEGER) => format!("an integer of {bits} bits"),
        (Err(_), class) => format!("class {class:?}"),
    }
}
