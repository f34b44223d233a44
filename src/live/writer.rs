//! Appending rows. The order in which they become visible is written here, once: [`Writer::commit`].

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use super::block::Block;
use super::declare::TableSpec;
use super::layout::{self, TableLayout};
use super::lock::WriterLock;
use super::table::{Stream, Table, Updated};
use super::{create, lock};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::h5::{self, LiveFile};
use crate::output::Output;

/// Bytes of rows that wait to be written, in all columns together, and in one at most.
const WAITING_BYTES: usize = 64 << 20;
const WAITING_BYTES_OF_COLUMN: usize = 1 << 20;

/// When rows become visible, and when they are safe from a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// [`Writer::append`] commits when the last commit is this long ago.
    pub every: Option<Duration>,
    /// [`Writer::append`] commits when so many rows, of all tables together, are not yet committed.
    pub rows: Option<u64>,
    /// Whether commits wait for the disk.
    pub sync: Sync,
}

impl Default for Policy {
    /// A commit each second, safe from the end of the program but not from a power cut.
    fn default() -> Self {
        Policy { every: Some(Duration::from_secs(1)), rows: None, sync: Sync::Never }
    }
}

/// Whether commits wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// What is committed is with the operating system, which writes it when it likes. Other processes see it, and it
    /// survives the end of this one, but not a power cut.
    Never,
    /// What is committed is on the disk, the rows before the number that counts them.
    Commit,
}

/// Tables to be written live, before anybody can read them.
///
/// [`go_live`](Self::go_live) makes a [`Writer`] of it, which can append rows but create, attach or delete nothing: readers
/// would stumble over that, and libhdf5 does not refuse it.
#[derive(Debug, Default)]
pub struct Declaration {
    tables: Vec<TableSpec>,
    overwrite: bool,
}

impl Declaration {
    /// No tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table; parents come before children.
    #[must_use]
    pub fn table(mut self, table: TableSpec) -> Self {
        self.tables.push(table);
        self
    }

    /// Replaces a file that is there.
    #[must_use]
    pub fn overwrite(mut self) -> Self {
        self.overwrite = true;
        self
    }

    /// Creates the file at `path`, where it appears when all of it is there but the rows.
    ///
    /// # Errors
    /// `Exists`, `Locked` if another writer has it, `Usage` if what is declared cannot be.
    pub fn go_live(self, path: impl AsRef<Path>, policy: Policy) -> Result<Writer> {
        let path = path.as_ref();
        let lock = WriterLock::take(path)?;
        let output = Output::create(path, self.overwrite, 0)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (layout, file) = create::create(output.partial(), &name, &self.tables)
            .and_then(|file| Ok((layout::read(&file.root()?)?, file)))
            .with_context(|| Context::path(&path))?;
        let mut writer = Writer::new(file.go_live()?, output.partial(), &layout, policy, lock)?;
        for table in &mut writer.tables {
            table.committed_rows.append(&0u64.to_le_bytes())?;
        }
        writer.file()?.flush()?;
        output.commit()?;
        if let Some(file) = &mut writer.file {
            file.renamed(path);
        }
        Ok(writer)
    }
}

/// Appends rows to tables that others read at the same time.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("live.h5");
/// use ctds_hdf5::live::{ColumnSpec, Declaration, Policy, TableSpec};
/// use ctds_hdf5::value::DataType;
///
/// let main = TableSpec::new("MAIN")
///     .column(ColumnSpec::new("TIME", DataType::Double).unit("s"))
///     .column(ColumnSpec::new("WEIGHT", DataType::Float).cell([4]).axes(["corr"]));
/// let mut writer = Declaration::new().table(main).go_live(&path, Policy::default())?;
/// let weights = ndarray::Array2::<f32>::ones((3, 4));
/// writer.append("MAIN", 3, &[("TIME", (&[5e9, 5e9, 5e9][..]).into()), ("WEIGHT", weights.view().into())])?;
/// writer.commit()?;
/// assert_eq!(writer.committed_rows("MAIN")?, 3);
/// writer.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    /// `None` after a failure: what is in the file is no longer known, but for what is committed.
    file: Option<LiveFile>,
    tables: Vec<Table>,
    policy: Policy,
    last_commit: Instant,
    /// Whether cells were written anew since.
    rewritten: bool,
    /// For `fsync`.
    descriptor: File,
    warnings: Vec<String>,
    /// Last, so that it is given back when the file is closed.
    lock: Option<WriterLock>,
}

impl Writer {
    /// Opens a live file that its writer has closed, or that was repaired, to append more rows.
    ///
    /// # Errors
    /// `Locked` if a writer has it, or did not close it: `repair` brings that in order. `Unsupported` if it is no live
    /// file.
    pub fn reopen(path: impl AsRef<Path>, policy: Policy) -> Result<Self> {
        let path = path.as_ref();
        let lock = WriterLock::take(path)?;
        let layout = {
            let file = h5::File::open(path)?;
            layout::read(&file.root()?).with_context(|| Context::path(&path))?
        };
        let writer = Writer::new(LiveFile::open(path)?, path, &layout, policy, lock)?;
        for table in &writer.tables {
            table.check_extents().with_context(|| Context::table(&table.name)).with_context(|| Context::path(&path))?;
        }
        Ok(writer)
    }

    fn new(file: LiveFile, path: &Path, layout: &[TableLayout], policy: Policy, lock: WriterLock) -> Result<Self> {
        let tables = layout.iter().map(|table| Table::open(&file, table)).collect::<Result<_>>()?;
        let descriptor = File::open(path).with_context(|| Context::path(&path))?;
        let warnings = lock::network_file_system(path).into_iter().collect();
        Ok(Writer {
            file: Some(file),
            tables,
            policy,
            last_commit: Instant::now(),
            rewritten: false,
            descriptor,
            warnings,
            lock: Some(lock),
        })
    }

    /// What the user should know: the file is on a network file system.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The names of the tables: `MAIN`, `ANTENNA`, `A/B`.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    /// Rows of a table, with those that are not yet committed.
    ///
    /// # Errors
    /// `Usage` if there is no such table.
    pub fn rows(&self, table: &str) -> Result<u64> {
        Ok(self.table(table)?.rows)
    }

    /// Rows of a table that readers see.
    ///
    /// # Errors
    /// `Usage` if there is no such table.
    pub fn committed_rows(&self, table: &str) -> Result<u64> {
        Ok(self.table(table)?.committed)
    }

    fn table(&self, name: &str) -> Result<&Table> {
        let found = self.tables.iter().find(|table| table.name == name);
        found.ok_or_else(|| Error::usage(format!("there is no table {name}")))
    }

    fn table_mut(&mut self, name: &str) -> Result<&mut Table> {
        let found = self.tables.iter_mut().find(|table| table.name == name);
        found.ok_or_else(|| Error::usage(format!("there is no table {name}")))
    }

    fn file(&self) -> Result<&LiveFile> {
        self.file.as_ref().ok_or_else(|| Error::new(ErrorKind::Io, "the file cannot be written since an earlier error"))
    }

    /// After an error of writing nothing more is written, so that what is committed stays as it is.
    fn guard<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err()
            && let Some(file) = self.file.take()
            && file.close().is_err()
        {
            // libhdf5 has it open until the program ends
            std::mem::forget(self.lock.take());
        }
        result
    }

    /// Appends rows to a table: one block for each of its columns. Commits if the [`Policy`] says so.
    ///
    /// # Errors
    /// `Usage` if the blocks do not fit, and nothing is written; `NoSpace` or `Io`, after which the writer can only be
    /// closed: what is committed stays readable, what is not is lost.
    pub fn append(&mut self, table: &str, rows: u64, blocks: &[(&str, Block<'_>)]) -> Result<()> {
        self.file()?;
        let streams: usize = self.tables.iter().map(Table::datasets).sum();
        let most_waiting = (WAITING_BYTES / streams.max(1)).min(WAITING_BYTES_OF_COLUMN);
        let found = self.table_mut(table)?;
        let cells = found.check(rows, blocks).with_context(|| Context::table(table))?;
        let appended = found.append(rows, &cells, most_waiting).with_context(|| Context::table(table));
        self.guard(appended)?;
        self.commit_if_due()
    }

    /// Writes cells of rows that were appended before anew, in their place. Those who read them meanwhile may see some of
    /// the old and some of the new; the next commit makes them as durable as new rows.
    ///
    /// # Errors
    /// As [`append`](Self::append); `Unsupported` if a cell would get another shape.
    pub fn rewrite(&mut self, table: &str, column: &str, first_row: u64, rows: u64, block: &Block<'_>) -> Result<()> {
        self.file()?;
        let place = [Context::column(column), Context::table(table)];
        let found = self.table_mut(table)?;
        if first_row.checked_add(rows).is_none_or(|end| end > found.rows) {
            let message = format!("rows {first_row} to {}, of {}", first_row.saturating_add(rows), found.rows);
            return Err(Error::usage(message)).in_contexts(&place);
        }
        let column = found.column(column)?;
        let cells = column.check(block, rows).in_contexts(&place)?;
        match column.rewrite(first_row, &cells).in_contexts(&place) {
            // nothing was written
            Err(error) if error.kind() == ErrorKind::Unsupported => Err(error),
            written => {
                self.rewritten = true;
                self.guard(written)
            }
        }
    }

    /// Writes cells of rows that were appended before anew where they differ from what is there. Cells that have another
    /// shape now stay as they were.
    pub(super) fn update(
        &mut self,
        table: &str,
        column: &str,
        first_row: u64,
        rows: u64,
        block: &Block<'_>,
    ) -> Result<Updated> {
        self.file()?;
        let place = [Context::column(column), Context::table(table)];
        let found = self.table_mut(table)?.column(column)?;
        let cells = found.check(block, rows).in_contexts(&place)?;
        let updated = found.update(first_row, rows, &cells).in_contexts(&place);
        let updated = self.guard(updated)?;
        self.rewritten |= updated.written;
        Ok(updated)
    }

    /// Commits if the [`Policy`] says that it is time; for those who have nothing to append at the moment.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_if_due(&mut self) -> Result<()> {
        let waiting: u64 = self.tables.iter().map(|table| table.rows - table.committed).sum();
        let late = self.policy.every.is_some_and(|every| self.last_commit.elapsed() >= every);
        let many = self.policy.rows.is_some_and(|rows| waiting >= rows);
        if waiting > 0 && (late || many) || self.rewritten && late { self.commit() } else { Ok(()) }
    }

    /// Lets readers see all rows that were appended: when it returns, the rows that [`committed_rows`](Self::committed_rows)
    /// gives are whole for everybody who reads that number first.
    ///
    /// # Errors
    /// `NoSpace` or `Io`, after which the writer can only be closed.
    pub fn commit(&mut self) -> Result<()> {
        let committed = self.commit_in_order();
        self.guard(committed)
    }

    fn commit_in_order(&mut self) -> Result<()> {
        self.file()?;
        self.last_commit = Instant::now();
        self.rewritten = false;
        let changed = |table: &&mut Table| table.rows > table.committed;
        // the cells of every column
        for table in self.tables.iter_mut().filter(changed) {
            let drained = table.streams().try_for_each(Stream::drain);
            drained.with_context(|| Context::table(&table.name))?;
        }
        // and all that leads to them
        self.file()?.flush()?;
        self.sync()?;
        // only then the number of rows
        for table in self.tables.iter_mut().filter(changed) {
            table.committed_rows.write(0, &table.rows.to_le_bytes())?;
            table.committed_rows.flush()?;
            table.committed = table.rows;
        }
        self.sync()
    }

    fn sync(&self) -> Result<()> {
        match self.policy.sync {
            Sync::Never => Ok(()),
            Sync::Commit => Ok(self.descriptor.sync_data()?),
        }
    }

    /// Commits, closes the file and gives back the lock. A file that is dropped instead is closed as well, but what is not
    /// committed is lost.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn close(mut self) -> Result<()> {
        self.commit()?;
        let Some(file) = self.file.take() else { return Ok(()) };
        self.tables.clear();
        let closed = file.close();
        if closed.is_err() {
            std::mem::forget(self.lock.take());
        }
        closed?;
        self.sync()
    }
}
