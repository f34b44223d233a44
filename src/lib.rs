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
pub mod live;
mod schema;
mod stman;
mod table;
pub mod value;

pub use container::{Container, ContainerMut, Directory};
pub use error::{Error, ErrorKind, Result};
pub use schema::{ColumnDesc, ColumnKind, TableDesc, TableInfo};
pub use stman::{supported as supported_managers, written as written_managers};
pub use table::{
    Column, ColumnInfo, ColumnMut, Hypercube, ManagerInfo, ManagerSpec, NewTable, OpenOptions, Subtable, Table,
    TableKind, TableWriter,
};
