//! Reads objects of any existing HDF5 file for code that shows or checks files: also element types
//! that casacore lacks, and links without following them.
//!
//! Extents are in HDF5's order here, slowest axis first: those who look at any file expect numpy's.

use std::path::{Path, PathBuf};

use h5_read::{Class, Datatype, Layout, ObjectKind, Reference};

use super::any_chunks::AnyChunks;
use super::dataset::{extents, grows, stored_bytes};
use super::elsewhere::{self, Admission};
use super::existing::{Place, Texts, text};
use super::stored_filter::StoredFilter;
use super::{Elsewhere, Group, IndexKind, Link, Plugin, Steps, library};
use crate::error::{Error, Result, ResultExt};
use crate::limits;

/// Decoded chunks that are cached, unless all chunks at one index of the slowest axis need more.
const CACHE_BYTES: u64 = 8 << 20;

const MAX_CACHE_BYTES: u64 = 32 << 20;

/// Filtered chunks are decoded in memory as a whole.
const MAX_CHUNK_BYTES: u64 = 256 << 20;

/// Largest plausible bytes of elements for a stored byte; chunks never written take none.
const MAX_EXPANSION: u64 = 1 << 10;

/// Elements between selected ones are read as well, in parts of at most this number of bytes.
const SPAN_BYTES: u64 = 16 << 20;

/// An object to which a hard link leads.
pub enum AnyObject {
    /// A group.
    Group(Group),
    /// A dataset, whose elements [`Group::any_elements`] opens.
    Dataset(Box<AnyDataset>),
    /// A committed (named) type.
    Type(AnyNamedType),
}

/// An attribute with elements of any type.
pub struct AnyAttribute {
    place: Place,
    attribute: h5_read::Attribute,
}

/// A dataset with elements of any type.
pub struct AnyDataset {
    place: Place,
    element: Datatype,
    elsewhere: Option<Elsewhere>,
    /// If only libhdf5 can read the elements: they are elsewhere, or a plugin decodes them.
    library: Option<library::Dataset>,
    /// All chunks at one index of the slowest axis are cached: reading on decodes each once.
    keeps_chunks: bool,
    chunks: Option<AnyChunks>,
}

/// A committed (named) type.
pub struct AnyNamedType {
    place: Place,
    element: Datatype,
}

/// Receives elements, each taken apart into values of a fixed size, strings and references.
pub trait Visitor {
    /// A number, a string with its padding, opaque bytes.
    fn fixed(&mut self, element: &Datatype, bytes: &[u8]);
    /// A string of variable length.
    fn text(&mut self, text: &[u8]);
    /// All bytes are 0 if it leads nowhere; one to an object is the address of its header.
    fn reference(&mut self, kind: Reference, bytes: &[u8]);
    /// Members of a compound, or elements of an array or a sequence follow.
    fn begin(&mut self);
    /// All of them were given.
    fn end(&mut self);
}

/// The same for all hard links to an object of an open file; the number has no other meaning.
pub type ObjectId = u64;

/// Which other files may be opened: relative names are below a directory, and a function accepts
/// paths.
pub struct Served<'a> {
    directory: &'a Path,
    is_served: &'a dyn Fn(&Path) -> bool,
}

impl<'a> Served<'a> {
    /// `is_served` gets canonical paths; `directory` is the canonical one of the file that names
    /// others.
    pub fn new(directory: &'a Path, is_served: &'a dyn Fn(&Path) -> bool) -> Self {
        Served { directory, is_served }
    }

    /// Canonical path of the file `name`; an error unless it is a regular file that may be opened.
    ///
    /// # Errors
    /// `NotFound`, and `Unsupported` if it is not served.
    pub fn find(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        let path = path.canonicalize().map_err(|error| {
            // the caller learns of every file on which the answer depends, also of one that is
            // missing
            let _ = (self.is_served)(&path);
            Error::from(error).context(name)
        })?;
        if !path.is_file() || !(self.is_served)(&path) {
            return Err(Error::elsewhere(format!("the file {name} is not among those that are served")));
        }
        Ok(path)
    }
}

impl Admission for Served<'_> {
    fn admit(&self, found: &Elsewhere, name: &str) -> Result<PathBuf> {
        self.find(name).with_context(|| found.to_string())
    }

    fn takes_other_files(&self) -> bool {
        true
    }
}

impl Group {
    fn existing(&self) -> Result<&Place> {
        self.place_in_file().ok_or_else(|| Error::usage("the file is not open for reading"))
    }

    /// Number of links.
    ///
    /// # Errors
    /// `Usage` for the group of a file that is not open for reading, as for all of these methods.
    pub fn link_total(&self) -> Result<u64> {
        Ok(self.existing()?.known().link_names().len() as u64)
    }

    /// The link `name`, which is not followed; `None` for a missing one.
    ///
    /// # Errors
    /// As for [`link_total`](Self::link_total).
    pub fn any_link(&self, name: &str) -> Result<Option<Link>> {
        Ok(self.existing()?.known().link(name))
    }

    /// Opens the object to which the hard link `name` leads.
    ///
    /// # Errors
    /// Those of reading, with the name.
    pub fn any_object(&self, name: &str) -> Result<AnyObject> {
        let open = || -> Result<_> {
            let place = self.existing()?.member(name)?;
            Ok(match place.known().kind() {
                ObjectKind::Group => AnyObject::Group(self.group(name)?),
                ObjectKind::Dataset => AnyObject::Dataset(Box::new(AnyDataset::open(place)?)),
                ObjectKind::Type => {
                    let element = place.known().committed_type()?;
                    AnyObject::Type(AnyNamedType { place, element })
                }
            })
        };
        open().map_err(Error::blame_source).with_context(|| name.to_owned())
    }

    /// Identifies the group to which the hard link `name` leads; `None` if it leads to another kind
    /// of object.
    ///
    /// # Errors
    /// Those of reading, with the name.
    pub fn group_id(&self, name: &str) -> Result<Option<ObjectId>> {
        let open = || -> Result<_> {
            let group = self.existing()?;
            let is_group = group.kind_of(name)? == ObjectKind::Group;
            Ok(if is_group { Some(group.address_of(name)?) } else { None })
        };
        open().with_context(|| name.to_owned())
    }

    /// Identifies this group.
    ///
    /// # Errors
    /// As for [`link_total`](Self::link_total).
    pub fn id(&self) -> Result<ObjectId> {
        Ok(self.existing()?.address())
    }

    /// `None` if the attribute is missing.
    ///
    /// # Errors
    /// As for [`link_total`](Self::link_total).
    pub fn any_attribute(&self, name: &str) -> Result<Option<AnyAttribute>> {
        Ok(AnyAttribute::open(self.existing()?, name))
    }

    /// Opens the dataset `name` to read its elements. `served` decides which other files may be
    /// opened for elements that are stored there.
    ///
    /// # Errors
    /// Those of reading; `Unsupported` for elements in files that are not served.
    pub fn any_elements(&self, name: &str, served: &Served<'_>) -> Result<AnyDataset> {
        let open = || -> Result<_> {
            let mut dataset = AnyDataset::open(self.existing()?.member(name)?)?;
            let mut prefix = None;
            if let Some(found) = &dataset.elsewhere {
                let mut objects = ServedObjects { root: self.root()? };
                elsewhere::check_elements(served, self.path(), found, &mut objects)?;
                prefix = matches!(found, Elsewhere::Raw(_)).then_some(served.directory);
            }
            let slab_bytes = dataset.slab_bytes()?;
            if dataset.elsewhere.is_some() || !dataset.place.is_readable() {
                dataset.place.known().check_elements()?;
                dataset.library = Some(self.library()?.dataset(name, prefix)?);
                dataset.keeps_chunks = slab_bytes <= CACHE_BYTES;
            } else if !has_pointers(&dataset.element) {
                let cache_bytes = slab_bytes.clamp(CACHE_BYTES, MAX_CACHE_BYTES);
                dataset.chunks = AnyChunks::new(&dataset.place, cache_bytes)?;
                dataset.keeps_chunks = slab_bytes <= cache_bytes;
            }
            dataset.elsewhere = None;
            Ok(dataset)
        };
        open().map_err(Error::blame_source).with_context(|| name.to_owned())
    }
}

/// Sources of a virtual dataset, in the file itself and in others.
struct ServedObjects {
    root: Group,
}

impl elsewhere::Objects for ServedObjects {
    fn inside(&self, path: &str) -> Result<(String, Option<Elsewhere>)> {
        let header = self.root.header(path)?;
        header.check_elements()?;
        Ok((header.path().to_owned(), header.elsewhere().cloned()))
    }

    fn outside(&mut self, file: &Path, path: &str) -> Result<()> {
        // nothing that the other file names is followed
        let root = Group::of_root(super::File::open_unlocked(file)?.0.into_root()?);
        root.header(path)?.check_elements()?;
        root.dataset(path).map(drop)
    }
}

impl AnyDataset {
    fn open(place: Place) -> Result<Self> {
        let known = place.known();
        let dataset = known.dataset()?;
        let (element, elsewhere) = (dataset.datatype().clone(), Elsewhere::of(dataset)?);
        Ok(AnyDataset { place, element, elsewhere, library: None, keeps_chunks: false, chunks: None })
    }

    /// Address as in references.
    pub(crate) fn header_address(&self) -> u64 {
        self.place.address()
    }

    /// Type of the elements.
    pub fn element(&self) -> &Datatype {
        &self.element
    }

    /// Slowest axis first; `None` for a null dataspace. Of a virtual dataset those at its creation,
    /// until its elements are opened.
    ///
    /// # Errors
    /// Those of reading.
    pub fn extents(&self) -> Result<Option<Vec<u64>>> {
        self.library.as_ref().map_or_else(|| extents(&self.place), library::Dataset::extents)
    }

    /// Whether the slowest axis has no limit.
    ///
    /// # Errors
    /// Those of reading.
    pub fn grows(&self) -> Result<bool> {
        Ok(!matches!(self.elsewhere, Some(Elsewhere::Virtual(_))) && grows(&self.place)?)
    }

    /// Shows rows that another process has appended.
    ///
    /// # Errors
    /// Those of reading.
    pub fn refresh(&self) -> Result<()> {
        self.library.as_ref().map_or(Ok(()), library::Dataset::refresh)?;
        self.place.refresh()
    }

    /// Extents of a chunk in elements, slowest axis first; `None` without chunks.
    ///
    /// # Errors
    /// Those of reading.
    pub fn chunk(&self) -> Result<Option<Vec<u64>>> {
        Ok(match self.place.known().dataset()?.layout() {
            Layout::Chunked(chunked) => Some(chunked.shape.clone()),
            _ => None,
        })
    }

    pub(crate) fn index_kind(&self) -> Result<IndexKind> {
        Ok(IndexKind::of(self.place.known().dataset()?.layout()))
    }

    fn stored_filters(&self) -> Result<Vec<StoredFilter>> {
        Ok(self.place.known().dataset()?.pipeline().filters.iter().map(StoredFilter::of).collect())
    }

    pub(crate) fn plugins(&self) -> Result<Vec<Plugin>> {
        Ok(self.stored_filters()?.iter().filter_map(StoredFilter::plugin).collect())
    }

    pub(crate) fn has_committed_type(&self) -> Result<bool> {
        Ok(self.place.known().dataset()?.shares_type())
    }

    pub(crate) fn elsewhere(&self) -> Option<&Elsewhere> {
        self.elsewhere.as_ref()
    }

    /// Numbers and names of the filters, ordered as a writer applies them.
    ///
    /// # Errors
    /// Those of reading.
    pub fn filters(&self) -> Result<Vec<(i32, String)>> {
        Ok(self.stored_filters()?.into_iter().map(|filter| filter.id_and_name()).collect())
    }

    /// Whether a block of elements may end within a chunk: the next read does not decode it again.
    pub fn keeps_chunks(&self) -> bool {
        self.keeps_chunks
    }

    /// Decoded bytes of all chunks at one index of the slowest axis; 0 if there are none.
    fn slab_bytes(&self) -> Result<u64> {
        let (Some(chunk), Some(extents)) = (self.chunk()?, self.extents()?) else { return Ok(0) };
        let bytes = self.chunk_bytes()?;
        if bytes > MAX_CHUNK_BYTES && !self.filters()?.is_empty() {
            return Err(Error::limit(format!(
                "a chunk with filters has {bytes} bytes; the limit is {MAX_CHUNK_BYTES}"
            )));
        }
        let along = extents.iter().zip(&chunk).skip(1).map(|(&extent, &chunk)| extent.div_ceil(chunk.max(1)));
        Ok(along.fold(bytes, u64::saturating_mul))
    }

    /// Fails if `bytes` is above a limit and far more than the stored bytes can decode to: damaged
    /// files may declare any size.
    ///
    /// # Errors
    /// `Limit`.
    pub fn check_backed(&self, bytes: u64) -> Result<()> {
        let known = self.place.known();
        let dataset = known.dataset()?;
        let is_stored = matches!(dataset.layout(), Layout::Chunked(_) | Layout::Contiguous { .. });
        if is_stored && dataset.external().is_empty() && bytes > stored_bytes(&self.place).saturating_mul(MAX_EXPANSION)
        {
            limits::unbacked_cell(bytes)?;
        }
        Ok(())
    }

    /// Reads a block, which has an entry for each axis, slowest first; elements are as in the file,
    /// last axis fastest.
    ///
    /// # Errors
    /// Those of reading; `Unsupported` if the elements contain pointers.
    pub fn read_bytes(&self, block: &[Steps]) -> Result<Vec<u8>> {
        if has_pointers(&self.element) {
            return Err(Error::unsupported("elements of variable length, and references, have no bytes of their own"));
        }
        self.raw(block)
    }

    fn raw(&self, block: &[Steps]) -> Result<Vec<u8>> {
        if let Some(dataset) = &self.library {
            let mut out = vec![0; elements_of(block)?.saturating_mul(self.element.size as usize)];
            self.explained(dataset.read(block, self.chunk_bytes()?, &mut out))?;
            return Ok(out);
        }
        // damage is reported by the usual way of reading
        if let Some(chunks) = &self.chunks
            && let Ok(Some(bytes)) = chunks.read(&self.place, block)
        {
            return Ok(bytes);
        }
        let mut out = Vec::new();
        let bytes = elements_of(block)?.checked_mul(self.element.size as usize);
        out.reserve_exact(bytes.ok_or_else(|| Error::format("the elements have 2^64 bytes or more"))?);
        read_steps(&self.place, block, self.element.size as usize, &mut out)?;
        Ok(out)
    }

    /// Bytes of a decoded chunk; of an element unless there are chunks.
    fn chunk_bytes(&self) -> Result<u64> {
        let chunk = self.chunk()?.unwrap_or_default();
        Ok(chunk.iter().fold(self.element.size(), |bytes, &extent| bytes.saturating_mul(extent)))
    }

    /// A filter that is missing is the better explanation.
    fn explained(&self, read: Result<()>) -> Result<()> {
        read.or_else(|error| self.stored_filters()?.iter().try_for_each(StoredFilter::check_available).and(Err(error)))
    }

    /// Reads a block, which has an entry for each axis, slowest first; elements come with the last
    /// axis fastest.
    ///
    /// # Errors
    /// Those of reading; `Unsupported` for types that are not decoded.
    pub fn visit(&self, block: &[Steps], visitor: &mut dyn Visitor) -> Result<()> {
        if let (Some(dataset), true) = (&self.library, has_pointers(&self.element)) {
            if !matches!(self.element.class, Class::VariableString(_)) {
                return Err(Error::unsupported("elements of variable length that are in other datasets"));
            }
            let mut strings = Vec::new();
            self.explained(dataset.strings(block, self.chunk_bytes()?, &mut strings))?;
            strings.iter().for_each(|string| visitor.text(string));
            return Ok(());
        }
        visit_all(self.place.texts(), &self.element, &self.raw(block)?, visitor)
    }

    /// Names of the attributes.
    pub fn attributes(&self) -> Vec<String> {
        names(&self.place)
    }

    /// `None` if the attribute is missing.
    pub fn any_attribute(&self, name: &str) -> Option<AnyAttribute> {
        AnyAttribute::open(&self.place, name)
    }
}

impl AnyNamedType {
    /// The type.
    pub fn element(&self) -> &Datatype {
        &self.element
    }

    /// Names of the attributes.
    pub fn attributes(&self) -> Vec<String> {
        names(&self.place)
    }

    /// `None` if the attribute is missing.
    pub fn any_attribute(&self, name: &str) -> Option<AnyAttribute> {
        AnyAttribute::open(&self.place, name)
    }
}

fn names(place: &Place) -> Vec<String> {
    place.known().attributes().iter().map(|attribute| text(&attribute.name)).collect()
}

impl AnyAttribute {
    fn open(place: &Place, name: &str) -> Option<Self> {
        let attribute = place.known().attribute(name)?.clone();
        Some(AnyAttribute { place: place.clone(), attribute })
    }

    /// Type of the elements.
    pub fn element(&self) -> &Datatype {
        &self.attribute.datatype
    }

    /// Slowest axis first; `None` for a null dataspace.
    pub fn extents(&self) -> Option<Vec<u64>> {
        let space = &self.attribute.space;
        (space.kind != h5_read::SpaceKind::Null).then(|| space.extents.clone())
    }

    /// Elements come with the last axis fastest.
    ///
    /// # Errors
    /// Those of reading; `Unsupported` for types that are not decoded.
    pub fn visit(&self, visitor: &mut dyn Visitor) -> Result<()> {
        visit_all(self.place.attribute_texts(), &self.attribute.datatype, &self.attribute.data, visitor)
    }
}

fn elements_of(block: &[Steps]) -> Result<usize> {
    let elements = block.iter().try_fold(1u64, |elements, axis| elements.checked_mul(axis.count));
    let elements = elements.and_then(|elements| usize::try_from(elements).ok());
    elements.ok_or_else(|| Error::format("the block has 2^64 elements or more"))
}

/// Appends the selected elements, last axis fastest.
fn read_steps(place: &Place, block: &[Steps], size: usize, out: &mut Vec<u8>) -> Result<()> {
    if block.iter().any(|axis| axis.count == 0) {
        return Ok(());
    }
    let region: Vec<_> = block.iter().map(|axis| axis.start..axis.last().saturating_add(1)).collect();
    let spanned = region.iter().fold(size as u64, |bytes, range| bytes.saturating_mul(range.end - range.start));
    let Some(stepped) = block.iter().position(|axis| axis.step > 1 && axis.count > 1) else {
        let start = out.len();
        out.resize(start + elements_of(block)? * size, 0);
        return place.read(&region, &mut out[start..]);
    };
    if spanned > SPAN_BYTES {
        // the parts of one index of the slowest axis with more than one follow each other
        let slowest = block.iter().position(|axis| axis.count > 1).unwrap_or(stepped);
        let mut part = block.to_vec();
        for number in 0..block[slowest].count {
            part[slowest] = Steps { start: block[slowest].start + number * block[slowest].step, step: 1, count: 1 };
            read_steps(place, &part, size, out)?;
        }
        return Ok(());
    }
    let mut whole = vec![0; usize::try_from(spanned).unwrap_or(usize::MAX)];
    place.read(&region, &mut whole)?;
    pick(block, &region.iter().map(|range| range.end - range.start).collect::<Vec<_>>(), size, &whole, out);
    Ok(())
}

/// `whole` has the extents `extents`; appends its elements that `block` selects.
fn pick(block: &[Steps], extents: &[u64], size: usize, whole: &[u8], out: &mut Vec<u8>) {
    let (Some((axis, block)), Some((_, extents))) = (block.split_first(), extents.split_first()) else {
        out.extend_from_slice(&whole[..size]);
        return;
    };
    let bytes = extents.iter().product::<u64>() as usize * size;
    for number in 0..axis.count {
        let start = (number * axis.step) as usize * bytes;
        pick(block, extents, size, &whole[start..start + bytes], out);
    }
}

/// Whether elements contain addresses of values stored elsewhere: of variable length, or
/// references.
pub fn has_pointers(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::VariableString(_) | Class::Sequence(_) | Class::Reference(_) => true,
        Class::Compound(members) => members.iter().any(|member| has_pointers(&member.datatype)),
        Class::Array { base, .. } => has_pointers(base),
        _ => false,
    }
}

/// Whether elements contain references of HDF5 1.12 or newer, which are not decoded.
fn is_opaque_to_us(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Reference(kind) => !matches!(kind, Reference::Object | Reference::Region),
        Class::Sequence(base) | Class::Array { base, .. } => is_opaque_to_us(base),
        Class::Compound(members) => members.iter().any(|member| is_opaque_to_us(&member.datatype)),
        _ => false,
    }
}

fn visit_all(mut texts: Texts<'_>, datatype: &Datatype, bytes: &[u8], visitor: &mut dyn Visitor) -> Result<()> {
    if is_opaque_to_us(datatype) {
        return Err(Error::unsupported("elements of this type are not decoded"));
    }
    bytes
        .chunks_exact((datatype.size as usize).max(1))
        .try_for_each(|bytes| visit(&mut texts, datatype, bytes, visitor))
}

fn visit(texts: &mut Texts<'_>, datatype: &Datatype, bytes: &[u8], visitor: &mut dyn Visitor) -> Result<()> {
    match &datatype.class {
        Class::VariableString(_) => visitor.text(texts.text(bytes)?),
        Class::Sequence(base) => {
            let elements = texts.sequence(bytes, base.size)?.to_vec();
            visitor.begin();
            let mut elements = elements.chunks_exact((base.size as usize).max(1));
            elements.try_for_each(|bytes| visit(texts, base, bytes, visitor))?;
            visitor.end();
        }
        Class::Compound(members) => {
            visitor.begin();
            for member in members {
                let start = member.offset as usize;
                let bytes = bytes.get(start..start + member.datatype.size as usize).unwrap_or_default();
                visit(texts, &member.datatype, bytes, visitor)?;
            }
            visitor.end();
        }
        Class::Array { base, extents } => visit_array(texts, extents, base, bytes, visitor)?,
        Class::Complex(part) => {
            visitor.begin();
            bytes.chunks_exact((part.size as usize).max(1)).for_each(|bytes| visitor.fixed(part, bytes));
            visitor.end();
        }
        Class::Reference(kind) => visitor.reference(*kind, bytes),
        _ => visitor.fixed(datatype, bytes),
    }
    Ok(())
}

/// Passes nested lists to `visitor`, one level per axis.
fn visit_array(
    texts: &mut Texts<'_>,
    extents: &[u32],
    base: &Datatype,
    bytes: &[u8],
    visitor: &mut dyn Visitor,
) -> Result<()> {
    let Some((&extent, inner)) = extents.split_first() else { return visit(texts, base, bytes, visitor) };
    visitor.begin();
    let part = bytes.len() / (extent as usize).max(1);
    if part > 0 {
        bytes.chunks_exact(part).try_for_each(|bytes| visit_array(texts, inner, base, bytes, visitor))?;
    }
    visitor.end();
    Ok(())
}
