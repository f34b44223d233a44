//! A column: its values in each bucket. formats/stman.md 2.4.

use std::ops::Range;
use std::sync::Arc;

use super::Shared;
use super::bucket::Bucket;
use crate::error::{Error, Place, Result};
use crate::io::ByteOrder;
use crate::limits;
use crate::stman::elements::{Elements, element_bits};
use crate::stman::indirect::Arrays;
use crate::stman::{Column, ColumnSpec, Storage, read_part, undefined};
use crate::value::{DataType, Region, Shape, Values};

/// A column of the manager.
#[derive(Debug)]
pub(super) struct IncrementalColumn {
    pub(super) shared: Arc<Shared>,
    /// Its place among the manager's columns.
    pub(super) number: usize,
    pub(super) cell: Cell,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Cell {
    /// The elements; Bools packed, from a byte of their own.
    Elements { shape: Shape, count: u64, bytes: u64 },
    /// u32 bytes of the whole value; the string.
    String { shape: Shape },
    /// u32 bytes of the whole value; for each string its u32 length and bytes.
    Strings { shape: Shape, count: u64 },
    /// i64: offset in the array file, 0 if undefined.
    Array(Arc<Arrays>),
}

impl Cell {
    /// The cells of a column whose arrays are in the manager's rows.
    pub(super) fn direct(spec: &ColumnSpec) -> Result<Self> {
        let shape = match (spec.storage, &spec.shape) {
            (Storage::Scalar, _) => Shape::scalar(),
            (_, Some(shape)) => shape.clone(),
            (_, None) => return Err(Error::format("a direct column without shape")),
        };
        let count = shape.elements()?;
        Ok(match (spec.data_type, count) {
            (DataType::String, 1) => Cell::String { shape },
            (DataType::String, _) => Cell::Strings { shape, count },
            (data_type, _) => {
                let bits = count.checked_mul(element_bits(data_type));
                let bits = bits.ok_or_else(|| Error::format(format!("cells of shape {shape} do not fit a bucket")))?;
                Cell::Elements { shape, count, bytes: bits.div_ceil(8) }
            }
        })
    }

    /// Elements of a cell, if every cell has as many.
    fn count(&self) -> Option<usize> {
        match self {
            Cell::Elements { count, .. } | Cell::Strings { count, .. } => Some(*count as usize),
            Cell::String { .. } => Some(1),
            Cell::Array(_) => None,
        }
    }

    /// Appends a value that is not an array elsewhere.
    fn read(&self, value: &[u8], order: ByteOrder, out: &mut Values) -> Result<()> {
        match (self, out) {
            (Cell::Elements { count, bytes, .. }, out) => {
                let bytes = value.get(..*bytes as usize).ok_or_else(|| too_long(*bytes))?;
                match out {
                    Values::Bool(_) => out.extend_from_bits(bytes, 0, *count as usize),
                    _ => out.extend_from_bytes(bytes, order),
                }
            }
            (Cell::String { .. }, Values::String(out)) => out.push(string_value(value, order)?.into()),
            (Cell::Strings { count, .. }, Values::String(out)) => {
                let mut rest = string_value(value, order)?;
                if *count > rest.len() as u64 / 4 {
                    return Err(Error::format(format!("{count} strings in a value of {} bytes", rest.len())));
                }
                for _ in 0..*count {
                    let string = rest
                        .split_first_chunk()
                        .and_then(|(&len, behind)| behind.split_at_checked(order.u32(len) as usize));
                    let string = string.ok_or_else(|| Error::format("a value ends within its last string"))?;
                    out.push(string.0.into());
                    rest = string.1;
                }
            }
            _ => return Err(Error::usage("strings are read into strings")),
        }
        Ok(())
    }
}

/// What follows the length of a value with strings; the length counts itself.
fn string_value(value: &[u8], order: ByteOrder) -> Result<&[u8]> {
    let (&len, _) = value.split_first_chunk().ok_or_else(|| too_long(4))?;
    let len = order.u32(len);
    match value.get(4..len as usize) {
        Some(content) => Ok(content),
        None if len < 4 => Err(Error::format(format!("a value with strings that is {len} bytes long"))),
        None => Err(too_long(u64::from(len))),
    }
}

fn array_offset(value: &[u8], order: ByteOrder) -> Result<i64> {
    let &offset = value.first_chunk().ok_or_else(|| too_long(8))?;
    Ok(order.u64(offset) as i64)
}

fn too_long(bytes: u64) -> Error {
    Error::format(format!("a value of {bytes} bytes that leaves the data part"))
}

impl IncrementalColumn {
    /// Calls `each` with every value that holds in `rows`, and for how many of them.
    fn for_runs(&self, rows: Range<u64>, mut each: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let found = self.shared.index.find(row).at(&self.shared.place)?;
            let bucket = self.shared.bucket(found.bucket)?;
            let end = rows.end.min(found.end);
            for run in bucket.runs(self.number, row - found.start) {
                let run = run.at_with(|| self.shared.bucket_place(found.bucket))?;
                let run_end = run.end.map_or(end, |run_end| end.min(found.start.saturating_add(run_end)));
                each(run.value, run_end - row).at_with(|| self.shared.bucket_place(found.bucket))?;
                row = run_end;
                if row == end {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Calls `use_value` with the value that holds for `row`.
    fn with_value<T>(&self, row: u64, use_value: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let found = self.shared.index.find(row).at(&self.shared.place)?;
        let bucket: Arc<Bucket> = self.shared.bucket(found.bucket)?;
        let run = bucket.runs(self.number, row - found.start).next().expect("every column has a value from row 0 on");
        run.and_then(|run| use_value(run.value)).at_with(|| self.shared.bucket_place(found.bucket))
    }

    fn array_offset(&self, row: u64) -> Result<i64> {
        self.with_value(row, |value| array_offset(value, self.shared.order))
    }
}

impl Column for IncrementalColumn {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        match &self.cell {
            Cell::Elements { shape, .. } | Cell::String { shape } | Cell::Strings { shape, .. } => {
                Ok(Some(shape.clone()))
            }
            Cell::Array(arrays) => match self.array_offset(row)? {
                0 => Ok(None),
                offset => arrays.shape(offset).map(Some),
            },
        }
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let order = self.shared.order;
        match &self.cell {
            Cell::Elements { shape, .. } => self.with_value(row, |value| {
                Elements { file: &value, order, offset: 0, first: 0 }.read_array(shape, region, out)
            }),
            Cell::String { shape } | Cell::Strings { shape, .. } => {
                self.with_value(row, |value| read_part(region, shape, out, |out| self.cell.read(value, order, out)))
            }
            Cell::Array(arrays) => match self.array_offset(row)? {
                0 => Err(undefined(row)),
                offset => arrays.read(offset, region, out),
            },
        }
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let order = self.shared.order;
        if let Cell::Array(arrays) = &self.cell {
            // read outside of `for_runs`, which names the bucket in every error
            let mut runs = Vec::new();
            self.for_runs(rows, |value, rows| {
                runs.push((array_offset(value, order)?, rows));
                Ok(())
            })?;
            for (offset, rows) in runs.into_iter().filter(|&(offset, _)| offset != 0) {
                let before = out.len();
                arrays.read(offset, None, out)?;
                repeat_last(out, out.len() - before, rows);
            }
            return Ok(());
        }
        let count = self.cell.count().unwrap_or_default();
        self.for_runs(rows, |value, rows| {
            self.cell.read(value, order, out)?;
            if matches!(self.cell, Cell::String { .. } | Cell::Strings { .. }) {
                let len = value.first_chunk().map_or(0, |&len| u64::from(order.u32(len)));
                limits::repeated(len.saturating_mul(rows))?;
            }
            repeat_last(out, count, rows);
            Ok(())
        })
    }
}

/// Appends the last `count` elements until they are there for `rows` rows.
fn repeat_last(out: &mut Values, count: usize, rows: u64) {
    if count > 0 && rows > 1 {
        out.repeat_last(count, (rows - 1) as usize);
    }
}
