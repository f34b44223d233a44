//! Numbers of HDF5 datasets as the widest ones of their kind, for elements whose type differs from
//! the one that is wanted.

use hdf5::Datatype;
use hdf5::types::TypeDescriptor;
use hdf5_sys::h5t::H5T_class_t;

use super::sys::{self, Foreign, Target};
use super::{StoredElement, datatype};
use crate::error::Result;
use crate::value::{Complex64, DataType};

/// Members of complex numbers: of h5py and of this program, and of others.
const COMPLEX: [[&str; 2]; 2] = [["r", "i"], ["real", "imag"]];

/// Numbers converted without loss.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wide {
    /// Integers of at most 64 bits, with or without sign; also booleans and other enumerations.
    Integer(Vec<i128>),
    /// Floating-point numbers of at most 64 bits.
    Real(Vec<f64>),
    /// Compounds `{r, i}` or `{real, imag}` of floating-point numbers of at most 64 bits.
    Complex(Vec<Complex64>),
}

impl Wide {
    /// Without elements.
    ///
    /// # Errors
    /// `Unsupported` with the name of the type unless it is one of these numbers.
    pub(super) fn kind(stored: &Datatype) -> Result<Self> {
        match sys::class(stored) {
            H5T_class_t::H5T_INTEGER | H5T_class_t::H5T_ENUM if stored.size() <= 8 => Ok(Wide::Integer(Vec::new())),
            H5T_class_t::H5T_FLOAT if stored.size() <= 8 => Ok(Wide::Real(Vec::new())),
            H5T_class_t::H5T_COMPOUND if complex_names(stored).is_some() => Ok(Wide::Complex(Vec::new())),
            _ => Err(datatype::unsupported(stored)),
        }
    }

    pub(super) fn read(target: &Target<'_>, stored: &Datatype, count: usize) -> Result<Self> {
        let words = |memory: &Datatype, words: usize| -> Result<Vec<[u8; 8]>> {
            let mut bytes = vec![[0u8; 8]; count * words];
            sys::read(target, memory, bytes.as_flattened_mut())?;
            Ok(bytes)
        };
        Ok(match Self::kind(stored)? {
            Wide::Integer(_) if datatype::is_uint64(stored) => {
                let read = words(&sys::foreign_type(Foreign::UInt64)?, 1)?;
                Wide::Integer(read.into_iter().map(|word| u64::from_le_bytes(word).into()).collect())
            }
            Wide::Integer(_) => {
                let read = words(&sys::number_type(DataType::Int64)?, 1)?;
                Wide::Integer(read.into_iter().map(|word| i64::from_le_bytes(word).into()).collect())
            }
            Wide::Real(_) => {
                let read = words(&sys::number_type(DataType::Double)?, 1)?;
                Wide::Real(read.into_iter().map(f64::from_le_bytes).collect())
            }
            Wide::Complex(_) => {
                let names = complex_names(stored).ok_or_else(|| datatype::unsupported(stored))?;
                let part = || sys::simple_type(&StoredElement::Float(8));
                let memory = sys::record_type(&[(names[0], part()?), (names[1], part()?)])?;
                let read = words(&memory, 2)?;
                let number =
                    |pair: &[[u8; 8]]| Complex64::new(f64::from_le_bytes(pair[0]), f64::from_le_bytes(pair[1]));
                Wide::Complex(read.chunks_exact(2).map(number).collect())
            }
        })
    }
}

fn complex_names(stored: &Datatype) -> Option<[&'static str; 2]> {
    let Ok(TypeDescriptor::Compound(compound)) = stored.to_descriptor() else { return None };
    let is_float = compound.fields.iter().all(|field| matches!(field.ty, TypeDescriptor::Float(_)));
    let names: Vec<&str> = compound.fields.iter().map(|field| field.name.as_str()).collect();
    COMPLEX.into_iter().find(|known| is_float && *known == names[..])
}
