//! Conversion of tables to HDF5 files and back, and comparison of sources.
//!
//! | builder        | writes                                                                                         |
//! |----------------|------------------------------------------------------------------------------------------------|
//! | [`ToHdf5`]     | a native HDF5 file from a table and its subtables; [`plan`](ToHdf5::plan) shows it before      |
//! | [`ToTable`]    | a casacore table from a native HDF5 file, or from another table                                     |
//! | [`ToOriginal`] | the original directory, byte for byte, from a file made with [`ToHdf5::restorable`]            |
//! | [`JoinParts`]  | a native HDF5 file over several, whose large columns stay in these                                  |
//! | [`Compare`]    | nothing: compares two sources value by value, or one with the digests that it holds            |
//! | [`Digest`]     | nothing: computes fingerprints of the content, whatever its storage                            |
//!
//! [`Outline`] shows the groups, datasets, axes and attributes that a file would have.
//!
//! A source is whatever holds a table: a directory, a file with a whole table inside, a native HDF5
//! file, finished or live; [`Source`] opens it to look at its tables. Every target appears under
//! its name when it is whole, and all calls take a [`CancelToken`](crate::CancelToken) and report
//! their [`Progress`](crate::Progress) if asked to.
//!
//! ```
//! use ctds_hdf5::convert::ToHdf5;
//! # use ctds_hdf5::{ColumnDesc, NewTable};
//! # let folder = tempfile::tempdir()?;
//! # let (my_ms, my_h5) = (folder.path().join("my.ms"), folder.path().join("my.h5"));
//! # let mut table = NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(&my_ms)?;
//! # table.add_rows(2)?;
//! # table.close()?;
//!
//! let plan = ToHdf5::new(&my_ms).columns(["TIME"]).plan()?;
//! assert_eq!(plan.tables()[0].columns[0].name, "TIME");
//! let summary = plan.write(&my_h5)?;
//! assert_eq!(summary.columns, 1);
//! # Ok::<(), ctds_hdf5::Error>(())
//! ```

mod builders;
mod check;
mod conversion;
mod exact;
mod join;
mod manifest;
mod recorded_file;
mod shard;
mod thin;
pub(crate) mod to_hdf5;
mod to_table;

pub use crate::h5::{Compression, Plugin};
pub use crate::hash::{Hash, HashKind};
pub use crate::native::{DatasetInfo, Elsewhere, Part as DatasetPart, display_name};
pub use crate::output::Damage;
pub use crate::output::clone::{NotShared, Reflink};
pub use crate::source::{
    Averaged, Averaging, ColumnDigest, Comparison, Difference, Predicate, RefusedTable, Source, SourceTable,
    TableDigest,
};
pub use builders::{Compare, Digest, DigestPolicy, ToHdf5, ToHdf5Plan, ToOriginal, ToTable};
pub use conversion::ToHdf5Summary;
pub(crate) use conversion::to_hdf5;
pub use exact::{SpaceUsage, ToOriginalSummary};
pub use join::{JoinCheck, JoinParts, JoinSummary};
pub use manifest::{ChangedFile, CheckManifest, LeftOutColumn, ManifestCheck, ManifestSummary, ToManifest};
pub use shard::{
    CommitShards, RangeCheck, ShardCommitSummary, ShardItem, ShardPlan, ShardPlanSummary, ShardResult, ShardWorker,
    UnsyncedItem,
};
pub use thin::{LinkSummary, LinkTable, Materialize, ReplaceSummary, ReplaceTable, ThinTable};
pub use to_hdf5::{
    ColumnForm, ColumnOutline, ColumnPlan, ColumnSharing, Compress, CoordinateOutline, DatasetOutline, Hdf5Version,
    MissingColumn, Outline, Prediction, Profile, ReadStrategy, Schema, Sharing, TableOutline, TablePlan,
};
pub(crate) use to_hdf5::{Plan, ToHdf5Options};
pub use to_table::{ToTableSummary, Views};
