//! Thin tables: casacore tables whose large files of tiles are symbolic links to an HDF5 file that
//! holds the tiles. docs/howto/share.md.
//!
//! The link record, a file `.h5bridge.json` that casacore ignores, names the HDF5 file and says
//! where its datasets were when the links were made.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind as IoErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Context, Error, Result, ResultExt};

/// Name of the link record in the directory of a thin table. Casacore ignores it.
pub const RECORD: &str = ".h5bridge.json";

/// Records of other versions are refused.
const VERSION: u32 = 1;

/// A longer record is invalid; a valid one has a few hundred bytes for each link.
const MAX_BYTES: u64 = 16 << 20;

/// The HDF5 file of a thin table, and where the tiles were in it when the table was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub version: u32,
    /// Relative to the directory of the table.
    pub hdf5: PathBuf,
    /// When the links were made.
    pub size: u64,
    /// When the links were made, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Programs that write into the file keep the inode, programs that replace it do not.
    pub inode: u64,
    /// Digest of the main table (SHA-256 by CTFP-1), if the HDF5 file records it.
    pub source_digest: Option<String>,
    pub links: Vec<Link>,
}

/// A file of tiles that is a symbolic link, and the dataset whose chunks are the tiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Name of the link, such as `table.f1_TSM0`.
    pub file: String,
    pub dataset: String,
    /// Byte of the first tile in the HDF5 file.
    pub address: u64,
    /// Bytes of all tiles.
    pub bytes: u64,
}

impl Record {
    /// `relative` is the path of `hdf5` from the table's directory.
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

    /// `None` if the directory has no record.
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

    #[doc(hidden)]
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(RECORD);
        let bytes = serde_json::to_vec_pretty(self).map_err(|error| Error::format(error.to_string()))?;
        fs::write(&path, bytes).with_context(|| Context::path(&path))
    }

    /// Fails if the HDF5 file was moved or rewritten since. Changed elements of datasets are
    /// allowed: the table reads its tiles from there.
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

/// Only a library that reads HDF5 can tell whether the tiles are still where they were.
///
/// # Errors
/// `Unsupported`.
pub fn unchecked(_record: &Record, _hdf5: &Path) -> Result<()> {
    Err(Error::unsupported("it has changed, and this program cannot read HDF5"))
}

/// Reads the record and checks it. `None` without a record: the directory is not a thin table.
///
/// # Errors
/// Those of [`Record::check`].
pub fn check(directory: &Path, check: fn(&Record, &Path) -> Result<()>) -> Result<Option<Record>> {
    let record = Record::read(directory)?;
    record.as_ref().map_or(Ok(()), |record| record.check(directory, check))?;
    Ok(record)
}

/// At most [`MAX_BYTES`]: a cut record is invalid. `None` if the file is missing.
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
