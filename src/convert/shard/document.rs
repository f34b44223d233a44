//! The plan of a conversion by many processes as a document, `plan.ndjson`, with a JSON object in
//! each line: one for the conversion, one for each dataset, one for each item (a range of chunks or
//! tiles that one worker writes).

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tile_file::TileFile;
use crate::convert::recorded_file::RecordedFile;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::grid::Grid;
use crate::h5::Compression;
use crate::hash::{Hash, HashKind, Hasher};
use crate::value::Shape;

/// Other versions are refused.
const VERSION: u32 = 1;
const MAX_ITEMS: u64 = 1 << 20;
const ID_DIGITS: usize = 16;
/// Also limits all tiles with the same rows; four times the largest chunk made of a tile.
pub(super) const MAX_CHUNK_BYTES: u64 = 64 << 20;
/// The first line is the longest, since it lists all files of the source.
const LINE_BYTES: u64 = 1 << 28;

/// The plan of a conversion by two or more processes: source, target, and the items (ranges of
/// chunks or tiles), each written by one worker. Made by
/// [`ToHdf5Plan::shard`](super::super::ToHdf5Plan::shard) or
/// [`ToTable::shard`](super::super::ToTable::shard).
#[derive(Debug)]
pub struct ShardPlan {
    target: PathBuf,
    pub(super) header: Header,
    pub(super) datasets: Vec<Dataset>,
    items: Vec<ShardItem>,
    /// The plan was read from the document that commit leaves beside the target.
    is_committed: bool,
}

/// An item of a plan (the work list of a conversion by many processes): a range of chunks of a
/// dataset, or of tiles of a table, which one worker writes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShardItem {
    /// Identifier of the item: 16 hexadecimal digits of a hash of the source's files (paths, sizes
    /// and times), of the dataset and of the range.
    pub id: String,
    /// Index in `ShardPlan::datasets`.
    pub(super) dataset: usize,
    /// Chunks count along the fastest axis first; of a table, groups of [`TileFile::joined`] tiles.
    pub(super) first: u64,
    /// End of the half-open range.
    pub(super) last: u64,
    /// Size in bytes of the chunks that a worker writes for this item, uncompressed and with the
    /// padding at the edges. If the conversion makes a table: size of the tiles as stored, with the
    /// last group of tiles taken as full.
    pub bytes: u64,
    /// Number and hash of the bytes that a worker wrote for this item (a range of chunks or tiles).
    /// `None` until commit, the last step of the conversion, has published the HDF5 file or table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ShardResult>,
}

/// Result of an item of a conversion by many processes: number and hash of the written bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredResult", into = "StoredResult")]
pub struct ShardResult {
    /// Number of bytes that a worker has written for an item: to the HDF5 file, to a separate file
    /// of chunks, or to a file of tiles.
    pub file_bytes: u64,
    /// Hash of the bytes that a worker has written for an item: BLAKE3, or SHA-256 if an older
    /// program has written them.
    pub hash: Hash,
}

/// The hash has its kind for a name.
#[derive(Serialize, Deserialize)]
struct StoredResult {
    file_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blake3: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

impl From<ShardResult> for StoredResult {
    fn from(result: ShardResult) -> Self {
        let of = |kind: HashKind| (result.hash.kind() == kind).then(|| result.hash.to_string());
        StoredResult { file_bytes: result.file_bytes, blake3: of(HashKind::Blake3), sha256: of(HashKind::Sha256) }
    }
}

impl TryFrom<StoredResult> for ShardResult {
    type Error = &'static str;

    fn try_from(stored: StoredResult) -> std::result::Result<Self, Self::Error> {
        let StoredResult { file_bytes, blake3, sha256 } = stored;
        let of = |kind, digits: Option<String>| Hash::parse(kind, &digits?);
        let hash = of(HashKind::Blake3, blake3).or_else(|| of(HashKind::Sha256, sha256));
        Ok(ShardResult {
            file_bytes,
            hash: hash.ok_or("a result has neither a BLAKE3 nor a SHA-256 of 64 hexadecimal digits")?,
        })
    }
}

impl ShardResult {
    pub(super) fn new(file_bytes: u64, hasher: &Hasher) -> Self {
        ShardResult { file_bytes, hash: hasher.finish() }
    }

    /// A sentence on how the bytes found for an item differ from this result.
    pub(super) fn difference(&self, found: &ShardResult) -> Option<String> {
        (found != self).then(|| {
            format!(
                "{} bytes with {} {} are found, {} with {} are recorded",
                found.file_bytes,
                found.hash.kind(),
                found.hash,
                self.file_bytes,
                self.hash
            )
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    version: u32,
    /// Version of h5bridge.
    program: String,
    /// Absolute.
    pub(super) source: PathBuf,
    /// State when the plan was made.
    files: Vec<RecordedFile>,
    /// Without the workers' chunks; of a table, the size of all files but lock files.
    pub(super) file_bytes: u64,
    /// Rows of the main table or, if only subtables are converted, of the first of them.
    pub(super) rows: u64,
    /// Without lock files, relative to the new table; empty for an HDF5 file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) table_files: Vec<RecordedFile>,
}

/// Tables are numbered in the source, columns in their table; shapes are slowest axis first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Dataset {
    /// Path in the HDF5 file; of a table `MAIN/DATA`, with the hypercube if there are several.
    pub(super) path: String,
    pub(super) table: String,
    pub(super) column: String,
    pub(super) table_number: usize,
    pub(super) column_number: usize,
    /// Index among the column's hypercubes.
    pub(super) cube: usize,
    shape: Vec<u64>,
    chunk: Vec<u64>,
    element_bytes: u64,
    /// Row of the source table that is the first row of the dataset.
    pub(super) first_row: u64,
    /// Chunks are made of tiles of the column, not of rows.
    pub(super) is_of_tiles: bool,
    /// The text that [`Compression`] reads.
    compression: String,
    /// Byte of the first chunk of a contiguous dataset in the HDF5 file.
    pub(super) address: Option<u64>,
    /// `None` if the conversion makes an HDF5 file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tiles: Option<TileFile>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// The HDF5 file, in which the dataset's first chunk has this offset.
    Block(u64),
    /// A file of chunks for each item: the offsets in the HDF5 file are not known before commit.
    Chunks,
    Tiles(&'a TileFile),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<H, D, I> {
    Plan(H),
    Dataset(D),
    Item(I),
}

/// A line as parsing returns it.
type OwnLine = Line<Header, Dataset, ShardItem>;

pub(super) struct NewDataset<'a> {
    pub(super) path: String,
    pub(super) table: (usize, &'a str),
    pub(super) column: (usize, &'a str),
    pub(super) cube: usize,
    pub(super) grid: &'a Grid,
    pub(super) element_bytes: u64,
    pub(super) first_row: u64,
    pub(super) is_of_tiles: bool,
    pub(super) compression: Compression,
    pub(super) address: Option<u64>,
    pub(super) tiles: Option<TileFile>,
}

impl From<NewDataset<'_>> for Dataset {
    fn from(new: NewDataset<'_>) -> Self {
        Dataset {
            path: new.path,
            table: new.table.1.to_owned(),
            column: new.column.1.to_owned(),
            table_number: new.table.0,
            column_number: new.column.0,
            cube: new.cube,
            shape: new.grid.shape.reversed(),
            chunk: new.grid.chunk.reversed(),
            element_bytes: new.element_bytes,
            first_row: new.first_row,
            is_of_tiles: new.is_of_tiles,
            compression: new.compression.to_string(),
            address: new.address,
            tiles: new.tiles,
        }
    }
}

impl Dataset {
    pub(super) fn grid(&self) -> Grid {
        Grid { shape: Shape::from_reversed(&self.shape), chunk: Shape::from_reversed(&self.chunk) }
    }

    pub(super) fn place(&self) -> Place<'_> {
        match (&self.tiles, self.address) {
            (Some(tiles), _) => Place::Tiles(tiles),
            (None, Some(address)) => Place::Block(address),
            (None, None) => Place::Chunks,
        }
    }

    /// Chunks, or groups of tiles that are made together.
    pub(super) fn chunks(&self) -> Result<u64> {
        let chunks = self.grid().counts().elements()?;
        Ok(self.tiles.as_ref().map_or(chunks, |tiles| chunks.div_ceil(tiles.joined)))
    }

    /// Uncompressed bytes of a chunk; of a group of tiles, as stored.
    pub(super) fn chunk_bytes(&self) -> Result<u64> {
        if let Some(tiles) = &self.tiles {
            // more than 2^64 bytes are refused when the plan is read
            return Ok(tiles.joined.saturating_mul(tiles.bytes));
        }
        let bytes = Shape::from_reversed(&self.chunk).elements()?.checked_mul(self.element_bytes);
        bytes.ok_or_else(|| Error::format("a chunk has more than 2^64 bytes"))
    }

    pub(super) fn element_bytes(&self) -> u64 {
        self.element_bytes
    }

    pub(super) fn compression(&self) -> Result<Compression> {
        self.compression.parse::<Compression>().map_err(Error::blame_source)
    }

    pub(super) fn block(&self) -> Result<Option<Range<u64>>> {
        let Some(start) = self.address else { return Ok(None) };
        let bytes = self.grid().counts().elements()?.checked_mul(self.chunk_bytes()?);
        let end = bytes.and_then(|bytes| start.checked_add(bytes));
        end.map(|end| Some(start..end)).ok_or_else(|| Error::format("the block ends after 2^64 bytes"))
    }

    /// Refuses impossible or too large shapes, chunks, tiles, offsets and compressions.
    fn check(&self) -> Result<()> {
        let grid = self.grid();
        if grid.shape.is_empty() || grid.shape.len() != grid.chunk.len() || grid.chunk.contains(&0) {
            return Err(Error::format(format!("chunks {} do not fit the shape {}", grid.chunk, grid.shape)));
        }
        grid.shape.elements()?;
        if let Some(tiles) = &self.tiles {
            tiles.check(grid.counts().elements()?)?;
        }
        if self.chunk_bytes()? > MAX_CHUNK_BYTES {
            return Err(Error::format(format!(
                "a chunk has {} bytes, at most {MAX_CHUNK_BYTES} are expected",
                self.chunk_bytes()?
            )));
        }
        self.block()?;
        self.compression().map(|_| ())
    }
}

impl Header {
    pub(super) fn new(
        source: &Path,
        files: Vec<RecordedFile>,
        file_bytes: u64,
        rows: u64,
        table_files: Vec<RecordedFile>,
    ) -> Result<Self> {
        let paths = files.iter().chain(&table_files).map(|file| file.path.as_path());
        let not_utf8 = paths.chain([source]).find(|path| path.to_str().is_none());
        if let Some(path) = not_utf8 {
            return Err(Error::unsupported("the path is not UTF-8: a plan cannot name it").context(Context::path(path)));
        }
        let (source, program) = (source.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Ok(Header { version: VERSION, program, source, files, file_bytes, rows, table_files })
    }

    fn hash_source(&self) -> Hasher {
        let mut hasher = Hasher::new(HashKind::Sha256);
        for file in &self.files {
            hasher.update(format!("{} {} {}\n", file.path.display(), file.size, file.mtime_ns).as_bytes());
        }
        hasher
    }

    /// `Format`, with the name of the file, if one of the source has changed since planning.
    pub(super) fn check_source(&self) -> Result<()> {
        let change = |file: &RecordedFile| Some((file.path.clone(), file.change_below(Path::new(""))?));
        match self.files.iter().find_map(change) {
            None => Ok(()),
            Some((path, change)) => {
                let message = format!("the source changed since the plan was made: {change}; make a new plan");
                Err(Error::format(message).context(Context::path(path)))
            }
        }
    }
}

/// Appends to the file name, without a slash at its end.
fn with_suffix(target: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(target.components().as_path());
    name.push(suffix);
    name.into()
}

impl ShardPlan {
    /// Path of the directory with the plan of a conversion to the file or table `target` by many
    /// processes: `target.shards`.
    pub fn directory_of(target: impl AsRef<Path>) -> PathBuf {
        with_suffix(target.as_ref(), ".shards")
    }

    /// Path of the document that commit leaves beside the published file or table `target`:
    /// `target.shards.ndjson`, with the ranges of chunks or tiles that workers wrote and their
    /// results.
    pub fn ranges_of(target: impl AsRef<Path>) -> PathBuf {
        with_suffix(target.as_ref(), ".shards.ndjson")
    }

    /// Opens the plan of a conversion to the file or table `target` by many processes or, after
    /// commit, the document that commit has left beside `target`.
    ///
    /// # Errors
    /// `NotFound` if there is neither, `Format`, `Io`.
    pub fn open(target: impl AsRef<Path>) -> Result<Self> {
        let target = target.as_ref();
        let (plan, ranges) = (Self::directory_of(target).join(PLAN), Self::ranges_of(target));
        let (path, is_committed) = if plan.exists() { (plan, false) } else { (ranges, true) };
        if !path.exists() {
            let message = "no plan exists for this file: `h5bridge shard plan SOURCE OUT` makes one";
            return Err(Error::not_found(message).context(Context::path(target)));
        }
        Self::read(&path, target, is_committed).with_context(|| Context::path(&path))
    }

    fn read(path: &Path, target: &Path, is_committed: bool) -> Result<Self> {
        let (mut header, mut datasets, mut items) = (None, Vec::<Dataset>::new(), Vec::<ShardItem>::new());
        let mut reader = BufReader::new(fs::File::open(path)?);
        let mut text = String::new();
        for number in 1u64.. {
            text.clear();
            if std::io::Read::take(&mut reader, LINE_BYTES).read_line(&mut text)? == 0 {
                break;
            }
            let place = || Context::from(format!("line {number}"));
            let line: OwnLine = serde_json::from_str(&text)
                .map_err(|error| Error::format(format!("the line is not one of a plan: {error}")).caused_by(error))
                .with_context(place)?;
            match line {
                Line::Plan(found) => header = Some(found),
                Line::Dataset(dataset) => {
                    dataset.check().with_context(place)?;
                    datasets.push(dataset);
                }
                Line::Item(item) => {
                    check_item(&item, &datasets).with_context(place)?;
                    items.push(item);
                }
            }
        }
        let header: Header = header.ok_or_else(|| Error::format("the plan lacks its first line"))?;
        if header.version != VERSION {
            return Err(Error::unsupported(format!("the plan has version {}, only {VERSION} is read", header.version)));
        }
        Ok(ShardPlan { target: target.to_owned(), header, datasets, items, is_committed })
    }

    /// Divides each dataset into items of about `work_bytes` bytes, at least one chunk each.
    pub(super) fn new(target: &Path, header: Header, datasets: Vec<Dataset>, work_bytes: u64) -> Result<Self> {
        let mut items = Vec::new();
        let of_source = header.hash_source();
        for (number, dataset) in datasets.iter().enumerate() {
            let (chunks, chunk_bytes) = (dataset.chunks()?, dataset.chunk_bytes()?);
            let of_item = (work_bytes / chunk_bytes.max(1)).max(1);
            if chunks.div_ceil(of_item).saturating_add(items.len() as u64) > MAX_ITEMS {
                let message = format!("the plan has more than {MAX_ITEMS} items: more bytes for each are needed");
                return Err(Error::usage(message));
            }
            let mut first = 0;
            while first < chunks {
                let last = chunks.min(first + of_item);
                let id = identifier(of_source.clone(), dataset, first..last);
                let bytes = (last - first) * chunk_bytes;
                items.push(ShardItem { id, dataset: number, first, last, bytes, result: None });
                first = last;
            }
        }
        Ok(ShardPlan { target: target.to_owned(), header, datasets, items, is_committed: false })
    }

    /// Also makes the document durable.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let write = || -> Result<()> {
            let mut out = BufWriter::new(fs::File::create(path)?);
            let mut line = |line: Line<&Header, &Dataset, &ShardItem>| -> Result<()> {
                serde_json::to_writer(&mut out, &line).map_err(std::io::Error::from)?;
                Ok(out.write_all(b"\n")?)
            };
            line(Line::Plan(&self.header))?;
            self.datasets.iter().try_for_each(|dataset| line(Line::Dataset(dataset)))?;
            self.items.iter().try_for_each(|item| line(Line::Item(item)))?;
            Ok(out.into_inner().map_err(|error| error.into_error())?.sync_all()?)
        };
        write().with_context(|| Context::path(path))
    }

    /// Path of the HDF5 file or the table directory that the conversion makes.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Absolute path of the source that the plan converts.
    pub fn source(&self) -> &Path {
        &self.header.source
    }

    /// Path of the plan's directory, such as `my.h5.shards`. It has the work list of the conversion
    /// (`plan.ndjson`), the unpublished HDF5 file or table, the files of chunks that workers write,
    /// and the results of workers.
    pub fn directory(&self) -> PathBuf {
        Self::directory_of(&self.target)
    }

    /// Directory in which callers record the results of items (ranges of chunks for workers), as
    /// `h5bridge shard work` does.
    pub fn ledger(&self) -> PathBuf {
        self.directory().join(LEDGER)
    }

    /// The items of the plan (ranges of chunks or tiles, each for one worker), in the order of the
    /// datasets.
    pub fn items(&self) -> &[ShardItem] {
        &self.items
    }

    /// Fails if a file of the source has changed since the plan was made.
    ///
    /// # Errors
    /// `Format`, which names the file that changed.
    pub fn check_source(&self) -> Result<()> {
        self.header.check_source()
    }

    /// Whether commit, the last step of a conversion by many processes, has moved the HDF5 file or
    /// table to [`target`](Self::target) and removed the work list. Nothing is left to do then, but
    /// [`RangeCheck`](super::RangeCheck) can still compare what workers wrote with their results.
    pub fn is_committed(&self) -> bool {
        self.is_committed
    }

    /// Whether the conversion makes a table directory; otherwise an HDF5 file.
    pub fn makes_table(&self) -> bool {
        !self.header.table_files.is_empty()
    }

    /// Describes an item for readers of messages: `MAIN/DATA, chunks 0..32`; of a table:
    /// `MAIN/DATA, tiles 0..32`.
    pub fn describe(&self, item: &ShardItem) -> String {
        let dataset = self.dataset(item);
        let path = dataset.path.trim_start_matches('/');
        match &dataset.tiles {
            Some(tiles) => {
                let all = dataset.grid().counts().elements().unwrap_or(u64::MAX);
                let tile = |chunk: u64| chunk.saturating_mul(tiles.joined).min(all);
                format!("{path}, tiles {}..{}", tile(item.first), tile(item.last))
            }
            None => format!("{path}, chunks {}..{}", item.first, item.last),
        }
    }

    /// Whether a worker writes the chunks of an item to a separate file, because their offsets in
    /// the HDF5 file are known at commit only.
    pub fn is_packed(&self, item: &ShardItem) -> bool {
        matches!(self.dataset(item).place(), Place::Chunks)
    }

    pub(super) fn dataset(&self, item: &ShardItem) -> &Dataset {
        // the number was checked when the plan was made or read
        &self.datasets[item.dataset]
    }

    /// The HDF5 file or table where it is now: in the directory of the plan until commit.
    pub(super) fn file(&self) -> PathBuf {
        if self.is_committed { self.target.clone() } else { self.unpublished() }
    }

    /// Path before commit, such as `my.h5.shards/my.h5`.
    pub(super) fn unpublished(&self) -> PathBuf {
        self.directory().join(self.target.file_name().unwrap_or_default())
    }

    pub(super) fn chunk_file(&self, item: &ShardItem) -> PathBuf {
        self.directory().join(CHUNKS).join(format!("{}.chunks", item.id))
    }

    pub(super) fn items_mut(&mut self) -> &mut [ShardItem] {
        &mut self.items
    }

    pub(super) fn check_not_committed(&self) -> Result<()> {
        if !self.is_committed {
            return Ok(());
        }
        let message = "the target is published already; `h5bridge shard verify` checks it";
        Err(Error::new(ErrorKind::Exists, message).context(Context::path(&self.target)))
    }
}

pub(super) const PLAN: &str = "plan.ndjson";
pub(super) const CHUNKS: &str = "chunks";
pub(super) const LEDGER: &str = "ledger";

/// `hasher` has hashed the source's files already.
fn identifier(mut hasher: Hasher, dataset: &Dataset, chunks: Range<u64>) -> String {
    let Dataset { path, address, .. } = dataset;
    hasher.update(format!("{path} {address:?} {chunks:?}\n").as_bytes());
    let mut id = hasher.finish().to_string();
    id.truncate(ID_DIGITS);
    id
}

/// Identifiers, which are parts of file names, must have 16 hexadecimal digits.
fn check_item(item: &ShardItem, datasets: &[Dataset]) -> Result<()> {
    if item.id.len() != ID_DIGITS || !item.id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Error::format(format!(
            "the identifier {:?} does not have {ID_DIGITS} hexadecimal digits",
            item.id
        )));
    }
    let Some(dataset) = datasets.get(item.dataset) else {
        return Err(Error::format(format!("item {} names dataset {}, which is missing", item.id, item.dataset)));
    };
    let chunks = dataset.chunks()?;
    if item.first >= item.last || item.last > chunks {
        let ShardItem { id, first, last, .. } = item;
        return Err(Error::format(format!("item {id} has chunks {first}..{last}, the dataset has {chunks}")));
    }
    Ok(())
}
