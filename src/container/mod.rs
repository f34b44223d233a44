//! Named virtual files: a table's files, wherever they are stored.

mod directory;
#[cfg(test)]
mod memory;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Result;
use crate::io::ReadAt;

pub use directory::Directory;
#[cfg(test)]
pub(crate) use memory::Memory;

/// A name space of files. Each file is itself [`ReadAt`], so containers nest by construction.
pub trait Container: Debug + Send + Sync {
    /// The names of all files, sorted.
    ///
    /// # Errors
    /// `Io` if they cannot be listed.
    fn names(&self) -> Result<Vec<String>>;

    /// A file.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name, `Io` if it cannot be opened.
    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>>;

    /// Where the file lies in the file system; only a directory knows.
    fn path(&self, _name: &str) -> Option<PathBuf> {
        None
    }
}
