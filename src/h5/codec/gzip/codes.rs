//! Writes blocks of deflate with Huffman codes of their own (RFC 1951, 3.2.7). [`encode`] encodes
//! single bytes without repetitions, which suits the exponents of noisy floating-point numbers:
//! zlib's strategy `HuffmanOnly` takes about four times as long for the same blocks.

use super::histogram::Histogram;
use super::stored::store;

/// Bytes: few enough to follow changing frequencies, many enough to repay the codes' description.
const BLOCK: usize = 32 << 10;
/// The 256 literals, the end of the block, and the lengths of repetitions.
pub(super) const SYMBOLS: usize = 286;
const END: usize = 256;
/// Deflate allows 15 bits; four codes of 14 fit into a 64-bit word beside up to 7 pending bits.
const LONGEST: usize = 14;
/// Bits of codes for [`LENGTHS`].
const LONGEST_OF_LENGTHS: usize = 7;
/// Symbols that describe code lengths: 0 to 15 are lengths in bits, and 16 to 18 repeat a length.
const LENGTHS: usize = 19;
/// Stored order of the code lengths of [`LENGTHS`].
const ORDER: [usize; LENGTHS] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// Declared code lengths of distances. Only the first code is used, for repetitions of the byte
/// before; there are two since some programs refuse an incomplete set of codes.
const DISTANCES: [u8; 2] = [1, 1];

/// Appends blocks without repetitions; they decode to `bytes` and end at a whole byte.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for block in bytes.chunks(BLOCK) {
        encode_block(block, out);
    }
}

fn encode_block(bytes: &[u8], out: &mut Vec<u8>) {
    let mut counts = [0; SYMBOLS];
    let mut histogram = Histogram::new();
    histogram.add(bytes);
    counts[..END].copy_from_slice(&histogram.counts());
    write_block(counts, 0, bytes, out, |writer, codes| writer.put_literals(bytes, codes));
}

/// Appends a block that decodes to `bytes` and ends at a whole byte, stored if that is not longer.
/// `counts` lack the end of the block; `more_bits` is the number of bits after codes of symbols,
/// which `put_symbols` writes.
pub(super) fn write_block(
    mut counts: [u32; SYMBOLS],
    more_bits: usize,
    bytes: &[u8],
    out: &mut Vec<u8>,
    put_symbols: impl FnOnce(&mut BitWriter<'_>, &[Code; SYMBOLS]),
) {
    counts[END] = 1;
    let used = 1 + counts.iter().rposition(|&count| count > 0).unwrap_or(END);
    let codes = Codes::new(&counts, LONGEST);
    let lengths: Vec<u8> = codes.lengths[..used].iter().chain(&DISTANCES).copied().collect();
    let described = repeat_codes(&lengths);
    let mut symbol_counts = [0; LENGTHS];
    described.iter().for_each(|symbol| symbol_counts[symbol.symbol] += 1);
    let symbols = Codes::new(&symbol_counts, LONGEST_OF_LENGTHS);
    let stored = ORDER.iter().rposition(|&symbol| symbols.lengths[symbol] > 0).map_or(4, |last| (last + 1).max(4));

    let bits = 17
        + 3 * stored
        + described
            .iter()
            .map(|symbol| usize::from(symbols.lengths[symbol.symbol]) + symbol.extra_bits())
            .sum::<usize>()
        + counts.iter().zip(&codes.lengths).map(|(&count, &len)| count as usize * usize::from(len)).sum::<usize>()
        + more_bits;
    // with the empty block that ends at a byte
    let len = (bits + 3).div_ceil(8) + 4;
    if len >= bytes.len() {
        return store(bytes, out);
    }
    // the last word is written whole
    let start = out.len();
    out.resize(start + len + 8, 0);
    let mut writer = BitWriter { out: &mut out[start..], at: 0, word: 0, bits: 0 };
    // not the last block, codes of its own; literals from 257 on, distances from 1 on, lengths from
    // 4 on
    writer.put(0b100, 3);
    writer.put((used - 257) as u64, 5);
    writer.put((DISTANCES.len() - 1) as u64, 5);
    writer.put((stored - 4) as u64, 4);
    ORDER[..stored].iter().for_each(|&symbol| writer.put(symbols.lengths[symbol].into(), 3));
    for symbol in &described {
        writer.put_code(symbols.codes[symbol.symbol]);
        writer.put(symbol.extra.into(), symbol.extra_bits() as u32);
    }
    put_symbols(&mut writer, &codes.codes);
    writer.put_code(codes.codes[END]);
    // an empty stored block: three bits, then at a byte its length, and that inverted
    writer.put(0, 3);
    let end = start + writer.finish();
    out.truncate(end);
    out.extend_from_slice(&[0, 0, 0xff, 0xff]);
}

struct Codes<const N: usize> {
    /// Bits; 0 for symbols that do not occur.
    lengths: [u8; N],
    codes: [Code; N],
}

/// Bits, of which the lowest is written first, and their number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Code {
    pub(super) bits: u16,
    pub(super) len: u16,
}

impl<const N: usize> Codes<N> {
    /// The shortest codes of at most `longest` bits; a symbol that does not occur has none.
    fn new(counts: &[u32; N], longest: usize) -> Self {
        let mut symbols: Vec<usize> = (0..N).filter(|&symbol| counts[symbol] > 0).collect();
        symbols.sort_by_key(|&symbol| counts[symbol]);
        let mut numbers = depths(symbols.iter().map(|&symbol| counts[symbol]));
        shorten(&mut numbers, longest);
        // the rarest have the longest codes
        let mut lengths = [0; N];
        let by_length =
            numbers.iter().enumerate().rev().flat_map(|(len, &number)| std::iter::repeat_n(len as u8, number));
        symbols.iter().zip(by_length).for_each(|(&symbol, len)| lengths[symbol] = len);

        // codes of one length follow each other, in the order of the symbols
        let mut next = vec![0u16; numbers.len() + 1];
        for len in 1..numbers.len() {
            next[len + 1] = (next[len] + numbers[len] as u16) << 1;
        }
        let codes = lengths.map(|len| match len {
            0 => Code::default(),
            len => {
                let code = next[usize::from(len)];
                next[usize::from(len)] += 1;
                Code { bits: code.reverse_bits() >> (16 - len), len: len.into() }
            }
        });
        Codes { lengths, codes }
    }
}

/// Entry `n` counts the codes of `n` bits; `counts` are occurrences of symbols, the smallest first.
fn depths(counts: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut weights: Vec<u32> = counts.collect();
    let leaves = weights.len();
    let mut parents = vec![0; (2 * leaves).saturating_sub(1)];
    // the two lightest of the leaves and of the inner nodes, both of which ascend, get a parent,
    // again and again
    let (mut leaf, mut inner) = (0, leaves);
    while weights.len() + 1 < 2 * leaves {
        let parent = weights.len();
        let mut weight = 0;
        for _ in 0..2 {
            let takes_leaf = leaf < leaves && (inner == parent || weights[leaf] <= weights[inner]);
            let lightest = if takes_leaf { &mut leaf } else { &mut inner };
            weight += weights[*lightest];
            parents[*lightest] = parent;
            *lightest += 1;
        }
        weights.push(weight);
    }
    let mut depth = vec![0; parents.len()];
    let mut numbers = vec![0; 2];
    for node in (0..parents.len()).rev() {
        // the root is the last node; a symbol alone has a code as well
        depth[node] = if node + 1 == parents.len() { usize::from(leaves == 1) } else { depth[parents[node]] + 1 };
        if node < leaves {
            numbers.resize(numbers.len().max(depth[node] + 1), 0);
            numbers[depth[node]] += 1;
        }
    }
    numbers
}

/// Limits codes to `longest` bits, and lengthens shorter ones until a prefix code exists.
fn shorten(numbers: &mut Vec<usize>, longest: usize) {
    let too_long: usize = numbers.iter().skip(longest + 1).sum();
    numbers.resize(longest + 1, 0);
    numbers[longest] += too_long;
    let mut taken: usize = (1..=longest).map(|len| numbers[len] << (longest - len)).sum();
    while taken > 1 << longest {
        // a code of the longest goes beside another, which becomes longer by a bit
        let Some(len) = (1..longest).rev().find(|&len| numbers[len] > 0) else { return };
        numbers[longest] -= 1;
        numbers[len] -= 1;
        numbers[len + 1] += 2;
        taken -= 1;
    }
}

#[derive(Debug, Clone, Copy)]
struct LengthSymbol {
    /// 0 to 15 is a length in bits, 16 repeats the length before it, 17 and 18 repeat the length 0.
    symbol: usize,
    /// Repetitions minus the least encodable (3 for 16 and 17, 11 for 18); 0 for a length.
    extra: u8,
}

impl LengthSymbol {
    fn extra_bits(self) -> usize {
        match self.symbol {
            16 => 2,
            17 => 3,
            18 => 7,
            _ => 0,
        }
    }
}

fn repeat_codes(lengths: &[u8]) -> Vec<LengthSymbol> {
    let mut symbols = Vec::new();
    for run in lengths.chunk_by(|a, b| a == b) {
        let length = usize::from(run[0]);
        let mut left = run.len();
        if length > 0 {
            symbols.push(LengthSymbol { symbol: length, extra: 0 });
            left -= 1;
        }
        while left > 0 {
            let (symbol, fewest, most) = match (length, left) {
                (0, 11..) => (18, 11, 138),
                (0, 3..) => (17, 3, 10),
                (1.., 3..) => (16, 3, 6),
                _ => (length, 1, 1),
            };
            let now = left.min(most);
            symbols.push(LengthSymbol { symbol, extra: (now - fewest) as u8 });
            left -= now;
        }
    }
    symbols
}

/// Lowest bit of a byte first; `out` needs eight spare bytes, because each write stores eight.
pub(super) struct BitWriter<'a> {
    out: &'a mut [u8],
    at: usize,
    word: u64,
    /// Bits in `word` still to be written: less than 8 after each call.
    bits: u32,
}

impl BitWriter<'_> {
    /// Writes the lowest `len` bits, at most 56.
    pub(super) fn put(&mut self, value: u64, len: u32) {
        self.word |= value << self.bits;
        self.bits += len;
        self.flush();
    }

    fn put_code(&mut self, code: Code) {
        self.put(code.bits.into(), code.len.into());
    }

    fn put_literals(&mut self, bytes: &[u8], codes: &[Code; SYMBOLS]) {
        let (fours, rest) = bytes.as_chunks::<4>();
        for four in fours {
            let (mut word, mut bits) = (self.word, self.bits);
            for &byte in four {
                let code = codes[usize::from(byte)];
                word |= u64::from(code.bits) << bits;
                bits += u32::from(code.len);
            }
            (self.word, self.bits) = (word, bits);
            self.flush();
        }
        rest.iter().for_each(|&byte| self.put_code(codes[usize::from(byte)]));
    }

    /// Up to 7 bits remain in `word`.
    fn flush(&mut self) {
        self.out[self.at..self.at + 8].copy_from_slice(&self.word.to_le_bytes());
        self.at += self.bits as usize / 8;
        self.word >>= self.bits & !7;
        self.bits &= 7;
    }

    /// Returns the number of bytes written; unused bits of the last one are 0.
    fn finish(self) -> usize {
        self.at + usize::from(self.bits > 0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::estimate::noise;
    use super::*;

    /// Two other programs decode `blocks` to `bytes`.
    pub(in super::super) fn decode(blocks: &[u8], bytes: &[u8]) {
        let stream = [&[0x78, 0x5e], blocks, &[3, 0], &libdeflater::adler32(bytes).to_be_bytes()].concat();
        let mut back = vec![0; bytes.len()];
        let config = zlib_rs::InflateConfig::default();
        let (decoded, ended) = zlib_rs::decompress_slice(&mut back, &stream, config);
        assert!(ended == zlib_rs::ReturnCode::Ok && decoded == bytes, "{} bytes: {ended:?}", bytes.len());
        let mut again = vec![0; bytes.len()];
        assert_eq!(libdeflater::Decompressor::new().zlib_decompress(&stream, &mut again), Ok(bytes.len()));
        assert_eq!(again, bytes);
    }

    fn decodes(bytes: &[u8]) -> usize {
        let mut out = Vec::new();
        encode(bytes, &mut out);
        decode(&out, bytes);
        out.len()
    }

    #[test]
    fn others_decode_every_alphabet() {
        let noise = noise(3 * BLOCK + 1);
        for values in 1..=256usize {
            for len in [1, 2, 1000, 4 * values, BLOCK - 1] {
                let bytes: Vec<u8> = noise[..len].iter().map(|&byte| (usize::from(byte) % values) as u8).collect();
                decodes(&bytes);
            }
        }
        for len in [BLOCK, BLOCK + 1, 2 * BLOCK, noise.len()] {
            let bytes: Vec<u8> = noise[..len].iter().map(|byte| byte & 15).collect();
            // the end of a block takes half of a code away from one of the sixteen: a bit more for
            // each sixteenth byte
            let (least, most) = (len / 2, len / 2 + len / 100 + 64 * len.div_ceil(BLOCK));
            assert!((least..most).contains(&decodes(&bytes)), "{len}");
        }
        assert!(decodes(&noise) < noise.len() + 24);
    }

    /// Frequencies of a Fibonacci series have codes as long as there are symbols.
    #[test]
    fn codes_that_would_be_too_long() {
        let (mut counts, mut last) = ([0u32; 22], (1, 1));
        for count in &mut counts {
            *count = last.0;
            last = (last.1, last.0 + last.1);
        }
        let bytes: Vec<u8> = counts
            .iter()
            .zip(0u8..)
            .flat_map(|(&count, byte)| std::iter::repeat_n(byte, count as usize))
            .take(BLOCK)
            .collect();
        assert!(decodes(&bytes) < bytes.len() / 2);
        let codes = Codes::new(&counts, LONGEST);
        assert_eq!(codes.lengths.iter().max(), Some(&(LONGEST as u8)));
        assert_eq!(codes.lengths.iter().map(|len| 1 << (LONGEST - usize::from(*len))).sum::<usize>(), 1 << LONGEST);
        let plain = |len: usize| codes.codes[len].bits;
        assert!(plain(21) == 0 && codes.lengths[21] == 1);
    }
}
