//! Several native files as one table: the rows of their main tables one after the other.

use std::ops::Range;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use super::compare::compare_beside_main;
use super::{Content, Source};
use crate::error::{Context, Error, Result, ResultExt, column_context};
use crate::h5::VirtualSource;
use crate::limits;
use crate::native::{MAIN_TABLE, Part, table_path};
use crate::progress::Progress;
use crate::table::{ColumnCells, ColumnInfo, OpenOptions};
use crate::value::{DataType, Region, Shape, Values};

/// Most files that are joined: HDF5 opens each of them when a virtual dataset is read, and a process may have 1024 files open.
pub(crate) const MOST_PARTS: usize = 512;

/// A main table in parts, which are native files.
pub(crate) struct Joined {
    parts: Vec<JoinedPart>,
    /// Descriptions of the columns, which are the same in all parts; cells may be undefined if they may be in any part.
    columns: Vec<ColumnInfo>,
}

/// A native file with some of the rows of a table.
struct JoinedPart {
    content: Content,
    /// Path of the file relative to the directory of the joined one.
    file: String,
    /// Number of the part's first row in the joined table, from 0.
    start: u64,
    rows: u64,
}

/// A native file that is to be joined with others.
pub(crate) struct PartFile {
    pub(crate) path: PathBuf,
    /// Path of the file relative to the directory of the joined one.
    pub(crate) relative: String,
}

impl Source {
    /// Opens native files whose main tables are one table, in the order of its rows. Subtables are those of the first file, and the
    /// same in all others.
    ///
    /// # Errors
    /// `Usage` if they are not parts of one table, or not in order; those of opening and reading them.
    pub(crate) fn join(parts: &[PartFile], options: OpenOptions, progress: &dyn Progress) -> Result<Self> {
        if parts.len() > MOST_PARTS {
            let message = format!(
                "{} parts are too many, {MOST_PARTS} can be joined: HDF5 opens all of them to read one dataset; make fewer and larger parts",
                parts.len()
            );
            return Err(Error::usage(message));
        }
        let mut joined: Option<Source> = None;
        let mut contents: Vec<JoinedPart> = Vec::new();
        for part in parts {
            progress.go_on()?;
            let mut source = Source::open_with(&part.path, options)?;
            let place = Context::path(&part.path);
            check_part(&source).context(&place)?;
            if let Some(first) = &joined {
                let (found, other) = (compare_beside_main(first, &source, progress)?, &parts[0].path);
                if let Some(difference) = found.differences.first() {
                    let (left, right) = (&difference.left, &difference.right);
                    let table = match &difference.column {
                        Some(column) => column_context(&difference.table, column),
                        None => Context::table(&difference.table),
                    };
                    let row = difference.row.map_or(String::new(), |row| format!(" in row {row}"));
                    let message = format!(
                        "{table} differs from that of {}: {right}{row}, {left} is expected; parts of one table have the same subtables",
                        other.display()
                    );
                    return Err(Error::usage(message).context(&place));
                }
            }
            let table = source.tables.remove(0);
            let content = table.content?;
            let start = contents.last().map_or(0, |last| last.start + last.rows);
            let rows = content.rows();
            let file = part.relative.clone();
            let part = JoinedPart { content, file, start, rows };
            match contents.first() {
                Some(first) => check_follows(first, contents.last().unwrap_or(first), &part).context(&place)?,
                None => {
                    // subtables keep the first file open
                    joined = Some(source);
                }
            }
            contents.push(part);
        }
        let mut source = joined.ok_or_else(|| Error::usage("no part is named"))?;
        let columns = join_columns(&contents);
        let main = super::SourceTable {
            name: MAIN_TABLE.into(),
            parent: None,
            path: None,
            group: Some(table_path(MAIN_TABLE)),
            content: Ok(Content::Joined(Box::new(Joined { parts: contents, columns }))),
        };
        source.tables.insert(0, main);
        Ok(source)
    }

    /// The rows of the main table at which its parts begin and end: the first and the last row of each, as half-open ranges.
    pub(crate) fn edges_of_parts(&self) -> Vec<Range<u64>> {
        let Some(Ok(Content::Joined(joined))) = self.tables.first().map(|table| &table.content) else {
            return Vec::new();
        };
        let edges = joined.parts.iter().filter(|part| part.rows > 0).flat_map(|part| {
            let (first, last) = (part.start, part.start + part.rows - 1);
            std::iter::once(first..first + 1).chain((last > first).then_some(last..last + 1))
        });
        edges.collect()
    }
}

/// Fails unless a source is a native file that is finished and whole.
fn check_part(source: &Source) -> Result<()> {
    let none = || Error::not_found(source.no_table_named(MAIN_TABLE));
    let main = source.tables.first().ok_or_else(none)?;
    if !matches!(main.content()?, Content::Native(_)) {
        return Err(Error::usage("not a native HDF5 file: parts are what `to-hdf5` writes, convert it first"));
    }
    if let Some(damage) = source.damage.first() {
        return Err(Error::usage(format!("damage was left out of the part: {damage}")));
    }
    for table in &source.tables {
        for (index, column) in table.columns()?.iter().enumerate() {
            if let Some(error) = table.unreadable(index) {
                return Err(error.context(Context::column(&column.desc.name.to_str_lossy())));
            }
        }
    }
    Ok(())
}

/// Fails unless a part has the columns of the first one and begins where the previous one ends.
fn check_follows(first: &JoinedPart, previous: &JoinedPart, part: &JoinedPart) -> Result<()> {
    let describe = |info: &ColumnInfo| format!("{} {} {:?}", info.desc.name, info.data_type(), info.desc.kind);
    let (expected, found) = (first.content.columns(), part.content.columns());
    let differ = expected.iter().zip(found).find(|(a, b)| describe(a) != describe(b));
    if let Some((a, b)) = differ {
        let message = format!("the column {} where {} has {}", describe(b), first.file, describe(a));
        return Err(Error::usage(message));
    }
    if expected.len() != found.len() {
        let (a, b) = (expected.len(), found.len());
        return Err(Error::usage(format!("{b} columns where {} has {a}", first.file)));
    }
    let numbers = |part: &JoinedPart| part.content.first_row();
    let (Some(before), Some(now)) = (numbers(previous)?, numbers(part)?) else { return Ok(()) };
    // tables that are independent all begin with row 0
    if now == 0 && numbers(first)? == Some(0) {
        return Ok(());
    }
    let expected = before.saturating_add(previous.rows as i64);
    if now != expected {
        let message = format!(
            "the part begins with row {now} of the table it was made of, row {expected} is expected after {}: parts are missing or not in order",
            previous.file
        );
        return Err(Error::usage(message));
    }
    Ok(())
}

/// The columns of the joined table, from those of its parts.
fn join_columns(parts: &[JoinedPart]) -> Vec<ColumnInfo> {
    let mut columns = parts.first().map_or_else(Vec::new, |first| first.content.columns().to_vec());
    for part in parts {
        for (column, other) in columns.iter_mut().zip(part.content.columns()) {
            column.may_be_undefined |= other.may_be_undefined;
            if column.shape != other.shape {
                column.shape = None;
            }
        }
    }
    columns
}

impl Joined {
    pub(super) fn first(&self) -> &Content {
        &self.parts[0].content
    }

    pub(super) fn rows(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.start + part.rows)
    }

    pub(super) fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    pub(super) fn unreadable(&self, index: usize) -> Option<Error> {
        self.parts.iter().find_map(|part| part.content.unreadable(index))
    }

    pub(super) fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        let mut parts = Vec::new();
        for part in &self.parts {
            let cells = part.content.cells(index).with_context(|| Context::path(Path::new(&part.file)))?;
            parts.push((part.start, cells));
        }
        Ok(Box::new(JoinedCells { parts, rows: self.rows() }))
    }

    /// The datasets of the parts that hold the elements of a column one after the other, for a dataset of shape `dataset`: cells and
    /// rows, or only elements. `None` if they are strings, or a part has them in another form.
    pub(super) fn virtual_sources(&self, index: usize, dataset: &Shape) -> Result<Option<Vec<VirtualSource>>> {
        if !self.columns[index].data_type().is_fixed_size() {
            return Ok(None);
        }
        let Some((cell, rows)) = dataset.split_last() else { return Ok(None) };
        let (mut sources, mut count) = (Vec::new(), 0);
        for part in self.parts.iter().filter(|part| part.rows > 0) {
            let paths = part.content.dataset_paths(index)?;
            let found = match paths.as_slice() {
                [(Part::Data, path)] => Some((Part::Data, path)),
                _ => paths.iter().find(|(of, _)| *of == Part::Values).map(|(of, path)| (*of, path)),
            };
            let Some((of, path)) = found else { return Ok(None) };
            let shapes = part.content.storage(index)?;
            let stored = shapes.iter().find(|stored| path.ends_with(&format!("/{}", stored.name)));
            let Some(shape) = stored.filter(|stored| stored.elsewhere.is_none()).map(|stored| &stored.shape) else {
                return Ok(None);
            };
            let fits = shape.split_last().is_some_and(|(of_part, _)| of_part == cell);
            count += match of {
                Part::Data if fits && !cell.is_empty() => part.rows,
                Part::Data if cell.is_empty() => shape.elements()?,
                Part::Values if cell.is_empty() => shape.elements()?,
                _ => return Ok(None),
            };
            sources.push(VirtualSource { file: part.file.clone(), dataset: path.clone(), shape: shape.clone() });
        }
        Ok((count == rows && count > 0).then_some(sources))
    }
}

/// The cells of a column in parts: the number of the first row of each part, and its cells.
struct JoinedCells<'a> {
    parts: Vec<(u64, Box<dyn ColumnCells + 'a>)>,
    rows: u64,
}

impl JoinedCells<'_> {
    /// The cells of the part that has `row`, and the number of the row there.
    fn part(&self, row: u64) -> Result<(&dyn ColumnCells, u64)> {
        limits::row_range(&(row..row.saturating_add(1)), self.rows)?;
        // the first part begins with row 0; of several with the same first row all but the last have none
        let next = self.parts.partition_point(|(start, _)| *start <= row);
        let (start, cells) = &self.parts[next - 1];
        Ok((&**cells, row - start))
    }

    /// The rows of each part that are among `rows`, as the part numbers them.
    fn split(&self, rows: Range<u64>) -> impl Iterator<Item = (&dyn ColumnCells, Range<u64>)> {
        let ends = self.parts.iter().skip(1).map(|(start, _)| *start).chain([self.rows]);
        self.parts.iter().zip(ends).filter_map(move |((start, cells), end)| {
            let (first, last) = (rows.start.max(*start), rows.end.min(end));
            (first < last).then(|| (&**cells, first - start..last - start))
        })
    }
}

impl ColumnCells for JoinedCells<'_> {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        let (cells, row) = self.part(row)?;
        cells.cell_shape(row)
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let (cells, row) = self.part(row)?;
        cells.read_cell(row, region, out)
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.split(rows).try_for_each(|(cells, rows)| cells.read_rows(rows, out))
    }

    fn shapes(&self, rows: Range<u64>) -> Result<Vec<Option<Shape>>> {
        let mut shapes = Vec::new();
        for (cells, rows) in self.split(rows) {
            match cells.same_shape(&rows) {
                Some(shape) => shapes.extend(rows.map(|_| Some(shape.clone()))),
                None => shapes.append(&mut cells.shapes(rows)?),
            }
        }
        Ok(shapes)
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let mut parts = self.split(rows.clone());
        let (cells, first) = parts.next()?;
        let shape = cells.same_shape(&first)?;
        parts.all(|(cells, rows)| cells.same_shape(&rows).as_ref() == Some(&shape)).then_some(shape)
    }
}

/// The element that readers of a joined file get where a part is missing, in the byte order of the file: NaN, true, and for integers
/// the number that is farthest from 0.
pub(crate) fn fill_of(data_type: DataType) -> Vec<u8> {
    match data_type {
        DataType::Bool => vec![1],
        DataType::UChar => vec![u8::MAX],
        DataType::Short => i16::MIN.to_le_bytes().to_vec(),
        DataType::UShort => u16::MAX.to_le_bytes().to_vec(),
        DataType::Int => i32::MIN.to_le_bytes().to_vec(),
        DataType::UInt => u32::MAX.to_le_bytes().to_vec(),
        DataType::Int64 => i64::MIN.to_le_bytes().to_vec(),
        DataType::Float => f32::NAN.to_le_bytes().to_vec(),
        DataType::Double => f64::NAN.to_le_bytes().to_vec(),
        DataType::Complex => f32::NAN.to_le_bytes().repeat(2),
        DataType::DComplex => f64::NAN.to_le_bytes().repeat(2),
        DataType::String | DataType::Record => Vec::new(),
    }
}
