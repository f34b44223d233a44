//! The tables found at the source of a copy, and the live file that is created for them or resumed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bstr::{BString, ByteSlice};

use super::table::{Followed, LiveColumn};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::live::{ColumnSpec, CommitPolicy, NotFollowed, Reader, Schema, TableSpec, Writer, repair};
use crate::native::{MAIN_TABLE, display_name, is_main};
use crate::output::IfExists;
use crate::progress::CancelToken;
use crate::source::{Source, SourceTable, coordinates};
use crate::table::{Snapshot, TableKind, Watch};
use crate::value::DataType;

/// Pause between two attempts to read a table that is being changed.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Time to repeat a failed read, except for `Unsupported`: a subtable may be just being created.
const DAMAGED_AFTER: Duration = Duration::from_secs(2);

pub(super) struct FoundTables {
    pub(super) tables: Vec<FoundTable>,
    /// Sentences about tables and columns that cannot be copied.
    pub(super) missing: Vec<String>,
}

pub(super) struct FoundTable {
    /// The table of a new live file; only the name for an existing one.
    pub(super) spec: TableSpec,
    /// Columns that a new live file cannot store.
    pub(super) absent: Vec<BString>,
    pub(super) path: PathBuf,
    rows: u64,
    columns: Vec<(BString, DataType)>,
}

impl FoundTables {
    /// `shapes`: whether cell shapes are read, and the `TableSpec` of each table is made.
    pub(super) fn read(source: &Source, shapes: bool) -> Result<Self> {
        let mut found = FoundTables { tables: Vec::new(), missing: Vec::new() };
        for table in source.tables() {
            let name = display_name(&table.name);
            match found.table(source, table, name, shapes) {
                Ok(table) => found.tables.push(table),
                Err(error) if !is_main(name) => found.missing.push(format!("{name}: {error}")),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn table(&mut self, source: &Source, table: &SourceTable, name: &str, shapes: bool) -> Result<FoundTable> {
        let plain = table.content()?.as_table().filter(|table| *table.kind() == TableKind::Plain);
        let (Some(path), Some(plain)) = (&table.path, plain) else {
            return Err(Error::unsupported("only tables that have their own rows are followed"));
        };
        let parent = name.rsplit_once('/').map_or(MAIN_TABLE, |(parent, _)| parent);
        if !is_main(name) && !self.tables.iter().any(|table| table.spec.name == display_name(parent)) {
            return Err(Error::unsupported("the table that it belongs to is not followed"));
        }
        let columns = plain.columns().iter().map(|info| (info.desc.name.clone(), info.data_type())).collect();
        let found =
            FoundTable { spec: TableSpec::new(name), absent: vec![], path: path.clone(), rows: plain.rows(), columns };
        if !shapes {
            return Ok(found);
        }
        let (mut spec, absent) = Followed::declare(name, plain)?;
        spec.is_named = table.is_named;
        if is_main(name) {
            spec.coordinates = coordinates(source);
        }
        self.missing.extend(absent.iter().map(|(column, why)| format!("{name}: column {column}: {why}")));
        Ok(FoundTable { spec, absent: absent.into_iter().map(|(column, _)| column).collect(), ..found })
    }

    /// Whether a live file would have the same tables and columns.
    fn declares_as(&self, other: &FoundTables) -> bool {
        let columns = |column: &ColumnSpec| {
            (column.info.desc.name.clone(), column.info.data_type(), column.cells.clone(), column.info.desc.max_length)
        };
        let tables = |found: &FoundTables| -> Vec<_> {
            let table = |table: &FoundTable| {
                let columns: Vec<_> = table.spec.columns.iter().map(columns).collect();
                (table.spec.name.clone(), columns, table.columns.clone())
            };
            found.tables.iter().map(table).collect()
        };
        tables(self) == tables(other)
    }
}

/// Repeats `read` until no program wrote during it, or two results agree; `Locked` after `timeout`.
pub(super) fn wait(
    watch: &mut Watch,
    timeout: Duration,
    cancel: &CancelToken,
    read: impl Fn() -> Result<FoundTables>,
) -> Result<FoundTables> {
    let start = Instant::now();
    let mut before: Option<FoundTables> = None;
    loop {
        cancel.check()?;
        match watch.snapshot(|_| read()) {
            Ok(Snapshot::Consistent(found)) => return Ok(found),
            Ok(Snapshot::Unconfirmed(Ok(found))) => match before {
                Some(before) if before.declares_as(&found) => return Ok(found),
                _ => before = Some(found),
            },
            Ok(_) => {}
            // a subtable may be in the making, which is not watched yet
            Err(error) if error.kind() == ErrorKind::Unsupported || start.elapsed() >= timeout.min(DAMAGED_AFTER) => {
                return Err(error);
            }
            Err(_) => {}
        }
        if start.elapsed() >= timeout {
            let message = format!("the table is being written to without a pause, for {} s", timeout.as_secs_f64());
            return Err(Error::new(ErrorKind::Locked, message));
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

pub(super) type LiveTables = Vec<(String, Vec<LiveColumn>)>;

/// Creates a live file without rows. Fails with `NotFound` if the main table has no row yet.
pub(super) fn begin(
    source: &Path,
    live: &Path,
    FoundTables { tables: found, missing }: &FoundTables,
    policy: CommitPolicy,
    overwrite: bool,
) -> Result<(Writer, LiveTables)> {
    if found.first().is_none_or(|table| table.rows == 0) {
        return Err(
            Error::not_found("the table has no rows yet, from which shapes are known").context(Context::path(source))
        );
    }
    let if_exists = if overwrite { IfExists::Replace } else { IfExists::Fail };
    let parts = NotFollowed::new(source, missing);
    let schema = found.iter().map(|table| table.spec.clone()).fold(Schema::new(), Schema::table).not_followed(parts);
    let columns =
        |spec: &TableSpec| spec.columns.iter().map(|column| (column.info.clone(), column.cells.clone())).collect();
    let tables = found.iter().map(|table| (table.spec.name.clone(), columns(&table.spec))).collect();
    Ok((schema.if_exists(if_exists).commit(policy).create(live)?, tables))
}

/// Fails with `Exists` if the file, as it was before the tables were `found`, was not made from
/// them.
pub(super) fn resume(
    live: &Path,
    before: Reader,
    found: &[FoundTable],
    policy: CommitPolicy,
) -> Result<(Writer, LiveTables)> {
    let mut tables = Vec::new();
    for table in before.tables() {
        let theirs = found.iter().find(|found| found.spec.name == table.name());
        let theirs = theirs.ok_or_else(|| other(live, format!("has no table {}", table.name())))?;
        if theirs.rows < table.committed_rows() {
            let rows = theirs.rows;
            return Err(other(live, format!("{} has {rows} rows, not {}", table.name(), table.committed_rows())));
        }
        let mut columns = Vec::new();
        for info in table.columns() {
            let name = &info.desc.name;
            if !theirs.columns.contains(&(name.clone(), info.data_type())) {
                return Err(other(live, format!("{} has no such column {name}", table.name())));
            }
            columns.push((info.clone(), table.shapes(&name.to_str_lossy())?));
        }
        tables.push((table.name().to_owned(), columns));
    }
    drop(before);
    Ok((reopen(live, policy)?, tables))
}

fn reopen(live: &Path, policy: CommitPolicy) -> Result<Writer> {
    match Writer::reopen(live, policy) {
        // an earlier `follow` was killed
        Err(error) if matches!(error.kind(), ErrorKind::Locked | ErrorKind::Format) => {
            repair(live)?;
            Writer::reopen(live, policy)
        }
        reopened => reopened,
    }
}

fn other(live: &Path, why: String) -> Error {
    Error::new(ErrorKind::Exists, format!("the live file is of another table: this one {why}"))
        .context(Context::path(live))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ColumnDesc;

    /// Two followers have appended a row each, one before the table was read, one during it.
    #[test]
    fn a_live_file_that_grew_with_its_table_is_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let live = folder.path().join("live.h5");
        let append = |mut writer: Writer| {
            let mut rows = writer.table("MAIN").unwrap().batch(1);
            rows.set("x", [7_i32]).unwrap();
            rows.append().unwrap();
            writer.close().unwrap();
        };
        let main = || TableSpec::new("MAIN").column(ColumnDesc::scalar::<i32>("x"));
        append(Schema::new().table(main()).create(&live).unwrap());
        let found = |rows| FoundTable {
            spec: TableSpec::new("MAIN"),
            absent: vec![],
            path: folder.path().join("my.tab"),
            rows,
            columns: vec![("x".into(), DataType::Int)],
        };
        let before = Reader::open(&live).unwrap();
        append(Writer::reopen(&live, CommitPolicy::manual()).unwrap());
        let (writer, _) = resume(&live, before, &[found(1)], CommitPolicy::manual()).unwrap();
        assert_eq!(writer.committed_rows("MAIN"), 2);
        drop(writer);
        let before = Reader::open(&live).unwrap();
        let error = resume(&live, before, &[found(1)], CommitPolicy::manual()).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
        assert!(error.to_string().contains("MAIN has 1 rows, not 2"), "{error}");
    }
}
