//! Turns errors of the library into exceptions of the Python package `h5bridge`.

use std::path::Path;

use ctds_hdf5::{Context, Error, ErrorKind};
use h5bridge::Status;
use pyo3::prelude::*;

/// The Python exception for an error of the library; its class is chosen in `h5bridge._errors`.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let path = error.contexts().find_map(|context| match context {
        Context::Path(path) => Some(path.as_path()),
        _ => None,
    });
    exception(py, error.kind(), &error.to_string(), path).unwrap_or_else(|error| error)
}

fn exception(py: Python<'_>, kind: ErrorKind, message: &str, path: Option<&Path>) -> PyResult<PyErr> {
    let code = Status::of_kind(kind).code();
    let module = py.import("h5bridge._errors")?;
    let exception =
        module.call_method1("exception", (format!("{kind:?}"), code, message, path.map(Path::as_os_str)))?;
    Ok(PyErr::from_value(exception))
}

/// Extension of a library `Result`: turns its error into a Python exception.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for ctds_hdf5::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raise(py, &error))
    }
}
