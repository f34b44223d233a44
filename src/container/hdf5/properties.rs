//! Properties of the files in a container, stored as HDF5 attributes.

use serde_json::Value as Json;

use super::{CONTENT, FILES_MARK};
use crate::container::{Properties, Property};
use crate::error::{Error, Result};
use crate::h5::Attribute;
use crate::value::Values;

/// Calls `set` with the name and value of each attribute.
pub(super) fn write(properties: &Properties, set: impl Fn(&str, &Attribute) -> Result<()>) -> Result<()> {
    if let Some(content) = &properties.content {
        set(CONTENT, &Attribute::string(content.as_str()))?;
    }
    properties.values.iter().try_for_each(|(name, value)| set(name, &attribute(value)))
}

fn attribute(value: &Property) -> Attribute {
    match value {
        Property::Int(value) => Attribute::Scalar(Values::Int64(vec![*value])),
        Property::Ints(values) => Attribute::Array(Values::Int64(values.clone())),
        Property::Float(value) => Attribute::Scalar(Values::Double(vec![*value])),
        Property::Text(text) => Attribute::string(text.as_str()),
    }
}

/// Attributes that no [`Property`] can hold, such as arrays of floats, are skipped.
pub(super) fn read(names: Vec<String>, get: impl Fn(&str) -> Result<Option<Attribute>>) -> Result<Properties> {
    let mut found = Properties::default();
    for name in names {
        if name == FILES_MARK || name.starts_with("link.") {
            continue;
        }
        // a user may have added one that cannot be read
        let Ok(Some(attribute)) = get(&name) else { continue };
        let value = match attribute {
            Attribute::Scalar(Values::Int64(values)) if values.len() == 1 => Property::Int(values[0]),
            Attribute::Array(Values::Int64(values)) => Property::Ints(values),
            Attribute::Scalar(Values::Double(values)) if values.len() == 1 => Property::Float(values[0]),
            Attribute::Scalar(Values::String(values)) if values.len() == 1 => Property::Text(values[0].to_string()),
            _ => continue,
        };
        match value {
            Property::Text(text) if name == CONTENT => found.content = Some(text),
            value => found.values.push((name, value)),
        }
    }
    Ok(found)
}

/// The named properties as an object; without the field `content`.
pub(super) fn to_json(properties: &Properties) -> String {
    let json = |value: &Property| match value {
        Property::Int(value) => Json::from(*value),
        Property::Ints(values) => Json::from(values.clone()),
        Property::Float(value) => Json::from(*value),
        Property::Text(text) => Json::from(text.clone()),
    };
    let values = properties.values.iter().map(|(name, value)| (name.clone(), json(value)));
    Json::Object(values.collect()).to_string()
}

/// Errors are `Format`, unless the text is an object of numbers, lists of integers, and strings.
pub(super) fn of_json(text: &str) -> Result<Properties> {
    let wrong = || Error::format("the properties are not a JSON object of numbers, lists of integers and strings");
    let Ok(Json::Object(members)) = serde_json::from_str(text) else { return Err(wrong()) };
    let value = |value: &Json| match value {
        Json::Number(number) => number.as_i64().map(Property::Int).or_else(|| number.as_f64().map(Property::Float)),
        Json::Array(values) => values.iter().map(Json::as_i64).collect::<Option<_>>().map(Property::Ints),
        Json::String(text) => Some(Property::Text(text.clone())),
        _ => None,
    };
    let values = members.iter().map(|(name, json)| Some((name.clone(), value(json)?))).collect::<Option<_>>();
    Ok(Properties { content: None, values: values.ok_or_else(wrong)? })
}
