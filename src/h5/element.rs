//! Elements of any type that arrays of other formats have, stored as they are: this program writes their chunks, and reads
//! none of them.

use hdf5::Datatype;
use hdf5::dataset::AllocTime;

use super::{Compression, StoredElement, dataset, group, sys};
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

/// A dataset whose chunks are written as they are to be stored.
#[derive(Debug, Clone)]
pub(crate) struct ElementSpec<'a> {
    pub(crate) element: &'a StoredElement,
    /// Extents, fastest axis first; the last one may grow.
    pub(crate) shape: &'a Shape,
    /// Extents of a chunk; none is 0.
    pub(crate) chunk: &'a Shape,
    pub(crate) compression: Compression,
}

impl ElementSpec<'_> {
    pub(super) fn create(&self, parent: &hdf5::Group, name: &str) -> Result<hdf5::Dataset> {
        let datatype = self.element.datatype()?;
        if self.chunk.len() != self.shape.len() || self.chunk.is_empty() || self.chunk.contains(&0) {
            return Err(Error::usage(format!("chunks {} for a dataset of shape {}", self.chunk, self.shape)));
        }
        let mut creation = dataset::creation();
        creation.alloc_time(Some(AllocTime::Incr));
        creation.chunk(self.chunk.iter().rev().map(|&extent| extent as usize).collect::<Vec<_>>());
        self.compression.pipeline(datatype.size()).add_to(&mut creation);
        let space = sys::dataspace(&self.shape.reversed(), true)?;
        sys::create_dataset(parent, name, &datatype, &space, &group::links()?, &creation.finish()?)
    }
}
