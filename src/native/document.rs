//! What every native file begins with, and the documents under `_ctds`, which say of tables and columns what datasets do
//! not. docs/layout.md, "Exact values".

use std::collections::HashMap;

use bstr::{BString, ByteSlice};
use serde_json::{Value as Json, json};

use super::form::{FormKind, StoredForm};
use super::json;
use super::raw_strings::text_attribute;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Group};
use crate::io::ByteOrder;
use crate::schema::{ColumnDesc, ColumnKind, TableDesc, TableInfo};
use crate::table::{ColumnInfo, ManagerSpec};
use crate::value::{DataType, Record, Shape, Values};

/// How a casacore table was stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// Of the data files.
    pub(crate) order: Option<ByteOrder>,
    /// Names, comment and private keywords; neither keywords nor columns.
    pub(crate) desc: TableDesc,
    pub(crate) managers: Vec<ManagerSpec>,
    /// For each column the number of its manager; none where only the manager's name tells.
    pub(crate) bindings: Vec<Option<usize>>,
}

/// Sets the attributes of the root, and creates `_ctds`.
pub(crate) fn begin(root: &Group, source: &str) -> Result<Group> {
    root.set_attribute("format", &Attribute::string("ctds-hdf5"))?;
    root.set_attribute("format_version", &Attribute::string("1.0"))?;
    root.set_attribute("creator", &Attribute::string(concat!("ctds-hdf5 ", env!("CARGO_PKG_VERSION"))))?;
    root.set_attribute("source", &text_attribute(source.as_bytes().as_bstr()))?;
    root.create_group("_ctds")
}

/// Creates the groups of `path` that are missing.
pub(crate) fn open_path(root: &Group, path: &str) -> Result<Group> {
    let mut group = root.clone();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        group = if group.has(name) { group.group(name)? } else { group.create_group(name)? };
    }
    Ok(group)
}

/// The document `table`, but for the rows; `table_name` gives the last component of a stored table name.
pub(crate) fn table_document(
    name: &str,
    row: &str,
    info: &TableInfo,
    keywords: &Record,
    table_name: &dyn Fn(&[u8]) -> String,
) -> Json {
    json!({
        "name": name,
        "row": row,
        "rows": 0,
        "first_row": 0,
        "keywords": json::from_record(keywords, table_name),
        "info": {
            "type": json::from_string(info.table_type.as_bstr()),
            "subtype": json::from_string(info.sub_type.as_bstr()),
            "readme": json::from_string(info.readme.as_bstr()),
        },
    })
}

/// The document `column.<link>`.
pub(crate) fn column_document(
    info: &ColumnInfo,
    position: usize,
    link: &str,
    form: &str,
    table_name: &dyn Fn(&[u8]) -> String,
) -> Json {
    let desc = &info.desc;
    json!({
        "position": position,
        "name": json::from_string(desc.name.as_bstr()),
        "link": link,
        "form": form,
        "dtype": desc.data_type.name(),
        "kind": if desc.kind == ColumnKind::Array { "array" } else { "scalar" },
        "options": desc.options,
        "ndim": desc.ndim,
        "shape": info.shape.as_ref().filter(|_| desc.kind == ColumnKind::Array).map(|shape| shape.reversed()),
        "shape_described": !desc.shape.is_empty(),
        "comment": json::from_string(desc.comment.as_bstr()),
        "max_length": desc.max_length,
        "default_manager": [
            json::from_string(desc.manager_type.as_bstr()),
            json::from_string(desc.manager_group.as_bstr()),
        ],
        "manager": json::from_string(info.manager.as_bstr()),
        "manager_name": json::from_string(info.manager_name.as_bstr()),
        "keywords": json::from_record(&desc.keywords, table_name),
    })
}

/// The string that an attribute is.
pub(super) fn string(attribute: &Attribute) -> Option<String> {
    match attribute.values() {
        Values::String(strings) => strings.first().map(|string| string.to_str_lossy().into_owned()),
        _ => None,
    }
}

pub(crate) fn parse(attribute: &Attribute) -> Result<Json> {
    let text = string(attribute).ok_or_else(|| Error::format("not a string"))?;
    serde_json::from_str(&text).map_err(|error| Error::format(format!("not JSON: {error}")).caused_by(error))
}

pub(super) fn missing(name: &str) -> Error {
    Error::format(format!("{name} is missing"))
}

/// The names of subtables in the JSON of a record.
pub(super) fn collect_names(record: &Json, names: &mut HashMap<BString, String>) {
    for field in record.as_array().into_iter().flatten() {
        let Some(value) = field.get(1) else { continue };
        match value.get("type").and_then(Json::as_str) {
            Some("table") => {
                let stored = value.get("value").and_then(|stored| json::to_string(stored).ok());
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

/// What the document of a table says of the way it was stored; files of format version 1.0 need not say anything.
pub(super) fn layout(document: &Json) -> Result<Layout> {
    let text = |json: Option<&Json>| json.map_or(Ok(BString::default()), json::to_string);
    let record = |json: Option<&Json>| json.map_or(Ok(Record::default()), json::to_record);
    let order = match document.get("byte_order").and_then(Json::as_str) {
        Some("big") => Some(ByteOrder::Big),
        Some("little") => Some(ByteOrder::Little),
        _ => None,
    };
    let manager = |json: &Json| {
        Ok(ManagerSpec {
            type_name: text(json.get("type"))?,
            name: text(json.get("name"))?,
            parameters: record(json.get("parameters"))?,
        })
    };
    let managers = document.get("managers").and_then(Json::as_array);
    let desc = TableDesc {
        name: text(document.pointer("/description/name"))?,
        version: text(document.pointer("/description/version"))?,
        comment: text(document.pointer("/description/comment"))?,
        private_keywords: record(document.get("private_keywords"))?,
        ..TableDesc::default()
    };
    let managers = managers.into_iter().flatten().map(manager).collect::<Result<_>>()?;
    Ok(Layout { order, desc, managers, bindings: Vec::new() })
}

/// A column, where its cells are, and the number of its data manager.
pub(crate) type Described = (ColumnInfo, StoredForm, Option<usize>);

/// What the documents in `exact` say of the columns of a table, in their order; collects the names of subtables.
pub(crate) fn columns(exact: &Group, table_names: &mut HashMap<BString, String>) -> Result<Vec<Described>> {
    let mut found = Vec::new();
    for name in exact.attributes()? {
        if !name.starts_with("column.") {
            continue;
        }
        let document = exact.attribute(&name)?.ok_or_else(|| missing(&name))?;
        let document = parse(&document).with_context(|| format!("_ctds attribute {name}"))?;
        let (column, form) = column(&document).with_context(|| format!("_ctds attribute {name}"))?;
        let manager = document.get("manager_number").and_then(Json::as_u64).map(|number| number as usize);
        collect_names(&document["keywords"], table_names);
        found.push((document.get("position").and_then(Json::as_u64), (column, form, manager)));
    }
    found.sort_by_key(|(position, _)| *position);
    Ok(found.into_iter().map(|(_, column)| column).collect())
}

fn column(document: &Json) -> Result<(ColumnInfo, StoredForm)> {
    let text = |name: &str| match document.get(name) {
        Some(text) => json::to_string(text),
        None => Ok(BString::default()),
    };
    let number = |name: &str| document.get(name).and_then(Json::as_i64).ok_or_else(|| missing(name));
    let data_type = DataType::from_name(&text("dtype")?.to_str_lossy()).ok_or_else(|| missing("a known dtype"))?;
    let kind = match text("kind")?.as_slice() {
        b"array" => ColumnKind::Array,
        b"scalar" => ColumnKind::Scalar,
        _ => return Err(missing("kind array or scalar")),
    };
    let form = match text("form")?.as_slice() {
        b"dense" => FormKind::Dense,
        b"cubes" => FormKind::Cubes,
        b"ragged" => FormKind::Ragged,
        b"record" => FormKind::Record,
        b"missing" => FormKind::Missing,
        _ => return Err(missing("a known form")),
    };
    if (form == FormKind::Record) != (data_type == DataType::Record) && form != FormKind::Missing {
        return Err(Error::format(format!("elements of type {data_type} in the form {}", text("form")?)));
    }
    let shape = match document.get("shape").and_then(Json::as_array) {
        Some(extents) => {
            let extents: Option<Vec<u64>> = extents.iter().map(Json::as_u64).collect();
            Some(Shape::from_reversed(&extents.ok_or_else(|| missing("shape"))?))
        }
        None if kind == ColumnKind::Scalar => Some(Shape::scalar()),
        None => None,
    };
    let manager = |index: usize| {
        document.pointer(&format!("/default_manager/{index}")).map_or(Ok(BString::default()), json::to_string)
    };
    let keywords = json::to_record(document.get("keywords").ok_or_else(|| missing("keywords"))?).context("keywords")?;
    let desc = ColumnDesc {
        name: text("name")?,
        comment: text("comment")?,
        manager_type: manager(0)?,
        manager_group: manager(1)?,
        data_type,
        kind,
        options: number("options")? as i32,
        ndim: number("ndim")? as i32,
        shape: shape.clone().filter(|_| document["shape_described"] == true).unwrap_or_default(),
        max_length: number("max_length")? as u32,
        keywords,
        default: None,
    };
    let info = ColumnInfo { desc, shape, manager: text("manager")?, manager_name: text("manager_name")? };
    let (link, reason) = (text("link")?.to_str_lossy().into_owned(), text("reason")?.to_str_lossy().into_owned());
    Ok((info, StoredForm { kind: form, link, reason }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn names_of_subtables_come_from_the_document() {
        let mut record = Record::default();
        record.set("SUB", Value::Table("inner/.".into()));
        let mut outer = Record::default();
        outer.set("nested", Value::Record(record));
        let document = json::from_record(&outer, &|_| "p.tab".into());
        let mut names = HashMap::new();
        collect_names(&document, &mut names);
        assert_eq!(names[&BString::from("inner/.")], "p.tab");
    }
}
