//! A plain directory as a container, the form that casacore calls `SepFile` storage.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Container, ContainerInfo, ContainerMut, check_name};
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{FileSource, FileTarget, ReadAt, WriteAt};

/// A directory of the file system as a container: its regular files are the virtual files.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
    write_behind: bool,
}

impl Directory {
    /// Describes the directory at `path` as a container; the file system is not accessed yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Directory { path: path.into(), write_behind: true }
    }

    /// Whether the system is asked to begin writing a file to the disk before all of it is written.
    #[doc(hidden)]
    pub fn write_behind(self, is_wanted: bool) -> Self {
        Directory { write_behind: is_wanted, ..self }
    }
}

impl Directory {
    /// Sorted; follows symbolic links, skips names that are not UTF-8.
    fn entries(&self, directories: bool) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            // where a symbolic link leads to counts
            let kind = std::fs::metadata(entry.path()).map(|metadata| metadata.file_type());
            if kind.is_ok_and(|kind| if directories { kind.is_dir() } else { kind.is_file() })
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

impl Container for Directory {
    fn names(&self) -> Result<Vec<String>> {
        self.entries(false)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(FileSource::open(&self.path.join(name)).context(Context::member(name))?))
    }

    fn nested(&self) -> Result<Vec<String>> {
        self.entries(true)
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        let path = self.path.join(name);
        if !path.is_dir() {
            return Err(Error::not_found("the directory does not exist").context(Context::member(name)));
        }
        Ok(Arc::new(Directory { path, ..*self }))
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.path.join(name))
    }

    fn describe(&self) -> ContainerInfo {
        ContainerInfo { format: "directory", ..ContainerInfo::default() }
    }

    /// Always true: a directory has no structure of its own that could be damaged.
    fn check(&self) -> Result<bool> {
        Ok(true)
    }
}

impl ContainerMut for Directory {
    fn create(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        check_name(name)?;
        let file = FileTarget::create(&self.path.join(name)).context(Context::member(name))?;
        Ok(Arc::new(file.write_behind(self.write_behind)))
    }

    fn edit(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        let file = FileTarget::open(&self.path.join(name)).context(Context::member(name))?;
        Ok(Arc::new(file.write_behind(self.write_behind)))
    }

    fn remove(&self, name: &str) -> Result<()> {
        std::fs::remove_file(self.path.join(name)).context(Context::member(name))
    }

    fn create_nested(&self, name: &str) -> Result<Arc<dyn ContainerMut>> {
        check_name(name)?;
        let path = self.path.join(name);
        std::fs::create_dir(&path).context(Context::member(name))?;
        Ok(Arc::new(Directory { path, ..*self }))
    }

    /// Makes the names durable; [`WriteAt::sync`] does so for the content.
    fn commit(&self) -> Result<()> {
        Ok(std::fs::File::open(&self.path)?.sync_all()?)
    }
}
