//! Rules of averaging: how each column of the averaged main table is computed.

use crate::schema::ColumnKind;
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::{DataType, Shape};

/// Names of the columns of numbers that tell baselines apart.
const BASELINE: [&str; 6] = ["ANTENNA1", "ANTENNA2", "ANTENNA3", "FEED1", "FEED2", "FEED3"];
/// Names of columns of numbers that must be equal in rows that are averaged together, besides those whose names end in `_ID`.
const OTHERS: [&str; 2] = ["SCAN_NUMBER", "PULSAR_BIN"];
/// Number of rows, all over the table, whose cells are looked at to find the rule of a column.
const PROBED_ROWS: u64 = 4096;

/// How a column of the averaged main table is computed from the rows and channels of a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The column has the same number in all rows of a bin; `of_baseline`: it tells the baselines apart that share a bin.
    Key {
        of_baseline: bool,
    },
    /// The value that the first row of a bin has in the column.
    First,
    /// The weighted mean of the samples of a bin.
    Mean,
    Flag,
    FlagRow,
    /// The sum of the weights of the samples of a bin.
    WeightSpectrum,
    /// The standard deviation of each averaged sample: 1 / sqrt of the sum of weights.
    SigmaSpectrum,
    /// The mean over channels of the sums of weights, for each correlation.
    Weight,
    /// The standard deviation for each correlation: 1 / sqrt of the mean over channels of the sums of weights.
    Sigma,
    /// The middle of a bin of rows, in s.
    Time,
    /// The mean of the cells of a bin's rows by the weights of the rows.
    RowMean,
    /// The sum of the cells of all rows of a bin.
    Interval,
    /// The sum of the cells of those rows of a bin that have samples which are not flagged.
    Exposure,
    /// No cell of the averaged column is defined.
    Undefined,
    /// The column cannot be read after averaging: it has channels, and no rule for their mean is known.
    LeftOut,
}

impl Rule {
    /// Whether the cells of the column have channels, of which averaging leaves fewer.
    pub(super) fn has_channels(self) -> bool {
        matches!(self, Rule::Mean | Rule::Flag | Rule::WeightSpectrum | Rule::SigmaSpectrum)
    }

    /// Whether the column is computed from the samples of a bin, or from their flags and weights.
    pub(super) fn is_of_samples(self) -> bool {
        self.has_channels() || matches!(self, Rule::FlagRow | Rule::Weight | Rule::Sigma)
    }

    /// The rule for a column by its name; `None` if only its cells can decide.
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

    /// The rule for an array column that its name does not give, from the shapes of some of its cells and of the samples in the
    /// same rows. Complex numbers of the same shape are samples; other cells with an axis as long as the channels cannot be
    /// kept if these become fewer.
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

/// The shapes of defined cells of a column, each with that of the samples in the same row, for rows all over the table; fastest
/// axis first.
pub(super) fn shapes(cells: &dyn ColumnCells, samples: &dyn ColumnCells, rows: u64) -> Vec<(Shape, Shape)> {
    let step = rows.div_ceil(PROBED_ROWS).max(1);
    let shapes = |row| Some((cells.cell_shape(row).ok()??, samples.cell_shape(row).ok()??));
    let mut found: Vec<_> = (0..rows).step_by(step as usize).filter_map(shapes).collect();
    found.dedup();
    found
}

/// The shape of the first defined cell among rows all over the table, fastest axis first; `None` if none of them is defined.
pub(super) fn probe(cells: &dyn ColumnCells, rows: u64) -> Option<Shape> {
    let step = rows.div_ceil(PROBED_ROWS).max(1);
    (0..rows).step_by(step as usize).find_map(|row| cells.cell_shape(row).ok()?)
}
