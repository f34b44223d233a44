//! Bits of bytes, the greatest of each byte first.

use crate::error::{Error, Result};

pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits that were taken from the first byte.
    taken: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, taken: 0 }
    }

    /// The next `count` bits, at most 64, as a number.
    pub(super) fn take(&mut self, count: usize) -> Result<u64> {
        let mut value = 0;
        let mut left = count.min(64);
        while left > 0 {
            let Some((&byte, rest)) = self.bytes.split_first() else {
                return Err(Error::damaged("the data end within an element"));
            };
            let have = 8 - self.taken;
            let now = left.min(have);
            let bits = u64::from(byte) >> (have - now) & ((1 << now) - 1);
            value = value << now | bits;
            left -= now;
            self.taken += now;
            if self.taken == 8 {
                (self.bytes, self.taken) = (rest, 0);
            }
        }
        Ok(value)
    }

    /// Written to `out` from bit `offset` on; other bits stay as they are.
    pub(super) fn number(&mut self, precision: usize, offset: usize, is_big: bool, out: &mut [u8]) -> Result<()> {
        let end = offset + precision;
        let bytes = out.len();
        for byte in (offset / 8..end.div_ceil(8)).rev() {
            let (low, high) = (offset.max(8 * byte), end.min(8 * byte + 8));
            let bits = self.take(high - low)? as u8;
            let at = if is_big { bytes.checked_sub(byte + 1) } else { Some(byte) };
            if let Some(place) = at.and_then(|at| out.get_mut(at)) {
                *place |= bits << (low - 8 * byte);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_across_bytes() {
        let mut bits = BitReader::new(&[0b1010_0101, 0b1100_0011, 0xff]);
        assert_eq!([3, 0, 7, 6, 8].map(|count| bits.take(count).unwrap()), [0b101, 0, 0b0010111, 0b000011, 0xff]);
        assert!(bits.take(1).is_err());
        assert_eq!(bits.take(0).unwrap(), 0);
    }
}
