//! Handling of SIGINT and SIGTERM: the running conversion is asked to stop, and removes its
//! unfinished output itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::{CancelToken, Phase as CallPhase, Progress};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::Status;
use crate::stderr;

/// Connection to a program that runs a verb (subcommand) of `h5bridge` within its own process, such
/// as the Python package, and handles signals itself.
#[derive(Clone)]
pub struct Caller {
    /// Token with which the embedding program can stop the verb (subcommand of `h5bridge`) that it
    /// runs.
    pub token: CancelToken,
    /// Receives the progress reports of the verb (subcommand of `h5bridge`) that an embedding
    /// program runs.
    pub progress: Arc<dyn Progress + Send + Sync>,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("token", &self.token).finish_non_exhaustive()
    }
}

/// Decides the effect of the first signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing is being written: the first signal ends the program at once.
    Idle,
    /// Output is being written, or a verb such as `serve` runs: the first signal makes it stop,
    /// remove unfinished output and return.
    Working,
}

/// The first SIGINT or SIGTERM makes a conversion that is writing stop and clean up, or else ends
/// the program. The second ends it at once; the next run with the same target cleans up.
pub(crate) struct Interrupts {
    token: CancelToken,
    phase: Arc<Mutex<Phase>>,
    caller: Option<Caller>,
}

impl Interrupts {
    /// A `caller` that runs the verb in its own process handles the signals itself.
    pub(crate) fn listen(caller: Option<&Caller>) -> Result<Self> {
        Self::listen_in(Phase::Idle, caller)
    }

    /// For verbs that write nothing: signals are not handled and end the program; a `caller` can
    /// stop the verb by its token.
    pub(crate) fn of_caller(caller: Option<&Caller>) -> Self {
        let token = caller.map(|caller| caller.token.clone()).unwrap_or_default();
        Interrupts { token, phase: Arc::new(Mutex::new(Phase::Idle)), caller: caller.cloned() }
    }

    fn listen_in(phase: Phase, caller: Option<&Caller>) -> Result<Self> {
        if caller.is_some() {
            return Ok(Self { phase: Arc::new(Mutex::new(phase)), ..Self::of_caller(caller) });
        }
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let (token, phase) = (CancelToken::new(), Arc::new(Mutex::new(phase)));
        let (cancel, phase_now) = (token.clone(), phase.clone());
        std::thread::spawn(move || {
            for _ in signals.forever() {
                // held until the program has ended, so that no call begins to write
                let phase = phase_now.lock_unpoisoned();
                if cancel.is_cancelled() || *phase == Phase::Idle {
                    let effect = if *phase == Phase::Idle { NOTHING_WRITTEN } else { LEFT };
                    stderr::line(format_args!("{MESSAGE}; {effect}"));
                    signal_hook::low_level::exit(Status::Interrupted.code().into());
                }
                cancel.cancel();
            }
        });
        Ok(Interrupts { token, phase, caller: None })
    }

    pub(crate) fn stoppable<'a>(&'a self, progress: &'a dyn Progress) -> Stoppable<'a> {
        Stoppable { interrupts: self, progress, is_working: AtomicBool::new(false) }
    }

    fn enter(&self, phase: Phase) {
        *self.phase.lock_unpoisoned() = phase;
    }
}

/// Progress of a call that a signal cancels. Before its first report nothing is written, and a
/// signal ends the program at once.
pub(crate) struct Stoppable<'a> {
    interrupts: &'a Interrupts,
    progress: &'a dyn Progress,
    is_working: AtomicBool,
}

impl Stoppable<'_> {
    fn begin(&self) {
        if !self.is_working.swap(true, Ordering::Relaxed) {
            self.interrupts.enter(Phase::Working);
        }
    }
}

impl Progress for Stoppable<'_> {
    fn expect(&self, bytes: u64) {
        self.begin();
        self.progress.expect(bytes);
        if let Some(caller) = &self.interrupts.caller {
            caller.progress.expect(bytes);
        }
    }

    fn advance(&self, bytes: u64, table: &str, part: &str) {
        self.progress.advance(bytes, table, part);
        if let Some(caller) = &self.interrupts.caller {
            caller.progress.advance(bytes, table, part);
        }
    }

    fn phase(&self, phase: CallPhase) {
        self.progress.phase(phase);
    }

    fn is_cancelled(&self) -> bool {
        self.begin();
        self.interrupts.token.is_cancelled()
    }
}

impl Drop for Stoppable<'_> {
    fn drop(&mut self) {
        self.interrupts.enter(Phase::Idle);
    }
}

pub(crate) const MESSAGE: &str = "h5bridge: interrupted";

pub(crate) const NOTHING_WRITTEN: &str = "nothing was being written";

const LEFT: &str = "the next run with the same target removes what is left beside it";

/// A flag that signals set, for long-running verbs; the second signal ends the program at once.
pub(crate) struct Stop(Interrupts);

impl Stop {
    pub(crate) fn new(caller: Option<&Caller>) -> Result<Self> {
        Ok(Stop(Interrupts::listen_in(Phase::Working, caller)?))
    }

    /// Set by a signal, or by a program that runs the verb in its own process.
    pub(crate) fn is_set(&self) -> bool {
        self.0.token.is_cancelled()
    }

    /// A library call with this token then stops.
    pub(crate) fn token(&self) -> CancelToken {
        self.0.token.clone()
    }

    /// Ends early if the flag is set.
    pub(crate) fn sleep(&self, time: Duration) {
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|_| !self.is_set()) {
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}
