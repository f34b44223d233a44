//! A time limit for each piece of work in a test.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Ends the test process when one piece of work takes too long, since a hang cannot be caught
/// otherwise.
pub struct Watch(Arc<Mutex<Option<(String, Instant)>>>);

impl Watch {
    /// Starts the watch; each piece of work may take `limit`.
    pub fn new(limit: Duration) -> Self {
        let work = Arc::new(Mutex::new(None::<(String, Instant)>));
        let seen = Arc::downgrade(&work);
        std::thread::spawn(move || {
            while let Some(work) = seen.upgrade() {
                if let Some((what, since)) = &*work.lock().unwrap_or_else(PoisonError::into_inner)
                    && since.elapsed() > limit
                {
                    // not eprintln!, which the test harness keeps to itself
                    let _ = writeln!(std::io::stderr(), "hangs: {what}");
                    std::process::exit(101);
                }
                drop(work);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Watch(work)
    }

    /// Runs `work`; if it hangs, the message names it `what`.
    pub fn over<T>(&self, what: impl Into<String>, work: impl FnOnce() -> T) -> T {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((what.into(), Instant::now()));
        let result = work();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        result
    }
}
