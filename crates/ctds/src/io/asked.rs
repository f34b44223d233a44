//! Decides whether to read a whole block of a file or only the requested parts of it: a block is
//! read whole after many requests for its parts, or after a few for parts near each other.

use std::collections::VecDeque;

/// Blocks for which requests are counted; a further one replaces the oldest.
const REMEMBERED: usize = 32;
/// A block is read after `len / FOR_EACH` parts; `len`: bytes of a page, elements of a chunk.
const FOR_EACH: u64 = 1 << 10;
/// A block is worth reading after this many consecutive requests near each other.
const MANY_NEAR: u32 = 3;
/// Near: starts differ by less than 1/64 of the block's length.
const NEAR: u64 = 64;

/// Counts requests for parts of blocks of files (pages, chunks), to decide when it is worth reading
/// a whole block.
#[derive(Debug)]
pub struct Asked<K>(VecDeque<Entry<K>>);

#[derive(Debug)]
struct Entry<K> {
    block: K,
    /// Start of the part that was requested last.
    at: u64,
    asks: u32,
    /// Latest consecutive near requests; 1 if the last was far from the one before.
    near: u32,
}

impl<K> Default for Asked<K> {
    fn default() -> Self {
        Asked(VecDeque::new())
    }
}

impl<K: PartialEq> Asked<K> {
    /// Counts a read of a part, and tells whether the whole block should be read instead. `at` and
    /// `len` are both bytes or both elements.
    pub fn is_worth_reading(&mut self, block: K, at: u64, len: u64) -> bool {
        // the block of the last call is usually the block of this one
        let Some(entry) = self.0.iter_mut().rev().find(|entry| entry.block == block) else {
            if self.0.len() == REMEMBERED {
                self.0.pop_front();
            }
            self.0.push_back(Entry { block, at, asks: 1, near: 1 });
            return false;
        };
        entry.near = if entry.at.abs_diff(at) < len / NEAR { entry.near + 1 } else { 1 };
        entry.asks += 1;
        entry.at = at;
        entry.near >= MANY_NEAR || u64::from(entry.asks) >= len / FOR_EACH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_near_each_other_are_worth_the_block() {
        let mut asked = Asked::default();
        let found = [(1, 0), (2, 0), (1, 900), (1, 1800), (1, 2700)]
            .map(|(block, at)| asked.is_worth_reading(block, at, 64 << 10));
        assert_eq!(found, [false, false, false, true, true]);
    }

    #[test]
    fn parts_far_from_each_other_are_not_until_there_are_many() {
        let mut asked = Asked::default();
        let found: Vec<bool> = (0..20).map(|part| asked.is_worth_reading(1, part % 2 * 5000, 16 << 10)).collect();
        assert_eq!(found.iter().position(|&worth| worth), Some(15));
    }

    #[test]
    fn forgets_blocks() {
        let mut asked = Asked::default();
        for block in (0..=REMEMBERED).chain([0, 0]) {
            assert!(!asked.is_worth_reading(block, 0, 64 << 10));
        }
        assert!(asked.is_worth_reading(0, 0, 64 << 10));
    }
}
