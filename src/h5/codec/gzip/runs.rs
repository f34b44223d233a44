//! Encodes blocks of deflate in which only runs of one byte are shortened: repetitions of the byte
//! before them, at distance 1 (RFC 1951, 3.2.5). Suits flags, weights, constant values, and numbers
//! of which some repeat. zlib's strategy `Rle` takes about three times as long for blocks of about
//! the same length.

use super::codes::{BitWriter, Code, SYMBOLS, write_block};

/// Tokens in a block, chosen as in `codes.rs`.
const BLOCK: usize = 32 << 10;
/// Bytes turned to tokens at once.
const STEP: usize = 8;
/// Shortest run, as in deflate.
const SHORTEST: usize = 3;
/// Limit of deflate.
const LONGEST: usize = 258;
/// A run of `n` bytes is the token `RUN + n`; smaller tokens are single bytes.
const RUN: usize = 256;
const TOKENS: usize = RUN + LONGEST + 1;

#[derive(Debug)]
pub(super) struct Runs {
    tokens: Vec<u16>,
}

impl Runs {
    pub(super) fn new() -> Self {
        Runs { tokens: vec![0; BLOCK + STEP] }
    }

    pub(super) fn encode(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut start = 0;
        while start < bytes.len() {
            let (count, end) = self.find(bytes, start);
            write_tokens(&self.tokens[..count], &bytes[start..end], out);
            start = end;
        }
    }

    /// Returns the number of tokens and the index after the last byte.
    fn find(&mut self, bytes: &[u8], mut at: usize) -> (usize, usize) {
        let mut count = 0;
        // nothing is before the first byte
        if at == 0 {
            self.tokens[0] = bytes[0].into();
            (at, count) = (1, 1);
        }
        while count < BLOCK && at < bytes.len() {
            let now = step(bytes, at);
            self.tokens[count..count + STEP].iter_mut().zip(now).for_each(|(token, byte)| *token = byte.into());
            let literals = before_run(step(bytes, at - 1), now).min(bytes.len() - at);
            if literals > 0 {
                count += literals;
                at += literals;
                continue;
            }
            // no more than this block can take, so that a run is not measured again for each block
            let mut left = run(&bytes[..bytes.len().min(at + BLOCK * LONGEST)], at);
            // the zeros after the last byte only seemed to continue a run
            if left < SHORTEST {
                count += 1;
                at += 1;
            }
            while left >= SHORTEST && count < BLOCK {
                let now = left.min(LONGEST);
                self.tokens[count] = (RUN + now) as u16;
                count += 1;
                left -= now;
                at += now;
            }
        }
        (count, at)
    }
}

/// Zeros after the last byte.
fn step(bytes: &[u8], at: usize) -> [u8; STEP] {
    let rest = &bytes[at..];
    rest.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; STEP];
        padded[..rest.len()].copy_from_slice(rest);
        padded
    })
}

/// Bytes in `now` before the first run of [`SHORTEST`], or before the bytes at the end that may
/// begin one. `before` are the bytes one place before those of `now`.
fn before_run(before: [u8; STEP], now: [u8; STEP]) -> usize {
    const LOW: u64 = u64::from_le_bytes([0x7f; STEP]);
    let differ = u64::from_le_bytes(before) ^ u64::from_le_bytes(now);
    // the highest bit of each byte that equals the one before
    let equal = !(((differ & LOW) + LOW) | differ | LOW);
    let three = equal & (equal >> 8) & (equal >> 16);
    if three != 0 {
        return (three.trailing_zeros() / 8) as usize;
    }
    let last = |bytes: usize| equal >> (64 - 8 * bytes) & 0x80 != 0;
    STEP - if !last(1) { 0 } else { 1 + usize::from(last(2)) }
}

/// Bytes from `at` on that equal the byte before it.
fn run(bytes: &[u8], at: usize) -> usize {
    let byte = bytes[at - 1];
    let (words, rest) = bytes[at..].as_chunks::<STEP>();
    for (number, word) in words.iter().enumerate() {
        let differ = u64::from_le_bytes(*word) ^ u64::from_le_bytes([byte; STEP]);
        if differ != 0 {
            return number * STEP + (differ.trailing_zeros() / 8) as usize;
        }
    }
    words.len() * STEP + rest.iter().take_while(|&&other| other == byte).count()
}

/// Tokens stand for `bytes`.
fn write_tokens(tokens: &[u16], bytes: &[u8], out: &mut Vec<u8>) {
    let occurrences = count(tokens);
    let (mut counts, mut more_bits) = ([0; SYMBOLS], 0);
    counts[..RUN].copy_from_slice(&occurrences[..RUN]);
    for len in SHORTEST..=LONGEST {
        let (length, count) = (Length::of(len), occurrences[RUN + len]);
        counts[length.symbol] += count;
        more_bits += count as usize * length.more_bits() as usize;
    }
    write_block(counts, more_bits, bytes, out, |writer, codes| put_tokens(writer, tokens, codes));
}

fn count(tokens: &[u16]) -> [u32; TOKENS] {
    // consecutive tokens are counted in two tables, so that the processor does not wait where they
    // are equal
    let (mut even, mut odd) = ([0; TOKENS], [0; TOKENS]);
    let (pairs, rest) = tokens.as_chunks::<2>();
    for pair in pairs {
        even[usize::from(pair[0])] += 1;
        odd[usize::from(pair[1])] += 1;
    }
    rest.iter().for_each(|&token| even[usize::from(token)] += 1);
    even.iter_mut().zip(odd).for_each(|(even, odd)| *even += odd);
    even
}

fn put_tokens(writer: &mut BitWriter<'_>, tokens: &[u16], codes: &[Code; SYMBOLS]) {
    // the bits of each token, and their number
    let mut table = [(0u64, 0u32); TOKENS];
    for (entry, code) in table[..RUN].iter_mut().zip(codes) {
        *entry = (code.bits.into(), code.len.into());
    }
    for len in SHORTEST..=LONGEST {
        let length = Length::of(len);
        let code = codes[length.symbol];
        // the code of distance 1 is a bit 0
        table[RUN + len] = (u64::from(code.bits) | length.extra << code.len, u32::from(code.len) + length.more_bits());
    }
    let (pairs, rest) = tokens.as_chunks::<2>();
    for [first, second] in pairs {
        let ((first, len), (second, more)) = (table[usize::from(*first)], table[usize::from(*second)]);
        writer.put(first | second << len, len + more);
    }
    for &token in rest {
        let (bits, len) = table[usize::from(token)];
        writer.put(bits, len);
    }
}

/// A symbol, and bits that follow its Huffman code.
#[derive(Debug, Clone, Copy)]
struct Length {
    /// 257 to 285.
    symbol: usize,
    extra: u64,
    /// 0 to 5.
    extra_bits: u32,
}

impl Length {
    /// A repetition of [`SHORTEST`] to [`LONGEST`] bytes.
    fn of(len: usize) -> Self {
        match len {
            ..=10 => Length { symbol: 254 + len, extra: 0, extra_bits: 0 },
            LONGEST => Length { symbol: 285, extra: 0, extra_bits: 0 },
            // four symbols for each number of further bits
            _ => {
                let steps = len - SHORTEST;
                let extra_bits = steps.ilog2() - 2;
                let symbol = 261 + 4 * extra_bits as usize + (steps >> extra_bits & 3);
                Length { symbol, extra: steps as u64 & ((1 << extra_bits) - 1), extra_bits }
            }
        }
    }

    /// Extra bits, and one for the code of the distance, which is always 1.
    fn more_bits(self) -> u32 {
        self.extra_bits + 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::estimate::noise;
    use super::*;

    /// Two other decoders give the bytes back; returns the encoded length.
    fn decodes(bytes: &[u8]) -> usize {
        let mut out = Vec::new();
        Runs::new().encode(bytes, &mut out);
        super::super::codes::tests::decode(&out, bytes);
        out.len()
    }

    #[test]
    fn others_decode_runs_of_every_length() {
        let mut bytes = Vec::new();
        for len in 0..=2 * LONGEST + 4 {
            bytes.extend(std::iter::repeat_n((len % 251) as u8, len));
            // noise after a run begins at each place of a step
            bytes.extend_from_slice(&noise(len % 11));
        }
        assert!(decodes(&bytes) < bytes.len() / 10);
        for len in 1..40 {
            decodes(&vec![0; len]);
            decodes(&bytes[1000..1000 + len]);
            decodes(&[&noise(len)[..], &vec![7; len]].concat());
            decodes(&[&vec![0; len][..], &noise(len)].concat());
        }
    }

    #[test]
    fn long_runs_take_little() {
        // a run of the longest length takes two bits
        let len = 1 << 20;
        assert!(decodes(&vec![5; len]) < len / LONGEST / 4 + 64);
        // one that goes on in the next block
        let longer = BLOCK * LONGEST + 1000;
        assert!(decodes(&vec![5; longer]) < longer / LONGEST / 4 + 128);
        let padded = [&noise(100_000)[..], &vec![0; len], &noise(5)].concat();
        assert!(decodes(&padded) < 100_000 + len / LONGEST + 200);
    }

    /// Four equal numbers in turn: a byte takes 9 bits and its run 2, instead of 32 together.
    #[test]
    fn short_runs_count() {
        let fours: Vec<u8> = noise(20_000).into_iter().flat_map(|byte| [byte; 4]).collect();
        assert!(decodes(&fours) < fours.len() * 12 / 32);
        let noise = noise(200_000);
        assert!(decodes(&noise) < noise.len() + 64);
    }

    #[test]
    fn runs_are_found_where_they_begin() {
        let bytes = [1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 4, 5];
        let mut runs = Runs::new();
        let (count, end) = runs.find(&bytes, 0);
        let run = (RUN + 3) as u16;
        assert_eq!((&runs.tokens[..count], end), (&[1, 2, run, 3, 3, 4, run, 5][..], bytes.len()));
    }
}
