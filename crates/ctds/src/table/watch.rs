//! Lock-free reads of a table that casacore is writing; the writer is never blocked.
//! docs/explanation/decisions/0004.
//!
//! A casacore writer that finds its table locked retries after a second, however short the lock
//! was. So none is taken here: the table is read, and then it is checked that no write overlapped
//! the read. Every flush of casacore's ends with a new sync record in `table.lock`, and until then
//! the writer holds its lock. Signs of a write are the lock, that record, and the lengths and times
//! of the files. Times tick, so that a change right after another may not show; what was read then
//! is [`Snapshot::Unconfirmed`]. A caller that relies on it reads again when the record's counters
//! have changed.

use std::ffi::OsString;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::lock::{self, Request};
use super::{Locking, OpenOptions, Table};
use crate::clock::Clock;
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::FileSource;
use crate::io::Kept;
use crate::schema::Sync;

/// Time of prevented reads after which a writer is asked to release its lock.
const LOCK_REQUEST_DELAY: Duration = Duration::from_millis(200);

/// Time until a write surely changes a modification time: clocks tick 100 times a second or more.
const CLOCK_TICK: Duration = Duration::from_millis(12);

/// Assumed longest pause in a flush: a file as new as the sync record may change until then.
const LONGEST_WRITE_PAUSE: Duration = Duration::from_millis(500);

/// Byte of the sync record in `table.lock`, which begins with its length. formats/table.md 4.2.
const SYNC_OFFSET: u64 = 260;

/// Bytes of the sync record that are compared; it has a counter for each data manager.
const MAX_SYNC_BYTES: u64 = 1 << 16;

const READ_TRIES: usize = 50;
const READ_PAUSE: Duration = Duration::from_millis(20);

/// Observations of a table's writer by earlier reads. A read can thus tell whether it saw the table
/// in the middle of a change.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    /// Its locks show other programs that the table is in use.
    lock: Arc<Kept>,
    writable: bool,
    /// Asks a writer to release its lock for a moment; withdrawn when dropped.
    request: Option<Request>,
    hindered: Option<Instant>,
    /// The newest record, and the time of `table.lock` when first seen: requests change the time.
    flushed: Option<(Vec<u8>, SystemTime)>,
    clock: Clock,
}

/// Two equal states show that no write happened between them.
#[derive(Debug, PartialEq)]
struct TableState {
    /// Empty without a sync record.
    sync: Vec<u8>,
    /// Name, length and time of the last change of each file `table.*` but `table.lock`.
    files: Vec<(OsString, u64, SystemTime)>,
}

impl TableState {
    /// Whether a file changed within a tick before `now`, or later: another change would not show.
    fn is_recent(&self, now: SystemTime) -> bool {
        self.files.iter().any(|(_, _, changed)| !is_older(*changed, CLOCK_TICK, now))
    }

    fn newest(&self) -> Option<SystemTime> {
        self.files.iter().map(|(_, _, changed)| *changed).max()
    }
}

fn is_older(time: SystemTime, age: Duration, now: SystemTime) -> bool {
    now.duration_since(time).is_ok_and(|elapsed| elapsed >= age)
}

/// State of the writer, as far as locks and times of files show it.
#[derive(Debug, PartialEq)]
enum Writer {
    Idle,
    /// Write lock held, nothing newer than the sync record; not certain: requests change times.
    Flushed,
    /// Write lock held; times cannot tell whether files changed after the sync record was written.
    Uncertain,
    /// A flush has begun and not yet written the sync record, with which every flush ends.
    Writing,
}

#[derive(Debug)]
pub enum Snapshot<T> {
    Consistent(T),
    /// A write may have overlapped: perhaps a mixture of old and new values.
    Unconfirmed(Result<T>),
    /// A writer is in the middle of a flush; the table was not read.
    WriterActive,
}

impl Watch {
    /// Also marks the table as in use for other programs.
    ///
    /// # Errors
    /// `NotFound` if there is none; `Unsupported` if it has no lock file.
    pub fn new(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path)?;
        path.metadata().with_context(|| Context::path(&path))?;
        let opened = lock::open(&path).with_context(|| Context::path(&path))?;
        let (lock, writable) = opened.ok_or_else(|| {
            Error::unsupported("the table has no table.lock, or the file system no locks: writers cannot be seen")
                .context(Context::path(&path))
        })?;
        Ok(Watch { path, lock, writable, request: None, hindered: None, flushed: None, clock: Clock::default() })
    }

    /// Fails with `NotFound` if the table was removed or replaced since the watch began.
    pub fn check_same(&self) -> Result<()> {
        let what = match (self.path.join("table.lock").metadata(), self.lock.metadata()) {
            (Ok(now), Ok(then)) if (now.dev(), now.ino()) == (then.dev(), then.ino()) => return Ok(()),
            (Ok(_), _) => "the table was removed and made again",
            (Err(_), _) if self.path.exists() => "the table was removed and is being made again",
            (Err(_), _) => "the table was removed",
        };
        let message = format!("{what} while it was followed: begin a new live file, with --overwrite or another name");
        Err(Error::not_found(message).context(Context::path(&self.path)))
    }

    /// The last writer's sync record; `None` if it does not exist yet, or is being written.
    ///
    /// # Errors
    /// `Format` if the record is damaged.
    pub fn sync(&self) -> Result<Option<Sync>> {
        let record = self.record()?;
        let path = self.path.join("table.lock");
        let sync = Sync::read(&FileSource::open(&path).with_context(|| Context::path(&path))?);
        match sync {
            _ if self.record()? != record => Ok(None),
            Err(_) if lock::is_written(&self.lock)? => Ok(None),
            sync => sync.with_context(|| Context::path(&self.path)),
        }
    }

    /// Whether another program has the table open. The first call withdraws this process's own
    /// mark, so that two programs that wait for each other do not wait for ever.
    pub fn is_in_use(&self) -> Result<bool> {
        lock::leave(&self.lock)?;
        lock::is_in_use(&self.lock)
    }

    /// Opens the table without a lock; the result says whether a write overlapped.
    pub fn snapshot<T>(&mut self, read: impl FnOnce(&Table) -> Result<T>) -> Result<Snapshot<T>> {
        let path = self.path.clone();
        self.snapshot_of(|| {
            let table = Table::open_with(&path, OpenOptions { locking: Locking::None, ..OpenOptions::default() })?;
            read(&table)
        })
    }

    /// `read` opens the table itself; the result says whether a write overlapped.
    pub fn snapshot_of<T>(&mut self, read: impl FnOnce() -> Result<T>) -> Result<Snapshot<T>> {
        let before = self.state()?;
        let recent = before.is_recent(self.clock.date());
        let writer = self.writer(&before)?;
        if writer == Writer::Writing {
            self.ask()?;
            return Ok(Snapshot::WriterActive);
        }
        let value = read();
        // a process that writes now may have begun during the read, in the tick of the last change
        let unseen = recent && lock::is_written(&self.lock)?;
        // an inconsistent read while the lock is held means that a write is in progress
        let believed = match writer {
            Writer::Idle => true,
            Writer::Flushed => value.is_ok(),
            Writer::Uncertain | Writer::Writing => false,
        };
        if believed && !unseen && self.state()? == before {
            self.hindered = None;
            self.request = None;
            return value.map(Snapshot::Consistent);
        }
        self.ask()?;
        Ok(Snapshot::Unconfirmed(value))
    }

    /// Whether a writer is in the middle of a flush; one that has prevented reads for
    /// `LOCK_REQUEST_DELAY` is asked to stop.
    pub fn prompt(&mut self) -> Result<bool> {
        let state = self.state()?;
        if self.writer(&state)? != Writer::Writing {
            self.hindered = None;
            return Ok(false);
        }
        self.ask()?;
        Ok(true)
    }

    fn writer(&mut self, state: &TableState) -> Result<Writer> {
        let flushed = self.flushed(state)?;
        if !lock::is_written(&self.lock)? {
            return Ok(Writer::Idle);
        }
        let now = self.clock.date();
        Ok(match state.newest() {
            _ if state.sync.is_empty() => Writer::Writing,
            Some(changed) if changed > flushed => Writer::Writing,
            Some(changed)
                if state.is_recent(now) || changed == flushed && !is_older(changed, LONGEST_WRITE_PAUSE, now) =>
            {
                Writer::Uncertain
            }
            _ => Writer::Flushed,
        })
    }

    /// Modification time of `table.lock` when its record was first seen: at or after the record's.
    fn flushed(&mut self, state: &TableState) -> Result<SystemTime> {
        match &self.flushed {
            Some((sync, time)) if *sync == state.sync => Ok(*time),
            _ => {
                let time = self.lock.metadata()?.modified()?;
                self.flushed = Some((state.sync.clone(), time));
                Ok(time)
            }
        }
    }

    fn state(&self) -> Result<TableState> {
        let sync = self.record()?;
        let mut files = Vec::new();
        let place = || Context::path(&self.path);
        for entry in std::fs::read_dir(&self.path).with_context(place)? {
            let entry = entry.with_context(place)?;
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
        Ok(TableState { sync, files })
    }

    /// The bytes of the sync record, its length included.
    fn record(&self) -> Result<Vec<u8>> {
        let end = self.lock.metadata()?.len();
        let mut record = vec![0; end.saturating_sub(SYNC_OFFSET).min(MAX_SYNC_BYTES) as usize];
        match self.lock.read_exact_at(&mut record, SYNC_OFFSET) {
            Ok(()) => {}
            // shortened since
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| Context::path(self.path.join("table.lock"))),
        }
        if record.iter().all(|byte| *byte == 0) {
            record.clear();
        }
        Ok(record)
    }

    /// Asks only after `LOCK_REQUEST_DELAY`; casacore checks for requests now and then.
    fn ask(&mut self) -> Result<()> {
        let since = *self.hindered.get_or_insert_with(|| self.clock.now());
        if self.writable
            && self.request.is_none()
            && self.clock.now().duration_since(since) >= LOCK_REQUEST_DELAY
            && lock::is_written(&self.lock)?
        {
            self.request = Some(Request::post(&self.lock)?);
        }
        Ok(())
    }
}

/// Calls `read`, which opens the table at `path`, until no write overlaps; after about a second
/// once more in any case.
///
/// # Errors
/// Those of `read`.
pub fn between_writes<T>(path: &Path, read: impl Fn() -> Result<T>) -> Result<T> {
    if path.is_dir()
        && let Ok(mut watch) = Watch::new(path)
    {
        for _ in 0..READ_TRIES {
            if let Snapshot::Consistent(value) = watch.snapshot_of(&read)? {
                return Ok(value);
            }
            std::thread::sleep(READ_PAUSE);
        }
    }
    read()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::os::{LockKind, try_lock, unlock};

    struct Scene {
        directory: tempfile::TempDir,
        writer: File,
        watch: Watch,
    }

    impl Scene {
        /// All files are of this age.
        fn new(age: Duration) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let source = ctds_hdf5_testing::testdata().join("strings_boundaries/StandardStMan_256.tab");
            for entry in std::fs::read_dir(source).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
            }
            let lock = directory.path().join("table.lock");
            let writer = File::options().read(true).write(true).open(lock).unwrap();
            let mut scene = Scene { watch: Watch::new(directory.path()).unwrap(), directory, writer };
            scene.watch.clock = Clock::standing();
            let time = scene.watch.clock.date() - age;
            for name in ["table.dat", "table.info", "table.f0", "table.lock"] {
                scene.touch(name, time);
            }
            scene
        }

        fn touch(&self, name: &str, time: SystemTime) {
            File::options().write(true).open(self.directory.path().join(name)).unwrap().set_modified(time).unwrap();
        }

        fn lock(&self) {
            assert!(try_lock(&self.writer, LockKind::Write, lock::DATA_BYTE).unwrap());
        }

        fn unlock(&self) {
            unlock(&self.writer, lock::DATA_BYTE).unwrap();
        }

        fn snapshot(&mut self) -> Snapshot<u64> {
            self.watch.snapshot(|table| Ok(table.rows())).unwrap()
        }
    }

    const LONG_AGO: Duration = Duration::from_secs(60);

    #[test]
    fn quiet_table_gives_a_consistent_read() {
        let mut scene = Scene::new(LONG_AGO);
        assert!(matches!(scene.snapshot(), Snapshot::Consistent(rows) if rows > 0));
        let rows = scene.watch.sync().unwrap().unwrap().rows;
        assert!(matches!(scene.snapshot(), Snapshot::Consistent(found) if found == rows));
        // also right after a change: no process holds the lock
        scene.touch("table.f0", SystemTime::now());
        assert!(matches!(scene.snapshot(), Snapshot::Consistent(_)));
        assert!(!scene.watch.is_in_use().unwrap());
    }

    #[test]
    fn two_that_wait_for_the_end_do_not_wait_for_each_other() {
        let scene = Scene::new(LONG_AGO);
        let other = Watch::new(&scene.watch.path).unwrap();
        assert!(scene.watch.is_in_use().unwrap(), "the other one may be writing");
        assert!(!other.is_in_use().unwrap(), "the first waits only");
        assert!(!scene.watch.is_in_use().unwrap());
    }

    #[test]
    fn sure_when_the_lock_is_kept_after_a_flush() {
        let mut scene = Scene::new(LONG_AGO);
        scene.touch("table.lock", SystemTime::now() - LONG_AGO / 2);
        scene.lock();
        assert!(matches!(scene.snapshot(), Snapshot::Consistent(_)));
    }

    #[test]
    fn busy_when_something_was_written_since_the_flush() {
        let mut scene = Scene::new(LONG_AGO);
        scene.lock();
        scene.touch("table.f0", SystemTime::now() - LONG_AGO / 2);
        assert!(matches!(scene.snapshot(), Snapshot::WriterActive));
        // another program's request changes the time of the lock file, not the sync record
        scene.touch("table.lock", SystemTime::now() - LONG_AGO / 4);
        assert!(matches!(scene.snapshot(), Snapshot::WriterActive));
        scene.unlock();
        assert!(matches!(scene.snapshot(), Snapshot::Consistent(_)));
    }

    #[test]
    fn inconsistent_read_under_lock_is_unconfirmed() {
        let mut scene = Scene::new(LONG_AGO);
        let path = scene.directory.path().join("table.f0");
        std::fs::write(&path, b"half of it").unwrap();
        scene.touch("table.f0", SystemTime::now() - LONG_AGO / 2);
        // after the flush, as a request for the lock makes it seem
        scene.touch("table.lock", SystemTime::now() - LONG_AGO / 4);
        let cell = |table: &Table| table.cells(0).and_then(|cells| cells.cell_shape(0)).map(drop);
        scene.lock();
        assert!(matches!(scene.watch.snapshot(cell).unwrap(), Snapshot::Unconfirmed(Err(_))));
        assert!(matches!(scene.watch.snapshot(|_| Ok(1)).unwrap(), Snapshot::Consistent(1)));
        scene.unlock();
        assert!(scene.watch.snapshot(cell).is_err());
    }

    #[test]
    fn doubtful_in_the_tick_of_the_flush() {
        for (age, is_sure) in [
            (Duration::from_millis(100), false),
            (LONGEST_WRITE_PAUSE - CLOCK_TICK, false),
            (LONGEST_WRITE_PAUSE, true),
        ] {
            let mut scene = Scene::new(LONG_AGO);
            let time = scene.watch.clock.date() - age;
            scene.touch("table.f0", time);
            scene.touch("table.lock", time);
            scene.lock();
            assert_eq!(matches!(scene.snapshot(), Snapshot::Consistent(_)), is_sure);
            assert_eq!(matches!(scene.snapshot(), Snapshot::Unconfirmed(Ok(_))), !is_sure);
        }
    }

    #[test]
    fn change_during_a_read_is_unconfirmed() {
        let mut scene = Scene::new(LONG_AGO);
        let path = scene.directory.path().join("table.f0");
        let change = |_: &Table| {
            let file = File::options().write(true).open(&path)?;
            Ok(file.set_modified(SystemTime::now())?)
        };
        assert!(matches!(scene.watch.snapshot(change).unwrap(), Snapshot::Unconfirmed(Ok(()))));
        // another process takes the lock in the tick of the last change: its writes would not show
        let begin = |_: &Table| {
            scene.lock();
            Ok(())
        };
        scene.touch("table.f0", SystemTime::now() + LONG_AGO);
        let mut watch = Watch::new(scene.directory.path()).unwrap();
        assert!(matches!(watch.snapshot(begin).unwrap(), Snapshot::Unconfirmed(Ok(()))));
    }

    #[test]
    fn a_record_that_is_being_written_is_waited_for() {
        let scene = Scene::new(LONG_AGO);
        scene.writer.write_all_at(&[0xff; 16], SYNC_OFFSET + 4).unwrap();
        scene.lock();
        assert!(scene.watch.sync().unwrap().is_none());
        scene.unlock();
        assert!(scene.watch.sync().is_err());
        scene.writer.set_len(SYNC_OFFSET).unwrap();
        assert!(scene.watch.sync().unwrap().is_none());
    }

    #[test]
    fn busy_writer_gets_a_lock_request() {
        let mut scene = Scene::new(LONG_AGO);
        let list = |scene: &Scene| std::fs::read(scene.directory.path().join("table.lock")).unwrap()[3];
        scene.lock();
        scene.touch("table.f0", SystemTime::now() - LONG_AGO / 2);
        assert!(matches!(scene.snapshot(), Snapshot::WriterActive));
        assert_eq!(list(&scene), 0);
        scene.watch.clock.advance(LOCK_REQUEST_DELAY - Duration::from_millis(1));
        assert!(matches!(scene.snapshot(), Snapshot::WriterActive));
        assert_eq!(list(&scene), 0);
        scene.watch.clock.advance(Duration::from_millis(1));
        assert!(matches!(scene.snapshot(), Snapshot::WriterActive));
        assert_eq!(list(&scene), 1);
        scene.unlock();
        assert!(matches!(scene.snapshot(), Snapshot::Consistent(_)));
        assert_eq!(list(&scene), 0, "the request is withdrawn");
    }
}
