//! Stores of vt that are served to other programs: in a directory, or in an HDF5 file, which is a
//! MultiHDF5 container whose data file only grows. docs/reference/formats/vt.md.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::container::{
    self, ContainerMut, DataInFile, LiveContainer, LiveContainerReader, MultiHdf5Mut, VtStore, live_options,
};
use crate::error::{Context, Result, ResultExt};
use crate::io::ReadAt;
use crate::sync::LockUnpoisoned;

/// Opens the vt store in the directory `path`, or in the HDF5 file `path`. A file whose name ends
/// with `.h5` is made if it does not exist.
///
/// The HDF5 file is a MultiHDF5 container with the data file of the store, `data/blocks.vtd`; other
/// programs can read it all the time, and [`Unpack`](super::Unpack) makes a directory of it. The
/// archives of the store are beside it.
///
/// ```
/// use ctds_hdf5::pack::{open_vt_store, serve_vt};
///
/// let folder = tempfile::tempdir()?;
/// let store = open_vt_store(folder.path().join("blocks.h5"))?;
/// let (requests, mut responses) = ([3, 0, 2, 0], Vec::new()); // the last packet of a client
/// serve_vt(&store, &requests[..], &mut responses)?;
/// store.close()?;
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
///
/// # Errors
/// `NotFound` if the directory is missing; `Locked` while another process writes the file, or if
/// one that was killed has left it; `Unsupported` for other files; `Limit`, `Io`.
pub fn open_vt_store(path: impl AsRef<Path>) -> Result<VtStore> {
    let path = path.as_ref();
    if path.is_dir() || !path.exists() && path.extension().is_none_or(|extension| extension != "h5") {
        return VtStore::open(path);
    }
    if !path.exists() {
        create(path).with_context(|| Context::path(path))?;
    }
    let growing = InHdf5::open(path)?;
    VtStore::in_file(path, &*container::locate(path)?, Box::new(growing))
}

const FOLDER: &str = "data";
const NAME: &str = "blocks.vtd";
const DATA: &str = "data/blocks.vtd";

/// Bytes of a chunk of the dataset.
const CHUNK_BYTES: u64 = 1 << 16;

fn create(path: &Path) -> Result<()> {
    let container = MultiHdf5Mut::create(path, &live_options(CHUNK_BYTES))?;
    container.create_nested(FOLDER)?.create(NAME)?;
    container.commit()
}

struct InHdf5 {
    path: PathBuf,
    bytes: u64,
    committed: Arc<Committed>,
    live: LiveContainer,
}

/// The data file as of the last commit.
#[derive(Debug)]
struct Committed(Mutex<LiveContainerReader>);

impl InHdf5 {
    fn open(path: &Path) -> Result<Self> {
        // another file is refused before it is opened for writing
        let bytes = LiveContainerReader::open(path)?.len(DATA).with_context(|| Context::path(path))?;
        let live = LiveContainer::open(path)?;
        // one that was opened before the writer does not see what is appended
        let reader = LiveContainerReader::open(path)?;
        Ok(InHdf5 { path: path.to_owned(), bytes, committed: Arc::new(Committed(Mutex::new(reader))), live })
    }
}

impl DataInFile for InHdf5 {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn append(&mut self, records: &[u8]) -> Result<()> {
        self.live.append(DATA, records)?;
        self.bytes += records.len() as u64;
        Ok(())
    }

    fn commit(&mut self) -> Result<Arc<dyn ReadAt>> {
        self.live.commit()?;
        File::open(&self.path)?.sync_data()?;
        self.committed.0.lock_unpoisoned().refresh()?;
        Ok(self.committed.clone())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.live.close()?;
        Ok(File::open(&self.path)?.sync_data()?)
    }
}

impl ReadAt for Committed {
    fn len(&self) -> Result<u64> {
        self.0.lock_unpoisoned().len(DATA)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.0.lock_unpoisoned().read_at(DATA, offset, out)
    }
}
