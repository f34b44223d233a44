//! Shapes: the extents of arrays, first axis fastest.

use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

use crate::error::{Error, Result};

/// The extents of an array in casacore's order: the first axis varies fastest.
///
/// A scalar has no axes. HDF5 and numpy list the axes the other way round: see
/// [`reversed`](Self::reversed).
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Shape(SmallVec<[u64; 4]>);

impl Shape {
    /// The shape of a scalar: no axes.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// The number of elements of an array of this shape; 1 for a scalar.
    ///
    /// # Errors
    /// `Format` if the product does not fit 63 bits.
    pub fn elements(&self) -> Result<u64> {
        if self.contains(&0) {
            return Ok(0);
        }
        self.iter()
            .try_fold(1u64, |product, &extent| product.checked_mul(extent))
            .filter(|&product| product <= i64::MAX as u64)
            .ok_or_else(|| Error::format(format!("array shape {self} has more than 2^63 elements")))
    }

    /// The extents of the shape with the slowest axis first, as HDF5 and numpy list them.
    pub fn reversed(&self) -> Vec<u64> {
        self.iter().rev().copied().collect()
    }

    /// The shape of an array whose extents HDF5 or numpy lists as `extents`: slowest axis first.
    pub fn from_reversed(extents: &[u64]) -> Self {
        extents.iter().rev().copied().collect()
    }

    /// This shape with one more axis of `extent` elements at the end, as the slowest.
    pub fn with_axis(&self, extent: u64) -> Self {
        let mut axes = self.0.clone();
        axes.push(extent);
        Shape(axes)
    }

    /// The shape without its last (slowest) axis, and the extent of that axis; `None` for a scalar.
    pub fn split_last(&self) -> Option<(Shape, u64)> {
        let (&last, rest) = self.0.split_last()?;
        Some((Shape::from(rest), last))
    }
}

impl Deref for Shape {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl From<&[u64]> for Shape {
    fn from(extents: &[u64]) -> Self {
        Shape(SmallVec::from_slice(extents))
    }
}

impl<const N: usize> From<[u64; N]> for Shape {
    fn from(extents: [u64; N]) -> Self {
        Shape(SmallVec::from_slice(&extents))
    }
}

impl FromIterator<u64> for Shape {
    fn from_iter<I: IntoIterator<Item = u64>>(extents: I) -> Self {
        Shape(extents.into_iter().collect())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter()).finish()
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_checked() {
        assert_eq!(Shape::scalar().elements().unwrap(), 1);
        assert_eq!(Shape::from([4, 64, 0]).elements().unwrap(), 0);
        assert_eq!(Shape::from([4, 64]).elements().unwrap(), 256);
        assert!(Shape::from([1 << 32, 1 << 32]).elements().is_err());
        assert_eq!(Shape::from([0, 1 << 60, 1 << 60]).elements().unwrap(), 0);
    }

    #[test]
    fn reversed_is_numpy_order() {
        let shape = Shape::from([4, 64, 10]);
        assert_eq!(shape.reversed(), [10, 64, 4]);
        assert_eq!(Shape::from_reversed(&[10, 64, 4]), shape);
    }
}
