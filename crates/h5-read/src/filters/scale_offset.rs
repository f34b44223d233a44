//! Scale-offset: the difference of each number to the least one, in as few bits as the greatest
//! difference needs; floating-point numbers are first multiplied by a power of ten and rounded. The
//! greatest number of these bits stands for the fill value, if one is defined.
//!
//! The data begin with the number of bits, the number of bytes of the least number, and the least
//! number; the bits follow at byte 21. Where all bits of the type are needed, numbers are stored as
//! they are.

use super::bits::BitReader;
use crate::error::{Error, Result};

/// Kinds of scaling, the first parameter.
const DECIMAL: u32 = 0;
const INTEGER: u32 = 2;

/// Bytes before the bits.
const HEAD: usize = 21;
/// Parameters before the fill value.
const FILL: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Scaling {
    /// Power of ten by which floating-point numbers were multiplied; `None` for integers.
    decimals: Option<i32>,
    size: usize,
    is_big: bool,
    /// Little-endian.
    fill: Option<u64>,
}

pub(super) fn decode(parameters: &[u32], data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let &[kind, factor, count, class, size, _sign, order, has_fill, ..] = parameters else {
        return Err(Error::damaged("the parameters are too few"));
    };
    if !matches!((class, size), (0, 1 | 2 | 4 | 8) | (1, 4 | 8)) {
        return Err(Error::unsupported(format!("elements of {size} bytes of the class {class} are not scaled")));
    }
    let decimals = match (class, kind) {
        (0, INTEGER) if factor == 8 * size => {
            out.extend_from_slice(data);
            return Ok(());
        }
        (0, INTEGER) => None,
        (1, DECIMAL) => Some(factor.cast_signed()),
        _ => return Err(Error::unsupported(format!("the kind {kind} of scaling does not fit the class {class}"))),
    };
    let word = |at: usize| u64::from(parameters.get(at).copied().unwrap_or_default());
    let fill = (has_fill != 0).then(|| word(FILL + 1) << 32 | word(FILL));
    let scaling = Scaling { decimals, size: size as usize, is_big: order != 0, fill };
    let bytes = scaling.size.checked_mul(count as usize).filter(|&bytes| bytes <= limit);
    let bytes = bytes.ok_or_else(|| Error::damaged(format!("{count} elements of {size} bytes")))?;
    scaling.decode(data, bytes, out)
}

impl Scaling {
    fn decode(self, data: &[u8], bytes: usize, out: &mut Vec<u8>) -> Result<()> {
        let (Some((head, packed)), &[a, b, c, d, least_bytes, ..]) = (data.split_at_checked(HEAD), data) else {
            return Err(Error::damaged(format!("{} bytes are too few for the least number", data.len())));
        };
        let bits = u32::from_le_bytes([a, b, c, d]) as usize;
        let mut least = [0; 8];
        for (to, from) in least.iter_mut().zip(head.iter().skip(5).take(usize::from(least_bytes))) {
            *to = *from;
        }
        let least = u64::from_le_bytes(least);
        if bits > 8 * self.size {
            return Err(Error::damaged(format!("{bits} bits in elements of {} bytes", self.size)));
        }
        if bits == 8 * self.size {
            let whole = packed.get(..bytes).ok_or_else(|| Error::damaged("the data end within an element"))?;
            out.extend(whole);
            if self.is_big {
                out.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
            }
            return Ok(());
        }
        let mut packed = BitReader::new(packed);
        let most = (1u64 << bits) - 1;
        out.reserve(bytes);
        for _ in 0..bytes / self.size {
            let value = packed.take(bits)?;
            let value = match self.fill {
                Some(fill) if value == most => fill,
                _ => self.scaled(value, least),
            };
            self.push(value, out);
        }
        Ok(())
    }

    /// The number whose difference to `least` is `value`; both by their bits.
    fn scaled(self, value: u64, least: u64) -> u64 {
        match (self.decimals, self.size) {
            (None, _) => value.wrapping_add(least),
            (Some(decimals), 4) => {
                let value = (value as u32).cast_signed() as f32;
                u64::from((value / 10f32.powi(decimals) + f32::from_bits(least as u32)).to_bits())
            }
            (Some(decimals), _) => {
                let value = value.cast_signed() as f64;
                (value / 10f64.powi(decimals) + f64::from_bits(least)).to_bits()
            }
        }
    }

    fn push(self, value: u64, out: &mut Vec<u8>) {
        let bytes = value.to_le_bytes();
        let used = bytes.into_iter().take(self.size);
        if self.is_big { out.extend(used.rev()) } else { out.extend(used) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(parameters: &[u32], bits: u32, least: [u8; 8], packed: &[u8]) -> Result<Vec<u8>> {
        let mut data = bits.to_le_bytes().to_vec();
        data.push(8);
        data.extend(least);
        data.resize(HEAD, 0);
        data.extend(packed);
        let mut out = Vec::new();
        decode(parameters, &data, 1 << 10, &mut out).map(|()| out)
    }

    #[test]
    fn integers_and_their_fill_value() {
        let least = (-3i64).to_le_bytes();
        assert_eq!(decoded(&[2, 0, 3, 0, 2, 1, 0, 0, 0], 4, least, &[0x0f, 0x30]).unwrap(), [0xfd, 0xff, 12, 0, 0, 0]);
        assert_eq!(decoded(&[2, 0, 3, 0, 2, 1, 1, 1, 7], 4, least, &[0x0f, 0x30]).unwrap(), [0xff, 0xfd, 0, 7, 0, 0]);
        assert_eq!(decoded(&[2, 0, 1, 0, 2, 1, 1, 1, 7], 16, least, &[1, 2]).unwrap(), [2, 1]);
        assert_eq!(decoded(&[2, 0, 2, 0, 1, 1, 1, 0], 0, least, &[]).unwrap(), [0xfd, 0xfd]);
        assert!(decoded(&[2, 0, 3, 0, 2, 1, 0, 0, 0], 4, least, &[0x0f]).is_err());
        assert!(decoded(&[2, 0, 3, 0, 2, 1, 0, 0, 0], 17, least, &[0x0f]).is_err());
        assert!(decoded(&[2, 0, u32::MAX, 0, 8, 1, 0, 0, 0], 1, least, &[0x0f]).is_err());
        assert!(decoded(&[2, 0, 3, 0, 3], 4, least, &[]).is_err());
    }

    #[test]
    fn decimals() {
        let least = 1.5f64.to_le_bytes();
        let out = decoded(&[0, 2, 2, 1, 8, 0, 0, 0, 0], 8, least, &[0, 25]).unwrap();
        assert_eq!(out, [1.5f64, 1.75].map(f64::to_le_bytes).concat());
        let mut least = [0; 8];
        least[..4].copy_from_slice(&(-1f32).to_le_bytes());
        let fill = 9f32.to_bits();
        let out = decoded(&[0, 1, 2, 1, 4, 0, 0, 1, fill], 8, least, &[5, 255]).unwrap();
        assert_eq!(out, [-0.5f32, 9.0].map(f32::to_le_bytes).concat());
    }
}
