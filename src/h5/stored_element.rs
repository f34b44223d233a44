//! Element types of datasets that arrays of other formats have, whether casacore has them or not.

/// The type of a dataset's element in the file; numbers are little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredElement {
    /// A truth value: an enumeration of 8 bits with `FALSE` and `TRUE`.
    Bool,
    /// Signed integer of this many bytes: 1, 2, 4 or 8.
    Int(usize),
    /// Unsigned integer of this many bytes: 1, 2, 4 or 8.
    UInt(usize),
    /// IEEE 754 number of this many bytes: 2, 4 or 8.
    Float(usize),
    /// Complex number of two floating-point numbers, `r` and `i`, of this many bytes together: 8 or 16.
    Complex(usize),
    /// A string of this many bytes, padded with zeros, marked as ASCII.
    Bytes(usize),
    /// A text of this many bytes, UTF-8 padded with zeros.
    Text(usize),
    /// An opaque element: this many bytes without a meaning.
    Opaque(usize),
    /// A record: names and types of its members, packed.
    Record(Vec<(String, StoredElement)>),
    /// An array as an element: its extents, slowest axis first, and the type of its elements.
    Array(Vec<u64>, Box<StoredElement>),
}
