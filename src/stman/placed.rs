//! Errors of managers that are written: all of them name the file and the type of the manager.

use std::ops::Range;

use super::{ColumnSpec, CreateArgs, ManagerMut};
use crate::error::{Context, Result, ResultExt};
use crate::grid::ChunkWrite;
use crate::value::{Region, Shape, Values};

/// A manager, and the place where its errors are.
#[derive(Debug)]
pub(super) struct Placed<M> {
    place: Context,
    manager: M,
}

impl<M: ManagerMut + 'static> Placed<M> {
    /// The manager of the type `type_name` that `new` makes.
    pub(super) fn create(
        args: &CreateArgs<'_>,
        type_name: &str,
        new: impl FnOnce() -> Result<M>,
    ) -> Result<Box<dyn ManagerMut>> {
        let place = Context::managed(args.file_name(""), type_name);
        let manager = new().context(&place)?;
        Ok(Box::new(Placed { place, manager }))
    }
}

impl<M: ManagerMut> ManagerMut for Placed<M> {
    fn add_rows(&mut self, count: u64) -> Result<()> {
        self.manager.add_rows(count).context(&self.place)
    }

    fn can_remove_rows(&self) -> bool {
        self.manager.can_remove_rows()
    }

    fn remove_row(&mut self, row: u64) -> Result<()> {
        self.manager.remove_row(row).context(&self.place)
    }

    fn add_column(&mut self, spec: &ColumnSpec) -> Result<()> {
        self.manager.add_column(spec).context(&self.place)
    }

    fn remove_column(&mut self, column: usize) -> Result<()> {
        self.manager.remove_column(column).context(&self.place)
    }

    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>> {
        self.manager.cell_shape(column, row).context(&self.place)
    }

    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()> {
        self.manager.set_shape(column, row, shape).context(&self.place)
    }

    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()> {
        self.manager.write_cell(column, row, region, values).context(&self.place)
    }

    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()> {
        self.manager.write_rows(column, rows, values).context(&self.place)
    }

    fn cubes(&mut self, column: usize) -> Result<Vec<Box<dyn ChunkWrite + '_>>> {
        self.manager.cubes(column).context(&self.place)
    }

    fn flush(&mut self) -> Result<Vec<u8>> {
        self.manager.flush().context(&self.place)
    }
}
