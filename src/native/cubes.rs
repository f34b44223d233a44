//! Reads the cells of a column in hypercubes from a native HDF5 file. Two datasets have the
//! hypercube of each row and its **position** in it. The positions of a hypercube are one axis of
//! its dataset, the slowest; or its **grid**, the two slowest: times and baselines.
//! docs/reference/layout.md, "A column", "MSv4".

use std::ops::Range;
use std::sync::OnceLock;

use super::cells::undefined;
use super::reader::Reader;
use crate::error::{Context, Error, Result, ResultExt};
use crate::grid::ChunkRead;
use crate::h5::ChunkReader;
use crate::stman::RowRun;
use crate::table::{ColumnCells, Tiling};
use crate::value::{Region, Shape, Values};

pub(super) struct Cube {
    reader: Reader,
    /// `None` if its positions are one axis, the slowest, in the dataset.
    grid: Option<CubeGrid>,
}

struct CubeGrid {
    baselines: u64,
    times: u64,
    /// Positions of a time with the padding of chunks, if the reader has both axes as one.
    merged: Option<u64>,
    /// Whether the channels, the second axis of cells, are in the opposite order.
    is_reversed: bool,
}

impl Cube {
    pub(super) fn new(reader: Reader) -> Self {
        Cube { reader, grid: None }
    }

    pub(super) fn on_grid(mut reader: Reader, is_reversed: bool) -> Result<Self> {
        let [.., baselines, times] = reader.shape[..] else {
            return Err(Error::format("the dataset has no axes of times and baselines"));
        };
        let merged = reader.merge_slowest();
        Ok(Cube { reader, grid: Some(CubeGrid { baselines, times, merged, is_reversed }) })
    }

    fn cell(&self) -> Shape {
        let positions = if self.grid.as_ref().is_some_and(|grid| grid.merged.is_none()) { 2 } else { 1 };
        self.reader.shape[..self.reader.shape.len().saturating_sub(positions)].into()
    }

    fn positions(&self) -> u64 {
        self.grid.as_ref().map_or(self.reader.rows(), |grid| grid.times.saturating_mul(grid.baselines))
    }

    /// The chunks with positions as one axis, and what becomes of a position there.
    fn chunks(&self) -> Option<(&ChunkReader, impl Fn(u64) -> u64 + use<>)> {
        let chunks = self.reader.chunks.as_ref()?;
        let (baselines, padded) = match &self.grid {
            None => (1, 1),
            Some(grid) => (grid.baselines.max(1), grid.merged.filter(|_| !grid.is_reversed)?),
        };
        Some((chunks, move |position| position / baselines * padded + position % baselines))
    }

    /// Appends the same region of cells that follow each other.
    fn read(&self, cell: &Region, positions: Range<u64>, out: &mut Values) -> Result<()> {
        let Some(grid) = &self.grid else {
            return self.reader.read(&along(cell, positions.start, positions.end - positions.start), out);
        };
        if !grid.is_reversed {
            return self.read_on(grid, cell, positions, out);
        }
        let (&[corr, start], &[channel, extent], &[_, channels]) = (&cell.start[..], &cell.shape[..], &self.cell()[..])
        else {
            return Err(Error::format("cells whose channels are reversed have other axes"));
        };
        let mirrored = Region { start: Shape::from([corr, channels - start - extent]), shape: cell.shape.clone() };
        let mut read = Values::new(out.data_type());
        self.read_on(grid, &mirrored, positions, &mut read)?;
        let channel = channel as usize;
        let len = channel * extent as usize;
        for of_cell in (0..read.len()).step_by(len.max(1)) {
            for first in (of_cell..of_cell + len).step_by(channel.max(1)).rev() {
                out.extend_from(&read, first..first + channel)?;
            }
        }
        Ok(())
    }

    /// Whole times are read together, the others each by itself.
    fn read_on(&self, grid: &CubeGrid, cell: &Region, positions: Range<u64>, out: &mut Values) -> Result<()> {
        let width = grid.baselines.max(1);
        let mut next = positions.start;
        while next < positions.end {
            let (time, baseline, left) = (next / width, next % width, positions.end - next);
            let region = match grid.merged {
                Some(padded) => {
                    let count = if padded == width { left } else { (width - baseline).min(left) };
                    next += count;
                    along(cell, time * padded + baseline, count)
                }
                None => {
                    let whole = baseline == 0 && left >= width;
                    let (baselines, times) =
                        if whole { (width, left / width) } else { ((width - baseline).min(left), 1) };
                    next += baselines * times;
                    let of_time = along(cell, baseline, baselines);
                    along(&of_time, time, times)
                }
            };
            self.reader.read(&region, out)?;
        }
        Ok(())
    }
}

/// A region with a further, slowest axis.
fn along(region: &Region, start: u64, extent: u64) -> Region {
    Region { start: region.start.with_axis(start), shape: region.shape.with_axis(extent) }
}

pub(super) struct Cubes {
    pub(super) cubes: Vec<Cube>,
    pub(super) row_cube: Reader,
    pub(super) row_index: Reader,
    /// Rows that a user has added to the table, but not to this column: undefined.
    pub(super) added: Range<u64>,
    /// Runs of hypercubes on grids, once they are known; `None` if the table has too many.
    pub(super) runs: OnceLock<Option<Runs>>,
}

/// Consecutive rows at consecutive positions of one cube; undefined cells are in no run.
#[derive(Debug)]
pub(super) struct Runs {
    runs: Vec<RowRun>,
    /// Whether the positions of each cube belong to its rows, in their order.
    in_order: bool,
}

/// Rows of `row_cube` and `row_index` read at a time.
const MAP_ROWS: u64 = 1 << 16;
/// More are not kept in memory: rows are then found as they are read.
const MAX_RUNS: usize = 1 << 18;

impl Cubes {
    /// Hypercube and position of a row; `None` if the cell is undefined.
    fn locate(&self, row: u64) -> Result<Option<(&Cube, u64)>> {
        if self.added.contains(&row) {
            return Ok(None);
        }
        let cube = self.row_cube.integers(row..row + 1)?;
        let [cube] = cube.as_slice() else { return Ok(None) };
        if *cube < 0 {
            return Ok(None);
        }
        let index = self.row_index.integers(row..row + 1)?;
        self.at(row, *cube, index.first().copied().unwrap_or(-1)).map(Some)
    }

    fn at(&self, row: u64, cube: i64, index: i64) -> Result<(&Cube, u64)> {
        let found = usize::try_from(cube).ok().and_then(|cube| self.cubes.get(cube));
        let found =
            found.ok_or_else(|| Error::format(format!("row {row} refers to cube{cube}, which does not exist")))?;
        match u64::try_from(index) {
            Ok(index) if index < found.positions() => Ok((found, index)),
            _ => {
                Err(Error::format(format!("row {row} refers to position {index} of cube{cube}, which does not exist")))
            }
        }
    }

    /// Passes rows whose cell is defined, with hypercube and position as they are stored.
    fn each_place(&self, rows: Range<u64>, mut each: impl FnMut(u64, i64, i64) -> Result<()>) -> Result<()> {
        let rows = rows.start..rows.end.min(self.added.start);
        for start in rows.clone().step_by(MAP_ROWS as usize) {
            let block = start..rows.end.min(start + MAP_ROWS);
            let (cubes, positions) = (self.row_cube.integers(block.clone())?, self.row_index.integers(block.clone())?);
            for (row, (cube, position)) in block.zip(cubes.into_iter().zip(positions)) {
                if cube >= 0 {
                    each(row, cube, position)?;
                }
            }
        }
        Ok(())
    }

    /// `only_in_order`: `None` unless the positions of each belong to its rows, in their order.
    fn tiling_of(&self, max_cubes: usize, only_in_order: bool) -> Option<Tiling<'_>> {
        if self.cubes.len() > max_cubes {
            return None;
        }
        let mut cubes: Vec<Box<dyn ChunkRead>> = Vec::new();
        for cube in &self.cubes {
            cubes.push(Box::new(cube.chunks()?.0));
        }
        if self.cubes.iter().all(|cube| cube.grid.is_none()) {
            return Some(Tiling { cubes, runs: self.find_runs(usize::MAX)?.runs });
        }
        let found = self.runs.get_or_init(|| self.find_runs(MAX_RUNS)).as_ref()?;
        (found.in_order || !only_in_order).then(|| Tiling { cubes, runs: found.runs.clone() })
    }

    fn find_runs(&self, most: usize) -> Option<Runs> {
        let mut places = Vec::new();
        for cube in &self.cubes {
            places.push(cube.chunks()?.1);
        }
        let mut runs: Vec<RowRun> = Vec::new();
        let (mut next, mut in_order) = (vec![0; self.cubes.len()], true);
        self.each_place(0..self.row_cube.rows(), |row, cube, position| {
            let (of, position) = self.at(row, cube, position)?;
            let cube = cube as usize;
            let position = places[cube](position);
            in_order &= of.grid.is_none() || position == next[cube];
            next[cube] = position + 1;
            match runs.last_mut() {
                Some(run)
                    if run.cube == cube && run.rows.end == row && run.position + (row - run.rows.start) == position =>
                {
                    run.rows.end += 1;
                }
                _ => runs.push(RowRun { rows: row..row + 1, cube, position }),
            }
            if runs.len() <= most { Ok(()) } else { Err(Error::limit("the rows of the column are in too many runs")) }
        })
        .ok()?;
        in_order &= self.cubes.iter().zip(&next).all(|(cube, next)| cube.grid.is_none() || cube.reader.rows() == *next);
        Some(Runs { runs, in_order })
    }
}

impl ColumnCells for Cubes {
    fn tiling(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        self.tiling_of(max_cubes, true)
    }

    fn tiling_to_read(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        self.tiling_of(max_cubes, false)
    }

    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        Ok(self.locate(row)?.map(|(cube, _)| cube.cell()))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let (cube, index) = self.locate(row)?.ok_or_else(|| undefined(row))?;
        let cell = cube.cell();
        let region = region.cloned().unwrap_or_else(|| Region::whole(&cell));
        region.check(&cell)?;
        cube.read(&region, index..index + 1, out).with_context(|| Context::Row(row))
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let mut read = |(row, of, positions): (u64, i64, Range<u64>)| {
            let (cube, first) = self.at(row, of, positions.start as i64)?;
            self.at(row, of, positions.end as i64 - 1)?;
            let cell = Region::whole(&cube.cell());
            cube.read(&cell, first..positions.end, out).with_context(|| Context::Row(row))
        };
        // the first row of a run, its hypercube, and its positions
        let mut run: Option<(u64, i64, Range<u64>)> = None;
        self.each_place(rows, |row, cube, index| {
            let Ok(position) = u64::try_from(index) else { return self.at(row, cube, index).map(drop) };
            match &mut run {
                Some((_, of, positions)) if *of == cube && positions.end == position => positions.end += 1,
                _ => run.replace((row, cube, position..position + 1)).map_or(Ok(()), &mut read)?,
            }
            Ok(())
        })?;
        run.map_or(Ok(()), read)
    }

    fn shapes(&self, rows: Range<u64>) -> Result<Vec<Option<Shape>>> {
        let mut shapes = vec![None; rows.end.saturating_sub(rows.start) as usize];
        let first = rows.start;
        self.each_place(rows, |row, cube, index| {
            shapes[(row - first) as usize] = Some(self.at(row, cube, index)?.0.cell());
            Ok(())
        })?;
        Ok(shapes)
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let (first, others) = self.cubes.split_first()?;
        let cell = first.cell();
        if others.iter().any(|other| other.cell() != cell) {
            return None;
        }
        let mut defined = 0;
        let count = |_, _, _| {
            defined += 1;
            Ok(())
        };
        self.each_place(rows.clone(), count).ok()?;
        (defined == rows.end.saturating_sub(rows.start)).then_some(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{ChunkCache, read_region};
    use crate::h5::{Compression, DatasetSpec, File};
    use crate::io::FileSource;
    use crate::value::DataType;

    /// Correlations, channels, baselines, times.
    const SHAPE: [u64; 4] = [2, 5, 7, 6];

    /// Elements are numbered; the chunks are these.
    fn cube(path: &std::path::Path, chunk: [u64; 4], is_reversed: bool) -> Cube {
        let file = File::create(path).unwrap();
        let shape = Shape::from(SHAPE);
        let spec = DatasetSpec {
            element: DataType::Int,
            shape: &shape,
            chunk: Some(Shape::from(chunk)),
            appendable: false,
            compression: Compression::NONE,
        };
        let dataset = file.root().unwrap().create_dataset("A", &spec).unwrap();
        let values = Values::Int((0..420).collect());
        dataset.write_region(&Region::whole(&shape), &values).unwrap();
        drop(dataset);
        file.close().unwrap();
        let (file, _) = File::open_with_source(path).unwrap();
        let source = std::sync::Arc::new(FileSource::open(path).unwrap());
        Cube::on_grid(Reader::of_file(file.root().unwrap().dataset("A").unwrap(), source).unwrap(), is_reversed)
            .unwrap()
    }

    fn expected(cell: &Region, positions: Range<u64>, is_reversed: bool) -> Values {
        let mut found = Vec::new();
        for position in positions {
            for channel in cell.start[1]..cell.start[1] + cell.shape[1] {
                let channel = if is_reversed { SHAPE[1] - 1 - channel } else { channel };
                found.extend(
                    (cell.start[0]..cell.start[0] + cell.shape[0])
                        .map(|corr| (corr + SHAPE[0] * (channel + SHAPE[1] * position)) as i32),
                );
            }
        }
        Values::Int(found)
    }

    #[test]
    fn cells_on_a_grid_are_found_in_chunks_of_any_shape() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grid.h5");
        let chunks = [
            ([2, 5, 7, 2], true),
            ([2, 5, 7, 4], true),
            ([1, 2, 7, 4], true),
            ([2, 5, 3, 1], true),
            ([2, 5, 3, 2], false),
        ];
        for (chunk, is_merged) in chunks {
            for is_reversed in [false, true] {
                let cube = cube(&path, chunk, is_reversed);
                assert_eq!(cube.grid.as_ref().unwrap().merged.is_some(), is_merged, "{chunk:?}");
                assert_eq!((cube.cell(), cube.positions()), (Shape::from([2, 5]), 42));
                let regions = [([0, 0], [2, 5]), ([1, 0], [1, 5]), ([0, 1], [2, 3]), ([1, 4], [1, 1])];
                for (start, shape) in regions {
                    let cell = Region { start: Shape::from(start), shape: Shape::from(shape) };
                    for positions in [0..42, 0..7, 3..4, 6..8, 5..30, 14..28, 41..42, 9..9] {
                        let mut found = Values::new(DataType::Int);
                        cube.read(&cell, positions.clone(), &mut found).unwrap();
                        let wanted = expected(&cell, positions.clone(), is_reversed);
                        assert_eq!(found, wanted, "{chunk:?} {is_reversed} {cell:?} {positions:?}");
                    }
                }
                let Some((chunks, place)) = cube.chunks() else {
                    assert!(!is_merged || is_reversed);
                    continue;
                };
                let whole = Region::whole(&cube.cell());
                for position in 0..42 {
                    let mut found = Values::new(DataType::Int);
                    let region = along(&whole, place(position), 1);
                    read_region(chunks, &ChunkCache::new(0), 0, &region, &mut found).unwrap();
                    assert_eq!(found, expected(&whole, position..position + 1, false), "{chunk:?} {position}");
                }
            }
        }
    }
}
