//! Finds what a native HDF5 file holds that no table has, because a user has added it where nothing
//! reads it: a conversion says that it is left out. docs/reference/layout.md, "Edits".

use std::collections::HashSet;

use super::attributes::{LONG_NAME, Object, UNITS};
use super::axes::role_of_scale;
use super::document::ROOT_ATTRIBUTES;
use super::form::StoredForm;
use super::names::{COMMITTED_ROWS, CTDS};
use super::undescribed::is_scale;
use crate::error::Result;
use crate::h5::{Group, LinkKind};
use crate::value::{Region, Shape, Values};

const OF_SCALE: [&str; 2] = [UNITS, LONG_NAME];

/// Attributes of the root group, and members of `_ctds` that describe nothing.
pub(super) fn in_root(root: &Group) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    note_attributes(&Object::Group(root.clone()), "/", &ROOT_ATTRIBUTES, &mut notes)?;
    if root.has(CTDS) {
        let exact = root.group(CTDS)?;
        note_attributes(&Object::Group(exact.clone()), &format!("/{CTDS}"), &[], &mut notes)?;
        for (name, kind) in exact.members()? {
            if !matches!(kind, LinkKind::Group | LinkKind::Damaged) {
                notes.push(format!("/{CTDS}/{name} is not converted: it describes no table"));
            }
        }
    }
    Ok(notes)
}

/// Scales made or changed by a user, members of columns that are groups, attributes of datasets.
/// `row` is the scale of the rows, `coordinates` are values by role.
pub(super) fn in_table(
    table: &Group,
    forms: &[StoredForm],
    row: &str,
    coordinates: &[(String, Values)],
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let columns: HashSet<&str> = forms.iter().map(|form| form.link.as_str()).collect();
    let flags: HashSet<&str> = forms.iter().filter_map(|form| form.flags.as_deref()).collect();
    for (name, kind) in table.members()? {
        if kind != LinkKind::Dataset || columns.contains(name.as_str()) || name == COMMITTED_ROWS {
            continue;
        }
        let object = Object::Dataset(table.header(&name)?);
        if flags.contains(name.as_str()) {
            note_attributes(&object, &name, &[], &mut notes)?;
        } else if is_scale(object.attribute("CLASS").ok().flatten().as_ref()) {
            note_scale(table, &name, &object, row, coordinates, &mut notes)?;
        }
    }
    for form in forms.iter().filter(|form| form.has_group()) {
        let Ok(group) = table.group(&form.link) else { continue };
        for (name, kind) in group.members()? {
            let path = format!("{}/{name}", form.link);
            let own: &[&str] = if form.has_member(&name) { &[] } else { &OF_SCALE };
            if kind == LinkKind::Dataset && (form.has_member(&name) || role_of_scale(&name).is_some()) {
                note_attributes(&Object::Dataset(group.header(&name)?), &path, own, &mut notes)?;
            } else if !form.has_member(&name) {
                notes.push(format!("{path} is not converted: it is not part of the column"));
            }
        }
    }
    Ok(notes)
}

fn note_scale(
    group: &Group,
    name: &str,
    object: &Object,
    row: &str,
    coordinates: &[(String, Values)],
    notes: &mut Vec<String>,
) -> Result<()> {
    let dataset = group.dataset(name)?;
    let has_values = || dataset.stored_bytes() > 0;
    let Some(role) = role_of_scale(name).or((name == row).then_some(row)) else {
        // a dimension of netCDF without a variable is a name
        if has_values() {
            notes.push(format!("{name} is not a column: it is a dimension scale"));
        }
        return Ok(());
    };
    note_attributes(object, name, &OF_SCALE, notes)?;
    let fitting: Vec<&Values> =
        coordinates.iter().filter(|(known, _)| known == role).map(|(_, values)| values).collect();
    let shape = dataset.shape()?;
    let Some(first) = fitting.iter().find(|values| shape == Shape::from([values.len() as u64])) else { return Ok(()) };
    if has_values() && dataset.data_type()? == first.data_type() {
        let mut found = Values::new(first.data_type());
        dataset.read_region(&Region::whole(&shape), &mut found)?;
        if !fitting.iter().any(|values| values.same_bits(&found)) {
            notes.push(format!("the values of {name} are not converted: they differ from those of the table"));
        }
    }
    Ok(())
}

fn note_attributes(object: &Object, path: &str, own: &[&str], notes: &mut Vec<String>) -> Result<()> {
    let found = object.strangers(own)?;
    notes.extend(
        found.into_iter().map(|name| format!("attribute {name} of {path} is not converted: no keyword has it")),
    );
    Ok(())
}
