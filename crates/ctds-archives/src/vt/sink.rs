//! A store as the writer of a tree sees it, on disk or on the other side of a stream.

use ctds::error::Result;

use super::hash::BlockHash;

/// A store that blocks are added to.
pub(super) trait Sink: Sync {
    /// Whether the block was added or, as far as that is known here, the store had it.
    fn has(&self, hash: &BlockHash) -> Result<bool>;

    /// A block as [`append`](Self::append) takes it.
    fn encode(&self, block: &[u8]) -> Vec<u8>;

    /// Adds a block if the store does not have it.
    fn append(&mut self, hash: &BlockHash, encoded: Vec<u8>) -> Result<()>;

    /// Called while other blocks are prepared: writes what is buffered.
    fn make_room(&self) -> Result<()>;
}
