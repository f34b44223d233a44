//! Writes a StManAipsIO. formats/stman.md 4.
//!
//! The file is one stream in which the columns follow each other, so it is written when all rows
//! are known; until then the cells of each column are in a scratch file, which has no name and goes
//! with the process.

use std::ops::Range;
use std::sync::Arc;

use bstr::BString;

use super::ORDER;
use super::segments::WIDE_OFFSET;
use crate::container::ContainerMut;
use crate::error::{Context, Error, Result};
use crate::grid::for_each_run;
use crate::io::{PagedMut, WriteAt, read_array, read_bytes};
use crate::stman::checks::check_removal;
use crate::stman::elements::{ElementsMut, element_bits};
use crate::stman::indirect::ArraysMut;
use crate::stman::with_context::WithContext;
use crate::stman::{ColumnSpec, CreateArgs, ManagerMut, Storage};
use crate::value::{DataType, Region, Shape, Values, bits};

const STEP_BYTES: u64 = 1 << 20;

/// Scratch file: u64 offset and u32 length of a text in another file.
const STRING_BYTES: u64 = 12;

/// Scratch file: i64 offset of an array.
const OFFSET_BYTES: u64 = 8;

#[derive(Debug)]
struct AipsIoMut {
    name: BString,
    sequence: u32,
    files: Arc<dyn ContainerMut>,
    file: Arc<dyn WriteAt>,
    arrays: Option<ArraysMut>,
    /// Columns in the array file ever added, removed ones included.
    unique: u32,
    rows: u64,
    columns: Vec<ColumnMut>,
}

/// A column with its scratch file, in which every cell has the same number of bytes.
#[derive(Debug)]
struct ColumnMut {
    spec: ColumnSpec,
    cells: PagedMut,
    cell_bytes: u64,
    kind: Cells,
}

#[derive(Debug)]
enum Cells {
    /// Scratch file of the stored elements, a scalar Bool in a byte; shape of a cell.
    Elements(Shape),
    /// Shape of a cell, scratch file with the texts, and end of the last text in it.
    Strings(Shape, PagedMut, u64),
    /// Scratch file of array offsets; the column's number among all ever added to the array file.
    Array(u32),
}

pub(super) fn create(args: &CreateArgs<'_>) -> Result<Box<dyn ManagerMut>> {
    WithContext::create(args, "StManAipsIO", || AipsIoMut::new(args))
}

impl AipsIoMut {
    fn new(args: &CreateArgs<'_>) -> Result<Self> {
        let mut manager = AipsIoMut {
            name: args.name.to_owned(),
            sequence: args.sequence,
            files: args.files.clone(),
            file: args.file("")?,
            arrays: None,
            unique: 0,
            rows: 0,
            columns: Vec::new(),
        };
        args.columns.iter().try_for_each(|spec| manager.add_column(spec))?;
        Ok(manager)
    }

    fn scratch(&self) -> Result<PagedMut> {
        let name = format!("table.f{}_scratch", self.sequence);
        let file = self.files.create(&name)?;
        self.files.remove(&name)?;
        PagedMut::new(file)
    }

    fn arrays(&mut self) -> Result<&mut ArraysMut> {
        self.arrays.as_mut().ok_or_else(|| Error::usage("the manager has no array file"))
    }

    /// New cells are zeros, or arrays of zeros.
    fn start_rows(&mut self, column: usize, rows: Range<u64>) -> Result<()> {
        let ColumnMut { spec, cells, cell_bytes, kind } = &self.columns[column];
        cells.grow(rows.end * cell_bytes);
        if let (Cells::Array(_), Some(shape), Some(arrays)) = (kind, &spec.shape, &mut self.arrays) {
            for row in rows {
                let offset = arrays.add(spec.data_type, shape)?;
                cells.write(row * cell_bytes, &offset.to_be_bytes())?;
            }
        }
        Ok(())
    }

    /// 0 if the cell is undefined.
    fn array_offset(&self, column: usize, row: u64) -> Result<i64> {
        Ok(i64::from_be_bytes(read_array(&self.columns[column].cells, row * OFFSET_BYTES)?))
    }

    /// Fails if the cell is undefined: the array does not exist before the cell has a shape.
    fn defined_array(&self, column: usize, row: u64) -> Result<i64> {
        match self.array_offset(column, row)? {
            0 => Err(self.columns[column].spec.without_shape(row)),
            offset => Ok(offset),
        }
    }

    fn encode(&mut self) -> Result<()> {
        let mut out = Stream { file: self.file.clone(), start: 0, buffer: Vec::new() };
        out.u32(crate::aipsio::MAGIC)?;
        let all = out.start("StManAipsIO", 2)?;
        out.string(&self.name)?;
        for number in [self.sequence, self.unique, self.rows as u32, self.columns.len() as u32] {
            out.u32(number)?;
        }
        for column in &self.columns {
            out.u32(column.spec.data_type.code() as u32)?;
        }
        for column in &self.columns {
            column.encode(self.rows, &mut out)?;
        }
        out.end(all)?;
        let len = out.position();
        out.write()?;
        self.file.set_len(len)
    }
}

impl ColumnMut {
    fn encode(&self, rows: u64, out: &mut Stream) -> Result<()> {
        let around = match (&self.kind, self.spec.storage) {
            (Cells::Array(number), _) => {
                let start = out.start("StManColumnIndArrayAipsIO", 2)?;
                out.u32(self.spec.data_type.code() as u32)?;
                out.u32(*number)?;
                Some(start)
            }
            (_, Storage::Scalar) => None,
            _ => Some(out.start("StManColumnArrayAipsIO", 2)?),
        };
        let start = out.start("StManColumnAipsIO", 2)?;
        out.u32(rows as u32)?;
        let elements = match &self.kind {
            Cells::Elements(shape) | Cells::Strings(shape, ..) => shape.elements()?,
            Cells::Array(_) => 0,
        };
        // casacore counts the elements of a chunk in 32 bits
        let most = (i32::MAX as u64 / elements.max(1)).max(1);
        let mut row = 0;
        while row < rows {
            let count = most.min(rows - row);
            out.u32(count as u32)?;
            if !matches!(self.kind, Cells::Array(_)) {
                out.u32((count * elements) as u32)?;
            }
            self.encode_rows(row..row + count, elements, out)?;
            row += count;
        }
        out.end(start)?;
        around.map_or(Ok(()), |start| out.end(start))
    }

    fn encode_rows(&self, rows: Range<u64>, elements: u64, out: &mut Stream) -> Result<()> {
        // whole bytes of Bools
        let step = (STEP_BYTES / self.cell_bytes.max(1)).next_multiple_of(8).max(8);
        let mut row = rows.start;
        while row < rows.end && self.cell_bytes > 0 {
            let count = step.min(rows.end - row);
            let bytes = read_bytes(&self.cells, row * self.cell_bytes, count * self.cell_bytes)?;
            match &self.kind {
                Cells::Elements(_) if self.is_bit() => {
                    let bools: Vec<bool> = bytes.iter().map(|&byte| byte != 0).collect();
                    let mut packed = Vec::new();
                    bits::pack(&bools, &mut packed);
                    out.bytes(&packed)?;
                }
                Cells::Elements(_) => out.bytes(&bytes)?,
                Cells::Strings(_, texts, _) => {
                    debug_assert_eq!(bytes.len() as u64, count * elements * STRING_BYTES);
                    for string in bytes.chunks_exact(STRING_BYTES as usize) {
                        let (&offset, len) = string.split_first_chunk().unwrap_or((&[0; 8], &[]));
                        let len = len.first_chunk().map_or(0, |&len| u32::from_be_bytes(len));
                        out.string(&read_bytes(texts, u64::from_be_bytes(offset), len.into())?)?;
                    }
                }
                Cells::Array(_) => {
                    for &offset in bytes.as_chunks().0 {
                        match u64::from_be_bytes(offset) {
                            narrow @ 0..=0x8000_0000 => out.u32(narrow as u32)?,
                            wide => {
                                out.u32(WIDE_OFFSET)?;
                                out.bytes(&wide.to_be_bytes())?;
                            }
                        }
                    }
                }
            }
            row += count;
        }
        Ok(())
    }

    fn is_bit(&self) -> bool {
        self.spec.data_type == DataType::Bool && self.spec.storage == Storage::Scalar
    }

    fn elements(&self, row: u64) -> ElementsMut<'_> {
        ElementsMut { file: &self.cells, order: ORDER, offset: row * self.cell_bytes, first: 0 }
    }

    fn write_strings(&mut self, row: u64, first: usize, strings: &[BString]) -> Result<()> {
        let Cells::Strings(_, texts, end) = &mut self.kind else {
            return Err(Error::usage("the values are strings, which the column does not hold"));
        };
        let mut records = Vec::with_capacity(strings.len() * STRING_BYTES as usize);
        let mut text = Vec::new();
        for string in strings {
            let len = u32::try_from(string.len())
                .map_err(|_| Error::limit(format!("a string of {} bytes; lengths have 32 bits", string.len())))?;
            records.extend((*end + text.len() as u64).to_be_bytes());
            records.extend(len.to_be_bytes());
            text.extend_from_slice(string);
        }
        texts.write(*end, &text)?;
        *end += text.len() as u64;
        self.cells.write(row * self.cell_bytes + first as u64 * STRING_BYTES, &records)
    }

    /// Each later cell moves to the row before, and the last one becomes zeros.
    fn remove(&mut self, row: u64, rows: u64) -> Result<()> {
        let (mut to, end) = (row * self.cell_bytes, rows * self.cell_bytes);
        while to + self.cell_bytes < end {
            let from = to + self.cell_bytes;
            let bytes = read_bytes(&self.cells, from, STEP_BYTES.min(end - from))?;
            self.cells.write(to, &bytes)?;
            to += bytes.len() as u64;
        }
        self.cells.write(end - self.cell_bytes, &vec![0; self.cell_bytes as usize])
    }
}

impl ManagerMut for AipsIoMut {
    fn add_rows(&mut self, count: u64) -> Result<()> {
        let rows = self.rows..self.rows.saturating_add(count);
        if rows.end > u64::from(u32::MAX) {
            return Err(Error::limit(format!("{} rows are too many: StManAipsIO counts them in 32 bits", rows.end)));
        }
        (0..self.columns.len()).try_for_each(|column| self.start_rows(column, rows.clone()))?;
        self.rows = rows.end;
        Ok(())
    }

    fn can_remove_rows(&self) -> bool {
        true
    }

    fn remove_row(&mut self, row: u64) -> Result<()> {
        check_removal(row, self.rows)?;
        self.columns.iter_mut().try_for_each(|column| column.remove(row, self.rows))?;
        self.rows -= 1;
        Ok(())
    }

    fn add_column(&mut self, spec: &ColumnSpec) -> Result<()> {
        let shape = spec.shape.clone().unwrap_or_default();
        let is_string = spec.data_type == DataType::String;
        let bytes = |bits: u64| shape.elements().ok()?.checked_mul(bits).map(|bits| bits.div_ceil(8));
        let too_large = || {
            Error::limit(format!("cells of shape {shape} are too large for the memory"))
                .context(Context::column(&spec.name))
        };
        let (kind, cell_bytes) = match spec.storage {
            Storage::Indirect => {
                if self.arrays.is_none() {
                    let name = format!("table.f{}i", self.sequence);
                    self.arrays = Some(ArraysMut::create(&*self.files, &name, ORDER, false, "StManAipsIO")?);
                }
                self.unique += 1;
                (Cells::Array(self.unique - 1), OFFSET_BYTES)
            }
            _ if is_string => {
                let cell_bytes = bytes(STRING_BYTES * 8).ok_or_else(too_large)?;
                (Cells::Strings(shape, self.scratch()?, 0), cell_bytes)
            }
            _ => (Cells::Elements(shape.clone()), bytes(element_bits(spec.data_type)).ok_or_else(too_large)?),
        };
        self.columns.push(ColumnMut { spec: spec.clone(), cells: self.scratch()?, cell_bytes, kind });
        self.start_rows(self.columns.len() - 1, 0..self.rows)
    }

    fn remove_column(&mut self, column: usize) -> Result<()> {
        self.columns.remove(column);
        Ok(())
    }

    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>> {
        let ColumnMut { spec, kind, .. } = &self.columns[column];
        spec.check_rows(&(row..row.saturating_add(1)), self.rows)?;
        match (kind, &self.arrays) {
            (Cells::Elements(shape) | Cells::Strings(shape, ..), _) => Ok(Some(shape.clone())),
            (Cells::Array(_), Some(arrays)) => match self.array_offset(column, row)? {
                0 => Ok(None),
                offset => arrays.shape(offset).map(Some),
            },
            (Cells::Array(_), None) => Ok(None),
        }
    }

    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()> {
        let known = self.cell_shape(column, row)?;
        let ColumnMut { spec, kind, .. } = &self.columns[column];
        spec.check_shape(row, shape)?;
        if known.as_ref() == Some(shape) || !matches!(kind, Cells::Array(_)) {
            return Ok(());
        }
        let data_type = spec.data_type;
        let offset = self.arrays()?.add(data_type, shape)?;
        self.columns[column].cells.write(row * OFFSET_BYTES, &offset.to_be_bytes())
    }

    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()> {
        let Some(region) = region else { return self.write_rows(column, row..row + 1, values) };
        let shape = self.cell_shape(column, row)?;
        let shape = self.columns[column].spec.check_part(row, self.rows, shape, region, values)?;
        if let Cells::Array(_) = self.columns[column].kind {
            let offset = self.defined_array(column, row)?;
            return self.arrays()?.write_region(offset, region, values);
        }
        let column = &mut self.columns[column];
        let Values::String(strings) = values else {
            return column.elements(row).write_array(&shape, Some(region), values);
        };
        let mut runs = Vec::new();
        let zero = vec![0; shape.len()];
        for_each_run(&region.shape, &zero, &shape, &region.start, &region.shape, |from, to, run| {
            runs.push((from, to, run));
        });
        runs.into_iter().try_for_each(|(from, to, run)| column.write_strings(row, to, &strings[from..from + run]))
    }

    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()> {
        self.columns[column].spec.check_write(&rows, self.rows, values)?;
        if let Cells::Array(_) = self.columns[column].kind {
            let mut done = 0;
            for row in rows.clone() {
                let offset = self.defined_array(column, row)?;
                let end = done + self.arrays()?.shape(offset)?.elements()? as usize;
                if end > values.len() {
                    return Err(self.columns[column].spec.too_few(row, values.len()));
                }
                self.arrays()?.write(offset, values, done..end)?;
                done = end;
            }
            return self.columns[column].spec.check_all_used(&rows, done, values.len());
        }
        let column = &mut self.columns[column];
        let (Cells::Elements(shape) | Cells::Strings(shape, ..)) = &column.kind else { return Ok(()) };
        column.spec.check_count(rows.start, rows.end - rows.start, shape, values.len())?;
        match values {
            Values::String(strings) => column.write_strings(rows.start, 0, strings),
            // each cell begins with a byte
            Values::Bool(_) => {
                let count = shape.elements()? as usize;
                rows.enumerate().try_for_each(|(i, row)| column.elements(row).write(values, i * count..(i + 1) * count))
            }
            _ => column.elements(rows.start).write(values, 0..values.len()),
        }
    }

    fn flush(&mut self) -> Result<Vec<u8>> {
        self.encode()?;
        if let Some(arrays) = &mut self.arrays {
            arrays.flush()?;
        }
        Ok(Vec::new())
    }
}

/// Counterpart of [`Encoder`](crate::aipsio::Encoder) for objects too long for memory.
struct Stream {
    file: Arc<dyn WriteAt>,
    /// Offset at which the buffer is written next.
    start: u64,
    buffer: Vec<u8>,
}

impl Stream {
    fn position(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    fn write(&mut self) -> Result<()> {
        self.file.write_at(self.start, &self.buffer)?;
        self.start = self.position();
        self.buffer.clear();
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() as u64 >= STEP_BYTES { self.write() } else { Ok(()) }
    }

    fn u32(&mut self, value: u32) -> Result<()> {
        self.bytes(&value.to_be_bytes())
    }

    fn string(&mut self, string: &[u8]) -> Result<()> {
        self.u32(string.len() as u32)?;
        self.bytes(string)
    }

    /// Returns the offset of the object.
    fn start(&mut self, name: &str, version: u32) -> Result<u64> {
        let start = self.position();
        self.u32(0)?;
        self.string(name.as_bytes())?;
        self.u32(version)?;
        Ok(start)
    }

    /// The length of the object is stored modulo 4 GiB, as casacore does.
    fn end(&mut self, start: u64) -> Result<()> {
        let len = ((self.position() - start) as u32).to_be_bytes();
        match start.checked_sub(self.start) {
            Some(at) => {
                let at = at as usize;
                self.buffer[at..at + 4].copy_from_slice(&len);
                Ok(())
            }
            None => self.file.write_at(start, &len),
        }
    }
}
