//! A store on disk that others read and add to through the protocol.
//!
//! The archives of a store are beside it, under the names that the original gives them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ctds::container::{Container, Directory};
use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds::limits;
use ctds::sync::LockUnpoisoned;

use super::append::{Adding, Appender, KIND, record};
use super::blocks::Blocks;
use super::hash::{BlockHash, HashKind};
use super::in_file::{AppenderInFile, DataInFile};
use super::index::{Entry, Growing, HashKey, key_of};
use super::protocol::HashRange;
use super::records::LARGEST_BLOCK;
use super::source::Source;
use super::store::{DATA, Store};
use super::update::append_line;

/// A vt store on disk, open for reading and adding.
///
/// Blocks that are added are in a data file of their own, which no other process writes.
pub struct StoreOnDisk {
    /// Where the archives are.
    folder: PathBuf,
    name: String,
    state: Mutex<State>,
}

struct State {
    /// `None` after [`StoreOnDisk::close`].
    appender: Option<Box<dyn Adding>>,
    /// Added blocks by hashes of other kinds than [`KIND`].
    others: HashMap<HashKind, Growing>,
}

impl StoreOnDisk {
    /// Opens the store in the directory `path`, which gets a directory `data` if it has none.
    ///
    /// # Errors
    /// `NotFound` if the directory is missing, `Limit` for a store that is too large; `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let open = || {
            let path = path.canonicalize()?;
            fs::create_dir_all(path.join(DATA))?;
            let appender = Appender::new(Store::open(&Directory::new(&path))?, path.clone());
            Ok::<_, Error>(Self::beside_archives(&path, path.file_name(), Box::new(appender)))
        };
        open().with_context(|| Context::path(path))
    }

    /// The store in the file `path`, such as an HDF5 file, which as the container `inside` has the
    /// data file `file` in its directory `data`.
    ///
    /// # Errors
    /// `Limit` for a store that is too large; those of reading it.
    pub fn in_file(path: impl AsRef<Path>, inside: &dyn Container, file: Box<dyn DataInFile>) -> Result<Self> {
        let path = path.as_ref();
        let open = || {
            let path = path.canonicalize()?;
            let appender = AppenderInFile::new(Store::open(inside)?, path.parent().unwrap_or(&path), file);
            Ok::<_, Error>(Self::beside_archives(&path, path.file_stem(), Box::new(appender)))
        };
        open().with_context(|| Context::path(path))
    }

    fn beside_archives(path: &Path, name: Option<&OsStr>, appender: Box<dyn Adding>) -> Self {
        let name = name.and_then(OsStr::to_str).unwrap_or_default().to_owned();
        let folder = path.parent().unwrap_or(path).to_owned();
        StoreOnDisk { folder, name, state: Mutex::new(State { appender: Some(appender), others: HashMap::new() }) }
    }

    /// Makes the blocks durable and updates the index of the store. The store answers no longer.
    ///
    /// # Errors
    /// `Io`, `NoSpace`: the blocks that were flushed before are kept.
    pub fn close(&self) -> Result<()> {
        match self.state.lock_unpoisoned().appender.take() {
            Some(appender) => appender.finish().with_context(|| Context::path(self.folder.join(&self.name))),
            None => Ok(()),
        }
    }

    /// The original has `STORE.vt` for the empty name, `STORE-NAME.vt` for another, without dots;
    /// `NAME.vt` is an archive of any name beside the store.
    fn archive_path(&self, name: &str) -> Result<PathBuf> {
        let store = &self.name;
        let file = match name.strip_suffix(".vt") {
            Some(_) => name.to_owned(),
            None if name.is_empty() => format!("{store}.vt"),
            None => format!("{store}-{name}.vt"),
        };
        let is_plain = !file.starts_with('.') && !file.contains(['/', '\\']) && !file.contains(char::is_control);
        let has_dot = name.strip_suffix(".vt").is_none() && name.contains('.');
        if !is_plain || has_dot || file.len() > LONGEST_NAME {
            let shown: String = name.chars().take(LONGEST_NAME).collect();
            let message =
                format!("{shown:?} is not the name of an archive: expected NAME, or NAME.vt beside the store");
            return Err(Error::usage(message));
        }
        Ok(self.folder.join(file))
    }
}

/// Longest name of a file, in bytes.
const LONGEST_NAME: usize = 255;

fn closed() -> Error {
    Error::new(ErrorKind::Interrupted, "the store is closed")
}

impl State {
    fn appender(&mut self) -> Result<&mut Box<dyn Adding>> {
        self.appender.as_mut().ok_or_else(closed)
    }

    /// Offset of a block in the data file of this process.
    fn offset(&self, hash: &BlockHash) -> Result<Option<u64>> {
        self.added(hash.kind()).map_or(Ok(None), |added| added.find(hash))
    }

    /// Blocks of this kind of hash that were added.
    fn added(&self, kind: HashKind) -> Option<&Growing> {
        match kind {
            KIND => self.appender.as_ref().map(|appender| appender.written()),
            kind => self.others.get(&kind),
        }
    }
}

/// An entry, and whether its block is in the data file of this process.
type Located = (Entry, bool);

type Sorted<'a> = Box<dyn Iterator<Item = Result<Located>> + 'a>;

/// Merges entries that are sorted by the first bytes of hashes; of equal ones the first stays.
struct Merged<'a> {
    sources: Vec<Sorted<'a>>,
    heads: Vec<Option<Located>>,
    is_descending: bool,
    last: Option<HashKey>,
}

impl<'a> Merged<'a> {
    fn new(mut sources: Vec<Sorted<'a>>, is_descending: bool) -> Result<Self> {
        let heads = sources.iter_mut().map(|source| source.next().transpose()).collect::<Result<_>>()?;
        Ok(Merged { sources, heads, is_descending, last: None })
    }

    fn next(&mut self) -> Result<Option<Located>> {
        loop {
            let heads = self.heads.iter().enumerate().filter_map(|(at, head)| Some((at, (*head)?)));
            let next = match self.is_descending {
                false => heads.min_by_key(|(_, (entry, _))| entry.key()),
                true => heads.max_by_key(|(_, (entry, _))| entry.key()),
            };
            let Some((at, located)) = next else { return Ok(None) };
            self.heads[at] = self.sources[at].next().transpose()?;
            if self.last.replace(located.0.key()) != Some(located.0.key()) {
                return Ok(Some(located));
            }
        }
    }
}

impl Blocks for StoreOnDisk {
    fn get(&self, hash: &BlockHash) -> Result<Option<Arc<Vec<u8>>>> {
        let mut state = self.state.lock_unpoisoned();
        if let Some(offset) = state.offset(hash)? {
            return Ok(Some(Arc::new(state.appender()?.read(offset)?)));
        }
        let appender = state.appender()?;
        if !appender.store().contains(hash)? {
            // another process may have added the block since
            appender.refresh()?;
        }
        let store = appender.store().clone();
        drop(state);
        if store.contains(hash)? { store.block(hash).map(Some) } else { Ok(None) }
    }

    fn contains(&self, hash: &BlockHash) -> Result<bool> {
        let mut state = self.state.lock_unpoisoned();
        Ok(state.offset(hash)?.is_some() || state.appender()?.store().contains(hash)?)
    }

    fn add(&self, kind: HashKind, block: &[u8]) -> Result<BlockHash> {
        if block.len() > LARGEST_BLOCK {
            return Err(Error::limit(format!("a block of {} bytes; the limit is {LARGEST_BLOCK}", block.len())));
        }
        let hash = kind.hash(block);
        if self.contains(&hash)? {
            return Ok(hash);
        }
        let (named, encoded) = (if kind == KIND { hash } else { KIND.hash(block) }, record(block));
        let mut state = self.state.lock_unpoisoned();
        if state.offset(&named)?.is_none() {
            state.appender()?.add(&named, encoded)?;
        }
        if kind != KIND
            && let Some(offset) = state.offset(&named)?
        {
            state.others.entry(kind).or_insert_with(|| Growing::new(&self.folder)).add(&hash, offset)?;
        }
        Ok(hash)
    }

    fn flush(&self) -> Result<()> {
        self.state.lock_unpoisoned().appender()?.sync()
    }

    fn hashes(&self, range: &HashRange, each: &mut dyn FnMut(&BlockHash) -> Result<()>) -> Result<()> {
        let state = self.state.lock_unpoisoned();
        let appender = state.appender.as_ref().ok_or_else(closed)?;
        let (first, is_descending) = (range.first.as_ref().map(key_of), range.is_descending);
        let known = appender.store().known(range.kind)?;
        let recent = state.added(range.kind).map(Growing::recent).unwrap_or_default();
        let mut sources: Vec<Sorted<'_>> = Vec::new();
        for entries in known.sorted(first, is_descending)? {
            sources.push(Box::new(entries.map(|entry| entry.map(|entry| (entry, false)))));
        }
        for run in state.added(range.kind).map(Growing::runs).unwrap_or_default() {
            sources.push(Box::new(run.from(first, is_descending)?.map(|entry| entry.map(|entry| (entry, true)))));
        }
        sources.push(Box::new(recent.from(first, is_descending).map(|entry| Ok((entry, true)))));
        let mut entries = Merged::new(sources, is_descending)?;
        let mut left = range.most.unwrap_or(u64::MAX);
        while left > 0
            && let Some((entry, is_added)) = entries.next()?
        {
            // an index has the first bytes of a hash only
            let block =
                if is_added { appender.read(entry.place.offset()) } else { appender.store().block_at(entry.place) };
            let hash = range.kind.hash(&block?);
            if !(range.is_after && range.first == Some(hash)) {
                each(&hash)?;
                left -= 1;
            }
        }
        Ok(())
    }

    fn archive(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.archive_path(name)?;
        let read = || {
            limits::whole_file(fs::metadata(&path)?.len())?;
            Ok::<_, Error>(fs::read(&path)?)
        };
        match read() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            read => read.with_context(|| Context::path(&path)),
        }
    }

    fn append(&self, archive: &str, line: &str) -> Result<()> {
        let path = self.archive_path(archive)?;
        self.flush()?;
        append_line(&path, line).map(drop).with_context(|| Context::path(&path))
    }
}
