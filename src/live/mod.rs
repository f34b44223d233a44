//! Tables that grow while others read them. docs/live.md.
//!
//! A [`Declaration`] says what there will be; [`go_live`](Declaration::go_live) makes a [`Writer`] of it, which appends rows
//! and commits them. [`Reader`] reads the committed rows from any number of processes, and so do h5py and xarray.
//!
//! The order of a commit: the cells of every column; all metadata (the file is flushed); then `committed_rows` of the table.
//! Who reads `committed_rows` first, and only so many rows, reads whole rows.

mod batch;
mod block;
mod create;
mod declare;
mod finalize;
mod follow;
mod layout;
mod lock;
mod reader;
mod repair;
mod schema;
mod table;
mod writer;

#[cfg(test)]
mod tests;

pub use batch::{Batch, TableAppender};
pub use block::Block;
pub use declare::{CellShapes, ColumnSpec, TableSpec};
pub use finalize::{Finalized, finalize};
pub use follow::{Activity, Follow, FollowOptions, FollowSummary};
pub use lock::discard_lock;
pub use reader::{Reader, TableReader};
pub use repair::{Repaired, RepairedTable, repair};
pub use schema::{CommitPolicy, Durability, Schema};
pub use writer::Writer;
