//! Thin tables: casacore tables whose large files of tiles are symbolic links to an HDF5 file that holds the tiles.
//! docs/thin.md.
//!
//! The link record, a file `.h5bridge.json` that casacore ignores, names the HDF5 file and says where its datasets were
//! when the links were made.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind as IoErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Context, Error, Result, ResultExt};

/// Name of the link record: a file in the directory of a thin table (a casacore table whose files of tiles are symbolic
/// links to an HDF5 file) that lists these links. Casacore ignores it.
pub const RECORD: &str = ".h5bridge.json";

/// Version of the link record (the file in a table's directory that lists which of its files are symbolic links to an
/// HDF5 file) that is written and read; records of other versions are refused.
const VERSION: u32 = 1;

/// Maximum number of bytes that are read of a link record, the file that lists which files of a casacore table are
/// symbolic links to an HDF5 file. A longer record is invalid; a valid one has a few hundred bytes for each link.
const MAX_BYTES: u64 = 16 << 20;

/// The link record of a thin table: names the HDF5 file and the location of the tiles in that file
/// when the table was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub version: u32,
    /// Path of the HDF5 file that has the tiles, relative to the directory of the casacore table with links to this
    /// file.
    pub hdf5: PathBuf,
    /// Size in bytes of the HDF5 file when the symbolic links to it were made in the directory of a casacore table.
    pub size: u64,
    /// Modification time of the HDF5 file when the symbolic links to it were made in the directory of a casacore table,
    /// in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Inode of the HDF5 file when the symbolic links to it were made in the directory of a casacore table. Programs
    /// that write into the file keep the inode, programs that replace the file do not.
    pub inode: u64,
    /// Digest of the main table that the HDF5 file was converted from (SHA-256 of its content by the rules of CTFP-1,
    /// whatever the storage), as that file records it; `None` if no digest is recorded.
    pub source_digest: Option<String>,
    pub links: Vec<Link>,
}

/// A file of tiles in the directory of a casacore table that is a symbolic link to an HDF5 file, and the dataset of
/// that HDF5 file whose chunks are the tiles. A table with such links is a thin table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Name of the symbolic link in the directory of the casacore table, such as `table.f1_TSM0`.
    pub file: String,
    /// Path, in the HDF5 file, of the dataset whose chunks are the tiles that casacore reads through the symbolic link.
    pub dataset: String,
    /// Offset in bytes, in the HDF5 file, of the first of the tiles that casacore reads through the symbolic link (a file
    /// of tiles in the directory of a table that is a link to the HDF5 file); the tiles are the chunks of one dataset.
    pub address: u64,
    /// Total size in bytes, in the HDF5 file, of the tiles that casacore reads through the symbolic
    /// link; the tiles are the chunks of one dataset.
    pub bytes: u64,
}

impl Record {
    /// Makes the link record of a thin table, whose files of tiles are symbolic links to the HDF5 file `hdf5`, with the
    /// present size, modification time and inode of that file; `relative` is its path from the table's directory.
    #[doc(hidden)]
    pub fn new(hdf5: &Path, relative: PathBuf, source_digest: Option<String>, links: Vec<Link>) -> Result<Self> {
        let found = hdf5.metadata().with_context(|| Context::path(hdf5))?;
        Ok(Record {
            version: VERSION,
            hdf5: relative,
            size: found.len(),
            mtime_ns: mtime_ns(&found),
            inode: found.ino(),
            source_digest,
            links,
        })
    }

    /// Reads `.h5bridge.json` in `directory`, the record of which files of a casacore table are symbolic links to an
    /// HDF5 file; `None` if the directory has no such record.
    #[doc(hidden)]
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(RECORD);
        let Some(bytes) = read_record(&path).with_context(|| Context::path(&path))? else { return Ok(None) };
        let record: Self = serde_json::from_slice(&bytes)
            .map_err(|error| Error::format(format!("not a record of links: {error}")).caused_by(error))
            .with_context(|| Context::path(&path))?;
        if record.version != VERSION {
            let message = format!("a record of links of version {}, only {VERSION} is read", record.version);
            return Err(Error::unsupported(message).context(Context::path(&path)));
        }
        Ok(Some(record))
    }

    /// Writes this record, which tells which files of a casacore table are symbolic links to which HDF5 file, as JSON
    /// to `.h5bridge.json` in the table's `directory`.
    #[doc(hidden)]
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(RECORD);
        let bytes = serde_json::to_vec_pretty(self).map_err(|error| Error::format(error.to_string()))?;
        fs::write(&path, bytes).with_context(|| Context::path(&path))
    }

    /// Fails if the HDF5 file to which files of the casacore table in `directory` are symbolic links was moved or
    /// rewritten since the links were made. Changed elements of datasets are allowed: the table reads its tiles from
    /// there.
    #[doc(hidden)]
    pub fn check(&self, directory: &Path, check: fn(&Record, &Path) -> Result<()>) -> Result<()> {
        let path = directory.join(&self.hdf5);
        let again = format!("`h5bridge link HDF5FILE {} --overwrite` makes the table again", directory.display());
        let found = path.metadata().map_err(|error| {
            let message = format!("the HDF5 file that has the tiles of this table cannot be opened: {error}; {again}");
            Error::format(message).context(Context::path(&path))
        })?;
        if found.len() == self.size && mtime_ns(&found) == self.mtime_ns {
            return Ok(());
        }
        let rewritten = |reason: String| {
            let message = format!("the HDF5 file was rewritten since this table was linked to it: {reason}; {again}");
            Error::format(message).context(Context::path(&path))
        };
        if found.ino() != self.inode {
            return Err(rewritten("it is another file".to_owned()));
        }
        check(self, &path).map_err(|error| rewritten(error.message().to_owned()))
    }
}

/// Refuses the HDF5 file of a thin table that was written to since the table was made: only a library that reads HDF5 can tell
/// whether the tiles are still where they were.
///
/// # Errors
/// `Unsupported`.
pub fn unchecked(_record: &Record, _hdf5: &Path) -> Result<()> {
    Err(Error::unsupported("it has changed, and this program cannot read HDF5"))
}

/// Reads the record of which files of the casacore table in `directory` are symbolic links to an HDF5 file, and checks
/// that this file was not moved or rewritten since. `None` without a record: the directory is not a thin table.
///
/// # Errors
/// Those of [`Record::check`].
pub fn check(directory: &Path, check: fn(&Record, &Path) -> Result<()>) -> Result<Option<Record>> {
    let record = Record::read(directory)?;
    record.as_ref().map_or(Ok(()), |record| record.check(directory, check))?;
    Ok(record)
}

/// Reads at most [`MAX_BYTES`] bytes of the file at `path`, which records the links of a casacore table to an HDF5
/// file. A longer file is cut off, which makes it invalid. `None` if the file is missing.
fn read_record(path: &Path) -> Result<Option<Vec<u8>>> {
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), IoErrorKind::NotFound | IoErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !metadata.is_file() {
        return Err(Error::format("the record of links is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn mtime_ns(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};

    #[test]
    fn records_that_lead_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let record = directory.join(RECORD);
        assert_eq!(check(directory, unchecked).unwrap(), None);
        fs::create_dir(&record).unwrap();
        check(directory, unchecked)
            .fails(ErrorKind::Format, ".h5bridge.json: the record of links is not a regular file");
        fs::remove_dir(&record).unwrap();
        fs::write(&record, "[]").unwrap();
        let Err(error) = check(directory, unchecked) else { panic!("an array is not a record") };
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().contains(".h5bridge.json: not a record of links: invalid length 0"), "{error}");

        let file = directory.join("a.h5");
        fs::write(&file, "HDF5").unwrap();
        let mut links = Record::new(&file, "a.h5".into(), None, Vec::new()).unwrap();
        links.version = 2;
        links.write(directory).unwrap();
        check(directory, unchecked).fails(ErrorKind::Unsupported, "a record of links of version 2, only 1 is read");
        links.version = VERSION;
        links.write(directory).unwrap();
        assert_eq!(check(directory, unchecked).unwrap(), Some(links));
        let again = format!("`h5bridge link HDF5FILE {} --overwrite` makes the table again", directory.display());
        fs::write(directory.join("b.h5"), "another").unwrap();
        fs::rename(directory.join("b.h5"), &file).unwrap();
        check(directory, unchecked).fails(
            ErrorKind::Format,
            &format!("the HDF5 file was rewritten since this table was linked to it: it is another file; {again}"),
        );
        fs::remove_file(&file).unwrap();
        let missing =
            "the HDF5 file that has the tiles of this table cannot be opened: No such file or directory (os error 2)";
        check(directory, unchecked).fails(ErrorKind::Format, &format!("a.h5: {missing}; {again}"));
    }
}
