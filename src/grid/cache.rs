//! A bounded cache of decoded chunks, for reads that are smaller than a chunk.

use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::value::Values;

/// The chunks used last, up to a number of them.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    capacity: usize,
    /// Chunk number and content, least recently used first.
    chunks: Mutex<Vec<(u64, Arc<Values>)>>,
}

impl ChunkCache {
    /// Keeps about `bytes` of chunks of `chunk_bytes` each, and at least one.
    pub(crate) fn new(bytes: u64, chunk_bytes: u64) -> Self {
        // a handful suffices for sweeps; the search is linear
        let capacity = (bytes / chunk_bytes.max(1)).clamp(1, 256) as usize;
        ChunkCache { capacity, chunks: Mutex::new(Vec::new()) }
    }

    /// The chunk `number`, from `read` if it is not here.
    pub(crate) fn get(&self, number: u64, read: impl FnOnce() -> Result<Values>) -> Result<Arc<Values>> {
        {
            let mut chunks = self.lock();
            if let Some(found) = chunks.iter().rposition(|(known, _)| *known == number) {
                let entry = chunks.remove(found);
                let values = entry.1.clone();
                chunks.push(entry);
                return Ok(values);
            }
        }
        // read without the lock: two threads may read the same chunk, which is harmless
        let values = Arc::new(read()?);
        let mut chunks = self.lock();
        if chunks.len() >= self.capacity {
            chunks.remove(0);
        }
        chunks.push((number, values.clone()));
        Ok(values)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Arc<Values>)>> {
        // the list is whole between any two statements that can panic
        self.chunks.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
