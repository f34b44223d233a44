//! Reading and writing of casacore tables (CTDS, MeasurementSets) in pure Rust, and conversion to HDF5.
//!
//! | to                                             | start with                                             |
//! |------------------------------------------------|--------------------------------------------------------|
//! | read a table                                   | [`Table::open`]                                        |
//! | make a table                                   | [`NewTable`]                                           |
//! | convert to HDF5 and back, compare              | [`convert`]                                            |
//! | append rows while others read them             | [`live`]                                               |
//! | plot a MeasurementSet while it is written      | [`look`]                                               |
//! | put a table into one file, byte for byte       | [`pack`]                                               |
//! | convert BLZ arrays to HDF5                     | [`blz`]                                                |
//! | look at any HDF5 file                          | [`browse`]                                             |
//! | check what readers make of a native HDF5 file       | [`lint`]                                               |
//!
//! An [`Error`] has a [kind](Error::kind) to act upon and [contexts](Error::contexts) that lead to the file, column, row and byte.
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

mod aipsio;
mod blosc;
pub mod blz;
pub mod browse;
mod call;
mod clock;
mod clone;
mod container;
pub mod convert;
mod damage;
mod error;
mod grid;
mod h5;
mod hash;

#[cfg(any(test, feature = "internals"))]
#[doc(hidden)]
pub mod internals;
pub mod io;
mod lfs;
mod limits;
pub mod lint;
pub mod live;
pub mod look;
mod native;
mod output;
pub mod pack;
mod pool;
mod progress;
mod publishing;
mod schema;
mod shuffle;
mod source;
mod staged;
mod stman;
mod suggest;
mod sync;
mod table;
mod thin;
pub mod value;

pub use container::{
    BlockCheck, Container, ContainerInfo, ContainerMut, Directory, FileLayout, FormatOptions, LiveContainer,
    LiveContainerReader, MultiFile, MultiFileMut, MultiHdf5Mut, Properties, Property,
};
pub use error::{Context, Error, ErrorKind, Result, shown_path};
pub use h5::{Compression, Plugin};
pub use hash::{Hash, HashKind};
/// The crate `ndarray` in the version whose arrays this interface uses.
pub use ndarray;
pub use progress::{CancelToken, Cancellable, Phase, Progress};
pub use publishing::{IfExists, SyncPolicy};
pub use schema::{ColumnDesc, ColumnKind, TableDesc, TableInfo};
pub use staged::{StagedOutput, files_below, remove_abandoned};
pub use stman::{supported as supported_managers, written as written_managers};
pub use suggest::instead;
pub use table::{
    Column, ColumnInfo, ColumnMut, Hypercube, ManagerInfo, ManagerSpec, NewTable, OpenOptions, Subtable, Table,
    TableKind, TableWriter, is_locked_here, is_open_elsewhere,
};

// the Rust in these documents is compiled
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
#[cfg(doctest)]
#[doc = include_str!("../docs/writing.md")]
struct DocsWriting;
#[cfg(doctest)]
#[doc = include_str!("../docs/live.md")]
struct DocsLive;
