//! Appends rows to live files and commits them: writes the cells first and then the number of
//! committed rows, so that readers that keep to this number never see incomplete rows.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use super::block::Block;
use super::commit_policy::{CommitPolicy, Durability};
use super::layout::{self, TableLayout};
use super::table::{Checked, Stream, Table, Updated};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::h5::{self, LiveFile};
use crate::output::{WriterLock, network_file_system};

/// Bytes of appended rows in memory, approximately, in all datasets together.
const WAITING_BYTES: usize = 64 << 20;
/// Bytes of appended rows in memory for each dataset.
const WAITING_BYTES_OF_COLUMN: usize = 1 << 20;

/// Appends rows to the tables of a live file: an HDF5 file that other processes read at the same
/// time.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("live.h5");
/// use ctds_hdf5::ColumnDesc;
/// use ctds_hdf5::live::{ColumnSpec, Schema, TableSpec};
///
/// let main = TableSpec::new("MAIN")
///     .column(ColumnDesc::scalar::<f64>("TIME").unit("s"))
///     .column(ColumnSpec::from(ColumnDesc::array::<f32>("WEIGHT").fixed_shape([4])).axes(["corr"]));
/// let mut writer = Schema::new().table(main).create(&path)?;
///
/// let mut rows = writer.table("MAIN")?.batch(3);
/// rows.set("TIME", [5e9, 5e9, 5e9])?.set("WEIGHT", ndarray::Array2::<f32>::ones((3, 4)))?;
/// rows.append()?;
/// writer.commit()?;
/// assert_eq!(writer.table("MAIN")?.committed_rows(), 3);
/// writer.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    /// `None` after a failed write, when only committed rows are known to be right.
    file: Option<LiveFile>,
    tables: Vec<Table>,
    policy: CommitPolicy,
    last_commit: Instant,
    rewritten: bool,
    /// A second descriptor of the file, for `fdatasync`.
    descriptor: File,
    warnings: Vec<String>,
    /// The last field, so that the lock is released after the file is closed.
    lock: Option<WriterLock>,
}

impl Writer {
    /// Opens a live file, an HDF5 file to which rows are appended while others read it, to append
    /// more rows. Its earlier writer must have closed it, or [`repair`](fn@super::repair) recovered
    /// it.
    ///
    /// # Errors
    /// `Locked` if a writer has it open, or exited without closing it ([`repair`](fn@super::repair)
    /// recovers the file). `Unsupported` if it is not a live file.
    pub fn reopen(path: impl AsRef<Path>, policy: CommitPolicy) -> Result<Self> {
        let path = path.as_ref();
        let lock = WriterLock::take(path)?;
        let layout = {
            let file = h5::File::open(path)?;
            layout::read(&file.root()?).with_context(|| Context::path(path))?
        };
        let writer = Writer::new(LiveFile::open(path)?, path, &layout, policy, lock)?;
        for table in &writer.tables {
            table.check_extents().with_context(|| Context::table(&table.name)).with_context(|| Context::path(path))?;
        }
        Ok(writer)
    }

    pub(super) fn new(
        file: LiveFile,
        path: &Path,
        layout: &[TableLayout],
        policy: CommitPolicy,
        lock: WriterLock,
    ) -> Result<Self> {
        let tables = layout.iter().map(|table| Table::open(&file, table)).collect::<Result<_>>()?;
        let descriptor = File::open(path).with_context(|| Context::path(path))?;
        let warnings = network_file_system(path).into_iter().collect();
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

    /// Warnings for the user, such as that the file is on a network file system.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Names of the tables in the live file (HDF5 that is read while it is written): `MAIN`,
    /// `ANTENNA`, `A/B`.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }

    pub(super) fn number_of(&self, name: &str) -> Result<usize> {
        let found = self.tables.iter().position(|table| table.name == name);
        found.ok_or_else(|| Error::usage(format!("table {name} does not exist")))
    }

    pub(super) fn numbered(&self, number: usize) -> &Table {
        &self.tables[number]
    }

    pub(super) fn numbered_mut(&mut self, number: usize) -> &mut Table {
        &mut self.tables[number]
    }

    pub(super) fn rows(&mut self, table: &str) -> Result<u64> {
        Ok(self.table_mut(table)?.rows)
    }

    /// 0 for a table that does not exist.
    pub(super) fn committed_rows(&self, table: &str) -> u64 {
        self.tables.iter().find(|known| known.name == table).map_or(0, |table| table.committed)
    }

    fn table_mut(&mut self, name: &str) -> Result<&mut Table> {
        let number = self.number_of(name)?;
        Ok(&mut self.tables[number])
    }

    /// Writes 0 as the number of committed rows of each table.
    pub(super) fn begin(&mut self) -> Result<()> {
        for table in &mut self.tables {
            table.committed_rows.append(&0u64.to_le_bytes())?;
        }
        self.file()?.flush()
    }

    pub(super) fn renamed(&mut self, path: &Path) {
        if let Some(file) = &mut self.file {
            file.renamed(path);
        }
    }

    pub(super) fn file(&self) -> Result<&LiveFile> {
        self.file.as_ref().ok_or_else(|| Error::new(ErrorKind::Io, "the file cannot be written since an earlier error"))
    }

    /// Closes the file after a failed write, so that the committed rows stay unchanged.
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

    /// One checked block for each column; commits if the policy says so.
    pub(super) fn append(&mut self, table: usize, rows: u64, cells: &[Checked<'_>]) -> Result<()> {
        self.file()?;
        let streams: usize = self.tables.iter().map(Table::datasets).sum();
        let most_waiting = (WAITING_BYTES / streams.max(1)).min(WAITING_BYTES_OF_COLUMN);
        let commits = self.is_due(rows);
        let table = &mut self.tables[table];
        let appended = table.append(rows, cells, most_waiting, commits).with_context(|| Context::table(&table.name));
        self.guard(appended)?;
        self.commit_if_due()
    }

    /// Records overwritten cells for the next commit; an error in `written` closes the file.
    pub(super) fn rewritten(&mut self, written: Result<()>) -> Result<()> {
        self.rewritten = true;
        self.guard(written)
    }

    /// Cells whose shape would change are counted instead of overwritten.
    pub(super) fn update(
        &mut self,
        table: &str,
        column: &str,
        first_row: u64,
        rows: u64,
        block: Block<'_>,
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

    /// Commits if the [`CommitPolicy`](super::CommitPolicy) says that it is time.
    /// [`Batch::append`](super::Batch::append) calls this after each batch; a writer that has
    /// nothing to append for a while calls it directly.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_if_due(&mut self) -> Result<()> {
        if self.is_due(0) { self.commit() } else { Ok(()) }
    }

    /// Whether a commit is due once `more` rows are appended.
    fn is_due(&self, more: u64) -> bool {
        let waiting: u64 = more + self.tables.iter().map(|table| table.rows - table.committed).sum::<u64>();
        let late = self.policy.every.is_some_and(|every| self.last_commit.elapsed() >= every);
        let many = self.policy.rows.is_some_and(|rows| waiting >= rows);
        waiting > 0 && (late || many) || self.rewritten && late
    }

    /// Makes all appended rows visible to readers. A reader that first reads the number
    /// `committed_rows` of a table, and then no more rows than that, always reads rows that are
    /// complete in every column.
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
        for table in self.tables.iter_mut().filter(changed) {
            let counted = table.streams().try_for_each(|stream| stream.count());
            counted.with_context(|| Context::table(&table.name))?;
        }
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
        match self.policy.durability {
            Durability::PageCache => Ok(()),
            Durability::Disk => Ok(self.descriptor.sync_data()?),
        }
    }

    /// Commits all appended rows, closes the live file and releases its lock. If a writer is
    /// dropped instead, rows that are not committed are lost.
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
