//! CompressFloat, CompressComplex and CompressComplexSD compute floats that are stored in 16 bits
//! each. formats/engines.md 1.6, 1.7.
//!
//! | keyword (after the prefix)  | type   | meaning                                      |
//! |-----------------------------|--------|----------------------------------------------|
//! | `Scale`, `Offset`           | Float  | if fixed                                     |
//! | `Fixed`                     | Bool   | else there are columns for both              |
//! | `ScaleName`, `OffsetName`   | String | scalar Float columns                         |
//!
//! Everything is computed in 32-bit floats.

use std::ops::Range;

use super::base::{Coding, Rows, STORED_COLUMN_PREFIX, open};
use super::scaling::Scaling;
use crate::error::{Error, Result};
use crate::stman::Kind;
use crate::value::{Complex32, DataType, Values};

const FLOAT_PREFIX: &str = "_CompressFloat_";
const COMPLEX_PREFIX: &str = "_CompressComplex_";

pub(crate) static FLOAT: Kind = Kind::engine(
    &["CompressFloat"],
    &[STORED_COLUMN_PREFIX, FLOAT_PREFIX],
    |args| {
        open("CompressFloat", args, |mapping| {
            mapping.expect(DataType::Float, &[DataType::Short])?;
            Ok(Float(Scaling::open(mapping, FLOAT_PREFIX, "Fixed", "Fixed")?))
        })
    },
    Some(super::write::create),
);

pub(crate) static COMPLEX: Kind = Kind::engine(
    &["CompressComplex"],
    &[STORED_COLUMN_PREFIX, COMPLEX_PREFIX],
    |args| {
        open("CompressComplex", args, |mapping| {
            mapping.expect(DataType::Complex, &[DataType::Int])?;
            Ok(Complex(Scaling::open(mapping, COMPLEX_PREFIX, "Fixed", "Fixed")?))
        })
    },
    Some(super::write::create),
);

pub(crate) static SINGLE_DISH: Kind = Kind::engine(
    &["CompressComplexSD"],
    &[STORED_COLUMN_PREFIX, COMPLEX_PREFIX],
    |args| {
        open("CompressComplexSD", args, |mapping| {
            mapping.expect(DataType::Complex, &[DataType::Int])?;
            Ok(SingleDish(Scaling::open(mapping, COMPLEX_PREFIX, "Fixed", "Fixed")?))
        })
    },
    Some(super::write::create),
);

/// Casacore's NaN for a value that is not finite: all bits are 1.
const NAN: f32 = f32::from_bits(u32::MAX);

#[derive(Debug)]
struct Float(Scaling<f32>);

#[derive(Debug)]
struct Complex(Scaling<f32>);

#[derive(Debug)]
struct SingleDish(Scaling<f32>);

impl Coding for Float {
    type Row = (f32, f32);

    fn rows(&self, rows: Range<u64>) -> Result<Rows<Self::Row>> {
        self.0.rows(rows)
    }

    fn decode(&self, row: Self::Row, stored: &Values, range: Range<usize>, out: &mut Values) -> Result<()> {
        let (Values::Short(stored), Values::Float(out)) = (stored, out) else { return Err(wrong_buffer()) };
        out.extend(stored[range].iter().map(|&stored| float(stored, row)));
        Ok(())
    }
}

impl Coding for Complex {
    type Row = (f32, f32);

    fn rows(&self, rows: Range<u64>) -> Result<Rows<Self::Row>> {
        self.0.rows(rows)
    }

    fn decode(&self, row: Self::Row, stored: &Values, range: Range<usize>, out: &mut Values) -> Result<()> {
        let (Values::Int(stored), Values::Complex(out)) = (stored, out) else { return Err(wrong_buffer()) };
        out.extend(stored[range].iter().map(|&stored| complex(stored, row)));
        Ok(())
    }
}

impl Coding for SingleDish {
    type Row = (f32, f32);

    fn rows(&self, rows: Range<u64>) -> Result<Rows<Self::Row>> {
        self.0.rows(rows)
    }

    fn decode(&self, row: Self::Row, stored: &Values, range: Range<usize>, out: &mut Values) -> Result<()> {
        let (Values::Int(stored), Values::Complex(out)) = (stored, out) else { return Err(wrong_buffer()) };
        out.extend(stored[range].iter().map(|&stored| single_dish(stored, row)));
        Ok(())
    }
}

fn wrong_buffer() -> Error {
    Error::usage("elements are read into those of another type")
}

/// stored · scale + offset; -32768 stands for values that are not finite, and gives NaN.
fn float(stored: i16, (scale, offset): (f32, f32)) -> f32 {
    if stored == i16::MIN { NAN } else { f32::from(stored) * scale + offset }
}

/// Parts of `re * 65536 + im`, -32768 to 32767 (`re` also 32768); `None` unless both are finite.
fn split(stored: i32) -> Option<(i32, i32)> {
    let re = stored / 65536;
    if re == -32768 {
        return None;
    }
    // the division rounds towards zero, so that the rest has the sign of the whole
    let im = stored - re * 65536;
    Some(match im {
        ..-32768 => (re - 1, im + 65536),
        32768.. => (re + 1, im - 65536),
        _ => (re, im),
    })
}

/// Each 16-bit part times scale plus offset; `i32::MIN` gives NaN.
fn complex(stored: i32, (scale, offset): (f32, f32)) -> Complex32 {
    match split(stored) {
        Some((re, im)) => Complex32::new(re as f32 * scale + offset, im as f32 * scale + offset),
        None => Complex32::new(NAN, NAN),
    }
}

/// An even integer is real: `(stored / 2) * (scale / 32768) + offset`. An odd one is
/// `re * 65536 + im`, each from -32768 to 32768: the real part is `(re * scale) + offset`, the
/// imaginary part `(h * 2 * scale) + offset`, `h` half of `im`, rounded down. Casacore writes
/// i32::MIN for a number that is not finite, but reads it as the smallest real one, as we do.
fn single_dish(stored: i32, (scale, offset): (f32, f32)) -> Complex32 {
    if stored & 1 == 0 {
        return Complex32::new((stored >> 1) as f32 * (scale / 32768.) + offset, 0.);
    }
    match split(stored) {
        Some((re, im)) => Complex32::new(re as f32 * scale + offset, (im >> 1) as f32 * (scale * 2.) + offset),
        None => Complex32::new(NAN, NAN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of formats/engines.md 1.7.
    #[test]
    fn written_by_casacore() {
        let row = (1. / 1024., 0.5);
        let table: [(i32, [u32; 2], [u32; 2]); 14] = [
            (-2147483648, [0xffffffff, 0xffffffff], [0xc1fc0000, 0]),
            (-2147483647, [0xc1fc0000, 0x3f004000], [0xc1fc0000, 0x3f000000]),
            (-2147418113, [0xc1fbfe00, 0x3eff8000], [0xc1fbfe00, 0x3eff0000]),
            (-65537, [0x3eff8000, 0x3eff8000], [0x3eff8000, 0x3eff0000]),
            (-65536, [0x3eff8000, 0x3f000000], [0x3eff8000, 0]),
            (-32769, [0x3eff8000, 0x4201ff00], [0x3eff8000, 0x4201fe00]),
            (-32768, [0x3f000000, 0xc1fc0000], [0x3effc000, 0]),
            (-1, [0x3f000000, 0x3eff8000], [0x3f000000, 0x3eff0000]),
            (0, [0x3f000000, 0x3f000000], [0x3f000000, 0]),
            (32767, [0x3f000000, 0x4201ff00], [0x3f000000, 0x4201fe00]),
            (32768, [0x3f004000, 0xc1fc0000], [0x3f002000, 0]),
            (98304, [0x3f008000, 0xc1fc0000], [0x3f006000, 0]),
            (2147450879, [0x4201ff00, 0x4201ff00], [0x4201ff00, 0x4201fe00]),
            (2147483647, [0x42020000, 0x3eff8000], [0x42020000, 0x3eff0000]),
        ];
        let bits = |value: Complex32| [value.re.to_bits(), value.im.to_bits()];
        for (stored, plain, sd) in table {
            assert_eq!(bits(complex(stored, row)), plain, "{stored}");
            assert_eq!(bits(single_dish(stored, row)), sd, "{stored} (SD)");
        }
    }

    #[test]
    fn every_float_is_rounded_twice() {
        assert_eq!(float(i16::MIN, (1., 0.)).to_bits(), u32::MAX);
        assert_eq!(float(-32767, (0.5, 1.)), -16382.5);
        // a fused multiplication and addition would give 3 times the epsilon
        assert_eq!(float(3, (1. + f32::EPSILON, -3.)), 4. * f32::EPSILON);
    }
}
