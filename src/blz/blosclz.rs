//! BloscLZ: literals and references to bytes before them.

use crate::error::{Error, Result};

/// Distance of references with two more bytes.
const FAR: usize = 8192;

/// Appends `len` decoded bytes to `out`; references lead to these only.
///
/// # Errors
/// `Format` if the data are damaged or longer.
pub(super) fn decode(data: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
    let wrong = || Error::format("a Blosc chunk is damaged: blosclz data cannot be decoded");
    let (start, mut at) = (out.len(), 0);
    let mut next = |count: usize| {
        let found = data.get(at..at + count);
        at += found.map_or(0, <[u8]>::len);
        found.ok_or_else(wrong)
    };
    if data.is_empty() {
        return Ok(());
    }
    let mut control = usize::from(next(1)?[0] & 31);
    loop {
        if control < 32 {
            let literals = next(control + 1)?;
            if out.len() - start + literals.len() > len {
                return Err(wrong());
            }
            out.extend_from_slice(literals);
        } else {
            let (mut count, high) = ((control >> 5) - 1, (control & 31) << 8);
            if count == 6 {
                loop {
                    let more = usize::from(next(1)?[0]);
                    count += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = usize::from(next(1)?[0]);
            count += 3;
            let mut distance = high + low + 1;
            if low == 255 && high == 31 << 8 {
                let far = next(2)?;
                distance = usize::from(u16::from_be_bytes([far[0], far[1]])) + FAR;
            }
            let from = (out.len() - start).checked_sub(distance).ok_or_else(wrong)? + start;
            if out.len() - start + count > len {
                return Err(wrong());
            }
            if distance >= count {
                out.extend_from_within(from..from + count);
            } else {
                // the copy overlaps itself
                (0..count).for_each(|step| out.push(out[from + step]));
            }
        }
        match next(1) {
            Ok(byte) => control = usize::from(byte[0]),
            Err(_) => return Ok(()),
        }
    }
}
