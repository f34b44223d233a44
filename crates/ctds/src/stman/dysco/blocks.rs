//! Reads files of DyscoStMan, which compresses visibilities: finds the part of one column in each
//! block (a group of rows). formats/engines.md 2.2.

use std::sync::Arc;

use super::header::{Header, Normalization};
use super::symbols::{self, Decode, PADDING, WIDTHS};
use crate::error::{Error, Result, ResultExt};
use crate::io::{ReadAt, Recent};

/// Bytes of recent scale factors kept in memory per column.
const CACHE_BYTES: u64 = 1 << 22;
const SCALE_BYTES: u64 = size_of::<f32>() as u64;

/// ```text
/// header_bytes + offset + block_bytes
/// | column A | column B: f32 scales | packed symbols | column A |...
///  rows 0.. R rows R.. 2R
/// ```
#[derive(Debug)]
pub(super) struct Blocks {
    file: Arc<dyn ReadAt>,
    pub(super) rows: u64,
    /// Blocks whole enough to contain the data of this column.
    pub(super) count: u64,
    /// Byte of this column's data in the first block.
    start: u64,
    stride: u64,
    /// Scale factors per block.
    scales: u64,
    width: u8,
    recent: Recent<Scales>,
}

#[derive(Debug)]
pub(super) struct Scales {
    /// Stored as f32, but multiplied as f64.
    pub(super) factors: Vec<f64>,
    pub(super) finite: bool,
}

pub(super) struct Part {
    pub(super) symbols_per_row: u64,
    pub(super) scales: Option<u64>,
    pub(super) width: u8,
}

impl Part {
    /// Visibilities; `None` if a row has too many values for 64 bits.
    pub(super) fn data(header: &Header, [polarisations, channels]: [u64; 2]) -> Option<Self> {
        let symbols_per_row = channels.checked_mul(polarisations)?.checked_mul(2)?;
        let rows = u64::from(header.rows_per_block);
        let scales = match header.normalization {
            Normalization::AntennaFrequency => channels.checked_add(u64::from(header.antennas)),
            Normalization::RowFrequency => channels.checked_add(rows),
            Normalization::Row => return Some(Part { symbols_per_row, scales: Some(rows), width: header.data_bits }),
        };
        let scales = scales.and_then(|scales| scales.checked_mul(polarisations));
        Some(Part { symbols_per_row, scales, width: header.data_bits })
    }

    /// Weights; one is stored for all polarisations.
    pub(super) fn weight(header: &Header, [_, channels]: [u64; 2]) -> Self {
        Part { symbols_per_row: channels, scales: Some(1), width: header.weight_bits }
    }

    fn bytes(&self, rows: u64) -> Option<u64> {
        let bits = self.symbols_per_row.checked_mul(rows)?.checked_mul(u64::from(self.width))?;
        self.scales?.checked_mul(SCALE_BYTES)?.checked_add(bits.div_ceil(8))
    }
}

impl Blocks {
    /// Checks the header's sizes; `bits_at` is the offset of the bits per value, for errors.
    pub(super) fn new(file: Arc<dyn ReadAt>, header: &Header, index: usize, part: &Part, bits_at: u64) -> Result<Self> {
        if !WIDTHS.contains(&part.width) {
            let found = format!("symbols of {} bits, known are {WIDTHS:?}", part.width);
            return Err(Error::format(found).context(format!("header: byte {bits_at}")));
        }
        let rows = u64::from(header.rows_per_block);
        let stored = u64::from(header.parts[index]);
        let total: u64 = header.parts.iter().map(|&bytes| u64::from(bytes)).sum();
        if part.bytes(rows) != Some(stored) {
            let needs = part.bytes(rows).map_or("more than 2^64".into(), |bytes| bytes.to_string());
            let found = format!("{stored} bytes in a block, but {rows} rows of this shape take {needs}");
            return Err(Error::format(found).context("header: column records"));
        }
        if total != u64::from(header.block_bytes) {
            let found = format!("blocks of {} bytes, but their columns take {total}", header.block_bytes);
            return Err(Error::format(found).context("header: block size"));
        }
        let before: u64 = header.parts[..index].iter().map(|&bytes| u64::from(bytes)).sum();
        let start = u64::from(header.header_bytes) + before;
        let count = match file.len()?.checked_sub(start + stored) {
            // cells without elements need no blocks
            _ if total == 0 => 0,
            Some(rest) => rest / total + 1,
            None => 0,
        };
        let scales = part.scales.unwrap_or(0);
        let recent = Recent::new(CACHE_BYTES, scales * size_of::<f64>() as u64);
        Ok(Blocks { file, rows, count, start, stride: total, scales, width: part.width, recent })
    }

    /// Read from the file, or kept from a recent call.
    pub(super) fn scales(&self, block: u64) -> Result<Arc<Scales>> {
        self.recent.get(block, || {
            let mut bytes = vec![0; (self.scales * SCALE_BYTES) as usize];
            self.read(block, 0, &mut bytes)?;
            let (scales, _) = bytes.as_chunks::<{ SCALE_BYTES as usize }>();
            let factors: Vec<f64> = scales.iter().map(|&scale| f64::from(f32::from_le_bytes(scale))).collect();
            let finite = factors.iter().all(|factor| factor.is_finite());
            Ok(Scales { factors, finite })
        })
    }

    pub(super) fn pack(&self, block: u64, first: u64, count: u64, packed: &mut Packed) -> Result<()> {
        let width = u64::from(self.width);
        let (start, end) = (first * width / 8, ((first + count) * width).div_ceil(8));
        packed.bytes.clear();
        packed.bytes.resize((end - start) as usize + PADDING, 0);
        packed.width = self.width;
        packed.first_bit = (first * width - start * 8) as usize;
        let len = packed.bytes.len() - PADDING;
        self.read(block, self.scales * SCALE_BYTES + start, &mut packed.bytes[..len])
    }

    fn read(&self, block: u64, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read_at(self.start + block * self.stride + offset, out).with_context(|| format!("block {block}"))
    }
}

/// Consecutive symbols of a block, in the bits of the file.
#[derive(Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    first_bit: usize,
    width: u8,
}

impl Packed {
    pub(super) fn decode(&self, first: usize, decoder: impl Decode) {
        let bit = self.first_bit + first * usize::from(self.width);
        symbols::decode(self.width, &self.bytes[bit / 8..], bit % 8, decoder);
    }
}
