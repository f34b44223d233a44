//! Types of elements that arrays of other formats have.

/// The type of an element in the file; numbers are little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredElement {
    /// An enumeration of 8 bits with `FALSE` and `TRUE`.
    Bool,
    /// Signed integer of 1, 2, 4 or 8 bytes.
    Int(usize),
    /// Unsigned integer of 1, 2, 4 or 8 bytes.
    UInt(usize),
    /// IEEE 754 number of 2, 4 or 8 bytes.
    Float(usize),
    /// Two floating-point numbers, `r` and `i`, of 8 or 16 bytes together.
    Complex(usize),
    /// Bytes padded with zeros, marked as ASCII.
    Bytes(usize),
    /// UTF-8 padded with zeros.
    Text(usize),
    /// Bytes without a meaning.
    Opaque(usize),
    /// Named members, packed.
    Record(Vec<(String, StoredElement)>),
    /// An array with these extents, slowest axis first.
    Array(Vec<u64>, Box<StoredElement>),
}
