//! Writes a StandardStMan (casacore's general storage manager, with cells in buckets): adds and
//! removes rows and columns, and writes cells.

use std::ops::Range;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::cell::Cell;
use super::header::{Header, Info};
use super::heap::Heap;
use super::index::{Index, IndexBuckets};
use super::layout::{Layout, column_bytes};
use super::strings::{self, CELL_BYTES, INLINE_BYTES, Item};
use crate::aipsio::Encoder;
use crate::container::ContainerMut;
use crate::error::{Error, Result};
use crate::io::{ByteOrder, PagedMut, ReadAt};
use crate::stman::bucket::{BucketsMut, CACHE_PARAMETER, link, parameter};
use crate::stman::checks::check_removal;
use crate::stman::elements::ElementsMut;
use crate::stman::indirect::ArraysMut;
use crate::stman::with_context::WithContext;
use crate::stman::{ColumnSpec, CreateArgs, ManagerMut, write_part};
use crate::value::{DataType, Region, Shape, Values, bits};

/// Also the minimum, in buckets.
const DEFAULT_CACHE: i64 = 2;

#[derive(Debug)]
struct StandardMut {
    name: BString,
    files: Arc<dyn ContainerMut>,
    /// `table.f<n>i`, created with the first column of indirect arrays.
    arrays_name: String,
    order: ByteOrder,
    cache: u32,
    rows: u64,
    buckets: BucketsMut,
    indices: Vec<Index>,
    index_buckets: IndexBuckets,
    columns: Vec<ColumnMut>,
    heap: Heap,
    arrays: Option<ArraysMut>,
}

#[derive(Debug)]
struct ColumnMut {
    spec: ColumnSpec,
    cell: Cell,
    offset: u32,
    set: usize,
    /// Leading rows with all fixed-shape arrays in the array file; others wait for the next flush.
    made: u64,
}

struct Stretch {
    offset: u64,
    first: u64,
    count: u64,
}

pub(super) fn create(args: &CreateArgs<'_>) -> Result<Box<dyn ManagerMut>> {
    WithContext::create(args, "StandardStMan", || StandardMut::new(args))
}

impl StandardMut {
    fn new(args: &CreateArgs<'_>) -> Result<Self> {
        let cells = args.columns.iter().map(Cell::new).collect::<Result<Vec<_>>>()?;
        let layout = Layout::choose(args.parameters, &cells.iter().map(Cell::bits).collect::<Vec<_>>())?;
        let cache = parameter(args.parameters, CACHE_PARAMETER, DEFAULT_CACHE, 0..=i64::from(i32::MAX))?;
        let mut standard = StandardMut {
            name: args.name.into(),
            files: args.files.clone(),
            arrays_name: args.file_name("i"),
            order: args.order,
            cache: cache.max(DEFAULT_CACHE) as u32,
            rows: 0,
            buckets: BucketsMut::create(args.file("")?, layout.bucket_bytes)?,
            indices: Vec::new(),
            index_buckets: IndexBuckets::default(),
            columns: Vec::new(),
            heap: Heap::default(),
            arrays: None,
        };
        standard.add_set(layout.rows, args.columns.iter().zip(cells))?;
        Ok(standard)
    }

    fn add_set<'a>(&mut self, rows: u32, columns: impl Iterator<Item = (&'a ColumnSpec, Cell)>) -> Result<()> {
        let set = self.indices.len();
        let mut offset = 0;
        for (spec, cell) in columns {
            let bytes = column_bytes(rows.into(), cell.bits());
            self.push_column(spec, cell, offset as u32, set)?;
            offset += bytes;
        }
        let free = u64::from(self.buckets.bytes()) - offset;
        let mut index = Index::new(rows, offset, free);
        index.columns = (self.columns.iter().filter(|column| column.set == set).count()) as i32;
        index.add_rows(self.rows, &mut self.buckets)?;
        self.indices.push(index);
        Ok(())
    }

    fn push_column(&mut self, spec: &ColumnSpec, cell: Cell, offset: u32, set: usize) -> Result<()> {
        if matches!(cell, Cell::Array) && self.arrays.is_none() {
            let arrays = ArraysMut::create(&*self.files, &self.arrays_name, self.order, false, "StandardStMan")?;
            self.arrays = Some(arrays);
        }
        self.columns.push(ColumnMut { spec: spec.clone(), cell, offset, set, made: 0 });
        Ok(())
    }

    fn file(&self) -> &PagedMut {
        self.buckets.file()
    }

    fn stretch(&self, column: usize, row: u64, end: u64) -> Result<Stretch> {
        let column = &self.columns[column];
        let found = self.indices[column.set].find(row, end)?;
        let offset = self.buckets.offset(found.bucket) + u64::from(column.offset);
        Ok(Stretch { offset, first: found.first, count: found.count })
    }

    fn update_cells<const N: usize>(
        &mut self,
        column: usize,
        rows: Range<u64>,
        mut update: impl FnMut(&mut Self, u64, &mut [u8; N]) -> Result<()>,
    ) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let stretch = self.stretch(column, row, rows.end)?;
            let start = stretch.offset + stretch.first * N as u64;
            let mut bytes = vec![0; stretch.count as usize * N];
            self.file().read_at(start, &mut bytes)?;
            let mut cells = (row..).zip(bytes.as_chunks_mut().0);
            let updated = cells.try_for_each(|(row, cell)| update(self, row, cell));
            // also after an error: the heap has changed
            self.file().write(start, &bytes)?;
            updated?;
            row += stretch.count;
        }
        Ok(())
    }

    fn cell_bytes<const N: usize>(&self, column: usize, row: u64) -> Result<[u8; N]> {
        let stretch = self.stretch(column, row, row + 1)?;
        crate::io::read_array(self.file(), stretch.offset + stretch.first * N as u64)
    }

    fn item(&self, column: usize, row: u64) -> Result<Item> {
        Ok(Item::decode(&self.cell_bytes(column, row)?, self.order))
    }

    fn array(&self, column: usize, row: u64) -> Result<i64> {
        Ok(self.order.u64(self.cell_bytes(column, row)?) as i64)
    }

    fn arrays(&mut self) -> Result<&mut ArraysMut> {
        self.arrays.as_mut().ok_or_else(|| Error::usage("no column has arrays"))
    }

    fn write_elements(&self, column: usize, rows: Range<u64>, cell_elements: u64, values: &Values) -> Result<()> {
        let mut row = rows.start;
        let mut done = 0;
        while row < rows.end {
            let stretch = self.stretch(column, row, rows.end)?;
            let end = done + (stretch.count * cell_elements) as usize;
            let first = stretch.first * cell_elements;
            ElementsMut { file: self.file(), order: self.order, offset: stretch.offset, first }
                .write(values, done..end)?;
            row += stretch.count;
            done = end;
        }
        Ok(())
    }

    fn write_fixed_strings(
        &self,
        column: usize,
        rows: Range<u64>,
        len_bytes: usize,
        strings: &[BString],
    ) -> Result<()> {
        let mut row = rows.start;
        let mut strings = strings.iter();
        while row < rows.end {
            let stretch = self.stretch(column, row, rows.end)?;
            let mut bytes = vec![0; stretch.count as usize * len_bytes];
            for ((cell, string), row) in bytes.chunks_exact_mut(len_bytes).zip(&mut strings).zip(row..) {
                if string.len() > len_bytes || string.contains(&0) {
                    let message =
                        format!("a string of {} bytes, where up to {len_bytes} without NUL are stored", string.len());
                    return Err(self.columns[column].spec.misfit(row, message));
                }
                cell[..string.len()].copy_from_slice(string);
            }
            self.file().write(stretch.offset + stretch.first * len_bytes as u64, &bytes)?;
            row += stretch.count;
        }
        Ok(())
    }

    fn write_strings(&mut self, column: usize, rows: Range<u64>, strings: &[BString]) -> Result<()> {
        let mut strings = strings.iter();
        self.update_cells(column, rows, |this, _, cell: &mut [u8; CELL_BYTES]| {
            let Some(string) = strings.next() else { return Ok(()) };
            let old = Item::decode(cell, this.order);
            let long = if string.len() > INLINE_BYTES { string.as_bytes() } else { &[] };
            *cell = this.heap.replace_scalar(&mut this.buckets, old, long)?.encode(this.order);
            if long.is_empty() {
                cell[..string.len()].copy_from_slice(string);
                cell[INLINE_BYTES..].copy_from_slice(&this.order.u32_bytes(string.len() as u32));
            }
            Ok(())
        })
    }

    /// The shapes of the cells are set already.
    fn write_string_arrays(&mut self, column: usize, rows: Range<u64>, strings: &[BString]) -> Result<()> {
        let fixed = self.columns[column].spec.shape.clone();
        let mut done = 0;
        self.update_cells(column, rows.clone(), |this, row, cell: &mut [u8; CELL_BYTES]| {
            let old = Item::decode(cell, this.order);
            let spec = &this.columns[column].spec;
            let shape = match &fixed {
                Some(shape) => shape.clone(),
                None if old.is_absent() => return Err(spec.without_shape(row)),
                None => strings::read_shape(&old, &this.buckets.buckets)?,
            };
            let end = done + shape.elements()? as usize;
            let part = strings.get(done..end).ok_or_else(|| spec.too_few(row, strings.len()))?;
            done = end;
            let bytes = match &fixed {
                Some(_) => strings::encode_fixed(part),
                None => strings::encode_variable(&shape, Some(part))?,
            };
            *cell = this.heap.replace(&mut this.buckets, old, &bytes)?.encode(this.order);
            Ok(())
        })?;
        self.columns[column].spec.check_all_used(&rows, done, strings.len())
    }

    /// The shapes of the cells are set already.
    fn write_arrays(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()> {
        let mut done = 0;
        self.update_cells(column, rows.clone(), |this, row, cell: &mut [u8; 8]| {
            let offset = this.define(column, row, cell)?;
            let elements = this.arrays()?.shape(offset)?.elements()? as usize;
            if done + elements > values.len() {
                return Err(this.columns[column].spec.too_few(row, values.len()));
            }
            this.arrays()?.write(offset, values, done..done + elements)?;
            done += elements;
            Ok(())
        })?;
        self.columns[column].spec.check_all_used(&rows, done, values.len())
    }

    /// Offset of a cell's array; an undefined one gets zeros, or fails if the shape is not fixed.
    fn define(&mut self, column: usize, row: u64, cell: &mut [u8; 8]) -> Result<i64> {
        let offset = self.order.u64(*cell) as i64;
        if offset != 0 {
            return Ok(offset);
        }
        let spec = &self.columns[column].spec;
        let shape = spec.shape.clone().ok_or_else(|| spec.without_shape(row))?;
        let data_type = spec.data_type;
        let offset = self.arrays()?.add(data_type, &shape)?;
        *cell = self.order.u64_bytes(offset as u64);
        Ok(offset)
    }

    /// Casacore expects an array in every row of an indirect column of fixed shape.
    fn make_arrays(&mut self) -> Result<()> {
        for column in 0..self.columns.len() {
            if matches!(self.columns[column].cell, Cell::Array) && self.columns[column].spec.shape.is_some() {
                let rows = self.columns[column].made..self.rows;
                self.update_cells(column, rows, |this, row, cell| this.define(column, row, cell).map(drop))?;
                self.columns[column].made = self.rows;
            }
        }
        Ok(())
    }

    /// Empties the cells of a string column, and frees their strings in the heap.
    fn forget_strings(&mut self, column: usize, rows: Range<u64>) -> Result<()> {
        let scalar = match self.columns[column].cell {
            Cell::String => true,
            Cell::StringArray { .. } => false,
            _ => return Ok(()),
        };
        self.update_cells(column, rows, |this, _, cell: &mut [u8; CELL_BYTES]| {
            let old = Item::decode(cell, this.order);
            match scalar {
                true => this.heap.replace_scalar(&mut this.buckets, old, &[])?,
                false => this.heap.replace(&mut this.buckets, old, &[])?,
            };
            *cell = Item::ABSENT.encode(this.order);
            Ok(())
        })
    }

    /// Later cells in the bucket move up by one row, and the last becomes zeros.
    fn close_gap(&self, column: &ColumnMut, row: u64) -> Result<()> {
        let rest = self.indices[column.set].rest(row)?;
        let start = self.buckets.offset(rest.bucket) + u64::from(column.offset);
        let cell_bits = column.cell.bits();
        let first = rest.first * cell_bits;
        let count = rest.count * cell_bits;
        // Bools are packed without regard to bytes
        let skip = (first % 8) as usize;
        let mut bytes = vec![0; (skip as u64 + count).div_ceil(8) as usize];
        self.file().read_at(start + first / 8, &mut bytes)?;
        if cell_bits.is_multiple_of(8) {
            bytes.drain(..(cell_bits / 8) as usize);
            bytes.resize((count / 8) as usize, 0);
        } else {
            let mut all = Vec::new();
            bits::unpack(&bytes, skip, count as usize, &mut all);
            all.drain(..cell_bits as usize);
            all.resize(count as usize, false);
            bits::pack_into(&all, &mut bytes, skip);
        }
        self.file().write(start + first / 8, &bytes)
    }

    fn clear(&self, column: &ColumnMut) -> Result<()> {
        let index = &self.indices[column.set];
        let zeros = vec![0; column_bytes(index.rows_per_bucket.into(), column.cell.bits()) as usize];
        index
            .buckets
            .iter()
            .try_for_each(|&bucket| self.file().write(self.buckets.offset(bucket) + u64::from(column.offset), &zeros))
    }
}

impl ManagerMut for StandardMut {
    fn add_rows(&mut self, count: u64) -> Result<()> {
        for index in &mut self.indices {
            index.add_rows(count, &mut self.buckets)?;
        }
        self.rows += count;
        Ok(())
    }

    fn can_remove_rows(&self) -> bool {
        true
    }

    fn remove_row(&mut self, row: u64) -> Result<()> {
        check_removal(row, self.rows)?;
        for column in 0..self.columns.len() {
            self.forget_strings(column, row..row + 1)?;
            self.close_gap(&self.columns[column], row)?;
        }
        for index in &mut self.indices {
            if let Some(bucket) = index.remove_row(row) {
                self.buckets.give(bucket)?;
            }
        }
        for column in self.columns.iter_mut().filter(|column| row < column.made) {
            column.made -= 1;
        }
        self.rows -= 1;
        Ok(())
    }

    fn add_column(&mut self, spec: &ColumnSpec) -> Result<()> {
        let cell = Cell::new(spec)?;
        let bits = cell.bits();
        let fits = self.indices.iter().enumerate().filter_map(|(set, index)| {
            let bytes = column_bytes(index.rows_per_bucket.into(), bits);
            index.best_fit(bytes).map(|(offset, len)| (len, set, offset, bytes))
        });
        if let Some((_, set, offset, bytes)) = fits.min_by_key(|&(len, ..)| len) {
            self.indices[set].occupy(offset, bytes as i32);
            self.indices[set].columns += 1;
            self.push_column(spec, cell, offset as u32, set)?;
            return self.clear(&self.columns[self.columns.len() - 1]);
        }
        let rows = (u64::from(self.buckets.bytes()) * 8).checked_div(bits).unwrap_or(self.rows.max(1));
        if rows == 0 {
            let message = format!("a cell of column {} takes {bits} bits, a bucket has fewer", spec.name);
            return Err(Error::unsupported(message));
        }
        let rows = rows.min(u32::MAX.into()) as u32;
        self.add_set(rows, std::iter::once((spec, cell)))
    }

    fn remove_column(&mut self, column: usize) -> Result<()> {
        self.forget_strings(column, 0..self.rows)?;
        let ColumnMut { cell, offset, set, .. } = self.columns.remove(column);
        let index = &mut self.indices[set];
        index.columns -= 1;
        if index.columns > 0 {
            let bytes = column_bytes(index.rows_per_bucket.into(), cell.bits());
            index.vacate(offset as i32, bytes as i32);
            return Ok(());
        }
        for bucket in self.indices.remove(set).buckets {
            self.buckets.give(bucket)?;
        }
        for column in self.columns.iter_mut().filter(|column| column.set > set) {
            column.set -= 1;
        }
        Ok(())
    }

    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>> {
        let spec = &self.columns[column].spec;
        spec.check_rows(&(row..row.saturating_add(1)), self.rows)?;
        match (&spec.shape, &self.columns[column].cell) {
            (Some(shape), _) => Ok(Some(shape.clone())),
            (None, Cell::StringArray { .. }) => match self.item(column, row)? {
                item if item.is_absent() => Ok(None),
                item => strings::read_shape(&item, &self.buckets.buckets).map(Some),
            },
            (None, Cell::Array) => match (self.array(column, row)?, &self.arrays) {
                (offset, Some(arrays)) if offset != 0 => arrays.shape(offset).map(Some),
                _ => Ok(None),
            },
            (None, _) => Ok(Some(Shape::scalar())),
        }
    }

    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()> {
        let old = self.cell_shape(column, row)?;
        self.columns[column].spec.check_shape(row, shape)?;
        if old.as_ref() == Some(shape) {
            return Ok(());
        }
        let data_type = self.columns[column].spec.data_type;
        if data_type == DataType::String {
            let bytes = strings::encode_variable(shape, None)?;
            return self.update_cells(column, row..row + 1, |this, _, cell: &mut [u8; CELL_BYTES]| {
                let old = Item::decode(cell, this.order);
                *cell = this.heap.replace(&mut this.buckets, old, &bytes)?.encode(this.order);
                Ok(())
            });
        }
        self.update_cells(column, row..row + 1, |this, _, cell: &mut [u8; 8]| {
            let offset = this.arrays()?.add(data_type, shape)?;
            *cell = this.order.u64_bytes(offset as u64);
            Ok(())
        })
    }

    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()> {
        let ColumnMut { spec, cell, .. } = &self.columns[column];
        spec.check_write(&rows, self.rows, values)?;
        if let Some(shape) = &spec.shape {
            spec.check_count(rows.start, rows.end - rows.start, shape, values.len())?;
        }
        match (cell, values) {
            (Cell::Elements { count, .. }, _) => self.write_elements(column, rows, *count, values),
            (Cell::FixedString { len_bytes }, Values::String(strings)) => {
                self.write_fixed_strings(column, rows, *len_bytes as usize, strings)
            }
            (Cell::String, Values::String(strings)) => self.write_strings(column, rows, strings),
            (Cell::StringArray { .. }, Values::String(strings)) => self.write_string_arrays(column, rows, strings),
            _ => self.write_arrays(column, rows, values),
        }
    }

    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()> {
        let rows = row..row.saturating_add(1);
        let Some(region) = region else { return self.write_rows(column, rows, values) };
        let shape = self.cell_shape(column, row)?;
        let ColumnMut { spec, cell, .. } = &self.columns[column];
        let shape = spec.check_part(row, self.rows, shape, region, values)?;
        match cell {
            Cell::Elements { count, .. } => {
                let stretch = self.stretch(column, row, row + 1)?;
                let first = stretch.first * count;
                ElementsMut { file: self.file(), order: self.order, offset: stretch.offset, first }.write_array(
                    &shape,
                    Some(region),
                    values,
                )
            }
            Cell::Array => self.update_cells(column, rows, |this, row, cell| {
                let offset = this.define(column, row, cell)?;
                this.arrays()?.write_region(offset, region, values)
            }),
            Cell::StringArray { .. } => {
                let item = self.item(column, row)?;
                let mut whole = Values::new(DataType::String);
                match spec.shape {
                    Some(_) => strings::read_fixed(&item, &self.buckets.buckets, &shape, None, &mut whole)?,
                    None => strings::read_variable(&item, &self.buckets.buckets, None, &mut whole)?,
                }
                write_part(region, &shape, &mut whole, values);
                self.write_rows(column, rows, &whole)
            }
            // a scalar's only region is all of it
            Cell::String | Cell::FixedString { .. } => self.write_rows(column, rows, values),
        }
    }

    fn flush(&mut self) -> Result<Vec<u8>> {
        self.make_arrays()?;
        if let Some(arrays) = &mut self.arrays {
            arrays.flush()?;
        }
        let mut index = Encoder::new(self.order);
        self.indices.iter().for_each(|set| set.encode(&mut index));
        let index = index.into_bytes();
        self.index_buckets.write(&index, &mut self.buckets)?;
        let header = Header {
            bucket_bytes: self.buckets.bytes(),
            buckets: self.buckets.buckets.count,
            cache: self.cache,
            free: self.buckets.free,
            first_free: link(self.buckets.first_free),
            index_buckets: self.index_buckets.numbers.len() as u32,
            first_index: link(self.index_buckets.numbers.first().copied()),
            index_offset: self.index_buckets.offset,
            last_heap: link(self.heap.last),
            index_bytes: index.len() as u32,
            indices: self.indices.len() as u32,
        };
        self.buckets.flush(&header.encode(self.order))?;
        let offsets = self.columns.iter().map(|column| column.offset).collect();
        let sets = self.columns.iter().map(|column| column.set as u32).collect();
        Ok(Info { name: self.name.clone(), offsets, sets }.encode())
    }
}
