//! Where the blocks of archives are read: stores on disk, or one on the other side of a stream.

use std::fmt;
use std::sync::Arc;

use ctds::error::Result;

use super::hash::BlockHash;
use super::plain::InFile;

pub(super) trait Source: fmt::Debug + Send + Sync {
    /// Compares the bytes with the hash; `Format` if the block is missing or damaged.
    fn block(&self, hash: &BlockHash) -> Result<Arc<Vec<u8>>> {
        self.block_of_file(hash, None)
    }

    /// As [`block`](Self::block). With `place`, the block is also searched for in Platonic stores.
    fn block_of_file(&self, hash: &BlockHash, place: Option<InFile>) -> Result<Arc<Vec<u8>>>;
}
