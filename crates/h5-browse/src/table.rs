//! Shows a casacore table as the HDF5 file that a conversion would make of it: groups and
//! attributes are in a file in memory, the elements of columns are read from the table.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ctds::error::{Context, Result, ResultExt};
use ctds::grid::ChunkCache;
use ctds::table::between_writes;
use ctds::value::{Region, Shape, Values};
use ctds_hdf5::Source;
use ctds_hdf5::internals::{Place, Steps, Unwritten, Visitor};

use crate::resolve::OpenFile;

/// Decoded tiles of each dataset.
const CACHE_BYTES: usize = 16 << 20;

/// Elements read at a time; those between the selected ones count.
const MAX_ELEMENTS: u64 = 1 << 19;

/// A box (range of indices on each axis) of this size is read whole, however few are selected.
const FEW_ELEMENTS: u64 = 1 << 12;

/// A larger box is halved unless at least one in `SPARSE` of its elements is selected.
const SPARSE: u64 = 4;

/// A casacore table, browsed as the native HDF5 file that `to-hdf5 --compress none` would make of
/// it. Nothing is written to a disk, and elements are read when they are asked for. The table has
/// the rows that it had when it was opened.
pub struct TableFile(pub(crate) Arc<OpenFile>);

impl fmt::Debug for TableFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TableFile").field(&self.0.name).finish()
    }
}

impl TableFile {
    /// Opens a casacore table for browsing without a lock, if possible between two writes of
    /// another process. Other tables that it names are opened only if `is_served` is true for the
    /// canonical path of their file or directory.
    ///
    /// # Errors
    /// Those of a conversion: for tables and columns that are damaged, and columns whose cells are
    /// in tables that are not served.
    pub fn open(path: &Path, is_served: &dyn Fn(&Path) -> bool) -> Result<Self> {
        let open = || {
            let (table, file) = Unwritten::write(Source::open_served(path, is_served)?)?;
            OpenFile::of_table(path, table, file)
        };
        between_writes(path, || open().with_context(|| Context::path(path))).map(TableFile)
    }
}

/// Data of a column, or the row numbers of a table.
pub(crate) struct TableElements {
    place: Place,
    cache: ChunkCache,
}

impl TableElements {
    pub(crate) fn new(place: Place) -> Self {
        TableElements { place, cache: ChunkCache::new(CACHE_BYTES) }
    }

    /// Little-endian, last axis fastest.
    pub(crate) fn read_bytes(&self, table: &Unwritten, block: &[Steps]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.each_box(table, block, &mut |part, values| {
            let Some(read) = values.le_bytes() else { return };
            if part.iter().all(|axis| axis.step == 1) {
                return bytes.extend_from_slice(&read);
            }
            let size = read.len() / values.len().max(1);
            for number in selected(part) {
                bytes.extend_from_slice(&read[number * size..(number + 1) * size]);
            }
        })?;
        Ok(bytes)
    }

    /// Strings, last axis fastest.
    pub(crate) fn visit(&self, table: &Unwritten, block: &[Steps], visitor: &mut dyn Visitor) -> Result<()> {
        self.each_box(table, block, &mut |part, values| {
            if let Values::String(strings) = values {
                selected(part).into_iter().for_each(|number| visitor.text(&strings[number]));
            }
        })
    }

    /// First axis slowest; `each` gets selected indices and all elements of a box.
    fn each_box(&self, table: &Unwritten, block: &[Steps], each: &mut dyn FnMut(&[Steps], &Values)) -> Result<()> {
        let product = |of: fn(&Steps) -> u64| block.iter().map(of).fold(1, u64::saturating_mul);
        let (all, wanted) = (product(span), product(|axis| axis.count));
        if all <= FEW_ELEMENTS || all <= MAX_ELEMENTS.min(wanted.saturating_mul(SPARSE)) {
            let shape = |of: fn(&Steps) -> u64| -> Shape { block.iter().rev().map(of).collect() };
            let region = Region { start: shape(|axis| axis.start), shape: shape(span) };
            each(block, &table.read(self.place, &region, &self.cache)?);
            return Ok(());
        }
        // the first axis of several elements in halves: one element is one box
        let Some(axis) = block.iter().position(|axis| axis.count > 1) else { return Ok(()) };
        let Steps { start, step, count } = block[axis];
        let half = count / 2;
        for part in
            [Steps { start, step, count: half }, Steps { start: start + half * step, step, count: count - half }]
        {
            let mut block = block.to_vec();
            block[axis] = part;
            self.each_box(table, &block, each)?;
        }
        Ok(())
    }
}

/// Number of indices from the first selected one to the last.
fn span(axis: &Steps) -> u64 {
    axis.count.saturating_sub(1) * axis.step + u64::from(axis.count > 0)
}

/// Positions of the selected elements in the smallest box around them, last axis fastest.
fn selected(block: &[Steps]) -> Vec<usize> {
    let mut numbers = vec![0];
    for axis in block {
        let on_axis = |before: usize| {
            let first = before * span(axis) as usize;
            (0..axis.count as usize).map(move |number| first + number * axis.step as usize)
        };
        numbers = numbers.into_iter().flat_map(on_axis).collect();
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_a_box() {
        let steps = |start, step, count| Steps { start, step, count };
        assert_eq!(selected(&[]), [0]);
        assert_eq!(selected(&[steps(5, 1, 2), steps(1, 2, 3)]), [0, 2, 4, 5, 7, 9]);
        assert_eq!(selected(&[steps(0, 3, 2), steps(0, 1, 1), steps(2, 1, 2)]), [0, 1, 6, 7]);
        assert_eq!((span(&steps(4, 7, 3)), span(&steps(4, 1, 1)), span(&steps(4, 1, 0))), (15, 1, 0));
    }
}
