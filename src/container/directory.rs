//! A plain directory: casacore's `SepFile` storage.

use std::path::PathBuf;
use std::sync::Arc;

use super::Container;
use crate::error::{Place, Result};
use crate::io::{FileSource, ReadAt};

/// The regular files of a directory.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// The files in the directory at `path`, which is not touched yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Directory { path: path.into() }
    }
}

impl Container for Directory {
    fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                continue;
            }
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(FileSource::open(&self.path.join(name)).at(name)?))
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.path.join(name))
    }
}
