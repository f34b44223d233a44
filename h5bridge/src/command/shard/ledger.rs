//! The results of items: a directory in which each process appends to a file of its own, so that no locks are needed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ctds_hdf5::convert::{ShardItem, ShardResult};
use ctds_hdf5::{Context, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::exit::Status;

/// Bytes of an unfinished line that are read again at most.
const LONGEST_LINE: u64 = 1 << 16;

/// State of an item after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// The bytes of the item are written.
    Done,
    /// The attempt failed for a reason that may pass.
    Retry,
    /// The attempt failed, or bytes that were written are damaged.
    Failed,
}

/// A line of a ledger.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) state: State,
    /// Number of the attempt, counted from 1.
    pub(super) attempt: u32,
    /// Exit code that stands for the failure.
    pub(super) code: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) seconds: f64,
    /// Bytes of the elements, uncompressed.
    pub(super) bytes: u64,
    /// Bytes written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file_bytes: Option<u64>,
    /// SHA-256 of the bytes written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    host: String,
    /// End of the attempt in seconds since 1970.
    time: f64,
    /// Version of the program.
    version: String,
}

impl Record {
    /// The result, if the item is done.
    pub(super) fn result(&self) -> Option<ShardResult> {
        let (file_bytes, sha256) = (self.file_bytes?, self.digest.clone()?);
        (self.state == State::Done).then_some(ShardResult { file_bytes, sha256 })
    }
}

/// The last record of each item, and the files that they are in.
#[derive(Debug)]
pub(super) struct Ledger {
    directory: PathBuf,
    /// Bytes read of each file.
    read: HashMap<PathBuf, u64>,
    last: HashMap<String, Record>,
    /// The file of this process, once it has recorded something.
    own: Option<File>,
}

impl Ledger {
    /// Reads all records in a directory.
    pub(super) fn open(directory: PathBuf) -> Result<Self> {
        let mut ledger = Ledger { directory, read: HashMap::new(), last: HashMap::new(), own: None };
        ledger.refresh()?;
        Ok(ledger)
    }

    /// Reads what processes have recorded since the last call.
    pub(super) fn refresh(&mut self) -> Result<()> {
        let place = Context::Path(self.directory.clone());
        for entry in fs::read_dir(&self.directory).map_err(|error| Error::from(error).context(place))? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "ndjson") {
                self.read_file(&path).map_err(|error| error.context(path.as_path()))?;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<()> {
        let start = self.read.get(path).copied().unwrap_or(0);
        let mut file = File::open(path)?;
        if file.metadata()?.len() <= start {
            return Ok(());
        }
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // a process may have been killed, or be in the middle of a line
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        if (bytes.len() - whole) as u64 > LONGEST_LINE {
            return Err(Error::new(ErrorKind::Format, "the file is not a ledger: a line does not end"));
        }
        for line in bytes[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            // what a failing disk has left of a line says nothing about an item
            let Ok(record) = serde_json::from_slice::<Record>(line) else { continue };
            let is_later = self.last.get(&record.id).is_none_or(|known| record.time >= known.time);
            if is_later {
                self.last.insert(record.id.clone(), record);
            }
        }
        self.read.insert(path.to_owned(), start + whole as u64);
        Ok(())
    }

    /// The last record of an item.
    pub(super) fn last(&self, id: &str) -> Option<&Record> {
        self.last.get(id)
    }

    /// Whether an item is done.
    pub(super) fn is_done(&self, id: &str) -> bool {
        self.last(id).is_some_and(|record| record.state == State::Done)
    }

    /// Results of the items that are done.
    pub(super) fn results(&self) -> impl Iterator<Item = (String, ShardResult)> {
        self.last.values().filter_map(|record| Some((record.id.clone(), record.result()?)))
    }

    /// Records the end of an attempt.
    pub(super) fn append(&mut self, item: &ShardItem, result: &Result<ShardResult>, seconds: f64) -> Result<()> {
        let (state, code, error) = match result {
            Ok(_) => (State::Done, Status::Done, None),
            Err(error) => {
                let passes = matches!(error.kind(), ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::Locked);
                let state = if passes { State::Retry } else { State::Failed };
                (state, Status::of_kind(error.kind()), Some(error.to_string()))
            }
        };
        let known = self.last(&item.id);
        let record = Record {
            id: item.id.clone(),
            state,
            attempt: known.map_or(0, |record| record.attempt).saturating_add(1),
            code: code.code(),
            error,
            seconds,
            bytes: item.bytes,
            file_bytes: result.as_ref().ok().map(|result| result.file_bytes),
            digest: result.as_ref().ok().map(|result| result.sha256.clone()),
            host: host(),
            // clocks of hosts differ: a new record follows the ones that this process knows
            time: since_1970().as_secs_f64().max(known.map_or(0.0, |record| record.time)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let mut line = serde_json::to_vec(&record).map_err(std::io::Error::from)?;
        line.push(b'\n');
        let own = match &mut self.own {
            Some(own) => own,
            none => none.insert(create(&self.directory)?),
        };
        own.write_all(&line)?;
        own.sync_data()?;
        self.last.insert(record.id.clone(), record);
        Ok(())
    }
}

/// Makes the file of this process.
fn create(directory: &Path) -> Result<File> {
    let name = format!("{}-{}-{}.ndjson", host(), std::process::id(), since_1970().as_nanos());
    let path = directory.join(name);
    File::options()
        .append(true)
        .create_new(true)
        .open(&path)
        .map_err(|error| Error::from(error).context(path.as_path()))
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Name of this host.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().replace('/', "_");
    if name.is_empty() { "localhost".to_owned() } else { name }
}
