//! While converting: finds the recipe of every original file, tries it, and keeps what it does not give.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::BString;
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use super::rebuild::{WINDOW_BYTES, WINDOWS, Window, for_windows};
use super::recipe::{Encoding, File, GROUP, LITERALS, MOST_SEGMENTS, Recipe, Segment, Sources, Stream, encode};
use crate::convert::to_hdf5::{ColumnPlan, Form, Plan, TablePlan};
use crate::error::{Context, Error, Result, ResultExt, column_context as place};
use crate::h5::{Coder, Dataset, DatasetSpec, Deflate, Group, Pipeline, Stage};
use crate::io::{ByteOrder, FileSource, ReadAt};
use crate::native::{MAX_CUBES, Reader};
use crate::pool::Buffers;
use crate::progress::Progress;
use crate::source::Source;
use crate::source::tree::Tree;
use crate::table::{Cells, Extent, RowRun, Stored};
use crate::value::{DataType, Shape};

/// Of the datasets of literals and of segments.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks of literals that are compressed together.
const CHUNKS: usize = 8;
const LEVEL: u8 = 6;
/// Of a dataset that is one chunk, which takes little time.
const LEVEL_ALONE: u8 = 9;
/// What a window takes in all: three times its bytes, those that wait, and its share of caches.
const MEMORY_OF_WINDOW: u64 = 64 << 20;
/// Matching bytes between two literals that are not worth a segment of their own.
const GAP: usize = 8;
/// Most segments of columns in a file, and most literals before the rest of it is kept whole.
const MOST: usize = 1 << 18;
// the window in which there are that many may be full of small ones
const _: () = assert!(2 * MOST as u64 + WINDOW_BYTES / GAP as u64 <= MOST_SEGMENTS);
/// Rows whose offsets in a dataset of cells of differing shapes are read at a time.
const OFFSETS: u64 = 1 << 16;

/// Writes to `/_ctds/restore` how the files of `tree` come from the datasets of the file, all of which are written.
///
/// `source` is the file itself, `root` its root group. About `max_memory` bytes are held at a time.
#[allow(clippy::too_many_arguments, reason = "the parts of a conversion")]
pub(crate) fn record(
    tree: &Tree,
    tables: &Source,
    plan: &Plan,
    root: &Group,
    source: &Arc<dyn ReadAt>,
    pool: &rayon::ThreadPool,
    max_memory: u64,
    progress: &dyn Progress,
) -> Result<()> {
    let group = root.group("_ctds")?.create_group(GROUP)?;
    let recipe = Recipe::default();
    let literals = Growing::new(&group, "literals", DataType::UChar);
    let segments = Growing::new(&group, "segments", DataType::Int64);
    let windows = (max_memory / MEMORY_OF_WINDOW).clamp(1, WINDOWS as u64) as usize;
    let known = HashMap::new();
    let mut recorder = Recorder { root, source, pool, windows, recipe, known, literals, segments, progress };
    let literals = format!("/_ctds/{GROUP}/literals");
    recorder.stream(Stream { dataset: literals, encoding: Encoding::Bytes(ByteOrder::Little), cell: Shape::scalar() });
    let mut found = recorder.find_segments(tree, tables, plan)?;
    recorder.recipe.directories = tree.directories.clone();
    let mut elements = HashMap::new();
    // files of one name are alike, and compressed best side by side
    let mut files: Vec<_> = tree.files.iter().collect();
    files.sort_by_key(|(name, _)| name.rsplit(|&byte| byte == b'/').next());
    for (name, path) in files {
        let segments = found.remove(path).unwrap_or_default();
        recorder.file(name, path, segments, &mut elements).with_context(|| Context::path(&path))?;
    }
    recorder.find_whole(elements)?;
    let Recorder { recipe, literals, segments, .. } = recorder;
    literals.finish(pool)?;
    segments.finish(pool)?;
    let mut index = Growing::new(&group, "index", DataType::UChar);
    index.push(recipe.to_json().to_string().as_bytes(), pool)?;
    index.finish(pool)
}

struct Recorder<'a> {
    root: &'a Group,
    source: &'a Arc<dyn ReadAt>,
    pool: &'a rayon::ThreadPool,
    /// Of a file, that are tried together.
    windows: usize,
    recipe: Recipe,
    /// The numbers of streams.
    known: HashMap<Stream, u32>,
    literals: Growing,
    segments: Growing,
    progress: &'a dyn Progress,
}

/// Segments of a file, in the order in which they are found.
#[derive(Debug, Default)]
struct Segments {
    list: Vec<Segment>,
    /// There were more than can be held: the file is stored as it is.
    too_many: bool,
}

impl Segments {
    /// Adds a box, as one more of the last segment where it can be.
    fn push(&mut self, stream: u32, first: u64, rows: u64, offset: u64) {
        if let Some(last) = self.list.last_mut()
            && (last.stream, last.rows, last.first + last.count * last.rows) == (stream, rows, first)
        {
            let stride = if last.count == 1 { offset.saturating_sub(last.offset) } else { last.stride };
            if stride > 0 && last.offset + last.count * stride == offset {
                last.stride = stride;
                last.count += 1;
                return;
            }
        }
        self.list.push(Segment { stream, first, rows, count: 1, offset, stride: 0 });
    }
}

impl Recorder<'_> {
    fn stream(&mut self, stream: Stream) -> u32 {
        if let Some(&number) = self.known.get(&stream) {
            return number;
        }
        let number = self.recipe.streams.len() as u32;
        self.recipe.streams.push(stream.clone());
        self.known.insert(stream, number);
        number
    }

    /// Asks all columns where in the files of `tree` their elements lie.
    fn find_segments(&mut self, tree: &Tree, tables: &Source, plan: &Plan) -> Result<HashMap<PathBuf, Segments>> {
        let mut found: HashMap<PathBuf, Segments> =
            tree.files.iter().map(|(_, path)| (path.clone(), Segments::default())).collect();
        for table in &plan.tables {
            let entry = &tables.tables[table.source];
            let content = entry.content()?;
            let (Some(directory), Some(stored)) = (&entry.path, content.as_table()) else { continue };
            for column in &table.columns {
                self.progress.go_on()?;
                if !column.data_type.is_fixed_size() {
                    continue;
                }
                let cells = content.cells(column.index)?;
                let mut placing = Placing::new(self, table, column, &*cells)?;
                let mut each = |extent: Extent<'_>| {
                    let path = directory.join(stored.file_name(column.index, extent.suffix));
                    match found.get_mut(&path) {
                        Some(segments) => placing.add(&extent, segments),
                        None => Ok(()),
                    }
                };
                cells
                    .extents(content.rows(), MAX_CUBES, &mut each)
                    .with_context(|| place(&table.name, &column.name))?;
            }
        }
        Ok(found)
    }

    /// Tries the segments of a file and keeps them, and as literals what they do not give. `elements` are those that
    /// datasets give of their own.
    fn file(
        &mut self,
        name: &BString,
        path: &Path,
        mut segments: Segments,
        elements: &mut HashMap<u32, u64>,
    ) -> Result<()> {
        let file = FileSource::open(path)?;
        let len = file.len()?;
        let sources = Sources::open(self.root, self.source, &self.recipe.streams, &segments.list)?;
        // a column whose place the table itself does not bear out is no help
        segments.list.retain(|segment| sources.check(segment, len).is_ok());
        let mut sha = Sha256::new();
        let mut kept = Segments::default();
        let buffers = Buffers::default();
        let (mut as_expected, mut covered) = (true, 0);
        let progress = self.progress;
        let work = |window: Window| -> Result<Tried> {
            progress.go_on()?;
            let [mut actual, mut given, mut covers] = [(); 3].map(|()| buffers.zeros(window.len()));
            file.read_at(window.bytes.start, &mut actual)?;
            window.fill(&sources, &mut given, Some(&mut covers))?;
            let (wrong, as_expected) = differences(&actual, &given, &covers);
            let covered = covers.iter().map(|&covered| u64::from(covered)).sum();
            buffers.give(given);
            buffers.give(covers);
            Ok(Tried { start: window.bytes.start, actual, wrong, covered, as_expected })
        };
        let (literals, pool) = (&mut self.literals, self.pool);
        let take = |tried: Tried| -> Result<()> {
            sha.update(&tried.actual);
            as_expected &= tried.as_expected;
            covered += tried.covered;
            // so many places where the file is not as expected that the rest is kept whole
            let whole = || std::iter::once(0..tried.actual.len()).collect();
            let wrong = if kept.list.len() < MOST { tried.wrong } else { whole() };
            for range in wrong {
                let (first, offset) = (literals.len(), tried.start + range.start as u64);
                let bytes = &tried.actual[range];
                match kept.list.last_mut() {
                    // a literal that goes on in the next window
                    Some(last) if last.count == 1 && last.offset + last.rows == offset => {
                        last.rows += bytes.len() as u64
                    }
                    _ => kept.push(LITERALS, first, bytes.len() as u64, offset),
                }
                literals.push(bytes, pool)?;
            }
            buffers.give(tried.actual);
            Ok(())
        };
        for_windows(len, segments.list.clone(), &sources, (pool, self.windows), work, take)?;
        let literal: u64 = kept.list.iter().map(|segment| segment.rows * segment.count).sum();
        let mut given = 0;
        for segment in &segments.list {
            given += sources.get(segment)?.box_bytes(segment.rows)? * segment.count;
        }
        // where cells share bytes, or literals go before them, not every change would show
        if as_expected && given == covered && covered + literal == len {
            for segment in &segments.list {
                *elements.entry(segment.stream).or_default() += sources.get(segment)?.elements(segment)?;
            }
        }
        segments.list.append(&mut kept.list);
        self.segments.push(bytemuck::cast_slice(&encode(&segments.list)), self.pool)?;
        let segments = segments.list.len() as u64;
        self.recipe.files.push(File { path: name.clone(), len, sha256: sha.finalize().into(), segments });
        Ok(())
    }

    /// Finds the datasets all of whose elements are in files as they are.
    fn find_whole(&mut self, elements: HashMap<u32, u64>) -> Result<()> {
        let mut given: HashMap<&str, u64> = HashMap::new();
        for (stream, elements) in elements {
            *given.entry(&self.recipe.streams[stream as usize].dataset).or_default() += elements;
        }
        let mut whole = Vec::new();
        for (dataset, elements) in given {
            if self.root.dataset(dataset.trim_start_matches('/'))?.shape()?.elements()? == elements {
                whole.push(dataset.to_owned());
            }
        }
        whole.sort();
        self.recipe.whole = whole;
        Ok(())
    }
}

/// A window of a file beside what its segments give.
struct Tried {
    start: u64,
    actual: Vec<u8>,
    /// What becomes literals.
    wrong: Vec<std::ops::Range<usize>>,
    /// Bytes that segments give.
    covered: u64,
    /// Whether all of them are right.
    as_expected: bool,
}

/// The ranges in which no segment gives the right bytes, joined where they are close, and whether segments give only right
/// bytes.
fn differences(actual: &[u8], given: &[u8], covered: &[u8]) -> (Vec<std::ops::Range<usize>>, bool) {
    const BLOCK: usize = 64;
    let (mut wrong, mut as_expected) = (Vec::<std::ops::Range<usize>>::new(), true);
    for start in (0..actual.len()).step_by(BLOCK) {
        let block = start..(start + BLOCK).min(actual.len());
        if actual[block.clone()] == given[block.clone()] && covered[block.clone()].iter().all(|&covered| covered == 1) {
            continue;
        }
        for at in block {
            if covered[at] == 1 && actual[at] == given[at] {
                continue;
            }
            as_expected &= covered[at] == 0;
            match wrong.last_mut() {
                Some(last) if at - last.end < GAP => last.end = at + 1,
                _ => wrong.push(at..at + 1),
            }
        }
    }
    (wrong, as_expected)
}

/// From the extents of a column to segments.
struct Placing<'a, 'b> {
    recorder: &'a mut Recorder<'b>,
    column: &'a ColumnPlan,
    /// The path of the dataset or group.
    path: String,
    /// Whether the column is a hypercube that is its dataset.
    is_cube: bool,
    /// Of a column of differing shapes: where each row begins in `values`; and those of the rows from the first one on.
    offsets: Option<Reader>,
    known: (u64, Vec<i64>),
}

impl<'a, 'b> Placing<'a, 'b> {
    fn new(
        recorder: &'a mut Recorder<'b>,
        table: &TablePlan,
        column: &'a ColumnPlan,
        cells: &dyn Cells,
    ) -> Result<Self> {
        let path = format!("{}/{}", table.group, column.link);
        let is_cube = match (&column.form, cells.tiling(1)) {
            (Form::Dense { shape, .. }, Some(tiling)) => {
                let rows = shape.last().copied().unwrap_or_default();
                tiling.cubes.len() == 1
                    && tiling.cubes[0].grid().shape == *shape
                    && tiling.runs == [RowRun { rows: 0..rows, cube: 0, position: 0 }]
            }
            _ => false,
        };
        let offsets = match &column.form {
            Form::Ragged { .. } => {
                let dataset = recorder.root.dataset(&format!("{}/offset", &path[1..]))?;
                Some(Reader::of_file(dataset, recorder.source.clone())?)
            }
            _ => None,
        };
        Ok(Placing { recorder, column, path, is_cube, offsets, known: (0, Vec::new()) })
    }

    fn add(&mut self, extent: &Extent<'_>, segments: &mut Segments) -> Result<()> {
        if segments.too_many {
            return Ok(());
        }
        let encoding = match self.column.data_type {
            DataType::Bool => Encoding::Bits,
            data_type if data_type.size() == 1 => Encoding::Bytes(ByteOrder::Little),
            _ => Encoding::Bytes(extent.order),
        };
        match (&extent.content, &self.column.form) {
            (Stored::Cells(rows), Form::Dense { shape, .. }) => {
                let Some((cell, _)) = shape.split_last().filter(|(cell, _)| !cell.contains(&0)) else { return Ok(()) };
                let stream = self.recorder.stream(Stream { dataset: self.path.clone(), encoding, cell });
                segments.push(stream, rows.start, rows.end - rows.start, extent.offset);
            }
            (Stored::Cells(rows), Form::Ragged { .. }) => {
                let (first, end) = (self.offset(rows.start)?, self.offset(rows.end)?);
                if end > first {
                    let dataset = format!("{}/values", self.path);
                    let stream = self.recorder.stream(Stream { dataset, encoding, cell: Shape::scalar() });
                    segments.push(stream, first, end - first, extent.offset);
                }
            }
            (&Stored::Tiles { cube, ref tile, stride, count }, form) if count > 0 => {
                let dataset = match form {
                    Form::Dense { .. } if self.is_cube => self.path.clone(),
                    Form::Cubes { cubes } if cube < cubes.len() => format!("{}/cube{cube}", self.path),
                    _ => return Ok(()),
                };
                let Some((cell, rows)) = tile.split_last() else { return Ok(()) };
                let stream = self.recorder.stream(Stream { dataset, encoding, cell });
                let stride = if count == 1 { 0 } else { stride };
                segments.list.push(Segment { stream, first: 0, rows, count, offset: extent.offset, stride });
            }
            _ => {}
        }
        if segments.list.len() > MOST {
            *segments = Segments { list: Vec::new(), too_many: true };
        }
        Ok(())
    }

    /// Where a row begins in `values`.
    fn offset(&mut self, row: u64) -> Result<u64> {
        let Some(reader) = &self.offsets else { return Err(Error::format("no offsets")) };
        let (start, known) = &mut self.known;
        if row < *start || row - *start >= known.len() as u64 {
            let end = reader.rows().min(row.saturating_add(OFFSETS));
            *start = row;
            *known = reader.integers(row..end)?;
        }
        known.get((row - *start) as usize).map(|&offset| offset as u64).ok_or_else(|| Error::format("too few offsets"))
    }
}

/// A dataset with one axis whose length shows at the end.
struct Growing {
    group: Group,
    name: &'static str,
    element: DataType,
    /// Made when there is more than one chunk.
    dataset: Option<Dataset>,
    level: u8,
    /// Chunks written.
    chunks: u64,
    pending: Vec<u8>,
}

impl Growing {
    fn new(group: &Group, name: &'static str, element: DataType) -> Self {
        Growing { group: group.clone(), name, element, dataset: None, level: LEVEL, chunks: 0, pending: Vec::new() }
    }

    /// Elements so far.
    fn len(&self) -> u64 {
        (self.chunks * CHUNK_BYTES as u64 + self.pending.len() as u64) / self.element.size() as u64
    }

    /// Appends the little-endian bytes of elements.
    fn push(&mut self, mut bytes: &[u8], pool: &rayon::ThreadPool) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNKS * CHUNK_BYTES - self.pending.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
            if self.pending.len() == CHUNKS * CHUNK_BYTES {
                self.write(pool)?;
            }
        }
        Ok(())
    }

    fn finish(mut self, pool: &rayon::ThreadPool) -> Result<()> {
        let len = self.len();
        if self.dataset.is_none() && self.pending.len() <= CHUNK_BYTES {
            let shape = Shape::from([len]);
            self.level = LEVEL_ALONE;
            self.dataset = Some(self.create(&shape, &shape, false)?);
            if len == 0 {
                return Ok(());
            }
        }
        self.write(pool)?;
        match &self.dataset {
            Some(dataset) if dataset.is_appendable()? => dataset.set_extent(len),
            _ => Ok(()),
        }
    }

    fn create(&self, shape: &Shape, chunk: &Shape, appendable: bool) -> Result<Dataset> {
        let filter = Some(Deflate { level: self.level });
        let spec = DatasetSpec { element: self.element, shape, chunk: Some(chunk.clone()), appendable, filter };
        self.group.create_dataset(self.name, &spec)
    }

    /// Writes what is pending, filtered on the threads of `pool`; the last chunk is filled up with zeros.
    fn write(&mut self, pool: &rayon::ThreadPool) -> Result<()> {
        let size = self.element.size();
        if self.dataset.is_none() {
            let chunk = Shape::from([(CHUNK_BYTES / size) as u64]);
            self.dataset = Some(self.create(&chunk, &chunk, true)?);
        }
        let Some(dataset) = &self.dataset else { return Ok(()) };
        let chunk = dataset.chunk()?.ok_or_else(|| Error::format("no chunks"))?.elements()?;
        let chunk_bytes = chunk as usize * size;
        let pipeline =
            Pipeline::new(vec![Stage::Shuffle { element_size: size }, Stage::Deflate(Deflate { level: self.level })]);
        self.pending.resize(self.pending.len().next_multiple_of(chunk_bytes), 0);
        let filter = |coder: &mut Coder, bytes: &[u8]| {
            let mut packed = Vec::new();
            pipeline.encode(coder, bytes, &mut packed);
            packed
        };
        let packed: Vec<Vec<u8>> =
            pool.install(|| self.pending.par_chunks(chunk_bytes).map_init(Coder::default, filter).collect());
        if dataset.is_appendable()? {
            dataset.set_extent((self.chunks + packed.len() as u64) * chunk)?;
        }
        for bytes in packed {
            dataset.write_chunk(&[self.chunks], &bytes, 0)?;
            self.chunks += 1;
        }
        self.pending.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_distances_are_one_segment() {
        let mut segments = Segments::default();
        for box_number in 0..5 {
            segments.push(1, box_number * 10, 10, 512 + box_number * 80);
        }
        // not at that distance, not the next rows, another extent, not behind
        for (first, rows, offset) in [(50, 10, 1000), (80, 10, 2000), (90, 9, 3000), (99, 9, 2900)] {
            segments.push(1, first, rows, offset);
        }
        let counts: Vec<(u64, u64, u64)> =
            segments.list.iter().map(|segment| (segment.offset, segment.count, segment.stride)).collect();
        assert_eq!(counts, [(512, 5, 80), (1000, 1, 0), (2000, 1, 0), (3000, 1, 0), (2900, 1, 0)]);
    }

    #[test]
    fn differences_are_what_is_wrong_or_given_by_nobody() {
        let actual: Vec<u8> = (0..200).collect();
        let (mut given, mut covered) = (actual.clone(), vec![1; 200]);
        assert_eq!(differences(&actual, &given, &covered), (vec![], true));
        covered[..10].fill(0);
        covered[12..20].fill(0);
        covered[199] = 0;
        assert_eq!(differences(&actual, &given, &covered), (vec![0..20, 199..200], true));
        given[100] ^= 1;
        assert_eq!(differences(&actual, &given, &covered), (vec![0..20, 100..101, 199..200], false));
    }
}
