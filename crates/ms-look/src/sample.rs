//! Looks: a look is a summary of a file or table at one moment (rows, newest TIME, flags,
//! amplitudes), as the command `watch` prints it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ctds::error::Result;
use ctds::value::{DataType, Shape};
use serde_json::{Value as Json, json};

use crate::calendar::{UNIX_ZERO, utc, utc_of_mjd};
use crate::describe::Description;
use crate::integration::Integration;
use crate::rows::{Rows, SAMPLE_ROWS};

/// Default of the bytes that a poll reads of each column, in the cells of its newest rows.
const SAMPLE_BYTES: u64 = 4 << 20;

/// The summary shows amplitudes of the first of these columns that the table has.
const VISIBILITIES: [&str; 4] = ["DATA", "CORRECTED_DATA", "FLOAT_DATA", "MODEL_DATA"];

/// Most lines of the small waterfall; each line is the mean of consecutive rows.
const WATERFALL: usize = 6;

/// If the newest TIME differs from now by more than this, in seconds, no lag is reported.
const LONGEST_LAG: f64 = 86400.;

/// Summary of a file or table at one moment: number of rows, rates, and flags and amplitudes of the
/// newest rows. Serialized, it is a line of `watch --json`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Look {
    /// Time at which this summary of the file was made.
    pub taken: SystemTime,
    /// Path of the file or table directory, as it was given.
    pub file: PathBuf,
    /// Kind of the data source: `live` (live file, which may grow), `hdf5` (any other file) or
    /// `table` (table directory).
    pub kind: &'static str,
    /// Revision of the file or table: number of changes seen since it was opened.
    pub revision: u64,
    /// Whether a live file (an HDF5 file that is read while it is written) is marked as being
    /// written, or another program has the table directory open.
    pub is_open: bool,
    /// Name and number of committed rows of each table; the first one is the main table, named
    /// `MAIN`.
    pub rows: Vec<(String, u64)>,
    /// Approximate bytes of the cells in all rows: of all tables of a live file, otherwise of the
    /// main table only.
    pub bytes: f64,
    /// The newest TIME of the main table; `None` without rows or without the column TIME.
    pub newest: Option<NewestTime>,
    /// Fraction of the flags in the newest rows that are set, from 0 to 1; `None` without rows, or
    /// without FLAG and FLAG_ROW.
    pub flagged: Option<f64>,
    /// Mean amplitudes of the newest rows; `None` without rows or without visibilities.
    pub amplitudes: Option<Amplitudes>,
    /// Summary of the newest integration; `None` unless
    /// [`Session::set_integration`](crate::Session::set_integration) asks for it.
    pub integration: Option<Integration>,
    /// SCAN_NUMBER of the newest row; `None` if the table does not have it.
    pub scan: Option<i64>,
    /// Name of the field of the newest row; `None` if it is not known.
    pub field: Option<String>,
    /// Rows per second by which all tables together have grown since the previous poll; `None` in
    /// the first poll.
    pub rows_per_second: Option<f64>,
    /// Approximate bytes of cells that were added per second since the previous poll; `None` in the
    /// first poll.
    pub bytes_per_second: Option<f64>,
    /// Time since rows were last committed: since the modification of the file, or of the lock file
    /// of a table directory, with which the newest rows were seen.
    pub age: Duration,
    /// Whether plots may show outdated values because cells were overwritten; plots are made again
    /// once the file or table has not been written to for ten seconds.
    pub stale: bool,
}

/// The newest TIME of a table (the latest in its last 4096 rows) in two forms: in seconds of MJD,
/// and as a date in UTC.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct NewestTime {
    /// The newest TIME in seconds of MJD, as casacore stores it.
    pub mjd_seconds: f64,
    /// The newest TIME as date and time in UTC: `2026-11-20T17:30:00.0Z`.
    pub utc: String,
}

/// Mean amplitudes of the visibilities in the newest rows of a file or table, by antenna or by time
/// and channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Amplitudes {
    /// Name of the column with the visibilities that were averaged.
    pub column: &'static str,
    /// Whether the means are by antenna, or by time and channel.
    pub by: AmplitudesBy,
    /// Mean amplitudes; `None` where no value is finite and not flagged. By antenna: one list,
    /// whose element `i` is the mean of antenna `i` (from 0). By time and channel: a list with an
    /// element for each channel, for each of at most six groups of consecutive rows, the newest
    /// group last.
    pub means: Vec<Vec<Option<f64>>>,
}

/// How the mean amplitudes of visibilities in a summary of a table (a `Look`) are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmplitudesBy {
    /// One mean amplitude of the visibilities for each antenna, over the newest rows that have its
    /// number in ANTENNA1.
    Antenna,
    /// Mean amplitudes of the visibilities by time and channel, as a small waterfall image. Used if
    /// the table lacks an Int column ANTENNA1, so that rows cannot be grouped by antenna.
    Waterfall,
}

impl Look {
    /// Number of rows of all tables together when this summary was made.
    pub fn all_rows(&self) -> u64 {
        self.rows.iter().map(|(_, rows)| rows).sum()
    }

    /// Age of the newest data in seconds: the time at which this summary was made minus the newest
    /// TIME; `None` if the newest TIME is unknown, or the two times differ by more than a day.
    pub fn lag(&self) -> Option<f64> {
        let now = self.taken.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64() + UNIX_ZERO;
        let lag = now - self.newest.as_ref()?.mjd_seconds;
        (lag.abs() <= LONGEST_LAG).then_some(lag)
    }

    fn to_json(&self) -> Json {
        let tables: serde_json::Map<_, _> =
            self.rows.iter().map(|(name, rows)| (name.clone(), (*rows).into())).collect();
        let amplitudes = self.amplitudes.as_ref().map(|amplitudes| {
            let (by, means): (_, Json) = match amplitudes.by {
                AmplitudesBy::Antenna => ("antenna", amplitudes.means.concat().into()),
                AmplitudesBy::Waterfall => ("time and channel", amplitudes.means.clone().into()),
            };
            json!({"column": amplitudes.column, "by": by, "mean": means})
        });
        json!({
            "event": "look", "time": utc(self.taken), "file": self.file.display().to_string(), "open": self.is_open,
            "rows": self.all_rows(), "tables": tables, "rows_per_second": self.rows_per_second,
            "bytes_per_second": self.bytes_per_second, "commit_age_seconds": self.age.as_secs_f64(),
            "newest_time": self.newest, "flagged": self.flagged, "amplitudes": amplitudes, "kind": self.kind,
            "revision": self.revision, "lag_seconds": self.lag(), "scan": self.scan, "field": self.field, "stale": self.stale,
        })
    }
}

impl serde::Serialize for Look {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleOptions {
    /// Most bytes of newest cells that are read of each column.
    pub(crate) bytes: u64,
    /// Whether all rows of the newest integration are read as well.
    pub(crate) integration: bool,
}

impl Default for SampleOptions {
    fn default() -> Self {
        SampleOptions { bytes: SAMPLE_BYTES, integration: false }
    }
}

/// Values of the newest rows, from which a [`Look`] is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) newest: Option<NewestTime>,
    pub(crate) flagged: Option<f64>,
    pub(crate) amplitudes: Option<Amplitudes>,
    pub(crate) integration: Option<Integration>,
    pub(crate) scan: Option<i64>,
    /// Number of the newest row's field; `None` if the table does not have FIELD_ID.
    pub(crate) field: Option<i64>,
}

impl Sample {
    pub(crate) fn take(main: &Rows, known: &Description, options: SampleOptions) -> Result<Self> {
        let mut sample = Sample::default();
        let rows = main.rows();
        if rows == 0 {
            return Ok(sample);
        }
        let has =
            |name: &str, fits: &dyn Fn(DataType) -> bool| main.column(name).is_some_and(|info| fits(info.data_type()));
        if has("TIME", &|data_type| data_type == DataType::Double) {
            let times = newest(main, "TIME", SAMPLE_ROWS)?;
            let times = times.into_iter().flat_map(|(_, times)| times).filter(|time| time.is_finite());
            let newest = times.max_by(f64::total_cmp);
            sample.newest = newest.map(|time| NewestTime { mjd_seconds: time, utc: utc_of_mjd(time) });
        }
        let last = |name: &str| main.integers(name, rows - 1..rows).ok()?.first().copied();
        sample.scan = last("SCAN_NUMBER");
        sample.field = last("FIELD_ID");
        if options.integration {
            sample.integration = Integration::take(main, known, options.bytes)?;
        }
        let is_number = |data_type| !matches!(data_type, DataType::String | DataType::Record | DataType::Bool);
        let visibilities = VISIBILITIES.into_iter().find(|name| has(name, &is_number));
        let flags = ["FLAG", "FLAG_ROW"].into_iter().find(|name| has(name, &|data_type| data_type == DataType::Bool));
        // the same rows of each
        let wanted = [visibilities, flags].into_iter().flatten();
        let count = wanted.map(|name| main.sample_rows(name, options.bytes)).collect::<Result<Vec<_>>>()?;
        let count = count.into_iter().min().unwrap_or(0).min(rows);
        let flags = flags.map(|name| newest(main, name, count)).transpose()?;
        if let Some(flags) = &flags {
            let (mut sum, mut len) = (0., 0);
            for (_, numbers) in flags {
                sum += numbers.iter().sum::<f64>();
                len += numbers.len();
            }
            sample.flagged = (len > 0).then(|| sum / len as f64);
        }
        let Some(column) = visibilities else { return Ok(sample) };
        let cells = newest(main, column, count)?;
        let same = |flags: &Vec<(Shape, Vec<f64>)>| {
            flags.iter().map(|(shape, _)| shape).eq(cells.iter().map(|(shape, _)| shape))
        };
        let flags = flags.filter(same).map(|flags| flags.into_iter().map(|(_, numbers)| numbers).collect());
        let (shapes, numbers): (Vec<Shape>, Vec<Vec<f64>>) = cells.into_iter().unzip();
        let good = good(numbers, flags);
        sample.amplitudes = Some(match has("ANTENNA1", &|data_type| data_type == DataType::Int) {
            true => {
                let antennas = main.integers("ANTENNA1", rows - count..rows)?;
                Amplitudes { column, by: AmplitudesBy::Antenna, means: vec![by_antenna(&antennas, &good)] }
            }
            false => Amplitudes { column, by: AmplitudesBy::Waterfall, means: waterfall(&shapes, &good) },
        });
        Ok(sample)
    }

    /// Fields that the sample does not determine, such as `rows`, are left to the caller.
    pub(crate) fn look(self, file: &Path, kind: &'static str) -> Look {
        Look {
            taken: SystemTime::now(),
            file: file.to_owned(),
            kind,
            revision: 0,
            is_open: false,
            rows: Vec::new(),
            bytes: 0.,
            newest: self.newest,
            flagged: self.flagged,
            amplitudes: self.amplitudes,
            integration: self.integration,
            scan: self.scan,
            field: None,
            rows_per_second: None,
            bytes_per_second: None,
            age: Duration::ZERO,
            stale: false,
        }
    }
}

/// Shapes and elements as numbers, as in `Group::numbers`; none for an undefined cell.
fn newest(main: &Rows, column: &str, count: u64) -> Result<Vec<(Shape, Vec<f64>)>> {
    let end = main.rows();
    let rows: Vec<u64> = (end - count.min(end)..end).collect();
    let mut cells = vec![(Shape::from([0]), Vec::new()); rows.len()];
    for group in main.cells(column, &rows)? {
        let elements = group.shape.elements()? as usize;
        let numbers = group.numbers();
        for (number, place) in group.places.into_iter().enumerate() {
            let cell = numbers.get(number * elements..(number + 1) * elements).unwrap_or_default();
            cells[place] = (group.shape.clone(), cell.to_vec());
        }
    }
    Ok(cells)
}

/// Absolute values; `None` for those that are flagged or not finite.
fn good(cells: Vec<Vec<f64>>, flags: Option<Vec<Vec<f64>>>) -> Vec<Vec<Option<f64>>> {
    let of_cell = |(row, cell): (usize, Vec<f64>)| {
        let flags = flags.as_ref().map(|flags| &flags[row]);
        let is_good = |(index, number): (usize, f64)| {
            let flagged = flags.is_some_and(|flags| flags[index] != 0.);
            (number.is_finite() && !flagged).then_some(number.abs())
        };
        cell.into_iter().enumerate().map(is_good).collect()
    };
    cells.into_iter().enumerate().map(of_cell).collect()
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, number: f64) {
        self.sum += number;
        self.count += 1;
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Antennas with this number or a higher one are left out of the means.
const MAX_ANTENNAS: usize = 1024;

fn by_antenna(antennas: &[i64], cells: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let mut means = Vec::new();
    for (antenna, cell) in antennas.iter().zip(cells) {
        let Some(antenna) = usize::try_from(*antenna).ok().filter(|&antenna| antenna < MAX_ANTENNAS) else { continue };
        if means.len() <= antenna {
            means.resize(antenna + 1, Mean::default());
        }
        cell.iter().flatten().for_each(|&number| means[antenna].add(number));
    }
    means.into_iter().map(Mean::get).collect()
}

/// Each line has the means over consecutive rows, by channel, the last axis of a cell.
fn waterfall(shapes: &[Shape], cells: &[Vec<Option<f64>>]) -> Vec<Vec<Option<f64>>> {
    let per_line = cells.len().div_ceil(WATERFALL).max(1);
    let line = |(shapes, cells): (&[Shape], &[Vec<Option<f64>>])| {
        let channels = |shape: &Shape| shape.last().map_or(1, |&channels| channels as usize);
        let mut means = vec![Mean::default(); shapes.iter().map(channels).max().unwrap_or(0)];
        for (shape, cell) in shapes.iter().zip(cells) {
            let per_channel = (cell.len() / channels(shape).max(1)).max(1);
            for (channel, numbers) in cell.chunks(per_channel).enumerate() {
                numbers.iter().flatten().for_each(|&number| means[channel].add(number));
            }
        }
        means.into_iter().map(Mean::get).collect()
    };
    shapes.chunks(per_line).zip(cells.chunks(per_line)).map(line).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An open live file, `second` after 2001-09-09T01:46:40; its newest TIME is now.
    pub(crate) fn look(second: f64, rows: u64) -> Look {
        let unix = 1e9 + second;
        let mut look = Sample::default().look(Path::new("live.h5"), "live");
        look.taken = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(unix);
        look.is_open = true;
        look.rows = vec![("MAIN".to_owned(), rows)];
        look.newest = Some(NewestTime { mjd_seconds: unix + UNIX_ZERO, utc: String::new() });
        look
    }

    #[test]
    fn flagged_and_infinite_values_are_left_out_of_means() {
        let cells = vec![vec![1., 3.], vec![5., f64::NAN], vec![-7., 9.]];
        let flags = vec![vec![0., 0.], vec![0., 0.], vec![0., 1.]];
        let good = good(cells, Some(flags));
        assert_eq!(by_antenna(&[0, 2, 2], &good), [Some(2.), None, Some(6.)]);
        assert_eq!(by_antenna(&[-1, i64::MAX, 0], &good), [Some(7.)]);
    }

    #[test]
    fn waterfalls_are_by_the_last_axis() {
        let cell = vec![Some(1.), Some(3.), Some(10.), None, Some(0.), Some(0.)];
        let shapes = vec![Shape::from([2, 3]); 7];
        let lines = waterfall(&shapes, &vec![cell; 7]);
        assert_eq!(lines.len(), 4, "two rows each");
        assert_eq!(lines[3], [Some(2.), Some(10.), Some(0.)]);
        assert!(waterfall(&[Shape::from([0])], &[vec![]]).iter().all(Vec::is_empty));
    }
}
