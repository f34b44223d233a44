//! Attributes of objects that libhdf5 has open.

use h5_read::Class;
use hdf5::Location;
use hdf5::plist::attribute_create::AttributeCreate;
use hdf5::plist::link_create::CharEncoding;
use hdf5_sys::h5::H5_index_t;

use super::super::error::Hdf5Result;
use super::super::existing::text;
use super::super::sys::{self, Charset, Foreign, Strings, Target};
use super::super::{Attribute, datatype, elements};
use crate::error::{Error, Result, ResultExt};
use crate::value::Values;

/// Replaces an existing attribute; `charset` is that of the name and of strings.
pub(super) fn set(owner: &Location, name: &str, value: &Attribute, charset: Charset) -> Result<()> {
    let set = || -> Result<()> {
        let values = value.values();
        // fails before anything is created
        let strings = match values {
            Values::String(strings) => Some(Strings::new(strings)?),
            _ => None,
        };
        let space = match value {
            Attribute::Scalar(_) if values.len() == 1 => sys::scalar()?,
            Attribute::Scalar(_) => {
                return Err(Error::usage(format!("a scalar attribute has one value, found {}", values.len())));
            }
            Attribute::Array(_) => sys::dataspace(&[values.len() as u64], false)?,
        };
        let stored = match values {
            Values::Bool(_) => sys::foreign_type(Foreign::Int8)?,
            Values::String(_) => sys::string_type(charset)?,
            element => sys::number_type(element.data_type())?,
        };
        if sys::has_attribute(owner, name)? {
            owner.delete_attr(name).h5()?;
        }
        let encoding = match charset {
            Charset::Ascii => CharEncoding::Ascii,
            Charset::Utf8 => CharEncoding::Utf8,
        };
        let creation = AttributeCreate::build().char_encoding(encoding).finish().h5()?;
        let attribute = sys::create_attribute(owner, name, &stored, &space, &creation)?;
        let target = Target::Attribute(&attribute);
        match (strings, values.le_bytes()) {
            _ if values.is_empty() => Ok(()),
            (Some(strings), _) => sys::write_strings(&target, charset, &strings),
            (None, bytes) => sys::write(&target, &stored, &bytes.expect("records were refused before")),
        }
    };
    set().with_context(|| format!("attribute {name}"))
}

pub(super) fn names(owner: &Location) -> Result<Vec<String>> {
    // files of other programs need not keep the order of creation
    sys::attribute_names(owner, H5_index_t::H5_INDEX_CRT_ORDER)
        .or_else(|_| sys::attribute_names(owner, H5_index_t::H5_INDEX_NAME))
}

/// Extents have the slowest axis first; none for a single value or a null dataspace.
pub(super) fn get(owner: &Location, name: &str) -> Result<Option<(Attribute, Vec<u64>)>> {
    if !sys::has_attribute(owner, name)? {
        return Ok(None);
    }
    let attribute = owner.attr(name).h5()?;
    let datatype = attribute.dtype().h5()?;
    let stored = sys::describe(&datatype)?;
    let space = attribute.space().h5()?;
    let mut values = Values::new(datatype::nearest(&stored)?);
    if space.size() > 0 && !space.is_null() {
        let target = Target::Attribute(&attribute);
        match &mut values {
            Values::String(strings) => sys::read_strings(&target, &datatype, strings)?,
            values => {
                let mut bytes = vec![0; space.size() * datatype.size()];
                sys::read(&target, &datatype, &mut bytes)?;
                elements::append(&stored, &bytes, None, values)?;
            }
        }
    }
    let extents = space.shape().into_iter().map(|extent| extent as u64).collect();
    Ok(Some((if space.is_scalar() { Attribute::Scalar(values) } else { Attribute::Array(values) }, extents)))
}

pub(super) fn fields(owner: &Location, name: &str) -> Result<Vec<String>> {
    if !sys::has_attribute(owner, name)? {
        return Ok(Vec::new());
    }
    let datatype = sys::describe(&owner.attr(name).h5()?.dtype().h5()?)?;
    let Class::Compound(members) = &datatype.class else { return Ok(Vec::new()) };
    Ok(members.iter().map(|member| text(&member.name)).collect())
}

pub(super) fn set_int_record(owner: &Location, name: &str, fields: &[(&str, i32)]) -> Result<()> {
    let set = || -> Result<()> {
        let (names, values): (Vec<_>, Vec<_>) = fields.iter().copied().unzip();
        let stored = sys::int_record_type(&names)?;
        let creation = AttributeCreate::build().finish().h5()?;
        let attribute = sys::create_attribute(owner, name, &stored, &sys::scalar()?, &creation)?;
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        sys::write(&Target::Attribute(&attribute), &stored, &bytes)
    };
    set().with_context(|| format!("attribute {name}"))
}
