//! Documents of `batch`, which runs a verb on many sources. An item is one source with its verb,
//! options and target.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The document of `batch plan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchPlan {
    /// Path of the manifest that lists the items, as it was given.
    pub out: String,
    /// Number of items, one for each source.
    pub items: u64,
    /// Size of all sources; 0 with `--no-sizes`.
    pub bytes: u64,
    /// Number of sources that were left out because they were named before.
    pub repeated: u64,
}

/// The document of `batch run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchRun {
    /// Path of the manifest that lists the items.
    pub manifest: String,
    /// Number of items of the share that this process does.
    pub items: u64,
    /// Number of lines of the manifest that repeat an item.
    pub repeated: u64,
    /// Number of items in each state: `done`, `skipped`, `waiting`, `retry`, `failed`, `killed`,
    /// `conflict`.
    pub states: IndexMap<String, u64>,
    /// Number of items that were done with warnings.
    pub with_warnings: u64,
    /// Items that this run has done.
    pub done_now: BatchDoneNow,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Amount of work that one run of a batch has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchDoneNow {
    /// Number of items.
    pub items: u64,
    /// Size of their sources.
    pub bytes: u64,
    /// Size of their targets.
    pub file_bytes: u64,
}

/// The document of `batch status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchStatus {
    /// Number of items, one for each source.
    pub items: u64,
    /// Size of all sources.
    pub bytes: u64,
    /// Number of items that are done, or were skipped because an earlier run had made the target.
    pub finished: u64,
    /// Items in each state: `done`, `skipped`, `waiting`, `retry`, `failed`, `killed`, `conflict`.
    pub states: IndexMap<String, BatchCount>,
    /// Number of items that were tried and are not done, by the exit code of the last attempt.
    pub codes: IndexMap<String, u64>,
    /// Size of the targets.
    pub file_bytes: u64,
    /// Duration in seconds of the last attempts of all items together.
    pub work_seconds: f64,
    /// Expected seconds at the rate so far; `None` if no item is done or none is left.
    pub seconds_left: Option<f64>,
    /// Items that failed or will be tried again; missing without `--failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Vec<BatchFailure>>,
}

/// Items of a batch in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchCount {
    /// Number of items.
    pub items: u64,
    /// Size of their sources.
    pub bytes: u64,
}

/// An item of a batch that failed or will be tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchFailure {
    /// Identifier of the item, 16 hexadecimal digits.
    pub id: String,
    /// `failed`, `killed`, `conflict` or `retry`.
    pub state: String,
    /// Path of the source.
    pub source: String,
    /// Path of the target; `None` if the verb writes none.
    pub target: Option<String>,
    /// Exit code of the last attempt; 128 plus the number of a signal.
    pub code: i32,
    /// Number of the last attempt in its run, from 1.
    pub attempt: u32,
    /// The message of the error; empty if it is not known.
    pub error: String,
    /// Name of the machine of the last attempt.
    pub host: String,
    /// End of the last attempt, in seconds since 1970.
    pub time: f64,
}

/// The document of `batch clean`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchClean {
    /// Paths of the unfinished outputs that were removed.
    pub removed: Vec<String>,
}
