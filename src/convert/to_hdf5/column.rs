//! Conversion of a column, on a lane (a worker thread): reads the cells of the table and produces
//! the chunks of its datasets.

use std::ops::Range;

use bstr::BString;

use super::lanes::{Appender, DatasetSink, Lane, pad};
use super::layout_choice::{ReadStrategy, grid};
use super::plan::{ColumnPlan, TablePlan};
use super::set_writer::VariableWriter;
use crate::error::{Error, Result};
use crate::grid::{read_chunks, read_chunks_in, unravel};
use crate::io::ByteOrder;
use crate::native::{MAX_CUBES, Members, RawStrings, json};
use crate::progress::Progress;
use crate::source::Content;
use crate::source::blocks::{RowBlock, RowBlocks, Shapes, WRITE_BYTES};
use crate::source::digest::{CellDigest, CellsDigest, ColumnStream, digest_cells, not_selected};
use crate::table::{ColumnCells, ColumnInfo, Tiling};
use crate::value::{DataType, Region, Shape, Values};

const ROW_NUMBERS: usize = 4096;

pub(super) struct ColumnResult {
    pub(super) table: usize,
    pub(super) column: usize,
    /// The error says why there is none: digests may not be wanted.
    pub(super) digest: Result<CellsDigest>,
    /// Empty if several datasets hold the strings.
    pub(super) raw: RawStrings,
}

/// Table in which rows have the numbers that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbered {
    /// The original table, for the dimension scale `row`.
    Original,
    /// The root of the reference table that is converted.
    Root,
}

pub(super) fn write_row_numbers(
    target: &DatasetSink,
    content: &Content,
    numbered: Numbered,
    rows: Range<u64>,
    lane: &mut Lane<'_, ColumnResult>,
) -> Result<()> {
    let mut appender = Appender::new(target);
    for first in rows.clone().step_by(ROW_NUMBERS) {
        let block = first..rows.end.min(first + ROW_NUMBERS as u64);
        let numbers: Vec<u64> = match numbered {
            Numbered::Original => block.map(|row| content.original_row(row)).collect(),
            Numbered::Root => content.root_rows(block)?,
        };
        let numbers: Vec<_> = numbers.into_iter().map(u64::to_le_bytes).collect();
        appender.push(lane, numbers.as_flattened())?;
    }
    appender.finish(lane)
}

pub(super) struct ColumnWriter<'a> {
    content: &'a Content,
    info: &'a ColumnInfo,
    plan: &'a ColumnPlan,
    cells: Box<dyn ColumnCells + 'a>,
    rows: Range<u64>,
    digest: CellDigest,
    /// False if elements are copied as blocks of tiles, virtual, or left to other processes.
    writes_cubes: bool,
    /// Writes the hypercubes if they are variables of MSv4.
    variables: Option<VariableWriter<'a>>,
    progress: &'a dyn Progress,
    pub(super) raw: RawStrings,
}

impl<'a> ColumnWriter<'a> {
    pub(super) fn new(
        content: &'a Content,
        table: &TablePlan,
        plan: &'a ColumnPlan,
        digest: CellDigest,
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let cells = content.cells(plan.index)?;
        let info = &content.columns()[plan.index];
        let (rows, raw) = (table.rows.clone(), RawStrings::default());
        let (writes_cubes, variables) = (true, None);
        Ok(ColumnWriter { content, info, plan, cells, rows, digest, writes_cubes, variables, progress, raw })
    }

    pub(super) fn variables(self, variables: Option<VariableWriter<'a>>) -> Self {
        ColumnWriter { variables, ..self }
    }

    /// If false, only the datasets that locate the cell of each row are written.
    pub(super) fn cubes_written(self, writes_cubes: bool) -> Self {
        ColumnWriter { writes_cubes, ..self }
    }

    /// Passes chunks to `lane`; the inner error says why the digest is missing.
    pub(super) fn write(
        &mut self,
        sinks: &Members<DatasetSink>,
        lane: &mut Lane<'_, ColumnResult>,
    ) -> Result<Result<CellsDigest>> {
        match sinks {
            Members::Dense { data, flags } => match self.plan.form.route() {
                ReadStrategy::Tiles => self.write_tiles(data, lane),
                ReadStrategy::Parts => self.write_parts(data, flags.as_ref(), lane),
                ReadStrategy::Rows => self.write_rows(data, flags.as_ref(), lane),
            },
            Members::Cubes { cubes, row_cube, row_index } => match &self.variables {
                Some(variables) => self.write_grids(variables, cubes, [row_cube, row_index], lane),
                None => self.write_cubes(cubes, row_cube, row_index, lane),
            },
            Members::Ragged { values, offset, shape, defined } => {
                self.write_ragged(RaggedSinks::new(values, offset, shape, defined), lane)
            }
        }
    }

    fn blocks(&self) -> RowBlocks<'_> {
        let (cells, rows) = (&*self.cells, self.rows.clone());
        // the plan has read the shapes, which may lie far from each other
        match self.plan.form.shape_of_all() {
            Some(shape) if self.plan.data_type != DataType::Record => {
                RowBlocks::of_shape(shape, self.plan.data_type, cells, rows, WRITE_BYTES)
            }
            _ => RowBlocks::new(self.info, cells, rows, WRITE_BYTES),
        }
    }

    /// Reads all cells again in row order; the inner error says that no digest is wanted.
    fn digest(&self) -> Result<Result<CellsDigest>> {
        let CellDigest::Wanted(kind) = self.digest else { return Ok(Err(not_selected())) };
        digest_cells(self.info, &*self.cells, self.content, self.rows.clone(), kind, self.progress).map(Ok)
    }

    fn tiling(&self) -> Result<Tiling<'_>> {
        let tiling = self.cells.tiling(MAX_CUBES);
        tiling.ok_or_else(|| Error::format("the hypercubes have changed since the plan was made"))
    }

    /// A hypercube with all rows in order; if tiles cover whole cells, chunks are whole rows.
    fn write_tiles(&self, target: &DatasetSink, lane: &mut Lane<'_, ColumnResult>) -> Result<Result<CellsDigest>> {
        let tiling = self.tiling()?;
        let cube = tiling.cubes.first().ok_or_else(|| Error::format("the column has no hypercube"))?;
        let Some((cell, rows)) = target.grid.shape.split_last() else {
            return Err(Error::format("the dataset has no row axis"));
        };
        let mut stream = match self.digest {
            CellDigest::Wanted(kind) if cube.grid().covers_cells() => Some(ColumnStream::new(kind, self.content)),
            _ => None,
        };
        let chunk_rows = target.grid.chunk.last().copied().unwrap_or(1);
        let mut row = 0;
        tiles_to_chunks(&**cube, target, lane, |bytes| {
            let Some(stream) = &mut stream else { return Ok(()) };
            let count = chunk_rows.min(rows - row);
            row += count;
            stream.update_same(&cell, count, bytes, target.size)
        })?;
        match stream {
            Some(stream) => Ok(stream.finish()),
            None => self.digest(),
        }
    }

    fn write_cubes(
        &self,
        cubes: &[DatasetSink],
        row_cube: &DatasetSink,
        row_index: &DatasetSink,
        lane: &mut Lane<'_, ColumnResult>,
    ) -> Result<Result<CellsDigest>> {
        let tiling = self.tiling()?;
        if tiling.cubes.len() != cubes.len() {
            return Err(Error::format("the hypercubes have changed since the plan was made"));
        }
        for (cube, target) in tiling.cubes.iter().zip(cubes).filter(|_| self.writes_cubes) {
            tiles_to_chunks(&**cube, target, lane, |_| Ok(()))?;
        }
        let (mut cube, mut index) = (Appender::new(row_cube), Appender::new(row_index));
        let undefined =
            |lane: &mut Lane<'_, ColumnResult>, cube: &mut Appender<'_>, index: &mut Appender<'_>, rows: u64| {
                for _ in 0..rows {
                    cube.push(lane, &(-1i32).to_le_bytes())?;
                    index.push(lane, &0i64.to_le_bytes())?;
                }
                Ok::<_, Error>(())
            };
        let mut next = self.rows.start;
        for run in &tiling.runs {
            undefined(lane, &mut cube, &mut index, run.rows.start.min(self.rows.end) - next)?;
            for row in run.rows.start..run.rows.end.min(self.rows.end) {
                cube.push(lane, &(run.cube as i32).to_le_bytes())?;
                index.push(lane, &(run.position + row - run.rows.start).to_le_bytes())?;
            }
            next = run.rows.end.min(self.rows.end);
        }
        undefined(lane, &mut cube, &mut index, self.rows.end - next)?;
        cube.finish(lane)?;
        index.finish(lane)?;
        self.digest()
    }

    fn write_grids(
        &self,
        variables: &VariableWriter<'_>,
        grids: &[DatasetSink],
        map: [&DatasetSink; 2],
        lane: &mut Lane<'_, ColumnResult>,
    ) -> Result<Result<CellsDigest>> {
        let [mut cube, mut index] = map.map(Appender::new);
        for (number, run) in variables.plan.rows() {
            for place in (run.place..).step_by(run.step as usize).take((run.rows.end - run.rows.start) as usize) {
                cube.push(lane, &(number as i32).to_le_bytes())?;
                index.push(lane, &place.to_le_bytes())?;
            }
        }
        cube.finish(lane)?;
        index.finish(lane)?;
        let name = &self.plan.name;
        let in_order = variables.plan.is_in_order(name, self.rows.end);
        let mut stream = match self.digest {
            CellDigest::Wanted(kind) if in_order => Some(ColumnStream::new(kind, self.content)),
            _ => None,
        };
        let cell = variables.plan.cell_of(name);
        let size = self.plan.data_type.size();
        variables.write_column(name, grids, lane, |cells, bytes| match &mut stream {
            Some(stream) => stream.update_same(&cell, cells, bytes, size),
            None => Ok(()),
        })?;
        match stream {
            Some(stream) => Ok(stream.finish()),
            None => self.digest(),
        }
    }

    fn write_rows(
        &mut self,
        data: &DatasetSink,
        defined: Option<&DatasetSink>,
        lane: &mut Lane<'_, ColumnResult>,
    ) -> Result<Result<CellsDigest>> {
        let Some((cell, _)) = data.grid.shape.split_last() else { return Err(changed()) };
        let cell_len = cell.elements()? as usize;
        let mut stream = ColumnStream::of(self.digest, self.content);
        let mut appender = Appender::new(data);
        let mut flags = defined.map(Appender::new);
        let mut values = Values::new(self.plan.data_type);
        let mut raw = std::mem::take(&mut self.raw);
        for block in self.blocks() {
            let block = block?;
            values.clear();
            block.read(&*self.cells, &mut values)?;
            stream.update(&block, &values)?;
            if let Some(flags) = flags.as_mut().filter(|_| !block.continues()) {
                flags.push(lane, &defined_rows(&block))?;
            }
            if let Some(bytes) = values.le_bytes() {
                push_cells(&mut appender, &block.shapes, &bytes, cell_len * data.size, lane)?;
            } else {
                let mut strings = self.dense_strings(&values, &block.shapes, cell_len);
                let rows = block.rows.start - self.rows.start..block.rows.end - self.rows.start;
                raw.take_from(&mut strings, rows.start * cell_len as u64);
                lane.strings(data.dataset, Region::rows(&cell, rows), Values::String(strings))?;
            }
        }
        appender.finish(lane)?;
        flags.map_or(Ok(()), |flags| flags.finish(lane))?;
        self.raw = raw;
        Ok(stream.finish())
    }

    /// Records as JSON, empty strings for undefined cells.
    fn dense_strings(&self, values: &Values, shapes: &Shapes, cell_len: usize) -> Vec<BString> {
        let strings: Vec<BString> = match values {
            Values::Record(records) => {
                let table_name = |stored: &[u8]| self.content.table_name(stored);
                records.iter().map(|record| json::from_record(record, &table_name).to_string().into()).collect()
            }
            Values::String(strings) => strings.clone(),
            _ => unreachable!("numbers have bytes"),
        };
        let Shapes::Each(shapes) = shapes else { return strings };
        let mut strings = strings.into_iter();
        shapes
            .iter()
            .flat_map(|shape| {
                let cell: Vec<BString> = match shape {
                    Some(_) => strings.by_ref().take(cell_len).collect(),
                    None => vec![BString::default(); cell_len],
                };
                cell
            })
            .collect()
    }

    /// Large cells, chunk by chunk. Chunks of undefined cells are not written.
    fn write_parts(
        &self,
        data: &DatasetSink,
        defined: Option<&DatasetSink>,
        lane: &mut Lane<'_, ColumnResult>,
    ) -> Result<Result<CellsDigest>> {
        let mut flags = defined.map(Appender::new);
        let axes = data.grid.shape.len() - 1;
        let cell: Shape = data.grid.shape[..axes].into();
        let part: Shape = data.grid.chunk[..axes].into();
        let parts = grid(&cell, &part).counts();
        for row in self.rows.clone() {
            let is_defined = self.cells.cell_shape(row)?.is_some();
            if let Some(flags) = &mut flags {
                flags.push(lane, &[u8::from(is_defined)])?;
            }
            if !is_defined {
                continue;
            }
            for number in 0..parts.elements()? {
                let index = unravel(number, &parts);
                let start: Shape = index.iter().zip(part.iter()).map(|(&i, &n)| i * n).collect();
                let shape = (0..axes).map(|axis| part[axis].min(cell[axis] - start[axis])).collect();
                let region = Region { start, shape };
                let mut values = Values::new(self.plan.data_type);
                self.cells.read_cell(row, Some(&region), &mut values)?;
                let bytes = pad(&values, &region.shape, &part)?;
                let index = Shape::from(index.as_slice()).with_axis(row - self.rows.start);
                lane.chunk(data, index, bytes)?;
            }
        }
        if let Some(flags) = flags {
            flags.finish(lane)?;
        }
        self.digest()
    }

    fn write_ragged(
        &mut self,
        mut sinks: RaggedSinks<'_>,
        lane: &mut Lane<'_, ColumnResult>,
    ) -> Result<Result<CellsDigest>> {
        let mut stream = ColumnStream::of(self.digest, self.content);
        let mut values = Values::new(self.plan.data_type);
        let mut raw = std::mem::take(&mut self.raw);
        sinks.begin(lane)?;
        for block in self.blocks() {
            let block = block?;
            values.clear();
            if self.writes_cubes {
                block.read(&*self.cells, &mut values)?;
                stream.update(&block, &values)?;
            }
            if !block.continues() {
                sinks.add_rows(&block, lane)?;
            }
            if values.is_empty() {
                continue;
            }
            if let Some(bytes) = values.le_bytes() {
                sinks.elements.push(lane, &bytes)?;
            } else {
                let mut strings = self.dense_strings(&values, &Shapes::Same(Shape::scalar()), 1);
                raw.take_from(&mut strings, sinks.strings);
                sinks.add_strings(strings, lane)?;
            }
        }
        sinks.finish(lane)?;
        self.raw = raw;
        if self.writes_cubes { Ok(stream.finish()) } else { Ok(Err(not_selected())) }
    }
}

struct RaggedSinks<'a> {
    values: &'a DatasetSink,
    elements: Appender<'a>,
    offsets: Appender<'a>,
    extents: Appender<'a>,
    flags: Appender<'a>,
    /// Extents for each row in the dataset of shapes.
    width: usize,
    /// Index of values at which the next row begins.
    next: u64,
    /// Strings written so far, apart from elements of fixed size.
    strings: u64,
}

impl<'a> RaggedSinks<'a> {
    fn new(values: &'a DatasetSink, offset: &'a DatasetSink, shape: &'a DatasetSink, defined: &'a DatasetSink) -> Self {
        RaggedSinks {
            values,
            elements: Appender::new(values),
            offsets: Appender::new(offset),
            extents: Appender::new(shape),
            flags: Appender::new(defined),
            width: shape.grid.shape.first().map_or(0, |&width| width as usize),
            next: 0,
            strings: 0,
        }
    }

    fn begin(&mut self, lane: &mut Lane<'_, ColumnResult>) -> Result<()> {
        self.offsets.push(lane, &0i64.to_le_bytes())
    }

    /// Elements are written separately.
    fn add_rows(&mut self, block: &RowBlock, lane: &mut Lane<'_, ColumnResult>) -> Result<()> {
        let defined = defined_rows(block);
        let mut extents = Vec::with_capacity(defined.len() * self.width * size_of::<i32>());
        let mut offsets = Vec::with_capacity(defined.len() * size_of::<i64>());
        for row in 0..defined.len() {
            let shape = block.shapes.of(row);
            for axis in 0..self.width {
                let extent = shape.filter(|shape| axis < shape.len()).map_or(Ok(-1), |shape| {
                    i32::try_from(shape[shape.len() - 1 - axis]).map_err(|_| {
                        Error::unsupported(format!("an extent of a cell of shape {shape} has more than 31 bits"))
                    })
                })?;
                extents.extend(extent.to_le_bytes());
            }
            self.next += shape.map_or(Ok(0), Shape::elements)?;
            offsets.extend((self.next as i64).to_le_bytes());
        }
        self.flags.push(lane, &defined)?;
        self.extents.push(lane, &extents)?;
        self.offsets.push(lane, &offsets)
    }

    fn add_strings(&mut self, strings: Vec<BString>, lane: &mut Lane<'_, ColumnResult>) -> Result<()> {
        let end = self.strings + strings.len() as u64;
        let region = Region::rows(&Shape::scalar(), self.strings..end);
        self.strings = end;
        lane.strings(self.values.dataset, region, Values::String(strings))
    }

    fn finish(self, lane: &mut Lane<'_, ColumnResult>) -> Result<()> {
        self.elements.finish(lane)?;
        self.offsets.finish(lane)?;
        self.extents.finish(lane)?;
        self.flags.finish(lane)
    }
}

fn defined_rows(block: &RowBlock) -> Vec<u8> {
    let rows = (block.rows.end - block.rows.start) as usize;
    (0..rows).map(|row| u8::from(block.shapes.of(row).is_some())).collect()
}

/// Zeros where a cell is undefined.
fn push_cells(
    appender: &mut Appender<'_>,
    shapes: &Shapes,
    bytes: &[u8],
    cell_bytes: usize,
    lane: &mut Lane<'_, ColumnResult>,
) -> Result<()> {
    let Shapes::Each(shapes) = shapes else { return appender.push(lane, bytes) };
    let mut rest = bytes;
    for shape in shapes {
        if shape.is_none() {
            appender.push_zeros(lane, cell_bytes)?;
            continue;
        }
        let (cell, later) = rest.split_at_checked(cell_bytes).ok_or_else(changed)?;
        appender.push(lane, cell)?;
        rest = later;
    }
    Ok(())
}

/// A chunk is one tile, several joined along the rows, or all rows of a hypercube shorter than a
/// tile. `seen` gets the little-endian bytes of each chunk, padding included.
fn tiles_to_chunks(
    cube: &dyn crate::grid::ChunkRead,
    target: &DatasetSink,
    lane: &mut Lane<'_, ColumnResult>,
    mut seen: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let tiles = cube.grid();
    let (Some(&tile_rows), Some(&chunk_rows)) = (tiles.chunk.last(), target.grid.chunk.last()) else {
        return Err(Error::format("the hypercube has no axes"));
    };
    let tile_bytes = tiles.chunk.elements()? as usize * target.size;
    let tile_count = tiles.counts().elements()?;
    let chunks = target.grid.counts();
    let joined = chunk_rows.div_ceil(tile_rows);
    let chunk_bytes = target.chunk_bytes();
    for number in 0..chunks.elements()? {
        let first = number * joined;
        let count = joined.min(tile_count - first) as usize;
        let mut bytes = lane.buffers.take(count * tile_bytes);
        if !read_chunks_in(ByteOrder::Little, cube, first, &mut bytes)? {
            let mut values = Values::new(cube.data_type());
            read_chunks(cube, first..first + count as u64, &mut values)?;
            bytes.copy_from_slice(&values.le_bytes().expect("tiles hold elements of fixed size"));
        }
        bytes.resize(chunk_bytes, 0);
        seen(&bytes)?;
        lane.chunk(target, Shape::from(unravel(number, &chunks).as_slice()), bytes)?;
    }
    Ok(())
}

fn changed() -> Error {
    Error::format("the cells have changed since the plan was made")
}
