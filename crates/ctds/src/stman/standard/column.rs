//! A column of StandardStMan: its values are read from the data buckets, each of which holds some
//! rows. formats/stman.md 1.2.

use std::ops::Range;
use std::sync::Arc;

use super::Shared;
use super::cell::Cell;
use super::index::{self, Index};
use super::strings::{self, HeapBudget, Item};
use crate::error::{Error, Result, ResultExt};
use crate::io::{ByteOrder, Gather, read_array, read_bytes};
use crate::stman::elements::Elements;
use crate::stman::{ColumnCells, ColumnSpec, EachExtent, Extent, Stored, read_part, undefined};
use crate::value::{Region, Shape, Values};

#[derive(Debug)]
pub(super) struct StandardColumn {
    shared: Arc<Shared>,
    /// Columns of a set share buckets and an index.
    set: usize,
    /// Byte of the column's data in each data bucket.
    offset: u32,
    cell: Cell,
}

struct Stretch {
    /// Byte in the file of the cell of the bucket's first row.
    offset: u64,
    first: u64,
    count: u64,
}

impl StandardColumn {
    pub(super) fn new(shared: Arc<Shared>, spec: &ColumnSpec, offset: u32, set: u32) -> Result<Self> {
        if set as usize >= shared.indices.len() {
            return Err(Error::format(format!("column set {set}, but there are {} indices", shared.indices.len())));
        }
        Ok(StandardColumn { shared, set: set as usize, offset, cell: Cell::new(spec)? })
    }

    pub(super) fn readable(&self) -> Result<()> {
        if matches!(self.cell, Cell::Array) { self.shared.arrays().map(|_| ()) } else { Ok(()) }
    }

    fn index(&self) -> &Index {
        &self.shared.indices[self.set]
    }

    /// Fails if the cells exceed the bucket.
    fn stretch(&self, row: u64, end: u64) -> Result<Stretch> {
        self.place_of(row, self.index().find(row, end)?)
    }

    fn place_of(&self, row: u64, found: index::Stretch) -> Result<Stretch> {
        let offset = self.shared.buckets.offset(found.bucket, format_args!("row {row}"))?;
        // fewer than 2^32 rows, but a damaged shape may be of any size
        let bits = u128::from(self.cell.bits()) * u128::from(found.first + found.count);
        let bucket_bytes = self.shared.buckets.bucket_bytes;
        if u128::from(self.offset) + bits.div_ceil(8) > u128::from(bucket_bytes) {
            return Err(Error::format(format!(
                "row {row}: {} rows of {} bits from byte {} on leave the bucket of {bucket_bytes} bytes",
                found.first + found.count,
                self.cell.bits(),
                self.offset,
            )));
        }
        Ok(Stretch { offset: offset + u64::from(self.offset), first: found.first, count: found.count })
    }

    fn for_cells<const N: usize>(&self, rows: Range<u64>, mut each: impl FnMut(&[u8; N]) -> Result<()>) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let stretch = self.stretch(row, rows.end)?;
            let start = stretch.offset + stretch.first * N as u64;
            let bytes = read_bytes(&self.shared.buckets.file, start, stretch.count * N as u64)?;
            bytes.as_chunks().0.iter().try_for_each(&mut each)?;
            row += stretch.count;
        }
        Ok(())
    }

    fn cell_bytes<const N: usize>(&self, row: u64) -> Result<[u8; N]> {
        let stretch = self.stretch(row, row + 1)?;
        read_array(&self.shared.buckets.file, stretch.offset + stretch.first * N as u64)
    }

    fn item(&self, row: u64) -> Result<Item> {
        Ok(Item::decode(&self.cell_bytes(row).context(&self.shared.place)?, self.shared.order))
    }

    fn array(&self, row: u64) -> Result<i64> {
        Ok(self.shared.order.u64(self.cell_bytes(row).context(&self.shared.place)?) as i64)
    }

    /// 0 for an undefined cell.
    fn arrays(&self, rows: Range<u64>) -> Result<Vec<i64>> {
        let mut offsets = Vec::new();
        let each = |&cell: &[u8; 8]| {
            offsets.push(self.shared.order.u64(cell) as i64);
            Ok(())
        };
        self.for_cells(rows, each).context(&self.shared.place)?;
        Ok(offsets)
    }

    /// `None` for an undefined cell.
    fn strings_shape(&self, item: &Item) -> Result<Option<Shape>> {
        (!item.is_absent()).then(|| strings::read_shape(item, &self.shared.buckets)).transpose()
    }

    fn array_shape(&self, offset: i64) -> Result<Option<Shape>> {
        (offset != 0).then(|| self.shared.arrays()?.shape(offset)).transpose()
    }

    fn elements(&self, stretch: &Stretch, cell_elements: u64) -> Elements<'_> {
        let first = stretch.first * cell_elements;
        Elements { file: &self.shared.buckets.file, order: self.shared.order, offset: stretch.offset, first }
    }

    fn read_elements(&self, rows: Range<u64>, cell_elements: u64, out: &mut Values) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let stretch = self.stretch(row, rows.end)?;
            self.elements(&stretch, cell_elements).read(stretch.count * cell_elements, out)?;
            row += stretch.count;
        }
        Ok(())
    }

    fn read_fixed_strings(&self, rows: Range<u64>, len_bytes: u32, out: &mut Values) -> Result<()> {
        let Values::String(out) = out else { return Err(Error::usage("strings are read into strings")) };
        let mut row = rows.start;
        while row < rows.end {
            let stretch = self.stretch(row, rows.end)?;
            let len = u64::from(len_bytes);
            let bytes =
                read_bytes(&self.shared.buckets.file, stretch.offset + stretch.first * len, stretch.count * len)?;
            out.extend(bytes.chunks_exact(len_bytes as usize).map(|cell| {
                // bytes after the NUL are left from longer strings
                let end = cell.iter().position(|&byte| byte == 0).unwrap_or(cell.len());
                cell[..end].into()
            }));
            row += stretch.count;
        }
        Ok(())
    }

    fn read_strings(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let Values::String(out) = out else { return Err(Error::usage("strings are read into strings")) };
        let mut heap = HeapBudget::new(&self.shared.buckets);
        self.for_cells(rows, |cell| {
            heap.take(&Item::decode(cell, self.shared.order))?;
            out.push(strings::read_scalar(cell, self.shared.order, &self.shared.buckets)?);
            Ok(())
        })
    }

    fn read_item(&self, item: &Item, shape: Option<&Shape>, region: Option<&Region>, out: &mut Values) -> Result<()> {
        match shape {
            Some(shape) => strings::read_fixed(item, &self.shared.buckets, shape, region, out),
            None => strings::read_variable(item, &self.shared.buckets, region, out),
        }
    }
}

impl ColumnCells for StandardColumn {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        match &self.cell {
            Cell::Elements { shape, .. } => Ok(Some(shape.clone())),
            Cell::FixedString { .. } | Cell::String => Ok(Some(Shape::scalar())),
            Cell::StringArray { shape: Some(shape) } => Ok(Some(shape.clone())),
            Cell::StringArray { shape: None } => self.strings_shape(&self.item(row)?).context(&self.shared.place),
            Cell::Array => self.array_shape(self.array(row)?),
        }
    }

    /// `None`: undefined. Arrays of strings are read at once for all rows of a bucket.
    fn shapes(&self, rows: Range<u64>) -> Result<Vec<Option<Shape>>> {
        match &self.cell {
            Cell::StringArray { shape: None } => {
                let mut shapes = Vec::new();
                let each = |cell: &[u8; _]| {
                    shapes.push(self.strings_shape(&Item::decode(cell, self.shared.order))?);
                    Ok(())
                };
                self.for_cells(rows, each).context(&self.shared.place)?;
                Ok(shapes)
            }
            Cell::Array => {
                let offsets = self.arrays(rows)?;
                // usual for a column without values
                if offsets.iter().all(|&offset| offset == 0) {
                    return Ok(vec![None; offsets.len()]);
                }
                offsets.into_iter().map(|offset| self.array_shape(offset)).collect()
            }
            _ => rows.map(|row| self.cell_shape(row)).collect(),
        }
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let place = &self.shared.place;
        match &self.cell {
            Cell::Elements { shape, count, .. } => {
                let stretch = self.stretch(row, row + 1).context(place)?;
                self.elements(&stretch, *count).read_array(shape, region, out).context(place)
            }
            Cell::FixedString { .. } | Cell::String => {
                read_part(region, &Shape::scalar(), out, |out| self.read_rows(row..row + 1, out))
            }
            Cell::StringArray { shape } => {
                let item = self.item(row)?;
                if item.is_absent() && shape.is_none() {
                    return Err(undefined(row));
                }
                self.read_item(&item, shape.as_ref(), region, out).context(place)
            }
            Cell::Array => match self.array(row)? {
                0 => Err(undefined(row)),
                offset => self.shared.arrays()?.read(offset, region, out),
            },
        }
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let place = &self.shared.place;
        match &self.cell {
            Cell::Elements { count, .. } => self.read_elements(rows, *count, out).context(place),
            Cell::FixedString { len_bytes } => self.read_fixed_strings(rows, *len_bytes, out).context(place),
            Cell::String => self.read_strings(rows, out).context(place),
            Cell::StringArray { shape } => {
                let mut heap = HeapBudget::new(&self.shared.buckets);
                self.for_cells(rows, |cell| match Item::decode(cell, self.shared.order) {
                    item if item.is_absent() && shape.is_none() => Ok(()),
                    item => {
                        heap.take(&item)?;
                        self.read_item(&item, shape.as_ref(), None, out)
                    }
                })
                .context(place)
            }
            Cell::Array => {
                let offsets = self.arrays(rows)?;
                let arrays = self.shared.arrays()?;
                offsets.into_iter().filter(|&offset| offset != 0).try_for_each(|offset| arrays.read(offset, None, out))
            }
        }
    }

    /// One system call reads small neighbouring buckets; of large ones only the column is read.
    fn read_plain(&self, runs: &mut dyn Iterator<Item = Range<u64>>, out: &mut [u8]) -> Option<ByteOrder> {
        let Cell::Elements { bits, .. } = self.cell else { return None };
        let cell = (bits.is_multiple_of(8)).then_some(bits / 8)?;
        let mut gather = Gather::new(self.shared.buckets.file.file(), out)?;
        let mut entry = 0;
        for rows in runs {
            let mut row = rows.start;
            while row < rows.end {
                let found = self.index().find_near(row, rows.end, &mut entry).ok()?;
                let stretch = self.place_of(row, found).ok()?;
                if !gather.push(stretch.offset + stretch.first * cell, stretch.count * cell) {
                    return None;
                }
                row += stretch.count;
            }
        }
        gather.finish().then_some(self.shared.order)
    }

    fn extents(&self, rows: u64, _max_cubes: usize, each: &mut EachExtent<'_>) -> Result<()> {
        let order = self.shared.order;
        match &self.cell {
            Cell::Elements { .. } => {
                let mut row = 0;
                while row < rows {
                    let stretch = self.stretch(row, rows).context(&self.shared.place)?;
                    let content = Stored::Cells(row..row + stretch.count);
                    // a stretch from a bucket's first row on
                    each(Extent { suffix: "", offset: stretch.offset, order, content })?;
                    row += stretch.count;
                }
                Ok(())
            }
            Cell::Array => {
                let arrays = self.shared.arrays()?;
                let mut row = 0;
                self.for_cells(0..rows, |&cell| {
                    match order.u64(cell) as i64 {
                        0 => {}
                        offset => arrays.extent(row, offset, each)?,
                    }
                    row += 1;
                    Ok(())
                })
            }
            Cell::FixedString { .. } | Cell::String | Cell::StringArray { .. } => Ok(()),
        }
    }
}
