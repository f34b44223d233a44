//! Cells for tests whose reads contradict what they say of themselves.

use super::ColumnCells;
use crate::error::Result;
use crate::value::{Region, Shape, Values};

/// Cells of two elements of which every read yields these elements; no file has such cells.
pub struct Contradictory(pub Values);

impl ColumnCells for Contradictory {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(Some(Shape::from([2])))
    }

    fn read_cell(&self, _row: u64, _region: Option<&Region>, out: &mut Values) -> Result<()> {
        *out = self.0.clone();
        Ok(())
    }
}
