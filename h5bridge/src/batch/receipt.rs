//! Receipts of `h5bridge batch`: a small JSON file beside each target, which records what the
//! target was made from and how to check it.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ctds_hdf5::program::{Hex, files_below};
use ctds_hdf5::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::checksum::{self, Checksum, Checksums};
use super::item::Id;

const SUFFIX: &str = ".receipt.json";

/// Appended to an output's temporary path, to be removed with its directory after a crash.
const PART: &str = ".0";

/// Casacore changes this file even when it only reads; not part of a fingerprint.
const CHANGED_BY_READING: &str = "table.lock";

/// One file of a target that is a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    path: String,
    bytes: u64,
    #[serde(default, skip_serializing_if = "Checksums::is_empty")]
    checksums: Checksums,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) id: Id,
    pub(crate) verb: String,
    /// Result of [`fingerprint`]; `None` if the source was not readable.
    #[serde(default)]
    pub(crate) source: Option<String>,
    /// All files of a directory.
    pub(crate) file_bytes: u64,
    /// CTFP-2 of the main table, if the subcommand printed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<u64>,
    /// Empty for a directory.
    #[serde(default, skip_serializing_if = "Checksums::is_empty")]
    pub(crate) checksums: Checksums,
    /// Empty unless the target is a directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<Part>,
    pub(crate) version: String,
}

#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) bytes: u64,
    pub(crate) checksums: Checksums,
    pub(crate) files: Vec<Part>,
}

impl Measured {
    /// Size, and `kinds` of the file or of each file in the directory.
    pub(crate) fn read(output: &Path, kinds: &[Checksum]) -> Result<Self> {
        if !output.is_dir() {
            let (bytes, checksums) = checksum::of_file(output, kinds)?;
            return Ok(Measured { bytes, checksums, files: Vec::new() });
        }
        let mut measured = Measured::default();
        for path in files_below(output)? {
            let (bytes, checksums) = checksum::of_file(&path, kinds)?;
            measured.bytes += bytes;
            let path = path.strip_prefix(output).unwrap_or(&path).to_string_lossy().into_owned();
            measured.files.push(Part { path, bytes, checksums });
        }
        Ok(measured)
    }
}

pub(crate) fn path_of(target: &Path) -> PathBuf {
    let mut path = OsString::from(target);
    path.push(SUFFIX);
    path.into()
}

impl Receipt {
    /// `None` if it is missing or cannot be read.
    pub(crate) fn of(target: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path_of(target)).ok()?).ok()
    }

    pub(crate) fn kinds(&self) -> Vec<Checksum> {
        let part = self.files.first().map(|part| &part.checksums);
        part.unwrap_or(&self.checksums).keys().copied().collect()
    }

    /// Written beside `staged`, the temporary path of `target`, and then renamed; after a kill it
    /// is removed with the temporary directory.
    pub(crate) fn write(&self, target: &Path, staged: &Path) -> Result<()> {
        let path = path_of(target);
        let mut part = OsString::from(staged);
        part.push(PART);
        let write = || -> std::io::Result<()> {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            let mut file = fs::File::create(&part)?;
            file.write_all(&text)?;
            file.sync_data()?;
            fs::rename(&part, &path)
        };
        write().map_err(|error| Error::from(error).context(path.as_path()))
    }
}

/// All files below a directory.
pub(crate) fn size_of(path: &Path) -> Result<u64> {
    let metadata = path.metadata().map_err(|error| Error::from(error).context(path))?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let mut bytes = 0;
    for file in files_below(path)? {
        bytes += file.metadata().map_err(|error| Error::from(error).context(file.as_path()))?.len();
    }
    Ok(bytes)
}

/// A path into a container (`archive.h5/ANTENNA`) leads to the container file.
fn on_disk(source: &Path) -> Result<&Path> {
    for path in source.ancestors() {
        match path.symlink_metadata() {
            Ok(_) if path == source || path.is_file() => return Ok(path),
            Ok(_) => break,
            Err(_) => {}
        }
    }
    Err(Error::new(ErrorKind::NotFound, "the source does not exist").context(source))
}

/// SHA-256 of path (below the source), size and modification time of each file but `table.lock`,
/// without content. For a path into a container: that of the container file.
pub(crate) fn fingerprint(source: &Path) -> Result<String> {
    let path = on_disk(source)?;
    let root = path.canonicalize().map_err(|error| Error::from(error).context(path))?;
    let mut hash = Sha256::new();
    for file in files_below(&root)? {
        if file.file_name().is_some_and(|name| name == CHANGED_BY_READING) {
            continue;
        }
        let metadata = file.metadata().map_err(|error| Error::from(error).context(file.as_path()))?;
        let name = file.strip_prefix(&root).unwrap_or(&file).as_os_str().as_encoded_bytes();
        hash.update(name);
        hash.update(format!("\0{} {}.{:09}\n", metadata.len(), metadata.mtime(), metadata.mtime_nsec()));
    }
    Ok(Hex(&hash.finalize()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_change_with_files_but_not_with_locks() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("a.ms");
        fs::create_dir(&table).unwrap();
        fs::write(table.join("table.dat"), b"one").unwrap();
        let first = fingerprint(&table).unwrap();
        fs::write(table.join("table.lock"), b"lock").unwrap();
        assert_eq!(fingerprint(&table).unwrap(), first);
        fs::write(table.join("table.f0"), b"").unwrap();
        let second = fingerprint(&table).unwrap();
        assert_ne!(second, first);
        let file = fs::File::options().write(true).open(table.join("table.f0")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_ne!(fingerprint(&table).unwrap(), second);
        // a path into a container is the container
        let container = table.join("table.dat");
        assert_eq!(fingerprint(&container.join("ANTENNA")).unwrap(), fingerprint(&container).unwrap());
        assert_eq!(fingerprint(&table.join("NO")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn receipts_are_read_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.h5");
        fs::write(&target, b"data").unwrap();
        let measured = Measured::read(&target, &[Checksum::Md5]).unwrap();
        let receipt = Receipt {
            id: Id(5),
            verb: "to-hdf5".into(),
            source: None,
            file_bytes: measured.bytes,
            digest: None,
            rows: Some(3),
            checksums: measured.checksums,
            files: Vec::new(),
            version: "0".into(),
        };
        receipt.write(&target, &folder.path().join("staged")).unwrap();
        assert_eq!(Receipt::of(&target), Some(receipt));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        fs::write(path_of(&target), b"{").unwrap();
        assert_eq!(Receipt::of(&target), None);
    }
}
