//! Shows a casacore MeasurementSet in the schema MSv4 of
//! [xradio](https://xradio.readthedocs.io/): as datasets of xarray with axes of time, baseline,
//! frequency and polarization. No row is left out.
//!
//! | to                                                 | start with               |
//! |----------------------------------------------------|--------------------------|
//! | give access to the tables of a MeasurementSet       | implement [`Tables`]     |
//! | partition it, with all datasets of each partition   | [`ProcessingSet::read`]  |
//! | find the rows of a partition                        | [`Grid::rows_at`]        |
//! | read a part of a variable                           | [`Partition::read`]      |
//!
//! # Map
//!
//! `partition.rs` shares out the rows of the main table, `grid.rs` keeps where those of a partition
//! lie. `set.rs` asks `visibility.rs` for the dataset of each partition, and for those below it
//! `antenna.rs`, `field.rs` and a file for each further subtable. They read by `tables.rs`, name
//! measures by `measures.rs`, and make the types of `dataset.rs`. `read.rs` reads what these refer
//! to.
#![deny(missing_docs)]

mod antenna;
mod dataset;
mod field;
mod gain_curve;
mod grid;
mod measures;
mod observation;
mod partition;
mod phase_calibration;
mod phased_array;
mod place;
mod pointing;
mod read;
mod rows;
mod set;
mod subtables;
mod system_calibration;
mod tables;
#[cfg(test)]
mod testing;
mod visibility;
mod weather;

pub use dataset::{Attribute, CellsOf, Content, Dataset, Variable};
pub use grid::Grid;
pub use read::Part;
pub use set::{Options, Partition, ProcessingSet};
pub use tables::{MAIN, Tables};
