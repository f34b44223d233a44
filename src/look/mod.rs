//! Plots and summaries of a MeasurementSet, also while it is written: rows are added to sums of limited size, from which
//! plots are made as arrays of numbers.
//!
//! ```no_run
//! use ctds_hdf5::look::{Request, Session};
//!
//! let mut session = Session::open("live.h5".as_ref())?;
//! let query = [("corr".to_owned(), "XX".to_owned())];
//! let frame = session.frame(&Request::parse("waterfall", &query)?)?;
//! std::fs::write("waterfall.safetensors", frame.to_safetensors())?;
//! # Ok::<(), ctds_hdf5::Error>(())
//! ```
//!
//! A [`Session`] reads a live file, a closed native HDF5 file or a table directory through one interface (`rows.rs`). A
//! [`Request`] names a plot and its parameters (`request.rs`); together with the subtables (`describe.rs`) it
//! becomes a selection of rows, correlations and channels (`selection.rs`). `fold.rs` reads blocks of rows once for all
//! selections that wait for them, and `accumulate.rs` adds them to the sums of each plot. `plots/` has a file for each
//! [`Kind`] of plot, with its sums and the [`Frame`] that is made of them. docs/plots.md describes every plot.
//!
//! A [`Rule`] (`rule.rs`) warns of a state of the source; [`Alerts`] (`alert.rs`) evaluates rules on one [`Look`] after the
//! other.
//!
//! A [`Summary`] (`summary.rs`) lists the observation, fields, spectral windows, antennas and scans, as CASA's listobs does.

mod accumulate;
mod alert;
mod bins;
mod calendar;
mod describe;
mod fold;
mod frame;
mod image;
mod integration;
mod part;
mod plots;
mod rates;
mod request;
mod rows;
mod rule;
mod sample;
mod selection;
mod session;
mod subtables;
mod summary;

pub use alert::{Alert, Alerts};
pub use calendar::{utc, utc_of_mjd};
pub use describe::{Antenna, Description, Field, SpectralWindow, has_plots};
pub use frame::{Array, Axis, Frame, Numbers, Plot, write_file};
pub use image::{Image, Plane};
pub use integration::{AntennaFlags, Integration};
pub use plots::Kind;
pub use rates::Rates;
pub use request::{PARAMETERS, Request};
pub use rows::Served;
pub use rule::Rule;
pub use sample::{Amplitudes, AmplitudesBy, Look, NewestTime};
pub use session::{Ended, Session};
pub use subtables::label;
pub use summary::{FieldSummary, Flagged, ObservationSummary, ScanSummary, Summary, WindowSummary};
