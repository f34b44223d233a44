//! Flat buffers of elements of one type: the form in which cells and keywords are read and written.

use std::ops::Range;

use bstr::BString;
use byteorder::{BigEndian, ByteOrder as _, LittleEndian};
use num_complex::{Complex32, Complex64};

use super::ByteOrder;
use super::{DataType, Record};
use crate::error::{Error, Result};

/// A flat buffer of elements of one [`DataType`], in casacore's order (first axis fastest).
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant is named for the DataType of its elements")]
pub enum Values {
    Bool(Vec<bool>),
    UChar(Vec<u8>),
    Short(Vec<i16>),
    UShort(Vec<u16>),
    Int(Vec<i32>),
    UInt(Vec<u32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Complex(Vec<Complex32>),
    DComplex(Vec<Complex64>),
    String(Vec<BString>),
    Record(Vec<Record>),
}

/// Runs `$body` with `$v` bound to the `Vec` inside `$values`, whatever its type.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_type {
    ($values:expr, $v:ident => $body:expr) => {
        match $values {
            $crate::value::Values::Bool($v) => $body,
            $crate::value::Values::UChar($v) => $body,
            $crate::value::Values::Short($v) => $body,
            $crate::value::Values::UShort($v) => $body,
            $crate::value::Values::Int($v) => $body,
            $crate::value::Values::UInt($v) => $body,
            $crate::value::Values::Int64($v) => $body,
            $crate::value::Values::Float($v) => $body,
            $crate::value::Values::Double($v) => $body,
            $crate::value::Values::Complex($v) => $body,
            $crate::value::Values::DComplex($v) => $body,
            $crate::value::Values::String($v) => $body,
            $crate::value::Values::Record($v) => $body,
        }
    };
}

impl Values {
    /// Makes an empty buffer for elements of `data_type`.
    pub fn new(data_type: DataType) -> Self {
        match data_type {
            DataType::Bool => Values::Bool(Vec::new()),
            DataType::UChar => Values::UChar(Vec::new()),
            DataType::Short => Values::Short(Vec::new()),
            DataType::UShort => Values::UShort(Vec::new()),
            DataType::Int => Values::Int(Vec::new()),
            DataType::UInt => Values::UInt(Vec::new()),
            DataType::Int64 => Values::Int64(Vec::new()),
            DataType::Float => Values::Float(Vec::new()),
            DataType::Double => Values::Double(Vec::new()),
            DataType::Complex => Values::Complex(Vec::new()),
            DataType::DComplex => Values::DComplex(Vec::new()),
            DataType::String => Values::String(Vec::new()),
            DataType::Record => Values::Record(Vec::new()),
        }
    }

    /// The element type of the buffer.
    pub fn data_type(&self) -> DataType {
        match self {
            Values::Bool(_) => DataType::Bool,
            Values::UChar(_) => DataType::UChar,
            Values::Short(_) => DataType::Short,
            Values::UShort(_) => DataType::UShort,
            Values::Int(_) => DataType::Int,
            Values::UInt(_) => DataType::UInt,
            Values::Int64(_) => DataType::Int64,
            Values::Float(_) => DataType::Float,
            Values::Double(_) => DataType::Double,
            Values::Complex(_) => DataType::Complex,
            Values::DComplex(_) => DataType::DComplex,
            Values::String(_) => DataType::String,
            Values::Record(_) => DataType::Record,
        }
    }

    /// Number of elements in the buffer; a complex number counts as one.
    pub fn len(&self) -> usize {
        for_each_type!(self, v => v.len())
    }

    /// `None` for elements of another type.
    #[doc(hidden)]
    pub fn integers(&self) -> Option<Vec<i64>> {
        let mut integers = Vec::new();
        self.integers_into(&mut integers).then_some(integers)
    }

    /// Replaces `integers`; false, and empty, for elements of another type.
    #[doc(hidden)]
    pub fn integers_into(&self, integers: &mut Vec<i64>) -> bool {
        integers.clear();
        match self {
            Values::UChar(v) => integers.extend(v.iter().map(|&value| i64::from(value))),
            Values::Short(v) => integers.extend(v.iter().map(|&value| i64::from(value))),
            Values::UShort(v) => integers.extend(v.iter().map(|&value| i64::from(value))),
            Values::Int(v) => integers.extend(v.iter().map(|&value| i64::from(value))),
            Values::UInt(v) => integers.extend(v.iter().map(|&value| i64::from(value))),
            Values::Int64(v) => integers.extend_from_slice(v),
            _ => return false,
        }
        true
    }

    /// Whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all elements from the buffer and keeps its memory for reuse.
    pub fn clear(&mut self) {
        for_each_type!(self, v => v.clear())
    }

    /// Appends `count` default elements to the buffer: zeros, `false`s, empty strings or empty
    /// records.
    pub fn extend_default(&mut self, count: usize) {
        for_each_type!(self, v => extend_default(v, count))
    }

    /// Appends the elements `range` (half-open, from 0) of the buffer `from`, which must have the
    /// same type.
    ///
    /// # Errors
    /// `Usage` if the types differ.
    pub fn extend_from(&mut self, from: &Values, range: Range<usize>) -> Result<()> {
        macro_rules! same {
            ($($variant:ident)*) => {
                match (&mut *self, from) {
                    $((Values::$variant(to), Values::$variant(from)) => to.extend_from_slice(&from[range]),)*
                    _ => return Err(Error::usage(format!("{} values where {} are stored", from.data_type(), self.data_type()))),
                }
            };
        }
        same!(Bool UChar Short UShort Int UInt Int64 Float Double Complex DComplex String Record);
        Ok(())
    }

    /// Appends `times` copies of the last `cell` elements, for further rows with an equal cell.
    #[doc(hidden)]
    pub fn repeat_last(&mut self, cell: usize, times: usize) {
        for_each_type!(self, v => {
            let start = v.len() - cell;
            if cell == 1 {
                let last = v.last().cloned().unwrap_or_default();
                v.resize(start + 1 + times, last);
            } else {
                v.reserve(cell * times);
                for _ in 0..times {
                    v.extend_from_within(start..start + cell);
                }
            }
        })
    }

    /// `bytes` holds whole elements in `order`; a Bool is one byte, true unless 0. Not for strings
    /// and records.
    #[doc(hidden)]
    pub fn extend_from_bytes(&mut self, bytes: &[u8], order: ByteOrder) {
        macro_rules! numbers {
            ($v:ident, $size:literal, $read:ident) => {{
                let start = $v.len();
                $v.resize(start + bytes.len() / $size, Default::default());
                match order {
                    ByteOrder::Big => BigEndian::$read(bytes, bytemuck::cast_slice_mut(&mut $v[start..])),
                    ByteOrder::Little => LittleEndian::$read(bytes, bytemuck::cast_slice_mut(&mut $v[start..])),
                }
            }};
        }
        match self {
            Values::Bool(v) => v.extend(bytes.iter().map(|&byte| byte != 0)),
            Values::UChar(v) => v.extend_from_slice(bytes),
            Values::Short(v) => numbers!(v, 2, read_i16_into),
            Values::UShort(v) => numbers!(v, 2, read_u16_into),
            Values::Int(v) => numbers!(v, 4, read_i32_into),
            Values::UInt(v) => numbers!(v, 4, read_u32_into),
            Values::Int64(v) => numbers!(v, 8, read_i64_into),
            Values::Float(v) => numbers!(v, 4, read_f32_into),
            Values::Double(v) => numbers!(v, 8, read_f64_into),
            Values::Complex(v) => numbers!(v, 8, read_f32_into),
            Values::DComplex(v) => numbers!(v, 16, read_f64_into),
            Values::String(_) | Values::Record(_) => unreachable!("strings and records have no fixed size"),
        }
    }

    /// The memory of `elements` in this machine's order; `None` for Bools, strings and records.
    #[doc(hidden)]
    pub fn bytes_mut(&mut self, elements: Range<usize>) -> Option<&mut [u8]> {
        for_each_type!(self, v => Element::bytes_mut(&mut v[elements]))
    }

    /// `read` fills the memory of `count` numbers with bytes in `order`, which are then converted.
    ///
    /// # Errors
    /// Those of `read`; `Usage` if the elements are not numbers.
    #[doc(hidden)]
    pub fn extend_by_reading(
        &mut self,
        count: usize,
        order: ByteOrder,
        read: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let (start, width) = (self.len(), swap_width(self.data_type()));
        self.extend_default(count);
        let Some(bytes) = self.bytes_mut(start..start + count) else {
            return Err(Error::usage(format!("{} elements are not plain bytes", self.data_type())));
        };
        read(bytes)?;
        if order != ByteOrder::NATIVE {
            super::swap_bytes(bytes, width);
        }
        Ok(())
    }

    /// Appends `count` Bools; bit `i` is bit `i % 8` of byte `i / 8`. `bits` holds at least
    /// `first_bit + count` bits.
    #[doc(hidden)]
    pub fn extend_from_bits(&mut self, bits: &[u8], first_bit: usize, count: usize) {
        let Values::Bool(v) = self else { unreachable!("only Bools are packed") };
        crate::value::bits::unpack(bits, first_bit, count, v);
    }

    /// Numbers in `order` (of a complex number the real part first), Bools as bytes 0 or 1. Not for
    /// strings and records.
    #[doc(hidden)]
    pub fn extend_bytes(&self, order: ByteOrder, out: &mut Vec<u8>) {
        let start = out.len();
        let bytes = self.le_bytes().unwrap_or_else(|| unreachable!("strings and records have no fixed size"));
        out.extend_from_slice(&bytes);
        if order == ByteOrder::Big {
            crate::value::swap_bytes(&mut out[start..], swap_width(self.data_type()));
        }
    }

    /// Floats are compared by their bits.
    #[doc(hidden)]
    pub fn same_bits(&self, other: &Values) -> bool {
        match (self.le_bytes(), other.le_bytes()) {
            (Some(ours), Some(theirs)) => self.data_type() == other.data_type() && ours == theirs,
            _ => self == other,
        }
    }

    /// Little-endian, Bools as bytes 0 or 1; empty for strings and records. `UChar` elements are
    /// not copied.
    #[doc(hidden)]
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Values::UChar(bytes) => bytes,
            other => other.le_bytes().unwrap_or_default().into_owned(),
        }
    }

    /// As [`into_bytes`](Self::into_bytes), borrowed on little-endian machines; `None` for strings
    /// and records.
    #[doc(hidden)]
    pub fn le_bytes(&self) -> Option<std::borrow::Cow<'_, [u8]>> {
        use std::borrow::Cow;
        let bytes: &[u8] = match self {
            Values::Bool(v) => bytemuck::cast_slice(v),
            Values::UChar(v) => v,
            Values::Short(v) => bytemuck::cast_slice(v),
            Values::UShort(v) => bytemuck::cast_slice(v),
            Values::Int(v) => bytemuck::cast_slice(v),
            Values::UInt(v) => bytemuck::cast_slice(v),
            Values::Int64(v) => bytemuck::cast_slice(v),
            Values::Float(v) => bytemuck::cast_slice(v),
            Values::Double(v) => bytemuck::cast_slice(v),
            Values::Complex(v) => bytemuck::cast_slice(v),
            Values::DComplex(v) => bytemuck::cast_slice(v),
            Values::String(_) | Values::Record(_) => return None,
        };
        if cfg!(target_endian = "little") {
            return Some(Cow::Borrowed(bytes));
        }
        let mut bytes = bytes.to_vec();
        crate::value::swap_bytes(&mut bytes, swap_width(self.data_type()));
        Some(Cow::Owned(bytes))
    }
}

/// Bytes of an element, or of one part of a complex number; 0 for strings and records.
pub fn swap_width(data_type: DataType) -> usize {
    match data_type {
        DataType::Complex | DataType::DComplex => data_type.size() / 2,
        _ => data_type.size(),
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type for the elements of a casacore type: `bool`, `u8` … `f64`, complex numbers,
/// [`BString`], [`Record`].
pub trait Element: sealed::Sealed + Clone + Default + Send + 'static {
    /// The casacore element type that this Rust type stands for.
    const DATA_TYPE: DataType;
    /// Takes the vector of elements of this Rust type out of `values`; `None` if these have another
    /// element type.
    fn of(values: Values) -> Option<Vec<Self>>;
    /// The elements of `values` as a slice of this Rust type; `None` if they have another element
    /// type.
    fn slice(values: &Values) -> Option<&[Self]>;
    /// Wraps a vector of elements as [`Values`], from which [`of`](Self::of) takes it again.
    fn values(elements: Vec<Self>) -> Values;
    /// A vector of `count` zeros, `false`s, empty strings or empty records; `None` if the memory
    /// cannot be allocated.
    fn zeros(count: usize) -> Option<Vec<Self>>;
    /// The memory of numbers as bytes, in the order of this machine. `None` for strings and
    /// records, and for Bools, in which not every byte is valid.
    fn bytes_mut(elements: &mut [Self]) -> Option<&mut [u8]>;
}

macro_rules! elements {
    ($($rust:ty => $variant:ident, $zeros:expr, $bytes:expr;)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DATA_TYPE: DataType = DataType::$variant;
            fn of(values: Values) -> Option<Vec<Self>> {
                match values {
                    Values::$variant(v) => Some(v),
                    _ => None,
                }
            }
            fn slice(values: &Values) -> Option<&[Self]> {
                match values {
                    Values::$variant(v) => Some(v),
                    _ => None,
                }
            }
            fn values(elements: Vec<Self>) -> Values {
                Values::$variant(elements)
            }
            fn zeros(count: usize) -> Option<Vec<Self>> {
                $zeros(count)
            }
            fn bytes_mut(elements: &mut [Self]) -> Option<&mut [u8]> {
                $bytes(elements)
            }
        }
    )*};
    (numbers: $($number:ty => $number_variant:ident),*; others: $($other:ty => $other_variant:ident),*) => {
        elements! {
            $($number => $number_variant, zeroed, |elements| Some(bytemuck::cast_slice_mut(elements));)*
            $($other => $other_variant, defaults, |_| None;)*
        }
    };
}
elements! {
    numbers: u8 => UChar, i16 => Short, u16 => UShort, i32 => Int, u32 => UInt, i64 => Int64, f32 => Float, f64 => Double,
        Complex32 => Complex, Complex64 => DComplex;
    others: BString => String, Record => Record
}
elements! {
    bool => Bool, zeroed, |_| None;
}

/// `None` if memory cannot be allocated; the system zeroes each page at its first use.
fn zeroed<T: bytemuck::Zeroable>(count: usize) -> Option<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(count).ok()
}

/// Zeros, `false`s, empty strings or records. A vector without capacity gets new memory; of
/// numbers, the operating system zeroes each page when it is first used.
pub fn extend_default<T: Element + Default>(elements: &mut Vec<T>, count: usize) {
    if elements.is_empty()
        && elements.capacity() < count
        && let Some(zeros) = T::zeros(count)
    {
        *elements = zeros;
    } else {
        elements.resize_with(elements.len() + count, T::default);
    }
}

fn defaults<T: Default>(count: usize) -> Option<Vec<T>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(count).ok()?;
    elements.resize_with(count, T::default);
    Some(elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};

    #[test]
    fn numbers_of_both_orders() {
        let mut values = Values::new(DataType::Complex);
        values.extend_from_bytes(&[0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0], ByteOrder::Big);
        values.extend_from_bytes(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0], ByteOrder::Little);
        assert_eq!(values, Values::Complex(vec![Complex32::new(1., -2.); 2]));
        assert_eq!(values.le_bytes().unwrap()[..8], [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
    }

    #[test]
    fn other_elements_are_refused() {
        let mut values = Values::Int(vec![1]);
        values.extend_from(&Values::Float(vec![1.]), 0..1).fails(ErrorKind::Usage, "float values where int are stored");
        let mut text = Values::String(Vec::new());
        let read = text.extend_by_reading(1, ByteOrder::Big, |_| Ok(()));
        read.fails(ErrorKind::Usage, "string elements are not plain bytes");
    }

    #[test]
    fn last_cell_repeats() {
        let mut values = Values::Int(vec![1, 2, 3]);
        values.repeat_last(2, 2);
        values.repeat_last(1, 1);
        assert_eq!(values, Values::Int(vec![1, 2, 3, 2, 3, 2, 3, 3]));
    }
}
