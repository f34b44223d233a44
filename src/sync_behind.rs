//! Flushes files to the disk (fsync) in a thread while they are written, so that little is left to flush at the end.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::Result;

/// Pause between two flushes to the disk of files that are being written. It is short because the disk is idle during a
/// pause: with 100 ms, a copy of 905 MB took 0.72 s instead of 0.62 s.
const SYNC_EVERY: Duration = Duration::from_millis(20);

/// Owner of a thread that repeatedly flushes files to the disk (fsync) while they are written. The thread ends when its
/// owner is finished or dropped.
pub(crate) struct SyncBehind {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl SyncBehind {
    /// Starts a thread that calls `sync`, which flushes files to the disk, with pauses of 20 ms, until the returned
    /// value is finished or dropped, or `sync` fails.
    pub(crate) fn start(mut sync: impl FnMut() -> Result<()> + Send + 'static) -> Self {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SYNC_EVERY) {
                sync()?;
            }
            Ok(())
        });
        SyncBehind { stop: Some(stop), thread: Some(thread) }
    }

    /// Makes a value without a thread, so that no file is flushed to the disk (fsync) while it is written: for outputs
    /// that are flushed only at the end, or never.
    pub(crate) fn none() -> Self {
        SyncBehind { stop: None, thread: None }
    }

    /// Ends the thread that flushes files to the disk, and returns the error of the flush if one failed.
    ///
    /// # Errors
    /// The one with which `sync` failed. Nothing else tells of it: the system says once that bytes were lost, and a file that is opened
    /// after that is made durable without an error.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.stop = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for SyncBehind {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // what was being written is given up for another reason
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::Error;

    #[test]
    fn a_failure_is_told_and_ends_the_thread() {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let behind = SyncBehind::start(move || match count.fetch_add(1, Ordering::SeqCst) {
            1 => Err(Error::format("lost")),
            _ => Ok(()),
        });
        while calls.load(Ordering::SeqCst) < 2 {
            std::thread::sleep(SYNC_EVERY / 10);
        }
        std::thread::sleep(3 * SYNC_EVERY);
        assert_eq!(behind.finish().unwrap_err().message(), "lost");
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        SyncBehind::start(|| Ok(())).finish().unwrap();
        SyncBehind::none().finish().unwrap();
    }
}
