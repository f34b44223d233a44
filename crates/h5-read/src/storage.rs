//! Access to the bytes of a file.

use std::io;
use std::sync::Arc;

/// Bytes of a file, which any thread can read at any offset.
///
/// Implemented by files of the system and by memory; callers bring others: servers, caches, virtual
/// files.
pub trait Storage: Send + Sync {
    /// Number of bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn len(&self) -> io::Result<u64>;

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before; those of the system.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Whether the file is empty.
    ///
    /// # Errors
    /// Those of [`len`](Self::len).
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

impl Storage for [u8] {
    fn len(&self) -> io::Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let bytes = start.and_then(|start| self.get(start..start.checked_add(out.len())?));
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Storage for Vec<u8> {
    fn len(&self) -> io::Result<u64> {
        Storage::len(self.as_slice())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_at(offset, out)
    }
}

#[cfg(unix)]
impl Storage for std::fs::File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, out, offset)
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: Storage + ?Sized> Storage for $pointer {
            fn len(&self) -> io::Result<u64> {
                (**self).len()
            }

            fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
                (**self).read_at(offset, out)
            }

            fn is_empty(&self) -> io::Result<bool> {
                (**self).is_empty()
            }
        }
    )*};
}

forward!(&T, Arc<T>, Box<T>);
