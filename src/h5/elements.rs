//! Converts elements from the bytes that a file has of them.

use bstr::BString;
use h5_read::{Class, Datatype, Value};

use super::existing::Texts;
use super::{StoredElement, datatype};
use crate::error::{Error, Result};
use crate::io::ByteOrder;
use crate::value::{Complex32, Complex64, DataType, Values};

/// `out` has the [recognised](datatype::recognise) or [nearest](datatype::nearest) type; texts of
/// variable length are in `texts`. `Unsupported` for a number that `out` cannot hold.
pub(super) fn append(stored: &Datatype, bytes: &[u8], texts: Option<&mut Texts<'_>>, out: &mut Values) -> Result<()> {
    if let Values::String(out) = out {
        return strings(stored, bytes, texts, out);
    }
    let element = out.data_type();
    if element == DataType::Bool {
        out.extend_from_bytes(bytes, ByteOrder::Little);
        return Ok(());
    }
    if let Some(order) = datatype::plain_order(stored, element) {
        out.extend_from_bytes(bytes, order);
        return Ok(());
    }
    let elements = bytes.chunks_exact((stored.size as usize).max(1));
    macro_rules! integers {
        ($v:ident) => {
            for bytes in elements {
                let fits = integer(stored, bytes)?.try_into();
                $v.push(fits.map_err(|_| Error::unsupported("the attribute has a number of 2^63 or more"))?);
            }
        };
    }
    match out {
        Values::UChar(v) => integers!(v),
        Values::Short(v) => integers!(v),
        Values::UShort(v) => integers!(v),
        Values::Int(v) => integers!(v),
        Values::UInt(v) => integers!(v),
        Values::Int64(v) => integers!(v),
        Values::Float(v) => {
            for bytes in elements {
                v.push(real32(stored, bytes)?);
            }
        }
        Values::Double(v) => {
            for bytes in elements {
                v.push(real(stored, bytes)?);
            }
        }
        Values::Complex(v) => {
            for bytes in elements {
                let [re, im] = parts(stored, bytes)?;
                v.push(Complex32::new(real32(re.0, re.1)?, real32(im.0, im.1)?));
            }
        }
        Values::DComplex(v) => {
            for bytes in elements {
                v.push(complex(stored, bytes)?);
            }
        }
        Values::Bool(_) | Values::String(_) | Values::Record(_) => return Err(Error::usage("HDF5 has no records")),
    }
    Ok(())
}

fn strings(stored: &Datatype, bytes: &[u8], texts: Option<&mut Texts<'_>>, out: &mut Vec<BString>) -> Result<()> {
    let mut elements = bytes.chunks_exact((stored.size as usize).max(1));
    match (&stored.class, texts) {
        (Class::String(text), _) => out.extend(elements.map(|element| BString::from(text.trim(element)))),
        (Class::VariableString(_), Some(texts)) => elements.try_for_each(|element| {
            out.push(texts.text(element)?.into());
            Ok::<_, Error>(())
        })?,
        _ => return Err(Error::usage("strings are asked for, HDF5 stores other elements")),
    }
    Ok(())
}

/// The integer in an element, also of an enumeration.
pub(super) fn integer(stored: &Datatype, bytes: &[u8]) -> Result<i128> {
    match stored.number(bytes) {
        Some(Value::Integer(number)) => Ok(number),
        _ => Err(datatype::unsupported(stored)),
    }
}

pub(super) fn real(stored: &Datatype, bytes: &[u8]) -> Result<f64> {
    match stored.number(bytes) {
        Some(Value::Float(number)) => Ok(number),
        _ => Err(datatype::unsupported(stored)),
    }
}

/// Keeps all bits of a number of IEEE 754, also of those that are none.
fn real32(stored: &Datatype, bytes: &[u8]) -> Result<f32> {
    match (&stored.class, bytes) {
        (Class::Float(float), &[a, b, c, d]) if float.is_ieee(4) => Ok(match float.order {
            h5_read::ByteOrder::Big => f32::from_be_bytes([a, b, c, d]),
            _ => f32::from_le_bytes([a, b, c, d]),
        }),
        _ => Ok(real(stored, bytes)? as f32),
    }
}

pub(super) fn complex(stored: &Datatype, bytes: &[u8]) -> Result<Complex64> {
    let [re, im] = parts(stored, bytes)?;
    Ok(Complex64::new(real(re.0, re.1)?, real(im.0, im.1)?))
}

/// Types and bytes of the members of a compound of two.
fn parts<'a>(stored: &'a Datatype, bytes: &'a [u8]) -> Result<[(&'a Datatype, &'a [u8]); 2]> {
    let Class::Compound(members) = &stored.class else { return Err(datatype::unsupported(stored)) };
    let [re, im] = members.as_slice() else { return Err(datatype::unsupported(stored)) };
    Ok([(&re.datatype, part(bytes, re)?), (&im.datatype, part(bytes, im)?)])
}

fn part<'a>(bytes: &'a [u8], member: &h5_read::Member) -> Result<&'a [u8]> {
    let part = bytes.get(member.offset as usize..).and_then(|rest| rest.get(..member.datatype.size as usize));
    part.ok_or_else(|| Error::format("a member is beyond its compound"))
}

impl StoredElement {
    /// `Unsupported` for elements of variable length, and others that this program does not write.
    pub(super) fn of(stored: &Datatype) -> Result<Self> {
        Self::recognised(stored).ok_or_else(|| datatype::unsupported(stored))
    }

    fn recognised(stored: &Datatype) -> Option<Self> {
        let size = stored.size as usize;
        Some(match &stored.class {
            _ if datatype::is_bool(stored) => StoredElement::Bool,
            Class::Integer { is_signed, .. } if matches!(size, 1 | 2 | 4 | 8) => {
                if *is_signed {
                    StoredElement::Int(size)
                } else {
                    StoredElement::UInt(size)
                }
            }
            Class::Float(float) if size != 2 || float.is_ieee(2) => {
                matches!(size, 2 | 4 | 8).then_some(StoredElement::Float(size))?
            }
            Class::String(text) if text.charset == h5_read::Charset::Ascii => StoredElement::Bytes(size),
            Class::String(_) => StoredElement::Text(size),
            Class::Opaque { .. } => StoredElement::Opaque(size),
            Class::Array { base, extents } => {
                let extents = extents.iter().map(|&extent| extent.into()).collect();
                StoredElement::Array(extents, Box::new(Self::recognised(base)?))
            }
            Class::Compound(members) => match datatype::complex_parts(stored, "r", "i") {
                Some([r, i]) if r.datatype.size == i.datatype.size => {
                    StoredElement::Complex(2 * r.datatype.size as usize)
                }
                _ => {
                    let member = |member: &h5_read::Member| {
                        let name = String::from_utf8_lossy(&member.name).into_owned();
                        Some((name, Self::recognised(&member.datatype)?))
                    };
                    StoredElement::Record(members.iter().map(member).collect::<Option<_>>()?)
                }
            },
            _ => return None,
        })
    }

    /// Bytes of an element in memory.
    pub(super) fn packed_bytes(&self) -> usize {
        match self {
            StoredElement::Bool => 1,
            StoredElement::Int(bytes)
            | StoredElement::UInt(bytes)
            | StoredElement::Float(bytes)
            | StoredElement::Complex(bytes)
            | StoredElement::Bytes(bytes)
            | StoredElement::Text(bytes)
            | StoredElement::Opaque(bytes) => *bytes,
            StoredElement::Record(members) => members.iter().map(|(_, member)| member.packed_bytes()).sum(),
            StoredElement::Array(extents, element) => {
                extents.iter().map(|&extent| extent as usize).product::<usize>() * element.packed_bytes()
            }
        }
    }

    /// Whether elements in a file lie as they do in memory.
    pub(super) fn is_stored_as(&self, stored: &Datatype) -> bool {
        datatype::stored(self, ByteOrder::Little).as_ref() == Some(stored)
    }

    /// Appends numbers little-endian, strings as stored, records packed; `stored` is their type,
    /// and this is [of](Self::of) it. `Unsupported` for a number that is not what its type says.
    pub(super) fn pack(&self, stored: &Datatype, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.is_stored_as(stored) {
            out.extend_from_slice(bytes);
            return Ok(());
        }
        bytes.chunks_exact((stored.size as usize).max(1)).try_for_each(|bytes| self.pack_one(stored, bytes, out))
    }

    fn pack_one(&self, stored: &Datatype, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match (self, &stored.class) {
            (StoredElement::Int(size) | StoredElement::UInt(size), _) => {
                out.extend_from_slice(&integer(stored, bytes)?.to_le_bytes()[..*size]);
            }
            (StoredElement::Float(8), _) => out.extend_from_slice(&real(stored, bytes)?.to_le_bytes()),
            (StoredElement::Float(4), _) => out.extend_from_slice(&real32(stored, bytes)?.to_le_bytes()),
            // the only other order of halves
            (StoredElement::Float(_), _) => out.extend(bytes.iter().rev()),
            (StoredElement::Complex(size), Class::Compound(members)) => {
                for member in members {
                    StoredElement::Float(size / 2).pack_one(&member.datatype, part(bytes, member)?, out)?;
                }
            }
            (StoredElement::Record(elements), Class::Compound(members)) => {
                for ((_, element), member) in elements.iter().zip(members) {
                    element.pack(&member.datatype, part(bytes, member)?, out)?;
                }
            }
            (StoredElement::Array(_, element), Class::Array { base, .. }) => element.pack(base, bytes, out)?,
            _ => out.extend_from_slice(bytes),
        }
        Ok(())
    }
}
