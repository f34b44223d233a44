//! SIGINT and SIGTERM: nothing half-made stays behind; what goes on until then ends in order.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use ctds_hdf5::convert::discard_partial;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Removes what there is of `target` and ends with status 130 when told to stop.
pub fn remove_when_told_to_stop(target: PathBuf) -> Result<()> {
    when_told_to_stop(move || discard_partial(&target))
}

/// Calls `clean_up` and ends with status 130 when told to stop.
///
/// It ends at once, without the clean-up of libhdf5, which may be in the middle of something.
pub fn when_told_to_stop(clean_up: impl Fn() + Send + 'static) -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            clean_up();
            eprintln!("h5bridge: interrupted");
            signal_hook::low_level::exit(130);
        }
    });
    Ok(())
}

/// Set by SIGINT and SIGTERM, for what goes on until then; the second one ends the program at once.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on.
    pub fn new() -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone())?;
            signal_hook::flag::register(signal, stop.clone())?;
        }
        Ok(Stop(stop))
    }

    /// Whether a signal has come.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps, until a signal comes at most.
    pub fn sleep(&self, time: Duration) {
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|_| !self.is_set()) {
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}
