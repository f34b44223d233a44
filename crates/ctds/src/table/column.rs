//! Reads the cells of a column as values or `ndarray` arrays of a Rust element type.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bstr::ByteSlice;
use ndarray::{ArrayD, IxDyn};

use super::read::{Rows, Wanted, common_shape};
use super::{ColumnCells, ColumnInfo, RecordCells, Table};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::os::prefer_huge_pages;
use crate::schema::ColumnKind;
use crate::value::{DataType, Element, Region, Shape, Values};

/// A column opened for reading: of a casacore table by [`Table::column`], or of any source (table,
/// container, HDF5 file) by `ctds_hdf5::Source::column`.
///
/// Arrays come as `ndarray` arrays in numpy's axis order, slowest first: a casacore cell of shape
/// `[corr, chan]` is an array of shape `(chan, corr)`, in the same order in memory.
///
/// ```no_run
/// use ctds::{Table, value::Complex32};
///
/// let table = Table::open("my.ms")?;
/// let data = table.column("DATA")?;
/// let first: ndarray::ArrayD<Complex32> = data.cell(0)?;       // (chan, corr)
/// let block: ndarray::ArrayD<Complex32> = data.rows(0..100)?;  // (row, chan, corr)
/// # Ok::<(), ctds::Error>(())
/// ```
#[derive(Clone)]
pub struct Column<'a> {
    info: &'a ColumnInfo,
    rows: u64,
    /// Added to errors of reading.
    place: Context,
    cells: Cells<'a>,
}

#[derive(Clone)]
enum Cells<'a> {
    /// Without the column's manager, reading cells fails with the error of opening that.
    OfTable(&'a Table, usize),
    Opened(Arc<dyn ColumnCells + 'a>),
}

impl fmt::Debug for Column<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column").field("info", self.info).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<'a> Column<'a> {
    pub(super) fn new(table: &'a Table, index: usize) -> Self {
        let (info, place) = (&table.columns()[index], Context::path(table.path()));
        Column { info, rows: table.rows(), place, cells: Cells::OfTable(table, index) }
    }

    /// The cells of a record column must be decoded to records already, see [`RecordCells`].
    #[doc(hidden)]
    pub fn opened(info: &'a ColumnInfo, rows: u64, place: Context, cells: Arc<dyn ColumnCells + 'a>) -> Self {
        Column { info, rows, place, cells: Cells::Opened(cells) }
    }

    /// Description, fixed shape and data manager of the column.
    pub fn info(&self) -> &'a ColumnInfo {
        self.info
    }

    /// The shape of the cell in `row` (from 0), first axis fastest; `None` if the cell is
    /// undefined. The shape of a scalar has no axes.
    ///
    /// # Errors
    /// `Usage` if the row does not exist; `Format` and `Io` if the cell cannot be found.
    pub fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.check_rows(&(row..row.saturating_add(1)))?;
        self.with_cells(|cells| cells.cell_shape(row))
    }

    /// The shape that all cells of `rows` (half-open, from 0) have, first axis fastest; the shape
    /// of a scalar has no axes.
    ///
    /// # Errors
    /// `NotFound` if a cell is undefined, which is named; `Usage` if the shapes differ, or the
    /// table lacks the rows; `Format` and `Io` if a cell cannot be found.
    pub fn shape(&self, rows: Range<u64>) -> Result<Shape> {
        self.check_rows(&rows)?;
        self.with_cells(|cells| common_shape(self.info(), cells, &Rows::Range(rows), self.rows))
    }

    /// The value of the scalar cell in `row`, counted from 0.
    ///
    /// # Errors
    /// `Usage` if the column holds arrays or another type, or the row does not exist; `Format` and
    /// `Io` if the cell cannot be read.
    pub fn scalar<T: Element>(&self, row: u64) -> Result<T> {
        if self.info().desc.kind != ColumnKind::Scalar {
            return Err(self.error(Error::usage("the cells are arrays, not scalars")));
        }
        let mut values = self.elements::<T>(row..row.saturating_add(1))?;
        values.pop().ok_or_else(|| self.error(Error::not_found(format!("the cell in row {row} is undefined"))))
    }

    /// The cell in `row` (from 0) as an ndarray array, slowest axis first.
    ///
    /// # Errors
    /// As [`scalar`](Self::scalar); `NotFound` if the cell is undefined.
    pub fn cell<T: Element>(&self, row: u64) -> Result<ArrayD<T>> {
        let shape = self.cell_shape(row)?;
        let shape = shape.ok_or_else(|| self.error(Error::not_found(format!("the cell in row {row} is undefined"))))?;
        self.array(&shape, self.elements(row..row + 1)?)
    }

    /// The part `region` of the cell in `row` (from 0), as an array with the slowest axis first;
    /// the region itself has the fastest axis first.
    ///
    /// # Errors
    /// As [`cell`](Self::cell); `Usage` if the region leaves the cell.
    pub fn part<T: Element>(&self, row: u64, region: &Region) -> Result<ArrayD<T>> {
        self.check_rows(&(row..row.saturating_add(1)))?;
        let mut values = Values::new(self.info().data_type());
        self.with_cells(|cells| cells.read_cell(row, Some(region), &mut values))?;
        self.array(&region.shape, self.typed(values)?)
    }

    /// The cells of the half-open range `rows`, counted from 0, as one array: its first axis is the
    /// row, then follow the axes of the cell, slowest first. The cells must all be defined and have
    /// one shape. Large reads use all processors.
    ///
    /// # Errors
    /// As [`cell`](Self::cell); `Usage` if the shapes differ; `Limit` if the array exceeds the
    /// memory.
    pub fn rows<T: Element>(&self, rows: Range<u64>) -> Result<ArrayD<T>> {
        self.array_of(Rows::Range(rows), None)
    }

    /// The part `region` (fastest axis first) of each cell of the half-open range `rows` of row
    /// numbers from 0, for example one channel, as one array: its first axis is the row, then
    /// follow the axes of the region, slowest first. Tiles without elements of the region are not
    /// read.
    ///
    /// `region` is in casacore's order, first axis fastest; [`Region::c_order`] takes it in that of
    /// the array.
    ///
    /// ```no_run
    /// use ctds::Table;
    /// use ctds::value::{Complex32, Region};
    ///
    /// let table = Table::open("my.ms")?;
    /// let data = table.column("DATA")?;
    /// let channel_10 = Region::c_order(&[10, 0], &[1, 4]);
    /// let found: ndarray::ArrayD<Complex32> = data.parts(0..table.rows(), &channel_10)?;    // (row, 1, 4)
    /// # Ok::<(), ctds::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`rows`](Self::rows); `Usage` if the region leaves the cells.
    pub fn parts<T: Element>(&self, rows: Range<u64>, region: &Region) -> Result<ArrayD<T>> {
        self.array_of(Rows::Range(rows), Some(region))
    }

    /// The cells of the rows whose numbers (from 0) `rows` lists, such as one baseline at all
    /// times, as one array: its first axis is the position in the list, then follow the axes of the
    /// cell, slowest first. The cells must all be defined and have one shape. Large reads use all
    /// processors.
    ///
    /// ```no_run
    /// use ctds::Table;
    /// use ctds::value::Complex32;
    ///
    /// let table = Table::open("my.ms")?;
    /// // 7 antennas: the same baseline every 28 rows
    /// let rows: Vec<u64> = (5..table.rows()).step_by(28).collect();
    /// let data: ndarray::ArrayD<Complex32> = table.column("DATA")?.rows_at(&rows)?;    // (place, chan, corr)
    /// # Ok::<(), ctds::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn rows_at<T: Element>(&self, rows: &[u64]) -> Result<ArrayD<T>> {
        self.array_of(Rows::List(rows), None)
    }

    /// The part `region`, fastest axis first, of the cells of the rows whose numbers (from 0)
    /// `rows` lists, as one array: its first axis is the position in the list, then follow the axes
    /// of the region, slowest first. The cells must all be defined and have one shape.
    ///
    /// # Errors
    /// As [`parts`](Self::parts).
    pub fn parts_at<T: Element>(&self, rows: &[u64], region: &Region) -> Result<ArrayD<T>> {
        self.array_of(Rows::List(rows), Some(region))
    }

    /// Fills `out` with the cells of the half-open range `rows` of row numbers from 0, or the part
    /// `region`, fastest axis first, of each: row after row, in each the elements with the first
    /// axis fastest. `out` must have as many elements as are read. The cells must all be defined
    /// and have one shape. This is the fastest way to read, as `out` can be used again.
    ///
    /// ```no_run
    /// use ctds::Table;
    ///
    /// let table = Table::open("my.ms")?;
    /// let times = table.column("TIME")?;
    /// let mut block: Vec<f64> = times.buffer(1000)?;
    /// for start in (0..table.rows()).step_by(block.len()) {
    ///     let count = (table.rows() - start).min(block.len() as u64);
    ///     times.read_into(start..start + count, None, &mut block[..count as usize])?;
    /// }
    /// # Ok::<(), ctds::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`parts`](Self::parts); `Usage` if `out` has another length than the wanted cells.
    pub fn read_into<T: Element>(&self, rows: Range<u64>, region: Option<&Region>, out: &mut [T]) -> Result<()> {
        self.fill(Rows::Range(rows), region, out)
    }

    /// Fills `out` with the cells of the rows whose numbers (from 0) `rows` lists, or with the part
    /// `region`, fastest axis first, of each: in the order of the list, in each the elements with
    /// the first axis fastest. `out` must have as many elements as are read. The cells must all be
    /// defined and have one shape.
    ///
    /// # Errors
    /// As [`read_into`](Self::read_into).
    pub fn read_at_into<T: Element>(&self, rows: &[u64], region: Option<&Region>, out: &mut [T]) -> Result<()> {
        self.fill(Rows::List(rows), region, out)
    }

    /// Allocates a buffer of `len` elements (zeros, `false`s, empty strings or empty records) for
    /// [`read_into`](Self::read_into). A large one is on huge pages, so that filling it for the
    /// first time takes half the time or less.
    ///
    /// # Errors
    /// `Limit` if they exceed the memory.
    pub fn buffer<T: Element>(&self, len: u64) -> Result<Vec<T>> {
        buffer(len).map_err(|error| self.error(error))
    }

    fn fill<T: Element>(&self, rows: Rows<'_>, region: Option<&Region>, out: &mut [T]) -> Result<()> {
        self.check_read::<T>(&rows)?;
        self.with_cells(|cells| {
            let cell = common_shape(self.info(), cells, &rows, self.rows)?;
            Wanted { cells, rows, cell: &cell, region }.read(out)
        })
    }

    fn array_of<T: Element>(&self, rows: Rows<'_>, region: Option<&Region>) -> Result<ArrayD<T>> {
        self.check_read::<T>(&rows)?;
        let count = rows.len();
        let (shape, elements) = self.with_cells(|cells| {
            let cell = common_shape(self.info(), cells, &rows, self.rows)?;
            let wanted = Wanted { cells, rows, cell: &cell, region };
            let shape = wanted.part()?.with_axis(count);
            let len = shape.elements()?;
            let mut elements = buffer::<T>(len)?;
            wanted.read(&mut elements)?;
            Ok((shape, elements))
        })?;
        self.array(&shape, elements)
    }

    fn check_read<T: Element>(&self, rows: &Rows<'_>) -> Result<()> {
        match rows {
            Rows::Range(rows) => self.check_rows(rows)?,
            Rows::List(_) => self.check_rows(&rows.hull().unwrap_or_default())?,
        }
        let found = self.info().data_type();
        if found != T::DATA_TYPE {
            return Err(self.other_type::<T>(found));
        }
        Ok(())
    }

    fn elements<T: Element>(&self, rows: Range<u64>) -> Result<Vec<T>> {
        self.typed(self.values(rows)?)
    }

    /// The elements of the cells of `rows`, half-open, one cell after another, of the type
    /// that the column has.
    ///
    /// # Errors
    /// `Usage` if a row does not exist; `Format` and `Io` if a cell cannot be read.
    pub fn values(&self, rows: Range<u64>) -> Result<Values> {
        self.check_rows(&rows)?;
        let mut values = Values::new(self.info().data_type());
        self.with_cells(|cells| cells.read_rows(rows, &mut values))?;
        Ok(values)
    }

    fn typed<T: Element>(&self, values: Values) -> Result<Vec<T>> {
        let found = values.data_type();
        T::of(values).ok_or_else(|| self.other_type::<T>(found))
    }

    fn other_type<T: Element>(&self, found: DataType) -> Error {
        self.error(Error::usage(format!("the elements are of type {found}, not {}", T::DATA_TYPE)))
    }

    fn array<T: Element>(&self, shape: &Shape, values: Vec<T>) -> Result<ArrayD<T>> {
        let axes: Vec<usize> = shape.reversed().iter().map(|&extent| extent as usize).collect();
        let count = values.len();
        ArrayD::from_shape_vec(IxDyn(&axes), values).map_err(|error| {
            self.error(match error.kind() {
                ndarray::ErrorKind::Overflow => {
                    Error::limit(format!("a cell of shape {shape} is too large for an array in memory"))
                }
                _ => Error::format(format!("a cell of shape {shape} has {count} elements")),
            })
        })
    }

    fn with_cells<T>(&self, read: impl FnOnce(&dyn ColumnCells) -> Result<T>) -> Result<T> {
        let result = match &self.cells {
            Cells::OfTable(table, index) => table.cells(*index).and_then(|cells| match self.info().data_type() {
                DataType::Record => read(&RecordCells(cells)),
                _ => read(cells),
            }),
            Cells::Opened(cells) => read(&**cells),
        };
        result.map_err(|error| self.error(error))
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<()> {
        if rows.end > self.rows {
            let count = self.rows;
            return Err(self.error(Error::usage(format!(
                "rows {}..{} exceed the table, which has {count} rows",
                rows.start, rows.end
            ))));
        }
        Ok(())
    }

    fn error(&self, error: Error) -> Error {
        error.context(Context::column(self.info().desc.name.as_bstr())).context(self.place.clone())
    }
}

fn buffer<T: Element>(len: u64) -> Result<Vec<T>> {
    let elements = usize::try_from(len).ok().and_then(T::zeros);
    let no_memory = || Error::new(ErrorKind::Limit, format!("{len} elements exceed the memory"));
    let mut elements = elements.ok_or_else(no_memory)?;
    prefer_huge_pages(&mut elements);
    Ok(elements)
}
