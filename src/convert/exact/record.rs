//! Finds the recipe of every original casacore file during a conversion to a native HDF5 file:
//! which datasets supply which of its bytes. Tests the recipe, and stores the remaining bytes.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::BString;

use super::append_buffer::AppendBuffer;
use super::matching::{MAX_SEGMENTS_PER_FILE, Placing, Segments, Streams};
use super::rebuild::{WINDOW_BYTES, WINDOWS, Window, for_windows};
use super::recipe::{Encoding, File, MAX_STORED_SEGMENTS, Recipe, Segment, Sources, Stream, encode};
use crate::call::pool::Buffers;
use crate::convert::to_hdf5::Plan;
use crate::error::{Context, Result, ResultExt, column_context as place};
use crate::h5::Group;
use crate::hash::{HashKind, Hasher};
use crate::io::{ByteOrder, FileSource, ReadAt};
use crate::native::{CTDS, MAX_CUBES, RESTORE, restore_path};
use crate::progress::Progress;
use crate::source::Source;
use crate::source::tree::Tree;
use crate::table::Extent;
use crate::value::{DataType, Shape};

/// Estimated memory of one window: buffers, waiting results, and a share of the caches.
const MEMORY_OF_WINDOW: u64 = 64 << 20;
/// Two ranges of literals with fewer correct bytes between them are stored as one.
const MIN_MERGE_GAP_BYTES: usize = 8;
// the window in which there are that many may be full of small ones
const _: () =
    assert!(2 * MAX_SEGMENTS_PER_FILE as u64 + WINDOW_BYTES / MIN_MERGE_GAP_BYTES as u64 <= MAX_STORED_SEGMENTS);

/// Stores in `/_ctds/restore` how the files of `tree` are rebuilt from the datasets, which are all
/// written already; `source` and `root` are of the HDF5 file. Holds about `max_memory` bytes.
#[allow(clippy::too_many_arguments, reason = "the parts of a conversion")]
pub(crate) fn record(
    tree: &Tree,
    tables: &Source,
    plan: &Plan,
    root: &Group,
    source: &Arc<dyn ReadAt>,
    pool: &rayon::ThreadPool,
    max_memory: u64,
    checksum: HashKind,
    progress: &dyn Progress,
) -> Result<()> {
    let group = root.group(CTDS)?.create_group(RESTORE)?;
    let recipe = Recipe::default();
    let literals = AppendBuffer::new(&group, "literals", DataType::UChar);
    let segments = AppendBuffer::new(&group, "segments", DataType::Int64);
    let windows = (max_memory / MEMORY_OF_WINDOW).clamp(1, WINDOWS as u64) as usize;
    let streams = Streams::default();
    let mut recorder =
        Recorder { root, source, pool, windows, recipe, streams, literals, segments, checksum, progress };
    let literals = format!("{}/literals", restore_path());
    recorder.streams.number(Stream {
        dataset: literals,
        encoding: Encoding::Bytes(ByteOrder::Little),
        cell: Shape::scalar(),
    });
    let mut found = recorder.find_segments(tree, tables, plan)?;
    recorder.recipe.directories = tree.directories.clone();
    let mut elements = HashMap::new();
    // files of one name are alike, and compressed best side by side
    let mut files: Vec<_> = tree.files.iter().collect();
    files.sort_by_key(|(name, _)| name.rsplit(|&byte| byte == b'/').next());
    for (name, path) in files {
        let segments = found.remove(path).unwrap_or_default();
        recorder.file(name, path, segments, &mut elements).with_context(|| Context::path(path))?;
    }
    recorder.find_whole(elements)?;
    let Recorder { mut recipe, streams, literals, segments, .. } = recorder;
    recipe.streams = streams.list;
    literals.finish(pool)?;
    segments.finish(pool)?;
    let mut index = AppendBuffer::new(&group, "index", DataType::UChar);
    index.push(recipe.to_json().to_string().as_bytes(), pool)?;
    index.finish(pool)
}

struct Recorder<'a> {
    root: &'a Group,
    source: &'a Arc<dyn ReadAt>,
    pool: &'a rayon::ThreadPool,
    /// Windows compared at the same time, 1 to 4.
    windows: usize,
    recipe: Recipe,
    streams: Streams,
    literals: AppendBuffer,
    segments: AppendBuffer,
    checksum: HashKind,
    progress: &'a dyn Progress,
}

impl Recorder<'_> {
    /// Segments of each file of `tree`, by path.
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
                let mut placing = Placing::new(&mut self.streams, self.root, self.source, table, column, &*cells)?;
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

    /// Tests `segments`, and stores them, with literals for all other bytes. If every supplied byte
    /// is right and supplied once, counts the file's elements in `elements`, by stream.
    fn file(
        &mut self,
        name: &BString,
        path: &Path,
        mut segments: Segments,
        elements: &mut HashMap<u32, u64>,
    ) -> Result<()> {
        let file = FileSource::open(path)?;
        let len = file.len()?;
        let sources = Sources::open(self.root, self.source, &self.streams.list, &segments.list)?;
        // the table itself may contradict where a column says that its elements lie
        segments.list.retain(|segment| sources.check(segment, len).is_ok());
        let mut trial = self.try_segments(&file, len, &segments.list, &sources)?;
        let mut given = 0;
        for segment in &segments.list {
            given += sources.get(segment)?.box_bytes(segment.rows)? * segment.count;
        }
        // where cells share bytes, or literals go before them, not every change would show
        if trial.as_expected && given == trial.covered && trial.covered + trial.literal_bytes() == len {
            for segment in &segments.list {
                *elements.entry(segment.stream).or_default() += sources.get(segment)?.elements(segment)?;
            }
        }
        segments.list.append(&mut trial.literals.list);
        self.segments.push(bytemuck::cast_slice(&encode(&segments.list)), self.pool)?;
        let segments = segments.list.len() as u64;
        self.recipe.files.push(File { path: name.clone(), len, hash: trial.hasher.finish(), segments });
        Ok(())
    }

    /// Appends bytes that differ or are missing to `/_ctds/restore/literals`.
    fn try_segments(
        &mut self,
        file: &FileSource,
        len: u64,
        segments: &[Segment],
        sources: &Sources,
    ) -> Result<FileTrial> {
        let hasher = Hasher::new(self.checksum);
        let mut trial = FileTrial { hasher, literals: Segments::default(), as_expected: true, covered: 0 };
        let buffers = Buffers::default();
        let progress = self.progress;
        let work = |window: Window| -> Result<WindowTrial> {
            progress.go_on()?;
            let [mut actual, mut given, mut covers] = [(); 3].map(|()| buffers.zeros(window.len()));
            file.read_at(window.bytes.start, &mut actual)?;
            window.fill(sources, &mut given, Some(&mut covers))?;
            let (wrong, as_expected) = differences(&actual, &given, &covers);
            let covered = covers.iter().map(|&covered| u64::from(covered)).sum();
            buffers.give(given);
            buffers.give(covers);
            Ok(WindowTrial { start: window.bytes.start, actual, wrong, covered, as_expected })
        };
        let (literals, pool) = (&mut self.literals, self.pool);
        let take = |window: WindowTrial| -> Result<()> {
            trial.hasher.update(&window.actual);
            trial.as_expected &= window.as_expected;
            trial.covered += window.covered;
            for range in trial.ranges_to_keep(&window) {
                let bytes = &window.actual[range.clone()];
                trial.literals.push_literal(literals.len(), bytes.len() as u64, window.start + range.start as u64);
                literals.push(bytes, pool)?;
            }
            buffers.give(window.actual);
            Ok(())
        };
        for_windows(len, segments.to_vec(), sources, (pool, self.windows), work, take)?;
        Ok(trial)
    }

    /// Lists datasets with all elements in original files; `elements` counts those by stream.
    fn find_whole(&mut self, elements: HashMap<u32, u64>) -> Result<()> {
        let mut given: HashMap<&str, u64> = HashMap::new();
        for (stream, elements) in elements {
            *given.entry(&self.streams.list[stream as usize].dataset).or_default() += elements;
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

struct FileTrial {
    hasher: Hasher,
    literals: Segments,
    /// Whether every supplied byte is right.
    as_expected: bool,
    /// Number of supplied bytes, right or wrong, each counted once.
    covered: u64,
}

impl FileTrial {
    fn literal_bytes(&self) -> u64 {
        self.literals.list.iter().map(|segment| segment.rows * segment.count).sum()
    }

    /// Wrong ranges, or the whole window if the file has too many literals.
    fn ranges_to_keep(&self, window: &WindowTrial) -> Vec<Range<usize>> {
        if self.literals.list.len() < MAX_SEGMENTS_PER_FILE {
            window.wrong.clone()
        } else {
            std::iter::once(0..window.actual.len()).collect()
        }
    }
}

struct WindowTrial {
    start: u64,
    actual: Vec<u8>,
    /// Half-open ranges, from the start of the window, that become literals.
    wrong: Vec<Range<usize>>,
    covered: u64,
    as_expected: bool,
}

/// Literals, and whether all supplied bytes are right; `covered` is 1 for a supplied byte.
fn differences(actual: &[u8], given: &[u8], covered: &[u8]) -> (Vec<Range<usize>>, bool) {
    const BLOCK: usize = 64;
    let (mut wrong, mut as_expected) = (Vec::<Range<usize>>::new(), true);
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
                Some(last) if at - last.end < MIN_MERGE_GAP_BYTES => last.end = at + 1,
                _ => wrong.push(at..at + 1),
            }
        }
    }
    (wrong, as_expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_wrong_or_missing_bytes() {
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
