//! Typed writing of the cells and keywords of a column.

use std::ops::Range;
use std::path::Path;

use bstr::ByteSlice;
use ndarray::ArrayD;

use super::ColumnInfo;
use crate::aipsio::Encoder;
use crate::error::{Context, Error, Result, ResultExt};
use crate::grid::ChunkWrite;
use crate::schema::ColumnKind;
use crate::stman::{LinkedCube, ManagerMut, TilePlace};
use crate::value::{ByteOrder, DataType, Element, Record, Region, Shape, Values};

/// A column of a table that is being written.
///
/// Arrays are `ndarray` arrays in numpy's axis order, slowest first, as those of
/// [`Column`](super::Column): an array of shape `(chan, corr)` becomes a casacore cell of shape
/// `[corr, chan]`.
///
/// ```
/// use ctds::{ColumnDesc, ManagerSpec, NewTable, Table, value::Region};
/// use ndarray::ArrayD;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("my.tab");
/// let mut table = NewTable::new().column(ColumnDesc::array::<f32>("WEIGHT")).create(&path)?;
/// table.add_rows(3)?;
/// let mut weight = table.column("WEIGHT")?;
/// weight.put_cell(0, &ArrayD::from_elem(vec![64, 4], 1f32))?;           // cell [4, 64]
/// weight.put_rows(1, &ArrayD::from_elem(vec![2, 4], 2f32))?;            // two cells [4]
/// let channel = Region::c_order(&[10, 0], &[1, 4]);                     // of cell [4, 64], as `array[[10, ..]]`
/// weight.put_part(0, &channel, &ArrayD::from_elem(vec![1, 4], 0f32))?;
/// table.close()?;
/// assert_eq!(Table::open(&path)?.column("WEIGHT")?.cell::<f32>(0)?[[10, 3]], 0.);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ColumnMut<'a> {
    path: &'a Path,
    info: &'a mut ColumnInfo,
    rows: u64,
    manager: &'a mut dyn ManagerMut,
    /// Index within the data manager.
    index: usize,
}

impl<'a> ColumnMut<'a> {
    pub(super) fn new(
        path: &'a Path,
        info: &'a mut ColumnInfo,
        rows: u64,
        manager: &'a mut dyn ManagerMut,
        index: usize,
    ) -> Self {
        ColumnMut { path, info, rows, manager, index }
    }

    /// Description, fixed shape and data manager of the column.
    pub fn info(&self) -> &ColumnInfo {
        self.info
    }

    /// Keywords of the column, to be changed; they are stored when the table is closed.
    pub fn keywords(&mut self) -> &mut Record {
        &mut self.info.desc.keywords
    }

    /// The shape of the cell in `row` (from 0), first axis fastest; `None` if the cell is
    /// undefined. The shape of a scalar has no axes.
    ///
    /// # Errors
    /// `Usage` if the row does not exist.
    pub fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.check_rows(&(row..row.saturating_add(1)))?;
        if self.info.desc.kind == ColumnKind::Scalar {
            return Ok(Some(Shape::scalar()));
        }
        self.manager.cell_shape(self.index, row).map_err(|error| self.error(error))
    }

    /// Writes scalars into the cells of consecutive rows from `first_row` (from 0) on, which must
    /// exist.
    ///
    /// # Errors
    /// `Usage` if the column holds arrays or another type, or if the rows exceed the table; `Io`,
    /// `NoSpace`.
    pub fn put_scalars<T: Element>(&mut self, first_row: u64, values: Vec<T>) -> Result<()> {
        let rows = first_row..first_row.saturating_add(values.len() as u64);
        self.put_values(rows, &Shape::scalar(), &T::values(values))
    }

    /// Writes one scalar into the cell in `row`, counted from 0.
    ///
    /// # Errors
    /// As [`put_scalars`](Self::put_scalars).
    pub fn put_scalar<T: Element>(&mut self, row: u64, value: T) -> Result<()> {
        self.put_scalars(row, vec![value])
    }

    /// Writes an array, slowest axis first, into the cell in `row` (from 0), which gets the shape
    /// of the array.
    ///
    /// # Errors
    /// As [`put_scalars`](Self::put_scalars); `Usage` if the column has another shape or number of
    /// axes.
    pub fn put_cell<T: Element>(&mut self, row: u64, array: &ArrayD<T>) -> Result<()> {
        let (shape, values) = flatten(array);
        self.put_values(row..row.saturating_add(1), &shape, &values)
    }

    /// Writes arrays of one shape into the cells of consecutive rows from `first_row` (from 0) on.
    /// The first axis of `array` is the row, then follow the axes of the cell, slowest first.
    ///
    /// # Errors
    /// As [`put_cell`](Self::put_cell).
    pub fn put_rows<T: Element>(&mut self, first_row: u64, array: &ArrayD<T>) -> Result<()> {
        let (shape, values) = flatten(array);
        let (cell, rows) =
            shape.split_last().ok_or_else(|| self.error(Error::usage("an array without axes has no rows")))?;
        self.put_values(first_row..first_row.saturating_add(rows), &cell, &values)
    }

    /// Writes `array` into the part `region` of the cell in `row` (from 0), whose shape must be set
    /// already. [`Region::c_order`] makes the region from numbers in the axis order of `array`,
    /// slowest first.
    ///
    /// # Errors
    /// As [`put_cell`](Self::put_cell); `NotFound` if the cell is undefined, `Usage` if the region
    /// leaves it.
    pub fn put_part<T: Element>(&mut self, row: u64, region: &Region, array: &ArrayD<T>) -> Result<()> {
        let (shape, values) = flatten(array);
        if shape != region.shape {
            let message = format!("the array has shape {shape}, expected {}, the shape of the region", region.shape);
            return Err(self.error(Error::usage(message)));
        }
        self.put_part_values(row, region, &values)
    }

    /// Sets the shape of the cell in `row` (from 0), first axis fastest; its old value is lost if
    /// it had another shape.
    ///
    /// # Errors
    /// As [`put_cell`](Self::put_cell).
    pub fn set_shape(&mut self, row: u64, shape: &Shape) -> Result<()> {
        self.set_shapes(row..row.saturating_add(1), shape)
    }

    /// Old values of another shape are lost.
    #[doc(hidden)]
    pub fn set_shapes(&mut self, rows: Range<u64>, shape: &Shape) -> Result<()> {
        self.check_rows(&rows)?;
        self.check_shape(shape)?;
        self.manager.set_shapes(self.index, rows, shape).map_err(|error| self.error(error))
    }

    /// Writes cells of one shape, first axis fastest, into `rows` (half-open, from 0); the element
    /// type is that of `values`, known only when the program runs.
    ///
    /// # Errors
    /// As [`put_cell`](Self::put_cell); `Usage` if there are more or fewer elements.
    pub fn put_values(&mut self, rows: Range<u64>, shape: &Shape, values: &Values) -> Result<()> {
        self.check_rows(&rows)?;
        self.check_shape(shape)?;
        self.check_values(values)?;
        let count = rows.end.saturating_sub(rows.start);
        if shape.elements()?.checked_mul(count) != Some(values.len() as u64) {
            let message = format!("{} elements do not fill {count} cells of shape {shape}", values.len());
            return Err(self.error(Error::usage(message)));
        }
        self.write(rows, shape, values).map_err(|error| self.error(error))
    }

    /// Writes the part `region` (fastest axis first) of the cell in `row` (from 0), which must have
    /// its shape already. The element type is that of `values`, known only when the program runs.
    ///
    /// # Errors
    /// As [`put_part`](Self::put_part).
    pub fn put_part_values(&mut self, row: u64, region: &Region, values: &Values) -> Result<()> {
        let shape = self.cell_shape(row)?;
        let shape = shape.ok_or_else(|| self.error(crate::stman::undefined(row)))?;
        region.check(&shape).map_err(|error| self.error(error))?;
        self.check_values(values)?;
        if self.info.desc.kind == ColumnKind::Scalar || region.shape.elements()? != values.len() as u64 {
            let message = format!("{} elements do not fill a region of shape {}", values.len(), region.shape);
            return Err(self.error(Error::usage(message)));
        }
        let written = self.manager.write_cell(self.index, row, Some(region), values);
        written.map_err(|error| self.error(error))
    }

    #[doc(hidden)]
    pub fn is_tiled(&self) -> bool {
        crate::stman::is_tiled(self.info.manager.as_bstr())
    }

    #[doc(hidden)]
    pub fn cubes(&mut self) -> Result<Vec<Box<dyn ChunkWrite + '_>>> {
        let path = self.path;
        let column = Context::column(&self.info.desc.name);
        self.manager.cubes(self.index).context(column).context(Context::path(path))
    }

    /// Tiles of each of [`cubes`](Self::cubes); empty if the column is not tiled.
    #[doc(hidden)]
    pub fn tile_places(&self) -> Result<Vec<TilePlace>> {
        let column = Context::column(&self.info.desc.name);
        self.manager.tile_places(self.index).context(column).context(Context::path(self.path))
    }

    /// Makes the column use tiles at the offsets in `cubes` of an HDF5 file. Returns the table's
    /// files, in the order of `cubes`, that must become links to it; `None`, with nothing changed,
    /// if the data manager cannot.
    #[doc(hidden)]
    pub fn link(&mut self, cubes: &[LinkedCube]) -> Result<Option<Vec<String>>> {
        let path = self.path;
        let column = Context::column(&self.info.desc.name);
        self.manager.link(cubes).context(column).context(Context::path(path))
    }

    /// The hypercubes that a tiled column has so far, for writing their tiles; empty if the column
    /// is not tiled.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn hypercubes(&mut self) -> Result<Vec<Hypercube<'_>>> {
        Ok(self.cubes()?.into_iter().map(Hypercube).collect())
    }

    fn write(&mut self, rows: Range<u64>, shape: &Shape, values: &Values) -> Result<()> {
        if let Values::Record(records) = values {
            return rows.zip(records).try_for_each(|(row, record)| self.write_record(row, record));
        }
        if self.info.desc.kind == ColumnKind::Array {
            self.manager.set_shapes(self.index, rows.clone(), shape)?;
        }
        self.manager.write_rows(self.index, rows, values)
    }

    /// A record is stored as an array of bytes, an AipsIO stream. formats/stman.md 0.4.
    fn write_record(&mut self, row: u64, record: &Record) -> Result<()> {
        let mut encoder = Encoder::new(ByteOrder::Big);
        encoder.root_record(record)?;
        let bytes = encoder.into_bytes();
        self.manager.set_shapes(self.index, row..row + 1, &Shape::from([bytes.len() as u64]))?;
        self.manager.write_cell(self.index, row, None, &Values::UChar(bytes))
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<()> {
        if rows.end > self.rows {
            let message = format!("rows {}..{} exceed the table, which has {} rows", rows.start, rows.end, self.rows);
            return Err(self.error(Error::usage(message)));
        }
        Ok(())
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        let wrong = |message: String| Err(self.error(Error::usage(message)));
        match (&self.info.shape, self.info.desc.kind, self.info.desc.ndim) {
            (_, ColumnKind::Scalar, _) if shape.is_empty() => Ok(()),
            (_, ColumnKind::Scalar, _) => wrong(format!("a cell of shape {shape}, but the cells are scalars")),
            (_, ColumnKind::Array, _) if shape.is_empty() => wrong("a scalar, but the cells are arrays".into()),
            (Some(fixed), ..) if fixed != shape => wrong(format!("a cell of shape {shape}, but all have {fixed}")),
            (None, _, axes) if axes > 0 && shape.len() as i32 != axes => {
                wrong(format!("a cell of shape {shape}, but all have {axes} axes"))
            }
            _ => Ok(()),
        }
    }

    fn check_values(&self, values: &Values) -> Result<()> {
        let (found, expected) = (values.data_type(), self.info.data_type());
        if found != expected {
            return Err(self.error(Error::usage(format!("the elements are of type {expected}, not {found}"))));
        }
        let longest = self.info.desc.max_length as usize;
        if let Values::String(strings) = values
            && longest > 0
            && let Some(long) = strings.iter().find(|string| string.len() > longest)
        {
            let message = format!("a string of {} bytes; the longest of this column has {longest}", long.len());
            return Err(self.error(Error::usage(message)));
        }
        Ok(())
    }

    fn error(&self, error: Error) -> Error {
        error.context(Context::column(self.info.desc.name.as_bstr())).context(Context::path(self.path))
    }
}

/// The first axis of a shape is the fastest.
fn flatten<T: Element>(array: &ArrayD<T>) -> (Shape, Values) {
    let extents: Vec<u64> = array.shape().iter().map(|&extent| extent as u64).collect();
    (Shape::from_reversed(&extents), T::values(array.iter().cloned().collect()))
}

/// A hypercube of a tiled column that is being written, tile by tile. Shapes list the fastest axis
/// first; the last axis is the row, except in a TiledCellStMan, which has a hypercube for each row.
pub struct Hypercube<'a>(Box<dyn ChunkWrite + 'a>);

impl Hypercube<'_> {
    /// Shape of the hypercube that is being written, fastest axis first; the last axis is the row,
    /// except in a TiledCellStMan.
    pub fn shape(&self) -> &Shape {
        &self.0.grid().shape
    }

    /// Extents of a tile of the hypercube in elements, fastest axis first, in the order of the axes
    /// of the hypercube. Tiles at its far edges are padded to these extents.
    pub fn tile_shape(&self) -> &Shape {
        &self.0.grid().chunk
    }

    /// The type of the elements of the hypercube.
    pub fn data_type(&self) -> DataType {
        self.0.data_type()
    }

    /// Writes one tile of the hypercube; `index` counts tiles on each axis, from 0, fastest axis
    /// first, and `values` has all elements of a tile, with padding at the far edges.
    ///
    /// # Errors
    /// `Usage` if the tile does not exist, or if type or number of the elements differ; `Io`,
    /// `NoSpace`.
    pub fn put_tile(&self, index: &[u64], values: &Values) -> Result<()> {
        let counts = self.0.grid().counts();
        if index.len() != counts.len() || index.iter().zip(counts.iter()).any(|(index, count)| index >= count) {
            return Err(Error::usage(format!("tile {index:?} does not exist, the hypercube has {counts} tiles")));
        }
        let wanted = self.tile_shape().elements()?;
        if values.data_type() != self.data_type() || values.len() as u64 != wanted {
            let (found, data_type) = (values.len(), values.data_type());
            let message = format!(
                "{found} elements of type {data_type} do not fill a tile, which has {wanted} of {}",
                self.data_type()
            );
            return Err(Error::usage(message));
        }
        self.0.write_chunk(index, values)
    }
}
