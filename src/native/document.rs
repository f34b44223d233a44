//! Reads and writes the root attributes of native HDF5 files, and the JSON documents under `_ctds`
//! that describe tables and columns exactly. docs/reference/layout.md, "Exact values".
//!
//! Members stand in the order in which they are written. Files of format version 1.0 need not have
//! those with a default.

use std::collections::HashMap;

use bstr::{BString, ByteSlice};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::attributes::taql_of;
use super::form::{FormKind, StoredForm, StoredGrid};
use super::json::{self, JsonRecord, JsonString};
use super::names::{CTDS, MAIN_TABLE, display_name, table_path};
use super::nexus::DEFAULT;
use super::notes::{DESCRIPTION, Notes};
use super::raw_strings::text_attribute;
use super::view::{View, ViewDocument};
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Dataset, Group, LinkKind};
use crate::io::ByteOrder;
use crate::limits;
use crate::output::Damage;
use crate::schema::{ColumnDesc, ColumnKind, TableDesc, TableInfo};
use crate::table::{ColumnInfo, ManagerInfo, ManagerSpec, Table};
use crate::value::{DataType, Record, Shape, Values};

/// Root attribute by which a native file is recognised.
const FORMAT: (&str, &str) = ("format", "ctds-hdf5");
const FORMAT_VERSION: (&str, &str) = ("format_version", "1.0");

/// Digest of the main table as it was converted: BLAKE3 by CTFP-2, or SHA-256 by CTFP-1.
pub(crate) const SOURCE_DIGEST: &str = "source_digest";
/// Last component of the converted path, such as `my.ms`.
pub(crate) const SOURCE: &str = "source";

/// How the main table was averaged, such as `time=10s,chan=4`.
pub(crate) const AVERAGED: &str = "averaged";

pub(super) const ROOT_ATTRIBUTES: [&str; 8] =
    [FORMAT.0, FORMAT_VERSION.0, CREATOR, SOURCE, DEFAULT, SOURCE_DIGEST, AVERAGED, NOT_FOLLOWED];
const CREATOR: &str = "creator";
/// Parts of the followed table that a live file does not hold.
pub(crate) const NOT_FOLLOWED: &str = "not_followed";

/// Document of a table, on the group `/_ctds/TABLE`.
const TABLE: &str = "table";

/// Prefix of the document of a column; the name of its dataset or group follows.
const COLUMN: &str = "column.";

/// The last component (`ANTENNA`) of the reference that a keyword stores (`././ANTENNA`).
pub(crate) type TableNames<'a> = &'a dyn Fn(&[u8]) -> String;

/// Sets the root attributes, and creates the group `_ctds`.
pub(crate) fn begin(root: &Group, source: &str) -> Result<Group> {
    for (name, value) in root_attributes(source) {
        root.set_attribute(&name, &value)?;
    }
    root.create_group(CTDS)
}

/// Format, version, creator, source, and that viewers open the main table.
pub(crate) fn root_attributes(source: &str) -> Vec<(String, Attribute)> {
    let constant = |(name, value): (&str, &str)| (name.to_owned(), Attribute::string(value));
    vec![
        constant(FORMAT),
        constant(FORMAT_VERSION),
        constant((CREATOR, concat!("ctds-hdf5 ", env!("CARGO_PKG_VERSION")))),
        (SOURCE.to_owned(), text_attribute(source.as_bytes().as_bstr())),
        constant((DEFAULT, display_name(MAIN_TABLE))),
    ]
}

/// Fails unless the file is native, in a version that this program can read.
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

/// Creates missing groups on the way.
pub(crate) fn open_path(root: &Group, path: &str) -> Result<Group> {
    let mut group = root.clone();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        group = if group.has(name) { group.group(name)? } else { group.create_group(name)? };
    }
    Ok(group)
}

/// Slashes in the path separate names.
pub(crate) fn open_dataset(group: &Group, path: &str) -> Result<Dataset> {
    match path.trim_start_matches('/').split_once('/') {
        Some((name, rest)) => open_dataset(&group.group(name)?, rest),
        None => group.dataset(path.trim_start_matches('/')),
    }
}

/// `None` for attributes of other types and empty ones.
fn string(attribute: &Attribute) -> Option<String> {
    match attribute.values() {
        Values::String(strings) => strings.first().map(|string| string.to_str_lossy().into_owned()),
        _ => None,
    }
}

pub(super) fn decode<T: DeserializeOwned>(attribute: &Attribute) -> Result<T> {
    json::decode(string(attribute).ok_or_else(|| Error::format("the attribute is not a string"))?.as_bytes())
}

/// A table with a document, which is not decoded yet.
pub(crate) struct DescribedTable {
    /// Also below `_ctds`.
    pub(crate) path: String,
    /// The group below `_ctds` and the document, unless they are damaged.
    found: Result<(Group, Attribute)>,
}

impl DescribedTable {
    /// The name, and whether a keyword names the table; `None` if the document cannot be decoded.
    pub(super) fn name(&self) -> Option<(String, bool)> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
            #[serde(default)]
            unnamed: bool,
        }
        let (_, document) = self.found.as_ref().ok()?;
        decode::<Named>(document).ok().map(|document| (document.name, !document.unnamed))
    }

    /// The group below `_ctds`; `Format` if it is damaged.
    pub(crate) fn exact(&self) -> Result<&Group> {
        self.found.as_ref().map(|(exact, _)| exact).map_err(Error::clone)
    }

    /// Name, info, keywords, how casacore stored the table, but not its columns.
    pub(crate) fn document(&self) -> Result<TableDocument> {
        let (_, document) = self.found.as_ref().map_err(Error::clone)?;
        decode(document).with_context(|| format!("{CTDS} attribute {TABLE}"))
    }
}

/// First the main table and those in its group, then all others; within both each is followed by
/// those in its group, in order of creation (by name if the file does not record that).
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
    for (name, kind) in exact.members()? {
        if !matches!(kind, LinkKind::Group | LinkKind::Damaged) {
            continue;
        }
        let path = format!("{path}/{name}");
        let find = || -> Result<_> {
            let exact = exact.group(&name)?;
            match (exact.attribute(TABLE)?, exact.damage()) {
                (None, Some(damage)) => Err(damage),
                (document, _) => Ok(document.map(|document| (exact, document))),
            }
        };
        match find() {
            Ok(None) => {}
            Ok(Some((exact, document))) => {
                tables.push(DescribedTable { path: path.clone(), found: Ok((exact.clone(), document)) });
                collect_tables(&exact, &path, tables, depth + 1)?;
            }
            Err(error) => tables.push(DescribedTable { path, found: Err(error) }),
        }
    }
    Ok(())
}

/// A table without its columns, which have documents of their own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TableDocument {
    /// `.` for the main table, else the keywords that lead to it: `ANTENNA`, `A/B`.
    #[serde(default)]
    pub(crate) name: String,
    /// Scale of the rows: `row`, `row__2` …
    #[serde(default)]
    pub(crate) row: String,
    /// `None` is an error except in a live file, where only `committed` counts the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<u64>,
    /// Row of the converted table; more than 0 if rows were selected.
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
    /// Dataset that counts the committed rows of a live table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) committed: Option<String>,
    /// Parts of the source, in any table, that could not be read; only of the main table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) damage: Vec<Damage>,
    /// `time=10s,chan=4`; only in the main table's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) averaged: Option<String>,
    /// Whether no keyword names the table, which is in the directory of its parent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unnamed: bool,
    /// Only in the main table's document, if it was a view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    view: Option<ViewDocument>,
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

/// How casacore stored the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// `None` if it is not recorded.
    pub(crate) order: Option<ByteOrder>,
    /// Without columns and other than private keywords.
    pub(crate) desc: TableDesc,
    pub(crate) managers: Vec<ManagerSpec>,
    /// Sequence numbers of `managers`, as far as they are recorded.
    pub(super) sequences: Vec<Option<u32>>,
    /// Index in `managers` for each column.
    pub(crate) bindings: Vec<Option<usize>>,
}

impl Layout {
    pub(crate) fn of(table: &Table) -> Self {
        let desc = TableDesc { keywords: Record::default(), columns: Vec::new(), ..table.description().clone() };
        let sequences = table.managers().map(|manager| Some(manager.sequence)).collect();
        let manager = |manager: ManagerInfo<'_>| ManagerSpec {
            type_name: manager.type_name.to_owned(),
            name: manager.name.to_owned(),
            parameters: manager.parameters,
        };
        let managers = table.managers().map(manager).collect();
        Layout { order: Some(table.byte_order()), desc, managers, sequences, bindings: table.manager_numbers() }
    }
}

impl TableDocument {
    /// A table of 0 rows without data managers.
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
            unnamed: false,
            view: None,
        }
    }

    /// The dataset [`VIEW_ROWS`](super::names::VIEW_ROWS) has the row numbers of a reference table.
    pub(crate) fn describe_view(&mut self, view: &View) {
        self.view = Some(view.document());
    }

    pub(super) fn view(&self) -> Option<View> {
        self.view.clone()?.view()
    }

    /// Nothing if the storage of the source is not recorded.
    pub(crate) fn describe_storage(&mut self, layout: &Layout, table_names: TableNames<'_>) {
        let Some(order) = layout.order else { return };
        let manager = |(manager, &sequence): (&ManagerSpec, _)| ManagerDocument {
            r#type: (&manager.type_name).into(),
            sequence,
            name: (&manager.name).into(),
            parameters: JsonRecord::new(&manager.parameters, table_names),
        };
        self.byte_order = Some(order.name().to_owned());
        self.description = Some(DescriptionDocument {
            name: (&layout.desc.name).into(),
            version: (&layout.desc.version).into(),
            comment: (&layout.desc.comment).into(),
        });
        self.private_keywords = Some(JsonRecord::new(&layout.desc.private_keywords, table_names));
        self.managers = Some(layout.managers.iter().zip(&layout.sequences).map(manager).collect());
    }

    pub(crate) fn write(&self, exact: &Group) -> Result<()> {
        exact.set_attribute(TABLE, &Attribute::string(json::encode(self)?))
    }

    pub(super) fn info(&self) -> TableInfo {
        let InfoDocument { r#type, subtype, readme } = self.info.clone();
        TableInfo { table_type: r#type.0, sub_type: subtype.0, readme: readme.0 }
    }

    /// The caller fills in `bindings`.
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
        let sequences = self.managers.iter().flatten().map(|manager| manager.sequence).collect();
        Ok(Layout { order, desc, managers, sequences, bindings: Vec::new() })
    }
}

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
    /// Slowest axis first; `None` for scalars and arrays without fixed shape.
    #[serde(default)]
    shape: Option<Vec<u64>>,
    /// False if only the data manager records the fixed shape.
    #[serde(default)]
    shape_described: bool,
    /// The fixed shape in the description if the cells have another number of axes, as those of an
    /// engine may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    described_shape: Option<Vec<u64>>,
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
    /// Absent (outer `None`) in a live file, null (inner) if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manager_number: Option<Option<usize>>,
    /// Why cells are not in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<JsonString>,
    /// Dataset of the defined cells of a dense column, by default `LINK__defined`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    defined: Option<String>,
    /// Attribute with the TaQL expression of a column without cells, by default `NAME__taql`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taql: Option<String>,
    /// Variables of MSv4 that are the hypercubes of the column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grids: Vec<StoredGrid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindDocument {
    Array,
    Scalar,
}

impl ColumnDocument {
    /// `position` is the number in the table.
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
            described_shape: info
                .shape
                .as_ref()
                .filter(|shape| is_array && !desc.shape.is_empty() && shape.len() != desc.shape.len())
                .map(|_| desc.shape.reversed()),
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
            grids: form.grids.clone(),
        }
    }

    /// Index among the table's managers; `None` is null in JSON.
    pub(crate) fn manager_number(mut self, number: Option<usize>) -> Self {
        self.manager_number = Some(number);
        self
    }

    /// Attribute `column.LINK`, with the name of the column's dataset or group.
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
        let described = match self.described_shape {
            Some(extents) => Some(Shape::from_reversed(&extents)),
            None => shape.clone(),
        };
        let desc = ColumnDesc {
            name: self.name.0,
            comment: self.comment.0,
            manager_type: self.default_manager.0.0,
            manager_group: self.default_manager.1.0,
            data_type,
            foreign: None,
            kind,
            options: self.options,
            ndim: self.ndim,
            shape: described.filter(|_| self.shape_described).unwrap_or_default(),
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
            kind => StoredForm::new(kind, link)
                .with_flags(self.defined.filter(|_| kind == FormKind::Dense))
                .with_grids(if kind == FormKind::Cubes { self.grids } else { Vec::new() }),
        };
        Ok(DescribedColumn { info, form, manager: self.manager_number.flatten() })
    }
}

pub(crate) struct DescribedColumn {
    pub(crate) info: ColumnInfo,
    pub(crate) form: StoredForm,
    /// Index among the table's managers, if known.
    pub(crate) manager: Option<usize>,
}

/// Without columns whose damage `notes` go around; adds their subtables to `table_names`.
pub(crate) fn described_columns(
    exact: &Group,
    table_names: &mut HashMap<BString, String>,
    notes: &mut Notes,
) -> Result<Vec<DescribedColumn>> {
    let mut found = Vec::new();
    notes.missing(exact.damage(), None, DESCRIPTION);
    for name in exact.attributes()? {
        let Some(link) = name.strip_prefix(COLUMN) else { continue };
        let mut read = || -> Result<_> {
            let Some(attribute) = exact.attribute(&name)? else { return Ok(None) };
            let document: ColumnDocument = decode(&attribute)?;
            document.keywords.collect_table_names(table_names);
            Ok(Some((document.position, document.column()?)))
        };
        let column = read().with_context(|| format!("{CTDS} attribute {name}"));
        let column = notes.around(column, |error| Damage::of_part("", Some(link), DESCRIPTION, error))?;
        found.extend(column.flatten());
    }
    found.sort_by_key(|(position, _)| *position);
    Ok(found.into_iter().map(|(_, column)| column).collect())
}

/// For fuzzing: panics if a column that was read, written and read again is not the same.
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

/// First that of the table, then one for each column.
#[cfg(any(test, feature = "internals"))]
pub(crate) fn documents_of(table: &Table) -> Result<Vec<String>> {
    let names: TableNames<'_> = &|_| "x".to_owned();
    let mut document = TableDocument::new(".", "row", table.info(), table.keywords(), names);
    document.describe_storage(&Layout::of(table), names);
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
