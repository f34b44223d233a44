//! Reads the files of SiscoStMan. formats/engines.md 3.5.1.

use std::sync::Arc;

use zlib_rs::{InflateConfig, ReturnCode};

use super::value::Value;
use crate::error::{Error, Result};
use crate::io::{ByteOrder, ReadAt, read_array, read_bytes};

const MAGIC: &[u8; 8] = b"Sisco\0\0\0";
const HEADER_BYTES: u64 = 21;
const CHUNK_HEADER_BYTES: u64 = 16;
const PIECE_HEADER_BYTES: u64 = 8;

/// Largest ratio of DEFLATE; a chunk that declares more is refused before memory is allocated.
const MAX_INFLATED: u64 = 1032;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    All,
    /// The first and the last of four; the others are read as zeros.
    Diagonal,
    /// Stokes I, read as the first and the last of four; the others are read as zeros.
    StokesI,
}

/// The main file, `table.f<n>`.
///
/// | offset | type | field |
/// |--------|---------|--------------------------------------------------------------------------|
/// | 0 | 8 bytes | `Sisco` |
/// | 8 | u16 | major version, 2; the highest two bits: all, diagonal, Stokes I |
/// | 10 | u16 | minor version |
/// | 12 | 8 bytes | 0 |
/// | 20 | i8 | level of prediction |
/// | 21 | | chunks: u64 bytes, u64 deflated bytes, raw DEFLATE |
#[derive(Debug)]
pub(super) struct SiscoFile {
    file: Arc<dyn ReadAt>,
    pub(super) mode: Mode,
    /// Selects the predictors; -1 for no prediction.
    pub(super) level: i8,
    chunks: Vec<Chunk>,
    /// Real and imaginary parts in all chunks.
    pub(super) values: u64,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    offset: u64,
    len_bytes: u64,
    values: u64,
}

impl SiscoFile {
    pub(super) fn open(file: Arc<dyn ReadAt>) -> Result<Self> {
        let header: [u8; HEADER_BYTES as usize] = read_array(&file, 0)?;
        if header[..8] != *MAGIC {
            let found = bstr::BStr::new(&header[..8]);
            return Err(Error::format(format!("the file begins with {found:?}, not with `Sisco`")));
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version & 0x3fff != 2 {
            return Err(Error::unsupported(format!("version {} of the file, known is 2", version & 0x3fff)));
        }
        let mode = match version >> 14 {
            0 => Mode::All,
            1 => Mode::Diagonal,
            2 => Mode::StokesI,
            other => return Err(Error::unsupported(format!("store mode {other}, known are 0 to 2"))),
        };
        let mut file = SiscoFile { file, mode, level: header[20] as i8, chunks: Vec::new(), values: 0 };
        file.find_chunks()?;
        Ok(file)
    }

    fn value_bytes(&self) -> u64 {
        if self.level == -1 { 4 } else { 5 }
    }

    fn find_chunks(&mut self) -> Result<()> {
        let len = self.file.len()?;
        let mut offset = HEADER_BYTES;
        while offset < len {
            let header: [u8; CHUNK_HEADER_BYTES as usize] = read_array(&self.file, offset)?;
            let [inflated, deflated] = [0, 1].map(|index| ByteOrder::Little.u64(header.as_chunks().0[index]));
            let start = offset + CHUNK_HEADER_BYTES;
            let fits = deflated <= len - start && inflated <= deflated.saturating_mul(MAX_INFLATED);
            if !fits || !inflated.is_multiple_of(self.value_bytes()) {
                return Err(Error::format(format!(
                    "chunk at byte {offset}: {deflated} bytes, of which {inflated} are inflated; the file has {len}"
                )));
            }
            let values = inflated / self.value_bytes();
            self.chunks.push(Chunk { offset: start, len_bytes: deflated, values });
            self.values += values;
            offset = start + deflated;
        }
        Ok(())
    }

    pub(super) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// Reads a chunk, with prediction as differences from predictions. An inflated chunk has
    /// planes, each with one byte of every value: one for each mantissa byte, lowest first, then
    /// exponents. Without prediction, the third plane also has the sign, in its highest bit.
    pub(super) fn read_chunk(&self, index: usize) -> Result<Vec<Value>> {
        let chunk = self.chunks[index];
        let deflated = read_bytes(&self.file, chunk.offset, chunk.len_bytes)?;
        let bytes = inflate(&deflated, chunk.values * self.value_bytes())?;
        let count = chunk.values as usize;
        let plane = |index: usize| &bytes[index * count..(index + 1) * count];
        let predicted = self.level != -1;
        let (third, exponents) = (plane(2), plane(if predicted { 4 } else { 3 }));
        let fourth = if predicted { plane(3) } else { third };
        // without prediction: what the third plane has no bit for, and the bit of the fourth byte
        // that it has
        let (set, mask) = if predicted { (0, 0xff) } else { (0x80, 0x80) };
        let words = plane(0).iter().zip(plane(1)).zip(third).zip(fourth);
        let values = words.zip(exponents).map(|((((first, second), third), fourth), exponent)| {
            Value::new(u32::from_le_bytes([*first, *second, third | set, fourth & mask]), *exponent as i8)
        });
        Ok(values.collect())
    }
}

/// Shapes `[correlations, channels]` from `table.f<n>-shapes`; `[0, 0]` for a skipped row, `None`
/// for a shape without axes. The file has blocks: u32 inflated and u32 deflated bytes, then raw
/// DEFLATE of u64s, for each row the number of axes and the extents.
pub(super) fn read_shapes(file: &dyn ReadAt) -> Result<Vec<Option<[u64; 2]>>> {
    let len = file.len()?;
    let mut offset = 0;
    let mut bytes = Vec::new();
    while offset < len {
        let header: [u8; PIECE_HEADER_BYTES as usize] = read_array(file, offset)?;
        let [inflated, deflated] = [0, 1].map(|index| u64::from(ByteOrder::Little.u32(header.as_chunks().0[index])));
        let start = offset + PIECE_HEADER_BYTES;
        if inflated > deflated * MAX_INFLATED {
            return Err(Error::format(format!(
                "the piece at byte {offset} cannot inflate to {inflated} bytes: it has {deflated}"
            )));
        }
        bytes.extend(inflate(&read_bytes(file, start, deflated)?, inflated)?);
        offset = start + deflated;
    }
    let mut numbers = bytes.as_chunks().0.iter().map(|&number| ByteOrder::Little.u64(number));
    let mut shapes = Vec::new();
    while let Some(axes) = numbers.next() {
        let shape = match axes {
            0 => None,
            2 => match (numbers.next(), numbers.next()) {
                (Some(correlations), Some(channels)) => Some([correlations, channels]),
                _ => {
                    return Err(Error::format(format!(
                        "row {}: the shape is cut off, expected two extents",
                        shapes.len()
                    )));
                }
            },
            _ => return Err(Error::format(format!("the cell of row {} has {axes} axes, expected 2", shapes.len()))),
        };
        shapes.push(shape);
    }
    Ok(shapes)
}

/// The content must have exactly `len` bytes.
fn inflate(deflated: &[u8], len: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len as usize];
    // a negative number of window bits: no header of zlib or gzip
    let (found, ended) = zlib_rs::decompress_slice(&mut bytes, deflated, InflateConfig { window_bits: -15 });
    let found = found.len() as u64;
    match ended {
        ReturnCode::Ok if found == len => Ok(bytes),
        ReturnCode::Ok => Err(Error::format(format!("{found} inflated bytes, {len} are expected"))),
        error => Err(Error::format(format!("the deflated bytes are damaged: {error:?}"))),
    }
}
