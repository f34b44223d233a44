//! Attributes of HDF5 groups and datasets: their values, and how they are set and read.

use h5_read::{Class, SpaceKind};

use super::existing::{Place, text};
use super::{datatype, elements, library};
use crate::error::{Error, Result, ResultExt};
use crate::value::Values;

/// Bytes of name and value: a header's message has less than 64 KiB, with type and extents.
const HEADER_BYTES: u64 = 65_000;
/// Each string of variable length takes these beside its text, which is in a heap.
const STORED_STRING_BYTES: u64 = 16;

pub(crate) fn fits_header(name: &str, bytes: u64) -> bool {
    bytes.saturating_add(name.len() as u64) <= HEADER_BYTES
}

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

    /// Headers are the only place for attributes in a file of `Bounds::Earliest`.
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

pub(super) enum Owner<'a> {
    Group(&'a library::Group),
    Dataset(&'a library::Dataset),
    Place(&'a Place),
}

impl Owner<'_> {
    pub(super) fn names(&self) -> Result<Vec<String>> {
        match self {
            Owner::Group(group) => group.attributes(),
            Owner::Dataset(dataset) => dataset.attributes(),
            Owner::Place(place) => {
                Ok(place.known().attributes().iter().map(|attribute| text(&attribute.name)).collect())
            }
        }
    }

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
            Owner::Group(group) => group.attribute(name),
            Owner::Dataset(dataset) => dataset.attribute(name),
            Owner::Place(place) => in_file(place, name),
        }
    }

    /// Members of a compound; empty for another type or a missing attribute.
    pub(super) fn fields(&self, name: &str) -> Result<Vec<String>> {
        let place = match self {
            Owner::Group(group) => return group.attribute_fields(name),
            Owner::Dataset(_) => return Ok(Vec::new()),
            Owner::Place(place) => place,
        };
        let known = place.known();
        let Some(Class::Compound(members)) = known.attribute(name).map(|attribute| &attribute.datatype.class) else {
            return Ok(Vec::new());
        };
        Ok(members.iter().map(|member| text(&member.name)).collect())
    }
}

fn in_file(place: &Place, name: &str) -> Result<Option<(Attribute, Vec<u64>)>> {
    let known = place.known();
    let Some(attribute) = known.attribute(name) else { return Ok(None) };
    let mut values = Values::new(datatype::nearest(&attribute.datatype)?);
    elements::append(&attribute.datatype, &attribute.data, Some(&mut place.attribute_texts()), &mut values)?;
    let is_scalar = attribute.space.kind == SpaceKind::Scalar;
    let value = if is_scalar { Attribute::Scalar(values) } else { Attribute::Array(values) };
    Ok(Some((value, attribute.space.extents.clone())))
}
