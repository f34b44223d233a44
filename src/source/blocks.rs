//! Reads a column in blocks of rows that fit in memory, in row order.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::{DataType, Region, Shape, Values};

/// Elements in memory at a time while a column is digested or compared.
pub(crate) const READ_BYTES: u64 = 2 << 20;
/// Elements in memory at a time while a column is written.
pub(crate) const WRITE_BYTES: u64 = 4 << 20;

/// Rows whose shapes are read together if they differ.
const SHAPES_AHEAD: u64 = 4096;

/// Shapes of a block, fastest axis first.
#[derive(Debug, Clone, PartialEq)]
pub enum Shapes {
    /// All cells are defined.
    Same(Shape),
    /// `None` for an undefined cell.
    Each(Vec<Option<Shape>>),
}

impl Shapes {
    /// `row` counts within the block; `None` for an undefined cell.
    pub fn of(&self, row: usize) -> Option<&Shape> {
        match self {
            Shapes::Same(shape) => Some(shape),
            Shapes::Each(shapes) => shapes.get(row)?.as_ref(),
        }
    }
}

/// A piece of a column that is read in one step: consecutive rows, or a part of one cell that is
/// too large for memory.
#[derive(Debug, Clone, PartialEq)]
pub struct RowBlock {
    pub rows: Range<u64>,
    pub shapes: Shapes,
    /// Part of a single row's cell, fastest axis first. Parts follow each other along the slowest
    /// axis.
    pub part: Option<Region>,
}

impl RowBlock {
    /// Only defined cells.
    pub fn read(&self, cells: &dyn ColumnCells, out: &mut Values) -> Result<()> {
        let before = out.len();
        match &self.part {
            Some(region) => cells.read_cell(self.rows.start, Some(region), out)?,
            None => cells.read_rows(self.rows.clone(), out)?,
        }
        // the elements are told apart by the shapes
        let (found, expected) = ((out.len() - before) as u64, self.elements()?);
        if found != expected {
            let Range { start, end } = self.rows;
            return Err(Error::format(format!(
                "rows {start}..{end} have {found} elements, by their shapes {expected}"
            )));
        }
        Ok(())
    }

    fn elements(&self) -> Result<u64> {
        match (&self.part, &self.shapes) {
            (Some(region), _) => region.shape.elements(),
            (None, Shapes::Same(shape)) => Ok(shape.elements()?.saturating_mul(self.rows.end - self.rows.start)),
            (None, Shapes::Each(shapes)) => {
                shapes.iter().flatten().try_fold(0u64, |sum, shape| Ok(sum.saturating_add(shape.elements()?)))
            }
        }
    }

    /// A part of a cell, but not the first.
    pub(crate) fn continues(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.start.iter().any(|&start| start > 0))
    }
}

/// Cuts rows into blocks of about `bytes` bytes.
pub struct RowBlocks<'a> {
    cells: &'a dyn ColumnCells,
    data_type: DataType,
    /// `None` if each cell's shape must be read.
    shape: Option<Shape>,
    rows: Range<u64>,
    bytes: u64,
    /// Shapes of the next rows that are not yet in a block.
    ahead: std::vec::IntoIter<Option<Shape>>,
    /// Large cell being read in parts, and the start of the next on the slowest axis.
    cell: Option<(Shape, u64)>,
}

impl<'a> RowBlocks<'a> {
    /// Blocks of the cells of one column, in the order of `rows`.
    pub fn new(info: &ColumnInfo, cells: &'a dyn ColumnCells, rows: Range<u64>, bytes: u64) -> Self {
        let shape = if info.is_always_defined() { info.shape.clone() } else { cells.same_shape(&rows) };
        RowBlocks { cells, data_type: info.data_type(), shape, rows, bytes, ahead: Vec::new().into_iter(), cell: None }
    }

    /// All cells are known to be defined and of this shape: none is read.
    pub(crate) fn of_shape(
        shape: Shape,
        data_type: DataType,
        cells: &'a dyn ColumnCells,
        rows: Range<u64>,
        bytes: u64,
    ) -> Self {
        RowBlocks { cells, data_type, shape: Some(shape), rows, bytes, ahead: Vec::new().into_iter(), cell: None }
    }

    fn cell_bytes(&self, shape: &Shape) -> Result<u64> {
        // strings and records are guessed to be short
        let element = if self.data_type.is_fixed_size() { self.data_type.size() as u64 } else { 64 };
        Ok(shape.elements()?.saturating_mul(element))
    }

    /// Bytes of all strings in a cell, an estimate for the rows after it; 0 for other types.
    fn measured(&self, row: u64) -> Result<u64> {
        let mut strings = Values::new(self.data_type);
        let Values::String(_) = strings else { return Ok(0) };
        self.cells.read_cell(row, None, &mut strings)?;
        let Values::String(strings) = strings else { return Ok(0) };
        Ok(strings.iter().map(|string| string.len() as u64).sum())
    }

    fn next_block(&mut self) -> Result<Option<RowBlock>> {
        if let Some((shape, start)) = self.cell.take() {
            return self.next_part(shape, start).map(Some);
        }
        if self.rows.is_empty() {
            return Ok(None);
        }
        let first = self.rows.start;
        if let Some(shape) = &self.shape {
            let cell = self.cell_bytes(shape)?;
            if cell > self.bytes && self.can_split(shape) {
                return self.next_part(shape.clone(), 0).map(Some);
            }
            let cell = cell.max(self.measured(first)?);
            let count = (self.bytes / cell.max(1)).clamp(1, self.rows.end - first);
            self.rows.start += count;
            return Ok(Some(RowBlock { rows: first..first + count, shapes: Shapes::Same(shape.clone()), part: None }));
        }
        let mut shapes = Vec::new();
        let mut total = 0;
        while self.rows.start < self.rows.end {
            self.read_ahead()?;
            let cell = match self.ahead.as_slice().first().and_then(Option::as_ref) {
                // the list of shapes takes memory too
                Some(shape) => self.cell_bytes(shape)?.saturating_add(32),
                None => 32,
            };
            if total > 0 && cell > self.bytes.saturating_sub(total) {
                break;
            }
            let shape = self.ahead.next().flatten();
            if let Some(shape) = shape.as_ref().filter(|shape| cell > self.bytes && self.can_split(shape)) {
                return self.next_part(shape.clone(), 0).map(Some);
            }
            total = total.saturating_add(cell);
            shapes.push(shape);
            self.rows.start += 1;
        }
        Ok(Some(RowBlock { rows: first..self.rows.start, shapes: Shapes::Each(shapes), part: None }))
    }

    /// Does nothing unless `ahead` is empty.
    fn read_ahead(&mut self) -> Result<()> {
        if self.ahead.as_slice().is_empty() {
            let Range { start, end } = self.rows;
            // a damaged row is for the block that reaches it
            let shapes = match self.cells.shapes(start..end.min(start + SHAPES_AHEAD)) {
                Ok(shapes) => shapes,
                Err(_) => vec![self.cells.cell_shape(start)?],
            };
            self.ahead = shapes.into_iter();
        }
        Ok(())
    }

    fn can_split(&self, shape: &Shape) -> bool {
        self.data_type.is_fixed_size() && !shape.is_empty()
    }

    /// The part from index `start` on the slowest axis; after the last, the next row follows.
    fn next_part(&mut self, shape: Shape, start: u64) -> Result<RowBlock> {
        let row = self.rows.start;
        let axis = shape.len() - 1;
        let slab = self.cell_bytes(&shape)? / shape[axis].max(1);
        let count = (self.bytes / slab.max(1)).clamp(1, shape[axis] - start);
        let region = Region::rows(&shape[..axis].into(), start..start + count);
        let block = RowBlock { rows: row..row + 1, shapes: Shapes::Same(shape.clone()), part: Some(region) };
        if start + count < shape[axis] {
            self.cell = Some((shape, start + count));
        } else {
            self.rows.start += 1;
        }
        Ok(block)
    }
}

impl Iterator for RowBlocks<'_> {
    type Item = Result<RowBlock>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_block();
        if next.is_err() {
            self.rows.start = self.rows.end;
        }
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};
    use crate::stman::contradictory::Contradictory;

    /// Two elements each, whose shapes must not be asked for.
    struct Known;

    impl ColumnCells for Known {
        fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
            panic!("the shape is known")
        }

        fn read_cell(&self, _row: u64, _region: Option<&Region>, _out: &mut Values) -> Result<()> {
            panic!("rows are read together")
        }

        fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
            let Values::Float(out) = out else { panic!("floats") };
            out.extend(rows.flat_map(|row| [row as f32; 2]));
            Ok(())
        }
    }

    #[test]
    fn known_shapes_are_not_read() {
        let mut found = Values::new(DataType::Float);
        let mut rows = Vec::new();
        for block in RowBlocks::of_shape(Shape::from([2]), DataType::Float, &Known, 3..8, 24) {
            let block = block.unwrap();
            block.read(&Known, &mut found).unwrap();
            rows.push(block.rows);
        }
        assert_eq!(rows, [3..6, 6..8]);
        assert_eq!(found, Values::Float((3..8u8).flat_map(|row| [f32::from(row); 2]).collect()));
    }

    #[test]
    fn cells_have_the_elements_of_their_shapes() {
        let cells = Contradictory(Values::Float(vec![1.; 3]));
        let block = RowBlock { rows: 0..4, shapes: Shapes::Same(Shape::from([2])), part: None };
        block
            .read(&cells, &mut Values::new(DataType::Float))
            .fails(ErrorKind::Format, "rows 0..4 have 3 elements, by their shapes 8");
    }
}
