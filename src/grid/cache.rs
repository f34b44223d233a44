//! A bounded cache of decoded chunks, for reads that are smaller than a chunk.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::Result;
use crate::sync::LockUnpoisoned;
use crate::value::Values;

/// Which of several grids, and the linear number of the chunk in it.
pub(crate) type ChunkKey = (u64, u64);

/// The chunks used last, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    /// Elements are counted at a byte each where their size is not fixed.
    capacity_bytes: usize,
    inner: Mutex<Inner>,
}

/// How many chunks that were asked for are remembered, besides those that are kept.
const ASKED_FOR: usize = 8;

#[derive(Debug, Default)]
struct Inner {
    bytes: usize,
    /// Those asked for last, of which only parts were read; the oldest first.
    asked_for: VecDeque<ChunkKey>,
    /// Least recently used first; a handful suffices for sweeps, so the search is linear.
    chunks: Vec<(ChunkKey, Arc<Values>)>,
}

impl ChunkCache {
    /// Keeps at most `capacity_bytes` of chunks, and always the last one.
    pub(crate) fn new(capacity_bytes: usize) -> Self {
        ChunkCache { capacity_bytes, inner: Mutex::default() }
    }

    /// The chunk `key`, from `read` if it is not here.
    pub(crate) fn get(&self, key: ChunkKey, read: impl FnOnce() -> Result<Values>) -> Result<Arc<Values>> {
        {
            let mut inner = self.lock();
            if let Some(found) = inner.chunks.iter().rposition(|(known, _)| *known == key) {
                let entry = inner.chunks.remove(found);
                let values = entry.1.clone();
                inner.chunks.push(entry);
                return Ok(values);
            }
        }
        // read without the lock: two threads may read the same chunk, which is harmless
        let values = Arc::new(read()?);
        let mut inner = self.lock();
        inner.bytes += bytes(&values);
        inner.chunks.push((key, values.clone()));
        while inner.bytes > self.capacity_bytes && inner.chunks.len() > 1 {
            let (_, oldest) = inner.chunks.remove(0);
            inner.bytes -= bytes(&oldest);
        }
        Ok(values)
    }

    /// Whether the chunk is here, or was asked for shortly before: the reads go through it, and it pays to have all of it.
    pub(crate) fn expects(&self, key: ChunkKey) -> bool {
        let mut inner = self.lock();
        if inner.asked_for.contains(&key) || inner.chunks.iter().any(|(known, _)| *known == key) {
            return true;
        }
        if inner.asked_for.len() == ASKED_FOR {
            inner.asked_for.pop_front();
        }
        inner.asked_for.push_back(key);
        false
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // the list is whole between any two statements that can panic
        self.inner.lock_unpoisoned()
    }
}

fn bytes(values: &Values) -> usize {
    values.len() * values.data_type().size().max(1)
}
