//! The bridge: plan, copy, compare. Only here are tables and HDF5 files known together.

mod content;
mod digest;
mod json;
mod pieces;

pub(crate) use content::Content;
pub use content::{Source, SourceTable};
pub use digest::{ColumnDigest, TableDigest, digest};
