//! Estimates how well a segment of a chunk would compress, at a small part of the cost of
//! compressing it.

use super::histogram::Histogram;

/// Bytes in the middle of a segment; deflate finds repetitions up to this distance.
const SAMPLE: usize = 32 << 10;
/// Bytes at the end of the sample whose length is estimated, with repetitions of earlier ones.
const PRICED: usize = 8 << 10;
const HASH_BITS: u32 = 13;
/// Limit of deflate.
const LONGEST: usize = 258;
/// Lengths are in 1/256 bit, as whole numbers are added faster than floating-point ones.
const PARTS: f32 = 256.0;
/// Bits of a byte whose value does not occur among the counted ones.
const RARE: f32 = 14.0;
/// Counted bytes at the start of each [`COUNTED_OF`]: a quarter has about the whole's frequencies.
const COUNTED: usize = 1 << 10;
const COUNTED_OF: usize = 4 << 10;
/// Distance of remembered positions before the estimated part, and within a repetition.
const HISTORY_STEP: usize = 8;

/// Expected ratios of compressed to original length: `segment` of all bytes with Huffman codes of
/// single bytes, the others of a sample, `runs` and `matches` with repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) segment: f32,
    pub(super) codes: f32,
    pub(super) runs: f32,
    pub(super) matches: f32,
}

/// Keeps its working memory from segment to segment.
#[derive(Debug)]
pub(super) struct Estimator {
    /// Last position of four bytes by their hash; `u16::MAX` for none.
    places: Vec<u16>,
}

impl Estimator {
    pub(super) fn new() -> Self {
        Estimator { places: vec![0; 1 << HASH_BITS] }
    }

    /// `segment` has at least 8 bytes.
    pub(super) fn estimate(&mut self, segment: &[u8]) -> Estimate {
        let (counts, counted) = count(segment);
        let prices = counts.map(|count| match count {
            0 => (RARE * PARTS) as u32,
            // no code is shorter than a bit, nor longer than 15
            _ => ((counted as f32 / count as f32).log2().clamp(1.0, 15.0) * PARTS) as u32,
        });
        let all = counts.iter().zip(&prices).map(|(&count, &price)| u64::from(count) * u64::from(price)).sum::<u64>();
        let skipped = segment.len().saturating_sub(SAMPLE) / 2;
        let sample = &segment[skipped..segment.len() - skipped];
        let from = sample.len() - PRICED.min(sample.len() / 2);
        let part = |price: f32, bytes: usize| price / (8.0 * PARTS * bytes as f32);
        let of_priced = |price: u32| part(price as f32, sample.len() - from);
        let codes = price(&sample[from..], &prices);
        let runs = if has_runs(&sample[from..]) { price_with_runs(sample, from, &prices) } else { codes };
        Estimate {
            segment: part(all as f32, counted),
            codes: of_priced(codes),
            runs: of_priced(runs),
            matches: of_priced(self.price_with_matches(sample, from, &prices)),
        }
    }

    /// Length in 1/256 bit of the bytes from `from` on; `prices` are code lengths of byte values.
    fn price_with_matches(&mut self, sample: &[u8], from: usize, prices: &[u32; 256]) -> u32 {
        let four = |at: usize| sample[at..].first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
        let hash = |four: u32| (four.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize;
        self.places.fill(u16::MAX);
        // a repetition that begins between two of these places is found at the next one
        for at in (0..from).step_by(HISTORY_STEP) {
            if let Some(bytes) = four(at) {
                self.places[hash(bytes)] = at as u16;
            }
        }
        let (mut at, mut parts, mut misses) = (from, 0, 0);
        while let Some(bytes) = four(at) {
            let before = usize::from(std::mem::replace(&mut self.places[hash(bytes)], at as u16));
            if before < at && four(before) == Some(bytes) {
                let most = LONGEST.min(sample.len() - at);
                let len = (4..most).find(|&i| sample[before + i] != sample[at + i]).unwrap_or(most);
                let repeated = price_of_match(len, at - before);
                if repeated < price(&sample[at..at + len], prices) {
                    parts += repeated;
                    for inside in (at + 1..at + len).step_by(HISTORY_STEP) {
                        if let Some(bytes) = four(inside) {
                            self.places[hash(bytes)] = inside as u16;
                        }
                    }
                    (at, misses) = (at + len, 0);
                    continue;
                }
            }
            // the longer nothing repeats, the fewer places are looked at
            misses += 1;
            let next = (at + 1 + misses / 64).min(sample.len());
            parts += price(&sample[at..next], prices);
            at = next;
        }
        parts + price(&sample[at..], prices)
    }
}

/// Counts byte values in about a quarter of `bytes`; returns also the number of bytes counted.
fn count(bytes: &[u8]) -> ([u32; 256], usize) {
    let mut histogram = Histogram::new();
    let mut counted = 0;
    for block in bytes.chunks(COUNTED_OF) {
        let block = &block[..block.len().min(COUNTED)];
        histogram.add(block);
        counted += block.len();
    }
    (histogram.counts(), counted)
}

fn price(bytes: &[u8], prices: &[u32; 256]) -> u32 {
    bytes.iter().map(|&byte| prices[usize::from(byte)]).sum()
}

/// About 7 bits for the length, 5 for the distance, and their extra bits.
fn price_of_match(len: usize, distance: usize) -> u32 {
    let extra_of_len = if len > 10 { (len as f32).log2() - 2.5 } else { 0.0 };
    let extra_of_distance = if distance > 4 { (distance as f32).log2() - 2.0 } else { 0.0 };
    ((11.5 + extra_of_len + extra_of_distance) * PARTS) as u32
}

fn has_runs(bytes: &[u8]) -> bool {
    let equal = bytes.iter().zip(&bytes[1..]).map(|(a, b)| usize::from(a == b)).sum::<usize>();
    equal >= bytes.len() / 64
}

/// As [`price_with_matches`](Self::price_with_matches), with runs of one byte only.
fn price_with_runs(sample: &[u8], from: usize, prices: &[u32; 256]) -> u32 {
    // all distances are 1: their code has a bit or two
    const CHEAPER: u32 = (3.5 * PARTS) as u32;
    let (mut at, mut parts) = (from, 0);
    while let Some(&byte) = sample.get(at) {
        let literal = prices[usize::from(byte)];
        if at > 0 && sample[at - 1] == byte {
            let most = LONGEST.min(sample.len() - at);
            let len = (1..most).find(|&i| sample[at + i] != byte).unwrap_or(most);
            let run = price_of_match(len, 1) - CHEAPER;
            if len >= 3 && run < literal * len as u32 {
                parts += run;
                at += len;
                continue;
            }
        }
        parts += literal;
        at += 1;
    }
    parts
}

/// Bytes without pattern, always the same.
#[cfg(test)]
pub(super) fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(len)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_gains_nothing() {
        for len in [8, 100, 32 << 10, 64 << 10] {
            let bytes = noise(len);
            let estimate = Estimator::new().estimate(&bytes);
            // few bytes of noise do not show yet that all values are as frequent
            assert!(len < 1000 || estimate.codes.min(estimate.runs).min(estimate.matches) > 0.985, "{estimate:?}");
        }
    }

    #[test]
    fn each_kind_is_recognised() {
        let noise = noise(64 << 10);
        let few_values: Vec<u8> = noise.iter().map(|byte| byte & 7).collect();
        let found = Estimator::new().estimate(&few_values);
        assert!((0.35..0.4).contains(&found.codes) && found.matches > 0.95 * found.codes, "{found:?}");

        let runs: Vec<u8> = noise.iter().map(|&byte| u8::from(byte > 250)).collect();
        let found = Estimator::new().estimate(&runs);
        assert!(found.codes > 0.125 && found.runs < 0.08 && found.runs < found.matches, "{found:?}");

        let periodic: Vec<u8> = noise[..5000].iter().copied().cycle().take(64 << 10).collect();
        let found = Estimator::new().estimate(&periodic);
        assert!(found.codes > 0.98 && found.matches < 0.05, "{found:?}");

        // half of the segment is in no sample
        let half = [&noise[..40 << 10], &[0; 24 << 10][..]].concat();
        let found = Estimator::new().estimate(&half);
        assert!(found.segment < 0.8, "{found:?}");
    }
}
