//! Reads and writes the root attributes of native HDF5 files, and the JSON documents under `_ctds` that describe tables and columns
//! exactly. docs/layout.md, "Exact values".
//!
//! Members stand in the order in which they are written. Files of format version 1.0 need not have those with a default.

use std::collections::HashMap;

use bstr::{BString, ByteSlice};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::attributes::taql_of;
use super::form::{FormKind, StoredForm};
use super::json::{self, JsonRecord, JsonString};
use super::names::{CTDS, MAIN_TABLE, table_path};
use super::raw_strings::text_attribute;
use crate::damage::Damage;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Dataset, Group, LinkKind};
use crate::io::ByteOrder;
use crate::limits;
use crate::schema::{ColumnDesc, ColumnKind, TableDesc, TableInfo};
use crate::table::{ColumnInfo, ManagerSpec, Table};
use crate::value::{DataType, Record, Shape, Values};

/// Name and value of the root attribute by which a native HDF5 file is recognised.
const FORMAT: (&str, &str) = ("format", "ctds-hdf5");
const FORMAT_VERSION: (&str, &str) = ("format_version", "1.0");

/// Name of the root attribute of a native HDF5 file with the digest of the main table as it was converted: SHA-256 of
/// its content by CTFP-1, this project's rules for digests that are the same for a table and for its conversion.
pub(crate) const SOURCE_DIGEST: &str = "source_digest";
/// Name of the root attribute of a native HDF5 file with the last component of the path that was converted, such as `my.ms`.
pub(crate) const SOURCE: &str = "source";

/// Name of the root attribute of a native HDF5 file that states how the main table was averaged, such as `time=10s,chan=4`; absent
/// if it was not.
pub(crate) const AVERAGED: &str = "averaged";

/// Names of the attributes that the root group of a native HDF5 file may be written with.
pub(super) const ROOT_ATTRIBUTES: [&str; 7] =
    [FORMAT.0, FORMAT_VERSION.0, CREATOR, SOURCE, SOURCE_DIGEST, AVERAGED, NOT_FOLLOWED];
const CREATOR: &str = "creator";
/// Name of the root attribute of a live file with the parts of the followed table that it does not hold.
pub(crate) const NOT_FOLLOWED: &str = "not_followed";

/// Name of the HDF5 attribute with the JSON document that describes a table exactly (its keywords, its storage before
/// the conversion), on the group `/_ctds/TABLE` of a native HDF5 file.
const TABLE: &str = "table";

/// Prefix of the name of the HDF5 attribute with the JSON document that describes a column exactly, on the group
/// `/_ctds/TABLE` of a native HDF5 file. The name of the column's dataset or group follows.
const COLUMN: &str = "column.";

/// A function from the reference to a subtable that a keyword stores (`././ANTENNA`) to the last component of the subtable's
/// path (`ANTENNA`).
pub(crate) type TableNames<'a> = &'a dyn Fn(&[u8]) -> String;

/// Begins a native HDF5 file made from the table or file named `source`: sets the root attributes, creates the group `_ctds` and
/// returns it.
pub(crate) fn begin(root: &Group, source: &str) -> Result<Group> {
    for (name, value) in root_attributes(source) {
        root.set_attribute(&name, &value)?;
    }
    root.create_group(CTDS)
}

/// Names and values of the root attributes of a native HDF5 file made from the table or file named `source`: format, version,
/// creator, source.
pub(crate) fn root_attributes(source: &str) -> Vec<(String, Attribute)> {
    let constant = |(name, value): (&str, &str)| (name.to_owned(), Attribute::string(value));
    vec![
        constant(FORMAT),
        constant(FORMAT_VERSION),
        constant((CREATOR, concat!("ctds-hdf5 ", env!("CARGO_PKG_VERSION")))),
        (SOURCE.to_owned(), text_attribute(source.as_bytes().as_bstr())),
    ]
}

/// Fails unless the root attributes state that the file is a native HDF5 file (one in this project's layout: columns as
/// datasets), in a format version that this program can read.
pub(super) fn check_format(root: &Group) -> Result<()> {
    let text = |(name, _): (&str, &str)| Ok::<_, Error>(root.attribute(name)?.as_ref().and_then(string));
    if text(FORMAT)?.as_deref() != Some(FORMAT.1) {
        return Err(Error::unsupported(
            "this HDF5 file is not a native file of ctds-hdf5: it lacks the attribute format = ctds-hdf5",
        ));
    }
    let version = text(FORMAT_VERSION)?.unwrap_or_default();
    if version.split('.').next() != Some("1") {
        return Err(Error::unsupported(format!("format_version {version:?}, known is 1.0")));
    }
    Ok(())
}

/// Opens the group at `path` below `root`, and creates the groups on the way that are missing.
pub(crate) fn open_path(root: &Group, path: &str) -> Result<Group> {
    let mut group = root.clone();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        group = if group.has(name) { group.group(name)? } else { group.create_group(name)? };
    }
    Ok(group)
}

/// Opens the dataset at `path` below a group; slashes separate names.
pub(crate) fn open_dataset(group: &Group, path: &str) -> Result<Dataset> {
    match path.trim_start_matches('/').split_once('/') {
        Some((name, rest)) => open_dataset(&group.group(name)?, rest),
        None => group.dataset(path.trim_start_matches('/')),
    }
}

/// The first string of a string attribute; `None` for attributes of other types and empty ones.
fn string(attribute: &Attribute) -> Option<String> {
    match attribute.values() {
        Values::String(strings) => strings.first().map(|string| string.to_str_lossy().into_owned()),
        _ => None,
    }
}

/// Decodes the JSON document in a string attribute of a group below `/_ctds`, where native HDF5 files describe tables and columns.
pub(super) fn decode<T: DeserializeOwned>(attribute: &Attribute) -> Result<T> {
    json::decode(string(attribute).ok_or_else(|| Error::format("the attribute is not a string"))?.as_bytes())
}

/// A table of a native HDF5 file that has a JSON document in the group `_ctds`; the document is not decoded yet.
pub(crate) struct DescribedTable {
    /// Path of the table's group in the file; its exact description is at the same path under `_ctds`.
    pub(crate) path: String,
    pub(crate) exact: Group,
    document: Attribute,
}

impl DescribedTable {
    /// The name of the table that its JSON document states; `None` if the document cannot be decoded.
    pub(super) fn name(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        decode::<Named>(&self.document).ok().map(|document| document.name)
    }

    /// Decodes the JSON document that describes the table exactly (name, info, keywords, how casacore stored it, but
    /// not its columns) from the attribute `table` of the group `/_ctds/TABLE` of the native HDF5 file.
    pub(crate) fn document(&self) -> Result<TableDocument> {
        decode(&self.document).with_context(|| format!("{CTDS} attribute {TABLE}"))
    }
}

/// Lists the tables that the group `_ctds` of a native HDF5 file describes: first the main table and the tables in its
/// group, then all others. Within both parts each table is followed by those in its group, and the tables of one group
/// are in order of creation (by name if the file does not record this order).
pub(crate) fn described_tables(root: &Group) -> Result<Vec<DescribedTable>> {
    let mut tables = Vec::new();
    if root.has(CTDS) {
        collect_tables(&root.group(CTDS)?, "", &mut tables, 0)?;
        let main = table_path(MAIN_TABLE);
        let is_of_main = |path: &str| path == main || path.starts_with(&format!("{main}/"));
        tables.sort_by_key(|table| !is_of_main(&table.path));
    }
    Ok(tables)
}

fn collect_tables(exact: &Group, path: &str, tables: &mut Vec<DescribedTable>, depth: usize) -> Result<()> {
    limits::depth(depth, "groups")?;
    for (name, _) in exact.links()?.into_iter().filter(|(_, kind)| *kind == LinkKind::Group) {
        let (path, exact) = (format!("{path}/{name}"), exact.group(&name)?);
        let Some(document) = exact.attribute(TABLE)? else { continue };
        tables.push(DescribedTable { path: path.clone(), exact: exact.clone(), document });
        collect_tables(&exact, &path, tables, depth + 1)?;
    }
    Ok(())
}

/// The JSON document under `_ctds` that describes a table exactly, except its columns, which have documents of their own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TableDocument {
    /// Name of the table: `.` for the main table, else the keywords that lead to it from the main table: `ANTENNA`, `A/B`.
    #[serde(default)]
    pub(crate) name: String,
    /// Name of the dimension scale of the table's rows, a dataset in the group of the table: `row`, `row__2` …
    #[serde(default)]
    pub(crate) row: String,
    /// Number of rows of the table; `None`, if the document does not state it, is an error except in a live file (read while
    /// it is written). There this number means nothing: the dataset named by the field `committed` counts the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<u64>,
    /// Number (from 0), in the table that was converted, of the first row in this file; more than 0 if rows were
    /// selected.
    #[serde(default)]
    pub(crate) first_row: u64,
    pub(crate) keywords: JsonRecord,
    #[serde(default)]
    info: InfoDocument,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    byte_order: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<DescriptionDocument>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    private_keywords: Option<JsonRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    managers: Option<Vec<ManagerDocument>>,
    /// Name of the dataset that counts the committed (complete, readable) rows of a live table; `None` in a file that does not
    /// grow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) committed: Option<String>,
    /// The parts of the conversion's source, in any of its tables, that could not be read and are not in the file. This list
    /// is part of the JSON document of the main table; it is empty in those of subtables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) damage: Vec<Damage>,
    /// How the rows were averaged, such as `time=10s,chan=4`; `None` if they were not. It is only in the JSON document that
    /// describes the main table, not in those of subtables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) averaged: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct InfoDocument {
    r#type: JsonString,
    subtype: JsonString,
    readme: JsonString,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct DescriptionDocument {
    name: JsonString,
    version: JsonString,
    comment: JsonString,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct ManagerDocument {
    r#type: JsonString,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u32>,
    name: JsonString,
    parameters: JsonRecord,
}

/// How a casacore table was stored before it was converted: byte order, description, data managers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// Byte order of the data files of the casacore table; `None` if it is not recorded.
    pub(crate) order: Option<ByteOrder>,
    /// Name, version, comment and private keywords of the casacore table description; its other keywords and its
    /// columns are left empty.
    pub(crate) desc: TableDesc,
    pub(crate) managers: Vec<ManagerSpec>,
    /// Index (from 0) in `managers` of each column's data manager, in the order of the columns; `None` where it is not
    /// recorded.
    pub(crate) bindings: Vec<Option<usize>>,
}

impl TableDocument {
    /// Makes the JSON document that describes a table exactly (name, info, keywords, but not its columns), with 0 rows
    /// and without data managers. `row` is the name of the dimension scale of the table's rows.
    pub(crate) fn new(name: &str, row: &str, info: &TableInfo, keywords: &Record, table_names: TableNames<'_>) -> Self {
        TableDocument {
            name: name.to_owned(),
            row: row.to_owned(),
            rows: Some(0),
            first_row: 0,
            keywords: JsonRecord::new(keywords, table_names),
            info: InfoDocument {
                r#type: (&info.table_type).into(),
                subtype: (&info.sub_type).into(),
                readme: (&info.readme).into(),
            },
            byte_order: None,
            description: None,
            private_keywords: None,
            managers: None,
            committed: None,
            damage: Vec::new(),
            averaged: None,
        }
    }

    /// Adds to the JSON document of the table how casacore stored the table: byte order, description, data managers.
    pub(crate) fn describe_storage(&mut self, table: &Table, table_names: TableNames<'_>) {
        let description = table.description();
        let manager = |manager: crate::table::ManagerInfo<'_>| ManagerDocument {
            r#type: manager.type_name.into(),
            sequence: Some(manager.sequence),
            name: manager.name.into(),
            parameters: JsonRecord::new(&manager.parameters, table_names),
        };
        self.byte_order = Some(table.byte_order().name().to_owned());
        self.description = Some(DescriptionDocument {
            name: (&description.name).into(),
            version: (&description.version).into(),
            comment: (&description.comment).into(),
        });
        self.private_keywords = Some(JsonRecord::new(&description.private_keywords, table_names));
        self.managers = Some(table.managers().map(manager).collect());
    }

    /// Writes the JSON document of the table as the attribute `table` of `exact`, the group `/_ctds/TABLE` of a native
    /// HDF5 file.
    pub(crate) fn write(&self, exact: &Group) -> Result<()> {
        exact.set_attribute(TABLE, &Attribute::string(json::encode(self)?))
    }

    /// Type, subtype and readme of the table in the document.
    pub(super) fn info(&self) -> TableInfo {
        let InfoDocument { r#type, subtype, readme } = self.info.clone();
        TableInfo { table_type: r#type.0, sub_type: subtype.0, readme: readme.0 }
    }

    /// How the casacore table was stored, as far as this JSON document of the native HDF5 file records it; the caller fills in
    /// `bindings`, the managers of columns.
    pub(super) fn layout(&self) -> Result<Layout> {
        let order = match self.byte_order.as_deref() {
            Some("big") => Some(ByteOrder::Big),
            Some("little") => Some(ByteOrder::Little),
            _ => None,
        };
        let DescriptionDocument { name, version, comment } = self.description.clone().unwrap_or_default();
        let desc = TableDesc {
            name: name.0,
            version: version.0,
            comment: comment.0,
            private_keywords: self.private_keywords.as_ref().map_or(Ok(Record::default()), JsonRecord::record)?,
            ..TableDesc::default()
        };
        let manager = |manager: &ManagerDocument| {
            let (type_name, name) = (manager.r#type.0.clone(), manager.name.0.clone());
            Ok(ManagerSpec { type_name, name, parameters: manager.parameters.record()? })
        };
        let managers = self.managers.iter().flatten().map(manager).collect::<Result<_>>()?;
        Ok(Layout { order, desc, managers, bindings: Vec::new() })
    }
}

/// The JSON document under `_ctds` that describes a column exactly.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ColumnDocument {
    #[serde(default)]
    position: Option<u64>,
    #[serde(default)]
    name: JsonString,
    #[serde(default)]
    link: JsonString,
    form: FormKind,
    dtype: String,
    kind: KindDocument,
    options: i32,
    ndim: i32,
    /// The fixed shape of the column's cells, slowest axis first; `None` for scalar columns and for arrays without a fixed
    /// shape.
    #[serde(default)]
    shape: Option<Vec<u64>>,
    /// Whether the casacore column description records the fixed shape; false if only the data manager did, or if the shape is
    /// not fixed.
    #[serde(default)]
    shape_described: bool,
    #[serde(default)]
    comment: JsonString,
    max_length: u32,
    #[serde(default)]
    default_manager: (JsonString, JsonString),
    #[serde(default)]
    manager: JsonString,
    #[serde(default)]
    manager_name: JsonString,
    keywords: JsonRecord,
    /// Index (from 0) of the column's data manager in the document of the table; absent (outer `None`) in a live file, null
    /// (inner) if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manager_number: Option<Option<usize>>,
    /// Why the cells of the column are not in the file; absent if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<JsonString>,
    /// Name of the dataset that tells which cells of a dense column are defined; absent if all are, and in files from before
    /// the name was recorded, where it is `LINK__defined`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    defined: Option<String>,
    /// Name of the attribute of the table's group that shows the TaQL expression of a column without cells; absent if it has
    /// none, and in files from before the name was recorded, where it is `NAME__taql`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taql: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindDocument {
    Array,
    Scalar,
}

impl ColumnDocument {
    /// Makes the JSON document that describes a column exactly, from its description, its number in the table
    /// (`position`, from 0) and the storage form of its cells.
    pub(crate) fn new(info: &ColumnInfo, position: usize, form: &StoredForm, table_names: TableNames<'_>) -> Self {
        let desc = &info.desc;
        let is_array = desc.kind == ColumnKind::Array;
        ColumnDocument {
            position: Some(position as u64),
            name: (&desc.name).into(),
            link: JsonString(form.link.as_str().into()),
            form: form.kind,
            dtype: desc.data_type.name().to_owned(),
            kind: if is_array { KindDocument::Array } else { KindDocument::Scalar },
            options: desc.options,
            ndim: desc.ndim,
            shape: info.shape.as_ref().filter(|_| is_array).map(Shape::reversed),
            shape_described: !desc.shape.is_empty(),
            comment: (&desc.comment).into(),
            max_length: desc.max_length,
            default_manager: ((&desc.manager_type).into(), (&desc.manager_group).into()),
            manager: (&info.manager).into(),
            manager_name: (&info.manager_name).into(),
            keywords: JsonRecord::new(&desc.keywords, table_names),
            manager_number: None,
            reason: (form.kind == FormKind::Missing).then(|| JsonString(form.reason.as_str().into())),
            defined: form.flags.clone(),
            taql: form.expression.clone(),
        }
    }

    /// Sets the index (from 0) of the column's data manager in the list of the table's managers; `None`, null in JSON, if it is
    /// not known.
    pub(crate) fn manager_number(mut self, number: Option<usize>) -> Self {
        self.manager_number = Some(number);
        self
    }

    /// Writes the JSON document of the column (type, shape, storage form, data manager, keywords) as the attribute
    /// `column.LINK` of `exact`, the group `/_ctds/TABLE` of a native HDF5 file; LINK is the name of the column's
    /// dataset or group.
    pub(crate) fn write(&self, exact: &Group) -> Result<()> {
        let name = format!("{COLUMN}{}", self.link.0);
        exact.set_attribute(&name, &Attribute::string(json::encode(self)?))
    }

    fn column(self) -> Result<DescribedColumn> {
        let data_type = DataType::from_name(&self.dtype)
            .ok_or_else(|| Error::format(format!("the dtype {:?} is not known", self.dtype)))?;
        let form = self.form;
        if (form == FormKind::Record) != (data_type == DataType::Record) && form != FormKind::Missing {
            return Err(Error::format(format!(
                "elements of type {data_type} cannot be stored in the form {}",
                form.name()
            )));
        }
        let kind = match self.kind {
            KindDocument::Array => ColumnKind::Array,
            KindDocument::Scalar => ColumnKind::Scalar,
        };
        let shape = match self.shape {
            Some(extents) => Some(Shape::from_reversed(&extents)),
            None => (kind == ColumnKind::Scalar).then(Shape::scalar),
        };
        let desc = ColumnDesc {
            name: self.name.0,
            comment: self.comment.0,
            manager_type: self.default_manager.0.0,
            manager_group: self.default_manager.1.0,
            data_type,
            kind,
            options: self.options,
            ndim: self.ndim,
            shape: shape.clone().filter(|_| self.shape_described).unwrap_or_default(),
            max_length: self.max_length,
            keywords: self.keywords.record().context("keywords")?,
            default: None,
        };
        let info = ColumnInfo {
            desc,
            shape,
            manager: self.manager.0,
            manager_name: self.manager_name.0,
            may_be_undefined: false,
        };
        let reason = self.reason.unwrap_or_default().0.to_str_lossy().into_owned();
        let link = self.link.0.to_str_lossy().into_owned();
        let form = match form {
            FormKind::Missing => {
                let usual = || info.expression().map(|_| taql_of(&info.desc.name.to_str_lossy()));
                StoredForm::missing(link, reason, self.taql.or_else(usual))
            }
            kind => StoredForm::new(kind, link).with_flags(self.defined.filter(|_| kind == FormKind::Dense)),
        };
        Ok(DescribedColumn { info, form, manager: self.manager_number.flatten() })
    }
}

/// A column of a native HDF5 file (columns as datasets), decoded from the JSON document that describes the column in the
/// group `_ctds`.
pub(crate) struct DescribedColumn {
    pub(crate) info: ColumnInfo,
    /// The storage form of the column's cells, and the name of its dataset or group.
    pub(crate) form: StoredForm,
    /// Index (from 0) of the column's data manager in the list of the table's managers; `None` if it is not known.
    pub(crate) manager: Option<usize>,
}

/// Reads the documents of all columns in `exact`, the group `/_ctds/TABLE` of a native HDF5 file; returns the columns in the
/// order of the table. Adds the subtables in the keywords of columns to `table_names`: the stored reference
/// (`././ANTENNA`) is the key, its last path component the value.
pub(crate) fn described_columns(
    exact: &Group,
    table_names: &mut HashMap<BString, String>,
) -> Result<Vec<DescribedColumn>> {
    let mut found = Vec::new();
    for name in exact.attributes()?.into_iter().filter(|name| name.starts_with(COLUMN)) {
        let Some(attribute) = exact.attribute(&name)? else { continue };
        let mut read = || -> Result<_> {
            let document: ColumnDocument = decode(&attribute)?;
            document.keywords.collect_table_names(table_names);
            Ok((document.position, document.column()?))
        };
        found.push(read().with_context(|| format!("{CTDS} attribute {name}"))?);
    }
    found.sort_by_key(|(position, _)| *position);
    Ok(found.into_iter().map(|(_, column)| column).collect())
}

/// Reads a text as the JSON document of a column, or else as that of a table. Panics if a column that was read, written
/// as a document and read again is not the same.
#[cfg(any(test, feature = "internals"))]
pub(crate) fn read_any(text: &[u8]) -> Result<()> {
    let column = |text: &[u8]| json::decode::<ColumnDocument>(text)?.column();
    if let Ok(DescribedColumn { info, form, .. }) = column(text) {
        let again = ColumnDocument::new(&info, 0, &form, &|_| "x".to_owned());
        let read = column(json::encode(&again)?.as_bytes()).expect("what was written is read").info;
        // text, because a NaN differs from itself
        assert!(format!("{read:?}") == format!("{info:?}"), "written and read, {info:?} is {read:?}");
        return Ok(());
    }
    let table: TableDocument = json::decode(text)?;
    table.keywords.record()?;
    table.layout().map(drop)
}

/// The JSON documents that describe a table and its columns exactly: first that of the table, then one for each column.
#[cfg(any(test, feature = "internals"))]
pub(crate) fn documents_of(table: &Table) -> Result<Vec<String>> {
    let names: TableNames<'_> = &|_| "x".to_owned();
    let mut document = TableDocument::new(".", "row", table.info(), table.keywords(), names);
    document.describe_storage(table, names);
    let mut texts = vec![json::encode(&document)?];
    for (position, info) in table.columns().iter().enumerate() {
        let kind = if info.data_type() == DataType::Record { FormKind::Record } else { FormKind::Ragged };
        let form = StoredForm::new(kind, "x");
        texts.push(json::encode(&ColumnDocument::new(info, position, &form, names))?);
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let info = ColumnInfo {
            desc: ColumnDesc::new("A".into(), DataType::Int, ColumnKind::Scalar),
            shape: None,
            manager: "m".into(),
            manager_name: "n".into(),
            may_be_undefined: false,
        };
        let form = StoredForm::new(FormKind::Dense, "A");
        let text = json::encode(&ColumnDocument::new(&info, 0, &form, &|_| String::new())).unwrap();
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} in {text}");
            decode::<ColumnDocument>(&Attribute::string(text.replace(from, to))).and_then(ColumnDocument::column)
        };
        let same = changed("\"options\":0", "\"options\":-5").unwrap();
        assert_eq!((same.info.desc.options, same.manager, same.form.kind), (-5, None, FormKind::Dense));
        for (from, to) in [
            ("\"options\":0", "\"options\":4294967296"),
            ("\"ndim\":0", "\"ndim\":2147483648"),
            ("\"max_length\":0", "\"max_length\":-1"),
            ("\"max_length\":0", "\"max_length\":4294967296"),
            ("\"position\":0", "\"position\":-1"),
            ("\"form\":\"dense\"", "\"form\":\"record\""),
            ("\"dtype\":\"int\"", "\"dtype\":\"INT\""),
        ] {
            let kind = changed(from, to).map(|_| ()).unwrap_err().kind();
            assert_eq!(kind, crate::error::ErrorKind::Format, "{to}");
        }
    }
}
