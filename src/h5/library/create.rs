//! Creates datasets.

use hdf5::dataset::{AllocTime, DatasetCreate, DatasetCreateBuilder, FillTime};
use hdf5::plist::group_create::AttrCreationOrder;
use hdf5::plist::link_create::{CharEncoding, LinkCreate};
use hdf5::{Datatype, Hyperslab, Selection, SliceOrIndex};

use super::super::error::Hdf5Result;
use super::super::filter::{Filter, Pipeline};
use super::super::sys::{self, Foreign};
use super::super::{
    Allocation, Bounds, ByteRows, DatasetSpec, Element, ElementSpec, LiveSpec, StoredElement, VirtualSpec, codec,
};
use crate::error::{Error, Result};
use crate::value::{DataType, Shape};

/// Bytes of a string of variable length in a dataset, at most.
const VLEN_BYTES: usize = 16;

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
        // of at most 2^32 - 1 bytes, the largest chunk of HDF5 1.10
        let whole = |shape: &Shape| -> Shape {
            let mut left = u64::from(u32::MAX) / self.element.size().max(VLEN_BYTES) as u64;
            let mut take = |extent: u64| {
                let taken = extent.clamp(1, left.max(1));
                left /= taken;
                taken
            };
            shape.iter().map(|&extent| take(extent)).collect()
        };
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
                // early allocation makes the index implicit
                Allocation::Block => creation.alloc_time(Some(AllocTime::Early)).fill_time(FillTime::Never),
            };
            creation.chunk(chunk.iter().rev().map(|&extent| extent as usize).collect::<Vec<_>>());
            if self.appendable || !is_empty {
                add(&self.compression.pipeline(self.element.size()), &mut creation);
            }
        }
        let extents = self.shape.reversed();
        let space = if is_empty {
            sys::chunked_dataspace(&extents, self.appendable)?
        } else {
            sys::dataspace(&extents, self.appendable)?
        };
        let datatype = datatype(self.element)?;
        sys::create_dataset(parent, name, &datatype, &space, &links()?, &creation.finish().h5()?)
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

impl StoredElement {
    pub(super) fn datatype(&self) -> Result<Datatype> {
        match self {
            StoredElement::Record(members) => {
                let members = members.iter().map(|(name, member)| Ok((name.as_str(), member.datatype()?)));
                sys::record_type(&members.collect::<Result<Vec<_>>>()?)
            }
            StoredElement::Array(extents, element) => sys::array_type(&element.datatype()?, extents),
            simple => sys::simple_type(simple),
        }
    }
}

impl ElementSpec<'_> {
    pub(super) fn create(&self, parent: &hdf5::Group, bounds: Bounds, name: &str) -> Result<hdf5::Dataset> {
        let datatype = self.element.datatype()?;
        if self.chunk.len() != self.shape.len() || self.chunk.is_empty() || self.chunk.contains(&0) {
            return Err(Error::usage(format!("chunks {} do not fit a dataset of shape {}", self.chunk, self.shape)));
        }
        let mut creation = creation(bounds);
        creation.alloc_time(Some(AllocTime::Incr));
        creation.chunk(self.chunk.iter().rev().map(|&extent| extent as usize).collect::<Vec<_>>());
        match self.blosc {
            Some(parameters) => drop(creation.add_filter(codec::blosc().id(), parameters)),
            None => add(&self.compression.pipeline(datatype.size()), &mut creation),
        }
        let creation = creation.finish().h5()?;
        if let Some(fill) = self.fill {
            sys::set_fill(&creation, &datatype, fill)?;
        }
        let space = sys::dataspace(&self.shape.reversed(), true)?;
        sys::create_dataset(parent, name, &datatype, &space, &links()?, &creation)
    }
}

impl ByteRows {
    pub(super) fn create(&self, parent: &hdf5::Group, bounds: Bounds, name: &str) -> Result<hdf5::Dataset> {
        if self.row_bytes == 0 || self.row_bytes > u64::from(u32::MAX) || (self.rows == 0 && !self.appendable) {
            return Err(Error::usage(format!(
                "{} chunks of {} bytes cannot be stored: a chunk has 1 to 2^32 - 1 bytes",
                self.rows, self.row_bytes
            )));
        }
        let (mut creation, links) = match bounds {
            Bounds::Earliest => (DatasetCreate::build(), None),
            Bounds::V110 => (creation(bounds), Some(links()?)),
        };
        creation.obj_track_times(false).alloc_time(Some(AllocTime::Incr)).chunk([1, self.row_bytes as usize]);
        add(&self.filters.pipeline(), &mut creation);
        let space = sys::dataspace(&[self.rows, self.row_bytes], self.appendable)?;
        let links = links.map_or_else(|| LinkCreate::build().finish().h5(), Ok::<_, Error>)?;
        sys::create_dataset(parent, name, &datatype(DataType::UChar)?, &space, &links, &creation.finish().h5()?)
    }
}

impl VirtualSpec<'_> {
    /// Adds sources and fill value to `creation`.
    pub(super) fn create(
        &self,
        parent: &hdf5::Group,
        name: &str,
        links: &LinkCreate,
        mut creation: DatasetCreateBuilder,
    ) -> Result<hdf5::Dataset> {
        self.map(&mut creation)?;
        let creation = creation.finish().h5()?;
        let datatype = datatype(self.element)?;
        sys::set_fill(&creation, &datatype, self.fill)?;
        let space = sys::dataspace(&self.shape.reversed(), false)?;
        sys::create_dataset(parent, name, &datatype, &space, links, &creation)
    }

    fn map(&self, creation: &mut DatasetCreateBuilder) -> Result<()> {
        let (cell, rows) = self.shape.split_last().ok_or_else(|| Error::usage("a virtual dataset needs an axis"))?;
        let extents = |shape: &Shape| -> Vec<usize> { shape.iter().rev().map(|&extent| extent as usize).collect() };
        let mut first = 0u64;
        for source in self.sources {
            let count = match source.shape.split_last() {
                Some((of_source, count)) if of_source == cell => count,
                _ if cell.is_empty() => source.shape.elements()?,
                _ => {
                    return Err(Error::format(format!(
                        "{}:{} has shape {:?}, which does not fit the virtual dataset of shape {:?}",
                        source.file,
                        source.dataset,
                        source.shape.reversed(),
                        self.shape.reversed()
                    )));
                }
            };
            if count == 0 || cell.contains(&0) {
                // no elements, for which HDF5 has no selection
                first += count;
                continue;
            }
            let part = std::iter::once(first..first + count).chain(cell.iter().rev().map(|&extent| 0..extent));
            let part = part.map(|range| SliceOrIndex::from(range.start as usize..range.end as usize));
            let part = Hyperslab::from(part.collect::<Vec<_>>());
            let (of_source, all) = (extents(&source.shape), extents(self.shape));
            creation.virtual_map(&source.file, &source.dataset, of_source, Selection::All, all, part);
            first += count;
        }
        if first != rows {
            return Err(Error::usage(format!("the sources have {first} rows, the virtual dataset has {rows}")));
        }
        Ok(())
    }
}

impl LiveSpec<'_> {
    pub(super) fn create(&self, parent: &hdf5::Group, name: &str) -> Result<hdf5::Dataset> {
        if self.element.size() == 0 || self.chunk_rows == 0 || self.cell.contains(&0) {
            return Err(Error::usage("rows without bytes cannot be appended"));
        }
        let chunk = self.cell.with_axis(self.chunk_rows);
        let mut creation = creation(Bounds::V110);
        creation.alloc_time(Some(AllocTime::Incr)).fill_time(FillTime::Never);
        creation.chunk(chunk.iter().rev().map(|&extent| extent as usize).collect::<Vec<_>>());
        let space = sys::dataspace(&self.cell.with_axis(0).reversed(), true)?;
        sys::create_dataset(parent, name, &live_type(self.element)?, &space, &links()?, &creation.finish().h5()?)
    }
}

fn live_type(element: Element) -> Result<Datatype> {
    match element {
        Element::Number(data_type) => sys::number_type(data_type),
        Element::String(bytes) => sys::fixed_string_type(bytes),
        Element::Counter => sys::foreign_type(Foreign::UInt64),
    }
}

fn datatype(element: DataType) -> Result<Datatype> {
    match element {
        DataType::String => sys::string_type(sys::Charset::Utf8),
        _ => sys::number_type(element),
    }
}

fn add(pipeline: &Pipeline, creation: &mut DatasetCreateBuilder) {
    for filter in pipeline.filters() {
        match filter {
            Filter::Shuffle { .. } => creation.shuffle(),
            Filter::Fletcher32 => creation.fletcher32(),
            Filter::Codec { codec, level } => creation.add_filter(codec.id(), &codec.parameters(*level)),
        };
    }
}

/// Names are marked as UTF-8.
pub(super) fn links() -> Result<LinkCreate> {
    LinkCreate::build().char_encoding(CharEncoding::Utf8).finish().h5()
}
