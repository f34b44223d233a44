//! The main tables of several native HDF5 files, its parts, as one table: the rows of one file
//! after those of another.

use std::ops::Range;
use std::path::Path;

use super::content::{Content, TableContent};
use super::origin::Origin;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::VirtualSource;
use crate::limits;
use crate::native::{NativeTable, Part, View};
use crate::table::{Access, ColumnCells, ColumnInfo};
use crate::value::{DataType, Region, Shape, Values};

pub(super) struct Joined {
    parts: Vec<JoinedPart>,
    /// Cells may be undefined if so in any part; the shape is fixed only if equal in all parts.
    columns: Vec<ColumnInfo>,
}

pub(super) struct JoinedPart {
    pub(super) content: Box<Content>,
    /// Relative to the directory of the joined file.
    pub(super) file: String,
    /// First row in the joined table.
    pub(super) start: u64,
    pub(super) rows: u64,
}

impl Joined {
    /// `parts` has at least one, in the order of rows.
    pub(super) fn of(parts: Vec<JoinedPart>) -> Box<Content> {
        let columns = join_columns(&parts);
        Box::new(Joined { parts, columns })
    }

    fn first(&self) -> &Content {
        &*self.parts[0].content
    }
}

impl TableContent for Joined {
    fn inner(&self) -> Option<&Content> {
        Some(self.first())
    }

    fn origin(&self) -> Origin<'_> {
        self.first().origin()
    }

    /// None of the files has the whole table.
    fn as_native(&self) -> Option<&NativeTable> {
        None
    }

    fn rows(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.start + part.rows)
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        let mut parts = Vec::new();
        for part in &self.parts {
            let cells = part.content.cells(index).with_context(|| Context::path(Path::new(&part.file)))?;
            parts.push((part.start, cells));
        }
        Ok(Box::new(JoinedCells { parts, rows: self.rows() }))
    }

    fn row_numbers(&self) -> Result<Option<Vec<i64>>> {
        Ok(None)
    }

    fn view(&self) -> Option<View> {
        None
    }

    fn unreadable(&self, index: usize) -> Option<Error> {
        self.parts.iter().find_map(|part| part.content.unreadable(index))
    }

    /// `None` for strings and records, and if the datasets do not form the shape `dataset`.
    fn virtual_sources(&self, index: usize, dataset: &Shape) -> Result<Option<Vec<VirtualSource>>> {
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

    fn edges_of_parts(&self) -> Vec<Range<u64>> {
        let edges = self.parts.iter().filter(|part| part.rows > 0).flat_map(|part| {
            let (first, last) = (part.start, part.start + part.rows - 1);
            std::iter::once(first..first + 1).chain((last > first).then_some(last..last + 1))
        });
        edges.collect()
    }

    fn edits(&self, _coordinates: &dyn Fn() -> Vec<(String, Values)>) -> Result<Vec<String>> {
        self.first().edits(&Vec::new)
    }
}

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

/// First row in the joined table, and cells, of each part.
struct JoinedCells<'a> {
    parts: Vec<(u64, Box<dyn ColumnCells + 'a>)>,
    rows: u64,
}

impl JoinedCells<'_> {
    fn part(&self, row: u64) -> Result<(&dyn ColumnCells, u64)> {
        limits::row_range(&(row..row.saturating_add(1)), self.rows)?;
        // the first part begins with row 0; of several with the same first row all but the last
        // have none
        let next = self.parts.partition_point(|(start, _)| *start <= row);
        let (start, cells) = &self.parts[next - 1];
        Ok((&**cells, row - start))
    }

    /// Each part with some of `rows`, and these rows within it.
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

    fn access(&self) -> Access {
        self.parts.iter().map(|(_, cells)| cells.access()).max().unwrap_or(Access::Copied)
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

/// Little-endian element that replaces a missing part: NaN, true, the smallest signed or largest
/// unsigned integer; empty for strings and records.
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
