//! The element types of casacore columns and keywords.

use std::fmt;

/// The type of one element of a casacore column or keyword: casacore's `DataType` enum, without the
/// types that neither can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataType {
    /// Truth value; on disk one bit or one byte, depending on the storage manager.
    Bool,
    /// Unsigned integer of 8 bits.
    UChar,
    /// Signed integer of 16 bits.
    Short,
    /// Unsigned integer of 16 bits.
    UShort,
    /// Signed integer of 32 bits.
    Int,
    /// Unsigned integer of 32 bits.
    UInt,
    /// Signed integer of 64 bits.
    Int64,
    /// Floating-point number of 32 bits, IEEE 754.
    Float,
    /// Floating-point number of 64 bits, IEEE 754.
    Double,
    /// Complex number of two [`Float`](Self::Float)s: real, then imaginary part.
    Complex,
    /// Complex number of two [`Double`](Self::Double)s: real, then imaginary part.
    DComplex,
    /// String of bytes without a declared encoding, of any length.
    String,
    /// A record: an ordered set of named values.
    Record,
}

/// Casacore's code of a scalar, name in python-casacore and in CTFP-1, bytes; ordered as the enum.
const TABLE: [(DataType, i32, &str, usize); 13] = [
    (DataType::Bool, 0, "boolean", 1),
    (DataType::UChar, 2, "uchar", 1),
    (DataType::Short, 3, "short", 2),
    (DataType::UShort, 4, "ushort", 2),
    (DataType::Int, 5, "int", 4),
    (DataType::UInt, 6, "uint", 4),
    (DataType::Int64, 29, "int64", 8),
    (DataType::Float, 7, "float", 4),
    (DataType::Double, 8, "double", 8),
    (DataType::Complex, 9, "complex", 8),
    (DataType::DComplex, 10, "dcomplex", 16),
    (DataType::String, 11, "string", 0),
    (DataType::Record, 25, "record", 0),
];

/// Type code of a keyword that names a table.
pub const TABLE_CODE: i32 = 12;

impl DataType {
    /// `None` if no column or keyword can have the code.
    #[doc(hidden)]
    pub fn from_code(code: i32) -> Option<Self> {
        TABLE.iter().find(|entry| entry.1 == code).map(|entry| entry.0)
    }

    /// Codes 13 … 24 and 30.
    #[doc(hidden)]
    pub fn from_array_code(code: i32) -> Option<Self> {
        match code {
            13..=24 => Self::from_code(code - 13),
            30 => Some(DataType::Int64),
            _ => None,
        }
    }

    #[doc(hidden)]
    pub fn code(self) -> i32 {
        TABLE[self as usize].1
    }

    #[doc(hidden)]
    pub fn array_code(self) -> i32 {
        if self == DataType::Int64 { 30 } else { self.code() + 13 }
    }

    /// The type's name in python-casacore and in CTFP-1, the rules of table digests: `boolean`,
    /// `uchar`, `short` …
    pub fn name(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// Finds the element type by its [`name`](Self::name) in python-casacore and in CTFP-1, the
    /// rules of table digests; `None` if no type has this name.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|entry| entry.2 == name).map(|entry| entry.0)
    }

    /// Size of one element of this type in bytes, in memory and, except for packed Bools, on disk;
    /// 0 for strings and records.
    pub fn size(self) -> usize {
        TABLE[self as usize].3
    }

    /// Whether every element of this type takes the same number of bytes: true for all but strings
    /// and records.
    pub fn is_fixed_size(self) -> bool {
        self.size() > 0
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_enum_order() {
        for (index, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.0 as usize, index);
            assert_eq!(DataType::from_code(entry.1), Some(entry.0));
            assert_eq!(DataType::from_name(entry.2), Some(entry.0));
        }
        assert_eq!(DataType::from_array_code(30), Some(DataType::Int64));
        assert_eq!(DataType::from_array_code(13), Some(DataType::Bool));
        assert_eq!(DataType::from_array_code(14), None);
    }
}
