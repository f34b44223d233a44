//! Shares out the rows of a main table to partitions, in each of which a time and a baseline have
//! at most one row, and each time one field and one scan. No row is left out.
//!
//! Rows go by the columns of [`BASE`] and those that are asked for. Where that is not enough, a
//! partition is split by the columns of [`FINER`] one after the other, and in the end by how often
//! a place of the grid has occurred. The index columns are read in blocks, once for each of these
//! steps.

use std::collections::{BTreeMap, HashMap};

use ctds::value::{DataType, Values};
use ctds::{Column, Error, Result};

use crate::grid::{Grid, GridBuilder};
use crate::tables::{MAIN, Subtable, Tables};

/// Rows of the index columns that are in memory at a time.
const BLOCK_ROWS: u64 = 1 << 16;

/// Columns that always separate rows. OBS_MODE is that of STATE, EPHEMERIS_ID that of FIELD.
const BASE: [Key; 5] = [Key::DataDesc, Key::Observation, Key::Processor, Key::ObsMode, Key::Ephemeris];

/// Separate rows that would share a place of the grid, or have two fields or scans at one time.
const FINER: [Key; 6] = [Key::Array, Key::Feed1, Key::Feed2, Key::Field, Key::Scan, Key::State];

/// Columns of the main table that tell the partition of a row and its place on the grid.
pub const PLACING: [&str; 13] = [
    "TIME",
    "ANTENNA1",
    "ANTENNA2",
    "DATA_DESC_ID",
    "OBSERVATION_ID",
    "PROCESSOR_ID",
    "STATE_ID",
    "FIELD_ID",
    "SCAN_NUMBER",
    "ARRAY_ID",
    "FEED1",
    "FEED2",
    "INTERVAL",
];

/// A column by which rows can be separated, of the main table or by way of a subtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    DataDesc,
    Observation,
    Processor,
    ObsMode,
    Ephemeris,
    Array,
    Feed1,
    Feed2,
    Field,
    Scan,
    State,
    Source,
    SubScan,
    Antenna1,
    Interval,
}

/// Keys that users may ask for, by name.
const ASKED: [(&str, Key); 8] = [
    ("FIELD_ID", Key::Field),
    ("SCAN_NUMBER", Key::Scan),
    ("STATE_ID", Key::State),
    ("SOURCE_ID", Key::Source),
    ("SUB_SCAN_NUMBER", Key::SubScan),
    ("ANTENNA1", Key::Antenna1),
    ("INTERVAL", Key::Interval),
    ("ARRAY_ID", Key::Array),
];

impl Key {
    /// The names of the keys that separate rows always, which may be asked for as well.
    fn named(name: &str) -> Result<Option<Self>> {
        if let Some((_, key)) = ASKED.iter().find(|(asked, _)| *asked == name) {
            return Ok(Some(*key));
        }
        if ["DATA_DESC_ID", "OBSERVATION_ID", "PROCESSOR_ID", "OBS_MODE", "EPHEMERIS_ID"].contains(&name) {
            return Ok(None);
        }
        let names = ASKED.iter().map(|(asked, _)| *asked);
        let hint = ctds::instead(name, names.map(str::to_owned));
        Err(Error::usage(format!("partitions cannot be made by {name}{hint}")))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Key::DataDesc => "DATA_DESC_ID",
            Key::Observation => "OBSERVATION_ID",
            Key::Processor => "PROCESSOR_ID",
            Key::ObsMode => "OBS_MODE",
            Key::Ephemeris => "EPHEMERIS_ID",
            Key::Array => "ARRAY_ID",
            Key::Feed1 => "FEED1",
            Key::Feed2 => "FEED2",
            Key::Field => "FIELD_ID",
            Key::Scan => "SCAN_NUMBER",
            Key::State => "STATE_ID",
            Key::Source => "SOURCE_ID",
            Key::SubScan => "SUB_SCAN_NUMBER",
            Key::Antenna1 => "ANTENNA1",
            Key::Interval => "INTERVAL",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) grid: Grid,
    pub(crate) shared: Shared,
    /// FIELD_ID and SCAN_NUMBER of each time.
    pub(crate) fields: Vec<i64>,
    pub(crate) scans: Vec<i64>,
    /// INTERVAL of all rows, in seconds; `None` if there are several.
    pub(crate) interval: Option<f64>,
    /// Finer columns by which rows with a common place were split; `occurrence` is the last one.
    pub(crate) split_by: Vec<&'static str>,
    /// Columns that have several values in the partition, which a user may split it by.
    pub(crate) varying: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shared {
    pub(crate) data_desc: i64,
    pub(crate) observation: i64,
    pub(crate) processor: i64,
    pub(crate) mode: Option<String>,
    /// EPHEMERIS_ID of FIELD, -1 without one.
    pub(crate) ephemeris: i64,
}

struct Block {
    times: Vec<f64>,
    intervals: Vec<f64>,
    first: Vec<i64>,
    second: Vec<i64>,
    ids: BTreeMap<Key, Vec<i64>>,
}

/// The keys that are columns of integers of the main table.
const STORED: [Key; 9] = [
    Key::DataDesc,
    Key::Observation,
    Key::Processor,
    Key::Array,
    Key::Feed1,
    Key::Feed2,
    Key::Field,
    Key::Scan,
    Key::State,
];

/// Index columns of the main table, and the subtables that they lead to.
struct Index<'a> {
    rows: u64,
    time: Column<'a>,
    interval: Option<Column<'a>>,
    antennas: [Column<'a>; 2],
    stored: Vec<(Key, Column<'a>)>,
    asked: Vec<Key>,
    /// OBS_MODE of each state as its number in `modes`.
    mode_of_state: Vec<i64>,
    modes: Vec<String>,
    sub_scan_of_state: Vec<i64>,
    source_of_field: Vec<i64>,
    ephemeris_of_field: Vec<i64>,
}

impl<'a> Index<'a> {
    fn open(tables: &'a dyn Tables, schema: &[String]) -> Result<Self> {
        let has = |name: &str| tables.columns(MAIN).iter().any(|info| info.desc.name == name);
        for name in ["TIME", "ANTENNA1", "ANTENNA2"] {
            if !has(name) {
                return Err(Error::unsupported(format!("not a MeasurementSet: the main table has no column {name}")));
            }
        }
        let mut asked = Vec::new();
        for name in schema {
            asked.extend(Key::named(name)?.filter(|key| !asked.contains(key)));
        }
        let stored = STORED.into_iter().filter(|key| has(key.name()));
        let stored = stored.map(|key| Ok((key, tables.column(MAIN, key.name())?))).collect::<Result<_>>()?;
        let of = |table, column| -> Result<Vec<i64>> {
            let Some(table) = Subtable::open(tables, table) else { return Ok(Vec::new()) };
            Ok(table.integers(column)?.unwrap_or_default())
        };
        let texts = match Subtable::open(tables, "STATE") {
            Some(state) => state.texts("OBS_MODE")?.unwrap_or_default(),
            None => Vec::new(),
        };
        let mut modes = texts.clone();
        modes.sort();
        modes.dedup();
        let number = |text: &String| modes.binary_search(text).map_or(-1, |number| number as i64);
        Ok(Index {
            rows: tables.rows(MAIN).unwrap_or(0),
            time: tables.column(MAIN, "TIME")?,
            interval: if has("INTERVAL") { Some(tables.column(MAIN, "INTERVAL")?) } else { None },
            antennas: [tables.column(MAIN, "ANTENNA1")?, tables.column(MAIN, "ANTENNA2")?],
            stored,
            asked,
            mode_of_state: texts.iter().map(number).collect(),
            modes,
            sub_scan_of_state: of("STATE", "SUB_SCAN")?,
            source_of_field: of("FIELD", "SOURCE_ID")?,
            ephemeris_of_field: of("FIELD", "EPHEMERIS_ID")?,
        })
    }

    fn block(&self, start: u64) -> Result<Block> {
        let rows = start..self.rows.min(start + BLOCK_ROWS);
        let doubles = |column: &Column<'_>| match column.values(rows.clone())? {
            Values::Double(values) => Ok(values),
            other => Err(wrong_type(column, other.data_type(), DataType::Double)),
        };
        let integers = |column: &Column<'_>| {
            let values = column.values(rows.clone())?;
            values.integers().ok_or_else(|| wrong_type(column, values.data_type(), DataType::Int))
        };
        let mut ids = BTreeMap::new();
        for (key, column) in &self.stored {
            ids.insert(*key, integers(column)?);
        }
        let intervals = match &self.interval {
            Some(column) => doubles(column)?,
            None => Vec::new(),
        };
        Ok(Block {
            times: doubles(&self.time)?,
            intervals,
            first: integers(&self.antennas[0])?,
            second: integers(&self.antennas[1])?,
            ids,
        })
    }

    /// Calls `each` in ascending order: row, raw values, the block and the place in it.
    fn each(&self, mut each: impl FnMut(u64, &Raw, &Block, usize) -> Result<()>) -> Result<()> {
        let is_asked = |key| self.asked.contains(&key);
        let (by_antenna, by_interval) = (is_asked(Key::Antenna1), is_asked(Key::Interval));
        let mut start = 0;
        while start < self.rows {
            let block = self.block(start)?;
            let columns: Vec<_> = STORED.iter().map(|key| block.ids.get(key).map(Vec::as_slice)).collect();
            for place in 0..block.times.len() {
                let mut raw = Raw { ids: [0; STORED.len()], antenna: 0, interval: 0 };
                for (id, column) in raw.ids.iter_mut().zip(&columns) {
                    *id = column.map_or(0, |column| column[place]);
                }
                if by_antenna {
                    raw.antenna = block.first[place];
                }
                if by_interval {
                    raw.interval = block.intervals.get(place).map_or(0, |seconds| seconds.to_bits() as i64);
                }
                each(start + place as u64, &raw, &block, place)?;
            }
            start += block.times.len() as u64;
        }
        Ok(())
    }

    fn value(&self, raw: &Raw, key: Key) -> i64 {
        let at = |list: &[i64], id: i64| usize::try_from(id).ok().and_then(|id| list.get(id)).copied().unwrap_or(-1);
        match key {
            Key::ObsMode => at(&self.mode_of_state, self.value(raw, Key::State)),
            Key::SubScan => at(&self.sub_scan_of_state, self.value(raw, Key::State)),
            Key::Source => at(&self.source_of_field, self.value(raw, Key::Field)),
            Key::Ephemeris => at(&self.ephemeris_of_field, self.value(raw, Key::Field)),
            Key::Antenna1 => raw.antenna,
            Key::Interval => raw.interval,
            stored => raw.ids[STORED.iter().position(|other| *other == stored).expect("a stored key")],
        }
    }
}

fn wrong_type(column: &Column<'_>, found: DataType, expected: DataType) -> Error {
    let name = &column.info().desc.name;
    Error::format(format!("column {name} of the main table is of type {found}; expected is {expected}"))
}

/// Values that separate rows, before subtables are asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Raw {
    ids: [i64; STORED.len()],
    antenna: i64,
    interval: i64,
}

/// Values of the keys of a partition: those that all partitions have, then those of its splits.
type Name = Vec<i64>;

/// How partitions are split that are named so far.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Split {
    By(Key),
    Occurrence,
}

/// A partition while its rows are read.
#[derive(Debug, Default)]
struct Growing {
    grid: GridBuilder,
    /// FIELD_ID and SCAN_NUMBER of each time in the order in which they were met.
    fields_and_scans: Vec<(i64, i64)>,
    met: Vec<f64>,
    has_two_at_a_time: bool,
    interval: Option<f64>,
    has_intervals: bool,
    raws: Vec<Raw>,
}

/// Sorted by keys; `Unsupported` unless the table is a MeasurementSet, `Usage` for an unknown name
/// in `schema`.
pub(crate) fn partitions(tables: &dyn Tables, schema: &[String]) -> Result<Vec<Part>> {
    let index = Index::open(tables, schema)?;
    let mut splits: HashMap<Name, Split> = HashMap::new();
    loop {
        let found = read(&index, &splits)?;
        let mut parts = Vec::new();
        let mut is_whole = true;
        for (name, growing) in found {
            let raws = growing.raws.clone();
            match growing.finish(&index, &name, &splits) {
                Some(part) => parts.push(part),
                None => {
                    is_whole = false;
                    let separates = |key: &Key| {
                        let first = index.value(&raws[0], *key);
                        raws.iter().any(|raw| index.value(raw, *key) != first)
                    };
                    let split = FINER.into_iter().find(separates).map_or(Split::Occurrence, Split::By);
                    splits.insert(name, split);
                }
            }
        }
        if is_whole {
            return Ok(parts);
        }
    }
}

/// One pass over the rows.
fn read(index: &Index<'_>, splits: &HashMap<Name, Split>) -> Result<BTreeMap<Name, Growing>> {
    let mut numbers: HashMap<Raw, (usize, Option<Name>)> = HashMap::new();
    let mut names: HashMap<Name, usize> = HashMap::new();
    let mut growing: Vec<Growing> = Vec::new();
    // partitions whose rows are shared out by occurrence: how often each place has come
    let mut occurred: HashMap<Name, HashMap<(u64, i64, i64), i64>> = HashMap::new();
    let mut last: Option<(Raw, usize)> = None;
    index.each(|row, raw, block, place| {
        let number = match &last {
            Some((other, number)) if other == raw => *number,
            _ => {
                let (number, by_occurrence) = numbers.entry(raw.clone()).or_insert_with(|| {
                    let (name, by_occurrence) = named(index, raw, splits);
                    if by_occurrence {
                        return (usize::MAX, Some(name));
                    }
                    let number = *names.entry(name).or_insert_with(|| {
                        growing.push(Growing::default());
                        growing.len() - 1
                    });
                    growing[number].raws.push(raw.clone());
                    (number, None)
                });
                match by_occurrence {
                    None => {
                        last = Some((raw.clone(), *number));
                        *number
                    }
                    Some(name) => {
                        let places = occurred.entry(name.clone()).or_default();
                        let at = (block.times[place].to_bits(), block.first[place], block.second[place]);
                        let count = places.entry(at).or_insert(0);
                        let mut name = name.clone();
                        name.push(*count);
                        *count += 1;
                        let number = *names.entry(name).or_insert_with(|| {
                            growing.push(Growing::default());
                            growing.len() - 1
                        });
                        let raws = &mut growing[number].raws;
                        if !raws.contains(raw) {
                            raws.push(raw.clone());
                        }
                        number
                    }
                }
            }
        };
        growing[number].add(index, row, raw, block, place);
        Ok(())
    })?;
    let mut growing: Vec<_> = growing.into_iter().map(Some).collect();
    let taken = names.into_iter().map(|(name, number)| (name, growing[number].take().expect("taken once")));
    Ok(taken.collect())
}

/// The name of the partition of a row, and whether its occurrence is still to be added.
fn named(index: &Index<'_>, raw: &Raw, splits: &HashMap<Name, Split>) -> (Name, bool) {
    let keys = BASE.iter().chain(&index.asked);
    let mut name: Name = keys.map(|key| index.value(raw, *key)).collect();
    while let Some(split) = splits.get(&name) {
        match split {
            Split::By(key) => name.push(index.value(raw, *key)),
            Split::Occurrence => return (name, true),
        }
    }
    (name, false)
}

impl Growing {
    fn add(&mut self, index: &Index<'_>, row: u64, raw: &Raw, block: &Block, place: usize) {
        let (field, scan) = (index.value(raw, Key::Field), index.value(raw, Key::Scan));
        let antennas = (block.first[place] as i32, block.second[place] as i32);
        let time = block.times[place];
        let number = self.grid.add(row, time, antennas) as usize;
        match self.fields_and_scans.get(number) {
            Some(other) => self.has_two_at_a_time |= *other != (field, scan),
            None => {
                self.fields_and_scans.push((field, scan));
                self.met.push(time);
            }
        }
        if let Some(&interval) = block.intervals.get(place) {
            let first = *self.interval.get_or_insert(interval);
            self.has_intervals |= first.to_bits() != interval.to_bits();
        }
    }

    /// `None` if it has to be split.
    fn finish(self, index: &Index<'_>, name: &Name, splits: &HashMap<Name, Split>) -> Option<Part> {
        if self.has_two_at_a_time {
            return None;
        }
        let grid = self.grid.finish()?;
        let mut order: Vec<usize> = (0..self.met.len()).collect();
        order.sort_by(|a, b| self.met[*a].total_cmp(&self.met[*b]));
        let raw = &self.raws[0];
        let mode = index.value(raw, Key::ObsMode);
        let varies = |key: &Key| self.raws.iter().any(|other| index.value(other, *key) != index.value(raw, *key));
        let mut varying: Vec<_> =
            [Key::Field, Key::Scan, Key::State, Key::Array].into_iter().filter(varies).map(Key::name).collect();
        if self.has_intervals {
            varying.push(Key::Interval.name());
        }
        Some(Part {
            grid,
            shared: Shared {
                data_desc: index.value(raw, Key::DataDesc),
                observation: index.value(raw, Key::Observation),
                processor: index.value(raw, Key::Processor),
                ephemeris: index.value(raw, Key::Ephemeris),
                mode: usize::try_from(mode).ok().and_then(|mode| index.modes.get(mode)).cloned(),
            },
            fields: order.iter().map(|number| self.fields_and_scans[*number].0).collect(),
            scans: order.iter().map(|number| self.fields_and_scans[*number].1).collect(),
            interval: self.interval.filter(|_| !self.has_intervals),
            split_by: split_by(index, name, splits),
            varying,
        })
    }
}

fn split_by(index: &Index<'_>, name: &Name, splits: &HashMap<Name, Split>) -> Vec<&'static str> {
    let first = BASE.len() + index.asked.len();
    let steps = (first..name.len()).filter_map(|end| splits.get(&name[..end]));
    steps
        .map(|split| match split {
            Split::By(key) => key.name(),
            Split::Occurrence => "occurrence",
        })
        .collect()
}
