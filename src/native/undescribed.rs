//! Reads tables and columns that a user made in a native HDF5 file or added to it, for example with
//! h5py, so that the group `_ctds` does not describe them. docs/reference/layout.md, "Files made by
//! hand".

use std::collections::{HashMap, HashSet};

use bstr::{BString, ByteSlice};

use super::attributes::{
    BOOL, CTDS_NAME, DTYPE, OF_COLUMN, OF_TABLE, Object, README, TABLE_SUBTYPE, TABLE_TYPE, UNITS, apply_own, keywords,
    text,
};
use super::axes::role_of_scale;
use super::document::open_dataset;
use super::form::{FormKind, Members, StoredForm, row_map};
use super::names::{CTDS, PROCESSING_SET, QUICKLOOK_VERSION, ROW, defined_flags, flags_of, last_part};
use super::notes::{ATTRIBUTES, GROUP, Notes};
use super::processing_set;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Dataset, Group, LinkKind};
use crate::output::Damage;
use crate::schema::{ColumnDesc, ColumnKind, TableInfo};
use crate::table::ColumnInfo;
use crate::value::{DataType, Record, Shape, Value, Values};

/// Larger cells are not declared direct: a fixed shape, stored in the data manager's rows.
const DIRECT_ELEMENTS: u64 = 16;

/// A table made by a user, for example with h5py: its group has attributes only.
pub(super) struct HandmadeTable {
    pub(super) info: TableInfo,
    pub(super) keywords: Record,
    /// Groups of subtables (`/ANTENNA`) by the references (`././ANTENNA`) in keywords.
    pub(super) groups: HashMap<BString, String>,
}

/// `notes` are about attributes that cannot be keywords.
pub(super) fn table(root: &Group, group: &Group, notes: &mut Notes) -> Result<HandmadeTable> {
    let object = Object::Group(group.clone());
    notes.missing(object.damage(), None, GROUP);
    let own = |name: &str| Ok::<_, Error>(object.attribute(name)?.as_ref().and_then(text).unwrap_or_default());
    let info = TableInfo { table_type: own(TABLE_TYPE)?, sub_type: own(TABLE_SUBTYPE)?, readme: own(README)? };
    let (mut keywords, odd) = keywords(&object, &OF_TABLE)?;
    odd.into_iter().for_each(|note| notes.say(note));
    let mut groups = HashMap::new();
    refer(root, &mut keywords, &mut groups);
    Ok(HandmadeTable { info, keywords, groups })
}

/// `Table: /ANTENNA` becomes a reference to a subtable, whose group is added to `groups`.
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

/// Groups, also by soft links, but `_ctds`, columns, quicklooks, and processing sets of MSv4.
pub(super) fn tables_in(group: &Group) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (name, kind) in group.members()? {
        let is_group = match kind {
            LinkKind::Soft => matches!(group.target_kind(&name), Ok(LinkKind::Group)),
            kind => kind == LinkKind::Group,
        };
        if !is_group || name == CTDS {
            continue;
        }
        let is_table = || -> Result<bool> {
            let inside = group.group(&name)?;
            Ok(FormKind::of_group(&inside).is_none()
                && inside.attribute(QUICKLOOK_VERSION)?.is_none()
                && !(name == PROCESSING_SET && processing_set::is_marked(&inside)?))
        };
        match is_table() {
            Ok(false) => {}
            Ok(true) => found.push(name),
            // opening the table gives the error
            Err(error) if error.is_damage() => found.push(name),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Members that belong to no table. `tables` are groups that are tables, whatever they contain.
pub(super) fn note_strays(root: &Group, tables: &HashSet<String>, notes: &mut Notes) -> Result<()> {
    for (name, kind) in root.members()? {
        if tables.contains(&format!("/{name}")) {
            continue;
        }
        let target = if kind == LinkKind::Soft { root.target_kind(&name) } else { Ok(kind) };
        match target {
            Ok(LinkKind::Dataset | LinkKind::Other) => notes.not_a_subtable(format!("/{name}"), "it is not a group"),
            Ok(LinkKind::Damaged) => match (root.group(&name), &mut notes.damage) {
                (Err(error), Some(damage)) => damage.push(Damage::of_table(&name, &error)),
                _ => notes.not_a_subtable(format!("/{name}"), "it is damaged"),
            },
            Ok(LinkKind::Group) if root.group(&name).is_ok_and(|group| FormKind::of_group(&group).is_some()) => {
                notes.not_a_subtable(format!("/{name}"), "it is a column, which belongs in the group of a table");
            }
            Ok(_) => {}
            Err(error) => notes.not_a_subtable(format!("/{name}"), error),
        }
    }
    Ok(())
}

/// Notes why members, except `known`, are not columns. `tables` are tables in any case.
pub(super) fn columns(
    group: &Group,
    known: &[StoredForm],
    tables: &HashSet<String>,
    notes: &mut Notes,
) -> Result<Vec<(ColumnInfo, StoredForm, u64)>> {
    let mut found = Vec::new();
    let known = Known::new(known);
    for (link, kind) in group.members()? {
        let is_table = || tables.contains(&format!("{}/{link}", group.path().trim_end_matches('/')));
        if known.has(&link) || known.is_flags(group, &link) || is_table() {
            continue;
        }
        let target = match kind {
            LinkKind::Soft => group.target_kind(&link),
            kind => Ok(kind),
        };
        let column = match target {
            Ok(LinkKind::Dataset) => dense(group, &known, &link, notes),
            Ok(LinkKind::Group) => several(group, &link, notes),
            Ok(LinkKind::Elsewhere) => group.dataset(&link).map(|_| None),
            // no column is made of a scale
            Ok(LinkKind::Damaged) if role_of_scale(&link).is_some() || link == ROW => Ok(None),
            Ok(LinkKind::Damaged) => group.header(&link).map(|_| None),
            Ok(LinkKind::Soft | LinkKind::Other) => Err(Error::unsupported("it is neither a dataset nor a group")),
            // a link without a target is an edit, not damage
            Err(error) if error.leads_elsewhere() => Err(error),
            Err(error) => Err(Error::unsupported(error.to_string())),
        };
        match column {
            Ok(Some((info, form, rows))) => found.push((info, form, rows)),
            Ok(None) => {}
            Err(error) if error.may_be_left_out() => notes.not_a_column(group, &link, error),
            Err(error) => drop(notes.around::<()>(Err(error), |error| damage_of(&link, error)).context(link)?),
        }
    }
    Ok(found)
}

fn damage_of(link: &str, error: &Error) -> Damage {
    match role_of_scale(link).is_some() || link == ROW {
        true => Damage::of_part("", None, &format!("dimension scale {link}"), error),
        false => Damage::of_column("", link, None, error),
    }
}

struct Known<'a> {
    forms: HashMap<&'a str, &'a StoredForm>,
    flags: HashSet<&'a str>,
}

impl<'a> Known<'a> {
    fn new(forms: &'a [StoredForm]) -> Self {
        let flags = forms.iter().filter_map(|form| form.flags.as_deref()).collect();
        Known { forms: forms.iter().map(|form| (form.link.as_str(), form)).collect(), flags }
    }

    fn has(&self, link: &str) -> bool {
        self.forms.contains_key(link) || self.flags.contains(link)
    }

    /// `COLUMN__defined` beside `COLUMN`, unless `COLUMN` is such itself.
    fn is_flags(&self, group: &Group, link: &str) -> bool {
        flags_of(link).is_some_and(|of| !self.has(of) && group.has(of) && !self.is_flags(group, of))
    }
}

/// Judged by the attribute `CLASS`.
pub(crate) fn is_scale(class: Option<&Attribute>) -> bool {
    class.and_then(text).is_some_and(|class| class == "DIMENSION_SCALE")
}

/// A single dataset and its rows; `None` for scales and datasets without axes.
fn dense(
    group: &Group,
    known: &Known<'_>,
    link: &str,
    notes: &mut Notes,
) -> Result<Option<(ColumnInfo, StoredForm, u64)>> {
    let dataset = group.dataset(link)?;
    let class = dataset.attribute("CLASS").ok().flatten();
    if is_scale(class.as_ref()) {
        return Ok(None);
    }
    let shape = dataset.shape()?;
    let Some((cell, rows)) = shape.split_last() else {
        notes.not_a_column(group, link, "it is a single value, without rows");
        return Ok(None);
    };
    let is_bool = dataset.attribute(DTYPE).ok().flatten().as_ref().and_then(text).is_some_and(|text| text == BOOL);
    let data_type = if is_bool { DataType::Bool } else { dataset.nearest_type()? };
    let flags = Some(defined_flags(link)).filter(|flags| group.has(flags) && known.is_flags(group, flags));
    let direct = !cell.is_empty() && cell.elements()? <= DIRECT_ELEMENTS && flags.is_none();
    let axes = cell.len() as i32;
    let mut info = describe(&Object::Dataset(group.header(link)?), link, data_type, axes, notes)?;
    if direct {
        info.desc = info.desc.direct(cell.clone());
        info.shape = Some(cell);
    }
    Ok(Some((info, StoredForm::new(FormKind::Dense, link).with_flags(flags), rows)))
}

/// Why a group is not a whole column: members are damaged, or those of a processing set.
pub(super) fn rest_of_column(group: &Group) -> Option<Error> {
    let (row_cube, row_index) = row_map();
    let has_grids = || FormKind::of_group(group).is_none() && group.has(row_cube) && group.has(row_index);
    let names_grids = || Error::format("only the description of the column tells where its hypercubes are");
    group.damage().or_else(|| has_grids().then(names_grids))
}

/// Hypercubes, or cells of differing shapes, and rows; `None` if the group is not a column.
fn several(group: &Group, link: &str, notes: &mut Notes) -> Result<Option<(ColumnInfo, StoredForm, u64)>> {
    let column = group.group(link)?;
    let Some(kind) = FormKind::of_group(&column) else {
        return match rest_of_column(&column) {
            Some(error) if notes.damage.is_some() => Err(error),
            _ => Ok(None),
        };
    };
    let form = StoredForm::new(kind, link);
    let rows = |dataset: &Dataset| Ok::<_, Error>(dataset.shape()?.last().copied().unwrap_or_default());
    let (data, counts) = match form.open(1, |path| open_dataset(group, path))? {
        Members::Dense { .. } => return Ok(None),
        Members::Cubes { mut cubes, row_cube, row_index } => {
            (cubes.swap_remove(0), vec![rows(&row_cube)?, rows(&row_index)?])
        }
        Members::Ragged { values, offset, shape, defined } => {
            (values, vec![rows(&defined)?, rows(&shape)?, rows(&offset)?.saturating_sub(1)])
        }
    };
    if counts.iter().any(|count| *count != counts[0]) {
        return Err(Error::unsupported(format!("its datasets have different numbers of rows: {counts:?}")));
    }
    let axes = if kind == FormKind::Cubes { data.shape()?.len() as i32 - 1 } else { -1 };
    let info = describe(&Object::Group(column), link, data.nearest_type()?, axes, notes)?;
    Ok(Some((info, form, counts[0])))
}

/// `axes` of a cell, -1 if the number varies.
fn describe(object: &Object, link: &str, data_type: DataType, axes: i32, notes: &mut Notes) -> Result<ColumnInfo> {
    notes.missing(object.damage(), Some(link), ATTRIBUTES);
    let own = |name: &str| Ok::<_, Error>(object.attribute(name)?.as_ref().and_then(text));
    let name = own(CTDS_NAME)?.unwrap_or_else(|| link.into());
    let kind = if axes == 0 { ColumnKind::Scalar } else { ColumnKind::Array };
    let mut desc = ColumnDesc::new(name, data_type, kind);
    desc.ndim = axes;
    let (found, odd) = keywords(object, &OF_COLUMN)?;
    odd.into_iter().for_each(|note| notes.say(format!("{link}: {note}")));
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
