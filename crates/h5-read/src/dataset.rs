//! Datasets: what their messages say, where their elements are, and the elements.
//! HDF5 File Format Specification 3.0, section IV.A.
//!
//! Elements are bytes in the order of the file; decoding them is the caller's. A region is a range
//! of elements for each axis, slowest first. Elements that were never written have the fill value,
//! or 0 if the writer set that it is never used: the HDF5 library leaves the caller's buffer as it
//! is then.

use std::ops::Range;

use crate::bytes::Bytes;
use crate::chunks::{Chunk, Chunks, Window};
use crate::dataspace::{Dataspace, SpaceKind};
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result, Within};
use crate::file::File;
use crate::fill::{Fill, FillTime};
use crate::filters::{Filters, Pipeline};
use crate::global_heap::GlobalHeap;
use crate::header::kind;
use crate::layout::{External, Layout};
use crate::mappings::{self, Mapping};
use crate::object::{Object, ObjectKind};
use crate::region::{Part, Runs};
use crate::shared;
use crate::walk::Listing;

/// A dataset.
#[derive(Debug, Clone)]
pub struct Dataset {
    object: Object,
    space: Dataspace,
    datatype: Datatype,
    layout: Layout,
    pipeline: Pipeline,
    external: Vec<External>,
    /// `None` if the file has no message of it.
    fill: Option<Fill>,
}

/// Stored bytes that filters may add to the double of those of a chunk.
const SLACK: u64 = 1 << 16;

/// Gap in the file up to which small runs are read together.
const GAP: u64 = 1 << 15;
/// Bytes that are read at once for small runs.
const BUFFER: u64 = 1 << 18;

impl Object {
    /// The object as a dataset.
    ///
    /// # Errors
    /// `Missing` if it is not a dataset; `Damaged` and `Unsupported` if one of its messages cannot
    /// be read.
    pub fn dataset(&self) -> Result<Dataset> {
        self.expect(ObjectKind::Dataset)?;
        Dataset::new(self.clone()).within(|| self.place())
    }
}

impl Object {
    /// The type that a committed type is.
    ///
    /// # Errors
    /// `Missing` if the object is something else; `Damaged` and `Unsupported` if its message cannot
    /// be read.
    pub fn committed_type(&self) -> Result<Datatype> {
        self.expect(ObjectKind::Type)?;
        let read = || {
            message(self, kind::DATATYPE, Datatype::decode)?.ok_or_else(|| Error::damaged("the object has no datatype"))
        };
        read().within(|| self.place())
    }
}

impl Dataset {
    fn new(object: Object) -> Result<Self> {
        let missing = |what: &str| Error::damaged(format!("the dataset has no {what}"));
        let space = message(&object, kind::DATASPACE, Dataspace::decode)?.ok_or_else(|| missing("dataspace"))?;
        let datatype = message(&object, kind::DATATYPE, Datatype::decode)?.ok_or_else(|| missing("datatype"))?;
        let layout = message(&object, kind::LAYOUT, Layout::decode)?.ok_or_else(|| missing("layout"))?;
        let pipeline = message(&object, kind::FILTERS, Pipeline::decode)?.unwrap_or_default();
        let external = message(&object, kind::EXTERNAL_FILES, |fields| External::decode(&object.file, fields))?;
        let mut fill = message(&object, kind::FILL, Fill::decode)?;
        if fill.is_none() {
            fill = message(&object, kind::OLD_FILL, Fill::decode_old)?;
        }
        if let Layout::Chunked(chunked) = &layout
            && chunked.element_bytes != datatype.size()
        {
            let (chunks, datatype) = (chunked.element_bytes, datatype.size());
            return Err(Error::damaged(format!("chunks have elements of {chunks} bytes, the datatype has {datatype}")));
        }
        let external = external.unwrap_or_default();
        Ok(Dataset { object, space, datatype, layout, pipeline, external, fill })
    }

    /// The dataset as it is in the file now, for a file that a writer has open.
    ///
    /// # Errors
    /// As those of [`Object::dataset`].
    pub fn refreshed(&self) -> Result<Self> {
        self.file().object(self.object.address())?.dataset()
    }

    fn file(&self) -> &File {
        &self.object.file
    }

    /// The dataset as an object: its address and attributes.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The extents.
    pub fn space(&self) -> &Dataspace {
        &self.space
    }

    /// The type of the elements.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Whether the type of the elements is a committed one, or shared with other datasets.
    pub fn shares_type(&self) -> bool {
        let message = self.object.header.find(&self.object.file, kind::DATATYPE);
        message.is_some_and(|message| message.is_shared)
    }

    /// Where the elements are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The filters of the chunks.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The value of elements that were never written; `None` if the file has no message of it.
    pub fn fill(&self) -> Option<&Fill> {
        self.fill.as_ref()
    }

    /// The files that have the elements of a contiguous dataset; none if this file has them.
    pub fn external(&self) -> &[External] {
        &self.external
    }

    /// The parts of a virtual dataset and the datasets that have their elements; none for other
    /// layouts.
    ///
    /// # Errors
    /// `Damaged` and `Unsupported` if they cannot be read.
    pub fn mappings(&self) -> Result<Vec<Mapping>> {
        let Layout::Virtual { mappings: Some(id) } = self.layout else { return Ok(Vec::new()) };
        let read = || {
            let mut heap = GlobalHeap::new(self.file());
            let object = heap.object(id)?;
            // an object does not know its own place
            mappings::decode(&mut self.file().bytes("mappings of a virtual dataset", id.address, object))
        };
        read().within(|| self.object.place())
    }

    /// Number of bytes of all elements.
    ///
    /// # Errors
    /// `Damaged` if it is larger than all numbers.
    pub fn bytes(&self) -> Result<u64> {
        let bytes = self.space.elements().and_then(|elements| elements.checked_mul(self.datatype.size()));
        bytes.ok_or_else(|| Error::damaged("the dataset has more elements than there are numbers"))
    }

    /// The chunks, `None` unless the dataset has any by its layout.
    fn index(&self) -> Result<Option<Chunks<'_>>> {
        let Layout::Chunked(layout) = &self.layout else { return Ok(None) };
        Chunks::new(self.file(), layout, &self.space, !self.pipeline.is_empty()).map(Some)
    }

    /// All chunks that were written and have elements within the extents, in the order of their
    /// first elements. None for other layouts.
    pub fn chunks(&self) -> Listing<Chunk> {
        self.list(|index| index.all())
    }

    /// As [`chunks`](Self::chunks), with those that lie beyond the extents: a writer that was
    /// killed may have left some, and a dataset that was shrunk.
    pub fn all_chunks(&self) -> Listing<Chunk> {
        self.list(|index| Some(index.everything()))
    }

    /// As [`chunks`](Self::chunks), of those with elements in a region, slowest axis first: other
    /// parts of the index are not read.
    pub fn chunks_in(&self, region: &[Range<u64>]) -> Listing<Chunk> {
        match self.check(region) {
            Ok(()) => self.list(|index| index.window(region)),
            Err(error) => Listing { items: Vec::new(), damage: vec![error] },
        }
    }

    fn list(&self, window: impl FnOnce(&Chunks<'_>) -> Option<Window>) -> Listing<Chunk> {
        let mut listing = Listing::new();
        match self.index() {
            Ok(Some(index)) => {
                if let Some(window) = window(&index) {
                    listing = self.settled(|| index.list(&window));
                }
            }
            Ok(None) => {}
            Err(error) => listing.damage.push(error),
        }
        let place = self.object.place();
        listing.damage = listing.damage.into_iter().map(|error| error.within(&place)).collect();
        listing
    }

    /// The chunk with the element `at`, slowest axis first, found without reading all of the index;
    /// `None` if it was never written.
    ///
    /// # Errors
    /// `Missing` if the dataset has no such element or no chunks; `Damaged` if the index does not
    /// say where the chunk is.
    pub fn chunk(&self, at: &[u64]) -> Result<Option<Chunk>> {
        let region: Vec<_> = at.iter().map(|&at| at..at.saturating_add(1)).collect();
        self.check(&region).within(|| self.object.place())?;
        let find = || {
            let index = self.index()?;
            let index = index.ok_or_else(|| Error::new(ErrorKind::Missing, "the dataset is not in chunks"))?;
            let Some(window) = index.window(&region) else { return Ok(None) };
            Ok(self.settled(|| index.list(&window)).whole()?.pop())
        };
        find().within(|| self.object.place())
    }

    /// A listing without damage, if it can be had while a writer changes the file.
    fn settled(&self, list: impl Fn() -> Listing<Chunk>) -> Listing<Chunk> {
        let first = list();
        if first.damage.is_empty() || !self.file().superblock().is_being_written() {
            return first;
        }
        // structures were retried alone; together they may be of two moments
        let second = list();
        if second.damage.is_empty() { second } else { first }
    }

    /// The bytes of the elements in a chunk, without filters: as many as its shape has elements.
    ///
    /// # Errors
    /// `Damaged` if the chunk cannot be decoded; `Unsupported` if `filters` do not know a filter;
    /// `Limit`; `Io`.
    pub fn read_chunk(&self, chunk: &Chunk, filters: &dyn Filters) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        self.decode(chunk, filters, &mut data).within(|| self.object.place())?;
        Ok(data)
    }

    fn decode(&self, chunk: &Chunk, filters: &dyn Filters, data: &mut Vec<u8>) -> Result<()> {
        let decode = |data: &mut Vec<u8>| {
            let index = self.index()?;
            let bytes = index.map_or(0, |index| index.chunk_bytes);
            let limit = self.file().limits().chunk_bytes;
            if bytes > limit {
                return Err(Error::limit(format!("the elements have {bytes} bytes; the limit is {limit}")));
            }
            let most = if chunk.is_filtered { bytes.saturating_mul(2).saturating_add(SLACK) } else { bytes };
            if chunk.bytes > most || !chunk.is_filtered && chunk.bytes < bytes {
                let message = format!("{} bytes are stored, the elements have {bytes}", chunk.bytes);
                return Err(Error::damaged(message));
            }
            self.file().read_vec(chunk.address, chunk.bytes, data)?;
            if !chunk.is_filtered {
                return Ok(());
            }
            self.pipeline.undo(filters, chunk.filter_mask, bytes, data)
        };
        decode(data).within(|| format!("chunk {:?}", chunk.start))
    }

    fn check(&self, region: &[Range<u64>]) -> Result<()> {
        let is_within = region.iter().zip(&self.space.extents);
        let is_within = is_within.fold(region.len() == self.space.rank(), |before, (range, &extent)| {
            before && range.start <= range.end && range.end <= extent
        });
        if !is_within {
            let extents = &self.space.extents;
            let message = format!("elements {region:?} are not in the dataset, whose extents are {extents:?}");
            return Err(Error::new(ErrorKind::Missing, message));
        }
        Ok(())
    }

    /// The elements of a region, as many bytes as the datatype has for each, the last axis fastest.
    ///
    /// # Errors
    /// `Missing` if the region is not in the dataset; `Limit` if it has more bytes than
    /// [`Limits::read_bytes`](crate::Limits::read_bytes); those of [`read_into`](Self::read_into).
    pub fn read(&self, region: &[Range<u64>], filters: &dyn Filters) -> Result<Vec<u8>> {
        let read = || {
            let bytes = self.region_bytes(region)?;
            let limit = self.file().limits().read_bytes;
            if bytes > limit {
                return Err(Error::limit(format!("the elements have {bytes} bytes; the limit is {limit}")));
            }
            Ok(vec![0; bytes as usize])
        };
        let mut out = read().within(|| self.object.place())?;
        self.read_into(region, filters, &mut out)?;
        Ok(out)
    }

    /// As [`read`](Self::read), into `out`, which has as many bytes as the elements.
    ///
    /// # Errors
    /// `Missing` if the region is not in the dataset; `Damaged` if elements cannot be read;
    /// `Unsupported` if they are in other files, or if `filters` do not know a filter; `Limit`;
    /// `Io`.
    pub fn read_into(&self, region: &[Range<u64>], filters: &dyn Filters, out: &mut [u8]) -> Result<()> {
        let mut damage = Vec::new();
        self.salvage_into(region, filters, out, &mut damage)?;
        damage.into_iter().next().map_or(Ok(()), Err)
    }

    /// As [`read_into`](Self::read_into), but chunks that cannot be read have the fill value, or 0,
    /// and are listed in `damage`.
    ///
    /// # Errors
    /// As those of [`read_into`](Self::read_into), if nothing can be read.
    pub fn salvage_into(
        &self,
        region: &[Range<u64>],
        filters: &dyn Filters,
        out: &mut [u8],
        damage: &mut Vec<Error>,
    ) -> Result<()> {
        let mut read = || -> Result<()> {
            let bytes = self.region_bytes(region)?;
            if bytes != out.len() as u64 {
                let message = format!("the elements have {bytes} bytes, the buffer has {}", out.len());
                return Err(Error::new(ErrorKind::Missing, message));
            }
            if bytes == 0 {
                return Ok(());
            }
            match &self.layout {
                Layout::Chunked(_) => self.read_chunks(region, filters, out, damage),
                Layout::Virtual { .. } => Err(Error::unsupported("the elements are in other datasets: it is virtual")),
                _ if !self.external.is_empty() => Err(Error::unsupported("the elements are in external files")),
                Layout::Contiguous { address: None, .. } => self.write_fill(out),
                Layout::Contiguous { address: Some(address), bytes } => {
                    self.enough(bytes.unwrap_or(u64::MAX))?;
                    let source = Source::Stored(self.file(), *address);
                    self.copy(source, &self.space.extents, None, region, out)
                }
                Layout::Compact { data } => {
                    self.enough(data.len() as u64)?;
                    self.copy(Source::Memory(data), &self.space.extents, None, region, out)
                }
            }
        };
        read().within(|| self.object.place())?;
        Ok(())
    }

    fn enough(&self, stored: u64) -> Result<()> {
        let bytes = self.bytes()?;
        if stored < bytes {
            return Err(Error::damaged(format!("{stored} bytes are stored, the elements have {bytes}")));
        }
        Ok(())
    }

    fn region_bytes(&self, region: &[Range<u64>]) -> Result<u64> {
        self.check(region)?;
        if self.space.kind == SpaceKind::Null {
            return Ok(0);
        }
        let bytes = region.iter().try_fold(self.datatype.size(), |all, range| all.checked_mul(range.end - range.start));
        bytes.ok_or_else(|| Error::limit("the region has more bytes than there are numbers"))
    }

    fn write_fill(&self, out: &mut [u8]) -> Result<()> {
        match &self.fill {
            Some(fill) if fill.written != FillTime::Never => fill.write(self.datatype.size, out),
            _ => {
                out.fill(0);
                Ok(())
            }
        }
    }

    fn read_chunks(
        &self,
        region: &[Range<u64>],
        filters: &dyn Filters,
        out: &mut [u8],
        damage: &mut Vec<Error>,
    ) -> Result<()> {
        let Some(index) = self.index()? else { return Ok(()) };
        let Some(window) = index.window(region) else { return Ok(()) };
        let listing = self.settled(|| index.list(&window));
        damage.extend(listing.damage);
        if window.cells() != Some(listing.items.len() as u64) {
            self.write_fill(out)?;
        }
        let mut data = Vec::new();
        for chunk in &listing.items {
            let read = self.read_part(&index, chunk, filters, &mut data, region, out);
            let Err(error) = read else { continue };
            let retried = self.read_again(chunk, filters, &mut data, region, out);
            if !retried.unwrap_or(false) {
                damage.push(error);
                self.lose(&index, chunk, region, out)?;
            }
        }
        Ok(())
    }

    fn read_part(
        &self,
        index: &Chunks<'_>,
        chunk: &Chunk,
        filters: &dyn Filters,
        data: &mut Vec<u8>,
        region: &[Range<u64>],
        out: &mut [u8],
    ) -> Result<()> {
        let source = if chunk.is_filtered {
            self.decode(chunk, filters, data)?;
            Source::Memory(data)
        } else {
            Source::Stored(self.file(), chunk.address)
        };
        let copied = self.copy(source, index.shape(), Some(&chunk.start), region, out);
        copied.within(|| format!("chunk {:?}", chunk.start))
    }

    /// Looks a chunk up again which a writer may have moved; returns whether it was read.
    fn read_again(
        &self,
        chunk: &Chunk,
        filters: &dyn Filters,
        data: &mut Vec<u8>,
        region: &[Range<u64>],
        out: &mut [u8],
    ) -> Result<bool> {
        if !self.file().superblock().is_being_written() {
            return Ok(false);
        }
        let Some(index) = self.index()? else { return Ok(false) };
        let Some(chunk) = self.chunk(&chunk.start)? else { return Ok(false) };
        self.read_part(&index, &chunk, filters, data, region, out)?;
        Ok(true)
    }

    /// Writes the fill value in place of a chunk.
    fn lose(&self, index: &Chunks<'_>, chunk: &Chunk, region: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        let size = self.datatype.size() as usize;
        let mut element = vec![0; size];
        // a wrong fill value is an error of its own, which elements that were never written have
        let _ = self.write_fill(&mut element);
        self.copy(Source::Element(&element), index.shape(), Some(&chunk.start), region, out)
    }

    /// `start`: the dataset's element with which the array of shape `shape` begins.
    fn copy(
        &self,
        source: Source<'_>,
        shape: &[u64],
        start: Option<&[u64]>,
        region: &[Range<u64>],
        out: &mut [u8],
    ) -> Result<()> {
        let start = |axis: usize| start.and_then(|start| start.get(axis).copied()).unwrap_or(0);
        let (mut from, mut to, mut count, mut sizes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (axis, (range, &extent)) in region.iter().zip(shape).enumerate() {
            let first = range.start.max(start(axis));
            let end = range.end.min(start(axis).saturating_add(extent));
            from.push(first.saturating_sub(start(axis)));
            to.push(first.saturating_sub(range.start));
            count.push(end.saturating_sub(first));
            sizes.push(range.end - range.start);
        }
        let runs = Runs::new(Part { shape, start: &from }, Part { shape: &sizes, start: &to }, &count);
        source.copy(&runs, self.datatype.size(), out)
    }
}

enum Source<'a> {
    Memory(&'a [u8]),
    /// The same element everywhere.
    Element(&'a [u8]),
    /// An address.
    Stored(&'a File, u64),
}

impl Source<'_> {
    fn copy(&self, runs: &Runs, size: u64, out: &mut [u8]) -> Result<()> {
        match *self {
            Source::Memory(data) => runs.visit(&mut |from, to, elements| {
                let from = part(from, elements, size).and_then(|range| data.get(range));
                let to = part(to, elements, size).and_then(|range| out.get_mut(range));
                let (from, to) = from.zip(to).ok_or_else(|| Error::damaged("the elements are fewer than expected"))?;
                to.copy_from_slice(from);
                Ok(())
            }),
            Source::Element(element) => runs.visit(&mut |_, to, elements| {
                let to = part(to, elements, size).and_then(|range| out.get_mut(range)).unwrap_or_default();
                to.chunks_exact_mut(element.len().max(1)).for_each(|place| place.copy_from_slice(element));
                Ok(())
            }),
            Source::Stored(file, address) => stored(file, address, runs, size, out),
        }
    }
}

/// Copies runs from the file; small ones that are close to each other are read together.
fn stored(file: &File, address: u64, runs: &Runs, size: u64, out: &mut [u8]) -> Result<()> {
    let beyond = || Error::damaged("the elements end beyond every file");
    let end = runs.end().checked_mul(size).and_then(|end| end.checked_add(address)).ok_or_else(beyond)?;
    let mut buffer = Vec::new();
    // place of the buffer, and the end of the last run
    let (mut buffer_at, mut last) = (0u64, 0u64);
    runs.visit(&mut |from, to, elements| {
        let to = part(to, elements, size).and_then(|range| out.get_mut(range)).ok_or_else(beyond)?;
        let from = from * size + address;
        let is_close = from.checked_sub(last).is_some_and(|gap| gap <= GAP);
        let bytes = to.len() as u64;
        last = from + bytes;
        let buffered = |buffer: &[u8], at: u64| -> Option<Range<usize>> {
            let start = usize::try_from(from.checked_sub(at)?).ok()?;
            let end = start.checked_add(bytes as usize)?;
            (end <= buffer.len()).then_some(start..end)
        };
        let mut range = buffered(&buffer, buffer_at);
        if range.is_none() && is_close && bytes <= GAP {
            file.read_vec(from, BUFFER.min(end - from), &mut buffer)?;
            buffer_at = from;
            range = buffered(&buffer, buffer_at);
        }
        match range.and_then(|range| buffer.get(range)) {
            Some(found) => to.copy_from_slice(found),
            None => file.read_at(from, to)?,
        }
        Ok(())
    })
}

fn part(first: u64, elements: u64, size: u64) -> Option<Range<usize>> {
    let start = usize::try_from(first.checked_mul(size)?).ok()?;
    let bytes = usize::try_from(elements.checked_mul(size)?).ok()?;
    Some(start..start.checked_add(bytes)?)
}

/// Decodes the message of a kind, wherever its data are; `None` if the object has none.
fn message<T>(object: &Object, kind: u16, decode: impl Fn(&mut Bytes<'_>) -> Result<T>) -> Result<Option<T>> {
    let message = object.header.find(&object.file, kind);
    message.map(|message| shared::resolve(&object.file, &message, decode)).transpose()
}
