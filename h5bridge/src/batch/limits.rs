//! Limits of a run of `h5bridge batch`: when it starts no more items (jobs), how fast it reads, how much space it
//! leaves free.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;

/// Limits of a run of `h5bridge batch`: items (jobs) at the same time, repetitions, time, read rate, free space.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Maximum number of items (jobs of the batch) that are done at the same time; 0 counts as 1.
    pub(crate) jobs: usize,
    /// Maximum number of repetitions of an item (one job of the batch) that fails for a reason that may pass, such as a
    /// lock.
    pub(crate) retries: u32,
    /// Pause before a failed item is repeated for the first time. Each later pause is six times as
    /// long as this first one.
    pub(crate) retry_wait: Duration,
    /// Time from the start of the run after which no more items are started; `None`: no limit.
    pub(crate) stop_after: Option<Duration>,
    /// Limit in bytes per second: items are started so late that the sizes of their sources stay
    /// below this rate on average. `None` or 0: no limit.
    pub(crate) read_rate: Option<u64>,
    /// Bytes that must be free on the file system of a target (output) before the item that writes it is started.
    pub(crate) min_free: u64,
}

impl Limits {
    /// Pause before a failed item is repeated; `repetition` is the number of the repetition, from
    /// 1.
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
