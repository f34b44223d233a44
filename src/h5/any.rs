//! Reads objects of any HDF5 file for code that shows or checks files: also element types that
//! casacore lacks, and links without following them.
//!
//! Extents are in HDF5's order here, slowest axis first: those who look at any file expect numpy's.

use std::path::{Path, PathBuf};

use h5_read::ObjectKind;
use hdf5::dataset::Layout as StorageLayout;
use hdf5::{Location, LocationType};

use super::any_chunks::{AnyChunks, Steps};
use super::any_type::{AnyType, Visitor};
use super::checked::Place;
use super::codec::ChunkLimit;
use super::dataset::stored_bytes;
use super::elsewhere::{self, Admission};
use super::error::Hdf5Result;
use super::sys::{self, AnyValues, Link, StoredFilter, StoredType, Target};
use super::{Elsewhere, Group, IndexKind, Plugin, attribute};
use crate::error::{Error, Result, ResultExt};
use crate::limits;

/// libhdf5's cache of decoded chunks, unless all chunks at one index of the slowest axis need more.
const CACHE_BYTES: u64 = 8 << 20;

const MAX_CACHE_BYTES: u64 = 32 << 20;

/// Filtered chunks are decoded in memory as a whole.
const MAX_CHUNK_BYTES: u64 = 256 << 20;

/// Largest plausible ratio of elements in memory to stored bytes: compression and chunks never
/// written make it large.
const MAX_EXPANSION: u64 = 1 << 10;

pub(crate) enum AnyObject {
    Group(Group),
    Dataset(Box<AnyDataset>),
    Type(AnyNamedType),
}

pub(crate) struct AnyAttribute {
    attribute: hdf5::Attribute,
    stored: StoredType,
}

pub(crate) struct AnyDataset {
    dataset: hdf5::Dataset,
    stored: StoredType,
    elsewhere: Option<Elsewhere>,
    /// Extents of a virtual dataset at its creation, slowest axis first, used so that its source
    /// files stay closed; `None` asks libhdf5.
    apart: Option<Vec<u64>>,
    /// All chunks at one index of the slowest axis are cached, so that reading on along the faster
    /// axes decodes each only once.
    keeps_chunks: bool,
    /// `None` if only libhdf5 can read the chunks.
    chunks: Option<AnyChunks>,
    checked: Option<Place>,
}

pub(crate) struct AnyNamedType {
    location: Location,
    stored: StoredType,
}

/// The same for all hard links to an object of an open file; the text has no other meaning.
pub(crate) type ObjectId = String;

/// Which other files may be opened: relative names are below a directory, and a function accepts
/// paths.
pub(crate) struct Served<'a> {
    directory: &'a Path,
    is_served: &'a dyn Fn(&Path) -> bool,
}

impl<'a> Served<'a> {
    /// `is_served` gets canonical paths; `directory` is the canonical one of the file that names
    /// others.
    pub(crate) fn new(directory: &'a Path, is_served: &'a dyn Fn(&Path) -> bool) -> Self {
        Served { directory, is_served }
    }

    /// Canonical path of the file `name`; an error unless it is a regular file that may be opened.
    ///
    /// # Errors
    /// `NotFound`, and `Unsupported` if it is not served.
    pub(crate) fn find(&self, name: &str) -> Result<PathBuf> {
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
    pub(crate) fn link_total(&self) -> u64 {
        self.inner().len()
    }

    /// Does not follow the link; `None` for a missing one.
    pub(crate) fn any_link(&self, name: &str) -> Result<Option<Link>> {
        if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) || !self.inner().link_exists(name) {
            return Ok(None);
        }
        sys::link(self.inner(), name).map(Some).with_context(|| self.path().to_owned())
    }

    pub(crate) fn any_object(&self, name: &str) -> Result<AnyObject> {
        let open = || -> Result<_> {
            let checked = self.check(name)?;
            Ok(match self.inner().loc_type_by_name(name).h5()? {
                LocationType::Group => AnyObject::Group(self.group(name)?),
                LocationType::Dataset => {
                    AnyObject::Dataset(Box::new(AnyDataset::open(self.inner().dataset(name).h5()?, checked)?))
                }
                _ => {
                    let stored = StoredType::new(sys::open_type(self.inner(), name)?)?;
                    AnyObject::Type(AnyNamedType { location: sys::open_object(self.inner(), name)?, stored })
                }
            })
        };
        open().map_err(Error::blame_source).with_context(|| name.to_owned())
    }

    /// Identifies the group to which the hard link `name` leads; `None` if it leads to another kind
    /// of object.
    pub(crate) fn group_id(&self, name: &str) -> Result<Option<ObjectId>> {
        let open = || -> Result<_> {
            if let Some(group) = self.place_in_file() {
                let is_group = group.kind_of(name)? == ObjectKind::Group;
                return if is_group { Ok(Some(group.member(name)?.address().to_string())) } else { Ok(None) };
            }
            let info = self.inner().loc_info_by_name(name).h5()?;
            Ok((info.loc_type == LocationType::Group).then(|| format!("{:?}", info.token)))
        };
        open().with_context(|| name.to_owned())
    }

    pub(crate) fn id(&self) -> Result<ObjectId> {
        match self.place_in_file() {
            Some(group) => Ok(group.address().to_string()),
            None => Ok(format!("{:?}", self.inner().loc_info().h5()?.token)),
        }
    }

    /// `served` decides which other files may be opened for elements that are stored there.
    ///
    /// # Errors
    /// `Unsupported` if they are in files that are not served.
    pub(crate) fn any_elements(&self, name: &str, served: &Served<'_>) -> Result<AnyDataset> {
        let open = || -> Result<_> {
            let checked = self.check(name)?;
            let dataset = AnyDataset::open(self.inner().dataset(name).h5()?, checked.clone())?;
            let mut prefix = None;
            if let Some(found) = dataset.elsewhere.clone() {
                let mut objects = ServedObjects { root: self.root()? };
                elsewhere::check_elements(served, self.path(), &found, &mut objects)?;
                prefix = matches!(found, Elsewhere::Raw(_)).then_some(served.directory);
            }
            let slab_bytes = dataset.slab_bytes()?;
            let cache_bytes = slab_bytes.clamp(CACHE_BYTES, MAX_CACHE_BYTES);
            // a dataset has one prefix, and one cache, for as long as it is open
            drop(dataset);
            let opened = sys::open_cached_dataset(self.inner(), name, prefix, cache_bytes as usize)?;
            let stored = StoredType::new(opened.dtype().h5()?)?;
            let has_bytes = !stored.element().has_pointers();
            let chunks = if has_bytes { AnyChunks::new(&opened, checked.clone(), cache_bytes)? } else { None };
            let keeps_chunks = slab_bytes <= cache_bytes;
            Ok(AnyDataset { dataset: opened, stored, elsewhere: None, apart: None, keeps_chunks, chunks, checked })
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
        Ok((header.path().to_owned(), header.elsewhere().cloned()))
    }

    fn outside(&mut self, file: &Path, path: &str) -> Result<()> {
        // nothing that the other file names is followed
        let root = Group::of_root(super::File::open_unlocked(file)?.0.into_root()?);
        root.dataset(path).map(drop)
    }
}

impl AnyDataset {
    fn open(dataset: hdf5::Dataset, checked: Option<Place>) -> Result<Self> {
        let creation = dataset.dcpl().h5()?;
        let elsewhere = Elsewhere::of_dataset(&creation)?;
        // libhdf5 would open the sources to see how far they reach
        let apart = match &elsewhere {
            Some(Elsewhere::Virtual(_)) => sys::virtual_extents(&creation)?,
            _ => None,
        };
        let stored = StoredType::new(dataset.dtype().h5()?)?;
        Ok(AnyDataset { dataset, stored, elsewhere, apart, keeps_chunks: false, chunks: None, checked })
    }

    /// Address by libhdf5's count, as in references.
    pub(crate) fn header_address(&self) -> Result<u64> {
        sys::header_address(&self.dataset)
    }

    pub(crate) fn element(&self) -> &AnyType {
        self.stored.element()
    }

    /// Slowest axis first; `None` for a null dataspace.
    pub(crate) fn extents(&self) -> Result<Option<Vec<u64>>> {
        if let Some(extents) = &self.apart {
            return Ok(Some(extents.clone()));
        }
        extents(&self.dataset.space().h5()?)
    }

    /// Whether the slowest axis has no limit.
    pub(crate) fn grows(&self) -> Result<bool> {
        Ok(self.apart.is_none() && matches!(self.dataset.space().h5()?.maxdims().first(), Some(None)))
    }

    /// Shows rows that another process has appended.
    pub(crate) fn refresh(&self) -> Result<()> {
        sys::refresh_dataset(&self.dataset)
    }

    /// Extents of a chunk in elements, slowest axis first.
    pub(crate) fn chunk(&self) -> Result<Option<Vec<u64>>> {
        let chunk = self.dataset.dcpl().h5()?.get_chunk().h5()?;
        Ok(chunk.map(|chunk| chunk.into_iter().map(|extent| extent as u64).collect()))
    }

    pub(crate) fn index_kind(&self) -> Result<IndexKind> {
        if self.chunk()?.is_none() { Ok(IndexKind::None) } else { IndexKind::of(&self.dataset) }
    }

    /// Plugins that readers need.
    pub(crate) fn plugins(&self) -> Result<Vec<Plugin>> {
        Ok(sys::filters(&self.dataset.dcpl().h5()?)?.iter().filter_map(StoredFilter::plugin).collect())
    }

    pub(crate) fn has_committed_type(&self) -> Result<bool> {
        Ok(self.dataset.dtype().h5()?.is_committed())
    }

    /// Where elements are, if not in the dataset itself.
    pub(crate) fn elsewhere(&self) -> Option<&Elsewhere> {
        self.elsewhere.as_ref()
    }

    /// Ordered as a writer applies them.
    pub(crate) fn filters(&self) -> Result<Vec<(i32, String)>> {
        Ok(sys::filters(&self.dataset.dcpl().h5()?)?.into_iter().map(|filter| filter.id_and_name()).collect())
    }

    /// Whether a block of elements may end within a chunk: the next read does not decode it again.
    pub(crate) fn keeps_chunks(&self) -> bool {
        self.keeps_chunks
    }

    /// Decoded bytes of all chunks at one index of the slowest axis; 0 if there are none.
    fn slab_bytes(&self) -> Result<u64> {
        let (Some(chunk), Some(extents)) = (self.chunk()?, self.extents()?) else { return Ok(0) };
        let bytes = chunk.iter().fold(self.element().size as u64, |bytes, &extent| bytes.saturating_mul(extent));
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
    pub(crate) fn check_backed(&self, bytes: u64) -> Result<()> {
        let is_stored =
            matches!(self.dataset.dcpl().h5()?.get_layout().h5()?, StorageLayout::Chunked | StorageLayout::Contiguous);
        if is_stored && bytes > stored_bytes(&self.dataset, self.checked.as_ref()).saturating_mul(MAX_EXPANSION) {
            limits::unbacked_cell(bytes)?;
        }
        Ok(())
    }

    fn read(&self, block: &[Steps]) -> Result<AnyValues<'_>> {
        let file = self.dataset.space().h5()?;
        let [start, step, count] = [|axis: &Steps| axis.start, |axis: &Steps| axis.step, |axis: &Steps| axis.count]
            .map(|of| -> Vec<u64> { block.iter().map(of).collect() });
        sys::select_steps(&file, &start, &step, &count)?;
        let memory = sys::memory(&count)?;
        let chunk_bytes = self
            .chunk()?
            .unwrap_or_default()
            .iter()
            .fold(self.element().size as u64, |bytes, &extent| bytes.saturating_mul(extent));
        let _limit = ChunkLimit::new(chunk_bytes);
        self.check_variable(block)?;
        let target = Target::Dataset { dataset: &self.dataset, memory: &memory, file: &file };
        let read = sys::read_any(&target, &self.stored);
        read.or_else(|error| {
            // a filter that is missing is the better explanation
            let filters = sys::filters(&self.dataset.dcpl().h5()?)?;
            filters.iter().try_for_each(|filter| filter.check_available()).and(Err(error))
        })
    }

    /// Checks what elements of variable length lead to.
    fn check_variable(&self, block: &[Steps]) -> Result<()> {
        let Some(place) = self.checked.as_ref().filter(|_| self.element().has_pointers()) else { return Ok(()) };
        let Some(variable) = place.variable()? else { return Ok(()) };
        let end = |axis: &Steps| match axis.count.checked_sub(1) {
            Some(steps) => axis.start.saturating_add(axis.step.saturating_mul(steps)).saturating_add(1),
            None => axis.start,
        };
        let region: Vec<_> = block.iter().map(|axis| axis.start..end(axis)).collect();
        variable.check(&region)
    }

    /// `block` has an entry for each axis, slowest first; elements have their type in the file,
    /// last axis fastest.
    ///
    /// # Errors
    /// `Unsupported` if they contain pointers.
    pub(crate) fn read_bytes(&self, block: &[Steps]) -> Result<Vec<u8>> {
        if self.element().has_pointers() {
            return Err(Error::unsupported("elements of variable length, and references, have no bytes of their own"));
        }
        // libhdf5 reports the chunks that cannot be read or decoded here
        if let Some(chunks) = &self.chunks
            && let Ok(Some(bytes)) = chunks.read(&self.dataset, block)
        {
            return Ok(bytes);
        }
        Ok(self.read(block)?.into_bytes())
    }

    /// `block` has an entry for each axis, slowest first; elements come with the last axis fastest.
    pub(crate) fn visit(&self, block: &[Steps], visitor: &mut dyn Visitor) -> Result<()> {
        self.read(block)?.visit(visitor);
        Ok(())
    }

    pub(crate) fn attributes(&self) -> Result<Vec<String>> {
        attribute::names(&self.dataset)
    }

    pub(crate) fn any_attribute(&self, name: &str) -> Result<Option<AnyAttribute>> {
        AnyAttribute::open(&self.dataset, name)
    }
}

impl AnyNamedType {
    pub(crate) fn element(&self) -> &AnyType {
        self.stored.element()
    }

    pub(crate) fn attributes(&self) -> Result<Vec<String>> {
        attribute::names(&self.location)
    }

    pub(crate) fn any_attribute(&self, name: &str) -> Result<Option<AnyAttribute>> {
        AnyAttribute::open(&self.location, name)
    }
}

impl Group {
    pub(crate) fn any_attribute(&self, name: &str) -> Result<Option<AnyAttribute>> {
        AnyAttribute::open(self.inner(), name)
    }
}

impl AnyAttribute {
    fn open(owner: &Location, name: &str) -> Result<Option<Self>> {
        let open = || -> Result<_> {
            if name.contains('\0') || !sys::has_attribute(owner, name)? {
                return Ok(None);
            }
            let attribute = owner.attr(name).h5()?;
            let stored = StoredType::new(attribute.dtype().h5()?)?;
            Ok(Some(AnyAttribute { attribute, stored }))
        };
        open().map_err(Error::blame_source).with_context(|| format!("attribute {name}"))
    }

    pub(crate) fn element(&self) -> &AnyType {
        self.stored.element()
    }

    /// Slowest axis first; `None` for a null dataspace.
    pub(crate) fn extents(&self) -> Result<Option<Vec<u64>>> {
        extents(&self.attribute.space().h5()?)
    }

    /// Elements come with the last axis fastest.
    pub(crate) fn visit(&self, visitor: &mut dyn Visitor) -> Result<()> {
        sys::read_any(&Target::Attribute(&self.attribute), &self.stored)?.visit(visitor);
        Ok(())
    }
}

fn extents(space: &hdf5::Dataspace) -> Result<Option<Vec<u64>>> {
    if !space.is_valid() {
        return Err(Error::format("the dataspace cannot be read"));
    }
    Ok((!space.is_null()).then(|| space.shape().into_iter().map(|extent| extent as u64).collect()))
}
