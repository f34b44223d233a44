//! Element types of HDF5 datasets that hold arrays of other formats, such as BLZ (arrays in compressed chunks of rows);
//! casacore lacks some of these types.

/// The type of the elements of an HDF5 dataset; numbers are little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredElement {
    /// A truth value: an 8-bit enumeration with the members `FALSE` (0) and `TRUE` (1).
    Bool,
    /// Signed integer of this many bytes: 1, 2, 4 or 8.
    Int(usize),
    /// Unsigned integer of this many bytes: 1, 2, 4 or 8.
    UInt(usize),
    /// IEEE 754 number of this many bytes: 2, 4 or 8.
    Float(usize),
    /// Complex number of two floating-point numbers, `r` and `i`, of this many bytes together: 8 or 16.
    Complex(usize),
    /// An ASCII string of this fixed number of bytes, padded with NUL.
    Bytes(usize),
    /// A UTF-8 string of this fixed number of bytes, padded with NUL.
    Text(usize),
    /// An opaque element: this many bytes without a meaning.
    Opaque(usize),
    /// A record (HDF5 compound): names and types of its members, without gaps between them.
    Record(Vec<(String, StoredElement)>),
    /// An element that is itself an array: its extents, slowest axis first, and the type of the array's elements.
    Array(Vec<u64>, Box<StoredElement>),
}
