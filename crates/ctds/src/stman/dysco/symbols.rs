//! Unpacks the symbols (quantised values) of DyscoStMan, which are stored in 2 to 16 bits each,
//! without gaps between them. formats/engines.md 2.3.

pub(super) const WIDTHS: [u8; 8] = [2, 3, 4, 6, 8, 10, 12, 16];

/// Bytes that must follow packed symbols in memory, since eight symbols are unpacked at a time.
pub(super) const PADDING: usize = 16;

pub(super) trait Decode {
    /// Fills the output of `self`; `next` returns eight symbols, unspecified after the last one.
    fn decode(self, next: impl FnMut() -> [u16; 8]);
}

/// Passes symbols of `width` bits, one of [`WIDTHS`], from bit `first_bit` on to `decoder`. Bit `j`
/// of `packed` is bit `j % 8` of byte `j / 8`, least significant first, in symbols as well. A
/// symbol of the file begins at `first_bit`, and [`PADDING`] bytes follow the last one.
pub(super) fn decode(width: u8, packed: &[u8], first_bit: usize, decoder: impl Decode) {
    match width {
        2 => decoder.decode(eights::<2>(packed, first_bit)),
        3 => decoder.decode(eights::<3>(packed, first_bit)),
        4 => decoder.decode(eights::<4>(packed, first_bit)),
        6 => decoder.decode(eights::<6>(packed, first_bit)),
        8 => decoder.decode(eights::<8>(packed, first_bit)),
        10 => decoder.decode(eights::<10>(packed, first_bit)),
        12 => decoder.decode(eights::<12>(packed, first_bit)),
        16 => decoder.decode(eights::<16>(packed, first_bit)),
        _ => unreachable!("the header was checked for the width"),
    }
}

fn eights<const WIDTH: usize>(packed: &[u8], first_bit: usize) -> impl FnMut() -> [u16; 8] {
    // eight symbols take whole bytes, so that each eight begin at the same bit of a byte
    let (mut at, bit) = (first_bit / 8, first_bit % 8);
    move || {
        let (bytes, _) = packed[at..].split_first_chunk::<PADDING>().expect("padding follows the symbols");
        at += WIDTH;
        // four symbols and what precedes them in their first byte fit a word
        let word = |first: usize| {
            let (bytes, _) = bytes[first / 8..].split_first_chunk::<8>().expect("first is at most 64");
            u64::from_le_bytes(*bytes) >> (bit + first % 8)
        };
        let words = [word(0), word(4 * WIDTH)];
        std::array::from_fn(|i| (words[i / 4] >> (i % 4 * WIDTH) & ((1 << WIDTH) - 1)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Keep<'a>(&'a mut [u16]);

    impl Decode for Keep<'_> {
        fn decode(self, mut next: impl FnMut() -> [u16; 8]) {
            for out in self.0.chunks_mut(8) {
                out.copy_from_slice(&next()[..out.len()]);
            }
        }
    }

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
                decode(width, &packed[at / 8..], at % 8, Keep(&mut out));
                assert_eq!(out, all[first..], "{width} bits from {first}");
            }
        }
    }

    #[test]
    fn literal_bytes() {
        let mut out = [0; 3];
        let padded = |bytes: &[u8]| [bytes, &[0; PADDING]].concat();
        decode(3, &padded(&[0b10_001_111, 0b1]), 0, Keep(&mut out));
        assert_eq!(out, [0b111, 0b001, 0b110]);
        decode(12, &padded(&[0x21, 0x43, 0x65, 0x87, 0x09]), 0, Keep(&mut out));
        assert_eq!(out, [0x321, 0x654, 0x987]);
    }
}
