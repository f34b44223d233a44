//! Live files: HDF5 files with casacore tables that grow while other processes read them (SWMR).
//! docs/reference/live.md.
//!
//! A [`Schema`] declares tables and columns; [`create`](Schema::create) makes a [`Writer`] of it,
//! which appends rows in batches and commits them. A [`Reader`] reads the committed rows from any
//! number of processes, and so do h5py and xarray. [`Follow`] keeps a live file in step with a
//! casacore table that another program is writing; [`repair`] recovers a file whose writer was
//! killed, and [`Finalize`] makes a compact file of it when the observation is over.
//!
//! A commit writes the cells of every column, then all metadata (the file is flushed), then
//! `committed_rows` of the table. A reader that takes `committed_rows` first and reads no more rows
//! than that reads whole rows.
//!
//! ```
//! use ctds_hdf5::ColumnDesc;
//! use ctds_hdf5::live::{Reader, Schema, TableSpec};
//! # let folder = tempfile::tempdir()?;
//! # let live_h5 = folder.path().join("live.h5");
//!
//! let main = TableSpec::new("MAIN")
//!     .column(ColumnDesc::scalar::<f64>("TIME").unit("s"))
//!     .column(ColumnDesc::array::<f64>("UVW").fixed_shape([3]).unit("m"));
//! let mut writer = Schema::new().table(main).create(&live_h5)?;
//! let reader = Reader::open(&live_h5)?;
//!
//! let mut rows = writer.table("MAIN")?.batch(2);
//! rows.set("TIME", [5e9, 5e9 + 1.])?.set("UVW", [0.5; 6])?;
//! rows.append()?;
//! writer.commit()?;
//!
//! let main = reader.table("MAIN")?;
//! assert_eq!(main.refresh()?, 2);
//! assert_eq!(main.rows::<f64>("TIME", 0..2)?, [5e9, 5e9 + 1.]);
//! writer.close()?;
//! # Ok::<(), ctds_hdf5::Error>(())
//! ```

mod batch;
mod block;
mod commit_policy;
#[cfg(any(test, feature = "internals"))]
pub(crate) mod committed;
mod create;
mod declare;
mod finalize;
mod follow;
mod layout;
mod not_followed;
mod reader;
mod repair;
mod schema;
mod table;
mod writer;

#[cfg(test)]
mod tests;

pub use batch::{Batch, TableAppender};
pub use block::Block;
pub use commit_policy::{CommitPolicy, Durability};
pub use declare::{CellShapes, ColumnSpec, TableSpec};
pub use finalize::{Finalize, FinalizeSummary};
pub use follow::{Activity, Follow, FollowEvent, FollowSummary, Following};
pub use not_followed::NotFollowed;
#[cfg(any(test, feature = "internals"))]
pub(crate) use reader::EachRun;
pub use reader::{Reader, TableReader};
pub use repair::{Repaired, RepairedTable, repair, repair_with};
pub use schema::Schema;
pub use writer::Writer;
