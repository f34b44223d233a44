//! A region: a box within an array, to which a read or write of a part of the array is limited.

use std::ops::Range;

use super::Shape;
use crate::error::{Error, Result};

/// A box within an array: its first element and its extents, each with the first (fastest) axis
/// first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// First element of the region on each axis, counted from 0, fastest axis first.
    pub start: Shape,
    /// Extent of the region on each axis in elements, fastest axis first.
    pub shape: Shape,
}

impl Region {
    /// Makes a region from its first element and its extents, both with the slowest axis first, as
    /// ndarray and numpy list axes.
    ///
    /// ```
    /// use ctds::value::{Region, Shape};
    ///
    /// // channel 10, all 4 correlations
    /// let region = Region::c_order(&[10, 0], &[1, 4]);
    /// assert_eq!(region, Region { start: Shape::from([0, 10]), shape: Shape::from([4, 1]) });
    /// ```
    pub fn c_order(start: &[u64], shape: &[u64]) -> Self {
        let reversed = |axes: &[u64]| axes.iter().rev().copied().collect();
        Region { start: reversed(start), shape: reversed(shape) }
    }

    /// The region that covers a whole array of `shape`.
    pub fn whole(shape: &Shape) -> Self {
        Region { start: shape.iter().map(|_| 0).collect(), shape: shape.clone() }
    }

    /// Whole cells of shape `cell` in a hypercube: the axes of a cell, and then the row.
    #[doc(hidden)]
    pub fn rows(cell: &Shape, rows: Range<u64>) -> Self {
        let start = cell.iter().map(|_| 0).chain([rows.start]).collect();
        Region { start, shape: cell.with_axis(rows.end.saturating_sub(rows.start)) }
    }

    /// Checks that the region lies within an array of `shape`, fastest axis first, and has as many
    /// axes.
    ///
    /// # Errors
    /// `Usage` if it does not, or has another number of axes.
    pub fn check(&self, shape: &Shape) -> Result<()> {
        let inside = self.start.len() == shape.len()
            && self.shape.len() == shape.len()
            && (0..shape.len())
                .all(|axis| self.start[axis].checked_add(self.shape[axis]).is_some_and(|end| end <= shape[axis]));
        if inside {
            Ok(())
        } else {
            Err(Error::usage(format!("region {} + {} leaves the array's shape {shape}", self.start, self.shape)))
        }
    }
}
