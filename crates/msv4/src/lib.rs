//! Shows a casacore MeasurementSet in the schema MSv4.
#![deny(missing_docs)]

mod dataset;
mod grid;
mod measures;
mod partition;
mod place;
mod pointing;
mod rows;
mod system_calibration;
mod tables;
#[cfg(test)]
mod testing;
mod weather;

pub use dataset::{Attribute, CellsOf, Content, Dataset, Variable};
pub use grid::Grid;
pub use tables::{MAIN, Tables};
