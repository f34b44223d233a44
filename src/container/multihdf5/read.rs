//! Reads a MultiHDF5 container: finds its virtual files and nested containers in the groups of the
//! HDF5 file, and opens them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::commits::{Commits, CommittedFile};
use super::header::Header;
use super::names::{DATA, HEADER};
use super::seal::Seal;
use super::virtual_file::{BlockRows, VirtualFile};
use crate::container::{Container, ContainerInfo, FileLayout, check_name};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Attribute, Dataset, Group, LinkKind};
use crate::hash::HashKind;
use crate::io::{FileSource, ReadAt};
use crate::limits;
use crate::value::Values;

/// The HDF5 file of a container and those nested in it.
#[derive(Debug)]
pub(super) struct Opened {
    file: h5::File,
    source: Arc<FileSource>,
    sealed: bool,
    /// Files by path at the last commit, newer than the headers; empty without commits.
    committed: HashMap<String, CommittedFile>,
}

impl Opened {
    /// Another process may append. `Format` if it is not HDF5, `Locked` if it is being changed.
    pub(super) fn open(path: &Path) -> Result<Arc<Self>> {
        let open = || {
            let source = FileSource::open(path)?;
            let sealed = Seal::check_structure(&source)?;
            let file = h5::File::open_shared(path)?;
            let committed = Commits::files_by_path(&file.root()?)?;
            Ok::<_, Error>(Opened { sealed, source: Arc::new(source), committed, file })
        };
        Ok(Arc::new(open().context(Context::path(path))?))
    }

    /// The outermost container; `Format` for another kind of HDF5 file.
    pub(super) fn root(self: Arc<Self>) -> Result<Arc<dyn Container>> {
        let group = self.file.root()?;
        Ok(Arc::new(Node::new(self, group, 0)?))
    }

    /// True also for a damaged seal. `Format` if other bytes follow the HDF5 data, such as the rest
    /// of a seal; not for a container with commits.
    fn check_seal(&self) -> Result<bool> {
        let (end, len) = (self.file.end_of_file()?, self.source.len()?);
        if !self.sealed && len > end && self.committed.is_empty() {
            let message =
                format!("{} bytes follow the end of the HDF5 file: its seal is damaged or cut off", len - end);
            return Err(Error::format(message).context(format!("byte {end}")));
        }
        Ok(self.sealed)
    }
}

/// Fails unless an object has one link: no files share bytes, no container contains itself.
fn check_links(links: usize) -> Result<()> {
    if links == 1 { Ok(()) } else { Err(Error::format(format!("{links} links lead to it, expected one"))) }
}

/// The root group, or that of a nested container.
pub(super) struct Node {
    opened: Arc<Opened>,
    group: Group,
    header: Header,
    entries: BTreeMap<String, Entry>,
    /// Kinds of links by name: soft ones and those to other files are not followed.
    links: HashMap<String, LinkKind>,
    depth: usize,
}

#[derive(Clone, Copy)]
enum Entry {
    File(u64),
    Nested,
}

impl Node {
    fn new(opened: Arc<Opened>, group: Group, depth: usize) -> Result<Self> {
        limits::depth(depth, "containers")?;
        let header = Header::read(&group)?;
        let links: HashMap<String, LinkKind> = group.links()?.into_iter().collect();
        let mut entries = BTreeMap::new();
        for (name, size) in &header.files {
            let committed = opened.committed.get(&path_in(&group, name));
            if committed.is_some_and(|file| file.size.is_none()) {
                continue;
            }
            let is_group = links.get(name) == Some(&LinkKind::Group);
            let nested = *size == 0 && is_group && name != HEADER && group.group(name)?.has(HEADER);
            entries.insert(name.clone(), if nested { Entry::Nested } else { Entry::File(*size) });
        }
        Ok(Node { opened, group, header, entries, links, depth })
    }

    /// Fails unless a link of exactly this name, and no other, leads to the group.
    fn group_of(&self, name: &str) -> Result<Group> {
        check_name(name)?;
        if self.links.get(name) != Some(&LinkKind::Group) {
            return Err(Error::format(format!("{name} is listed, but has no group of this name")));
        }
        let group = self.group.group(name)?;
        check_links(group.link_count()?).with_context(|| format!("group {}", group.path()))?;
        Ok(group)
    }

    /// The dataset, bytes of the file, and the row of each block unless they are in order.
    fn dataset(&self, name: &str) -> Result<(Dataset, u64, Option<BlockRows>)> {
        let Some(&Entry::File(size)) = self.entries.get(name) else {
            return Err(Error::not_found("the file does not exist").context(Context::member(name)));
        };
        let open = || {
            let group = self.group_of(name)?;
            let hard = |(link, kind): &(String, LinkKind)| link == DATA && *kind == LinkKind::Dataset;
            if !group.links()?.iter().any(hard) {
                return Err(Error::format(format!("group {} has no dataset {DATA}", group.path())));
            }
            let dataset = group.dataset(DATA)?;
            check_links(dataset.link_count()?).with_context(|| format!("dataset {}", dataset.path()))?;
            Ok(dataset)
        };
        let dataset = open().context(Context::member(name))?;
        Ok(match self.opened.committed.get(&path_in(&self.group, name)) {
            Some(file) => (dataset, file.size.unwrap_or(size), file.order.clone()),
            None => (dataset, size, None),
        })
    }

    fn select(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<String> {
        self.entries.iter().filter(|(_, entry)| wanted(entry)).map(|(name, _)| name.clone()).collect()
    }
}

impl Container for Node {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.select(|entry| matches!(entry, Entry::File(_))))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let (dataset, size, order) = self.dataset(name)?;
        let source = self.opened.source.clone();
        let open = || match order {
            Some(order) => VirtualFile::in_order(&dataset, source, self.header.block_bytes, size, order),
            None => VirtualFile::new(&dataset, source, self.header.block_bytes, size),
        };
        Ok(Arc::new(open().context(Context::member(name))?))
    }

    fn nested(&self) -> Result<Vec<String>> {
        Ok(self.select(|entry| matches!(entry, Entry::Nested)))
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        if !matches!(self.entries.get(name), Some(Entry::Nested)) {
            return Err(Error::not_found("the container does not exist").context(Context::member(name)));
        }
        let enter = || Node::new(self.opened.clone(), self.group_of(name)?, self.depth + 1);
        Ok(Arc::new(enter().context(Context::member(name))?))
    }

    fn describe(&self) -> ContainerInfo {
        let sealed = self.depth == 0 && self.opened.sealed;
        ContainerInfo {
            checksum: sealed.then_some("crc32"),
            ..Header::info(self.header.block_bytes, self.header.counter)
        }
    }

    /// Whether a seal protects this and nested containers; fails for a cut one, compares no bytes.
    fn check(&self) -> Result<bool> {
        if self.depth > 0 { Ok(true) } else { self.opened.check_seal() }
    }

    fn layout(&self, name: &str) -> Result<FileLayout> {
        let (dataset, size, _) = self.dataset(name)?;
        let filters = dataset.filters()?;
        // the hash is that of the bytes of which the header knows
        let is_current = matches!(self.entries.get(name), Some(Entry::File(stored)) if *stored == size);
        let hash = if is_current { stored_hash(&self.group_of(name)?)? } else { None };
        Ok(FileLayout {
            stored_bytes: dataset.stored_bytes(),
            block_bytes: Some(self.header.block_bytes),
            blocks: size.div_ceil(self.header.block_bytes),
            block_numbers: Vec::new(),
            checksum: filters.iter().any(|filter| filter == "fletcher32").then_some("fletcher32"),
            filters,
            index: Some(dataset.index_kind()?.to_string()),
            hash,
        })
    }
}

/// Path of a file in a group from the root, without a leading slash.
fn path_in(group: &Group, name: &str) -> String {
    format!("{}/{name}", group.path()).trim_start_matches('/').to_owned()
}

/// Recorded by archives only: casacore would not update the hash in other containers.
pub(super) fn stored_hash(group: &Group) -> Result<Option<(HashKind, String)>> {
    for kind in HashKind::ALL {
        let stored = group.attribute(kind.name())?;
        if let Some(Values::String(texts)) = stored.as_ref().map(Attribute::values)
            && let Some(text) = texts.first()
        {
            return Ok(Some((kind, text.to_string())));
        }
    }
    Ok(None)
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.group.path()).finish()
    }
}
