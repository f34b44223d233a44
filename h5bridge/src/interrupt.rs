//! SIGINT and SIGTERM: nothing half-made stays behind.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use signal_hook::consts::{SIGINT, SIGTERM};

static PARTIAL: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Removes `partial` and ends with status 130 when told to stop.
///
/// It ends at once, without the clean-up of libhdf5, which may be in the middle of something.
pub fn remove_when_told_to_stop(partial: PathBuf) -> Result<()> {
    *PARTIAL.lock().unwrap_or_else(PoisonError::into_inner) = Some(partial);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            if let Some(partial) = &*PARTIAL.lock().unwrap_or_else(PoisonError::into_inner) {
                let _ = std::fs::remove_file(partial);
            }
            eprintln!("h5bridge: interrupted");
            signal_hook::low_level::exit(130);
        }
    });
    Ok(())
}
