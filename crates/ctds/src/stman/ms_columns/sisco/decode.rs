//! Decodes the cells of SiscoStMan in row order, each predicted from those before.
//! formats/engines.md 3.5.3.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::file::Mode;
use super::value::{Level, Value};
use super::{KEYS, Shapes, Sisco};
use crate::error::{Error, Result};
use crate::stman::antennas::read_keys;
use crate::value::Complex32;

/// Rows whose keys are read at a time.
const STEP_ROWS: u64 = 1 << 14;

/// Least number of items for a thread; an item is the values of one correlation in one row.
const TASK_ITEMS: usize = 256;

/// FIELD_ID, DATA_DESC_ID, ANTENNA1 and ANTENNA2 of a baseline.
type Key = [i32; KEYS.len()];

/// Decodes row by row: predictions need the values of the rows before.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pub(super) row: u64,
    /// Visibilities of the last row; empty if its cell is undefined.
    pub(super) cell: Vec<Complex32>,
    chunk: usize,
    /// The current chunk with predictions from lower channels, and before `next` from earlier rows.
    values: Vec<Value>,
    /// First value that is not decoded yet.
    next: usize,
    /// Values of the whole file that were decoded so far.
    used: u64,
    keys: Vec<Key>,
    key_rows: Range<u64>,
    /// Real and imaginary parts of each stored correlation of a baseline.
    history: HashMap<Key, Vec<[History; 2]>>,
}

/// Up to four last rows of a baseline, most recent first, one part of one correlation.
#[derive(Debug, Default)]
struct History(VecDeque<Vec<Value>>);

impl Decoder {
    /// Decodes the next row of `shape` (`[correlations, channels]`) into `self.cell`.
    pub(super) fn advance(&mut self, sisco: &Sisco, shape: Option<[u64; 2]>) -> Result<()> {
        let row = self.row;
        self.row += 1;
        self.cell.clear();
        let Some([correlations, channels]) = shape else { return Ok(()) };
        let wanted = cell_values(sisco.file.mode, [correlations, channels])?;
        if wanted > sisco.file.values - self.used {
            return Err(sisco.too_short(row, [correlations, channels]));
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
            let start = self.item(sisco, index, 2 * channels)?;
            let item = &mut self.values[start..start + 2 * channels];
            if let Some(level) = &sisco.level {
                let histories = self.history.entry(key).or_default();
                if histories.len() <= index {
                    histories.resize_with(index + 1, Default::default);
                }
                for (part, history) in item.chunks_exact_mut(channels).zip(&mut histories[index]) {
                    history.add_to(part, level)?;
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

    /// Index of the first of the `len` values, in the next chunk if needed; fails across chunks.
    fn item(&mut self, sisco: &Sisco, index: usize, len: usize) -> Result<usize> {
        while self.next == self.values.len() && self.chunk < sisco.file.chunk_count() {
            self.values = sisco.file.read_chunk(self.chunk)?;
            self.chunk += 1;
            self.next = 0;
            if let Some(level) = &sisco.level {
                let items = items(sisco.file.mode, &sisco.shapes, self.row - 1).skip(index);
                add_from_lower_channels(level, &mut self.values, items);
            }
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

/// Two (real and imaginary part) for each visibility that `mode` stores.
pub(super) fn cell_values(mode: Mode, [correlations, channels]: [u64; 2]) -> Result<u64> {
    if correlations == 0 || channels == 0 {
        return Ok(0);
    }
    let values = stored_correlations(mode, correlations)?.checked_mul(channels);
    let values = values.and_then(|values| values.checked_mul(2));
    values.ok_or_else(|| Error::format(format!("a cell of {correlations} x {channels} elements exceeds 2^64 elements")))
}

/// All, 2 or 1.
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

/// Real parts of all channels, then imaginary parts, from row `first` to the last valid shape.
fn items(mode: Mode, shapes: &Shapes, first: u64) -> impl Iterator<Item = usize> {
    let of_row = move |shape: [u64; 2]| {
        let (values, stored) = (cell_values(mode, shape).ok()?, stored_correlations(mode, shape[0]).ok()?);
        // cells without elements have no items, whatever number of correlations their shape states
        let stored = if values == 0 { 0 } else { stored };
        Some(std::iter::repeat_n(values.checked_div(stored).unwrap_or(0) as usize, stored as usize))
    };
    (first..shapes.rows()).filter_map(|row| shapes.get(row)).map_while(of_row).flatten()
}

/// Works on several threads: items of lengths `lens` do not depend on each other here.
fn add_from_lower_channels(level: &Level, values: &mut [Value], lens: impl Iterator<Item = usize>) {
    let mut rest = values;
    let mut items: Vec<_> = lens.map_while(|len| rest.split_off_mut(..len)).collect();
    let threads = rayon::current_num_threads().min(items.len().div_ceil(TASK_ITEMS)).max(1);
    let share = items.len().div_ceil(threads).max(1);
    let mut shares = items.chunks_mut(share);
    let own = shares.next();
    let add = |items: &mut [&mut [Value]]| items.iter_mut().for_each(|item| add_to_item(level, item));
    // not rayon's threads: while these wait for each other they take other work, which may want the
    // decoder that is locked here
    std::thread::scope(|scope| {
        for items in shares {
            scope.spawn(move || add(items));
        }
        own.into_iter().for_each(add);
    });
}

fn add_to_item(level: &Level, item: &mut [Value]) {
    let (re, im) = item.split_at_mut(item.len() / 2);
    // of both parts in turn, since the processor can work on one while a value of the other is not
    // known yet
    let mut pasts = [[Value::default(); 4]; 2];
    for (channel, (re, im)) in re.iter_mut().zip(im).enumerate() {
        for (past, value) in pasts.iter_mut().zip([re, im]) {
            if channel > 0 && !value.is_special() {
                *value = value.plus(level.frequency[channel.min(4) - 1].predict(past, value.exponent));
            }
            *past = [*value, past[0], past[1], past[2]];
        }
    }
}

impl History {
    /// One part of one correlation by channel; keeps the sums for later rows.
    fn add_to(&mut self, row: &mut [Value], level: &Level) -> Result<()> {
        if let Some(last) = self.0.front().filter(|last| last.len() != row.len()) {
            return Err(Error::unsupported(format!(
                "the number of channels changed: found {}, earlier {}",
                row.len(),
                last.len()
            )));
        }
        if let Some(last) = self.0.front() {
            let predictor = &level.time[self.0.len() - 1];
            let earlier: [&[Value]; 4] = std::array::from_fn(|i| &self.0.get(i).unwrap_or(last)[..row.len()]);
            for (channel, value) in row.iter_mut().enumerate().filter(|(_, value)| !value.is_special()) {
                let past = earlier.map(|values| values[channel]);
                *value = value.plus(predictor.predict(&past, value.exponent));
            }
        }
        let mut kept = if self.0.len() == 4 { self.0.pop_back().unwrap_or_default() } else { Vec::new() };
        kept.clear();
        kept.extend_from_slice(row);
        self.0.push_front(kept);
        Ok(())
    }
}
