//! The documents that `h5bridge VERB --json` prints, as types: the program serializes them, and
//! programs that run it parse them.
//!
//! | `h5bridge` | prints |
//! |---|---|
//! | `to-hdf5` | [`Document`] of [`ToHdf5`]; of [`ToHdf5Arrays`] or [`Pack`] for arrays and other files |
//! | `to-hdf5 --dry-run`, `--replace` | [`Document`] of [`ToHdf5DryRun`], [`Replace`] |
//! | `to-ms`, `to-ms --exact` | [`Document`] of [`ToMs`], [`ToMsExact`] |
//! | `join`, `link`, `materialize`, `manifest` | [`Document`] of [`Join`], [`Link`], [`Materialize`], [`Manifest`] |
//! | `follow`, `finalize`, `repair` | [`Document`] of [`Follow`], [`Finalize`], [`Repair`] |
//! | `watch` | a [`WatchLine`] on each line |
//! | `verify A B` | [`Document`] of [`VerifyTables`], [`VerifyArrays`]; with `--bytes` [`VerifyBytes`] |
//! | `verify A` | [`Document`] of [`VerifyTables`], [`VerifyStored`], [`VerifyStoredArrays`], [`VerifyManifest`], [`VerifyThin`] |
//! | `lint` | [`Document`] of [`Lint`] |
//! | `digest` | [`Digest`]; of a container or of arrays [`DigestFiles`] |
//! | `info` | [`Info`], [`InfoContainer`], [`InfoFile`], [`InfoArrays`]; with `--msv4` [`InfoMsv4`] |
//! | `ls` | [`List`]; of arrays [`ListChunks`] |
//! | `pack`, `unpack` | [`Document`] of [`Pack`], [`PackArrays`]; refused by `--strict`: [`PackRefused`] |
//! | `pack --follow`; `finalize` of its container | [`Document`] of [`PackFollow`]; of [`Pack`] |
//! | `plot` | [`Document`] of [`Plot`] |
//! | `shard` | [`Document`] of [`ShardPlan`], [`ShardSplit`], [`ShardWork`], [`ShardStatus`], [`ShardVerify`], [`ShardCommit`] |
//! | `batch` | [`Document`] of [`BatchPlan`], [`BatchRun`], [`BatchStatus`], [`BatchClean`] |
//! | `completions`, `generate` | [`Completions`], [`Generate`] |
//!
//! Every verb that fails prints a [`Failure`] instead; [`Outcome`] is either. Members appear in the
//! order of the fields. Sizes are in bytes, durations in seconds; rows, chunks and indices count
//! from 0, and shapes have the slowest axis first. A member that a field calls missing is left out
//! of the document; later versions of the program may add members.
//!
//! ```
//! use ctds_hdf5::documents::{Document, Outcome, ToMsExact};
//!
//! let printed = r#"{"out": "my.ms", "files": 48, "bytes": 450000, "seconds": 0.1, "peak_memory": null,
//!     "status": "done", "code": 0, "warnings": []}"#;
//! match serde_json::from_str::<Outcome<Document<ToMsExact>>>(printed)? {
//!     Outcome::Finished(document) => assert_eq!((document.content.files, document.code), (48, 0)),
//!     Outcome::Failed(failure) => panic!("{}", failure.error),
//! }
//! # Ok::<(), serde_json::Error>(())
//! ```

mod batch;
mod convert;
mod digest;
mod info;
mod link;
mod list;
mod live;
mod pack;
mod plot;
mod program;
mod shard;
mod verify;

use std::path::Path;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

pub use self::batch::{BatchClean, BatchCount, BatchDoneNow, BatchFailure, BatchPlan, BatchRun, BatchStatus};
pub use self::convert::{
    Averaged, CopiedColumn, Join, PlannedColumn, PlannedTable, Restorable, Sharing, ToHdf5, ToHdf5Arrays, ToHdf5DryRun,
    ToMs, ToMsExact, ToMsView,
};
pub use self::digest::{ColumnDigest, Digest, DigestFiles, TableDigest};
pub use self::info::{
    Attention, Info, InfoArrays, InfoCasacore, InfoColumn, InfoContainer, InfoDataset, InfoElsewhere, InfoFile,
    InfoHypercube, InfoManager, InfoMsv4, InfoPartition, InfoSpace, InfoStorage, InfoStored, InfoTable, InfoThin,
    LinkedFile, Summary, SummaryAntenna, SummaryField, SummaryFlagged, SummaryObservation, SummaryScan, SummaryWindow,
    keyword_value,
};
pub use self::link::{Link, Manifest, Materialize, Replace};
pub use self::list::{Chunk, LeftOut, List, ListChunks, ListedFile};
pub use self::live::{
    Finalize, Follow, Repair, RepairedTable, WatchAlert, WatchAmplitudes, WatchEnd, WatchLine, WatchLook, WatchTime,
};
pub use self::pack::{Pack, PackArrays, PackFollow, PackRefused};
pub use self::plot::{Drawing, DrawnPlot, Plot, PlotAxis};
pub use self::program::{Completions, Generate};
pub use self::shard::{
    ShardCommit, ShardCounts, ShardDifference, ShardPlan, ShardPlanItem, ShardResult, ShardSplit, ShardStatus,
    ShardVerify, ShardWork,
};
pub use self::verify::{
    ChangedFile, CheckedArrays, CheckedFiles, CheckedLinks, CheckedManifest, CheckedObjects, ComparedArrays,
    ComparedFiles, ComparedTables, DamagedFile, Lint, LintFinding, VerifyArrays, VerifyBytes, VerifyManifest,
    VerifyStored, VerifyStoredArrays, VerifyTables, VerifyThin,
};
use crate::output::Damage;

/// The document of a verb that has ended: the members of `content`, followed by those that all
/// verbs have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document<T> {
    /// The members that the verb adds to the common ones.
    #[serde(flatten)]
    pub content: T,
    /// Bytes of the target that it shares with the source by reflinks, without disk space of their
    /// own; 0 if the member is missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_bytes: u64,
    /// Name of the exit status, such as `done` or `different`; `h5bridge help exit-codes` lists
    /// all.
    pub status: String,
    /// Exit code of the program: 0 for `done`, also with warnings; 6 for warnings with `--strict`.
    pub code: u8,
    /// Warnings for the user, in sentences.
    pub warnings: Vec<String>,
    /// Damaged parts of the source that the target lacks, or that were not compared; empty if the
    /// member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
    /// Plugins that programs need to read the target; empty if the member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Plugin>,
}

impl<T> Document<T> {
    /// Makes the document of a verb with a status and exit code, without warnings, damage and
    /// plugins.
    pub fn new(content: T, status: impl Into<String>, code: u8) -> Self {
        Document {
            content,
            shared_bytes: 0,
            status: status.into(),
            code,
            warnings: Vec::new(),
            damage: Vec::new(),
            plugins: Vec::new(),
        }
    }
}

/// The document of a verb that has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// Name of the exit status, such as `source unreadable`; `h5bridge help exit-codes` lists all.
    pub status: String,
    /// Exit code of the program, not 0.
    pub code: u8,
    /// Warnings for the user; the program prints those of a verb that fails on stderr, and none
    /// here.
    pub warnings: Vec<String>,
    /// The message of the error, one sentence.
    pub error: String,
}

impl Failure {
    /// Makes the document of a verb that has failed, without warnings.
    pub fn new(status: impl Into<String>, code: u8, error: impl Into<String>) -> Self {
        Failure { status: status.into(), code, warnings: Vec::new(), error: error.into() }
    }
}

/// A document as the program prints it, of a verb that has ended or has failed. `D` is a
/// [`Document`], or the type of a verb that prints its members alone, such as [`Info`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Outcome<D> {
    /// The verb has ended; its status may still say that something differs or is missing.
    Finished(D),
    /// The verb has failed.
    Failed(Failure),
}

// not `untagged`, which would not say which member is wrong
impl<'de, D: DeserializeOwned> Deserialize<'de> for Outcome<D> {
    fn deserialize<R: Deserializer<'de>>(deserializer: R) -> Result<Self, R::Error> {
        let value = Json::deserialize(deserializer)?;
        let is_failure = value.get("error").is_some() && value.get("code").is_some();
        let outcome = match is_failure {
            true => serde_json::from_value(value).map(Outcome::Failed),
            false => serde_json::from_value(value).map(Outcome::Finished),
        };
        outcome.map_err(R::Error::custom)
    }
}

/// A plugin of HDF5 that programs need to read a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Plugin {
    /// Name of the filter that the plugin implements, such as `zstd`.
    pub filter: String,
    /// Identifier of the filter, as registered with The HDF Group.
    pub id: i32,
    /// Python package that installs the plugin; `None` if the program knows none.
    pub package: Option<String>,
}

impl From<&crate::h5::Plugin> for Plugin {
    fn from(plugin: &crate::h5::Plugin) -> Self {
        let crate::h5::Plugin { filter, id, package } = plugin;
        Plugin { filter: filter.clone(), id: *id, package: package.map(str::to_owned) }
    }
}

/// The entry of a table in a document that describes all tables of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Described<T> {
    /// The table could be read.
    Table(T),
    /// The table cannot be read.
    Unreadable {
        /// The message of the error, one sentence.
        error: String,
    },
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_of_a_failed_verb_is_parsed_as_failure() {
        let text = r#"{"status":"no space","code":8,"warnings":[],"error":"the disk is full"}"#;
        let Outcome::Failed(failure) = serde_json::from_str::<Outcome<Document<ToMs>>>(text).unwrap() else {
            panic!("a failure is expected");
        };
        assert_eq!((failure.code, &*failure.error), (8, "the disk is full"));
        assert_eq!(serde_json::to_string(&Outcome::<Document<ToMs>>::Failed(failure)).unwrap(), text);
    }

    #[test]
    fn error_of_parsing_names_the_missing_member() {
        let error = serde_json::from_str::<Outcome<Document<Generate>>>(r#"{"files":[]}"#).unwrap_err();
        assert!(error.to_string().contains("status"), "{error}");
    }
}
