//! Documents of verbs about live files.

use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::shown;
use crate::convert::Hash;
use crate::live::{FinalizeSummary, FollowSummary, Repaired};

/// The document of `follow`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Follow {
    /// Number of rows of each table in the live file, by its name; the main table is `MAIN`.
    pub tables: IndexMap<String, u64>,
    /// Number of times that new rows became visible to readers.
    pub commits: u64,
    /// Number of blocks of rows that were written again because the table had changed.
    pub rewritten_blocks: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Follow {
    /// Makes the document of a table that was followed for a number of seconds.
    pub fn new(summary: &FollowSummary, seconds: f64) -> Self {
        Follow {
            tables: summary.tables.iter().cloned().collect(),
            commits: summary.commits,
            rewritten_blocks: summary.rewritten,
            seconds,
        }
    }
}

/// The document of `finalize`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finalize {
    /// Path of the HDF5 file, as it was given.
    pub out: String,
    /// Number of tables that the file has, with subtables.
    pub tables: u64,
    /// Number of columns of all tables.
    pub columns: u64,
    /// Number of rows of the main table.
    pub rows: u64,
    /// Size of the cells, uncompressed.
    pub bytes: u64,
    /// Size of the HDF5 file.
    pub file_bytes: u64,
    /// Number of cells that were compared before the file appeared under its name.
    pub cells_compared: u64,
    /// Parts of the followed table that the live file does not hold, a sentence for each; empty
    /// with `--source`.
    pub not_followed: Vec<String>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Fingerprint of the main table, in hexadecimal digits; `None` if none was computed.
    pub digest: Option<String>,
}

impl Finalize {
    /// Makes the document of the archive file `out`.
    pub fn new(out: &Path, finalized: &FinalizeSummary, seconds: f64) -> Self {
        let summary = &finalized.summary;
        Finalize {
            out: shown(out),
            tables: summary.tables as u64,
            columns: summary.columns as u64,
            rows: summary.rows,
            bytes: summary.bytes,
            file_bytes: summary.file_bytes,
            cells_compared: finalized.comparison.cells,
            not_followed: finalized.not_followed.parts.clone(),
            seconds,
            digest: summary.digest.as_ref().map(Hash::to_string),
        }
    }
}

/// The document of `repair`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Repair {
    /// Whether the file was marked as open for writing.
    pub was_open: bool,
    /// Size of the file by its superblock before the repair.
    pub end_before: u64,
    /// Size of the file after the repair.
    pub end: u64,
    /// Number of datasets that were checked.
    pub datasets: u64,
    /// Number of chunks that are cut off; their missing elements read as zeros.
    pub incomplete_chunks: u64,
    /// Rows that each table has kept and lost; empty for a file that another program wrote.
    pub tables: Vec<RepairedTable>,
}

impl From<&Repaired> for Repair {
    fn from(repaired: &Repaired) -> Self {
        let table = |table: &crate::live::RepairedTable| RepairedTable {
            name: table.name.clone(),
            committed_rows: table.committed,
            lost_rows: table.lost,
        };
        Repair {
            was_open: repaired.was_open,
            end_before: repaired.end.0,
            end: repaired.end.1,
            datasets: repaired.datasets as u64,
            incomplete_chunks: repaired.incomplete_chunks as u64,
            tables: repaired.tables.iter().map(table).collect(),
        }
    }
}

/// A table of a repaired live file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RepairedTable {
    /// Name of the table; the main table is `MAIN`.
    pub name: String,
    /// Number of rows that were committed, which the file keeps.
    pub committed_rows: u64,
    /// Number of rows that were not committed, which were removed.
    pub lost_rows: u64,
}

/// A line that `watch` prints: a document of its own, told apart by the member `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum WatchLine {
    /// State of the file at a poll.
    Look(Box<WatchLook>),
    /// An alert that begins or ends.
    Alert(WatchAlert),
    /// The last line.
    End(WatchEnd),
}

/// State of a live file at a poll of `watch`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WatchLook {
    /// Time of the poll in UTC: `2026-11-20T17:30:00.0Z`.
    pub time: String,
    /// Path of the file, as it was given.
    pub file: String,
    /// Whether the file is marked as being written.
    pub open: bool,
    /// Number of committed rows of all tables.
    pub rows: u64,
    /// Number of committed rows of each table, by its name; the main table is `MAIN`.
    pub tables: IndexMap<String, u64>,
    /// Rows per second since the poll before; `None` in the first.
    pub rows_per_second: Option<f64>,
    /// Bytes of cells per second since the poll before; `None` in the first.
    pub bytes_per_second: Option<f64>,
    /// Age in seconds of the newest commit.
    pub commit_age_seconds: f64,
    /// The newest TIME of the main table; `None` if it has none.
    pub newest_time: Option<WatchTime>,
    /// Fraction of the newest flags that are set, 0 to 1; `None` if the table has none.
    pub flagged: Option<f64>,
    /// Mean amplitudes of the newest rows; `None` without visibilities.
    pub amplitudes: Option<WatchAmplitudes>,
    /// Kind of the source; `live`.
    pub kind: String,
    /// Number of changes of the file since it was opened.
    pub revision: u64,
    /// Time of the poll minus the newest TIME, in seconds; `None` if that is more than a day or
    /// TIME is unknown.
    pub lag_seconds: Option<f64>,
    /// SCAN_NUMBER of the newest row; `None` if the table does not have it.
    pub scan: Option<i64>,
    /// Name of the field of the newest row; `None` if it is not known.
    pub field: Option<String>,
    /// Whether cells may have been overwritten, so that plots show outdated values.
    pub stale: bool,
}

/// A time of casacore in two forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WatchTime {
    /// Seconds of MJD.
    pub mjd_seconds: f64,
    /// Date and time in UTC: `2026-11-20T17:30:00.0Z`.
    pub utc: String,
}

/// Mean amplitudes of the newest rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WatchAmplitudes {
    /// Name of the column with the visibilities.
    pub column: String,
    /// Grouping of the means: `antenna` or `time and channel`.
    pub by: String,
    /// The means, null for those without values. By antenna: a list of numbers. By time and
    /// channel: a list of lists with a number for each channel, the newest last.
    pub mean: Json,
}

/// An alert of `watch` that begins or ends, or whose antennas change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WatchAlert {
    /// Time of the poll in UTC: `2026-11-20T17:30:00.0Z`.
    pub time: String,
    /// Path of the file, as it was given.
    pub file: String,
    /// The rule, such as `flagged > 40 %`.
    pub rule: String,
    /// Whether the rule holds; `false` at the end of the alert.
    pub active: bool,
    /// The state that the rule warns of, in words.
    pub text: String,
    /// Time in UTC of the poll at which the alert began.
    pub since: String,
    /// Number of changes of the file since it was opened.
    pub revision: u64,
}

/// The last line of `watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchEnd {
    /// The reason of the end: `interrupted`, `count` or `replaced`.
    pub reason: String,
    /// Number of polls.
    pub looks: u64,
    /// Name of the exit status: `done`.
    pub status: String,
    /// Exit code of the program: 0.
    pub code: u8,
    /// Empty.
    pub warnings: Vec<String>,
}
