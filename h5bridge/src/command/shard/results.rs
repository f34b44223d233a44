//! Results of the items of a shard plan. They are recorded in a ledger, a directory in which each
//! process appends to a file of its own.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ctds_hdf5::convert::{Hash, HashKind, ShardItem, ShardResult};
use ctds_hdf5::{Context, Error, ErrorKind, Result};

use crate::batch::{Id, Ledger, Record, State, host, now};
use crate::exit::Status;

/// Most bytes after the last line end of a file; one with more is not a ledger file and is refused.
const LONGEST_LINE: usize = 1 << 16;

/// The last record of each item: whether it was written or failed, and the hash of its bytes.
#[derive(Debug)]
pub(super) struct Results {
    directory: PathBuf,
    /// Bytes of each file of the ledger that have been read.
    read: HashMap<PathBuf, u64>,
    last: HashMap<String, Record>,
    /// The file of this process; `None` until it has recorded a result.
    own: Option<Ledger>,
}

impl Results {
    pub(super) fn open(directory: PathBuf) -> Result<Self> {
        let mut results = Results { directory, read: HashMap::new(), last: HashMap::new(), own: None };
        results.refresh()?;
        Ok(results)
    }

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
        if bytes.len() - whole > LONGEST_LINE {
            return Err(Error::new(ErrorKind::Format, "the file is not a ledger: a line does not end"));
        }
        for line in bytes[..whole].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            // a line that a failing disk has cut off says nothing about an item
            let Ok(record) = serde_json::from_slice::<Record>(line) else { continue };
            let id = record.id.to_string();
            if self.last.get(&id).is_none_or(|known| record.time >= known.time) {
                self.last.insert(id, record);
            }
        }
        self.read.insert(path.to_owned(), start + whole as u64);
        Ok(())
    }

    /// The latest result, a success or a failure.
    pub(super) fn last(&self, item: &ShardItem) -> Option<&Record> {
        self.last.get(&item.id)
    }

    /// Size and hash of the bytes written; `None` if the item is not done.
    pub(super) fn of(&self, item: &ShardItem) -> Option<ShardResult> {
        self.last(item).and_then(result)
    }

    pub(super) fn is_done(&self, item: &ShardItem) -> bool {
        self.last(item).is_some_and(|record| record.state == State::Done)
    }

    /// Identifier and result of each item that is done.
    pub(super) fn all(&self) -> impl Iterator<Item = (String, ShardResult)> {
        self.last.iter().filter_map(|(id, record)| Some((id.clone(), result(record)?)))
    }

    pub(super) fn append(&mut self, item: &ShardItem, result: &Result<ShardResult>, seconds: f64) -> Result<()> {
        let (state, code, error) = match result {
            Ok(_) => (State::Done, Status::Done, None),
            Err(error) => {
                let state = if may_pass(error) { State::Retry } else { State::Failed };
                (state, Status::of_kind(error.kind()), Some(error.to_string()))
            }
        };
        let id = item.id.parse::<Id>().map_err(|message| Error::new(ErrorKind::Format, message))?;
        let known = self.last(item);
        let record = Record {
            id,
            state,
            attempt: known.map_or(0, |record| record.attempt).saturating_add(1),
            code: code.code().into(),
            error,
            seconds,
            bytes: item.bytes,
            file_bytes: result.as_ref().ok().map(|result| result.file_bytes),
            digest: result.as_ref().ok().map(|result| digest_text(&result.hash)),
            warnings: Vec::new(),
            host: host(),
            // clocks of hosts differ: a new record follows the ones that this process knows
            time: now().max(known.map_or(0.0, |record| record.time)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let own = match &mut self.own {
            Some(own) => own,
            none => none.insert(Ledger::create(&self.directory)?),
        };
        own.append(&record)?;
        self.last.insert(item.id.clone(), record);
        Ok(())
    }
}

/// Whether another attempt may succeed: I/O errors, a full disk, locked files.
pub(super) fn may_pass(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::Locked)
}

/// `None` if the attempt has failed.
fn result(record: &Record) -> Option<ShardResult> {
    let (file_bytes, hash) = (record.file_bytes?, hash_of(record.digest.as_deref()?)?);
    (record.state == State::Done).then_some(ShardResult { file_bytes, hash })
}

/// `blake3:` and hexadecimal digits. Older programs recorded the digits of a SHA-256 alone.
fn digest_text(hash: &Hash) -> String {
    format!("{}:{hash}", hash.kind().name())
}

fn hash_of(text: &str) -> Option<Hash> {
    let (kind, digits) = text.split_once(':').unwrap_or((HashKind::Sha256.name(), text));
    Hash::parse(kind.parse().ok()?, digits)
}
