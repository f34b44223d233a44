//! Reads and writes files of the operating system.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use super::bounced;
use super::kept::Kept;
use super::write_behind::WriteBehind;
use super::{Raw, RawCopy, ReadAt, WriteAt, past_end};
use crate::error::{Error, Result};
use crate::os::{self, write_back};
use crate::sync::LockUnpoisoned;

/// Growth from which disk space is reserved in advance.
const RESERVED_BYTES: u64 = 1 << 20;
/// Bytes of one system call: larger writes are not faster, and make larger pages of the page cache,
/// which can take five times as long if a virtual machine has to request memory from its host.
const WRITE_BYTES: usize = 64 << 10;

/// A file of the operating system, opened for reading.
#[derive(Debug)]
pub struct FileSource {
    file: Kept,
}

impl FileSource {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// `NotFound` or `Io`; `Format` if it is a directory.
    pub fn open(path: &Path) -> Result<Self> {
        let file = Kept::open(path)?;
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

impl ReadAt for File {
    fn len(&self) -> Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        read_exact(self, offset, out)
    }
}

/// A file of the operating system, opened for reading and writing. While much is written to it, the
/// system is asked to write it to the disk, so that making the file durable takes little time at
/// the end.
#[derive(Debug)]
pub struct FileTarget {
    file: File,
    behind: Option<Mutex<WriteBehind>>,
}

impl FileTarget {
    /// Creates a file, or empties an existing one.
    ///
    /// # Errors
    /// `Io` or `NoSpace`.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(FileTarget { file, behind: Some(Mutex::default()) })
    }

    /// A file that exists until it is closed.
    ///
    /// # Errors
    /// `Io` or `NoSpace`.
    #[doc(hidden)]
    pub fn create_unnamed(directory: &Path) -> Result<Self> {
        Ok(FileTarget { file: tempfile::tempfile_in(directory)?, behind: None })
    }

    /// Whether the system is asked early to write the bytes to the disk.
    #[doc(hidden)]
    pub fn write_behind(self, is_wanted: bool) -> Self {
        FileTarget { behind: is_wanted.then(Mutex::default), ..self }
    }

    fn wrote(&self, offset: u64, len: u64) {
        let Some(behind) = &self.behind else { return };
        // the lock is not held while the system is asked
        let due = behind.lock_unpoisoned().wrote(offset..offset + len);
        due.into_iter().for_each(|due| write_back(&self.file, due));
    }

    #[doc(hidden)]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// `NotFound` or `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(FileTarget { file, behind: Some(Mutex::default()) })
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
        self.wrote(offset, data.len() as u64);
        Ok(())
    }

    fn copy_raw(&self, offset: u64, bytes: Raw<'_>, by: &dyn RawCopy) -> u64 {
        let copied = by.copy(bytes, &self.file, offset);
        self.wrote(offset, copied);
        copied
    }

    fn reserve(&self, len: u64) -> Result<()> {
        reserve(&self.file, len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        Ok(self.file.set_len(len)?)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.file.sync_all()?)
    }
}

/// Copies by a system call; returns the number of bytes, 0 if the system cannot.
pub fn copy_between(bytes: Raw<'_>, to: &File, offset: u64) -> u64 {
    os::copy_range(bytes.file, &(bytes.offset..bytes.offset + bytes.len), to, offset)
}

/// Reserves space for `len` bytes without changing the length. Does nothing where the file system
/// cannot, and on btrfs, which does not compress data in reserved space.
///
/// # Errors
/// `NoSpace`.
pub fn reserve(file: &File, len: u64) -> Result<()> {
    let there = file.metadata()?.len();
    if len.saturating_sub(there) < RESERVED_BYTES {
        return Ok(());
    }
    Ok(os::reserve(file, there..len)?)
}

/// Releases space reserved after the end, by [`reserve`] or by XFS, which reserves half a gigabyte
/// for a file with half a gigabyte of shared bytes.
pub fn trim(path: &Path) -> Result<()> {
    let file = File::options().write(true).open(path)?;
    Ok(file.set_len(file.metadata()?.len())?)
}

fn read_exact(file: &File, offset: u64, out: &mut [u8]) -> Result<()> {
    bounced::read(file, offset, out).map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            past_end(offset, out.len() as u64, file.metadata().map_or(0, |metadata| metadata.len()))
        } else {
            error.into()
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_system_is_asked_early_if_it_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let create = |name: &str| FileTarget::create(&folder.path().join(name)).unwrap();
        let waiting = |file: &FileTarget| file.behind.as_ref().map(|behind| behind.lock().unwrap().waiting());
        let (source, asked) = (create("source"), create("asked"));
        let bytes = vec![1; 5 << 20];
        source.write_at(0, &bytes[..5000]).unwrap();
        assert_eq!(waiting(&source), Some(0..5000));
        source.write_at(5000, &bytes[5000..]).unwrap();
        assert_eq!(waiting(&source), Some(5 << 20..5 << 20));
        let copied = asked.copy_raw(0, Raw { file: source.file(), offset: 0, len: 5 << 20 }, &());
        assert_eq!(waiting(&asked), Some(if copied < 4 << 20 { 0..copied } else { copied..copied }));
        let alone = create("alone").write_behind(false);
        alone.write_at(0, &bytes).unwrap();
        assert_eq!(waiting(&alone), None);
    }

    #[test]
    fn space_that_is_not_used_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reserved");
        std::fs::write(&path, [1; 5000]).unwrap();
        let file = FileTarget::open(&path).unwrap();
        file.reserve(8 << 20).unwrap();
        let blocks = |file: &FileTarget| file.file.metadata().unwrap().blocks() * 512;
        assert_eq!(file.len().unwrap(), 5000, "the length is as it was");
        let reserved = blocks(&file);
        trim(&path).unwrap();
        assert_eq!(file.len().unwrap(), 5000);
        assert!(blocks(&file) < 1 << 20, "{} bytes are still reserved", blocks(&file));
        if reserved < 8 << 20 {
            eprintln!("not tested: {} is on a file system that reserves no space", folder.path().display());
        }
    }
}
