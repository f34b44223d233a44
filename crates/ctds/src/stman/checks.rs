//! Checks that values to be written fit their column, with the same error messages for every
//! storage manager.

use std::ops::Range;

use super::ColumnSpec;
use crate::error::{Error, Result, ResultExt};
use crate::value::{Region, Shape, Values};

impl ColumnSpec {
    pub(super) fn misfit(&self, row: u64, message: impl Into<String>) -> Error {
        Error::usage(message).context(format!("column {}, row {row}", self.name))
    }

    pub(super) fn check_write(&self, rows: &Range<u64>, table_rows: u64, values: &Values) -> Result<()> {
        self.check_rows(rows, table_rows)?;
        if values.data_type() != self.data_type {
            let message = format!("the values have type {}, expected {}", values.data_type(), self.data_type);
            return Err(self.misfit(rows.start, message));
        }
        Ok(())
    }

    /// Returns `region` of a cell if `values` fit; `None` is an undefined cell, an error.
    pub(super) fn check_part(
        &self,
        row: u64,
        table_rows: u64,
        shape: Option<Shape>,
        region: &Region,
        values: &Values,
    ) -> Result<Shape> {
        self.check_write(&(row..row.saturating_add(1)), table_rows, values)?;
        let shape = shape.ok_or_else(|| self.without_shape(row))?;
        region.check(&shape).with_context(|| format!("column {}, row {row}", self.name))?;
        self.check_count(row, 1, &region.shape, values.len())?;
        Ok(shape)
    }

    pub(super) fn check_rows(&self, rows: &Range<u64>, table_rows: u64) -> Result<()> {
        if rows.start <= rows.end && rows.end <= table_rows {
            return Ok(());
        }
        Err(self.misfit(rows.end.saturating_sub(1), format!("the table has {table_rows} rows")))
    }

    pub(super) fn check_shape(&self, row: u64, shape: &Shape) -> Result<()> {
        match &self.shape {
            Some(fixed) if fixed != shape => {
                Err(self.misfit(row, format!("shape {shape} for a column whose cells have shape {fixed}")))
            }
            None if self.ndim > 0 && shape.len() as i32 != self.ndim => {
                Err(self.misfit(row, format!("shape {shape} for a column whose cells have {} axes", self.ndim)))
            }
            _ => Ok(()),
        }
    }

    /// `elements` is the total of `cells` cells of `shape`; the error names the first, `row`.
    pub(super) fn check_count(&self, row: u64, cells: u64, shape: &Shape, elements: usize) -> Result<()> {
        if shape.elements()?.checked_mul(cells) == Some(elements as u64) {
            return Ok(());
        }
        Err(self.misfit(row, format!("{elements} elements for {cells} cells of shape {shape}")))
    }

    /// A write has only `given` elements, fewer than the cells up to the one in `row` have.
    pub(super) fn too_few(&self, row: u64, given: usize) -> Error {
        self.misfit(row, format!("{given} elements, fewer than the cells up to this one have"))
    }

    pub(super) fn check_all_used(&self, rows: &Range<u64>, used: usize, given: usize) -> Result<()> {
        if used == given {
            return Ok(());
        }
        let cells = rows.end - rows.start;
        Err(self.misfit(rows.start, format!("{given} elements for {cells} cells that have {used}")))
    }

    pub(super) fn without_shape(&self, row: u64) -> Error {
        self.misfit(row, "the cell has no shape yet")
    }
}

pub(super) fn check_removal(row: u64, table_rows: u64) -> Result<()> {
    if row < table_rows {
        return Ok(());
    }
    Err(Error::usage(format!("row {row} is to be removed, the table has {table_rows} rows")))
}

/// Rows after `count` more; `Limit` if 63 bits do not count them.
pub(super) fn more_rows(table_rows: u64, count: u64) -> Result<u64> {
    let rows = table_rows.checked_add(count).filter(|&rows| rows <= i64::MAX as u64);
    rows.ok_or_else(|| Error::limit("the table would have more than 2^63 - 1 rows"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Storage, samples};
    use super::*;
    use crate::container::Memory;
    use crate::error::{ErrorKind, Fails};
    use crate::stman;
    use crate::value::{ByteOrder, DataType, Record};

    #[test]
    fn column_and_row_are_named() {
        let spec = samples::column("DATA", DataType::Int, Storage::Direct, Some(&[2, 3]));
        let text = |result: Result<()>| result.unwrap_err().to_string();
        assert_eq!(
            text(spec.check_write(&(3..5), 9, &Values::new(DataType::Short))),
            "column DATA, row 3: the values have type short, expected int"
        );
        assert_eq!(text(spec.check_rows(&(3..5), 4)), "column DATA, row 4: the table has 4 rows");
        assert_eq!(
            text(spec.check_shape(7, &Shape::from([3, 2]))),
            "column DATA, row 7: shape [3, 2] for a column whose cells have shape [2, 3]"
        );
        assert_eq!(
            text(spec.check_count(7, 2, &Shape::from([2, 3]), 11)),
            "column DATA, row 7: 11 elements for 2 cells of shape [2, 3]"
        );
        assert!(spec.check_write(&(3..5), 5, &Values::new(DataType::Int)).is_ok());
        assert!(spec.check_count(7, 2, &Shape::from([2, 3]), 12).is_ok());
        let mut free = samples::column("V", DataType::Int, Storage::Indirect, None);
        assert!(free.check_shape(0, &Shape::from([3, 2])).is_ok());
        free.ndim = 1;
        assert_eq!(
            text(free.check_shape(0, &Shape::from([3, 2]))),
            "column V, row 0: shape [3, 2] for a column whose cells have 1 axes"
        );
    }

    /// The manager has 2 rows, and the first cell of V shape [2].
    #[test]
    fn writes_that_do_not_fit() {
        for (name, file) in
            [("StandardStMan", "table.f0"), ("IncrementalStMan", "table.f0"), ("StManAipsIO", "table.f0")]
        {
            let columns = [
                samples::column("I", DataType::Int, Storage::Scalar, None),
                samples::column("V", DataType::Int, Storage::Indirect, None),
            ];
            let (files, parameters) = (Arc::new(Memory::default()), Record::default());
            let args = samples::create_args(&files, ByteOrder::Little, &columns, &parameters);
            let mut manager = stman::create(name.into(), &args).unwrap();
            manager.add_rows(2).unwrap();
            manager.set_shape(1, 0, &Shape::from([2])).unwrap();
            let words = |words: &str| format!("{file} ({name}): {words}");
            manager.write_rows(1, 0..1, &Values::Int(vec![1])).fails(
                ErrorKind::Usage,
                &words("column V, row 0: 1 elements, fewer than the cells up to this one have"),
            );
            manager
                .write_rows(1, 0..1, &Values::Int(vec![1; 3]))
                .fails(ErrorKind::Usage, &words("column V, row 0: 3 elements for 1 cells that have 2"));
            manager
                .write_rows(1, 0..2, &Values::Int(vec![1; 4]))
                .fails(ErrorKind::Usage, &words("column V, row 1: the cell has no shape yet"));
            manager.remove_row(2).fails(ErrorKind::Usage, &words("row 2 is to be removed, the table has 2 rows"));
        }
    }

    #[test]
    fn managers_that_are_only_read() {
        let (files, parameters) = (Arc::new(Memory::default()), Record::default());
        let args = samples::create_args(&files, ByteOrder::Little, &[], &parameters);
        stman::create("UvwStMan".into(), &args).fails(ErrorKind::Unsupported, "data manager UvwStMan is not written");
    }
}
