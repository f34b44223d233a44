//! Writes a file or a directory under a temporary name, and gives it its final name only when it is complete.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::statvfs::statvfs;

use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::publishing::{IfExists, Publishing, SyncPolicy};
use crate::sync_behind::SyncBehind;

/// Minimum size in bytes of a file that is made durable (`fsync`) while its output is still being written; smaller
/// files are made durable when the output is complete.
const SYNC_BYTES: u64 = 8 << 20;

/// Number of files of an output that are made durable (`fsync`) concurrently: the system does many almost as fast as one.
const SYNCING: usize = 16;

/// How often the removal of a directory is tried while other threads still write to it.
const REMOVAL_TRIES: usize = 20;

/// Whether an output is a file or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    File,
    Directory,
}

/// End of the names of the temporary directories in which outputs are written.
const SUFFIX: &str = ".partial";

/// Name of the file in the temporary directory of an output that the writing process holds locked.
const LOCK: &str = "lock";

/// Number of random letters in the name of the temporary directory of an output.
const LETTERS: usize = 8;

/// Longest file name of a target, in bytes, that the name of its temporary directory repeats in full. The start and a
/// hash replace a longer one, since a name has at most 255 bytes.
const LONGEST_STEM: usize = 200;

/// End of the name of a companion, `NAME.rest.h5`: an HDF5 file beside the output `NAME`, which refers to the companion
/// for a part of its data.
pub(crate) const COMPANION: &str = ".rest.h5";

/// How often a temporary name is chosen, or an exchange of two paths is tried, before interference by another process is
/// reported as an error.
const TRIES: usize = 20;

/// A temporary path for a file or directory that is being written, beside its target: `NAME.PID-RANDOM.partial/NAME`.
///
/// The enclosing directory is new, so that no two processes share it, and holds a file that its maker has locked
/// (`flock`) for as long as it lives. Dropping removes it; after a `kill -9` the next run with the same target does, which
/// the lock tells that the maker has gone.
#[derive(Debug)]
pub(crate) struct Partial {
    directory: PathBuf,
    path: PathBuf,
    /// The locked lock file of the temporary directory; the last field, so that it is released last.
    _lock: File,
}

impl Partial {
    /// Makes a temporary directory beside `target`, to write the output in. Temporary directories that killed processes
    /// have left for the same target are removed first.
    ///
    /// # Errors
    /// `Usage` if `target` has no name, `Io`, `NoSpace`.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        let name = target.file_name().ok_or_else(|| Error::usage("the target has no name of its own"))?;
        let parent = directory_of(target);
        remove_abandoned(parent, name);
        let prefix = [&stem(name), format!(".{}-", std::process::id()).as_bytes()].concat();
        let make = || -> Result<Self> {
            for _ in 0..TRIES {
                let directory = tempfile::Builder::new()
                    .prefix(OsStr::from_bytes(&prefix))
                    .rand_bytes(LETTERS)
                    .suffix(SUFFIX)
                    .tempdir_in(parent)?
                    .keep();
                match lock_new(&directory) {
                    Ok(Some(lock)) => return Ok(Partial { path: directory.join(name), directory, _lock: lock }),
                    // another process took it for abandoned before it was locked
                    Ok(None) => {}
                    Err(error) => {
                        let _ = remove(&directory);
                        return Err(error.into());
                    }
                }
            }
            Err(Error::new(ErrorKind::Io, "other processes remove directories that are being made"))
        };
        make().with_context(|| Context::path(parent))
    }

    /// Temporary path under which the output is written until it gets its final name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the written file to `target`, in place of an existing file, and makes the new name durable (`fsync` of
    /// the directory); the content must be durable before.
    pub(crate) fn replace(self, target: &Path) -> Result<()> {
        replace_file(&self.path, target)?;
        Ok(File::open(directory_of(target))?.sync_all()?)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // what cannot be removed now is removed by the next run with the same target
        let _ = remove_partial(&self.directory);
    }
}

/// First bytes of the names of all temporary directories of the target `name`: the name itself, or its start and a hash if it
/// is long.
fn stem(name: &OsStr) -> Vec<u8> {
    let name = name.as_bytes();
    if name.len() <= LONGEST_STEM {
        return name.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let text = String::from_utf8_lossy(&name[..LONGEST_STEM / 2]);
    format!("{}~{:016x}", text.trim_end_matches(char::REPLACEMENT_CHARACTER), hasher.finish()).into_bytes()
}

/// Makes and locks the lock file in the temporary `directory`; `None` if another process has just removed the directory as
/// abandoned.
fn lock_new(directory: &Path) -> io::Result<Option<File>> {
    let path = directory.join(LOCK);
    let file = match File::options().write(true).create_new(true).open(&path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        // without locks no other process removes it either
        Ok(()) | Err(TryLockError::Error(_)) => Ok(is_same_file(&file, &path).then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
    }
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let same = |opened: &fs::Metadata, found: &fs::Metadata| (opened.dev(), opened.ino()) == (found.dev(), found.ino());
    matches!((file.metadata(), fs::symlink_metadata(path)), (Ok(opened), Ok(found)) if same(&opened, &found))
}

/// Removes the temporary directories of the target `name` in `parent` whose writers have exited.
fn remove_abandoned(parent: &Path, name: &OsStr) {
    let stem = stem(name);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if is_partial_of(&stem, &entry.file_name()) {
            // one that cannot be removed does not disturb
            let _ = remove_if_abandoned(&entry.path(), name);
        }
    }
}

/// File name of the target to which a temporary directory called `name` belongs, shortened as in `name` if it is long;
/// `None` if `name` is not the name of a temporary directory.
pub(crate) fn partial_target(name: &OsStr) -> Option<&[u8]> {
    let rest = name.as_bytes().strip_suffix(SUFFIX.as_bytes())?;
    let dot = rest.iter().rposition(|&byte| byte == b'.')?;
    is_partial_of(&rest[..dot], name).then_some(&rest[..dot])
}

/// Removes the temporary `directory` of the target `name` if its writer has exited.
pub(crate) fn remove_abandoned_at(directory: &Path, name: &OsStr) -> Result<()> {
    Ok(remove_if_abandoned(directory, name)?)
}

/// Whether `name` is that of a temporary directory for a target with this `stem`: `STEM.PID-RANDOM.partial`, where STEM is
/// the target's name, shortened if it is long.
fn is_partial_of(stem: &[u8], name: &OsStr) -> bool {
    let middle = || {
        let middle = name.as_bytes().strip_prefix(stem)?.strip_prefix(b".")?.strip_suffix(SUFFIX.as_bytes())?;
        let dash = middle.iter().position(|&byte| byte == b'-')?;
        Some((&middle[..dash], &middle[dash + 1..]))
    };
    middle().is_some_and(|(process, letters)| {
        !process.is_empty()
            && process.iter().all(u8::is_ascii_digit)
            && letters.len() == LETTERS
            && letters.iter().all(u8::is_ascii_alphanumeric)
    })
}

/// Whether the file `other` belongs to the output `name` beside it: a further file of a SION container, such as
/// `NAME.000001`, or the companion `NAME.rest.h5`.
fn is_part(name: &OsStr, other: &OsStr) -> bool {
    if is_companion(name, other) {
        return true;
    }
    let number = other.as_bytes().strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"."));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// Whether the file `other` beside the output `name` is its companion, `NAME.rest.h5`.
fn is_companion(name: &OsStr, other: &OsStr) -> bool {
    other.as_bytes().strip_prefix(name.as_bytes()) == Some(COMPANION.as_bytes())
}

fn remove_if_abandoned(directory: &Path, name: &OsStr) -> io::Result<()> {
    let (stem, companion_stem) =
        (self::stem(name), self::stem(OsStr::from_bytes(&[name.as_bytes(), COMPANION.as_bytes()].concat())));
    if !directory.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?.file_name();
        // a verb may write by means of another one
        let is_nested = is_partial_of(&stem, &entry) || is_partial_of(&companion_stem, &entry);
        if entry != LOCK && entry != name && !is_part(name, &entry) && !is_nested {
            return Ok(());
        }
    }
    // where it is missing its maker is just about to make it, and finds that it is too late
    let no_follow = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    let path = directory.join(LOCK);
    let file = File::options().write(true).create(true).truncate(false).custom_flags(no_follow).open(&path)?;
    if file.try_lock().is_ok() && is_same_file(&file, &path) {
        remove_partial(directory)?;
    }
    Ok(())
}

/// Removes a temporary directory whose lock this process holds. The lock file is removed last, because it keeps other
/// processes from removing the directory at the same time.
fn remove_partial(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        if entry.file_name() != LOCK {
            remove(&entry.path())?;
        }
    }
    fs::remove_file(directory.join(LOCK))?;
    fs::remove_dir(directory)
}

/// A file or directory that is written beside its target and gets its name on [`commit`](Self::commit), see [`Partial`].
#[derive(Debug)]
pub(crate) struct Output {
    target: PathBuf,
    partial: Partial,
    kind: OutputKind,
    publishing: Publishing,
}

impl Output {
    /// Begins an output that is a file. Checks that `target` can be written and that about `bytes` are free in its file system.
    ///
    /// A `target` that is a symbolic link stays one: [`IfExists::Replace`] replaces the file that it leads to.
    ///
    /// # Errors
    /// `Exists` if there is something that is not to be replaced, `Usage` if the directory is missing, `NoSpace`.
    pub(crate) fn create(target: &Path, publishing: Publishing, bytes: u64) -> Result<Self> {
        Self::begin(target, OutputKind::File, publishing, bytes)
    }

    /// Begins an output that is a table directory, empty so far.
    ///
    /// # Errors
    /// As [`create`](Self::create); `Exists` also for an existing directory that holds no table, even with
    /// [`IfExists::Replace`].
    pub(crate) fn create_directory(target: &Path, publishing: Publishing, bytes: u64) -> Result<Self> {
        let output = Self::begin(target, OutputKind::Directory, publishing, bytes)?;
        fs::create_dir(output.partial()).with_context(|| output.partial().display())?;
        Ok(output)
    }

    /// Begins an output that another process writes, as a file or a directory. Does not check whether `target` exists;
    /// [`publish_staged`](Self::publish_staged) does.
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
        let system = statvfs(directory).map_err(io::Error::from).context(&place)?;
        let free = system.blocks_available().saturating_mul(system.fragment_size());
        if free < bytes {
            let message = format!("about {bytes} bytes are needed, but only {free} are free");
            return Err(Error::new(ErrorKind::NoSpace, message).context(place));
        }
        Ok(Output { target: target.to_owned(), partial: Partial::create(target)?, kind, publishing })
    }

    /// Path under which the output is written until it is published. Further files may be beside an output that is a
    /// file: `NAME.000001` … and a [companion](COMPANION); [`publish_parts`](Self::publish_parts) publishes them first.
    pub(crate) fn partial(&self) -> &Path {
        self.partial.path()
    }

    /// Temporary paths of the further files of an output that is a file, sorted: `NAME.000001` … and the companion
    /// `NAME.rest.h5`; empty for a directory.
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

    /// Calls `visit` with every file and directory of the output that was written so far, see [`walk`].
    fn walk(&self, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
        self.parts()?.iter().try_for_each(|part| walk(part, visit))?;
        walk(self.partial(), visit)
    }

    /// Starts a thread that makes the output durable while it is written, so that little is left to do at the end; does
    /// nothing unless `SyncPolicy::Behind` is set.
    pub(crate) fn sync_behind(&self) -> SyncBehind {
        if self.publishing.sync != SyncPolicy::Behind {
            return SyncBehind::none();
        }
        let (partial, target, mut synced) = (self.partial().to_owned(), self.target.clone(), HashMap::new());
        SyncBehind::start(move || {
            let mut result = Ok(());
            // files and directories may be renamed or removed at any time
            let _ = walk(&partial, &mut |path| {
                result = sync_changed(path, &mut synced);
                result.clone()
            });
            result.with_context(|| Context::path(&target))
        })
    }

    /// Size in bytes of all files of the output that were written so far.
    pub(crate) fn bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        self.walk(&mut |path| {
            let metadata = path.metadata()?;
            bytes += if metadata.is_file() { metadata.len() } else { 0 };
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Makes the output durable, unless `SyncPolicy::Never` is set, and renames it to its target in one step: other processes
    /// see the old target, or all of the new one.
    ///
    /// # Errors
    /// `Exists` if another process was faster, unless what it has made is to be replaced.
    pub(crate) fn commit(self) -> Result<()> {
        self.publish(self.kind).with_context(|| Context::path(&self.target))
    }

    /// Publishes the file or directory that another process has written: makes it durable and renames it to its target.
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

    /// Renames the further files of an output (`NAME.000001`, a companion) to their final names beside the target. An
    /// existing target to be replaced is removed first: after a `kill -9` the output is all old, all new, or missing.
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
                // those before go with the partial
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

/// Renames the file `new` to `target` in the same file system, and makes the new name durable (`fsync` of the
/// directory), not the content. An existing file is replaced only if `if_exists` says so.
///
/// # Errors
/// `Exists` if there is something that is not to be replaced.
pub(crate) fn publish_file(new: &Path, target: &Path, if_exists: IfExists) -> Result<()> {
    publish_at(new, target, OutputKind::File, if_exists)
}

/// Renames the table directory `new` to `target` in the same file system, and makes the new name durable (`fsync` of
/// the parent directory), not the content. An existing table is replaced only if `if_exists` says so; the old table is
/// then at the path `new`, or removed.
///
/// # Errors
/// `Exists` if there is something that is not to be replaced.
pub(crate) fn publish_directory(new: &Path, target: &Path, if_exists: IfExists) -> Result<()> {
    publish_at(new, target, OutputKind::Directory, if_exists)
}

fn publish_at(new: &Path, target: &Path, kind: OutputKind, if_exists: IfExists) -> Result<()> {
    let publish = || -> Result<()> {
        let target = &resolve(target, if_exists)?;
        check_target(target, kind, if_exists)?;
        place(new, target, kind, if_exists)?;
        Ok(File::open(directory_of(target))?.sync_all()?)
    };
    publish().with_context(|| Context::path(target))
}

/// Renames `new`, a file or directory as `kind` says, to `target`; an existing file or directory there is replaced only
/// if `if_exists` says so.
fn place(new: &Path, target: &Path, kind: OutputKind, if_exists: IfExists) -> Result<()> {
    match (if_exists, kind) {
        (IfExists::Fail, kind) => rename_new(new, target, kind),
        (IfExists::Replace, OutputKind::File) => replace_file(new, target),
        (IfExists::Replace, OutputKind::Directory) => replace_with_directory(new, target),
    }
}

/// Directory in which `target` is: its parent, or `.` for a bare name.
pub(crate) fn directory_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Final path for an output: where `target` leads if it is a symbolic link and an existing file is to be replaced, else
/// `target` itself.
fn resolve(target: &Path, if_exists: IfExists) -> Result<PathBuf> {
    if !if_exists.replaces() || !target.is_symlink() {
        return Ok(target.to_owned());
    }
    target.canonicalize().map_err(|error| {
        let message = "the target is a symbolic link that leads to nothing: remove it, or name what it should lead to";
        Error::new(ErrorKind::Exists, message).caused_by(error).context(Context::path(target))
    })
}

fn exists() -> Error {
    Error::new(ErrorKind::Exists, "the target exists already")
}

/// Whether an output may replace the directory at `path`: it is empty, or holds a casacore table, or an array or table
/// of the Python packages BLZ or bcolz (compressed arrays).
fn is_table(path: &Path) -> bool {
    let known = ["table.dat", "meta/storage", "__rootdirs__"];
    known.iter().any(|name| path.join(name).exists()) || fs::read_dir(path).is_ok_and(|mut list| list.next().is_none())
}

fn not_a_table() -> Error {
    Error::new(ErrorKind::Exists, "the target is a directory, but not a table: it is not replaced, name another one")
}

fn is_a_directory() -> Error {
    Error::new(ErrorKind::Exists, "the target is a directory")
}

fn check_target(target: &Path, kind: OutputKind, if_exists: IfExists) -> Result<()> {
    match target.symlink_metadata() {
        Ok(_) if !if_exists.replaces() => Err(exists()),
        Ok(_) if kind == OutputKind::File && target.is_dir() => Err(is_a_directory()),
        Ok(_) if target.is_dir() && !is_table(target) => Err(not_a_table()),
        _ => Ok(()),
    }
    .with_context(|| Context::path(target))
}

/// Outcome of a rename that must not overwrite, or that exchanges two paths.
enum Renamed {
    Done,
    /// The rename did nothing: the new name exists already (`EEXIST`), or a path that is to be renamed or exchanged is
    /// missing (`ENOENT`).
    Not,
    /// The rename did nothing: the file system cannot rename without overwriting, or exchange two paths, in one step.
    Unsupported,
}

fn rename(from: &Path, to: &Path, how: RenameFlags) -> Result<Renamed> {
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, how) {
        Ok(()) => Ok(Renamed::Done),
        Err(Errno::EEXIST | Errno::ENOENT) => Ok(Renamed::Not),
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => Ok(Renamed::Unsupported),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// Renames `new` to `target`, which must not exist.
///
/// # Errors
/// `Exists` if it does.
fn rename_new(new: &Path, target: &Path, kind: OutputKind) -> Result<()> {
    match rename(new, target, RenameFlags::RENAME_NOREPLACE)? {
        Renamed::Done => return Ok(()),
        Renamed::Not if target.symlink_metadata().is_ok() => return Err(exists()),
        Renamed::Not => return Err(Error::new(ErrorKind::Io, "what was written has been removed")),
        Renamed::Unsupported => {}
    }
    if kind == OutputKind::File {
        // a second link to the file, which fails if the name is taken; the first one goes with the partial
        match fs::hard_link(new, target) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists()),
            // without links either: the name was free just now
            Err(_) => {}
        }
        return Ok(fs::rename(new, target)?);
    }
    // only an empty directory is replaced by this
    fs::rename(new, target).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => exists(),
        _ => error.into(),
    })
}

fn replace_file(new: &Path, target: &Path) -> Result<()> {
    fs::rename(new, target).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => is_a_directory(),
        _ => error.into(),
    })
}

/// Replaces the directory `target` by the directory `new`, in one step where the file system can. The old directory is
/// then at the path `new`, or removed.
fn replace_with_directory(new: &Path, target: &Path) -> Result<()> {
    for _ in 0..TRIES {
        match rename(new, target, RenameFlags::RENAME_NOREPLACE)? {
            Renamed::Done => return Ok(()),
            Renamed::Not => {}
            Renamed::Unsupported => return replace_in_two_steps(new, target),
        }
        match rename(new, target, RenameFlags::RENAME_EXCHANGE)? {
            // another process has put something else there since it was looked at
            Renamed::Done if new.is_dir() && !is_table(new) => {
                rename(new, target, RenameFlags::RENAME_EXCHANGE)?;
                return Err(not_a_table());
            }
            Renamed::Done => return Ok(()),
            // it has just been removed
            Renamed::Not => {}
            Renamed::Unsupported => return replace_in_two_steps(new, target),
        }
    }
    Err(Error::new(ErrorKind::Io, "other processes make and remove the target all the time"))
}

/// Replaces the directory `target` by two renames where the file system cannot exchange two directories. First the old
/// one is renamed to a temporary name, which other runs do not remove, then `new` to `target`.
fn replace_in_two_steps(new: &Path, target: &Path) -> Result<()> {
    let name = [target.file_name().unwrap_or_default().as_bytes(), b".replaced-"].concat();
    let aside = tempfile::Builder::new().prefix(OsStr::from_bytes(&name)).tempdir_in(directory_of(target))?;
    let old = aside.path().join("old");
    match fs::rename(target, &old) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let renamed = rename_new(new, target, OutputKind::Directory);
    if renamed.is_err() && old.symlink_metadata().is_ok() && fs::rename(&old, target).is_err() {
        // it is not ours to remove
        let kept = aside.keep();
        return renamed.with_context(|| format!("what was there is now in {}", kept.display()));
    }
    renamed
}

/// Calls `visit` with `path` and all files and directories below it, a directory after its content; symbolic links are not
/// followed.
pub(crate) fn walk(path: &Path, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_dir() {
        for entry in fs::read_dir(path)? {
            walk(&entry?.path(), visit)?;
        }
    }
    if kind.is_symlink() { Ok(()) } else { visit(path) }
}

/// Makes the file at `path` durable if it exists, has at least [`SYNC_BYTES`] bytes, and its modification time differs
/// from the one in `synced`; records the new time there.
fn sync_changed(path: &Path, synced: &mut HashMap<PathBuf, SystemTime>) -> Result<()> {
    let Ok(file) = File::open(path) else { return Ok(()) };
    let metadata = file.metadata()?;
    let changed = metadata.modified()?;
    if metadata.is_file() && metadata.len() >= SYNC_BYTES && synced.insert(path.to_owned(), changed) != Some(changed) {
        file.sync_data()?;
    }
    Ok(())
}

/// Removes a file, or a directory with its content, if it exists. The removal of a directory is tried repeatedly, as
/// other threads may write to it.
fn remove(path: &Path) -> io::Result<()> {
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
            let syncing = output.sync_behind();
            fs::create_dir(output.partial().join("SUB"))?;
            fs::write(output.partial().join("SUB/table.dat"), text)?;
            fs::write(output.partial().join("table.dat"), text)?;
            std::thread::sleep(std::time::Duration::from_millis(200));
            syncing.finish()?;
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

    /// Leaves, in a test, what a killed process leaves of an output at `target`: a temporary directory, locked or not.
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
    fn what_killed_processes_left_is_removed_and_nothing_else() {
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

    /// Starts `THREADS` outputs with the same target at the same time, in a test, and returns their results.
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
        // what cannot be replaced is what it was
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
