//! Finds out which HDF5 types are numbers, and converts their bytes to one of numpy's types.

use crate::error::{Error, Result};
use crate::h5::{AnyClass, AnyType, FloatLayout, IntegerLayout, Order};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    UInt,
    Float,
    /// Two floating-point numbers, real part first.
    Complex,
}

/// A number type of numpy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) kind: Kind,
    /// Bytes: 1, 2, 4 or 8; 16 for extended (x87) and double-precision complex numbers, 32 for
    /// extended complex ones.
    pub(super) size: usize,
    pub(super) big_endian: bool,
}

/// How elements of an HDF5 type become numbers of a numpy type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) form: Form,
    /// HDF5 type to convert from, if bytes in the file differ from the numpy type's.
    convert: Option<AnyType>,
}

impl Form {
    /// `<f4`.
    pub(super) fn dtype(self) -> String {
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
    pub(super) fn part(self) -> usize {
        if self.kind == Kind::Complex { self.size / 2 } else { self.size }
    }

    /// The nearest type of JavaScript's typed arrays: little-endian, 32 or 64 bits if it is
    /// floating-point.
    pub(super) fn safe(self) -> Self {
        let part = match self.kind {
            Kind::Float | Kind::Complex => self.part().clamp(4, 8),
            _ => self.size,
        };
        let size = if self.kind == Kind::Complex { 2 * part } else { part };
        Form { kind: self.kind, size, big_endian: false }
    }
}

/// An enumeration of FALSE and TRUE, as h5py writes Bools.
pub(super) fn is_bool(element: &AnyType) -> bool {
    match &element.class {
        AnyClass::Enum { members, .. } if element.size == 1 && members.len() == 2 => {
            let has = |name: &str, value: u8| members.iter().any(|member| member.0 == name && member.1 == [value]);
            has("FALSE", 0) && has("TRUE", 1)
        }
        _ => false,
    }
}

/// `None` if numpy has no such type.
fn integer(layout: &IntegerLayout, size: usize) -> Option<Form> {
    let big_endian = is_big_endian(layout.order, size)?;
    let kind = if layout.signed { Kind::Int } else { Kind::UInt };
    matches!(size, 1 | 2 | 4 | 8).then_some(Form { kind, size, big_endian })
}

fn is_big_endian(order: Order, size: usize) -> Option<bool> {
    match order {
        Order::Little => Some(false),
        Order::Big => Some(true),
        Order::Other(_) => (size == 1).then_some(false),
    }
}

/// IEEE 754 of 2, 4 or 8 bytes.
fn ieee(size: usize, order: Order) -> Option<FloatLayout> {
    let (exponent_bits, mantissa_bits, bias) = match size {
        2 => (5, 10, 15),
        4 => (8, 23, 127),
        8 => (11, 52, 1023),
        _ => return None,
    };
    Some(FloatLayout {
        order,
        sign: 8 * size - 1,
        exponent: mantissa_bits,
        exponent_bits,
        mantissa: 0,
        mantissa_bits,
        bias,
        implied: true,
    })
}

/// x87's extended numbers in 16 bytes: numpy's long double.
fn extended(order: Order) -> FloatLayout {
    FloatLayout {
        order,
        sign: 79,
        exponent: 64,
        exponent_bits: 15,
        mantissa: 0,
        mantissa_bits: 64,
        bias: 16383,
        implied: false,
    }
}

/// Rounds to 64 bits.
pub(super) fn decode_extended(bytes: &[u8], big_endian: bool) -> f64 {
    decode_float(&extended(if big_endian { Order::Big } else { Order::Little }), bytes)
}

/// IEEE 754.
pub(super) fn decode_half(bits: u16) -> f32 {
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
fn float(layout: &FloatLayout, size: usize) -> Option<(Form, bool)> {
    let big_endian = is_big_endian(layout.order, size)?;
    let form = |size| Form { kind: Kind::Float, size, big_endian };
    let is_extended = size == 16 && *layout == extended(layout.order);
    if is_extended || ieee(size, layout.order).as_ref() == Some(layout) {
        return Some((form(size), true));
    }
    let mantissa_bits = layout.mantissa_bits - usize::from(!layout.implied && layout.mantissa_bits > 0);
    let holds = |&bytes: &usize| {
        ieee(bytes, layout.order)
            .is_some_and(|form| layout.exponent_bits <= form.exponent_bits && mantissa_bits <= form.mantissa_bits)
    };
    // numbers wider than 64 bits lose digits
    (size <= 16).then(|| (form([2, 4, 8].into_iter().find(holds).unwrap_or(8)), false))
}

impl Number {
    /// `None` for elements that are not numbers.
    pub(super) fn of(element: &AnyType) -> Option<Self> {
        let size = element.size;
        let number = |form, is_stored_so: bool| Number { form, convert: (!is_stored_so).then(|| element.clone()) };
        match &element.class {
            AnyClass::Integer(layout) => {
                Some(number(integer(layout, size)?, layout.precision == 8 * size && layout.shift == 0))
            }
            AnyClass::Bits(layout) => {
                let layout = IntegerLayout { signed: false, ..*layout };
                Some(number(integer(&layout, size)?, layout.precision == 8 * size && layout.shift == 0))
            }
            AnyClass::Float(layout) => float(layout, size).map(|(form, is_stored_so)| number(form, is_stored_so)),
            AnyClass::Enum { .. } if is_bool(element) => {
                Some(number(Form { kind: Kind::Bool, size: 1, big_endian: false }, true))
            }
            AnyClass::Enum { base, .. } => {
                let base = Number::of(base)?;
                matches!(base.form.kind, Kind::Int | Kind::UInt).then_some(base)
            }
            AnyClass::Complex(part) => complex(element, part, [0, part.size]),
            AnyClass::Compound(members) => match &members[..] {
                [r, i] if r.name == "r" && i.name == "i" && r.element == i.element => {
                    complex(element, &r.element, [r.offset, i.offset])
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Converts bytes in the file to those of the numpy type.
    pub(super) fn standard(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let Some(element) = &self.convert else { return Ok(bytes) };
        let mut out = Vec::with_capacity(bytes.len() / element.size.max(1) * self.form.size);
        for bytes in bytes.chunks_exact(element.size.max(1)) {
            push_standard(element, bytes, self.form, &mut out)?;
        }
        Ok(out)
    }
}

/// Parts have the type `part` and the byte `offsets` in an element; `None` if numpy has no complex
/// type for them.
fn complex(element: &AnyType, part: &AnyType, offsets: [usize; 2]) -> Option<Number> {
    let AnyClass::Float(layout) = &part.class else { return None };
    let (form, is_stored_so) = float(layout, part.size)?;
    // numpy has no complex numbers of two halves
    if form.size < 4 {
        return None;
    }
    let is_packed = is_stored_so && offsets == [0, part.size] && element.size == 2 * part.size;
    let form = Form { kind: Kind::Complex, size: 2 * form.size, ..form };
    Some(Number { form, convert: (!is_packed).then(|| element.clone()) })
}

fn push_standard(element: &AnyType, bytes: &[u8], form: Form, out: &mut Vec<u8>) -> Result<()> {
    let mut push = |little: &[u8]| match form.big_endian {
        true => out.extend(little.iter().rev()),
        false => out.extend(little),
    };
    match &element.class {
        AnyClass::Integer(layout) | AnyClass::Bits(layout) => {
            push(&decode_integer(layout, bytes).to_le_bytes()[..form.size]);
        }
        AnyClass::Enum { base, .. } => push_standard(base, bytes, form, out)?,
        AnyClass::Float(layout) => match form.size {
            2 => push(&half_of(decode_float(layout, bytes)).to_le_bytes()),
            4 => push(&(decode_float(layout, bytes) as f32).to_le_bytes()),
            8 => push(&decode_float(layout, bytes).to_le_bytes()),
            _ if form.big_endian == (layout.order == Order::Big) => out.extend(bytes),
            _ => out.extend(bytes.iter().rev()),
        },
        AnyClass::Complex(part) => {
            for bytes in bytes.chunks_exact(part.size.max(1)) {
                push_standard(part, bytes, Form { kind: Kind::Float, size: form.size / 2, ..form }, out)?;
            }
        }
        AnyClass::Compound(members) => {
            for member in members {
                let bytes = &bytes[member.offset..member.offset + member.element.size];
                push_standard(&member.element, bytes, Form { kind: Kind::Float, size: form.size / 2, ..form }, out)?;
            }
        }
        _ => return Err(Error::unsupported("elements that are not numbers")),
    }
    Ok(())
}

/// Reads 16 bytes or less.
fn bits(order: Order, bytes: &[u8]) -> u128 {
    let number = |bits: u128, &byte: &u8| bits << 8 | u128::from(byte);
    match order {
        Order::Big => bytes.iter().take(16).fold(0, number),
        _ => bytes.iter().take(16).rev().fold(0, number),
    }
}

/// `count` bits from `first` on; 0 is the lowest.
fn field(bits: u128, first: usize, count: usize) -> u128 {
    let shifted = bits.checked_shr(first as u32).unwrap_or(0);
    if count >= 128 { shifted } else { shifted & ((1 << count) - 1) }
}

/// Reads 16 bytes or less.
pub(super) fn decode_integer(layout: &IntegerLayout, bytes: &[u8]) -> i128 {
    let number = field(bits(layout.order, bytes), layout.shift, layout.precision);
    let unused = 128 - layout.precision.clamp(1, 128) as u32;
    if layout.signed { (number << unused) as i128 >> unused } else { number as i128 }
}

/// Reads 16 bytes or less.
pub(super) fn decode_float(layout: &FloatLayout, bytes: &[u8]) -> f64 {
    let bits = bits(layout.order, bytes);
    let exponent = field(bits, layout.exponent, layout.exponent_bits);
    let mantissa = field(bits, layout.mantissa, layout.mantissa_bits);
    let is_top = layout.exponent_bits > 0 && exponent == field(u128::MAX, 0, layout.exponent_bits);
    let bias = i64::try_from(layout.bias).unwrap_or(i64::MAX);
    let exponent = i64::try_from(exponent).unwrap_or(i64::MAX).saturating_sub(bias);
    let fraction_bits = layout.mantissa_bits as i64;
    let size = if is_top {
        // the highest bit is stored where it is not implied, and says nothing
        let fraction =
            if layout.implied { mantissa } else { field(mantissa, 0, layout.mantissa_bits.saturating_sub(1)) };
        if fraction == 0 { f64::INFINITY } else { f64::NAN }
    } else if !layout.implied {
        scale(mantissa, exponent.max(1 - bias).saturating_sub(fraction_bits - 1))
    } else if exponent == -bias {
        scale(mantissa, (1 - bias).saturating_sub(fraction_bits))
    } else {
        scale(mantissa | 1u128.checked_shl(fraction_bits as u32).unwrap_or(0), exponent.saturating_sub(fraction_bits))
    };
    if field(bits, layout.sign, 1) == 1 { -size } else { size }
}

/// `mantissa` times two to the power of `exponent`, rounded once.
fn scale(mantissa: u128, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.;
    }
    let bits = 128 - i64::from(mantissa.leading_zeros());
    if bits + exponent > 1100 {
        return f64::INFINITY;
    }
    if bits + exponent < -1100 {
        return 0.;
    }
    // bits below the smallest number are rounded here, to even, as the conversion rounds the others
    let below = (-1074 - exponent).clamp(0, 127) as u32;
    let (mut kept, lost) = (mantissa >> below, mantissa & ((1u128 << below) - 1));
    if below > 0 {
        let half = 1u128 << (below - 1);
        kept += u128::from(lost > half || lost == half && kept & 1 == 1);
    }
    let mut exponent = exponent + i64::from(below);
    let mut number = kept as f64;
    while exponent != 0 {
        let step = exponent.clamp(-1000, 1000);
        number *= f64::from_bits(((1023 + step) as u64) << 52);
        exponent -= step;
    }
    number
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
    fn floats_decode_as_the_processor_does() {
        let numbers = [0., -0., 1., -1.5, 0.1, 1e300, 5e-324, 2.5e-310, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY];
        for number in numbers.into_iter().chain([f64::NEG_INFINITY, std::f64::consts::PI]) {
            let little = decode_float(&ieee(8, Order::Little).unwrap(), &number.to_le_bytes());
            let big = decode_float(&ieee(8, Order::Big).unwrap(), &number.to_be_bytes());
            assert_eq!([little.to_bits(), big.to_bits()], [number.to_bits(); 2], "{number}");
            let single = number as f32;
            let decoded = decode_float(&ieee(4, Order::Little).unwrap(), &single.to_le_bytes());
            assert_eq!((decoded as f32).to_bits(), single.to_bits(), "{number}");
        }
        assert!(decode_float(&ieee(8, Order::Little).unwrap(), &f64::NAN.to_le_bytes()).is_nan());
        // 1, 65504, the smallest, minus infinity
        for (bits, number) in
            [(0x3c00u16, 1.), (0x7bff, 65504.), (1, 5.960464477539063e-8), (0xfc00, f64::NEG_INFINITY)]
        {
            assert_eq!(decode_float(&ieee(2, Order::Little).unwrap(), &bits.to_le_bytes()), number);
            assert_eq!(half_of(number), bits);
            assert_eq!(f64::from(decode_half(bits)), number);
        }
    }

    #[test]
    fn extended_floats_decode() {
        let layout = extended(Order::Little);
        assert_eq!(decode_extended(&(16384u128 << 64 | 1 << 63).to_be_bytes(), true), 2.);
        let number = |exponent: u128, mantissa: u128| decode_float(&layout, &(exponent << 64 | mantissa).to_le_bytes());
        assert_eq!(number(16383, 1 << 63), 1.);
        assert_eq!(number(16383 + 0x8000, 3 << 62), -1.5);
        assert_eq!(number(0, 0), 0.);
        assert_eq!(number(0x7fff, 1 << 63), f64::INFINITY);
        assert!(number(0x7fff, 3 << 62).is_nan());
    }

    #[test]
    fn integers_have_padding_and_signs() {
        let layout = |signed, precision, shift| IntegerLayout { order: Order::Little, signed, precision, shift };
        assert_eq!(decode_integer(&layout(true, 16, 0), &[0xfe, 0xff]), -2);
        assert_eq!(decode_integer(&layout(false, 16, 0), &[0xfe, 0xff]), 0xfffe);
        assert_eq!(decode_integer(&layout(true, 4, 2), &[0b1111_1001]), -2);
        let big = IntegerLayout { order: Order::Big, ..layout(false, 64, 0) };
        assert_eq!(decode_integer(&big, &u64::MAX.to_be_bytes()), i128::from(u64::MAX));
    }
}
