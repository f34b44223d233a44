//! The files and tables that clients of the server watch or plot, each with one reader for all
//! clients. Many are live files, native HDF5 files to which a program appends rows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctds_hdf5::program::LockUnpoisoned;

use super::live_file::LiveFile;
use super::shared::Shared;
use super::work::Admission;

const MAX_OPEN: usize = 512;

/// Time after the last use by a client.
const IDLE: Duration = Duration::from_secs(60);

const REAP_PAUSE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct OpenFiles(Mutex<HashMap<PathBuf, Arc<LiveFile>>>);

impl OpenFiles {
    /// `None` if `MAX_OPEN` files are open. Clients ask for `name`.
    pub(super) fn get(&self, shared: &Arc<Shared>, path: PathBuf, name: &str) -> Option<Arc<LiveFile>> {
        let mut files = self.0.lock_unpoisoned();
        let before = files.get(&path);
        if let Some(file) = before.filter(|file| !file.has_ended()) {
            file.touch();
            return Some(Arc::clone(file));
        }
        if files.len() >= MAX_OPEN && before.is_none() {
            return None;
        }
        let own = Arc::clone(shared);
        let served = Arc::new(move |path: &Path| own.sources.serves(path));
        let file = Arc::new(LiveFile::new(path.clone(), name, served, before.map(|file| &**file)));
        files.insert(path, Arc::clone(&file));
        Some(file)
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock_unpoisoned().len()
    }

    /// Closes files without requests for a minute, until the future is dropped.
    pub(super) async fn reap(&self, shared: &Arc<Shared>) {
        loop {
            tokio::time::sleep(REAP_PAUSE).await;
            let mut idle = Vec::new();
            self.0.lock_unpoisoned().retain(|_, file| {
                let is_idle = Arc::strong_count(file) == 1 && file.unused() > IDLE;
                if is_idle {
                    idle.push(Arc::clone(file));
                }
                !is_idle
            });
            if !idle.is_empty() {
                // closing a file is work as well
                let _ = shared.pool.run(Admission::Begun, move || drop(idle)).await;
            }
        }
    }
}
