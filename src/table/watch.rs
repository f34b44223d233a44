//! Looking at a table while casacore writes to it, without ever being in its way. docs/decisions/0004.
//!
//! A casacore writer that finds its table locked looks again after a second, however short the lock was. So none is taken
//! here: the table is read, and then it is checked that nobody wrote meanwhile. Every flush of casacore's ends with a new sync
//! record in `table.lock`, and until then the writer holds its lock. What shows that somebody wrote: the lock, that record,
//! and the lengths and times of the files. Times tick, so that a change may hide behind one just before it; what was read
//! then is [`Look::Doubtful`]. Whoever relies on that reads again when the record's counters have changed.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::lock::{self, Request};
use super::{OpenOptions, Table};
use crate::error::{Error, Place, Result};
use crate::io::FileSource;
use crate::schema::Sync;

/// A writer that keeps its lock is asked for it after so long.
const PATIENCE: Duration = Duration::from_millis(200);

/// Two writes that are closer than this may leave the same time on a file: the kernel's clock ticks 100 times a second, or more.
const TICK: Duration = Duration::from_millis(12);

/// A file with the time of the sync record was written before it, or right after it; that nobody who is in the middle of
/// writing pauses for so long is assumed.
const PAUSE: Duration = Duration::from_millis(500);

/// Where the length of the sync record is in `table.lock`, after the list of requests. formats/table.md 4.2.
const SYNC_OFFSET: u64 = 260;

/// More of it is not compared; it holds a number for each data manager.
const MAX_SYNC: u64 = 1 << 16;

/// A table that another program may be writing to.
#[derive(Debug)]
pub(crate) struct Watch {
    path: PathBuf,
    /// Marks the table as in use.
    lock: File,
    writable: bool,
    /// Asks a writer to let others have a look, until dropped.
    request: Option<Request>,
    /// Since when a writer has kept us from reading.
    hindered: Option<Instant>,
    /// The newest sync record, and the time of `table.lock` when it was first seen. Requests change that time too.
    flushed: Option<(Vec<u8>, SystemTime)>,
}

/// What shows that somebody wrote.
#[derive(Debug, PartialEq)]
struct State {
    /// The sync record as it is stored.
    sync: Vec<u8>,
    /// The table's files: name, length, time of the last change.
    files: Vec<(OsString, u64, SystemTime)>,
}

impl State {
    /// Whether a file changed so short a time ago, or in the future, that another change would not show.
    fn is_recent(&self) -> bool {
        self.files.iter().any(|(_, _, changed)| !is_older(*changed, TICK))
    }

    /// When the last file changed.
    fn newest(&self) -> Option<SystemTime> {
        self.files.iter().map(|(_, _, changed)| *changed).max()
    }
}

fn is_older(time: SystemTime, age: Duration) -> bool {
    time.elapsed().is_ok_and(|elapsed| elapsed >= age)
}

/// What the locks and the times of the files say.
#[derive(Debug, PartialEq)]
enum Quiet {
    /// Nobody writes, or who holds the lock has not written since the last sync record.
    Yes,
    /// Somebody holds the lock and may have written since that record, in the tick of the clock in which it was written.
    Perhaps,
    /// Somebody has written and not yet finished.
    No,
}

/// A look at a table.
#[derive(Debug)]
pub(crate) enum Look<T> {
    /// Nobody wrote meanwhile.
    Sure(T),
    /// Somebody wrote: what was read may be a mixture.
    Doubtful(Result<T>),
    /// A writer is in the middle of something.
    Busy,
}

impl Watch {
    /// Watches the table in the directory at `path`.
    ///
    /// # Errors
    /// `NotFound` if there is none; `Unsupported` if it has no lock file.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path)?;
        path.metadata().at_with(|| path.display().to_string())?;
        let opened = lock::open(&path).at_with(|| path.display().to_string())?;
        let (lock, writable) = opened.ok_or_else(|| {
            Error::unsupported("the table has no table.lock, or the file system no locks: writers cannot be seen")
                .at(path.display())
        })?;
        Ok(Watch { path, lock, writable, request: None, hindered: None, flushed: None })
    }

    /// What the last writer left for others; `None` if there is nothing yet, or somebody is just writing it.
    ///
    /// # Errors
    /// `Format` if the record is damaged.
    pub(crate) fn sync(&self) -> Result<Option<Sync>> {
        let record = self.record()?;
        let sync = Sync::read(&FileSource::open(&self.path.join("table.lock"))?);
        match sync {
            _ if self.record()? != record => Ok(None),
            Err(_) if lock::is_written(&self.lock)? => Ok(None),
            sync => sync.at_with(|| self.path.display().to_string()),
        }
    }

    /// Whether another program has the table open.
    pub(crate) fn is_in_use(&self) -> Result<bool> {
        lock::is_in_use(&self.lock)
    }

    /// Reads the table as it is between two changes.
    pub(crate) fn look<T>(&mut self, read: impl FnOnce(&Table) -> Result<T>) -> Result<Look<T>> {
        let before = self.state()?;
        let recent = before.is_recent();
        let quiet = self.is_quiet(&before)?;
        if quiet == Quiet::No {
            self.ask()?;
            return Ok(Look::Busy);
        }
        let value = Table::open_with(&self.path, OpenOptions { lock_timeout: None }).and_then(|table| read(&table));
        // who writes now may have begun while we read, in the tick of the last change
        let unseen = recent && lock::is_written(&self.lock)?;
        if quiet == Quiet::Yes && !unseen && self.state()? == before {
            self.hindered = None;
            self.request = None;
            return value.map(Look::Sure);
        }
        self.ask()?;
        Ok(Look::Doubtful(value))
    }

    fn is_quiet(&mut self, state: &State) -> Result<Quiet> {
        let flushed = self.flushed(state)?;
        if !lock::is_written(&self.lock)? {
            return Ok(Quiet::Yes);
        }
        Ok(match state.newest() {
            _ if state.sync.is_empty() => Quiet::No,
            Some(changed) if changed > flushed => Quiet::No,
            Some(changed) if state.is_recent() || changed == flushed && !is_older(changed, PAUSE) => Quiet::Perhaps,
            _ => Quiet::Yes,
        })
    }

    /// When the sync record was written, or somewhat later.
    fn flushed(&mut self, state: &State) -> Result<SystemTime> {
        match &self.flushed {
            Some((sync, time)) if *sync == state.sync => Ok(*time),
            _ => {
                let time = self.lock.metadata()?.modified()?;
                self.flushed = Some((state.sync.clone(), time));
                Ok(time)
            }
        }
    }

    fn state(&self) -> Result<State> {
        let sync = self.record()?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.path).at_with(|| self.path.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name();
            if !name.as_encoded_bytes().starts_with(b"table.") || name == "table.lock" {
                continue;
            }
            // a temporary file may be gone already
            if let Ok(metadata) = entry.metadata() {
                files.push((name, metadata.len(), metadata.modified()?));
            }
        }
        files.sort();
        Ok(State { sync, files })
    }

    /// The sync record with its length; empty if there is none.
    fn record(&self) -> Result<Vec<u8>> {
        let end = self.lock.metadata()?.len();
        let mut record = vec![0; end.saturating_sub(SYNC_OFFSET).min(MAX_SYNC) as usize];
        match self.lock.read_exact_at(&mut record, SYNC_OFFSET) {
            Ok(()) => {}
            // shortened meanwhile
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(Vec::new()),
            Err(error) => return Err(error).at_with(|| self.path.join("table.lock").display().to_string()),
        }
        if record.iter().all(|byte| *byte == 0) {
            record.clear();
        }
        Ok(record)
    }

    /// Asks a writer that keeps its lock to let others have a look; casacore does so now and then.
    fn ask(&mut self) -> Result<()> {
        let since = *self.hindered.get_or_insert_with(Instant::now);
        if self.writable && self.request.is_none() && since.elapsed() >= PATIENCE && lock::is_written(&self.lock)? {
            self.request = Some(Request::post(&self.lock)?);
        }
        Ok(())
    }
}
