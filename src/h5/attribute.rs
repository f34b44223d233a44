//! Attributes of HDF5 groups and datasets: their values, and how they are set and read.

use hdf5::plist::attribute_create::AttributeCreate;
use hdf5::plist::link_create::CharEncoding;
use hdf5::types::{IntSize, TypeDescriptor};
use hdf5::{Datatype, Location};
use hdf5_sys::h5::H5_index_t;
use hdf5_sys::h5t::H5T_class_t;

use super::error::Hdf5Result;
use super::sys::{self, Charset, Foreign, Strings, Target};
use super::{dataset, datatype};
use crate::error::{Error, Result, ResultExt};
use crate::value::{DataType, Values};

/// Bytes of name and value that fit an object header: a message has less than 64 KiB, with type and
/// extents.
const HEADER_BYTES: u64 = 65_000;
/// Each string of variable length takes these beside its text, which is in a heap.
pub(crate) const STORED_STRING_BYTES: u64 = 16;

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

pub(super) fn names(owner: &Location) -> Result<Vec<String>> {
    // files of other programs need not keep the order of creation
    sys::attribute_names(owner, H5_index_t::H5_INDEX_CRT_ORDER)
        .or_else(|_| sys::attribute_names(owner, H5_index_t::H5_INDEX_NAME))
}

pub(super) fn get(owner: &Location, name: &str) -> Result<Option<Attribute>> {
    let get = || {
        if sys::has_attribute(owner, name)? {
            read(&owner.attr(name).h5()?).map(|found| Some(found.0))
        } else {
            Ok(None)
        }
    };
    get().with_context(|| format!("attribute {name}"))
}

/// Extents have the slowest axis first; none for a single value or a null dataspace.
pub(super) fn get_shaped(owner: &Location, name: &str) -> Result<(Attribute, Vec<u64>)> {
    owner.attr(name).h5().and_then(|attribute| read(&attribute)).with_context(|| format!("attribute {name}"))
}

fn read(attribute: &hdf5::Attribute) -> Result<(Attribute, Vec<u64>)> {
    let stored = attribute.dtype().h5()?;
    let element = memory_element(&stored)?;
    let space = attribute.space().h5()?;
    let mut values = Values::new(element);
    if space.size() > 0 && !space.is_null() {
        let target = Target::Attribute(attribute);
        match &mut values {
            Values::Int64(v) if datatype::is_uint64(&stored) => {
                v.resize(space.size(), 0);
                let memory = sys::foreign_type(Foreign::UInt64)?;
                sys::read(&target, &memory, bytemuck::cast_slice_mut(v))?;
                v.iter_mut().for_each(|value| *value = i64::from_le(*value));
                if v.iter().any(|&value| value < 0) {
                    return Err(Error::unsupported("the attribute has a number of 2^63 or more"));
                }
            }
            _ => dataset::read_values(&target, &stored, space.size(), &mut values)?,
        }
    }
    let extents = space.shape().into_iter().map(|extent| extent as u64).collect();
    Ok((if space.is_scalar() { Attribute::Scalar(values) } else { Attribute::Array(values) }, extents))
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

/// Members of a compound; empty for another type or a missing attribute.
pub(super) fn fields(owner: &Location, name: &str) -> Result<Vec<String>> {
    if !sys::has_attribute(owner, name)? {
        return Ok(Vec::new());
    }
    Ok(match owner.attr(name).h5().with_context(|| format!("attribute {name}"))?.dtype().h5()?.to_descriptor() {
        Ok(TypeDescriptor::Compound(record)) => record.fields.into_iter().map(|field| field.name).collect(),
        _ => Vec::new(),
    })
}

/// Type as which `stored` is read. Numbers of types that casacore lacks become Short or Int64,
/// floating-point ones Double.
pub(super) fn memory_element(stored: &Datatype) -> Result<DataType> {
    datatype::recognise(stored).or_else(|error| match (sys::class(stored), stored.to_descriptor()) {
        (H5T_class_t::H5T_INTEGER, Ok(TypeDescriptor::Integer(IntSize::U1))) => Ok(DataType::Short),
        (H5T_class_t::H5T_INTEGER, _) if stored.size() <= 8 => Ok(DataType::Int64),
        (H5T_class_t::H5T_FLOAT, _) => Ok(DataType::Double),
        _ => Err(error),
    })
}
