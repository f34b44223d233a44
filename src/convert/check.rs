//! Checks a native HDF5 file against its stored digests. docs/reference/layout.md, "Digests".

use std::path::Path;

use super::exact::{ChangedFile, changed_files};
use crate::error::{Context, Error, ErrorKind, Result, column_context as place};
use crate::progress::Progress;
use crate::source::stored_digests::changes;
use crate::source::{Comparison, Source};
use crate::table::OpenOptions;

/// Damage in the elements of a column is a difference; `Usage` if the file has no digests.
pub(crate) fn check(path: &Path, options: OpenOptions, progress: &dyn Progress) -> Result<Comparison> {
    let source = Source::open_with(path, options)?;
    source.blame_server(check_source(&source, path, progress))
}

fn check_source(source: &Source, path: &Path, progress: &dyn Progress) -> Result<Comparison> {
    let mut all = Comparison { damage: source.damage().to_vec(), ..Comparison::default() };
    let mut has_digests = false;
    for table in source.tables() {
        let content = match table.content() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                all.differ(&table.name, None, "a table".to_owned(), format!("no such table: {error}"));
                continue;
            }
            content => content?,
        };
        let Some(stored) = content.stored_digests()? else {
            all.skipped.push(format!("table {}, which has no digests", table.name));
            continue;
        };
        has_digests = true;
        all.tables += 1;
        for change in changes(content, &stored, &|_| true, progress)? {
            all.differ(&table.name, change.column.as_deref(), change.stored, change.found);
        }
        for (name, column) in stored.columns()? {
            match column.hash {
                Some(_) => all.columns += 1,
                None => all.skipped.push(format!("{}, which has no digest", place(&table.name, name))),
            }
            let is_compared = column.hash.is_some() && content.columns().iter().any(|info| info.desc.name == name);
            all.cells = all.cells.saturating_add(if is_compared { content.rows() } else { 0 });
        }
    }
    for change in source.set_changes()? {
        all.differ(&change.path, None, "what the tables give", change.found());
    }
    let has_digests = has_digests || !all.differences.is_empty();
    if !has_digests && path.is_dir() {
        let message = "a table directory, which has no digests of its own: name a second source to compare it with";
        return Err(Error::usage(message).context(Context::path(path)));
    }
    let (files, changed) = changed_files(path, progress)?;
    if !has_digests && files == 0 {
        return Err(Error::usage("it has no digests of its own: give it another source to compare with")
            .context(Context::path(path)));
    }
    all.files = files;
    for ChangedFile { name, stored, found } in changed {
        let kind = stored.kind();
        let found = found.map_or_else(|error| error.to_string(), |hash| format!("{kind} {hash}"));
        all.differ(&format!("file {name}"), None, format!("{kind} {stored}"), found);
    }
    Ok(all)
}
