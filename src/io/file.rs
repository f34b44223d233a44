//! A file of the operating system.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::fcntl::copy_file_range;

use super::{Raw, ReadAt, WriteAt, past_end};
use crate::error::{Error, Result};

/// Written at a time. What is written at once is cached in pages as large, and free memory in pages of megabytes may first
/// have to be had from the host of a virtual machine: up to five times as slow there, and no faster elsewhere.
const WRITE_BYTES: usize = 64 << 10;

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
        read_exact(&self.file, offset, out)
    }

    fn raw(&self, offset: u64) -> Option<Raw<'_>> {
        Some(Raw { file: &self.file, offset, len: u64::MAX - offset })
    }
}

/// A file opened for reading and writing.
#[derive(Debug)]
pub struct FileTarget {
    file: File,
}

impl FileTarget {
    /// Makes the file, or empties the one that is there.
    ///
    /// # Errors
    /// `Io` or `NoSpace`.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(FileTarget { file })
    }

    /// Opens a file that is there.
    ///
    /// # Errors
    /// `NotFound` or `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(FileTarget { file: File::options().read(true).write(true).open(path)? })
    }
}

impl ReadAt for FileTarget {
    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        read_exact(&self.file, offset, out)
    }
}

impl WriteAt for FileTarget {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut at = offset;
        for piece in data.chunks(WRITE_BYTES) {
            self.file.write_all_at(piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn copy_raw(&self, offset: u64, bytes: Raw<'_>) -> u64 {
        let (mut from, mut to) = (bytes.offset as i64, offset as i64);
        // where this cannot be done the caller reads and writes, and sees why
        copy_file_range(bytes.file, Some(&mut from), &self.file, Some(&mut to), bytes.len as usize).unwrap_or(0) as u64
    }

    fn set_len(&self, len: u64) -> Result<()> {
        Ok(self.file.set_len(len)?)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.file.sync_all()?)
    }
}

fn read_exact(file: &File, offset: u64, out: &mut [u8]) -> Result<()> {
    file.read_exact_at(out, offset).map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            past_end(offset, out.len() as u64, file.metadata().map_or(0, |metadata| metadata.len()))
        } else {
            error.into()
        }
    })
}
