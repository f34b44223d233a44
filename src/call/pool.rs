//! Makes pools of worker threads, and keeps buffers that they share.

use std::sync::{Mutex, MutexGuard};

use crate::error::{Error, ErrorKind, Result};
use crate::sync::LockUnpoisoned;

/// Number of threads for an option `threads`: 0 stands for one thread for each processor.
pub(crate) fn threads(wanted: usize) -> usize {
    match wanted {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        wanted => wanted,
    }
}

/// A pool of `wanted` worker threads; 0: one for each processor.
pub(crate) fn thread_pool(wanted: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads(wanted)).build();
    pool.map_err(|error| Error::new(ErrorKind::Io, "threads cannot be started").caused_by(error))
}

/// Runs both closures, at the same time if this thread belongs to a pool with threads that have
/// nothing to do.
pub(crate) fn join_in_pool<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    // elsewhere rayon would use its global pool, which knows nothing of the number of threads that
    // is wanted
    match rayon::current_thread_index() {
        Some(_) => rayon::join(one, other),
        None => (one(), other()),
    }
}

/// Buffers for chunks, which threads take, use and return for reuse.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Returns a buffer of `len` bytes with unspecified content: the buffer that was given back
    /// last, or a new one.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        // the one given back last: it is still in the processor's cache
        let mut buffer = self.lock().pop().unwrap_or_default();
        buffer.resize(len, 0);
        buffer
    }

    /// Returns a buffer of `len` zero bytes: the buffer that was given back last, or a new one.
    pub(crate) fn zeros(&self, len: usize) -> Vec<u8> {
        let mut buffer = self.take(0);
        buffer.clear();
        buffer.resize(len, 0);
        buffer
    }

    pub(crate) fn give(&self, buffer: Vec<u8>) {
        let mut buffers = self.lock();
        if buffers.len() < 16 {
            buffers.push(buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock_unpoisoned()
    }
}
