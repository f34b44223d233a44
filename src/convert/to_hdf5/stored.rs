//! Reads boxes of elements of the datasets that a column would have in a native HDF5 file; the
//! elements come from the cells of the casacore table.

use std::ops::Range;
use std::sync::Arc;

use super::layout_choice::{ColumnForm, ReadStrategy};
use super::outline::stored_values;
use super::plan::{ColumnPlan, TablePlan};
use crate::error::{Error, Result};
use crate::grid::ChunkCache;
use crate::native::{Part, changed_strings};
use crate::source::{Content, Source};
use crate::table::ColumnCells;
use crate::value::{DataType, Region, Shape, Values};

/// Rows whose cell shapes are in memory at a time.
const BLOCK_ROWS: u64 = 4096;
/// Elements; a larger cell is read in part if possible, as a range of the slowest axis.
const LARGE_CELL: u64 = 1 << 16;

/// Holder of the elements of a dataset.
#[cfg(any(test, feature = "internals"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Numbers of the converted rows in the table from which the source's rows were selected.
    Rows {
        /// Index in `Plan::tables`.
        table: usize,
    },
    /// Numbers of the converted rows in the root of the reference table.
    RootRows {
        /// Index in `Plan::tables`.
        table: usize,
    },
    /// A column.
    Column {
        /// Index in `Plan::tables`.
        table: usize,
        /// Index in `TablePlan::columns`.
        column: usize,
        /// Elements, a hypercube, or which cells are defined, where they are or their shapes.
        part: Part,
    },
}

pub(super) fn axis(region: &Region, axis: usize) -> Range<u64> {
    let start = region.start.get(axis).copied().unwrap_or(0);
    start..start + region.shape.get(axis).copied().unwrap_or(0)
}

fn blocks(rows: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    rows.clone().step_by(BLOCK_ROWS as usize).map(move |start| start..rows.end.min(start + BLOCK_ROWS))
}

/// 0 for an undefined cell.
fn elements(shape: Option<&Shape>) -> Result<u64> {
    shape.map_or(Ok(0), Shape::elements)
}

/// Row 0 is row 0 of the source table.
pub(in crate::convert) struct StoredColumn<'a> {
    pub(in crate::convert) source: &'a Source,
    pub(in crate::convert) table: &'a TablePlan,
    pub(in crate::convert) column: &'a ColumnPlan,
    /// Decoded tiles.
    pub(in crate::convert) cache: &'a ChunkCache,
}

impl StoredColumn<'_> {
    /// `starts`, called for ragged columns only, returns [`starts`](Self::starts).
    pub(in crate::convert) fn read(
        &self,
        part: Part,
        region: &Region,
        starts: &dyn Fn() -> Result<Arc<Vec<u64>>>,
    ) -> Result<Values> {
        match (part, &self.column.form) {
            (Part::Data, ColumnForm::Dense { shape, route, .. }) => self.cells(shape, *route, region),
            (Part::Cube(cube), _) => self.cube(cube, region),
            (Part::RowCube | Part::RowIndex, _) => self.row_map(part, axis(region, 0)),
            (Part::Defined, _) => {
                let mut flags = Vec::new();
                self.each_shape(axis(region, 0), |_, shape| {
                    flags.push(shape.is_some());
                    Ok(())
                })?;
                Ok(Values::Bool(flags))
            }
            (Part::Shape, _) => self.extents(region),
            (Part::Offset, _) => self.offsets(axis(region, 0), &starts()?),
            (Part::Values, _) => self.ragged(axis(region, 0), &starts()?),
            _ => Err(Error::usage(format!("{part:?} does not belong to the form of the column"))),
        }
    }

    fn content(&self) -> Result<(&Content, Arc<dyn ColumnCells + '_>)> {
        self.source.cells_at(self.table.source, self.column.index)
    }

    fn cube(&self, cube: usize, region: &Region) -> Result<Values> {
        self.source.hypercube_elements(self.table.source, self.column.index, cube, region, self.cache)
    }

    /// A box of a dense column, all of whose cells have one shape; `shape` is that of the dataset.
    fn cells(&self, shape: &Shape, route: ReadStrategy, region: &Region) -> Result<Values> {
        if route == ReadStrategy::Tiles {
            return self.cube(0, region);
        }
        let (Some((cell, _)), Some((start, _)), Some((extent, _))) =
            (shape.split_last(), region.start.split_last(), region.shape.split_last())
        else {
            return Err(Error::format("the dataset has no axes"));
        };
        let part = (extent != cell).then(|| Region { start, shape: extent });
        let rows = axis(region, shape.len() - 1);
        self.source.stored_cells(self.table.source, self.column.index, rows, part.as_ref(), Some(&cell))
    }

    /// Hypercube of each row for `RowCube` (-1 if undefined), else the position in it (0 if
    /// undefined).
    fn row_map(&self, part: Part, rows: Range<u64>) -> Result<Values> {
        let runs = self.source.hypercube_rows(self.table.source, self.column.index)?;
        let (mut cubes, mut positions) = (Vec::new(), Vec::new());
        for row in rows {
            let after = runs.partition_point(|(run, ..)| run.start <= row);
            let found = after.checked_sub(1).map(|run| &runs[run]).filter(|(run, ..)| run.contains(&row));
            cubes.push(found.map_or(-1, |(_, cube, _)| *cube as i32));
            positions.push(found.map_or(0, |(run, _, position)| (position + row - run.start) as i64));
        }
        Ok(if part == Part::RowCube { Values::Int(cubes) } else { Values::Int64(positions) })
    }

    /// Shapes are `None` for undefined cells.
    fn each_shape(&self, rows: Range<u64>, mut each: impl FnMut(u64, Option<&Shape>) -> Result<()>) -> Result<()> {
        let (_, cells) = self.content()?;
        for block in blocks(rows) {
            for (row, shape) in block.clone().zip(cells.shapes(block)?) {
                each(row, shape.as_ref())?;
            }
        }
        Ok(())
    }

    /// Extents of each cell, slowest axis first, and -1 where a cell has fewer axes.
    fn extents(&self, region: &Region) -> Result<Values> {
        let axes = axis(region, 0);
        let mut extents = Vec::new();
        self.each_shape(axis(region, 1), |_, shape| {
            let mut of_cell = shape.into_iter().flat_map(Shape::reversed).skip(axes.start as usize);
            extents.extend(axes.clone().map(|_| of_cell.next().map_or(-1, |extent| extent as i32)));
            Ok(())
        })?;
        Ok(Values::Int(extents))
    }

    /// Elements of a ragged column before each block of 4096 rows, then of all rows.
    pub(in crate::convert) fn starts(&self) -> Result<Vec<u64>> {
        let mut count = 0u64;
        let mut starts = Vec::new();
        self.each_shape(self.table.rows.clone(), |row, shape| {
            if row % BLOCK_ROWS == 0 {
                starts.push(count);
            }
            count = count.saturating_add(elements(shape)?);
            Ok(())
        })?;
        starts.push(count);
        Ok(starts)
    }

    /// First element of each of `rows`; after the last row, the number of all.
    fn offsets(&self, rows: Range<u64>, starts: &[u64]) -> Result<Values> {
        let mut offsets = Vec::new();
        let block = rows.start / BLOCK_ROWS;
        let mut count = starts.get(block as usize).copied().unwrap_or(0);
        let last = self.table.rows.end;
        self.each_shape(block * BLOCK_ROWS..rows.end.min(last), |row, shape| {
            if rows.contains(&row) {
                offsets.push(count as i64);
            }
            count = count.saturating_add(elements(shape)?);
            Ok(())
        })?;
        if rows.contains(&last) {
            offsets.push(starts.last().copied().unwrap_or(0) as i64);
        }
        Ok(Values::Int64(offsets))
    }

    /// Elements with the indices `wanted`, counted through all cells of a ragged column.
    fn ragged(&self, wanted: Range<u64>, starts: &[u64]) -> Result<Values> {
        let (content, cells) = self.content()?;
        let mut values = Values::new(self.column.data_type);
        let block = starts.partition_point(|&start| start <= wanted.start).saturating_sub(1);
        let mut at = starts.get(block).copied().unwrap_or(0);
        for rows in blocks(block as u64 * BLOCK_ROWS..self.table.rows.end) {
            if at >= wanted.end {
                break;
            }
            for (row, shape) in rows.clone().zip(cells.shapes(rows)?) {
                let end = at.saturating_add(elements(shape.as_ref())?);
                let part = wanted.start.clamp(at, end) - at..wanted.end.clamp(at, end) - at;
                if let Some(shape) = shape.filter(|_| !part.is_empty()) {
                    read_part(&*cells, row, &shape, part, &mut values)?;
                }
                at = end;
            }
        }
        Ok(stored_values(values, content))
    }

    /// How many strings [`read`](Self::read) gives with other bytes.
    pub(in crate::convert) fn changed_strings(&self) -> Result<u64> {
        let (_, cells) = self.content()?;
        let mut changed = 0;
        for rows in blocks(self.table.rows.clone()) {
            let mut values = Values::new(DataType::String);
            cells.read_rows(rows, &mut values)?;
            changed += changed_strings(&values);
        }
        Ok(changed)
    }
}

/// Elements with the indices `part` of a cell, fastest axis first.
fn read_part(cells: &dyn ColumnCells, row: u64, shape: &Shape, part: Range<u64>, out: &mut Values) -> Result<()> {
    let count = shape.elements()?;
    if part == (0..count) {
        return cells.read_cell(row, None, out);
    }
    let slowest = shape.iter().rposition(|&extent| extent > 1).filter(|_| count > LARGE_CELL);
    let (slab, region) = match slowest.filter(|_| out.data_type().is_fixed_size()) {
        Some(axis) => {
            let slab = count / shape[axis];
            let (first, end) = (part.start / slab, part.end.div_ceil(slab));
            let region = Region {
                start: (0..shape.len()).map(|other| if other == axis { first } else { 0 }).collect(),
                shape: shape
                    .iter()
                    .enumerate()
                    .map(|(other, &n)| if other == axis { end - first } else { n })
                    .collect(),
            };
            (first * slab, Some(region))
        }
        None => (0, None),
    };
    let mut values = Values::new(out.data_type());
    cells.read_cell(row, region.as_ref(), &mut values)?;
    out.extend_from(&values, (part.start - slab) as usize..(part.end - slab) as usize)
}
