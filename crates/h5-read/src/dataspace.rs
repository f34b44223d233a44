//! Dataspaces: extents of datasets and attributes. HDF5 File Format Specification 3.0, section
//! IV.A.2.b.
//!
//! A message has its version, the number of axes, flags and, from version 2 on, the kind; then the
//! extents and, if a flag says so, the greatest extents. Version 1 has 5 bytes of padding before
//! the extents.

use crate::bytes::Bytes;
use crate::error::Result;

const MAX_RANK: u8 = 32;

const HAS_MAX: u8 = 1;
/// Was specified, but never written by a release of the HDF5 library.
const HAS_PERMUTATION: u8 = 1 << 1;

/// Whether a dataspace has elements, and whether it has axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceKind {
    /// One element, no axes.
    Scalar,
    /// An array of at least one axis.
    Simple,
    /// No elements, no axes.
    Null,
}

/// Extents of a dataset or an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataspace {
    /// Scalar, simple or null.
    pub kind: SpaceKind,
    /// Slowest axis first; empty unless the kind is simple.
    pub extents: Vec<u64>,
    /// Extents to which the dataset can grow, as many as `extents` and none less; `None` for an
    /// unlimited axis.
    pub max: Vec<Option<u64>>,
}

impl Dataspace {
    pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        let version = fields.version(&[1, 2])?;
        let rank = fields.u8()?;
        let flags = fields.u8()?;
        if rank > MAX_RANK {
            return Err(fields.error(format!("the dataspace has {rank} axes, at most {MAX_RANK} are possible")));
        }
        let kind = if version == 1 {
            fields.skip(5)?;
            if rank == 0 { SpaceKind::Scalar } else { SpaceKind::Simple }
        } else {
            match fields.u8()? {
                0 => SpaceKind::Scalar,
                1 => SpaceKind::Simple,
                2 => SpaceKind::Null,
                kind => return Err(fields.unsupported(format!("a dataspace of the unknown kind {kind}"))),
            }
        };
        if kind != SpaceKind::Simple && rank > 0 {
            return Err(fields.error(format!("a {kind:?} dataspace has {rank} axes")));
        }
        if version == 1 && flags & HAS_PERMUTATION != 0 {
            return Err(fields.unsupported("the axes of the dataspace are permuted"));
        }
        let extents = (0..rank).map(|_| fields.length()).collect::<Result<Vec<_>>>()?;
        let max = match flags & HAS_MAX {
            0 => extents.iter().copied().map(Some).collect(),
            _ => (0..rank).map(|_| limit(fields)).collect::<Result<Vec<_>>>()?,
        };
        for (&extent, &max) in extents.iter().zip(&max) {
            if let Some(max) = max.filter(|&max| max < extent) {
                return Err(fields.error(format!("the extent is {extent}, at most {max} is expected")));
            }
        }
        Ok(Dataspace { kind, extents, max })
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// Number of elements; `None` if it is larger than all numbers.
    pub fn elements(&self) -> Option<u64> {
        if self.kind == SpaceKind::Null || self.extents.contains(&0) {
            return Some(0);
        }
        self.extents.iter().try_fold(1u64, |all, &extent| all.checked_mul(extent))
    }
}

/// A greatest extent; all bits set for an unlimited axis.
fn limit(fields: &mut Bytes<'_>) -> Result<Option<u64>> {
    let unlimited = u64::MAX >> (64 - 8 * fields.sizes().length.clamp(1, 8));
    Ok(Some(fields.length()?).filter(|&max| max != unlimited))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Sizes;

    fn decode(bytes: &[u8]) -> Result<Dataspace> {
        Dataspace::decode(&mut Bytes::new("dataspace", 0, bytes, Sizes { address: 8, length: 2 }))
    }

    fn message(bytes: &[u8]) -> String {
        decode(bytes).unwrap_err().message().to_owned()
    }

    #[test]
    fn kinds_of_both_versions() {
        assert_eq!(decode(&[1, 0, 0, 0, 0, 0, 0, 0]).unwrap().kind, SpaceKind::Scalar);
        assert_eq!(decode(&[2, 0, 0, 0]).unwrap().elements(), Some(1));
        assert_eq!(decode(&[2, 0, 0, 2]).unwrap().elements(), Some(0));
        let plain = decode(&[1, 2, 0, 0, 0, 0, 0, 0, 3, 0, 4, 1]).unwrap();
        assert_eq!((plain.extents, plain.max), (vec![3, 260], vec![Some(3), Some(260)]));
        let growing = decode(&[2, 2, 1, 1, 3, 0, 4, 0, 0xff, 0xff, 5, 0]).unwrap();
        assert_eq!((growing.rank(), growing.elements(), growing.max), (2, Some(12), vec![None, Some(5)]));
    }

    #[test]
    fn contradictory_dataspaces_are_refused() {
        assert_eq!(message(&[2, 33, 0, 1]), "the dataspace has 33 axes, at most 32 are possible");
        assert_eq!(message(&[2, 1, 0, 0, 1, 0]), "a Scalar dataspace has 1 axes");
        assert_eq!(message(&[2, 0, 0, 3]), "a dataspace of the unknown kind 3");
        assert_eq!(message(&[2, 1, 1, 1, 3, 0, 2, 0]), "the extent is 3, at most 2 is expected");
        assert_eq!(message(&[2, 1, 1, 1, 3, 0]), "2 bytes are expected, 0 remain");
        let huge = Dataspace { kind: SpaceKind::Simple, extents: vec![1 << 40; 2], max: vec![None; 2] };
        assert_eq!(huge.elements(), None);
    }
}
