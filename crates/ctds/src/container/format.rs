//! The description of a container format: how containers are recognised, opened and written.

use std::path::Path;
use std::sync::Arc;

use super::{Announced, Container, ContainerMut, Damage, FormatOptions};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// Function of a container format about one container: it opens the container, or returns a fact about it (`T`). The
/// container is the file `name` of the directory or container `inside`.
type OfFile<T> = fn(inside: &dyn Container, name: &str) -> Result<T>;

/// Function of a container format that creates an empty container as the file `path`, in place of an existing file.
type Create = fn(path: &Path, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>>;

/// Function of a container format that writes all files of `source`, those of its nested containers included, to a new
/// container at `target` in one call.
///
/// The function itself decides what an existing target means, and leaves nothing half-written under a final name.
pub type WriteTree =
    fn(source: &dyn Container, target: &Path, options: &WriteOptions, progress: &dyn Progress) -> Result<Written>;

/// Options for writing all files of a directory, or of another container, to a new container at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteOptions {
    /// Size of a block of the new container, in bytes; `None` for the default of the format.
    pub block_bytes: Option<u64>,
}

/// Result of writing all files of a directory, or of another container, to a new container at once.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Number of bytes that writing the container added to the file system; it can be less than the size of the files
    /// in a format that stores equal blocks only once.
    pub stored_bytes: u64,
    /// Warnings for the user about the written container.
    pub warnings: Vec<String>,
}

/// Function of a container format that creates a container in the file `path` for `files`, whose names and lengths are
/// announced before the first is written. The caller then writes exactly these files, in their order.
type CreateFor = fn(path: &Path, files: &Announced, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>>;

/// A damaged container, opened as far as it can be read, and the error that describes its defects.
pub(super) type Salvaged = (Arc<dyn Container>, Error);

/// A container format, such as MultiFile or SION: its name and the functions that recognise, open and write containers.
///
/// A container is known by one file, of which every question names the directory (or container) that holds it. It may
/// consist of more files in that directory, which `parts` lists. Some kinds are known by a directory in place of a file.
pub struct Format {
    /// Name of the container format on the command line and in listings.
    pub name: &'static str,
    /// Whether containers of this format are directories (or nested containers), not files.
    pub is_directory: bool,
    /// Function that tells whether the first bytes of a file are, or may be, those of a container of this format. If a
    /// container consists of several files, the function returns true for one of them.
    pub recognise: OfFile<bool>,
    /// Function that returns the names of all files of a container but the one by which it is recognised; none for a container
    /// in one file.
    pub parts: OfFile<Vec<String>>,
    /// Function that compares the files of a container with the checksums that its format has for whole container files. It
    /// returns the damaged ranges; none if all bytes match, or if the format has no such checksums.
    pub damage: OfFile<Vec<Damage>>,
    /// Function that opens a container of this format for reading.
    pub open: OfFile<Arc<dyn Container>>,
    /// Function that opens as much as possible of a container that [`open`](Self::open) refuses as damaged; `None` if the
    /// format has no such function.
    pub salvage: Option<OfFile<Salvaged>>,
    /// Function that creates a container whose files can be written and changed one by one; `None` if containers of this format cannot be changed.
    pub create: Option<Create>,
    /// Function that creates a container for files whose names and lengths are announced before they are written;
    /// `None` if the format has no such function. A format that can be written has at least one of `create`,
    /// `create_for` and `write_tree`.
    pub create_for: Option<CreateFor>,
    /// Function that writes all files of a container in one call; the path that it is given is the final one, not that
    /// of a temporary file. `None` if the format has no such function.
    pub write_tree: Option<WriteTree>,
    /// How casacore stores a container of this format in a table directory; `None` if casacore does not know the
    /// format.
    pub casacore: Option<CasacoreStorage>,
}

/// Where casacore keeps a container with the files of a table's storage managers, and how table.dat names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CasacoreStorage {
    /// File name of the container in a table directory.
    pub file_name: &'static str,
    /// Number of casacore's storage option, in table.dat, that stands for this container format.
    pub option: i32,
}

impl Format {
    /// Describes a container format that is only read: each container is a single file, without a checksum of the file
    /// as a whole.
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

    /// Whether casacore expects a container of this format in a file of this name in a table directory.
    pub fn is_file_name(&self, name: &str) -> bool {
        self.casacore.is_some_and(|casacore| casacore.file_name == name)
    }

    /// Whether containers of this format can be written, in any way.
    pub fn is_written(&self) -> bool {
        self.create.is_some() || self.create_for.is_some() || self.write_tree.is_some()
    }

    /// Whether this is a container format of casacore, whose containers can only hold the files of a table.
    pub fn is_for_tables(&self) -> bool {
        self.casacore.is_some()
    }

    /// Creates a container at `path`, in place of an existing file, for `files`, whose names and lengths are announced
    /// before they are written. If the format needs no announcement, an empty container is created.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_for(&self, path: &Path, files: &Announced, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>> {
        match self.create_for {
            Some(create) => create(path, files, options),
            None => self.create(path, options),
        }
    }

    /// Creates an empty container at `path`, in place of an existing file.
    ///
    /// # Errors
    /// `Unsupported` if the format is only read, or not file by file; `Usage` for options that it does not have; `Io`,
    /// `NoSpace`.
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
