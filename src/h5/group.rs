//! Groups and their links.

use hdf5::plist::group_create::{AttrCreationOrder, LinkCreationOrder};
use hdf5::plist::link_create::{CharEncoding, LinkCreate};
use hdf5::{IndexType, IterationOrder, LinkType, LocationType};

use super::sys::Charset;
use super::{Attribute, Bounds, ByteRows, Dataset, DatasetSpec, LiveSpec, attribute, sys};
use crate::error::{Error, Result, ResultExt};

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
        self.create_group_for(Bounds::V110, name)
    }

    /// Creates a group in this one, of a file that was created with these bounds.
    pub(crate) fn create_group_for(&self, bounds: Bounds, name: &str) -> Result<Group> {
        let path = self.path_of(name);
        let create = || -> Result<_> {
            self.check_new(name)?;
            let mut group = self.group.create_group_builder();
            group = group.create_intermediate_group(false).obj_track_times(false);
            if bounds == Bounds::V110 {
                group = group.char_encoding(CharEncoding::Utf8).with_gcpl(|group| {
                    group
                        .attr_creation_order(AttrCreationOrder::Indexed)
                        .link_creation_order(LinkCreationOrder::Indexed)
                });
            }
            Ok(group.create(name)?)
        };
        Ok(Group { group: create().with_context(|| format!("group {path}"))?, path })
    }

    /// Opens a group in this one.
    ///
    /// # Errors
    /// `NotFound` if nothing has this name.
    pub(crate) fn group(&self, name: &str) -> Result<Group> {
        let path = self.path_of(name);
        self.check_there(name).with_context(|| format!("group {path}"))?;
        Ok(Group { group: self.group.group(name).with_context(|| format!("group {path}"))?, path })
    }

    /// Creates a dataset in this group.
    pub(crate) fn create_dataset(&self, name: &str, spec: &DatasetSpec<'_>) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            spec.create(&self.group, name)
        };
        Ok(Dataset::new(create().with_context(|| format!("dataset {path}"))?, path))
    }

    /// Creates a dataset of bytes in this group, of a file that was created with these bounds.
    pub(crate) fn create_byte_rows(&self, bounds: Bounds, name: &str, rows: &ByteRows) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            rows.create(&self.group, bounds, name)
        };
        Ok(Dataset::new(create().with_context(|| format!("dataset {path}"))?, path))
    }

    /// Creates a dataset without rows in this group, which grows when the file is live.
    pub(crate) fn create_live(&self, name: &str, spec: &LiveSpec<'_>) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            spec.create(&self.group, name)
        };
        Ok(Dataset::new(create().with_context(|| format!("dataset {path}"))?, path))
    }

    /// Removes a link; what no other link leads to goes with it.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        self.group.unlink(name).with_context(|| self.path_of(name))
    }

    /// Makes another link, to the object at the path `target`.
    #[cfg(test)]
    pub(crate) fn link(&self, name: &str, target: &str) -> Result<()> {
        self.group.link_hard(target, name).with_context(|| self.path_of(name))
    }

    /// The number of links that lead to this group.
    pub(crate) fn link_count(&self) -> Result<usize> {
        Ok(self.group.loc_info().with_context(|| self.place())?.num_links)
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
        Ok(Dataset::new(create().with_context(|| format!("dimension {path}"))?, path))
    }

    /// Opens a dataset in this group.
    ///
    /// # Errors
    /// `NotFound` if nothing has this name.
    pub(crate) fn dataset(&self, name: &str) -> Result<Dataset> {
        let path = self.path_of(name);
        self.check_there(name).with_context(|| format!("dataset {path}"))?;
        Ok(Dataset::new(self.group.dataset(name).with_context(|| format!("dataset {path}"))?, path))
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
            .with_context(|| self.place())?;
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
                            .with_context(|| format!("object {}", self.path_of(&name)))?
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
        attribute::set(&self.group, name, value, Charset::Utf8).with_context(|| self.place())
    }

    /// Sets an attribute whose name and strings are ASCII, as programs older than UTF-8 expect.
    pub(crate) fn set_ascii_attribute(&self, name: &str, value: &Attribute) -> Result<()> {
        attribute::set(&self.group, name, value, Charset::Ascii).with_context(|| self.place())
    }

    /// Sets an attribute that is one record of 32-bit integers, in place of none.
    pub(crate) fn set_int_record(&self, name: &str, fields: &[(&str, i32)]) -> Result<()> {
        attribute::set_int_record(&self.group, name, fields).with_context(|| self.place())
    }

    /// The names of the fields of an attribute that is a record; none if it is something else or not there.
    pub(crate) fn attribute_fields(&self, name: &str) -> Result<Vec<String>> {
        attribute::fields(&self.group, name).with_context(|| self.place())
    }

    /// Gives what has the name `old` the name `new`.
    pub(crate) fn rename(&self, old: &str, new: &str) -> Result<()> {
        self.group.relink(old, new).with_context(|| self.path_of(old))
    }

    /// The names of the attributes in order of creation.
    pub(crate) fn attributes(&self) -> Result<Vec<String>> {
        attribute::names(&self.group).with_context(|| self.place())
    }

    /// The value of an attribute; `None` if there is none of this name.
    pub(crate) fn attribute(&self, name: &str) -> Result<Option<Attribute>> {
        attribute::get(&self.group, name).with_context(|| self.place())
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
