//! Metadata documents of Zarr, version 2, for a manifest: arrays, groups, attributes.

use bstr::{BString, ByteSlice};
use serde_json::{Map, Value as Json, json};

use crate::h5::Compression;
use crate::value::{ByteOrder, DataType, Record, Shape, Value, Values};

/// Attribute with the axes of an array, slowest first, for xarray.
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

pub(super) fn group() -> Json {
    json!({ "zarr_format": 2 })
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArrayMetadata {
    /// Fastest axis first, as is `chunk`.
    pub(super) shape: Shape,
    pub(super) chunk: Shape,
    /// Numpy's spelling: `<f4`.
    pub(super) dtype: String,
    /// Named as in numcodecs, in the order in which a writer applies them.
    pub(super) filters: Vec<Json>,
}

impl ArrayMetadata {
    /// Filters and compressor are one list, because some readers take no compressor. The fill value
    /// is null: xarray would take every other one for a mask.
    pub(super) fn to_json(&self) -> Json {
        let chunk: Vec<u64> = self.chunk.reversed().into_iter().map(|extent| extent.max(1)).collect();
        let filters = if self.filters.is_empty() { Json::Null } else { self.filters.clone().into() };
        json!({
            "zarr_format": 2,
            "shape": self.shape.reversed(),
            "chunks": chunk,
            "dtype": self.dtype,
            "compressor": null,
            "fill_value": null,
            "order": "C",
            "filters": filters,
        })
    }
}

/// Numpy's spelling; `|O` (object) for strings, which the codec of [`strings`] decodes.
pub(super) fn dtype(data_type: DataType, order: ByteOrder) -> String {
    let end = if order == ByteOrder::Big { '>' } else { '<' };
    match data_type {
        DataType::Bool => "|b1".to_owned(),
        DataType::UChar => "|u1".to_owned(),
        DataType::Short => format!("{end}i2"),
        DataType::UShort => format!("{end}u2"),
        DataType::Int => format!("{end}i4"),
        DataType::UInt => format!("{end}u4"),
        DataType::Int64 => format!("{end}i8"),
        DataType::Float => format!("{end}f4"),
        DataType::Double => format!("{end}f8"),
        DataType::Complex => format!("{end}c8"),
        DataType::DComplex => format!("{end}c16"),
        DataType::String | DataType::Record => "|O".to_owned(),
    }
}

/// The codec `vlen-utf8`: the count of strings, then the length and the UTF-8 bytes of each.
pub(super) fn strings() -> Json {
    json!({ "id": "vlen-utf8" })
}

/// Numcodecs' configurations for [`Compression::gzip`].
pub(super) fn gzip(element_bytes: usize, level: u8) -> Vec<Json> {
    vec![json!({ "id": "shuffle", "elementsize": element_bytes }), json!({ "id": "zlib", "level": level })]
}

/// Numcodecs' configuration of an HDF5 filter, if it has one.
pub(super) fn filter(id: i32, parameters: &[u32], element_bytes: usize) -> Option<Json> {
    let parameter = |number: usize| parameters.get(number).copied();
    Some(match id {
        1 => json!({ "id": "zlib", "level": parameter(0).unwrap_or(1).min(9) }),
        2 => json!({ "id": "shuffle", "elementsize": parameter(0).map_or(element_bytes, |bytes| bytes as usize) }),
        3 => json!({ "id": "fletcher32" }),
        32001 => json!({ "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0 }),
        32015 => json!({ "id": "zstd", "level": parameter(0).unwrap_or(3) }),
        _ => return None,
    })
}

/// Advice on a filter that numcodecs lacks: the command that writes a file without such filters.
pub(super) fn recompress() -> String {
    format!("`h5bridge to-hdf5 --compress {}` writes a file that has none", Compression::gzip(4))
}

pub(super) fn attributes(record: &Record) -> Map<String, Json> {
    let field = |name: &BString, value: &Value| (name.to_str_lossy().into_owned(), attribute(value));
    record.fields.iter().map(|field_| field(&field_.name, &field_.value)).collect()
}

/// Axes `dims` are slowest first.
pub(super) fn array_attributes(record: Option<&Record>, dims: &[String]) -> Json {
    let mut found = record.map(attributes).unwrap_or_default();
    found.insert(DIMENSIONS.to_owned(), dims.into());
    found.into()
}

fn attribute(value: &Value) -> Json {
    match value {
        Value::Scalar(values) => elements(values).into_iter().next().unwrap_or(Json::Null),
        Value::Array(_, values) => elements(values).into(),
        Value::Table(stored) => stored.to_str_lossy().into(),
        Value::Record(record) => attributes(record).into(),
    }
}

fn elements(values: &Values) -> Vec<Json> {
    match values {
        Values::Bool(v) => v.iter().map(|&value| value.into()).collect(),
        Values::Float(v) => v.iter().map(|&value| float(value.into())).collect(),
        Values::Double(v) => v.iter().map(|&value| float(value)).collect(),
        Values::Complex(v) => {
            v.iter().map(|value| vec![float(value.re.into()), float(value.im.into())].into()).collect()
        }
        Values::DComplex(v) => v.iter().map(|value| vec![float(value.re), float(value.im)].into()).collect(),
        Values::String(v) => v.iter().map(|value| value.to_str_lossy().into()).collect(),
        Values::Record(v) => v.iter().map(|value| attributes(value).into()).collect(),
        integers => integers.integers().unwrap_or_default().into_iter().map(Json::from).collect(),
    }
}

/// Numbers that are not finite are the strings `NaN`, `Infinity` and `-Infinity`.
fn float(value: f64) -> Json {
    let word = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    if value.is_finite() { value.into() } else { word.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents() {
        let metadata = ArrayMetadata {
            shape: Shape::from([4, 64, 700]),
            chunk: Shape::from([4, 64, 512]),
            dtype: dtype(DataType::Complex, ByteOrder::Big),
            filters: Vec::new(),
        };
        let expected = r#"{"zarr_format":2,"shape":[700,64,4],"chunks":[512,64,4],"dtype":">c8","compressor":null,"fill_value":null,"order":"C","filters":null}"#;
        assert_eq!(metadata.to_json().to_string(), expected);
        let mut record = Record::default();
        record.set("units", Value::string("s"));
        record.set("limits", Value::Array(Shape::from([2]), Values::Double(vec![0.5, f64::NAN])));
        let found = array_attributes(Some(&record), &["row".to_owned()]).to_string();
        assert_eq!(found, r#"{"units":"s","limits":[0.5,"NaN"],"_ARRAY_DIMENSIONS":["row"]}"#);
    }

    #[test]
    fn filters_that_numcodecs_lacks() {
        assert_eq!(filter(2, &[8], 4), Some(json!({ "id": "shuffle", "elementsize": 8 })));
        assert_eq!(filter(32004, &[], 4), None);
    }
}
