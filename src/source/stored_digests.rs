//! Verifies a native HDF5 file by the digests that it stores of its own content.
//! docs/reference/layout.md, "Digests".

use std::ops::Range;

use rayon::prelude::*;

use super::digest::{CellDigest, ColumnDigest, digest_column, keywords_hash};
use super::{Content, Source};
use crate::error::{ErrorKind, Result, column_context as place};
use crate::native::{MAIN_TABLE, StoredDigests};
use crate::progress::Progress;

/// Skips a column of a single dataset for which `is_known`: the caller must verify that.
pub(crate) fn changed_columns(
    source: &Source,
    is_known: &(dyn Fn(&str) -> bool + Sync),
    progress: &dyn Progress,
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for table in source.tables() {
        let content = table.content()?;
        let Some(stored) = content.stored_digests()? else { continue };
        let wanted = |index: usize| !content.only_dataset(index).is_some_and(|dataset| is_known(&dataset));
        for change in changes(content, &stored, &wanted, progress)? {
            let name = match (&change.column, table.name.as_str()) {
                (Some(column), table) => place(table, column).to_string(),
                (None, MAIN_TABLE) => "the main table".to_owned(),
                (None, table) => format!("subtable {table}"),
            };
            let what = change.stored.split(' ').next().unwrap_or_default().trim_end_matches(':');
            names.push(format!("{name} ({what})"));
        }
    }
    Ok(names)
}

/// A difference from the record that a native file keeps of its original content.
pub(crate) struct Change {
    /// `None`: the table itself differs.
    pub(crate) column: Option<String>,
    /// Property and stored value: `rows: 100`.
    pub(crate) stored: String,
    pub(crate) found: String,
}

/// `wanted` tells whether the cells of a column are read.
pub(crate) fn changes(
    content: &Content,
    stored: &StoredDigests,
    wanted: &(dyn Fn(usize) -> bool + Sync),
    progress: &dyn Progress,
) -> Result<Vec<Change>> {
    let kind = stored.kind()?;
    let mut changes = Vec::new();
    let mut compare = |column: Option<&str>, what: &str, stored: Option<String>, found: String| {
        if let Some(stored) = stored.filter(|stored| *stored != found) {
            let column = column.map(str::to_owned);
            changes.push(Change { column, stored: format!("{what}: {stored}"), found: format!("{what}: {found}") });
        }
    };
    compare(None, "rows", stored.rows.map(|rows| rows.to_string()), content.rows().to_string());
    let keywords = keywords_hash(kind, content.keywords(), content);
    compare(None, "keywords", stored.keywords_hash.clone(), keywords.to_string());
    let written = content.written()?;
    if let Some(written) = written {
        compare(None, "info", Some(format!("{:?}", written.info)), format!("{:?}", content.info()));
    }
    let now: Vec<ColumnDigest> = (0..content.columns().len())
        .into_par_iter()
        .map(|index| {
            let cells = if wanted(index) { CellDigest::Wanted(kind) } else { CellDigest::Skipped(kind) };
            digest_column(content, index, cells, progress)
        })
        .collect();
    progress.go_on()?;
    let then = stored.columns()?;
    for (index, column) in now.iter().enumerate() {
        let Some((_, stored)) = then.iter().find(|(name, _)| *name == column.name) else {
            compare(Some(&column.name), "columns", Some("no such column".to_owned()), "a column".to_owned());
            continue;
        };
        compare(Some(&column.name), "keywords", stored.keywords_hash.clone(), column.keywords_hash.to_string());
        if let Some(comment) = written.and_then(|written| written.comments.get(index)) {
            let found = content.columns()[index].desc.comment.to_string();
            compare(Some(&column.name), "comment", Some(comment.to_string()), found);
        }
        let found = match &column.hash {
            Ok(hash) => hash.to_string(),
            Err(error) if error.kind() == ErrorKind::Usage => continue,
            // not damage: elements in other files are not read, and a disk or server that fails may
            // answer later
            Err(error) if error.leads_elsewhere() || error.kind() == ErrorKind::Io => return Err(error.clone()),
            Err(error) => error.to_string(),
        };
        let damaged = stored.hash.as_ref().is_some_and(|stored| *stored != found);
        let rows = stored.marks.as_ref().filter(|_| damaged);
        let rows = rows.and_then(|marks| column.first_difference(marks, content.rows()));
        let found = rows.map_or(found.clone(), |rows| format!("{found}, {}", place_of(content, index, rows)));
        compare(Some(&column.name), "cells", stored.hash.clone(), found);
    }
    for (name, _) in then.iter().filter(|(name, _)| !now.iter().any(|column| column.name == *name)) {
        compare(Some(name), "columns", Some("a column".to_owned()), "no such column".to_owned());
    }
    Ok(changes)
}

/// Rows in which a column begins to differ, and the chunks with these rows if it is one dataset.
fn place_of(content: &Content, index: usize, rows: Range<u64>) -> String {
    let words = match rows.end - rows.start {
        1 => format!("first in row {}", rows.start),
        _ => format!("first in rows {} to {}", rows.start, rows.end.saturating_sub(1)),
    };
    // only an addition to a difference that is reported anyway
    let chunks = content.chunks_of_rows(index, &rows).ok().flatten();
    match chunks {
        Some((path, chunks)) => match (chunks.len(), chunks.iter().map(|chunk| chunk.start).min()) {
            (1, Some(start)) => format!("{words} (dataset {path}: chunk at byte {start})"),
            (count, Some(start)) => {
                let end = chunks.iter().map(|chunk| chunk.end).max().unwrap_or(start);
                format!("{words} (dataset {path}: {count} chunks at bytes {start} to {})", end.saturating_sub(1))
            }
            _ => words,
        },
        None => words,
    }
}
