//! Worker threads.

use crate::error::{Error, ErrorKind, Result};

/// `threads` threads; 0: one for each processor.
pub(crate) fn thread_pool(threads: usize) -> Result<rayon::ThreadPool> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::new(ErrorKind::Io, "threads cannot be started").caused_by(error))
}
