//! A kind of container, and how it is recognised, opened and written.

use std::path::Path;
use std::sync::Arc;

use super::{Announced, Container, ContainerMut, Damage, FORMATS, FormatOptions};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// Answers a question about the container that is the file `name` of `inside`.
type OfFile<T> = fn(inside: &dyn Container, name: &str) -> Result<T>;

/// Creates a file with an empty container, in place of an existing file.
type Create = fn(path: &Path, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>>;

/// Writes the files of `source` and of its nested containers to `target`, and returns the bytes added to the file system.
///
/// The function itself decides what an existing target means, and leaves nothing half-written under a final name.
pub(crate) type WriteTree =
    fn(source: &dyn Container, target: &Path, options: &WriteOptions, progress: &dyn Progress) -> Result<Written>;

/// Options of a format that is written at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions {
    /// Size of a block in bytes; `None`: as the format prefers.
    pub(crate) block_bytes: Option<u64>,
}

/// The result of writing a container at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    /// Bytes added to the file system.
    pub(crate) stored_bytes: u64,
    /// Remarks for the user.
    pub(crate) warnings: Vec<String>,
}
/// Creates a file with a container for the files that are announced, in place of an existing file. Those files, and no
/// others, are then written in their order, each container is committed after its files, and the outermost last.
type CreateFor = fn(path: &Path, files: &Announced, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>>;

/// A damaged container, as far as it can be read, and its defects.
pub(crate) type Salvaged = (Arc<dyn Container>, Error);

/// A kind of container.
///
/// A container is known by one file, of which every question names the directory (or container) that holds it. It may
/// consist of more files in that directory, which `parts` lists. Some kinds are known by a directory in place of a file.
pub(crate) struct Format {
    /// Name on the command line and in listings.
    pub(crate) name: &'static str,
    /// Whether the questions are about directories (nested containers), not about files.
    pub(crate) is_directory: bool,
    /// Whether the file is such a container, or may be one, by its first bytes. Of several files that make up one, this
    /// is true for one.
    pub(crate) recognise: OfFile<bool>,
    /// The names of the other files of the container.
    pub(crate) parts: OfFile<Vec<String>>,
    /// Compares the container's files with the checksums that they have as a whole, if they have any.
    pub(crate) damage: OfFile<Vec<Damage>>,
    /// Opens a container of this kind.
    pub(crate) open: OfFile<Arc<dyn Container>>,
    /// Opens a container of which [`open`](Self::open) says that it is damaged; `None` if nothing can be read then.
    pub(crate) salvage: Option<OfFile<Salvaged>>,
    /// `None`: containers of this kind cannot be changed.
    pub(crate) create: Option<Create>,
    /// `None`: containers of this kind are not made in one go. A format that is written has this, `create` or `write_tree`.
    pub(crate) create_for: Option<CreateFor>,
    /// Writes all files at once to a final path; `None`: containers of this kind are not written that way.
    pub(crate) write_tree: Option<WriteTree>,
    /// `None`: casacore does not know them.
    pub(crate) casacore: Option<CasacoreStorage>,
}

/// How casacore has a container for the files of a table's managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CasacoreStorage {
    /// Name of the container in a table directory.
    pub(crate) file_name: &'static str,
    /// Storage option in table.dat.
    pub(crate) option: i32,
}

impl Format {
    /// A format that is only read, has one file, and no checksums of it as a whole.
    pub(crate) const fn read_only(
        name: &'static str,
        recognise: OfFile<bool>,
        open: OfFile<Arc<dyn Container>>,
    ) -> Self {
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

    /// The format that a storage option in table.dat stands for; `None` if each file lies on its own.
    pub(crate) fn of_option(option: i32) -> Option<&'static Self> {
        let has = |format: &&&Self| format.casacore.is_some_and(|casacore| casacore.option == option);
        FORMATS.iter().find(has).copied()
    }

    /// The format of a container of this name in a table directory.
    pub(crate) fn of_file_name(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.is_file_name(name)).copied()
    }

    /// The format of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name).copied()
    }

    /// Whether casacore expects a container of this format in a file of this name.
    pub(crate) fn is_file_name(&self, name: &str) -> bool {
        self.casacore.is_some_and(|casacore| casacore.file_name == name)
    }

    /// Whether containers of this kind can be made.
    pub(crate) fn is_written(&self) -> bool {
        self.create.is_some() || self.create_for.is_some() || self.write_tree.is_some()
    }

    /// Whether containers of this kind hold the files of tables only, as casacore expects.
    pub(crate) fn is_for_tables(&self) -> bool {
        self.casacore.is_some()
    }

    /// Creates a file with a container for these files, in place of an existing file.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub(crate) fn create_for(
        &self,
        path: &Path,
        files: &Announced,
        options: &FormatOptions,
    ) -> Result<Arc<dyn ContainerMut>> {
        match self.create_for {
            Some(create) => create(path, files, options),
            None => self.create(path, options),
        }
    }

    /// Creates a file with an empty container, in place of an existing file.
    ///
    /// # Errors
    /// `Unsupported` if the format is only read, or not file by file; `Usage` for options that it does not have; `Io`,
    /// `NoSpace`.
    pub(crate) fn create(&self, path: &Path, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>> {
        match self.create {
            Some(create) => create(path, options),
            None if self.create_for.is_some() => {
                Err(Error::unsupported(format!("a container of the format {} is written as a whole", self.name)))
            }
            None => Err(Error::unsupported(format!("containers of the format {} are only read", self.name))),
        }
    }
}
