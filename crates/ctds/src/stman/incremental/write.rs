//! Writes an IncrementalStMan.

use std::cell::RefCell;
use std::ops::Range;

use bstr::BString;

use super::SHARED_ARRAYS;
use super::cell::{Cell, Stored, array_offset};
use super::edit::{BucketMut, Changes, Entry};
use super::header::{Header, Info};
use super::index::{Found, Index};
use crate::error::{Error, Result};
use crate::io::{ByteOrder, read_bytes};
use crate::stman::bucket::{BucketsMut, CACHE_PARAMETER, link, parameter};
use crate::stman::checks::{check_removal, more_rows};
use crate::stman::indirect::ArraysMut;
use crate::stman::with_context::WithContext;
use crate::stman::{ColumnSpec, CreateArgs, ManagerMut, Storage, write_part};
use crate::value::{Region, Shape, Values};

/// Buckets kept in memory while writing.
const CACHE_BYTES: u32 = 1 << 21;
/// A bucket stores the offset of its index in 28 bits.
const MAX_BYTES: i64 = (1 << 28) - 1;
const DEFAULT_BYTES: i64 = 32768;
/// Rows whose values are put into a bucket in memory at a time, before it is split.
const STEP_ROWS: u64 = 1 << 14;

#[derive(Debug)]
struct IncrementalMut {
    name: BString,
    order: ByteOrder,
    cache: u32,
    buckets: BucketsMut,
    index: Index,
    columns: Vec<ColumnMut>,
    /// Least recently used first; changes may be unwritten.
    loaded: RefCell<Vec<Loaded>>,
    arrays: Option<ArraysMut>,
}

#[derive(Debug)]
struct ColumnMut {
    spec: ColumnSpec,
    cell: Cell<()>,
    /// Array of zeros that new cells of fixed shape share; `None` until it is made or once changed.
    zeros: Option<i64>,
}

#[derive(Debug)]
struct Loaded {
    number: u32,
    bucket: BucketMut,
    dirty: bool,
}

pub(super) fn create(args: &CreateArgs<'_>) -> Result<Box<dyn ManagerMut>> {
    WithContext::create(args, "IncrementalStMan", || IncrementalMut::new(args))
}

/// BUCKETSIZE, 32768 if it is missing, or what casacore chooses if it is 0. formats/stman.md 2.6.
fn bucket_bytes(args: &CreateArgs<'_>, columns: &[ColumnMut]) -> Result<u32> {
    let given = parameter(args.parameters, "BUCKETSIZE", DEFAULT_BYTES, 0..=MAX_BYTES)?;
    if given > 0 {
        return Ok(given as u32);
    }
    let head = 4 * (columns.len() as u64 + 1);
    // casacore takes all elements for strings here
    let row = columns.iter().map(|column| 36u64.saturating_mul(column.cell.count().unwrap_or(1) as u64));
    let row = row.fold(0, |sum, bytes| bytes.saturating_add(sum).saturating_add(12));
    let (usual, most) = (DEFAULT_BYTES as u64, 10 * DEFAULT_BYTES as u64);
    let rows = |count: u64| row.saturating_mul(count).saturating_add(head);
    let bytes = [rows(100).max(usual), rows(10)].into_iter().find(|&bytes| bytes <= most);
    Ok(bytes.unwrap_or(rows(2).max(most)).min(MAX_BYTES as u64) as u32)
}

impl IncrementalMut {
    fn new(args: &CreateArgs<'_>) -> Result<Self> {
        let order = args.order;
        let column = |spec: &ColumnSpec| {
            let cell = if spec.storage == Storage::Indirect { Cell::Array(()) } else { Cell::direct(spec)? };
            Ok(ColumnMut { spec: spec.clone(), cell, zeros: None })
        };
        let columns = args.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let arrays = match args.columns.iter().any(|spec| spec.storage == Storage::Indirect) {
            true => Some(ArraysMut::create(&*args.files, &args.file_name("i"), order, true, "IncrementalStMan")?),
            false => None,
        };
        let mut buckets = BucketsMut::create(args.file("")?, bucket_bytes(args, &columns)?)?;
        let first = buckets.take()?;
        let mut incremental = IncrementalMut {
            name: args.name.into(),
            order,
            cache: parameter(args.parameters, CACHE_PARAMETER, 1, 0..=i64::from(i32::MAX))?.max(1) as u32,
            buckets,
            index: Index::new(first),
            columns,
            loaded: RefCell::default(),
            arrays,
        };
        // without rows too, every column has a value
        let values = (0..incremental.columns.len()).map(|column| incremental.empty(column));
        let values = values.collect::<Result<Vec<_>>>()?;
        for (column, value) in values.iter().enumerate() {
            incremental.settle(column, vec![(value.clone(), 1)])?;
        }
        let bucket = BucketMut::new(values.into_iter());
        if bucket.bytes() > incremental.limit() {
            return Err(incremental.too_small(0, bucket.bytes()));
        }
        incremental.give_back(Loaded { number: first, bucket, dirty: true })?;
        Ok(incremental)
    }

    fn limit(&self) -> usize {
        self.buckets.bytes() as usize
    }

    fn too_small(&self, row: u64, bytes: usize) -> Error {
        let limit = self.limit();
        Error::limit(format!("the values of row {row} take {bytes} bytes, but a bucket has {limit}"))
    }

    /// Takes the bucket out of the cache, or reads it; the caller has to put it back.
    fn take(&self, number: u32) -> Result<Loaded> {
        let mut loaded = self.loaded.borrow_mut();
        if let Some(found) = loaded.iter().rposition(|loaded| loaded.number == number) {
            return Ok(loaded.remove(found));
        }
        let bytes = read_bytes(self.buckets.file(), self.buckets.offset(number), self.buckets.bytes().into())?;
        let cells: Vec<_> = self.columns.iter().map(|column| &column.cell).collect();
        Ok(Loaded { number, bucket: BucketMut::decode(bytes, self.order, &cells)?, dirty: false })
    }

    fn give_back(&self, bucket: Loaded) -> Result<()> {
        let mut loaded = self.loaded.borrow_mut();
        loaded.push(bucket);
        let most = (CACHE_BYTES / self.buckets.bytes().max(1)).clamp(2, 64) as usize;
        while loaded.len() > most {
            self.write_bucket(&mut loaded[0])?;
            loaded.remove(0);
        }
        Ok(())
    }

    fn write_bucket(&self, loaded: &mut Loaded) -> Result<()> {
        if loaded.dirty {
            let bytes = loaded.bucket.encode(self.order, self.buckets.bytes());
            self.buckets.file().write(self.buckets.offset(loaded.number), &bytes)?;
            loaded.dirty = false;
        }
        Ok(())
    }

    /// The value in `row`, and the rows of the bucket in which it holds, as rows of the table.
    fn value(&self, column: usize, row: u64) -> Result<(Stored, Range<u64>)> {
        let found = self.index.find(row)?;
        let loaded = self.take(found.bucket)?;
        let (value, rows) = loaded.bucket.find(column, row - found.start, found.end - found.start);
        let value = (value.clone(), found.start + rows.start..found.start + rows.end);
        self.give_back(loaded)?;
        Ok(value)
    }

    /// All `rows` are of one bucket, which is split if the values do not fit.
    fn replace(&mut self, column: usize, rows: Range<u64>, values: Vec<Entry>) -> Result<()> {
        let found = self.index.find(rows.start)?;
        let all = found.end - found.start;
        let range = rows.start - found.start..rows.end - found.start;
        let mut loaded = self.take(found.bucket)?;
        // the bucket comes back as it was if a row turns out to fit no bucket
        let most = loaded.bucket.bytes_with(column, &range, all, &values);
        let before = (most > self.limit()).then(|| (loaded.bucket.clone(), loaded.dirty));
        let changes = loaded.bucket.replace(column, range.clone(), all, values);
        let parts = match self.split(&mut loaded.bucket, &found, range.end) {
            Ok(parts) => parts,
            Err(error) => {
                if let Some(before) = before {
                    (loaded.bucket, loaded.dirty) = before;
                }
                self.give_back(loaded)?;
                return Err(error);
            }
        };
        loaded.dirty = true;
        self.give_back(loaded)?;
        self.settle(column, changes)?;
        let entry = self.index.next_entry(found.start);
        for (start, bucket, changes) in parts {
            let number = self.buckets.take()?;
            self.give_back(Loaded { number, bucket, dirty: true })?;
            self.index.rows.insert(entry, found.start + start);
            self.index.buckets.insert(entry, number);
            for (column, changes) in changes.into_iter().enumerate() {
                self.settle(column, changes)?;
            }
        }
        Ok(())
    }

    /// Splits `bucket` until all parts fit; returns the last one first, each with its first row.
    fn split(
        &self,
        bucket: &mut BucketMut,
        found: &Found,
        edit_end: u64,
    ) -> Result<Vec<(u64, BucketMut, Vec<Changes>)>> {
        let limit = self.limit();
        if bucket.bytes() <= limit {
            return Ok(Vec::new());
        }
        // a growing table leaves full buckets; elsewhere a bucket is split into equal parts
        let grows = found.end == self.index.table_rows() && bucket.last_change() <= edit_end;
        let wanted = if grows { limit } else { bucket.bytes() / bucket.bytes().div_ceil(limit) };
        let mut parts = Vec::new();
        for row in bucket.cuts(limit, wanted).into_iter().rev() {
            let (part, changes) = bucket.split_off(row);
            parts.push((row, part, changes));
        }
        let mut all = parts.iter().map(|(row, part, _)| (*row, part.bytes())).chain([(0, bucket.bytes())]);
        let too_large = all.rfind(|&(_, bytes)| bytes > limit);
        match too_large {
            Some((row, bytes)) => Err(self.too_small(found.start + row, bytes)),
            None => Ok(parts),
        }
    }

    fn settle(&mut self, column: usize, changes: Changes) -> Result<()> {
        if let (Cell::Array(()), Some(arrays)) = (&self.columns[column].cell, &mut self.arrays) {
            for (value, change) in changes {
                match array_offset(&value, self.order)? {
                    0 => {}
                    offset => {
                        let count = arrays.references(offset)?;
                        arrays.set_references(offset, count.saturating_add_signed(change))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn settle_all(&mut self, changes: Vec<Changes>) -> Result<()> {
        changes.into_iter().enumerate().try_for_each(|(column, changes)| self.settle(column, changes))
    }

    /// Value of new rows: zeros, empty strings, the array of zeros, or 0 if the shape is not fixed.
    fn empty(&mut self, column: usize) -> Result<Stored> {
        let ColumnMut { spec, cell, zeros } = &self.columns[column];
        let (Cell::Array(()), Some(shape)) = (cell, spec.shape.clone()) else { return Ok(cell.empty(self.order)) };
        let zeros = match *zeros {
            Some(zeros) => zeros,
            None => self.new_array(column, &shape)?,
        };
        self.columns[column].zeros = Some(zeros);
        Ok(self.reference(zeros))
    }

    fn reference(&self, offset: i64) -> Stored {
        Stored::from_slice(&self.order.u64_bytes(offset as u64))
    }

    fn arrays(&mut self) -> Result<&mut ArraysMut> {
        self.arrays.as_mut().ok_or_else(|| Error::usage("no column has arrays"))
    }

    /// Adds an array of zeros with reference count 0.
    fn new_array(&mut self, column: usize, shape: &Shape) -> Result<i64> {
        let data_type = self.columns[column].spec.data_type;
        let arrays = self.arrays()?;
        let offset = arrays.add(data_type, shape)?;
        arrays.set_references(offset, 0)?;
        Ok(offset)
    }

    /// Offset of a cell's array, 0 if undefined, and the rows of the bucket that share it.
    fn array(&self, column: usize, row: u64) -> Result<(i64, Range<u64>)> {
        let (value, rows) = self.value(column, row)?;
        Ok((array_offset(&value, self.order)?, rows))
    }

    fn refer(&mut self, column: usize, row: u64, offset: i64) -> Result<()> {
        let entry = Entry { row: row - self.index.find(row)?.start, value: self.reference(offset) };
        self.replace(column, row..row + 1, vec![entry])
    }

    /// Whether the cell alone refers to the array, which may then be overwritten; `rows` share one
    /// stored reference. If that array is the one of zeros for new rows, later rows get another.
    fn owns(&mut self, column: usize, row: u64, offset: i64, rows: &Range<u64>) -> Result<bool> {
        let owned = *rows == (row..row + 1) && self.arrays()?.references(offset)? == 1;
        if owned {
            self.columns[column].zeros.take_if(|zeros| *zeros == offset);
        }
        Ok(owned)
    }

    fn put_values(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()> {
        let count = self.columns[column].cell.count().unwrap_or(1);
        let mut row = rows.start;
        while row < rows.end {
            let found = self.index.find(row)?;
            let end = rows.end.min(found.end).min(row + STEP_ROWS);
            let mut entries: Vec<Entry> = Vec::new();
            for row in row..end {
                let at = (row - rows.start) as usize * count;
                let value = self.columns[column].cell.encode(values, at..at + count, self.order)?;
                if entries.last().is_none_or(|last| last.value != value) {
                    entries.push(Entry { row: row - found.start, value });
                }
            }
            self.replace(column, row..end, entries)?;
            row = end;
        }
        Ok(())
    }

    /// Equal arrays are stored for each row: casacore changes an array for all rows that share it.
    fn put_arrays(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()> {
        let mut done = 0;
        for row in rows.clone() {
            let (offset, held) = self.array(column, row)?;
            if offset == 0 {
                return Err(self.columns[column].spec.without_shape(row));
            }
            let shape = self.arrays()?.shape(offset)?;
            let end = done + shape.elements()? as usize;
            if end > values.len() {
                return Err(self.columns[column].spec.too_few(row, values.len()));
            }
            if self.owns(column, row, offset, &held)? {
                self.arrays()?.write(offset, values, done..end)?;
            } else {
                let array = self.new_array(column, &shape)?;
                self.arrays()?.write(array, values, done..end)?;
                self.refer(column, row, array)?;
            }
            done = end;
        }
        self.columns[column].spec.check_all_used(&rows, done, values.len())
    }
}

impl ManagerMut for IncrementalMut {
    fn add_rows(&mut self, count: u64) -> Result<()> {
        let rows = self.index.table_rows();
        let end = more_rows(rows, count)?;
        if count == 0 {
            return Ok(());
        }
        if let Some(last) = self.index.rows.last_mut() {
            *last = end;
        }
        for column in 0..self.columns.len() {
            let value = self.empty(column)?;
            let row = rows - self.index.find(rows)?.start;
            self.replace(column, rows..end, vec![Entry { row, value }])?;
        }
        Ok(())
    }

    fn can_remove_rows(&self) -> bool {
        true
    }

    fn remove_row(&mut self, row: u64) -> Result<()> {
        check_removal(row, self.index.table_rows())?;
        let found = self.index.find(row)?;
        let next = self.index.next_entry(row);
        let in_bucket = found.end - found.start;
        if in_bucket > 1 {
            let mut loaded = self.take(found.bucket)?;
            let changes = loaded.bucket.remove_row(row - found.start, in_bucket);
            loaded.dirty = true;
            self.give_back(loaded)?;
            self.settle_all(changes)?;
        } else if self.index.buckets.len() > 1 {
            let gone = self.take(found.bucket)?.bucket.all();
            self.settle_all(gone)?;
            self.buckets.give(found.bucket)?;
            self.index.buckets.remove(next - 1);
            self.index.rows.remove(next);
            self.index.rows[next..].iter_mut().for_each(|first| *first -= 1);
            return Ok(());
        }
        self.index.rows[next..].iter_mut().for_each(|first| *first -= 1);
        Ok(())
    }

    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>> {
        let ColumnMut { spec, cell, .. } = &self.columns[column];
        spec.check_rows(&(row..row.saturating_add(1)), self.index.table_rows())?;
        match (&spec.shape, cell, &self.arrays) {
            (Some(shape), ..) => Ok(Some(shape.clone())),
            (None, Cell::Array(()), Some(arrays)) => match self.array(column, row)?.0 {
                0 => Ok(None),
                offset => arrays.shape(offset).map(Some),
            },
            _ => Ok(Some(Shape::scalar())),
        }
    }

    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()> {
        let old = self.cell_shape(column, row)?;
        self.columns[column].spec.check_shape(row, shape)?;
        if old.as_ref() == Some(shape) {
            return Ok(());
        }
        let array = self.new_array(column, shape)?;
        self.refer(column, row, array)
    }

    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()> {
        let ColumnMut { spec, cell, .. } = &self.columns[column];
        spec.check_write(&rows, self.index.table_rows(), values)?;
        if let Some(shape) = &spec.shape {
            spec.check_count(rows.start, rows.end - rows.start, shape, values.len())?;
        }
        match cell {
            Cell::Array(()) => self.put_arrays(column, rows, values),
            _ => self.put_values(column, rows, values),
        }
    }

    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()> {
        let rows = row..row.saturating_add(1);
        let Some(region) = region else { return self.write_rows(column, rows, values) };
        let shape = self.cell_shape(column, row)?;
        let ColumnMut { spec, cell, .. } = &self.columns[column];
        let shape = spec.check_part(row, self.index.table_rows(), shape, region, values)?;
        let mut whole = Values::new(spec.data_type);
        if let Cell::Array(()) = cell {
            let (offset, held) = self.array(column, row)?;
            if self.owns(column, row, offset, &held)? {
                return self.arrays()?.write_region(offset, region, values);
            }
            self.arrays()?.read(offset, &mut whole)?;
        } else {
            cell.read(&self.value(column, row)?.0, self.order, &mut whole)?;
        }
        write_part(region, &shape, &mut whole, values);
        self.write_rows(column, rows, &whole)
    }

    fn flush(&mut self) -> Result<Vec<u8>> {
        self.loaded.borrow_mut().iter_mut().try_for_each(|loaded| self.write_bucket(loaded))?;
        if let Some(arrays) = &mut self.arrays {
            arrays.flush()?;
        }
        let indirect = self.columns.iter().filter(|column| column.spec.storage == Storage::Indirect);
        let header = Header {
            version: Header::version(self.order),
            bucket_bytes: self.buckets.bytes(),
            buckets: self.buckets.buckets.count,
            cache: self.cache,
            unique: indirect.count() as u32,
            free: self.buckets.free,
            first_free: link(self.buckets.first_free),
        };
        // the remaining bytes of an older, longer index are ignored
        self.buckets.file().write(self.buckets.buckets.end(), &self.index.encode(self.order))?;
        self.buckets.flush(&header.encode(self.order))?;
        Ok(Info { version: SHARED_ARRAYS, name: self.name.clone() }.encode())
    }
}
