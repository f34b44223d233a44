//! Reads a column of StManAipsIO, whose rows are stored in several groups in the file.

use std::ops::Range;
use std::sync::Arc;

use bstr::BString;

use super::segments::{Layout, Segments, WIDE_OFFSET};
use super::{ORDER, Shared};
use crate::error::{Error, Result, ResultExt};
use crate::io::{read_array, read_bytes};
use crate::stman::elements::Elements;
use crate::stman::indirect::ArrayFile;
use crate::stman::{ColumnCells, EachExtent, Extent, Stored, read_part, undefined};
use crate::value::{DataType, Region, Shape, Values};

#[derive(Debug)]
pub(super) struct AipsIoColumn {
    pub(super) shared: Arc<Shared>,
    pub(super) cell: Cell,
    pub(super) segments: Segments,
}

#[derive(Debug)]
pub(super) enum Cell {
    Elements {
        shape: Shape,
        count: u64,
    },
    /// Byte offset of the array in the array file; 0 if the cell is undefined.
    Array(ArrayFile),
}

struct Cursor<'a> {
    shared: &'a Shared,
    position: u64,
}

impl Cursor<'_> {
    fn u32(&mut self) -> Result<u32> {
        let value = u32::from_be_bytes(read_array(&self.shared.file, self.position)?);
        self.position += 4;
        Ok(value)
    }

    fn string(&mut self) -> Result<BString> {
        let len = u64::from(self.u32()?);
        let bytes = read_bytes(&self.shared.file, self.position, len)?;
        self.position += len;
        Ok(bytes.into())
    }

    fn array_offset(&mut self) -> Result<i64> {
        match self.u32()? {
            WIDE_OFFSET => {
                let offset = i64::from_be_bytes(read_array(&self.shared.file, self.position)?);
                self.position += 8;
                Ok(offset)
            }
            offset => Ok(i64::from(offset)),
        }
    }
}

impl AipsIoColumn {
    /// Cells of varying length: `each` moves the cursor past a cell, and gets `true` before `rows`.
    fn for_cells(&self, rows: Range<u64>, mut each: impl FnMut(&mut Cursor<'_>, bool) -> Result<()>) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let segment = self.segments.find(row)?;
            let mut cursor = Cursor { shared: &self.shared, position: segment.offset };
            for _ in segment.first_row..row {
                each(&mut cursor, true)?;
            }
            let end = segment.end_row.min(rows.end);
            for _ in row..end {
                each(&mut cursor, false)?;
            }
            row = end;
        }
        Ok(())
    }

    fn array_offsets(&self, rows: Range<u64>) -> Result<Vec<i64>> {
        let mut offsets = Vec::new();
        self.for_cells(rows, |cursor, pass| {
            let offset = cursor.array_offset()?;
            if !pass {
                offsets.push(offset);
            }
            Ok(())
        })
        .context(&self.shared.place)?;
        Ok(offsets)
    }

    fn array_offset(&self, row: u64) -> Result<i64> {
        let offsets = self.array_offsets(row..row + 1)?;
        Ok(offsets[0])
    }

    fn read_strings(&self, rows: Range<u64>, count: u64, counted: bool, out: &mut Values) -> Result<()> {
        let Values::String(out) = out else { return Err(Error::usage("strings are read into strings")) };
        if count == 0 {
            return Ok(());
        }
        self.for_cells(rows, |cursor, pass| {
            if counted {
                cursor.position += 4;
            }
            for _ in 0..count {
                if pass {
                    let len = cursor.u32()?;
                    cursor.position += u64::from(len);
                } else {
                    out.push(cursor.string()?);
                }
            }
            Ok(())
        })
    }

    /// Appends cells of `count` elements each; not for columns with an array file.
    fn read_elements(&self, rows: Range<u64>, count: u64, out: &mut Values) -> Result<()> {
        if let Layout::Strings { count, counted } = self.segments.layout {
            return self.read_strings(rows, count, counted, out);
        }
        let mut row = rows.start;
        while row < rows.end {
            let segment = self.segments.find(row)?;
            let end = segment.end_row.min(rows.end);
            let mut elements = self.elements(row)?;
            match self.segments.layout {
                Layout::Fixed { skip, bytes } if skip > 0 || out.data_type() == DataType::Bool => {
                    for _ in row..end {
                        elements.read(count, out)?;
                        elements.offset += skip + bytes;
                    }
                }
                _ => elements.read((end - row) * count, out)?,
            }
            row = end;
        }
        Ok(())
    }

    /// Only for cells of fixed size.
    fn elements(&self, row: u64) -> Result<Elements<'_>> {
        let segment = self.segments.find(row)?;
        let before = row - segment.first_row;
        let (offset, first) = match self.segments.layout {
            Layout::Fixed { skip, bytes } => (segment.offset + before * (skip + bytes) + skip, 0),
            _ => (segment.offset, before),
        };
        Ok(Elements { file: &self.shared.file, order: ORDER, offset, first })
    }
}

impl AipsIoColumn {
    pub(super) fn readable(&self) -> Result<()> {
        match &self.cell {
            Cell::Array(file) => file.arrays().map(|_| ()),
            Cell::Elements { .. } => Ok(()),
        }
    }
}

impl ColumnCells for AipsIoColumn {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        match &self.cell {
            Cell::Elements { shape, .. } => Ok(Some(shape.clone())),
            Cell::Array(file) => match self.array_offset(row)? {
                0 => Ok(None),
                offset => file.arrays()?.shape(offset).map(Some),
            },
        }
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        match &self.cell {
            Cell::Elements { shape, count } if out.data_type() == DataType::String => {
                read_part(region, shape, out, |out| self.read_elements(row..row + 1, *count, out))
                    .context(&self.shared.place)
            }
            Cell::Elements { shape, .. } => self
                .elements(row)
                .and_then(|elements| elements.read_array(shape, region, out))
                .context(&self.shared.place),
            Cell::Array(file) => match self.array_offset(row)? {
                0 => Err(undefined(row)),
                offset => file.arrays()?.read(offset, region, out),
            },
        }
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        match &self.cell {
            Cell::Elements { count, .. } => self.read_elements(rows, *count, out).context(&self.shared.place),
            Cell::Array(file) => {
                let (arrays, offsets) = (file.arrays()?, self.array_offsets(rows)?);
                offsets.into_iter().filter(|&offset| offset != 0).try_for_each(|offset| arrays.read(offset, None, out))
            }
        }
    }

    fn extents(&self, rows: u64, _max_cubes: usize, each: &mut EachExtent<'_>) -> Result<()> {
        let mut row = 0;
        while row < rows {
            let segment = self.segments.find(row)?;
            let end = segment.end_row.min(rows);
            match (&self.cell, self.segments.layout) {
                (Cell::Array(file), _) => {
                    let arrays = file.arrays()?;
                    for (row, offset) in (row..end).zip(self.array_offsets(row..end)?) {
                        if offset != 0 {
                            arrays.extent(row, offset, each)?;
                        }
                    }
                }
                (Cell::Elements { .. }, Layout::Fixed { skip, bytes }) => {
                    for row in row..end {
                        let offset = segment.offset + (row - segment.first_row) * (skip + bytes) + skip;
                        each(Extent { suffix: "", offset, order: ORDER, content: Stored::Cells(row..row + 1) })?;
                    }
                }
                (Cell::Elements { .. }, Layout::Bits) => {
                    each(Extent {
                        suffix: "",
                        offset: segment.offset,
                        order: ORDER,
                        content: Stored::Cells(row..end),
                    })?;
                }
                (Cell::Elements { .. }, Layout::Strings { .. } | Layout::Offsets) => {}
            }
            row = end;
        }
        Ok(())
    }
}
