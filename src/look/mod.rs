//! Plots of a MeasurementSet while it is written: rows are folded into accumulators of fixed size, from which frames are made.
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
//! A [`Session`] reads a live file, a closed native file or a table directory through one interface (`rows.rs`). A
//! [`Request`] names a plot and its parameters (`request.rs`); together with what the subtables say (`describe.rs`) it
//! becomes a selection of rows, correlations and channels (`selection.rs`). `fold.rs` reads blocks of rows once for all
//! selections that wait for them, `accumulate.rs` adds them up, `plots.rs` makes a [`Frame`] of the sums.
//! docs/plots.md describes every plot.

mod accumulate;
mod bins;
mod calendar;
mod describe;
mod fold;
mod frame;
mod plots;
mod request;
mod rows;
mod sample;
mod selection;
mod session;

pub use calendar::{utc, utc_of_mjd};
pub use describe::{Antenna, Description, Field, SpectralWindow, has_plots};
pub use frame::{Array, Axis, Frame, Numbers, Plot, write_file};
pub use request::{Kind, PARAMETERS, Request};
pub use rows::Served;
pub use sample::{Amplitudes, AmplitudesBy, Look, NewestTime};
pub use session::{Ended, Session};
