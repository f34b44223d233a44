//! Elements as values, for dumps and for attributes: readers of many elements decode their bytes in
//! place. HDF5 File Format Specification 3.0, sections IV.A.2.d and VIII: the bytes of each class
//! of types.

use crate::bytes::Bytes;
use crate::datatype::{Bits, ByteOrder, Class, Datatype, Float, Normalization, Reference};
use crate::error::{Error, Result};
use crate::file::File;
use crate::global_heap::{EXTERNAL, GlobalHeap, HeapId, NEW_OBJECT, heap_id};

/// Most bytes of an integer that a value can have.
const INTEGER_BYTES: usize = 16;

/// An element.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// An integer of at most 16 bytes, signed.
    Integer(i128),
    /// An integer of 16 bytes that is not signed.
    Unsigned(u128),
    /// A floating-point number, rounded if it is more precise.
    Float(f64),
    /// A complex number: the real and the imaginary part.
    Complex(f64, f64),
    /// Text, without padding; it need not be UTF-8.
    Text(Vec<u8>),
    /// Bits, opaque bytes, times, and numbers too large for the other kinds, as in the file.
    Bytes(Vec<u8>),
    /// Values of the members of a compound, in the order of the type.
    Compound(Vec<Value>),
    /// Elements of an array, the last axis fastest, or of a sequence.
    List(Vec<Value>),
    /// A value of an enumeration, with its place in the type.
    Enum {
        /// `None` if the value has no name.
        place: Option<usize>,
        /// The value.
        value: Box<Value>,
    },
    /// A reference.
    Reference {
        /// Address of the object in the file; `None` if the reference was never set, or leads to
        /// another file.
        object: Option<u64>,
        /// Bytes that are not decoded: a selection, or the name of an attribute.
        rest: Vec<u8>,
    },
}

/// Decodes elements of a file.
#[derive(Debug)]
pub struct Values {
    file: File,
    heap: GlobalHeap,
    /// Bytes of values that may still be decoded.
    left: u64,
}

impl Values {
    /// A decoder of elements of `file`.
    pub fn new(file: &File) -> Self {
        Values { file: file.clone(), heap: GlobalHeap::new(file), left: 0 }
    }

    /// The elements in `bytes`, which are as the file has them.
    ///
    /// # Errors
    /// `Damaged` if a part in a heap is not as it should be; `Limit` if there are more values than
    /// [`Limits::chunk_bytes`](crate::Limits::chunk_bytes) allow; `Io`.
    pub fn elements(&mut self, datatype: &Datatype, bytes: &[u8]) -> Result<Vec<Value>> {
        self.left = self.file.limits().chunk_bytes;
        self.list(datatype, bytes)
    }

    fn list(&mut self, datatype: &Datatype, bytes: &[u8]) -> Result<Vec<Value>> {
        let elements = bytes.chunks_exact((datatype.size as usize).max(1));
        elements.map(|bytes| self.element(datatype, bytes)).collect()
    }

    fn element(&mut self, datatype: &Datatype, bytes: &[u8]) -> Result<Value> {
        self.spend(size_of::<Value>() + bytes.len())?;
        Ok(match &datatype.class {
            &Class::Integer { order, is_signed, bits } => integer(bytes, order, is_signed, bits),
            Class::Float(float) => number(bytes, float).map_or_else(|| Value::Bytes(bytes.to_vec()), Value::Float),
            Class::Complex(base) => complex(bytes, base),
            Class::String(text) => Value::Text(text.trim(bytes).to_vec()),
            Class::Time { .. } | Class::Bitfield { .. } | Class::Opaque { .. } => Value::Bytes(bytes.to_vec()),
            Class::Compound(members) => {
                let values = members.iter().map(|member| {
                    let place =
                        bytes.get(member.offset as usize..).and_then(|rest| rest.get(..member.datatype.size as usize));
                    self.element(
                        &member.datatype,
                        place.ok_or_else(|| Error::damaged("a member is beyond its compound"))?,
                    )
                });
                Value::Compound(values.collect::<Result<_>>()?)
            }
            Class::Enum { base, values } => Value::Enum {
                place: values.iter().position(|(_, value)| value == bytes),
                value: Box::new(self.element(base, bytes)?),
            },
            Class::Array { base, .. } => Value::List(self.list(base, bytes)?),
            Class::Sequence(base) => {
                let parts = self.heap.sequence(bytes, base.size)?.to_vec();
                Value::List(self.list(base, &parts)?)
            }
            Class::VariableString(text) => {
                let value = text.trim(self.heap.sequence(bytes, 1)?).to_vec();
                self.spend(value.len())?;
                Value::Text(value)
            }
            Class::Reference(reference) => self.reference(*reference, bytes)?,
        })
    }

    fn spend(&mut self, bytes: usize) -> Result<()> {
        let limit = self.file.limits().chunk_bytes;
        self.left = self
            .left
            .checked_sub(bytes as u64)
            .ok_or_else(|| Error::limit(format!("values have more than {limit} bytes, the limit of a chunk")))?;
        Ok(())
    }

    fn reference(&mut self, reference: Reference, bytes: &[u8]) -> Result<Value> {
        let mut fields = self.file.bytes("reference", 0, bytes);
        let Some(id) = heap_id(reference, fields.clone())? else {
            if reference == Reference::Object {
                let object = fields.address()?.filter(|&address| address != 0);
                return Ok(Value::Reference { object, rest: Vec::new() });
            }
            // an object of this file has its token here
            let is_here = reference != Reference::Region && fields.u8()? == NEW_OBJECT && fields.u8()? & EXTERNAL == 0;
            let object = if is_here { token(&mut fields)? } else { None };
            return Ok(Value::Reference { object, rest: Vec::new() });
        };
        let object = self.heap_object(id)?;
        let mut parts = self.file.bytes("object of a reference", 0, &object);
        let object = match reference {
            Reference::Region => parts.address()?,
            _ if bytes.get(1).is_some_and(|flags| flags & EXTERNAL != 0) => None,
            _ => token(&mut parts)?,
        };
        Ok(Value::Reference { object, rest: parts.rest().to_vec() })
    }

    fn heap_object(&mut self, id: HeapId) -> Result<Vec<u8>> {
        let object = self.heap.object(id)?.to_vec();
        self.spend(object.len())?;
        Ok(object)
    }
}

impl Datatype {
    /// The number in the bytes of an element, also of an enumeration: an integer or a
    /// floating-point number. `None` for other elements, and for numbers of more than 16 bytes.
    pub fn number(&self, bytes: &[u8]) -> Option<Value> {
        match &self.class {
            &Class::Integer { order, is_signed, bits } => {
                Some(integer(bytes, order, is_signed, bits)).filter(|value| !matches!(value, Value::Bytes(_)))
            }
            Class::Float(float) => number(bytes, float).map(Value::Float),
            Class::Enum { base, .. } if !matches!(base.class, Class::Enum { .. }) => base.number(bytes),
            _ => None,
        }
    }
}

/// A number of bytes and as many, which are an address in files.
fn token(fields: &mut Bytes<'_>) -> Result<Option<u64>> {
    let len = usize::from(fields.u8()?);
    let address = fields.clone().number(len.min(8))?;
    fields.skip(len)?;
    Ok(Some(address).filter(|_| len > 0))
}

/// The bytes of a number of at most 16 bytes, as a number.
fn word(bytes: &[u8], order: ByteOrder) -> Option<u128> {
    let mut word = [0; INTEGER_BYTES];
    let place = word.get_mut(..bytes.len())?;
    place.copy_from_slice(bytes);
    match order {
        ByteOrder::Little => {}
        ByteOrder::Big => place.reverse(),
        ByteOrder::Vax => {
            place.reverse();
            place.chunks_exact_mut(2).for_each(<[u8]>::reverse);
        }
    }
    Some(u128::from_le_bytes(word))
}

/// `len` bits of a number from bit `at` on.
fn bits_of(word: u128, at: u32, len: u32) -> u128 {
    let mask = 1u128.checked_shl(len).map_or(u128::MAX, |bit| bit - 1);
    word.checked_shr(at).unwrap_or(0) & mask
}

fn integer(bytes: &[u8], order: ByteOrder, is_signed: bool, bits: Bits) -> Value {
    let Some(word) = word(bytes, order) else { return Value::Bytes(bytes.to_vec()) };
    let value = bits_of(word, u32::from(bits.offset), u32::from(bits.precision));
    if is_signed {
        let unused = 128u32.saturating_sub(u32::from(bits.precision)).min(127);
        return Value::Integer((value << unused).cast_signed() >> unused);
    }
    i128::try_from(value).map_or(Value::Unsigned(value), Value::Integer)
}

fn complex(bytes: &[u8], base: &Datatype) -> Value {
    let parts = || {
        let Class::Float(float) = &base.class else { return None };
        let (real, imaginary) = bytes.split_at_checked(base.size as usize)?;
        Some(Value::Complex(number(real, float)?, number(imaginary, float)?))
    };
    parts().unwrap_or_else(|| Value::Bytes(bytes.to_vec()))
}

/// `None` if the number has more than 16 bytes.
fn number(bytes: &[u8], float: &Float) -> Option<f64> {
    let word = word(bytes, float.order)?;
    match bytes.len() {
        4 if float.is_ieee(4) => return Some(f64::from(f32::from_bits(word as u32))),
        8 if float.is_ieee(8) => return Some(f64::from_bits(word as u64)),
        _ => {}
    }
    let part = |(at, len): (u8, u8)| bits_of(word, u32::from(at), u32::from(len));
    let is_negative = part((float.sign, 1)) != 0;
    let (exponent, mantissa) = (part(float.exponent), part(float.mantissa));
    let (greatest, mantissa_bits) = (bits_of(u128::MAX, 0, u32::from(float.exponent.1)), i64::from(float.mantissa.1));
    let is_implied = float.normalization == Normalization::Implied;
    let fraction_bits = if is_implied { mantissa_bits } else { mantissa_bits - 1 };
    let power = i64::try_from(exponent).unwrap_or(i64::MAX).saturating_sub(i64::from(float.bias));
    let size = if exponent == greatest && float.order != ByteOrder::Vax && greatest > 0 {
        let fraction = bits_of(mantissa, 0, u32::try_from(fraction_bits).unwrap_or(0));
        if fraction == 0 { f64::INFINITY } else { f64::NAN }
    } else if exponent == 0 && float.order == ByteOrder::Vax {
        0.0
    } else {
        let power = if exponent == 0 { power.saturating_add(1) } else { power };
        let implied = if is_implied && exponent > 0 { 1u128.checked_shl(mantissa_bits as u32).unwrap_or(0) } else { 0 };
        scaled(mantissa | implied, power.saturating_sub(fraction_bits))
    };
    Some(if is_negative { -size } else { size })
}

/// `mantissa` times a power of two, rounded once.
fn scaled(mantissa: u128, power: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let end = (128 - i64::from(mantissa.leading_zeros())).saturating_add(power);
    if end > 1100 {
        return f64::INFINITY;
    }
    if end < -1100 {
        return 0.0;
    }
    // bits below the smallest number are rounded here, to even, as the conversion rounds the others
    let below = (-1074 - power).clamp(0, 127) as u32;
    let (mut kept, lost) = (mantissa >> below, bits_of(mantissa, 0, below));
    if below > 0 {
        let half = 1u128 << (below - 1);
        kept += u128::from(lost > half || lost == half && kept & 1 == 1);
    }
    let mut power = power + i64::from(below);
    let mut number = kept as f64;
    while power != 0 {
        let step = power.clamp(-1000, 1000);
        number *= f64::from_bits(((1023 + step) as u64) << 52);
        power -= step;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(size: u16, sign: u8, exponent: (u8, u8), mantissa: (u8, u8), bias: u32) -> Float {
        Float {
            order: ByteOrder::Little,
            bits: Bits { offset: 0, precision: 8 * size },
            sign,
            exponent,
            mantissa,
            bias,
            normalization: Normalization::Implied,
        }
    }

    #[test]
    fn integers_of_any_precision() {
        let part = Bits { offset: 4, precision: 12 };
        assert_eq!(integer(&[0x0f, 0xff], ByteOrder::Little, true, part), Value::Integer(-16));
        assert_eq!(integer(&[0xff, 0x0f], ByteOrder::Big, false, part), Value::Integer(0xff0));
        let whole = Bits { offset: 0, precision: 128 };
        assert_eq!(integer(&[0xff; 16], ByteOrder::Little, true, whole), Value::Integer(-1));
        assert_eq!(integer(&[0xff; 16], ByteOrder::Little, false, whole), Value::Unsigned(u128::MAX));
        assert_eq!(integer(&[1; 17], ByteOrder::Little, false, whole), Value::Bytes(vec![1; 17]));
    }

    #[test]
    fn numbers_of_any_layout() {
        let half = float(2, 15, (10, 5), (0, 10), 15);
        let halves = [(0x3c00, 1.0), (0xc100, -2.5), (0x7bff, 65504.0), (1, 2f64.powi(-24)), (0x7c00, f64::INFINITY)];
        for (bits, value) in halves {
            assert_eq!(number(&u16::to_le_bytes(bits), &half), Some(value));
        }
        assert!(number(&[1, 0x7c], &half).unwrap().is_nan());
        let double = float(8, 63, (52, 11), (0, 52), 1023);
        // a bias that IEEE 754 does not have, so that the general way is taken
        let doubled = Float { bias: 1022, ..double };
        for value in [1.0, -0.1, 8e307, f64::MIN_POSITIVE, 5e-324, 2.5e-310] {
            assert_eq!(number(&value.to_le_bytes(), &double), Some(value));
            assert_eq!(number(&value.to_le_bytes(), &doubled), Some(2.0 * value));
        }
        // half of the smallest number and more of it, rounded to even
        let halved = Float { bias: 1024, ..double };
        for (bits, rounded) in [(1, 0), (2, 1), (3, 2), (5, 2), (6, 3)] {
            assert_eq!(number(&u64::to_le_bytes(bits), &halved).map(f64::to_bits), Some(rounded));
        }
        let extended = Float { normalization: Normalization::None, ..float(16, 79, (64, 15), (0, 64), 16383) };
        let mut one_and_a_half = [0; 16];
        one_and_a_half[7..10].copy_from_slice(&[0xc0, 0xff, 0x3f]);
        assert_eq!(number(&one_and_a_half, &extended), Some(1.5));
        let vax = Float { order: ByteOrder::Vax, ..float(4, 31, (23, 8), (0, 23), 129) };
        assert_eq!(number(&[0x80, 0x40, 0, 0], &vax), Some(1.0));
        assert_eq!(number(&[0; 4], &vax), Some(0.0));
    }
}
