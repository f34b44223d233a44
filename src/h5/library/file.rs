//! Files that libhdf5 has open.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hdf5::file::{FileAccess, FileAccessBuilder, FileCloseDegree, FileCreate, FileCreateBuilder, LibraryVersion};
use hdf5::plist::file_access::LogFlags;
use hdf5::plist::file_create::FileSpaceStrategy;
use hdf5::plist::group_create::{AttrCreationOrder, LinkCreationOrder};

use super::super::error::Hdf5Result;
use super::super::sys::{self, Mode};
use super::super::{ALIGNED_BYTES, Bounds, FileKind, live};
use super::{Dataset, Group};
use crate::error::Result;
use crate::io::{FileSource, ReadAt};

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

/// Reflinks share whole blocks of the file system; the largest, of ZFS, seldom exceed 1 MiB.
const ALIGNMENT: u64 = 1 << 20;

/// Growth of a file in memory.
const MEMORY_INCREMENT: usize = 64 << 10;

#[derive(Debug, Clone)]
pub(in crate::h5) struct File(hdf5::File);

impl File {
    pub(in crate::h5) fn create(bounds: Bounds, kind: FileKind, path: &Path) -> Result<Self> {
        let (mut access, mut creation) = (writing(bounds), creation(bounds));
        match kind {
            FileKind::Plain => {}
            FileKind::Aligned => {
                access.alignment(ALIGNED_BYTES, ALIGNMENT);
            }
            FileKind::Paged(page_bytes) => {
                let strategy = FileSpaceStrategy::FreeSpaceManager { paged: true, persist: false, threshold: 1 };
                creation.file_space_strategy(strategy).file_space_page_size(page_bytes);
            }
            FileKind::Live => {
                access.alignment(live::LARGE_METADATA, live::ALIGNMENT);
            }
        }
        sys::create_file(path, &creation.finish().h5()?, &access.finish().h5()?).map(File)
    }

    /// Also returns a name for messages.
    pub(in crate::h5) fn create_in_memory() -> Result<(Self, String)> {
        // HDF5 takes files of one name for one file
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("memory {}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut access = writing(Bounds::V110);
        access.core_options(MEMORY_INCREMENT, false);
        let creation = creation(Bounds::V110).finish().h5()?;
        let file = sys::create_memory_file(Path::new(&name), &creation, &access.finish().h5()?)?;
        Ok((File(file), name))
    }

    pub(in crate::h5) fn open(path: &Path) -> Result<Self> {
        sys::open_file(path, Mode::Read, &reading().finish().h5()?).map(File)
    }

    /// `name` appears in messages only.
    pub(in crate::h5) fn open_source(name: &str, source: Arc<dyn ReadAt>) -> Result<Self> {
        sys::open_source(name, source, &reading().finish().h5()?).map(File)
    }

    /// libhdf5's memory of the file is not shared with others that this process opens.
    pub(in crate::h5) fn open_live(path: &Path, source: Arc<FileSource>) -> Result<Self> {
        let access = reading().metadata_read_attempts(READ_ATTEMPTS).finish().h5()?;
        sys::open_live(path, source, &access).map(File)
    }

    pub(in crate::h5) fn edit(bounds: Bounds, path: &Path) -> Result<Self> {
        sys::open_file(path, Mode::Write, &writing(bounds).finish().h5()?).map(File)
    }

    /// Others may read while rows are appended (SWMR).
    pub(in crate::h5) fn edit_live(path: &Path) -> Result<Self> {
        sys::open_file(path, Mode::WriteLive, &writing(Bounds::V110).finish().h5()?).map(File)
    }

    /// Elements go straight to their place, by another driver than usual: two with the same driver
    /// in a process share libhdf5's memory of the file. `log`, without a log, is like `sec2`.
    pub(in crate::h5) fn append_live(path: &Path) -> Result<Self> {
        let mut access = FileAccess::build();
        access
            .log_options(None, LogFlags::empty(), 0)
            .libver_bounds(LibraryVersion::V110, LibraryVersion::V110)
            .chunk_cache(1, 0, 0.0)
            .sieve_buf_size(0)
            .alignment(8, live::ALIGNMENT);
        sys::open_file(path, Mode::WriteLive, &access.finish().h5()?).map(File)
    }

    pub(in crate::h5) fn root(&self) -> Result<Group> {
        self.0.group("/").h5().map(Group)
    }

    /// The group whose header is at an address, which counts from where libhdf5 does.
    pub(in crate::h5) fn group_at(&self, address: u64) -> Result<Group> {
        sys::open_group_at(&self.0, address).map(Group)
    }

    pub(in crate::h5) fn dataset_at(&self, address: u64) -> Result<Dataset> {
        sys::open_dataset_at(&self.0, address).map(Dataset::new)
    }

    /// Hands changes in libhdf5's memory to the operating system.
    pub(in crate::h5) fn flush(&self) -> Result<()> {
        self.0.flush().h5()
    }

    /// Later bytes of the file are not HDF5.
    pub(in crate::h5) fn end_of_file(&self) -> Result<u64> {
        sys::end_of_file(&self.0)
    }

    /// All bytes of a file in memory.
    pub(in crate::h5) fn image(&self) -> Result<Vec<u8>> {
        sys::image(&self.0)
    }

    /// Stays open after the file is closed.
    pub(in crate::h5) fn descriptor(&self) -> Result<fs::File> {
        sys::descriptor(&self.0).map(fs::File::from)
    }

    pub(in crate::h5) fn unlock(&self) {
        sys::unlock(&self.0);
    }

    /// If `writable`, also releases the exclusive lock, which child processes might still hold.
    /// Fails also if a dataset closed before was not written.
    pub(in crate::h5) fn close(self, writable: bool) -> Result<()> {
        let file = self.0;
        let number = sys::file_number(&file)?;
        let flushed = file.flush().h5();
        if let Some(error) = sys::take_failure(number).or(flushed.err()) {
            // libhdf5 cannot close a file or dataset that it cannot flush: it crashes when the
            // objects in the file go. So the file stays open until the program ends.
            std::mem::forget(file);
            return Err(error);
        }
        // a process that another thread is just starting has the lock, too, unless it is given up
        let lock = if writable { sys::descriptor(&file).ok().map(fs::File::from) } else { None };
        let closed = file.close().h5();
        if let Some(lock) = lock {
            // the file system may have no locks
            let _ = lock.unlock();
        }
        match sys::take_failure(number) {
            Some(error) => Err(error),
            None => closed,
        }
    }
}

/// Set explicitly, so that the environment (HDF5_DRIVER) does not change driver and cache.
fn reading() -> FileAccessBuilder {
    let mut access = FileAccess::build();
    access.sec2().chunk_cache(CHUNK_SLOTS, CHUNK_CACHE_BYTES, CHUNK_PREEMPTION);
    access
}

fn writing(bounds: Bounds) -> FileAccessBuilder {
    let mut access = reading();
    match bounds {
        Bounds::Earliest => access.libver_bounds(LibraryVersion::Earliest, LibraryVersion::V110),
        Bounds::V110 => access.libver_bounds(LibraryVersion::V110, LibraryVersion::V110),
    };
    // so that `close` closes the file even if a group is still open
    access.fclose_degree(FileCloseDegree::Strong);
    // bytes of a call are written when it returns, or it fails
    access.sieve_buf_size(0);
    access
}

fn creation(bounds: Bounds) -> FileCreateBuilder {
    let mut creation = FileCreate::build();
    creation.obj_track_times(false);
    if bounds == Bounds::V110 {
        creation.attr_creation_order(AttrCreationOrder::Indexed).link_creation_order(LinkCreationOrder::Indexed);
    }
    creation
}
