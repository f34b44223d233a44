//! Measures how fast a disk writes.

use std::path::Path;
use std::time::Instant;

use super::{FileTarget, WriteAt};
use crate::error::Result;

/// Bytes written in each round.
pub const DISK_RATE_BYTES: u64 = 16 << 20;
const PIECE: usize = 1 << 20;
const ROUNDS: u64 = 2;

/// Bytes per second, the better of two rounds: a file without a name is written and made durable.
///
/// # Errors
/// `Io` or `NoSpace`, as where nothing may be written.
pub fn disk_rate(directory: &Path) -> Result<f64> {
    // as outputs are written
    let file = FileTarget::create_unnamed(directory)?.write_behind(true);
    // some file systems compress, so each word is another one
    let words = (0..PIECE as u64 / 8).map(|word| (word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    let piece: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let mut best: f64 = 0.0;
    for round in 0..ROUNDS {
        let started = Instant::now();
        for at in (0..DISK_RATE_BYTES).step_by(PIECE) {
            file.write_at(round * DISK_RATE_BYTES + at, &piece)?;
        }
        file.sync()?;
        best = best.max(DISK_RATE_BYTES as f64 / started.elapsed().as_secs_f64());
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let rate = disk_rate(folder.path()).unwrap();
        assert!(rate.is_finite() && rate > 0.0, "{rate}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(disk_rate(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
