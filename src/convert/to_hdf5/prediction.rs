//! Predicts how large a converted HDF5 file will be, and how long the conversion will take.

use super::plan::{ColumnPlan, Plan, ToHdf5Options};
use crate::pool;
use crate::value::DataType;

/// Predicted bytes of headers, indices and attributes for each column of a converted file; fitted to the tables of testdata/.
const COLUMN_OVERHEAD: f64 = 2200.0;
/// Predicted bytes of groups, JSON documents and dimension scales for each table of a converted file; fitted to the tables of testdata/.
const TABLE_OVERHEAD: f64 = 5500.0;
/// Assumed rate of computing digests, in bytes per second, on a processor with instructions for SHA-256.
const DIGEST_RATE: f64 = 1.4e9;
/// Assumed rate of reading the source from the page cache into memory, in bytes per second.
const READ_RATE: f64 = 3e9;
/// Assumed rate of writing to the disk, in bytes per second.
const WRITE_RATE: f64 = 1.2e9;
/// Assumed time in seconds to open a column of the source and to create its datasets.
const COLUMN_SECONDS: f64 = 2e-4;
/// Assumed time in seconds to open a table of the source, and to create its groups and JSON documents in the HDF5 file.
const TABLE_SECONDS: f64 = 3.3e-3;

/// Predicted size and duration of a conversion of casacore tables to HDF5, computed before it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// Predicted size of the HDF5 file in bytes.
    pub file_bytes: u64,
    /// Predicted time of the conversion in seconds, if the source is in the page cache and the machine has nothing else to do.
    pub seconds: f64,
}

/// Assumed compressed size of a column with elements of this type, as a fraction of its bytes. It is used for columns of which no sample
/// was compressed.
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

    /// Predicted processor time in seconds for compressing the column; 0 if the column is not compressed, or no sample
    /// of it was compressed.
    fn filter_seconds(&self) -> f64 {
        let sample = self.sample.filter(|_| !self.compression.is_none());
        sample.map_or(0.0, |sample| sample.seconds_per_byte * self.bytes as f64)
    }
}

impl Plan {
    /// Predicts the size of the HDF5 file and the duration of the conversion, from compressed samples of the columns and from rates
    /// measured on an ordinary machine.
    pub(crate) fn prediction(&self, options: &ToHdf5Options) -> Prediction {
        let (bytes, columns) = (self.bytes() as f64, self.columns().count() as f64);
        let tables = self.tables.len() as f64;
        let file_bytes = tables * TABLE_OVERHEAD + self.columns().map(ColumnPlan::expected_bytes).sum::<f64>();
        let filters = self.columns().map(ColumnPlan::filter_seconds).sum::<f64>();
        let digests = if options.digest { bytes / DIGEST_RATE } else { 0.0 };
        let moving = bytes / READ_RATE + file_bytes / WRITE_RATE;
        let threads = pool::threads(options.threads) as f64;
        let seconds = (filters + digests) / threads + moving + columns * COLUMN_SECONDS + tables * TABLE_SECONDS;
        Prediction { file_bytes: file_bytes as u64, seconds }
    }
}
