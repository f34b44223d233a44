//! A file of the operating system.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{ReadAt, past_end};
use crate::error::{Error, Result};

/// A file opened for reading.
#[derive(Debug)]
pub struct FileSource {
    file: File,
}

impl FileSource {
    /// Opens the file.
    ///
    /// # Errors
    /// `NotFound` or `Io`; `Format` if it is a directory.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(Error::format("a directory, where a file is expected"));
        }
        Ok(FileSource { file })
    }
}

impl ReadAt for FileSource {
    fn len(&self) -> Result<u64> {
        // asked each time: another program may be appending
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(out, offset).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                past_end(offset, out.len() as u64, self.file.metadata().map_or(0, |metadata| metadata.len()))
            } else {
                error.into()
            }
        })
    }
}
