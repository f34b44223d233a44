//! Writes casacore tables from any source: a native HDF5 file, or other tables.
//!
//! A source that was a view becomes one again where that is possible ([`views`]). Otherwise all
//! tables are made first, then the managers run in parallel: each column of a manager is copied
//! tile by tile where its chunks are tiles, else in blocks of rows. The original managers are used
//! again where they are known and can be written; [`manager_choice`] finds managers for the rest.

mod column;
mod expression;
mod hold;
mod links;
mod manager_choice;
mod options;
mod plan;
mod tiles;
mod views;
mod write;

pub(crate) use hold::{HeldTiles, RowTiles};
pub(crate) use options::ToTableOptions;
pub use options::Views;
pub(crate) use tiles::ChunkTiles;
pub use write::ToTableSummary;
pub(crate) use write::{HeldTable, to_checked_table, to_held_table, to_table};
