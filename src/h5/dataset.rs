//! Datasets of HDF5 files: creates them, and reads and writes their elements by region and by
//! chunk.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use bstr::BString;
use h5_read::{ChunkIndex, Class, Datatype, Layout as StoredLayout, SpaceKind};

use super::attribute::Owner;
use super::existing::Place;
use super::stored_filter::StoredFilter;
use super::{
    Attribute, ChunkInfo, Compression, Elsewhere, Filter, Pipeline, Plugin, Steps, StoredChunk, StoredElement, Wide,
    datatype, elements, library,
};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::limits;
use crate::value::{ByteOrder, DataType, Region, Shape, Values, for_each_type};

/// Largest plausible ratio of memory to stored bytes: chunks never written take no bytes.
const MAX_EXPANSION: u64 = 1 << 10;

/// Datasets of a scale in a file of [`Bounds::Earliest`]: 16 bytes each in one attribute of 64 KiB.
pub(crate) const MAX_OLD_SCALED: usize = 4000;

/// Chunks dropped at most: libhdf5 looks for each, and damaged files may declare any extent.
const MAX_DROPPED: u64 = 1 << 22;

#[derive(Debug, Clone)]
pub(crate) struct DatasetSpec<'a> {
    /// Any type but a record.
    pub(crate) element: DataType,
    pub(crate) shape: &'a Shape,
    /// `None` for one contiguous block. Chunks exceed the dataset only on a slowest axis that can
    /// grow, or if it is empty and so chunked: `h5repack -f` of HDF5 1.10 refuses empty blocks.
    pub(crate) chunk: Option<Shape>,
    /// The slowest axis may grow.
    pub(crate) appendable: bool,
    /// Ignored for one contiguous block.
    pub(crate) compression: Compression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allocation {
    Chunks,
    /// Space for all chunks at creation, in order, first axis fastest, without an index. Only for
    /// unfiltered chunks of a dataset that cannot grow; every chunk has to be written.
    Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexKind {
    None,
    BtreeV1,
    Single,
    Implicit,
    FixedArray,
    ExtensibleArray,
    BtreeV2,
    Unknown(u32),
}

impl IndexKind {
    pub(super) fn of(layout: &StoredLayout) -> Self {
        let StoredLayout::Chunked(chunked) = layout else { return IndexKind::None };
        match chunked.index {
            ChunkIndex::BTree1 => IndexKind::BtreeV1,
            ChunkIndex::Single => IndexKind::Single,
            ChunkIndex::Implicit => IndexKind::Implicit,
            ChunkIndex::FixedArray => IndexKind::FixedArray,
            ChunkIndex::ExtensibleArray => IndexKind::ExtensibleArray,
            ChunkIndex::BTree2 => IndexKind::BtreeV2,
        }
    }
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IndexKind::None => "none",
            IndexKind::BtreeV1 => "btree_v1",
            IndexKind::Single => "single",
            IndexKind::Implicit => "implicit",
            IndexKind::FixedArray => "fixed_array",
            IndexKind::ExtensibleArray => "extensible_array",
            IndexKind::BtreeV2 => "btree_v2",
            IndexKind::Unknown(number) => return write!(f, "unknown_{number}"),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Chunks,
    /// Offset of the elements; `None` if nothing was ever written.
    Block(Option<u64>),
    Header,
    /// Only libhdf5 can read the elements: `in other files`, `in other datasets`.
    Other(&'static str),
}

/// A dataset opened for its attributes and to find where its elements are.
pub(crate) struct Header {
    at: At,
    path: String,
    elsewhere: Option<Elsewhere>,
}

pub(super) enum At {
    /// The file is one that this program makes or changes, or elements are elsewhere.
    Library(library::Dataset),
    File {
        place: Place,
        library: OnceLock<library::Dataset>,
    },
}

impl At {
    pub(super) fn file(place: Place) -> Self {
        At::File { place, library: OnceLock::new() }
    }

    fn owner(&self) -> Owner<'_> {
        match self {
            At::Library(dataset) => Owner::Dataset(dataset),
            At::File { place, .. } => Owner::Place(place),
        }
    }

    /// Without the text of variable-length strings.
    fn stored_bytes(&self) -> u64 {
        match self {
            At::Library(dataset) => dataset.stored_bytes(),
            At::File { place, .. } => stored_bytes(place),
        }
    }
}

impl Header {
    pub(super) fn new(at: At, path: String) -> Result<Self> {
        let find = || match &at {
            At::Library(dataset) => dataset.elsewhere(),
            At::File { place, .. } => Elsewhere::of(place.known().dataset()?),
        };
        let elsewhere = find().map_err(Error::blame_source).with_context(|| format!("dataset {path}"))?;
        Ok(Header { at, path, elsewhere })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn elsewhere(&self) -> Option<&Elsewhere> {
        self.elsewhere.as_ref()
    }

    /// Checks what libhdf5 would follow when it reads elements.
    pub(super) fn check_elements(&self) -> Result<()> {
        match &self.at {
            At::Library(_) => Ok(()),
            At::File { place, .. } => place.known().check_elements().with_context(|| format!("dataset {}", self.path)),
        }
    }

    /// The elements are in the dataset itself.
    pub(super) fn into_dataset(self) -> Dataset {
        Dataset::at(self.at, self.path)
    }

    /// 0 if the elements are in other files or datasets.
    pub(crate) fn stored_bytes(&self) -> u64 {
        if self.elsewhere.is_some() { 0 } else { self.at.stored_bytes() }
    }

    /// Why attributes are missing, of a file that is [salvaged](super::File::open_to_salvage).
    pub(crate) fn damage(&self) -> Option<Error> {
        match &self.at {
            At::Library(_) => None,
            At::File { place, .. } => Some(place.known().damage()?.clone().context(format!("dataset {}", self.path))),
        }
    }

    pub(crate) fn attributes(&self) -> Result<Vec<String>> {
        self.at.owner().names().with_context(|| format!("dataset {}", self.path))
    }

    pub(crate) fn attribute(&self, name: &str) -> Result<Option<Attribute>> {
        self.at.owner().get(name).with_context(|| format!("dataset {}", self.path))
    }

    /// Extents have the slowest axis first; none for a single value.
    pub(crate) fn shaped_attribute(&self, name: &str) -> Result<(Attribute, Vec<u64>)> {
        self.at.owner().shaped(name).with_context(|| format!("dataset {}", self.path))
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Header").field(&self.path).field(&self.elsewhere).finish()
    }
}

pub(crate) struct Dataset {
    at: At,
    path: String,
    layout: OnceLock<Layout>,
    /// The dataset, or elements of it, are in other files: only libhdf5 reads them.
    outside: bool,
}

/// Properties that never change.
pub(super) struct Layout {
    pub(super) chunk: Option<Shape>,
    pub(super) filters: Vec<StoredFilter>,
    pub(super) datatype: Datatype,
}

impl Dataset {
    fn at(at: At, path: String) -> Self {
        Dataset { at, path, layout: OnceLock::new(), outside: false }
    }

    pub(super) fn new(dataset: library::Dataset, path: String) -> Self {
        Self::at(At::Library(dataset), path)
    }

    pub(super) fn outside(self, outside: bool) -> Self {
        Dataset { outside, ..self }
    }

    /// `Format` if the dataset is damaged.
    pub(super) fn library(&self) -> Result<&library::Dataset> {
        let (place, library) = match &self.at {
            At::Library(dataset) => return Ok(dataset),
            At::File { place, library } => (place, library),
        };
        if let Some(dataset) = library.get() {
            return Ok(dataset);
        }
        let dataset = place.library()?.dataset_at(place.address())?;
        Ok(library.get_or_init(|| dataset))
    }

    fn place_in_file(&self) -> Option<&Place> {
        match &self.at {
            At::Library(_) => None,
            At::File { place, .. } => Some(place),
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn is_outside(&self) -> bool {
        self.outside
    }

    fn place(&self) -> String {
        format!("dataset {}", self.path)
    }

    fn layout(&self) -> Result<&Layout> {
        if let Some(layout) = self.layout.get() {
            return Ok(layout);
        }
        let read = || -> Result<_> {
            match &self.at {
                At::Library(dataset) => dataset.layout(),
                At::File { place, .. } => Layout::of(place.known().dataset()?),
            }
        };
        // the file is to blame where the hdf5 crate sees wrong use
        let of_file = |error: Error| match error.kind() {
            ErrorKind::Usage => Error::format(error.to_string()),
            _ => error,
        };
        let layout = read().map_err(of_file).with_context(|| self.place())?;
        Ok(self.layout.get_or_init(|| layout))
    }

    /// `Unsupported` for a null dataspace.
    pub(crate) fn shape(&self) -> Result<Shape> {
        let extents = match &self.at {
            At::Library(dataset) => dataset.extents().with_context(|| self.place())?,
            At::File { place, .. } => extents(place)?,
        };
        let extents = extents.map(|extents| extents.into_iter().rev().collect());
        extents.ok_or_else(|| Error::unsupported("the dataset has a null dataspace").context(self.place()))
    }

    pub(crate) fn is_appendable(&self) -> Result<bool> {
        match &self.at {
            At::Library(dataset) => dataset.grows().with_context(|| self.place()),
            At::File { place, .. } => grows(place),
        }
    }

    pub(crate) fn chunk(&self) -> Result<Option<Shape>> {
        Ok(self.layout()?.chunk.clone())
    }

    /// Fails with `Unsupported` and the name of an HDF5 type that casacore has nothing like.
    pub(crate) fn data_type(&self) -> Result<DataType> {
        datatype::recognise(&self.layout()?.datatype).with_context(|| self.place())
    }

    /// Short for int8, Double for other floating-point numbers: types that hold the elements.
    pub(crate) fn nearest_type(&self) -> Result<DataType> {
        datatype::nearest(&self.layout()?.datatype).with_context(|| self.place())
    }

    pub(crate) fn index_kind(&self) -> Result<IndexKind> {
        match &self.at {
            At::File { place, .. } => Ok(IndexKind::of(place.known().dataset()?.layout())),
            At::Library(_) if self.layout()?.chunk.is_none() => Ok(IndexKind::None),
            At::Library(dataset) => dataset.index_kind().with_context(|| self.place()),
        }
    }

    /// Ordered as a writer applies them: `shuffle`, `deflate(4)`.
    pub(crate) fn filters(&self) -> Result<Vec<String>> {
        Ok(self.layout()?.filters.iter().map(ToString::to_string).collect())
    }

    /// Number and parameters of each, ordered as a writer applies them.
    pub(crate) fn filter_parameters(&self) -> Result<Vec<(i32, Vec<u32>)>> {
        Ok(self.layout()?.filters.iter().map(|filter| (filter.id, filter.parameters.clone())).collect())
    }

    /// Bytes of an element in the file.
    pub(super) fn element_bytes(&self) -> Result<usize> {
        Ok(self.layout()?.datatype.size as usize)
    }

    /// `None` if more than the byte order has to be converted to [`data_type`](Self::data_type).
    pub(crate) fn raw_order(&self) -> Result<Option<ByteOrder>> {
        let element = self.data_type()?;
        let is_single = !matches!(element, DataType::Complex | DataType::DComplex | DataType::String);
        let order = datatype::plain_order(&self.layout()?.datatype, element);
        Ok(order.filter(|&order| order == ByteOrder::Little || is_single))
    }

    pub(crate) fn plugins(&self) -> Result<Vec<Plugin>> {
        Ok(self.layout()?.filters.iter().filter_map(StoredFilter::plugin).collect())
    }

    /// `None` if only libhdf5 can run the filters.
    pub(crate) fn pipeline(&self) -> Result<Option<Pipeline>> {
        let layout = self.layout()?;
        let element_size = layout.datatype.size as usize;
        let filters = layout.filters.iter().map(|filter| filter.own(element_size)).collect::<Option<Vec<_>>>();
        Ok(filters.map(Pipeline::new).filter(Pipeline::is_decodable))
    }

    /// `Unsupported`, naming a filter that neither this program, libhdf5 nor a plugin has.
    fn check_filters(&self) -> Result<()> {
        self.layout()?.filters.iter().try_for_each(StoredFilter::check_available)
    }

    /// Bytes of a decoded chunk.
    fn chunk_bytes(&self) -> Result<u64> {
        let layout = self.layout()?;
        let elements = layout.chunk.as_ref().map_or(Ok(0), Shape::elements)?;
        Ok(elements.saturating_mul(layout.datatype.size()))
    }

    /// Largest plausible number of decoded bytes.
    fn bound(&self) -> Result<u64> {
        let codec = |filter: &StoredFilter| match filter.own(1) {
            Some(Filter::Codec { codec, .. }) => Some(codec),
            _ => None,
        };
        let codecs = self.layout()?.filters.iter().filter_map(codec);
        let stored = self.stored_bytes();
        Ok(codecs.fold(stored.saturating_mul(MAX_EXPANSION), |bytes, codec| bytes.max(codec.bound(stored))))
    }

    /// Without the text of variable-length strings.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.at.stored_bytes()
    }

    /// `out` has the dataset's type.
    pub(crate) fn read_region(&self, region: &Region, out: &mut Values) -> Result<()> {
        let mut read = || {
            let count = self.check(region, out.data_type())?;
            if count == 0 {
                return Ok(());
            }
            self.check_backed(count)?;
            let layout = self.layout()?;
            if let Values::String(strings) = out
                && matches!(layout.datatype.class, Class::VariableString(_))
            {
                return self.read_strings(region, strings);
            }
            match datatype::plain_order(&layout.datatype, out.data_type()) {
                Some(order) if out.data_type() != DataType::Bool => {
                    let start = out.len();
                    let read = out.extend_by_reading(count, order, |bytes| self.raw(region, bytes));
                    if read.is_err() {
                        for_each_type!(out, v => v.truncate(start));
                    }
                    read
                }
                _ => elements::append(&layout.datatype, &self.raw_elements(region, count)?, None, out),
            }
        };
        read().with_context(|| self.place())
    }

    fn read_strings(&self, region: &Region, out: &mut Vec<BString>) -> Result<()> {
        if let Some(place) = self.place_in_file().filter(|place| place.is_readable()) {
            return place.strings(&ranges(region), out);
        }
        let read = self.library()?.strings(&block(region), self.chunk_bytes()?, out);
        // a filter that is missing is the better explanation
        read.or_else(|error| self.check_filters().and(Err(error)))
    }

    fn raw_elements(&self, region: &Region, count: usize) -> Result<Vec<u8>> {
        let bytes = count.checked_mul(self.layout()?.datatype.size as usize);
        let mut out = vec![0; bytes.ok_or_else(|| Error::format("the elements have 2^64 bytes or more"))?];
        self.raw(region, &mut out)?;
        Ok(out)
    }

    fn raw(&self, region: &Region, out: &mut [u8]) -> Result<()> {
        if let Some(place) = self.place_in_file().filter(|place| place.is_readable()) {
            return place.read(&ranges(region), out);
        }
        let read = self.library()?.read(&block(region), self.chunk_bytes()?, out);
        // a filter that is missing is the better explanation
        read.or_else(|error| self.check_filters().and(Err(error)))
    }

    /// `Unsupported` with the name of the type unless `Wide` can hold its numbers.
    pub(crate) fn wide_kind(&self) -> Result<Wide> {
        Wide::kind(&self.layout()?.datatype).with_context(|| self.place())
    }

    pub(crate) fn read_wide(&self, region: &Region) -> Result<Wide> {
        let read = || {
            region.check(&self.shape()?)?;
            let count = region.shape.elements()? as usize;
            if count == 0 {
                return Wide::kind(&self.layout()?.datatype);
            }
            self.check_backed(count)?;
            Wide::of(&self.layout()?.datatype, &self.raw_elements(region, count)?)
        };
        read().with_context(|| self.place())
    }

    pub(crate) fn type_name(&self) -> Result<String> {
        Ok(datatype::name(&self.layout()?.datatype))
    }

    /// `Unsupported`, with its name, for a type of variable length or that is not written here.
    pub(crate) fn element(&self) -> Result<StoredElement> {
        StoredElement::of(&self.layout()?.datatype).with_context(|| self.place())
    }

    /// Whether bytes of elements are those that this program stores.
    pub(crate) fn stores(&self, element: &StoredElement) -> Result<bool> {
        Ok(element.is_stored_as(&self.layout()?.datatype))
    }

    /// Appends `rows`: numbers little-endian, strings as stored, records packed.
    pub(crate) fn read_rows(&self, element: &StoredElement, rows: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let mut read = || {
            let shape = self.shape()?;
            let (cell, has) = shape.split_last().ok_or_else(|| Error::unsupported("the dataset has no axes"))?;
            if rows.start > rows.end || rows.end > has {
                return Err(Error::usage(format!(
                    "rows {} to {} are asked for, the dataset has {has}",
                    rows.start, rows.end
                )));
            }
            let zeros: Shape = cell.iter().map(|_| 0).collect();
            let (start, extent) = (zeros.with_axis(rows.start), cell.with_axis(rows.end - rows.start));
            let count = extent.elements()? as usize;
            if count == 0 {
                return Ok(());
            }
            self.check_backed(count)?;
            let (stored, region) = (&self.layout()?.datatype, Region { start, shape: extent });
            if !element.is_stored_as(stored) {
                return element.pack(stored, &self.raw_elements(&region, count)?, out);
            }
            let at = out.len();
            out.resize(at + count * stored.size as usize, 0);
            let read = self.raw(&region, &mut out[at..]);
            if read.is_err() {
                out.truncate(at);
            }
            read
        };
        read().with_context(|| self.place())
    }

    /// Read where no element was written, in the form of [`read_rows`](Self::read_rows).
    pub(crate) fn fill(&self, element: &StoredElement) -> Result<Vec<u8>> {
        let read = || {
            let stored = &self.layout()?.datatype;
            let bytes = self.fill_bytes()?.unwrap_or_else(|| vec![0; stored.size as usize]);
            let mut out = Vec::with_capacity(element.packed_bytes());
            element.pack(stored, &bytes, &mut out)?;
            Ok::<_, Error>(out)
        };
        read().with_context(|| self.place())
    }

    /// The fill value as the file has it, if it defines one.
    fn fill_bytes(&self) -> Result<Option<Vec<u8>>> {
        match &self.at {
            At::Library(dataset) => dataset.fill(),
            At::File { place, .. } => Ok(match place.known().dataset()?.fill().map(|fill| &fill.value) {
                Some(h5_read::FillValue::Bytes(bytes)) => Some(bytes.clone()),
                _ => None,
            }),
        }
    }

    /// `values` have the dataset's type; `Usage` if a string contains NUL or is not UTF-8.
    pub(crate) fn write_region(&self, region: &Region, values: &Values) -> Result<()> {
        let write = || {
            let count = self.check(region, values.data_type())?;
            if count != values.len() {
                return Err(Error::usage(format!("{} values do not fill a region of {count}", values.len())));
            }
            if count == 0 {
                return Ok(());
            }
            self.library()?.write(&block(region), self.chunk_bytes()?, values)
        };
        write().with_context(|| self.place())
    }

    /// Checks region and type; returns the number of elements.
    fn check(&self, region: &Region, element: DataType) -> Result<usize> {
        region.check(&self.shape()?)?;
        let own = datatype::recognise(&self.layout()?.datatype)?;
        if own != element {
            return Err(Error::usage(format!("{element} values where the dataset has {own}")));
        }
        Ok(region.shape.elements()? as usize)
    }

    /// Fails if stored bytes cannot decode to `count` elements: damaged files declare any extents.
    fn check_backed(&self, count: usize) -> Result<()> {
        let bytes = (count as u64).saturating_mul(self.layout()?.datatype.size());
        // the stored bytes are counted only where they matter
        limits::unbacked_cell(bytes).or_else(|error| if bytes > self.bound()? { Err(error) } else { Ok(()) })
    }

    /// `index` counts chunks, fastest axis first. `bytes` are as stored: filtered, except by filter
    /// `i` if bit `i` of `filter_mask` is set, and padded to the full extents at the far edges.
    pub(crate) fn write_chunk(&self, index: &[u64], bytes: &[u8], filter_mask: u32) -> Result<()> {
        let write = || {
            let layout = self.layout()?;
            let Some(chunk) = layout.chunk.as_ref().filter(|chunk| chunk.len() == index.len()) else {
                return Err(Error::usage(format!("the dataset has no chunks with {} axes", index.len())));
            };
            let plain_bytes = chunk.elements()? * layout.datatype.size();
            let is_plain = layout.filters.is_empty() || filter_mask.trailing_ones() as usize >= layout.filters.len();
            if is_plain && bytes.len() as u64 != plain_bytes {
                return Err(Error::usage(format!(
                    "{} bytes do not fill a chunk, which has {plain_bytes}",
                    bytes.len()
                )));
            }
            let offset: Vec<u64> = index.iter().zip(chunk.iter()).rev().map(|(index, chunk)| index * chunk).collect();
            self.library()?.write_chunk(&offset, filter_mask, bytes)
        };
        write().with_context(|| self.place())
    }

    /// Offset of the first chunk if all follow each other, or of a single unfiltered one.
    pub(crate) fn block(&self) -> Result<Option<u64>> {
        let one_chunk = || -> Result<bool> { Ok(self.layout()?.filters.is_empty()) };
        match self.index_kind()? {
            IndexKind::Implicit => {}
            IndexKind::Single if one_chunk()? => {}
            _ => return Ok(None),
        }
        let origin = vec![0; self.shape()?.len()];
        let find = || match &self.at {
            At::Library(dataset) => dataset.chunk(&origin),
            At::File { place, .. } => place.chunk(&origin),
        };
        let found = find().with_context(|| self.place())?;
        Ok(found.map(|chunk| chunk.address))
    }

    pub(crate) fn link_count(&self) -> Result<usize> {
        match &self.at {
            At::Library(dataset) => dataset.link_count().with_context(|| self.place()),
            At::File { place, .. } => place.known().link_count().with_context(|| self.place()),
        }
    }

    pub(super) fn check_addresses(&self) -> Result<()> {
        let At::Library(dataset) = &self.at else { return Ok(()) };
        dataset.check_addresses().with_context(|| self.place())
    }

    /// Visits written chunks, in no particular order.
    pub(crate) fn each_chunk(&self, visit: impl FnMut(ChunkInfo)) -> Result<()> {
        self.visit(visit, |at, visit| match at {
            At::Library(dataset) => dataset.each_chunk(visit),
            At::File { place, .. } => place.each_chunk(visit),
        })
    }

    /// Chunks in no particular order; those of later rows may be damaged.
    pub(crate) fn chunks_of_rows(&self, rows: u64) -> Result<Vec<ChunkInfo>> {
        let mut chunks = Vec::new();
        self.visit(
            |info| chunks.push(info),
            |at, visit| match at {
                At::Library(dataset) => dataset.each_chunk(visit),
                At::File { place, .. } => place.each_chunk_of_rows(rows, visit),
            },
        )?;
        Ok(chunks)
    }

    /// Written chunks that can be found, and why others cannot.
    pub(crate) fn intact_chunks(&self) -> Result<(Vec<ChunkInfo>, Option<Error>)> {
        let (mut chunks, mut damage) = (Vec::new(), None);
        self.visit(
            |info| chunks.push(info),
            |at, visit| {
                match at {
                    At::Library(dataset) => dataset.each_chunk(visit)?,
                    At::File { place, .. } => damage = place.each_intact_chunk(visit)?,
                }
                Ok(())
            },
        )?;
        Ok((chunks, damage.map(|error| error.context(self.place()))))
    }

    fn visit(
        &self,
        mut visit: impl FnMut(ChunkInfo),
        walk: impl FnOnce(&At, &mut dyn FnMut(&[u64], StoredChunk)) -> Result<()>,
    ) -> Result<()> {
        let Some(chunk) = &self.layout()?.chunk else { return Ok(()) };
        self.check_addresses()?;
        let index =
            |offset: &[u64]| offset.iter().rev().zip(chunk.iter()).map(|(offset, chunk)| offset / chunk).collect();
        let mut visit = |offset: &[u64], StoredChunk { address, bytes, filter_mask }: StoredChunk| {
            visit(ChunkInfo { index: index(offset), address, stored_bytes: bytes, filter_mask });
        };
        walk(&self.at, &mut visit).with_context(|| self.place())
    }

    /// Offset of the object header; `None` in a file that libhdf5 has open.
    pub(crate) fn header_offset(&self) -> Result<Option<u64>> {
        match &self.at {
            At::Library(_) => Ok(None),
            At::File { place, .. } => place.offset(place.address()).map(Some),
        }
    }

    pub(crate) fn storage(&self) -> Result<Storage> {
        let in_file = |place: &Place| -> Result<_> {
            Ok(match place.known().dataset()?.layout() {
                StoredLayout::Chunked(_) => Storage::Chunks,
                StoredLayout::Contiguous { address, .. } => {
                    Storage::Block(address.map(|address| place.offset(address)).transpose()?)
                }
                StoredLayout::Compact { .. } => Storage::Header,
                _ => Storage::Other("in other datasets"),
            })
        };
        let find = || match &self.at {
            At::Library(_) if self.outside => Ok(Storage::Other("in other files")),
            At::Library(dataset) => dataset.storage(),
            At::File { place, .. } => in_file(place),
        };
        find().with_context(|| self.place())
    }

    /// Little-endian and packed, as in memory.
    pub(super) fn is_plain(&self) -> Result<bool> {
        Ok(datatype::plain_order(&self.layout()?.datatype, self.data_type()?) == Some(ByteOrder::Little))
    }

    pub(crate) fn fills_with_zeros(&self) -> Result<bool> {
        let fill = self.fill_bytes().with_context(|| self.place())?;
        Ok(fill.is_none_or(|bytes| bytes.iter().all(|&byte| byte == 0)))
    }

    /// The fill value of a dataset of bytes, if it defines one.
    pub(crate) fn fill_byte(&self) -> Result<Option<u8>> {
        Ok(self.fill_bytes().with_context(|| self.place())?.and_then(|bytes| bytes.first().copied()))
    }

    pub(crate) fn make_scale(&self, name: &str) -> Result<()> {
        self.library().and_then(|dataset| dataset.set_scale(name)).with_context(|| self.place())
    }

    /// `axis` counts from the fastest.
    pub(crate) fn attach_scale(&self, axis: usize, scale: &Dataset) -> Result<()> {
        let attach = || {
            let axes = self.shape()?.len();
            if axis >= axes {
                return Err(Error::usage(format!("axis {axis} does not exist, the dataset has {axes} axes")));
            }
            self.library()?.attach_scale((axes - 1 - axis) as u32, scale.library()?)
        };
        attach().with_context(|| self.place())
    }

    pub(crate) fn set_attribute(&self, name: &str, value: &Attribute) -> Result<()> {
        let set = || self.library()?.set_attribute(name, value);
        set().with_context(|| self.place())
    }

    pub(crate) fn set_extent(&self, rows: u64) -> Result<()> {
        let set = || {
            let (cell, has) = self.shape()?.split_last().ok_or_else(|| Error::usage("a scalar cannot grow"))?;
            let chunk_rows = self.layout()?.chunk.as_ref().and_then(|chunk| chunk.last().copied()).unwrap_or(1);
            let dropped = has.saturating_sub(rows) / chunk_rows.max(1);
            if dropped > MAX_DROPPED {
                return Err(Error::limit(format!(
                    "{dropped} chunks would be dropped, from row {rows} of {has} on; the limit is {MAX_DROPPED}"
                )));
            }
            self.library()?.set_extents(&cell.with_axis(rows).reversed())
        };
        set().with_context(|| self.place())
    }

    /// Shows rows that another process has appended.
    pub(crate) fn refresh(&self) -> Result<()> {
        let refresh = || match &self.at {
            At::Library(dataset) => dataset.refresh(),
            At::File { place, .. } => place.refresh(),
        };
        refresh().with_context(|| self.place())
    }

    /// A single unsigned 64-bit integer, a type that casacore lacks.
    pub(crate) fn read_counter(&self) -> Result<u64> {
        let read = || -> Result<u64> {
            let stored = &self.layout()?.datatype;
            let bytes = self.raw_elements(&Region::whole(&Shape::from([1])), 1)?;
            let number = u64::try_from(elements::integer(stored, &bytes)?);
            number.map_err(|_| Error::format("the counter is below 0, expected a number of rows"))
        };
        read().with_context(|| self.place())
    }

    pub(crate) fn attribute(&self, name: &str) -> Result<Option<Attribute>> {
        self.at.owner().get(name).with_context(|| self.place())
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dataset").field(&self.path).finish()
    }
}

/// Slowest axis first.
fn block(region: &Region) -> Vec<Steps> {
    let axes = region.start.iter().zip(region.shape.iter()).rev();
    axes.map(|(&start, &count)| Steps { start, step: 1, count }).collect()
}

/// Elements along each axis, slowest first.
fn ranges(region: &Region) -> Vec<Range<u64>> {
    let axes = region.start.iter().zip(region.shape.iter()).rev();
    axes.map(|(&start, &extent)| start..start + extent).collect()
}

/// libhdf5 would count each chunk that the index of a damaged file claims.
pub(super) fn stored_bytes(place: &Place) -> u64 {
    let known = place.known();
    match known.dataset().map(h5_read::Dataset::layout) {
        // a writer may have damaged the index
        Ok(StoredLayout::Chunked(_)) => place.chunk_bytes().ok().flatten().unwrap_or(0),
        // a block has no more bytes than the file, whatever its extents are
        Ok(StoredLayout::Contiguous { address: Some(_), bytes }) => {
            place.bytes().len().unwrap_or(0).min(bytes.unwrap_or(u64::MAX))
        }
        Ok(StoredLayout::Compact { data }) => data.len() as u64,
        _ => 0,
    }
}

/// Slowest axis first; `None` for a null dataspace.
pub(super) fn extents(place: &Place) -> Result<Option<Vec<u64>>> {
    let known = place.known();
    let space = known.dataset()?.space();
    Ok((space.kind != SpaceKind::Null).then(|| space.extents.clone()))
}

pub(super) fn grows(place: &Place) -> Result<bool> {
    Ok(matches!(place.known().dataset()?.space().max.first(), Some(None)))
}

impl Layout {
    fn of(dataset: &h5_read::Dataset) -> Result<Self> {
        let chunk = match dataset.layout() {
            StoredLayout::Chunked(chunked) => Some(chunked.shape.iter().rev().copied().collect()),
            _ => None,
        };
        let filters = dataset.pipeline().filters.iter().map(StoredFilter::of).collect();
        Ok(Layout { chunk, filters, datatype: dataset.datatype().clone() })
    }
}
