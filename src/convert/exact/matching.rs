//! Finds the byte ranges of original casacore files that hold elements of columns, and lists them
//! as segments of the recipes by which a restorable file rebuilds these files.

use std::collections::HashMap;
use std::sync::Arc;

use super::recipe::{Encoding, LITERALS, Segment, Stream};
use crate::convert::to_hdf5::{ColumnForm, ColumnPlan, TablePlan};
use crate::error::{Error, Result};
use crate::h5::Group;
use crate::io::{ByteOrder, ReadAt};
use crate::native::{Members, Reader, StoredForm, open_dataset};
use crate::table::{ColumnCells, Extent, RowRun, Stored};
use crate::value::{DataType, Shape};

/// Rows of a ragged column whose offsets are read at a time.
const OFFSETS_READ_TOGETHER: u64 = 1 << 16;
/// A file with more segments is stored whole, as literals; with more ranges of literals, all its
/// later windows are.
pub(super) const MAX_SEGMENTS_PER_FILE: usize = 1 << 18;

#[derive(Debug, Default)]
pub(super) struct Streams {
    pub(super) list: Vec<Stream>,
    known: HashMap<Stream, u32>,
}

impl Streams {
    /// A new stream is added to the list.
    pub(super) fn number(&mut self, stream: Stream) -> u32 {
        if let Some(&number) = self.known.get(&stream) {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(stream.clone());
        self.known.insert(stream, number);
        number
    }
}

/// Segments of an original file, in the order in which they are found.
#[derive(Debug, Default)]
pub(super) struct Segments {
    pub(super) list: Vec<Segment>,
    /// More than [`MAX_SEGMENTS_PER_FILE`]: all are dropped, the file is stored as literals.
    too_many: bool,
}

impl Segments {
    /// Extends the last segment if possible; `first` is a row of `stream`, `offset` in the file.
    pub(super) fn push(&mut self, stream: u32, first: u64, rows: u64, offset: u64) {
        if let Some(last) = self.list.last_mut()
            && (last.stream, last.rows, last.first + last.count * last.rows) == (stream, rows, first)
        {
            let stride = if last.count == 1 { offset.saturating_sub(last.offset) } else { last.stride };
            if stride > 0 && last.offset + last.count * stride == offset {
                last.stride = stride;
                last.count += 1;
                return;
            }
        }
        self.list.push(Segment { stream, first, rows, count: 1, offset, stride: 0 });
    }

    /// Extends the last literals if possible; `first` is an index in their dataset.
    pub(super) fn push_literal(&mut self, first: u64, bytes: u64, offset: u64) {
        match self.list.last_mut() {
            Some(last) if last.count == 1 && last.offset + last.rows == offset => last.rows += bytes,
            _ => self.push(LITERALS, first, bytes, offset),
        }
    }
}

pub(super) struct Placing<'a> {
    streams: &'a mut Streams,
    column: &'a ColumnPlan,
    form: StoredForm,
    group: String,
    /// Whether the column is one dataset, a single hypercube.
    is_cube: bool,
    /// A ragged column's dataset of the index of each row's first element in `values`.
    offsets: Option<Reader>,
    known: (u64, Vec<i64>),
}

impl<'a> Placing<'a> {
    pub(super) fn new(
        streams: &'a mut Streams,
        root: &Group,
        source: &Arc<dyn ReadAt>,
        table: &TablePlan,
        column: &'a ColumnPlan,
        cells: &dyn ColumnCells,
    ) -> Result<Self> {
        let form = column.stored_form();
        let is_cube = match (&column.form, cells.tiling(1)) {
            (ColumnForm::Dense { shape, .. }, Some(tiling)) => {
                let rows = shape.last().copied().unwrap_or_default();
                tiling.cubes.len() == 1 && tiling.cubes[0].grid().shape == *shape && tiling.runs == RowRun::of_all(rows)
            }
            _ => false,
        };
        let offsets = match &column.form {
            ColumnForm::Ragged { .. } => {
                let open = |path: &str| open_dataset(root, &format!("{}/{path}", table.group));
                match form.open(0, open)? {
                    Members::Ragged { offset, .. } => Some(Reader::of_file(offset, source.clone())?),
                    Members::Dense { .. } | Members::Cubes { .. } => None,
                }
            }
            _ => None,
        };
        Ok(Placing { streams, column, form, group: table.group.clone(), is_cube, offsets, known: (0, Vec::new()) })
    }

    pub(super) fn add(&mut self, extent: &Extent<'_>, segments: &mut Segments) -> Result<()> {
        if segments.too_many {
            return Ok(());
        }
        let encoding = match self.column.data_type {
            DataType::Bool => Encoding::Bits,
            data_type if data_type.size() == 1 => Encoding::Bytes(ByteOrder::Little),
            _ => Encoding::Bytes(extent.order),
        };
        match (&extent.content, &self.column.form) {
            (Stored::Cells(rows), ColumnForm::Dense { shape, .. }) => {
                let Some((cell, _)) = shape.split_last().filter(|(cell, _)| !cell.contains(&0)) else { return Ok(()) };
                let stream =
                    self.streams.number(Stream { dataset: self.form.elements_path(&self.group, 0), encoding, cell });
                segments.push(stream, rows.start, rows.end - rows.start, extent.offset);
            }
            (Stored::Cells(rows), ColumnForm::Ragged { .. }) => {
                let (first, end) = (self.offset(rows.start)?, self.offset(rows.end)?);
                if end > first {
                    let dataset = self.form.elements_path(&self.group, 0);
                    let stream = self.streams.number(Stream { dataset, encoding, cell: Shape::scalar() });
                    segments.push(stream, first, end - first, extent.offset);
                }
            }
            (&Stored::Tiles { cube, ref tile, stride, count }, form) if count > 0 => {
                let dataset = match form {
                    ColumnForm::Dense { .. } if self.is_cube => self.form.elements_path(&self.group, 0),
                    ColumnForm::Cubes { cubes } if cube < cubes.len() => self.form.elements_path(&self.group, cube),
                    _ => return Ok(()),
                };
                let Some((cell, rows)) = tile.split_last() else { return Ok(()) };
                let stream = self.streams.number(Stream { dataset, encoding, cell });
                let stride = if count == 1 { 0 } else { stride };
                segments.list.push(Segment { stream, first: 0, rows, count, offset: extent.offset, stride });
            }
            _ => {}
        }
        if segments.list.len() > MAX_SEGMENTS_PER_FILE {
            *segments = Segments { list: Vec::new(), too_many: true };
        }
        Ok(())
    }

    /// Index in `values` of the first element of a row.
    fn offset(&mut self, row: u64) -> Result<u64> {
        let Some(reader) = &self.offsets else { return Err(Error::format("the column has no dataset of offsets")) };
        let (start, known) = &mut self.known;
        if row < *start || row - *start >= known.len() as u64 {
            let end = reader.rows().min(row.saturating_add(OFFSETS_READ_TOGETHER));
            *start = row;
            *known = reader.integers(row..end)?;
        }
        known
            .get((row - *start) as usize)
            .map(|&offset| offset as u64)
            .ok_or_else(|| Error::format("the dataset of offsets is shorter than the column"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_distances_are_one_segment() {
        let mut segments = Segments::default();
        for box_number in 0..5 {
            segments.push(1, box_number * 10, 10, 512 + box_number * 80);
        }
        // not at that distance, not the next rows, another extent, not after the last
        for (first, rows, offset) in [(50, 10, 1000), (80, 10, 2000), (90, 9, 3000), (99, 9, 2900)] {
            segments.push(1, first, rows, offset);
        }
        let counts: Vec<(u64, u64, u64)> =
            segments.list.iter().map(|segment| (segment.offset, segment.count, segment.stride)).collect();
        assert_eq!(counts, [(512, 5, 80), (1000, 1, 0), (2000, 1, 0), (3000, 1, 0), (2900, 1, 0)]);
    }
}
