//! The checksum by which HDF5 recognises damaged metadata.

use crate::error::{Error, Result};

/// Little-endian; 0 beyond the end.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map_or(0, u32::from_le_bytes)
}

/// The checksum of metadata: Jenkins' lookup3, `hashlittle` with the initial value 0.
///
/// ```
/// assert_eq!(h5_read::lookup3(b"Four score and seven years ago"), 0x1777_0551);
/// ```
pub fn lookup3(bytes: &[u8]) -> u32 {
    let [mut a, mut b, mut c] = [0xdead_beefu32.wrapping_add(bytes.len() as u32); 3];
    let blocks = bytes.len().saturating_sub(1) / 12;
    let (whole, rest) = bytes.split_at(blocks * 12);
    for block in whole.chunks_exact(12) {
        a = a.wrapping_add(u32_at(block, 0));
        b = b.wrapping_add(u32_at(block, 4));
        c = c.wrapping_add(u32_at(block, 8));
        (a, c) = mix(a, c, b, 4);
        (b, a) = mix(b, a, c, 6);
        (c, b) = mix(c, b, a, 8);
        (a, c) = mix(a, c, b, 16);
        (b, a) = mix(b, a, c, 19);
        (c, b) = mix(c, b, a, 4);
    }
    if rest.is_empty() {
        return c;
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    a = a.wrapping_add(u32_at(&last, 0));
    b = b.wrapping_add(u32_at(&last, 4));
    c = c.wrapping_add(u32_at(&last, 8));
    for (shift, turn) in [14, 11, 25, 16, 4, 14, 24].into_iter().zip([0, 1, 2].into_iter().cycle()) {
        let (x, y) = match turn {
            0 => (&mut c, b),
            1 => (&mut a, c),
            _ => (&mut b, a),
        };
        *x = (*x ^ y).wrapping_sub(y.rotate_left(shift));
    }
    c
}

pub(crate) fn check(found: u32, bytes: &[u8]) -> Result<()> {
    let expected = lookup3(bytes);
    if found == expected || is_ignored() {
        return Ok(());
    }
    Err(Error::damaged(format!("the checksum is {found:#010x}, expected {expected:#010x}")))
}

#[cfg(not(test))]
fn is_ignored() -> bool {
    false
}

#[cfg(test)]
fn is_ignored() -> bool {
    tests::IGNORED.get()
}

#[inline(always)]
fn mix(x: u32, y: u32, z: u32, shift: u32) -> (u32, u32) {
    (x.wrapping_sub(y) ^ y.rotate_left(shift), y.wrapping_add(z))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// Tests of this thread look beyond checksums, which would reveal most mutations.
        pub(crate) static IGNORED: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn checksums_of_jenkins() {
        // from the comments of lookup3.c, with the initial value 0
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
