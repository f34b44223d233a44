//! Reading and writing of casacore tables (CTDS, MeasurementSets) in pure Rust, and conversion to
//! HDF5.
//!
//! | to                                             | start with                                             |
//! |------------------------------------------------|--------------------------------------------------------|
//! | read a table                                   | [`Table::open`]                                        |
//! | make a table                                   | [`NewTable`]                                           |
//! | convert to HDF5 and back, compare              | [`convert`]                                            |
//! | append rows while others read them             | [`live`]                                               |
//! | put a table into one file, byte for byte       | [`pack`]                                               |
//! | convert BLZ arrays to HDF5                     | [`blz`]                                                |
//! | check what readers make of a native HDF5 file       | [`lint`]                                               |
//! | show a MeasurementSet in the schema MSv4        | [`msv4::ProcessingSet`]                                |
//! | parse the output of `h5bridge VERB --json`     | [`documents`]                                          |
//!
//! Two crates are on top of this one: [ms-look](https://crates.io/crates/ms-look) has summaries,
//! plots and alerts of a MeasurementSet, [h5-browse](https://crates.io/crates/h5-browse) shows any
//! HDF5 file as JSON.
//!
//! An [`Error`] has a [kind](Error::kind) to act upon and [contexts](Error::contexts) that lead to
//! the file, column, row and byte.
//!
//! [`Table`] reads, [`NewTable`] makes:
//!
//! ```
//! use ctds_hdf5::{ColumnDesc, NewTable, Table, value::Shape};
//! use ndarray::ArrayD;
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("my.tab");
//! let mut table = NewTable::new()
//!     .column(ColumnDesc::scalar::<f64>("TIME").unit("s"))
//!     .column(ColumnDesc::array::<f64>("UVW").direct(Shape::from([3])).unit("m"))
//!     .create(&path)?;
//! table.add_rows(2)?;
//! table.column("TIME")?.put_scalars(0, vec![5e9, 5e9 + 8.])?;
//! table.column("UVW")?.put_cell(1, &ArrayD::from_elem(vec![3], 1.5))?;
//! table.close()?;
//!
//! let table = Table::open(&path)?;
//! assert_eq!(table.column("TIME")?.scalar::<f64>(1)?, 5e9 + 8.);
//! assert_eq!(table.column("UVW")?.rows::<f64>(0..2)?.shape(), [2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

use blosc_arrays::{blosc, shuffle};
#[cfg(any(test, feature = "internals"))]
use ctds::aipsio;
use ctds::{calendar, clock, error, grid, hex, limits, os, progress, schema, stman, suggest, sync, table};

pub mod blz;
mod call;
mod container;
pub mod convert;
pub mod documents;
mod h5;
mod hash;

#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
pub mod internals;
pub mod lint;
pub mod live;
mod native;
mod output;
pub mod pack;
mod remote;
mod source;

pub use container::{LiveContainer, LiveContainerReader, MultiHdf5Mut};
/// Byte sources and targets, and their implementations: files, memory.
pub use ctds::io;
/// Elements, cells and keywords of tables.
pub use ctds::value;
pub use ctds::{
    BlockCheck, CancelToken, Cancellable, Column, ColumnDesc, ColumnInfo, ColumnKind, ColumnMut, Container,
    ContainerInfo, ContainerMut, Context, Directory, Error, ErrorKind, FileLayout, Foreign, FormatOptions, HashKind,
    Hypercube, Locking, ManagerInfo, ManagerSpec, MultiFile, MultiFileMut, NewTable, NewView, OpenOptions, Phase,
    Progress, Properties, Property, Result, Subtable, Table, TableDesc, TableInfo, TableKind, TableWriter,
    is_locked_here, is_open_elsewhere, supported_managers, written_managers,
};
pub use h5::{Compression, Plugin};
pub use hash::Hash;
/// MeasurementSets in the schema MSv4 of xradio: a [`Source`] has what [`msv4::Tables`] asks for.
pub use msv4;
/// The crate `ndarray` in the version whose arrays this interface uses.
pub use ndarray;
pub use output::{IfExists, StagedOutput, SyncPolicy};
pub use source::{Source, SourceTable};

/// Helpers that the command line and the Python package share beside the API: names in messages,
/// files, locks.
pub mod program {
    pub use crate::output::{files_below, remove_abandoned, sorted_entries, write_file};
    pub use ctds::hex::Hex;
    /// Calls of the operating system, with a portable path for each.
    pub use ctds::os;
    pub use ctds::sync::{LockUnpoisoned, Unpoisoned};
    pub use ctds::{instead, shown_path};

    /// The version of the HDF5 library that writes files; `None` in builds that only read.
    pub fn hdf5_version() -> Option<String> {
        crate::h5::library_version()
    }
}

/// Opens the table at `path`, also if its files are in a container that the crate `ctds` alone does
/// not read: MultiHDF5, SIONlib, vt, HDF5 files of files.
///
/// # Errors
/// Those of [`Table::open`].
pub fn open_table(path: impl AsRef<std::path::Path>) -> Result<Table> {
    Table::open_with(path, OpenOptions { formats: container::FORMATS, ..OpenOptions::default() })
}

// the Rust in these documents is compiled
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
#[cfg(doctest)]
#[doc = include_str!("../docs/reference/rust.md")]
struct DocsWriting;
#[cfg(doctest)]
#[doc = include_str!("../docs/reference/live.md")]
struct DocsLive;
