//! Containers of named virtual files: a table's files, in a directory, a container file or an
//! archive.
//!
//! A kind of container is a file here that exports its [`Format`], and a line in [`Formats`].
//! Everything above sees [`Container`] and [`ContainerMut`] only. A format that is only read needs
//! three functions; `toy.rs`, which the tests use, is an example.

mod directory;
mod format;
mod hash_kind;
mod locate;
#[cfg(any(test, feature = "internals"))]
mod memory;
mod multifile;
mod properties;
#[cfg(any(test, feature = "internals"))]
pub mod toy;

use std::fmt::{self, Debug};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Context, Error, Result};
use crate::io::{ReadAt, WriteAt};
use crate::thin;

pub use directory::Directory;
pub use format::{CasacoreStorage, Format, WriteOptions, WriteTree, Written};
pub use hash_kind::HashKind;
pub use locate::{Found, Outermost, locate, locate_damaged, of_table, outermost, recognise, recognise_directory};
#[cfg(any(test, feature = "internals"))]
pub use memory::Memory;
#[cfg(any(test, feature = "internals"))]
pub use multifile::crc_of;
pub use multifile::{FORMAT as MULTI_FILE, VERSION_1 as MULTI_FILE_1};
pub use multifile::{MultiFile, MultiFileMut};
pub use properties::{Announced, AnnouncedFile};
pub use properties::{Properties, Property};

/// A container: named virtual files, such as those of a table. Each file is read as [`ReadAt`],
/// like one of the file system, so a file can itself be a container.
pub trait Container: Debug + Send + Sync {
    /// Names of all files of the container, in the order of the container if its format has one,
    /// else sorted.
    ///
    /// # Errors
    /// `Io` if they cannot be listed.
    fn names(&self) -> Result<Vec<String>>;

    /// Opens a file of the container for reading, by its name.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name, `Io` if it cannot be opened.
    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>>;

    /// Names of the containers nested in this one, sorted: subdirectories, for instance. They are
    /// not among [`names`](Self::names). A format without nested containers has none.
    ///
    /// # Errors
    /// `Io` if they cannot be listed.
    fn nested(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Opens a nested container for reading, by its name.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name, those of opening it otherwise.
    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        Err(Error::not_found("the container does not exist").context(Context::member(name)))
    }

    /// Path in the file system of the file `name`; `None` if the container is not a directory, so
    /// that its files have no paths of their own.
    fn path(&self, _name: &str) -> Option<PathBuf> {
        None
    }

    /// Names of the recorded states (snapshots) of the container, oldest first, the present one
    /// last; [`enter`](Self::enter) opens them, but [`nested`](Self::nested) does not list them.
    /// Empty for a format without a history.
    ///
    /// # Errors
    /// `Io` if they cannot be listed.
    fn history(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Entries of the container that are neither files nor containers, as pairs of name and
    /// description: symbolic links, for instance.
    ///
    /// # Errors
    /// `Io` if they cannot be listed.
    fn left_out(&self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// Format, block size and other properties of the container as a whole.
    fn describe(&self) -> ContainerInfo;

    /// How the file `name` is stored in the container: blocks, checksum, filters.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn layout(&self, name: &str) -> Result<FileLayout> {
        Ok(FileLayout { stored_bytes: self.open(name)?.len()?, ..FileLayout::default() })
    }

    /// Properties of the container that only its format has; empty for most formats.
    ///
    /// # Errors
    /// Those of reading the container.
    fn properties(&self) -> Result<Properties> {
        Ok(Properties::default())
    }

    /// Properties of the file `name` that only the format of the container has; empty for most
    /// formats.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn file_properties(&self, _name: &str) -> Result<Properties> {
        Ok(Properties::default())
    }

    /// Verifies the structure of the container (all bytes that do not belong to a file), as far as
    /// opening it has not done so. Returns true if checksums protect the structure, or if the
    /// format has no structure that could be damaged.
    ///
    /// # Errors
    /// `Format` if they are damaged, or their checksums are cut off.
    fn check(&self) -> Result<bool> {
        Ok(self.describe().checksum.is_some())
    }

    /// Compares the blocks of a container that has blocks instead of files with the hashes that
    /// name them; `None` for every other container.
    ///
    /// # Errors
    /// Those of reading the blocks; damage is in the result.
    fn check_blocks(&self) -> Result<Option<BlockCheck>> {
        Ok(None)
    }
}

/// Result of comparing the blocks of a container with the hashes that name them.
#[derive(Debug, Clone, Default)]
pub struct BlockCheck {
    /// Number of blocks that have the hash by which an index or an archive names them.
    pub blocks: u64,
    /// Sum of the lengths of these blocks, in bytes.
    pub bytes: u64,
    /// Number of blocks that nothing names: what their bytes should be is not known.
    pub unnamed: u64,
    /// An error for each damaged or missing block.
    pub damage: Vec<Error>,
}

/// Facts about a container as a whole. Fields that its format does not have are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContainerInfo {
    /// Name of the container's format: `directory`, `multifile`, `multihdf5`, `sion`, …
    pub format: &'static str,
    /// Version of the container's format; `None` for a format without versions.
    pub version: Option<u32>,
    /// Size of a block of the container in bytes; `None` for a format without blocks.
    pub block_bytes: Option<u64>,
    /// Number of blocks in the container, those of the header and free ones included; `None` for a
    /// format without blocks.
    pub blocks: Option<u64>,
    /// Number of blocks in the container that are not in use; `None` for a format without blocks.
    pub free_blocks: Option<u64>,
    /// How often the header of the container was written, by the counter in it; `None` for a format
    /// without such a counter.
    pub changes: Option<u64>,
    /// Kind of checksum that protects the bytes of the container: `crc32`, `fletcher32`; `None`
    /// without checksums.
    pub checksum: Option<&'static str>,
}

/// A range of bytes of a container that do not match the container's checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Virtual file, with the names of the containers around it; `None` for the container's own
    /// structure.
    pub file: Option<String>,
    /// Half-open, in the file of the container.
    pub bytes: Range<u64>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.bytes;
        write!(f, "bytes {start} to {} of the container are not those that were stored", end - 1)
    }
}

/// How one virtual file of a container is stored: blocks, checksum, filters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileLayout {
    /// Bytes that the virtual file occupies in the container: whole blocks, after the filters.
    pub stored_bytes: u64,
    /// Size of the virtual file's blocks in bytes; `None` if it is not stored in blocks.
    pub block_bytes: Option<u64>,
    /// Number of blocks that hold the virtual file; 0 if it is not stored in blocks, but 1 for an
    /// HDF5 dataset without chunks.
    pub blocks: u64,
    /// Numbers of the blocks that hold the virtual file, as half-open ranges in the order of its
    /// bytes; empty if the format does not number blocks.
    pub block_numbers: Vec<Range<u64>>,
    /// Kind of checksum that is verified when the virtual file is read: `crc32`, `fletcher32`;
    /// `None` without checksums.
    pub checksum: Option<&'static str>,
    /// Names of the filters that were applied to the virtual file's bytes on writing, first applied
    /// first.
    pub filters: Vec<String>,
    /// Kind of the index with which HDF5 finds the chunks of the virtual file's dataset:
    /// `btree_v1`, `fixed_array` …; `None` if the file is not stored as a chunked dataset.
    pub index: Option<String>,
    /// Hash that the container records for the virtual file: its kind, and the text that should be
    /// its hexadecimal digits; `None` if it does not record one.
    pub hash: Option<(HashKind, String)>,
}

/// Refuses, with `Format` because names come from files, a name that leads elsewhere when a
/// container is unpacked. Containers list whatever names they hold; every writer asks here.
pub fn check_name(name: &str) -> Result<()> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(Error::format(format!("{name:?} cannot be the name of a file")));
    }
    Ok(())
}

/// A container that is open for writing: virtual files can be created, changed and removed, and
/// changes committed.
///
/// Written files are sure to be found again after [`commit`](Self::commit); a process killed at any
/// moment leaves what the last commit left, or what the next one would have.
pub trait ContainerMut: Container {
    /// Creates a virtual file in the container, or empties the one that has this name.
    ///
    /// # Errors
    /// `Io` or `NoSpace`; `Format` if no file can have this name.
    fn create(&self, name: &str) -> Result<Arc<dyn WriteAt>>;

    /// Whether the file `name` is complete before anything is written to it, because its container
    /// was told of all files in advance and already has a file of the same content. Nothing must be
    /// written to such a file.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    fn is_complete(&self, _name: &str) -> Result<bool> {
        Ok(false)
    }

    /// Opens an existing virtual file of the container for changes.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name, `Io` if it cannot be opened.
    fn edit(&self, name: &str) -> Result<Arc<dyn WriteAt>>;

    /// Removes a virtual file from the container.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name, `Io`.
    fn remove(&self, name: &str) -> Result<()>;

    /// Creates a container nested in this one. It is committed by itself, before this one.
    ///
    /// # Errors
    /// As [`create`](Self::create); `Exists` if there is one of this name.
    fn create_nested(&self, name: &str) -> Result<Arc<dyn ContainerMut>>;

    /// Makes all changes of the container durable, and visible to readers that open it from now on.
    ///
    /// # Errors
    /// `Io` or `NoSpace`.
    fn commit(&self) -> Result<()>;
}

/// Options with which a new container is created: blocks, checksums, compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatOptions {
    /// Size of a block of the new container, in bytes.
    pub block_bytes: u64,
    /// Whether each block of the new container has a checksum.
    pub checksums: bool,
    /// Compression of each block of the new container: number of the HDF5 filter, and level.
    /// MultiHDF5 only.
    pub compression: Option<(i32, u8)>,
    /// Whether the new container may hold more than casacore reads: all files of the table,
    /// subtables, their hashes.
    pub archive: bool,
    /// Hash that an archive (`archive` is true) records for each of its files. MultiHDF5 only.
    pub hash: HashKind,
    /// Whether files of the new container can grow while other processes read them; only for
    /// MultiHDF5 containers that are archives (`archive` is true).
    pub appendable: bool,
}

/// The container formats that are recognised, in the order in which they are tried on a file.
///
/// This crate has [`Formats::OWN`]; a crate that has more gives a list of its own to
/// [`OpenOptions::formats`](crate::OpenOptions::formats).
#[derive(Clone, Copy)]
pub struct Formats {
    #[doc(hidden)]
    pub list: &'static [&'static Format],
    /// Whether the HDF5 file of a thin table is still the one it was linked to, although it was
    /// written to since.
    #[doc(hidden)]
    pub check_thin: fn(&thin::Record, hdf5: &Path) -> Result<()>,
}

impl fmt::Debug for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.iter().map(|format| format.name)).finish()
    }
}

impl PartialEq for Formats {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.list, other.list)
    }
}

impl Eq for Formats {}

impl Formats {
    /// Directories and MultiFile, without any library.
    pub const OWN: Formats = Formats {
        list: &[
            &multifile::FORMAT,
            &multifile::VERSION_1,
            #[cfg(test)]
            &toy::FORMAT,
        ],
        check_thin: thin::unchecked,
    };

    /// `None` if the table's files are not in a container.
    #[doc(hidden)]
    pub fn of_option(self, option: i32) -> Option<&'static Format> {
        let has = |format: &&&Format| format.casacore.is_some_and(|casacore| casacore.option == option);
        self.list.iter().find(has).copied()
    }

    /// The format that casacore keeps under this name in a table directory.
    #[doc(hidden)]
    pub fn of_file_name(self, name: &str) -> Option<&'static Format> {
        self.list.iter().find(|format| format.is_file_name(name)).copied()
    }

    #[doc(hidden)]
    pub fn named(self, name: &str) -> Option<&'static Format> {
        self.list.iter().find(|format| format.name == name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn path_like_names_are_rejected() {
        for name in ["", ".", "..", "/etc/passwd", "../../etc/passwd", "a/b", "a\0"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["table.f0", "...", "a b", "ä", "a\\b"] {
            check_name(name).unwrap();
        }
    }

    #[test]
    fn directories_make_nothing_outside_of_themselves() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        let inner = Directory::new(folder.path().join("inner"));
        assert!(inner.create("../outer").is_err() && inner.create_nested("../outer").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn paths_that_lead_nowhere_say_why() {
        use std::os::unix::ffi::OsStrExt;

        let folder = tempfile::tempdir().unwrap();
        let (plain, toy) = (folder.path().join("plain"), folder.path().join("toy"));
        std::fs::write(&plain, "neither").unwrap();
        std::fs::write(&toy, "toy container\ntable.dat 5\n\nbytes").unwrap();
        let name = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
        std::fs::write(&name, "toy container\n\n").unwrap();
        let options = FormatOptions {
            block_bytes: 512,
            checksums: false,
            compression: None,
            archive: true,
            hash: HashKind::Blake3,
            appendable: false,
        };
        for (error, kind, says) in [
            (locate(&name, Formats::OWN).map(drop), ErrorKind::Unsupported, "the file's name is not UTF-8"),
            (
                locate(&plain.join("x"), Formats::OWN).map(drop),
                ErrorKind::NotFound,
                "plain is neither a directory nor a container",
            ),
            (
                locate(&toy.join("table.dat/x"), Formats::OWN).map(drop),
                ErrorKind::NotFound,
                "table.dat: the file is not a container, so the path cannot go on in it",
            ),
            (
                locate(&toy, Formats::OWN).unwrap().enter("x").map(drop),
                ErrorKind::NotFound,
                "x: the container does not exist",
            ),
            (
                toy::FORMAT.create(&toy, &options).map(drop),
                ErrorKind::Unsupported,
                "containers of the format toy are only read",
            ),
        ] {
            let error = error.expect_err(says);
            assert!(error.kind() == kind && error.to_string().ends_with(says), "{error}");
        }
    }
}
