//! Chooses the storage form of a column in HDF5: which datasets, in which chunks.
//! docs/reference/layout.md.

use std::fmt;
use std::ops::Range;
use std::time::Instant;

use super::profile::{CHUNK_BYTES, Profile};
use crate::error::{Error, Result};
use crate::grid::{ChunkRead, Grid};
use crate::h5::{self, Allocation};
use crate::native::{MAX_CUBES, stored_size};
use crate::table::{ColumnCells, ColumnInfo, Tiling};
use crate::value::{DataType, Shape};

/// Larger cells get chunks smaller than themselves.
const LARGE_CELL_BYTES: u64 = 4 << 20;
/// A larger tile, decoded, does not become a chunk.
const LARGE_TILE_BYTES: u64 = 16 << 20;
/// Smaller tiles that cover parts of cells do not become chunks, if more than [`MANY_TILES`].
const SMALL_TILE_BYTES: u64 = 16 << 10;
/// As [`SMALL_TILE_BYTES`], for chunks that share bytes: HDF5 keeps no index entries for these.
const SMALL_SHARED_TILE_BYTES: u64 = 4 << 10;
const MANY_TILES: u64 = 4096;
/// Rows assumed for an appendable dataset when its chunks are chosen.
const APPENDABLE_ROWS: u64 = 1024;
/// Rows whose cell shapes are in memory at a time: few enough for the processor's cache.
const SURVEYED_ROWS: usize = 1024;

/// The storage form of a column in the HDF5 file. Shapes list the fastest axis first, as casacore
/// does, and rows last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnForm {
    /// The column is one dataset with the cells of all rows, because all defined cells have the
    /// same shape (dense form). The rows are the slowest axis.
    Dense {
        /// Shape of the dataset that has the cells of all rows, fastest axis first, rows last.
        shape: Shape,
        /// Shape of the chunks of the dataset that has the cells of all rows, fastest axis first,
        /// rows last.
        chunk: Shape,
        /// Number of undefined cells (never written) of the column, whose defined cells all have
        /// the same shape.
        undefined: u64,
        /// How a conversion reads and writes the cells of the column, whose defined cells all have
        /// the same shape.
        route: ReadStrategy,
    },
    /// The column is a group with a dataset for each hypercube.
    Cubes {
        /// Shape and chunk shape of each hypercube's dataset, fastest axis first.
        cubes: Vec<(Shape, Shape)>,
    },
    /// The cells are on grids of times and baselines, which are variables of MSv4.
    Grids {
        /// Shape and chunk shape of the variable of each partition, fastest axis first; the two
        /// slowest axes are baselines and times.
        cubes: Vec<(Shape, Shape)>,
    },
    /// The column is a group with cells of differing shapes, one after the other.
    Ragged {
        /// Largest number of axes of a cell of the ragged column.
        axes: usize,
        /// Number of elements in all cells of the ragged column.
        elements: u64,
    },
}

/// How a conversion reads and writes the cells of a dense column: one whose defined cells all have
/// the same shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStrategy {
    /// Reads a column whose cells all have the same shape tile by tile: a chunk of the dataset is
    /// made of one tile, or of several that follow each other.
    Tiles,
    /// Reads one block of whole rows after the other; all defined cells of the column have the same
    /// shape.
    Rows,
    /// Reads each cell of a column in parts, because a cell has more than 4 MiB; all defined cells
    /// have the same shape.
    Parts,
}

/// The form in words. Shapes are slowest axis first, as in HDF5.
impl fmt::Display for ColumnForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnForm::Dense { shape, chunk, undefined, route } => {
                let from = if *route == ReadStrategy::Tiles { ", tile by tile" } else { "" };
                let undefined = if *undefined > 0 { format!(", {undefined} undefined") } else { String::new() };
                write!(f, "{:?} in chunks {:?}{from}{undefined}", shape.reversed(), chunk.reversed())
            }
            ColumnForm::Cubes { cubes } => {
                let shapes: Vec<_> = cubes.iter().map(|(shape, _)| format!("{:?}", shape.reversed())).collect();
                write!(f, "hypercubes {}, tile by tile", shapes.join(" "))
            }
            ColumnForm::Grids { cubes } => {
                let shapes: Vec<_> = cubes.iter().map(|(shape, _)| format!("{:?}", shape.reversed())).collect();
                write!(f, "times and baselines {}", shapes.join(" "))
            }
            ColumnForm::Ragged { axes, elements } => {
                write!(f, "cells of differing shapes, up to {axes} axes, {elements} elements")
            }
        }
    }
}

impl ColumnForm {
    /// Digested bytes of each cell beside its elements: whether it is defined, and its shape.
    pub(super) fn digested_header(&self) -> u64 {
        let axes = match self {
            ColumnForm::Dense { shape, .. } => shape.len() - 1,
            ColumnForm::Cubes { cubes } => cubes.first().map_or(0, |(shape, _)| shape.len() - 1),
            ColumnForm::Grids { cubes } => cubes.first().map_or(0, |(shape, _)| shape.len() - 2),
            ColumnForm::Ragged { axes, .. } => *axes,
        };
        9 + 8 * axes as u64
    }

    /// Bytes per row for the place and shape of its cell and whether it is defined.
    pub(super) fn locating_bytes(&self) -> u64 {
        match self {
            ColumnForm::Dense { undefined: 0, .. } => 0,
            ColumnForm::Dense { .. } => 1,
            ColumnForm::Cubes { .. } | ColumnForm::Grids { .. } => 12,
            ColumnForm::Ragged { axes, .. } => 9 + 4 * *axes as u64,
        }
    }

    /// The largest chunk, uncompressed.
    pub(super) fn chunk_bytes(&self, data_type: DataType) -> u64 {
        let bytes = |chunk: &Shape| chunk.iter().product::<u64>() * stored_size(data_type);
        match self {
            ColumnForm::Dense { chunk, .. } => bytes(chunk),
            ColumnForm::Cubes { cubes } | ColumnForm::Grids { cubes } => {
                cubes.iter().map(|(_, chunk)| bytes(chunk)).max().unwrap_or(0)
            }
            ColumnForm::Ragged { .. } => CHUNK_BYTES,
        }
    }

    /// Whether each chunk has the elements of one tile of the source, or of consecutive tiles.
    pub(super) fn is_of_tiles(&self) -> bool {
        matches!(self, ColumnForm::Dense { route: ReadStrategy::Tiles, .. } | ColumnForm::Cubes { .. })
    }

    /// How cells of a dense column are read. For other forms always [`ReadStrategy::Rows`].
    pub(super) fn route(&self) -> ReadStrategy {
        if let ColumnForm::Dense { route, .. } = self { *route } else { ReadStrategy::Rows }
    }

    /// The common shape, fastest axis first, if all cells are defined.
    pub(super) fn shape_of_all(&self) -> Option<Shape> {
        match self {
            ColumnForm::Dense { shape, undefined: 0, .. } => Some(shape.split_last()?.0),
            _ => None,
        }
    }

    /// Named as in `H5Dget_chunk_index_type`.
    pub(super) fn chunk_index(&self, growth: Growth, allocation: Allocation) -> &'static str {
        let of = |shape: &Shape, chunk: &Shape| {
            // axes without extent may grow, too
            let rows_grow = growth == Growth::Rows && shape.last() != Some(&0);
            match shape.iter().filter(|&&extent| extent == 0).count() + usize::from(rows_grow) {
                0 if shape == chunk => "single",
                0 if allocation == Allocation::Block => "implicit",
                0 => "fixed_array",
                1 => "extensible_array",
                _ => "btree_v2",
            }
        };
        match self {
            ColumnForm::Dense { shape, chunk, .. } => of(shape, chunk),
            ColumnForm::Cubes { cubes } | ColumnForm::Grids { cubes } => {
                cubes.first().map_or("none", |(shape, chunk)| of(shape, chunk))
            }
            ColumnForm::Ragged { elements: 0, .. } => "extensible_array",
            ColumnForm::Ragged { elements, .. } if elements * 16 <= CHUNK_BYTES => "single",
            ColumnForm::Ragged { .. } => "fixed_array",
        }
    }

    /// Refuses more axes than HDF5 supports, even without elements.
    pub(super) fn check_axes(&self) -> Result<()> {
        let axes = match self {
            ColumnForm::Dense { shape, .. } => shape.len(),
            ColumnForm::Cubes { cubes } | ColumnForm::Grids { cubes } => {
                cubes.iter().map(|(shape, _)| shape.len()).max().unwrap_or_default()
            }
            ColumnForm::Ragged { axes, .. } => axes + 1,
        };
        if axes > h5::MAX_AXES {
            let message = format!("cells of {} axes; in HDF5 they have at most {}", axes - 1, h5::MAX_AXES - 1);
            return Err(Error::unsupported(message));
        }
        Ok(())
    }

    /// Refuses cells unlike their column's shape, which casacore reads, but never writes.
    pub(super) fn check_cells(&self, of_column: Option<&Shape>) -> Result<()> {
        let (ColumnForm::Dense { shape, .. }, Some(of_column)) = (self, of_column) else { return Ok(()) };
        match shape.split_last() {
            Some((cell, _)) if cell != *of_column => {
                Err(Error::format(format!("its cells have shape {cell}, which is {of_column} in its description")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn elements(&self) -> Result<u64> {
        match self {
            ColumnForm::Dense { shape, .. } => shape.elements(),
            ColumnForm::Cubes { cubes } | ColumnForm::Grids { cubes } => {
                cubes.iter().try_fold(0u64, |sum, (shape, _)| Ok(sum.saturating_add(shape.elements()?)))
            }
            ColumnForm::Ragged { elements, .. } => Ok(*elements),
        }
    }

    /// Elements in chunks, padding included, by elements of the column.
    pub(super) fn padding(&self) -> f64 {
        let of_chunks = |shape: &Shape, chunk: &Shape| {
            let along = shape
                .iter()
                .zip(chunk.iter())
                .map(|(&extent, &of_chunk)| extent.next_multiple_of(of_chunk.max(1)).max(of_chunk) as f64);
            along.product::<f64>()
        };
        let padded = match self {
            ColumnForm::Dense { shape, chunk, .. } => of_chunks(shape, chunk),
            ColumnForm::Cubes { cubes } | ColumnForm::Grids { cubes } => {
                cubes.iter().map(|(shape, chunk)| of_chunks(shape, chunk)).sum()
            }
            ColumnForm::Ragged { .. } => return 1.0,
        };
        let elements = self.elements().unwrap_or(0) as f64;
        if elements > 0.0 { padded / elements } else { 1.0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    None,
    Rows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selection {
    AllRows,
    SomeRows,
}

/// Sizes of tiles that become chunks. Chunks of other columns do not depend on tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TileUse {
    /// Tiles up to 16 MiB; those of parts of cells need [`SMALL_TILE_BYTES`] if more than
    /// [`MANY_TILES`], and for object stores 1 MiB unless the whole hypercube has less.
    Chunks,
    /// Chunks that can share bytes: as `Chunks`, with [`SMALL_SHARED_TILE_BYTES`].
    Shared,
}

pub(super) struct Survey<'a> {
    pub(super) info: &'a ColumnInfo,
    pub(super) cells: &'a dyn ColumnCells,
    pub(super) rows: &'a Range<u64>,
    pub(super) selection: Selection,
    pub(super) growth: Growth,
    pub(super) tiles: TileUse,
    pub(super) profile: Profile,
}

impl Survey<'_> {
    /// Also the seconds spent on reading the shapes of all cells; 0 if that was not necessary.
    pub(super) fn form(&self) -> Result<(ColumnForm, f64)> {
        if let Some(form) = self.form_at_once()? {
            return Ok((form, 0.0));
        }
        let started = Instant::now();
        Ok((self.cell_by_cell()?, started.elapsed().as_secs_f64()))
    }

    /// `None` if the form depends on the shape of each cell.
    fn form_at_once(&self) -> Result<Option<ColumnForm>> {
        if self.info.data_type() == DataType::Record {
            return self.dense(Shape::scalar(), 0).map(Some);
        }
        if self.selection == Selection::AllRows
            && let Some(tiling) = self.cells.tiling(MAX_CUBES)
            && let Some(form) = self.tiled(&tiling)?
        {
            return Ok(Some(form));
        }
        if self.rows.is_empty() {
            let ragged = || Ok(ColumnForm::Ragged { axes: self.info.desc.ndim.max(1) as usize, elements: 0 });
            return self.info.shape.clone().map_or_else(ragged, |shape| self.dense(shape, 0)).map(Some);
        }
        let known = self.info.shape.clone().filter(|_| self.info.is_always_defined());
        known.or_else(|| self.cells.same_shape(self.rows)).map(|shape| self.dense(shape, 0)).transpose()
    }

    fn cell_by_cell(&self) -> Result<ColumnForm> {
        let (mut common, mut differ) = (None::<Shape>, false);
        let (mut undefined, mut elements, mut axes) = (0, 0u64, 1);
        for start in self.rows.clone().step_by(SURVEYED_ROWS) {
            let rows = start..self.rows.end.min(start + SURVEYED_ROWS as u64);
            for (row, shape) in rows.clone().zip(self.cells.shapes(rows)?) {
                let Some(shape) = shape else {
                    undefined += 1;
                    continue;
                };
                elements = elements
                    .checked_add(shape.elements()?)
                    .ok_or_else(|| Error::format(format!("the cells up to row {row} have more than 2^64 elements")))?;
                axes = axes.max(shape.len());
                match &common {
                    Some(common) => differ |= *common != shape,
                    None => common = Some(shape),
                }
            }
        }
        let mostly_defined = undefined * 2 <= self.rows.end - self.rows.start;
        match (common, &self.info.shape) {
            (Some(shape), fixed) if !differ && (mostly_defined || fixed.is_some()) => self.dense(shape, undefined),
            (None, Some(fixed)) => self.dense(fixed.clone(), undefined),
            _ => Ok(ColumnForm::Ragged { axes, elements }),
        }
    }

    fn dense(&self, cell: Shape, undefined: u64) -> Result<ColumnForm> {
        let rows = self.rows.end - self.rows.start;
        let size = stored_size(self.info.data_type());
        let cell_bytes = cell.elements()?.saturating_mul(size);
        let shape = cell.with_axis(rows);
        // more bytes than a file can have come from a damaged shape
        shape.elements()?;
        if cell_bytes > LARGE_CELL_BYTES && self.info.data_type().is_fixed_size() {
            let chunk = part_of_cell(&cell, size, self.profile.chunk_bytes()).with_axis(1);
            return Ok(ColumnForm::Dense { shape, chunk, undefined, route: ReadStrategy::Parts });
        }
        let chunk = cell.with_axis(self.chunk_rows(cell_bytes, rows));
        Ok(ColumnForm::Dense { shape, chunk, undefined, route: ReadStrategy::Rows })
    }

    fn chunk_rows(&self, row_bytes: u64, rows: u64) -> u64 {
        chunk_rows_of(self.profile.chunk_bytes(), row_bytes, rows, self.growth)
    }

    /// One dataset for one hypercube with all rows in order, a group for several; else `None`.
    fn tiled(&self, tiling: &Tiling<'_>) -> Result<Option<ColumnForm>> {
        let rows = self.rows.end;
        match tiling.cubes.as_slice() {
            [] => Ok(None),
            [cube] => {
                let grid = cube.grid();
                let in_order =
                    tiling.runs.len() == 1 && tiling.runs[0].rows == (0..rows) && tiling.runs[0].position == 0;
                if !in_order || grid.shape.last() != Some(&rows) {
                    return Ok(None);
                }
                let Some(chunk) = self.joined_tiles(&**cube)? else { return Ok(None) };
                Ok(Some(ColumnForm::Dense {
                    shape: grid.shape.clone(),
                    chunk,
                    undefined: 0,
                    route: ReadStrategy::Tiles,
                }))
            }
            cubes => {
                let mut planned = Vec::new();
                for cube in cubes {
                    let Some(chunk) = self.joined_tiles(&**cube)? else { return Ok(None) };
                    planned.push((cube.grid().shape.clone(), chunk));
                }
                Ok(Some(ColumnForm::Cubes { cubes: planned }))
            }
        }
    }

    /// One tile, or several that cover whole cells; `None` if tiles do not become chunks.
    fn joined_tiles(&self, cube: &dyn ChunkRead) -> Result<Option<Shape>> {
        let grid = cube.grid();
        let Some((cell, tile_rows)) = grid.chunk.split_last() else { return Ok(None) };
        if grid.shape.contains(&0) || grid.chunk.contains(&0) {
            return Ok(None);
        }
        // HDF5 has no chunks that are larger than an axis that does not grow
        if cell.iter().zip(grid.shape.iter()).any(|(tile, extent)| tile > extent) {
            return Ok(None);
        }
        let bytes = grid.chunk.elements()?.saturating_mul(stored_size(cube.data_type()));
        let small = match self.tiles {
            TileUse::Chunks => SMALL_TILE_BYTES,
            TileUse::Shared => SMALL_SHARED_TILE_BYTES,
        };
        if bytes > LARGE_TILE_BYTES || (bytes < small && !grid.covers_cells() && grid.counts().elements()? > MANY_TILES)
        {
            return Ok(None);
        }
        let least = self.profile.least_tile_bytes();
        if !grid.covers_cells() && bytes < least && grid.counts().elements()?.saturating_mul(bytes) > least {
            return Ok(None);
        }
        let tiles = if grid.covers_cells() { (self.profile.chunk_bytes() / bytes.max(1)).max(1) } else { 1 };
        let rows = tile_rows.saturating_mul(tiles);
        let most = grid.shape.last().copied().unwrap_or_default();
        Ok(Some(cell.with_axis(rows.min(if self.growth == Growth::Rows { most.max(tile_rows) } else { most }))))
    }
}

pub(crate) fn chunk_rows(row_bytes: u64, rows: u64, growth: Growth) -> u64 {
    chunk_rows_of(CHUNK_BYTES, row_bytes, rows, growth)
}

fn chunk_rows_of(bytes: u64, row_bytes: u64, rows: u64, growth: Growth) -> u64 {
    let most = if growth == Growth::Rows { rows.max(APPENDABLE_ROWS) } else { rows };
    let fitting = (bytes / row_bytes.max(1)).clamp(1, most.max(1));
    if growth == Growth::Rows {
        return fitting;
    }
    // equal chunks, so that the last is not mostly padding
    rows.max(1).div_ceil(rows.max(1).div_ceil(fitting))
}

/// Whole axes, fastest first, as many as fit into `bytes`, and a range of the next.
pub(super) fn part_of_cell(cell: &Shape, size: u64, bytes: u64) -> Shape {
    let mut left = (bytes / size.max(1)).max(1);
    cell.iter()
        .map(|&extent| {
            let taken = left.clamp(1, extent.max(1));
            left /= taken;
            taken
        })
        .collect()
}

pub(crate) fn grid(shape: &Shape, chunk: &Shape) -> Grid {
    Grid { shape: shape.clone(), chunk: chunk.clone() }
}
