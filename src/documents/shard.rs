//! Documents of `shard`, which converts one table on many machines. An item is a range of chunks or
//! tiles.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::shown;
use crate::convert::{ShardCommitSummary, ShardPlanSummary};

/// The document of `shard plan`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShardPlan {
    /// Path of the HDF5 file or table that will be written, as it was given.
    pub out: String,
    /// Path of the directory with the plan.
    pub directory: String,
    /// Number of items, which are ranges of chunks or tiles.
    pub items: u64,
    /// Size of all items, uncompressed.
    pub bytes: u64,
    /// Size of the items that will be compressed.
    pub packed_bytes: u64,
    /// Size of the file or table without the items.
    pub file_bytes: u64,
    /// Number of rows of the main table, or of the first subtable if the plan has only subtables.
    pub rows: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

impl ShardPlan {
    /// Makes the document of a plan for `out` in `directory`.
    pub fn new(out: &Path, directory: &Path, made: &ShardPlanSummary, seconds: f64) -> Self {
        ShardPlan {
            out: shown(out),
            directory: shown(directory),
            items: made.items as u64,
            bytes: made.bytes,
            packed_bytes: made.packed_bytes,
            file_bytes: made.file_bytes,
            rows: made.rows,
            seconds,
        }
    }
}

/// The document of `shard plan --split`, which plans independent files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSplit {
    /// Path of the manifest for `batch run`.
    pub out: String,
    /// Number of files to be made.
    pub items: u64,
    /// Number of rows of each file; the last may have fewer.
    pub rows: u64,
    /// Size of the cells of all files, uncompressed.
    pub bytes: u64,
}

/// The document of `shard work`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardWork {
    /// Path of the HDF5 file or table, as it was given.
    pub out: String,
    /// Number of items, ranges of chunks or tiles, that this process has written.
    pub items: u64,
    /// Size of these items, uncompressed.
    pub bytes: u64,
    /// Number of items of the plan that are not done.
    pub left: u64,
    /// The items that this process has written or failed to write, in the order in which they
    /// ended.
    pub results: Vec<ShardResult>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Result of one item of `shard work`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardResult {
    /// Identifier of the item, 16 hexadecimal digits.
    pub id: String,
    /// `done`; `retry` if the reason of the failure may pass, `failed` if not.
    pub state: String,
    /// The message of the error; `None` if the item is done.
    pub error: Option<String>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The document of `shard status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardStatus {
    /// Path of the HDF5 file or table, as it was given.
    pub out: String,
    /// Whether `shard commit` has published it.
    pub published: bool,
    /// Number of items, ranges of chunks or tiles, by state.
    pub counts: ShardCounts,
    /// Size of all items, uncompressed.
    pub bytes: u64,
    /// Size of the items that are done, uncompressed.
    pub done_bytes: u64,
    /// All items of the plan.
    pub items: Vec<ShardPlanItem>,
}

/// Numbers of items of a shard plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardCounts {
    /// Number of all items.
    pub all: u64,
    /// Number of items that are written.
    pub done: u64,
    /// Number of items whose last attempt failed.
    pub failed: u64,
    /// Number of items without an attempt.
    pub waiting: u64,
}

/// State of an item of a shard plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardPlanItem {
    /// Identifier of the item, 16 hexadecimal digits.
    pub id: String,
    /// Dataset or column, and the range of its chunks or tiles, in words.
    pub name: String,
    /// Size of the item, uncompressed.
    pub bytes: u64,
    /// `done`, `failed` or `waiting`.
    pub state: String,
    /// Number of attempts; 0 if none is recorded.
    pub attempts: u32,
    /// Exit code of the last attempt; `None` without one.
    pub code: Option<i32>,
    /// The message of the error of the last attempt; `None` if it has none.
    pub error: Option<String>,
    /// Duration in seconds of the last attempt; `None` without one.
    pub seconds: Option<f64>,
}

/// The document of `shard verify`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardVerify {
    /// Whether all items that were compared have their recorded hash.
    pub equal: bool,
    /// Number of items, ranges of chunks or tiles, that were compared.
    pub items: u64,
    /// Number of chosen items that are not done, and were not compared.
    pub skipped: u64,
    /// Stored size of the items that were compared.
    pub bytes: u64,
    /// Items that differ, sorted by identifier.
    pub differences: Vec<ShardDifference>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// An item of a shard plan that differs from its recorded hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ShardDifference {
    /// Identifier of the item, 16 hexadecimal digits.
    pub id: String,
    /// Dataset or column, and the range of its chunks or tiles, in words.
    pub name: String,
    /// The difference, in words.
    pub difference: String,
}

/// The document of `shard commit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShardCommit {
    /// Path of the HDF5 file or table that was published, as it was given.
    pub out: String,
    /// Number of items, ranges of chunks or tiles.
    pub items: u64,
    /// Number of rows of the main table, or of the first subtable if the plan has only subtables.
    pub rows: u64,
    /// Size of the published file or table.
    pub file_bytes: u64,
    /// Stored size of the compressed chunks that were copied into the file.
    pub inserted_bytes: u64,
    /// Size of the elements that were read back and compared.
    pub checked_bytes: u64,
    /// Path of the record of all items, which `shard verify` reads.
    pub ranges: String,
    /// Duration in seconds.
    pub seconds: f64,
}

impl ShardCommit {
    /// Makes the document of the published file or table `out`; `ranges` is the record of its
    /// items.
    pub fn new(out: &Path, published: &ShardCommitSummary, ranges: &Path, seconds: f64) -> Self {
        ShardCommit {
            out: shown(out),
            items: published.items as u64,
            rows: published.rows,
            file_bytes: published.file_bytes,
            inserted_bytes: published.inserted_bytes,
            checked_bytes: published.checked_bytes,
            ranges: shown(ranges),
            seconds,
        }
    }
}
