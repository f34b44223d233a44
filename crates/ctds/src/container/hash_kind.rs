//! The hash functions of checksums and fingerprints; `ctds-hdf5` computes them.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A hash function with values of 256 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum HashKind {
    /// BLAKE3, as `b3sum` prints it: fast on every processor, and on all threads at once.
    #[default]
    Blake3,
    /// SHA-256, as `sha256sum` prints it: for archives whose rules ask for it. Slow on processors
    /// without instructions for it.
    Sha256,
}

impl HashKind {
    /// All kinds, the default first.
    pub const ALL: [Self; 2] = [HashKind::Blake3, HashKind::Sha256];

    /// Name of the kind in options and in documents: `blake3`, `sha256`.
    pub fn name(self) -> &'static str {
        match self {
            HashKind::Blake3 => "blake3",
            HashKind::Sha256 => "sha256",
        }
    }

    /// Name of the fingerprints of tables that are computed with this hash: `CTFP-2` with BLAKE3,
    /// `CTFP-1` with SHA-256. Both hash the same bytes.
    pub fn fingerprint(self) -> &'static str {
        match self {
            HashKind::Blake3 => "CTFP-2",
            HashKind::Sha256 => "CTFP-1",
        }
    }
}

impl fmt::Display for HashKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HashKind::Blake3 => "BLAKE3",
            HashKind::Sha256 => "SHA-256",
        })
    }
}

impl FromStr for HashKind {
    type Err = Error;

    /// Finds a kind by its [`name`](Self::name); `Usage` if no kind has it.
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| Error::usage(format!("{name:?} is not a hash; expected blake3 or sha256")))
    }
}
