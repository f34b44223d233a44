//! Checksums (Adler-32, MD5 …) of the outputs of `h5bridge batch`, of the kinds that archives and
//! data movers use; they are recorded in receipts, small files beside the outputs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use ctds_hdf5::program::{Hex, files_below};
use ctds_hdf5::{Error, Result};
use libdeflater::Adler32;
use md5::Md5;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const BLOCK: usize = 1 << 20;

/// A kind of checksum of a file. All are printed as hexadecimal digits, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Checksum {
    /// Adler-32, for Rucio and FTS
    Adler32,
    /// MD5, for Rucio and S3
    Md5,
    /// CRC-32C, for NGAS and object stores
    Crc32c,
    /// SHA-256, as sha256sum prints it
    Sha256,
    /// BLAKE3, as b3sum prints it
    Blake3,
}

/// Hexadecimal digits by kind.
pub(crate) type Checksums = BTreeMap<Checksum, String>;

enum Running {
    Adler32(Adler32),
    Md5(Md5),
    Crc32c(u32),
    Sha256(Sha256),
    Blake3(Box<blake3::Hasher>),
}

impl Running {
    fn new(kind: Checksum) -> Self {
        match kind {
            Checksum::Adler32 => Running::Adler32(Adler32::new()),
            Checksum::Md5 => Running::Md5(Md5::new()),
            Checksum::Crc32c => Running::Crc32c(0),
            Checksum::Sha256 => Running::Sha256(Sha256::new()),
            Checksum::Blake3 => Running::Blake3(Box::default()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Running::Adler32(sum) => sum.update(bytes),
            Running::Md5(sum) => sum.update(bytes),
            Running::Crc32c(sum) => *sum = crc32c::crc32c_append(*sum, bytes),
            Running::Sha256(sum) => sum.update(bytes),
            Running::Blake3(sum) => {
                sum.update(bytes);
            }
        }
    }

    fn finish(self) -> String {
        match self {
            Running::Adler32(sum) => format!("{:08x}", sum.sum()),
            Running::Md5(sum) => Hex(&sum.finalize()).to_string(),
            Running::Crc32c(sum) => format!("{sum:08x}"),
            Running::Sha256(sum) => Hex(&sum.finalize()).to_string(),
            Running::Blake3(sum) => sum.finalize().to_string(),
        }
    }
}

/// Reads the file once; also returns its size in bytes.
pub(super) fn of_file(path: &Path, kinds: &[Checksum]) -> Result<(u64, Checksums)> {
    let read = || -> std::io::Result<(u64, Checksums)> {
        let mut file = File::open(path)?;
        if kinds.is_empty() {
            return Ok((file.metadata()?.len(), Checksums::new()));
        }
        let mut sums: Vec<(Checksum, Running)> = kinds.iter().map(|&kind| (kind, Running::new(kind))).collect();
        let (mut block, mut bytes) = (vec![0; BLOCK], 0);
        loop {
            match file.read(&mut block) {
                Ok(0) => break,
                Ok(count) => {
                    bytes += count as u64;
                    sums.iter_mut().for_each(|(_, sum)| sum.update(&block[..count]));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((bytes, sums.into_iter().map(|(kind, sum)| (kind, sum.finish())).collect()))
    };
    read().map_err(|error| Error::from(error).context(path))
}

/// Files, or directories of the same files by relative path, with the same bytes.
pub(super) fn same_content(left: &Path, right: &Path) -> Result<bool> {
    let (lefts, rights) = (files_below(left)?, files_below(right)?);
    if lefts.len() != rights.len() || left.is_dir() != right.is_dir() {
        return Ok(false);
    }
    for (one, two) in lefts.iter().zip(&rights) {
        if one.strip_prefix(left).ok() != two.strip_prefix(right).ok() {
            return Ok(false);
        }
        if of_file(one, &[])? != of_file(two, &[])? {
            return Ok(false);
        }
        let kinds = [Checksum::Blake3];
        if of_file(one, &kinds)? != of_file(two, &kinds)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_standards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, b"123456789").unwrap();
        let kinds = [Checksum::Adler32, Checksum::Md5, Checksum::Crc32c, Checksum::Sha256, Checksum::Blake3];
        let (bytes, sums) = of_file(&path, &kinds).unwrap();
        assert_eq!(bytes, 9);
        // the check values of the catalogue of CRCs, RFC 1950 and coreutils
        assert_eq!(sums[&Checksum::Adler32], "091e01de");
        assert_eq!(sums[&Checksum::Crc32c], "e3069283");
        assert_eq!(sums[&Checksum::Md5], "25f9e794323b453885f5181f1b624d0b");
        assert_eq!(sums[&Checksum::Blake3], "b7d65b48420d1033cb2595293263b6f72eabee20d55e699d0df1973b3c9deed1");
        assert_eq!(sums[&Checksum::Sha256], "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225");
    }

    #[test]
    fn contents_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, file: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join(file), text).unwrap();
            path
        };
        let (one, two) = (make("1", "f", "x"), make("2", "f", "x"));
        assert!(same_content(&one, &two).unwrap());
        assert!(!same_content(&one, &make("3", "g", "x")).unwrap());
        assert!(!same_content(&one, &make("4", "f", "y")).unwrap());
        assert!(!same_content(&one, &two.join("f")).unwrap());
    }
}
