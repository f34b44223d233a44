//! Reads cells of a casacore table with the shapes and string lengths that a live file (HDF5 that
//! is read while it is written) has for them, and counts those that do not fit.

use std::ops::Range;

use crate::error::Result;
use crate::live::{Block, CellShapes};
use crate::native::can_hold;
use crate::table::ColumnCells;
use crate::value::{DataType, Shape, Values};

/// Least bytes of a string without a declared maximum; or else twice the longest existing one.
const STRING_BYTES: usize = 64;

/// A column with more cell shapes is left out.
const MAX_SHAPES: usize = 64;

/// Shapes and string lengths are those of the column in the live file; others are replaced.
#[derive(Debug)]
pub(super) struct CellBlock {
    values: Values,
    /// `None` for a cell that is undefined or of another shape; without the vector, all have one.
    shapes: Option<Vec<Option<usize>>>,
    /// Cells and strings that do not fit, stored as zeros, empty strings or undefined cells.
    pub(super) misfits: u64,
}

impl CellBlock {
    pub(super) fn read(
        cells: &dyn ColumnCells,
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

    fn read_dense(&mut self, cells: &dyn ColumnCells, shape: &Shape, rows: Range<u64>) -> Result<()> {
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

    fn read_shapes(&mut self, cells: &dyn ColumnCells, known: &[Shape], rows: Range<u64>) -> Result<()> {
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

    /// Empties and counts strings that are longer, not UTF-8, or contain NUL.
    fn fit_strings(&mut self, string_bytes: usize) {
        let Values::String(strings) = &mut self.values else { return };
        for string in strings {
            if string.len() > string_bytes || !can_hold(string) {
                string.clear();
                self.misfits += 1;
            }
        }
    }

    pub(super) fn block(&self) -> Result<Block<'_>> {
        let block = Block::try_from(&self.values)?;
        Ok(match &self.shapes {
            Some(shapes) => block.with_shapes(shapes),
            None => block,
        })
    }

    pub(super) fn bytes(&self) -> u64 {
        match (&self.values, self.values.le_bytes()) {
            (Values::String(strings), _) => strings.iter().map(|string| string.len() as u64 + 4).sum(),
            (_, bytes) => bytes.map_or(0, |bytes| bytes.len() as u64),
        }
    }

    /// Bit by bit.
    pub(super) fn same(&self, other: &CellBlock) -> bool {
        self.values.same_bits(&other.values) && self.shapes == other.shapes
    }
}

/// `fixed`, or those of the first `rows` cells; `None` if unknown, empty or over [`MAX_SHAPES`].
pub(super) fn shapes(cells: &dyn ColumnCells, fixed: Option<&Shape>, rows: u64) -> Result<Option<CellShapes>> {
    if let Some(shape) = cells.same_shape(&(0..rows)).filter(|_| rows > 0) {
        return Ok(appendable(&shape).then_some(CellShapes::One(shape)));
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
    if !found.iter().all(appendable) {
        return Ok(None);
    }
    Ok(match found.len() {
        0 => None,
        1 if !undefined => found.pop().map(CellShapes::One),
        _ => Some(CellShapes::Several(found)),
    })
}

/// Not without elements.
fn appendable(shape: &Shape) -> bool {
    !shape.contains(&0)
}

/// `declared` if not 0; else by [`STRING_BYTES`] for the first `rows` rows, in multiples of 8.
pub(super) fn string_bytes(cells: &dyn ColumnCells, declared: u32, rows: u64) -> Result<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{BString, Region};

    struct Floats(Vec<Option<(Shape, Vec<f32>)>>);

    impl ColumnCells for Floats {
        fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
            Ok(self.0[row as usize].as_ref().map(|(shape, _)| shape.clone()))
        }

        fn read_cell(&self, row: u64, _: Option<&Region>, out: &mut Values) -> Result<()> {
            let (Values::Float(out), Some((_, numbers))) = (out, &self.0[row as usize]) else { panic!() };
            out.extend(numbers);
            Ok(())
        }
    }

    struct Fixed(Shape);

    impl ColumnCells for Fixed {
        fn cell_shape(&self, _: u64) -> Result<Option<Shape>> {
            Ok(Some(self.0.clone()))
        }

        fn same_shape(&self, _: &Range<u64>) -> Option<Shape> {
            Some(self.0.clone())
        }

        fn read_cell(&self, _: u64, _: Option<&Region>, _: &mut Values) -> Result<()> {
            panic!()
        }
    }

    struct Strings(Vec<&'static [u8]>);

    impl ColumnCells for Strings {
        fn cell_shape(&self, _: u64) -> Result<Option<Shape>> {
            Ok(Some(Shape::scalar()))
        }

        fn read_cell(&self, row: u64, _: Option<&Region>, out: &mut Values) -> Result<()> {
            let Values::String(out) = out else { panic!() };
            out.push(BString::from(self.0[row as usize]));
            Ok(())
        }
    }

    fn floats(shapes: &[Option<&[u64]>]) -> Floats {
        let cell = |(row, shape): (usize, &Option<&[u64]>)| {
            let shape: Shape = (*shape)?.iter().copied().collect();
            let count = shape.elements().unwrap();
            Some((shape, vec![row as f32; count as usize]))
        };
        Floats(shapes.iter().enumerate().map(cell).collect())
    }

    #[test]
    fn cells_of_other_shapes_are_zero_and_counted() {
        let cells = floats(&[Some(&[2]), None, Some(&[3]), Some(&[2])]);
        let form = CellShapes::One(Shape::from([2]));
        let block = CellBlock::read(&cells, DataType::Float, &form, 0, 0..4).unwrap();
        assert_eq!(block.values, Values::Float(vec![0., 0., 0., 0., 0., 0., 3., 3.]));
        assert_eq!((block.misfits, block.bytes()), (2, 32));
    }

    #[test]
    fn undefined_cells_fit_columns_of_several_shapes() {
        let cells = floats(&[Some(&[2]), None, Some(&[4]), Some(&[3])]);
        let form = CellShapes::Several(vec![Shape::from([3]), Shape::from([2])]);
        let block = CellBlock::read(&cells, DataType::Float, &form, 0, 0..4).unwrap();
        assert_eq!(block.values, Values::Float(vec![0., 0., 3., 3., 3.]));
        assert_eq!(block.shapes, Some(vec![Some(1), None, None, Some(0)]));
        assert_eq!(block.misfits, 1);
        let other = CellBlock::read(&cells, DataType::Float, &form, 0, 0..4).unwrap();
        assert!(block.same(&other));
        assert!(!block.same(&CellBlock { shapes: Some(vec![Some(1), None, None, None]), ..other }));
    }

    #[test]
    fn strings_that_do_not_fit_are_empty() {
        let cells = Strings(vec![b"abcd", b"abcde", b"a\0", b"\xff", b""]);
        let block = CellBlock::read(&cells, DataType::String, &CellShapes::One(Shape::scalar()), 4, 0..5).unwrap();
        assert_eq!(block.values, Values::String(["abcd", "", "", "", ""].map(BString::from).into()));
        assert_eq!(block.misfits, 3);
        // the longest has 5
        assert_eq!(string_bytes(&cells, 0, 5).unwrap(), 64);
        assert_eq!(string_bytes(&cells, 7, 5).unwrap(), 7);
        assert_eq!(string_bytes(&Strings(vec![&[b'x'; 33]]), 0, 1).unwrap(), 72);
    }

    #[test]
    fn shapes_are_those_that_are_there() {
        let of =
            |list: &[Option<&[u64]>], fixed: Option<&Shape>| shapes(&floats(list), fixed, list.len() as u64).unwrap();
        let (two, three) = (Shape::from([2]), Shape::from([3]));
        assert_eq!(of(&[], None), None);
        assert_eq!(of(&[], Some(&two)), Some(CellShapes::One(two.clone())));
        assert_eq!(of(&[None], None), None);
        assert_eq!(of(&[Some(&[2]), Some(&[2])], None), Some(CellShapes::One(two.clone())));
        assert_eq!(of(&[Some(&[2]), None], None), Some(CellShapes::Several(vec![two.clone()])));
        assert_eq!(of(&[Some(&[2]), Some(&[3])], None), Some(CellShapes::Several(vec![two, three])));
        assert_eq!(of(&[Some(&[0])], None), None, "rows without elements cannot be appended");
        let fixed = |shape: &[u64]| shapes(&Fixed(shape.iter().copied().collect()), None, 3).unwrap();
        assert_eq!((fixed(&[2, 0]), fixed(&[2])), (None, Some(CellShapes::One(Shape::from([2])))));
        let many: Vec<[u64; 1]> = (1..66).map(|length| [length]).collect();
        let many: Vec<Option<&[u64]>> = many.iter().map(|shape| Some(&shape[..])).collect();
        assert_eq!(of(&many, None), None);
        assert!(of(&many[..64], None).is_some());
    }
}
