//! Groups of HDF5 files and their links.
//! Names of objects to open may be relative paths: `NotFound` if nothing has the name,
//! `Unsupported` if a link leads to another file that must not be opened.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use h5_read::ObjectKind;

use super::attribute::Owner;
use super::dataset::At;
use super::elsewhere::{self, Admission as _};
use super::existing::{Handle, Place};
use super::{
    Allocation, Attribute, Bounds, ByteRows, Compression, Dataset, DatasetSpec, ElementSpec, Elsewhere, Header, Link,
    LinkKind, LiveSpec, Reach, VirtualSpec, library,
};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::value::{Region, Shape, Values};

/// Soft and external links on the way to an object; more may be a circle.
const MAX_LINKS: usize = 16;

/// A group of an open HDF5 file.
#[derive(Debug, Clone)]
pub struct Group {
    at: Handle,
    /// Without a slash at its end; empty for the root.
    path: String,
    reach: Reach,
    /// In another file than the one that was opened: an external link led here.
    outside: bool,
    bounds: Bounds,
}

/// The object of a path, all links followed.
enum Located {
    Group(Group),
    /// Group and name of the hard link.
    Member(Group, String),
}

impl Located {
    fn group(self) -> Result<Group> {
        match self {
            Located::Group(group) => Ok(group),
            Located::Member(parent, name) => {
                let path = parent.path_of(&name);
                let open = || match &parent.at {
                    Handle::Library(group) => group.group(&name).map(Handle::Library),
                    Handle::File(place) => match (place.member(&name)?, place.kind_of(&name)?) {
                        (place, ObjectKind::Group) => Ok(Handle::File(place)),
                        (_, kind) => Err(Error::format(format!("expected a group, found a {}", kind_name(kind)))),
                    },
                };
                let at = open().with_context(|| format!("group {path}"))?;
                Ok(parent.below(at, path))
            }
        }
    }
}

impl Group {
    pub(super) fn new(group: library::Group, path: String, reach: Reach) -> Self {
        Group { at: Handle::Library(group), path, reach, outside: false, bounds: Bounds::V110 }
    }

    /// The root group of a file of which no link leads to another.
    pub(super) fn of_root(at: Handle) -> Self {
        Group { at, path: String::new(), reach: Reach::File, outside: false, bounds: Bounds::V110 }
    }

    pub(super) fn created_for(self, bounds: Bounds, reach: Reach) -> Self {
        Group { bounds, reach, ..self }
    }

    /// `at` is in the same file; `path` is from the root.
    fn below(&self, at: Handle, path: String) -> Self {
        Group { at, path, reach: self.reach.clone(), outside: self.outside, bounds: self.bounds }
    }

    pub(crate) fn root(&self) -> Result<Group> {
        let at = match &self.at {
            Handle::Library(group) => Handle::Library(group.root()?),
            Handle::File(place) => Handle::File(place.file_root()?),
        };
        Ok(self.below(at, String::new()))
    }

    /// The group of a file that this program makes or changes.
    pub(super) fn written(&self) -> Result<&library::Group> {
        match &self.at {
            Handle::Library(group) => Ok(group),
            Handle::File(_) => Err(Error::usage("the file is open for reading")),
        }
    }

    /// The group as libhdf5 has it open, so that it reads elements of a member.
    pub(super) fn library(&self) -> Result<library::Group> {
        match &self.at {
            Handle::Library(group) => Ok(group.clone()),
            Handle::File(place) => place.library()?.group_at(place.address()),
        }
    }

    pub(super) fn place_in_file(&self) -> Option<&Place> {
        match &self.at {
            Handle::Library(_) => None,
            Handle::File(place) => Some(place),
        }
    }

    fn owner(&self) -> Owner<'_> {
        match &self.at {
            Handle::Library(group) => Owner::Group(group),
            Handle::File(place) => Owner::Place(place),
        }
    }

    /// Does not follow the link; `None` for a missing one.
    fn link_at(&self, name: &str) -> Result<Option<Link>> {
        match &self.at {
            Handle::Library(group) => group.link(name),
            Handle::File(place) => Ok(place.known().link(name)),
        }
    }

    /// Follows soft and external links itself, so that libhdf5 does not; `links` counts them.
    /// `Format` for a soft link that leads nowhere or in a circle.
    fn locate(&self, path: &str, links: &mut usize) -> Result<Located> {
        let mut at = Located::Group(self.clone());
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            at = at.group()?.follow(name, links)?;
        }
        Ok(at)
    }

    fn follow(&self, name: &str, links: &mut usize) -> Result<Located> {
        let link = self.link_at(name)?.ok_or_else(|| Error::not_found("there is none"))?;
        if link == Link::Hard {
            return Ok(Located::Member(self.clone(), name.to_owned()));
        }
        *links += 1;
        if *links > MAX_LINKS {
            return Err(Error::format(format!(
                "the path leads through more than {MAX_LINKS} links, or through links in a circle"
            )));
        }
        match link {
            Link::Hard => Ok(Located::Member(self.clone(), name.to_owned())),
            Link::Soft(target) => {
                let from = if target.starts_with('/') { self.root()? } else { self.clone() };
                from.locate(&target, links)
                    .map_err(|error| match error.kind() {
                        ErrorKind::NotFound => Error::format("it is a soft link whose target is missing"),
                        _ => error,
                    })
                    .with_context(|| format!("soft link {} to {target}", self.path_of(name)))
            }
            Link::External { file, path } => {
                let found = Elsewhere::Link { file: file.clone(), path: path.clone() };
                let target = self.reach.admit(&found, &file)?;
                let (root, reach) = self.reach.open(&target)?;
                let root = Group { reach, outside: true, bounds: self.bounds, ..Group::of_root(root) };
                root.locate(&path, links).with_context(|| Context::path(&target))
            }
            Link::UserDefined(class) => Err(Elsewhere::UserDefined(class).refused()),
        }
    }

    fn find(&self, path: &str) -> Result<Located> {
        self.locate(path, &mut 0)
    }

    /// Path from the root, `/` for the root itself.
    pub fn path(&self) -> &str {
        if self.path.is_empty() { "/" } else { &self.path }
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{}", self.path, name.trim_start_matches('/'))
    }

    fn place(&self) -> String {
        format!("group {}", self.path())
    }

    pub(crate) fn create_group(&self, name: &str) -> Result<Group> {
        let path = self.path_of(name);
        let create = || -> Result<_> {
            self.check_new(name)?;
            self.written()?.create_group(name, self.bounds)
        };
        Ok(self.below(Handle::Library(create().with_context(|| format!("group {path}"))?), path))
    }

    pub(crate) fn group(&self, name: &str) -> Result<Group> {
        let group =
            self.find(name).and_then(Located::group).with_context(|| format!("group {}", self.path_of(name)))?;
        Ok(Group { path: self.path_of(name), ..group })
    }

    pub(crate) fn create_dataset(&self, name: &str, spec: &DatasetSpec<'_>) -> Result<Dataset> {
        self.create_allocated(name, spec, Allocation::Chunks)
    }

    /// A contiguous dataset with all its elements.
    pub(crate) fn create_filled(&self, name: &str, shape: &Shape, values: &Values) -> Result<Dataset> {
        let element = values.data_type();
        let spec = DatasetSpec { element, shape, chunk: None, appendable: false, compression: Compression::NONE };
        let dataset = self.create_dataset(name, &spec)?;
        dataset.write_region(&Region::whole(shape), values)?;
        Ok(dataset)
    }

    /// `allocation` decides when chunks get space.
    pub(crate) fn create_allocated(
        &self,
        name: &str,
        spec: &DatasetSpec<'_>,
        allocation: Allocation,
    ) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            self.written()?.create_dataset(name, self.bounds, spec, allocation)
        };
        Ok(Dataset::new(create().with_context(|| format!("dataset {path}"))?, path))
    }

    /// The caller writes the chunks, already filtered.
    pub(crate) fn create_elements(&self, name: &str, spec: &ElementSpec<'_>) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            self.written()?.create_elements(name, self.bounds, spec)
        };
        Ok(Dataset::new(create().with_context(|| format!("dataset {path}"))?, path))
    }

    pub(crate) fn create_virtual(&self, name: &str, spec: &VirtualSpec<'_>) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            self.written()?.create_virtual(name, self.bounds, spec)
        };
        Ok(Dataset::new(create().with_context(|| format!("dataset {path}"))?, path))
    }

    pub(crate) fn create_byte_rows(&self, name: &str, rows: &ByteRows) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            self.written()?.create_byte_rows(name, self.bounds, rows)
        };
        Ok(Dataset::new(create().with_context(|| format!("dataset {path}"))?, path))
    }

    /// Rows are appended once the file is live (SWMR).
    pub(crate) fn create_live(&self, name: &str, spec: &LiveSpec<'_>) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || {
            self.check_new(name)?;
            self.written()?.create_live(name, spec)
        };
        Ok(Dataset::new(create().with_context(|| format!("dataset {path}"))?, path))
    }

    /// An object without other links is removed as well.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        self.written()?.remove(name).with_context(|| self.path_of(name))
    }

    /// `target` is relative to this group, or from the root if it begins with a slash.
    pub(crate) fn link(&self, name: &str, target: &str) -> Result<()> {
        self.written()?.link_hard(name, target).with_context(|| self.path_of(name))
    }

    /// An external link to a root group, whether or not the file exists.
    pub(crate) fn link_file(&self, name: &str, file: &str) -> Result<()> {
        self.written()?.link_file(name, file).with_context(|| self.path_of(name))
    }

    pub(crate) fn link_count(&self) -> Result<usize> {
        match &self.at {
            Handle::Library(group) => group.link_count().with_context(|| self.place()),
            Handle::File(place) => place.known().link_count().with_context(|| self.place()),
        }
    }

    /// A scale without coordinate values, as in netCDF-4; elements take no space in the file.
    pub(crate) fn create_dimension(&self, name: &str, len: u64) -> Result<Dataset> {
        let path = self.path_of(name);
        let create = || -> Result<_> {
            self.check_new(name)?;
            self.written()?.create_dimension(name, self.bounds, len)
        };
        Ok(Dataset::new(create().with_context(|| format!("dimension {path}"))?, path))
    }

    pub(crate) fn dataset(&self, name: &str) -> Result<Dataset> {
        let open = || {
            let (parent, last, header) = self.open_header(name)?;
            let Some(found) = header.elsewhere() else {
                return Ok(header.into_dataset().outside(parent.outside));
            };
            let mut objects = Objects { root: parent.root()?, files: HashMap::new() };
            let outside = elsewhere::check_elements(&parent.reach, header.path(), found, &mut objects)?;
            header.check_elements()?;
            let prefix = parent.reach.directory().filter(|_| matches!(found, Elsewhere::Raw(_)));
            // a dataset has one prefix for as long as it is open
            drop(header);
            let dataset = parent.library()?.dataset(&last, prefix)?;
            Ok::<_, Error>(Dataset::new(dataset, self.path_of(name)).outside(outside || parent.outside))
        };
        open().with_context(|| format!("dataset {}", self.path_of(name)))
    }

    /// An ordinary dataset is opened only once.
    pub(crate) fn dataset_and_elsewhere(&self, name: &str) -> Result<(Result<Dataset>, Option<Elsewhere>)> {
        let is_hard = || Ok::<_, Error>(!name.contains('/') && self.link_at(name)? == Some(Link::Hard));
        if is_hard().with_context(|| self.path_of(name))? {
            let (parent, _, header) =
                self.open_header(name).with_context(|| format!("dataset {}", self.path_of(name)))?;
            if header.elsewhere().is_none() {
                return Ok((Ok(header.into_dataset().outside(parent.outside)), None));
            }
        }
        Ok((self.dataset(name), self.elsewhere(name)?))
    }

    /// Opened for attributes, even if elements are in other files.
    pub(crate) fn header(&self, name: &str) -> Result<Header> {
        let header = self.open_header(name).with_context(|| format!("dataset {}", self.path_of(name)))?;
        Ok(header.2)
    }

    /// Returns the group of the dataset's hard link, its name there, and its header.
    fn open_header(&self, name: &str) -> Result<(Group, String, Header)> {
        let Located::Member(parent, last) = self.find(name)? else {
            return Err(Error::format("the path leads to a group, expected a dataset"));
        };
        let at = match &parent.at {
            Handle::File(place) => At::file(place.member(&last)?),
            Handle::Library(group) => At::Library(group.opened(&last, parent.reach.directory())?),
        };
        let header = Header::new(at, self.path_of(name))?;
        Ok((parent, last, header))
    }

    pub(crate) fn elsewhere(&self, name: &str) -> Result<Option<Elsewhere>> {
        let find = || -> Result<Option<Elsewhere>> {
            if matches!(name, "" | ".") || name.contains('/') {
                return Ok(None);
            }
            let Some(link) = self.link_at(name)? else { return Ok(None) };
            Ok(match link {
                Link::External { file, path } => Some(Elsewhere::Link { file, path }),
                Link::UserDefined(class) => Some(Elsewhere::UserDefined(class)),
                Link::Soft(_) => match self.find(name) {
                    Ok(Located::Member(parent, last)) => parent.elsewhere(&last)?,
                    _ => None,
                },
                Link::Hard if self.kind_of(name)? == LinkKind::Dataset => {
                    self.open_header(name)?.2.elsewhere().cloned()
                }
                Link::Hard => None,
            })
        };
        find().with_context(|| self.path_of(name))
    }

    /// A link whose target is missing counts.
    pub(crate) fn has(&self, name: &str) -> bool {
        match name.rsplit_once('/') {
            None => !matches!(name, "" | ".") && self.link_at(name).is_ok_and(|link| link.is_some()),
            Some((groups, name)) => self.find(groups).and_then(Located::group).is_ok_and(|group| group.has(name)),
        }
    }

    pub(crate) fn links(&self) -> Result<Vec<(String, LinkKind)>> {
        let names = self.link_names()?;
        let with_kind = |name: String| {
            let kind = self.kind_of(&name).with_context(|| format!("object {}", self.path_of(&name)))?;
            Ok((name, kind))
        };
        names.into_iter().map(with_kind).collect()
    }

    /// As [`links`](Self::links), around damaged objects.
    pub(crate) fn members(&self) -> Result<Vec<(String, LinkKind)>> {
        let with_kind = |name: String| match self.kind_of(&name) {
            Ok(kind) => Ok((name, kind)),
            Err(error) if error.is_damage() => Ok((name, LinkKind::Damaged)),
            Err(error) => Err(error.context(format!("object {}", self.path_of(&name)))),
        };
        self.link_names()?.into_iter().map(with_kind).collect()
    }

    /// Names of the links, ordered by creation if the file records that, else by name.
    ///
    /// # Errors
    /// Those of reading.
    pub fn link_names(&self) -> Result<Vec<String>> {
        match &self.at {
            Handle::Library(group) => group.link_names().with_context(|| self.place()),
            Handle::File(place) => Ok(place.known().link_names().map(str::to_owned).collect()),
        }
    }

    fn kind_of(&self, name: &str) -> Result<LinkKind> {
        let at = match self.link_at(name)?.ok_or_else(|| Error::not_found("there is none"))? {
            Link::Hard => Located::Member(self.clone(), name.to_owned()),
            // not followed: it may lead round in circles
            Link::Soft(_) => return Ok(LinkKind::Soft),
            Link::External { .. } if self.reach.directory().is_some() => self.find(name)?,
            Link::External { .. } | Link::UserDefined(_) => return Ok(LinkKind::Elsewhere),
        };
        let Located::Member(parent, last) = at else { return Ok(LinkKind::Group) };
        match &parent.at {
            Handle::Library(group) => group.kind_of(&last),
            Handle::File(place) => Ok(match place.kind_of(&last)? {
                ObjectKind::Group => LinkKind::Group,
                ObjectKind::Dataset => LinkKind::Dataset,
                ObjectKind::Type => LinkKind::Other,
            }),
        }
    }

    /// Kind of the object after all links; fails if these cannot be followed.
    pub(crate) fn target_kind(&self, name: &str) -> Result<LinkKind> {
        match self.find(name)? {
            Located::Group(_) => Ok(LinkKind::Group),
            Located::Member(parent, last) => parent.kind_of(&last),
        }
    }

    pub(crate) fn set_attribute(&self, name: &str, value: &Attribute) -> Result<()> {
        self.set(name, value, false).with_context(|| self.place())
    }

    /// Name and strings are marked as ASCII, as old programs expect.
    pub(crate) fn set_ascii_attribute(&self, name: &str, value: &Attribute) -> Result<()> {
        self.set(name, value, true).with_context(|| self.place())
    }

    fn set(&self, name: &str, value: &Attribute, is_ascii: bool) -> Result<()> {
        self.written()?.set_attribute(name, value, is_ascii)
    }

    /// One compound of 32-bit integers, `fields` by name and value.
    pub(crate) fn set_int_record(&self, name: &str, fields: &[(&str, i32)]) -> Result<()> {
        let set = || self.written()?.set_int_record(name, fields);
        set().with_context(|| self.place())
    }

    /// Members of a compound; empty for another type or a missing attribute.
    pub(crate) fn attribute_fields(&self, name: &str) -> Result<Vec<String>> {
        self.owner().fields(name).with_context(|| self.place())
    }

    pub(crate) fn rename(&self, old: &str, new: &str) -> Result<()> {
        self.written()?.rename(old, new).with_context(|| self.path_of(old))
    }

    /// Why links or attributes are missing, of a file that is salvaged.
    pub(crate) fn damage(&self) -> Option<Error> {
        match &self.at {
            Handle::Library(_) => None,
            Handle::File(place) => Some(place.known().damage()?.clone().context(self.place())),
        }
    }

    /// Names of the attributes, ordered by creation if the file records that, else by name.
    ///
    /// # Errors
    /// Those of reading.
    pub fn attributes(&self) -> Result<Vec<String>> {
        self.owner().names().with_context(|| self.place())
    }

    /// Extents have the slowest axis first; none for a single value.
    pub(crate) fn shaped_attribute(&self, name: &str) -> Result<(Attribute, Vec<u64>)> {
        self.owner().shaped(name).with_context(|| self.place())
    }

    pub(crate) fn attribute(&self, name: &str) -> Result<Option<Attribute>> {
        self.owner().get(name).with_context(|| self.place())
    }

    /// Fails if the name is taken, empty, `.`, or contains a slash or NUL.
    fn check_new(&self, name: &str) -> Result<()> {
        if name.is_empty() || name == "." || name.contains(['/', '\0']) {
            return Err(Error::usage(format!("HDF5 cannot have the name {name:?}")));
        }
        if self.has(name) {
            return Err(Error::new(ErrorKind::Exists, "the name is taken"));
        }
        Ok(())
    }
}

/// Sources in the virtual dataset's own file and in others.
struct Objects {
    root: Group,
    /// Root groups by path; each file is opened once.
    files: HashMap<PathBuf, Group>,
}

impl elsewhere::Objects for Objects {
    fn inside(&self, path: &str) -> Result<(String, Option<Elsewhere>)> {
        let header = self.root.header(path)?;
        header.check_elements()?;
        Ok((header.path().to_owned(), header.elsewhere().cloned()))
    }

    fn outside(&mut self, file: &Path, path: &str) -> Result<()> {
        if !self.files.contains_key(file) {
            // nothing that the other file names is followed
            let root = Group::of_root(self.root.reach.open(file)?.0);
            self.files.insert(file.to_owned(), root);
        }
        self.files[file].header(path)?.check_elements()?;
        self.files[file].dataset(path).map(drop)
    }
}

fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Group => "group",
        ObjectKind::Dataset => "dataset",
        ObjectKind::Type => "committed type",
    }
}
