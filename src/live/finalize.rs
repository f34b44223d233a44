//! From a live file to one for the archive.

use std::path::Path;

use super::lock::WriterLock;
use crate::convert::{Options, Plan, ToHdf5Summary, to_hdf5};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::output::Output;
use crate::progress::Progress;
use crate::source::{Comparison, Source, verify_with};
use crate::table::ColumnInfo;

/// What [`finalize`] has written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finalized {
    /// Summary of the conversion.
    pub summary: ToHdf5Summary,
    /// The comparison of the source with the new file, which found no differences.
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
/// `Locked` while a writer has the live file; `Usage` if `source` has not all tables, rows and columns of it; `Exists` without `overwrite`; `Format` if the comparison finds a
/// difference; `Interrupted` if `progress` says so; those of [`to_hdf5`].
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
    let own = Source::open(live)?;
    if let Some(source) = source {
        check_source(&own, source).with_context(|| Context::path(live))?;
    }
    let source = source.unwrap_or(&own);
    let plan = Plan::new(source, options)?;
    let output = Output::create(target, overwrite || same_file(live, target), 0)?;
    let summary = to_hdf5(source, &plan, options, output.partial(), true, progress)?;
    let comparison = verify_with(source, &Source::open(output.partial())?, progress)?;
    if let Some(difference) = comparison.differences.first() {
        let message = format!("what was written differs, first in table {}", difference.table);
        return Err(Error::new(ErrorKind::Format, message).context(Context::path(target)));
    }
    output.commit()?;
    Ok(Finalized { summary, comparison })
}

/// Whether the source has all that the live file has, as far as numbers and names tell.
fn check_source(live: &Source, source: &Source) -> Result<()> {
    for table in live.tables() {
        let wrong = |what: String| Err(Error::usage(format!("the source {what}: it was not followed")));
        let Some(theirs) = source.tables().iter().find(|theirs| theirs.name == table.name) else {
            return wrong(format!("has no table {}", table.name));
        };
        let (ours, rows) = (table.content()?.rows(), theirs.content()?.rows());
        if rows < ours {
            return wrong(format!("has {rows} rows in table {}, the live file {ours}", table.name));
        }
        let theirs = theirs.columns()?;
        let is_missing = |ours: &&ColumnInfo| !theirs.iter().any(|theirs| theirs.desc.name == ours.desc.name);
        if let Some(column) = table.columns()?.iter().find(is_missing) {
            return wrong(format!("has no column {} in table {}", column.desc.name, table.name));
        }
    }
    Ok(())
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
