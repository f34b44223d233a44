//! A box within an array.

use std::ops::Range;

use super::Shape;
use crate::error::{Error, Result};

/// A box: where it starts and how far it extends, first axis fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// First element on each axis.
    pub start: Shape,
    /// Extent on each axis.
    pub shape: Shape,
}

impl Region {
    /// All of an array of `shape`.
    pub fn whole(shape: &Shape) -> Self {
        Region { start: shape.iter().map(|_| 0).collect(), shape: shape.clone() }
    }

    /// Whole cells of shape `cell`, those of `rows`: the rows are the last axis.
    pub(crate) fn rows(cell: &Shape, rows: Range<u64>) -> Self {
        let start = cell.iter().map(|_| 0).chain([rows.start]).collect();
        Region { start, shape: cell.with_axis(rows.end.saturating_sub(rows.start)) }
    }

    /// Checks that the box lies within an array of `shape`.
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
