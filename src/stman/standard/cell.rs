//! What a column has in its rows. formats/stman.md 1.2.

use super::strings::CELL_BYTES;
use crate::error::{Error, Result};
use crate::stman::elements::element_bits;
use crate::stman::{ColumnSpec, Storage};
use crate::value::{DataType, Shape};

/// Bytes of the cell of an indirect array.
const OFFSET_BYTES: u64 = 8;

/// What is in the cells of a bucket, which follow each other; Bools without regard to bytes.
#[derive(Debug)]
pub(super) enum Cell {
    /// The elements.
    Elements { shape: Shape, count: u64, bits: u64 },
    /// A string of up to `len_bytes`, terminated by NUL if it is shorter.
    FixedString { len_bytes: u32 },
    /// A short string, or the [`Item`] that holds it.
    String,
    /// The [`Item`] that holds an array of strings; of this shape, or with its own.
    StringArray { shape: Option<Shape> },
    /// i64: offset in the array file, 0 if undefined.
    Array,
}

impl Cell {
    pub(super) fn new(spec: &ColumnSpec) -> Result<Self> {
        Ok(match (spec.storage, spec.data_type) {
            (Storage::Scalar, DataType::String) if spec.max_length > 0 => {
                Cell::FixedString { len_bytes: spec.max_length }
            }
            (Storage::Scalar, DataType::String) => Cell::String,
            (_, DataType::String) => Cell::StringArray { shape: spec.shape.clone() },
            (Storage::Indirect, _) => Cell::Array,
            (Storage::Scalar | Storage::Direct, data_type) => {
                let shape = spec.shape.clone().ok_or_else(|| Error::format("a direct column has no shape"))?;
                let count = shape.elements()?;
                let bits = count.checked_mul(element_bits(data_type));
                let bits = bits.ok_or_else(|| Error::format(format!("cells of shape {shape} do not fit a bucket")))?;
                Cell::Elements { shape, count, bits }
            }
        })
    }

    /// Bits that it takes in a row.
    pub(super) fn bits(&self) -> u64 {
        match self {
            Cell::Elements { bits, .. } => *bits,
            Cell::FixedString { len_bytes } => u64::from(*len_bytes) * 8,
            Cell::String | Cell::StringArray { .. } => CELL_BYTES as u64 * 8,
            Cell::Array => OFFSET_BYTES * 8,
        }
    }
}
