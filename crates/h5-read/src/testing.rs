//! Files for tests, made by hand.

use crate::checksum::lookup3;
use crate::file::File;

pub(crate) const START: u64 = 96;

/// Addresses and lengths of 8 bytes, a superblock of version 0, then `structures`.
pub(crate) fn file(structures: &[u8]) -> File {
    let mut bytes = b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\x04\0\x10\0\0\0\0\0".to_vec();
    bytes.resize(START as usize, 0);
    bytes.extend_from_slice(structures);
    File::open(bytes).expect("the superblock is right")
}

pub(crate) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = lookup3(&bytes).to_le_bytes();
    bytes.extend(checksum);
    bytes
}
