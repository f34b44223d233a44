//! Reading a container of files that are stored as datasets in an HDF5 file.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::element::is_declared;
use super::{FILES_MARK, FORMAT, VERSION, link_attribute, properties};
use crate::container::{Container, ContainerInfo, FileLayout, Properties, check_name};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{self, Attribute, Dataset, Group, LinkKind, Storage};
use crate::io::{FileSource, Raw, ReadAt, past_end};
use crate::limits;
use crate::sync::LockUnpoisoned;
use crate::value::{DataType, Region, Shape, Values};

#[derive(Debug)]
struct Opened {
    _file: h5::File,
    source: FileSource,
}

/// The root group as a container, or a nested one.
pub(super) struct Files {
    opened: Arc<Opened>,
    group: Group,
    /// Entries in order of creation; datasets are files, groups nested containers.
    links: Vec<(String, LinkKind)>,
    by_name: HashMap<String, usize>,
    depth: usize,
}

impl Files {
    pub(super) fn open(inside: &dyn Container, name: &str) -> Result<Arc<Self>> {
        let path = inside.path(name).ok_or_else(|| {
            Error::unsupported("an HDF5 file inside another container cannot be read: unpack the outer one first")
        });
        let path = path.context(Context::member(name))?;
        let open = || {
            let file = h5::File::open_shared(&path)?;
            let root = file.root()?;
            let version = root.attribute(FILES_MARK)?;
            let version = version.and_then(|version| version.values().integers()).unwrap_or_default();
            if version != [VERSION] {
                return Err(Error::format(format!("attribute {FILES_MARK} is {version:?}, expected [{VERSION}]")));
            }
            let opened = Arc::new(Opened { _file: file, source: FileSource::open(&path)? });
            Ok(Arc::new(Self::new(opened, root, 0)?))
        };
        open().context(Context::path(&path))
    }

    fn new(opened: Arc<Opened>, group: Group, depth: usize) -> Result<Self> {
        limits::depth(depth, "containers")?;
        // soft links, and those into other files, are not followed
        let is_own = |(_, kind): &(String, LinkKind)| matches!(kind, LinkKind::Dataset | LinkKind::Group);
        let links: Vec<_> = group.links()?.into_iter().filter(is_own).collect();
        let by_name = links.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        Ok(Files { opened, group, links, by_name, depth })
    }

    fn of_kind(&self, wanted: LinkKind) -> Vec<String> {
        self.links.iter().filter(|(_, kind)| *kind == wanted).map(|(name, _)| name.clone()).collect()
    }

    fn is(&self, name: &str, wanted: LinkKind) -> bool {
        self.by_name.get(name).is_some_and(|&at| self.links[at].1 == wanted)
    }

    /// Dataset, element type and length in bytes of the file `name`.
    fn dataset(&self, name: &str) -> Result<(Dataset, DataType, u64)> {
        let open = || {
            if !self.is(name, LinkKind::Dataset) {
                return Err(Error::not_found("the file does not exist"));
            }
            check_name(name)?;
            let dataset = self.group.dataset(name)?;
            let shape = dataset.shape()?;
            match (dataset.data_type()?, &shape[..]) {
                (element, &[len]) if is_declared(&self.own_properties(name)?, element) => {
                    let bytes = len.checked_mul(element.size() as u64);
                    Ok((
                        dataset,
                        element,
                        bytes.ok_or_else(|| Error::format("the dataset is longer than 2^64 bytes: no file can be"))?,
                    ))
                }
                (found, _) => Err(Error::format(format!(
                    "a file is a dataset of 8-bit integers with one axis, not of {} with {} axes",
                    found.name(),
                    shape.len()
                ))),
            }
        };
        open().context(Context::member(name))
    }
}

impl Files {
    fn own_properties(&self, name: &str) -> Result<Properties> {
        let dataset = self.group.header(name)?;
        properties::read(dataset.attributes()?, |name| dataset.attribute(name))
    }
}

impl Container for Files {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.of_kind(LinkKind::Dataset))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let (dataset, element, len) = self.dataset(name)?;
        let position = match dataset.storage()? {
            Storage::Block(position) => position,
            _ => None,
        };
        Ok(Arc::new(StoredBytes { opened: self.opened.clone(), dataset: Mutex::new(dataset), element, position, len }))
    }

    fn nested(&self) -> Result<Vec<String>> {
        Ok(self.of_kind(LinkKind::Group))
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        let enter = || {
            if !self.is(name, LinkKind::Group) {
                return Err(Error::not_found("the container does not exist"));
            }
            check_name(name)?;
            let group = self.group.group(name)?;
            // so none is found in itself
            match group.link_count()? {
                1 => Self::new(self.opened.clone(), group, self.depth + 1),
                links => Err(Error::format(format!("{links} links lead to the group, expected one"))),
            }
        };
        Ok(Arc::new(enter().context(Context::member(name))?))
    }

    fn describe(&self) -> ContainerInfo {
        ContainerInfo { format: FORMAT.name, version: Some(VERSION as u32), ..ContainerInfo::default() }
    }

    fn layout(&self, name: &str) -> Result<FileLayout> {
        let (dataset, element, len) = self.dataset(name)?;
        let chunk = dataset.chunk()?.and_then(|chunk| chunk.first().copied());
        let chunk = chunk.map(|elements| elements.saturating_mul(element.size() as u64));
        let filters = dataset.filters()?;
        Ok(FileLayout {
            stored_bytes: dataset.stored_bytes(),
            block_bytes: chunk,
            blocks: chunk.map_or(1, |chunk| len.div_ceil(chunk.max(1))),
            block_numbers: Vec::new(),
            checksum: filters.iter().any(|filter| filter == "fletcher32").then_some("fletcher32"),
            filters,
            index: Some(dataset.index_kind()?.to_string()),
            hash: None,
        })
    }

    fn properties(&self) -> Result<Properties> {
        properties::read(self.group.attributes()?, |name| self.group.attribute(name))
    }

    fn file_properties(&self, name: &str) -> Result<Properties> {
        let own = self.own_properties(name).context(Context::member(name))?;
        let attribute = link_attribute(name);
        match self.group.attribute(&attribute)?.as_ref().map(Attribute::values) {
            Some(Values::String(text)) if text.len() == 1 => {
                let linked = properties::of_json(&text[0].to_string()).context(attribute)?;
                Ok(Properties { content: own.content, ..linked })
            }
            _ => Ok(own),
        }
    }

    /// Always false: HDF5's own checksums cover only its metadata.
    fn check(&self) -> Result<bool> {
        Ok(false)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Files").field(&self.group.path()).finish()
    }
}

#[derive(Debug)]
struct StoredBytes {
    opened: Arc<Opened>,
    dataset: Mutex<Dataset>,
    element: DataType,
    /// Offset of a contiguous dataset's first byte; `None` if libhdf5 has to read it.
    position: Option<u64>,
    len: u64,
}

impl ReadAt for StoredBytes {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.len) {
            return Err(past_end(offset, out.len() as u64, self.len));
        }
        if let Some(position) = self.position {
            return self.opened.source.read_at(position.saturating_add(offset), out);
        }
        // the elements that have these bytes
        let size = self.element.size() as u64;
        let (first, end) = (offset / size, (offset + out.len() as u64).div_ceil(size));
        let region = Region { start: Shape::from([first]), shape: Shape::from([end - first]) };
        let mut values = Values::new(self.element);
        self.dataset.lock_unpoisoned().read_region(&region, &mut values)?;
        let from = (offset - first * size) as usize;
        out.copy_from_slice(&values.into_bytes()[from..from + out.len()]);
        Ok(())
    }

    fn raw(&self, offset: u64) -> Option<Raw<'_>> {
        let rest = self.len.checked_sub(offset)?;
        let raw = self.opened.source.raw(self.position?.checked_add(offset)?)?;
        Some(Raw { len: raw.len.min(rest), ..raw })
    }
}
