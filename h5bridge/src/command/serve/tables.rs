//! Tables that the server shows below `/api` as the HDF5 files to which `to-hdf5` would convert
//! them; kept open until their files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ctds_hdf5::program::{LockUnpoisoned, Unpoisoned};
use h5_browse::TableFile;

use super::sources::{Sources, Stamp};

/// The least recently used table is dropped for a further one.
const MAX_OPEN: usize = 8;

/// The latest is at the end.
#[derive(Default)]
pub(super) struct Tables(Mutex<Vec<(PathBuf, Slot)>>);

/// While one request opens the table, others wait for the lock.
type Slot = Arc<Mutex<Option<OpenTable>>>;

/// A table, and the state of all files that it was opened from.
#[derive(Clone)]
pub(super) struct OpenTable {
    pub(super) file: Arc<TableFile>,
    /// Outside of its own directory, such as the table that it is a selection of.
    pub(super) has_others: bool,
    stamps: Vec<(PathBuf, Stamp)>,
}

impl Tables {
    /// Cached unless files have changed.
    pub(super) fn open(&self, path: &Path, sources: &Sources) -> ctds_hdf5::Result<OpenTable> {
        let slot = self.slot(path);
        let mut slot = slot.lock_unpoisoned();
        if let Some(open) = slot.as_ref().filter(|open| open.is_current()) {
            return Ok(open.clone());
        }
        // first the old one goes, so that only one of them takes memory
        *slot = None;
        Ok(slot.insert(OpenTable::open(path, sources)?).clone())
    }

    fn slot(&self, path: &Path) -> Slot {
        let mut open = self.0.lock_unpoisoned();
        let slot = match open.iter().position(|(known, _)| known == path) {
            Some(known) => open.remove(known).1,
            None => Slot::default(),
        };
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push((path.to_owned(), Arc::clone(&slot)));
        slot
    }
}

impl OpenTable {
    fn open(path: &Path, sources: &Sources) -> ctds_hdf5::Result<Self> {
        let main = (path.to_owned(), Stamp::of(path)?);
        let others = Mutex::new(Vec::new());
        let is_served = |other: &Path| {
            let is_served = sources.serves(other);
            if is_served
                && !other.starts_with(path)
                && let Ok(stamp) = Stamp::of(other)
            {
                others.lock_unpoisoned().push((other.to_owned(), stamp));
            }
            is_served
        };
        let file = Arc::new(TableFile::open(path, &is_served)?);
        let mut stamps = others.into_inner().unpoisoned();
        let has_others = !stamps.is_empty();
        stamps.push(main);
        Ok(OpenTable { file, has_others, stamps })
    }

    fn is_current(&self) -> bool {
        self.stamps.iter().all(|(path, stamp)| Stamp::of(path).is_ok_and(|now| now == *stamp))
    }
}
