//! Creates virtual datasets, whose elements are in datasets of other files: one source after the other along the
//! slowest axis.

use hdf5::dataset::DatasetCreateBuilder;
use hdf5::plist::link_create::LinkCreate;
use hdf5::{Hyperslab, Selection, SliceOrIndex};

use super::error::Hdf5Result;
use super::{datatype, sys};
use crate::error::{Error, Result};
use crate::value::{DataType, Shape};

/// A dataset of another file whose elements are a part of a virtual dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VirtualSource {
    /// Path of the file that contains the source dataset, relative to the directory of the file with the virtual
    /// dataset.
    pub(crate) file: String,
    /// Path of the source dataset in its file, from the root group.
    pub(crate) dataset: String,
    /// Shape of the source dataset, fastest axis first.
    pub(crate) shape: Shape,
}

/// The properties of a new virtual dataset, whose elements are in datasets of other files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VirtualSpec<'a> {
    /// The element type of the virtual dataset; not a string.
    pub(crate) element: DataType,
    /// Shape of the virtual dataset, fastest axis first.
    pub(crate) shape: &'a Shape,
    /// The source datasets, which follow each other along the slowest axis of the virtual dataset and fill it. If the
    /// virtual dataset has only one axis, sources with several axes add their elements in row-major order.
    pub(crate) sources: &'a [VirtualSource],
    /// Fill value of the virtual dataset: the little-endian bytes of the element that is read where a source is missing.
    pub(crate) fill: &'a [u8],
}

impl VirtualSpec<'_> {
    /// Creates the virtual dataset `name` in `parent`, with the HDF5 properties `links` for the link to it and
    /// `creation` for the dataset; sources and fill value are added to the latter.
    pub(super) fn create(
        &self,
        parent: &hdf5::Group,
        name: &str,
        links: &LinkCreate,
        mut creation: DatasetCreateBuilder,
    ) -> Result<hdf5::Dataset> {
        self.map(&mut creation)?;
        let creation = creation.finish().h5()?;
        let datatype = datatype::create(self.element)?;
        sys::set_fill(&creation, &datatype, self.fill)?;
        let space = sys::dataspace(&self.shape.reversed(), false)?;
        sys::create_dataset(parent, name, &datatype, &space, links, &creation)
    }

    /// Adds the sources of the virtual dataset to its creation properties.
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
