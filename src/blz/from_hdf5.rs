//! Reads arrays from HDF5: each is a dataset, of any HDF5 file or of a converted one. A converted
//! file, table or array was made from BLZ, bcolz or bloscpack.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blosc_arrays::array::{ARRAY, Array, Stored, chunk_rows, row_bytes};
use blosc_arrays::dtype::Dtype;
use blosc_arrays::json::Document;
use serde_json::{Map, Value as Json};

use super::element::{dtype_of, element_of};
use super::rows::DatasetRows;
use crate::container::{self, Hdf5Kind};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::h5::{self, Attribute, Group, LinkKind};
use crate::io::{FileSource, ReadAt};
use crate::suggest::instead;
use crate::value::Values;

/// Root attribute of a converted file: the version of its layout.
pub(super) const MARK: &str = "ctds_arrays";

pub(super) const VERSION: i64 = 1;

/// Root attribute of a converted table: the names of its columns.
pub(super) const COLUMNS: &str = "columns";

/// Root attribute of a converted file: the name of the original format, such as `bcolz`.
pub(super) const FORMAT: &str = "blz_format";

/// Attribute of a converted array: the element type in the spelling of the original array.
pub(super) const DTYPE: &str = "blz_dtype";

/// JSON document `meta/storage` of an array, or the metadata in a single file of chunks.
pub(super) const STORAGE: &str = "blz_storage_json";

/// JSON text of the user's attributes, of an array or, on the root group, of a table.
pub(super) const ATTRIBUTES: &str = "blz_attributes_json";

/// Path of an HDF5 file and path inside it, or empty; `None` for another file, or a container in
/// which other files are packed.
pub(super) fn hdf5_at(path: &Path) -> Option<(PathBuf, String)> {
    let file = path.ancestors().find(|prefix| prefix.is_file())?;
    let inside = path.strip_prefix(file).ok()?.to_str()?;
    let is_plain = container::hdf5_kind(file).ok()? == Some(Hdf5Kind::Plain);
    is_plain.then(|| (file.to_owned(), inside.to_owned()))
}

/// Whether `path` is, or leads into, a converted file.
pub(super) fn is_marked(path: &Path) -> bool {
    let Some((file, _)) = hdf5_at(path) else { return false };
    h5::File::names_in_root(&file).is_ok_and(|(_, attributes)| attributes.iter().any(|name| name == MARK))
}

/// Column names and attributes only for the columns of a table.
pub(super) struct Found {
    pub(super) columns: Option<Vec<String>>,
    pub(super) attributes: Option<Document>,
    pub(super) arrays: Vec<Array>,
    pub(super) format: Option<String>,
}

/// One dataset or, if `inside` is empty, all arrays. `NotFound` if the path leads to nothing;
/// `Unsupported` for elements that numpy has nothing like; `Usage` for several datasets without a
/// path.
pub(super) fn open(path: &Path, inside: &str) -> Result<Found> {
    let file = Arc::new(h5::File::open(path)?);
    let source: Arc<dyn ReadAt> = Arc::new(FileSource::open(path)?);
    let root = file.root()?;
    let format = text(root.attribute(FORMAT)?);
    let array = |name: &str, path: &str| {
        let opened = || open_dataset(&file, &source, &root, path, name);
        opened().with_context(|| Context::member(path))
    };
    if !inside.is_empty() {
        let name = inside.rsplit('/').next().unwrap_or(inside);
        check_exists(&root, inside)?;
        return Ok(Found { columns: None, attributes: None, arrays: vec![array(name, inside)?], format });
    }
    if let Some(Attribute::Array(Values::String(names))) = root.attribute(COLUMNS)? {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let arrays = names.iter().map(|name| array(name, name)).collect::<Result<_>>()?;
        let attributes = user_attributes(&root.attributes()?, |name| root.attribute(name))?;
        return Ok(Found { columns: Some(names), attributes, arrays, format });
    }
    let links = root.links()?.into_iter();
    let datasets: Vec<String> = links.filter(|(_, kind)| *kind == LinkKind::Dataset).map(|(name, _)| name).collect();
    match &datasets[..] {
        [only] => Ok(Found { columns: None, attributes: None, arrays: vec![array(ARRAY, only)?], format }),
        _ => {
            let example = format!("{}/GROUP/DATASET", path.display());
            let message = format!("{} datasets in the root of an HDF5 file: name one, {example}", datasets.len());
            Err(Error::usage(message))
        }
    }
}

/// Fails at the first component of `path` that leads to nothing, and suggests a similar name.
fn check_exists(root: &Group, path: &str) -> Result<()> {
    let mut group = root.root()?;
    let mut names = path.split('/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        let links = group.links()?;
        if !links.iter().any(|(link, _)| link == name) {
            let known = links.iter().map(|(link, _)| link);
            return Err(Error::not_found(format!("no {name} in group {}{}", group.path(), instead(name, known))));
        }
        if names.peek().is_some() {
            group = group.group(name)?;
        }
    }
    Ok(())
}

fn text(attribute: Option<Attribute>) -> Option<String> {
    match attribute {
        Some(Attribute::Scalar(Values::String(text))) => text.first().map(ToString::to_string),
        _ => None,
    }
}

/// The user's attributes of an array: the JSON document kept by the conversion, else an object of
/// all attributes that this program did not set; `None` without any.
fn user_attributes(names: &[String], get: impl Fn(&str) -> Result<Option<Attribute>>) -> Result<Option<Document>> {
    if let Some(text) = text(get(ATTRIBUTES)?) {
        return Document::decode(text.as_bytes()).context(ATTRIBUTES).map(Some);
    }
    let mut members = Map::new();
    let ours = [MARK, COLUMNS, FORMAT, DTYPE, STORAGE];
    for name in names.iter().filter(|name| !ours.contains(&name.as_str())) {
        // values that JSON cannot have stay in HDF5: references, for instance
        if let Ok(Some(attribute)) = get(name)
            && let Some(value) = to_json(&attribute)
        {
            members.insert(name.clone(), value);
        }
    }
    Ok((!members.is_empty()).then(|| Document::new(Json::Object(members))))
}

fn to_json(attribute: &Attribute) -> Option<Json> {
    let mut values: Vec<Json> = match attribute.values() {
        Values::Bool(values) => values.iter().map(|&value| value.into()).collect(),
        Values::Short(values) => values.iter().map(|&value| value.into()).collect(),
        Values::UShort(values) => values.iter().map(|&value| value.into()).collect(),
        Values::Int(values) => values.iter().map(|&value| value.into()).collect(),
        Values::UInt(values) => values.iter().map(|&value| value.into()).collect(),
        Values::Int64(values) => values.iter().map(|&value| value.into()).collect(),
        Values::UChar(values) => values.iter().map(|&value| value.into()).collect(),
        Values::Float(values) => values.iter().map(|&value| finite(value.into())).collect::<Option<_>>()?,
        Values::Double(values) => values.iter().map(|&value| finite(value)).collect::<Option<_>>()?,
        Values::String(values) => values.iter().map(|value| value.to_string().into()).collect(),
        _ => return None,
    };
    match attribute {
        Attribute::Scalar(_) => values.pop(),
        Attribute::Array(_) => Some(values.into()),
    }
}

fn finite(value: f64) -> Option<Json> {
    value.is_finite().then(|| value.into())
}

fn open_dataset(file: &Arc<h5::File>, source: &Arc<dyn ReadAt>, root: &Group, path: &str, name: &str) -> Result<Array> {
    let dataset = root.dataset(path)?;
    let shape = dataset.shape()?.reversed();
    if shape.is_empty() {
        return Err(Error::unsupported("the dataset has no axes, as an array has"));
    }
    let (dtype, dtype_text, element) = match text(dataset.attribute(DTYPE)?) {
        Some(text) => {
            let dtype = text.parse::<Dtype>().context(DTYPE)?;
            let element = element_of(&dtype)?;
            if !dataset.stores(&element)? {
                let message = format!("{DTYPE} is {text}, but the dataset has other elements");
                return Err(Error::format(message));
            }
            (dtype, text, element)
        }
        None => {
            let element = dataset.element()?;
            let dtype = dtype_of(&element);
            let text = dtype.to_string();
            (dtype, text, element)
        }
    };
    let row_bytes = row_bytes(&dtype, &shape)?;
    let storage = text(dataset.attribute(STORAGE)?);
    let storage = storage.map(|text| Document::decode(text.as_bytes()).context(STORAGE)).transpose()?;
    let attributes = user_attributes(&dataset_attributes(root, path)?, |name| dataset.attribute(name))?;
    let rows = DatasetRows::new(file, source, dataset, element, &dtype, &shape, row_bytes)?;
    let chunk_rows = storage.as_ref().and_then(|storage| chunk_rows(&storage.value)).unwrap_or(rows.chunk_rows());
    Ok(Array {
        name: name.to_owned(),
        dtype,
        dtype_text,
        row_bytes,
        shape,
        chunk_rows,
        storage,
        attributes,
        is_fortran: false,
        stored: Stored::Rows(Box::new(rows)),
    })
}

/// Empty if the dataset is not found.
fn dataset_attributes(root: &Group, path: &str) -> Result<Vec<String>> {
    match root.header(path) {
        Ok(header) => header.attributes(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
