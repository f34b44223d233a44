//! HDF5 files: how they are created, opened and closed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hdf5::file::{FileAccess, FileAccessBuilder, FileCloseDegree, FileCreate, FileCreateBuilder, LibraryVersion};
use hdf5::plist::file_create::FileSpaceStrategy;
use hdf5::plist::group_create::{AttrCreationOrder, LinkCreationOrder};

use super::error::{Hdf5Result, from_hdf5};
use super::existing::Place;
use super::group::Handle;
use super::lock;
use super::sys::Mode;
use super::{Group, LiveFile, Reach, Superblock, live, sys};
use crate::error::{Context, Error, Result, ResultExt, shown_path};
use crate::io::{FileSource, ReadAt};
use crate::remote;

/// The oldest release of HDF5 that must be able to read a new file or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// Superblock 0, symbol tables, version 1 b-trees.
    Earliest,
    /// Superblock 3.
    V110,
}

impl Bounds {
    fn access(self) -> FileAccessBuilder {
        let mut access = access();
        match self {
            Bounds::Earliest => access.libver_bounds(LibraryVersion::Earliest, LibraryVersion::V110),
            Bounds::V110 => access.libver_bounds(LibraryVersion::V110, LibraryVersion::V110),
        };
        // so that `close` closes the file even if a group is still open
        access.fclose_degree(FileCloseDegree::Strong);
        access
    }
}

impl Bounds {
    fn creation(self) -> hdf5::Result<FileCreate> {
        self.creation_builder().finish()
    }

    fn creation_builder(self) -> FileCreateBuilder {
        let mut creation = FileCreate::build();
        creation.obj_track_times(false);
        if self == Bounds::V110 {
            creation.attr_creation_order(AttrCreationOrder::Indexed).link_creation_order(LinkCreationOrder::Indexed);
        }
        creation
    }
}

/// Driver and chunk cache are set explicitly, so that the environment (HDF5_DRIVER) does not change
/// them.
fn access() -> FileAccessBuilder {
    let mut access = FileAccess::build();
    access.sec2().chunk_cache(CHUNK_SLOTS, CHUNK_CACHE_BYTES, CHUNK_PREEMPTION);
    access
}

/// Only a few kinds of chunks, such as those of strings, use the cache. HDF5 2's default of 8191
/// slots takes 64 KiB per dataset: a quarter of a gigabyte for 4000 datasets.
const CHUNK_SLOTS: usize = 127;
/// HDF5 2's default.
const CHUNK_CACHE_BYTES: usize = 8 << 20;
/// Preference for dropping chunks that were read or written completely, 0 to 1; HDF5's default.
const CHUNK_PREEMPTION: f64 = 0.75;

/// Attempts to read metadata that a writer may be in the middle of writing. HDF5 doubles the wait
/// each time from 1 ns on: after one second in all, the metadata is called damaged.
const READ_ATTEMPTS: u32 = 30;

/// Blocks of this size on are aligned by [`File::create_aligned`].
pub(crate) const ALIGNED_BYTES: u64 = 4 << 20;
/// A reflink shares only whole blocks of the file system; the largest, those of ZFS, seldom exceed
/// 1 MiB.
const ALIGNMENT: u64 = 1 << 20;

/// Growth of a file in memory.
const MEMORY_INCREMENT: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct File {
    at: At,
    path: PathBuf,
    /// Other files that may be opened when this one refers to them.
    reach: Reach,
    /// Release for new objects.
    bounds: Bounds,
}

#[derive(Debug)]
enum At {
    /// An existing file, by its root group.
    Existing(Place),
    /// A file that this program makes or changes.
    Library {
        /// `None` only after `close` or `drop`.
        file: Option<hdf5::File>,
        /// Then also locked exclusively.
        writable: bool,
    },
}

impl File {
    fn new(file: hdf5::File, path: &Path) -> Self {
        let at = At::Library { file: Some(file), writable: false };
        File { at, path: path.to_owned(), reach: Reach::File, bounds: Bounds::V110 }
    }

    fn existing(root: Place, path: &Path) -> Self {
        File { at: At::Existing(root), path: path.to_owned(), reach: Reach::File, bounds: Bounds::V110 }
    }

    fn writable(mut self, bounds: Bounds) -> Self {
        if let At::Library { writable, .. } = &mut self.at {
            *writable = true;
        }
        self.bounds = bounds;
        self
    }

    /// Readable by HDF5 1.10 and newer; an existing file is emptied.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Self::create_for(Bounds::V110, path)
    }

    /// An existing file is emptied.
    pub(crate) fn create_for(bounds: Bounds, path: &Path) -> Result<Self> {
        Self::create_with(bounds, path, &mut bounds.access())
    }

    pub(crate) fn create_in_memory() -> Result<Self> {
        // HDF5 takes files of one name for one file
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("memory {}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut access = Bounds::V110.access();
        access.core_options(MEMORY_INCREMENT, false);
        let file = sys::create_memory_file(Path::new(&name), &Bounds::V110.creation().h5()?, &access.finish().h5()?)?;
        // no lock has to be given back at the end
        Ok(File::new(file, Path::new(&name)))
    }

    /// Opens a file in memory for reading, once it is written.
    pub(crate) fn reopened(mut self) -> Result<Self> {
        let At::Library { file: Some(file), .. } = &self.at else { return Err(closed()) };
        let image: Arc<dyn ReadAt> = Arc::new(sys::image(file)?);
        self.end()?;
        let (name, bytes) = (self.path.to_string_lossy().into_owned(), image.clone());
        let opener = move || sys::open_source(&name, bytes.clone(), &access().finish().h5()?);
        Ok(File::existing(Place::root(image, false, None, Box::new(opener))?, &self.path))
    }

    /// Blocks of at least [`ALIGNED_BYTES`], such as large contiguous datasets, begin at multiples
    /// of [`ALIGNMENT`], so that reflinks can share their bytes.
    pub(crate) fn create_aligned(path: &Path) -> Result<Self> {
        Self::create_with(Bounds::V110, path, Bounds::V110.access().alignment(ALIGNED_BYTES, ALIGNMENT))
    }

    /// Space is allocated in pages: metadata are collected in a few, and each block of at least one
    /// page begins a page.
    pub(crate) fn create_paged(path: &Path, page_bytes: u64) -> Result<Self> {
        let create = || {
            let mut creation = Bounds::V110.creation_builder();
            let strategy = FileSpaceStrategy::FreeSpaceManager { paged: true, persist: false, threshold: 1 };
            creation.file_space_strategy(strategy).file_space_page_size(page_bytes);
            sys::create_file(path, &creation.finish().h5()?, &Bounds::V110.access().finish().h5()?)
        };
        Ok(File::new(create().context(Context::path(path))?, path).writable(Bounds::V110))
    }

    /// A file that is to become live (SWMR).
    pub(crate) fn create_for_live(path: &Path) -> Result<Self> {
        Self::create_with(Bounds::V110, path, Bounds::V110.access().alignment(live::LARGE_METADATA, live::ALIGNMENT))
    }

    fn create_with(bounds: Bounds, path: &Path, access: &mut FileAccessBuilder) -> Result<Self> {
        let create = || sys::create_file(path, &bounds.creation().h5()?, &access.finish().h5()?);
        Ok(File::new(create().context(Context::path(path))?, path).writable(bounds))
    }

    /// Fails with `Format` if the file is not HDF5, `Locked` if a writer has it open.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let open = || -> Result<_> {
            let source = Arc::new(FileSource::open(path)?);
            let lock = lock::share(&source)?;
            let name = path.to_owned();
            let opener = move || sys::open_file(&name, Mode::Read, &access().finish().h5()?);
            Ok(File::existing(Place::root(source, false, Some(lock), Box::new(opener))?, path))
        };
        open().with_context(|| Context::path(path))
    }

    /// Opens a path or URL, also a live file; returns access to its bytes as well.
    ///
    /// # Errors
    /// As [`open`](Self::open); those of the server.
    pub(crate) fn open_with_source(path: &Path) -> Result<(Self, Arc<dyn ReadAt>)> {
        if !remote::is_remote(path) {
            return Ok((Self::open_shared(path)?, Arc::new(FileSource::open(path)?)));
        }
        let open = || -> Result<_> {
            let source = remote::open(path)?;
            let name = shown_path(path);
            let (shown, bytes) = (name.clone(), source.clone());
            let opener = move || sys::open_source(&shown, bytes.clone(), &access().finish().h5()?);
            let root = Place::root(source.clone(), false, None, Box::new(opener))?;
            Ok((File::existing(root, Path::new(&name)), source))
        };
        open().context(Context::path(path))
    }

    /// Opens also a live file, or one whose writer was killed.
    ///
    /// # Errors
    /// As [`open`](Self::open), of a writer that keeps others out.
    pub(crate) fn open_shared(path: &Path) -> Result<Self> {
        let is_live = || superblock(path).is_some_and(|superblock| superblock.is_live());
        loop {
            let live = is_live();
            match if live { Self::open_live(path) } else { Self::open(path) } {
                // a writer began or ended in between
                Err(_) if is_live() != live => {}
                opened => return opened,
            }
        }
    }

    /// As [`open_shared`](Self::open_shared), but releases HDF5's lock at once, so that writers
    /// need not wait. Also tells whether the file grows (SWMR).
    pub(crate) fn open_unlocked(path: &Path) -> Result<(Self, bool)> {
        let is_live = || superblock(path).is_some_and(|superblock| superblock.is_live());
        let mut live = is_live();
        let opened = if live { Self::open_live(path) } else { Self::open(path) };
        let opened = opened.or_else(|error| {
            // a writer began or ended concurrently, or this process still has the file open in the
            // other mode
            live = !live;
            let other = if live { Self::open_live(path) } else { Self::open(path) };
            other.map_err(|_| error)
        })?;
        if let At::Existing(root) = &opened.at {
            root.unlock();
        }
        Ok((opened, live))
    }

    /// Opens a live file, or one whose writer was killed, without a lock afterwards. libhdf5's
    /// memory of the file is not shared with others that this process opens.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_live(path: &Path) -> Result<Self> {
        let open = || -> Result<_> {
            let source = Arc::new(FileSource::open(path)?);
            // with the lock a restarted writer would have to wait for all readers
            let _lock = lock::share(&source)?;
            let (name, bytes) = (path.to_owned(), source.clone());
            let opener = move || {
                let access = access().metadata_read_attempts(READ_ATTEMPTS).finish().h5()?;
                sys::open_live(&name, bytes.clone(), &access)
            };
            Ok(File::existing(Place::root(source, true, None, Box::new(opener))?, path))
        };
        open().with_context(|| Context::path(path))
    }

    /// New objects are readable by releases of `bounds`.
    ///
    /// # Errors
    /// `Format` if it is not HDF5, `Locked` if another process has it open.
    pub(crate) fn edit(path: &Path, bounds: Bounds) -> Result<Self> {
        Ok(File::new(open(Mode::Write, path, || bounds.access().finish())?, path).writable(bounds))
    }

    /// Opens a file to append while others read (SWMR). Only elements, and extents of datasets that
    /// can grow, may be changed.
    ///
    /// # Errors
    /// `Format` if it is not HDF5 or older than superblock 3, `Locked` if another process has it
    /// open, or a writer exited without closing it.
    pub(crate) fn edit_live(path: &Path) -> Result<Self> {
        let file = open(Mode::WriteLive, path, || Bounds::V110.access().finish())?;
        Ok(File::new(file, path).writable(Bounds::V110))
    }

    /// Hands changes in libhdf5's memory to the operating system.
    ///
    /// # Errors
    /// `NoSpace` or `Io`.
    pub(crate) fn flush(&self) -> Result<()> {
        match &self.at {
            At::Library { file: Some(file), .. } => file.flush().h5().context(Context::path(&self.path)),
            _ => Ok(()),
        }
    }

    /// Closes a new file, with every open object, and reopens it as a live one.
    ///
    /// # Errors
    /// As [`close`](Self::close), and `Locked`.
    pub(crate) fn go_live(self) -> Result<LiveFile> {
        let path = self.path.clone();
        self.close()?;
        LiveFile::open(&path)
    }

    /// Later bytes of the file are not HDF5.
    pub(crate) fn end_of_file(&self) -> Result<u64> {
        match &self.at {
            At::Existing(root) => Ok(root.file().superblock().end),
            At::Library { file: Some(file), .. } => sys::end_of_file(file).context(Context::path(&self.path)),
            At::Library { file: None, .. } => Err(closed()),
        }
    }

    /// Permits regular files below the file's own directory to be opened when this file refers to
    /// them.
    ///
    /// # Errors
    /// `Unsupported` for the file at an address, which has no directory.
    pub(crate) fn follow(mut self) -> Result<Self> {
        if remote::is_remote(&self.path) {
            return Err(
                Error::unsupported("other files are not followed from an address").context(Context::path(&self.path))
            );
        }
        self.reach = Reach::beside(&self.path, |path| File::open_shared(path)?.into_root())?;
        Ok(self)
    }

    pub(crate) fn root(&self) -> Result<Group> {
        let root = Group::of_root(self.handle()?);
        Ok(root.created_for(self.bounds, self.reach.clone()))
    }

    /// The handle keeps the file open after this `File` is dropped.
    pub(super) fn into_root(self) -> Result<Handle> {
        self.handle()
    }

    fn handle(&self) -> Result<Handle> {
        match &self.at {
            At::Existing(root) => Ok(Handle::File(root.clone())),
            At::Library { file: Some(file), .. } => {
                file.group("/").h5().context(Context::path(&self.path)).map(Handle::Library)
            }
            At::Library { file: None, .. } => Err(closed()),
        }
    }

    /// Open groups and datasets of a file that was created or opened for writing become unusable.
    ///
    /// # Errors
    /// `NoSpace` or `Io` if the file is not complete on disk.
    pub(crate) fn close(mut self) -> Result<()> {
        self.end().context(Context::path(&self.path))
    }

    fn end(&mut self) -> Result<()> {
        let At::Library { file, writable } = &mut self.at else { return Ok(()) };
        file.take().map_or(Ok(()), |file| end(file, *writable))
    }
}

/// Opens a file to change it, once all of it is checked. Waits briefly for processes that are just
/// opening the file for reading.
pub(super) fn open(mode: Mode, path: &Path, access: impl Fn() -> hdf5::Result<FileAccess>) -> Result<hdf5::File> {
    let open = || {
        let source = Arc::new(FileSource::open(path)?);
        let lock = lock::share(&source)?;
        Place::root(source, false, None, Box::new(|| Err(closed())))?.check_all()?;
        drop(lock);
        sys::open_file(path, mode, &access().h5()?)
    };
    lock::retry_while_locked(open).with_context(|| Context::path(path))
}

fn closed() -> Error {
    Error::usage("the file is closed")
}

/// `None` if it is damaged, or not of version 2 or 3 with offsets of 8 bytes.
fn superblock(path: &Path) -> Option<Superblock> {
    Superblock::read(&FileSource::open(path).ok()?).ok()
}

/// If `writable`, also releases the exclusive lock, which child processes might still hold.
pub(super) fn end(file: hdf5::File, writable: bool) -> Result<()> {
    if let Err(error) = file.flush() {
        // libhdf5 cannot close a file that it cannot flush: it crashes when the objects in it go.
        // So the file stays open until the program ends.
        std::mem::forget(file);
        return Err(from_hdf5(error));
    }
    // a process that another thread is just starting has the lock, too, unless it is given up
    let lock = if writable { sys::descriptor(&file).ok().map(fs::File::from) } else { None };
    file.close().h5()?;
    if let Some(lock) = lock {
        // the file system may have no locks
        let _ = lock.unlock();
    }
    Ok(())
}

impl Drop for File {
    /// [`close`](File::close) also reports errors.
    fn drop(&mut self) {
        let _ = self.end();
    }
}
