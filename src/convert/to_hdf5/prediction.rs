//! How large the file will be, and how long it will take.

use super::plan::{ColumnPlan, Plan, ToHdf5Options};
use crate::pool;

/// What remains of numbers of which no sample was taken; they are few.
const UNKNOWN_REMAINS: f64 = 0.5;
/// Bytes of headers, indices and attributes of a column.
const COLUMN_OVERHEAD: f64 = 4096.0;
/// Bytes a second: digests on a processor with instructions for SHA-256.
const DIGEST_RATE: f64 = 1.4e9;
/// Bytes a second: from the page cache of the source into memory.
const READ_RATE: f64 = 3e9;
/// Bytes a second: to the disk.
const WRITE_RATE: f64 = 1.2e9;
/// Seconds to open the source and to make the datasets of a column.
const COLUMN_SECONDS: f64 = 2e-4;

/// What is expected of a conversion before it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Time in seconds, if the source is in the page cache and the machine has nothing else to do.
    pub seconds: f64,
}

impl ColumnPlan {
    fn expected_bytes(&self) -> f64 {
        let remains = match (self.compression.is_none(), self.sample_remains()) {
            (true, _) => self.form.padding(),
            (false, remains) => remains.unwrap_or(UNKNOWN_REMAINS),
        };
        COLUMN_OVERHEAD + self.bytes as f64 * remains
    }

    /// Processor time for the filters.
    fn filter_seconds(&self) -> f64 {
        let sample = self.sample.filter(|_| !self.compression.is_none());
        sample.map_or(0.0, |sample| sample.seconds_per_byte * self.bytes as f64)
    }
}

impl Plan {
    /// The prediction, by what samples of the columns showed and the rates of an ordinary machine.
    pub(crate) fn prediction(&self, options: &ToHdf5Options) -> Prediction {
        let (bytes, columns) = (self.bytes() as f64, self.columns().count() as f64);
        let file_bytes = self.columns().map(ColumnPlan::expected_bytes).sum::<f64>();
        let filters = self.columns().map(ColumnPlan::filter_seconds).sum::<f64>();
        let digests = if options.digest { bytes / DIGEST_RATE } else { 0.0 };
        let moving = bytes / READ_RATE + file_bytes / WRITE_RATE;
        let threads = pool::threads(options.threads) as f64;
        let seconds = (filters + digests) / threads + moving + columns * COLUMN_SECONDS;
        Prediction { file_bytes: file_bytes as u64, seconds }
    }
}
