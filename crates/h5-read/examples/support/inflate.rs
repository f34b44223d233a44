//! Deflate in the container of zlib (RFC 1950 and 1951), the filter that most files use, and LZF.
//! Written to be read, not to be quick; programs bring a library of theirs.

use h5_read::{Filter, FilterError, Filters};

/// Filters 1, deflate, and 32000, LZF.
pub(crate) struct Inflate;

impl Filters for Inflate {
    fn decode(&self, filter: &Filter, encoded: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let decoded = match filter.id {
            1 => inflate(encoded.get(2..).unwrap_or_default(), limit, out),
            32000 => lzf(encoded, limit, out),
            _ => return Err(FilterError::Unknown),
        };
        decoded.ok_or_else(|| FilterError::Damaged("the bytes are not what the filter writes".to_owned()))
    }
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    word: u32,
    have: u32,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<u32> {
        while self.have < count {
            self.word |= u32::from(*self.bytes.get(self.at)?) << self.have;
            self.at += 1;
            self.have += 8;
        }
        let taken = self.word & ((1u32 << count) - 1);
        self.word >>= count;
        self.have -= count;
        Some(taken)
    }
}

/// A canonical Huffman code: number of symbols of each length, symbols in the order of their codes.
struct Code {
    counts: [u16; 16],
    symbols: Vec<u16>,
}

impl Code {
    fn new(lengths: &[u8]) -> Self {
        let mut counts = [0; 16];
        lengths.iter().for_each(|&length| counts[usize::from(length & 15)] += 1);
        counts[0] = 0;
        let mut symbols: Vec<u16> =
            (0..lengths.len() as u16).filter(|&symbol| lengths[usize::from(symbol)] > 0).collect();
        symbols.sort_by_key(|&symbol| lengths[usize::from(symbol)]);
        Code { counts, symbols }
    }

    fn next(&self, bits: &mut Bits<'_>) -> Option<u16> {
        let (mut code, mut first, mut index) = (0i32, 0i32, 0i32);
        for &count in &self.counts[1..] {
            code |= bits.take(1)? as i32;
            let count = i32::from(count);
            if code - first < count {
                return self.symbols.get((index + code - first) as usize).copied();
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

fn inflate(bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut bits = Bits { bytes, at: 0, word: 0, have: 0 };
    loop {
        let is_last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => stored(&mut bits, limit, out)?,
            1 => {
                let lengths: Vec<u8> = (0..288u16)
                    .map(|symbol| {
                        if symbol < 144 {
                            8
                        } else if symbol < 256 {
                            9
                        } else if symbol < 280 {
                            7
                        } else {
                            8
                        }
                    })
                    .collect();
                block(&mut bits, &Code::new(&lengths), &Code::new(&[5; 30]), limit, out)?;
            }
            2 => {
                let (literals, distances) = codes(&mut bits)?;
                block(&mut bits, &literals, &distances, limit, out)?;
            }
            _ => return None,
        }
        if is_last {
            return Some(());
        }
    }
}

fn stored(bits: &mut Bits<'_>, limit: usize, out: &mut Vec<u8>) -> Option<()> {
    (bits.word, bits.have) = (0, 0);
    let (len, not) = (bits.take(16)?, bits.take(16)?);
    let bytes = bits.bytes.get(bits.at..bits.at + len as usize).filter(|_| len ^ not == 0xffff)?;
    bits.at += bytes.len();
    out.extend_from_slice(bytes);
    (out.len() <= limit).then_some(())
}

fn codes(bits: &mut Bits<'_>) -> Option<(Code, Code)> {
    const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    let literals = bits.take(5)? as usize + 257;
    let distances = bits.take(5)? as usize + 1;
    let count = bits.take(4)? as usize + 4;
    let mut lengths = [0; 19];
    for &at in &ORDER[..count] {
        lengths[at] = bits.take(3)? as u8;
    }
    let code = Code::new(&lengths);
    let mut lengths: Vec<u8> = Vec::new();
    while lengths.len() < literals + distances {
        let (length, times) = match code.next(bits)? {
            16 => (*lengths.last()?, 3 + bits.take(2)?),
            17 => (0, 3 + bits.take(3)?),
            18 => (0, 11 + bits.take(7)?),
            length => (length as u8, 1),
        };
        lengths.extend(std::iter::repeat_n(length, times as usize));
    }
    let lengths = lengths.get(..literals + distances)?;
    Some((Code::new(&lengths[..literals]), Code::new(&lengths[literals..])))
}

fn block(bits: &mut Bits<'_>, literals: &Code, distances: &Code, limit: usize, out: &mut Vec<u8>) -> Option<()> {
    loop {
        let symbol = literals.next(bits)?;
        match symbol {
            0..256 => out.push(symbol as u8),
            256 => return Some(()),
            _ => {
                let len = length(bits, u32::from(symbol) - 257)?;
                let symbol = u32::from(distances.next(bits)?);
                let extra = (symbol / 2).saturating_sub(1);
                let base = if symbol < 4 { symbol } else { (2 + symbol % 2) << extra };
                let distance = (base + bits.take(extra)? + 1) as usize;
                let from = out.len().checked_sub(distance)?;
                for at in from..from + len {
                    out.push(out[at]);
                }
            }
        }
        if out.len() > limit {
            return None;
        }
    }
}

fn length(bits: &mut Bits<'_>, symbol: u32) -> Option<usize> {
    if symbol == 28 {
        return Some(258);
    }
    let extra = (symbol / 4).saturating_sub(1);
    let base = if symbol < 8 { symbol } else { (4 + symbol % 4) << extra };
    Some((3 + base + bits.take(extra)?) as usize)
}

/// LZF, the filter of h5py: runs of literals, and copies of earlier bytes.
fn lzf(encoded: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = encoded.iter().map(|&byte| usize::from(byte));
    while let Some(control) = rest.next() {
        if control < 32 {
            for _ in 0..=control {
                out.push(rest.next()? as u8);
            }
        } else {
            let len = match control >> 5 {
                7 => 7 + rest.next()?,
                len => len,
            };
            let from = out.len().checked_sub(((control & 31) << 8) + rest.next()? + 1)?;
            for at in from..from + len + 2 {
                out.push(out[at]);
            }
        }
        if out.len() > limit {
            return None;
        }
    }
    Some(())
}
