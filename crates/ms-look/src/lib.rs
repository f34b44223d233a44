//! Plots, summaries and alerts of a MeasurementSet as numbers, also while it is written: rows are
//! added to sums of limited size, from which plots are made.
//!
//! | to                                                     | start with                           |
//! |--------------------------------------------------------|--------------------------------------|
//! | list fields, spectral windows, antennas and scans      | [`Summary::of`]                      |
//! | plot a file or table, again as it grows                | [`Session::open`], [`Session::frame`] |
//! | name a plot and its parameters                         | [`Request::parse`], [`PARAMETERS`]   |
//! | list what can be selected and plotted                  | [`Session::describe`]                |
//! | poll rates, flags and amplitudes of the newest rows    | [`Session::refresh`]                 |
//! | warn of a state                                        | [`Rule`], [`Alerts`]                 |
//! | plot a line for each antenna, field or scan            | [`Lines::of`]                        |
//! | plot a plane of a casacore image                       | [`Image::open`]                      |
//!
//! ```
//! use ms_look::{Request, Session, Source, Summary};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/demo/demo.ms");
//! let summary = Summary::of(&Source::open(path)?).expect("a MeasurementSet");
//! println!("{} scans of {} antennas", summary.scans.len(), summary.antennas.len());
//!
//! let mut session = Session::open(path.as_ref())?;
//! let query = [("corr".to_owned(), "XX".to_owned())];
//! let frame = session.frame(&Request::parse("waterfall", &query)?)?;
//! assert_eq!((frame.plot.x.label.as_str(), frame.plot.y.label.as_str()), ("frequency", "time"));
//! let document = frame.to_safetensors();
//! # assert!(document.len() > 1000);
//! # Ok::<(), ms_look::Error>(())
//! ```
//!
//! Nothing is drawn: a [`Frame`] has titles, axes and arrays, and is encoded as safetensors, npy,
//! CSV or JSON. docs/reference/plots.md in the repository of
//! [ctds-hdf5](https://crates.io/crates/ctds-hdf5) describes every plot; its program `h5bridge`
//! draws them.
//!
//! # Map
//!
//! A [`Session`] (`session.rs`) reads a live file, a closed native HDF5 file or a table directory
//! through one interface (`rows.rs`). A [`Request`] names a plot and its parameters (`request.rs`);
//! together with the subtables (`describe.rs`) it becomes a selection of rows, correlations and
//! channels (`selection.rs`). `fold.rs` reads blocks of rows once for all selections that wait for
//! them, and `accumulate.rs` adds them to the sums of each plot. `plots/` has a file for each
//! [`Kind`] of plot, with its sums and the [`Frame`] that is made of them.
//!
//! A [`Rule`] (`rule.rs`) warns of a state of the source; [`Alerts`] (`alert.rs`) evaluates rules
//! on one [`Look`] after the other.
//!
//! A [`Summary`] (`summary.rs`) lists the observation, fields, spectral windows, antennas and
//! scans, as CASA's listobs does.
#![deny(missing_docs)]

mod accumulate;
mod alert;
mod axes;
mod bins;
mod calendar;
mod describe;
mod fold;
mod frame;
mod groups;
mod image;
mod integration;
mod part;
mod place;
mod plots;
mod rates;
mod request;
mod rows;
mod rule;
mod runs;
mod sample;
mod selection;
mod session;
mod sky;
mod subtables;
mod summary;

pub use alert::{Alert, Alerts};
pub use calendar::{utc, utc_of_mjd};
pub use ctds::{Context, Error, ErrorKind, Result};
pub use ctds_hdf5::Source;
pub use describe::{Antenna, Description, Field, SpectralWindow, has_plots, is_calibration};
pub use frame::{Array, Axis, Frame, Numbers, Plot};
pub use groups::{BY, Group, Lines};
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

// the Rust in this document is compiled
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
