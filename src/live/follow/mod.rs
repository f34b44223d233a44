//! Follows a table that casacore is still writing: copies its new and changed rows, as they appear,
//! to a live file, an HDF5 file that others read while rows are appended. docs/reference/live.md,
//! "Following"; docs/explanation/decisions/0004.

mod cells;
mod following;
mod found;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::following::{FollowSummary, Following};
use self::found::{FoundTable, FoundTables, begin, resume, wait};
pub use self::table::Activity;
use self::table::Followed;
use super::{CommitPolicy, Durability, Reader};
use crate::call::polling::{Polled, Polling, Told};
use crate::error::Result;
use crate::output::WriterLock;
use crate::progress::CancelToken;
use crate::source::Source;
use crate::table::{Locking, OpenOptions, Watch};

/// Event that [`Follow::run`] reports while it copies a casacore table, which another program is
/// writing, to a live file: an HDF5 file that others read while rows are appended.
#[derive(Debug)]
#[non_exhaustive]
pub enum FollowEvent<'a> {
    /// The casacore table could be read, and the live HDF5 file is open: rows are copied from now
    /// on.
    Started {
        /// Whether missing rows are appended to an existing live file; false: a new live file was
        /// created.
        resumed: bool,
    },
    /// Rows were appended or overwritten in the live HDF5 file, and committed: readers see them.
    Changed(Activity),
    /// A sentence for the user, one of [`Following::notes`]: about content of the casacore table
    /// that is not in the live HDF5 file, or a warning about the file. Each is reported once.
    Note(&'a str),
}

/// Copies a casacore table and its subtables, while another program writes them, to a live file: an
/// HDF5 file that others read while rows are appended (SWMR). [`run`](Self::run) does this in one
/// call. Programs that have a loop of their own call [`start`](Self::start), then
/// [`step`](Following::step) and [`finish`](Following::finish).
///
/// ```no_run
/// use ctds_hdf5::live::{Follow, FollowEvent};
///
/// let summary = Follow::new("my.ms", "live.h5").until_closed(true).run(|event| {
///     if let FollowEvent::Note(note) = event {
///         eprintln!("{note}");
///     }
/// })?;
/// println!("{} commits", summary.commits);
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "`run` or `start` follows the table"]
pub struct Follow {
    source: PathBuf,
    live: PathBuf,
    timeout: Duration,
    durability: Durability,
    overwrite: bool,
    polling: Polling,
}

impl Follow {
    /// Prepares to copy the casacore table in the directory at `source` to the live file at `live`,
    /// which is resumed if it exists.
    pub fn new(source: impl AsRef<Path>, live: impl AsRef<Path>) -> Self {
        Follow {
            source: source.as_ref().to_owned(),
            live: live.as_ref().to_owned(),
            timeout: Duration::from_secs(60),
            durability: Durability::PageCache,
            overwrite: false,
            polling: Polling::default(),
        }
    }

    /// Sets the longest time that [`start`](Self::start) waits until the casacore tables can be
    /// read without another program writing to them during the read; a minute by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets whether commits to the live file, which make new rows visible to readers, wait until
    /// the data are on the disk; by default they do not.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether an existing live file is replaced. By default it is resumed: missing rows are
    /// appended to it.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets the interval at which [`run`](Self::run) polls the casacore table for changes; 50 ms by
    /// default.
    pub fn poll(mut self, every: Duration) -> Self {
        self.polling.every = every;
        self
    }

    /// Sets whether [`run`](Self::run) ends when no other program has the casacore table open.
    pub fn until_closed(mut self, until_closed: bool) -> Self {
        self.polling.until_closed = until_closed;
        self
    }

    /// Sets the time without a change in the casacore table after which [`run`](Self::run) ends;
    /// `None`, the default: no limit.
    pub fn idle(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.polling.idle = time.into();
        self
    }

    /// Sets the token by which the caller ends [`run`](Self::run), or the wait in
    /// [`start`](Self::start) until the casacore tables can be read. Callers of [`Following::step`]
    /// check the token themselves, between the steps, which are short.
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.polling.cancel = token.clone();
        self
    }

    /// Copies the table until the token is cancelled, or until the table is closed or idle, if the
    /// builder says so; then closes the live file. Waits until the table has its first row. Calls
    /// `observer` for each event.
    ///
    /// # Errors
    /// As [`start`](Self::start) and [`Following::step`]; `NotFound` if the table does not exist,
    /// or has no row when the idle time is over; `Interrupted` or `NotFound` if it has no row when
    /// the token is cancelled. Committed rows stay in the live file.
    pub fn run(&self, mut observer: impl FnMut(FollowEvent<'_>)) -> Result<FollowSummary> {
        let mut following = self.polling.start(&self.source, || self.start())?;
        observer(FollowEvent::Started { resumed: following.resumed() });
        let mut told = Told::default();
        self.polling.run(&mut following, &mut told, |event| match event {
            Polled::Changed(step) => observer(FollowEvent::Changed(step)),
            Polled::Note(note) => observer(FollowEvent::Note(note)),
        })?;
        let summary = following.finish()?;
        told.tell(summary.notes.clone(), |note| observer(FollowEvent::Note(note)));
        Ok(summary)
    }

    /// Reads the tables, and creates the live file without rows or opens an existing one. Each call
    /// of [`Following::step`] then copies rows. A new live file is created only if the main table
    /// has a row, from which the shapes of its cells are known.
    ///
    /// # Errors
    /// `NotFound` if the table does not exist, or has no rows for a new live file; `Locked` if it
    /// is being written to for longer than the time-out, or the live file has a writer; `Exists` if
    /// the live file was made from another table; `Unsupported` if it is not a live file;
    /// `Interrupted` if the token is cancelled.
    pub fn start(&self) -> Result<Following> {
        let (source, live) = (self.source.as_path(), self.live.as_path());
        let unlocked = OpenOptions { locking: Locking::None, ..OpenOptions::default() };
        let mut watch = Watch::new(source)?;
        if live.exists() {
            // a writer holds this lock for its lifetime: fail now instead of waiting
            drop(WriterLock::take(live)?);
        }
        let resumed = live.exists() && !self.overwrite;
        // before the tables, which may grow, and another follower with them, while they are read
        let before = if resumed { Some(Reader::open(live)?) } else { None };
        let found = wait(&mut watch, self.timeout, &self.polling.cancel, || {
            FoundTables::read(&Source::open_with(source, unlocked)?, !resumed)
        })?;
        let policy = CommitPolicy::manual().durability(self.durability);
        let (writer, columns) = match before {
            Some(before) => resume(live, before, &found.tables, policy)?,
            None => begin(source, live, &found, policy, self.overwrite)?,
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
        Ok(Following::new(writer, tables, missing, resumed))
    }
}
