//! The HDF5 file of a MultiHDF5 container that is written: how a commit replaces the old state by
//! the new one. docs/reference/containers.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use nix::fcntl::Flock;

use super::checksums::BlockChecksums;
use super::lock::{lock_for_reading, lock_for_writing};
use super::seal::{Owners, Seal};
use crate::container::FormatOptions;
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Bounds, Group};
use crate::io::{self, FileSource, FileTarget, Growth};
use crate::output::Partial;
use crate::sync::LockUnpoisoned;

/// A new file is written in place. An existing one is copied for the first change after a commit,
/// and the next commit puts the copy in its place. Nested containers are groups of the same file.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    pub(super) options: FormatOptions,
    /// Each commit appends a [`Seal`].
    sealed: bool,
    state: Mutex<StoreState>,
    /// Since the last commit, for the seal.
    written: Mutex<BlockChecksums>,
}

#[derive(Debug, Default)]
struct StoreState {
    file: Option<OpenFile>,
    /// Incremented with each opened HDF5 file: datasets of the previous one become unusable.
    generation: u64,
    /// HDF5's lock on an existing container, shared: other processes may read, but not change it.
    lock: Option<Flock<fs::File>>,
    /// Second descriptor of a new file, to preallocate and to begin writing to the disk.
    disk: Option<Growth>,
}

#[derive(Debug)]
struct OpenFile {
    file: h5::File,
    writable: bool,
    /// The temporary copy that is changed; `None` for a new container, or one without changes.
    copy: Option<Partial>,
}

/// The open HDF5 file in a callback of [`Store::read`] or [`Store::change`]; others wait.
pub(super) struct Access<'a> {
    pub(super) file: &'a h5::File,
    pub(super) path: &'a Path,
    pub(super) generation: u64,
}

impl Access<'_> {
    pub(super) fn group(&self, path: &str) -> Result<Group> {
        let names = path.split('/').filter(|name| !name.is_empty());
        names.fold(self.file.root(), |group, name| group?.group(name))
    }
}

impl Store {
    /// Truncates an existing file.
    pub(super) fn create(path: &Path, options: &FormatOptions) -> Result<Self> {
        // a file that grows while others read it is never finished
        let sealed = (options.archive || options.checksums) && !options.appendable;
        let store = Store {
            path: path.to_owned(),
            options: *options,
            sealed,
            state: Mutex::default(),
            written: Mutex::default(),
        };
        let file = h5::File::create_for(store.bounds(), path)?;
        let disk = Some(Growth::of(fs::File::options().write(true).open(path)?)?);
        let file = Some(OpenFile { file, writable: true, copy: None });
        *store.state() = StoreState { file, disk, ..StoreState::default() };
        Ok(store)
    }

    /// `options` reads those for further virtual files from the root group; `Locked` if another
    /// process has the container open.
    pub(super) fn edit(path: &Path, options: fn(&Group) -> Result<FormatOptions>) -> Result<Self> {
        let lock = lock_for_writing(path).context(Context::path(path))?;
        let sealed =
            FileSource::open(path).and_then(|file| Seal::check_structure(&file)).context(Context::path(path))?;
        let file = h5::File::open(path)?;
        let options = options(&file.root()?).context(Context::path(path))?;
        let sealed = options.archive && !options.appendable || sealed;
        let file = Some(OpenFile { file, writable: false, copy: None });
        let state = StoreState { file, generation: 1, lock, disk: None };
        Ok(Store { path: path.to_owned(), options, sealed, state: Mutex::new(state), written: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock_unpoisoned()
    }

    pub(super) fn bounds(&self) -> Bounds {
        if self.options.archive { Bounds::V110 } else { Bounds::Earliest }
    }

    pub(super) fn is_changed(&self) -> bool {
        self.state().file.as_ref().is_some_and(|open| open.writable)
    }

    /// Uncommitted changes included.
    pub(super) fn read<T>(&self, call: impl FnOnce(&Access<'_>) -> Result<T>) -> Result<T> {
        let mut state = self.state();
        if state.file.is_none() {
            let file = h5::File::open(&self.path)?;
            state.generation += 1;
            state.file = Some(OpenFile { file, writable: false, copy: None });
        }
        self.call(&state, call)
    }

    /// The call may change the file; other processes see nothing before the commit.
    pub(super) fn change<T>(&self, call: impl FnOnce(&Access<'_>) -> Result<T>) -> Result<T> {
        let mut state = self.state();
        if !state.file.as_ref().is_some_and(|open| open.writable) {
            self.begin(&mut state).with_context(|| Context::path(&self.path))?;
        }
        self.call(&state, call)
    }

    /// Preallocates `bytes` after the end of a new file; does nothing for an existing one.
    pub(super) fn reserve(&self, bytes: u64) -> Result<()> {
        match &self.state().disk {
            Some(growth) => {
                let file = growth.file();
                io::reserve(file, file.metadata()?.len().saturating_add(bytes))
            }
            None => Ok(()),
        }
    }

    /// Notes the stored bytes of blocks, each with its number.
    pub(super) fn wrote<'a>(&self, path: &str, blocks: impl Iterator<Item = (u64, &'a [u8])>) {
        if self.sealed {
            let mut written = self.written.lock_unpoisoned();
            blocks.for_each(|(number, bytes)| written.wrote(path, number, bytes));
        }
    }

    /// The virtual file has another dataset now.
    pub(super) fn forget(&self, path: &str) {
        self.written.lock_unpoisoned().forget(path);
    }

    /// Tells the system to begin writing the bytes by which a new file has grown.
    pub(super) fn write_back(&self) {
        self.state().disk.iter_mut().for_each(Growth::write_back);
    }

    fn call<T>(&self, state: &StoreState, call: impl FnOnce(&Access<'_>) -> Result<T>) -> Result<T> {
        let open = state.file.as_ref().ok_or_else(|| Error::usage("the container is closed"))?;
        let path = open.copy.as_ref().map_or(&*self.path, Partial::path);
        call(&Access { file: &open.file, path, generation: state.generation })
    }

    /// Makes the temporary copy, in the same directory.
    fn begin(&self, state: &mut StoreState) -> Result<()> {
        (state.file, state.disk) = (None, None);
        let copy = Partial::create(&self.path)?;
        // a new seal would hide damage
        let source = FileSource::open(&self.path)?;
        if let Some(damage) = Seal::damage(&source)?.first() {
            return Err(Error::format(damage.to_string()));
        }
        moment("begun");
        fs::copy(&self.path, copy.path())?;
        moment("copied");
        let file = h5::File::edit(copy.path(), self.bounds())?;
        state.generation += 1;
        state.file = Some(OpenFile { file, writable: true, copy: Some(copy) });
        Ok(())
    }

    /// Closes the changed HDF5 file, appends a seal if wanted, flushes, replaces the container.
    pub(super) fn publish(&self) -> Result<()> {
        let mut state = self.state();
        let Some(OpenFile { file, writable: true, copy }) = state.file.take() else { return Ok(()) };
        let publish = || {
            moment("written");
            let written = std::mem::take(&mut *self.written.lock_unpoisoned());
            let owners = if self.sealed { Some(Owners::of(&file.root()?, &written)?) } else { None };
            file.close()?;
            moment("closed");
            let path = copy.as_ref().map_or(&*self.path, Partial::path);
            if let Some(owners) = owners {
                Seal::put(&FileTarget::open(path)?, owners)?;
            }
            let written = fs::File::open(path)?;
            moment("sealed");
            written.sync_all()?;
            moment("synced");
            // held from before other processes can find it
            let lock = lock_for_reading(written)?;
            if let Some(copy) = copy {
                copy.replace(&self.path)?;
                moment("renamed");
            }
            Ok::<_, Error>(lock)
        };
        state.lock = publish().with_context(|| Context::path(&self.path))?;
        Ok(())
    }
}

/// Called with the name of each finished step of a commit.
#[cfg(test)]
type AtMoment = Box<dyn FnMut(&'static str)>;

#[cfg(test)]
thread_local! {
    pub(super) static AT_MOMENT: std::cell::RefCell<Option<AtMoment>> = std::cell::RefCell::default();
}

#[cfg(test)]
fn moment(name: &'static str) {
    AT_MOMENT.with_borrow_mut(|at| at.iter_mut().for_each(|at| at(name)));
}

#[cfg(not(test))]
fn moment(_name: &'static str) {}
