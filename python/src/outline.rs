//! Describes a source as groups and datasets of the native HDF5 file to which it would be
//! converted, and reads those datasets that are not simply the cells of a column.

use ctds_hdf5::convert::{ColumnOutline, DatasetOutline, DatasetPart, Outline, TableOutline};
use ctds_hdf5::value::{Record, Region, Shape, Value, Values};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::OrRaise;
use crate::keywords::{array, string};
use crate::source::Source;

/// Part of an array: its first index (from 0) and its extent on each axis, slowest axis first as in
/// numpy.
type Part = (Vec<u64>, Vec<u64>);

/// Describes the native HDF5 file to which a source would be converted, as a dict: `attributes` of
/// the root group, and `tables`.
#[pyfunction]
pub(crate) fn outline<'py>(py: Python<'py>, source: &Source) -> PyResult<Bound<'py, PyDict>> {
    let outline = py.detach(|| Outline::new(&source.source)).or_raise(py)?;
    let document = PyDict::new(py);
    document.set_item("attributes", attributes(py, &outline.attributes)?)?;
    let tables: Vec<_> = outline.tables.iter().map(|of| table(py, of)).collect::<PyResult<_>>()?;
    document.set_item("tables", tables)?;
    Ok(document)
}

/// Reads cells into a flat array, one after another. `rows`: first row, from 0, and row after the
/// last. `region`: part of each cell, as first index and extent on each axis. `region` and `cell`
/// list the slowest axis first, as numpy. An undefined cell adds zeros or empty strings in the
/// shape of `region`, else `cell`, or none if both are None.
#[pyfunction]
#[pyo3(signature = (source, table, column, rows, region=None, cell=None))]
pub(crate) fn stored_cells<'py>(
    py: Python<'py>,
    source: &Source,
    table: usize,
    column: usize,
    rows: (u64, u64),
    region: Option<Part>,
    cell: Option<Vec<u64>>,
) -> PyResult<Bound<'py, PyAny>> {
    let region = region.map(|(start, shape)| Region::c_order(&start, &shape));
    let cell = cell.map(|cell| Shape::from_reversed(&cell));
    let rows = rows.0..rows.1.max(rows.0);
    let values =
        py.detach(|| source.source.stored_cells(table, column, rows, region.as_ref(), cell.as_ref())).or_raise(py)?;
    array(py, &Shape::from([values.len() as u64]), values)
}

/// Reads a part of a hypercube (the array in which a tiled column stores cells of one shape) as a
/// numpy array. `region`: first index (from 0) and extent on each axis, slowest axis first as in
/// numpy. The first axis, of `region` and of the array, is the row within the cube. `table`,
/// `column` and `cube` count from 0.
#[pyfunction]
pub(crate) fn hypercube_part<'py>(
    py: Python<'py>,
    source: &Source,
    table: usize,
    column: usize,
    cube: usize,
    region: Part,
) -> PyResult<Bound<'py, PyAny>> {
    let region = Region::c_order(&region.0, &region.1);
    let values = py.detach(|| source.source.hypercube_part(table, column, cube, &region)).or_raise(py)?;
    array(py, &region.shape, values)
}

/// Lists which hypercube (array of cells of one shape) holds which rows of a column, for each run
/// of rows: first row, row after the last, index of the cube, and position in the cube of the first
/// row. All of them count from 0.
#[pyfunction]
pub(crate) fn hypercube_rows(
    py: Python<'_>,
    source: &Source,
    table: usize,
    column: usize,
) -> PyResult<Vec<(u64, u64, usize, u64)>> {
    let runs = py.detach(|| source.source.hypercube_rows(table, column)).or_raise(py)?;
    Ok(runs.into_iter().map(|(rows, cube, position)| (rows.start, rows.end, cube, position)).collect())
}

fn table<'py>(py: Python<'py>, table: &TableOutline) -> PyResult<Bound<'py, PyDict>> {
    let document = PyDict::new(py);
    document.set_item("table", table.table)?;
    document.set_item("group", &table.group)?;
    document.set_item("row", &table.row)?;
    document.set_item("rows", table.rows)?;
    document.set_item("row_numbers", table.row_numbers.as_ref().map(|rows| rows.clone().into_pyarray(py)))?;
    document.set_item("attributes", attributes(py, &table.attributes)?)?;
    let columns: Vec<_> = table.columns.iter().map(|of| column(py, of)).collect::<PyResult<_>>()?;
    document.set_item("columns", columns)?;
    let coordinates = PyList::empty(py);
    for of in &table.coordinates {
        let shape = Shape::from([of.values.len() as u64]);
        let values = array(py, &shape, of.values.clone())?;
        coordinates.append((&of.path, values, attributes(py, &of.attributes)?))?;
    }
    document.set_item("coordinates", coordinates)?;
    Ok(document)
}

fn column<'py>(py: Python<'py>, column: &ColumnOutline) -> PyResult<Bound<'py, PyDict>> {
    let document = PyDict::new(py);
    document.set_item("column", column.column)?;
    document.set_item("link", &column.link)?;
    document.set_item("is_group", column.is_group)?;
    document.set_item("attributes", attributes(py, &column.attributes)?)?;
    let datasets: Vec<_> = column.datasets.iter().map(|of| dataset(py, of)).collect::<PyResult<_>>()?;
    document.set_item("datasets", datasets)?;
    Ok(document)
}

fn dataset<'py>(py: Python<'py>, dataset: &DatasetOutline) -> PyResult<Bound<'py, PyDict>> {
    let cube = if let DatasetPart::Cube(number) = dataset.part { Some(number) } else { None };
    let document = PyDict::new(py);
    document.set_item("path", &dataset.path)?;
    document.set_item("part", dataset.part.name())?;
    document.set_item("cube", cube)?;
    document.set_item("dims", &dataset.dims)?;
    document.set_item("shape", dataset.shape.reversed())?;
    document.set_item("chunk", dataset.chunk.as_ref().map(|chunk| chunk.reversed()))?;
    document.set_item("type", dataset.data_type.name())?;
    Ok(document)
}

/// Converts HDF5 attributes to a dict of strings, lists of strings, numpy scalars and arrays. Bools
/// are int8, as in the file.
fn attributes<'py>(py: Python<'py>, attributes: &Record) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for field in &attributes.fields {
        let (values, is_scalar) = match &field.value {
            Value::Scalar(values) => (values, true),
            Value::Array(_, values) => (values, false),
            Value::Record(_) | Value::Table(_) => continue,
        };
        let value = match values {
            Values::String(texts) => {
                let texts: Vec<_> = texts.iter().map(|text| string(py, text)).collect::<PyResult<_>>()?;
                texts.into_pyobject(py)?
            }
            Values::Bool(bools) => {
                let bytes: Vec<i8> = bools.iter().map(|&value| value.into()).collect();
                bytes.into_pyarray(py).into_any()
            }
            values => array(py, &Shape::from([values.len() as u64]), values.clone())?,
        };
        dict.set_item(string(py, &field.name)?, if is_scalar { value.get_item(0)? } else { value })?;
    }
    Ok(dict)
}
