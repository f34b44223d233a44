//! Element types of HDF5 datasets that hold arrays of other formats, such as BLZ (arrays in
//! compressed chunks of rows); casacore lacks some of these types.

/// Numbers are little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredElement {
    /// An 8-bit enumeration with the members `FALSE` (0) and `TRUE` (1).
    Bool,
    /// Signed, bytes: 1, 2, 4 or 8.
    Int(usize),
    /// Bytes: 1, 2, 4 or 8.
    UInt(usize),
    /// IEEE 754, bytes: 2, 4 or 8.
    Float(usize),
    /// Floating-point numbers `r` and `i`, bytes together: 8 or 16.
    Complex(usize),
    /// ASCII of this number of bytes, padded with NUL.
    Bytes(usize),
    /// UTF-8 of this number of bytes, padded with NUL.
    Text(usize),
    /// Bytes without a meaning.
    Opaque(usize),
    /// A compound without gaps between its members.
    Record(Vec<(String, StoredElement)>),
    /// Extents, slowest axis first.
    Array(Vec<u64>, Box<StoredElement>),
}
