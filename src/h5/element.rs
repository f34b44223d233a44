//! Creates HDF5 datasets with the element types of other array formats, such as BLZ, some of which
//! casacore lacks; their elements are read and written as raw bytes.

use hdf5::Datatype;
use hdf5::dataset::AllocTime;

use super::error::Hdf5Result;
use super::{Bounds, Compression, StoredElement, codec, dataset, group, sys};
use crate::error::{Error, Result};
use crate::value::Shape;

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

/// A dataset whose chunks the caller writes, already filtered.
#[derive(Debug, Clone)]
pub(crate) struct ElementSpec<'a> {
    pub(crate) element: &'a StoredElement,
    /// Fastest axis first; the last axis can grow without limit.
    pub(crate) shape: &'a Shape,
    /// Fastest axis first; no extent is 0.
    pub(crate) chunk: &'a Shape,
    pub(crate) compression: Compression,
    /// Parameters (`cd_values`) of Blosc as the only filter; `compression` is then ignored.
    pub(crate) blosc: Option<&'a [u32]>,
    /// Bytes of the element that is read where nothing was written; `None` for zeros.
    pub(crate) fill: Option<&'a [u8]>,
}

impl ElementSpec<'_> {
    pub(super) fn create(&self, parent: &hdf5::Group, bounds: Bounds, name: &str) -> Result<hdf5::Dataset> {
        let datatype = self.element.datatype()?;
        if self.chunk.len() != self.shape.len() || self.chunk.is_empty() || self.chunk.contains(&0) {
            return Err(Error::usage(format!("chunks {} do not fit a dataset of shape {}", self.chunk, self.shape)));
        }
        let mut creation = dataset::creation(bounds);
        creation.alloc_time(Some(AllocTime::Incr));
        creation.chunk(self.chunk.iter().rev().map(|&extent| extent as usize).collect::<Vec<_>>());
        match self.blosc {
            Some(parameters) => drop(creation.add_filter(codec::blosc().id(), parameters)),
            None => self.compression.pipeline(datatype.size()).add_to(&mut creation),
        }
        let creation = creation.finish().h5()?;
        if let Some(fill) = self.fill {
            sys::set_fill(&creation, &datatype, fill)?;
        }
        let space = sys::dataspace(&self.shape.reversed(), true)?;
        sys::create_dataset(parent, name, &datatype, &space, &group::links()?, &creation)
    }
}
