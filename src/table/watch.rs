//! Looking at a table while casacore writes to it, without ever being in its way. docs/decisions/0004.
//!
//! A casacore writer that finds its table locked looks again after a second, however short the lock was. So none is taken
//! here: the table is read, and then it is checked that nobody wrote meanwhile. Every flush of casacore's ends with a new sync
//! record in `table.lock`, and until then the writer holds its lock.

use std::fs::File;
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
    /// When we changed the lock file ourselves: its time then says nothing about the writer.
    touched: Option<SystemTime>,
}

/// What shows that somebody wrote.
#[derive(Debug, PartialEq)]
struct State {
    sync: Option<Sync>,
    /// The table's files: name, length, time of the last change.
    files: Vec<(std::ffi::OsString, u64, SystemTime)>,
}

impl State {
    /// Whether a file changed so short a time ago that another change would not show.
    fn is_recent(&self) -> bool {
        self.files.iter().any(|(_, _, changed)| changed.elapsed().is_ok_and(|age| age < TICK))
    }
}

/// What the locks and the times of the files say.
#[derive(Debug, PartialEq)]
enum Quiet {
    /// Nobody writes, or who holds the lock has not written since the last sync record.
    Yes,
    /// Somebody holds the lock and may have written since then: the files changed a moment ago.
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
    /// `NotFound` or `Format` if it has no lock file.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path)?;
        let opened = lock::open(&path).at_with(|| path.display().to_string())?;
        let (lock, writable) = opened.ok_or_else(|| {
            Error::unsupported("the table has no table.lock, or the file system no locks: writers cannot be seen")
                .at(path.display())
        })?;
        Ok(Watch { path, lock, writable, request: None, hindered: None, touched: None })
    }

    /// What the last writer left for others.
    pub(crate) fn sync(&self) -> Result<Option<Sync>> {
        Sync::read(&FileSource::open(&self.path.join("table.lock"))?).at_with(|| self.path.display().to_string())
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
            self.withdraw()?;
            return value.map(Look::Sure);
        }
        Ok(Look::Doubtful(value))
    }

    fn is_quiet(&self, state: &State) -> Result<Quiet> {
        if !lock::is_written(&self.lock)? {
            return Ok(Quiet::Yes);
        }
        let flushed = self.lock.metadata()?.modified()?;
        let ours = self.touched == Some(flushed);
        let newer = state.files.iter().any(|(_, _, changed)| *changed > flushed);
        Ok(match state.is_recent() {
            _ if state.sync.is_none() || ours || newer => Quiet::No,
            true => Quiet::Perhaps,
            false => Quiet::Yes,
        })
    }

    fn state(&self) -> Result<State> {
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
        Ok(State { sync: self.sync()?, files })
    }

    /// Asks a writer that keeps its lock to let others have a look; casacore does so now and then.
    fn ask(&mut self) -> Result<()> {
        let since = *self.hindered.get_or_insert_with(Instant::now);
        if self.writable && self.request.is_none() && since.elapsed() >= PATIENCE {
            self.request = Some(Request::post(&self.lock)?);
            self.touched = Some(self.lock.metadata()?.modified()?);
        }
        Ok(())
    }

    fn withdraw(&mut self) -> Result<()> {
        if self.request.take().is_some() {
            self.touched = Some(self.lock.metadata()?.modified()?);
        }
        Ok(())
    }
}
