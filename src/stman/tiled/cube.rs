//! One data column of one hypercube: where its tiles are. formats/stman.md 6.4.

use std::sync::Arc;

use super::header::CubeEntry;
use crate::error::{Error, Place, Result};
use crate::grid::{ChunkRead, Grid};
use crate::io::{ByteOrder, ReadAt, bits};
use crate::value::{DataType, Shape, Values};

/// The tiles of one column of a hypercube.
///
/// ```text
/// offset                      + stride
/// | column A | column B | ... | column A | column B | ...      axis 0 fastest
///   bytes      bytes            tile 1
/// ```
/// A tile holds the pixels of each column in turn, Bools packed, without padding; tiles at the edges are whole.
#[derive(Debug)]
pub(super) struct CubeColumn {
    grid: Grid,
    data_type: DataType,
    order: ByteOrder,
    /// `None` if the cube has no tiles.
    file: Option<Arc<dyn ReadAt>>,
    /// Bytes, of this column's part of tile 0.
    offset: u64,
    /// Bytes from a tile to the next.
    stride: u64,
    /// Bytes of this column's part of a tile.
    bytes: u64,
}

/// Bytes that `pixels` take in a tile.
fn column_bytes(data_type: DataType, pixels: u64) -> Option<u64> {
    match data_type {
        DataType::Bool => Some(bits::packed_len(pixels)),
        _ => pixels.checked_mul(data_type.size() as u64),
    }
}

/// The bytes of a whole tile of `cube`, and those before each column in it; checked against the file.
pub(super) fn layout(cube: &CubeEntry, columns: &[DataType], file_len: u64) -> Result<(u64, Vec<u64>)> {
    let impossible = || {
        Error::format(format!(
            "hypercube of shape {} in tiles {} at byte {} needs more than the {file_len} bytes of its file",
            cube.shape, cube.tile, cube.offset
        ))
    };
    let pixels = cube.tile.elements()?;
    let mut starts = Vec::with_capacity(columns.len());
    let mut tile_bytes = 0u64;
    for &data_type in columns {
        starts.push(tile_bytes);
        let bytes = column_bytes(data_type, pixels).ok_or_else(impossible)?;
        tile_bytes = tile_bytes.checked_add(bytes).ok_or_else(impossible)?;
    }
    let tiles = Grid { shape: cube.shape.clone(), chunk: cube.tile.clone() }.counts().elements()?;
    let end = tiles.checked_mul(tile_bytes).and_then(|bytes| bytes.checked_add(cube.offset));
    if tiles > 0 && end.is_none_or(|end| end > file_len) {
        return Err(impossible());
    }
    Ok((tile_bytes, starts))
}

impl CubeColumn {
    /// The part of `cube` that belongs to the column of `data_type` at `start` of each tile of `stride` bytes.
    ///
    /// `row_axis`: add a last axis of one position, for cubes that are a single cell.
    pub(super) fn new(
        cube: &CubeEntry,
        file: Option<Arc<dyn ReadAt>>,
        data_type: DataType,
        order: ByteOrder,
        (start, stride): (u64, u64),
        row_axis: bool,
    ) -> Self {
        let with_row = |shape: &Shape| if row_axis { shape.with_axis(1) } else { shape.clone() };
        let grid = Grid { shape: with_row(&cube.shape), chunk: with_row(&cube.tile) };
        // layout() has seen that the product fits
        let bytes = cube.tile.elements().ok().and_then(|pixels| column_bytes(data_type, pixels)).unwrap_or(0);
        CubeColumn { grid, data_type, order, file, offset: cube.offset + start, stride, bytes }
    }

    /// Where the first tile's part of the column is, the bytes from a tile to the next, and the number of tiles.
    pub(super) fn tiles(&self) -> Result<(u64, u64, u64)> {
        Ok((self.offset, self.stride, self.grid.counts().elements()?))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        match &self.file {
            Some(file) => file.read_at(offset, out).at("tile"),
            None => Err(Error::format("hypercube without a file")),
        }
    }
}

impl ChunkRead for CubeColumn {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn data_type(&self) -> DataType {
        self.data_type
    }

    fn read_chunk(&self, index: &[u64], out: &mut Values) -> Result<()> {
        let mut bytes = vec![0; self.bytes as usize];
        self.read(self.offset + self.grid.number(index) * self.stride, &mut bytes)?;
        if self.data_type == DataType::Bool {
            out.extend_from_bits(&bytes, 0, self.grid.chunk.elements()? as usize);
        } else {
            out.extend_from_bytes(&bytes, self.order);
        }
        Ok(())
    }

    fn raw_order(&self) -> Option<ByteOrder> {
        (self.data_type != DataType::Bool).then_some(self.order)
    }

    fn read_raw(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let start = self.offset + first * self.stride;
        if self.bytes == self.stride {
            return self.read(start, out);
        }
        for (tile, out) in out.chunks_exact_mut(self.bytes as usize).enumerate() {
            self.read(start + tile as u64 * self.stride, out)?;
        }
        Ok(())
    }
}
