//! Groups that libhdf5 has open.

use std::path::Path;

use hdf5::LocationType;
use hdf5::plist::group_create::{AttrCreationOrder, LinkCreationOrder};
use hdf5::plist::link_create::CharEncoding;
use hdf5_sys::h5::H5_index_t;

use super::super::error::Hdf5Result;
use super::super::sys::{self, Charset};
use super::super::{
    Allocation, Attribute, Bounds, ByteRows, DatasetSpec, ElementSpec, Link, LinkKind, LiveSpec, VirtualSpec,
};
use super::create::{self, links};
use super::{Dataset, attribute};
use crate::error::Result;

#[derive(Debug, Clone)]
pub(in crate::h5) struct Group(pub(super) hdf5::Group);

impl Group {
    #[cfg(test)]
    pub(in crate::h5) fn raw(&self) -> &hdf5::Group {
        &self.0
    }

    pub(in crate::h5) fn root(&self) -> Result<Self> {
        Ok(Group(self.0.file().h5()?.group("/").h5()?))
    }

    pub(in crate::h5) fn group(&self, name: &str) -> Result<Self> {
        self.0.group(name).h5().map(Group)
    }

    /// Relative names of external storage files are taken from the directory `prefix`.
    pub(in crate::h5) fn dataset(&self, name: &str, prefix: Option<&Path>) -> Result<Dataset> {
        sys::open_dataset(&self.0, name, prefix).map(Dataset::new)
    }

    /// As [`dataset`](Self::dataset); one that is open already keeps the prefix that it has.
    pub(in crate::h5) fn opened(&self, name: &str, prefix: Option<&Path>) -> Result<Dataset> {
        match (self.0.dataset(name), prefix) {
            (Err(_), Some(_)) => self.dataset(name, prefix),
            (dataset, _) => dataset.h5().map(Dataset::new),
        }
    }

    /// Does not follow the link; `None` for a missing one.
    pub(in crate::h5) fn link(&self, name: &str) -> Result<Option<Link>> {
        let exists = !name.contains('\0') && self.0.link_exists(name);
        exists.then(|| sys::link(&self.0, name)).transpose()
    }

    pub(in crate::h5) fn link_names(&self) -> Result<Vec<String>> {
        sys::link_names(&self.0, H5_index_t::H5_INDEX_CRT_ORDER)
            .or_else(|_| sys::link_names(&self.0, H5_index_t::H5_INDEX_NAME))
    }

    pub(in crate::h5) fn kind_of(&self, name: &str) -> Result<LinkKind> {
        Ok(match self.0.loc_type_by_name(name).h5()? {
            LocationType::Group => LinkKind::Group,
            LocationType::Dataset => LinkKind::Dataset,
            _ => LinkKind::Other,
        })
    }

    pub(in crate::h5) fn link_count(&self) -> Result<usize> {
        Ok(self.0.loc_info().h5()?.num_links)
    }

    pub(in crate::h5) fn create_group(&self, name: &str, bounds: Bounds) -> Result<Self> {
        let mut group = self.0.create_group_builder();
        group = group.create_intermediate_group(false).obj_track_times(false);
        if bounds == Bounds::V110 {
            group = group.char_encoding(CharEncoding::Utf8).with_gcpl(|group| {
                group.attr_creation_order(AttrCreationOrder::Indexed).link_creation_order(LinkCreationOrder::Indexed)
            });
        }
        group.create(name).h5().map(Group)
    }

    pub(in crate::h5) fn create_dataset(
        &self,
        name: &str,
        bounds: Bounds,
        spec: &DatasetSpec<'_>,
        allocation: Allocation,
    ) -> Result<Dataset> {
        spec.create(&self.0, bounds, name, allocation).map(Dataset::new)
    }

    pub(in crate::h5) fn create_elements(&self, name: &str, bounds: Bounds, spec: &ElementSpec<'_>) -> Result<Dataset> {
        spec.create(&self.0, bounds, name).map(Dataset::new)
    }

    pub(in crate::h5) fn create_virtual(&self, name: &str, bounds: Bounds, spec: &VirtualSpec<'_>) -> Result<Dataset> {
        spec.create(&self.0, name, &links()?, create::creation(bounds)).map(Dataset::new)
    }

    pub(in crate::h5) fn create_byte_rows(&self, name: &str, bounds: Bounds, rows: &ByteRows) -> Result<Dataset> {
        rows.create(&self.0, bounds, name).map(Dataset::new)
    }

    pub(in crate::h5) fn create_live(&self, name: &str, spec: &LiveSpec<'_>) -> Result<Dataset> {
        spec.create(&self.0, name).map(Dataset::new)
    }

    /// A scale without coordinate values, as in netCDF-4.
    pub(in crate::h5) fn create_dimension(&self, name: &str, bounds: Bounds, len: u64) -> Result<Dataset> {
        let datatype = sys::foreign_type(sys::Foreign::FloatBigEndian)?;
        let mut create = create::creation(bounds);
        // as all datasets without elements, see DatasetSpec::chunk
        let space = if len == 0 {
            create.chunk([1]);
            sys::chunked_dataspace(&[0], false)?
        } else {
            sys::dataspace(&[len], false)?
        };
        let create = create.finish().h5()?;
        let dataset = sys::create_dataset(&self.0, name, &datatype, &space, &links()?, &create)?;
        sys::set_scale(&dataset, &format!("This is a netCDF dimension but not a netCDF variable. {len:10}"))?;
        Ok(Dataset::new(dataset))
    }

    pub(in crate::h5) fn remove(&self, name: &str) -> Result<()> {
        self.0.unlink(name).h5()
    }

    pub(in crate::h5) fn link_hard(&self, name: &str, target: &str) -> Result<()> {
        self.0.link_hard(target, name).h5()
    }

    pub(in crate::h5) fn link_file(&self, name: &str, file: &str) -> Result<()> {
        self.0.link_external(file, "/", name).h5()
    }

    pub(in crate::h5) fn rename(&self, old: &str, new: &str) -> Result<()> {
        self.0.relink(old, new).h5()
    }

    /// Replaces an existing attribute; strings and the name are marked as UTF-8, or as ASCII.
    pub(in crate::h5) fn set_attribute(&self, name: &str, value: &Attribute, is_ascii: bool) -> Result<()> {
        let charset = if is_ascii { Charset::Ascii } else { Charset::Utf8 };
        attribute::set(&self.0, name, value, charset)
    }

    pub(in crate::h5) fn set_int_record(&self, name: &str, fields: &[(&str, i32)]) -> Result<()> {
        attribute::set_int_record(&self.0, name, fields)
    }

    pub(in crate::h5) fn attributes(&self) -> Result<Vec<String>> {
        attribute::names(&self.0)
    }

    pub(in crate::h5) fn attribute(&self, name: &str) -> Result<Option<(Attribute, Vec<u64>)>> {
        attribute::get(&self.0, name)
    }

    pub(in crate::h5) fn attribute_fields(&self, name: &str) -> Result<Vec<String>> {
        attribute::fields(&self.0, name)
    }
}
