//! A file that appears under its name only when it is whole.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use nix::sys::statvfs::statvfs;

use crate::error::{Error, ErrorKind, Place, Result};

/// How often what is written is made durable meanwhile.
const SYNC_EVERY: Duration = Duration::from_millis(100);

/// A file being written as `NAME.partial`, beside where it will be.
#[derive(Debug)]
pub(crate) struct Output {
    target: PathBuf,
    partial: PathBuf,
    overwrite: bool,
    committed: bool,
}

/// Where `target` is written before it is whole.
pub fn partial_path(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    target.with_file_name(name)
}

impl Output {
    /// Checks that `target` can be written and that about `bytes` are free there.
    ///
    /// # Errors
    /// `Exists` without `overwrite` if there is something, `Usage` if the directory is missing, `NoSpace`.
    pub(crate) fn create(target: &Path, overwrite: bool, bytes: u64) -> Result<Self> {
        let place = target.display().to_string();
        check_target(target, overwrite)?;
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if !directory.is_dir() {
            return Err(Error::usage(format!("there is no directory {}", directory.display())).at(place));
        }
        let system = statvfs(directory).map_err(std::io::Error::from).at(&place)?;
        let free = system.blocks_available().saturating_mul(system.fragment_size());
        if free < bytes {
            let message = format!("about {bytes} bytes are needed, but only {free} are free");
            return Err(Error::new(ErrorKind::NoSpace, message).at(place));
        }
        Ok(Output { target: target.to_owned(), partial: partial_path(target), overwrite, committed: false })
    }

    /// Where to write.
    pub(crate) fn partial(&self) -> &Path {
        &self.partial
    }

    /// Begins to make durable what is written, so that there is little left to do at the end.
    pub(crate) fn sync_behind(&self) -> Result<SyncBehind> {
        let file = File::open(&self.partial)?;
        let (stop, stopped) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SYNC_EVERY) {
                // an error comes again when the file is made durable
                let _ = file.sync_data();
            }
        });
        Ok(SyncBehind { stop: Some(stop), thread: Some(thread) })
    }

    /// Makes the file durable and gives it its name.
    pub(crate) fn commit(mut self) -> Result<()> {
        let commit = || -> Result<()> {
            File::open(&self.partial)?.sync_all()?;
            check_target(&self.target, self.overwrite)?;
            fs::rename(&self.partial, &self.target)?;
            Ok(())
        };
        commit().at_with(|| self.target.display().to_string())?;
        self.committed = true;
        Ok(())
    }
}

/// Makes a file durable while it is written, until dropped.
pub(crate) struct SyncBehind {
    stop: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for SyncBehind {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn check_target(target: &Path, overwrite: bool) -> Result<()> {
    match target.symlink_metadata() {
        Ok(found) if found.is_dir() => Err(Error::new(ErrorKind::Exists, "the target is a directory")),
        Ok(_) if !overwrite => Err(Error::new(ErrorKind::Exists, "the target exists already")),
        _ => Ok(()),
    }
    .at_with(|| target.display().to_string())
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.committed {
            // nothing can be done about a file that cannot be removed
            let _ = fs::remove_file(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appears_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("x.h5");
        let output = Output::create(&target, false, 10).unwrap();
        fs::write(output.partial(), b"half").unwrap();
        drop(output);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        let output = Output::create(&target, false, 10).unwrap();
        fs::write(output.partial(), b"whole").unwrap();
        output.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(Output::create(&target, false, 10).unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(Output::create(&target, true, u64::MAX).unwrap_err().kind(), ErrorKind::NoSpace);
    }
}
