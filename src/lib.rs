//! Casacore tables (CTDS, MeasurementSets) in pure Rust, and the bridge to HDF5.
#![deny(missing_docs)]

mod aipsio;
mod container;
pub mod convert;
mod error;
mod grid;
mod h5;
pub mod io;
mod limits;
pub mod pack;
mod schema;
mod stman;
mod table;
pub mod value;

pub use container::{
    Container, ContainerInfo, ContainerMut, Directory, FileLayout, FormatOptions, LiveContainer, LiveContainerReader,
    MultiFile, MultiFileMut, MultiHdf5Mut,
};
pub use error::{Error, ErrorKind, Result};
pub use schema::{ColumnDesc, ColumnKind, TableDesc, TableInfo};
pub use stman::supported as supported_managers;
pub use table::{Column, ColumnInfo, ManagerInfo, OpenOptions, Subtable, Table, TableKind};
