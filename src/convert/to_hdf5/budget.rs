//! The memory that a conversion needs, and how many columns are converted concurrently within it.

use super::plan::Plan;
use super::profile::CHUNK_BYTES;
use crate::source::blocks::WRITE_BYTES;

/// Filtered chunks of a lane that wait for the writer.
pub(super) const QUEUED_CHUNKS: usize = 2;
/// Chunks of a lane being filtered while it makes the next one.
pub(super) const CHUNKS_IN_FILTERS: usize = 3;
const CHUNKS_HELD: u64 = (QUEUED_CHUNKS + 2 * (CHUNKS_IN_FILTERS + 1) + 2) as u64;
const MAX_LANES: u64 = 4;
/// Memory that the program needs before it converts anything.
const BASE_BYTES: u64 = 24 << 20;

impl Plan {
    pub(crate) fn lanes(&self, max_memory: u64) -> u64 {
        (max_memory / self.lane_bytes()).clamp(1, MAX_LANES)
    }

    /// Bytes that the conversion uses if it is limited to about `max_memory`.
    pub fn memory(&self, max_memory: u64) -> u64 {
        BASE_BYTES + self.lanes(max_memory) * self.lane_bytes()
    }

    fn lane_bytes(&self) -> u64 {
        let largest = self.columns().map(|column| column.form.chunk_bytes(column.data_type)).max().unwrap_or(0);
        largest.max(CHUNK_BYTES) * CHUNKS_HELD + 2 * WRITE_BYTES + self.averaging_bytes
    }
}
