//! Checks whether HDF5 files follow this project's layout (docs/reference/layout.md), and whether
//! programs that read HDF5 are known to support everything in them.
//!
//! ```
//! use ctds_hdf5::convert::ToHdf5;
//! use ctds_hdf5::lint::Lint;
//! # use ctds_hdf5::{ColumnDesc, NewTable};
//! # let folder = tempfile::tempdir()?;
//! # let (my_ms, my_h5) = (folder.path().join("my.ms"), folder.path().join("my.h5"));
//! # NewTable::new().column(ColumnDesc::scalar::<bool>("FLAG_ROW")).create(&my_ms)?.close()?;
//!
//! ToHdf5::new(&my_ms).write(&my_h5)?;
//! let report = Lint::new(&my_h5).run()?;
//! assert!(report.follows_layout());
//! for note in &report.findings {
//!     println!("{}: {}: {}", note.object, note.rule.why, note.rule.next);
//! }
//! # Ok::<(), ctds_hdf5::Error>(())
//! ```

mod facts;
mod rules;
mod walk;

use std::path::{Path, PathBuf};

pub use rules::{Finding, Reader, Requirement, Rule};

use crate::error::Result;

/// Checks whether an HDF5 file follows this project's layout (docs/reference/layout.md), and which
/// programs that read HDF5 do not support everything in it.
#[derive(Debug, Clone)]
#[must_use = "`run` reads the file"]
pub struct Lint {
    path: PathBuf,
}

/// Result of [`Lint::run`]: what was found in a file, and how much was checked.
#[derive(Debug)]
#[non_exhaustive]
pub struct LintReport {
    /// Violations of docs/reference/layout.md, and things that some programs which read HDF5 do not
    /// support: in the order of [`Lint::rules`], for each rule in the order of the file's objects.
    pub findings: Vec<Finding>,
    /// Number of groups in the file that were checked.
    pub groups: u64,
    /// Number of datasets in the file that were checked.
    pub datasets: u64,
    /// Number of attributes in the file that were checked.
    pub attributes: u64,
}

impl Lint {
    /// Prepares to check whether the HDF5 file at `path` follows docs/reference/layout.md.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Lint { path: path.as_ref().to_owned() }
    }

    /// All rules that files are checked against: first those of docs/reference/layout.md, then
    /// those about programs that read HDF5.
    pub fn rules() -> &'static [Rule] {
        rules::RULES
    }

    /// Checks all groups, datasets, links and attributes of the file against all rules, and returns
    /// what it finds. Elements of columns are not read.
    ///
    /// # Errors
    /// `Unsupported` if the file is HDF5 but not a native file; `Format` if it is not HDF5, or
    /// damaged so that an object cannot be opened; `Locked` if another process keeps it open for
    /// writing.
    pub fn run(&self) -> Result<LintReport> {
        let facts = walk::collect(&self.path)?;
        let findings = rules::RULES.iter().flat_map(|rule| rule.findings(&facts)).collect();
        let (groups, datasets) = (facts.groups, facts.datasets.len() as u64);
        Ok(LintReport { findings, groups, datasets, attributes: facts.attributes.len() as u64 })
    }
}

impl LintReport {
    /// Whether the file follows docs/reference/layout.md. Findings about readers that do not
    /// support everything in the file do not count.
    pub fn follows_layout(&self) -> bool {
        self.findings.iter().all(|finding| finding.rule.requirement == Requirement::Reader)
    }
}
