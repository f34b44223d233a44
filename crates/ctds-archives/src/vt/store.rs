//! The data files of the stores beside an archive, and the blocks in them. An index file says where
//! the blocks of data files are; data files, or ends of them, that no index file covers are
//! scanned. Data files are numbered from 0.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use ctds::container::Container;
use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds::io::{ReadAt, Recent};
use ctds::sync::LockUnpoisoned;

use super::hash::{BlockHash, HashKind};
use super::index::{Entry, HashKey, Index, IndexFile, Indexed, LARGEST_FILE, MAX_FILES, Place, key_of};
use super::plain::{InFile, PlainFiles, is_platonic};
use super::records::{self, Record};
use super::source::Source;

/// Directory of a store that has its data files.
pub(super) const DATA: &str = "data";

const SUFFIX: &str = ".vtd";

/// Maximum bytes; the block read last is kept even if it is larger.
const CACHE_BYTES: usize = 8 << 20;

pub(super) fn index_name(kind: HashKind) -> String {
    format!("index-{}.h5bridge", kind.name())
}

/// Whether a directory has a directory `data` with data files.
pub(super) fn is_store(directory: &dyn Container) -> Result<bool> {
    match directory.enter(DATA) {
        Ok(data) => Ok(data.names()?.iter().any(|name| is_data_file(name))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_data_file(name: &str) -> bool {
    name.ends_with(SUFFIX) && !name.starts_with('.')
}

/// Looks at `inside` itself, with the empty name, and the directories in it, whose names end in a
/// slash; returns the data directories.
pub(super) fn find_stores(inside: &dyn Container) -> Result<Vec<(String, Arc<dyn Container>)>> {
    let mut found = Vec::new();
    if is_store(inside)? {
        // a container cannot be had of a reference to it, but its parts can
        found.push((String::new(), inside.enter(DATA)?));
    }
    for name in inside.nested()?.into_iter().filter(|name| !name.starts_with('.')) {
        let directory = inside.enter(&name)?;
        // a directory that cannot be read is not one of the store
        if is_store(&*directory).unwrap_or(false) {
            found.push((format!("{name}/"), directory.enter(DATA)?));
        }
    }
    Ok(found)
}

/// Path and data directory of each Platonic store beside archives in `inside`.
fn find_platonic(inside: &dyn Container) -> Result<Vec<(String, Arc<dyn Container>)>> {
    let mut found = Vec::new();
    for name in inside.nested()?.into_iter().filter(|name| !name.starts_with('.')) {
        let directory = inside.enter(&name)?;
        let is_one = || Ok::<_, Error>(!is_store(&*directory)? && is_platonic(&*directory)?);
        if is_one().unwrap_or(false)
            && let Ok(data) = directory.enter(DATA)
        {
            found.push((format!("{name}/{DATA}"), data));
        }
    }
    Ok(found)
}

/// One or more stores, opened for reading; a block is searched for in all of them.
#[derive(Debug)]
pub(super) struct Store {
    files: Vec<DataFile>,
    /// Files that were read last and are kept open, by index in `files`.
    opened: Recent<Opened>,
    indexes: Mutex<HashMap<HashKind, Arc<Found>>>,
    /// Kind of hash, name of the store, and the open file.
    index_files: Vec<(HashKind, String, Arc<dyn ReadAt>)>,
    plain: PlainFiles,
    cache: Mutex<Cache>,
}

#[derive(Debug)]
struct DataFile {
    /// Relative to the directory in which the stores and archives are: `store/data/x.vtd`.
    path: String,
    name: String,
    directory: Arc<dyn Container>,
    /// Length in bytes when the store was opened.
    len: u64,
}

#[derive(Debug)]
struct Opened(Arc<dyn ReadAt>);

/// Places of the blocks with one kind of hash, and the damage that scans found.
#[derive(Debug, Default)]
struct Found {
    in_files: Vec<IndexFile>,
    scanned: Index,
    /// Whether every byte of the data files was scanned, without trust in index files.
    is_complete: bool,
    /// How many bytes of each data file were scanned or are covered by an index file.
    ends: Vec<u64>,
    damage: Vec<Error>,
    /// Data files that end within a record: their writers were killed, or are still writing.
    cut_off: Vec<Error>,
}

/// Sources of a new index file: the existing one, and entries of blocks that it does not cover.
pub(super) struct Known {
    found: Arc<Found>,
    /// Each data file with the number of bytes that were scanned or indexed.
    pub(super) files: Vec<Indexed>,
    pub(super) unindexed_bytes: u64,
}

impl Known {
    pub(super) fn old(&self) -> Option<&IndexFile> {
        self.found.in_files.first()
    }

    /// Entries from `key` on in order, or in descending order; each list is sorted by itself.
    pub(super) fn sorted(
        &self,
        key: Option<HashKey>,
        is_descending: bool,
    ) -> Result<Vec<Box<dyn Iterator<Item = Result<Entry>> + '_>>> {
        let mut lists: Vec<Box<dyn Iterator<Item = Result<Entry>> + '_>> = Vec::new();
        for file in &self.found.in_files {
            lists.push(Box::new(file.from(key, is_descending)?));
        }
        lists.push(Box::new(self.found.scanned.from(key, is_descending).map(Ok)));
        Ok(lists)
    }

    /// Entries of the blocks that the index file does not cover.
    pub(super) fn scanned(&self) -> &[Entry] {
        self.found.scanned.entries()
    }
}

/// Blocks that were read last, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Cache {
    blocks: Vec<(BlockHash, Arc<Vec<u8>>)>,
    bytes: usize,
}

/// The stores that are open in this process, by path and lengths of data files. They are shared,
/// because the tables of a MeasurementSet are opened one by one.
static OPENED: Mutex<Vec<(Key, Weak<Store>)>> = Mutex::new(Vec::new());

type Key = (PathBuf, Vec<(String, u64)>);

impl Store {
    pub(super) fn open(inside: &dyn Container) -> Result<Arc<Self>> {
        Self::open_without(inside, None)
    }

    /// As [`open`](Self::open), without the data file `own`, which the caller is writing.
    pub(super) fn open_without(inside: &dyn Container, own: Option<&str>) -> Result<Arc<Self>> {
        let mut files = Vec::new();
        let mut index_files = Vec::new();
        for (store, directory) in find_stores(inside)? {
            let is_wanted = |name: &String| is_data_file(name) && Some(name.as_str()) != own;
            for name in directory.names()?.into_iter().filter(is_wanted) {
                let path = format!("{store}{DATA}/{name}");
                let len = directory.open(&name)?.len().context(Context::member(&path))?;
                if len > LARGEST_FILE {
                    let message = format!("the data file has {len} bytes; the limit is {LARGEST_FILE}");
                    return Err(Error::limit(message).context(Context::member(path)));
                }
                files.push(DataFile { path, name, directory: directory.clone(), len });
            }
            for &kind in HashKind::ALL {
                let file = match store.strip_suffix('/') {
                    Some(name) => inside.enter(name)?.open(&index_name(kind)),
                    None => inside.open(&index_name(kind)),
                };
                if let Ok(file) = file {
                    index_files.push((kind, store.clone(), file));
                }
            }
        }
        if files.len() > MAX_FILES {
            return Err(Error::limit(format!("the store has {} data files; the limit is {MAX_FILES}", files.len())));
        }
        let key = inside.path("").map(|path| {
            let files = files.iter().map(|file| (file.path.clone(), file.len));
            (path, files.collect::<Vec<_>>())
        });
        let mut opened = OPENED.lock_unpoisoned();
        opened.retain(|(_, store)| store.strong_count() > 0);
        let known = opened.iter().find(|(known, _)| Some(known) == key.as_ref());
        if let Some(store) = known.and_then(|(_, store)| store.upgrade()) {
            return Ok(store);
        }
        let store = Arc::new(Store {
            files,
            opened: Recent::new(64, 1),
            indexes: Mutex::default(),
            index_files,
            plain: PlainFiles::new(find_platonic(inside)?),
            cache: Mutex::default(),
        });
        opened.extend(key.map(|key| (key, Arc::downgrade(&store))));
        Ok(store)
    }

    /// Number of distinct blocks with hashes of this kind, as index files and a scan say. Also
    /// returns an error for each damaged record that the scan found.
    pub(super) fn survey(&self, kind: HashKind) -> Result<(u64, Vec<Error>)> {
        let found = self.found(kind)?;
        let blocks = found.in_files.iter().map(IndexFile::len).sum::<u64>() + found.scanned.len();
        Ok((blocks, found.damage.clone()))
    }

    /// Flushes to disk those data files that no index file for this kind of hash covers completely.
    pub(super) fn sync(&self, kind: HashKind) -> Result<()> {
        let found = self.found(kind)?;
        for (file, &end) in self.files.iter().zip(&found.ends) {
            let is_indexed = found
                .in_files
                .iter()
                .any(|index| index.files().iter().any(|indexed| indexed.name == file.name && indexed.bytes >= end));
            if let Some(path) = file.directory.path(&file.name).filter(|_| !is_indexed) {
                std::fs::File::open(path).and_then(|file| file.sync_data()).context(Context::member(&file.path))?;
            }
        }
        Ok(())
    }

    pub(super) fn known(&self, kind: HashKind) -> Result<Known> {
        let found = self.found(kind)?;
        let covered: u64 = found.in_files.iter().flat_map(IndexFile::files).map(|file| file.bytes).sum();
        let files = self.files.iter().zip(&found.ends);
        let files: Vec<_> = files.map(|(file, &bytes)| Indexed { name: file.name.clone(), bytes }).collect();
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        Ok(Known { found, files, unindexed_bytes: bytes.saturating_sub(covered) })
    }

    /// As [`survey`](Self::survey), without index files: each block is read and hashed.
    pub(super) fn survey_all(&self, kind: HashKind) -> Result<(u64, Vec<Error>)> {
        let found = self.scan_all(kind)?;
        Ok((found.scanned.len(), [&found.damage[..], &found.cut_off].concat()))
    }

    /// `each` receives hash and length; returns an error for each damaged or incomplete record.
    pub(super) fn each_block(&self, kind: HashKind, each: &mut dyn FnMut(&BlockHash, u64)) -> Result<Vec<Error>> {
        let ends = self.scan_records(kind, &vec![0; self.files.len()], &mut |hash, _, bytes| each(hash, bytes))?;
        Ok([ends.damage, ends.cut_off].concat())
    }

    /// Number of the data file with this name in the only store of this object.
    pub(super) fn number_of(&self, name: &str) -> Option<usize> {
        self.files.iter().position(|file| file.name == name)
    }

    pub(super) fn len_of(&self, number: usize) -> u64 {
        self.files[number].len
    }

    /// Compares the block with the beginning of its hash; returns its length. `Format` if damaged.
    pub(super) fn read_named(&self, place: Place, kind: HashKind, expected: &HashKey) -> Result<u64> {
        let read = || {
            let block = records::read_block(&*self.data_file(place.file())?, place.offset())?;
            let found = kind.hash(&block);
            if key_of(&found) != *expected {
                let [first, second] = expected;
                let message = format!(
                    "the bytes have the hash {found}; the index has {}:{first:016x}{second:016x}… for them",
                    kind.name()
                );
                return Err(Error::format(message).context(Context::offset("block", place.offset())));
            }
            Ok(block.len() as u64)
        };
        read().with_context(|| Context::member(&self.files[place.file()].path))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum()
    }

    /// Whether the index has a block with this hash; the block itself is not read.
    pub(super) fn contains(&self, hash: &BlockHash) -> Result<bool> {
        let found = self.found(hash.kind())?;
        Ok(found.find(hash)?.is_some())
    }

    fn read(&self, hash: &BlockHash, place: Option<InFile>) -> Result<Vec<u8>> {
        let found = self.found(hash.kind())?;
        if let Some(place) = place
            && found.find(hash)?.is_none()
            && let Some(block) = self.plain.find(hash, place)?
        {
            return Ok(block);
        }
        if let Some(damage) = found.damage.first() {
            return Err(damage.clone());
        }
        let mut problem = match found.find(hash)? {
            Some(place) => match self.read_at(place, hash) {
                Ok(block) => return Ok(block),
                Err(error) => Some(error),
            },
            None => None,
        };
        if !found.is_complete {
            // another copy, or a place that the index file has wrong
            let all = self.scan_all(hash.kind())?;
            if let Some(place) = all.find(hash)? {
                return self.read_at(place, hash);
            }
            problem = problem.or_else(|| all.damage.first().cloned());
        }
        let missing = match self.files.len() {
            0 => format!("block {hash} is missing: no directory beside the archive has data/*{SUFFIX}"),
            files => format!("block {hash} is missing from the {files} data files of the store"),
        };
        Err(match problem {
            Some(problem) => Error::format(format!("{missing}; damaged is {problem}")),
            None => Error::format(missing),
        })
    }

    /// Not compared with a hash.
    pub(super) fn block_at(&self, place: Place) -> Result<Vec<u8>> {
        let read = || records::read_block(&*self.data_file(place.file())?, place.offset());
        read().with_context(|| Context::member(&self.files[place.file()].path))
    }

    fn read_at(&self, place: Place, hash: &BlockHash) -> Result<Vec<u8>> {
        let data_file = &self.files[place.file()];
        let read = || {
            let block = records::read_block(&*self.data_file(place.file())?, place.offset())?;
            let found = hash.kind().hash(&block);
            if found != *hash {
                let message = format!("the bytes have the hash {found}; expected {hash}");
                return Err(Error::format(message).context(Context::offset("block", place.offset())));
            }
            Ok(block)
        };
        read().with_context(|| Context::member(&data_file.path))
    }

    fn data_file(&self, number: usize) -> Result<Arc<dyn ReadAt>> {
        let file = &self.files[number];
        let opened = self.opened.get(number as u64, || Ok(Opened(file.directory.open(&file.name)?)));
        opened.map(|opened| opened.0.clone())
    }

    fn found(&self, kind: HashKind) -> Result<Arc<Found>> {
        let mut indexes = self.indexes.lock_unpoisoned();
        if let Some(found) = indexes.get(&kind) {
            return Ok(found.clone());
        }
        let mut starts = vec![0; self.files.len()];
        let in_files = self.index_files(kind, &mut starts);
        let found = Arc::new(self.scan(kind, &starts, in_files)?);
        indexes.insert(kind, found.clone());
        Ok(found)
    }

    fn scan_all(&self, kind: HashKind) -> Result<Arc<Found>> {
        let mut indexes = self.indexes.lock_unpoisoned();
        if let Some(found) = indexes.get(&kind).filter(|found| found.is_complete) {
            return Ok(found.clone());
        }
        let found = Arc::new(self.scan(kind, &vec![0; self.files.len()], Vec::new())?);
        indexes.insert(kind, found.clone());
        Ok(found)
    }

    /// Opens the index files that fit: their data files exist, with at least the indexed length.
    /// Sets `starts` to the bytes of each data file that they cover.
    fn index_files(&self, kind: HashKind, starts: &mut [u64]) -> Vec<IndexFile> {
        let mut fitting = Vec::new();
        for (_, store, file) in self.index_files.iter().filter(|(of, ..)| *of == kind) {
            // a damaged index is not needed
            let Ok(mut index) = IndexFile::open(file.clone()) else { continue };
            let number = |name: &str| self.files.iter().position(|file| file.path == format!("{store}{DATA}/{name}"));
            let numbers: Vec<_> = index.files().iter().map(|file| (number(&file.name), file.bytes)).collect();
            let fits = |&(number, bytes): &(Option<usize>, u64)| number.is_some_and(|at| self.files[at].len >= bytes);
            if !numbers.iter().all(fits) {
                continue;
            }
            let numbers: Vec<(usize, u64)> = numbers.into_iter().filter_map(|(at, bytes)| Some((at?, bytes))).collect();
            numbers.iter().for_each(|&(at, bytes)| starts[at] = bytes);
            index.renumber(numbers.into_iter().map(|(at, _)| at).collect());
            fitting.push(index);
        }
        fitting
    }

    fn scan(&self, kind: HashKind, starts: &[u64], in_files: Vec<IndexFile>) -> Result<Found> {
        let mut entries = Vec::new();
        let Ends { ends, damage, cut_off } =
            self.scan_records(kind, starts, &mut |hash, place, _| entries.push(Entry::new(hash, place)))?;
        let is_complete = in_files.is_empty();
        Ok(Found { in_files, scanned: Index::new(entries), is_complete, ends, damage, cut_off })
    }

    /// Reads and hashes the blocks from `starts` on.
    fn scan_records(
        &self,
        kind: HashKind,
        starts: &[u64],
        each: &mut dyn FnMut(&BlockHash, Place, u64),
    ) -> Result<Ends> {
        let (mut damage, mut cut_off) = (Vec::new(), Vec::new());
        let mut ends = starts.to_vec();
        for (number, file) in self.files.iter().enumerate().filter(|&(number, file)| starts[number] < file.len) {
            let mut scan = || {
                let source = self.data_file(number)?;
                records::scan(&*source, starts[number], |records| {
                    for entry in in_threads(records, |record| -> Result<_> {
                        let (hash, bytes) = record.with_block(|block| (kind.hash(block), block.len() as u64))?;
                        Ok((hash, Place::new(number, record.offset), bytes))
                    }) {
                        match entry {
                            Ok((hash, place, bytes)) => each(&hash, place, bytes),
                            Err(error) => damage.push(error.context(Context::member(&file.path))),
                        }
                    }
                    Ok(())
                })
            };
            let end = scan().with_context(|| Context::member(&file.path))?;
            ends[number] = end.end;
            let found = end.damage.map(|error| error.context(Context::member(&file.path)));
            if end.is_cut_off { cut_off.extend(found) } else { damage.extend(found) }
        }
        Ok(Ends { ends, damage, cut_off })
    }
}

impl Source for Store {
    fn block_of_file(&self, hash: &BlockHash, place: Option<InFile>) -> Result<Arc<Vec<u8>>> {
        if let Some(block) = self.cache.lock_unpoisoned().get(hash) {
            return Ok(block);
        }
        let block = Arc::new(self.read(hash, place)?);
        self.cache.lock_unpoisoned().put(*hash, &block);
        Ok(block)
    }
}

/// Where the scan of each data file has ended, and the damage that it found; see [`Found`].
struct Ends {
    ends: Vec<u64>,
    damage: Vec<Error>,
    cut_off: Vec<Error>,
}

/// Applies `f` to each record, on all processors. It starts its own threads: a thread of the shared
/// pool that waits may begin other work, which would wait for the lock that the caller holds.
fn in_threads<'a, T: Send>(records: &[Record<'a>], f: impl Fn(&Record<'a>) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = records.len().div_ceil(threads).max(MIN_SHARE);
    std::thread::scope(|scope| {
        let f = &f;
        let mut shares = records.chunks(share);
        let first = shares.next().unwrap_or_default();
        let others: Vec<_> = shares.map(|share| scope.spawn(move || share.iter().map(f).collect::<Vec<T>>())).collect();
        let mut found: Vec<T> = first.iter().map(f).collect();
        for other in others {
            match other.join() {
                Ok(other) => found.extend(other),
                Err(panic) => resume_unwind(panic),
            }
        }
        found
    })
}

/// Minimum number of records for each thread, except the last.
const MIN_SHARE: usize = 32;

impl Found {
    fn find(&self, hash: &BlockHash) -> Result<Option<Place>> {
        for file in &self.in_files {
            if let Some(place) = file.find(hash)? {
                return Ok(Some(place));
            }
        }
        Ok(self.scanned.find(hash))
    }
}

impl Cache {
    pub(super) fn get(&mut self, hash: &BlockHash) -> Option<Arc<Vec<u8>>> {
        let found = self.blocks.iter().rposition(|(known, _)| known == hash)?;
        let block = self.blocks[found].1.clone();
        self.blocks[found..].rotate_left(1);
        Some(block)
    }

    pub(super) fn put(&mut self, hash: BlockHash, block: &Arc<Vec<u8>>) {
        self.bytes += block.as_slice().len();
        self.blocks.push((hash, block.clone()));
        while self.blocks.len() > 1 && (self.bytes > CACHE_BYTES || self.blocks.len() > 64) {
            let (_, dropped) = self.blocks.remove(0);
            self.bytes -= dropped.as_slice().len();
        }
    }
}
