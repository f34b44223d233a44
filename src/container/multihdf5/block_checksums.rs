//! Checksums of the blocks of virtual files from when they were written, so that the seal of the container needs not read the
//! blocks again.

use std::collections::HashMap;

/// CRC-32 and number of the bytes that were stored for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockChecksum {
    pub(super) crc: u32,
    pub(super) len: u64,
}

/// Checksums of blocks that were written since the last commit, by the path of the virtual file from the root of the HDF5 file
/// and the number of the block from 0.
#[derive(Debug, Default)]
pub(super) struct BlockChecksums(HashMap<String, HashMap<u64, BlockChecksum>>);

impl BlockChecksums {
    /// Notes that `bytes` were stored for a block.
    pub(super) fn wrote(&mut self, path: &str, number: u64, bytes: &[u8]) {
        let path = path.trim_start_matches('/');
        let checksum = BlockChecksum { crc: crc32fast::hash(bytes), len: bytes.len() as u64 };
        match self.0.get_mut(path) {
            Some(blocks) => blocks.insert(number, checksum),
            None => self.0.entry(path.to_owned()).or_default().insert(number, checksum),
        };
    }

    /// Forgets the blocks of a virtual file: they are no longer what the HDF5 file holds.
    pub(super) fn forget(&mut self, path: &str) {
        self.0.remove(path.trim_start_matches('/'));
    }

    /// The checksum of what was stored for a block; `None` if that is not known.
    pub(super) fn get(&self, path: &str, number: u64) -> Option<BlockChecksum> {
        self.0.get(path.trim_start_matches('/'))?.get(&number).copied()
    }
}
