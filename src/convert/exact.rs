//! What every native file begins with, and the documents under `_ctds`. docs/layout.md, "Exact values".

use bstr::ByteSlice;
use serde_json::{Value as Json, json};

use super::json;
use super::mapping::text_attribute;
use crate::error::Result;
use crate::h5::{Attribute, Group};
use crate::schema::{ColumnKind, TableInfo};
use crate::table::ColumnInfo;
use crate::value::Record;

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
pub(crate) fn table(
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
pub(crate) fn column(
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
