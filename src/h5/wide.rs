//! Numbers of HDF5 datasets as the widest ones of their kind, for elements whose type differs from
//! the one that is wanted.

use h5_read::{Class, Datatype};

use super::{datatype, elements};
use crate::error::Result;
use crate::value::Complex64;

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
    /// Without elements; `Unsupported` with the name of the type for other types.
    pub(super) fn kind(stored: &Datatype) -> Result<Self> {
        match &stored.class {
            Class::Integer { .. } | Class::Enum { .. } if stored.size <= 8 => Ok(Wide::Integer(Vec::new())),
            Class::Float(_) if stored.size <= 8 => Ok(Wide::Real(Vec::new())),
            Class::Compound(_) if is_complex(stored) => Ok(Wide::Complex(Vec::new())),
            _ => Err(datatype::unsupported(stored)),
        }
    }

    /// `bytes` are elements as a file has them; errors as of [`kind`](Self::kind).
    pub(super) fn of(stored: &Datatype, bytes: &[u8]) -> Result<Self> {
        let elements = bytes.chunks_exact((stored.size as usize).max(1));
        Ok(match Self::kind(stored)? {
            Wide::Integer(_) => {
                Wide::Integer(elements.map(|bytes| elements::integer(stored, bytes)).collect::<Result<_>>()?)
            }
            Wide::Real(_) => Wide::Real(elements.map(|bytes| elements::real(stored, bytes)).collect::<Result<_>>()?),
            Wide::Complex(_) => {
                Wide::Complex(elements.map(|bytes| elements::complex(stored, bytes)).collect::<Result<_>>()?)
            }
        })
    }
}

fn is_complex(stored: &Datatype) -> bool {
    COMPLEX.iter().any(|[real, imaginary]| datatype::complex_parts(stored, real, imaginary).is_some())
}
