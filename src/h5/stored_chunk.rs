//! Chunks as a file stores them.

use crate::value::Shape;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkInfo {
    /// Counted in chunks, fastest axis first.
    pub(crate) index: Shape,
    pub(crate) address: u64,
    pub(crate) stored_bytes: u64,
    /// Bit `i` is set where filter `i` was skipped.
    pub(crate) filter_mask: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredChunk {
    /// Offset from the start of the file, in bytes.
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) filter_mask: u32,
}
