//! Fingerprints: digests of a table's content that do not depend on how it is stored. CTFP-2 hashes
//! with BLAKE3, CTFP-1 hashes the same streams with SHA-256.
//!
//! All numbers little-endian; `str` is a u64 length and the bytes.
//!
//! | stream of | content                                                                                          |
//! |-----------|--------------------------------------------------------------------------------------------------|
//! | column    | per row: u8 defined; if so u64 axes, u64 extents slowest first, elements in casacore's order     |
//! | record    | u64 fields, each `str` name and a tagged value                                                   |
//! | table     | u64 rows, u64 columns; by name: `str` name, `str` type, u8 is array, hash of the column           |

use std::ops::Range;

use rayon::prelude::*;

use super::blocks::{READ_BYTES, RowBlock, RowBlocks, Shapes};
use super::marks::{MARK_BYTES, Marks};
use super::{Content, Source, SourceTable};
use crate::call::pool::join_in_pool;
use crate::error::{Context, Error, Result, ResultExt};
use crate::grid::{ChunkRead, Grid, read_chunks_in};
use crate::hash::{Hash, HashKind, Hasher};
use crate::io::ByteOrder;
use crate::limits;
use crate::native::{StoredMarks, last_part};
use crate::progress::Progress;
use crate::schema::ColumnKind;
use crate::stman::RowRun;
use crate::table::{ColumnCells, ColumnInfo, Table, Tiling};
use crate::value::{DataType, Record, Shape, Value, Values};

/// Cells are gathered up to this many bytes.
const PIECE: usize = 1 << 16;

/// The fingerprint of a table: hashes of its columns and keywords by the rules of CTFP-2, or of
/// CTFP-1 with SHA-256. They define a byte form of the content that does not depend on its storage.
#[derive(Debug)]
#[non_exhaustive]
pub struct TableDigest {
    /// Error of the table's first data manager, if the table has managers and none of them can be
    /// opened (casacore cannot open such a table); else `None`.
    pub error: Option<Error>,
    /// Number of rows of the table that the fingerprint is of.
    pub rows: u64,
    /// Hash of the table: of its number of rows and the fingerprints of its digested columns.
    pub hash: Hash,
    /// Hash of the table's keywords.
    pub keywords_hash: Hash,
    /// Fingerprints of those columns of the table that were digested, in the order of the table
    /// description.
    pub columns: Vec<ColumnDigest>,
}

/// The fingerprint of a column: hashes of its cells and keywords by the rules of CTFP-2, or of
/// CTFP-1 with SHA-256. They define a byte form of the content that does not depend on its storage.
#[derive(Debug)]
#[non_exhaustive]
pub struct ColumnDigest {
    /// Name of the column that the fingerprint is of.
    pub name: String,
    /// Element type of the column that the fingerprint is of; [`DataType::name`] gives its name.
    pub data_type: DataType,
    /// Whether the column's cells are arrays.
    pub is_array: bool,
    /// Hash of the column's cells; the error if they cannot be read.
    pub hash: Result<Hash>,
    /// Hash of the column's keywords.
    pub keywords_hash: Hash,
    /// `None` if the cells cannot be read.
    marks: Option<Marks>,
}

#[derive(Debug)]
pub(crate) struct CellsDigest {
    hash: Hash,
    marks: Marks,
}

/// `wanted` accepts columns by table and name.
pub(crate) fn digest(
    source: &Source,
    kind: HashKind,
    wanted: impl Fn(&str, &str) -> bool + Sync,
    progress: &dyn Progress,
) -> Result<Vec<(String, Result<TableDigest>)>> {
    let of_table = |table: &SourceTable| -> Result<TableDigest> {
        let content = table.content()?;
        Ok(digest_table(content, kind, |column| wanted(&table.name, column), progress))
    };
    let digests = source.tables.iter().map(|table| (table.name.clone(), of_table(table))).collect();
    progress.go_on().map(|()| digests)
}

fn digest_table(
    content: &Content,
    kind: HashKind,
    wanted: impl Fn(&str) -> bool + Sync,
    progress: &dyn Progress,
) -> TableDigest {
    let infos = content.columns();
    let columns: Vec<ColumnDigest> = (0..infos.len())
        .into_par_iter()
        .filter(|&index| wanted(&infos[index].desc.name.to_string()))
        .map(|index| digest_column(content, index, CellDigest::Wanted(kind), progress))
        .collect();
    TableDigest {
        error: content.as_table().and_then(Table::unreadable),
        rows: content.rows(),
        hash: table_hash(kind, content.rows(), &columns),
        keywords_hash: keywords_hash(kind, content.keywords(), content),
        columns,
    }
}

/// Whether cells are digested, or only keywords, and with which hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellDigest {
    Wanted(HashKind),
    Skipped(HashKind),
}

impl CellDigest {
    fn kind(self) -> HashKind {
        let (CellDigest::Wanted(kind) | CellDigest::Skipped(kind)) = self;
        kind
    }
}

pub(crate) fn digest_column(
    content: &Content,
    index: usize,
    of_cells: CellDigest,
    progress: &dyn Progress,
) -> ColumnDigest {
    let info = &content.columns()[index];
    let digest = |cells: Box<dyn ColumnCells + '_>| match of_cells {
        CellDigest::Wanted(kind) => digest_cells(info, &*cells, content, 0..content.rows(), kind, progress),
        CellDigest::Skipped(_) => Err(not_selected()),
    };
    let cells = content.cells(index).and_then(digest).with_context(|| Context::column(&info.desc.name));
    ColumnDigest::new(info, cells, of_cells.kind(), content)
}

impl ColumnDigest {
    pub(crate) fn new(info: &ColumnInfo, cells: Result<CellsDigest>, kind: HashKind, content: &Content) -> Self {
        let (hash, marks) = match cells {
            Ok(cells) => (Ok(cells.hash), Some(cells.marks)),
            Err(error) => (Err(error), None),
        };
        ColumnDigest {
            name: info.desc.name.to_string(),
            data_type: info.data_type(),
            is_array: info.desc.kind == ColumnKind::Array,
            hash,
            keywords_hash: keywords_hash(kind, &info.desc.keywords, content),
            marks,
        }
    }

    /// `None` if the cells cannot be read, or are too few for a mark.
    pub(crate) fn stored_marks(&self) -> Option<StoredMarks> {
        self.marks.as_ref()?.stored()
    }

    /// `None` if marks cannot be compared, or the cells cannot be read.
    pub(crate) fn first_difference(&self, stored: &StoredMarks, rows: u64) -> Option<Range<u64>> {
        self.marks.as_ref()?.first_difference(stored, rows)
    }
}

pub(crate) fn digest_cells(
    info: &ColumnInfo,
    cells: &dyn ColumnCells,
    content: &Content,
    rows: Range<u64>,
    kind: HashKind,
    progress: &dyn Progress,
) -> Result<CellsDigest> {
    limits::rows(rows.end - rows.start)?;
    let mut stream = ColumnStream::new(kind, content);
    if let Some(chunks) = cells.tiling(1).and_then(|tiling| RowChunks::new(tiling, info.data_type(), &rows)) {
        let update =
            |(count, bytes): &(u64, Vec<u8>)| stream.update_same(&chunks.cell, *count, bytes, info.data_type().size());
        let mut starts = (0..chunks.count).step_by(chunks.batch as usize);
        let read = |spare: Option<(u64, Vec<u8>)>| {
            progress.go_on()?;
            let spare = spare.map_or(Vec::new(), |(_, bytes)| bytes);
            starts.next().map(|first| chunks.read(first, spare)).transpose()
        };
        hash_while_reading(read, update)?;
    } else {
        let mut blocks = RowBlocks::new(info, cells, rows, READ_BYTES);
        let update = |(block, values): &(RowBlock, Values)| stream.update(block, values);
        let read = |spare: Option<(RowBlock, Values)>| {
            progress.go_on()?;
            let Some(block) = blocks.next().transpose()? else { return Ok(None) };
            let mut values = spare.map_or_else(|| Values::new(info.data_type()), |(_, values)| values);
            values.clear();
            block.read(cells, &mut values)?;
            Ok(Some((block, values)))
        };
        hash_while_reading(read, update)?;
    }
    stream.finish()
}

/// Reads the next piece concurrently, into memory that is no longer needed: a large column would
/// otherwise keep one thread busy after all others.
fn hash_while_reading<T: Send + Sync>(
    mut read: impl FnMut(Option<T>) -> Result<Option<T>> + Send,
    mut update: impl FnMut(&T) -> Result<()> + Send,
) -> Result<()> {
    let (mut next, mut spare) = (read(None)?, None);
    while let Some(piece) = next {
        let (hashed, following) = join_in_pool(|| update(&piece), || read(spare.take()));
        hashed?;
        (next, spare) = (following?, Some(piece));
    }
    Ok(())
}

/// Chunks of one hypercube with all rows in order, each of whole cells, whose bytes are hashed as
/// they are.
struct RowChunks<'a> {
    cube: Box<dyn ChunkRead + 'a>,
    cell: Shape,
    rows: u64,
    chunk_bytes: u64,
    count: u64,
    /// Number of chunks that are read at once.
    batch: u64,
}

impl<'a> RowChunks<'a> {
    /// `None` if the cells in `rows` have to be read in another way.
    fn new(tiling: Tiling<'a>, element: DataType, rows: &Range<u64>) -> Option<Self> {
        let is_whole = rows.start == 0 && tiling.runs == RowRun::of_all(rows.end);
        let cube = tiling.cubes.into_iter().next().filter(|_| is_whole)?;
        let Grid { shape, chunk } = cube.grid();
        let (cell, has) = shape.split_last()?;
        let chunk_bytes = chunk.elements().ok()?.checked_mul(element.size() as u64)?;
        // stored Bools are any bytes
        let is_plain = cube.raw_order().is_some() && cube.data_type() == element && element != DataType::Bool;
        let fits = is_plain && has >= rows.end && cube.grid().covers_cells() && (1..=READ_BYTES).contains(&chunk_bytes);
        let (count, batch) = (cube.grid().counts().elements().ok()?, READ_BYTES / chunk_bytes.max(1));
        fits.then_some(RowChunks { cube, cell, rows: rows.end, chunk_bytes, count, batch })
    }

    /// Rows and bytes of the chunks from `first` on; padding may follow the bytes.
    fn read(&self, first: u64, mut bytes: Vec<u8>) -> Result<(u64, Vec<u8>)> {
        let count = self.batch.min(self.count - first);
        bytes.resize((count * self.chunk_bytes) as usize, 0);
        read_chunks_in(ByteOrder::Little, &*self.cube, first, &mut bytes)?;
        let chunk_rows = self.cube.grid().chunk.last().copied().unwrap_or(1);
        let end = first.saturating_add(count).saturating_mul(chunk_rows).min(self.rows);
        Ok((end.saturating_sub(first * chunk_rows), bytes))
    }
}

/// Zeros stand for a column without a fingerprint.
pub(crate) fn table_hash(kind: HashKind, rows: u64, columns: &[ColumnDigest]) -> Hash {
    let mut sorted: Vec<&ColumnDigest> = columns.iter().collect();
    sorted.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    let mut bytes = [rows.to_le_bytes(), (columns.len() as u64).to_le_bytes()].concat();
    for column in sorted {
        put_str(&mut bytes, column.name.as_bytes());
        put_str(&mut bytes, column.data_type.name().as_bytes());
        bytes.push(u8::from(column.is_array));
        bytes.extend_from_slice(column.hash.as_ref().map_or(&[0; 32], |hash| hash.as_bytes()));
    }
    Hash::of(kind, &bytes)
}

pub(crate) fn keywords_hash(kind: HashKind, record: &Record, content: &Content) -> Hash {
    let mut bytes = Vec::new();
    put_record(&mut bytes, record, &|stored| content.table_name(stored));
    Hash::of(kind, &bytes)
}

/// Digests blocks of rows, added in row order.
pub(crate) struct ColumnStream<'a> {
    hasher: Hasher,
    marks: Marks,
    /// Newest bytes, fewer than [`MARK_BYTES`]: hashed together fast, and a mark may follow.
    pending: Vec<u8>,
    /// Rows added so far, the last perhaps in part.
    rows: u64,
    content: &'a Content,
    buffer: Vec<u8>,
    /// Reason of a missing digest, such as a string that is not UTF-8.
    failed: Option<Error>,
    /// Added blocks are ignored.
    idle: bool,
}

impl<'a> ColumnStream<'a> {
    pub(crate) fn new(kind: HashKind, content: &'a Content) -> Self {
        let (hasher, marks) = (Hasher::new(kind), Marks::default());
        let (pending, buffer) = (Vec::new(), Vec::new());
        ColumnStream { hasher, marks, pending, rows: 0, content, buffer, failed: None, idle: false }
    }

    /// If cells are not to be digested, `finish` returns an error.
    pub(crate) fn of(cells: CellDigest, content: &'a Content) -> Self {
        let idle = matches!(cells, CellDigest::Skipped(_));
        ColumnStream { failed: idle.then(not_selected), idle, ..Self::new(cells.kind(), content) }
    }

    /// Bytes of whole rows from `first` to the newest, or of a part of row `first`.
    fn add(&mut self, mut bytes: &[u8], first: u64) {
        while self.pending.len() + bytes.len() >= MARK_BYTES {
            let (head, rest) = bytes.split_at(MARK_BYTES - self.pending.len());
            if self.pending.is_empty() {
                self.hasher.update(head);
            } else {
                self.pending.extend_from_slice(head);
                self.hasher.update(&self.pending);
                self.pending.clear();
            }
            self.marks.add(&self.hasher, first..self.rows);
            bytes = rest;
        }
        self.pending.extend_from_slice(bytes);
    }

    /// `header` tells whether the cell is defined, and its shape.
    fn begin(&mut self, header: &[u8]) {
        self.rows += 1;
        self.add(header, self.rows - 1);
    }

    /// Elements of the row that [`begin`](Self::begin) started last.
    fn extend(&mut self, bytes: &[u8]) {
        self.add(bytes, self.rows.saturating_sub(1));
    }

    /// The next block, or part of a cell; `values` has its defined cells.
    pub(crate) fn update(&mut self, block: &RowBlock, values: &Values) -> Result<()> {
        if self.idle {
            return Ok(());
        }
        if block.part.is_some() {
            let Shapes::Same(shape) = &block.shapes else { unreachable!("a part of a cell that has a shape") };
            if !block.continues() {
                self.begin(&cell_header(shape));
            }
            self.extend(&values.le_bytes().expect("only cells of fixed-size elements are split"));
            return Ok(());
        }
        match values.le_bytes() {
            Some(bytes) => self.update_bytes(block, &bytes, values.data_type().size()),
            None => self.update_unsized(block, values),
        }
    }

    /// Little-endian elements of whole cells.
    pub(crate) fn update_bytes(&mut self, block: &RowBlock, mut bytes: &[u8], element: usize) -> Result<()> {
        match &block.shapes {
            Shapes::Same(shape) => self.update_same(shape, block.rows.end - block.rows.start, bytes, element),
            Shapes::Each(shapes) => {
                for shape in shapes {
                    match shape {
                        Some(shape) => {
                            let (cell, rest) = bytes.split_at(shape.elements()? as usize * element);
                            self.begin(&cell_header(shape));
                            self.extend(cell);
                            bytes = rest;
                        }
                        None => self.begin(&[0]),
                    }
                }
                Ok(())
            }
        }
    }

    /// Little-endian elements of `rows` defined cells; bytes after the last cell are ignored.
    pub(crate) fn update_same(&mut self, shape: &Shape, rows: u64, bytes: &[u8], element: usize) -> Result<()> {
        if self.idle {
            return Ok(());
        }
        let header = cell_header(shape);
        let cell = shape.elements()? as usize * element;
        if cell >= 256 {
            // a chunk's padding follows the rows
            for bytes in bytes.chunks_exact(cell).take(rows as usize) {
                self.begin(&header);
                self.extend(bytes);
            }
            return Ok(());
        }
        // many small updates cost more than a copy; the headers are copied once
        let (rows, record) = (rows as usize, header.len() + cell);
        let piece = rows.min(PIECE / record + 1);
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..piece {
            buffer.extend_from_slice(&header);
            buffer.resize(buffer.len() + cell, 0);
        }
        for start in (0..rows).step_by(piece.max(1)) {
            let count = piece.min(rows - start);
            let records = &mut buffer[..count * record];
            put_cells(records, record, &bytes[start * cell..(start + count) * cell], cell);
            let first = self.rows;
            self.rows += count as u64;
            self.add(records, first);
        }
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    /// Strings or records, whose elements differ in size.
    fn update_unsized(&mut self, block: &RowBlock, values: &Values) -> Result<()> {
        let mut next = 0;
        let mut first = self.rows;
        for row in 0..(block.rows.end - block.rows.start) as usize {
            self.rows += 1;
            let Some(shape) = block.shapes.of(row) else {
                self.buffer.push(0);
                continue;
            };
            self.buffer.extend_from_slice(&cell_header(shape));
            for _ in 0..shape.elements()? {
                match values {
                    Values::String(strings) => {
                        let string = &strings[next];
                        if std::str::from_utf8(string).is_err() {
                            let row = block.rows.start + row as u64;
                            let message = || Error::format(format!("the string in row {row} is not UTF-8: {string:?}"));
                            self.failed.get_or_insert_with(message);
                        }
                        put_str(&mut self.buffer, string);
                    }
                    Values::Record(records) => {
                        put_record(&mut self.buffer, &records[next], &|stored| self.content.table_name(stored));
                    }
                    _ => unreachable!("other elements have a size"),
                }
                next += 1;
            }
            self.flush(&mut first, PIECE);
        }
        self.flush(&mut first, 0);
        Ok(())
    }

    /// Adds buffered bytes beyond `least`; `first`, the buffer's first row, is then the next row.
    fn flush(&mut self, first: &mut u64, least: usize) {
        if self.buffer.len() > least {
            let mut buffer = std::mem::take(&mut self.buffer);
            self.add(&buffer, *first);
            *first = self.rows;
            buffer.clear();
            self.buffer = buffer;
        }
    }

    /// Fails with `Format` if the column has no digest: strings must be UTF-8.
    pub(crate) fn finish(mut self) -> Result<CellsDigest> {
        self.hasher.update(&self.pending);
        match self.failed {
            Some(error) => Err(error),
            None => Ok(CellsDigest { hash: self.hasher.finish(), marks: self.marks }),
        }
    }
}

/// Replaces the digest of an excluded column.
pub(crate) fn not_selected() -> Error {
    Error::usage("no digest was asked for")
}

/// A byte 1, then the number of axes and their extents, slowest first, each a little-endian u64.
fn cell_header(shape: &Shape) -> Vec<u8> {
    let mut header = vec![1];
    header.extend_from_slice(&(shape.len() as u64).to_le_bytes());
    for extent in shape.iter().rev() {
        header.extend_from_slice(&extent.to_le_bytes());
    }
    header
}

fn put_cells(records: &mut [u8], record: usize, cells: &[u8], cell: usize) {
    match cell {
        0 => {}
        1 => put_sized::<1>(records, record, cells),
        2 => put_sized::<2>(records, record, cells),
        4 => put_sized::<4>(records, record, cells),
        8 => put_sized::<8>(records, record, cells),
        16 => put_sized::<16>(records, record, cells),
        32 => put_sized::<32>(records, record, cells),
        _ => {
            for (record, bytes) in records.chunks_exact_mut(record).zip(cells.chunks_exact(cell)) {
                let start = record.len() - cell;
                record[start..].copy_from_slice(bytes);
            }
        }
    }
}

/// Like [`put_cells`]; fast, since the compiler knows `N`.
fn put_sized<const N: usize>(records: &mut [u8], record: usize, cells: &[u8]) {
    for (record, bytes) in records.chunks_exact_mut(record).zip(cells.as_chunks::<N>().0) {
        if let Some(end) = record.last_chunk_mut() {
            *end = *bytes;
        }
    }
}

fn put_str(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// `table_name` returns the last component of a subtable's stored path.
fn put_record(out: &mut Vec<u8>, record: &Record, table_name: &dyn Fn(&[u8]) -> String) {
    out.extend_from_slice(&(record.fields.len() as u64).to_le_bytes());
    for field in &record.fields {
        put_str(out, &field.name);
        match &field.value {
            Value::Record(nested) => {
                out.push(b'R');
                put_record(out, nested, table_name);
            }
            Value::Table(stored) => {
                out.push(b't');
                put_str(out, table_name(stored).as_bytes());
            }
            Value::Scalar(Values::String(strings)) => match strings[0].strip_prefix(b"Table: ") {
                // python-casacore shows subtables as such strings, so the reference cannot tell
                // them apart
                Some(path) => {
                    let path = String::from_utf8_lossy(path);
                    out.push(b't');
                    put_str(out, last_part(path.trim_end_matches('/')).as_bytes());
                }
                None => put_elements(out, &field.value),
            },
            value => put_elements(out, value),
        }
    }
}

/// A tag of the type, the shape of an array, then the elements, numbers widened to 64 bits.
fn put_elements(out: &mut Vec<u8>, value: &Value) {
    let (shape, values) = match value {
        Value::Scalar(values) => (None, values),
        Value::Array(shape, values) => (Some(shape), values),
        Value::Record(_) | Value::Table(_) => return,
    };
    if let Some(shape) = shape {
        out.push(b'A');
        // an array without axes counts as one without elements
        let axes = if shape.is_empty() { vec![0] } else { shape.reversed() };
        out.push(if values.is_empty() { b'z' } else { tag(values.data_type()) });
        out.extend_from_slice(&(axes.len() as u64).to_le_bytes());
        axes.iter().for_each(|extent| out.extend_from_slice(&extent.to_le_bytes()));
    } else {
        out.push(tag(values.data_type()));
    }
    let int = |out: &mut Vec<u8>, v: i64| out.extend_from_slice(&v.to_le_bytes());
    let float = |out: &mut Vec<u8>, v: f64| out.extend_from_slice(&v.to_le_bytes());
    match values {
        Values::Bool(v) => v.iter().for_each(|&v| out.push(u8::from(v))),
        Values::UChar(v) => v.iter().for_each(|&v| int(out, v.into())),
        Values::Short(v) => v.iter().for_each(|&v| int(out, v.into())),
        Values::UShort(v) => v.iter().for_each(|&v| int(out, v.into())),
        Values::Int(v) => v.iter().for_each(|&v| int(out, v.into())),
        Values::UInt(v) => v.iter().for_each(|&v| int(out, v.into())),
        Values::Int64(v) => v.iter().for_each(|&v| int(out, v)),
        Values::Float(v) => v.iter().for_each(|&v| float(out, v.into())),
        Values::Double(v) => v.iter().for_each(|&v| float(out, v)),
        Values::Complex(v) => v.iter().for_each(|v| {
            float(out, v.re.into());
            float(out, v.im.into());
        }),
        Values::DComplex(v) => v.iter().for_each(|v| {
            float(out, v.re);
            float(out, v.im);
        }),
        Values::String(v) => v.iter().for_each(|v| put_str(out, v)),
        Values::Record(_) => {}
    }
}

fn tag(data_type: DataType) -> u8 {
    match data_type {
        DataType::Bool => b'b',
        DataType::Float | DataType::Double => b'f',
        DataType::Complex | DataType::DComplex => b'c',
        DataType::String => b's',
        DataType::Record => b'R',
        _ => b'i',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Region;

    #[test]
    fn empty_keyword_set_as_the_reference_computes_it() {
        let mut bytes = Vec::new();
        put_record(&mut bytes, &Record::default(), &|_| String::new());
        // keywords_sha256 of every table without keywords in the corpus
        assert!(Hash::of(HashKind::Sha256, &bytes).to_string().starts_with("af5570f5a1810b7af78caf4bc70a660f"));
    }

    /// The cells of a column, as if it had no chunks.
    struct OfRows<'a>(&'a dyn ColumnCells);

    impl ColumnCells for OfRows<'_> {
        fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
            self.0.cell_shape(row)
        }

        fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
            self.0.read_cell(row, region, out)
        }
    }

    #[test]
    fn digest_of_chunks_is_that_of_rows() {
        let folder = tempfile::tempdir().unwrap();
        let native = folder.path().join("twospw.h5");
        let tables = ctds_hdf5_testing::testdata();
        crate::convert::ToHdf5::new(tables.join("twospw/twospw.ms")).write(&native).unwrap();
        let mut sources = vec![native, tables.join("demo/demo.ms"), tables.join("twospw/twospw.ms")];
        sources.extend(std::fs::read_dir(tables.join("dtypes_tiled")).unwrap().map(|entry| entry.unwrap().path()));
        let mut chunked = 0;
        for path in sources.iter().filter(|path| path.extension().is_some_and(|name| name != "json")) {
            let source = Source::open(path).unwrap();
            for table in source.tables() {
                let content = table.content().unwrap();
                for (index, info) in content.columns().iter().enumerate() {
                    let cells = content.cells(index).unwrap();
                    let rows = 0..content.rows();
                    let tiling = cells.tiling(1);
                    chunked +=
                        tiling.is_some_and(|tiling| RowChunks::new(tiling, info.data_type(), &rows).is_some()) as usize;
                    let digest = |cells: &dyn ColumnCells| {
                        digest_cells(info, cells, content, rows.clone(), HashKind::Blake3, &()).unwrap().hash
                    };
                    assert_eq!(digest(&*cells), digest(&OfRows(&*cells)), "{} {}", table.name, info.desc.name);
                }
            }
        }
        assert!(chunked > 40, "only {chunked} columns were read by chunks");
    }
}
