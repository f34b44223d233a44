//! Worker threads of the server that read files, so that the thread that talks to clients never
//! waits for a disk.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ctds_hdf5::program::{LockUnpoisoned, Unpoisoned};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Maximum number of new jobs that may wait for a worker thread; further ones are refused.
const MAX_WAITING: usize = 64;

/// Unit of the memory of answers, in bytes.
const UNIT: u64 = 1024;

/// Time to wait for memory that other answers hold.
const MEMORY_PATIENCE: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// Refused if too many jobs wait.
    New,
    /// A further step of an accepted request, never refused.
    Begun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// Too many jobs wait, or the server is shutting down.
    Busy,
    Failed,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock_unpoisoned()
    }

    fn work(&self) {
        loop {
            let mut queue = self.queue();
            let job = loop {
                if queue.is_closed {
                    return;
                }
                match queue.jobs.pop_front() {
                    Some(job) => break job,
                    None => queue = self.filled.wait(queue).unpoisoned(),
                }
            };
            drop(queue);
            job();
        }
    }
}

impl Pool {
    pub(super) fn new(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let spawn = |number| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(format!("serve-{number}")).spawn(move || shared.work())
        };
        let threads = (0..threads.max(1)).map(spawn).collect::<Result<_, _>>()?;
        Ok(Pool { shared, threads: Mutex::new(threads) })
    }

    /// A job is not begun if the caller no longer waits; `Failed` if it has panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        admission: Admission,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Lost> {
        self.run_while(admission, |_| job()).await
    }

    /// [`run`](Self::run) for a long job, which asks whether the caller still waits.
    pub(super) async fn run_while<T: Send + 'static>(
        &self,
        admission: Admission,
        job: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let (sender, receiver) = oneshot::channel();
        let job = Box::new(move || {
            if !sender.is_closed() {
                let work = AssertUnwindSafe(|| job(&|| !sender.is_closed()));
                let result = catch_unwind(work).map_err(|_| Lost::Failed);
                // the client may have gone
                let _ = sender.send(result);
            }
        });
        {
            let mut queue = self.shared.queue();
            if queue.is_closed || admission == Admission::New && queue.jobs.len() >= MAX_WAITING {
                return Err(Lost::Busy);
            }
            queue.jobs.push_back(job);
        }
        self.shared.filled.notify_one();
        receiver.await.unwrap_or(Err(Lost::Busy))
    }

    pub(super) fn waiting(&self) -> usize {
        self.shared.queue().jobs.len()
    }

    /// Drops waiting jobs; returns whether all threads have ended within `patience`.
    pub(super) fn close(&self, patience: Duration) -> bool {
        let mut queue = self.shared.queue();
        queue.is_closed = true;
        let jobs = std::mem::take(&mut queue.jobs);
        drop(queue);
        drop(jobs);
        self.shared.filled.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock_unpoisoned());
        let start = Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) {
            if start.elapsed() > patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }
}

/// Budget of all answers together.
#[derive(Clone)]
pub(super) struct Memory {
    units: Arc<Semaphore>,
    total: u32,
}

/// Released when dropped.
pub(super) struct Held(#[expect(dead_code, reason = "returned when dropped")] OwnedSemaphorePermit);

impl Memory {
    pub(super) fn new(bytes: u64) -> Self {
        let total = u32::try_from(bytes / UNIT)
            .unwrap_or(u32::MAX)
            .clamp(1, (Semaphore::MAX_PERMITS as u64).min(u32::MAX.into()) as u32);
        Memory { units: Arc::new(Semaphore::new(total as usize)), total }
    }

    pub(super) fn held(&self) -> u64 {
        (u64::from(self.total) - self.units.available_permits() as u64) * UNIT
    }

    /// The whole budget if that is less; `None` after `MEMORY_PATIENCE`.
    pub(super) async fn hold(&self, bytes: u64) -> Option<Held> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.total);
        let held = Arc::clone(&self.units).acquire_many_owned(units);
        tokio::time::timeout(MEMORY_PATIENCE, held).await.ok()?.ok().map(Held)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn jobs_are_refused_lost_and_dropped() {
        let pool = Arc::new(Pool::new(1).unwrap());
        let gate = Arc::new(Mutex::new(()));
        let closed = gate.lock().unwrap();
        block_on(async {
            let begin = |admission| {
                let (pool, gate) = (Arc::clone(&pool), Arc::clone(&gate));
                async move { pool.run(admission, move || drop(gate.lock().unwrap())).await }
            };
            let local = tokio::task::LocalSet::new();
            let is_begun = Arc::new(AtomicBool::new(false));
            let (busy, held, begins) = (Arc::clone(&pool), Arc::clone(&gate), Arc::clone(&is_begun));
            let job = move || {
                begins.store(true, Ordering::Relaxed);
                drop(held.lock().unwrap());
            };
            let first = local.spawn_local(async move { busy.run(Admission::New, job).await });
            local
                .run_until(async {
                    while !is_begun.load(Ordering::Relaxed) {
                        tokio::task::yield_now().await
                    }
                })
                .await;
            let waiting: Vec<_> = (0..MAX_WAITING).map(|_| local.spawn_local(begin(Admission::New))).collect();
            let others = async {
                while pool.shared.queue().jobs.len() < MAX_WAITING {
                    tokio::task::yield_now().await;
                }
                assert_eq!(begin(Admission::New).await, Err(Lost::Busy));
                let begun = tokio::task::spawn_local(begin(Admission::Begun));
                tokio::task::yield_now().await;
                drop(closed);
                assert_eq!(first.await.unwrap(), Ok(()));
                for job in waiting {
                    assert_eq!(job.await.unwrap(), Ok(()));
                }
                assert_eq!(begun.await.unwrap(), Ok(()));
            };
            local.run_until(others).await;
            let panicked: Result<(), _> = pool.run(Admission::New, || std::panic::resume_unwind(Box::new(()))).await;
            assert_eq!(panicked, Err(Lost::Failed));
            assert_eq!(pool.run(Admission::New, || 7).await, Ok(7));
        });
        assert!(pool.close(Duration::from_secs(5)));
        assert_eq!(block_on(pool.run(Admission::Begun, || 7)), Err(Lost::Busy));
    }

    #[test]
    fn abandoned_work_stops() {
        let pool = Pool::new(1).unwrap();
        let gate = Arc::new(Mutex::new(()));
        let begun = Arc::new(AtomicBool::new(false));
        let (held, begins) = (Arc::clone(&gate), Arc::clone(&begun));
        let closed = gate.lock().unwrap();
        block_on(async {
            let short = Duration::from_millis(20);
            let mut first = pin!(pool.run(Admission::New, move || drop(held.lock().unwrap())));
            assert!(tokio::time::timeout(short, &mut first).await.is_err(), "the gate is closed");
            let second = pool.run(Admission::New, move || begins.store(true, Ordering::Relaxed));
            assert!(tokio::time::timeout(short, second).await.is_err(), "the only thread is busy");
            drop(closed);
            assert_eq!(first.await, Ok(()));
            assert_eq!(pool.run(Admission::New, || 1).await, Ok(1));
        });
        assert!(!begun.load(Ordering::Relaxed), "begun for a client that has gone");
        let job = |is_wanted: &dyn Fn() -> bool| {
            while is_wanted() {
                std::thread::yield_now();
            }
        };
        block_on(async {
            let long = pool.run_while(Admission::New, job);
            assert!(tokio::time::timeout(Duration::from_millis(20), long).await.is_err(), "it is wanted");
            assert_eq!(pool.run(Admission::New, || 2).await, Ok(2), "the thread is free again");
        });
    }

    #[test]
    fn memory_is_bounded() {
        block_on(async {
            tokio::time::timeout(Duration::from_secs(1), async {
                let memory = Memory::new(4 * UNIT);
                let three = memory.hold(3 * UNIT).await;
                assert!(three.is_some());
                let waits = memory.hold(2 * UNIT);
                assert!(tokio::time::timeout(Duration::from_millis(10), waits).await.is_err());
                drop(three);
                assert!(memory.hold(100 * UNIT).await.is_some());
            })
            .await
            .unwrap();
        });
    }
}
