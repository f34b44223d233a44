//! Reads and writes the tiles of one data column in one hypercube of a tiled manager.
//! formats/stman.md 6.4.

use std::ops::Range;
use std::sync::Arc;

use super::header::CubeEntry;
use crate::error::{Error, Result, ResultExt};
use crate::grid::{ChunkRead, ChunkStorage, ChunkWrite, Grid, Part, for_each_chunk, for_each_run};
use crate::io::{ByteOrder, PagedMut, Raw, RawCopy, ReadAt, WriteAt};
use crate::stman::elements::ElementsMut;
use crate::value::{DataType, Region, Shape, Values, bits, swap_bytes, swap_width};

/// Packed Bools read at a time.
const BITS_BYTES: usize = 16 << 10;

/// ```text
/// offset                      + stride
/// | column A | column B | ... | column A | column B | ...      axis 0 fastest
///   bytes      bytes            tile 1
/// ```
/// A tile holds the pixels of each column in turn, Bools packed, without padding; tiles at the
/// edges are whole.
#[derive(Debug)]
pub(super) struct CubeColumn<F: ?Sized = dyn ReadAt> {
    grid: Grid,
    data_type: DataType,
    order: ByteOrder,
    /// `None` while the hypercube has no tiles.
    file: Option<Arc<F>>,
    /// Byte of this column's part in the first tile.
    offset: u64,
    stride: u64,
    bytes: u64,
}

/// Bytes of a tile's `pixels`, Bools as bits; `None` if the number overflows.
fn column_bytes(data_type: DataType, pixels: u64) -> Option<u64> {
    match data_type {
        DataType::Bool => Some(bits::packed_len(pixels)),
        _ => pixels.checked_mul(data_type.size() as u64),
    }
}

/// Bytes of a tile, and offset of each column's part in it; fails if a tile lies beyond `file_len`.
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

impl<F: ReadAt + ?Sized> CubeColumn<F> {
    /// The part begins at byte `start` of each tile of `stride` bytes. `row_axis` adds a last axis
    /// of one position, for a cube that is a single cell.
    pub(super) fn new(
        cube: &CubeEntry,
        file: Option<Arc<F>>,
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

    /// Offset of the first part, distance to the next (both in bytes), and number of tiles.
    pub(super) fn tiles(&self) -> Result<(u64, u64, u64)> {
        Ok((self.offset, self.stride, self.grid.counts().elements()?))
    }

    pub(super) fn place(&self) -> (u64, u64, u64) {
        (self.offset, self.stride, self.bytes)
    }

    fn file(&self) -> Result<&F> {
        self.file.as_deref().ok_or_else(|| Error::format("the hypercube has no file"))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file()?.read_at(offset, out).context("tile")
    }

    fn tile_offset(&self, number: u64) -> u64 {
        self.offset + number * self.stride
    }

    fn raw_order(&self) -> Option<ByteOrder> {
        (self.data_type != DataType::Bool).then_some(self.order)
    }

    pub(super) fn write_region(&self, file: &PagedMut, region: &Region, values: &Values, first: usize) -> Result<()> {
        let chunk = &self.grid.chunk;
        let pixels = chunk.elements()? as usize;
        let mut tile = Values::new(self.data_type);
        for_each_chunk(&self.grid, region, |index, Part { in_chunk, in_region, extent }| {
            let offset = self.tile_offset(self.grid.number(index));
            let mut runs = Vec::new();
            for_each_run(&region.shape, in_region, chunk, in_chunk, extent, |from, to, run| runs.push((from, to, run)));
            let all_inside = (0..chunk.len())
                .all(|axis| extent[axis] == chunk[axis].min(self.grid.shape[axis] - index[axis] * chunk[axis]));
            if runs.len() > 1 && all_inside {
                // nothing in the tile is kept; what is outside of the cube becomes 0
                tile.clear();
                for &(from, to, run) in &runs {
                    tile.extend_default(to - tile.len());
                    tile.extend_from(values, first + from..first + from + run)?;
                }
                tile.extend_default(pixels - tile.len());
                return ElementsMut { file, order: self.order, offset, first: 0 }.write(&tile, 0..pixels);
            }
            runs.iter().try_for_each(|&(from, to, run)| {
                let elements = ElementsMut { file, order: self.order, offset, first: to as u64 };
                elements.write(values, first + from..first + from + run)
            })
        })
        .context("tile")
    }
}

impl<F: ReadAt + ?Sized> ChunkRead for CubeColumn<F> {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn data_type(&self) -> DataType {
        self.data_type
    }

    fn read_chunk(&self, index: &[u64], out: &mut Values) -> Result<()> {
        let offset = self.tile_offset(self.grid.number(index));
        let mut left = self.grid.chunk.elements()? as usize;
        if self.data_type != DataType::Bool {
            return out.extend_by_reading(left, self.order, |bytes| self.read(offset, bytes));
        }
        let mut piece = [0; BITS_BYTES];
        for start in (0..self.bytes).step_by(BITS_BYTES) {
            let len = (self.bytes - start).min(BITS_BYTES as u64) as usize;
            self.read(offset + start, &mut piece[..len])?;
            let count = left.min(8 * len);
            out.extend_from_bits(&piece[..len], 0, count);
            left -= count;
        }
        Ok(())
    }

    fn raw_order(&self) -> Option<ByteOrder> {
        CubeColumn::raw_order(self)
    }

    fn storage(&self) -> ChunkStorage<'_> {
        match &self.file {
            _ if self.data_type == DataType::Bool => ChunkStorage::Bits,
            Some(file) if self.bytes == self.stride => {
                ChunkStorage::Block { file, offset: self.offset, order: self.order }
            }
            Some(_) => ChunkStorage::Scattered,
            None => ChunkStorage::Encoded,
        }
    }

    fn read_raw(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let start = self.tile_offset(first);
        if self.bytes == self.stride {
            return self.read(start, out);
        }
        for (tile, out) in out.chunks_exact_mut(self.bytes as usize).enumerate() {
            self.read(start + tile as u64 * self.stride, out)?;
        }
        Ok(())
    }

    fn read_elements(&self, number: u64, first: u64, out: &mut Values, to: Range<usize>) -> Result<bool> {
        let tile = self.tile_offset(number);
        if let Values::Bool(out) = out {
            let bytes = first / 8..(first + to.len() as u64).div_ceil(8);
            let mut bits = vec![0; (bytes.end - bytes.start) as usize];
            self.read(tile + bytes.start, &mut bits)?;
            let mut bools = Vec::with_capacity(to.len());
            bits::unpack(&bits, (first % 8) as usize, to.len(), &mut bools);
            out[to].copy_from_slice(&bools);
            return Ok(true);
        }
        let Some(bytes) = out.bytes_mut(to) else { return Ok(false) };
        self.read(tile + first * self.data_type.size() as u64, bytes)?;
        if self.order != ByteOrder::NATIVE {
            swap_bytes(bytes, swap_width(self.data_type));
        }
        Ok(true)
    }
}

impl<F: WriteAt + ?Sized> ChunkWrite for CubeColumn<F> {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn data_type(&self) -> DataType {
        self.data_type
    }

    fn raw_order(&self) -> Option<ByteOrder> {
        CubeColumn::raw_order(self)
    }

    fn write_chunk(&self, index: &[u64], values: &Values) -> Result<()> {
        let pixels = self.grid.chunk.elements()?;
        if values.data_type() != self.data_type || values.len() as u64 != pixels {
            let (found, expected) = (values.data_type(), self.data_type);
            return Err(Error::usage(format!(
                "{} elements of type {found} do not fill a tile, which has {pixels} of {expected}",
                values.len()
            )));
        }
        let mut bytes = Vec::with_capacity(self.bytes as usize);
        match values {
            Values::Bool(bools) => bits::pack(bools, &mut bytes),
            _ => values.extend_bytes(self.order, &mut bytes),
        }
        self.write_raw(self.grid.number(index), &bytes)
    }

    fn copy_raw(&self, at: u64, bytes: Raw<'_>, by: &dyn RawCopy) -> u64 {
        match &self.file {
            Some(file) if self.data_type != DataType::Bool && self.bytes == self.stride => {
                file.copy_raw(self.offset + at, bytes, by)
            }
            _ => 0,
        }
    }

    fn write_raw(&self, first: u64, bytes: &[u8]) -> Result<()> {
        let tiles = self.grid.counts().elements()?;
        let count = bytes.len() as u64 / self.bytes.max(1);
        if count * self.bytes != bytes.len() as u64 || first.checked_add(count).is_none_or(|end| end > tiles) {
            let len = bytes.len();
            return Err(Error::usage(format!(
                "{len} bytes from tile {first} on do not fit: there are {tiles} tiles of {} bytes",
                self.bytes
            )));
        }
        let file = self.file()?;
        if self.bytes == self.stride {
            return file.write_at(self.tile_offset(first), bytes).context("tile");
        }
        for (tile, bytes) in bytes.chunks_exact(self.bytes as usize).enumerate() {
            file.write_at(self.tile_offset(first + tile as u64), bytes).context("tile")?;
        }
        Ok(())
    }
}
