//! The forms that the cells of a column have in a native file. docs/layout.md, "A column".

use crate::value::DataType;

/// Hypercubes of a column beyond which it is written as cells of differing shapes.
pub(crate) const MAX_CUBES: usize = 64;

/// Bytes of an element in the file; a string is a reference of 16.
pub(crate) fn stored_size(data_type: DataType) -> u64 {
    if data_type.is_fixed_size() { data_type.size() as u64 } else { 16 }
}

/// Where the cells of a column are.
#[derive(Debug, Clone)]
pub(crate) struct StoredForm {
    pub(crate) kind: FormKind,
    /// The name of its dataset or group.
    pub(crate) link: String,
    /// Why the column is missing.
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormKind {
    Dense,
    Cubes,
    Ragged,
    Record,
    /// Not converted.
    Missing,
}
