//! Reads the cells of record columns: data managers store each as bytes, which are a `TableRecord`
//! in an AipsIO stream.

use std::ops::Range;

use crate::aipsio::Decoder;
use crate::error::{Context, Result, ResultExt};
use crate::stman::ColumnCells;
use crate::value::{ByteOrder, DataType, Region, Shape, Values};

/// Decoded from the stored bytes. A never-written cell is an empty record.
pub struct RecordCells<'a>(pub &'a dyn ColumnCells);

impl ColumnCells for RecordCells<'_> {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(Some(Shape::scalar()))
    }

    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        Some(Shape::scalar())
    }

    fn read_cell(&self, row: u64, _region: Option<&Region>, out: &mut Values) -> Result<()> {
        let mut bytes = Values::new(DataType::UChar);
        if self.0.cell_shape(row)?.is_some() {
            self.0.read_cell(row, None, &mut bytes)?;
        }
        let (Values::UChar(bytes), Values::Record(out)) = (&bytes, out) else {
            unreachable!("record cells are bytes and come out as records")
        };
        if bytes.is_empty() {
            out.push(Default::default());
            return Ok(());
        }
        let mut d = Decoder::new(bytes, 0, ByteOrder::Big, "record cell")?;
        out.push(d.root_record().with_context(|| Context::Row(row))?);
        Ok(())
    }
}
