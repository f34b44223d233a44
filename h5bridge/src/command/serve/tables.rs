//! Tables that the server shows below `/api` as the HDF5 files to which `to-hdf5` would convert them; kept open until their files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ctds_hdf5::browse::TableFile;
use ctds_hdf5::program::{LockUnpoisoned, Unpoisoned};

use super::sources::{Sources, Stamp};

/// Maximum number of tables that are kept open; the least recently used one is dropped for a further one.
const MAX_OPEN: usize = 8;

/// Cache of open tables: those that requests used last, with their paths, at most `MAX_OPEN`; the latest is at the end.
#[derive(Default)]
pub(super) struct Tables(Mutex<Vec<(PathBuf, Slot)>>);

/// Entry of the cache of open tables: while one request opens the table, others wait for the lock; `None` if it is not open.
type Slot = Arc<Mutex<Option<OpenTable>>>;

/// An open table, and the state of all files that it was opened from, by which changes are noticed.
#[derive(Clone)]
pub(super) struct OpenTable {
    pub(super) file: Arc<TableFile>,
    /// Whether the table refers to other tables outside of its own directory, such as the table that it is a selection of.
    pub(super) has_others: bool,
    stamps: Vec<(PathBuf, Stamp)>,
}

impl Tables {
    /// The table at `path`: the open one from the cache, or opened if the cache has none or the table's files have
    /// changed since it was opened.
    ///
    /// # Errors
    /// Those of opening it.
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
