//! A MeasurementSet in the schema MSv4: its datasets as dicts, and parts of their variables.

use ctds_hdf5::msv4::{Attribute, Content, Dataset, Options, Part, ProcessingSet, Variable};
use ctds_hdf5::value::{Shape, Values};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::OrRaise;
use crate::keywords::array;
use crate::source::Source;

/// A processing set of an open source.
#[pyclass(frozen, module = "h5bridge._native")]
pub(crate) struct Msv4 {
    source: Py<Source>,
    set: ProcessingSet,
}

#[pymethods]
impl Msv4 {
    /// Partitions the main table of a source. `name` begins the names of the partitions,
    /// `partition_schema` lists further columns by which rows are separated, and `date` is the date
    /// of creation for the attributes.
    #[new]
    fn new(
        py: Python<'_>,
        source: Py<Source>,
        name: String,
        partition_schema: Vec<String>,
        date: String,
    ) -> PyResult<Self> {
        let options = Options { name, partition_schema, date };
        let opened = source.get().source.clone();
        let set = py.detach(|| ProcessingSet::read(&*opened, &options)).or_raise(py)?;
        Ok(Msv4 { source, set })
    }

    /// Sentences on what was left out, or could not be said in the schema.
    fn warnings(&self) -> Vec<String> {
        self.set.warnings.clone()
    }

    /// All datasets, each as a dict of its `path`, `attributes`, `coordinates` and `variables`.
    /// Variables that are not on the grid of times and baselines have `values`.
    fn datasets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (number, partition) in self.set.partitions.iter().enumerate() {
            for (place, of) in partition.datasets.iter().enumerate() {
                list.append(dataset(py, (number, place), of)?)?;
            }
        }
        Ok(list)
    }

    /// A part of a variable on the grid of times and baselines. `partition`, `dataset` and
    /// `variable` are places in their lists; `times` and `baselines` list the wanted places of the
    /// first two axes; `start` and `extent` are those of the further axes, slowest first.
    #[expect(clippy::too_many_arguments, reason = "a part of an array has that many sides")]
    fn read<'py>(
        &self,
        py: Python<'py>,
        partition: usize,
        dataset: usize,
        variable: usize,
        times: Vec<usize>,
        baselines: Vec<usize>,
        start: Vec<u64>,
        extent: Vec<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let missing = || PyKeyError::new_err("no such variable");
        let found = self.set.partitions.get(partition).ok_or_else(missing)?;
        let of = found.datasets.get(dataset).ok_or_else(missing)?.variables.get(variable).ok_or_else(missing)?;
        let part = Part { times: &times, baselines: &baselines, start: &start, extent: &extent };
        let opened = &self.source.get().source;
        let values = py.detach(|| found.read(&**opened, of, part)).or_raise(py)?;
        let mut axes = vec![times.len() as u64, baselines.len() as u64];
        axes.extend(&extent);
        array(py, &Shape::from_reversed(&axes), values)
    }
}

fn dataset<'py>(py: Python<'py>, place: (usize, usize), of: &Dataset) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("place", place)?;
    found.set_item("path", &of.path)?;
    found.set_item("attributes", document(py, &of.attributes)?)?;
    for (key, list) in [("coordinates", &of.coordinates), ("variables", &of.variables)] {
        let variables: Vec<_> = list.iter().map(|of| variable(py, of)).collect::<PyResult<_>>()?;
        found.set_item(key, variables)?;
    }
    Ok(found)
}

fn variable<'py>(py: Python<'py>, of: &Variable) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("name", &of.name)?;
    found.set_item("axes", &of.axes)?;
    found.set_item("shape", &of.shape)?;
    found.set_item("type", of.data_type.name())?;
    found.set_item("attributes", document(py, &of.attributes)?)?;
    if let Content::Values(values) = &of.content {
        found.set_item("values", labelled(py, &of.shape, values)?)?;
    }
    Ok(found)
}

/// An array; that of strings has a fixed length, as the schema asks for.
fn labelled<'py>(py: Python<'py>, shape: &[u64], values: &Values) -> PyResult<Bound<'py, PyAny>> {
    let found = array(py, &Shape::from_reversed(shape), values.clone())?;
    match values {
        Values::String(_) => found.call_method1("astype", ("U",)),
        _ => Ok(found),
    }
}

fn document<'py>(py: Python<'py>, attributes: &[(String, Attribute)]) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, value) in attributes {
        found.set_item(name, attribute(py, value)?)?;
    }
    Ok(found)
}

fn attribute<'py>(py: Python<'py>, value: &Attribute) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Attribute::Bool(value) => value.into_bound_py_any(py),
        Attribute::Float(value) => value.into_bound_py_any(py),
        Attribute::Text(text) => text.into_bound_py_any(py),
        Attribute::List(list) => {
            let list: Vec<_> = list.iter().map(|value| attribute(py, value)).collect::<PyResult<_>>()?;
            list.into_bound_py_any(py)
        }
        Attribute::Dictionary(pairs) => Ok(document(py, pairs)?.into_any()),
        _ => Ok(py.None().into_bound(py)),
    }
}
