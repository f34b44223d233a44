//! Checks objects of a file before libhdf5 sees them.
//!
//! libhdf5 trusts numbers in a file: it crashes on some damaged ones, and never ends on others.
//! [`h5_read`], in safe Rust, refuses whatever is not as the format demands. Each object is checked
//! once, when it is opened: its header, attributes, links or chunk index, and the heap objects of
//! elements when these are read. So a damaged object is an error, and the others can be read.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bstr::BString;
use h5_read::{Class, FilterError, Filters, GlobalHeap, ObjectKind, Storage, Target};

use super::signature::is_hdf5;
use super::sys::StoredChunk;
use super::{Superblock, codec};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Paged, ReadAt};
use crate::sync::LockUnpoisoned;

/// Bytes of structures that may be read of a file, beside a multiple of its size: an intact one has
/// each structure once.
const BUDGET: u64 = 64 << 20;
const BUDGET_FACTOR: u64 = 64;

/// Checks of an object that a writer may be changing, and the pause between two.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// Bytes of elements that are checked at once.
const STEP_BYTES: u64 = 4 << 20;

/// Filters of `h5_read` itself: shuffle, Fletcher32, N-bit, scale-offset.
const OF_READER: [u16; 4] = [2, 3, 5, 6];

/// Facts about an object that is whole.
struct Known {
    kind: ObjectKind,
    /// Hard links of a group by name, with the addresses of their objects.
    links: HashMap<Vec<u8>, u64>,
    /// Bytes of all chunks of a dataset, when it was checked.
    chunk_bytes: Option<u64>,
}

struct Checked {
    file: h5_read::File,
    /// Objects by address.
    objects: Mutex<HashMap<u64, Result<Arc<Known>>>>,
    /// An object of a file that a writer has open stayed damaged: others are not checked again.
    gave_up: AtomicBool,
}

/// The root group of a file, and where it was checked.
pub(super) type Root = (hdf5::Group, Option<Place>);

/// An object that was found whole.
#[derive(Clone)]
pub(super) struct Place {
    checked: Arc<Checked>,
    address: u64,
}

impl Place {
    /// The root group.
    ///
    /// # Errors
    /// `Format` if the file is not HDF5, or damaged; `Unsupported`; those of `source`.
    pub(super) fn root(source: Arc<dyn ReadAt>) -> Result<Self> {
        if !is_hdf5(&*source)? {
            return Err(Error::format("the file is not an HDF5 file"));
        }
        let len = source.len()?;
        let budget = len.saturating_mul(BUDGET_FACTOR).saturating_add(BUDGET);
        // structures are small, and many lie near each other; a writer would change pages
        let is_written = Superblock::read(&*source).is_ok_and(|superblock| superblock.is_being_written());
        let source = if is_written { source } else { Arc::new(Paged::new(source)?) };
        let file = h5_read::File::open(Source(source)).map_err(|error| converted(&error))?;
        let file = file.with_filters(Codecs).with_budget(budget);
        let end = file.superblock().end;
        if len < end && !is_written {
            return Err(Error::format(format!("truncated file: it has {len} bytes of {end}")));
        }
        let root = file.check_extension().and_then(|()| file.root()).map_err(|error| converted(&error))?;
        let address = root.object().address();
        let checked = Checked { file, objects: Mutex::default(), gave_up: AtomicBool::new(false) };
        Place { checked: Arc::new(checked), address }.at(address)
    }

    /// As [`root`](Self::root), once all objects of the file are checked: it is to be changed.
    ///
    /// # Errors
    /// As [`root`](Self::root).
    pub(super) fn check_all(source: Arc<dyn ReadAt>) -> Result<()> {
        let root = Self::root(source)?;
        let mut todo = vec![root.address];
        let mut seen = HashSet::from([root.address]);
        while let Some(address) = todo.pop() {
            let known = root.checked.check(address)?;
            todo.extend(known.links.values().copied().filter(|&address| seen.insert(address)));
        }
        Ok(())
    }

    fn at(&self, address: u64) -> Result<Self> {
        self.checked.check(address)?;
        Ok(Place { checked: self.checked.clone(), address })
    }

    pub(super) fn file_root(&self) -> Result<Self> {
        let root = self.checked.file.root().map_err(|error| converted(&error))?;
        self.at(root.object().address())
    }

    /// Identifies the object in its file.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    fn address_of(&self, name: &str) -> Result<u64> {
        let known = self.checked.check(self.address)?;
        let found = known.links.get(name.as_bytes()).copied();
        found.ok_or_else(|| Error::format(format!("the hard link {name:?} was not found by both readers of HDF5")))
    }

    /// The object to which the hard link `name` leads.
    ///
    /// # Errors
    /// `Format` and `Unsupported` if it is damaged.
    pub(super) fn member(&self, name: &str) -> Result<Self> {
        self.at(self.address_of(name)?)
    }

    /// The kind of the object to which the hard link `name` leads, of which only the header is
    /// read.
    pub(super) fn kind_of(&self, name: &str) -> Result<ObjectKind> {
        let address = self.address_of(name)?;
        if let Some(Ok(known)) = self.checked.objects.lock_unpoisoned().get(&address) {
            return Ok(known.kind);
        }
        self.checked.file.object(address).map(|object| object.kind()).map_err(|error| converted(&error))
    }

    fn dataset(&self) -> Result<h5_read::Dataset> {
        let open = || self.checked.file.object(self.address)?.dataset();
        open().map_err(|error| converted(&error))
    }

    /// Bytes of all chunks of a dataset; `None` unless it has chunks.
    pub(super) fn chunk_bytes(&self) -> Result<Option<u64>> {
        if !self.checked.file.superblock().is_being_written() {
            return Ok(self.checked.check(self.address)?.chunk_bytes);
        }
        bytes_of_chunks(&self.dataset()?).map_err(|error| converted(&error))
    }

    /// Calls `each` for all chunks of a dataset, by the index of the first element, slowest axis
    /// first, also for those beyond its extents.
    ///
    /// # Errors
    /// `Format` if the index is damaged.
    pub(super) fn each_chunk(&self, mut each: impl FnMut(&[u64], StoredChunk)) -> Result<()> {
        let chunks = self.dataset()?.all_chunks().whole().map_err(|error| converted(&error))?;
        chunks.iter().try_for_each(|chunk| {
            each(&chunk.start, self.stored(chunk)?);
            Ok(())
        })
    }

    /// The chunk with an element, slowest axis first; `None` if it was never written.
    ///
    /// # Errors
    /// As [`each_chunk`](Self::each_chunk).
    pub(super) fn chunk(&self, at: &[u64]) -> Result<Option<StoredChunk>> {
        let found = self.dataset()?.chunk(at).map_err(|error| converted(&error))?;
        found.map(|chunk| self.stored(&chunk)).transpose()
    }

    fn stored(&self, chunk: &h5_read::Chunk) -> Result<StoredChunk> {
        let address = self.checked.file.offset(chunk.address).map_err(|error| converted(&error))?;
        Ok(StoredChunk { address, bytes: chunk.bytes, filter_mask: chunk.filter_mask })
    }

    /// Elements of variable length; `None` for others, and where only libhdf5 reads them: they are
    /// elsewhere, or it alone knows a filter.
    ///
    /// # Errors
    /// `Format` if the dataset is damaged.
    pub(super) fn variable(&self) -> Result<Option<Variable>> {
        let (file, dataset) = (&self.checked.file, self.dataset()?);
        let is_here = dataset.external().is_empty() && !matches!(dataset.layout(), h5_read::Layout::Virtual { .. });
        let mut filters = dataset.pipeline().filters.iter().map(|filter| filter.id);
        let is_readable = is_here && filters.all(|id| OF_READER.contains(&id) || codec::find(i32::from(id)).is_some());
        Ok((is_readable && dataset.datatype().is_variable()).then(|| Variable { file: file.clone(), dataset }))
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.address).finish()
    }
}

impl Checked {
    /// Checks an object unless it was.
    fn check(&self, address: u64) -> Result<Arc<Known>> {
        if let Some(known) = self.objects.lock_unpoisoned().get(&address) {
            return known.clone();
        }
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
        let found = found.map(Arc::new);
        self.objects.lock_unpoisoned().insert(address, found.clone());
        found
    }

    fn read(&self, address: u64) -> Result<Known> {
        let read = || -> h5_read::Result<Result<Known>> {
            let object = self.file.object(address)?;
            if let Some(error) = object.damage().first() {
                return Ok(Err(converted(error)));
            }
            let mut heap = GlobalHeap::new(&self.file);
            for attribute in object.attributes().whole()? {
                heap.check(&attribute.datatype, &attribute.data)?;
            }
            let mut known = Known { kind: object.kind(), links: HashMap::new(), chunk_bytes: None };
            match known.kind {
                ObjectKind::Group => {
                    let links = object.group()?.links().whole()?.into_iter();
                    let hard = links.filter_map(|link| match link.target {
                        Target::Object(address) => Some((link.name, address)),
                        _ => None,
                    });
                    known.links = hard.collect();
                }
                ObjectKind::Dataset => {
                    let dataset = object.dataset()?;
                    known.chunk_bytes = bytes_of_chunks(&dataset)?;
                    dataset.mappings()?;
                }
                ObjectKind::Type => {}
            }
            Ok(Ok(known))
        };
        read().map_err(|error| converted(&error))?
    }
}

/// Bytes of all chunks with elements; `None` unless the dataset is in chunks.
fn bytes_of_chunks(dataset: &h5_read::Dataset) -> h5_read::Result<Option<u64>> {
    let chunks = dataset.chunks().whole()?;
    let bytes = chunks.iter().fold(0u64, |bytes, chunk| bytes.saturating_add(chunk.bytes));
    Ok(matches!(dataset.layout(), h5_read::Layout::Chunked(_)).then_some(bytes))
}

/// A dataset with elements of variable length: strings, sequences, references.
pub(super) struct Variable {
    file: h5_read::File,
    dataset: h5_read::Dataset,
}

impl Variable {
    pub(super) fn is_string(&self) -> bool {
        matches!(self.dataset.datatype().class, Class::VariableString(_))
    }

    /// Appends the strings of a region, slowest axis first, up to the first NUL each.
    ///
    /// # Errors
    /// `Format` if chunks or heaps are damaged.
    pub(super) fn strings(&self, region: &[Range<u64>], out: &mut Vec<BString>) -> Result<()> {
        let before = out.len();
        let read = self.each(region, &mut |heap, element| {
            let text = heap.sequence(element, 1)?;
            let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
            out.push(text[..end].into());
            Ok(())
        });
        if read.is_err() {
            out.truncate(before);
        }
        read
    }

    /// Checks the heap objects to which the elements of a region lead.
    ///
    /// # Errors
    /// As [`strings`](Self::strings).
    pub(super) fn check(&self, region: &[Range<u64>]) -> Result<()> {
        let datatype = self.dataset.datatype();
        self.each(region, &mut |heap, element| heap.check(datatype, element))
    }

    fn each(
        &self,
        region: &[Range<u64>],
        each: &mut dyn FnMut(&mut GlobalHeap, &[u8]) -> h5_read::Result<()>,
    ) -> Result<()> {
        let mut heap = GlobalHeap::new(&self.file);
        let size = self.dataset.datatype().size();
        let mut read = |region: &[Range<u64>]| -> h5_read::Result<()> {
            let bytes = self.dataset.read(region, &Codecs)?;
            bytes.chunks_exact(size as usize).try_for_each(|element| each(&mut heap, element))
        };
        in_steps(region, size, &mut read).map_err(|error| converted(&error))
    }
}

/// Calls `read` for parts of a region along its slowest axis, of few bytes where rows are short.
fn in_steps(
    region: &[Range<u64>],
    size: u64,
    read: &mut dyn FnMut(&[Range<u64>]) -> h5_read::Result<()>,
) -> h5_read::Result<()> {
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

/// The codecs of this program.
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

fn converted(error: &h5_read::Error) -> Error {
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
