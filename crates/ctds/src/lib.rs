//! Reading and writing of casacore tables (CTDS), such as MeasurementSets, in pure Rust.
//!
//! | to                                     | start with              |
//! |----------------------------------------|-------------------------|
//! | read a table                           | [`Table::open`]         |
//! | make a table                           | [`NewTable`]            |
//! | open the files of a table in a container | [`MultiFile`]         |
//!
//! An [`Error`] has a [kind](Error::kind) to act upon and [contexts](Error::contexts) that lead to
//! the file, column, row and byte.
//!
//! ```
//! use ctds::{ColumnDesc, NewTable, Table, value::Shape};
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

#[cfg(not(unix))]
compile_error!("ctds needs a Unix system: its locks, renames and reads at offsets are calls of POSIX");

// Modules that are hidden from the documentation are those that ctds-hdf5 is made of, and change
// with it.
#[doc(hidden)]
pub mod aipsio;
#[doc(hidden)]
pub mod calendar;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod container;
#[doc(hidden)]
pub mod error;
#[doc(hidden)]
pub mod grid;
#[doc(hidden)]
pub mod hex;
pub mod io;
#[doc(hidden)]
pub mod lfs;
#[doc(hidden)]
pub mod limits;
#[doc(hidden)]
pub mod measures;
#[doc(hidden)]
pub mod os;
#[doc(hidden)]
pub mod progress;
#[doc(hidden)]
pub mod schema;
#[doc(hidden)]
pub mod stman;
#[doc(hidden)]
pub mod suggest;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod table;
mod taql;
#[doc(hidden)]
pub mod thin;
pub mod value;

pub use container::{
    BlockCheck, Container, ContainerInfo, ContainerMut, Directory, FileLayout, FormatOptions, Formats, HashKind,
    MultiFile, MultiFileMut, Properties, Property,
};
pub use error::{Context, Error, ErrorKind, Result, shown_path};
/// The crate `ndarray` in the version whose arrays this interface uses.
pub use ndarray;
pub use progress::{CancelToken, Cancellable, Phase, Progress};
pub use schema::{ColumnDesc, ColumnKind, Foreign, TableDesc, TableInfo};
pub use stman::{supported as supported_managers, written as written_managers};
pub use suggest::instead;
pub use table::{
    Column, ColumnInfo, ColumnMut, Hypercube, Locking, ManagerInfo, ManagerSpec, NewTable, NewView, OpenOptions,
    Subtable, Table, TableKind, TableWriter, is_locked_here, is_open_elsewhere,
};

// the Rust in this document is compiled
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
