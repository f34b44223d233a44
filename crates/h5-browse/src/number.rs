//! Finds out which HDF5 types are numbers, and converts their bytes to one of numpy's types.

use ctds::error::{Error, Result};
use h5_read::{Bits, ByteOrder, Class, Datatype, Float, Normalization, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    UInt,
    Float,
    /// Two floating-point numbers, real part first.
    Complex,
}

/// A number type of numpy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) kind: Kind,
    /// Bytes: 1, 2, 4 or 8; 16 for extended (x87) and double-precision complex numbers, 32 for
    /// extended complex ones.
    pub(crate) size: usize,
    pub(crate) big_endian: bool,
}

/// How elements of an HDF5 type become numbers of a numpy type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) form: Form,
    /// HDF5 type to convert from, if bytes in the file differ from the numpy type's.
    convert: Option<Datatype>,
}

impl Form {
    /// `<f4`.
    pub(crate) fn dtype(self) -> String {
        let letter = match self.kind {
            Kind::Bool => return "|b1".to_owned(),
            Kind::Int => 'i',
            Kind::UInt => 'u',
            Kind::Float => 'f',
            Kind::Complex => 'c',
        };
        let order = match self.size {
            1 => '|',
            _ if self.big_endian => '>',
            _ => '<',
        };
        format!("{order}{letter}{}", self.size)
    }

    /// Half the element for complex numbers.
    pub(crate) fn part(self) -> usize {
        if self.kind == Kind::Complex { self.size / 2 } else { self.size }
    }

    /// The nearest type of JavaScript's typed arrays: little-endian, 32 or 64 bits if it is
    /// floating-point.
    pub(crate) fn safe(self) -> Self {
        let part = match self.kind {
            Kind::Float | Kind::Complex => self.part().clamp(4, 8),
            _ => self.size,
        };
        let size = if self.kind == Kind::Complex { 2 * part } else { part };
        Form { kind: self.kind, size, big_endian: false }
    }
}

/// An enumeration of FALSE and TRUE, as h5py writes Bools.
pub(crate) fn is_bool(element: &Datatype) -> bool {
    match &element.class {
        Class::Enum { values, .. } if element.size == 1 && values.len() == 2 => {
            let has = |name: &[u8], value: u8| values.iter().any(|member| member.0 == name && member.1 == [value]);
            has(b"FALSE", 0) && has(b"TRUE", 1)
        }
        _ => false,
    }
}

/// Also whether the file's bytes are those of the type; `None` if numpy has no such type.
fn integer(order: ByteOrder, signed: bool, bits: Bits, size: usize) -> Option<(Form, bool)> {
    let big_endian = is_big_endian(order, size)?;
    let kind = if signed { Kind::Int } else { Kind::UInt };
    let is_whole = usize::from(bits.precision) == 8 * size && bits.offset == 0;
    matches!(size, 1 | 2 | 4 | 8).then_some((Form { kind, size, big_endian }, is_whole))
}

fn is_big_endian(order: ByteOrder, size: usize) -> Option<bool> {
    match order {
        ByteOrder::Little => Some(false),
        ByteOrder::Big => Some(true),
        ByteOrder::Vax => (size == 1).then_some(false),
    }
}

/// x87's extended numbers in 16 bytes: numpy's long double.
fn extended(order: ByteOrder) -> Float {
    let (bits, normalization) = (Bits { offset: 0, precision: 80 }, Normalization::None);
    Float { order, bits, sign: 79, exponent: (64, 15), mantissa: (0, 64), bias: 16383, normalization }
}

/// Rounds to 64 bits.
pub(crate) fn decode_extended(bytes: &[u8], big_endian: bool) -> f64 {
    let order = if big_endian { ByteOrder::Big } else { ByteOrder::Little };
    decode_float(&Datatype { size: 16, class: Class::Float(extended(order)) }, bytes)
}

/// IEEE 754.
pub(crate) fn decode_half(bits: u16) -> f32 {
    let (sign, exponent, mantissa) = (u32::from(bits >> 15) << 31, bits >> 10 & 31, u32::from(bits & 0x3ff));
    match exponent {
        // 2^-24 for each
        0 => f32::from_bits(sign | (mantissa as f32 * f32::from_bits(103 << 23)).to_bits()),
        31 => f32::from_bits(sign | 0xff << 23 | mantissa << 13),
        _ => f32::from_bits(sign | (u32::from(exponent) + 112) << 23 | mantissa << 13),
    }
}

/// The smallest numpy type with all numbers of the layout, and whether the bytes in the file are
/// its own. Numbers too wide for 64 bits lose digits, except x87 extended ones; `None` for more
/// than 16 bytes and unusual byte orders.
fn float(layout: &Float, size: usize) -> Option<(Form, bool)> {
    let big_endian = is_big_endian(layout.order, size)?;
    let form = |size| Form { kind: Kind::Float, size, big_endian };
    let is_implied = layout.normalization == Normalization::Implied;
    let normalization = if is_implied { Normalization::Implied } else { Normalization::None };
    // extended numbers differ in whether padding counts as precision
    let is_extended = size == 16
        && Float { bits: Bits { offset: 0, precision: 80 }, normalization, ..*layout } == extended(layout.order);
    if is_extended || layout.is_ieee(size as u32) {
        return Some((form(size), true));
    }
    let mantissa_bits = layout.mantissa.1 - u8::from(!is_implied && layout.mantissa.1 > 0);
    let holds = |&bytes: &u32| {
        Float::ieee(bytes, layout.order)
            .is_some_and(|form| layout.exponent.1 <= form.exponent.1 && mantissa_bits <= form.mantissa.1)
    };
    // numbers wider than 64 bits lose digits
    (size <= 16).then(|| (form([2, 4, 8].into_iter().find(holds).unwrap_or(8) as usize), false))
}

impl Number {
    pub(crate) fn of(element: &Datatype) -> Option<Self> {
        let size = element.size as usize;
        let number =
            |(form, is_stored_so): (Form, bool)| Number { form, convert: (!is_stored_so).then(|| element.clone()) };
        match &element.class {
            &Class::Integer { order, is_signed, bits } => integer(order, is_signed, bits, size).map(number),
            &Class::Bitfield { order, bits } => integer(order, false, bits, size).map(number),
            Class::Float(layout) => float(layout, size).map(number),
            Class::Enum { .. } if is_bool(element) => {
                Some(number((Form { kind: Kind::Bool, size: 1, big_endian: false }, true)))
            }
            Class::Enum { base, .. } => {
                let base = Number::of(base)?;
                matches!(base.form.kind, Kind::Int | Kind::UInt).then_some(base)
            }
            Class::Complex(part) => complex(element, part, [0, part.size]),
            Class::Compound(members) => match &members[..] {
                [r, i] if r.name == b"r" && i.name == b"i" && r.datatype == i.datatype => {
                    complex(element, &r.datatype, [r.offset, i.offset])
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Converts bytes in the file to those of the numpy type.
    pub(crate) fn standard(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let Some(element) = &self.convert else { return Ok(bytes) };
        let size = (element.size as usize).max(1);
        let mut out = Vec::with_capacity(bytes.len() / size * self.form.size);
        for bytes in bytes.chunks_exact(size) {
            push_standard(element, bytes, self.form, &mut out)?;
        }
        Ok(out)
    }
}

/// `offsets` in bytes in an element; `None` if numpy has no complex type of such parts.
fn complex(element: &Datatype, part: &Datatype, offsets: [u32; 2]) -> Option<Number> {
    let Class::Float(layout) = &part.class else { return None };
    let (form, is_stored_so) = float(layout, part.size as usize)?;
    // numpy has no complex numbers of two halves
    if form.size < 4 {
        return None;
    }
    let is_packed = is_stored_so && offsets == [0, part.size] && element.size == 2 * part.size;
    let form = Form { kind: Kind::Complex, size: 2 * form.size, ..form };
    Some(Number { form, convert: (!is_packed).then(|| element.clone()) })
}

fn push_standard(element: &Datatype, bytes: &[u8], form: Form, out: &mut Vec<u8>) -> Result<()> {
    let mut push = |little: &[u8]| match form.big_endian {
        true => out.extend(little.iter().rev()),
        false => out.extend(little),
    };
    match &element.class {
        Class::Integer { .. } => push(&decode_integer(element, bytes).to_le_bytes()[..form.size]),
        &Class::Bitfield { order, bits } => {
            let class = Class::Integer { order, is_signed: false, bits };
            push(&decode_integer(&Datatype { size: element.size, class }, bytes).to_le_bytes()[..form.size]);
        }
        Class::Enum { base, .. } => push_standard(base, bytes, form, out)?,
        Class::Float(layout) => match form.size {
            2 => push(&half_of(decode_float(element, bytes)).to_le_bytes()),
            4 => push(&(decode_float(element, bytes) as f32).to_le_bytes()),
            8 => push(&decode_float(element, bytes).to_le_bytes()),
            _ if form.big_endian == (layout.order == ByteOrder::Big) => out.extend(bytes),
            _ => out.extend(bytes.iter().rev()),
        },
        Class::Complex(part) => {
            for bytes in bytes.chunks_exact((part.size as usize).max(1)) {
                push_standard(part, bytes, Form { kind: Kind::Float, size: form.size / 2, ..form }, out)?;
            }
        }
        Class::Compound(members) => {
            for member in members {
                let start = member.offset as usize;
                let bytes = bytes.get(start..start + member.datatype.size as usize).unwrap_or_default();
                push_standard(&member.datatype, bytes, Form { kind: Kind::Float, size: form.size / 2, ..form }, out)?;
            }
        }
        _ => return Err(Error::unsupported("elements that are not numbers")),
    }
    Ok(())
}

/// The integer has at most 16 bytes.
pub(crate) fn decode_integer(element: &Datatype, bytes: &[u8]) -> i128 {
    match element.number(bytes) {
        Some(Value::Integer(number)) => number,
        Some(Value::Unsigned(number)) => number.cast_signed(),
        _ => 0,
    }
}

/// The number has at most 16 bytes.
fn decode_float(element: &Datatype, bytes: &[u8]) -> f64 {
    match element.number(bytes) {
        Some(Value::Float(number)) => number,
        _ => f64::NAN,
    }
}

/// Only for values that half precision represents exactly.
fn half_of(number: f64) -> u16 {
    let bits = (number as f32).to_bits();
    let (sign, exponent, mantissa) = ((bits >> 16 & 0x8000) as u16, (bits >> 23 & 0xff) as i32 - 127, bits & 0x7f_ffff);
    match exponent {
        128 => sign | 0x7c00 | if mantissa != 0 { 0x200 } else { 0 },
        16.. => sign | 0x7c00,
        -14.. => sign | ((exponent + 15) as u16) << 10 | (mantissa >> 13) as u16,
        -24.. => sign | ((mantissa | 0x80_0000) >> (-1 - exponent)) as u16,
        _ => sign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_both_kinds() {
        // 1, 65504, the smallest, minus infinity
        for (bits, number) in
            [(0x3c00u16, 1.), (0x7bff, 65504.), (1, 5.960464477539063e-8), (0xfc00, f64::NEG_INFINITY)]
        {
            assert_eq!(half_of(number), bits);
            assert_eq!(f64::from(decode_half(bits)), number);
        }
    }

    #[test]
    fn extended_floats_decode() {
        assert_eq!(decode_extended(&(16384u128 << 64 | 1 << 63).to_be_bytes(), true), 2.);
        let number =
            |exponent: u128, mantissa: u128| decode_extended(&(exponent << 64 | mantissa).to_le_bytes(), false);
        assert_eq!(number(16383, 1 << 63), 1.);
        assert_eq!(number(16383 + 0x8000, 3 << 62), -1.5);
        assert_eq!(number(0, 0), 0.);
        assert_eq!(number(0x7fff, 1 << 63), f64::INFINITY);
        assert!(number(0x7fff, 3 << 62).is_nan());
        for precision in [80, 128] {
            let layout = Float { bits: Bits { offset: 0, precision }, ..extended(ByteOrder::Little) };
            assert_eq!(float(&layout, 16).map(|found| (found.0.size, found.1)), Some((16, true)));
        }
    }
}
