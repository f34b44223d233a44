//! Writes a file or a directory under a temporary name, and gives it its final name only when it is
//! complete.

pub(crate) mod clone;
mod damage;
mod partial;
mod place;
mod publishing;
mod staged;
mod walk;
mod writer_lock;

use std::fs::{self, File};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::os::free_bytes;
use partial::is_part;
use place::{OutputKind, check_target, is_a_directory, place, rename_new, replace_file, resolve};

pub use damage::Damage;
pub(crate) use partial::{COMPANION, Partial};
pub(crate) use place::{directory_of, publish_directory, publish_file};
pub(crate) use publishing::Publishing;
pub use publishing::{IfExists, SyncPolicy};
pub use staged::{StagedOutput, files_below, remove_abandoned};
pub use walk::sorted_entries;
pub(crate) use walk::walk;
pub(crate) use writer_lock::{WriterLock, network_file_system};

/// Files made durable concurrently: the system does many almost as fast as one.
const SYNCING: usize = 16;

/// A file or directory that is written under a temporary path beside its target, see [`Partial`],
/// until [`commit`](Self::commit).
#[derive(Debug)]
pub(crate) struct Output {
    target: PathBuf,
    partial: Partial,
    kind: OutputKind,
    publishing: Publishing,
}

impl Output {
    /// Checks that `target` can be written and that about `bytes` are free. [`IfExists::Replace`]
    /// replaces the file that a symbolic link leads to. `Exists` if something is not to be
    /// replaced, `Usage` if the directory is missing, `NoSpace`.
    pub(crate) fn create(target: &Path, publishing: Publishing, bytes: u64) -> Result<Self> {
        Self::begin(target, OutputKind::File, publishing, bytes)
    }

    /// As [`create`](Self::create), empty; `Exists` also for an existing directory that holds no
    /// table, even with [`IfExists::Replace`].
    pub(crate) fn create_directory(target: &Path, publishing: Publishing, bytes: u64) -> Result<Self> {
        let output = Self::begin(target, OutputKind::Directory, publishing, bytes)?;
        fs::create_dir(output.partial()).with_context(|| output.partial().display())?;
        Ok(output)
    }

    /// Begins an output that another process writes to [`partial`](Self::partial). Only
    /// [`publish_staged`](Self::publish_staged) checks whether `target` exists.
    pub(crate) fn stage(target: &Path, publishing: Publishing) -> Result<Self> {
        let target = &resolve(target, publishing.if_exists)?;
        let directory = directory_of(target);
        if target.file_name().is_some() && !directory.is_dir() {
            let message = format!("directory {} does not exist", directory.display());
            return Err(Error::usage(message).context(Context::path(target)));
        }
        let partial = Partial::create(target).with_context(|| Context::path(target))?;
        Ok(Output { target: target.to_owned(), partial, kind: OutputKind::File, publishing })
    }

    fn begin(target: &Path, kind: OutputKind, publishing: Publishing, bytes: u64) -> Result<Self> {
        let place = Context::path(target);
        if target.file_name().is_none() {
            return Err(Error::usage("the target has no name of its own").context(place));
        }
        let target = &resolve(target, publishing.if_exists)?;
        check_target(target, kind, publishing.if_exists)?;
        let directory = directory_of(target);
        if !directory.is_dir() {
            return Err(Error::usage(format!("directory {} does not exist", directory.display())).context(place));
        }
        let free = free_bytes(directory).context(&place)?;
        if free < bytes {
            let message = format!("about {bytes} bytes are needed, but only {free} are free");
            return Err(Error::new(ErrorKind::NoSpace, message).context(place));
        }
        Ok(Output { target: target.to_owned(), partial: Partial::create(target)?, kind, publishing })
    }

    /// Path until publication. Further files of an output lie beside it: `NAME.000001` … of a SION
    /// container, or the [companion](COMPANION) of a manifest.
    pub(crate) fn partial(&self) -> &Path {
        self.partial.path()
    }

    /// Temporary paths of the further files, sorted; empty for a directory.
    fn parts(&self) -> Result<Vec<PathBuf>> {
        let name = self.partial().file_name().unwrap_or_default();
        let mut parts = Vec::new();
        for entry in fs::read_dir(directory_of(self.partial()))? {
            let entry = entry?;
            if self.kind == OutputKind::File && is_part(name, &entry.file_name()) {
                parts.push(entry.path());
            }
        }
        parts.sort();
        Ok(parts)
    }

    fn walk(&self, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
        self.parts()?.iter().try_for_each(|part| walk(part, visit))?;
        walk(self.partial(), visit)
    }

    pub(crate) fn bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        self.walk(&mut |path| {
            let metadata = path.metadata()?;
            bytes += if metadata.is_file() { metadata.len() } else { 0 };
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Makes the output durable, unless `SyncPolicy::Never` is set, and renames it in one step:
    /// other processes see the old target, or all of the new one. With further files, an old target
    /// is removed first, and may be missing for a moment. `Exists` if another process was faster,
    /// unless its output is to be replaced.
    pub(crate) fn commit(self) -> Result<()> {
        self.publish(self.kind).with_context(|| Context::path(&self.target))
    }

    /// The same for an output that another process has written.
    pub(crate) fn publish_staged(&self) -> Result<()> {
        let kind = if self.partial().is_dir() { OutputKind::Directory } else { OutputKind::File };
        if self.partial().symlink_metadata().is_err() {
            let message = "the process that was to write the target has written nothing";
            return Err(Error::new(ErrorKind::Io, message).context(Context::path(&self.target)));
        }
        self.publish(kind).with_context(|| Context::path(&self.target))
    }

    fn sync(&self) -> Result<()> {
        let mut paths = Vec::new();
        self.walk(&mut |path| {
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

    /// Renames the further files, after the removal of an existing target: after a `kill -9` the
    /// output is all old, all new, or missing.
    fn publish_parts(&self) -> Result<()> {
        let (parts, target) = (self.parts()?, &self.target);
        let place = |part: &Path| target.with_file_name(part.file_name().unwrap_or_default());
        if self.publishing.if_exists.replaces() {
            if !parts.is_empty() && target.is_file() {
                if let Some(taken) = parts.iter().map(|part| place(part)).find(|place| place.is_dir()) {
                    return Err(is_a_directory().context(Context::path(taken)));
                }
                fs::remove_file(target)?;
            }
            return parts.iter().try_for_each(|part| {
                let place = place(part);
                replace_file(part, &place).with_context(|| Context::path(&place))
            });
        }
        for (number, part) in parts.iter().enumerate() {
            let placed = rename_new(part, &place(part), OutputKind::File);
            if let Err(error) = placed {
                // parts that were placed before go with the partial
                for part in &parts[..number] {
                    let _ = fs::rename(place(part), part);
                }
                return Err(error.context(Context::path(place(part))));
            }
        }
        Ok(())
    }

    fn publish(&self, kind: OutputKind) -> Result<()> {
        let Publishing { if_exists, sync } = self.publishing;
        let is_durable = sync != SyncPolicy::Never;
        if is_durable {
            self.sync()?;
        }
        check_target(&self.target, kind, if_exists)?;
        let (new, target) = (self.partial(), &self.target);
        self.publish_parts()?;
        place(new, target, kind, if_exists)?;
        if is_durable {
            File::open(directory_of(target))?.sync_all()?;
        }
        Ok(())
    }
}

/// Writes `bytes` to the file `path`, which appears under its name only when it is complete;
/// `if_exists` says whether an existing file is replaced.
///
/// # Errors
/// `Exists`; those of writing.
pub fn write_file(path: &Path, bytes: &[u8], if_exists: IfExists) -> Result<()> {
    let output = Output::create(path, if_exists.into(), bytes.len() as u64)?;
    fs::write(output.partial(), bytes).with_context(|| Context::path(path))?;
    output.commit()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::partial::{LOCK, SUFFIX, stem};
    use super::place::replace_in_two_steps;
    use super::*;
    use crate::error::Fails;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn targets_have_names() {
        let nameless = Partial::create(Path::new(".."));
        nameless.fails(ErrorKind::Usage, "the target has no name of its own");
    }

    #[test]
    fn appears_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("x.h5");
        let output = Output::create(&target, IfExists::Fail.into(), 10).unwrap();
        fs::write(output.partial(), b"half").unwrap();
        drop(output);
        assert!(names(directory.path()).is_empty());

        let output = Output::create(&target, IfExists::Fail.into(), 10).unwrap();
        fs::write(output.partial(), b"whole").unwrap();
        output.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(Output::create(&target, IfExists::Fail.into(), 10).unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(Output::create(&target, IfExists::Replace.into(), u64::MAX).unwrap_err().kind(), ErrorKind::NoSpace);
    }

    #[test]
    fn directories_replace_tables_only() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("x.ms");
        let make = |if_exists: IfExists, text: &str| -> Result<Output> {
            let output = Output::create_directory(&target, if_exists.into(), 10)?;
            fs::create_dir(output.partial().join("SUB"))?;
            fs::write(output.partial().join("SUB/table.dat"), text)?;
            fs::write(output.partial().join("table.dat"), text)?;
            Ok(output)
        };
        drop(make(IfExists::Fail, "half").unwrap());
        assert!(names(directory.path()).is_empty());
        make(IfExists::Fail, "one").unwrap().commit().unwrap();
        assert_eq!(make(IfExists::Fail, "two").unwrap_err().kind(), ErrorKind::Exists);
        make(IfExists::Replace, "two").unwrap().commit().unwrap();
        assert_eq!(fs::read(target.join("SUB/table.dat")).unwrap(), b"two");
        assert_eq!(names(directory.path()), ["x.ms"]);

        // a file is not a directory, and a directory of other files is not a table
        assert_eq!(Output::create(&target, IfExists::Replace.into(), 10).unwrap_err().kind(), ErrorKind::Exists);
        fs::remove_file(target.join("table.dat")).unwrap();
        assert_eq!(make(IfExists::Replace, "three").unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(names(&target), ["SUB"]);
    }

    fn abandon(target: &Path, locked: bool) -> PathBuf {
        let name = target.file_name().unwrap().to_string_lossy();
        let directory = target.with_file_name(format!("{name}.4194305-aB3dE6gH{SUFFIX}"));
        fs::create_dir(&directory).unwrap();
        fs::create_dir(directory.join(&*name)).unwrap();
        fs::write(directory.join(&*name).join("table.dat"), b"half").unwrap();
        if locked {
            fs::write(directory.join(LOCK), b"").unwrap();
        }
        directory
    }

    #[test]
    fn only_leftovers_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.h5");
        for with_lock in [true, false] {
            let left = abandon(&target, with_lock);
            drop(Output::create(&target, IfExists::Fail.into(), 0).unwrap());
            assert!(!left.exists());
        }
        // of another target, of a process that lives, of the user
        let other = abandon(&folder.path().join("y.h5"), true);
        let alive = abandon(&target, true);
        let lock = File::open(alive.join(LOCK)).unwrap();
        lock.lock().unwrap();
        let mine = folder.path().join(format!("x.h5.7-abcdefgh{SUFFIX}"));
        fs::create_dir(&mine).unwrap();
        fs::write(mine.join("notes"), b"mine").unwrap();
        let file = folder.path().join(format!("x.h5.7-abcdefgi{SUFFIX}"));
        fs::write(&file, b"mine").unwrap();
        let link = folder.path().join(format!("x.h5.7-abcdefgj{SUFFIX}"));
        std::os::unix::fs::symlink(&alive, &link).unwrap();
        let output = Output::create(&target, IfExists::Fail.into(), 0).unwrap();
        fs::write(output.partial(), b"whole").unwrap();
        output.commit().unwrap();
        assert!(other.exists() && alive.exists() && mine.join("notes").exists() && file.exists() && link.is_symlink());
        drop(lock);
        drop(Output::create(&target, IfExists::Replace.into(), 0).unwrap());
        assert!(!alive.exists());
        assert_eq!(fs::read(&target).unwrap(), b"whole");
    }

    #[test]
    fn each_run_has_a_partial_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.h5");
        let (one, two) = (
            Output::create(&target, IfExists::Fail.into(), 0).unwrap(),
            Output::create(&target, IfExists::Fail.into(), 0).unwrap(),
        );
        let three = Output::create(&target, IfExists::Replace.into(), 0).unwrap();
        fs::write(one.partial(), b"one").unwrap();
        fs::write(two.partial(), b"two").unwrap();
        fs::write(three.partial(), b"three").unwrap();
        drop(Output::create(&target, IfExists::Replace.into(), 0).unwrap());
        two.commit().unwrap();
        assert_eq!(one.commit().unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(fs::read(&target).unwrap(), b"two");
        three.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"three");
        assert_eq!(names(folder.path()), ["x.h5"]);
    }

    fn race(target: &Path, kind: OutputKind, if_exists: IfExists) -> Vec<Result<()>> {
        const THREADS: u8 = 8;
        let run = |number: u8| -> Result<()> {
            let text = vec![number; 1000];
            let output = match kind {
                OutputKind::File => Output::create(target, if_exists.into(), 0)?,
                OutputKind::Directory => Output::create_directory(target, if_exists.into(), 0)?,
            };
            match kind {
                OutputKind::File => fs::write(output.partial(), &text)?,
                OutputKind::Directory => {
                    fs::write(output.partial().join("table.dat"), &text)?;
                    fs::write(output.partial().join("table.f0"), &text)?;
                }
            }
            output.commit()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || run(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn one_of_several_runs_wins() {
        for _ in 0..20 {
            for kind in [OutputKind::File, OutputKind::Directory] {
                let folder = tempfile::tempdir().unwrap();
                let target = folder.path().join("x");
                let ends = race(&target, kind, IfExists::Fail);
                let losers: Vec<_> = ends.iter().filter_map(|end| end.as_ref().err()).collect();
                assert_eq!(losers.len(), ends.len() - 1);
                assert!(losers.iter().all(|error| error.kind() == ErrorKind::Exists), "{losers:?}");
                assert_eq!(names(folder.path()), ["x"]);

                race(&target, kind, IfExists::Replace).into_iter().for_each(|end| end.unwrap());
                assert_eq!(names(folder.path()), ["x"]);
                let bytes = match kind {
                    OutputKind::File => fs::read(&target).unwrap(),
                    OutputKind::Directory => {
                        let bytes = fs::read(target.join("table.dat")).unwrap();
                        assert_eq!(bytes, fs::read(target.join("table.f0")).unwrap());
                        bytes
                    }
                };
                assert!(bytes.len() == 1000 && bytes.iter().all(|byte| *byte == bytes[0]));
            }
        }
    }

    #[test]
    fn symbolic_links_are_written_through() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (real, link) = (elsewhere.path().join("real"), folder.path().join("link"));
        symlink(&real, &link).unwrap();
        for if_exists in [IfExists::Fail, IfExists::Replace] {
            let error = Output::create(&link, if_exists.into(), 0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Exists, "it leads to nothing");
        }
        fs::write(&real, b"old").unwrap();
        assert_eq!(Output::create(&link, IfExists::Fail.into(), 0).unwrap_err().kind(), ErrorKind::Exists);
        let output = Output::create(&link, IfExists::Replace.into(), 0).unwrap();
        fs::write(output.partial(), b"new").unwrap();
        output.commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        // a table too, and one in the place of a file
        for text in ["one", "two"] {
            let output = Output::create_directory(&link, IfExists::Replace.into(), 0).unwrap();
            fs::write(output.partial().join("table.dat"), text).unwrap();
            output.commit().unwrap();
            assert_eq!(fs::read(real.join("table.dat")).unwrap(), text.as_bytes());
        }
        assert!(link.is_symlink());
        assert_eq!((names(folder.path()).len(), names(elsewhere.path()).len()), (1, 1));
    }

    #[test]
    fn file_systems_that_cannot_exchange() {
        let folder = tempfile::tempdir().unwrap();
        let (new, target) = (folder.path().join("new"), folder.path().join("x.ms"));
        for text in ["one", "two"] {
            fs::create_dir(&new).unwrap();
            fs::write(new.join("table.dat"), text).unwrap();
            replace_in_two_steps(&new, &target).unwrap();
            assert_eq!(fs::read(target.join("table.dat")).unwrap(), text.as_bytes());
            assert_eq!(names(folder.path()), ["x.ms"]);
        }
        // a directory that cannot be replaced stays as it was
        assert!(replace_in_two_steps(&new, &target).is_err());
        assert_eq!(fs::read(target.join("table.dat")).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["x.ms"]);
    }

    #[test]
    fn names_of_any_length() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["y".repeat(255), "ü".repeat(127)] {
            let target = folder.path().join(&name);
            let left = folder
                .path()
                .join(OsStr::from_bytes(&[&stem(OsStr::new(&name))[..], b".1-abcdefgh", SUFFIX.as_bytes()].concat()));
            fs::create_dir(&left).unwrap();
            let output = Output::create(&target, IfExists::Fail.into(), 0).unwrap();
            assert!(!left.exists());
            fs::write(output.partial(), b"whole").unwrap();
            output.commit().unwrap();
            fs::remove_file(&target).unwrap();
        }
        assert!(names(folder.path()).is_empty());
    }
}
