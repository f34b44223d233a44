//! Refuses a second Python interpreter in the process: only one may load the extension.

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Refuses all interpreters of the process but the first, as objects that the extension keeps belong to it. From Python 3.12
/// on, PyO3 already refuses them.
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
