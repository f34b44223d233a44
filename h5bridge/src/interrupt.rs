//! SIGINT and SIGTERM: nothing half-made stays behind.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use ctds_hdf5::convert::discard_partial;
use signal_hook::consts::{SIGINT, SIGTERM};

static TARGET: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Removes what there is of `target` and ends with status 130 when told to stop.
///
/// It ends at once, without the clean-up of libhdf5, which may be in the middle of something.
pub fn remove_when_told_to_stop(target: PathBuf) -> Result<()> {
    *TARGET.lock().unwrap_or_else(PoisonError::into_inner) = Some(target);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            if let Some(target) = &*TARGET.lock().unwrap_or_else(PoisonError::into_inner) {
                discard_partial(target);
            }
            eprintln!("h5bridge: interrupted");
            signal_hook::low_level::exit(130);
        }
    });
    Ok(())
}
