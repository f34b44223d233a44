//! Casacore tables (CTDS, MeasurementSets) in pure Rust, and the bridge to HDF5.
#![deny(missing_docs)]

mod aipsio;
mod container;
mod error;
mod grid;
mod h5;
pub mod io;
mod limits;
mod schema;
mod stman;
pub mod value;

pub use error::{Error, ErrorKind, Result};
