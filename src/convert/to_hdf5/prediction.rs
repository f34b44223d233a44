//! Predicts how large a converted HDF5 file will be, and how long the conversion will take.
//! Rates are assumed, in bytes of elements per second.

use super::plan::{ColumnPlan, Plan, TablePlan, ToHdf5Options};
use crate::call::pool;
use crate::native::MAIN_TABLE;
use crate::output::SyncPolicy;
use crate::source::Averaged;
use crate::value::DataType;

/// Headers, indices and attributes of a column; fitted to the tables of testdata/.
const COLUMN_OVERHEAD: f64 = 2200.0;
/// Groups, documents and scales of a table; fitted to the tables of testdata/.
const TABLE_OVERHEAD: f64 = 5500.0;
/// BLAKE3, with the gathering of small cells.
const DIGEST_RATE: f64 = 2.5e9;
/// Reading from the page cache.
const READ_RATE: f64 = 3e9;
const DISK_RATE: f64 = 1.2e9;
/// Writing to the page cache, without waiting for the disk.
const CACHE_RATE: f64 = 4e9;
/// Rebuilding original files from datasets and comparing them.
const RESTORABLE_RATE: f64 = 0.5e9;
const QUICKLOOK_RATE: f64 = 0.3e9;
/// Bytes before averaging.
const AVERAGING_RATE: f64 = 0.2e9;
/// Delay by concurrent writing to the disk, as a fraction of the time of that.
const DISTURBANCE: f64 = 0.2;
/// Time to read cells whose shapes were read one by one, in units of the time of that.
const SCATTERED: f64 = 2.0;
/// Time of each cell beside its elements.
const CELL_SECONDS: f64 = 4e-9;
/// Gain by each further thread as a fraction: threads share memory, and wait for each other.
const FURTHER_THREAD: f64 = 0.8;
const COLUMN_SECONDS: f64 = 2e-4;
/// Compressed size of row numbers and of places of cells, as a fraction.
const NUMBERS_REMAIN: f64 = 0.02;
const TABLE_SECONDS: f64 = 3.3e-3;

/// Predicted size and duration of a conversion of casacore tables to HDF5, computed before it runs.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Prediction {
    /// Predicted size of the HDF5 file in bytes.
    pub file_bytes: u64,
    /// Predicted time of the conversion in seconds, if the source is in the page cache and the
    /// machine has nothing else to do.
    pub seconds: f64,
    /// Rate in bytes per second at which the disk of the HDF5 file writes, if it was measured;
    /// otherwise `None`, and 1.2 GB/s are assumed.
    pub disk_rate: Option<f64>,
}

/// Compressed size, as a fraction, of columns without a sample.
fn usual_remains(data_type: DataType) -> f64 {
    match data_type {
        DataType::Float | DataType::Complex | DataType::DComplex => 0.85,
        DataType::Double => 0.5,
        _ => 0.3,
    }
}

impl ColumnPlan {
    fn expected_bytes(&self) -> f64 {
        let remains = match (self.compression.is_none(), self.sample_remains()) {
            (true, _) => self.form.padding(),
            (false, remains) => remains.unwrap_or_else(|| usual_remains(self.data_type)),
        };
        COLUMN_OVERHEAD + self.bytes as f64 * remains
    }

    /// Reading and digesting, without compression, which several threads share.
    fn lane_seconds(&self, rows: u64, digest: bool) -> f64 {
        let digested = self.bytes as f64 + rows as f64 * self.form.digested_header() as f64;
        let digesting = if digest { digested / DIGEST_RATE } else { 0.0 };
        // elements lie as far from each other as shapes do
        self.decoding_seconds + SCATTERED * self.survey_seconds + rows as f64 * CELL_SECONDS + digesting
    }

    /// Seconds in which one thread compresses the column; 0 without a sample.
    fn filter_seconds(&self) -> f64 {
        let sample = self.sample.filter(|_| !self.compression.is_none());
        sample.map_or(0.0, |sample| sample.seconds_per_byte * self.bytes as f64)
    }
}

impl TablePlan {
    fn expected_bytes(&self, options: &ToHdf5Options) -> f64 {
        let rows = self.rows.end - self.rows.start;
        // the numbers of rows, and what tells where their cells are
        let located = 8 + self.columns.iter().map(|column| column.form.locating_bytes()).sum::<u64>();
        let remains = if options.compress.of_row_numbers(rows).is_none() { 1.0 } else { NUMBERS_REMAIN };
        let columns = self.columns.iter().map(ColumnPlan::expected_bytes).sum::<f64>();
        TABLE_OVERHEAD + columns + (rows * located) as f64 * remains
    }
}

impl Plan {
    /// `disk_rate` is in bytes per second, `None` if unknown.
    pub(crate) fn prediction(
        &self,
        options: &ToHdf5Options,
        sync: SyncPolicy,
        averaged: Option<&Averaged>,
        disk_rate: Option<f64>,
    ) -> Prediction {
        let (bytes, columns) = (self.bytes() as f64, self.columns().count() as f64);
        let survey = self.columns().map(|column| column.survey_seconds).sum::<f64>();
        let tables = self.tables.len() as f64;
        let file_bytes = self.tables.iter().map(|table| table.expected_bytes(options)).sum::<f64>();
        let filters = self.columns().map(ColumnPlan::filter_seconds).sum::<f64>();
        let lanes = self.tables.iter().flat_map(|table| {
            let rows = table.rows.end - table.rows.start;
            table.columns.iter().map(move |column| column.lane_seconds(rows, options.digest))
        });
        let (together, longest) = lanes.fold((0.0, 0.0f64), |(sum, most), seconds| (sum + seconds, most.max(seconds)));
        let moving = bytes / READ_RATE + file_bytes / CACHE_RATE;
        let threads = 1.0 + FURTHER_THREAD * (pool::threads(options.threads) - 1) as f64;
        let converting = longest.max((filters + together + moving) / threads);
        let planning = columns * COLUMN_SECONDS + tables * TABLE_SECONDS + survey;
        let on_disk = file_bytes / disk_rate.unwrap_or(DISK_RATE);
        let written = match sync {
            SyncPolicy::Never => converting,
            SyncPolicy::End => converting + on_disk,
            SyncPolicy::Behind => on_disk.max(converting + DISTURBANCE * on_disk),
        };
        let restorable = if options.restorable { bytes / RESTORABLE_RATE } else { 0.0 };
        let quicklook = if options.quicklook { self.visibility_bytes() as f64 / QUICKLOOK_RATE } else { 0.0 };
        let averaging = averaged.map_or(0.0, |averaged| bytes * averaged.reduction() / AVERAGING_RATE);
        Prediction {
            file_bytes: file_bytes as u64,
            disk_rate,
            seconds: planning + written + restorable + quicklook + averaging,
        }
    }

    /// All columns of complex numbers in the main table.
    fn visibility_bytes(&self) -> u64 {
        let main = self.tables.iter().filter(|table| table.name == MAIN_TABLE);
        let is_complex = |column: &&ColumnPlan| matches!(column.data_type, DataType::Complex | DataType::DComplex);
        main.flat_map(|table| table.columns.iter().filter(is_complex)).map(|column| column.bytes).sum()
    }
}
