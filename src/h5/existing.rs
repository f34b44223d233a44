//! Existing files, which [`h5_read`] reads in safe Rust: objects, attributes, elements.
//!
//! libhdf5 trusts numbers in a file: it crashes on some damaged ones, and never ends on others.
//! So an object is found whole when it is opened - its header, attributes, links - and chunks and
//! heaps when elements are read; a damaged one is an error, and the others can be read. Of a file
//! that is salvaged also the intact parts of damaged objects are found.
//!
//! libhdf5 opens such a file only to change it, once all objects are checked, and to read elements
//! that are in other files or datasets, or that a plugin has to decode: [`Place::library`].
//! Indices and regions have the slowest axis first. Damage is an error of the kind `Format`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bstr::BString;
use h5_read::{Attribute, Datatype, FilterError, Filters, GlobalHeap, Layout, Listing, ObjectKind, Storage, Target};

use super::lock::Shared;
use super::signature::is_hdf5;
use super::{Link, StoredChunk, codec, library, lock};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Paged, ReadAt};
use crate::sync::LockUnpoisoned;

/// Bytes read of structures, beside a multiple of the file's size: an intact file has each once.
const BUDGET: u64 = 64 << 20;
const BUDGET_FACTOR: u64 = 64;

/// Checks of an object that a writer may be changing, and the pause between two.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// Bytes of elements that are checked at once.
const STEP_BYTES: u64 = 4 << 20;

/// Bytes of objects that are kept for the next who looks at them.
const KEPT_BYTES: usize = 4 << 20;
/// Bytes of an object, or of an attribute, without its values.
const OBJECT_BYTES: usize = 512;

/// Bytes of elements of variable length in a file, beside its size.
const MORE_TEXT: u64 = 64 << 20;

/// Filters of `h5_read` itself: shuffle, Fletcher32, N-bit, scale-offset.
const OF_READER: [u16; 4] = [2, 3, 5, 6];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Whole,
    /// Also while a writer has it open.
    Live,
    /// Also after a writer that did not close it, SWMR or not.
    Left,
    /// Objects with their intact parts.
    Salvage,
}

/// The file, of which no object is read yet. `Locked` if a writer has it open, unless it is read
/// live.
fn opened(source: Arc<dyn ReadAt>, reading: Reading) -> Result<h5_read::File> {
    if !is_hdf5(&*source)? {
        return Err(Error::format("the file is not an HDF5 file"));
    }
    let len = source.len()?;
    let budget = len.saturating_mul(BUDGET_FACTOR).saturating_add(BUDGET);
    let open = |source| h5_read::File::open(Source(source)).map_err(|error| converted(&error));
    let mut file = open(source.clone())?;
    if !file.superblock().is_being_written() {
        // structures are small, and many lie near each other; a writer would change pages
        file = open(Arc::new(Paged::new(source)?))?;
    }
    let is_written = file.superblock().is_being_written();
    let may_be_written = match reading {
        Reading::Left => true,
        Reading::Live => file.superblock().is_live(),
        Reading::Whole | Reading::Salvage => false,
    };
    if is_written && !may_be_written {
        return Err(lock::being_written());
    }
    let file = file.with_filters(Codecs).with_budget(budget);
    let end = file.superblock().end;
    if reading != Reading::Salvage {
        if len < end && !is_written {
            return Err(Error::format(format!("truncated file: it has {len} bytes of {end}")));
        }
        file.check_extension().map_err(|error| converted(&error))?;
    }
    Ok(file)
}

/// Names of the links and of the attributes of the root group, which must be whole; values of
/// attributes are not looked at.
pub(super) fn names_in_root(source: Arc<dyn ReadAt>) -> Result<(Vec<String>, Vec<String>)> {
    let error = |error| converted(&error);
    let root = opened(source, Reading::Whole)?.root().map_err(error)?;
    if let Some(damage) = root.object().damage().first() {
        return Err(converted(damage));
    }
    let links = root.links().whole().map_err(error)?;
    let attributes = root.object().attributes().whole().map_err(error)?;
    let links = links.iter().map(|link| text(&link.name)).collect();
    Ok((links, attributes.iter().map(|attribute| text(&attribute.name)).collect()))
}

/// An object that is whole, or the intact parts of one.
pub(super) struct Known {
    object: h5_read::Object,
    attributes: Vec<Attribute>,
    links: Vec<(String, Target)>,
    link_of: HashMap<String, usize>,
    dataset: Option<h5_read::Dataset>,
    /// Why parts are missing.
    damage: Option<Error>,
    /// Bytes of all chunks of a dataset, once they were counted.
    chunk_bytes: OnceLock<u64>,
}

/// Objects that were read, by address: they are looked at several times.
#[derive(Default)]
struct Objects {
    known: HashMap<u64, Result<Arc<Known>>>,
    /// Memory that `known` takes.
    bytes: usize,
}

pub(super) type Opener = Box<dyn Fn() -> Result<library::File> + Send + Sync>;

struct Existing {
    file: h5_read::File,
    bytes: Arc<dyn ReadAt>,
    /// Bytes of the file when it was opened.
    len: u64,
    reading: Reading,
    objects: Mutex<Objects>,
    /// An object of a file that a writer has open stayed damaged: others are not checked again.
    gave_up: AtomicBool,
    /// Of attributes: objects have many that share a collection. A writer would change collections.
    heap: Mutex<GlobalHeap>,
    lock: Mutex<Option<Shared>>,
    opener: Opener,
    library: Mutex<Option<library::File>>,
}

#[derive(Clone)]
pub(super) struct Place {
    existing: Arc<Existing>,
    address: u64,
    known: Arc<Mutex<Arc<Known>>>,
}

#[derive(Debug, Clone)]
pub(super) enum Handle {
    /// The file is one that this program makes or changes.
    Library(library::Group),
    File(Place),
}

impl Place {
    /// `lock` is held for as long as an object of the file is open. `Locked` if a writer has the
    /// file open, unless it is read live.
    pub(super) fn root(
        source: Arc<dyn ReadAt>,
        reading: Reading,
        lock: Option<Shared>,
        opener: Opener,
    ) -> Result<Self> {
        let len = source.len()?;
        let bytes = source.clone();
        let file = opened(source, reading)?;
        let address = file.superblock().root;
        let heap = Mutex::new(GlobalHeap::new(&file));
        let existing = Existing {
            file,
            heap,
            bytes,
            len,
            reading,
            objects: Mutex::default(),
            gave_up: AtomicBool::new(false),
            lock: Mutex::new(lock),
            opener,
            library: Mutex::new(None),
        };
        let root = Self::new(&Arc::new(existing), address)?;
        match root.known().object.kind() {
            ObjectKind::Group => Ok(root),
            _ => Err(Error::format("the root object is not a group")),
        }
    }

    fn new(existing: &Arc<Existing>, address: u64) -> Result<Self> {
        let known = existing.find(address)?;
        Ok(Place { existing: existing.clone(), address, known: Arc::new(Mutex::new(known)) })
    }

    /// Checks all objects of the file, which is to be changed.
    pub(super) fn check_all(&self) -> Result<()> {
        let mut todo = vec![self.address];
        let mut seen = HashSet::from([self.address]);
        while let Some(address) = todo.pop() {
            let known = self.existing.find(address)?;
            known.check_elements()?;
            let addresses = known.links.iter().filter_map(|(_, target)| match target {
                &Target::Object(address) => Some(address),
                _ => None,
            });
            todo.extend(addresses.filter(|&address| seen.insert(address)));
        }
        Ok(())
    }

    /// Gives up the lock, so that writers need not wait.
    pub(super) fn unlock(&self) {
        *self.existing.lock.lock_unpoisoned() = None;
    }

    pub(super) fn file_root(&self) -> Result<Self> {
        Self::new(&self.existing, self.existing.file.superblock().root)
    }

    pub(super) fn file(&self) -> &h5_read::File {
        &self.existing.file
    }

    pub(super) fn bytes(&self) -> &Arc<dyn ReadAt> {
        &self.existing.bytes
    }

    pub(super) fn known(&self) -> Arc<Known> {
        self.known.lock_unpoisoned().clone()
    }

    /// Identifies the object in its file.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Reads the object again, which another process has changed.
    pub(super) fn refresh(&self) -> Result<()> {
        if self.is_being_written() {
            *self.known.lock_unpoisoned() = self.existing.read_settled(self.address).map(Arc::new)?;
        }
        Ok(())
    }

    fn is_being_written(&self) -> bool {
        self.existing.file.superblock().is_being_written()
    }

    pub(super) fn address_of(&self, name: &str) -> Result<u64> {
        match self.known().target(name) {
            Some(&Target::Object(address)) => Ok(address),
            _ => Err(Error::not_found("there is none")),
        }
    }

    /// The hard link `name` leads to the object.
    pub(super) fn member(&self, name: &str) -> Result<Self> {
        Self::new(&self.existing, self.address_of(name)?)
    }

    /// Reads only the header of the object.
    pub(super) fn kind_of(&self, name: &str) -> Result<ObjectKind> {
        let address = self.address_of(name)?;
        let found = self.existing.objects.lock_unpoisoned().known.get(&address).cloned();
        match found {
            Some(Ok(known)) => Ok(known.object.kind()),
            _ => self.existing.file.object(address).map(|object| object.kind()).map_err(|error| converted(&error)),
        }
    }

    /// Calls `with` with the dataset, as it is now.
    fn with_dataset<T>(&self, with: impl FnOnce(&h5_read::Dataset) -> h5_read::Result<T>) -> Result<T> {
        let found = if self.is_being_written() {
            self.existing.file.object(self.address).and_then(|object| with(&object.dataset()?))
        } else {
            with(self.known().dataset()?)
        };
        found.map_err(|error| converted(&error))
    }

    pub(super) fn chunk_bytes(&self) -> Result<Option<u64>> {
        if self.is_being_written() {
            return self.with_dataset(bytes_of_chunks);
        }
        self.known().chunk_bytes()
    }

    /// Passes the index of the first element of each chunk, also of those beyond the extents.
    pub(super) fn each_chunk(&self, mut each: impl FnMut(&[u64], StoredChunk)) -> Result<()> {
        let chunks = self.with_dataset(|dataset| dataset.all_chunks().whole())?;
        chunks.iter().try_for_each(|chunk| {
            each(&chunk.start, self.stored(chunk)?);
            Ok(())
        })
    }

    /// Passes chunks with the first `rows` indices of the slowest axis: later ones may be damaged.
    pub(super) fn each_chunk_of_rows(&self, rows: u64, mut each: impl FnMut(&[u64], StoredChunk)) -> Result<()> {
        let chunks = self.with_dataset(|dataset| {
            let mut region: Vec<_> = dataset.space().extents.iter().map(|&extent| 0..extent).collect();
            if let Some(slowest) = region.first_mut() {
                slowest.end = slowest.end.min(rows);
            }
            dataset.chunks_in(&region).whole()
        })?;
        chunks.iter().try_for_each(|chunk| {
            each(&chunk.start, self.stored(chunk)?);
            Ok(())
        })
    }

    /// Goes around damage in the index, of which the first is returned.
    pub(super) fn each_intact_chunk(&self, mut each: impl FnMut(&[u64], StoredChunk)) -> Result<Option<Error>> {
        let Listing { items, damage } = self.with_dataset(|dataset| Ok(dataset.all_chunks()))?;
        for chunk in &items {
            each(&chunk.start, self.stored(chunk)?);
        }
        Ok(damage.first().map(converted))
    }

    /// `None` if the chunk with the element `at` was never written.
    pub(super) fn chunk(&self, at: &[u64]) -> Result<Option<StoredChunk>> {
        let found = self.with_dataset(|dataset| dataset.chunk(at))?;
        found.map(|chunk| self.stored(&chunk)).transpose()
    }

    fn stored(&self, chunk: &h5_read::Chunk) -> Result<StoredChunk> {
        let address = self.offset(chunk.address)?;
        Ok(StoredChunk { address, bytes: chunk.bytes, filter_mask: chunk.filter_mask })
    }

    /// Offset in the file of an address.
    pub(super) fn offset(&self, address: u64) -> Result<u64> {
        self.existing.file.offset(address).map_err(|error| converted(&error))
    }

    /// Whether the elements are read here, not by libhdf5.
    pub(super) fn is_readable(&self) -> bool {
        self.known().dataset.as_ref().is_some_and(|dataset| {
            let mut filters = dataset.pipeline().filters.iter().map(|filter| filter.id);
            dataset.external().is_empty()
                && !matches!(dataset.layout(), Layout::Virtual { .. })
                && filters.all(|id| OF_READER.contains(&id) || codec::find(i32::from(id)).is_some())
        })
    }

    /// Fills `out` with elements as the file has them.
    pub(super) fn read(&self, region: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        self.with_dataset(|dataset| dataset.read_into(region, &Codecs, out))
    }

    /// Appends strings of variable length, each up to its first NUL.
    pub(super) fn strings(&self, region: &[Range<u64>], out: &mut Vec<BString>) -> Result<()> {
        let (before, size) = (out.len(), self.known().dataset()?.datatype().size());
        let (mut texts, mut bytes) = (self.texts(), Vec::new());
        let read = in_steps(region, size, &mut |part| {
            let elements = part.iter().fold(1u64, |all, range| all.saturating_mul(range.end - range.start));
            bytes.resize(usize::try_from(elements.saturating_mul(size)).unwrap_or(usize::MAX), 0);
            self.read(part, &mut bytes)?;
            bytes.chunks_exact(size as usize).try_for_each(|element| {
                out.push(texts.text(element)?.into());
                Ok(())
            })
        });
        if read.is_err() {
            out.truncate(before);
        }
        read
    }

    pub(super) fn texts(&self) -> Texts<'static> {
        Texts { heap: Heap::Own(GlobalHeap::new(&self.existing.file)), left: self.existing.most_text() }
    }

    pub(super) fn attribute_texts(&self) -> Texts<'_> {
        Texts { heap: self.existing.heap(), left: self.existing.most_text() }
    }

    /// The file as libhdf5 has it open, once all elements of the object are checked.
    pub(super) fn library(&self) -> Result<library::File> {
        self.known().check_elements()?;
        let mut library = self.existing.library.lock_unpoisoned();
        if let Some(file) = &*library {
            return Ok(file.clone());
        }
        let file = (self.existing.opener)()?;
        if self.existing.lock.lock_unpoisoned().is_none() {
            file.unlock();
        }
        Ok(library.insert(file).clone())
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.address).finish()
    }
}

impl Existing {
    fn heap(&self) -> Heap<'_> {
        if self.file.superblock().is_being_written() {
            return Heap::Own(GlobalHeap::new(&self.file));
        }
        Heap::Shared(self.heap.lock_unpoisoned())
    }

    /// A heap has each text once, also if a damaged file has it in many elements.
    fn most_text(&self) -> u64 {
        self.len.saturating_add(MORE_TEXT)
    }

    fn find(&self, address: u64) -> Result<Arc<Known>> {
        if let Some(found) = self.objects.lock_unpoisoned().known.get(&address) {
            return found.clone();
        }
        let found = self.read_settled(address).map(Arc::new);
        // a writer changes objects, but does not mend them
        if found.is_err() || !self.file.superblock().is_being_written() {
            self.objects.lock_unpoisoned().keep(address, &found);
        }
        found
    }

    /// Reads again an object that a writer may be changing.
    fn read_settled(&self, address: u64) -> Result<Known> {
        let mut found = self.read(address);
        if self.file.superblock().is_being_written() {
            for _ in 1..ATTEMPTS {
                if !found.as_ref().is_err_and(Error::is_damage) || self.gave_up.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(PAUSE);
                found = self.read(address);
            }
            self.gave_up.fetch_or(found.is_err(), Ordering::Relaxed);
        }
        found
    }

    fn read(&self, address: u64) -> Result<Known> {
        let read = || -> h5_read::Result<Known> {
            let object = self.file.object(address)?;
            let (mut links, mut dataset) = (Listing { items: Vec::new(), damage: Vec::new() }, None);
            match object.kind() {
                ObjectKind::Group => links = object.group()?.links(),
                ObjectKind::Dataset => dataset = Some(object.dataset()?),
                ObjectKind::Type => {}
            }
            let attributes = self.attributes(&object);
            let mut damage = object.damage().iter().chain(&attributes.damage).chain(&links.damage);
            let damage = damage.next().map(converted);
            let links: Vec<_> = links.items.into_iter().map(|link| (text(&link.name), link.target)).collect();
            let link_of = links.iter().enumerate().map(|(number, link)| (link.0.clone(), number)).collect();
            let (attributes, chunk_bytes) = (attributes.items, OnceLock::new());
            Ok(Known { object, attributes, links, link_of, dataset, damage, chunk_bytes })
        };
        let known = read().map_err(|error| converted(&error))?;
        match &known.damage {
            Some(error) if self.reading != Reading::Salvage => Err(error.clone()),
            _ => Ok(known),
        }
    }

    /// Attributes whose values are whole as well.
    fn attributes(&self, object: &h5_read::Object) -> Listing<Attribute> {
        let Listing { mut items, mut damage } = object.attributes();
        if items.iter().any(|attribute| attribute.datatype.is_variable()) {
            let mut heap = self.heap();
            items.retain(|attribute| {
                let found = heap.get().check(&attribute.datatype, &attribute.data);
                found.map_err(|error| damage.push(error)).is_ok()
            });
        }
        Listing { items, damage }
    }
}

impl Objects {
    /// Forgets others if there are too many.
    fn keep(&mut self, address: u64, found: &Result<Arc<Known>>) {
        let bytes = found.as_ref().map_or(OBJECT_BYTES, |known| known.bytes());
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > KEPT_BYTES {
            self.known.retain(|_, found| found.is_err());
            self.bytes = OBJECT_BYTES * self.known.len() + bytes;
        }
        self.known.insert(address, found.clone());
    }
}

impl Known {
    /// About as many as it takes in memory.
    fn bytes(&self) -> usize {
        let attributes = self.attributes.iter().map(|attribute| attribute.data.len() + OBJECT_BYTES);
        let links = self.links.iter().map(|(name, _)| 2 * name.len() + 64);
        OBJECT_BYTES + attributes.sum::<usize>() + links.sum::<usize>()
    }

    pub(super) fn kind(&self) -> ObjectKind {
        self.object.kind()
    }

    /// `None` unless parts are missing.
    pub(super) fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    pub(super) fn link_count(&self) -> Result<usize> {
        self.object.link_count().map(|count| count as usize).map_err(|error| converted(&error))
    }

    pub(super) fn link_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.links.iter().map(|(name, _)| name.as_str())
    }

    fn target(&self, name: &str) -> Option<&Target> {
        self.link_of.get(name).map(|&number| &self.links[number].1)
    }

    pub(super) fn link(&self, name: &str) -> Option<Link> {
        Some(match self.target(name)? {
            Target::Object(_) => Link::Hard,
            Target::Soft(path) => Link::Soft(text(until_nul(path))),
            Target::External { file, path } => Link::External { file: text(file), path: text(path) },
            Target::User { kind, .. } => Link::UserDefined(i32::from(*kind)),
            _ => return None,
        })
    }

    pub(super) fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name.as_bytes())
    }

    pub(super) fn dataset(&self) -> Result<&h5_read::Dataset> {
        self.dataset.as_ref().ok_or_else(|| Error::format("the object is not a dataset"))
    }

    /// The type of a committed one.
    pub(super) fn committed_type(&self) -> Result<Datatype> {
        self.object.committed_type().map_err(|error| converted(&error))
    }

    fn chunk_bytes(&self) -> Result<Option<u64>> {
        let Some(dataset) = self.dataset.as_ref().filter(|dataset| matches!(dataset.layout(), Layout::Chunked(_)))
        else {
            return Ok(None);
        };
        if let Some(&bytes) = self.chunk_bytes.get() {
            return Ok(Some(bytes));
        }
        let bytes = bytes_of_chunks(dataset).map_err(|error| converted(&error))?;
        Ok(bytes.map(|bytes| *self.chunk_bytes.get_or_init(|| bytes)))
    }

    /// Checks what libhdf5 would follow of a dataset.
    pub(super) fn check_elements(&self) -> Result<()> {
        self.damage.clone().map_or(Ok(()), Err)?;
        if let Some(dataset) = &self.dataset {
            self.chunk_bytes()?;
            dataset.mappings().map_err(|error| converted(&error))?;
        }
        Ok(())
    }
}

/// Bytes of all chunks with elements; `None` unless the dataset is in chunks.
fn bytes_of_chunks(dataset: &h5_read::Dataset) -> h5_read::Result<Option<u64>> {
    let chunks = dataset.chunks().whole()?;
    let bytes = chunks.iter().fold(0u64, |bytes, chunk| bytes.saturating_add(chunk.bytes));
    Ok(matches!(dataset.layout(), Layout::Chunked(_)).then_some(bytes))
}

/// Calls `read` for parts of a region along its slowest axis, of few bytes where rows are short.
fn in_steps(region: &[Range<u64>], size: u64, read: &mut dyn FnMut(&[Range<u64>]) -> Result<()>) -> Result<()> {
    let Some((rows, cell)) = region.split_first() else { return read(region) };
    let row = cell.iter().fold(size, |bytes, range| bytes.saturating_mul(range.end.saturating_sub(range.start)));
    let step = (STEP_BYTES / row.max(1)).max(1);
    let mut part = region.to_vec();
    let mut at = rows.start;
    while at < rows.end {
        let end = rows.end.min(at.saturating_add(step));
        part[0] = at..end;
        read(&part)?;
        at = end;
    }
    Ok(())
}

enum Heap<'a> {
    Own(GlobalHeap),
    Shared(MutexGuard<'a, GlobalHeap>),
}

impl Heap<'_> {
    fn get(&mut self) -> &mut GlobalHeap {
        match self {
            Heap::Own(heap) => heap,
            Heap::Shared(heap) => heap,
        }
    }
}

/// Elements of variable length.
pub(super) struct Texts<'a> {
    heap: Heap<'a>,
    /// Bytes that may still be taken.
    left: u64,
}

impl Texts<'_> {
    /// A string, up to its first NUL.
    pub(super) fn text(&mut self, element: &[u8]) -> Result<&[u8]> {
        self.sequence(element, 1).map(until_nul)
    }

    /// Elements of `size` bytes each; `Limit` if elements have more bytes than the file.
    pub(super) fn sequence(&mut self, element: &[u8], size: u32) -> Result<&[u8]> {
        let found = self.heap.get().sequence(element, size).map_err(|error| converted(&error))?;
        self.left = self.left.checked_sub(found.len() as u64).ok_or_else(|| {
            Error::limit("strings or sequences have more bytes than the file: many elements share them")
        })?;
        Ok(found)
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or_default()
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The file as `h5_read` reads it. Errors go through it unchanged.
struct Source(Arc<dyn ReadAt>);

impl Storage for Source {
    fn len(&self) -> io::Result<u64> {
        self.0.len().map_err(io::Error::other)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out).map_err(io::Error::other)
    }
}

struct Codecs;

impl Filters for Codecs {
    fn decode(
        &self,
        filter: &h5_read::Filter,
        encoded: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let codec = codec::find(i32::from(filter.id)).ok_or(FilterError::Unknown)?;
        let limit = limit.min(usize::try_from(codec.bound(encoded.len() as u64)).unwrap_or(usize::MAX));
        let decoded = codec.decoder().decode(encoded, limit, out);
        decoded.map_err(|error| FilterError::Damaged(error.to_string()))
    }
}

pub(super) fn converted(error: &h5_read::Error) -> Error {
    let of_source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    if let Some(own) = of_source.and_then(io::Error::get_ref).and_then(|own| own.downcast_ref::<Error>()) {
        return own.clone();
    }
    let kind = match error.kind() {
        h5_read::ErrorKind::Unsupported => ErrorKind::Unsupported,
        h5_read::ErrorKind::Limit => ErrorKind::Limit,
        h5_read::ErrorKind::Io => ErrorKind::Io,
        _ => ErrorKind::Format,
    };
    let places = error.places().rev();
    places.fold(Error::new(kind, error.message()), |error, place| error.context(place.to_owned()))
}
