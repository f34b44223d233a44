//! Detects whether casacore is loaded in the Python process, because this extension must not
//! release casacore's table locks.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Names of Python modules that contain casacore.
const CASACORE: [&str; 3] = ["casacore", "casatools", "arcae"];

/// Checks whether casacore is loaded in this process. If so, this library no longer closes its
/// descriptors of `table.lock`: closing one would release casacore's locks on the file. To be
/// called before files are closed.
pub(crate) fn look(py: Python<'_>) {
    // an object may be dropped while an exception is on its way, which calls of Python would lose
    let raised = PyErr::take(py);
    let loaded = || -> PyResult<bool> {
        let modules = py.import("sys")?.getattr("modules")?;
        let modules = modules.cast::<PyDict>()?;
        CASACORE.iter().try_fold(false, |found, name| Ok(found || modules.contains(name)?))
    };
    // the modules are gone when the interpreter ends
    if let Ok(loaded) = loaded() {
        ctds_hdf5::io::keep_lock_files(loaded);
    }
    if let Some(raised) = raised {
        raised.restore(py);
    }
}
