//! Follows a table that casacore is still writing: copies its new and changed rows, as they appear, to a live file, an
//! HDF5 file that others read while rows are appended.
//! docs/live.md, "Following"; docs/decisions/0004.

mod cells;
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bstr::{BString, ByteSlice};

pub use self::table::Activity;
use self::table::{Followed, LiveColumn};
use super::lock::WriterLock;
use super::{CommitPolicy, Durability, NotFollowed, Reader, Schema, TableSpec, Writer, repair};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::native::{MAIN_TABLE, display_name, is_main};
use crate::progress::CancelToken;
use crate::publishing::IfExists;
use crate::source::{Source, SourceTable, coordinates};
use crate::table::{Locking, OpenOptions, Snapshot, TableKind, Watch};
use crate::value::DataType;

/// Pause between two attempts to read a table that is being changed, in [`Follow::start`] and [`Follow::finish`].
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Time in [`Follow::start`] during which a failed read is repeated, because a subtable may be just being created.
/// Later errors, and `Unsupported`, are returned at once.
const DAMAGED_AFTER: Duration = Duration::from_secs(2);

/// Time after which [`Follow::finish`] stops copying last rows and comparing earlier ones. A step that has begun is
/// completed.
const FINAL_COMPARISON: Duration = Duration::from_secs(10);

/// Longest pause while rows wait to be copied or compared, or the table is being written.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Longest sleep between two checks of the cancel token.
const TOKEN_PAUSE: Duration = Duration::from_millis(50);

/// Options of [`Follow`], which copies a casacore table to a live HDF5 file while another program writes the table: how
/// often the table is polled, when the copying ends, how durable commits to the live file are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FollowOptions {
    /// Longest time that [`Follow::start`] waits until the casacore tables can be read without another program writing
    /// to them during the read.
    pub timeout: Duration,
    /// Whether commits to the live file, which make new rows visible to readers, wait until the data are on the disk.
    pub durability: Durability,
    /// Whether an existing live file is replaced. By default it is resumed: missing rows are appended to it.
    pub overwrite: bool,
    /// Interval at which [`Follow::run`] polls the casacore table for changes.
    pub poll: Duration,
    /// Whether [`Follow::run`] ends when no other program has the casacore table open.
    pub until_closed: bool,
    /// Time without a change in the casacore table after which [`Follow::run`] ends; `None`: no limit.
    pub idle: Option<Duration>,
    /// Token by which the caller ends [`Follow::run`], or the wait in [`Follow::start`] until the casacore tables can
    /// be read. Callers of [`Follow::step`] check the token themselves, between the steps, which are short.
    pub cancel: CancelToken,
}

impl Default for FollowOptions {
    /// Default options: [`Follow::start`] waits at most a minute until the casacore tables can be read, and appends to
    /// the HDF5 file if it exists. Commits do not wait until the data are on the disk. [`Follow::run`] polls the tables
    /// every 50 ms, until the token in `cancel` is cancelled.
    fn default() -> Self {
        FollowOptions {
            timeout: Duration::from_secs(60),
            durability: Durability::PageCache,
            overwrite: false,
            poll: Duration::from_millis(50),
            until_closed: false,
            idle: None,
            cancel: CancelToken::new(),
        }
    }
}

impl FollowOptions {
    /// Sets the longest time that [`Follow::start`] waits until the casacore tables can be read.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets whether commits to the live file, which make new rows visible to readers, wait until the data are on the
    /// disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether an existing live file is replaced. By default it is resumed: missing rows are appended to it.
    #[must_use]
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets the interval at which [`Follow::run`] polls the casacore table for changes.
    #[must_use]
    pub fn poll(mut self, every: Duration) -> Self {
        self.poll = every;
        self
    }

    /// Sets whether [`Follow::run`] ends when no other program has the casacore table open.
    #[must_use]
    pub fn until_closed(mut self, until_closed: bool) -> Self {
        self.until_closed = until_closed;
        self
    }

    /// Sets the time without a change in the casacore table after which [`Follow::run`] ends; `None`: no limit.
    #[must_use]
    pub fn idle(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.idle = time.into();
        self
    }

    /// Sets the token by which the caller ends [`Follow::run`], or the wait in [`Follow::start`] until the casacore
    /// tables can be read.
    #[must_use]
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    /// Whether the last change is as long ago as the option `idle` says; false without it.
    fn is_idle(&self, changed: Instant) -> bool {
        self.idle.is_some_and(|idle| changed.elapsed() >= idle)
    }

    /// Ends early if the cancel token is cancelled.
    fn sleep(&self, time: Duration) {
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|_| !self.cancel.is_cancelled()) {
            std::thread::sleep(left.min(TOKEN_PAUSE));
        }
    }
}

/// Event that [`Follow::run`] reports while it copies a casacore table, which another program is writing, to a live
/// file: an HDF5 file that others read while rows are appended.
#[derive(Debug)]
#[non_exhaustive]
pub enum FollowEvent<'a> {
    /// The casacore table could be read, and the live HDF5 file is open: rows are copied from now on.
    Started {
        /// Whether missing rows are appended to an existing live file; false: a new live file was created.
        resumed: bool,
    },
    /// Rows were appended or overwritten in the live HDF5 file, and committed: readers see them.
    Changed(Activity),
    /// A sentence for the user, one of [`Follow::notes`]: about content of the casacore table that is not in the live
    /// HDF5 file, or a warning about the file. Each is reported once.
    Note(&'a str),
}

/// Copies a casacore table and its subtables, while another program writes them, to a live file: an HDF5 file that
/// others read while rows are appended (SWMR). [`run`](Self::run) does this in one call. Programs that have a loop of
/// their own call [`start`](Self::start), [`step`](Self::step) and [`finish`](Self::finish) instead.
///
/// ```no_run
/// use ctds_hdf5::live::{Follow, FollowEvent, FollowOptions};
///
/// let options = FollowOptions::default().until_closed(true);
/// let summary = Follow::run("my.ms", "live.h5", &options, |event| {
///     if let FollowEvent::Note(note) = event {
///         eprintln!("{note}");
///     }
/// })?;
/// println!("{} commits", summary.commits);
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug)]
pub struct Follow {
    writer: Writer,
    tables: Vec<Followed>,
    missing: Vec<String>,
    resumed: bool,
    commits: u64,
    rewritten: u64,
}

/// Summary of copying a casacore table, while another program wrote it, to an HDF5 file that others read (a live file).
/// From [`Follow::run`] or [`Follow::finish`], when the copying has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowSummary {
    /// Name (`MAIN`, `ANTENNA`, `A/B`) and number of rows of each table in the live HDF5 file.
    pub tables: Vec<(String, u64)>,
    /// Sentences for the user, as from [`Follow::notes`], about content of the casacore table that is not in the live
    /// HDF5 file, and rows that were not compared at the end.
    pub notes: Vec<String>,
    /// Number of commits that added rows to the live HDF5 file.
    pub commits: u64,
    /// Number of blocks (4096 rows of a column, or fewer) that were overwritten in the live HDF5 file because cells of
    /// the casacore table had changed.
    pub rewritten: u64,
}

impl Follow {
    /// Copies the casacore table in the directory at `source`, while another program writes it, to the live file at
    /// `live`: an HDF5 file that others read while rows are appended. Calls `observer` for each event.
    ///
    /// Waits until the table has its first row. Ends, and closes the live file, when the token in `options` is
    /// cancelled, or when the table is closed or idle, if `options` say so.
    ///
    /// # Errors
    /// As [`start`](Self::start) and [`step`](Self::step); `NotFound` if `source` does not exist, or has no row when
    /// the idle time is over; `Interrupted` or `NotFound` if it has no row when the token is cancelled. Committed
    /// rows stay in the live file.
    pub fn run(
        source: impl AsRef<Path>,
        live: impl AsRef<Path>,
        options: &FollowOptions,
        mut observer: impl FnMut(FollowEvent<'_>),
    ) -> Result<FollowSummary> {
        let (source, live) = (source.as_ref(), live.as_ref());
        let mut changed = Instant::now();
        let mut follow = loop {
            let may_wait = || source.exists() && !options.cancel.is_cancelled() && !options.is_idle(changed);
            match Self::start(source, live, options) {
                // the table has no row yet, or is still being made
                Err(error) if error.kind() == ErrorKind::NotFound && may_wait() => options.sleep(options.poll),
                started => break started?,
            }
        };
        observer(FollowEvent::Started { resumed: follow.resumed });
        let mut known = BTreeSet::new();
        let mut report = |notes: Vec<String>, observer: &mut dyn FnMut(FollowEvent<'_>)| {
            for note in notes {
                if known.insert(note.clone()) {
                    observer(FollowEvent::Note(&note));
                }
            }
        };
        changed = Instant::now();
        while !options.cancel.is_cancelled() {
            // before the step, so that it sees what was written last
            let closed = options.until_closed && !follow.is_in_use()?;
            let step = follow.step()?;
            if step.rows > 0 || step.rewritten > 0 {
                changed = Instant::now();
                observer(FollowEvent::Changed(step));
            }
            report(follow.notes(), &mut observer);
            if !step.more && (closed || options.is_idle(changed)) {
                break;
            }
            if step.rows == 0 {
                let is_busy = step.more || step.waiting;
                options.sleep(if is_busy { options.poll.min(BUSY_PAUSE) } else { options.poll });
            }
        }
        let summary = follow.finish()?;
        report(summary.notes.clone(), &mut observer);
        Ok(summary)
    }

    /// Prepares to copy the casacore table in the directory at `source`, while another program writes it, to the live
    /// file at `live`: an HDF5 file that others read while rows are appended. Creates the live file without rows, or
    /// opens an existing one. Each call of [`step`](Self::step) then copies rows.
    ///
    /// A new live file is created only if the main table has a row, from which the shapes of its cells are known.
    ///
    /// # Errors
    /// `NotFound` if `source` does not exist, or has no rows for a new live file; `Locked` if the table is being
    /// written to for longer than the time-out, or `live` has a writer; `Exists` if `live` was made from another table;
    /// `Unsupported` if `live` is not a live file; `Interrupted` if the token in `options` is cancelled.
    pub fn start(source: impl AsRef<Path>, live: impl AsRef<Path>, options: &FollowOptions) -> Result<Self> {
        let (source, live) = (source.as_ref(), live.as_ref());
        let unlocked = OpenOptions { locking: Locking::None, ..OpenOptions::default() };
        let mut watch = Watch::new(source)?;
        if live.exists() {
            // a writer holds this lock for its lifetime: fail now instead of waiting
            drop(WriterLock::take(live)?);
        }
        let resumed = live.exists() && !options.overwrite;
        let found = wait(&mut watch, options, || FoundTables::read(&Source::open_with(source, unlocked)?, !resumed))?;
        let policy = CommitPolicy::manual().durability(options.durability);
        let (writer, columns) = if resumed {
            resume(live, &found.tables, policy)?
        } else {
            begin(source, live, &found, policy, options.overwrite)?
        };
        let mut tables = Vec::new();
        let mut missing = found.missing;
        for FoundTable { spec, path, absent, .. } in &found.tables {
            // a table may be newer than the live file
            let Some((name, columns)) = columns.iter().find(|(name, _)| *name == spec.name) else {
                missing.push(format!("{}: the table is new: finalize takes it", spec.name));
                continue;
            };
            tables.push(Followed::new(path, name, columns, absent, writer.committed_rows(name))?);
        }
        Ok(Follow { writer, tables, missing, resumed, commits: 0, rewritten: 0 })
    }

    /// Copies the new rows of the casacore table and its subtables to the live HDF5 file, overwrites cells there that
    /// have changed in the tables, and commits: readers then see the rows.
    ///
    /// # Errors
    /// Those of reading the tables, and of [`Writer::commit`]; `Unsupported` if rows or
    /// columns were removed; `NotFound` if a table was removed or made again.
    pub fn step(&mut self) -> Result<Activity> {
        let mut all = Activity::default();
        for table in &mut self.tables {
            table.check_same()?;
            let step = table.step(&mut self.writer);
            // rows of another table, or an error because it is another one
            table.check_same()?;
            let one = step?;
            all.rows += one.rows;
            all.rewritten += one.rewritten;
            all.more |= one.more;
            all.waiting |= one.waiting;
        }
        if all.rows > 0 || all.rewritten > 0 {
            self.writer.commit()?;
        }
        self.commits += u64::from(all.rows > 0);
        self.rewritten += all.rewritten;
        Ok(all)
    }

    /// Whether another program has the casacore table or one of its subtables open. After this call, other programs no
    /// longer see the tables as opened by this one, so that two programs that copy a table do not wait for each other
    /// to end.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_in_use(&self) -> Result<bool> {
        // no short circuit: `is_in_use` also withdraws our own in-use mark from each table
        self.tables.iter().try_fold(false, |in_use, table| Ok(table.is_in_use()? || in_use))
    }

    /// Whether rows are appended to a live HDF5 file that existed before, instead of a new one.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Name (`MAIN`, `ANTENNA`, `A/B`) and number of committed rows, which readers see, of each table in the live HDF5
    /// file.
    pub fn committed_rows(&self) -> Vec<(String, u64)> {
        let rows = |table: &Followed| (table.name.clone(), self.writer.committed_rows(&table.name));
        self.tables.iter().map(rows).collect()
    }

    /// Sentences for the user: warnings about the live HDF5 file, and content of the casacore tables that it does not
    /// store (unsuitable columns, cells that do not fit, later keywords). [`Finalize::source`](super::Finalize::source)
    /// copies that.
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

    /// Copies the remaining rows of the casacore tables to the live HDF5 file, as far as the tables can be read now,
    /// and closes the file. Stops after about 10 s, even if rows remain.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn finish(mut self) -> Result<FollowSummary> {
        let start = Instant::now();
        while self.step()?.more && start.elapsed() < FINAL_COMPARISON {
            std::thread::sleep(RETRY_PAUSE);
        }
        let tables = self.committed_rows();
        let mut notes = self.notes();
        for table in self.tables.iter().filter(|table| table.has_suspects()) {
            notes.push(format!("{}: not all old rows were compared that may have been written again", table.name));
        }
        self.writer.close()?;
        Ok(FollowSummary { tables, notes, commits: self.commits, rewritten: self.rewritten })
    }
}

/// The tables to be copied, as [`Follow::start`] reads them.
struct FoundTables {
    tables: Vec<FoundTable>,
    /// Sentences about tables and columns that cannot be copied.
    missing: Vec<String>,
}

struct FoundTable {
    /// The table of a new live file; only the name for an existing one.
    spec: TableSpec,
    /// Columns that a new live file cannot store.
    absent: Vec<BString>,
    path: PathBuf,
    rows: u64,
    columns: Vec<(BString, DataType)>,
}

impl FoundTables {
    /// `shapes`: whether cell shapes are read, and the `TableSpec` of each table is made.
    fn read(source: &Source, shapes: bool) -> Result<Self> {
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
        if is_main(name) {
            spec.coordinates = coordinates(source);
        }
        self.missing.extend(absent.iter().map(|(column, why)| format!("{name}: column {column}: {why}")));
        Ok(FoundTable { spec, absent: absent.into_iter().map(|(column, _)| column).collect(), ..found })
    }

    /// Whether a live file would have the same tables and columns.
    fn declares_as(&self, other: &FoundTables) -> bool {
        let columns = |column: &super::ColumnSpec| {
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

/// Calls `read` until no other program wrote during the call, or two consecutive results agree. Fails with `Locked`
/// after `options.timeout`.
fn wait(watch: &mut Watch, options: &FollowOptions, read: impl Fn() -> Result<FoundTables>) -> Result<FoundTables> {
    let timeout = options.timeout;
    let start = Instant::now();
    let mut before: Option<FoundTables> = None;
    loop {
        options.cancel.check()?;
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

type LiveTables = Vec<(String, Vec<LiveColumn>)>;

/// Creates a live file without rows. Fails with `NotFound` if the main table has no row yet.
fn begin(
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

/// Opens a live file to append rows. Fails with `Exists` if it was not made from the tables `found`.
fn resume(live: &Path, found: &[FoundTable], policy: CommitPolicy) -> Result<(Writer, LiveTables)> {
    let reader = Reader::open(live)?;
    let mut tables = Vec::new();
    for table in reader.tables() {
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
    drop(reader);
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
