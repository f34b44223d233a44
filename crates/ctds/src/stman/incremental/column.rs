//! A column of IncrementalStMan, read from the values in each bucket.

use std::ops::Range;
use std::sync::Arc;

use super::Shared;
use super::bucket::Bucket;
use super::cell::{Cell, array_offset};
use super::index::Found;
use crate::error::{Result, ResultExt};
use crate::io::ByteOrder;
use crate::limits;
use crate::stman::elements::Elements;
use crate::stman::indirect::ArrayFile;
use crate::stman::{ColumnCells, read_part, undefined};
use crate::value::{Region, Shape, Values};

/// Rows whose shapes are compared at a time, so that memory does not depend on their number.
const ROWS: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct IncrementalColumn {
    pub(super) shared: Arc<Shared>,
    /// Index within the manager.
    pub(super) number: usize,
    pub(super) cell: Cell<Arc<ArrayFile>>,
}

impl IncrementalColumn {
    /// `each` gets the bytes of a value, and the number of `rows` for which it holds.
    fn for_runs(&self, rows: Range<u64>, mut each: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let found = self.shared.index.find(row).context(&self.shared.place)?;
            let bucket = self.shared.bucket(found.bucket)?;
            let end = rows.end.min(found.end);
            for run in bucket.runs(self.number, row - found.start) {
                let run =
                    run.with_context(|| format!("bucket {}", found.bucket)).with_context(|| &self.shared.place)?;
                let run_end = run.end.map_or(end, |run_end| end.min(found.start.saturating_add(run_end)));
                each(run.value, run_end - row)
                    .with_context(|| format!("bucket {}", found.bucket))
                    .with_context(|| &self.shared.place)?;
                row = run_end;
                if row == end {
                    break;
                }
            }
        }
        Ok(())
    }

    fn with_value<T>(&self, row: u64, use_value: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let found = self.shared.index.find(row).context(&self.shared.place)?;
        let bucket: Arc<Bucket> = self.shared.bucket(found.bucket)?;
        let run = bucket.runs(self.number, row - found.start).next().expect("every column has a value from row 0 on");
        run.and_then(|run| use_value(run.value))
            .with_context(|| format!("bucket {}", found.bucket))
            .with_context(|| &self.shared.place)
    }

    pub(super) fn readable(&self) -> Result<()> {
        match &self.cell {
            Cell::Array(file) => file.arrays().map(|_| ()),
            _ => Ok(()),
        }
    }

    fn array_offset(&self, row: u64) -> Result<i64> {
        self.with_value(row, |value| array_offset(value, self.shared.order))
    }

    /// Array offsets (0: undefined), each with the number of consecutive rows that share the array.
    fn array_runs(&self, rows: Range<u64>) -> Result<Vec<(i64, u64)>> {
        // arrays are read after `for_runs`, which names the bucket in every error
        let mut runs: Vec<(i64, u64)> = Vec::new();
        self.for_runs(rows, |value, rows| {
            let offset = array_offset(value, self.shared.order)?;
            match runs.last_mut() {
                Some((last, count)) if *last == offset => *count += rows,
                _ => runs.push((offset, rows)),
            }
            Ok(())
        })?;
        Ok(runs)
    }
}

impl ColumnCells for IncrementalColumn {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        match &self.cell {
            Cell::Elements { shape, .. } | Cell::String { shape } | Cell::Strings { shape, .. } => {
                Ok(Some(shape.clone()))
            }
            Cell::Array(file) => match self.array_offset(row)? {
                0 => Ok(None),
                offset => file.arrays()?.shape(offset).map(Some),
            },
        }
    }

    fn shapes(&self, rows: Range<u64>) -> Result<Vec<Option<Shape>>> {
        let Cell::Array(file) = &self.cell else { return rows.map(|row| self.cell_shape(row)).collect() };
        let (arrays, mut shapes) = (file.arrays()?, Vec::new());
        for (offset, rows) in self.array_runs(rows)? {
            let shape = if offset == 0 { None } else { Some(arrays.shape(offset)?) };
            shapes.resize(shapes.len() + rows as usize, shape);
        }
        Ok(shapes)
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let Cell::Array(file) = &self.cell else { return self.cell_shape(rows.start).ok()? };
        let (arrays, mut same) = (file.arrays().ok()?, None);
        // as long as all values so far have one shape
        for start in rows.clone().step_by(ROWS) {
            for (offset, _) in self.array_runs(start..rows.end.min(start + ROWS as u64)).ok()? {
                let shape = if offset == 0 { return None } else { arrays.shape(offset).ok()? };
                if *same.get_or_insert_with(|| shape.clone()) != shape {
                    return None;
                }
            }
        }
        same
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
            Cell::Array(file) => match self.array_offset(row)? {
                0 => Err(undefined(row)),
                offset => file.arrays()?.read(offset, region, out),
            },
        }
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let order = self.shared.order;
        if let Cell::Array(file) = &self.cell {
            let arrays = file.arrays()?;
            for (offset, rows) in self.array_runs(rows)?.into_iter().filter(|&(offset, _)| offset != 0) {
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

    /// `None` if the cells have no fixed size, reading failed, or they do not fill `out` exactly.
    fn read_plain(&self, runs: &mut dyn Iterator<Item = Range<u64>>, out: &mut [u8]) -> Option<ByteOrder> {
        let Cell::Elements { bytes, .. } = self.cell else { return None };
        let bytes = usize::try_from(bytes).ok()?;
        let mut rest = out;
        let mut at = None;
        for rows in runs {
            let mut row = rows.start;
            while row < rows.end {
                let is_near = |(found, _, _): &(Found, _, _)| found.start <= row && row < found.end;
                if at.as_ref().is_none_or(|at| !is_near(at)) {
                    let found = self.shared.index.find(row).ok()?;
                    let bucket = self.shared.bucket(found.bucket).ok()?;
                    at = Some((found, bucket, 0));
                }
                let (found, bucket, entry) = at.as_mut()?;
                let end = found.end.min(rows.end);
                let len = usize::try_from(end - row).ok()?.checked_mul(bytes)?;
                let (now, later) = std::mem::take(&mut rest).split_at_mut_checked(len)?;
                bucket.fill(self.number, row - found.start..end - found.start, bytes, entry, now)?;
                rest = later;
                row = end;
            }
        }
        rest.is_empty().then_some(self.shared.order)
    }
}

/// Appends `rows - 1` copies of the last cell.
fn repeat_last(out: &mut Values, count: usize, rows: u64) {
    if count > 0 && rows > 1 {
        out.repeat_last(count, (rows - 1) as usize);
    }
}
