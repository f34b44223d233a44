//! Ledgers of `h5bridge batch` and `h5bridge shard`: directories in which each process appends the
//! results of its items (jobs) to a file of its own.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::{Context, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::item::Id;
use super::manifest::{LONGEST_LINE, Manifest, each_line};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// No attempt is recorded.
    Waiting,
    /// The reason may pass, such as a lock: another attempt follows, now or in the next run.
    Retry,
    /// The reason, such as a damaged source, stays: no attempt unless told to (`--again`).
    Failed,
    /// A signal ended the child process in the last attempt of the run: repeated only if told to.
    Killed,
    /// The existing target is not the output of this item, or of a source that has changed since.
    Conflict,
    /// An earlier run of this item made the target.
    Skipped,
    Done,
}

impl State {
    /// Ordered as in summaries and reports.
    pub(crate) const ALL: [State; 7] =
        [State::Done, State::Skipped, State::Waiting, State::Retry, State::Failed, State::Killed, State::Conflict];

    /// Word in ledgers, such as `done`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Retry => "retry",
            State::Failed => "failed",
            State::Killed => "killed",
            State::Conflict => "conflict",
            State::Skipped => "skipped",
            State::Done => "done",
        }
    }

    /// Now or in an earlier run.
    pub(crate) fn is_finished(self) -> bool {
        matches!(self, State::Done | State::Skipped)
    }

    pub(crate) fn is_final_failure(self) -> bool {
        matches!(self, State::Failed | State::Killed | State::Conflict)
    }
}

/// One attempt at an item of a batch or of a shard plan: a line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: Id,
    pub(crate) state: State,
    /// Counts from 1 in each `batch run`; `shard` continues from the item's latest known record.
    pub(crate) attempt: u32,
    /// Exit code; 128 plus the number of a signal.
    #[serde(default)]
    pub(crate) code: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    pub(crate) seconds: f64,
    /// Size of the source.
    pub(crate) bytes: u64,
    /// Size of the target, if one was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file_bytes: Option<u64>,
    /// CTFP-2 of the main table, or in `h5bridge shard` the hash of the bytes written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    pub(crate) host: String,
    /// End of the attempt, in seconds since 1970.
    pub(crate) time: f64,
    pub(crate) version: String,
}

/// Seconds since 1970, UTC.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

/// `localhost` if it is not known.
pub(crate) fn host() -> String {
    nix::unistd::gethostname().map_or_else(|_| "localhost".into(), |name| name.to_string_lossy().into_owned())
}

/// This process's file in the ledger, a directory with one for each process.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: Mutex<File>,
}

impl Ledger {
    /// Makes the directory if it is missing.
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        let at = |error: std::io::Error| Error::from(error).context(Context::Path(directory.to_owned()));
        fs::create_dir_all(directory).map_err(at)?;
        let (host, process) = (host().replace('/', "_"), std::process::id());
        let start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos();
        let path = directory.join(format!("{host}-{process}-{start}.ndjson"));
        let file = File::options().append(true).create_new(true).open(&path).map_err(at)?;
        Ok(Ledger { path, file: Mutex::new(file) })
    }

    /// Appends a line with one call of the system; after an error nothing may be written any more.
    pub(crate) fn append(&self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record).expect("a record is valid JSON");
        line.push(b'\n');
        self.file.lock_unpoisoned().write_all(&line).map_err(|error| Error::from(error).context(self.path.as_path()))
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // a run that had nothing to do leaves no file
        if self.file.lock_unpoisoned().metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Fields of the newest line of an item, decided by `time`, and for equal times by `state`.
#[derive(Deserialize)]
struct Line {
    id: Id,
    state: State,
    time: f64,
    #[serde(default)]
    code: i32,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    file_bytes: Option<u64>,
    #[serde(default)]
    warnings: Vec<serde::de::IgnoredAny>,
}

/// An item's last record, shortened, and where its whole line is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    pub(crate) state: State,
    pub(crate) code: i32,
    pub(crate) seconds: f32,
    pub(crate) file_bytes: u64,
    pub(crate) warned: bool,
    time: f64,
    file: u32,
    length: u32,
    offset: u64,
}

/// Last records of all items of a manifest, from all files of a ledger.
#[derive(Debug)]
pub(crate) struct Folded {
    files: Vec<PathBuf>,
    items: Vec<Last>,
    /// Lines that are not records; an incomplete last line of a file does not count.
    pub(crate) unreadable: u64,
    /// Start of the earliest attempt and end of the latest, in seconds since 1970.
    pub(crate) span: Option<(f64, f64)>,
}

impl Folded {
    pub(crate) fn empty(manifest: &Manifest) -> Self {
        let none = Last {
            state: State::Waiting,
            code: 0,
            seconds: 0.,
            file_bytes: 0,
            warned: false,
            time: f64::NEG_INFINITY,
            file: 0,
            length: 0,
            offset: 0,
        };
        Folded { files: Vec::new(), items: vec![none; manifest.len()], unreadable: 0, span: None }
    }

    /// A missing directory has no records; `Format` for a line longer than 1 MiB.
    pub(crate) fn read(directory: &Path, manifest: &Manifest) -> Result<Self> {
        let mut folded = Folded { files: ledger_files(directory)?, ..Self::empty(manifest) };
        for number in 0..folded.files.len() {
            let path = folded.files[number].clone();
            folded.read_file(number, manifest).map_err(|error| error.context(path.as_path()))?;
        }
        Ok(folded)
    }

    fn read_file(&mut self, number: usize, manifest: &Manifest) -> Result<()> {
        let file = number as u32;
        let mut reader = BufReader::with_capacity(1 << 18, File::open(&self.files[number])?);
        let mut offset = 0;
        each_line(&mut reader, |_, bytes| {
            let (at, length) = (offset, bytes.len() as u32);
            offset += bytes.len() as u64;
            let Ok(line) = serde_json::from_slice::<Line>(bytes) else {
                // a process that was killed, or is writing, leaves an incomplete last line
                self.unreadable += u64::from(bytes.ends_with(b"\n") && !bytes.trim_ascii().is_empty());
                return Ok(());
            };
            let Some(item) = manifest.find(line.id) else { return Ok(()) };
            let (first, last) = self.span.unwrap_or((line.time, line.time));
            self.span = Some((first.min(line.time - line.seconds), last.max(line.time)));
            let old = self.items[item];
            let Line { state, code, seconds, file_bytes, time, warnings, .. } = line;
            if (time, state) > (old.time, old.state) {
                let (seconds, file_bytes) = (seconds as f32, file_bytes.unwrap_or(0));
                let warned = !warnings.is_empty();
                self.items[item] = Last { state, code, seconds, file_bytes, warned, time, file, length, offset: at };
            }
            Ok(())
        })
    }

    /// `Waiting` without a record.
    pub(crate) fn last(&self, item: usize) -> Last {
        self.items[item]
    }

    pub(crate) fn state(&self, item: usize) -> State {
        self.items[item].state
    }

    /// `visit` gets `None` for an item without a record; `Format` if a file has changed other than
    /// by appending.
    pub(crate) fn records(
        &self,
        items: impl Iterator<Item = usize>,
        mut visit: impl FnMut(usize, Option<Record>) -> Result<()>,
    ) -> Result<()> {
        let mut open: Option<(u32, File)> = None;
        for item in items {
            let Last { state, file, length, offset, .. } = self.items[item];
            if state == State::Waiting {
                visit(item, None)?;
                continue;
            }
            let path = &self.files[file as usize];
            let read = || -> Result<Record> {
                if open.as_ref().is_none_or(|(number, _)| *number != file) {
                    open = Some((file, File::open(path)?));
                }
                let mut line = vec![0; (length as usize).min(LONGEST_LINE)];
                if let Some((_, opened)) = &mut open {
                    opened.seek(SeekFrom::Start(offset))?;
                    opened.read_exact(&mut line)?;
                }
                serde_json::from_slice(&line)
                    .map_err(|error| Error::new(ErrorKind::Format, format!("the line is not a record: {error}")))
            };
            let mut read = read;
            visit(item, Some(read().map_err(|error| error.context(path.as_path()))?))?;
        }
        Ok(())
    }
}

fn ledger_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let at = |error: std::io::Error| Error::from(error).context(Context::Path(directory.to_owned()));
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(at)?.path();
        if path.extension().is_some_and(|extension| extension == "ndjson") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::item::Item;

    fn record(id: Id, state: State, time: f64) -> Record {
        Record {
            id,
            state,
            attempt: 1,
            code: 0,
            error: None,
            seconds: 1.,
            bytes: 5,
            file_bytes: Some(3),
            digest: None,
            warnings: Vec::new(),
            host: host(),
            time,
            version: "0".into(),
        }
    }

    #[test]
    fn the_newest_record_of_all_files_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.ndjson");
        let items: Vec<Item> =
            ["/a", "/b", "/c"].map(|source| Item::new("verify".into(), source.into(), None, Vec::new(), 5)).into();
        let lines: Vec<String> = items.iter().map(|item| serde_json::to_string(item).unwrap()).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        let manifest = Manifest::open(&path).unwrap();
        let directory = folder.path().join("ledger");
        let (one, two) = (Ledger::create(&directory).unwrap(), Ledger::create(&directory).unwrap());
        drop(Ledger::create(&directory).unwrap());
        one.append(&record(items[0].id, State::Done, 9.)).unwrap();
        one.append(&record(items[1].id, State::Retry, 7.)).unwrap();
        two.append(&record(items[1].id, State::Failed, 8.)).unwrap();
        two.append(&record(items[0].id, State::Retry, 6.)).unwrap();
        two.append(&record(Id(7), State::Done, 6.)).unwrap();
        // a torn line at the end, and damage in the middle
        fs::write(directory.join("x.ndjson"), format!("{{\"id\"\n{{\"id\":\"{}\",\"sta", items[2].id)).unwrap();
        let folded = Folded::read(&directory, &manifest).unwrap();
        let states: Vec<State> = (0..3).map(|item| folded.state(item)).collect();
        assert_eq!(states, [State::Done, State::Failed, State::Waiting]);
        assert_eq!((folded.unreadable, folded.span, folded.files.len()), (1, Some((5., 9.)), 3));
        let mut found = Vec::new();
        folded
            .records(0..3, |item, record| {
                found.push((item, record.map(|record| record.state)));
                Ok(())
            })
            .unwrap();
        assert_eq!(found, [(0, Some(State::Done)), (1, Some(State::Failed)), (2, None)]);
    }
}
