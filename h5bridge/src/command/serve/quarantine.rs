//! Files with which a request has failed by a defect of the program: they are refused until they
//! change, so that no client makes the server fail again and again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use ctds_hdf5::program::LockUnpoisoned;

use super::sources::Stamp;

#[derive(Clone, Default)]
pub(super) struct Quarantine(Arc<Mutex<HashMap<PathBuf, Stamp>>>);

/// Kept while the file is read; a panic that drops it puts the file into quarantine.
pub(super) struct Watch {
    quarantine: Quarantine,
    path: PathBuf,
}

impl Quarantine {
    /// `Err` with the reason if the file is in quarantine.
    pub(super) fn watch(&self, path: &Path) -> Result<Watch, String> {
        let mut held = self.0.lock_unpoisoned();
        if let Some(then) = held.get(path) {
            if Stamp::of(path).is_ok_and(|now| now == *then) {
                return Err("a request about this file has failed; it is refused until the file changes".to_owned());
            }
            held.remove(path);
        }
        Ok(Watch { quarantine: self.clone(), path: path.to_owned() })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if thread::panicking()
            && let Ok(stamp) = Stamp::of(&self.path)
        {
            self.quarantine.0.lock_unpoisoned().insert(self.path.clone(), stamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_refused_from_a_panic_to_its_next_change() {
        let folder = tempfile::tempdir().unwrap();
        let (bad, good) = (folder.path().join("bad.h5"), folder.path().join("good.h5"));
        for path in [&bad, &good] {
            fs::write(path, "one").unwrap();
        }
        let quarantine = Quarantine::default();
        drop(quarantine.watch(&bad).unwrap());
        drop(quarantine.watch(&bad).unwrap());
        let fails = |path: PathBuf| {
            let watch = quarantine.watch(&path).unwrap();
            thread::spawn(move || {
                // values in pieces keep it as well
                let mut pieces = (0..3).inspect(move |_| _ = &watch).map(|_| std::panic::resume_unwind(Box::new(())));
                let _: Option<()> = pieces.next();
            })
            .join()
            .unwrap_err()
        };
        fails(bad.clone());
        assert!(quarantine.watch(&bad).is_err_and(|reason| reason.contains("until the file changes")));
        assert!(quarantine.watch(&good).is_ok());
        fs::write(&bad, "other").unwrap();
        assert!(quarantine.watch(&bad).is_ok());
        fails(bad.clone());
        assert!(quarantine.watch(&bad).is_err());
        fs::remove_file(&bad).unwrap();
        assert!(quarantine.watch(&bad).is_ok(), "there is nothing to refuse");
    }
}
