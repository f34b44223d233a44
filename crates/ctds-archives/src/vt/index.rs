//! Where the blocks of a content-addressed (vt) store are: an index with 24 bytes for each block,
//! sorted by hash.
//!
//! An entry has the first 16 bytes of a hash; the block that it leads to is compared with the whole
//! one when it is read. 10⁷ blocks take 240 MB, in memory if the store was scanned, in a file of
//! the store ([`IndexFile`]) if this program wrote it.
//!
//! ```text
//! index-sha1.h5bridge, little-endian
//!   16  magic
//!    8  number of data files
//!    8  number of entries
//!    8  bytes of the list
//!       for each data file: 8 bytes of it that are indexed, 2 length of its name, its name
//!   32  SHA-256 of all before
//!       for each entry: 16 first bytes of the hash, 8 place: number of the data file * 2^44 + offset of the record
//! ```

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctds::error::{Error, Result};
use ctds::io::{FileTarget, ReadAt, WriteAt};
use sha2::{Digest, Sha256};

use super::hash::BlockHash;

/// Number of the data file * 2^44 + offset in bytes of the block's record in that file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u64);

const OFFSET_BITS: u32 = 44;

pub(super) const MAX_FILES: usize = 1 << (u64::BITS - OFFSET_BITS);

pub(super) const LARGEST_FILE: u64 = 1 << OFFSET_BITS;

impl Place {
    pub(super) fn new(file: usize, offset: u64) -> Self {
        Place((file as u64) << OFFSET_BITS | offset)
    }

    pub(super) fn file(self) -> usize {
        (self.0 >> OFFSET_BITS) as usize
    }

    pub(super) fn offset(self) -> u64 {
        self.0 & (LARGEST_FILE - 1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    key: HashKey,
    pub(super) place: Place,
}

/// The first 16 bytes of a hash.
pub(super) type HashKey = [u64; 2];

const ENTRY_BYTES: usize = 24;

impl Entry {
    pub(super) fn new(hash: &BlockHash, place: Place) -> Self {
        Entry { key: key_of(hash), place }
    }

    pub(super) fn key(&self) -> HashKey {
        self.key
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| bytes[at..at + 8].try_into().unwrap_or_default();
        Entry {
            key: [u64::from_be_bytes(word(0)), u64::from_be_bytes(word(8))],
            place: Place(u64::from_le_bytes(word(16))),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.key.iter().for_each(|part| out.extend(part.to_be_bytes()));
        out.extend(self.place.0.to_le_bytes());
    }

    pub(super) fn in_file(self, file: usize) -> Self {
        Entry { place: Place::new(file, self.place.offset()), ..self }
    }

    /// File i becomes file `numbers[i]`.
    fn renumbered(self, numbers: &[usize]) -> Self {
        let place = Place::new(numbers.get(self.place.file()).copied().unwrap_or(0), self.place.offset());
        Entry { place, ..self }
    }
}

pub(super) fn key_of(hash: &BlockHash) -> HashKey {
    let word = |at: usize| hash.as_bytes()[at..at + 8].try_into().unwrap_or_default();
    [u64::from_be_bytes(word(0)), u64::from_be_bytes(word(8))]
}

/// An index in memory, sorted by hash.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<Entry>,
}

impl Index {
    pub(super) fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_unstable();
        // of equal blocks the first is as good as the others
        entries.dedup_by_key(|entry| entry.key);
        entries.shrink_to_fit();
        Index { entries }
    }

    pub(super) fn find(&self, hash: &BlockHash) -> Option<Place> {
        let key = key_of(hash);
        let found = self.entries.binary_search_by_key(&key, |entry| entry.key).ok()?;
        Some(self.entries[found].place)
    }

    /// The entries from `key` on in order, or in descending order; `None` for all.
    pub(super) fn from(&self, key: Option<HashKey>, is_descending: bool) -> impl Iterator<Item = Entry> + '_ {
        let (low, high) = match key {
            Some(key) if is_descending => (0, self.entries.partition_point(|entry| entry.key <= key)),
            Some(key) => (self.entries.partition_point(|entry| entry.key < key), self.entries.len()),
            None => (0, self.entries.len()),
        };
        (low..high).map(move |at| self.entries[if is_descending { high - 1 - (at - low) } else { at }])
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

const MAGIC: &[u8; 16] = b"h5bridge vt idx\n";
const HEAD_BYTES: usize = 40;
const HASH_BYTES: usize = 32;

/// Longest list of data files, in bytes, that is read.
const LONGEST_LIST: u64 = 256 << 20;

/// A data file, and how many bytes from its start are in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Indexed {
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// An index in a file: only the list of data files is in memory.
#[derive(Debug)]
pub(super) struct IndexFile {
    file: Arc<dyn ReadAt>,
    files: Vec<Indexed>,
    /// Number of each of these data files in the list of all data files of the open stores.
    numbers: Vec<usize>,
    entries: u64,
    start: u64,
}

const WINDOW: u64 = 170;

impl IndexFile {
    /// `Format` if the list of data files is damaged; an index file is derived data.
    pub(super) fn open(file: Arc<dyn ReadAt>) -> Result<Self> {
        let mut head = [0; HEAD_BYTES];
        file.read_at(0, &mut head)?;
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
        let [count, entries, list] = [16, 24, 32].map(number);
        let damaged = || Error::format("the index contradicts itself: it is made from the data files, which remain");
        if &head[..16] != MAGIC || list > LONGEST_LIST || count > MAX_FILES as u64 {
            return Err(damaged());
        }
        let mut bytes = vec![0; list as usize + HASH_BYTES];
        file.read_at(HEAD_BYTES as u64, &mut bytes)?;
        let (list, stored) = bytes.split_at(list as usize);
        let hash = Sha256::new_with_prefix(head).chain_update(list).finalize();
        if hash.as_slice() != stored {
            return Err(damaged());
        }
        let mut files = Vec::new();
        let mut rest = list;
        for _ in 0..count {
            let (bytes, after) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
            let (len, after) = after.split_first_chunk::<2>().ok_or_else(damaged)?;
            let name = after.get(..usize::from(u16::from_le_bytes(*len))).ok_or_else(damaged)?;
            rest = &after[name.len()..];
            let name = String::from_utf8(name.to_vec()).map_err(|_| damaged())?;
            files.push(Indexed { name, bytes: u64::from_le_bytes(*bytes) });
        }
        let start = (HEAD_BYTES + list.len() + HASH_BYTES) as u64;
        let len = entries.checked_mul(ENTRY_BYTES as u64).and_then(|len| len.checked_add(start));
        if len != Some(file.len()?) {
            return Err(damaged());
        }
        Ok(IndexFile { file, numbers: (0..files.len()).collect(), files, entries, start })
    }

    pub(super) fn files(&self) -> &[Indexed] {
        &self.files
    }

    /// File i of the list becomes file `numbers[i]` in the entries.
    pub(super) fn renumber(&mut self, numbers: Vec<usize>) {
        self.numbers = numbers;
    }

    pub(super) fn len(&self) -> u64 {
        self.entries
    }

    pub(super) fn find(&self, hash: &BlockHash) -> Result<Option<Place>> {
        let key = key_of(hash);
        // hashes are evenly distributed, so the place in the file is known but for a few entries
        let (mut low, mut high) = (0, self.entries);
        let (mut low_key, mut high_key) = (0u64, u64::MAX);
        let mut bytes = Vec::new();
        let mut halve = false;
        while low < high {
            let share = u128::from(key[0].saturating_sub(low_key)) * u128::from(high - low)
                / (u128::from(high_key.saturating_sub(low_key)) + 1);
            let guess = if halve { low + (high - low) / 2 } else { low + (share as u64).min(high - low - 1) };
            halve = !halve;
            let first = guess.saturating_sub(WINDOW / 2).max(low);
            let last = (first + WINDOW).min(high);
            bytes.resize((last - first) as usize * ENTRY_BYTES, 0);
            self.file.read_at(self.start + first * ENTRY_BYTES as u64, &mut bytes)?;
            let entry = |at: usize| Entry::decode(&bytes[at * ENTRY_BYTES..][..ENTRY_BYTES]);
            let count = (last - first) as usize;
            let (mut from, mut to) = (0, count);
            while from < to {
                let middle = from + (to - from) / 2;
                let found = entry(middle);
                match found.key.cmp(&key) {
                    Ordering::Equal => return Ok(Some(found.renumbered(&self.numbers).place)),
                    Ordering::Less => from = middle + 1,
                    Ordering::Greater => to = middle,
                }
            }
            match from {
                0 => (high, high_key) = (first, entry(0).key[0]),
                at if at == count => (low, low_key) = (last, entry(at - 1).key[0]),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Number of entries whose keys are less than `key`; of those that are at most `key`, with
    /// `is_at_most`.
    fn count_below(&self, key: HashKey, is_at_most: bool) -> Result<u64> {
        let (mut low, mut high) = (0, self.entries);
        let mut bytes = [0; ENTRY_BYTES];
        while low < high {
            let middle = low + (high - low) / 2;
            self.file.read_at(self.start + middle * ENTRY_BYTES as u64, &mut bytes)?;
            let found = Entry::decode(&bytes).key;
            if found < key || is_at_most && found == key { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// The entries from `key` on in order, or in descending order; `None` for all.
    pub(super) fn from(
        &self,
        key: Option<HashKey>,
        is_descending: bool,
    ) -> Result<impl Iterator<Item = Result<Entry>> + '_> {
        let bound = key.map(|key| self.count_below(key, is_descending)).transpose()?;
        let (mut low, mut high) =
            if is_descending { (0, bound.unwrap_or(self.entries)) } else { (bound.unwrap_or(0), self.entries) };
        let pieces = std::iter::from_fn(move || {
            let count = (high - low).min(WINDOW);
            let first = if is_descending { high - count } else { low };
            (low, high) = if is_descending { (low, first) } else { (first + count, high) };
            (count > 0).then(|| self.piece(first, count))
        });
        Ok(pieces.flat_map(move |piece| {
            let (mut entries, error) = match piece {
                Ok(entries) => (entries, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            if is_descending {
                entries.reverse();
            }
            entries.into_iter().map(Ok).chain(error)
        }))
    }

    fn piece(&self, first: u64, count: u64) -> Result<Vec<Entry>> {
        let mut bytes = vec![0; count as usize * ENTRY_BYTES];
        self.file.read_at(self.start + first * ENTRY_BYTES as u64, &mut bytes)?;
        Ok(bytes.chunks_exact(ENTRY_BYTES).map(|entry| Entry::decode(entry).renumbered(&self.numbers)).collect())
    }

    /// All entries, sorted by hash.
    pub(super) fn entries(&self) -> impl Iterator<Item = Result<Entry>> + '_ {
        self.pieces().flat_map(|piece| {
            let (entries, error) = match piece {
                Ok(entries) => (entries, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            entries.into_iter().map(Ok).chain(error)
        })
    }

    /// All entries, sorted by hash, a few thousand at a time.
    fn pieces(&self) -> impl Iterator<Item = Result<Vec<Entry>>> + '_ {
        const AT_A_TIME: u64 = 1 << 13;
        (0..self.entries.div_ceil(AT_A_TIME)).map(|piece| {
            let first = piece * AT_A_TIME;
            self.piece(first, AT_A_TIME.min(self.entries - first))
        })
    }
}

/// Merges `old` and `added` by hash; of a block with several entries, only the first in this order
/// is written.
pub(super) fn write(target: &dyn WriteAt, files: &[Indexed], old: &[&IndexFile], added: &Index) -> Result<()> {
    let mut list = Vec::new();
    for Indexed { name, bytes } in files {
        list.extend(bytes.to_le_bytes());
        let len = u16::try_from(name.len()).map_err(|_| Error::unsupported("the name of a data file is too long"))?;
        list.extend(len.to_le_bytes());
        list.extend(name.as_bytes());
    }
    let start = (HEAD_BYTES + list.len() + HASH_BYTES) as u64;
    let mut writer = EntryWriter { target, at: start, buffer: Vec::new(), count: 0, last: None };
    let mut sources: Vec<Box<dyn Iterator<Item = Result<Entry>> + '_>> = Vec::new();
    sources.extend(old.iter().map(|index| Box::new(index.entries()) as Box<dyn Iterator<Item = Result<Entry>>>));
    sources.push(Box::new(added.entries.iter().copied().map(Ok)));
    let mut heads = sources.iter_mut().map(|source| source.next().transpose()).collect::<Result<Vec<_>>>()?;
    // of equal entries the first
    let first = |heads: &[Option<Entry>]| {
        let found = heads.iter().enumerate().filter_map(|(at, head)| Some((at, (*head)?)));
        found.min_by_key(|(_, head)| head.key)
    };
    while let Some((at, entry)) = first(&heads) {
        writer.put(entry)?;
        heads[at] = sources[at].next().transpose()?;
    }
    let count = writer.finish()?;
    let mut head = MAGIC.to_vec();
    for number in [files.len() as u64, count, list.len() as u64] {
        head.extend(number.to_le_bytes());
    }
    head.extend(list);
    let hash = Sha256::digest(&head);
    head.extend(hash);
    target.write_at(0, &head)
}

/// Entries that are kept in memory before they become a run; enough for 2.5 GiB of blocks.
const MAX_RECENT: usize = 1 << 18;

/// Number of runs at which they are merged to one.
const MAX_RUNS: usize = 8;

/// Grows with bounded memory: older entries are in runs, unnamed files with sorted entries.
#[derive(Debug)]
pub(super) struct Growing {
    directory: PathBuf,
    recent: HashMap<[u64; 2], Place>,
    runs: Vec<IndexFile>,
    in_runs: Filter,
    most_recent: usize,
}

/// A Bloom filter: with 10⁷ hashes added, it falsely contains one in 25 of all others. Its memory
/// is allocated when the first hash is added.
#[derive(Debug, Default)]
struct Filter(Vec<u64>);

const FILTER_BITS: u32 = 1 << 26;

impl Filter {
    /// The four bits of a key, one for every 4 bytes of it: index of a word, and mask of one bit.
    fn bits(key: [u64; 2]) -> [(usize, u64); 4] {
        let bit = |part: u64| {
            let bit = part as u32 % FILTER_BITS;
            ((bit / u64::BITS) as usize, 1 << (bit % u64::BITS))
        };
        [bit(key[0]), bit(key[0] >> u32::BITS), bit(key[1]), bit(key[1] >> u32::BITS)]
    }

    fn add(&mut self, key: [u64; 2]) {
        self.0.resize((FILTER_BITS / u64::BITS) as usize, 0);
        for (word, bit) in Self::bits(key) {
            self.0[word] |= bit;
        }
    }

    fn may_have(&self, key: [u64; 2]) -> bool {
        Self::bits(key).iter().all(|&(word, bit)| self.0.get(word).is_some_and(|found| found & bit != 0))
    }
}

impl Growing {
    pub(super) fn new(directory: &Path) -> Self {
        let (recent, runs) = (HashMap::new(), Vec::new());
        let in_runs = Filter::default();
        Growing { directory: directory.to_owned(), recent, runs, in_runs, most_recent: MAX_RECENT }
    }

    pub(super) fn contains(&self, hash: &BlockHash) -> Result<bool> {
        Ok(self.find(hash)?.is_some())
    }

    /// Where the block is in the data file being written.
    pub(super) fn find(&self, hash: &BlockHash) -> Result<Option<u64>> {
        if let Some(place) = self.recent.get(&key_of(hash)) {
            return Ok(Some(place.offset()));
        }
        if !self.in_runs.may_have(key_of(hash)) {
            return Ok(None);
        }
        for run in self.runs.iter().rev() {
            if let Some(place) = run.find(hash)? {
                return Ok(Some(place.offset()));
            }
        }
        Ok(None)
    }

    pub(super) fn runs(&self) -> &[IndexFile] {
        &self.runs
    }

    /// A sorted copy of the entries that are in memory.
    pub(super) fn recent(&self) -> Index {
        Index::new(self.recent.iter().map(|(&key, &place)| Entry { key, place }).collect())
    }

    /// Whether the block is among the newest entries, which are in memory.
    pub(super) fn was_just_added(&self, hash: &BlockHash) -> bool {
        self.recent.contains_key(&key_of(hash))
    }

    /// `offset` is that in the data file being written; of a block added twice, one entry is kept.
    pub(super) fn add(&mut self, hash: &BlockHash, offset: u64) -> Result<()> {
        self.recent.insert(key_of(hash), Place::new(0, offset));
        if self.recent.len() < self.most_recent {
            return Ok(());
        }
        let index = self.take_recent();
        index.entries.iter().for_each(|entry| self.in_runs.add(entry.key));
        let run = self.run(&[], &index)?;
        self.runs.push(run);
        if self.runs.len() == MAX_RUNS {
            let runs: Vec<&IndexFile> = self.runs.iter().collect();
            self.runs = vec![self.run(&runs, &Index::default())?];
        }
        Ok(())
    }

    fn take_recent(&mut self) -> Index {
        Index::new(self.recent.drain().map(|(key, place)| Entry { key, place }).collect())
    }

    fn run(&self, old: &[&IndexFile], added: &Index) -> Result<IndexFile> {
        let target = Arc::new(FileTarget::create_unnamed(&self.directory)?);
        write(&*target, &[Indexed { name: String::new(), bytes: 0 }], old, added)?;
        IndexFile::open(target)
    }

    /// The runs, and the entries still in memory, all with `file` as the number of their data file.
    pub(super) fn finish(mut self, file: usize) -> (Vec<IndexFile>, Vec<Entry>) {
        let recent = self.take_recent().entries.into_iter().map(|entry| entry.in_file(file)).collect();
        self.runs.iter_mut().for_each(|run| run.renumber(vec![file]));
        (self.runs, recent)
    }
}

struct EntryWriter<'a> {
    target: &'a dyn WriteAt,
    at: u64,
    buffer: Vec<u8>,
    count: u64,
    last: Option<[u64; 2]>,
}

impl EntryWriter<'_> {
    fn put(&mut self, entry: Entry) -> Result<()> {
        if self.last == Some(entry.key) {
            return Ok(());
        }
        self.last = Some(entry.key);
        entry.encode(&mut self.buffer);
        self.count += 1;
        if self.buffer.len() >= 1 << 20 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.target.write_at(self.at, &self.buffer)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.flush()?;
        Ok(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vt::hash::HashKind;
    use ctds::io::MemoryFile;

    fn hash(number: u64) -> BlockHash {
        HashKind::Sha1.hash(&number.to_le_bytes())
    }

    fn index(numbers: std::ops::Range<u64>) -> Index {
        Index::new(numbers.map(|number| Entry::new(&hash(number), Place::new(number as usize % 3, number))).collect())
    }

    fn files() -> Vec<Indexed> {
        ["a.vtd", "b.vtd", "ä.vtd"].map(|name| Indexed { name: name.into(), bytes: 1 << 40 }).to_vec()
    }

    #[test]
    fn every_block_is_found_and_no_other() {
        for count in [0, 1, 2, 169, 170, 171, 5000] {
            let memory = index(0..count);
            let target = Arc::new(MemoryFile::default());
            write(&*target, &files(), &[], &memory).unwrap();
            let file = IndexFile::open(target).unwrap();
            assert_eq!((file.files(), file.len(), memory.len()), (&files()[..], count, count));
            for number in 0..count {
                let expected = Some(Place::new(number as usize % 3, number));
                assert_eq!((memory.find(&hash(number)), file.find(&hash(number)).unwrap()), (expected, expected));
            }
            for number in count..count + 500 {
                assert_eq!((memory.find(&hash(number)), file.find(&hash(number)).unwrap()), (None, None));
            }
        }
        assert_eq!(std::mem::size_of::<Entry>(), ENTRY_BYTES);
    }

    #[test]
    fn entries_from_a_key_are_in_order() {
        let memory = index(0..1000);
        let target = Arc::new(MemoryFile::default());
        write(&*target, &files(), &[], &memory).unwrap();
        let file = IndexFile::open(target).unwrap();
        let all: Vec<HashKey> = memory.entries().iter().map(Entry::key).collect();
        for at in [0, 1, 500, 998, 999] {
            let between = [all[at][0], all[at][1].wrapping_add(1)];
            for (key, ascending, descending) in [
                (None, &all[..], &all[..]),
                (Some(all[at]), &all[at..], &all[..=at]),
                (Some(between), &all[at + 1..], &all[..=at]),
            ] {
                let mut reversed = descending.to_vec();
                reversed.reverse();
                for (is_descending, expected) in [(false, ascending), (true, &reversed)] {
                    let found: Vec<_> = memory.from(key, is_descending).map(|entry| entry.key()).collect();
                    assert_eq!(found, expected);
                    let found = file.from(key, is_descending).unwrap().map(|entry| entry.unwrap().key());
                    assert_eq!(found.collect::<Vec<_>>(), expected);
                }
            }
        }
    }

    #[test]
    fn indexes_are_merged() {
        let first = Arc::new(MemoryFile::default());
        write(&*first, &files(), &[], &index(0..3000)).unwrap();
        let mut old = IndexFile::open(first).unwrap();
        // the data files have other numbers now
        old.renumber(vec![5, 6, 7]);
        let second = Arc::new(MemoryFile::default());
        let mut files = files();
        files.extend((3..8).map(|number| Indexed { name: format!("{number}.vtd"), bytes: 9 }));
        write(&*second, &files, &[&old], &index(2500..6000)).unwrap();
        let merged = IndexFile::open(second).unwrap();
        assert_eq!(merged.len(), 6000);
        assert_eq!(merged.find(&hash(100)).unwrap(), Some(Place::new(6, 100)));
        assert_eq!(merged.find(&hash(5500)).unwrap(), Some(Place::new(1, 5500)));
        assert_eq!(merged.find(&hash(6000)).unwrap(), None);
    }

    #[test]
    fn an_index_that_grows_has_every_entry_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut growing = Growing { most_recent: 100, ..Growing::new(folder.path()) };
        for number in 0..2345 {
            assert!(!growing.contains(&hash(number)).unwrap());
            growing.add(&hash(number), number).unwrap();
            assert!(growing.recent.len() < 100 && growing.runs.len() < MAX_RUNS);
        }
        assert!((0..2345).all(|number| growing.contains(&hash(number)).unwrap()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let (runs, recent) = growing.finish(2);
        let target = Arc::new(MemoryFile::default());
        let runs: Vec<&IndexFile> = runs.iter().collect();
        write(&*target, &files(), &runs, &Index::new(recent)).unwrap();
        let file = IndexFile::open(target).unwrap();
        assert_eq!(file.len(), 2345);
        let place = |number: u64| Some(Place::new(2, number));
        assert!((0..2345).all(|number| file.find(&hash(number)).unwrap() == place(number)));
    }

    #[test]
    fn a_damaged_list_is_refused() {
        let target = MemoryFile::default();
        write(&target, &files(), &[], &index(0..10)).unwrap();
        let bytes = ctds::io::read_all(&target).unwrap();
        let head = bytes.len() - 10 * ENTRY_BYTES;
        for at in 0..head {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert!(IndexFile::open(Arc::new(bytes)).is_err(), "byte {at}");
        }
        for len in 0..bytes.len() {
            assert!(IndexFile::open(Arc::new(bytes[..len].to_vec())).is_err(), "{len} bytes");
        }
    }
}
