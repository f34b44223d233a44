//! Describes a MeasurementSet for plots: its antennas, fields, spectral windows, correlations and
//! columns, and the plots that it can have.

use ctds::error::{Error, Result};
use ctds::measures::correlation;
use ctds::table::ColumnInfo;
use ctds::value::{DataType, Values};
use ctds_hdf5::Source;

use crate::rows::Rows;
use crate::subtables::{MAX_CHANNELS, cells, doubles, integers, label, rows, strings};

/// The first of these columns that a table has is plotted by default.
const VISIBILITIES: [&str; 10] = [
    "DATA",
    "FLOAT_DATA",
    "CORRECTED_DATA",
    "MODEL_DATA",
    "CORRECTED_PHASE",
    "RESIDUAL_DATA",
    "SUBTRACTED_DATA",
    "LAG_DATA",
    "CPARAM",
    "FPARAM",
];

/// Description of a file or table for plots: antennas, fields, spectral windows and columns that
/// can be selected, and the kinds of plots. Serialized, it is the document `/live/describe` of
/// `serve`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Description {
    /// Kind of the data source: `live` (live file, which may grow), `hdf5` (any other file) or
    /// `table` (table directory).
    pub kind: &'static str,
    /// Why nothing can be plotted, in words; `None`: plots can be made.
    pub missing: Option<String>,
    /// Name of the telescope, TELESCOPE_NAME of the first row of the subtable OBSERVATION; empty if
    /// unknown.
    pub telescope: String,
    /// Name of the project, PROJECT of the first row of the subtable OBSERVATION; empty if unknown.
    pub project: String,
    /// The antennas in the order of their numbers, from 0.
    pub antennas: Vec<Antenna>,
    /// The fields in the order of their numbers, from 0.
    pub fields: Vec<Field>,
    /// The spectral windows with their correlations, in the order of DATA_DESC_ID.
    pub spectral_windows: Vec<SpectralWindow>,
    /// Names of the columns with visibilities; the first is plotted by default.
    pub columns: Vec<String>,
    /// Unit of each column in `columns`, from its keyword QuantumUnits or UNIT; empty where it is
    /// not known.
    pub units: Vec<String>,
    /// Whether the main table is a calibration table of CASA: each row has the solutions of one
    /// antenna.
    pub is_calibration: bool,
    /// Whether the main table has the column FLAG or FLAG_ROW.
    pub has_flags: bool,
    /// Number of rows of the main table.
    pub rows: u64,
    /// Earliest and latest TIME, in seconds of MJD, found in the first and the newest row at each
    /// poll so far; `None` if these rows have no finite TIME.
    pub time_range: Option<[f64; 2]>,
    /// DATA_DESC_ID (SPECTRAL_WINDOW_ID in a calibration table) of the newest row, which is plotted
    /// by default; `None` without rows.
    pub newest_spw: Option<i64>,
    /// Names of the kinds of plots that can be made, such as `waterfall`; empty if nothing can be
    /// plotted.
    pub plots: Vec<&'static str>,
}

/// An antenna of the array, as the subtable ANTENNA describes it.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct Antenna {
    /// Name of the antenna, from the column NAME; empty if it has none.
    pub name: String,
    /// Name of the antenna's station (pad), from the column STATION.
    pub station: String,
    /// Position of the antenna, from the column POSITION: x, y, z in metres (ITRF for telescopes on
    /// the Earth); `None` if it cannot be read.
    pub position: Option<[f64; 3]>,
    /// Diameter of the antenna's dish in metres, from the column DISH_DIAMETER; `None` if it cannot
    /// be read.
    pub diameter: Option<f64>,
}

/// A field (pointing or phase centre) that was observed.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct Field {
    /// Name of the field, from the column NAME; its number if that is empty.
    pub name: String,
}

/// A spectral window with a polarization setup: one row of DATA_DESCRIPTION.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct SpectralWindow {
    /// Number of the spectral window with its polarization setup: DATA_DESC_ID.
    pub id: i64,
    /// Row of the spectral window in the subtable SPECTRAL_WINDOW, from 0; -1 if unknown.
    pub window: i64,
    /// Name of the spectral window, from the column NAME.
    pub name: String,
    /// Centre frequencies of the channels, CHAN_FREQ in Hz; empty if unknown.
    pub frequencies: Vec<f64>,
    /// Widths of the channels, CHAN_WIDTH in Hz, as many as frequencies; empty if unknown.
    pub widths: Vec<f64>,
    /// Names of the correlations: XX, RL, I …; empty if unknown.
    pub correlations: Vec<String>,
}

/// Parallel hands, shown by default; without any of them, Stokes I if that is the first.
const PARALLEL: [&str; 6] = ["XX", "YY", "RR", "LL", "PP", "QQ"];

/// Indices of the parallel hands, or of Stokes I, in cells of `count` correlations. If `names` has
/// none of them: all indices; if `names` is empty and `count` is 4, the first and the last.
pub(crate) fn parallel_hands(names: &[String], count: usize) -> Vec<usize> {
    let found: Vec<usize> = names
        .iter()
        .take(count)
        .enumerate()
        .filter(|(_, name)| PARALLEL.contains(&name.as_str()))
        .map(|(at, _)| at)
        .collect();
    match (found.is_empty(), names.first().is_some_and(|name| name == "I"), count) {
        (false, ..) => found,
        (true, true, 1..) => vec![0],
        // four without names are the products of two receptors
        (true, false, 4) if names.is_empty() => vec![0, 3],
        _ => (0..count).collect(),
    }
}

fn type_of(columns: &[&ColumnInfo], name: &str) -> Option<DataType> {
    columns.iter().find(|info| info.desc.name == name).map(|info| info.data_type())
}

/// Columns with known names, such as DATA, then other columns of complex arrays.
fn visibilities(columns: &[&ColumnInfo]) -> Vec<String> {
    let is_complex = |data_type| matches!(data_type, DataType::Complex | DataType::DComplex);
    let is_number = |data_type| is_complex(data_type) || matches!(data_type, DataType::Float | DataType::Double);
    let is_known = |name: &&str| type_of(columns, name).is_some_and(is_number);
    let mut found: Vec<String> = VISIBILITIES.into_iter().filter(is_known).map(str::to_owned).collect();
    for info in columns {
        let name = info.desc.name.to_string();
        let is_array = info.desc.kind == ctds::schema::ColumnKind::Array;
        if is_complex(info.data_type()) && is_array && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Columns that plots require and that the main table lacks or has with another type.
fn lacking(columns: &[&ColumnInfo]) -> Vec<String> {
    let is_integer = |data_type| {
        matches!(
            data_type,
            DataType::Int | DataType::Int64 | DataType::Short | DataType::UInt | DataType::UChar | DataType::UShort
        )
    };
    let has_time = type_of(columns, "TIME") == Some(DataType::Double);
    let mut lacking: Vec<String> = Vec::new();
    lacking.extend((!has_time).then(|| "TIME".to_owned()));
    for name in ["ANTENNA1", "ANTENNA2"] {
        lacking.extend((!type_of(columns, name).is_some_and(is_integer)).then(|| name.to_owned()));
    }
    if visibilities(columns).is_empty() {
        lacking.push("a column of visibilities (DATA, FLOAT_DATA, or any other of complex arrays)".to_owned());
    }
    lacking
}

/// Whether plots can be made of a main table with these columns: it needs TIME, ANTENNA1, ANTENNA2
/// and a column of visibilities.
pub fn has_plots<'a>(columns: impl IntoIterator<Item = &'a ColumnInfo>) -> bool {
    lacking(&columns.into_iter().collect::<Vec<_>>()).is_empty()
}

/// Whether a main table with these columns is a calibration table of CASA: it has CPARAM or FPARAM,
/// and not DATA_DESC_ID.
pub fn is_calibration<'a>(columns: impl IntoIterator<Item = &'a ColumnInfo>) -> bool {
    let columns: Vec<&ColumnInfo> = columns.into_iter().collect();
    let has = |name| type_of(&columns, name).is_some();
    (has("CPARAM") || has("FPARAM")) && !has("DATA_DESC_ID")
}

impl Description {
    pub(crate) fn of(rows: &Rows) -> Result<Self> {
        let mut description = rows.with_tables(read_subtables)?;
        description.kind = rows.kind();
        description.describe_main(rows);
        Ok(description)
    }

    /// Sets `missing` if the main table cannot be plotted.
    fn describe_main(&mut self, rows: &Rows) {
        let columns = rows.columns();
        self.columns = visibilities(&columns);
        self.units = self.columns.iter().map(|name| rows.unit(name)).collect();
        self.is_calibration = is_calibration(columns.iter().copied());
        let is_bool = |name| type_of(&columns, name) == Some(DataType::Bool);
        self.has_flags = is_bool("FLAG") || is_bool("FLAG_ROW");
        self.rows = rows.rows();
        let lacking = lacking(&columns);
        let has_cells = |name: &String| rows.rows() == 0 || rows.cells(name, &[rows.rows() - 1]).is_ok();
        if let Some(problem) = self.columns.first().filter(|_| !self.columns.iter().any(has_cells)) {
            let error = rows.cells(problem, &[rows.rows() - 1]).err();
            self.missing = error.map(|error| format!("nothing to plot: the visibilities cannot be read: {error}"));
        }
        if !lacking.is_empty() {
            self.missing = Some(format!("nothing to plot: the main table lacks {}", list(&lacking)));
        }
        self.plots = match self.missing {
            Some(_) => Vec::new(),
            None => crate::plots::Kind::ALL.iter().map(|kind| kind.name()).collect(),
        };
        self.update(rows);
    }

    /// Updates the parts that change with new rows: number of rows, times, newest spectral window.
    pub(crate) fn update(&mut self, rows: &Rows) {
        self.rows = rows.rows();
        let Some(newest) = self.rows.checked_sub(1) else { return };
        let time = |row: u64| rows.doubles("TIME", row..row + 1).ok()?.first().copied().filter(|time| time.is_finite());
        if let (Some(first), Some(last)) = (time(0), time(newest)) {
            let (low, high) = self.time_range.map_or((first, last), |range| (range[0].min(first), range[1].max(last)));
            self.time_range = Some([low.min(high), high.max(low)]);
        }
        self.newest_spw = rows.integers(self.spw_column(), newest..self.rows).ok().and_then(|ids| ids.first().copied());
    }

    /// DATA_DESC_ID, or SPECTRAL_WINDOW_ID in calibration tables.
    pub(crate) fn spw_column(&self) -> &'static str {
        if self.is_calibration { "SPECTRAL_WINDOW_ID" } else { "DATA_DESC_ID" }
    }

    /// Fails with `Unsupported` and the reason if nothing can be plotted.
    pub(crate) fn check(&self) -> Result<()> {
        self.missing.as_ref().map_or(Ok(()), |missing| Err(Error::unsupported(missing.clone())))
    }

    /// The spectral window with this DATA_DESC_ID.
    pub(crate) fn window(&self, id: i64) -> Option<&SpectralWindow> {
        self.spectral_windows.iter().find(|window| window.id == id)
    }

    /// The name of an antenna, or `#5`.
    pub(crate) fn antenna(&self, number: usize) -> String {
        label(self.antennas.get(number).map_or("", |antenna| &antenna.name), number)
    }

    pub(crate) fn field(&self, number: usize) -> String {
        label(self.fields.get(number).map_or("", |field| &field.name), number)
    }
}

/// `A, B and C`.
fn list(words: &[String]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

pub(crate) fn antennas(source: &Source) -> Vec<Antenna> {
    let names = strings(source, "ANTENNA", "NAME");
    let stations = strings(source, "ANTENNA", "STATION");
    let positions = cells(source, "ANTENNA", "POSITION");
    let diameters = cells(source, "ANTENNA", "DISH_DIAMETER");
    let antenna = |number: usize| Antenna {
        name: names.get(number).cloned().unwrap_or_default(),
        station: stations.get(number).cloned().unwrap_or_default(),
        position: positions.get(number).and_then(|position| doubles(position)?.try_into().ok()),
        diameter: diameters.get(number).and_then(|diameter| doubles(diameter)?.first().copied()),
    };
    (0..rows(source, "ANTENNA")).map(antenna).collect()
}

fn read_subtables(source: &Source) -> Description {
    let field_names = strings(source, "FIELD", "NAME");
    let field = |number: usize| Field { name: field_names.get(number).cloned().unwrap_or_default() };
    let fields = (0..rows(source, "FIELD")).map(field).collect();
    Description {
        kind: "",
        missing: None,
        telescope: strings(source, "OBSERVATION", "TELESCOPE_NAME").into_iter().next().unwrap_or_default(),
        project: strings(source, "OBSERVATION", "PROJECT").into_iter().next().unwrap_or_default(),
        antennas: antennas(source),
        fields,
        spectral_windows: spectral_windows(source),
        columns: Vec::new(),
        units: Vec::new(),
        is_calibration: false,
        has_flags: false,
        rows: 0,
        time_range: None,
        newest_spw: None,
        plots: Vec::new(),
    }
}

fn spectral_windows(source: &Source) -> Vec<SpectralWindow> {
    let windows = integers(source, "DATA_DESCRIPTION", "SPECTRAL_WINDOW_ID");
    let polarizations = integers(source, "DATA_DESCRIPTION", "POLARIZATION_ID");
    let frequencies = cells(source, "SPECTRAL_WINDOW", "CHAN_FREQ");
    let widths = cells(source, "SPECTRAL_WINDOW", "CHAN_WIDTH");
    let names = strings(source, "SPECTRAL_WINDOW", "NAME");
    let types = cells(source, "POLARIZATION", "CORR_TYPE");
    // without the table that joins them, a number is that of both
    let count = match windows.len() {
        0 if rows(source, "DATA_DESCRIPTION") == 0 => frequencies.len(),
        count => count,
    };
    let mut channels = 0;
    let window = |id: usize| {
        let at = |list: &[i64]| list.get(id).map_or(Some(id), |&number| usize::try_from(number).ok());
        let (window, polarization) = (at(&windows), at(&polarizations));
        let of_window = |list: &[Option<Values>]| -> Vec<f64> {
            window.and_then(|window| doubles(list.get(window)?)).unwrap_or_default()
        };
        let frequencies = of_window(&frequencies);
        channels += frequencies.len();
        if channels > MAX_CHANNELS {
            return None;
        }
        let widths = Some(of_window(&widths)).filter(|widths| widths.len() == frequencies.len());
        let codes = polarization.and_then(|polarization| types.get(polarization)?.as_ref()?.integers());
        Some(SpectralWindow {
            id: id as i64,
            window: window.map_or(-1, |window| window as i64),
            name: window.and_then(|window| names.get(window).cloned()).unwrap_or_default(),
            frequencies,
            widths: widths.unwrap_or_default(),
            correlations: codes.unwrap_or_default().into_iter().map(correlation).collect(),
        })
    };
    (0..count).map_while(window).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_hands_are_known_by_name() {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(parallel_hands(&names("XX XY YX YY"), 4), [0, 3]);
        assert_eq!(parallel_hands(&names("LL RR"), 2), [0, 1]);
        assert_eq!(parallel_hands(&names("I Q U V"), 4), [0]);
        assert_eq!(parallel_hands(&names("XY YX"), 2), [0, 1]);
        assert_eq!(parallel_hands(&[], 4), [0, 3]);
        assert_eq!(parallel_hands(&[], 1), [0]);
        assert_eq!(parallel_hands(&names("XX XY YX YY"), 2), [0], "a cell may have fewer");
        assert!(parallel_hands(&[], 0).is_empty());
    }

    #[test]
    fn lists_in_words() {
        let words = ["A", "B", "C"].map(str::to_owned);
        assert_eq!([list(&words), list(&words[..2]), list(&words[..1])], ["A, B and C", "A and B", "A"]);
    }
}
