//! Element types of arrays as types of HDF5, and the reverse.

use blosc_arrays::dtype::{Dtype, Kind};

use crate::error::Result;
use crate::h5::StoredElement;

/// `Unsupported` for elements without bytes.
pub(super) fn element_of(dtype: &Dtype) -> Result<StoredElement> {
    dtype.check_bytes()?;
    Ok(stored(dtype))
}

fn stored(dtype: &Dtype) -> StoredElement {
    match &dtype.kind {
        Kind::Bool => StoredElement::Bool,
        Kind::Int | Kind::Time(_) => StoredElement::Int(dtype.size),
        Kind::UInt => StoredElement::UInt(dtype.size),
        Kind::Float => StoredElement::Float(dtype.size),
        Kind::Complex => StoredElement::Complex(dtype.size),
        Kind::Bytes => StoredElement::Bytes(dtype.size),
        Kind::Text => StoredElement::Text(dtype.size),
        Kind::Void => StoredElement::Opaque(dtype.size),
        Kind::Record(fields) => {
            StoredElement::Record(fields.iter().map(|(name, field)| (name.clone(), stored(field))).collect())
        }
        Kind::Array(extents, inner) => StoredElement::Array(extents.clone(), Box::new(stored(inner))),
    }
}

/// Always little-endian; text of HDF5 becomes strings of bytes.
pub(super) fn dtype_of(element: &StoredElement) -> Dtype {
    match element {
        StoredElement::Bool => Dtype::new(Kind::Bool, 1),
        StoredElement::Int(size) => Dtype::new(Kind::Int, *size),
        StoredElement::UInt(size) => Dtype::new(Kind::UInt, *size),
        StoredElement::Float(size) => Dtype::new(Kind::Float, *size),
        StoredElement::Complex(size) => Dtype::new(Kind::Complex, *size),
        // the number of characters is not known: numpy has the bytes
        StoredElement::Bytes(size) | StoredElement::Text(size) => Dtype::new(Kind::Bytes, *size),
        StoredElement::Opaque(size) => Dtype::new(Kind::Void, *size),
        StoredElement::Record(fields) => {
            let fields: Vec<_> = fields.iter().map(|(name, field)| (name.clone(), dtype_of(field))).collect();
            let size = fields.iter().map(|(_, field)| field.size).sum();
            Dtype::new(Kind::Record(fields), size)
        }
        StoredElement::Array(extents, element) => {
            let inner = dtype_of(element);
            let size = extents.iter().product::<u64>() as usize * inner.size;
            Dtype::new(Kind::Array(extents.clone(), Box::new(inner)), size)
        }
    }
}
