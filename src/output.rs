//! A file or a directory that appears under its name only when it is whole.

use std::collections::HashMap;
use std::fs::{self, File};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::statvfs::statvfs;

use crate::error::{Error, ErrorKind, Result, ResultExt};

/// How often what is written is made durable meanwhile.
const SYNC_EVERY: Duration = Duration::from_millis(100);

/// Files of less than this are left for the end.
const SYNC_BYTES: u64 = 8 << 20;

/// Files made durable at a time: the system does many almost as fast as one.
const SYNCING: usize = 16;

/// How often the removal of a directory is tried to which other threads still write.
const REMOVAL_TRIES: usize = 20;

/// What a target becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    File,
    Directory,
}

/// A file or directory being written as `NAME.partial`, beside where it will be.
#[derive(Debug)]
pub(crate) struct Output {
    target: PathBuf,
    partial: PathBuf,
    form: Form,
    overwrite: bool,
    committed: bool,
}

/// Where `target` is written before it is whole.
fn partial_path(target: &Path) -> PathBuf {
    beside(target, ".partial")
}

/// `target` with something behind its name.
fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    target.with_file_name(name)
}

/// Removes what an interrupted verb has made of `target`, which itself stays as it was.
pub fn discard_partial(target: &Path) {
    let partial = partial_path(target);
    // nothing can be done about what cannot be removed
    let _ = remove(&partial);
    // of a verb that writes by means of another one
    let _ = remove(&partial_path(&partial));
}

impl Output {
    /// A file. Checks that `target` can be written and that about `bytes` are free there.
    ///
    /// # Errors
    /// `Exists` without `overwrite` if there is something, `Usage` if the directory is missing, `NoSpace`.
    pub(crate) fn create(target: &Path, overwrite: bool, bytes: u64) -> Result<Self> {
        Self::begin(target, Form::File, overwrite, bytes)
    }

    /// A table directory, empty so far.
    ///
    /// # Errors
    /// As [`create`](Self::create); `Exists` also for a directory that is there and holds no table, even with `overwrite`.
    pub(crate) fn create_directory(target: &Path, overwrite: bool, bytes: u64) -> Result<Self> {
        let output = Self::begin(target, Form::Directory, overwrite, bytes)?;
        let make = || -> Result<()> {
            // what an earlier run left when it was killed
            remove(&output.partial)?;
            Ok(fs::create_dir(&output.partial)?)
        };
        make().with_context(|| output.partial.display().to_string())?;
        Ok(output)
    }

    fn begin(target: &Path, form: Form, overwrite: bool, bytes: u64) -> Result<Self> {
        let place = target.display().to_string();
        if target.file_name().is_none() {
            return Err(Error::usage("the target has no name of its own").context(place));
        }
        check_target(target, form, overwrite)?;
        let directory = parent(target);
        if !directory.is_dir() {
            return Err(Error::usage(format!("there is no directory {}", directory.display())).context(place));
        }
        let system = statvfs(directory).map_err(std::io::Error::from).context(&place)?;
        let free = system.blocks_available().saturating_mul(system.fragment_size());
        if free < bytes {
            let message = format!("about {bytes} bytes are needed, but only {free} are free");
            return Err(Error::new(ErrorKind::NoSpace, message).context(place));
        }
        let (target, partial) = (target.to_owned(), partial_path(target));
        Ok(Output { target, partial, form, overwrite, committed: false })
    }

    /// Where to write.
    pub(crate) fn partial(&self) -> &Path {
        &self.partial
    }

    /// Begins to make durable what is written, so that there is little left to do at the end.
    pub(crate) fn sync_behind(&self) -> SyncBehind {
        let partial = self.partial.clone();
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut synced = HashMap::new();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SYNC_EVERY) {
                // an error comes again when all is made durable
                let _ = walk(&partial, &mut |path| sync_changed(path, &mut synced));
            }
        });
        SyncBehind { stop: Some(stop), thread: Some(thread) }
    }

    /// Bytes of all that was written.
    pub(crate) fn bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        walk(&self.partial, &mut |path| {
            let metadata = path.metadata()?;
            bytes += if metadata.is_file() { metadata.len() } else { 0 };
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Makes all durable and gives it its name.
    pub(crate) fn commit(mut self) -> Result<()> {
        self.publish().with_context(|| self.target.display().to_string())?;
        self.committed = true;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut paths = Vec::new();
        walk(&self.partial, &mut |path| {
            paths.push(path.to_owned());
            Ok(())
        })?;
        let sync = |paths: &[PathBuf]| paths.iter().try_for_each(|path| File::open(path)?.sync_all());
        std::thread::scope(|scope| {
            let share = paths.len().div_ceil(SYNCING).max(1);
            let threads: Vec<_> = paths.chunks(share).map(|paths| scope.spawn(move || sync(paths))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        Ok(())
    }

    fn publish(&self) -> Result<()> {
        self.sync()?;
        check_target(&self.target, self.form, self.overwrite)?;
        if self.target.is_dir() {
            replace_directory(&self.partial, &self.target)?;
        } else {
            if self.form == Form::Directory && self.target.symlink_metadata().is_ok() {
                fs::remove_file(&self.target)?;
            }
            fs::rename(&self.partial, &self.target)?;
        }
        Ok(File::open(parent(&self.target))?.sync_all()?)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.committed {
            discard_partial(&self.target);
        }
    }
}

/// Makes an output durable while it is written, until dropped.
pub(crate) struct SyncBehind {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for SyncBehind {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn parent(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn check_target(target: &Path, form: Form, overwrite: bool) -> Result<()> {
    let is_table =
        || target.join("table.dat").exists() || fs::read_dir(target).is_ok_and(|mut list| list.next().is_none());
    match target.symlink_metadata() {
        Ok(_) if !overwrite => Err(Error::new(ErrorKind::Exists, "the target exists already")),
        Ok(_) if form == Form::File && target.is_dir() => {
            Err(Error::new(ErrorKind::Exists, "the target is a directory"))
        }
        Ok(_) if target.is_dir() && !is_table() => {
            Err(Error::new(ErrorKind::Exists, "the target is a directory, but not a table: it is not replaced"))
        }
        _ => Ok(()),
    }
    .with_context(|| target.display().to_string())
}

/// Puts the directory `new` in the place of `old`, which is removed.
fn replace_directory(new: &Path, old: &Path) -> Result<()> {
    // a link to a table is followed: the table is replaced, the link stays
    let old = old.canonicalize()?;
    let exchanged = renameat2(AT_FDCWD, new, AT_FDCWD, &old, RenameFlags::RENAME_EXCHANGE);
    if exchanged.is_err() {
        // not all file systems can do it at once
        let aside = beside(&old, ".replaced");
        fs::rename(&old, &aside)?;
        fs::rename(new, &old)?;
        return Ok(fs::remove_dir_all(&aside)?);
    }
    Ok(fs::remove_dir_all(new)?)
}

/// Calls `visit` with `path` and all files and directories below it, these last; symbolic links are not followed.
fn walk(path: &Path, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_dir() {
        for entry in fs::read_dir(path)? {
            walk(&entry?.path(), visit)?;
        }
    }
    if kind.is_symlink() { Ok(()) } else { visit(path) }
}

/// Makes a large file durable if it has changed since the last time.
fn sync_changed(path: &Path, synced: &mut HashMap<PathBuf, SystemTime>) -> Result<()> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let changed = metadata.modified()?;
    if metadata.is_file() && metadata.len() >= SYNC_BYTES && synced.insert(path.to_owned(), changed) != Some(changed) {
        file.sync_data()?;
    }
    Ok(())
}

/// Removes a file or a directory with all that is in it, if it is there.
fn remove(path: &Path) -> std::io::Result<()> {
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    if !metadata.is_dir() {
        return fs::remove_file(path);
    }
    let mut result = Ok(());
    for _ in 0..REMOVAL_TRIES {
        result = fs::remove_dir_all(path);
        if result.is_ok() {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn appears_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("x.h5");
        let output = Output::create(&target, false, 10).unwrap();
        fs::write(output.partial(), b"half").unwrap();
        drop(output);
        assert!(names(directory.path()).is_empty());

        let output = Output::create(&target, false, 10).unwrap();
        fs::write(output.partial(), b"whole").unwrap();
        output.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(Output::create(&target, false, 10).unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(Output::create(&target, true, u64::MAX).unwrap_err().kind(), ErrorKind::NoSpace);
    }

    #[test]
    fn directories_replace_tables_only() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("x.ms");
        let make = |overwrite, text: &str| -> Result<Output> {
            let output = Output::create_directory(&target, overwrite, 10)?;
            let syncing = output.sync_behind();
            fs::create_dir(output.partial().join("SUB"))?;
            fs::write(output.partial().join("SUB/table.dat"), text)?;
            fs::write(output.partial().join("table.dat"), text)?;
            std::thread::sleep(2 * SYNC_EVERY);
            drop(syncing);
            Ok(output)
        };
        drop(make(false, "half").unwrap());
        assert!(names(directory.path()).is_empty());
        make(false, "one").unwrap().commit().unwrap();
        assert_eq!(make(false, "two").unwrap_err().kind(), ErrorKind::Exists);
        make(true, "two").unwrap().commit().unwrap();
        assert_eq!(fs::read(target.join("SUB/table.dat")).unwrap(), b"two");
        assert_eq!(names(directory.path()), ["x.ms"]);

        // a file is no directory, a directory of other things no table
        assert_eq!(Output::create(&target, true, 10).unwrap_err().kind(), ErrorKind::Exists);
        fs::remove_file(target.join("table.dat")).unwrap();
        assert_eq!(make(true, "three").unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(names(&target), ["SUB"]);
    }
}
