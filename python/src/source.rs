//! Python class of a table with its subtables, open for reading.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ctds_hdf5::convert::{Predicate, Source as Opened, SourceTable};
use ctds_hdf5::{CancelToken, ColumnInfo, ColumnKind, Locking, OpenOptions, TableKind};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyIndexError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{Counts, waited_for};
use crate::column::Column;
use crate::error::{OrRaise, raise};
use crate::keywords::{dict, string};
use crate::others;

/// Python class of anything that holds tables, open for reading: a table directory, a container, a
/// native HDF5 file.
#[pyclass(frozen, module = "h5bridge._native")]
pub(crate) struct Source {
    pub(crate) source: Arc<Opened>,
    /// Index in `tables` (from 0) of the table that the opened path names.
    #[pyo3(get)]
    table: usize,
}

/// Description of a dataset in a native HDF5 file: path in the group of its table, shape, and chunk
/// shape (None if the dataset is not chunked). Both shapes have the slowest axis first, as in
/// numpy.
type Chunked = (String, Vec<u64>, Option<Vec<u64>>);

#[pymethods]
impl Source {
    /// Opens a table directory, a container (MultiFile, MultiHDF5, one-file archive) with a table,
    /// or a native HDF5 file. `lock_timeout`: seconds to wait for a table lock, None for no lock.
    /// `follow_external`: also read data that a native HDF5 file keeps in other files below its
    /// directory (external storage or links, virtual datasets). If false, reading such data fails.
    #[new]
    #[pyo3(signature = (path, *, lock_timeout=Some(60.0), follow_external=false))]
    fn new(py: Python<'_>, path: PathBuf, lock_timeout: Option<f64>, follow_external: bool) -> PyResult<Self> {
        // no time-out is as good as one of a century
        let seconds = |time| Duration::try_from_secs_f64(time).unwrap_or(Duration::from_secs(u32::MAX.into()));
        let options = OpenOptions {
            locking: lock_timeout.map_or(Locking::None, |time| Locking::Wait(seconds(time))),
            follow_external,
            ..OpenOptions::default()
        };
        others::look(py);
        let (token, counts) = (CancelToken::new(), Counts::default());
        let named = path.clone();
        let open = move || Opened::open_table(path, options);
        let (source, table) = waited_for(py, open, &token, &counts, None)?.or_raise(py)?;
        let source = Source { source: Arc::new(source), table };
        if lock_timeout.is_some() && py.detach(|| ctds_hdf5::is_locked_here(&named)).unwrap_or(false) {
            let text = CString::new(format!(
                "{}: casacore has locked the table for writing in this process; it is read without a lock",
                named.display()
            ));
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text.unwrap_or_default(), 4)?;
        }
        Ok(source)
    }

    /// Name and parent of each table; `.` is the main table. The parent is the index of the table
    /// whose keyword refers to this one, None for the main table.
    fn tables(&self) -> Vec<(String, Option<usize>)> {
        self.source.tables().iter().map(|table| (table.name.clone(), table.parent())).collect()
    }

    /// Describes the table with the index `table` as a dict of rows, keywords, columns and storage
    /// managers; raises an exception if it cannot be read.
    fn describe<'py>(&self, py: Python<'py>, table: usize) -> PyResult<Bound<'py, PyDict>> {
        let found = self.found(table)?;
        let columns = found.columns().or_raise(py)?;
        let info = found.info().or_raise(py)?;
        let document = PyDict::new(py);
        document.set_item("rows", found.rows().or_raise(py)?)?;
        document.set_item("type", string(py, &info.table_type)?)?;
        document.set_item("subtype", string(py, &info.sub_type)?)?;
        document.set_item("readme", string(py, &info.readme)?)?;
        document.set_item("keywords", dict(py, found.keywords().or_raise(py)?)?)?;
        let columns: Vec<_> = columns.iter().map(|column| describe(py, column)).collect::<PyResult<_>>()?;
        document.set_item("columns", &columns)?;
        if let Some(table) = found.table().or_raise(py)? {
            for (column, number) in columns.iter().zip(table.manager_numbers()) {
                column.set_item("manager_number", number)?;
            }
            document.set_item("path", table.path())?;
            document.set_item("byte_order", table.byte_order().name())?;
            document.set_item("locked", table.is_locked())?;
            let (kind, parts) = match table.kind() {
                TableKind::Plain => ("plain", Vec::new()),
                TableKind::Reference { root } => ("reference", vec![root.clone()]),
                TableKind::Concatenation { parts } => ("concatenation", parts.clone()),
            };
            document.set_item("kind", kind)?;
            document.set_item("parts", parts)?;
            document.set_item("comment", string(py, &table.description().comment)?)?;
            document.set_item("private_keywords", dict(py, &table.description().private_keywords)?)?;
            let mut managers = Vec::new();
            for manager in table.managers() {
                let of = PyDict::new(py);
                of.set_item("type", string(py, manager.type_name)?)?;
                of.set_item("name", string(py, manager.name)?)?;
                of.set_item("sequence", manager.sequence)?;
                of.set_item("parameters", dict(py, &manager.parameters)?)?;
                managers.push(of);
            }
            document.set_item("managers", managers)?;
        }
        Ok(document)
    }

    /// Returns the column with the index `column` of the table with the index `table`, both counted
    /// from 0.
    fn column(&self, table: usize, column: usize) -> PyResult<Column> {
        self.found(table)?;
        Ok(Column::new(self.source.clone(), table, column))
    }

    /// Numbers (from 0, in order) of the rows of a table that satisfy `condition`, in the language
    /// of `--where`. `table` counts from 0. Signals of the interpreter stop it.
    fn rows_where<'py>(&self, py: Python<'py>, table: usize, condition: &str) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let predicate: Predicate = condition.parse().or_raise(py)?;
        let (token, counts) = (CancelToken::new(), Counts::default());
        let (source, stopped) = (self.source.clone(), token.clone());
        let find = move || source.rows_where(table, &predicate, &stopped);
        Ok(waited_for(py, find, &token, &counts, None)?.or_raise(py)?.into_pyarray(py))
    }

    /// Shape and tile shape of each hypercube of a column, slowest axis (the row) first; `table`
    /// and `column` are indices from 0.
    fn hypercubes(&self, py: Python<'_>, table: usize, column: usize) -> PyResult<Vec<(Vec<u64>, Vec<u64>)>> {
        let found = self.found(table)?;
        let cubes = py.detach(|| found.hypercubes(column));
        Ok(cubes.into_iter().map(|(shape, tile)| (shape.reversed(), tile.reversed())).collect())
    }

    /// Path, shape and chunk shape (None if not chunked) of the datasets that hold a column in a
    /// native HDF5 file, each with the slowest axis first, as in numpy. Empty for other sources.
    /// `table` and `column` count from 0.
    fn datasets(&self, py: Python<'_>, table: usize, column: usize) -> PyResult<Vec<Chunked>> {
        let found = self.found(table)?;
        let datasets = py.detach(|| found.storage(column)).or_raise(py)?;
        let listed = datasets
            .into_iter()
            .map(|dataset| (dataset.name, dataset.shape.reversed(), dataset.chunk.map(|chunk| chunk.reversed())));
        Ok(listed.collect())
    }

    /// Paths of the subtables that could not be opened, each with its exception.
    fn problems(&self, py: Python<'_>) -> Vec<(String, Py<PyAny>)> {
        self.source
            .problems()
            .map(|(name, error)| (name.to_owned(), raise(py, error).into_value(py).into_any()))
            .collect()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        Python::attach(others::look);
    }
}

impl Source {
    fn found(&self, table: usize) -> PyResult<&SourceTable> {
        self.source.tables().get(table).ok_or_else(|| PyIndexError::new_err(format!("table {table} does not exist")))
    }
}

fn describe<'py>(py: Python<'py>, column: &ColumnInfo) -> PyResult<Bound<'py, PyDict>> {
    let desc = &column.desc;
    let document = PyDict::new(py);
    document.set_item("name", string(py, &desc.name)?)?;
    document.set_item("type", column.data_type().name())?;
    document.set_item("scalar", desc.kind == ColumnKind::Scalar)?;
    document.set_item("shape", column.shape.as_ref().map(|shape| shape.reversed()))?;
    document.set_item("ndim", desc.ndim)?;
    document.set_item("options", desc.options)?;
    document.set_item("max_length", desc.max_length)?;
    document.set_item("comment", string(py, &desc.comment)?)?;
    document.set_item("keywords", dict(py, &desc.keywords)?)?;
    document.set_item("manager", string(py, &column.manager)?)?;
    document.set_item("manager_name", string(py, &column.manager_name)?)?;
    Ok(document)
}
