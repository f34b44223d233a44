//! A container that is written: its files, and how a commit puts the new state in place of the old one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use tempfile::TempPath;

use super::header::Header;
use super::seal::{Owners, Seal};
use super::target::Target;
use super::{COMMITS, FORMAT, HEADER, live, read};
use crate::container::{Container, ContainerInfo, ContainerMut, FormatOptions, check_name};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::h5::{self, Bounds, Compression, Group};
use crate::io::{self, FileSource, FileTarget, ReadAt, WriteAt};
use crate::limits;

/// How long a lock may be there that somebody has for a moment.
const PATIENCE: Duration = Duration::from_millis(500);

/// Bytes of a new file that are given to the disk at a time.
const WRITE_BACK_BYTES: u64 = 4 << 20;

/// The HDF5 file behind a container and those nested in it.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    pub(super) options: FormatOptions,
    /// Whether commits put a [`Seal`] on the file.
    sealed: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<OpenFile>,
    /// Goes up whenever another file is opened: datasets of the one before are no longer usable.
    generation: u64,
    /// HDF5's own lock on a container that is there, shared: others may read it, nobody else change it.
    lock: Option<Flock<fs::File>>,
    /// A new file, as the system sees it.
    disk: Option<Disk>,
}

/// A file that gets longer, and as how much of it was given to the disk.
#[derive(Debug)]
struct Disk {
    file: fs::File,
    begun: u64,
}

#[derive(Debug)]
struct OpenFile {
    file: h5::File,
    writable: bool,
    /// The copy that is changed; `None` for the container itself, when it is new or only read.
    aside: Option<TempPath>,
}

/// An open file, for a short time: calls that need it are ordered by the lock.
pub(super) struct Access<'a> {
    pub(super) file: &'a h5::File,
    pub(super) path: &'a Path,
    pub(super) generation: u64,
}

impl Store {
    fn create(path: &Path, options: &FormatOptions) -> Result<Self> {
        // what grows while others read it is never finished
        let sealed = (options.archive || options.checksums) && !options.appendable;
        let store = Store { path: path.to_owned(), options: *options, sealed, state: Mutex::default() };
        let file = h5::File::create_for(store.bounds(), path)?;
        let disk = Disk { file: fs::File::options().write(true).open(path)?, begun: 0 };
        *store.state() =
            State { file: Some(OpenFile { file, writable: true, aside: None }), disk: Some(disk), ..State::default() };
        Ok(store)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn bounds(&self) -> Bounds {
        if self.options.archive { Bounds::V110 } else { Bounds::Earliest }
    }

    /// Whether anything was changed since the last commit.
    fn is_changed(&self) -> bool {
        self.state().file.as_ref().is_some_and(|open| open.writable)
    }

    /// Calls `call` with the file as it stands now, changes that are not committed included.
    pub(super) fn read<T>(&self, call: impl FnOnce(&Access<'_>) -> Result<T>) -> Result<T> {
        let mut state = self.state();
        if state.file.is_none() {
            let file = h5::File::open(&self.path)?;
            state.generation += 1;
            state.file = Some(OpenFile { file, writable: false, aside: None });
        }
        self.call(&state, call)
    }

    /// Calls `call` with a file that can be changed, which others do not see.
    pub(super) fn change<T>(&self, call: impl FnOnce(&Access<'_>) -> Result<T>) -> Result<T> {
        let mut state = self.state();
        if !state.file.as_ref().is_some_and(|open| open.writable) {
            self.begin(&mut state).with_context(|| self.path.display())?;
        }
        self.call(&state, call)
    }

    /// Takes room on the disk for so many bytes more of a new file.
    pub(super) fn reserve(&self, bytes: u64) -> Result<()> {
        match &self.state().disk {
            Some(Disk { file, .. }) => io::reserve(file, file.metadata()?.len().saturating_add(bytes)),
            None => Ok(()),
        }
    }

    /// Begins to write what a new file has got to the disk.
    pub(super) fn write_back(&self) {
        if let Some(Disk { file, begun }) = &mut self.state().disk
            && let Ok(len) = file.metadata().map(|metadata| metadata.len())
            && len >= *begun + WRITE_BACK_BYTES
        {
            io::write_back(file, *begun, len - *begun);
            *begun = len;
        }
    }

    fn call<T>(&self, state: &State, call: impl FnOnce(&Access<'_>) -> Result<T>) -> Result<T> {
        let open = state.file.as_ref().ok_or_else(|| Error::usage("the container is closed"))?;
        let path = open.aside.as_deref().unwrap_or(&self.path);
        call(&Access { file: &open.file, path, generation: state.generation })
    }

    /// Copies the container to a file beside it, to be changed.
    fn begin(&self, state: &mut State) -> Result<()> {
        (state.file, state.disk) = (None, None);
        let (folder, prefix) = self.aside()?;
        remove_leftovers(&folder, &prefix)?;
        let aside = tempfile::Builder::new().prefix(&prefix).tempfile_in(&folder)?.into_temp_path();
        // a new seal would hide damage
        if let Some(damage) = (FORMAT.damage)(&FileSource::open(&self.path)?)?.first() {
            return Err(Error::format(damage.to_string()));
        }
        fs::copy(&self.path, &aside)?;
        let file = h5::File::edit(&aside, self.bounds())?;
        state.generation += 1;
        state.file = Some(OpenFile { file, writable: true, aside: Some(aside) });
        Ok(())
    }

    /// The folder of the container, and what the names of its copies begin with.
    fn aside(&self) -> Result<(PathBuf, String)> {
        let name = self.path.file_name().ok_or_else(|| Error::usage("a container needs a name"))?.to_string_lossy();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok((folder.to_owned(), format!(".{name}.edit-")))
    }

    /// Puts the changed file in the place of the container, durably.
    fn publish(&self) -> Result<()> {
        let mut state = self.state();
        let Some(OpenFile { file, writable: true, aside }) = state.file.take() else { return Ok(()) };
        let publish = || {
            let owners = if self.sealed { Some(Owners::of(&file.root()?)?) } else { None };
            file.close()?;
            let path = aside.as_deref().unwrap_or(&self.path);
            if let Some(owners) = owners {
                Seal::put(&FileTarget::open(path)?, owners)?;
            }
            let written = fs::File::open(path)?;
            written.sync_all()?;
            // held from before others can find it
            let lock = flock(written, FlockArg::LockSharedNonblock)?;
            if let Some(aside) = aside {
                aside.persist(&self.path).map_err(|error| error.error)?;
                fs::File::open(self.aside()?.0)?.sync_all()?;
            }
            Ok::<_, Error>(lock)
        };
        state.lock = publish().with_context(|| self.path.display())?;
        Ok(())
    }
}

/// Locks a container against everybody else who changes it, but not against those who read it.
///
/// # Errors
/// `Locked` if somebody has it open: HDF5 does not say what for.
fn lock(path: &Path) -> Result<Option<Flock<fs::File>>> {
    patiently(|| {
        let Some(lock) = flock(fs::File::open(path)?, FlockArg::LockExclusiveNonblock)? else { return Ok(None) };
        let (locked_file, there) = (lock.metadata()?, fs::metadata(path)?);
        // who had the lock before may have put a new container in the place of this one
        let is_there = (locked_file.dev(), locked_file.ino()) == (there.dev(), there.ino());
        match lock.relock(FlockArg::LockSharedNonblock) {
            Ok(()) if is_there => Ok(Some(lock)),
            _ => Err(locked()),
        }
    })
}

/// Calls `open` again while somebody has the file open for a moment: to read it, or because his process is being started
/// and has all files of the one that starts it.
///
/// # Errors
/// `Locked` if the moment does not end.
pub(super) fn patiently<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        match open() {
            Err(error) if error.kind() == ErrorKind::Locked && start.elapsed() < PATIENCE => {
                thread::sleep(PATIENCE / 50)
            }
            done => return done,
        }
    }
}

/// `None` where the file system has no locks, which HDF5 accepts as well.
fn flock(file: fs::File, how: FlockArg) -> Result<Option<Flock<fs::File>>> {
    match Flock::lock(file, how) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Err(locked()),
        Err(_) => Ok(None),
    }
}

fn locked() -> Error {
    Error::new(ErrorKind::Locked, "another program holds HDF5's lock on the file")
}

/// Removes copies of those who were killed when they changed the container: nobody else does, it is locked.
fn remove_leftovers(folder: &Path, prefix: &str) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A MultiHDF5 container that is written, or one nested in it. docs/containers.md.
///
/// A new one is written in place; one that is there is copied for the first change after a commit, and the next commit
/// puts the copy in its place.
///
/// ```
/// # fn main() -> ctds_hdf5::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("table.mfh5");
/// use ctds_hdf5::io::{ReadAt, WriteAt};
/// use ctds_hdf5::{Container, ContainerMut, FormatOptions, MultiHdf5Mut};
///
/// let options = FormatOptions { block_bytes: 1 << 16, checksums: true, compression: Compression::NONE, archive: true, appendable: false };
/// let packed = MultiHdf5Mut::create(&path, &options)?;
/// packed.create("table.f0")?.write_at(0, b"some bytes")?;
/// packed.commit()?;
/// drop(packed);
///
/// let packed = MultiHdf5Mut::edit(&path)?;
/// packed.edit("table.f0")?.write_at(5, b"more ")?;
/// packed.commit()?;
/// let mut bytes = [0; 10];
/// packed.open("table.f0")?.read_at(0, &mut bytes)?;
/// assert_eq!(&bytes, b"some more ");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MultiHdf5Mut {
    store: Arc<Store>,
    /// Of its group, from the root.
    path: String,
    content: Mutex<Content>,
}

#[derive(Debug)]
struct Content {
    block_bytes: u64,
    counter: i64,
    entries: Vec<Entry>,
    changed: bool,
}

#[derive(Debug)]
struct Entry {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The size of the last commit, and the file if it is open.
    File(u64, Option<Arc<Target>>),
    Nested(Option<Arc<MultiHdf5Mut>>),
}

impl MultiHdf5Mut {
    /// Makes a file with an empty container, or empties the one that is there. Before the first commit it is none.
    ///
    /// # Errors
    /// `Usage` for blocks of 0 or 2^32 bytes and more, and for options that exclude each other; `Locked`, `Io`, `NoSpace`.
    pub fn create(path: &Path, options: &FormatOptions) -> Result<Arc<Self>> {
        if options.block_bytes == 0 || options.block_bytes >= 1 << 32 {
            return Err(Error::usage(format!("blocks of {} bytes in HDF5", options.block_bytes)));
        }
        if options.appendable && !options.archive {
            return Err(Error::usage("only files of an archive can grow while others read them"));
        }
        if options.appendable && (!options.compression.is_none() || options.checksums) {
            return Err(Error::usage("what grows while others read it cannot have filters"));
        }
        let store = Arc::new(Store::create(path, options)?);
        Ok(Arc::new(Self::empty(store, String::new())))
    }

    fn empty(store: Arc<Store>, path: String) -> Self {
        let block_bytes = store.options.block_bytes;
        // casacore begins at 0 and writes the header when the first file is there
        let content = Content { block_bytes, counter: 0, entries: Vec::new(), changed: true };
        MultiHdf5Mut { store, path, content: Mutex::new(content) }
    }

    /// Opens a container to change it. New files in an archive are without filters.
    ///
    /// # Errors
    /// `Locked` if somebody else has it open; those of reading it.
    pub fn edit(path: &Path) -> Result<Arc<Self>> {
        let lock = lock(path).context(path.display())?;
        let sealed = FileSource::open(path).and_then(|file| Seal::check_structure(&file)).context(path.display())?;
        let file = h5::File::open(path)?;
        let options = options(&file.root()?).context(path.display())?;
        let sealed = options.archive && !options.appendable || sealed;
        let file = Some(OpenFile { file, writable: false, aside: None });
        let state = State { file, generation: 1, lock, disk: None };
        let store = Arc::new(Store { path: path.to_owned(), options, sealed, state: Mutex::new(state) });
        Ok(Arc::new(Self::existing(store, String::new())?))
    }

    fn existing(store: Arc<Store>, path: String) -> Result<Self> {
        let files_of = &store;
        let mut live = false;
        let content = store.read(|access| {
            let group = group(access, &path)?;
            let Header { block_bytes, counter, files, .. } = Header::read(&group)?;
            let committed = read::committed(&access.file.root()?)?;
            let mut entries = Vec::new();
            for (name, size) in files {
                let nested = size == 0 && group.has(&name) && group.group(&name).is_ok_and(|group| group.has(HEADER));
                let newer = committed.get(format!("{path}/{name}").trim_start_matches('/'));
                let kind = match newer {
                    _ if nested => Kind::Nested(None),
                    // what was appended live becomes part of the file, and of its hash
                    Some(&newer) if newer != size => {
                        let path = format!("{path}/{name}");
                        let target = Target::appended(files_of.clone(), path, block_bytes, newer);
                        Kind::File(newer, Some(Arc::new(target)))
                    }
                    _ => Kind::File(size, None),
                };
                entries.push(Entry { name, kind });
            }
            live = !committed.is_empty();
            Ok(Content { block_bytes, counter, entries, changed: false })
        })?;
        let writer = MultiHdf5Mut { store, path, content: Mutex::new(content) };
        if live {
            for name in writer.nested()? {
                writer.enter(&name)?;
            }
        }
        Ok(writer)
    }

    fn select(&self, wanted: impl Fn(&Kind) -> bool) -> Vec<String> {
        let mut names: Vec<_> =
            self.content().entries.iter().filter(|entry| wanted(&entry.kind)).map(|entry| entry.name.clone()).collect();
        names.sort();
        names
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// The file of an entry, which is kept until the commit.
    fn target(&self, content: &mut Content, name: &str) -> Result<Arc<Target>> {
        content.store_unused()?;
        let block_bytes = content.block_bytes;
        match content.entries.iter_mut().find(|entry| entry.name == name).map(|entry| &mut entry.kind) {
            Some(Kind::File(size, target)) => {
                let open = || Arc::new(Target::existing(self.store.clone(), self.path_of(name), block_bytes, *size));
                Ok(target.get_or_insert_with(open).clone())
            }
            _ => Err(Error::not_found("no such file").context(name)),
        }
    }

    /// Writes all of this container into the HDF5 file.
    fn write(&self) -> Result<()> {
        let content = &mut *self.content();
        for entry in &mut content.entries {
            match &mut entry.kind {
                Kind::File(size, Some(target)) => {
                    content.changed |= target.finish().with_context(|| entry.name.clone())?;
                    *size = target.len()?;
                }
                Kind::Nested(Some(nested)) => nested.write().with_context(|| entry.name.clone())?,
                Kind::File(_, None) | Kind::Nested(None) => {}
            }
        }
        content.forget_unused();
        if !content.changed {
            return Ok(());
        }
        let files = content.entries.iter().map(|entry| match &entry.kind {
            Kind::File(size, _) => (entry.name.clone(), *size),
            Kind::Nested(_) => (entry.name.clone(), 0),
        });
        let counter = content.counter + 1;
        let archive = self.store.options.archive;
        let header = Header { block_bytes: content.block_bytes, counter, archive, files: files.collect() };
        self.store.change(|access| header.write(&group(access, &self.path)?))?;
        content.counter = counter;
        content.changed = false;
        Ok(())
    }

    /// Makes room for a new entry, in place of a file that has its name.
    fn make_room(&self, content: &mut Content, name: &str, replace: bool) -> Result<()> {
        check_name(name)?;
        if name == HEADER || (name == COMMITS && self.path.is_empty()) {
            return Err(Error::usage(format!("{name} is a name of MultiHDF5 itself")));
        }
        content.store_unused()?;
        match content.entries.iter().position(|entry| entry.name == name) {
            Some(at) if replace && matches!(content.entries[at].kind, Kind::File(..)) => {
                self.drop_entry(content, at)?
            }
            Some(_) => return Err(Error::new(ErrorKind::Exists, "the name is taken")),
            None => {}
        }
        Header::check_room(content.entries.len(), name, self.store.bounds())
    }

    fn drop_entry(&self, content: &mut Content, at: usize) -> Result<()> {
        let entry = content.entries.remove(at);
        content.changed = true;
        if let Kind::File(_, Some(target)) = entry.kind {
            target.detach();
        }
        self.store.change(|access| {
            let group = group(access, &self.path)?;
            if group.has(&entry.name) { group.remove(&entry.name) } else { Ok(()) }
        })
    }
}

impl Content {
    /// Stores what nobody writes any more, so that memory does not grow with the number of files.
    fn store_unused(&mut self) -> Result<()> {
        for entry in &mut self.entries {
            if let Kind::File(size, Some(target)) = &mut entry.kind
                && Arc::strong_count(target) == 1
            {
                self.changed |= target.finish().with_context(|| entry.name.clone())?;
                *size = target.len()?;
            }
        }
        self.forget_unused();
        Ok(())
    }

    fn forget_unused(&mut self) {
        for entry in &mut self.entries {
            if let Kind::File(_, target) = &mut entry.kind {
                target.take_if(|target| Arc::strong_count(target) == 1);
            }
        }
    }
}

/// The group at `path`, from the root.
pub(super) fn group(access: &Access<'_>, path: &str) -> Result<Group> {
    let names = path.split('/').filter(|name| !name.is_empty());
    names.fold(access.file.root(), |group, name| group?.group(name))
}

/// How new files of a container are made that is there: in an archive as ours are, else as casacore's.
fn options(root: &Group) -> Result<FormatOptions> {
    let Header { block_bytes, archive, .. } = Header::read(root)?;
    Ok(FormatOptions {
        block_bytes,
        checksums: false,
        compression: Compression::NONE,
        archive,
        appendable: root.has(COMMITS),
    })
}

impl Container for MultiHdf5Mut {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.select(|kind| matches!(kind, Kind::File(..))))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(self.target(&mut self.content(), name)?)
    }

    fn nested(&self) -> Result<Vec<String>> {
        Ok(self.select(|kind| matches!(kind, Kind::Nested(_))))
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        match self.content().entries.iter_mut().find(|entry| entry.name == name).map(|entry| &mut entry.kind) {
            Some(Kind::Nested(Some(nested))) => Ok(nested.clone()),
            Some(Kind::Nested(nested)) => {
                limits::depth(self.path.split('/').count(), "containers")?;
                let opened = Arc::new(Self::existing(self.store.clone(), self.path_of(name)).context(name)?);
                Ok(nested.insert(opened).clone())
            }
            _ => Err(Error::not_found("no such container").context(name)),
        }
    }

    fn describe(&self) -> ContainerInfo {
        let content = self.content();
        read::info(content.block_bytes, content.counter)
    }
}

impl ContainerMut for MultiHdf5Mut {
    fn create(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        let content = &mut *self.content();
        let mut create = || {
            self.make_room(content, name, true)?;
            self.store
                .change(|access| group(access, &self.path)?.create_group_for(self.store.bounds(), name).map(|_| ()))?;
            let target = Arc::new(Target::new(self.store.clone(), self.path_of(name), content.block_bytes));
            content.entries.push(Entry { name: name.to_owned(), kind: Kind::File(0, Some(target.clone())) });
            content.changed = true;
            Ok::<_, Error>(target)
        };
        Ok(create().context(name)?)
    }

    fn edit(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        Ok(self.target(&mut self.content(), name)?)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let content = &mut *self.content();
        match content.entries.iter().position(|entry| entry.name == name && matches!(entry.kind, Kind::File(..))) {
            Some(at) => self.drop_entry(content, at).context(name),
            None => Err(Error::not_found("no such file").context(name)),
        }
    }

    fn create_nested(&self, name: &str) -> Result<Arc<dyn ContainerMut>> {
        let content = &mut *self.content();
        let mut create = || {
            limits::depth(self.path.split('/').count(), "containers")?;
            self.make_room(content, name, false)?;
            let nested = Arc::new(Self::empty(self.store.clone(), self.path_of(name)));
            self.store
                .change(|access| group(access, &self.path)?.create_group_for(self.store.bounds(), name).map(|_| ()))?;
            content.entries.push(Entry { name: name.to_owned(), kind: Kind::Nested(Some(nested.clone())) });
            content.changed = true;
            // so that it is one, whether it is committed or not
            nested.write()?;
            Ok::<_, Error>(nested)
        };
        Ok(create().context(name)?)
    }

    /// That of a nested container becomes visible with the commit of the outermost.
    fn commit(&self) -> Result<()> {
        self.write()?;
        if !self.path.is_empty() {
            return Ok(());
        }
        if self.store.options.appendable && self.store.is_changed() {
            self.store.change(|access| live::prepare(&access.file.root()?))?;
        }
        self.store.publish()
    }
}
