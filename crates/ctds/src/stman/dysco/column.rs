//! Reads a column of visibilities or weights that DyscoStMan, a storage manager with lossy
//! compression, has stored.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use num_complex::Complex32;
use rayon::prelude::*;

use super::antennas::Antennas;
use super::blocks::{Blocks, Packed, Part, Scales};
use super::dictionary::{Dictionary, dictionary};
use super::header::{Distribution, Header};
use super::scale::{DataScale, RowScale, Visibilities, Weights};
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ByteOrder, ReadAt};
use crate::limits;
use crate::stman::{Access, ColumnCells, ColumnSpec, Storage, memory_bytes};
use crate::value::{DataType, Region, Shape, Values, extend_default};

/// Elements that a thread decodes at a time.
const TASK_ELEMENTS: usize = 1 << 15;

#[derive(Debug)]
pub(super) struct DyscoColumn {
    /// Column, then file and manager.
    pub(super) place: [Context; 2],
    data_type: DataType,
    polarisations: u64,
    channels: u64,
    /// `None` if nothing was ever written.
    written: Option<Written>,
}

#[derive(Debug)]
struct Written {
    blocks: Blocks,
    coding: Coding,
}

#[derive(Debug)]
enum Coding {
    Data { scale: DataScale, dictionary: Lazy, antennas: Option<Arc<Antennas>> },
    Weight { width: u8 },
}

/// The dictionary, computed when the first cell is read.
#[derive(Debug)]
struct Lazy {
    distribution: Distribution,
    width: u8,
    values: OnceLock<Box<Dictionary>>,
}

#[derive(Debug, Default)]
struct Scratch {
    packed: Packed,
    product: Vec<f64>,
}

/// Buffer for decoded values: row after row, polarisations fastest.
enum Out<'a> {
    Visibilities(&'a mut [Complex32]),
    Weights(&'a mut [f32]),
}

impl Out<'_> {
    fn data_type(&self) -> DataType {
        match self {
            Out::Visibilities(_) => DataType::Complex,
            Out::Weights(_) => DataType::Float,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Row {
    /// Number within the block.
    in_block: u64,
    in_table: u64,
    /// Index of the row's first symbol among those that were read.
    symbols: usize,
}

impl DyscoColumn {
    /// `antennas` is given if values are scaled by factors of antennas.
    pub(super) fn new(
        spec: &ColumnSpec,
        file: &Arc<dyn ReadAt>,
        header: Option<&Header>,
        index: usize,
        antennas: Option<Arc<Antennas>>,
        place: [Context; 2],
    ) -> Result<Self> {
        let data_type = spec.data_type;
        let cell @ [polarisations, channels] = cell_shape(spec)?;
        let written = match header {
            Some(header) if header.rows_per_block > 0 => {
                let (part, bits_at) = match data_type {
                    DataType::Complex => (Part::data(header, cell), header.bits_offset()),
                    _ => (Some(Part::weight(header, cell)), header.bits_offset() + 1),
                };
                let too_large = || Error::format(format!("no block can hold cells of shape {cell:?}"));
                let part = part.ok_or_else(too_large)?;
                let blocks = Blocks::new(file.clone(), header, index, &part, bits_at)?;
                Some(Written { blocks, coding: Coding::new(data_type, header, cell, antennas) })
            }
            _ => None,
        };
        Ok(DyscoColumn { place, data_type, polarisations, channels, written })
    }

    /// May exceed the rows of the table.
    pub(super) fn rows_written(&self) -> u64 {
        self.written.as_ref().map_or(0, |written| written.blocks.rows.saturating_mul(written.blocks.count))
    }

    /// Appends `channels` of the cells, all polarisations.
    fn read(&self, rows: Range<u64>, channels: Range<u64>, out: &mut Values) -> Result<()> {
        let extents = Shape::from([self.polarisations, channels.end - channels.start]);
        let elements = extents.elements()?;
        let count = rows.end.saturating_sub(rows.start);
        let backed = self.rows_written();
        if rows.end > backed {
            limits::unbacked_cell(memory_bytes(self.data_type, elements))?;
        }
        let total = elements.checked_mul(count).and_then(|total| usize::try_from(total).ok());
        let total =
            total.ok_or_else(|| Error::limit(format!("{count} cells of {elements} elements exceed the memory")))?;
        let base = out.len();
        let out = match out {
            Values::Complex(out) => {
                extend_default(out, total);
                Out::Visibilities(&mut out[base..])
            }
            Values::Float(out) => {
                extend_default(out, total);
                Out::Weights(&mut out[base..])
            }
            out => return Err(self.other_type(out.data_type())),
        };
        self.fill(rows, channels, out)
    }

    fn other_type(&self, found: DataType) -> Error {
        Error::usage(format!("{found} values where {} are stored", self.data_type))
    }

    /// Elements of `out` for rows after the last block are not changed.
    fn fill(&self, rows: Range<u64>, channels: Range<u64>, out: Out<'_>) -> Result<()> {
        let elements = self.polarisations * (channels.end - channels.start);
        let backed = rows.start..rows.end.min(self.rows_written());
        let Some(written) = self.written.as_ref().filter(|_| elements > 0 && !backed.is_empty()) else {
            return Ok(());
        };
        let end = elements as usize * (backed.end - backed.start) as usize;
        match (&written.coding, out) {
            (Coding::Data { scale, dictionary, antennas }, Out::Visibilities(out)) => {
                let antennas = antennas.as_ref().map(|antennas| antennas.read(backed.clone())).transpose()?;
                let dictionary = dictionary.get();
                let decode =
                    |scales: &Scales, row: Row, Scratch { packed, product }: &mut Scratch, out: &mut [Complex32]| {
                        let of_row = |antennas: &Vec<[u32; 2]>| antennas[(row.in_table - backed.start) as usize];
                        let antennas = antennas.as_ref().map_or([0; 2], of_row);
                        let of_row = RowScale { row: row.in_block as usize, antennas };
                        let factors = scale.factors(&scales.factors, of_row, channels.start as usize, product);
                        let finite = scales.finite;
                        packed.decode(row.symbols, Visibilities { dictionary, factors, finite, out });
                    };
                let per_channel = self.polarisations * 2;
                self.decode(&written.blocks, &backed, &channels, per_channel, &mut out[..end], decode)
            }
            (Coding::Weight { width }, Out::Weights(out)) => {
                let polarisations = self.polarisations as usize;
                let decode = |scales: &Scales, row: Row, scratch: &mut Scratch, out: &mut [f32]| {
                    let weights = Weights { maximum: scales.factors[0], width: *width, polarisations, out };
                    scratch.packed.decode(row.symbols, weights);
                };
                self.decode(&written.blocks, &backed, &channels, 1, &mut out[..end], decode)
            }
            (_, out) => Err(self.other_type(out.data_type())),
        }
    }

    /// `None` if a row was never written, reading failed, or the cells do not fill `out` exactly.
    fn fill_runs<'a, T>(
        &self,
        runs: &mut dyn Iterator<Item = Range<u64>>,
        cell: usize,
        mut out: &'a mut [T],
        as_out: impl Fn(&'a mut [T]) -> Out<'a>,
    ) -> Option<()> {
        let written = self.rows_written();
        for rows in runs {
            let len = usize::try_from(rows.end - rows.start).ok()?.checked_mul(cell)?;
            let (now, later) = std::mem::take(&mut out).split_at_mut_checked(len).filter(|_| rows.end <= written)?;
            self.fill(rows, 0..self.channels, as_out(now)).ok()?;
            out = later;
        }
        out.is_empty().then_some(())
    }

    /// Decodes channels of `rows`, all in existing blocks, on several threads. `decode` is given
    /// the scales of a block, a row, its packed symbols, and where its values go.
    fn decode<T: Send>(
        &self,
        blocks: &Blocks,
        rows: &Range<u64>,
        channels: &Range<u64>,
        symbols_per_channel: u64,
        out: &mut [T],
        decode: impl Fn(&Scales, Row, &mut Scratch, &mut [T]) + Sync,
    ) -> Result<()> {
        let elements = out.len() / (rows.end - rows.start) as usize;
        let in_row = self.channels * symbols_per_channel;
        let first = channels.start * symbols_per_channel;
        let wanted = (channels.end - channels.start) * symbols_per_channel;
        let task = |start: u64, out: &mut [T]| -> Result<()> {
            let mut scratch = Scratch::default();
            let mut row = start;
            let mut rest = out;
            while !rest.is_empty() {
                let (block, row_in_block) = (row / blocks.rows, row % blocks.rows);
                let count = (blocks.rows - row_in_block).min((rest.len() / elements) as u64);
                let (now, later) = rest.split_at_mut(count as usize * elements);
                let scales = blocks.scales(block)?;
                let span = (count - 1) * in_row + wanted;
                blocks.pack(block, row_in_block * in_row + first, span, &mut scratch.packed)?;
                for (i, values) in now.chunks_exact_mut(elements).enumerate() {
                    let of = Row {
                        in_block: row_in_block + i as u64,
                        in_table: row + i as u64,
                        symbols: i * in_row as usize,
                    };
                    decode(&scales, of, &mut scratch, values);
                }
                row += count;
                rest = later;
            }
            Ok(())
        };
        let rows_per_task = (TASK_ELEMENTS / elements).max(1);
        if out.len() <= rows_per_task * elements {
            return task(rows.start, out);
        }
        let tasks = out.par_chunks_mut(rows_per_task * elements).enumerate();
        tasks.try_for_each(|(i, out)| task(rows.start + (i * rows_per_task) as u64, out))
    }
}

/// `[polarisations, channels]`, from the column's fixed shape.
fn cell_shape(spec: &ColumnSpec) -> Result<[u64; 2]> {
    if !matches!(spec.data_type, DataType::Complex | DataType::Float) {
        return Err(Error::format(format!("{} cells, but only complex and float can be stored", spec.data_type)));
    }
    let shape = spec.shape.as_ref().filter(|_| spec.storage != Storage::Scalar);
    match shape.map(|shape| &shape[..]) {
        Some(&[polarisations, channels]) => Ok([polarisations, channels]),
        Some(other) => Err(Error::format(format!("cells of shape {other:?}, but only matrices can be stored"))),
        None => Err(Error::format("no fixed shape, which all columns of this manager have")),
    }
}

impl Coding {
    fn new(data_type: DataType, header: &Header, cell: [u64; 2], antennas: Option<Arc<Antennas>>) -> Self {
        if data_type != DataType::Complex {
            return Coding::Weight { width: header.weight_bits };
        }
        let [polarisations, channels] = cell.map(|extent| extent as usize);
        let (normalization, antenna_count) = (header.normalization, header.antennas as usize);
        let scale = DataScale { normalization, polarisations, channels, antennas: antenna_count };
        let dictionary = Lazy { distribution: header.distribution, width: header.data_bits, values: OnceLock::new() };
        Coding::Data { scale, dictionary, antennas }
    }
}

impl Lazy {
    fn get(&self) -> &Dictionary {
        self.values.get_or_init(|| dictionary(self.distribution, u32::from(self.width)))
    }
}

impl ColumnCells for DyscoColumn {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(Some(Shape::from([self.polarisations, self.channels])))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let Some(region) = region else { return self.read_rows(row..row + 1, out) };
        region.check(&Shape::from([self.polarisations, self.channels]))?;
        let channels = region.start[1]..region.start[1] + region.shape[1];
        if region.shape[0] == self.polarisations {
            return self.read(row..row + 1, channels, out).in_contexts(&self.place);
        }
        let mut all = Values::new(self.data_type);
        self.read(row..row + 1, channels, &mut all).in_contexts(&self.place)?;
        let wanted = region.start[0] as usize..(region.start[0] + region.shape[0]) as usize;
        for at in (0..all.len()).step_by(self.polarisations as usize) {
            out.extend_from(&all, at + wanted.start..at + wanted.end)?;
        }
        Ok(())
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.read(rows, 0..self.channels, out).in_contexts(&self.place)
    }

    fn read_plain(&self, runs: &mut dyn Iterator<Item = Range<u64>>, out: &mut [u8]) -> Option<ByteOrder> {
        let cell = usize::try_from(self.polarisations.checked_mul(self.channels)?).ok()?;
        match self.data_type {
            DataType::Complex => {
                self.fill_runs(runs, cell, bytemuck::try_cast_slice_mut(out).ok()?, Out::Visibilities)?
            }
            _ => self.fill_runs(runs, cell, bytemuck::try_cast_slice_mut(out).ok()?, Out::Weights)?,
        }
        Some(ByteOrder::NATIVE)
    }

    fn access(&self) -> Access {
        Access::Computed
    }

    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        Some(Shape::from([self.polarisations, self.channels]))
    }
}
