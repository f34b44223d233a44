//! The group of a processing set of MSv4 in a native HDF5 file, and attributes of its objects.
//! docs/reference/layout.md, "MSv4".

use bstr::ByteSlice;

use super::attributes::Object;
use super::names::{OF_PROCESSING_SET, PROCESSING_SET};
use super::raw_strings::text_attribute;
use crate::error::Result;
use crate::h5::{Attribute, Group};
use crate::value::Values;

/// Attribute by which netCDF tells coordinates other than those of axes.
const COORDINATES: &str = "coordinates";
/// The attributes of a dataset that do not come from tables.
const OF_WRITING: [&str; 3] = ["creator", "creation_date", COORDINATES];

/// `None` if the file has no processing set.
pub(super) fn find(root: &Group) -> Result<Option<Group>> {
    if !root.has(PROCESSING_SET) {
        return Ok(None);
    }
    let Ok(group) = root.group(PROCESSING_SET) else { return Ok(None) };
    Ok(is_marked(&group)?.then_some(group))
}

pub(super) fn is_marked(group: &Group) -> Result<bool> {
    let (name, value) = OF_PROCESSING_SET;
    Ok(group.attribute(name)?.is_some_and(|found| found == Attribute::string(value)))
}

/// Numbers and texts as they are; truth values, lists and dictionaries as JSON.
pub(crate) fn attribute_of(value: &msv4::Attribute) -> Attribute {
    match value {
        msv4::Attribute::Text(text) => text_attribute(text.as_bytes().as_bstr()),
        msv4::Attribute::Float(value) => Attribute::Scalar(Values::Double(vec![*value])),
        nested => text_attribute(json(nested).to_string().as_bytes().as_bstr()),
    }
}

/// Numbers that JSON does not have are null.
fn json(attribute: &msv4::Attribute) -> serde_json::Value {
    match attribute {
        msv4::Attribute::Bool(value) => (*value).into(),
        msv4::Attribute::Float(value) => (*value).into(),
        msv4::Attribute::Text(text) => text.as_str().into(),
        msv4::Attribute::List(list) => list.iter().map(json).collect(),
        msv4::Attribute::Dictionary(pairs) => pairs.iter().map(|(name, value)| (name.clone(), json(value))).collect(),
        _ => serde_json::Value::Null,
    }
}

/// The attribute `coordinates` of a dataset: those other than its axes.
pub(crate) fn coordinates_attribute(names: &[&str]) -> (&'static str, Attribute) {
    (COORDINATES, Attribute::string(names.join(" ")))
}

/// Names of attributes, of a group or of a dataset in it, that are not as expected.
pub(crate) fn changed_attributes(
    group: &Group,
    dataset: Option<&str>,
    expected: &[(String, msv4::Attribute)],
) -> Result<Vec<String>> {
    let object = match dataset {
        Some(name) => Object::Dataset(group.header(name)?),
        None => Object::Group(group.clone()),
    };
    let mut changed = Vec::new();
    for (name, value) in expected.iter().filter(|(name, _)| !OF_WRITING.contains(&name.as_str())) {
        let same = |found: Attribute| found.values().same_bits(attribute_of(value).values());
        if !object.attribute(name)?.is_some_and(same) {
            changed.push(name.clone());
        }
    }
    let names: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).chain(OF_WRITING).collect();
    changed.append(&mut object.strangers(&names)?);
    Ok(changed)
}
