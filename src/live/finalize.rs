//! From a live file to one for the archive.

use std::path::{Path, PathBuf};

use super::lock::WriterLock;
use crate::convert::output::Output;
use crate::convert::{Comparison, Options, Plan, Progress, Source, Summary, to_hdf5, verify};
use crate::error::{Error, ErrorKind, Place, Result};

/// What `finalize` has made.
#[derive(Debug)]
pub struct Finalized {
    /// Of the conversion.
    pub summary: Summary,
    /// Of what it was made from with what it has become. Without differences: the target is there only then.
    pub comparison: Comparison,
}

/// Writes the content of the live file at `live` anew to `target`, as [`to_hdf5`] does: large chunks, filters, fixed
/// extents, digests. Then compares the two value by value, and only then gives the file its name, which may be that of the
/// live file itself.
///
/// With `source`, the table that was followed, its content is taken instead: with columns, keywords and cells that the
/// live file has no room for.
///
/// # Errors
/// `Locked` while a writer has the live file; `Exists` without `overwrite`; `Format` if the comparison finds a
/// difference; those of [`to_hdf5`].
pub fn finalize(
    live: &Path,
    source: Option<&Source>,
    target: &Path,
    options: &Options,
    overwrite: bool,
    progress: &dyn Progress,
) -> Result<Finalized> {
    // nobody begins to write meanwhile
    let _lock = WriterLock::take(live)?;
    let own;
    let source = match source {
        Some(source) => source,
        None => {
            own = Source::open(live)?;
            &own
        }
    };
    let replaces = same_file(live, target);
    let output = Output::create(target, overwrite || replaces, 0)?;
    let plan = Plan::new(source, options)?;
    let new = unverified_path(output.partial());
    let made = || -> Result<_> {
        let summary = to_hdf5(source, &plan, options, &new, true, progress)?;
        let comparison = verify(source, &Source::open(&new)?)?;
        if let Some(difference) = comparison.differences.first() {
            let message = format!("what was written differs, first in table {}", difference.table);
            return Err(Error::new(ErrorKind::Format, message).at(new.display()));
        }
        std::fs::rename(&new, output.partial()).at_with(|| new.display().to_string())?;
        Ok(Finalized { summary, comparison })
    };
    let finalized = made().inspect_err(|_| {
        let _ = std::fs::remove_file(&new);
    })?;
    output.commit()?;
    Ok(finalized)
}

/// Where the new file is before it was compared.
fn unverified_path(partial: &Path) -> PathBuf {
    let mut name = partial.file_name().unwrap_or_default().to_owned();
    name.push(".unverified");
    partial.with_file_name(name)
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
