//! Summarizes a MeasurementSet or calibration table: observation, fields, spectral windows,
//! antennas, scans, flags.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use ctds::error::Error;
use ctds::measures::{FREQUENCY_FRAMES, correlation};
use ctds::stman::ColumnCells;
use ctds::table::ColumnInfo;
use ctds::value::{DataType, Values};
use ctds_hdf5::Source;
use ctds_hdf5::internals::{self, RowBlocks};

use crate::describe::{Antenna, antennas};
use crate::subtables::{Frames, cells, doubles, each, integers, rows, strings};

/// Most rows read for the scans; of a longer table, blocks at equal distances are read.
const MAX_ROWS: u64 = 1 << 20;

/// Blocks that are read of a sampled table.
const SAMPLES: u64 = 256;

/// Rows of the main table that are in memory at a time.
const BLOCK_ROWS: u64 = 1 << 13;

/// Most elements of FLAG that are read; if it has more, FLAG_ROW is read instead.
const MAX_FLAGS: u64 = 4 << 20;

/// Bytes of flags that are read at a time.
const FLAG_BYTES: u64 = 1 << 20;

const MAX_SCANS: usize = 100_000;

const COLUMNS: [&str; 8] =
    ["TIME", "INTERVAL", "SCAN_NUMBER", "FIELD_ID", "STATE_ID", "DATA_DESC_ID", "SPECTRAL_WINDOW_ID", "FLAG_ROW"];

/// Summary of a MeasurementSet or calibration table. Times are seconds of MJD.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The observations in the order of their numbers (rows of OBSERVATION).
    pub observations: Vec<ObservationSummary>,
    /// Number of rows of the main table of the MeasurementSet.
    pub rows: u64,
    /// Number of rows that were read for times, scans and the row counts of fields and spectral
    /// windows: all rows, or a sample of a very long table.
    pub rows_read: u64,
    /// Smallest and largest TIME of the rows that were read, in seconds of MJD; `None` without rows
    /// or TIME.
    pub time_range: Option<[f64; 2]>,
    /// Integration time in seconds: INTERVAL of the first row; `None` if it cannot be read.
    pub interval: Option<f64>,
    /// Fraction of flagged data; `None` if FLAG is missing or too large to be read, and FLAG_ROW is
    /// missing.
    pub flagged: Option<Flagged>,
    /// The antennas in the order of their numbers, from 0.
    pub antennas: Vec<Antenna>,
    /// The fields in the order of their numbers, from 0, with their counts of rows.
    pub fields: Vec<FieldSummary>,
    /// The spectral windows in the order of their numbers, from 0, with their counts of rows.
    pub spectral_windows: Vec<WindowSummary>,
    /// The scans in ascending order of their numbers.
    pub scans: Vec<ScanSummary>,
    /// Messages about columns of the main table that could not be read.
    pub problems: Vec<String>,
}

/// Summary of one row of OBSERVATION. Strings are empty where the table has none.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct ObservationSummary {
    /// Name of the telescope, from TELESCOPE_NAME.
    pub telescope: String,
    /// Name of the observer, from OBSERVER.
    pub observer: String,
    /// Name of the project, from PROJECT.
    pub project: String,
}

/// Summary of one row of FIELD, with its number of rows in the main table.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct FieldSummary {
    /// Number of the field, from 0: FIELD_ID.
    pub id: usize,
    /// Name of the field, from the column NAME; empty if it has none.
    pub name: String,
    /// CODE of the field, which names its purpose; often empty.
    pub code: String,
    /// Longitude and latitude of the phase centre in radians: the constant term of PHASE_DIR, else
    /// of REFERENCE_DIR; `None` if unknown.
    pub direction: Option<[f64; 2]>,
    /// Reference frame of the field's direction, such as `J2000`; empty if none is recorded.
    pub frame: String,
    /// Number of rows of the main table whose FIELD_ID is `id`, among the rows that were read
    /// ([`Summary::rows_read`]).
    pub rows: u64,
}

/// Summary of one row of SPECTRAL_WINDOW. Frequencies are in Hz.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct WindowSummary {
    /// Number of the spectral window (its row in SPECTRAL_WINDOW), from 0.
    pub id: usize,
    /// Name of the spectral window, from the column NAME; often empty.
    pub name: String,
    /// Number of channels of the spectral window.
    pub channels: u64,
    /// Centre frequency of the first channel in Hz; `None` if unknown.
    pub first: Option<f64>,
    /// Centre frequency of the last channel in Hz; `None` if unknown.
    pub last: Option<f64>,
    /// Width of the first channel in Hz; negative if frequencies descend; `None` if unknown.
    pub width: Option<f64>,
    /// Total bandwidth of the spectral window in Hz, from TOTAL_BANDWIDTH; `None` if unknown.
    pub bandwidth: Option<f64>,
    /// Reference frame of the frequencies of the spectral window, such as `TOPO`; empty if none is
    /// recorded.
    pub frame: String,
    /// Names of the correlations, such as `XX`, of all polarization setups (rows of POLARIZATION)
    /// that are used with the spectral window.
    pub correlations: Vec<String>,
    /// Number of rows of the main table with the spectral window, among the rows that were read
    /// ([`Summary::rows_read`]).
    pub rows: u64,
}

/// Summary of the rows with one SCAN_NUMBER.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct ScanSummary {
    /// Number of the scan: SCAN_NUMBER.
    pub number: i64,
    /// Smallest and largest TIME of the scan in seconds of MJD, among the rows that were read;
    /// `None` without finite TIMEs.
    pub time_range: Option<[f64; 2]>,
    /// Mean integration time in seconds: INTERVAL of the rows of the scan that were read; `None`
    /// without finite ones.
    pub interval: Option<f64>,
    /// Number of rows of the scan, among the rows that were read.
    pub rows: u64,
    /// Numbers of the fields in the scan (FIELD_ID), ascending.
    pub fields: BTreeSet<i64>,
    /// Numbers of the spectral windows in the scan, ascending: rows of SPECTRAL_WINDOW from 0
    /// (SPECTRAL_WINDOW_ID, not DATA_DESC_ID).
    pub spectral_windows: BTreeSet<i64>,
    /// Intents of the scan, from OBS_MODE of STATE.
    pub intents: BTreeSet<String>,
}

/// Fraction of flagged data in a MeasurementSet, and the kind of data that was counted: elements of
/// FLAG, or rows.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Flagged {
    /// Fraction of the elements of FLAG, or of the rows, that is flagged in the whole
    /// MeasurementSet, from 0 to 1.
    pub fraction: f64,
    /// Kind of the data that was counted: `elements` of FLAG, including those of rows that FLAG_ROW
    /// flags; or `rows`, by FLAG_ROW alone.
    pub of: &'static str,
}

impl Summary {
    /// Summarizes a source whose main table has TIME and ANTENNA1, and a subtable ANTENNA, FIELD or
    /// SPECTRAL_WINDOW; `None` for any other source. Parts that cannot be read are left out.
    pub fn of(source: &Source) -> Option<Self> {
        let main = Main { source };
        let is_subtable = |name: &str| source.tables().iter().any(|table| table.name == name);
        let has_parts = ["ANTENNA", "FIELD", "SPECTRAL_WINDOW"].into_iter().any(is_subtable);
        if !has_parts || main.column("TIME").is_none() || main.column("ANTENNA1").is_none() {
            return None;
        }
        let observer = strings(source, "OBSERVATION", "OBSERVER");
        let project = strings(source, "OBSERVATION", "PROJECT");
        let text = |list: &[String], number: usize| list.get(number).cloned().unwrap_or_default();
        let telescopes = strings(source, "OBSERVATION", "TELESCOPE_NAME").into_iter().enumerate();
        let observation = |(number, telescope)| ObservationSummary {
            telescope,
            observer: text(&observer, number),
            project: text(&project, number),
        };
        let mut summary = Summary {
            observations: telescopes.map(observation).collect(),
            rows: source.tables().first().and_then(|table| table.rows().ok()).unwrap_or(0),
            rows_read: 0,
            time_range: None,
            interval: None,
            flagged: None,
            antennas: antennas(source),
            fields: fields(source),
            spectral_windows: windows(source),
            scans: Vec::new(),
            problems: Vec::new(),
        };
        summary.read_main(&main);
        Some(summary)
    }

    fn read_main(&mut self, main: &Main<'_>) {
        let blocks = row_blocks(self.rows);
        self.rows_read = blocks.iter().map(|block| block.end - block.start).sum();
        let windows = main.column("DATA_DESC_ID").is_some().then(|| {
            // rows refer to spectral windows by the rows of this subtable
            integers(main.source, "DATA_DESCRIPTION", "SPECTRAL_WINDOW_ID")
        });
        let mut names = COLUMNS.to_vec();
        // each round leaves out a column
        let found = loop {
            match MainRows::read(main, &names, &blocks, windows.as_deref()) {
                Ok(found) => break found,
                Err((unreadable, error)) => {
                    self.problems.push(format!("column {unreadable} cannot be read: {error}"));
                    names.retain(|name| *name != unreadable);
                }
            }
        };
        self.interval = main.first("INTERVAL");
        self.time_range = found.time_range;
        for (id, rows) in found.fields {
            if let Some(field) = usize::try_from(id).ok().and_then(|id| self.fields.get_mut(id)) {
                field.rows += rows;
            }
        }
        for (id, rows) in found.windows {
            if let Some(window) = usize::try_from(id).ok().and_then(|id| self.spectral_windows.get_mut(id)) {
                window.rows += rows;
            }
        }
        self.scans = found.scans.summaries(&strings(main.source, "STATE", "OBS_MODE"));
        let flag_row = found.flag_row.as_slice();
        self.flagged = main.flagged(self.rows, flag_row).or_else(|| {
            let flagged = flag_row.iter().filter(|flag| **flag).count();
            (!flag_row.is_empty()).then(|| Flagged { fraction: flagged as f64 / flag_row.len() as f64, of: "rows" })
        });
    }
}

struct Main<'a> {
    source: &'a Source,
}

impl Main<'_> {
    fn columns(&self) -> &[ColumnInfo] {
        self.source.tables().first().and_then(|main| main.columns().ok()).unwrap_or_default()
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|info| info.desc.name == name)
    }

    /// `None` if the column is missing or the element cannot be read.
    fn first(&self, name: &str) -> Option<f64> {
        let cells = internals::cells(self.source, 0, self.column(name)?).ok()?;
        let mut values = Values::new(DataType::Double);
        cells.read_rows(0..1, &mut values).ok()?;
        doubles(&Some(values))?.first().copied()
    }

    /// Fraction flagged by FLAG or by `flag_row`, which may be empty. `None` if FLAG is missing,
    /// unreadable, empty or too large, or if `flag_row` has only some of the `rows` rows.
    fn flagged(&self, rows: u64, flag_row: &[bool]) -> Option<Flagged> {
        let index = self.column("FLAG")?;
        let cells = internals::cells(self.source, 0, index).ok()?;
        // shapes may differ: the first and the last row stand for all
        let elements = |row: u64| cells.cell_shape(row).ok().flatten().map_or(Ok(0), |shape| shape.elements());
        let largest = elements(0).ok()?.max(elements(rows.checked_sub(1)?).ok()?);
        // of a long table FLAG_ROW has a sample
        let has_flag_row = flag_row.is_empty() || flag_row.len() as u64 == rows;
        if largest.checked_mul(rows)? > MAX_FLAGS || rows > MAX_FLAGS || !has_flag_row {
            return None;
        }
        let (mut total, mut flagged) = (0, 0);
        let info = &self.columns()[index];
        let mut values = Values::new(info.data_type());
        for block in RowBlocks::new(info, &*cells, 0..rows, FLAG_BYTES) {
            let block = block.ok()?;
            values.clear();
            block.read(&*cells, &mut values).ok()?;
            let Values::Bool(mut flags) = values else { return None };
            let mut start = 0;
            for (number, row) in block.rows.clone().enumerate() {
                let Some(shape) = block.shapes.of(number) else { continue };
                let of_part = block.part.as_ref().map_or(shape, |part| &part.shape);
                let end = start + of_part.elements().ok()? as usize;
                let cell = flags.get(start..end)?;
                let is_flagged = flag_row.get(row as usize) == Some(&true);
                flagged += if is_flagged { cell.len() } else { cell.iter().filter(|flag| **flag).count() };
                start = end;
            }
            total += flags.len();
            if total as u64 > 4 * MAX_FLAGS {
                return None;
            }
            flags.clear();
            values = Values::Bool(flags);
        }
        (total > 0).then(|| Flagged { fraction: flagged as f64 / total as f64, of: "elements" })
    }
}

/// The blocks that are read of `rows` rows: all, or a sample if they are too many.
fn row_blocks(rows: u64) -> Vec<Range<u64>> {
    if rows <= MAX_ROWS {
        return (0..rows.div_ceil(BLOCK_ROWS))
            .map(|block| block * BLOCK_ROWS..((block + 1) * BLOCK_ROWS).min(rows))
            .collect();
    }
    let length = MAX_ROWS / SAMPLES;
    let start = |block: u64| (u128::from(rows - length) * u128::from(block) / u128::from(SAMPLES - 1)) as u64;
    (0..SAMPLES).map(|block| start(block)..start(block) + length).collect()
}

#[derive(Debug, Default)]
struct MainRows {
    /// Smallest and largest finite TIME so far, in seconds of MJD.
    time_range: Option<[f64; 2]>,
    /// Number of rows of each FIELD_ID.
    fields: BTreeMap<i64, u64>,
    /// Number of rows of each SPECTRAL_WINDOW_ID, -1 for the rows whose window is unknown.
    windows: BTreeMap<i64, u64>,
    scans: Scans,
    /// Flags of all rows that were read; empty if the table lacks it.
    flag_row: Vec<bool>,
}

/// A scalar column, of which a block of rows is in memory.
struct BlockColumn<'a> {
    name: &'static str,
    cells: Arc<dyn ColumnCells + 'a>,
    values: Values,
    /// Integers; DATA_DESC_ID is replaced by its SPECTRAL_WINDOW_ID, -1 if unknown.
    ids: Vec<i64>,
}

impl MainRows {
    /// Reads those of the columns `names` that exist. `windows`: spectral window of each row of
    /// DATA_DESCRIPTION; `None` if the main table itself refers to windows. Errors name the column.
    fn read(
        main: &Main<'_>,
        names: &[&'static str],
        blocks: &[Range<u64>],
        windows: Option<&[i64]>,
    ) -> std::result::Result<Self, (&'static str, Error)> {
        let mut columns = Vec::new();
        for &name in names {
            let Some(index) = main.column(name) else { continue };
            let cells = internals::cells(main.source, 0, index).map_err(|error| (name, error))?;
            let values = Values::new(main.columns()[index].data_type());
            columns.push(BlockColumn { name, cells, values, ids: Vec::new() });
        }
        let mut found = MainRows::default();
        for block in blocks {
            for BlockColumn { name, cells, values, ids } in &mut columns {
                values.clear();
                cells.read_rows(block.clone(), values).map_err(|error| (*name, error))?;
                values.integers_into(ids);
                if let ("DATA_DESC_ID", Some(windows)) = (*name, windows) {
                    let window = |id: i64| usize::try_from(id).ok().and_then(|id| windows.get(id)).copied();
                    ids.iter_mut().for_each(|id| *id = window(*id).unwrap_or(-1));
                }
            }
            found.add(&columns);
        }
        Ok(found)
    }

    fn add(&mut self, columns: &[BlockColumn<'_>]) {
        let column = |name: &str| columns.iter().find(|column| column.name == name);
        let ids = |name: &str| column(name).map_or(&[][..], |column| &column.ids);
        let doubles = |name: &str| match column(name).map(|column| &column.values) {
            Some(Values::Double(values)) => values.as_slice(),
            _ => &[],
        };
        let times = doubles("TIME");
        let fields = ids("FIELD_ID");
        let windows = column("DATA_DESC_ID").map_or_else(|| ids("SPECTRAL_WINDOW_ID"), |column| &column.ids);
        self.time_range = widest(self.time_range, range(times));
        count(&mut self.fields, fields);
        count(&mut self.windows, windows);
        self.scans.add(&ScanColumns {
            scans: ids("SCAN_NUMBER"),
            times,
            intervals: doubles("INTERVAL"),
            fields,
            windows,
            states: ids("STATE_ID"),
        });
        if let Some(Values::Bool(flags)) = column("FLAG_ROW").map(|column| &column.values) {
            self.flag_row.extend_from_slice(flags);
        }
    }
}

/// Columns of a block from which scans are summarized; those that the table lacks are empty.
struct ScanColumns<'a> {
    scans: &'a [i64],
    times: &'a [f64],
    intervals: &'a [f64],
    fields: &'a [i64],
    /// SPECTRAL_WINDOW_ID of each row, -1 if unknown.
    windows: &'a [i64],
    states: &'a [i64],
}

/// Scans by their numbers.
#[derive(Debug, Default)]
struct Scans(BTreeMap<i64, Scan>);

#[derive(Debug, Default)]
struct Scan {
    summary: ScanSummary,
    /// Rows of STATE.
    states: BTreeSet<i64>,
    /// Sum of the finite INTERVALs.
    interval: f64,
    intervals: u64,
}

impl Scans {
    /// Scans beyond [`MAX_SCANS`] are left out.
    fn add(&mut self, columns: &ScanColumns<'_>) {
        let mut start = 0;
        while start < columns.scans.len() {
            // rows of a scan follow each other as a rule
            let number = columns.scans[start];
            let end = start + columns.scans[start..].iter().take_while(|scan| **scan == number).count();
            if self.0.len() < MAX_SCANS || self.0.contains_key(&number) {
                let Scan { summary: scan, states, interval, intervals } = self.0.entry(number).or_default();
                scan.number = number;
                scan.rows += (end - start) as u64;
                for &found in part(columns.intervals, start..end).iter().filter(|found| found.is_finite()) {
                    *interval += found;
                    *intervals += 1;
                }
                scan.time_range = widest(scan.time_range, range(part(columns.times, start..end)));
                collect(&mut scan.fields, part(columns.fields, start..end));
                collect(&mut scan.spectral_windows, part(columns.windows, start..end));
                collect(states, part(columns.states, start..end));
            }
            start = end;
        }
    }

    /// The summaries with their intents; `modes` has OBS_MODE of each row of STATE.
    fn summaries(self, modes: &[String]) -> Vec<ScanSummary> {
        let summary = |Scan { summary: mut scan, states, interval, intervals }: Scan| {
            scan.interval = (intervals > 0).then(|| interval / intervals as f64);
            let modes = states.into_iter().filter_map(|state| modes.get(usize::try_from(state).ok()?));
            let intents = modes.flat_map(|mode| mode.split(',')).map(str::trim).filter(|intent| !intent.is_empty());
            scan.intents.extend(intents.map(str::to_owned));
            scan
        };
        self.0.into_values().map(summary).collect()
    }
}

fn count(counts: &mut BTreeMap<i64, u64>, numbers: &[i64]) {
    for equal in numbers.chunk_by(|a, b| a == b) {
        *counts.entry(equal[0]).or_default() += equal.len() as u64;
    }
}

/// Empty if the table lacks the column.
fn part<T>(values: &[T], rows: Range<usize>) -> &[T] {
    values.get(rows).unwrap_or_default()
}

/// Negative numbers, which mean that nothing is referred to, are left out.
fn collect(set: &mut BTreeSet<i64>, numbers: &[i64]) {
    let mut before = None;
    for &number in numbers {
        if before != Some(number) && number >= 0 {
            set.insert(number);
        }
        before = Some(number);
    }
}

/// The smallest and the largest finite number.
fn range(numbers: &[f64]) -> Option<[f64; 2]> {
    let finite = numbers.iter().copied().filter(|number| number.is_finite());
    finite.fold(None, |range, number| match range {
        Some([low, high]) => Some([number.min(low), number.max(high)]),
        None => Some([number, number]),
    })
}

/// The smallest range that includes both ranges; `None` is a range without numbers.
fn widest(one: Option<[f64; 2]>, other: Option<[f64; 2]>) -> Option<[f64; 2]> {
    match (one, other) {
        (Some([a, b]), Some([c, d])) => Some([a.min(c), b.max(d)]),
        _ => one.or(other),
    }
}

fn fields(source: &Source) -> Vec<FieldSummary> {
    let (names, codes) = (strings(source, "FIELD", "NAME"), strings(source, "FIELD", "CODE"));
    let direction = |column: &str| {
        each(source, "FIELD", column, |values| match values? {
            // the first of the coefficients of a polynomial in time
            Values::Double(values) => values.get(..2)?.try_into().ok(),
            _ => None,
        })
    };
    let column = ["PHASE_DIR", "REFERENCE_DIR"].into_iter().find(|column| !direction(column).is_empty());
    let directions: Vec<Option<[f64; 2]>> = column.map(direction).unwrap_or_default();
    let frames = column.map(|column| Frames::of(source, column)).unwrap_or_default();
    let field = |id: usize| FieldSummary {
        id,
        name: names.get(id).cloned().unwrap_or_default(),
        code: codes.get(id).cloned().unwrap_or_default(),
        direction: directions.get(id).copied().flatten(),
        frame: frames.name(id),
        rows: 0,
    };
    (0..rows(source, "FIELD")).map(field).collect()
}

fn windows(source: &Source) -> Vec<WindowSummary> {
    const TABLE: &str = "SPECTRAL_WINDOW";
    let names = strings(source, TABLE, "NAME");
    let counts = integers(source, TABLE, "NUM_CHAN");
    let frames = integers(source, TABLE, "MEAS_FREQ_REF");
    let ends = |column: &str| {
        each(source, TABLE, column, |values| {
            let values = doubles(&values)?;
            Some((values.len() as u64, *values.first()?, *values.last()?))
        })
    };
    let (frequencies, widths) = (ends("CHAN_FREQ"), ends("CHAN_WIDTH"));
    let bandwidths = each(source, TABLE, "TOTAL_BANDWIDTH", |values| doubles(&values)?.first().copied());
    let mut correlations = correlations(source);
    let window = |id: usize| {
        let frequencies = frequencies.get(id).copied().flatten();
        let count = counts.get(id).and_then(|&count| u64::try_from(count).ok());
        let frame = frames.get(id).and_then(|&code| FREQUENCY_FRAMES.get(usize::try_from(code).ok()?));
        WindowSummary {
            id,
            name: names.get(id).cloned().unwrap_or_default(),
            channels: count.or(frequencies.map(|(count, ..)| count)).unwrap_or(0),
            first: frequencies.map(|(_, first, _)| first),
            last: frequencies.map(|(_, _, last)| last),
            width: widths.get(id).copied().flatten().map(|(_, first, _)| first),
            bandwidth: bandwidths.get(id).copied().flatten(),
            frame: frame.map_or_else(String::new, ToString::to_string),
            correlations: correlations.remove(&(id as i64)).unwrap_or_default(),
            rows: 0,
        }
    };
    (0..rows(source, TABLE)).map(window).collect()
}

/// Names of the correlations of each SPECTRAL_WINDOW_ID: those of all polarization setups that
/// DATA_DESCRIPTION combines with the window, each name once.
fn correlations(source: &Source) -> BTreeMap<i64, Vec<String>> {
    let windows = integers(source, "DATA_DESCRIPTION", "SPECTRAL_WINDOW_ID");
    let polarizations = integers(source, "DATA_DESCRIPTION", "POLARIZATION_ID");
    let types = cells(source, "POLARIZATION", "CORR_TYPE");
    let mut found: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for (window, polarization) in windows.into_iter().zip(polarizations) {
        let types = usize::try_from(polarization).ok().and_then(|number| types.get(number)?.as_ref()?.integers());
        let names = found.entry(window).or_default();
        for name in types.unwrap_or_default().into_iter().map(correlation) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_short_tables_and_both_ends_of_long_ones() {
        assert!(row_blocks(0).is_empty());
        let blocks = row_blocks(BLOCK_ROWS + 1);
        assert_eq!(blocks, [0..BLOCK_ROWS, BLOCK_ROWS..BLOCK_ROWS + 1]);
        for rows in [MAX_ROWS + 1, 1 << 40, u64::MAX] {
            let blocks = row_blocks(rows);
            assert_eq!(blocks.iter().map(|block| block.end - block.start).sum::<u64>(), MAX_ROWS);
            assert_eq!((blocks[0].start, blocks[blocks.len() - 1].end), (0, rows));
            assert!(blocks.windows(2).all(|pair| pair[0].end <= pair[1].start), "{rows}");
        }
    }

    #[test]
    fn scans_are_grouped_by_their_numbers() {
        let times = [5., 6., f64::NAN, 4., 7.];
        let block = |rows: Range<usize>| ScanColumns {
            scans: &[1, 1, 2, 1, 1][rows.clone()],
            times: &times[rows.clone()],
            intervals: &[1., 2., f64::NAN, 3., f64::INFINITY][rows.clone()],
            fields: &[0, 0, 3, -1, 4][rows.clone()],
            windows: &[],
            states: &[0, 1, 7, 0, 0][rows],
        };
        let modes = ["TARGET,OTHER".to_owned(), "TARGET".to_owned()];
        for middle in 0..=5 {
            let mut scans = Scans::default();
            scans.add(&block(0..middle));
            scans.add(&block(middle..5));
            let scans = scans.summaries(&modes);
            assert_eq!(scans.len(), 2);
            assert_eq!((scans[0].number, scans[0].rows, scans[0].time_range), (1, 4, Some([4., 7.])));
            assert_eq!(scans[0].fields, BTreeSet::from([0, 4]));
            assert_eq!(scans[0].intents, BTreeSet::from(["OTHER".to_owned(), "TARGET".to_owned()]));
            assert_eq!((scans[1].time_range, scans[1].intents.len()), (None, 0));
            assert_eq!([scans[0].interval, scans[1].interval], [Some(2.), None]);
        }
    }

    #[test]
    fn numbers_are_counted_in_blocks() {
        let mut counts = BTreeMap::new();
        count(&mut counts, &[3, 3, 1, 3]);
        count(&mut counts, &[3, -1]);
        assert_eq!(counts, BTreeMap::from([(-1, 1), (1, 1), (3, 4)]));
    }
}
