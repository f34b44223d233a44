//! A file in memory, for tests.

use std::sync::{PoisonError, RwLock};

use super::{ReadAt, WriteAt};
use crate::error::Result;

/// A file in memory that can be read and written.
#[derive(Debug, Default)]
pub struct MemoryFile(RwLock<Vec<u8>>);

impl MemoryFile {
    /// Makes a file in memory with these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        MemoryFile(RwLock::new(bytes))
    }

    /// A copy of all bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ReadAt for MemoryFile {
    fn len(&self) -> Result<u64> {
        ReadAt::len(self.0.read().unwrap_or_else(PoisonError::into_inner).as_slice())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).read_at(offset, out)
    }
}

impl WriteAt for MemoryFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let mut bytes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let (start, end) = (offset as usize, offset as usize + data.len());
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
