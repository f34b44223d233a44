//! Limits of a run of `h5bridge batch`: when it starts no more items, how fast it reads, how much space it leaves free.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;

/// Limits of a run of `h5bridge batch`: parallel items, repetitions, time, read rate, free space.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Number of items that are done at the same time.
    pub(crate) jobs: usize,
    /// How many times an item of the batch is repeated, at most, if it fails for a reason that may pass.
    pub(crate) retries: u32,
    /// Pause before an item is repeated for the first time; later pauses are six times as long as the one before.
    pub(crate) retry_wait: Duration,
    /// Time from the start of the run after which no more items are started; `None`: no limit.
    pub(crate) stop_after: Option<Duration>,
    /// Limit in bytes per second: items are started so late that the sizes of their sources stay below this rate on average; `None`: no limit.
    pub(crate) read_rate: Option<u64>,
    /// Bytes that must be free on the file system of a target before its item is started.
    pub(crate) min_free: u64,
}

impl Limits {
    /// Pause before repetition number `repetition` of an item, counted from 1.
    pub(super) fn pause(&self, repetition: u32) -> Duration {
        if repetition <= 1 { self.retry_wait } else { self.retry_wait.saturating_mul(6) }
    }

    /// Whether the file system of a directory has `min_free` free bytes; true if that cannot be found out.
    pub(super) fn has_space(&self, directory: &Path) -> bool {
        let existing = directory.ancestors().find(|path| path.is_dir());
        let Some(Ok(system)) = existing.map(statvfs) else { return true };
        system.blocks_available().saturating_mul(system.fragment_size()) >= self.min_free
    }
}

/// Delays the start of items so that the bytes of their sources do not exceed a rate, on average.
#[derive(Debug)]
pub(super) struct Pace {
    rate: Option<u64>,
    next: Instant,
}

impl Pace {
    pub(super) fn new(rate: Option<u64>) -> Self {
        Pace { rate, next: Instant::now() }
    }

    /// The earliest time at which the next item may start.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Counts an item that starts now and whose source has `bytes` bytes; this delays the item that starts after it.
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
