//! Decodes the cells of SiscoStMan in row order, each predicted from those before. formats/engines.md 3.5.3.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::file::{Mode, SiscoFile};
use super::value::{Level, Value};
use super::{KEYS, Sisco};
use crate::error::{Error, Result};
use crate::stman::antennas::read_keys;
use crate::value::Complex32;

/// Number of rows whose keys (field, data description and antennas) are read from the table at a time.
const STEP_ROWS: u64 = 1 << 14;

/// The key of a baseline: values of FIELD_ID, DATA_DESC_ID, ANTENNA1 and ANTENNA2, which all its rows have in common.
type Key = [i32; KEYS.len()];

/// State of decoding a SiscoStMan file row by row: predictions need the values of the rows before.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// Number (from 0) of the next row to be decoded.
    pub(super) row: u64,
    /// The decoded visibilities of the last row that was decoded; empty if its cell is undefined.
    pub(super) cell: Vec<Complex32>,
    /// Index (from 0) of the next deflated chunk of the SiscoStMan file that is to be inflated.
    chunk: usize,
    values: Vec<Value>,
    /// Index of the first value that is not yet decoded in `values`, the values of the current chunk of the SiscoStMan
    /// file.
    next: usize,
    /// Number of values of the whole SiscoStMan file that were decoded so far.
    used: u64,
    keys: Vec<Key>,
    key_rows: Range<u64>,
    /// Decoded values of up to four earlier rows of each baseline, from which later values are predicted: for each
    /// stored correlation, a history of its real parts and one of its imaginary parts.
    history: HashMap<Key, Vec<[History; 2]>>,
}

/// Decoded values of the last rows (up to four) of a baseline, for the real or imaginary part of one correlation; the
/// most recent row comes first.
#[derive(Debug, Default)]
struct History(VecDeque<Vec<Value>>);

impl Decoder {
    /// Decodes the next row, whose cell has `shape` (`[correlations, channels]`; `None`: undefined), into `cell`.
    pub(super) fn advance(&mut self, sisco: &Sisco, shape: Option<[u64; 2]>) -> Result<()> {
        let row = self.row;
        self.row += 1;
        self.cell.clear();
        let Some([correlations, channels]) = shape else { return Ok(()) };
        let wanted = cell_values(sisco.file.mode, [correlations, channels])?;
        if wanted > sisco.file.values - self.used {
            return Err(Error::format(format!("row {row}: the file ends before its {wanted} values")));
        }
        self.used += wanted;
        if wanted == 0 {
            return Ok(());
        }
        let stored = stored_correlations(sisco.file.mode, correlations)?;
        let key = if sisco.level.is_some() { self.key(sisco, row)? } else { Key::default() };
        let (correlations, channels) = (correlations as usize, channels as usize);
        self.cell.resize(correlations * channels, Complex32::default());
        for index in 0..stored as usize {
            let start = self.item(&sisco.file, 2 * channels)?;
            let item = &mut self.values[start..start + 2 * channels];
            if let Some(level) = &sisco.level {
                let histories = self.history.entry(key).or_default();
                if histories.len() <= index {
                    histories.resize_with(index + 1, Default::default);
                }
                for (part, history) in item.chunks_exact_mut(channels).zip(&mut histories[index]) {
                    history.predict(level, part)?;
                }
            }
            let (re, im) = item.split_at(channels);
            let last = correlations - 1;
            let to: &[usize] = match sisco.file.mode {
                Mode::All => &[index],
                Mode::Diagonal => &[index * last],
                Mode::StokesI => &[0, last],
            };
            for (channel, (re, im)) in re.iter().zip(im).enumerate() {
                for correlation in to {
                    self.cell[channel * correlations + correlation] = Complex32::new(re.to_f32(), im.to_f32());
                }
            }
        }
        Ok(())
    }

    /// Takes the next `len` stored values of the SiscoStMan file, after inflating its next chunk if the current one is
    /// used up. Returns the index in `self.values` of the first of them; fails if one chunk does not hold them all.
    fn item(&mut self, file: &SiscoFile, len: usize) -> Result<usize> {
        while self.next == self.values.len() && self.chunk < file.chunk_count() {
            self.values = file.read_chunk(self.chunk)?;
            self.chunk += 1;
            self.next = 0;
        }
        let start = self.next;
        if len > self.values.len() - start {
            return Err(Error::format(format!(
                "row {}: {len} values, of which chunk {} has only {}",
                self.row - 1,
                self.chunk.saturating_sub(1),
                self.values.len() - start
            )));
        }
        self.next += len;
        Ok(start)
    }

    fn key(&mut self, sisco: &Sisco, row: u64) -> Result<Key> {
        if !self.key_rows.contains(&row) {
            let rows = row..sisco.rows.min(row + STEP_ROWS);
            let columns =
                sisco.keys.iter().map(|column| read_keys(column, rows.clone())).collect::<Result<Vec<_>>>()?;
            self.keys = (0..(rows.end - rows.start) as usize)
                .map(|index| std::array::from_fn(|key| columns[key][index]))
                .collect();
            self.key_rows = rows;
        }
        let index = row - self.key_rows.start;
        self.keys
            .get(index as usize)
            .copied()
            .ok_or_else(|| Error::usage(format!("row {row} does not exist, the table has {} rows", sisco.rows)))
    }
}

/// Number of values that the SiscoStMan file has for a cell of this shape: two (real and imaginary part) for each
/// visibility that `mode` stores.
pub(super) fn cell_values(mode: Mode, [correlations, channels]: [u64; 2]) -> Result<u64> {
    if correlations == 0 || channels == 0 {
        return Ok(0);
    }
    let values = stored_correlations(mode, correlations)?.checked_mul(channels);
    let values = values.and_then(|values| values.checked_mul(2));
    values.ok_or_else(|| Error::format(format!("a cell of {correlations} x {channels} elements exceeds 2^64 elements")))
}

/// Number of correlations that the SiscoStMan file stores for a cell with `correlations` correlations: all, 2 or 1,
/// depending on `mode`.
fn stored_correlations(mode: Mode, correlations: u64) -> Result<u64> {
    match mode {
        Mode::All => Ok(correlations),
        _ if correlations != 4 => {
            Err(Error::format(format!("{correlations} correlations, of which {mode:?} are stored: 4 are expected")))
        }
        Mode::Diagonal => Ok(2),
        Mode::StokesI => Ok(1),
    }
}

impl History {
    /// Turns the stored differences in `row` into final values by adding predictions: first from lower channels, then
    /// from earlier rows of the baseline.
    fn predict(&mut self, level: &Level, row: &mut [Value]) -> Result<()> {
        // from channel to channel, before anything is added for earlier rows
        let mut past = [Value::default(); 4];
        for (channel, value) in row.iter_mut().enumerate() {
            let known = channel.min(4);
            if known > 0 && !value.is_special() {
                let predictor = level.frequency[known - 1];
                *value = value.plus(predictor.predict(&past[..known], value.exponent()));
            }
            past.rotate_right(1);
            past[0] = *value;
        }
        if let Some(last) = self.0.front().filter(|last| last.len() != row.len()) {
            return Err(Error::unsupported(format!(
                "the number of channels changed: found {}, earlier {}",
                row.len(),
                last.len()
            )));
        }
        let known = self.0.len();
        if known > 0 {
            let predictor = level.time[known - 1];
            for (channel, value) in row.iter_mut().enumerate().filter(|(_, value)| !value.is_special()) {
                for (past, earlier) in past.iter_mut().zip(&self.0) {
                    *past = earlier[channel];
                }
                *value = value.plus(predictor.predict(&past[..known], value.exponent()));
            }
        }
        let mut kept = if known == 4 { self.0.pop_back().unwrap_or_default() } else { Vec::new() };
        kept.clear();
        kept.extend_from_slice(row);
        self.0.push_front(kept);
        Ok(())
    }
}
