//! A MultiHDF5 container that is written: its files and the containers nested in it.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use super::commits::{Commits, CommittedFile};
use super::file::StoredFile;
use super::header::Header;
use super::names::{BLOCKS, COMMITS, HEADER};
use super::read::stored_hash;
use super::store::Store;
use crate::container::{Container, ContainerInfo, ContainerMut, FormatOptions, check_name};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::h5::{Compression, Group};
use crate::hash::HashKind;
use crate::io::{ReadAt, WriteAt};
use crate::limits;
use crate::sync::LockUnpoisoned;

/// A MultiHDF5 container, or one nested in another, that is open for writing.
/// docs/reference/containers.md.
///
/// A new container is written in place. An existing one is copied for the first change after a
/// commit, and the next commit puts the copy in its place.
///
/// ```
/// # fn main() -> ctds_hdf5::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("table.mfh5");
/// use ctds_hdf5::io::{ReadAt, WriteAt};
/// use ctds_hdf5::{Compression, Container, ContainerMut, FormatOptions, HashKind, MultiHdf5Mut};
///
/// let (compression, hash) = (Compression::gzip(4).into(), HashKind::Blake3);
/// let options = FormatOptions { block_bytes: 1 << 16, checksums: true, compression, archive: true, hash, appendable: false };
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
    /// Path of the group in the HDF5 file; empty for the outermost container.
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
    kind: EntryKind,
}

#[derive(Debug)]
enum EntryKind {
    /// Size in bytes when last stored, and the file while it is open.
    File(u64, Option<Arc<StoredFile>>),
    Nested(Option<Arc<MultiHdf5Mut>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfTaken {
    Fail,
    /// Only a file is replaced; a nested container of this name is an error.
    ReplaceFile,
}

impl MultiHdf5Mut {
    /// Creates a file with an empty MultiHDF5 container, in place of an existing file. It is a
    /// valid container from the first commit on.
    ///
    /// # Errors
    /// `Usage` for blocks of 0 or 2^32 bytes and more, and for options that exclude each other;
    /// `Locked`, `Io`, `NoSpace`.
    pub fn create(path: &Path, options: &FormatOptions) -> Result<Arc<Self>> {
        if options.block_bytes == 0 || options.block_bytes >= 1 << 32 {
            return Err(Error::usage(format!(
                "the block size is {} bytes, expected 1 to 2^32 - 1 in HDF5",
                options.block_bytes
            )));
        }
        if options.appendable && !options.archive {
            return Err(Error::usage("only files of an archive can grow while others read them"));
        }
        if options.appendable && (options.compression.is_some() || options.checksums) {
            return Err(Error::usage("what grows while others read it cannot have filters"));
        }
        Compression::of_filter(options.compression)?;
        let store = Arc::new(Store::create(path, options)?);
        Ok(Arc::new(Self::empty(store, String::new())))
    }

    fn empty(store: Arc<Store>, path: String) -> Self {
        let block_bytes = store.options.block_bytes;
        // casacore begins at 0 and writes the header when it has created the first file
        let content = Content { block_bytes, counter: 0, entries: Vec::new(), changed: true };
        MultiHdf5Mut { store, path, content: Mutex::new(content) }
    }

    /// Opens an existing MultiHDF5 container for changes. Files that are added are stored without
    /// compression and checksums.
    ///
    /// # Errors
    /// `Locked` if another process has it open; those of reading it.
    pub fn edit(path: &Path) -> Result<Arc<Self>> {
        let store = Arc::new(Store::edit(path, stored_options)?);
        Ok(Arc::new(Self::existing(store, String::new())?))
    }

    fn existing(store: Arc<Store>, path: String) -> Result<Self> {
        let mut live = false;
        let content = store.read(|access| {
            let group = access.group(&path)?;
            let Header { block_bytes, counter, files, .. } = Header::read(&group)?;
            let committed = Commits::files_by_path(&access.file.root()?)?;
            let mut entries = Vec::new();
            for (name, size) in files {
                let nested = size == 0 && group.has(&name) && group.group(&name).is_ok_and(|group| group.has(HEADER));
                let newer = committed.get(format!("{path}/{name}").trim_start_matches('/'));
                let kind = match newer {
                    _ if nested => EntryKind::Nested(None),
                    // bytes that were appended live become part of the file, and of its hash
                    Some(&CommittedFile { size: Some(newer), .. }) if newer != size => {
                        let path = format!("{path}/{name}");
                        let file = StoredFile::appended(store.clone(), path, block_bytes, newer);
                        EntryKind::File(newer, Some(Arc::new(file)))
                    }
                    _ => EntryKind::File(size, None),
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

    fn select(&self, wanted: impl Fn(&EntryKind) -> bool) -> Vec<String> {
        let mut names: Vec<_> =
            self.content().entries.iter().filter(|entry| wanted(&entry.kind)).map(|entry| entry.name.clone()).collect();
        names.sort();
        names
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock_unpoisoned()
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Opens it if necessary; first stores and closes files that no caller uses.
    fn file(&self, content: &mut Content, name: &str) -> Result<Arc<StoredFile>> {
        content.store_unused()?;
        let block_bytes = content.block_bytes;
        match content.entries.iter_mut().find(|entry| entry.name == name).map(|entry| &mut entry.kind) {
            Some(EntryKind::File(size, file)) => {
                let open =
                    || Arc::new(StoredFile::existing(self.store.clone(), self.path_of(name), block_bytes, *size));
                Ok(file.get_or_insert_with(open).clone())
            }
            _ => Err(Error::not_found("the file does not exist").context(Context::member(name))),
        }
    }

    /// Writes files that are only in memory, nested containers, and the header if it has changed.
    fn write(&self) -> Result<()> {
        let content = &mut *self.content();
        for entry in &mut content.entries {
            match &mut entry.kind {
                EntryKind::File(size, Some(file)) => {
                    content.changed |= file.finish().with_context(|| Context::member(&entry.name))?;
                    *size = file.len()?;
                }
                EntryKind::Nested(Some(nested)) => nested.write().with_context(|| Context::member(&entry.name))?,
                EntryKind::File(_, None) | EntryKind::Nested(None) => {}
            }
        }
        content.forget_unused();
        if !content.changed {
            return Ok(());
        }
        let files = content.entries.iter().map(|entry| match &entry.kind {
            EntryKind::File(size, _) => (entry.name.clone(), *size),
            EntryKind::Nested(_) => (entry.name.clone(), 0),
        });
        let counter = content.counter + 1;
        let archive = self.store.options.archive;
        let header = Header { block_bytes: content.block_bytes, counter, archive, files: files.collect() };
        self.store.change(|access| header.write(&access.group(&self.path)?))?;
        content.counter = counter;
        content.changed = false;
        Ok(())
    }

    /// Checks that a new entry can have this name; removes an existing file if `taken` says so.
    fn claim_name(&self, content: &mut Content, name: &str, taken: IfTaken) -> Result<()> {
        check_name(name)?;
        if name == HEADER || ([COMMITS, BLOCKS].contains(&name) && self.path.is_empty()) {
            return Err(Error::usage(format!("{name} is a name of MultiHDF5 itself")));
        }
        content.store_unused()?;
        match content.entries.iter().position(|entry| entry.name == name) {
            Some(at) if taken == IfTaken::ReplaceFile && matches!(content.entries[at].kind, EntryKind::File(..)) => {
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
        if let EntryKind::File(_, Some(file)) = entry.kind {
            file.detach();
        }
        self.store.change(|access| {
            let group = access.group(&self.path)?;
            if group.has(&entry.name) { group.remove(&entry.name) } else { Ok(()) }
        })
    }
}

impl Content {
    /// Memory does not grow with the number of files.
    fn store_unused(&mut self) -> Result<()> {
        for entry in &mut self.entries {
            if let EntryKind::File(size, Some(file)) = &mut entry.kind
                && Arc::strong_count(file) == 1
            {
                self.changed |= file.finish().with_context(|| Context::member(&entry.name))?;
                *size = file.len()?;
            }
        }
        self.forget_unused();
        Ok(())
    }

    fn forget_unused(&mut self) {
        for entry in &mut self.entries {
            if let EntryKind::File(_, file) = &mut entry.kind {
                file.take_if(|file| Arc::strong_count(file) == 1);
            }
        }
    }
}

/// Options for further files of an existing container.
fn stored_options(root: &Group) -> Result<FormatOptions> {
    if root.has(BLOCKS) {
        let message = "`pack --follow` writes this container: `h5bridge finalize` makes one of it that can be changed";
        return Err(Error::unsupported(message));
    }
    let Header { block_bytes, archive, files, .. } = Header::read(root)?;
    // one archive has one kind of hash
    let names = files.into_iter().map(|(name, _)| name).filter(|name| archive && root.has(name));
    let mut hashes = names.map(|name| stored_hash(&root.group(&name)?)).filter_map(Result::transpose);
    let hash = hashes.next().transpose()?.map_or(HashKind::default(), |(kind, _)| kind);
    Ok(FormatOptions { block_bytes, checksums: false, compression: None, archive, hash, appendable: root.has(COMMITS) })
}

impl Container for MultiHdf5Mut {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.select(|kind| matches!(kind, EntryKind::File(..))))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(self.file(&mut self.content(), name)?)
    }

    fn nested(&self) -> Result<Vec<String>> {
        Ok(self.select(|kind| matches!(kind, EntryKind::Nested(_))))
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        match self.content().entries.iter_mut().find(|entry| entry.name == name).map(|entry| &mut entry.kind) {
            Some(EntryKind::Nested(Some(nested))) => Ok(nested.clone()),
            Some(EntryKind::Nested(nested)) => {
                limits::depth(self.path.split('/').count(), "containers")?;
                let opened =
                    Arc::new(Self::existing(self.store.clone(), self.path_of(name)).context(Context::member(name))?);
                Ok(nested.insert(opened).clone())
            }
            _ => Err(Error::not_found("the container does not exist").context(Context::member(name))),
        }
    }

    fn describe(&self) -> ContainerInfo {
        let content = self.content();
        Header::info(content.block_bytes, content.counter)
    }
}

impl ContainerMut for MultiHdf5Mut {
    fn create(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        let content = &mut *self.content();
        let mut create = || {
            self.claim_name(content, name, IfTaken::ReplaceFile)?;
            self.store.change(|access| access.group(&self.path)?.create_group(name).map(|_| ()))?;
            let file = Arc::new(StoredFile::new(self.store.clone(), self.path_of(name), content.block_bytes));
            content.entries.push(Entry { name: name.to_owned(), kind: EntryKind::File(0, Some(file.clone())) });
            content.changed = true;
            Ok::<_, Error>(file)
        };
        Ok(create().context(Context::member(name))?)
    }

    fn edit(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        Ok(self.file(&mut self.content(), name)?)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let content = &mut *self.content();
        match content.entries.iter().position(|entry| entry.name == name && matches!(entry.kind, EntryKind::File(..))) {
            Some(at) => self.drop_entry(content, at).context(Context::member(name)),
            None => Err(Error::not_found("the file does not exist").context(Context::member(name))),
        }
    }

    fn create_nested(&self, name: &str) -> Result<Arc<dyn ContainerMut>> {
        let content = &mut *self.content();
        let mut create = || {
            limits::depth(self.path.split('/').count(), "containers")?;
            self.claim_name(content, name, IfTaken::Fail)?;
            let nested = Arc::new(Self::empty(self.store.clone(), self.path_of(name)));
            self.store.change(|access| access.group(&self.path)?.create_group(name).map(|_| ()))?;
            content.entries.push(Entry { name: name.to_owned(), kind: EntryKind::Nested(Some(nested.clone())) });
            content.changed = true;
            // the group is a container from now on, whether it is committed or not
            nested.write()?;
            Ok::<_, Error>(nested)
        };
        Ok(create().context(Context::member(name))?)
    }

    /// The commit of a nested container becomes visible with that of the outermost one.
    fn commit(&self) -> Result<()> {
        self.write()?;
        if !self.path.is_empty() {
            return Ok(());
        }
        if self.store.options.appendable && self.store.is_changed() {
            self.store.change(|access| Commits::create(&access.file.root()?, false))?;
        }
        self.store.publish()
    }
}
