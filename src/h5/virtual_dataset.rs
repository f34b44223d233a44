//! Creates virtual datasets, whose elements are in datasets of other files: one source after the
//! other along the slowest axis.

use hdf5::dataset::DatasetCreateBuilder;
use hdf5::plist::link_create::LinkCreate;
use hdf5::{Hyperslab, Selection, SliceOrIndex};

use super::error::Hdf5Result;
use super::{datatype, sys};
use crate::error::{Error, Result};
use crate::value::{DataType, Shape};

/// A dataset of another file with a part of the elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VirtualSource {
    /// Relative to the directory of the file with the virtual dataset.
    pub(crate) file: String,
    pub(crate) dataset: String,
    /// Fastest axis first.
    pub(crate) shape: Shape,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct VirtualSpec<'a> {
    /// Not a string.
    pub(crate) element: DataType,
    /// Fastest axis first.
    pub(crate) shape: &'a Shape,
    /// Sources fill the dataset along the slowest axis. Those with several axes are flat, in
    /// row-major order, if it has one.
    pub(crate) sources: &'a [VirtualSource],
    /// Little-endian bytes of the element that is read where a source is missing.
    pub(crate) fill: &'a [u8],
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
        let datatype = datatype::create(self.element)?;
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
