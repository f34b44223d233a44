//! Shows a casacore MeasurementSet in the schema MSv4 of
//! [xradio](https://xradio.readthedocs.io/): as datasets of xarray with axes of time, baseline,
//! frequency and polarization. No row is left out.
//!
//! | to                                                 | start with               |
//! |----------------------------------------------------|--------------------------|
//! | open a MeasurementSet in a directory                | [`MeasurementSet::open`] |
//! | give access to the tables of another one            | implement [`Tables`]     |
//! | partition it, with all datasets of each partition   | [`ProcessingSet::read`]  |
//! | find the rows of a partition                        | [`Grid::rows_at`]        |
//! | read a part of a variable                           | [`Partition::read`]      |
//!
//! ```
//! use msv4::{MeasurementSet, Options, ProcessingSet};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/demo/demo.ms");
//! let tables = MeasurementSet::open(path)?;
//! let set = ProcessingSet::read(&tables, &Options { name: "my".to_owned(), ..Options::default() })?;
//! let partition = &set.partitions[0];
//! assert_eq!(partition.datasets[0].path, "my_0");
//! assert_eq!(partition.grid.places(), partition.grid.rows);
//! # Ok::<(), ctds::Error>(())
//! ```
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
mod directory;
mod ephemeris;
mod field;
mod gain_curve;
mod grid;
mod measures;
mod observation;
mod options;
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
pub use directory::MeasurementSet;
pub use grid::{Grid, PlacedRun};
pub use options::Options;
pub use partition::PLACING;
pub use read::Part;
pub use set::{Partition, ProcessingSet};
pub use tables::{MAIN, Tables};

// the Rust in this document is compiled
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
