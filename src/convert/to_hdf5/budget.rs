//! The memory that a conversion takes.

use super::plan::Plan;
use super::profile::CHUNK_BYTES;
use crate::source::blocks::WRITE_BYTES;

/// Chunks that wait for the writer, for each lane.
pub(super) const QUEUED_CHUNKS: usize = 2;
/// Chunks that a lane filters at a time.
pub(super) const CHUNKS_FILTERED_TOGETHER: usize = 4;
/// Most chunks that a lane holds.
const CHUNKS_HELD: u64 = (QUEUED_CHUNKS + 2 * CHUNKS_FILTERED_TOGETHER + 2) as u64;
/// Columns that are read, digested and filtered at the same time, at most.
const MAX_LANES: u64 = 4;
/// What the program takes before it converts anything.
const BASE_BYTES: u64 = 24 << 20;

impl Plan {
    /// Columns that are worked on at the same time, so that about `max_memory` bytes suffice.
    pub(crate) fn lanes(&self, max_memory: u64) -> u64 {
        (max_memory / self.lane_bytes()).clamp(1, MAX_LANES)
    }

    /// Bytes that the conversion holds at a time, about, within `max_memory`.
    pub fn memory(&self, max_memory: u64) -> u64 {
        BASE_BYTES + self.lanes(max_memory) * self.lane_bytes()
    }

    /// Bytes that a lane holds: its chunks, what it reads, and the tiles it keeps.
    fn lane_bytes(&self) -> u64 {
        let largest = self.columns().map(|column| column.form.chunk_bytes(column.data_type)).max().unwrap_or(0);
        largest.max(CHUNK_BYTES) * CHUNKS_HELD + 2 * WRITE_BYTES + self.averaging_bytes
    }
}
