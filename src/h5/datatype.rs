//! Maps casacore's element types to HDF5 types and back; no other module does. Types in files are
//! described as [`h5_read`] has them.
//!
//! | [`DataType`]            | created as                                | also recognised             |
//! |-------------------------|-------------------------------------------|-----------------------------|
//! | Bool                    | enum int8 {FALSE = 0, TRUE = 1}           | the same of uint8           |
//! | UChar … Int64           | STD_U8LE, I16LE, U16LE, I32LE, U32LE, I64LE | big-endian                |
//! | Float, Double           | IEEE_F32LE, IEEE_F64LE                    | big-endian                  |
//! | Complex, DComplex       | compound {r, i} of these, packed          | big-endian, unpacked        |
//! | String                  | variable-length UTF-8                     | ASCII, fixed length         |

use h5_read::{Bits, Charset, Class, Datatype, Float, Member, Padding, Reference, Text};

use super::StoredElement;
use crate::error::{Error, Result};
use crate::io::ByteOrder;
use crate::value::DataType;

/// Type as which elements are read; `Unsupported` with its name if casacore has none like it.
pub(super) fn recognise(datatype: &Datatype) -> Result<DataType> {
    Ok(match (&datatype.class, datatype.size) {
        _ if is_bool(datatype) => DataType::Bool,
        (Class::Integer { is_signed: false, .. }, 1) => DataType::UChar,
        (Class::Integer { is_signed: true, .. }, 2) => DataType::Short,
        (Class::Integer { is_signed: false, .. }, 2) => DataType::UShort,
        (Class::Integer { is_signed: true, .. }, 4) => DataType::Int,
        (Class::Integer { is_signed: false, .. }, 4) => DataType::UInt,
        (Class::Integer { is_signed: true, .. }, 8) => DataType::Int64,
        (Class::Float(_), 4) => DataType::Float,
        (Class::Float(_), 8) => DataType::Double,
        (Class::Compound(_), _) => match complex_parts(datatype, "r", "i") {
            Some([r, i]) if (r.datatype.size, i.datatype.size) == (4, 4) => DataType::Complex,
            Some([r, i]) if (r.datatype.size, i.datatype.size) == (8, 8) => DataType::DComplex,
            _ => return Err(unsupported(datatype)),
        },
        (Class::String(_) | Class::VariableString(_), _) => DataType::String,
        _ => return Err(unsupported(datatype)),
    })
}

/// Numbers of types that casacore lacks become Short or Int64, floating-point ones Double.
pub(super) fn nearest(datatype: &Datatype) -> Result<DataType> {
    recognise(datatype).or_else(|error| match (&datatype.class, datatype.size) {
        (Class::Integer { is_signed: true, .. }, 1) => Ok(DataType::Short),
        (Class::Integer { .. }, ..=8) => Ok(DataType::Int64),
        (Class::Float(_), _) => Ok(DataType::Double),
        _ => Err(error),
    })
}

pub(super) fn unsupported(datatype: &Datatype) -> Error {
    Error::unsupported(format!("HDF5 type {}, which no casacore type stands for", name(datatype)))
}

pub(super) fn is_bool(datatype: &Datatype) -> bool {
    let Class::Enum { values, .. } = &datatype.class else { return false };
    let values = values.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
    datatype.size == 1 && values.eq([(&b"FALSE"[..], &[0u8][..]), (b"TRUE", &[1])])
}

/// The members of a compound of two floating-point numbers with these names.
pub(super) fn complex_parts<'a>(datatype: &'a Datatype, real: &str, imaginary: &str) -> Option<[&'a Member; 2]> {
    let Class::Compound(members) = &datatype.class else { return None };
    let [r, i] = members.as_slice() else { return None };
    let is_part = |member: &Member, name: &str| {
        member.name == name.as_bytes()
            && matches!(member.datatype.class, Class::Float(_))
            && matches!(member.datatype.size, 4 | 8)
    };
    (is_part(r, real) && is_part(i, imaginary)).then_some([r, i])
}

pub(super) fn name(datatype: &Datatype) -> String {
    let (size, bits) = (datatype.size, 8 * u64::from(datatype.size));
    match &datatype.class {
        _ if is_bool(datatype) => "bool".to_owned(),
        Class::Integer { is_signed: true, .. } if matches!(size, 1 | 2 | 4 | 8) => format!("int{bits}"),
        Class::Integer { .. } if matches!(size, 1 | 2 | 4 | 8) => format!("uint{bits}"),
        Class::Integer { .. } => format!("an integer of {bits} bits"),
        Class::Float(_) => format!("float{bits}"),
        Class::Enum { base, .. } => format!("enum ({})", name(base)),
        Class::Compound(members) => format!("compound ({} fields)", members.len()),
        Class::Array { base, extents } => {
            extents.iter().rev().fold(name(base), |name, extent| format!("[{name}; {extent}]"))
        }
        Class::String(Text { charset: Charset::Ascii, .. }) => format!("string (len {size})"),
        Class::String(_) => format!("unicode (len {size})"),
        Class::VariableString(Text { charset: Charset::Ascii, .. }) => "string (var len)".to_owned(),
        Class::VariableString(_) => "unicode (var len)".to_owned(),
        Class::Sequence(base) => format!("[{}] (var len)", name(base)),
        Class::Reference(Reference::Object) => "reference (object)".to_owned(),
        Class::Reference(Reference::Region) => "reference (region)".to_owned(),
        Class::Reference(_) => "reference".to_owned(),
        Class::Opaque { .. } => format!("opaque ({size} bytes)"),
        Class::Bitfield { .. } => format!("a bit field of {bits} bits"),
        Class::Time { .. } => "time".to_owned(),
        Class::Complex(base) => format!("complex ({})", name(base)),
        _ => "of an unknown class".to_owned(),
    }
}

/// The type by which this program stores elements, with numbers in `order`; `None` for records.
fn standard(element: DataType, order: ByteOrder) -> Option<Datatype> {
    let element = match element {
        DataType::Bool => StoredElement::Bool,
        DataType::UChar => StoredElement::UInt(1),
        DataType::Short => StoredElement::Int(2),
        DataType::UShort => StoredElement::UInt(2),
        DataType::Int => StoredElement::Int(4),
        DataType::UInt => StoredElement::UInt(4),
        DataType::Int64 => StoredElement::Int(8),
        DataType::Float => StoredElement::Float(4),
        DataType::Double => StoredElement::Float(8),
        DataType::Complex => StoredElement::Complex(8),
        DataType::DComplex => StoredElement::Complex(16),
        DataType::String | DataType::Record => return None,
    };
    stored(&element, order)
}

/// Order of bytes in which the file has elements as memory has them, if that is all that differs.
pub(super) fn plain_order(datatype: &Datatype, element: DataType) -> Option<ByteOrder> {
    let orders = [ByteOrder::Little, ByteOrder::Big].into_iter();
    orders.into_iter().find(|&order| standard(element, order).as_ref() == Some(datatype))
}

/// Type with numbers in `order`, also for records; `None` for elements that HDF5 lacks.
pub(super) fn stored(element: &StoredElement, order: ByteOrder) -> Option<Datatype> {
    let text = |padding, charset| Class::String(Text { padding, charset });
    let (size, class) = match element {
        StoredElement::Bool => {
            let base = Box::new(integer(1, true, order)?);
            (1, Class::Enum { base, values: vec![(b"FALSE".to_vec(), vec![0]), (b"TRUE".to_vec(), vec![1])] })
        }
        StoredElement::Int(bytes) => return integer(*bytes, true, order),
        StoredElement::UInt(bytes) => return integer(*bytes, false, order),
        StoredElement::Float(bytes) => return float(*bytes, order),
        StoredElement::Complex(bytes) => {
            let part = float(bytes / 2, order)?;
            let member = |name: &str, offset| Member { name: name.into(), offset, datatype: part.clone() };
            (2 * part.size, Class::Compound(vec![member("r", 0), member("i", part.size)]))
        }
        StoredElement::Bytes(bytes) => (u32::try_from(*bytes).ok()?, text(Padding::Nul, Charset::Ascii)),
        StoredElement::Text(bytes) => (u32::try_from(*bytes).ok()?, text(Padding::Nul, Charset::Utf8)),
        StoredElement::Opaque(bytes) => (u32::try_from(*bytes).ok()?, Class::Opaque { tag: Vec::new() }),
        StoredElement::Record(members) => {
            let (mut size, mut all) = (0u32, Vec::new());
            for (name, member) in members {
                let datatype = stored(member, order)?;
                let end = size.checked_add(datatype.size)?;
                all.push(Member { name: name.clone().into(), offset: size, datatype });
                size = end;
            }
            (size, Class::Compound(all))
        }
        StoredElement::Array(extents, element) => {
            let base = Box::new(stored(element, order)?);
            let extents = extents.iter().map(|&extent| u32::try_from(extent).ok()).collect::<Option<Vec<_>>>()?;
            let size = extents.iter().try_fold(base.size, |size, &extent| size.checked_mul(extent))?;
            (size, Class::Array { base, extents })
        }
    };
    Some(Datatype { size, class })
}

fn integer(bytes: usize, is_signed: bool, order: ByteOrder) -> Option<Datatype> {
    let size = u32::try_from(bytes).ok().filter(|size| matches!(size, 1 | 2 | 4 | 8))?;
    let bits = Bits { offset: 0, precision: 8 * size as u16 };
    Some(Datatype { size, class: Class::Integer { order: of_file(order), is_signed, bits } })
}

fn float(bytes: usize, order: ByteOrder) -> Option<Datatype> {
    let size = u32::try_from(bytes).ok()?;
    Some(Datatype { size, class: Class::Float(Float::ieee(size, of_file(order))?) })
}

fn of_file(order: ByteOrder) -> h5_read::ByteOrder {
    match order {
        ByteOrder::Little => h5_read::ByteOrder::Little,
        ByteOrder::Big => h5_read::ByteOrder::Big,
    }
}
