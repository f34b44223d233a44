//! Numbers of cells in arrays.

use std::ops::Range;

use super::{Chunks, Stored, Visit, Window};
use crate::error::{Error, Result};

#[derive(Debug)]
pub(super) struct Numbers {
    /// Slowest first.
    axes: Vec<Axis>,
    /// Number of all cells; `None` if an axis is unlimited.
    pub(super) all: Option<u64>,
}

#[derive(Debug)]
struct Axis {
    /// Number of the axis in the dataset.
    axis: usize,
    /// Cells between neighbours on the axis.
    stride: u64,
}

impl Numbers {
    /// Numbers with at most one unlimited axis.
    pub(super) fn new(chunks: &Chunks<'_>) -> Result<Self> {
        let max = &chunks.space.max;
        let cells: Vec<Option<u64>> =
            max.iter().zip(&chunks.layout.shape).map(|(max, &chunk)| max.map(|max| max.div_ceil(chunk))).collect();
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|&axis| cells.get(axis).is_some_and(Option::is_some));
        let mut axes = Vec::with_capacity(order.len());
        let mut stride = Some(1u64);
        for &axis in order.iter().rev() {
            let beyond = || Error::damaged("the greatest extents have more chunks than an array can");
            axes.push(Axis { axis, stride: stride.ok_or_else(beyond)? });
            stride = stride.zip(cells.get(axis).copied().flatten()).and_then(|(all, cells)| all.checked_mul(cells));
        }
        axes.reverse();
        Ok(Numbers { axes, all: stride })
    }

    fn number(&self, cell: &[u64]) -> Option<u64> {
        self.axes
            .iter()
            .try_fold(0u64, |number, axis| number.checked_add(cell.get(axis.axis)?.checked_mul(axis.stride)?))
    }

    pub(super) fn range(&self, window: &Window) -> Result<Range<u64>> {
        if window.is_all {
            return Ok(0..self.all.unwrap_or(u64::MAX));
        }
        let first = self.number(&window.first);
        let end = self.number(&window.last).and_then(|last| last.checked_add(1));
        let range = first.zip(end).map(|(first, end)| first..end);
        range.ok_or_else(|| Error::damaged("the dataset has more chunks than an array can"))
    }

    fn cell(&self, number: u64, cell: &mut [u64]) {
        let mut rest = number;
        for axis in &self.axes {
            if let Some(cell) = cell.get_mut(axis.axis) {
                *cell = rest.checked_div(axis.stride).unwrap_or(0);
            }
            rest = rest.checked_rem(axis.stride).unwrap_or(0);
        }
    }
}

impl Visit<'_, '_> {
    pub(super) fn pass(&mut self, numbers: &Numbers, entries: impl Iterator<Item = (u64, Stored)>) {
        let mut cell = vec![0; self.window.first.len()];
        for (number, stored) in entries {
            numbers.cell(number, &mut cell);
            let passed = (self.each)(&cell, stored);
            self.note(passed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataspace::{Dataspace, SpaceKind};
    use crate::layout::{ChunkIndex, Chunked};

    fn numbers(max: &[Option<u64>]) -> Result<Numbers> {
        let file = crate::testing::file(&[]);
        let space = Dataspace { kind: SpaceKind::Simple, extents: vec![4; max.len()], max: max.to_vec() };
        let layout = Chunked::new(vec![2; max.len()], 1, ChunkIndex::FixedArray, None);
        Numbers::new(&Chunks::new(&file, &layout, &space, false).unwrap())
    }

    #[test]
    fn cells_are_numbered_by_the_greatest_extents() {
        let fixed = numbers(&[Some(4), Some(9)]).unwrap();
        assert_eq!((fixed.all, fixed.number(&[1, 1])), (Some(10), Some(6)));
        let growing = numbers(&[Some(4), None, Some(9)]).unwrap();
        assert_eq!((growing.all, growing.number(&[1, 3, 2])), (None, Some(3 * 10 + 5 + 2)));
        let mut cell = [0; 3];
        growing.cell(37, &mut cell);
        assert_eq!(cell, [1, 3, 2]);
        assert_eq!(
            growing.range(&Window { first: vec![0, 1, 0], last: vec![1, 1, 2], is_all: false }).unwrap(),
            10..18
        );
        assert!(growing.range(&Window { first: vec![0; 3], last: vec![0, u64::MAX, 0], is_all: false }).is_err());
        assert!(numbers(&[None, None]).is_err());
        assert!(numbers(&[Some(u64::MAX), Some(u64::MAX), Some(4)]).is_err());
    }
}
