//! A live container that is being kept in step with the files of a table, step by step.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::copying::Copying;
use super::seen::{Seen, TABLE_LOCK, WatchedTable, between_writes};
use super::summary::{FilesCommit, FilesFollowed};
use crate::call::polling::{Pace, Steps, last_steps};
use crate::error::{Error, ErrorKind, Result};
use crate::output::{WriterLock, network_file_system};
use crate::table::{Snapshot, Watch};

/// Longest pause after an attempt during which the table was written.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Time to repeat a failed read, except for `Unsupported`: a subtable may be just being created.
const DAMAGED_AFTER: Duration = Duration::from_secs(2);

/// Time without a commit, while the table changes, after which the user is told.
const STARVED_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Following {
    source: PathBuf,
    target: PathBuf,
    to_disk: bool,
    /// The main table first.
    tables: Vec<WatchedTable>,
    copying: Copying,
    /// State of the directories at the last commit.
    committed: Option<Seen>,
    failing: Option<Instant>,
    starving: Option<Instant>,
    not_before: Option<Instant>,
    notes: Vec<String>,
    commits: u64,
    appended: u64,
    replaced: u64,
    _lock: WriterLock,
}

/// Result of one step.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stepped {
    pub(super) commit: Option<FilesCommit>,
    is_unfinished: bool,
}

const UNFINISHED: Stepped = Stepped { commit: None, is_unfinished: true };

impl Following {
    pub(super) fn new(source: &Path, target: &Path, to_disk: bool, copying: Copying, lock: WriterLock) -> Result<Self> {
        let main = WatchedTable { prefix: String::new(), watch: Watch::new(source)?, rows: None };
        Ok(Following {
            source: source.to_owned(),
            target: target.to_owned(),
            to_disk,
            tables: vec![main],
            copying,
            committed: None,
            failing: None,
            starving: None,
            not_before: None,
            notes: network_file_system(target).into_iter().collect(),
            commits: 0,
            appended: 0,
            replaced: 0,
            _lock: lock,
        })
    }

    /// Copies and commits, unless the table is written during that.
    fn try_step(&mut self) -> Result<Stepped> {
        if self.copying.tables.is_empty() {
            self.copying.begin()?;
            self.watch_tables()?;
        }
        // a subtable that was removed, or made again, is found by the names in the directories
        self.tables.retain(|table| table.prefix.is_empty() || table.watch.check_same().is_ok());
        let before = Seen::look(&self.source, &self.copying.folders, &self.tables)?;
        if self.committed.as_ref().is_some_and(|seen| seen.is_settled() && *seen == before) {
            return Ok(Stepped::default());
        }
        let copying = &mut self.copying;
        match between_writes(&mut self.tables, &mut || copying.copy(&before))? {
            Snapshot::Consistent(true) => {}
            Snapshot::Unconfirmed(Err(error)) if error.kind() == ErrorKind::Interrupted => return Err(error),
            _ => return Ok(UNFINISHED),
        }
        // of another table, or of one that was not watched
        self.check_same()?;
        let is_watched = !self.watch_tables()?;
        if !is_watched || before != Seen::look(&self.source, &self.copying.folders, &self.tables)? {
            return Ok(UNFINISHED);
        }
        let commit = self.copying.commit(self.to_disk)?;
        self.note_rows(&before);
        self.committed = Some(before);
        if let Some(FilesCommit { appended, replaced, .. }) = commit {
            self.commits += 1;
            self.appended += appended;
            self.replaced += replaced;
        }
        Ok(Stepped { commit, is_unfinished: false })
    }

    /// Fails if the main table was removed or made again.
    fn check_same(&self) -> Result<()> {
        self.tables[0].watch.check_same()
    }

    /// Watches the tables that the last look has found; whether any of them is new.
    fn watch_tables(&mut self) -> Result<bool> {
        let mut others = self.tables.split_off(1);
        others.retain(|table| table.watch.check_same().is_ok());
        let mut is_new = false;
        for (prefix, path) in self.copying.tables.iter().filter(|(prefix, _)| !prefix.is_empty()) {
            if let Some(known) = others.iter().position(|table| table.prefix == *prefix) {
                self.tables.push(others.swap_remove(known));
                continue;
            }
            match Watch::new(path) {
                Ok(watch) => {
                    self.tables.push(WatchedTable { prefix: prefix.clone(), watch, rows: None });
                    is_new = true;
                }
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    let name = prefix.trim_end_matches('/');
                    note(&mut self.notes, format!("{name}: it has no {TABLE_LOCK}: a commit may have half of a write"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(is_new)
    }

    /// Tells of tables that have fewer rows than at the last commit.
    fn note_rows(&mut self, seen: &Seen) {
        for table in &mut self.tables {
            let Some(rows) = seen.rows(&table.prefix) else { continue };
            if let Some(before) = table.rows.filter(|&before| before > rows) {
                let name = if table.prefix.is_empty() { "the table" } else { table.prefix.trim_end_matches('/') };
                let message = format!("{name} has {rows} rows, but had {before}: the newest commit lacks the others");
                note(&mut self.notes, message);
            }
            table.rows = Some(rows);
        }
    }

    /// An attempt that ended in the middle of a write is repeated, soon.
    fn unfinished(&mut self, started: Instant) -> Stepped {
        self.not_before = Some(Instant::now() + started.elapsed().min(LONGEST_PAUSE));
        if self.starving.get_or_insert(started).elapsed() >= STARVED_AFTER {
            let message = format!(
                "no commit for {} s: the table is written without a pause in which its files can be compared; \
                 `h5bridge follow` needs none",
                STARVED_AFTER.as_secs()
            );
            note(&mut self.notes, message);
        }
        UNFINISHED
    }

    /// Takes the last steps and closes the container.
    pub(super) fn finish(mut self) -> Result<FilesFollowed> {
        self.not_before = None;
        last_steps(&mut self)?;
        if self.copying.generations == 0 {
            let message = "the table is being written to without a pause, so that no whole copy of its files could be \
                           made; `h5bridge follow` needs no pause";
            return Err(Error::new(ErrorKind::Locked, message));
        }
        if self.starving.is_some() {
            note(&mut self.notes, "the table was being written to at the end: its last changes are missing".to_owned());
        }
        let notes = self.notes();
        let Following { copying, target, commits, appended, replaced, .. } = self;
        let (generations, (files, bytes)) = (copying.generations, copying.totals);
        copying.close()?;
        let stored_bytes = target.metadata()?.len();
        Ok(FilesFollowed { files, bytes, stored_bytes, commits, appended, replaced, generations, notes })
    }
}

impl Steps for Following {
    type Step = Stepped;

    fn step(&mut self) -> Result<Stepped> {
        self.check_same()?;
        let started = Instant::now();
        if self.not_before.is_some_and(|time| started < time) {
            return Ok(UNFINISHED);
        }
        let stepped = self.try_step();
        if let Some(error) = self.copying.broken() {
            return Err(error.clone());
        }
        match stepped {
            Ok(stepped) => {
                self.failing = None;
                if stepped.is_unfinished {
                    return Ok(self.unfinished(started));
                }
                (self.starving, self.not_before) = (None, None);
                Ok(stepped)
            }
            // a new container is given up; the one before stays
            Err(error) if error.kind() == ErrorKind::Interrupted && self.commits > 0 => {
                self.starving.get_or_insert(started);
                Ok(Stepped::default())
            }
            Err(error) if may_pass(&error) && self.failing.get_or_insert(started).elapsed() < DAMAGED_AFTER => {
                Ok(self.unfinished(started))
            }
            Err(error) => {
                self.check_same()?;
                Err(error)
            }
        }
    }

    fn pace(stepped: &Stepped) -> Pace {
        let Stepped { commit, is_unfinished } = *stepped;
        Pace { changed: commit.is_some(), at_once: false, more: is_unfinished, waiting: is_unfinished }
    }

    fn is_in_use(&self) -> Result<bool> {
        // no short circuit: `is_in_use` also withdraws our own in-use mark from each table
        self.tables.iter().try_fold(false, |in_use, table| Ok(table.watch.is_in_use()? || in_use))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.iter().chain(self.copying.warnings()).cloned().collect()
    }
}

/// Whether an error may come from a table in the making.
fn may_pass(error: &Error) -> bool {
    error.is_damage()
}

fn note(notes: &mut Vec<String>, text: String) {
    if !notes.contains(&text) {
        notes.push(text);
    }
}
