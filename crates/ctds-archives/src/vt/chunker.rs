//! Cuts files into blocks: at boundaries that depend on their content, so that bytes inserted into
//! a file change few blocks. The content is seen through a rolling hash. Lengths are in bytes.

/// Length that a block must exceed before it can end at a boundary in the content.
const SMALLEST: usize = 2048;

/// Largest block that is cut by content, as in the original program, the Python package cs.vt.
pub(super) const LARGEST: usize = 16_383;

/// Bits that are zero where a block ends: on average 8 KiB after the smallest length.
const MASK: u64 = 0x1fff << 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Content,
    /// All blocks of a file but the last have this length.
    Fixed(usize),
}

/// A random-looking number for each byte value, from which the rolling hash is computed.
static GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state: u64 = 0x6835_6272_6964_6765;
    let mut at = 0;
    while at < table.len() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[at] = value ^ (value >> 31);
        at += 1;
    }
    table
}

impl Cut {
    pub(super) fn largest(self) -> usize {
        match self {
            Cut::Content => LARGEST,
            Cut::Fixed(bytes) => bytes,
        }
    }

    /// `data` must have at least the bytes of the largest block, or reach the end of the file.
    pub(super) fn first(self, data: &[u8]) -> usize {
        let data = &data[..data.len().min(self.largest())];
        if self != Cut::Content || data.len() <= SMALLEST {
            return data.len();
        }
        let mut value: u64 = 0;
        // a bit of the mask depends on the last 41 to 54 bytes
        for (at, &byte) in data.iter().enumerate().skip(SMALLEST - 64) {
            value = (value << 1).wrapping_add(GEAR[usize::from(byte)]);
            if value & MASK == 0 && at >= SMALLEST {
                return at + 1;
            }
        }
        data.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut state: u64 = 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn blocks(cut: Cut, mut data: &[u8]) -> Vec<&[u8]> {
        let mut blocks = Vec::new();
        while !data.is_empty() {
            let (block, rest) = data.split_at(cut.first(data));
            blocks.push(block);
            data = rest;
        }
        blocks
    }

    #[test]
    fn sizes_of_blocks_are_within_the_limits() {
        let data = noise(4 << 20);
        let found = blocks(Cut::Content, &data);
        assert_eq!(found.concat(), data);
        let (last, rest) = found.split_last().unwrap();
        assert!(!last.is_empty() && rest.iter().all(|block| (SMALLEST..=LARGEST).contains(&block.len())));
        let mean = data.len() / found.len();
        assert!((7000..11_000).contains(&mean), "{mean}");
        assert!(blocks(Cut::Fixed(1000), &data[..2500]).iter().map(|block| block.len()).eq([1000, 1000, 500]));
        assert!(blocks(Cut::Content, &[0; 40_000]).iter().map(|block| block.len()).eq([LARGEST, LARGEST, 7234]));
    }

    #[test]
    fn inserted_bytes_change_few_blocks() {
        let data = noise(1 << 20);
        let before: HashSet<_> = blocks(Cut::Content, &data).into_iter().collect();
        let changed = [&data[..300_000], b"inserted", &data[300_000..]].concat();
        let after = blocks(Cut::Content, &changed);
        let new = after.iter().filter(|block| !before.contains(*block)).count();
        assert!(new <= 3, "{new} of {} blocks are new", after.len());
    }
}
