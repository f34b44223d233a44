//! The arguments MANIFEST (a list of jobs) and `--ledger` (the directory with the records of
//! attempts at these jobs) of `batch run` and `batch status`.

use std::path::PathBuf;

use crate::batch::Manifest;

/// Paths of a manifest and its ledger, as arguments of `batch run` and `batch status`.
#[derive(Debug, clap::Args)]
pub(super) struct Files {
    /// The manifest of the batch: the list of items that batch plan writes, one a line; - is stdin
    pub(super) manifest: PathBuf,
    /// The directory in which each process records what it has done
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) ledger: PathBuf,
}

impl Files {
    /// Reads stdin if the path is `-`.
    pub(super) fn open(&self) -> anyhow::Result<Manifest> {
        if self.manifest.as_os_str() != "-" {
            return Ok(Manifest::open(&self.manifest)?);
        }
        // items are read again when they start
        let mut kept = tempfile::tempfile()?;
        std::io::copy(&mut std::io::stdin().lock(), &mut kept)?;
        Ok(Manifest::from_file("-", kept)?)
    }
}
