//! Writes quicklooks, small versions of the visibilities, to the HDF5 file: mean, smallest and
//! largest amplitudes and fractions of flags, by time and channel. Each level has half the
//! resolution of the one before. docs/reference/layout.md, "Quicklook".

use std::collections::BTreeMap;
use std::ops::Range;

use super::plan::{Plan, TablePlan};
use crate::error::{Context, Error, Result, ResultExt, column_context as place};
use crate::h5::{Attribute, Compression, Dataset, DatasetSpec, Group};
use crate::native::{
    DEFAULT, LONG_NAME, MAIN_TABLE, QUICKLOOK, QUICKLOOK_VERSION, UNITS, auxiliary_signals, last_part, view,
};
use crate::progress::Progress;
use crate::source::Source;
use crate::table::Column;
use crate::value::{Complex32, Complex64, DataType, Element, Region, Shape, Values};

/// Time bins of the finest level.
const MAX_TIMES: u64 = 1024;
const MAX_CHANNELS: u64 = 512;
/// Samples (time bin, channel bin, correlation) of a column in the finest levels of all windows
/// together; exceeded only if these have a single time bin each.
const MAX_PLACES: u64 = 1 << 20;
/// No quicklook is written of a table with more.
const MAX_WINDOWS: usize = 256;
/// Distinct times of all windows, held in memory; with more, no quicklook is written.
const MAX_DISTINCT: usize = 1 << 22;
/// Bins in time, and in channels, of the coarsest level.
const COARSEST: usize = 64;
const BLOCK_BYTES: u64 = 16 << 20;
const BLOCK_ROWS: u64 = 1 << 16;

/// Attribute of the CF conventions; viewers show a long name in place of the name and its unit.
const COMMENT: &str = "comment";

/// Columns of real elements that are shown like visibilities.
const REAL: [&str; 1] = ["FLOAT_DATA"];

#[derive(Debug, Clone, Copy)]
struct Sum {
    amplitude: f64,
    low: f32,
    high: f32,
    /// Finite, unflagged visibilities.
    good: u32,
    flagged: u32,
    all: u32,
}

impl Default for Sum {
    fn default() -> Self {
        Sum { amplitude: 0., low: f32::INFINITY, high: f32::NEG_INFINITY, good: 0, flagged: 0, all: 0 }
    }
}

impl Sum {
    fn add(&mut self, amplitude: f64, is_flagged: bool) {
        self.all = self.all.saturating_add(1);
        if is_flagged {
            self.flagged = self.flagged.saturating_add(1);
        } else if amplitude.is_finite() {
            self.amplitude += amplitude;
            self.low = self.low.min(amplitude as f32);
            self.high = self.high.max(amplitude as f32);
            self.good = self.good.saturating_add(1);
        }
    }

    fn merge(&mut self, other: &Sum) {
        self.amplitude += other.amplitude;
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
        self.good = self.good.saturating_add(other.good);
        self.flagged = self.flagged.saturating_add(other.flagged);
        self.all = self.all.saturating_add(other.all);
    }
}

struct Key {
    time: f64,
    window: i64,
    is_cross: bool,
    is_flagged: bool,
}

#[derive(Debug, Default)]
struct Window {
    /// Times of baselines between two antennas, and of other rows: seconds as in TIME, or row
    /// numbers without it. Sorted once all rows were read.
    times: [Vec<f64>; 2],
    /// First row with a finite time; its cell shape is taken as that of all cells.
    row: u64,
}

impl Window {
    /// Whether only baselines between two antennas are shown: if the window has any.
    fn is_cross(&self) -> bool {
        !self.times[0].is_empty()
    }

    /// Times of the rows that count.
    fn counted(&self) -> &[f64] {
        &self.times[usize::from(!self.is_cross())]
    }
}

/// Finest level: sums by correlation, time bin and channel bin, channels fastest.
struct Plane {
    correlations: usize,
    channels: usize,
    /// Channels in a bin; the last may have fewer.
    each: usize,
    times: usize,
    places: usize,
    sums: Vec<Sum>,
    /// Rows left out because their cells have another shape.
    misfits: u64,
}

/// Adds the group `quicklook`; returns warnings about rows and windows that are left out.
pub(crate) fn write(source: &Source, plan: &Plan, root: &Group, progress: &dyn Progress) -> Result<Vec<String>> {
    let Some(main) = plan.tables.iter().find(|table| table.name == MAIN_TABLE) else { return Ok(Vec::new()) };
    let content = source.tables[main.source].content()?;
    let is_shown = |name: &str, data_type: DataType| {
        matches!(data_type, DataType::Complex | DataType::DComplex)
            || REAL.contains(&name) && matches!(data_type, DataType::Float | DataType::Double)
    };
    let is_array = |index: usize| content.columns()[index].desc.kind == crate::schema::ColumnKind::Array;
    let columns: Vec<_> = main
        .columns
        .iter()
        .filter(|column| is_array(column.index) && is_shown(&column.name, content.columns()[column.index].data_type()))
        .collect();
    let mut warnings = Vec::new();
    if columns.is_empty() || main.rows.is_empty() {
        warnings.push("the main table has no visibilities: no quicklook is written".to_owned());
        return Ok(warnings);
    }
    let reader = Reader { source, main };
    let Some(windows) = reader.windows(progress)? else {
        warnings.push("the main table has too many spectral windows or times: no quicklook is written".to_owned());
        return Ok(warnings);
    };
    let mut name = QUICKLOOK.to_owned();
    while root.has(&name) {
        name.push_str("__2");
    }
    let group = root.create_group(&name)?;
    group.set_attribute(QUICKLOOK_VERSION, &Attribute::Scalar(Values::Int(vec![1])))?;
    let mut first = None;
    for column in columns {
        let planes =
            reader.column(&column.name, &windows, progress).with_context(|| place(&main.name, &column.name))?;
        let of_column = group.create_group(&column.link)?;
        for id in windows.keys().filter(|id| !planes.contains_key(id)) {
            warnings.push(format!(
                "quicklook of {}: the first cell of spectral window {id} has no two axes; it is left out",
                column.name
            ));
        }
        let misfits: u64 = planes.values().map(|plane| plane.misfits).sum();
        if misfits > 0 {
            warnings
                .push(format!("quicklook of {}: {misfits} rows with cells of another shape are left out", column.name));
        }
        for (id, plane) in &planes {
            let of_window = of_column.create_group(&format!("spw_{id}"))?;
            let which = if windows[id].is_cross() { "cross" } else { "all" };
            of_window.set_attribute("baselines", &Attribute::string(which))?;
            reader.write_levels(&of_window, *id, plane, windows[id].counted())?;
            first.get_or_insert_with(|| format!("{}/{}", of_window.path(), level_name(0)));
        }
    }
    if let Some(path) = first {
        root.set_attribute(DEFAULT, &Attribute::string(path.trim_start_matches('/')))?;
    }
    Ok(warnings)
}

struct Reader<'a> {
    source: &'a Source,
    main: &'a TablePlan,
}

impl Reader<'_> {
    fn has(&self, name: &str, data_type: DataType) -> bool {
        let columns = self.source.tables[self.main.source].columns().unwrap_or_default();
        columns.iter().any(|info| info.desc.name == name && info.data_type() == data_type)
    }

    /// TIME (else the row number), DATA_DESC_ID (else SPECTRAL_WINDOW_ID, else 0), FLAG_ROW (else
    /// false), and whether ANTENNA1 and ANTENNA2 differ (without these columns true).
    fn keys(&self, rows: Range<u64>) -> Result<Vec<Key>> {
        let times: Vec<f64> = match self.has("TIME", DataType::Double) {
            true => self.source.column("TIME")?.rows::<f64>(rows.clone())?.into_iter().collect(),
            false => rows.clone().map(|row| row as f64).collect(),
        };
        let integers = |name: &str| -> Result<Option<Vec<i32>>> {
            match self.has(name, DataType::Int) {
                true => Ok(Some(self.source.column(name)?.rows::<i32>(rows.clone())?.into_iter().collect())),
                false => Ok(None),
            }
        };
        let (first, second) = (integers("ANTENNA1")?, integers("ANTENNA2")?);
        let windows = match integers("DATA_DESC_ID")? {
            Some(ids) => Some(ids),
            None => integers("SPECTRAL_WINDOW_ID")?,
        };
        let flags: Option<Vec<bool>> = match self.has("FLAG_ROW", DataType::Bool) {
            true => Some(self.source.column("FLAG_ROW")?.rows::<bool>(rows.clone())?.into_iter().collect()),
            false => None,
        };
        let key = |(row, time): (usize, f64)| Key {
            time,
            window: windows.as_ref().map_or(0, |ids| ids[row].into()),
            is_cross: first.as_ref().zip(second.as_ref()).is_none_or(|(first, second)| first[row] != second[row]),
            is_flagged: flags.as_ref().is_some_and(|flags| flags[row]),
        };
        Ok(times.into_iter().enumerate().map(key).collect())
    }

    /// Keys are DATA_DESC_ID; `None` if windows or times exceed the limits.
    fn windows(&self, progress: &dyn Progress) -> Result<Option<BTreeMap<i64, Window>>> {
        let mut windows = Windows::default();
        for rows in blocks(&self.main.rows, BLOCK_ROWS) {
            progress.go_on()?;
            rows.clone().zip(self.keys(rows)?).for_each(|(row, key)| windows.add(row, &key));
            if windows.are_too_many(MAX_DISTINCT) {
                return Ok(None);
            }
        }
        windows.sort();
        Ok(Some(windows.by_number))
    }

    /// A window is left out if its first cell is undefined, empty, without two axes, or too large.
    fn column(
        &self,
        name: &str,
        windows: &BTreeMap<i64, Window>,
        progress: &dyn Progress,
    ) -> Result<BTreeMap<i64, Plane>> {
        let column = self.source.column(name)?;
        let flags = match self.has("FLAG", DataType::Bool) {
            true => Some(self.source.column("FLAG")?),
            false => None,
        };
        let mut planes = BTreeMap::new();
        let mut largest = 1;
        for (&id, window) in windows {
            let Some(shape) = column.cell_shape(window.row)? else { continue };
            largest = largest.max(shape.elements()?);
            if let [correlations, channels] = shape[..] {
                planes.extend(
                    Plane::new((correlations, channels), window.counted().len(), windows.len())
                        .map(|plane| (id, plane)),
                );
            }
        }
        let bytes = largest.saturating_mul(1 + column.info().data_type().size() as u64);
        for rows in blocks(&self.main.rows, (BLOCK_BYTES / bytes.max(1)).clamp(1, BLOCK_ROWS)) {
            progress.go_on()?;
            let keys = self.keys(rows.clone())?;
            for (id, plane) in &mut planes {
                let window = &windows[id];
                let counts =
                    |key: &Key| key.window == *id && key.time.is_finite() && (key.is_cross || !window.is_cross());
                let numbers: Vec<usize> = (0..keys.len()).filter(|&number| counts(&keys[number])).collect();
                plane.add(&column, flags.as_ref(), window.counted(), (rows.start, &keys, numbers))?;
            }
        }
        Ok(planes)
    }

    /// `level_0` is the finest; bins are halved while they exceed [`COARSEST`].
    fn write_levels(&self, group: &Group, id: i64, plane: &Plane, times: &[f64]) -> Result<()> {
        let frequencies = self.frequencies(id).filter(|list| list.len() == plane.channels);
        let codes = self.correlations(id).filter(|list| list.len() == plane.correlations);
        let mut level = Level {
            sums: plane.sums.clone(),
            times: (0..plane.times).map(|bin| ends_of(bin, plane.times, times)).collect(),
            channels: (0..plane.places)
                .map(|at| at * plane.each..((at + 1) * plane.each).min(plane.channels))
                .collect(),
        };
        let has_time = self.has("TIME", DataType::Double);
        for number in 0.. {
            let of_level = group.create_group(&level_name(number))?;
            level.write(&of_level, plane.correlations, frequencies.as_deref(), codes.as_deref(), has_time)?;
            if level.times.len() <= COARSEST && level.channels.len() <= COARSEST {
                break;
            }
            level = level.halved(plane.correlations);
        }
        Ok(())
    }

    /// `None` if the cell of DATA_DESCRIPTION cannot be read, `id` without such a column.
    fn described(&self, id: i64, column: &str) -> Option<u64> {
        let row = u64::try_from(id).ok()?;
        match self.source.column(&format!("DATA_DESCRIPTION/{column}")) {
            Ok(column) => u64::try_from(column.scalar::<i32>(row).ok()?).ok(),
            Err(_) => Some(row),
        }
    }

    /// Unit Hz, for row `id` of DATA_DESCRIPTION.
    fn frequencies(&self, id: i64) -> Option<Vec<f64>> {
        let row = self.described(id, "SPECTRAL_WINDOW_ID")?;
        Some(self.source.column("SPECTRAL_WINDOW/CHAN_FREQ").ok()?.cell::<f64>(row).ok()?.into_iter().collect())
    }

    /// Stokes codes, for row `id` of DATA_DESCRIPTION.
    fn correlations(&self, id: i64) -> Option<Vec<i32>> {
        let row = self.described(id, "POLARIZATION_ID")?;
        Some(self.source.column("POLARIZATION/CORR_TYPE").ok()?.cell::<i32>(row).ok()?.into_iter().collect())
    }
}

#[derive(Debug, Default)]
struct Windows {
    /// Keys are DATA_DESC_ID, else SPECTRAL_WINDOW_ID, else 0.
    by_number: BTreeMap<i64, Window>,
    /// A time may occur more than once in a list that is not yet sorted.
    listed: usize,
}

impl Windows {
    /// A row whose time is not finite is ignored.
    fn add(&mut self, row: u64, key: &Key) {
        if !key.time.is_finite() {
            return;
        }
        let window = self.by_number.entry(key.window).or_insert_with(|| Window { row, ..Window::default() });
        let times = &mut window.times[usize::from(!key.is_cross)];
        if times.last() != Some(&key.time) {
            times.push(key.time);
            self.listed += 1;
        }
    }

    /// A time counts once for each window, and once more if both baselines and other rows have it.
    fn are_too_many(&mut self, most_times: usize) -> bool {
        // rows of one time need not follow each other
        if self.listed > most_times / 4 {
            self.sort();
        }
        self.by_number.len() > MAX_WINDOWS || self.listed > most_times
    }

    fn sort(&mut self) {
        for times in self.by_number.values_mut().flat_map(|window| &mut window.times) {
            times.sort_unstable_by(f64::total_cmp);
            times.dedup();
        }
        self.listed = self.by_number.values().flat_map(|window| &window.times).map(Vec::len).sum();
    }
}

fn level_name(number: usize) -> String {
    format!("level_{number}")
}

fn blocks(rows: &Range<u64>, step: u64) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = rows.end;
    rows.clone().step_by(step as usize).map(move |start| start..(start + step).min(end))
}

/// First and last time of one of `bins` bins of about equal numbers of ascending `times`.
fn ends_of(bin: usize, bins: usize, times: &[f64]) -> (f64, f64) {
    let start = |bin: usize| (bin * times.len()).div_ceil(bins.max(1));
    let last = start(bin + 1).max(start(bin) + 1) - 1;
    (times[start(bin)], times[last.min(times.len() - 1)])
}

impl Plane {
    /// Time bins keep all `windows` windows together within [`MAX_PLACES`], if possible. `None`
    /// without cells or times, or if one time bin would exceed it.
    fn new((correlations, channels): (u64, u64), times: usize, windows: usize) -> Option<Self> {
        let each = channels.div_ceil(MAX_CHANNELS).max(1);
        let places = channels.div_ceil(each);
        let line = correlations.saturating_mul(places);
        if line == 0 || times == 0 || line > MAX_PLACES {
            return None;
        }
        let most = (MAX_PLACES / windows.max(1) as u64 / line).clamp(1, MAX_TIMES);
        let times = (times as u64).min(most);
        Some(Plane {
            correlations: correlations as usize,
            channels: channels as usize,
            each: each as usize,
            times: times as usize,
            places: places as usize,
            sums: vec![Sum::default(); (line * times) as usize],
            misfits: 0,
        })
    }

    /// `keys` describe the rows of a block that begins with row `first`; `numbers` are added.
    fn add(
        &mut self,
        column: &Column<'_>,
        flags: Option<&Column<'_>>,
        times: &[f64],
        (first, keys, mut numbers): (u64, &[Key], Vec<usize>),
    ) -> Result<()> {
        let cell = Shape::from([self.correlations as u64, self.channels as u64]);
        let fits = |column: &Column<'_>, number: usize| -> Result<bool> {
            match column.info().shape.as_ref().filter(|_| column.info().is_always_defined()) {
                Some(shape) => Ok(*shape == cell),
                None => Ok(column.cell_shape(first + number as u64)?.as_ref() == Some(&cell)),
            }
        };
        let before = numbers.len();
        let mut fitting = Vec::with_capacity(before);
        for number in numbers.drain(..) {
            if fits(column, number)? {
                fitting.push(number);
            }
        }
        self.misfits += (before - fitting.len()) as u64;
        if fitting.is_empty() {
            return Ok(());
        }
        let rows: Vec<u64> = fitting.iter().map(|&number| first + number as u64).collect();
        let flags = match flags {
            Some(flags) if fitting.iter().all(|&number| fits(flags, number).unwrap_or(false)) => {
                Some(values::<bool>(flags, &rows)?)
            }
            _ => None,
        };
        let cells = Cells { keys: fitting.iter().map(|&number| &keys[number]).collect(), flags, times };
        match column.info().data_type() {
            // squares of these are exact, and in the range of the sum
            DataType::Complex => self.sum(&values::<Complex32>(column, &rows)?, &cells, |v| {
                let (re, im) = (f64::from(v.re), f64::from(v.im));
                (re * re + im * im).sqrt()
            }),
            DataType::DComplex => self.sum(&values::<Complex64>(column, &rows)?, &cells, |v| v.norm()),
            DataType::Float => self.sum(&values::<f32>(column, &rows)?, &cells, |v| f64::from(v.abs())),
            DataType::Double => self.sum(&values::<f64>(column, &rows)?, &cells, f64::abs),
            other => return Err(Error::unsupported(format!("elements of type {other} have no amplitude"))),
        }
        Ok(())
    }

    /// `values` has one of `cells` after the other, correlations fastest.
    fn sum<T: Copy>(&mut self, values: &[T], cells: &Cells<'_>, amplitude: impl Fn(T) -> f64) {
        let len = self.correlations * self.channels;
        // of a place
        let step = self.correlations * self.each;
        for (at, (key, values)) in cells.keys.iter().zip(values.chunks_exact(len)).enumerate() {
            let Ok(rank) = cells.times.binary_search_by(|time| time.total_cmp(&key.time)) else { continue };
            let bin = rank * self.times / cells.times.len();
            let flags = cells.flags.as_ref().map(|flags| &flags[at * len..(at + 1) * len]);
            for correlation in 0..self.correlations {
                let start = (correlation * self.times + bin) * self.places;
                let sums = &mut self.sums[start..start + self.places];
                for (place, (sum, values)) in sums.iter_mut().zip(values.chunks(step)).enumerate() {
                    let flags = flags.map(|flags| &flags[place * step..]);
                    for element in (correlation..values.len()).step_by(self.correlations) {
                        let is_flagged = key.is_flagged || flags.is_some_and(|flags| flags[element]);
                        sum.add(amplitude(values[element]), is_flagged);
                    }
                }
            }
        }
    }
}

/// Rows of one window that are added at a time: cells of the window's shape.
struct Cells<'a> {
    keys: Vec<&'a Key>,
    /// Correlations fastest; `None` if a cell is missing or shaped unlike the visibilities.
    flags: Option<Vec<bool>>,
    /// Distinct and ascending; the index of a row's time determines its time bin.
    times: &'a [f64],
}

fn values<T: Element>(column: &Column<'_>, rows: &[u64]) -> Result<Vec<T>> {
    let array = match rows {
        // a block as a whole is read at once
        [first, .., last] if last - first + 1 == rows.len() as u64 => column.rows::<T>(*first..last + 1)?,
        _ => column.rows_at::<T>(rows)?,
    };
    Ok(array.into_raw_vec_and_offset().0)
}

struct Level {
    /// Axes are correlation, time and channel, channels fastest.
    sums: Vec<Sum>,
    /// First and last time of each bin.
    times: Vec<(f64, f64)>,
    channels: Vec<Range<usize>>,
}

impl Level {
    fn halved(&self, correlations: usize) -> Level {
        let step = |len: usize| if len > COARSEST { 2 } else { 1 };
        let (lines, columns) = (self.times.len(), self.channels.len());
        let (down, across) = (step(lines), step(columns));
        let times: Vec<(f64, f64)> =
            self.times.chunks(down).map(|times| (times[0].0, times[times.len() - 1].1)).collect();
        let channels: Vec<Range<usize>> =
            self.channels.chunks(across).map(|places| places[0].start..places[places.len() - 1].end).collect();
        let mut sums = vec![Sum::default(); correlations * times.len() * channels.len()];
        for (at, sum) in self.sums.iter().enumerate() {
            let (correlation, line, column) = (at / columns / lines, at / columns % lines, at % columns);
            sums[(correlation * times.len() + line / down) * channels.len() + column / across].merge(sum);
        }
        Level { sums, times, channels }
    }

    fn write(
        &self,
        group: &Group,
        correlations: usize,
        frequencies: Option<&[f64]>,
        codes: Option<&[i32]>,
        has_time: bool,
    ) -> Result<()> {
        let scales = self.write_scales(group, correlations, frequencies, codes, has_time)?;
        self.write_bins(group, &scales)?;
        self.write_amplitudes(group, correlations, &scales)?;
        let axes = scales.iter().rev().map(|scale| Some(last_part(scale.path())));
        let others = auxiliary_signals(["min", "max", "flagged"]);
        view("mean", axes).iter().chain([&others]).try_for_each(|(name, value)| group.set_attribute(name, value))
    }

    /// Scales of channels, times and correlations: the order of the axes, fastest first.
    fn write_scales(
        &self,
        group: &Group,
        correlations: usize,
        frequencies: Option<&[f64]>,
        codes: Option<&[i32]>,
        has_time: bool,
    ) -> Result<[Dataset; 3]> {
        let mean = |range: &Range<usize>, list: &[f64]| list[range.clone()].iter().sum::<f64>() / range.len() as f64;
        let middles = self.times.iter().map(|(first, last)| first + (last - first) / 2.).collect();
        let time: &[(&str, &str)] = match has_time {
            true => &[(UNITS, "s"), (COMMENT, "middle of the times, MJD")],
            false => &[(LONG_NAME, "number of the row")],
        };
        let channel = match frequencies {
            Some(list) => Values::Double(self.channels.iter().map(|range| mean(range, list)).collect()),
            None => {
                Values::Double(self.channels.iter().map(|range| (range.start + range.end - 1) as f64 / 2.).collect())
            }
        };
        let of_channel: &[(&str, &str)] = match frequencies {
            Some(_) => &[(UNITS, "Hz"), (COMMENT, "mean frequency of the channels")],
            None => &[(LONG_NAME, "number of the channel")],
        };
        let corr = codes.map_or_else(|| (0..correlations as i32).collect(), <[i32]>::to_vec);
        let of_corr = if codes.is_some() { "Stokes code of the correlation" } else { "number of the correlation" };
        Ok([
            scale(group, if frequencies.is_some() { "frequency" } else { "channel" }, channel, of_channel)?,
            scale(group, if has_time { "time" } else { "row" }, Values::Double(middles), time)?,
            scale(group, "corr", Values::Int(corr), &[(LONG_NAME, of_corr)])?,
        ])
    }

    fn write_bins(&self, group: &Group, scales: &[Dataset; 3]) -> Result<()> {
        let times =
            |last: bool| Values::Double(self.times.iter().map(|ends| if last { ends.1 } else { ends.0 }).collect());
        let channels = |ends: fn(&Range<usize>) -> usize| {
            Values::Int64(self.channels.iter().map(|range| ends(range) as i64).collect())
        };
        for (name, values, axis) in [
            ("time_first", times(false), 1),
            ("time_last", times(true), 1),
            ("channel_first", channels(|range| range.start), 0),
            ("channel_end", channels(|range| range.end), 0),
        ] {
            let dataset = create(group, name, &Shape::from([values.len() as u64]), None, &values)?;
            dataset.attach_scale(0, &scales[axis])?;
        }
        Ok(())
    }

    fn write_amplitudes(&self, group: &Group, correlations: usize, scales: &[Dataset; 3]) -> Result<()> {
        let shape = Shape::from([self.channels.len() as u64, self.times.len() as u64, correlations as u64]);
        let chunk = Shape::from([shape[0], shape[1].min(256), 1]);
        let filled = |value: &dyn Fn(&Sum) -> f32| Values::Float(self.sums.iter().map(value).collect());
        let or_nan = |sum: &Sum, value: f32| if sum.good == 0 { f32::NAN } else { value };
        for (name, values, words) in [
            ("mean", filled(&|sum| or_nan(sum, (sum.amplitude / f64::from(sum.good)) as f32)), "mean amplitude"),
            ("min", filled(&|sum| or_nan(sum, sum.low)), "smallest amplitude"),
            ("max", filled(&|sum| or_nan(sum, sum.high)), "largest amplitude"),
            (
                "flagged",
                filled(&|sum| {
                    if sum.all == 0 { f32::NAN } else { (f64::from(sum.flagged) / f64::from(sum.all)) as f32 }
                }),
                "fraction of flagged cells",
            ),
        ] {
            let dataset = create(group, name, &shape, Some(chunk.clone()), &values)?;
            dataset.set_attribute(LONG_NAME, &Attribute::string(words))?;
            scales.iter().enumerate().try_for_each(|(axis, scale)| dataset.attach_scale(axis, scale))?;
        }
        Ok(())
    }
}

fn create(group: &Group, name: &str, shape: &Shape, chunk: Option<Shape>, values: &Values) -> Result<Dataset> {
    let compression = if chunk.is_some() { "gzip".parse::<Compression>()? } else { Compression::NONE };
    let spec = DatasetSpec { element: values.data_type(), shape, chunk, appendable: false, compression };
    let dataset = group.create_dataset(name, &spec)?;
    dataset.write_region(&Region::whole(shape), values).with_context(|| Context::Other(name.to_owned()))?;
    Ok(dataset)
}

fn scale(group: &Group, name: &str, values: Values, attributes: &[(&str, &str)]) -> Result<Dataset> {
    let dataset = create(group, name, &Shape::from([values.len() as u64]), None, &values)?;
    for (attribute, value) in attributes {
        dataset.set_attribute(attribute, &Attribute::string(*value))?;
    }
    dataset.make_scale(name)?;
    Ok(dataset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shared_out_evenly() {
        let times: Vec<f64> = (0..10).map(f64::from).collect();
        let found: Vec<(f64, f64)> = (0..4).map(|bin| ends_of(bin, 4, &times)).collect();
        // rank * 4 / 10
        assert_eq!(found, [(0., 2.), (3., 4.), (5., 7.), (8., 9.)]);
        assert_eq!(ends_of(0, 1, &times[..1]), (0., 0.));
    }

    #[test]
    fn times_of_all_baselines_count() {
        let mut windows = Windows::default();
        let key = |time: u32, is_cross: bool| Key { time: time.into(), window: 3, is_cross, is_flagged: false };
        // two integrations in turn, each with cross- and auto-correlations
        for row in 0..100 {
            windows.add(row, &key(row as u32 % 2, row % 4 < 2));
        }
        windows.add(100, &Key { time: f64::NAN, ..key(0, true) });
        assert!(!windows.are_too_many(4));
        assert_eq!(windows.by_number[&3].times, [[0., 1.], [0., 1.]]);
        // neither list alone is too long
        assert!(windows.are_too_many(3));
        (0..=MAX_WINDOWS).for_each(|window| windows.add(0, &Key { window: window as i64, ..key(0, true) }));
        assert!(windows.are_too_many(1000));
    }

    #[test]
    fn levels_keep_all_cells() {
        let sum = |good: u32| Sum { amplitude: f64::from(good), low: 1., high: 1., good, flagged: 1, all: good + 1 };
        let level = Level {
            sums: (0..2 * 65 * 3).map(sum).collect(),
            times: (0..65).map(|time| (f64::from(time), f64::from(time))).collect(),
            channels: vec![0..4, 4..8, 8..9],
        };
        let half = level.halved(2);
        assert_eq!((half.times.len(), half.times[32], half.channels.len()), (33, (64., 64.), 3));
        let count = |level: &Level| {
            level.sums.iter().map(|sum| (sum.good, sum.all)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
        };
        assert_eq!(count(&half), count(&level));
        assert_eq!(half.sums[0].good, 3);
    }
}
