//! Attributes of HDF5 groups and datasets: their values, and how they are set and read.

use h5_read::{Class, SpaceKind};
use hdf5::Location;
use hdf5::plist::attribute_create::AttributeCreate;
use hdf5::plist::link_create::CharEncoding;
use hdf5_sys::h5::H5_index_t;

use super::error::Hdf5Result;
use super::existing::{Place, text};
use super::sys::{self, Charset, Foreign, Strings, Target};
use super::{datatype, elements};
use crate::error::{Error, Result, ResultExt};
use crate::value::Values;

/// Bytes of name and value that fit an object header: a message has less than 64 KiB, with type and
/// extents.
const HEADER_BYTES: u64 = 65_000;
/// Each string of variable length takes these beside its text, which is in a heap.
const STORED_STRING_BYTES: u64 = 16;

pub(crate) fn fits_header(name: &str, bytes: u64) -> bool {
    bytes.saturating_add(name.len() as u64) <= HEADER_BYTES
}

/// The value of an attribute.
///
/// Bools are stored as int8, which netCDF readers accept, and come back as Shorts; other numbers as
/// datasets have them; strings as variable-length UTF-8.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Attribute {
    Scalar(Values),
    /// More axes of a file's attribute are read as a flat sequence.
    Array(Values),
}

impl Attribute {
    pub(crate) fn string(text: impl Into<bstr::BString>) -> Self {
        Attribute::Scalar(Values::String(vec![text.into()]))
    }

    /// In a file of [`Bounds::Earliest`](super::Bounds::Earliest), headers are the only place for
    /// attributes.
    pub(crate) fn fits_header(&self, name: &str) -> bool {
        let values = self.values();
        let element = match values {
            Values::String(_) => STORED_STRING_BYTES,
            _ => values.data_type().size() as u64,
        };
        fits_header(name, (values.len() as u64).saturating_mul(element))
    }

    pub(crate) fn values(&self) -> &Values {
        let (Attribute::Scalar(values) | Attribute::Array(values)) = self;
        values
    }
}

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
            _ => datatype::create(values.data_type())?,
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

/// An object with attributes.
pub(super) enum Owner<'a> {
    /// Of a file that libhdf5 has open.
    Library(&'a Location),
    Place(&'a Place),
}

impl Owner<'_> {
    /// Ordered by creation if the file records that, else by name.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        match self {
            // files of other programs need not keep the order of creation
            Owner::Library(owner) => sys::attribute_names(owner, H5_index_t::H5_INDEX_CRT_ORDER)
                .or_else(|_| sys::attribute_names(owner, H5_index_t::H5_INDEX_NAME)),
            Owner::Place(place) => {
                Ok(place.known().attributes().iter().map(|attribute| text(&attribute.name)).collect())
            }
        }
    }

    /// `None` if the attribute is missing.
    pub(super) fn get(&self, name: &str) -> Result<Option<Attribute>> {
        Ok(self.find(name).with_context(|| format!("attribute {name}"))?.map(|found| found.0))
    }

    /// Extents have the slowest axis first; none for a single value or a null dataspace.
    pub(super) fn shaped(&self, name: &str) -> Result<(Attribute, Vec<u64>)> {
        let found = self.find(name).transpose().unwrap_or_else(|| Err(Error::not_found("there is none")));
        found.with_context(|| format!("attribute {name}"))
    }

    fn find(&self, name: &str) -> Result<Option<(Attribute, Vec<u64>)>> {
        match self {
            Owner::Library(owner) => in_library(owner, name),
            Owner::Place(place) => in_file(place, name),
        }
    }

    /// Members of a compound; empty for another type or a missing attribute.
    pub(super) fn fields(&self, name: &str) -> Result<Vec<String>> {
        let datatype = match self {
            Owner::Library(owner) if sys::has_attribute(owner, name)? => {
                sys::describe(&owner.attr(name).h5()?.dtype().h5()?)?
            }
            Owner::Library(_) => return Ok(Vec::new()),
            Owner::Place(place) => match place.known().attribute(name) {
                Some(attribute) => (*attribute.datatype).clone(),
                None => return Ok(Vec::new()),
            },
        };
        let Class::Compound(members) = &datatype.class else { return Ok(Vec::new()) };
        Ok(members.iter().map(|member| text(&member.name)).collect())
    }
}

fn in_library(owner: &Location, name: &str) -> Result<Option<(Attribute, Vec<u64>)>> {
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

fn in_file(place: &Place, name: &str) -> Result<Option<(Attribute, Vec<u64>)>> {
    let known = place.known();
    let Some(attribute) = known.attribute(name) else { return Ok(None) };
    let mut values = Values::new(datatype::nearest(&attribute.datatype)?);
    elements::append(&attribute.datatype, &attribute.data, Some(&mut place.texts()), &mut values)?;
    let is_scalar = attribute.space.kind == SpaceKind::Scalar;
    let value = if is_scalar { Attribute::Scalar(values) } else { Attribute::Array(values) };
    Ok(Some((value, attribute.space.extents.clone())))
}

/// One compound of 32-bit integers, `fields` by name and value.
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
