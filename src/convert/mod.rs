//! The bridge: plan, copy, compare. Only here are tables and HDF5 files known together.

mod column_run;
mod content;
mod digest;
mod json;
mod lane;
mod mapping;
mod native;
pub(crate) mod output;
mod pieces;
mod plan;
mod scales;
mod to_h5;
mod verify;

pub use content::{DatasetInfo, Source, SourceTable};
pub use digest::{ColumnDigest, Sha, TableDigest, digest, hex};
pub use output::discard_partial;
pub use plan::{ColumnPlan, Compress, Form, Options, Plan, Route, TablePlan};
pub use to_h5::{Progress, Summary, to_hdf5};
pub use verify::{Comparison, Difference, verify};
