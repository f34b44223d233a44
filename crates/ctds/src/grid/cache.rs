//! A bounded cache of decoded chunks, for reads that are smaller than a chunk.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::Result;
use crate::io::Asked;
use crate::sync::LockUnpoisoned;
use crate::value::Values;

/// Number of the grid among those that share the cache, and linear number of the chunk in it.
pub(super) type ChunkKey = (u64, u64);

/// A cache of the decoded chunks used last, up to a number of bytes.
#[derive(Debug)]
pub struct ChunkCache {
    /// Limit for decoded chunks; an element without a fixed size (a string) counts as one byte.
    capacity_bytes: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    bytes: usize,
    /// Reads of parts of chunks that are not cached.
    asked: Asked<ChunkKey>,
    /// Each chunk has the logical time of its last use.
    chunks: HashMap<ChunkKey, (u64, Arc<Values>)>,
    /// Chunks by their last use, to find the one unused for longest.
    used: BTreeMap<u64, ChunkKey>,
    /// Logical time: accesses so far, without repeated ones to the chunk used last.
    time: u64,
}

impl Inner {
    /// Marks the chunk as the most recently used one.
    fn find(&mut self, key: ChunkKey) -> Option<Arc<Values>> {
        let (last, values) = self.chunks.get_mut(&key)?;
        if *last != self.time {
            self.used.remove(last);
            self.time += 1;
            *last = self.time;
            self.used.insert(self.time, key);
        }
        Some(values.clone())
    }

    fn add(&mut self, key: ChunkKey, values: Arc<Values>) {
        self.time += 1;
        self.bytes += bytes(&values);
        self.used.insert(self.time, key);
        // another thread may have read the same chunk
        if let Some((last, other)) = self.chunks.insert(key, (self.time, values)) {
            self.used.remove(&last);
            self.bytes -= bytes(&other);
        }
    }

    fn remove_oldest(&mut self) {
        let oldest = self.used.pop_first().and_then(|(_, key)| self.chunks.remove(&key));
        self.bytes -= oldest.map_or(0, |(_, values)| bytes(&values));
    }
}

impl ChunkCache {
    /// A cache that keeps at most `capacity_bytes` of decoded chunks, or only the chunk used last
    /// if that is larger.
    pub fn new(capacity_bytes: usize) -> Self {
        ChunkCache { capacity_bytes, inner: Mutex::default() }
    }

    /// Returns the chunk `key` from the cache; if it is not cached, calls `read` to decode it, and
    /// caches it.
    pub fn get(&self, key: ChunkKey, read: impl FnOnce() -> Result<Values>) -> Result<Arc<Values>> {
        if let Some(found) = self.lock().find(key) {
            return Ok(found);
        }
        // read without the lock: two threads may read the same chunk, which is harmless
        let values = Arc::new(read()?);
        let mut inner = self.lock();
        inner.add(key, values.clone());
        while inner.bytes > self.capacity_bytes && inner.chunks.len() > 1 {
            inner.remove_oldest();
        }
        Ok(values)
    }

    /// Whether the chunk `key`, of `len` elements, is cached, or should now be read whole because
    /// many parts of it were requested. Counts this call as a request for a part that starts at
    /// element `at`.
    pub fn expects(&self, key: ChunkKey, at: u64, len: u64) -> bool {
        let mut inner = self.lock();
        inner.chunks.contains_key(&key) || inner.asked.is_worth_reading(key, at, len)
    }

    /// Removes all chunks from the cache; those that are in use stay valid.
    pub fn clear(&self) {
        // freed without the lock
        let inner = std::mem::take(&mut *self.lock());
        drop(inner);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // the list is whole between any two statements that can panic
        self.inner.lock_unpoisoned()
    }
}

fn bytes(values: &Values) -> usize {
    values.len() * values.data_type().size().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_what_it_is_told_to() {
        let cache = ChunkCache::new(100);
        let read = |count| move || Ok(Values::UChar(vec![0; count]));
        cache.get((0, 1), read(10)).unwrap();
        cache.clear();
        assert!(!cache.expects((0, 1), 0, 100 << 20));
        assert_eq!(cache.get((0, 1), read(20)).unwrap().len(), 20);
    }

    #[test]
    fn keeps_what_was_used_last() {
        let cache = ChunkCache::new(300);
        let read = |key: u64| {
            *cache.get((0, key), || Ok(Values::UChar(vec![key as u8; 100]))).unwrap()
                == Values::UChar(vec![key as u8; 100])
        };
        let is_here = |key: u64| cache.get((0, key), || Ok(Values::UChar(Vec::new()))).unwrap().len() == 100;
        assert!((0..3).all(read));
        assert!(is_here(0), "used last: 1 goes first");
        assert!(read(3));
        assert!([0, 2, 3].into_iter().all(is_here));
        assert!(!is_here(1), "an empty one was read in its place");
        // larger than all that is kept
        assert_eq!(cache.get((1, 9), || Ok(Values::UChar(vec![0; 1000]))).unwrap().len(), 1000);
        let inner = cache.lock();
        assert_eq!((inner.chunks.len(), inner.used.len(), inner.bytes), (1, 1, 1000));
    }
}
