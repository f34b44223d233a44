//! A store as the protocol sees it, whatever keeps its blocks.

use std::sync::Arc;

use ctds::error::Result;

use super::hash::{BlockHash, HashKind};
use super::protocol::HashRange;

/// A store with archives that is shared by all connections.
pub trait Blocks: Send + Sync {
    /// `None` if the store does not have the block; fails if it is damaged.
    fn get(&self, hash: &BlockHash) -> Result<Option<Arc<Vec<u8>>>>;

    /// Whether the store has the block, which is not read.
    fn contains(&self, hash: &BlockHash) -> Result<bool>;

    /// Returns the hash of the block, which is stored if the store does not have it.
    fn add(&self, kind: HashKind, block: &[u8]) -> Result<BlockHash>;

    /// Makes the blocks durable.
    fn flush(&self) -> Result<()>;

    /// Calls `each` with the hashes in the range, in order; an error of `each` ends it.
    fn hashes(&self, range: &HashRange, each: &mut dyn FnMut(&BlockHash) -> Result<()>) -> Result<()>;

    /// The text of an archive, empty if it does not exist; `Usage` for a name that none can have.
    fn archive(&self, name: &str) -> Result<Vec<u8>>;

    /// Appends a line, with its line feed, after all blocks are durable; makes the archive if it
    /// does not exist.
    fn append(&self, archive: &str, line: &str) -> Result<()>;
}
