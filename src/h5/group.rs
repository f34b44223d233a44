//! Groups and their links.

use hdf5::plist::group_create::{AttrCreationOrder, LinkCreationOrder};
use hdf5::plist::link_create::{CharEncoding, LinkCreate};
use hdf5::{IndexType, IterationOrder, LinkType, LocationType};

use super::{Attribute, Dataset, DatasetSpec, LiveSpec, attribute, sys};
use crate::error::{Error, Place, Result};

/// What a link leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkKind {
    Group,
    Dataset,
    /// A soft or external link, a committed type.
    Other,
}

/// An open group.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    group: hdf5::Group,
    /// From the root, without its last slash: empty for the root.
    path: String,
}

impl Group {
    pub(super) fn new(group: hdf5::Group, path: String) -> Self {
        Group { group, path }
    }

    /// The path from the root, `/` for the root itself.
    pub(crate) fn path(&self) -> &str {
        if self.path.is_empty() { "/" } else { &self.path }
    }

    /// The path of what `name` leads to.
    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    fn place(&self) -> String {
        format!("group {}", self.path())
    }

    /// Creates a group in this one.
    pub(crate) fn create_group(&self, name: &str) -> Result<Group> {
        let path = self.path_of(name);
        let create = || -> Result<_> {
            self.check_new(name)?;
            Ok(self
                .group
                .create_group_builder()
                .create_intermediate_group(false)
                .char_encoding(CharEncoding::Utf8)
                .with_gcpl(|group| {
                    group
                        .obj_track_times(false)
                        .attr_creation_order(AttrCreationOrder::Indexed)
                        .link_creation_order(LinkCreationOrder::Indexed)
                })
                .create(name)?)
        };
        Ok(Group { group: create().at_with(|| format!("group {path}"))?, path })
    }

    /// Opens a group in this one.
    ///
    /// # Errors
    /// `NotFound` if nothing has this name.
    pub(crate) fn group(&self, name: &str) -> Result<Group> {
        let path = self.path_of(name);
        self.check_there(name).at_with(|| format!("group {path}"))?;
        Ok(Group { group: self.group.group(name).at_with(|| format!("group {path}"))?, path })
    }

    /// Creates a dataset in this group.
    pub(crate) fn create_dataset(&self, name: &str, spec: &DatasetSpec<'_>) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            spec.create(&self.group, name)
        };
        Ok(Dataset::new(create().at_with(|| format!("dataset {path}"))?, path))
    }

    /// Creates a dataset without rows in this group, which grows when the file is live.
    pub(crate) fn create_live(&self, name: &str, spec: &LiveSpec<'_>) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            spec.create(&self.group, name)
        };
        Ok(Dataset::new(create().at_with(|| format!("dataset {path}"))?, path))
    }

    /// Creates a dimension without coordinate values, as netCDF-4 does: a scale that stores nothing.
    pub(crate) fn create_dimension(&self, name: &str, len: u64) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || -> Result<_> {
            self.check_new(name)?;
            let datatype = sys::foreign_type(sys::Foreign::FloatBigEndian)?;
            let space = sys::dataspace(&[len], false)?;
            let create = super::dataset::creation().finish()?;
            let dataset = sys::create_dataset(&self.group, name, &datatype, &space, &links()?, &create)?;
            sys::set_scale(&dataset, &format!("This is a netCDF dimension but not a netCDF variable. {len:10}"))?;
            Ok(dataset)
        };
        Ok(Dataset::new(create().at_with(|| format!("dimension {path}"))?, path))
    }

    /// Opens a dataset in this group.
    ///
    /// # Errors
    /// `NotFound` if nothing has this name.
    pub(crate) fn dataset(&self, name: &str) -> Result<Dataset> {
        let path = self.path_of(name);
        self.check_there(name).at_with(|| format!("dataset {path}"))?;
        Ok(Dataset::new(self.group.dataset(name).at_with(|| format!("dataset {path}"))?, path))
    }

    /// Whether something has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.group.link_exists(name)
    }

    /// The names in this group and what they lead to, in order of creation where the file keeps it, else of names.
    pub(crate) fn links(&self) -> Result<Vec<(String, LinkKind)>> {
        let links = self
            .group
            .links(IndexType::CreationOrder, IterationOrder::Increasing)
            .or_else(|_| self.group.links(IndexType::Name, IterationOrder::Increasing))
            .at_with(|| self.place())?;
        links
            .into_iter()
            .map(|(name, link)| {
                let kind = match link.link_type {
                    // not followed: they may lead out of the file, or round in circles
                    LinkType::Soft | LinkType::External => LinkKind::Other,
                    LinkType::Hard => {
                        match self
                            .group
                            .loc_type_by_name(&name)
                            .at_with(|| format!("object {}", self.path_of(&name)))?
                        {
                            LocationType::Group => LinkKind::Group,
                            LocationType::Dataset => LinkKind::Dataset,
                            _ => LinkKind::Other,
                        }
                    }
                };
                Ok((name, kind))
            })
            .collect()
    }

    /// Sets an attribute, in place of one that has this name.
    pub(crate) fn set_attribute(&self, name: &str, value: &Attribute) -> Result<()> {
        attribute::set(&self.group, name, value).at_with(|| self.place())
    }

    /// The names of the attributes in order of creation.
    pub(crate) fn attributes(&self) -> Result<Vec<String>> {
        attribute::names(&self.group).at_with(|| self.place())
    }

    /// The value of an attribute; `None` if there is none of this name.
    pub(crate) fn attribute(&self, name: &str) -> Result<Option<Attribute>> {
        attribute::get(&self.group, name).at_with(|| self.place())
    }

    /// Fails unless something new can have this name.
    fn check_new(&self, name: &str) -> Result<()> {
        if name.is_empty() || name == "." || name.contains(['/', '\0']) {
            return Err(Error::usage(format!("HDF5 cannot have the name {name:?}")));
        }
        if self.has(name) {
            return Err(Error::new(crate::error::ErrorKind::Exists, "the name is taken"));
        }
        Ok(())
    }

    fn check_there(&self, name: &str) -> Result<()> {
        if self.has(name) { Ok(()) } else { Err(Error::not_found("there is none")) }
    }
}

/// How links are created: names are UTF-8.
pub(super) fn links() -> Result<LinkCreate> {
    Ok(LinkCreate::build().char_encoding(CharEncoding::Utf8).finish()?)
}
