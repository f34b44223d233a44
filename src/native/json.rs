//! Casacore records as JSON without loss: names, order, types, bits. docs/reference/layout.md,
//! "Exact values".

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};
use num_complex::Complex;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::error::{Error, Result};
use crate::hex::{self, Hex};
use crate::limits;
use crate::value::{DataType, Field, Record, Shape, Value, Values};

/// Pairs `[name, value]`; `table_name` returns `ANTENNA` for the stored `././ANTENNA`.
pub(crate) fn from_record(record: &Record, table_name: &dyn Fn(&[u8]) -> String) -> Json {
    let field = |field: &Field| {
        let mut value = from_value(&field.value, table_name);
        if !field.comment.is_empty() {
            value.insert("comment".into(), from_string(field.comment.as_bstr()));
        }
        json!([from_string(field.name.as_bstr()), value])
    };
    record.fields.iter().map(field).collect()
}

fn from_value(value: &Value, table_name: &dyn Fn(&[u8]) -> String) -> Map<String, Json> {
    let mut object = Map::new();
    let type_name = value.data_type().map_or("table", type_name);
    object.insert("type".into(), type_name.into());
    let value = match value {
        Value::Scalar(values) => from_element(values, 0),
        Value::Array(shape, values) => {
            object.insert("shape".into(), shape.reversed().into());
            (0..values.len()).map(|index| from_element(values, index)).collect()
        }
        Value::Record(nested) => from_record(nested, table_name),
        Value::Table(stored) => {
            object.insert("name".into(), table_name(stored).into());
            from_string(stored.as_bstr())
        }
    };
    object.insert("value".into(), value);
    object
}

/// python-casacore's name, except `bool` instead of `boolean`.
fn type_name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Bool => "bool",
        _ => data_type.name(),
    }
}

fn from_element(values: &Values, index: usize) -> Json {
    match values {
        Values::Bool(v) => v[index].into(),
        Values::UChar(v) => v[index].into(),
        Values::Short(v) => v[index].into(),
        Values::UShort(v) => v[index].into(),
        Values::Int(v) => v[index].into(),
        Values::UInt(v) => v[index].into(),
        Values::Int64(v) => v[index].into(),
        Values::Float(v) => from_f32(v[index]),
        Values::Double(v) => from_f64(v[index]),
        Values::Complex(v) => json!([from_f32(v[index].re), from_f32(v[index].im)]),
        Values::DComplex(v) => json!([from_f64(v[index].re), from_f64(v[index].im)]),
        Values::String(v) => from_string(v[index].as_bstr()),
        Values::Record(v) => from_record(&v[index], &|stored| stored.to_str_lossy().into_owned()),
    }
}

fn from_f32(value: f32) -> Json {
    if value.is_finite() { f64::from(value).into() } else { format!("{:#010x}", value.to_bits()).into() }
}

fn from_f64(value: f64) -> Json {
    if value.is_finite() { value.into() } else { format!("{:#018x}", value.to_bits()).into() }
}

/// `{"bytes": "hex…"}` if it is not UTF-8.
pub(crate) fn from_string(string: &BStr) -> Json {
    match string.to_str() {
        Ok(text) => text.into(),
        Err(_) => json!({ "bytes": Hex(string).to_string() }),
    }
}

pub(crate) fn to_record(json: &Json) -> Result<Record> {
    to_nested(json, 0)
}

fn to_nested(json: &Json, depth: usize) -> Result<Record> {
    limits::depth(depth, "records")?;
    let fields = json.as_array().ok_or_else(|| wrong(json, "an array of [name, value]"))?;
    let field = |field: &Json| -> Result<Field> {
        let [name, value] = field.as_array().map(Vec::as_slice).unwrap_or_default() else {
            return Err(wrong(field, "[name, value]"));
        };
        let comment = value.get("comment").map_or(Ok(BString::default()), to_string)?;
        Ok(Field { name: to_string(name)?, comment, value: to_value(value, depth)? })
    };
    Ok(Record { fields: fields.iter().map(field).collect::<Result<_>>()? })
}

fn to_value(json: &Json, depth: usize) -> Result<Value> {
    let type_name = json.get("type").and_then(Json::as_str).ok_or_else(|| wrong(json, "an object with a type"))?;
    let value = json.get("value").ok_or_else(|| wrong(json, "an object with a value"))?;
    let data_type = match type_name {
        "table" => return Ok(Value::Table(to_string(value)?)),
        "bool" => DataType::Bool,
        name => DataType::from_name(name).ok_or_else(|| wrong(json, "a known type"))?,
    };
    let mut values = Values::new(data_type);
    match json.get("shape") {
        Some(shape) => {
            let extents: Option<Vec<u64>> =
                shape.as_array().and_then(|extents| extents.iter().map(Json::as_u64).collect());
            let shape = Shape::from_reversed(&extents.ok_or_else(|| wrong(shape, "a shape"))?);
            let elements = value.as_array().ok_or_else(|| wrong(value, "an array of elements"))?;
            let expected = if shape.is_empty() { 0 } else { shape.elements()? };
            if elements.len() as u64 != expected {
                return Err(wrong(json, "as many elements as the shape says"));
            }
            elements.iter().try_for_each(|element| push_element(&mut values, element, depth))?;
            Ok(Value::Array(shape, values))
        }
        None if data_type == DataType::Record => Ok(Value::Record(to_nested(value, depth + 1)?)),
        None => {
            push_element(&mut values, value, depth)?;
            Ok(Value::Scalar(values))
        }
    }
}

fn push_element(values: &mut Values, json: &Json, depth: usize) -> Result<()> {
    if let Values::String(v) = values {
        v.push(to_string(json)?);
        return Ok(());
    }
    if let Values::Record(v) = values {
        v.push(to_nested(json, depth + 1)?);
        return Ok(());
    }
    let pushed = match values {
        Values::Bool(v) => json.as_bool().map(|x| v.push(x)),
        Values::UChar(v) => integer(json).map(|x| v.push(x)),
        Values::Short(v) => integer(json).map(|x| v.push(x)),
        Values::UShort(v) => integer(json).map(|x| v.push(x)),
        Values::Int(v) => integer(json).map(|x| v.push(x)),
        Values::UInt(v) => integer(json).map(|x| v.push(x)),
        Values::Int64(v) => integer(json).map(|x| v.push(x)),
        Values::Float(v) => to_f32(json).map(|x| v.push(x)),
        Values::Double(v) => to_f64(json).map(|x| v.push(x)),
        Values::Complex(v) => pair(json, to_f32).map(|x| v.push(x)),
        Values::DComplex(v) => pair(json, to_f64).map(|x| v.push(x)),
        Values::String(_) | Values::Record(_) => None,
    };
    pushed.ok_or_else(|| wrong(json, values.data_type().name()))
}

fn integer<T: TryFrom<i64>>(json: &Json) -> Option<T> {
    T::try_from(json.as_i64()?).ok()
}

fn to_f32(json: &Json) -> Option<f32> {
    match json {
        Json::String(bits) => u32::from_str_radix(bits.strip_prefix("0x")?, 16).ok().map(f32::from_bits),
        _ => json.as_f64().map(|x| x as f32),
    }
}

fn to_f64(json: &Json) -> Option<f64> {
    match json {
        Json::String(bits) => u64::from_str_radix(bits.strip_prefix("0x")?, 16).ok().map(f64::from_bits),
        _ => json.as_f64(),
    }
}

fn pair<T>(json: &Json, part: impl Fn(&Json) -> Option<T>) -> Option<Complex<T>> {
    let [re, im] = json.as_array()?.as_slice() else { return None };
    Some(Complex { re: part(re)?, im: part(im)? })
}

pub(crate) fn to_string(json: &Json) -> Result<BString> {
    if let Some(text) = json.as_str() {
        return Ok(text.into());
    }
    let bytes = json.get("bytes").and_then(Json::as_str).and_then(hex::parse);
    bytes.map(BString::from).ok_or_else(|| wrong(json, "a string"))
}

/// As it is, or `{"bytes": "hex…"}` if it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct JsonString(pub(crate) BString);

impl From<&BStr> for JsonString {
    fn from(string: &BStr) -> Self {
        JsonString(string.to_owned())
    }
}

impl From<&BString> for JsonString {
    fn from(string: &BString) -> Self {
        JsonString(string.clone())
    }
}

impl Serialize for JsonString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        from_string(self.0.as_bstr()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        to_string(&Json::deserialize(deserializer)?).map(JsonString).map_err(D::Error::custom)
    }
}

/// Kept as JSON until [`record`](Self::record) decodes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct JsonRecord(Json);

impl Default for JsonRecord {
    fn default() -> Self {
        JsonRecord(Json::Array(Vec::new()))
    }
}

impl JsonRecord {
    /// `table_name` returns `ANTENNA` for the stored `././ANTENNA`.
    pub(crate) fn new(record: &Record, table_name: &dyn Fn(&[u8]) -> String) -> Self {
        JsonRecord(from_record(record, table_name))
    }

    pub(crate) fn record(&self) -> Result<Record> {
        to_record(&self.0)
    }

    /// Last component (`ANTENNA`) by the stored reference (`././ANTENNA`).
    pub(crate) fn collect_table_names(&self, names: &mut HashMap<BString, String>) {
        collect_names(&self.0, names);
    }
}

fn collect_names(record: &Json, names: &mut HashMap<BString, String>) {
    for field in record.as_array().into_iter().flatten() {
        let Some(value) = field.get(1) else { continue };
        match value.get("type").and_then(Json::as_str) {
            Some("table") => {
                let stored = value.get("value").and_then(|stored| to_string(stored).ok());
                let name = value.get("name").and_then(Json::as_str);
                if let (Some(stored), Some(name)) = (stored, name) {
                    names.insert(stored, name.to_owned());
                }
            }
            Some("record") => collect_names(&value["value"], names),
            _ => {}
        }
    }
}

pub(crate) fn decode<T: DeserializeOwned>(text: &[u8]) -> Result<T> {
    let document: Json = serde_json::from_slice(text)
        .map_err(|error| Error::format(format!("the text is not JSON: {error}")).caused_by(error))?;
    serde_json::from_value(document).map_err(|error| Error::format(error.to_string()).caused_by(error))
}

pub(crate) fn encode(document: &impl Serialize) -> Result<String> {
    serde_json::to_string(document).map_err(|error| Error::format(error.to_string()).caused_by(error))
}

fn wrong(json: &Json, expected: &str) -> Error {
    let mut text = json.to_string();
    if text.len() > 80 {
        text = text.chars().take(80).chain(['…']).collect();
    }
    Error::format(format!("found {text}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives() {
        let mut record = Record::default();
        let arrays = [
            Values::Bool(vec![true, false]),
            Values::UChar(vec![0, 255]),
            Values::Short(vec![i16::MIN, i16::MAX]),
            Values::UShort(vec![0, u16::MAX]),
            Values::Int(vec![i32::MIN, i32::MAX]),
            Values::UInt(vec![0, u32::MAX]),
            Values::Int64(vec![i64::MIN, i64::MAX]),
            Values::Float(vec![0.1, -0.0]),
            Values::Double(vec![0.1, f64::MIN_POSITIVE / 3.]),
            Values::Complex(vec![Complex::new(1.1, f32::INFINITY), Complex::new(-0.0, 2.)]),
            Values::DComplex(vec![Complex::new(1.1, f64::NEG_INFINITY), Complex::new(-0.0, 2.)]),
            Values::String(vec!["é\0".into(), b"\xff\xfe".as_slice().into()]),
        ];
        for values in arrays {
            let name = values.data_type().name();
            let mut one = Values::new(values.data_type());
            one.extend_from(&values, 1..2).unwrap();
            record.set(format!("scalar {name}"), Value::Scalar(one));
            record.set(format!("array {name}"), Value::Array(Shape::from([1, 2]), values));
        }
        record.set("empty", Value::Array(Shape::scalar(), Values::Int(vec![])));
        record.set("sub", Value::Table("././SUB".into()));
        record.set("nested", Value::Record(record.clone()));
        record.fields[0].comment = "why".into();
        let json = from_record(&record, &|_| "SUB".into()).to_string();
        assert_eq!(to_record(&serde_json::from_str(&json).unwrap()).unwrap(), record);
    }

    #[test]
    fn nan_keeps_its_bits() {
        let bits = 0x7ff8_0000_dead_beef;
        let mut record = Record::default();
        record.set("x", Value::Scalar(Values::Double(vec![f64::from_bits(bits)])));
        let json = from_record(&record, &|_| String::new()).to_string();
        let Some(Value::Scalar(Values::Double(v))) =
            to_record(&serde_json::from_str(&json).unwrap()).unwrap().get("x").cloned()
        else {
            panic!()
        };
        assert_eq!(v[0].to_bits(), bits);
    }

    #[test]
    fn names_of_subtables_come_from_the_document() {
        let mut record = Record::default();
        record.set("SUB", Value::Table("inner/.".into()));
        let mut outer = Record::default();
        outer.set("nested", Value::Record(record));
        let mut names = HashMap::new();
        JsonRecord::new(&outer, &|_| "p.tab".into()).collect_table_names(&mut names);
        assert_eq!(names[&BString::from("inner/.")], "p.tab");
    }
}
