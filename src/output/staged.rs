//! Outputs that another process writes under a temporary name, and to which this process gives
//! their final name.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Output;
use super::partial::{partial_target, remove_abandoned_at};
use super::publishing::IfExists;
use super::walk::walk;
use crate::error::{Context, Result, ResultExt};

/// A temporary path beside a target, to which another process writes a file or directory.
/// [`publish`](Self::publish) renames it to the target; dropping removes it. If this process is
/// killed, the temporary file or directory stays until the next output with the same target, or
/// [`remove_abandoned`].
///
/// ```
/// use ctds_hdf5::{IfExists, StagedOutput};
/// # let folder = tempfile::tempdir().unwrap();
/// # let target = folder.path().join("my.h5");
///
/// let staged = StagedOutput::create(&target, IfExists::Fail)?;
/// std::fs::write(staged.path(), b"written by another process").unwrap();
/// staged.publish()?;
/// assert!(target.exists());
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug)]
pub struct StagedOutput(Output);

impl StagedOutput {
    /// Makes a temporary path beside `target`, to which another process can write. `if_exists`
    /// tells what [`publish`](Self::publish) does if the target exists then.
    ///
    /// # Errors
    /// `Usage` if the target has no name or its directory does not exist, `Io`, `NoSpace`.
    pub fn create(target: impl AsRef<Path>, if_exists: IfExists) -> Result<Self> {
        Output::stage(target.as_ref(), if_exists.into()).map(StagedOutput)
    }

    /// Makes an empty directory beside `target`, in which a table is written.
    ///
    /// # Errors
    /// `Exists` if the target exists and is not to be replaced, or holds no table; those of
    /// [`create`](Self::create).
    pub fn create_directory(target: impl AsRef<Path>, if_exists: IfExists) -> Result<Self> {
        Output::create_directory(target.as_ref(), if_exists.into(), 0).map(StagedOutput)
    }

    /// The temporary path beside the target, at which another process writes the file or directory.
    pub fn path(&self) -> &Path {
        self.0.partial()
    }

    /// Makes the output that another process has written durable (fsync) and renames it to the
    /// target. After an error the output is still at [`path`](Self::path).
    ///
    /// # Errors
    /// `Exists` if the target exists and is not to be replaced; `Io` if nothing was written.
    pub fn publish(&self) -> Result<()> {
        self.0.publish_staged()
    }
}

/// Paths of all regular files below `path`, sorted, or `path` itself if it is a file. Symbolic
/// links are not followed.
///
/// # Errors
/// `NotFound`, `Io`.
pub fn files_below(path: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(path.as_ref(), &mut |path| {
        if path.symlink_metadata()?.is_file() {
            files.push(path.to_owned());
        }
        Ok(())
    })
    .with_context(|| Context::path(path.as_ref()))?;
    files.sort();
    Ok(files)
}

/// Removes unfinished outputs (with temporary names) in a directory, if their writers have exited,
/// `is_target` accepts the file name of their target, and nothing in them has changed for
/// `unchanged`. Returns the paths that were removed.
///
/// # Errors
/// `NotFound`, `Io` if the directory cannot be read.
pub fn remove_abandoned(
    directory: impl AsRef<Path>,
    unchanged: Duration,
    is_target: &dyn Fn(&OsStr) -> bool,
) -> Result<Vec<PathBuf>> {
    let directory = directory.as_ref();
    let mut removed = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| Context::path(directory))? {
        let entry = entry.with_context(|| Context::path(directory))?;
        let Some(target) = partial_target(&entry.file_name()).map(<[u8]>::to_vec) else { continue };
        let target = OsStr::from_bytes(&target);
        if !is_target(target) || !is_unchanged(&entry.path(), unchanged) {
            continue;
        }
        // one that cannot be removed is left for the next call
        if remove_abandoned_at(&entry.path(), target).is_ok() && !entry.path().exists() {
            removed.push(entry.path());
        }
    }
    removed.sort();
    Ok(removed)
}

/// Looks at all files at or below `path`; false if that cannot be told.
fn is_unchanged(path: &Path, time: Duration) -> bool {
    let Some(before) = SystemTime::now().checked_sub(time) else { return false };
    let mut newest = SystemTime::UNIX_EPOCH;
    let walked = walk(path, &mut |path| {
        newest = newest.max(path.symlink_metadata()?.modified()?);
        Ok(())
    });
    walked.is_ok() && newest <= before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn files_and_directories_are_published() {
        let folder = tempfile::tempdir().unwrap();
        for (name, is_directory) in [("x.h5", false), ("x.ms", true)] {
            let target = folder.path().join(name);
            let write = |staged: &StagedOutput| match is_directory {
                true => {
                    fs::create_dir(staged.path()).unwrap();
                    fs::write(staged.path().join("table.dat"), b"new").unwrap();
                }
                false => fs::write(staged.path(), b"new").unwrap(),
            };
            let staged = StagedOutput::create(&target, IfExists::Fail).unwrap();
            assert_eq!(staged.publish().unwrap_err().kind(), ErrorKind::Io, "nothing was written");
            write(&staged);
            staged.publish().unwrap();
            drop(staged);
            let again = StagedOutput::create(&target, IfExists::Fail).unwrap();
            write(&again);
            assert_eq!(again.publish().unwrap_err().kind(), ErrorKind::Exists);
            assert!(again.path().exists());
            drop(again);
            let replacing = StagedOutput::create(&target, IfExists::Replace).unwrap();
            write(&replacing);
            replacing.publish().unwrap();
            assert_eq!(files_below(&target).unwrap().len(), 1);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn only_abandoned_outputs_of_the_targets_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left = |name: &str| {
            let path = folder.path().join(format!("{name}.4194305-aB3dE6gH.partial"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join(name), b"half").unwrap();
            path
        };
        let (mine, others) = (left("x.h5"), left("y.h5"));
        let alive = StagedOutput::create(folder.path().join("z.h5"), IfExists::Fail).unwrap();
        let clean = |time| remove_abandoned(folder.path(), time, &|name| name != "y.h5").unwrap();
        assert!(clean(Duration::from_secs(60)).is_empty(), "it is new");
        assert_eq!(clean(Duration::ZERO), [mine]);
        assert!(others.exists() && alive.path().parent().unwrap().exists());
    }
}
