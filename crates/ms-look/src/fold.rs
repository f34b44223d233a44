//! Reads blocks of rows from a table, each once for all plots that need it, and adds them to the
//! sums of these plots ("folds" them). A block is read at once; an integration is the rows of one
//! TIME.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use ctds::error::{Error, Result};
use ctds::value::{Complex32, DataType, Values};

use crate::accumulate::Accumulator;
use crate::axes::{Axes, BlockRows, Lists};
use crate::bins::spread;
use crate::describe::Description;
use crate::part::Row;
use crate::plots::SumsKind;
use crate::request::Request;
use crate::rows::{Group, Rows};
use crate::selection::{RowKey, Selection, unknown};

/// Approximate bytes of visibilities and flags in a block, by default.
const BLOCK_BYTES: u64 = 4 << 20;
/// Limits the memory for the scalar cells, which are read for every row, selected or not.
const BLOCK_ROWS: u64 = 1 << 16;
/// Most blocks of a table; longer tables have larger blocks.
const MAX_BLOCKS: u64 = 1 << 17;
/// Rows searched for the end of an integration, to which the boundary of a block is moved.
const SEARCHED_ROWS: u64 = 1 << 14;
/// Approximate bytes of the scalar cells of one row.
const SCALAR_BYTES: u64 = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    rows: Range<u64>,
    /// The start and the end of `rows`, if before this row, move forward to the first row of an
    /// integration when the block is read, at most to this row. 0: neither moves.
    align: u64,
}

/// The sums of one plot, and the blocks that are still to be added to them.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) selection: Selection,
    pub(crate) sums: Accumulator,
    /// Names of the correlations in the plot's spectral window; empty if unknown.
    names: Vec<String>,
    spw_column: &'static str,
    pending: VecDeque<Block>,
    /// Rows that were divided into blocks so far, whether or not the blocks were read.
    given: u64,
    /// Rows that were read, whether or not the plot selects them.
    pub(crate) rows_used: u64,
    /// Bytes that were read; a block that was read for several plots counts as a whole for each.
    bytes: u64,
    /// Number of the newest request that used the sums, from 1, to find the least recently used.
    pub(crate) used: u64,
    scans: Scans,
}

#[derive(Debug)]
struct Scans {
    /// Selected scans that were not found yet.
    missing: Vec<i64>,
    /// The first [`SEEN`], for error messages.
    seen: BTreeSet<i64>,
}

impl Scans {
    const SEEN: usize = 64;

    fn add(&mut self, scan: i64) {
        self.missing.retain(|missing| *missing != scan);
        if self.seen.len() < Self::SEEN {
            self.seen.insert(scan);
        }
    }
}

impl Fold {
    pub(crate) fn new(
        selection: Selection,
        kind: &'static SumsKind,
        known: &Description,
        layout: &BlockLayout,
    ) -> Self {
        let window = selection.spw.and_then(|spw| known.window(spw));
        let frequencies = window.map_or(&[][..], |window| &window.frequencies);
        let blocks = layout.blocks(0..layout.rows);
        let order: Vec<u64> = match kind.newest {
            // the newest rows are the last ones, in almost every source
            true => (0..blocks.len() as u64).rev().collect(),
            false => spread(blocks.len() as u64).collect(),
        };
        let block = |number: u64| Block { rows: blocks[number as usize].clone(), align: layout.rows };
        Fold {
            sums: Accumulator::new(kind, frequencies),
            spw_column: known.spw_column(),
            names: window.map_or_else(Vec::new, |window| window.correlations.clone()),
            scans: Scans { missing: selection.scans.clone(), seen: BTreeSet::new() },
            selection,
            pending: order.into_iter().map(block).collect(),
            given: layout.rows,
            rows_used: 0,
            bytes: 0,
            used: 0,
        }
    }

    pub(crate) fn is_for(&self, selection: &Selection, kind: &SumsKind) -> bool {
        self.selection == *selection && self.sums.kind == kind
    }

    /// Adds blocks of the rows that were appended since the last call.
    pub(crate) fn extend(&mut self, layout: &BlockLayout) {
        let rows = self.given..layout.rows;
        if rows.is_empty() {
            return;
        }
        self.given = layout.rows;
        // small commits between two requests are one block
        let room = layout.block_rows;
        match self.pending.back_mut() {
            Some(last) if last.align == 0 && last.rows.end == rows.start && rows.end - last.rows.start <= room => {
                last.rows.end = rows.end;
            }
            _ => self.pending.extend(layout.blocks(rows).into_iter().map(|rows| Block { rows, align: 0 })),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.pending.is_empty()
    }

    /// `Usage` if no row is of a selected scan; succeeds as long as rows are unread.
    pub(crate) fn check_scans(&self) -> Result<()> {
        match self.scans.missing.first() {
            Some(scan) if self.is_complete() && self.rows_used > 0 => {
                let seen = self.scans.seen.iter().map(i64::to_string).collect();
                Err(unknown("scan", &scan.to_string(), seen))
            }
            _ => Ok(()),
        }
    }

    /// Whether reading stops with rows left: `limit`, times 1 + `more` of the request, is reached.
    pub(crate) fn is_at_limit(&self, request: &Request, limit: u64) -> bool {
        !self.is_complete() && self.bytes >= limit.saturating_mul(u64::from(request.more) + 1)
    }

    /// The selected rows of a block, by their offsets from its start.
    fn wanted(&self, keys: &[RowKey]) -> Vec<usize> {
        let is_wanted = |row: &usize| self.selection.has(&keys[*row]) && self.sums.wants(keys[*row].time);
        let mut wanted: Vec<usize> = (0..keys.len()).filter(is_wanted).collect();
        if self.sums.kind.newest {
            let newest = wanted.iter().map(|&row| keys[row].time).fold(f64::NEG_INFINITY, f64::max);
            wanted.retain(|&row| keys[row].time == newest);
        }
        wanted
    }

    pub(crate) fn next(&self) -> Option<&Block> {
        self.pending.front()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BlockLayout {
    pub(crate) rows: u64,
    /// The last block may have fewer.
    pub(crate) block_rows: u64,
}

impl BlockLayout {
    /// `target`: bytes of data and flags in a block, as if all rows were like the newest one.
    pub(crate) fn of(rows: &Rows, known: &Description, target: Option<u64>) -> Self {
        let count = rows.rows();
        let newest = count.saturating_sub(1);
        let columns = known.columns.first().map(String::as_str).into_iter().chain(["FLAG"]);
        let bytes: u64 = match count {
            0 => 0,
            _ => columns.map(|name| rows.cell_bytes(name, newest).unwrap_or(0)).sum(),
        };
        let block_rows = (target.unwrap_or(BLOCK_BYTES) / (bytes + SCALAR_BYTES)).clamp(1, BLOCK_ROWS);
        BlockLayout { rows: count, block_rows: block_rows.max(count / MAX_BLOCKS) }
    }

    fn blocks(&self, rows: Range<u64>) -> Vec<Range<u64>> {
        let step = self.block_rows.max(1);
        let end = rows.end;
        rows.step_by(step as usize).map(|start| start..(start + step).min(end)).collect()
    }
}

/// The scalars by which the plots `folds` select rows; those that none asks for are 0.
fn keys(rows: &Rows, range: &Range<u64>, folds: &[&Fold]) -> Result<Vec<RowKey>> {
    let count = (range.end - range.start) as usize;
    let integers = |name: &str, needed: bool| match needed && rows.column(name).is_some() {
        true => rows.integers(name, range.clone()),
        false => Ok(vec![0; count]),
    };
    let any = |needed: fn(&Selection) -> bool| folds.iter().any(|fold| needed(&fold.selection));
    let needs_runs = folds.iter().any(|fold| fold.sums.kind.needs_runs);
    let times = rows.doubles("TIME", range.clone())?;
    let spw_column = folds.first().map_or("DATA_DESC_ID", |fold| fold.spw_column);
    // the other antenna of a calibration table is the reference
    let second = if spw_column == "DATA_DESC_ID" { "ANTENNA2" } else { "ANTENNA1" };
    let antennas = (integers("ANTENNA1", true)?, integers(second, true)?);
    let spws = integers(spw_column, any(|selection| selection.spw.is_some()))?;
    let of_fields =
        |selection: &Selection| !selection.fields.is_empty() || selection.axes.as_ref().is_some_and(Axes::needs_fields);
    let fields = integers("FIELD_ID", needs_runs || any(of_fields))?;
    let scans = integers("SCAN_NUMBER", needs_runs || any(|selection| !selection.scans.is_empty()))?;
    let key = |row: usize| RowKey {
        time: times[row],
        antenna1: antennas.0[row],
        antenna2: antennas.1[row],
        spw: spws[row],
        field: fields[row],
        scan: scans[row],
    };
    Ok((0..count).map(key).collect())
}

struct CellReader<'a> {
    rows: &'a Rows,
    range: &'a Range<u64>,
    /// Rows of each plot, as offsets from the start of `range`.
    selected: &'a [Vec<usize>],
    bytes: u64,
}

impl CellReader<'_> {
    /// Reads the rows of the plots for whose numbers `is_wanted` returns true.
    fn read<T>(
        &mut self,
        name: &str,
        is_wanted: &dyn Fn(usize) -> bool,
        convert: fn(Values) -> Result<Vec<T>>,
    ) -> Result<Cells<T>> {
        let count = (self.range.end - self.range.start) as usize;
        let mut is_needed = vec![false; count];
        for (_, list) in self.selected.iter().enumerate().filter(|(number, _)| is_wanted(*number)) {
            list.iter().for_each(|&row| is_needed[row] = true);
        }
        let needed: Vec<usize> = (0..count).filter(|&row| is_needed[row]).collect();
        let numbers: Vec<u64> = needed.iter().map(|&row| self.range.start + row as u64).collect();
        let groups = self.rows.cells(name, &numbers)?;
        self.bytes +=
            groups.iter().map(|group| (group.values.len() * group.values.data_type().size()) as u64).sum::<u64>();
        Cells::new(groups, &needed, count, convert)
    }
}

/// Cells of a column, read for some rows of a block and grouped by their shape.
struct Cells<T> {
    /// Number of correlations, number of channels, and the elements of one cell after the other,
    /// the correlation as the fastest axis.
    groups: Vec<(usize, usize, Vec<T>)>,
    /// Group of each row of the block, and cell in the group; `None` if not read or undefined.
    at: Vec<Option<(u32, u32)>>,
}

impl<T> Cells<T> {
    /// Cell as in `groups`; `row` counts from the block's start. `None` if unread or undefined.
    fn get(&self, row: usize) -> Option<(usize, usize, &[T])> {
        let (group, number) = (*self.at.get(row)?)?;
        let (correlations, channels, elements) = self.groups.get(group as usize)?;
        let len = correlations * channels;
        Some((*correlations, *channels, elements.get(number as usize * len..(number as usize + 1) * len)?))
    }

    fn new(
        groups: Vec<Group>,
        rows: &[usize],
        count: usize,
        convert: impl Fn(Values) -> Result<Vec<T>>,
    ) -> Result<Self> {
        let mut cells = Cells { groups: Vec::new(), at: vec![None; count] };
        for group in groups {
            // the last axis is that of channels
            let channels = group.shape.last().copied().unwrap_or(1) as usize;
            let elements = group.shape.elements()? as usize;
            let correlations = elements.checked_div(channels).unwrap_or(0);
            for (number, &place) in group.places.iter().enumerate() {
                cells.at[rows[place]] = Some((cells.groups.len() as u32, number as u32));
            }
            cells.groups.push((correlations, channels, convert(group.values)?));
        }
        Ok(cells)
    }
}

pub(crate) struct Read {
    keys: Vec<RowKey>,
    flag_rows: Vec<bool>,
    uvw: Vec<f64>,
    flags: Option<Cells<bool>>,
    data: Vec<(String, Cells<Complex32>)>,
    /// Numbers of rows on the axes of each plot that has such axes.
    axes: Vec<Option<[Lists; 2]>>,
    /// For each plot, in the order of the `folds` in [`Read::new`]: rows, as offsets in the block.
    selected: Vec<Vec<usize>>,
    rows: u64,
    bytes: u64,
}

fn flags_of(values: Values) -> Result<Vec<bool>> {
    match values {
        Values::Bool(flags) => Ok(flags),
        other => Err(Error::format(format!("the flags have type {}, expected Bool", other.data_type()))),
    }
}

fn complex_of(values: Values) -> Result<Vec<Complex32>> {
    Ok(match values {
        Values::Complex(values) => values,
        Values::DComplex(values) => values.into_iter().map(|v| Complex32::new(v.re as f32, v.im as f32)).collect(),
        Values::Float(values) => values.into_iter().map(|v| Complex32::new(v, 0.)).collect(),
        Values::Double(values) => values.into_iter().map(|v| Complex32::new(v as f32, 0.)).collect(),
        other => {
            return Err(Error::format(format!(
                "the visibilities have type {}, expected Complex, DComplex, Float or Double",
                other.data_type()
            )));
        }
    })
}

impl Read {
    pub(crate) fn new(rows: &Rows, block: &Block, folds: &[&Fold]) -> Result<Self> {
        let range = actual(rows, block)?;
        let count = (range.end - range.start) as usize;
        let is = |name: &str, data_type: DataType| rows.column(name).is_some_and(|info| info.data_type() == data_type);
        let keys = keys(rows, &range, folds)?;
        let selected: Vec<Vec<usize>> = folds.iter().map(|fold| fold.wanted(&keys)).collect();
        let flag_rows = match is("FLAG_ROW", DataType::Bool) {
            true => flags_of(rows.all("FLAG_ROW", range.clone())?)?,
            false => vec![false; count],
        };
        let needs_uvw =
            |fold: &&Fold| fold.sums.kind.needs_uvw || fold.selection.axes.as_ref().is_some_and(Axes::needs_uvw);
        let needs_uvw = folds.iter().any(needs_uvw);
        let uvw = match needs_uvw && is("UVW", DataType::Double) {
            true => rows.doubles("UVW", range.clone())?,
            false => Vec::new(),
        };
        let mut cells = CellReader { rows, range: &range, selected: &selected, bytes: count as u64 * SCALAR_BYTES };
        let has_flags = is("FLAG", DataType::Bool);
        let flags = if has_flags { Some(cells.read("FLAG", &|_| true, flags_of)?) } else { None };
        // without FLAG the visibilities say how many cells there are
        let needs_data = |fold: &Fold| fold.sums.kind.needs_data || !has_flags;
        let mut data: Vec<(String, Cells<Complex32>)> = Vec::new();
        for fold in folds.iter().filter(|fold| needs_data(fold)) {
            let column = &fold.selection.column;
            if !data.iter().any(|(name, _)| name == column) {
                let of_column = |number: usize| needs_data(folds[number]) && folds[number].selection.column == *column;
                data.push((column.clone(), cells.read(column, &of_column, complex_of)?));
            }
        }
        let bytes = cells.bytes;
        let of_rows: Vec<(f64, i64)> = keys.iter().map(|key| (key.time, key.field)).collect();
        let axes = |(fold, selected): (&&Fold, &Vec<usize>)| {
            let block = BlockRows { range: &range, keys: &of_rows, uvw: &uvw, selected };
            fold.selection.axes.as_ref().map(|axes| axes.read(rows, &block)).transpose()
        };
        let axes = folds.iter().zip(&selected).map(axes).collect::<Result<_>>()?;
        Ok(Read { keys, flag_rows, uvw, flags, data, axes, selected, rows: range.end - range.start, bytes })
    }

    /// `number` is the index of the plot in the `folds` of [`Read::new`].
    pub(crate) fn fold(&self, number: usize, fold: &mut Fold) {
        let data = self.data.iter().find(|(name, _)| *name == fold.selection.column).map(|(_, cells)| cells);
        let needs_data = fold.sums.kind.needs_data || self.flags.is_none();
        let axes = self.axes[number].as_ref();
        for &at in &self.selected[number] {
            let flags = self.flags.as_ref().and_then(|flags| flags.get(at));
            let cell = if needs_data { data.and_then(|data| data.get(at)) } else { None };
            // a cell that is undefined has nothing to show
            let (correlations, channels) = match (cell, flags) {
                (Some((correlations, channels, _)), _) => (correlations, channels),
                (None, Some((correlations, channels, _))) if !needs_data => (correlations, channels),
                _ => continue,
            };
            let flags =
                flags.filter(|(correlated, channeled, _)| (*correlated, *channeled) == (correlations, channels));
            let uvw = |axis: usize| match self.uvw.is_empty() {
                true => f64::NAN,
                false => self.uvw.get(3 * at + axis).copied().unwrap_or(f64::NAN),
            };
            let row = Row {
                key: self.keys[at],
                flag_row: self.flag_rows[at],
                uvw: [uvw(0), uvw(1), uvw(2)],
                data: cell.map_or(&[], |(_, _, data)| data),
                flags: flags.map_or(&[], |(_, _, flags)| flags),
                correlations,
                channels,
                axes: axes.map_or([&[]; 2], |[x, y]| [x.get(at), y.get(at)]),
            };
            fold.sums.add(&row, &fold.selection, &fold.names);
        }
        if !fold.selection.scans.is_empty() {
            self.keys.iter().for_each(|key| fold.scans.add(key.scan));
        }
        fold.rows_used += self.rows;
        fold.bytes += self.bytes;
        fold.pending.pop_front();
    }
}

/// So that an integration is in one block only, start and end of `block.rows`, if below row
/// `block.align`, move forward to the first row of an integration, at most to row `block.align`.
/// Neither moves if the next `SEARCHED_ROWS` rows have the same TIME.
fn actual(rows: &Rows, block: &Block) -> Result<Range<u64>> {
    let moved = |row: u64| -> Result<u64> {
        if row == 0 || row >= block.align {
            return Ok(row);
        }
        let window = row - 1..block.align.min(row + SEARCHED_ROWS);
        // a little is read first
        for end in [window.end.min(row + 64), window.end] {
            let times = rows.doubles("TIME", window.start..end)?;
            if let Some(change) = times.windows(2).position(|pair| pair[0] != pair[1]) {
                return Ok(row + change as u64);
            }
        }
        Ok(if window.end == block.align { block.align } else { row })
    };
    let (start, end) = (moved(block.rows.start)?, moved(block.rows.end)?);
    Ok(start..end.max(start))
}

#[cfg(test)]
mod tests {
    use ctds::error::{ErrorKind, Fails};

    use super::*;

    #[test]
    fn other_elements_are_not_plotted() {
        let numbers = || Values::Int(vec![1]);
        flags_of(numbers()).fails(ErrorKind::Format, "the flags have type int, expected Bool");
        complex_of(numbers())
            .fails(ErrorKind::Format, "the visibilities have type int, expected Complex, DComplex, Float or Double");
    }
}
