//! Refuses a second Python interpreter in the process: only one may load the extension.

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Fails if another Python interpreter of this process has already loaded the extension, because
/// the objects that the extension keeps belong to that interpreter. From Python 3.12 on, PyO3
/// itself refuses the second one.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    static HOME: OnceLock<usize> = OnceLock::new();
    // each interpreter has its own
    let here = py.import("builtins")?.as_ptr() as usize;
    if *HOME.get_or_init(|| here) == here {
        Ok(())
    } else {
        Err(PyImportError::new_err(
            "h5bridge cannot be loaded in two interpreters of a process: it is loaded in another one",
        ))
    }
}
