//! `batch clean` removes unfinished output that killed processes have left beside the targets.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use ctds_hdf5::ErrorKind;
use ctds_hdf5::documents::BatchClean;
use ctds_hdf5::program::remove_abandoned;

use crate::args::{Global, duration};
use crate::batch::Manifest;
use crate::exit::Status;
use crate::report::Ending;

/// Command-line arguments of `h5bridge batch clean`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge batch clean all.ndjson
  h5bridge batch clean all.ndjson --older-than 10m")]
pub(super) struct Args {
    /// The manifest of the batch: the list of items that batch plan writes, one a line
    manifest: PathBuf,
    /// Remove only unfinished outputs that have not changed for this time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    older_than: Duration,
}

pub(super) fn run(args: &Args, global: &Global, out: &mut impl Write) -> Result<Status> {
    let manifest = Manifest::open(&args.manifest)?;
    let mut directories: BTreeMap<PathBuf, HashSet<OsString>> = BTreeMap::new();
    for number in 0..manifest.len() {
        let item = manifest.read(number)?;
        let target = item.output();
        if let Some((directory, name)) = target.and_then(Path::parent).zip(target.and_then(Path::file_name)) {
            directories.entry(directory.to_owned()).or_default().insert(name.to_owned());
        }
    }
    let mut removed = Vec::new();
    for (directory, names) in directories {
        match remove_abandoned(&directory, args.older_than, &|name| names.contains(name)) {
            Ok(paths) => removed.extend(paths),
            // nothing was written there
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    let removed: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
    Ending {
        summary: vec![format!("{} unfinished outputs were removed", removed.len())],
        found: removed.clone(),
        ..Ending::default()
    }
    .print(global, out, || BatchClean { removed })
}
