//! Keeps a live MultiHDF5 container in step with the files of a table that casacore is still
//! writing, byte for byte. docs/reference/containers.md.
//!
//! | file           | purpose                                                                      |
//! |----------------|------------------------------------------------------------------------------|
//! | `seen.rs`      | lengths, times and counters, by which it is known that files changed         |
//! | `copying.rs`   | copies differences into the container, and begins a new one where it must    |
//! | `following.rs` | a step: look, copy, look again, and commit if nothing was written in between |
//! | `summary.rs`   | events and amounts that the caller is told                                     |

mod copying;
mod following;
mod seen;
mod summary;
#[cfg(test)]
mod tests;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::copying::Copying;
use self::following::Following;
use self::seen::TABLE_LOCK;
pub use self::summary::{FilesCommit, FilesEvent, FilesFollowed};
use super::file_set::TABLE_DAT;
use crate::call::polling::{Polled, Polling, Told};
use crate::container::{LiveFiles, Origin};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::output::{IfExists, Publishing, SyncPolicy, WriterLock, directory_of};
use crate::progress::CancelToken;

/// Size of a block unless set: each commit stores all of a block in which bytes changed.
const BLOCK_BYTES: u64 = 64 << 10;

/// Keeps a MultiHDF5 container in step with the files of a table and its subtables, byte for byte,
/// while another program writes them. Other processes that read the container see the newest
/// commit: a state in which no write was under way. [`FinalizeFiles`](super::FinalizeFiles) makes
/// an ordinary MultiHDF5 container of it afterwards.
///
/// [`live::Follow`](crate::live::Follow) copies rows instead of files: its file can be plotted
/// while it grows, and a commit costs the new rows only. Here every file that changed is compared
/// as a whole.
///
/// ```no_run
/// use ctds_hdf5::pack::{FilesEvent, FollowFiles};
///
/// let summary = FollowFiles::new("my.ms", "live.mfh5").until_closed(true).run(|event| {
///     if let FilesEvent::Note(note) = event {
///         eprintln!("{note}");
///     }
/// })?;
/// println!("{} commits", summary.commits);
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "`run` follows the table"]
pub struct FollowFiles {
    source: PathBuf,
    target: PathBuf,
    block_bytes: u64,
    to_disk: bool,
    overwrite: bool,
    sync: SyncPolicy,
    polling: Polling,
}

impl FollowFiles {
    /// Prepares to copy the files of the table in the directory at `source` to a MultiHDF5
    /// container at `target`. A container of the same table that exists there is replaced by the
    /// first commit.
    pub fn new(source: impl AsRef<Path>, target: impl AsRef<Path>) -> Self {
        FollowFiles {
            source: source.as_ref().to_owned(),
            target: target.as_ref().to_owned(),
            block_bytes: BLOCK_BYTES,
            to_disk: false,
            overwrite: false,
            sync: SyncPolicy::default(),
            polling: Polling { every: Duration::from_secs(1), ..Polling::default() },
        }
    }

    /// Sets the size of a block of the container in bytes; 64 KiB by default. Each commit stores
    /// all of a block in which bytes changed in place.
    pub fn block_bytes(mut self, bytes: u64) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Sets whether commits wait until they are on the disk; by default they survive the end of the
    /// process, but not a power cut.
    pub fn durable(mut self, durable: bool) -> Self {
        self.to_disk = durable;
        self
    }

    /// Sets whether a file of another table, or any other file, is replaced at the target; by
    /// default that is an error.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets when a new HDF5 file is made durable (fsync); by default before it takes the place of
    /// the one before.
    pub fn sync(mut self, sync: SyncPolicy) -> Self {
        self.sync = sync;
        self
    }

    /// Sets the interval at which [`run`](Self::run) looks for changes; a second by default.
    pub fn poll(mut self, every: Duration) -> Self {
        self.polling.every = every;
        self
    }

    /// Sets whether [`run`](Self::run) ends when no other program has the table open.
    pub fn until_closed(mut self, until_closed: bool) -> Self {
        self.polling.until_closed = until_closed;
        self
    }

    /// Sets the time without a change in the table after which [`run`](Self::run) ends; `None`, the
    /// default: no limit.
    pub fn idle(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.polling.idle = time.into();
        self
    }

    /// Sets the token by which the caller ends [`run`](Self::run).
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.polling.cancel = token.clone();
        self
    }

    /// Copies the files of the table until the token is cancelled, or until the table is closed or
    /// idle, if the builder says so; then closes the container. Calls `observer` for each event.
    ///
    /// # Errors
    /// `NotFound` if the table does not exist, or is removed or made again; `Unsupported` if it has
    /// no lock file, by which its writers are seen; `Exists` if another file is at the target;
    /// `Locked` if another process is writing the container, or the table was written to without a
    /// pause until the end; `Interrupted` if the token was cancelled before the first commit; those
    /// of reading the table; `Io`, `NoSpace`. The last commit stays.
    pub fn run(&self, mut observer: impl FnMut(FilesEvent<'_>)) -> Result<FilesFollowed> {
        let (mut following, replaces) = self.polling.start(&self.source, || self.start())?;
        observer(FilesEvent::Started { replaces });
        let mut told = Told::default();
        self.polling.run(&mut following, &mut told, |event| match event {
            Polled::Changed(stepped) => {
                if let Some(commit) = stepped.commit {
                    observer(FilesEvent::Committed(commit));
                }
            }
            Polled::Note(note) => observer(FilesEvent::Note(note)),
        })?;
        let followed = following.finish()?;
        told.tell(followed.notes.clone(), |note| observer(FilesEvent::Note(note)));
        Ok(followed)
    }

    /// Also says whether a container exists that the first commit replaces.
    fn start(&self) -> Result<(Following, bool)> {
        let (source, target) = (self.source.as_path(), self.target.as_path());
        let place = || Context::path(source);
        let path = source.canonicalize().with_context(place)?;
        if !path.join(TABLE_DAT).exists() {
            return Err(Error::not_found("the directory has no table.dat yet").context(place()));
        }
        let directory = directory_of(target);
        if !directory.is_dir() {
            let message = format!("directory {} does not exist", directory.display());
            return Err(Error::usage(message).context(Context::path(target)));
        }
        let lock = WriterLock::take(target)?;
        let inode = path.join(TABLE_LOCK).metadata().map_or(0, |metadata| metadata.ino());
        let origin = Origin::new(&path, inode);
        let replaces = target.symlink_metadata().is_ok();
        if replaces && !self.overwrite {
            check_target(target, &origin).with_context(|| Context::path(target))?;
        }
        let publishing = Publishing { if_exists: IfExists::Replace, sync: self.sync };
        let copying = Copying::new(source, target, origin, self.block_bytes, publishing, &self.polling.cancel);
        Ok((Following::new(source, target, self.to_disk, copying, lock)?, replaces))
    }
}

/// `Exists` unless the file was made from this table.
fn check_target(target: &Path, origin: &Origin) -> Result<()> {
    let what = match LiveFiles::origin(target) {
        Ok(Some(found)) if found == *origin => return Ok(()),
        Ok(Some(found)) if found.path == origin.path => "it has the files of a table that was here before".to_owned(),
        Ok(Some(found)) => format!("it has the files of another table, {}", found.path),
        Ok(None) | Err(_) => "it was not made by `pack --follow`".to_owned(),
    };
    Err(Error::new(ErrorKind::Exists, format!("{what}: name another target, or replace it with --overwrite")))
}

/// Whether the file at `path` is a container that [`FollowFiles`] has written, which
/// [`FinalizeFiles`](super::FinalizeFiles) makes an ordinary one; false if it cannot be opened.
pub fn is_followed(path: impl AsRef<Path>) -> bool {
    LiveFiles::origin(path.as_ref()).is_ok_and(|origin| origin.is_some())
}
