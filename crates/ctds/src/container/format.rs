//! The description of a container format: how containers are recognised, opened and written.

use std::path::Path;
use std::sync::Arc;

use super::{Announced, Container, ContainerMut, Damage, FormatOptions};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// Answers a question about the container in the file `name` of `inside`, or opens it.
type OfFile<T> = fn(inside: &dyn Container, name: &str) -> Result<T>;

/// Creates an empty container as the file `path`, in place of an existing one.
type Create = fn(path: &Path, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>>;

/// Writes all files of `source`, nested containers included, to a new container. Decides what an
/// existing target means, and leaves nothing half-written under a final name.
pub type WriteTree =
    fn(source: &dyn Container, target: &Path, options: &WriteOptions, progress: &dyn Progress) -> Result<Written>;

/// Options for writing all files of a directory, or of another container, to a new container at
/// once.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteOptions {
    /// `None` for the default of the format.
    pub block_bytes: Option<u64>,
}

/// Result of writing all files of a directory, or of another container, to a new container at once.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Growth of the file system in bytes; less than the files have in a format that stores equal
    /// blocks once.
    pub stored_bytes: u64,
    pub warnings: Vec<String>,
}

/// Creates a container for `files`, which the caller then writes exactly and in their order.
type CreateFor = fn(path: &Path, files: &Announced, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>>;

/// A damaged container, opened as far as it can be read, and the error that describes its defects.
pub(super) type Salvaged = (Arc<dyn Container>, Error);

/// A container format. A container is known by one file (or directory); `parts` lists its other
/// files, in the same directory. Written formats have at least one of `create`, `create_for` and
/// `write_tree`.
pub struct Format {
    /// Name on the command line and in listings.
    pub name: &'static str,
    /// Containers are directories (or nested containers), not files.
    pub is_directory: bool,
    /// Judges by the first bytes of a file; true for one of the files of a container.
    pub recognise: OfFile<bool>,
    /// The other files of a container.
    pub parts: OfFile<Vec<String>>,
    /// Ranges that do not match the format's checksums of whole container files, if it has such
    /// checksums.
    pub damage: OfFile<Vec<Damage>>,
    pub open: OfFile<Arc<dyn Container>>,
    /// Opens as much as possible of a container that [`open`](Self::open) refuses as damaged.
    pub salvage: Option<OfFile<Salvaged>>,
    /// `None` if containers cannot be changed file by file.
    pub create: Option<Create>,
    /// Used by formats that need all names and lengths before the first file.
    pub create_for: Option<CreateFor>,
    /// Writes all files at once; the path is the final one, not that of a temporary file.
    pub write_tree: Option<WriteTree>,
    /// `None` if casacore does not know the format.
    pub casacore: Option<CasacoreStorage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CasacoreStorage {
    /// Name in a table directory.
    pub file_name: &'static str,
    /// Casacore's storage option in table.dat.
    pub option: i32,
}

impl Format {
    /// A format that is only read: single files without a checksum of the file as a whole.
    pub const fn read_only(name: &'static str, recognise: OfFile<bool>, open: OfFile<Arc<dyn Container>>) -> Self {
        Format {
            name,
            is_directory: false,
            recognise,
            parts: |_, _| Ok(Vec::new()),
            damage: |_, _| Ok(Vec::new()),
            open,
            salvage: None,
            create: None,
            write_tree: None,
            create_for: None,
            casacore: None,
        }
    }

    /// Whether casacore expects a container of this format under this name in a table directory.
    pub fn is_file_name(&self, name: &str) -> bool {
        self.casacore.is_some_and(|casacore| casacore.file_name == name)
    }

    pub fn is_written(&self) -> bool {
        self.create.is_some() || self.create_for.is_some() || self.write_tree.is_some()
    }

    /// Whether this is casacore's, for the files of one table only.
    pub fn is_for_tables(&self) -> bool {
        self.casacore.is_some()
    }

    /// As [`create`](Self::create), with announced files for the formats that need them.
    pub fn create_for(&self, path: &Path, files: &Announced, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>> {
        match self.create_for {
            Some(create) => create(path, files, options),
            None => self.create(path, options),
        }
    }

    /// Creates an empty container, in place of an existing file.
    ///
    /// # Errors
    /// `Unsupported` if the format is only read, or not file by file; `Usage` for options that it
    /// lacks; `Io`, `NoSpace`.
    pub fn create(&self, path: &Path, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>> {
        match self.create {
            Some(create) => create(path, options),
            None if self.create_for.is_some() => {
                Err(Error::unsupported(format!("a container of the format {} is written as a whole", self.name)))
            }
            None => Err(Error::unsupported(format!("containers of the format {} are only read", self.name))),
        }
    }
}
