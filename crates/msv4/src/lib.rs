//! Shows a casacore MeasurementSet in the schema MSv4.
#![deny(missing_docs)]

mod dataset;
mod gain_curve;
mod grid;
mod measures;
mod partition;
mod phase_calibration;
mod phased_array;
mod place;
mod pointing;
mod rows;
mod subtables;
mod system_calibration;
mod tables;
#[cfg(test)]
mod testing;
mod weather;

pub use dataset::{Attribute, CellsOf, Content, Dataset, Variable};
pub use grid::Grid;
pub use tables::{MAIN, Tables};
