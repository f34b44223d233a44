//! Virtual column engines of tables that are written. An engine writes no file and nothing in
//! `table.dat`; other managers store the columns from which it computes values.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::stman::{CreateArgs, ManagerMut};
use crate::value::{Region, Shape, Values};

/// Parameters are in the keywords of the columns.
#[derive(Debug)]
struct EngineMut;

pub(super) fn create(_args: &CreateArgs<'_>) -> Result<Box<dyn ManagerMut>> {
    Ok(Box::new(EngineMut))
}

fn computed() -> Error {
    Error::usage("an engine computes the column: what it computes it from can be written")
}

impl ManagerMut for EngineMut {
    fn add_rows(&mut self, _count: u64) -> Result<()> {
        Ok(())
    }

    fn can_remove_rows(&self) -> bool {
        true
    }

    fn remove_row(&mut self, _row: u64) -> Result<()> {
        Ok(())
    }

    fn remove_column(&mut self, _column: usize) -> Result<()> {
        Ok(())
    }

    fn cell_shape(&self, _column: usize, _row: u64) -> Result<Option<Shape>> {
        Err(computed())
    }

    fn set_shape(&mut self, _column: usize, _row: u64, _shape: &Shape) -> Result<()> {
        Err(computed())
    }

    fn write_cell(&mut self, _column: usize, _row: u64, _region: Option<&Region>, _values: &Values) -> Result<()> {
        Err(computed())
    }

    fn write_rows(&mut self, _column: usize, _rows: Range<u64>, _values: &Values) -> Result<()> {
        Err(computed())
    }

    fn flush(&mut self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
}
