//! Makes a table as a script on stdin says: one operation a line, each a JSON object with `op`.
//! Tests use it, so that python-casacore can judge what this crate writes.
//!
//! ```text
//! {"op": "create", "path": "x.tab", "order": "big", "type": "", "subtype": "", "readme": "", "keywords": {…},
//!  "private_keywords": {…}, "columns": [COLUMN …], "managers": [{…MANAGER, "columns": ["A", "B"]} …]}
//! {"op": "add_rows", "count": 10}
//! {"op": "put", "column": "A", "row": 0, "rows": 2, "shape": [2, 3], "values": [12 elements]}     shape [] for scalars
//! {"op": "put_part", "column": "A", "row": 0, "start": [0, 0], "shape": [1, 3], "values": [3 elements]}
//! {"op": "put_tile", "column": "A", "cube": 0, "index": [0, 0, 0], "values": [all elements of a tile]}
//! {"op": "set_shape", "column": "A", "row": 0, "shape": [2, 3]}
//! {"op": "remove_row", "row": 0}
//! {"op": "add_column", "column": COLUMN, "manager": MANAGER or null}
//! {"op": "remove_column", "column": "A"}
//! {"op": "keyword", "column": "A" or null, "name": "K", "value": VALUE}
//! {"op": "subtable", "name": "SUB", …as create}      what follows is done to the subtable, until its "close"
//! {"op": "close"}
//!
//! COLUMN   {"name": "A", "type": "complex", "kind": "scalar" or "array", "ndim": -1, "shape": [2, 3] or null,
//!           "direct": false, "max_length": 0, "comment": "", "keywords": {…}}
//! MANAGER  {"type": "StandardStMan", "name": "x", "parameters": {"BUCKETSIZE": 1024, "DEFAULTTILESHAPE": [4, 8]}}
//! VALUE    a Bool, Int, Double, String, an array of them, a record {…}, or {"type": "float", "shape": [2, 3], "values": […]},
//!          without shape a scalar; {"table": "././SUB"}
//! ```
//! Shapes list the first axis fastest. A complex element is `[re, im]`, a float that JSON cannot
//! have `"nan"`, `"inf"`; a record is the same as a VALUE that is one. Each operation is answered
//! by a line: `ok`, or `error: …` with the kind and the message; the script goes on.

use std::io::BufRead;

use ctds_hdf5::io::ByteOrder;
use ctds_hdf5::value::{BString, Complex32, Complex64, DataType, Record, Region, Shape, Value, Values};
use ctds_hdf5::{ColumnDesc, ColumnKind, ManagerSpec, NewTable, TableInfo, TableWriter};
use serde_json::Value as Json;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    // a table and the subtables being written inside it, innermost last
    let mut tables = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let operation: Json = serde_json::from_str(&line)?;
        match execute(&operation, &mut tables) {
            Ok(()) => println!("ok"),
            Err(error) => println!("error: {}", format!("{error:?}").replace('\n', " ")),
        }
    }
    Ok(())
}

fn execute(operation: &Json, tables: &mut Vec<TableWriter>) -> Result<()> {
    let name = text(operation, "op")?;
    if name == "create" {
        tables.push(new_table(operation)?.create(text(operation, "path")?)?);
        return Ok(());
    }
    let table = tables.last_mut().ok_or("no table is open")?;
    let row = operation["row"].as_u64().unwrap_or_default();
    match name {
        "add_rows" => table.add_rows(number(operation, "count")?)?,
        "remove_row" => table.remove_row(row)?,
        "add_column" => {
            let spec = &operation["manager"];
            let spec = if spec.is_null() { None } else { Some(manager(spec)?) };
            table.add_column(column(&operation["column"])?, spec)?;
        }
        "remove_column" => table.remove_column(text(operation, "column")?)?,
        "keyword" => {
            let value = value(&operation["value"])?;
            let keyword = text(operation, "name")?;
            match operation["column"].as_str() {
                Some(name) => table.column(name)?.keywords().set(keyword, value),
                None => table.keywords().set(keyword, value),
            }
        }
        "subtable" => {
            let subtable = table.subtable(text(operation, "name")?, new_table(operation)?)?;
            tables.push(subtable);
        }
        "close" => tables.pop().ok_or("no table is open")?.close()?,
        _ => {
            let mut column = table.column(text(operation, "column")?)?;
            let elements = || elements(column.info().data_type(), &operation["values"]);
            match name {
                "put" => {
                    let (values, rows) = (elements()?, operation["rows"].as_u64().unwrap_or(1));
                    column.put_values(row..row + rows, &shape(&operation["shape"])?, &values)?;
                }
                "put_part" => {
                    let values = elements()?;
                    let region = Region { start: shape(&operation["start"])?, shape: shape(&operation["shape"])? };
                    column.put_part_values(row, &region, &values)?;
                }
                "put_tile" => {
                    let values = elements()?;
                    let cubes = column.hypercubes()?;
                    let cube = cubes.get(number(operation, "cube")? as usize).ok_or("no such hypercube")?;
                    cube.put_tile(&shape(&operation["index"])?, &values)?;
                }
                "set_shape" => column.set_shape(row, &shape(&operation["shape"])?)?,
                _ => return Err(format!("unknown operation {name}").into()),
            }
        }
    }
    Ok(())
}

fn new_table(operation: &Json) -> Result<NewTable> {
    let string = |name: &str| BString::from(operation[name].as_str().unwrap_or_default());
    let info = TableInfo { table_type: string("type"), sub_type: string("subtype"), readme: string("readme") };
    let mut table = NewTable::new().info(info);
    match operation["order"].as_str() {
        Some("big") => table = table.byte_order(ByteOrder::Big),
        Some("little") => table = table.byte_order(ByteOrder::Little),
        _ => {}
    }
    let mut desc = ctds_hdf5::TableDesc { keywords: record(&operation["keywords"])?, ..Default::default() };
    desc.private_keywords = record(&operation["private_keywords"])?;
    desc.columns = list(&operation["columns"]).map(column).collect::<Result<_>>()?;
    table = table.description(desc);
    for spec in list(&operation["managers"]) {
        table = table.bind(manager(spec)?, list(&spec["columns"]).filter_map(Json::as_str));
    }
    Ok(table)
}

fn column(json: &Json) -> Result<ColumnDesc> {
    let data_type = DataType::from_name(text(json, "type")?).ok_or("an unknown type")?;
    let kind = if json["kind"] == "array" { ColumnKind::Array } else { ColumnKind::Scalar };
    let mut desc = ColumnDesc::new(text(json, "name")?.into(), data_type, kind)
        .max_length(json["max_length"].as_u64().unwrap_or_default() as u32)
        .comment(json["comment"].as_str().unwrap_or_default());
    if let Some(ndim) = json["ndim"].as_u64() {
        desc = desc.ndim(ndim as u32);
    }
    if !json["shape"].is_null() {
        let shape = shape(&json["shape"])?;
        desc = if json["direct"] == true { desc.direct(shape) } else { desc.fixed_shape(shape) };
    }
    desc.keywords = record(&json["keywords"])?;
    Ok(desc)
}

fn manager(json: &Json) -> Result<ManagerSpec> {
    let mut spec = ManagerSpec::new(text(json, "type")?, text(json, "name")?);
    spec.parameters = record(&json["parameters"])?;
    Ok(spec)
}

fn record(json: &Json) -> Result<Record> {
    let mut record = Record::default();
    for (name, field) in json.as_object().into_iter().flatten() {
        record.set(name.as_str(), value(field)?);
    }
    Ok(record)
}

fn value(json: &Json) -> Result<Value> {
    let typed = |data_type: DataType, shape: Option<Shape>, json: &Json| -> Result<Value> {
        let values = elements(data_type, json)?;
        Ok(match shape {
            Some(shape) => Value::Array(shape, values),
            None => Value::Scalar(values),
        })
    };
    match json {
        Json::Object(object) if object.contains_key("table") => Ok(Value::Table(text(json, "table")?.into())),
        Json::Object(object) if object.contains_key("values") => {
            let data_type = DataType::from_name(text(json, "type")?).ok_or("an unknown type")?;
            let axes = if json["shape"].is_null() { None } else { Some(shape(&json["shape"])?) };
            typed(data_type, axes, &json["values"])
        }
        Json::Object(_) => Ok(Value::Record(record(json)?)),
        Json::Array(items) => {
            let data_type = items.first().map_or(DataType::Int, plain_type);
            typed(data_type, Some(Shape::from([items.len() as u64])), json)
        }
        _ => typed(plain_type(json), None, &Json::Array(vec![json.clone()])),
    }
}

fn plain_type(json: &Json) -> DataType {
    match json {
        Json::Bool(_) => DataType::Bool,
        Json::String(_) => DataType::String,
        Json::Number(number) if number.is_i64() => DataType::Int,
        _ => DataType::Double,
    }
}

fn elements(data_type: DataType, json: &Json) -> Result<Values> {
    fn all<T>(json: &Json, element: impl Fn(&Json) -> Option<T>) -> Result<Vec<T>> {
        list(json).map(|item| element(item).ok_or_else(|| format!("the element {item}").into())).collect()
    }
    fn integers<T: TryFrom<i64>>(json: &Json) -> Result<Vec<T>> {
        all(json, |item| T::try_from(item.as_i64()?).ok())
    }
    fn float(json: &Json) -> Option<f64> {
        json.as_f64().or_else(|| json.as_str()?.parse().ok())
    }
    let complex = |item: &Json| Some(Complex64::new(float(&item[0])?, float(&item[1])?));
    Ok(match data_type {
        DataType::Bool => Values::Bool(all(json, Json::as_bool)?),
        DataType::UChar => Values::UChar(integers(json)?),
        DataType::Short => Values::Short(integers(json)?),
        DataType::UShort => Values::UShort(integers(json)?),
        DataType::Int => Values::Int(integers(json)?),
        DataType::UInt => Values::UInt(integers(json)?),
        DataType::Int64 => Values::Int64(integers(json)?),
        DataType::Float => Values::Float(all(json, |item| Some(float(item)? as f32))?),
        DataType::Double => Values::Double(all(json, float)?),
        DataType::Complex => {
            Values::Complex(all(json, |item| complex(item).map(|z| Complex32::new(z.re as f32, z.im as f32)))?)
        }
        DataType::DComplex => Values::DComplex(all(json, complex)?),
        DataType::String => Values::String(all(json, |item| Some(item.as_str()?.into()))?),
        DataType::Record => Values::Record(list(json).map(record).collect::<Result<_>>()?),
    })
}

fn shape(json: &Json) -> Result<Shape> {
    let extents: Option<Shape> = list(json).map(Json::as_u64).collect::<Option<Vec<_>>>().map(Shape::from_iter);
    extents.ok_or_else(|| format!("the shape {json}").into())
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn text<'a>(json: &'a Json, name: &str) -> Result<&'a str> {
    json[name].as_str().ok_or_else(|| format!("{name} is missing").into())
}

fn number(json: &Json, name: &str) -> Result<u64> {
    json[name].as_u64().ok_or_else(|| format!("{name} is missing").into())
}
