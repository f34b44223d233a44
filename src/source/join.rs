//! Opens several native HDF5 files as one source: the rows of their main tables, file after file,
//! make its main table.

use std::ops::Range;
use std::path::PathBuf;

use bstr::ByteSlice;

use super::compare::compare_beside_main;
use super::joined::{Joined, JoinedPart};
use super::tables::{Source, SourceTable};
use crate::error::{Context, Error, Result, ResultExt, column_context};
use crate::native::{MAIN_TABLE, table_path};
use crate::progress::Progress;
use crate::table::{ColumnInfo, OpenOptions};

/// HDF5 opens each file when a virtual dataset is read, and a process may have 1024 open.
pub(crate) const MAX_PARTS: usize = 512;

pub(crate) struct PartFile {
    pub(crate) path: PathBuf,
    /// Relative to the directory of the joined file.
    pub(crate) relative: String,
}

impl Source {
    /// Subtables are those of the first file, and must be equal in the others. `Usage` if the files
    /// are not parts of one table, or not in order.
    pub(crate) fn join(parts: &[PartFile], options: OpenOptions, progress: &dyn Progress) -> Result<Self> {
        if parts.len() > MAX_PARTS {
            let message = format!(
                "{} parts are too many, {MAX_PARTS} can be joined: HDF5 opens all of them to read one dataset; make fewer and larger parts",
                parts.len()
            );
            return Err(Error::usage(message));
        }
        let mut joined: Option<Source> = None;
        let mut contents: Vec<JoinedPart> = Vec::new();
        for part in parts {
            progress.go_on()?;
            let mut source = Source::open_with(&part.path, options)?;
            let place = Context::path(&part.path);
            check_part(&source).context(&place)?;
            if let Some(first) = &joined {
                let (found, other) = (compare_beside_main(first, &source, progress)?, &parts[0].path);
                if let Some(difference) = found.differences.first() {
                    let (left, right) = (&difference.left, &difference.right);
                    let table = match &difference.column {
                        Some(column) => column_context(&difference.table, column),
                        None => Context::table(&difference.table),
                    };
                    let row = difference.row.map_or(String::new(), |row| format!(" in row {row}"));
                    let message = format!(
                        "{table} differs from that of {}: {right}{row}, {left} is expected; parts of one table have the same subtables",
                        other.display()
                    );
                    return Err(Error::usage(message).context(&place));
                }
            }
            let table = source.tables.remove(0);
            let content = table.content?;
            let start = contents.last().map_or(0, |last| last.start + last.rows);
            let rows = content.rows();
            let file = part.relative.clone();
            let part = JoinedPart { content, file, start, rows };
            match contents.first() {
                Some(first) => check_follows(first, contents.last().unwrap_or(first), &part).context(&place)?,
                None => {
                    // subtables keep the first file open
                    joined = Some(source);
                }
            }
            contents.push(part);
        }
        let mut source = joined.ok_or_else(|| Error::usage("no part is named"))?;
        let main = SourceTable {
            name: MAIN_TABLE.into(),
            parent: None,
            is_named: true,
            path: None,
            group: Some(table_path(MAIN_TABLE)),
            content: Ok(Joined::of(contents)),
        };
        source.tables.insert(0, main);
        Ok(source)
    }

    /// First and last row of each part, as ranges of one row; empty unless joined.
    pub(crate) fn edges_of_parts(&self) -> Vec<Range<u64>> {
        let main = self.tables.first().and_then(|table| table.content.as_ref().ok());
        main.map_or_else(Vec::new, |content| content.edges_of_parts())
    }
}

/// Fails unless the source is a native file without left out parts or unreadable columns.
fn check_part(source: &Source) -> Result<()> {
    let none = || Error::not_found(source.no_table_named(MAIN_TABLE));
    let main = source.tables.first().ok_or_else(none)?;
    if main.content()?.as_native().is_none() {
        return Err(Error::usage("not a native HDF5 file: parts are what `to-hdf5` writes, convert it first"));
    }
    if let Some(damage) = source.damage.first() {
        return Err(Error::usage(format!("damage was left out of the part: {damage}")));
    }
    for table in &source.tables {
        for (index, column) in table.columns()?.iter().enumerate() {
            if let Some(error) = table.unreadable(index) {
                return Err(error.context(Context::column(column.desc.name.to_str_lossy())));
            }
        }
    }
    Ok(())
}

/// Fails if `part` has other columns than `first`, or its rows do not follow those of `previous`,
/// as far as row numbers are recorded and unless `part` and `first` both begin with row 0.
fn check_follows(first: &JoinedPart, previous: &JoinedPart, part: &JoinedPart) -> Result<()> {
    let describe = |info: &ColumnInfo| format!("{} {} {:?}", info.desc.name, info.data_type(), info.desc.kind);
    let (expected, found) = (first.content.columns(), part.content.columns());
    let differ = expected.iter().zip(found).find(|(a, b)| describe(a) != describe(b));
    if let Some((a, b)) = differ {
        let message = format!("the column {} where {} has {}", describe(b), first.file, describe(a));
        return Err(Error::usage(message));
    }
    if expected.len() != found.len() {
        let (a, b) = (expected.len(), found.len());
        return Err(Error::usage(format!("{b} columns where {} has {a}", first.file)));
    }
    let numbers = |part: &JoinedPart| part.content.first_row();
    let (Some(before), Some(now)) = (numbers(previous)?, numbers(part)?) else { return Ok(()) };
    // tables that are independent all begin with row 0
    if now == 0 && numbers(first)? == Some(0) {
        return Ok(());
    }
    let expected = before.saturating_add(previous.rows as i64);
    if now != expected {
        let message = format!(
            "the part begins with row {now} of the table it was made of, row {expected} is expected after {}: parts are missing or not in order",
            previous.file
        );
        return Err(Error::usage(message));
    }
    Ok(())
}
