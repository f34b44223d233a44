//! HDF5 files: how they are created, opened and closed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::existing::{Handle, Place, Reading, names_in_root};
use super::{Group, LiveFile, Reach, Superblock, library, lock};
use crate::error::{Context, Error, Result, ResultExt, shown_path};
use crate::io::{FileSource, FileTarget, ReadAt};
use crate::remote;

/// The oldest release of HDF5 that must be able to read a new file or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// Superblock 0, symbol tables, version 1 b-trees.
    Earliest,
    /// Superblock 3.
    V110,
}

/// How space is allocated in a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Plain,
    /// Blocks of at least [`ALIGNED_BYTES`] are aligned, so that reflinks can share their bytes.
    Aligned,
    /// Pages have this number of bytes.
    Paged(u64),
    /// The file is to become live.
    Live,
}

/// Blocks of this size on are aligned by [`File::create_aligned`].
pub(crate) const ALIGNED_BYTES: u64 = 4 << 20;

/// An open HDF5 file.
#[derive(Debug)]
pub struct File {
    at: At,
    path: PathBuf,
    reach: Reach,
    bounds: Bounds,
}

#[derive(Debug)]
enum At {
    Existing(Place),
    /// A file that this program makes or changes.
    Library {
        /// `None` only after `close` or `drop`.
        file: Option<library::File>,
        /// Then also locked exclusively.
        writable: bool,
        /// libhdf5 gives the superblock of paged files an extension, with the time of day.
        paged: bool,
    },
}

impl File {
    fn new(file: library::File, path: &Path) -> Self {
        let at = At::Library { file: Some(file), writable: false, paged: false };
        File { at, path: path.to_owned(), reach: Reach::File, bounds: Bounds::V110 }
    }

    fn existing(root: Place, path: &Path) -> Self {
        File { at: At::Existing(root), path: path.to_owned(), reach: Reach::File, bounds: Bounds::V110 }
    }

    fn writable(mut self, bounds: Bounds, is_paged: bool) -> Self {
        if let At::Library { writable, paged, .. } = &mut self.at {
            (*writable, *paged) = (true, is_paged);
        }
        self.bounds = bounds;
        self
    }

    /// Readable by HDF5 1.10 and newer; an existing file is emptied.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Self::create_for(Bounds::V110, path)
    }

    pub(crate) fn create_for(bounds: Bounds, path: &Path) -> Result<Self> {
        Self::create_with(bounds, FileKind::Plain, path)
    }

    pub(crate) fn create_in_memory() -> Result<Self> {
        let (file, name) = library::File::create_in_memory()?;
        // no lock has to be given back at the end
        Ok(File::new(file, Path::new(&name)))
    }

    /// Opens a file in memory for reading, once it is written.
    pub(crate) fn reopened(mut self) -> Result<Self> {
        let At::Library { file: Some(file), .. } = &self.at else { return Err(closed()) };
        let image: Arc<dyn ReadAt> = Arc::new(file.image()?);
        self.end()?;
        let (name, bytes) = (self.path.to_string_lossy().into_owned(), image.clone());
        let opener = move || library::File::open_source(&name, bytes.clone());
        Ok(File::existing(Place::root(image, Reading::Whole, None, Box::new(opener))?, &self.path))
    }

    pub(crate) fn create_aligned(path: &Path) -> Result<Self> {
        Self::create_with(Bounds::V110, FileKind::Aligned, path)
    }

    /// Metadata are collected in a few pages; each block of at least one page begins a page.
    pub(crate) fn create_paged(path: &Path, page_bytes: u64) -> Result<Self> {
        Self::create_with(Bounds::V110, FileKind::Paged(page_bytes), path)
    }

    pub(crate) fn create_for_live(path: &Path) -> Result<Self> {
        Self::create_with(Bounds::V110, FileKind::Live, path)
    }

    fn create_with(bounds: Bounds, kind: FileKind, path: &Path) -> Result<Self> {
        let is_paged = matches!(kind, FileKind::Paged(_));
        let file = library::File::create(bounds, kind, path).context(Context::path(path))?;
        Ok(File::new(file, path).writable(bounds, is_paged))
    }

    /// Fails with `Format` if the file is not HDF5, `Locked` if a writer has it open.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::open_as(path, Reading::Whole)
    }

    fn open_as(path: &Path, reading: Reading) -> Result<Self> {
        let open = || -> Result<_> {
            let source = Arc::new(FileSource::open(path)?);
            let lock = lock::share(&source)?;
            let name = path.to_owned();
            let opener = move || library::File::open(&name);
            Ok(File::existing(Place::root(source, reading, Some(lock), Box::new(opener))?, path))
        };
        open().with_context(|| Context::path(path))
    }

    /// Opens a path or URL, also a live file; returns access to its bytes as well.
    pub(crate) fn open_with_source(path: &Path) -> Result<(Self, Arc<dyn ReadAt>)> {
        if remote::is_remote(path) {
            return Self::open_remote(path, Reading::Whole);
        }
        Ok((Self::open_shared(path)?, Arc::new(FileSource::open(path)?)))
    }

    /// As [`open_with_source`](Self::open_with_source), with the intact parts of damaged objects.
    pub(crate) fn open_to_salvage(path: &Path) -> Result<(Self, Arc<dyn ReadAt>)> {
        if remote::is_remote(path) {
            return Self::open_remote(path, Reading::Salvage);
        }
        if superblock(path).is_some_and(|superblock| superblock.is_live()) {
            return Self::open_with_source(path);
        }
        Ok((Self::open_as(path, Reading::Salvage)?, Arc::new(FileSource::open(path)?)))
    }

    fn open_remote(path: &Path, reading: Reading) -> Result<(Self, Arc<dyn ReadAt>)> {
        let open = || -> Result<_> {
            let source = remote::open(path)?;
            let name = shown_path(path);
            let (shown, bytes) = (name.clone(), source.clone());
            let opener = move || library::File::open_source(&shown, bytes.clone());
            let root = Place::root(source.clone(), reading, None, Box::new(opener))?;
            Ok((File::existing(root, Path::new(&name)), source))
        };
        open().context(Context::path(path))
    }

    /// Opens also a live file, or one whose writer was killed.
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

    /// Names of the links and of the attributes of the root group, by which kinds of files differ;
    /// errors are those of [`open_shared`](Self::open_shared), but for values of attributes, which
    /// are not looked at.
    pub(crate) fn names_in_root(path: &Path) -> Result<(Vec<String>, Vec<String>)> {
        let names = || -> Result<_> {
            let source = Arc::new(FileSource::open(path)?);
            let _lock = lock::share(&source)?;
            names_in_root(source)
        };
        names().or_else(|_| {
            // a live file, or one that cannot be opened
            let root = Self::open_shared(path)?.root()?;
            let links = root.links()?.into_iter().map(|(name, _)| name).collect();
            Ok((links, root.attributes()?))
        })
    }

    /// Opens a file, also one that another process appends to, and releases HDF5's lock at once, so
    /// that writers need not wait. Also tells whether the file grows (SWMR).
    ///
    /// # Errors
    /// `NotFound`, `Io`, `Format` if it is not HDF5, `Locked` if a writer keeps others out.
    pub fn open_unlocked(path: &Path) -> Result<(Self, bool)> {
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
    pub(crate) fn open_live(path: &Path) -> Result<Self> {
        Self::open_growing(path, Reading::Live)
    }

    /// Opens a file that a writer which has ended did not close, whether it was live or not.
    pub(crate) fn open_left(path: &Path) -> Result<Self> {
        Self::open_growing(path, Reading::Left)
    }

    fn open_growing(path: &Path, reading: Reading) -> Result<Self> {
        let open = || -> Result<_> {
            let source = Arc::new(FileSource::open(path)?);
            // with the lock a restarted writer would have to wait for all readers
            let _lock = lock::share(&source)?;
            let (name, bytes) = (path.to_owned(), source.clone());
            let opener = move || library::File::open_live(&name, bytes.clone());
            Ok(File::existing(Place::root(source, reading, None, Box::new(opener))?, path))
        };
        open().with_context(|| Context::path(path))
    }

    /// `bounds` are those of new objects; `Locked` if another process has the file open.
    pub(crate) fn edit(path: &Path, bounds: Bounds) -> Result<Self> {
        Ok(File::new(open(path, || library::File::edit(bounds, path))?, path).writable(bounds, false))
    }

    /// Opens a file to append while others read (SWMR). Only elements, and extents of datasets that
    /// can grow, may be changed. `Format` if the file is older than superblock 3, `Locked` if
    /// another process has it open, or a writer exited without closing it.
    pub(crate) fn edit_live(path: &Path) -> Result<Self> {
        let file = open(path, || library::File::edit_live(path))?;
        Ok(File::new(file, path).writable(Bounds::V110, false))
    }

    /// Hands changes in libhdf5's memory to the operating system.
    pub(crate) fn flush(&self) -> Result<()> {
        match &self.at {
            At::Library { file: Some(file), .. } => file.flush().context(Context::path(&self.path)),
            _ => Ok(()),
        }
    }

    /// Closes a new file, with every open object, and reopens it as a live one.
    pub(crate) fn go_live(self) -> Result<LiveFile> {
        let path = self.path.clone();
        self.close()?;
        LiveFile::open(&path)
    }

    /// Later bytes of the file are not HDF5.
    pub(crate) fn end_of_file(&self) -> Result<u64> {
        match &self.at {
            At::Existing(root) => Ok(root.file().superblock().end),
            At::Library { file: Some(file), .. } => file.end_of_file().context(Context::path(&self.path)),
            At::Library { file: None, .. } => Err(closed()),
        }
    }

    /// Permits references to regular files below the file's directory; `Unsupported` at an address.
    pub(crate) fn follow(mut self) -> Result<Self> {
        if remote::is_remote(&self.path) {
            return Err(
                Error::unsupported("other files are not followed from an address").context(Context::path(&self.path))
            );
        }
        self.reach = Reach::beside(&self.path, |path| File::open_shared(path)?.into_root())?;
        Ok(self)
    }

    /// The root group.
    ///
    /// # Errors
    /// `Usage` if the file is closed.
    pub fn root(&self) -> Result<Group> {
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
            At::Library { file: Some(file), .. } => file.root().context(Context::path(&self.path)).map(Handle::Library),
            At::Library { file: None, .. } => Err(closed()),
        }
    }

    /// Open groups and datasets of a written file become unusable; fails if not all is on disk.
    pub(crate) fn close(mut self) -> Result<()> {
        self.end().context(Context::path(&self.path))
    }

    fn end(&mut self) -> Result<()> {
        let At::Library { file, writable, paged } = &mut self.at else { return Ok(()) };
        let Some(file) = file.take() else { return Ok(()) };
        file.close(*writable)?;
        if *paged {
            let file = FileTarget::open(&self.path)?;
            Superblock::read(&file)?.forget_times(&file)?;
        }
        Ok(())
    }
}

/// Checks all of the file first. Waits briefly for processes that just open it for reading.
pub(super) fn open(path: &Path, open: impl Fn() -> Result<library::File>) -> Result<library::File> {
    let open = || {
        let source = Arc::new(FileSource::open(path)?);
        let lock = lock::share(&source)?;
        Place::root(source, Reading::Whole, None, Box::new(|| Err(closed())))?.check_all()?;
        drop(lock);
        open()
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

impl Drop for File {
    /// [`close`](File::close) also reports errors.
    fn drop(&mut self) {
        let _ = self.end();
    }
}
