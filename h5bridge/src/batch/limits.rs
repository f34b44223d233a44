//! Limits of a run of `h5bridge batch`: when it starts no more items (jobs), how fast it reads, how
//! much space it leaves free.

use std::path::Path;
use std::time::{Duration, Instant};

use ctds_hdf5::program::os::free_bytes;

#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Items at the same time; 0 counts as 1.
    pub(crate) jobs: usize,
    /// Repetitions of an item that fails for a reason that may pass, such as a lock.
    pub(crate) retries: u32,
    /// Pause before the first repetition; each later one is six times as long.
    pub(crate) retry_wait: Duration,
    /// From the start of the run: no item starts later.
    pub(crate) stop_after: Option<Duration>,
    /// Average bytes of sources per second; 0: unlimited.
    pub(crate) read_rate: Option<u64>,
    /// Bytes that must be free on the file system of a target before its item starts.
    pub(crate) min_free: u64,
}

impl Limits {
    /// `repetition` counts from 1.
    pub(super) fn pause(&self, repetition: u32) -> Duration {
        if repetition <= 1 { self.retry_wait } else { self.retry_wait.saturating_mul(6) }
    }

    /// True if that cannot be found out.
    pub(super) fn has_space(&self, directory: &Path) -> bool {
        let existing = directory.ancestors().find(|path| path.is_dir());
        existing.is_none_or(|path| free_bytes(path).map_or(true, |free| free >= self.min_free))
    }
}

/// Delays items so that the bytes of their sources stay below a rate, on average.
#[derive(Debug)]
pub(super) struct Pace {
    rate: Option<u64>,
    next: Instant,
}

impl Pace {
    pub(super) fn new(rate: Option<u64>) -> Self {
        Pace { rate, next: Instant::now() }
    }

    pub(super) fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn start(&mut self, bytes: u64) {
        let Some(rate) = self.rate.filter(|&rate| rate > 0) else { return };
        let time = Duration::try_from_secs_f64(bytes as f64 / rate as f64).unwrap_or(Duration::MAX);
        let now = Instant::now().max(self.next);
        self.next = now.checked_add(time).unwrap_or(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_paced_by_their_bytes() {
        let mut pace = Pace::new(Some(1000));
        let start = Instant::now();
        pace.start(5000);
        pace.start(1000);
        let wait = pace.next() - start;
        assert!(wait >= Duration::from_secs(6) && wait < Duration::from_secs(7), "{wait:?}");
        let mut pace = Pace::new(None);
        pace.start(u64::MAX);
        assert!(pace.next() <= Instant::now());
    }
}
