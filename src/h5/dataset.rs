//! Datasets of HDF5 files: creates them, and reads and writes their elements by region and by chunk.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use hdf5::Datatype;
use hdf5::dataset::{AllocTime, DatasetCreate, DatasetCreateBuilder, FillTime, FillValue, Layout as StorageLayout};
use hdf5::plist::group_create::AttrCreationOrder;

use super::codec::ChunkLimit;
use super::error::Hdf5Result;
use super::sys::{self, Foreign, StoredChunk, StoredFilter, Strings, Target};
use super::{
    Attribute, Bounds, Compression, Elsewhere, Filter, Pipeline, Plugin, StoredElement, Wide, attribute, datatype,
    group,
};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::limits;
use crate::value::{ByteOrder, DataType, Region, Shape, Values, for_each_type};

/// Largest plausible ratio of the bytes of elements in memory to the bytes that the file stores for their dataset, if its
/// codec does not allow more. It is this large because chunks that were never written take memory, but no bytes of the file.
const MAX_EXPANSION: u64 = 1 << 10;

/// Largest number of datasets to which a dimension scale can be attached in a file created with [`Bounds::Earliest`]:
/// the scale lists each with 16 bytes in one attribute of less than 64 KiB.
pub(crate) const MAX_OLD_SCALED: usize = 4000;

/// The declaration of a new dataset: type, extents, chunks, compression.
#[derive(Debug, Clone)]
pub(crate) struct DatasetSpec<'a> {
    /// The element type of the new dataset; any type but a record.
    pub(crate) element: DataType,
    pub(crate) shape: &'a Shape,
    /// Shape of a chunk, fastest axis first, or `None` for one contiguous block. Only the last (slowest) axis of a dataset
    /// that can grow may have chunks longer than the dataset, and axes of a dataset without elements, which always has
    /// chunks, because `h5repack -f` of HDF5 1.10 refuses blocks without elements.
    pub(crate) chunk: Option<Shape>,
    /// Whether the last (slowest) axis of the dataset may grow.
    pub(crate) appendable: bool,
    /// Compression of the dataset's chunks; ignored for one contiguous block.
    pub(crate) compression: Compression,
}

/// When space in the file is allocated for the chunks of a new dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allocation {
    /// Space for a chunk is allocated when it is written.
    Chunks,
    /// Space for all chunks is allocated when the dataset is created: they follow each other, first axis fastest, and need no
    /// index in the file. Only for unfiltered chunks of a dataset that cannot grow; every chunk has to be written.
    Block,
}

impl DatasetSpec<'_> {
    pub(super) fn create(
        &self,
        parent: &hdf5::Group,
        bounds: Bounds,
        name: &str,
        allocation: Allocation,
    ) -> Result<hdf5::Dataset> {
        let fixed = if self.appendable { self.shape.len().saturating_sub(1) } else { self.shape.len() };
        if self.appendable && (self.chunk.is_none() || self.shape.is_empty()) {
            return Err(Error::usage("a dataset that can grow needs an axis and chunks"));
        }
        let mut creation = creation(bounds);
        let is_empty = self.shape.contains(&0);
        let whole = |shape: &Shape| -> Shape { shape.iter().map(|&extent| extent.max(1)).collect() };
        let chunk = match &self.chunk {
            Some(chunk) if self.appendable => Some(whole(chunk)),
            _ if is_empty => Some(whole(self.shape)),
            chunk => chunk.clone(),
        };
        if let Some(chunk) = chunk {
            if chunk.len() != self.shape.len()
                || chunk.contains(&0)
                || chunk[..fixed].iter().zip(self.shape.iter()).any(|(&chunk, &extent)| chunk > extent.max(1))
            {
                return Err(Error::usage(format!("chunks {chunk} do not fit a dataset of shape {}", self.shape)));
            }
            match allocation {
                Allocation::Chunks => creation.alloc_time(Some(AllocTime::Incr)),
                Allocation::Block if is_empty => creation.alloc_time(Some(AllocTime::Incr)),
                Allocation::Block if self.appendable || !self.compression.is_none() => {
                    return Err(Error::usage("one block for a dataset that can grow or has filters"));
                }
                // this makes the index implicit
                Allocation::Block => creation.alloc_time(Some(AllocTime::Early)).fill_time(FillTime::Never),
            };
            creation.chunk(chunk.iter().rev().map(|&extent| extent as usize).collect::<Vec<_>>());
            if self.appendable || !is_empty {
                self.compression.pipeline(self.element.size()).add_to(&mut creation);
            }
        }
        let extents = self.shape.reversed();
        let space = if is_empty {
            sys::chunked_dataspace(&extents, self.appendable)?
        } else {
            sys::dataspace(&extents, self.appendable)?
        };
        let datatype = datatype::create(self.element)?;
        sys::create_dataset(parent, name, &datatype, &space, &group::links()?, &creation.finish().h5()?)
    }
}

/// The creation properties that every dataset has. Elements that are never written read as zeros.
pub(super) fn creation(bounds: Bounds) -> DatasetCreateBuilder {
    let mut creation = DatasetCreate::build();
    creation.obj_track_times(false);
    if bounds == Bounds::V110 {
        creation.attr_creation_order(AttrCreationOrder::Indexed);
    }
    creation
}

/// The kind of index by which HDF5 finds the chunks of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexKind {
    /// The dataset is not chunked, and has no index.
    None,
    BtreeV1,
    Single,
    Implicit,
    FixedArray,
    ExtensibleArray,
    BtreeV2,
    /// A kind of index that this program does not know, with libhdf5's number of it (`H5D_chunk_index_t`).
    Unknown(u32),
}

impl IndexKind {
    /// Finds the kind of index of a dataset's chunks.
    pub(super) fn of(dataset: &hdf5::Dataset) -> Result<Self> {
        // H5D_chunk_index_t
        Ok(match sys::chunk_index(dataset)? {
            0 => IndexKind::BtreeV1,
            1 => IndexKind::Single,
            2 => IndexKind::Implicit,
            3 => IndexKind::FixedArray,
            4 => IndexKind::ExtensibleArray,
            5 => IndexKind::BtreeV2,
            number => IndexKind::Unknown(number),
        })
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

/// Where a chunk of a dataset is stored in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkInfo {
    /// Index of the chunk on each axis, counted in chunks from 0, fastest axis first.
    pub(crate) index: Shape,
    /// Offset of the chunk in the file, in bytes.
    pub(crate) address: u64,
    pub(crate) stored_bytes: u64,
    /// Filters that the chunk did not pass: bit `i` is set where filter `i` of the pipeline was skipped.
    pub(crate) filter_mask: u32,
}

/// How the elements of a dataset are stored in the file: in chunks, as one block, in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Chunks,
    /// The elements lie one after the other, from this offset in the file on, in bytes; `None` if nothing was ever written.
    Block(Option<u64>),
    /// The elements are in the object header of the dataset.
    Header,
    /// Only libhdf5 can read the elements; the text tells where they are: `in other files`, `in other datasets`.
    Other(&'static str),
}

/// A dataset that was opened only for its attributes and to find where its elements are; it does not read or write elements.
pub(crate) struct Header {
    dataset: hdf5::Dataset,
    /// Path of the dataset from the root.
    path: String,
    elsewhere: Option<Elsewhere>,
}

impl Header {
    pub(super) fn new(dataset: hdf5::Dataset, path: String) -> Result<Self> {
        let find = || Elsewhere::of_dataset(&dataset.dcpl().h5()?);
        let elsewhere = find().map_err(Error::blame_source).with_context(|| format!("dataset {path}"))?;
        Ok(Header { dataset, path, elsewhere })
    }

    /// Path of the dataset from the root.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The other files, or datasets, in which the elements of the dataset are; `None` if it holds them itself.
    pub(crate) fn elsewhere(&self) -> Option<&Elsewhere> {
        self.elsewhere.as_ref()
    }

    /// Turns the header into a dataset that reads elements, once the caller has checked where they are stored.
    /// `outside`: whether elements are in other files.
    pub(super) fn into_dataset(self, outside: bool) -> Dataset {
        Dataset { outside, ..Dataset::new(self.dataset, self.path) }
    }

    /// Number of bytes in the file that the chunks or the block of the dataset take; 0 if the elements are in other files or
    /// datasets.
    pub(crate) fn stored_bytes(&self) -> u64 {
        if self.elsewhere.is_some() { 0 } else { self.dataset.storage_size() }
    }

    /// The names of the dataset's attributes in order of creation, or by name if the file does not record this order.
    pub(crate) fn attributes(&self) -> Result<Vec<String>> {
        attribute::names(&self.dataset).with_context(|| format!("dataset {}", self.path))
    }

    /// The value of the attribute `name` of the dataset; `None` if it has none of this name.
    pub(crate) fn attribute(&self, name: &str) -> Result<Option<Attribute>> {
        attribute::get(&self.dataset, name).with_context(|| format!("dataset {}", self.path))
    }

    /// The attribute `name`, which the dataset has, with its extents, slowest axis first; none for a single value.
    pub(crate) fn shaped_attribute(&self, name: &str) -> Result<(Attribute, Vec<u64>)> {
        attribute::get_shaped(&self.dataset, name).with_context(|| format!("dataset {}", self.path))
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Header").field(&self.path).field(&self.elsewhere).finish()
    }
}

/// An open dataset of an HDF5 file.
pub(crate) struct Dataset {
    dataset: hdf5::Dataset,
    /// Path of the dataset from the root.
    path: String,
    layout: OnceLock<Layout>,
    /// Whether the dataset, or elements of it, are in other files than the HDF5 file that was opened: only libhdf5
    /// reads them.
    outside: bool,
}

/// The properties of a dataset that never change: type, chunks, filters.
struct Layout {
    chunk: Option<Shape>,
    filters: Vec<StoredFilter>,
    datatype: Datatype,
}

impl Dataset {
    pub(super) fn new(dataset: hdf5::Dataset, path: String) -> Self {
        Dataset { dataset, path, layout: OnceLock::new(), outside: false }
    }

    pub(super) fn inner(&self) -> &hdf5::Dataset {
        &self.dataset
    }

    /// Path of the dataset from the root.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether elements of the dataset are in other files, where only libhdf5 reads them.
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
            let creation = self.dataset.dcpl().h5()?;
            let chunk = creation.get_chunk().h5()?;
            Ok(Layout {
                chunk: chunk.map(|chunk| chunk.iter().rev().map(|&extent| extent as u64).collect()),
                filters: sys::filters(&creation)?,
                datatype: self.dataset.dtype().h5()?,
            })
        };
        // what the hdf5 crate takes for wrong use comes from the file
        let of_file = |error: Error| match error.kind() {
            ErrorKind::Usage => Error::format(error.to_string()),
            _ => error,
        };
        let layout = read().map_err(of_file).with_context(|| self.place())?;
        Ok(self.layout.get_or_init(|| layout))
    }

    /// The current extents of the dataset, fastest axis first.
    ///
    /// # Errors
    /// `Unsupported` for a dataset with a null dataspace.
    pub(crate) fn shape(&self) -> Result<Shape> {
        let space = self.dataset.space().h5().with_context(|| self.place())?;
        if space.is_null() {
            return Err(Error::unsupported("the dataset has a null dataspace").context(self.place()));
        }
        Ok(space.shape().iter().rev().map(|&extent| extent as u64).collect())
    }

    /// Whether the last (slowest) axis of the dataset has no limit, so that it can grow.
    pub(crate) fn is_appendable(&self) -> Result<bool> {
        let space = self.dataset.space().h5().with_context(|| self.place())?;
        Ok(matches!(space.maxdims().first(), Some(None)))
    }

    /// The extents of a chunk in elements, fastest axis first; `None` if the dataset is not chunked.
    pub(crate) fn chunk(&self) -> Result<Option<Shape>> {
        Ok(self.layout()?.chunk.clone())
    }

    /// The casacore type of the dataset's elements.
    ///
    /// # Errors
    /// `Unsupported` with the name of an HDF5 type that casacore has nothing like.
    pub(crate) fn data_type(&self) -> Result<DataType> {
        datatype::recognise(&self.layout()?.datatype).with_context(|| self.place())
    }

    /// The casacore type of the dataset's elements, or else the one that can hold them: Short for int8, Double for other
    /// floating-point numbers.
    ///
    /// # Errors
    /// `Unsupported` with the name of an HDF5 type that casacore has nothing like.
    pub(crate) fn nearest_type(&self) -> Result<DataType> {
        attribute::memory_element(&self.layout()?.datatype).with_context(|| self.place())
    }

    /// The kind of index by which HDF5 finds the chunks of the dataset.
    pub(crate) fn index_kind(&self) -> Result<IndexKind> {
        if self.layout()?.chunk.is_none() {
            return Ok(IndexKind::None);
        }
        IndexKind::of(&self.dataset).with_context(|| self.place())
    }

    /// The dataset's filters in the order in which a writer applies them, as texts for users: `shuffle`, `deflate(4)`.
    pub(crate) fn filters(&self) -> Result<Vec<String>> {
        Ok(self.layout()?.filters.iter().map(ToString::to_string).collect())
    }

    /// The numbers of the dataset's filters and their parameters, in the order in which a writer applies them.
    pub(crate) fn filter_parameters(&self) -> Result<Vec<(i32, Vec<u32>)>> {
        Ok(self.layout()?.filters.iter().map(|filter| (filter.id, filter.parameters.clone())).collect())
    }

    /// The byte order of the elements in the file; `None` if more than the byte order has to be converted to make them
    /// elements of [`data_type`](Self::data_type) in memory.
    pub(crate) fn raw_order(&self) -> Result<Option<ByteOrder>> {
        let element = self.data_type()?;
        if self.is_plain()? {
            return Ok(Some(ByteOrder::Little));
        }
        let datatype = &self.layout()?.datatype;
        let is_number = !matches!(element, DataType::Complex | DataType::DComplex | DataType::String);
        let is_swapped =
            is_number && (element.size() == 1 || datatype.byte_order() == hdf5::datatype::ByteOrder::BigEndian);
        Ok((is_swapped && datatype.size() == element.size()).then_some(ByteOrder::Big))
    }

    /// The plugins that HDF5 readers need for the dataset's filters; empty if they need none.
    pub(crate) fn plugins(&self) -> Result<Vec<Plugin>> {
        Ok(self.layout()?.filters.iter().filter_map(StoredFilter::plugin).collect())
    }

    /// The dataset's filters, to be run without libhdf5; `None` if only libhdf5 can run them.
    pub(crate) fn pipeline(&self) -> Result<Option<Pipeline>> {
        let layout = self.layout()?;
        let element_size = layout.datatype.size();
        let filters = layout.filters.iter().map(|filter| filter.own(element_size)).collect::<Option<Vec<_>>>();
        Ok(filters.map(Pipeline::new).filter(Pipeline::is_decodable))
    }

    /// Checks that all filters of the dataset are available, so that libhdf5 can read it.
    ///
    /// # Errors
    /// `Unsupported`, naming the filter, if one is neither part of this program or libhdf5 nor installed as a plugin.
    fn check_filters(&self) -> Result<()> {
        self.layout()?.filters.iter().try_for_each(StoredFilter::check_available)
    }

    /// Limits the bytes to which codecs that libhdf5 runs on this thread may decode a chunk to about the chunk size of
    /// this dataset. The limit ends when the result is dropped.
    fn limit_chunks(&self) -> Result<ChunkLimit> {
        let layout = self.layout()?;
        let elements = layout.chunk.as_ref().map_or(Ok(0), Shape::elements)?;
        Ok(ChunkLimit::new(elements.saturating_mul(layout.datatype.size() as u64)))
    }

    /// Largest number of bytes to which the stored bytes of the dataset can plausibly decode.
    fn bound(&self) -> Result<u64> {
        let codec = |filter: &StoredFilter| match filter.own(1) {
            Some(Filter::Codec { codec, .. }) => Some(codec),
            _ => None,
        };
        let codecs = self.layout()?.filters.iter().filter_map(codec);
        let stored = self.stored_bytes();
        Ok(codecs.fold(stored.saturating_mul(MAX_EXPANSION), |bytes, codec| bytes.max(codec.bound(stored))))
    }

    /// Number of bytes in the file that the chunks or the block of the dataset take, without the text of variable-length
    /// strings.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.dataset.storage_size()
    }

    /// Appends the elements of `region`, first axis fastest, to `out`, which has the dataset's type.
    pub(crate) fn read_region(&self, region: &Region, out: &mut Values) -> Result<()> {
        let mut read = || {
            let count = self.check(region, out.data_type())?;
            if count == 0 {
                return Ok(());
            }
            self.check_backed(count)?;
            let (memory, file) = self.selection(region)?;
            let target = Target::Dataset { dataset: &self.dataset, memory: &memory, file: &file };
            let _limit = self.limit_chunks()?;
            let read = read_values(&target, &self.layout()?.datatype, count, out);
            // a filter that is missing is the better explanation
            read.or_else(|error| self.check_filters().and(Err(error)))
        };
        read().with_context(|| self.place())
    }

    /// The kind of number that the elements are, as [`read_wide`](Self::read_wide) gives them, but without elements.
    ///
    /// # Errors
    /// `Unsupported` with the name of the type unless it is one of numbers that `Wide` can hold.
    pub(crate) fn wide_kind(&self) -> Result<Wide> {
        Wide::kind(&self.layout()?.datatype).with_context(|| self.place())
    }

    /// Reads the elements of `region`, first axis fastest, as the widest numbers of their kind.
    ///
    /// # Errors
    /// Those of [`wide_kind`](Self::wide_kind) and of reading.
    pub(crate) fn read_wide(&self, region: &Region) -> Result<Wide> {
        let read = || {
            region.check(&self.shape()?)?;
            let count = region.shape.elements()? as usize;
            if count == 0 {
                return Wide::kind(&self.layout()?.datatype);
            }
            self.check_backed(count)?;
            let (memory, file) = self.selection(region)?;
            let target = Target::Dataset { dataset: &self.dataset, memory: &memory, file: &file };
            let _limit = self.limit_chunks()?;
            let read = Wide::read(&target, &self.layout()?.datatype, count);
            // a filter that is missing is the better explanation
            read.or_else(|error| self.check_filters().and(Err(error)))
        };
        read().with_context(|| self.place())
    }

    /// The type of the elements in the file, in words.
    pub(crate) fn type_name(&self) -> Result<String> {
        Ok(datatype::name(&self.layout()?.datatype))
    }

    /// The element type of the dataset in the file, which casacore may lack; [`read_rows`](Self::read_rows) reads elements of
    /// such types.
    ///
    /// # Errors
    /// `Unsupported` with the name of the type if it is none of fixed length that this program writes.
    pub(crate) fn element(&self) -> Result<StoredElement> {
        Ok(StoredElement::stored(&self.layout()?.datatype).with_context(|| self.place())?.0)
    }

    /// Whether the dataset has the HDF5 type with which this program stores elements of the type `element`, so that
    /// their bytes are the same.
    pub(crate) fn stores(&self, element: &StoredElement) -> Result<bool> {
        Ok(self.layout()?.datatype == element.datatype()?)
    }

    /// The HDF5 type as which elements of the type `element` are read into memory: numbers little-endian, records
    /// packed, strings and opaque bytes as in the file.
    fn memory_type(&self, element: &StoredElement) -> Result<Datatype> {
        let datatype = &self.layout()?.datatype;
        if *datatype == element.datatype()? { Ok(datatype.clone()) } else { Ok(StoredElement::stored(datatype)?.1) }
    }

    /// Appends the elements of `rows` (indices of the last, slowest axis, from 0, end excluded) to `out` as bytes, first
    /// axis fastest: numbers little-endian, strings as they are stored, records packed. `element` is the type of the
    /// dataset.
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
            let datatype = self.memory_type(element)?;
            let (memory, file) = self.selection(&Region { start, shape: extent })?;
            let target = Target::Dataset { dataset: &self.dataset, memory: &memory, file: &file };
            let _limit = self.limit_chunks()?;
            let at = out.len();
            out.resize(at + count * datatype.size(), 0);
            let read = sys::read(&target, &datatype, &mut out[at..]);
            if read.is_err() {
                out.truncate(at);
            }
            // a filter that is missing is the better explanation
            read.or_else(|error| self.check_filters().and(Err(error)))
        };
        read().with_context(|| self.place())
    }

    /// The fill value, which is read where no element was written, as bytes: numbers little-endian, strings as they are
    /// stored, records packed. `element` is the type of the dataset.
    pub(crate) fn fill(&self, element: &StoredElement) -> Result<Vec<u8>> {
        let read = || sys::fill(&self.dataset.dcpl().h5()?, &self.memory_type(element)?);
        read().with_context(|| self.place())
    }

    /// Writes the elements of `region`, first axis fastest; `values` have the dataset's type.
    ///
    /// # Errors
    /// `Usage` if a string contains NUL or is not UTF-8.
    pub(crate) fn write_region(&self, region: &Region, values: &Values) -> Result<()> {
        let write = || {
            let count = self.check(region, values.data_type())?;
            if count != values.len() {
                return Err(Error::usage(format!("{} values do not fill a region of {count}", values.len())));
            }
            if count == 0 {
                return Ok(());
            }
            let (memory, file) = self.selection(region)?;
            let target = Target::Dataset { dataset: &self.dataset, memory: &memory, file: &file };
            let _limit = self.limit_chunks()?;
            match values {
                Values::String(strings) => sys::write_strings(&target, sys::Charset::Utf8, &Strings::new(strings)?),
                _ => {
                    let bytes = values.le_bytes().expect("datasets of records were refused before");
                    sys::write(&target, &sys::number_type(values.data_type())?, &bytes)
                }
            }
        };
        write().with_context(|| self.place())
    }

    /// Checks that a region lies within the dataset and `element` is its type; returns the number of elements in the region.
    fn check(&self, region: &Region, element: DataType) -> Result<usize> {
        region.check(&self.shape()?)?;
        let own = datatype::recognise(&self.layout()?.datatype)?;
        if own != element {
            return Err(Error::usage(format!("{element} values where the dataset has {own}")));
        }
        Ok(region.shape.elements()? as usize)
    }

    /// Fails if `count` elements take far more memory than the stored bytes of the dataset can decode to: damaged files may
    /// declare any extents.
    fn check_backed(&self, count: usize) -> Result<()> {
        let bytes = (count as u64).saturating_mul(self.layout()?.datatype.size().max(1) as u64);
        if bytes > self.bound()? {
            limits::unbacked_cell(bytes)?;
        }
        Ok(())
    }

    /// The HDF5 dataspaces of a region, in memory and in the file.
    fn selection(&self, region: &Region) -> Result<(hdf5::Dataspace, hdf5::Dataspace)> {
        let file = self.dataset.space().h5()?;
        let extents = region.shape.reversed();
        sys::select(&file, &region.start.reversed(), &extents)?;
        Ok((sys::memory(&extents)?, file))
    }

    /// Writes one whole chunk of the dataset. `index` counts chunks from 0 on each axis, fastest axis first. `bytes` are the
    /// chunk as stored: filtered, except by filter `i` if bit `i` of `filter_mask` is set, and padded to the full extents at the
    /// far edges of the dataset.
    pub(crate) fn write_chunk(&self, index: &[u64], bytes: &[u8], filter_mask: u32) -> Result<()> {
        let write = || {
            let layout = self.layout()?;
            let Some(chunk) = layout.chunk.as_ref().filter(|chunk| chunk.len() == index.len()) else {
                return Err(Error::usage(format!("the dataset has no chunks with {} axes", index.len())));
            };
            let plain_bytes = chunk.elements()? * layout.datatype.size() as u64;
            let is_plain = layout.filters.is_empty() || filter_mask.trailing_ones() as usize >= layout.filters.len();
            if is_plain && bytes.len() as u64 != plain_bytes {
                return Err(Error::usage(format!(
                    "{} bytes do not fill a chunk, which has {plain_bytes}",
                    bytes.len()
                )));
            }
            let offset: Vec<u64> = index.iter().zip(chunk.iter()).rev().map(|(index, chunk)| index * chunk).collect();
            sys::write_chunk(&self.dataset, &offset, filter_mask, bytes)
        };
        write().with_context(|| self.place())
    }

    /// Offset of the first chunk in bytes from the start of the file, if all chunks follow each other: the dataset was
    /// created as one [block](Allocation::Block), or has a single unfiltered chunk. `None` for every other dataset.
    pub(crate) fn block(&self) -> Result<Option<u64>> {
        let one_chunk = || -> Result<bool> { Ok(self.layout()?.filters.is_empty()) };
        match self.index_kind()? {
            IndexKind::Implicit => {}
            IndexKind::Single if one_chunk()? => {}
            _ => return Ok(None),
        }
        let origin = vec![0; self.shape()?.len()];
        let found = sys::stored_chunk(&self.dataset, &origin).with_context(|| self.place())?;
        Ok(found.map(|chunk| chunk.address))
    }

    /// The places in the file of all chunks of the dataset that were written, in no particular order.
    pub(crate) fn chunks(&self) -> Result<Vec<ChunkInfo>> {
        let mut chunks = Vec::new();
        self.each_chunk(|info| chunks.push(info))?;
        Ok(chunks)
    }

    /// The number of hard links that lead to the dataset.
    pub(crate) fn link_count(&self) -> Result<usize> {
        Ok(self.dataset.loc_info().h5().with_context(|| self.place())?.num_links)
    }

    /// Fails with `Unsupported` if the file has a user block and libhdf5 is older than 1.14: such a version does not
    /// count the addresses of chunks from the start of the file.
    pub(super) fn check_addresses(&self) -> Result<()> {
        if !counts_from_start(&self.dataset.file().h5()?) {
            let message = "chunks after a user block are read with HDF5 1.14 or newer";
            return Err(Error::unsupported(message).context(self.place()));
        }
        Ok(())
    }

    /// Calls `visit` with the place in the file of each chunk of the dataset that was written, in no particular order.
    pub(crate) fn each_chunk(&self, mut visit: impl FnMut(ChunkInfo)) -> Result<()> {
        let Some(chunk) = &self.layout()?.chunk else { return Ok(()) };
        self.check_addresses()?;
        let index =
            |offset: &[u64]| offset.iter().rev().zip(chunk.iter()).map(|(offset, chunk)| offset / chunk).collect();
        let visit = |offset: &[u64], StoredChunk { address, bytes, filter_mask }| {
            visit(ChunkInfo { index: index(offset), address, stored_bytes: bytes, filter_mask });
        };
        each_stored_chunk(&self.dataset, visit).with_context(|| self.place())
    }

    /// How the elements of the dataset are stored in the file.
    pub(crate) fn storage(&self) -> Result<Storage> {
        let find = || -> Result<_> {
            Ok(match self.dataset.dcpl().h5()?.get_layout().h5()? {
                _ if self.outside => Storage::Other("in other files"),
                StorageLayout::Chunked => Storage::Chunks,
                StorageLayout::Contiguous => Storage::Block(self.dataset.offset()),
                StorageLayout::Compact => Storage::Header,
                _ => Storage::Other("in other datasets"),
            })
        };
        find().with_context(|| self.place())
    }

    /// Whether the elements have the same form in the file as in the memory of this program: little-endian and packed.
    pub(super) fn is_plain(&self) -> Result<bool> {
        let datatype = &self.layout()?.datatype;
        let element = self.data_type()?;
        Ok(element.is_fixed_size() && *datatype == sys::number_type(element)?)
    }

    /// Whether elements of the dataset that were never written read as zeros.
    pub(crate) fn fills_with_zeros(&self) -> Result<bool> {
        let read =
            || -> Result<_> { Ok(self.dataset.dcpl().h5()?.get_fill_value_defined().h5()? != FillValue::UserDefined) };
        read().with_context(|| self.place())
    }

    /// The fill value of a dataset of bytes, which is read where no byte was written; `None` if the dataset does not
    /// define it.
    pub(crate) fn fill_byte(&self) -> Result<Option<u8>> {
        let read = || -> Result<_> {
            let creation = self.dataset.dcpl().h5()?;
            match creation.get_fill_value_defined().h5()? {
                FillValue::UserDefined => Ok(creation.get_fill_value_as::<u8>().h5()?),
                _ => Ok(None),
            }
        };
        read().with_context(|| self.place())
    }

    /// Makes this dataset a dimension scale called `name`.
    pub(crate) fn make_scale(&self, name: &str) -> Result<()> {
        sys::set_scale(&self.dataset, name).with_context(|| self.place())
    }

    /// Attaches a dimension scale to an axis of the dataset. `axis` counts from 0, fastest axis first; the slowest one
    /// is that of the rows.
    pub(crate) fn attach_scale(&self, axis: usize, scale: &Dataset) -> Result<()> {
        let attach = || {
            let axes = self.shape()?.len();
            if axis >= axes {
                return Err(Error::usage(format!("axis {axis} does not exist, the dataset has {axes} axes")));
            }
            sys::attach_scale(&self.dataset, &scale.dataset, (axes - 1 - axis) as u32)
        };
        attach().with_context(|| self.place())
    }

    /// Sets an attribute of the dataset, and replaces an existing one of the same name.
    pub(crate) fn set_attribute(&self, name: &str, value: &Attribute) -> Result<()> {
        attribute::set(&self.dataset, name, value, sys::Charset::Utf8).with_context(|| self.place())
    }

    /// Changes the number of rows of an appendable dataset: its extent along the slowest axis, the last in casacore's
    /// order and the first in HDF5's.
    pub(crate) fn set_extent(&self, rows: u64) -> Result<()> {
        let set = || {
            let (cell, _) = self.shape()?.split_last().ok_or_else(|| Error::usage("a scalar cannot grow"))?;
            sys::set_extent(&self.dataset, &cell.with_axis(rows).reversed())
        };
        set().with_context(|| self.place())
    }

    /// Makes rows visible that another process has appended to the dataset.
    pub(crate) fn refresh(&self) -> Result<()> {
        sys::refresh_dataset(&self.dataset).with_context(|| self.place())
    }

    /// Reads the element of a dataset with a single unsigned 64-bit integer, such as a counter of rows; casacore lacks
    /// this type.
    pub(crate) fn read_counter(&self) -> Result<u64> {
        let read = || -> Result<u64> {
            let (memory, file) = self.selection(&Region::whole(&Shape::from([1])))?;
            let target = Target::Dataset { dataset: &self.dataset, memory: &memory, file: &file };
            let mut bytes = [0; 8];
            sys::read(&target, &sys::foreign_type(Foreign::UInt64)?, &mut bytes)?;
            Ok(u64::from_le_bytes(bytes))
        };
        read().with_context(|| self.place())
    }

    /// The value of the attribute `name` of the dataset; `None` if it has none of this name.
    pub(crate) fn attribute(&self, name: &str) -> Result<Option<Attribute>> {
        attribute::get(&self.dataset, name).with_context(|| self.place())
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dataset").field(&self.path).finish()
    }
}

/// Whether libhdf5 counts the addresses of chunks in `file` from the start of the file: before 1.14 it does so only without a user
/// block.
pub(super) fn counts_from_start(file: &hdf5::File) -> bool {
    cfg!(feature = "static-hdf5") || hdf5::library_version() >= (1, 14, 0) || file.userblock() == 0
}

/// Calls `visit` with the index of the first element (slowest axis first, from 0) of each chunk of the dataset that exists in the
/// file, and with its place; in no promised order.
pub(super) fn each_stored_chunk(dataset: &hdf5::Dataset, mut visit: impl FnMut(&[u64], StoredChunk)) -> Result<()> {
    let mut add = |offset: &[u64], address: u64, bytes: u64, filter_mask: u32| {
        if address != u64::MAX && bytes > 0 {
            visit(offset, StoredChunk { address, bytes, filter_mask });
        }
    };
    #[cfg(feature = "static-hdf5")]
    dataset
        .chunks_visit(|info| {
            add(info.offset, info.addr, info.size, info.filter_mask);
            0
        })
        .h5()?;
    // H5Dchunk_iter is newer than HDF5 1.10. This walks the index again for every chunk.
    #[cfg(not(feature = "static-hdf5"))]
    for number in 0..dataset.num_chunks().unwrap_or(0) {
        let info = dataset.chunk_info(number).ok_or_else(|| Error::format("the chunk index cannot be read"))?;
        add(&info.offset, info.addr, info.size, info.filter_mask);
    }
    Ok(())
}

/// Reads `count` elements of a dataset or attribute, whose type in the file is `stored`, converts them to the element
/// type of `out`, and appends them to `out`.
pub(super) fn read_values(target: &Target<'_>, stored: &Datatype, count: usize, out: &mut Values) -> Result<()> {
    let element = out.data_type();
    macro_rules! numbers {
        ($v:ident) => {{
            let start = $v.len();
            $v.resize(start + count, Default::default());
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut $v[start..]);
            let read = sys::read(target, &sys::number_type(element)?, bytes);
            if cfg!(target_endian = "big") {
                let complex = matches!(element, DataType::Complex | DataType::DComplex);
                crate::value::swap_bytes(bytes, if complex { element.size() / 2 } else { element.size() });
            }
            read
        }};
    }
    let start = out.len();
    let read = match out {
        Values::Bool(v) => {
            let mut bytes = vec![0u8; count];
            let read = sys::read(target, &sys::number_type(element)?, &mut bytes);
            v.extend(bytes.iter().map(|&byte| byte != 0));
            read
        }
        Values::UChar(v) => numbers!(v),
        Values::Short(v) => numbers!(v),
        Values::UShort(v) => numbers!(v),
        Values::Int(v) => numbers!(v),
        Values::UInt(v) => numbers!(v),
        Values::Int64(v) => numbers!(v),
        Values::Float(v) => numbers!(v),
        Values::Double(v) => numbers!(v),
        Values::Complex(v) => numbers!(v),
        Values::DComplex(v) => numbers!(v),
        Values::String(v) => sys::read_strings(target, stored, v),
        Values::Record(_) => return Err(Error::usage("HDF5 has no records")),
    };
    if read.is_err() {
        for_each_type!(out, v => v.truncate(start));
    }
    read
}
