//! The extension module of the Python package `h5bridge`: offers the Rust library in Python's
//! types, without logic of its own.

mod call;
mod column;
mod error;
mod interpreter;
mod keywords;
mod live;
mod msv4;
mod others;
mod outline;
mod source;
mod writer;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use pyo3::prelude::*;

    /// Returns the end of an error message about an unknown name `word`: it suggests the most
    /// similar of `names`, or lists them all.
    #[pyfunction]
    fn instead(word: &str, names: Vec<String>) -> String {
        ctds_hdf5::program::instead(word, names)
    }

    #[pymodule_export]
    use crate::call::{call, main};
    #[pymodule_export]
    use crate::column::Column;
    #[pymodule_export]
    use crate::live::{LiveReader, LiveWriter};
    #[pymodule_export]
    use crate::msv4::Msv4;
    #[pymodule_export]
    use crate::outline::{hypercube_part, hypercube_rows, outline, stored_cells};
    #[pymodule_export]
    use crate::source::Source;
    #[pymodule_export]
    use crate::writer::NewTableWriter;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::interpreter::claim(module.py())
    }
}
