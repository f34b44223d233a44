//! The bridge: plan, copy, compare. Only here are tables and HDF5 files known together.

mod by_layout;
mod check;
mod choose;
mod column_run;
mod content;
mod digest;
mod edits;
pub(crate) mod exact;
mod form;
pub(crate) mod json;
mod lane;
pub(crate) mod mapping;
pub(crate) mod native;
mod pieces;
pub(crate) mod plan;
mod restore;
pub(crate) mod scales;
mod tile_copy;
mod to_h5;
mod to_table;
mod verify;

pub use crate::h5::{Compression, Plugin};
pub use crate::output::discard_partial;
pub use crate::progress::Progress;
pub use crate::sha::{Sha, hex};
pub use check::check;
pub use content::{DatasetInfo, Source, SourceTable};
pub use digest::{ColumnDigest, TableDigest, digest};
pub use form::{Form, Route};
pub use plan::{ColumnPlan, Compress, Options, Plan, TablePlan};
pub use restore::{Cost, RestoreOptions, Restored, cost, restore};
pub use to_h5::{Summary, to_hdf5};
pub use to_table::{TableOptions, TableSummary, to_table};
pub use verify::{Comparison, Difference, verify};
