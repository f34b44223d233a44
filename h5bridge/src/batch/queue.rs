//! The items of a batch run that are still to be done, in the order in which they start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ctds_hdf5::program::LockUnpoisoned;

use super::limits::{Limits, Pace};
use crate::interrupt::Stop;

const PAUSE: Duration = Duration::from_millis(20);

/// Number of the item, and of the attempt, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attempt {
    pub(super) item: u32,
    pub(super) number: u32,
}

pub(super) struct Queue<'a> {
    inner: Mutex<Inner>,
    stop: &'a Stop,
    end: Option<Instant>,
}

struct Inner {
    fresh: std::vec::IntoIter<u32>,
    /// Items to repeat, by the time from which on they may start.
    later: BinaryHeap<Reverse<(Instant, Attempt)>>,
    running: usize,
    pace: Pace,
    closed: bool,
}

impl<'a> Queue<'a> {
    pub(super) fn new(items: Vec<u32>, limits: &Limits, stop: &'a Stop) -> Self {
        let inner = Inner {
            fresh: items.into_iter(),
            later: BinaryHeap::new(),
            running: 0,
            pace: Pace::new(limits.read_rate),
            closed: false,
        };
        let end = limits.stop_after.and_then(|time| Instant::now().checked_add(time));
        Queue { inner: Mutex::new(inner), stop, end }
    }

    /// No item starts any more: the time is over, the queue was closed, or a signal came.
    pub(super) fn has_ended(&self) -> bool {
        self.stop.is_set() || self.end.is_some_and(|end| Instant::now() >= end) || self.inner.lock_unpoisoned().closed
    }

    /// A signal also ends the running items.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Running items are finished.
    pub(super) fn close(&self) {
        self.inner.lock_unpoisoned().closed = true;
    }

    /// Ends early after a signal.
    pub(super) fn pause(&self, time: Duration) {
        self.stop.sleep(time);
    }

    /// Waits; `None` if no item is left or may start any more. `bytes` are those of a source, for
    /// the read rate. Each attempt has to end with [`finish`](Self::finish).
    pub(super) fn next(&self, bytes: impl Fn(u32) -> u64) -> Option<Attempt> {
        loop {
            if self.has_ended() {
                return None;
            }
            let wait = {
                let mut inner = self.inner.lock_unpoisoned();
                let now = Instant::now();
                if inner.pace.next() > now {
                    inner.pace.next() - now
                } else if let Some(attempt) = inner.take(now) {
                    inner.pace.start(bytes(attempt.item));
                    inner.running += 1;
                    return Some(attempt);
                } else if inner.later.is_empty() && inner.running == 0 {
                    return None;
                } else {
                    PAUSE
                }
            };
            self.stop.sleep(wait.min(PAUSE));
        }
    }

    /// `again`: pause before the item is tried once more.
    pub(super) fn finish(&self, attempt: Attempt, again: Option<Duration>) {
        let mut inner = self.inner.lock_unpoisoned();
        inner.running -= 1;
        if let Some(due) = again.and_then(|pause| Instant::now().checked_add(pause)) {
            inner.later.push(Reverse((due, Attempt { number: attempt.number + 1, ..attempt })));
        }
    }
}

impl Inner {
    fn take(&mut self, now: Instant) -> Option<Attempt> {
        if self.later.peek().is_some_and(|Reverse((due, _))| *due <= now) {
            return self.later.pop().map(|Reverse((_, attempt))| attempt);
        }
        self.fresh.next().map(|item| Attempt { item, number: 1 })
    }
}
