//! Finds the rows of a StManAipsIO column in the file.

use crate::aipsio::Decoder;
use crate::error::{Error, Result};

/// In place of the u32 offset of an array: the offset follows as an i64.
pub(super) const WIDE_OFFSET: u32 = 0x8000_0001;

/// Distance in rows between kept offsets, in a column whose cells have varying lengths.
const SEGMENT_ROWS: u64 = 32;

#[derive(Debug, Clone, Copy)]
pub(super) enum Layout {
    /// One Bool, one bit; the rows of each chunk begin at a whole byte.
    Bits,
    /// A cell of fixed size: `skip` bytes that are ignored, then `bytes` bytes of elements.
    Fixed { skip: u64, bytes: u64 },
    /// Strings with u32 lengths; if `counted`, their number precedes them, a u32.
    Strings { count: u64, counted: bool },
    /// Byte offset of the array in the array file: a u32 or, after [`WIDE_OFFSET`], an i64.
    Offsets,
}

/// AipsIO object `StManColumnAipsIO`, whose chunks show how the writer's memory was allocated:
///
/// | field | type | meaning |
/// |----------|------|---------------------------------------------------------------------------------|
/// | rows | u32 | |
/// | count | u32 | per chunk: its rows, 0 for all that remain |
/// | elements | u32 | per chunk: elements in all its rows; not for offsets, nor for arrays in version 1 |
/// | values | | per chunk; in version 1, u32 elements before each array |
#[derive(Debug)]
pub(super) struct Segments {
    pub(super) layout: Layout,
    /// Row and byte offset of some rows, ascending; other rows are found from these.
    starts: Vec<(u64, u64)>,
    rows: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) first_row: u64,
    /// Byte offset of row `first_row`.
    pub(super) offset: u64,
    pub(super) end_row: u64,
}

impl Segments {
    /// Skips the cells. `elements` is the number in a cell, `None` for offsets of arrays; `layout`
    /// gives the layout of rows by the version of the column's object.
    pub(super) fn decode(
        d: &mut Decoder<'_>,
        rows: u64,
        elements: Option<u64>,
        layout: impl FnOnce(u32) -> Layout,
    ) -> Result<Self> {
        let version = d.start("StManColumnAipsIO", 1..=2)?;
        let layout = layout(version);
        let found = u64::from(d.u32("rows")?);
        if found != rows {
            return Err(d.error(format!("{found} rows, the table has {rows}")));
        }
        let counted = matches!(layout, Layout::Fixed { skip: 1.., .. } | Layout::Strings { counted: true, .. });
        let mut segments = Segments { layout, starts: Vec::new(), rows };
        let mut row = 0;
        while row < rows {
            let count = match u64::from(d.u32("rows of a chunk")?) {
                0 => rows - row,
                count if count <= rows - row => count,
                count => return Err(d.error(format!("a chunk of {count} rows where {} remain", rows - row))),
            };
            if let Some(elements) = elements
                && !counted
            {
                let stored = d.u32("elements of a chunk")?;
                // casacore counts in 32 bits
                if stored != count.wrapping_mul(elements) as u32 {
                    return Err(d.error(format!("{stored} elements in a chunk of {count} rows of {elements}")));
                }
            }
            segments.chunk(d, row, count)?;
            row += count;
        }
        d.end()?;
        Ok(segments)
    }

    fn chunk(&mut self, d: &mut Decoder<'_>, first_row: u64, count: u64) -> Result<()> {
        self.starts.push((first_row, d.position()));
        match self.layout {
            Layout::Bits => return d.skip("values", count.div_ceil(8)),
            Layout::Fixed { skip, bytes } => {
                return d.skip("values", count.saturating_mul(bytes.saturating_add(skip)));
            }
            // a row without bytes could be announced any number of times
            Layout::Strings { count: 0, counted: false } => return Ok(()),
            Layout::Strings { .. } | Layout::Offsets => {}
        }
        for row in 0..count {
            if row > 0 && row % SEGMENT_ROWS == 0 {
                self.starts.push((first_row + row, d.position()));
            }
            match self.layout {
                Layout::Offsets => {
                    if d.u32("offset")? == WIDE_OFFSET {
                        d.skip("offset", 8)?;
                    }
                }
                Layout::Strings { count, counted } => {
                    if counted {
                        d.u32("elements of a cell")?;
                    }
                    for _ in 0..count {
                        let len = d.u32("string length")?;
                        d.skip("string", u64::from(len))?;
                    }
                }
                Layout::Bits | Layout::Fixed { .. } => {}
            }
        }
        Ok(())
    }

    pub(super) fn find(&self, row: u64) -> Result<Segment> {
        let next = self.starts.partition_point(|&(first, _)| first <= row);
        if row >= self.rows || next == 0 {
            return Err(Error::format(format!("row {row} is not stored: the column has {} rows", self.rows)));
        }
        let (first_row, offset) = self.starts[next - 1];
        let end_row = self.starts.get(next).map_or(self.rows, |&(first, _)| first);
        Ok(Segment { first_row, offset, end_row })
    }
}
