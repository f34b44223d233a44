//! Files and how they are created.

use std::path::{Path, PathBuf};

use hdf5::file::{FileAccess, FileAccessBuilder, FileCloseDegree, FileCreate, LibraryVersion};
use hdf5::plist::group_create::{AttrCreationOrder, LinkCreationOrder};

use super::sys::Mode;
use super::{Group, LiveFile, live, sys};
use crate::error::{Place, Result};

/// How often metadata is read that a writer may be in the middle of writing. HDF5 waits twice as long each time, from 1 ns
/// on: one second in all, and not for ages, before it is called damaged.
const READ_ATTEMPTS: u32 = 30;

/// An open HDF5 file.
#[derive(Debug)]
pub(crate) struct File {
    /// Taken by `close` and `drop` only.
    file: Option<hdf5::File>,
    path: PathBuf,
}

impl File {
    /// Creates a file, or empties the one that is there.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Self::create_with(path, &mut FileAccess::build())
    }

    /// As [`create`](Self::create), for a file that goes live.
    pub(crate) fn create_for_live(path: &Path) -> Result<Self> {
        Self::create_with(path, FileAccess::build().alignment(live::LARGE_METADATA, live::ALIGNMENT))
    }

    fn create_with(path: &Path, access: &mut FileAccessBuilder) -> Result<Self> {
        let mut create = || {
            let creation = FileCreate::build()
                .obj_track_times(false)
                .attr_creation_order(AttrCreationOrder::Indexed)
                .link_creation_order(LinkCreationOrder::Indexed)
                .finish()?;
            let access = access
                .libver_bounds(LibraryVersion::V110, LibraryVersion::V110)
                // so that `close` is the end of the file, whoever still holds a group
                .fclose_degree(FileCloseDegree::Strong)
                .finish()?;
            sys::create_file(path, &creation, &access)
        };
        Ok(File { file: Some(create().at(path.display())?), path: path.to_owned() })
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// `Format` if it is not HDF5, `Locked` if a writer has it open.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::open_as(path, Mode::Read)
    }

    /// Opens a file for reading while another process appends to it.
    ///
    /// # Errors
    /// `Format` if it is not HDF5, or of a version that cannot be appended to and read at the same time.
    pub(crate) fn open_live(path: &Path) -> Result<Self> {
        Self::open_as(path, Mode::ReadLive)
    }

    /// Opens a file that nobody else has open, to change it.
    ///
    /// # Errors
    /// `Format` if it is not HDF5, `Locked` if another process has it open.
    pub(crate) fn edit(path: &Path) -> Result<Self> {
        Self::open_as(path, Mode::Write)
    }

    fn open_as(path: &Path, mode: Mode) -> Result<Self> {
        let open = || {
            let mut access = FileAccess::build();
            match mode {
                Mode::Write => access.fclose_degree(FileCloseDegree::Strong),
                Mode::ReadLive => access.metadata_read_attempts(READ_ATTEMPTS),
                _ => &mut access,
            };
            sys::open_file(path, mode, &access.finish()?)
        };
        Ok(File { file: Some(open().at(path.display())?), path: path.to_owned() })
    }

    /// Closes a file that was created, with every handle of it, and opens it again as one to which rows are appended while others
    /// read.
    ///
    /// # Errors
    /// As [`close`](Self::close), and `Locked`.
    pub(crate) fn go_live(self) -> Result<LiveFile> {
        let path = self.path.clone();
        self.close()?;
        LiveFile::open(&path)
    }

    /// The group that holds everything else.
    pub(crate) fn root(&self) -> Result<Group> {
        let file = self.file.as_ref().expect("taken only when the file goes");
        Ok(Group::new(file.group("/").at(self.path.display())?, String::new()))
    }

    /// Writes what is still in memory and closes the file. Groups and datasets of a file that was created become
    /// unusable.
    ///
    /// # Errors
    /// `NoSpace` or `Io` if the file is not complete on disk.
    pub(crate) fn close(mut self) -> Result<()> {
        self.end().at(self.path.display())
    }

    fn end(&mut self) -> Result<(), hdf5::Error> {
        self.file.take().map_or(Ok(()), end)
    }
}

/// Flushes and closes a file.
pub(super) fn end(file: hdf5::File) -> Result<(), hdf5::Error> {
    if let Err(error) = file.flush() {
        // libhdf5 cannot close a file that it cannot flush: it crashes when the objects in it go. So the file stays
        // open until the program ends.
        std::mem::forget(file);
        return Err(error);
    }
    file.close()
}

impl Drop for File {
    /// Closes the file; [`close`](File::close) also says whether that worked.
    fn drop(&mut self) {
        let _ = self.end();
    }
}
