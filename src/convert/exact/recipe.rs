//! Recipes by which a restorable file (a native HDF5 file, the converted table) rebuilds each
//! original casacore file from its datasets: in memory, and as stored under `/_ctds/restore`.
//! docs/reference/restorable.md.
//! A box is a hyperslab that is copied in one piece.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use serde_json::{Value as Json, json};

use crate::error::{Error, Result, ResultExt};
use crate::grid::Grid;
use crate::h5::{ALIGNED_BYTES, Group};
use crate::hash::{Hash, HashKind};
use crate::io::{ByteOrder, ReadAt};
use crate::native::{CTDS, RESTORE, Reader, json, restore_path};
use crate::output::clone::Sharer;
use crate::value::{DataType, Region, Shape, Values};

/// Index in `Recipe::streams` of bytes that no other dataset supplies correctly.
pub(super) const LITERALS: u32 = 0;
/// Segments of one file, all of which are in memory together.
pub(super) const MAX_STORED_SEGMENTS: u64 = 1 << 20;
/// Bytes copied in one piece, and in memory: a box or, where boxes are read row by row, a row.
const MAX_BOX_BYTES: usize = 32 << 20;
/// Integers stored for each segment.
pub(super) const FIELDS: usize = 6;
/// Decoded chunks kept in memory for all streams of one file.
const CACHE_BYTES: usize = 32 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Encoding {
    Bytes(ByteOrder),
    /// Eight Bools to a byte, the lowest bit first; unused bits in a box's last byte are 0.
    Bits,
}

impl Encoding {
    fn name(self) -> &'static str {
        match self {
            Encoding::Bytes(order) => order.name(),
            Encoding::Bits => "bits",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Encoding::Bytes(ByteOrder::Little), Encoding::Bytes(ByteOrder::Big), Encoding::Bits]
            .into_iter()
            .find(|encoding| encoding.name() == name)
    }

    pub(super) fn len(self, data_type: DataType, elements: u64) -> Result<u64> {
        let len = match self {
            Encoding::Bits => Some(elements.div_ceil(8)),
            Encoding::Bytes(_) => elements.checked_mul(data_type.size() as u64),
        };
        len.ok_or_else(|| Error::format("a box would have 2^64 bytes or more"))
    }
}

/// A dataset that supplies bytes of original files, and how its elements become bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Stream {
    pub(super) dataset: String,
    pub(super) encoding: Encoding,
    /// Extents of a box on all axes but the rows, fastest axis first.
    pub(super) cell: Shape,
}

/// Bytes of an original file from one stream: `count` boxes of one size, which start every `stride`
/// bytes from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) stream: u32,
    /// Row at which the first box starts; on the other axes it starts at 0.
    pub(super) first: u64,
    /// Extent of each box on the slowest axis.
    pub(super) rows: u64,
    /// Boxes follow one another in the dataset, fastest axis first.
    pub(super) count: u64,
    /// Byte of the first box in the file.
    pub(super) offset: u64,
    /// Bytes from the start of a box to that of the next; 0 for a single one.
    pub(super) stride: u64,
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Segment { stream, first, rows, count, offset, .. } = self;
        write!(
            f,
            "the segment at byte {offset}, with {count} boxes of {rows} rows of stream {stream} from row {first} on,"
        )
    }
}

impl Segment {
    pub(super) fn fields(&self) -> [u64; FIELDS] {
        [u64::from(self.stream), self.first, self.rows, self.count, self.offset, self.stride]
    }

    fn from_fields(fields: [u64; FIELDS]) -> Option<Self> {
        let [stream, first, rows, count, offset, stride] = fields;
        let segment = Segment { stream: u32::try_from(stream).ok()?, first, rows, count, offset, stride };
        (rows > 0 && count > 0 && (count == 1) == (stride == 0)).then_some(segment)
    }
}

#[derive(Debug, Clone)]
pub(super) struct File {
    /// Relative to the table's directory, with `/`; empty if the source was this file alone.
    pub(super) path: BString,
    pub(super) len: u64,
    pub(super) hash: Hash,
    pub(super) segments: u64,
}

/// Recipes of all original files of a table: the content of `/_ctds/restore/index`.
#[derive(Debug, Default)]
pub(super) struct Recipe {
    pub(super) streams: Vec<Stream>,
    /// Datasets with all elements in original files, whose hashes thus show every change.
    pub(super) whole: Vec<String>,
    /// Relative to the table's, parents before children.
    pub(super) directories: Vec<BString>,
    pub(super) files: Vec<File>,
}

impl Recipe {
    pub(super) fn to_json(&self) -> Json {
        let streams = self.streams.iter().map(|stream| {
            json!({ "dataset": stream.dataset, "encoding": stream.encoding.name(), "box": stream.cell.reversed() })
        });
        let files = self.files.iter().map(|file| {
            json!({
                "path": json::from_string(file.path.as_bstr()),
                "bytes": file.len,
                file.hash.kind().name(): file.hash.to_string(),
                "segments": file.segments,
            })
        });
        json!({
            "version": 1,
            "streams": streams.collect::<Vec<_>>(),
            "whole": self.whole,
            "directories": self.directories.iter().map(|path| json::from_string(path.as_bstr())).collect::<Vec<_>>(),
            "files": files.collect::<Vec<_>>(),
        })
    }

    /// Checks all paths: none leads out of the restored directory, none occurs twice.
    pub(super) fn from_json(document: &Json) -> Result<Self> {
        let missing = |what: &str| Error::format(format!("{what} is missing or has the wrong type"));
        let list = |of: &Json, name: &str| of.get(name).and_then(Json::as_array).cloned().ok_or_else(|| missing(name));
        match document.get("version").and_then(Json::as_u64) {
            Some(1) => {}
            _ => {
                let version = document.get("version").unwrap_or(&Json::Null);
                return Err(Error::unsupported(format!("the recipes have version {version}, only 1 is read")));
            }
        }
        let text =
            |of: &Json, name: &str| of.get(name).and_then(Json::as_str).map(str::to_owned).ok_or_else(|| missing(name));
        let number = |of: &Json, name: &str| of.get(name).and_then(Json::as_u64).ok_or_else(|| missing(name));
        let stream = |entry: &Json| -> Result<Stream> {
            let cell: Option<Vec<u64>> = list(entry, "box")?.iter().map(Json::as_u64).collect();
            let cell = Shape::from_reversed(&cell.ok_or_else(|| missing("box"))?);
            let encoding = Encoding::from_name(&text(entry, "encoding")?).ok_or_else(|| missing("a known encoding"))?;
            Ok(Stream { dataset: text(entry, "dataset")?, encoding, cell })
        };
        let file = |entry: &Json| -> Result<File> {
            let path = json::to_string(entry.get("path").ok_or_else(|| missing("path"))?)?;
            let hash = HashKind::ALL.iter().find_map(|&kind| Hash::parse(kind, entry.get(kind.name())?.as_str()?));
            let hash = hash.ok_or_else(|| missing("a known hash"))?;
            Ok(File { path, len: number(entry, "bytes")?, hash, segments: number(entry, "segments")? })
        };
        let recipe = Recipe {
            streams: list(document, "streams")?.iter().map(stream).collect::<Result<_>>().context("streams")?,
            whole: list(document, "whole")?.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            directories: list(document, "directories")?.iter().map(json::to_string).collect::<Result<_>>()?,
            files: list(document, "files")?.iter().map(file).collect::<Result<_>>().context("files")?,
        };
        recipe.check_names()?;
        Ok(recipe)
    }

    /// Whether the table was a single file, and is restored as such.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.files.as_slice(), [file] if file.path.is_empty()) && self.directories.is_empty()
    }

    fn check_names(&self) -> Result<()> {
        if self.is_file() {
            return Ok(());
        }
        let (mut seen, mut directories) = (HashSet::new(), HashSet::new());
        let files = self.files.iter().map(|file| (&file.path, true));
        for (path, is_file) in self.directories.iter().map(|path| (path, false)).chain(files) {
            let what = if is_file { "file" } else { "directory" };
            let refuse = |why: &str| Err(Error::format(format!("the {what} {path:?} cannot be restored: it {why}")));
            if relative(path).is_none() {
                return refuse("would not lie in the directory that is restored");
            }
            if !seen.insert(path) {
                return refuse("is listed twice");
            }
            let parent = path.rfind_byte(b'/').map(|end| path[..end].as_bstr());
            if parent.is_some_and(|parent| !directories.contains(parent)) {
                return refuse("lies in a directory that is not listed before it");
            }
            if !is_file {
                directories.insert(path.as_bstr());
            }
        }
        Ok(())
    }
}

/// `None` if the path would lead out of the restored directory or is not in normal form.
pub(super) fn relative(path: &[u8]) -> Option<PathBuf> {
    let path = path.to_path().ok()?;
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let spelt: PathBuf = path.components().collect();
    (plain
        && !path.as_os_str().is_empty()
        && spelt.as_os_str() == path.as_os_str()
        && !path.as_os_str().as_encoded_bytes().contains(&0))
    .then_some(spelt)
}

#[derive(Debug)]
pub(super) struct Archive {
    pub(super) recipe: Recipe,
    root: Group,
    source: Arc<dyn ReadAt>,
    segments: Reader,
    /// Where in the dataset `segments` the numbers of each file begin.
    starts: Vec<u64>,
}

impl Archive {
    /// `None` if the file has no recipes.
    pub(super) fn open(root: &Group, source: Arc<dyn ReadAt>) -> Result<Option<Self>> {
        let exact = root.group(CTDS)?;
        if !exact.has(RESTORE) {
            return Ok(None);
        }
        let group = exact.group(RESTORE)?;
        let open = || -> Result<Self> {
            let index = group.dataset("index")?;
            let mut bytes = Values::new(DataType::UChar);
            index.read_region(&Region::whole(&index.shape()?), &mut bytes)?;
            let bytes = bytes.le_bytes().unwrap_or_default();
            let document = serde_json::from_slice(&bytes)
                .map_err(|error| Error::format(format!("the text is not JSON: {error}")).caused_by(error));
            let recipe = document.and_then(|document| Recipe::from_json(&document)).context("index")?;
            let segments = Reader::of_file(group.dataset("segments")?, source.clone())?.with_axes(1)?;
            let mut starts = Vec::with_capacity(recipe.files.len());
            let mut next = 0u64;
            for file in &recipe.files {
                starts.push(next);
                if file.segments > MAX_STORED_SEGMENTS {
                    return Err(Error::limit(format!(
                        "the file {:?} has {} segments; the limit is {MAX_STORED_SEGMENTS}",
                        file.path, file.segments
                    )));
                }
                next += file.segments * FIELDS as u64;
            }
            if next != segments.rows() {
                let message =
                    format!("the dataset of segments has {} numbers, expected {next} by the index", segments.rows());
                return Err(Error::format(message));
            }
            Ok(Archive { recipe, root: root.clone(), source, segments, starts })
        };
        open().context(restore_path()).map(Some)
    }

    /// Estimates the bytes of files in `directory` that could share space with the HDF5 file.
    pub(super) fn shareable(&self, sharer: &Sharer<'_>, directory: &Path) -> Result<u64> {
        if !sharer.can_share(&*self.source, directory) {
            return Ok(0);
        }
        let datasets: BTreeSet<&str> = self.recipe.streams.iter().map(|stream| stream.dataset.as_str()).collect();
        let mut bytes = 0;
        for path in datasets {
            let dataset = self.root.dataset(path.trim_start_matches('/'))?;
            let stored = dataset.stored_bytes();
            if dataset.block()?.is_some() && stored >= ALIGNED_BYTES {
                bytes += stored;
            }
        }
        Ok(bytes)
    }

    /// Fails if the segments do not fit the file's length or the datasets.
    pub(super) fn file(&self, number: usize) -> Result<(Vec<Segment>, Sources)> {
        let file = &self.recipe.files[number];
        let read = || -> Result<_> {
            let start = self.starts[number];
            let numbers = self.segments.integers(start..start + file.segments * FIELDS as u64)?;
            let segments = decode(&numbers, file.segments as usize)?;
            let sources = Sources::open(&self.root, &self.source, &self.recipe.streams, &segments)?;
            let mut covered = 0u64;
            for segment in &segments {
                let bytes = sources.check(segment, file.len)?;
                covered = covered.saturating_add(bytes);
            }
            if covered < file.len {
                return Err(Error::format(format!("the segments have {covered} bytes of {}", file.len)));
            }
            Ok((segments, sources))
        };
        read().with_context(|| format!("{}: file {:?}", restore_path(), file.path))
    }
}

/// Field by field, each as the difference from the segment before.
pub(super) fn encode(segments: &[Segment]) -> Vec<i64> {
    let mut numbers = Vec::with_capacity(segments.len() * FIELDS);
    for field in 0..FIELDS {
        let mut last = 0u64;
        for segment in segments {
            let value = segment.fields()[field];
            numbers.push(value.wrapping_sub(last) as i64);
            last = value;
        }
    }
    numbers
}

fn decode(numbers: &[i64], count: usize) -> Result<Vec<Segment>> {
    let mut fields = vec![[0u64; FIELDS]; count];
    for (field, differences) in numbers.chunks_exact(count.max(1)).enumerate() {
        let mut value = 0u64;
        for (segment, &difference) in fields.iter_mut().zip(differences) {
            value = value.wrapping_add(difference as u64);
            segment[field] = value;
        }
    }
    let segment = |(number, fields): (usize, [u64; FIELDS])| {
        Segment::from_fields(fields).ok_or_else(|| {
            Error::format(format!("segment {number} of the recipe has the fields {fields:?}, which no segment has"))
        })
    };
    fields.into_iter().enumerate().map(segment).collect()
}

/// Open streams of one file, by their index in `Recipe::streams`; `None` for unused ones.
#[derive(Debug)]
pub(super) struct Sources(Vec<Option<OpenStream>>);

#[derive(Debug)]
pub(super) struct OpenStream {
    pub(super) reader: Reader,
    pub(super) encoding: Encoding,
    pub(super) cell: Shape,
    /// Boxes side by side on each axis but the rows, fastest axis first.
    pub(super) across: Shape,
}

impl Sources {
    pub(super) fn open(
        root: &Group,
        source: &Arc<dyn ReadAt>,
        streams: &[Stream],
        segments: &[Segment],
    ) -> Result<Self> {
        let mut open: Vec<Option<OpenStream>> = streams.iter().map(|_| None).collect();
        let used: BTreeSet<u32> = segments.iter().map(|segment| segment.stream).collect();
        let cache = (CACHE_BYTES / used.len().max(1)).clamp(1 << 20, 8 << 20);
        for number in used {
            let Some(stream) = streams.get(number as usize) else {
                return Err(Error::format(format!(
                    "a segment refers to stream {number}, but there are {} streams",
                    streams.len()
                )));
            };
            let path = stream.dataset.trim_start_matches('/');
            let opened = || OpenStream::new(Reader::with_cache(root.dataset(path)?, source.clone(), cache)?, stream);
            open[number as usize] = Some(opened().with_context(|| format!("stream of {}", stream.dataset))?);
        }
        Ok(Sources(open))
    }

    pub(super) fn get(&self, segment: &Segment) -> Result<&OpenStream> {
        let found = self.0.get(segment.stream as usize).and_then(Option::as_ref);
        found.ok_or_else(|| Error::format(format!("stream {} is not open", segment.stream)))
    }

    /// Checks that a segment is within the file and the dataset; returns its number of bytes.
    pub(super) fn check(&self, segment: &Segment, file_len: u64) -> Result<u64> {
        let stream = self.get(segment)?;
        let box_bytes = stream.box_bytes(segment.rows)?;
        let by_row = stream.encoding != Encoding::Bits && stream.covers_cells();
        if stream.plain_bytes(if by_row { 1 } else { segment.rows })? > MAX_BOX_BYTES {
            return Err(Error::limit(format!("{segment} has boxes of more than {MAX_BOX_BYTES} bytes, the limit")));
        }
        let end = (segment.count - 1)
            .checked_mul(segment.stride)
            .and_then(|bytes| bytes.checked_add(segment.offset))
            .and_then(|start| start.checked_add(box_bytes));
        if end.is_none_or(|end| end > file_len) {
            return Err(Error::format(format!("{segment} ends after the {file_len} bytes of the file")));
        }
        // the last box may reach beyond the dataset: that is padding
        let steps = (segment.count - 1) / stream.across.elements()?.max(1);
        let start = steps.checked_mul(segment.rows).and_then(|rows| rows.checked_add(segment.first));
        if box_bytes > 0 && start.is_none_or(|start| start >= stream.reader.rows()) {
            return Err(Error::format(format!(
                "{segment} ends after the {} rows of its dataset",
                stream.reader.rows()
            )));
        }
        Ok(box_bytes.saturating_mul(segment.count))
    }
}

impl OpenStream {
    fn new(reader: Reader, stream: &Stream) -> Result<Self> {
        let Some((cell, _)) = reader.shape.split_last() else { return Err(Error::format("the dataset has no axes")) };
        let fits = cell.len() == stream.cell.len() && !stream.cell.contains(&0);
        let bits = stream.encoding == Encoding::Bits;
        if !fits || !reader.data_type.is_fixed_size() || bits != (reader.data_type == DataType::Bool) {
            let message = format!(
                "boxes of shape {:?} do not fit the dataset of {} with shape {:?}",
                stream.cell.reversed(),
                reader.data_type,
                reader.shape.reversed()
            );
            return Err(Error::format(message));
        }
        let across = Grid { shape: cell, chunk: stream.cell.clone() }.counts();
        Ok(OpenStream { reader, encoding: stream.encoding, cell: stream.cell.clone(), across })
    }

    /// Excludes padding; a cell that several boxes divide counts only if all of them are here.
    pub(super) fn elements(&self, segment: &Segment) -> Result<u64> {
        let across = self.across.elements()?.max(1);
        let rows = (segment.count / across).saturating_mul(segment.rows);
        let (cell, _) = self.reader.shape.split_last().unwrap_or_default();
        // a step that is not complete counts for nothing
        Ok(cell.elements()?.saturating_mul(rows.min(self.reader.rows().saturating_sub(segment.first))))
    }

    /// Whether each box spans whole cells, thus whole rows, and is not a tile that divides cells.
    pub(super) fn covers_cells(&self) -> bool {
        self.reader.shape[..self.cell.len()] == *self.cell
    }

    /// Size in memory of a box of `rows` rows, a byte for each Bool.
    pub(super) fn plain_bytes(&self, rows: u64) -> Result<usize> {
        let bytes = self.cell.with_axis(rows).elements()?.saturating_mul(self.reader.data_type.size() as u64);
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Size in the file of a box of `rows` rows, without bytes between two boxes.
    pub(super) fn box_bytes(&self, rows: u64) -> Result<u64> {
        self.encoding.len(self.reader.data_type, self.cell.with_axis(rows).elements()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind::{self, Format, Limit, Unsupported};
    use crate::error::Fails;
    use crate::h5::{self, Compression, DatasetSpec};

    fn segment(stream: u32, offset: u64) -> Segment {
        Segment { stream, first: 7, rows: 3, count: 2, offset, stride: 100 }
    }

    #[test]
    fn segments_are_differences_field_by_field() {
        let segments = [segment(1, 0), segment(0, 40), segment(u32::MAX, u64::MAX)];
        let numbers = encode(&segments);
        assert_eq!(numbers[..6], [1, -1, i64::from(u32::MAX), 7, 0, 0]);
        assert_eq!(numbers[12..15], [0, 40, -41]);
        assert_eq!(decode(&numbers, 3).unwrap(), segments);
        assert!(decode(&[], 0).unwrap().is_empty());
    }

    #[test]
    fn impossible_segments_are_errors() {
        for (field, value) in [(0, 1 << 40), (2, 0), (3, 0), (5, 0)] {
            let mut fields = segment(1, 0).fields();
            fields[field] = value;
            let numbers: Vec<i64> = fields.iter().map(|&field| field as i64).collect();
            assert!(decode(&numbers, 1).is_err(), "{fields:?}");
        }
    }

    #[test]
    fn names_stay_in_the_directory() {
        let recipe = |directories: &[&str], files: &[&str]| {
            let file = |path: &str| json!({"path": path, "bytes": 0, "sha256": "00".repeat(32), "segments": 0});
            let files: Vec<Json> = files.iter().map(|path| file(path)).collect();
            let recipe = json!({"version": 1, "streams": [], "whole": [], "directories": directories, "files": files});
            Recipe::from_json(&recipe)
        };
        assert!(recipe(&["a", "a/b"], &["x", "a/x", "a/b/x", "...", "a/ "]).is_ok());
        assert!(recipe(&[], &[""]).unwrap().is_file());
        for path in ["..", ".", "/x", "a/../x", "a//x", "a/", "./x", "", "b/x", "a", "x\0"] {
            assert!(recipe(&["a"], &["y", path]).is_err(), "{path}");
            assert!(recipe(&["a", path], &["y"]).is_err(), "{path}");
        }
    }

    fn dataset(group: &Group, name: &str, element: DataType, shape: Shape) -> h5::Dataset {
        let spec =
            DatasetSpec { element, shape: &shape, chunk: None, appendable: false, compression: Compression::NONE };
        group.create_dataset(name, &spec).unwrap()
    }

    /// Opens the recipe of a file of 100 bytes with this index and the numbers of one segment.
    fn opened(index: &str, segment: &[i64]) -> Result<()> {
        let file = h5::File::create_in_memory().unwrap();
        let root = file.root().unwrap();
        dataset(&root, "cells", DataType::Double, Shape::from([4, 6]));
        dataset(&root, "large", DataType::Double, Shape::from([1 << 23, 2]));
        dataset(&root, "scalar", DataType::Double, Shape::scalar());
        let group = root.create_group(CTDS).unwrap().create_group(RESTORE).unwrap();
        let bytes = Values::UChar(index.as_bytes().to_vec());
        let shape = Shape::from([index.len() as u64]);
        dataset(&group, "index", DataType::UChar, shape.clone()).write_region(&Region::whole(&shape), &bytes).unwrap();
        let shape = Shape::from([segment.len() as u64]);
        let numbers = Values::Int64(segment.to_vec());
        let segments = dataset(&group, "segments", DataType::Int64, shape.clone());
        segments.write_region(&Region::whole(&shape), &numbers).unwrap();
        let archive = Archive::open(&root, Arc::new(Vec::new()))?.unwrap();
        archive.file(0).map(drop)
    }

    fn index(dataset: &str, cell: &[u64], segments: u64) -> String {
        json!({
            "version": 1, "whole": [], "directories": [],
            "streams": [{"dataset": dataset, "encoding": "little", "box": cell}],
            "files": [{"path": "f", "bytes": 100, "sha256": "00".repeat(32), "segments": segments}],
        })
        .to_string()
    }

    /// Stream, first row, rows of a box, boxes, offset, stride.
    const WHOLE: [i64; 6] = [0, 0, 3, 1, 4, 0];

    #[test]
    fn contradictory_indices_are_errors() {
        let plain = index("/cells", &[4], 1);
        let fails = |index: &str, kind: ErrorKind, says: &str| opened(index, &WHOLE).fails(kind, says);
        fails("{", Format, "index: the text is not JSON: EOF while parsing an object at line 1 column 1");
        let newer = plain.replace("\"version\":1", "\"version\":7");
        fails(&newer, Unsupported, "index: the recipes have version 7, only 1 is read");
        let misspelt = plain.replace("\"streams\"", "\"stream\"");
        fails(&misspelt, Format, "index: streams is missing or has the wrong type");
        let many = index("/cells", &[4], 1 << 21);
        fails(&many, Limit, "the file \"f\" has 2097152 segments; the limit is 1048576");
        let two = index("/cells", &[4], 2);
        fails(&two, Format, "the dataset of segments has 6 numbers, expected 12 by the index");
        fails(
            &index("/cells", &[4, 2], 1),
            Format,
            "stream of /cells: boxes of shape [4, 2] do not fit the dataset of double with shape [6, 4]",
        );
        fails(&index("/scalar", &[], 1), Format, "stream of /scalar: the dataset has no axes");
    }

    #[test]
    fn segments_beyond_file_or_dataset_are_errors() {
        let plain = index("/cells", &[4], 1);
        opened(&plain, &WHOLE).fails(Format, "the segments have 96 bytes of 100");
        opened(&plain, &[0, 0, 3, 1, 5, 0]).fails(
            Format,
            "the segment at byte 5, with 1 boxes of 3 rows of stream 0 from row 0 on, ends after the 100 bytes of the file",
        );
        opened(&plain, &[0, 6, 3, 1, 0, 0]).fails(
            Format,
            "the segment at byte 0, with 1 boxes of 3 rows of stream 0 from row 6 on, ends after the 6 rows of its dataset",
        );
        opened(&index("/large", &[1 << 23], 1), &[0, 0, 1, 1, 0, 0]).fails(
            Limit,
            "the segment at byte 0, with 1 boxes of 1 rows of stream 0 from row 0 on, has boxes of more than 33554432 bytes, the limit",
        );
        opened(&index("/cells", &[1 << 61], 1), &[0, 0, 1, 1, 0, 0])
            .fails(Format, "a box would have 2^64 bytes or more");
    }
}
