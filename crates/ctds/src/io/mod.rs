//! Positioned reads and writes of bytes, in files, in memory and on servers.

mod asked;
mod bounced;
mod disk_rate;
mod file;
mod gather;
mod kept;
#[cfg(any(test, feature = "internals"))]
mod memory;
mod paged;
mod paged_mut;
mod recent;
mod write_behind;

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;

pub use crate::value::ByteOrder;
#[doc(hidden)]
pub use asked::Asked;
#[doc(hidden)]
pub use disk_rate::{DISK_RATE_BYTES, disk_rate};
pub use file::{FileSource, FileTarget};
#[doc(hidden)]
pub use file::{copy_between, reserve, trim};
#[doc(hidden)]
pub use gather::Gather;
#[doc(hidden)]
pub use kept::Kept;
pub use kept::keep_lock_files;
#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
pub use memory::MemoryFile;
#[doc(hidden)]
pub use paged::Paged;
#[doc(hidden)]
pub use paged_mut::PagedMut;
#[doc(hidden)]
pub use recent::Recent;
#[doc(hidden)]
pub use write_behind::Growth;

/// A file on disk, in memory or on a server, of which any thread can read bytes at any offset
/// through `&self`.
///
/// Implemented by files, virtual files in containers, and plain memory; callers can bring their
/// own.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// The length of the file in bytes.
    ///
    /// # Errors
    /// `Io` if it cannot be found out.
    fn len(&self) -> Result<u64>;

    /// Reads the bytes from `offset` on until `out` is full.
    ///
    /// # Errors
    /// `Format` if the file ends before that, `Io` if the system fails. `out` is then unspecified.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()>;

    /// The bytes from `offset` on as a range of a file of the operating system, which the system
    /// can copy; `None` if no such file stores them unchanged (they are compressed or in memory,
    /// for instance).
    fn raw(&self, _offset: u64) -> Option<Raw<'_>> {
        None
    }

    /// Whether the length of the file is 0.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A range of consecutive bytes in a file of the operating system, which the system can copy to
/// another file by itself.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a> {
    /// The open file of the operating system that contains the range of bytes.
    pub file: &'a File,
    /// Offset of the first byte of the range from the start of `file`, in bytes.
    pub offset: u64,
    /// Number of consecutive bytes from `offset` on; `file` may end before the last of them.
    pub len: u64,
}

/// A way to copy bytes between files within the operating system, such as sharing blocks.
pub trait RawCopy: Sync {
    /// Maximum number of bytes that a caller passes to one call of [`copy`](Self::copy).
    fn most_bytes(&self) -> u64 {
        4 << 20
    }

    /// Copies the bytes `from` to `offset` of the file `to`, as many as it can; returns the number
    /// of copied bytes, 0 if it cannot copy any.
    fn copy(&self, from: Raw<'_>, to: &File, offset: u64) -> u64 {
        copy_between(from, to, offset)
    }
}

/// Copies within the operating system, without sharing blocks explicitly.
impl RawCopy for () {}

/// A file that can be written at any position, on `&self` and from any thread; the caller orders
/// writes that overlap.
pub trait WriteAt: ReadAt {
    /// Writes all of `data` at `offset`; a file that ends before `offset` is filled with zeros up
    /// to there. Empty `data` changes nothing.
    ///
    /// # Errors
    /// `Io` or `NoSpace`. How much was written is then unspecified.
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()>;

    /// Lets `by` copy the bytes of another file to `offset` of this one, as many as it can; returns
    /// the number of copied bytes, 0 if this file does not allow it.
    fn copy_raw(&self, _offset: u64, _bytes: Raw<'_>, _by: &dyn RawCopy) -> u64 {
        0
    }

    /// Announces that the file will have `len` bytes, all of them written, so that disk space for
    /// them can be reserved.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    fn reserve(&self, _len: u64) -> Result<()> {
        Ok(())
    }

    /// Sets the length of the file: cuts it off, or lengthens it with zeros.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn set_len(&self, len: u64) -> Result<()>;

    /// Makes all earlier writes to the file durable, so that later ones cannot reach the disk
    /// before them.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn sync(&self) -> Result<()>;
}

impl ReadAt for [u8] {
    fn len(&self) -> Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|&end| end <= <[u8]>::len(self) as u64);
        let Some(end) = end else { return Err(past_end(offset, out.len() as u64, <[u8]>::len(self) as u64)) };
        out.copy_from_slice(&self[offset as usize..end as usize]);
        Ok(())
    }
}

impl ReadAt for Vec<u8> {
    fn len(&self) -> Result<u64> {
        ReadAt::len(self.as_slice())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.as_slice().read_at(offset, out)
    }
}

/// Forwards every method, also those with a default, which the file may override.
macro_rules! forward_read_at {
    ($($pointer:ty),*) => {$(
        impl<T: ReadAt + ?Sized> ReadAt for $pointer {
            fn len(&self) -> Result<u64> {
                (**self).len()
            }

            fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
                (**self).read_at(offset, out)
            }

            fn raw(&self, offset: u64) -> Option<Raw<'_>> {
                (**self).raw(offset)
            }

            fn is_empty(&self) -> Result<bool> {
                (**self).is_empty()
            }
        }
    )*};
}

forward_read_at!(&T, Arc<T>, Box<T>);

#[doc(hidden)]
pub fn past_end(offset: u64, wanted: u64, len: u64) -> Error {
    Error::format(format!("{wanted} bytes expected at byte {offset}, but the file has {len} bytes"))
}

/// Reads files of metadata, such as `table.info`.
///
/// # Errors
/// `Limit` if the file has more than 1 GiB (2^30 bytes); those of reading it.
#[doc(hidden)]
pub fn read_all(source: &dyn ReadAt) -> Result<Vec<u8>> {
    let len = source.len()?;
    limits::whole_file(len)?;
    let mut bytes = vec![0; len as usize];
    source.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// The length of the file is checked before memory is allocated.
#[doc(hidden)]
pub fn read_bytes(source: &dyn ReadAt, offset: u64, count: u64) -> Result<Vec<u8>> {
    let len = source.len()?;
    if offset.checked_add(count).is_none_or(|end| end > len) {
        return Err(past_end(offset, count, len));
    }
    let mut bytes = vec![0; count as usize];
    source.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

#[doc(hidden)]
pub fn read_array<const N: usize>(source: &dyn ReadAt, offset: u64) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    source.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn has_raw(source: impl ReadAt) -> bool {
        source.raw(0).is_some()
    }

    #[test]
    fn pointers_forward_all_that_a_file_can_do() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"bytes").unwrap();
        let open = || FileSource::open(file.path()).unwrap();
        let file_at = open();
        assert!(has_raw(open()) && has_raw(&file_at) && has_raw(Arc::new(open())) && has_raw(Box::new(open())));
        let nested: Arc<dyn ReadAt> = Arc::new(open());
        let twice: &&Arc<dyn ReadAt> = &&nested;
        assert!(has_raw(twice));
        let boxed = Box::new(&nested);
        assert_eq!(read_all(&boxed).unwrap(), b"bytes");
    }

    #[derive(Debug)]
    struct Sparse(u64);

    impl ReadAt for Sparse {
        fn len(&self) -> Result<u64> {
            Ok(self.0)
        }

        fn read_at(&self, _offset: u64, out: &mut [u8]) -> Result<()> {
            out.fill(0);
            Ok(())
        }
    }

    #[test]
    fn a_length_that_nothing_backs_is_refused_before_memory_is_taken() {
        for len in [(1 << 30) + 1, 1 << 60, u64::MAX] {
            assert_eq!(read_all(&Sparse(len)).unwrap_err().kind(), ErrorKind::Limit);
        }
        assert_eq!(read_all(&Sparse(70)).unwrap(), [0; 70]);
    }
}
