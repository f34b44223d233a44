//! Python class that writes a casacore table with its subtables. It appears under its name when it
//! is closed.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use ctds_hdf5::ndarray::ArrayView1;
use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::value::{DataType, Shape, Value, Values};
use ctds_hdf5::{ColumnDesc, ColumnKind, Error, IfExists, ManagerSpec, NewTable, Result, StagedOutput, TableWriter};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::OrRaise;
use crate::keywords::{record, values_of};

/// A main table that is being written, and its open subtable.
struct Writing {
    staged: StagedOutput,
    main: TableWriter,
    subtable: Option<TableWriter>,
}

impl Writing {
    /// The open subtable, else the main table.
    fn open(&mut self) -> &mut TableWriter {
        self.subtable.as_mut().unwrap_or(&mut self.main)
    }

    fn finish_subtable(&mut self) -> Result<()> {
        self.subtable.take().map_or(Ok(()), TableWriter::finish)
    }
}

/// A casacore table that is being written: rows are put into the main table, or, after `subtable`,
/// into that one, until `end_subtable`.
#[pyclass(frozen, module = "h5bridge._native")]
pub(crate) struct NewTableWriter(Mutex<Option<Writing>>);

#[pymethods]
impl NewTableWriter {
    /// Begins the table `path`, as `description` says: `type`, `keywords`, `columns` (dicts of
    /// `name`, `type`, `comment`, `keywords`, and for arrays `ndim` and `shape` with the slowest
    /// axis first, else None) and `managers` (`type`, `name`, `columns`, `tile`).
    #[staticmethod]
    fn create(py: Python<'_>, path: PathBuf, description: &Bound<'_, PyDict>, overwrite: bool) -> PyResult<Self> {
        let if_exists = if overwrite { IfExists::Replace } else { IfExists::Fail };
        let table = new_table(description)?;
        let begin = || -> Result<Writing> {
            let staged = StagedOutput::create_directory(&path, if_exists)?;
            let main = table.create_in(staged.path(), true)?;
            Ok(Writing { staged, main, subtable: None })
        };
        Ok(NewTableWriter(Mutex::new(Some(py.detach(begin).or_raise(py)?))))
    }

    /// Begins the subtable `name`.
    fn subtable(&self, py: Python<'_>, name: &str, description: &Bound<'_, PyDict>) -> PyResult<()> {
        let table = new_table(description)?;
        self.with(py, |writing| {
            writing.finish_subtable()?;
            writing.subtable = Some(writing.main.subtable(name, table)?);
            Ok(())
        })
    }

    fn end_subtable(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Writing::finish_subtable)
    }

    fn add_rows(&self, py: Python<'_>, count: u64) -> PyResult<()> {
        self.with(py, |writing| writing.open().add_rows(count))
    }

    /// Puts cells of one shape into rows that exist. The first axis of `cells`, an array of the
    /// type of the column, is the row.
    fn put(
        &self,
        py: Python<'_>,
        column: &str,
        rows: PyReadonlyArray1<'_, u64>,
        cells: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (shape, values) = values_of(cells)?;
        let rows = rows.as_array();
        let cell = match shape.split_last() {
            Some((cell, count)) if count == rows.len() as u64 => cell,
            _ => return Err(PyValueError::new_err(format!("{column}: {} rows, cells of shape {shape}", rows.len()))),
        };
        self.with(py, |writing| put(writing.open(), column, rows, &cell, &values))
    }

    /// Makes everything durable and gives the table its name.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut writing) = self.lock().take() else { return Ok(()) };
        py.detach(|| {
            writing.finish_subtable()?;
            writing.main.finish()?;
            writing.staged.publish()
        })
        .or_raise(py)
    }

    /// Removes all that was written.
    fn abandon(&self) {
        self.lock().take();
    }
}

impl NewTableWriter {
    fn lock(&self) -> MutexGuard<'_, Option<Writing>> {
        self.0.lock_unpoisoned()
    }

    fn with<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&mut Writing) -> Result<T> + Send) -> PyResult<T> {
        py.detach(|| self.lock().as_mut().map(call))
            .ok_or_else(|| PyValueError::new_err("the table is closed"))?
            .or_raise(py)
    }
}

/// Puts cells in runs of consecutive rows.
fn put(table: &mut TableWriter, column: &str, rows: ArrayView1<'_, u64>, cell: &Shape, values: &Values) -> Result<()> {
    let mut column = table.column(column)?;
    let elements = usize::try_from(cell.elements()?).map_err(|_| Error::limit("a cell exceeds the memory"))?;
    let mut start = 0;
    while start < rows.len() {
        let first = rows[start];
        let is_next = |place: &usize| rows[*place].checked_sub(first) == Some((*place - start) as u64);
        let end = (start + 1..rows.len()).find(|place| !is_next(place)).unwrap_or(rows.len());
        let run = first..first.saturating_add((end - start) as u64);
        if start == 0 && end == rows.len() {
            return column.put_values(run, cell, values);
        }
        let mut part = Values::new(values.data_type());
        part.extend_from(values, start * elements..end * elements)?;
        column.put_values(run, cell, &part)?;
        start = end;
    }
    Ok(())
}

fn get<'py, T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>>(dict: &Bound<'py, PyDict>, key: &str) -> PyResult<T> {
    let found = dict.get_item(key)?.ok_or_else(|| PyKeyError::new_err(key.to_owned()))?;
    found.extract().map_err(Into::into)
}

fn new_table(description: &Bound<'_, PyDict>) -> PyResult<NewTable> {
    let mut table = NewTable::new().table_type(get::<String>(description, "type")?);
    for field in record(&get::<Bound<'_, PyDict>>(description, "keywords")?)?.fields {
        table = table.keyword(field.name, field.value);
    }
    for column in get::<Vec<Bound<'_, PyDict>>>(description, "columns")? {
        table = table.column(column_desc(&column)?);
    }
    for manager in get::<Vec<Bound<'_, PyDict>>>(description, "managers")? {
        let mut spec = ManagerSpec::new(get::<String>(&manager, "type")?, get::<String>(&manager, "name")?);
        if let Some(tile) = get::<Option<Vec<u64>>>(&manager, "tile")? {
            spec = spec.tile_shape(&Shape::from_reversed(&tile));
        }
        table = table.bind(spec, get::<Vec<String>>(&manager, "columns")?);
    }
    Ok(table)
}

fn column_desc(column: &Bound<'_, PyDict>) -> PyResult<ColumnDesc> {
    let name = get::<String>(column, "type")?;
    let data_type = DataType::from_name(&name);
    let data_type = data_type.ok_or_else(|| PyValueError::new_err(format!("{name:?} names no element type")))?;
    let axes = get::<Option<i32>>(column, "ndim")?;
    let kind = if axes.is_some() { ColumnKind::Array } else { ColumnKind::Scalar };
    let mut desc = ColumnDesc::new(get::<String>(column, "name")?.into(), data_type, kind);
    desc = match (axes, get::<Option<Vec<u64>>>(column, "shape")?) {
        (Some(_), Some(shape)) => desc.direct(Shape::from_reversed(&shape)),
        (Some(axes), None) if axes > 0 => desc.ndim(axes.unsigned_abs()),
        _ => desc,
    };
    for (name, value) in keywords(column)? {
        desc = desc.keyword(name, value);
    }
    Ok(desc.comment(get::<String>(column, "comment")?))
}

fn keywords(column: &Bound<'_, PyDict>) -> PyResult<impl Iterator<Item = (ctds_hdf5::value::BString, Value)>> {
    let found = record(&get::<Bound<'_, PyDict>>(column, "keywords")?)?;
    Ok(found.fields.into_iter().map(|field| (field.name, field.value)))
}
