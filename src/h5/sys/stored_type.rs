//! The types of elements of any file, and their descriptions in Rust.

use std::ffi::{CStr, c_char, c_uint};

use hdf5::Datatype;
use hdf5::globals::{H5T_STD_REF_DSETREG, H5T_STD_REF_OBJ};
use hdf5::sync::sync;
use hdf5_sys::h5;
use hdf5_sys::h5t::{self, H5T_class_t, H5T_str_t};

use super::super::any_type::{
    AnyClass, AnyMember, AnyType, FloatLayout, IntegerLayout, MAX_NESTED_TYPES, Order, Padding, ReferenceKind,
};
use super::super::error::Hdf5Result;
use super::datatype::class;
use crate::error::{Error, Result};

/// The HDF5 handle of a type, and its description.
pub(crate) struct StoredType {
    // the two belong together: what is read as the one is decoded as the other
    pub(super) datatype: Datatype,
    pub(super) element: AnyType,
}

impl StoredType {
    /// Describes the type in the file of the elements of a dataset or attribute, or a committed
    /// type.
    pub(crate) fn new(datatype: Datatype) -> Result<Self> {
        let element = any_type(&datatype, 0)?;
        Ok(StoredType { datatype, element })
    }

    pub(crate) fn element(&self) -> &AnyType {
        &self.element
    }
}

/// `depth` is the number of types that enclose this one, which is limited.
fn any_type(datatype: &Datatype, depth: usize) -> Result<AnyType> {
    if depth > MAX_NESTED_TYPES {
        return Err(Error::limit(format!("types are nested too deeply: the limit is {MAX_NESTED_TYPES} levels")));
    }
    let id = datatype.id();
    let size = datatype.size();
    let base = || base_type(datatype, depth);
    let class = match class(datatype) {
        H5T_class_t::H5T_INTEGER => AnyClass::Integer(integer_layout(datatype)?),
        H5T_class_t::H5T_BITFIELD => AnyClass::Bits(integer_layout(datatype)?),
        H5T_class_t::H5T_FLOAT => AnyClass::Float(float_layout(datatype)?),
        H5T_class_t::H5T_TIME => AnyClass::Time,
        H5T_class_t::H5T_STRING => text_class(datatype)?,
        H5T_class_t::H5T_OPAQUE => {
            // SAFETY: the lock is held and the identifier is live
            let tag = sync(|| unsafe { owned_text(h5t::H5Tget_tag(id)) });
            AnyClass::Opaque { tag: tag.unwrap_or_default() }
        }
        H5T_class_t::H5T_COMPOUND => compound_class(datatype, depth)?,
        H5T_class_t::H5T_REFERENCE => AnyClass::Reference(reference_kind(datatype)?),
        H5T_class_t::H5T_ENUM => AnyClass::Enum { members: enum_members(datatype)?, base: base()? },
        H5T_class_t::H5T_VLEN => AnyClass::Sequence(base()?),
        H5T_class_t::H5T_ARRAY => array_class(datatype, depth)?,
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

/// The type of which an array, enumeration, sequence or complex number consists.
fn base_type(datatype: &Datatype, depth: usize) -> Result<Box<AnyType>> {
    Ok(Box::new(any_type(&create!(Datatype, h5t::H5Tget_super(datatype.id())).h5()?, depth + 1)?))
}

fn text_class(datatype: &Datatype) -> Result<AnyClass> {
    let id = datatype.id();
    // SAFETY: the lock is held and the identifier is live
    let (charset, padding) = sync(|| unsafe { (h5t::H5Tget_cset(id), h5t::H5Tget_strpad(id)) });
    let padding = match padding {
        H5T_str_t::H5T_STR_NULLTERM => Padding::Terminated,
        H5T_str_t::H5T_STR_NULLPAD => Padding::Nul,
        H5T_str_t::H5T_STR_SPACEPAD => Padding::Space,
        other => Padding::Other(other as i32),
    };
    let variable = call!(h5t::H5Tis_variable_str(id)).h5()? > 0;
    Ok(AnyClass::Text { charset: charset as i32, padding, variable })
}

fn compound_class(datatype: &Datatype, depth: usize) -> Result<AnyClass> {
    let id = datatype.id();
    let count = call!(h5t::H5Tget_nmembers(id)).h5()?;
    let member = |number: c_uint| -> Result<AnyMember> {
        let element = create!(Datatype, h5t::H5Tget_member_type(id, number)).h5()?;
        // SAFETY: the lock is held and the identifier is live
        let offset = sync(|| unsafe { h5t::H5Tget_member_offset(id, number) });
        Ok(AnyMember { name: member_name(datatype, number)?, offset, element: any_type(&element, depth + 1)? })
    };
    let members = (0..count as c_uint).map(member).collect::<Result<Vec<_>>>()?;
    if members.iter().any(|member| member.offset.saturating_add(member.element.size) > datatype.size()) {
        return Err(Error::format("a compound type whose members lie beyond its end"));
    }
    Ok(AnyClass::Compound(members))
}

fn reference_kind(datatype: &Datatype) -> Result<ReferenceKind> {
    let is = |kind| -> Result<bool> { Ok(call!(h5t::H5Tequal(datatype.id(), kind)).h5()? > 0) };
    Ok(match () {
        () if is(*H5T_STD_REF_OBJ)? => ReferenceKind::Object,
        () if is(*H5T_STD_REF_DSETREG)? => ReferenceKind::Region,
        () => ReferenceKind::Newer,
    })
}

/// The names, each with the bytes of an element that has its value.
fn enum_members(datatype: &Datatype) -> Result<Vec<(String, Vec<u8>)>> {
    let id = datatype.id();
    let member = |number: c_uint| -> Result<(String, Vec<u8>)> {
        let mut value = vec![0u8; datatype.size()];
        call!(h5t::H5Tget_member_value(id, number, value.as_mut_ptr().cast())).h5()?;
        Ok((member_name(datatype, number)?, value))
    };
    (0..call!(h5t::H5Tget_nmembers(id)).h5()? as c_uint).map(member).collect()
}

fn array_class(datatype: &Datatype, depth: usize) -> Result<AnyClass> {
    let (id, size) = (datatype.id(), datatype.size());
    let axes = call!(h5t::H5Tget_array_ndims(id)).h5()?;
    let mut extents = vec![0; axes as usize];
    call!(h5t::H5Tget_array_dims2(id, extents.as_mut_ptr())).h5()?;
    let element = base_type(datatype, depth)?;
    let bytes = extents.iter().try_fold(element.size as u64, |bytes, &extent| bytes.checked_mul(extent));
    if bytes != Some(size as u64) {
        return Err(Error::format(format!(
            "the array type has {size} bytes, which do not match its extents {extents:?}"
        )));
    }
    Ok(AnyClass::Array { extents, element })
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

/// The name of a member of a compound or an enumeration.
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
