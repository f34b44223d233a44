//! A storage manager that is being written, wrapped so that its errors name its file and its type.

use std::ops::Range;

use super::{ColumnSpec, CreateArgs, LinkedCube, ManagerMut, TilePlace};
use crate::error::{Context, Result, ResultExt};
use crate::grid::ChunkWrite;
use crate::value::{Region, Shape, Values};

/// Adds `context`, file and type of the manager, to errors. Forwards every method, also those with
/// a default: a manager's own version would be lost otherwise.
#[derive(Debug)]
pub(super) struct WithContext<M> {
    context: Context,
    manager: M,
}

impl<M: ManagerMut + 'static> WithContext<M> {
    pub(super) fn create(
        args: &CreateArgs<'_>,
        type_name: &str,
        new: impl FnOnce() -> Result<M>,
    ) -> Result<Box<dyn ManagerMut>> {
        let context = Context::managed(args.file_name(""), type_name);
        let manager = new().context(&context)?;
        Ok(Box::new(WithContext { context, manager }))
    }
}

impl<M: ManagerMut> ManagerMut for WithContext<M> {
    fn add_rows(&mut self, count: u64) -> Result<()> {
        self.manager.add_rows(count).context(&self.context)
    }

    fn can_remove_rows(&self) -> bool {
        self.manager.can_remove_rows()
    }

    fn remove_row(&mut self, row: u64) -> Result<()> {
        self.manager.remove_row(row).context(&self.context)
    }

    fn add_column(&mut self, spec: &ColumnSpec) -> Result<()> {
        self.manager.add_column(spec).context(&self.context)
    }

    fn remove_column(&mut self, column: usize) -> Result<()> {
        self.manager.remove_column(column).context(&self.context)
    }

    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>> {
        self.manager.cell_shape(column, row).context(&self.context)
    }

    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()> {
        self.manager.set_shape(column, row, shape).context(&self.context)
    }

    fn set_shapes(&mut self, column: usize, rows: Range<u64>, shape: &Shape) -> Result<()> {
        self.manager.set_shapes(column, rows, shape).context(&self.context)
    }

    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()> {
        self.manager.write_cell(column, row, region, values).context(&self.context)
    }

    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()> {
        self.manager.write_rows(column, rows, values).context(&self.context)
    }

    fn cubes(&mut self, column: usize) -> Result<Vec<Box<dyn ChunkWrite + '_>>> {
        self.manager.cubes(column).context(&self.context)
    }

    fn tile_places(&self, column: usize) -> Result<Vec<TilePlace>> {
        self.manager.tile_places(column).context(&self.context)
    }

    fn link(&mut self, cubes: &[LinkedCube]) -> Result<Option<Vec<String>>> {
        self.manager.link(cubes).context(&self.context)
    }

    fn flush(&mut self) -> Result<Vec<u8>> {
        self.manager.flush().context(&self.context)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::error::{Error, ErrorKind};
    use crate::stman::{Storage, samples};
    use crate::value::DataType;

    /// Records the methods that are called, each of which fails if it can.
    #[derive(Debug, Default)]
    struct Recorder(RefCell<Vec<&'static str>>);

    impl Recorder {
        fn call<T>(&self, method: &'static str) -> Result<T> {
            self.0.borrow_mut().push(method);
            Err(Error::new(ErrorKind::NoSpace, method))
        }
    }

    impl ManagerMut for Recorder {
        fn add_rows(&mut self, _: u64) -> Result<()> {
            self.call("add_rows")
        }

        fn can_remove_rows(&self) -> bool {
            self.call::<()>("can_remove_rows").is_err()
        }

        fn remove_row(&mut self, _: u64) -> Result<()> {
            self.call("remove_row")
        }

        fn add_column(&mut self, _: &ColumnSpec) -> Result<()> {
            self.call("add_column")
        }

        fn remove_column(&mut self, _: usize) -> Result<()> {
            self.call("remove_column")
        }

        fn cell_shape(&self, _: usize, _: u64) -> Result<Option<Shape>> {
            self.call("cell_shape")
        }

        fn set_shape(&mut self, _: usize, _: u64, _: &Shape) -> Result<()> {
            self.call("set_shape")
        }

        fn set_shapes(&mut self, _: usize, _: Range<u64>, _: &Shape) -> Result<()> {
            self.call("set_shapes")
        }

        fn write_cell(&mut self, _: usize, _: u64, _: Option<&Region>, _: &Values) -> Result<()> {
            self.call("write_cell")
        }

        fn write_rows(&mut self, _: usize, _: Range<u64>, _: &Values) -> Result<()> {
            self.call("write_rows")
        }

        fn cubes(&mut self, _: usize) -> Result<Vec<Box<dyn ChunkWrite + '_>>> {
            self.call("cubes")
        }

        fn tile_places(&self, _: usize) -> Result<Vec<TilePlace>> {
            self.call("tile_places")
        }

        fn link(&mut self, _: &[LinkedCube]) -> Result<Option<Vec<String>>> {
            self.call("link")
        }

        fn flush(&mut self) -> Result<Vec<u8>> {
            self.call("flush")
        }
    }

    #[test]
    fn every_method_reaches_the_manager_and_its_error_has_the_context() {
        let mut outer = WithContext { context: "table.f3 (Sample)".into(), manager: Recorder::default() };
        let (shape, values) = (Shape::from([2]), Values::Int(vec![1, 2]));
        let spec = samples::column("A", DataType::Int, Storage::Scalar, None);
        assert!(outer.can_remove_rows());
        let errors = [
            outer.add_rows(1).unwrap_err(),
            outer.remove_row(0).unwrap_err(),
            outer.add_column(&spec).unwrap_err(),
            outer.remove_column(0).unwrap_err(),
            outer.cell_shape(0, 0).unwrap_err(),
            outer.set_shape(0, 0, &shape).unwrap_err(),
            outer.set_shapes(0, 0..9, &shape).unwrap_err(),
            outer.write_cell(0, 0, None, &values).unwrap_err(),
            outer.write_rows(0, 0..1, &values).unwrap_err(),
            outer.cubes(0).err().unwrap(),
            outer.tile_places(0).unwrap_err(),
            outer.link(&[]).unwrap_err(),
            outer.flush().unwrap_err(),
        ];
        let called = outer.manager.0.into_inner();
        let expected = [
            "can_remove_rows",
            "add_rows",
            "remove_row",
            "add_column",
            "remove_column",
            "cell_shape",
            "set_shape",
            "set_shapes",
            "write_cell",
            "write_rows",
            "cubes",
            "tile_places",
            "link",
            "flush",
        ];
        assert_eq!(called, expected);
        for (error, method) in errors.iter().zip(&expected[1..]) {
            assert_eq!(error.kind(), ErrorKind::NoSpace);
            assert_eq!(error.to_string(), format!("table.f3 (Sample): {method}"));
        }
    }
}
