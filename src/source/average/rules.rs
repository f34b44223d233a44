//! Rules of averaging: how each column of the averaged main table is computed.

use crate::schema::ColumnKind;
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::{DataType, Shape};

/// Names of the integer columns that together identify the baseline of a row.
const BASELINE: [&str; 6] = ["ANTENNA1", "ANTENNA2", "ANTENNA3", "FEED1", "FEED2", "FEED3"];
/// Names of integer columns that must be equal in rows that are averaged together, besides those whose names end in `_ID`.
const OTHERS: [&str; 2] = ["SCAN_NUMBER", "PULSAR_BIN"];
/// Maximum number of rows, spread evenly over the table, whose cell shapes are read to find the averaging rule of a
/// column.
const PROBED_ROWS: u64 = 4096;

/// How a column of the averaged main table is computed from the rows of a time bin, and from their channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The integer that all rows of a time bin have in the column. `of_baseline`: whether the column is one of those
    /// that identify a baseline (ANTENNA1, FEED1 …).
    Key {
        of_baseline: bool,
    },
    /// The cell that the first row of a time bin has in the column.
    First,
    /// The weighted mean of the unflagged samples (visibilities) of a time bin, for each correlation and averaged
    /// channel. If none of them has a positive weight: that of the flagged samples; if no sample at all has one: the
    /// plain mean of all.
    Mean,
    Flag,
    FlagRow,
    /// The sum of the weights of the samples that the rule `Mean` averages, for each correlation and averaged channel
    /// of a time bin; 0 if no weight is positive.
    WeightSpectrum,
    /// Rule of the column SIGMA_SPECTRUM, the standard deviation of each averaged sample: 1 / sqrt(weight), where the
    /// weight is the sum that the rule `WeightSpectrum` computes; -1 if this weight is 0.
    SigmaSpectrum,
    /// Rule of the column WEIGHT: for each correlation, the mean of the weights that the rule `WeightSpectrum` computes
    /// for the averaged channels of a time bin. Flagged averaged channels do not count, unless all are flagged.
    Weight,
    /// Rule of the column SIGMA, the standard deviation of each correlation: 1 / sqrt(weight), where the weight is the
    /// mean over the averaged channels, as the rule `Weight` computes it; -1 if this weight is 0.
    Sigma,
    /// The time in the middle of a time bin, in s: between the start of the earliest row and the end of the latest, of
    /// all baselines that share the bin.
    Time,
    /// The mean of the cells of a time bin's rows, each row weighted by the sum of the weights of its unflagged
    /// samples; unweighted if all these sums are 0.
    RowMean,
    /// The sum of the cells of all rows of a time bin. Used for the column INTERVAL.
    Interval,
    /// The sum of the cells of those rows of a time bin that have a sample which is not flagged; of all its rows if
    /// none has one.
    Exposure,
    /// The column of the averaged table has no defined cell, whatever the original column holds: FLAG_CATEGORY.
    Undefined,
    /// The column cannot be read after averaging: it has channels, and no rule for their mean is known.
    LeftOut,
}

impl Rule {
    /// Whether the cells of a column with this rule have an axis of channels, which averaging makes shorter.
    pub(super) fn has_channels(self) -> bool {
        matches!(self, Rule::Mean | Rule::Flag | Rule::WeightSpectrum | Rule::SigmaSpectrum)
    }

    /// Whether a column with this rule is computed from the samples (one for each correlation and channel) of the rows:
    /// true if it has a value for each sample, and also for FLAG_ROW, WEIGHT and SIGMA, which sum up flags or weights.
    pub(super) fn is_of_samples(self) -> bool {
        self.has_channels() || matches!(self, Rule::FlagRow | Rule::Weight | Rule::Sigma)
    }

    /// The averaging rule for a column, if its name and type decide it; `None` if the shapes of its cells must decide.
    pub(super) fn by_name(info: &ColumnInfo) -> Option<Rule> {
        let name = String::from_utf8_lossy(&info.desc.name);
        let name = name.as_ref();
        let (is_array, data_type) = (info.desc.kind == ColumnKind::Array, info.data_type());
        let is_integer =
            matches!(data_type, DataType::Int | DataType::Short | DataType::Int64 | DataType::UInt | DataType::UShort);
        let is_key = BASELINE.contains(&name) || OTHERS.contains(&name) || name.ends_with("_ID");
        Some(match (name, is_array, data_type) {
            _ if is_key && is_integer && !is_array => Rule::Key { of_baseline: BASELINE.contains(&name) },
            ("TIME", false, DataType::Double) => Rule::Time,
            ("TIME_CENTROID", false, DataType::Double) => Rule::RowMean,
            ("INTERVAL", false, DataType::Double) => Rule::Interval,
            ("EXPOSURE", false, DataType::Double) => Rule::Exposure,
            ("UVW" | "UVW2", true, DataType::Double) => Rule::RowMean,
            ("FLAG", true, DataType::Bool) => Rule::Flag,
            ("FLAG_ROW", false, DataType::Bool) => Rule::FlagRow,
            ("FLAG_CATEGORY", true, DataType::Bool) => Rule::Undefined,
            ("WEIGHT", true, DataType::Float) => Rule::Weight,
            ("SIGMA", true, DataType::Float) => Rule::Sigma,
            ("WEIGHT_SPECTRUM", true, DataType::Float) => Rule::WeightSpectrum,
            ("SIGMA_SPECTRUM", true, DataType::Float) => Rule::SigmaSpectrum,
            ("FLOAT_DATA", true, DataType::Float | DataType::Double) => Rule::Mean,
            (_, true, DataType::Complex | DataType::DComplex) => return None,
            (_, true, _) => return None,
            _ => Rule::First,
        })
    }

    /// The averaging rule for an array column whose name does not decide it. `cells` lists pairs of shapes: of a cell
    /// and of the visibilities in the same row. Complex columns with equal shapes are averaged; columns with an axis of
    /// the same length as the channel axis are left out if `factor` (channels averaged to one) exceeds 1.
    pub(super) fn by_cells(info: &ColumnInfo, cells: &[(Shape, Shape)], factor: u64) -> Rule {
        let is_complex = matches!(info.data_type(), DataType::Complex | DataType::DComplex);
        if is_complex && !cells.is_empty() && cells.iter().all(|(cell, samples)| cell == samples) {
            return Rule::Mean;
        }
        let has_channels = |(cell, samples): &(Shape, Shape)| {
            samples.last().is_some_and(|channels| *channels > 1 && cell.contains(channels))
        };
        if factor > 1 && cells.iter().any(has_channels) { Rule::LeftOut } else { Rule::First }
    }
}

/// The shapes of defined cells of a column, each with the shape of the samples (visibilities) in the same row, fastest
/// axis first. Up to 4096 rows, spread evenly over the table, are read; consecutive repeats are left out.
pub(super) fn shapes(cells: &dyn ColumnCells, samples: &dyn ColumnCells, rows: u64) -> Vec<(Shape, Shape)> {
    let step = rows.div_ceil(PROBED_ROWS).max(1);
    let shapes = |row| Some((cells.cell_shape(row).ok()??, samples.cell_shape(row).ok()??));
    let mut found: Vec<_> = (0..rows).step_by(step as usize).filter_map(shapes).collect();
    found.dedup();
    found
}

/// The shape of the first defined cell among up to 4096 rows spread evenly over the table, fastest axis first; `None` if none
/// of them is defined.
pub(super) fn probe(cells: &dyn ColumnCells, rows: u64) -> Option<Shape> {
    let step = rows.div_ceil(PROBED_ROWS).max(1);
    (0..rows).step_by(step as usize).find_map(|row| cells.cell_shape(row).ok()?)
}
