//! Compares the blocks of a store with the hashes that name them: those in its index file, and
//! those in the archives in its directory and beside it.
//!
//! A block that was damaged has another hash, which nothing names, and the one that is named is
//! missing.

use std::collections::HashSet;

use ctds::container::{BlockCheck, Container, Directory};
use ctds::error::{Context, Error, Result, ResultExt};
use ctds::io::read_all;

use super::archive;
use super::data::Reader;
use super::hash::{BlockHash, HashKind};
use super::index::{HashKey, IndexFile, Place, key_of};
use super::source::Source;
use super::store::{Store, index_name};
use super::tree::{self, is_archive};

/// The blocks of one kind of hash, as a scan of the data files has found them, sorted by hash.
struct Scanned {
    blocks: Vec<Block>,
    /// Blocks that were compared where an index names them, outside of the scan.
    elsewhere: HashSet<HashKey>,
}

struct Block {
    key: HashKey,
    bytes: u64,
    is_named: bool,
}

impl Scanned {
    /// Marks the block with this hash as compared; returns whether it is one of the store.
    fn name(&mut self, key: &HashKey) -> bool {
        match self.blocks.binary_search_by_key(key, |block| block.key) {
            Ok(found) => {
                self.blocks[found].is_named = true;
                true
            }
            Err(_) => self.elsewhere.contains(key),
        }
    }
}

/// Returns damage in the result; errors are those of reading the data files.
pub(super) fn check(store: &Store, directory: &dyn Container) -> Result<BlockCheck> {
    let mut result = BlockCheck::default();
    let mut damage = Vec::new();
    let beside = directory.path("").and_then(|path| Some(Directory::new(path.parent()?)));
    let mut named = Named::default();
    named.by_archives_in(directory, &mut damage)?;
    if let Some(beside) = &beside {
        named.by_archives_in(beside, &mut damage)?;
    }
    let mut has_scanned = false;
    for &kind in HashKind::ALL {
        let index = directory.open(&index_name(kind)).ok();
        let is_named = index.is_some() || named.hashes.iter().any(|hash| hash.kind() == kind);
        // without any name the blocks are counted once
        if !is_named && (has_scanned || kind != HashKind::Sha1 || !named.hashes.is_empty()) {
            continue;
        }
        let mut scanned = scan(store, kind, (!has_scanned).then_some(&mut damage))?;
        has_scanned = true;
        if let Some(index) = index {
            match IndexFile::open(index) {
                Ok(index) => compare_index(store, kind, index, &mut scanned, &mut damage, &mut result)?,
                Err(error) => damage.push(error.context(Context::member(index_name(kind)))),
            }
        }
        for hash in named.hashes.iter().filter(|hash| hash.kind() == kind) {
            if !scanned.name(&key_of(hash)) && !beside.as_ref().is_some_and(|beside| is_in_other(beside, hash)) {
                damage.push(Error::format(format!("block {hash}, which an archive names, is missing or damaged")));
            }
        }
        for block in scanned.blocks {
            match block.is_named {
                true => (result.blocks, result.bytes) = (result.blocks + 1, result.bytes + block.bytes),
                false => result.unnamed += 1,
            }
        }
    }
    result.damage = damage;
    Ok(result)
}

fn is_in_other(beside: &Directory, hash: &BlockHash) -> bool {
    Store::open(beside).is_ok_and(|stores| stores.block(hash).is_ok())
}

/// Reads and hashes all blocks; adds the damage of the data files to `damage`, if it is wanted.
fn scan(store: &Store, kind: HashKind, damage: Option<&mut Vec<Error>>) -> Result<Scanned> {
    let mut blocks = Vec::new();
    let found = store.each_block(kind, &mut |hash, bytes| {
        blocks.push(Block { key: key_of(hash), bytes, is_named: false });
    })?;
    if let Some(damage) = damage {
        found.into_iter().for_each(|error| damage.push(error));
    }
    blocks.sort_unstable_by_key(|block| block.key);
    blocks.dedup_by_key(|block| block.key);
    Ok(Scanned { blocks, elsewhere: HashSet::new() })
}

fn compare_index(
    store: &Store,
    kind: HashKind,
    mut index: IndexFile,
    scanned: &mut Scanned,
    damage: &mut Vec<Error>,
    result: &mut BlockCheck,
) -> Result<()> {
    let numbers: Vec<Option<usize>> = index.files().iter().map(|file| store.number_of(&file.name)).collect();
    for (file, number) in index.files().iter().zip(&numbers) {
        let found = number.map_or(0, |number| store.len_of(number));
        if found < file.bytes {
            let message = format!("the data file has {found} bytes; the index has blocks of {}", file.bytes);
            damage.push(Error::format(message).context(Context::member(&file.name)));
        }
    }
    let is_known = |place: Place| numbers.get(place.file()).copied().flatten();
    index.renumber((0..numbers.len()).collect());
    for entry in index.entries() {
        let entry = entry?;
        let key = entry.key();
        if scanned.name(&key) {
            continue;
        }
        let Some(number) = is_known(entry.place) else {
            damage.push(Error::format("the index names a block in a data file that is missing"));
            continue;
        };
        // the scan of a data file ends at a damaged head of a record
        match store.read_named(Place::new(number, entry.place.offset()), kind, &key) {
            Ok(bytes) => {
                (result.blocks, result.bytes) = (result.blocks + 1, result.bytes + bytes);
                scanned.elsewhere.insert(key);
            }
            Err(error) => damage.push(error),
        }
    }
    Ok(())
}

/// The hashes that archives name.
#[derive(Default)]
struct Named {
    hashes: HashSet<BlockHash>,
}

impl Named {
    fn by_archives_in(&mut self, directory: &dyn Container, damage: &mut Vec<Error>) -> Result<()> {
        for name in directory.names()? {
            if !is_archive(directory, &name).unwrap_or(false) {
                continue;
            }
            let place = || Context::member(&name);
            let lines = match read_all(&directory.open(&name)?).and_then(|bytes| archive::parse(&bytes)) {
                Ok(lines) => lines,
                Err(error) => {
                    damage.push(error.context(place()));
                    continue;
                }
            };
            let reader = Reader::new(Store::open(directory)?);
            for line in lines {
                let named = line.entry.and_then(|entry| tree::named_blocks(&reader, entry, &mut self.hashes));
                if let Err(error) = named.with_context(place) {
                    damage.push(error);
                }
            }
        }
        Ok(())
    }
}
