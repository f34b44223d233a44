//! Counts how often each byte value occurs in a segment of a chunk, for the encoder of gzip.

use std::array;

/// Four tables to be summed: consecutive bytes use different ones, so that equal ones do not wait.
#[derive(Debug)]
pub(super) struct Histogram([[u32; 256]; 4]);

impl Histogram {
    pub(super) fn new() -> Self {
        Histogram([[0; 256]; 4])
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        let [a, b, c, d] = &mut self.0;
        let (fours, rest) = bytes.as_chunks::<4>();
        for four in fours {
            a[usize::from(four[0])] += 1;
            b[usize::from(four[1])] += 1;
            c[usize::from(four[2])] += 1;
            d[usize::from(four[3])] += 1;
        }
        rest.iter().for_each(|&byte| a[usize::from(byte)] += 1);
    }

    pub(super) fn counts(&self) -> [u32; 256] {
        array::from_fn(|byte| self.0.iter().map(|counts| counts[byte]).sum())
    }
}
