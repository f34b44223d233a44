//! Documents of `pack` and `unpack`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::shown;
use crate::blz::ExportSummary;
use crate::pack::{Elsewhere, FilesFollowed, PackSummary};

/// The document of `pack` and `unpack`, and of `to-hdf5` for a container of files that are not a
/// table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pack {
    /// Path of the target, as it was given.
    pub out: String,
    /// Number of files, each counted as outside of containers.
    pub files: u64,
    /// Size of these files.
    pub bytes: u64,
    /// Size of the target.
    pub stored_bytes: u64,
    /// Tables that the files need but that the target lacks.
    pub elsewhere: Vec<Elsewhere>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Most memory that the process has used, in bytes; `None` if the system does not tell it.
    pub peak_memory: Option<u64>,
}

impl Pack {
    /// Makes the document of files written to `out`; `peak_memory` is the most memory of the
    /// process in bytes.
    pub fn new(out: &Path, summary: &PackSummary, seconds: f64, peak_memory: Option<u64>) -> Self {
        Pack {
            out: shown(out),
            files: summary.files as u64,
            bytes: summary.bytes,
            stored_bytes: summary.stored_bytes,
            elsewhere: summary.elsewhere.clone(),
            seconds,
            peak_memory,
        }
    }
}

/// The document of `pack --follow`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PackFollow {
    /// Path of the container, as it was given.
    pub out: String,
    /// Number of files at the last commit, each counted as outside of containers.
    pub files: u64,
    /// Size of these files.
    pub bytes: u64,
    /// Size of the container.
    pub stored_bytes: u64,
    /// Number of times that changes of the table became visible to readers.
    pub commits: u64,
    /// Bytes by which files have grown, in whole blocks.
    pub appended_bytes: u64,
    /// Size of the blocks that were stored again because bytes in them had changed.
    pub replaced_bytes: u64,
    /// Number of HDF5 files that were written, of which each took the place of the one before.
    pub generations: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Most memory that the process has used, in bytes; `None` if the system does not tell it.
    pub peak_memory: Option<u64>,
}

impl PackFollow {
    /// Makes the document of a table whose files were followed into the container `out`;
    /// `peak_memory` is the most memory of the process in bytes.
    pub fn new(out: &Path, followed: &FilesFollowed, seconds: f64, peak_memory: Option<u64>) -> Self {
        PackFollow {
            out: shown(out),
            files: followed.files as u64,
            bytes: followed.bytes,
            stored_bytes: followed.stored_bytes,
            commits: followed.commits,
            appended_bytes: followed.appended,
            replaced_bytes: followed.replaced,
            generations: followed.generations,
            seconds,
            peak_memory,
        }
    }
}

/// The document of `pack --strict` if the source needs tables that the target would lack: nothing
/// is packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PackRefused {
    /// Tables that the files need but that the target would lack.
    pub elsewhere: Vec<Elsewhere>,
}

impl From<Vec<Elsewhere>> for PackRefused {
    fn from(elsewhere: Vec<Elsewhere>) -> Self {
        PackRefused { elsewhere }
    }
}

/// The document of `pack` and `unpack` for arrays, written as BLZ, bcolz or bloscpack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PackArrays {
    /// Path of the target, as it was given.
    pub out: String,
    /// Format of the target: `blz`, `bcolz` or `bloscpack`.
    pub format: String,
    /// Number of arrays.
    pub arrays: u64,
    /// Size of all elements, uncompressed.
    pub bytes: u64,
    /// Size of the target.
    pub stored_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Most memory that the process has used, in bytes; `None` if the system does not tell it.
    pub peak_memory: Option<u64>,
}

impl PackArrays {
    /// Makes the document of arrays written to `out`; `peak_memory` is the most memory of the
    /// process in bytes.
    pub fn new(out: &Path, summary: &ExportSummary, seconds: f64, peak_memory: Option<u64>) -> Self {
        PackArrays {
            out: shown(out),
            format: summary.format.name().to_owned(),
            arrays: summary.arrays as u64,
            bytes: summary.bytes,
            stored_bytes: summary.stored_bytes,
            seconds,
            peak_memory,
        }
    }
}
