//! Limits on answers.

/// Limits on the size of one answer about an HDF5 file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest answer with values as plain bytes, npy, TIFF or CSV, in bytes; a larger one is an
    /// error.
    pub binary_bytes: u64,
    /// Largest JSON answer, in bytes; a larger one is an error.
    pub json_bytes: u64,
    /// Maximum number of values in a JSON answer; a complex number counts as two. A larger answer
    /// is an error.
    pub json_numbers: u64,
    /// Maximum number of members of a group that one answer describes; a larger group is an error.
    pub children: u64,
    /// Maximum number of paths in a list of a group and the objects below it; a longer list is an
    /// error.
    pub paths: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            binary_bytes: 256 << 20,
            json_bytes: 64 << 20,
            json_numbers: 4_000_000,
            children: 20_000,
            paths: 100_000,
        }
    }
}
