//! The content of a casacore table.

use std::ops::Range;

use super::content::{Content, TableContent};
use super::origin::Origin;
use crate::error::{Error, Result};
use crate::native::View;
use crate::table::{Access, ColumnCells, ColumnInfo, EachExtent, RecordCells, Table, Tiling};
use crate::value::{ByteOrder, DataType, Region, Shape, Values};

impl TableContent for Table {
    fn inner(&self) -> Option<&Content> {
        None
    }

    fn origin(&self) -> Origin<'_> {
        Origin::Casacore(self)
    }

    fn rows(&self) -> u64 {
        Table::rows(self)
    }

    fn columns(&self) -> &[ColumnInfo] {
        Table::columns(self)
    }

    fn cells(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        Ok(decoded(self, index, Table::cells(self, index)?))
    }

    fn cells_in_part(&self, index: usize) -> Result<Box<dyn ColumnCells + '_>> {
        Ok(decoded(self, index, Table::cells_in_part(self, index)?))
    }

    fn view(&self) -> Option<View> {
        View::of(self)
    }

    fn root_rows(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        let reference = self.reference().ok_or_else(|| Error::usage("the table is not a reference table"))?;
        reference.row_numbers(rows)
    }

    fn forget(&self, index: usize) {
        if let Ok(cells) = Table::cells(self, index) {
            cells.forget();
        }
    }

    fn unreadable(&self, index: usize) -> Option<Error> {
        Table::cells(self, index).err()
    }
}

/// The cells of a table's column; those of type Record are decoded to records.
fn decoded<'a>(table: &Table, index: usize, cells: &'a dyn ColumnCells) -> Box<dyn ColumnCells + 'a> {
    match table.columns()[index].data_type() {
        DataType::Record => Box::new(RecordCells(cells)),
        _ => Box::new(Borrowed(cells)),
    }
}

/// Lets borrowed cells of a column be used where a `Box` of owned cells is expected.
struct Borrowed<'a>(&'a dyn ColumnCells);

impl ColumnCells for Borrowed<'_> {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.0.cell_shape(row)
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        self.0.read_cell(row, region, out)
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.0.read_rows(rows, out)
    }

    fn read_plain(&self, runs: &mut dyn Iterator<Item = Range<u64>>, out: &mut [u8]) -> Option<ByteOrder> {
        self.0.read_plain(runs, out)
    }

    fn access(&self) -> Access {
        self.0.access()
    }

    fn shapes(&self, rows: Range<u64>) -> Result<Vec<Option<Shape>>> {
        self.0.shapes(rows)
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        self.0.same_shape(rows)
    }

    fn tiling(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        self.0.tiling(max_cubes)
    }

    fn tiling_to_read(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        self.0.tiling_to_read(max_cubes)
    }

    fn forget(&self) {
        self.0.forget();
    }

    fn extents(&self, rows: u64, max_cubes: usize, each: &mut EachExtent<'_>) -> Result<()> {
        self.0.extents(rows, max_cubes, each)
    }
}
