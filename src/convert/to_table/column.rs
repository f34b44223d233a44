//! Copies the cells of columns into the storage managers of a new table.

use std::ops::Range;

use bstr::ByteSlice;

use super::hold::{Holder, Holding};
use super::links::Links;
use super::plan::TableBlueprint;
use super::tiles::chunks_to_tiles;
use crate::error::{Error, Result, ResultExt, column_context as place};
use crate::native::{MAX_CUBES, stored_size};
use crate::output::clone::Sharer;
use crate::progress::Progress;
use crate::source::Source;
use crate::source::blocks::{RowBlocks, Shapes, WRITE_BYTES};
use crate::table::{ColumnCells, ColumnInfo, ColumnMut, Part};
use crate::value::{Shape, Values};

pub(super) struct Means<'a> {
    /// Columns of a thin table that stay in the HDF5 file.
    pub(super) links: Option<&'a Links>,
    /// Tiles that other processes will write.
    pub(super) holder: Option<&'a Holder>,
    pub(super) sharer: &'a Sharer<'a>,
    pub(super) progress: &'a dyn Progress,
}

impl TableBlueprint {
    /// Fills columns, or registers them to be linked or to be written by other processes.
    pub(super) fn fill(&self, source: &Source, mut part: Part<'_>, means: &Means<'_>) -> Result<()> {
        let Means { links, holder, sharer, progress } = *means;
        let content = source.tables[self.source].content()?;
        if let (Some(links), [number]) = (links, part.columns().as_slice()) {
            let column = &self.columns[*number];
            let add = |target: &mut ColumnMut<'_>| links.add(content, column.index, self.rows, &self.directory, target);
            let name = content.columns()[column.index].desc.name.to_str_lossy();
            if !column.filling.is_computed() && add(&mut part.column(0)).with_context(|| place(&self.name, &name))? {
                return Ok(());
            }
        }
        for (nth, number) in part.columns().into_iter().enumerate() {
            if self.columns[number].filling.is_computed() {
                continue;
            }
            let index = self.columns[number].index;
            let name = content.columns()[index].desc.name.to_str_lossy();
            let advance = |bytes| {
                progress.advance(bytes, &self.name, &name);
                progress.go_on()
            };
            let cells = content.cells(index).with_context(|| place(&self.name, &name))?;
            let info = &content.columns()[index];
            let holding = holder.map(|holder| Holding {
                holder,
                table: self.source,
                directory: self.directory.clone(),
                column: index,
            });
            Copy { info, cells: &*cells, rows: 0..self.rows, holding, sharer, advance: &advance }
                .run(part.column(nth))
                .with_context(|| place(&self.name, &name))?;
        }
        Ok(())
    }
}

struct Copy<'a> {
    info: &'a ColumnInfo,
    cells: &'a dyn ColumnCells,
    rows: Range<u64>,
    holding: Option<Holding<'a>>,
    sharer: &'a Sharer<'a>,
    /// Reports copied bytes; fails if the conversion should stop.
    advance: &'a (dyn Fn(u64) -> Result<()> + Sync),
}

impl Copy<'_> {
    fn run(&self, mut column: ColumnMut<'_>) -> Result<()> {
        if column.is_tiled()
            && let Some(tiling) = self.cells.tiling(MAX_CUBES)
        {
            for run in &tiling.runs {
                let cube = tiling
                    .cubes
                    .get(run.cube)
                    .ok_or_else(|| Error::format("a row refers to a hypercube that does not exist"))?;
                let Some((cell, _)) = cube.grid().shape.split_last() else { continue };
                column.set_shapes(run.rows.clone(), &cell)?;
            }
            let is_done = match &self.holding {
                Some(holding) => holding.hold_chunks(&tiling, &mut column, self.sharer, self.advance)?,
                None => chunks_to_tiles(&tiling, &column.cubes()?, self.sharer, self.advance)?,
            };
            if is_done {
                return Ok(());
            }
        }
        if let Some(holding) = self.holding.as_ref().filter(|_| column.is_tiled())
            && holding.hold_rows(self.info, self.cells, self.rows.end, &mut column)?
        {
            return Ok(());
        }
        let mut values = Values::new(self.info.data_type());
        for block in RowBlocks::new(self.info, self.cells, self.rows.clone(), WRITE_BYTES) {
            let block = block?;
            values.clear();
            block.read(self.cells, &mut values)?;
            (self.advance)(values.len() as u64 * stored_size(self.info.data_type()))?;
            match (&block.part, &block.shapes) {
                (Some(region), Shapes::Same(shape)) => {
                    if !block.continues() {
                        column.set_shape(block.rows.start, shape)?;
                    }
                    column.put_part_values(block.rows.start, region, &values)?;
                }
                (_, Shapes::Same(shape)) => column.put_values(block.rows.clone(), shape, &values)?,
                (_, Shapes::Each(shapes)) => put_each(&mut column, block.rows.start, shapes, &values)?,
            }
        }
        Ok(())
    }
}

/// Cells of one shape are written together; undefined ones are skipped.
fn put_each(column: &mut ColumnMut<'_>, first: u64, shapes: &[Option<Shape>], values: &Values) -> Result<()> {
    let (mut row, mut start) = (first, 0);
    for run in shapes.chunk_by(|a, b| a == b) {
        let rows = row..row + run.len() as u64;
        row = rows.end;
        if let Some(Some(shape)) = run.first() {
            let end = start + shape.elements()? as usize * run.len();
            let mut cells = Values::new(values.data_type());
            cells.extend_from(values, start..end)?;
            column.put_values(rows, shape, &cells)?;
            start = end;
        }
    }
    Ok(())
}
