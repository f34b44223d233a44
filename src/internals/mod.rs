//! Access to private parts of the library for the crates above it, for fuzz targets and for
//! benchmarks. Not part of the API: it changes at any time.
//!
//! The feature `internals` makes it visible; the library's own tests have it always.
//! CONTRIBUTING.md.
#![allow(missing_docs, reason = "hidden from the documentation")]

pub mod fuzz;
pub mod kernels;
mod managers;
mod native_files;
mod objects;
mod rows;

pub use objects::{
    AnyAttribute, AnyDataset, AnyNamedType, AnyObject, CommittedRows, File, Group, Link, Place, Served, Steps,
    Unwritten, Visitor, has_pointers,
};
pub use rows::{RowBlocks, cells, each_run, find};
