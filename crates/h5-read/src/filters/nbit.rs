//! N-bit: of each number only the bits that count, the greatest first, without gaps. The parameters
//! describe the type:
//!
//! | class        | after the class                                                       |
//! |--------------|-----------------------------------------------------------------------|
//! | 1: number    | bytes, order of the bytes, number of bits, number of the least bit     |
//! | 2: array     | bytes, the type of its elements                                        |
//! | 3: compound  | bytes, number of members, and for each member its offset and its type  |
//! | 4: as it is  | bytes                                                                  |
//!
//! The HDF5 library, up to 2.0 at least, reads the type of an array's elements again after the
//! array if they are arrays or compounds, as if it were the next member. Members after such an
//! array are lost when it writes, and readers must make the same mistake.
//!
//! Before the type are the number of all parameters, whether bytes are stored as they are, and the
//! number of elements.

use super::bits::BitReader;
use crate::error::{Error, Result};

/// Most types within each other.
const MAX_DEPTH: u32 = 32;

#[derive(Debug)]
enum Type {
    Number { bytes: usize, is_big: bool, precision: usize, offset: usize },
    Array { bytes: usize, base: Box<Type> },
    Compound { bytes: usize, members: Vec<(usize, Type)> },
    Plain { bytes: usize },
}

pub(super) fn decode(parameters: &[u32], data: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let &[_, is_plain, count, ref rest @ ..] = parameters else {
        return Err(Error::damaged("the parameters are too few"));
    };
    if is_plain != 0 {
        out.extend_from_slice(data);
        return Ok(());
    }
    let element = Type::parse(&mut Parameters { rest, left: parameters.len() }, MAX_DEPTH)?;
    let bytes = element.bytes().checked_mul(count as usize).filter(|&bytes| bytes <= limit);
    let bytes = bytes.ok_or_else(|| Error::damaged(format!("{count} elements of {} bytes", element.bytes())))?;
    out.resize(bytes, 0);
    let mut bits = BitReader::new(data);
    out.chunks_exact_mut(element.bytes()).try_for_each(|out| element.decode(&mut bits, out))
}

impl Type {
    fn parse(parameters: &mut Parameters<'_>, depth: u32) -> Result<Self> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Error::damaged(format!("more than {MAX_DEPTH} types are within each other")));
        };
        parameters.spend()?;
        let class = parameters.next()?;
        let bytes = parameters.next()?;
        if bytes == 0 {
            return Err(Error::damaged("the parameters have a type of 0 bytes"));
        }
        match class {
            1 => {
                let is_big = parameters.next()? != 0;
                let (precision, offset) = (parameters.next()?, parameters.next()?);
                let end = precision.saturating_add(offset);
                if precision == 0 || end > bytes.saturating_mul(8) {
                    return Err(Error::damaged(format!("{precision} bits from bit {offset} on, in {bytes} bytes")));
                }
                Ok(Type::Number { bytes, is_big, precision, offset })
            }
            2 => {
                let before = parameters.rest;
                let base = Box::new(Self::parse(parameters, depth)?);
                if matches!(*base, Type::Array { .. } | Type::Compound { .. }) {
                    // the class is passed, what follows it is read again
                    parameters.rest = before.get(1..).unwrap_or_default();
                }
                Ok(Type::Array { bytes, base })
            }
            3 => {
                let mut members = Vec::new();
                for _ in 0..parameters.next()? {
                    let offset = parameters.next()?;
                    let member = Self::parse(parameters, depth)?;
                    if offset.saturating_add(member.bytes()) > bytes {
                        return Err(Error::damaged(format!(
                            "a member at byte {offset} of a compound of {bytes} bytes"
                        )));
                    }
                    // each member then takes bits, so that the data bound the work
                    if !member.is_empty() {
                        members.push((offset, member));
                    }
                }
                if members.is_empty() {
                    return Err(Error::damaged("a compound whose members have no bits"));
                }
                Ok(Type::Compound { bytes, members })
            }
            4 => Ok(Type::Plain { bytes }),
            class => Err(Error::unsupported(format!("types of class {class} have no N-bit form"))),
        }
    }

    /// Has no bits in the data.
    fn is_empty(&self) -> bool {
        matches!(self, Type::Array { bytes, base } if base.bytes() > *bytes || base.is_empty())
    }

    fn bytes(&self) -> usize {
        match *self {
            Type::Number { bytes, .. } | Type::Array { bytes, .. } | Type::Compound { bytes, .. } => bytes,
            Type::Plain { bytes } => bytes,
        }
    }

    fn decode(&self, bits: &mut BitReader<'_>, out: &mut [u8]) -> Result<()> {
        match self {
            &Type::Number { is_big, precision, offset, .. } => bits.number(precision, offset, is_big, out),
            Type::Array { base, .. } => out.chunks_exact_mut(base.bytes()).try_for_each(|out| base.decode(bits, out)),
            Type::Compound { members, .. } => members.iter().try_for_each(|(offset, member)| {
                let place = out.get_mut(*offset..).and_then(|out| out.get_mut(..member.bytes()));
                member.decode(bits, place.ok_or_else(|| Error::damaged("a member is beyond its compound"))?)
            }),
            Type::Plain { .. } => out.iter_mut().try_for_each(|byte| {
                *byte = bits.take(8)? as u8;
                Ok(())
            }),
        }
    }
}

struct Parameters<'a> {
    rest: &'a [u32],
    /// Types that may still be read, as some are read more than once.
    left: usize,
}

impl Parameters<'_> {
    fn next(&mut self) -> Result<usize> {
        let first = self.rest.split_off_first().ok_or_else(|| Error::damaged("the parameters are too few"))?;
        Ok(*first as usize)
    }

    fn spend(&mut self) -> Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Error::damaged("the parameters have too many types"))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(parameters: &[u32], data: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        decode(parameters, data, 1 << 10, &mut out).map(|()| out)
    }

    #[test]
    fn bits_are_put_back_in_either_order() {
        // 12 bits from bit 2 on: 0xabc, 0x123
        let data = [0xab, 0xc1, 0x23];
        assert_eq!(decoded(&[8, 0, 2, 1, 2, 0, 12, 2], &data).unwrap(), [0xf0, 0x2a, 0x8c, 0x04]);
        assert_eq!(decoded(&[8, 0, 2, 1, 2, 1, 12, 2], &data).unwrap(), [0x2a, 0xf0, 0x04, 0x8c]);
        assert!(decoded(&[8, 0, 3, 1, 2, 1, 12, 2], &data).is_err());
        assert_eq!(decoded(&[8, 1, 2, 1, 2, 1, 12, 2], &data).unwrap(), data);
    }

    #[test]
    fn compounds_and_arrays() {
        // 4 bytes: at 0 two numbers of 4 bits in a byte each, at 3 a byte as it is
        let parameters = [18, 0, 1, 3, 4, 2, 0, 2, 2, 1, 1, 0, 4, 0, 3, 4, 1];
        assert_eq!(decoded(&parameters, &[0x5a, 0xc3]).unwrap(), [5, 10, 0, 0xc3]);
        // an array of compounds, whose one member of 4 bits is in the second byte; then a member
        // that is lost, for which a bit of byte 2 is read
        let lost = [17, 0, 1, 3, 5, 2, 0, 2, 4, 3, 2, 1, 1, 1, 1, 0, 4, 0, 4, 4, 1];
        assert_eq!(decoded(&lost, &[0x5a, 0x80]).unwrap(), [0, 5, 1, 10, 0]);
        for end in 0..parameters.len() {
            assert!(decoded(&parameters[..end], &[0x5a, 0xc3]).is_err(), "{end}");
        }
        for at in 0..parameters.len() {
            for value in [0, 1, 2, 3, 5, 0xff, u32::MAX] {
                let mut changed = parameters;
                changed[at] = value;
                let _ = decoded(&changed, &[0x5a, 0xc3]);
            }
        }
        let deep: Vec<u32> = [0, 0, 1].into_iter().chain([2, 8].into_iter().cycle().take(1000)).collect();
        assert!(decoded(&deep, &[]).unwrap_err().message().contains("within each other"));
    }
}
