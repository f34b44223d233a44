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

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ctds::container::{Container, Directory, WriteOptions, Written, check_name};
use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds::io::{FileTarget, Growth, ReadAt, WriteAt};
use ctds::limits;
use ctds::progress::Progress;
use rayon::prelude::*;

use super::archive;
use super::chunker::Cut;
use super::dirent::{Dirent, EntryKind, Meta};
use super::hash::{BlockHash, HashKind};
use super::index::{self, Growing, Index, IndexFile, Indexed};
use super::records::LARGEST_BLOCK;
use super::reference::BlockRef;
use super::store::{self, DATA, Store};
use super::text;
use super::tree::META;
use super::wire::{put_data, put_uint};
use super::zlib;

/// The only hash that every version of the original reads.
const KIND: HashKind = HashKind::Sha1;

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
    let mut writer = Writer::new(store, store_path, cut, progress);
    let data = writer.directory(source, "", 0)?;
    let root = writer.block(&data)?;
    let span = data.len();
    let added = writer.finish()?;
    let name = source.path("").and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let name = name.or_else(|| Some(target.file_stem()?.to_str()?.to_owned())).unwrap_or_default();
    let (date, seconds) = now();
    let line = format!(
        "{date} {seconds} D{{{}:meta:M{{a:\"o:rwx-\",m:{seconds}}},block:B{{hash:H{{{root}}},span:{span}}}}}\n",
        text::quote(&name)
    );
    let warnings = append_line(&target, &line)?;
    let damage = damage.iter().map(|error| format!("the store has damage: {error}"));
    Ok(Written { stored_bytes: added + line.len() as u64, warnings: damage.chain(warnings).collect() })
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
    store: Arc<Store>,
    path: PathBuf,
    cut: Cut,
    progress: &'a dyn Progress,
    /// `None` until the first new block.
    file: Option<DataFile>,
    /// The blocks that this process has written, with their offsets in `file`.
    written: Growing,
}

struct DataFile {
    name: String,
    file: File,
    bytes: u64,
    buffer: Vec<u8>,
    /// Ends in `buffer` of the separate writes: whole records, about 1 MiB each.
    ends: Vec<usize>,
    /// Asks the system early to write the file to the disk.
    growth: Growth,
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
    fn new(store: Arc<Store>, path: PathBuf, cut: Cut, progress: &'a dyn Progress) -> Self {
        let written = Growing::new(&path);
        Writer { store, path, cut, progress, file: None, written }
    }

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
            let mut data_file = self.file.take();
            let (ready, (advanced, written)) = rayon::join(
                || window.blocks().map(|block| self.prepare(block)).collect::<Result<Vec<_>>>(),
                || {
                    let advanced = self.advance(source, window.rest(), window.read, len, &mut next);
                    (advanced, data_file.as_mut().map_or(Ok(()), DataFile::make_room))
                },
            );
            self.file = data_file;
            advanced?;
            written?;
            for Ready { hash, span, record } in ready? {
                if let Some(record) = record {
                    self.append(&hash, &record)?;
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
        let is_known = self.written.contains(&hash)? || self.store.contains(&hash)?;
        Ok(Ready { hash, span: block.len(), record: (!is_known).then(|| record(block)) })
    }

    fn block(&mut self, block: &[u8]) -> Result<BlockHash> {
        let Ready { hash, record, .. } = self.prepare(block)?;
        if let Some(record) = record {
            self.append(&hash, &record)?;
        }
        Ok(hash)
    }

    fn append(&mut self, hash: &BlockHash, record: &[u8]) -> Result<()> {
        // twice among the blocks that were prepared together
        if self.written.was_just_added(hash) {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(DataFile::create(&self.path.join(DATA))?),
        };
        let offset = file.end();
        file.append(record)?;
        self.written.add(hash, offset)
    }

    /// Makes blocks durable and updates the index; returns the bytes added to the data files.
    fn finish(mut self) -> Result<u64> {
        let Some(mut file) = self.file.take() else { return Ok(0) };
        file.flush()?;
        file.file.sync_all()?;
        // blocks of other processes that this tree refers to may not be durable yet
        self.store.sync(KIND)?;
        File::open(self.path.join(DATA))?.sync_all()?;
        File::open(&self.path)?.sync_all()?;
        let bytes = file.bytes;
        let indexed = Indexed { name: file.name.clone(), bytes };
        drop(file);
        write_index(&self.path, &self.store, indexed, self.written)?;
        Ok(bytes)
    }
}

/// Header and data of a block, which are compressed if that saves at least a tenth of their bytes.
fn record(block: &[u8]) -> Vec<u8> {
    thread_local! {
        static COMPRESSED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let mut record = Vec::with_capacity(block.len() + 8);
    let limit = block.len() - block.len() / 10;
    COMPRESSED.with_borrow_mut(|compressed| {
        if compressed.len() < limit {
            compressed.resize(limit, 0);
        }
        match zlib::deflate(block, &mut compressed[..limit]) {
            Some(len) => {
                put_uint(&mut record, 1);
                put_data(&mut record, &compressed[..len]);
            }
            // the stream is not short enough
            None => {
                put_uint(&mut record, 0);
                put_data(&mut record, block);
            }
        }
    });
    record
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

/// Minimum bytes at which buffered records are written while other blocks are prepared.
const WRITTEN_BYTES: usize = 1 << 20;

/// Maximum bytes of the buffer: before the next record would exceed it, the buffer is written.
const BUFFER_BYTES: usize = 2 * WINDOW;

impl DataFile {
    /// Creates a data file with a random name, locked as the original does while it appends.
    fn create(directory: &Path) -> Result<Self> {
        let (mut file, mut path) = tempfile::Builder::new()
            .prefix("h5bridge-")
            .rand_bytes(16)
            .suffix(".vtd")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(directory)?
            .into_parts();
        path.disable_cleanup(true);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        file.rewind()?;
        // a file system without locks does not matter: the name is random
        let _ = file.try_lock();
        let growth = Growth::of(file.try_clone()?)?;
        Ok(DataFile { name, file, bytes: 0, buffer: Vec::new(), ends: Vec::new(), growth })
    }

    fn end(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }

    fn append(&mut self, record: &[u8]) -> Result<()> {
        if self.end() + record.len() as u64 > index::LARGEST_FILE {
            return Err(Error::limit(format!("the data file would exceed its limit of {} bytes", index::LARGEST_FILE)));
        }
        if self.buffer.len() + record.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if self.buffer.len() + record.len() > self.ends.last().copied().unwrap_or(0) + WRITTEN_BYTES {
            self.ends.push(self.buffer.len());
        }
        self.buffer.extend(record);
        Ok(())
    }

    fn make_room(&mut self) -> Result<()> {
        if self.buffer.len() < WRITTEN_BYTES { Ok(()) } else { self.flush() }
    }

    /// An error drops the records that are not written yet.
    fn flush(&mut self) -> Result<()> {
        let mut start = 0;
        let mut write = |end: usize| {
            self.file.write_all(&self.buffer[start..end])?;
            self.growth.write_back();
            self.bytes += (end - start) as u64;
            start = end;
            Ok(())
        };
        let written = self.ends.iter().chain([&self.buffer.len()]).try_for_each(|&end| write(end));
        self.buffer.clear();
        self.ends.clear();
        written.inspect_err(|_: &std::io::Error| {
            // whole records stay
            let _ = self.file.set_len(self.bytes);
            let _ = self.file.seek(SeekFrom::End(0));
        })?;
        Ok(())
    }
}

/// Writes records even after an error: a later attempt then finds these blocks stored.
impl Drop for DataFile {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// A store with 1/16 unindexed gets a new index; unindexed bytes are read at each opening.
const UNINDEXED_SHARE: u64 = 16;
const UNINDEXED_BYTES: u64 = 1 << 30;

/// Skipped unless the store has none, or at least 1/16 of it or 1 GiB is not indexed.
fn write_index(path: &Path, store: &Store, own: Indexed, written: Growing) -> Result<()> {
    let name = store::index_name(KIND);
    let lock = File::options().create(true).truncate(false).write(true).open(path.join(format!("{name}.lock")))?;
    if lock.try_lock().is_err() {
        // another process writes the index; blocks missing from it are read when the store is
        // opened
        return Ok(());
    }
    let known = store.known(KIND)?;
    let unindexed = known.unindexed_bytes + own.bytes;
    if known.old().is_some() && unindexed < UNINDEXED_BYTES && unindexed * UNINDEXED_SHARE < store.bytes() {
        return Ok(());
    }
    let mut files = known.files.clone();
    let number = files.len();
    files.push(own);
    let (runs, recent) = written.finish(number);
    let added = Index::new(known.scanned().iter().copied().chain(recent).collect());
    let old: Vec<&IndexFile> = known.old().into_iter().chain(&runs).collect();
    let partial = path.join(format!("{name}.partial"));
    let target = FileTarget::create(&partial)?;
    index::write(&target, &files, &old, &added)?;
    target.sync()?;
    fs::rename(&partial, path.join(&name))?;
    Ok(())
}

/// End of the name of the file whose existence locks an archive for the original.
const LOCK_SUFFIX: &str = ".lock";

const LOCK_MARK: &[u8] = b"h5bridge\n";

const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(50);

/// The lock file of an archive, as the original uses it; removed when dropped.
#[derive(Debug)]
struct ArchiveLock(PathBuf);

impl ArchiveLock {
    /// The caller holds `flock` on the archive, so a lock file with this program's mark is left
    /// from a killed process, and is replaced. `Locked` if that of another program still exists
    /// after `wait`.
    fn take(archive: &Path, wait: Duration) -> Result<Self> {
        let mut path = archive.to_owned().into_os_string();
        path.push(LOCK_SUFFIX);
        let path = PathBuf::from(path);
        let until = Instant::now() + wait;
        loop {
            // written before it gets its name, so that no process sees the lock file without its
            // mark
            let mut marked = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
            marked.write_all(LOCK_MARK)?;
            match marked.persist_noclobber(&path) {
                Ok(_) => return Ok(ArchiveLock(path)),
                Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(error.error.into());
                }
                Err(_) => {}
            }
            if fs::read(&path).is_ok_and(|content| content == LOCK_MARK) {
                fs::remove_file(&path)?;
            } else if Instant::now() < until {
                std::thread::sleep(LOCK_POLL);
            } else {
                let message = format!(
                    "{} exists: another program adds to the archive; if none does, a killed one has left the file: remove it",
                    path.display()
                );
                return Err(Error::new(ErrorKind::Locked, message));
            }
        }
    }
}

impl Drop for ArchiveLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Adds a missing line end if the last line can be parsed; otherwise cuts this line off, and
/// returns a warning. After an error the archive is as before; one without lines is removed.
fn append_line(target: &Path, line: &str) -> Result<Option<String>> {
    let mut file = loop {
        let file = File::options().create(true).truncate(false).read(true).write(true).open(target)?;
        file.lock()?;
        // another process may have removed the file while this one waited for the lock
        let (ours, named) = (file.metadata()?, fs::metadata(target));
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())) {
            break file;
        }
    };
    let appended = append(&mut file, target, line);
    if appended.is_err() && file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
        let _ = fs::remove_file(target);
    }
    appended
}

/// The archive is locked.
fn append(file: &mut File, target: &Path, line: &str) -> Result<Option<String>> {
    let _lock = ArchiveLock::take(target, LOCK_WAIT)?;
    let mut bytes = Vec::new();
    limits::whole_file(file.metadata()?.len())?;
    file.read_to_end(&mut bytes)?;
    let mut end = bytes.len();
    let mut warning = None;
    if bytes.last().is_some_and(|&last| last != b'\n') {
        let start = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if archive::parse(&[&bytes[start..], b"\n"].concat()).is_err() {
            warning =
                Some(format!("the last line of the archive, {} bytes, was incomplete and is cut off", end - start));
            end = start;
        }
    }
    let line =
        if end == bytes.len() && end > 0 && bytes[end - 1] != b'\n' { format!("\n{line}") } else { line.to_owned() };
    file.set_len(end as u64)?;
    file.seek(SeekFrom::Start(end as u64))?;
    if let Err(error) = file.write_all(line.as_bytes()).and_then(|()| file.sync_all()) {
        let _ = file.set_len(end as u64);
        return Err(error.into());
    }
    if bytes.is_empty()
        && let Some(directory) = target.parent()
    {
        File::open(directory)?.sync_all()?;
    }
    Ok(warning)
}

/// An ISO date in UTC, and seconds since 1970.
fn now() -> (String, String) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (date(now.as_secs(), now.subsec_micros()), format!("{}.{:06}", now.as_secs(), now.subsec_micros()))
}

/// A time since 1970 as an ISO date in UTC.
fn date(seconds: u64, microseconds: u32) -> String {
    format!("{}.{microseconds:06}+00:00", ctds::calendar::Moment::of_unix(seconds as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000+00:00"),
            (951_782_400, "2000-02-29T00:00:00.000000+00:00"),
            (1_600_000_000, "2020-09-13T12:26:40.000000+00:00"),
            (4_107_542_399, "2100-02-28T23:59:59.000000+00:00"),
            (4_107_542_400, "2100-03-01T00:00:00.000000+00:00"),
        ] {
            assert_eq!(date(seconds, 0), expected);
        }
    }

    #[test]
    fn the_lock_of_the_original_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (archive, lock) = (folder.path().join("a.vt"), folder.path().join("a.vt.lock"));
        drop(ArchiveLock::take(&archive, Duration::ZERO).unwrap());
        assert!(!lock.exists());
        // as a killed process of this program leaves it
        fs::write(&lock, LOCK_MARK).unwrap();
        let taken = ArchiveLock::take(&archive, Duration::ZERO).unwrap();
        assert!(lock.exists());
        drop(taken);
        // as the original makes it
        fs::write(&lock, "").unwrap();
        assert_eq!(ArchiveLock::take(&archive, LOCK_POLL).unwrap_err().kind(), ErrorKind::Locked);
        assert!(lock.exists());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(2 * LOCK_POLL);
                fs::remove_file(&lock).unwrap();
            });
            ArchiveLock::take(&archive, LOCK_WAIT).unwrap();
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_incomplete_line_is_completed_or_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.vt");
        let line = "2020-01-01T00:00:00+00:00 1577836800.0 F{\"f\":block:LB{61}}";
        for (before, after, has_warning) in [
            (String::new(), format!("{line}\n"), false),
            (format!("{line}\n"), format!("{line}\n{line}\n"), false),
            (line.to_owned(), format!("{line}\n{line}\n"), false),
            (format!("{line}\n{}", &line[..50]), format!("{line}\n{line}\n"), true),
        ] {
            fs::write(&archive, before).unwrap();
            assert_eq!(append_line(&archive, &format!("{line}\n")).unwrap().is_some(), has_warning);
            assert_eq!(fs::read_to_string(&archive).unwrap(), after);
        }
    }
}
