//! Checksums of the blocks of virtual files from when they were written, so that the seal of the
//! container needs not read the blocks again.

use std::collections::HashMap;

/// Least stored bytes of a kept checksum, to save memory; smaller blocks are read again.
const LEAST_BYTES: usize = if cfg!(test) { 16 } else { 64 << 10 };

/// CRC-32 and number of the stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockChecksum {
    pub(super) crc: u32,
    pub(super) len: u64,
}

/// Checksums since the last commit, by path of the virtual file and number of the block from 0.
#[derive(Debug, Default)]
pub(super) struct BlockChecksums(HashMap<String, HashMap<u64, BlockChecksum>>);

impl BlockChecksums {
    pub(super) fn wrote(&mut self, path: &str, number: u64, bytes: &[u8]) {
        let path = path.trim_start_matches('/');
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), HashMap::new());
        }
        let Some(blocks) = self.0.get_mut(path) else { return };
        if bytes.len() < LEAST_BYTES {
            blocks.remove(&number);
        } else {
            blocks.insert(number, BlockChecksum { crc: crc32fast::hash(bytes), len: bytes.len() as u64 });
        }
    }

    /// The blocks are no longer those of the HDF5 file.
    pub(super) fn forget(&mut self, path: &str) {
        self.0.remove(path.trim_start_matches('/'));
    }

    pub(super) fn get(&self, path: &str, number: u64) -> Option<BlockChecksum> {
        self.0.get(path.trim_start_matches('/'))?.get(&number).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_of_a_block_count() {
        let mut written = BlockChecksums::default();
        let known = |written: &BlockChecksums, path: &str, number| written.get(path, number).map(|known| known.crc);
        let (first, second) = (vec![1; LEAST_BYTES], vec![2; LEAST_BYTES]);
        written.wrote("/A/f", 0, &first);
        written.wrote("/A/f", 0, &second);
        written.wrote("/A/f", 1, &first);
        assert_eq!(known(&written, "A/f", 0), Some(crc32fast::hash(&second)));
        assert_eq!(known(&written, "A/f", 1), Some(crc32fast::hash(&first)));
        assert_eq!((known(&written, "A/f", 2), known(&written, "f", 0)), (None, None));
        written.wrote("/A/f", 1, &first[1..]);
        assert_eq!(known(&written, "A/f", 1), None, "few bytes are read again");
        written.forget("/A/f");
        assert_eq!(known(&written, "A/f", 0), None);
    }
}
