//! Converts keywords and record cells to dicts and back, and their elements to Python objects.

use ctds_hdf5::ndarray::{ArrayD, IxDyn};
use ctds_hdf5::value::{BString, Complex32, Complex64, Record, Shape, Value, Values};
use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyString};

/// A casacore string, which is bytes, as a `str`: bytes that are not UTF-8 become surrogates, as in
/// file names.
pub(crate) fn string<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogateescape")),
    }
}

/// Converts a record to a dict with its fields in order.
pub(crate) fn dict<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for field in &record.fields {
        dict.set_item(string(py, &field.name)?, value(py, &field.value)?)?;
    }
    Ok(dict)
}

fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Scalar(values) => scalar(py, values),
        Value::Array(shape, values) => array(py, shape, values.clone()),
        Value::Record(record) => Ok(dict(py, record)?.into_any()),
        // as casacore prints it
        Value::Table(stored) => string(py, &[b"Table: ", stored.as_slice()].concat()),
    }
}

/// Converts a scalar, the first element of `values`, to a Python object.
fn scalar<'py>(py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyAny>> {
    fn first<T: Copy>(values: &[T]) -> PyResult<T> {
        values.first().copied().ok_or_else(|| PyValueError::new_err("a scalar without an element"))
    }
    match values {
        Values::Bool(v) => first(v)?.into_bound_py_any(py),
        Values::UChar(v) => first(v)?.into_bound_py_any(py),
        Values::Short(v) => first(v)?.into_bound_py_any(py),
        Values::UShort(v) => first(v)?.into_bound_py_any(py),
        Values::Int(v) => first(v)?.into_bound_py_any(py),
        Values::UInt(v) => first(v)?.into_bound_py_any(py),
        Values::Int64(v) => first(v)?.into_bound_py_any(py),
        Values::Float(v) => first(v)?.into_bound_py_any(py),
        Values::Double(v) => first(v)?.into_bound_py_any(py),
        Values::Complex(v) => first(v).map(|v| PyComplex::from_doubles(py, v.re.into(), v.im.into()).into_any()),
        Values::DComplex(v) => first(v).map(|v| PyComplex::from_doubles(py, v.re, v.im).into_any()),
        Values::String(v) => string(py, v.first().map_or(&[], |text| text.as_slice())),
        Values::Record(v) => Ok(dict(py, v.first().unwrap_or(&Record::default()))?.into_any()),
    }
}

/// Makes a numpy array of elements in casacore's order: the first axis of `shape` is the last of
/// the array.
pub(crate) fn array<'py>(py: Python<'py>, shape: &Shape, values: Values) -> PyResult<Bound<'py, PyAny>> {
    fn shaped<T>(shape: &Shape, values: Vec<T>) -> PyResult<ArrayD<T>> {
        // an array without elements may come without axes
        let axes = if values.is_empty() && shape.is_empty() { vec![0] } else { shape.reversed() };
        let axes: Vec<usize> = axes.into_iter().map(|extent| extent as usize).collect();
        ArrayD::from_shape_vec(IxDyn(&axes), values).map_err(|error| PyValueError::new_err(error.to_string()))
    }
    match values {
        Values::Bool(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::UChar(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::Short(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::UShort(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::Int(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::UInt(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::Int64(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::Float(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::Double(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::Complex(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::DComplex(v) => Ok(shaped(shape, v)?.into_pyarray(py).into_any()),
        Values::String(v) => strings(py, shaped(shape, v)?),
        Values::Record(v) => records(py, shaped(shape, v)?),
    }
}

/// Makes a numpy array of `str` objects.
pub(crate) fn strings(py: Python<'_>, array: ArrayD<BString>) -> PyResult<Bound<'_, PyAny>> {
    objects(py, array, |text| Ok(string(py, &text)?.unbind()))
}

/// Makes a numpy array of dicts, from record cells.
pub(crate) fn records(py: Python<'_>, array: ArrayD<Record>) -> PyResult<Bound<'_, PyAny>> {
    objects(py, array, |record| Ok(dict(py, &record)?.into_any().unbind()))
}

fn objects<T>(
    py: Python<'_>,
    array: ArrayD<T>,
    object: impl Fn(T) -> PyResult<Py<PyAny>>,
) -> PyResult<Bound<'_, PyAny>> {
    let axes = array.raw_dim();
    let list: Vec<Py<PyAny>> = array.into_iter().map(object).collect::<PyResult<_>>()?;
    let objects = ArrayD::from_shape_vec(axes, list).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(objects.into_pyarray(py).into_any())
}

/// Converts a dict to a record of keywords: its values may be numbers, strings, numpy arrays, lists
/// and dicts.
pub(crate) fn record(dict: &Bound<'_, PyDict>) -> PyResult<Record> {
    let mut record = Record::default();
    for (name, given) in dict.iter() {
        let name: String = name.extract()?;
        let value = value_of(&given).map_err(|_| {
            PyTypeError::new_err(format!("keyword {name}: {} cannot be kept in a table", given.get_type()))
        })?;
        record.set(name, value);
    }
    Ok(record)
}

fn value_of(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(dict) = given.cast::<PyDict>() {
        return Ok(Value::Record(record(dict)?));
    }
    if given.is_instance_of::<PyBool>() {
        return Ok(Value::Scalar(Values::Bool(vec![given.extract()?])));
    }
    if given.is_instance_of::<PyInt>() {
        return Ok(Value::Scalar(match given.extract::<i32>() {
            Ok(small) => Values::Int(vec![small]),
            Err(_) => Values::Int64(vec![given.extract()?]),
        }));
    }
    if given.is_instance_of::<PyFloat>() {
        return Ok(Value::Scalar(Values::Double(vec![given.extract()?])));
    }
    if let Ok(complex) = given.cast::<PyComplex>() {
        return Ok(Value::Scalar(Values::DComplex(vec![Complex64::new(complex.real(), complex.imag())])));
    }
    if given.is_instance_of::<PyString>() {
        return Ok(Value::string(given.extract::<String>()?));
    }
    let (shape, values) = values_of(given)?;
    Ok(if shape.is_empty() { Value::Scalar(values) } else { Value::Array(shape, values) })
}

/// Converts a list or numpy array to elements and their shape (first axis fastest, casacore's
/// order).
pub(crate) fn values_of(given: &Bound<'_, PyAny>) -> PyResult<(Shape, Values)> {
    let array = given.py().import("numpy")?.call_method1("ascontiguousarray", (given,))?;
    let axes: Vec<u64> = given.py().import("numpy")?.call_method1("shape", (given,))?.extract()?;
    let shape = Shape::from_reversed(&axes);
    macro_rules! numbers {
        ($($rust:ty => $variant:ident),*) => {$(
            if let Ok(array) = array.cast::<PyArrayDyn<$rust>>() {
                return Ok((shape, Values::$variant(array.to_vec()?)));
            }
        )*};
    }
    numbers!(bool => Bool, u8 => UChar, i16 => Short, u16 => UShort, i32 => Int, u32 => UInt, i64 => Int64, f32 => Float,
        f64 => Double, Complex32 => Complex, Complex64 => DComplex);
    let strings: Vec<String> = array.call_method0("ravel")?.call_method0("tolist")?.extract()?;
    Ok((shape, Values::String(strings.into_iter().map(BString::from).collect())))
}
