//! Archives of casacore tables (CTDS, MeasurementSets), in pure Rust: tables are read where they
//! are, without unpacking.
//!
//! | to                                             | start with                   |
//! |------------------------------------------------|------------------------------|
//! | read a table in an archive                     | [`open_table`]               |
//! | list and read the files of an archive          | [`open`]                     |
//! | read what a damaged archive still has          | [`open_damaged`]             |
//! | add a directory to a vt archive                | [`pack_vt`]                  |
//! | open tables with options of your own           | [`FORMATS`]                  |
//!
//! An archive is a container of files, as a directory is, and a path goes on in it:
//! `run.sion/TASK3`, `my.vt/ANTENNA`. Two formats are here, beside the directories and MultiFile of
//! [`ctds`]:
//!
//! - **SIONlib**: the streams of the tasks of a parallel program in one file, or in a set of files.
//!   All versions of the format, both byte orders, streams of keys and values. The file `TASK3` is
//!   the stream of task 3.
//! - **vt** (the Python package cs.vt): a store of blocks of files, each kept once under its hash,
//!   and archives, text files with a line for each state of a directory. Every state can be opened;
//!   a directory that is packed again adds only what changed.
//!
//! The bytes of both are described in docs/reference/formats of the repository of
//! [ctds-hdf5](https://crates.io/crates/ctds-hdf5), which packs tables into SION files as well and
//! converts them to HDF5.
//!
//! Without features nothing is compiled but Rust. `blake3` reads vt stores whose blocks are named
//! by BLAKE3, `libdeflate` compresses and decompresses their blocks faster; both build C.
//!
//! ```
//! use ctds::{ColumnDesc, Directory, NewTable};
//! use ctds_archives::{WriteOptions, open_table, pack_vt};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (directory, archive) = (folder.path().join("my.tab"), folder.path().join("my.vt"));
//! let mut table = NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&directory)?;
//! table.add_rows(3)?;
//! table.close()?;
//!
//! pack_vt(&Directory::new(&directory), &archive, &WriteOptions::default(), &())?;
//! assert_eq!(open_table(&archive)?.rows(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

// Modules that are hidden from the documentation are those that ctds-hdf5 is made of, and change
// with it.
#[doc(hidden)]
pub mod sion;
#[doc(hidden)]
pub mod vt;

use std::path::Path;
use std::sync::Arc;

#[doc(inline)]
pub use ctds::container::{WriteOptions, Written};
use ctds::error::ResultExt;
use ctds::{Container, Context, Error, Formats, OpenOptions, Progress, Result, Table, container};

/// All formats of containers that are opened: directories and MultiFile, which [`ctds`] has, vt
/// archives and stores, SION files.
///
/// For [`OpenOptions::formats`], where [`open_table`] and [`open`] do not have the options that are
/// wanted.
pub const FORMATS: Formats = Formats {
    list: &[&container::MULTI_FILE, &container::MULTI_FILE_1, &vt::FORMAT, &vt::STORE, &sion::FORMAT],
    ..Formats::OWN
};

/// Opens the table at `path` for reading: a directory, an archive of one, or a table in an archive,
/// such as `my.vt/ANTENNA`.
///
/// # Errors
/// Those of [`Table::open`], and those of opening the archive.
pub fn open_table(path: impl AsRef<Path>) -> Result<Table> {
    Table::open_with(path, OpenOptions { formats: FORMATS, ..OpenOptions::default() })
}

/// Opens the files at `path` for reading: those of a directory, of an archive, or of a directory in
/// an archive, such as `my.vt/ANTENNA`.
///
/// A missing directory is reported when one of its files is opened.
///
/// # Errors
/// `Format` if `path` is another kind of file, or a damaged archive; `NotFound` if the archive has
/// no such directory; `Io`.
pub fn open(path: impl AsRef<Path>) -> Result<Arc<dyn Container>> {
    container::locate(path.as_ref(), FORMATS)
}

/// Opens the files at `path` for reading, as [`open`] does, and a damaged SION file as far as
/// possible, such as one that its program never closed: without the recorded lengths, its streams
/// have all the space that was reserved for them. The error describes the damage; `None` if nothing
/// is damaged.
///
/// # Errors
/// Those of [`open`], if the damage leaves nothing to read.
pub fn open_damaged(path: impl AsRef<Path>) -> Result<(Arc<dyn Container>, Option<Error>)> {
    container::locate_damaged(path.as_ref(), FORMATS)
}

/// Adds the files of `source`, with those of all directories in it, as a new state to the vt
/// archive at `archive`, which is made if it is missing.
///
/// The blocks of the files are stored in the vt store beside the archive, or in a new one, the
/// directory `store`. Blocks that the store has already are not written again. A fixed size of
/// blocks, `WriteOptions::block_bytes`, is 128 bytes to 1 MiB; by default the content decides where
/// a block ends. Several processes may pack into a store concurrently, and one that is killed
/// leaves the archive as it was.
///
/// # Errors
/// `Usage` for a size of blocks that vt does not have, or if several stores are beside the archive;
/// `Exists` if `archive` is another kind of file; `Locked` if another program keeps the archive
/// locked; `Interrupted` by `progress`; `Format` or `Limit` if the store is damaged; `Io`,
/// `NoSpace`.
pub fn pack_vt(
    source: &dyn Container,
    archive: impl AsRef<Path>,
    options: &WriteOptions,
    progress: &dyn Progress,
) -> Result<Written> {
    let archive = archive.as_ref();
    vt::write_tree(source, archive, options, progress).with_context(|| Context::path(archive))
}

// the Rust in this document is compiled
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use ctds::{Directory, ErrorKind};

    use super::*;

    #[test]
    fn errors_name_the_archive() {
        let folder = tempfile::tempdir().unwrap();
        let source = Directory::new(folder.path());
        let error = pack_vt(&source, folder.path(), &WriteOptions::default(), &()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().starts_with(&folder.path().display().to_string()), "{error}");
        let archive = folder.path().join("my.vt");
        std::fs::write(&archive, "neither").unwrap();
        assert_eq!(open(&archive).map(drop).unwrap_err().kind(), ErrorKind::Format);
        assert_eq!(open_table(&archive).map(drop).unwrap_err().kind(), ErrorKind::Format);
        let error = pack_vt(&source, &archive, &WriteOptions::default(), &()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
    }

    #[test]
    fn whole_archives_have_no_damage() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("file"), [7; 1000]).unwrap();
        let archive = folder.path().join("my.vt");
        pack_vt(&Directory::new(source), &archive, &WriteOptions::default(), &()).unwrap();
        let (container, damage) = open_damaged(&archive).unwrap();
        assert!(damage.is_none());
        assert_eq!(container.open("file").unwrap().len().unwrap(), 1000);
    }
}
