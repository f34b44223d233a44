//! Keeping a live file in step with a table that casacore is still writing. docs/live.md, "Following"; docs/decisions/0004.

mod cells;
mod table;

use std::path::Path;
use std::time::{Duration, Instant};

use bstr::ByteSlice;

pub use self::table::Activity;
use self::table::{Followed, LiveColumn};
use super::{Declaration, Policy, Reader, Sync, TableSpec, Writer, repair};
use crate::convert::Source;
use crate::convert::scales::coordinates;
use crate::error::{Error, ErrorKind, Result};
use crate::table::{Look, OpenOptions, TableKind, Watch};

/// Between two looks at a table whose writer is in the middle of something.
const RETRY: Duration = Duration::from_millis(10);

/// How a table is followed.
#[derive(Debug, Clone, Copy)]
pub struct FollowOptions {
    /// How long to wait for a state of the tables that can be read, at the start.
    pub timeout: Duration,
    /// Whether commits wait for the disk.
    pub sync: Sync,
    /// Start anew, even if there is a live file to go on with.
    pub overwrite: bool,
}

impl Default for FollowOptions {
    /// Waits for a minute, and not for the disk.
    fn default() -> Self {
        FollowOptions { timeout: Duration::from_secs(60), sync: Sync::Never, overwrite: false }
    }
}

/// A live file that follows a table and its subtables.
///
/// ```no_run
/// use ctds_hdf5::live::{Follow, FollowOptions};
///
/// let mut follow = Follow::start("my.ms", "live.h5", FollowOptions::default())?;
/// while follow.is_in_use()? {
///     if !follow.step()?.more {
///         std::thread::sleep(std::time::Duration::from_millis(50));
///     }
/// }
/// follow.finish()?;
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug)]
pub struct Follow {
    writer: Writer,
    tables: Vec<Followed>,
    missing: Vec<String>,
    resumed: bool,
}

impl Follow {
    /// Starts to follow the table in the directory at `source`, or goes on with the live file at `live`.
    ///
    /// The main table must have a row, from which the shapes of its cells are known.
    ///
    /// # Errors
    /// `NotFound` while there is no row; `Locked` if the table is being written to for longer than the time-out, or `live` has
    /// a writer; `Unsupported` if `live` is something else.
    pub fn start(source: impl AsRef<Path>, live: impl AsRef<Path>, options: FollowOptions) -> Result<Self> {
        let (source, live) = (source.as_ref(), live.as_ref());
        let unlocked = OpenOptions { lock_timeout: None };
        let mut watch = Watch::new(source)?;
        let (specs, paths, missing) =
            wait(&mut watch, options.timeout, || declare(&Source::open_with(source, unlocked)?))?;
        let resumed = live.exists() && !options.overwrite;
        let policy = Policy { every: None, rows: None, sync: options.sync };
        let (writer, columns) = match resumed {
            true => resume(live, &specs, policy)?,
            false => begin(source, live, &specs, policy, options.overwrite)?,
        };
        let mut tables = Vec::new();
        for (path, (spec, _)) in paths.iter().zip(&specs) {
            // a table may be newer than the live file
            if let Some((name, columns)) = columns.iter().find(|(name, _)| *name == spec.name) {
                tables.push(Followed::new(path, name, columns, writer.committed_rows(name)?)?);
            }
        }
        Ok(Follow { writer, tables, missing, resumed })
    }

    /// Appends the rows that are new in any table, and commits them; rewrites old cells that have changed.
    ///
    /// # Errors
    /// Those of reading the tables when nobody writes to them, and of [`Writer::commit`]; `Unsupported` if rows or
    /// columns were removed.
    pub fn step(&mut self) -> Result<Activity> {
        let mut all = Activity::default();
        for table in &mut self.tables {
            let one = table.step(&mut self.writer)?;
            all.rows += one.rows;
            all.rewritten += one.rewritten;
            all.more |= one.more;
        }
        if all.rows > 0 {
            self.writer.commit()?;
        }
        Ok(all)
    }

    /// Whether another program has one of the tables open.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_in_use(&self) -> Result<bool> {
        for table in &self.tables {
            if table.is_in_use()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a live file was there to go on with.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Rows of each table that readers see.
    pub fn committed_rows(&self) -> Vec<(String, u64)> {
        let rows = |table: &Followed| (table.name.clone(), self.writer.committed_rows(&table.name).unwrap_or_default());
        self.tables.iter().map(rows).collect()
    }

    /// What is not in the live file, in sentences: columns that it cannot have, cells it had no room for, news that came
    /// too late. `finalize` takes them from the table.
    pub fn notes(&self) -> Vec<String> {
        let counted = |table: &Followed| {
            let name = table.name.clone();
            let note = move |(note, count): (&String, &u64)| match count {
                1 => format!("{name}: {note}"),
                count => format!("{name}: {note} ({count} times)"),
            };
            table.notes.iter().map(note).collect::<Vec<_>>()
        };
        let warnings = self.writer.warnings().iter().chain(&self.missing).cloned();
        warnings.chain(self.tables.iter().flat_map(counted)).collect()
    }

    /// Takes what is left, as far as the tables can be read now, and closes the live file.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn finish(mut self) -> Result<Vec<(String, u64)>> {
        let start = Instant::now();
        while self.step()?.more && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(RETRY);
        }
        if self.tables.iter().any(Followed::has_suspects) {
            tracing::warn!("old rows that may have been written again were not all compared");
        }
        let rows = self.committed_rows();
        self.writer.close()?;
        Ok(rows)
    }
}

type Declared = (Vec<(TableSpec, u64)>, Vec<std::path::PathBuf>, Vec<String>);

/// What the live file is to have: each table and the rows it has, where it lies; and what is left out.
fn declare(source: &Source) -> Result<Declared> {
    let (mut specs, mut paths, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for table in source.tables() {
        let name = if table.name == "." { "MAIN" } else { &table.name };
        let content = match table.content() {
            Ok(content) => content,
            Err(error) => {
                missing.push(format!("{name}: {error}"));
                continue;
            }
        };
        let (Some(path), Some(plain)) = (&table.path, content.as_table().filter(|t| *t.kind() == TableKind::Plain))
        else {
            missing.push(format!("{name}: only tables that have their own rows are followed"));
            continue;
        };
        let parent = table.name.rsplit_once('/').map_or("MAIN", |(parent, _)| parent);
        if name != "MAIN" && !specs.iter().any(|(spec, _): &(TableSpec, u64)| spec.name == parent) {
            missing.push(format!("{name}: the table that it belongs to is not followed"));
            continue;
        }
        let (mut spec, left_out) = Followed::declare(name, plain, name)?;
        missing.extend(left_out);
        if name == "MAIN" {
            spec.coordinates = coordinates(source);
        }
        specs.push((spec, plain.rows()));
        paths.push(path.clone());
    }
    Ok((specs, paths, missing))
}

/// The result of `read` when nobody writes to the table meanwhile.
fn wait<T>(watch: &mut Watch, timeout: Duration, read: impl Fn() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Look::Sure(value) = watch.look(|_| read())? {
            return Ok(value);
        }
        if start.elapsed() >= timeout {
            let message = format!("the table is being written to without a pause, for {} s", timeout.as_secs_f64());
            return Err(Error::new(ErrorKind::Locked, message));
        }
        std::thread::sleep(RETRY);
    }
}

/// The columns of each table of a live file.
type LiveTables = Vec<(String, Vec<LiveColumn>)>;

/// Makes a live file.
fn begin(
    source: &Path,
    live: &Path,
    specs: &[(TableSpec, u64)],
    policy: Policy,
    overwrite: bool,
) -> Result<(Writer, LiveTables)> {
    if specs.first().is_none_or(|(_, rows)| *rows == 0) {
        return Err(Error::not_found("the table has no rows yet, from which shapes are known").at(source.display()));
    }
    let mut declaration = specs.iter().map(|(spec, _)| spec.clone()).fold(Declaration::new(), Declaration::table);
    if overwrite {
        declaration = declaration.overwrite();
    }
    let columns =
        |spec: &TableSpec| spec.columns.iter().map(|column| (column.info.clone(), column.cells.clone())).collect();
    let tables = specs.iter().map(|(spec, _)| (spec.name.clone(), columns(spec))).collect();
    Ok((declaration.go_live(live, policy)?, tables))
}

/// Goes on with a live file, if it is of this table.
fn resume(live: &Path, specs: &[(TableSpec, u64)], policy: Policy) -> Result<(Writer, LiveTables)> {
    let reader = Reader::open(live)?;
    let mut tables = Vec::new();
    for table in reader.tables() {
        let spec = specs.iter().find(|(spec, _)| spec.name == table.name());
        let (spec, rows) = spec.ok_or_else(|| other(live, format!("has no table {}", table.name())))?;
        if *rows < table.committed_rows() {
            return Err(other(live, format!("{} has {rows} rows, not {}", table.name(), table.committed_rows())));
        }
        let mut columns = Vec::new();
        for info in table.columns() {
            let same = |column: &super::ColumnSpec| {
                column.info.desc.name == info.desc.name && column.info.data_type() == info.data_type()
            };
            if !spec.columns.iter().any(same) {
                return Err(other(live, format!("{} has no such column {}", table.name(), info.desc.name)));
            }
            columns.push((info.clone(), table.shapes(&info.desc.name.to_str_lossy())?));
        }
        tables.push((table.name().to_owned(), columns));
    }
    drop(reader);
    let writer = match Writer::reopen(live, policy) {
        // whoever followed before was killed
        Err(error) if matches!(error.kind(), ErrorKind::Locked | ErrorKind::Format) => {
            repair(live)?;
            Writer::reopen(live, policy)?
        }
        reopened => reopened?,
    };
    Ok((writer, tables))
}

fn other(live: &Path, why: String) -> Error {
    Error::new(ErrorKind::Exists, format!("the live file is of another table: this one {why}")).at(live.display())
}
