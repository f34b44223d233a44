//! The bridge: plan, copy, compare. Only here and in `live` are tables and HDF5 files known together.

mod check;
mod conversion;
mod exact;
mod to_hdf5;
mod to_table;

pub use crate::damage::Damage;
pub use crate::h5::{Compression, Plugin};
pub use crate::native::{DatasetInfo, Elsewhere, display_name};
pub use crate::progress::Progress;
pub use crate::sha::{Sha, hex};
pub use crate::source::{
    ColumnDigest, Comparison, Difference, Source, SourceTable, TableDigest, digest, digest_with, verify, verify_with,
};
pub use check::check;
pub use conversion::{Summary, to_hdf5};
pub use exact::{Cost, RestoreOptions, Restored, cost, restore};
pub use to_hdf5::{ColumnPlan, Compress, Form, Options, Plan, Route, TablePlan};
pub use to_table::{TableOptions, TableSummary, to_table};
