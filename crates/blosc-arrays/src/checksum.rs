//! Computes and verifies the checksums of chunks and metadata in files of Blosc chunks. The header
//! of a file has the number of their kind: from 0 for none to 8 for SHA-512.

#[cfg(feature = "zlib")]
use libdeflater::adler32;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::error::{Error, Result};
#[cfg(not(feature = "zlib"))]
use plain_adler32 as adler32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum(u8);

/// Name and size in bytes of each kind, by its number.
const KINDS: [(&str, usize); 9] = [
    ("none", 0),
    ("adler32", 4),
    ("crc32", 4),
    ("md5", 16),
    ("sha1", 20),
    ("sha224", 28),
    ("sha256", 32),
    ("sha384", 48),
    ("sha512", 64),
];

impl Checksum {
    pub(crate) const NONE: Self = Checksum(0);

    /// `Format` for an unknown number.
    pub(crate) fn of_number(number: u8) -> Result<Self> {
        match usize::from(number) < KINDS.len() {
            true => Ok(Checksum(number)),
            false => Err(Error::format(format!("checksums of kind {number}: 0 to 8 are known"))),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        KINDS[usize::from(self.0)].0
    }

    /// Size of a checksum in bytes, 0 for none.
    pub(crate) fn len(self) -> usize {
        KINDS[usize::from(self.0)].1
    }

    /// The checksum of `bytes` in the form in which a file stores it.
    pub(crate) fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self.0 {
            0 => Vec::new(),
            1 => adler32(bytes).to_le_bytes().to_vec(),
            2 => crc32fast::hash(bytes).to_le_bytes().to_vec(),
            3 => Md5::digest(bytes).to_vec(),
            4 => Sha1::digest(bytes).to_vec(),
            5 => Sha224::digest(bytes).to_vec(),
            6 => Sha256::digest(bytes).to_vec(),
            7 => Sha384::digest(bytes).to_vec(),
            _ => Sha512::digest(bytes).to_vec(),
        }
    }

    /// `Format` if they differ.
    pub(crate) fn verify(self, bytes: &[u8], stored: &[u8]) -> Result<()> {
        match self.of(bytes) == stored {
            true => Ok(()),
            false => Err(Error::format(format!("the {} of the bytes is not the one that was stored", self.name()))),
        }
    }
}

/// libdeflate, where it is built, computes this with vector instructions.
#[cfg(any(test, not(feature = "zlib")))]
fn plain_adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    // the longest piece whose sums fit into 32 bits
    const PIECE: usize = 5552;
    let (low, high) = bytes.chunks(PIECE).fold((1, 0), |(low, high), piece| {
        let (low, high) = piece.iter().fold((low, high), |(low, high), &byte| {
            let low: u32 = low + u32::from(byte);
            (low, high + low)
        });
        (low % MODULUS, high % MODULUS)
    });
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_adler32_agree() {
        for len in [0, 1, 5552, 5553, 200_000] {
            for byte in [0, 1, 255] {
                let bytes = vec![byte; len];
                assert_eq!(plain_adler32(&bytes), libdeflater::adler32(&bytes), "{len} bytes {byte}");
            }
        }
    }
}
