//! The cells of some rows on their way from a table into a live file, and what of them does not fit.

use std::ops::Range;

use crate::error::Result;
use crate::live::{Block, CellShapes};
use crate::table::Cells;
use crate::value::{DataType, Shape, Values};

/// Strings without a declared length get room for so many bytes, or for twice those that are there.
const STRING_BYTES: usize = 64;

/// The shapes that a live column gets at most.
const MAX_SHAPES: usize = 64;

/// The cells of consecutive rows of a column.
#[derive(Debug)]
pub(super) struct CellBlock {
    values: Values,
    /// The number of the shape of each cell, if they may have several.
    shapes: Option<Vec<Option<usize>>>,
    /// Cells that do not fit the live column: it has zeros there, or empty strings, or they are undefined.
    pub(super) misfits: u64,
}

impl CellBlock {
    /// Reads the cells of `rows` into the form that a live column has.
    pub(super) fn read(
        cells: &dyn Cells,
        data_type: DataType,
        form: &CellShapes,
        string_bytes: usize,
        rows: Range<u64>,
    ) -> Result<Self> {
        let mut block = CellBlock { values: Values::new(data_type), shapes: None, misfits: 0 };
        match form {
            CellShapes::One(shape) => block.read_dense(cells, shape, rows)?,
            CellShapes::Several(shapes) => block.read_shapes(cells, shapes, rows)?,
        }
        block.fit_strings(string_bytes);
        Ok(block)
    }

    fn read_dense(&mut self, cells: &dyn Cells, shape: &Shape, rows: Range<u64>) -> Result<()> {
        if cells.same_shape(&rows).as_ref() == Some(shape) {
            return cells.read_rows(rows, &mut self.values);
        }
        for row in rows {
            if cells.cell_shape(row)?.as_ref() == Some(shape) {
                cells.read_cell(row, None, &mut self.values)?;
            } else {
                self.values.extend_default(shape.elements()? as usize);
                self.misfits += 1;
            }
        }
        Ok(())
    }

    fn read_shapes(&mut self, cells: &dyn Cells, known: &[Shape], rows: Range<u64>) -> Result<()> {
        let mut numbers = Vec::with_capacity((rows.end - rows.start) as usize);
        for row in rows {
            let shape = cells.cell_shape(row)?;
            let number = shape.as_ref().and_then(|shape| known.iter().position(|known| known == shape));
            match (&shape, number) {
                (Some(_), Some(_)) => cells.read_cell(row, None, &mut self.values)?,
                (Some(_), None) => self.misfits += 1,
                _ => {}
            }
            numbers.push(number);
        }
        self.shapes = Some(numbers);
        Ok(())
    }

    /// Strings that are too long, or no UTF-8 without NUL, become empty.
    fn fit_strings(&mut self, string_bytes: usize) {
        let Values::String(strings) = &mut self.values else { return };
        for string in strings {
            if string.len() > string_bytes || string.contains(&0) || std::str::from_utf8(string).is_err() {
                string.clear();
                self.misfits += 1;
            }
        }
    }

    /// In the form that a live writer takes.
    pub(super) fn block(&self) -> Result<Block<'_>> {
        let block = Block::try_from(&self.values)?;
        Ok(match &self.shapes {
            Some(shapes) => block.with_shapes(shapes),
            None => block,
        })
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> u64 {
        match (&self.values, self.values.le_bytes()) {
            (Values::String(strings), _) => strings.iter().map(|string| string.len() as u64 + 4).sum(),
            (_, bytes) => bytes.map_or(0, |bytes| bytes.len() as u64),
        }
    }

    /// Whether all bits are the same.
    pub(super) fn same(&self, other: &CellBlock) -> bool {
        let values = match (self.values.le_bytes(), other.values.le_bytes()) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => self.values == other.values,
        };
        values && self.shapes == other.shapes
    }
}

/// The shapes that a column's cells have so far; `None` if there are none to know them from, or too many.
pub(super) fn shapes(cells: &dyn Cells, fixed: Option<&Shape>, rows: u64) -> Result<Option<CellShapes>> {
    if let Some(shape) = cells.same_shape(&(0..rows)).filter(|_| rows > 0) {
        return Ok(Some(CellShapes::One(shape)));
    }
    let (mut found, mut undefined) = (Vec::<Shape>::new(), false);
    for row in 0..rows {
        match cells.cell_shape(row)? {
            Some(shape) if found.contains(&shape) => {}
            Some(shape) if found.len() < MAX_SHAPES => found.push(shape),
            Some(_) => return Ok(None),
            None => undefined = true,
        }
    }
    if found.is_empty() {
        found.extend(fixed.cloned());
    }
    // rows without elements cannot be appended
    if found.iter().any(|shape| shape.contains(&0)) {
        return Ok(None);
    }
    Ok(match found.len() {
        0 => None,
        1 if !undefined => found.pop().map(CellShapes::One),
        _ => Some(CellShapes::Several(found)),
    })
}

/// The bytes that strings of a column get.
pub(super) fn string_bytes(cells: &dyn Cells, declared: u32, rows: u64) -> Result<u32> {
    if declared > 0 {
        return Ok(declared);
    }
    let (mut longest, mut strings) = (0, Values::new(DataType::String));
    for row in 0..rows {
        if cells.cell_shape(row)?.is_some() {
            cells.read_cell(row, None, &mut strings)?;
        }
        if let Values::String(found) = &mut strings {
            longest = found.drain(..).map(|string| string.len()).fold(longest, usize::max);
        }
    }
    Ok((2 * longest).max(STRING_BYTES).next_multiple_of(8) as u32)
}
