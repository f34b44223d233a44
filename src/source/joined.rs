//! Reads a column of a table whose rows are divided among several tables, its parts.

use std::ops::Range;

use crate::error::Result;
use crate::limits;
use crate::table::{Access, ColumnCells};
use crate::value::{DataType, Region, Shape, Values};

/// First row and cells of each part.
pub(super) struct JoinedCells<'a> {
    pub(super) parts: Vec<(u64, Box<dyn ColumnCells + 'a>)>,
    /// Rows of all parts.
    pub(super) rows: u64,
}

impl JoinedCells<'_> {
    fn part(&self, row: u64) -> Result<(&dyn ColumnCells, u64)> {
        limits::row_range(&(row..row.saturating_add(1)), self.rows)?;
        // the first part begins with row 0; of several with the same first row all but the last have none
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

/// The little-endian element that readers of a joined file get where the file of a part is missing: NaN, true, the smallest
/// signed or largest unsigned integer; empty for strings and records.
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
