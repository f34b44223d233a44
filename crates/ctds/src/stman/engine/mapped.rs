//! MappedArrayEngine computes a column from numbers stored in another type. formats/engines.md 1.4.
//!
//! Casacore has it for Complex values stored as DComplex; its users can add other pairs of types.
//! Conversions are those of C, but that floats beyond the range of an integer become its nearest
//! value.

use std::ops::Range;

use super::base::{Coding, Rows, STORED_COLUMN_PREFIX, open};
use super::scaling::Number;
use crate::error::{Error, Result};
use crate::stman::Kind;
use crate::value::{Complex32, Complex64, DataType, Values};

pub(crate) static KIND: Kind = Kind::engine(
    &["MappedArrayEngine"],
    &[STORED_COLUMN_PREFIX],
    |args| {
        open("MappedArrayEngine", args, |mapping| {
            let (to, from) = (mapping.spec.data_type, mapping.stored.spec.data_type);
            if rank(from)? > rank(to)? {
                return Err(mapping.wrong_types());
            }
            Ok(Mapped)
        })
    },
    Some(super::write::create),
);

#[derive(Debug)]
struct Mapped;

/// 0 for real numbers, 1 for complex ones; numbers convert to the same or a higher rank.
fn rank(data_type: DataType) -> Result<u8> {
    match data_type {
        DataType::Complex | DataType::DComplex => Ok(1),
        DataType::Bool | DataType::String | DataType::Record => {
            Err(Error::unsupported(format!("conversions of {data_type} elements are not known")))
        }
        _ => Ok(0),
    }
}

impl Coding for Mapped {
    type Row = ();

    fn rows(&self, _rows: Range<u64>) -> Result<Rows<()>> {
        Ok(Rows::Same(()))
    }

    fn decode(&self, _row: (), stored: &Values, range: Range<usize>, out: &mut Values) -> Result<()> {
        let converted = match out {
            Values::UChar(out) => u8::convert(stored, range, out),
            Values::Short(out) => i16::convert(stored, range, out),
            Values::UShort(out) => u16::convert(stored, range, out),
            Values::Int(out) => i32::convert(stored, range, out),
            Values::UInt(out) => u32::convert(stored, range, out),
            Values::Int64(out) => i64::convert(stored, range, out),
            Values::Float(out) => f32::convert(stored, range, out),
            Values::Double(out) => f64::convert(stored, range, out),
            Values::Complex(out) => Complex32::convert(stored, range, out),
            Values::DComplex(out) => Complex64::convert(stored, range, out),
            Values::Bool(_) | Values::String(_) | Values::Record(_) => None,
        };
        converted.ok_or_else(|| Error::usage("numbers are read into numbers"))
    }
}
