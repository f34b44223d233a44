//! SIGINT and SIGTERM: the running call is asked to stop and cleans up itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use ctds_hdf5::CancelToken;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::Status;

/// What the first signal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It ends the program: nothing is being written.
    Idle,
    /// It stops the call, which returns soon.
    Working,
}

/// The signals, from [`listen`](Self::listen) on. The second one always ends the program at once; the next run with the same
/// target then removes what is left.
pub struct Interrupts {
    token: CancelToken,
    phase: Arc<Mutex<Phase>>,
}

impl Interrupts {
    /// Begins to listen.
    pub fn listen() -> Result<Self> {
        Self::listen_in(Phase::Idle)
    }

    fn listen_in(phase: Phase) -> Result<Self> {
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let (token, phase) = (CancelToken::new(), Arc::new(Mutex::new(phase)));
        let (cancel, phase_now) = (token.clone(), phase.clone());
        std::thread::spawn(move || {
            for _ in signals.forever() {
                // held until the program has ended, so that no call begins to write
                let phase = phase_now.lock().unwrap_or_else(PoisonError::into_inner);
                if cancel.is_cancelled() || *phase == Phase::Idle {
                    eprintln!("{MESSAGE}");
                    signal_hook::low_level::exit(Status::Interrupted.code().into());
                }
                cancel.cancel();
            }
        });
        Ok(Interrupts { token, phase })
    }

    /// The token that a signal cancels while a call runs.
    pub fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Runs a call that has the [token](Self::token): the first signal stops it.
    pub fn stop<T>(&self, call: impl FnOnce() -> T) -> T {
        let enter = |phase| *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        enter(Phase::Working);
        let result = call();
        enter(Phase::Idle);
        result
    }
}

/// What is printed when a signal ends a verb.
pub const MESSAGE: &str = "h5bridge: interrupted";

/// Set by SIGINT and SIGTERM, for verbs that end in order; the second signal ends the program at once.
pub struct Stop(Interrupts);

impl Stop {
    /// Begins to listen.
    pub fn new() -> Result<Self> {
        Ok(Stop(Interrupts::listen_in(Phase::Working)?))
    }

    /// Whether a signal has come.
    pub fn is_set(&self) -> bool {
        self.0.token.is_cancelled()
    }

    /// The token that the signal cancels.
    pub fn token(&self) -> CancelToken {
        self.0.token.clone()
    }

    /// Sleeps, at most until a signal comes.
    pub fn sleep(&self, time: Duration) {
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|_| !self.is_set()) {
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}
