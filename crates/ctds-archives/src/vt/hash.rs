//! Hashes of uncompressed blocks, by which a store names them.

use std::fmt;

use ctds::error::{Error, Result};
use sha1::Digest as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HashKind {
    Sha1,
    Sha256,
    #[cfg(feature = "blake3")]
    Blake3,
}

const LONGEST: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHash {
    kind: HashKind,
    /// Zeros follow a hash shorter than 32 bytes.
    bytes: [u8; LONGEST],
}

impl HashKind {
    pub(super) const ALL: &[Self] = &[
        HashKind::Sha1,
        HashKind::Sha256,
        #[cfg(feature = "blake3")]
        HashKind::Blake3,
    ];

    /// Number in the binary form of references: 0 for SHA-1, 1 for SHA-256, 2 for BLAKE3.
    pub(super) fn code(self) -> u64 {
        self as u64
    }

    pub(super) fn of_code(code: u64) -> Result<Self> {
        Self::ALL.iter().copied().find(|kind| kind.code() == code).ok_or_else(|| match code {
            2 => without_blake3(),
            _ => Error::format(format!("the hash type is {code}, expected 0 (sha1), 1 (sha256) or 2 (blake3)")),
        })
    }

    /// Name in the text form of references: `sha1`, `sha256`, `blake3`.
    pub(super) fn name(self) -> &'static str {
        match self {
            HashKind::Sha1 => "sha1",
            HashKind::Sha256 => "sha256",
            #[cfg(feature = "blake3")]
            HashKind::Blake3 => "blake3",
        }
    }

    pub(super) fn of_name(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name).ok_or_else(|| match name {
            "blake3" => without_blake3(),
            _ => Error::format(format!("hash type {name:?}; expected sha1, sha256 or blake3")),
        })
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            HashKind::Sha1 => 20,
            HashKind::Sha256 => 32,
            #[cfg(feature = "blake3")]
            HashKind::Blake3 => 32,
        }
    }

    pub(super) fn hash(self, data: &[u8]) -> BlockHash {
        let mut bytes = [0; LONGEST];
        match self {
            HashKind::Sha1 => bytes[..20].copy_from_slice(&sha1::Sha1::digest(data)),
            HashKind::Sha256 => bytes.copy_from_slice(&sha2::Sha256::digest(data)),
            #[cfg(feature = "blake3")]
            HashKind::Blake3 => bytes.copy_from_slice(blake3::hash(data).as_bytes()),
        }
        BlockHash { kind: self, bytes }
    }
}

fn without_blake3() -> Error {
    Error::unsupported(
        "the store names its blocks by BLAKE3, which needs the feature blake3 of the crate ctds-archives",
    )
}

impl BlockHash {
    pub(super) fn new(kind: HashKind, hash: &[u8]) -> Result<Self> {
        if hash.len() != kind.bytes() {
            let (name, expected) = (kind.name(), kind.bytes());
            return Err(Error::format(format!("a {name} of {} bytes; expected {expected}", hash.len())));
        }
        let mut bytes = [0; LONGEST];
        bytes[..hash.len()].copy_from_slice(hash);
        Ok(BlockHash { kind, bytes })
    }

    pub(super) fn kind(&self) -> HashKind {
        self.kind
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.kind.bytes()]
    }
}

/// The text form of references: `sha1:` and hexadecimal digits.
impl fmt::Display for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), ctds::hex::Hex(self.as_bytes()))
    }
}

impl fmt::Debug for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_other_programs() {
        let text = |kind: HashKind| kind.hash(b"abc").to_string();
        assert_eq!(text(HashKind::Sha1), "sha1:a9993e364706816aba3e25717850c26c9cd0d89d");
        let sha256 = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(text(HashKind::Sha256), sha256);
        #[cfg(feature = "blake3")]
        assert_eq!(text(HashKind::Blake3), "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
    }

    #[test]
    fn a_hash_has_the_length_of_its_kind() {
        assert!(
            BlockHash::new(HashKind::Sha1, &[0; 32]).is_err() && BlockHash::new(HashKind::Sha256, &[0; 20]).is_err()
        );
        assert!(HashKind::of_code(3).is_err() && HashKind::of_name("md5").is_err());
    }

    #[cfg(not(feature = "blake3"))]
    #[test]
    fn a_build_without_blake3_says_so() {
        for error in [HashKind::of_code(2).unwrap_err(), HashKind::of_name("blake3").unwrap_err()] {
            assert!(error.kind() == ctds::ErrorKind::Unsupported && error.to_string().contains("feature blake3"));
        }
    }
}
