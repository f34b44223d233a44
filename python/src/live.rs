//! Python classes that write and read live files: native HDF5 files to which rows are appended
//! while other processes read them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ctds_hdf5::live::{
    Block, CellShapes, ColumnSpec, CommitPolicy, Durability, Reader as Opened, Schema, TableReader, TableSpec,
    Writer as Writing,
};
use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::value::{BString, Complex32, Complex64, DataType, Shape, Values};
use ctds_hdf5::{ColumnDesc, ColumnKind, IfExists};
use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::OrRaise;
use crate::keywords::{array, record, string, values_of};

/// Python class that appends rows to a live file (a native HDF5 file that other processes can read
/// while it grows).
#[pyclass(frozen, module = "h5bridge._native")]
pub(crate) struct LiveWriter(Mutex<Option<Writing>>);

/// Cells of a column to append: name, type of the elements, the elements, and for a column of
/// several declared shapes the index of each cell's shape (None: undefined).
type Cells<'py> = (String, String, Bound<'py, PyAny>, Option<Vec<Option<usize>>>);

/// When rows appended to a live file are committed: after this many seconds, after this many rows
/// (None: not by time or not by rows), and whether a commit waits until the disk has the data.
type Policy = (Option<f64>, Option<u64>, bool);

fn policy((every, rows, fsync): Policy) -> PyResult<CommitPolicy> {
    let mut policy = CommitPolicy::manual();
    policy.every =
        every.map(Duration::try_from_secs_f64).transpose().map_err(|error| PyValueError::new_err(error.to_string()))?;
    policy.rows = rows;
    policy.durability = if fsync { Durability::Disk } else { Durability::PageCache };
    Ok(policy)
}

#[pymethods]
impl LiveWriter {
    /// Creates a live file (a native HDF5 file that grows while others read it) with the tables of
    /// `declared`: a list of dicts, one for each table, made by the Python module `h5bridge.live`.
    /// `commits` says when appended rows are committed.
    #[staticmethod]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        declared: Vec<Bound<'_, PyDict>>,
        commits: Policy,
        overwrite: bool,
    ) -> PyResult<Self> {
        let if_exists = if overwrite { IfExists::Replace } else { IfExists::Fail };
        let mut schema = Schema::new().if_exists(if_exists).commit(policy(commits)?);
        for table in &declared {
            schema = schema.table(table_spec(table)?);
        }
        let writer = py.detach(|| schema.create(path)).or_raise(py)?;
        Ok(LiveWriter(Mutex::new(Some(writer))))
    }

    /// Opens an existing live file (a native HDF5 file made to be appended to while others read it)
    /// to append more rows; its earlier writer must have closed it. `commits` says when appended
    /// rows are committed, so that readers see them.
    #[staticmethod]
    fn reopen(py: Python<'_>, path: PathBuf, commits: Policy) -> PyResult<Self> {
        let commits = policy(commits)?;
        let writer = py.detach(|| Writing::reopen(path, commits)).or_raise(py)?;
        Ok(LiveWriter(Mutex::new(Some(writer))))
    }

    fn tables(&self) -> PyResult<Vec<String>> {
        self.with(|writer| Ok(writer.tables().map(str::to_owned).collect()))
    }

    fn warnings(&self) -> PyResult<Vec<String>> {
        self.with(|writer| Ok(writer.warnings().to_vec()))
    }

    /// Two numbers of rows of a table: of all its rows, including those not yet committed, and of
    /// the committed rows, which readers see.
    fn rows(&self, py: Python<'_>, table: &str) -> PyResult<(u64, u64)> {
        self.with(|writer| {
            let table = writer.table(table).or_raise(py)?;
            Ok((table.rows(), table.committed_rows()))
        })
    }

    /// Appends `rows` rows to a table; `columns` has the cells of each column. Readers see the rows
    /// after the next commit.
    fn append(&self, py: Python<'_>, table: &str, rows: u64, columns: Vec<Cells<'_>>) -> PyResult<()> {
        let given: Vec<Given<'_>> =
            columns.iter().map(|(_, of, cells, _)| Given::new(of, cells)).collect::<PyResult<_>>()?;
        let mut blocks = Vec::new();
        for ((name, _, _, shapes), given) in columns.iter().zip(&given) {
            let block = given.block();
            blocks.push((name.as_str(), if let Some(shapes) = shapes { block.with_shapes(shapes) } else { block }));
        }
        self.with(|writer| {
            py.detach(|| {
                let mut batch = writer.table(table)?.batch(rows);
                for (name, block) in blocks {
                    batch.set(name, block)?;
                }
                batch.append()
            })
            .or_raise(py)
        })
    }

    /// Overwrites cells of a column in rows appended before; `place` is the first row, counted from
    /// 0, and the number of rows.
    fn rewrite(
        &self,
        py: Python<'_>,
        table: &str,
        column: &str,
        of: &str,
        place: (u64, u64),
        cells: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let given = Given::new(of, &cells)?;
        let block = given.block();
        self.with(|writer| py.detach(|| writer.table(table)?.rewrite(column, place.0, place.1, block)).or_raise(py))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.with(|writer| py.detach(|| writer.commit()).or_raise(py))
    }

    fn commit_if_due(&self, py: Python<'_>) -> PyResult<()> {
        self.with(|writer| py.detach(|| writer.commit_if_due()).or_raise(py))
    }

    /// Commits all rows, so that readers see them, and closes the live file; a second call has no
    /// effect.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.lock().take();
        writer.map_or(Ok(()), |writer| py.detach(|| writer.close()).or_raise(py))
    }

    /// Closes the live file without a commit: rows appended after the last commit are lost.
    fn abandon(&self) {
        self.lock().take();
    }
}

impl LiveWriter {
    fn lock(&self) -> MutexGuard<'_, Option<Writing>> {
        self.0.lock_unpoisoned()
    }

    fn with<T>(&self, call: impl FnOnce(&mut Writing) -> PyResult<T>) -> PyResult<T> {
        let mut writer = self.lock();
        call(writer.as_mut().ok_or_else(|| PyValueError::new_err("the live file is closed"))?)
    }
}

/// Cells that a Python caller passed for a column, by element type; numpy arrays are borrowed, not
/// copied.
enum Given<'py> {
    Bool(PyReadonlyArrayDyn<'py, bool>),
    UChar(PyReadonlyArrayDyn<'py, u8>),
    Short(PyReadonlyArrayDyn<'py, i16>),
    UShort(PyReadonlyArrayDyn<'py, u16>),
    Int(PyReadonlyArrayDyn<'py, i32>),
    UInt(PyReadonlyArrayDyn<'py, u32>),
    Int64(PyReadonlyArrayDyn<'py, i64>),
    Float(PyReadonlyArrayDyn<'py, f32>),
    Double(PyReadonlyArrayDyn<'py, f64>),
    Complex(PyReadonlyArrayDyn<'py, Complex32>),
    DComplex(PyReadonlyArrayDyn<'py, Complex64>),
    String(Vec<BString>),
}

impl<'py> Given<'py> {
    fn new(data_type: &str, cells: &Bound<'py, PyAny>) -> PyResult<Self> {
        fn borrowed<'py, T: numpy::Element>(cells: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
            let array = cells.cast::<PyArrayDyn<T>>()?;
            array.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))
        }
        Ok(match element_type(data_type)? {
            DataType::Bool => Given::Bool(borrowed(cells)?),
            DataType::UChar => Given::UChar(borrowed(cells)?),
            DataType::Short => Given::Short(borrowed(cells)?),
            DataType::UShort => Given::UShort(borrowed(cells)?),
            DataType::Int => Given::Int(borrowed(cells)?),
            DataType::UInt => Given::UInt(borrowed(cells)?),
            DataType::Int64 => Given::Int64(borrowed(cells)?),
            DataType::Float => Given::Float(borrowed(cells)?),
            DataType::Double => Given::Double(borrowed(cells)?),
            DataType::Complex => Given::Complex(borrowed(cells)?),
            DataType::DComplex => Given::DComplex(borrowed(cells)?),
            DataType::String => {
                let list: Vec<String> = cells.extract()?;
                Given::String(list.into_iter().map(BString::from).collect())
            }
            DataType::Record => return Err(PyTypeError::new_err("a live file has no columns of records")),
        })
    }

    fn block(&self) -> Block<'_> {
        match self {
            Given::Bool(cells) => cells.as_array().into(),
            Given::UChar(cells) => cells.as_array().into(),
            Given::Short(cells) => cells.as_array().into(),
            Given::UShort(cells) => cells.as_array().into(),
            Given::Int(cells) => cells.as_array().into(),
            Given::UInt(cells) => cells.as_array().into(),
            Given::Int64(cells) => cells.as_array().into(),
            Given::Float(cells) => cells.as_array().into(),
            Given::Double(cells) => cells.as_array().into(),
            Given::Complex(cells) => cells.as_array().into(),
            Given::DComplex(cells) => cells.as_array().into(),
            Given::String(strings) => strings.into(),
        }
    }
}

fn element_type(name: &str) -> PyResult<DataType> {
    DataType::from_name(name).ok_or_else(|| PyTypeError::new_err(format!("{name:?} names no element type")))
}

fn get<'py, T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>>(dict: &Bound<'py, PyDict>, key: &str) -> PyResult<T> {
    let found = dict.get_item(key)?.ok_or_else(|| PyKeyError::new_err(key.to_owned()))?;
    found.extract().map_err(Into::into)
}

fn table_spec(table: &Bound<'_, PyDict>) -> PyResult<TableSpec> {
    let mut spec = TableSpec::new(get::<String>(table, "name")?);
    spec.info.table_type = get::<String>(table, "type")?.into();
    spec.info.sub_type = get::<String>(table, "subtype")?.into();
    spec.info.readme = get::<String>(table, "readme")?.into();
    spec.keywords = record(&get::<Bound<'_, PyDict>>(table, "keywords")?)?;
    for column in get::<Vec<Bound<'_, PyDict>>>(table, "columns")? {
        spec = spec.column(column_spec(&column)?);
    }
    for (role, values) in get::<Vec<(String, Bound<'_, PyAny>)>>(table, "coordinates")? {
        spec = spec.coordinate(role, values_of(&values)?.1);
    }
    Ok(spec)
}

fn column_spec(column: &Bound<'_, PyDict>) -> PyResult<ColumnSpec> {
    let data_type = element_type(&get::<String>(column, "type")?)?;
    let cell = get::<Option<Vec<u64>>>(column, "cell")?;
    let kind = if cell.is_some() { ColumnKind::Array } else { ColumnKind::Scalar };
    let mut desc = ColumnDesc::new(get::<String>(column, "name")?.into(), data_type, kind);
    desc.keywords = record(&get::<Bound<'_, PyDict>>(column, "keywords")?)?;
    if let Some(unit) = get::<Option<String>>(column, "unit")? {
        desc = desc.unit(unit);
    }
    desc = desc.comment(get::<String>(column, "comment")?);
    if data_type == DataType::String {
        desc = desc.max_length(get::<u32>(column, "string_length")?);
    }
    let mut spec = ColumnSpec::from(match cell {
        Some(cell) => desc.fixed_shape(Shape::from_reversed(&cell)),
        None => desc,
    });
    if let Some(shapes) = get::<Option<Vec<Vec<u64>>>>(column, "shapes")? {
        spec = spec.shapes(shapes.iter().map(|axes| Shape::from_reversed(axes)));
    }
    spec.chunk_rows = get::<Option<u64>>(column, "chunk_rows")?;
    // the first axis of casacore is the last of numpy
    let axes: Vec<String> = get(column, "axes")?;
    Ok(if axes.is_empty() { spec } else { spec.axes(axes.into_iter().rev()) })
}

/// Python class that reads a live file (a native HDF5 file to which rows are appended), also while
/// a writer appends to it.
#[pyclass(frozen, module = "h5bridge._native")]
pub(crate) struct LiveReader(Arc<Opened>);

#[pymethods]
impl LiveReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(LiveReader(Arc::new(py.detach(|| Opened::open(path)).or_raise(py)?)))
    }

    fn is_being_written(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.0.is_being_written()).or_raise(py)
    }

    fn tables(&self) -> Vec<String> {
        self.0.tables().iter().map(|table| table.name().to_owned()).collect()
    }

    /// Describes each column of the table number `table` (index in `tables()`, from 0) as a dict:
    /// name, type, comment, keywords, and the shape of all cells (`cell`) or the shapes that cells
    /// may have (`shapes`), slowest axis first.
    fn columns<'py>(&self, py: Python<'py>, table: usize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let found = self.found(table)?;
        let describe = |column: &ctds_hdf5::ColumnInfo| -> PyResult<Bound<'py, PyDict>> {
            let document = PyDict::new(py);
            let name = column.desc.name.to_string();
            document.set_item("name", string(py, &column.desc.name)?)?;
            document.set_item("type", column.data_type().name())?;
            document.set_item("scalar", column.desc.kind == ColumnKind::Scalar)?;
            document.set_item("comment", string(py, &column.desc.comment)?)?;
            document.set_item("keywords", crate::keywords::dict(py, &column.desc.keywords)?)?;
            let (one, several) = match found.shapes(&name).or_raise(py)? {
                CellShapes::One(shape) => (Some(shape.reversed()), None),
                CellShapes::Several(shapes) => (None, Some(shapes.iter().map(Shape::reversed).collect::<Vec<_>>())),
            };
            document.set_item("cell", one)?;
            document.set_item("shapes", several)?;
            Ok(document)
        };
        found.columns().map(describe).collect()
    }

    /// Reads from the live file how many rows of the table number `table` (index in `tables()`,
    /// from 0) its writer has committed by now, and returns that number. These rows can then be
    /// read.
    fn refresh(&self, py: Python<'_>, table: usize) -> PyResult<u64> {
        let found = self.found(table)?;
        py.detach(|| found.refresh()).or_raise(py)
    }

    /// Reads rows `start` to `stop` (exclusive) of a column whose cells all have one shape, as an
    /// array: first the row, then the axes of a cell, slowest first. `table` is an index in
    /// `tables()`; it and the rows are counted from 0.
    fn read<'py>(
        &self,
        py: Python<'py>,
        table: usize,
        column: &str,
        start: u64,
        stop: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = self.found(table)?;
        let data_type = found.columns().find(|info| info.desc.name == column).map(|info| info.data_type());
        let data_type = data_type.ok_or_else(|| PyKeyError::new_err(column.to_owned()))?;
        let (cell, values) = py
            .detach(|| {
                let mut values = Values::new(data_type);
                found.read(column, start..stop.max(start), &mut values)?;
                let cell = match found.shapes(column)? {
                    CellShapes::One(cell) => cell,
                    CellShapes::Several(_) => Shape::scalar(),
                };
                Ok((cell, values))
            })
            .or_raise(py)?;
        array(py, &cell.with_axis(stop.saturating_sub(start)), values)
    }

    /// Reads one cell of a column as an array, slowest axis first (without axes for a scalar); None
    /// if the cell is undefined. `table` is an index in `tables()`; `table` and `row` are counted
    /// from 0.
    fn cell<'py>(&self, py: Python<'py>, table: usize, column: &str, row: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.found(table)?;
        let cell = py.detach(|| found.cell(column, row)).or_raise(py)?;
        cell.map(|(shape, values)| array(py, &shape, values)).transpose()
    }
}

impl LiveReader {
    fn found(&self, table: usize) -> PyResult<&TableReader> {
        self.0.tables().get(table).ok_or_else(|| PyIndexError::new_err(format!("table {table} does not exist")))
    }
}
