//! Writes the files of a directory into a store, and adds a line to the archive, which names the
//! blocks that they are stored in.
//!
//! Blocks are appended to a data file that the process made for itself, and are never changed. So
//! whatever a process leaves that is killed are blocks that the next one finds; nothing refers to
//! them until a line is appended to the archive, which is the last step, after all blocks are
//! durable. Processes that write to one store concurrently have a data file each; the archive is
//! locked (`flock`) while a line is appended.
//!
//! A file is read into a window, whose bytes are cut into blocks; the original is the Python
//! package cs.vt.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ctds::container::{Container, Directory, WriteOptions, Written, check_name};
use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds::io::ReadAt;
use ctds::limits;
use ctds::progress::Progress;
use rayon::prelude::*;

use super::address::Address;
use super::append::{Appender, KIND};
use super::archive;
use super::chunker::Cut;
use super::dirent::{Dirent, EntryKind, Meta};
use super::hash::BlockHash;
use super::protocol::Saved;
use super::records::LARGEST_BLOCK;
use super::reference::BlockRef;
use super::remote::RemoteSink;
use super::sink::Sink;
use super::store::{self, DATA, Store};
use super::text;
use super::tree::META;
use super::update::{append_line, date};

/// Larger data are written as a block, with its hash in the reference.
const LITERAL_BYTES: usize = 32;

/// Largest list in one block, in bytes; a longer one is split, and listed on the next level.
const REFERENCES_BYTES: usize = 16_383;

const WINDOW: usize = 4 << 20;

/// Name of the store that is made if an archive has none beside it.
const STORE: &str = "store";

/// Block sizes that a caller can choose; without a choice, the content decides.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 128..=1 << 20;

/// Writes into the store beside `target`; appends a line to this archive, or creates it.
pub(crate) fn write_tree(
    source: &dyn Container,
    target: &Path,
    options: &WriteOptions,
    progress: &dyn Progress,
) -> Result<Written> {
    let cut = match options.block_bytes {
        None => Cut::Content,
        Some(bytes) if BLOCK_BYTES.contains(&bytes) => Cut::Fixed(bytes as usize),
        Some(bytes) => {
            let (least, most) = (BLOCK_BYTES.start(), BLOCK_BYTES.end());
            return Err(Error::usage(format!("blocks of {bytes} bytes; a vt store has {least} to {most}")));
        }
    };
    if let Some(address) = target.to_str().and_then(Address::parse) {
        return write_remote(source, &address, cut, progress);
    }
    let target = std::path::absolute(target)?;
    check_target(&target)?;
    let directory = target.parent().map(Path::to_owned).unwrap_or_default();
    let files = Directory::new(&directory);
    let store_path = store_beside(&files, &directory)?;
    fs::create_dir_all(store_path.join(DATA))?;
    let store = Store::open(&files)?;
    // the store in which blocks are looked for is the one that is written to, whose damage ends the
    // call here
    let (_, damage) = store.survey(KIND)?;
    let mut appender = Appender::new(store, store_path);
    let (root, span) = write_blocks(source, &mut appender, cut, progress)?;
    let added = appender.finish()?;
    let name = name_of(source).or_else(|| Some(target.file_stem()?.to_str()?.to_owned())).unwrap_or_default();
    let (date, seconds) = now();
    let line = format!(
        "{date} {seconds} D{{{}:meta:M{{a:\"o:rwx-\",m:{seconds}}},block:B{{hash:H{{{root}}},span:{span}}}}}\n",
        text::quote(&name)
    );
    let warnings = append_line(&target, &line)?;
    let damage = damage.iter().map(|error| format!("the store has damage: {error}"));
    Ok(Written { stored_bytes: added + line.len() as u64, warnings: damage.chain(warnings).collect() })
}

/// Adds an entry to an archive of a store that another program serves.
fn write_remote(source: &dyn Container, address: &Address<'_>, cut: Cut, progress: &dyn Progress) -> Result<Written> {
    let mut sink = RemoteSink::connect(address)?;
    let (hash, span) = write_blocks(source, &mut sink, cut, progress)?;
    let (_, seconds) = now();
    let entry = Dirent {
        kind: EntryKind::Directory,
        name: name_of(source).unwrap_or_default(),
        meta: Meta::parse(&format!("a:o:rwx-;m:{seconds}"))?,
        uuid: None,
        block: Some(BlockRef::Hash { hash, span: Some(span) }),
        earlier: None,
    };
    let seconds = seconds.parse().map_err(|_| Error::usage("the clock of this machine is not set"))?;
    let stored_bytes = sink.finish(address.archive, Saved { seconds, entry })?;
    Ok(Written { stored_bytes, ..Written::default() })
}

fn name_of(source: &dyn Container) -> Option<String> {
    Some(source.path("")?.file_name()?.to_str()?.to_owned())
}

/// Hash and length of the block with the entries of the root.
fn write_blocks(
    source: &dyn Container,
    target: &mut dyn Sink,
    cut: Cut,
    progress: &dyn Progress,
) -> Result<(BlockHash, u64)> {
    let mut writer = Writer { target, cut, progress };
    let data = writer.directory(source, "", 0)?;
    Ok((writer.block(&data)?, data.len() as u64))
}

/// Fails if the archive is a directory, or a file that is neither empty nor an archive.
fn check_target(target: &Path) -> Result<()> {
    if target.is_dir() {
        return Err(Error::usage("a directory; name the archive in it that gets an entry, such as NAME.vt"));
    }
    match File::open(target) {
        Ok(file) => {
            let mut head = Vec::new();
            file.take(archive::HEAD_BYTES).read_to_end(&mut head)?;
            match head.is_empty() || archive::is_archive(&head) {
                true => Ok(()),
                false => Err(Error::new(ErrorKind::Exists, "a file that is not a vt archive")),
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The store may be missing; two or more are an error.
fn store_beside(files: &Directory, directory: &Path) -> Result<PathBuf> {
    let mut stores = store::find_stores(files)?.into_iter().map(|(name, _)| name);
    match (stores.next(), stores.next()) {
        (None, _) => Ok(directory.join(STORE)),
        (Some(only), None) => Ok(directory.join(only)),
        (Some(first), Some(second)) => Err(Error::usage(format!(
            "several stores are beside the archive, {first:?} and {second:?}: put the archive into the directory of one"
        ))),
    }
}

/// Adds the blocks that the store does not have.
struct Writer<'a> {
    target: &'a mut dyn Sink,
    cut: Cut,
    progress: &'a dyn Progress,
}

/// A block, hashed and ready to be written.
struct Ready {
    hash: BlockHash,
    span: usize,
    /// `None` if the store already has the block.
    record: Option<Vec<u8>>,
}

#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    /// Offset in the window at which each block ends; the next block begins there.
    ends: Vec<usize>,
    /// Offset in the file at which the window ends.
    read: u64,
}

impl Window {
    /// Ordered as in the file.
    fn blocks(&self) -> impl IndexedParallelIterator<Item = &[u8]> {
        let start = |number: usize| if number == 0 { 0 } else { self.ends[number - 1] };
        (0..self.ends.len()).into_par_iter().map(move |number| &self.bytes[start(number)..self.ends[number]])
    }

    fn cut(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.cut()..]
    }
}

impl<'a> Writer<'a> {
    /// Returns the encoded entries. `table` is the path from the root, empty for it, for progress;
    /// `depth` counts the directories around `source`, at most 40.
    fn directory(&mut self, source: &dyn Container, table: &str, depth: usize) -> Result<Vec<u8>> {
        limits::depth(depth, "directories")?;
        let mut entries: Vec<(String, EntryKind)> = Vec::new();
        entries.extend(source.names()?.into_iter().map(|name| (name, EntryKind::File)));
        entries.extend(source.nested()?.into_iter().map(|name| (name, EntryKind::Directory)));
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let mut data = Vec::new();
        for (name, kind) in entries {
            check_name(&name)?;
            let properties;
            let block = match kind {
                EntryKind::Directory => {
                    let inner = source.enter(&name)?;
                    properties = inner.properties().context(Context::member(&name))?;
                    let path = if table.is_empty() { name.clone() } else { format!("{table}/{name}") };
                    let data = self.directory(&*inner, &path, depth + 1).context(Context::member(&name))?;
                    self.whole(&data)?
                }
                _ => {
                    properties = source.file_properties(&name).context(Context::member(&name))?;
                    self.file(&*source.open(&name)?, table, &name).context(Context::member(&name))?
                }
            };
            // files that come from an archive, by way of another container, keep their metadata
            let stored = properties.text(META).filter(|stored| Meta::parse(stored).is_ok());
            let meta = stored.map_or_else(|| metadata(source.path(&name)), str::to_owned);
            Dirent::encode(&mut data, kind, &name, &meta, &block);
        }
        if data.len() > LARGEST_BLOCK {
            let message = format!("a directory whose entries have {} bytes; the limit is {LARGEST_BLOCK}", data.len());
            return Err(Error::limit(message));
        }
        Ok(data)
    }

    /// One block, or in the reference itself if short; returns the encoded reference.
    fn whole(&mut self, data: &[u8]) -> Result<Vec<u8>> {
        let mut reference = Vec::new();
        if data.len() <= LITERAL_BYTES {
            BlockRef::encode_literal(&mut reference, data);
        } else {
            let hash = self.block(data)?;
            BlockRef::encode_hash(&mut reference, &hash, data.len() as u64, false);
        }
        Ok(reference)
    }

    /// Returns the encoded reference; `table` and `name` are for progress reports.
    fn file(&mut self, source: &dyn ReadAt, table: &str, name: &str) -> Result<Vec<u8>> {
        let len = source.len()?;
        let mut levels = Levels::default();
        let mut window = Window::default();
        self.advance(source, &[], 0, len, &mut window)?;
        if len <= LITERAL_BYTES as u64 {
            return self.whole(&window.bytes);
        }
        let mut next = Window::default();
        while !window.ends.is_empty() {
            self.progress.go_on()?;
            let (ready, (advanced, written)) = rayon::join(
                || window.blocks().map(|block| self.prepare(block)).collect::<Result<Vec<_>>>(),
                || {
                    let advanced = self.advance(source, window.rest(), window.read, len, &mut next);
                    (advanced, self.target.make_room())
                },
            );
            advanced?;
            written?;
            for Ready { hash, span, record } in ready? {
                if let Some(record) = record {
                    self.target.append(&hash, record)?;
                }
                levels.push(self, &hash, span as u64)?;
            }
            self.progress.advance(window.cut() as u64, if table.is_empty() { "." } else { table }, name);
            std::mem::swap(&mut window, &mut next);
        }
        levels.finish(self)
    }

    /// Fills `window` with `rest`, the uncut bytes before offset `read`, and those from `read` on;
    /// `len` is that of the file.
    fn advance(&self, source: &dyn ReadAt, rest: &[u8], read: u64, len: u64, window: &mut Window) -> Result<()> {
        let count = (WINDOW.max(2 * self.cut.largest()) as u64).min(len - read);
        window.bytes.resize(rest.len() + count as usize, 0);
        let (start, added) = window.bytes.split_at_mut(rest.len());
        start.copy_from_slice(rest);
        source.read_at(read, added)?;
        window.read = read + count;
        window.ends.clear();
        let mut at = 0;
        while at < window.bytes.len() && (window.read == len || window.bytes.len() - at >= self.cut.largest()) {
            at += self.cut.first(&window.bytes[at..]);
            window.ends.push(at);
        }
        Ok(())
    }

    /// Hashes a block, and encodes a record of it if the store does not have it.
    fn prepare(&self, block: &[u8]) -> Result<Ready> {
        let hash = KIND.hash(block);
        let is_known = self.target.has(&hash)?;
        Ok(Ready { hash, span: block.len(), record: (!is_known).then(|| self.target.encode(block)) })
    }

    fn block(&mut self, block: &[u8]) -> Result<BlockHash> {
        let Ready { hash, record, .. } = self.prepare(block)?;
        if let Some(record) = record {
            self.target.append(&hash, record)?;
        }
        Ok(hash)
    }
}

/// Empty without a path, or if they cannot be read.
fn metadata(path: Option<PathBuf>) -> String {
    let metadata = path.and_then(|path| fs::metadata(path).ok());
    metadata.map_or(String::new(), |found| {
        let modified = (found.mtime(), u32::try_from(found.mtime_nsec()).unwrap_or(0));
        Meta::compact(Some(modified), Some(found.mode()))
    })
}

/// Level 0 refers to the blocks with the file's bytes. A level that fills a block is written as
/// one, and a reference to this block is added to the next level.
#[derive(Default)]
struct Levels(Vec<Level>);

#[derive(Default)]
struct Level {
    references: Vec<u8>,
    count: usize,
    /// Bytes of the file that `references` lead to together.
    span: u64,
}

impl Levels {
    fn push(&mut self, writer: &mut Writer<'_>, hash: &BlockHash, span: u64) -> Result<()> {
        let mut reference = Vec::new();
        BlockRef::encode_hash(&mut reference, hash, span, false);
        self.push_at(writer, 0, &reference, span)
    }

    fn push_at(&mut self, writer: &mut Writer<'_>, level: usize, reference: &[u8], span: u64) -> Result<()> {
        if self.0.len() == level {
            self.0.push(Level::default());
        }
        if self.0[level].references.len() + reference.len() > REFERENCES_BYTES {
            self.close(writer, level)?;
        }
        let here = &mut self.0[level];
        here.references.extend(reference);
        here.count += 1;
        here.span += span;
        Ok(())
    }

    /// Adds a reference to the written block to the next level.
    fn close(&mut self, writer: &mut Writer<'_>, level: usize) -> Result<()> {
        let Level { references, span, .. } = std::mem::take(&mut self.0[level]);
        let hash = writer.block(&references)?;
        let mut reference = Vec::new();
        BlockRef::encode_hash(&mut reference, &hash, span, true);
        self.push_at(writer, level + 1, &reference, span)
    }

    /// Writes blocks until one reference leads to all; returns it, encoded.
    fn finish(mut self, writer: &mut Writer<'_>) -> Result<Vec<u8>> {
        let mut level = 0;
        loop {
            let is_last = level + 1 == self.0.len();
            if is_last && self.0[level].count == 1 {
                return Ok(std::mem::take(&mut self.0[level].references));
            }
            if self.0[level].count > 0 {
                self.close(writer, level)?;
            }
            level += 1;
        }
    }
}

/// An ISO date in UTC, and seconds since 1970.
fn now() -> (String, String) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (date(now.as_secs(), now.subsec_micros()), format!("{}.{:06}", now.as_secs(), now.subsec_micros()))
}
