//! The current time, which tests can set so that they need not wait.

#[cfg(any(test, feature = "internals"))]
use std::time::Duration;
use std::time::{Instant, SystemTime};

/// The current time, which tests can set.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    #[cfg(any(test, feature = "internals"))]
    set: Option<std::sync::Arc<Set>>,
}

#[cfg(any(test, feature = "internals"))]
#[derive(Debug)]
struct Set {
    start: (Instant, SystemTime),
    passed: std::sync::Mutex<Duration>,
}

impl Clock {
    #[cfg(any(test, feature = "internals"))]
    pub fn standing() -> Self {
        let start = (Instant::now(), SystemTime::now());
        Clock { set: Some(std::sync::Arc::new(Set { start, passed: std::sync::Mutex::default() })) }
    }

    #[cfg(any(test, feature = "internals"))]
    pub fn advance(&self, time: Duration) {
        let set = self.set.as_ref().expect("a clock that stands still");
        *set.passed.lock().unwrap() += time;
    }

    #[cfg(any(test, feature = "internals"))]
    fn set(&self) -> Option<(Instant, SystemTime)> {
        let set = self.set.as_ref()?;
        let passed = *set.passed.lock().unwrap();
        Some((set.start.0 + passed, set.start.1 + passed))
    }

    #[cfg(not(any(test, feature = "internals")))]
    fn set(&self) -> Option<(Instant, SystemTime)> {
        None
    }

    /// Monotonic, for measuring durations.
    pub fn now(&self) -> Instant {
        self.set().map_or_else(Instant::now, |(instant, _)| instant)
    }

    /// Wall clock, comparable with modification times of files.
    pub fn date(&self) -> SystemTime {
        self.set().map_or_else(SystemTime::now, |(_, date)| date)
    }
}
