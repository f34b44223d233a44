//! How IncrementalStMan stores the values of a column. formats/stman.md 2.4.

use std::ops::Range;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::io::ByteOrder;
use crate::stman::elements::element_bits;
use crate::stman::{ColumnSpec, Storage};
use crate::value::{DataType, Shape, Values, bits, swap_bytes, swap_width};

/// Bytes of a value in the file.
pub(super) type Stored = SmallVec<[u8; 16]>;

/// Stored form of a column's values; `A` is the type of the array file.
#[derive(Debug)]
pub(super) enum Cell<A> {
    /// `count` elements, fastest axis first; Bools are bits, each value from a whole byte on.
    Elements { shape: Shape, count: u64, bytes: u64 },
    /// A u32 length, its own 4 bytes included, and the string; extents of `shape`, if any, are 1.
    String { shape: Shape },
    /// A u32 length, its own 4 bytes included, then `count` strings, each after a u32 length.
    Strings { shape: Shape, count: u64 },
    /// Byte offset of an array in the array file, i64; 0 if the cell is undefined.
    Array(A),
}

impl<A> Cell<A> {
    /// A column whose cells, arrays included, are in the buckets.
    pub(super) fn direct(spec: &ColumnSpec) -> Result<Self> {
        let shape = match (spec.storage, &spec.shape) {
            (Storage::Scalar, _) => Shape::scalar(),
            (_, Some(shape)) => shape.clone(),
            (_, None) => return Err(Error::format("a direct column has no shape")),
        };
        let count = shape.elements()?;
        Ok(match (spec.data_type, count) {
            (DataType::String, 1) => Cell::String { shape },
            (DataType::String, _) => Cell::Strings { shape, count },
            (data_type, _) => {
                let bits = count.checked_mul(element_bits(data_type));
                let bits = bits.ok_or_else(|| Error::format(format!("cells of shape {shape} do not fit a bucket")))?;
                Cell::Elements { shape, count, bytes: bits.div_ceil(8) }
            }
        })
    }

    /// `None` for indirect arrays.
    pub(super) fn count(&self) -> Option<usize> {
        match self {
            Cell::Elements { count, .. } | Cell::Strings { count, .. } => Some(*count as usize),
            Cell::String { .. } => Some(1),
            Cell::Array(_) => None,
        }
    }

    /// Not for offsets in the array file.
    pub(super) fn read(&self, value: &[u8], order: ByteOrder, out: &mut Values) -> Result<()> {
        match (self, out) {
            (Cell::Elements { count, bytes, .. }, out) => {
                let bytes = value.get(..*bytes as usize).ok_or_else(|| too_long(*bytes))?;
                match out {
                    Values::Bool(_) => out.extend_from_bits(bytes, 0, *count as usize),
                    _ => out.extend_from_bytes(bytes, order),
                }
            }
            (Cell::String { .. }, Values::String(out)) => out.push(string_value(value, order)?.into()),
            (Cell::Strings { count, .. }, Values::String(out)) => {
                let mut rest = string_value(value, order)?;
                if *count > rest.len() as u64 / 4 {
                    return Err(Error::format(format!(
                        "{count} strings do not fit into a value of {} bytes",
                        rest.len()
                    )));
                }
                for _ in 0..*count {
                    let string = rest
                        .split_first_chunk()
                        .and_then(|(&len, behind)| behind.split_at_checked(order.u32(len) as usize));
                    let string = string
                        .ok_or_else(|| Error::format("a value ends within its last string, before all of its bytes"))?;
                    out.push(string.0.into());
                    rest = string.1;
                }
            }
            _ => return Err(Error::usage("strings are read into strings")),
        }
        Ok(())
    }
}

/// Strings of a value, without the u32 length before them, which counts its own 4 bytes.
fn string_value(value: &[u8], order: ByteOrder) -> Result<&[u8]> {
    let (&len, _) = value.split_first_chunk().ok_or_else(|| too_long(4))?;
    let len = order.u32(len);
    match value.get(4..len as usize) {
        Some(content) => Ok(content),
        None if len < 4 => Err(Error::format(format!("a value with strings is {len} bytes long, expected 4 or more"))),
        None => Err(too_long(u64::from(len))),
    }
}

impl<A> Cell<A> {
    /// A cell never written: zeros, empty strings, or the array offset 0.
    pub(super) fn empty(&self, order: ByteOrder) -> Stored {
        match self {
            Cell::Elements { bytes, .. } => SmallVec::from_elem(0, *bytes as usize),
            Cell::String { .. } => SmallVec::from_slice(&order.u32_bytes(4)),
            Cell::Strings { count, .. } => {
                let mut value = SmallVec::from_elem(0, 4 + 4 * *count as usize);
                let len = order.u32_bytes(value.len() as u32);
                value[..4].copy_from_slice(&len);
                value
            }
            Cell::Array(_) => SmallVec::from_elem(0, 8),
        }
    }

    /// The elements `range` of `values` are one cell.
    pub(super) fn encode(&self, values: &Values, range: Range<usize>, order: ByteOrder) -> Result<Stored> {
        match values {
            Values::String(strings) => {
                let strings = &strings[range];
                let single = matches!(self, Cell::String { .. });
                let len = strings.iter().map(|string| string.len() + 4).sum::<usize>() + if single { 0 } else { 4 };
                let len = u32::try_from(len).map_err(|_| {
                    Error::limit(format!("the strings of a cell have {len} bytes, the limit is 2^32 - 1"))
                })?;
                let mut value = Stored::with_capacity(len as usize);
                value.extend_from_slice(&order.u32_bytes(len));
                for string in strings {
                    if !single {
                        value.extend_from_slice(&order.u32_bytes(string.len() as u32));
                    }
                    value.extend_from_slice(string);
                }
                Ok(value)
            }
            Values::Bool(bools) => {
                let mut packed = Vec::new();
                bits::pack(&bools[range], &mut packed);
                Ok(SmallVec::from_vec(packed))
            }
            _ => {
                let bytes = values.le_bytes().ok_or_else(|| Error::usage("records are stored as bytes"))?;
                let size = values.data_type().size();
                let mut value = Stored::from_slice(&bytes[range.start * size..range.end * size]);
                if order == ByteOrder::Big {
                    swap_bytes(&mut value, swap_width(values.data_type()));
                }
                Ok(value)
            }
        }
    }

    /// Bytes of the value at the beginning of `value`.
    pub(super) fn stored_len(&self, value: &[u8], order: ByteOrder) -> Result<usize> {
        let len = match self {
            Cell::Elements { bytes, .. } => *bytes as usize,
            Cell::Array(_) => 8,
            Cell::String { .. } | Cell::Strings { .. } => 4 + string_value(value, order)?.len(),
        };
        if len > value.len() { Err(too_long(len as u64)) } else { Ok(len) }
    }
}

pub(super) fn array_offset(value: &[u8], order: ByteOrder) -> Result<i64> {
    let &offset = value.first_chunk().ok_or_else(|| too_long(8))?;
    Ok(order.u64(offset) as i64)
}

fn too_long(bytes: u64) -> Error {
    Error::format(format!("a value of {bytes} bytes that leaves the data part"))
}
