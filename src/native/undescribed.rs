//! Reads tables and columns that a user made in a native HDF5 file or added to it, for example with h5py, so that the
//! group `_ctds` does not describe them. docs/layout.md, "Files made by hand".

use std::collections::HashMap;

use bstr::{BString, ByteSlice};

use super::attributes::{
    CTDS_NAME, OF_COLUMN, OF_TABLE, Object, README, TABLE_SUBTYPE, TABLE_TYPE, UNITS, apply_own, keywords, text,
};
use super::document::open_dataset;
use super::form::{FormKind, Members, StoredForm};
use super::names::{CTDS, QUICKLOOK_VERSION, defined_flags, flags_of, last_part};
use crate::error::{Error, Result};
use crate::h5::{Attribute, Group, LinkKind};
use crate::schema::{ColumnDesc, ColumnKind, TableInfo};
use crate::table::ColumnInfo;
use crate::value::{DataType, Record, Shape, Value, Values};

/// Maximum number of elements of a cell with which an array column that a user made in an HDF5 file as one dataset, for
/// example with h5py, is declared direct: its arrays have a fixed shape and are stored in the data manager's rows.
const DIRECT_ELEMENTS: u64 = 16;

/// A table that a user made in an HDF5 file, for example with h5py: only the attributes of its group describe the
/// table.
pub(super) struct HandmadeTable {
    pub(super) info: TableInfo,
    pub(super) keywords: Record,
    /// Paths of the groups of subtables (`/ANTENNA`), by the references (`././ANTENNA`) in the keywords of a table that
    /// a user made in an HDF5 file.
    pub(super) groups: HashMap<BString, String>,
    /// Sentences for the user about attributes and datasets that cannot be keywords and columns of a table that a user
    /// made in an HDF5 file.
    pub(super) notes: Vec<String>,
}

/// Reads the table that a user made in `group` from its attributes.
pub(super) fn table(root: &Group, group: &Group) -> Result<HandmadeTable> {
    let object = Object::Group(group.clone());
    let own = |name: &str| Ok::<_, Error>(object.attribute(name)?.as_ref().and_then(text).unwrap_or_default());
    let info = TableInfo { table_type: own(TABLE_TYPE)?, sub_type: own(TABLE_SUBTYPE)?, readme: own(README)? };
    let (mut keywords, notes) = keywords(&object, &OF_TABLE)?;
    let mut groups = HashMap::new();
    refer(root, &mut keywords, &mut groups);
    Ok(HandmadeTable { info, keywords, groups, notes })
}

/// Replaces keywords such as `Table: /ANTENNA` by references to subtables, and adds the paths of their groups to `groups`.
fn refer(root: &Group, record: &mut Record, groups: &mut HashMap<BString, String>) {
    for field in &mut record.fields {
        match &mut field.value {
            Value::Record(nested) => refer(root, nested, groups),
            Value::Scalar(Values::String(strings)) => {
                let path = strings.first().and_then(|string| string.strip_prefix(b"Table: /"));
                let path = path.and_then(|path| path.to_str().ok()).filter(|path| root.group(path).is_ok());
                if let Some(path) = path.map(|path| format!("/{path}")) {
                    let name = last_part(&path);
                    let stored = BString::from(format!("././{name}"));
                    groups.insert(stored.clone(), path);
                    field.value = Value::Table(stored);
                }
            }
            _ => {}
        }
    }
}

/// The names of the groups directly in `group` that are tables: all except `_ctds`, groups with the datasets of a
/// column (hypercubes or ragged), and quicklooks (visibilities at reduced resolution, marked by the attribute
/// `quicklook_version`).
pub(super) fn tables_in(group: &Group) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (name, kind) in group.links()? {
        if kind != LinkKind::Group || name == CTDS {
            continue;
        }
        let inside = group.group(&name)?;
        if FormKind::of_group(&inside).is_none() && inside.attribute(QUICKLOOK_VERSION)?.is_none() {
            found.push(name);
        }
    }
    Ok(found)
}

/// Finds the columns that a user put into a group, with description, storage form and number of rows, except those
/// in `known`. Adds to `notes` which other members of the group cannot be columns, and why.
pub(super) fn columns(
    group: &Group,
    known: &[StoredForm],
    notes: &mut Vec<String>,
) -> Result<Vec<(ColumnInfo, StoredForm, u64)>> {
    let mut found = Vec::new();
    for (link, kind) in group.links()? {
        let flags_of = flags_of(&link).is_some_and(|of| group.has(of));
        if flags_of || known.iter().any(|form| form.link == link) {
            continue;
        }
        let column = match kind {
            LinkKind::Dataset => dense(group, &link, notes),
            LinkKind::Group => several(group, &link, notes),
            LinkKind::Soft => Err(Error::unsupported("soft links are not read")),
            LinkKind::Elsewhere => group.dataset(&link).map(|_| None),
            LinkKind::Other => Ok(None),
        };
        match column {
            Ok(Some((info, kind, rows))) => found.push((info, StoredForm::new(kind, link), rows)),
            Ok(None) => {}
            Err(error) if error.may_be_left_out() => notes.push(format!("{link} is not a column: {error}")),
            Err(error) => return Err(error.context(link)),
        }
    }
    Ok(found)
}

/// Whether a dataset is a dimension scale; `class` is its attribute `CLASS`, `None` if it has none.
pub(crate) fn is_scale(class: Option<&Attribute>) -> bool {
    class.and_then(text).is_some_and(|class| class == "DIMENSION_SCALE")
}

/// Describes the column that the single dataset `link` stores, and counts its rows, the extent of the slowest axis;
/// `None` for dimension scales and datasets without axes.
fn dense(group: &Group, link: &str, notes: &mut Vec<String>) -> Result<Option<(ColumnInfo, FormKind, u64)>> {
    let dataset = group.dataset(link)?;
    let class = dataset.attribute("CLASS").ok().flatten();
    if is_scale(class.as_ref()) {
        return Ok(None);
    }
    let shape = dataset.shape()?;
    let Some((cell, rows)) = shape.split_last() else {
        notes.push(format!("dataset {link} has no rows and is not a column"));
        return Ok(None);
    };
    let data_type = dataset.data_type()?;
    let direct = !cell.is_empty() && cell.elements()? <= DIRECT_ELEMENTS && !group.has(&defined_flags(link));
    let axes = cell.len() as i32;
    let mut info = describe(&Object::Dataset(group.header(link)?), link, data_type, axes, notes)?;
    if direct {
        info.desc = info.desc.direct(cell.clone());
        info.shape = Some(cell);
    }
    Ok(Some((info, FormKind::Dense, rows)))
}

/// Describes the column whose cells several datasets in the group `link` store (hypercubes, or cells of differing
/// shapes), and counts its rows; `None` if the group is not a column.
fn several(group: &Group, link: &str, notes: &mut Vec<String>) -> Result<Option<(ColumnInfo, FormKind, u64)>> {
    let column = group.group(link)?;
    let Some(kind) = FormKind::of_group(&column) else { return Ok(None) };
    let (data, rows) = match StoredForm::new(kind, link).open(1, None, |path| open_dataset(group, path))? {
        Members::Dense { .. } => return Ok(None),
        Members::Cubes { mut cubes, row_cube, .. } => (cubes.swap_remove(0), row_cube),
        Members::Ragged { values, defined, .. } => (values, defined),
    };
    let axes = if kind == FormKind::Cubes { data.shape()?.len() as i32 - 1 } else { -1 };
    let rows = rows.shape()?.last().copied().unwrap_or_default();
    let info = describe(&Object::Group(column), link, data.data_type()?, axes, notes)?;
    Ok(Some((info, kind, rows)))
}

/// Makes the description of a column from the attributes of its dataset or group. `axes` is the number of axes of a cell, -1 if
/// it varies.
fn describe(
    object: &Object,
    link: &str,
    data_type: DataType,
    axes: i32,
    notes: &mut Vec<String>,
) -> Result<ColumnInfo> {
    let own = |name: &str| Ok::<_, Error>(object.attribute(name)?.as_ref().and_then(text));
    let name = own(CTDS_NAME)?.unwrap_or_else(|| link.into());
    let kind = if axes == 0 { ColumnKind::Scalar } else { ColumnKind::Array };
    let mut desc = ColumnDesc::new(name, data_type, kind);
    desc.ndim = axes;
    let (found, odd) = keywords(object, &OF_COLUMN)?;
    notes.extend(odd.into_iter().map(|note| format!("{link}: {note}")));
    desc.keywords = found;
    for attribute in &OF_COLUMN[1..] {
        // an exact keyword says more than the first of its elements
        let has_exact = *attribute == UNITS && desc.keywords.get("QuantumUnits").is_some();
        if let Some(text) = own(attribute)?.filter(|_| !has_exact) {
            apply_own(&[(attribute, text)], &mut desc.comment, &mut desc.keywords);
        }
    }
    let shape = (kind == ColumnKind::Scalar).then(Shape::scalar);
    Ok(ColumnInfo {
        desc,
        shape,
        manager: BString::default(),
        manager_name: BString::default(),
        may_be_undefined: false,
    })
}
