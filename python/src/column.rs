//! Reads the cells of a column as numpy arrays.

use std::ops::Range;
use std::sync::Arc;

use ctds_hdf5::convert::Source as Opened;
use ctds_hdf5::ndarray::{ArrayD, IxDyn};
use ctds_hdf5::value::{BString, Complex32, Complex64, DataType, Element, Record, Region, Shape};
use numpy::{IntoPyArray, PyArray2, PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::keywords::{records, strings};
use crate::others;

/// Approximate number of bytes of cells that are read between two checks for signals of the Python
/// interpreter.
const STEP_BYTES: usize = 256 << 20;

/// A column of an open table, found by the index of the table in its source and the index of the
/// column in that table.
#[pyclass(frozen, module = "h5bridge._native")]
pub(crate) struct Column {
    source: Arc<Opened>,
    table: usize,
    column: usize,
}

/// Row numbers of the cells of a column to read: a range or a list, counted from 0.
enum Rows<'a> {
    Range(Range<u64>),
    List(&'a [u64]),
}

/// Runs the code `$body` with `$T` as the Rust type of a column's elements if these are numbers or
/// Bools, and the code `$else` if they are strings or records.
macro_rules! for_numbers {
    ($data_type:expr, $T:ident => $body:expr, $else:expr) => {
        match $data_type {
            DataType::Bool => {
                type $T = bool;
                $body
            }
            DataType::UChar => {
                type $T = u8;
                $body
            }
            DataType::Short => {
                type $T = i16;
                $body
            }
            DataType::UShort => {
                type $T = u16;
                $body
            }
            DataType::Int => {
                type $T = i32;
                $body
            }
            DataType::UInt => {
                type $T = u32;
                $body
            }
            DataType::Int64 => {
                type $T = i64;
                $body
            }
            DataType::Float => {
                type $T = f32;
                $body
            }
            DataType::Double => {
                type $T = f64;
                $body
            }
            DataType::Complex => {
                type $T = Complex32;
                $body
            }
            DataType::DComplex => {
                type $T = Complex64;
                $body
            }
            DataType::String | DataType::Record => $else,
        }
    };
}

impl Column {
    pub(crate) fn new(source: Arc<Opened>, table: usize, column: usize) -> Self {
        Column { source, table, column }
    }

    fn open<'a>(&'a self, py: Python<'_>) -> PyResult<ctds_hdf5::Column<'a>> {
        py.detach(|| self.source.column_at(self.table, self.column)).or_raise(py)
    }
}

impl Drop for Column {
    fn drop(&mut self) {
        Python::attach(others::look);
    }
}

#[pymethods]
impl Column {
    /// Reads the cells of the rows from `start` (counted from 0) up to but without `stop` as an
    /// array: first the row, then the axes of a cell, slowest first. `region`: only this part of
    /// each cell, given by start and extent on each axis, slowest axis first. `out`: a contiguous
    /// array to fill.
    #[pyo3(signature = (start, stop, region=None, out=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        stop: u64,
        region: Option<(Vec<u64>, Vec<u64>)>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        read(py, &self.open(py)?, &Rows::Range(start..stop.max(start)), region, out)
    }

    /// Reads the cells of a list of rows (counted from 0, in any order) as an array: first the row,
    /// then the axes of a cell, slowest first. `region`: only this part of each cell, given by
    /// start and extent on each axis, slowest axis first. `out`: a contiguous array to fill.
    #[pyo3(signature = (rows, region=None, out=None))]
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u64>,
        region: Option<(Vec<u64>, Vec<u64>)>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        read(py, &self.open(py)?, &Rows::List(rows.as_slice()?), region, out)
    }

    /// The cell of a row, counted from 0, as an array; None if it is undefined. A scalar is an
    /// array without axes.
    fn cell<'py>(&self, py: Python<'py>, row: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let column = self.open(py)?;
        let Some(shape) = py.detach(|| column.cell_shape(row)).or_raise(py)? else { return Ok(None) };
        let cell = read(py, &column, &Rows::Range(row..row + 1), None, None)?;
        cell.call_method1("reshape", (shape.reversed(),)).map(Some)
    }

    /// Shapes of the cells of the rows from `start` up to but without `stop`, as an array (row,
    /// axis): extents with the slowest axis first, and -1 after a cell's last axis. Also returns a
    /// list with True for each defined cell.
    fn shapes<'py>(&self, py: Python<'py>, start: u64, stop: u64) -> PyResult<(Bound<'py, PyArray2<i64>>, Vec<bool>)> {
        let column = self.open(py)?;
        let shapes: Vec<Option<Shape>> = py
            .detach(|| (start..stop).map(|row| column.cell_shape(row)).collect::<ctds_hdf5::Result<_>>())
            .or_raise(py)?;
        let axes = shapes.iter().flatten().map(|shape| shape.len()).max().unwrap_or_default();
        let mut list = vec![-1; shapes.len() * axes];
        for (shape, out) in shapes.iter().zip(list.chunks_mut(axes.max(1))) {
            let extents = shape.iter().flat_map(|shape| shape.reversed());
            extents.zip(out).for_each(|(extent, out)| *out = extent as i64);
        }
        let array = list.into_pyarray(py).reshape([shapes.len(), axes])?;
        Ok((array, shapes.iter().map(Option::is_some).collect()))
    }

    /// The common shape of the cells of the rows from `start` up to but without `stop`, slowest
    /// axis first; raises if shapes differ or a cell is undefined.
    fn shape(&self, py: Python<'_>, start: u64, stop: u64) -> PyResult<Vec<u64>> {
        let column = self.open(py)?;
        Ok(py.detach(|| column.shape(start..stop)).or_raise(py)?.reversed())
    }
}

fn read<'py>(
    py: Python<'py>,
    column: &ctds_hdf5::Column<'_>,
    rows: &Rows<'_>,
    region: Option<(Vec<u64>, Vec<u64>)>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let region = region.map(|(start, shape)| Region::c_order(&start, &shape));
    let region = region.as_ref();
    let objects = || {
        if out.is_some() {
            return Err(PyTypeError::new_err("strings and records have no memory to be read into"));
        }
        match column.info().data_type() {
            DataType::String => strings(py, elements::<BString>(py, column, rows, region)?),
            _ => records(py, elements::<Record>(py, column, rows, region)?),
        }
    };
    for_numbers!(column.info().data_type(), T => match &out {
        Some(out) => read_into::<T>(py, column, rows, region, out),
        None => numbers::<T>(py, column, rows, region),
    }, objects())
}

fn elements<T: Element>(
    py: Python<'_>,
    column: &ctds_hdf5::Column<'_>,
    rows: &Rows<'_>,
    region: Option<&Region>,
) -> PyResult<ArrayD<T>> {
    let read = || match (rows, region) {
        (Rows::Range(rows), Some(region)) => column.parts(rows.clone(), region),
        (Rows::Range(rows), None) => column.rows(rows.clone()),
        (Rows::List(rows), Some(region)) => column.parts_at(rows, region),
        (Rows::List(rows), None) => column.rows_at(rows),
    };
    py.detach(read).or_raise(py)
}

/// Reads cells of numbers or Bools, or only the part `region` of each cell (fastest axis first),
/// into a new numpy array. Its axes are the row, then the axes of a cell, slowest first.
fn numbers<'py, T: Element + numpy::Element>(
    py: Python<'py>,
    column: &ctds_hdf5::Column<'_>,
    rows: &Rows<'_>,
    region: Option<&Region>,
) -> PyResult<Bound<'py, PyAny>> {
    let Rows::Range(range) = rows else {
        return Ok(elements::<T>(py, column, rows, region)?.into_pyarray(py).into_any());
    };
    // the shape of large columns costs nothing beside their cells
    let few = (range.end - range.start).saturating_mul(size_of::<T>() as u64) < STEP_BYTES as u64 / 1024;
    if few {
        return Ok(elements::<T>(py, column, rows, region)?.into_pyarray(py).into_any());
    }
    let cell = match region {
        Some(region) => region.shape.clone(),
        None => py.detach(|| column.shape(range.clone())).or_raise(py)?,
    };
    let axes: Vec<usize> =
        std::iter::once(range.end - range.start).chain(cell.reversed()).map(|len| len as usize).collect();
    let count = axes.iter().try_fold(1usize, |count, &len| count.checked_mul(len));
    let mut values = count
        .and_then(|count| column.buffer::<T>(count as u64).ok())
        .ok_or_else(|| PyMemoryError::new_err(format!("an array of shape {axes:?} exceeds the memory")))?;
    fill(py, column, rows, region, &mut values)?;
    let array =
        ArrayD::from_shape_vec(IxDyn(&axes), values).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(array.into_pyarray(py).into_any())
}

fn read_into<'py, T: Element + numpy::Element>(
    py: Python<'py>,
    column: &ctds_hdf5::Column<'_>,
    rows: &Rows<'_>,
    region: Option<&Region>,
    out: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = out.cast::<PyArrayDyn<T>>()?;
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err("the array to be filled is not contiguous"));
    }
    let mut borrowed = array.try_readwrite().map_err(|error| PyValueError::new_err(error.to_string()))?;
    fill(py, column, rows, region, borrowed.as_slice_mut()?)?;
    Ok(out.clone())
}

/// Reads cells of numbers or Bools, or only the part `region` of each cell, into `out`, in C order
/// with the row as the slowest axis. A large range of rows is read in steps, between which Python
/// signals are handled.
fn fill<T: Element>(
    py: Python<'_>,
    column: &ctds_hdf5::Column<'_>,
    rows: &Rows<'_>,
    region: Option<&Region>,
    out: &mut [T],
) -> PyResult<()> {
    let rows = match rows {
        Rows::Range(rows) => rows.clone(),
        Rows::List(rows) => return py.detach(|| column.read_at_into(rows, region, out)).or_raise(py),
    };
    let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
    let cell = out.len() / count.max(1);
    let step = (STEP_BYTES / (cell * size_of::<T>()).max(1)).max(1);
    if step >= count || cell * count != out.len() {
        return py.detach(|| column.read_into(rows, region, out)).or_raise(py);
    }
    let starts = rows.clone().step_by(step);
    for (start, part) in starts.zip(out.chunks_mut(step * cell)) {
        let end = rows.end.min(start + step as u64);
        py.detach(|| column.read_into(start..end, region, part)).or_raise(py)?;
        py.check_signals()?;
    }
    Ok(())
}
