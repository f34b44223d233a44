//! Unpacks the symbols of DyscoStMan, of 2 to 16 bits without gaps. formats/engines.md 2.3.

/// The widths that symbols of DyscoStMan can have, in bits.
pub(super) const WIDTHS: [u8; 8] = [2, 3, 4, 6, 8, 10, 12, 16];

/// Number of bytes that must follow packed symbols in memory, since whole words are read.
pub(super) const PADDING: usize = 8;

/// Fills `out` with symbols of `width` bits, from bit `first_bit` of `packed` on.
///
/// Symbol i is bits `i * width` and up of the stream, in which bit j is bit `j % 8`, least significant first, of byte
/// `j / 8`. [`PADDING`] bytes follow the last symbol's; `first_bit` is that of a symbol, `width` one of [`WIDTHS`].
pub(super) fn unpack(width: u8, packed: &[u8], first_bit: usize, out: &mut [u16]) {
    match width {
        2 => unpack_as::<2>(packed, first_bit, out),
        3 => unpack_as::<3>(packed, first_bit, out),
        4 => unpack_as::<4>(packed, first_bit, out),
        6 => unpack_as::<6>(packed, first_bit, out),
        8 => unpack_as::<8>(packed, first_bit, out),
        10 => unpack_as::<10>(packed, first_bit, out),
        12 => unpack_as::<12>(packed, first_bit, out),
        16 => unpack_as::<16>(packed, first_bit, out),
        _ => unreachable!("the header was checked for the width"),
    }
}

fn unpack_as<const WIDTH: usize>(packed: &[u8], first_bit: usize, out: &mut [u16]) {
    let mut bit = first_bit;
    // four symbols and what precedes them in their first byte fit a word
    let mut next_word = || {
        let (bytes, _) = packed[bit / 8..].split_first_chunk::<8>().expect("padding follows the symbols");
        let word = u64::from_le_bytes(*bytes) >> (bit % 8);
        bit += 4 * WIDTH;
        word
    };
    let symbol = |word: u64, i: usize| (word >> (i * WIDTH) & ((1 << WIDTH) - 1)) as u16;
    let (fours, rest) = out.as_chunks_mut::<4>();
    for four in fours {
        let word = next_word();
        *four = std::array::from_fn(|i| symbol(word, i));
    }
    if !rest.is_empty() {
        let word = next_word();
        rest.iter_mut().enumerate().for_each(|(i, to)| *to = symbol(word, i));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_from_every_symbol() {
        let bytes: Vec<u8> = (0..64u32).map(|i| (i * 89 + 13) as u8).collect();
        let mut packed = bytes.clone();
        packed.extend([0xff; PADDING]);
        for width in WIDTHS {
            let count = 64 * 8 / usize::from(width);
            let bit = |at: usize| u16::from(bytes[at / 8] >> (at % 8) & 1);
            let symbol = |i: usize| (0..usize::from(width)).map(|j| bit(i * usize::from(width) + j) << j).sum();
            let all: Vec<u16> = (0..count).map(symbol).collect();
            for first in 0..count {
                let mut out = vec![0; count - first];
                let at = first * usize::from(width);
                unpack(width, &packed[at / 8..], at % 8, &mut out);
                assert_eq!(out, all[first..], "{width} bits from {first}");
            }
        }
    }

    #[test]
    fn literal_bytes() {
        let mut out = [0; 3];
        unpack(3, &[0b10_001_111, 0b1, 0, 0, 0, 0, 0, 0, 0], 0, &mut out);
        assert_eq!(out, [0b111, 0b001, 0b110]);
        unpack(12, &[0x21, 0x43, 0x65, 0x87, 0x09, 0, 0, 0, 0, 0, 0, 0], 0, &mut out);
        assert_eq!(out, [0x321, 0x654, 0x987]);
    }
}
