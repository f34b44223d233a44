//! Sources: a table with its subtables, read through one interface however it is stored; selection
//! of rows, averaging, digests, comparison.

mod average;
pub(crate) mod blocks;
mod casacore_table;
pub(crate) mod compare;
mod content;
mod coordinates;
pub(crate) mod digest;
mod edits;
mod join;
mod joined;
mod marks;
mod measurement_set;
mod native_table;
mod origin;
mod predicate;
mod processing_set;
mod row_set;
mod salvage;
mod salvaged;
mod selected;
mod shown;
pub(crate) mod stored_digests;
mod tables;
pub(crate) mod tree;

pub use average::{Averaged, Averaging};
pub use compare::{Comparison, Difference};
pub(crate) use compare::{compare, compare_rows, compare_table};
pub(crate) use content::Content;
pub(crate) use coordinates::coordinates;
pub(crate) use digest::digest;
pub use digest::{ColumnDigest, TableDigest};
pub(crate) use join::PartFile;
pub(crate) use joined::fill_of;
pub use predicate::Predicate;
pub(crate) use tables::no_column;
pub use tables::{RefusedTable, Source, SourceTable};
