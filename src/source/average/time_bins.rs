//! Finds the time bins of a main table: the rows of one baseline in one bin are averaged to one
//! row.

use std::collections::HashMap;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::table::ColumnCells;
use crate::value::{DataType, Values};

/// Rows whose cells are in memory at a time.
const BLOCK_ROWS: u64 = 1 << 14;
/// Baselines, and combinations of field, scan and other numbers; more are an error.
const MAX_COMBINATIONS: usize = 1 << 20;
/// Bytes for each row while bins are found, in the order of time.
const BYTES_PER_ROW: u64 = 20;
/// The same, not in the order of time.
const BYTES_PER_UNORDERED_ROW: u64 = 48;
/// Part of INTERVAL before the end of a bin that belongs to the next, since times are rounded.
const TOLERANCE: f64 = 1e-3;

/// Bins in the order of the averaged rows.
#[derive(Debug)]
pub(super) enum Bins {
    /// Number of rows, each a bin of its own.
    EachRow(u64),
    Time(TimeBins),
}

#[derive(Debug)]
pub(super) struct TimeBins {
    /// Rows bin after bin, in the order of time within each.
    members: Vec<u32>,
    /// Index in `members` of the first row of each bin, then the end of the last.
    starts: Vec<u32>,
    /// Middle of each bin, in s as TIME.
    times: Vec<f64>,
}

impl Bins {
    pub(super) fn len(&self) -> u64 {
        match self {
            Bins::EachRow(rows) => *rows,
            Bins::Time(bins) => bins.times.len() as u64,
        }
    }

    /// Bins are counted from the first of `bins`.
    pub(super) fn for_each(&self, bins: Range<u64>, mut each: impl FnMut(u64, usize)) {
        match self {
            Bins::EachRow(_) => bins.enumerate().for_each(|(number, row)| each(row, number)),
            Bins::Time(times) => {
                for (number, bin) in bins.enumerate() {
                    times.members(bin).iter().for_each(|&row| each(row.into(), number));
                }
            }
        }
    }

    /// `None` if the bin does not exist.
    pub(super) fn first(&self, bin: u64) -> Option<u64> {
        match self {
            Bins::EachRow(rows) => (bin < *rows).then_some(bin),
            Bins::Time(times) => times.members(bin).first().map(|&row| row.into()),
        }
    }

    /// Middle in s; `None` if rows are not averaged in time, or the bin does not exist.
    pub(super) fn time(&self, bin: u64) -> Option<f64> {
        match self {
            Bins::EachRow(_) => None,
            Bins::Time(times) => times.times.get(bin as usize).copied(),
        }
    }

    /// Smallest range with all rows of `bins`.
    pub(super) fn hull(&self, bins: &Range<u64>) -> Range<u64> {
        let (mut low, mut high) = (u64::MAX, 0);
        match self {
            Bins::EachRow(_) => return bins.clone(),
            Bins::Time(_) => self.for_each(bins.clone(), |row, _| (low, high) = (low.min(row), high.max(row + 1))),
        }
        low.min(high)..high
    }
}

impl TimeBins {
    fn members(&self, bin: u64) -> &[u32] {
        let bounds = self.starts.get(bin as usize..bin as usize + 2);
        let [start, end] = bounds.unwrap_or(&[0, 0]) else { return &[] };
        &self.members[*start as usize..*end as usize]
    }
}

/// TIME, INTERVAL, and the integers that identify a baseline, a field, a scan …
pub(super) struct KeyCells<'a> {
    pub(super) time: Box<dyn ColumnCells + 'a>,
    /// Unit s; `None` without such a column of doubles.
    pub(super) interval: Option<Box<dyn ColumnCells + 'a>>,
    /// Bins of all baselines begin and end at the same times.
    pub(super) baseline: Vec<Numbers<'a>>,
    /// Each combination of their values (field, scan …) has bins of its own.
    pub(super) others: Vec<Numbers<'a>>,
}

/// Integers that must be equal in a bin, such as ANTENNA1 or FIELD_ID.
pub(super) struct Numbers<'a> {
    pub(super) cells: Box<dyn ColumnCells + 'a>,
    pub(super) data_type: DataType,
}

/// A bin of all baselines, before it is divided among them. Times are in s as TIME.
#[derive(Debug, Clone, Copy)]
struct SharedBin {
    /// TIME of the earliest row.
    first: f64,
    /// A row is in a later bin if its TIME is this or later, or at most a thousandth of its
    /// INTERVAL earlier; those with the TIME of the earliest row are always in this one.
    limit: f64,
    /// Least TIME - INTERVAL / 2.
    start: f64,
    /// Greatest TIME + INTERVAL / 2; may be later than `limit`.
    end: f64,
}

/// Bins of length `seconds`, with the rows of each baseline; `Limit` for too many rows or
/// combinations of numbers, or more than `max_memory` bytes.
pub(super) fn find(
    keys: &KeyCells<'_>,
    rows: u64,
    seconds: f64,
    max_memory: u64,
    progress: &dyn Progress,
) -> Result<TimeBins> {
    if rows >= u64::from(u32::MAX) {
        return Err(Error::limit(format!("averaging {rows} rows; the limit is {}", u32::MAX)));
    }
    check_memory(rows, BYTES_PER_ROW, max_memory)?;
    let order = time_order(keys, rows, max_memory, progress)?;
    let (mut frames, mut baselines) = (Numbering::default(), Numbering::default());
    let mut frame_of: Vec<u32> = Vec::with_capacity(rows as usize);
    let mut baseline_of: Vec<u32> = Vec::with_capacity(rows as usize);
    let mut shared: Vec<SharedBin> = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    // rows out of order are assigned when all are known
    let mut unordered: Vec<(f64, f64)> = Vec::new();
    for block in blocks(rows) {
        progress.go_on()?;
        let times = doubles(&*keys.time, block.clone())?;
        let intervals = match &keys.interval {
            Some(cells) => doubles(&**cells, block.clone())?,
            None => vec![0.0; times.len()],
        };
        frames.number(&keys.others, block.clone(), &mut frame_of)?;
        baselines.number(&keys.baseline, block.clone(), &mut baseline_of)?;
        if order.is_some() {
            unordered.extend(times.into_iter().zip(intervals));
            continue;
        }
        for (row, (time, interval)) in (block.start as usize..).zip(times.into_iter().zip(intervals)) {
            frame_of[row] = assign(&mut shared, &mut open, frame_of[row], time, interval, seconds);
        }
    }
    if let Some(order) = &order {
        for &row in order {
            let (time, interval) = unordered[row as usize];
            let frame = frame_of[row as usize];
            frame_of[row as usize] = assign(&mut shared, &mut open, frame, time, interval, seconds);
        }
    }
    drop(unordered);
    Ok(gather(&shared, &frame_of, &baseline_of, baselines.len(), order.as_deref()))
}

/// Returns the index in `shared` of a row's bin; rows come in ascending order of TIME. `frame` is
/// the row's combination of field, scan …; `open` has the last bin of each frame, `u32::MAX` before
/// its first. A row past the last bin begins a new one at `time - interval / 2`.
fn assign(shared: &mut Vec<SharedBin>, open: &mut Vec<u32>, frame: u32, time: f64, interval: f64, seconds: f64) -> u32 {
    let frame = frame as usize;
    if open.len() <= frame {
        open.resize(frame + 1, u32::MAX);
    }
    let (start, end) = (time - interval / 2.0, time + interval / 2.0);
    if let Some(bin) = shared.get_mut(open[frame] as usize)
        && (time < bin.limit - TOLERANCE * interval || time == bin.first)
    {
        (bin.start, bin.end) = (bin.start.min(start), bin.end.max(end));
        return open[frame];
    }
    open[frame] = shared.len() as u32;
    shared.push(SharedBin { first: time, limit: start + seconds, start, end });
    open[frame]
}

/// Divides each shared bin into one for each baseline, in the order of their first rows. `bin_of`
/// and `baseline_of` are by row; `order` has the rows in the order of TIME, if the table has not.
fn gather(
    shared: &[SharedBin],
    bin_of: &[u32],
    baseline_of: &[u32],
    baselines: usize,
    order: Option<&[u32]>,
) -> TimeBins {
    // rows by shared bin, in the order of time within each
    let mut next = vec![0u32; shared.len() + 1];
    bin_of.iter().for_each(|&bin| next[bin as usize + 1] += 1);
    (1..next.len()).for_each(|bin| next[bin] += next[bin - 1]);
    let ends: Vec<u32> = next[1..].to_vec();
    let mut members = vec![0u32; bin_of.len()];
    let mut place = |row: u32| {
        let to = &mut next[bin_of[row as usize] as usize];
        members[*to as usize] = row;
        *to += 1;
    };
    match order {
        Some(order) => order.iter().for_each(|&row| place(row)),
        None => (0..bin_of.len() as u32).for_each(&mut place),
    }
    let (mut starts, mut times) = (vec![0u32], Vec::new());
    // the averaged row of each baseline, in the shared bin at hand
    let mut known = vec![u32::MAX; baselines];
    let mut start = 0;
    let mut by_row: Vec<(u32, u32)> = Vec::new();
    for (bin, &end) in shared.iter().zip(&ends) {
        let rows = &mut members[start as usize..end as usize];
        start = end;
        by_row.clear();
        let mut count = 0;
        for &row in rows.iter() {
            let number = &mut known[baseline_of[row as usize] as usize];
            if *number == u32::MAX {
                *number = count;
                count += 1;
            }
            by_row.push((*number, row));
        }
        rows.iter().for_each(|&row| known[baseline_of[row as usize] as usize] = u32::MAX);
        by_row.sort_by_key(|&(number, _)| number);
        let first = *starts.last().unwrap_or(&0);
        for (place, &(number, row)) in by_row.iter().enumerate() {
            rows[place] = row;
            if by_row.get(place + 1).is_none_or(|next| next.0 != number) {
                starts.push(first + place as u32 + 1);
                times.push(bin.start + (bin.end - bin.start) / 2.0);
            }
        }
    }
    TimeBins { members, starts, times }
}

/// `None` if the table is in the order of TIME already.
fn time_order(keys: &KeyCells<'_>, rows: u64, max_memory: u64, progress: &dyn Progress) -> Result<Option<Vec<u32>>> {
    let (mut last, mut is_ordered) = (f64::NEG_INFINITY, true);
    for block in blocks(rows) {
        progress.go_on()?;
        for time in doubles(&*keys.time, block)? {
            if !time.is_finite() {
                return Err(Error::format(format!("TIME has the value {time}, expected a number of seconds")));
            }
            is_ordered &= time >= last;
            last = time;
        }
    }
    if is_ordered {
        return Ok(None);
    }
    check_memory(rows, BYTES_PER_UNORDERED_ROW, max_memory)?;
    let mut times = Vec::with_capacity(rows as usize);
    for block in blocks(rows) {
        times.extend(doubles(&*keys.time, block)?);
    }
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by(|&a, &b| times[a as usize].total_cmp(&times[b as usize]));
    Ok(Some(order))
}

fn check_memory(rows: u64, row_bytes: u64, max_memory: u64) -> Result<()> {
    let needed = rows.saturating_mul(row_bytes);
    if needed > max_memory {
        return Err(Error::limit(format!(
            "averaging {rows} rows in time needs {needed} bytes of memory, {row_bytes} for each row, and {max_memory} are allowed; allow more, or average parts of the rows"
        )));
    }
    Ok(())
}

fn blocks(rows: u64) -> impl Iterator<Item = Range<u64>> {
    (0..rows).step_by(BLOCK_ROWS as usize).map(move |start| start..rows.min(start + BLOCK_ROWS))
}

/// All cells must be defined.
pub(super) fn doubles(cells: &dyn ColumnCells, rows: Range<u64>) -> Result<Vec<f64>> {
    let mut values = Values::new(DataType::Double);
    cells.read_rows(rows.clone(), &mut values)?;
    match values {
        Values::Double(values) if values.len() as u64 == rows.end - rows.start => Ok(values),
        found => Err(undefined(&rows, found.len())),
    }
}

fn undefined(rows: &Range<u64>, found: usize) -> Error {
    let (start, end) = (rows.start, rows.end);
    Error::format(format!("rows {start}..{end} of a column of scalars have {found} values"))
}

/// Numbers combinations of integers in the order in which they first occur.
#[derive(Default)]
struct Numbering(HashMap<Box<[i64]>, u32>);

impl Numbering {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn number(&mut self, columns: &[Numbers<'_>], rows: Range<u64>, out: &mut Vec<u32>) -> Result<()> {
        let count = (rows.end - rows.start) as usize;
        let mut read = Vec::with_capacity(columns.len());
        for column in columns {
            let mut values = Values::new(column.data_type);
            column.cells.read_rows(rows.clone(), &mut values)?;
            let integers = values.integers().filter(|integers| integers.len() == count);
            read.push(integers.ok_or_else(|| undefined(&rows, values.len()))?);
        }
        let mut key = vec![0; columns.len()];
        let mut last: Option<(Box<[i64]>, u32)> = None;
        for row in 0..count {
            key.iter_mut().zip(&read).for_each(|(number, column)| *number = column[row]);
            let number = match &last {
                Some((known, number)) if **known == *key => *number,
                _ => {
                    let next = self.0.len();
                    let number = match self.0.get(&*key) {
                        Some(number) => *number,
                        None if next >= MAX_COMBINATIONS => return Err(too_many()),
                        None => {
                            self.0.insert(key.clone().into(), next as u32);
                            next as u32
                        }
                    };
                    last = Some((key.clone().into(), number));
                    number
                }
            };
            out.push(number);
        }
        Ok(())
    }
}

fn too_many() -> Error {
    Error::limit(format!(
        "the rows have more than {MAX_COMBINATIONS} combinations of antennas, or of fields, scans and other numbers: select \
         fewer rows with a condition"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Fails};
    use crate::stman::contradictory::Contradictory;
    use crate::value::{Region, Shape};

    struct Column(Values);

    impl ColumnCells for Column {
        fn cell_shape(&self, _: u64) -> Result<Option<Shape>> {
            Ok(Some(Shape::scalar()))
        }

        fn read_cell(&self, row: u64, _: Option<&Region>, out: &mut Values) -> Result<()> {
            out.extend_from(&self.0, row as usize..row as usize + 1)
        }
    }

    /// Rows and middles of bins of 10 s; each row has a time, a baseline and a scan.
    fn bins(rows: &[(f64, i32, i32)], max_memory: u64) -> Result<Vec<(Vec<u32>, f64)>> {
        let numbers =
            |values: Vec<i32>| vec![Numbers { cells: Box::new(Column(Values::Int(values))), data_type: DataType::Int }];
        let doubles = |values: Vec<f64>| Box::new(Column(Values::Double(values)));
        let keys = KeyCells {
            time: doubles(rows.iter().map(|row| row.0).collect()),
            interval: Some(doubles(vec![4.0; rows.len()])),
            baseline: numbers(rows.iter().map(|row| row.1).collect()),
            others: numbers(rows.iter().map(|row| row.2).collect()),
        };
        let found = find(&keys, rows.len() as u64, 10.0, max_memory, &())?;
        Ok((0..found.times.len()).map(|bin| (found.members(bin as u64).to_vec(), found.times[bin])).collect())
    }

    #[test]
    fn rows_of_a_baseline_within_the_time_become_one() {
        // the bin begins at 98: 108 is after its end, although it is less than 10 s after the first
        // time
        let rows = [(100.0, 7, 1), (100.0, 8, 1), (104.0, 7, 1), (107.9, 8, 1), (108.0, 7, 1), (108.0, 7, 2)];
        let expected = [(vec![0, 2], 103.95), (vec![1, 3], 103.95), (vec![4], 108.0), (vec![5], 108.0)];
        assert_eq!(bins(&rows, 1 << 20).unwrap(), expected);
    }

    #[test]
    fn rows_need_no_order() {
        let rows = [(108.0, 7, 1), (104.0, 7, 1), (100.0, 8, 1), (100.0, 7, 1)];
        let expected = [(vec![2], 102.0), (vec![3, 1], 102.0), (vec![0], 108.0)];
        assert_eq!(bins(&rows, 1 << 20).unwrap(), expected);
    }

    #[test]
    fn memory_is_bounded() {
        let rows: Vec<_> = (0..100).map(|row| (f64::from(row), row % 3, 1)).collect();
        let kind = |rows: &[(f64, i32, i32)], memory| bins(rows, memory).err().map(|error| error.kind());
        assert_eq!(kind(&rows, 1999), Some(ErrorKind::Limit));
        assert_eq!(kind(&rows, 2000), None);
        let reversed: Vec<_> = rows.iter().rev().copied().collect();
        assert_eq!(kind(&reversed, 2000), Some(ErrorKind::Limit));
        assert_eq!(kind(&reversed, 4800), None);
    }

    /// The rows themselves, as many as are asked for.
    struct Counted;

    impl ColumnCells for Counted {
        fn cell_shape(&self, _: u64) -> Result<Option<Shape>> {
            Ok(Some(Shape::scalar()))
        }

        fn read_cell(&self, row: u64, _: Option<&Region>, out: &mut Values) -> Result<()> {
            out.extend_from(&Values::Int(vec![row as i32]), 0..1)
        }
    }

    #[test]
    fn rows_that_have_no_bins() {
        bins(&[(f64::NAN, 7, 1)], 1 << 20)
            .fails(ErrorKind::Format, "TIME has the value NaN, expected a number of seconds");
        let keys = KeyCells {
            time: Box::new(Contradictory(Values::Double(vec![1.]))),
            interval: None,
            baseline: Vec::new(),
            others: Vec::new(),
        };
        let found = |rows| find(&keys, rows, 10.0, u64::MAX, &()).map(drop);
        found(3).fails(ErrorKind::Format, "rows 0..3 of a column of scalars have 1 values");
        found(1 << 33).fails(ErrorKind::Limit, "averaging 8589934592 rows; the limit is 4294967295");
        let (mut numbering, mut out) = (Numbering::default(), Vec::new());
        let columns = [Numbers { cells: Box::new(Counted), data_type: DataType::Int }];
        numbering.number(&columns, 0..MAX_COMBINATIONS as u64 + 1, &mut out).fails(
            ErrorKind::Limit,
            "the rows have more than 1048576 combinations of antennas, or of fields, scans and other numbers: select \
             fewer rows with a condition",
        );
    }
}
