//! Files recorded by path, size and modification time, to tell whether they have changed.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedFile {
    /// Absolute, or relative to the directory of the manifest or of the new table.
    pub(super) path: PathBuf,
    pub(super) size: u64,
    /// Nanoseconds since 1970.
    pub(super) mtime_ns: i64,
}

impl RecordedFile {
    pub(super) fn new(path: PathBuf, metadata: &Metadata) -> Self {
        RecordedFile { path, size: metadata.len(), mtime_ns: mtime_ns(metadata) }
    }

    /// How a file with metadata `found` differs.
    pub(super) fn change(&self, found: &Metadata) -> Option<String> {
        let (size, mtime_ns) = (found.len(), mtime_ns(found));
        if !found.is_file() {
            Some("it is not a regular file".to_owned())
        } else if size != self.size {
            Some(format!("it has {size} bytes, {} are expected", self.size))
        } else if mtime_ns != self.mtime_ns {
            let by = mtime_ns.abs_diff(self.mtime_ns) as f64 * 1e-9;
            let relation = if mtime_ns > self.mtime_ns { "later" } else { "earlier" };
            Some(format!("its modification time is {by:.6} s {relation} than recorded"))
        } else {
            None
        }
    }

    /// How the file at the recorded path differs; relative paths begin at `directory`.
    pub(super) fn change_below(&self, directory: &Path) -> Option<String> {
        match directory.join(&self.path).metadata() {
            Ok(metadata) => self.change(&metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => Some("it is missing".to_owned()),
            Err(error) => Some(format!("it cannot be opened: {error}")),
        }
    }
}

fn mtime_ns(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}
