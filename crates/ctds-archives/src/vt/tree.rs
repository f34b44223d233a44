//! Presents an archive, and the directories saved in it, as containers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

use ctds::container::{Container, ContainerInfo, FileLayout, Properties, Property};
use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds::io::{ReadAt, read_all};
use ctds::limits;
use ctds::sync::LockUnpoisoned;

use super::address::Address;
use super::archive::{self, Line};
use super::data::{Reader, VtFile};
use super::dirent::{Dirent, EntryKind};
use super::hash::{BlockHash, HashKind};
use super::reference::BlockRef;
use super::remote::Remote;
use super::store::Store;

/// Name of a file that was saved by itself and without a name.
const NAMELESS: &str = "file";

/// An archive as a container: the files of the newest state, or of an earlier one.
#[derive(Debug)]
pub(super) struct Archive {
    root: Folder,
    name: String,
    /// All lines, the newest last; empty if this container shows an earlier state.
    lines: Vec<Line>,
    reader: Arc<Reader>,
}

#[derive(Debug)]
pub(super) struct Folder {
    reader: Arc<Reader>,
    tree: Arc<Tree>,
    dirent: Dirent,
    depth: usize,
    children: OnceLock<BTreeMap<String, Dirent>>,
}

/// Shared by all directories in one saved state: the root, and the files that hard links lead to.
#[derive(Debug)]
struct Tree {
    root: Dirent,
    /// `None` until the first hard link is followed.
    by_uuid: Mutex<Option<Arc<ByUuid>>>,
}

/// Entries of the files in one saved state; hard links refer to their UUIDs.
type ByUuid = HashMap<[u8; 16], Dirent>;

/// Entries of one saved state that are read to follow hard links; more are an error.
const MAX_ENTRIES: usize = 1 << 24;

impl Archive {
    /// Opens the archive in the file `name` of `inside`, and the stores in the same directory.
    pub(super) fn open(inside: &dyn Container, name: &str) -> Result<Self> {
        let lines = archive::parse(&read_all(&inside.open(name)?)?).context(Context::member(name))?;
        Self::of_lines(Reader::new(Store::open(inside)?), lines, name)
    }

    /// Opens an archive of a store that another program serves.
    pub(super) fn of_address(address: &Address<'_>) -> Result<Self> {
        let remote = Remote::connect(address)?;
        let lines = remote.lines(address.archive).context(Context::member(address.archive))?;
        if lines.is_empty() {
            let message = "the store that is served has no such archive, or it has no entries";
            return Err(Error::not_found(message).context(Context::member(address.archive)));
        }
        Self::of_lines(Reader::new(Arc::new(remote)), lines, address.archive)
    }

    fn of_lines(reader: Reader, lines: Vec<Line>, name: &str) -> Result<Self> {
        let reader = Arc::new(reader);
        let current = lines.last().map(|line| line.entry.clone());
        let current = current.unwrap_or_else(|| Err(Error::format("the archive has no entries")))?;
        let archive = Self::of_entry(reader, current, lines);
        // so that a missing store is noticed at once
        archive.root.children().context(Context::member(name))?;
        Ok(archive)
    }

    fn of_entry(reader: Arc<Reader>, entry: Dirent, lines: Vec<Line>) -> Self {
        let name = entry.name.clone();
        let tree = Arc::new(Tree { root: entry.clone(), by_uuid: Mutex::default() });
        let root = Folder { reader: reader.clone(), tree, dirent: entry, depth: 0, children: OnceLock::new() };
        Archive { root, name, lines, reader }
    }

    /// All files and directories in this saved state by their paths, for tests.
    #[cfg(test)]
    pub(super) fn all_entries(&self) -> Result<BTreeMap<String, Dirent>> {
        let mut found = BTreeMap::new();
        let mut pending = vec![(String::new(), self.root.dirent.clone())];
        while let Some((prefix, directory)) = pending.pop() {
            for entry in entries(&self.reader, &directory)? {
                let path = format!("{prefix}{}", entry.name);
                if entry.kind == EntryKind::Directory {
                    pending.push((format!("{path}/"), entry.clone()));
                }
                found.insert(path, entry);
            }
        }
        Ok(found)
    }

    /// Finds the date `name`, else the last line whose root directory is called `name`.
    fn entry(&self, name: &str) -> Option<Result<Dirent>> {
        let dated = self.lines.iter().rfind(|line| line.date == name);
        let named = || self.lines.iter().rfind(|line| line.entry.as_ref().is_ok_and(|entry| entry.name == name));
        Some(dated.or_else(named)?.entry.clone())
    }
}

impl Container for Archive {
    fn names(&self) -> Result<Vec<String>> {
        self.root.names()
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        self.root.open(name)
    }

    fn nested(&self) -> Result<Vec<String>> {
        self.root.nested()
    }

    /// Opens a directory in this saved state, or another state, by its date or name.
    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        let error = match self.root.enter(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => error,
            entered => return entered,
        };
        if let Some(entry) = self.entry(name) {
            let entry = entry.context(Context::member(name))?;
            return Ok(Arc::new(Self::of_entry(self.reader.clone(), entry, Vec::new())));
        }
        if self.name == name && !name.is_empty() {
            return Ok(Arc::new(self.root.again()));
        }
        Err(error)
    }

    fn describe(&self) -> ContainerInfo {
        let changes = (!self.lines.is_empty()).then_some(self.lines.len() as u64);
        ContainerInfo { changes, ..self.root.describe() }
    }

    fn layout(&self, name: &str) -> Result<FileLayout> {
        self.root.layout(name)
    }

    fn history(&self) -> Result<Vec<String>> {
        Ok(self.lines.iter().map(|line| line.date.clone()).collect())
    }

    fn left_out(&self) -> Result<Vec<(String, String)>> {
        self.root.left_out()
    }

    fn properties(&self) -> Result<Properties> {
        let mut properties = self.root.properties()?;
        properties.push("vt_name", Property::Text(self.name.clone()));
        if let Some(current) = self.lines.last() {
            properties.push("vt_date", Property::Text(current.date.clone()));
        }
        Ok(properties)
    }

    fn file_properties(&self, name: &str) -> Result<Properties> {
        self.root.file_properties(name)
    }
}

impl Folder {
    fn again(&self) -> Self {
        Folder {
            reader: self.reader.clone(),
            tree: self.tree.clone(),
            dirent: self.dirent.clone(),
            depth: self.depth,
            children: OnceLock::new(),
        }
    }

    /// Entries by their names, read on the first call.
    pub(super) fn children(&self) -> Result<&BTreeMap<String, Dirent>> {
        if let Some(children) = self.children.get() {
            return Ok(children);
        }
        limits::depth(self.depth, "directories")?;
        let mut children = BTreeMap::new();
        for entry in entries(&self.reader, &self.dirent)? {
            if let Some(twice) = children.insert(entry.name.clone(), entry) {
                return Err(Error::format(format!("there are two entries named {:?}", twice.name)));
            }
        }
        Ok(self.children.get_or_init(|| children))
    }

    fn child(&self, name: &str, is_wanted: impl Fn(EntryKind) -> bool, what: &str) -> Result<&Dirent> {
        let found = self.children()?.get(name).filter(|entry| is_wanted(entry.kind));
        found.ok_or_else(|| Error::not_found(format!("the {what} does not exist")).context(Context::member(name)))
    }

    /// The entry of the file `name`, with hard links followed.
    pub(super) fn file(&self, name: &str) -> Result<Dirent> {
        let is_file = |kind| matches!(kind, EntryKind::File | EntryKind::HardLink);
        let entry = self.child(name, is_file, "file")?;
        if entry.kind == EntryKind::File {
            return Ok(entry.clone());
        }
        let files = self.tree.files(&self.reader)?;
        let target = entry.uuid.and_then(|uuid| files.get(&uuid));
        target.cloned().ok_or_else(|| {
            Error::format("a hard link to a file that is not in the tree").context(Context::member(name))
        })
    }

    fn names_of(&self, is_wanted: impl Fn(EntryKind) -> bool) -> Result<Vec<String>> {
        let children = self.children()?.values().filter(|entry| is_wanted(entry.kind));
        Ok(children.map(|entry| entry.name.clone()).collect())
    }
}

/// If `dirent` is a file that was saved by itself, only its own entry.
fn entries(reader: &Reader, dirent: &Dirent) -> Result<Vec<Dirent>> {
    if dirent.kind != EntryKind::Directory {
        let mut only = dirent.clone();
        if only.name.is_empty() {
            only.name = NAMELESS.to_owned();
        }
        return Ok(vec![only]);
    }
    match &dirent.block {
        Some(block) => Dirent::decode_all(&reader.all(block)?),
        None => Ok(Vec::new()),
    }
}

/// Does not read a directory again whose block `found` already has: its tree is the same.
pub(super) fn named_blocks(reader: &Reader, root: Dirent, found: &mut HashSet<BlockHash>) -> Result<()> {
    let mut pending = vec![(root, 0)];
    while let Some((entry, depth)) = pending.pop() {
        limits::depth(depth, "directories")?;
        let Some(block) = &entry.block else { continue };
        let before = found.len();
        reader.named_blocks(block, found, 0)?;
        let is_new = found.len() > before || !matches!(block, BlockRef::Hash { .. });
        if entry.kind == EntryKind::Directory && is_new {
            pending.extend(entries(reader, &entry)?.into_iter().map(|inner| (inner, depth + 1)));
        }
    }
    Ok(())
}

impl Tree {
    /// Entries of all files in this saved state that have UUIDs.
    fn files(&self, reader: &Reader) -> Result<Arc<ByUuid>> {
        if let Some(known) = &*self.by_uuid.lock_unpoisoned() {
            return Ok(known.clone());
        }
        let mut found = HashMap::new();
        let mut pending = vec![(self.root.clone(), 0)];
        let mut count = 0;
        while let Some((directory, depth)) = pending.pop() {
            limits::depth(depth, "directories")?;
            let entries = entries(reader, &directory)?;
            count += entries.len();
            if count > MAX_ENTRIES {
                return Err(Error::limit(format!("a tree with hard links has more than {MAX_ENTRIES} entries")));
            }
            for entry in entries {
                match (entry.kind, entry.uuid) {
                    (EntryKind::Directory, _) => pending.push((entry, depth + 1)),
                    (EntryKind::File, Some(uuid)) => drop(found.insert(uuid, entry)),
                    _ => {}
                }
            }
        }
        let found = Arc::new(found);
        *self.by_uuid.lock_unpoisoned() = Some(found.clone());
        Ok(found)
    }
}

impl Container for Folder {
    fn names(&self) -> Result<Vec<String>> {
        self.names_of(|kind| matches!(kind, EntryKind::File | EntryKind::HardLink))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let file = self.file(name)?;
        Ok(Arc::new(VtFile::new(self.reader.clone(), file.block).context(Context::member(name))?))
    }

    fn nested(&self) -> Result<Vec<String>> {
        self.names_of(|kind| kind == EntryKind::Directory)
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        let dirent = self.child(name, |kind| kind == EntryKind::Directory, "directory")?.clone();
        let folder = Folder { dirent, depth: self.depth + 1, ..self.again() };
        folder.children().context(Context::member(name))?;
        Ok(Arc::new(folder))
    }

    fn describe(&self) -> ContainerInfo {
        let kind = self.dirent.block.as_ref().and_then(|block| block.hash_kind());
        ContainerInfo { format: "vt", checksum: kind.map(HashKind::name), ..ContainerInfo::default() }
    }

    fn layout(&self, name: &str) -> Result<FileLayout> {
        let stored_bytes = self.open(name)?.len()?;
        let kind = self.file(name)?.block.as_ref().and_then(|block| block.hash_kind());
        Ok(FileLayout { stored_bytes, checksum: kind.map(HashKind::name), ..FileLayout::default() })
    }

    fn properties(&self) -> Result<Properties> {
        Ok(Properties { content: None, ..properties_of(&self.dirent) })
    }

    fn file_properties(&self, name: &str) -> Result<Properties> {
        Ok(properties_of(&self.file(name)?))
    }

    fn left_out(&self) -> Result<Vec<(String, String)>> {
        let links = self.children()?.values().filter(|entry| entry.kind == EntryKind::Symlink);
        let describe = |entry: &Dirent| {
            let target = entry.meta.text("pathref").unwrap_or_default();
            (entry.name.clone(), format!("a symbolic link to {target:?}"))
        };
        Ok(links.map(describe).collect())
    }
}

/// Maximum bytes of the reference as identity of the content; the SHA-256 replaces a longer one.
const LONGEST_CONTENT: usize = 256;

fn properties_of(entry: &Dirent) -> Properties {
    let mut properties = Properties::default();
    if let Some(block) = entry.block.as_ref().filter(|_| entry.kind == EntryKind::File) {
        let text = block.to_string();
        properties.content = Some(match text.len() > LONGEST_CONTENT {
            true => HashKind::Sha256.hash(text.as_bytes()).to_string(),
            false => text,
        });
    }
    if let Some(meta) = entry.meta.stored() {
        properties.push(META, Property::Text(meta.to_owned()));
        if let Some(modified) = entry.meta.modified() {
            properties.push("vt_modified", Property::Float(modified));
        }
        properties.push("vt_mode", Property::Int(i64::from(entry.meta.mode())));
    }
    properties
}

/// Name of the property with the metadata as text.
pub(super) const META: &str = "vt_meta";

pub(super) fn is_archive(inside: &dyn Container, name: &str) -> Result<bool> {
    let file = inside.open(name)?;
    let mut head = vec![0; file.len()?.min(archive::HEAD_BYTES) as usize];
    file.read_at(0, &mut head)?;
    Ok(archive::is_archive(&head))
}
