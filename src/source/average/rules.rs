//! Rules of averaging: how each column of the averaged main table is computed.

use crate::schema::ColumnKind;
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::{DataType, Shape};

const BASELINE: [&str; 6] = ["ANTENNA1", "ANTENNA2", "ANTENNA3", "FEED1", "FEED2", "FEED3"];
/// Integers that must be equal beside those whose names end in `_ID`.
const OTHERS: [&str; 2] = ["SCAN_NUMBER", "PULSAR_BIN"];
/// Rows, spread evenly, whose shapes are read to find a rule.
const PROBED_ROWS: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The same integer in all rows of a bin; `of_baseline` if it identifies a baseline (ANTENNA1).
    Key {
        of_baseline: bool,
    },
    /// The cell of the first row.
    First,
    /// Weighted mean of unflagged samples, for each correlation and averaged channel. If none has a
    /// positive weight: that of the flagged samples; if no sample at all has one: the plain mean of
    /// all.
    Mean,
    Flag,
    FlagRow,
    /// Sum of the weights of the samples that `Mean` averages; 0 if none is positive.
    WeightSpectrum,
    /// Standard deviation: 1 / sqrt(weight) of `WeightSpectrum`; -1 if that is 0.
    SigmaSpectrum,
    /// Mean of `WeightSpectrum` over averaged channels; flagged ones count only if all are flagged.
    Weight,
    /// Standard deviation: 1 / sqrt(weight) of `Weight`; -1 if that is 0.
    Sigma,
    /// Middle of the bin, in s: earliest start to latest end of a row, of all baselines.
    Time,
    /// Mean weighted by the sum of weights of a row's unflagged samples; unweighted if all are 0.
    RowMean,
    /// Sum of all rows: INTERVAL.
    Interval,
    /// Sum of the rows that have an unflagged sample; of all if none has one.
    Exposure,
    /// No defined cell, whatever the original column holds: FLAG_CATEGORY.
    Undefined,
    /// Cannot be read after averaging: it has channels, and no rule for their mean is known.
    LeftOut,
}

impl Rule {
    pub(super) fn has_channels(self) -> bool {
        matches!(self, Rule::Mean | Rule::Flag | Rule::WeightSpectrum | Rule::SigmaSpectrum)
    }

    /// Computed from samples: a value for each, or FLAG_ROW, WEIGHT and SIGMA.
    pub(super) fn is_of_samples(self) -> bool {
        self.has_channels() || matches!(self, Rule::FlagRow | Rule::Weight | Rule::Sigma)
    }

    /// `None` if the shapes of cells must decide.
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

    /// `cells` are pairs of shapes: of a cell and of the visibilities in its row. Complex columns
    /// with equal shapes are averaged; columns with an axis as long as that of channels are left
    /// out if `factor` exceeds 1.
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

/// Shapes of defined cells and of their rows' samples in [`PROBED_ROWS`] rows, without repeats.
pub(super) fn shapes(cells: &dyn ColumnCells, samples: &dyn ColumnCells, rows: u64) -> Vec<(Shape, Shape)> {
    let step = rows.div_ceil(PROBED_ROWS).max(1);
    let shapes = |row| Some((cells.cell_shape(row).ok()??, samples.cell_shape(row).ok()??));
    let mut found: Vec<_> = (0..rows).step_by(step as usize).filter_map(shapes).collect();
    found.dedup();
    found
}

/// First defined cell among up to 4096 rows, spread evenly, fastest axis first.
pub(super) fn probe(cells: &dyn ColumnCells, rows: u64) -> Option<Shape> {
    let step = rows.div_ceil(PROBED_ROWS).max(1);
    (0..rows).step_by(step as usize).find_map(|row| cells.cell_shape(row).ok()?)
}
