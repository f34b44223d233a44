//! Other software in the same process.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Modules that hold casacore.
const CASACORE: [&str; 3] = ["casacore", "casatools", "arcae"];

/// Looks whether casacore is in this process: its locks on tables are then left alone. To be called before files are closed.
pub(crate) fn look(py: Python<'_>) {
    let loaded = || -> PyResult<bool> {
        let modules = py.import("sys")?.getattr("modules")?;
        let modules = modules.cast::<PyDict>()?;
        CASACORE.iter().try_fold(false, |found, name| Ok(found || modules.contains(name)?))
    };
    // the modules are gone when the interpreter ends
    if let Ok(loaded) = loaded() {
        ctds_hdf5::io::keep_lock_files(loaded);
    }
}
