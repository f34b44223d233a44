//! The memory that a conversion needs, and how many columns are converted concurrently within it.

use super::plan::Plan;
use super::profile::CHUNK_BYTES;
use crate::source::blocks::WRITE_BYTES;

/// Maximum number of filtered chunks of a lane (a thread that converts columns) that wait for the writing thread.
pub(super) const QUEUED_CHUNKS: usize = 2;
/// How many chunks of a lane are being filtered while it makes the next one.
pub(super) const CHUNKS_IN_FILTERS: usize = 3;
/// Maximum number of chunks that a lane holds in memory.
const CHUNKS_HELD: u64 = (QUEUED_CHUNKS + 2 * (CHUNKS_IN_FILTERS + 1) + 2) as u64;
/// Maximum number of columns that are read, digested and filtered concurrently.
const MAX_LANES: u64 = 4;
/// Bytes of memory that the program needs before it converts anything.
const BASE_BYTES: u64 = 24 << 20;

impl Plan {
    /// How many columns are converted concurrently, so that about `max_memory` bytes of memory suffice; 1 to 4.
    pub(crate) fn lanes(&self, max_memory: u64) -> u64 {
        (max_memory / self.lane_bytes()).clamp(1, MAX_LANES)
    }

    /// Estimate of the memory in bytes that the conversion uses if it is limited to about `max_memory` bytes.
    pub fn memory(&self, max_memory: u64) -> u64 {
        BASE_BYTES + self.lanes(max_memory) * self.lane_bytes()
    }

    /// Bytes of memory that a lane holds: its chunks, the rows that it reads, and the memory for
    /// averaging rows, if that is wanted.
    fn lane_bytes(&self) -> u64 {
        let largest = self.columns().map(|column| column.form.chunk_bytes(column.data_type)).max().unwrap_or(0);
        largest.max(CHUNK_BYTES) * CHUNKS_HELD + 2 * WRITE_BYTES + self.averaging_bytes
    }
}
