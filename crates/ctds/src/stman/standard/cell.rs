//! How StandardStMan stores the cells of a column in its rows. formats/stman.md 1.2.

use super::strings::CELL_BYTES;
use crate::error::{Error, Result};
use crate::stman::elements::element_bits;
use crate::stman::{ColumnSpec, Storage};
use crate::value::{DataType, Shape};

const OFFSET_BYTES: u64 = 8;

/// Cells follow each other in a bucket; Bools are packed without padding between cells.
#[derive(Debug)]
pub(super) enum Cell {
    /// Scalar or array of `shape`, `bits` bits in all.
    Elements { shape: Shape, count: u64, bits: u64 },
    /// Up to `len_bytes` bytes, terminated by NUL if shorter.
    FixedString { len_bytes: u32 },
    /// Up to 8 bytes, or else the [`Item`](super::strings::Item) in the string heap.
    String,
    /// The item in the heap, where the shape precedes the strings unless `shape` is fixed.
    StringArray { shape: Option<Shape> },
    /// Byte offset (i64) of an array in `table.f<n>i`; 0 if the cell is undefined.
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

    pub(super) fn bits(&self) -> u64 {
        match self {
            Cell::Elements { bits, .. } => *bits,
            Cell::FixedString { len_bytes } => u64::from(*len_bytes) * 8,
            Cell::String | Cell::StringArray { .. } => CELL_BYTES as u64 * 8,
            Cell::Array => OFFSET_BYTES * 8,
        }
    }
}
